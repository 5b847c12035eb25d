//! DNS (RFC 1035): every query is one exchange, over UDP and over TCP.
//!
//! In: over UDP datagrams, each one message (RFC 1035 section 4.2.1); over TCP a stream of messages, each behind its
//! length (RFC 7766 section 8). Out: exchanges in the [`Ledger`]: method is the QTYPE, target the QNAME, status the RCODE.
//! A query that is sent again, because nobody answered, is the same exchange: its wait goes on. Non-goals: resource
//! records; the messages of a zone transfer after the first; responses to multicast queries, which go to everyone.
//!
//! Bounded: [`MAX_ASKED`] queries are remembered, and of each message its question.

mod message;
#[cfg(test)]
mod tests;

use super::Span;
use super::ledger::Ledger;
use super::questions::Questions;
use super::reader::{Reader, Start, Switch};
use super::sniffers::Verdict;
use super::trail::Trail;
use crate::stream::{BySide, Chunk, Gap, Moment, Side};
use message::{MIN_QUERY, Message, QUESTION_END, Question};

const PROTOCOL: &str = "dns";

/// Queries that are remembered, answered or not.
const MAX_ASKED: usize = 512;

/// What stands before each message over TCP.
const LENGTH: usize = 2;

/// Where a message says that it is a response (RFC 1035 section 4.1.1): the first bit of its third byte.
const FLAGS: usize = 2;
const RESPONSE: u8 = 0x80;

/// Is this datagram a query?
pub(super) fn query(datagram: &[u8]) -> Verdict {
    if is_response(datagram) { Verdict::No } else { message::sniff(datagram) }
}

/// Is this datagram a response?
pub(super) fn response(datagram: &[u8]) -> Verdict {
    if is_response(datagram) { message::sniff(datagram) } else { Verdict::No }
}

/// Does this stream begin with a query?
pub(super) fn query_in_stream(prefix: &[u8]) -> Verdict {
    if prefix.get(LENGTH..).is_some_and(is_response) { Verdict::No } else { sniff_stream(prefix) }
}

/// Does this stream begin with a response?
pub(super) fn response_in_stream(prefix: &[u8]) -> Verdict {
    if prefix.get(LENGTH..).is_some_and(is_response) { sniff_stream(prefix) } else { Verdict::No }
}

fn is_response(message: &[u8]) -> bool {
    message.get(FLAGS).is_some_and(|flags| flags & RESPONSE != 0)
}

/// Does a message begin here, behind its length?
fn sniff_stream(prefix: &[u8]) -> Verdict {
    let Some((length, rest)) = prefix.split_first_chunk::<LENGTH>() else {
        return Verdict::More;
    };
    let length = usize::from(u16::from_be_bytes(*length));
    if length < MIN_QUERY {
        return Verdict::No;
    }
    match message::sniff(rest.get(..length).unwrap_or(rest)) {
        // The message is over, and its question is not.
        Verdict::More if rest.len() >= length => Verdict::No,
        verdict => verdict,
    }
}

/// The DNS messages of one flow.
pub(super) struct Dns {
    framing: Framing,
    asked: Questions<Asked>,
}

/// How messages follow each other.
enum Framing {
    Datagrams,
    Stream(Box<BySide<Stream>>),
}

/// A query that was seen.
struct Asked {
    from: Side,
    question: Option<Question>,
    answered: bool,
}

/// One direction over TCP.
#[derive(Default)]
struct Stream {
    /// The length and beginning of the message under way.
    kept: Vec<u8>,
    /// Bytes of it that have come or are known to be missing, its length included.
    passed: usize,
    span: Span,
    offset: u64,
    /// Nobody knows where the next message begins.
    out_of_step: bool,
    trail: Trail,
    latest: Option<Moment>,
}

impl Dns {
    /// Over UDP: a chunk is a datagram.
    pub fn over_datagrams() -> Self {
        Self { framing: Framing::Datagrams, asked: Questions::new(MAX_ASKED) }
    }

    /// Over TCP.
    pub fn over_stream(start: Start) -> Self {
        let stream = || Stream { out_of_step: start.is_midstream(), ..Stream::default() };
        let streams = BySide { client: stream(), server: stream() };
        Self { framing: Framing::Stream(Box::new(streams)), asked: Questions::new(MAX_ASKED) }
    }

