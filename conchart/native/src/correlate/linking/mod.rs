//! Which back exchange a front exchange caused: exchanges of a proxy's two sides in, links out.
//!
//! A proxy's exchanges are of two kinds: those that it accepted (fronts) and those that it asked for (backs). A back that lies
//! within the life of a front may have been caused by it. How likely that is, is told from what the capture itself shows of the
//! proxy's habits: how long after a request it asks, how long after an answer it answers, by how much it lengthens messages,
//! whether it hands on targets and identifiers ([`habits`]), who overtakes whom ([`order`]). Habits and links are found in turns
//! (expectation maximisation), and all links at once ([`marginals`]): first fit would give a slow request's back to its neighbour.
//! How sure a link is, the hypotheses that rival it say ([`rivals`], [`shifts`]). Of an application that keeps its connections, what one front
//! asks on one connection is linked together ([`visits`]).
//!
//! A front may cause several backs, one after the other or side by side (retries, fan-out). What is likelier a coincidence stays
//! unlinked. No IO, no clock; no more memory than [`model::MOST_CANDIDATES`] per back of a section ([`sections`]).

mod candidates;
mod delay;
mod habits;
mod marginals;
mod model;
mod order;
mod pairs;
mod poolers;
mod programs;
mod rivals;
pub(crate) mod rows;
mod sections;
mod shifts;
mod sole;
mod split;
#[cfg(test)]
mod tests;
mod visits;

use self::candidates::{Candidate, Handover, Route, candidates};
use self::habits::Habits;
use self::model::LEAST_CONFIDENCE;
pub use self::model::{Exchange, Link};
use self::order::Order;
use self::poolers::Poolers;
use self::programs::{Evidence, Programs};
use self::sections::{Indexed, Section, sections};
use self::shifts::doubt_shifts;
use self::sole::{drop_coincidences, sole};
pub use self::split::split;
use self::visits::{Chains, merged, of_visits, often};

/// How often habits are learned anew from the links that they make likely.
const ROUNDS: usize = 5;
/// Rounds that look for backs beyond the [`marginals::MOST_COUNTED`] of a front that each of them finds.
const MOST_TIMES: usize = 4;
/// Unless a round adds one in so many, no other follows.
const WORTH_MORE: usize = 200;
/// Backs on which beginnings are tried.
const SAMPLE: usize = 1_500;
/// Candidates that are less likely compete with nobody.
const LEAST_LIKELY: f64 = 0.001;

/// Links the exchanges of every proxy; `exchanges` are in any order.
#[must_use]
pub fn link(exchanges: &[Exchange]) -> Vec<Link> {
    let poolers = Poolers::new(exchanges);
    let programs = programs(exchanges, &poolers);
    let mut links = Vec::new();
    let mut beginning = None;
    sections(exchanges, |section| {
        beginning = beginning.filter(|_| section.goes_on);
        links.extend(link_section(section, &programs, &poolers, &mut beginning));
    });
    links.sort_unstable_by_key(|link| (link.front, link.back));
    links
}

/// Decides which programs of a machine cause what others are asked.
fn programs(exchanges: &[Exchange], poolers: &Poolers<'_>) -> Programs {
    let mut programs = Programs::mixed(exchanges);
    if programs.any() {
        let mut evidence = Evidence::default();
        sections(exchanges, |section| {
            let (candidates, routes) = candidates(section, &Programs::default(), poolers);
            let candidates = alone(candidates);
            let usual = Habits::of_any_proxy(&routes, &candidates);
            let order = Order::new(section);
            let (_, tried) = best_beginning(&usual, &order, section.fronts.len(), &candidates);
            evidence.explain(&tried, &routes);
            for sides in &section.machines {
                if programs.any_of(section, sides) {
                    evidence.count(section, sides);
                }
            }
        });
        programs.decide(&evidence);
    }
    programs
}

