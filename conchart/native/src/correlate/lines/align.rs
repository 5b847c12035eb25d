//! Two versions of one sequence: the cheapest alignment in which both keep their order, within a band.

use std::ops::Range;

use super::{Group, REACH};

/// A line that is about no exchange, and an exchange that no line is about. Together more than the worst pair.
const NO_REQUEST: f32 = 9.0;
pub(super) const NO_LINE: f32 = 5.0;
/// Lines that are aligned at once, and those of which the result is kept: what follows a line speaks for it, too.
const PIECE: usize = 4096;
const RETAINED: usize = 3072;

#[derive(Clone, Copy, PartialEq)]
enum Step {
    Start,
    Pair,
    SkipLine,
    SkipRequest,
}

/// A row of the table: of each number of exchanges that are over, in the band, the least cost.
struct Row {
    first: usize,
    costs: Vec<f32>,
    steps: Vec<Step>,
}

impl Row {
    fn end(&self) -> usize {
        self.first + self.costs.len()
    }

    /// The cost with `place` exchanges over: beyond the band, the last ones were skipped.
    fn cost(&self, place: usize) -> f32 {
        let last = self.end() - 1;
        match place.checked_sub(self.first).and_then(|inside| self.costs.get(inside)) {
            Some(cost) => *cost,
            None if place > last => {
                #[expect(clippy::cast_precision_loss, reason = "a weight")]
                let skipped = (place - last).min(20) as f32;
                self.costs.last().copied().unwrap_or(f32::INFINITY) + NO_LINE * skipped
            }
            None => f32::INFINITY,
        }
    }
}

/// Gives for each line the place of its exchange.
pub(super) fn align(group: &Group<'_>) -> Vec<Option<usize>> {
    let mut found = Vec::with_capacity(group.lines.len());
    let mut over = 0;
    while found.len() < group.lines.len() {
        let from = found.len();
        let piece = from..(from + PIECE).min(group.lines.len());
        let is_last = piece.end == group.lines.len();
        let mut placed = align_piece(group, piece, over);
        placed.truncate(if is_last { placed.len() } else { RETAINED });
        over = placed.iter().flatten().max().map_or(over, |last| last + 1);
        found.append(&mut placed);
    }
    found
}

fn align_piece(group: &Group<'_>, lines: Range<usize>, over: usize) -> Vec<Option<usize>> {
    let count = group.requests.len();
    // Where a capture begins earlier than the log, nothing is wrong.
    let free = lines.start == 0;
    let width = (2 * REACH + 1).min(count - over + 1);
    let mut rows: Vec<Row> = Vec::with_capacity(lines.len());
    #[expect(clippy::cast_precision_loss, reason = "a weight")]
    let costs = (0..width).map(|skipped| if free { 0.0 } else { NO_LINE * skipped as f32 }).collect();
    let mut last = Row { first: over, costs, steps: vec![Step::Start; width] };
    let mut best = over;
    for line in group.lines.get(lines).unwrap_or_default() {
        let near = group.near(line);
        let likeliest = if group.coarse() {
            best
        } else {
            let end_at = group.end_of(line).unwrap_or(0);
            group.requests.partition_point(|request| request.low_at < end_at)
        };
        let likeliest = likeliest.clamp(near.start, near.end.max(near.start));
        let first = likeliest.saturating_sub(REACH).max(near.start).max(last.first).min(count);
        let end = (likeliest + REACH).min(near.end).max(first).min(count) + 1;
        let mut row = Row { first, costs: Vec::with_capacity(end - first), steps: Vec::with_capacity(end - first) };
        // A capture that begins earlier than the log: to skip what lies before the first line costs nothing.
        let nothing_yet = free && rows.is_empty();
        for place in first..end {
            let before = if nothing_yet { 0.0 } else { last.cost(place) };
            let mut least = (before + NO_REQUEST, Step::SkipLine);
            if let Some(request) = place.checked_sub(1).and_then(|place| group.requests.get(place))
                && place > over
            {
                let paired = if nothing_yet { 0.0 } else { last.cost(place - 1) } + group.cost(line, request);
                if paired < least.0 && near.contains(&(place - 1)) {
                    least = (paired, Step::Pair);
                }
            }
            if let Some(skipped) = row.costs.last().map(|cost| cost + NO_LINE)
                && skipped < least.0
            {
                least = (skipped, Step::SkipRequest);
            }
            row.costs.push(least.0);
            row.steps.push(least.1);
        }
        best = least_of(&row);
        rows.push(std::mem::replace(&mut last, row));
    }
    rows.push(last);
    trace(&rows)
}

/// Where the row costs least.
fn least_of(row: &Row) -> usize {
    let mut least = (f32::INFINITY, 0);
    for (place, cost) in row.costs.iter().enumerate() {
        if *cost < least.0 {
            least = (*cost, place);
        }
    }
    row.first + least.1
}

/// From the end of the cheapest way back to its start. The first row is that of no line.
fn trace(rows: &[Row]) -> Vec<Option<usize>> {
    let mut found = vec![None; rows.len().saturating_sub(1)];
    let mut place = rows.last().map_or(0, least_of);
    for (number, row) in rows.iter().enumerate().skip(1).rev() {
        place = place.clamp(row.first, row.end() - 1);
        loop {
            match row.steps.get(place - row.first) {
                Some(Step::SkipRequest) => place -= 1,
                Some(Step::Pair) => {
                    place -= 1;
                    if let Some(slot) = found.get_mut(number - 1) {
                        *slot = Some(place);
                    }
                    break;
                }
                _ => break,
            }
        }
    }
    found
}
