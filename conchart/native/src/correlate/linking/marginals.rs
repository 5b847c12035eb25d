//! How likely each candidate is, beside all others: belief propagation between fronts and backs.
//!
//! A back has one front, or none. How many backs a front has is a habit: mostly one, of an application any number. So a candidate
//! is the less likely the likelier the others of its back are, and of its front as far as fronts have few.

use super::candidates::Candidate;
use super::visits::Chains;

/// Passes over all candidates; what they change after that is below what confidence is worth.
const PASSES: usize = 10;
/// Less than this changes nothing.
const STILL: f64 = 1e-3;
/// Backs of one front that are told apart by their number.
pub(super) const MOST_COUNTED: usize = 4;
/// Odds beyond `e` to this power are as good as certain.
const CERTAIN: f64 = 24.0;

/// How often a front has no back, one, two …
pub(super) type Counts = [f64; MOST_COUNTED + 1];

/// Computes the probability of each candidate.
///
/// `counts` has, for each candidate, how often fronts like its have so many backs. Candidates of a front need not be together.
pub(super) fn marginals<'a>(candidates: &mut [Candidate], fronts: usize, counts: impl Fn(&Candidate) -> &'a Counts) {
    let by_front = by_front(candidates, fronts);
    let odds: Vec<f64> = candidates.iter().map(|candidate| candidate.weight.clamp(-CERTAIN, CERTAIN).exp()).collect();
    let mut wanted = vec![1.0f64; candidates.len()];
    let mut offered = vec![0.0f64; candidates.len()];
    let mut room = Room::default();
    for _ in 0..PASSES {
        offer(candidates, &odds, &wanted, &mut offered);
        let mut change = 0.0f64;
        for of_front in &by_front {
            let Some(candidate) = of_front.first().and_then(|&index| candidates.get(index as usize)) else { continue };
            room.want(of_front, &offered, counts(candidate));
            for (&index, &now) in of_front.iter().zip(&room.wanted) {
                if let Some(wanted) = wanted.get_mut(index as usize) {
                    change = change.max((now - *wanted).abs());
                    *wanted = 0.5 * (*wanted + now);
                }
            }
        }
        if change < STILL {
            break;
        }
    }
    for ((candidate, offered), wanted) in candidates.iter_mut().zip(&offered).zip(&wanted) {
        let odds = offered * wanted;
        candidate.probability = odds / (1.0 + odds);
    }
}

/// Computes the probability of each candidate from those before and after on its back's connection, however many backs a front has.
pub(super) fn along(candidates: &mut [Candidate], chains: &mut Chains) {
    let odds: Vec<f64> = candidates.iter().map(|candidate| candidate.weight.clamp(-CERTAIN, CERTAIN).exp()).collect();
    let odds = chains.hand_on(&odds);
    let mut start = 0;
    for of_back in candidates.chunk_by_mut(|one, other| one.back == other.back) {
        let odds = odds.get(start..start + of_back.len()).unwrap_or_default();
        start += of_back.len();
        let all: f64 = 1.0 + odds.iter().sum::<f64>();
        for (candidate, odds) in of_back.iter_mut().zip(odds) {
            candidate.probability = odds / all;
        }
    }
}

/// What each back offers its fronts: the odds, as far as its other fronts do not want it. Candidates of a back stand together.
fn offer(candidates: &[Candidate], odds: &[f64], wanted: &[f64], offered: &mut [f64]) {
    let mut start = 0;
    for of_back in candidates.chunk_by(|one, other| one.back == other.back) {
        let range = start..start + of_back.len();
        start = range.end;
        let (Some(odds), Some(wanted), Some(offered)) =
            (odds.get(range.clone()), wanted.get(range.clone()), offered.get_mut(range))
        else {
            return;
        };
        let all: f64 = odds.iter().zip(wanted).map(|(odds, wanted)| odds * wanted).sum();
        for ((odds, wanted), offered) in odds.iter().zip(wanted).zip(offered) {
            *offered = odds / (1.0 + (all - odds * wanted).max(0.0));
        }
    }
}

/// The indices of the candidates of each front that has any.
fn by_front(candidates: &[Candidate], fronts: usize) -> Vec<Vec<u32>> {
    let mut lists = vec![Vec::new(); fronts];
    for (index, candidate) in (0u32..).zip(candidates) {
        if let Some(list) = lists.get_mut(candidate.front as usize) {
            list.push(index);
        }
    }
    lists.retain(|list: &Vec<u32>| !list.is_empty());
    lists
}

/// Sums over all ways to choose so many of some candidates: of none, one, two … the products of what they are offered
/// (elementary symmetric polynomials).
type Ways = [f64; MOST_COUNTED + 1];

/// Memory that is used again.
#[derive(Default)]
struct Room {
    /// Ways to choose among the candidates after each.
    after: Vec<Ways>,
    wanted: Vec<f64>,
}

impl Room {
    /// Says how much a front wants each of its candidates, given what the others offer.
    fn want(&mut self, of_front: &[u32], offered: &[f64], counts: &Counts) {
        const NOTHING: Ways = [1.0, 0.0, 0.0, 0.0, 0.0];
        let [c0, c1, c2, c3, c4] = *counts;
        self.wanted.clear();
        if of_front.len() == 1 {
            self.wanted.push(c1 / c0);
            return;
        }
        let offer = |&index: &u32| offered.get(index as usize).copied().unwrap_or_default();
        self.after.clear();
        let mut ways = NOTHING;
        for index in of_front.iter().rev() {
            self.after.push(ways);
            ways = with(&ways, offer(index));
        }
        let mut before = NOTHING;
        for (index, after) in of_front.iter().zip(self.after.iter().rev()) {
            // Ways to choose among all the others: so many of those before, the rest of those after.
            let ([b0, b1, b2, b3, b4], [a0, a1, a2, a3, a4]) = (before, *after);
            let one = b0 * a1 + b1 * a0;
            let two = b0 * a2 + b1 * a1 + b2 * a0;
            let three = b0 * a3 + b1 * a2 + b2 * a1 + b3 * a0;
            let four = b0 * a4 + b1 * a3 + b2 * a2 + b3 * a1 + b4 * a0;
            let alone = c0 + c1 * one + c2 * two + c3 * three + c4 * four;
            let beside = c1 + c2 * one + c3 * two + c4 * three;
            self.wanted.push(beside / alone);
            before = with(&before, offer(index));
        }
    }
}

/// Ways to choose when one more can be chosen.
fn with(ways: &Ways, offered: f64) -> Ways {
    let [none, one, two, three, four] = *ways;
    [none, one + none * offered, two + one * offered, three + two * offered, four + three * offered]
}
