//! Rows of connections, phases, handshakes and exchanges in, rows of judged connections and of openings out: the Arrow side
//! of pools.
//!
//! In: record batches with the columns that `analysis/findings/evidence.py` selects. Out: two record batches, with the
//! columns of `judged` and `openings`.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::ArrowError;

use super::judging::{Connection, Evidence, Exchange, Judged, Secured};
use crate::correlate::columns::{Columns, at};
use crate::stream::Side;

/// Takes the connections of a batch.
///
/// # Errors
/// When a column is missing, or of another type.
pub fn connections(batch: &RecordBatch, evidence: &mut Evidence) -> Result<(), ArrowError> {
    let columns = Columns { batch };
    let integers = |name| columns.get::<Int32Array>(name);
    let longs = |name| columns.get::<Int64Array>(name);
    let texts = |name| columns.get::<StringArray>(name);
    let (stream, server_port, client_node) = (integers("stream")?, integers("server_port")?, integers("client_node")?);
    let (client_ip, server_ip) = (texts("client_ip")?, texts("server_ip")?);
    let (server_name, hop) = (texts("server_name")?, texts("hop")?);
    let (opened_at, syn_at, closed_at) = (longs("opened_at")?, longs("syn_at")?, longs("closed_at")?);
    let (fin_client_at, fin_server_at) = (longs("fin_client_at")?, longs("fin_server_at")?);
    let (rst_at, first_frame) = (longs("rst_at")?, longs("first_frame")?);
    let (fin_by, rst_by) = (columns.words("fin_by")?, columns.words("rst_by")?);
    let (ttl_client, announced) = (integers("ttl_client")?, columns.get::<BooleanArray>("announced")?);
    let (rtt_client_ns, rtt_server_ns) = (longs("rtt_client_ns")?, longs("rtt_server_ns")?);
    for row in 0..batch.num_rows() {
        evidence.connection(Connection {
            stream: stream.value(row),
            client_ip: client_ip.value(row).into(),
            server_ip: server_ip.value(row).into(),
            server_port: server_port.value(row),
            server_name: at!(server_name, row).map(Into::into),
            hop: hop.value(row).into(),
            client_node: client_node.value(row),
            opened_at: opened_at.value(row),
            syn_at: at!(syn_at, row),
            closed_at: closed_at.value(row),
            fin_client_at: at!(fin_client_at, row),
            fin_server_at: at!(fin_server_at, row),
            rst_at: at!(rst_at, row),
            fin_by: fin_by.get(row).and_then(Side::named),
            rst_by: rst_by.get(row).and_then(Side::named),
            first_frame: first_frame.value(row),
            ttl_client: at!(ttl_client, row),
            announced: announced.value(row),
            rtt_client_ns: at!(rtt_client_ns, row),
            rtt_server_ns: at!(rtt_server_ns, row),
        });
    }
    Ok(())
}

/// Takes phases `syn` and `close`.
///
/// # Errors
/// When a column is missing, or of another type.
pub fn phases(batch: &RecordBatch, evidence: &mut Evidence) -> Result<(), ArrowError> {
    let columns = Columns { batch };
    let (stream, kind) = (columns.get::<Int32Array>("stream")?, columns.words("kind")?);
    let (start_at, end_at) = (columns.get::<Int64Array>("start_at")?, columns.get::<Int64Array>("end_at")?);
    for row in 0..batch.num_rows() {
        match kind.get(row) {
            Some("syn") => evidence.opening(stream.value(row), end_at.value(row)),
            Some("close") => evidence.closing(stream.value(row), start_at.value(row)),
            _ => {}
        }
    }
    Ok(())
}

/// Takes the first handshakes of connections.
///
/// # Errors
/// When a column is missing, or of another type.
pub fn handshakes(batch: &RecordBatch, evidence: &mut Evidence) -> Result<(), ArrowError> {
    let columns = Columns { batch };
    let stream = columns.get::<Int32Array>("stream")?;
    let (hello_at, ready_at) = (columns.get::<Int64Array>("hello_at")?, columns.get::<Int64Array>("ready_at")?);
    let (has_version, sni) = (columns.get::<BooleanArray>("has_version")?, columns.get::<StringArray>("sni")?);
    let (kind, outcome) = (columns.words("kind")?, columns.words("outcome")?);
    for row in 0..batch.num_rows() {
        let secured = Secured {
            hello_at: at!(hello_at, row),
            ready_at: at!(ready_at, row),
            has_version: has_version.value(row),
            kind: kind.get(row).map(Into::into),
            is_complete: outcome.get(row).map(|outcome| outcome == "complete"),
            sni: at!(sni, row).map(Into::into),
        };
        evidence.handshake(stream.value(row), secured);
    }
    Ok(())
}

