//! The packets of MySQL's protocol, as far as they tell what is asked and how it ended.
//!
//! In: the beginning of a packet. Out: of the client the command, the statement, numbers of statements; of the
//! server the greeting's version and what kind of packet it is. Rows, parameters and passwords are not looked at.
//! Nothing is kept here.

use crate::exchange::framed::{self, LengthField, Read};
use crate::exchange::sql::{self, Dialect, TracedStatement};
use crate::exchange::statements::{Statement, Statements};

/// Bytes of a statement that are looked at.
pub(super) const MAX_STATEMENT: usize = 8 * 1024;
/// Bytes that are looked at of what begins a connection.
const MAX_NAMES: usize = 512;
/// Bytes that are looked at of what the server says, without the head.
const ANSWER: usize = 24;
/// A packet of this length goes on in the next one.
const FULL: usize = 0xff_ffff;

/// Length, then a sequence number.
pub(super) const HEAD: usize = 4;
pub(super) const LENGTH: LengthField = LengthField { at: 0, width: 3, little_endian: true, uncounted: HEAD };
/// What asks for TLS is as long as what a login begins with.
pub(super) const SSL_REQUEST: usize = 32;

/// Capabilities that both sides have to know.
pub(super) mod capability {
    pub const WITH_DATABASE: u32 = 1 << 3;
    pub const COMPRESS: u32 = 1 << 5;
    pub const PROTOCOL_41: u32 = 1 << 9;
    pub const SSL: u32 = 1 << 11;
    pub const SECURE_CONNECTION: u32 = 1 << 15;
    pub const LONG_PASSWORD: u32 = 1 << 21;
    pub const NO_EOF: u32 = 1 << 24;
    pub const ZSTD: u32 = 1 << 26;
    pub const ATTRIBUTES: u32 = 1 << 27;
}

/// The server's state, as it says.
pub(super) mod flag {
    pub const MORE_RESULTS: u16 = 0x0008;
    pub const CURSOR: u16 = 0x0040;
    pub const NO_BACKSLASH_ESCAPES: u16 = 0x0200;
}

/// What kind of packet comes next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::exchange) enum Next {
    Login,
    /// What a client says to be let in.
    Password,
    /// The contents of a file.
    Data,
    Command {
        /// Query attributes come before a statement.
        attributes: bool,
        /// Backslashes in texts of SQL.
        escapes: bool,
        /// How much is told of a statement.
        statements: Statements,
    },
    /// The rest of what did not fit into one packet.
    GoesOn,
    Greeting,
    Server,
}

#[derive(Debug, Eq, PartialEq)]
pub(in crate::exchange) enum Says {
    // Of the client.
    Login {
        capabilities: u32,
        database: Option<Box<str>>,
    },
    SslRequest,
    Password,
    /// `last`: an empty packet.
    Data {
        last: bool,
    },
    Command(Command),
    // Of the server.
    Greeting {
        capabilities: u32,
        version: Box<str>,
    },
    Answer(Packet),
    /// The rest of a message.
    Rest,
}

/// A message, and whether it goes on in the next packet.
#[derive(Debug, Eq, PartialEq)]
pub(in crate::exchange) struct Message {
    pub says: Says,
    pub goes_on: bool,
}

#[derive(Debug, Eq, PartialEq)]
pub(in crate::exchange) enum Command {
    Query(TracedStatement),
    Prepare(TracedStatement),
    Execute(u32),
    Fetch(u32),
    LongData(u32),
    CloseStatement(u32),
    ResetStatement(u32),
    InitDatabase(Box<str>),
    ChangeUser {
        database: Option<Box<str>>,
    },
    FieldList(Box<str>),
    ProcessList,
    ResetConnection,
    BinlogDump,
    Quit,
    /// One packet answers it.
    Other(&'static str),
}

/// What the server says in answer to a command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::exchange) struct Packet {
    /// Length without the head.
    pub len: usize,
    bytes: [u8; ANSWER],
    pub had: usize,
}

/// What a packet may mean, where no row may stand.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::exchange) enum Answer {
    Ok {
        flags: u16,
    },
    Error {
        code: u16,
    },
    /// No more rows or columns. `classic`: an EOF packet, else an OK packet (`CLIENT_DEPRECATE_EOF`).
    End {
        flags: u16,
        classic: bool,
    },
    /// The client is asked for a file.
    Infile,
    /// The server tells how far it is (MariaDB).
    Progress,
    Other,
}

