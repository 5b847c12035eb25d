//! How far two clocks are apart: packets that both saw in, the corridor in which the difference of the clocks lies out.
//!
//! A packet takes at least no time from one place to the other. So the difference between its two times bounds the
//! difference of the clocks: from above if it went from the reference to the other place, from below if it came back.
//! Clocks differ by an offset and a drift: a line over time. All lines that no packet contradicts form a corridor (Moon,
//! Skelly and Towsley 1999; Zhang, Liu and Xia 2002). For a slope, the tightest bounds are those of the convex hulls, and
//! the room between them is a concave function of the slope. Where no line is left, a clock was set: another piece begins.
//!
//! In: points in the order in which the other place captured them, whatever its clock showed. Out: [`Piece`]s, and the
//! [`Step`]s of clocks that were set (`steps.rs`). Linear in the number of points but for finding where pieces end, which
//! takes a logarithm more. No IO, no clock. Only packets that both places captured count, never acknowledgements.

pub mod clues;
pub mod steps;

use arrow_array::{BooleanArray, Int64Array, RecordBatch};
use arrow_schema::ArrowError;

use crate::correlate::columns::Columns;

/// Two clocks drift apart by less, parts of one: quartz by some 0.0001 each, and Linux slews one by 0.0005 at most
/// (adjtimex), against its error.
pub const MAX_DRIFT: f64 = 0.0005;
/// Clocks that are set more often than that are not followed: the last piece then has the rest.
const MAX_PIECES: usize = 64;
/// Segments are numbered by how often both clocks were set, the reference's times this: more than a clock is set.
pub const SETS: i64 = 1_000;
/// Steps of a search between two slopes: each divides what is left by 1.5 at least.
const SEARCHED: usize = 80;

/// A packet that both places saw.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// When the reference saw it, on its clock.
    pub at: i64,
    /// When the other place saw it, on its own clock, less `at`.
    pub ahead_ns: i64,
    /// It went from the reference to the other place.
    pub outward: bool,
    /// Its frames, at the reference and at the other place.
    pub frames: [i64; 2],
    /// Between two known steps of a clock, it is the same.
    pub segment: i64,
}

/// A stretch of time in which the clocks differ by a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// The first packet of it, on the reference's clock, and the first one of the next piece, or the last of all.
    pub from_at: i64,
    pub to_at: i64,
    /// How far the clock is ahead of the reference at `from_at`.
    pub offset_ns: i64,
    /// How much it gains, parts of 10⁹.
    pub drift_ppb: i64,
    /// The difference of the clocks is no farther from this line; `None` where packets went in one direction alone.
    pub uncertainty_ns: Option<i64>,
    pub points: i64,
    pub segment: i64,
}

/// Finds the pieces. The points of a segment follow each other.
#[must_use]
pub fn fit(points: &[Point]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for segment in points.chunk_by(|one, other| one.segment == other.segment) {
        fit_segment(segment, &mut pieces);
    }
    let cells = lasting(&pieces);
    pieces.retain(|piece| cells.contains(&piece.segment));
    // Where packets went in one direction alone, the stretch ends before the next one begins.
    let mut next = i64::MAX;
    let mut retained: Vec<Piece> = Vec::new();
    for piece in pieces.into_iter().rev() {
        if piece.uncertainty_ns.is_some() || piece.from_at < next {
            next = piece.from_at;
            retained.push(piece);
        }
    }
    let mut pieces = retained;
    pieces.reverse();
    for index in 1..pieces.len() {
        let next = pieces.get(index).map(|piece| piece.from_at);
        if let (Some(before), Some(next)) = (pieces.get_mut(index - 1), next) {
            before.to_at = next;
        }
    }
    pieces
}

/// The segments that follow each other in time.
///
/// Where both clocks were set while packets were under way, some of these left before one clock was set and arrived after
/// the other: no instant is like that. Of two segments of which neither can be the later one, the one that has bounds
/// lasts, or has more packets.
fn lasting(pieces: &[Piece]) -> Vec<i64> {
    let mut segments: Vec<(bool, i64, i64)> = pieces
        .chunk_by(|one, other| one.segment == other.segment)
        .filter_map(|same| {
            let is_bounded = same.iter().any(|piece| piece.uncertainty_ns.is_some());
            Some((!is_bounded, -same.iter().map(|piece| piece.points).sum::<i64>(), same.first()?.segment))
        })
        .collect();
    segments.sort_unstable();
    let mut retained: Vec<i64> = Vec::new();
    for (_, _, segment) in segments {
        let cell = |segment: i64| (segment / SETS, segment % SETS);
        let (here, there) = cell(segment);
        let follows = |other: &i64| {
            let (other_here, other_there) = cell(*other);
            (here <= other_here && there <= other_there) || (here >= other_here && there >= other_there)
        };
        if retained.iter().all(follows) {
            retained.push(segment);
        }
    }
    retained
}

