//! SOCKS 4, 4a and 5 (RFC 1928, RFC 1929 for user names): how long each message is, and what it asks for.
//!
//! In: the first bytes of one message. Out: its length, and the target of a request. Later messages of version 5
//! tell by their first byte what they are, so that a client that does not wait for answers is understood too.

use std::net::{Ipv4Addr, Ipv6Addr};

use memchr::memchr;

use super::Length;
use crate::exchange::reader::Verdict;

const CONNECT_OR_BIND: std::ops::RangeInclusive<u8> = 1..=2;
/// First byte of the exchange of name and password (RFC 1929 section 2).
const PASSWORD: u8 = 1;
/// Refusal of all offered methods (RFC 1928 section 3).
const NO_METHOD: u8 = 0xff;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::exchange) enum Version {
    V4,
    V5,
}

/// Does a stream begin with the first message of a client of version 4?
pub(in crate::exchange) fn sniff_v4(prefix: &[u8]) -> Verdict {
    sniff(Version::V4, 4, prefix)
}

/// Does a stream begin with the first message of a client of version 5?
pub(in crate::exchange) fn sniff_v5(prefix: &[u8]) -> Verdict {
    sniff(Version::V5, 5, prefix)
}

fn sniff(version: Version, first: u8, prefix: &[u8]) -> Verdict {
    if prefix.first().is_some_and(|&byte| byte != first) {
        return Verdict::No;
    }
    match request_length(version, 0, prefix) {
        Length::Is(whole) if whole <= prefix.len() => Verdict::Yes,
        Length::Is(_) | Length::More => Verdict::More,
        Length::Broken => Verdict::No,
    }
}

/// Length of a client's message; `before` counts those before it.
pub(super) fn request_length(version: Version, before: u8, message: &[u8]) -> Length {
    match (version, before, message) {
        (Version::V4, ..) => request_length_v4(message),
        (Version::V5, _, []) => Length::More,
        (Version::V5, 0, [5]) => Length::More,
        (Version::V5, 0, [5, count @ 1..=u8::MAX, methods @ ..]) => {
            // Methods 0 to 9 are assigned, those from 0x80 are private.
            let offered = methods.get(..usize::from(*count)).unwrap_or(methods);
            let are_usual = offered.iter().all(|method| matches!(method, 0..=9 | 0x80..=0xfe));
            if are_usual { Length::Is(2 + usize::from(*count)) } else { Length::Broken }
        }
        (Version::V5, 0, _) => Length::Broken,
        (Version::V5, _, [5, rest @ ..]) => addressed(rest),
        (Version::V5, _, [PASSWORD, rest @ ..]) => {
            let Some((&name, rest)) = rest.split_first() else { return Length::More };
            match rest.get(usize::from(name)) {
                Some(&password) => Length::Is(3 + usize::from(name) + usize::from(password)),
                None => Length::More,
            }
        }
        (Version::V5, ..) => Length::Broken,
    }
}

/// Length of a server's message.
pub(super) fn response_length(version: Version, before: u8, message: &[u8]) -> Length {
    match (version, before, message) {
        (_, _, []) => Length::More,
        (Version::V4, _, [0, ..]) => Length::Is(8),
        (Version::V5, 0, [5, ..]) => Length::Is(2),
        (Version::V5, 1.., [5, rest @ ..]) => addressed(rest),
        (Version::V5, 1.., [PASSWORD, ..]) => Length::Is(2),
        _ => Length::Broken,
    }
}

/// Whose answer is this? That to the request ends the prelude, and so does a refusal to hear one.
pub(super) fn concludes(version: Version, before: u8, message: &[u8]) -> bool {
    version == Version::V4 || before > 0 && message.first() == Some(&5) || message.get(1) == Some(&NO_METHOD)
}

/// What a client's whole message asks to be connected with, as `host:port`.
pub(super) fn target(version: Version, before: u8, message: &[u8]) -> Option<Box<str>> {
    match version {
        Version::V4 => {
            let (&[_, _, high, low, a, b, c, d], rest) = message.split_first_chunk::<8>()?;
            let port = u16::from_be_bytes([high, low]);
            let host = match named(rest).filter(|_| is_4a([a, b, c, d])) {
                Some(name) => String::from_utf8_lossy(name).into_owned(),
                None => Ipv4Addr::new(a, b, c, d).to_string(),
            };
            Some(format!("{host}:{port}").into())
        }
        Version::V5 if before > 0 => {
            let (&[5, _, _, family], rest) = message.split_first_chunk::<4>()? else { return None };
            let (address, port) = rest.split_last_chunk::<2>()?;
            let host = match family {
                1 => Ipv4Addr::from(<[u8; 4]>::try_from(address).ok()?).to_string(),
                4 => format!("[{}]", Ipv6Addr::from(<[u8; 16]>::try_from(address).ok()?)),
                _ => String::from_utf8_lossy(address.get(1..)?).into_owned(),
            };
            Some(format!("{host}:{}", u16::from_be_bytes(*port)).into())
        }
        Version::V5 => None,
    }
}

/// Version, command, port, address, name of the user; with 4a also that of the target.
fn request_length_v4(message: &[u8]) -> Length {
    if message.get(1).is_some_and(|command| !CONNECT_OR_BIND.contains(command)) {
        return Length::Broken;
    }
    let Some((&[_, _, _, _, a, b, c, d], rest)) = message.split_first_chunk::<8>() else {
        return Length::More;
    };
    let names = if is_4a([a, b, c, d]) { 2 } else { 1 };
    let mut length = message.len() - rest.len();
    for _ in 0..names {
        let text = message.get(length..).unwrap_or_default();
        let end = memchr(0, text);
        // As much of it as is there: where TCP cut the message, it says the same.
        if text.get(..end.unwrap_or(text.len())).is_none_or(|name| name.iter().any(u8::is_ascii_control)) {
            return Length::Broken;
        }
        let Some(end) = end else { return Length::More };
        length += end + 1;
    }
    Length::Is(length)
}

/// An address that cannot be: the target is given by name.
fn is_4a(address: [u8; 4]) -> bool {
    matches!(address, [0, 0, 0, 1..=u8::MAX])
}

/// The second of two texts that end with a zero.
fn named(texts: &[u8]) -> Option<&[u8]> {
    texts.split(|&byte| byte == 0).nth(1)
}

/// What follows the version in requests and replies: a code, a reserved byte, family, address, port.
fn addressed(rest: &[u8]) -> Length {
    match rest {
        [_, 0, 1, ..] => Length::Is(10),
        [_, 0, 4, ..] => Length::Is(22),
        [_, 0, 3, name, ..] => Length::Is(7 + usize::from(*name)),
        [] | [_] | [_, 0] | [_, 0, 3] => Length::More,
        _ => Length::Broken,
    }
}
