//! One TCP connection: what each packet says (RFC 9293).
//!
//! In: segments. Out: facts, and bytes for [`delivery`](super::delivery), which hands them on in causal order. Its
//! opening is in [`handshake`](super::handshake), its end in [`state`](super::state).

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use super::assembler::Due;
use super::classifier::{Extent, Mark};
use super::half::Half;
use crate::packet::{Segment, Seq};
use crate::stream::{BySide, Chunk, Gap, Moment, Side};

/// Where the streams go.
pub trait Receiver {
    /// The next bytes of a side's stream.
    fn data(&mut self, from: Side, chunk: Chunk<'_>);
    /// Bytes that will never come.
    fn gap(&mut self, from: Side, gap: Gap);
    /// The side ended its stream, in order (FIN), or broke off the connection (RST).
    fn fin(&mut self, from: Side, seen: Moment);
}

/// What a segment amounts to: where its data lies in its sender's stream, what it says of its peer's.
///
/// All in *positions*: sequence numbers that do not wrap.
#[derive(Clone, Copy, Debug, Default)]
pub struct Taken {
    /// What is odd about it.
    pub mark: Option<Mark>,
    /// Its first byte, and the one behind its last.
    pub position: u64,
    pub end: u64,
    /// The peer's first byte that it does not acknowledge.
    pub acked: u64,
    /// Bytes of the peer's that it reports as received twice: the first, and the one behind the last.
    pub received_twice: Option<(u64, u64)>,
    /// The first byte of a peer's packet that was taken for a second capture, and was sent twice or doubled on the way.
    pub came_twice: Option<Seq>,
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
    pub syn_ack_retransmits: i32,
    pub fin_by: Option<Side>,
    pub rst_by: Option<Side>,
    /// The RST that ended it; a SYN that is sent again takes one back that came before the SYN-ACK.
    pub(super) rst: Option<Moment>,
    /// Its hop limit, and whether that or its identification is unlike those of the side that it names as its sender.
    pub rst_ttl: Option<u8>,
    pub rst_foreign: Option<bool>,
    /// The latest byte of either side that was new.
    pub last_byte: Option<Moment>,
    /// Latest transmission of SYN and SYN-ACK: what a round trip is measured from (Karn's rule).
    pub(super) sent: BySide<i64>,
    pub(super) handshake_rtt: BySide<Option<i64>>,
    /// The latest SYN-ACK whose number is not the first one's, until the client has chosen.
    pub(super) later_syn_ack: Option<Seq>,
    /// Bytes that the SYN-ACK carried (TCP Fast Open, RFC 7413).
    pub(super) syn_ack_bytes: u32,
    /// Since when, counted in packets and in time, something has been held back.
    pub(super) held_since: Option<(i64, i64)>,
    /// The server answered the SYN with an acknowledgement of something else: it still has an older connection (RFC 9293
    /// section 3.10.7.4, RFC 5961 section 4).
    pub is_challenged: bool,
    /// Packets that were captured more than once: their second and later captures.
    pub duplicates: i64,
    /// Times that a limit forced a gap to be passed over.
    pub forced_gaps: u32,
}

impl Connection {
    /// A connection that begins with a packet from `client` to `server` or back.
    #[must_use]
    pub fn new(opened: Moment) -> Self {
        Self {
            halves: BySide::default(),
            opened,
            last: opened,
            first_frame: opened.frame(),
            last_frame: opened.frame(),
            syn: None,
            syn_ack: None,
            ack: None,
            syn_retransmits: 0,
            syn_ack_retransmits: 0,
            fin_by: None,
            rst_by: None,
            rst: None,
            rst_ttl: None,
            rst_foreign: None,
            last_byte: None,
            sent: BySide::default(),
            handshake_rtt: BySide::default(),
            later_syn_ack: None,
            syn_ack_bytes: 0,
            held_since: None,
            is_challenged: false,
            duplicates: 0,
            forced_gaps: 0,
        }
    }

