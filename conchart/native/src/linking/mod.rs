//! Which back exchange a front exchange caused: exchanges of a proxy's two sides in, links out.
//!
//! A proxy's exchanges are of two kinds: those that it accepted (fronts) and those that it asked for (backs). A back that lies
//! within the life of a front may have been caused by it. How likely that is, is told from what the capture itself shows of the
//! proxy's habits: how long after a request it asks, how long after an answer it answers, by how much it lengthens messages,
//! whether it hands on targets and identifiers ([`habits`]). Habits and links are found in turns (expectation maximisation), and
//! the links last, all at once ([`matching`]): first fit would give a slow request's back to its neighbour.
//!
//! A front may cause several backs, one after the other or side by side (retries, fan-out): each round of [`link`] finds at most
//! one more per front. What is likelier a coincidence stays unlinked. No IO, no clock; no more memory than [`MOST_CANDIDATES`] per
//! back.

mod candidates;
mod habits;
mod matching;
mod order;
pub mod rows;
mod split;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use foldhash::fast::FixedState;

use self::candidates::{Candidate, candidates};
use self::habits::Habits;
use self::matching::{marginals, match_up};
use self::order::Order;
pub use self::split::{Split, split};

/// How often habits are learned anew from the links that they make likely.
const ROUNDS: usize = 6;
/// Backs of one front: more than a page's fan-out, and an end to rounds.
const MOST_BACKS: usize = 64;
/// A connection that carries nothing for longer was not opened for its first request.
const IDLE_NS: i64 = 5_000_000;
/// Candidates that are less likely compete with nobody.
const LEAST_LIKELY: f64 = 0.001;
/// Links that are less sure are none.
const LEAST_CONFIDENCE: f64 = 0.5;

/// One exchange, as far as linking asks.
#[derive(Clone, Debug, Default)]
pub struct Exchange {
    /// Its row's key.
    pub stream: i32,
    /// Its row's key; None of a back that is the opening of a connection itself, for a front that asked for that.
    pub number: Option<i32>,
    /// The machine that accepted its connection, if that is a proxy.
    pub accepted_by: Option<i32>,
    /// The machine that opened its connection, if that is a proxy.
    pub opened_by: Option<i32>,
    /// The server endpoint.
    pub endpoint: i32,
    /// The only front connection that may have caused it, where the connection is known to be handed through.
    pub through: Option<i32>,
    /// The front asks for a connection (CONNECT, SOCKS).
    pub opens: bool,
    /// First byte of the request, ns since the epoch.
    pub request_at: i64,
    /// Last byte of the request.
    pub request_done_at: i64,
    /// First byte of the response.
    pub response_at: Option<i64>,
    /// Last byte of the response.
    pub response_done_at: Option<i64>,
    /// Last packet of the connection.
    pub closed_at: i64,
    /// No exchange of its connection came before it.
    pub first: bool,
    /// How its connection was set up.
    pub setup: Option<Setup>,
    /// As `exchanges` has it.
    pub request_bytes: Option<i64>,
    /// As `exchanges` has it.
    pub response_bytes: Option<i64>,
    /// Hash of method and path; None where encryption hides them.
    pub target: Option<u64>,
    /// As `exchanges` has it.
    pub status: Option<i32>,
    /// Hashes of the identifiers that it carries.
    pub ids: Vec<u64>,
}

/// How a connection was set up, ns since the epoch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Setup {
    /// First SYN.
    pub opened_at: i64,
    /// The TCP handshake is over.
    pub connected_at: Option<i64>,
    /// First byte of the ClientHello.
    pub hello_at: Option<i64>,
    /// The TLS handshake is over.
    pub ready_at: Option<i64>,
}

impl Exchange {
    /// The end of the time in which it may have caused others.
    fn until(&self) -> i64 {
        self.response_at.unwrap_or(self.closed_at)
    }

    /// When its client did the first thing for it: opened the connection, or sent the request.
    fn began_at(&self) -> i64 {
        let Some(setup) = self.setup.filter(|_| self.first) else { return self.request_at };
        let ready_at = setup.ready_at.or(setup.connected_at).unwrap_or(setup.opened_at);
        if self.request_at - ready_at <= IDLE_NS { setup.opened_at } else { self.request_at }
    }
}

/// A front exchange and a back exchange that it caused, as indices.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Index of the front exchange.
    pub front: u32,
    /// Index of the back exchange.
    pub back: u32,
    /// What told them from others most clearly.
    pub method: &'static str,
    /// Probability that the link is right.
    pub confidence: f64,
}

