//! One direction of a stream, of data or of CRYPTO frames (RFC 9000 sections 2.2, 19.6): frames in, bytes in order out.
//!
//! In: frames in any order, some of them several times; Chromium splits and shuffles its ClientHello on purpose.
//! Out: every byte once, in order, with the datagram that brought it first. Bounded: at most so many bytes wait for
//! earlier ones as its user allows; what would exceed that is dropped, or what is missing is given up
//! ([`Ordered::skip`]). Non-goals: what the bytes mean.

use std::collections::BTreeMap;

use crate::stream::Moment;

/// Bytes of CRYPTO frames that wait: RFC 9000 section 7.5 asks for 4,096 at least. A certificate chain is shorter.
pub(super) const CRYPTO_WINDOW: usize = 64 * 1024;

/// A copy of bytes costs this much besides.
const PIECE_COST: usize = 64;

#[derive(Default)]
pub(super) struct Ordered {
    /// Offset of the next byte that goes out.
    next: u64,
    /// Pieces that wait for earlier bytes, by offset.
    waiting: BTreeMap<u64, (Vec<u8>, Moment)>,
    /// What they cost.
    held: usize,
}

impl Ordered {
    /// Takes in one frame; `out` gets the bytes that are in order now. At most `window` bytes wait.
    pub fn frame(
        &mut self,
        window: usize,
        offset: u64,
        bytes: &[u8],
        seen: Moment,
        mut out: impl FnMut(&[u8], Moment),
    ) {
        if offset > self.next {
            return self.keep(window, offset, bytes, seen);
        }
        self.hand_out(offset, bytes, seen, &mut out);
        self.hand_out_waiting(&mut out);
    }

    /// Would so many bytes exceed the window, if they waited?
    pub fn is_full(&self, window: usize, len: usize) -> bool {
        self.held.saturating_add(len + PIECE_COST) > window
    }

    /// Gives up what is missing before the first bytes that wait: its length, and the datagram that brought those.
    /// `None` when none wait.
    pub fn skip(&mut self) -> Option<(u64, Moment)> {
        let (&offset, &(_, seen)) = self.waiting.first_key_value()?;
        let missing = offset.saturating_sub(self.next);
        self.next = self.next.max(offset);
        Some((missing, seen))
    }

    /// Hands out what waited only for what has been given up.
    pub fn go_on(&mut self, mut out: impl FnMut(&[u8], Moment)) {
        self.hand_out_waiting(&mut out);
    }

    /// Offset of the next byte in order.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// What the waiting bytes cost.
    pub fn held(&self) -> usize {
        self.held
    }

    fn hand_out_waiting(&mut self, out: &mut impl FnMut(&[u8], Moment)) {
        while let Some(entry) = self.waiting.first_entry()
            && *entry.key() <= self.next
        {
            let (offset, (bytes, seen)) = entry.remove_entry();
            self.held = self.held.saturating_sub(bytes.len() + PIECE_COST);
            self.hand_out(offset, &bytes, seen, out);
        }
    }

    fn hand_out(&mut self, offset: u64, bytes: &[u8], seen: Moment, out: &mut impl FnMut(&[u8], Moment)) {
        let repeated = usize::try_from(self.next.saturating_sub(offset)).unwrap_or(usize::MAX);
        let fresh = bytes.get(repeated..).unwrap_or_default();
        if !fresh.is_empty() {
            self.next = self.next.saturating_add(fresh.len() as u64);
            out(fresh, seen);
        }
    }

    fn keep(&mut self, window: usize, offset: u64, bytes: &[u8], seen: Moment) {
        let fits = !self.is_full(window, bytes.len());
        let longer = self.waiting.get(&offset).is_none_or(|(piece, _)| piece.len() < bytes.len());
        if fits && longer && !bytes.is_empty() {
            self.held += bytes.len() + PIECE_COST;
            if let Some((replaced, _)) = self.waiting.insert(offset, (bytes.to_vec(), seen)) {
                self.held = self.held.saturating_sub(replaced.len() + PIECE_COST);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use proptest::prelude::*;

    use super::*;
    use crate::stream::Side;

    const WINDOW: usize = CRYPTO_WINDOW;

    fn moment(frame: u64) -> Moment {
        Moment::new(frame.cast_signed(), frame, Side::Client)
    }

    fn handed_out(frames: &[(u64, &[u8])]) -> Vec<(Vec<u8>, u64)> {
        let (mut stream, mut pieces) = (Ordered::default(), Vec::new());
        for (frame, (offset, bytes)) in (1..).zip(frames) {
            stream.frame(WINDOW, *offset, bytes, moment(frame), |bytes, seen| {
                pieces.push((bytes.to_vec(), seen.frame()))
            });
        }
        pieces
    }

    #[test]
    fn bytes_carry_the_datagram_that_brought_them() {
        let frames: [(u64, &[u8]); 4] = [(3, b"de"), (0, b"ab"), (3, b"d"), (2, b"c")];
        assert_eq!(handed_out(&frames), [(b"ab".to_vec(), 2), (b"c".to_vec(), 4), (b"de".to_vec(), 1)]);
    }

    #[test]
    fn what_is_given_up_is_no_longer_waited_for() {
        let (mut stream, mut text) = (Ordered::default(), Vec::new());
        stream.frame(WINDOW, 5, b"fg", moment(1), |_, _| unreachable!());
        assert_eq!(stream.skip(), Some((5, moment(1))));
        stream.go_on(|bytes, _| text.extend_from_slice(bytes));
        assert_eq!((text, stream.next(), stream.held(), stream.skip()), (b"fg".to_vec(), 7, 0, None));
    }

    #[test]
    fn no_more_than_a_window_waits() {
        let mut stream = Ordered::default();
        for offset in 1..2000 {
            stream.frame(WINDOW, offset, &[7; 1000], moment(offset), |_, _| unreachable!());
            assert!(stream.held <= WINDOW);
        }
        stream.frame(WINDOW, u64::MAX, &[1], moment(1), |_, _| unreachable!());
        let mut count = 0;
        stream.frame(WINDOW, 0, &[7], moment(1), |bytes, _| count += bytes.len());
        assert!(count > 1000);
        assert_eq!(stream.held, stream.waiting.values().map(|(bytes, _)| bytes.len() + PIECE_COST).sum::<usize>());
    }

    proptest! {
        #[test]
        fn however_it_is_cut_and_shuffled_every_byte_comes_once(
            whole in proptest::collection::vec(any::<u8>(), 1..400),
            cuts in proptest::collection::vec((any::<prop::sample::Index>(), 1_usize..90), 0..30),
        ) {
            let (mut stream, mut heard) = (Ordered::default(), Vec::new());
            let random = cuts.iter().map(|(start, len)| (start.index(whole.len()), *len));
            // At last the whole, back to front.
            let rest = (0..whole.len()).rev().map(|start| (start, 1));
            for (start, len) in random.chain(rest) {
                let piece = &whole[start..whole.len().min(start + len)];
                stream.frame(WINDOW, start as u64, piece, moment(1), |bytes, _| heard.extend_from_slice(bytes));
            }
            prop_assert_eq!(heard, whole);
            prop_assert_eq!((stream.held, stream.waiting.is_empty()), (0, true));
        }
    }
}
