//! Protection of Initial packets, undone: their keys follow from a connection ID that stands in clear.
//!
//! RFC 9001 sections 5.2 (secrets), 5.3 (AEAD), 5.4 (header protection); RFC 9369 section 3.3 for version 2. In: packets
//! of either side. Out: their frames (RFC 9000 section 19). What does not verify is not opened. Non-goals: packets of any
//! other type, whose keys only the ends know.

use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt};
use aes_gcm::Aes128Gcm;
use aes_gcm::aead::{AeadInOut, KeyInit, Nonce, Tag};
use hkdf::Hkdf;
use sha2::Sha256;

use super::packet::{Kind, Long, Version};
use crate::bytes::Fields;
use crate::stream::{BySide, Side};
use crate::tls::{Hash, expand_label};

const TAG: usize = 16;

/// Bytes that header protection samples, and where: four bytes after the packet number begins (RFC 9001 section 5.4.2).
const SAMPLE: std::ops::Range<usize> = 4..20;

/// Salt and the beginning of the labels of a version; `None` when they are not known.
fn salt(version: Version) -> Option<([u8; 20], &'static str)> {
    const V1: [u8; 20] = *b"\x38\x76\x2c\xf7\xf5\x59\x34\xb3\x4d\x17\x9a\xe6\xa4\xc8\x0c\xad\xcc\xbb\x7f\x0a";
    const V2: [u8; 20] = *b"\x0d\xed\xe3\xde\xf7\x00\xa6\xdb\x81\x93\x81\xbe\x6e\x26\x9d\xcb\xf9\xbd\x2e\xd9";
    const DRAFT_29: [u8; 20] = *b"\xaf\xbf\xec\x28\x99\x93\xd2\x4c\x9e\x97\x86\xf1\x9c\x61\x11\xe0\x43\x90\xa8\x99";
    const DRAFT_23: [u8; 20] = *b"\xc3\xee\xf7\x12\xc7\x2e\xbb\x5a\x11\xa7\xd2\x43\x2b\xb4\x63\x65\xbe\xf9\xf5\x02";
    const DRAFT_22: [u8; 20] = *b"\x7f\xbc\xdb\x0e\x7c\x66\xbb\xe9\x19\x3a\x96\xcd\x21\x51\x9e\xbd\x7a\x02\x64\x4a";
    match version {
        Version::V1 => Some((V1, "quic")),
        Version::V2 => Some((V2, "quicv2")),
        _ => match version.draft()? {
            22 => Some((DRAFT_22, "quic")),
            23..=28 => Some((DRAFT_23, "quic")),
            29..=32 => Some((DRAFT_29, "quic")),
            33 | 34 => Some((V1, "quic")),
            _ => None,
        },
    }
}

/// Opens Initial packets of both sides.
pub(super) struct Keys(BySide<Direction>);

struct Direction {
    aead: Aes128Gcm,
    iv: [u8; 12],
    /// Header protection.
    hp: Aes128,
}

/// An Initial packet that was opened.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Opened {
    pub number: u64,
    pub payload: Vec<u8>,
}

impl Keys {
    /// The keys of `version` that follow from the Destination Connection ID of the client's first Initial packet, or of
    /// its first after a Retry. `None` when the version is not known.
    pub fn of(version: Version, dcid: &[u8]) -> Option<Self> {
        let (salt, labels) = salt(version)?;
        let (initial, _) = Hkdf::<Sha256>::extract(Some(&salt), dcid);
        let direction = |label: &str| {
            let secret = expand_label(Hash::Sha256, &initial, label, 32)?;
            let expand = |label: &str, len| expand_label(Hash::Sha256, &secret, &format!("{labels} {label}"), len);
            Some(Direction {
                aead: Aes128Gcm::new_from_slice(&expand("key", 16)?).ok()?,
                iv: expand("iv", 12)?.try_into().ok()?,
                hp: Aes128::new_from_slice(&expand("hp", 16)?).ok()?,
            })
        };
        Some(Self(BySide { client: direction("client in")?, server: direction("server in")? }))
    }

