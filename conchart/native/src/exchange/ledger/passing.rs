//! The frames of QUIC and of HTTP/3 that went by, one by one, for whoever explains a connection.
//!
//! In: packets of QUIC as they are read, headers of HTTP/3's frames. Out: [`QuicFrame`]s and [`Http3Frame`]s. Kept until
//! they are fetched: a datagram's worth.

use crate::quic::{FrameSeen, PacketSeen};
use crate::stream::{Moment, Side};

/// A frame of QUIC in its packet; of a packet that was not opened, one without a name.
#[derive(Clone, Debug)]
pub struct QuicFrame {
    pub from: Side,
    pub seen: Moment,
    /// Place of its packet in the datagram, from 0, and its own place in the packet.
    pub packet: usize,
    pub number: usize,
    pub packet_kind: &'static str,
    pub packet_number: Option<u64>,
    pub packet_bytes: usize,
    pub frame: Option<FrameSeen>,
}

/// A frame of HTTP/3, or the type of a stream that goes one way (RFC 9114 section 6.2).
#[derive(Clone, Copy, Debug)]
pub struct Http3Frame {
    pub from: Side,
    pub stream: u64,
    /// Where it begins in its stream.
    pub offset: u64,
    pub kind: u64,
    pub is_stream_type: bool,
    /// Of its payload.
    pub bytes: u64,
    /// The packet with its first byte.
    pub seen: Moment,
}

/// What was not fetched yet.
#[derive(Debug, Default)]
pub struct Passing {
    /// The datagram that the packets are of, and how many of them went by.
    datagram: Option<u64>,
    packets: usize,
    pub quic: Vec<QuicFrame>,
    pub http3: Vec<Http3Frame>,
}

impl Passing {
    pub fn is_empty(&self) -> bool {
        self.quic.is_empty() && self.http3.is_empty()
    }

    /// The next packet, of the same datagram or of another.
    pub fn packet(&mut self, from: Side, packet: &PacketSeen<'_>, seen: Moment) {
        if self.datagram != Some(seen.frame()) {
            (self.datagram, self.packets) = (Some(seen.frame()), 0);
        }
        let here = QuicFrame {
            from,
            seen,
            packet: self.packets,
            number: 0,
            packet_kind: packet.kind,
            packet_number: packet.opened.map(|(number, _)| number),
            packet_bytes: packet.bytes,
            frame: None,
        };
        self.packets += 1;
        let before = self.quic.len();
        let frames = packet.frames().enumerate();
        self.quic.extend(frames.map(|(number, frame)| QuicFrame { number, frame: Some(frame), ..here.clone() }));
        if self.quic.len() == before {
            self.quic.push(here);
        }
    }
}

impl Http3Frame {
    /// As RFC 9114 and RFC 9204 call it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match (self.is_stream_type, self.kind) {
            (true, 0x0) => "control stream",
            (true, 0x1) => "push stream",
            (true, 0x2) => "QPACK encoder stream",
            (true, 0x3) => "QPACK decoder stream",
            (true, 0x54) => "WebTransport stream",
            (true, _) => "stream of an unknown type",
            (false, 0x0) => "DATA",
            (false, 0x1) => "HEADERS",
            (false, 0x3) => "CANCEL_PUSH",
            (false, 0x4) => "SETTINGS",
            (false, 0x5) => "PUSH_PROMISE",
            (false, 0x7) => "GOAWAY",
            (false, 0xd) => "MAX_PUSH_ID",
            (false, 0x41) => "WEBTRANSPORT_STREAM",
            (false, 0xf_0700 | 0xf_0701) => "PRIORITY_UPDATE",
            (false, _) => "frame of an unknown type",
        }
    }
}
