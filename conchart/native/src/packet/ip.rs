//! IPv4 (RFC 791) and IPv6 (RFC 8200) with its extension headers: to the TCP header, or to a tunnel.
//!
//! In: captured bytes, where the IP header starts, where what holds it ends. Out: where TCP
//! starts and how long it is by the IP header, so that padding, frame check sequences and trailers
//! never become payload; but never longer than what holds it, for nobody received more. A length of 0
//! (the capture saw the packet before the network card filled it in) means: to the end of what holds it.
//!
//! Addresses are those that TCP's checksum covers: where a packet is routed by its sender, the last
//! destination (RFC 8200 section 8.1), and a mobile host's home (RFC 6275 section 6.3).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::error::PacketError;
use super::fragments::Fragment;
use super::tunnel;
use super::wifi::Aggregate;

const TCP: u8 = 6;
const AH: u8 = 51;

/// What an IP packet carries.
#[derive(Clone, Copy, Debug)]
pub(super) enum Carried<'a> {
    Tcp(IpPacket),
    /// This protocol, which may carry other packets.
    Tunnel(u8, IpPacket),
    Fragment(Fragment<'a>),
    /// Not an IP packet but several frames, each with its own.
    Aggregate(Aggregate<'a>),
    Other,
}

/// The part of the IP header that TCP needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct IpPacket {
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    pub(super) id: Option<u16>,
    pub(super) ttl: u8,
    /// Offset of the IP header in the frame.
    pub(super) start: usize,
    /// Offset of the TCP header in the frame.
    pub(super) offset: usize,
    /// Length of header and payload together, captured or not.
    pub(super) len: usize,
    /// What the IP header claims beyond the end of what holds the packet; `len` is without it.
    pub(super) beyond_frame: u32,
}

impl IpPacket {
    /// Cuts off what lies beyond `end`. A fragment is left as it is: lengths say how its packet is put together.
    #[inline]
    fn keep_within(&mut self, end: usize) {
        let room = end.saturating_sub(self.offset);
        if self.len > room {
            self.beyond_frame = u32::try_from(self.len - room).unwrap_or(u32::MAX);
            self.len = room;
        }
    }
}

/// DSCP and ECN (RFC 2474, RFC 3168) of a packet that begins with its IP header: IPv4's type of service, IPv6's traffic
/// class.
#[must_use]
pub fn traffic_class(packet: &[u8]) -> Option<u8> {
    match packet {
        [first, second, ..] if first >> 4 == 4 => Some(*second),
        [first, second, ..] if first >> 4 == 6 => Some(first << 4 | second >> 4),
        _ => None,
    }
}

/// Reads the IPv4 header at `offset`. `end` is where what holds it ends, captured or not.
///
/// # Errors
/// `Cut`, `Bad`.
#[inline]
pub(super) fn v4(frame: &[u8], offset: usize, end: usize) -> Result<Carried<'_>, PacketError> {
    const LAYER: &str = "IPv4";
    let bytes = frame.get(offset..).unwrap_or_default();
    let Some(&[first, _, t0, t1, i0, i1, f0, f1, ttl, protocol, _, _, s0, s1, s2, s3, d0, d1, d2, d3]) =
        bytes.first_chunk::<20>()
    else {
        return Err(PacketError::Cut { layer: LAYER, offset, need: 20, have: bytes.len() });
    };
    let bad = |field, found, allowed| PacketError::Bad { layer: LAYER, offset, field, found, allowed };
    if first >> 4 != 4 {
        return Err(bad("version", u32::from(first >> 4), "4"));
    }
    let header = usize::from(first & 0x0f) * 4;
    if header < 20 {
        return Err(bad("header length", u32::from(first & 0x0f) * 4, "at least 20"));
    }
    let announced = u16::from_be_bytes([t0, t1]);
    let total = if announced == 0 { end.saturating_sub(offset) } else { usize::from(announced) };
    if total < header {
        return Err(bad("total length", announced.into(), "at least the header's length"));
    }
    if protocol != TCP && protocol != AH && !tunnel::is_tunnel(protocol) {
        return Ok(Carried::Other);
    }
    let Some(options) = bytes.get(20..header) else {
        return Err(PacketError::Cut { layer: LAYER, offset, need: header, have: bytes.len() });
    };
    let destination = source_route(options).unwrap_or(Ipv4Addr::new(d0, d1, d2, d3));
    let mut packet = IpPacket {
        source: Ipv4Addr::new(s0, s1, s2, s3).into(),
        destination: destination.into(),
        id: Some(u16::from_be_bytes([i0, i1])),
        ttl,
        start: offset,
        offset: offset + header,
        len: total - header,
        beyond_frame: 0,
    };
    // More fragments, or an offset.
    let place = u16::from_be_bytes([f0, f1]);
    if place & 0x3fff != 0 {
        let id = u32::from(u16::from_be_bytes([i0, i1]));
        let more = place & 0x2000 != 0;
        return Ok(Carried::Fragment(Fragment::new(frame, packet, protocol, id, (place & 0x1fff) << 3, more)));
    }
    packet.keep_within(end);
    if protocol == TCP { Ok(Carried::Tcp(packet)) } else { payload(frame, packet, protocol) }
}

