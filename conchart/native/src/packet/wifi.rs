//! Wireless LAN: radio headers, IEEE 802.11 data frames.
//!
//! Radio headers are stepped over by their length. Frames that are encrypted, fragments and frames without data are not
//! opened. A check sequence at the end needs no care: IP lengths cut it off.

use super::Station;
use super::error::PacketError;
use super::ether::{Next, u16_at};

/// Radiotap: the length says where the frame starts; the flags, whether padding follows the 802.11 header.
pub(super) fn radiotap(frame: &[u8], offset: usize) -> Result<(Next, Station), PacketError> {
    let length = u16_at("radiotap", frame, offset, 2, 8)?.swap_bytes();
    let start = offset + usize::from(length);
    Ok((data_frame(frame, start, radiotap_flags(frame, offset) & 0x20 != 0)?, station(frame, start)))
}

/// The flags field stands behind the words that say which fields are there, and behind the eight bytes of the first
/// field, if that is there; 0 where there are no flags.
fn radiotap_flags(frame: &[u8], offset: usize) -> u8 {
    const TSFT: u32 = 1;
    const FLAGS: u32 = 2;
    const MORE: u32 = 1 << 31;
    let words = frame.get(offset + 4..).unwrap_or_default().as_chunks::<4>().0;
    let first = words.first().map_or(0, |word| u32::from_le_bytes(*word));
    let more = words.iter().take_while(|word| u32::from_le_bytes(**word) & MORE != 0).count();
    let fields = 4 + (more + 1) * 4;
    let flags = if first & TSFT != 0 { fields.next_multiple_of(8) + 8 } else { fields };
    if first & FLAGS != 0 { frame.get(offset + flags).copied().unwrap_or(0) } else { 0 }
}

/// Prism and AVS headers: AVS begins with a magic number and is big-endian, Prism is as the driver's machine.
pub(super) fn prism(frame: &[u8], offset: usize) -> Result<(Next, Station), PacketError> {
    const AVS: [u8; 3] = [0x80, 0x21, 0x10];
    let (high, low) = (u16_at("Prism", frame, offset, 4, 8)?, u16_at("Prism", frame, offset, 6, 8)?);
    let is_avs = frame.get(offset..).is_some_and(|rest| rest.starts_with(&AVS));
    let length = if is_avs || high == 0 { low } else { high.swap_bytes() };
    let start = offset + usize::from(length);
    Ok((data_frame(frame, start, false)?, station(frame, start)))
}

/// Several frames in one (A-MSDU, IEEE 802.11 section 9.3.2.2): addresses, length and LLC of each, filled up to a
/// multiple of four bytes.
#[derive(Clone, Copy, Debug)]
pub struct Aggregate<'a> {
    frame: &'a [u8],
    /// Where the next of them starts, and where the last one ends, captured or not.
    offset: usize,
    end: usize,
}

impl<'a> Aggregate<'a> {
    pub(super) fn new(frame: &'a [u8], offset: usize, end: usize) -> Self {
        Self { frame, offset, end }
    }

    /// Who sent the part whose LLC starts at `llc`.
    pub(super) fn station(frame: &[u8], llc: usize) -> Station {
        // Behind the sender's address there is only the length.
        llc.checked_sub(8).map_or_else(Station::default, |source| Station::at(frame, source))
    }

    /// The captured bytes that hold them.
    pub(super) fn bytes(&self) -> &'a [u8] {
        self.frame
    }

    /// Where the LLC of the next of them starts, and where what it holds ends.
    pub(super) fn part(&mut self) -> Option<Result<(usize, usize), PacketError>> {
        const HEADER: usize = 14;
        // A check sequence may be left at the end.
        if self.offset.checked_add(HEADER)? >= self.end {
            return None;
        }
        let start = self.offset + HEADER;
        let length = match u16_at("A-MSDU", self.frame, self.offset, HEADER - 2, HEADER) {
            Ok(length) => usize::from(length),
            Err(cut) => {
                self.offset = self.end;
                return Some(Err(cut));
            }
        };
        self.offset += (HEADER + length).next_multiple_of(4);
        Some(Ok((start, self.end.min(start + length))))
    }
}

/// Who sent the data of a frame: which of the addresses that is depends on the way through access points (IEEE 802.11
/// section 9.3.2.1).
pub(super) fn station(frame: &[u8], offset: usize) -> Station {
    const TO_AND_FROM: u8 = 0x03;
    let source = match frame.get(offset + 1).map(|flags| flags & TO_AND_FROM) {
        Some(0 | 1) => 10,
        Some(2) => 16,
        Some(_) => 24,
        None => return Station::default(),
    };
    Station::at(frame, offset + source)
}

/// From an 802.11 header (IEEE 802.11 section 9.2) to LLC, or to aggregated frames. `padded`: the header is filled up to
/// a multiple of four.
pub(super) fn data_frame(frame: &[u8], offset: usize, padded: bool) -> Result<Next, PacketError> {
    const LAYER: &str = "802.11";
    const WITHOUT_DATA: u8 = 0x40;
    const QOS: u8 = 0x80;
    const BOTH_WAYS: u8 = 0x03;
    const MORE_FRAGMENTS: u8 = 0x04;
    const PROTECTED: u8 = 0x40;
    const HT_CONTROL: u8 = 0x80;
    const AGGREGATED: u8 = 0x80;
    let [kind, flags] = u16_at(LAYER, frame, offset, 0, 2)?.to_be_bytes();
    if kind & 0x0f != 0x08 || kind & WITHOUT_DATA != 0 || flags & PROTECTED != 0 {
        return Ok(Next::Other);
    }
    let fragment = u16_at(LAYER, frame, offset, 22, 24)?.swap_bytes() & 0x0f;
    if flags & MORE_FRAGMENTS != 0 || fragment != 0 {
        return Ok(Next::Other);
    }
    let mut aggregated = false;
    // A fourth address, between access points.
    let mut header = if flags & BOTH_WAYS == BOTH_WAYS { 30 } else { 24 };
    if kind & QOS != 0 {
        let [control, _] = u16_at(LAYER, frame, offset, header, header + 2)?.to_be_bytes();
        aggregated = control & AGGREGATED != 0;
        header += if flags & HT_CONTROL != 0 { 6 } else { 2 };
    }
    if padded {
        header = header.next_multiple_of(4);
    }
    Ok(if aggregated { Next::Aggregate(offset + header) } else { Next::Llc(offset + header) })
}
