//! Is this TLS? Judged from a stream's first bytes, on any port.
//!
//! In: the first bytes one side sent. Out: [`Sniff`]. Nothing is kept.

use super::record::{self, HANDSHAKE, MAX_BODY};

/// Verdict on a stream's first bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sniff {
    Tls,
    Other,
    /// Too few bytes to tell, and none speaks against TLS.
    More,
}

/// Do a stream's first bytes start a ClientHello or a ServerHello?
///
/// Accepts the SSLv2-compatible ClientHello of RFC 5246 appendix E.2 and that of SSLv2 itself.
#[must_use]
pub fn sniff(prefix: &[u8]) -> Sniff {
    if prefix.first().is_some_and(|byte| byte & 0x80 != 0) {
        return sniff_v2(prefix);
    }
    // Content type, version, length; message type and the upper byte of its 24-bit length.
    let fits: [fn(u8) -> bool; 7] = [
        |kind| u16::from(kind) == HANDSHAKE,
        |major| major == 3,
        |minor| minor <= 4,
        |high| u16::from(high) <= MAX_BODY >> 8,
        |_| true,
        |message| matches!(message, 1 | 2),
        |upper| upper <= 1,
    ];
    if prefix.iter().zip(fits).any(|(&byte, fits)| !fits(byte)) {
        return Sniff::Other;
    }
    if prefix.len() < fits.len() { Sniff::More } else { Sniff::Tls }
}

/// Are these the first bytes of a TLS record in the middle of a connection?
#[must_use]
pub fn sniff_midstream(prefix: &[u8]) -> Sniff {
    match record::plausible(prefix) {
        Some(true) => Sniff::Tls,
        Some(false) => Sniff::Other,
        None if prefix.first().is_some_and(|kind| !matches!(kind, 20..=23)) => Sniff::Other,
        None if prefix.get(1).is_some_and(|&major| major != 3) => Sniff::Other,
        None => Sniff::More,
    }
}

/// Message length, type 1, version, lengths of ciphers, session id and challenge: they must add up.
fn sniff_v2(prefix: &[u8]) -> Sniff {
    if prefix.get(2).is_some_and(|&message| message != 1) || prefix.get(3).is_some_and(|&v| v != 3 && v != 0) {
        return Sniff::Other;
    }
    let Some(&[high, low, _, major, minor, c1, c0, s1, s0, r1, r0]) = prefix.first_chunk::<11>() else {
        return Sniff::More;
    };
    let [length, ciphers, session, challenge] =
        [[high & 0x7f, low], [c1, c0], [s1, s0], [r1, r0]].map(|pair| u32::from(u16::from_be_bytes(pair)));
    let version = matches!((major, minor), (3, 0..=4) | (0, 2));
    let lengths = ciphers % 3 == 0 && ciphers > 0 && matches!(session, 0 | 16) && (16..=32).contains(&challenge);
    if version && lengths && length == 9 + ciphers + session + challenge { Sniff::Tls } else { Sniff::Other }
}
