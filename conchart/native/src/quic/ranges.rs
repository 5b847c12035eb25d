//! A set of numbers that mostly follow one another: packets that were acknowledged, streams that are over.
//!
//! In: ranges. Out: whether a number is in one. Bounded by [`MOST`] ranges: of more, the two lowest become one, with
//! what lies between them.

use std::collections::BTreeMap;

const MOST: usize = 64;

/// Ranges that neither touch nor overlap: the lowest number of each, and its highest.
#[derive(Debug, Default)]
pub(super) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    pub fn contains(&self, number: u64) -> bool {
        self.0.range(..=number).next_back().is_some_and(|(_, &highest)| number <= highest)
    }

    /// Adds a range, both ends included.
    pub fn insert(&mut self, mut lowest: u64, mut highest: u64) {
        while let Some((&start, &end)) = self.0.range(..=highest.saturating_add(1)).next_back()
            && end.saturating_add(1) >= lowest
        {
            self.0.remove(&start);
            (lowest, highest) = (lowest.min(start), highest.max(end));
        }
        self.0.insert(lowest, highest);
        if self.0.len() > MOST
            && let Some((first, _)) = self.0.pop_first()
            && let Some((_, end)) = self.0.pop_first()
        {
            self.0.insert(first, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_added_is_there_and_nothing_else(added in proptest::collection::vec((0_u64..60, 0_u64..9), 0..40)) {
            let mut ranges = Ranges::default();
            for &(lowest, len) in &added {
                ranges.insert(lowest, lowest + len);
            }
            for number in 0..80 {
                let is_there = added.iter().any(|&(lowest, len)| (lowest..=lowest + len).contains(&number));
                prop_assert_eq!(ranges.contains(number), is_there);
            }
        }
    }

    #[test]
    fn there_are_never_many() {
        let mut ranges = Ranges::default();
        (0..10_000).for_each(|number| ranges.insert(2 * number, 2 * number));
        assert!(ranges.0.len() <= MOST && ranges.contains(19_998) && ranges.contains(1));
        ranges.insert(0, u64::MAX);
        assert_eq!(ranges.0.len(), 1);
    }
}
