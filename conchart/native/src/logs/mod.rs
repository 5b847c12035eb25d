//! Access logs of servers: a file's lines in, rows of columns out, in one streaming pass.
//!
//! In: a path, and how its lines are built (`conchart/logs/formats.py` reads the server's format string). Out: record
//! batches. A line that does not fit is counted; a line that never ends is cut. Nothing else is kept of the file.

mod instants;
mod json;
mod lines;
mod rows;
mod tokens;

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use flate2::bufread::MultiGzDecoder;

use lines::Lines;
use rows::Rows;
use tokens::{Found, Parser};
pub(crate) use tokens::{Layout, Role};

/// The first two bytes of a gzip file (RFC 1952 section 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Read from a file at once.
const BLOCK: usize = 256 << 10;
/// Lines that are tried with each layout; the one that most of them fit is that of the file.
const TRIED: usize = 200;
/// Rows of a batch.
const ROWS: usize = 1 << 15;

/// How a file was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Summary {
    /// Lines that are not empty.
    pub lines: i64,
    pub malformed: i64,
    /// The number of the first line that does not fit, from 1.
    pub first_malformed: Option<i64>,
    /// Place of the layout in what was given.
    pub layout: usize,
    /// The unit of the finest instant that a line has.
    pub resolution_ns: Option<i64>,
    /// Its instants have a zone.
    pub zoned: bool,
    /// The file broke: what was read before counts.
    pub broken: Option<String>,
}

/// Why a file ends early for good.
#[derive(Debug)]
pub(crate) enum Failure<E> {
    Reading(io::Error),
    Building(ArrowError),
    Taking(E),
}

/// A file, plain or gzip.
fn open(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    let mut file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    let mut start = Vec::with_capacity(GZIP.len());
    (&mut file).take(GZIP.len() as u64).read_to_end(&mut start)?;
    let is_gzip = start == GZIP;
    let whole = BufReader::with_capacity(BLOCK, io::Cursor::new(start).chain(file));
    Ok(if is_gzip { Box::new(MultiGzDecoder::new(whole)) } else { Box::new(whole) })
}

/// Reads a log: the layout that fits its first lines best, then all lines by it.
///
/// # Errors
/// When the file cannot be opened, a batch cannot be built, or `sink` refuses one.
pub(crate) fn read<E>(
    path: &Path,
    layouts: &[Layout],
    mut sink: impl FnMut(RecordBatch) -> Result<(), E>,
) -> Result<Summary, Failure<E>> {
    let mut lines = Lines::new(BufReader::with_capacity(BLOCK, open(path).map_err(Failure::Reading)?));
    let mut summary = Summary::default();
    let mut first: Vec<(i64, Vec<u8>)> = Vec::new();
    while first.len() < TRIED {
        match lines.next() {
            Some(Ok((number, line))) => first.push((number, line.to_vec())),
            Some(Err(error)) => {
                summary.broken = Some(error.to_string());
                break;
            }
            None => break,
        }
    }
    summary.layout = best(layouts, &first);
    let Some(layout) = layouts.get(summary.layout) else { return Ok(summary) };
    let mut parser = Parser::new(layout);
    let mut rows = Rows::new(layout);
    for (number, line) in &first {
        take(&mut parser, &mut rows, &mut summary, *number, line);
    }
    while summary.broken.is_none() {
        match lines.next() {
            Some(Ok((number, line))) => take(&mut parser, &mut rows, &mut summary, number, line),
            Some(Err(error)) => summary.broken = Some(error.to_string()),
            None => break,
        }
        if rows.len() >= ROWS {
            sink(rows.take().map_err(Failure::Building)?).map_err(Failure::Taking)?;
        }
    }
    sink(rows.take().map_err(Failure::Building)?).map_err(Failure::Taking)?;
    Ok(summary)
}

/// The layout that most lines fit; of several the first.
fn best(layouts: &[Layout], lines: &[(i64, Vec<u8>)]) -> usize {
    let fits = layouts.iter().map(|layout| {
        let mut parser = Parser::new(layout);
        lines.iter().filter(|(_, line)| parser.parse(line).is_some()).count()
    });
    let mut found = (0, 0);
    for (place, count) in fits.enumerate() {
        if count > found.1 {
            found = (place, count);
        }
    }
    found.0
}

fn take(parser: &mut Parser<'_>, rows: &mut Rows, summary: &mut Summary, number: i64, line: &[u8]) {
    summary.lines += 1;
    let Some(found) = parser.parse(line) else {
        summary.malformed += 1;
        summary.first_malformed.get_or_insert(number);
        return;
    };
    let Found { at, .. } = &found;
    if let Some(at) = at {
        summary.resolution_ns = Some(summary.resolution_ns.map_or(at.unit_ns, |unit| unit.min(at.unit_ns)));
        summary.zoned |= at.zoned;
    }
    rows.push(number, line, &found);
}

#[cfg(test)]
mod tests;
