//! Exchanges of two places that share no packets, paired by what they look like: a proxy between them handed them on.
//!
//! A request reaches the place behind the proxy after it left the client, and its answer leaves that place before the
//! client has it. So a pair bounds the difference of the two clocks on either side. The clocks may be hours apart: of all
//! pairs that look alike, those are taken that one difference explains, if no other difference explains half as many.
//! Where several exchanges fit one, it has no pair; where pairs that nothing else fits contradict each other, or where
//! chance would explain as much, there is no alignment at all.
//!
//! In: [`Exchange`]s of both places. Out: [`Alike`]. N exchanges cost N log N: what looks like more than [`MOST_ALIKE`]
//! others is left out. No IO, no clock.

use std::collections::HashMap;

use arrow_array::{Array, BooleanArray, Int32Array, Int64Array, RecordBatch, UInt64Array};
use arrow_schema::ArrowError;

use crate::correlate::clocks::{self, MAX_DRIFT, Piece, Point};
use crate::correlate::columns::{Columns, at};

/// Exchanges of one place that look alike: beyond, they tell nothing.
const MOST_ALIKE: usize = 32;
/// Pairs that agree, at least: of requests that were read, and of encrypted ones, of which sizes alone are known.
const LEAST_READ: usize = 3;
const LEAST_SIZED: usize = 5;
/// That so many pairs agree by chance is less likely than that.
const CHANCE: f64 = 1e-4;
/// A proxy adds and removes headers, and TLS has records: an answer is larger or smaller by as much, and by a part of it.
const HEADERS: i64 = 512;
const RECORDS: i64 = 50;

/// A request and its answer, at one place, by its clock.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    pub stream: i32,
    pub number: i32,
    /// Method, target and status; `None` where they are encrypted.
    pub key: Option<u64>,
    pub request_at: i64,
    /// Its first byte; `None` where it is not read: a ticket of TLS may come before it.
    pub response_at: Option<i64>,
    pub done_at: i64,
    pub request_bytes: i64,
    pub response_bytes: i64,
    pub frame: i64,
}

/// What two places have in common.
#[derive(Debug)]
pub struct Alike {
    /// Which exchange in front of the proxy belongs to which one behind it.
    pub pairs: Vec<(usize, usize)>,
    /// Methods and targets were read, not sizes alone.
    pub read: bool,
    /// How far the clock behind the proxy is ahead.
    pub piece: Piece,
}

/// A pair that may be one, and the differences of the clocks in the middle of the capture that it allows.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    front: usize,
    back: usize,
    low: i64,
    high: i64,
}

/// Pairs the exchanges of a place in front of a proxy with those of a place behind it.
///
/// `grains`: what each clock cuts off.
#[must_use]
pub fn pair(fronts: &[Exchange], backs: &[Exchange], grains: [i64; 2]) -> Option<Alike> {
    let read = |exchanges: &[Exchange]| exchanges.iter().filter(|one| one.key.is_some()).count() >= LEAST_READ;
    let by_key = read(fronts) && read(backs);
    let mut candidates = if by_key { same_keys(fronts, backs) } else { same_sizes(fronts, backs) };
    let middle = middle_of(fronts)?;
    candidates.retain_mut(|pair| bounded(pair, fronts, backs, grains, middle));
    let range = agreed(&candidates, if by_key { LEAST_READ } else { LEAST_SIZED })?;
    let pairs = sole(&candidates, range)?;
    if pairs.len() < if by_key { LEAST_READ } else { LEAST_SIZED } || is_chance(&pairs, fronts) {
        return None;
    }
    let piece = fitted(&pairs, fronts, backs, grains)?;
    Some(Alike { pairs: pairs.iter().map(|pair| (pair.front, pair.back)).collect(), read: by_key, piece })
}

fn middle_of(fronts: &[Exchange]) -> Option<i64> {
    let first = fronts.iter().map(|one| one.request_at).min()?;
    Some(first.midpoint(fronts.iter().map(|one| one.done_at).max()?))
}

const fn candidate(front: usize, back: usize) -> Candidate {
    Candidate { front, back, low: 0, high: 0 }
}

fn same_keys(fronts: &[Exchange], backs: &[Exchange]) -> Vec<Candidate> {
    let mut groups: HashMap<u64, [Vec<usize>; 2]> = HashMap::new();
    for (index, key) in fronts.iter().enumerate().filter_map(|(index, one)| Some((index, one.key?))) {
        let [here, _] = groups.entry(key).or_default();
        here.push(index);
    }
    for (index, key) in backs.iter().enumerate().filter_map(|(index, one)| Some((index, one.key?))) {
        if let Some([_, there]) = groups.get_mut(&key) {
            there.push(index);
        }
    }
    let mut found = Vec::new();
    for [here, there] in groups.into_values() {
        if here.len() <= MOST_ALIKE && there.len() <= MOST_ALIKE {
            found.extend(here.iter().flat_map(|front| there.iter().map(|back| candidate(*front, *back))));
        }
    }
    found.sort_unstable_by_key(|pair| (pair.front, pair.back));
    found
}

