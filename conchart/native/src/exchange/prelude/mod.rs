//! What is said before the conversation proper: the PROXY header and SOCKS.
//!
//! In: the chunks of both sides, from a stream's start. Out: exchanges named `proxy` and `socks`, and the point from
//! which something else is spoken. Bounded: a message is kept up to [`MAX_KEPT`] bytes, what the requester sends
//! ahead up to [`MAX_EAGER`].

mod proxy;
mod socks;

use super::Span;
use super::head::Guess;
use super::held::{Event, Held};
use super::http1::{Onward, Switch};
use super::ledger::Ledger;
use crate::stream::{BySide, Chunk, Moment, Side};

/// Longer than any message here but a PROXY header, of which only the beginning is needed.
const MAX_KEPT: usize = 600;
/// What may be sent before a proxy has agreed to it: a large ClientHello.
const MAX_EAGER: usize = 16 * 1024;

/// How long a message is, by its first bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Length {
    Is(usize),
    /// Too few bytes to tell.
    More,
    /// No such message begins like this.
    Broken,
}

/// Does a stream begin with a prelude, and with which?
pub(super) fn sniff(prefix: &[u8]) -> (Kind, Guess) {
    match prefix.first() {
        Some(4) => (Kind::Socks(socks::Version::V4), socks::sniff(socks::Version::V4, prefix)),
        Some(5) => (Kind::Socks(socks::Version::V5), socks::sniff(socks::Version::V5, prefix)),
        Some(b'P' | b'\r') => (Kind::Proxy, proxy::sniff(prefix)),
        _ => (Kind::Proxy, Guess::No),
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Proxy,
    Socks(socks::Version),
}

impl Kind {
    /// The name in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Proxy => "proxy",
            Self::Socks(_) => "socks",
        }
    }
}

pub(super) struct Prelude {
    pub requester: Side,
    kind: Kind,
    speakers: BySide<Speaker>,
    /// All was asked: what the requester says now is for the other end.
    asked: bool,
    eager: Held,
}

#[derive(Default)]
struct Speaker {
    /// The beginning of the current message.
    kept: Vec<u8>,
    /// Messages before it.
    before: u8,
    span: Span,
    /// The exchange it belongs to.
    number: Option<u32>,
}

impl Prelude {
    pub fn new(requester: Side, kind: Kind) -> Self {
        Self { requester, kind, speakers: BySide::default(), asked: false, eager: Held::new(MAX_EAGER) }
    }

    /// Takes in bytes, up to the point where something else is spoken.
    pub fn data<'a>(&mut self, ledger: &mut Ledger, from: Side, chunk: Chunk<'a>) -> Option<Switch<'a>> {
        let mut rest = chunk;
        while !rest.bytes.is_empty() {
            if self.waits(from) {
                self.eager.push(Event::Data(from, rest));
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

    /// Bytes are missing: where the prelude ends is no longer known. Hands back what was sent ahead.
    pub fn give_up(&mut self, ledger: &mut Ledger) -> Held {
        ledger.settle_all();
        std::mem::replace(&mut self.eager, Held::new(0))
    }

    /// That side will send no more.
    pub fn fin(&mut self, from: Side, seen: Moment) {
        self.eager.push(Event::Fin(from, seen));
    }

    fn switch<'a>(&mut self, ledger: &mut Ledger, rest: Chunk<'a>) -> Switch<'a> {
        Switch { onward: Onward::Tunnel, eager: Some(self.give_up(ledger)), rest }
    }

    /// Nobody reads this side's bytes before the other side has gone on.
    fn waits(&self, from: Side) -> bool {
        let asks = from == self.requester;
        if self.kind == Kind::Proxy { !asks } else { asks && self.asked }
    }

    /// Takes in bytes of one message; says how many, and whether it is over.
    fn take(&mut self, ledger: &mut Ledger, from: Side, chunk: &Chunk<'_>) -> (usize, Length) {
        let asks = from == self.requester;
        let speaker = &mut self.speakers[from];
        if speaker.span.first.is_none() {
            speaker.number = if asks {
                Some(ledger.open(from, self.kind.name(), chunk.offset))
            } else {
                ledger.unanswered(|_| true)
            };
        }
        let room = MAX_KEPT.saturating_sub(speaker.kept.len());
        speaker.kept.extend_from_slice(chunk.bytes.get(..room).unwrap_or(chunk.bytes));
        let length = match self.kind {
            Kind::Proxy => proxy::length(&speaker.kept),
            Kind::Socks(version) if asks => socks::asked(version, speaker.before, &speaker.kept),
            Kind::Socks(version) => socks::answered(version, speaker.before, &speaker.kept),
        };
        let before = usize::try_from(speaker.span.bytes).unwrap_or(usize::MAX);
        let (taken, length) = match length {
            Length::Is(whole) if whole.saturating_sub(before) <= chunk.bytes.len() => {
                speaker.kept.truncate(whole);
                (whole.saturating_sub(before), length)
            }
            Length::Is(_) => (chunk.bytes.len(), Length::More),
            Length::More if speaker.kept.len() < MAX_KEPT => (chunk.bytes.len(), Length::More),
            Length::More | Length::Broken => (0, Length::Broken),
        };
        if taken > 0 {
            speaker.span.extend(chunk.seen, taken as u64);
        } else if asks && speaker.span.first.is_none() {
            // Not one byte of it: nothing was asked.
            speaker.number.take().and_then(|number| ledger.retract(number));
        }
        let span = speaker.span;
        if let Some(entry) = speaker.number.and_then(|n| ledger.get(n)) {
            *(if asks { &mut entry.exchange.request } else { &mut entry.exchange.response }) = span;
        }
        (taken, length)
    }

    /// A message is over; true when the prelude is.
    fn end(&mut self, ledger: &mut Ledger, from: Side) -> bool {
        let asks = from == self.requester;
        let Speaker { kept, before, number, .. } = std::mem::take(&mut self.speakers[from]);
        self.speakers[from].before = before.saturating_add(1);
        let target = match self.kind {
            Kind::Socks(version) if asks => socks::target(version, before, &kept),
            _ => None,
        };
        self.asked |= target.is_some();
        if let Some(entry) = number.and_then(|n| ledger.get(n)) {
            let exchange = &mut entry.exchange;
            (if asks { &mut exchange.request } else { &mut exchange.response }).done = true;
            if self.kind == Kind::Proxy {
                // Nobody answers it.
                exchange.ended = exchange.request.last;
            }
            exchange.host = target.or(exchange.host.take());
        }
        ledger.settle();
        match self.kind {
            Kind::Proxy => true,
            Kind::Socks(version) => !asks && self.asked && socks::concludes(version, before, &kept),
        }
    }
}
