//! Rows of exchanges in, rows of links out: the Arrow side of linking.
//!
//! In: record batches with the columns that [`Exchange`] has (`analysis/hops.py` selects them). Out: rows of `links`.

use arrow_array::{Array, BooleanArray, Float64Array, Int32Array, Int64Array, ListArray, RecordBatch, UInt64Array};
use arrow_schema::ArrowError;

use super::model::{Exchange, Link, Setup, Statement};
use super::{link, split};
use crate::correlate::columns::{Columns, at};
use crate::tables::{LinkRow, Tables};

/// Appends the exchanges of a batch.
///
/// # Errors
/// When a column is missing, or of another type.
pub fn read(batch: &RecordBatch, exchanges: &mut Vec<Exchange>) -> Result<(), ArrowError> {
    let columns = Columns { batch };
    let integers = |name| columns.get::<Int32Array>(name);
    let longs = |name| columns.get::<Int64Array>(name);
    let hashes = |name| columns.get::<UInt64Array>(name);
    let (stream, number, endpoint) = (integers("stream")?, integers("number")?, integers("endpoint")?);
    let (accepted_by, opened_by) = (integers("accepted_by")?, integers("opened_by")?);
    let confidence = columns.get::<Float64Array>("confidence")?;
    let (status, through) = (integers("status")?, integers("through")?);
    let (request_at, request_done_at) = (longs("request_at")?, longs("request_done_at")?);
    let (response_at, closed_at) = (longs("response_at")?, longs("closed_at")?);
    let response_done_at = longs("response_done_at")?;
    let (opened_at, connected_at) = (longs("opened_at")?, longs("connected_at")?);
    let (hello_at, ready_at) = (longs("hello_at")?, longs("ready_at")?);
    let (request_bytes, response_bytes) = (longs("request_bytes")?, longs("response_bytes")?);
    let (target, kind) = (hashes("target")?, hashes("kind")?);
    let (opens, first) = (columns.get::<BooleanArray>("opens")?, columns.get::<BooleanArray>("first")?);
    let ids = columns.get::<ListArray>("ids")?;
    let (dialect, shape, turn) = (integers("dialect")?, hashes("shape")?, integers("turn")?);
    let starts = columns.get::<BooleanArray>("starts")?;

    for row in 0..batch.num_rows() {
        exchanges.push(Exchange {
            stream: stream.value(row),
            number: at!(number, row),
            accepted_by: at!(accepted_by, row),
            opened_by: at!(opened_by, row),
            endpoint: endpoint.value(row),
            through: at!(through, row),
            opens: opens.is_valid(row) && opens.value(row),
            request_at: request_at.value(row),
            request_done_at: request_done_at.value(row),
            response_at: at!(response_at, row),
            response_done_at: at!(response_done_at, row),
            closed_at: closed_at.value(row),
            first: first.is_valid(row) && first.value(row),
            setup: at!(opened_at, row).map(|opened_at| Setup {
                opened_at,
                connected_at: at!(connected_at, row),
                hello_at: at!(hello_at, row),
                ready_at: at!(ready_at, row),
            }),
            request_bytes: at!(request_bytes, row),
            response_bytes: at!(response_bytes, row),
            target: at!(target, row),
            kind: at!(kind, row),
            next_at: None,
            status: at!(status, row),
            confidence: at!(confidence, row).unwrap_or(1.0),
            ids: at!(ids, row).map_or_else(Vec::new, |list| {
                list.as_any().downcast_ref::<UInt64Array>().map_or_else(Vec::new, |list| list.values().to_vec())
            }),
            statement: at!(dialect, row).map(|dialect| Statement {
                dialect,
                shape: at!(shape, row),
                starts: starts.is_valid(row) && starts.value(row),
                turn: at!(turn, row).unwrap_or_default(),
            }),
        });
    }
    Ok(())
}

/// Links exchanges, and adds the links with the splits of their fronts' waits to `tables`.
///
/// # Errors
/// As [`Tables::flush`].
pub fn link_rows(exchanges: &[Exchange], tables: &mut Tables) -> Result<(), ArrowError> {
    let links = link(exchanges);
    for of_front in links.chunk_by(|one, other| one.front == other.front) {
        let exchange = |index: u32| exchanges.get(index as usize);
        let Some(front) = of_front.first().and_then(|link| exchange(link.front)) else { continue };
        let backs: Vec<&Exchange> = of_front.iter().filter_map(|link| exchange(link.back)).collect();
        let splits = split(front, &backs);
        for (place, (Link { method, confidence, .. }, back)) in of_front.iter().zip(&backs).enumerate() {
            let part = splits.as_ref().and_then(|splits| splits.get(place));
            tables.link(LinkRow {
                front_stream: Some(front.stream),
                front_exchange: front.number,
                back_stream: Some(back.stream),
                back_exchange: back.number,
                method: Some(method),
                confidence: Some(rounded(*confidence)),
                proxy_in_ns: part.map(|part| part.proxy_in),
                connect_ns: part.map(|part| part.connect),
                tls_ns: part.map(|part| part.tls),
                request_ns: part.map(|part| part.request),
                wait_ns: part.map(|part| part.wait),
                proxy_out_ns: part.map(|part| part.proxy_out),
            })?;
        }
    }
    Ok(())
}

/// Nobody is surer than that, and no machine computes it differently.
fn rounded(confidence: f64) -> f64 {
    (confidence.min(0.999) * 1_000.0).round() / 1_000.0
}
