//! Clocks that were set, by the frames of the place itself: the time between two frames has the step in it.
//!
//! Time only goes on. So where a clock shows less than one frame before, it was set back; where it shows much more, it was
//! set, or nothing came for so long. The other places tell these apart: if the clock was set, the differences to their
//! times step as well, and without the step they do not. This also works where several clocks were set while the same
//! packets were under way. `steps.rs` finds what is left: steps that are less than the time in which nothing came.
//!
//! In: the points of each two places. Out: [`Clue`]s. Steps are looked for among the [`MOST`] largest gaps of a place, by
//! the [`AROUND`] packets before and after each: N points cost N log N.

use std::sync::Arc;

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
pub fn clues(points: &[([usize; 2], Arc<Vec<Point>>)]) -> Vec<Clue> {
    if points.iter().all(|(_, points)| Corridor::of(points).is_some()) {
        return Vec::new();
    }
    let pairs: Vec<Pair> = points
        .iter()
        .map(|(parts, points)| Pair { parts: *parts, orders: [0, 1].map(|side| ordered(points.to_vec(), side)) })
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
    measure(&mut gaps);
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

/// Takes from each step the time that really passed meanwhile.
///
/// First where packets before and after it have no other step between them that is not measured yet: two clocks that
/// were set close to each other would take each other's time.
fn measure(gaps: &mut [Gap]) {
    let mut left: Vec<usize> = (0..gaps.len()).filter(|at| gaps.get(*at).is_some_and(|gap| gap.is_set)).collect();
    while !left.is_empty() {
        let unmeasured: Vec<Clue> = left.iter().filter_map(|at| gaps.get(*at)).map(|gap| gap.clue).collect();
        let passed = |at: &usize| gaps.get(*at).map_or((0, 0), |gap| gap.passed(gaps, &unmeasured));
        let measured = left.iter().map(passed).enumerate();
        let Some((index, (_, ns))) = measured.max_by_key(|(index, (points, _))| (*points, std::cmp::Reverse(*index)))
        else {
            break;
        };
        if let Some(gap) = gaps.get_mut(left.remove(index)) {
            gap.clue.ns = gap.clue.ns.saturating_sub(ns);
        }
    }
}

/// What packets before and after a step, with no other step between them, say of the time that passed.
struct Elapsed {
    /// How many packets there are on that side that has fewer.
    points: usize,
    /// One line explains all of them, if so much passed.
    least: i64,
    most: i64,
    /// The packets that were fastest, before and after, took equally long, if so much passed.
    equal: i64,
}

impl Gap {
    /// How many packets tell how much time really passed between the two frames, and how much it was.
    fn passed(&self, gaps: &[Gap], unmeasured: &[Clue]) -> (usize, i64) {
        let mut elapsed: Vec<Elapsed> =
            self.near.iter().flat_map(|near| self.elapsed_by(near, gaps, unmeasured)).collect();
        elapsed.sort_by_key(|one| std::cmp::Reverse(one.points));
        let Some(first) = elapsed.first() else { return (0, 0) };
        let (mut least, mut most) = (first.least, first.most);
        for one in &elapsed {
            if one.least.max(least) <= one.most.min(most) {
                (least, most) = (one.least.max(least), one.most.min(most));
            }
        }
        let is_bounded = least > i64::MIN && most < i64::MAX;
        (first.points, if is_bounded { least.midpoint(most) } else { first.equal.max(least).min(most) })
    }

    fn elapsed_by(&self, near: &Near, gaps: &[Gap], unmeasured: &[Clue]) -> Vec<Elapsed> {
        let Some(side) = near.parts.iter().position(|part| *part == self.clue.part) else { return Vec::new() };
        let others = |point: &Point| {
            let set = |side: usize, clue: &Clue| {
                near.parts.get(side) == Some(&clue.part) && !same(clue, &self.clue) && frame(point, side) >= clue.after
            };
            [0, 1].map(|side| unmeasured.iter().filter(|clue| set(side, clue)).count())
        };
        let mut points: Vec<([usize; 2], Point)> =
            near.orders.iter().take(1).flatten().map(|point| (others(point), *point)).collect();
        points.sort_by_key(|(others, _)| *others);
        let same_others = points.chunk_by(|(one, _), (other, _)| one == other);
        same_others.filter_map(|points| self.elapsed_of(near, side, gaps, points)).collect()
    }

    fn elapsed_of(&self, near: &Near, side: usize, gaps: &[Gap], points: &[([usize; 2], Point)]) -> Option<Elapsed> {
        // How far the other place is ahead at most and at least, before the step and after it.
        let mut bounds = [[i64::MAX, i64::MIN]; 2];
        let mut counts = [0; 2];
        for (_, point) in points {
            let after = usize::from(frame(point, side) >= self.clue.after);
            let ahead_ns = near.without(point, gaps, &self.clue, true).ahead_ns;
            let [most, least] = bounds.get_mut(after)?;
            if point.outward {
                *most = ahead_ns.min(*most);
            } else {
                *least = ahead_ns.max(*least);
            }
            *counts.get_mut(after)? += 1;
        }
        let bounded = |bound: i64| (bound != i64::MAX && bound != i64::MIN).then_some(bound);
        let grown = |after: i64, before: i64| Some(bounded(after)?.saturating_sub(bounded(before)?));
        let [[most_before, least_before], [most_after, least_after]] = bounds;
        let (least, most) = (grown(least_after, most_before), grown(most_after, least_before));
        let equal: Vec<i64> =
            [grown(most_after, most_before), grown(least_after, least_before)].into_iter().flatten().collect();
        let equal = equal.iter().sum::<i64>().checked_div(i64::try_from(equal.len()).ok()?)?;
        let [before, after] = counts;
        let elapsed = Elapsed {
            points: before.min(after),
            least: least.unwrap_or(i64::MIN),
            most: most.unwrap_or(i64::MAX),
            equal,
        };
        // Without all of the gap, the place's clock lags behind by what really passed.
        let turned = Elapsed {
            least: most.map_or(i64::MIN, i64::saturating_neg),
            most: least.map_or(i64::MAX, i64::saturating_neg),
            equal: -equal,
            ..elapsed
        };
        Some(if side == 1 { turned } else { elapsed })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use proptest::prelude::*;

    use super::*;

    /// Captures of packets: true times at each place that saw one, in nanoseconds.
    struct Captures {
        seen: Vec<Vec<i64>>,
        /// From when on which place's clock shows how much more.
        sets: Vec<(usize, i64, i64)>,
    }

    impl Captures {
        fn frame(&self, part: usize, at: i64) -> i64 {
            let mut seen = self.seen[part].clone();
            seen.sort_unstable();
            i64::try_from(seen.partition_point(|one| *one < at)).unwrap()
        }

        fn shown(&self, part: usize, at: i64) -> i64 {
            let sets = self.sets.iter().filter(|(of, from, _)| *of == part && at >= *from);
            at + sets.map(|(_, _, ns)| ns).sum::<i64>()
        }

        fn points(&self, parts: [usize; 2], times: &[([i64; 2], bool)]) -> ([usize; 2], Arc<Vec<Point>>) {
            let of = |&(at, outward): &([i64; 2], bool)| {
                let shown = [0, 1].map(|side| self.shown(parts[side], at[side]));
                let frames = [0, 1].map(|side| self.frame(parts[side], at[side]));
                Point { at: shown[0], ahead_ns: shown[1] - shown[0], outward, frames, segment: 0 }
            };
            (parts, Arc::new(times.iter().map(of).collect()))
        }
    }

    /// Requests from place 0 through place 1 to place 2 and back, one each 22 ms.
    fn three_places(sets: Vec<(usize, i64, i64)>) -> Vec<Clue> {
        let mut legs = [Vec::new(), Vec::new()];
        let mut seen = vec![Vec::new(); 3];
        for n in 0..40 {
            let at = n * 22_000_000;
            let times = [at, at + 10_000_000, at + 10_100_000, at + 11_100_000, at + 11_200_000, at + 12_200_000];
            legs[0].extend([([times[0], times[1]], true), ([at + 22_300_000, times[5]], false)]);
            legs[1].extend([([times[2], times[3]], true), ([times[5], times[4]], false)]);
            seen[0].extend([at, at + 22_300_000]);
            seen[1].extend([times[1], times[2], times[5]]);
            seen[2].extend([times[3], times[4]]);
        }
        let captures = Captures { seen, sets };
        clues(&[captures.points([0, 1], &legs[0]), captures.points([1, 2], &legs[1])])
    }

    #[test]
    fn clocks_that_were_set_between_the_same_two_packets_do_not_take_each_others_time() {
        let set_at = 400_000_000;
        let mut found = three_places(vec![(1, set_at, -900_000_000), (2, set_at + 3_000_000, 700_000_000)]);
        found.sort_by_key(|clue| clue.part);
        assert_eq!(found.iter().map(|clue| clue.part).collect::<Vec<_>>(), [1, 2]);
        assert!((found[0].ns + 900_000_000).abs() < 100_000, "{found:?}");
        assert!((found[1].ns - 700_000_000).abs() < 100_000, "{found:?}");
    }

    #[test]
    fn time_in_which_no_packet_came_is_no_step() {
        let pair = |silence: i64, sets: Vec<(usize, i64, i64)>| {
            let at = |n: i64| n * 5_000_000 + if n >= 60 { silence } else { 0 };
            let times: Vec<([i64; 2], bool)> =
                (0..100).map(|n| ([at(n), at(n) + 2_000_000 - n % 2 * 4_000_000], n % 2 == 0)).collect();
            let seen = [0, 1].map(|side| times.iter().map(|(at, _)| at[side]).collect()).to_vec();
            let captures = Captures { seen, sets };
            clues(&[captures.points([0, 1], &times)])
        };
        assert_eq!(pair(3_000_000_000, vec![]), []);
        let found = pair(3_000_000_000, vec![(0, 100_000_001, 800_000_000)]);
        assert_eq!(found.iter().map(|clue| clue.part).collect::<Vec<_>>(), [0]);
        assert!((found[0].ns - 800_000_000).abs() < 10_000, "{found:?}");
    }

    proptest! {
        #[test]
        fn a_step_is_found_at_its_frame(
            sent in prop::collection::vec((0i64..4_000_000, 0i64..3_000_000, any::<bool>()), 200..400),
            set in 0usize..2,
            share in 3usize..7,
            step in prop::sample::select(vec![-3_600_000_000_000i64, -400_000_000, 400_000_000, 5_000_000_000]),
        ) {
            let mut at = 0;
            let mut times = Vec::new();
            for (gap, delay, outward) in &sent {
                at += gap + 1;
                let arrived = at + 10_000_000 + delay;
                times.push(if *outward { ([at, arrived], true) } else { ([arrived, at], false) });
            }
            let set_at = times[sent.len() * share / 10].0[set];
            let seen = [0, 1].map(|side| times.iter().map(|(at, _)| at[side]).collect()).to_vec();
            let captures = Captures { seen, sets: vec![(set, set_at, step)] };
            let found = clues(&[captures.points([0, 1], &times)]);
            prop_assert_eq!(found.len(), 1, "{:?}", found);
            let first = captures.frame(set, set_at);
            prop_assert_eq!((found[0].part, found[0].before, found[0].after), (set, first - 1, first));
            prop_assert!((found[0].ns - step).abs() < 6_000_000, "{:?}", found);
        }
    }
}
