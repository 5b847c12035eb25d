//! Lines of an access log and the exchanges that they are about: rows of both in, pairs out.
//!
//! `conchart/logs/joining.py` makes groups: lines and exchanges that agree in all that a line says (client, method,
//! target, status). What is left is time, size and order. Servers write a line when a response ends, so lines in the
//! order of the file and exchanges in the order of their ends are two versions of one sequence, which are aligned
//! ([`align`]). Then neighbours that fit better the other way round change places, what was left over is paired, and
//! each pair is told how sure it is ([`weigh`]).
//!
//! N lines cost N times the width of the band, however many of them are alike. No IO, no clock.

mod align;
mod weigh;

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch};
use arrow_schema::ArrowError;

use crate::correlate::columns::{Columns, at};

/// Exchanges beside the likeliest one that are looked at.
const REACH: usize = 80;
/// A time differs by so much for reasons that nobody sees: the server's loop, the kernel.
const USUAL_NS: f64 = 1_500_000.0;
/// Worth of a size that does not fit.
const OTHER_SIZE: f32 = 3.0;
/// Bytes by which sizes of one kind differ: a number in the head has a digit more.
const HEAD_BYTES: i64 = 64;
/// The most that a time counts: a pair is never worse than none for its time alone, if it lies near enough at all.
const MOST: f32 = 7.0;
/// A clock as coarse as this tells the order of lines worse than the file does.
const COARSE_NS: i64 = 20_000_000;

/// A line, with its instants on the capture's clock.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    pub group: i64,
    pub id: i64,
    /// When the request began.
    pub start_at: Option<i64>,
    /// When the response was written.
    pub end_at: Option<i64>,
    /// How long the server says that took.
    pub took_ns: Option<i64>,
    pub bytes: Option<i64>,
}

/// An exchange.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub group: i64,
    pub stream: i32,
    pub number: i32,
    pub start_at: i64,
    /// The response was written between these two.
    pub low_at: i64,
    pub high_at: i64,
    pub bytes: Option<i64>,
}

/// What is known of the log's clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// What it cuts off.
    pub grain_ns: i64,
    /// How wrong its offset may be.
    pub slack_ns: i64,
    /// A line and an exchange that are farther apart are not the same.
    pub limit_ns: i64,
}

/// A line and its exchange.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    pub line: i64,
    pub stream: i32,
    pub number: i32,
    pub confidence: f64,
    /// Other exchanges that the line may as well be about.
    pub rivals: i32,
}

/// Pairs lines and exchanges, both in the order of their groups; lines then in that of the file.
pub fn pair(lines: &[Line], requests: &[Request], clock: Clock) -> Vec<Pair> {
    let mut pairs = Vec::new();
    let mut rest = requests;
    for lines in lines.chunk_by(|one, other| one.group == other.group) {
        let Some(group) = lines.first().map(|line| line.group) else { continue };
        rest = rest.get(rest.partition_point(|request| request.group < group)..).unwrap_or_default();
        let (mine, others) = rest.split_at(rest.partition_point(|request| request.group == group));
        rest = others;
        if !mine.is_empty() {
            Group::new(lines, mine, clock).pair(&mut pairs);
        }
    }
    pairs
}

/// Lines and exchanges that may be the same.
struct Group<'a> {
    lines: &'a [Line],
    /// In the order of their ends.
    requests: Vec<Request>,
    clock: Clock,
    /// What the wire has more than the log counts.
    head_bytes: i64,
    /// The longest time between which a response was written.
    span_ns: i64,
}

impl<'a> Group<'a> {
    fn new(lines: &'a [Line], requests: &[Request], clock: Clock) -> Self {
        let mut requests = requests.to_vec();
        requests.sort_by_key(|request| (request.low_at, request.high_at));
        let head_bytes = head_bytes(lines, &requests);
        let spans = requests.iter().map(|request| request.high_at.saturating_sub(request.low_at));
        let span_ns = spans.max().unwrap_or(0);
        Self { lines, requests, clock, head_bytes, span_ns }
    }

    fn pair(&self, pairs: &mut Vec<Pair>) {
        let mut found = align::align(self);
        weigh::exchange(self, &mut found);
        weigh::take_up(self, &mut found);
        weigh::tell(self, &found, pairs);
    }

    fn coarse(&self) -> bool {
        self.clock.grain_ns.max(self.clock.slack_ns) > COARSE_NS
    }

    /// When the line says that the response was written, as good as it says so.
    fn end_of(&self, line: &Line) -> Option<i64> {
        line.end_at.or_else(|| line.start_at?.checked_add(line.took_ns.unwrap_or(0)))
    }

    /// The exchanges that are near enough to the line in time.
    fn near(&self, line: &Line) -> Range<usize> {
        let Some(end_at) = self.end_of(line) else { return 0..self.requests.len() };
        // Without a duration, an instant at the start tells little of the end.
        let open = line.end_at.is_none() && line.took_ns.is_none();
        let first = end_at.saturating_sub(self.clock.limit_ns).saturating_sub(self.span_ns);
        let last = end_at.saturating_add(self.clock.grain_ns).saturating_add(self.clock.limit_ns);
        let last = if open { last.saturating_add(30 * self.clock.limit_ns) } else { last };
        let begin = self.requests.partition_point(|request| request.low_at < first);
        begin..self.requests.partition_point(|request| request.low_at <= last).max(begin)
    }

