//! BSON (bsonspec.org, version 1.1): the elements of a document, one after the other, in borrowed bytes.
//!
//! In: the beginning of a document. Out: names, types and the bytes of values. An element whose value is cut off is the
//! last one. Nothing is kept, and nothing beyond the document's own length is read.

pub(super) const DOUBLE: u8 = 0x01;
pub(super) const STRING: u8 = 0x02;
pub(super) const DOCUMENT: u8 = 0x03;
pub(super) const ARRAY: u8 = 0x04;
pub(super) const BOOLEAN: u8 = 0x08;
pub(super) const INT32: u8 = 0x10;
pub(super) const INT64: u8 = 0x12;

/// The shortest document: its length, and the byte that ends it.
pub(super) const SHORTEST: usize = 5;

#[derive(Clone, Copy, Debug)]
pub(super) struct Element<'a> {
    pub kind: u8,
    pub name: &'a [u8],
    /// As far as it is there.
    pub value: &'a [u8],
}

/// The elements of a document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Elements<'a> {
    rest: &'a [u8],
}

impl<'a> Elements<'a> {
    /// Those of the document that begins here.
    pub fn of(document: &'a [u8]) -> Self {
        let contents = length(document).filter(|&len| len >= SHORTEST).and_then(|len| {
            let document = document.get(..len).unwrap_or(document);
            document.get(4..)
        });
        Self { rest: contents.unwrap_or_default() }
    }

    pub fn named(mut self, name: &[u8]) -> Option<Element<'a>> {
        self.find(|element| element.name == name)
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;

    fn next(&mut self) -> Option<Element<'a>> {
        let (&kind, rest) = self.rest.split_first().filter(|(kind, _)| **kind != 0)?;
        let (name, rest) = text(rest)?;
        let Some((value, rest)) = size(kind, rest).and_then(|size| rest.split_at_checked(size)) else {
            self.rest = &[];
            return Some(Element { kind, name, value: rest });
        };
        self.rest = rest;
        Some(Element { kind, name, value })
    }
}

impl<'a> Element<'a> {
    /// The elements of its value, if that is a document or an array.
    pub fn elements(&self) -> Elements<'a> {
        let value = if matches!(self.kind, DOCUMENT | ARRAY) { self.value } else { &[] };
        Elements::of(value)
    }

    /// Its value as a string, without the byte that ends it.
    pub fn string(&self) -> Option<&'a [u8]> {
        if self.kind != STRING {
            return None;
        }
        let len = length(self.value)?;
        self.value.get(4..)?.get(..len.checked_sub(1)?)
    }

    /// Its value as a whole number: servers write `ok` and codes as any of these types.
    pub fn number(&self) -> Option<i64> {
        match self.kind {
            DOUBLE => Some(whole(f64::from_le_bytes(*self.value.first_chunk()?))),
            INT32 => Some(i32::from_le_bytes(*self.value.first_chunk()?).into()),
            INT64 => Some(i64::from_le_bytes(*self.value.first_chunk()?)),
            BOOLEAN => self.value.first().map(|&byte| byte.into()),
            _ => None,
        }
    }

    pub fn is_true(&self) -> bool {
        self.number().is_some_and(|number| number != 0)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a cast saturates; codes are small")]
fn whole(number: f64) -> i64 {
    number as i64
}

/// The length that a document says it has, itself included.
pub(super) fn length(document: &[u8]) -> Option<usize> {
    usize::try_from(i32::from_le_bytes(*document.first_chunk()?)).ok()
}

/// A text that ends with a zero, and what follows.
pub(super) fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (text, rest) = bytes.split_at_checked(memchr::memchr(0, bytes)?)?;
    Some((text, rest.get(1..)?))
}

/// Bytes of a value of that type; `None`: too few are there to tell, or nobody knows the type.
fn size(kind: u8, rest: &[u8]) -> Option<usize> {
    Some(match kind {
        DOUBLE | 0x09 | 0x11 | INT64 => 8,
        STRING | 0x0d | 0x0e => length(rest)?.checked_add(4)?,
        DOCUMENT | ARRAY | 0x0f => length(rest)?,
        0x05 => length(rest)?.checked_add(5)?,
        0x06 | 0x0a | 0x7f | 0xff => 0,
        0x07 => 12,
        BOOLEAN => 1,
        0x0b => {
            let (_, options) = text(rest)?;
            rest.len() - text(options)?.1.len()
        }
        0x0c => length(rest)?.checked_add(16)?,
        INT32 => 4,
        0x13 => 16,
        _ => return None,
    })
}

/// May this be the type of an element, or the end of a document?
pub(super) fn is_type(byte: u8) -> bool {
    matches!(byte, 0..=0x13 | 0x7f | 0xff)
}
