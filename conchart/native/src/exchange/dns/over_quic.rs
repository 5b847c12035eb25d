//! DNS over QUIC (RFC 9250): every query has a stream of its own, and stands there as over TCP, behind its length.
//!
//! In: the parts of streams. Out: exchanges in the [`Ledger`]. Bounded: [`MAX_STREAMS`] at once.

use std::collections::BTreeMap;

use super::{Dns, PROTOCOL};
use crate::exchange::Outcome;
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
        for question in self.streams.remove(&id).iter().flat_map(|dns| dns.queries.iter()) {
            if let Some(entry) = ledger.get(question.number).filter(|_| !question.about.answered) {
                entry.exchange.ended = Some(seen);
                let is_asker = seen.sender() == entry.exchange.requester;
                entry.exchange.outcome = Some(if is_asker { Outcome::Abandoned } else { Outcome::Unanswered });
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

#[cfg(test)]
mod tests {
    use super::super::tests::{NXDOMAIN, QUERY, RESPONSE};
    use super::*;
    use crate::exchange::DnsOver;

    fn moment(frame: u64) -> Moment {
        Moment::new(frame.cast_signed() * 1000, frame, Side::Client)
    }

    /// A message of ID 0 behind its length.
    fn framed(message: &[u8]) -> Vec<u8> {
        let length = u16::try_from(message.len()).unwrap_or_default().to_be_bytes();
        [&length[..], &[0, 0], message.get(2..).unwrap_or_default()].concat()
    }

    /// Frames of query and response, RCODE, and where it was given up.
    type Short = (Option<u64>, Option<u64>, Option<u32>, Option<u64>);

    fn all(feed: impl FnOnce(&mut DnsOverQuic, &mut Ledger)) -> Vec<Short> {
        let (mut dns, mut ledger) = (DnsOverQuic::default(), Ledger::default());
        feed(&mut dns, &mut ledger);
        dns.finish(&mut ledger);
        std::iter::from_fn(|| ledger.next_exchange())
            .map(|exchange| {
                assert_eq!((exchange.protocol, exchange.dns_over), ("dns", Some(DnsOver::Quic)));
                let frame = |moment: Option<Moment>| moment.map(|moment| moment.frame());
                (frame(exchange.request.last), frame(exchange.response.first), exchange.status, frame(exchange.ended))
            })
            .collect()
    }

    fn part(id: u64, frame: u64, offset: u64, bytes: &[u8]) -> Part<'_> {
        Part { id, offset, bytes, fin: false, seen: moment(frame) }
    }

    #[test]
    fn every_stream_is_a_query_though_all_have_one_id() {
        let (query, response, refusal) = (framed(QUERY), framed(RESPONSE), framed(NXDOMAIN));
        let found = all(|dns, ledger| {
            dns.part(ledger, Side::Client, part(0, 1, 0, &query));
            dns.part(ledger, Side::Client, part(4, 2, 0, &query));
            dns.part(ledger, Side::Server, part(4, 3, 0, &refusal));
            dns.part(ledger, Side::Server, part(0, 4, 0, &response));
        });
        assert_eq!(found, [(Some(1), Some(4), Some(0), None), (Some(2), Some(3), Some(3), None)]);
    }

    #[test]
    fn a_message_may_come_in_pieces() {
        let (query, response) = (framed(QUERY), framed(RESPONSE));
        let (first, rest) = query.split_at(1);
        let found = all(|dns, ledger| {
            dns.part(ledger, Side::Client, part(0, 1, 0, first));
            dns.part(ledger, Side::Client, part(0, 2, 1, rest));
            dns.part(ledger, Side::Server, part(0, 3, 0, &response));
        });
        assert_eq!(found, [(Some(2), Some(3), Some(0), None)]);
    }

    #[test]
    fn a_query_that_is_given_up_waits_no_longer() {
        let query = framed(QUERY);
        let found = all(|dns, ledger| {
            dns.part(ledger, Side::Client, part(0, 1, 0, &query));
            dns.stop(ledger, Side::Client, 0, 0, moment(5));
        });
        assert_eq!(found, [(Some(1), None, None, Some(5))]);
        // Streams of a server, and those that go one way, have no queries.
        assert_eq!(all(|dns, ledger| dns.part(ledger, Side::Client, part(2, 1, 0, &query))), []);
    }
}
