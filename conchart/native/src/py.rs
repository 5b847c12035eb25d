//! The only interface between Python and the crate: a few functions.
//!
//! The stages run on a thread of their own and never touch Python. Each portion of what they find crosses a bounded
//! channel to the calling thread; that makes Arrow columns of it and sends the emptied portion back; Python inserts the
//! batches that are full (`trace.py`), while more is being found.

mod attribution;
mod logs;
mod places;

use std::collections::HashMap;
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, BufWriter};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::ArrowError;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict};

use crate::annotating::{self, Comments, Unwritten};
use crate::capture::filter::Program;
use crate::capture::{LinkType, Source};
use crate::correlate::linking;
use crate::correlate::packing::{self, Packed};
use crate::correlate::pools;
use crate::correlate::pools::judging::Evidence;
use crate::exchange::{PROTOCOLS, Protocol, Statements};
use crate::flow::Transport;
use crate::packet::{Endpoint, Incomplete};
use crate::pipeline::watching::Watcher;
use crate::pipeline::{self, Compile, Ends, Failure, Limit, Selection};
use crate::portion::{Certainty, Output, Portion, Stopped};
use crate::spilling::{self, Flows};
use crate::tables::{DECLARED, Filled, Tables};

/// Portions that may wait for the calling thread: as many as the stages find while DuckDB takes in a batch.
const QUEUE: usize = 64;
/// Written to a file at once.
const OUTPUT: usize = 1 << 20;
/// How often the calling thread looks for Ctrl-C.
const SIGNALS: Duration = Duration::from_millis(100);
/// When who watches a growing capture is shown it for the first time: what is read by then was not growing.
const FIRST_LOOK: Duration = Duration::from_secs(1);
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
    words: Vec<(&'static str, Vec<&'static str>)>,
    empty: Vec<&'static str>,
}

impl From<Filled> for Batch {
    fn from(Filled { rows, words, empty, .. }: Filled) -> Self {
        Self { rows, words, empty }
    }
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
        stream(py, Box::new(RecordBatchIterator::new([Ok(self.rows.clone())], schema)))
    }

    /// Of each column of words: the words, whose numbers from 1 are in the rows; 0 is none.
    #[getter]
    fn words(&self) -> HashMap<&'static str, Vec<&'static str>> {
        self.words.iter().cloned().collect()
    }

    /// Columns that have no value in any of the rows.
    #[getter]
    fn empty(&self) -> Vec<&'static str> {
        self.empty.clone()
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
#[pyo3(signature = (paths, sink, *, compile_filter, start, end, start_relative, end_relative, count, detailed, explained, statements, keylogs, progress, watch, place_packets=false, steps=Vec::new()))]
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
    detailed: Option<u64>,
    explained: Option<i32>,
    statements: &str,
    keylogs: Vec<PathBuf>,
    progress: Option<Py<PyAny>>,
    watch: Option<Py<PyAny>>,
    place_packets: bool,
    steps: Vec<(u64, i64)>,
) -> PyResult<(u64, Vec<Torn>)> {
    let watch =
        watch.map(|callback| Watch { callback, watcher: Arc::default(), at: Instant::now().checked_add(FIRST_LOOK) });
    let raised = Raised::default();
    let selection = Selection {
        filter: compile_filter.map(|compile| filter(compile, Arc::clone(&raised))),
        start: limit(start, start_relative),
        end: limit(end, end_relative),
        count,
        detailed: detailed.unwrap_or(u64::MAX),
        explained,
        statements: chosen(statements)?,
        place_packets,
        steps,
        keylogs,
        watcher: watch.as_ref().map(|watch| Arc::clone(&watch.watcher)),
    };
    let sources: Vec<Source> = paths.into_iter().map(source).collect();
    let (filled, received) = sync_channel(QUEUE);
    let (back, emptied) = channel();
    let stages = std::thread::Builder::new()
        .name("conchart".into())
        .spawn(move || pipeline::read(&sources, selection, Channel { filled, emptied }))?;

    let delivered = deliver(py, received, &back, &sink, progress.as_ref(), watch);
    let outcome = py.detach(|| stages.join());
    delivered?;
    match outcome {
        Ok(Ok(Ends { frames, torn })) => Ok((frames, torn.iter().map(torn_row).collect())),
        Ok(Err(failure)) => raise(failure, &raised).map(|()| (0, Vec::new())),
        Err(_) => Err(PyRuntimeError::new_err("the native core failed; please report this capture")),
    }
}

