//! Visits: what one front asks on one connection, one after the other.
//!
//! An application that asks its stores keeps a connection for as long as a page needs it: a worker for the whole page, a pool for a
//! transaction, or for a statement. So exchanges that follow each other on a connection often belong to one front, and a page that
//! asks thirty statements makes few visits. Which of them do is learned from the capture: from how long a connection rests between
//! two exchanges, from what is asked before and after (`COMMIT` is followed by somebody else's `BEGIN`), from which fronts wait at
//! both, and from whether the front before is over by then. Nothing is known of protocols.
//!
//! In: candidates. Out: backs that belong together, which are then linked as one. In each pass of [`super::marginals`], what an
//! exchange's neighbours on its connection make likely is handed on along the connection, and back (forward-backward). Linear.

use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use super::candidates::Candidate;
use super::delay::Delay;
use super::model::{Exchange, SKEW_NS};
use super::sections::{Indexed, Section, Sides};

/// How likely it must be that two that follow each other belong to one front.
const SURELY: f64 = 0.95;
/// So many pairs weigh as much as what is taken for usual.
const PRIOR: f64 = 4.0;
/// No fact makes it likelier or less likely than by this factor's logarithm.
const MOST: f64 = 7.0;
/// Some connections change hands while their front still waits, however many were seen that do not.
const LEAST_OPEN: f64 = 0.02;
/// Where a machine asks less often per front that waits, nothing is gained.
const OFTEN: f64 = 1.2;
/// A share of exchanges is nobody's.
const NOBODY: f64 = 0.02;
/// What is asked before and after tells: where no front waits at both for more than one in so many, two fronts ask.
const ALIKE: f64 = 0.05;
/// At so many connections that change hands without need, nothing is known of who keeps them.
const MOST_UNANSWERED: f64 = 0.07;
/// The same of connections that change hands while their front still waits.
const MOST_OPEN: f64 = 0.05;
/// Where fewer exchanges follow one of the same front, fronts do not keep connections.
const SOME: f64 = 0.1;
/// So many pairs of either weigh as much as what is not known of two that are asked one after the other.
const SHARP: f64 = 10.0;
const SCARCELY: f64 = 1e-6;
/// Nothing follows, or nothing of the same front.
const NONE: u32 = u32::MAX;

/// Says whether fronts of the section ask so often that one's backs are worth to be put together.
pub(super) fn often(candidates: &[Candidate], fronts: usize) -> bool {
    let mut has_back = vec![false; fronts];
    let mut backs = 0u32;
    for of_back in candidates.chunk_by(|one, other| one.back == other.back) {
        backs += 1;
        for candidate in of_back {
            if let Some(has_back) = has_back.get_mut(candidate.front as usize) {
                *has_back = true;
            }
        }
    }
    f64::from(backs) > OFTEN * has_back.into_iter().filter(|&has_back| has_back).count() as f64
}

/// Two exchanges that follow each other on a connection.
#[derive(Clone, Copy, Debug, Default)]
struct Pair {
    before: u32,
    after: u32,
    /// Index of the server endpoint.
    server: u32,
    /// From the end of the one to the beginning of the other.
    rested_ns: i64,
    /// What both ask.
    kinds: u64,
    /// How much likelier than not both have one front, as far as the two are known.
    stays: f64,
    /// That they have, given all else; and that they have not, while the front before still waits, or is over.
    same: f64,
    open: f64,
    over: f64,
    /// No front waits at both.
    apart: bool,
    /// Some front was answered between the two; and how likely none is, by chance.
    answered: bool,
    none_by_chance: f64,
}

