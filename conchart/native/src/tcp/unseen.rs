//! Acknowledgements of a side of which nothing is captured: all that tells when its bytes came.
//!
//! In: acknowledgements as they grow. Out: when bytes were acknowledged, and where the FIN stood.

use std::collections::VecDeque;

use crate::stream::Moment;

/// Acknowledgements that are remembered.
const MAX_REMEMBERED: usize = 64;

/// When a position was first acknowledged; in order.
#[derive(Debug, Default)]
pub(super) struct UnseenAcks(VecDeque<(u64, Moment)>);

impl UnseenAcks {
    /// `seen` acknowledges up to `position`: as soon as its sender had it.
    pub fn note(&mut self, position: u64, seen: Moment) {
        if self.0.len() >= MAX_REMEMBERED {
            // Not the latest: what comes after it may be a FIN.
            self.0.remove(MAX_REMEMBERED - 2);
        }
        self.0.push_back((position, seen));
    }

    /// Where the FIN stands, and when it was acknowledged, in a stream of which all before `next` is known. It looks like
    /// one more byte, acknowledged on its own (RFC 9293 section 3.4).
    pub fn fin(&self, next: u64) -> Option<(u64, Moment)> {
        let mut latest = self.0.iter().rev();
        let &(position, seen) = latest.next()?;
        let before = latest.next().map_or(next, |&(position, _)| position);
        (position == before + 1).then_some((before, seen))
    }

    /// When the first and the last byte of `[from, to)` were acknowledged, if both were by `latest`.
    pub fn when(&self, from: u64, to: u64, latest: Moment) -> Option<(Moment, Moment)> {
        let acked = |beyond: u64| {
            let ack = self.0.iter().find(|(position, _)| *position >= beyond);
            ack.map(|(_, seen)| *seen).filter(|seen| seen.max(latest) == latest)
        };
        acked(from + 1).zip(acked(to))
    }

    /// Everything before `position` is passed over.
    pub fn forget(&mut self, position: u64) {
        self.0.retain(|(acked, _)| *acked > position);
    }
}
