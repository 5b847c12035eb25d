//! What was found on one connection: its exchanges from their first byte until they are handed out, its TLS
//! handshakes, and the stretches of time of which nobody can say what went on.
//!
//! In: what readers find, at any depth: those inside TLS write here too. Out: the same, in order: numbers are given in
//! the order in which exchanges begin, and handshakes end, and handed out in that order. Who asks is written here, and
//! nowhere else. Bounded: at most [`MAX_OPEN`] exchanges are open; beyond that the oldest goes out as it is.

mod beginnings;
pub(super) mod passing;

use std::collections::VecDeque;

use self::beginnings::Beginnings;
use self::passing::Passing;
use super::statements::Statements;
use super::{ContentMessage, Exchange};
use crate::packet::Endpoint;
use crate::quic::{Held, Lost, Path, Spurious};
use crate::stream::{BySide, Moment, Side};
use crate::tls::{Handshake, Transcript};

/// Pipelined requests that may wait for their response.
const MAX_OPEN: usize = 1024;
/// So few open exchanges are looked at one by one.
const FEW: usize = 16;
/// Confidence in exchanges of which something may be missing, or a boundary is guessed.
pub(super) const GUESSED: f64 = 0.5;

/// What kept bytes from coming, as the protocol tells.
#[derive(Clone, Copy, Debug)]
pub enum Delay {
    Held(Held),
    /// One that nothing ended: it lasts until the connection begins to close.
    UnderWay(Held),
    /// An earlier one of them was no loss.
    Late(Spurious),
    /// A packet that the peer's acknowledgements leave out.
    Lost(Lost),
    /// An end's address is validated.
    Path(Path),
}

/// The way of a datagram of a client that may have moved (RFC 9000 section 9).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Way {
    /// Between endpoints that have heard of each other.
    Heard,
    /// From an endpoint where the client has heard nothing yet, or to one that it has left.
    Unheard,
    /// The server's first to the client's new endpoint, which only checks the path: it is short, or as long as the server
    /// may make it (section 8.2.1).
    Check,
}

/// An exchange that is still going on.
pub(super) struct Entry {
    pub exchange: Exchange,
    /// Offset of the request's first byte in its stream.
    pub offset: u64,
}

pub(super) struct Ledger {
    /// Who asks: the client, as long as the protocol does not say otherwise.
    pub requester: Side,
    /// How much readers tell of statements and keys.
    pub statements: Statements,
    /// The client that a PROXY header names, the first one.
    pub announced: Option<Endpoint>,
    next: u32,
    /// Invariant: numbers are consecutive and end at `next - 1`.
    open: VecDeque<Entry>,
    /// When they began, where there are more than [`FEW`].
    beginnings: Option<Box<Beginnings>>,
    /// Exchanges before this number have at most this confidence.
    doubted: (u32, f64),
    ready: VecDeque<Exchange>,
    /// Few connections have any.
    messages: VecDeque<ContentMessage>,
    unseen: VecDeque<(Moment, Moment)>,
    next_handshake: u32,
    handshakes: VecDeque<Box<Handshake>>,
    /// What goes by in TLS, one by one, where that is wanted.
    pub transcript: Option<Box<Transcript>>,
    /// What goes by in QUIC, where the same is wanted of it.
    pub passing: Option<Box<Passing>>,
    /// Connection IDs of QUIC by which the client, wherever it goes, is known to go on here.
    connection_ids: Vec<Box<[u8]>>,
    /// What kept bytes of QUIC's from coming.
    delays: VecDeque<Delay>,
    /// Nanoseconds between the capture point and each end and back, where the protocol tells.
    pub rtt: BySide<Option<i64>>,
    /// How the latest datagram went, where the client goes on from another endpoint.
    pub way: Way,
    /// One side has forgotten the connection.
    pub reset: Option<Moment>,
    /// QUIC: one side has closed it, and says so.
    pub closed: Option<Moment>,
    /// DATAGRAM frames of each side (RFC 9221), where QUIC is opened.
    pub datagrams: Option<BySide<u64>>,
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            requester: Side::Client,
            statements: Statements::default(),
            announced: None,
            next: 0,
            open: VecDeque::new(),
            beginnings: None,
            doubted: (0, f64::INFINITY),
            ready: VecDeque::new(),
            messages: VecDeque::new(),
            unseen: VecDeque::new(),
            next_handshake: 0,
            handshakes: VecDeque::new(),
            transcript: None,
            passing: None,
            connection_ids: Vec::new(),
            delays: VecDeque::new(),
            rtt: BySide::default(),
            way: Way::Heard,
            reset: None,
            closed: None,
            datagrams: None,
        }
    }
}

