//! A stream of messages in each direction: follows both, finds its place again after missing bytes, and hands every
//! message to the protocol that knows what it means.
//!
//! In: chunks and gaps. Out: calls of a [`Protocol`], which writes exchanges into the [`Ledger`]. Non-goals: protocols
//! over datagrams, and protocols of which no message tells its length. What is no message is read as turns.
//!
//! **To add a protocol**: implement [`Message`] for what one message says and [`Protocol`] for what the two sides say to
//! each other, and add rows to `sniffers.rs` whose reader is `Messages::new(…)`.

use super::backlog::{Backlog, Event};
use super::framed::{Framed, Message, Missed, Whole};
use super::generic::Unread;
use super::ledger::Ledger;
use super::reader::{Carrier, Onward, Opening, Reader, SNIFFED, Start, Switch};
use super::sniffers;
use crate::stream::{BySide, Chunk, Gap, Moment, Side};

/// What the messages of a protocol mean.
pub(super) trait Protocol {
    type Message: Message;
    const NAME: &'static str;

    /// Does a packet of that side begin with a message?
    fn begins(packet: &[u8], asks: bool) -> bool;

    /// What is needed to read the next message of that side.
    fn context(&self, asks: bool) -> <Self::Message as Message>::Context;

    /// A message is over.
    fn message(&mut self, ledger: &mut Ledger, from: Side, whole: Whole<Self::Message>);

    /// Bytes of that side are missing, and with them at least the end of a message. By `by` they had come.
    fn lost(&mut self, ledger: &mut Ledger, from: Side, by: Moment);

    /// What follows the latest message, where that is something else.
    fn next(&mut self) -> Option<Next> {
        None
    }

    /// First byte of messages that were handed over, but are not yet in the ledger.
    fn pending(&self) -> Option<Moment> {
        None
    }

    /// The connection is over, or something else follows.
    fn finish(&mut self, _ledger: &mut Ledger) {}
}

/// What may follow a protocol's messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Next {
    /// Anything: it has to be found out. TLS, most likely.
    Anything,
    /// Bytes that are not read here.
    Unread,
}

/// Reads a protocol of messages.
pub(super) struct Messages<P: Protocol> {
    protocol: P,
    pub(super) streams: BySide<Framed<P::Message>>,
    start: Start,
    /// A packet may yet begin with something else.
    may_switch: bool,
}

impl<P: Protocol> Messages<P> {
    pub fn new(opening: &Opening<'_>, protocol: P) -> Self {
        Self::of(opening.start, opening.may_switch, protocol)
    }

    /// From the middle of a connection on, after which `may_switch` says whether anything else follows.
    pub fn of(start: Start, may_switch: bool, protocol: P) -> Self {
        Self { protocol, streams: BySide { client: Framed::new(start), server: Framed::new(start) }, start, may_switch }
    }

    /// Something else follows.
    fn leave<'a>(&mut self, ledger: &mut Ledger, onward: Onward, rest: Chunk<'a>) -> Switch<'a> {
        self.finish(ledger);
        Switch { onward, name: Some(P::NAME), early: None, rest }
    }

    /// The first `had` bytes of what turned out to be no message, which came before this chunk.
    fn early(&self, from: Side, had: usize, chunk: Chunk<'_>) -> Option<Backlog> {
        let stream = &self.streams[from];
        let (bytes, seen) = (stream.buffered().get(..had).filter(|buffered| !buffered.is_empty())?, stream.pending()?);
        let mut early = Backlog::new(had);
        let offset = chunk.offset.saturating_sub(had as u64);
        early.push(Event::Data(from, Chunk { bytes, offset, seen, cut: 0, acked: chunk.acked }));
        Some(early)
    }

    /// What is no message is taken as turns.
    fn unread(&self) -> Onward {
        Onward::Reader(Box::new(Unread::of(self.start, P::NAME, self.may_switch)))
    }

    fn message(&mut self, ledger: &mut Ledger, from: Side, whole: Option<Whole<P::Message>>) {
        if let Some(whole) = whole {
            self.protocol.message(ledger, from, whole);
        }
    }

    /// Passes over bytes that the capture does not hold. `sent`: when they were, where a snap length cut them off.
    fn pass_over(&mut self, ledger: &mut Ledger, from: Side, gap: Gap, sent: Option<Moment>) {
        let context = self.protocol.context(ledger.asks(from));
        match self.streams[from].miss(gap, sent, context) {
            Missed::Inside(whole) => self.message(ledger, from, whole),
            Missed::OutOfStep(cut_short) => {
                self.message(ledger, from, cut_short);
                self.protocol.lost(ledger, from, gap.seen);
            }
        }
    }
}

