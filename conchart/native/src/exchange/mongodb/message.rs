//! Messages of MongoDB: the header that all have, and what stands behind it by their code.
//!
//! In: the beginning of a message. Out: [`Message`], or how much more of it is needed. Sources: the manual's "MongoDB
//! Wire Protocol"; the specification of `OP_MSG` and that of wire compression, which drivers follow. Non-goals: what is
//! compressed, the checksum. Bounded: [`MAX_REQUEST`] bytes of a request are looked at, [`MAX_REPLY`] of a reply.

use super::bson::{self, Element, Elements};
use super::command::{Command, namespace};
use crate::exchange::framed::{self, Read};
use crate::exchange::reader::Verdict;

pub(super) const HEADER: usize = 16;
/// Servers take no longer message (`maxMessageSizeBytes`).
const MAX_MESSAGE: usize = 48_000_000;
/// So much of a request is looked at: the filter may be long, and drivers write the database behind it.
pub(super) const MAX_REQUEST: usize = 16_384;
/// So much of a reply is looked at: errors are short.
const MAX_REPLY: usize = 4096;

const OP_REPLY: i32 = 1;
const OP_UPDATE: i32 = 2001;
const OP_INSERT: i32 = 2002;
const OP_QUERY: i32 = 2004;
const OP_GET_MORE: i32 = 2005;
const OP_DELETE: i32 = 2006;
const OP_KILL_CURSORS: i32 = 2007;
const OP_COMMAND: i32 = 2010;
const OP_COMMAND_REPLY: i32 = 2011;
const OP_COMPRESSED: i32 = 2012;
const OP_MSG: i32 = 2013;

/// Flags of `OP_MSG`.
const CHECKSUM_PRESENT: u32 = 1;
const MORE_TO_COME: u32 = 1 << 1;
const EXHAUST_ALLOWED: u32 = 1 << 16;
/// Flags of `OP_QUERY`.
const TAILABLE: u32 = 1 << 1;
const AWAIT_DATA: u32 = 1 << 5;
/// Flags of `OP_REPLY`.
const CURSOR_NOT_FOUND: u32 = 1;
const QUERY_FAILURE: u32 = 1 << 1;

/// Error codes that servers give without a number.
const UNKNOWN_ERROR: u32 = 8;
const NO_SUCH_CURSOR: u32 = 43;

/// One message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::exchange) struct Message {
    pub id: u32,
    pub response_to: u32,
    pub says: Says,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::exchange) enum Says {
    Request(Request),
    Reply(Reply),
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(in crate::exchange) struct Request {
    pub(super) command: Command,
    /// Nothing answers it.
    pub is_silent: bool,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(in crate::exchange) struct Reply {
    /// The error's code, 0 without an error; `None`: it cannot be read.
    pub status: Option<u32>,
    /// The header of an old reply says that there is an error.
    pub is_failure: bool,
    /// Another reply follows unasked.
    pub goes_on: bool,
    /// The cursor that gives the rest.
    pub cursor: Option<i64>,
}

/// The header of every message.
struct Header {
    len: usize,
    id: u32,
    response_to: u32,
    code: i32,
}

impl Header {
    /// `None`: no message begins so.
    fn read(beginning: &[u8]) -> Option<Self> {
        let number = |at: usize| Some(i32::from_le_bytes(*beginning.get(at..)?.first_chunk()?));
        let len = usize::try_from(number(0)?).ok()?;
        let (id, response_to, code) = (number(4)?, number(8)?, number(12)?);
        let fits = (HEADER..=MAX_MESSAGE).contains(&len) && name(code).is_some();
        let (id, response_to) = (id.cast_unsigned(), response_to.cast_unsigned());
        fits.then_some(Self { len, id, response_to, code })
    }
}

fn name(code: i32) -> Option<&'static str> {
    Some(match code {
        OP_REPLY => "OP_REPLY",
        OP_UPDATE => "OP_UPDATE",
        OP_INSERT => "OP_INSERT",
        OP_QUERY => "OP_QUERY",
        OP_GET_MORE => "OP_GET_MORE",
        OP_DELETE => "OP_DELETE",
        OP_KILL_CURSORS => "OP_KILL_CURSORS",
        OP_COMMAND => "OP_COMMAND",
        OP_COMMAND_REPLY => "OP_COMMANDREPLY",
        OP_COMPRESSED => "OP_COMPRESSED",
        OP_MSG => "OP_MSG",
        _ => return None,
    })
}

impl framed::Message for Message {
    /// Is it the side that asks?
    type Context = bool;
    const FIRST: usize = HEADER;

    fn read(beginning: &[u8], all: bool, asks: bool) -> Read<Self> {
        let Some(header) = Header::read(beginning) else {
            return Read::Wrong;
        };
        let wanted = header.len.min(if asks { MAX_REQUEST } else { MAX_REPLY });
        if beginning.len() < wanted && !all {
            return Read::More { wanted, len: Some(header.len) };
        }
        let beginning = beginning.get(..wanted).unwrap_or(beginning);
        let body = Bytes(beginning.get(HEADER..).unwrap_or_default());
        let says = if asks {
            Says::Request(request(header.code, body))
        } else {
            Says::Reply(reply(header.code, body).unwrap_or_default())
        };
        Read::Parsed(Self { id: header.id, response_to: header.response_to, says }, header.len)
    }
}

/// Bytes that are read from the front.
#[derive(Clone, Copy)]
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn word(&mut self) -> Option<u32> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*word))
    }

    fn long(&mut self) -> Option<i64> {
        let (long, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(i64::from_le_bytes(*long))
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let (text, rest) = bson::text(self.0)?;
        self.0 = rest;
        Some(text)
    }

    /// What is there of the next `len` bytes.
    fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at_checked(len).unwrap_or((self.0, &[]));
        self.0 = rest;
        taken
    }
}