fn same_sizes(fronts: &[Exchange], backs: &[Exchange]) -> Vec<Candidate> {
    let mut sorted: Vec<usize> = (0..backs.len()).collect();
    let size = |index: &usize| backs.get(*index).map_or(0, |one| one.response_bytes);
    sorted.sort_unstable_by_key(size);
    let mut found = Vec::new();
    for (front, exchange) in fronts.iter().enumerate() {
        let room = HEADERS + exchange.response_bytes / RECORDS;
        let from = sorted.partition_point(|index| size(index) < exchange.response_bytes - room);
        let to = sorted.partition_point(|index| size(index) <= exchange.response_bytes + room);
        if to - from > MOST_ALIKE {
            continue;
        }
        found.extend(sorted.get(from..to).unwrap_or_default().iter().map(|back| candidate(front, *back)));
    }
    let room = |front: &Exchange| HEADERS + front.request_bytes / RECORDS;
    found.retain(|pair| {
        let (Some(front), Some(back)) = (fronts.get(pair.front), backs.get(pair.back)) else { return false };
        (front.request_bytes - back.request_bytes).abs() <= room(front)
    });
    found
}

/// Sets the bounds of a pair: `false` if there are none, as what the client waited for is shorter.
fn bounded(pair: &mut Candidate, fronts: &[Exchange], backs: &[Exchange], grains: [i64; 2], middle: i64) -> bool {
    let (Some(front), Some(back)) = (fronts.get(pair.front), backs.get(pair.back)) else { return false };
    let high = back.request_at.saturating_sub(front.request_at).saturating_add(grains[1] - 1);
    let done = back.done_at.saturating_sub(front.done_at);
    let answered = front.response_at.zip(back.response_at).map_or(done, |(here, there)| there.saturating_sub(here));
    let low = done.max(answered).saturating_sub(grains[0] - 1);
    #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "a bound, rounded up")]
    let drifted = (front.request_at.abs_diff(middle).max(front.done_at.abs_diff(middle)) as f64 * MAX_DRIFT) as i64 + 1;
    (pair.low, pair.high) = (low.saturating_sub(drifted), high.saturating_add(drifted));
    low <= high
}

/// The differences that most exchanges allow, as far as half as many do; `None` if others are allowed by half as many.
fn agreed(candidates: &[Candidate], least: usize) -> Option<(i64, i64)> {
    // An exchange counts once, however many others it looks like.
    let mut edges: Vec<(i64, bool)> = Vec::with_capacity(2 * candidates.len());
    for same in candidates.chunk_by(|one, other| one.front == other.front) {
        let mut own: Vec<(i64, i64)> = same.iter().map(|pair| (pair.low, pair.high)).collect();
        own.sort_unstable();
        let mut until: Option<i64> = None;
        for (low, high) in own {
            match until {
                Some(end) if low <= end => until = Some(end.max(high)),
                _ => {
                    edges.extend(until.map(|end| (end, true)));
                    edges.push((low, false));
                    until = Some(high);
                }
            }
        }
        edges.extend(until.map(|end| (end, true)));
    }
    edges.sort_unstable();
    let count = |most: &mut dyn FnMut(i64, usize, usize)| {
        let mut here = 0_usize;
        for (at, ends) in &edges {
            let before = here;
            here = if *ends { here.saturating_sub(1) } else { here + 1 };
            most(*at, before, here);
        }
    };
    let mut best = 0;
    count(&mut |_, _, here| best = best.max(here));
    if best < least {
        return None;
    }
    let mut ranges: Vec<(i64, i64)> = Vec::new();
    count(&mut |at, before, here| match (2 * before > best, 2 * here > best) {
        (false, true) => ranges.push((at, at)),
        (true, false) => ranges.last_mut().into_iter().for_each(|range| range.1 = at),
        _ => (),
    });
    let [range] = *ranges.as_slice() else { return None };
    Some(range)
}

/// The pairs in the range of which neither exchange has another one there; `None` if such pairs contradict the range.
fn sole(candidates: &[Candidate], range: (i64, i64)) -> Option<Vec<Candidate>> {
    let is_in = |pair: &&Candidate| pair.low <= range.1 && pair.high >= range.0;
    let counted = |all: &mut dyn Iterator<Item = &Candidate>| {
        let mut counts: [HashMap<usize, usize>; 2] = Default::default();
        for pair in all {
            let [here, there] = &mut counts;
            *here.entry(pair.front).or_default() += 1;
            *there.entry(pair.back).or_default() += 1;
        }
        counts
    };
    let is_sole = |[here, there]: &[HashMap<usize, usize>; 2], pair: &Candidate| {
        here.get(&pair.front) == Some(&1) && there.get(&pair.back) == Some(&1)
    };
    let (all, near) = (counted(&mut candidates.iter()), counted(&mut candidates.iter().filter(is_in)));
    let pairs: Vec<Candidate> = candidates.iter().filter(is_in).filter(|pair| is_sole(&near, pair)).copied().collect();
    let against = candidates.iter().filter(|pair| !is_in(pair) && is_sole(&all, pair)).count();
    (against * 10 <= pairs.len()).then_some(pairs)
}

