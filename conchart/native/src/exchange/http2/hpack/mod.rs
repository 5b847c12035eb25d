//! Reads header blocks: HPACK (RFC 7541), one direction of a connection.
//!
//! In: whole header blocks, in order. Out: fields. When a block was missed, or the capture began later, the older
//! part of the dynamic table is unknown: what refers to it is handed out as unknown, and everything else still holds,
//! because indices count from the newest entry.
//!
//! Why not a crate: those looked at (`hpack`, `fluke-hpack`, `loona-hpack`, `httlib-hpack`) give a block up at the
//! first index they do not know, which would lose what follows it, and the table with it; `loona-hpack`, which is kept,
//! also builds a map of 257 codes for every string. Bounded: entries count what the RFC says (section 4.1), at most
//! [`MAX_TABLE`].

mod huffman;
mod tables;

use std::collections::VecDeque;

use tables::STATIC;

/// Largest dynamic table that is followed; browsers allow 64 KiB.
const MAX_TABLE: usize = 64 * 1024;
/// The size both sides begin with (RFC 9113 section 6.5.2).
const INITIAL_TABLE: usize = 4096;
/// What an entry counts beyond its name and value (RFC 7541 section 4.1).
const OVERHEAD: usize = 32;

/// The block breaks the rules: what followed in it is unknown.
#[derive(Debug, Eq, PartialEq)]
pub(in crate::exchange) struct Malformed;

/// A name or value; `None`: it refers to what nobody saw.
pub(in crate::exchange) type Text = Option<Box<[u8]>>;

#[derive(Clone)]
pub(in crate::exchange) struct Field {
    pub name: Text,
    pub value: Text,
}

impl Field {
    /// What it counts in a dynamic table.
    pub fn size(&self) -> usize {
        let len = |text: &Text| text.as_ref().map_or(0, |text| text.len());
        len(&self.name) + len(&self.value) + OVERHEAD
    }
}

pub(super) struct Decoder {
    /// Newest first.
    entries: VecDeque<Field>,
    size: usize,
    max: usize,
    /// Older entries are unknown.
    forgetful: bool,
}

impl Decoder {
    pub fn new() -> Self {
        Self { entries: VecDeque::new(), size: 0, max: INITIAL_TABLE, forgetful: false }
    }

    /// Blocks were missed: nothing is known of the table.
    pub fn forget(&mut self) {
        self.entries.clear();
        (self.size, self.max, self.forgetful) = (0, MAX_TABLE, true);
    }

    /// Reads a whole block, field by field.
    pub fn decode(&mut self, block: &[u8], mut found: impl FnMut(Field)) -> Result<(), Malformed> {
        let mut rest = block;
        while let Some(&first) = rest.first() {
            let read = self.field(first, &mut rest);
            match read {
                Some(Some(field)) => found(field),
                Some(None) => {}
                None => {
                    self.forget();
                    return Err(Malformed);
                }
            }
        }
        Ok(())
    }

    /// The next representation (RFC 7541 section 6); the inner `None` is a change of the table's size.
    fn field(&mut self, first: u8, rest: &mut &[u8]) -> Option<Option<Field>> {
        if first & 0x80 != 0 {
            let index = integer(rest, 7)?;
            return self.entry(index).map(Some);
        }
        if first & 0xe0 == 0x20 {
            let size = integer(rest, 5)?;
            // A larger table than is followed: its older part is unknown.
            self.forgetful |= size > MAX_TABLE;
            self.max = size.min(MAX_TABLE);
            self.evict();
            return Some(None);
        }
        let indexed = first & 0x40 != 0;
        let index = integer(rest, if indexed { 6 } else { 4 })?;
        let name = if index == 0 { Some(string(rest, 7)?) } else { self.entry(index)?.name };
        let field = Field { name, value: Some(string(rest, 7)?) };
        if indexed {
            self.size += field.size();
            self.entries.push_front(field.clone());
            self.evict();
        }
        Some(Some(field))
    }

    fn entry(&self, index: usize) -> Option<Field> {
        let index = index.checked_sub(1)?;
        if let Some(&(name, value)) = STATIC.get(index) {
            return Some(Field { name: Some(name.into()), value: Some(value.into()) });
        }
        let entry = self.entries.get(index - STATIC.len()).cloned();
        entry.or(self.forgetful.then_some(Field { name: None, value: None }))
    }

    fn evict(&mut self) {
        while self.size > self.max
            && let Some(oldest) = self.entries.pop_back()
        {
            self.size -= oldest.size();
        }
    }
}

