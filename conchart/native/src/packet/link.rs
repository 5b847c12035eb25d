//! Link layers: from a frame's first byte to its IP header.
//!
//! In: link type and captured bytes. Out: which protocol starts where. Ethernet with any stack of
//! VLAN tags (IEEE 802.1Q, 802.1ad), Linux cooked v1 and v2, BSD loopback, raw IP, PPP, HDLC, FDDI, IPoIB, NFLOG; inside
//! them PPPoE sessions (RFC 2516), MPLS labels (RFC 3032) and SNAP (RFC 1042).

use super::error::PacketError;
use crate::capture::LinkType;

/// VLAN tags and MPLS labels looked through. Real stacks have two or three.
const MAX_TAGS: usize = 8;

/// What the link layer carries; the value is the offset of its first byte.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Carried {
    Ipv4(usize),
    Ipv6(usize),
    Other,
}

/// Finds the IP header.
///
/// # Errors
/// `Cut` when the frame ends inside a link header; `UnsupportedLink`.
#[inline]
pub(super) fn carried(link: LinkType, frame: &[u8]) -> Result<Carried, PacketError> {
    match link {
        LinkType::ETHERNET => ether_type(frame, u16_at("Ethernet", frame, 0, 12, 14)?, 14),
        LinkType::LINUX_SLL => {
            let protocol = u16_at("SLL", frame, 0, 14, 16)?;
            cooked(frame, u16_at("SLL", frame, 0, 2, 16)?, protocol, 16)
        }
        LinkType::LINUX_SLL2 => {
            let protocol = u16_at("SLL2", frame, 0, 0, 20)?;
            cooked(frame, u16_at("SLL2", frame, 0, 8, 20)?, protocol, 20)
        }
        LinkType::NULL | LinkType::LOOP => loopback(frame),
        LinkType::RAW | LinkType::RAW_LINUX | LinkType::RAW_OPENBSD | LinkType::IPV4 | LinkType::IPV6 => {
            Ok(by_version(frame, 0))
        }
        LinkType::PPP | LinkType::PPP_SERIAL => {
            // Address and control (RFC 1662 section 3.1) may be left out.
            ppp(frame, if frame.starts_with(&[0xff, 0x03]) { 2 } else { 0 })
        }
        LinkType::NFLOG => nflog(frame),
        // No EtherType of its own: LLC follows the addresses.
        LinkType::FDDI => ether_type(frame, 0, 13),
        LinkType::C_HDLC => ether_type(frame, u16_at("Cisco HDLC", frame, 0, 2, 4)?, 4),
        LinkType::IPOIB => ether_type(frame, u16_at("IPoIB", frame, 0, 40, 44)?, 44),
        other => Err(PacketError::UnsupportedLink(other)),
    }
}

/// Follows an EtherType; `at` is the first byte behind it.
#[inline]
fn ether_type(frame: &[u8], mut kind: u16, mut at: usize) -> Result<Carried, PacketError> {
    for _ in 0..=MAX_TAGS {
        match kind {
            0x0800 => return Ok(Carried::Ipv4(at)),
            0x86dd => return Ok(Carried::Ipv6(at)),
            // 802.1Q, 802.1ad, and the two that came before it.
            0x8100 | 0x88a8 | 0x9100 | 0x9200 => {
                kind = u16_at("VLAN", frame, at, 2, 4)?;
                at += 4;
            }
            // 802.1ah: a service tag, the customer's addresses, the customer's EtherType.
            0x88e7 => {
                kind = u16_at("802.1ah", frame, at, 16, 18)?;
                at += 18;
            }
            0x8847 | 0x8848 => return mpls(frame, at),
            // PPPoE session: version, code, session, length; then PPP.
            0x8864 => return ppp(frame, at + 6),
            // 802.3 has a length here, and what follows is LLC; SNAP has an EtherType again.
            0..=1500 => match frame.get(at..at + 8) {
                Some(&[0xaa, 0xaa, 0x03, 0, 0, 0, hi, lo]) => {
                    kind = u16::from_be_bytes([hi, lo]);
                    at += 8;
                }
                _ => return Ok(Carried::Other),
            },
            _ => return Ok(Carried::Other),
        }
    }
    Ok(Carried::Other)
}

