//! What somebody wrote beside a packet of a pcapng file: comments, and which way it passed the interface.
//!
//! In: the options of a packet block that has comments. Out: their texts, as they stand. Nothing is copied.

use super::Order;
use super::pcapng::{Body, COMMENT, PACKET_FLAGS};

/// The options of a packet that has comments (draft-ietf-opsawg-pcapng, sections 3.5 and 4.3).
#[derive(Clone, Copy, Debug)]
pub struct Comments<'a> {
    order: Order,
    options: &'a [u8],
}

/// Which way a packet passed the interface that captured it, as its flags say.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Direction {
    Inbound,
    Outbound,
}

impl<'a> Comments<'a> {
    pub(super) fn new(order: Order, options: &'a [u8]) -> Self {
        Self { order, options }
    }

    fn options(self) -> impl Iterator<Item = (u16, &'a [u8])> {
        Body { order: self.order, rest: self.options }.options()
    }

    /// Each comment, in their order; no text of this format is longer than 65,535 bytes.
    pub fn texts(self) -> impl Iterator<Item = &'a [u8]> {
        self.options().filter_map(|(code, value)| (code == COMMENT).then_some(value))
    }

    /// Which way the packet passed; `None` where its writer does not say.
    pub fn direction(self) -> Option<Direction> {
        let flags = self.options().find_map(|(code, value)| value.first_chunk().filter(|_| code == PACKET_FLAGS))?;
        match self.order.u32(*flags) & 3 {
            1 => Some(Direction::Inbound),
            2 => Some(Direction::Outbound),
            _ => None,
        }
    }
}

#[cfg(test)]
impl Comments<'_> {
    /// The options of a little-endian section, for tests of what reads them.
    pub(crate) fn of(options: &[u8]) -> Comments<'_> {
        Comments::new(Order::Little, options)
    }
}
