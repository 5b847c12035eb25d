//! Rows of connections and exchanges in, rows of surroundings out: the Arrow side of pools.
//!
//! In: record batches with the columns that [`Member`] and [`Request`] have (`analysis/findings/evidence.py` selects them). Out: a
//! record batch with those of [`Surroundings`](super::Surroundings) beside `stream`.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, UInt64Array};
use arrow_schema::ArrowError;

use super::{Member, Request, survey};
use crate::correlate::columns::{Columns, at};

/// Appends the connections of a batch.
///
/// # Errors
/// When a column is missing, or of another type.
pub fn read_members(batch: &RecordBatch, members: &mut Vec<Member>) -> Result<(), ArrowError> {
    let columns = Columns { batch };
    let longs = |name| columns.get::<Int64Array>(name);
    let hashes = |name| columns.get::<UInt64Array>(name);
    let (stream, first_exchange) = (columns.get::<Int32Array>("stream")?, columns.get::<Int32Array>("first_exchange")?);
    let (ends, pool) = (hashes("ends")?, hashes("pool")?);
    let (syn_at, ready_at) = (longs("syn_at")?, longs("ready_at")?);
    let (closing_at, closed_at) = (longs("closing_at")?, longs("closed_at")?);
    let multiplexed = columns.get::<BooleanArray>("multiplexed")?;
    members.extend((0..batch.num_rows()).map(|row| Member {
        stream: stream.value(row),
        ends: ends.value(row),
        pool: pool.value(row),
        syn_at: syn_at.value(row),
        ready_at: at!(ready_at, row),
        closing_at: at!(closing_at, row),
        closed_at: closed_at.value(row),
        first_exchange: at!(first_exchange, row),
        multiplexed: multiplexed.value(row),
    }));
    Ok(())
}

/// Appends the exchanges of a batch.
///
/// # Errors
/// When a column is missing, or of another type.
pub fn read_requests(batch: &RecordBatch, requests: &mut Vec<Request>) -> Result<(), ArrowError> {
    let columns = Columns { batch };
    let (stream, number) = (columns.get::<Int32Array>("stream")?, columns.get::<Int32Array>("number")?);
    let request_at = columns.get::<Int64Array>("request_at")?;
    let response_done_at = columns.get::<Int64Array>("response_done_at")?;
    requests.extend((0..batch.num_rows()).map(|row| Request {
        stream: stream.value(row),
        number: number.value(row),
        request_at: at!(request_at, row),
        response_done_at: at!(response_done_at, row),
    }));
    Ok(())
}

/// Gives the surroundings of each connection.
///
/// # Errors
/// When the columns make no batch.
pub fn survey_rows(members: &[Member], requests: &[Request]) -> Result<RecordBatch, ArrowError> {
    let found = survey(members, requests);
    let integers = |value: fn(&super::Surroundings) -> i32| -> ArrayRef {
        Arc::new(found.iter().map(value).map(Some).collect::<Int32Array>())
    };
    RecordBatch::try_from_iter_with_nullable([
        (
            "stream",
            Arc::new(members.iter().map(|member| Some(member.stream)).collect::<Int32Array>()) as ArrayRef,
            true,
        ),
        ("place", integers(|surroundings| surroundings.place), true),
        ("open_before", integers(|surroundings| surroundings.open_before), true),
        ("idle_before", integers(|surroundings| surroundings.idle_before), true),
        ("idle_left", integers(|surroundings| surroundings.idle_left), true),
        ("at_once", integers(|surroundings| surroundings.at_once), true),
        ("again", Arc::new(found.iter().map(|surroundings| Some(surroundings.again)).collect::<BooleanArray>()), true),
        (
            "previous_stream",
            Arc::new(found.iter().map(|surroundings| surroundings.previous).collect::<Int32Array>()),
            true,
        ),
    ])
}
