//! The messages of PostgreSQL's frontend/backend protocol 3, as far as they tell what is asked and how it ended.
//!
//! In: the beginning of a message. Out: its kind, the statement, names, an error's SQLSTATE. Rows, parameters
//! and passwords are not looked at. Nothing is kept here.

use crate::exchange::framed::{self, LengthField, Read};
use crate::exchange::reader::Verdict;
use crate::exchange::sql::{self, Dialect, TracedStatement};
use crate::exchange::statements::Statements;

/// Bytes of a statement that are looked at.
pub(super) const MAX_STATEMENT: usize = 8 * 1024;
/// Bytes that are looked at of messages with names, of errors, and of what begins a connection.
const MAX_NAMES: usize = 512;
/// Longest name of a statement or portal that is remembered: PostgreSQL cuts names to 63 bytes.
const MAX_NAME: usize = 64;
/// The longest message that is believed: PostgreSQL takes no more than this.
const MAX_LENGTH: usize = 1 << 30;
/// Where it has to be found out whether messages begin: a longer one is less likely than bytes that mean something else.
const MAX_BEGINNING: usize = 1 << 24;
/// The longest first message (`MAX_STARTUP_PACKET_LENGTH`).
const MAX_STARTUP: usize = 10_000;

/// Type, then a length that counts itself.
const HEAD: usize = 5;
const LENGTH: LengthField = LengthField { at: 1, width: 4, little_endian: false, uncounted: 1 };
const STARTUP_LENGTH: LengthField = LengthField { at: 0, width: 4, little_endian: false, uncounted: 0 };
const STARTUP_HEAD: usize = 8;

const CANCEL: u32 = 80_877_102;
const SSL: u32 = 80_877_103;
const GSS: u32 = 80_877_104;

/// What kind of message comes next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::exchange) enum Next {
    /// One of those that begin a connection and have no type.
    Startup,
    /// One byte that says whether encryption follows.
    Encryption,
    /// How much is told of its statements.
    Client(Statements),
    Server,
}

#[derive(Debug, Eq, PartialEq)]
pub(in crate::exchange) enum Message {
    // Of the client.
    Startup {
        database: Option<Box<str>>,
    },
    EncryptionRequest {
        gss: bool,
    },
    Cancel,
    Password,
    Query(TracedStatement),
    Parse {
        name: Box<[u8]>,
        traced: TracedStatement,
    },
    Bind {
        portal: Box<[u8]>,
        statement: Box<[u8]>,
    },
    /// Of a statement, else of a portal.
    Describe {
        statement: Option<Box<[u8]>>,
    },
    Close {
        statement: Option<Box<[u8]>>,
    },
    Execute {
        portal: Box<[u8]>,
    },
    Sync,
    Flush,
    FunctionCall,
    /// Data of COPY, and its end.
    Copy,
    Terminate,
    // Of the server.
    /// Encryption follows.
    Encryption {
        follows: bool,
    },
    /// The client has to say more to be let in.
    Challenge,
    /// Part of a response.
    Part,
    /// One step of the extended protocol is over.
    Complete,
    /// Rows are described: one step, too, where that was asked for.
    RowDescription,
    Error {
        status: Option<u32>,
        fatal: bool,
    },
    /// The server waits for the next request.
    Ready,
    /// It takes data.
    CopyIn,
    Notification {
        channel: Box<str>,
    },
    /// Notices and parameters, which may come at any time.
    Aside,
}

impl framed::Message for Message {
    type Context = Next;
    const FIRST: usize = 1;

    fn read(beginning: &[u8], all: bool, next: Next) -> Read<Self> {
        let (head, field) = match (next, beginning.first()) {
            (Next::Startup, _) => (STARTUP_HEAD, STARTUP_LENGTH),
            (Next::Encryption, Some(b'S' | b'G')) => return Read::Parsed(Self::Encryption { follows: true }, 1),
            (Next::Encryption, Some(b'N')) => return Read::Parsed(Self::Encryption { follows: false }, 1),
            (Next::Encryption, Some(b'E')) => (HEAD, LENGTH),
            (Next::Client(_), Some(kind)) if CLIENT.contains(kind) => (HEAD, LENGTH),
            (Next::Server, Some(kind)) if SERVER.contains(kind) => (HEAD, LENGTH),
            _ => return Read::Wrong,
        };
        if beginning.len() < head {
            return if all { Read::Wrong } else { Read::More { wanted: head, len: None } };
        }
        let longest = if next == Next::Startup { MAX_STARTUP } else { MAX_LENGTH };
        let Some(len) = field.read(beginning).filter(|len| (head..=longest).contains(len)) else {
            return Read::Wrong;
        };
        let wanted = len.min(wanted(next, beginning));
        if beginning.len() < wanted && !all {
            return Read::More { wanted, len: Some(len) };
        }
        let message = match next {
            Next::Startup => startup(beginning),
            Next::Client(statements) => client(beginning, len, statements),
            Next::Server | Next::Encryption => Some(server(beginning)),
        };
        message.map_or(Read::Wrong, |message| Read::Parsed(message, len))
    }
}

