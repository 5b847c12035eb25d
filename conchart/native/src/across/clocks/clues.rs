//! Clocks that were set, by the frames of the place itself: the time between two frames has the step in it.
//!
//! Time only goes on. So where a clock shows less than one frame before, it was set back; where it shows much more, it was
//! set, or nothing came for so long. The other places tell these apart: if the clock was set, the differences to their
//! times step as well, and without the step they do not. This also works where several clocks were set while the same
//! packets were under way. `steps.rs` finds what is left: steps that are less than the time in which nothing came.
//!
//! In: the points of each two places. Out: [`Clue`]s. Steps are looked for among the [`MOST`] largest gaps of a place, by
//! the [`AROUND`] packets before and after each: N points cost N log N.

use super::{Corridor, Point};

/// Shorter gaps are no clue: a round trip may take as long.
const LEAST_NS: i64 = 250_000_000;
/// So many gaps of a place are looked at, the longest ones.
const MOST: usize = 64;
/// So many packets, before and after.
const AROUND: usize = 256;

/// A clock that was set between two frames of its place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clue {
    pub part: usize,
    /// The last frame before it, of those that other places saw, and the first one after it.
    pub before: i64,
    pub after: i64,
    /// By how much more it shows since.
    pub ns: i64,
}

/// The points of two places.
struct Pair {
    parts: [usize; 2],
    /// By the frames of the one place and the other.
    orders: [Vec<Point>; 2],
}

/// A gap that may be a step.
struct Gap {
    clue: Clue,
    is_set: bool,
    /// Around it, for each pair of the place.
    near: Vec<Near>,
}

/// The packets around a gap, with what other gaps do not change.
struct Near {
    parts: [usize; 2],
    /// By the frames of the one place and the other.
    orders: [Vec<Point>; 2],
}

/// Finds the steps that show in the place's own frames.
#[must_use]
pub fn clues(points: Vec<([usize; 2], Vec<Point>)>) -> Vec<Clue> {
    if points.iter().all(|(_, points)| Corridor::of(points).is_some()) {
        return Vec::new();
    }
    let pairs: Vec<Pair> = points
        .into_iter()
        .map(|(parts, points)| Pair { parts, orders: [0, 1].map(|side| ordered(points.clone(), side)) })
        .collect();
    let last = pairs.iter().flat_map(|pair| pair.parts).max().unwrap_or_default();
    let mut gaps: Vec<Gap> = (0..=last).flat_map(|part| gaps(part, &pairs)).collect();
    // Each turn decides about one gap; a step that is taken back once is not taken again in vain.
    for _ in 0..2 * gaps.len() {
        let gained = |gap: &Gap| {
            let with = |is_set: bool| gap.near.iter().map(|near| near.turmoil(&gaps, &gap.clue, is_set)).sum::<i128>();
            with(gap.is_set) - with(!gap.is_set) - i128::from(gap.clue.ns.abs())
        };
        let Some((gain, best)) = gaps.iter().enumerate().map(|(at, gap)| (gained(gap), at)).max() else { break };
        if gain <= 0 {
            break;
        }
        if let Some(gap) = gaps.get_mut(best) {
            gap.is_set = !gap.is_set;
        }
    }
    for _ in 0..2 {
        for at in 0..gaps.len() {
            let Some(passed) = gaps.get(at).filter(|gap| gap.is_set).and_then(|gap| gap.passed(&gaps)) else {
                continue;
            };
            if let Some(gap) = gaps.get_mut(at) {
                gap.clue.ns = gap.clue.ns.saturating_sub(passed);
            }
        }
    }
    // No step where a line explains the packets without one. The smallest ones first.
    let mut order: Vec<usize> = (0..gaps.len()).collect();
    order.sort_by_key(|at| gaps.get(*at).map(|gap| gap.clue.ns.saturating_abs()));
    for at in order {
        let is_needless = |gap: &Gap| gap.near.iter().all(|near| near.is_free(&gaps, &gap.clue, false));
        let is_set = gaps.get(at).is_some_and(|gap| gap.is_set && !is_needless(gap));
        if let Some(gap) = gaps.get_mut(at) {
            gap.is_set = is_set;
        }
    }
    gaps.into_iter().filter(|gap| gap.is_set).map(|gap| gap.clue).collect()
}

fn ordered(mut points: Vec<Point>, side: usize) -> Vec<Point> {
    points.sort_by_key(|point| frame(point, side));
    points
}

fn frame(point: &Point, side: usize) -> i64 {
    point.frames.get(side).copied().unwrap_or_default()
}

/// What a place's clock showed.
fn shown(point: &Point, side: usize) -> i64 {
    if side == 0 { point.at } else { point.at.saturating_add(point.ahead_ns) }
}

