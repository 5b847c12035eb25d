//! Rows of sightings and places in, rows of parts out: the Arrow side of turns.
//!
//! In: record batches with the columns that [`Sighting`] and [`Stop`] have (`analysis/whereabouts.py` selects them). Out:
//! record batches with those of [`Part`] and [`Pace`].

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::ArrowError;

use super::{Asked, Found, Pace, Part, Sighting, Stop, watch};
use crate::across::columns::{Columns, at};

/// What was read: connections and places.
#[derive(Debug, Default)]
pub struct Turns {
    places: Vec<String>,
    stops: Vec<Stop>,
    seen: Vec<Sighting>,
    lost: HashSet<i64>,
    asked: Vec<Asked>,
}

impl Turns {
    /// The number of a place.
    fn place(&mut self, name: &str) -> usize {
        self.places.iter().position(|place| place == name).unwrap_or_else(|| {
            self.places.push(name.to_owned());
            self.places.len() - 1
        })
    }

    /// Takes places of connections.
    ///
    /// # Errors
    /// When a column is missing, or of another type.
    pub fn know(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let columns = Columns { batch };
        let longs = |name| columns.get::<Int64Array>(name);
        let flags = |name| columns.get::<BooleanArray>(name);
        let (stream, position) = (columns.get::<Int32Array>("stream")?, columns.get::<Int32Array>("position")?);
        let (ack_at, of_client, of_server) = (longs("ack_at")?, longs("isn_client")?, longs("isn_server")?);
        let (tells, at_server, at_client) = (flags("tells")?, flags("at_server")?, flags("at_client")?);
        let place = columns.get::<StringArray>("place")?;
        for row in 0..batch.num_rows() {
            let stop = Stop {
                stream: stream.value(row),
                place: self.place(place.value(row)),
                position: position.value(row),
                tells: tells.value(row),
                ack_at: at!(ack_at, row),
                isns: [at!(of_client, row), at!(of_server, row)],
                ends: at!(at_server, row).zip(at!(at_client, row)).map(<[bool; 2]>::from),
            };
            self.stops.push(stop);
        }
        Ok(())
    }

    /// Takes frames of packets that are lost.
    ///
    /// # Errors
    /// When a column is missing, or of another type.
    pub fn miss(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let columns = Columns { batch };
        self.lost.extend(columns.get::<Int64Array>("frame")?.values());
        Ok(())
    }

    /// Takes waits of requests that share a connection with others.
    ///
    /// # Errors
    /// When a column is missing, or of another type.
    pub fn ask(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let columns = Columns { batch };
        let (stream, exchange) = (columns.get::<Int32Array>("stream")?, columns.get::<Int32Array>("exchange")?);
        let (start_at, end_at) = (columns.get::<Int64Array>("start_at")?, columns.get::<Int64Array>("end_at")?);
        self.asked.extend((0..batch.num_rows()).map(|row| Asked {
            stream: stream.value(row),
            exchange: exchange.value(row),
            start_at: start_at.value(row),
            end_at: end_at.value(row),
        }));
        Ok(())
    }

    /// Takes sightings.
    ///
    /// # Errors
    /// When a column is missing, or of another type.
    pub fn take(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let columns = Columns { batch };
        let longs = |name| columns.get::<Int64Array>(name);
        let (stream, bytes) = (columns.get::<Int32Array>("stream")?, columns.get::<Int32Array>("bytes")?);
        let (seen_at, frame, packet, seq) = (longs("seen_at")?, longs("frame")?, longs("packet")?, longs("seq")?);
        let (by_client, says) = (columns.get::<BooleanArray>("by_client")?, columns.get::<BooleanArray>("says")?);
        let place = columns.get::<StringArray>("place")?;
        for row in 0..batch.num_rows() {
            let sighting = Sighting {
                stream: stream.value(row),
                place: self.place(place.value(row)),
                at: seen_at.value(row),
                frame: frame.value(row),
                packet: at!(packet, row),
                by_client: by_client.value(row),
                says: says.value(row),
                bytes: bytes.value(row),
                seq: at!(seq, row),
            };
            self.seen.push(sighting);
        }
        Ok(())
    }

    /// Gives the parts of turns, and where senders waited for acknowledgements.
    ///
    /// # Errors
    /// When the columns make no batch.
    pub fn told(mut self) -> Result<[RecordBatch; 2], ArrowError> {
        self.stops.sort_unstable_by_key(|stop| (stop.stream, stop.position));
        self.seen.sort_unstable_by_key(|one| (one.stream, one.place, one.at, one.frame));
        self.asked.sort_unstable_by_key(|one| (one.stream, one.exchange));
        let mut found = Found::default();
        let mut rest = self.seen.as_slice();
        for stops in self.stops.chunk_by(|one, other| one.stream == other.stream) {
            let Some(Stop { stream, .. }) = stops.first() else { continue };
            let from = rest.iter().take_while(|one| one.stream < *stream).count();
            let later = rest.get(from..).unwrap_or_default();
            let of_stream = later.iter().take_while(|one| one.stream == *stream).count();
            let (seen, others) = later.split_at_checked(of_stream).unwrap_or_default();
            rest = others;
            let from = self.asked.partition_point(|one| one.stream < *stream);
            let to = self.asked.partition_point(|one| one.stream <= *stream);
            let asked = self.asked.get(from..to).unwrap_or_default();
            watch(stops, seen, &self.lost, asked, &mut found);
        }
        drop(self.seen);
        Ok([part_rows(&found.parts, &self.places)?, pace_rows(&found.paces, &self.places)?])
    }
}

fn names<'a>(places: &'a [String], numbers: impl Iterator<Item = Option<usize>> + 'a) -> ArrayRef {
    Arc::new(numbers.map(|place| places.get(place?)).collect::<StringArray>())
}

fn part_rows(parts: &[Part], places: &[String]) -> Result<RecordBatch, ArrowError> {
    let longs = |of: fn(&Part) -> Option<i64>| -> ArrayRef { Arc::new(parts.iter().map(of).collect::<Int64Array>()) };
    RecordBatch::try_from_iter_with_nullable([
        ("stream", Arc::new(parts.iter().map(|part| Some(part.stream)).collect::<Int32Array>()) as ArrayRef, true),
        ("turn", Arc::new(parts.iter().map(|part| part.exchange).collect::<Int32Array>()), true),
        ("start_at", longs(|part| Some(part.start_at)), true),
        ("end_at", longs(|part| Some(part.end_at)), true),
        ("kind", Arc::new(StringArray::from_iter_values(parts.iter().map(|part| part.kind))), true),
        ("place", names(places, parts.iter().map(|part| Some(part.place))), true),
        ("to_place", names(places, parts.iter().map(|part| part.to_place)), true),
        ("alone", Arc::new(parts.iter().map(|part| Some(part.alone)).collect::<BooleanArray>()), true),
        ("ahead_ns", longs(|part| part.ahead_ns), true),
    ])
}

fn pace_rows(paces: &[Pace], places: &[String]) -> Result<RecordBatch, ArrowError> {
    let longs = |of: fn(&Pace) -> i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(paces.iter().map(of))) };
    RecordBatch::try_from_iter_with_nullable([
        ("stream", Arc::new(Int32Array::from_iter_values(paces.iter().map(|pace| pace.stream))) as ArrayRef, true),
        ("start_at", longs(|pace| pace.start_at), true),
        ("end_at", longs(|pace| pace.end_at), true),
        ("place", names(places, paces.iter().map(|pace| Some(pace.place))), true),
        ("to_place", names(places, paces.iter().map(|pace| Some(pace.to_place))), true),
    ])
}
