//! Lines as columns.

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, Int64Builder, ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::ArrowError;

use super::tokens::{Found, Layout};

/// Bytes of a line that are kept, for people.
const SHOWN: usize = 1_000;

/// The columns of `log_lines` that a line fills by itself; `docs/tables.md` explains them.
#[derive(Debug, Default)]
pub(super) struct Rows {
    times: usize,
    rows: usize,
    line: Int64Builder,
    logged_at: Int64Builder,
    client_ip: StringBuilder,
    client_port: Int32Builder,
    method: StringBuilder,
    host: StringBuilder,
    target: StringBuilder,
    status: Int32Builder,
    bytes: Int64Builder,
    request_bytes: Int64Builder,
    id: StringBuilder,
    durations: ListBuilder<Int64Builder>,
    text: StringBuilder,
}

impl Rows {
    pub fn new(layout: &Layout) -> Self {
        Self { times: layout.times(), ..Self::default() }
    }

    pub fn len(&self) -> usize {
        self.rows
    }

    pub fn push(&mut self, number: i64, line: &[u8], found: &Found) {
        self.rows += 1;
        self.line.append_value(number);
        self.logged_at.append_option(found.at.map(|at| at.ns));
        self.client_ip.append_option(found.client_ip.as_deref());
        self.client_port.append_option(found.client_port);
        self.method.append_option(found.method.as_deref());
        self.host.append_option(found.host.as_deref());
        self.target.append_option(found.target.as_deref());
        self.status.append_option(found.status);
        self.bytes.append_option(found.bytes);
        self.request_bytes.append_option(found.request_bytes);
        self.id.append_option(found.id.as_deref());
        if self.times == 0 {
            self.durations.append_null();
        } else {
            self.durations.append_value(found.times.iter().copied());
        }
        self.text.append_value(String::from_utf8_lossy(line.get(..SHOWN).unwrap_or(line)));
    }

    pub fn take(&mut self) -> Result<RecordBatch, ArrowError> {
        self.rows = 0;
        let columns: [(&str, ArrayRef); 13] = [
            ("line", Arc::new(self.line.finish())),
            ("logged_at", Arc::new(self.logged_at.finish())),
            ("client_ip", Arc::new(self.client_ip.finish())),
            ("client_port", Arc::new(self.client_port.finish())),
            ("method", Arc::new(self.method.finish())),
            ("host", Arc::new(self.host.finish())),
            ("target", Arc::new(self.target.finish())),
            ("status", Arc::new(self.status.finish())),
            ("bytes", Arc::new(self.bytes.finish())),
            ("request_bytes", Arc::new(self.request_bytes.finish())),
            ("id", Arc::new(self.id.finish())),
            ("durations", Arc::new(self.durations.finish())),
            ("text", Arc::new(self.text.finish())),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true)))
    }
}
