//! Who overtook whom: a proxy mostly takes requests, and answers, in the order in which they come.
//!
//! In: candidates with the probabilities of the round before. Out: for each candidate, how many of the fronts beside it would have
//! been overtaken were it a link. What holds up a proxy for a while holds up all that waits, so delays alone tell little then.

use super::Exchange;
use super::candidates::Candidate;
use super::portions::Portion;

/// Fronts on either side that are looked at.
const NEIGHBOURS: usize = 12;
/// More are counted as so many.
pub(super) const MOST_OVERTAKEN: usize = 2 * NEIGHBOURS;

/// Fronts in the order of their requests, and of their responses.
#[derive(Debug)]
pub(super) struct Order {
    requests: Row,
    responses: Row,
}

#[derive(Debug)]
struct Row {
    fronts: Vec<u32>,
    places: Vec<u32>,
}

impl Row {
    fn new(portion: &Portion<'_>, key: impl Fn(&Exchange) -> Option<i64>) -> Self {
        let mut keyed: Vec<(u32, i64, u32)> = Vec::with_capacity(portion.fronts.len());
        for (machine, sides) in (0u32..).zip(&portion.machines) {
            let fronts = portion.fronts_of(sides).into_iter();
            keyed.extend(fronts.filter_map(|(number, front)| Some((machine, key(front)?, number))));
        }
        keyed.sort_unstable();
        let mut places = vec![u32::MAX; portion.fronts.len()];
        for (place, &(.., number)) in (0u32..).zip(&keyed) {
            if let Some(known) = places.get_mut(number as usize) {
                *known = place;
            }
        }
        Self { fronts: keyed.into_iter().map(|(.., number)| number).collect(), places }
    }

    /// The fronts before and after one, the nearest first.
    fn beside(&self, front: u32) -> (impl Iterator<Item = u32>, impl Iterator<Item = u32>) {
        let place = self.places.get(front as usize).map_or(0, |&place| place as usize);
        let known = place < self.fronts.len();
        let before = self.fronts.get(place.saturating_sub(NEIGHBOURS)..place).filter(|_| known).unwrap_or_default();
        let after = self.fronts.get(place + 1..).filter(|_| known).unwrap_or_default();
        (before.iter().rev().copied(), after.iter().take(NEIGHBOURS).copied())
    }
}

impl Order {
    pub(super) fn new(portion: &Portion<'_>) -> Self {
        Self {
            requests: Row::new(portion, |front| Some(front.request_done_at)),
            responses: Row::new(portion, |front| front.response_at),
        }
    }

    /// Counts whom each candidate would have overtaken, or been overtaken by, beside the likeliest candidates of other fronts.
    pub(super) fn count(&self, candidates: &mut [Candidate]) {
        let mut likeliest: Vec<Option<Likeliest>> = vec![None; self.requests.places.len()];
        for candidate in candidates.iter() {
            if let Some(best) = likeliest.get_mut(candidate.front as usize)
                && candidate.probability > best.map_or(0.3, |best| best.probability)
            {
                *best = Some(Likeliest {
                    probability: candidate.probability,
                    back: candidate.back,
                    began_at: candidate.began_at,
                    answered_at: candidate.answered_at,
                });
            }
        }
        let other = |front: u32, back: u32| {
            likeliest.get(front as usize).copied().flatten().filter(|likeliest| likeliest.back != back)
        };
        for candidate in candidates.iter_mut() {
            let (before, after) = self.requests.beside(candidate.front);
            let late =
                before.filter_map(|front| other(front, candidate.back)).filter(|it| it.began_at > candidate.began_at);
            let early =
                after.filter_map(|front| other(front, candidate.back)).filter(|it| it.began_at < candidate.began_at);
            candidate.asked_overtaken = late.chain(early).take(MOST_OVERTAKEN).count();
            candidate.answered_overtaken = candidate.answered_at.map_or(0, |answered_at| {
                let (before, after) = self.responses.beside(candidate.front);
                let at = |front| other(front, candidate.back).and_then(|it| it.answered_at);
                let late = before.filter_map(at).filter(|&at| at > answered_at);
                late.chain(after.filter_map(at).filter(|&at| at < answered_at)).take(MOST_OVERTAKEN).count()
            });
        }
    }
}

/// The likeliest candidate of a front.
#[derive(Clone, Copy)]
struct Likeliest {
    probability: f64,
    back: u32,
    began_at: i64,
    answered_at: Option<i64>,
}
