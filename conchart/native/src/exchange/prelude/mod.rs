//! What is said before anything else: the PROXY header and SOCKS.
//!
//! In: the chunks of both sides, from a stream's start. Out: exchanges named `proxy` and `socks`, and the point from
//! which something else is spoken. Bounded: a message is kept up to [`MAX_BUFFER`] bytes, what the requester sends
//! ahead up to [`MAX_EARLY`].

mod proxy;
mod socks;

pub(super) use proxy::sniff as sniff_proxy;
pub(super) use socks::{Version, sniff_v4 as sniff_socks4, sniff_v5 as sniff_socks5};

use super::Span;
use super::backlog::{Backlog, Event};
use super::ledger::Ledger;
use super::reader::{Onward, Opening, Reader, Switch};
use crate::stream::{BySide, Chunk, Gap, Moment, Side};

/// Longer than any message here but a PROXY header, of which only the beginning is needed.
const MAX_BUFFER: usize = 600;
/// What may be sent before a proxy has agreed to it: a large ClientHello.
const MAX_EARLY: usize = 16 * 1024;

/// How long a message is, by its first bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Length {
    Is(usize),
    /// Too few bytes to tell.
    More,
    /// No such message begins like this.
    Broken,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Proxy,
    Socks(Version),
}

pub(super) struct Prelude {
    /// The name in the tables.
    protocol: &'static str,
    kind: Kind,
    directions: BySide<Direction>,
    /// All was asked: what the requester says now is for the other end.
    requested: bool,
    /// Bytes are missing: where the prelude ends is no longer known.
    out_of_step: bool,
    /// What was sent ahead.
    early: Backlog,
}

/// One direction.
#[derive(Default)]
struct Direction {
    /// The beginning of the current message.
    buffer: Vec<u8>,
    /// Messages before it.
    before: u8,
    span: Span,
    /// The exchange it belongs to.
    number: Option<u32>,
}

impl Prelude {
    pub fn new(opening: &Opening<'_>, kind: Kind) -> Self {
        Self {
            protocol: opening.protocol,
            kind,
            directions: BySide::default(),
            requested: false,
            out_of_step: false,
            early: Backlog::new(MAX_EARLY),
        }
    }

    /// Takes in bytes, up to the point where something else is spoken.
    fn read<'a>(&mut self, ledger: &mut Ledger, from: Side, chunk: Chunk<'a>) -> Option<Switch<'a>> {
        let mut rest = chunk;
        while !rest.bytes.is_empty() {
            if self.waits(ledger, from) {
                self.early.push(Event::Data(from, rest));
                return None;
            }
            let (taken, length) = self.take(ledger, from, &rest);
            let bytes = rest.bytes.get(taken..).unwrap_or_default();
            rest = Chunk { bytes, offset: rest.offset.saturating_add(taken as u64), ..rest };
            match length {
                Length::More => {}
                Length::Is(_) if !self.end(ledger, from) => {}
                Length::Is(_) | Length::Broken => return Some(self.switch(ledger, rest)),
            }
        }
        (rest.cut > 0).then(|| self.switch(ledger, rest))
    }

    fn switch<'a>(&mut self, ledger: &mut Ledger, rest: Chunk<'a>) -> Switch<'a> {
        ledger.release_all();
        let early = std::mem::replace(&mut self.early, Backlog::new(0));
        Switch { onward: Onward::Anything, name: None, early: Some(early), rest }
    }

    /// Nobody reads this side's bytes before the other side has gone on.
    fn waits(&self, ledger: &Ledger, from: Side) -> bool {
        let asks = ledger.asks(from);
        if self.kind == Kind::Proxy { !asks } else { asks && self.requested }
    }

    /// Takes in bytes of one message; says how many, and whether it is over.
    fn take(&mut self, ledger: &mut Ledger, from: Side, chunk: &Chunk<'_>) -> (usize, Length) {
        let asks = ledger.asks(from);
        let direction = &mut self.directions[from];
        if direction.span.first.is_none() {
            direction.number =
                if asks { Some(ledger.open(self.protocol, chunk.offset)) } else { ledger.unanswered(|_| true) };
        }
        let room = MAX_BUFFER.saturating_sub(direction.buffer.len());
        direction.buffer.extend_from_slice(chunk.bytes.get(..room).unwrap_or(chunk.bytes));
        let length = match self.kind {
            Kind::Proxy => proxy::length(&direction.buffer),
            Kind::Socks(version) if asks => socks::request_length(version, direction.before, &direction.buffer),
            Kind::Socks(version) => socks::response_length(version, direction.before, &direction.buffer),
        };
        let before = usize::try_from(direction.span.bytes).unwrap_or(usize::MAX);
        let (taken, length) = match length {
            Length::Is(whole) if whole.saturating_sub(before) <= chunk.bytes.len() => {
                direction.buffer.truncate(whole);
                (whole.saturating_sub(before), length)
            }
            Length::Is(_) => (chunk.bytes.len(), Length::More),
            Length::More if direction.buffer.len() < MAX_BUFFER => (chunk.bytes.len(), Length::More),
            Length::More | Length::Broken => (0, Length::Broken),
        };
        if taken > 0 {
            direction.span.extend(chunk.seen, taken as u64);
        } else if asks && direction.span.first.is_none() {
            // Not one byte of it: nothing was asked.
            direction.number.take().and_then(|number| ledger.withdraw(number));
        }
        let span = direction.span;
        if let Some(entry) = direction.number.and_then(|n| ledger.get(n)) {
            *entry.exchange.message(from) = span;
        }
        (taken, length)
    }

    /// A message is over; true when the prelude is.
    fn end(&mut self, ledger: &mut Ledger, from: Side) -> bool {
        let asks = ledger.asks(from);
        let Direction { buffer, before, number, .. } = std::mem::take(&mut self.directions[from]);
        self.directions[from].before = before.saturating_add(1);
        let target = match self.kind {
            Kind::Socks(version) if asks => socks::target(version, before, &buffer),
            _ => None,
        };
        self.requested |= target.is_some();
        if let Some(entry) = number.and_then(|n| ledger.get(n)) {
            let exchange = &mut entry.exchange;
            exchange.message(from).done = true;
            if self.kind == Kind::Proxy {
                // Nobody answers it.
                exchange.ended = exchange.request.last;
            }
            exchange.host = target.or(exchange.host.take());
        }
        ledger.release();
        match self.kind {
            Kind::Proxy => {
                ledger.announced = ledger.announced.or(proxy::client(&buffer));
                true
            }
            Kind::Socks(version) => !asks && self.requested && socks::concludes(version, before, &buffer),
        }
    }
}

impl Reader for Prelude {
    fn data<'a>(&mut self, ledger: &mut Ledger, from: Side, chunk: Chunk<'a>) -> Option<Switch<'a>> {
        if self.out_of_step {
            return Some(self.switch(ledger, chunk));
        }
        self.read(ledger, from, chunk)
    }

    /// Whoever reads what comes next hears of the gap, too.
    fn gap(&mut self, ledger: &mut Ledger, from: Side, gap: Gap) {
        ledger.release_all();
        self.out_of_step = true;
        self.early.push(Event::Gap(from, gap));
    }

    fn fin(&mut self, _ledger: &mut Ledger, from: Side, seen: Moment) {
        self.early.push(Event::Fin(from, seen));
    }

    fn finish(&mut self, ledger: &mut Ledger) {
        ledger.release_all();
    }

    #[cfg(test)]
    fn held(&self) -> usize {
        self.early.len()
    }
}
