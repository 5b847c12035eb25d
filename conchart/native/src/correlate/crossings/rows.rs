//! Sightings as record batches, and what is the same among them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Int32Builder, Int64Builder, StringBuilder};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray, UInt8Array,
};
use arrow_schema::ArrowError;
use foldhash::fast::FixedState;

use super::{Apart, Found, JITTER_NS, Member, Share, Side};
use crate::correlate::clocks::Point;
use crate::correlate::columns::{Columns, at};

/// A batch of the table `place_packets`, as it was read at a place.
#[derive(Clone, Debug)]
pub struct Sighted {
    pub part: usize,
    pub rows: RecordBatch,
    /// The number that stands for `client` in the column `sender`.
    pub client: u8,
    /// Columns that have no value in any of the rows.
    pub empty: Vec<&'static str>,
}

impl Sighted {
    /// Tells of each row whether what this place takes for the client sent it.
    pub fn by_client(&self) -> Result<impl Iterator<Item = bool> + '_, ArrowError> {
        let sender = Columns { batch: &self.rows }.get::<UInt8Array>("sender")?;
        Ok(sender.values().iter().map(|sender| *sender == self.client))
    }
}

/// The place_packets of all places, and what is the same among them.
#[derive(Debug, Default)]
pub struct Crossings {
    pub(super) batches: Vec<Sighted>,
    pub(super) members: Members,
    /// What the clock of each place shows at least, in nanoseconds.
    pub(super) grains: Vec<i64>,
    /// How far from the client a place is, on each connection.
    positions: HashMap<(i64, usize), i64, FixedState>,
    /// The points of places of which no clock was set: they are asked for three times.
    pub(super) unset: HashMap<[usize; 2], Arc<Vec<Point>>>,
    pub found: Found,
}

impl Crossings {
    /// Takes streams and the connections that they belong to.
    ///
    /// # Errors
    /// When a column is missing, or of another type.
    pub fn know(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let columns = Columns { batch };
        let longs = |name| columns.get::<Int64Array>(name);
        let (part, path, places) = (longs("part")?, longs("path")?, longs("places")?);
        let (of_client, of_server) = (longs("isn_client")?, longs("isn_server")?);
        let local = columns.get::<Int32Array>("local")?;
        let turned = columns.get::<BooleanArray>("turned")?;
        for row in 0..batch.num_rows() {
            let isns = at!(of_client, row).zip(at!(of_server, row)).map(<[i64; 2]>::from);
            let places = usize::try_from(places.value(row)).unwrap_or_default();
            let member = Member { path: path.value(row), turned: turned.value(row), places, isns };
            self.members.put(part.value(row), local.value(row), member);
        }
        Ok(())
    }

    /// Takes place_packets.
    pub fn take(&mut self, batch: Sighted) {
        self.batches.push(batch);
    }

    /// Gives what tells the packets of these streams, which are told by the numbers of their places, from others.
    ///
    /// # Errors
    /// When a column is missing, or of another type.
    pub fn of_streams(&self, wanted: &HashSet<(usize, i32)>) -> Result<RecordBatch, ArrowError> {
        let mut rows = Alike::default();
        for batch in &self.batches {
            rows.take(batch, wanted)?;
        }
        rows.finish()
    }

    /// Gives the first time that a place shows from a frame on.
    ///
    /// # Errors
    /// When a column is missing, or of another type.
    pub fn first_seen(&self, part: usize, frame: i64) -> Result<Option<i64>, ArrowError> {
        let times = self.times(part, |one| one >= frame)?;
        Ok(times.into_iter().map(|(_, at)| at).min())
    }

    /// Gives the frame before which the most time passed, among frames of a place, or the least, and how much, as it
    /// shows.
    ///
    /// # Errors
    /// When a column is missing, or of another type.
    pub fn gap(&self, part: usize, frames: [i64; 2], most: bool) -> Result<Option<(i64, i64)>, ArrowError> {
        let [first, last] = frames;
        let mut times = self.times(part, |one| (first..=last).contains(&one))?;
        times.sort_unstable();
        let gaps = times
            .iter()
            .zip(times.iter().skip(1))
            .map(|((_, before), (frame, at))| (*frame, at.saturating_sub(*before)));
        Ok(gaps.max_by_key(|(frame, ns)| (if most { *ns } else { ns.saturating_neg() }, -frame)))
    }