    /// Takes one packet; hands on what became deliverable. Returns what it amounts to.
    pub fn segment(&mut self, from: Side, segment: &Segment<'_>, seen: Moment, receiver: &mut impl Receiver) -> Taken {
        let peer_packets = self.halves[from.peer()].packets;
        if self.halves[from].classifier.copies.is_copy(segment, seen.at, peer_packets) {
            self.duplicates += 1;
            return Taken { mark: Some(Mark::Duplicate), ..Taken::default() };
        }
        let half = &mut self.halves[from];
        half.packets += 1;
        half.ttl.get_or_insert(segment.ttl);
        half.station.get_or_insert(segment.station);
        if (seen.at, seen.frame()) < (self.opened.at, self.opened.frame()) {
            self.opened = seen;
        }
        self.last = self.last.max(seen);
        self.last_frame = self.last_frame.max(seen.frame());

        self.is_challenged |= from == Side::Server && self.challenges(segment);
        let came_twice = segment.duplicate_sack.and_then(|range| self.received_twice(from.peer(), range));
        let repeats_syn = segment.flags.syn() && self.synchronise(from, segment, seen);
        let acked = self.acknowledge(from, segment, seen);
        let window = if segment.flags.is_plain() { self.halves[from].classifier.window(segment.window) } else { None };
        let peer = &mut self.halves[from.peer()].assembler;
        let received_twice = segment.duplicate_sack.map(|(left, right)| (peer.position(left), peer.position(right)));
        let mut taken = Taken { acked, received_twice, came_twice, ..Taken::default() };
        if segment.flags.rst() {
            self.rst_by.get_or_insert(from);
            if self.rst.is_none() {
                self.rst = Some(seen);
                self.rst_ttl = Some(segment.ttl);
                self.rst_foreign = self.halves[from].stamps.are_foreign(segment.ttl, segment.ip_id);
            }
        } else {
            self.halves[from].stamps.note(segment.ttl, segment.ip_id);
            let extent = self.halves[from].extent(segment);
            (taken.position, taken.end) = (extent.position, extent.end);
            taken.mark = self.payload(from, segment, extent, acked, seen, receiver);
        }
        taken.mark = taken.mark.or(window).or_else(|| repeats_syn.then(|| self.repeated_syn(from)));
        self.advance(seen, receiver);
        if segment.flags.rst() && !self.halves[from].assembler.fin_delivered && !self.is_opening() {
            self.halves[from].assembler.break_off(segment.seq);
            receiver.fin(from, seen);
        }
        taken
    }

    /// A SYN was sent again, and its data, if it has any, was not. A client's are counted apart.
    fn repeated_syn(&mut self, from: Side) -> Mark {
        match from {
            Side::Client => Mark::Retransmit,
            Side::Server => self.halves.server.classifier.repeated(),
        }
    }

    /// The receiver of `side`'s bytes reports that it got a range twice: what was taken for a second capture was sent.
    /// Returns its first byte.
    fn received_twice(&mut self, side: Side, range: (Seq, Seq)) -> Option<Seq> {
        let sender = &mut self.halves[side];
        let first = sender.classifier.copies.sent_twice(range)?;
        sender.packets += 1;
        sender.classifier.retransmits += 1;
        self.duplicates -= 1;
        Some(first)
    }

    /// What its packets say whatever their addresses are: how far each side came, in sequence numbers. A second capture of
    /// the connection, behind an address translation, has the same.
    #[must_use]
    pub fn identity(&self) -> u64 {
        let furthest = |half: &Half| half.assembler.furthest().filter(|_| half.is_captured()).map(|seq| seq.0);
        FixedState::default().hash_one((furthest(&self.halves.client), furthest(&self.halves.server)))
    }

    /// Captured bytes held back at present.
    #[must_use]
    pub fn waiting_bytes(&self) -> usize {
        self.halves.client.assembler.waiting_bytes + self.halves.server.assembler.waiting_bytes
    }

