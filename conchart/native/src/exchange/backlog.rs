//! Bytes kept until it is known who should read them, each with the packet that brought it.
//!
//! In: events of a connection. Out: the same events, once more: a reader is told exactly what it would have been told
//! live, so that how TCP cut the stream does not matter. Bounded by [`Backlog::new`]'s limit: bytes beyond it are
//! remembered as missing.

use super::reader::SNIFFED;
use crate::stream::{Chunk, Gap, Moment, Side};

/// More items than this are not kept either: it takes a tiny-segment attack to get there.
const MAX_ITEMS: usize = 256;

/// Something that happened on a connection.
#[derive(Clone, Copy)]
pub(super) enum Event<'a> {
    Data(Side, Chunk<'a>),
    Gap(Side, Gap),
    Fin(Side, Moment),
}

enum Item {
    /// `bytes..end` of the buffer, from where the item before it ended.
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

pub(super) struct Backlog {
    limit: usize,
    bytes: Vec<u8>,
    items: Vec<Item>,
}

impl Backlog {
    /// Keeps at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, bytes: Vec::new(), items: Vec::new() }
    }

    pub fn push(&mut self, event: Event<'_>) {
        match event {
            Event::Data(from, chunk) => self.push_data(from, &chunk),
            Event::Gap(from, gap) => self.push_gap(from, gap),
            Event::Fin(from, seen) => {
                if !self.items.iter().any(|p| matches!(p, Item::Fin(by, _) if *by == from)) {
                    self.items.push(Item::Fin(from, seen));
                }
            }
        }
    }

    fn push_data(&mut self, from: Side, chunk: &Chunk<'_>) {
        let room = self.limit.saturating_sub(self.bytes.len());
        if chunk.bytes.len() > room || self.items.len() >= MAX_ITEMS {
            let gap = Gap::new(chunk.offset, chunk.len(), chunk.seen);
            return self.push_gap(from, gap);
        }
        self.bytes.extend_from_slice(chunk.bytes);
        if let Some(Item::Data { from: by, end, cut, seen, .. }) = self.items.last_mut()
            && *by == from
            && *seen == chunk.seen
            && *cut == 0
        {
            (*end, *cut) = (self.bytes.len(), chunk.cut);
            return;
        }
        self.items.push(Item::Data {
            from,
            end: self.bytes.len(),
            cut: chunk.cut,
            offset: chunk.offset,
            acked: chunk.acked,
            seen: chunk.seen,
        });
    }

    /// Gaps of one side that follow each other become one; at most a handful of items each.
    fn push_gap(&mut self, from: Side, gap: Gap) {
        let mut ours = self.items.iter_mut().rev().filter_map(|p| match p {
            Item::Gap(by, latest) if *by == from => Some(latest),
            _ => None,
        });
        if let Some(latest) = ours.next() {
            latest.len = latest.len.saturating_add(gap.len);
            latest.acked = latest.acked.zip(gap.acked).map(|((first, _), (_, last))| (first, last));
        } else {
            self.items.push(Item::Gap(from, gap));
        }
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The first bytes of one side that are kept.
    pub fn prefix(&self, side: Side) -> Prefix {
        let mut prefix = Prefix { bytes: [0; SNIFFED], len: 0 };
        for event in self.events() {
            match event {
                Event::Data(from, chunk) if from == side => prefix.extend(chunk.bytes),
                _ => {}
            }
        }
        prefix
    }

    /// First packet that brought a byte that is kept.
    pub fn earliest(&self) -> Option<Moment> {
        self.events().find_map(|event| match event {
            Event::Data(_, chunk) => Some(chunk.seen),
            _ => None,
        })
    }

    /// What is kept, in the order in which it came.
    pub fn events(&self) -> impl Iterator<Item = Event<'_>> {
        let mut start = 0;
        self.items.iter().map(move |item| match *item {
            Item::Data { from, end, cut, offset, acked, seen } => {
                let bytes = self.bytes.get(start..end).unwrap_or_default();
                start = end;
                Event::Data(from, Chunk { bytes, cut, offset, acked, seen })
            }
            Item::Gap(from, gap) => Event::Gap(from, gap),
            Item::Fin(from, seen) => Event::Fin(from, seen),
        })
    }
}

/// The first bytes of a stream.
pub(super) struct Prefix {
    bytes: [u8; SNIFFED],
    len: usize,
}

impl Prefix {
    pub fn extend(&mut self, bytes: &[u8]) {
        let room = self.bytes.get_mut(self.len..).unwrap_or_default();
        self.len += room.len().min(bytes.len());
        room.iter_mut().zip(bytes).for_each(|(byte, &new)| *byte = new);
    }

    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    pub fn is_full(&self) -> bool {
        self.len == SNIFFED
    }
}
