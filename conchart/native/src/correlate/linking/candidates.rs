//! Which back may belong to which front: by time alone, before any habit is known.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::iter::Peekable;

use foldhash::fast::FixedState;

use super::model::{Exchange, MOST_CANDIDATES, SKEW_NS};
use super::poolers::Poolers;
use super::programs::Programs;
use super::sections::{Indexed, Section, Sides};

/// Fronts that wait side by side, or backs that nobody was answered from yet: the latest are looked at.
const MOST_WAITING: usize = 1024;

/// A front and a back that it may have caused, by their numbers in the section.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub front: u32,
    pub back: u32,
    /// Where habits are one proxy's: index of the pair of server endpoints.
    pub route: u32,
    /// When the proxy began to do something at the back.
    pub began_at: i64,
    /// When the back's response began, if before the front's did.
    pub answered_at: Option<i64>,
    /// Fronts beside it that it would have overtaken, or been overtaken by, on the way in and on the way out.
    pub requested_overtaken: usize,
    pub answered_overtaken: usize,
    /// Whether it would overtake, or be overtaken by, the front that has its back, if that one is beside it.
    pub requested_crosses: Option<bool>,
    pub answered_crosses: Option<bool>,
    /// When the back's response was over.
    pub ended_at: i64,
    /// From the front's request, or the end of its back before, to what the proxy did first for it, at the back.
    pub requested_ns: i64,
    /// From the front's request.
    pub requested_alone_ns: i64,
    /// From the back's response to the front's, or to its next back; None where one is missing or they are the other way round.
    pub answered_ns: Option<i64>,
    /// From the back's response to the front's.
    pub answered_alone_ns: Option<i64>,
    /// How long the front waited, or its client did, in nanoseconds: the logarithm.
    pub window: f64,
    pub opening: Opening,
    pub answering: Answering,
    pub ids: Agreement,
    pub target: Agreement,
    pub status: Agreement,
    /// What the front asks, and what the back does, but for numbers in it; None where one is not known.
    pub kinds: Option<u64>,
    /// The front's connection, and the back's.
    pub lines: Option<u64>,
    pub handover: Handover,
    /// Bytes that the proxy added to the request.
    pub request_grown: Option<i64>,
    /// Bytes that the proxy added to the response.
    pub response_grown: Option<i64>,
    /// It would be the front's turn, if the proxy asked in the order in which it was asked.
    pub requested_in_turn: bool,
    /// It would be the front's turn, if the proxy answered in the order in which it was answered.
    pub answered_in_turn: bool,
    /// Candidates of the back.
    pub rivals: u32,
    /// How sure it is that both are exchanges.
    pub seen: f64,
    /// Logarithm of the odds that the front caused the back, had both no other candidate.
    pub weight: f64,
    /// What of the weight is told by how the request came through, and by how the response did.
    pub coming: f64,
    pub going: f64,
    /// That the front caused the back, given all other candidates: what habits are learned from.
    pub probability: f64,
    /// The same, as far as it is to be trusted.
    pub confidence: f64,
}

/// How the back's connection came to be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Opening {
    /// It had carried exchanges before.
    Reused,
    /// It was opened after the front's request came.
    ForIt,
    /// It was opened before, and had carried nothing.
    Before,
}

/// Who answered first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Answering {
    BackFirst,
    FrontFirst,
    OneMissing,
}

/// Whether the front was over when the next back began on the connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Handover {
    Over,
    Open,
    Last,
}

/// What a fact of both says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Agreement {
    Same,
    Different,
    Unknown,
}

impl Agreement {
    fn of<T: PartialEq>(front: Option<T>, back: Option<T>) -> Self {
        match (front, back) {
            (Some(front), Some(back)) if front == back => Self::Same,
            (Some(_), Some(_)) => Self::Different,
            _ => Self::Unknown,
        }
    }
}

/// Lists the candidates of all backs, those of a back together; and how many backs of each endpoint have none.
pub(super) fn candidates(
    section: &Section<'_>,
    programs: &Programs,
    poolers: &Poolers<'_>,
) -> (Vec<Candidate>, Vec<Route>) {
    let mut routes = Routes::default();
    let mut found = Vec::new();
    for sides in &section.machines {
        of_machine(section, sides, programs, poolers, &mut routes, &mut found);
    }
    (found, routes.list())
}

