//! Protection of packets, undone: header protection, packet numbers, the AEAD.
//!
//! RFC 9001 sections 5.1 (keys), 5.3 (AEAD), 5.4 (header protection), 6 (key update); RFC 9369 section 3.3 has other
//! labels for version 2. In: one packet and the keys of its direction. Out: [`Opened`]: its number and its frames. What
//! does not verify is not opened. Non-goals: which keys a packet needs (see `keyring`).

use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Aes256};
use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};

use super::packet::Version;
use crate::tls::{Aead, Bulk, Suite, aead, expand_label};

/// Bytes that header protection samples, and where: four bytes after the packet number begins (RFC 9001 section 5.4.2).
const SAMPLE: std::ops::Range<usize> = 4..20;

/// Bits of the first byte that are protected, of long and short headers (RFC 9001 section 5.4.1).
const LONG_BITS: u8 = 0x0f;
const SHORT_BITS: u8 = 0x1f;
const LONG: u8 = 0x80;
const KEY_PHASE: u8 = 0x04;

/// A packet that was opened.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Opened {
    pub number: u64,
    pub payload: Vec<u8>,
}

/// What the labels of keys begin with.
pub(super) fn labels(version: Version) -> &'static str {
    if version == Version::V2 { "quicv2" } else { "quic" }
}

/// The key of header protection; it stays when the others are updated.
pub(super) enum HeaderKey {
    Aes128(Box<Aes128>),
    Aes256(Box<Aes256>),
    ChaCha([u8; 32]),
}

impl HeaderKey {
    pub fn of_secret(suite: Suite, labels: &str, secret: &[u8]) -> Option<Self> {
        let key = expand_label(suite.hash, secret, &format!("{labels} hp"), suite.key_len)?;
        match (suite.bulk, suite.key_len) {
            (Bulk::Gcm | Bulk::Ccm, 16) => Some(Self::Aes128(Box::new(Aes128::new_from_slice(&key).ok()?))),
            (Bulk::Gcm | Bulk::Ccm, 32) => Some(Self::Aes256(Box::new(Aes256::new_from_slice(&key).ok()?))),
            (Bulk::ChaCha, 32) => Some(Self::ChaCha(key.try_into().ok()?)),
            _ => None,
        }
    }

    /// RFC 9001 sections 5.4.3 and 5.4.4.
    pub(super) fn mask(&self, sample: &[u8; 16]) -> Option<[u8; 5]> {
        let block = |encrypted: Array<u8, _>| encrypted.first_chunk().copied();
        match self {
            Self::Aes128(aes) => {
                let mut mask = Array::from(*sample);
                aes.encrypt_block(&mut mask);
                block(mask)
            }
            Self::Aes256(aes) => {
                let mut mask = Array::from(*sample);
                aes.encrypt_block(&mut mask);
                block(mask)
            }
            Self::ChaCha(key) => {
                let (counter, nonce) = sample.split_first_chunk::<4>()?;
                let mut cipher = ChaCha20::new_from_slices(key, nonce).ok()?;
                cipher.try_seek(u64::from(u32::from_le_bytes(*counter)) * 64).ok()?;
                let mut mask = [0; 5];
                cipher.try_apply_keystream(&mut mask).ok()?;
                Some(mask)
            }
        }
    }

    /// Takes header protection away; `header_len` is the length of the header up to the packet number.
    pub fn unmask(&self, packet: &[u8], header_len: usize) -> Option<Header> {
        let body = packet.get(header_len..)?;
        let mask = self.mask(body.get(SAMPLE)?.try_into().ok()?)?;
        let (first_mask, number_mask) = mask.split_first()?;
        let sent = *packet.first()?;
        let first = sent ^ first_mask & if sent & LONG == 0 { SHORT_BITS } else { LONG_BITS };
        let number_len = usize::from(first & 0b11) + 1;
        let mut bytes = Vec::with_capacity(header_len + number_len);
        bytes.extend_from_slice(packet.get(..header_len)?);
        *bytes.first_mut()? = first;
        bytes.extend(body.get(..number_len)?.iter().zip(number_mask).map(|(byte, mask)| byte ^ mask));
        Some(Header { bytes, number_len })
    }
}

/// A header without its protection.
pub(super) struct Header {
    bytes: Vec<u8>,
    number_len: usize,
}

impl Header {
    /// Of a short header (RFC 9001 section 6).
    pub fn key_phase(&self) -> bool {
        self.bytes.first().is_some_and(|first| first & KEY_PHASE != 0)
    }

    /// The packet number, given the largest so far of its side and space.
    fn number(&self, largest: Option<u64>) -> Option<u64> {
        let bytes = self.bytes.get(self.bytes.len().checked_sub(self.number_len)?..)?;
        let truncated = bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
        Some(whole_number(truncated, self.number_len, largest))
    }
}

/// The keys of one direction that an update replaces.
pub(super) struct PacketKey {
    aead: Box<dyn Aead>,
    iv: [u8; 12],
}