fn fit_segment(points: &[Point], pieces: &mut Vec<Piece>) {
    let mut rest = points;
    while !rest.is_empty() {
        let last = pieces.len() + 1 == MAX_PIECES;
        let len = if last { rest.len() } else { piece_of(rest) };
        let (mine, others) = rest.split_at_checked(len.max(1)).unwrap_or((rest, &[]));
        pieces.extend(rounded_piece(mine));
        rest = others;
    }
}

/// How many points, from the first one on, belong to one piece.
fn piece_of(points: &[Point]) -> usize {
    let most = longest(points);
    let Some(rest) = points.get(most..).filter(|rest| !rest.is_empty()) else { return points.len() };
    // Behind a step, packets in one direction seem to be slow, which nothing contradicts: they belong to the next piece
    // where that explains them better.
    let next = rest.get(..longest(rest)).unwrap_or(rest);
    let end = most + next.len();
    let is_free = |from: usize| points.get(from..end).is_some_and(|points| Corridor::of(points).is_some());
    let first = partition(0, most, |from| !is_free(from)).max(1);
    let (Some(before), Some(after)) =
        (points.get(..first).and_then(middle), middle(next).or_else(|| points.get(first..end).and_then(middle)))
    else {
        return most;
    };
    let mut best = (f64::INFINITY, most);
    let mut excess: f64 = points.get(first..most).into_iter().flatten().map(|point| after.off(point)).sum();
    for (index, point) in points.iter().enumerate().take(most).skip(first) {
        if excess < best.0 {
            best = (excess, index);
        }
        excess += before.off(point) - after.off(point);
    }
    if excess < best.0 { most } else { best.1 }
}

/// The longest beginning of the points that one line may have.
fn longest(points: &[Point]) -> usize {
    let is_free = |len: usize| points.get(..len).is_some_and(|points| Corridor::of(points).is_some());
    if is_free(points.len()) {
        return points.len();
    }
    let mut len = 1;
    while len < points.len() && is_free((2 * len).min(points.len())) {
        len = (2 * len).min(points.len());
    }
    if len >= points.len() { points.len() } else { partition(len, (2 * len).min(points.len()), is_free) }
}

/// The last number from `low` on for which something holds, as it does at `low` and does not at `high`; or for which it does
/// not hold any more one below.
fn partition(mut low: usize, mut high: usize, holds: impl Fn(usize) -> bool) -> usize {
    while high - low > 1 {
        let middle = low.midpoint(high);
        if holds(middle) { low = middle } else { high = middle }
    }
    low
}

/// A line, as far from the first point as it was told.
#[derive(Clone, Copy, Debug)]
struct Line {
    origin: Point,
    intercept: f64,
    slope: f64,
    /// How much it can be wrong.
    half: f64,
}

impl Line {
    /// How long the packet was under way, at least.
    fn off(&self, point: &Point) -> f64 {
        (relative(&self.origin, point).1 - self.at(point)).abs()
    }

    /// The difference of the clocks at the instant of a point, counted from that at the line's origin.
    fn at(&self, point: &Point) -> f64 {
        self.intercept + self.slope * relative(&self.origin, point).0
    }
}

fn middle(points: &[Point]) -> Option<Line> {
    let origin = *points.first()?;
    let corridor = Corridor::of(points)?;
    let slope = corridor.best;
    let (low, high) = (corridor.low_at(slope), corridor.high_at(slope));
    let (intercept, half) = match (low.is_finite(), high.is_finite()) {
        (true, true) => (f64::midpoint(low, high), (high - low) / 2.0),
        (true, false) => (low, 0.0),
        (false, _) => (high, 0.0),
    };
    Some(Line { origin, intercept, slope, half })
}

#[expect(clippy::cast_precision_loss, reason = "counted from the first point, 53 bits are enough for months")]
fn relative(origin: &Point, point: &Point) -> (f64, f64) {
    (point.at.saturating_sub(origin.at) as f64, point.ahead_ns.saturating_sub(origin.ahead_ns) as f64)
}

/// All lines that no point contradicts.
struct Corridor {
    /// Of packets that went out, the points below which no other lies, and of those that came back, above.
    high: Vec<(f64, f64)>,
    low: Vec<(f64, f64)>,
    /// The slope that leaves the most room.
    best: f64,
}