/// What connections to one server show.
#[derive(Clone, Debug, Default)]
struct Habit {
    /// How long connections rest: between two exchanges of one front, and of two.
    rested: [Delay; 2],
    /// What is asked before and after: of one front, and of two.
    kinds: [HashMap<u64, f64, FixedState>; 2],
    /// The same, where no front waits at both.
    apart: HashMap<u64, f64, FixedState>,
    same: f64,
    all: f64,
    /// How likely a connection changes hands while its front still waits, beside how likely it does afterwards.
    open: f64,
    /// How seldom nobody is answered before it does, beside chance.
    unanswered: f64,
    /// From a front's request to its first exchange on a connection, and from its last one to its response.
    enters: Delay,
    leaves: Delay,
}

/// Exchanges of all connections, in order.
#[derive(Debug)]
pub(super) struct Chains {
    /// Those of a connection together.
    pairs: Vec<Pair>,
    /// Server endpoints, and what is known of each.
    servers: Vec<i32>,
    habits: Vec<Habit>,
    backs: Vec<Back>,
    /// When each front is over.
    until: Vec<i64>,
    steps: Vec<Step>,
    /// No candidates were dropped yet.
    fresh: bool,
}

/// An exchange on its connection.
#[derive(Clone, Copy, Debug, Default)]
struct Back {
    server: u32,
    began_at: i64,
    /// Where its candidates are.
    start: u32,
    end: u32,
    /// Something is known of what came before it, and after it.
    follows: bool,
    followed: bool,
    /// That no front has it: what those before and after on the connection make of it.
    forward: f64,
    backward: f64,
}

/// What is known of a candidate from the exchanges before and after on its back's connection.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// The candidate of the same front at the next back.
    next: u32,
    /// The front is over when the next back begins.
    over: bool,
    /// How much likelier than chance it is that the front has this back first on the connection, and last.
    enters: f64,
    leaves: f64,
    /// What those before and after on the connection make of it.
    forward: f64,
    backward: f64,
    /// That the front had the back before, too.
    stayed: f64,
}

impl Chains {
    pub(super) fn new(section: &Section<'_>) -> Self {
        let mut order: Vec<(i32, i64, Option<i32>, u32)> = (0u32..)
            .zip(&section.backs)
            .map(|(number, (_, back))| (back.stream, back.request_at, back.number, number))
            .collect();
        order.sort_unstable();
        let mut servers: HashMap<i32, u32, FixedState> = HashMap::default();
        let mut backs: Vec<Back> = Vec::with_capacity(section.backs.len());
        for (_, back) in &section.backs {
            let next = u32::try_from(servers.len()).unwrap_or(NONE);
            let server = *servers.entry(back.endpoint).or_insert(next);
            backs.push(Back { server, began_at: back.request_at, ..Back::default() });
        }
        let back = |number: u32| section.backs.get(number as usize).map(|&(_, back)| back);
        let mut pairs = Vec::new();
        for two in order.windows(2) {
            let [(stream, .., before), (other, .., after)] = *two else { continue };
            let Some((one, next)) = back(before).zip(back(after)).filter(|_| stream == other) else { continue };
            // Who asks before there is an answer does not keep the connection to itself.
            let Some(rested_ns) = one.response_done_at.map(|at| next.request_at - at).filter(|&ns| ns >= 0) else {
                continue;
            };
            if let Some(one) = backs.get_mut(before as usize) {
                one.followed = true;
            }
            let Some(next_back) = backs.get_mut(after as usize) else { continue };
            next_back.follows = true;
            let kinds = FixedState::default().hash_one((one.kind, next.kind));
            let server = next_back.server;
            pairs.push(Pair {
                before,
                after,
                server,
                rested_ns,
                kinds,
                stays: 1.0,
                same: 0.5,
                open: 0.0,
                over: 0.0,
                ..Pair::default()
            });
        }
        let mut endpoints = vec![0; servers.len()];
        for (endpoint, number) in servers {
            if let Some(place) = endpoints.get_mut(number as usize) {
                *place = endpoint;
            }
        }
        Self {
            pairs,
            habits: vec![Habit { open: 0.3, unanswered: 0.3, ..Habit::default() }; endpoints.len()],
            servers: endpoints,
            backs,
            until: section.fronts.iter().map(|(_, front)| front.until()).collect(),
            steps: Vec::new(),
            fresh: true,
        }
    }

