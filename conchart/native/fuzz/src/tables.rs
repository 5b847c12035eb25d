//! A capture, read into the tables as Python gets them, and what is true of them whatever was in it.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt8Type};
use conchart_native::{Failure, Filled, Output, Portion, Selection, Source, Stopped, Tables, read};

use crate::memory::bounded;

/// The longest record a reader keeps is 16 MiB, and it may come compressed.
const MOST_MEMORY: usize = 64 << 20;

/// One stretch of whole numbers, absent ones as `None`.
type Column = Vec<Option<i64>>;

/// Rows of one table, numbers only. (Text is known to be valid: Arrow was given `&str`.)
#[derive(Default)]
struct Table {
    columns: HashMap<String, Column>,
    rows: usize,
}

#[derive(Default)]
struct Numbers {
    tables: HashMap<&'static str, Table>,
    /// The longest list of notes.
    notes: usize,
}

impl Numbers {
    fn add(&mut self, full: &Filled) {
        let batch = &full.rows;
        let table = self.tables.entry(full.table).or_default();
        table.rows += batch.num_rows();
        for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
            let values: Column = if let Some(numbers) = column.as_primitive_opt::<Int64Type>() {
                numbers.iter().collect()
            } else if let Some(numbers) = column.as_primitive_opt::<Int32Type>() {
                numbers.iter().map(|number| number.map(i64::from)).collect()
            } else {
                if field.name() == "mark" {
                    let words = full.words.iter().find(|(name, _)| name == field.name()).map(|(_, words)| words);
                    let copy = words.and_then(|words| words.iter().position(|&word| word == "duplicate"));
                    let codes = column.as_primitive::<UInt8Type>().values().iter();
                    let copies =
                        codes.map(|&code| Some(i64::from(copy.is_some_and(|copy| usize::from(code) == copy + 1))));
                    table.columns.entry("is_copy".to_owned()).or_default().extend(copies);
                } else if let Some(lists) = column.as_list_opt::<i32>() {
                    let longest = (0..lists.len()).map(|row| lists.value(row).len()).max();
                    self.notes = self.notes.max(longest.unwrap_or(0));
                }
                continue;
            };
            table.columns.entry(field.name().clone()).or_default().extend(values);
        }
    }
}

#[derive(Default)]
struct Collected {
    tables: Tables,
    numbers: Numbers,
}

impl Collected {
    fn take_finished(&mut self) {
        for full in self.tables.take() {
            self.numbers.add(&full);
        }
    }
}

impl Output for &mut Collected {
    fn take(&mut self, mut portion: Portion) -> Result<Portion, Stopped> {
        portion.empty_into(&mut self.tables).expect("a table that fits its schema");
        self.take_finished();
        Ok(portion)
    }
}

/// Where captures are put to be read; the directory is the caller's, who removes it.
fn place(name: &str) -> PathBuf {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE
        .get_or_init(|| std::env::temp_dir().join(format!("conchart-fuzz-{}", std::process::id())))
        .with_extension(name)
}

/// Reads a capture, with the key log if there is one, and checks what comes out.
///
/// # Panics
/// Where a law does not hold.
pub fn check_capture(capture: &[u8], key_log: Option<&[u8]>) {
    let path = place("pcap");
    fs::write(&path, capture).expect("a directory for temporary files");
    let keylogs = key_log.map(|text| {
        let path = place("log");
        fs::write(&path, text).expect("a directory for temporary files");
        path
    });
    let selection = Selection { detailed: u64::MAX, keylogs: keylogs.into_iter().collect(), ..Selection::default() };
    let mut collected = Collected::default();
    match bounded(MOST_MEMORY, || read(&[Source::Path(path)], selection, &mut collected)) {
        Ok(_) => {
            collected.tables.flush().expect("a table that fits its schema");
            collected.take_finished();
            // Wireshark also numbers blocks that are no packet; the shortest record has 12 bytes.
            check(&collected.numbers, i64::try_from(capture.len()).unwrap_or(i64::MAX) / 12);
        }
        Err(Failure::Capture(error)) => drop(error.to_string()),
        Err(failure) => panic!("{failure:?}"),
    }
}

impl Table {
    fn column(&self, name: &str) -> &[Option<i64>] {
        self.columns.get(name).map_or(&[], Vec::as_slice)
    }
    /// A column that is never absent.
    fn values(&self, name: &str) -> impl Iterator<Item = i64> {
        self.column(name).iter().map(move |value| value.unwrap_or_else(|| panic!("{name} is absent")))
    }
    fn matching(&self, fits: impl Fn(&str) -> bool) -> impl Iterator<Item = (&String, i64)> {
        let columns = self.columns.iter().filter(move |(name, _)| fits(name));
        columns.flat_map(|(name, column)| column.iter().flatten().map(move |&value| (name, value)))
    }
}