    fn stream(&mut self, from: Side) -> Option<&mut Stream> {
        match &mut self.framing {
            Framing::Datagrams => None,
            Framing::Stream(streams) => Some(&mut streams[from]),
        }
    }

    /// Takes in bytes of the message under way; returns how many, at least one.
    fn take(&mut self, ledger: &mut Ledger, from: Side, bytes: &[u8], seen: Moment, offset: u64) -> usize {
        let Some(stream) = self.stream(from) else {
            return bytes.len();
        };
        if stream.passed == 0 {
            stream.offset = offset;
        }
        let taken = stream.left().min(bytes.len()).max(1);
        let room = (LENGTH + QUESTION_END).saturating_sub(stream.kept.len());
        // What comes after missing bytes has no known position in the message.
        if stream.kept.len() == stream.passed {
            stream.kept.extend(bytes.iter().take(taken.min(room)));
        }
        stream.passed += taken;
        stream.span.extend(seen, taken as u64);
        self.end_message(ledger, from);
        taken
    }

    /// Passes over bytes that the capture does not hold. `sent` says when they were sent, where that is known (a snap
    /// length cut them off); `by` when they had been.
    fn pass_over(&mut self, ledger: &mut Ledger, from: Side, len: u64, sent: Option<Moment>, by: Moment) {
        let Some(stream) = self.stream(from) else {
            return;
        };
        let inside = stream.kept.len() >= LENGTH && len <= stream.left() as u64 && !stream.out_of_step;
        if !inside {
            let (mut trail, latest) = (stream.trail, stream.latest);
            match sent {
                Some(sent) => trail.go_on(sent),
                None => trail.miss(latest.unwrap_or(by), by),
            }
            *stream = Stream { out_of_step: true, trail, latest, ..Stream::default() };
            return;
        }
        match sent {
            Some(sent) => stream.span.extend(sent, len),
            None => {
                stream.span.extend_unseen(len);
                stream.span.revealed = Some(by);
            }
        }
        stream.passed = stream.passed.saturating_add(usize::try_from(len).unwrap_or(usize::MAX));
        self.end_message(ledger, from);
    }

    /// Is the message under way complete? Then it is read.
    fn end_message(&mut self, ledger: &mut Ledger, from: Side) {
        let Some(stream) = self.stream(from) else {
            return;
        };
        if stream.kept.len() < LENGTH || stream.left() > 0 {
            return;
        }
        let kept = std::mem::take(&mut stream.kept);
        let span = Span { done: true, ..std::mem::take(&mut stream.span) };
        stream.passed = 0;
        let offset = stream.offset;
        self.message(ledger, from, kept.get(LENGTH..).unwrap_or_default(), span, offset);
    }

    fn message(&mut self, ledger: &mut Ledger, from: Side, bytes: &[u8], span: Span, offset: u64) {
        match message::parse(bytes) {
            Some(message) if message.is_response => self.response(ledger, from, message, span, offset),
            Some(message) => self.query(ledger, from, message, span, offset),
            None => {}
        }
    }

    fn query(&mut self, ledger: &mut Ledger, from: Side, message: Message, span: Span, offset: u64) {
        let again = |asked: &Asked| !asked.answered && asked.from == from && asked.is(&message);
        if self.asked.of(message.id.into()).any(|asked| again(&asked.about)) {
            return;
        }
        let number = open(ledger, from, message.question.as_ref(), offset);
        if let Some(entry) = ledger.get(number) {
            entry.exchange.request = span;
            entry.exchange.ended = if message.is_multicast() { span.last } else { None };
        }
        self.remember(number, from, message, false);
    }

    fn response(&mut self, ledger: &mut Ledger, from: Side, message: Message, span: Span, offset: u64) {
        let (asker, status) = (from.peer(), Some(u16::from(message.rcode)));
        let fits = |asked: &Asked| asked.from == asker && asked.is(&message);
        // The response to a query that was sent again comes again.
        let (mut is_known, mut waiting) = (message.is_multicast(), None);
        for asked in self.asked.of(message.id.into()).filter(|asked| fits(&asked.about)) {
            is_known = true;
            if !asked.about.answered {
                waiting = Some(asked.number);
                break;
            }
        }
        let number = match waiting {
            Some(number) => {
                if let Some(asked) = self.asked.get(number) {
                    asked.answered = true;
                }
                number
            }
            None if is_known => return,
            // Nobody saw the query.
            None => {
                let number = open(ledger, asker, message.question.as_ref(), offset);
                self.remember(number, asker, message, true);
                number
            }
        };
        if let Some(entry) = ledger.get(number) {
            entry.exchange.response = span;
            entry.exchange.status = status;
        }
    }

