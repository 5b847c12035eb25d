//! Columns of record batches that Python hands over.

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch, StringArray, UInt8Array};
use arrow_schema::ArrowError;

/// The value of a column in a row, if there is one.
macro_rules! at {
    ($column:expr, $row:expr) => {
        $column.is_valid($row).then(|| $column.value($row))
    };
}
pub(crate) use at;

/// The columns of a batch, by name.
pub(crate) struct Columns<'a> {
    pub batch: &'a RecordBatch,
}

impl<'a> Columns<'a> {
    /// The column of this name and type.
    pub fn get<T: Array + 'static>(&self, name: &str) -> Result<&'a T, ArrowError> {
        let column = self.batch.column_by_name(name);
        column.and_then(|column| column.as_any().downcast_ref::<T>()).ok_or_else(|| {
            ArrowError::SchemaError(format!("{name}: {:?}", column.map(|column| column.data_type().clone())))
        })
    }

    /// A column of words of a closed vocabulary: DuckDB makes a dictionary of an ENUM.
    pub fn words(&self, name: &str) -> Result<Words<'a>, ArrowError> {
        let column = self.batch.column_by_name(name);
        let words = column.and_then(|column| {
            let dictionary = column.as_any_dictionary_opt()?;
            let numbers = dictionary.keys().as_any().downcast_ref::<UInt8Array>()?;
            Some(Words { numbers, words: dictionary.values().as_string_opt::<i32>()? })
        });
        words.ok_or_else(|| {
            ArrowError::SchemaError(format!("{name}: {:?}", column.map(|column| column.data_type().clone())))
        })
    }
}

/// Words of a closed vocabulary.
pub(crate) struct Words<'a> {
    numbers: &'a UInt8Array,
    words: &'a StringArray,
}

impl Words<'_> {
    /// The word in a row, if there is one.
    pub fn get(&self, row: usize) -> Option<&str> {
        let number = usize::from(at!(self.numbers, row)?);
        (number < self.words.len()).then(|| self.words.value(number))
    }
}
