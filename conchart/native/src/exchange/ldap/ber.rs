//! Elements of BER (X.690) as LDAP encodes them (RFC 4511 section 5.1): small tags, definite lengths.
//!
//! In: the beginning of a message, as much of it as is kept. Out: where its elements begin and end; of text, what is there.
//! Non-goals: values of types that LDAP does not have.

/// Why an element cannot be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stop {
    /// So many bytes of the message are needed.
    More(usize),
    /// It is not what should stand here.
    Wrong,
}

pub(super) const INTEGER: u8 = 0x02;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const ENUMERATED: u8 = 0x0a;
pub(super) const SEQUENCE: u8 = 0x30;

/// Positions in the message. Invariant: `start <= end`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Element {
    pub tag: u8,
    /// Of its contents.
    pub start: usize,
    pub end: usize,
}

impl Element {
    pub fn len(self) -> usize {
        self.end - self.start
    }
}

/// Walks the elements that stand in another one.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> Cursor<'a> {
    /// From the first byte of a message on.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, end: usize::MAX }
    }

    /// What stands in `element`.
    pub fn inside(self, element: Element) -> Self {
        Self { at: element.start, end: element.end, ..self }
    }

    pub fn is_at_end(self) -> bool {
        self.at >= self.end
    }

    /// The tag of the next element.
    pub fn tag(self) -> Result<u8, Stop> {
        self.byte(self.at)
    }

    /// Steps over the next element.
    pub fn element(&mut self) -> Result<Element, Stop> {
        let tag = self.byte(self.at)?;
        let first = self.byte(self.at + 1)?;
        let (octets, mut len) = match first {
            0..=0x7f => (0, usize::from(first)),
            0x81..=0x84 => (usize::from(first & 0x7f), 0),
            // Of indefinite length, or longer than any message.
            _ => return Err(Stop::Wrong),
        };
        let start = self.at + 2 + octets;
        for at in self.at + 2..start {
            len = len << 8 | usize::from(self.byte(at)?);
        }
        let end = start.checked_add(len).filter(|&end| end <= self.end).ok_or(Stop::Wrong)?;
        self.at = end;
        Ok(Element { tag, start, end })
    }

    /// Steps over the next element, which has this tag.
    pub fn expect(&mut self, tag: u8) -> Result<Element, Stop> {
        if self.tag()? != tag {
            return Err(Stop::Wrong);
        }
        self.element()
    }

    /// The contents of an element, all of them.
    pub fn contents(self, element: Element) -> Result<&'a [u8], Stop> {
        self.bytes.get(element.start..element.end).ok_or(Stop::More(element.end))
    }

    /// The contents of an element as far as they are there.
    pub fn beginning(self, element: Element) -> &'a [u8] {
        let there = self.bytes.get(element.start..).unwrap_or_default();
        there.get(..element.len()).unwrap_or(there)
    }

    /// A number of up to four bytes that is not negative.
    pub fn number(self, element: Element) -> Result<u32, Stop> {
        match self.contents(Element { end: element.end.min(element.start + 5), ..element })? {
            [0..=0x7f, ..] if element.len() <= 4 => {}
            _ => return Err(Stop::Wrong),
        }
        Ok(self.contents(element)?.iter().fold(0, |number, &byte| number << 8 | u32::from(byte)))
    }

    fn byte(self, at: usize) -> Result<u8, Stop> {
        if at >= self.end {
            return Err(Stop::Wrong);
        }
        self.bytes.get(at).copied().ok_or(Stop::More(at + 1))
    }
}
