//! Reads field sections: QPACK (RFC 9204), what one side of a connection sends.
//!
//! In: that side's encoder stream, in order, and its encoded field sections. Out: fields, or word that a section refers
//! to entries that have not come. Where bytes of the encoder stream are missing, or its reader's settings, what refers
//! to the dynamic table is handed out as unknown: without the settings, nobody knows how many entries a section needs
//! (section 4.5.1.1).
//!
//! Why not a crate: `ls-qpack` and `ls-qpack-rs` bind C; `quiver-qpack`, `simoom-qpack` and `wtransport-proto` end a
//! section at the first entry that they do not know, where the rest of it can still be read. Bounded: entries count
//! what the RFC says (section 3.2.1), at most [`MAX_TABLE`]; an instruction is kept up to [`MAX_INSTRUCTION`] bytes.

use std::collections::VecDeque;

use super::tables::STATIC;
use crate::exchange::http2::hpack::{Field, Malformed, Text, integer, string};

/// Largest dynamic table that is followed; browsers allow 64 KiB.
const MAX_TABLE: usize = 64 * 1024;
const MAX_INSTRUCTION: usize = 128 * 1024;
/// What the smallest entry counts (section 3.2.1).
const OVERHEAD: usize = 32;

/// What became of a field section.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Read {
    Whole,
    /// It refers to entries that have not come yet.
    Blocked,
    /// The reader's settings have not come: nobody knows how many entries it refers to.
    Unsettled,
}

#[derive(Default)]
pub(super) struct Decoder {
    /// Newest first.
    entries: VecDeque<Field>,
    inserted: usize,
    size: usize,
    capacity: usize,
    /// The largest capacity that the reader allows, as its settings say.
    allowed: Option<usize>,
    /// An instruction of which the end is still to come.
    buffer: Vec<u8>,
    /// Instructions are missing: nobody knows what is in the table.
    is_lost: bool,
}

impl Decoder {
    /// The other side's SETTINGS_QPACK_MAX_TABLE_CAPACITY.
    pub fn allow(&mut self, capacity: u64) {
        self.allowed = usize::try_from(capacity).ok();
    }

    /// Are the settings known?
    pub fn is_allowed(&self) -> bool {
        self.allowed.is_some()
    }

    /// Bytes of the encoder stream are missing, or the settings.
    pub fn lose(&mut self) {
        self.is_lost = true;
        (self.entries, self.buffer) = (VecDeque::new(), Vec::new());
    }

    /// The next bytes of the encoder stream; true when entries came.
    pub fn instructions(&mut self, bytes: &[u8]) -> bool {
        if self.is_lost {
            return false;
        }
        let before = self.inserted;
        self.buffer.extend_from_slice(bytes);
        let buffer = std::mem::take(&mut self.buffer);
        let mut rest = buffer.as_slice();
        while !rest.is_empty() && self.instruction(&mut rest).is_some() {}
        if rest.len() > MAX_INSTRUCTION {
            self.lose();
        } else {
            self.buffer = rest.to_vec();
        }
        self.inserted > before
    }