impl Ledger {
    /// Is it this side that asks?
    pub fn asks(&self, from: Side) -> bool {
        from == self.requester
    }

    /// Begins an exchange and returns its number.
    pub fn open(&mut self, protocol: &'static str, offset: u64) -> u32 {
        if self.open.len() >= MAX_OPEN
            && let Some(oldest) = self.open.pop_front()
        {
            self.ready.push_back(oldest.exchange);
        }
        let number = self.next;
        self.next = self.next.saturating_add(1);
        let exchange = Exchange { number, requester: self.requester, protocol, confidence: 1.0, ..Exchange::default() };
        reserve_one(&mut self.open);
        self.open.push_back(Entry { exchange, offset });
        number
    }

    /// The open exchange of that number; `None` once it can be handed out.
    pub fn get(&mut self, number: u32) -> Option<&mut Entry> {
        if let Some(beginnings) = &mut self.beginnings {
            beginnings.touch(number);
            if beginnings.len() > 8 * MAX_OPEN {
                self.beginnings = None;
            }
        }
        self.open.get_mut(place(&self.open, number)?)
    }

    /// The oldest open exchange whose response has not begun and that `fits`.
    pub fn unanswered(&self, fits: impl Fn(&Entry) -> bool) -> Option<u32> {
        let waiting = |e: &&Entry| {
            let response = &e.exchange.response;
            response.first.is_none() && !response.done && fits(e)
        };
        self.open.iter().find(waiting).map(|e| e.exchange.number)
    }

    /// Lowers the confidence of every open exchange. Those of which as much was said before stay as they are.
    pub fn doubt(&mut self, confidence: f64) {
        let (before, limit) = self.doubted;
        let skipped = if confidence >= limit { place(&self.open, before).unwrap_or(0) } else { 0 };
        for entry in self.open.iter_mut().skip(skipped) {
            entry.exchange.doubt(confidence);
        }
        self.doubted = (self.next, confidence);
    }

    /// Bytes are missing that may be the response to it, or part of that: they had come by `by`. `over`: whether more of it
    /// comes cannot be known, so that it ends there.
    pub fn may_lack(&mut self, number: u32, by: Moment, over: bool) {
        if let Some(Entry { exchange, .. }) = self.get(number) {
            exchange.doubt(GUESSED);
            exchange.response.revealed.get_or_insert(by);
            if over {
                exchange.ended = Some(by);
            }
        }
    }

    /// Takes back the newest exchange, which turned out not to be one.
    pub fn withdraw(&mut self, number: u32) -> Option<Exchange> {
        if self.open.back()?.exchange.number != number {
            return None;
        }
        self.next = number;
        self.doubted.0 = self.doubted.0.min(number);
        self.open.pop_back().map(|entry| entry.exchange)
    }

    /// Moves exchanges that are over, oldest first, to those that can be handed out.
    pub fn release(&mut self) {
        let over = |e: &Entry| {
            let (request, response) = (&e.exchange.request, &e.exchange.response);
            e.exchange.ended.is_some() || response.done && (request.done || request.first.is_none())
        };
        while self.open.front().is_some_and(over) {
            reserve_one(&mut self.ready);
            self.ready.extend(self.open.pop_front().map(|entry| entry.exchange));
        }
    }

    /// Nothing more will come: every exchange is handed out as it stands.
    pub fn release_all(&mut self) {
        self.ready.extend(self.open.drain(..).map(|e| e.exchange));
    }

    /// Notes a stretch in which bytes are missing and nobody can say what went on.
    pub fn unseen(&mut self, from: Moment, to: Moment) {
        if from != to {
            self.unseen.push_back((from, to));
        }
    }