    /// Frames of a place, and their times.
    fn times(&self, part: usize, wanted: impl Fn(i64) -> bool) -> Result<Vec<(i64, i64)>, ArrowError> {
        let mut times = Vec::new();
        for batch in self.batches.iter().filter(|batch| batch.part == part) {
            let columns = Columns { batch: &batch.rows };
            let (frame, at) = (columns.get::<Int64Array>("frame")?, columns.get::<Int64Array>("seen_at")?);
            let rows = frame.values().iter().copied().zip(at.values().iter().copied());
            times.extend(rows.filter(|(frame, _)| wanted(*frame)));
        }
        Ok(times)
    }

    /// Takes how far from the client places are.
    ///
    /// # Errors
    /// When a column is missing, or of another type.
    pub fn route(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let columns = Columns { batch };
        let longs = |name| columns.get::<Int64Array>(name);
        let (path, part, position) = (longs("path")?, longs("part")?, longs("position")?);
        self.positions.extend(
            (0..batch.num_rows()).map(|row| {
                ((path.value(row), usize::try_from(part.value(row)).unwrap_or_default()), position.value(row))
            }),
        );
        Ok(())
    }

    /// What the clock of a place shows at least, and how much a packet may seem to arrive before it was sent.
    #[must_use]
    pub fn grain(&self, part: usize) -> i64 {
        self.grains.get(part).copied().unwrap_or(1).max(JITTER_NS)
    }

    /// The points of which `clocks` tells how far two places are apart.
    pub fn points(&mut self, between: [usize; 2], sets: &[Vec<i64>; 2]) -> Arc<Vec<Point>> {
        let is_unset = sets.iter().all(Vec::is_empty);
        if let Some(cached) = self.unset.get(&between).filter(|_| is_unset) {
            return Arc::clone(cached);
        }
        let position = |path, part| self.positions.get(&(path, part)).copied();
        let points = Arc::new(self.found.points(between, sets, between.map(|part| self.grain(part)), position));
        if is_unset {
            self.unset.insert(between, Arc::clone(&points));
        }
        points
    }
}

/// Members by part and stream: a stream's number is where it stands.
#[derive(Debug, Default)]
pub(super) struct Members(Vec<Vec<Option<Member>>>);

impl Members {
    fn put(&mut self, part: i64, stream: i32, member: Member) {
        let (Ok(part), Ok(stream)) = (usize::try_from(part), usize::try_from(stream)) else { return };
        if self.0.len() <= part {
            self.0.resize(part + 1, Vec::new());
        }
        let Some(streams) = self.0.get_mut(part) else { return };
        if streams.len() <= stream {
            streams.resize(stream + 1, None);
        }
        if let Some(place) = streams.get_mut(stream) {
            *place = Some(member);
        }
    }

    pub fn get(&self, part: usize, stream: i32) -> Option<&Member> {
        self.0.get(part)?.get(usize::try_from(stream).ok()?)?.as_ref()
    }
}

/// What tells packets of streams from others, as columns.
#[derive(Default)]
struct Alike {
    part: Int64Builder,
    stream: Int32Builder,
    by_client: BooleanBuilder,
    flags: StringBuilder,
    bytes: Int32Builder,
    ip_id: Int32Builder,
    numbers: [Int64Builder; 3],
}

