//! The records of FastCGI, as far as they tell what is asked and how it ended.
//!
//! In: the beginning of a record. Out: its kind, the number of its request, and what is to be read of parameters and of a
//! response's head. Nothing is kept here.

use crate::exchange::framed::{Message, Read};
use crate::exchange::reader::Verdict;

const HEAD: usize = 8;
const VERSION: u8 = 1;
/// Bytes that are looked at of a record with parameters, and of one of a response.
pub(super) const MAX_PARAMETERS: usize = 16 * 1024;
pub(super) const MAX_HEAD: usize = 4 * 1024;

/// What a record is about.
#[derive(Debug, Eq, PartialEq)]
pub(in crate::exchange) struct Record {
    /// The number of its request; 0 for what is about the connection.
    pub request: u16,
    pub kind: Kind,
}

#[derive(Debug, Eq, PartialEq)]
pub(in crate::exchange) enum Kind {
    Begin { role: u16, keeps: bool },
    Abort,
    End { status: u8 },
    Parameters(Part),
    Input { last: bool },
    Data { last: bool },
    Output(Part),
    Errors,
    GetValues,
    Values,
    Unknown,
}

/// Contents, perhaps only their beginning.
#[derive(Debug, Eq, PartialEq)]
pub(in crate::exchange) struct Part {
    pub bytes: Box<[u8]>,
    pub cut: bool,
}

impl Message for Record {
    /// Is the head of a response looked for?
    type Context = bool;
    const FIRST: usize = HEAD;

    fn read(beginning: &[u8], all: bool, head_wanted: bool) -> Read<Self> {
        let Some((&[version, kind, id, number, high, low, padding, _reserved], content)) =
            beginning.split_first_chunk::<HEAD>()
        else {
            return if all { Read::Wrong } else { Read::More { wanted: HEAD, len: None } };
        };
        if version != VERSION {
            return Read::Wrong;
        }
        let content_len = usize::from(u16::from_be_bytes([high, low]));
        let len = HEAD + content_len + usize::from(padding);
        let wanted = content_len.min(match kind {
            1 | 3 => HEAD,
            4 => MAX_PARAMETERS,
            6 if head_wanted => MAX_HEAD,
            _ => 0,
        });
        if content.len() < wanted && !all {
            return Read::More { wanted: HEAD + wanted, len: Some(len) };
        }
        let content = content.get(..wanted).unwrap_or(content);
        let part = || Part { bytes: content.into(), cut: content.len() < content_len };
        let last = content_len == 0;
        let kind = match (kind, content) {
            (1, &[high, low, flags, ..]) => {
                Kind::Begin { role: u16::from_be_bytes([high, low]), keeps: flags & 1 == 1 }
            }
            (2, _) => Kind::Abort,
            (3, _) => Kind::End { status: content.get(4).copied().unwrap_or(0) },
            (4, _) => Kind::Parameters(part()),
            (5, _) => Kind::Input { last },
            (6, _) => Kind::Output(part()),
            (7, _) => Kind::Errors,
            (8, _) => Kind::Data { last },
            (9, _) => Kind::GetValues,
            (10, _) => Kind::Values,
            (11, _) => Kind::Unknown,
            _ => return Read::Wrong,
        };
        Read::Parsed(Self { request: u16::from_be_bytes([id, number]), kind }, len)
    }
}

/// A name and its value.
pub(super) type Pair<'a> = (&'a [u8], &'a [u8]);

/// The pairs of parameters, up to what is cut.
pub(super) fn pairs(mut bytes: &[u8]) -> impl Iterator<Item = Pair<'_>> {
    std::iter::from_fn(move || {
        let (name, rest) = length(bytes)?;
        let (value, rest) = length(rest)?;
        let (name, rest) = rest.split_at_checked(name)?;
        let (value, rest) = rest.split_at_checked(value)?;
        bytes = rest;
        Some((name, value))
    })
}

/// One byte, or four of which the first bit is set.
fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    match bytes {
        [first @ 0..0x80, rest @ ..] => Some(((*first).into(), rest)),
        [a, b, c, d, rest @ ..] => Some((usize::try_from(u32::from_be_bytes([a & 0x7f, *b, *c, *d])).ok()?, rest)),
        _ => None,
    }
}

/// Does a connection begin like this? With the request for one, or a question about the server.
pub(super) fn begins(prefix: &[u8]) -> Verdict {
    let begin = |at: usize, byte: u8| match at {
        0 | 1 => byte == 1,
        4 | 7 | 8 => byte == 0,
        5 => byte == 8,
        9 => (1..=3).contains(&byte),
        10 => byte < 2,
        11..=15 => byte == 0,
        _ => true,
    };
    let values = |at: usize, byte: u8| match at {
        0 => byte == 1,
        1 => byte == 9,
        2 | 3 | 7 => byte == 0,
        10 => byte == b'F',
        11 => byte == b'C',
        12 => byte == b'G',
        13 => byte == b'I',
        14 => byte == b'_',
        _ => true,
    };
    let fits = |like: &dyn Fn(usize, u8) -> bool| prefix.iter().enumerate().all(|(at, byte)| like(at, *byte));
    match fits(&begin) || fits(&values) {
        true if prefix.len() < 16 => Verdict::More,
        true => Verdict::Yes,
        false => Verdict::No,
    }
}

/// Does a packet begin with a record of that side that looks like its kind?
pub(super) fn goes_on(prefix: &[u8], asks: bool) -> Verdict {
    let Some((&[version, kind, id, number, high, low, padding, reserved], content)) =
        prefix.split_first_chunk::<HEAD>()
    else {
        let kinds = if asks { [1, 4].as_slice() } else { &[3, 6, 7] };
        let fits = match prefix {
            [] => true,
            [VERSION] => true,
            [VERSION, kind, ..] => kinds.contains(kind),
            _ => false,
        };
        return if fits { Verdict::More } else { Verdict::No };
    };
    let len = usize::from(u16::from_be_bytes([high, low]));
    if version != VERSION || (id, number) == (0, 0) || reserved != 0 || len == 0 {
        return Verdict::No;
    }
    let content = content.get(..len).unwrap_or(content);
    let fits = match (asks, kind) {
        (true, 1) => return begins(prefix),
        (true, 4) => named(content),
        // How the program ended, how the request did, three reserved bytes.
        (false, 3) if len == 8 && padding < 8 => match content {
            [_, _, _, _, status, 0, 0, 0] => Some(*status < 4),
            whole if whole.len() == 8 => Some(false),
            _ => None,
        },
        (false, 6) => head_field(content, len),
        (false, 7) => content.first().map(u8::is_ascii_graphic),
        _ => Some(false),
    };
    match fits {
        Some(true) => Verdict::Yes,
        Some(false) => Verdict::No,
        None => Verdict::More,
    }
}

/// Does the name of a CGI variable come first?
fn named(content: &[u8]) -> Option<bool> {
    let (name, rest) = length(content)?;
    let (_, rest) = length(rest)?;
    let seen = rest.get(..name.min(8))?;
    Some(name > 3 && seen.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'_'))
}

/// Does a response's head come first?
fn head_field(content: &[u8], len: usize) -> Option<bool> {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    let name = content.iter().take_while(|byte| is_name(byte)).count();
    match content.get(name) {
        Some(b':') => Some(name > 3),
        None if content.len() < len && name < 40 => None,
        _ => Some(false),
    }
}
