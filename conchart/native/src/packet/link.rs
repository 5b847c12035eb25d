//! Link types: what a frame of each starts with.
//!
//! In: link type and captured bytes. Out: what comes next, and where; who sent the frame. What several link types share is in `ether`,
//! wireless LAN in `wifi`. Headers that a capturing machine puts before a frame of another link type (PPI, PKTAP) are
//! opened here once.

use super::error::PacketError;
use super::ether::{self, Next, by_version, ether_type, ethernet, nlpid, u16_at};
use super::wifi;
use super::{Passing, Station};
use crate::capture::LinkType;

/// Finds what is behind the link header, or what of it `ether` steps over, and whom it names as the sender.
///
/// # Errors
/// `Cut` when the frame ends inside a link header; `UnsupportedLink`.
#[inline]
pub(super) fn first(link: LinkType, frame: &[u8]) -> Result<(Next, Station), PacketError> {
    match link {
        LinkType::ETHERNET => Ok((ethernet(frame, 0)?, Station::at(frame, ether::SOURCE))),
        // Lengths of the header, then the link type that follows: both little-endian.
        LinkType::PPI => {
            let length = u16_at("PPI", frame, 0, 2, 8)?.swap_bytes();
            let inner = u16_at("PPI", frame, 0, 4, 8)?.swap_bytes();
            header(LinkType(inner), frame, length.into())
        }
        // Before PKTAP had a number for files, Apple's tools wrote that of their own machines, which is anybody's.
        LinkType::USER2 if !is_pktap(frame) => Err(PacketError::UnsupportedLink(link)),
        LinkType::PKTAP | LinkType::USER2 => {
            let length = u16_at("PKTAP", frame, 0, 0, 12)?.swap_bytes();
            let kind = u16_at("PKTAP", frame, 0, 4, 12)?.swap_bytes();
            let inner = u16_at("PKTAP", frame, 0, 8, 12)?.swap_bytes();
            if kind == PKTAP_PACKET {
                header(LinkType(inner), frame, length.into())
            } else {
                Ok((Next::Other, Station::default()))
            }
        }
        other => header(other, frame, 0),
    }
}

/// The kind of a PKTAP record that has a packet.
const PKTAP_PACKET: u16 = 1;

/// Does a frame begin with a PKTAP header? Its length, its kind, the link type: little-endian numbers of 32 bits.
fn is_pktap(frame: &[u8]) -> bool {
    const SMALLEST: u16 = 108;
    let number = |field: usize| {
        let (low, high) = (u16_at("PKTAP", frame, field, 0, 4).ok()?, u16_at("PKTAP", frame, field, 2, 4).ok()?);
        (high == 0).then_some(low.swap_bytes())
    };
    let (length, kind, inner) = (number(0), number(4), number(8));
    length.is_some_and(|length| length >= SMALLEST) && kind.is_some_and(|kind| kind <= PKTAP_PACKET) && inner.is_some()
}

/// The link header at `offset`.
fn header(link: LinkType, frame: &[u8], offset: usize) -> Result<(Next, Station), PacketError> {
    match link {
        LinkType::ETHERNET => Ok((ethernet(frame, offset)?, Station::at(frame, offset + ether::SOURCE))),
        LinkType::LINUX_SLL => {
            let protocol = u16_at("SLL", frame, offset, 14, 16)?;
            let hardware = u16_at("SLL", frame, offset, 2, 16)?;
            let station = cooked_station(frame, hardware, u16_at("SLL", frame, offset, 0, 16)?, offset + 6);
            Ok((cooked(frame, hardware, protocol, offset + 16)?, station))
        }
        LinkType::LINUX_SLL2 => {
            let protocol = u16_at("SLL2", frame, offset, 0, 20)?;
            let hardware = u16_at("SLL2", frame, offset, 8, 20)?;
            let [kind, _] = u16_at("SLL2", frame, offset, 10, 20)?.to_be_bytes();
            let station = cooked_station(frame, hardware, kind.into(), offset + 12);
            Ok((cooked(frame, hardware, protocol, offset + 20)?, station))
        }
        LinkType::IEEE802_11 => Ok((wifi::data_frame(frame, offset, false)?, wifi::station(frame, offset))),
        LinkType::IEEE802_11_RADIO => wifi::radiotap(frame, offset),
        LinkType::PRISM | LinkType::IEEE802_11_AVS => wifi::prism(frame, offset),
        other => Ok((nameless(other, frame, offset)?, Station::default())),
    }
}

