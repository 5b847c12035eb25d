//! Requests and their responses: HTTP/1 read as text, everything else as turns.

use crate::stream::{Moment, Side};

/// First and last byte of one message.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Span {
    pub first: Option<Moment>,
    /// Last byte seen so far.
    pub last: Option<Moment>,
    /// True once the message is known to have ended at `last`.
    pub done: bool,
    /// Stream bytes, head and body.
    pub bytes: u64,
}

/// One request and its response. Mirrors the `exchanges` table.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// 0-based on its connection.
    pub number: u32,
    pub requester: Side,
    pub request: Span,
    /// The final response; 1xx responses are not it (except 101).
    pub response: Span,
    pub protocol: &'static str,
    pub method: Option<Box<str>>,
    pub host: Option<Box<str>>,
    pub target: Option<Box<str>>,
    pub status: Option<u16>,
    /// Does this side want the connection kept open after this exchange?
    pub client_keepalive: Option<bool>,
    pub server_keepalive: Option<bool>,
    /// True when the boundaries come from the direction of bytes, not from the protocol's text.
    pub inferred: bool,
    /// 0 to 1.
    pub confidence: f32,
}
