//! The streams of one connection (RFC 9000 sections 2 and 3): STREAM frames in, ordered bytes out.
//!
//! In: frames of packets that were opened. Out: [`Event::Stream`], [`Event::Missing`]. A stream ends with its FIN, or
//! when it is reset; what is sent again after that is known to be a copy. Bounded: [`MAX_STREAMS`] are followed at
//! once, the oldest is given up; [`MAX_HELD`] bytes wait for missing ones. Non-goals: what the bytes mean.

use std::collections::BTreeMap;

use super::Event;
use super::ordered::Ordered;
use super::ranges::Ranges;
use crate::stream::{BySide, Gap, Moment, Side};

/// Streams followed at once; servers allow about 100.
const MAX_STREAMS: usize = 1024;
/// Bytes of one stream, and of all, that wait for earlier ones: what a window allows to be on its way.
const MAX_WAITING: usize = 1 << 20;
const MAX_HELD: usize = 4 << 20;

/// A STREAM frame.
#[derive(Clone, Copy)]
pub(super) struct Piece<'a> {
    pub id: u64,
    pub offset: u64,
    pub bytes: &'a [u8],
    pub fin: bool,
}

#[derive(Default)]
struct Half {
    ordered: Ordered,
    /// The end of what was sent.
    highest: u64,
    /// Where it ends, once that is known.
    size: Option<u64>,
    over: bool,
}

#[derive(Default)]
pub(super) struct Streams {
    open: BTreeMap<u64, BySide<Half>>,
    /// Streams that are over, by the two lowest bits of their number, which say who opened them and which way they go.
    done: [Ranges; 4],
    /// What all of them hold.
    held: usize,
}

impl Streams {
    /// Takes in one frame; true when it begins before what its side had sent on this stream.
    pub fn frame(&mut self, from: Side, piece: Piece<'_>, seen: Moment, tell: &mut impl FnMut(Event<'_>)) -> bool {
        let Piece { id, offset, bytes, fin } = piece;
        if self.is_done(id) {
            return true;
        }
        self.make_room(id, tell);
        let half = &mut self.open.entry(id).or_default()[from];
        let end = offset.saturating_add(bytes.len() as u64);
        let is_behind = offset < half.highest;
        half.highest = half.highest.max(end);
        if half.over || end <= half.ordered.next() && !(fin && half.size.is_none()) {
            return is_behind;
        }
        if fin {
            half.size.get_or_insert(end);
        }
        let before = half.ordered.held();
        if offset > half.ordered.next()
            && (half.ordered.is_full(MAX_WAITING, bytes.len()) || self.held.saturating_add(bytes.len()) > MAX_HELD)
        {
            half.skip(from, id, tell);
        }
        let mut at = half.ordered.next();
        let window = MAX_HELD.saturating_sub(self.held).saturating_add(before).min(MAX_WAITING);
        half.ordered.frame(window, offset, bytes, seen, |bytes, seen| {
            tell(Event::Stream { from, id, offset: at, bytes, fin: false, seen });
            at = at.saturating_add(bytes.len() as u64);
        });
        half.end_if_whole(from, id, seen, tell);
        self.held = self.held.saturating_sub(before).saturating_add(half.ordered.held());
        self.close_if_over(id);
        is_behind
    }

    /// That side sends no more on this stream: it was reset.
    pub fn reset(&mut self, from: Side, id: u64) {
        if self.is_done(id) || self.open.len() >= MAX_STREAMS && !self.open.contains_key(&id) {
            return;
        }
        let half = &mut self.open.entry(id).or_default()[from];
        self.held = self.held.saturating_sub(half.ordered.held());
        *half = Half { over: true, ..Half::default() };
        self.close_if_over(id);
    }

    /// Nothing more will come: what waits goes out, and word of what is missing.
    pub fn finish(&mut self, tell: &mut impl FnMut(Event<'_>)) {
        for (id, mut halves) in std::mem::take(&mut self.open) {
            for from in [Side::Client, Side::Server] {
                halves[from].give_up(from, id, tell);
            }
        }
        self.held = 0;
    }

    fn is_done(&self, id: u64) -> bool {
        self.done.get(kind(id)).is_some_and(|done| done.contains(id >> 2))
    }

    fn close_if_over(&mut self, id: u64) {
        let is_over = self.open.get(&id).is_some_and(|halves| {
            // Of one that goes one way only the decryptor's half is there.
            let is_sent = |side| halves[side].over || id & 0b10 != 0 && side != decryptor(id);
            is_sent(Side::Client) && is_sent(Side::Server)
        });
        if is_over {
            self.open.remove(&id);
            if let Some(done) = self.done.get_mut(kind(id)) {
                done.insert(id >> 2, id >> 2);
            }
        }
    }

    fn make_room(&mut self, id: u64, tell: &mut impl FnMut(Event<'_>)) {
        if self.open.len() < MAX_STREAMS || self.open.contains_key(&id) {
            return;
        }
        if let Some((id, mut halves)) = self.open.pop_first() {
            for from in [Side::Client, Side::Server] {
                self.held = self.held.saturating_sub(halves[from].ordered.held());
                halves[from].give_up(from, id, tell);
            }
            if let Some(done) = self.done.get_mut(kind(id)) {
                done.insert(id >> 2, id >> 2);
            }
        }
    }
}

impl Half {
    /// Gives up what is missing, once.
    fn skip(&mut self, from: Side, id: u64, tell: &mut impl FnMut(Event<'_>)) {
        let offset = self.ordered.next();
        let Some((len, seen)) = self.ordered.skip() else { return };
        tell(Event::Missing { from, id, gap: Gap::new(offset, len, seen) });
        let mut at = self.ordered.next();
        self.ordered.go_on(|bytes, seen| {
            tell(Event::Stream { from, id, offset: at, bytes, fin: false, seen });
            at = at.saturating_add(bytes.len() as u64);
        });
    }

    fn give_up(&mut self, from: Side, id: u64, tell: &mut impl FnMut(Event<'_>)) {
        while self.ordered.held() > 0 {
            self.skip(from, id, tell);
        }
    }

    fn end_if_whole(&mut self, from: Side, id: u64, seen: Moment, tell: &mut impl FnMut(Event<'_>)) {
        if !self.over && self.size.is_some_and(|size| self.ordered.next() >= size) {
            self.over = true;
            tell(Event::Stream { from, id, offset: self.ordered.next(), bytes: &[], fin: true, seen });
        }
    }
}

/// Who opened a stream (RFC 9000 section 2.1).
fn decryptor(id: u64) -> Side {
    if id & 1 == 0 { Side::Client } else { Side::Server }
}

fn kind(id: u64) -> usize {
    usize::from(id.to_le_bytes()[0] & 0b11)
}
