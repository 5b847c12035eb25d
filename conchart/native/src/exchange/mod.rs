//! Requests and their responses: of protocols that are read here, message by message; of all others, as turns.
//!
//! In: what two sides send, as [`Chunk`](crate::stream::Chunk)s and [`Gap`](crate::stream::Gap)s of streams, or as
//! datagrams. Out: [`Exchange`]s in the order of their number, TLS handshakes, and the stretches of time of which
//! nobody can say what went on. No IO, no clock; TLS is opened by `tls` where its secrets are known.
//!
//! The way of a chunk: [`Conversation`] → `layer`, which finds out by the table of `sniffers` what is spoken → one
//! [`Reader`](reader::Reader) → the `ledger`, where the exchanges are until they are handed out. What a reader leaves
//! over (a tunnel, an Upgrade, the streams inside TLS) begins again at a `layer`.
//!
//! Rooms: `http1` (heads, bodies), `http2` (frames, HPACK; `sealed` for records that cannot be opened), `http3` (frames,
//! QPACK), `dns`,
//! `fastcgi`, `ldap`, `memcached`, `mongodb`, `mysql`, `postgresql`, `redis`, `tls` (and what is said inside), `quic`, `prelude` (PROXY,
//! SOCKS), `websocket`, `generic` (everything else, as turns). Beside the rooms stands what readers share.
//!
//! **To add a protocol: one file, two rows.** Write a [`Reader`](reader::Reader) in a file of its own, which puts what
//! it finds into the ledger (`open` an exchange, fill its spans, `release` it), its facts into a row of `protocols.rs`
//! (kind, product, what is never answered, names of statuses), and a row for each way in which the protocol begins
//! into the table in `sniffers.rs`: the carrier, who begins so, and how to make the reader. Nothing else knows the
//! protocol, here or in Python.

mod backlog;
mod by_design;
mod content;
mod conversation;
mod dns;
mod fastcgi;
mod framed;
mod generic;
mod http1;
mod http2;
mod http3;
mod layer;
mod ldap;
mod ledger;
mod memcached;
mod messages;
mod mongodb;
mod mysql;
mod outcome;
mod postgresql;
mod prelude;
mod protocols;
mod provenance;
mod questions;
mod quic;
mod reader;
mod redis;
mod sniffers;
mod sql;
mod statements;
mod streamed;
#[cfg(test)]
mod tests;
mod tls;
mod trail;
mod websocket;

use std::borrow::Cow;

pub use content::{ContentKind, ContentMessage};
pub use conversation::Conversation;
pub use ledger::passing::{Http3Frame, QuicFrame};
pub use ledger::{Delay, Way};
pub use outcome::{Ender, Ends, Outcome};
pub use protocols::{PROTOCOLS, Protocol, StatusText, facts};
pub use provenance::Provenance;
pub use reader::Carrier;
pub use sniffers::likely_sender;
pub use statements::{QueryShape, Statements};

use crate::stream::{BySide, Gap, Moment, Side};
use statements::Statement;

/// First and last byte of one message.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Span {
    pub first: Option<Moment>,
    /// Last byte seen so far.
    pub last: Option<Moment>,
    /// By then, bytes of it had come at a time that nobody saw.
    pub revealed: Option<Moment>,
    /// First byte of its content; `None` without content, and where that byte came at a time that nobody saw.
    pub content: Option<Moment>,
    /// True once the message is known to have ended at `last`.
    pub done: bool,
    /// Stream bytes, head and body.
    pub bytes: u64,
}

impl Span {
    /// Adds bytes that one packet brought. A retransmission may bring early bytes late, so `last`
    /// is the moment at which everything had been seen, not that of the highest offset.
    fn extend(&mut self, seen: Moment, bytes: u64) {
        self.first.get_or_insert(seen);
        self.last = Some(self.last.map_or(seen, |last| last.max(seen)));
        self.bytes += bytes;
    }

    /// Adds bytes of a gap.
    fn extend_over(&mut self, gap: Gap) {
        if let Some((first, last)) = gap.acked {
            self.extend(first, 0);
            self.extend(last, gap.len);
        } else {
            self.extend_unseen(gap.len);
            self.revealed = Some(gap.seen);
        }
    }

    /// Adds what was seen of a part of the message.
    fn append(&mut self, part: Self) {
        self.first = self.first.or(part.first);
        self.last = self.last.map_or(part.last, |last| Some(part.last.map_or(last, |of_part| last.max(of_part))));
        self.revealed = self.revealed.or(part.revealed);
        self.bytes = self.bytes.saturating_add(part.bytes);
    }

    /// Adds bytes that were sent at a time nobody saw.
    fn extend_unseen(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// What carries a question of DNS.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DnsOver {
    Udp,
    Tcp,
    Tls,
    Https,
    Quic,
}

impl DnsOver {
    /// The name in the tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
            Self::Tls => "tls",
            Self::Https => "https",
            Self::Quic => "quic",
        }
    }
}

/// A question of DNS, and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct DnsQuestion {
    /// QTYPE.
    pub kind: Cow<'static, str>,
    /// QNAME.
    pub name: Box<str>,
    pub rcode: Option<u8>,
}

/// What CONNECT asked for (RFC 9110 section 9.3.6, RFC 8441, RFC 9220), and what went through.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tunnel {
    /// As the request names it in `:protocol`; without that, `tcp`.
    pub kind: Box<str>,
    /// The whole head of the response that opened it.
    pub done: Option<Moment>,
    /// Content of DATA frames, of HTTP datagrams, and of WebTransport's streams.
    pub bytes: BySide<u64>,
    /// HTTP datagrams (RFC 9297), in DATAGRAM frames of QUIC and in capsules.
    pub datagrams: BySide<u64>,
}

