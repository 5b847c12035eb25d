//! A window that slides over a stream: one reusable buffer, frames borrowed from it.
//!
//! In: a `Read`. Out: the next n bytes as one slice. The buffer is [`BLOCK`] long and grows only
//! when a single record needs more, up to what the caller asks for (at most [`MAX_RECORD`]).

use std::io::{self, Read};
use std::ops::Range;

/// Usual length of the buffer: big reads, yet it stays in the cache beside the connections.
const BLOCK: usize = 128 << 10;
/// No record (packet with its headers, or block) may be longer; the buffer never is.
pub(super) const MAX_RECORD: u32 = 16 << 20;

/// Fewer bytes are left than a record needs.
#[derive(Debug)]
pub(super) struct Short {
    /// Bytes that are left.
    pub(super) have: u64,
    /// Why the stream ended, unless it simply ended.
    pub(super) cause: Option<io::Error>,
}

/// Invariant: `start <= end <= bytes.len()`; `bytes[start..end]` is what comes next.
pub(super) struct Window {
    source: Box<dyn Read + Send>,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// Position of `bytes[0]` in the stream.
    base: u64,
    ended: bool,
    cause: Option<io::Error>,
}

impl Window {
    pub(super) fn new(source: Box<dyn Read + Send>) -> Self {
        Self { source, bytes: vec![0; BLOCK], start: 0, end: 0, base: 0, ended: false, cause: None }
    }

    /// Position in the stream of the next byte.
    pub(super) fn offset(&self) -> u64 {
        self.base + self.start as u64
    }

    /// Everything that is buffered, at least what the last [`Self::ensure`] asked for.
    #[inline]
    pub(super) fn ahead(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }

    /// A range that [`Self::take`] gave; valid until the next `ensure` or `skip`.
    #[inline]
    pub(super) fn get(&self, range: Range<usize>) -> &[u8] {
        self.bytes.get(range).unwrap_or_default()
    }

    /// Makes sure that `need` bytes (at most [`MAX_RECORD`]) are ahead.
    #[inline]
    pub(super) fn ensure(&mut self, need: usize) -> Result<(), Short> {
        if self.end - self.start >= need { Ok(()) } else { self.refill(need) }
    }

    /// Steps over `count` bytes that are ahead and gives where they are in the buffer.
    #[inline]
    pub(super) fn take(&mut self, count: usize) -> Range<usize> {
        let from = self.start;
        self.start = (from + count).min(self.end);
        from..self.start
    }

    /// Steps over `count` bytes, however many, without keeping them.
    pub(super) fn skip(&mut self, count: u64) -> Result<(), Short> {
        let mut left = count;
        loop {
            let ahead = self.end - self.start;
            let step = usize::try_from(left).map_or(ahead, |left| left.min(ahead));
            self.start += step;
            left -= step as u64;
            if left == 0 {
                return Ok(());
            }
            if let Err(short) = self.refill(1) {
                return Err(Short { have: count - left, ..short });
            }
        }
    }

    #[cold]
    fn refill(&mut self, need: usize) -> Result<(), Short> {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.base += self.start as u64;
            self.end -= self.start;
            self.start = 0;
        }
        if need > self.bytes.len() {
            self.bytes.resize(need.min(MAX_RECORD as usize), 0);
        }
        while self.end < need && !self.ended {
            match self.source.read(self.bytes.get_mut(self.end..).unwrap_or_default()) {
                Ok(0) => self.ended = true,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.ended = true;
                    self.cause = Some(error);
                }
            }
        }
        if self.end >= need { Ok(()) } else { Err(Short { have: self.end as u64, cause: self.cause.take() }) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]
    use super::*;

    /// Gives its bytes a few at a time, as a pipe does, then fails.
    struct Trickle(Vec<u8>, usize);

    impl Read for Trickle {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let left = &self.0[self.1..];
            if left.is_empty() {
                return Err(io::Error::other("unplugged"));
            }
            let step = left.len().min(into.len()).min(7);
            into[..step].copy_from_slice(&left[..step]);
            self.1 += step;
            Ok(step)
        }
    }

    #[test]
    fn bytes_come_in_order_and_the_error_comes_after_the_last_of_them() {
        let all: Vec<u8> = (0..100).collect();
        let mut window = Window::new(Box::new(Trickle(all.clone(), 0)));
        window.ensure(10).unwrap();
        let first = window.take(10);
        assert_eq!(window.get(first), &all[..10]);
        window.skip(80).unwrap();
        assert_eq!(window.offset(), 90);
        let short = window.ensure(11).unwrap_err();
        assert_eq!((short.have, short.cause.unwrap().to_string()), (10, "unplugged".to_owned()));
        assert_eq!(window.ahead(), &all[90..]);
    }

    #[test]
    fn one_long_record_grows_the_buffer_and_not_beyond_need() {
        let all: Vec<u8> = (0..3 * BLOCK).map(|index| index as u8).collect();
        let mut window = Window::new(Box::new(io::Cursor::new(all.clone())));
        window.ensure(2 * BLOCK).unwrap();
        assert_eq!(&window.ahead()[..2 * BLOCK], &all[..2 * BLOCK]);
        assert_eq!(window.bytes.len(), 2 * BLOCK);
        assert_eq!(window.skip(4 * BLOCK as u64).unwrap_err().have, 3 * BLOCK as u64);
    }
}
