//! Columns as bytes that compress well and that a browser reads without parsing.
//!
//! A column of whole numbers becomes byte planes: the lowest byte of every value, then the next one of every value. What
//! is in a plane is alike, which is what DEFLATE wants. Values are counted from the least of them, or, where that needs
//! fewer bits, each from the one before (zigzag). A text is the number of its first appearance among the texts.
//! `scripts/decode.js` reads them.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{ArrowError, DataType};

/// A column as it travels.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Packed {
    /// Bytes of each value.
    pub width: usize,
    /// Whether each value is counted from the one before.
    pub delta: bool,
    /// What values are counted from, where they are not counted from each other.
    pub least: i64,
    pub planes: Vec<u8>,
    /// 1 where there is a value; empty where there is one everywhere.
    pub valid: Vec<u8>,
    /// Distinct texts, where values are numbers of texts.
    pub texts: Option<Vec<String>>,
}

/// Values of a column, as they are collected. Where there is none, the one before stands once more.
#[derive(Debug, Default)]
pub struct Column {
    values: Vec<i64>,
    valid: Vec<u8>,
    codes: Option<HashMap<String, i64>>,
}

impl Column {
    /// Takes the next values.
    ///
    /// # Errors
    /// They are neither whole numbers of at most 64 bits, nor truth values, nor texts.
    pub fn take(&mut self, array: &dyn Array) -> Result<(), ArrowError> {
        macro_rules! numbers {
            ($kind:ty) => {
                array.as_primitive::<$kind>().iter().for_each(|value| self.push(value.map(i64::from)))
            };
        }
        match array.data_type() {
            DataType::Boolean => array.as_boolean().iter().for_each(|value| self.push(value.map(i64::from))),
            DataType::Int8 => numbers!(Int8Type),
            DataType::Int16 => numbers!(Int16Type),
            DataType::Int32 => numbers!(Int32Type),
            DataType::Int64 => numbers!(Int64Type),
            DataType::UInt8 => numbers!(UInt8Type),
            DataType::UInt16 => numbers!(UInt16Type),
            DataType::UInt32 => numbers!(UInt32Type),
            DataType::Utf8 => array.as_string::<i32>().iter().for_each(|text| self.push_text(text)),
            DataType::LargeUtf8 => array.as_string::<i64>().iter().for_each(|text| self.push_text(text)),
            // What DuckDB makes of ENUMs.
            DataType::Dictionary(_, _) => match array.as_any_dictionary_opt() {
                Some(words) if words.values().data_type() == &DataType::Utf8 && !words.values().is_empty() => {
                    let texts = words.values().as_string::<i32>();
                    let text = |key: usize| (key < texts.len()).then(|| texts.value(key));
                    for (row, key) in words.normalized_keys().into_iter().enumerate() {
                        self.push_text(text(key).filter(|_| words.keys().is_valid(row)));
                    }
                }
                _ => return Err(ArrowError::NotYetImplemented(format!("packing {}", array.data_type()))),
            },
            other => return Err(ArrowError::NotYetImplemented(format!("packing {other}"))),
        }
        Ok(())
    }

    fn push(&mut self, value: Option<i64>) {
        self.valid.push(u8::from(value.is_some()));
        let value = value.or_else(|| self.values.last().copied());
        self.values.push(value.unwrap_or(0));
    }

    fn push_text(&mut self, text: Option<&str>) {
        let codes = self.codes.get_or_insert_default();
        let next = i64::try_from(codes.len()).unwrap_or(i64::MAX);
        let code = text.map(|text| match codes.get(text) {
            Some(&code) => code,
            None => *codes.entry(text.to_owned()).or_insert(next),
        });
        self.push(code);
    }

    /// Writes the column.
    #[must_use]
    pub fn pack(self) -> Packed {
        let least = self.values.iter().copied().min().unwrap_or(0);
        let counted = |value: i64| value.wrapping_sub(least).cast_unsigned();
        let bits = |value: u64| u64::from(u64::BITS - value.leading_zeros());
        let plain: u64 = self.values.iter().map(|&value| bits(counted(value))).sum();
        let delta = steps(&self.values).map(bits).sum::<u64>() < plain;
        let coded: Vec<u64> =
            if delta { steps(&self.values).collect() } else { self.values.iter().map(|&v| counted(v)).collect() };
        let widest = coded.iter().copied().max().map_or(0, bits);
        let width = usize::try_from(widest.div_ceil(8)).unwrap_or(8);
        let planes = (0..width)
            .flat_map(|plane| coded.iter().filter_map(move |value| value.to_le_bytes().get(plane).copied()))
            .collect();
        let texts = self.codes.map(|codes| {
            let mut texts: Vec<(i64, String)> = codes.into_iter().map(|(text, code)| (code, text)).collect();
            texts.sort_unstable();
            texts.into_iter().map(|(_, text)| text).collect()
        });
        let valid = if self.valid.contains(&0) { self.valid } else { Vec::new() };
        Packed { width, delta, least: if delta { 0 } else { least }, planes, valid, texts }
    }
}

