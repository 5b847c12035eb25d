//! Flows by the connection IDs that their servers chose: a client that moves keeps talking to one (RFC 9000 section 9).
//!
//! In: connection IDs, each with its flow; the first datagram from an endpoint that is not known. Out: the flow that it may
//! belong to; its owner looks whether it still is that one. Bounded by [`MOST`].

use std::collections::{HashMap, VecDeque};

/// Connection IDs that are remembered: more, and the oldest are forgotten.
const MOST: usize = 1 << 16;
/// Shorter ones may stand in any datagram.
const SHORTEST: usize = 4;
const LONGEST: usize = 20;

/// Where packets with a connection ID go: index and number of the flow.
#[derive(Debug, Default)]
pub struct Routes {
    by_cid: HashMap<Box<[u8]>, (usize, i32)>,
    order: VecDeque<Box<[u8]>>,
    /// How many there are of each length.
    lengths: [usize; LONGEST + 1],
}

impl Routes {
    /// This connection ID leads to that flow.
    pub fn add(&mut self, cid: &[u8], index: usize, stream: i32) {
        if !(SHORTEST..=LONGEST).contains(&cid.len()) {
            return;
        }
        if self.by_cid.insert(cid.into(), (index, stream)).is_some() {
            return;
        }
        self.order.push_back(cid.into());
        self.count(cid.len(), |count| count + 1);
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_cid.remove(&oldest);
            self.count(oldest.len(), |count| count.saturating_sub(1));
        }
    }

    /// Where a datagram with a short header goes, the longest connection ID first.
    #[must_use]
    pub fn of(&self, datagram: &[u8]) -> Option<(usize, i32)> {
        const FORM_AND_FIXED: u8 = 0xc0;
        let (first, rest) = datagram.split_first()?;
        if self.by_cid.is_empty() || first & FORM_AND_FIXED != 0x40 {
            return None;
        }
        let lengths = self.lengths.iter().enumerate().rev().filter(|(_, count)| **count > 0);
        lengths.filter_map(|(len, _)| rest.get(..len)).find_map(|cid| self.by_cid.get(cid).copied())
    }

    /// Forgets all: another capture begins.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    fn count(&mut self, len: usize, change: impl Fn(usize) -> usize) {
        if let Some(count) = self.lengths.get_mut(len) {
            *count = change(*count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_header_is_found_by_its_connection_id() {
        let mut routes = Routes::default();
        assert_eq!(routes.of(b"Aabcdefgh"), None);
        routes.add(b"abcd", 1, 10);
        routes.add(b"abcdefgh", 2, 20);
        routes.add(b"abc", 3, 30);
        assert_eq!(routes.of(b"Aabcdefgh and more"), Some((2, 20)));
        assert_eq!(routes.of(b"Aabcdxyz"), Some((1, 10)));
        // Another connection ID, a long header, too short a datagram.
        assert_eq!([&b"Aabcx"[..], b"\xc0abcdefgh", b"Aabc", b""].map(|bytes| routes.of(bytes)), [None; 4]);
        routes.clear();
        assert_eq!(routes.of(b"Aabcdefgh"), None);
    }

    #[test]
    fn no_more_are_kept_than_fit() {
        let mut routes = Routes::default();
        for number in 0..=MOST as u64 {
            routes.add(&number.to_be_bytes(), 1, 1);
        }
        assert_eq!((routes.by_cid.len(), routes.order.len(), routes.lengths[8]), (MOST, MOST, MOST));
        assert_eq!(routes.of(&[&[0x40][..], &0_u64.to_be_bytes()].concat()), None);
    }
}