    /// Learns what the candidates' probabilities show.
    pub(super) fn learn(&mut self, candidates: &[Candidate]) {
        for habit in &mut self.habits {
            *habit = Habit::default();
        }
        let mut unanswered = vec![(PRIOR * 0.3, PRIOR); self.habits.len()];
        for pair in &self.pairs {
            let Some(habit) = self.habits.get_mut(pair.server as usize) else { continue };
            if let Some((none, chance)) = unanswered.get_mut(pair.server as usize) {
                *none += if pair.answered { 0.0 } else { 1.0 - pair.same };
                *chance += pair.none_by_chance * (1.0 - pair.same);
            }
            let sides = habit.rested.iter_mut().zip(&mut habit.kinds).zip([pair.same, 1.0 - pair.same]);
            for ((rested, kinds), p) in sides {
                rested.add(pair.rested_ns, p);
                *kinds.entry(pair.kinds).or_default() += p;
            }
            if pair.apart {
                *habit.apart.entry(pair.kinds).or_default() += 1.0;
            }
            habit.same += pair.same;
            habit.all += 1.0;
            // Counts, until all are counted.
            habit.open += pair.open;
        }
        for (habit, (none, chance)) in self.habits.iter_mut().zip(unanswered) {
            let changed = habit.all - habit.same;
            habit.unanswered = (none / chance).clamp(LEAST_OPEN, 1.0);
            habit.open = (2.0 * (habit.open + PRIOR / 2.0) / (changed + PRIOR)).clamp(LEAST_OPEN, 1.0);
        }
        for (candidate, step) in candidates.iter().zip(&self.steps) {
            let Some(back) = self.backs.get(candidate.back as usize) else { continue };
            let Some(habit) = self.habits.get_mut(back.server as usize) else { continue };
            habit.enters.add(candidate.requested_alone_ns, (candidate.probability - step.stayed).max(0.0));
            if let Some(answered_ns) = candidate.answered_alone_ns {
                let stays = self.steps.get(step.next as usize).map_or(0.0, |next| next.stayed);
                habit.leaves.add(answered_ns, (candidate.probability - stays).max(0.0));
            }
        }
        for habit in &mut self.habits {
            habit.rested.iter_mut().chain([&mut habit.enters, &mut habit.leaves]).for_each(Delay::smooth);
        }
    }

    /// Finds each front's candidates that follow each other; candidates of a back stand together.
    pub(super) fn follow(&mut self, candidates: &[Candidate]) {
        for back in &mut self.backs {
            (back.start, back.end) = (0, 0);
        }
        let mut start = 0u32;
        for of_back in candidates.chunk_by(|one, other| one.back == other.back) {
            let end = start + u32::try_from(of_back.len()).unwrap_or(NONE);
            if let Some(back) = of_back.first().and_then(|first| self.backs.get_mut(first.back as usize)) {
                (back.start, back.end) = (start, end);
            }
            start = end;
        }
        let backs = &self.backs;
        let back = |number: u32| backs.get(number as usize).copied().unwrap_or_default();
        let step = |candidate: &Candidate| {
            let back = back(candidate.back);
            let rivals = f64::from((back.end - back.start).max(1));
            let odds = |density: f64| (density + candidate.window).clamp(-MOST, MOST).exp();
            let habit = self.habits.get(back.server as usize);
            Step {
                next: NONE,
                over: false,
                enters: habit.map_or(1.0, |habit| odds(habit.enters.density(candidate.requested_alone_ns))) / rivals,
                leaves: candidate
                    .answered_alone_ns
                    .zip(habit)
                    .map_or(LEAST_OPEN, |(ns, habit)| odds(habit.leaves.density(ns))),
                forward: 1.0,
                backward: 1.0,
                stayed: 0.0,
            }
        };
        self.steps = candidates.iter().map(step).collect();
        let mut of_front: HashMap<u32, u32, FixedState> = HashMap::default();
        for pair in &mut self.pairs {
            let (before, after) = (back(pair.before), back(pair.after));
            let front = |index: u32| candidates.get(index as usize).map_or(NONE, |candidate| candidate.front);
            of_front.clear();
            let mut both = false;
            of_front.extend((after.start..after.end).map(|index| (front(index), index)));
            for index in before.start..before.end {
                if let Some(step) = self.steps.get_mut(index as usize) {
                    step.next = of_front.get(&front(index)).copied().unwrap_or(NONE);
                    both |= step.next != NONE;
                    let until = self.until.get(front(index) as usize).copied().unwrap_or_default();
                    step.over = until <= after.began_at + SKEW_NS;
                }
            }
            if self.fresh {
                let range = before.start as usize..before.end as usize;
                let steps = || self.steps.get(range.clone()).into_iter().flatten();
                let lives =
                    candidates.get(range.clone()).into_iter().flatten().map(|candidate| (-candidate.window).exp());
                pair.apart = !both;
                pair.answered = steps().any(|step| step.over);
                pair.none_by_chance = (-lives.sum::<f64>() * pair.rested_ns as f64).exp();
            }
        }
        self.fresh = false;
        self.weigh();
    }