    /// Takes the acknowledgement number; returns the position in the peer's stream that it stands for.
    fn acknowledge(&mut self, from: Side, segment: &Segment<'_>, seen: Moment) -> u64 {
        if !segment.flags.ack() || segment.flags.rst() {
            return self.halves[from.peer()].assembler.acked;
        }
        if from == Side::Client && self.ack.is_none() && self.later_syn_ack.is_some() {
            self.choose_syn_ack(segment);
        }
        let is_captured = self.halves[from.peer()].is_captured();
        // Only bytes that nobody captured are timed by what acknowledges them. A response does not tell when its request
        // had come: a server may take its time.
        let is_timely = !is_captured && self.halves[from].acknowledges_at_once(segment, from == Side::Client);
        let opens = !self.halves[from.peer()].assembler.is_started() && !self.is_midstream();
        let peer = &mut self.halves[from.peer()];
        let position = peer.assembler.position(segment.ack);
        if opens {
            // The SYN was captured, or what answers it: what it acknowledges first is the other SYN.
            peer.assembler.start_at(position);
        }
        let before = peer.assembler.acked;
        let believed = peer.assembler.acknowledge(position, is_captured);
        if is_timely && before > 0 && peer.assembler.acked > before {
            peer.assembler.note_unseen(position, seen);
        }
        peer.classifier.acknowledged(position.min(peer.assembler.acked), seen.at);
        if from == Side::Client && self.ack.is_none() {
            self.complete_handshake(segment, position, seen);
        }
        believed
    }

    /// Counts, classifies and delivers or keeps a segment's data and FIN.
    fn payload(
        &mut self,
        from: Side,
        segment: &Segment<'_>,
        extent: Extent,
        acked: u64,
        seen: Moment,
        receiver: &mut impl Receiver,
    ) -> Option<Mark> {
        let flags = segment.flags;
        let Extent { position, end, .. } = extent;
        let sender = &mut self.halves[from];
        if extent.is_probe() && flags.is_plain() && sender.assembler.has_begun() {
            return Some(sender.classifier.keepalive());
        }
        if !sender.assembler.name(end + u64::from(flags.fin())) {
            return None;
        }
        let fin = if flags.fin() { self.fin(from, extent, seen, receiver) } else { None };
        if end == position { fin } else { self.data(from, segment, extent, acked, seen, receiver).or(fin) }
    }

    /// A FIN. Returns its mark, if it repeats one and nothing else.
    fn fin(&mut self, from: Side, extent: Extent, seen: Moment, receiver: &mut impl Receiver) -> Option<Mark> {
        let sender = &mut self.halves[from];
        if sender.assembler.fin.is_some() {
            return (extent.position == extent.end).then(|| sender.classifier.repeated());
        }
        if sender.assembler.finish(extent.end, seen) {
            if extent.position == extent.end {
                sender.classifier.fin(extent, seen.at);
            }
            self.fin_by.get_or_insert(from);
            self.pass_over_unseen(from.peer(), receiver);
        }
        None
    }

    /// A segment's data.
    fn data(
        &mut self,
        from: Side,
        segment: &Segment<'_>,
        extent: Extent,
        acked: u64,
        seen: Moment,
        receiver: &mut impl Receiver,
    ) -> Option<Mark> {
        let Extent { position, end, reached } = extent;
        let own = &self.halves[from].assembler;
        if end < own.start && own.is_started() && !self.is_midstream() {
            // Before the SYN: of an older connection, or of none.
            return None;
        }
        let reordering = if extent.goes_back() { self.reordering_ns() } else { 0 };
        let peer = &self.halves[from.peer()];
        let acked = peer.assembler.clip(acked);
        let peer_start = peer.assembler.start;
        let is_causal = peer.assembler.next >= acked;
        let peer_window_closed = peer.classifier.window_closed;
        let Half { assembler, classifier, .. } = &mut self.halves[from];
        let is_new = extent.goes_back() && assembler.new_bytes(position, end.min(reached)) > 0;
        let mark = classifier.data(extent, seen.at, is_new, reordering, peer_window_closed);
        let cut = segment.payload_len.saturating_sub(u32::try_from(segment.payload.len()).unwrap_or(u32::MAX));
        let chunk = Chunk { bytes: segment.payload, cut, offset: position, acked, seen };
        match assembler.count(position, end) {
            Due::Nothing => return mark,
            Due::Next if is_causal => {
                let next = assembler.take(chunk, end);
                receiver.data(from, Chunk { acked: acked.saturating_sub(peer_start), ..next });
            }
            Due::Next | Due::Later => assembler.keep(chunk),
        }
        self.last_byte = Some(self.last_byte.map_or(seen, |last| last.max(seen)));
        mark
    }
}
