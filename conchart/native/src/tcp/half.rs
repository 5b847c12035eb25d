//! One side of a connection: its sequence space, and what waits for its turn.

use std::collections::VecDeque;

use super::copies::Copies;
use crate::packet::Seq;
use crate::stream::{Chunk, Gap, Moment};

/// Acknowledgements of bytes not captured that are remembered.
const MAX_UNSEEN_ACKS: usize = 64;

/// Data that came before its predecessors, or before what its sender had acknowledged.
#[derive(Debug)]
pub(super) struct Waiting {
    pub offset: u64,
    pub bytes: Box<[u8]>,
    pub cut: u32,
    pub acked: u64,
    pub seen: Moment,
}

impl Waiting {
    pub fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64 + u64::from(self.cut)
    }

    pub fn chunk(&self) -> Chunk<'_> {
        Chunk { bytes: &self.bytes, cut: self.cut, offset: self.offset, acked: self.acked, seen: self.seen }
    }
}

/// What one side sent.
///
/// Offsets count stream bytes: 0 is the first byte after the SYN (or, mid-stream, the first byte seen).
/// Invariants: `next <= high`; `waiting` is sorted, without overlap, and starts at or after `next`.
#[derive(Debug, Default)]
pub struct Half {
    /// Sequence number of offset 0.
    pub(super) base: Option<Seq>,
    /// Sequence number of this side's SYN, when it was captured.
    pub(super) isn: Option<Seq>,
    /// Everything before this was delivered (or declared missing).
    pub(super) next: u64,
    /// End of the furthest byte seen.
    pub(super) high: u64,
    /// When `high` last grew.
    pub(super) high_at: i64,
    /// The peer acknowledged everything before this.
    pub(super) acked: u64,
    /// Where nothing of this side is captured: when it first acknowledged up to a position; in order.
    pub(super) unseen_acks: VecDeque<(u64, Moment)>,
    /// Where the stream ends, and the packet that said so.
    pub(super) fin: Option<(u64, Moment)>,
    pub(super) fin_delivered: bool,
    pub(super) waiting: VecDeque<Waiting>,
    pub(super) waiting_bytes: usize,
    pub(super) copies: Copies,
    /// A segment whose acknowledgement is being timed: its end and when it was sent.
    pub(super) timed: Option<(u64, i64)>,
    /// Least time from this side's data, seen here, to its acknowledgement.
    pub(super) answer_ns: Option<i64>,

    /// Packets of this side that only acknowledge are captured.
    pub(super) acks_alone: bool,
    /// This side's latest window was 0.
    pub(super) window_closed: bool,
    /// Position of the byte of a zero-window probe: it is sent again with its successors (RFC 9293 section 3.8.6.1).
    pub(super) probe: Option<u64>,

    pub packets: i64,
    /// Distinct stream bytes captured.
    pub bytes: u64,
    pub retransmits: i32,
    pub out_of_order: i32,
    pub zero_windows: i32,
    /// Acknowledged, but not captured.
    pub missing: u64,
    pub mss: Option<u16>,
    /// Hop limit of the first packet, as it arrived.
    pub ttl: Option<u8>,
}

impl Half {
    /// Position of `seq` in the stream; negative when it is older than offset 0.
    ///
    /// Unwraps modulo 2^32 around `next`, so streams of any length keep growing offsets.
    pub(super) fn offset(&mut self, seq: Seq) -> i64 {
        let base = *self.base.get_or_insert(seq);
        #[expect(clippy::cast_possible_truncation, reason = "sequence numbers are modulo 2^32")]
        let reference = base.plus(self.next as u32);
        self.next.cast_signed() + i64::from(seq.since(reference))
    }

    /// Where the hole at `next` ends, if there is one: something beyond it was captured or acknowledged.
    pub(super) fn hole_end(&self) -> Option<u64> {
        match self.waiting.front() {
            Some(first) => (first.offset > self.next).then_some(first.offset),
            None => Some(self.acknowledged()).filter(|&acked| acked > self.next),
        }
    }

