//! LDAP messages (RFC 4511 section 4.1.1): which operation one asks for or answers, what it is about, how it ended.
//!
//! In: the beginning of a message. Out: [`Message`], or how much more of it is needed. What is not needed is not asked
//! for, so that nobody keeps it: passwords, values, entries. Non-goals: controls, what stands in an entry.

use super::ber::{Cursor, ENUMERATED, Element, INTEGER, OCTET_STRING, SEQUENCE, Stop};
use super::filter;
use crate::exchange::reader::Verdict;

/// Longest beginning of a message that is asked for.
pub(super) const MAX_BEGINNING: usize = 2048;
/// Longest text of what an operation is about.
const MAX_TEXT: usize = 255;
/// A longer message is none: servers take much less, and send no larger entries.
const MAX_MESSAGE: usize = 1 << 28;
/// The bytes in which every message says how long it is.
pub(super) const MIN_HEAD: usize = 2;

const BIND: u8 = 0x60;
const UNBIND: u8 = 0x42;
const SEARCH: u8 = 0x63;
const MODIFY: u8 = 0x66;
const ADD: u8 = 0x68;
const DELETE: u8 = 0x4a;
const MODIFY_DN: u8 = 0x6c;
const COMPARE: u8 = 0x6e;
const ABANDON: u8 = 0x50;
const EXTENDED: u8 = 0x77;

const BIND_RESPONSE: u8 = 0x61;
const ENTRY: u8 = 0x64;
const SEARCH_DONE: u8 = 0x65;
const MODIFY_RESPONSE: u8 = 0x67;
const ADD_RESPONSE: u8 = 0x69;
const DELETE_RESPONSE: u8 = 0x6b;
const MODIFY_DN_RESPONSE: u8 = 0x6d;
const COMPARE_RESPONSE: u8 = 0x6f;
const REFERENCE: u8 = 0x73;
const EXTENDED_RESPONSE: u8 = 0x78;
const INTERMEDIATE: u8 = 0x79;

/// Of a bind: credentials of a mechanism (RFC 4511 section 4.2); a password has another tag.
const SASL: u8 = 0xa3;
/// Of an extended request: its name; of an intermediate response: its name or value.
const NAME: u8 = 0x80;
const INTERMEDIATE_VALUE: u8 = 0x81;

const START_TLS: &str = "StartTLS";

/// One message, as far as it was asked for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::exchange) struct Message {
    pub id: u32,
    pub says: Says,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::exchange) enum Says {
    Request(Request),
    Response(Response),
    /// What nobody knows.
    Unknown,
}

/// What is asked for.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(in crate::exchange) struct Request {
    pub operation: &'static str,
    /// What it is about: as sent, hostile text.
    pub target: Option<Box<str>>,
    pub then: Then,
}

/// What follows a request.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(in crate::exchange) enum Then {
    #[default]
    Response,
    /// A response; if that is success, TLS.
    Tls,
    /// Nothing.
    Nothing,
    /// Nothing: neither to this, nor to the request of that number.
    Abandoned(u32),
}

/// What is answered.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::exchange) struct Response {
    /// The operation; an intermediate response does not say which.
    pub operation: Option<&'static str>,
    /// Nothing of this operation follows.
    pub is_last: bool,
    /// The result code; `None`: it has none.
    pub code: Option<u16>,
}

/// Reads the beginning of a message. `all`: no more of it will be there, so that what is missing stays unknown.
pub(super) fn read(beginning: &[u8], all: bool) -> Result<Message, Stop> {
    let (id, operation, _) = head(beginning)?;
    let tag = operation.tag;
    let cursor = Cursor::new(beginning).inside(operation);
    let says = if let Some(name) = request_name(tag) {
        Says::Request(request(name, operation, cursor, all || beginning.len() >= MAX_BEGINNING)?)
    } else if let Some((operation, is_last)) = response_name(tag) {
        let code = match code(cursor, tag) {
            Err(Stop::More(needed)) if !all => return Err(Stop::More(needed)),
            code => code.ok().flatten(),
        };
        Says::Response(Response { operation, is_last, code })
    } else {
        Says::Unknown
    };
    Ok(Message { id, says })
}

