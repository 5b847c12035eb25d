//! One captured frame in, one TCP segment or UDP datagram out: link layers, tunnels, IP and its fragments, TCP, UDP.
//!
//! In: a frame's bytes, its link type and its length on the wire. Out: [`Decoded`]. Stateless, but for [`Fragments`],
//! which its owner feeds. Not here: anything else that needs more than one frame, checksums.
//!
//! Tunnels are opened to any depth that real ones have; a segment is what the innermost packet says. So connections
//! are told apart as Wireshark's `tcp.stream` does: by their own addresses, whatever tunnel they came through. A UDP
//! datagram that carries a tunnel is a tunnel and nothing else.
//!
//! Written by hand, with etherparse as the oracle of the tests: etherparse 0.21 does not know SLL2,
//! NULL and LOOP, PPPoE, MPLS or tunnels, stops after three VLAN tags, cannot be told the length on the wire
//! (which is the packet's when offloading left the IP length 0), and gives up on a TCP header whose
//! options the snap length cut. The crates for wireless LAN (`radiotap`, `ieee80211`) read much of which nothing is
//! needed here but two lengths.

mod error;
mod ether;
mod fragments;
mod ip;
mod link;
mod seq;
mod station;
mod tcp;
mod tunnel;
mod udp;
mod wifi;

#[cfg(test)]
mod tests;

pub use error::PacketError;
pub use fragments::{Fragment, Fragments, Incomplete, Placed, Reassembled};
pub use ip::traffic_class;
pub use seq::Seq;
pub use station::{Local, Mac, Passing, Station};
pub use tcp::OptionKinds;
pub use tunnel::Tunnel;
pub use wifi::Aggregate;

use std::net::IpAddr;

use crate::capture::LinkType;
use ether::Next;

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
    pub fn psh(self) -> bool {
        self.0 & Self::PSH != 0
    }
    #[must_use]
    pub fn ack(self) -> bool {
        self.0 & Self::ACK != 0
    }
    /// Neither opens nor ends a stream.
    #[must_use]
    pub fn is_plain(self) -> bool {
        self.0 & (Self::FIN | Self::SYN | Self::RST) == 0
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
    /// Window scale option (SYN and SYN-ACK only; RFC 7323 section 2).
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
    /// Of a duplicate SACK (RFC 2883): bytes that its sender received twice, first and behind the last.
    pub duplicate_sack: Option<(Seq, Seq)>,
    /// It selectively acknowledges bytes beyond some that are missing (RFC 2018).
    pub sacks_beyond_gap: bool,
    /// Tells where on its way the packet was captured: by its TTL and what its frame begins with, which are addresses,
    /// VLAN tag or interface. Another capture of it may differ here and nowhere else.
    pub capture_point: u64,
    /// Who sent the frame, of the innermost link layer.
    pub station: Station,
    /// Bytes that IP's length claims beyond the end of the frame on the wire: they were never there, and `payload_len`
    /// is without them.
    pub beyond_frame: u32,
    /// The IP packet, as far as it was captured.
    pub captured: &'a [u8],
}

impl Segment<'_> {
    /// The same, without the bytes that it borrows.
    #[must_use]
    pub fn without_bytes(&self) -> Segment<'static> {
        let Self { source, destination, seq, ack, flags, window, mss, window_scale, timestamps, .. } = *self;
        let Self { payload_len, ip_id, ttl, duplicate_sack, sacks_beyond_gap, .. } = *self;
        let Self { capture_point, station, beyond_frame, .. } = *self;
        Segment {
            source,
            destination,
            seq,
            ack,
            flags,
            window,
            mss,
            window_scale,
            timestamps,
            payload: &[],
            payload_len,
            ip_id,
            ttl,
            duplicate_sack,
            sacks_beyond_gap,
            capture_point,
            station,
            beyond_frame,
            captured: &[],
        }
    }
}

/// A UDP datagram as it was captured (RFC 768); lengths come from the headers, never from padding.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    pub source: Endpoint,
    pub destination: Endpoint,
    /// The captured part of the payload.
    pub payload: &'a [u8],
    /// The whole payload's length, at least `payload.len()`; more when the snap length cut it.
    pub payload_len: u32,
    /// IPv4 identification; `None` for IPv6.
    pub ip_id: Option<u16>,
    /// IPv4 TTL or IPv6 hop limit.
    pub ttl: u8,
    /// As [`Segment::capture_point`].
    pub capture_point: u64,
    /// As [`Segment::station`].
    pub station: Station,
    /// The frame from the IP header on, as far as it was captured.
    pub captured: &'a [u8],
}