/// Types that each side sends.
const CLIENT: &[u8] = b"QPBDECSHFpdcfX";
const SERVER: &[u8] = b"RKSZ123TtnDCIsENAGHWdcVv";

/// Bytes that are to be looked at.
fn wanted(next: Next, beginning: &[u8]) -> usize {
    match (next, beginning.first()) {
        (Next::Startup, _) | (Next::Client(_), Some(b'B' | b'D' | b'E' | b'C')) => MAX_NAMES,
        (Next::Client(_), Some(b'Q' | b'P')) => MAX_STATEMENT,
        (Next::Server | Next::Encryption, Some(b'E' | b'A')) => MAX_NAMES,
        (Next::Server, Some(b'R')) => HEAD + 4,
        _ => HEAD,
    }
}

fn startup(message: &[u8]) -> Option<Message> {
    let (code, parameters) = message.get(4..)?.split_first_chunk()?;
    match u32::from_be_bytes(*code) {
        SSL => Some(Message::EncryptionRequest { gss: false }),
        GSS => Some(Message::EncryptionRequest { gss: true }),
        CANCEL => Some(Message::Cancel),
        version if version >> 16 == 3 => {
            let mut texts = parameters.split(|byte| *byte == 0);
            let (mut user, mut database) = (None, None);
            while let (Some(name), Some(value)) = (texts.next(), texts.next()) {
                match name {
                    b"database" => database = Some(value),
                    b"user" => user = Some(value),
                    _ => {}
                }
            }
            // PostgreSQL takes the user's name where none is given.
            let database = database.or(user).map(|name| String::from_utf8_lossy(name).into());
            Some(Message::Startup { database })
        }
        _ => None,
    }
}

fn client(message: &[u8], len: usize, statements: Statements) -> Option<Message> {
    let (kind, body) = (message.first()?, message.get(HEAD..)?);
    let cut = message.len() < len;
    Some(match kind {
        b'Q' => Message::Query(statement(body, cut, statements)),
        b'P' => {
            let (name, text) = text(body);
            Message::Parse { name, traced: statement(text, cut, statements) }
        }
        b'B' => {
            let (portal, rest) = text(body);
            Message::Bind { portal, statement: text(rest).0 }
        }
        b'D' => Message::Describe { statement: of_statement(body) },
        b'C' => Message::Close { statement: of_statement(body) },
        b'E' => Message::Execute { portal: text(body).0 },
        b'S' => Message::Sync,
        b'H' => Message::Flush,
        b'F' => Message::FunctionCall,
        b'p' => Message::Password,
        b'X' => Message::Terminate,
        _ => Message::Copy,
    })
}

/// The name of a statement; `None` of a portal.
fn of_statement(body: &[u8]) -> Option<Box<[u8]>> {
    body.strip_prefix(b"S").map(|rest| text(rest).0)
}

/// A statement ends with a NUL; behind it are the types of parameters.
fn statement(body: &[u8], cut: bool, statements: Statements) -> TracedStatement {
    let end = memchr::memchr(0, body);
    let text = end.and_then(|end| body.get(..end)).unwrap_or(body);
    sql::read(text, cut && end.is_none(), Dialect::PostgreSql, statements)
}

/// A text up to its NUL, and what follows.
fn text(body: &[u8]) -> (Box<[u8]>, &[u8]) {
    let end = memchr::memchr(0, body).unwrap_or(body.len());
    let name = body.get(..end.min(MAX_NAME)).unwrap_or_default();
    (name.into(), body.get(end + 1..).unwrap_or_default())
}