    /// The peer acknowledges more than before; `seen`: as soon as it had it, where nothing of this side is captured.
    pub(super) fn acknowledge(&mut self, position: u64, seen: Option<Moment>) {
        self.acked = position;
        if let Some(seen) = seen {
            if self.unseen_acks.len() >= MAX_UNSEEN_ACKS {
                // Not the latest: what comes after it may be a FIN.
                self.unseen_acks.remove(MAX_UNSEEN_ACKS - 2);
            }
            self.unseen_acks.push_back((position, seen));
        }
    }

    /// Where nothing of this side is captured: where its FIN stands, and when it was acknowledged. It looks like one
    /// more byte, acknowledged on its own (RFC 9293 section 3.4).
    pub(super) fn unseen_fin(&self) -> Option<(u64, Moment)> {
        let mut latest = self.unseen_acks.iter().rev();
        let &(position, seen) = latest.next()?;
        let before = latest.next().map_or(self.next, |&(position, _)| position);
        (self.packets == 0 && position == before + 1).then_some((before, seen))
    }

    /// The bytes from `next` to `end` will never come: `seen` says so.
    pub(super) fn miss(&mut self, end: u64, seen: Moment) -> Gap {
        let acked = |beyond: u64| {
            let ack = self.unseen_acks.iter().find(|(position, _)| *position >= beyond);
            ack.map(|(_, at)| *at).filter(|at| at.max(seen) == seen)
        };
        let acked = acked(self.next + 1).zip(acked(end)).filter(|_| self.packets == 0);
        self.unseen_acks.retain(|(position, _)| *position > end);
        let gap = Gap { offset: self.next, len: end - self.next, acked, seen };
        self.missing += self.acknowledged().min(end).saturating_sub(self.next);
        self.next = end;
        self.high = self.high.max(end);
        gap
    }

    /// What the peer acknowledged, without the sequence number that the FIN takes.
    pub(super) fn acknowledged(&self) -> u64 {
        self.clip(self.acked)
    }

    /// A stream position, but no further than the end of the stream.
    pub(super) fn clip(&self, position: u64) -> u64 {
        self.fin.map_or(position, |(end, _)| position.min(end))
    }

    /// Keeps the parts of a segment that are neither delivered nor waiting yet; returns how many bytes were new.
    pub(super) fn keep(&mut self, chunk: Chunk<'_>) -> u64 {
        let mut new = 0;
        let end = chunk.offset + chunk.len();
        let mut from = chunk.offset.max(self.next);
        let mut index = self.waiting.partition_point(|w| w.end() <= from);
        while from < end {
            let upto = self.waiting.get(index).map_or(end, |w| w.offset.min(end));
            if from < upto {
                let piece = slice(chunk, from, upto);
                new += upto - from;
                self.waiting_bytes += piece.bytes.len();
                self.waiting.insert(
                    index,
                    Waiting {
                        offset: from,
                        bytes: piece.bytes.into(),
                        cut: piece.cut,
                        acked: piece.acked,
                        seen: piece.seen,
                    },
                );
                index += 1;
            }
            let Some(other) = self.waiting.get(index) else {
                break;
            };
            from = other.end().max(from);
            index += 1;
        }
        new
    }

    /// Bytes of `[offset, end)` that were neither delivered nor are waiting.
    pub(super) fn unseen_bytes(&self, offset: u64, end: u64) -> u64 {
        let from = offset.max(self.next);
        let first = self.waiting.partition_point(|w| w.end() <= from);
        let held: u64 = (self.waiting.iter().skip(first))
            .take_while(|w| w.offset < end)
            .map(|w| w.end().min(end).saturating_sub(w.offset.max(from)))
            .sum();
        end.saturating_sub(from).saturating_sub(held)
    }
}

/// The part of a chunk that covers stream positions `[from, to)`.
pub(super) fn slice(chunk: Chunk<'_>, from: u64, to: u64) -> Chunk<'_> {
    let captured = chunk.bytes.len() as u64;
    let skip = (from - chunk.offset).min(captured);
    let stop = (to - chunk.offset).min(captured);
    let index = |position: u64| usize::try_from(position).unwrap_or(usize::MAX);
    let bytes = chunk.bytes.get(index(skip)..index(stop)).unwrap_or_default();
    let cut = (to - from) - bytes.len() as u64;
    Chunk { bytes, cut: u32::try_from(cut).unwrap_or(u32::MAX), offset: from, ..chunk }
}
