//! Puts one side's byte stream together: sequence space, what waits for its turn, what is missing.
//!
//! In: sequence numbers, acknowledgement numbers, data. Out: stream positions, and the data that is due. When data is
//! due, and when the assembler stops waiting for bytes, is decided in [`delivery`](super::delivery); what kind of
//! segment brought it, in [`classifier`](super::classifier).

use std::collections::VecDeque;

use super::gaps::Gaps;
use super::unseen::UnseenAcks;
use crate::packet::Seq;
use crate::stream::{Chunk, Gap, Moment};

/// The position of the first sequence number seen of a side. Sequence numbers compare over half their circle (RFC 9293
/// section 3.4), so no number can mean a position that lies further before it.
const ORIGIN: u64 = 1 << 31;
/// The largest window TCP can announce (RFC 7323 section 2.3): what lies further ahead is not of this connection,
/// unless both sides speak of it.
const MAX_WINDOW: u64 = 1 << 30;

/// Data that came before its predecessors, or before what its sender had acknowledged.
#[derive(Debug)]
pub(super) struct Waiting {
    pub position: u64,
    pub bytes: Box<[u8]>,
    pub cut: u32,
    /// Position in the peer's stream.
    pub acked: u64,
    pub seen: Moment,
}

impl Waiting {
    pub fn end(&self) -> u64 {
        self.position + self.bytes.len() as u64 + u64::from(self.cut)
    }

    /// As a piece of the streams that begin at `start` and, the peer's, at `peer_start`.
    pub fn chunk(&self, start: u64, peer_start: u64) -> Chunk<'_> {
        Chunk {
            bytes: &self.bytes,
            cut: self.cut,
            offset: self.position - start,
            acked: self.acked.saturating_sub(peer_start),
            seen: self.seen,
        }
    }
}

/// One side's byte stream.
///
/// A *position* counts sequence numbers, without wrapping; [`ORIGIN`] is the first one seen. An *offset*, as the
/// receiver of the stream has it, counts bytes from the stream's start, which is the byte after the SYN or, in a
/// connection joined midway, the first byte that is handed on.
/// Invariants: `waiting` is sorted, without overlap, and once started at or after `next`; `start <= next`.
#[derive(Debug)]
pub(super) struct Assembler {
    /// Sequence number of [`ORIGIN`].
    base: Option<Seq>,
    /// Is it known where the stream starts? Until then, earlier bytes may still come.
    started: bool,
    pub fin_delivered: bool,
    /// And everything before it was.
    pub is_spent: bool,
    /// Where the stream starts, as far as is known.
    pub start: u64,
    /// Everything before this was delivered or passed over.
    pub next: u64,
    /// End of the furthest byte captured; 0: none was.
    pub high: u64,
    /// The furthest position that a packet of this side names: what it sent goes that far at least. The peer speaks of
    /// [`ORIGIN`] if nobody else does.
    sent: u64,
    /// The peer acknowledged everything before this; 0: nothing known.
    pub acked: u64,
    /// The peer acknowledged everything before this, which nobody saw sent and nothing has confirmed yet; 0: no such
    /// acknowledgement.
    claimed: u64,
    /// Where nothing of this side is captured: when its peer acknowledged what.
    unseen_acks: Option<Box<UnseenAcks>>,
    /// Where the stream ends, and the packet that said so.
    pub fin: Option<(u64, Moment)>,
    pub waiting: VecDeque<Waiting>,
    pub waiting_bytes: usize,
    /// What was passed over; most streams are whole.
    gaps: Option<Box<Gaps>>,
    /// Distinct stream bytes captured.
    pub bytes: u64,
}

impl Default for Assembler {
    fn default() -> Self {
        Self {
            base: None,
            started: false,
            fin_delivered: false,
            is_spent: false,
            start: ORIGIN,
            next: ORIGIN,
            high: 0,
            sent: ORIGIN,
            acked: 0,
            claimed: 0,
            unseen_acks: None,
            fin: None,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            gaps: None,
            bytes: 0,
        }
    }
}

