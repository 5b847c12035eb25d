//! QUIC without keys of its own: its handshake is read, what is said after it is sealed (RFC 9001).
//!
//! In: datagrams of both sides. Out: handshakes in the [`Ledger`], and the time after each as a stretch of which nobody
//! can say what went on: every packet of that time is protected, acknowledgements too. Packets and CRYPTO frames are
//! the business of [`crate::quic`], messages that of [`crate::tls`].

use super::ledger::Ledger;
use super::reader::{Reader, Switch};
use super::sniffers::Verdict;
use crate::quic::{Event, Milestones, Quic, sniff};
use crate::stream::{Chunk, Gap, Moment, Side};
use crate::tls::{CryptoHandshake, Handshake, Outcome};

/// Does a client begin QUIC with this datagram?
pub(super) fn client(datagram: &[u8]) -> Verdict {
    sent_by(datagram, Some(Side::Client))
}

/// Does a server answer with this datagram?
pub(super) fn server(datagram: &[u8]) -> Verdict {
    sent_by(datagram, Some(Side::Server))
}

/// A datagram of QUIC that does not say who sent it.
pub(super) fn either(datagram: &[u8]) -> Verdict {
    sent_by(datagram, None)
}

fn sent_by(datagram: &[u8], sender: Option<Side>) -> Verdict {
    if sniff(datagram).is_some_and(|sniffed| sniffed.sender == sender) { Verdict::Yes } else { Verdict::No }
}

#[derive(Default)]
pub(super) struct OverQuic {
    quic: Quic,
    /// Until the client has sent 1-RTT packets, or another connection begins at the same ports.
    handshake: Option<CryptoHandshake>,
    /// The first datagram of the handshake.
    begun: Option<Moment>,
    /// From when to when everything was sealed.
    sealed: Option<(Moment, Moment)>,
}

impl OverQuic {
    /// The client has what it needs to send, or nothing more will come: the handshake is handed out.
    fn end(&mut self, ledger: &mut Ledger, facts: &Milestones) {
        self.begun = None;
        let Some(mut handshake) = self.handshake.take() else { return };
        if let Some(close) = facts.close {
            handshake.close(close.from, close.code, close.seen);
        }
        if let Some(handshake) = handshake.finish() {
            ledger.handshake(with_packets(handshake, facts));
        }
    }
}

/// Adds what the types of packets tell.
fn with_packets(mut handshake: Box<Handshake>, facts: &Milestones) -> Box<Handshake> {
    handshake.quic_version = facts.version.map(|version| version.name().into());
    handshake.retry = facts.retry;
    handshake.server_done = handshake.server_done.or(facts.server_flight_end);
    if handshake.outcome == Outcome::Complete {
        // Its first packet at the Handshake level may only acknowledge: the Finished comes with it or after it.
        handshake.client_finished = facts.handshake.client.or(handshake.client_finished);
    }
    handshake
}

impl Reader for OverQuic {
    fn data<'a>(&mut self, ledger: &mut Ledger, from: Side, chunk: Chunk<'a>) -> Option<Switch<'a>> {
        let Self { quic, handshake, begun, .. } = self;
        let mut over = None;
        quic.datagram(from, chunk.bytes, chunk.seen, |event| match event {
            Event::Crypto { from, bytes, seen } => {
                begun.get_or_insert(chunk.seen);
                handshake.get_or_insert_default().data(from, bytes, seen);
            }
            Event::Over(facts) => {
                // What was known is of the connection before; the bytes that follow are of the next.
                over = handshake.take().map(|before| (before, facts));
            }
        });
        if let Some((before, facts)) = over {
            let next = self.handshake.replace(before);
            self.end(ledger, &facts);
            (self.handshake, self.begun) = (next, Some(chunk.seen));
        }
        let facts = *self.quic.facts();
        if let (Some(ready), Some(handshake)) = (facts.one_rtt.client, &mut self.handshake) {
            handshake.ready(ready);
            self.end(ledger, &facts);
        }
        if self.handshake.is_none() {
            let (since, until) = self.sealed.unwrap_or((chunk.seen, chunk.seen));
            self.sealed = Some((since, until.max(chunk.seen)));
        }
        None
    }

    /// Datagrams that were not captured are not known to be missing.
    fn gap(&mut self, _ledger: &mut Ledger, _from: Side, _gap: Gap) {}

    /// Nor does UDP say that one side sends no more.
    fn fin(&mut self, _ledger: &mut Ledger, _from: Side, _seen: Moment) {}

    fn finish(&mut self, ledger: &mut Ledger) {
        let facts = *self.quic.facts();
        self.end(ledger, &facts);
        if let Some((since, until)) = self.sealed.take() {
            ledger.unseen(since, until);
        }
        ledger.release_all();
    }

    fn pending(&self) -> Option<Moment> {
        Moment::earliest([self.begun, self.sealed.map(|(since, _)| since)])
    }
}