/// A pair of server endpoints, one on either side of a proxy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    /// The front endpoint, and the back endpoint.
    pub front: i32,
    pub back: i32,
    /// Index of the front endpoint.
    pub front_endpoint: usize,
    /// Backs of the endpoint that lie within no front's life.
    pub alone: u32,
    /// Where fronts keep their connections to the back endpoint ([`super::visits`]): how often they seem not to.
    pub held: Option<f64>,
}

impl Route {
    /// Both endpoints.
    pub(super) fn pair(&self) -> (i32, i32) {
        (self.front, self.back)
    }
}

/// Pairs of server endpoints, numbered as they are met.
#[derive(Default)]
struct Routes {
    numbers: HashMap<(i32, i32), u32, FixedState>,
    alone: HashMap<i32, u32, FixedState>,
}

impl Routes {
    fn number(&mut self, front: &Exchange, back: &Exchange) -> u32 {
        let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
        *self.numbers.entry((front.endpoint, back.endpoint)).or_insert(next)
    }

    fn list(self) -> Vec<Route> {
        let mut list = vec![Route { front: 0, back: 0, front_endpoint: 0, alone: 0, held: None }; self.numbers.len()];
        let mut fronts: Vec<i32> = self.numbers.keys().map(|&(front, _)| front).collect();
        fronts.sort_unstable();
        fronts.dedup();
        for ((front, back), number) in self.numbers {
            if let Some(route) = list.get_mut(number as usize) {
                (route.front, route.back) = (front, back);
                route.front_endpoint = fronts.binary_search(&front).unwrap_or_default();
                route.alone = self.alone.get(&back).copied().unwrap_or_default();
            }
        }
        list
    }
}

/// Those that came, and neither are over nor taken.
struct Waiting<'a, I: Iterator<Item = Indexed<'a>>> {
    coming: Peekable<I>,
    now: Vec<Indexed<'a>>,
}

impl<'a, I: Iterator<Item = Indexed<'a>>> Waiting<'a, I> {
    fn new(coming: I) -> Self {
        Self { coming: coming.peekable(), now: Vec::new() }
    }

    /// Adds those that have come, drops those that are over, and of too many the first to come.
    fn go_on(&mut self, has_come: impl Fn(&Exchange) -> bool, is_over: impl Fn(&Exchange) -> bool) {
        while let Some(next) = self.coming.next_if(|(_, exchange)| has_come(exchange)) {
            self.now.push(next);
        }
        self.now.retain(|(_, exchange)| !is_over(exchange));
        let stale = self.now.len().saturating_sub(MOST_WAITING);
        self.now.drain(..stale);
    }

    /// Takes the first that fits, if possible one that is alike.
    fn take(&mut self, fits: impl Fn(&Exchange) -> bool, alike: impl Fn(&Exchange) -> bool) -> Option<u32> {
        let place = self.now.iter().position(|(_, exchange)| fits(exchange) && alike(exchange));
        let place = place.or_else(|| self.now.iter().position(|(_, exchange)| fits(exchange)))?;
        Some(self.now.remove(place).0)
    }
}

/// Whose turn it would be: the front of each back.
type Turns = HashMap<u32, u32, FixedState>;

