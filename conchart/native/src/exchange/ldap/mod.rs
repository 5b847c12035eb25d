//! LDAP (RFC 4511): every operation is one exchange, however many are under way at once.
//!
//! In: a stream of messages, each in an envelope that says how long it is. Out: exchanges in the [`Ledger`]: method is
//! the operation, target what it is about, status the result code. The response to a search is all of its entries and
//! references, and what says that they are all. After StartTLS something else is read; what is no message, as all that a
//! SASL layer seals, is taken as turns. Non-goals: entries, controls, LDAP over UDP.
//!
//! Bounded: [`MAX_ASKED`] operations are remembered, and of each message its beginning; never a password.

mod ber;
mod filter;
mod message;
#[cfg(test)]
mod tests;

use super::Span;
use super::layer::SNIFFED;
use super::ledger::Ledger;
use super::questions::Questions;
use super::reader::{Carrier, Onward, Opening, Reader, Start, Switch};
use super::sniffers::{self, Verdict};
use super::trail::Trail;
use super::unread::Unread;
use crate::stream::{BySide, Chunk, Gap, Moment, Side};
use ber::Stop;
use message::{MIN_HEAD, Message, Request, Response, Says, Then};

pub(super) const PROTOCOL: &str = "ldap";

/// Operations that are remembered while they are under way.
const MAX_ASKED: usize = 1024;
/// Confidence in operations of whose answer something may be missing.
const GUESSED: f64 = 0.5;
/// The number of what the server says unasked (RFC 4511 section 4.4).
const UNSOLICITED: u32 = 0;

/// Does this stream begin with a request?
pub(super) fn request(prefix: &[u8]) -> Verdict {
    message::sniff(prefix, true)
}

/// Does this stream begin with a response?
pub(super) fn response(prefix: &[u8]) -> Verdict {
    message::sniff(prefix, false)
}

/// The messages of one connection.
pub(super) struct Ldap {
    streams: BySide<Stream>,
    asked: Questions<Asked>,
    start: Start,
    /// A packet may yet begin with something else.
    may_switch: bool,
    /// The response says that TLS follows.
    tls_follows: bool,
}

/// An operation that is under way.
struct Asked {
    then: Then,
    /// It was abandoned: what still comes is not waited for.
    over: bool,
}

/// One direction.
struct Stream {
    /// The beginning of the message under way.
    kept: Vec<u8>,
    /// So many bytes of it are to be kept, as far as is known.
    wanted: usize,
    /// What it says, once that is known, and its length.
    message: Option<Message>,
    len: Option<usize>,
    /// Bytes of it that have come or are known to be missing.
    passed: usize,
    span: Span,
    offset: u64,
    /// Nobody knows where the next message begins.
    out_of_step: bool,
    trail: Trail,
    latest: Option<Moment>,
}

impl Ldap {
    pub fn new(opening: &Opening<'_>) -> Self {
        let stream = || Stream { out_of_step: opening.start.is_midstream(), ..Stream::new(Trail::default(), None) };
        Self {
            streams: BySide { client: stream(), server: stream() },
            asked: Questions::new(MAX_ASKED),
            start: opening.start,
            may_switch: opening.may_switch,
            tls_follows: false,
        }
    }

    /// Takes in bytes of the message under way; returns how many, at least one, or that this is no message.
    fn take(
        &mut self,
        ledger: &mut Ledger,
        from: Side,
        bytes: &[u8],
        seen: Moment,
        offset: u64,
    ) -> Result<usize, Stop> {
        let stream = &mut self.streams[from];
        if stream.passed == 0 {
            stream.offset = offset;
        }
        let left =
            if stream.message.is_none() { stream.wanted.saturating_sub(stream.kept.len()) } else { stream.left() };
        let taken = left.min(bytes.len()).max(1);
        stream.passed = stream.passed.saturating_add(taken);
        stream.span.extend(seen, taken as u64);
        if stream.message.is_none() {
            stream.kept.extend(bytes.iter().take(taken));
            if stream.kept.len() >= stream.wanted {
                stream.understand(false)?;
            }
        }
        self.end_message(ledger, from);
        Ok(taken)
    }

