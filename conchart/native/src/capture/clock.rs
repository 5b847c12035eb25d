//! Timestamps of one pcapng interface: `if_tsresol` and `if_tsoffset` to nanoseconds, in integers.

/// How many nanoseconds one unit of a timestamp is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Unit {
    /// `10^-n` s with n ≤ 9: exact.
    Nanoseconds(u64),
    /// `10^-n` s with n > 9: this many units per nanosecond; `None`: more than a `u64` holds.
    PerNanosecond(Option<u64>),
    /// `2^-n` s.
    Binary(u32),
}

/// One interface's clock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Clock {
    unit: Unit,
    /// `if_tsoffset`, in nanoseconds; saturated.
    offset: i64,
}

impl Default for Clock {
    /// Microseconds since the epoch: what a block without options means.
    fn default() -> Self {
        Self::new(6, 0)
    }
}

impl Clock {
    /// From the bytes of `if_tsresol` (high bit: power of two instead of ten) and `if_tsoffset`
    /// (seconds to add).
    pub(super) fn new(resolution: u8, offset_seconds: i64) -> Self {
        let power = u32::from(resolution & 0x7f);
        let unit = if resolution & 0x80 != 0 {
            Unit::Binary(power)
        } else if power <= 9 {
            Unit::Nanoseconds(10_u64.pow(9 - power))
        } else {
            Unit::PerNanosecond(10_u64.checked_pow(power - 9))
        };
        Self { unit, offset: offset_seconds.saturating_mul(1_000_000_000) }
    }

    /// Nanoseconds since the epoch, rounded down; saturated where an `i64` cannot hold them (before
    /// 1677, after 2262).
    ///
    /// A timestamp too great for that as the unsigned number it should be was written by a clock
    /// before 1970, and is read as the negative number it is.
    #[inline]
    pub(super) fn at(self, timestamp: u64) -> i64 {
        // What nearly every file has needs no wide arithmetic.
        if let Unit::Nanoseconds(factor) = self.unit
            && let Some(Ok(at)) = timestamp.checked_mul(factor).map(i64::try_from)
            && let Some(at) = at.checked_add(self.offset)
        {
            return at;
        }
        self.at_by_wide_arithmetic(timestamp)
    }

    fn at_by_wide_arithmetic(self, timestamp: u64) -> i64 {
        i64::try_from(self.since_epoch(timestamp.into())).unwrap_or_else(|_| {
            let signed = self.since_epoch(timestamp.cast_signed().into());
            i64::try_from(signed).unwrap_or(if signed < 0 { i64::MIN } else { i64::MAX })
        })
    }

    fn since_epoch(self, timestamp: i128) -> i128 {
        let since_offset = match self.unit {
            Unit::Nanoseconds(factor) => timestamp * i128::from(factor),
            Unit::PerNanosecond(divisor) => divisor.map_or(0, |divisor| timestamp.div_euclid(divisor.into())),
            Unit::Binary(power) => (timestamp * 1_000_000_000) >> power,
        };
        since_offset + i128::from(self.offset)
    }

    /// Length of one unit in nanoseconds, rounded up: 1000 for µs, 1 for ns and finer.
    pub(super) fn resolution_ns(self) -> i64 {
        let unit = match self.unit {
            Unit::Nanoseconds(factor) => factor,
            Unit::PerNanosecond(_) => 1,
            Unit::Binary(power) => 1_000_000_000_u64.div_ceil(1_u64.checked_shl(power).unwrap_or(u64::MAX)),
        };
        i64::try_from(unit).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2009-02-13 23:31:30.123456789 UTC.
    const AT: i64 = 1_234_567_890_123_456_789;

    #[test]
    fn decimal_resolutions_are_exact_to_the_nanosecond() {
        let at = |power, timestamp| Clock::new(power, 0).at(timestamp);
        assert_eq!(at(0, 1_234_567_890), 1_234_567_890_000_000_000);
        assert_eq!(at(6, 1_234_567_890_123_456), 1_234_567_890_123_456_000);
        assert_eq!(at(9, 1_234_567_890_123_456_789), AT);
        assert_eq!(at(10, 12_345_678_901_234_567_899), AT);
        assert_eq!(at(127, u64::MAX), 0);
    }

    #[test]
    fn binary_resolutions_round_down() {
        assert_eq!(Clock::new(0x80, 0).at(5), 5_000_000_000);
        assert_eq!(Clock::new(0x80 | 1, 0).at(3), 1_500_000_000);
        assert_eq!(Clock::new(0x80 | 30, 0).at((5 << 30) + 1), 5_000_000_000);
        assert_eq!(Clock::new(0x80 | 30, 0).at((5 << 30) + 2), 5_000_000_001);
        assert_eq!(Clock::new(0xff, 0).at(u64::MAX), 0);
    }

    #[test]
    fn offset_is_added_in_seconds_of_either_sign() {
        assert_eq!(Clock::new(9, 1_234_567_890).at(123_456_789), AT);
        assert_eq!(Clock::new(6, -1).at(500_000), -500_000_000);
    }

    #[test]
    fn times_beyond_the_range_saturate() {
        assert_eq!(Clock::new(0, 0).at(u64::MAX / 2), i64::MAX);
        assert_eq!(Clock::new(6, i64::MIN).at(0), i64::MIN);
    }

    #[test]
    fn clocks_before_1970_keep_their_distances() {
        assert_eq!(Clock::new(6, 0).at((-505_425_287_i64).cast_unsigned()), -505_425_287_000);
        assert_eq!(Clock::new(0, 0).at(u64::MAX), -1_000_000_000);
    }

    #[test]
    fn resolution_is_one_unit_in_nanoseconds() {
        let of = |byte| Clock::new(byte, 0).resolution_ns();
        assert_eq!(
            [of(0), of(6), of(9), of(12), of(0x80 | 10), of(0x80 | 63)],
            [1_000_000_000, 1000, 1, 1, 976_563, 1]
        );
    }
}
