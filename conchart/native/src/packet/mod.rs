//! One captured frame in, one TCP segment out: link layers, IP, TCP. Stateless.
//!
//! In: a frame's bytes, its link type and its length on the wire. Out: [`Decoded`]. Not here:
//! fragments and tunnels, anything that needs more than one frame, checksums.
//!
//! Written by hand, with etherparse as the oracle of the tests: etherparse 0.21 does not know SLL2,
//! NULL and LOOP, PPPoE or MPLS, stops after three VLAN tags, cannot be told the length on the wire
//! (which is the packet's when offloading left the IP length 0), and gives up on a TCP header whose
//! options the snap length cut.

mod error;
mod ip;
mod link;
mod seq;
mod tcp;

#[cfg(test)]
mod tests;

pub use error::PacketError;
pub use seq::Seq;

use std::net::IpAddr;

use crate::capture::LinkType;

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

/// What a frame turned out to be.
#[derive(Clone, Copy, Debug)]
pub enum Decoded<'a> {
    Tcp(Segment<'a>),
    /// Not TCP over IP.
    Other,
    /// A piece of a fragmented IP packet that carries TCP.
    Fragment,
}

/// Decodes one frame. `original_len` is its length on the wire.
///
/// # Errors
/// [`PacketError::UnsupportedLink`] for all frames of such a link; else the frame's headers are cut
/// or contradict each other, and the error says which, where, and by how much.
#[inline]
pub fn decode(link: LinkType, data: &[u8], original_len: u32) -> Result<Decoded<'_>, PacketError> {
    let wire = usize::try_from(original_len).unwrap_or(usize::MAX);
    let ip = match link::carried(link, data)? {
        link::Carried::Ipv4(at) => ip::v4(data, at, wire)?,
        link::Carried::Ipv6(at) => ip::v6(data, at, wire)?,
        link::Carried::Other => return Ok(Decoded::Other),
    };
    Ok(match ip {
        ip::Carried::Tcp(packet) => Decoded::Tcp(tcp::segment(data, &packet)?),
        ip::Carried::Fragment => Decoded::Fragment,
        ip::Carried::Other => Decoded::Other,
    })
}
