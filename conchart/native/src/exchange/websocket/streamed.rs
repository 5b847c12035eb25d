//! A WebSocket on a stream of HTTP/2 (RFC 8441) or HTTP/3 (RFC 9220).
//!
//! In: the content of the stream's DATA frames, cut anywhere, and what is missing of it. Out: as of [`WebSocket`]. A side
//! of which nobody knows where its next frame begins says no more.

use super::WebSocket;
use super::frame::Frame;
use crate::exchange::content::Numbering;
use crate::exchange::framed::{Framed, Missed, Whole};
use crate::exchange::ledger::Ledger;
use crate::exchange::messages::Protocol;
use crate::exchange::reader::Start;
use crate::stream::{BySide, Gap, Moment, Side};

pub(in crate::exchange) struct Streamed {
    socket: WebSocket,
    /// `None` from where on the frames of that side cannot be followed.
    sides: BySide<Option<Framed<Frame>>>,
}

impl Streamed {
    /// Frames that are all to come, of the exchange of that number.
    pub fn new(exchange: u32, requester: Side) -> Self {
        let numbering = Numbering::new(exchange, requester);
        let begin = || Some(Framed::new(Start::Beginning));
        Self {
            socket: WebSocket { numbering, fragmented: BySide::default() },
            sides: BySide { client: begin(), server: begin() },
        }
    }

    /// Content of that side.
    pub fn data(&mut self, ledger: &mut Ledger, from: Side, content: &[u8], seen: Moment) {
        let mut rest = content;
        while !rest.is_empty()
            && let Some(side) = &mut self.sides[from]
        {
            let Ok((taken, whole)) = side.take(rest, seen, 0, ()) else {
                self.sides[from] = None;
                return self.socket.cut_short(ledger, from);
            };
            self.tell(ledger, from, whole);
            rest = rest.get(taken..).unwrap_or_default();
        }
    }

    /// Content of that side is missing. `sent`: when it was, where that is known; `by` when it had been.
    pub fn miss(&mut self, ledger: &mut Ledger, from: Side, len: u64, sent: Option<Moment>, by: Moment) {
        let Some(side) = &mut self.sides[from] else {
            return;
        };
        match side.miss(Gap::new(0, len, by), sent, ()) {
            Missed::Inside(whole) => self.tell(ledger, from, whole),
            Missed::OutOfStep(cut_short) => {
                self.tell(ledger, from, cut_short);
                self.end(ledger, from);
            }
        }
    }

    /// That side says no more, or nobody knows what.
    pub fn end(&mut self, ledger: &mut Ledger, from: Side) {
        let cut_short = self.sides[from].take().and_then(|mut side| side.finish(ledger, ()));
        self.tell(ledger, from, cut_short);
        self.socket.cut_short(ledger, from);
    }

    #[cfg(test)]
    pub fn held(&self) -> usize {
        [&self.sides.client, &self.sides.server].into_iter().flatten().map(Framed::held).sum()
    }

    fn tell(&mut self, ledger: &mut Ledger, from: Side, whole: Option<Whole<Frame>>) {
        if let Some(whole) = whole {
            self.socket.message(ledger, from, whole);
        }
    }
}