/// A GOAWAY frame (RFC 9113 section 6.8) that came while the exchange was open.
#[derive(Clone, Debug, PartialEq)]
pub struct Goaway {
    pub from: Side,
    /// The name of the error code.
    pub code: Cow<'static, str>,
    /// What the server says of it, at most 128 bytes.
    pub text: Box<str>,
    pub seen: Moment,
    /// PINGs that its receiver had sent.
    pub pings: u64,
}

impl Goaway {
    /// RFC 9113 section 7.
    const CODES: [&'static str; 14] = [
        "NO_ERROR",
        "PROTOCOL_ERROR",
        "INTERNAL_ERROR",
        "FLOW_CONTROL_ERROR",
        "SETTINGS_TIMEOUT",
        "STREAM_CLOSED",
        "FRAME_SIZE_ERROR",
        "REFUSED_STREAM",
        "CANCEL",
        "COMPRESSION_ERROR",
        "CONNECT_ERROR",
        "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY",
        "HTTP_1_1_REQUIRED",
    ];

    fn new(from: Side, code: u32, text: &[u8], seen: Moment, pings: u64) -> Self {
        let found = usize::try_from(code).ok().and_then(|code| Self::CODES.get(code));
        let code = found.map_or_else(|| format!("{code:#x}").into(), |&name| name.into());
        let text = String::from_utf8_lossy(text.get(..128).unwrap_or(text)).into();
        Self { from, code, text, seen, pings }
    }
}

/// One request and its response. Mirrors the `exchanges` table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exchange {
    /// 0-based on its connection.
    pub number: u32,
    pub requester: Side,
    pub request: Span,
    /// The final response; 1xx responses are not it (except 101).
    pub response: Span,
    pub protocol: &'static str,
    /// Names that are known are not copied.
    pub method: Option<Cow<'static, str>>,
    pub host: Option<Box<str>>,
    pub target: Option<Box<str>>,
    /// The shape of a statement, where `target` is its whole text.
    pub shape: Option<Box<str>>,
    pub status: Option<u32>,
    /// Where it asks a question of DNS: what carries that.
    pub dns_over: Option<DnsOver>,
    /// The question, where the request is one of HTTP.
    pub dns_question: Option<Box<DnsQuestion>>,
    /// The product that each end says it is.
    pub user_agent: Option<Box<str>>,
    pub server_software: Option<Box<str>>,
    /// The client asks for 100 (Continue) before it sends the content; `None` while its head is not read.
    pub expects_continue: Option<bool>,
    /// First byte of that interim response.
    pub continued: Option<Moment>,
    /// How many seconds the server keeps the connection, as it says.
    pub keep_alive_timeout: Option<u32>,
    /// What the heads say of its way here.
    pub provenance: Option<Box<Provenance>>,
    /// Does this side want the connection kept open after this exchange?
    pub client_keepalive: Option<bool>,
    pub server_keepalive: Option<bool>,
    /// Since when the response is owed, though nothing was asked: the server speaks first, and the connection stands.
    pub owed: Option<Moment>,
    /// Nothing more of it will come after this: it was given up (RST_STREAM), or nothing answers it (a PROXY header).
    pub ended: Option<Moment>,
    /// How it ended. Readers say so where only their protocol tells; `None` when all else is known: no response was due.
    pub outcome: Option<Outcome>,
    /// Who broke it off.
    pub ended_by: Option<Ender>,
    /// The connection was to end while it was open.
    pub goaway: Option<Box<Goaway>>,
    /// The response comes when something happens (an entry in a queue), not when work is done: until then, nobody owes it.
    pub awaits_event: bool,
    /// So do the parts of it after its head: an event stream, a watch.
    pub streams: bool,
    /// Of such a response, the last byte of its head.
    pub streams_from: Option<Moment>,
    /// It asks for a tunnel on a stream of HTTP/2 or HTTP/3. The request ends with its head, and what the response
    /// brings after its head is what goes through, whoever sends it.
    pub tunnel: Option<Box<Tunnel>>,
    /// True when the boundaries come from the direction of bytes, not from the protocol's text.
    pub inferred: bool,
    /// 0 to 1.
    pub confidence: f64,
}

impl Exchange {
    /// First byte seen of either message.
    pub(crate) fn opened(&self) -> Option<Moment> {
        Moment::earliest([self.request.first, self.response.first])
    }

    /// What it comes with that takes long by design: the name in the tables.
    #[must_use]
    pub fn awaits(&self) -> Option<&'static str> {
        let event = self.awaits_event.then_some("event");
        if self.streams { Some("stream") } else { event }
    }

    /// Does it greet, on a connection that begins with these bytes of the server's?
    ///
    /// Elsewhere it is news, which is not owed at any time: HTTP's 408 to a client that says nothing, or a line of what
    /// nobody read.
    #[must_use]
    pub fn greets(&self, first: Moment) -> bool {
        self.request.first.is_none() && self.response.first == Some(first) && facts(self.protocol).greets
    }

    /// Says which statement is asked.
    fn states(&mut self, Statement { target, shape }: Statement) {
        (self.target, self.shape) = (target, shape);
    }

    /// The message that this side sends.
    fn message(&mut self, from: Side) -> &mut Span {
        if from == self.requester { &mut self.request } else { &mut self.response }
    }

    /// Says that bytes are missing or make no sense: whatever was read here may be wrong.
    fn doubt(&mut self, confidence: f64) {
        self.inferred = true;
        self.confidence = self.confidence.min(confidence);
    }
}
