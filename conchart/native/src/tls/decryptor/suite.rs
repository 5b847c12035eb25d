//! Cipher suites that can be opened, and how their keys follow from secrets.
//!
//! TLS 1.2 and older: RFC 5246 sections 5 and 6.3 (PRF, key block), RFC 2246 section 5 (its older PRF). TLS 1.3:
//! RFC 8446 sections 7.1 to 7.3 (HKDF-Expand-Label, traffic keys, key update).

use crate::tls::Version;
use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use sha1::Sha1;
use sha2::{Sha256, Sha384};
use tls_parser::{TlsCipherEnc, TlsCipherEncMode, TlsCipherMac, TlsCipherSuite, TlsPRF};

/// How records are protected.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Bulk {
    Gcm,
    Ccm,
    /// CCM with a tag of 8 bytes.
    Ccm8,
    ChaCha,
    /// AES in CBC mode with an HMAC.
    Cbc(Mac1),
}

impl Bulk {
    /// What a record takes beyond its content (RFC 8446 section 5.2; RFC 5288, RFC 6655, RFC 7905). `None`: of CBC,
    /// whose padding varies.
    fn overhead(self, is_tls13: bool) -> Option<u8> {
        let tag = match self {
            Self::Gcm | Self::Ccm | Self::ChaCha => 16,
            Self::Ccm8 => 8,
            Self::Cbc(_) => return None,
        };
        // TLS 1.3 seals the content's type with it; before, half of the nonce is sent, but not that of ChaCha20.
        Some(match self {
            _ if is_tls13 => tag + 1,
            Self::ChaCha => tag,
            _ => tag + 8,
        })
    }
}

/// What a record of this suite takes beyond its content, where that is always the same.
pub(in crate::tls) fn overhead(code: u16, version: Version) -> Option<u8> {
    Suite::of(code, version.0)?.bulk.overhead(version.is_tls13())
}

/// The HMAC of a CBC suite.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Mac1 {
    Sha1,
    Sha256,
    Sha384,
}

impl Mac1 {
    pub fn len(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
            Self::Sha384 => 48,
        }
    }

    /// The HMAC over `parts`, one after the other.
    pub fn of(self, key: &[u8], parts: &[&[u8]]) -> Option<Vec<u8>> {
        match self {
            Self::Sha1 => hmac::<Hmac<Sha1>>(key, parts),
            Self::Sha256 => hmac::<Hmac<Sha256>>(key, parts),
            Self::Sha384 => hmac::<Hmac<Sha384>>(key, parts),
        }
    }
}

/// The hash of TLS 1.3's key schedule, or the one behind the PRF.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Hash {
    /// TLS 1.1 and older.
    Md5Sha1,
    Sha256,
    Sha384,
}

/// A cipher suite, as far as opening its records goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Suite {
    pub bulk: Bulk,
    pub key_len: usize,
    pub hash: Hash,
}

impl Suite {
    /// `None` when its records cannot be opened here: RC4, DES, Camellia, ARIA …, and all of SSL 3.0.
    pub fn of(code: u16, version: u16) -> Option<Self> {
        let suite = TlsCipherSuite::from_id(code).filter(|_| version > 0x0300)?;
        let (bulk, key_len) = match (suite.enc, suite.enc_mode, suite.mac) {
            (TlsCipherEnc::Chacha20_Poly1305, ..) => (Bulk::ChaCha, 32),
            (TlsCipherEnc::Aes, mode, mac) => {
                let bulk = match (mode, mac) {
                    (TlsCipherEncMode::Gcm, _) => Bulk::Gcm,
                    (TlsCipherEncMode::Ccm, _) if suite.name.contains("CCM_8") => Bulk::Ccm8,
                    (TlsCipherEncMode::Ccm, _) => Bulk::Ccm,
                    (TlsCipherEncMode::Cbc, TlsCipherMac::HmacSha1) => Bulk::Cbc(Mac1::Sha1),
                    (TlsCipherEncMode::Cbc, TlsCipherMac::HmacSha256) => Bulk::Cbc(Mac1::Sha256),
                    (TlsCipherEncMode::Cbc, TlsCipherMac::HmacSha384) => Bulk::Cbc(Mac1::Sha384),
                    _ => return None,
                };
                (bulk, usize::from(suite.enc_size) / 8)
            }
            _ => return None,
        };
        let hash = match (version, suite.prf) {
            (..0x0303, _) => Hash::Md5Sha1,
            (_, TlsPRF::Sha384) => Hash::Sha384,
            _ => Hash::Sha256,
        };
        Some(Self { bulk, key_len, hash })
    }
}

fn hmac<M: Mac + KeyInit>(key: &[u8], parts: &[&[u8]]) -> Option<Vec<u8>> {
    let mut mac = M::new_from_slice(key).ok()?;
    parts.iter().for_each(|part| mac.update(part));
    Some(mac.finalize().into_bytes().to_vec())
}

/// `P_hash` of RFC 5246 section 5; `seed` is the label and the seed.
fn p_hash<M: Mac + KeyInit>(secret: &[u8], seed: &[u8], out: &mut [u8]) -> Option<()> {
    let mut a = hmac::<M>(secret, &[seed])?;
    let mut rest = out;
    while !rest.is_empty() {
        let block = hmac::<M>(secret, &[&a, seed])?;
        let (now, later) = rest.split_at_mut(rest.len().min(block.len()));
        now.iter_mut().zip(&block).for_each(|(slot, byte)| *slot ^= byte);
        rest = later;
        a = hmac::<M>(secret, &[&a])?;
    }
    Some(())
}

/// `key_block` of RFC 5246 section 6.3.
pub(super) fn key_block(
    hash: Hash,
    master: &[u8],
    client: &[u8; 32],
    server: &[u8; 32],
    len: usize,
) -> Option<Vec<u8>> {
    let seed = [b"key expansion".as_slice(), server, client].concat();
    let mut block = vec![0; len];
    match hash {
        Hash::Sha256 => p_hash::<Hmac<Sha256>>(master, &seed, &mut block)?,
        Hash::Sha384 => p_hash::<Hmac<Sha384>>(master, &seed, &mut block)?,
        Hash::Md5Sha1 => {
            // Two halves, which share the middle byte if there is one.
            let half = master.len().div_ceil(2);
            p_hash::<Hmac<Md5>>(master.get(..half)?, &seed, &mut block)?;
            p_hash::<Hmac<Sha1>>(master.get(master.len() - half..)?, &seed, &mut block)?;
        }
    }
    Some(block)
}

/// HKDF-Expand-Label with an empty context (RFC 8446 section 7.1).
pub(crate) fn expand_label(hash: Hash, secret: &[u8], label: &str, len: usize) -> Option<Vec<u8>> {
    let mut info = u16::try_from(len).ok()?.to_be_bytes().to_vec();
    info.push(u8::try_from(6 + label.len()).ok()?);
    info.extend_from_slice(b"tls13 ");
    info.extend_from_slice(label.as_bytes());
    info.push(0);
    let mut out = vec![0; len];
    match hash {
        Hash::Sha384 => Hkdf::<Sha384>::from_prk(secret).ok()?.expand(&info, &mut out).ok()?,
        _ => Hkdf::<Sha256>::from_prk(secret).ok()?.expand(&info, &mut out).ok()?,
    }
    Some(out)
}

impl Hash {
    /// Length of a secret of TLS 1.3.
    pub fn len(self) -> usize {
        if self == Self::Sha384 { 48 } else { 32 }
    }
}
