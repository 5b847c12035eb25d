//! How MySQL's protocol begins, and how it goes on where the beginning is missing.
//!
//! In: the first bytes of a connection or of a packet of TCP. Out: verdicts for the table of sniffers. Nothing is kept.

use super::message::{HEAD, LENGTH, Packet, SSL_REQUEST};
use crate::exchange::reader::Verdict;

/// Does a server begin a connection like this? A version, or why it ends it.
pub(super) fn greets(prefix: &[u8]) -> Verdict {
    match prefix {
        [_, _, 0, 0, 10, b'1'..=b'9', ..] | [_, _, 0, 0, 0xff, _, 3..=19, b'#' | b'A'..=b'Z', ..] => Verdict::Yes,
        [] | [_] | [_, _] | [_, _, 0] | [_, _, 0, 0] | [_, _, 0, 0, 10 | 0xff] => Verdict::More,
        [_, _, 0, 0, 0xff, _] | [_, _, 0, 0, 0xff, _, 3..=19] => Verdict::More,
        _ => Verdict::No,
    }
}

/// Does a client go on like this inside TLS, where its request for TLS was outside?
pub(super) fn logs_in(prefix: &[u8]) -> Verdict {
    // Sequence number 2, capabilities, the largest packet, a character set, 19 zeros.
    let fits = prefix.iter().enumerate().all(|(at, byte)| match at {
        2 => *byte == 0,
        3 => *byte == 2,
        5 => *byte & 0x0a == 0x0a,
        13..=31 => *byte == 0,
        _ => true,
    });
    match fits {
        true if prefix.len() < SSL_REQUEST => Verdict::More,
        true => Verdict::Yes,
        false => Verdict::No,
    }
}

/// Does a packet begin with messages of that side? Each has to look like what its kind says.
pub(super) fn goes_on(prefix: &[u8], asks: bool) -> Verdict {
    let mut rest = prefix;
    loop {
        let whole_before = rest.len() < prefix.len();
        let Some((head, body)) = rest.split_first_chunk::<HEAD>() else {
            return if whole_before { Verdict::Yes } else { Verdict::More };
        };
        let len = LENGTH.read(head).unwrap_or(HEAD) - HEAD;
        let body = body.get(..len).unwrap_or(body);
        let after = rest.get(HEAD + len..);
        let fits = match len {
            0 => Some(false),
            _ if asks => looks_like_command(head[3], body, len),
            _ => looks_like_answer(head[3], body, len, after),
        };
        match (fits, after) {
            (Some(false), _) => return Verdict::No,
            (None, _) if !whole_before => return Verdict::More,
            (None, _) | (Some(true), None) => return Verdict::Yes,
            // Rows follow, which do not look like anything.
            (Some(true), Some(_)) if !asks => return Verdict::Yes,
            (Some(true), Some([])) => return Verdict::Yes,
            (Some(true), Some(after)) => rest = after,
        }
    }
}

/// First words of statements.
const WORDS: &[&str] = &[
    "ALTER",
    "ANALYZE",
    "BEGIN",
    "CALL",
    "CHECK",
    "COMMIT",
    "CREATE",
    "DELETE",
    "DESC",
    "DO",
    "DROP",
    "EXECUTE",
    "EXPLAIN",
    "FLUSH",
    "GRANT",
    "INSERT",
    "KILL",
    "LOAD",
    "LOCK",
    "OPTIMIZE",
    "PREPARE",
    "RELEASE",
    "RENAME",
    "REPLACE",
    "REVOKE",
    "ROLLBACK",
    "SAVEPOINT",
    "SELECT",
    "SET",
    "SHOW",
    "START",
    "TRUNCATE",
    "UNLOCK",
    "UPDATE",
    "USE",
    "WITH",
    "XA",
];

