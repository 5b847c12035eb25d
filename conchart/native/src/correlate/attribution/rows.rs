//! Rows of connections, stretches, delays and waits in, rows of owners' time out: the Arrow side of attribution.
//!
//! In: record batches with the columns that `analysis/waits.py` and `analysis/findings/pricing.py` select. Out: record
//! batches with the columns of `wait_owners` and `explained_waits`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::ArrowError;

use super::prices::{Delay, Delayed, Price, Wait};
use super::{Attribution, Connection, Owned, Owner, Stretch};
use crate::correlate::columns::{Columns, at};
use crate::phases::Kind;

/// A server: its address, and its port where it has one.
type Server = (Box<str>, Option<i32>);

/// What was read so far.
#[derive(Debug, Default)]
pub struct Reading {
    connections: HashMap<i32, Connection>,
    stretches: Vec<Stretch>,
    handed: HashMap<(i32, i32), (i64, i64)>,
    servers: Vec<Server>,
    numbers: HashMap<Server, usize>,
}

impl Reading {
    /// Takes connections.
    ///
    /// # Errors
    /// When a column is missing, or of another type.
    pub fn connections(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let columns = Columns { batch };
        let longs = |name| columns.get::<Int64Array>(name);
        let flags = |name| columns.get::<BooleanArray>(name);
        let stream = columns.get::<Int32Array>("stream")?;
        let (ip, port) = (columns.get::<StringArray>("server_ip")?, columns.get::<Int32Array>("server_port")?);
        let (is_served, is_answered, is_most) = (flags("is_served")?, flags("is_answered")?, flags("is_most")?);
        let (way_ns, goes_on_until) = (longs("way_ns")?, longs("goes_on_until")?);
        let (client_ns, server_ns) = (longs("client_ns")?, longs("server_ns")?);
        for row in 0..batch.num_rows() {
            let connection = Connection {
                server: self.number((ip.value(row).into(), at!(port, row))),
                is_served: at!(is_served, row).unwrap_or(false),
                is_answered: at!(is_answered, row).unwrap_or(false),
                way_ns: at!(way_ns, row),
                is_most: at!(is_most, row).unwrap_or(false),
                client_ns: at!(client_ns, row),
                server_ns: at!(server_ns, row),
                goes_on_until: at!(goes_on_until, row),
            };
            self.connections.insert(stream.value(row), connection);
        }
        Ok(())
    }

    fn number(&mut self, server: Server) -> usize {
        if let Some(number) = self.numbers.get(&server) {
            return *number;
        }
        let number = self.servers.len();
        self.servers.push(server.clone());
        self.numbers.insert(server, number);
        number
    }

    /// Takes pieces of waits and of stalls.
    ///
    /// # Errors
    /// When a column is missing, or of another type.
    pub fn stretches(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let columns = Columns { batch };
        let (stream, exchange) = (columns.get::<Int32Array>("stream")?, columns.get::<Int32Array>("exchange")?);
        let (start_at, end_at) = (columns.get::<Int64Array>("start_at")?, columns.get::<Int64Array>("end_at")?);
        let (phase, owner) = (columns.words("phase")?, columns.words("owner")?);
        for row in 0..batch.num_rows() {
            let Some(kind) = phase.get(row).and_then(Kind::named) else { continue };
            self.stretches.push(Stretch {
                stream: stream.value(row),
                exchange: at!(exchange, row),
                kind,
                owner: owner.get(row).and_then(Owner::named),
                start_at: start_at.value(row),
                end_at: end_at.value(row),
            });
        }
        Ok(())
    }

    /// Takes what proxies took of waits.
    ///
    /// # Errors
    /// When a column is missing, or of another type.
    pub fn handed(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let columns = Columns { batch };
        let (stream, exchange) = (columns.get::<Int32Array>("stream")?, columns.get::<Int32Array>("exchange")?);
        let (proxy_ns, wait_ns) = (columns.get::<Int64Array>("proxy_ns")?, columns.get::<Int64Array>("wait_ns")?);
        for row in 0..batch.num_rows() {
            self.handed.insert((stream.value(row), exchange.value(row)), (proxy_ns.value(row), wait_ns.value(row)));
        }
        Ok(())
    }

    /// Everything is there.
    #[must_use]
    pub fn done(self) -> Rows {
        let Self { connections, stretches, handed, servers, .. } = self;
        Rows { servers, attribution: Attribution::new(connections, stretches, handed) }
    }
}

/// What was read, and what is worked out of it.
#[derive(Debug)]
pub struct Rows {
    servers: Vec<Server>,
    attribution: Attribution,
}

impl Rows {
    /// The time of each owner, as rows.
    ///
    /// # Errors
    /// When the columns make no batch.
    pub fn owners(&self) -> Result<RecordBatch, ArrowError> {
        self.rows(&self.attribution.owners(), "waited_ns")
    }