fn server(message: &[u8]) -> Message {
    let body = message.get(HEAD..).unwrap_or_default();
    match message.first() {
        Some(b'R') => match body.first_chunk().map(|code| u32::from_be_bytes(*code)) {
            // Passwords, GSSAPI, SASL; not: OK (0), the last word of SASL (12).
            Some(2..=11) => Message::Challenge,
            _ => Message::Part,
        },
        Some(b'1' | b'2' | b'3' | b'n' | b'C' | b'I' | b's') => Message::Complete,
        Some(b'T') => Message::RowDescription,
        Some(b'Z') => Message::Ready,
        Some(b'G') => Message::CopyIn,
        Some(b'E') => error(body),
        Some(b'A') => {
            let channel = text(body.get(4..).unwrap_or_default()).0;
            Message::Notification { channel: String::from_utf8_lossy(&channel).into() }
        }
        Some(b'N' | b'S') => Message::Aside,
        _ => Message::Part,
    }
}

fn error(body: &[u8]) -> Message {
    let (mut status, mut fatal) = (None, false);
    for field in body.split(|byte| *byte == 0) {
        match field.split_first() {
            Some((b'C', code)) => status = sqlstate(code),
            Some((b'V' | b'S', severity)) => fatal |= matches!(severity, b"FATAL" | b"PANIC"),
            _ => {}
        }
    }
    Message::Error { status, fatal }
}

/// Five digits and capitals, as a number to the base of 36.
pub(super) fn sqlstate(code: &[u8]) -> Option<u32> {
    let digit = |byte: &u8| if byte.is_ascii_lowercase() { None } else { char::from(*byte).to_digit(36) };
    let code: &[u8; 5] = code.try_into().ok()?;
    code.iter().try_fold(0, |number, byte| Some(number * 36 + digit(byte)?))
}

/// Does a connection begin like this?
pub(super) fn begins(prefix: &[u8]) -> Verdict {
    let Some((length, rest)) = prefix.split_first_chunk() else {
        return if [0, 0].starts_with(prefix.get(..2).unwrap_or(prefix)) { Verdict::More } else { Verdict::No };
    };
    let length = u32::from_be_bytes(*length);
    let is = |sure: bool| if sure { Verdict::Yes } else { Verdict::No };
    match rest.split_first_chunk() {
        Some((code, parameters)) => match u32::from_be_bytes(*code) {
            SSL | GSS => is(length == 8),
            CANCEL => is((16..=268).contains(&length)),
            version if version >> 16 != 3 || version & 0xffff >= 10 || !(9..=10_000).contains(&length) => Verdict::No,
            // Names of parameters are words. Kafka's Metadata begins with the same bytes, and goes on with a number.
            _ => parameters
                .first()
                .map_or(Verdict::More, |&byte| is(byte.is_ascii_graphic() || length == 9 && byte == 0)),
        },
        None if !(8..=10_000).contains(&length) => Verdict::No,
        None => {
            let codes = [&[4, 0xd2, 0x16][..], &[0, 3, 0]];
            if codes.iter().any(|code| code.starts_with(rest)) { Verdict::More } else { Verdict::No }
        }
    }
}

/// Does a packet begin with messages of that side? Each has to look like what its type says.
pub(super) fn goes_on(prefix: &[u8], asks: bool) -> Verdict {
    if prefix.is_empty() {
        return Verdict::More;
    }
    let kinds = if asks { CLIENT } else { SERVER };
    let mut rest = prefix;
    loop {
        let Some(kind) = rest.first() else {
            return Verdict::Yes;
        };
        if !kinds.contains(kind) {
            return Verdict::No;
        }
        let Some(len) = LENGTH.read(rest) else {
            // Only where whole messages came before.
            return match rest.len() < HEAD {
                true if rest.len() < prefix.len() => Verdict::Yes,
                true => Verdict::More,
                false => Verdict::No,
            };
        };
        let body = rest.get(HEAD..len.min(rest.len())).unwrap_or_default();
        let Some(fits) = looks_right(*kind, body, len, asks) else {
            return if rest.len() < prefix.len() { Verdict::Yes } else { Verdict::More };
        };
        if !fits {
            return Verdict::No;
        }
        match rest.get(len..) {
            Some(after) => rest = after,
            None => return Verdict::Yes,
        }
    }
}

