//! One TCP connection: handshake, what each packet says, close (RFC 9293).
//!
//! In: segments. Out: facts, and bytes for [`delivery`](super::delivery), which hands them on in causal order.

use super::half::{Half, slice};
use crate::packet::{Segment, Seq};
use crate::stream::{BySide, Chunk, Gap, Moment, Side};

/// Reordering takes less than this where the round trip is unknown (as in Wireshark).
const REORDERING_NS: i64 = 3_000_000;
/// The largest window TCP can announce (RFC 7323); data further ahead is not of this connection.
const MAX_WINDOW: u64 = 1 << 30;

/// Where the streams go.
pub trait Receiver {
    /// The next bytes of a side's stream.
    fn data(&mut self, from: Side, chunk: Chunk<'_>);
    /// Bytes that will never come.
    fn gap(&mut self, from: Side, gap: Gap);
    /// The side ended its stream, in order (FIN), or broke off the connection (RST).
    fn fin(&mut self, from: Side, seen: Moment);
}

/// How a connection ended, as far as the capture shows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum State {
    Complete,
    Open,
    Refused,
    Unanswered,
    Reset,
    Midstream,
}

impl State {
    /// The name in the `connections` table.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Open => "open",
            Self::Refused => "refused",
            Self::Unanswered => "unanswered",
            Self::Reset => "reset",
            Self::Midstream => "midstream",
        }
    }
}

/// What is out of the ordinary about a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mark {
    Retransmit,
    OutOfOrder,
    Duplicate,
    Keepalive,
    ZeroWindow,
}

impl Mark {
    /// The name in the `packets` table.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Retransmit => "retransmit",
            Self::OutOfOrder => "out_of_order",
            Self::Duplicate => "duplicate",
            Self::Keepalive => "keepalive",
            Self::ZeroWindow => "zero_window",
        }
    }
}

/// One TCP connection.
#[derive(Debug)]
pub struct Connection {
    pub halves: BySide<Half>,
    /// Earliest and latest packet.
    pub opened: Moment,
    pub last: Moment,
    /// Lowest and highest frame number.
    pub first_frame: u64,
    pub last_frame: u64,
    /// First SYN, first SYN-ACK, and the client's first ACK of it.
    pub syn: Option<Moment>,
    pub syn_ack: Option<Moment>,
    pub ack: Option<Moment>,
    pub syn_retransmits: i32,
    pub fin_by: Option<Side>,
    pub rst_by: Option<Side>,
    /// The RST that ended it; a SYN that is sent again takes one back that came before the SYN-ACK.
    rst: Option<Moment>,
    last_byte: Option<Moment>,
    /// Latest transmission of SYN and SYN-ACK: what a round trip is measured from (Karn's rule).
    sent: BySide<i64>,
    handshake_rtt: BySide<Option<i64>>,
    /// The latest SYN-ACK whose number is not the first one's, until the client has chosen.
    other_answer: Option<Seq>,
    /// Since when, counted in packets and in time, something has been held back.
    pub(super) stalled: Option<(i64, i64)>,
    /// Packets that were captured more than once: their second and later captures.
    pub duplicates: i64,
    /// Times that a limit forced a hole to be given up.
    pub forced_gaps: u32,
}

impl Connection {
    /// A connection whose first packet was captured at `opened`.
    #[must_use]
    pub fn new(opened: Moment) -> Self {
        Self {
            halves: BySide::default(),
            opened,
            last: opened,
            first_frame: opened.frame,
            last_frame: opened.frame,
            syn: None,
            syn_ack: None,
            ack: None,
            syn_retransmits: 0,
            fin_by: None,
            rst_by: None,
            rst: None,
            last_byte: None,
            sent: BySide::default(),
            handshake_rtt: BySide::default(),
            other_answer: None,
            stalled: None,
            duplicates: 0,
            forced_gaps: 0,
        }
    }

