//! In which order the two streams are handed on, and when bytes that do not come are passed over.
//!
//! RFC 9293 section 3.10.7.4 (what is in order). Data is handed on when two things hold: it continues its own stream,
//! and everything its sender had acknowledged was handed on before. The second rule makes the result independent
//! of how the capture happened to interleave the two directions.
//! In: what a [`Connection`] holds. Out: calls of its [`Receiver`].

use super::assembler::{Assembler, Waiting};
use super::connection::{Connection, Receiver};
use crate::stream::{Moment, Side};

/// Captured bytes one connection may hold back while it waits for a gap to be filled.
const MAX_WAITING_BYTES: usize = 4 << 20;
/// Pieces one connection may hold back.
const MAX_WAITING_PIECES: usize = 8_192;
/// An acknowledged gap is passed over after this many more packets of the connection …
const PATIENCE_PACKETS: i64 = 64;
/// … or after this much time. Captures reorder by micro- to milliseconds, not more.
const PATIENCE_NS: i64 = 100_000_000;

impl Connection {
    /// Hands on everything that is still held back: the connection is over.
    pub fn finish(&mut self, receiver: &mut impl Receiver) {
        self.drain(receiver);
        while self.holds_back() {
            for side in [Side::Client, Side::Server] {
                self.stream_mut(side).conclude();
            }
            self.stop_waiting(true, receiver);
            self.drain(receiver);
        }
        for side in [Side::Client, Side::Server] {
            self.pass_over_rest(side, receiver);
            self.pass_over_unseen(side, receiver);
        }
    }

    /// Nothing waits, but a FIN or an ACK that the peer acknowledged lies beyond all that was captured.
    fn pass_over_rest(&mut self, side: Side, receiver: &mut impl Receiver) {
        let stream = self.stream(side);
        let end = stream.acknowledged();
        if stream.is_started() && self.halves[side].is_captured() && end > stream.next {
            self.pass_over(side, end, receiver);
            self.drain(receiver);
        }
    }

    /// Hands on what has become deliverable, and passes over gaps when patience or memory ends.
    pub(super) fn advance(&mut self, seen: Moment, receiver: &mut impl Receiver) {
        if self.halves.client.assembler.is_quiet() && self.halves.server.assembler.is_quiet() {
            // Nearly always.
            return;
        }
        if self.drain(receiver) {
            self.held_since = None;
        }
        while self.holds_back() {
            let packets = self.halves.client.packets + self.halves.server.packets;
            let (since_packets, since_at) = *self.held_since.get_or_insert((packets, seen.at));
            let impatient = packets - since_packets > PATIENCE_PACKETS || seen.at - since_at > PATIENCE_NS;
            let full = self.waiting_bytes() > MAX_WAITING_BYTES
                || self.stream(Side::Client).waiting.len() > MAX_WAITING_PIECES
                || self.stream(Side::Server).waiting.len() > MAX_WAITING_PIECES;
            let one_sided = !self.halves.client.is_captured() || !self.halves.server.is_captured();
            if !full && !impatient || !self.stop_waiting(full || one_sided, receiver) {
                break;
            }
            self.forced_gaps += u32::from(full);
            self.held_since = None;
            self.drain(receiver);
        }
    }

    fn stream(&self, side: Side) -> &Assembler {
        &self.halves[side].assembler
    }

    fn stream_mut(&mut self, side: Side) -> &mut Assembler {
        &mut self.halves[side].assembler
    }

    fn holds_back(&self) -> bool {
        self.stream(Side::Client).holds_back() || self.stream(Side::Server).holds_back()
    }

    /// Delivers whatever is in order on its own side and causally; true when something was.
    fn drain(&mut self, receiver: &mut impl Receiver) -> bool {
        let mut any = false;
        loop {
            let mut progress = false;
            for side in [Side::Client, Side::Server] {
                while self.is_due(side) {
                    self.deliver_first(side, receiver);
                    progress = true;
                }
                let stream = self.stream_mut(side);
                if let Some((end, seen)) = stream.fin
                    && !stream.fin_delivered
                    && stream.is_started()
                    && stream.next >= end
                {
                    (stream.fin_delivered, stream.is_spent) = (true, true);
                    receiver.fin(side, seen);
                }
            }
            if !progress {
                return any;
            }
            any = true;
        }
    }

    /// Can the first of what waits be handed on?
    fn is_due(&mut self, side: Side) -> bool {
        let stream = self.stream_mut(side);
        if stream.waiting.is_empty() {
            return false;
        }
        if !stream.is_started() && stream.is_start_proven() {
            stream.start_here();
        }
        let (stream, peer) = (self.stream(side), self.stream(side.peer()));
        stream.first_in_order().is_some_and(|first| peer.next >= peer.clip(first.acked))
    }

