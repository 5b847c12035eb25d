//! Rows of place_packets and places in, rows of parts out: the Arrow side of turns.
//!
//! In: record batches with the columns that [`Sighting`] and [`Stop`] have (`analysis/phase_places.py` selects them). Out:
//! record batches with those of [`Part`] and [`Pace`].

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray, UInt8Array};
use arrow_schema::ArrowError;

use super::{Crossing, Found, Pace, Part, Sighting, Stop, Wait, watch};
use crate::correlate::columns::{Columns, at};
use crate::correlate::grouping::Grouped;

/// What was read: connections and places.
#[derive(Debug, Default)]
pub struct Turns {
    places: Vec<String>,
    stops: Vec<Stop>,
    seen: Vec<RecordBatch>,
    lost: HashSet<i64>,
    waits: Vec<Wait>,
}

impl Turns {
    /// Begins with the names of places, in the order of their numbers.
    #[must_use]
    pub fn new(places: Vec<String>) -> Self {
        Self { places, ..Self::default() }
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
        let place = columns.get::<UInt8Array>("place")?;
        for row in 0..batch.num_rows() {
            let stop = Stop {
                stream: stream.value(row),
                place: usize::from(place.value(row)),
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
        self.waits.extend((0..batch.num_rows()).map(|row| Wait {
            stream: stream.value(row),
            exchange: exchange.value(row),
            start_at: start_at.value(row),
            end_at: end_at.value(row),
        }));
        Ok(())
    }

    /// Takes place_packets.
    pub fn take(&mut self, batch: RecordBatch) {
        self.seen.push(batch);
    }

    /// Gives the parts of turns, where senders waited for acknowledgements, and how long packets were under way.
    ///
    /// # Errors
    /// When a column is missing, or of another type, or the columns make no batch.
    pub fn divide(mut self) -> Result<[RecordBatch; 3], ArrowError> {
        self.stops.sort_unstable_by_key(|stop| (stop.stream, stop.position));
        self.waits.sort_unstable_by_key(|one| (one.stream, one.exchange));
        let batches: Vec<Seen<'_>> = self.seen.iter().map(Seen::of).collect::<Result<_, _>>()?;
        let rows = Grouped::of(|| (0..).zip(&batches).flat_map(|(number, batch)| batch.keyed(number)));
        let found = rows.side_by_side(|streams| self.watched(streams, &rows, &batches));
        let mut parts = found.into_iter();
        let mut found = parts.next().unwrap_or_default();
        for mut later in parts {
            found.parts.append(&mut later.parts);
            found.paces.append(&mut later.paces);
            found.crossings.append(&mut later.crossings);
        }
        let places = &self.places;
        Ok([
            part_rows(&found.parts, places)?,
            pace_rows(&found.paces, places)?,
            crossing_rows(&found.crossings, places)?,
        ])
    }

    /// Looks at some of the connections.
    fn watched(&self, streams: Range<usize>, rows: &Grouped, batches: &[Seen<'_>]) -> Found {
        let mut found = Found::default();
        let mut seen: Vec<Sighting> = Vec::new();
        for stream in streams {
            let Ok(number) = i32::try_from(stream) else { continue };
            seen.clear();
            let placed = rows.rows(stream).iter();
            seen.extend(placed.filter_map(|&(batch, row)| Some(batches.get(batch as usize)?.sighting(row as usize))));
            seen.sort_unstable_by_key(|one| (one.place, one.at, one.frame));
            let stops = of_stream(&self.stops, number, |stop| stop.stream);
            let waits = of_stream(&self.waits, number, |wait| wait.stream);
            watch(stops, &seen, &self.lost, waits, &mut found);
        }
        found
    }
}

/// The rows of a stream, of those that stand in the order of streams.
fn of_stream<T>(rows: &[T], number: i32, stream: impl Fn(&T) -> i32) -> &[T] {
    let from = rows.partition_point(|row| stream(row) < number);
    let to = rows.partition_point(|row| stream(row) <= number);
    rows.get(from..to).unwrap_or_default()
}

/// The columns of a batch of place_packets.
struct Seen<'a> {
    stream: &'a Int32Array,
    place: &'a UInt8Array,
    seen_at: &'a Int64Array,
    frame: &'a Int64Array,
    packet: &'a Int64Array,
    by_client: &'a BooleanArray,
    says: &'a BooleanArray,
    bytes: &'a Int32Array,
    seq: &'a Int64Array,
}

impl<'a> Seen<'a> {
    fn of(batch: &'a RecordBatch) -> Result<Self, ArrowError> {
        let columns = Columns { batch };
        let longs = |name| columns.get::<Int64Array>(name);
        Ok(Self {
            stream: columns.get("stream")?,
            place: columns.get("place")?,
            seen_at: longs("seen_at")?,
            frame: longs("frame")?,
            packet: longs("packet")?,
            by_client: columns.get("by_client")?,
            says: columns.get("says")?,
            bytes: columns.get("bytes")?,
            seq: longs("seq")?,
        })
    }

    /// The rows, by streams.
    fn keyed(&self, number: u32) -> impl Iterator<Item = (usize, (u32, u32))> {
        let streams = self.stream.values().iter().zip(0..);
        streams.filter_map(move |(stream, row)| Some((usize::try_from(*stream).ok()?, (number, row))))
    }

    fn sighting(&self, row: usize) -> Sighting {
        Sighting {
            place: usize::from(self.place.value(row)),
            at: self.seen_at.value(row),
            frame: self.frame.value(row),
            packet: at!(self.packet, row),
            by_client: self.by_client.value(row),
            says: self.says.value(row),
            bytes: self.bytes.value(row),
            seq: at!(self.seq, row),
        }
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

fn crossing_rows(crossings: &[Crossing], places: &[String]) -> Result<RecordBatch, ArrowError> {
    let longs =
        |of: fn(&Crossing) -> i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(crossings.iter().map(of))) };
    let senders = crossings.iter().map(|one| if one.by_client { "client" } else { "server" });
    RecordBatch::try_from_iter_with_nullable([
        ("stream", Arc::new(Int32Array::from_iter_values(crossings.iter().map(|one| one.stream))) as ArrayRef, true),
        ("sender", Arc::new(StringArray::from_iter_values(senders)), true),
        ("place", names(places, crossings.iter().map(|one| Some(one.place))), true),
        ("to_place", names(places, crossings.iter().map(|one| Some(one.to_place))), true),
        ("packets", longs(|one| one.packets), true),
        ("least_ns", longs(|one| one.least_ns), true),
        ("most_ns", longs(|one| one.most_ns), true),
    ])
}