/// What is known of a connection, and how far its phases have come.
struct Stream {
    closed: i64,
    charged: i64,
    exchanges: i64,
    handshakes: i64,
}

/// `frames`: as many as there can be.
fn check(found: &Numbers, frames: i64) {
    let none = Table::default();
    let table = |name: &str| found.tables.get(name).unwrap_or(&none);
    assert!(found.notes <= 100, "{} notes", found.notes);
    let captures = table("captures");
    assert_eq!(captures.rows, 1);
    let one = |name: &str| captures.values(name).next().unwrap_or_default();
    let (packets, selected) = (one("packets"), one("selected"));
    assert_eq!(packets, selected);
    assert!(one("undecodable") + one("other") + one("duplicates") <= packets + table("packets").rows as i64);
    let Some((first, last)) = captures.column("first_at")[0].zip(captures.column("last_at")[0]) else {
        assert_eq!((packets, found.tables.len()), (0, 1));
        return;
    };
    let seen = first..=last;

    for (name, table) in &found.tables {
        let others = |name: &str| name != "dropped" && name != "first_at" && name != "last_at";
        for (column, value) in table.matching(|column| column.ends_with("_at") && others(column)) {
            assert!(seen.contains(&value), "{name}.{column} is {value}, not within {seen:?}");
        }
        for (column, value) in table.matching(|column| !column.ends_with("_at") && others(column)) {
            assert!(value >= 0, "{name}.{column} is {value}");
            let frame = column == "frame" || column.ends_with("_frame");
            assert!(!frame || (1..=frames).contains(&value), "{name}.{column} is {value} of {frames} frames");
        }
    }

    let mut streams = streams(table("connections"));
    for name in ["handshakes", "exchanges"] {
        let (of, numbers) = (table(name).values("stream"), table(name).values("number"));
        for (stream, number) in of.zip(numbers) {
            let stream = streams.get_mut(&stream).unwrap_or_else(|| panic!("{name} of no stream {stream}"));
            let next = if name == "exchanges" { &mut stream.exchanges } else { &mut stream.handshakes };
            assert_eq!(number, *next, "{name} are not numbered one after the other");
            *next += 1;
        }
    }
    let phases = table("phases");
    let bounds = phases.values("start_at").zip(phases.values("end_at"));
    for ((stream, (start, end)), exchange) in phases.values("stream").zip(bounds).zip(phases.column("exchange")) {
        let of = streams.get_mut(&stream).unwrap_or_else(|| panic!("a phase of no stream {stream}"));
        assert_eq!(start, of.charged, "phases of stream {stream} do not touch");
        assert!(end > start, "a phase of stream {stream} is empty");
        of.charged = end;
        assert!(exchange.is_none_or(|number| number < of.exchanges), "a phase of no exchange {exchange:?}");
    }
    let messages = table("exchange_messages");
    for (stream, exchange) in messages.values("stream").zip(messages.values("exchange")) {
        let of = streams.get(&stream).unwrap_or_else(|| panic!("a message of no stream {stream}"));
        assert!(exchange < of.exchanges, "a message of no exchange {exchange}");
    }
    for (number, stream) in &streams {
        assert_eq!(stream.charged, stream.closed, "phases of stream {number} do not end with it");
    }
    let packets = table("packets");
    let mut latest = HashMap::new();
    for (stream, frame) in packets.values("stream").zip(packets.values("frame")) {
        // Those of a connection come in order; others may come first, while nobody knows yet who is its server.
        assert!(latest.insert(stream, frame) < Some(frame), "packets of stream {stream} are out of order");
    }
    for ((stream, at), copy) in packets.values("stream").zip(packets.values("seen_at")).zip(packets.values("is_copy")) {
        let of = streams.get(&stream).unwrap_or_else(|| panic!("a packet of no stream {stream}"));
        // A clock that was set back does not take back what was charged.
        assert!(copy == 1 || at <= of.closed, "a packet of stream {stream} at {at}, after {}", of.closed);
    }
}

fn streams(connections: &Table) -> HashMap<i64, Stream> {
    let mut streams = HashMap::new();
    let frames = connections.values("first_frame").zip(connections.values("last_frame"));
    let times = connections.values("opened_at").zip(connections.values("closed_at"));
    for ((stream, (opened, closed)), (first, last)) in connections.values("stream").zip(times).zip(frames) {
        assert!(opened <= closed && first <= last, "stream {stream} ends before it begins");
        let new = Stream { closed, charged: opened, exchanges: 0, handshakes: 0 };
        assert!(streams.insert(stream, new).is_none(), "two connections are stream {stream}");
    }
    for name in ["syn_at", "syn_ack_at", "ack_at"] {
        for (at, stream) in connections.column(name).iter().zip(connections.values("stream")) {
            assert!(at.is_none_or(|at| at <= streams[&stream].closed), "{name} of stream {stream}");
        }
    }
    streams
}
