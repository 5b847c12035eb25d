//! Tunnels: from what an IP packet carries to the packet inside.
//!
//! In: captured bytes, IP's protocol number and where its payload starts. Out: the tunnel, what is inside, and where. UDP tunnels
//! are known by their port (either one, as Wireshark takes them) and by a header that fits; what does not fit is no
//! tunnel.

use super::error::PacketError;
use super::ether::{Next, by_version, ether_type, leads_to_ip, next_protocol, u16_at};
use super::wifi;

pub(super) const UDP: u8 = 17;
const GRE: u8 = 47;
/// L2TP version 3 without UDP.
const L2TP: u8 = 115;

/// Does this IP protocol carry other packets? UDP may.
#[inline]
pub(super) fn is_tunnel(protocol: u8) -> bool {
    matches!(protocol, 4 | UDP | 41 | GRE | 97 | L2TP | 137 | 143)
}

/// What wraps packets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Tunnel {
    IpInIp,
    Gre,
    Erspan,
    EtherIp,
    Mpls,
    /// Ethernet in IPv6.
    Srv6,
    Vxlan,
    VxlanGpe,
    Geneve,
    Gtp,
    L2tp,
    L2tpV3,
    Teredo,
    /// What a sniffer, such as an access point or a router, sends of what it sees.
    Tzsp,
}

impl Tunnel {
    /// As tables have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::IpInIp => "ip",
            Self::Gre => "gre",
            Self::Erspan => "erspan",
            Self::EtherIp => "etherip",
            Self::Mpls => "mpls",
            Self::Srv6 => "srv6",
            Self::Vxlan => "vxlan",
            Self::VxlanGpe => "vxlan-gpe",
            Self::Geneve => "geneve",
            Self::Gtp => "gtp-u",
            Self::L2tp => "l2tp",
            Self::L2tpV3 => "l2tpv3",
            Self::Teredo => "teredo",
            Self::Tzsp => "tzsp",
        }
    }
}

/// Opens what starts at `offset`.
///
/// # Errors
/// `Cut` when the frame ends inside the tunnel's header.
pub(super) fn inside(frame: &[u8], protocol: u8, offset: usize) -> Result<(Tunnel, Next), PacketError> {
    Ok(match protocol {
        4 => (Tunnel::IpInIp, Next::Ipv4(offset)),
        UDP => udp(frame, offset)?,
        41 => (Tunnel::IpInIp, Next::Ipv6(offset)),
        GRE => gre(frame, offset)?,
        // EtherIP (RFC 3378): two bytes, then Ethernet; MPLS (RFC 4023); Ethernet (RFC 8986).
        97 => (Tunnel::EtherIp, Next::Ethernet(offset + 2)),
        L2TP => (Tunnel::L2tpV3, l2tp_session(frame, offset)),
        137 => (Tunnel::Mpls, Next::Mpls(offset)),
        143 => (Tunnel::Srv6, Next::Ethernet(offset)),
        _ => (Tunnel::IpInIp, Next::Other),
    })
}

/// RFC 2784 with RFC 2890's key and sequence number; version 1 is PPTP's (RFC 2637).
fn gre(frame: &[u8], offset: usize) -> Result<(Tunnel, Next), PacketError> {
    const CHECKSUM: u16 = 0x8000;
    const ROUTING: u16 = 0x4000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    const ACKNOWLEDGMENT: u16 = 0x0080;
    let (flags, kind) = (u16_at("GRE", frame, offset, 0, 4)?, u16_at("GRE", frame, offset, 2, 4)?);
    let version = flags & 7;
    let acknowledges = version == 1 && flags & ACKNOWLEDGMENT != 0;
    let options = [flags & CHECKSUM != 0, flags & KEY != 0, flags & SEQUENCE != 0, acknowledges];
    let offset = offset + 4 + 4 * options.into_iter().filter(|there| *there).count();
    // Source routes are deprecated, and nobody sends them.
    if version > 1 || flags & ROUTING != 0 {
        return Ok((Tunnel::Gre, Next::Other));
    }
    let tunnel = if matches!(kind, 0x88be | 0x22eb) { Tunnel::Erspan } else { Tunnel::Gre };
    let next = match kind {
        0x880b => Next::Ppp(offset),
        // Aruba: from an access point to its controller; the type says which of the point's networks.
        0x8200..=0x8370 if kind & 0x0f == 0 => wifi::data_frame(frame, offset, false)?,
        // WCCP: redirected requests to a cache; version 2 has a header of its own.
        0x883e if by_version(frame, offset) == Next::Ipv4(offset) => Next::Ipv4(offset),
        0x883e => by_version(frame, offset + 4),
        // ERSPAN: type I has no header and no sequence number.
        0x88be => Next::Ethernet(if flags & SEQUENCE == 0 { offset } else { offset + 8 }),
        0x22eb => erspan_3(frame, offset)?,
        kind => ether_type(frame, kind, offset)?,
    };
    Ok((tunnel, next))
}

