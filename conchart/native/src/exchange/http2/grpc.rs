//! Messages of gRPC in the content of a stream: a byte that says whether it is compressed, a length of four bytes, and
//! as many bytes (the gRPC protocol over HTTP/2, "Length-Prefixed-Message").
//!
//! In: messages of a [`Streamed`]. Out: [`ContentMessage`]s in the [`Ledger`](crate::exchange::ledger::Ledger).

use crate::exchange::content::{ContentKind, ContentMessage, Numbering};
use crate::exchange::framed::{LengthField, Message, Read, Whole};
use crate::exchange::ledger::Ledger;
use crate::exchange::protocols::{StatusText, listed};
use crate::exchange::streamed::{Hearer, Streamed};
use crate::stream::Side;

pub(in crate::exchange) const PROTOCOL: &str = "grpc";

/// Status codes, from 0. Other statuses are those of HTTP: who responded does not speak gRPC.
const CODES: &[&str] = &[
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// How people write a status: the status code of gRPC, else the status of HTTP.
pub(in crate::exchange) fn status_text(status: u32) -> StatusText {
    listed(CODES, status).unwrap_or(StatusText::Number(status))
}

const LENGTH: LengthField = LengthField { at: 1, width: 4, little_endian: false, uncounted: Prefix::FIRST };

/// What comes before a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Prefix {
    compressed: bool,
    payload: u64,
}

impl Message for Prefix {
    type Context = ();
    const FIRST: usize = 5;

    fn read(beginning: &[u8], _all: bool, (): ()) -> Read<Self> {
        let Some(len) = LENGTH.read(beginning) else {
            return Read::More { wanted: Self::FIRST, len: None };
        };
        let payload = (len - Self::FIRST) as u64;
        match beginning.first() {
            Some(&flag @ 0..=1) => Read::Parsed(Self { compressed: flag == 1, payload }, len),
            _ => Read::Wrong,
        }
    }
}

/// Is this the type of gRPC's content, and not that of gRPC-Web, whose frames differ?
pub(super) fn is_grpc(content_type: &[u8]) -> bool {
    let rest = content_type.strip_prefix(b"application/grpc");
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';' | b' ')))
}

/// A call: the messages of its two sides.
pub(super) struct Call(Numbering);

impl Call {
    /// A call whose messages are all to come. `by_requester`: that is so of the request, too.
    pub fn streamed(exchange: u32, requester: Side, by_requester: bool) -> Streamed<Self> {
        let streamed = Streamed::new(Self(Numbering::new(exchange, requester)));
        if by_requester { streamed } else { streamed.without(requester) }
    }
}

impl Hearer for Call {
    type Message = Prefix;

    fn message(&mut self, ledger: &mut Ledger, from: Side, whole: Whole<Prefix>) {
        let Whole { message: Prefix { compressed, payload }, span, .. } = whole;
        if let Some(message) = self.0.begin(from, ContentKind::Message, compressed, &span) {
            ledger.message(ContentMessage { bytes: payload, ..message });
        }
    }
}