/// A statement was prepared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::exchange) struct Prepared {
    pub statement: u32,
    pub columns: u16,
    pub parameters: u16,
}

impl framed::Message for Message {
    type Context = Next;
    const FIRST: usize = HEAD;

    fn read(beginning: &[u8], all: bool, next: Next) -> Read<Self> {
        let Some(len) = LENGTH.read(beginning) else {
            return Read::Wrong;
        };
        let Some(body) = beginning.get(HEAD..) else {
            return if all { Read::Wrong } else { Read::More { wanted: HEAD, len: None } };
        };
        let wanted = len.min(wanted(next, body.first()));
        if beginning.len() < wanted && !all {
            return Read::More { wanted, len: Some(len) };
        }
        let payload = len - HEAD;
        let says = match next {
            Next::Login => login(body, payload),
            Next::Password => Some(Says::Password),
            Next::Data => Some(Says::Data { last: payload == 0 }),
            Next::Command { attributes, escapes, statements } if beginning.get(3) == Some(&0) => {
                command(body, payload, attributes, Dialect::MySql { escapes }, statements)
            }
            // Not the first packet of a command: the rest of what nobody saw begin.
            Next::Command { .. } | Next::GoesOn => Some(Says::Rest),
            Next::Greeting => greeting(body, payload),
            Next::Server => Some(Says::Answer(Packet::of(body, payload))),
        };
        let message = |says| Read::Parsed(Self { says, goes_on: payload == FULL }, len);
        says.map_or(Read::Wrong, message)
    }
}

/// Bytes that are to be looked at.
fn wanted(next: Next, first: Option<&u8>) -> usize {
    match (next, first) {
        (Next::Login | Next::Greeting, _) | (Next::Command { .. }, Some(0x02 | 0x04 | 0x11)) => MAX_NAMES,
        (Next::Command { .. }, Some(0x03 | 0x16)) => MAX_STATEMENT,
        (Next::Command { .. }, Some(_)) => HEAD + 5,
        // The command, then what it needs.
        (Next::Command { .. }, None) => HEAD + 1,
        (Next::Server, _) => HEAD + ANSWER,
        (Next::Password | Next::Data | Next::GoesOn, _) => HEAD,
    }
}

fn login(body: &[u8], len: usize) -> Option<Says> {
    let (low, rest) = body.split_first_chunk::<2>()?;
    let mut capabilities = u32::from(u16::from_le_bytes(*low));
    if capabilities & capability::PROTOCOL_41 == 0 {
        // MySQL before 4.1.
        let ssl = capabilities & capability::SSL != 0 && len == 5;
        return Some(if ssl { Says::SslRequest } else { Says::Login { capabilities, database: None } });
    }
    capabilities |= u32::from(u16::from_le_bytes(*rest.first_chunk()?)) << 16;
    if len == SSL_REQUEST && capabilities & capability::SSL != 0 {
        return Some(Says::SslRequest);
    }
    let database = body.get(SSL_REQUEST..).and_then(|rest| database_of_login(rest, capabilities));
    Some(Says::Login { capabilities, database })
}

fn database_of_login(rest: &[u8], capabilities: u32) -> Option<Box<str>> {
    if capabilities & capability::WITH_DATABASE == 0 {
        return None;
    }
    let (_, rest) = text(rest)?;
    let rest = if capabilities & capability::LONG_PASSWORD != 0 {
        let (len, rest) = number(rest)?;
        rest.get(usize::try_from(len).ok()?..)?
    } else {
        after_password(rest, capabilities)?
    };
    Some(to_text(text(rest)?.0)).filter(|name| !name.is_empty())
}

fn after_password(rest: &[u8], capabilities: u32) -> Option<&[u8]> {
    if capabilities & capability::SECURE_CONNECTION != 0 {
        let (len, rest) = rest.split_first()?;
        rest.get(usize::from(*len)..)
    } else {
        Some(text(rest)?.1)
    }
}