impl PacketKey {
    pub fn of_secret(suite: Suite, labels: &str, secret: &[u8]) -> Option<Self> {
        let expand = |label: &str, len| expand_label(suite.hash, secret, &format!("{labels} {label}"), len);
        Some(Self { aead: aead(suite.bulk, &expand("key", suite.key_len)?)?, iv: expand("iv", 12)?.try_into().ok()? })
    }

    /// Opens a packet whose header is unmasked; `largest` is the largest packet number of its side and space so far.
    pub fn open(&self, header: &Header, packet: &[u8], largest: Option<u64>) -> Option<Opened> {
        let number = header.number(largest)?;
        let payload = self.aead.open(&nonce(self.iv, number), &header.bytes, packet.get(header.bytes.len()..)?)?;
        Some(Opened { number, payload })
    }
}

/// The packet number, padded on the left, XORed into the IV.
fn nonce(mut iv: [u8; 12], number: u64) -> [u8; 12] {
    iv.iter_mut().skip(4).zip(number.to_be_bytes()).for_each(|(slot, byte)| *slot ^= byte);
    iv
}

/// The keys of one direction at one level.
pub(super) struct Protection {
    pub header: HeaderKey,
    pub packet: PacketKey,
}

impl Protection {
    pub fn of_secret(suite: Suite, version: Version, secret: &[u8]) -> Option<Self> {
        let labels = labels(version);
        Some(Self {
            header: HeaderKey::of_secret(suite, labels, secret)?,
            packet: PacketKey::of_secret(suite, labels, secret)?,
        })
    }

    pub fn open(&self, packet: &[u8], header_len: usize, largest: Option<u64>) -> Option<Opened> {
        self.packet.open(&self.header.unmask(packet, header_len)?, packet, largest)
    }
}

/// The packet number of which `len` bytes were sent (RFC 9000 section A.3).
fn whole_number(truncated: u64, len: usize, largest: Option<u64>) -> u64 {
    let Some(expected) = largest.map(|largest| largest.saturating_add(1)) else {
        return truncated;
    };
    let window = 1_u64 << (8 * len.min(4));
    let candidate = expected & !(window - 1) | truncated;
    if candidate.saturating_add(window / 2) <= expected && candidate < (1 << 62) - window {
        candidate + window
    } else if candidate > expected.saturating_add(window / 2) && candidate >= window {
        candidate - window
    } else {
        candidate
    }
}

#[cfg(test)]
pub(super) mod seal {
    //! The other direction, for tests: seals what tests want to see opened.
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    /// A packet with the header that is given unprotected, its packet number at the end.
    pub fn packet(keys: &Protection, unprotected_header: &[u8], payload: &[u8]) -> Vec<u8> {
        let number_len = usize::from(unprotected_header[0] & 0b11) + 1;
        let number_start = unprotected_header.len() - number_len;
        let number = unprotected_header[number_start..].iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
        let sealed = keys.packet.aead.seal(&nonce(keys.packet.iv, number), unprotected_header, payload);
        let mut packet = [unprotected_header, &sealed].concat();
        let sample = packet[number_start + SAMPLE.start..number_start + SAMPLE.end].try_into().unwrap();
        let mask = keys.header.mask(&sample).unwrap();
        packet[0] ^= mask[0] & if packet[0] & LONG == 0 { SHORT_BITS } else { LONG_BITS };
        (0..number_len).for_each(|index| packet[number_start + index] ^= mask[1 + index]);
        packet
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> =
            text.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit.try_into().unwrap()).collect();
        digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect()
    }

    #[test]
    fn a_packet_number_is_the_nearest_to_the_one_expected() {
        // RFC 9000 section A.3.
        assert_eq!(whole_number(0x9b32, 2, Some(0xa82f_30ea)), 0xa82f_9b32);
        assert_eq!(whole_number(0, 1, Some(255)), 256);
        assert_eq!(whole_number(255, 1, Some(256)), 255);
        assert_eq!(whole_number(7, 4, None), 7);
    }

    #[test]
    fn the_chacha20_packet_of_the_rfcs_is_opened() {
        // RFC 9001 appendix A.5 and RFC 9369 appendix A.5: a short header without connection ID, number 654360564, a
        // PING.
        let secret = hex("9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b");
        let suite = Suite::of(0x1303, 0x0304).unwrap();
        for (version, packet) in [
            (Version::V1, "4cfe4189655e5cd55c41f69080575d7999c25a5bfb"),
            (Version::V2, "5558b1c60ae7b6b932bc27d786f4bc2bb20f2162ba"),
        ] {
            let keys = Protection::of_secret(suite, version, &secret).unwrap();
            let opened = keys.open(&hex(packet), 1, Some(654_360_563));
            assert_eq!(opened, Some(Opened { number: 654_360_564, payload: vec![1] }), "{version:?}");
        }
    }
}
