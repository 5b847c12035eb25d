//! Messages inside the content of an exchange: those of gRPC in a stream of HTTP/2, those of WebSocket after an Upgrade.
//!
//! In: nothing. Out: plain values. Payloads are never kept: of a message, its sender, length and times are known.

use super::Span;
use crate::stream::{BySide, Moment, Side};

/// What kind of message it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ContentKind {
    /// A Length-Prefixed-Message of gRPC.
    Message,
    /// Data of WebSocket (RFC 6455 section 5.6).
    Text,
    Binary,
    /// Control frames of WebSocket (RFC 6455 section 5.5).
    Close,
    Ping,
    Pong,
}

impl ContentKind {
    /// The name in the tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Text => "text",
            Self::Binary => "binary",
            Self::Close => "close",
            Self::Ping => "ping",
            Self::Pong => "pong",
        }
    }
}

/// One message. Mirrors the `exchange_messages` table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContentMessage {
    /// The exchange that it belongs to.
    pub exchange: u32,
    /// 0-based among what its sender says in that exchange.
    pub number: u32,
    pub from: Side,
    /// Who asked for the exchange.
    pub requester: Side,
    pub kind: ContentKind,
    pub compressed: bool,
    /// Of the payload, as its sender announced it.
    pub bytes: u64,
    pub first: Moment,
    /// The last byte that was seen: that of the message where it is `done`.
    pub last: Moment,
    pub done: bool,
}

impl ContentMessage {
    /// Adds a part, which has been seen like that.
    pub(super) fn extend(&mut self, part: &Span) {
        self.last = part.last.map_or(self.last, |last| self.last.max(last));
        self.done = ends(part);
    }
}

/// Was the last byte seen? Of bytes that nobody saw, it is only known by when they had come.
fn ends(part: &Span) -> bool {
    let after = |revealed: Moment| part.last.is_some_and(|last| last.max(revealed) == last);
    part.done && part.revealed.is_none_or(after)
}

/// Numbers the messages of one exchange.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbering {
    exchange: u32,
    requester: Side,
    next: BySide<u32>,
}

impl Numbering {
    pub fn new(exchange: u32, requester: Side) -> Self {
        Self { exchange, requester, next: BySide::default() }
    }

    /// The next message of that side; `None` where none of its bytes was seen.
    pub fn begin(&mut self, from: Side, kind: ContentKind, compressed: bool, part: &Span) -> Option<ContentMessage> {
        let first = part.first?;
        let number = self.next[from];
        self.next[from] = number.saturating_add(1);
        let (exchange, requester) = (self.exchange, self.requester);
        let mut message = ContentMessage {
            exchange,
            number,
            from,
            requester,
            kind,
            compressed,
            bytes: 0,
            first,
            last: first,
            done: false,
        };
        message.extend(part);
        Some(message)
    }
}
