//! DNS (RFC 1035): every query is one exchange, over UDP and TCP, inside TLS (RFC 7858) and QUIC (RFC 9250).
//!
//! In: over UDP datagrams, each one message (RFC 1035 section 4.2.1); over TCP a stream of messages, each behind its
//! length (RFC 7766 section 8); for HTTP, what `carried` reads of its requests. Out: exchanges in the [`Ledger`]:
//! method is the QTYPE, target the QNAME, status the RCODE; what HTTPS and SVCB records say is in its provenance.
//! A query that is sent again, because nobody answered, is the same exchange: its wait goes on. Non-goals: other
//! resource records; the messages of a zone transfer after the first; responses to multicast queries, which go to everyone.
//!
//! Bounded: [`MAX_QUERIES`] queries are remembered, of each message its question, and over TCP
//! [`MAX_SERVICES`] bytes of one that has services.

pub(super) mod carried;
mod message;
pub(super) mod over_quic;
mod services;
#[cfg(test)]
mod tests;

use super::framed::{self, Framed, LengthField, Missed, Read, Whole};
use super::ledger::Ledger;
use super::protocols::{StatusText, listed};
use super::questions::Questions;
use super::reader::{Opening, Reader, Start, Switch, Verdict};
use super::{DnsOver, Span};
use crate::stream::{BySide, Chunk, Gap, Moment, Side};
use message::{MIN_QUERY, Message, QUESTION_END, Question};

pub(super) const PROTOCOL: &str = "dns";

/// Names of RCODEs, in the order of their numbers (RFC 1035, RFC 2136).
const RCODES: &[&str] =
    &["NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED", "YXDOMAIN", "YXRRSET", "NXRRSET", "NOTAUTH"];

/// How people write a status: the name of the RCODE.
pub(super) fn status_text(status: u32) -> StatusText {
    listed(RCODES, status).unwrap_or(StatusText::Unnamed("RCODE", status))
}

/// Queries that are remembered, answered or not.
const MAX_QUERIES: usize = 512;

/// Bytes of a message in which services are looked for.
const MAX_SERVICES: usize = 4096;

/// What stands before each message over TCP.
const LENGTH: usize = 2;
const LENGTH_FIELD: LengthField = LengthField { at: 0, width: LENGTH, little_endian: false, uncounted: LENGTH };

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
    over: DnsOver,
    queries: Questions<Query>,
}

/// How messages follow each other.
enum Framing {
    Datagrams,
    Stream(Box<BySide<Framed<InStream>>>),
}

/// A query that was seen.
struct Query {
    from: Side,
    question: Option<Question>,
    answered: bool,
}

/// A message over TCP; `None` where it is none.
struct InStream(Option<Message>);

impl framed::Message for InStream {
    type Context = ();
    const FIRST: usize = LENGTH;

    fn read(beginning: &[u8], all: bool, (): ()) -> Read<Self> {
        let Some(len) = LENGTH_FIELD.read(beginning) else {
            return Read::Wrong;
        };
        let wanted = len.min(LENGTH + QUESTION_END);
        if beginning.len() < wanted && !all {
            return Read::More { wanted, len: Some(len) };
        }
        let message = message::parse(beginning.get(LENGTH..).unwrap_or_default());
        let wanted = len.min(LENGTH + MAX_SERVICES);
        if beginning.len() < wanted && !all && message.as_ref().is_some_and(Message::has_services) {
            return Read::More { wanted, len: Some(len) };
        }
        Read::Parsed(Self(message), len)
    }
}

impl Dns {
    /// Over UDP: a chunk is a datagram.
    pub fn over_datagrams() -> Self {
        Self { framing: Framing::Datagrams, over: DnsOver::Udp, queries: Questions::new(MAX_QUERIES) }
    }

    /// Over TCP, or inside TLS.
    pub fn over_stream(opening: &Opening<'_>) -> Self {
        Self::in_order(opening.start, if opening.depth > 0 { DnsOver::Tls } else { DnsOver::Tcp })
    }

    /// On one stream of QUIC.
    fn over_quic() -> Self {
        Self::in_order(Start::Beginning, DnsOver::Quic)
    }

    fn in_order(start: Start, over: DnsOver) -> Self {
        let streams = BySide { client: Framed::new(start), server: Framed::new(start) };
        Self { framing: Framing::Stream(Box::new(streams)), over, queries: Questions::new(MAX_QUERIES) }
    }

    /// Is it for everyone? Over QUIC, every ID is 0 (RFC 9250 section 4.2.1).
    fn is_multicast(&self, message: &Message) -> bool {
        self.over == DnsOver::Udp && message.is_multicast()
    }

    /// Bytes over TCP.
    fn follow(&mut self, ledger: &mut Ledger, from: Side, chunk: Chunk<'_>) {
        let Framing::Stream(streams) = &mut self.framing else {
            return;
        };
        let stream = &mut streams[from];
        stream.looks_foreign(ledger, chunk.seen, || sniff_stream(chunk.bytes) == Verdict::Yes);
        if stream.is_out_of_step() {
            stream.go_on(chunk.seen);
        }
        let (mut bytes, mut offset) = (chunk.bytes, chunk.offset);
        while !bytes.is_empty()
            && let Framing::Stream(streams) = &mut self.framing
            && !streams[from].is_out_of_step()
            && let Ok((taken, whole)) = streams[from].take(bytes, chunk.seen, offset, ())
        {
            bytes = bytes.get(taken..).unwrap_or_default();
            offset = offset.saturating_add(taken as u64);
            self.in_stream(ledger, from, whole);
        }
        if chunk.cut > 0 {
            let cut_at = chunk.offset.saturating_add(chunk.bytes.len() as u64);
            self.pass_over(ledger, from, Gap::new(cut_at, chunk.cut.into(), chunk.seen), Some(chunk.seen));
        }
    }

