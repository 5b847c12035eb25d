//! What state a connection is in, as far as the capture shows (RFC 9293 section 3.3.2), and when it ended.
//!
//! In: what a [`Connection`] saw. Out: its [`State`], whether more is due, how long to wait for what is not.

use super::connection::Connection;
use super::half::Half;
use crate::stream::{Moment, Side};

/// A closed connection waits this long after its latest packet for strays (TIME-WAIT, RFC 9293 section 3.6.1).
const TIME_WAIT_NS: i64 = 30_000_000_000;
/// A FIN that nobody acknowledged is sent again, at intervals that grow to two minutes (RFC 6298 section 2.5 allows no
/// limit below one minute; Linux has two): the connection ends with its acknowledgement or with a RST.
const LAST_ACK_NS: i64 = 150_000_000_000;
/// So long after a RST at least, and at most, and so many round trips, something may come that was sent before its sender
/// knew of it.
const SETTLE_NS: (i64, i64) = (10_000_000, 1_000_000_000);
const ROUND_TRIPS: i64 = 8;
/// Bytes in which a program takes its leave: the close_notify of any version of TLS.
const MOST_FAREWELL: u64 = 256;

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

impl Connection {
    /// True once nothing more is due: both sides sent FIN, or one sent RST.
    ///
    /// A client whose SYN met what is left of an older connection resets that one, and sends its SYN again (RFC
    /// 9293 section 3.5.1, half-open connections).
    #[must_use]
    pub fn is_closed(&self) -> bool {
        let meant_an_older_one = self.is_opening() && self.rst_by == Some(Side::Client);
        let is_finished = |side: Side| self.halves[side].assembler.fin_delivered;
        self.is_reset() && !meant_an_older_one || (is_finished(Side::Client) && is_finished(Side::Server))
    }

    /// True once nothing more can be handed on: both sides have ended, by FIN or RST, and all that they sent was.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.halves.client.assembler.is_spent && self.halves.server.assembler.is_spent
    }

    /// When what was on its way to the side that sent a RST has passed the capture point: after some of the round trips
    /// between that and the other side.
    #[must_use]
    pub fn settles_at(&self) -> Option<i64> {
        let (rst, by) = (self.rst?, self.rst_by?);
        let due =
            self.rtt(by.peer()).map_or(SETTLE_NS.1, |rtt| rtt.saturating_mul(ROUND_TRIPS).saturating_add(SETTLE_NS.0));
        Some(rst.at.saturating_add(due.min(SETTLE_NS.1)))
    }

    /// True once a side had closed, with a FIN that its peer had received, and then refused what came by a RST: there is
    /// no program any more that takes what its peer still sends. So servers and clients end that close with bytes unread.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        let holds_nothing = |side: Side| {
            let Half { assembler, .. } = &self.halves[side];
            assembler.is_started() && assembler.waiting.is_empty() && assembler.gap_end().is_none()
        };
        let has_left = self.rst_by.is_some_and(|by| {
            let Half { assembler, .. } = &self.halves[by];
            let peer = &self.halves[by.peer()];
            // More than a farewell is sent again, if the RST is lost, and kept waiting.
            let unacknowledged = peer.assembler.next.saturating_sub(peer.assembler.acked);
            let is_over = assembler.is_spent && assembler.is_fin_acknowledged();
            is_over && peer.is_captured() && unacknowledged <= MOST_FAREWELL
        });
        has_left && holds_nothing(Side::Client) && holds_nothing(Side::Server)
    }

    /// Until when a closed connection waits for packets that are still its own.
    #[must_use]
    pub fn lingers_until(&self) -> i64 {
        let is_acknowledged = |side: Side| self.halves[side].assembler.is_fin_acknowledged();
        let is_over = self.is_reset() || is_acknowledged(Side::Client) && is_acknowledged(Side::Server);
        self.last.at.saturating_add(if is_over { TIME_WAIT_NS } else { LAST_ACK_NS })
    }

    /// True when a RST ended it.
    #[must_use]
    pub fn is_reset(&self) -> bool {
        self.rst.is_some()
    }

    /// The RST that ended it.
    #[must_use]
    pub fn rst(&self) -> Option<Moment> {
        self.rst
    }

    /// Stream bytes of that side that its peer never acknowledged; `None` where no packet of the peer is captured.
    #[must_use]
    pub fn unacknowledged(&self, side: Side) -> Option<u64> {
        let Half { assembler, .. } = &self.halves[side];
        let is_measurable = self.halves[side.peer()].is_captured() && assembler.is_started();
        is_measurable.then(|| assembler.high.saturating_sub(assembler.acked.max(assembler.start)))
    }

    /// The first FIN of that side.
    #[must_use]
    pub fn first_fin(&self, side: Side) -> Option<Moment> {
        self.halves[side].assembler.fin.map(|(_, seen)| seen)
    }

    /// The SYN was sent, and nothing else that counts.
    pub(super) fn is_opening(&self) -> bool {
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
        let (client, server) = (&self.halves.client, &self.halves.server);
        if self.is_midstream() {
            State::Midstream
        } else if self.syn_ack.is_none() && self.rst_by == Some(Side::Server) {
            State::Refused
        } else if !server.is_captured() && server.assembler.is_unknown() {
            // Nothing came, and the client never acknowledged that anything had.
            State::Unanswered
        } else if client.assembler.fin.is_some() && server.assembler.fin.is_some() {
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
        let ends = [self.first_fin(Side::Client), self.first_fin(Side::Server), self.rst];
        let any = ends.iter().flatten().next().is_some();
        let Some(last_byte) = self.last_byte else {
            return ends.into_iter().flatten().min_by_key(|m| (m.at, m.frame()));
        };
        ends.into_iter()
            .flatten()
            .filter(|m| (m.at, m.frame()) >= (last_byte.at, last_byte.frame()))
            .min_by_key(|m| (m.at, m.frame()))
            .or(any.then_some(last_byte))
    }
}