/// An integer with a prefix of so many bits (RFC 7541 section 5.1).
pub(in crate::exchange) fn integer(rest: &mut &[u8], prefix: u32) -> Option<usize> {
    /// More octets than any length here needs.
    const MAX_OCTETS: usize = 4;
    let (&first, mut after) = rest.split_first()?;
    let mask = (1usize << prefix) - 1;
    let mut value = usize::from(first) & mask;
    if value == mask {
        for octet in 0..=MAX_OCTETS {
            let (&byte, next) = after.split_first()?;
            after = next;
            if octet == MAX_OCTETS {
                return None;
            }
            value += usize::from(byte & 0x7f) << (7 * octet);
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    *rest = after;
    Some(value)
}

/// A string, coded or not (RFC 7541 section 5.2), whose length has a prefix of so many bits.
pub(in crate::exchange) fn string(rest: &mut &[u8], prefix: u32) -> Option<Box<[u8]>> {
    let coded = rest.first()? & 1 << prefix != 0;
    let length = integer(rest, prefix)?;
    let (text, after) = rest.split_at_checked(length)?;
    *rest = after;
    if coded { huffman::decode(text).map(Vec::into_boxed_slice) } else { Some(text.into()) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use proptest::prelude::*;

    fn read(decoder: &mut Decoder, hex: &str) -> Vec<(Option<String>, Option<String>)> {
        let bytes: Vec<u8> =
            (0..hex.len() / 2).map(|byte| u8::from_str_radix(&hex[2 * byte..2 * byte + 2], 16).unwrap()).collect();
        let mut found = Vec::new();
        let text = |t: Text| t.map(|t| String::from_utf8(t.to_vec()).unwrap());
        decoder.decode(&bytes, |field| found.push((text(field.name), text(field.value)))).unwrap();
        found
    }

    fn field(name: &str, value: &str) -> (Option<String>, Option<String>) {
        (Some(name.to_owned()), Some(value.to_owned()))
    }

    /// RFC 7541 appendix C.4: requests with Huffman coding.
    const REQUESTS: [&str; 3] = [
        "828684418cf1e3c2e5f23a6ba0ab90f4ff",
        "828684be5886a8eb10649cbf",
        "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
    ];

    #[test]
    fn requests_of_the_rfc_are_read() {
        let mut decoder = Decoder::new();
        let first = read(&mut decoder, REQUESTS[0]);
        assert_eq!(first[3], field(":authority", "www.example.com"));
        let second = read(&mut decoder, REQUESTS[1]);
        assert_eq!(second[3..], [field(":authority", "www.example.com"), field("cache-control", "no-cache")]);
        let third = read(&mut decoder, REQUESTS[2]);
        assert_eq!(third[4], field("custom-key", "custom-value"));
        assert_eq!((decoder.entries.len(), decoder.size), (3, 164));
    }

    #[test]
    fn small_tables_evict_as_in_the_rfc() {
        // Appendix C.6 with a table of 256 octets.
        let mut decoder = Decoder::new();
        decoder.max = 256;
        let responses = [
            "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3",
            "4883640effc1c0bf",
        ];
        assert_eq!(read(&mut decoder, responses[0])[0], field(":status", "302"));
        let second = read(&mut decoder, responses[1]);
        assert_eq!((&second[0], &second[3]), (&field(":status", "307"), &field("location", "https://www.example.com")));
        assert_eq!((decoder.entries.len(), decoder.size), (4, 222));
    }

    #[test]
    fn after_a_loss_only_what_came_since_is_known() {
        let mut decoder = Decoder::new();
        decoder.forget();
        let second = read(&mut decoder, REQUESTS[1]);
        assert_eq!((&second[0], &second[3]), (&field(":method", "GET"), &(None, None)));
        // 62 is `cache-control` now, 63 is older than the loss.
        assert_eq!(read(&mut decoder, "bebf"), [field("cache-control", "no-cache"), (None, None)]);
    }

    #[test]
    fn an_index_that_cannot_be_makes_the_table_unknown() {
        let mut decoder = Decoder::new();
        assert_eq!(decoder.decode(&[0xbe], |_| ()), Err(Malformed));
        assert_eq!(read(&mut decoder, "be"), [(None, None)]);
    }

    proptest! {
        #[test]
        fn arbitrary_blocks_never_panic_and_stay_bounded(blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..20)) {
            let mut decoder = Decoder::new();
            for block in &blocks {
                let _ = decoder.decode(block, |_| ());
                prop_assert!(decoder.size <= decoder.max && decoder.max <= MAX_TABLE);
            }
        }
    }
}
