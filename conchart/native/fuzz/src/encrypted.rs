//! A client and a server of TLS 1.3 whose secrets are known: what they say is sealed as RFC 8446 section 5 has it.
//!
//! `TLS_AES_128_GCM_SHA256`; the secrets are one byte, repeated, so the key log is short and the same for all.

use std::sync::OnceLock;

use aes_gcm::Aes128Gcm;
use aes_gcm::aead::{AeadInOut, KeyInit, Nonce};
use conchart_native::{BySide, Keys, Side};
use hkdf::Hkdf;
use sha2::Sha256;

pub const HANDSHAKE: u8 = 22;

/// The client's random of [`client_hello`].
const RANDOM: u8 = 0x11;

/// What a secret is for.
#[derive(Clone, Copy)]
pub enum Epoch {
    Handshake,
    Traffic,
}

/// Seals the records of one direction.
#[derive(Clone)]
pub struct Sealer {
    secret: Vec<u8>,
    key: Aes128Gcm,
    iv: [u8; 12],
    sequence: u64,
}

fn expand<const N: usize>(secret: &[u8], label: &str) -> [u8; N] {
    let mut out = [0; N];
    let name = format!("tls13 {label}");
    let info = [&[0, N as u8, name.len() as u8], name.as_bytes(), &[0]].concat();
    let hkdf = Hkdf::<Sha256>::from_prk(secret).expect("a secret of 32 bytes");
    hkdf.expand(&info, &mut out).expect("a short output");
    out
}

impl Sealer {
    fn new(secret: Vec<u8>) -> Self {
        let key = Aes128Gcm::new_from_slice(&expand::<16>(&secret, "key")).expect("a key of 16 bytes");
        let iv = expand(&secret, "iv");
        Self { secret, key, iv, sequence: 0 }
    }

    /// One record of at most 2^14 bytes of content.
    pub fn seal(&mut self, kind: u8, content: &[u8], padding: usize) -> Vec<u8> {
        let content = &content[..content.len().min(1 << 14)];
        let mut inner = content.to_vec();
        inner.push(kind);
        inner.resize(inner.len() + padding.min((1 << 14) - content.len()), 0);
        let len = u16::try_from(inner.len() + 16).expect("at most 2^14 bytes and 17");
        let header = [&[23, 3, 3][..], &len.to_be_bytes()].concat();
        let mut nonce = self.iv;
        nonce[4..].iter_mut().zip(self.sequence.to_be_bytes()).for_each(|(slot, byte)| *slot ^= byte);
        self.sequence += 1;
        let nonce = Nonce::<Aes128Gcm>::from(nonce);
        let tag = self.key.encrypt_inout_detached(&nonce, &header, inner.as_mut_slice().into());
        [header, inner, tag.expect("a short record").to_vec()].concat()
    }

    /// The keys after a KeyUpdate (RFC 8446 section 7.2).
    pub fn update(&mut self) {
        *self = Self::new(expand::<32>(&self.secret, "traffic upd").to_vec());
    }
}

fn secret(side: Side, epoch: Epoch) -> u8 {
    match (side, epoch) {
        (Side::Client, Epoch::Handshake) => 0xc1,
        (Side::Server, Epoch::Handshake) => 0x51,
        (Side::Client, Epoch::Traffic) => 0xc2,
        (Side::Server, Epoch::Traffic) => 0x52,
    }
}

/// Both sides' sealers of an epoch. Deriving the keys costs more than anything else here: once is enough.
#[must_use]
pub fn sealers(epoch: Epoch) -> BySide<Sealer> {
    static SEALERS: OnceLock<[BySide<Sealer>; 2]> = OnceLock::new();
    let made = |epoch| {
        let of = |side| Sealer::new(vec![secret(side, epoch); 32]);
        BySide { client: of(Side::Client), server: of(Side::Server) }
    };
    let both = SEALERS.get_or_init(|| [made(Epoch::Handshake), made(Epoch::Traffic)]);
    both[match epoch {
        Epoch::Handshake => 0,
        Epoch::Traffic => 1,
    }]
    .clone()
}

/// The key log of this connection. `without`: bits for the lines that are missing.
#[must_use]
pub fn keys(without: u8) -> Keys {
    let lines = [
        ("CLIENT_HANDSHAKE_TRAFFIC_SECRET", secret(Side::Client, Epoch::Handshake)),
        ("SERVER_HANDSHAKE_TRAFFIC_SECRET", secret(Side::Server, Epoch::Handshake)),
        ("CLIENT_TRAFFIC_SECRET_0", secret(Side::Client, Epoch::Traffic)),
        ("SERVER_TRAFFIC_SECRET_0", secret(Side::Server, Epoch::Traffic)),
    ];
    let keys = Keys::default();
    for (at, (label, byte)) in lines.into_iter().enumerate() {
        if without >> at & 1 == 0 {
            let hex = |byte: u8| format!("{byte:02x}").repeat(32);
            keys.add(format!("{label} {} {}", hex(RANDOM), hex(byte)).as_bytes());
        }
    }
    keys
}

fn vec16(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u16).to_be_bytes(), body].concat()
}

/// A handshake message (RFC 8446 section 4).
#[must_use]
pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let [_, len @ ..] = (body.len() as u32).to_be_bytes();
    [&[kind], &len[..], body].concat()
}

/// A record that is not sealed.
#[must_use]
pub fn record(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind, 3, 3], &vec16(body)[..]].concat()
}

/// A ClientHello of TLS 1.3 that offers what [`server_hello`] takes.
#[must_use]
pub fn client_hello() -> Vec<u8> {
    let versions = [0, 43, 0, 3, 2, 3, 4];
    let body = [&[3, 3], &[RANDOM; 32][..], &[0], &vec16(&[0x13, 1]), &[1, 0], &vec16(&versions)].concat();
    record(HANDSHAKE, &message(1, &body))
}

#[must_use]
pub fn server_hello() -> Vec<u8> {
    let versions = [0, 43, 0, 2, 3, 4];
    let body = [&[3, 3], &[0x22; 32][..], &[0, 0x13, 1, 0], &vec16(&versions)].concat();
    record(HANDSHAKE, &message(2, &body))
}
