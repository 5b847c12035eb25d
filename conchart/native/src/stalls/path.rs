//! How far the capture point is from either end.
//!
//! In: a connection. Out: its round trips, as one side's sender sees them.

use crate::stream::Side;
use crate::tcp::Connection;

/// A clock was set: no round trip takes longer.
const LONGEST_NS: i64 = 3_600_000_000_000;

fn clip(trip: i64) -> i64 {
    trip.clamp(0, LONGEST_NS)
}

/// Packets that passed at the same time may be stamped so much apart.
const CLOCK_NS: i64 = 100_000;
/// A program that pauses for less is busy, not silent.
const LEAST_SILENCE_NS: i64 = 10_000_000;
/// Nearby, what a machine takes to answer varies by as much as the way.
const NEARBY_NS: i64 = 2_000_000;

/// The way from one side, the sender, past the capture point to its peer, there and back.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// Between the capture point and the sender; 0 where it is not known.
    pub near: i64,
    /// The least that it takes.
    near_least: i64,
    /// The least between the capture point and the receiver; 0 where it is not known.
    pub far: i64,
    /// Was each half measured in the TCP handshake?
    pub is_measured: bool,
}

impl Path {
    pub fn new(sender: Side, tcp: &Connection) -> Self {
        let (handshake, acks) = (tcp.handshake_rtt(), tcp.least_rtt());
        // An answer to a SYN may take longer than later ones; an acknowledgement may be delayed.
        let least = |side: Side| handshake[side].map(|trip| acks[side].map_or(trip, |least| least.min(trip)));
        let receiver = sender.peer();
        Self {
            near: handshake[sender].or(acks[sender]).map_or(0, clip),
            near_least: least(sender).map_or(0, clip),
            far: least(receiver).or(acks[receiver]).map_or(0, clip),
            is_measured: handshake.client.is_some() && handshake.server.is_some(),
        }
    }

    /// Between the two ends.
    pub fn whole(self) -> i64 {
        self.near + self.far
    }

    /// A program that pauses for so long is silent.
    pub fn silence(self) -> i64 {
        LEAST_SILENCE_NS.max(2 * self.whole())
    }

    /// Something passed here on its way to the sender; its answer passed `later`. Was that at once, that is, within
    /// `soon` after it had arrived? Round trips vary by this share of them.
    pub fn is_at_once(self, later: i64, soon: i64, share: i64) -> bool {
        let is_within = |near: i64| {
            let early = CLOCK_NS + (near / 4).max(near.min(NEARBY_NS));
            (near - early..=near + soon + near / share).contains(&later)
        };
        is_within(self.near) || is_within(self.near_least)
    }

    /// Something passed here on its way to the sender `before` this one did. Had it arrived by then?
    pub fn has_arrived(self, before: i64) -> bool {
        before > self.near + self.near / 4 + CLOCK_NS
    }

    /// What is told with a round trip that nobody measured is told with less confidence.
    pub fn confidence(self, confidence: f64) -> f64 {
        if self.is_measured { confidence } else { (confidence * 70.0).round() / 100.0 }
    }
}
