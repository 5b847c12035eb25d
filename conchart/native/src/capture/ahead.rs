//! Decompresses ahead on a thread of its own: decompression takes as long as reading the packets.
//!
//! In: a `Read` that never waits for anybody, as that of a file. Out: the same bytes, then the same error. Bounded: at
//! most [`BLOCKS`] blocks are ahead. The thread ends with its reader: it waits only to hand over a block, and that fails
//! once nobody takes any.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

const BLOCK: usize = 256 << 10;
/// Blocks that wait to be taken.
const BLOCKS: usize = 3;

/// The reader's end.
pub(super) struct Ahead {
    /// Bytes of `block` that were taken.
    taken: usize,
    block: Vec<u8>,
    /// `None` once the reader is gone.
    blocks: Option<Receiver<io::Result<Vec<u8>>>>,
    /// Blocks to be filled again.
    emptied: Sender<Vec<u8>>,
    thread: Option<JoinHandle<()>>,
}

impl Ahead {
    /// Starts to read.
    ///
    /// # Errors
    /// No thread can be had.
    pub fn new(source: Box<dyn Read + Send>) -> io::Result<Self> {
        let (full, blocks) = sync_channel(BLOCKS);
        let (emptied, empty) = channel();
        let thread = thread::Builder::new().name("unpack".to_owned()).spawn(move || run(source, &full, &empty))?;
        Ok(Self { taken: 0, block: Vec::new(), blocks: Some(blocks), emptied, thread: Some(thread) })
    }

    /// Waits for the thread to end.
    fn join(&mut self) -> io::Result<()> {
        self.blocks = None;
        let ended = self.thread.take().map_or(Ok(()), JoinHandle::join);
        ended.map_err(|_| io::Error::other("what unpacks the file has failed"))
    }
}

impl Read for Ahead {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.block.len() {
            let Some(next) = self.blocks.as_ref().and_then(|blocks| blocks.recv().ok()) else {
                return self.join().map(|()| 0);
            };
            let emptied = std::mem::replace(&mut self.block, next?);
            self.taken = 0;
            // Where the thread has ended, nobody needs it.
            let _ = self.emptied.send(emptied);
        }
        let ahead = self.block.get(self.taken..).unwrap_or_default();
        let count = ahead.len().min(into.len());
        if let (Some(to), Some(from)) = (into.get_mut(..count), ahead.get(..count)) {
            to.copy_from_slice(from);
        }
        self.taken += count;
        Ok(count)
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        // An error is told to who reads on; here, nobody does.
        let _ = self.join();
    }
}

/// Fills blocks until the end, an error, or until nobody takes them.
fn run(mut source: Box<dyn Read + Send>, full: &SyncSender<io::Result<Vec<u8>>>, empty: &Receiver<Vec<u8>>) {
    loop {
        let mut block = empty.try_recv().unwrap_or_default();
        block.clear();
        // Bytes that were read before an error are in the block.
        let read = source.by_ref().take(BLOCK as u64).read_to_end(&mut block);
        let is_over = block.is_empty();
        if !is_over && full.send(Ok(block)).is_err() {
            return;
        }
        if let Err(error) = read {
            // Whoever is gone needs no error.
            let _ = full.send(Err(error));
            return;
        }
        if is_over {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// So many bytes, a few at a time, then an error. Counts what was read, and is alive until the thread has ended.
    struct Source {
        left: usize,
        read: Arc<AtomicUsize>,
    }

    impl Read for Source {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = self.left.min(into.len()).min(10_007);
            if count == 0 {
                return Err(io::Error::other("broken"));
            }
            for (index, byte) in into.iter_mut().take(count).enumerate() {
                *byte = (self.left - index) as u8;
            }
            self.left -= count;
            self.read.fetch_add(count, Ordering::SeqCst);
            Ok(count)
        }
    }

    #[test]
    fn every_byte_comes_and_then_the_error_and_then_the_end() {
        for left in [0, 1, BLOCK, 5 * BLOCK + 3] {
            let mut ahead = Ahead::new(Box::new(Source { left, read: Arc::default() })).unwrap();
            let mut bytes = Vec::new();
            assert_eq!(ahead.read_to_end(&mut bytes).unwrap_err().to_string(), "broken");
            assert!(bytes.iter().copied().eq((1..=left).rev().map(|at| at as u8)), "{left}");
            assert_eq!(ahead.read(&mut [0; 9]).unwrap(), 0);
        }
    }

    #[test]
    fn the_thread_is_a_few_blocks_ahead_at_most_and_ends_with_its_reader() {
        let read = Arc::new(AtomicUsize::new(0));
        let mut ahead = Ahead::new(Box::new(Source { left: 100 * BLOCK, read: Arc::clone(&read) })).unwrap();
        ahead.read_exact(&mut vec![0; 2 * BLOCK]).unwrap();
        drop(ahead);
        // Nobody but this test has the counter: the source is gone, and the thread that had it.
        assert_eq!(Arc::strong_count(&read), 1);
        assert!(read.load(Ordering::SeqCst) <= (2 + BLOCKS + 1) * BLOCK);
    }
}