/// How far each value is from the one before, the first from 0: 0, -1, 1, -2 … as 0, 1, 2, 3 …
fn steps(values: &[i64]) -> impl Iterator<Item = u64> {
    let before = std::iter::once(&0).chain(values);
    values.iter().zip(before).map(|(&value, &before)| {
        let step = value.wrapping_sub(before);
        ((step << 1) ^ (step >> 63)).cast_unsigned()
    })
}

/// Packs the columns of rows that come in batches; tells how many rows they are.
///
/// # Errors
/// A batch cannot be had, or a column is of a type that is not packed.
pub fn pack(
    names: Vec<String>,
    batches: impl Iterator<Item = Result<RecordBatch, ArrowError>>,
) -> Result<(usize, Vec<(String, Packed)>), ArrowError> {
    let mut columns: Vec<Column> = names.iter().map(|_| Column::default()).collect();
    let mut rows = 0;
    for batch in batches {
        let batch = batch?;
        rows += batch.num_rows();
        for (column, array) in columns.iter_mut().zip(batch.columns()) {
            column.take(array)?;
        }
    }
    Ok((rows, names.into_iter().zip(columns).map(|(name, column)| (name, column.pack())).collect()))
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int64Array, StringArray};
    use proptest::prelude::*;

    use super::*;

    /// As `decode.js` does it.
    fn unpack(packed: &Packed, rows: usize) -> Vec<Option<i64>> {
        let mut before = 0_i64;
        let plane = |number: usize| packed.planes.chunks(rows.max(1)).nth(number).unwrap_or_default();
        (0..rows)
            .map(|row| {
                let code = (0..packed.width).fold(0_u64, |code, number| {
                    code | u64::from(plane(number).get(row).copied().unwrap_or(0)) << (8 * number)
                });
                let step = (code >> 1).cast_signed() ^ -(code & 1).cast_signed();
                before = if packed.delta {
                    before.wrapping_add(step)
                } else {
                    packed.least.wrapping_add(code.cast_signed())
                };
                packed.valid.get(row).is_none_or(|&valid| valid == 1).then_some(before)
            })
            .collect()
    }

    proptest! {
        #[test]
        fn what_is_packed_is_what_was_given(values: Vec<Option<i64>>) {
            let mut column = Column::default();
            column.take(&Int64Array::from(values.clone())).map_err(|e| TestCaseError::fail(e.to_string()))?;
            prop_assert_eq!(unpack(&column.pack(), values.len()), values);
        }

        #[test]
        fn rising_times_take_no_more_than_their_steps(steps in prop::collection::vec(0_i64..100, 2..50)) {
            let mut at = 1_700_000_000_000_000_000;
            let values: Vec<i64> = steps.iter().map(|step| { at += step; at - 1_700_000_000_000_000_000 }).collect();
            let mut column = Column::default();
            column.take(&Int64Array::from(values)).map_err(|e| TestCaseError::fail(e.to_string()))?;
            prop_assert!(column.pack().width <= 1 + usize::from(steps.iter().sum::<i64>() > 255));
        }
    }

    #[test]
    fn texts_are_numbered_as_they_appear() {
        let mut column = Column::default();
        let texts = StringArray::from(vec![Some("b"), None, Some("a"), Some("b")]);
        assert!(column.take(&texts).is_ok());
        let packed = column.pack();
        assert_eq!(unpack(&packed, 4), [Some(0), None, Some(1), Some(0)]);
        assert_eq!(packed.texts, Some(vec!["b".into(), "a".into()]));
    }

    #[test]
    fn other_types_are_refused() {
        assert!(Column::default().take(&arrow_array::Float64Array::from(vec![1.0])).is_err());
    }
}
