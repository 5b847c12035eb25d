//! Record protection, undone: one sealed record body in, its content out.
//!
//! AEAD: RFC 8446 section 5.2 (TLS 1.3), RFC 5288 (GCM), RFC 6655 (CCM) and RFC 7905 (ChaCha20-Poly1305) for
//! TLS 1.2. CBC: RFC 5246 section 6.2.3.2, RFC 2246 section 6.2.3.2 (chained IV), RFC 7366 (encrypt-then-MAC).
//! Whatever does not verify is not opened: that a tag or MAC is right proves key and sequence number.

use aes::cipher::{BlockModeDecrypt, KeyIvInit};
use aes::{Aes128, Aes256};
use aes_gcm::aead::consts::{U8, U12, U16};
use aes_gcm::aead::{AeadInOut, KeyInit, Nonce, Tag, array::typenum::Unsigned};
use aes_gcm::{Aes128Gcm, Aes256Gcm};
use ccm::Ccm;
use chacha20poly1305::ChaCha20Poly1305;

use super::suite::{Bulk, Mac1, Suite, expand_label};

const BLOCK: usize = 16;

/// A record that was opened.
#[derive(Debug, Eq, PartialEq)]
pub struct Content {
    /// Its true content type.
    pub kind: u16,
    pub bytes: Vec<u8>,
    /// Position of the content's first byte in the sealed body.
    pub offset: usize,
}

/// A record as it stands on the wire.
#[derive(Clone, Copy)]
pub(super) struct Encrypted<'a> {
    pub kind: u8,
    pub version: [u8; 2],
    pub body: &'a [u8],
}

impl Encrypted<'_> {
    fn header(&self) -> Option<[u8; 5]> {
        let [high, low] = u16::try_from(self.body.len()).ok()?.to_be_bytes();
        Some([self.kind, self.version[0], self.version[1], high, low])
    }

    /// What a MAC or AEAD of TLS 1.2 covers besides the bytes.
    fn additional(&self, sequence: u64, len: usize) -> Option<[u8; 13]> {
        let mut data = [0; 13];
        let (number, rest) = data.split_at_mut(8);
        number.copy_from_slice(&sequence.to_be_bytes());
        let [high, low] = u16::try_from(len).ok()?.to_be_bytes();
        rest.copy_from_slice(&[self.kind, self.version[0], self.version[1], high, low]);
        Some(data)
    }
}

/// The keys of one direction, from one change of keys to the next.
pub(super) trait Protection: std::fmt::Debug {
    fn open(&mut self, sequence: u64, record: Encrypted<'_>) -> Option<Content>;
    /// Bytes by which a body is longer than its content, about.
    fn overhead(&self) -> u64;
}

/// An AEAD, whatever it is.
pub(crate) trait Aead {
    fn open(&self, nonce: &[u8; 12], additional: &[u8], sealed: &[u8]) -> Option<Vec<u8>>;
    fn tag(&self) -> usize;
    #[cfg(test)]
    fn seal(&self, nonce: &[u8; 12], additional: &[u8], clear: &[u8]) -> Vec<u8>;
}

impl<A: AeadInOut> Aead for A {
    fn open(&self, nonce: &[u8; 12], additional: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (body, tag) = sealed.split_at_checked(sealed.len().checked_sub(self.tag())?)?;
        let nonce = Nonce::<A>::try_from(nonce.as_slice()).ok()?;
        let tag = Tag::<A>::try_from(tag).ok()?;
        let mut clear = body.to_vec();
        self.decrypt_inout_detached(&nonce, additional, clear.as_mut_slice().into(), &tag).ok()?;
        Some(clear)
    }

    fn tag(&self) -> usize {
        A::TagSize::USIZE
    }