    /// Bytes that are kept.
    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.buffer.len() + self.size
    }

    /// One encoder instruction (section 4.3); `None` where its end is missing.
    fn instruction(&mut self, rest: &mut &[u8]) -> Option<()> {
        let mut after = *rest;
        let first = *after.first()?;
        if first & 0x80 != 0 {
            let index = integer(&mut after, 6)?;
            let name = if first & 0x40 != 0 { fixed(index)?.name } else { self.entry(self.inserted, index).name };
            let value = Some(string(&mut after, 7)?);
            self.insert(Field { name, value });
        } else if first & 0x40 != 0 {
            let name = Some(string(&mut after, 5)?);
            let value = Some(string(&mut after, 7)?);
            self.insert(Field { name, value });
        } else if first & 0x20 != 0 {
            self.capacity = integer(&mut after, 5)?.min(MAX_TABLE);
            self.evict();
        } else {
            let index = integer(&mut after, 5)?;
            let field = self.entry(self.inserted, index);
            self.insert(field);
        }
        *rest = after;
        Some(())
    }

    fn insert(&mut self, field: Field) {
        self.size += field.size();
        self.entries.push_front(field);
        self.inserted += 1;
        self.evict();
    }

    fn evict(&mut self) {
        while self.size > self.capacity
            && let Some(oldest) = self.entries.pop_back()
        {
            self.size -= oldest.size();
        }
    }

    /// The entry that stands `index` before the one that is the `base`th to be inserted; unknown where nobody saw it.
    fn entry(&self, base: usize, index: usize) -> Field {
        let place = base.checked_sub(index.saturating_add(1)).and_then(|absolute| self.place(absolute));
        let found = place.and_then(|place| self.entries.get(place)).filter(|_| !self.is_lost);
        found.cloned().unwrap_or(Field { name: None, value: None })
    }

    /// Where the entry is of which so many were inserted before.
    fn place(&self, absolute: usize) -> Option<usize> {
        self.inserted.checked_sub(absolute.checked_add(1)?)
    }

    /// Reads a whole field section, field by field, unless it is blocked.
    pub fn decode(&self, section: &[u8], mut found: impl FnMut(Field)) -> Result<Read, Malformed> {
        let mut rest = section;
        let needed = integer(&mut rest, 8).ok_or(Malformed)?;
        let needed = match self.allowed {
            _ if self.is_lost || needed == 0 => 0,
            Some(allowed) => self.required(needed, allowed).ok_or(Malformed)?,
            None => return Ok(Read::Unsettled),
        };
        if needed > self.inserted {
            return Ok(Read::Blocked);
        }
        let is_before = rest.first().is_some_and(|first| first & 0x80 != 0);
        let delta = integer(&mut rest, 7).ok_or(Malformed)?;
        let base = if is_before {
            needed.checked_sub(delta).and_then(|base| base.checked_sub(1)).filter(|_| !self.is_lost).unwrap_or(0)
        } else {
            needed.saturating_add(delta)
        };
        while !rest.is_empty() {
            found(self.field(base, &mut rest).ok_or(Malformed)?);
        }
        Ok(Read::Whole)
    }

    /// How many entries a section needs, of which it says the lower part (section 4.5.1.1).
    fn required(&self, encoded: usize, allowed: usize) -> Option<usize> {
        let most = allowed / OVERHEAD;
        let range = most.checked_mul(2).filter(|&range| encoded <= range)?;
        let highest = self.inserted.checked_add(most)?;
        let required = (highest / range * range).checked_add(encoded)?.checked_sub(1)?;
        let required = if required > highest { required.checked_sub(range)? } else { required };
        (required > 0).then_some(required)
    }

    /// The next representation (section 4.5).
    fn field(&self, base: usize, rest: &mut &[u8]) -> Option<Field> {
        let first = *rest.first()?;
        // Beyond the base, indices count upwards.
        let beyond = |index: usize| self.entry(base.saturating_add(index).saturating_add(1), 0);
        let named = |name: Text, rest: &mut &[u8]| Some(Field { name, value: Some(string(rest, 7)?) });
        if first & 0x80 != 0 {
            let index = integer(rest, 6)?;
            if first & 0x40 != 0 { fixed(index) } else { Some(self.entry(base, index)) }
        } else if first & 0x40 != 0 {
            let index = integer(rest, 4)?;
            let name = if first & 0x10 != 0 { fixed(index)?.name } else { self.entry(base, index).name };
            named(name, rest)
        } else if first & 0x20 != 0 {
            let name = Some(string(rest, 3)?);
            named(name, rest)
        } else if first & 0x10 != 0 {
            Some(beyond(integer(rest, 4)?))
        } else {
            let name = beyond(integer(rest, 3)?).name;
            named(name, rest)
        }
    }
}