/// The length of a message, header included.
pub(super) fn length(beginning: &[u8]) -> Result<usize, Stop> {
    Ok(envelope(&mut Cursor::new(beginning))?.end)
}

fn envelope(cursor: &mut Cursor<'_>) -> Result<Element, Stop> {
    let envelope = cursor.expect(SEQUENCE)?;
    if envelope.end > MAX_MESSAGE { Err(Stop::Wrong) } else { Ok(envelope) }
}

/// The number of a message, its operation, and what both stand in.
fn head(beginning: &[u8]) -> Result<(u32, Element, Element), Stop> {
    let mut cursor = Cursor::new(beginning);
    let envelope = envelope(&mut cursor)?;
    let mut inside = cursor.inside(envelope);
    let id = inside.expect(INTEGER)?;
    let id = inside.number(id)?;
    Ok((id, inside.element()?, envelope))
}

/// Does a request, or a response, begin like this?
pub(super) fn sniff(prefix: &[u8], asks: bool) -> Verdict {
    match fits(prefix, asks) {
        Ok(()) => Verdict::Yes,
        Err(Stop::More(_)) => Verdict::More,
        Err(Stop::Wrong) => Verdict::No,
    }
}

fn fits(prefix: &[u8], asks: bool) -> Result<(), Stop> {
    let (_, operation, envelope) = head(prefix)?;
    let (tag, len) = (operation.tag, operation.len());
    let has_name = if asks { request_name(tag).is_some() } else { response_name(tag).is_some() };
    let mut inside = Cursor::new(prefix).inside(operation);
    let begins = match tag {
        _ if !has_name => false,
        UNBIND => len == 0,
        ABANDON => (1..=4).contains(&len),
        DELETE => len > 0,
        BIND => inside.element()?.tag == INTEGER,
        EXTENDED => inside.element()?.tag == NAME,
        INTERMEDIATE => len == 0 || matches!(inside.element()?.tag, NAME | INTERMEDIATE_VALUE),
        _ if has_code(tag) => inside.element()?.tag == ENUMERATED,
        _ => inside.element()?.tag == OCTET_STRING,
    };
    // Controls, if anything. Whether it is those must not matter: they may lie beyond what is looked at.
    let ends = envelope.end - operation.end != 1;
    if begins && ends { Ok(()) } else { Err(Stop::Wrong) }
}

fn request_name(tag: u8) -> Option<&'static str> {
    Some(match tag {
        BIND => "bind",
        UNBIND => "unbind",
        SEARCH => "search",
        MODIFY => "modify",
        ADD => "add",
        DELETE => "delete",
        MODIFY_DN => "modify DN",
        COMPARE => "compare",
        ABANDON => "abandon",
        EXTENDED => "extended",
        _ => return None,
    })
}

/// What is answered, and whether nothing follows.
fn response_name(tag: u8) -> Option<(Option<&'static str>, bool)> {
    let request = match tag {
        BIND_RESPONSE => BIND,
        SEARCH_DONE => SEARCH,
        MODIFY_RESPONSE => MODIFY,
        ADD_RESPONSE => ADD,
        DELETE_RESPONSE => DELETE,
        MODIFY_DN_RESPONSE => MODIFY_DN,
        COMPARE_RESPONSE => COMPARE,
        EXTENDED_RESPONSE => EXTENDED,
        ENTRY | REFERENCE => return Some((request_name(SEARCH), false)),
        INTERMEDIATE => return Some((None, false)),
        _ => return None,
    };
    Some((request_name(request), true))
}

fn has_code(tag: u8) -> bool {
    response_name(tag).is_some_and(|(_, is_last)| is_last)
}

/// The result code of a response that has one (RFC 4511 section 4.1.9).
fn code(mut cursor: Cursor<'_>, tag: u8) -> Result<Option<u16>, Stop> {
    if !has_code(tag) {
        return Ok(None);
    }
    let code = cursor.expect(ENUMERATED)?;
    Ok(u16::try_from(cursor.number(code)?).ok())
}

