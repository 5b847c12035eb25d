//! Poolers (PgBouncer, ProxySQL): proxies that hand statements on word for word, each on a connection that is free just then.
//!
//! Habits tell a pooler's links as those of any proxy. But a pooler keeps rules that no habit breaks, and here they are laws:
//!
//! - a statement behind is one in front, with the same words; what has no such front (start-up, `DISCARD ALL`, `SELECT 1`) the
//!   pooler sent by itself, and a start-up in front it answers by itself;
//! - the answer behind comes before the answer in front, and a statement is handed on once;
//! - a connection behind belongs to one client from BEGIN to COMMIT: so all statements between them have the same client.
//!
//! A front endpoint and a back endpoint are a pooler's where at least half of the statements behind lie within one in front of the
//! same shape. A database that asks another one (foreign tables, shards) sends other statements, and is none. PgBouncer renames
//! prepared statements; shapes have the text, not the name. A shape that nobody knows may be any.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use foldhash::fast::FixedState;

#[cfg(test)]
mod tests;

use super::model::{Exchange, MOST_CANDIDATES, SKEW_NS};

/// Statements behind that lie within the same ones in front, from which on something may be a pooler.
const LEAST_ALIKE: u32 = 3;
/// Of a transaction, so many statements are compared.
const MOST_COMPARED: usize = 64;
/// Statements in front of one shape that wait side by side: the latest are looked at.
const MOST_WAITING: usize = 256;

/// A front endpoint and a back endpoint.
type Pair = (i32, i32);

/// Which endpoints a pooler joins, and what belongs together there.
#[derive(Debug, Default)]
pub(super) struct Poolers<'a> {
    pairs: HashSet<Pair, FixedState>,
    /// Statements of the connections there, in order, those of a connection together.
    statements: Vec<&'a Exchange>,
    /// Of each statement, by stream and number: those of its transaction.
    transactions: HashMap<(i32, Option<i32>), Range<usize>, FixedState>,
}

impl<'a> Poolers<'a> {
    /// Finds poolers.
    pub(super) fn new(exchanges: &'a [Exchange]) -> Self {
        let mut machines: BTreeMap<i32, Vec<&Exchange>> = BTreeMap::new();
        for exchange in exchanges.iter().filter(|exchange| exchange.statement.is_some()) {
            let (accepted_by, opened_by) = (exchange.accepted_by, exchange.opened_by);
            for machine in accepted_by.into_iter().chain(opened_by.filter(|&machine| accepted_by != Some(machine))) {
                machines.entry(machine).or_default().push(exchange);
            }
        }
        let mut poolers = Self::default();
        for (machine, its_exchanges) in machines {
            poolers.pairs.extend(pairs(machine, its_exchanges));
        }
        let ends: HashSet<i32, FixedState> = poolers.pairs.iter().flat_map(|&(front, back)| [front, back]).collect();
        poolers.statements = exchanges
            .iter()
            .filter(|exchange| exchange.statement.is_some() && ends.contains(&exchange.endpoint))
            .collect();
        poolers.statements.sort_by_key(|exchange| (exchange.stream, exchange.number));
        poolers.join();
        poolers
    }

    /// Says whether a pooler joins both endpoints.
    pub(super) fn has(&self, pair: Pair) -> bool {
        self.pairs.contains(&pair)
    }

    /// Says whether a back that no front caused says nothing of how often such come: a pooler's own statements differ from others.
    pub(super) fn is_behind(&self, back: &Exchange) -> bool {
        back.statement.is_some() && self.pairs.iter().any(|&(_, endpoint)| endpoint == back.endpoint)
    }

    /// Says whether no law of poolers speaks against the link.
    pub(super) fn may_cause(&self, front: &Exchange, back: &Exchange) -> bool {
        if self.pairs.is_empty() || !self.has((front.endpoint, back.endpoint)) {
            return true;
        }
        let own = |exchange: &Exchange| exchange.statement.is_some_and(|statement| statement.starts);
        let (of_front, of_back) = (self.transaction(front), self.transaction(back));
        !own(front)
            && !own(back)
            && hands_on(front, back)
            && of_back.iter().all(|back| of_front.iter().any(|front| hands_on(front, back)))
    }