/// An entry of the static table.
fn fixed(index: usize) -> Option<Field> {
    let &(name, value) = STATIC.get(index)?;
    Some(Field { name: Some(name.into()), value: Some(value.into()) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]
    use proptest::prelude::*;

    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    fn read(decoder: &Decoder, section: &str) -> (Result<Read, Malformed>, Vec<(String, String)>) {
        let mut fields = Vec::new();
        let text = |text: Text| text.map_or("?".into(), |text| String::from_utf8_lossy(&text).into_owned());
        let result = decoder.decode(&hex(section), |field| fields.push((text(field.name), text(field.value))));
        (result, fields)
    }

    fn field(name: &str, value: &str) -> (String, String) {
        (name.into(), value.into())
    }

    #[test]
    fn the_examples_of_the_rfc() {
        // RFC 9204 appendix B.
        let mut decoder = Decoder::default();
        decoder.allow(220);
        let result = read(&decoder, "0000 510b 2f69 6e64 6578 2e68 746d 6c");
        assert_eq!(result, (Ok(Read::Whole), vec![field(":path", "/index.html")]));
        // B.2: the section comes before the entries that it needs.
        let section = "0381 10 11";
        assert_eq!(read(&decoder, section).0, Ok(Read::Blocked));
        let inserts = hex("3fbd01 c00f 7777 772e 6578 616d 706c 652e 636f 6d c10c 2f73 616d 706c 652f 7061 7468");
        assert!(!decoder.instructions(&inserts[..10]) && decoder.instructions(&inserts[10..]));
        let expected = vec![field(":authority", "www.example.com"), field(":path", "/sample/path")];
        assert_eq!(read(&decoder, section), (Ok(Read::Whole), expected));
        // B.3: a literal name; B.4: a duplicate.
        decoder.instructions(&hex("4a63 7573 746f 6d2d 6b65 790c 6375 7374 6f6d 2d76 616c 7565"));
        decoder.instructions(&hex("02"));
        let expected =
            vec![field(":authority", "www.example.com"), field(":path", "/"), field("custom-key", "custom-value")];
        assert_eq!(read(&decoder, "0500 80 c1 81"), (Ok(Read::Whole), expected));
        // B.5: the oldest entry goes.
        decoder.instructions(&hex("810d 6375 7374 6f6d 2d76 616c 7565 32"));
        assert_eq!((decoder.size, decoder.inserted, decoder.entries.len()), (215, 5, 4));
        decoder.lose();
        assert_eq!(read(&decoder, "0500 80 c1 81").1, [field("?", "?"), field(":path", "/"), field("?", "?")]);
    }

    /// What ls-qpack made (`tests/http3/qpack_vectors.py`): evictions, counts that wrap, sections before their entries.
    #[test]
    fn sections_of_another_encoder() {
        let mut decoder = Decoder::default();
        let mut waiting: Option<(&str, Vec<(String, String)>)> = None;
        let (mut sections, mut blocked, mut evicted) = (0, 0, false);
        for line in include_str!("vectors.txt").lines().chain(["allowed 0"]) {
            let (word, rest) = line.split_once(' ').unwrap();
            if !matches!(word, "allowed" | "instructions" | "section") {
                waiting.as_mut().unwrap().1.push(field(word, rest));
                continue;
            }
            let is_late = word == "instructions"
                && waiting.as_ref().is_some_and(|(section, _)| read(&decoder, section).0 == Ok(Read::Blocked));
            blocked += usize::from(is_late);
            if is_late {
                decoder.instructions(&hex(rest));
            }
            if let Some((section, fields)) = waiting.take() {
                assert_eq!(read(&decoder, section), (Ok(Read::Whole), fields), "{section}");
                sections += 1;
            }
            match word {
                "allowed" => {
                    decoder = Decoder::default();
                    decoder.allow(rest.parse().unwrap());
                }
                "instructions" if !is_late => drop(decoder.instructions(&hex(rest))),
                "section" => waiting = Some((rest, Vec::new())),
                _ => {}
            }
            evicted |= decoder.entries.len() < decoder.inserted;
        }
        assert!(sections == 200 && blocked > 10 && evicted, "{sections} sections, {blocked} blocked");
    }

    #[test]
    fn without_settings_nothing_is_guessed() {
        let mut decoder = Decoder::default();
        decoder.instructions(&hex("3fbd01 c00f 7777 772e 6578 616d 706c 652e 636f 6d"));
        assert_eq!(read(&decoder, "0200 d1").0, Ok(Read::Unsettled));
        assert_eq!(read(&decoder, "0000 d1").1, [field(":method", "GET")]);
        decoder.lose();
        assert_eq!(read(&decoder, "0200 d180").1, [field(":method", "GET"), field("?", "?")]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic_and_little_is_kept(
            instructions in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..20),
            section in prop::collection::vec(any::<u8>(), 0..60),
            allowed in 0_u64..200_000,
        ) {
            let mut decoder = Decoder::default();
            decoder.allow(allowed);
            for bytes in &instructions {
                decoder.instructions(bytes);
                prop_assert!(decoder.held() <= MAX_TABLE + 20 * 60);
            }
            let _ = decoder.decode(&section, |_| ());
        }

        /// Law: how the encoder stream is cut changes nothing.
        #[test]
        fn cuts_do_not_matter(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in any::<prop::sample::Index>()) {
            let (mut whole, mut parts) = (Decoder::default(), Decoder::default());
            whole.instructions(&bytes);
            let at = cut.index(bytes.len() + 1);
            parts.instructions(&bytes[..at]);
            parts.instructions(&bytes[at..]);
            prop_assert_eq!((whole.inserted, whole.size, whole.buffer), (parts.inserted, parts.size, parts.buffer));
        }
    }
}