    /// Takes one packet; hands on what became deliverable. Returns what is odd about the packet.
    pub fn segment(
        &mut self,
        from: Side,
        segment: &Segment<'_>,
        seen: Moment,
        receiver: &mut impl Receiver,
    ) -> Option<Mark> {
        let peer_packets = self.halves[from.peer()].packets;
        if self.halves[from].copies.is_copy(segment, seen.at, peer_packets) {
            self.duplicates += 1;
            return Some(Mark::Duplicate);
        }
        self.halves[from].packets += 1;
        self.halves[from].ttl.get_or_insert(segment.ttl);
        if (seen.at, seen.frame) < (self.opened.at, self.opened.frame) {
            self.opened = seen;
        }
        self.last = self.last.max(seen);
        self.last_frame = self.last_frame.max(seen.frame);

        if let Some(range) = segment.twice {
            let other = &mut self.halves[from.peer()];
            if other.copies.was_sent_twice(range) {
                other.packets += 1;
                other.retransmits += 1;
                self.duplicates -= 1;
            }
        }
        let mut mark = None;
        if segment.flags.syn() && self.synchronise(from, segment, seen) {
            mark = Some(Mark::Retransmit);
        }
        let acked = self.acknowledge(from, segment, seen);
        if segment.flags.rst() {
            self.rst_by.get_or_insert(from);
            self.rst.get_or_insert(seen);
        }
        if segment.flags.0 & 0x07 == 0 {
            self.halves[from].window_closed = segment.window == 0;
            if segment.window == 0 {
                self.halves[from].zero_windows += 1;
                mark = Some(Mark::ZeroWindow);
            }
        }
        let odd = if segment.flags.rst() { None } else { self.payload(from, segment, acked, seen, receiver) };
        self.advance(seen, receiver);
        if segment.flags.rst() && !self.is_opening() && !self.halves[from].fin_delivered {
            self.halves[from].fin_delivered = true;
            receiver.fin(from, seen);
        }
        odd.or(mark)
    }

    /// Does this SYN begin another connection between the same ends? Its sequence number says so (RFC 9293 section
    /// 3.4.1).
    #[must_use]
    pub fn is_other_incarnation(&self, from: Side, syn: &Segment<'_>) -> bool {
        self.halves[from].base.is_some_and(|base| base != syn.seq.plus(1))
    }

    /// True once nothing more is due: both sides sent FIN, or one sent RST.
    ///
    /// A client whose SYN met what is left of an older connection resets that one, and sends its SYN again (RFC
    /// 9293 section 3.5.1, half-open connections).
    #[must_use]
    pub fn is_closed(&self) -> bool {
        let meant_an_older_one = self.is_opening() && self.rst_by == Some(Side::Client);
        self.is_reset() && !meant_an_older_one || (self.halves.client.fin_delivered && self.halves.server.fin_delivered)
    }

    /// True when a RST ended it.
    #[must_use]
    pub fn is_reset(&self) -> bool {
        self.rst.is_some()
    }

    /// The SYN was sent, and nothing else that counts.
    fn is_opening(&self) -> bool {
        self.syn.is_some() && self.syn_ack.is_none() && self.last_byte.is_none()
    }

    /// True when the capture did not hold the connection's beginning.
    #[must_use]
    pub fn is_midstream(&self) -> bool {
        self.syn.is_none() && self.syn_ack.is_none()
    }

    /// See [`State`].
    #[must_use]
    pub fn state(&self) -> State {
        let fins = self.halves.client.fin.is_some() && self.halves.server.fin.is_some();
        if self.is_midstream() {
            State::Midstream
        } else if self.syn_ack.is_none() && self.rst_by == Some(Side::Server) {
            State::Refused
        } else if self.halves.server.packets == 0 && self.halves.server.base.is_none() {
            // Nothing came, and the client never acknowledged that anything had.
            State::Unanswered
        } else if fins {
            State::Complete
        } else if self.is_reset() {
            State::Reset
        } else {
            State::Open
        }
    }

    /// First FIN or RST after the last byte; the last byte itself if the capture shows them the other way round.
    #[must_use]
    pub fn closing(&self) -> Option<Moment> {
        let ends =
            [self.halves.client.fin.map(|(_, seen)| seen), self.halves.server.fin.map(|(_, seen)| seen), self.rst];
        let any = ends.iter().flatten().next().is_some();
        let Some(last_byte) = self.last_byte else {
            return ends.into_iter().flatten().min_by_key(|m| (m.at, m.frame));
        };
        ends.into_iter()
            .flatten()
            .filter(|m| (m.at, m.frame) >= (last_byte.at, last_byte.frame))
            .min_by_key(|m| (m.at, m.frame))
            .or(any.then_some(last_byte))
    }

