//! The TCP header and its options (RFC 9293 section 3.1, RFC 7323).
//!
//! In: captured bytes and what IP said. Out: a [`Segment`]. Checksums are not looked at: captures
//! on the sending machine show them before the network card filled them in.

use super::error::PacketError;
use super::ip::IpPacket;
use super::{Decoded, Endpoint, Flags, Segment, Seq, Station};

const LAYER: &str = "TCP";

/// Reads the TCP header that `ip` points to.
///
/// # Errors
/// `Cut` when the frame or the IP packet ends inside the fixed 20 bytes, `Bad` when the data offset
/// is impossible.
#[inline]
pub(super) fn segment<'a>(frame: &'a [u8], ip: &IpPacket, station: Station) -> Result<Decoded<'a>, PacketError> {
    let offset = ip.offset;
    let captured = frame.get(offset..).unwrap_or_default();
    // Behind the IP packet's end there may be padding.
    let captured = captured.get(..ip.len).unwrap_or(captured);
    let Some(&[s0, s1, d0, d1, q0, q1, q2, q3, a0, a1, a2, a3, words, flags, w0, w1, _, _, _, _]) =
        captured.first_chunk::<20>()
    else {
        return Err(PacketError::Cut { layer: LAYER, offset, need: 20, have: captured.len() });
    };
    let header = usize::from(words >> 4) * 4;
    if header < 20 || header > ip.len {
        let allowed = if header < 20 { "at least 20" } else { "at most the length IP gives" };
        let found = u32::from(words >> 4) * 4;
        return Err(PacketError::Bad { layer: LAYER, offset, field: "header length", found, allowed });
    }
    // The snap length may cut the options: what is there is read.
    let (options, payload) = captured.split_at_checked(header).unwrap_or((captured, &[]));
    let read = options_of(Seq(u32::from_be_bytes([a0, a1, a2, a3])), options.get(20..).unwrap_or_default());
    Ok(Decoded::Tcp(Segment {
        source: Endpoint { ip: ip.source, port: u16::from_be_bytes([s0, s1]) },
        destination: Endpoint { ip: ip.destination, port: u16::from_be_bytes([d0, d1]) },
        seq: Seq(u32::from_be_bytes([q0, q1, q2, q3])),
        ack: Seq(u32::from_be_bytes([a0, a1, a2, a3])),
        flags: Flags(flags),
        window: u16::from_be_bytes([w0, w1]),
        mss: read.mss,
        window_scale: read.window_scale,
        timestamps: read.timestamps,
        payload,
        payload_len: u32::try_from(ip.len - header).unwrap_or(u32::MAX),
        ip_id: ip.id,
        ttl: ip.ttl,
        duplicate_sack: read.duplicate_sack,
        sacks_beyond_gap: read.sacks_beyond_gap,
        capture_point: capture_point(frame, ip.ttl),
        station,
        beyond_frame: ip.beyond_frame,
        captured: frame.get(ip.start..offset + captured.len()).unwrap_or_default(),
    }))
}

/// What the options say.
#[derive(Default)]
struct Options {
    mss: Option<u16>,
    window_scale: Option<u8>,
    timestamps: Option<(u32, u32)>,
    duplicate_sack: Option<(Seq, Seq)>,
    sacks_beyond_gap: bool,
}

/// See [`Segment::capture_point`].
#[inline]
pub(super) fn capture_point(frame: &[u8], ttl: u8) -> u64 {
    let head = match frame.as_chunks::<8>().0 {
        [one, two, ..] => u64::from_le_bytes(*one) ^ u64::from_le_bytes(*two).rotate_left(29),
        _ => 0,
    };
    head ^ u64::from(ttl) << 56
}