fn command(body: &[u8], len: usize, attributes: bool, dialect: Dialect, detail: Statements) -> Option<Says> {
    let (kind, rest) = body.split_first()?;
    let cut = body.len() < len;
    let statement = || rest.first_chunk().map(|number| u32::from_le_bytes(*number));
    Some(Says::Command(match kind {
        0x01 => Command::Quit,
        0x02 => Command::InitDatabase(to_text(rest)),
        0x03 => Command::Query(match after_attributes(rest, attributes) {
            Some(text) => sql::read(text, cut, dialect, detail),
            // Too long to be looked at.
            None => TracedStatement { statement: Statement::named(detail.name(Some("…".into()))), traceparent: None },
        }),
        0x04 => Command::FieldList(to_text(text(rest).map_or(rest, |(name, _)| name))),
        0x05 => Command::Other("Create DB"),
        0x06 => Command::Other("Drop DB"),
        0x07 => Command::Other("Refresh"),
        0x08 => Command::Other("Shutdown"),
        0x09 => Command::Other("Statistics"),
        0x0a => Command::ProcessList,
        0x0c => Command::Other("Kill"),
        0x0d => Command::Other("Debug"),
        0x0e => Command::Other("Ping"),
        0x11 => Command::ChangeUser { database: database_of_change(rest) },
        0x12 | 0x1e => Command::BinlogDump,
        0x15 => Command::Other("Register Slave"),
        0x16 => Command::Prepare(sql::read(rest, cut, dialect, detail)),
        0x17 | 0xfa => Command::Execute(statement()?),
        0x18 => Command::LongData(statement()?),
        0x19 => Command::CloseStatement(statement()?),
        0x1a => Command::ResetStatement(statement()?),
        0x1b => Command::Other("Set option"),
        0x1c => Command::Fetch(statement()?),
        0x1f => Command::ResetConnection,
        _ => return None,
    }))
}

/// Every client that can change its user sends the length of its password in one byte.
fn database_of_change(rest: &[u8]) -> Option<Box<str>> {
    let rest = after_password(text(rest)?.1, capability::SECURE_CONNECTION)?;
    Some(to_text(text(rest)?.0)).filter(|name| !name.is_empty())
}

/// The statement behind its attributes, which are parameters with a name (`CLIENT_QUERY_ATTRIBUTES`).
fn after_attributes(rest: &[u8], agreed: bool) -> Option<&[u8]> {
    // No statement begins so.
    if let Some(statement) = rest.strip_prefix(&[0, 1]) {
        return Some(statement);
    }
    if !agreed {
        return Some(rest);
    }
    let (count, rest) = number(rest)?;
    let (_sets, rest) = number(rest)?;
    let count = usize::try_from(count).ok().filter(|count| *count <= rest.len())?;
    let (nulls, rest) = rest.split_at_checked(count.div_ceil(8))?;
    let (_bound, mut rest) = rest.split_first()?;
    let mut kinds = Vec::new();
    for _ in 0..count {
        let (kind, name) = rest.split_first_chunk::<2>()?;
        let (len, name) = number(name)?;
        rest = name.get(usize::try_from(len).ok()?..)?;
        kinds.push(kind[0]);
    }
    for (at, kind) in kinds.into_iter().enumerate() {
        if nulls.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1) {
            continue;
        }
        let (len, value) = match kind {
            0x06 => (0, rest),
            0x01 => (1, rest),
            0x02 | 0x0d => (2, rest),
            0x03 | 0x04 | 0x09 => (4, rest),
            0x05 | 0x08 => (8, rest),
            _ => number(rest)?,
        };
        rest = value.get(usize::try_from(len).ok()?..)?;
    }
    Some(rest)
}

fn greeting(body: &[u8], len: usize) -> Option<Says> {
    let (&[protocol], rest) = body.split_first_chunk::<1>()?;
    if protocol != 10 {
        // An error, or a version before 3.23.
        return (protocol == 0xff).then(|| Says::Answer(Packet::of(body, len)));
    }
    let (version, rest) = text(rest)?;
    // Number of the connection, eight bytes of the challenge, NUL.
    let rest = rest.get(13..).unwrap_or_default();
    let half = |at: usize| rest.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |two| u16::from_le_bytes(*two));
    let capabilities = u32::from(half(0)) | u32::from(half(5)) << 16;
    Some(Says::Greeting { capabilities, version: to_text(version) })
}

