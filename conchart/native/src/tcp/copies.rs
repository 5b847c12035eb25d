//! Tells a packet that was captured twice from a packet that was sent twice.
//!
//! In: each segment, and what receivers report. Out: whether it is another capture of a packet that was just seen.
//!
//! A sender that repeats a segment writes a new IP identification and, later than a millisecond, a new timestamp value; a
//! second capture of the same packet has neither.
//! A receiver that reports bytes as received twice (RFC 2883) has the last word, unless a repetition was seen anyway.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use crate::copies::{ELSEWHERE_NS, HERE_NS, Place, Recent, UNNUMBERED_NS};
use crate::packet::{Segment, Seq};

/// What a repetition changes and a second capture does not: numbers, timestamps, everything else, as one number. Each side
/// of every open connection keeps several, and compares them at every packet.
type Print = u64;

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
    // The lowest bit is set, so that it is not 0.
    FixedState::default().hash_one((pair(segment.seq.0, segment.ack.0), pair(value, echo), rest)) | 1
}

/// The last few packets of one side.
#[derive(Clone, Debug, Default)]
pub(super) struct Copies {
    recent: Recent<Print>,
    /// One bit for each packet of `recent`: it repeats bytes that were sent before.
    repetitions: u8,
    /// Bytes of the last copy, until a repetition or the receiver says more about it.
    doubted: Option<(Seq, Seq)>,
}

impl Copies {
    /// True when `segment` is another capture of a packet that was just seen. `peer_packets` counts what
    /// the other side has sent so far.
    pub fn is_copy(&mut self, segment: &Segment<'_>, at: i64, peer_packets: i64) -> bool {
        let print = print(segment, peer_packets);
        let here = if segment.ip_id.is_some() { HERE_NS } else { UNNUMBERED_NS };
        // Middleboxes send resets too, with a TTL of their own, and none of them has an identification of its own.
        let (elsewhere, ip_id) =
            if segment.flags.rst() { (here, 0) } else { (ELSEWHERE_NS, segment.ip_id.unwrap_or_default()) };
        match self.recent.find(print, at, segment.capture_point, ip_id, (here, elsewhere)) {
            Place::New(index) => {
                self.repetitions &= !(1 << index);
                false
            }
            Place::Copy(index) => {
                // A single byte is what a keep-alive repeats (RFC 9293 section 3.8.4).
                if segment.payload_len > 1 && self.repetitions & 1 << index == 0 {
                    self.doubted = Some((segment.seq, segment.seq.plus(segment.payload_len)));
                }
                true
            }
        }
    }

    /// The latest packet repeats bytes that were sent before: what the receiver got twice may be that.
    pub fn saw_repetition(&mut self) {
        self.repetitions |= 1 << self.recent.latest();
        self.doubted = None;
    }

    /// The first byte of the last copy, if the receiver says that it got its bytes twice: then they were sent twice.
    pub fn sent_twice(&mut self, (left, right): (Seq, Seq)) -> Option<Seq> {
        self.doubted.take_if(|(from, to)| from.since(left) >= 0 && right.since(*to) >= 0).map(|(first, _)| first)
    }
}