/// Links the fronts and backs of a section; a machine's sections have one beginning.
fn link_section(
    section: &Section<'_>,
    programs: &Programs,
    poolers: &Poolers<'_>,
    machine_beginning: &mut Option<Beginning>,
) -> Vec<Link> {
    let (mut candidates, routes) = candidates(section, programs, poolers);
    drop_coincidences(section, &mut candidates);
    let mut sole = sole(section, &candidates);
    let mut links = if often(&candidates, section.fronts.len()) {
        link_visits(section, programs, poolers, candidates, &routes, machine_beginning)
    } else {
        link_each(section, poolers, alone(candidates), &routes, machine_beginning)
    };
    for link in &mut links {
        if let Some(sole) = sole.remove(&link.back) {
            link.confidence = link.confidence.max(sole.confidence);
        }
    }
    links.extend(sole.into_iter().map(|(back, sole)| Link {
        front: sole.front,
        back,
        method: "time",
        confidence: sole.confidence,
    }));
    links.retain(|link| section.own.contains(&(link.back as usize)));
    let index = |side: &[Indexed<'_>], number: u32| side.get(number as usize).map_or(number, |&(index, _)| index);
    for link in &mut links {
        (link.front, link.back) = (index(&section.fronts, link.front), index(&section.backs, link.back));
    }
    links
}

/// Links the visits of a section's backs, and so their backs.
fn link_visits(
    section: &Section<'_>,
    programs: &Programs,
    poolers: &Poolers<'_>,
    raw: Vec<Candidate>,
    routes: &[Route],
    machine_beginning: &mut Option<Beginning>,
) -> Vec<Link> {
    let mut habits = Habits::of_any_proxy(routes, &raw);
    let mut chains = Chains::new(section);
    let mut live = raw.clone();
    habits.judge_along(&mut live, &mut chains);
    for round in 0..ROUNDS {
        chains.learn(&live);
        habits.learn(&live);
        habits.judge_along(&mut live, &mut chains);
        let least = if round == 0 { LEAST_LIKELY / 100.0 } else { LEAST_LIKELY };
        live.retain(|candidate| candidate.probability >= least);
    }
    let held = chains.held();
    if held.is_empty() {
        return link_each(section, poolers, alone(raw), routes, machine_beginning);
    }
    let visits = chains.visits(section);
    let merged = merged(section, &visits);
    let section = of_visits(section, &visits, &merged);
    let (candidates, mut routes) = candidates(&section, programs, poolers);
    for route in &mut routes {
        route.held = held.get(&route.back).copied();
    }
    let links = link_each(&section, poolers, candidates, &routes, machine_beginning);
    let members = |link: Link| {
        let visit = visits.get(link.back as usize).into_iter().flatten();
        visit.map(move |&back| Link { back, ..link })
    };
    links.into_iter().flat_map(members).collect()
}

/// The candidates without what is known of visits.
fn alone(mut candidates: Vec<Candidate>) -> Vec<Candidate> {
    candidates.iter_mut().for_each(|candidate| *candidate = candidate.alone());
    candidates
}

/// Links each back of a section by itself.
fn link_each(
    section: &Section<'_>,
    poolers: &Poolers<'_>,
    mut candidates: Vec<Candidate>,
    routes: &[Route],
    machine_beginning: &mut Option<Beginning>,
) -> Vec<Link> {
    let order = Order::new(section);
    let fronts = section.fronts.len();
    let mut links: Vec<Link> = Vec::new();
    let mut usual = Habits::of_any_proxy(routes, &candidates);
    let mut beginning = *machine_beginning.get_or_insert_with(|| best_beginning(&usual, &order, fronts, &candidates).0);
    for _ in 0..MOST_TIMES {
        let (habits, live) = learn(usual, beginning, &order, fronts, candidates.clone());
        let mut taken = vec![false; section.backs.len()];
        let mut handed_on = vec![false; fronts];
        let mut found = Vec::new();
        for of_back in live.chunk_by(|one, other| one.back == other.back) {
            let likeliest = of_back.iter().max_by(|one, other| one.probability.total_cmp(&other.probability));
            let Some(candidate) = likeliest.filter(|candidate| candidate.probability > LEAST_CONFIDENCE) else {
                continue;
            };
            if let Some(taken) = taken.get_mut(candidate.back as usize) {
                *taken = true;
            }
            if let Some(handed_on) = handed_on.get_mut(candidate.front as usize) {
                *handed_on = routes.get(candidate.route as usize).is_some_and(|route| poolers.has(route.pair()));
            }
            let confidence = candidate.confidence * habits.trust(candidate);
            let method = habits.method(candidate);
            found.push((candidate.route, Link { front: candidate.front, back: candidate.back, method, confidence }));
        }
        doubt_shifts(&mut found, &candidates);
        let before = links.len();
        links.extend(found.into_iter().map(|(_, link)| link).filter(|link| link.confidence > LEAST_CONFIDENCE));
        if (links.len() - before) * WORTH_MORE <= before {
            break;
        }
        let is = |list: &[bool], number: u32| list.get(number as usize).copied().unwrap_or_default();
        candidates.retain(|candidate| !is(&taken, candidate.back) && !is(&handed_on, candidate.front));
        usual = habits.once_more(routes, &candidates);
        beginning = Beginning::Soon;
    }
    links
}

/// What is taken for a proxy's habit before anything is learned.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Beginning {
    /// It asks soon, mostly once.
    Soon,
    /// It asks soon, any number of times.
    Often,
    /// It asks in the order in which it is asked, however late.
    RequestedInTurn,
    /// It answers in the order in which it is answered, however late.
    AnsweredInTurn,
    /// Of those that wait, it answers one before its connection to the backend is asked for another.
    HandedOver,
}