impl Corridor {
    /// `None`: no line is left.
    fn of(points: &[Point]) -> Option<Self> {
        let origin = points.first()?;
        let hull = |outward: bool| {
            let sign = if outward { 1.0 } else { -1.0 };
            let mut hull: Vec<(f64, f64)> = Vec::new();
            let mut mine: Vec<_> =
                points.iter().filter(|point| point.outward == outward).map(|point| relative(origin, point)).collect();
            if !mine.is_sorted_by(|one, other| one.0 <= other.0) {
                mine.sort_by(|one, other| one.0.total_cmp(&other.0));
            }
            for (t, y) in mine {
                let next = (t, sign * y);
                while let [.., (t0, y0), (t1, y1)] = *hull.as_slice()
                    && (t1 - t0) * (next.1 - y0) <= (y1 - y0) * (next.0 - t0)
                {
                    hull.pop();
                }
                hull.push(next);
            }
            hull.iter_mut().for_each(|(_, y)| *y *= sign);
            hull
        };
        let mut corridor = Self { high: hull(true), low: hull(false), best: 0.0 };
        if corridor.high.is_empty() || corridor.low.is_empty() {
            return Some(corridor);
        }
        corridor.best = greatest(-MAX_DRIFT, MAX_DRIFT, |slope| corridor.room(slope));
        // Half a nanosecond: what numbers with 53 bits cannot tell from none.
        (corridor.room(corridor.best) >= -0.5).then_some(corridor)
    }

    fn high_at(&self, slope: f64) -> f64 {
        self.high.iter().map(|(t, y)| y - slope * t).fold(f64::INFINITY, f64::min)
    }

    fn low_at(&self, slope: f64) -> f64 {
        self.low.iter().map(|(t, y)| y - slope * t).fold(f64::NEG_INFINITY, f64::max)
    }

    fn room(&self, slope: f64) -> f64 {
        self.high_at(slope) - self.low_at(slope)
    }

    /// The least and the greatest slope of a line that is left.
    fn slopes(&self) -> (f64, f64) {
        let edge = |bound: f64| {
            if self.room(bound) >= 0.0 {
                return bound;
            }
            let (mut inside, mut outside) = (self.best, bound);
            for _ in 0..SEARCHED {
                let between = f64::midpoint(inside, outside);
                if self.room(between) >= 0.0 { inside = between } else { outside = between }
            }
            outside
        };
        (edge(-MAX_DRIFT), edge(MAX_DRIFT))
    }

    /// Between which values all lines lie at one instant.
    fn bounds(&self, t: f64) -> (f64, f64) {
        let (from, to) = self.slopes();
        let high = greatest(from, to, |slope| self.high_at(slope) + slope * t);
        let low = greatest(from, to, |slope| -self.low_at(slope) - slope * t);
        (self.low_at(low) + low * t, self.high_at(high) + high * t)
    }
}

/// Where a concave function is greatest.
fn greatest(mut from: f64, mut to: f64, of: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..SEARCHED {
        let third = (to - from) / 3.0;
        let (one, other) = (from + third, to - third);
        if of(one) < of(other) { from = one } else { to = other }
    }
    f64::midpoint(from, to)
}

/// A piece as it is told.
#[expect(clippy::cast_possible_truncation, reason = "nanoseconds, rounded; a number that is too large is the largest")]
fn rounded_piece(points: &[Point]) -> Option<Piece> {
    let (origin, last) = (points.iter().min_by_key(|point| point.at)?, points.iter().max_by_key(|point| point.at)?);
    let since = relative(points.first()?, origin);
    let count = i64::try_from(points.len()).unwrap_or(i64::MAX);
    let piece = |intercept: f64, slope: f64, uncertainty_ns| Piece {
        from_at: origin.at,
        to_at: last.at,
        offset_ns: origin.ahead_ns.saturating_add(intercept.round() as i64),
        drift_ppb: (slope * 1e9).round() as i64,
        uncertainty_ns,
        points: count,
        segment: origin.segment,
    };
    let length = relative(origin, last).0;
    let corridor = Corridor::of(points).filter(|corridor| !corridor.high.is_empty() && !corridor.low.is_empty());
    let Some(corridor) = corridor else {
        let line = middle(points).unwrap_or(Line { origin: *origin, intercept: 0.0, slope: 0.0, half: 0.0 });
        return Some(piece(line.at(origin) - relative(&line.origin, origin).1, line.slope, None));
    };
    // Halfway between the bounds at both ends. What lies between them is no farther from that line than at its ends.
    let (first, end) = (corridor.bounds(since.0), corridor.bounds(since.0 + length));
    let (intercept, at_end) = (f64::midpoint(first.0, first.1) - since.1, f64::midpoint(end.0, end.1) - since.1);
    let slope = if length > 0.0 { (at_end - intercept) / length } else { 0.0 };
    let half = f64::max(first.1 - first.0, end.1 - end.0) / 2.0;
    // The offset and the drift are rounded.
    let rounding = 1.0 + length * 0.5e-9;
    Some(piece(intercept, slope, Some((half.max(0.0) + rounding).ceil() as i64)))
}

