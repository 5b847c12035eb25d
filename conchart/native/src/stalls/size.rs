//! How large a full segment of one side is.
//!
//! In: its segments, and the MSS that its peer announced (RFC 9293 section 3.7.1). Out: what a full one holds.

use super::Passed;

/// What a full segment of this side holds.
#[derive(Debug, Default)]
pub struct Size {
    /// The peer's MSS, as its SYN says.
    mss: Option<u16>,
    /// The largest segment that is no larger than that, and whether another one followed it at once.
    largest: u64,
    is_usual: bool,
    latest: u64,
    /// What the path turned out to carry.
    lowered: Option<u64>,
}

impl Size {
    /// Ethernet's, where no SYN was captured.
    const USUAL_MSS: u64 = 1_460;
    /// Smaller ones are no full segments, however often they come (RFC 9293 section 3.7.1).
    pub const LEAST_MSS: u64 = 536;
    const TIMESTAMPS: u64 = 12;

    /// The peer takes segments of this size, as its SYN says.
    pub fn announced(&mut self, mss: Option<u16>) {
        self.mss = self.mss.or(Self::usable(mss));
    }

    /// A size that leaves room for data.
    pub fn usable(mss: Option<u16>) -> Option<u16> {
        mss.filter(|mss| u64::from(*mss) > Self::TIMESTAMPS)
    }

    /// The path carries no more than this.
    pub fn lower(&mut self, length: u64) {
        self.lowered = Some(length);
    }

    /// Were all segments shorter than this?
    pub fn is_below(&self, length: u64) -> bool {
        self.largest < length
    }

    fn most(&self) -> u64 {
        self.mss.map_or(Self::USUAL_MSS, u64::from)
    }

    /// Bytes of a full segment like this one.
    pub fn full(&self, passed: &Passed<'_>) -> u64 {
        let options = if passed.segment.timestamps.is_some() { Self::TIMESTAMPS } else { 0 };
        let most = if self.is_usual && self.largest >= Self::LEAST_MSS { self.largest } else { self.most() - options };
        self.lowered.map_or(most, |lowered| lowered.min(most)).max(1)
    }

    /// `follows`: the segment before it was sent right before.
    pub fn saw(&mut self, length: u64, follows: bool) {
        // More than fits a segment was joined, or not yet cut, by a network card.
        if length <= self.most() && length >= self.largest {
            let is_usual = self.is_usual && length == self.largest;
            (self.is_usual, self.largest) = (is_usual || follows && length == self.latest, length);
        }
        self.latest = length;
    }
}
