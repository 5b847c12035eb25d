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
const REMEMBERED: usize = 4; // `oldest` counts modulo this

/// What a repetition changes and a second capture does not: numbers, timestamps, everything else.
type Print = [u64; 3];

fn print(segment: &Segment<'_>, peer_packets: i64) -> Print {
    let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
    let (value, echo) = segment.timestamps.unwrap_or_default();
    // Linux sends every RST with identification 0, one for each packet that it refuses: the refused
    // packets tell them apart.
    let answer = if segment.flags.rst() { peer_packets.to_le_bytes()[0] } else { 0 };
    // The low 16 bits of the length: numbers and identification tell longer ones apart.
    let rest = u64::from(segment.payload_len) << 48
        | u64::from(segment.ip_id.unwrap_or_default()) << 32
        | u64::from(segment.window) << 16
        | u64::from(answer) << 8
        | u64::from(segment.flags.0);
    [pair(segment.seq.0, segment.ack.0), pair(value, echo), rest]
}

/// The last few packets of one side.
#[derive(Clone, Debug, Default)]
pub struct Copies {
    recent: [(i64, Print); REMEMBERED],
    oldest: u8,
}

impl Copies {
    /// True when `segment` is another capture of a packet that was just seen. `peer_packets` counts what
    /// the other side has sent so far.
    pub fn is_copy(&mut self, segment: &Segment<'_>, at: i64, peer_packets: i64) -> bool {
        let print = print(segment, peer_packets);
        let window = if segment.ip_id.is_some() { WINDOW_NS } else { WINDOW_V6_NS };
        // An empty place cannot match: no packet has neither flags nor numbers.
        let seen =
            self.recent.iter().any(|&(then, other)| other == print && at.abs_diff(then) <= window.unsigned_abs());
        if !seen {
            if let Some(place) = self.recent.get_mut(usize::from(self.oldest)) {
                *place = (at, print);
            }
            self.oldest = (self.oldest + 1) % 4;
        }
        seen
    }
}
