//! RESP, the text that Redis clients and servers exchange, element by element.
//!
//! In: the beginning of an element: a line, and of a bulk string what follows its line. Out: its kind, its number, and
//! the text that is kept. An aggregate (an array, a map) is its line alone: the elements in it follow as elements of
//! their own, so that no reply has to be there as a whole. Nothing is kept here.

use crate::exchange::framed::{self, Read};

/// Longest line that is read: as many bytes as Redis takes of an inline command.
const MAX_LINE: usize = 64 * 1024;
/// Longest text that is kept.
pub(super) const MAX_TEXT: usize = 255;
/// The longest length that Redis takes of a bulk string, and elements of an array.
const MAX_BULK: i64 = 512 * 1024 * 1024;
const MAX_ELEMENTS: i64 = 1 << 31;
const CRLF: usize = 2;

/// What is to be known of an element.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::exchange) struct Wanted {
    /// Its text.
    pub text: bool,
    /// A line that does not begin with a type is a command.
    pub inline: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::exchange) enum Kind {
    /// A string, number, boolean or null.
    Value,
    Error,
    /// So many elements follow and are part of it.
    Aggregate(u64),
    /// The same, said by the server unasked.
    Push(u64),
    /// So many elements follow, and then what they are about.
    Attribute(u64),
    /// A command on a line of its own, as people type it.
    Inline,
}

/// One element.
#[derive(Debug, Eq, PartialEq)]
pub(in crate::exchange) struct Element {
    pub kind: Kind,
    /// As far as it was wanted.
    pub text: Option<Box<[u8]>>,
}

impl framed::Message for Element {
    type Context = Wanted;
    const FIRST: usize = CRLF;

    fn read(beginning: &[u8], all: bool, wanted: Wanted) -> Read<Self> {
        let Some(&first) = beginning.first() else {
            return more(beginning, all);
        };
        let kind = match first {
            b'$' | b'=' | b'!' => return bulk(beginning, all, first == b'!', wanted),
            b'+' | b':' | b'_' | b'#' | b',' | b'(' => Kind::Value,
            b'-' => Kind::Error,
            b'*' | b'~' | b'%' | b'>' | b'|' => {
                return match line(beginning) {
                    Some(line) => aggregate(first, line)
                        .map_or(Read::Wrong, |kind| Read::Known(Self { kind, text: None }, beginning.len())),
                    None if is_count(beginning) => more(beginning, all),
                    None => Read::Wrong,
                };
            }
            _ if wanted.inline && is_text(first) => Kind::Inline,
            _ => return Read::Wrong,
        };
        let ended = if kind == Kind::Inline { beginning.strip_suffix(b"\n") } else { beginning.strip_suffix(b"\r\n") };
        let Some(text) = ended else {
            return more(beginning, all);
        };
        let text = if kind == Kind::Inline { text } else { text.get(1..).unwrap_or_default() };
        let kept = wanted.text || kind != Kind::Value;
        Read::Known(Self { kind, text: kept.then(|| cut(text)) }, beginning.len())
    }
}

/// A string behind its length.
fn bulk(beginning: &[u8], all: bool, is_error: bool, wanted: Wanted) -> Read<Element> {
    // The line ends in what is there, because no more than its shortest form is asked for.
    let end = memchr::memchr(b'\n', beginning);
    let Some((head, rest)) = end.map(|end| end + 1).and_then(|end| beginning.split_at_checked(end)) else {
        return if is_count(beginning) { more(beginning, all) } else { Read::Wrong };
    };
    let Some(length) = line(head).and_then(number) else {
        return Read::Wrong;
    };
    let kind = if is_error { Kind::Error } else { Kind::Value };
    let content = match usize::try_from(length) {
        // Null in RESP2.
        Err(_) if length == -1 => return Read::Known(Element { kind, text: None }, head.len()),
        Ok(content) if length <= MAX_BULK => content,
        _ => return Read::Wrong,
    };
    let len = head.len() + content + CRLF;
    if !wanted.text && !is_error {
        return Read::Known(Element { kind, text: None }, len);
    }
    let needed = content.min(MAX_TEXT);
    match rest.get(..needed) {
        Some(text) => Read::Known(Element { kind, text: Some(cut(text)) }, len),
        None if all => Read::Known(Element { kind, text: None }, len),
        None => Read::More { wanted: head.len() + needed, len: Some(len) },
    }
}

/// A line's end is not there yet. It is asked for as little as may be missing: a line tells its length by its end.
fn more(beginning: &[u8], all: bool) -> Read<Element> {
    if all || beginning.len() >= MAX_LINE {
        return Read::Wrong;
    }
    Read::More { wanted: beginning.len() + 1, len: None }
}

