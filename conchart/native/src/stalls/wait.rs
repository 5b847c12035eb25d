//! A pause of a sender, and the acknowledgement that ended it.

use super::path::Path;
use super::{Detail, Kind, Passed, Stall};
use crate::stream::{Moment, Side};

/// How soon after an acknowledgement a segment goes out that waited for it, besides what the network adds: an eighth of
/// the pause, within these bounds.
pub const AT_ONCE_NS: (i64, i64) = (200_000, 1_500_000);

/// An acknowledgement that says something new.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    pub position: u64,
    /// The end of the window that it opens; `None` where that is not known.
    pub edge: Option<u64>,
    /// The largest window so far.
    pub largest_window: u64,
    pub seen: Moment,
    /// Its timestamp value (RFC 7323), and where in the peer's stream it stands.
    pub value: Option<u32>,
    pub stands: u64,
}

/// What ended a pause: an acknowledgement that the sender got right before it went on, and the one before.
#[derive(Clone, Copy)]
pub struct Release {
    pub ack: Ack,
    pub before: Ack,
}

/// A segment that comes after a pause.
#[derive(Clone, Copy)]
pub struct Wait<'a> {
    pub side: Side,
    pub passed: &'a Passed<'a>,
    pub path: Path,
    /// The segment before it.
    pub latest: Moment,
    /// Bytes of a full segment.
    pub full: u64,
}

impl Wait<'_> {
    pub fn length(&self) -> u64 {
        self.passed.taken.end - self.passed.taken.position
    }

    pub fn pause(&self) -> i64 {
        self.passed.seen.at - self.latest.at
    }

    pub fn stall(&self, kind: Kind, release: Option<Release>, confidence: f64) -> Stall {
        Stall {
            kind,
            detail: None,
            side: self.side,
            start: self.latest,
            end: self.passed.seen,
            released: release.map(|release| release.ack.seen),
            ack_delay_ns: None,
            confidence: self.path.confidence(confidence),
            unfinished: false,
        }
    }

    /// It waited for an acknowledgement that came late: `detail` tells whose doing that was, `own` what its sender took.
    pub fn delayed(&self, release: Option<Release>, (detail, own): (Detail, i64)) -> Stall {
        let detail = Some(detail).filter(|&detail| detail == Detail::LateAck);
        Stall { detail, ack_delay_ns: Some(own), ..self.stall(Kind::DelayedAck, release, 0.6) }
    }
}

/// Is a timestamp value older than another (RFC 7323 section 5.2)?
pub fn is_before(one: u32, other: u32) -> bool {
    one.wrapping_sub(other).cast_signed() < 0
}

/// How soon a segment goes out that waited for so long.
pub fn at_once(pause: i64) -> i64 {
    (pause / 8).clamp(AT_ONCE_NS.0, AT_ONCE_NS.1)
}
