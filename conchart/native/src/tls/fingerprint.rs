//! Fingerprints of a ClientHello: JA3 (Salesforce, BSD-3) and JA4 (FoxIO, the part under BSD-3).
//!
//! In: a whole [`ClientHello`]. Out: text. GREASE (RFC 8701) never counts.
//!
//! A capture holds thousands of hellos of few programs, and three digests cost more than all the rest
//! of a handshake: the last fingerprints are remembered by what they depend on.

use std::cell::RefCell;
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::RandomState;
use md5::Md5;
use sha2::{Digest, Sha256};

use super::hello::{ClientHello, codes};
use super::names::is_grease;
use crate::bytes::{decimal_digits, hex_digits};

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
    pub ja3: Arc<str>,
    pub ja4: Arc<str>,
}

thread_local! {
    static LATEST: RefCell<Latest> = RefCell::default();
}

/// What is remembered.
#[derive(Default)]
struct Latest {
    /// Most programs say the same each time: a keyed hash of it tells, without looking at what counts. Latest last.
    hellos: Vec<(u64, Fingerprints)>,
    key: RandomState,
    ja3: Memory,
    ja4: Memory,
}

/// The last fingerprints of one kind, each with all that it depends on; latest last.
///
/// Browsers put GREASE and, since 2023, extensions at random places: what does not count is not in it, so that such
/// hellos are alike to JA4. (To JA3 they are not: it depends on the order.)
#[derive(Default)]
struct Memory {
    recent: Vec<(Box<[u16]>, Arc<str>)>,
    /// Room for what the next one is made of.
    material: Vec<u16>,
    /// How many had to be worked out.
    #[cfg(test)]
    worked_out: usize,
}

impl Memory {
    /// The fingerprint of what `write` gives, which `work_out` makes where it is not known.
    fn recall(&mut self, write: impl FnOnce(&mut Vec<u16>), work_out: impl FnOnce() -> Box<str>) -> Arc<str> {
        self.material.clear();
        write(&mut self.material);
        if let Some((_, print)) = self.recent.iter().rev().find(|(of, _)| **of == *self.material) {
            return Arc::clone(print);
        }
        #[cfg(test)]
        {
            self.worked_out += 1;
        }
        let print = Arc::from(work_out());
        if self.recent.len() >= REMEMBERED {
            self.recent.remove(0);
        }
        self.recent.push((self.material.as_slice().into(), Arc::clone(&print)));
        print
    }
}

/// The fingerprints of a hello; `over` is what carried it.
pub(super) fn of(hello: &ClientHello<'_>, over: Transport) -> Fingerprints {
    LATEST.with_borrow_mut(|Latest { hellos, key, ja3: threes, ja4: fours }| {
        let offered = (hello.version, hello.ciphers, hello.groups, hello.point_formats, hello.versions);
        let extended = (hello.signature_algorithms, hello.protocols().next(), &hello.extensions);
        let hash = key.hash_one((over as u8, offered, extended));
        if let Some((_, prints)) = hellos.iter().rev().find(|(of, _)| *of == hash) {
            return prints.clone();
        }
        let found = Fingerprints {
            ja3: threes.recall(|material| write_ja3(hello, material), || ja3(hello)),
            ja4: fours.recall(|material| write_ja4(hello, over, material), || ja4(hello, over)),
        };
        if hellos.len() >= REMEMBERED {
            hellos.remove(0);
        }
        hellos.push((hash, found.clone()));
        found
    })
}

/// How many fingerprints this thread had to work out: JA3 and JA4.
#[cfg(test)]
pub(super) fn worked_out() -> (usize, usize) {
    LATEST.with_borrow(|latest| (latest.ja3.worked_out, latest.ja4.worked_out))
}

/// All that a JA3 depends on: lists, each with its length behind it.
fn write_ja3(hello: &ClientHello<'_>, material: &mut Vec<u16>) {
    material.push(hello.version);
    push_list(material, codes(hello.ciphers));
    push_list(material, hello.extensions.iter().copied());
    push_list(material, codes(hello.groups));
    push_list(material, hello.point_formats.iter().copied().map(u16::from));
}

/// All that a JA4 depends on, as [`write_ja3`].
fn write_ja4(hello: &ClientHello<'_>, over: Transport, material: &mut Vec<u16>) {
    material.extend([over as u16, highest_version(hello)]);
    let ciphers = push_list(material, codes(hello.ciphers));
    material.get_mut(ciphers).into_iter().for_each(<[u16]>::sort_unstable);
    let extensions = push_list(material, hello.extensions.iter().copied());
    material.get_mut(extensions).into_iter().for_each(<[u16]>::sort_unstable);
    push_list(material, codes(hello.signature_algorithms));
    // A list of nothing but GREASE is one.
    material.push(hello.signature_algorithms.is_empty().into());
    let protocol = hello.protocols().next().unwrap_or_default();
    let ends = protocol.first().zip(protocol.last());
    material.extend(ends.map(|(&first, &last)| u16::from_be_bytes([first, last])));
}

/// Adds the codes that are no GREASE, and how many they are; returns where they stand.
fn push_list(material: &mut Vec<u16>, list: impl Iterator<Item = u16>) -> Range<usize> {
    let from = material.len();
    material.extend(list.filter(|&code| !is_grease(code)));
    let to = material.len();
    material.push(u16::try_from(to - from).unwrap_or(u16::MAX));
    from..to
}

/// The highest version offered, as a code.
fn highest_version(hello: &ClientHello<'_>) -> u16 {
    codes(hello.versions).filter(|&code| !is_grease(code)).max().unwrap_or(hello.version)
}

/// MD5 over `version,ciphers,extensions,groups,point formats` in decimal.
fn ja3(hello: &ClientHello<'_>) -> Box<str> {
    let mut text = String::with_capacity(512);
    text.extend(decimal_digits(hello.version).map(char::from));
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
    let version = match highest_version(hello) {
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
    let ([high, _], [_, low]) = (hex_digits(first), hex_digits(last));
    [high, low].map(char::from).iter().collect()
}

fn digest(text: &str) -> String {
    if text.is_empty() {
        return EMPTY.to_owned();
    }
    let mut digits = hex(&Sha256::digest(text.as_bytes()));
    digits.truncate(EMPTY.len());
    digits
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        text.extend(hex_digits(*byte).map(char::from));
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
        // A hello has a hundred codes: the formatting machinery would be what they cost.
        text.extend(decimal_digits(code).map(char::from));
    }
}
