//! When a side sent a segment, by its timestamp clock (RFC 7323 section 4).
//!
//! In: timestamp values of ONE side, and when these passed. Out: by how much a segment passed later than others did after
//! they had been sent. The clock's rate is learnt from the connection: as long as it is not known, nothing is told.

use super::Detail;
use super::wait::Ack;

/// Nanoseconds of a tick: Linux and most others count milliseconds, Linux also microseconds since 6.7, and 4 or 10 ms before
/// 4.13. RFC 7323 section 5.4 allows up to a second, which would tell nothing here.
const TICKS_NS: [u32; 4] = [1_000, 1_000_000, 4_000_000, 10_000_000];
/// So many ticks tell the rate.
const LEAST_TICKS: i64 = 16;
/// Round trips vary by so much.
const SCATTER_NS: i64 = 1_000_000;
/// Clocks differ by a part in so many.
const DRIFT: i64 = 10_000;
/// After so long, the values of before tell nothing: the fastest clock may have gone round.
const LONGEST_NS: i64 = 600_000_000_000;

/// The timestamp clock of one side.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    /// The value of a segment that passed as soon as any, and when it did.
    soonest: Option<(u32, i64)>,
    /// Nanoseconds; 0 as long as it is not known.
    tick_ns: u32,
}

impl Clock {
    /// A segment of that side passed.
    pub fn note(&mut self, value: Option<u32>, at: i64) {
        let Some(value) = value else { return };
        let Some((ticks, passed)) = self.since(value, at) else {
            self.soonest = Some((value, at));
            return;
        };
        if self.tick_ns == 0 && ticks >= LEAST_TICKS {
            let fits = |tick: i64| (ticks * tick - passed).abs() <= passed / 8;
            self.tick_ns = TICKS_NS.into_iter().find(|&tick| fits(tick.into())).unwrap_or(0);
        }
        if self.late(value, at) == Some(0) {
            self.soonest = Some((value, at));
        }
    }

    /// Ticks and nanoseconds since the soonest segment; `None` where there is none, or it is too long ago.
    fn since(&self, value: u32, at: i64) -> Option<(i64, i64)> {
        let (soonest, since) = self.soonest?;
        let passed = at - since;
        (0..LONGEST_NS).contains(&passed).then(|| (value.wrapping_sub(soonest).cast_signed().into(), passed))
    }

    /// By how many nanoseconds, at least, a segment passed later than it could have, for when it was sent.
    fn late(&self, value: u32, at: i64) -> Option<i64> {
        let (ticks, passed) = self.since(value, at).filter(|_| self.tick_ns > 0)?;
        let tick = i64::from(self.tick_ns);
        let late = passed - ticks * tick - tick;
        Some(if late > SCATTER_NS + passed / DRIFT { late } else { 0 })
    }

    /// An acknowledgement took `delay` longer than the way: who delayed it, and by how much its sender did.
    pub fn delayed(&self, ack: Ack, delay: i64) -> (Detail, i64) {
        let late = ack.value.and_then(|value| self.late(value, ack.seen.at)).map_or(0, |late| late.min(delay));
        let own = delay - late;
        (if late > own { Detail::LateAck } else { Detail::DelayedAck }, own)
    }
}
