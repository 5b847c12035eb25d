//! Messages of gRPC in the content of a stream: a byte that says whether it is compressed, a length of four bytes, and
//! as many bytes (the gRPC protocol over HTTP/2, "Length-Prefixed-Message").
//!
//! In: the content of a stream's DATA frames, cut anywhere, and what is missing of it. Out: [`ContentMessage`]s in the
//! [`Ledger`](crate::exchange::ledger::Ledger). A side of which nobody knows where its next message begins says no more.

use crate::exchange::content::{ContentKind, ContentMessage, Numbering};
use crate::exchange::framed::{Framed, LengthField, Message, Missed, Read, Whole};
use crate::exchange::ledger::Ledger;
use crate::exchange::reader::Start;
use crate::stream::{BySide, Gap, Moment, Side};

const LENGTH: LengthField = LengthField { at: 1, width: 4, little_endian: false, uncounted: Prefix::FIRST };

/// What comes before a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Prefix {
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
            Some(&flag @ 0..=1) => Read::Known(Self { compressed: flag == 1, payload }, len),
            _ => Read::Wrong,
        }
    }
}

/// Is this the type of gRPC's content, and not that of gRPC-Web, whose frames differ?
pub(super) fn is_grpc(content_type: &[u8]) -> bool {
    let rest = content_type.strip_prefix(b"application/grpc");
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';' | b' ')))
}

/// A call: what its two sides say.
pub(super) struct Call {
    numbering: Numbering,
    /// `None` from where on the messages of that side cannot be followed.
    sides: BySide<Option<Framed<Prefix>>>,
}

impl Call {
    /// A call whose messages are all to come. `asked`: that is so of the request, too.
    pub fn new(exchange: u32, requester: Side, asked: bool) -> Self {
        let mut sides =
            BySide { client: Some(Framed::new(Start::Beginning)), server: Some(Framed::new(Start::Beginning)) };
        if !asked {
            sides[requester] = None;
        }
        Self { numbering: Numbering::new(exchange, requester), sides }
    }

    /// Content of that side.
    pub fn data(&mut self, ledger: &mut Ledger, from: Side, content: &[u8], seen: Moment) {
        let mut rest = content;
        while !rest.is_empty()
            && let Some(side) = &mut self.sides[from]
        {
            let Ok((taken, whole)) = side.take(rest, seen, 0, ()) else {
                return self.sides[from] = None;
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
                self.sides[from] = None;
            }
        }
    }

    /// That side says no more, or nobody knows what.
    pub fn end(&mut self, ledger: &mut Ledger, from: Side) {
        let cut_short = self.sides[from].take().and_then(|mut side| side.finish(ledger, ()));
        self.tell(ledger, from, cut_short);
    }

    fn tell(&mut self, ledger: &mut Ledger, from: Side, whole: Option<Whole<Prefix>>) {
        let Some(Whole { message: Prefix { compressed, payload }, span, .. }) = whole else {
            return;
        };
        if let Some(message) = self.numbering.begin(from, ContentKind::Message, compressed, &span) {
            ledger.message(ContentMessage { bytes: payload, ..message });
        }
    }

    #[cfg(test)]
    pub fn held(&self) -> usize {
        [&self.sides.client, &self.sides.server].into_iter().flatten().map(Framed::held).sum()
    }
}