/// The document of `OP_MSG`, and the first of its sequences of documents: which of both comes first is not said.
#[derive(Default)]
struct Sections<'a> {
    flags: u32,
    document: Option<&'a [u8]>,
    sequence: Option<(&'a [u8], &'a [u8])>,
}

impl<'a> Sections<'a> {
    fn read(mut body: Bytes<'a>) -> Option<Self> {
        let mut sections = Self { flags: body.word()?, ..Self::default() };
        while sections.document.is_none() || sections.sequence.is_none() {
            let Some(&kind) = body.take(1).first() else {
                break;
            };
            let Some(section) = bson::length(body.0).map(|len| body.take(len)) else {
                break;
            };
            match kind {
                0 => sections.document = Some(section),
                1 => sections.sequence = section.get(4..).and_then(bson::text),
                // A checksum, most likely.
                _ => break,
            }
        }
        Some(sections)
    }
}

fn request(code: i32, mut body: Bytes<'_>) -> Request {
    let of_code = |target| Command { method: name(code).map(Into::into), target, ..Command::default() };
    let read = match code {
        OP_MSG => Sections::read(body).map(|sections| Request {
            command: Command::read(sections.document.unwrap_or_default(), None, sections.sequence),
            is_silent: sections.flags & MORE_TO_COME != 0,
        }),
        OP_QUERY => query(&mut body).map(|command| Request { command, is_silent: false }),
        OP_COMMAND => body.text().and_then(|database| {
            body.text()?;
            // Of the two documents that follow, the second is the command.
            body.take(bson::length(body.0)?);
            Some(Request { command: Command::read(body.0, Some(database), None), is_silent: false })
        }),
        OP_COMPRESSED => body.word().map(|original| {
            let method = name(original.cast_signed()).map(Into::into);
            Request { command: Command { method, ..Command::default() }, is_silent: is_silent(original.cast_signed()) }
        }),
        OP_INSERT | OP_UPDATE | OP_DELETE | OP_GET_MORE => body.word().map(|_| {
            let target = body.text().and_then(|full| namespace(Some(full), None)).map(Into::into);
            let cursor = if code == OP_GET_MORE { body.word().and_then(|_| body.long()) } else { None };
            Request {
                command: Command { cursor, gives_documents: code == OP_GET_MORE, ..of_code(target) },
                is_silent: is_silent(code),
            }
        }),
        _ => None,
    };
    let mut request = read.unwrap_or(Request { command: Command::default(), is_silent: is_silent(code) });
    request.command.method = request.command.method.or_else(|| name(code).map(Into::into));
    request
}