    /// The statements of the same transaction, or the first of them.
    fn transaction(&self, exchange: &Exchange) -> &[&'a Exchange] {
        let range = self.transactions.get(&(exchange.stream, exchange.number)).cloned().unwrap_or_default();
        let most = range.start..range.end.min(range.start + MOST_COMPARED);
        self.statements.get(most).unwrap_or_default()
    }

    /// Finds transactions: from a statement that leaves one open to that which ends it.
    fn join(&mut self) {
        let mut start = None;
        let mut add = |range: Range<usize>, statements: &[&Exchange]| {
            for exchange in statements.get(range.clone()).into_iter().flatten() {
                self.transactions.insert((exchange.stream, exchange.number), range.clone());
            }
        };
        for (place, exchange) in self.statements.iter().enumerate() {
            let before = place.checked_sub(1).and_then(|before| self.statements.get(before));
            if before.is_some_and(|before| before.stream != exchange.stream)
                && let Some(start) = start.take()
            {
                add(start..place, &self.statements);
            }
            match exchange.statement.map_or(0, |statement| statement.turn) {
                0 => {}
                1 => start = start.or(Some(place)),
                _ => {
                    if let Some(start) = start.take() {
                        add(start..place + 1, &self.statements);
                    }
                }
            }
        }
        if let Some(start) = start {
            add(start..self.statements.len(), &self.statements);
        }
    }
}

/// Says whether the statement behind may be the one in front: it lies within, and has the same words.
fn hands_on(front: &Exchange, back: &Exchange) -> bool {
    front.request_at <= back.request_at + SKEW_NS
        && back.response_at.is_none_or(|at| at <= front.until() + SKEW_NS)
        && alike(front, back)
}

/// Says whether both have the same words, as far as is known.
fn alike(front: &Exchange, back: &Exchange) -> bool {
    let Some((front, back)) = front.statement.zip(back.statement) else { return false };
    front.dialect == back.dialect && front.shape.zip(back.shape).is_none_or(|(front, back)| front == back)
}

/// Gives the endpoints of a machine that a pooler joins; `exchanges` is what it was asked and asked itself.
fn pairs(machine: i32, mut exchanges: Vec<&Exchange>) -> Vec<Pair> {
    let shape_of = |exchange: &Exchange| {
        exchange.statement.filter(|statement| !statement.starts).and_then(|statement| statement.shape)
    };
    exchanges.retain(|exchange| shape_of(exchange).is_some());
    exchanges.sort_by_key(|exchange| (exchange.request_at, exchange.stream, exchange.number));
    // Of each front endpoint, the fronts that wait, by their shape.
    let mut waiting: BTreeMap<i32, HashMap<Option<u64>, Vec<&Exchange>, FixedState>> = BTreeMap::new();
    let mut counts: BTreeMap<Pair, (u32, u32)> = BTreeMap::new();
    let mut coming = exchanges.iter().filter(|exchange| exchange.accepted_by == Some(machine)).peekable();
    for back in exchanges.iter().filter(|exchange| exchange.opened_by == Some(machine)) {
        while let Some(front) = coming.next_if(|front| front.request_at <= back.request_at + SKEW_NS) {
            let alike = waiting.entry(front.endpoint).or_default().entry(shape_of(front)).or_default();
            alike.retain(|other| other.until() + SKEW_NS >= back.request_at);
            alike.push(front);
            alike.drain(..alike.len().saturating_sub(MOST_WAITING));
        }
        for (&front, shapes) in waiting.iter().filter(|&(&front, _)| front != back.endpoint).take(MOST_CANDIDATES) {
            let (same, all) = counts.entry((front, back.endpoint)).or_default();
            *all += 1;
            let fronts = shapes.get(&shape_of(back)).into_iter().flatten();
            *same += u32::from(fronts.rev().any(|front| front.stream != back.stream && hands_on(front, back)));
        }
    }
    let handed = counts.into_iter().filter(|&(_, (same, all))| same >= LEAST_ALIKE && 2 * same >= all);
    handed.map(|(pair, _)| pair).collect()
}