/// Tunnels opened in one frame. Real ones nest two or three deep (GTP-U in GRE in VXLAN).
const MAX_TUNNELS: usize = 8;
/// Headers stepped over before an IP header, each a whole stack of tags or labels.
const MAX_HEADERS: usize = 8;

/// What a frame turned out to be.
#[derive(Clone, Copy, Debug)]
pub enum Decoded<'a> {
    Tcp(Segment<'a>),
    Udp(Datagram<'a>),
    /// Neither TCP nor UDP over IP.
    Other,
    /// A piece of a fragmented IP packet that may carry TCP or UDP, itself or in a tunnel.
    Fragment(Fragment<'a>),
    /// Frames that were sent as one: an iterator over what each of them turned out to be.
    Aggregate(Aggregate<'a>),
}

impl<'a> Iterator for Aggregate<'a> {
    type Item = Result<Decoded<'a>, PacketError>;

    fn next(&mut self) -> Option<Self::Item> {
        let part = self.part()?;
        Some(part.and_then(|(start, end)| {
            let mut station = Aggregate::station(self.bytes(), start);
            let carried = packet(self.bytes(), Next::Llc(start), end, &mut station)?;
            opened(self.bytes(), carried, station)
        }))
    }
}

/// Decodes one frame. `original_len` is its length on the wire.
///
/// # Errors
/// [`PacketError::UnsupportedLink`] for all frames of such a link; else the frame's headers are cut
/// or contradict each other, and the error says which, where, and by how much.
#[inline]
pub fn decode(link: LinkType, data: &[u8], original_len: u32) -> Result<Decoded<'_>, PacketError> {
    let wire = usize::try_from(original_len).unwrap_or(usize::MAX).max(data.len());
    let (next, mut station) = link::first(link, data)?;
    let carried = packet(data, next, wire, &mut station)?;
    opened(data, carried, station)
}

impl Reassembled {
    /// Decodes a packet that was put together.
    ///
    /// # Errors
    /// As [`decode`].
    pub fn decode(&self) -> Result<Decoded<'_>, PacketError> {
        opened(self.bytes(), ip::payload(self.bytes(), self.packet(), self.protocol())?, self.station())
    }
}

/// Steps over what is before an IP header, and reads that. `end` is where what holds it ends; `station` becomes the
/// sender of an Ethernet frame on the way.
#[inline]
fn packet<'a>(
    data: &'a [u8],
    mut next: Next,
    end: usize,
    station: &mut Station,
) -> Result<ip::Carried<'a>, PacketError> {
    for _ in 0..MAX_HEADERS {
        match next {
            Next::Ipv4(at) => return ip::v4(data, at, end),
            Next::Ipv6(at) => return ip::v6(data, at, end),
            Next::Aggregate(at) => return Ok(ip::Carried::Aggregate(Aggregate::new(data, at, end))),
            Next::Other => break,
            Next::Ethernet(at) => {
                *station = Station::at(data, at + ether::SOURCE);
                next = ether::step(data, next)?;
            }
            _ => next = ether::step(data, next)?,
        }
    }
    Ok(ip::Carried::Other)
}

/// Reads the segment or datagram, opening the tunnel that holds it first.
#[inline]
fn opened<'a>(data: &'a [u8], carried: ip::Carried<'a>, station: Station) -> Result<Decoded<'a>, PacketError> {
    match carried {
        ip::Carried::Tcp(packet) => tcp::segment(data, &packet, station),
        ip::Carried::Fragment(fragment) => Ok(Decoded::Fragment(fragment.sent_by(station))),
        ip::Carried::Aggregate(aggregate) => Ok(Decoded::Aggregate(aggregate)),
        ip::Carried::Other => Ok(Decoded::Other),
        ip::Carried::Tunnel(protocol, outer) => tunnelled(data, protocol, outer, station, 1),
    }
}

/// Opens tunnels until there is a segment or a datagram, or neither; `depth` counts them.
fn tunnelled(
    data: &[u8],
    protocol: u8,
    outer: ip::IpPacket,
    station: Station,
    depth: usize,
) -> Result<Decoded<'_>, PacketError> {
    let end = outer.offset.saturating_add(outer.len);
    let (kind, inside) = tunnel::inside(data, protocol, outer.offset)?;
    if protocol == tunnel::UDP && inside == Next::Other {
        return udp::datagram(data, &outer, station);
    }
    // An end of the tunnel need not be one of what is said in it.
    let mut station = Station { passing: None, ..station };
    let carried = packet(data, inside, end, &mut station)?;
    station.tunnel = Some(kind);
    match carried {
        ip::Carried::Tunnel(..) if depth >= MAX_TUNNELS => Ok(Decoded::Other),
        ip::Carried::Tunnel(protocol, inner) => tunnelled(data, protocol, inner, station, depth + 1),
        carried => opened(data, carried, station),
    }
}