/// The link header at `offset`, of those that name no sender, or none by an address as Ethernet has it.
fn nameless(link: LinkType, frame: &[u8], offset: usize) -> Result<Next, PacketError> {
    match link {
        LinkType::NULL | LinkType::LOOP => loopback(frame, offset),
        LinkType::RAW | LinkType::RAW_LINUX | LinkType::RAW_OPENBSD | LinkType::IPV4 | LinkType::IPV6 => {
            Ok(by_version(frame, offset))
        }
        LinkType::PPP | LinkType::PPP_SERIAL => Ok(Next::Ppp(offset)),
        // PPPoE's version, code, session and length first.
        LinkType::PPP_ETHER => Ok(Next::Ppp(offset + 6)),
        LinkType::NFLOG => nflog(frame, offset),
        // BSD's packet filter: its header says its own length, without padding.
        LinkType::PFLOG => {
            let [length, _] = u16_at("PFLOG", frame, offset, 0, 4)?.to_be_bytes();
            Ok(by_version(frame, offset + usize::from(length).next_multiple_of(4)))
        }
        // OpenBSD's IPsec interface: address family, index, flags.
        LinkType::ENC => Ok(by_version(frame, offset + 12)),
        // No EtherType of their own: LLC follows the addresses.
        LinkType::FDDI => Ok(Next::Llc(offset + 13)),
        LinkType::IP_OVER_FC => Ok(Next::Llc(offset + 16)),
        LinkType::TOKEN_RING => token_ring(frame, offset),
        LinkType::ARCNET => arcnet(frame, offset + 2),
        // Linux leaves room for an offset.
        LinkType::ARCNET_LINUX => arcnet(frame, offset + 4),
        LinkType::C_HDLC => hdlc(frame, offset),
        LinkType::FRELAY => frame_relay(frame, offset),
        LinkType::ATM_RFC1483 | LinkType::ATM_RFC1483_BSD => atm(frame, offset),
        // Sun's ATM driver: the kind of traffic, the virtual path, the virtual channel.
        LinkType::SUNATM => match u16_at("SunATM", frame, offset, 0, 4)? >> 8 & 0x0f {
            // LAN emulation puts two bytes before Ethernet.
            1 => Ok(Next::Ethernet(offset + 6)),
            2 => atm(frame, offset + 4),
            _ => Ok(Next::Other),
        },
        LinkType::IPOIB => ether_type(frame, u16_at("IPoIB", frame, offset, 40, 44)?, offset + 44),
        LinkType::MPLS => Ok(Next::Mpls(offset)),
        LinkType::IPNET => Ok(by_version(frame, offset + 24)),
        LinkType::ERF => erf(frame, offset),
        // The preamble of IEEE 802.3br, seven bytes and the start of the frame.
        LinkType::MPACKET => Ok(Next::Ethernet(offset + 8)),
        LinkType::NETANALYZER | LinkType::DSA_BRCM_PREPEND => Ok(Next::Ethernet(offset + 4)),
        // Between a switch and its processor: a tag of four bytes behind the addresses, of eight with its EtherType.
        LinkType::DSA_BRCM | LinkType::DSA => ether_type(frame, u16_at("DSA", frame, offset, 16, 18)?, offset + 18),
        LinkType::EDSA => ether_type(frame, u16_at("EDSA", frame, offset, 20, 22)?, offset + 22),
        other => Err(PacketError::UnsupportedLink(other)),
    }
}

