//! Bytes kept until it is known who should read them, each with the packet that brought it.
//!
//! Replaying what is held gives a reader exactly what it would have been fed live, so that how
//! TCP cut the stream does not matter. Bounded by [`Held::new`]'s limit: bytes beyond it are
//! remembered as missing.

use crate::stream::{Chunk, Gap, Moment, Side};

/// More pieces than this are not kept either: it takes a tiny-segment attack to get there.
const MAX_PIECES: usize = 256;

/// Something that happened on a connection.
#[derive(Clone, Copy)]
pub(super) enum Event<'a> {
    Data(Side, Chunk<'a>),
    Gap(Side, Gap),
    Fin(Side, Moment),
}

enum Piece {
    /// `bytes..end` of the buffer, from where the piece before it ended.
    Data {
        from: Side,
        end: usize,
        cut: u32,
        offset: u64,
        acked: u64,
        seen: Moment,
    },
    Gap(Side, Gap),
    Fin(Side, Moment),
}

pub(super) struct Held {
    limit: usize,
    bytes: Vec<u8>,
    pieces: Vec<Piece>,
}

impl Held {
    /// Keeps at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, bytes: Vec::new(), pieces: Vec::new() }
    }

    pub fn push(&mut self, event: Event<'_>) {
        match event {
            Event::Data(from, chunk) => self.push_data(from, &chunk),
            Event::Gap(from, gap) => self.push_gap(from, gap),
            Event::Fin(from, seen) => {
                if !self.pieces.iter().any(|p| matches!(p, Piece::Fin(by, _) if *by == from)) {
                    self.pieces.push(Piece::Fin(from, seen));
                }
            }
        }
    }

    fn push_data(&mut self, from: Side, chunk: &Chunk<'_>) {
        let room = self.limit.saturating_sub(self.bytes.len());
        if chunk.bytes.len() > room || self.pieces.len() >= MAX_PIECES {
            let gap = Gap::new(chunk.offset, chunk.len(), chunk.seen);
            return self.push_gap(from, gap);
        }
        self.bytes.extend_from_slice(chunk.bytes);
        if let Some(Piece::Data { from: by, end, cut, seen, .. }) = self.pieces.last_mut()
            && *by == from
            && *seen == chunk.seen
            && *cut == 0
        {
            (*end, *cut) = (self.bytes.len(), chunk.cut);
            return;
        }
        self.pieces.push(Piece::Data {
            from,
            end: self.bytes.len(),
            cut: chunk.cut,
            offset: chunk.offset,
            acked: chunk.acked,
            seen: chunk.seen,
        });
    }

    /// Gaps of one side that follow each other become one; at most a handful of pieces each.
    fn push_gap(&mut self, from: Side, gap: Gap) {
        let mut ours = self.pieces.iter_mut().rev().filter_map(|p| match p {
            Piece::Gap(by, known) if *by == from => Some(known),
            _ => None,
        });
        if let Some(known) = ours.next() {
            known.len = known.len.saturating_add(gap.len);
            known.acked = known.acked.zip(gap.acked).map(|((first, _), (_, last))| (first, last));
        } else {
            self.pieces.push(Piece::Gap(from, gap));
        }
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The held bytes of one side, in order: its prefix.
    pub fn prefix(&self, side: Side) -> Vec<u8> {
        let mut prefix = Vec::new();
        for event in self.events() {
            match event {
                Event::Data(from, chunk) if from == side => prefix.extend_from_slice(chunk.bytes),
                _ => {}
            }
        }
        prefix
    }

    /// First packet that brought a held byte.
    pub fn earliest(&self) -> Option<Moment> {
        self.events().find_map(|event| match event {
            Event::Data(_, chunk) => Some(chunk.seen),
            _ => None,
        })
    }

    /// What is held, in the order in which it came.
    pub fn events(&self) -> impl Iterator<Item = Event<'_>> {
        let mut start = 0;
        self.pieces.iter().map(move |piece| match *piece {
            Piece::Data { from, end, cut, offset, acked, seen } => {
                let bytes = self.bytes.get(start..end).unwrap_or_default();
                start = end;
                Event::Data(from, Chunk { bytes, cut, offset, acked, seen })
            }
            Piece::Gap(from, gap) => Event::Gap(from, gap),
            Piece::Fin(from, seen) => Event::Fin(from, seen),
        })
    }
}
