//! WebSocket (RFC 6455): frames are followed, and every message is told with its sender, length and times.
//!
//! In: the frames of both sides, after a response with status 101, or on a stream of HTTP/2 or HTTP/3. Out: [`ContentMessage`]s of the exchange that upgraded;
//! no exchanges of their own, because nobody knows which message answers which. Control frames may come between the
//! frames of a message. Non-goals: payloads, extensions (of RFC 7692 only the mark of a compressed message is read).
//!
//! Bounded: of each side, one header and one message under way.

mod frame;
#[cfg(test)]
mod tests;

use self::frame::Frame;
use super::content::{ContentMessage, Numbering};
use super::framed::Whole;
use super::ledger::Ledger;
use super::messages::{Messages, Protocol};
use super::reader::Start;
use super::streamed::{Hearer, Streamed};
use crate::stream::{BySide, Moment, Side};

pub(super) struct WebSocket {
    numbering: Numbering,
    /// Messages of which another frame has to come.
    fragmented: BySide<Option<ContentMessage>>,
}

pub(super) const PROTOCOL: &str = "websocket";

impl WebSocket {
    /// What follows the exchange of that number.
    pub fn after(ledger: &Ledger, exchange: u32) -> Messages<Self> {
        let numbering = Numbering::new(exchange, ledger.requester);
        Messages::of(Start::Beginning, false, Self { numbering, fragmented: BySide::default() })
    }

    /// What follows an extended CONNECT, the exchange of that number: on a stream of HTTP/2 (RFC 8441) or HTTP/3
    /// (RFC 9220).
    pub fn streamed(exchange: u32, requester: Side) -> Streamed<Self> {
        Streamed::new(Self { numbering: Numbering::new(exchange, requester), fragmented: BySide::default() })
    }

    /// The message under way of that side does not go on.
    fn cut_short(&mut self, ledger: &mut Ledger, from: Side) {
        if let Some(message) = self.fragmented[from].take() {
            ledger.message(ContentMessage { done: false, ..message });
        }
    }
}

impl Protocol for WebSocket {
    type Message = Frame;
    const NAME: &'static str = PROTOCOL;

    fn begins(packet: &[u8], asks: bool) -> bool {
        frame::begins(packet, asks)
    }

    fn context(&self, _asks: bool) {}

    fn message(&mut self, ledger: &mut Ledger, from: Side, whole: Whole<Frame>) {
        let Whole { message: frame, span, .. } = whole;
        let begun = match frame.kind {
            // The beginning of its message is missing.
            None if self.fragmented[from].is_none() => return,
            None => None,
            Some(kind) => self.numbering.begin(from, kind, frame.compressed, &span),
        };
        if frame.is_control() {
            begun.into_iter().for_each(|message| ledger.message(ContentMessage { bytes: frame.payload, ..message }));
            return;
        }
        if begun.is_some() {
            self.cut_short(ledger, from);
            self.fragmented[from] = begun;
        }
        let Some(message) = &mut self.fragmented[from] else {
            return;
        };
        message.bytes = message.bytes.saturating_add(frame.payload);
        message.extend(&span);
        if !span.done {
            self.cut_short(ledger, from);
        } else if frame.is_last {
            self.fragmented[from].take().into_iter().for_each(|message| ledger.message(message));
        }
    }

    fn lost(&mut self, ledger: &mut Ledger, from: Side, _by: Moment) {
        self.cut_short(ledger, from);
    }

    fn pending(&self) -> Option<Moment> {
        Moment::earliest([&self.fragmented.client, &self.fragmented.server].map(|m| m.as_ref().map(|m| m.first)))
    }

    fn finish(&mut self, ledger: &mut Ledger) {
        self.cut_short(ledger, Side::Client);
        self.cut_short(ledger, Side::Server);
    }
}

impl Hearer for WebSocket {
    type Message = Frame;

    fn message(&mut self, ledger: &mut Ledger, from: Side, whole: Whole<Frame>) {
        Protocol::message(self, ledger, from, whole);
    }

    fn ended(&mut self, ledger: &mut Ledger, from: Side) {
        self.cut_short(ledger, from);
    }
}
