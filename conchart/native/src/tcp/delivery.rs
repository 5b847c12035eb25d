//! In which order the two streams are handed on, and when bytes that do not come are given up.
//!
//! RFC 9293 section 3.10.7.4 (what is in order). Data is handed on when two things hold: it continues its own stream,
//! and everything its sender had acknowledged was handed on before. The second rule makes the result independent
//! of how the capture happened to interleave the two directions (trap 5).
//! In: what a [`Connection`] holds. Out: calls of its [`Receiver`].

use super::connection::{Connection, Receiver};
use crate::stream::{Moment, Side};

/// Captured bytes one connection may hold back while it waits for a hole to be filled.
const MAX_WAITING_BYTES: usize = 4 << 20;
/// Pieces one connection may hold back.
const MAX_WAITING_PIECES: usize = 8_192;
/// An acknowledged hole is given up after this many more packets of the connection …
const PATIENCE_PACKETS: i64 = 64;
/// … or after this much time. Captures reorder by micro- to milliseconds, not more.
const PATIENCE_NS: i64 = 100_000_000;

impl Connection {
    /// Hands on everything that is still held back: the connection is over.
    pub fn finish(&mut self, receiver: &mut impl Receiver) {
        self.drain(receiver);
        while self.holds_back() {
            self.give_up(true, receiver);
            self.drain(receiver);
        }
        for side in [Side::Client, Side::Server] {
            self.pass_over_unseen(side, receiver);
        }
    }

    /// Hands on what has become deliverable, and gives up on holes when patience or memory ends.
    pub(super) fn advance(&mut self, seen: Moment, receiver: &mut impl Receiver) {
        if self.drain(receiver) {
            self.stalled = None;
        }
        while self.holds_back() {
            let packets = self.halves.client.packets + self.halves.server.packets;
            let (since_packets, since_at) = *self.stalled.get_or_insert((packets, seen.at));
            let impatient = packets - since_packets > PATIENCE_PACKETS || seen.at - since_at > PATIENCE_NS;
            let full = self.waiting_bytes() > MAX_WAITING_BYTES
                || self.halves.client.waiting.len() > MAX_WAITING_PIECES
                || self.halves.server.waiting.len() > MAX_WAITING_PIECES;
            let one_sided = self.halves.client.packets == 0 || self.halves.server.packets == 0;
            if !full && !impatient || !self.give_up(full || one_sided, receiver) {
                break;
            }
            self.forced_gaps += u32::from(full);
            self.stalled = None;
            self.drain(receiver);
        }
    }

    fn holds_back(&self) -> bool {
        !self.halves.client.waiting.is_empty() || !self.halves.server.waiting.is_empty()
    }

    /// Delivers whatever is in order on its own side and causally; true when something was.
    fn drain(&mut self, receiver: &mut impl Receiver) -> bool {
        let mut any = false;
        loop {
            let mut progress = false;
            for side in [Side::Client, Side::Server] {
                while let Some(first) = self.halves[side].waiting.front() {
                    let peer = &self.halves[side.peer()];
                    let ready = first.offset <= self.halves[side].next && peer.next >= peer.clip(first.acked);
                    if !ready {
                        break;
                    }
                    self.deliver_first(side, receiver);
                    progress = true;
                }
                let half = &mut self.halves[side];
                if let Some((end, seen)) = half.fin
                    && !half.fin_delivered
                    && half.next >= end
                {
                    half.fin_delivered = true;
                    receiver.fin(side, seen);
                }
            }
            if !progress {
                return any;
            }
            any = true;
        }
    }

    fn deliver_first(&mut self, side: Side, receiver: &mut impl Receiver) {
        let half = &mut self.halves[side];
        if let Some(first) = half.waiting.pop_front() {
            half.waiting_bytes -= first.bytes.len();
            half.next = first.end();
            receiver.data(side, first.chunk());
        }
    }

    /// Declares one hole missing. Only acknowledged ones, unless `any`; false when there was none.
    fn give_up(&mut self, any: bool, receiver: &mut impl Receiver) -> bool {
        for must_be_acked in [true, false] {
            if !must_be_acked && !any {
                break;
            }
            for side in [Side::Client, Side::Server] {
                let half = &self.halves[side];
                let Some(mut end) = half.hole_end() else { continue };
                if must_be_acked {
                    // What nobody acknowledged may still be sent again.
                    end = end.min(half.acknowledged());
                }
                if let Some((before, _)) = half.unseen_fin().filter(|(before, _)| before + 1 == end)
                    && self.halves[side.peer()].waiting.iter().all(|waiting| waiting.acked < end)
                {
                    end = before;
                }
                if end <= half.next {
                    continue;
                }
                self.pass_over(side, end, receiver);
                return true;
            }
        }
        // Each side waits for the other: impossible in real traffic, so the order of capture decides.
        let first = |side: Side| {
            let half = &self.halves[side];
            half.waiting.front().filter(|w| w.offset <= half.next).map(|w| (w.seen.frame, side == Side::Server, side))
        };
        let earliest = [first(Side::Client), first(Side::Server)]
            .into_iter()
            .flatten()
            .min_by_key(|&(frame, server, _)| (frame, server));
        if let Some((_, _, side)) = earliest.filter(|_| any || self.no_holes()) {
            self.deliver_first(side, receiver);
            return true;
        }
        false
    }

    /// Nothing of this side is captured, and its peer is about to close: what it acknowledged is all there was.
    pub(super) fn pass_over_unseen(&mut self, side: Side, receiver: &mut impl Receiver) {
        let half = &mut self.halves[side];
        if half.packets > 0 || half.fin_delivered {
            return;
        }
        half.fin = half.unseen_fin();
        let end = half.acknowledged();
        self.pass_over(side, end, receiver);
        self.drain(receiver);
    }

    /// Declares a side's bytes up to `end` missing: in steps, so that what its peer had acknowledged when it went on
    /// tells how much of them came before.
    fn pass_over(&mut self, side: Side, end: u64, receiver: &mut impl Receiver) {
        while self.halves[side].next < end {
            let half = &self.halves[side];
            let asking = self.halves[side.peer()].waiting.front();
            let step = asking.map(|w| (half.clip(w.acked), w.seen)).filter(|&(to, _)| to > half.next && to < end);
            let (to, seen) =
                step.unwrap_or_else(|| (end, half.waiting.front().map_or(self.last, |waiting| waiting.seen)));
            receiver.gap(side, self.halves[side].miss(to, seen));
            self.drain(receiver);
            if step.is_some() && self.halves[side].packets == 0 {
                self.pass_over_hole_before(seen, side.peer(), receiver);
            }
        }
    }

    /// The packet `seen` went on after a hole of its own side: what came before it has to be told before what came after.
    fn pass_over_hole_before(&mut self, seen: Moment, side: Side, receiver: &mut impl Receiver) {
        let half = &mut self.halves[side];
        if let Some(end) = half.waiting.front().filter(|w| w.seen == seen && w.offset > half.next).map(|w| w.offset) {
            receiver.gap(side, half.miss(end, seen));
            self.drain(receiver);
        }
    }

    fn no_holes(&self) -> bool {
        self.halves.client.hole_end().is_none() && self.halves.server.hole_end().is_none()
    }
}