    /// How much likelier each pair's facts are of one front than of two.
    fn weigh(&mut self) {
        for pair in &mut self.pairs {
            let Some(habit) = self.habits.get(pair.server as usize) else { continue };
            let ([rested_same, rested_other], [kinds_same, kinds_other]) = (&habit.rested, &habit.kinds);
            let (same, changed) = (habit.same, habit.all - habit.same);
            let usual = ((same + PRIOR) / (changed + PRIOR)).ln();
            let rested = rested_same.density(pair.rested_ns) - rested_other.density(pair.rested_ns);
            let count = |kinds: &HashMap<u64, f64, FixedState>| kinds.get(&pair.kinds).copied().unwrap_or_default();
            let (one, other) = (count(kinds_same), count(kinds_other));
            let expected = PRIOR * (one + other) / habit.all.max(1.0);
            let kind_gain = ((one + expected).max(SCARCELY) / (same + PRIOR)).ln()
                - ((other + expected).max(SCARCELY) / (changed + PRIOR)).ln();
            let apart = habit.apart.get(&pair.kinds).copied().unwrap_or_default();
            if apart > ALIKE * (one + other) {
                pair.stays = (-MOST).exp();
                continue;
            }
            let share = (one + SHARP) / (one + other + 2.0 * SHARP);
            let kind_gain = kind_gain + (share / (1.0 - share)).ln();
            let none = pair.none_by_chance.clamp(LEAST_OPEN, 1.0 - LEAST_OPEN);
            let of_two = none * habit.unanswered;
            let answered = if pair.answered { (1.0 - none) / (1.0 - of_two) } else { none / of_two };
            pair.stays = (usual + rested + kind_gain + answered.ln()).clamp(-MOST, MOST).exp();
        }
    }

    /// Multiplies the odds of each candidate by what the neighbours of its back make of it.
    pub(super) fn hand_on(&mut self, odds: &[f64]) -> Vec<f64> {
        for back in &mut self.backs {
            (back.forward, back.backward) = (NOBODY, 1.0);
            for step in self.steps.get_mut(back.start as usize..back.end as usize).into_iter().flatten() {
                step.forward = step.enters;
                step.backward = step.leaves;
                step.stayed = 0.0;
            }
        }
        for place in 0..self.pairs.len() {
            self.forwards(place, odds);
        }
        for place in (0..self.pairs.len()).rev() {
            self.backwards(place, odds);
        }
        let mut along = odds.to_vec();
        for back in &self.backs {
            let none = (back.forward * back.backward).max(f64::MIN_POSITIVE);
            let range = back.start as usize..back.end as usize;
            let (Some(along), Some(steps)) = (along.get_mut(range.clone()), self.steps.get(range)) else { continue };
            for (along, step) in along.iter_mut().zip(steps) {
                *along *= step.forward * step.backward / none;
            }
        }
        along
    }