/// Linux cooked capture: the protocol is an EtherType for interfaces that carry them.
fn cooked(frame: &[u8], hardware: u16, protocol: u16, at: usize) -> Result<Carried, PacketError> {
    /// `ARPHRD_NETLINK`: the protocol field is a netlink family.
    const NETLINK: u16 = 824;
    if hardware == NETLINK { Ok(Carried::Other) } else { ether_type(frame, protocol, at) }
}

/// The address family is in the byte order of the capturing machine (LOOP: of the network), and
/// each system numbers IPv6 differently.
fn loopback(frame: &[u8]) -> Result<Carried, PacketError> {
    let Some(&family) = frame.first_chunk::<4>() else {
        return Err(PacketError::Cut { layer: "loopback", offset: 0, need: 4, have: frame.len() });
    };
    let family = u32::from_le_bytes(family);
    Ok(match if family > 0xffff { family.swap_bytes() } else { family } {
        2 => Carried::Ipv4(4),
        // Linux; NetBSD and OpenBSD; FreeBSD; macOS.
        10 | 24 | 28 | 30 => Carried::Ipv6(4),
        _ => Carried::Other,
    })
}

/// What Linux' packet filter logs (`tcpdump -i nflog`): a list of length, type, value, each padded to
/// four bytes, in the byte order of the capturing machine. Lengths count their own four bytes.
fn nflog(frame: &[u8]) -> Result<Carried, PacketError> {
    const PAYLOAD: u16 = 9;
    let mut at = 4;
    loop {
        let rest = frame.get(at..).unwrap_or_default();
        let Some(&[l0, l1, k0, k1]) = rest.first_chunk::<4>() else {
            // Nothing left: this record has no packet.
            let cut = PacketError::Cut { layer: "NFLOG", offset: at, need: 4, have: rest.len() };
            return if rest.is_empty() && at > 4 { Ok(Carried::Other) } else { Err(cut) };
        };
        // Types are small numbers: that tells the byte order.
        let (len, kind) = if k1 == 0 {
            (u16::from_le_bytes([l0, l1]), u16::from_le_bytes([k0, k1]))
        } else {
            (u16::from_be_bytes([l0, l1]), u16::from_be_bytes([k0, k1]))
        };
        if kind == PAYLOAD {
            return Ok(by_version(frame, at + 4));
        }
        if len < 4 {
            let (field, found) = ("attribute length", u32::from(len));
            return Err(PacketError::Bad { layer: "NFLOG", offset: at, field, found, allowed: "at least 4" });
        }
        at += usize::from(len).next_multiple_of(4);
    }
}

/// PPP protocol field (RFC 1661 section 2), which may be compressed to one byte (section 6.5).
fn ppp(frame: &[u8], at: usize) -> Result<Carried, PacketError> {
    Ok(match frame.get(at..).unwrap_or_default() {
        [0x00, 0x21, ..] => Carried::Ipv4(at + 2),
        [0x00, 0x57, ..] => Carried::Ipv6(at + 2),
        [0x21, ..] => Carried::Ipv4(at + 1),
        [0x57, ..] => Carried::Ipv6(at + 1),
        rest @ ([] | [0x00]) => {
            return Err(PacketError::Cut { layer: "PPP", offset: at, need: 2, have: rest.len() });
        }
        _ => Carried::Other,
    })
}

/// Steps over labels to the bottom of the stack; what follows says itself what it is.
fn mpls(frame: &[u8], mut at: usize) -> Result<Carried, PacketError> {
    for _ in 0..MAX_TAGS {
        let low = u16_at("MPLS", frame, at, 2, 4)?;
        at += 4;
        if low & 0x0100 != 0 {
            return Ok(by_version(frame, at));
        }
    }
    Ok(Carried::Other)
}

/// The IP version is in the first nibble.
fn by_version(frame: &[u8], at: usize) -> Carried {
    match frame.get(at).map(|byte| byte >> 4) {
        Some(4) => Carried::Ipv4(at),
        Some(6) => Carried::Ipv6(at),
        _ => Carried::Other,
    }
}

/// The 16 bits at `field` of a `need` bytes long header at `offset`, which must be there as a whole.
#[inline]
fn u16_at(layer: &'static str, frame: &[u8], offset: usize, field: usize, need: usize) -> Result<u16, PacketError> {
    let header = frame.get(offset..).unwrap_or_default();
    match header.get(field..field + 2) {
        Some(&[hi, lo]) if header.len() >= need => Ok(u16::from_be_bytes([hi, lo])),
        _ => Err(PacketError::Cut { layer, offset, need, have: header.len() }),
    }
}
