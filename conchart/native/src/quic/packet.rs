//! QUIC packets: cuts a datagram into them (RFC 9000 section 12.2) and reads what every header says in clear.
//!
//! Wire format: RFC 9000 section 17, RFC 8999 for versions that are not read further, RFC 9369 section 3.2 for the
//! other type bits of version 2. In: the payload of one UDP datagram. Out: [`Packet`]s that borrow from it. Non-goals:
//! header protection and what lies under it (see `protection`); Google's own versions, of which only the name is told.

use std::borrow::Cow;

use crate::bytes::Fields;

/// Longest connection ID of the versions read here (RFC 9000 section 17.2).
const MAX_CID: usize = 20;

/// Packets that are read of one datagram: there are four encryption levels, and opening a packet costs more than
/// sending a forged one.
const MAX_PACKETS: u8 = 16;

/// The Version field of a long header (RFC 9000 section 15).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Version(pub u32);

impl Version {
    /// Not a version: that of a Version Negotiation packet.
    pub const NEGOTIATION: Self = Self(0);
    pub const V1: Self = Self(1);
    /// RFC 9369.
    pub const V2: Self = Self(0x6b33_43cf);

    /// `v1`, `v2`, `draft-29`, `Q050` as Google wrote its own, `greased`, or the number.
    #[must_use]
    pub fn name(self) -> Cow<'static, str> {
        match self {
            Self::NEGOTIATION => "negotiation".into(),
            Self::V1 => "v1".into(),
            Self::V2 => "v2".into(),
            _ if self.is_greased() => "greased".into(),
            Self(number) => match (self.draft(), number.to_be_bytes()) {
                (Some(draft), _) => format!("draft-{draft}").into(),
                (None, [b'Q' | b'T', digits @ ..]) if digits.iter().all(u8::is_ascii_digit) => {
                    String::from_utf8_lossy(&number.to_be_bytes()).into_owned().into()
                }
                _ => format!("0x{number:08x}").into(),
            },
        }
    }

    /// Number of the draft of RFC 9000 that this version implements.
    #[must_use]
    pub fn draft(self) -> Option<u8> {
        match self.0.to_be_bytes() {
            [0xff, 0, 0, draft] => Some(draft),
            _ => None,
        }
    }

    /// Reserved to keep version negotiation in use (RFC 9000 section 15): no implementation has it.
    #[must_use]
    pub fn is_greased(self) -> bool {
        self.0 & 0x0f0f_0f0f == 0x0a0a_0a0a
    }

    /// One of those whose long headers are those of RFC 9000: the types of their packets can be told. Draft 22 brought
    /// the connection IDs of today.
    #[must_use]
    pub fn is_read(self) -> bool {
        matches!(self, Self::V1 | Self::V2) || self.draft().is_some_and(|draft| (22..=34).contains(&draft))
    }

    /// One that Google made before the RFCs: with a cryptography of its own (`Q046`, `Q050`), or with TLS (`T051`).
    #[must_use]
    pub fn is_google(self) -> bool {
        matches!(self.0.to_be_bytes(), [b'Q' | b'T', b'0', b'0'..=b'9', b'0'..=b'9'])
    }
}

/// What a packet with a long header is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    Initial,
    ZeroRtt,
    Handshake,
    Retry,
    VersionNegotiation,
    /// Of a version whose types are not known.
    Unknown,
}

/// A packet with a long header.
#[derive(Clone, Copy, Debug)]
pub struct Long<'a> {
    pub version: Version,
    pub kind: Kind,
    /// Destination and Source Connection ID.
    pub dcid: &'a [u8],
    pub scid: &'a [u8],
    /// Of an Initial packet; empty when there is none.
    pub token: &'a [u8],
    /// The whole packet, or what the capture holds of it.
    pub bytes: &'a [u8],
    /// Length of its header up to the packet number; of one without a packet number, up to its content.
    pub header_len: usize,
    /// Length of the packet as it announces it.
    pub len: usize,
}

