//! The handshake messages that state facts: ClientHello, ServerHello and a few others.
//!
//! Wire format: RFC 8446 section 4.1 and 4.2, RFC 5246 section 7.4, RFC 5246 appendix E.2 (SSLv2 form),
//! RFC 8422 section 5.4. In: messages, possibly cut short. Out: what is known of them, borrowed ([`Body`]).
//! A body that ends early gives everything before its end.

use super::messages::{Message, message};
use super::names::{Version, is_grease};
use crate::bytes::Fields;

/// SHA-256 of "HelloRetryRequest" (RFC 8446 section 4.1.3).
const RETRY_RANDOM: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11,
    0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

mod extension {
    pub const SERVER_NAME: u16 = 0;
    pub const SUPPORTED_GROUPS: u16 = 10;
    pub const EC_POINT_FORMATS: u16 = 11;
    pub const SIGNATURE_ALGORITHMS: u16 = 13;
    pub const ALPN: u16 = 16;
    pub const ENCRYPT_THEN_MAC: u16 = 22;
    /// RFC 8449.
    pub const RECORD_SIZE_LIMIT: u16 = 28;
    pub const SESSION_TICKET: u16 = 35;
    /// `key_share` up to draft 22.
    pub const KEY_SHARE_DRAFT: u16 = 40;
    pub const PRE_SHARED_KEY: u16 = 41;
    pub const EARLY_DATA: u16 = 42;
    pub const SUPPORTED_VERSIONS: u16 = 43;
    pub const PSK_KEY_EXCHANGE_MODES: u16 = 45;
    pub const POST_HANDSHAKE_AUTH: u16 = 49;
    pub const KEY_SHARE: u16 = 51;
    /// RFC 9001 section 8.2.
    pub const QUIC_TRANSPORT_PARAMETERS: u16 = 57;
    /// The same of drafts.
    pub const QUIC_TRANSPORT_PARAMETERS_DRAFT: u16 = 0xffa5;
    pub const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;
    /// `application_settings`, old and new code point (draft-vvv-tls-alps).
    pub const APPLICATION_SETTINGS: [u16; 2] = [17513, 17613];
}

/// Extensions of a ClientHello, mostly; browsers send a few less.
const USUAL_EXTENSIONS: usize = 20;