impl Assembler {
    /// The position of `seq`: of all that it can mean, the one nearest to where the stream is now.
    #[inline]
    pub fn position(&mut self, seq: Seq) -> u64 {
        let Some(base) = self.base else {
            self.base = Some(seq);
            return ORIGIN;
        };
        let reference = self.reference();
        #[expect(clippy::cast_possible_truncation, reason = "sequence numbers are modulo 2^32")]
        let here = base.plus(reference.wrapping_sub(ORIGIN) as u32);
        reference.saturating_add_signed(i64::from(seq.since(here)))
    }

    /// The sequence number that was seen first.
    pub fn first(&self) -> Option<Seq> {
        self.base
    }

    /// The furthest sequence number that a packet of this side names, if any does.
    pub fn furthest(&self) -> Option<Seq> {
        #[expect(clippy::cast_possible_truncation, reason = "sequence numbers are modulo 2^32")]
        self.base.map(|base| base.plus(self.sent.wrapping_sub(ORIGIN) as u32))
    }

    /// Nothing is known of its sequence numbers.
    pub fn is_unknown(&self) -> bool {
        self.base.is_none()
    }

    fn reference(&self) -> u64 {
        self.sent.max(self.acked)
    }

    /// Begins anew at `seq`: what was seen before was about another connection. An end that the receiver was told of
    /// stays told.
    pub fn restart(&mut self, seq: Seq) {
        *self = Self { base: Some(seq), started: true, fin_delivered: self.fin_delivered, ..Self::default() };
    }

    /// Is it known where the stream starts, and nothing else of it?
    pub fn is_untouched(&self) -> bool {
        self.started && self.waiting.is_empty() && self.gaps.is_none() && !self.has_begun()
    }

    /// The stream starts at `position`, or before it where bytes were captured already.
    pub fn start_at(&mut self, position: u64) {
        if !self.started {
            self.started = true;
            let first = self.waiting.front().map_or(position, |first| first.position.min(position));
            self.start = self.clip(first);
            self.next = self.start;
        }
    }

    /// The stream starts no later than at the first sequence number seen.
    pub fn start_here(&mut self) {
        if !self.started {
            self.start_at(ORIGIN);
            self.gaps.get_or_insert_default().joined_midway(self.start);
        }
    }

    pub fn is_started(&self) -> bool {
        self.started
    }

    /// Does an acknowledgement prove that no byte before those captured is still to come?
    pub fn is_start_proven(&self) -> bool {
        let first = self.waiting.front().map(|first| first.position.min(ORIGIN));
        first.is_some_and(|first| self.acked >= first)
    }

    /// This side sent a packet that ends at `position`. False when it cannot be of this connection.
    pub fn name(&mut self, position: u64) -> bool {
        if position <= self.sent {
            return true;
        }
        if position > self.reference().max(self.claimed) + MAX_WINDOW {
            return false;
        }
        self.sent = position;
        if self.claimed > 0 && self.sent >= self.claimed {
            self.acked = self.acked.max(std::mem::take(&mut self.claimed));
        }
        true
    }

    /// The peer acknowledges everything before `position`; `captured`: packets of this side are. Returns what its
    /// sender can be taken to have had.
    ///
    /// A damaged packet may acknowledge anything. What goes beyond all that was seen to be sent is believed when a second
    /// packet says as much, whoever sends it, and forgotten when the next one says less.
    pub fn acknowledge(&mut self, position: u64, captured: bool) -> u64 {
        if position <= self.sent {
            self.acked = self.acked.max(position);
            self.claimed = 0;
            return position;
        }
        self.acknowledge_unsent(position, captured)
    }

    fn acknowledge_unsent(&mut self, position: u64, captured: bool) -> u64 {
        let is_near = position <= self.reference() + MAX_WINDOW;
        if is_near && !captured {
            self.acked = self.acked.max(position);
            self.claimed = 0;
        } else {
            if self.claimed > 0 && position >= self.claimed {
                self.acked = self.acked.max(self.claimed);
            }
            self.claimed = if position > self.acked { position } else { 0 };
        }
        if is_near { position } else { self.acked }
    }

    /// No more packets will come: an acknowledgement that nothing speaks against is believed.
    pub fn conclude(&mut self) {
        let claimed = std::mem::take(&mut self.claimed);
        if claimed <= self.reference() + MAX_WINDOW {
            self.acked = self.acked.max(claimed);
        }
    }

