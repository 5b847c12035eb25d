//! A clock that steps by years: a frame of 1971 amid those of 2025, a machine that learns the date while it captures,
//! captures of different decades in one file.
//!
//! In: the dates of frames, in file order. Out: where each stands on an axis without the step, and how far its date lies
//! before that. On the axis, a frame that steps follows at once, and those dated like it are counted from there: what goes
//! by time passed (a connection that is over, a fragment that never comes) goes by the axis. What is told of a connection is
//! dated as its first frame was. Nothing else is changed: an hour back, a silence of months stay as they are.

use crate::capture::TIMES;

/// From one frame to the next, ten years of 365.25 days: no capture goes on for so long; joined ones may span a few years.
const STEP_NS: u64 = 315_576_000_000_000_000;

/// A step, in nanoseconds: positive when it leads into the future.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Step(i64);

impl Step {
    /// What the note says of it.
    pub(super) fn describe(self, frame: u64) -> String {
        const YEAR_NS: u64 = STEP_NS / 10;
        let years = (self.0.unsigned_abs() + YEAR_NS / 2) / YEAR_NS;
        let way = if self.0 < 0 { "before" } else { "after" };
        format!(
            "frame {frame} is dated {years} years {way} the frame ahead of it: the clock stepped, or captures were joined; in \
             connections that were open then, the step counts as no time"
        )
    }
}

/// Where a frame stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Followed {
    /// On the axis.
    pub at: i64,
    /// How far its date lies before that: 0 unless the clock stepped.
    pub ahead: i64,
    /// The step that it makes.
    pub step: Option<Step>,
}

/// The date of what stands `at` on the axis, on the clock that is so far behind it.
#[inline]
pub(super) fn dated(at: i64, ahead: i64) -> i64 {
    if ahead == 0 { at } else { at.saturating_sub(ahead).clamp(*TIMES.start(), *TIMES.end()) }
}

/// The axis, and how far dates are off it.
#[derive(Debug, Default)]
pub(super) struct ClockSteps {
    /// Where the latest frame stands.
    latest: Option<i64>,
    /// From the dates after the latest step to the axis.
    ahead: i64,
}

impl ClockSteps {
    /// Where the next frame stands. A file may begin whenever it likes.
    #[inline]
    pub(super) fn follow(&mut self, dated: i64, begins_file: bool) -> Followed {
        let latest = *self.latest.get_or_insert(dated);
        let found = if latest.abs_diff(dated) < STEP_NS {
            Followed { at: dated, ahead: 0, step: None }
        } else {
            self.stepped(dated, latest, begins_file)
        };
        self.latest = Some(found.at);
        found
    }

    #[cold]
    fn stepped(&mut self, dated: i64, latest: i64, begins_file: bool) -> Followed {
        let counted = dated.saturating_add(self.ahead);
        if TIMES.contains(&counted) && latest.abs_diff(counted) < STEP_NS {
            return Followed { at: counted, ahead: self.ahead, step: None };
        }
        if begins_file {
            return Followed { at: dated, ahead: 0, step: None };
        }
        self.ahead = latest - dated;
        Followed { at: latest, ahead: self.ahead, step: Some(Step(-self.ahead)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const YEAR: i64 = 31_557_600_000_000_000;
    const NOW: i64 = 55 * YEAR;

    /// Times, and at which frame the clock stepped.
    fn times(dates: &[i64]) -> (Vec<i64>, Vec<usize>) {
        let mut steps = ClockSteps::default();
        let found: Vec<_> = dates.iter().enumerate().map(|(n, &dated)| steps.follow(dated, n == 0)).collect();
        let stepped = found.iter().enumerate().filter(|(_, found)| found.step.is_some()).map(|(n, _)| n).collect();
        for (&date, found) in dates.iter().zip(&found) {
            assert_eq!(super::dated(found.at, found.ahead), date);
        }
        (found.iter().map(|found| found.at).collect(), stepped)
    }

    #[test]
    fn one_frame_of_another_time_follows_at_once_and_the_others_keep_their_dates() {
        for odd in [0, YEAR, NOW - 10 * YEAR, NOW + 30 * YEAR] {
            assert_eq!(times(&[NOW, NOW + 5, odd, NOW + 9]), (vec![NOW, NOW + 5, NOW + 5, NOW + 9], vec![2]));
            assert_eq!(times(&[NOW, odd]), (vec![NOW, NOW], vec![1]));
        }
    }

    #[test]
    fn what_comes_after_a_step_keeps_its_distances() {
        let after = [NOW, NOW + 3, NOW - 1, NOW + 8 * YEAR];
        assert_eq!(times(&[&[7, 9], &after[..]].concat()), (vec![7, 9, 9, 12, 8, 9 + 8 * YEAR], vec![2]));
    }

    #[test]
    fn two_clocks_by_turns_step_once() {
        assert_eq!(times(&[NOW, 100, NOW + 2, 103, NOW + 5]), (vec![NOW, NOW, NOW + 2, NOW + 3, NOW + 5], vec![1]));
    }

    #[test]
    fn silence_of_years_and_steps_back_of_less_stay_as_they_are() {
        let dates = [NOW, NOW + 9 * YEAR, NOW + YEAR, NOW - 8 * YEAR];
        assert_eq!(times(&dates), (dates.to_vec(), vec![]));
    }

    #[test]
    fn files_may_be_of_different_decades_or_go_on_after_a_step() {
        let mut steps = ClockSteps::default();
        let found = |at, ahead, step| Followed { at, ahead, step };
        assert_eq!(steps.follow(5, true), found(5, 0, None));
        assert_eq!(steps.follow(NOW, true), found(NOW, 0, None));
        assert_eq!(steps.follow(3, false), found(NOW, NOW - 3, Some(Step(3 - NOW))));
        assert_eq!(steps.follow(7, true), found(NOW + 4, NOW - 3, None));
    }

    #[test]
    fn times_stay_within_those_allowed() {
        let (first, last) = (*TIMES.start(), *TIMES.end());
        let (found, stepped) = times(&[last, first, first + 1, last, first]);
        assert_eq!((found, stepped.len()), (vec![last, last, last, last, last - 1], 2));
    }

    #[test]
    fn a_note_says_how_far_and_which_way() {
        let describe = |step| Step(step).describe(17);
        assert!(describe(3 * YEAR - NOW).starts_with("frame 17 is dated 52 years before the frame ahead of it:"));
        assert!(describe(10 * YEAR + 1).starts_with("frame 17 is dated 10 years after the frame ahead of it:"));
    }
}
