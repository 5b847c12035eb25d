//! What Python asks of the packets that several places saw.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::{Batch, batches, failed, plain, stream};
use crate::correlate::clocks;
use crate::correlate::crossings;
use crate::correlate::crossings::telling::{Axis, SIDES, Stretch, Telling};
use crate::correlate::similarity;
use crate::correlate::turns;

/// Of a stretch of time: where it begins and ends, offset, drift, uncertainty, the number of packets, the segment.
type ClockPiece = (i64, i64, i64, i64, Option<i64>, i64, i64);

/// Fits the difference of two clocks. See `_native.pyi`.
#[pyfunction]
pub(super) fn fit_clock(py: Python<'_>, points: &Bound<'_, PyAny>) -> PyResult<Vec<ClockPiece>> {
    let mut read = Vec::new();
    for batch in batches(points)? {
        clocks::read(&batch.map_err(failed)?, &mut read).map_err(failed)?;
    }
    Ok(py.detach(|| clocks::fit(&read)).into_iter().map(piece_row).collect())
}

/// The exchanges of both places that belong together, whether they were read, and how far the clocks are apart.
type AlikePairs = (Vec<((i32, i32), (i32, i32))>, bool, ClockPiece);

/// Pairs the exchanges of two places that share no packets. See `_native.pyi`.
#[pyfunction]
pub(super) fn pair_alike(
    py: Python<'_>,
    exchanges: &Bound<'_, PyAny>,
    grains: [i64; 2],
) -> PyResult<Option<AlikePairs>> {
    let mut places = [Vec::new(), Vec::new()];
    for batch in batches(exchanges)? {
        similarity::read(&batch.map_err(failed)?, &mut places).map_err(failed)?;
    }
    let [fronts, backs] = &places;
    Ok(py.detach(|| similarity::pair(fronts, backs, grains)).map(|found| {
        let named = |exchange: &similarity::Exchange| (exchange.stream, exchange.number);
        let pairs = found.pairs.iter().filter_map(|(front, back)| Some((fronts.get(*front)?, backs.get(*back)?)));
        (pairs.map(|(front, back)| (named(front), named(back))).collect(), found.read, piece_row(found.piece))
    }))
}

fn piece_row(p: clocks::Piece) -> ClockPiece {
    (p.from_at, p.to_at, p.offset_ns, p.drift_ppb, p.uncertainty_ns, p.points, p.segment)
}

/// Divides the turns of connections. See `_native.pyi`.
#[pyfunction]
pub(super) fn divide_turns(
    py: Python<'_>,
    places: Vec<String>,
    place_packets: &Bound<'_, PyAny>,
    stops: &Bound<'_, PyAny>,
    losses: &Bound<'_, PyAny>,
    waits: &Bound<'_, PyAny>,
) -> PyResult<Vec<Batch>> {
    let mut read = turns::rows::Turns::new(places);
    for batch in batches(stops)? {
        read.know(&batch.map_err(failed)?).map_err(failed)?;
    }
    for batch in batches(losses)? {
        read.miss(&batch.map_err(failed)?).map_err(failed)?;
    }
    for batch in batches(waits)? {
        read.ask(&batch.map_err(failed)?).map_err(failed)?;
    }
    for batch in batches(place_packets)? {
        read.take(batch.map_err(failed)?);
    }
    let divided = py.detach(|| read.divide()).map_err(failed)?;
    Ok(divided.map(plain).into())
}

/// Of a clock that was set: whose, the last frames before, the first ones after, by how much.
type ClockStep = (Option<usize>, [i64; 2], [i64; 2], i64);

/// The packets of several places, and which are the same. See `_native.pyi`.
#[pyclass(frozen, module = "conchart._native")]
pub(super) struct Crossings {
    inner: Mutex<crossings::rows::Crossings>,
}

