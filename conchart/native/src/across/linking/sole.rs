//! Backs that only one front can have caused, however many others it caused.
//!
//! Habits tell few backs of a front apart ([`MOST_COUNTED`](super::marginals::MOST_COUNTED)): of a page that asks a database
//! thirty times, they would take each query for a coincidence. Where a machine has only one request under way, nothing else can
//! have caused what it asks meanwhile, but what it does by itself. How often it does that is seen while no request is under way.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::LEAST_CONFIDENCE;
use super::candidates::Candidate;
use super::sections::{MOST_BACKS, Section, Sides};

/// Backs that came by themselves while no front waited: taken to be so many more than were seen.
const UNSEEN: f64 = 0.5;
/// So few backs while a front waited may be a coincidence.
const LEAST_WITHIN: f64 = 3.0;

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
    // Of each server that is asked: backs while a front waited, and while none did.
    let mut asked: HashMap<i32, (f64, f64), FixedState> = HashMap::default();
    for &(number, back) in &backs {
        let (within, alone) = asked.entry(back.endpoint).or_default();
        *if candidate(number).is_some() { within } else { alone } += 1.0;
    }
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