/// Tries all beginnings on the first backs: what is learned from one explains more than what is learned from another. Gives what
/// was learned of those backs' candidates, too.
fn best_beginning(
    usual: &Habits,
    order: &Order,
    fronts: usize,
    candidates: &[Candidate],
) -> (Beginning, Vec<Candidate>) {
    let mut backs = 0;
    let sample: Vec<Candidate> = candidates
        .chunk_by(|one, other| one.back == other.back)
        .take_while(|_| {
            backs += 1;
            backs <= SAMPLE
        })
        .flatten()
        .copied()
        .collect();
    let mut best = (f64::NEG_INFINITY, Beginning::Soon, Vec::new());
    let handed_over = sample.iter().any(|candidate| candidate.handover == Handover::Over);
    let beginnings = [Beginning::Soon, Beginning::Often, Beginning::RequestedInTurn, Beginning::AnsweredInTurn];
    for beginning in beginnings.into_iter().chain(handed_over.then_some(Beginning::HandedOver)) {
        let (habits, live) = learn(usual.clone(), beginning, order, fronts, sample.clone());
        let likelihood = habits.likelihood(&live);
        if likelihood > best.0 {
            best = (likelihood, beginning, live);
        }
    }
    (best.1, best.2)
}

/// Learns the habits that make the candidates likely, and the candidates' probabilities, in turns.
fn learn(
    mut habits: Habits,
    beginning: Beginning,
    order: &Order,
    fronts: usize,
    mut candidates: Vec<Candidate>,
) -> (Habits, Vec<Candidate>) {
    match beginning {
        Beginning::Soon | Beginning::Often => {
            if beginning == Beginning::Often {
                habits.often();
            }
            habits.judge(&mut candidates, fronts);
        }
        Beginning::HandedOver => {
            for of_back in candidates.chunk_by_mut(|one, other| one.back == other.back) {
                let over =
                    |candidate: &Candidate| candidate.handover == Handover::Over && candidate.answered_ns.is_some();
                let rivals = of_back.iter().filter(|candidate| over(candidate)).count().max(1);
                for candidate in of_back {
                    candidate.probability = if over(candidate) { 0.9 / rivals as f64 } else { 0.0 };
                }
            }
        }
        Beginning::RequestedInTurn | Beginning::AnsweredInTurn => {
            let by_requests = beginning == Beginning::RequestedInTurn;
            for candidate in &mut candidates {
                let in_turn = if by_requests { candidate.requested_in_turn } else { candidate.answered_in_turn };
                candidate.probability = if in_turn { 0.9 } else { 0.0 };
            }
        }
    }
    for round in 0..ROUNDS {
        order.count(&mut candidates);
        fit_between(&mut candidates, fronts);
        habits.learn(&candidates);
        habits.judge(&mut candidates, fronts);
        let least = if round == 0 { LEAST_LIKELY / 100.0 } else { LEAST_LIKELY };
        candidates.retain(|candidate| candidate.probability >= least);
    }
    (habits, candidates)
}

/// Measures delays from what the front's other backs did before and after: who retries, or asks one backend after the other, goes
/// on when an answer has come.
fn fit_between(candidates: &mut [Candidate], fronts: usize) {
    let mut stays: Vec<Vec<(u32, i64, i64)>> = vec![Vec::new(); fronts];
    for candidate in candidates.iter().filter(|candidate| candidate.probability > LEAST_CONFIDENCE) {
        if let Some(stays) = stays.get_mut(candidate.front as usize) {
            stays.push((candidate.back, candidate.began_at, candidate.ended_at));
        }
    }
    for candidate in candidates {
        let others =
            stays.get(candidate.front as usize).into_iter().flatten().filter(|&&(back, ..)| back != candidate.back);
        (candidate.requested_ns, candidate.answered_ns) = (candidate.requested_alone_ns, candidate.answered_alone_ns);
        for &(_, began_at, ended_at) in others {
            if ended_at <= candidate.began_at {
                candidate.requested_ns = candidate.requested_ns.min(candidate.began_at - ended_at);
            }
            if began_at >= candidate.ended_at {
                candidate.answered_ns = candidate.answered_ns.map(|ns| ns.min(began_at - candidate.ended_at));
            }
        }
    }
}
