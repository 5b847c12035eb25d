//! Datagrams of unknown protocols. Their sides need not take turns, so no requests and responses are inferred.
//!
//! In: datagrams of both sides. Out: the stretch of time that they took, as one of which nobody can say what went on.
//! The first [`LOOKED_AT`] datagrams of each side may yet turn out to be something known.

use crate::exchange::ledger::Ledger;
use crate::exchange::reader::{Carrier, Onward, Opening, Reader, Start, Switch};
use crate::exchange::sniffers;
use crate::stream::{BySide, Chunk, Gap, Moment, Side};

/// Datagrams of each side that are looked at.
const LOOKED_AT: u8 = 4;

pub(in crate::exchange) struct Opaque {
    start: Start,
    /// How many datagrams of each side may still be looked at.
    left: BySide<u8>,
    /// The first datagram and the last.
    stretch: Option<(Moment, Moment)>,
}

impl Opaque {
    pub fn new(opening: &Opening<'_>) -> Self {
        let left = if opening.may_switch { LOOKED_AT } else { 0 };
        Self { start: opening.start, left: BySide { client: left, server: left }, stretch: None }
    }

    fn saw(&mut self, seen: Moment) {
        let (first, last) = self.stretch.unwrap_or((seen, seen));
        self.stretch = Some((first, last.max(seen)));
    }

    fn end(&mut self, ledger: &mut Ledger) {
        if let Some((first, last)) = self.stretch.take() {
            ledger.unseen(first, last);
        }
    }
}

impl Reader for Opaque {
    fn data<'a>(&mut self, ledger: &mut Ledger, from: Side, chunk: Chunk<'a>) -> Option<Switch<'a>> {
        if let Some(left) = self.left[from].checked_sub(1) {
            self.left[from] = left;
            if let Some(row) = sniffers::judge_later(Carrier::Datagrams, chunk.bytes, self.start) {
                self.end(ledger);
                return Some(Switch { onward: Onward::Row(row), name: None, early: None, rest: chunk });
            }
        }
        self.saw(chunk.seen);
        None
    }

    fn gap(&mut self, _ledger: &mut Ledger, _from: Side, gap: Gap) {
        self.saw(gap.seen);
    }

    fn finish(&mut self, ledger: &mut Ledger) {
        self.end(ledger);
        ledger.release_all();
    }

    fn pending(&self) -> Option<Moment> {
        self.stretch.map(|(first, _)| first)
    }
}