/// The first block of a SACK option, if it reports a duplicate (RFC 2883 section 4): it lies below the acknowledgement
/// number, or inside the second block.
fn duplicate_sack(ack: Seq, blocks: &[u8]) -> Option<(Seq, Seq)> {
    let [first, rest @ ..] = blocks.as_chunks::<8>().0 else { return None };
    let edges = |&[l0, l1, l2, l3, r0, r1, r2, r3]: &[u8; 8]| {
        (Seq(u32::from_be_bytes([l0, l1, l2, l3])), Seq(u32::from_be_bytes([r0, r1, r2, r3])))
    };
    let (left, right) = edges(first);
    let is_inside = |(from, to): (Seq, Seq)| left.since(from) >= 0 && to.since(right) >= 0;
    let is_duplicate = ack.since(right) >= 0 || rest.first().map(edges).is_some_and(is_inside);
    is_duplicate.then_some((left, right))
}

/// Reads the options up to the first that makes no sense. As the kernels do, which then still take
/// the segment: dropping it here would lose bytes that its receiver got.
#[inline]
fn options_of(ack: Seq, mut rest: &[u8]) -> Options {
    let mut read = Options::default();
    // What nearly every segment of an open connection carries: two NOPs and the timestamps.
    if let &[1, 1, 8, 10, v0, v1, v2, v3, e0, e1, e2, e3] = rest {
        read.timestamps = Some((u32::from_be_bytes([v0, v1, v2, v3]), u32::from_be_bytes([e0, e1, e2, e3])));
        return read;
    }
    loop {
        rest = match rest {
            [1, after @ ..] => after,
            [] | [0, ..] | [_] => return read,
            [kind, len, tail @ ..] => {
                let Some((value, after)) = usize::from(*len).checked_sub(2).and_then(|len| tail.split_at_checked(len))
                else {
                    return read;
                };
                match (*kind, value) {
                    (2, &[hi, lo]) => read.mss = Some(u16::from_be_bytes([hi, lo])),
                    (8, &[v0, v1, v2, v3, e0, e1, e2, e3]) => {
                        let value = u32::from_be_bytes([v0, v1, v2, v3]);
                        read.timestamps = Some((value, u32::from_be_bytes([e0, e1, e2, e3])));
                    }
                    (3, &[scale]) => read.window_scale = Some(scale),
                    (5, blocks) => {
                        read.duplicate_sack = duplicate_sack(ack, blocks);
                        let reported_twice = usize::from(read.duplicate_sack.is_some());
                        read.sacks_beyond_gap = blocks.len() / 8 > reported_twice;
                    }
                    _ => {}
                }
                after
            }
        };
    }
}

/// The kinds of a segment's options, in their order, without padding.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct OptionKinds {
    kinds: [u8; 20],
    count: u8,
}

impl OptionKinds {
    /// Reads them from an IP packet, as far as it was captured, of which the last `payload` bytes are TCP's payload; `None` if
    /// the headers are not whole, or if IPv6 has extension headers.
    #[must_use]
    pub fn of(packet: &[u8], payload: usize) -> Option<Self> {
        let start = match packet {
            [first, ..] if first >> 4 == 4 => usize::from(first & 0x0f) * 4,
            [first, _, _, _, _, _, TCP_NEXT, ..] if first >> 4 == 6 => 40,
            _ => return None,
        };
        let header = packet.get(start..packet.len().checked_sub(payload)?)?;
        let length = usize::from(header.get(12)? >> 4) * 4;
        let mut rest = header.get(20..length)?;
        let mut found = Self::default();
        loop {
            rest = match rest {
                [1, after @ ..] => after,
                [] | [0, ..] | [_] => return Some(found),
                [kind, len, ..] => {
                    let (Some(place), Some(after)) =
                        (found.kinds.get_mut(usize::from(found.count)), rest.get(usize::from(*len).max(2)..))
                    else {
                        return Some(found);
                    };
                    *place = *kind;
                    found.count += 1;
                    after
                }
            };
        }
    }

    /// Their numbers (IANA, TCP option kind numbers).
    pub fn iter(&self) -> impl Iterator<Item = u8> + '_ {
        self.kinds.iter().copied().take(self.count.into())
    }
}

/// IPv6's next header.
const TCP_NEXT: u8 = 6;