fn chosen(statements: &str) -> PyResult<Statements> {
    Ok(match statements {
        "shape" => Statements::Shape,
        "full" => Statements::Full,
        "off" => Statements::Off,
        _ => return Err(PyValueError::new_err(format!("no such choice of statements: {statements}"))),
    })
}

/// A fragmented packet that never became whole: its ends, the frame of its first piece, in how many frames it came,
/// whether it is UDP.
type Torn = (IpAddr, IpAddr, u64, i64, bool);

fn torn_row(incomplete: &Incomplete) -> Torn {
    let Incomplete { opened, source, destination, frames, is_udp } = *incomplete;
    (source, destination, opened.frame, frames, is_udp)
}

/// What Python raised while the stages asked it something.
type Raised = Arc<Mutex<Option<PyErr>>>;

fn limit(ns: Option<i64>, relative: bool) -> Option<Limit> {
    ns.map(|ns| if relative { Limit::After(ns) } else { Limit::At(ns) })
}

fn keep(raised: &Raised, error: PyErr) {
    if let Ok(mut raised) = raised.lock() {
        *raised = Some(error);
    }
}

/// A failure as Python raises it; to be stopped is none, unless Python raised something.
fn raise(failure: Failure, raised: &Raised) -> PyResult<()> {
    match (raised.lock().ok().and_then(|mut raised| raised.take()), failure) {
        (Some(error), _) => Err(error),
        (None, Failure::Stopped) => Ok(()),
        (None, Failure::Capture(error)) => Err(CaptureError::new_err(error.to_string())),
        (None, Failure::Filter(message)) => Err(PyRuntimeError::new_err(message)),
    }
}

/// Who watches.
struct Watch {
    callback: Py<PyAny>,
    watcher: Arc<Watcher>,
    /// When it wants to see something; `None` where it has asked.
    at: Option<Instant>,
}

impl Watch {
    fn ask_in_time(&mut self) {
        if self.at.is_some_and(|at| at <= Instant::now()) {
            self.at = None;
            self.watcher.ask();
        }
    }

    /// Shows what there is so far; learns in how many nanoseconds more is wanted.
    fn show(&mut self, py: Python<'_>, rows: Vec<(&'static str, Batch)>) -> PyResult<()> {
        let pause: u64 = self.callback.call1(py, (rows,))?.extract(py)?;
        self.at = Instant::now().checked_add(Duration::from_nanos(pause));
        Ok(())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.watcher.leave();
    }
}

/// Passes on what is found until the stages are done. Dropping the receiver on an error stops them.
fn deliver(
    py: Python<'_>,
    mut received: Receiver<Portion>,
    back: &Sender<Portion>,
    sink: &Py<PyAny>,
    progress: Option<&Py<PyAny>>,
    mut watch: Option<Watch>,
) -> PyResult<()> {
    let (mut tables, mut so_far) = (Tables::default(), Tables::default());
    let mut over = false;
    while !over {
        if let Some(watch) = &mut watch {
            watch.ask_in_time();
        }
        // A receiver cannot be shared with the closure, only lent to it.
        let (receiver, building, guessed, ended) = (&mut received, &mut tables, &mut so_far, &mut over);
        let (read, shown) = py
            .detach(move || match receiver.recv_timeout(SIGNALS) {
                Ok(mut portion) => {
                    let (read, certainty) = (portion.progress(), portion.certainty());
                    portion.empty_into(if certainty == Certainty::Certain { building } else { guessed })?;
                    // The stages may be done, and want none back.
                    let _ = back.send(portion);
                    let shown = certainty == Certainty::LastSoFar;
                    if shown {
                        building.flush()?;
                        guessed.flush()?;
                    }
                    Ok((read, shown))
                }
                Err(RecvTimeoutError::Timeout) => Ok((None, false)),
                Err(RecvTimeoutError::Disconnected) => {
                    *ended = true;
                    building.flush().map(|()| (None, false))
                }
            })
            .map_err(failed)?;
        py.check_signals()?;
        for full in tables.take() {
            sink.call1(py, (full.table, Batch::from(full)))?;
        }
        if let Some((progress, read)) = progress.zip(read) {
            progress.call1(py, read)?;
        }
        if let Some(watch) = watch.as_mut().filter(|_| shown) {
            watch.show(py, so_far.take().map(|full| (full.table, Batch::from(full))).collect())?;
        }
    }
    Ok(())
}

