//! How far the capture point is from either end.
//!
//! In: round trips of a connection. Out: the same, as one side's sender sees them.

use crate::stream::{BySide, Side};

/// What is known of the round trips between the capture point and both ends, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundTrips {
    /// As the TCP handshake shows them. The answer to a SYN may take longer than later ones.
    pub handshake: BySide<Option<i64>>,
    /// The least time from data to its acknowledgement, which may be delayed.
    pub least: BySide<Option<i64>>,
}

impl RoundTrips {
    fn least(self, side: Side) -> Option<i64> {
        let (handshake, data) = (self.handshake[side], self.least[side]);
        handshake.map(|handshake| data.map_or(handshake, |data| data.min(handshake)))
    }
}

/// A clock was set: no round trip takes longer.
const LONGEST_NS: i64 = 3_600_000_000_000;

fn clip(trip: i64) -> i64 {
    trip.clamp(0, LONGEST_NS)
}

/// Packets that passed at the same time may be stamped so much apart.
const CLOCK_NS: i64 = 100_000;
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
    is_known: bool,
}

impl Path {
    pub fn new(sender: Side, trips: RoundTrips) -> Self {
        let receiver = sender.peer();
        let near = trips.handshake[sender].or(trips.least[sender]);
        let far = trips.least(receiver).or(trips.least[receiver]);
        Self {
            near: near.map_or(0, clip),
            near_least: trips.least(sender).map_or(0, clip),
            far: far.map_or(0, clip),
            is_known: trips.handshake[sender].is_some() && trips.handshake[receiver].is_some(),
        }
    }

    /// Between the two ends.
    pub fn whole(self) -> i64 {
        self.near + self.far
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
        if self.is_known { confidence } else { (confidence * 70.0).round() / 100.0 }
    }
}