    /// What speaks against a line and an exchange being the same; 0 is nothing.
    fn cost(&self, line: &Line, request: &Request) -> f32 {
        let mut cost = 0.0;
        if let Some(start_at) = line.start_at {
            cost += self.time(apart(start_at, self.clock.grain_ns, request.start_at, request.start_at));
        }
        if let Some(end_at) = line.end_at {
            cost += self.time(apart(end_at, self.clock.grain_ns, request.low_at, request.high_at));
        }
        if let Some(took_ns) = line.took_ns.filter(|_| self.coarse() || line.end_at.is_none()) {
            let (least, most) = (request.low_at - request.start_at, request.high_at - request.start_at);
            cost += grown(apart(took_ns, 1_000_000, least, most), USUAL_NS);
        }
        if let Some((line, wire)) = line.bytes.zip(request.bytes)
            && (wire.saturating_sub(line).saturating_sub(self.head_bytes)).abs() > HEAD_BYTES
        {
            cost += OTHER_SIZE;
        }
        cost
    }

    fn time(&self, ns: i64) -> f32 {
        #[expect(clippy::cast_precision_loss, reason = "a tolerance")]
        let usual = USUAL_NS.max(self.clock.slack_ns as f64);
        grown(ns, usual)
    }
}

/// How far what lies between `logged_at` and `logged_at + grain` is from what lies between `low` and `high`.
fn apart(logged_at: i64, grain: i64, low: i64, high: i64) -> i64 {
    logged_at.saturating_sub(high.max(low)).max(low.saturating_sub(logged_at.saturating_add(grain))).max(0)
}

/// A difference in units of what is usual: fully at first, little where it is large anyway.
fn grown(ns: i64, usual: f64) -> f32 {
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "a weight")]
    let units = (ns as f64 / usual) as f32;
    if units <= 4.0 { units } else { (4.0 + (units - 4.0) / 64.0).min(MOST) }
}

/// What the wire has more than the log counts, the head of the response above all: the median of the differences of
/// sizes that stand in the same place of both lists.
fn head_bytes(lines: &[Line], requests: &[Request]) -> i64 {
    let mut logged: Vec<i64> = lines.iter().filter_map(|line| line.bytes).collect();
    let mut seen: Vec<i64> = requests.iter().filter_map(|request| request.bytes).collect();
    logged.sort_unstable();
    seen.sort_unstable();
    if logged.is_empty() || seen.is_empty() {
        return 0;
    }
    let count = logged.len().min(seen.len());
    let place = |list: &[i64], number: usize| list.get(number * list.len() / count).copied().unwrap_or(0);
    let mut apart: Vec<i64> =
        (0..count).map(|number| place(&seen, number).saturating_sub(place(&logged, number))).collect();
    apart.sort_unstable();
    apart.get(count / 2).copied().unwrap_or(0)
}

/// Appends the lines of a batch, with the columns that `conchart/logs/joining.py` selects.
///
/// # Errors
/// When a column is missing, or of another type.
pub fn read_lines(batch: &RecordBatch, lines: &mut Vec<Line>) -> Result<(), ArrowError> {
    let columns = Columns { batch };
    let longs = |name| columns.get::<Int64Array>(name);
    let (group, id, start_at) = (longs("grp")?, longs("id")?, longs("start_at")?);
    let (end_at, took_ns, bytes) = (longs("end_at")?, longs("took_ns")?, longs("bytes")?);
    lines.extend((0..batch.num_rows()).map(|row| Line {
        group: group.value(row),
        id: id.value(row),
        start_at: at!(start_at, row),
        end_at: at!(end_at, row),
        took_ns: at!(took_ns, row),
        bytes: at!(bytes, row),
    }));
    Ok(())
}

/// The same of exchanges.
///
/// # Errors
/// When a column is missing, or of another type.
pub fn read_requests(batch: &RecordBatch, requests: &mut Vec<Request>) -> Result<(), ArrowError> {
    let columns = Columns { batch };
    let longs = |name| columns.get::<Int64Array>(name);
    let integers = |name| columns.get::<Int32Array>(name);
    let (group, stream, number) = (longs("grp")?, integers("stream")?, integers("number")?);
    let (start_at, low_at) = (longs("start_at")?, longs("low_at")?);
    let (high_at, bytes) = (longs("high_at")?, longs("bytes")?);
    requests.extend((0..batch.num_rows()).map(|row| Request {
        group: group.value(row),
        stream: stream.value(row),
        number: number.value(row),
        start_at: start_at.value(row),
        low_at: low_at.value(row),
        high_at: high_at.value(row),
        bytes: at!(bytes, row),
    }));
    Ok(())
}

/// The pairs as rows.
///
/// # Errors
/// Never, with columns of one length.
pub fn rows_of(pairs: &[Pair]) -> Result<RecordBatch, ArrowError> {
    let columns: [(&str, ArrayRef); 5] = [
        ("id", Arc::new(Int64Array::from_iter_values(pairs.iter().map(|pair| pair.line)))),
        ("stream", Arc::new(Int32Array::from_iter_values(pairs.iter().map(|pair| pair.stream)))),
        ("exchange", Arc::new(Int32Array::from_iter_values(pairs.iter().map(|pair| pair.number)))),
        ("confidence", Arc::new(Float64Array::from_iter_values(pairs.iter().map(|pair| pair.confidence)))),
        ("rivals", Arc::new(Int32Array::from_iter_values(pairs.iter().map(|pair| pair.rivals)))),
    ];
    RecordBatch::try_from_iter(columns)
}

#[cfg(test)]
mod tests;
