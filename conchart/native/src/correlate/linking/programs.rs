//! Which program of a machine causes what another one is asked: never both each other.
//!
//! Where a machine asks itself, its addresses do not say which of its programs asked. Any exchange that it accepted may have
//! caused any other that lies within, and where many wait side by side, something always lies within. So it is decided for each
//! pair of programs (server endpoints), over the whole capture, which of them causes what the other is asked, by two facts:
//!
//! - how much better what is asked is explained by the one direction than by the other: habits are learned in both;
//! - who is ahead: a program that is asked on behalf of another is asked, and answers, only while as many wait for that other as
//!   for itself.
//!
//! Who is always ahead is a front, and what has such a front has no others: two stores that an application asks at once explain
//! each other's times, too. Of what is left, the directions form no circle. No more pairs than candidates.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use foldhash::fast::FixedState;

use super::candidates::{Candidate, Route};
use super::model::{Exchange, MOST_CANDIDATES};
use super::sections::{Section, Sides};

/// Who is ahead at so many of another's arrivals is its front.
const AHEAD: f64 = 0.9;
/// By so much more must one direction explain than the other, where nobody is always ahead.
const CLEARLY: f64 = 1.25;

/// A program and another one that it may have asked.
type Pair = (i32, i32);

/// Which programs may cause what others are asked.
#[derive(Debug, Default)]
pub(super) struct Programs {
    /// Programs of machines that accept and ask for them.
    mixed: HashSet<i32, FixedState>,
    allowed: HashSet<Pair, FixedState>,
}

impl Programs {
    /// Those of which it is not known yet who causes what.
    pub(super) fn mixed(exchanges: &[Exchange]) -> Self {
        let mut sides: HashMap<(i32, i32), (bool, bool), FixedState> = HashMap::default();
        for exchange in exchanges {
            if let Some(machine) = exchange.accepted_by {
                sides.entry((machine, exchange.endpoint)).or_default().0 = true;
            }
            if let Some(machine) = exchange.opened_by {
                sides.entry((machine, exchange.endpoint)).or_default().1 = true;
            }
        }
        let mixed = sides.into_iter().filter(|(_, sides)| *sides == (true, true)).map(|((_, endpoint), _)| endpoint);
        Self { mixed: mixed.collect(), allowed: HashSet::default() }
    }

    /// Says whether it is to be decided who causes what.
    pub(super) fn any(&self) -> bool {
        self.mixed.len() > 1
    }

    /// Says whether anything of the machine is to be decided.
    pub(super) fn any_of(&self, section: &Section<'_>, sides: &Sides) -> bool {
        section
            .backs
            .get(sides.backs.clone())
            .into_iter()
            .flatten()
            .any(|(_, back)| self.mixed.contains(&back.endpoint))
    }

    /// Says whether the one may cause what the other is asked.
    pub(super) fn may_cause(&self, front: i32, back: i32) -> bool {
        !self.mixed.contains(&back) || !self.mixed.contains(&front) || self.allowed.contains(&(front, back))
    }

    /// Decides.
    pub(super) fn decide(&mut self, evidence: &Evidence) {
        let directions = evidence.directions();
        let places = places(&directions);
        self.allowed = directions.into_keys().filter(|(front, back)| places.get(front) < places.get(back)).collect();
    }
}

/// What happens to those who wait for a program; at one instant, in this order.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Event {
    Comes,
    /// One of them is asked, or answered.
    Counts,
    Goes,
}

/// What a capture shows of pairs of programs.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// How much better than chance the one explains what the other is asked; and how often it was ahead.
    pairs: BTreeMap<Pair, (f64, u32)>,
    /// How often each was asked, and answered.
    counted: HashMap<i32, u32, FixedState>,
}

impl Evidence {
    /// Adds what was learned of candidates.
    pub(super) fn explain(&mut self, candidates: &[Candidate], routes: &[Route]) {
        for candidate in candidates {
            if let Some(route) = routes.get(candidate.route as usize) {
                self.pairs.entry((route.front, route.back)).or_default().0 += candidate.weight * candidate.probability;
            }
        }
    }