    /// Nanoseconds capture point ↔ `side` ↔ capture point: from the handshake, else the least
    /// time from data to its acknowledgement.
    #[must_use]
    pub fn rtt(&self, side: Side) -> Option<i64> {
        self.handshake_rtt[side].or(self.halves[side.peer()].answer_ns)
    }

    /// Handshake-only part of [`Self::rtt`].
    #[must_use]
    pub fn handshake_rtt(&self) -> BySide<Option<i64>> {
        self.handshake_rtt
    }

    /// Captured bytes held back at present.
    #[must_use]
    pub fn waiting_bytes(&self) -> usize {
        self.halves.client.waiting_bytes + self.halves.server.waiting_bytes
    }

    /// SYN and SYN-ACK. True when this repeats one.
    ///
    /// Where both sides opened at once (RFC 9293 figure 8), each sends both: the SYN-ACK is its SYN, acknowledged.
    fn synchronise(&mut self, from: Side, segment: &Segment<'_>, seen: Moment) -> bool {
        let opening = self.is_opening();
        let half = &mut self.halves[from];
        let again = half.isn.is_some();
        half.isn.get_or_insert(segment.seq);
        if opening && from == Side::Server {
            // What it said before was about an older connection.
            half.base = Some(segment.seq.plus(1));
        }
        half.base.get_or_insert(segment.seq.plus(1));
        half.mss = half.mss.or(segment.mss);
        let first_answer = segment.flags.ack() && from == Side::Server && self.syn_ack.is_none();
        if first_answer {
            if self.syn.is_some() {
                self.handshake_rtt.server = Some((seen.at - self.sent.client).max(0));
            }
            self.syn_ack = Some(seen);
        } else if again && from == Side::Server {
            self.halves.server.retransmits += 1;
            if segment.flags.ack() && self.halves.server.isn != Some(segment.seq) {
                self.other_answer = Some(segment.seq);
            }
        } else if !segment.flags.ack() && from == Side::Client {
            self.syn.get_or_insert(seen);
            self.syn_retransmits += i32::from(again);
            self.rst = self.rst.filter(|_| !opening);
        }
        self.sent[from] = seen.at;
        again && !first_answer && (from == Side::Server || !segment.flags.ack())
    }

    /// A server that forgot its SYN-ACK answers a repeated SYN with another number: the one that the client
    /// acknowledges counts.
    fn settle_answer(&mut self, segment: &Segment<'_>) {
        let Some(seq) = self.other_answer.take_if(|seq| segment.ack == seq.plus(1)) else { return };
        let server = &mut self.halves.server;
        if server.high == 0 && server.waiting.is_empty() {
            server.isn = Some(seq);
            server.base = Some(seq.plus(1));
            server.acked = 0;
        }
    }

    /// Takes the acknowledgement number; returns the stream position it stands for.
    fn acknowledge(&mut self, from: Side, segment: &Segment<'_>, seen: Moment) -> u64 {
        if !segment.flags.ack() || segment.flags.rst() {
            return self.halves[from.peer()].acked;
        }
        if from == Side::Client && self.ack.is_none() && self.other_answer.is_some() {
            self.settle_answer(segment);
        }
        // Only bytes that nobody captured are timed by what acknowledges them.
        let timely = self.halves[from.peer()].packets == 0 && self.acknowledges_at_once(from, segment);
        let other = &mut self.halves[from.peer()];
        let offset = other.offset(segment.ack);
        let position = u64::try_from(offset).unwrap_or(0);
        if position > other.high + MAX_WINDOW {
            return other.acked;
        }
        if position > other.acked {
            other.acknowledge(position, timely.then_some(seen));
        }
        if let Some((end, sent_at)) = other.timed
            && position >= end
        {
            let answer = (seen.at - sent_at).max(0);
            other.answer_ns = Some(other.answer_ns.map_or(answer, |least| least.min(answer)));
            other.timed = None;
        }
        let answers_syn_ack = !segment.flags.syn() && self.syn_ack.is_some() && offset >= 0;
        if from == Side::Client && self.ack.is_none() && answers_syn_ack {
            self.ack = Some(seen);
            self.handshake_rtt.client = Some((seen.at - self.sent.server).max(0));
        }
        position
    }

