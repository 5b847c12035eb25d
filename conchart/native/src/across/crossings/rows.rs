//! Sightings as record batches: columns that nobody here knows stay as they are.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{ArrowError, Field, Schema};

use super::{Apart, Found, JITTER_NS, Member, Seen, Share, alike, pair};
use crate::across::clocks::Point;
use crate::across::columns::{Columns, at};
use crate::packet::Seq;

/// Sequence numbers begin again.
const AROUND: i64 = 1 << 32;

/// The sightings of all places, and what is the same among them.
#[derive(Debug, Default)]
pub struct Crossings {
    batches: Vec<RecordBatch>,
    members: Members,
    /// What the clock of each place shows at least, in nanoseconds.
    grains: Vec<i64>,
    /// How far from the client a place is, on each connection.
    positions: HashMap<(i64, usize), i64>,
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

    /// Takes sightings, of every stream that is known.
    pub fn take(&mut self, batch: RecordBatch) {
        self.batches.push(batch);
    }

    /// Finds what is the same.
    ///
    /// # Errors
    /// When a column is missing, or of another type.
    pub fn meet(&mut self) -> Result<(), ArrowError> {
        let rows = self.batches.iter().map(RecordBatch::num_rows).sum();
        let mut seen: Vec<(i64, usize, Seen)> = Vec::with_capacity(rows);
        let mut first = 0;
        for batch in &self.batches {
            read(batch, first, &self.members, &mut self.grains, &mut seen)?;
            first += batch.num_rows();
        }
        seen.sort_unstable_by_key(|(path, _, seen)| (*path, seen.part, seen.frame));
        let mut of_path = Vec::new();
        for one in seen.chunk_by(|one, other| one.0 == other.0) {
            let Some((path, places, _)) = one.first() else { continue };
            of_path.clear();
            of_path.extend(one.iter().map(|(_, _, seen)| *seen));
            pair(*path, *places, &mut of_path, &mut self.found);
        }
        Ok(())
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
    #[must_use]
    pub fn points(&self, between: [usize; 2], sets: &[Vec<i64>; 2]) -> Vec<Point> {
        let position = |path, part| self.positions.get(&(path, part)).copied();
        self.found.points(between, sets, between.map(|part| self.grain(part)), position)
    }

    /// The batches with `path`, `turned` and `packet`: the first frame of the same packet, counted on from place to place;
    /// none where one place alone saw the connection. Only once: they are given away.
    ///
    /// # Errors
    /// When a column is missing, or of another type.
    pub fn told(&mut self, befores: &[i64]) -> Result<Vec<RecordBatch>, ArrowError> {
        let batches = std::mem::take(&mut self.batches);
        let rows = batches.iter().map(RecordBatch::num_rows).sum();
        let mut frames = Vec::with_capacity(rows);
        for batch in &batches {
            let columns = Columns { batch };
            let (part, frame) = (columns.get::<Int64Array>("part")?, columns.get::<Int64Array>("frame")?);
            let before = |part: i64| usize::try_from(part).ok().and_then(|part| befores.get(part)).copied();
            let counted = part.values().iter().zip(frame.values());
            frames.extend(counted.map(|(part, frame)| frame + before(*part).unwrap_or_default()));
        }
        let mut packets: Vec<Option<i64>> = vec![None; rows];
        for &(row, of) in &self.found.packets {
            if let Some(packet) = packets.get_mut(row as usize) {
                *packet = frames.get(of as usize).copied();
            }
        }
        self.found.packets = Vec::new();
        let mut rest = packets.as_slice();
        let told = batches.into_iter().map(|batch| {
            let (mine, others) = rest.split_at_checked(batch.num_rows()).unwrap_or((rest, &[]));
            rest = others;
            self.with_packets(&batch, mine)
        });
        told.collect()
    }

    fn with_packets(&self, batch: &RecordBatch, packets: &[Option<i64>]) -> Result<RecordBatch, ArrowError> {
        let columns = Columns { batch };
        let (part, stream) = (columns.get::<Int64Array>("part")?, columns.get::<Int32Array>("stream")?);
        let known = || (0..batch.num_rows()).map(|row| self.members.get(part.value(row), stream.value(row)));
        let path: Int64Array = known().map(|member| member.map(|member| member.path)).collect();
        let turned: BooleanArray = known().map(|member| member.map(|member| member.turned)).collect();
        let packet = Int64Array::from_iter(packets.iter().copied());
        let added: [(&str, ArrayRef); 3] =
            [("path", Arc::new(path)), ("turned", Arc::new(turned)), ("packet", Arc::new(packet))];
        let mut fields = batch.schema().fields().to_vec();
        let mut arrays = batch.columns().to_vec();
        for (name, array) in added {
            fields.push(Arc::new(Field::new(name, array.data_type().clone(), true)));
            arrays.push(array);
        }
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
    }
}

/// Members by part and stream: a stream's number is where it stands.
#[derive(Debug, Default)]
struct Members(Vec<Vec<Option<Member>>>);

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