/// Writes of old drivers, which ask with another message how they ended.
fn is_silent(code: i32) -> bool {
    matches!(code, OP_INSERT | OP_UPDATE | OP_DELETE | OP_KILL_CURSORS)
}

/// A command if it asks the collection `$cmd`, else a query.
fn query(body: &mut Bytes<'_>) -> Option<Command> {
    let flags = body.word()?;
    let full = body.text()?;
    // How many to skip, how many to return.
    body.long()?;
    if let Some(database) = full.strip_suffix(b".$cmd") {
        return Some(Command::read(body.0, Some(database), None));
    }
    Some(Command {
        method: name(OP_QUERY).map(Into::into),
        target: namespace(Some(full), None).map(Into::into),
        gives_documents: true,
        tails: flags & TAILABLE != 0 && flags & AWAIT_DATA != 0,
        ..Command::default()
    })
}

/// `None`: it cannot be read.
fn reply(code: i32, mut body: Bytes<'_>) -> Option<Reply> {
    match code {
        OP_MSG => {
            let sections = Sections::read(body)?;
            let document = sections.document.unwrap_or_default();
            let goes_on = sections.flags & MORE_TO_COME != 0;
            Some(Reply { goes_on, ..outcome(document) })
        }
        OP_REPLY => {
            let flags = body.word()?;
            let cursor = body.long().filter(|&cursor| cursor != 0);
            // From where, how many.
            body.long();
            let outcome = outcome(body.0);
            let is_failure = flags & (CURSOR_NOT_FOUND | QUERY_FAILURE) != 0;
            let failed = if flags & CURSOR_NOT_FOUND != 0 { NO_SUCH_CURSOR } else { UNKNOWN_ERROR };
            let status = outcome.status.map(|status| if is_failure && status == 0 { failed } else { status });
            Some(Reply { status, is_failure, cursor: cursor.or(outcome.cursor), goes_on: false })
        }
        OP_COMMAND_REPLY => {
            // What a wire version later is called metadata and reply, servers send the other way round.
            let first = body.take(bson::length(body.0)?);
            let has_ok = Elements::of(first).named(b"ok").is_some();
            Some(outcome(if has_ok { first } else { body.0 }))
        }
        _ => None,
    }
}

/// How a command ended. Of a reply that is longer than what is looked at, the beginning says no error: those are short.
fn outcome(document: &[u8]) -> Reply {
    let elements = Elements::of(document);
    let code = |element: Option<Element<'_>>| {
        element.and_then(|element| u32::try_from(element.number()?).ok()).filter(|&code| code != 0)
    };
    let failed = elements.named(b"ok").is_some_and(|ok| ok.number() == Some(0)) || elements.named(b"$err").is_some();
    let within = |name: &[u8]| elements.named(name).map(|element| element.elements());
    let status = if failed {
        code(elements.named(b"code")).unwrap_or(UNKNOWN_ERROR)
    } else {
        let written = within(b"writeErrors").and_then(|mut errors| errors.next()).map(|error| error.elements());
        let error = written.or_else(|| within(b"writeConcernError"));
        error.map_or(0, |error| code(error.named(b"code")).unwrap_or(UNKNOWN_ERROR))
    };
    let cursor = within(b"cursor").and_then(|cursor| cursor.named(b"id")?.number()).filter(|&cursor| cursor != 0);
    Reply { status: Some(status), cursor, ..Reply::default() }
}

