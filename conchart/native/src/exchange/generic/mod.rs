//! An unknown protocol over a stream: its sides take turns.
//!
//! In: the chunks and gaps of both sides. Out: exchanges of [`Turns`], until a packet begins with something better
//! known: TLS after STARTTLS; in a connection whose beginning is missing, any message. Only packets' first bytes are
//! looked at.

pub(super) mod names;
pub(super) mod opaque;
pub(super) mod overlapping;
pub(super) mod turns;

use self::turns::{Run, Turns, Units};
use super::ledger::Ledger;
use super::reader::{Carrier, Onward, Opening, Reader, SNIFFED, Start, Switch};
use super::sniffers;
use super::trail::Trail;
use crate::stream::{BySide, Chunk, Gap, Moment, Side};

pub(super) struct Unread {
    turns: Turns,
    start: Start,
    /// A packet may yet begin with something better known.
    may_switch: bool,
    trails: BySide<Trail>,
}

impl Unread {
    pub fn new(opening: &Opening<'_>) -> Self {
        Self::of(opening.start, opening.protocol, opening.may_switch)
    }

    /// From the middle of a connection on, after which `may_switch` says whether anything else follows.
    pub fn of(start: Start, protocol: &'static str, may_switch: bool) -> Self {
        let turns = Turns::new(start, protocol, Units::Bytes);
        Self { turns, start, may_switch, trails: BySide::default() }
    }

    /// Something better known begins here: what came before it is over.
    fn leave(&mut self, ledger: &mut Ledger) {
        if !self.start.is_midstream() {
            self.turns.leave(ledger);
        } else if let Some((since, until)) = self.turns.withdraw(ledger) {
            // The tail of a message whose beginning nobody saw: neither request nor response.
            ledger.unseen(since, until);
        }
    }
}

impl Reader for Unread {
    fn data<'a>(&mut self, ledger: &mut Ledger, from: Side, chunk: Chunk<'a>) -> Option<Switch<'a>> {
        let packet_begins = self.trails[from].begins_packet(chunk.seen);
        if self.may_switch && packet_begins {
            let first = chunk.bytes.get(..SNIFFED).unwrap_or(chunk.bytes);
            if let Some(row) = sniffers::judge_later(Carrier::Stream, first, self.start) {
                self.leave(ledger);
                return Some(Switch { onward: Onward::Row(row), name: None, early: None, rest: chunk });
            }
        }
        let interrupts = self.turns.interrupts(from, &chunk);
        self.turns.add(ledger, &Run { interrupts, ..Run::new(from, (chunk.seen, chunk.seen), chunk.len()) });
        None
    }

    fn gap(&mut self, ledger: &mut Ledger, from: Side, gap: Gap) {
        self.turns.gap(ledger, from, gap);
    }

    fn fin(&mut self, ledger: &mut Ledger, from: Side, _seen: Moment) {
        self.turns.fin(ledger, from);
    }

    fn finish(&mut self, ledger: &mut Ledger) {
        self.turns.finish(ledger);
    }
}