/// `None`: too little of it is there.
fn looks_like_command(sequence: u8, body: &[u8], len: usize) -> Option<bool> {
    if sequence != 0 {
        return Some(false);
    }
    let (kind, rest) = body.split_first()?;
    let statement = rest.strip_prefix(&[0, 1]).unwrap_or(rest);
    let small = |at: usize| rest.get(at..at + 4).map(|number| number.ends_with(&[0, 0]));
    Some(match kind {
        0x0e | 0x1f => len == 1,
        0x03 | 0x16 if len > 3 => {
            if statement.len() < 10 && body.len() < len {
                return None;
            }
            let word = statement.trim_ascii_start();
            WORDS.iter().any(|keyword| {
                let (first, then) = word.split_at_checked(keyword.len()).unwrap_or((word, &[]));
                first.eq_ignore_ascii_case(keyword.as_bytes()) && then.first().is_none_or(|next| *next <= b';')
            })
        }
        0x02 if (2..=65).contains(&len) => rest.iter().all(|byte| byte.is_ascii_graphic()),
        0x17 if len >= 10 => *rest.get(4)? < 16 && rest.get(5..9)? == [1, 0, 0, 0],
        0x19 | 0x1a if len == 5 => small(0)?,
        0x1c if len == 9 => small(0)? && small(4)?,
        _ => false,
    })
}

/// `None`: too little of it is there. `after`: what follows the packet.
fn looks_like_answer(sequence: u8, body: &[u8], len: usize, after: Option<&[u8]>) -> Option<bool> {
    let packet = Packet::of(body, len);
    let first = packet.first()?;
    let ends = |longest| if len > longest { Some(false) } else { after.map(<[u8]>::is_empty) };
    Some(match first {
        _ if sequence == 0 => false,
        0xff if len > 9 => {
            let has_sqlstate = (3..=19).contains(body.get(2)?) && *body.get(3)? == b'#';
            has_sqlstate && body.get(4..9)?.iter().all(u8::is_ascii_alphanumeric)
        }
        0xfe if len == 5 => sequence > 2 && *body.get(4)? < 0x80 && ends(5)?,
        0xfe if len >= 7 => sequence > 2 && packet.had > 6 && packet.flags_of_ok() & 0x8002 == 2 && ends(60)?,
        // A statement is prepared: its number, how many columns and parameters are described, a zero.
        0x00 if sequence == 1 && matches!(len, 12 | 13) && body.get(9)? == &0 => {
            body.get(3..5)? == [0, 0] && body.get(6)? < &16 && begins_columns(sequence, after?) != Some(false)
        }
        0x00 if len >= 7 => sequence == 1 && packet.had > 6 && packet.flags_of_ok() & 0x8002 == 2 && ends(60)?,
        1..0xfb if len == 1 => begins_columns(sequence, after?)?,
        _ => false,
    })
}

/// Does a description of a column follow? Its catalog is "def".
fn begins_columns(before: u8, rest: &[u8]) -> Option<bool> {
    match rest {
        [_, _, 0, next, 3, b'd', b'e', b'f', ..] => Some(*next == before.wrapping_add(1)),
        [_, _, 0, _, 3, b'd', b'e'] | [_, _, 0, _, 3, b'd'] | [_, _, 0, _, 3] | [_, _, 0, _] | [_, _, 0] => None,
        [_, _] | [_] | [] => None,
        _ => Some(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_to_look_like_their_kind() {
        for (bytes, asks, yes) in [
            (&b"\x09\0\0\0\x03SELECT 1"[..], true, true),
            (b"\x0b\0\0\0\x03\0\x01SELECT 1", true, true),
            (b"\x09\0\0\0\x03SELECTED", true, false),
            (b"\x01\0\0\0\x0e", true, true),
            (b"\x01\0\0\0\x0e\x01\0\0\0\x0e", true, true),
            (b"\x01\0\0\0\x0eGET /", true, false),
            (b"\x07\0\0\x01\0\0\0\x02\0\0\0", false, true),
            (b"\x07\0\0\x01\0\0\0\x02\0\0\0!", false, false),
            (b"\x0c\0\0\x01\0\x05\0\0\0\x01\0\x02\0\0\0\0", false, true),
            (b"\x05\0\0\x05\xfe\0\0\x02\0", false, true),
            (b"\x01\0\0\x01\x01\x17\0\0\x02\x03def", false, true),
            (b"\x01\0\0\x01\x01\x17\0\0\x03\x03def", false, false),
            (b"\x1a\0\0\x01\xff\x7a\x04#42S02no such table", false, true),
            (b"GET / HTTP/1.1\r\n", true, false),
            (b"SSH-2.0-OpenSSH", false, false),
        ] {
            assert_eq!(goes_on(bytes, asks) == Verdict::Yes, yes, "{}", bytes.escape_ascii());
        }
    }
}
