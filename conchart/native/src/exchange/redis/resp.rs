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
/// Digits of numbers that are certainly no more than Redis takes.
const MAX_DIGITS: usize = 8;
/// Bytes of a line that is read at once.
const MAX_AHEAD: usize = 256;

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
    pub text: Option<Text>,
}

impl Element {
    pub fn bytes(&self) -> &[u8] {
        self.text.as_ref().map(Text::bytes).unwrap_or_default()
    }
}

/// Bytes that a text has in place.
const SHORT: usize = 30;

/// A text: names and most keys are short, and need no memory of their own.
#[derive(Clone)]
pub(in crate::exchange) enum Text {
    Short { bytes: [u8; SHORT], len: u8 },
    Long(Box<[u8]>),
}

impl Text {
    fn new(text: &[u8]) -> Self {
        let mut bytes = [0; SHORT];
        match (bytes.get_mut(..text.len()), u8::try_from(text.len())) {
            (Some(room), Ok(len)) => {
                room.copy_from_slice(text);
                Self::Short { bytes, len }
            }
            _ => Self::Long(text.into()),
        }
    }

    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Short { bytes, len } => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Self::Long(bytes) => bytes,
        }
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Text {}

impl std::fmt::Debug for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\"", self.bytes().escape_ascii())
    }
}

impl framed::Message for Element {
    type Context = Wanted;
    const FIRST: usize = CRLF;

    /// Most elements lie in a packet as a whole, or their line does: no byte of that is looked at twice.
    fn read_ahead(bytes: &[u8], wanted: Wanted) -> Option<(Self, usize)> {
        let (&first, rest) = bytes.split_first()?;
        match first {
            b'*' => {
                let (elements, line) = count(rest)?;
                let kind = Kind::Aggregate(u64::try_from(elements).ok()?);
                Some((Self { kind, text: None }, 1 + line))
            }
            b'$' => {
                let (content, line) = count(rest)?;
                let text = if wanted.text { Some(rest.get(line..line + content.min(MAX_TEXT))?) } else { None };
                let element = Self { kind: Kind::Value, text: text.map(Text::new) };
                Some((element, 1 + line + content + CRLF))
            }
            b'+' | b':' if !wanted.text => {
                let end = memchr::memchr(b'\n', rest.get(..MAX_AHEAD).unwrap_or(rest))?;
                (rest.get(end.checked_sub(1)?) == Some(&b'\r')).then_some(())?;
                Some((Self { kind: Kind::Value, text: None }, end + CRLF))
            }
            _ => None,
        }
    }

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
                        .map_or(Read::Wrong, |kind| Read::Parsed(Self { kind, text: None }, beginning.len())),
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
        let is_wanted = wanted.text || kind != Kind::Value;
        Read::Parsed(Self { kind, text: is_wanted.then(|| cut(text)) }, beginning.len())
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
        Err(_) if length == -1 => return Read::Parsed(Element { kind, text: None }, head.len()),
        Ok(content) if length <= MAX_BULK => content,
        _ => return Read::Wrong,
    };
    let len = head.len() + content + CRLF;
    if !wanted.text && !is_error {
        return Read::Parsed(Element { kind, text: None }, len);
    }
    let needed = content.min(MAX_TEXT);
    match rest.get(..needed) {
        Some(text) => Read::Parsed(Element { kind, text: Some(cut(text)) }, len),
        None if all => Read::Parsed(Element { kind, text: None }, len),
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

fn cut(text: &[u8]) -> Text {
    Text::new(text.get(..MAX_TEXT).unwrap_or(text))
}

/// A number of few digits and the length of its line; `None` where it takes a closer look.
fn count(line: &[u8]) -> Option<(usize, usize)> {
    let mut number = 0;
    for (place, &byte) in line.iter().enumerate().take(MAX_DIGITS + 1) {
        match byte {
            b'0'..=b'9' if place < MAX_DIGITS => number = 10 * number + usize::from(byte - b'0'),
            b'\r' if place > 0 && line.get(place + 1) == Some(&b'\n') => return Some((number, place + CRLF)),
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::framed::Message;
    use proptest::prelude::*;

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

    fn parsed(kind: Kind, text: Option<&str>, len: usize) -> Read<Element> {
        Read::Parsed(Element { kind, text: text.map(|text| Text::new(text.as_bytes())) }, len)
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
            assert_eq!(read(bytes, ALL), parsed(kind, text, len), "{}", bytes.escape_ascii());
        }
        assert_eq!(read(b"$5\r\nh", NONE), parsed(Kind::Value, None, 11));
        assert_eq!(read(b"+OK\r\n", NONE), parsed(Kind::Value, None, 5));
    }

    /// What is read of an element at once is what is read of it byte by byte.
    fn agrees(bytes: &[u8]) {
        for (text, inline) in [(false, false), (true, false), (true, true)] {
            let wanted = Wanted { text, inline };
            if let Some((element, len)) = Element::read_ahead(bytes, wanted) {
                assert_eq!(read(bytes, wanted), Read::Parsed(element, len), "{}", bytes.escape_ascii());
            }
        }
    }

    #[test]
    fn elements_are_read_at_once_where_all_is_there_that_matters() {
        for bytes in [
            &b"*3\r\n$3\r\nSET\r\n"[..],
            b"$3\r\nSET\r\n",
            b"$03\r\nSET\r\n",
            b"$0\r\n\r\n",
            b"*0\r\n",
            b"+OK\r\n",
            b":42\r\n",
            b"+a\nb\r\n",
            b"+\n\r\n",
        ] {
            agrees(bytes);
        }
        assert!(Element::read_ahead(b"$3\r\nSET\r\n$1", ALL).is_some_and(|(_, len)| len == 9));
        assert!(Element::read_ahead(b"*12\r\n", NONE).is_some_and(|(_, len)| len == 5));
        // Of these, it takes a closer look.
        for bytes in
            [&b"$-1\r\n"[..], b"$3\r\nSE", b"*", b"*1\r", b"$123456789\r\n", b"-ERR\r\n", b"PING\r\n", b"*1x\r\n"]
        {
            assert_eq!(Element::read_ahead(bytes, ALL), None, "{}", bytes.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn reading_at_once_changes_nothing(first in "[*$+:%~>-]", rest in "[0-9-]{0,3}[\r\n]{0,3}[a-z0-9\r\n]{0,12}") {
            agrees(format!("{first}{rest}").as_bytes());
        }
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
        let Read::Parsed(element, len) = read(&long, ALL) else { unreachable!() };
        assert_eq!((element.text.map(|text| text.bytes().len()), len), (Some(MAX_TEXT), 100_011));
    }
}
