//! Which of two clocks was set, and where.
//!
//! Where a clock was set, packets are under way. Those before and after it are told apart by their differences, one by
//! one; in the order of the frames of the place of which the clock was set, they come one after the other, while in the
//! order of the other place they mix.

use super::{Line, Point, longest, middle, partition};

/// More steps than that are not followed.
const MAX_STEPS: usize = 64;

/// A clock that was set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Of the reference (0) or the other place (1); `None`: both are possible.
    pub of: Option<usize>,
    /// At each place, the last frame before it and the first one after it.
    pub before: [i64; 2],
    pub after: [i64; 2],
    /// How much farther the other place is ahead after it.
    pub ns: i64,
}

/// Takes away what is known of the steps of two clocks: from which frame on each shows how much more.
fn without(points: &mut [Point], given: &[Vec<(i64, i64)>; 2]) {
    let [here, there] = given;
    let set = |steps: &[(i64, i64)], frame: i64| -> i64 {
        steps.iter().filter(|(first, _)| frame >= *first).map(|(_, ns)| *ns).fold(0, i64::saturating_add)
    };
    for point in points {
        let (of_here, of_there) = (set(here, frame(point, 0)), set(there, frame(point, 1)));
        point.at = point.at.saturating_sub(of_here);
        point.ahead_ns = point.ahead_ns.saturating_add(of_here).saturating_sub(of_there);
    }
}

/// Finds the steps that are left without those that are known: from which frame on each clock shows how much more.
#[must_use]
pub fn steps(points: &[Point], given: &[Vec<(i64, i64)>; 2]) -> Vec<Step> {
    if given.iter().all(Vec::is_empty) && super::Corridor::of(points).is_some() {
        return Vec::new();
    }
    let mut points = points.to_vec();
    without(&mut points, given);
    let mut orders = [points.clone(), points];
    for (side, order) in orders.iter_mut().enumerate() {
        order.sort_by_key(|point| frame(point, side));
    }
    let mut found = Vec::new();
    for _ in 0..MAX_STEPS {
        let Some((step, cut)) = next(&orders) else { break };
        found.extend(step);
        for order in &mut orders {
            order.retain(|point| frame(point, cut.side) >= cut.from);
        }
    }
    found
}

fn frame(point: &Point, side: usize) -> i64 {
    point.frames.get(side).copied().unwrap_or_default()
}

/// Where the points are divided: by the frames of a place.
struct Cut {
    side: usize,
    from: i64,
}

/// The first place where the points are not on one line any more.
fn next(orders: &[Vec<Point>; 2]) -> Option<(Option<Step>, Cut)> {
    let mut best: Option<(usize, usize, usize)> = None;
    for side in [1, 0] {
        let order = orders.get(side)?;
        let most = longest(order);
        let rest = order.get(most..).filter(|rest| !rest.is_empty())?;
        let end = most + longest(rest);
        if best.is_none_or(|(_, _, farthest)| end > farthest) {
            best = Some((side, most, end));
        }
    }
    let (side, most, end) = best?;
    let order = orders.get(side)?;
    // Behind a step, packets in one direction may seem to be slow only: they are on both lines.
    let is_free = |from: usize| order.get(from..end).is_some_and(|points| super::Corridor::of(points).is_some());
    let first = partition(0, most, |from| !is_free(from)).max(1);
    let before = middle(order.get(..first)?)?;
    let after = middle(order.get(most..end)?)?;
    let mut points = order.get(..end)?.to_vec();
    let cuts = [1, 0].map(|side| {
        points.sort_by_key(|point| frame(point, side));
        let (excess, len) = divided(&points, &before, &after);
        (excess, len, side)
    });
    // Sums of the same numbers in another order.
    let [there, here] = cuts;
    let (_, len, side) = if here.0 < there.0 - 1.0 - there.0.abs() * 1e-9 { here } else { there };
    points.sort_by_key(|point| frame(point, side));
    let (old, new) = points.split_at_checked(len)?;
    let bounds = |side: usize| {
        let last = old.iter().map(|point| frame(point, side)).max()?;
        let first = new.iter().map(|point| frame(point, side)).min()?;
        Some((last, first))
    };
    let all = [bounds(0)?, bounds(1)?];
    let of = if all.iter().all(|(last, first)| last < first) { None } else { Some(side) };
    let cut = Cut { side, from: all.get(side)?.1 };
    // The reference's time may step here, too: each line counts where it has points.
    let ahead = |line: &Line, at: &Point| saturated(line.at(at)).saturating_add(line.origin.ahead_ns);
    let ns = ahead(&after, new.first()?).saturating_sub(ahead(&before, old.last()?));
    let is_step = ns.saturating_abs() > saturated(before.half + after.half);
    let step = Step { of, before: all.map(|one| one.0), after: all.map(|one| one.1), ns };
    Some((is_step.then_some(step), cut))
}