/// Would as many pairs agree if their requests had come at any time?
#[expect(clippy::cast_precision_loss, reason = "a likelihood")]
fn is_chance(pairs: &[Candidate], fronts: &[Exchange]) -> bool {
    let mut widths: Vec<i64> = pairs.iter().map(|pair| pair.high.saturating_sub(pair.low)).collect();
    widths.sort_unstable();
    let times = || pairs.iter().filter_map(|pair| fronts.get(pair.front)).map(|front| front.request_at);
    let span = times().max().unwrap_or(0).saturating_sub(times().min().unwrap_or(0));
    let width = widths.get(widths.len() / 2).copied().unwrap_or(i64::MAX);
    let others = i32::try_from(pairs.len()).unwrap_or(i32::MAX) - 1;
    span <= 0 || (width as f64 / span as f64).powi(others) > CHANCE
}

/// The corridor of all pairs; `None` if no line is left.
fn fitted(pairs: &[Candidate], fronts: &[Exchange], backs: &[Exchange], grains: [i64; 2]) -> Option<Piece> {
    let mut points = Vec::with_capacity(3 * pairs.len());
    for pair in pairs {
        let (front, back) = (fronts.get(pair.front)?, backs.get(pair.back)?);
        let mut bound = |at: i64, there: i64, outward: bool| {
            let cut = if outward { grains[1] - 1 } else { 1 - grains[0] };
            let ahead_ns = there.saturating_sub(at).saturating_add(cut);
            points.push(Point { at, ahead_ns, outward, frames: [front.frame, back.frame], segment: 0 });
        };
        bound(front.request_at, back.request_at, true);
        if let Some((here, there)) = front.response_at.zip(back.response_at) {
            bound(here, there, false);
        }
        bound(front.done_at, back.done_at, false);
    }
    points.sort_by_key(|point| point.at.saturating_add(point.ahead_ns));
    let [piece] = *clocks::fit(&points).as_slice() else { return None };
    let points = i64::try_from(pairs.len()).unwrap_or(i64::MAX);
    let half = piece.uncertainty_ns?;
    // What the clock gains, as far as it is more than what the corridor's width may pretend.
    let gained = i128::from(piece.to_at - piece.from_at) * i128::from(piece.drift_ppb) / 1_000_000_000;
    let gained = i64::try_from(gained).ok()?;
    if gained.abs() > 2 * half {
        return Some(Piece { points, ..piece });
    }
    let offset_ns = piece.offset_ns + gained / 2;
    let uncertainty_ns = Some(half + gained.abs() / 2 + 1);
    Some(Piece { points, offset_ns, drift_ppb: 0, uncertainty_ns, ..piece })
}

/// Appends the exchanges of a batch to those of the place in front (`true`) or behind.
///
/// # Errors
/// When a column is missing, or of another type.
pub fn read(batch: &RecordBatch, places: &mut [Vec<Exchange>; 2]) -> Result<(), ArrowError> {
    let columns = Columns { batch };
    let (stream, number) = (columns.get::<Int32Array>("stream")?, columns.get::<Int32Array>("number")?);
    let in_front = columns.get::<BooleanArray>("in_front")?;
    let key = columns.get::<UInt64Array>("key")?;
    let (request_at, response_at) = (columns.get::<Int64Array>("request_at")?, columns.get("response_at")?);
    let response_at: &Int64Array = response_at;
    let done_at = columns.get::<Int64Array>("done_at")?;
    let request_bytes = columns.get::<Int64Array>("request_bytes")?;
    let response_bytes = columns.get::<Int64Array>("response_bytes")?;
    let frame = columns.get::<Int64Array>("frame")?;
    let [fronts, backs] = places;
    for row in 0..batch.num_rows() {
        let key = at!(key, row);
        let exchange = Exchange {
            stream: stream.value(row),
            number: number.value(row),
            key,
            request_at: request_at.value(row),
            response_at: at!(response_at, row).filter(|_| key.is_some()),
            done_at: done_at.value(row),
            request_bytes: request_bytes.value(row),
            response_bytes: response_bytes.value(row),
            frame: frame.value(row),
        };
        if in_front.value(row) { fronts.push(exchange) } else { backs.push(exchange) }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