    fn forwards(&mut self, place: usize, odds: &[f64]) {
        let Some(&Pair { before, after, server, stays, .. }) = self.pairs.get(place) else { return };
        let back = |number: u32| self.backs.get(number as usize).copied().unwrap_or_default();
        let (one, next) = (back(before), back(after));
        let open = self.habits.get(server as usize).map_or(1.0, |habit| habit.open);
        let (mut all, mut changes, mut leaves) = (one.forward, one.forward, one.forward);
        for index in one.start as usize..one.end as usize {
            let (Some(step), Some(odds)) = (self.steps.get(index), odds.get(index)) else { continue };
            let here = step.forward * odds;
            all += here;
            leaves += here * step.leaves;
            changes += here * step.leaves * if step.over { 1.0 } else { open };
        }
        for step in self.steps.get_mut(next.start as usize..next.end as usize).into_iter().flatten() {
            step.forward = step.enters * changes / all;
        }
        if let Some(next) = self.backs.get_mut(after as usize) {
            next.forward = NOBODY * leaves / all;
        }
        for index in one.start as usize..one.end as usize {
            let (Some(&step), Some(odds)) = (self.steps.get(index), odds.get(index)) else { continue };
            if let Some(next) = self.steps.get_mut(step.next as usize) {
                let here = step.forward * odds / all;
                next.forward += here * (stays - next.enters * step.leaves * open);
                next.forward = next.forward.max(f64::MIN_POSITIVE);
            }
        }
    }

    fn backwards(&mut self, place: usize, odds: &[f64]) {
        let Some(&Pair { before, after, server, stays, .. }) = self.pairs.get(place) else { return };
        let back = |number: u32| self.backs.get(number as usize).copied().unwrap_or_default();
        let (one, next) = (back(before), back(after));
        let open = self.habits.get(server as usize).map_or(1.0, |habit| habit.open);
        let (mut all, mut entered) = (next.backward, 0.0);
        for (here, enters) in (next.start..next.end).map(|index| behind_of(&self.steps, odds, index)) {
            all += here;
            entered += enters;
        }
        let nobody = NOBODY * next.backward;
        let (mut still_open, mut over) = (0.0, 0.0);
        let none = (entered + nobody) / all;
        let mut together = one.forward * none;
        let mut stayed = 0.0;
        for index in one.start as usize..one.end as usize {
            let (Some(&step), Some(&odds_here)) = (self.steps.get(index), odds.get(index)) else { continue };
            let (own, own_enters) =
                if step.next == NONE { (0.0, 0.0) } else { behind_of(&self.steps, odds, step.next) };
            let changes = if step.over { 1.0 } else { open };
            let changed = step.leaves * (changes * (entered - own_enters).max(0.0) + nobody) / all;
            let stays = stays * own / all;
            let here = step.forward * odds_here;
            *if step.over { &mut over } else { &mut still_open } += here * changed;
            together += here * (changed + stays);
            stayed += here * stays;
            if let Some(next) = self.steps.get_mut(step.next as usize) {
                next.stayed = here * stays;
            }
            if let Some(step) = self.steps.get_mut(index) {
                step.backward = (changed + stays).max(f64::MIN_POSITIVE);
            }
        }
        let together = together.max(f64::MIN_POSITIVE);
        for step in self.steps.get_mut(next.start as usize..next.end as usize).into_iter().flatten() {
            step.stayed /= together;
        }
        if let Some(one) = self.backs.get_mut(before as usize) {
            one.backward = none;
        }
        if let Some(pair) = self.pairs.get_mut(place) {
            (pair.same, pair.open, pair.over) = (stayed / together, still_open / together, over / together);
        }
    }