impl Alike {
    fn take(&mut self, batch: &Sighted, wanted: &HashSet<(usize, i32)>) -> Result<(), ArrowError> {
        let columns = Columns { batch: &batch.rows };
        let longs = |name| columns.get::<Int64Array>(name);
        let ints = |name| columns.get::<Int32Array>(name);
        let (stream, bytes, ip_id) = (ints("stream")?, ints("bytes")?, ints("ip_id")?);
        let flags = columns.get::<StringArray>("flags")?;
        let numbers = [longs("seq")?, longs("ack")?, longs("print")?];
        let part = i64::try_from(batch.part).unwrap_or(i64::MAX);
        for (row, by_client) in batch.by_client()?.enumerate() {
            if wanted.contains(&(batch.part, stream.value(row))) {
                self.part.append_value(part);
                self.stream.append_value(stream.value(row));
                self.by_client.append_value(by_client);
                self.flags.append_option(at!(flags, row));
                self.bytes.append_option(at!(bytes, row));
                self.ip_id.append_option(at!(ip_id, row));
                for (into, from) in self.numbers.iter_mut().zip(numbers) {
                    into.append_option(at!(from, row));
                }
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<RecordBatch, ArrowError> {
        let [seq, ack, print] = self.numbers.each_mut().map(|numbers| -> ArrayRef { Arc::new(numbers.finish()) });
        let columns: [(&str, ArrayRef); 9] = [
            ("part", Arc::new(self.part.finish())),
            ("stream", Arc::new(self.stream.finish())),
            ("by_client", Arc::new(self.by_client.finish())),
            ("flags", Arc::new(self.flags.finish())),
            ("bytes", Arc::new(self.bytes.finish())),
            ("ip_id", Arc::new(self.ip_id.finish())),
            ("seq", seq),
            ("ack", ack),
            ("print", print),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true)))
    }
}

/// What each place has of each connection, with the columns that `places/joining.py` takes.
///
/// # Errors
/// When the columns do not fit their names: never.
pub fn share_rows(shares: &[Share]) -> Result<RecordBatch, ArrowError> {
    let longs = |of: fn(&Share) -> usize| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(shares.iter().map(|share| i64::try_from(of(share)).unwrap_or(i64::MAX))))
    };
    let of_sides = |of: fn(&Side) -> Option<i64>| {
        [0, 1].map(|side| -> ArrayRef {
            Arc::new(shares.iter().map(|share| share.sides.get(side).and_then(of)).collect::<Int64Array>())
        })
    };
    let [packets_client, packets_server] = of_sides(|side| i64::try_from(side.packets).ok());
    let [frame_client, frame_server] = of_sides(|side| side.first_frame);
    let [tos_client, tos_server] = of_sides(|side| side.tos.map(i64::from));
    let varies = shares.iter().map(|share| Some(share.sides.iter().any(|side| side.varies))).collect::<BooleanArray>();
    let columns: [(&str, ArrayRef); 12] = [
        ("path", Arc::new(Int64Array::from_iter_values(shares.iter().map(|share| share.path)))),
        ("part", longs(|share| share.part)),
        ("lacking", longs(|share| share.lacking)),
        ("overtaken", longs(|share| share.overtaken)),
        ("late", longs(|share| share.late)),
        ("packets_client", packets_client),
        ("packets_server", packets_server),
        ("client_frame", frame_client),
        ("server_frame", frame_server),
        ("tos_client", tos_client),
        ("tos_server", tos_server),
        ("varies", Arc::new(varies)),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true)))
}

/// How far the times of places are apart, connection by connection, with the columns that `places/clocks.py` takes.
///
/// # Errors
/// When the columns do not fit their names: never.
pub fn apart_rows(apart: &[Apart]) -> Result<RecordBatch, ArrowError> {
    let longs = |of: fn(&Apart) -> usize| {
        Int64Array::from_iter_values(apart.iter().map(|apart| i64::try_from(of(apart)).unwrap_or(i64::MAX)))
    };
    let floats = |of: fn(&Apart) -> Option<f64>| Float64Array::from_iter(apart.iter().map(of));
    let columns: [(&str, ArrayRef); 6] = [
        ("path", Arc::new(Int64Array::from_iter_values(apart.iter().map(|apart| apart.path)))),
        ("one", Arc::new(longs(|apart| apart.one))),
        ("other", Arc::new(longs(|apart| apart.other))),
        ("slower_ns", Arc::new(floats(|apart| apart.slower_ns))),
        ("hops_client", Arc::new(floats(|apart| apart.hops[0]))),
        ("hops_server", Arc::new(floats(|apart| apart.hops[1]))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true)))
}
