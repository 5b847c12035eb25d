//! What of a stream was passed over: bytes that were not captured when their turn came.
//!
//! In: stretches that were passed over, and what is captured of them later. Out: how many bytes are missing. A copy that
//! comes this late is counted, but cannot be handed on any more.

/// Stretches that are remembered; of those before, nothing more can be found.
const MAX_REMEMBERED: usize = 64;

/// One stretch.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    from: u64,
    to: u64,
    /// The receiver got it: its bytes count as missing.
    is_missing: bool,
}

/// All stretches of one side, in order.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    stretches: Vec<Stretch>,
    /// Bytes that were acknowledged and not captured.
    pub missing: u64,
    /// Bytes that were captured after they had been passed over.
    pub late: u64,
}

impl Gaps {
    /// The capture begins in the middle of the stream: what lies before `start` may be sent again, but is not missing.
    pub fn joined_midway(&mut self, start: u64) {
        self.push(0, start, false);
    }

    /// `[from, to)` is passed over; what lies before `acknowledged` arrived.
    pub fn add(&mut self, from: u64, to: u64, acknowledged: u64) {
        let middle = acknowledged.clamp(from, to);
        self.missing += middle - from;
        self.push(from, middle, true);
        self.push(middle, to, false);
    }

    /// How much of `[from, to)` was passed over.
    pub fn overlap(&self, from: u64, to: u64) -> u64 {
        self.stretches.iter().map(|gap| gap.to.min(to).saturating_sub(gap.from.max(from))).sum()
    }

    /// `[from, to)` was captured after all. Returns how many bytes of it were passed over.
    pub fn fill(&mut self, from: u64, to: u64) -> u64 {
        let found = self.overlap(from, to);
        if found > 0 {
            self.late += found;
            let before = std::mem::take(&mut self.stretches);
            for gap in before {
                let (left, right) = (gap.to.min(from).max(gap.from), gap.from.max(to).min(gap.to));
                if left < right {
                    self.missing -= if gap.is_missing { right - left } else { 0 };
                    self.push(gap.from, left, gap.is_missing);
                    self.push(right, gap.to, gap.is_missing);
                } else {
                    self.push(gap.from, gap.to, gap.is_missing);
                }
            }
        }
        found
    }

    fn push(&mut self, from: u64, to: u64, is_missing: bool) {
        if from < to {
            if self.stretches.len() >= MAX_REMEMBERED {
                self.stretches.remove(0);
            }
            self.stretches.push(Stretch { from, to, is_missing });
        }
    }
}