fn request(operation: &'static str, element: Element, cursor: Cursor<'_>, all: bool) -> Result<Request, Stop> {
    let mut request = Request { operation, ..Request::default() };
    let mut text = String::new();
    let read = match element.tag {
        UNBIND => {
            request.then = Then::Nothing;
            return Ok(request);
        }
        ABANDON => cursor.number(element).map(|number| request.then = Then::Abandoned(number)),
        BIND => bind(cursor, &mut text),
        SEARCH => search(cursor, &mut text),
        DELETE => name(cursor, element, &mut text),
        EXTENDED => extended(cursor, &mut text, &mut request.then),
        _ => first(cursor, OCTET_STRING, &mut text),
    };
    match read {
        Ok(()) => {}
        Err(Stop::More(needed)) if !all => return Err(Stop::More(needed.min(MAX_BEGINNING))),
        Err(_) => text.push('…'),
    }
    if element.tag != ABANDON {
        request.target = Some(shortened(text));
    }
    Ok(request)
}

/// The name, and how its owner proves to be that: a password is not asked for.
fn bind(mut cursor: Cursor<'_>, text: &mut String) -> Result<(), Stop> {
    cursor.expect(INTEGER)?;
    let owner = cursor.expect(OCTET_STRING)?;
    name(cursor, owner, text)?;
    if cursor.tag()? == SASL {
        let credentials = cursor.element()?;
        text.push(' ');
        first(cursor.inside(credentials), OCTET_STRING, text)?;
    }
    Ok(())
}

/// Base, scope and filter.
fn search(mut cursor: Cursor<'_>, text: &mut String) -> Result<(), Stop> {
    let base = cursor.expect(OCTET_STRING)?;
    name(cursor, base, text)?;
    let scope = cursor.expect(ENUMERATED)?;
    // As in a URL (RFC 4516 section 2; "subord" is everybody's fourth).
    let scope = match cursor.number(scope)? {
        0 => " base ",
        1 => " one ",
        2 => " sub ",
        3 => " subord ",
        _ => return Err(Stop::Wrong),
    };
    // How aliases are followed, limits of size and time, types only.
    for _ in 0..4 {
        cursor.element()?;
    }
    text.push_str(scope);
    let whole = { cursor }.element().and_then(|filter| cursor.contents(filter)).map(|_| ());
    whole.and(filter::write(&mut cursor, text, MAX_TEXT))
}

/// The name of what is extended, by its OID where it has none that is known.
fn extended(mut cursor: Cursor<'_>, text: &mut String, then: &mut Then) -> Result<(), Stop> {
    let oid = cursor.expect(NAME)?;
    let operation = match cursor.contents(oid)? {
        b"1.3.6.1.4.1.1466.20037" => START_TLS,
        b"1.3.6.1.4.1.4203.1.11.1" => "Password Modify",
        b"1.3.6.1.4.1.4203.1.11.3" => "Who am I?",
        b"1.3.6.1.1.8" => "Cancel",
        oid => {
            text.push_str(&String::from_utf8_lossy(oid));
            return Ok(());
        }
    };
    if operation == START_TLS {
        *then = Then::Tls;
    }
    text.push_str(operation);
    Ok(())
}

/// The first element in `cursor`, as text.
fn first(mut cursor: Cursor<'_>, tag: u8, text: &mut String) -> Result<(), Stop> {
    let element = cursor.expect(tag)?;
    name(cursor, element, text)
}

/// A DN as it was sent; that of nobody, or of the root, is written `""`.
fn name(cursor: Cursor<'_>, element: Element, text: &mut String) -> Result<(), Stop> {
    if element.len() == 0 {
        text.push_str("\"\"");
    }
    text.push_str(&String::from_utf8_lossy(cursor.beginning(element)));
    cursor.contents(element).map(|_| ())
}

fn shortened(mut text: String) -> Box<str> {
    if text.len() > MAX_TEXT {
        let end = (0..=MAX_TEXT - '…'.len_utf8()).rev().find(|&end| text.is_char_boundary(end));
        text.truncate(end.unwrap_or(0));
        text.push('…');
    }
    text.into()
}