/// How many points, in their order, are before the step, and how far all are from their lines then.
fn divided(points: &[Point], before: &Line, after: &Line) -> (f64, usize) {
    let mut excess: f64 = points.iter().map(|point| after.off(point)).sum();
    let mut best = (f64::INFINITY, 1);
    for (index, point) in points.iter().enumerate() {
        if index > 0 && excess < best.0 {
            best = (excess, index);
        }
        excess += before.off(point) - after.off(point);
    }
    best
}

#[expect(clippy::cast_possible_truncation, reason = "a number that is too large is the largest")]
fn saturated(ns: f64) -> i64 {
    ns.round() as i64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_told_which_clock_was_set_and_where(
            sent in prop::collection::vec((0i64..4_000_000, 0i64..3_000_000, any::<bool>()), 200..400),
            set in 0usize..2,
            share in 0.3f64..0.7,
            step in prop::sample::select(vec![-3_600_000_000_000i64, -60_000_000, 60_000_000, 5_000_000_000]),
            offset in -10_000_000_000i64..10_000_000_000,
        ) {
            let mut at = 0;
            // The true times at both places.
            let mut times = Vec::new();
            for (gap, delay, outward) in sent {
                at += gap;
                let arrived = at + 10_000_000 + delay;
                times.push(if outward { ([at, arrived], true) } else { ([arrived, at], false) });
            }
            #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
            let set_at = (at as f64 * share) as i64;
            let clock = |side: usize, at: i64| at + if side == 1 { offset } else { 0 } + if side == set && at >= set_at { step } else { 0 };
            let mut ranks = [0, 1].map(|side| {
                let mut all: Vec<_> = (0..times.len()).collect();
                all.sort_by_key(|&n| times[n].0[side]);
                let mut rank = vec![0; times.len()];
                for (place, n) in all.into_iter().enumerate() {
                    rank[n] = i64::try_from(place).unwrap();
                }
                rank
            });
            let points: Vec<_> = times.iter().enumerate().map(|(n, &(at, outward))| Point {
                at: clock(0, at[0]),
                ahead_ns: clock(1, at[1]) - clock(0, at[0]),
                outward,
                frames: [ranks[0][n], ranks[1][n]],
                segment: 0,
            }).collect();
            let found = steps(&points, &[Vec::new(), Vec::new()]);
            prop_assert_eq!(found.len(), 1, "{:?}", found);
            let grown = if set == 1 { step } else { -step };
            prop_assert!((found[0].ns - grown).abs() <= 27_000_000, "{:?}", found);
            prop_assert!(found[0].of.is_none_or(|of| of == set), "{:?}", found);
            let mine = std::mem::take(&mut ranks[set]);
            let before = times.iter().zip(&mine).filter(|((at, _), _)| at[set] < set_at).map(|(_, rank)| *rank).max().unwrap();
            prop_assert_eq!((found[0].before[set], found[0].after[set]), (before, before + 1));
        }
    }
}