/// Asks Python (libpcap) for the program of each link type. What Python raises is kept for the caller.
fn filter(compile: Py<PyAny>, raised: Raised) -> Box<Compile> {
    Box::new(move |link: LinkType| {
        Python::attach(|py| {
            let instructions: Vec<(u16, u8, u8, u32)> =
                compile.call1(py, (link.0,)).and_then(|list| list.extract(py)).map_err(|error| {
                    keep(&raised, error);
                    Failure::Stopped
                })?;
            Program::new(&instructions).map_err(|error| Failure::Filter(error.to_string()))
        })
    })
}

/// Copies captures into a pcapng file with comments. See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (captures, output, comments, *, compile_filter, start, end, start_relative, end_relative, count))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments, as of reading")]
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over owned values")]
fn annotate_captures(
    py: Python<'_>,
    captures: Vec<(PathBuf, i64)>,
    output: PathBuf,
    comments: Py<PyAny>,
    compile_filter: Option<Py<PyAny>>,
    start: Option<i64>,
    end: Option<i64>,
    start_relative: bool,
    end_relative: bool,
    count: Option<u64>,
) -> PyResult<Vec<(i64, i64)>> {
    let raised = Raised::default();
    let selection = Selection {
        filter: compile_filter.map(|compile| filter(compile, Arc::clone(&raised))),
        start: limit(start, start_relative),
        end: limit(end, end_relative),
        count,
        ..Selection::default()
    };
    let sources: Vec<(Source, i64)> = captures.into_iter().map(|(path, frames)| (source(path), frames)).collect();
    let mut comment_maker = PythonComments { comments, raised: Arc::clone(&raised) };
    let seen = py.detach(|| {
        let mut into = BufWriter::with_capacity(OUTPUT, File::create(&output)?);
        annotating::annotate(&sources, selection, &mut comment_maker, &mut into)
    });
    match seen {
        Ok(seen) => Ok(seen.iter().map(|tally| (tally.packets, tally.bytes)).collect()),
        Err(Unwritten::Reading(failure)) => raise(failure, &raised).map(|()| Vec::new()),
        Err(Unwritten::Writing(error)) => Err(error.into()),
    }
}

/// A flow, and the number of the file that its packets go into: `tcp` or `udp`, one end, the other end.
type Wanted = (String, IpAddr, u16, IpAddr, u16, usize);