/// What a handshake message says.
#[derive(Clone, Debug)]
pub(super) enum Body<'a> {
    ClientHello(ClientHello<'a>),
    ServerHello(ServerHello<'a>),
    /// The message of that name, of drafts.
    HelloRetryRequest,
    EncryptedExtensions(EncryptedExtensions<'a>),
    EndOfEarlyData,
    /// Read with [`certificates`] or [`certificates13`].
    Certificate(&'a [u8]),
    CompressedCertificate,
    ServerKeyExchange {
        /// Where the exchange is ECDHE.
        named_curve: Option<u16>,
    },
    CertificateRequest,
    ServerHelloDone,
    /// Of TLS 1.2 and older (RFC 5077 section 3.3).
    NewSessionTicket {
        ticket: &'a [u8],
    },
    Finished,
    /// Nothing that counts here, or too little of it.
    Other,
}

impl<'a> Body<'a> {
    pub fn read(message: &Message<'a>) -> Self {
        let body = message.body;
        match message.kind {
            message::CLIENT_HELLO => Self::ClientHello(ClientHello::read(body, message.length)),
            message::SERVER_HELLO => ServerHello::read(body, message.length).map_or(Self::Other, Self::ServerHello),
            message::HELLO_RETRY_REQUEST => Self::HelloRetryRequest,
            message::ENCRYPTED_EXTENSIONS => Self::EncryptedExtensions(EncryptedExtensions::read(body)),
            message::END_OF_EARLY_DATA => Self::EndOfEarlyData,
            message::CERTIFICATE => Self::Certificate(body),
            message::COMPRESSED_CERTIFICATE => Self::CompressedCertificate,
            message::SERVER_KEY_EXCHANGE => Self::ServerKeyExchange { named_curve: named_curve(body) },
            message::CERTIFICATE_REQUEST => Self::CertificateRequest,
            message::SERVER_HELLO_DONE => Self::ServerHelloDone,
            message::NEW_SESSION_TICKET => {
                let mut fields = Fields(body);
                let ticket = fields.take(4).and_then(|_lifetime| fields.vec16());
                ticket.map_or(Self::Other, |ticket| Self::NewSessionTicket { ticket })
            }
            message::FINISHED => Self::Finished,
            _ => Self::Other,
        }
    }
}

/// The extensions of a hello: (type, body); stops where the bytes stop.
fn extensions(mut hello: Fields<'_>) -> impl Iterator<Item = (u16, &[u8])> {
    let announced = hello.u16().unwrap_or(0);
    let mut fields = Fields(hello.take_up_to(usize::from(announced)));
    std::iter::from_fn(move || Some((fields.u16()?, fields.vec16()?)))
}

/// The 16-bit codes of a list.
pub(super) fn codes(list: &[u8]) -> impl Iterator<Item = u16> + '_ {
    list.chunks_exact(2).filter_map(|pair| pair.first_chunk().copied().map(u16::from_be_bytes))
}

/// A ClientHello, as far as it could be read.
#[derive(Clone, Debug, Default)]
pub(super) struct ClientHello<'a> {
    /// `legacy_version`.
    pub version: u16,
    pub random: Option<[u8; 32]>,
    pub session_id: &'a [u8],
    /// Lists of 16-bit codes: read with [`codes`].
    pub ciphers: &'a [u8],
    pub groups: &'a [u8],
    pub signature_algorithms: &'a [u8],
    pub versions: &'a [u8],
    /// The entries of `key_share`: read with [`ClientHello::key_shares`].
    pub shares: &'a [u8],
    pub point_formats: &'a [u8],
    /// Types, in order of appearance.
    pub extensions: Vec<u16>,
    pub server_name: Option<&'a [u8]>,
    /// The protocols offered by ALPN, each with its length: read with [`ClientHello::protocols`].
    pub alpn: Option<&'a [u8]>,
    /// A session ticket of at least one byte.
    pub ticket: Option<&'a [u8]>,
    /// An identity for a session, or a key that was agreed on elsewhere.
    pub psk: bool,
    pub early_data: bool,
    pub application_settings: bool,
    /// `encrypted_client_hello` of type outer (RFC 9849 section 5): real, or grease.
    pub ech: bool,
    /// It would prove who it is later, too (RFC 8446 section 4.2.6).
    pub post_handshake_auth: bool,
    /// QUIC: its transport parameters.
    pub parameters: Option<&'a [u8]>,
    /// Every field could be read: fingerprints make sense.
    pub whole: bool,
}

impl<'a> ClientHello<'a> {
    /// Reads the body of a ClientHello whose announced length is `length`.
    pub fn read(body: &'a [u8], length: u32) -> Self {
        let mut hello = Self::default();
        let whole = u64::from(length) == body.len() as u64;
        hello.whole = hello.read_fields(Fields(body)).is_some() && whole;
        hello
    }

    /// The names of the protocols offered by ALPN, in order.
    pub fn protocols(&self) -> impl Iterator<Item = &'a [u8]> {
        let mut fields = Fields(self.alpn.unwrap_or_default());
        std::iter::from_fn(move || fields.vec8())
    }

    /// The groups of its key shares, in order.
    pub fn key_shares(&self) -> impl Iterator<Item = u16> {
        let mut fields = Fields(self.shares);
        std::iter::from_fn(move || {
            let group = fields.u16()?;
            fields.vec16().map(|_share| group)
        })
        .filter(|&group| !is_grease(group))
    }

    /// The highest version that it offers: `supported_versions` over `legacy_version`, which says nothing where the
    /// extensions could not be read to their end.
    pub fn highest_version(&self) -> Option<Version> {
        let offered = codes(self.versions).filter(|&code| !is_grease(code)).map(Version);
        let highest = offered.max_by_key(|version| if version.is_tls13() { Version::TLS13.0 } else { version.0 });
        highest.or(self.whole.then_some(Version(self.version)))
    }

    /// Does it say that its sender takes session tickets: of TLS 1.3 (RFC 8446 section 4.2.9), or of older versions
    /// (RFC 5077 section 3.2)?
    pub fn takes_tickets(&self, is_tls13: bool) -> Option<bool> {
        let asks = if is_tls13 { extension::PSK_KEY_EXCHANGE_MODES } else { extension::SESSION_TICKET };
        self.certain(self.extensions.contains(&asks))
    }

    /// Does it limit the size of records?
    pub fn record_size_limit(&self) -> bool {
        self.extensions.contains(&extension::RECORD_SIZE_LIMIT)
    }

    /// What an extension says is known by its presence, or where all of them were read.
    pub fn certain(&self, present: bool) -> Option<bool> {
        (self.whole || present).then_some(present)
    }

    fn read_fields(&mut self, mut fields: Fields<'a>) -> Option<()> {
        self.version = fields.u16()?;
        self.random = fields.take(32)?.first_chunk().copied();
        self.session_id = fields.vec8()?;
        self.ciphers = fields.vec16()?;
        fields.vec8()?;
        self.extensions.reserve(USUAL_EXTENSIONS);
        for (kind, body) in extensions(fields) {
            self.extensions.push(kind);
            self.read_extension(kind, Fields(body));
        }
        Some(())
    }

    /// A malformed extension is skipped: the others still count.
    fn read_extension(&mut self, kind: u16, mut body: Fields<'a>) -> Option<()> {
        match kind {
            extension::SERVER_NAME => {
                let mut names = Fields(body.vec16()?);
                if names.u8()? == 0 {
                    self.server_name = names.vec16();
                }
            }
            extension::SUPPORTED_GROUPS => self.groups = body.vec16()?,
            extension::EC_POINT_FORMATS => self.point_formats = body.vec8()?,
            extension::SIGNATURE_ALGORITHMS => self.signature_algorithms = body.vec16()?,
            extension::ALPN => self.alpn = body.vec16(),
            extension::SESSION_TICKET => self.ticket = Some(body.0).filter(|ticket| !ticket.is_empty()),
            extension::PRE_SHARED_KEY => self.psk = true,
            extension::KEY_SHARE | extension::KEY_SHARE_DRAFT => self.shares = body.vec16()?,
            extension::EARLY_DATA => self.early_data = true,
            extension::SUPPORTED_VERSIONS => self.versions = body.vec8()?,
            // 0 is the outer hello, 1 the inner one, which is never seen in clear.
            extension::POST_HANDSHAKE_AUTH => self.post_handshake_auth = true,
            extension::QUIC_TRANSPORT_PARAMETERS | extension::QUIC_TRANSPORT_PARAMETERS_DRAFT => {
                self.parameters = Some(body.0);
            }
            extension::ENCRYPTED_CLIENT_HELLO => self.ech = body.u8()? == 0,
            _ => self.application_settings |= extension::APPLICATION_SETTINGS.contains(&kind),
        }
        Some(())
    }
}