    /// Nothing of this side is captured, and `seen` acknowledges up to `position`: as soon as its sender had it.
    pub fn note_unseen(&mut self, position: u64, seen: Moment) {
        self.unseen_acks.get_or_insert_default().note(position, seen);
    }

    /// Where nothing of this side is captured: where its FIN stands, and when it was acknowledged.
    pub fn unseen_fin(&self) -> Option<(u64, Moment)> {
        self.unseen_acks.as_ref()?.fin(self.next)
    }

    /// A FIN that stands at `end`. One in the middle of what was sent is none; one inside what was passed over shows
    /// that nothing was there.
    pub fn finish(&mut self, end: u64, seen: Moment) -> bool {
        let is_last = end >= self.next || end >= self.high;
        if is_last && self.fin.is_none() {
            self.fin = Some((if self.started { end.max(self.next) } else { end }, seen));
            return true;
        }
        false
    }

    /// Where the gap at `next` ends, if there is one: something beyond it was captured or acknowledged.
    pub fn gap_end(&self) -> Option<u64> {
        match self.waiting.front() {
            Some(first) => (first.position > self.next).then_some(first.position),
            None => Some(self.acknowledged()).filter(|&acked| acked > self.next),
        }
    }

    /// The bytes from `next` to `end` will never come: `seen` says so. `captured`: packets of this side are.
    pub fn pass_over(&mut self, end: u64, seen: Moment, captured: bool) -> Gap {
        let acks = self.unseen_acks.as_mut().filter(|_| !captured);
        let acked = acks.and_then(|acks| {
            let acked = acks.when(self.next, end, seen);
            acks.forget(end);
            acked
        });
        let gap = Gap { offset: self.next - self.start, len: end - self.next, acked, seen };
        let acknowledged = self.acknowledged();
        self.gaps.get_or_insert_default().add(self.next, end, acknowledged);
        self.next = end;
        gap
    }

    /// Acknowledged, but not captured.
    pub fn missing(&self) -> u64 {
        self.gaps.as_ref().map_or(0, |gaps| gaps.missing)
    }

    /// Of the captured bytes, those that came after they had been passed over: nobody was told of them.
    pub fn late(&self) -> u64 {
        self.gaps.as_ref().map_or(0, |gaps| gaps.late)
    }

    /// What the peer acknowledged, without the sequence number that the FIN takes.
    pub fn acknowledged(&self) -> u64 {
        self.clip(self.acked)
    }

    /// A RST that stands at `seq` ends the stream. Nothing of it is still to come if nothing is missing before.
    pub fn break_off(&mut self, seq: Seq) {
        self.fin_delivered = true;
        self.is_spent = self.started && self.waiting.is_empty() && self.position(seq) <= self.next;
    }

    /// Is there nothing that waits, nor an end of which nobody was told?
    pub fn is_quiet(&self) -> bool {
        self.waiting.is_empty() && (self.fin.is_none() || self.fin_delivered && self.started)
    }

    /// Was the FIN acknowledged, too?
    pub fn is_fin_acknowledged(&self) -> bool {
        self.fin.is_some_and(|(end, _)| self.acked > end)
    }

    /// A stream position, but no further than the end of the stream.
    pub fn clip(&self, position: u64) -> u64 {
        self.fin.map_or(position, |(end, _)| position.min(end))
    }

    /// Bytes of `[position, end)` that were not captured before: still due, or passed over.
    pub fn new_bytes(&self, position: u64, end: u64) -> u64 {
        self.due_bytes(position, end) + self.gaps.as_ref().map_or(0, |gaps| gaps.overlap(position, end))
    }

    /// Bytes of `[position, end)` that are neither delivered nor passed over nor waiting.
    fn due_bytes(&self, position: u64, end: u64) -> u64 {
        let from = position.max(self.due());
        let first = self.waiting.partition_point(|waiting| waiting.end() <= from);
        let held: u64 = (self.waiting.iter().skip(first))
            .take_while(|waiting| waiting.position < end)
            .map(|waiting| waiting.end().min(end).saturating_sub(waiting.position.max(from)))
            .sum();
        end.saturating_sub(from).saturating_sub(held)
    }

    /// From where on bytes can still be handed on.
    fn due(&self) -> u64 {
        if self.started { self.next } else { 0 }
    }

