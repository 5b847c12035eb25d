//! Backs that only one front can have caused, however many others it caused.
//!
//! Habits tell few backs of a front apart ([`MOST_COUNTED`](super::marginals::MOST_COUNTED)): of a page that asks a database
//! thirty times, they would take each query for a coincidence. Where a machine has only one request under way, nothing else can
//! have caused what it asks meanwhile, but what it does by itself. How often it does that is seen while no request is under way.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::LEAST_CONFIDENCE;
use super::candidates::{Agreement, Candidate};
use super::sections::{Indexed, MOST_BACKS, Section, Sides};

/// Backs that came by themselves while no front waited: taken to be so many more than were seen.
const UNSEEN: f64 = 0.5;
/// So few backs while a front waited may be a coincidence.
const LEAST_WITHIN: f64 = 3.0;
/// Of fewer backs nobody knows how often they come by themselves.
const LEAST_ASKED: f64 = 4.0;
/// Standard deviations by which a number of coincidences (Poisson) may exceed what is expected.
const DEVIATIONS: f64 = 3.0;
/// Where at least this share of the fronts has a back, time alone does not say that it is a coincidence.
const MOST_FRONTS: f64 = 0.5;

/// The front of a back that has no other candidate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sole {
    pub front: u32,
    pub confidence: f64,
}

/// Gives those backs of the section whose only front they are likely to belong to.
pub(super) fn sole(section: &Section<'_>, candidates: &[Candidate]) -> HashMap<u32, Sole, FixedState> {
    let mut of_back: Vec<Option<&Candidate>> = vec![None; section.backs.len()];
    for candidate in candidates {
        if let Some(place) = of_back.get_mut(candidate.back as usize) {
            *place = Some(candidate);
        }
    }
    let mut found = HashMap::default();
    for sides in &section.machines {
        of_machine(section, sides, &of_back, &mut found);
    }
    found
}

fn of_machine(
    section: &Section<'_>,
    sides: &Sides,
    of_back: &[Option<&Candidate>],
    found: &mut HashMap<u32, Sole, FixedState>,
) {
    let backs = section.backs_of(sides);
    let candidate = |number: u32| of_back.get(number as usize).copied().flatten();
    let asked = asked(&backs, |number| candidate(number).is_some());
    let (waiting_ns, resting_ns) = waiting(section, sides);
    for (number, back) in backs {
        let Some(candidate) = candidate(number).filter(|candidate| candidate.rivals == 1) else { continue };
        let (within, alone) = asked.get(&back.endpoint).copied().unwrap_or_default();
        let coincidences = (alone + UNSEEN) * waiting_ns / resting_ns.max(1.0);
        let confidence = (1.0 - coincidences / within) * (candidate.seen + 0.3).min(1.0);
        if within >= LEAST_WITHIN && confidence > LEAST_CONFIDENCE {
            found.insert(number, Sole { front: candidate.front, confidence });
        }
    }
}

/// Drops the candidates of backs that come as often while no front waits, and of which most fronts have none: the machine asks
/// there by itself. What both sides say (identifiers, targets, a connection that is handed through) is no coincidence.
pub(super) fn drop_coincidences(section: &Section<'_>, candidates: &mut Vec<Candidate>) {
    let mut has_front = vec![false; section.backs.len()];
    for candidate in candidates.iter() {
        if let Some(known) = has_front.get_mut(candidate.back as usize) {
            *known = true;
        }
    }
    let has_front = |number: u32| has_front.get(number as usize).copied().unwrap_or_default();
    let mut by_chance = vec![false; section.backs.len()];
    for sides in &section.machines {
        let backs = section.backs_of(sides);
        let mut asked = asked(&backs, has_front);
        asked.retain(|_, &mut (within, alone)| within > 0.0 && alone > 0.0 && within + alone >= LEAST_ASKED);
        if asked.is_empty() {
            continue;
        }
        let (waiting_ns, resting_ns) = waiting(section, sides);
        asked.retain(|_, &mut (within, alone)| {
            let coincidences = alone * waiting_ns / resting_ns.max(1.0);
            within <= coincidences + DEVIATIONS * coincidences.sqrt()
        });
        let shares = shares(section, sides, candidates, &asked);
        for (number, back) in backs.into_iter().filter(|(_, back)| back.through.is_none() && back.number.is_some()) {
            let Some((within, alone)) = asked.get(&back.endpoint) else { continue };
            if let Some(by_chance) = by_chance.get_mut(number as usize) {
                *by_chance = alone >= within || shares.get(&back.endpoint).is_none_or(|&share| share < MOST_FRONTS);
            }
        }
    }
    candidates.retain(|candidate| {
        let says = candidate.ids == Agreement::Same || candidate.target == Agreement::Same;
        says || !by_chance.get(candidate.back as usize).copied().unwrap_or_default()
    });
}

