//! The PROXY protocol's header, versions 1 and 2 (haproxy.org, proxy-protocol.txt section 2).
//!
//! In: a stream's first bytes. Out: how long the header is, and which client it names.

use std::net::IpAddr;

use memchr::memchr;

use super::Length;
use crate::exchange::reader::Verdict;
use crate::packet::Endpoint;

const V1: &[u8] = b"PROXY ";
/// What may follow it.
const FAMILIES: [&[u8]; 3] = [b"TCP4 ", b"TCP6 ", b"UNKNOWN"];
/// The longest line of version 1, with its CRLF.
const MAX_LINE: usize = 107;
const V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// Does a stream begin with a PROXY header?
pub(in crate::exchange) fn sniff(prefix: &[u8]) -> Verdict {
    match length(prefix) {
        Length::Is(_) => Verdict::Yes,
        Length::Broken => Verdict::No,
        Length::More => {
            let line = prefix.strip_prefix(V1).is_some_and(|after| FAMILIES.iter().any(|f| after.starts_with(f)));
            if line { Verdict::Yes } else { Verdict::More }
        }
    }
}

pub(super) fn length(header: &[u8]) -> Length {
    if let Some(after) = header.strip_prefix(V1) {
        return match memchr(b'\n', header) {
            Some(end) if end < MAX_LINE && FAMILIES.iter().any(|f| after.starts_with(f)) => Length::Is(end + 1),
            None if header.len() < MAX_LINE && FAMILIES.iter().any(|f| begin_alike(after, f)) => Length::More,
            _ => Length::Broken,
        };
    }
    match header.strip_prefix(V2) {
        // Version 2, LOCAL or PROXY; family; length of what follows.
        Some(&[0x20 | 0x21, _, high, low, ..]) => {
            Length::Is(V2.len() + 4 + usize::from(u16::from_be_bytes([high, low])))
        }
        Some([] | [0x20 | 0x21] | [0x20 | 0x21, _] | [0x20 | 0x21, _, _]) => Length::More,
        None if V1.starts_with(header) || V2.starts_with(header) => Length::More,
        _ => Length::Broken,
    }
}

/// The client that a whole header names: none for a proxy that speaks for itself, or where no TCP or UDP was.
pub(super) fn client(header: &[u8]) -> Option<Endpoint> {
    const LOCAL: u8 = 0x20;
    if let Some(after) = header.strip_prefix(V1) {
        let mut words = str::from_utf8(after).ok()?.split_ascii_whitespace();
        let is_six = match words.next()? {
            "TCP4" => false,
            "TCP6" => true,
            _ => return None,
        };
        let ip: IpAddr = words.next()?.parse().ok()?;
        let port = words.nth(1)?.parse().ok()?;
        return (ip.is_ipv6() == is_six).then_some(Endpoint { ip, port });
    }
    let (&[command, family, length_high, length_low], addresses) = header.strip_prefix(V2)?.split_first_chunk::<4>()?;
    // What follows the addresses are extensions.
    let addresses = addresses.get(..u16::from_be_bytes([length_high, length_low]).into()).unwrap_or(addresses);
    // Source, destination, and their ports.
    let (ip, ports): (IpAddr, _) = match family {
        _ if command == LOCAL => return None,
        0x11 | 0x12 => (<[u8; 4]>::into(*addresses.first_chunk()?), addresses.get(8..12)?),
        0x21 | 0x22 => (<[u8; 16]>::into(*addresses.first_chunk()?), addresses.get(32..36)?),
        _ => return None,
    };
    Some(Endpoint { ip, port: u16::from_be_bytes(*ports.first_chunk()?) })
}

fn begin_alike(a: &[u8], b: &[u8]) -> bool {
    a.iter().zip(b).all(|(a, b)| a == b)
}