/// The last destination of a packet whose sender chose its route, as long as it is under way (RFC 791 section 3.1).
fn source_route(mut options: &[u8]) -> Option<Ipv4Addr> {
    const LOOSE: u8 = 131;
    const STRICT: u8 = 137;
    loop {
        options = match options {
            [1, rest @ ..] => rest,
            [] | [0, ..] | [_] => return None,
            [kind, len, ..] => {
                let (option, rest) = options.split_at_checked(usize::from(*len).max(2))?;
                if let (LOOSE | STRICT, [_, _, pointer, .., a, b, c, d]) = (*kind, option) {
                    return (pointer < len).then(|| Ipv4Addr::new(*a, *b, *c, *d));
                }
                rest
            }
        };
    }
}

/// Reads the IPv6 header at `offset` and the extension headers behind it.
///
/// # Errors
/// `Cut`, `Bad`.
pub(super) fn v6(frame: &[u8], offset: usize, end: usize) -> Result<Carried<'_>, PacketError> {
    const LAYER: &str = "IPv6";
    let bytes = frame.get(offset..).unwrap_or_default();
    let Some((&[first, _, _, _, p0, p1, next, ttl], addresses)) = bytes.split_first_chunk::<8>() else {
        return Err(PacketError::Cut { layer: LAYER, offset, need: 40, have: bytes.len() });
    };
    let (Some(source), Some(destination)) =
        (addresses.first_chunk::<16>(), addresses.get(16..).and_then(|rest| rest.first_chunk::<16>()))
    else {
        return Err(PacketError::Cut { layer: LAYER, offset, need: 40, have: bytes.len() });
    };
    if first >> 4 != 6 {
        let found = u32::from(first >> 4);
        return Err(PacketError::Bad { layer: LAYER, offset, field: "version", found, allowed: "6" });
    }
    let announced = usize::from(u16::from_be_bytes([p0, p1]));
    let rest = addresses.get(32..).unwrap_or_default();
    let len = match rest {
        // A jumbogram (RFC 2675 section 2): its length is the first of the hop-by-hop options.
        &[_, _, 0xc2, 4, l0, l1, l2, l3, ..] if announced == 0 && next == 0 => {
            usize::try_from(u32::from_be_bytes([l0, l1, l2, l3])).unwrap_or(usize::MAX)
        }
        _ if announced == 0 => end.saturating_sub(offset + 40),
        _ => announced,
    };
    let packet = IpPacket {
        source: Ipv6Addr::from(*source).into(),
        destination: Ipv6Addr::from(*destination).into(),
        id: None,
        ttl,
        start: offset,
        offset: offset + 40,
        len,
        beyond_frame: 0,
    };
    Ok(match payload(frame, packet, next)? {
        Carried::Tcp(mut packet) => {
            packet.keep_within(end);
            Carried::Tcp(packet)
        }
        Carried::Tunnel(protocol, mut packet) => {
            packet.keep_within(end);
            Carried::Tunnel(protocol, packet)
        }
        other => other,
    })
}