impl<'a> Long<'a> {
    /// Its fixed bit is 1 (RFC 9000 section 17.2).
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        self.bytes.first().is_some_and(|first| first & FIXED != 0)
    }

    /// What follows the header: the protected packet number and payload, or the content.
    #[must_use]
    pub fn body(&self) -> &'a [u8] {
        self.bytes.get(self.header_len..).unwrap_or_default()
    }

    /// The packet ends before it says: the capture holds only the beginning of each packet, or this is no QUIC.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.bytes.len() < self.len
    }

    /// The versions that a Version Negotiation packet offers (RFC 9000 section 17.2.1).
    pub fn versions(&self) -> impl Iterator<Item = Version> + 'a {
        let list = if self.kind == Kind::VersionNegotiation { self.body() } else { &[] };
        list.chunks_exact(4).filter_map(|each| each.first_chunk().copied().map(|it| Version(u32::from_be_bytes(it))))
    }
}

/// One packet of a datagram.
#[derive(Clone, Copy, Debug)]
pub enum Packet<'a> {
    Long(Long<'a>),
    /// One with a short header, that is 1-RTT: only the receiver knows how long its connection ID is. It reaches to the
    /// end of the datagram.
    Short(&'a [u8]),
}

/// The packets that one datagram carries, in order (RFC 9000 section 12.2); stops where the bytes make no sense.
#[derive(Clone, Debug)]
pub struct Packets<'a> {
    rest: &'a [u8],
    /// Destination of the first packet: that of all (RFC 9000 section 12.2), so that padding is told from packets.
    dcid: Option<&'a [u8]>,
    count: u8,
}

impl<'a> Packets<'a> {
    #[must_use]
    pub fn of(datagram: &'a [u8]) -> Self {
        Self { rest: datagram, dcid: None, count: 0 }
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = Packet<'a>;

    fn next(&mut self) -> Option<Packet<'a>> {
        let packet = std::mem::take(&mut self.rest);
        let first = *packet.first().filter(|_| self.count < MAX_PACKETS)?;
        self.count += 1;
        if first & LONG == 0 {
            let belongs = match self.dcid {
                Some([]) => first & FIXED != 0,
                Some(dcid) => packet.get(1..).is_some_and(|rest| rest.starts_with(dcid)),
                None => true,
            };
            return (belongs && packet.len() >= MIN_SHORT).then_some(Packet::Short(packet));
        }
        let long = read_long(packet)?;
        if self.dcid.is_some_and(|dcid| dcid != long.dcid) {
            return None;
        }
        self.dcid = Some(long.dcid);
        self.rest = packet.get(long.len..).unwrap_or_default();
        Some(Packet::Long(long))
    }
}

/// The version that a packet of Google's QUIC before 46 names. Its header came before RFC 8999: flags (here: it has a
/// version, and a connection ID of eight bytes), connection ID, version.
#[must_use]
pub(super) fn public_header(datagram: &[u8]) -> Option<Version> {
    let &[flags, _, _, _, _, _, _, _, _, v3, v2, v1, v0] = datagram.first_chunk()?;
    let version = Version(u32::from_be_bytes([v3, v2, v1, v0]));
    (flags & 0xc9 == 0x09 && version.is_google()).then_some(version)
}

const LONG: u8 = 0x80;
/// Always 1 in the first packets; later ones may have 0 in its place (RFC 9287).
const FIXED: u8 = 0x40;

/// A short header without connection ID, and as many bytes as header protection samples (RFC 9001 section 5.4.2).
const MIN_SHORT: usize = 1 + 4 + 16;

/// Tag at the end of a Retry packet (RFC 9001 section 5.8).
const RETRY_TAG: usize = 16;

