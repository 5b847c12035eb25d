//! The order of requests: a proxy usually forwards requests and responses in the order of their arrival.
//!
//! In: candidates with the probabilities of the round before. Out: for each candidate, how many of the fronts beside it would have
//! been overtaken were it a link. What holds up a proxy for a while holds up all that waits, so delays alone tell little then.

use super::candidates::Candidate;
use super::model::Exchange;
use super::sections::Section;

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
    fn new(section: &Section<'_>, key: impl Fn(&Exchange) -> Option<i64>) -> Self {
        let mut keyed: Vec<(u32, i64, u32)> = Vec::with_capacity(section.fronts.len());
        for (machine, sides) in (0u32..).zip(&section.machines) {
            let fronts = section.fronts_of(sides).into_iter();
            keyed.extend(fronts.filter_map(|(number, front)| Some((machine, key(front)?, number))));
        }
        keyed.sort_unstable();
        let mut places = vec![u32::MAX; section.fronts.len()];
        for (place, &(.., number)) in (0u32..).zip(&keyed) {
            if let Some(slot) = places.get_mut(number as usize) {
                *slot = place;
            }
        }
        Self { fronts: keyed.into_iter().map(|(.., number)| number).collect(), places }
    }

    /// The fronts before and after one, the nearest first.
    fn beside(&self, front: u32) -> (impl Iterator<Item = u32>, impl Iterator<Item = u32>) {
        let place = self.places.get(front as usize).map_or(0, |&place| place as usize);
        let is_placed = place < self.fronts.len();
        let before = self.fronts.get(place.saturating_sub(NEIGHBOURS)..place).filter(|_| is_placed).unwrap_or_default();
        let after = self.fronts.get(place + 1..).filter(|_| is_placed).unwrap_or_default();
        (before.iter().rev().copied(), after.iter().take(NEIGHBOURS).copied())
    }
}

impl Order {
    pub(super) fn new(section: &Section<'_>) -> Self {
        Self {
            requests: Row::new(section, |front| Some(front.request_done_at)),
            responses: Row::new(section, |front| front.response_at),
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
        let likeliest_of = |front: u32| likeliest.get(front as usize).copied().flatten();
        for candidate in candidates.iter_mut() {
            // Where another front has the back, the two would have each other's.
            let own = likeliest_of(candidate.front).filter(|own| own.back != candidate.back);
            let other =
                |front: u32| likeliest_of(front).and_then(|it| if it.back == candidate.back { own } else { Some(it) });
            let rival = |front: u32| likeliest_of(front).is_some_and(|it| it.back == candidate.back);
            let requested = |fronts: &mut dyn Iterator<Item = u32>, late: bool| {
                tally(fronts.filter_map(|front| {
                    let it = other(front)?;
                    let crosses =
                        if late { it.began_at > candidate.began_at } else { it.began_at < candidate.began_at };
                    Some((crosses, rival(front)))
                }))
            };
            let (mut before, mut after) = self.requests.beside(candidate.front);
            (candidate.requested_overtaken, candidate.requested_crosses) =
                sum(requested(&mut before, true), requested(&mut after, false));
            let Some(answered_at) = candidate.answered_at else {
                (candidate.answered_overtaken, candidate.answered_crosses) = (0, None);
                continue;
            };
            let answered = |fronts: &mut dyn Iterator<Item = u32>, late: bool| {
                tally(fronts.filter_map(|front| {
                    let at = other(front)?.answered_at?;
                    Some((if late { at > answered_at } else { at < answered_at }, rival(front)))
                }))
            };
            let (mut before, mut after) = self.responses.beside(candidate.front);
            (candidate.answered_overtaken, candidate.answered_crosses) =
                sum(answered(&mut before, true), answered(&mut after, false));
        }
    }
}

/// How many overtake each other; and whether a candidate and the front that has its back would, if they are beside each other.
type Tally = (usize, Option<bool>);

fn tally(beside: impl Iterator<Item = (bool, bool)>) -> Tally {
    beside.fold((0, None), |(overtaken, rival), (crosses, is_rival)| {
        (overtaken + usize::from(crosses), if is_rival { Some(crosses) } else { rival })
    })
}

fn sum(before: Tally, after: Tally) -> Tally {
    ((before.0 + after.0).min(MOST_OVERTAKEN), before.1.or(after.1))
}

/// The likeliest candidate of a front.
#[derive(Clone, Copy)]
struct Likeliest {
    probability: f64,
    back: u32,
    began_at: i64,
    answered_at: Option<i64>,
}