/// Links the exchanges of every proxy; `exchanges` are in any order.
#[must_use]
pub fn link(exchanges: &[Exchange]) -> Vec<Link> {
    let (mut edges, routes) = candidates(exchanges);
    let order = Order::new(exchanges);
    let mut links: Vec<Link> = Vec::new();
    let mut stays: Stays = HashMap::default();
    let mut usual = Habits::of_any_proxy(&routes, &edges);
    for _ in 0..MOST_BACKS {
        let (habits, live) = explain(usual, &order, exchanges, &edges);
        let found = match_up(&live);
        let sure = |edge: &&Candidate| edge.probability >= LEAST_CONFIDENCE;
        let mut taken = vec![false; exchanges.len()];
        let mut grown = false;
        for edge in found.into_iter().filter_map(|index| live.get(index)).filter(sure) {
            if let Some(taken) = taken.get_mut(edge.back as usize) {
                *taken = true;
            }
            grown = true;
            stays.entry(edge.front).or_default().push((edge.began_at, edge.ended_at));
            let method = habits.method(edge);
            links.push(Link { front: edge.front, back: edge.back, method, confidence: edge.probability });
        }
        if !grown {
            break;
        }
        edges.retain(|edge| !taken.get(edge.back as usize).copied().unwrap_or_default());
        for edge in &mut edges {
            edge.again = true;
            if let Some((front, stays)) = exchanges.get(edge.front as usize).zip(stays.get(&edge.front)) {
                fit_between(edge, front, stays);
            }
        }
        usual = habits.once_more(&routes, &edges);
    }
    links.sort_unstable_by_key(|link| (link.front, link.back));
    links
}

/// Of each front, when the backs that it has began and ended.
type Stays = HashMap<u32, Vec<(i64, i64)>, FixedState>;

/// Measures a candidate's delays from what the front's other backs did before and after it: who retries, or asks one backend
/// after the other, goes on when an answer has come.
fn fit_between(edge: &mut Candidate, front: &Exchange, stays: &[(i64, i64)]) {
    let before = stays.iter().map(|&(_, ended_at)| ended_at).filter(|&at| at <= edge.began_at).max();
    let asked_at = before.unwrap_or(front.request_done_at).max(front.request_done_at.min(edge.began_at));
    edge.asked_ns = edge.asked_ns.min(edge.began_at - asked_at).max(0);
    if edge.answered_ns.is_some() {
        let after = stays.iter().map(|&(began_at, _)| began_at).filter(|&at| at >= edge.ended_at).min();
        edge.answered_ns = edge.answered_ns.min(after.map(|at| at - edge.ended_at).or(edge.answered_ns));
    }
}

/// Learns habits from three beginnings: a proxy asks soon, or it asks in turn, or answers in turn, however late. What explains
/// most is kept.
fn explain(usual: Habits, order: &Order, exchanges: &[Exchange], edges: &[Candidate]) -> (Habits, Vec<Candidate>) {
    let mut soon = edges.to_vec();
    usual.weigh(&mut soon);
    marginals(&mut soon, exchanges.len());
    let turns = [|edge: &Candidate| edge.asked_in_turn, |edge: &Candidate| edge.answered_in_turn].map(|in_turn| {
        let mut edges = edges.to_vec();
        edges.iter_mut().for_each(|edge| edge.probability = if in_turn(edge) { 0.9 } else { 0.0 });
        edges
    });
    let mut best = learn(usual.clone(), order, exchanges, soon);
    for turns in turns {
        let other = learn(usual.clone(), order, exchanges, turns);
        if likelihood(&other.1) > likelihood(&best.1) {
            best = other;
        }
    }
    best
}

/// Learns the habits that make the candidates likely, and the candidates' probabilities, in turns.
fn learn(
    mut habits: Habits,
    order: &Order,
    exchanges: &[Exchange],
    mut edges: Vec<Candidate>,
) -> (Habits, Vec<Candidate>) {
    for round in 0..ROUNDS {
        order.count(exchanges, &mut edges);
        habits.learn(&edges);
        habits.weigh(&mut edges);
        marginals(&mut edges, exchanges.len());
        if round > 0 {
            edges.retain(|edge| edge.probability >= LEAST_LIKELY);
        }
    }
    (habits, edges)
}

/// How much likelier the candidates make what was seen than chance does: the sum of the likeliest ones' weights.
fn likelihood(edges: &[Candidate]) -> f64 {
    edges.iter().map(|edge| edge.weight.max(0.0) * edge.probability).sum()
}
