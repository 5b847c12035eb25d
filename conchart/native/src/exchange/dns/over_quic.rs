//! DNS over QUIC (RFC 9250): every query has a stream of its own, and stands there as over TCP, behind its length.
//!
//! In: the parts of streams. Out: exchanges in the [`Ledger`]. Bounded: [`MAX_STREAMS`] at once.

use std::collections::BTreeMap;

use super::{Dns, PROTOCOL};
use crate::exchange::ledger::Ledger;
use crate::exchange::quic::inside::{Inside, Part};
use crate::exchange::reader::Reader;
use crate::stream::{Chunk, Gap, Moment, Side};

const MAX_STREAMS: usize = 1024;

#[derive(Default)]
pub(in crate::exchange) struct DnsOverQuic {
    streams: BTreeMap<u64, Dns>,
}

impl DnsOverQuic {
    /// The stream, unless it began before or is none of a query (RFC 9250 section 4.2).
    fn stream(&mut self, id: u64, offset: u64) -> Option<&mut Dns> {
        if id & 0b11 != 0 {
            return None;
        }
        if offset == 0 && !self.streams.contains_key(&id) {
            if self.streams.len() >= MAX_STREAMS {
                self.streams.pop_first();
            }
            self.streams.insert(id, Dns::over_quic());
        }
        self.streams.get_mut(&id)
    }

    /// Nothing more is said on this stream.
    fn end(&mut self, ledger: &mut Ledger, id: u64, seen: Moment) {
        for asked in self.streams.remove(&id).iter().flat_map(|dns| dns.asked.iter()) {
            if let Some(entry) = ledger.get(asked.number).filter(|_| !asked.about.answered) {
                entry.exchange.ended = Some(seen);
            }
        }
        ledger.release();
    }
}

impl Inside for DnsOverQuic {
    fn part(&mut self, ledger: &mut Ledger, from: Side, part: Part<'_>) {
        let Part { id, offset, bytes, fin, seen } = part;
        if fin {
            if from == Side::Server {
                self.end(ledger, id, seen);
            }
        } else if let Some(dns) = self.stream(id, offset) {
            // Who sends bytes over QUIC need not say what it has received.
            dns.data(ledger, from, Chunk { bytes, cut: 0, offset, acked: 0, seen });
        }
    }

    fn missing(&mut self, ledger: &mut Ledger, from: Side, id: u64, gap: Gap) {
        if let Some(dns) = self.stream(id, gap.offset) {
            dns.gap(ledger, from, gap);
        }
    }

    fn reset(&mut self, ledger: &mut Ledger, _from: Side, id: u64, _code: u64, seen: Moment) {
        self.end(ledger, id, seen);
    }

    /// A client that wants no answer any more (RFC 9250 section 4.3.1).
    fn stop(&mut self, ledger: &mut Ledger, from: Side, id: u64, _code: u64, seen: Moment) {
        if from == Side::Client {
            self.end(ledger, id, seen);
        }
    }

    fn finish(&mut self, ledger: &mut Ledger) {
        for mut dns in std::mem::take(&mut self.streams).into_values() {
            dns.finish(ledger);
        }
        ledger.release_all();
    }

    fn pending(&self) -> Option<Moment> {
        Moment::earliest(self.streams.values().map(Reader::pending))
    }

    fn app(&self) -> Option<&'static str> {
        Some(PROTOCOL)
    }
}
