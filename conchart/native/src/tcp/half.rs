//! One side of a connection: its stream, its segments, and what its packets say of it.

use super::assembler::Assembler;
use super::classifier::{Classifier, Extent};
use super::stamps::Stamps;
use crate::packet::{Segment, Seq, Station};

/// What one side sent.
#[derive(Debug, Default)]
pub struct Half {
    pub(super) assembler: Assembler,
    pub(super) classifier: Classifier,
    /// Sequence number of this side's SYN, when it was captured.
    pub isn: Option<Seq>,
    /// Packets of this side that only acknowledge are captured.
    pub(super) acks_alone: bool,
    pub packets: i64,
    pub mss: Option<u16>,
    /// Of its SYN (RFC 7323 section 2); `None` without the option, and where no SYN of it was captured.
    pub window_scale: Option<u8>,
    /// Hop limit of the first packet, as it arrived.
    pub ttl: Option<u8>,
    /// Of all packets but resets.
    pub(super) stamps: Stamps,
    /// Who sent the first packet on the last link.
    pub station: Option<Station>,
}

impl Half {
    /// Distinct stream bytes captured.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.assembler.bytes
    }

    /// Of these, those that came after they had been passed over: no [`Receiver`](super::Receiver) heard them.
    #[must_use]
    pub fn late(&self) -> u64 {
        self.assembler.late()
    }

    /// Bytes that were acknowledged, but not captured.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.assembler.missing()
    }

    #[must_use]
    pub fn retransmits(&self) -> i32 {
        self.classifier.retransmits
    }

    #[must_use]
    pub fn out_of_order(&self) -> i32 {
        self.classifier.out_of_order
    }

    #[must_use]
    pub fn zero_windows(&self) -> i32 {
        self.classifier.zero_windows
    }

    /// Is any packet of this side captured?
    pub(super) fn is_captured(&self) -> bool {
        self.packets > 0
    }

    /// Where a segment of this side lies in its stream.
    pub(super) fn extent(&mut self, segment: &Segment<'_>) -> Extent {
        let seq = segment.seq.plus(segment.flags.syn().into());
        let mut position = self.assembler.position(seq);
        if segment.payload_len > 0 && position < self.assembler.start && self.may_start_elsewhere() {
            self.assembler.restart(seq);
            position = self.assembler.start;
        }
        Extent { position, end: position + u64::from(segment.payload_len), reached: self.assembler.announced_end() }
    }

    /// Has only an acknowledgement told where the stream starts? It may be damaged; what this side sends tells better.
    pub(super) fn may_start_elsewhere(&self) -> bool {
        self.isn.is_none() && self.assembler.is_untouched()
    }

    /// Does a segment of this side tell when it had what it acknowledges, up to the delay of an ACK (RFC 9293 section
    /// 3.8.6.3)? With data, only if `with_data`, ACKs on their own are captured, and none is missing.
    pub(super) fn acknowledges_at_once(&mut self, segment: &Segment<'_>, with_data: bool) -> bool {
        if segment.payload_len == 0 {
            self.acks_alone |= segment.flags.is_plain();
            return true;
        }
        with_data && self.acks_alone && self.assembler.continues(segment.seq)
    }
}
