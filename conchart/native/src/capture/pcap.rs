//! Classic pcap: a 24-byte header, then records (draft-ietf-opsawg-pcap).
//!
//! In: the window. Out: one [`Packet`] per record. Reads µs and ns files of either byte order,
//! Kuznetzov's "modified" records, Ixia's longer file header, and the length fields that versions before 2.4 had swapped.
//! Written by hand: pcap-parser's reader knows none of the last three and gives no byte offsets.

use super::fault::Fault;
use super::link_type::LinkType;
use super::window::{MAX_RECORD, Window};
use super::{Order, Packet};

const HEADER: usize = 24;
/// libpcap's limit for a packet when the header's snap length is smaller, or absurd.
const USUAL_MAX_PACKET: u32 = 262_144;
/// Leaves room for the record header.
const MAX_PACKET: u32 = MAX_RECORD - 64;

/// Which of a record's two lengths comes first (libpcap, `sf-pcap.c`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Lengths {
    CapturedFirst,
    OriginalFirst,
    /// Version 2.3 had writers of both kinds: the captured length is the smaller one.
    SmallerIsCaptured,
}

/// One file's constants.
pub(super) struct Pcap {
    order: Order,
    /// Nanoseconds per unit of the fraction field.
    unit: u32,
    /// Length of a record header.
    record: usize,
    lengths: Lengths,
    link: LinkType,
    max_packet: u32,
}

impl Pcap {
    /// Is this the magic number of a pcap file?
    pub(super) fn knows(head: &[u8]) -> bool {
        head.first_chunk().is_some_and(|magic| variant(*magic).is_some())
    }

    /// Reads the file header. Second value: something the reader should know about the file.
    pub(super) fn open(window: &mut Window) -> Result<(Self, Option<String>), Fault> {
        let offset = window.offset();
        window.ensure(HEADER).map_err(|short| Fault::cut(offset, "the pcap file header", HEADER as u64, short))?;
        let head = window.ahead().first_chunk::<HEADER>().copied().unwrap_or_default();
        let [m0, m1, m2, m3, v0, v1, v2, v3, _, _, _, _, _, _, _, _, s0, s1, s2, s3, l0, l1, l2, l3] = head;
        let Some(Variant { order, unit, record, more }) = variant([m0, m1, m2, m3]) else {
            return Err(Fault::broken(offset, "no pcap magic number".to_owned()));
        };
        let header = HEADER + more;
        window.ensure(header).map_err(|short| Fault::cut(offset, "the pcap file header", header as u64, short))?;
        window.take(header);
        let version = (order.u16([v0, v1]), order.u16([v2, v3]));
        let lengths = match version {
            (2, 0..=2) | (543, _) => Lengths::OriginalFirst,
            (2, 3) => Lengths::SmallerIsCaptured,
            _ => Lengths::CapturedFirst,
        };
        let note = (version.0 != 2 && version.0 != 543)
            .then(|| format!("pcap version {}.{}: read as 2.4", version.0, version.1));
        // The upper bits say whether frames end in a check sequence; IP lengths cut it off anyway.
        let link = LinkType((order.u32([l0, l1, l2, l3]) & 0xffff) as u16);
        let snap_length = order.u32([s0, s1, s2, s3]);
        let max_packet = if snap_length > MAX_PACKET { USUAL_MAX_PACKET } else { snap_length.max(USUAL_MAX_PACKET) };
        Ok((Self { order, unit, record, lengths, link, max_packet }, note))
    }

    pub(super) fn link(&self) -> LinkType {
        self.link
    }

    pub(super) fn resolution_ns(&self) -> i64 {
        i64::from(self.unit)
    }

    /// Is the next packet all there?
    pub(super) fn has_whole(&self, ahead: &[u8]) -> bool {
        let head = ahead.first_chunk().copied();
        head.is_some_and(|head| ahead.len() >= self.record.saturating_add(self.lengths(head).0 as usize))
    }

    /// Of a record header: how much was captured, and how long the packet was.
    #[inline]
    fn lengths(&self, head: [u8; 16]) -> (u32, u32) {
        let [_, _, _, _, _, _, _, _, a0, a1, a2, a3, b0, b1, b2, b3] = head;
        let lengths = (self.order.u32([a0, a1, a2, a3]), self.order.u32([b0, b1, b2, b3]));
        match self.lengths {
            Lengths::CapturedFirst => lengths,
            Lengths::OriginalFirst => (lengths.1, lengths.0),
            Lengths::SmallerIsCaptured => (lengths.0.min(lengths.1), lengths.0.max(lengths.1)),
        }
    }

    /// The next packet; `None` at the end of the file.
    #[inline]
    pub(super) fn next(&self, window: &mut Window) -> Result<Option<Packet>, Fault> {
        if let Err(short) = window.ensure(self.record) {
            return if short.have == 0 && short.cause.is_none() {
                Ok(None)
            } else {
                Err(Fault::cut(window.offset(), "a packet's record header", self.record as u64, short))
            };
        }
        let head = window.ahead().first_chunk::<16>().copied().unwrap_or_default();
        if head == [0; 16] {
            return Err(Fault::zeros(window.offset()));
        }
        let [s0, s1, s2, s3, f0, f1, f2, f3, ..] = head;
        let seconds = self.order.u32([s0, s1, s2, s3]);
        let fraction = self.order.u32([f0, f1, f2, f3]);
        let (captured, original) = self.lengths(head);
        let offset = window.offset();
        if captured > self.max_packet {
            return Err(Fault::too_long(offset, "packet", captured, self.max_packet));
        }
        let whole = self.record + captured as usize;
        window
            .ensure(whole)
            .map_err(|short| Fault::cut(offset, "a packet with its record header", whole as u64, short))?;
        let record = window.take(whole);
        let data = record.start + self.record..record.end;
        let at = i64::from(seconds) * 1_000_000_000 + i64::from(fraction) * i64::from(self.unit);
        Ok(Some(Packet { at, link: self.link, data, original_len: original, record, comments: None }))
    }
}

/// What the magic number says.
struct Variant {
    order: Order,
    /// Nanoseconds per unit of the fraction field.
    unit: u32,
    /// Length of a record header.
    record: usize,
    /// What the file header has besides the usual bytes.
    more: usize,
}

fn variant(magic: [u8; 4]) -> Option<Variant> {
    for order in [Order::Little, Order::Big] {
        let (unit, record, more) = match order.u32(magic) {
            0xa1b2_c3d4 => (1000, 16, 0),
            0xa1b2_3c4d => (1, 16, 0),
            // Alexey Kuznetzov's kernel patch: interface, protocol and packet type follow.
            0xa1b2_cd34 => (1000, 24, 0),
            // Ixia's `lcap`, of its hardware and of its software: the size of all records follows the header.
            0x1c00_01ac => (1, 16, 4),
            0x1c00_01ab => (1000, 16, 4),
            _ => continue,
        };
        return Some(Variant { order, unit, record, more });
    }
    None
}
