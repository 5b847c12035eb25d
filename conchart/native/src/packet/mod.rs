//! One captured frame in, one TCP segment out: link layers, IP, TCP. Stateless.

mod seq;
pub use seq::Seq;

use std::net::IpAddr;

/// One end's address.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Endpoint {
    pub ip: IpAddr,
    pub port: u16,
}

/// The TCP flag bits, as in the header's 14th byte (RFC 9293 section 3.1).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Flags(pub u8);

impl Flags {
    pub const FIN: u8 = 0x01;
    pub const SYN: u8 = 0x02;
    pub const RST: u8 = 0x04;
    pub const PSH: u8 = 0x08;
    pub const ACK: u8 = 0x10;

    #[must_use]
    pub fn fin(self) -> bool {
        self.0 & Self::FIN != 0
    }
    #[must_use]
    pub fn syn(self) -> bool {
        self.0 & Self::SYN != 0
    }
    #[must_use]
    pub fn rst(self) -> bool {
        self.0 & Self::RST != 0
    }
    #[must_use]
    pub fn ack(self) -> bool {
        self.0 & Self::ACK != 0
    }
}

/// A TCP segment as it was captured; lengths come from the headers, never from padding.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    pub source: Endpoint,
    pub destination: Endpoint,
    pub seq: Seq,
    /// Meaningful only with the ACK flag.
    pub ack: Seq,
    pub flags: Flags,
    /// As in the header: not scaled.
    pub window: u16,
    /// Maximum segment size option (SYN and SYN-ACK only).
    pub mss: Option<u16>,
    /// Window scale option (SYN and SYN-ACK only).
    pub window_scale: Option<u8>,
    /// Timestamps option: value and echo reply (RFC 7323).
    pub timestamps: Option<(u32, u32)>,
    /// The captured part of the payload.
    pub payload: &'a [u8],
    /// The whole payload's length, at least `payload.len()`; more when the snap length cut it.
    pub payload_len: u32,
    /// IPv4 identification; `None` for IPv6.
    pub ip_id: Option<u16>,
    /// IPv4 TTL or IPv6 hop limit.
    pub ttl: u8,
}