/// What stands between an element's type and the end of its line.
fn line(head: &[u8]) -> Option<&[u8]> {
    head.get(1..)?.strip_suffix(b"\r\n")
}

/// Are these a type and digits, up to where the line may end?
fn is_count(beginning: &[u8]) -> bool {
    let digits = beginning.get(1..).unwrap_or_default();
    let digits = digits.strip_suffix(b"\r").unwrap_or(digits);
    digits.len() <= 20 && digits.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-')
}

fn number(digits: &[u8]) -> Option<i64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn aggregate(first: u8, line: &[u8]) -> Option<Kind> {
    let count = number(line).filter(|count| (-1..=MAX_ELEMENTS).contains(count))?;
    let count = u64::try_from(count).unwrap_or(0);
    Some(match first {
        b'%' => Kind::Aggregate(2 * count),
        b'|' => Kind::Attribute(2 * count),
        b'>' => Kind::Push(count),
        _ => Kind::Aggregate(count),
    })
}

fn is_text(byte: u8) -> bool {
    byte.is_ascii_graphic() || byte.is_ascii_whitespace()
}

fn cut(text: &[u8]) -> Box<[u8]> {
    text.get(..MAX_TEXT).unwrap_or(text).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::framed::Message;

    const ALL: Wanted = Wanted { text: true, inline: true };
    const NONE: Wanted = Wanted { text: false, inline: false };

    /// What is read where as many bytes are there as are asked for.
    fn read(bytes: &[u8], wanted: Wanted) -> Read<Element> {
        let mut had = Element::FIRST;
        loop {
            match Element::read(bytes.get(..had).unwrap_or(bytes), false, wanted) {
                Read::More { wanted, .. } if wanted <= bytes.len() => {
                    assert!(wanted > had);
                    had = wanted;
                }
                read => return read,
            }
        }
    }

    fn known(kind: Kind, text: Option<&str>, len: usize) -> Read<Element> {
        Read::Known(Element { kind, text: text.map(|text| text.as_bytes().into()) }, len)
    }

    #[test]
    fn every_type_is_read_and_tells_its_length() {
        for (bytes, kind, text, len) in [
            (&b"+OK\r\nrest"[..], Kind::Value, Some("OK"), 5),
            (b"+\r\n", Kind::Value, Some(""), 3),
            (b"-ERR no\r\n", Kind::Error, Some("ERR no"), 9),
            (b":-42\r\n", Kind::Value, Some("-42"), 6),
            (b"$5\r\nhello\r\nrest", Kind::Value, Some("hello"), 11),
            (b"$0\r\n\r\n", Kind::Value, Some(""), 6),
            (b"$-1\r\n", Kind::Value, None, 5),
            (b"!4\r\nERR \r\n", Kind::Error, Some("ERR "), 10),
            (b"=7\r\ntxt:abc\r\n", Kind::Value, Some("txt:abc"), 13),
            (b"*3\r\n", Kind::Aggregate(3), None, 4),
            (b"*-1\r\n", Kind::Aggregate(0), None, 5),
            (b"%2\r\n", Kind::Aggregate(4), None, 4),
            (b"~1\r\n", Kind::Aggregate(1), None, 4),
            (b">3\r\n", Kind::Push(3), None, 4),
            (b"|1\r\n", Kind::Attribute(2), None, 4),
            (b"_\r\n", Kind::Value, Some(""), 3),
            (b"PING\r\n", Kind::Inline, Some("PING\r"), 6),
            (b"get k\n", Kind::Inline, Some("get k"), 6),
        ] {
            assert_eq!(read(bytes, ALL), known(kind, text, len), "{}", bytes.escape_ascii());
        }
        assert_eq!(read(b"$5\r\nh", NONE), known(Kind::Value, None, 11));
        assert_eq!(read(b"+OK\r\n", NONE), known(Kind::Value, None, 5));
    }

    #[test]
    fn what_is_no_element_is_wrong_at_once() {
        for bytes in
            [&b"$x1\r\n"[..], b"*1x\r\n", b"$99999999999\r\n", b"*-2\r\n", b"$-2\r\n", b"\x16\x03\x01", b"*12\n\n"]
        {
            assert_eq!(read(bytes, ALL), Read::Wrong, "{}", bytes.escape_ascii());
        }
        assert_eq!(read(b"PING\r\n", NONE), Read::Wrong);
    }

    #[test]
    fn of_a_long_text_only_the_beginning_is_kept() {
        let long = [b"$100000\r\n".as_slice(), &[b'x'; 300]].concat();
        let Read::Known(element, len) = read(&long, ALL) else { unreachable!() };
        assert_eq!((element.text.map(|text| text.len()), len), (Some(MAX_TEXT), 100_011));
    }
}