/// Of each of these servers: the share of the fronts that may have caused a back there, at the endpoint where it is the largest.
fn shares(
    section: &Section<'_>,
    sides: &Sides,
    candidates: &[Candidate],
    servers: &HashMap<i32, (f64, f64), FixedState>,
) -> HashMap<i32, f64, FixedState> {
    let mut accepted: HashMap<i32, f64, FixedState> = HashMap::default();
    for (_, front) in section.fronts_of(sides) {
        *accepted.entry(front.endpoint).or_default() += 1.0;
    }
    let mut pairs: Vec<(i32, i32, u32)> = Vec::new();
    for candidate in candidates.iter().filter(|candidate| sides.backs.contains(&(candidate.back as usize))) {
        let front = section.fronts.get(candidate.front as usize);
        let back = section.backs.get(candidate.back as usize);
        if let Some(((_, front), (_, back))) =
            front.zip(back).filter(|(_, (_, back))| servers.contains_key(&back.endpoint))
        {
            pairs.push((back.endpoint, front.endpoint, candidate.front));
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    let mut shares: HashMap<i32, f64, FixedState> = HashMap::default();
    for of_pair in pairs.chunk_by(|one, other| (one.0, one.1) == (other.0, other.1)) {
        let Some(&(server, endpoint, _)) = of_pair.first() else { continue };
        let all = accepted.get(&endpoint).copied().unwrap_or(1.0);
        let share = shares.entry(server).or_default();
        *share = share.max(of_pair.len() as f64 / all);
    }
    shares
}

/// Of each server that a machine asks: backs while a front waited, and while none did. The opening of a connection is no
/// request: a relay opens one before it is asked for anything.
fn asked(backs: &[Indexed<'_>], has_front: impl Fn(u32) -> bool) -> HashMap<i32, (f64, f64), FixedState> {
    let mut asked: HashMap<i32, (f64, f64), FixedState> = HashMap::default();
    for &(number, back) in backs.iter().filter(|(_, back)| back.number.is_some()) {
        let (within, alone) = asked.entry(back.endpoint).or_default();
        *if has_front(number) { within } else { alone } += 1.0;
    }
    asked
}

/// For how long a front of the machine waited, and for how long none did, in nanoseconds. The connections of a machine that
/// asked for little are seen to their ends; of one whose backs were cut, others may have waited before and after.
fn waiting(section: &Section<'_>, sides: &Sides) -> (f64, f64) {
    let (fronts, backs) = (section.fronts_of(sides), section.backs_of(sides));
    let first_at = fronts.first().map_or(0, |(_, front)| front.request_at);
    let (mut until, mut resting_ns) = (first_at, 0);
    for (_, front) in &fronts {
        resting_ns += (front.request_at - until).max(0);
        until = until.max(front.until());
    }
    let waiting_ns = until - first_at - resting_ns;
    if !section.goes_on && backs.len() < MOST_BACKS {
        let all = || fronts.iter().chain(&backs).map(|(_, exchange)| exchange);
        let opened_at = all().map(|exchange| exchange.setup.map_or(exchange.request_at, |setup| setup.opened_at)).min();
        let closed_at = all().map(|exchange| exchange.closed_at).max();
        resting_ns += (first_at - opened_at.unwrap_or(first_at)).max(0) + (closed_at.unwrap_or(until) - until).max(0);
    }
    (waiting_ns as f64, resting_ns as f64)
}