    /// Does a segment tell when its sender had what it acknowledges, up to the delay of an ACK (RFC 9293 section
    /// 3.8.6.3)? With data, only if ACKs on their own are captured, and none is missing; a response does not
    /// even then: it says that the request had come, but a server may take its time.
    fn acknowledges_at_once(&mut self, from: Side, segment: &Segment<'_>) -> bool {
        let half = &mut self.halves[from];
        if segment.payload_len == 0 {
            half.acks_alone |= segment.flags.0 & 0x07 == 0;
            return true;
        }
        from == Side::Client && half.acks_alone && half.offset(segment.seq) <= half.high.cast_signed()
    }

    /// Counts, classifies and delivers or keeps a segment's data and FIN.
    fn payload(
        &mut self,
        from: Side,
        segment: &Segment<'_>,
        acked: u64,
        seen: Moment,
        receiver: &mut impl Receiver,
    ) -> Option<Mark> {
        let reordering = self.reordering_ns();
        let peer = &self.halves[from.peer()];
        let acked = peer.clip(acked);
        let in_causal_order = peer.next >= acked;
        let window_closed = peer.window_closed;
        let half = &mut self.halves[from];
        let seq = segment.seq.plus(u32::from(segment.flags.syn()));
        let len = u64::from(segment.payload_len);
        let position = half.offset(seq);
        let flags = segment.flags;

        let is_probe = len <= 1 && flags.0 & 0x07 == 0 && position + 1 == half.high.cast_signed();
        if is_probe && half.packets > 1 && half.high > 0 {
            return Some(Mark::Keepalive);
        }
        let (Ok(end), false) =
            (u64::try_from(position + len.cast_signed()), position > (half.high + MAX_WINDOW).cast_signed())
        else {
            return None;
        };
        let mut mark = None;
        if flags.fin() {
            if half.fin.is_some() && len == 0 {
                half.retransmits += 1;
                mark = Some(Mark::Retransmit);
            } else if half.fin.is_none() && end >= half.next {
                half.fin = Some((end, seen));
                self.fin_by.get_or_insert(from);
                self.pass_over_unseen(from.peer(), receiver);
            }
        }
        let half = &mut self.halves[from];
        if len == 0 {
            return mark;
        }

        // Mid-stream, bytes older than offset 0 may be repeated: what lies before is cut off.
        let offset = u64::try_from(position).unwrap_or(0);
        let whole = Chunk {
            bytes: segment.payload,
            cut: segment.payload_len - u32::try_from(segment.payload.len()).unwrap_or(segment.payload_len),
            offset,
            acked,
            seen,
        };
        let skipped = offset.cast_signed() - position;
        let whole = if skipped > 0 {
            let shifted = Chunk { offset: 0, ..whole };
            Chunk { offset, ..slice(shifted, skipped.cast_unsigned(), len) }
        } else {
            whole
        };
        let in_order = offset <= half.next && half.waiting.is_empty();
        let new = if in_order { end.saturating_sub(half.next) } else { half.unseen_bytes(offset, end) };
        if half.probe.take() == Some(offset) && half.high == offset + 1 && end > half.high {
            half.timed = None;
        } else if position < half.high.cast_signed() {
            half.timed = None;
            let fills_hole = half.unseen_bytes(offset, end.min(half.high)) > 0;
            if fills_hole && seen.at - half.high_at < reordering {
                half.out_of_order += 1;
                mark = Some(Mark::OutOfOrder);
            } else {
                half.retransmits += 1;
                half.copies.saw_retransmission();
                mark = Some(Mark::Retransmit);
            }
        } else if half.timed.is_none() {
            half.timed = Some((end, seen.at));
        }
        if window_closed && len == 1 && end > half.high {
            half.probe = Some(offset);
        }
        half.bytes += new;
        if end > half.high {
            half.high = end;
            half.high_at = seen.at;
        }
        if new == 0 {
            return mark;
        }
        if in_order && in_causal_order {
            let next = half.next;
            half.next = end;
            receiver.data(from, slice(whole, next, end));
        } else {
            half.keep(whole);
        }
        self.last_byte = Some(self.last_byte.map_or(seen, |last| last.max(seen)));
        mark
    }

    /// A hole that is filled within this time was reordering, not loss.
    fn reordering_ns(&self) -> i64 {
        match (self.handshake_rtt.client, self.handshake_rtt.server) {
            (Some(client), Some(server)) => client.saturating_add(server),
            _ => REORDERING_NS,
        }
    }
}