/// Type III of draft-foschiano-erspan: the last word says what the frame is, and whether eight more bytes follow.
fn erspan_3(frame: &[u8], offset: usize) -> Result<Next, PacketError> {
    let last = u16_at("ERSPAN", frame, offset, 10, 12)?;
    let offset = offset + if last & 1 == 0 { 12 } else { 20 };
    Ok(match last >> 10 & 0x1f {
        0 => Next::Ethernet(offset),
        2 => by_version(frame, offset),
        _ => Next::Other,
    })
}

fn udp(frame: &[u8], offset: usize) -> Result<(Tunnel, Next), PacketError> {
    let Some(&[s0, s1, d0, d1, ..]) = frame.get(offset..).and_then(|rest| rest.first_chunk::<8>()) else {
        return Ok((Tunnel::Vxlan, Next::Other));
    };
    match port(frame, u16::from_be_bytes([d0, d1]), offset + 8)? {
        (_, Next::Other) => port(frame, u16::from_be_bytes([s0, s1]), offset + 8),
        found => Ok(found),
    }
}

/// The tunnel of one port.
fn port(frame: &[u8], port: u16, offset: usize) -> Result<(Tunnel, Next), PacketError> {
    /// The flag of VXLAN that says: there is a network identifier.
    const IDENTIFIED: u8 = 0x08;
    let bytes = frame.get(offset..).unwrap_or_default();
    Ok(match (port, bytes) {
        // VXLAN (RFC 7348); Linux' own port before there was one, which flannel still uses.
        (4789 | 8472, [flags, _, _, _, _, _, _, _, ..]) if flags & IDENTIFIED != 0 => {
            (Tunnel::Vxlan, Next::Ethernet(offset + 8))
        }
        (4790, [flags, _, _, kind, _, _, _, _, ..]) if flags & IDENTIFIED != 0 => {
            // Without the P flag the header is VXLAN's.
            let plain = flags & 0x04 == 0;
            let next = if plain { Next::Ethernet(offset + 8) } else { next_protocol(u16::from(*kind), offset + 8) };
            (Tunnel::VxlanGpe, next)
        }
        // Geneve (RFC 8926): version 0; the length of the options is in words.
        (6081, &[head, _, k0, k1, _, _, _, 0, ..]) if head < 0x40 => {
            (Tunnel::Geneve, ether_type(frame, u16::from_be_bytes([k0, k1]), offset + 8 + usize::from(head) * 4)?)
        }
        (2152, _) => (Tunnel::Gtp, gtp(frame, offset)),
        (1701, [flags, 3, ..]) if flags & 0x80 == 0 => (Tunnel::L2tpV3, l2tp_session(frame, offset + 4)),
        (1701, _) => (Tunnel::L2tp, l2tp(frame, offset)),
        (3544, _) => (Tunnel::Teredo, teredo(frame, offset)),
        // GRE (RFC 8086) and MPLS (RFC 7510) in UDP.
        (4754, _) => gre(frame, offset)?,
        (6635, _) => (Tunnel::Mpls, Next::Mpls(offset)),
        (37008, _) => (Tunnel::Tzsp, tzsp(frame, offset)?),
        _ => (Tunnel::Vxlan, Next::Other),
    })
}

/// GTP-U version 1 (3GPP TS 29.281): a user's packet, behind a chain of extension headers.
fn gtp(frame: &[u8], offset: usize) -> Next {
    const USER_PACKET: u8 = 0xff;
    const EXTENSION: u8 = 0x04;
    let Some(&[flags, USER_PACKET, ..]) = frame.get(offset..).and_then(|rest| rest.first_chunk::<8>()) else {
        return Next::Other;
    };
    if flags & 0xf0 != 0x30 {
        return Next::Other;
    }
    if flags & 0x07 == 0 {
        return by_version(frame, offset + 8);
    }
    // Sequence number, N-PDU number, and the type of the first extension, there if any of them is.
    let mut inner = offset + 12;
    let mut kind = if flags & EXTENSION == 0 { 0 } else { frame.get(offset + 11).copied().unwrap_or(0) };
    while kind != 0 {
        let Some(&words @ 1..) = frame.get(inner) else { return Next::Other };
        inner += usize::from(words) * 4;
        kind = frame.get(inner - 1).copied().unwrap_or(0);
    }
    by_version(frame, inner)
}

