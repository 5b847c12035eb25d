//! Access logs.

use std::path::PathBuf;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

use super::{Batch, batches, failed};
use crate::correlate::lines;
use crate::logs::{self, Failure, Layout};

/// How a file was read: lines, malformed lines and the first of them, the place of the layout, the unit of its finest
/// instant, whether instants have a zone, what broke.
type Summary = (i64, i64, Option<i64>, usize, Option<i64>, bool, Option<String>);

/// How lines are built: as JSON or not, fields with what stands before them, what stands after the last one.
type Given = (bool, Vec<(String, String)>, String);

/// Reads an access log. See `_native.pyi`.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over owned values")]
pub(super) fn read_log(py: Python<'_>, path: PathBuf, layouts: Vec<Given>, sink: Py<PyAny>) -> PyResult<Summary> {
    let layouts = layouts.into_iter().map(layout).collect::<PyResult<Vec<_>>>()?;
    let summary = py.detach(|| {
        logs::read(&path, &layouts, |rows| {
            Python::attach(|py| {
                py.check_signals()?;
                sink.call1(py, (Batch { rows, words: Vec::new(), empty: Vec::new() },)).map(drop)
            })
        })
    });
    match summary {
        Ok(summary) => Ok((
            summary.lines,
            summary.malformed,
            summary.first_malformed,
            summary.layout,
            summary.resolution_ns,
            summary.zoned,
            summary.broken,
        )),
        Err(Failure::Reading(error)) => Err(PyOSError::new_err(error.to_string())),
        Err(Failure::Building(error)) => Err(failed(error)),
        Err(Failure::Taking(error)) => Err(error),
    }
}

fn layout((is_json, fields, end): Given) -> PyResult<Layout> {
    let fields = fields
        .into_iter()
        .map(|(name, role)| match logs::Role::named(&role) {
            Some(role) => Ok((name, role)),
            None => Err(PyValueError::new_err(format!("no such role: {role}"))),
        })
        .collect::<PyResult<Vec<_>>>()?;
    Ok(if is_json { Layout::Json(fields) } else { Layout::Text(fields, end) })
}

/// Pairs the lines of a log with exchanges. See `_native.pyi`.
#[pyfunction]
pub(super) fn pair_lines(
    py: Python<'_>,
    logged: &Bound<'_, PyAny>,
    seen: &Bound<'_, PyAny>,
    clock: (i64, i64, i64),
) -> PyResult<Batch> {
    let (mut of_log, mut of_wire) = (Vec::new(), Vec::new());
    for batch in batches(logged)? {
        lines::read_lines(&batch.map_err(failed)?, &mut of_log).map_err(failed)?;
    }
    for batch in batches(seen)? {
        lines::read_requests(&batch.map_err(failed)?, &mut of_wire).map_err(failed)?;
    }
    let (grain_ns, slack_ns, limit_ns) = clock;
    let clock = lines::Clock { grain_ns, slack_ns, limit_ns };
    let rows = py.detach(|| lines::rows_of(&lines::pair(&of_log, &of_wire, clock))).map_err(failed)?;
    Ok(Batch { rows, words: Vec::new(), empty: Vec::new() })
}
