//! Keys of Initial packets: they follow from a connection ID that stands in clear.
//!
//! RFC 9001 section 5.2 (secrets); RFC 9369 section 3.3 for version 2. In: a version and a connection ID. Out: what
//! opens the Initial packets of both sides. Non-goals: packets of any other type, whose keys only the ends know.

use hkdf::Hkdf;
use sha2::Sha256;

use super::packet::{Kind, Long, Version};
use super::protection::{Opened, Protection};
use crate::stream::{BySide, Side};
use crate::tls::{Hash, Suite, expand_label};

/// What protects Initial packets, of whatever version: AEAD_AES_128_GCM.
const SUITE: u16 = 0x1301;
const TLS13: u16 = 0x0304;

/// Salt of a version; `None` when it is not known.
fn salt(version: Version) -> Option<[u8; 20]> {
    const V1: [u8; 20] = *b"\x38\x76\x2c\xf7\xf5\x59\x34\xb3\x4d\x17\x9a\xe6\xa4\xc8\x0c\xad\xcc\xbb\x7f\x0a";
    const V2: [u8; 20] = *b"\x0d\xed\xe3\xde\xf7\x00\xa6\xdb\x81\x93\x81\xbe\x6e\x26\x9d\xcb\xf9\xbd\x2e\xd9";
    const DRAFT_29: [u8; 20] = *b"\xaf\xbf\xec\x28\x99\x93\xd2\x4c\x9e\x97\x86\xf1\x9c\x61\x11\xe0\x43\x90\xa8\x99";
    const DRAFT_23: [u8; 20] = *b"\xc3\xee\xf7\x12\xc7\x2e\xbb\x5a\x11\xa7\xd2\x43\x2b\xb4\x63\x65\xbe\xf9\xf5\x02";
    const DRAFT_22: [u8; 20] = *b"\x7f\xbc\xdb\x0e\x7c\x66\xbb\xe9\x19\x3a\x96\xcd\x21\x51\x9e\xbd\x7a\x02\x64\x4a";
    match version {
        Version::V1 => Some(V1),
        Version::V2 => Some(V2),
        _ => match version.draft()? {
            22 => Some(DRAFT_22),
            23..=28 => Some(DRAFT_23),
            29..=32 => Some(DRAFT_29),
            33 | 34 => Some(V1),
            _ => None,
        },
    }
}

/// Opens Initial packets of both sides.
pub(super) struct Keys(pub(super) BySide<Protection>);

impl Keys {
    /// The keys of `version` that follow from the Destination Connection ID of the client's first Initial packet, or of
    /// its first after a Retry. `None` when the version is not known.
    pub fn of(version: Version, dcid: &[u8]) -> Option<Self> {
        let (initial, _) = Hkdf::<Sha256>::extract(Some(&salt(version)?), dcid);
        let suite = Suite::of(SUITE, TLS13)?;
        let direction = |label: &str| {
            let secret = expand_label(Hash::Sha256, &initial, label, 32)?;
            Protection::of_secret(suite, version, &secret)
        };
        Some(Self(BySide { client: direction("client in")?, server: direction("server in")? }))
    }

    /// Opens a packet; `largest` is the largest packet number of that side so far.
    pub fn open(&self, from: Side, packet: &Long<'_>, largest: Option<u64>) -> Option<Opened> {
        if packet.kind != Kind::Initial || packet.is_cut() {
            return None;
        }
        self.0[from].open(packet.bytes, packet.header_len, largest)
    }
}