/// Appends the points of a batch, with the columns that `places/clocks.py` selects.
///
/// # Errors
/// When a column is missing, or of another type.
pub fn read(batch: &RecordBatch, points: &mut Vec<Point>) -> Result<(), ArrowError> {
    let columns = Columns { batch };
    let at = columns.get::<Int64Array>("here_at")?;
    let ahead_ns = columns.get::<Int64Array>("ahead_ns")?;
    let outward = columns.get::<BooleanArray>("outward")?;
    let (here, there) = (columns.get::<Int64Array>("here_frame")?, columns.get::<Int64Array>("there_frame")?);
    let segment = columns.get::<Int64Array>("segment")?;
    points.extend((0..batch.num_rows()).map(|row| Point {
        at: at.value(row),
        ahead_ns: ahead_ns.value(row),
        outward: outward.value(row),
        frames: [here.value(row), there.value(row)],
        segment: segment.value(row),
    }));
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss
    )]
    use proptest::prelude::*;

    use super::*;

    /// What a clock shows that is ahead by `offset` at 0 and gains `ppb`.
    fn shown(at: i64, offset: i64, ppb: i64) -> i64 {
        at + offset + (i128::from(at) * i128::from(ppb) / 1_000_000_000) as i64
    }

    /// Packets there and back, each under way for at least `least`.
    fn points(delays: &[(i64, bool)], least: i64, clock: impl Fn(i64) -> i64) -> Vec<Point> {
        let mut at = 0;
        let mut points = Vec::new();
        for &(delay, outward) in delays {
            at += 10_000_000;
            // Back: it left the other place before.
            let there = if outward { at + least + delay } else { at - least - delay };
            points.push(Point { at, ahead_ns: clock(there) - at, outward, frames: [0, 0], segment: 0 });
        }
        points
    }

    proptest! {
        #[test]
        fn the_true_difference_lies_in_the_corridor(
            delays in prop::collection::vec((0i64..30_000_000, any::<bool>()), 2..300),
            offset in -10_000_000_000_000i64..10_000_000_000_000,
            ppb in -100_000i64..100_000,
            least in 0i64..5_000_000,
        ) {
            let points = points(&delays, least, |at| shown(at, offset, ppb));
            let pieces = fit(&points);
            prop_assert_eq!(pieces.len(), 1);
            let piece = pieces[0];
            prop_assert_eq!(piece.points, delays.len() as i64);
            let both = delays.iter().any(|delay| delay.1) && delays.iter().any(|delay| !delay.1);
            prop_assert_eq!(piece.uncertainty_ns.is_some(), both);
            if let Some(uncertainty) = piece.uncertainty_ns {
                for point in &points {
                    let computed = shown(point.at - piece.from_at, piece.offset_ns, piece.drift_ppb) - (point.at - piece.from_at);
                    let truth = shown(point.at, offset, ppb) - point.at;
                    // Drift over a delay: the difference is that at the other place's instant.
                    prop_assert!((computed - truth).abs() <= uncertainty + 2 + (least + 30_000_000) / 10_000, "{computed} {truth} ± {uncertainty}");
                }
            }
        }

        #[test]
        fn a_step_begins_another_piece(
            delays in prop::collection::vec((0i64..200_000, any::<bool>()), 40..200),
            cut in 10usize..30,
            step in prop::sample::select(vec![-3_600_000_000_000i64, -40_000_000, 40_000_000, 5_000_000_000]),
        ) {
            let all: Vec<_> = delays.iter().enumerate().map(|(n, (delay, _))| (*delay, n % 2 == 0)).collect();
            let set_at = 10_000_000 * (cut as i64) + 5_000_000;
            let points = points(&all, 100_000, |at| if at < set_at { at } else { at + step });
            let pieces = fit(&points);
            prop_assert_eq!(pieces.len(), 2, "{:?}", &pieces);
            prop_assert_eq!(pieces[0].points, cut as i64);
            prop_assert!((pieces[0].offset_ns).abs() <= pieces[0].uncertainty_ns.unwrap());
            prop_assert!((pieces[1].offset_ns - step).abs() <= pieces[1].uncertainty_ns.unwrap());
        }
    }

    #[test]
    fn half_of_the_round_trip_is_what_cannot_be_known() {
        // 2 ms there, 18 ms back: nothing tells that from 10 ms each.
        let points: Vec<_> = (0..100)
            .map(|n| Point {
                at: n * 1_000_000,
                ahead_ns: if n % 2 == 0 { 2_000_000 } else { -18_000_000 },
                outward: n % 2 == 0,
                frames: [n, n],
                segment: 0,
            })
            .collect();
        let piece = fit(&points)[0];
        assert_eq!(piece.offset_ns / 100_000, -80);
        assert!((10_000_000..=10_200_000).contains(&piece.uncertainty_ns.unwrap()), "{piece:?}");
    }
}
