//! The TCP handshake: SYN, SYN-ACK, the client's first ACK, and the round trips that they show (RFC 9293 section 3.5).
//!
//! In: segments with SYN, and the first that acknowledges one. Out: their moments, where the streams start, round trips
//! of the handshake.

use super::connection::Connection;
use crate::packet::Segment;
use crate::stream::{BySide, Moment, Side};

/// Reordering takes less than this where the round trip is unknown (as in Wireshark).
const REORDERING_NS: i64 = 3_000_000;

/// More than that is not on its way when the SYN-ACK of a connection was not captured.
const MOST_IN_FLIGHT: i32 = 1 << 20;

impl Connection {
    /// Does this segment open another connection between the same ends? A SYN does whose sequence number is not the one
    /// that this connection began with.
    #[must_use]
    pub fn is_other_incarnation(&self, from: Side, segment: &Segment<'_>) -> bool {
        let is_syn = segment.flags.syn() && !segment.flags.ack();
        is_syn && self.halves[from].assembler.first().is_some_and(|first| first != segment.seq.plus(1))
    }

    /// Nanoseconds capture point ↔ `side` ↔ capture point: from the handshake, else the least
    /// time from data to its acknowledgement.
    #[must_use]
    pub fn rtt(&self, side: Side) -> Option<i64> {
        self.handshake_rtt[side].or(self.least_rtt()[side])
    }

    /// As the TCP handshake shows it: nanoseconds capture point ↔ each side ↔ capture point.
    #[must_use]
    pub fn handshake_rtt(&self) -> BySide<Option<i64>> {
        self.handshake_rtt
    }

    /// The least time from data that passed to its acknowledgement by each side.
    #[must_use]
    pub fn least_rtt(&self) -> BySide<Option<i64>> {
        let of = |side: Side| self.halves[side.peer()].classifier.round_trip_ns;
        BySide { client: of(Side::Client), server: of(Side::Server) }
    }

    /// The least time from what passed to its acknowledgement by that side, SYN and SYN-ACK included.
    #[must_use]
    pub fn nearest(&self, side: Side) -> Option<i64> {
        let least = self.halves[side.peer()].classifier.round_trip_ns;
        self.handshake_rtt[side].map_or(least, |trip| Some(least.map_or(trip, |least| trip.min(least))))
    }

    /// Did the server send its SYN-ACK again after the client's ACK of it, and nothing else since? Its accept queue is full:
    /// it forgot the ACK, and whatever came with it.
    #[must_use]
    pub fn is_unaccepted(&self) -> bool {
        let server = &self.halves.server;
        self.ack.is_some_and(|ack| self.sent.server > ack.at) && !server.assembler.has_begun()
    }

    /// Does the server answer a SYN with an acknowledgement of what the client did not send on this connection?
    pub(super) fn challenges(&self, segment: &Segment<'_>) -> bool {
        let is_bare = segment.flags.ack() && segment.flags.is_plain() && segment.payload_len == 0;
        let is_of_this = |isn| (1..=MOST_IN_FLIGHT).contains(&segment.ack.since(isn));
        is_bare
            && self.syn.is_some()
            && self.syn_ack.is_none()
            && self.halves.client.isn.is_some_and(|isn| !is_of_this(isn))
    }

    /// SYN and SYN-ACK. True when this repeats one.
    ///
    /// Where both sides opened at once (RFC 9293 figure 8), each sends both: the SYN-ACK is its SYN, acknowledged.
    pub(super) fn synchronise(&mut self, from: Side, segment: &Segment<'_>, seen: Moment) -> bool {
        let opening = self.is_opening();
        let half = &mut self.halves[from];
        let again = half.isn.is_some();
        half.isn.get_or_insert(segment.seq);
        let start = segment.seq.plus(1);
        let was_about_another = opening && from == Side::Server && !half.assembler.has_begun();
        if was_about_another || half.assembler.is_unknown() {
            // What it said before was about an older connection.
            half.assembler.restart(start);
        } else {
            let position = half.assembler.position(start);
            half.assembler.start_at(position);
        }
        half.mss = half.mss.or(segment.mss);
        half.window_scale = half.window_scale.or(segment.window_scale);
        let first_syn_ack = segment.flags.ack() && from == Side::Server && self.syn_ack.is_none();
        if first_syn_ack {
            if self.syn.is_some() {
                self.handshake_rtt.server = Some((seen.at - self.sent.client).max(0));
            }
            self.syn_ack = Some(seen);
            self.syn_ack_bytes = segment.payload_len;
        } else if again && from == Side::Server {
            self.syn_ack_retransmits += i32::from(segment.flags.ack());
            if segment.flags.ack() && self.halves.server.isn != Some(segment.seq) {
                self.later_syn_ack = Some(segment.seq);
            }
        } else if !segment.flags.ack() && from == Side::Client {
            self.syn.get_or_insert(seen);
            self.syn_retransmits += i32::from(again);
            self.rst = self.rst.filter(|_| !opening);
        }
        self.sent[from] = seen.at;
        again && !first_syn_ack && (from == Side::Server || !segment.flags.ack())
    }

    /// A server that forgot its SYN-ACK answers a repeated SYN with another number: the one that the client
    /// acknowledges counts.
    pub(super) fn choose_syn_ack(&mut self, segment: &Segment<'_>) {
        let Some(seq) = self.later_syn_ack.take_if(|seq| segment.ack == seq.plus(1)) else { return };
        let server = &mut self.halves.server;
        if !server.assembler.has_begun() {
            server.isn = Some(seq);
            server.assembler.restart(seq.plus(1));
        }
    }

    /// The client acknowledges `position` of the server's stream: is it the ACK of the SYN-ACK? None was seen yet.
    ///
    /// One that acknowledges more is not: either the server never sent that (RFC 9293 section 3.10.7.4), or it could send
    /// it because it had the ACK, which was not captured then. When that passed is not known.
    pub(super) fn complete_handshake(&mut self, segment: &Segment<'_>, position: u64, seen: Moment) {
        let start = self.halves.server.assembler.start;
        let answers_syn_ack = !segment.flags.syn()
            && self.syn_ack.is_some()
            && (position == start || position == start + u64::from(self.syn_ack_bytes));
        if answers_syn_ack {
            self.ack = Some(seen);
            self.handshake_rtt.client = Some((seen.at - self.sent.server).max(0));
            let client = &mut self.halves.client;
            if client.may_start_elsewhere() && client.assembler.position(segment.seq) != client.assembler.start {
                client.assembler.restart(segment.seq);
            }
        }
    }

    /// A gap that is filled within this time was reordering, not loss.
    pub(super) fn reordering_ns(&self) -> i64 {
        match (self.handshake_rtt.client, self.handshake_rtt.server) {
            (Some(client), Some(server)) => client.saturating_add(server),
            _ => REORDERING_NS,
        }
    }
}
