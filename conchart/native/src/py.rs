//! The seam: the only door between Python and the crate, one function wide.
//!
//! The stages run on a thread of their own and never touch Python; what they find crosses a bounded channel to the
//! calling thread, which makes tables of it and gives those to Python while more is being found.

use std::ffi::CStr;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::capture::filter::Program;
use crate::capture::{LinkType, Source};
use crate::facts::{Facts, Output};
use crate::pipeline::{self, Compile, Failure, Limit, Selection};
use crate::tables::{Rows, Sink, Stopped};

/// Portions of facts that may wait for the calling thread.
const QUEUE: usize = 24;
/// How often the calling thread looks for Ctrl-C.
const SIGNALS: Duration = Duration::from_millis(100);
/// The name that the Arrow PyCapsule interface prescribes.
const STREAM: &CStr = c"arrow_array_stream";

/// Millions of small short-lived values: a connection costs dozens of allocations.
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

enum Message {
    Facts(Facts),
    Progress(u64, u64),
}

/// The stages' end of the channel.
struct Channel(SyncSender<Message>);

impl Output for Channel {
    fn facts(&mut self, facts: Facts) -> Result<(), Stopped> {
        self.0.send(Message::Facts(facts)).map_err(|_| Stopped)
    }

    fn progress(&mut self, bytes: u64, frames: u64) -> Result<(), Stopped> {
        self.0.send(Message::Progress(bytes, frames)).map_err(|_| Stopped)
    }
}

/// Finished batches on their way to Python.
#[derive(Default)]
struct Finished(Vec<(&'static str, RecordBatch)>);

impl Sink for Finished {
    fn batch(&mut self, table: &'static str, batch: RecordBatch) -> Result<(), Stopped> {
        self.0.push((table, batch));
        Ok(())
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
    let (sender, receiver) = sync_channel(QUEUE);
    let stages = std::thread::Builder::new()
        .name("conchart".into())
        .spawn(move || pipeline::read(&sources, selection, Channel(sender)))?;

    let delivered = deliver(py, receiver, &sink, progress.as_ref());
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
    receiver: Receiver<Message>,
    sink: &Py<PyAny>,
    progress: Option<&Py<PyAny>>,
) -> PyResult<()> {
    let receiver = Mutex::new(receiver);
    let mut tables = Rows::new(Finished::default());
    let mut over = false;
    while !over {
        let mut read = None;
        py.detach(|| {
            let message =
                receiver.lock().map_or(Err(RecvTimeoutError::Disconnected), |channel| channel.recv_timeout(SIGNALS));
            match message {
                Ok(Message::Facts(facts)) => facts.write(&mut tables),
                Ok(Message::Progress(bytes, frames)) => {
                    read = Some((bytes, frames));
                    Ok(())
                }
                Err(RecvTimeoutError::Timeout) => Ok(()),
                Err(RecvTimeoutError::Disconnected) => {
                    over = true;
                    tables.flush()
                }
            }
        })
        .map_err(|Stopped| PyRuntimeError::new_err("the native core made a table that does not fit its schema"))?;
        py.check_signals()?;
        for (table, rows) in tables.sink().0.drain(..) {
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
    Box::new(move |link: LinkType, snap_length: u32| {
        Python::attach(|py| {
            let instructions: Vec<(u16, u8, u8, u32)> =
                compile.call1(py, (link.0, snap_length)).and_then(|list| list.extract(py)).map_err(|error| {
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

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::{CaptureError, read_capture};
}
