//! Streams of a protocol that is not read here: each that goes both ways is one exchange.
//!
//! In: the parts of streams. Out: exchanges in the [`Ledger`], with their bytes and moments, and without words: who
//! opens a stream asks on it, as HTTP/0.9 does. Streams that go one way are no exchanges.
//! Bounded: [`MAX_STREAMS`] at once.

use std::collections::BTreeMap;

use super::inside::{Inside, Part};
use crate::exchange::Outcome;
use crate::exchange::ledger::Ledger;
use crate::stream::{Gap, Moment, Side};

const MAX_STREAMS: usize = 1024;

pub(super) struct Calls {
    protocol: &'static str,
    /// Their exchanges.
    open: BTreeMap<u64, u32>,
}

impl Calls {
    pub fn new(protocol: &'static str) -> Self {
        Self { protocol, open: BTreeMap::new() }
    }

    /// The exchange of a stream; a new one where a part begins it.
    fn number(&mut self, ledger: &mut Ledger, part: Part<'_>) -> Option<u32> {
        let Part { id, offset, .. } = part;
        if id & 0b10 != 0 {
            return None;
        }
        if let Some(&number) = self.open.get(&id) {
            return Some(number);
        }
        if offset > 0 || self.open.len() >= MAX_STREAMS {
            return None;
        }
        let number = ledger.open(self.protocol, id);
        if let Some(entry) = ledger.get(number) {
            entry.exchange.requester = if id & 1 == 0 { Side::Client } else { Side::Server };
        }
        self.open.insert(id, number);
        Some(number)
    }

    fn end(&mut self, ledger: &mut Ledger, id: u64, seen: Moment) {
        if let Some(number) = self.open.remove(&id)
            && let Some(entry) = ledger.get(number)
        {
            entry.exchange.ended = Some(seen);
            entry.exchange.outcome = Some(if seen.sender() == entry.exchange.requester {
                Outcome::Abandoned
            } else if entry.exchange.response.first.is_some() {
                Outcome::Cut
            } else {
                Outcome::Unanswered
            });
        }
        ledger.release();
    }
}

impl Inside for Calls {
    fn part(&mut self, ledger: &mut Ledger, from: Side, part: Part<'_>) {
        let Some(number) = self.number(ledger, part) else { return };
        let Some(entry) = ledger.get(number) else { return };
        let span = entry.exchange.message(from);
        if part.fin {
            span.done = true;
        } else {
            span.extend(part.seen, part.bytes.len() as u64);
        }
        if entry.exchange.request.done && entry.exchange.response.done {
            self.open.remove(&part.id);
        }
        ledger.release();
    }

    fn missing(&mut self, ledger: &mut Ledger, from: Side, id: u64, gap: Gap) {
        let entry = self.open.get(&id).and_then(|&number| ledger.get(number));
        if let Some(entry) = entry {
            entry.exchange.message(from).extend_unseen(gap.len);
            entry.exchange.doubt(0.5);
        }
    }

    fn reset(&mut self, ledger: &mut Ledger, _from: Side, id: u64, _code: u64, seen: Moment) {
        self.end(ledger, id, seen);
    }

    fn stop(&mut self, _ledger: &mut Ledger, _from: Side, _id: u64, _code: u64, _seen: Moment) {}

    fn finish(&mut self, ledger: &mut Ledger) {
        self.open.clear();
        ledger.release_all();
    }

    fn app(&self) -> Option<&'static str> {
        Some(self.protocol)
    }
}
