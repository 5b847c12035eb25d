//! Names protocols that nobody reads here by what they say first: those that may go on with TLS (STARTTLS).
//!
//! In: a stream's first bytes, of either side. Out: a name, as in the tables. Nothing is kept.

use memchr::memchr;
use memchr::memmem::find;

use super::head::Guess;

/// First words that tell everything. PostgreSQL: SSLRequest, GSSENCRequest.
const FIRST_WORDS: [(&[u8], &str); 5] = [
    (b"* OK", "imap"),
    (b"* PREAUTH", "imap"),
    (b"+OK", "pop3"),
    (b"\0\0\0\x08\x04\xd2\x16\x2f", "postgresql"),
    (b"\0\0\0\x08\x04\xd2\x16\x30", "postgresql"),
];

/// Which of them is it? With [`Guess::More`], too few bytes to tell; `full`: more will not be looked at.
pub(super) fn sniff(prefix: &[u8], full: bool) -> (Guess, &'static str) {
    let yes = |name| (Guess::Yes, name);
    if let Some(&(_, name)) = FIRST_WORDS.iter().find(|(words, _)| prefix.starts_with(words)) {
        return yes(name);
    }
    let told = match prefix {
        [b'2', b'2', b'0', ..] => greeting(prefix),
        [b'<', ..] => find(prefix, b"<stream:stream").map(|_| "xmpp"),
        // Length, sequence number 0, protocol 10, version.
        [_, _, 0, 0, 10, b'1'..=b'9', ..] => Some("mysql"),
        [0x30, rest @ ..] => is_ldap(rest).then_some("ldap"),
        _ => None,
    };
    let may_tell = match prefix {
        [b'2'] | [b'2', b'2'] | [_] | [_, _] | [_, _, 0] | [_, _, 0, 0] | [_, _, 0, 0, 10] => true,
        [b'2', b'2', b'0', rest @ ..] => memchr(b'\n', rest).is_none(),
        [b'<', ..] => true,
        [0x30, ..] => prefix.len() < 12,
        _ => FIRST_WORDS.iter().any(|(words, _)| words.starts_with(prefix)),
    };
    match told {
        Some(name) => yes(name),
        None if may_tell && !full => (Guess::More, "unknown"),
        None => (Guess::No, "unknown"),
    }
}

/// `220` greets on SMTP (RFC 5321 section 4.2) and on FTP (RFC 959 section 5.4); most say which.
fn greeting(line: &[u8]) -> Option<&'static str> {
    let line = line.to_ascii_uppercase();
    let names: [(&[u8], &str); 2] = [(b"SMTP", "smtp"), (b"FTP", "ftp")];
    names.iter().find(|(word, _)| find(&line, word).is_some()).map(|(_, name)| *name)
}

/// A sequence of a message number and a bind, search or extended request (RFC 4511 section 4.1.1).
fn is_ldap(rest: &[u8]) -> bool {
    let message = match rest {
        [0x84, _, _, _, _, message @ ..] => message,
        [0x81, _, message @ ..] => message,
        [0..=0x7f, message @ ..] => message,
        _ => return false,
    };
    match message {
        [2, length @ 1..=4, number @ ..] => {
            matches!(number.get(usize::from(*length)), Some(0x60 | 0x63 | 0x77))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_words_name_their_protocol() {
        for (words, name) in [
            (&b"220 mail.example ESMTP ready\r\n"[..], "smtp"),
            (b"220 (vsFTPd 3.0.3)\r\n", "ftp"),
            (b"* OK IMAP4rev1\r\n", "imap"),
            (b"+OK ready\r\n", "pop3"),
            (b"<?xml version='1.0'?><stream:stream to='x'>", "xmpp"),
            (b"\0\0\0\x08\x04\xd2\x16\x2f", "postgresql"),
            (b"\x4a\0\0\0\x0a8.0.31\0", "mysql"),
            (b"\x30\x1d\x02\x01\x01\x77\x18\x80\x161.3.6.1.4.1.1466.20037", "ldap"),
        ] {
            assert_eq!(sniff(words, false), (Guess::Yes, name));
            for cut in 1..words.len() {
                let (guess, early) = sniff(words.get(..cut).unwrap_or_default(), false);
                assert!(guess != Guess::No && (guess == Guess::More || early == name), "{name} {cut}");
            }
        }
        assert_eq!(sniff(b"220 hi\r\n", false), (Guess::No, "unknown"));
        assert_eq!(sniff(b"\x30\x82abcdefghij", false), (Guess::No, "unknown"));
    }
}
