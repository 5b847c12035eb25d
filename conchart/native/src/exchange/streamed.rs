//! Messages on a stream of HTTP/2 or HTTP/3: gRPC, and WebSocket after an extended CONNECT.
//!
//! In: the content of the stream's DATA frames, cut anywhere, and what is missing of it. Out: each message that is over,
//! for its [`Hearer`]. A side of which nobody knows where its next message begins says no more.

use super::framed::{Framed, Message, Missed, Whole};
use super::ledger::Ledger;
use super::reader::Start;
use crate::stream::{BySide, Gap, Moment, Side};

/// What makes messages of the exchange out of a protocol's messages.
pub(super) trait Hearer {
    type Message: Message<Context = ()>;

    /// A message is over.
    fn message(&mut self, ledger: &mut Ledger, from: Side, whole: Whole<Self::Message>);

    /// That side says no more.
    fn ended(&mut self, _ledger: &mut Ledger, _from: Side) {}
}

pub(super) struct Streamed<H: Hearer> {
    hearer: H,
    /// `None` from where on the messages of that side cannot be followed.
    sides: BySide<Option<Framed<H::Message>>>,
}

impl<H: Hearer> Streamed<H> {
    /// Messages that are all to come.
    pub fn new(hearer: H) -> Self {
        let begin = || Some(Framed::new(Start::Beginning));
        Self { hearer, sides: BySide { client: begin(), server: begin() } }
    }

    /// That side began before the capture: it is not followed.
    pub fn without(mut self, side: Side) -> Self {
        self.sides[side] = None;
        self
    }

    /// Content of that side.
    pub fn data(&mut self, ledger: &mut Ledger, from: Side, content: &[u8], seen: Moment) {
        let mut rest = content;
        while !rest.is_empty()
            && let Some(side) = &mut self.sides[from]
        {
            let Ok((taken, whole)) = side.take(rest, seen, 0, ()) else {
                self.sides[from] = None;
                return self.hearer.ended(ledger, from);
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
        self.hearer.ended(ledger, from);
    }

    fn tell(&mut self, ledger: &mut Ledger, from: Side, whole: Option<Whole<H::Message>>) {
        if let Some(whole) = whole {
            self.hearer.message(ledger, from, whole);
        }
    }

    #[cfg(test)]
    pub fn held(&self) -> usize {
        [&self.sides.client, &self.sides.server].into_iter().flatten().map(Framed::held).sum()
    }
}