    #[cfg(test)]
    #[allow(clippy::unwrap_used)]
    fn seal(&self, nonce: &[u8; 12], additional: &[u8], clear: &[u8]) -> Vec<u8> {
        let nonce = Nonce::<A>::try_from(nonce.as_slice()).unwrap();
        let mut sealed = clear.to_vec();
        let tag = self.encrypt_inout_detached(&nonce, additional, sealed.as_mut_slice().into()).unwrap();
        sealed.extend_from_slice(&tag);
        sealed
    }
}

/// The AEAD of that kind, with this key.
pub(crate) fn aead(bulk: Bulk, key: &[u8]) -> Option<Box<dyn Aead>> {
    fn boxed<A: AeadInOut + KeyInit + 'static>(key: &[u8]) -> Option<Box<dyn Aead>> {
        Some(Box::new(A::new_from_slice(key).ok()?))
    }
    match (bulk, key.len()) {
        (Bulk::Gcm, 16) => boxed::<Aes128Gcm>(key),
        (Bulk::Gcm, 32) => boxed::<Aes256Gcm>(key),
        (Bulk::Ccm, 16) => boxed::<Ccm<Aes128, U16, U12>>(key),
        (Bulk::Ccm, 32) => boxed::<Ccm<Aes256, U16, U12>>(key),
        (Bulk::Ccm8, 16) => boxed::<Ccm<Aes128, U8, U12>>(key),
        (Bulk::Ccm8, 32) => boxed::<Ccm<Aes256, U8, U12>>(key),
        (Bulk::ChaCha, 32) => boxed::<ChaCha20Poly1305>(key),
        _ => None,
    }
}

/// The sequence number, padded on the left, XORed into the IV (RFC 8446 section 5.3).
fn nonce(mut iv: [u8; 12], sequence: u64) -> [u8; 12] {
    iv.iter_mut().skip(4).zip(sequence.to_be_bytes()).for_each(|(slot, byte)| *slot ^= byte);
    iv
}

/// TLS 1.3.
struct Aead13 {
    aead: Box<dyn Aead>,
    iv: [u8; 12],
}

impl std::fmt::Debug for Aead13 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Aead13")
    }
}

impl Protection for Aead13 {
    fn open(&mut self, sequence: u64, record: Encrypted<'_>) -> Option<Content> {
        let mut bytes = self.aead.open(&nonce(self.iv, sequence), &record.header()?, record.body)?;
        let end = bytes.iter().rposition(|&byte| byte != 0)?;
        let kind = u16::from(*bytes.get(end)?);
        bytes.truncate(end);
        Some(Content { kind, bytes, offset: 0 })
    }

    fn overhead(&self) -> u64 {
        self.aead.tag() as u64 + 1
    }
}

/// TLS 1.2; `explicit` when half of the nonce is sent with each record.
struct Aead12 {
    aead: Box<dyn Aead>,
    iv: [u8; 12],
    explicit: bool,
}

impl std::fmt::Debug for Aead12 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Aead12")
    }
}

impl Protection for Aead12 {
    fn open(&mut self, sequence: u64, record: Encrypted<'_>) -> Option<Content> {
        let (nonce, offset) = if self.explicit {
            let mut whole = self.iv;
            whole.get_mut(4..)?.copy_from_slice(record.body.get(..8)?);
            (whole, 8)
        } else {
            (nonce(self.iv, sequence), 0)
        };
        let sealed = record.body.get(offset..)?;
        let additional = record.additional(sequence, sealed.len().checked_sub(self.aead.tag())?)?;
        let bytes = self.aead.open(&nonce, &additional, sealed)?;
        Some(Content { kind: record.kind.into(), bytes, offset })
    }

    fn overhead(&self) -> u64 {
        self.aead.tag() as u64 + if self.explicit { 8 } else { 0 }
    }
}

/// AES-CBC with an HMAC.
struct Cbc {
    key: Vec<u8>,
    mac: Mac1,
    mac_key: Vec<u8>,
    encrypt_then_mac: bool,
    /// TLS 1.0: the last block of the record before; later versions send the IV with the record.
    chained: Option<Vec<u8>>,
}

impl std::fmt::Debug for Cbc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cbc")
    }
}

