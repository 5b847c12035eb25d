//! Columns of text with few distinct values.
//!
//! In: one word per row, or none. Out: the number of each row's word, from 1, and 0 where there is none; and the words.
//! A byte per row is cheaper to write, to hand over and to keep than a text. Python makes ENUMs of it.

use std::sync::Arc;

use arrow_array::{ArrayRef, UInt8Array};

/// Builder of such a column. Words keep their numbers from batch to batch.
#[derive(Debug, Default)]
pub struct WordBuilder {
    codes: Vec<u8>,
    words: Vec<&'static str>,
}

impl WordBuilder {
    pub fn with_words(words: Vec<&'static str>, rows: usize) -> Self {
        Self { codes: Vec::with_capacity(rows), words }
    }

    pub fn append_option(&mut self, word: Option<&'static str>) {
        let code = word.map_or(0, |word| self.code(word));
        self.codes.push(code);
    }

    /// The column, without its words.
    pub fn finish(&mut self) -> ArrayRef {
        Arc::new(UInt8Array::from(std::mem::take(&mut self.codes)))
    }

    /// The words seen so far, in the order of their numbers.
    pub fn words(&self) -> Vec<&'static str> {
        self.words.clone()
    }

    fn code(&mut self, word: &'static str) -> u8 {
        // Nearly always it is the same text at the same place.
        let by_address = self.words.iter().position(|&other| std::ptr::eq(other, word));
        let place = by_address.or_else(|| self.words.iter().position(|&other| other == word)).unwrap_or_else(|| {
            self.words.push(word);
            self.words.len() - 1
        });
        // The program has no column of 256 words.
        u8::try_from(place + 1).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_array::types::UInt8Type;

    fn codes(builder: &mut WordBuilder) -> Vec<u8> {
        builder.finish().as_primitive::<UInt8Type>().values().to_vec()
    }

    #[test]
    fn words_are_numbered_in_the_order_of_their_first_appearance_and_none_is_0() {
        let mut builder = WordBuilder::default();
        for word in [Some("server"), None, Some("client"), Some("server")] {
            builder.append_option(word);
        }
        assert_eq!(codes(&mut builder), [1, 0, 2, 1]);
        assert_eq!(builder.words(), ["server", "client"]);
    }

    #[test]
    fn a_word_keeps_its_number_in_the_next_batch() {
        let mut builder = WordBuilder::default();
        builder.append_option(Some("client"));
        builder.append_option(Some("server"));
        builder.finish();
        builder.append_option(Some("server"));
        assert_eq!(codes(&mut builder), [2]);
    }

    #[test]
    fn the_same_text_at_another_place_is_the_same_word() {
        let mut builder = WordBuilder::default();
        builder.append_option(Some("client"));
        builder.append_option(Some(String::from("client").leak()));
        assert_eq!(codes(&mut builder), [1, 1]);
    }
}