impl Packet {
    pub fn of(body: &[u8], len: usize) -> Self {
        let mut bytes = [0; ANSWER];
        let had = body.len().min(ANSWER);
        for (to, from) in bytes.iter_mut().zip(body) {
            *to = *from;
        }
        Self { len, bytes, had }
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.had).unwrap_or_default()
    }

    pub fn first(&self) -> Option<u8> {
        self.bytes().first().copied()
    }

    /// What it means, where no row may stand.
    pub fn answer(&self) -> Answer {
        match (self.bytes(), self.len) {
            (&[0xff, low, high, ..], _) => match u16::from_le_bytes([low, high]) {
                u16::MAX => Answer::Progress,
                code => Answer::Error { code },
            },
            (&[0x00, ..], 7..) => Answer::Ok { flags: self.flags_of_ok() },
            (&[0xfb, ..], _) => Answer::Infile,
            _ => self.end().unwrap_or(Answer::Other),
        }
    }

    /// Does it end rows? A row may begin like an OK packet, but not like this.
    pub fn after_rows(&self) -> Answer {
        match self.bytes() {
            [0xff, ..] => self.answer(),
            _ => self.end().unwrap_or(Answer::Other),
        }
    }

    fn end(&self) -> Option<Answer> {
        match (self.bytes(), self.len) {
            (&[0xfe, _, _, low, high, ..], 5) => {
                Some(Answer::End { flags: u16::from_le_bytes([low, high]), classic: true })
            }
            (&[0xfe, ..], 1..5) => Some(Answer::End { flags: 0, classic: true }),
            (&[0xfe, ..], 7..FULL) => Some(Answer::End { flags: self.flags_of_ok(), classic: false }),
            _ => None,
        }
    }

    /// Rows that were changed and the last number that was given come before them.
    pub fn flags_of_ok(&self) -> u16 {
        let after = |bytes| number(bytes).map(|(_, rest)| rest);
        let flags = self.bytes().get(1..).and_then(after).and_then(after).and_then(<[u8]>::first_chunk);
        flags.map_or(0, |flags| u16::from_le_bytes(*flags))
    }

    pub fn prepared(&self) -> Option<Prepared> {
        let &[0x00, a, b, c, d, e, f, g, h, ..] = self.bytes() else {
            return None;
        };
        // 0: what describes columns and parameters is left out.
        let described = self.bytes().get(12) != Some(&0) || self.len < 13;
        let count = |low, high| if described { u16::from_le_bytes([low, high]) } else { 0 };
        Some(Prepared { statement: u32::from_le_bytes([a, b, c, d]), columns: count(e, f), parameters: count(g, h) })
    }

    /// The client has to say more to be let in. Not: the password is known by its fast hash (`caching_sha2_password`).
    pub fn is_challenge(&self) -> bool {
        self.bytes() != [1, 3]
    }
}

/// A number of one to nine bytes, and what follows.
fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let width = match first {
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        0xfb | 0xff => return None,
        small => return Some(((*small).into(), rest)),
    };
    let (number, rest) = rest.split_at_checked(width)?;
    Some((number.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)), rest))
}

/// A text up to its NUL, and what follows.
fn text(body: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(0, body)?;
    Some((body.get(..end)?, body.get(end + 1..)?))
}

/// Names have 64 characters at most.
fn to_text(name: &[u8]) -> Box<str> {
    String::from_utf8_lossy(name.get(..255).unwrap_or(name)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_to_nine_bytes() {
        for (bytes, expected) in [
            (&[250, 9][..], Some((250, &[9][..]))),
            (&[0xfc, 1, 2, 9], Some((513, &[9]))),
            (&[0xfd, 1, 2, 3], Some((0x03_0201, &[]))),
            (&[0xfe, 1, 0, 0, 0, 0, 0, 0, 1], Some((1 << 56 | 1, &[]))),
            (&[0xfe, 1], None),
            (&[0xfb], None),
            (&[], None),
        ] {
            assert_eq!(number(bytes), expected);
        }
    }

    #[test]
    fn a_statement_stands_behind_its_attributes() {
        let text = b"SELECT 1";
        let named = [&[2, 1, 0b10, 1, 0x08, 0, 1, b'a', 0xfe, 0, 1, b'b'][..], &[7; 8], text].concat();
        assert_eq!(after_attributes(&named, true), Some(&text[..]));
        let valued = [&[1, 1, 0, 1, 0xfe, 0, 1, b'b', 3, b'x', b'y', b'z'][..], text].concat();
        assert_eq!(after_attributes(&valued, true), Some(&text[..]));
        assert_eq!(after_attributes(b"\x00\x01SELECT 1", false), Some(&text[..]));
        assert_eq!(after_attributes(text, false), Some(&text[..]));
        assert_eq!(after_attributes(&[200, 1, 0], true), None);
    }
}