/// Linux cooked capture: the protocol is an EtherType for interfaces that carry them.
fn cooked(frame: &[u8], hardware: u16, protocol: u16, offset: usize) -> Result<Next, PacketError> {
    /// `ARPHRD_NETLINK`: the protocol field is a netlink family.
    const NETLINK: u16 = 824;
    if hardware == NETLINK { Ok(Next::Other) } else { ether_type(frame, protocol, offset) }
}

/// The sender as a cooked header has it: of an interface like Ethernet by its address, which starts at `address`.
fn cooked_station(frame: &[u8], hardware: u16, packet_type: u16, address: usize) -> Station {
    /// `ARPHRD_ETHER`, `ARPHRD_LOOPBACK`.
    const ETHER: u16 = 1;
    const LOOPBACK: u16 = 772;
    /// `PACKET_HOST`, `PACKET_OUTGOING`; others are to many, or to somebody else.
    const TO_US: u16 = 0;
    const OUTGOING: u16 = 4;
    let passing = match packet_type {
        _ if hardware == LOOPBACK => Some(Passing::Loopback),
        TO_US => Some(Passing::In),
        OUTGOING => Some(Passing::Out),
        _ => None,
    };
    let station = if hardware == ETHER { Station::at(frame, address) } else { Station::default() };
    Station { passing, ..station }
}

/// The address family is in the byte order of the capturing machine (LOOP: of the network), and
/// each system numbers IPv6 differently.
fn loopback(frame: &[u8], offset: usize) -> Result<Next, PacketError> {
    let bytes = frame.get(offset..).unwrap_or_default();
    let Some(&family) = bytes.first_chunk::<4>() else {
        return Err(PacketError::Cut { layer: "loopback", offset, need: 4, have: bytes.len() });
    };
    let family = u32::from_le_bytes(family);
    Ok(match if family > 0xffff { family.swap_bytes() } else { family } {
        2 => Next::Ipv4(offset + 4),
        // Linux; NetBSD and OpenBSD; FreeBSD; macOS.
        10 | 24 | 28 | 30 => Next::Ipv6(offset + 4),
        _ => Next::Other,
    })
}

/// What Linux' packet filter logs (`tcpdump -i nflog`): a list of length, type, value, each padded to
/// four bytes, in the byte order of the capturing machine. Lengths count their own four bytes.
fn nflog(frame: &[u8], start: usize) -> Result<Next, PacketError> {
    const PAYLOAD: u16 = 9;
    let mut offset = start + 4;
    loop {
        let rest = frame.get(offset..).unwrap_or_default();
        let Some(&[l0, l1, k0, k1]) = rest.first_chunk::<4>() else {
            // Nothing left: this record has no packet.
            let cut = PacketError::Cut { layer: "NFLOG", offset, need: 4, have: rest.len() };
            return if rest.is_empty() && offset > start + 4 { Ok(Next::Other) } else { Err(cut) };
        };
        // Types are small numbers: that tells the byte order.
        let (len, kind) = if k1 == 0 {
            (u16::from_le_bytes([l0, l1]), u16::from_le_bytes([k0, k1]))
        } else {
            (u16::from_be_bytes([l0, l1]), u16::from_be_bytes([k0, k1]))
        };
        if kind == PAYLOAD {
            return Ok(by_version(frame, offset + 4));
        }
        if len < 4 {
            let (field, found) = ("attribute length", u32::from(len));
            return Err(PacketError::Bad { layer: "NFLOG", offset, field, found, allowed: "at least 4" });
        }
        offset += usize::from(len).next_multiple_of(4);
    }
}

/// IEEE 802.5: access and frame control, the addresses; a source address may announce a route behind it.
fn token_ring(frame: &[u8], offset: usize) -> Result<Next, PacketError> {
    const ROUTED: u16 = 0x8000;
    let source = u16_at("Token Ring", frame, offset, 8, 14)?;
    let route = if source & ROUTED == 0 { 0 } else { u16_at("Token Ring", frame, offset, 14, 16)? >> 8 & 0x1f };
    Ok(Next::Llc(offset + 14 + usize::from(route)))
}