    /// Counts what a segment adds. Returns what of it is due: whether there is any, and whether it all follows what was
    /// delivered.
    pub fn count(&mut self, position: u64, end: u64) -> Due {
        let in_order = self.started && position <= self.next && self.waiting.is_empty();
        let due = if in_order { end.saturating_sub(self.next) } else { self.due_bytes(position, end) };
        self.high = self.high.max(end);
        self.bytes += due;
        if position < self.next
            && let Some(gaps) = &mut self.gaps
        {
            self.bytes += gaps.fill(position, end);
        }
        match (due, in_order) {
            (0, _) => Due::Nothing,
            (_, true) => Due::Next,
            (_, false) => Due::Later,
        }
    }

    /// Takes the part of a segment that follows what was delivered.
    pub fn take<'a>(&mut self, segment: Chunk<'a>, end: u64) -> Chunk<'a> {
        let next = std::mem::replace(&mut self.next, end);
        let part = slice(segment, next, end);
        Chunk { offset: next - self.start, ..part }
    }

    /// Keeps the parts of a segment that are neither delivered nor waiting yet; its `offset` and `acked` are positions.
    pub fn keep(&mut self, segment: Chunk<'_>) {
        let end = segment.offset + segment.len();
        let mut from = segment.offset.max(self.due());
        let mut index = self.waiting.partition_point(|waiting| waiting.end() <= from);
        while from < end {
            let upto = self.waiting.get(index).map_or(end, |waiting| waiting.position.min(end));
            if from < upto {
                let piece = slice(segment, from, upto);
                self.waiting_bytes += piece.bytes.len();
                self.waiting.insert(
                    index,
                    Waiting {
                        position: from,
                        bytes: piece.bytes.into(),
                        cut: piece.cut,
                        acked: piece.acked,
                        seen: piece.seen,
                    },
                );
                index += 1;
            }
            let Some(following) = self.waiting.get(index) else {
                break;
            };
            from = following.end().max(from);
            index += 1;
        }
    }

    /// Was any byte captured or passed over?
    pub fn has_begun(&self) -> bool {
        self.high > 0 || self.next > self.start
    }

    /// Data that begins before this goes back; 0: none can.
    pub fn reached(&self) -> u64 {
        if self.started { self.high.max(self.next) } else { self.high }
    }

    /// As [`reached`](Self::reached), or the end that a FIN told, which may have overtaken what lies before it.
    pub fn announced_end(&self) -> u64 {
        let end = self.fin.map_or(0, |(end, _)| end);
        if self.high > 0 { self.reached().max(end) } else { self.reached() }
    }

    /// Is nothing missing right before `seq`?
    pub fn continues(&mut self, seq: Seq) -> bool {
        self.position(seq) <= self.reached().max(self.start)
    }

    /// Does anything wait, if only for what may come before it?
    pub fn holds_back(&self) -> bool {
        !self.waiting.is_empty() || !self.started && self.fin.is_some()
    }

    /// What waits, follows what was delivered, and comes first.
    pub fn first_in_order(&self) -> Option<&Waiting> {
        self.waiting.front().filter(|first| self.started && first.position <= self.next)
    }

    /// Takes what waits and comes first.
    pub fn take_waiting(&mut self) -> Option<Waiting> {
        let first = self.waiting.pop_front()?;
        self.waiting_bytes -= first.bytes.len();
        self.next = first.end();
        Some(first)
    }
}

/// What of a segment can be handed on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Due {
    /// All was captured before, or was passed over.
    Nothing,
    /// It continues the stream.
    Next,
    /// Bytes before it may still come.
    Later,
}

/// The part of a chunk that covers stream positions `[from, to)`.
fn slice(chunk: Chunk<'_>, from: u64, to: u64) -> Chunk<'_> {
    let captured = chunk.bytes.len() as u64;
    let skip = (from - chunk.offset).min(captured);
    let stop = (to - chunk.offset).min(captured);
    let index = |position: u64| usize::try_from(position).unwrap_or(usize::MAX);
    let bytes = chunk.bytes.get(index(skip)..index(stop)).unwrap_or_default();
    let cut = (to - from) - bytes.len() as u64;
    Chunk { bytes, cut: u32::try_from(cut).unwrap_or(u32::MAX), offset: from, ..chunk }
}
