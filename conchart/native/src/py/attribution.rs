//! What Python asks of users' waits.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

use super::{Batch, each, failed, plain};
use crate::correlate::attribution::rows::{Reading, Rows, read_delays, read_waits};
use crate::correlate::attribution::{Delayed, Price};

/// What a finding costs: its number, delays, their sum, how many are unfinished, their median and its interval, how sure
/// the requests are that were delayed, what users waited for it, and what they waited in vain.
type PriceRow = (i32, i64, i64, i64, Option<i64>, Option<i64>, Option<i64>, Option<f64>, i64, i64);

/// What users waited, and what for. See `_native.pyi`.
#[pyclass(frozen, module = "conchart._native")]
pub(super) struct Attribution {
    inner: Mutex<Rows>,
}

impl Attribution {
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Rows) -> T + Send) -> T {
        py.detach(|| work(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

#[pymethods]
impl Attribution {
    #[new]
    fn new(
        py: Python<'_>,
        connections: &Bound<'_, PyAny>,
        stretches: &Bound<'_, PyAny>,
        handed: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let mut reading = Reading::default();
        each(connections, |batch| reading.connections(batch))?;
        each(stretches, |batch| reading.stretches(batch))?;
        each(handed, |batch| reading.handed(batch))?;
        Ok(Self { inner: Mutex::new(py.detach(|| reading.done())) })
    }

    fn owners(&self, py: Python<'_>) -> PyResult<Batch> {
        self.with(py, |rows| rows.owners()).map(plain).map_err(failed)
    }

    fn price(
        &self,
        py: Python<'_>,
        delays: &Bound<'_, PyAny>,
        waited: &Bound<'_, PyAny>,
        exchanges: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<PriceRow>> {
        let (mut read, mut waits) = (Vec::new(), Vec::new());
        each(delays, |batch| read_delays(batch, &mut read))?;
        each(waited, |batch| read_waits(batch, &mut waits))?;
        let mut delayed = Delayed::of(read);
        each(exchanges, |batch| self.inner.lock().unwrap_or_else(PoisonError::into_inner).know(batch, &mut delayed))?;
        Ok(self.with(py, |rows| rows.price(&delayed, &waits)).into_iter().map(price_row).collect())
    }

    #[expect(clippy::needless_pass_by_value, reason = "Python's list becomes a vector")]
    fn shared(&self, py: Python<'_>, order: Vec<i32>) -> Vec<(i32, i64)> {
        self.with(py, |rows| rows.shared(&order))
    }

    #[expect(clippy::needless_pass_by_value, reason = "Python's list becomes a set")]
    fn explained(&self, py: Python<'_>, ids: Vec<i32>) -> PyResult<Batch> {
        let ids: HashSet<i32> = ids.iter().copied().collect();
        self.with(py, |rows| rows.explained(&ids)).map(plain).map_err(failed)
    }

    #[expect(clippy::needless_pass_by_value, reason = "Python's list becomes a set")]
    fn paid(&self, py: Python<'_>, ids: Vec<i32>) -> PyResult<Batch> {
        let ids: HashSet<i32> = ids.iter().copied().collect();
        self.with(py, |rows| rows.paid(&ids)).map(plain).map_err(failed)
    }
}

fn price_row((id, price): (i32, Price)) -> PriceRow {
    let (low_ns, high_ns) = price.between_ns.unzip();
    let Price { count, cost_ns, unfinished, each_ns, guessed, critical_ns, vain_ns, .. } = price;
    (id, count, cost_ns, unfinished, each_ns, low_ns, high_ns, guessed, critical_ns, vain_ns)
}
