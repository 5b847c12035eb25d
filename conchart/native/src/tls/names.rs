//! Codes on the wire and the names people know them by.
//!
//! In: numbers. Out: text as the tables show it; a code nobody registered stays visible as hex.

use std::borrow::Cow;

use tls_parser::TlsCipherSuite;

/// A name people know, or hex.
pub type Name = Cow<'static, str>;

/// A protocol version, by its code on the wire.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Version(pub(super) u16);

impl Version {
    pub(super) const SSL2: Self = Self(0x0002);
    pub(super) const TLS12: Self = Self(0x0303);
    pub(super) const TLS13: Self = Self(0x0304);

    /// TLS 1.3, its drafts (`0x7f..`), and what Facebook (`0xfb..`) and Google (`0x7e..`) deployed of them.
    #[must_use]
    pub fn is_tls13(self) -> bool {
        self == Self::TLS13 || matches!(self.0 >> 8, 0x7e | 0x7f | 0xfb)
    }

    /// `TLSv1.2` and so on; drafts of TLS 1.3 count as TLS 1.3.
    #[must_use]
    pub fn name(self) -> Name {
        match self.0 {
            0x0002 | 0x0200 => "SSLv2".into(),
            0x0300 => "SSLv3".into(),
            0x0301 => "TLSv1.0".into(),
            0x0302 => "TLSv1.1".into(),
            0x0303 => "TLSv1.2".into(),
            _ if self.is_tls13() => "TLSv1.3".into(),
            code => hex(code),
        }
    }
}

/// IANA's name of a cipher suite.
pub(super) fn cipher(code: u16) -> Name {
    TlsCipherSuite::from_id(code).map_or_else(|| hex(code), |suite| suite.name.into())
}

/// IANA's name of a supported group (registry "TLS Supported Groups").
pub(super) fn group(code: u16) -> Name {
    let name = match code {
        1 => "sect163k1",
        2 => "sect163r1",
        3 => "sect163r2",
        4 => "sect193r1",
        5 => "sect193r2",
        6 => "sect233k1",
        7 => "sect233r1",
        8 => "sect239k1",
        9 => "sect283k1",
        10 => "sect283r1",
        11 => "sect409k1",
        12 => "sect409r1",
        13 => "sect571k1",
        14 => "sect571r1",
        15 => "secp160k1",
        16 => "secp160r1",
        17 => "secp160r2",
        18 => "secp192k1",
        19 => "secp192r1",
        20 => "secp224k1",
        21 => "secp224r1",
        22 => "secp256k1",
        23 => "secp256r1",
        24 => "secp384r1",
        25 => "secp521r1",
        26 => "brainpoolP256r1",
        27 => "brainpoolP384r1",
        28 => "brainpoolP512r1",
        29 => "x25519",
        30 => "x448",
        31 => "brainpoolP256r1tls13",
        32 => "brainpoolP384r1tls13",
        33 => "brainpoolP512r1tls13",
        41 => "curveSM2",
        256 => "ffdhe2048",
        257 => "ffdhe3072",
        258 => "ffdhe4096",
        259 => "ffdhe6144",
        260 => "ffdhe8192",
        512 => "MLKEM512",
        513 => "MLKEM768",
        514 => "MLKEM1024",
        4587 => "SecP256r1MLKEM768",
        4588 => "X25519MLKEM768",
        4589 => "SecP384r1MLKEM1024",
        25497 => "X25519Kyber768Draft00",
        25498 => "SecP256r1Kyber768Draft00",
        _ => return hex(code),
    };
    name.into()
}

/// `fatal handshake_failure (40)` (RFC 8446 section 6, RFC 5246 section 7.2).
pub(super) fn alert(level: u8, description: u8) -> Box<str> {
    let level = match level {
        1 => "warning".to_owned(),
        2 => "fatal".to_owned(),
        _ => format!("level-{level}"),
    };
    let name = match description {
        0 => "close_notify",
        10 => "unexpected_message",
        20 => "bad_record_mac",
        21 => "decryption_failed",
        22 => "record_overflow",
        30 => "decompression_failure",
        40 => "handshake_failure",
        41 => "no_certificate",
        42 => "bad_certificate",
        43 => "unsupported_certificate",
        44 => "certificate_revoked",
        45 => "certificate_expired",
        46 => "certificate_unknown",
        47 => "illegal_parameter",
        48 => "unknown_ca",
        49 => "access_denied",
        50 => "decode_error",
        51 => "decrypt_error",
        52 => "too_many_cids_requested",
        60 => "export_restriction",
        70 => "protocol_version",
        71 => "insufficient_security",
        80 => "internal_error",
        86 => "inappropriate_fallback",
        90 => "user_canceled",
        100 => "no_renegotiation",
        109 => "missing_extension",
        110 => "unsupported_extension",
        111 => "certificate_unobtainable",
        112 => "unrecognized_name",
        113 => "bad_certificate_status_response",
        114 => "bad_certificate_hash_value",
        115 => "unknown_psk_identity",
        116 => "certificate_required",
        120 => "no_application_protocol",
        121 => "ech_required",
        _ => "unknown",
    };
    format!("{level} {name} ({description})").into()
}

/// Reserved values that clients sprinkle in so that servers stay tolerant (RFC 8701).
pub(super) fn is_grease(code: u16) -> bool {
    let [high, low] = code.to_be_bytes();
    high == low && low & 0x0f == 0x0a
}

fn hex(code: u16) -> Name {
    format!("0x{code:04x}").into()
}
