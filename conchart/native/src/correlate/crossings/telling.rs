//! The rows of the table `place_packets`: streams, frames and times as all places count them, and the packet of each.
//!
//! In: the batches of all places, which are given away one by one, and what was found of them. Out: batches with the
//! columns that the table has.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, UInt8Array};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use foldhash::fast::FixedState;

use super::rows::{Crossings, Members, Sighted};
use crate::correlate::columns::Columns;

/// The row of no packet.
const NONE: u32 = u32::MAX;
/// The numbers of the words of the column `sender`.
pub const SIDES: [&str; 2] = ["client", "server"];

/// A stretch in which a clock keeps its rate: what it shows at its beginning, what the reference shows then, and how
/// much faster it runs, in parts per 10⁹.
pub type Stretch = (i64, i64, i64);

/// What a clock shows, told by that of the reference.
#[must_use]
pub fn reference_at(at: i64, stretches: &[Stretch]) -> i64 {
    // Where a clock is set back, two stretches show the same: the earlier one has it.
    let later = stretches.iter().skip(1).position(|(shown, ..)| at < *shown);
    let Some((shown, from_at, drift_ppb)) = later.map_or(stretches.last(), |earlier| stretches.get(earlier)) else {
        return at;
    };
    let since = i128::from(at) - i128::from(*shown);
    let gained = since * i128::from(*drift_ppb) / (1_000_000_000 + i128::from(*drift_ppb));
    i64::try_from(i128::from(*from_at) + since - gained).unwrap_or(i64::MAX)
}

/// The row of a connection in the tables.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    pub number: i32,
    /// It takes client and server the other way round.
    pub turned: bool,
}

/// How places count.
#[derive(Debug, Default)]
pub struct Axis {
    /// Of each place, how many frames stand before its own.
    pub befores: Vec<i64>,
    /// Of each place, the stretches of its clock; none if it is right.
    pub clocks: Vec<Vec<Stretch>>,
    /// The row of each connection.
    pub streams: HashMap<i64, Stream, FixedState>,
}

impl Axis {
    /// Takes rows with `path`, `stream` and `turned`.
    ///
    /// # Errors
    /// When a column is missing, or of another type.
    pub fn know(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let columns = Columns { batch };
        let (path, stream) = (columns.get::<Int64Array>("path")?, columns.get::<Int32Array>("stream")?);
        let turned = columns.get::<BooleanArray>("turned")?;
        self.streams.extend(
            (0..batch.num_rows())
                .map(|row| (path.value(row), Stream { number: stream.value(row), turned: turned.value(row) })),
        );
        Ok(())
    }
}

/// What is left to tell.
#[derive(Debug)]
pub struct Telling {
    schema: SchemaRef,
    /// Columns that have no value in any row.
    pub empty: Vec<&'static str>,
    axis: Axis,
    members: Members,
    batches: std::vec::IntoIter<Sighted>,
    /// Frames of all rows, counted on from place to place.
    frames: Vec<i64>,
    /// Of each row the first one of the same packet.
    firsts: Vec<u32>,
    /// Rows that were told.
    delivered: usize,
}

impl Crossings {
    /// Begins to tell; the batches are given away, and packets that places share are forgotten.
    ///
    /// # Errors
    /// When a column is missing, or of another type.
    pub fn tell(&mut self, axis: Axis) -> Result<Telling, ArrowError> {
        let batches = std::mem::take(&mut self.batches);
        let rows = batches.iter().map(|batch| batch.rows.num_rows()).sum();
        let mut frames = Vec::with_capacity(rows);
        for batch in &batches {
            let before = axis.befores.get(batch.part).copied().unwrap_or_default();
            let frame = Columns { batch: &batch.rows }.get::<Int64Array>("frame")?;
            frames.extend(frame.values().iter().map(|frame| frame + before));
        }
        let mut firsts = vec![NONE; rows];
        for (row, of) in std::mem::take(&mut self.found.packets) {
            if let Some(first) = firsts.get_mut(row as usize) {
                *first = of;
            }
        }
        self.found.met = Vec::new();
        self.unset.clear();
        let mut fields = batches.first().map(|batch| batch.rows.schema().fields().to_vec()).unwrap_or_default();
        let has = |name: &str| batches.iter().any(|batch| !batch.empty.contains(&name));
        let mut empty = batches.first().map(|batch| batch.empty.clone()).unwrap_or_default();
        empty.retain(|name| !has(name));
        fields.push(Arc::new(Field::new("place", DataType::UInt8, false)));
        fields.push(Arc::new(Field::new("packet", DataType::Int64, true)));
        Ok(Telling {
            schema: Arc::new(Schema::new(fields)),
            empty,
            axis,
            members: std::mem::take(&mut self.members),
            batches: batches.into_iter(),
            frames,
            firsts,
            delivered: 0,
        })
    }
}

impl Telling {
    /// The columns: those of what was read, and `place` and `packet`.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// `stream` is NULL where the row belongs to no connection.
    fn rows(&mut self, batch: &Sighted) -> Result<RecordBatch, ArrowError> {
        let columns = Columns { batch: &batch.rows };
        let rows = self.delivered..self.delivered + batch.rows.num_rows();
        self.delivered = rows.end;
        let own: Vec<Option<(Stream, bool)>> = columns
            .get::<Int32Array>("stream")?
            .values()
            .iter()
            .map(|local| {
                let member = self.members.get(batch.part, *local)?;
                Some((*self.axis.streams.get(&member.path)?, member.turned))
            })
            .collect();
        let stream: Int32Array = own.iter().map(|own| own.map(|(stream, _)| stream.number)).collect();
        let sides = batch.by_client()?.zip(&own).map(|(by_client, own)| {
            let turned = own.is_some_and(|(stream, turned)| stream.turned != turned);
            if by_client == turned { 2 } else { 1 }
        });
        let clock = self.axis.clocks.get(batch.part).map(Vec::as_slice).unwrap_or_default();
        let seen_at = columns.get::<Int64Array>("seen_at")?;
        let seen_at = Int64Array::from_iter_values(seen_at.values().iter().map(|at| reference_at(*at, clock)));
        let frame = Int64Array::from_iter_values(self.frames.get(rows.clone()).unwrap_or_default().iter().copied());
        let firsts = self.firsts.get(rows).unwrap_or_default().iter();
        let packet: Int64Array = firsts.map(|first| self.frames.get(*first as usize).copied()).collect();
        let place = std::iter::repeat_n(u8::try_from(batch.part + 1).unwrap_or_default(), batch.rows.num_rows());
        let own_columns: [(&str, ArrayRef); 6] = [
            ("stream", Arc::new(stream)),
            ("sender", Arc::new(UInt8Array::from_iter_values(sides))),
            ("seen_at", Arc::new(seen_at)),
            ("frame", Arc::new(frame)),
            ("place", Arc::new(UInt8Array::from_iter_values(place))),
            ("packet", Arc::new(packet)),
        ];
        let arrays = self.schema.fields().iter().filter_map(|field| {
            let name = field.name().as_str();
            let own = own_columns.iter().find(|(own, _)| *own == name).map(|(_, array)| Arc::clone(array));
            own.or_else(|| batch.rows.column_by_name(name).cloned())
        });
        RecordBatch::try_new(Arc::clone(&self.schema), arrays.collect())
    }
}

impl Iterator for Telling {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.batches.next()?;
        Some(self.rows(&batch))
    }
}