/// `None`: too little of it is there.
fn looks_right(kind: u8, body: &[u8], len: usize, asks: bool) -> Option<bool> {
    if len > MAX_BEGINNING {
        return Some(false);
    }
    let is_text = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t') || *byte >= 0x80;
    let content = len - HEAD;
    Some(match (asks, kind) {
        (true, b'S' | b'H' | b'X' | b'c') | (false, b'1' | b'2' | b'3' | b'n' | b'I' | b's' | b'c') => content == 0,
        (false, b'Z') => content == 1 && matches!(body.first()?, b'I' | b'T' | b'E'),
        (true, b'Q') => {
            content > 1 && is_text(body.first()?) && body.iter().take(8).all(|byte| is_text(byte) || *byte == 0)
        }
        (true, b'P' | b'B' | b'E') => content >= 2 && body.iter().take_while(|byte| **byte != 0).all(is_text),
        (true, b'p') => (1..=MAX_STARTUP).contains(&content),
        (true, b'D' | b'C') => content >= 2 && matches!(body.first()?, b'S' | b'P'),
        (false, b'C') => content > 1 && body.first()?.is_ascii_uppercase(),
        (false, b'E' | b'N') => content > 1 && *body.first()? == b'S' && body.get(1)?.is_ascii_alphabetic(),
        (false, b'T') => content >= 2 && (content - 2) / 19 >= usize::from(u16::from_be_bytes(*body.first_chunk()?)),
        (false, b'D') => content >= 2 && (content - 2) / 4 >= usize::from(u16::from_be_bytes(*body.first_chunk()?)),
        (false, b'R') => content >= 4 && body.first_chunk::<3>()? == &[0; 3],
        (false, b'S') => content >= 2 && body.first()?.is_ascii_alphabetic(),
        _ => content >= 1,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_sqlstate_is_a_number_to_the_base_of_36() {
        assert_eq!(sqlstate(b"00000"), Some(0));
        assert_eq!(sqlstate(b"42P01"), Some(((4 * 36 + 2) * 36 + 25) * 36 * 36 + 1));
        assert_eq!(sqlstate(b"ZZZZZ"), Some(36_u32.pow(5) - 1));
        assert_eq!((sqlstate(b"42p01"), sqlstate(b"42P0"), sqlstate(b"42P-1")), (None, None, None));
    }

    #[test]
    fn a_beginning_is_a_length_and_a_known_code() {
        for (bytes, yes) in [
            (&b"\0\0\0\x08\x04\xd2\x16\x2f"[..], true),
            (b"\0\0\0\x08\x04\xd2\x16\x30", true),
            (b"\0\0\0\x10\x04\xd2\x16\x2eabcdabcd", true),
            (b"\0\0\0\x29\0\x03\0\0user\0", true),
            (b"\0\0\0\x09\x04\xd2\x16\x2f", false),
            (b"\0\0\0\x29\0\x02\0\0user\0", false),
            (b"\0\0\x06\x04\0\0\0\0\0", false),
        ] {
            assert_eq!(begins(bytes) == Verdict::Yes, yes, "{}", bytes.escape_ascii());
            if yes {
                assert!((0..8).all(|cut| begins(bytes.get(..cut).unwrap()) == Verdict::More));
            }
        }
    }

    #[test]
    fn messages_have_to_look_like_their_type() {
        for (bytes, asks, yes) in [
            (&b"Z\0\0\0\x05I"[..], false, true),
            (b"Z\0\0\0\x05x", false, false),
            (b"1\0\0\0\x042\0\0\0\x04", false, true),
            (b"1\0\0\0\x04xyz", false, false),
            (b"Q\0\0\0\x0dSELECT 1\0", true, true),
            (b"Q\0\0\0\x0d\x01ELECT 1\0", true, false),
            (b"GET / HTTP/1.1\r\n", true, false),
            // A packet of MySQL's compressed protocol: "p", and the length of a message of 960 MiB.
            (b"p<\0\x04\0\x49\x7a\xb7\xb9\xd3", true, false),
            (b"p\0\0\0\x0dpassword\0", true, true),
            (b"SSH-2.0-OpenSSH", false, false),
        ] {
            assert_eq!(goes_on(bytes, asks) == Verdict::Yes, yes, "{}", bytes.escape_ascii());
        }
    }
}
