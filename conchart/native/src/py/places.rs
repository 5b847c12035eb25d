//! What Python asks of the packets that several places saw.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

use super::{Batch, batches, failed};
use crate::across::clocks;
use crate::across::crossings;
use crate::across::turns;

/// Of a stretch of time: where it begins and ends, offset, drift, uncertainty, the number of packets, the segment.
type ClockPiece = (i64, i64, i64, i64, Option<i64>, i64, i64);

/// Fits the difference of two clocks. See `_native.pyi`.
#[pyfunction]
pub(super) fn fit_clock(py: Python<'_>, points: &Bound<'_, PyAny>) -> PyResult<Vec<ClockPiece>> {
    let mut read = Vec::new();
    for batch in batches(points)? {
        clocks::read(&batch.map_err(failed)?, &mut read).map_err(failed)?;
    }
    Ok(py.detach(|| clocks::fit(&read)).into_iter().map(told_piece).collect())
}

fn told_piece(p: clocks::Piece) -> ClockPiece {
    (p.from_at, p.to_at, p.offset_ns, p.drift_ppb, p.uncertainty_ns, p.points, p.segment)
}

/// Divides the turns of connections. See `_native.pyi`.
#[pyfunction]
pub(super) fn divide_turns(
    py: Python<'_>,
    sightings: &Bound<'_, PyAny>,
    stops: &Bound<'_, PyAny>,
    losses: &Bound<'_, PyAny>,
) -> PyResult<Vec<Batch>> {
    let mut read = turns::rows::Turns::default();
    for batch in batches(stops)? {
        read.know(&batch.map_err(failed)?).map_err(failed)?;
    }
    for batch in batches(losses)? {
        read.miss(&batch.map_err(failed)?).map_err(failed)?;
    }
    for batch in batches(sightings)? {
        read.take(&batch.map_err(failed)?).map_err(failed)?;
    }
    let told = py.detach(|| read.told()).map_err(failed)?;
    Ok(told.map(|rows| Batch { rows, words: Vec::new(), empty: Vec::new() }).into())
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
    fn new(py: Python<'_>, sightings: &Bound<'_, PyAny>, streams: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut inner = crossings::rows::Crossings::default();
        for batch in batches(streams)? {
            inner.know(&batch.map_err(failed)?).map_err(failed)?;
        }
        for batch in batches(sightings)? {
            inner.take(batch.map_err(failed)?);
        }
        py.detach(|| inner.meet()).map_err(failed)?;
        Ok(Self { inner: Mutex::new(inner) })
    }

    fn grain(&self, py: Python<'_>, part: usize) -> i64 {
        self.with(py, |inner| inner.grain(part))
    }

    fn apart(&self, py: Python<'_>) -> PyResult<Batch> {
        let rows = self.with(py, |inner| crossings::rows::apart_rows(&inner.found.apart)).map_err(failed)?;
        Ok(Batch { rows, words: Vec::new(), empty: Vec::new() })
    }

    fn shares(&self, py: Python<'_>) -> PyResult<Batch> {
        let rows = self.with(py, |inner| crossings::rows::share_rows(&inner.found.shares)).map_err(failed)?;
        Ok(Batch { rows, words: Vec::new(), empty: Vec::new() })
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
            clocks::clues::clues(pairs.map(|pair| (pair, inner.points(pair, &unset))).collect())
        });
        found.into_iter().map(|clue| (clue.part, clue.before, clue.after, clue.ns)).collect()
    }

    #[expect(clippy::needless_pass_by_value, reason = "Python's list becomes a vector")]
    fn steps(&self, py: Python<'_>, here: usize, there: usize, known: [Vec<(i64, i64)>; 2]) -> Vec<ClockStep> {
        let found = self.with(py, |inner| {
            let mut points = inner.points([here, there], &[Vec::new(), Vec::new()]);
            clocks::steps::without(&mut points, &known);
            clocks::steps::steps(points)
        });
        found.into_iter().map(|step| (step.of, step.before, step.after, step.ns)).collect()
    }

    fn fit(&self, py: Python<'_>, here: usize, there: usize, sets: [Vec<i64>; 2]) -> Vec<ClockPiece> {
        let pieces = self.with(py, |inner| clocks::fit(&inner.points([here, there], &sets)));
        pieces.into_iter().map(told_piece).collect()
    }

    #[expect(clippy::needless_pass_by_value, reason = "Python's list becomes a vector")]
    fn told(&self, py: Python<'_>, befores: Vec<i64>) -> PyResult<Vec<Batch>> {
        let told = self.with(py, |inner| inner.told(&befores)).map_err(failed)?;
        Ok(told.into_iter().map(|rows| Batch { rows, words: Vec::new(), empty: Vec::new() }).collect())
    }
}