    /// Opens a packet; `largest` is the largest packet number of that side so far.
    pub fn open(&self, from: Side, packet: &Long<'_>, largest: Option<u64>) -> Option<Opened> {
        if packet.kind != Kind::Initial || packet.is_cut() {
            return None;
        }
        let Direction { aead, iv, hp } = &self.0[from];
        let body = packet.body();
        let mut mask = Array::try_from(body.get(SAMPLE)?).ok()?;
        hp.encrypt_block(&mut mask);
        let (first_mask, number_mask) = mask.split_first()?;
        let first = packet.bytes.first()? ^ first_mask & 0x0f;
        let number_len = usize::from(first & 0b11) + 1;

        let mut header = packet.bytes.get(..packet.header_len)?.to_vec();
        *header.first_mut()? = first;
        let (number, sealed) = body.split_at_checked(number_len)?;
        header.extend(number.iter().zip(number_mask).map(|(byte, mask)| byte ^ mask));
        let truncated = header.get(packet.header_len..)?.iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
        let number = whole_number(truncated, number_len, largest);

        let mut nonce = *iv;
        nonce.iter_mut().skip(4).zip(number.to_be_bytes()).for_each(|(slot, byte)| *slot ^= byte);
        let nonce = Nonce::<Aes128Gcm>::from(nonce);
        let (sealed, tag) = sealed.split_at_checked(sealed.len().checked_sub(TAG)?)?;
        let tag = Tag::<Aes128Gcm>::try_from(tag).ok()?;
        let mut payload = sealed.to_vec();
        aead.decrypt_inout_detached(&nonce, &header, payload.as_mut_slice().into(), &tag).ok()?;
        Some(Opened { number, payload })
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

/// A frame of an Initial packet (RFC 9000 section 12.4), as far as it matters here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Frame<'a> {
    Crypto {
        offset: u64,
        bytes: &'a [u8],
    },
    /// CONNECTION_CLOSE: its error code.
    Close(u64),
    /// PADDING, PING, ACK.
    Other,
}

/// The frames of a payload, in order; stops where one is unknown or ends early.
pub(super) fn frames(payload: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    let mut fields = Fields(payload);
    std::iter::from_fn(move || next_frame(&mut fields))
}

fn next_frame<'a>(fields: &mut Fields<'a>) -> Option<Frame<'a>> {
    match fields.varint()? {
        // PADDING, PING.
        0x00 | 0x01 => Some(Frame::Other),
        // ACK, without and with ECN counts.
        kind @ (0x02 | 0x03) => {
            let (_largest, _delay) = (fields.varint()?, fields.varint()?);
            let ranges = fields.varint()?;
            fields.varint()?;
            for _ in 0..ranges {
                let (_gap, _length) = (fields.varint()?, fields.varint()?);
            }
            if kind == 0x03 {
                let (_ect0, _ect1, _ce) = (fields.varint()?, fields.varint()?, fields.varint()?);
            }
            Some(Frame::Other)
        }
        0x06 => {
            let offset = fields.varint()?;
            let len = usize::try_from(fields.varint()?).ok()?;
            Some(Frame::Crypto { offset, bytes: fields.take(len)? })
        }
        0x1c => {
            let code = fields.varint()?;
            let _frame_type = fields.varint()?;
            let len = usize::try_from(fields.varint()?).ok()?;
            let _reason = fields.take(len)?;
            Some(Frame::Close(code))
        }
        _ => None,
    }
}

#[cfg(test)]
pub(super) mod seal {
    //! The other direction, for tests: seals what tests want to see opened.
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]
    use super::*;

    /// An Initial packet with a packet number of four bytes.
    pub fn initial(keys: &Keys, from: Side, unprotected_header: &[u8], payload: &[u8]) -> Vec<u8> {
        let Direction { aead, iv, hp } = &keys.0[from];
        let number_len = usize::from(unprotected_header[0] & 0b11) + 1;
        let number_start = unprotected_header.len() - number_len;
        let mut nonce = *iv;
        let number = &unprotected_header[number_start..];
        nonce.iter_mut().rev().zip(number.iter().rev()).for_each(|(slot, byte)| *slot ^= byte);
        let mut sealed = payload.to_vec();
        let nonce = Nonce::<Aes128Gcm>::from(nonce);
        let tag = aead.encrypt_inout_detached(&nonce, unprotected_header, sealed.as_mut_slice().into()).unwrap();
        let mut packet = [unprotected_header, &sealed, &tag[..]].concat();
        let mut mask = Array::try_from(&packet[number_start + SAMPLE.start..number_start + SAMPLE.end]).unwrap();
        hp.encrypt_block(&mut mask);
        packet[0] ^= mask[0] & 0x0f;
        (0..number_len).for_each(|index| packet[number_start + index] ^= mask[1 + index]);
        packet
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_packet_number_is_the_nearest_to_the_one_expected() {
        // RFC 9000 section A.3.
        assert_eq!(whole_number(0x9b32, 2, Some(0xa82f_30ea)), 0xa82f_9b32);
        assert_eq!(whole_number(0, 1, Some(255)), 256);
        assert_eq!(whole_number(255, 1, Some(256)), 255);
        assert_eq!(whole_number(7, 4, None), 7);
    }

    #[test]
    fn frames_of_an_initial_packet_are_told_apart() {
        let payload = [0, 0, 1, 2, 5, 0, 1, 0, 0, 0, 6, 0x40, 3, 2, 8, 9, 0x1c, 0x41, 0x28, 6, 2, b'n', b'o', 0];
        let told: Vec<_> = frames(&payload).filter(|frame| *frame != Frame::Other).collect();
        assert_eq!(told, [Frame::Crypto { offset: 3, bytes: &[8, 9] }, Frame::Close(0x128)]);
        // STREAM has no business here.
        assert_eq!(frames(&[8, 0, 0]).count(), 0);
        // A length beyond the end.
        assert_eq!(frames(&[6, 0, 9, 1]).count(), 0);
    }
}
