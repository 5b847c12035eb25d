//! Frames with comments, written as pcapng (draft-ietf-opsawg-pcapng).
//!
//! In: frames, or the blocks that a pcapng file had. Out: bytes of such a file. What was a block stays one, byte for byte
//! but for the comments: options, secrets, statistics and names in it survive, whatever the byte order.

use std::io::{self, Write};

use super::pcapng::{
    COMMENT, ENHANCED_PACKET, INTERFACE, NUMBERED, OBSOLETE_PACKET, PACKET_FLAGS, SECTION_HEADER, TIMESTAMP_RESOLUTION,
};
use super::{Comments, Direction, Frame, LinkType, Order};

/// `shb_userappl`.
const APPLICATION: u16 = 4;
/// Of a block: its type and length, in front; its length again, at the end.
const HEAD: usize = 8;
const TAIL: usize = 4;
/// Of a packet block: what stands before the packet's bytes.
const PACKET_HEAD: usize = 20;
/// The section's length, which comments change.
const SECTION_LENGTH: std::ops::Range<usize> = 16..24;

/// A block of a pcapng file, from its type to its second length.
#[derive(Clone, Copy)]
pub(crate) struct Block<'a> {
    pub(super) order: Order,
    pub(super) bytes: &'a [u8],
}

impl Block<'_> {
    /// Is it no packet, and yet Wireshark gives it a number?
    pub(crate) fn is_numbered(&self) -> bool {
        NUMBERED.contains(&self.kind())
    }

    fn kind(&self) -> u32 {
        self.number(0).unwrap_or(0)
    }

    fn number(&self, at: usize) -> Option<u32> {
        Some(self.order.u32(*self.bytes.get(at..)?.first_chunk()?))
    }

    /// Writes it with comments after those that it has; a simple packet block has no room for any.
    pub(crate) fn write(&self, comments: &[String], into: &mut dyn Write) -> io::Result<()> {
        if self.kind() == SECTION_HEADER {
            let mut bytes = self.bytes.to_vec();
            if let Some(length) = bytes.get_mut(SECTION_LENGTH) {
                length.fill(0xff); // not known
            }
            return into.write_all(&bytes);
        }
        if comments.is_empty() || !matches!(self.kind(), ENHANCED_PACKET | OBSOLETE_PACKET) {
            return into.write_all(self.bytes);
        }
        let mut out = Writer { order: self.order, bytes: Vec::with_capacity(self.bytes.len() + 256) };
        let body = self.bytes.get(HEAD..self.bytes.len().saturating_sub(TAIL)).unwrap_or_default();
        out.bytes.extend_from_slice(body.get(..self.end_of_options(body)).unwrap_or_default());
        out.options(comments.iter().map(|comment| (COMMENT, comment.as_bytes())));
        out.block(self.kind(), into)
    }

    /// Where the options in a packet block's body end, without the mark of their end, nor what is damaged.
    fn end_of_options(&self, body: &[u8]) -> usize {
        let captured = self.number(HEAD + 12).and_then(|len| usize::try_from(len).ok()).unwrap_or(0);
        let mut end = PACKET_HEAD.saturating_add(captured).next_multiple_of(4).min(body.len());
        while let Some(&[c0, c1, l0, l1]) = body.get(end..).and_then(|rest| rest.first_chunk()) {
            let after = end + 4 + usize::from(self.order.u16([l0, l1])).next_multiple_of(4);
            if self.order.u16([c0, c1]) == 0 || after > body.len() {
                break;
            }
            end = after;
        }
        end
    }
}

/// A section for frames that were in no pcapng file: one interface, its clock in nanoseconds.
pub(crate) fn begin_section(link: LinkType, into: &mut dyn Write) -> io::Result<()> {
    let mut header = Writer::default();
    header.u32(0x1a2b_3c4d).u16(1).u16(0).u32(u32::MAX).u32(u32::MAX);
    header.options([(APPLICATION, b"conchart".as_slice())]).block(SECTION_HEADER, into)?;
    let mut interface = Writer::default();
    // Snap length 0: no limit. Each packet says how long it was.
    interface.u16(link.0).u16(0).u32(0);
    interface.options([(TIMESTAMP_RESOLUTION, [9].as_slice())]).block(INTERFACE, into)
}

/// A frame of such a section, with further comments after its own.
pub(crate) fn write_frame(frame: &Frame<'_>, comments: &[String], into: &mut dyn Write) -> io::Result<()> {
    let mut packet = Writer::default();
    let [h0, h1, h2, h3, l0, l1, l2, l3] = frame.at.to_be_bytes();
    packet.u32(0).u32(u32::from_be_bytes([h0, h1, h2, h3])).u32(u32::from_be_bytes([l0, l1, l2, l3]));
    packet.u32(u32::try_from(frame.data.len()).unwrap_or(u32::MAX)).u32(frame.original_len);
    packet.padded(frame.data);
    let flags = frame.comments.and_then(Comments::direction).map(|direction| match direction {
        Direction::Inbound => 1_u32.to_le_bytes(),
        Direction::Outbound => 2_u32.to_le_bytes(),
    });
    let own = frame.comments.into_iter().flat_map(Comments::texts).map(|comment| (COMMENT, comment));
    let flags = flags.iter().map(|flags| (PACKET_FLAGS, flags.as_slice()));
    let further = comments.iter().map(|comment| (COMMENT, comment.as_bytes()));
    packet.options(own.chain(flags).chain(further)).block(ENHANCED_PACKET, into)
}

/// The body of a block.
struct Writer {
    order: Order,
    bytes: Vec<u8>,
}

impl Default for Writer {
    fn default() -> Self {
        Self { order: Order::Little, bytes: Vec::new() }
    }
}

impl Writer {
    fn u16(&mut self, value: u16) -> &mut Self {
        self.bytes.extend(self.order.of_u16(value));
        self
    }

    fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes.extend(self.order.of_u32(value));
        self
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    /// Options, and the mark of their end if there are any. None is longer than its length can say.
    fn options<'a>(&mut self, options: impl IntoIterator<Item = (u16, &'a [u8])>) -> &mut Self {
        let before = self.bytes.len();
        for (code, value) in options {
            let value = value.get(..value.len().min(usize::from(u16::MAX))).unwrap_or_default();
            self.u16(code).u16(u16::try_from(value.len()).unwrap_or(u16::MAX)).padded(value);
        }
        if self.bytes.len() > before {
            self.u32(0);
        }
        self
    }

    /// Writes the block of which this is the body.
    fn block(&self, kind: u32, into: &mut dyn Write) -> io::Result<()> {
        let len = self.order.of_u32(u32::try_from(HEAD + self.bytes.len() + TAIL).unwrap_or(u32::MAX));
        into.write_all(&self.order.of_u32(kind))?;
        into.write_all(&len)?;
        into.write_all(&self.bytes)?;
        into.write_all(&len)
    }
}