/// The longest gaps of a place. Where its clock shows less than before, it was set.
fn gaps(part: usize, pairs: &[Pair]) -> Vec<Gap> {
    let mine = || pairs.iter().filter_map(|pair| Some((pair, pair.parts.iter().position(|one| *one == part)?)));
    let mut times: Vec<(i64, i64)> = mine()
        .flat_map(|(pair, side)| {
            let order = pair.orders.get(side).map_or(&[][..], Vec::as_slice);
            order.iter().map(move |point| (frame(point, side), shown(point, side)))
        })
        .collect();
    times.sort_unstable();
    times.dedup_by_key(|(frame, _)| *frame);
    let mut found: Vec<Clue> = times
        .windows(2)
        .filter_map(|two| {
            let [(before, from), (after, to)] = *two else { return None };
            Some(Clue { part, before, after, ns: to.saturating_sub(from) })
        })
        .filter(|clue| clue.ns.saturating_abs() > LEAST_NS)
        .collect();
    found.sort_by_key(|clue| std::cmp::Reverse(clue.ns.saturating_abs()));
    found.truncate(MOST);
    found
        .into_iter()
        .map(|clue| Gap {
            clue,
            is_set: clue.ns < 0,
            near: mine().map(|(pair, side)| Near::of(pair, side, &clue)).collect(),
        })
        .collect()
}

impl Near {
    fn of(pair: &Pair, side: usize, clue: &Clue) -> Self {
        let order = pair.orders.get(side).map_or(&[][..], Vec::as_slice);
        let at = order.partition_point(|point| frame(point, side) < clue.after);
        let near = order.get(at.saturating_sub(AROUND)..(at + AROUND).min(order.len())).unwrap_or(&[]);
        Self { parts: pair.parts, orders: [0, 1].map(|side| ordered(near.to_vec(), side)) }
    }

    /// The point as it is without the steps of both clocks.
    fn without(&self, point: &Point, gaps: &[Gap], of: &Clue, is_set: bool) -> Point {
        let [here, there] = self.parts;
        let set = |part: usize, side: usize| -> i64 {
            let steps = gaps.iter().filter(|gap| gap.clue.part == part && frame(point, side) >= gap.clue.after);
            let taken = steps.filter(|gap| if same(&gap.clue, of) { is_set } else { gap.is_set });
            taken.map(|gap| gap.clue.ns).fold(0, i64::saturating_add)
        };
        let (of_here, of_there) = (set(here, 0), set(there, 1));
        Point {
            at: point.at.saturating_sub(of_here),
            ahead_ns: point.ahead_ns.saturating_sub(of_there).saturating_add(of_here),
            ..*point
        }
    }

    /// How much the differences of the times change from packet to packet of a direction.
    fn turmoil(&self, gaps: &[Gap], of: &Clue, is_set: bool) -> i128 {
        let mut sum = 0;
        for order in &self.orders {
            let mut last = [None; 2];
            for point in order {
                let ahead_ns = self.without(point, gaps, of, is_set).ahead_ns;
                if let Some(last) = last.get_mut(usize::from(point.outward)) {
                    sum += last.map_or(0, |last: i64| (i128::from(ahead_ns) - i128::from(last)).abs());
                    *last = Some(ahead_ns);
                }
            }
        }
        sum
    }

    /// Does a line explain the packets?
    fn is_free(&self, gaps: &[Gap], of: &Clue, is_set: bool) -> bool {
        let order = self.orders.first().map_or(&[][..], Vec::as_slice);
        let points: Vec<Point> = order.iter().map(|point| self.without(point, gaps, of, is_set)).collect();
        Corridor::of(&points).is_some()
    }
}

fn same(one: &Clue, other: &Clue) -> bool {
    (one.part, one.after) == (other.part, other.after)
}

impl Gap {
    /// How much time really passed between the two frames, as the other places have it.
    fn passed(&self, gaps: &[Gap]) -> Option<i64> {
        let near = self.near.iter().max_by_key(|near| near.orders.first().map_or(0, Vec::len))?;
        let side = near.parts.iter().position(|part| *part == self.clue.part)?;
        let (before, after): (Vec<&Point>, Vec<&Point>) =
            near.orders.first()?.iter().partition(|point| frame(point, side) < self.clue.after);
        let nearest = |points: &[&Point], outward: bool| {
            let ahead = points.iter().filter(|point| point.outward == outward);
            let ahead = ahead.map(|point| near.without(point, gaps, &self.clue, true).ahead_ns);
            if outward { ahead.min() } else { ahead.max() }
        };
        let grown: Vec<i64> = [true, false]
            .into_iter()
            .filter_map(|outward| Some(nearest(&after, outward)?.saturating_sub(nearest(&before, outward)?)))
            .collect();
        let grown = grown.iter().sum::<i64>() / i64::try_from(grown.len()).ok().filter(|len| *len > 0)?;
        // Without all of the gap, the place's clock lags behind by what really passed.
        Some(if side == 1 { -grown } else { grown })
    }
}