/// Does a request, or a reply, begin like this? `patient`: less than a header may still become one.
pub(super) fn sniff(prefix: &[u8], asks: bool, patient: bool) -> Verdict {
    if prefix.len() < HEADER {
        // The length of a message is below 2^26.
        let short = patient && prefix.get(3).is_none_or(|&highest| highest < 3);
        return if short { Verdict::More } else { Verdict::No };
    }
    let Some(header) = Header::read(prefix) else {
        return Verdict::No;
    };
    let body = prefix.get(HEADER..).unwrap_or_default();
    let room = header.len - HEADER;
    let fits = match (header.code, asks) {
        _ if asks && header.response_to != 0 => Some(false),
        (OP_MSG, _) => is_msg(body, room),
        (OP_QUERY, true) => is_named(body, room, 8),
        (OP_GET_MORE, true) => is_named(body, room, 12),
        (OP_INSERT | OP_UPDATE | OP_DELETE, true) => is_named(body, room, 0),
        (OP_COMMAND, true) => is_texts(body, room),
        (OP_COMPRESSED, _) => is_compressed(body, room, asks),
        (OP_REPLY, false) => is_reply(body, room),
        (OP_COMMAND_REPLY, false) => is_document(body, room),
        _ => Some(false),
    };
    match fits {
        Some(true) => Verdict::Yes,
        Some(false) => Verdict::No,
        None if patient => Verdict::More,
        None => Verdict::No,
    }
}

/// Flags, and a section. `None`: too few bytes to tell; so below.
fn is_msg(body: &[u8], room: usize) -> Option<bool> {
    let flags = Bytes(body).word()?;
    if flags & !(CHECKSUM_PRESENT | MORE_TO_COME | EXHAUST_ALLOWED) != 0 {
        return Some(false);
    }
    let (&kind, section) = body.get(4..)?.split_first()?;
    let room = room.saturating_sub(5);
    match kind {
        0 => is_document(section, room),
        1 => {
            let len = bson::length(section.get(..4)?);
            Some(len.is_some_and(|len| (SHORTEST_SEQUENCE..=room).contains(&len)))
        }
        _ => Some(false),
    }
}

/// The length of a sequence of documents, and an empty name.
const SHORTEST_SEQUENCE: usize = 5;

fn is_document(document: &[u8], room: usize) -> Option<bool> {
    let len = bson::length(document.get(..4)?).filter(|len| (bson::SHORTEST..=room).contains(len));
    if len.is_none() {
        return Some(false);
    }
    document.get(4).map(|&kind| bson::is_type(kind))
}

/// Four bytes, and the name of a collection with at least so many bytes behind it.
fn is_named(body: &[u8], room: usize, behind: usize) -> Option<bool> {
    let name = body.get(4..)?;
    let Some(end) = memchr::memchr(0, name) else {
        let may_go_on = name.iter().all(|byte| !byte.is_ascii_control()) && room > body.len();
        return if may_go_on && name.len() < 48 { None } else { Some(may_go_on) };
    };
    let (name, _) = name.split_at_checked(end)?;
    let fits = name.iter().all(|byte| !byte.is_ascii_control()) && name.contains(&b'.');
    Some(fits && 5 + end + behind <= room)
}

/// Names of a database and of a command.
fn is_texts(body: &[u8], room: usize) -> Option<bool> {
    let Some((database, rest)) = bson::text(body) else {
        return if body.len() < 48 && room > body.len() { None } else { Some(false) };
    };
    let printable = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_graphic);
    let Some((command, _)) = bson::text(rest) else {
        return if body.len() < 48 && room > body.len() { None } else { Some(false) };
    };
    Some(printable(database) && printable(command))
}

/// The code, the length before, and the way of compression.
fn is_compressed(body: &[u8], room: usize, asks: bool) -> Option<bool> {
    let mut bytes = Bytes(body);
    let (original, len) = (bytes.word()?.cast_signed(), bytes.word()?);
    let &way = bytes.take(1).first()?;
    let fits = name(original).is_some() && original != OP_COMPRESSED && (original == OP_REPLY) <= !asks;
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    Some(fits && len <= MAX_MESSAGE && way <= 3 && room >= 9)
}

/// Flags, a cursor, and how many documents there are.
fn is_reply(body: &[u8], room: usize) -> Option<bool> {
    let mut bytes = Bytes(body);
    let flags = bytes.word()?;
    bytes.long()?;
    let (from, count) = (bytes.word()?, bytes.word()?);
    let fits = flags & !0xf == 0 && from.cast_signed() >= 0 && count as usize <= room / bson::SHORTEST;
    if !fits || count == 0 {
        return Some(fits && room == 20);
    }
    is_document(bytes.0, room - 20)
}