/// Copies the packets of some flows into files. See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (paths, flows, outputs, *, compile_filter, start, end))]
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over owned values")]
fn spill_flows(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    flows: Vec<Wanted>,
    outputs: Vec<PathBuf>,
    compile_filter: Option<Py<PyAny>>,
    start: Option<i64>,
    end: Option<i64>,
) -> PyResult<Vec<Batch>> {
    let raised = Raised::default();
    let selection = Selection {
        filter: compile_filter.map(|compile| filter(compile, Arc::clone(&raised))),
        start: limit(start, false),
        end: limit(end, false),
        ..Selection::default()
    };
    let mut wanted = Flows::default();
    for (transport, one, its_port, other, other_port, file) in flows {
        let transport = if transport == Transport::Udp.name() { Transport::Udp } else { Transport::Tcp };
        let (one, other) = (Endpoint { ip: one, port: its_port }, Endpoint { ip: other, port: other_port });
        wanted.want(transport, one, other, file);
    }
    let sources: Vec<Source> = paths.into_iter().map(source).collect();
    let spilled = py.detach(|| {
        let files = outputs.iter().map(|path| Ok(BufWriter::with_capacity(OUTPUT, File::create(path)?)));
        spilling::spill(&sources, selection, &wanted, files.collect::<io::Result<Vec<_>>>()?)
    });
    match spilled {
        Ok(spilled) => spilled
            .into_iter()
            .map(|frames| {
                let frames: ArrayRef = Arc::new(Int64Array::from(frames));
                let rows = RecordBatch::try_from_iter([("frame", frames)]).map_err(failed)?;
                Ok(plain(rows))
            })
            .collect(),
        Err(Unwritten::Reading(failure)) => raise(failure, &raised).map(|()| Vec::new()),
        Err(Unwritten::Writing(error)) => Err(error.into()),
    }
}

/// Comments that Python makes, some at a time.
struct PythonComments {
    comments: Py<PyAny>,
    raised: Raised,
}

impl PythonComments {
    fn call<T>(&self, ask: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T, Stopped> {
        Python::attach(ask).map_err(|error| {
            keep(&self.raised, error);
            Stopped
        })
    }
}

impl Comments for PythonComments {
    fn more(&mut self) -> Result<Vec<(u64, String)>, Stopped> {
        self.call(|py| self.comments.call0(py)?.extract(py))
    }

