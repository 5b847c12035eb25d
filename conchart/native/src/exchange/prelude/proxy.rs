//! The PROXY protocol's header, versions 1 and 2 (haproxy.org, proxy-protocol.txt section 2).
//!
//! In: a stream's first bytes. Out: how long the header is.

use memchr::memchr;

use super::Length;
use crate::exchange::sniffers::Verdict;

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

fn begin_alike(a: &[u8], b: &[u8]) -> bool {
    a.iter().zip(b).all(|(a, b)| a == b)
}
