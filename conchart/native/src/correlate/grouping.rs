//! Rows of many batches, group by group, without copying them; and the groups shared out among the processors.

use std::ops::Range;
use std::thread;

/// So many rows are worth another thread: fewer are done before it begins.
const LEAST_ROWS: usize = 50_000;

/// Where a row stands: the number of its batch, and its own in it.
pub(super) type Place = (u32, u32);

/// The rows of each group. Groups are numbered from 0 on, without large gaps.
pub(super) struct Grouped {
    /// Up to where the rows of each group go.
    ends: Vec<usize>,
    /// Group by group, in the order in which they were given.
    rows: Vec<Place>,
}

impl Grouped {
    /// Groups rows, which are given twice.
    pub fn of<R: Iterator<Item = (usize, Place)>>(keyed: impl Fn() -> R) -> Self {
        let mut ends: Vec<usize> = Vec::new();
        for (group, _) in keyed() {
            if ends.len() <= group {
                ends.resize(group + 1, 0);
            }
            if let Some(count) = ends.get_mut(group) {
                *count += 1;
            }
        }
        // Each group begins where the one before ends; its rows move it on to its own end.
        let mut total = 0;
        for end in &mut ends {
            total += std::mem::replace(end, total);
        }
        let mut rows = vec![(0, 0); total];
        for (group, row) in keyed() {
            let Some(next) = ends.get_mut(group) else { continue };
            if let Some(place) = rows.get_mut(*next) {
                *place = row;
            }
            *next += 1;
        }
        Self { ends, rows }
    }

    /// The rows of a group.
    pub fn rows(&self, group: usize) -> &[Place] {
        let end = |group: usize| self.ends.get(group).copied().unwrap_or(self.rows.len());
        let from = group.checked_sub(1).map_or(0, end);
        self.rows.get(from..end(group)).unwrap_or_default()
    }

    /// Ranges of groups with about as many rows, one for each processor.
    fn ranges(&self) -> Vec<Range<usize>> {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let parts = processors.min(self.rows.len() / LEAST_ROWS).max(1);
        let mut from = 0;
        let ends = (1..=parts).map(|part| {
            if part == parts {
                self.ends.len()
            } else {
                self.ends.partition_point(|end| *end <= self.rows.len() / parts * part)
            }
        });
        ends.map(|end| std::mem::replace(&mut from, end)..end).collect()
    }

    /// Works on all groups, some on each processor; what comes out stands in the order of the groups.
    pub fn side_by_side<R: Send>(&self, work: impl Fn(Range<usize>) -> R + Sync) -> Vec<R> {
        let work = &work;
        thread::scope(|scope| {
            let mut ranges = self.ranges().into_iter();
            let own = ranges.next();
            let others: Vec<_> = ranges.map(|range| scope.spawn(move || work(range))).collect();
            let own = own.map(work);
            let others = others.into_iter().map(|other| match other.join() {
                Ok(done) => done,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            own.into_iter().chain(others).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_row_is_in_its_group_once_and_in_order(groups in prop::collection::vec(0usize..50, 0..300)) {
            let grouped = Grouped::of(|| groups.iter().zip(0..).map(|(group, row)| (*group, (row % 7, row))));
            for group in 0..60 {
                let expected: Vec<Place> =
                    groups.iter().zip(0..).filter(|(one, _)| **one == group).map(|(_, row)| (row % 7, row)).collect();
                prop_assert_eq!(grouped.rows(group), expected);
            }
        }
    }

    #[test]
    fn every_group_is_worked_on_once_and_in_order() {
        let rows = u32::try_from(5 * LEAST_ROWS).unwrap();
        // Of one group as many as of all others.
        let grouped =
            Grouped::of(|| (0..rows).map(|row| (if row % 2 == 0 { 3 } else { row as usize % 1_000 }, (0, row))));
        let worked: Vec<usize> = grouped.side_by_side(Iterator::collect::<Vec<usize>>).concat();
        assert_eq!(worked, (0..1_000).collect::<Vec<_>>());
    }
}