    /// Something else follows.
    fn leave<'a>(&mut self, ledger: &mut Ledger, onward: Onward, rest: Chunk<'a>) -> Switch<'a> {
        self.finish(ledger);
        Switch { onward, name: Some(PROTOCOL), early: None, rest }
    }

    /// Passes over bytes that the capture does not hold. `sent`: when they were, where a snap length cut them off.
    fn pass_over(&mut self, ledger: &mut Ledger, from: Side, gap: Gap, sent: Option<Moment>) {
        let stream = &mut self.streams[from];
        let inside = stream.len.is_some() && gap.len <= stream.left() as u64 && !stream.out_of_step;
        // What comes after missing bytes has no known position in what is kept.
        if !inside || stream.message.is_none() && stream.understand(true).is_err() {
            return self.lose(ledger, from, gap.seen, sent);
        }
        match sent {
            Some(sent) => stream.span.extend(sent, gap.len),
            None => stream.span.extend_over(gap),
        }
        stream.passed = stream.passed.saturating_add(usize::try_from(gap.len).unwrap_or(usize::MAX));
        self.end_message(ledger, from);
    }

    /// Nobody knows where the next message begins.
    fn lose(&mut self, ledger: &mut Ledger, from: Side, by: Moment, sent: Option<Moment>) {
        self.cut_short(ledger, from);
        let stream = &mut self.streams[from];
        let (mut trail, latest) = (stream.trail, stream.latest);
        match sent {
            Some(sent) => trail.go_on(sent),
            None => trail.miss(latest.unwrap_or(by), by),
        }
        *stream = Stream { out_of_step: true, ..Stream::new(trail, latest) };
        if ledger.asks(from) {
            return;
        }
        // What is missing may be the answer to any of them.
        for asked in self.asked.iter() {
            if let Some(entry) = ledger.get(asked.number) {
                entry.exchange.doubt(GUESSED);
                entry.exchange.response.revealed.get_or_insert(by);
            }
        }
    }

    /// Is the message under way complete? Then what it says is true.
    fn end_message(&mut self, ledger: &mut Ledger, from: Side) {
        let stream = &mut self.streams[from];
        if stream.message.is_none() || stream.left() > 0 {
            return;
        }
        let span = Span { done: true, ..stream.span };
        self.message(ledger, from, span);
    }

    /// The message under way does not go on.
    fn cut_short(&mut self, ledger: &mut Ledger, from: Side) {
        let stream = &mut self.streams[from];
        if stream.message.is_none() && stream.understand(true).is_err() {
            return;
        }
        let span = stream.span;
        self.message(ledger, from, span);
    }

    fn message(&mut self, ledger: &mut Ledger, from: Side, span: Span) {
        let stream = &mut self.streams[from];
        let offset = stream.offset;
        let next = Stream::new(stream.trail, stream.latest);
        let Some(message) = std::mem::replace(stream, next).message else {
            return;
        };
        match message.says {
            Says::Request(request) if ledger.asks(from) => self.request(ledger, message.id, request, span, offset),
            Says::Response(response) if !ledger.asks(from) => {
                self.response(ledger, message.id, &response, span, offset);
            }
            // Nothing that this side says, or that anybody knows.
            _ => {}
        }
    }

    fn request(&mut self, ledger: &mut Ledger, id: u32, request: Request, span: Span, offset: u64) {
        // A number is used again when its operation is over.
        let before = self.forget(id);
        let abandoned = if let Then::Abandoned(id) = request.then { Some(id) } else { None };
        let abandoned = abandoned.and_then(|id| self.of(id));
        if let Some(asked) = abandoned.and_then(|number| self.asked.get(number)) {
            asked.over = true;
        }
        for number in before.into_iter().chain(abandoned) {
            if let Some(entry) = ledger.get(number) {
                entry.exchange.ended = span.last;
            }
        }
        let number = ledger.open(PROTOCOL, offset);
        let answered = !matches!(request.then, Then::Nothing | Then::Abandoned(_));
        if let Some(entry) = ledger.get(number) {
            let exchange = &mut entry.exchange;
            exchange.request = span;
            exchange.method = Some(request.operation.into());
            exchange.target = request.target;
            exchange.ended = if answered { None } else { span.last };
        }
        if answered {
            self.asked.push(id, number, Asked { then: request.then, over: false });
        }
    }

    fn response(&mut self, ledger: &mut Ledger, id: u32, response: &Response, span: Span, offset: u64) {
        let known = self.asked.of(id).next().map(|asked| (asked.number, asked.about.then, asked.about.over));
        let (number, then) = match known {
            Some((_, _, true)) => return,
            Some((number, then, false)) => (number, then),
            // Nobody saw the request, or there is none.
            None => {
                let number = ledger.open(PROTOCOL, offset);
                let method = if id == UNSOLICITED { Some("notification") } else { response.operation };
                if let Some(entry) = ledger.get(number) {
                    entry.exchange.method = method.map(Into::into);
                }
                if !response.is_last {
                    self.asked.push(id, number, Asked { then: Then::Response, over: false });
                }
                (number, Then::Response)
            }
        };
        if let Some(entry) = ledger.get(number) {
            let exchange = &mut entry.exchange;
            exchange.method = exchange.method.take().or_else(|| response.operation.map(Into::into));
            exchange.status = response.code;
            exchange.response.append(span);
            exchange.response.done = response.is_last && span.done;
        }
        if response.is_last {
            self.forget(id);
            self.tls_follows |= then == Then::Tls && response.code == Some(0) && span.done;
        }
    }

    /// The exchange of the operation of that number.
    fn of(&self, id: u32) -> Option<u32> {
        self.asked.of(id).next().map(|asked| asked.number)
    }

    /// The operation of that number is over; its exchange, unless it was abandoned.
    fn forget(&mut self, id: u32) -> Option<u32> {
        let number = self.of(id)?;
        self.asked.remove(number).filter(|asked| !asked.over).map(|_| number)
    }
}