fn of_machine(
    section: &Section<'_>,
    sides: &Sides,
    programs: &Programs,
    poolers: &Poolers<'_>,
    routes: &mut Routes,
    found: &mut Vec<Candidate>,
) {
    let (fronts, backs) = (section.fronts_of(sides), section.backs_of(sides));
    let may_cause = |front: &Exchange, back: &Exchange| {
        may_cause(front, back) && programs.may_cause(front.endpoint, back.endpoint) && poolers.may_cause(front, back)
    };
    let requested = requested_in_turn(&fronts, &backs, &may_cause);
    let answered = answered_in_turn(&fronts, &backs, &may_cause);
    let mut waiting = Waiting::new(fronts.into_iter());
    let mut near: Vec<(usize, Candidate)> = Vec::new();
    for (back_number, back) in backs {
        waiting.go_on(
            |front| front.request_at <= back.request_at + SKEW_NS,
            |front| front.until() + SKEW_NS < back.request_at,
        );
        near.clear();
        for (place, &(front_number, front)) in waiting.now.iter().enumerate().rev() {
            if may_cause(front, back) {
                let mut candidate = candidate(front_number, front, back_number, back, routes);
                candidate.requested_in_turn = requested.get(&back_number) == Some(&front_number);
                candidate.answered_in_turn = answered.get(&back_number) == Some(&front_number);
                near.push((place, candidate));
            }
        }
        if near.is_empty() && !poolers.is_behind(back) {
            *routes.alone.entry(back.endpoint).or_default() += 1;
        }
        let rivals = u32::try_from(near.len()).unwrap_or(u32::MAX);
        keep_nearest(&mut near);
        found.extend(near.iter().map(|&(_, candidate)| Candidate { rivals, ..candidate }));
    }
}

/// Says whether anything but time speaks against a front.
fn may_cause(front: &Exchange, back: &Exchange) -> bool {
    // A client that shares the proxy's address asks the backend itself: no server asks itself.
    front.stream != back.stream
        && front.endpoint != back.endpoint
        && (front.opens || back.number.is_some())
        && back.through.is_none_or(|stream| stream == front.stream)
}

