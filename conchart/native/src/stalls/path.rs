//! How far the capture point is from either end.
//!
//! In: round trips of a connection. Out: the same, as one side's sender sees them.

use crate::stream::{BySide, Side};

/// Nanoseconds there and back.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// Between the capture point and the sender; 0 where it is not known.
    pub near: i64,
    /// Between the capture point and the receiver; 0 where it is not known.
    pub far: i64,
    is_known: bool,
}

impl Path {
    pub fn new(sender: Side, rtt: BySide<Option<i64>>) -> Self {
        let (near, far) = (rtt[sender], rtt[sender.peer()]);
        Self { near: near.unwrap_or(0), far: far.unwrap_or(0), is_known: near.is_some() && far.is_some() }
    }

    /// Between the two ends.
    pub fn whole(self) -> i64 {
        self.near.saturating_add(self.far)
    }

    /// What is told with a round trip that nobody measured is told with less confidence.
    pub fn confidence(self, confidence: f64) -> f64 {
        if self.is_known { confidence } else { confidence * 0.7 }
    }
}