    fn deliver_first(&mut self, side: Side, receiver: &mut impl Receiver) {
        let peer_start = self.stream(side.peer()).start;
        let stream = self.stream_mut(side);
        let start = stream.start;
        if let Some(first) = stream.take_waiting() {
            receiver.data(side, first.chunk(start, peer_start));
        }
    }

    /// Stops waiting for one thing: for what may come before a stream's first bytes, or for a gap, which is missing then.
    /// Only for gaps that were acknowledged, unless `any`; false when there was none.
    fn stop_waiting(&mut self, any: bool, receiver: &mut impl Receiver) -> bool {
        for side in [Side::Client, Side::Server] {
            let stream = self.stream_mut(side);
            if stream.holds_back() && !stream.is_started() {
                stream.start_here();
                return true;
            }
        }
        for must_be_acked in [true, false] {
            if !must_be_acked && !any {
                break;
            }
            for side in [Side::Client, Side::Server] {
                let stream = self.stream(side);
                let Some(mut end) = stream.gap_end() else { continue };
                if must_be_acked {
                    // What nobody acknowledged may still be sent again.
                    end = end.min(stream.acknowledged());
                }
                if let Some((before, _)) = self.unseen_fin(side).filter(|(before, _)| before + 1 == end)
                    && self.stream(side.peer()).waiting.iter().all(|waiting| waiting.acked < end)
                {
                    end = before;
                }
                if end <= stream.next {
                    continue;
                }
                self.pass_over(side, end, receiver);
                return true;
            }
        }
        // Each side waits for the other, or for what a damaged packet acknowledges: the order of capture decides.
        let first = |side: Side| {
            let first = self.stream(side).first_in_order();
            first.map(|waiting| (waiting.seen.frame(), side == Side::Server, side))
        };
        let earliest = [first(Side::Client), first(Side::Server)]
            .into_iter()
            .flatten()
            .min_by_key(|&(frame, server, _)| (frame, server));
        if let Some((_, _, side)) = earliest.filter(|_| any || self.has_no_gaps()) {
            self.deliver_first(side, receiver);
            return true;
        }
        false
    }

    /// Nothing of this side is captured, and its peer is about to close: what it acknowledged is all there was.
    pub(super) fn pass_over_unseen(&mut self, side: Side, receiver: &mut impl Receiver) {
        if self.halves[side].is_captured() || self.stream(side).fin_delivered {
            return;
        }
        let fin = self.unseen_fin(side);
        let stream = self.stream_mut(side);
        stream.fin = fin;
        let end = stream.acknowledged();
        if fin.is_some() || end > stream.next {
            stream.start_here();
        }
        self.pass_over(side, end, receiver);
        self.drain(receiver);
    }

    /// The FIN of a side of which nothing is captured.
    fn unseen_fin(&self, side: Side) -> Option<(u64, Moment)> {
        if self.halves[side].is_captured() { None } else { self.stream(side).unseen_fin() }
    }

    /// Declares a side's bytes up to `end` missing: in steps, so that what its peer had acknowledged when it went on
    /// tells how much of them came before.
    fn pass_over(&mut self, side: Side, end: u64, receiver: &mut impl Receiver) {
        while self.stream(side).next < end {
            let stream = self.stream(side);
            let asking = self.stream(side.peer()).waiting.front();
            let step = asking.map(|w| (stream.clip(w.acked), w.seen)).filter(|&(to, _)| to > stream.next && to < end);
            let next = stream.waiting.front().map(|waiting| waiting.seen).or(stream.fin.map(|(_, seen)| seen));
            let (to, seen) = step.unwrap_or((end, next.unwrap_or(self.last)));
            self.declare_missing(side, to, seen, receiver);
            if step.is_some() && !self.halves[side].is_captured() {
                self.pass_over_gap_before(seen, side.peer(), receiver);
            }
        }
    }

    /// The packet `seen` went on after a gap of its own side: what came before it has to be told before what came after.
    fn pass_over_gap_before(&mut self, seen: Moment, side: Side, receiver: &mut impl Receiver) {
        let stream = self.stream(side);
        let first = stream.waiting.front().filter(|first| first.seen == seen && first.position > stream.next);
        if let Some(&Waiting { position, .. }) = first {
            self.declare_missing(side, position, seen, receiver);
        }
    }

    fn declare_missing(&mut self, side: Side, end: u64, seen: Moment, receiver: &mut impl Receiver) {
        let is_captured = self.halves[side].is_captured();
        let stream = self.stream_mut(side);
        stream.start_here();
        receiver.gap(side, stream.pass_over(end, seen, is_captured));
        self.drain(receiver);
    }

    fn has_no_gaps(&self) -> bool {
        self.stream(Side::Client).gap_end().is_none() && self.stream(Side::Server).gap_end().is_none()
    }
}