impl Reader for Ldap {
    fn data<'a>(&mut self, ledger: &mut Ledger, from: Side, chunk: Chunk<'a>) -> Option<Switch<'a>> {
        let stream = &mut self.streams[from];
        if stream.trail.begins_packet(chunk.seen) && stream.out_of_step {
            let first = chunk.bytes.get(..SNIFFED).unwrap_or(chunk.bytes);
            if message::sniff(first, ledger.asks(from)) == Verdict::Yes {
                stream.in_step(ledger);
            } else if self.may_switch
                && let Some(row) = sniffers::judge_later(Carrier::Stream, first, Start::Beginning)
            {
                return Some(self.leave(ledger, Onward::Row(row), chunk));
            }
        }
        self.streams[from].hear(chunk.seen);
        let (mut rest, mut begun) = (chunk, chunk);
        while !rest.bytes.is_empty() && !self.streams[from].out_of_step {
            if self.streams[from].passed == 0 {
                begun = rest;
            }
            let Ok(taken) = self.take(ledger, from, rest.bytes, rest.seen, rest.offset) else {
                let unread = Unread::of(self.start, PROTOCOL, self.may_switch);
                return Some(self.leave(ledger, Onward::Reader(Box::new(unread)), begun));
            };
            let bytes = rest.bytes.get(taken..).unwrap_or_default();
            rest = Chunk { bytes, offset: rest.offset.saturating_add(taken as u64), ..rest };
            if std::mem::take(&mut self.tls_follows) {
                return Some(self.leave(ledger, Onward::Anything, rest));
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

    /// The connection is over: operations without a response go out as they stand.
    fn finish(&mut self, ledger: &mut Ledger) {
        for from in [Side::Client, Side::Server] {
            self.cut_short(ledger, from);
            self.streams[from].in_step(ledger);
            self.streams[from] = Stream::new(Trail::default(), None);
        }
        self.asked.clear();
        ledger.release_all();
    }

    /// First byte that is not yet in the ledger.
    fn pending(&self) -> Option<Moment> {
        Moment::earliest([self.streams.client.span.first, self.streams.server.span.first])
    }

    #[cfg(test)]
    fn held(&self) -> usize {
        self.streams.client.kept.capacity() + self.streams.server.kept.capacity()
    }
}

impl Stream {
    /// Before a message.
    fn new(trail: Trail, latest: Option<Moment>) -> Self {
        Self {
            kept: Vec::new(),
            wanted: MIN_HEAD,
            message: None,
            len: None,
            passed: 0,
            span: Span::default(),
            offset: 0,
            out_of_step: false,
            trail,
            latest,
        }
    }

    /// Bytes that are missing to the end of the message.
    fn left(&self) -> usize {
        self.len.unwrap_or(usize::MAX).saturating_sub(self.passed)
    }

    /// Reads what is kept of the message; when `all` is there that will be, whatever it says.
    fn understand(&mut self, all: bool) -> Result<(), Stop> {
        self.len = message::length(&self.kept).ok();
        match message::read(&self.kept, all) {
            Ok(message) => self.message = Some(message),
            Err(Stop::More(needed)) if !all && self.len.is_none_or(|len| needed <= len) => self.wanted = needed,
            _ => return Err(Stop::Wrong),
        }
        Ok(())
    }

    /// Bytes come.
    fn hear(&mut self, seen: Moment) {
        self.latest = Some(seen);
        if self.out_of_step {
            self.trail.go_on(seen);
        }
    }

    fn in_step(&mut self, ledger: &mut Ledger) {
        self.out_of_step = false;
        self.trail.end(ledger);
    }
}