    /// Takes in a message inside the content of an exchange.
    pub fn message(&mut self, message: ContentMessage) {
        self.messages.push_back(message);
    }

    /// Takes in a TLS handshake of which all is known. Those inside TLS are numbered on from those outside.
    pub fn handshake(&mut self, mut handshake: Box<Handshake>) {
        handshake.number = self.next_handshake;
        self.next_handshake = self.next_handshake.saturating_add(1);
        self.handshakes.push_back(handshake);
    }

    /// The client may go on from elsewhere, and is known by this connection ID.
    pub fn connection_id(&mut self, cid: &[u8]) {
        if self.connection_ids.len() < MAX_OPEN {
            self.connection_ids.push(cid.into());
        }
    }

    /// The next connection ID of that kind.
    pub fn next_connection_id(&mut self) -> Option<Box<[u8]>> {
        self.connection_ids.pop()
    }

    /// Takes in what kept bytes from coming.
    pub fn delay(&mut self, delay: Delay) {
        if self.delays.len() < MAX_OPEN {
            self.delays.push_back(delay);
        }
    }

    pub fn next_delay(&mut self) -> Option<Delay> {
        self.delays.pop_front()
    }

    /// Is there anything to be handed out?
    #[inline]
    pub fn has_news(&self) -> bool {
        !self.ready.is_empty()
            || !self.unseen.is_empty()
            || !self.handshakes.is_empty()
            || !self.messages.is_empty()
            || !self.delays.is_empty()
            || self.transcript.as_ref().is_some_and(|transcript| !transcript.is_empty())
            || self.passing.as_ref().is_some_and(|passing| !passing.is_empty())
    }

    pub fn next_handshake(&mut self) -> Option<Box<Handshake>> {
        self.handshakes.pop_front()
    }

    pub fn next_exchange(&mut self) -> Option<Exchange> {
        self.ready.pop_front()
    }

    pub fn next_message(&mut self) -> Option<ContentMessage> {
        self.messages.pop_front()
    }

    pub fn next_unseen(&mut self) -> Option<(Moment, Moment)> {
        self.unseen.pop_front()
    }

    /// The exchange that switched to another protocol, unless it was handed out.
    pub fn switched(&self) -> Option<Exchange> {
        self.ready.iter().rev().find(|exchange| exchange.status == Some(101)).cloned()
    }

    /// Exchanges that are not yet handed out.
    pub fn under_way(&self) -> impl Iterator<Item = &Exchange> {
        self.ready.iter().chain(self.open.iter().map(|entry| &entry.exchange))
    }

    /// First byte of all that is not yet handed out. It need not be the oldest exchange's: of that, nobody may have
    /// seen the request.
    pub fn earliest(&mut self) -> Option<Moment> {
        let open = self.earliest_open();
        let ready = self.ready.iter().map(Exchange::opened);
        let hellos = self.handshakes.iter().map(|handshake| handshake.hello);
        Moment::earliest(ready.chain(hellos).chain([open]))
    }

    fn earliest_open(&mut self) -> Option<Moment> {
        if self.open.len() <= FEW {
            self.beginnings = None;
            return Moment::earliest(self.open.iter().map(|entry| entry.exchange.opened()));
        }
        // Entries that are no longer good are fewer than those that are, or the index is made anew.
        let limit = 4 * self.open.len();
        let beginnings = self.beginnings.take().filter(|index| index.len() <= limit);
        let mut beginnings = beginnings.unwrap_or_else(|| {
            let mut new = Box::<Beginnings>::default();
            self.open.iter().for_each(|entry| new.touch(entry.exchange.number));
            new
        });
        let began = |number| self.open.get(place(&self.open, number)?)?.exchange.opened();
        let earliest = beginnings.earliest(began);
        self.beginnings = Some(beginnings);
        earliest
    }
}

/// Where the exchange of that number is in `open`, or would be.
fn place(open: &VecDeque<Entry>, number: u32) -> Option<usize> {
    usize::try_from(number.checked_sub(open.front()?.exchange.number)?).ok()
}