    fn pause(&mut self) -> Result<(), Stopped> {
        self.call(|py| py.check_signals())
    }
}

fn source(path: PathBuf) -> Source {
    if path.as_os_str() == "-" { Source::Stdin } else { Source::Path(path) }
}

/// What speaks Arrow, batch by batch.
fn batches(rows: &Bound<'_, PyAny>) -> PyResult<RecordBatchStreamReader> {
    let stream = rows.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
    let pointer = stream.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name holds such a stream (Arrow PyCapsule interface); what it held is moved out of it.
    #[expect(unsafe_code, reason = "the Arrow PyCapsule interface hands over a pointer")]
    unsafe { RecordBatchStreamReader::from_raw(pointer.as_ptr()) }.map_err(failed)
}

/// Hands batches over, by the Arrow PyCapsule interface.
fn stream(py: Python<'_>, batches: Box<dyn RecordBatchReader + Send>) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(batches), STREAM)
}

fn failed(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// A column as Python takes it: name, width, delta, least, planes, valid, texts.
type PackedColumn<'py> = (String, usize, bool, i64, Bound<'py, PyBytes>, Bound<'py, PyBytes>, Option<Vec<String>>);

/// Packs columns for a page. See `_native.pyi`.
#[pyfunction]
fn pack_columns<'py>(py: Python<'py>, rows: &Bound<'py, PyAny>) -> PyResult<(usize, Vec<PackedColumn<'py>>)> {
    let reader = batches(rows)?;
    let names = reader.schema().fields().iter().map(|field| field.name().clone()).collect();
    let to_python = |(name, packed): (String, Packed)| {
        let Packed { width, delta, least, planes, valid, texts } = packed;
        (name, width, delta, least, PyBytes::new(py, &planes), PyBytes::new(py, &valid), texts)
    };
    // DuckDB may answer batch by batch, and looks after the GIL itself.
    let (rows, columns) = packing::pack(names, reader).map_err(failed)?;
    Ok((rows, columns.into_iter().map(to_python).collect()))
}

/// Links the exchanges of proxies' two sides. See `_native.pyi`.
#[pyfunction]
fn link_exchanges(py: Python<'_>, exchanges: &Bound<'_, PyAny>) -> PyResult<Vec<Batch>> {
    let reader = batches(exchanges)?;
    let mut rows = Vec::new();
    for batch in reader {
        linking::rows::read(&batch.map_err(failed)?, &mut rows).map_err(failed)?;
    }
    let mut tables = Tables::default();
    py.detach(|| linking::rows::link_rows(&rows, &mut tables).and_then(|()| tables.flush())).map_err(failed)?;
    Ok(tables.take().map(Batch::from).collect())
}

/// Judges connections, and tells what there was beside each in its pool. See `_native.pyi`.
#[pyfunction]
fn judge_connections(
    py: Python<'_>,
    connections: &Bound<'_, PyAny>,
    phases: &Bound<'_, PyAny>,
    handshakes: &Bound<'_, PyAny>,
    exchanges: &Bound<'_, PyAny>,
    checks: &Bound<'_, PyAny>,
) -> PyResult<(Batch, Batch)> {
    let mut evidence = Evidence::default();
    each(connections, |batch| pools::rows::connections(batch, &mut evidence))?;
    each(phases, |batch| pools::rows::phases(batch, &mut evidence))?;
    each(handshakes, |batch| pools::rows::handshakes(batch, &mut evidence))?;
    each(checks, |batch| pools::rows::checks(batch, &mut evidence))?;
    let mut read = Vec::new();
    each(exchanges, |batch| {
        read.push(batch.clone());
        pools::rows::exchanges(batch, |exchange| evidence.refusal(exchange))
    })?;
    let (judged, openings) = py
        .detach(|| {
            for batch in &read {
                pools::rows::exchanges(batch, |exchange| evidence.exchange(exchange))?;
            }
            let judged = evidence.judged();
            Ok((pools::rows::judged_rows(&judged)?, pools::rows::opening_rows(&judged)?))
        })
        .map_err(failed)?;
    Ok((plain(judged), plain(openings)))
}

/// Takes what speaks Arrow, batch by batch.
fn each(rows: &Bound<'_, PyAny>, mut take: impl FnMut(&RecordBatch) -> Result<(), ArrowError>) -> PyResult<()> {
    for batch in batches(rows)? {
        take(&batch.map_err(failed)?).map_err(failed)?;
    }
    Ok(())
}

/// A batch whose columns are what they say.
const fn plain(rows: RecordBatch) -> Batch {
    Batch { rows, words: Vec::new(), empty: Vec::new() }
}

/// The facts about each protocol. See `_native.pyi`.
#[pyfunction]
fn protocols(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let to_dict = |protocol: &Protocol| {
        let row = PyDict::new(py);
        row.set_item("name", protocol.name)?;
        row.set_item("kind", protocol.kind)?;
        row.set_item("store", protocol.store)?;
        row.set_item("product", protocol.product)?;
        row.set_item("multiplexed", protocol.multiplexed)?;
        row.set_item("never_answered", protocol.never_answered)?;
        row.set_item("opens_session", protocol.opens_session)?;
        Ok(row)
    };
    PROTOCOLS.iter().map(to_dict).collect()
}

/// The tables that this module fills. See `_native.pyi`.
#[pyfunction]
fn declared() -> HashMap<&'static str, Vec<(&'static str, &'static str)>> {
    DECLARED.iter().map(|(table, columns)| (*table, columns.to_vec())).collect()
}

/// How this module was built: its version, and what `build.rs` asked of the compiler.
#[pyfunction]
fn build_facts() -> HashMap<&'static str, &'static str> {
    HashMap::from([
        ("version", env!("CARGO_PKG_VERSION")),
        ("rustc", env!("CONCHART_RUSTC")),
        ("target", env!("CONCHART_TARGET")),
        ("profile", env!("CONCHART_PROFILE")),
        ("opt_level", env!("CONCHART_OPT_LEVEL")),
    ])
}

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::attribution::Attribution;
    #[pymodule_export]
    use super::logs::{pair_lines, read_log};
    #[pymodule_export]
    use super::places::{Crossings, divide_turns, fit_clock, pair_alike};
    #[pymodule_export]
    use super::{
        CaptureError, annotate_captures, build_facts, declared, judge_connections, link_exchanges, pack_columns,
        protocols, read_capture, spill_flows,
    };
}