/// A ServerHello or a HelloRetryRequest.
#[derive(Clone, Debug)]
pub(super) struct ServerHello<'a> {
    /// The version in use: `supported_versions` over `legacy_version`.
    pub version: Version,
    pub retry: bool,
    pub random: Option<[u8; 32]>,
    pub session_id: &'a [u8],
    pub cipher: Option<u16>,
    pub group: Option<u16>,
    pub alpn: Option<&'a [u8]>,
    pub psk: bool,
    /// RFC 7366.
    pub encrypt_then_mac: bool,
    /// Nothing of it was cut off.
    pub whole: bool,
}

impl<'a> ServerHello<'a> {
    /// Reads the body of a ServerHello of that length; `None` when not even the version is there.
    pub fn read(body: &'a [u8], length: u32) -> Option<Self> {
        let mut fields = Fields(body);
        let mut hello = Self {
            version: Version(fields.u16()?),
            retry: false,
            random: None,
            session_id: &[],
            cipher: None,
            group: None,
            alpn: None,
            psk: false,
            encrypt_then_mac: false,
            whole: u64::from(length) == body.len() as u64,
        };
        hello.read_fields(fields);
        Some(hello)
    }

    fn read_fields(&mut self, mut fields: Fields<'a>) -> Option<()> {
        self.random = fields.take(32)?.first_chunk().copied();
        self.retry = self.random == Some(RETRY_RANDOM);
        // Drafts before 22 had neither session id nor compression, and no 0x0303 to look like TLS 1.2.
        let draft = self.version == Version::TLS13 || self.version.0 >> 8 == 0x7f;
        if !draft {
            self.session_id = fields.vec8()?;
        }
        self.cipher = Some(fields.u16()?);
        if !draft {
            fields.u8()?;
        }
        for (kind, body) in extensions(fields) {
            let mut fields = Fields(body);
            match kind {
                extension::SUPPORTED_VERSIONS => self.version = fields.u16().map_or(self.version, Version),
                extension::KEY_SHARE | extension::KEY_SHARE_DRAFT => self.group = fields.u16(),
                extension::ALPN => self.alpn = fields.vec16().and_then(|list| Fields(list).vec8()),
                extension::PRE_SHARED_KEY => self.psk = true,
                extension::ENCRYPT_THEN_MAC => self.encrypt_then_mac = true,
                _ => {}
            }
        }
        Some(())
    }
}

