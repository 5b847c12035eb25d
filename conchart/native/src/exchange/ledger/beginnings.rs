//! When open exchanges began: which instant is the earliest of all?
//!
//! In: the numbers of exchanges that may have changed. Out: the earliest beginning. A connection on which hundreds of
//! requests wait is asked at every packet: looking at all of them each time would cost the square of their number.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::stream::Moment;

/// Time, frame and the number of the exchange.
type Beginning = (i64, u64, u32);

/// An index of beginnings. Of an exchange that turned out to begin earlier it has the later one as well, and those of
/// exchanges that are over: they are passed over when they come to the top.
#[derive(Default)]
pub(super) struct Beginnings {
    earliest: BinaryHeap<Reverse<Beginning>>,
    /// Exchanges that may begin at another time than the index has.
    touched: Vec<u32>,
    /// Exchanges looked at so far.
    #[cfg(test)]
    pub looks: u64,
}

impl Beginnings {
    /// The exchange may change.
    pub fn touch(&mut self, number: u32) {
        if self.touched.last() != Some(&number) {
            self.touched.push(number);
        }
    }

    /// Entries, good or not.
    pub fn len(&self) -> usize {
        self.earliest.len() + self.touched.len()
    }

    /// The earliest beginning. `began` says when an exchange began; `None` if it is over, or nothing of it came.
    pub fn earliest(&mut self, began: impl Fn(u32) -> Option<Moment>) -> Option<Moment> {
        self.touched.sort_unstable();
        self.touched.dedup();
        for number in self.touched.drain(..) {
            #[cfg(test)]
            (self.looks += 1);
            if let Some(moment) = began(number) {
                self.earliest.push(Reverse((moment.at, moment.frame(), number)));
            }
        }
        while let Some(&Reverse((at, frame, number))) = self.earliest.peek() {
            #[cfg(test)]
            (self.looks += 1);
            match began(number) {
                Some(moment) if (moment.at, moment.frame()) == (at, frame) => return Some(moment),
                _ => self.earliest.pop(),
            };
        }
        None
    }
}
