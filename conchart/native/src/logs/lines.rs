//! The lines of a file, each with its number. A line that is too long is cut: a file without an end of line would need
//! as much memory as it is long.

use std::io::{self, BufRead};

/// Bytes of a line that are looked at. nginx writes at most 4,096 bytes of a header by default.
const LONGEST: usize = 32 << 10;

/// Numbers count from 1; empty lines count, and are left out.
pub(super) struct Lines<R> {
    input: R,
    line: Vec<u8>,
    number: i64,
}

impl<R: BufRead> Lines<R> {
    pub fn new(input: R) -> Self {
        Self { input, line: Vec::new(), number: 0 }
    }

    /// The next line that is not empty, without its end.
    pub fn next(&mut self) -> Option<io::Result<(i64, &[u8])>> {
        loop {
            match self.fill() {
                Ok(false) => return None,
                Ok(true) => self.number += 1,
                Err(error) => return Some(Err(error)),
            }
            if !self.line.trim_ascii().is_empty() {
                return Some(Ok((self.number, &self.line)));
            }
        }
    }

    /// Fills the line; false at the end of the file.
    fn fill(&mut self) -> io::Result<bool> {
        self.line.clear();
        let mut any = false;
        loop {
            let block = match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            if block.is_empty() {
                return Ok(any);
            }
            any = true;
            let end = memchr::memchr(b'\n', block);
            let part = end.and_then(|end| block.get(..end)).unwrap_or(block);
            let room = LONGEST.saturating_sub(self.line.len()).min(part.len());
            self.line.extend_from_slice(part.get(..room).unwrap_or_default());
            let used = end.map_or(block.len(), |end| end + 1);
            self.input.consume(used);
            if end.is_some() {
                if self.line.last() == Some(&b'\r') {
                    self.line.pop();
                }
                return Ok(true);
            }
        }
    }
}