    fn remember(&mut self, number: u32, from: Side, message: Message, answered: bool) {
        self.asked.push(message.id.into(), number, Asked { from, question: message.question, answered });
    }
}

impl Reader for Dns {
    fn data<'a>(&mut self, ledger: &mut Ledger, from: Side, chunk: Chunk<'a>) -> Option<Switch<'a>> {
        match &mut self.framing {
            Framing::Datagrams => {
                let mut span = Span { done: true, ..Span::default() };
                span.extend(chunk.seen, chunk.len());
                self.message(ledger, from, chunk.bytes, span, chunk.offset);
            }
            Framing::Stream(streams) => {
                let stream = &mut streams[from];
                stream.packet(ledger, &chunk);
                let (mut bytes, mut offset) = (chunk.bytes, chunk.offset);
                while !bytes.is_empty() && !self.stream(from).is_none_or(|stream| stream.out_of_step) {
                    let taken = self.take(ledger, from, bytes, chunk.seen, offset);
                    bytes = bytes.get(taken..).unwrap_or_default();
                    offset = offset.saturating_add(taken as u64);
                }
                if chunk.cut > 0 {
                    self.pass_over(ledger, from, chunk.cut.into(), Some(chunk.seen), chunk.seen);
                }
            }
        }
        ledger.release();
        None
    }

    fn gap(&mut self, ledger: &mut Ledger, from: Side, gap: Gap) {
        self.pass_over(ledger, from, gap.len, None, gap.seen);
        ledger.release();
    }

    /// Queries that were sent may still be answered.
    fn fin(&mut self, _ledger: &mut Ledger, _from: Side, _seen: Moment) {}

    /// The flow is over: queries without a response go out as they stand.
    fn finish(&mut self, ledger: &mut Ledger) {
        if let Framing::Stream(streams) = &mut self.framing {
            for from in [Side::Client, Side::Server] {
                streams[from].in_step(ledger);
            }
            **streams = BySide::default();
        }
        ledger.release_all();
    }

    /// First byte that is not yet in the ledger.
    fn pending(&self) -> Option<Moment> {
        match &self.framing {
            Framing::Datagrams => None,
            Framing::Stream(streams) => Moment::earliest([streams.client.span.first, streams.server.span.first]),
        }
    }
}

/// Begins the exchange of a query for `question`.
fn open(ledger: &mut Ledger, requester: Side, question: Option<&Question>, offset: u64) -> u32 {
    // Servers ask each other, too.
    ledger.requester = requester;
    let number = ledger.open(PROTOCOL, offset);
    if let (Some(entry), Some(question)) = (ledger.get(number), question) {
        entry.exchange.method = Some(message::qtype(question.qtype).into());
        entry.exchange.target = Some(question.name.clone());
    }
    number
}

impl Asked {
    /// Is `message`, of the same id, this query again, or a response to it? A refusal may lack the question.
    fn is(&self, message: &Message) -> bool {
        #[cfg(test)]
        tests::COMPARED.set(tests::COMPARED.get() + 1);
        match (&self.question, &message.question) {
            (Some(asked), Some(question)) => asked.is(question),
            _ => true,
        }
    }
}

impl Stream {
    /// Bytes that are missing to the end of the message, or of its length.
    fn left(&self) -> usize {
        let end = match self.kept.first_chunk::<LENGTH>() {
            Some(length) => LENGTH + usize::from(u16::from_be_bytes(*length)),
            None => LENGTH,
        };
        end.saturating_sub(self.passed)
    }

    /// Bytes come: a packet that begins like a message ends being out of step.
    fn packet(&mut self, ledger: &mut Ledger, chunk: &Chunk<'_>) {
        let packet_begins = self.trail.begins_packet(chunk.seen);
        self.latest = Some(chunk.seen);
        if self.out_of_step {
            if packet_begins && matches!(sniff_stream(chunk.bytes), Verdict::Yes) {
                self.in_step(ledger);
            } else {
                self.trail.go_on(chunk.seen);
            }
        }
    }

    fn in_step(&mut self, ledger: &mut Ledger) {
        self.out_of_step = false;
        self.trail.end(ledger);
    }
}
