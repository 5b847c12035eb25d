//! What an order alone cannot tell: neighbours that fit better the other way round, and how sure a pair is.

use super::align::NO_LINE;
use super::{Group, Pair, REACH};

/// Lines after a line with which it may change places.
const NEIGHBOURS: usize = 32;
/// How often that is tried: a line moves as far as many changes carry it.
const ROUNDS: usize = 3;
/// Costs more than this speak against a pair that nothing else speaks for.
const WORST: f32 = 12.0;
/// A pair that costs so much more is no rival.
const RIVAL: f32 = 3.0;
/// What a step away from the order of the file costs.
const STEP: f32 = 1.0;
/// What is left of the confidence in an order in which lines are missing.
const GUESSED: f64 = 0.3;
/// Never certain: another request may have come that the capture does not have.
const SUREST: f64 = 0.97;

/// Lets neighbours change their exchanges where both fit better then.
pub(super) fn exchange(group: &Group<'_>, found: &mut [Option<usize>]) {
    for _ in 0..ROUNDS {
        let mut changed = false;
        for one in 0..found.len() {
            for other in one + 1..found.len().min(one + 1 + NEIGHBOURS) {
                let (Some(Some(mine)), Some(Some(its))) = (found.get(one).copied(), found.get(other).copied()) else {
                    continue;
                };
                let now = cost(group, one, mine) + cost(group, other, its);
                if now > 0.01 && cost(group, one, its) + cost(group, other, mine) < now - 0.01 {
                    found.swap(one, other);
                    changed = true;
                }
            }
        }
        if !changed {
            break;
        }
    }
}

fn cost(group: &Group<'_>, line: usize, request: usize) -> f32 {
    match (group.lines.get(line), group.requests.get(request)) {
        (Some(line), Some(request)) => group.cost(line, request),
        _ => f32::INFINITY,
    }
}

/// Pairs lines and exchanges that were left over, the cheapest pairs first.
pub(super) fn take_up(group: &Group<'_>, found: &mut [Option<usize>]) {
    let mut taken = vec![false; group.requests.len()];
    for request in found.iter().flatten() {
        if let Some(taken) = taken.get_mut(*request) {
            *taken = true;
        }
    }
    let free: Vec<usize> = taken.iter().enumerate().filter_map(|(place, taken)| (!taken).then_some(place)).collect();
    if free.is_empty() {
        return;
    }
    let mut pairs = Vec::new();
    for (place, line) in group.lines.iter().enumerate() {
        if found.get(place).is_none_or(Option::is_some) {
            continue;
        }
        let near = group.near(line);
        let begin = free.partition_point(|request| *request < near.start);
        let inside = free.get(begin..).unwrap_or_default().iter().take_while(|request| **request < near.end);
        pairs.extend(inside.take(2 * REACH).map(|request| (cost(group, place, *request), place, *request)));
    }
    pairs.sort_by(|one, other| one.0.total_cmp(&other.0));
    for (cost, line, request) in pairs {
        let (Some(slot), Some(taken)) = (found.get_mut(line), taken.get_mut(request)) else { continue };
        if cost < WORST && slot.is_none() && !*taken {
            *slot = Some(request);
            *taken = true;
        }
    }
}

/// Tells the pairs, and how sure they are: by what would speak against each other way of pairing two lines.
pub(super) fn tell(group: &Group<'_>, found: &[Option<usize>], pairs: &mut Vec<Pair>) {
    let mut line_of = vec![None; group.requests.len()];
    for (line, request) in found.iter().enumerate() {
        if let Some(slot) = request.and_then(|request| line_of.get_mut(request)) {
            *slot = Some(line);
        }
    }
    // Where lines are missing, an order that is all there is tells nothing any more.
    let missing = group.coarse() && group.lines.len() != group.requests.len();
    for (place, line) in group.lines.iter().enumerate() {
        let Some(Some(mine)) = found.get(place).copied() else { continue };
        let Some(request) = group.requests.get(mine) else { continue };
        let own = group.cost(line, request);
        let (mut likely, mut rivals) = (0.0_f64, 0);
        let near = group.near(line);
        let first = near.start.max(mine.saturating_sub(NEIGHBOURS));
        for other in first..near.end.min(mine + 1 + NEIGHBOURS) {
            if other == mine {
                continue;
            }
            let instead = match line_of.get(other).copied().flatten() {
                Some(its) => cost(group, its, mine) - cost(group, its, other),
                None => NO_LINE / 2.0,
            };
            #[expect(clippy::cast_precision_loss, reason = "a weight")]
            let steps = STEP * mine.abs_diff(other) as f32;
            let more = (cost(group, place, other) - own + instead).max(0.0);
            if more + steps.min(4.0) < RIVAL + 4.0 {
                likely += f64::from(-(more + steps)).exp();
            }
            rivals += i32::from(more < RIVAL);
        }
        let fit = 1.0 - 0.3 * f64::from((own / WORST).min(1.0));
        let fit = if missing && rivals > 0 { fit * GUESSED } else { fit };
        let confidence = (SUREST * fit / (1.0 + likely) * 1000.0).round() / 1000.0;
        let (stream, number) = (request.stream, request.number);
        pairs.push(Pair { line: line.id, stream, number, confidence, rivals });
    }
}