/// L2TP version 2 (RFC 2661 section 3.1): a data message, which carries PPP.
fn l2tp(frame: &[u8], offset: usize) -> Next {
    const CONTROL: u8 = 0x80;
    const LENGTH: u8 = 0x40;
    const SEQUENCE: u8 = 0x08;
    const OFFSET: u8 = 0x02;
    let Some(&[flags, version, ..]) = frame.get(offset..).and_then(|rest| rest.first_chunk::<6>()) else {
        return Next::Other;
    };
    if version & 0x0f != 2 || flags & CONTROL != 0 {
        return Next::Other;
    }
    let length = if flags & LENGTH != 0 { 2 } else { 0 };
    let sequence = if flags & SEQUENCE != 0 { 4 } else { 0 };
    let inner = offset + 6 + length + sequence;
    match frame.get(inner..).and_then(|rest| rest.first_chunk::<2>()) {
        Some(offset) if flags & OFFSET != 0 => Next::Ppp(inner + 2 + usize::from(u16::from_be_bytes(*offset))),
        Some(_) => Next::Ppp(inner),
        None => Next::Other,
    }
}

/// L2TP version 3 (RFC 3931 section 4.1): the session, then a cookie of 0, 4 or 8 bytes and a sublayer of 0 or 4 bytes, on
/// which both ends agreed beforehand: where IP follows, that is the reading.
fn l2tp_session(frame: &[u8], offset: usize) -> Next {
    match frame.get(offset..).and_then(|rest| rest.first_chunk::<4>()) {
        // Session 0 is control.
        None | Some([0, 0, 0, 0]) => Next::Other,
        Some(_) => [0, 4, 8, 12]
            .into_iter()
            .flat_map(|agreed| [Next::Ethernet(offset + 4 + agreed), Next::Ppp(offset + 4 + agreed)])
            .find(|next| leads_to_ip(frame, *next))
            .unwrap_or(Next::Other),
    }
}

/// TaZmen Sniffer Protocol: version, kind, what was sniffed; then tags, each with its length, up to the one that ends
/// them. A tag of padding has no length.
fn tzsp(frame: &[u8], offset: usize) -> Result<Next, PacketError> {
    const RECEIVED: u8 = 0;
    const SENT: u8 = 1;
    const PADDING: u8 = 0;
    const END: u8 = 1;
    let sniffed = match frame.get(offset..) {
        Some(&[1, RECEIVED | SENT, p0, p1, ..]) => u16::from_be_bytes([p0, p1]),
        _ => return Ok(Next::Other),
    };
    let mut inner = offset + 4;
    loop {
        inner += match frame.get(inner..) {
            Some([END, ..]) => break,
            Some([PADDING, ..]) => 1,
            Some([_, len, ..]) => 2 + usize::from(*len),
            _ => return Ok(Next::Other),
        };
    }
    let inner = inner + 1;
    match sniffed {
        1 => Ok(Next::Ethernet(inner)),
        4 => Ok(Next::Ppp(inner)),
        7 => Ok(by_version(frame, inner)),
        18 => wifi::data_frame(frame, inner, false),
        119 | 127 => Ok(wifi::prism(frame, inner)?.0),
        _ => Ok(Next::Other),
    }
}

/// Teredo (RFC 4380 section 5.1.1): IPv6, behind an authentication and an origin indication.
fn teredo(frame: &[u8], offset: usize) -> Next {
    let authentication = match frame.get(offset..) {
        Some(&[0, 1, identifier, value, ..]) => 13 + usize::from(identifier) + usize::from(value),
        _ => 0,
    };
    let origin = if frame.get(offset + authentication..).is_some_and(|rest| rest.starts_with(&[0, 0])) { 8 } else { 0 };
    match by_version(frame, offset + authentication + origin) {
        Next::Ipv6(offset) => Next::Ipv6(offset),
        _ => Next::Other,
    }
}