    fn get(&self, part: i64, stream: i32) -> Option<&Member> {
        self.0.get(usize::try_from(part).ok()?)?.get(usize::try_from(stream).ok()?)?.as_ref()
    }
}

/// Reads what shared connections have of a batch, of which the first row has the number `first`.
fn read(
    batch: &RecordBatch,
    first: usize,
    members: &Members,
    grains: &mut Vec<i64>,
    into: &mut Vec<(i64, usize, Seen)>,
) -> Result<(), ArrowError> {
    let columns = Columns { batch };
    let longs = |name| columns.get::<Int64Array>(name);
    let ints = |name| columns.get::<Int32Array>(name);
    let (part, frame, seen_at, seq, ack, print) =
        (longs("part")?, longs("frame")?, longs("seen_at")?, longs("seq")?, longs("ack")?, longs("print")?);
    let (stream, bytes, ip_id, ttl) = (ints("stream")?, ints("bytes")?, ints("ip_id")?, ints("ttl")?);
    let by_client = columns.get::<BooleanArray>("by_client")?;
    let flags = columns.get::<StringArray>("flags")?;
    for row in 0..batch.num_rows() {
        let (at, place) = (seen_at.value(row), usize::try_from(part.value(row)).unwrap_or_default());
        if grains.len() <= place {
            grains.resize(place + 1, 1_000_000);
        }
        if let Some(grain) = grains.get_mut(place).filter(|grain| at % **grain != 0) {
            *grain = if at % 1_000 == 0 { 1_000 } else { 1 };
        }
        let Some(member) = members.get(part.value(row), stream.value(row)).filter(|member| member.places > 1) else {
            continue;
        };
        let sent = by_client.value(row);
        let counted = |number: Option<i64>, by_client: bool| match member.isns {
            Some([of_client, of_server]) => {
                let isn = if by_client { of_client } else { of_server };
                number.map(|number| (number - isn).rem_euclid(AROUND))
            }
            None => number,
        };
        let (seq, ack) = (counted(at!(seq, row), sent), counted(at!(ack, row), !sent));
        let bytes = at!(bytes, row);
        let by_client = sent != member.turned;
        let flags = flags.value(row);
        // A middlebox may have taken options from a SYN.
        let is_placed =
            bytes.is_some_and(|bytes| bytes > 0) || flags.contains('F') || flags.contains('S') && member.isns.is_none();
        let one = Seen {
            part: u16::try_from(place).unwrap_or(u16::MAX),
            frame: frame.value(row),
            at,
            by_client,
            alike: alike(by_client, [seq, ack], bytes, flags, at!(print, row)),
            // Modulo 2^32, like all of them.
            begins: seq.filter(|_| is_placed).and_then(|seq| u32::try_from(seq & (AROUND - 1)).ok()).map(Seq),
            bytes: bytes.and_then(|bytes| u32::try_from(bytes).ok()).unwrap_or_default(),
            ip_id: at!(ip_id, row).unwrap_or_default(),
            ttl: at!(ttl, row).and_then(|ttl| u8::try_from(ttl).ok()),
            row: u32::try_from(first + row).unwrap_or(u32::MAX),
            nth: 0,
        };
        into.push((member.path, member.places, one));
    }
    Ok(())
}

/// What each place has of each connection, with the columns that `places/joining.py` takes.
///
/// # Errors
/// When the columns do not fit their names: never.
pub fn share_rows(shares: &[Share]) -> Result<RecordBatch, ArrowError> {
    let longs = |of: fn(&Share) -> usize| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(shares.iter().map(|share| i64::try_from(of(share)).unwrap_or(i64::MAX))))
    };
    let columns: [(&str, ArrayRef); 5] = [
        ("path", Arc::new(Int64Array::from_iter_values(shares.iter().map(|share| share.path)))),
        ("part", longs(|share| share.part)),
        ("lacking", longs(|share| share.lacking)),
        ("overtaken", longs(|share| share.overtaken)),
        ("late", longs(|share| share.late)),
    ];
    RecordBatch::try_from_iter(columns)
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
