//! What link layers and tunnels share: from Ethernet, LLC, PPP or MPLS to the IP header.
//!
//! In: captured bytes and what starts where. Out: what comes next, and where. Each step is over a header, so that
//! the caller bounds how deep a hostile frame may nest.

use super::error::PacketError;

/// VLAN tags and MPLS labels looked through. Real stacks have two or three.
const MAX_TAGS: usize = 8;
/// Where an Ethernet header has its sender's address.
pub(super) const SOURCE: usize = 6;

/// What comes next in a frame; the value is the offset of its first byte.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Next {
    Ipv4(usize),
    Ipv6(usize),
    /// A destination address comes first.
    Ethernet(usize),
    /// Logical link control (IEEE 802.2).
    Llc(usize),
    Mpls(usize),
    /// A network service header (RFC 8300).
    Nsh(usize),
    /// Frames that a wireless station put together (A-MSDU).
    Aggregate(usize),
    /// Address and control (RFC 1662 section 3.1), or the protocol field if they are left out.
    Ppp(usize),
    Other,
}

/// Steps over one header that is not IP.
///
/// # Errors
/// `Cut` when the frame ends inside the header.
pub(super) fn step(frame: &[u8], next: Next) -> Result<Next, PacketError> {
    match next {
        Next::Ethernet(offset) => ethernet(frame, offset),
        Next::Llc(offset) => llc(frame, offset),
        Next::Mpls(offset) => mpls(frame, offset),
        Next::Nsh(offset) => nsh(frame, offset),
        Next::Ppp(offset) => ppp(frame, offset),
        Next::Ipv4(_) | Next::Ipv6(_) | Next::Aggregate(_) | Next::Other => Ok(next),
    }
}

#[inline]
pub(super) fn ethernet(frame: &[u8], offset: usize) -> Result<Next, PacketError> {
    ether_type(frame, u16_at("Ethernet", frame, offset, 12, 14)?, offset + 14)
}

/// Follows an EtherType; `offset` is the first byte behind it.
#[inline]
pub(super) fn ether_type(frame: &[u8], mut kind: u16, mut offset: usize) -> Result<Next, PacketError> {
    for _ in 0..=MAX_TAGS {
        match kind {
            0x0800 => return Ok(Next::Ipv4(offset)),
            0x86dd => return Ok(Next::Ipv6(offset)),
            // 802.1Q, 802.1ad, and the two that came before it.
            0x8100 | 0x88a8 | 0x9100 | 0x9200 => {
                kind = u16_at("VLAN", frame, offset, 2, 4)?;
                offset += 4;
            }
            // VN-Tag (802.1BR's forerunner): source and destination interface.
            0x8926 => {
                kind = u16_at("VN-Tag", frame, offset, 4, 6)?;
                offset += 6;
            }
            // 802.1ah: a service tag, the customer's addresses, the customer's EtherType.
            0x88e7 => {
                kind = u16_at("802.1ah", frame, offset, 16, 18)?;
                offset += 18;
            }
            // Cisco MetaData (draft-smith-kandula-sxp): version, number of options of four bytes each, such as a
            // security group; the EtherType.
            0x8909 => {
                let options = usize::from(u16_at("Cisco MetaData", frame, offset, 0, 2)? & 0xff);
                kind = u16_at("Cisco MetaData", frame, offset, 2 + 4 * options, 4 + 4 * options)?;
                offset += 4 + 4 * options;
            }
            // HSR, and PRP in its mode (IEC 62439-3): path and size, a sequence number, the EtherType.
            0x892f => {
                kind = u16_at("HSR", frame, offset, 4, 6)?;
                offset += 6;
            }
            // Marvell's switch tag with an EtherType of its own: two reserved bytes, the tag, the EtherType.
            0xdada => {
                kind = u16_at("EDSA", frame, offset, 6, 8)?;
                offset += 8;
            }
            0x8847 | 0x8848 => return Ok(Next::Mpls(offset)),
            // PPPoE session: version, code, session, length; then PPP.
            0x8864 => return Ok(Next::Ppp(offset + 6)),
            0x894f => return Ok(Next::Nsh(offset)),
            // Transparent Ethernet bridging.
            0x6558 => return Ok(Next::Ethernet(offset)),
            // 802.3 has a length here, and what follows is LLC.
            0..=1500 => return Ok(Next::Llc(offset)),
            _ => return Ok(Next::Other),
        }
    }
    Ok(Next::Other)
}

/// SNAP (RFC 1042) has an EtherType again; IP may also have its own service access point.
pub(super) fn llc(frame: &[u8], offset: usize) -> Result<Next, PacketError> {
    match frame.get(offset..).unwrap_or_default() {
        &[0xaa, 0xaa, 0x03, 0, 0, 0 | 0xf8, hi, lo, ..] => ether_type(frame, u16::from_be_bytes([hi, lo]), offset + 8),
        [0x06, 0x06, 0x03, ..] => Ok(by_version(frame, offset + 3)),
        [0xfe, 0xfe, 0x03, ..] => nlpid(frame, offset + 3),
        _ => Ok(Next::Other),
    }
}