/// Takes how many checks connections had.
///
/// # Errors
/// When a column is missing, or of another type.
pub fn checks(batch: &RecordBatch, evidence: &mut Evidence) -> Result<(), ArrowError> {
    let columns = Columns { batch };
    let (stream, checks) = (columns.get::<Int32Array>("stream")?, columns.get::<Int64Array>("checks")?);
    for row in 0..batch.num_rows() {
        evidence.checks(stream.value(row), checks.value(row));
    }
    Ok(())
}

/// Hands over the exchanges of a batch.
///
/// # Errors
/// When a column is missing, or of another type.
pub fn exchanges(batch: &RecordBatch, mut take: impl FnMut(&Exchange<'_>)) -> Result<(), ArrowError> {
    let columns = Columns { batch };
    let integers = |name| columns.get::<Int32Array>(name);
    let longs = |name| columns.get::<Int64Array>(name);
    let flags = |name| columns.get::<BooleanArray>(name);
    let (stream, number, status) = (integers("stream")?, integers("number")?, integers("status")?);
    let (request_at, request_done_at) = (longs("request_at")?, longs("request_done_at")?);
    let (response_at, response_done_at) = (longs("response_at")?, longs("response_done_at")?);
    let (is_asking, is_answered) = (flags("is_asking")?, flags("is_answered")?);
    let (client_keepalive, server_keepalive) = (flags("client_keepalive")?, flags("server_keepalive")?);
    let protocol = columns.get::<StringArray>("protocol")?;
    let (kind, store) = (columns.words("kind")?, columns.words("store")?);
    for row in 0..batch.num_rows() {
        take(&Exchange {
            stream: stream.value(row),
            number: number.value(row),
            is_asking: at!(is_asking, row).unwrap_or(false),
            request_at: at!(request_at, row),
            request_done_at: at!(request_done_at, row),
            response_at: at!(response_at, row),
            response_done_at: at!(response_done_at, row),
            protocol: protocol.value(row),
            kind: kind.get(row),
            store: store.get(row),
            status: at!(status, row),
            client_keepalive: at!(client_keepalive, row),
            server_keepalive: at!(server_keepalive, row),
            is_answered: at!(is_answered, row).unwrap_or(false),
        });
    }
    Ok(())
}

/// Rows whose values are known or not.
struct Writing<'a, T> {
    rows: &'a [T],
    columns: Vec<(&'static str, ArrayRef, bool)>,
}

impl<'a, T> Writing<'a, T> {
    fn of(rows: &'a [T]) -> Self {
        Self { rows, columns: Vec::new() }
    }

    fn long(mut self, name: &'static str, value: impl Fn(&T) -> Option<i64>) -> Self {
        self.columns.push((name, Arc::new(self.rows.iter().map(value).collect::<Int64Array>()), true));
        self
    }

    fn int(mut self, name: &'static str, value: impl Fn(&T) -> Option<i32>) -> Self {
        self.columns.push((name, Arc::new(self.rows.iter().map(value).collect::<Int32Array>()), true));
        self
    }

    fn flag(mut self, name: &'static str, value: impl Fn(&T) -> Option<bool>) -> Self {
        self.columns.push((name, Arc::new(self.rows.iter().map(value).collect::<BooleanArray>()), true));
        self
    }

    fn text(mut self, name: &'static str, value: impl Fn(&'a T) -> Option<&'a str>) -> Self {
        self.columns.push((name, Arc::new(self.rows.iter().map(value).collect::<StringArray>()), true));
        self
    }

    fn batch(self) -> Result<RecordBatch, ArrowError> {
        RecordBatch::try_from_iter_with_nullable(self.columns)
    }
}