impl Crossings {
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut crossings::rows::Crossings) -> T + Send) -> T {
        py.detach(|| work(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

#[pymethods]
impl Crossings {
    #[new]
    #[expect(clippy::needless_pass_by_value, reason = "Python's list becomes a vector")]
    fn new(place_packets: Vec<Vec<PyRef<'_, Batch>>>) -> Self {
        let mut inner = crossings::rows::Crossings::default();
        for (part, batches) in place_packets.iter().enumerate() {
            for batch in batches {
                let words = batch.words.iter().find(|(name, _)| *name == "sender").map(|(_, words)| words);
                let client = words.and_then(|words| words.iter().position(|word| *word == SIDES[0]));
                inner.take(crossings::rows::Sighted {
                    part,
                    rows: batch.rows.clone(),
                    // Numbers of words count from 1; where there is no such word, no row has it.
                    client: client.and_then(|client| u8::try_from(client + 1).ok()).unwrap_or(u8::MAX),
                    empty: batch.empty.clone(),
                });
            }
        }
        Self { inner: Mutex::new(inner) }
    }

    #[expect(clippy::needless_pass_by_value, reason = "Python's list becomes a set")]
    fn of_streams(&self, py: Python<'_>, streams: Vec<(usize, i32)>) -> PyResult<Batch> {
        let wanted = streams.iter().copied().collect();
        Ok(plain(self.with(py, |inner| inner.of_streams(&wanted)).map_err(failed)?))
    }

    fn meet(&self, py: Python<'_>, streams: &Bound<'_, PyAny>) -> PyResult<()> {
        for batch in batches(streams)? {
            let batch = batch.map_err(failed)?;
            self.with(py, |inner| inner.know(&batch)).map_err(failed)?;
        }
        self.with(py, crossings::rows::Crossings::meet).map_err(failed)
    }

    fn first_seen(&self, py: Python<'_>, part: usize, frame: i64) -> PyResult<Option<i64>> {
        self.with(py, |inner| inner.first_seen(part, frame)).map_err(failed)
    }

    fn gap(&self, py: Python<'_>, part: usize, frames: [i64; 2], most: bool) -> PyResult<Option<(i64, i64)>> {
        self.with(py, |inner| inner.gap(part, frames, most)).map_err(failed)
    }

    fn grain(&self, py: Python<'_>, part: usize) -> i64 {
        self.with(py, |inner| inner.grain(part))
    }

    fn apart(&self, py: Python<'_>) -> PyResult<Batch> {
        let rows = self.with(py, |inner| crossings::rows::apart_rows(&inner.found.apart)).map_err(failed)?;
        Ok(plain(rows))
    }

    fn shares(&self, py: Python<'_>) -> PyResult<Batch> {
        let rows = self.with(py, |inner| crossings::rows::share_rows(&inner.found.shares)).map_err(failed)?;
        Ok(plain(rows))
    }

    fn route(&self, py: Python<'_>, routes: &Bound<'_, PyAny>) -> PyResult<()> {
        for batch in batches(routes)? {
            let batch = batch.map_err(failed)?;
            self.with(py, |inner| inner.route(&batch)).map_err(failed)?;
        }
        Ok(())
    }

    fn clues(&self, py: Python<'_>, places: usize) -> Vec<(usize, i64, i64, i64)> {
        let pairs = (0..places).flat_map(|here| (here + 1..places).map(move |there| [here, there]));
        let found = self.with(py, |inner| {
            let unset = [Vec::new(), Vec::new()];
            let points: Vec<_> = pairs.map(|pair| (pair, inner.points(pair, &unset))).collect();
            clocks::clues::clues(&points)
        });
        found.into_iter().map(|clue| (clue.part, clue.before, clue.after, clue.ns)).collect()
    }

    #[expect(clippy::needless_pass_by_value, reason = "Python's list becomes a vector")]
    fn steps(&self, py: Python<'_>, here: usize, there: usize, given: [Vec<(i64, i64)>; 2]) -> Vec<ClockStep> {
        let found = self
            .with(py, |inner| clocks::steps::steps(&inner.points([here, there], &[Vec::new(), Vec::new()]), &given));
        found.into_iter().map(|step| (step.of, step.before, step.after, step.ns)).collect()
    }

    fn fit(&self, py: Python<'_>, here: usize, there: usize, sets: [Vec<i64>; 2]) -> Vec<ClockPiece> {
        let pieces = self.with(py, |inner| clocks::fit(&inner.points([here, there], &sets)));
        pieces.into_iter().map(piece_row).collect()
    }

    fn place_packets(
        &self,
        py: Python<'_>,
        streams: &Bound<'_, PyAny>,
        befores: Vec<i64>,
        clocks: Vec<Vec<Stretch>>,
    ) -> PyResult<PlacePackets> {
        let mut axis = Axis { befores, clocks, ..Axis::default() };
        for batch in batches(streams)? {
            axis.know(&batch.map_err(failed)?).map_err(failed)?;
        }
        let telling = self.with(py, |inner| inner.tell(axis)).map_err(failed)?;
        Ok(PlacePackets { inner: Arc::new(Mutex::new(telling)) })
    }
}

/// The rows of the table `place_packets`, as a stream that is read once.
#[pyclass(frozen, module = "conchart._native")]
pub(super) struct PlacePackets {
    inner: Arc<Mutex<Telling>>,
}

#[pymethods]
impl PlacePackets {
    /// The Arrow PyCapsule interface. Who asks for the schema alone takes no rows away.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        stream(py, Box::new(Rest(Arc::clone(&self.inner))))
    }

    #[getter]
    fn words(&self) -> HashMap<&'static str, Vec<&'static str>> {
        HashMap::from([("sender", SIDES.to_vec())])
    }

    #[getter]
    fn empty(&self) -> Vec<&'static str> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).empty.clone()
    }
}

/// What nobody has read yet.
struct Rest(Arc<Mutex<Telling>>);

impl Iterator for Rest {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).next()
    }
}

impl RecordBatchReader for Rest {
    fn schema(&self) -> SchemaRef {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).schema()
    }
}