impl<P: Protocol> Reader for Messages<P> {
    fn data<'a>(&mut self, ledger: &mut Ledger, from: Side, chunk: Chunk<'a>) -> Option<Switch<'a>> {
        let first = chunk.bytes.get(..SNIFFED).unwrap_or(chunk.bytes);
        let asks = ledger.asks(from);
        if self.streams[from].looks_foreign(ledger, chunk.seen, || P::begins(first, asks))
            && self.may_switch
            && let Some(row) = sniffers::judge_later(Carrier::Stream, first, Start::Beginning)
        {
            return Some(self.leave(ledger, Onward::Row(row), chunk));
        }
        if self.streams[from].is_out_of_step() {
            self.streams[from].go_on(chunk.seen);
        }
        // Where the message under way begins in this chunk, and what is kept of it from chunks before.
        let (mut rest, mut begun, mut had) = (chunk, chunk, self.streams[from].buffered().len());
        while !rest.bytes.is_empty() && !self.streams[from].is_out_of_step() {
            if self.streams[from].is_between() {
                (begun, had) = (rest, 0);
            }
            let context = self.protocol.context(asks);
            let Ok((taken, whole)) = self.streams[from].take(rest.bytes, rest.seen, rest.offset, context) else {
                let (early, unread) = (self.early(from, had, begun), self.unread());
                return Some(Switch { early, ..self.leave(ledger, unread, begun) });
            };
            self.message(ledger, from, whole);
            let bytes = rest.bytes.get(taken..).unwrap_or_default();
            rest = Chunk { bytes, offset: rest.offset.saturating_add(taken as u64), ..rest };
            match self.protocol.next() {
                None => {}
                Some(Next::Anything) => return Some(self.leave(ledger, Onward::Anything, rest)),
                Some(Next::Unread) => {
                    let unread = self.unread();
                    return Some(self.leave(ledger, unread, rest));
                }
            }
        }
        if rest.cut > 0 {
            let gap = Gap::new(rest.offset.saturating_add(rest.bytes.len() as u64), rest.cut.into(), rest.seen);
            self.pass_over(ledger, from, gap, Some(rest.seen));
        }
        ledger.release();
        None
    }

    fn gap(&mut self, ledger: &mut Ledger, from: Side, gap: Gap) {
        self.pass_over(ledger, from, gap, None);
        ledger.release();
    }

    /// The connection is over: what nobody answered goes out as it stands.
    fn finish(&mut self, ledger: &mut Ledger) {
        for from in [Side::Client, Side::Server] {
            let context = self.protocol.context(ledger.asks(from));
            let cut_short = self.streams[from].finish(ledger, context);
            self.message(ledger, from, cut_short);
        }
        self.protocol.finish(ledger);
        ledger.release_all();
    }

    /// First byte that is not yet in the ledger.
    fn pending(&self) -> Option<Moment> {
        Moment::earliest([self.streams.client.pending(), self.streams.server.pending(), self.protocol.pending()])
    }

    #[cfg(test)]
    fn held(&self) -> usize {
        self.streams.client.held() + self.streams.server.held()
    }
}