/// Gives each back the front whose turn it would be if the proxy asked in the order in which it was asked: of those that have no
/// back yet, the one that has waited longest.
fn requested_in_turn(
    fronts: &[Indexed<'_>],
    backs: &[Indexed<'_>],
    may_cause: &impl Fn(&Exchange, &Exchange) -> bool,
) -> Turns {
    let mut turns = Turns::default();
    let mut backs = backs.to_vec();
    backs.sort_by_key(|(_, back)| (back.began_at(), back.stream, back.number));
    let mut waiting = Waiting::new(fronts.iter().copied());
    for (number, back) in backs {
        let began_at = back.began_at();
        waiting.go_on(|front| front.request_at <= began_at + SKEW_NS, |front| front.until() + SKEW_NS < began_at);
        let fits = |front: &Exchange| {
            may_cause(front, back) && back.response_at.is_none_or(|at| at <= front.until() + SKEW_NS)
        };
        turns.extend(waiting.take(fits, |front| alike(front, back)).map(|front| (number, front)));
    }
    turns
}

/// Gives each back the front whose turn it would be if the proxy answered in the order in which it was answered: the first front
/// to be answered takes the first back.
fn answered_in_turn(
    fronts: &[Indexed<'_>],
    backs: &[Indexed<'_>],
    may_cause: &impl Fn(&Exchange, &Exchange) -> bool,
) -> Turns {
    let mut turns = Turns::default();
    let mut answered = Waiting::new(by_answer(backs).into_iter().map(|(_, back)| back));
    for (at, (number, front)) in by_answer(fronts) {
        answered.go_on(|back| back.response_at.is_some_and(|back| back <= at + SKEW_NS), |_| false);
        let fits = |back: &Exchange| may_cause(front, back) && front.request_at <= back.request_at + SKEW_NS;
        turns.extend(answered.take(fits, |back| alike(front, back)).map(|back| (back, number)));
    }
    turns
}

/// Those that were answered, in that order, with the instant.
fn by_answer<'a>(side: &[Indexed<'a>]) -> Vec<(i64, Indexed<'a>)> {
    let mut answered: Vec<_> = side.iter().filter_map(|&indexed| Some((indexed.1.response_at?, indexed))).collect();
    answered.sort_by_key(|&(at, (_, exchange))| (at, exchange.stream, exchange.number));
    answered
}

/// Says whether responses are about as long, as far as is known.
fn alike(front: &Exchange, back: &Exchange) -> bool {
    let Some((front, back)) = front.response_bytes.zip(back.response_bytes) else { return true };
    (front - back).abs() <= 200 + front.min(back) / 50
}

/// Keeps those asked shortest before the back, those answered shortest after it, and those whose turn it was, or nearly.
fn keep_nearest(near: &mut Vec<(usize, Candidate)>) {
    if near.len() <= MOST_CANDIDATES {
        return;
    }
    let quarter = MOST_CANDIDATES / 4;
    let turns = [|c: &Candidate| c.requested_in_turn, |c: &Candidate| c.answered_in_turn];
    for (round, in_turn) in turns.iter().enumerate() {
        if let Some(&(turn, _)) = near.iter().find(|(_, candidate)| in_turn(candidate))
            && let Some(rest) = near.get_mut(round * quarter..)
        {
            rest.sort_by_key(|&(place, _)| place.abs_diff(turn));
        }
    }
    if let Some(rest) = near.get_mut(2 * quarter..) {
        rest.sort_by_key(|(_, candidate)| candidate.requested_ns);
    }
    if let Some(rest) = near.get_mut(3 * quarter..) {
        let unlike = |c: &Candidate| (c.ids != Agreement::Same, c.target == Agreement::Different);
        rest.sort_by_key(|(_, candidate)| (unlike(candidate), candidate.answered_ns.unwrap_or(i64::MAX)));
    }
    near.truncate(MOST_CANDIDATES);
}

fn candidate(front_number: u32, front: &Exchange, back_number: u32, back: &Exchange, routes: &mut Routes) -> Candidate {
    let (opening, began_at) = match back.setup {
        _ if !back.first => (Opening::Reused, back.request_at),
        Some(setup) if setup.opened_at + SKEW_NS >= front.request_at => (Opening::ForIt, setup.opened_at),
        _ => (Opening::Before, back.request_at),
    };
    // A proxy that hands on the head asks before it has the whole request.
    let requested_at =
        if began_at + SKEW_NS < front.request_done_at { front.request_at } else { front.request_done_at };
    let (answering, answered_ns) = match (front.response_at, back.response_at) {
        (Some(front_at), Some(back_at)) if back_at <= front_at + SKEW_NS => {
            (Answering::BackFirst, Some((front_at - back_at).max(0)))
        }
        (Some(_), Some(_)) => (Answering::FrontFirst, None),
        _ => (Answering::OneMissing, None),
    };
    Candidate {
        front: front_number,
        back: back_number,
        route: routes.number(front, back),
        began_at,
        answered_at: back.response_at.filter(|_| answered_ns.is_some()),
        requested_overtaken: 0,
        answered_overtaken: 0,
        requested_crosses: None,
        answered_crosses: None,
        ended_at: back.response_done_at.or(back.response_at).unwrap_or(back.closed_at),
        requested_ns: (began_at - requested_at).max(0),
        requested_alone_ns: (began_at - requested_at).max(0),
        answered_ns,
        answered_alone_ns: answered_ns,
        window: ((front.until() - front.request_at).max(1_000) as f64).ln(),
        opening,
        answering,
        ids: ids(front, back),
        target: Agreement::of(front.target, back.target),
        status: Agreement::of(front.status, back.status),
        kinds: front.kind.zip(back.kind).map(|kinds| FixedState::default().hash_one(kinds)),
        lines: Some(FixedState::default().hash_one((front.stream, back.stream))),
        handover: match back.next_at {
            Some(next_at) if front.until() <= next_at + SKEW_NS => Handover::Over,
            Some(_) => Handover::Open,
            None => Handover::Last,
        },
        request_grown: back.request_bytes.zip(front.request_bytes).map(|(back, front)| back - front),
        response_grown: front.response_bytes.zip(back.response_bytes).map(|(front, back)| front - back),
        requested_in_turn: false,
        answered_in_turn: false,
        rivals: 0,
        seen: front.confidence.min(back.confidence),
        weight: 0.0,
        coming: 0.0,
        going: 0.0,
        probability: 0.0,
        confidence: 0.0,
    }
}

impl Candidate {
    /// Forgets what is asked only of those that make visits: of single exchanges it is less than it seems.
    pub(super) fn alone(self) -> Self {
        Self { kinds: None, lines: None, handover: Handover::Last, ..self }
    }
}

/// One identifier in common is enough: proxies add their own.
fn ids(front: &Exchange, back: &Exchange) -> Agreement {
    if front.ids.is_empty() || back.ids.is_empty() {
        Agreement::Unknown
    } else if front.ids.iter().any(|id| back.ids.contains(id)) {
        Agreement::Same
    } else {
        Agreement::Different
    }
}