/// Steps over extension headers (RFC 8200 section 4; AH, RFC 4302, after IPv4 too) to TCP or a tunnel.
///
/// # Errors
/// `Cut`.
pub(super) fn payload(frame: &[u8], mut packet: IpPacket, mut next: u8) -> Result<Carried<'_>, PacketError> {
    const LAYER: &str = "IP extension";
    const ROUTING: u8 = 43;
    const FRAGMENT: u8 = 44;
    const DESTINATION_OPTIONS: u8 = 60;
    loop {
        match next {
            TCP => return Ok(Carried::Tcp(packet)),
            // Hop-by-hop, mobility, HIP, Shim6.
            0 | ROUTING | FRAGMENT | AH | DESTINATION_OPTIONS | 135 | 139 | 140 => {}
            other if tunnel::is_tunnel(other) => return Ok(Carried::Tunnel(other, packet)),
            _ => return Ok(Carried::Other),
        }
        let bytes = frame.get(packet.offset..).unwrap_or_default();
        let Some(&[following, len, f0, f1, i0, i1, i2, i3]) = bytes.first_chunk::<8>() else {
            return Err(PacketError::Cut { layer: LAYER, offset: packet.offset, need: 8, have: bytes.len() });
        };
        let header = match next {
            FRAGMENT => 8,
            AH => (usize::from(len) + 2) * 4,
            _ => (usize::from(len) + 1) * 8,
        };
        if header > packet.len {
            return Err(PacketError::Cut { layer: LAYER, offset: packet.offset, need: header, have: packet.len });
        }
        packet.offset += header;
        packet.len -= header;
        match next {
            // An offset, or more fragments; neither: an "atomic" fragment is whole (RFC 6946).
            FRAGMENT if u16::from_be_bytes([f0, f1]) & 0xfff9 != 0 => {
                let place = u16::from_be_bytes([f0, f1]);
                let id = u32::from_be_bytes([i0, i1, i2, i3]);
                return Ok(Carried::Fragment(Fragment::new(
                    frame,
                    packet,
                    following,
                    id,
                    place & 0xfff8,
                    place & 1 != 0,
                )));
            }
            ROUTING => packet.destination = last_stop(bytes, header).unwrap_or(packet.destination),
            DESTINATION_OPTIONS => packet.source = home(bytes, header).unwrap_or(packet.source),
            _ => {}
        }
        next = following;
    }
}

/// The last destination of a routing header that is not used up: source routes (RFC 5095), mobile hosts (RFC 6275)
/// list it last, segment routing (RFC 8754) first.
fn last_stop(bytes: &[u8], header: usize) -> Option<IpAddr> {
    let address = match bytes {
        [_, _, 0 | 2, 1..=255, ..] => bytes.get(..header)?.last_chunk::<16>()?,
        [_, _, 4, 1..=255, _, _, _, _, segments @ ..] => segments.first_chunk::<16>()?,
        _ => return None,
    };
    Some(Ipv6Addr::from(*address).into())
}

/// The home address option (RFC 6275 section 6.3): whom the packet is from, wherever its sender is.
fn home(bytes: &[u8], header: usize) -> Option<IpAddr> {
    const HOME_ADDRESS: u8 = 0xc9;
    let mut options = bytes.get(2..header)?;
    loop {
        options = match options {
            [0, rest @ ..] => rest,
            [kind, len, rest @ ..] => {
                let (value, rest) = rest.split_at_checked(usize::from(*len))?;
                if let (HOME_ADDRESS, Ok(address)) = (*kind, <[u8; 16]>::try_from(value)) {
                    return Some(Ipv6Addr::from(address).into());
                }
                rest
            }
            _ => return None,
        };
    }
}