    /// What these findings explain of it, as rows.
    ///
    /// # Errors
    /// When the columns make no batch.
    pub fn explained(&self, ids: &HashSet<i32>) -> Result<RecordBatch, ArrowError> {
        self.rows(&self.attribution.explained(ids), "explained_ns")
    }

    fn rows(&self, owned: &Owned, sum: &str) -> Result<RecordBatch, ArrowError> {
        let server = |number: &usize| self.servers.get(*number);
        let ips = owned.keys().map(|(number, ..)| server(number).map(|(ip, _)| ip.as_ref())).collect::<StringArray>();
        let ports = owned.keys().map(|(number, ..)| server(number).and_then(|(_, port)| *port)).collect::<Int32Array>();
        let phases = owned.keys().map(|(_, kind, _)| Some(kind.name())).collect::<StringArray>();
        let owners = owned.keys().map(|(.., owner)| Some(owner.name())).collect::<StringArray>();
        let sums = owned.values().copied().map(Some).collect::<Int64Array>();
        RecordBatch::try_from_iter_with_nullable([
            ("server_ip", Arc::new(ips) as ArrayRef, true),
            ("server_port", Arc::new(ports), true),
            ("phase", Arc::new(phases), true),
            ("owner", Arc::new(owners), true),
            (sum, Arc::new(sums), true),
        ])
    }

    /// Takes exchanges that delays may be about.
    ///
    /// # Errors
    /// When a column is missing, or of another type.
    pub fn know(&self, batch: &RecordBatch, delayed: &mut Delayed) -> Result<(), ArrowError> {
        let columns = Columns { batch };
        let (stream, number) = (columns.get::<Int32Array>("stream")?, columns.get::<Int32Array>("number")?);
        let confidence = columns.get::<Float64Array>("confidence")?;
        let response_done_at = columns.get::<Int64Array>("response_done_at")?;
        for row in 0..batch.num_rows() {
            let exchange = (stream.value(row), number.value(row));
            self.attribution.know(delayed, exchange, at!(confidence, row), at!(response_done_at, row));
        }
        Ok(())
    }

    /// What each finding costs.
    pub fn price(&mut self, delayed: &Delayed, waits: &[Wait]) -> Vec<(i32, Price)> {
        self.attribution.price(delayed, waits)
    }

    /// What users paid for these findings, as rows.
    ///
    /// # Errors
    /// When the columns make no batch.
    pub fn paid(&self, ids: &HashSet<i32>) -> Result<RecordBatch, ArrowError> {
        let paid: Vec<_> = self.attribution.paid.iter().filter(|paid| ids.contains(&paid.id)).collect();
        let instants = |instant: fn(&super::prices::Paid) -> i64| -> ArrayRef {
            Arc::new(paid.iter().map(|paid| Some(instant(paid))).collect::<Int64Array>())
        };
        let streams = paid.iter().map(|paid| Some(paid.user_stream)).collect::<Int32Array>();
        RecordBatch::try_from_iter_with_nullable([
            ("stream", Arc::new(streams) as ArrayRef, true),
            ("start_at", instants(|paid| paid.start_at), true),
            ("end_at", instants(|paid| paid.end_at), true),
        ])
    }

    /// How much of what each finding explains is counted with one that comes before it.
    #[must_use]
    pub fn shared(&self, order: &[i32]) -> Vec<(i32, i64)> {
        self.attribution.shared(order)
    }
}

/// Appends the delays of a batch.
///
/// # Errors
/// When a column is missing, or of another type.
pub fn read_delays(batch: &RecordBatch, delays: &mut Vec<Delay>) -> Result<(), ArrowError> {
    let columns = Columns { batch };
    let integers = |name| columns.get::<Int32Array>(name);
    let longs = |name| columns.get::<Int64Array>(name);
    let (id, stream, exchange) = (integers("id")?, integers("stream")?, integers("exchange")?);
    let (start_at, end_at) = (longs("start_at")?, longs("end_at")?);
    delays.extend((0..batch.num_rows()).map(|row| Delay {
        id: id.value(row),
        stream: stream.value(row),
        exchange: at!(exchange, row),
        start_at: start_at.value(row),
        end_at: end_at.value(row),
    }));
    Ok(())
}

/// Appends the waits of a batch.
///
/// # Errors
/// When a column is missing, or of another type.
pub fn read_waits(batch: &RecordBatch, waits: &mut Vec<Wait>) -> Result<(), ArrowError> {
    let columns = Columns { batch };
    let integers = |name| columns.get::<Int32Array>(name);
    let longs = |name| columns.get::<Int64Array>(name);
    let (user_stream, stream, exchange) = (integers("user_stream")?, integers("stream")?, integers("exchange")?);
    let (start_at, end_at) = (longs("start_at")?, longs("end_at")?);
    waits.extend((0..batch.num_rows()).map(|row| Wait {
        user_stream: user_stream.value(row),
        stream: stream.value(row),
        exchange: exchange.value(row),
        start_at: start_at.value(row),
        end_at: end_at.value(row),
    }));
    Ok(())
}