    /// Counts who is ahead when one of a machine's programs is asked, and when it answers.
    pub(super) fn count(&mut self, section: &Section<'_>, sides: &Sides) {
        let mut events: Vec<(i64, Event, i32)> = Vec::new();
        for (_, front) in section.fronts_of(sides) {
            events.push((front.request_at, Event::Comes, front.endpoint));
            events.push((front.until().max(front.request_at), Event::Goes, front.endpoint));
        }
        // Who is only connected to is not asked yet: a relay opens its connection before it has anything to hand on.
        for (_, back) in section.backs_of(sides).into_iter().filter(|(_, back)| back.number.is_some()) {
            events.push((back.request_at, Event::Counts, back.endpoint));
            events.extend(back.response_at.map(|at| (at.max(back.request_at), Event::Counts, back.endpoint)));
        }
        events.sort_unstable();
        let mut waiting: BTreeMap<i32, u32> = BTreeMap::new();
        for (_, event, endpoint) in events {
            match event {
                Event::Comes => *waiting.entry(endpoint).or_default() += 1,
                Event::Counts => {
                    *self.counted.entry(endpoint).or_default() += 1;
                    let own = waiting.get(&endpoint).copied().unwrap_or_default();
                    let ahead = waiting
                        .iter()
                        .take(MOST_CANDIDATES)
                        .filter(|&(&front, &count)| front != endpoint && count >= own);
                    for (&front, _) in ahead {
                        self.pairs.entry((front, endpoint)).or_default().1 += 1;
                    }
                }
                Event::Goes => {
                    if let Some(count) = waiting.get_mut(&endpoint) {
                        *count -= 1;
                        if *count == 0 {
                            waiting.remove(&endpoint);
                        }
                    }
                }
            }
        }
    }

    /// Of each pair the direction, if one is clear, with how much it explains.
    fn directions(&self) -> BTreeMap<Pair, f64> {
        let mut fronts: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
        for &(front, back) in self.pairs.keys() {
            let is_behind =
                !self.is_ahead((back, front)) || self.explained((front, back)) >= self.explained((back, front));
            if self.is_ahead((front, back)) && is_behind {
                fronts.entry(back).or_default().push(front);
            }
        }
        let is_front = |front: i32, back: i32| fronts.get(&back).is_some_and(|fronts| fronts.contains(&front));
        // Who is ahead of a front, too, causes what that one causes.
        let nearest = |&(front, back): &Pair| {
            is_front(front, back) && !fronts.get(&back).into_iter().flatten().any(|&between| is_front(front, between))
        };
        let likely = |&(front, back): &Pair| {
            let explained = self.explained((front, back));
            !fronts.contains_key(&back)
                && !is_behind(&fronts, front, back)
                && explained > 0.0
                && explained >= CLEARLY * self.explained((back, front))
        };
        let nearer = |&(front, back): &Pair| {
            let explained = self.explained((front, back));
            let between = |&(_, between): &Pair| {
                is_front(front, between) && likely(&(between, back)) && self.explained((between, back)) >= explained
            };
            self.pairs.range((front, i32::MIN)..=(front, i32::MAX)).any(|(pair, _)| between(pair))
        };
        let clear = self.pairs.keys().filter(|pair| nearest(pair) || likely(pair) && !nearer(pair));
        clear.map(|&pair| (pair, self.explained(pair))).collect()
    }

    /// Says whether the one is ahead at nearly all that the other is asked, and answers.
    fn is_ahead(&self, pair: Pair) -> bool {
        let counted = self.counted.get(&pair.1).copied().unwrap_or_default();
        counted > 0 && self.pairs.get(&pair).is_some_and(|&(_, ahead)| f64::from(ahead) >= AHEAD * f64::from(counted))
    }

    /// How much better than chance the one explains what the other is asked: nothing, where something else explains it all.
    fn explained(&self, pair: Pair) -> f64 {
        self.pairs.get(&pair).map_or(0.0, |&(explained, _)| explained.max(0.0))
    }
}

/// Says whether a program is behind another one, by way of others, too: of a long chain, the nearest are looked at.
fn is_behind(fronts: &BTreeMap<i32, Vec<i32>>, program: i32, other: i32) -> bool {
    let mut seen = vec![program];
    let mut next = 0;
    while let Some(&at) = seen.get(next).filter(|_| next < MOST_CANDIDATES) {
        for &front in fronts.get(&at).into_iter().flatten() {
            if front == other {
                return true;
            }
            if !seen.contains(&front) && seen.len() < MOST_CANDIDATES {
                seen.push(front);
            }
        }
        next += 1;
    }
    false
}

/// Puts programs in an order in which most causes come before what they cause: all of them, where there is no circle.
fn places(directions: &BTreeMap<Pair, f64>) -> BTreeMap<i32, usize> {
    let mut causing: BTreeMap<i32, Vec<(i32, i64)>> = BTreeMap::new();
    let mut caused: BTreeMap<i32, i64> = BTreeMap::new();
    for (&(front, back), explained) in directions {
        #[expect(clippy::cast_possible_truncation, reason = "what a capture explains is far less")]
        let weight = 1 + (explained * 1_000.0) as i64;
        causing.entry(front).or_default().push((back, weight));
        caused.entry(front).or_default();
        *caused.entry(back).or_default() += weight;
    }
    let mut next: BTreeSet<(i64, i32)> = caused.iter().map(|(&program, &weight)| (weight, program)).collect();
    let mut places = BTreeMap::new();
    while let Some((_, program)) = next.pop_first() {
        places.insert(program, places.len());
        for (back, weight) in causing.remove(&program).into_iter().flatten() {
            if let Some(caused) = caused.get_mut(&back)
                && next.remove(&(*caused, back))
            {
                *caused -= weight;
                next.insert((*caused, back));
            }
        }
    }
    places
}