/// Most connections have one exchange at a time: a queue makes room for four at its first.
fn reserve_one<T>(queue: &mut VecDeque<T>) {
    if queue.capacity() == 0 {
        queue.reserve_exact(1);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::exchange::Span;
    use proptest::prelude::*;

    #[test]
    fn the_first_byte_may_be_of_a_later_exchange() {
        let moment = |frame: u64| Moment::new(frame.cast_signed(), frame, Side::Client);
        let mut ledger = Ledger::default();
        let numbers = [0, 1].map(|_| ledger.open("http/1.1", 0));
        ledger.get(numbers[1]).unwrap().exchange.request.extend(moment(5), 1);
        ledger.get(numbers[0]).unwrap().exchange.response.extend(moment(7), 1);
        assert_eq!(ledger.earliest(), Some(moment(5)));
        // A response may overtake its request (RFC 9112 section 9.5).
        ledger.get(numbers[1]).unwrap().exchange.response.extend(moment(4), 1);
        ledger.release_all();
        assert_eq!(ledger.earliest(), Some(moment(4)));
    }

    /// The definition: every exchange is looked at.
    fn earliest_of_all(ledger: &Ledger) -> Option<Moment> {
        Moment::earliest(ledger.under_way().map(Exchange::opened))
    }

    fn moment(at: u32) -> Moment {
        Moment::new(at.into(), u64::from(at) + 1, Side::Client)
    }

    proptest! {
        #[test]
        fn the_earliest_and_the_doubt_are_those_of_the_definition(
            steps in prop::collection::vec((0u8..8, 0usize..80, 0u32..1_000), 0..400),
        ) {
            let (mut ledger, mut numbers, mut confidence) = (Ledger::default(), Vec::new(), Vec::new());
            for (step, which, at) in steps {
                let number = numbers.get(which % numbers.len().max(1)).copied().unwrap_or(0);
                match step {
                    0..=2 => {
                        numbers.push(ledger.open("h2", 0));
                        confidence.push(1.0);
                    }
                    3 => {
                        if let Some(entry) = ledger.get(number) {
                            entry.exchange.request.extend(moment(at), 1);
                        }
                    }
                    4 => {
                        if let Some(entry) = ledger.get(number) {
                            entry.exchange.response = Span::default();
                            entry.exchange.response.extend(moment(at), 1);
                        }
                    }
                    5 => {
                        if let Some(entry) = ledger.get(number) {
                            entry.exchange.ended = Some(moment(at));
                        }
                        ledger.release();
                    }
                    6 if at < 200 => {
                        if let Some(&last) = numbers.last()
                            && ledger.withdraw(last).is_some()
                        {
                            numbers.pop();
                            confidence.pop();
                        }
                    }
                    _ => {
                        let limit = f64::from(at % 7) / 8.0;
                        let open = ledger.open.len();
                        confidence.iter_mut().rev().take(open).for_each(|value: &mut f64| *value = value.min(limit));
                        ledger.doubt(limit);
                    }
                }
                if at % 3 == 0 {
                    while ledger.next_exchange().is_some() {}
                }
                prop_assert_eq!(ledger.earliest(), earliest_of_all(&ledger));
                let doubted = ledger.open.iter().map(|entry| entry.exchange.confidence);
                prop_assert!(doubted.eq(confidence.iter().skip(confidence.len() - ledger.open.len()).copied()));
            }
        }
    }

    #[test]
    fn exchanges_that_wait_are_looked_at_once_and_not_at_every_packet() {
        let looks = |count: u32| {
            let mut ledger = Ledger::default();
            let mut looks = 0;
            for at in 0..count {
                let number = ledger.open("dns", 0);
                ledger.get(number).unwrap().exchange.request.extend(moment(at), 1);
                let before = ledger.beginnings.as_ref().map_or(0, |beginnings| beginnings.looks);
                ledger.earliest();
                let after = ledger.beginnings.as_ref().map_or(0, |beginnings| beginnings.looks);
                looks += after.checked_sub(before).unwrap_or(after);
                while ledger.next_exchange().is_some() {}
            }
            looks
        };
        let [few, many] = [8_000, 32_000].map(looks);
        assert!(few < 32_000 && 5 * many <= 22 * few, "{few} looks, of four times as much {many}");
    }
}
