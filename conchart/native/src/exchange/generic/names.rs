//! Knows protocols that nobody reads here by what they say first: those that may go on with TLS (STARTTLS).
//!
//! In: a stream's first bytes, of either side. Out: verdicts for the table of sniffers. Nothing is kept.

use memchr::memchr;
use memchr::memmem::find;

use crate::exchange::reader::Verdict;

pub(in crate::exchange) fn imap(prefix: &[u8]) -> Verdict {
    words(prefix, &[b"* OK", b"* PREAUTH"])
}

/// RFC 4253 section 4.2: both sides begin so.
pub(in crate::exchange) fn ssh(prefix: &[u8]) -> Verdict {
    words(prefix, &[b"SSH-"])
}

/// RFC 6143 section 7.1.1.
pub(in crate::exchange) fn vnc(prefix: &[u8]) -> Verdict {
    words(prefix, &[b"RFB 00"])
}

pub(in crate::exchange) fn pop3(prefix: &[u8]) -> Verdict {
    words(prefix, &[b"+OK"])
}

/// `220` greets on SMTP (RFC 5321 section 4.2) and on FTP; most say which.
pub(in crate::exchange) fn smtp(prefix: &[u8]) -> Verdict {
    greeting(prefix, b"SMTP", b"FTP")
}

/// RFC 959 section 5.4.
pub(in crate::exchange) fn ftp(prefix: &[u8]) -> Verdict {
    greeting(prefix, b"FTP", b"SMTP")
}

pub(in crate::exchange) fn xmpp(prefix: &[u8]) -> Verdict {
    match prefix {
        [b'<', ..] if find(prefix, b"<stream:stream").is_some() => Verdict::Yes,
        [] | [b'<', ..] => Verdict::More,
        _ => Verdict::No,
    }
}

/// First words that tell everything.
fn words(prefix: &[u8], words: &[&[u8]]) -> Verdict {
    if words.iter().any(|words| prefix.starts_with(words)) {
        Verdict::Yes
    } else if words.iter().any(|words| words.starts_with(prefix)) {
        Verdict::More
    } else {
        Verdict::No
    }
}

/// A greeting that names its protocol, and not first another one.
fn greeting(prefix: &[u8], name: &[u8], rival: &[u8]) -> Verdict {
    let Verdict::Yes = words(prefix, &[b"220"]) else {
        return words(prefix, &[b"220"]);
    };
    let line = prefix.to_ascii_uppercase();
    if find(&line, name).is_some() {
        Verdict::Yes
    } else if find(&line, rival).is_some() || memchr(b'\n', prefix).is_some() {
        Verdict::No
    } else {
        Verdict::More
    }
}

#[cfg(test)]
mod tests {
    use crate::exchange::reader::{Carrier, Start};
    use crate::exchange::sniffers::{Judgement, judge};

    /// What the table says: `None` with too few bytes to tell.
    fn name(prefix: &[u8]) -> Option<&'static str> {
        match judge(Carrier::Stream, prefix, Start::Beginning, false) {
            Judgement::Row(row) => row.protocol,
            Judgement::None => Some("unknown"),
            Judgement::More => None,
        }
    }

    #[test]
    fn first_words_name_their_protocol() {
        for (words, protocol) in [
            (&b"220 mail.example ESMTP ready\r\n"[..], "smtp"),
            (b"220 (vsFTPd 3.0.3)\r\n", "ftp"),
            (b"* OK IMAP4rev1\r\n", "imap"),
            (b"+OK ready\r\n", "pop3"),
            (b"SSH-2.0-OpenSSH_9.6\r\n", "ssh"),
            (b"RFB 003.008\n", "vnc"),
            (b"<?xml version='1.0'?><stream:stream to='x'>", "xmpp"),
        ] {
            assert_eq!(name(words), Some(protocol));
            for cut in 1..words.len() {
                let early = name(words.get(..cut).unwrap_or_default());
                assert!(early.is_none_or(|early| early == protocol), "{protocol} {cut}");
            }
        }
        assert_eq!(name(b"220 hi\r\n"), Some("unknown"));
    }
}
