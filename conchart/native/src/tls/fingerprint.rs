//! Fingerprints of a ClientHello: JA3 (Salesforce, BSD-3) and JA4 (FoxIO, the part under BSD-3).
//!
//! In: a whole [`ClientHello`]. Out: text. GREASE (RFC 8701) never counts.
//!
//! A capture holds thousands of hellos of few programs, and three digests cost more than all the rest
//! of a handshake: the last fingerprints are remembered by what they are made of.

use std::cell::RefCell;

use md5::Md5;
use sha2::{Digest, Sha256};

use super::hello::{ClientHello, codes};
use super::names::is_grease;

const SERVER_NAME: u16 = 0;
const ALPN: u16 = 16;
const EMPTY: &str = "000000000000";

/// Programs whose fingerprints are remembered.
const REMEMBERED: usize = 32;

/// What carries a handshake: JA4 begins with it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Transport {
    #[default]
    Tcp,
    Quic,
}

/// JA3 and JA4 of one kind of hello.
#[derive(Clone)]
pub(super) struct Fingerprints {
    pub ja3: Box<str>,
    pub ja4: Box<str>,
}

thread_local! {
    /// What a fingerprint is made of, and the fingerprint; latest last.
    static LATEST: RefCell<Vec<(Vec<u8>, Fingerprints)>> = const { RefCell::new(Vec::new()) };
}

/// The fingerprints of a hello; `over` is what carried it.
pub(super) fn of(hello: &ClientHello<'_>, over: Transport) -> Fingerprints {
    let material = material(hello, over);
    LATEST.with_borrow_mut(|latest| {
        if let Some((_, known)) = latest.iter().rev().find(|(of, _)| *of == material) {
            return known.clone();
        }
        let found = Fingerprints { ja3: ja3(hello), ja4: ja4(hello, over) };
        if latest.len() >= REMEMBERED {
            latest.remove(0);
        }
        latest.push((material, found.clone()));
        found
    })
}

/// Every byte that a fingerprint depends on, each list with its length.
fn material(hello: &ClientHello<'_>, over: Transport) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(512);
    bytes.push(over as u8);
    bytes.extend(hello.version.to_be_bytes());
    for list in [
        hello.ciphers,
        hello.groups,
        hello.point_formats,
        hello.versions,
        hello.signature_algorithms,
        hello.protocols().next().unwrap_or_default(),
    ] {
        bytes.extend(list.len().to_be_bytes());
        bytes.extend(list);
    }
    bytes.extend(hello.extensions.iter().flat_map(|code| code.to_be_bytes()));
    bytes
}

/// MD5 over `version,ciphers,extensions,groups,point formats` in decimal.
fn ja3(hello: &ClientHello<'_>) -> Box<str> {
    let mut text = String::with_capacity(512);
    push_decimal(&mut text, hello.version);
    text.push(',');
    push_decimals(&mut text, codes(hello.ciphers));
    text.push(',');
    push_decimals(&mut text, hello.extensions.iter().copied());
    text.push(',');
    push_decimals(&mut text, codes(hello.groups));
    text.push(',');
    push_decimals(&mut text, hello.point_formats.iter().copied().map(u16::from));
    hex(&Md5::digest(text.as_bytes())).into()
}

/// `t13d1516h2_8daaf6152771_e5627efa2ab1`: what is offered, sorted ciphers, sorted extensions.
fn ja4(hello: &ClientHello<'_>, over: Transport) -> Box<str> {
    let mut ciphers: Vec<u16> = codes(hello.ciphers).filter(|&code| !is_grease(code)).collect();
    let mut extensions: Vec<u16> = hello.extensions.iter().copied().filter(|&code| !is_grease(code)).collect();
    let version = codes(hello.versions).filter(|&code| !is_grease(code)).max().unwrap_or(hello.version);
    let version = match version {
        0x0304 => "13",
        0x0303 => "12",
        0x0302 => "11",
        0x0301 => "10",
        0x0300 => "s3",
        0x0002 => "s2",
        _ => "00",
    };
    let name = if extensions.contains(&SERVER_NAME) { 'd' } else { 'i' };
    let transport = match over {
        Transport::Tcp => 't',
        Transport::Quic => 'q',
    };
    let (offered, extended) = (ciphers.len().min(99), extensions.len().min(99));
    let head = format!("{transport}{version}{name}{offered:02}{extended:02}{}", alpn(hello));

    ciphers.sort_unstable();
    extensions.retain(|&code| code != SERVER_NAME && code != ALPN);
    extensions.sort_unstable();
    let mut offered = hex_list(extensions.iter().copied());
    if !offered.is_empty() && !hello.signature_algorithms.is_empty() {
        offered.push('_');
        offered.push_str(&hex_list(codes(hello.signature_algorithms).filter(|&code| !is_grease(code))));
    }
    format!("{head}_{}_{}", digest(&hex_list(ciphers.iter().copied())), digest(&offered)).into()
}

/// First and last character of the first protocol; of its hex form where they are not alphanumeric.
fn alpn(hello: &ClientHello<'_>) -> String {
    let protocol = hello.protocols().next().unwrap_or_default();
    let (Some(&first), Some(&last)) = (protocol.first(), protocol.last()) else {
        return "00".to_owned();
    };
    if first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() {
        return [char::from(first), char::from(last)].iter().collect();
    }
    [DIGITS.get(usize::from(first >> 4)), DIGITS.get(usize::from(last & 0x0f))]
        .into_iter()
        .flatten()
        .map(|&digit| char::from(digit))
        .collect()
}

fn digest(text: &str) -> String {
    if text.is_empty() {
        return EMPTY.to_owned();
    }
    let mut digits = hex(&Sha256::digest(text.as_bytes()));
    digits.truncate(EMPTY.len());
    digits
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

fn push_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        for nibble in [byte >> 4, byte & 0x0f] {
            text.extend(DIGITS.get(usize::from(nibble)).map(|&digit| char::from(digit)));
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    push_hex(&mut text, bytes);
    text
}

fn hex_list(list: impl Iterator<Item = u16>) -> String {
    let mut text = String::with_capacity(256);
    for code in list {
        if !text.is_empty() {
            text.push(',');
        }
        push_hex(&mut text, &code.to_be_bytes());
    }
    text
}

fn push_decimals(text: &mut String, list: impl Iterator<Item = u16>) {
    let mut first = true;
    for code in list.filter(|&code| !is_grease(code)) {
        if !std::mem::take(&mut first) {
            text.push('-');
        }
        push_decimal(text, code);
    }
}

/// Decimal digits without the formatting machinery: a hello has a hundred codes.
fn push_decimal(text: &mut String, code: u16) {
    let mut unit = 10_000;
    while unit > 1 && code < unit {
        unit /= 10;
    }
    while unit > 0 {
        text.extend(DIGITS.get(usize::from(code / unit % 10)).map(|&digit| char::from(digit)));
        unit /= 10;
    }
}
