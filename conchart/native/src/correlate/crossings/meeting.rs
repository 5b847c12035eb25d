//! The packets of each connection, whichever batch they stand in, and what is the same among them.
//!
//! Rows are not copied: of each connection, their numbers are known, and its packets are read when it is its turn. Each
//! processor takes some connections.

use std::ops::Range;

use arrow_array::{Array, Int32Array, Int64Array, StringArray, UInt8Array};
use arrow_schema::ArrowError;

use super::rows::{Crossings, Members, Sighted};
use super::{Found, Member, Seen, alike, pair};
use crate::correlate::columns::{Columns, at};
use crate::correlate::grouping::Grouped;
use crate::packet::Seq;

/// Sequence numbers begin again.
const AROUND: i64 = 1 << 32;
/// A clock shows no less, until a time says otherwise.
const COARSEST_NS: i64 = 1_000_000;

impl Crossings {
    /// Finds what is the same.
    ///
    /// # Errors
    /// When a column is missing, or of another type.
    pub fn meet(&mut self) -> Result<(), ArrowError> {
        let mut first = 0;
        let batches = self.batches.iter().map(|batch| {
            let read = Sights::of(batch, first);
            first += batch.rows.num_rows();
            read
        });
        let batches: Vec<Sights<'_>> = batches.collect::<Result<_, _>>()?;
        self.grains = grains(&batches);
        let rows = Grouped::of(|| {
            let numbered = (0..).zip(&batches);
            numbered
                .flat_map(|(number, batch)| batch.shared(&self.members).map(move |(path, row)| (path, (number, row))))
        });
        let found = rows.side_by_side(|paths| met(paths, &rows, &batches, &self.members));
        let mut found = found.into_iter();
        self.found = found.next().unwrap_or_default();
        found.for_each(|found| self.found.append(found));
        Ok(())
    }
}

impl Found {
    fn append(&mut self, mut later: Self) {
        self.packets.append(&mut later.packets);
        self.met.append(&mut later.met);
        self.apart.append(&mut later.apart);
        self.shares.append(&mut later.shares);
    }
}

/// The columns of a batch.
struct Sights<'a> {
    part: usize,
    /// The number of its first row.
    first: usize,
    /// The number that stands for `client` in the column `sender`.
    client: u8,
    sender: &'a UInt8Array,
    stream: &'a Int32Array,
    frame: &'a Int64Array,
    seen_at: &'a Int64Array,
    seq: &'a Int64Array,
    ack: &'a Int64Array,
    print: &'a Int64Array,
    bytes: &'a Int32Array,
    ip_id: &'a Int32Array,
    ttl: &'a Int32Array,
    tos: &'a Int32Array,
    flags: &'a StringArray,
}

impl<'a> Sights<'a> {
    fn of(batch: &'a Sighted, first: usize) -> Result<Self, ArrowError> {
        let columns = Columns { batch: &batch.rows };
        let longs = |name| columns.get::<Int64Array>(name);
        let ints = |name| columns.get::<Int32Array>(name);
        Ok(Self {
            part: batch.part,
            first,
            client: batch.client,
            sender: columns.get("sender")?,
            stream: ints("stream")?,
            frame: longs("frame")?,
            seen_at: longs("seen_at")?,
            seq: longs("seq")?,
            ack: longs("ack")?,
            print: longs("print")?,
            bytes: ints("bytes")?,
            ip_id: ints("ip_id")?,
            ttl: ints("ttl")?,
            tos: ints("tos")?,
            flags: columns.get("flags")?,
        })
    }

    /// The connections that several places saw, row by row.
    fn shared<'b>(&'b self, members: &'b Members) -> impl Iterator<Item = (usize, u32)> {
        let streams = self.stream.values().iter().zip(0..);
        streams.filter_map(|(stream, row)| {
            let member = members.get(self.part, *stream).filter(|member| member.places > 1)?;
            Some((usize::try_from(member.path).ok()?, row))
        })
    }

    fn seen(&self, row: usize, member: &Member) -> Seen {
        let counted = |number: Option<i64>, by_client: bool| match member.isns {
            Some([of_client, of_server]) => {
                let isn = if by_client { of_client } else { of_server };
                number.map(|number| (number - isn).rem_euclid(AROUND))
            }
            None => number,
        };
        let sent = self.sender.value(row) == self.client;
        let (seq, ack) = (counted(at!(self.seq, row), sent), counted(at!(self.ack, row), !sent));
        let bytes = at!(self.bytes, row);
        let by_client = sent != member.turned;
        let flags = self.flags.value(row);
        // A middlebox may have taken options from a SYN.
        let is_placed =
            bytes.is_some_and(|bytes| bytes > 0) || flags.contains('F') || flags.contains('S') && member.isns.is_none();
        Seen {
            part: u16::try_from(self.part).unwrap_or(u16::MAX),
            frame: self.frame.value(row),
            at: self.seen_at.value(row),
            by_client,
            alike: alike(by_client, [seq, ack], bytes, flags, at!(self.print, row)),
            // Modulo 2^32, like all of them.
            begins: seq.filter(|_| is_placed).and_then(|seq| u32::try_from(seq & (AROUND - 1)).ok()).map(Seq),
            bytes: bytes.and_then(|bytes| u32::try_from(bytes).ok()).unwrap_or_default(),
            ip_id: at!(self.ip_id, row).unwrap_or_default(),
            ttl: at!(self.ttl, row).and_then(|ttl| u8::try_from(ttl).ok()),
            tos: at!(self.tos, row).and_then(|tos| u8::try_from(tos).ok()),
            row: u32::try_from(self.first + row).unwrap_or(u32::MAX),
            nth: 0,
        }
    }
}

/// What the clock of each place shows at least, in nanoseconds.
fn grains(batches: &[Sights<'_>]) -> Vec<i64> {
    let places = batches.iter().map(|batch| batch.part + 1).max().unwrap_or_default();
    let mut grains = vec![COARSEST_NS; places];
    for batch in batches {
        let Some(grain) = grains.get_mut(batch.part) else { continue };
        for at in batch.seen_at.values() {
            if *grain == 1 {
                break;
            }
            if at % *grain != 0 {
                *grain = if at % 1_000 == 0 { 1_000 } else { 1 };
            }
        }
    }
    grains
}

/// Finds what is the same in some of the connections.
fn met(paths: Range<usize>, rows: &Grouped, batches: &[Sights<'_>], members: &Members) -> Found {
    let mut found = Found::default();
    let mut seen: Vec<Seen> = Vec::new();
    for path in paths {
        let read = || {
            rows.rows(path).iter().filter_map(|&(batch, row)| {
                let (batch, row) = (batches.get(batch as usize)?, row as usize);
                Some((batch, row, members.get(batch.part, batch.stream.value(row))?))
            })
        };
        let Some((.., member)) = read().next() else { continue };
        seen.clear();
        seen.extend(read().map(|(batch, row, member)| batch.seen(row, member)));
        seen.sort_unstable_by_key(|seen| (seen.part, seen.frame));
        pair(member.path, member.places, &mut seen, &mut found);
    }
    found
}
