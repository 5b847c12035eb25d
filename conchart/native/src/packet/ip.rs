//! IPv4 (RFC 791) and IPv6 (RFC 8200) with its extension headers: to the TCP header.
//!
//! In: captured bytes, where the IP header starts, length of the frame on the wire. Out: where TCP
//! starts and how long it is by the IP header, so that padding, frame check sequences and trailers
//! never become payload. A length of 0 (the capture saw the packet before the network card filled
//! it in, or a jumbogram) means: to the end of the frame.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::error::PacketError;

const TCP: u8 = 6;

/// What an IP packet carries.
#[derive(Clone, Copy, Debug)]
pub(super) enum Carried {
    Tcp(IpPacket),
    /// Part of a fragmented TCP segment.
    Fragment,
    Other,
}

/// The part of the IP header that TCP needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct IpPacket {
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    pub(super) id: Option<u16>,
    pub(super) ttl: u8,
    /// Offset of the TCP header in the frame.
    pub(super) at: usize,
    /// Length of header and payload together, captured or not.
    pub(super) len: usize,
}

/// Reads the IPv4 header at `at`. `wire` is the frame's original length.
///
/// # Errors
/// `Cut`, `Bad`.
#[inline]
pub(super) fn v4(frame: &[u8], at: usize, wire: usize) -> Result<Carried, PacketError> {
    const LAYER: &str = "IPv4";
    let bytes = frame.get(at..).unwrap_or_default();
    let Some(&[first, _, t0, t1, i0, i1, f0, f1, ttl, protocol, _, _, s0, s1, s2, s3, d0, d1, d2, d3]) =
        bytes.first_chunk::<20>()
    else {
        return Err(PacketError::Cut { layer: LAYER, offset: at, need: 20, have: bytes.len() });
    };
    let bad = |field, found, allowed| PacketError::Bad { layer: LAYER, offset: at, field, found, allowed };
    if first >> 4 != 4 {
        return Err(bad("version", u32::from(first >> 4), "4"));
    }
    let header = usize::from(first & 0x0f) * 4;
    if header < 20 {
        return Err(bad("header length", u32::from(first & 0x0f) * 4, "at least 20"));
    }
    let announced = u16::from_be_bytes([t0, t1]);
    let total = if announced == 0 { wire.saturating_sub(at) } else { usize::from(announced) };
    if total < header {
        return Err(bad("total length", announced.into(), "at least the header's length"));
    }
    if protocol != TCP && protocol != 51 {
        return Ok(Carried::Other);
    }
    if header > bytes.len() {
        return Err(PacketError::Cut { layer: LAYER, offset: at, need: header, have: bytes.len() });
    }
    // More fragments, or an offset.
    if u16::from_be_bytes([f0, f1]) & 0x3fff != 0 {
        return Ok(Carried::Fragment);
    }
    let found = IpPacket {
        source: Ipv4Addr::new(s0, s1, s2, s3).into(),
        destination: Ipv4Addr::new(d0, d1, d2, d3).into(),
        id: Some(u16::from_be_bytes([i0, i1])),
        ttl,
        at: at + header,
        len: total - header,
    };
    if protocol == TCP { Ok(Carried::Tcp(found)) } else { extensions(frame, found, protocol) }
}

/// Reads the IPv6 header at `at` and the extension headers behind it.
///
/// # Errors
/// `Cut`, `Bad`.
pub(super) fn v6(frame: &[u8], at: usize, wire: usize) -> Result<Carried, PacketError> {
    const LAYER: &str = "IPv6";
    let bytes = frame.get(at..).unwrap_or_default();
    let Some((&[first, _, _, _, p0, p1, next, ttl], addresses)) = bytes.split_first_chunk::<8>() else {
        return Err(PacketError::Cut { layer: LAYER, offset: at, need: 40, have: bytes.len() });
    };
    let (Some(source), Some(destination)) =
        (addresses.first_chunk::<16>(), addresses.get(16..).and_then(|rest| rest.first_chunk::<16>()))
    else {
        return Err(PacketError::Cut { layer: LAYER, offset: at, need: 40, have: bytes.len() });
    };
    if first >> 4 != 6 {
        let found = u32::from(first >> 4);
        return Err(PacketError::Bad { layer: LAYER, offset: at, field: "version", found, allowed: "6" });
    }
    let announced = usize::from(u16::from_be_bytes([p0, p1]));
    let found = IpPacket {
        source: Ipv6Addr::from(*source).into(),
        destination: Ipv6Addr::from(*destination).into(),
        id: None,
        ttl,
        at: at + 40,
        len: if announced == 0 { wire.saturating_sub(at + 40) } else { announced },
    };
    extensions(frame, found, next)
}

/// Steps over extension headers (RFC 8200 section 4; AH, RFC 4302, after IPv4 too) to TCP.
fn extensions(frame: &[u8], mut packet: IpPacket, mut next: u8) -> Result<Carried, PacketError> {
    const LAYER: &str = "IP extension";
    loop {
        match next {
            TCP => return Ok(Carried::Tcp(packet)),
            // Hop-by-hop, routing, fragment, AH, destination, mobility, HIP, Shim6.
            0 | 43 | 44 | 51 | 60 | 135 | 139 | 140 => {}
            _ => return Ok(Carried::Other),
        }
        let bytes = frame.get(packet.at..).unwrap_or_default();
        let Some(&[following, len, f0, f1, ..]) = bytes.first_chunk::<8>() else {
            return Err(PacketError::Cut { layer: LAYER, offset: packet.at, need: 8, have: bytes.len() });
        };
        let header = match next {
            44 => 8,
            51 => (usize::from(len) + 2) * 4,
            _ => (usize::from(len) + 1) * 8,
        };
        if header > packet.len {
            return Err(PacketError::Cut { layer: LAYER, offset: packet.at, need: header, have: packet.len });
        }
        // An offset, or more fragments; neither: an "atomic" fragment is whole (RFC 6946).
        if next == 44 && u16::from_be_bytes([f0, f1]) & 0xfff9 != 0 {
            let may_be_tcp = matches!(following, TCP | 0 | 43 | 51 | 60 | 135 | 139 | 140);
            return Ok(if may_be_tcp { Carried::Fragment } else { Carried::Other });
        }
        packet.at += header;
        packet.len -= header;
        next = following;
    }
}