/// Reads the packet at the front of `bytes`, which begins with a long header.
fn read_long(bytes: &[u8]) -> Option<Long<'_>> {
    let mut fields = Fields(bytes);
    let first = fields.u8()?;
    let version = Version(fields.u32()?);
    // Q046 alone has the lengths of both connection IDs in one byte.
    if version.0 == u32::from_be_bytes(*b"Q046") {
        let len = bytes.len();
        return Some(Long {
            version,
            kind: Kind::Unknown,
            dcid: &[],
            scid: &[],
            token: &[],
            bytes,
            header_len: 5,
            len,
        });
    }
    let dcid = fields.vec8()?;
    let scid = fields.vec8()?;
    let kind = kind(version, first);
    if kind != Kind::Unknown && kind != Kind::VersionNegotiation {
        if dcid.len() > MAX_CID || scid.len() > MAX_CID {
            return None;
        }
        if kind == Kind::Retry && fields.0.len() < RETRY_TAG {
            return None;
        }
    }
    let mut token: &[u8] = &[];
    if kind == Kind::Initial {
        let len = usize::try_from(fields.varint()?).ok()?;
        token = fields.take(len)?;
    }
    let len = match kind {
        Kind::Initial | Kind::ZeroRtt | Kind::Handshake => {
            let body = usize::try_from(fields.varint()?).ok()?;
            (bytes.len() - fields.0.len()).checked_add(body)?
        }
        _ => bytes.len(),
    };
    let header_len = bytes.len() - fields.0.len();
    Some(Long { version, kind, dcid, scid, token, bytes: bytes.get(..len).unwrap_or(bytes), header_len, len })
}

/// The type bits of RFC 9000 section 17.2, and of RFC 9369 section 3.2.
fn kind(version: Version, first: u8) -> Kind {
    if version == Version::NEGOTIATION {
        return Kind::VersionNegotiation;
    }
    if !version.is_read() {
        return Kind::Unknown;
    }
    let bits = first >> 4 & 0b11;
    match if version == Version::V2 { bits.wrapping_sub(1) & 0b11 } else { bits } {
        0 => Kind::Initial,
        1 => Kind::ZeroRtt,
        2 => Kind::Handshake,
        _ => Kind::Retry,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn versions_have_the_names_people_use() {
        let names = [1, 0x6b33_43cf, 0xff00_001d, 0x5130_3530, 0x0a1a_2a3a, 0xface_b002, 0];
        let texts = names.map(|number| Version(number).name().into_owned());
        assert_eq!(texts, ["v1", "v2", "draft-29", "Q050", "greased", "0xfaceb002", "negotiation"]);
    }

    #[test]
    fn types_of_version_2_are_turned_by_one() {
        let kinds = |version| [0xc0, 0xd0, 0xe0, 0xf0].map(|first| kind(version, first));
        let v1 = [Kind::Initial, Kind::ZeroRtt, Kind::Handshake, Kind::Retry];
        assert_eq!(kinds(Version::V1), v1);
        assert_eq!(kinds(Version::V2), [Kind::Retry, Kind::Initial, Kind::ZeroRtt, Kind::Handshake]);
    }

    #[test]
    fn version_negotiation_offers_versions() {
        let datagram =
            [&[0x80, 0, 0, 0, 0, 1, 7, 0][..], &1_u32.to_be_bytes(), &0x6b33_43cf_u32.to_be_bytes()].concat();
        let Some(Packet::Long(long)) = Packets::of(&datagram).next() else { unreachable!() };
        assert_eq!(long.kind, Kind::VersionNegotiation);
        assert_eq!(long.versions().collect::<Vec<_>>(), [Version::V1, Version::V2]);
    }

    #[test]
    fn one_datagram_carries_several_packets_and_padding_is_none() {
        let long = |first: u8| [&[first, 0, 0, 0, 1, 2, 7, 7, 0][..], &[20], &[first; 20]].concat();
        let initial = [&[0xc0, 0, 0, 0, 1, 2, 7, 7, 0, 0][..], &[20], &[1; 20]].concat();
        let short = [&[0x40, 7, 7][..], &[9; 30]].concat();
        let count = |parts: &[&[u8]]| Packets::of(&parts.concat()).count();
        assert_eq!(count(&[&initial, &long(0xe0), &short]), 3);
        assert_eq!(count(&[&initial, &long(0xe0), &[0; 100]]), 2);
        // Other destination: not a packet of this datagram.
        assert_eq!(count(&[&initial, &[0x40, 8, 8], &[9; 30]]), 1);
        assert_eq!(count(&[&short]), 1);
        assert_eq!(count(&[&long(0xe0).repeat(100)]), usize::from(MAX_PACKETS));
        assert_eq!(count(&[&short[..20]]), 0);
    }
}
