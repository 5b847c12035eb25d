//! One connection: what its two sides send goes in, what they said to each other comes out.
//!
//! In: chunks, gaps and FINs of both sides in causal order. Out: exchanges, TLS handshakes, and stretches of time in
//! which nobody can say what went on. How TCP cut the streams never changes what is found. What is spoken is no
//! matter here: [`Layer`] finds the reader, and readers write into the [`Ledger`].

use super::backlog::Event;
use super::layer::Layer;
use super::ledger::passing::{Http3Frame, QuicFrame};
use super::ledger::{Delay, Ledger, Way};
use super::reader::Carrier;
use super::statements::Statements;
use super::{ContentMessage, Exchange};
use crate::keys::Keys;
use crate::packet::Endpoint;
use crate::stream::{BySide, Chunk, Gap, Moment, Side};
use crate::tls::{Handshake, Transcript};

/// The exchanges of one connection.
pub struct Conversation {
    ledger: Ledger,
    layer: Layer,
    /// The first bytes, and who sent them.
    first: Option<(Side, Moment)>,
}

impl Conversation {
    /// `midstream`: the capture began after the connection; `keys`: where secrets may be known.
    #[must_use]
    pub fn new(carrier: Carrier, midstream: bool, keys: Option<Keys>) -> Self {
        Self { ledger: Ledger::default(), layer: Layer::new(carrier, midstream, keys), first: None }
    }

    /// How much is told of statements and keys: nothing was read yet.
    #[must_use]
    pub fn telling(mut self, statements: Statements) -> Self {
        self.ledger.statements = statements;
        self
    }

    /// What goes by in TLS, one by one: nothing where it is `None`, which is as it begins.
    pub fn transcript(&mut self) -> &mut Option<Box<Transcript>> {
        &mut self.ledger.transcript
    }

    /// What went by in QUIC and in HTTP/3 since it was fetched last, where a transcript is wanted.
    pub fn frames(&mut self) -> (Vec<QuicFrame>, Vec<Http3Frame>) {
        let passing = self.ledger.passing.as_mut();
        passing.map(|it| (std::mem::take(&mut it.quic), std::mem::take(&mut it.http3))).unwrap_or_default()
    }

    /// The next bytes of one side's stream, or its next datagram.
    pub fn data(&mut self, from: Side, chunk: Chunk<'_>) {
        if !chunk.is_empty() {
            self.first.get_or_insert((from, chunk.seen));
        }
        self.layer.event(&mut self.ledger, Event::Data(from, chunk));
    }

    /// Bytes that were received but not captured.
    pub fn gap(&mut self, from: Side, gap: Gap) {
        self.first.get_or_insert((Side::Client, gap.seen));
        self.layer.event(&mut self.ledger, Event::Gap(from, gap));
    }

    /// The client has moved: how the next datagram went.
    pub fn by_way(&mut self, way: Way) {
        self.ledger.way = way;
    }

    /// A FIN in order, or a RST: that side sends no more.
    pub fn fin(&mut self, from: Side, seen: Moment) {
        self.layer.event(&mut self.ledger, Event::Fin(from, seen));
    }

    /// The connection is over: closed, given up, or the capture ended. Everything can be handed out.
    pub fn finish(&mut self) {
        self.layer.finish(&mut self.ledger);
    }

    /// Is there anything to be handed out?
    #[inline]
    #[must_use]
    pub fn has_news(&self) -> bool {
        self.ledger.has_news()
    }

    /// Exchanges that are over, in the order of their number.
    pub fn next_exchange(&mut self) -> Option<Exchange> {
        self.ledger.next_exchange()
    }

    /// Messages inside the content of exchanges, in the order in which they ended.
    pub fn next_message(&mut self) -> Option<ContentMessage> {
        self.ledger.next_message()
    }

    /// TLS handshakes that are over, once it is known whether their keys open what follows.
    pub fn next_handshake(&mut self) -> Option<Box<Handshake>> {
        self.ledger.next_handshake()
    }

    /// Stretches of which nobody can say what went on: from the last byte before to the last byte that made no sense.
    pub fn next_unseen(&mut self) -> Option<(Moment, Moment)> {
        self.ledger.next_unseen()
    }

    /// Connection IDs of QUIC by which packets from elsewhere are known to be of this conversation.
    #[inline]
    pub fn next_connection_id(&mut self) -> Option<Box<[u8]>> {
        self.ledger.next_connection_id()
    }

    /// What kept bytes from coming, in the order in which it ended.
    pub fn next_delay(&mut self) -> Option<Delay> {
        self.ledger.next_delay()
    }

    /// Nanoseconds between the capture point and each end and back, where the protocol tells.
    #[must_use]
    pub fn rtt(&self) -> BySide<Option<i64>> {
        self.ledger.rtt
    }

    /// DATAGRAM frames of each side (RFC 9221), where QUIC is opened.
    pub fn datagrams(&self) -> Option<BySide<u64>> {
        self.ledger.datagrams
    }

    /// QUIC: one side has forgotten the connection, and says so (RFC 9000 section 10.3).
    #[must_use]
    pub fn reset(&self) -> Option<Moment> {
        self.ledger.reset
    }

    /// QUIC: one side closes the connection (RFC 9000 section 10.2).
    #[must_use]
    pub fn closed(&self) -> Option<Moment> {
        self.ledger.closed
    }

    /// First moment of the oldest exchange or handshake not yet handed out: nothing that is still
    /// to come begins before it. `None` when nothing is under way.
    #[must_use]
    pub fn earliest_open(&mut self) -> Option<Moment> {
        Moment::earliest([self.ledger.earliest(), self.layer.pending()])
    }

    /// Exchanges that are not yet handed out, as they are now.
    pub fn under_way(&self) -> impl Iterator<Item = &Exchange> {
        self.ledger.under_way()
    }

    /// The client that a PROXY header on this connection names.
    #[must_use]
    pub fn announced(&self) -> Option<Endpoint> {
        self.ledger.announced
    }

    /// The connection's first bytes, where the server sent them.
    #[must_use]
    pub fn greeting(&self) -> Option<Moment> {
        self.first.and_then(|(from, seen)| (from == Side::Server).then_some(seen))
    }

    /// What the connection speaks: `tls`, `http/1.0`, `http/1.1`, `h2`, `unknown`; `None` when no
    /// byte was sent. A tunnel is what its CONNECT was written in, opened TLS what is known to be inside.
    #[must_use]
    pub fn app(&self) -> Option<&'static str> {
        self.layer.app()
    }

    /// Bytes of the streams that are kept at the moment.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.layer.held()
    }
}