/// Gives the rows of `judged`.
///
/// # Errors
/// When the columns make no batch.
pub fn judged_rows(judged: &[Judged]) -> Result<RecordBatch, ArrowError> {
    Writing::of(judged)
        .int("stream", |one| Some(one.connection.stream))
        .text("client_ip", |one| Some(&one.connection.client_ip))
        .text("server_ip", |one| Some(&one.connection.server_ip))
        .int("server_port", |one| Some(one.connection.server_port))
        .text("server_name", |one| one.connection.server_name.as_deref())
        .text("hop", |one| Some(&one.connection.hop))
        .int("client_node", |one| Some(one.connection.client_node))
        .long("opened_at", |one| Some(one.connection.opened_at))
        .long("hello_at", |one| one.secured.hello_at)
        .long("closed_at", |one| Some(one.connection.closed_at))
        .long("closing_at", |one| one.closing_at)
        .int("refused_exchange", |one| one.refused_exchange)
        .long("refused_at", |one| one.refused_at)
        .long("refused_until", |one| one.refused_until)
        .long("ready_at", |one| one.ready_at)
        .flag("tls", |one| Some(one.tls))
        .text("handshake", |one| one.secured.kind.as_deref())
        .long("first_frame", |one| Some(one.connection.first_frame))
        .long("exchanges", |one| Some(one.exchanges))
        .int("first_exchange", |one| one.first_exchange)
        .long("first_request_at", |one| one.first_request_at)
        .long("last_done_at", |one| one.last_done_at)
        .flag("multiplexed", |one| Some(one.multiplexed))
        .text("closed_by", |one| one.closed_by.map(Side::name))
        .text("first_protocol", |one| one.first_protocol.as_deref())
        .text("first_kind", |one| one.first_kind.as_deref())
        .text("first_store", |one| one.first_store.as_deref())
        .int("last_status", |one| one.last_status)
        .flag("client_keeps", |one| one.client_keeps)
        .flag("server_keeps", |one| one.server_keeps)
        .int("ttl_client", |one| one.connection.ttl_client)
        .flag("answered", |one| Some(one.answered))
        .flag("announced", |one| Some(one.connection.announced))
        .text("ended_by", |one| one.ended_by.map(Side::name))
        .long("rtt_ns", Judged::rtt_ns)
        .flag("coarse", |one| Some(one.coarse))
        .int("at_once", |one| Some(one.surroundings.at_once))
        .flag("probe", |one| Some(one.probe))
        .batch()
}

/// Gives the rows of `openings`: those that were captured, in relation to the others of their pools.
///
/// # Errors
/// When the columns make no batch.
pub fn opening_rows(judged: &[Judged]) -> Result<RecordBatch, ArrowError> {
    let by_stream: HashMap<i32, &Judged> = judged.iter().map(|one| (one.connection.stream, one)).collect();
    let openings: Vec<(&Judged, i64, Option<&Judged>)> = judged
        .iter()
        .filter_map(|one| {
            let previous = one.surroundings.previous.and_then(|previous| by_stream.get(&previous).copied());
            Some((one, one.connection.syn_at?, previous))
        })
        .collect();
    Writing::of(&openings)
        .int("stream", |(one, ..)| Some(one.connection.stream))
        .long("syn_at", |(_, syn_at, _)| Some(*syn_at))
        .long("accepted_at", |(one, ..)| one.accepted_at)
        .long("syn_frame", |(one, ..)| Some(one.connection.first_frame))
        .long("setup_ns", |(one, syn_at, _)| Some(one.ready_at.map_or(0, |ready_at| ready_at - syn_at)))
        .int("place", |(one, ..)| Some(one.surroundings.place))
        .int("open_before", |(one, ..)| Some(one.surroundings.open_before))
        .int("idle_before", |(one, ..)| Some(one.surroundings.idle_before))
        .int("idle_left", |(one, ..)| Some(one.surroundings.idle_left))
        .flag("again", |(one, ..)| Some(one.surroundings.again))
        .int("previous_stream", |(one, ..)| one.surroundings.previous)
        .long("previous_closed_at", |(.., previous)| previous.and_then(|previous| previous.closing_at))
        .text("previous_closed_by", |(.., previous)| {
            previous.filter(|one| one.answered).and_then(|one| one.closed_by).map(Side::name)
        })
        .text("previous_ended_by", |(.., previous)| {
            previous.filter(|one| one.answered).and_then(|one| one.ended_by).map(Side::name)
        })
        .long("previous_done_at", |(.., previous)| previous.filter(|one| one.answered).and_then(|one| one.last_done_at))
        .long("previous_exchanges", |(.., previous)| previous.map(|previous| previous.exchanges))
        .long("previous_refused_until", |(.., previous)| previous.and_then(|previous| previous.refused_until))
        .batch()
}