impl Protection for Cbc {
    fn open(&mut self, sequence: u64, record: Encrypted<'_>) -> Option<Content> {
        let mut body = record.body;
        if self.encrypt_then_mac {
            let (sealed, mac) = body.split_at_checked(body.len().checked_sub(self.mac.len())?)?;
            let additional = record.additional(sequence, sealed.len())?;
            if self.mac.of(&self.mac_key, &[&additional, sealed])? != mac {
                return None;
            }
            body = sealed;
        }
        let (iv, sealed) = match &self.chained {
            Some(iv) => (iv.clone(), body),
            None => body.split_at_checked(BLOCK).map(|(iv, rest)| (iv.to_vec(), rest))?,
        };
        let offset = body.len() - sealed.len();
        let mut bytes = sealed.to_vec();
        match self.key.len() {
            16 => decrypt::<cbc::Decryptor<Aes128>>(&self.key, &iv, &mut bytes)?,
            _ => decrypt::<cbc::Decryptor<Aes256>>(&self.key, &iv, &mut bytes)?,
        }
        let padding = usize::from(*bytes.last()?);
        let padded = bytes.len().checked_sub(padding + 1)?;
        if bytes.get(padded..)?.iter().any(|&byte| usize::from(byte) != padding) {
            return None;
        }
        bytes.truncate(padded);
        if !self.encrypt_then_mac {
            let mac = bytes.split_off(bytes.len().checked_sub(self.mac.len())?);
            let additional = record.additional(sequence, bytes.len())?;
            if self.mac.of(&self.mac_key, &[&additional, &bytes])? != mac {
                return None;
            }
        }
        if let Some(iv) = &mut self.chained {
            *iv = body.last_chunk::<BLOCK>()?.to_vec();
        }
        Some(Content { kind: record.kind.into(), bytes, offset })
    }

    fn overhead(&self) -> u64 {
        let iv = if self.chained.is_none() { BLOCK } else { 0 };
        (iv + self.mac.len() + BLOCK / 2) as u64
    }
}

fn decrypt<C: BlockModeDecrypt + KeyIvInit>(key: &[u8], iv: &[u8], bytes: &mut [u8]) -> Option<()> {
    let (blocks, rest) = aes::cipher::Block::<C>::slice_as_chunks_mut(bytes);
    if !rest.is_empty() {
        return None;
    }
    C::new_from_slices(key, iv).ok()?.decrypt_blocks(blocks);
    Some(())
}

/// The keys that follow from a traffic secret of TLS 1.3.
pub(super) fn of_secret(suite: Suite, secret: &[u8]) -> Option<Box<dyn Protection>> {
    let key = expand_label(suite.hash, secret, "key", suite.key_len)?;
    let iv = expand_label(suite.hash, secret, "iv", 12)?.try_into().ok()?;
    Some(Box::new(Aead13 { aead: aead(suite.bulk, &key)?, iv }))
}

/// Lengths that a key block of TLS 1.2 or older has for each side: MAC key, key, IV.
pub(super) fn lengths(suite: Suite, version: u16) -> [usize; 3] {
    let (mac, iv) = match suite.bulk {
        Bulk::Gcm | Bulk::Ccm | Bulk::Ccm8 => (0, 4),
        Bulk::ChaCha => (0, 12),
        Bulk::Cbc(mac) => (mac.len(), if version < 0x0302 { BLOCK } else { 0 }),
    };
    [mac, suite.key_len, iv]
}

/// The keys of one side of TLS 1.2 or older; their lengths are those of [`lengths`].
pub(super) fn of_keys(
    suite: Suite,
    version: u16,
    encrypt_then_mac: bool,
    [mac_key, key, iv]: [&[u8]; 3],
) -> Option<Box<dyn Protection>> {
    if let Bulk::Cbc(mac) = suite.bulk {
        let chained = (version < 0x0302).then(|| iv.to_vec());
        return Some(Box::new(Cbc { key: key.into(), mac, mac_key: mac_key.into(), encrypt_then_mac, chained }));
    }
    let mut whole = [0; 12];
    whole.get_mut(..iv.len())?.copy_from_slice(iv);
    Some(Box::new(Aead12 { aead: aead(suite.bulk, key)?, iv: whole, explicit: suite.bulk != Bulk::ChaCha }))
}
