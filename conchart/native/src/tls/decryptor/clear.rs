//! Application data in clear, with the packets that carried it.

use crate::stream::{Moment, Side};

/// The content of one record of application data, or how much of it is not known.
#[derive(Clone, Debug, PartialEq)]
pub struct Clear {
    pub from: Side,
    /// How much of the peer's TCP stream its sender had acknowledged when it sent the record.
    pub acked: u64,
    /// Position after the record in its sender's TCP stream.
    pub end: u64,
    pub content: Vec<u8>,
    /// Bytes of content that could not be opened; then `content` is empty.
    pub missing: u64,
    /// First byte of the record on the wire, and its last.
    pub first: Moment,
    pub last: Moment,
    /// Up to which byte of the content each packet's part of the record reaches.
    cuts: Vec<(usize, Moment)>,
}

impl Clear {
    /// A record that could not be opened.
    pub(super) fn unopened(
        from: Side,
        (acked, end): (u64, u64),
        (first, last): (Moment, Moment),
        missing: u64,
    ) -> Self {
        Self { from, acked, end, content: Vec::new(), missing, first, last, cuts: Vec::new() }
    }

    /// The same record, opened. `marks` are the ends of the packets in the sealed body, where the content
    /// begins at `offset`.
    ///
    /// The first byte gets the record's first moment, the last one its last: whoever sees only records finds
    /// the same times. (A single byte gets the last moment.)
    pub(super) fn opened(self, content: Vec<u8>, offset: usize, marks: &[(usize, Moment)]) -> Self {
        let len = content.len();
        let last_byte = len.saturating_sub(1);
        let mut cuts: Vec<(usize, Moment)> = Vec::new();
        let within = marks.iter().map(|&(end, seen)| (end.saturating_sub(offset).min(last_byte), seen));
        for (end, seen) in [(last_byte.min(1), self.first)].into_iter().chain(within).chain([(len, self.last)]) {
            match cuts.last_mut() {
                Some((until, moment)) if *moment == seen => *until = end.max(*until),
                Some((until, _)) if *until >= end => {}
                _ if end == 0 => {}
                _ => cuts.push((end, seen)),
            }
        }
        Self { content, missing: 0, cuts, ..self }
    }

    /// The content, cut where its packets were cut.
    pub fn pieces(&self) -> impl Iterator<Item = (&[u8], Moment)> {
        let mut start = 0;
        self.cuts.iter().filter_map(move |&(end, seen)| {
            let piece = self.content.get(start..end)?;
            start = end;
            Some((piece, seen))
        })
    }
}