/// RFC 1201: the protocol, how the packet was split, its number; four bytes more before them where the frame would have a
/// length that ARCNET does not have. RFC 1051: the protocol alone. IP in one piece is opened.
fn arcnet(frame: &[u8], offset: usize) -> Result<Next, PacketError> {
    const IP: u8 = 212;
    const IPV6: u8 = 196;
    const IP_RFC1051: u8 = 240;
    const WHOLE: u8 = 0;
    const EXCEPTION: u8 = 0xff;
    let [protocol, mut split] = u16_at("ARCNET", frame, offset, 0, 4)?.to_be_bytes();
    let mut header = offset;
    if split == EXCEPTION && protocol != IP_RFC1051 {
        header += 4;
        [_, split] = u16_at("ARCNET", frame, header, 0, 4)?.to_be_bytes();
    }
    match (protocol, split) {
        (IP_RFC1051, _) => Ok(Next::Ipv4(offset + 1)),
        (IP, WHOLE) => Ok(Next::Ipv4(header + 4)),
        (IPV6, WHOLE) => Ok(Next::Ipv6(header + 4)),
        (IP | IPV6, _) => {
            Err(PacketError::Unread { layer: "ARCNET", what: "an IP packet in several frames (RFC 1201)" })
        }
        _ => Ok(Next::Other),
    }
}

/// Cisco's HDLC, or PPP's.
fn hdlc(frame: &[u8], offset: usize) -> Result<Next, PacketError> {
    match u16_at("HDLC", frame, offset, 0, 4)? {
        0xff03 => Ok(Next::Ppp(offset)),
        _ => ether_type(frame, u16_at("HDLC", frame, offset, 2, 4)?, offset + 4),
    }
}

/// RFC 2427, or an EtherType as Cisco does it; the last byte of the address has its lowest bit set.
fn frame_relay(frame: &[u8], offset: usize) -> Result<Next, PacketError> {
    const UNNUMBERED: u8 = 0x03;
    let address = frame.get(offset..).unwrap_or_default().iter().take(4).take_while(|byte| **byte & 1 == 0).count() + 1;
    let [control, _] = u16_at("Frame Relay", frame, offset + address, 0, 2)?.to_be_bytes();
    if control == UNNUMBERED {
        nlpid(frame, offset + address + 1)
    } else {
        ether_type(frame, u16_at("Frame Relay", frame, offset + address, 0, 2)?, offset + address + 2)
    }
}

/// RFC 2684: LLC; bridged Ethernet with its padding.
fn atm(frame: &[u8], offset: usize) -> Result<Next, PacketError> {
    match frame.get(offset..).unwrap_or_default() {
        [0xaa, 0xaa, 0x03, 0x00, 0x80, 0xc2, 0x00, 0x01 | 0x07, ..] => Ok(Next::Ethernet(offset + 10)),
        _ => Ok(Next::Llc(offset)),
    }
}

/// Endace's records: their type is behind the time; a high bit says that extension headers follow.
fn erf(frame: &[u8], offset: usize) -> Result<Next, PacketError> {
    const MORE: u8 = 0x80;
    let [record, _] = u16_at("ERF", frame, offset, 8, 16)?.to_be_bytes();
    let (mut kind, mut inner) = (record, offset + 16);
    while kind & MORE != 0 {
        [kind, _] = u16_at("ERF", frame, inner, 0, 8)?.to_be_bytes();
        inner += 8;
    }
    match record & 0x7f {
        // Two bytes align the IP header behind Ethernet.
        2 | 11 | 16 | 20 => Ok(Next::Ethernet(inner + 2)),
        1 | 10 | 15 | 17 => hdlc(frame, inner),
        22 => Ok(Next::Ipv4(inner)),
        23 => Ok(Next::Ipv6(inner)),
        _ => Ok(Next::Other),
    }
}