    /// The servers whose connections are kept by one front at a time, with how often they seem not to be: a front is answered
    /// before its connection is another one's. That was not asked for when visits were looked for, so it tells how well they fit.
    pub(super) fn held(&self) -> HashMap<i32, f64, FixedState> {
        let held = self.servers.iter().zip(&self.habits).filter_map(|(&endpoint, habit)| {
            let changed = habit.all - habit.same;
            let some = SOME * habit.all;
            let law = habit.unanswered <= MOST_UNANSWERED && habit.open <= MOST_OPEN;
            let is_held = habit.same > some && changed > some && law;
            is_held.then_some((endpoint, habit.unanswered))
        });
        held.collect()
    }

    /// The backs that belong together, those of a visit in the order of time; visits in that of their first.
    pub(super) fn visits(&self, section: &Section<'_>) -> Vec<Vec<u32>> {
        let mut first: Vec<u32> = (0..).take(section.backs.len()).collect();
        for pair in self.pairs.iter().filter(|pair| pair.same > SURELY) {
            let of_before = first.get(pair.before as usize).copied();
            if let (Some(of_before), Some(of_after)) = (of_before, first.get_mut(pair.after as usize)) {
                *of_after = of_before;
            }
        }
        let mut visits: Vec<Vec<u32>> = vec![Vec::new(); first.len()];
        for (back, first) in (0u32..).zip(first) {
            if let Some(visit) = visits.get_mut(first as usize) {
                visit.push(back);
            }
        }
        visits.retain(|visit: &Vec<u32>| !visit.is_empty());
        visits
    }
}

/// What a candidate and all that follows it make likely; and that its front enters there.
fn behind_of(steps: &[Step], odds: &[f64], index: u32) -> (f64, f64) {
    let here = steps.get(index as usize).zip(odds.get(index as usize)).map(|(step, odds)| (step, step.backward * odds));
    here.map_or((0.0, 0.0), |(step, here)| (here, here * step.enters))
}

/// Makes one exchange of each visit.
pub(super) fn merged(section: &Section<'_>, visits: &[Vec<u32>]) -> Vec<Exchange> {
    let back = |number: u32| section.backs.get(number as usize).map(|&(_, back)| back);
    let visit = |members: &Vec<u32>| {
        let (first, last) = (back(*members.first()?)?, back(*members.last()?)?);
        if members.len() == 1 {
            return Some(first.clone());
        }
        let mut ids: Vec<u64> =
            members.iter().filter_map(|&number| back(number)).flat_map(|back| back.ids.clone()).collect();
        ids.sort_unstable();
        ids.dedup();
        Some(Exchange {
            response_at: last.response_at,
            response_done_at: last.response_done_at,
            request_bytes: None,
            response_bytes: None,
            target: None,
            status: None,
            ids,
            ..first.clone()
        })
    };
    let mut merged: Vec<Exchange> = visits.iter().filter_map(visit).collect();
    let mut next: HashMap<i32, i64, FixedState> = HashMap::default();
    for visit in merged.iter_mut().rev() {
        visit.next_at = next.insert(visit.stream, visit.request_at);
    }
    merged
}

/// The section with a back for each visit.
pub(super) fn of_visits<'a>(section: &Section<'a>, visits: &[Vec<u32>], merged: &'a [Exchange]) -> Section<'a> {
    let first = |visit: &Vec<u32>| visit.first().map_or(0, |&first| first as usize);
    let place = |back: usize| visits.partition_point(|visit| first(visit) < back);
    let backs: Vec<Indexed<'a>> = (0u32..).zip(merged).collect();
    let sides =
        |sides: &Sides| Sides { fronts: sides.fronts.clone(), backs: place(sides.backs.start)..place(sides.backs.end) };
    Section {
        fronts: section.fronts.clone(),
        own: 0..backs.len(),
        backs,
        machines: section.machines.iter().map(sides).collect(),
        goes_on: section.goes_on,
    }
}
