//! Columns of record batches that Python hands over.

use arrow_array::{Array, RecordBatch};
use arrow_schema::ArrowError;

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
}

/// The value of a column in a row, if there is one.
macro_rules! at {
    ($column:expr, $row:expr) => {
        $column.is_valid($row).then(|| $column.value($row))
    };
}
pub(crate) use at;