/// A network layer protocol identifier (RFC 2427): IPv4, IPv6, or SNAP without its LLC header.
pub(super) fn nlpid(frame: &[u8], offset: usize) -> Result<Next, PacketError> {
    // A pad byte may make what follows even.
    let offset = if frame.get(offset) == Some(&0) { offset + 1 } else { offset };
    match frame.get(offset..).unwrap_or_default() {
        [0xcc, ..] => Ok(Next::Ipv4(offset + 1)),
        [0x8e, ..] => Ok(Next::Ipv6(offset + 1)),
        &[0x80, 0, 0, 0, hi, lo, ..] => ether_type(frame, u16::from_be_bytes([hi, lo]), offset + 6),
        // Bridged Ethernet, with and without its check sequence.
        [0x80, 0x00, 0x80, 0xc2, 0x00, 0x01 | 0x07, ..] => Ok(Next::Ethernet(offset + 6)),
        _ => Ok(Next::Other),
    }
}

/// PPP protocol field (RFC 1661 section 2), which may be compressed to one byte (section 6.5).
fn ppp(frame: &[u8], offset: usize) -> Result<Next, PacketError> {
    let offset =
        if frame.get(offset..).is_some_and(|rest| rest.starts_with(&[0xff, 0x03])) { offset + 2 } else { offset };
    Ok(match frame.get(offset..).unwrap_or_default() {
        [0x00, 0x21, ..] => Next::Ipv4(offset + 2),
        [0x00, 0x57, ..] => Next::Ipv6(offset + 2),
        [0x02, 0x81, ..] => Next::Mpls(offset + 2),
        [0x21, ..] => Next::Ipv4(offset + 1),
        [0x57, ..] => Next::Ipv6(offset + 1),
        rest @ ([] | [0x00]) => {
            return Err(PacketError::Cut { layer: "PPP", offset, need: 2, have: rest.len() });
        }
        _ => Next::Other,
    })
}

/// Steps over labels (RFC 3032) to the bottom of the stack; what follows says itself what it is.
fn mpls(frame: &[u8], mut offset: usize) -> Result<Next, PacketError> {
    for _ in 0..MAX_TAGS {
        let low = u16_at("MPLS", frame, offset, 2, 4)?;
        offset += 4;
        if low & 0x0100 != 0 {
            return Ok(match by_version(frame, offset) {
                Next::Other => pseudowire(frame, offset),
                ip => ip,
            });
        }
    }
    Ok(Next::Other)
}

/// An Ethernet pseudowire (RFC 4448), with or without its control word: where IP follows, that is the reading.
fn pseudowire(frame: &[u8], offset: usize) -> Next {
    [4, 0]
        .into_iter()
        .map(|word| Next::Ethernet(offset + word))
        .find(|frame_at| leads_to_ip(frame, *frame_at))
        .unwrap_or(Next::Other)
}

/// Is an IP header what the next header leads to? Tells where a frame begins behind bytes that only its ends agreed on.
pub(super) fn leads_to_ip(frame: &[u8], next: Next) -> bool {
    match step(frame, next) {
        Ok(Next::Ipv4(ip)) => by_version(frame, ip) == Next::Ipv4(ip),
        Ok(Next::Ipv6(ip)) => by_version(frame, ip) == Next::Ipv6(ip),
        _ => false,
    }
}

/// RFC 8300 section 2.2: the length is in words of four bytes.
fn nsh(frame: &[u8], offset: usize) -> Result<Next, PacketError> {
    let head = u16_at("NSH", frame, offset, 0, 4)?;
    let kind = u16_at("NSH", frame, offset, 2, 4)? & 0xff;
    Ok(next_protocol(kind, offset + usize::from(head & 0x3f) * 4))
}

/// The protocol numbers that NSH (RFC 8300 section 2.2) and VXLAN-GPE share.
pub(super) fn next_protocol(kind: u16, offset: usize) -> Next {
    match kind {
        1 => Next::Ipv4(offset),
        2 => Next::Ipv6(offset),
        3 => Next::Ethernet(offset),
        4 => Next::Nsh(offset),
        5 => Next::Mpls(offset),
        _ => Next::Other,
    }
}

/// The IP version is in the first nibble.
pub(super) fn by_version(frame: &[u8], offset: usize) -> Next {
    match frame.get(offset).map(|byte| byte >> 4) {
        Some(4) => Next::Ipv4(offset),
        Some(6) => Next::Ipv6(offset),
        _ => Next::Other,
    }
}

/// The 16 bits at `field` of a `need` bytes long header at `offset`, which must be there as a whole.
#[inline]
pub(super) fn u16_at(
    layer: &'static str,
    frame: &[u8],
    offset: usize,
    field: usize,
    need: usize,
) -> Result<u16, PacketError> {
    let header = frame.get(offset..).unwrap_or_default();
    match header.get(field..field + 2) {
        Some(&[hi, lo]) if header.len() >= need => Ok(u16::from_be_bytes([hi, lo])),
        _ => Err(PacketError::Cut { layer, offset, need, have: header.len() }),
    }
}
