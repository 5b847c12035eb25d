//! Backs that only one front can have caused, however many others it caused.
//!
//! Habits tell few backs of a front apart ([`MOST_COUNTED`](super::marginals::MOST_COUNTED)): of a page that asks a database
//! thirty times, they would take each query for a coincidence. Where a machine has only one request under way, nothing else can
//! have caused what it asks meanwhile, but what it does by itself. How often it does that is seen while no request is under way.

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;

use super::candidates::{Agreement, Candidate};
use super::model::{Exchange, LEAST_CONFIDENCE};
use super::sections::{MOST_BACKS, Section, Sides};

/// Backs that came by themselves while no front waited: taken to be so many more than were seen.
const UNSEEN: f64 = 0.5;
/// So few backs while a front waited may be a coincidence.
const LEAST_WITHIN: f64 = 3.0;
/// Where at least this share of the fronts has a back, time alone does not say that it is a coincidence.
const MOST_FRONTS: f64 = 0.75;
/// Of fewer fronts, and backs beside them, nobody knows how often they meet by chance.
const LEAST_COMPARED: f64 = 4.0;
/// Where fronts wait for more of the time, backs have no other time to come by themselves.
const MOST_WAITING: f64 = 0.5;
/// One of a thousand: the logarithm.
const SURPRISING: f64 = 6.9;

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
    let mut by_server: HashMap<i32, (f64, f64), FixedState> = HashMap::default();
    for &(number, back) in &backs {
        let (within, alone) = by_server.entry(back.endpoint).or_default();
        *if candidate(number).is_some() { within } else { alone } += 1.0;
    }
    let (waiting_ns, resting_ns) = waiting(section, sides);
    for (number, back) in backs {
        let Some(candidate) = candidate(number).filter(|candidate| candidate.rivals == 1) else { continue };
        let (within, alone) = by_server.get(&back.endpoint).copied().unwrap_or_default();
        let coincidences = (alone + UNSEEN) * waiting_ns / resting_ns.max(1.0);
        let confidence = (1.0 - coincidences / within) * (candidate.seen + 0.3).min(1.0);
        if within >= LEAST_WITHIN && confidence > LEAST_CONFIDENCE {
            found.insert(number, Sole { front: candidate.front, confidence });
        }
    }
}

/// Drops what is likely to be a coincidence: backs at one server that come within waits at an endpoint of the machine no more
/// often than by chance, where most waits there have none, or most of these backs come at other times. What both sides say
/// (identifiers, targets, a connection that is handed through) is no coincidence.
pub(super) fn drop_coincidences(section: &Section<'_>, candidates: &mut Vec<Candidate>) {
    let mut by_chance: HashSet<(usize, Server, i32), FixedState> = HashSet::default();
    let mut pairs = vec![Vec::new(); section.machines.len()];
    let machine = |back: u32| section.machines.partition_point(|sides| sides.backs.end <= back as usize);
    for candidate in candidates.iter() {
        if let (Some(pairs), Some((server, endpoint))) =
            (pairs.get_mut(machine(candidate.back)), ends(section, candidate))
        {
            pairs.push((server, endpoint, candidate.front, candidate.back));
        }
    }
    for ((number, sides), mut pairs) in section.machines.iter().enumerate().zip(pairs) {
        let (waiting_ns, resting_ns) = waiting(section, sides);
        let mut fronts: HashMap<i32, Waits, FixedState> = HashMap::default();
        for (_, front) in section.fronts_of(sides) {
            fronts.entry(front.endpoint).or_default().add(front);
        }
        let mut backs: HashMap<Server, f64, FixedState> = HashMap::default();
        for (_, back) in section.backs_of(sides) {
            *backs.entry((back.endpoint, back.number.is_none())).or_default() += 1.0;
        }
        pairs.sort_unstable();
        for of_pair in pairs.chunk_by(|one, other| (one.0, one.1) == (other.0, other.1)) {
            let Some(&(server, endpoint, ..)) = of_pair.first() else { continue };
            let (Some(waits), Some(&all)) = (fronts.get(&endpoint), backs.get(&server)) else { continue };
            let met = of_pair.chunk_by(|one, other| one.2 == other.2).count() as f64;
            let mut within: Vec<u32> = of_pair.iter().map(|&(.., back)| back).collect();
            within.sort_unstable();
            within.dedup();
            let alone = all - within.len() as f64;
            let share = waits.waiting_ns as f64 / (waiting_ns + resting_ns).max(1.0);
            let is_rare = met < MOST_FRONTS * waits.fronts || alone >= within.len() as f64;
            let is_comparable = waits.fronts + alone >= LEAST_COMPARED && (alone > 0.0 || share < MOST_WAITING);
            if is_rare && is_comparable && surprise(met, met + alone, share) < SURPRISING {
                by_chance.insert((number, server, endpoint));
            }
        }
    }
    let is_retained = |candidate: &Candidate| {
        let says = candidate.ids == Agreement::Same || candidate.target == Agreement::Same;
        says || ends(section, candidate)
            .is_none_or(|(server, endpoint)| !by_chance.contains(&(machine(candidate.back), server, endpoint)))
    };
    for of_back in candidates.chunk_by_mut(|one, other| one.back == other.back) {
        let dropped = of_back.iter().filter(|candidate| !is_retained(candidate)).count();
        for candidate in of_back {
            candidate.rivals = candidate.rivals.saturating_sub(u32::try_from(dropped).unwrap_or(u32::MAX));
        }
    }
    candidates.retain(is_retained);
}

/// A server that a machine asks, and whether connections to it are opened there or requests sent.
type Server = (i32, bool);

/// The server of a candidate's back, and the endpoint of its front; None where the connection is handed through.
fn ends(section: &Section<'_>, candidate: &Candidate) -> Option<(Server, i32)> {
    let (_, front) = section.fronts.get(candidate.front as usize)?;
    let (_, back) = section.backs.get(candidate.back as usize)?;
    back.through.is_none().then_some(((back.endpoint, back.number.is_none()), front.endpoint))
}

/// The fronts of an endpoint, and for how long some of them waited.
#[derive(Default)]
struct Waits {
    fronts: f64,
    waiting_ns: i64,
    until: Option<i64>,
}

impl Waits {
    /// Adds one; they come in the order of their requests.
    fn add(&mut self, front: &Exchange) {
        let from = self.until.map_or(front.request_at, |until| until.max(front.request_at));
        self.fronts += 1.0;
        self.waiting_ns += (front.until() - from).max(0);
        self.until = Some(front.until().max(from));
    }
}

/// How surprising it is that so many of all events lie in a share of the time: minus the logarithm of a bound of the probability
/// (Chernoff 1952).
fn surprise(within: f64, all: f64, share: f64) -> f64 {
    let (share, met) = (share.clamp(1e-9, 1.0 - 1e-9), within / all.max(1.0));
    if met <= share {
        return 0.0;
    }
    let part = |met: f64, share: f64| if met > 0.0 { met * (met / share).ln() } else { 0.0 };
    all * (part(met, share) + part(1.0 - met, 1.0 - share))
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
