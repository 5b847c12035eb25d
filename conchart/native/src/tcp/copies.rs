//! Tells a packet that was captured twice from a packet that was sent twice.
//!
//! `tcpdump -i any` and mirror ports deliver the same packet several times within microseconds.
//! A sender that repeats a segment writes a new IP identification and, later than a millisecond,
//! a new timestamp value; a second capture of the same packet has neither (trap 9).

use crate::packet::Segment;

/// A copy follows within this time; no retransmission timer is that short (RFC 6298: 200 ms and more).
const WINDOW_NS: i64 = 1_000_000;
/// IPv6 has no identification: a repeated ACK could look alike, so we look less far.
const WINDOW_V6_NS: i64 = 200_000;
/// Packets of one side that are remembered.
const REMEMBERED: usize = 4;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Print {
    seq: u32,
    ack: u32,
    len: u32,
    timestamps: Option<(u32, u32)>,
    ip_id: Option<u16>,
    window: u16,
    flags: u8,
}

/// The last few packets of one side.
#[derive(Clone, Debug, Default)]
pub struct Copies {
    recent: [Option<(i64, Print)>; REMEMBERED],
    oldest: usize,
}

impl Copies {
    /// True when `segment` is another capture of a packet that was just seen.
    pub fn is_copy(&mut self, segment: &Segment<'_>, at: i64) -> bool {
        let print = Print {
            seq: segment.seq.0,
            ack: segment.ack.0,
            len: segment.payload_len,
            timestamps: segment.timestamps,
            ip_id: segment.ip_id,
            window: segment.window,
            flags: segment.flags.0,
        };
        let window = if print.ip_id.is_some() { WINDOW_NS } else { WINDOW_V6_NS };
        let seen = self
            .recent
            .iter()
            .flatten()
            .any(|&(then, other)| other == print && (at - then).abs() <= window);
        if !seen {
            if let Some(slot) = self.recent.get_mut(self.oldest) {
                *slot = Some((at, print));
            }
            self.oldest = (self.oldest + 1) % REMEMBERED;
        }
        seen
    }
}