    /// Passes over bytes that the capture does not hold. `sent`: when they were, where a snap length cut them off.
    fn pass_over(&mut self, ledger: &mut Ledger, from: Side, gap: Gap, sent: Option<Moment>) {
        if let Framing::Stream(streams) = &mut self.framing
            && let Missed::Inside(whole) = streams[from].miss(gap, sent, ())
        {
            self.in_stream(ledger, from, whole);
        }
    }

    fn in_stream(&mut self, ledger: &mut Ledger, from: Side, whole: Option<Whole<InStream>>) {
        if let Some(Whole { message: InStream(Some(message)), span, offset }) = whole {
            self.message(ledger, from, message, span, offset);
        }
    }

    fn message(&mut self, ledger: &mut Ledger, from: Side, message: Message, span: Span, offset: u64) {
        if message.is_response {
            self.response(ledger, from, message, span, offset);
        } else {
            self.query(ledger, from, message, span, offset);
        }
    }

    fn query(&mut self, ledger: &mut Ledger, from: Side, message: Message, span: Span, offset: u64) {
        let again = |earlier: &Query| !earlier.answered && earlier.from == from && earlier.is(&message);
        if self.queries.of(message.id.into()).any(|question| again(&question.about)) {
            return;
        }
        let number = self.open(ledger, from, message.question.as_ref(), offset);
        if let Some(entry) = ledger.get(number) {
            entry.exchange.request = span;
            entry.exchange.ended = if self.is_multicast(&message) { span.last } else { None };
        }
        self.remember(number, from, message, false);
    }

    fn response(&mut self, ledger: &mut Ledger, from: Side, mut message: Message, span: Span, offset: u64) {
        let services = std::mem::take(&mut message.services);
        let (asker, status) = (from.peer(), Some(u16::from(message.rcode)));
        let fits = |earlier: &Query| earlier.from == asker && earlier.is(&message);
        // The response to a query that was sent again comes again.
        let (mut is_explained, mut waiting) = (self.is_multicast(&message), None);
        for question in self.queries.of(message.id.into()).filter(|question| fits(&question.about)) {
            is_explained = true;
            if !question.about.answered {
                waiting = Some(question.number);
                break;
            }
        }
        let number = match waiting {
            Some(number) => {
                if let Some(earlier) = self.queries.get(number) {
                    earlier.answered = true;
                }
                number
            }
            None if is_explained => return,
            // Nobody saw the query.
            None => {
                let number = self.open(ledger, asker, message.question.as_ref(), offset);
                self.remember(number, asker, message, true);
                number
            }
        };
        if let Some(entry) = ledger.get(number) {
            entry.exchange.response = span;
            entry.exchange.status = status.map(Into::into);
            for service in &services {
                entry.exchange.provenance.get_or_insert_default().add_alternative(service.as_bytes());
            }
        }
    }

    /// Begins the exchange of a query for `question`.
    fn open(&self, ledger: &mut Ledger, requester: Side, question: Option<&Question>, offset: u64) -> u32 {
        // Servers ask each other, too.
        ledger.requester = requester;
        let number = ledger.open(PROTOCOL, offset);
        if let Some(entry) = ledger.get(number) {
            entry.exchange.dns_over = Some(self.over);
            entry.exchange.method = question.map(|question| message::qtype(question.qtype));
            entry.exchange.target = question.map(|question| question.name.clone());
        }
        number
    }

    fn remember(&mut self, number: u32, from: Side, message: Message, answered: bool) {
        self.queries.push(message.id.into(), number, Query { from, question: message.question, answered });
    }
}

impl Reader for Dns {
    fn data<'a>(&mut self, ledger: &mut Ledger, from: Side, chunk: Chunk<'a>) -> Option<Switch<'a>> {
        match &self.framing {
            Framing::Datagrams => {
                let mut span = Span { done: true, ..Span::default() };
                span.extend(chunk.seen, chunk.len());
                if let Some(message) = message::parse(chunk.bytes) {
                    self.message(ledger, from, message, span, chunk.offset);
                }
            }
            Framing::Stream(_) => self.follow(ledger, from, chunk),
        }
        ledger.release();
        None
    }

    fn gap(&mut self, ledger: &mut Ledger, from: Side, gap: Gap) {
        self.pass_over(ledger, from, gap, None);
        ledger.release();
    }

    /// Queries that were sent may still be answered.
    fn fin(&mut self, _ledger: &mut Ledger, _from: Side, _seen: Moment) {}

    /// The flow is over: queries without a response go out as they stand.
    fn finish(&mut self, ledger: &mut Ledger) {
        if let Framing::Stream(streams) = &mut self.framing {
            for from in [Side::Client, Side::Server] {
                streams[from].finish(ledger, ());
            }
        }
        ledger.release_all();
    }

    /// First byte that is not yet in the ledger.
    fn pending(&self) -> Option<Moment> {
        match &self.framing {
            Framing::Datagrams => None,
            Framing::Stream(streams) => Moment::earliest([streams.client.pending(), streams.server.pending()]),
        }
    }
}

impl Query {
    /// Is `message`, of the same id, this query again, or a response to it? A refusal may lack the question.
    fn is(&self, message: &Message) -> bool {
        #[cfg(test)]
        tests::COMPARED.set(tests::COMPARED.get() + 1);
        match (&self.question, &message.question) {
            (Some(earlier), Some(question)) => earlier.is(question),
            _ => true,
        }
    }
}
