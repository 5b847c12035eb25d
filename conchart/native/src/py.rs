//! The seam: the only door between Python and the crate, one function wide.
//!
//! The stages run on a thread of their own and never touch Python. Each portion of what they find crosses a bounded
//! channel to the calling thread; that makes Arrow columns of it and sends the emptied portion back; Python inserts the
//! batches that are full (`trace.py`), while more is being found.

use std::ffi::CStr;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_schema::ArrowError;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::capture::filter::Program;
use crate::capture::{LinkType, Source};
use crate::linking;
use crate::pipeline::{self, Compile, Failure, Limit, Selection};
use crate::portion::{Output, Portion, Stopped};
use crate::tables::Tables;

/// Portions that may wait for the calling thread: as many as the stages find while DuckDB takes in a batch.
const QUEUE: usize = 64;
/// How often the calling thread looks for Ctrl-C.
const SIGNALS: Duration = Duration::from_millis(100);
/// The name that the Arrow PyCapsule interface prescribes.
const STREAM: &CStr = c"arrow_array_stream";

/// Millions of small short-lived values: a connection costs dozens of allocations. Version 2: where one thread takes memory
/// and another gives it back, version 3 is no faster and holds an eighth more.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

create_exception!(_native, CaptureError, PyException, "Nothing could be read from a capture; the text is complete.");

/// One batch of rows of one table.
#[pyclass(frozen, module = "conchart._native")]
struct Batch {
    rows: RecordBatch,
}

#[pymethods]
impl Batch {
    /// The Arrow PyCapsule interface; `requested_schema` is not needed: consumers cast.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let schema = self.rows.schema();
        let reader = RecordBatchIterator::new([Ok(self.rows.clone())], schema);
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), STREAM)
    }

    fn __len__(&self) -> usize {
        self.rows.num_rows()
    }
}

/// The stages' end of both channels. A portion that comes back has its room already: memory that one thread takes and
/// another gives back is slow to be found again.
struct Channel {
    filled: SyncSender<Portion>,
    emptied: Receiver<Portion>,
}

impl Output for Channel {
    fn take(&mut self, portion: Portion) -> Result<Portion, Stopped> {
        self.filled.send(portion).map_err(|_| Stopped)?;
        Ok(self.emptied.try_recv().unwrap_or_default())
    }
}

/// Reads whole captures. See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (paths, sink, *, compile_filter, start, end, start_relative, end_relative, count, packets, keylogs, progress))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of the one door")]
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over owned values")]
fn read_capture(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    sink: Py<PyAny>,
    compile_filter: Option<Py<PyAny>>,
    start: Option<i64>,
    end: Option<i64>,
    start_relative: bool,
    end_relative: bool,
    count: Option<u64>,
    packets: bool,
    keylogs: Vec<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<()> {
    let bound = |ns, relative| if relative { Limit::After(ns) } else { Limit::At(ns) };
    let raised = Arc::new(Mutex::new(None));
    let selection = Selection {
        filter: compile_filter.map(|compile| filter(compile, Arc::clone(&raised))),
        start: start.map(|ns| bound(ns, start_relative)),
        end: end.map(|ns| bound(ns, end_relative)),
        count,
        packets,
        keylogs,
    };
    let sources: Vec<Source> = paths.into_iter().map(source).collect();
    let (filled, received) = sync_channel(QUEUE);
    let (back, emptied) = channel();
    let stages = std::thread::Builder::new()
        .name("conchart".into())
        .spawn(move || pipeline::read(&sources, selection, Channel { filled, emptied }))?;

    let delivered = deliver(py, received, &back, &sink, progress.as_ref());
    let outcome = py.detach(|| stages.join());
    delivered?;
    if let Some(error) = raised.lock().ok().and_then(|mut raised| raised.take()) {
        return Err(error);
    }
    match outcome {
        Ok(Ok(()) | Err(Failure::Stopped)) => Ok(()),
        Ok(Err(Failure::Capture(error))) => Err(CaptureError::new_err(error.to_string())),
        Ok(Err(Failure::Filter(message))) => Err(PyRuntimeError::new_err(message)),
        Err(_) => Err(PyRuntimeError::new_err("the native core failed; please report this capture")),
    }
}

/// Passes on what is found until the stages are done. Dropping the receiver on an error stops them.
fn deliver(
    py: Python<'_>,
    mut received: Receiver<Portion>,
    back: &Sender<Portion>,
    sink: &Py<PyAny>,
    progress: Option<&Py<PyAny>>,
) -> PyResult<()> {
    let mut tables = Tables::default();
    let mut over = false;
    while !over {
        // A receiver cannot be shared with the closure, only lent to it.
        let (receiver, building, ended) = (&mut received, &mut tables, &mut over);
        let read = py
            .detach(move || match receiver.recv_timeout(SIGNALS) {
                Ok(mut portion) => {
                    let read = portion.progress();
                    portion.empty_into(building)?;
                    // The stages may be done, and want none back.
                    let _ = back.send(portion);
                    Ok(read)
                }
                Err(RecvTimeoutError::Timeout) => Ok(None),
                Err(RecvTimeoutError::Disconnected) => {
                    *ended = true;
                    building.flush().map(|()| None)
                }
            })
            .map_err(|error: ArrowError| PyRuntimeError::new_err(error.to_string()))?;
        py.check_signals()?;
        for (table, rows) in tables.take() {
            sink.call1(py, (table, Batch { rows }))?;
        }
        if let Some((progress, read)) = progress.zip(read) {
            progress.call1(py, read)?;
        }
    }
    Ok(())
}

/// Asks Python (libpcap) for the program of each link type. What Python raises is kept for the caller.
fn filter(compile: Py<PyAny>, raised: Arc<Mutex<Option<PyErr>>>) -> Box<Compile> {
    Box::new(move |link: LinkType| {
        Python::attach(|py| {
            let instructions: Vec<(u16, u8, u8, u32)> =
                compile.call1(py, (link.0,)).and_then(|list| list.extract(py)).map_err(|error| {
                    if let Ok(mut raised) = raised.lock() {
                        *raised = Some(error);
                    }
                    Failure::Stopped
                })?;
            Program::new(&instructions).map_err(|error| Failure::Filter(error.to_string()))
        })
    })
}

fn source(path: PathBuf) -> Source {
    if path.as_os_str() == "-" { Source::Stdin } else { Source::Path(path) }
}

/// Links the exchanges of proxies' two sides. See `_native.pyi`.
#[pyfunction]
fn link_exchanges(py: Python<'_>, exchanges: &Bound<'_, PyAny>) -> PyResult<Vec<Batch>> {
    let stream = exchanges.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
    let pointer = stream.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    let failed = |error: ArrowError| PyRuntimeError::new_err(error.to_string());
    // SAFETY: a capsule of this name holds such a stream (Arrow PyCapsule interface); what it held is moved out of it.
    #[expect(unsafe_code, reason = "the Arrow PyCapsule interface hands over a pointer")]
    let reader = unsafe { RecordBatchStreamReader::from_raw(pointer.as_ptr()) }.map_err(failed)?;
    let mut rows = Vec::new();
    for batch in reader {
        linking::rows::read(&batch.map_err(failed)?, &mut rows).map_err(failed)?;
    }
    let mut tables = Tables::default();
    py.detach(|| linking::rows::link_rows(&rows, &mut tables).and_then(|()| tables.flush())).map_err(failed)?;
    Ok(tables.take().map(|(_, rows)| Batch { rows }).collect())
}

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::{CaptureError, link_exchanges, read_capture};
}