/// Number of certificates in a Certificate message of TLS 1.2 or older.
pub(super) fn certificates(body: &[u8]) -> Option<u32> {
    let mut fields = Fields(body);
    let length = fields.u24()?;
    let mut list = Fields(fields.take(length)?);
    let mut count = 0;
    while !list.0.is_empty() {
        let length = list.u24()?;
        list.take(length)?;
        count += 1;
    }
    Some(count)
}

/// Number of certificates in a Certificate message of TLS 1.3, whose entries have extensions.
pub(super) fn certificates13(body: &[u8]) -> Option<u32> {
    let mut fields = Fields(body);
    fields.vec8()?;
    let length = fields.u24()?;
    let mut list = Fields(fields.take(length)?);
    let mut count = 0;
    while !list.0.is_empty() {
        let length = list.u24()?;
        list.take(length)?;
        list.vec16()?;
        count += 1;
    }
    Some(count)
}

/// What the EncryptedExtensions of TLS 1.3 say.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EncryptedExtensions<'a> {
    pub alpn: Option<&'a [u8]>,
    /// The server takes the early data.
    pub early_data: bool,
    /// QUIC: the token of a stateless reset.
    pub reset_token: Option<[u8; 16]>,
    /// QUIC: its transport parameters.
    pub parameters: Option<&'a [u8]>,
}

/// `stateless_reset_token` (RFC 9000 section 18.2).
const RESET_TOKEN: u64 = 2;

fn reset_token(parameters: &[u8]) -> Option<[u8; 16]> {
    let mut fields = Fields(parameters);
    loop {
        let (id, len) = (fields.varint()?, fields.varint()?);
        let value = fields.take(usize::try_from(len).ok()?)?;
        if id == RESET_TOKEN {
            return value.try_into().ok();
        }
    }
}

impl<'a> EncryptedExtensions<'a> {
    pub fn read(body: &'a [u8]) -> Self {
        let mut found = Self::default();
        for (kind, body) in extensions(Fields(body)) {
            match kind {
                extension::ALPN => found.alpn = Fields(body).vec16().and_then(|list| Fields(list).vec8()),
                extension::EARLY_DATA => found.early_data = true,
                extension::QUIC_TRANSPORT_PARAMETERS | extension::QUIC_TRANSPORT_PARAMETERS_DRAFT => {
                    (found.reset_token, found.parameters) = (reset_token(body), Some(body));
                }
                _ => {}
            }
        }
        found
    }
}

/// Named curve of an ECDHE ServerKeyExchange (curve type 3).
fn named_curve(body: &[u8]) -> Option<u16> {
    let mut fields = Fields(body);
    (fields.u8()? == 3).then(|| fields.u16()).flatten()
}
/// Does this NewSessionTicket of TLS 1.3, header included, allow early data (RFC 8446 section 4.6.1)? `None` where it is
/// cut short.
pub(super) fn allows_early_data(message: &[u8]) -> Option<bool> {
    const EARLY_DATA: u16 = 42;
    let mut rest = Fields(message);
    // Type and length, lifetime and what is added to the age; nonce; ticket.
    rest.take(4 + 4 + 4)?;
    rest.vec8()?;
    rest.vec16()?;
    let mut extensions = Fields(rest.vec16()?);
    let mut allows = false;
    while !extensions.0.is_empty() {
        let (kind, data) = (extensions.u16()?, extensions.vec16()?);
        allows |= kind == EARLY_DATA && Fields(data).u32()? > 0;
    }
    Some(allows)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::allows_early_data;

    #[test]
    fn a_ticket_says_whether_it_allows_early_data() {
        let with = |extensions: &[u8]| {
            let length = u16::try_from(extensions.len()).unwrap().to_be_bytes();
            [&b"\x04\0\0\x20\0\0\x1c\x20abcd\x02no\0\x03tkt"[..], &length, extensions].concat()
        };
        assert_eq!(allows_early_data(&with(b"")), Some(false));
        assert_eq!(allows_early_data(&with(b"\0\x2a\0\x04\0\0\0\0")), Some(false));
        assert_eq!(allows_early_data(&with(b"\x1a\x1a\0\0\0\x2a\0\x04\xff\xff\xff\xff")), Some(true));
        let whole = with(b"\0\x2a\0\x04\xff\xff\xff\xff");
        (0..whole.len()).for_each(|length| assert_eq!(allows_early_data(&whole[..length]), None, "{length}"));
    }
}
