//! Reads qlog with another implementation's types, and writes what it understood.
//!
//! In: a file, `.qlog` or `.sqlog`. Out: its document, or one event per line of a sequence, as JSON, to standard output: a
//! field that the reader does not know is not there. An unreadable file ends it with an error.

use std::error::Error;
use std::io::{BufWriter, Write, stdout};

use qlog::Qlog;
use qlog::reader::{Event, QlogSeqReader};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: conchart-qlog-reader FILE")?;
    let mut out = BufWriter::new(stdout());
    if path.ends_with(".sqlog") {
        let reader = QlogSeqReader::with_file(&path)?;
        writeln!(out, "{}", serde_json::to_string(&reader.qlog)?)?;
        for event in reader {
            // What is no event of quiche's is read as any JSON.
            let Event::Qlog(event) = event else { return Err(format!("{path}: unknown: {event:?}").into()) };
            writeln!(out, "{}", serde_json::to_string(&event)?)?;
        }
    } else {
        let document: Qlog = serde_json::from_str(&std::fs::read_to_string(&path)?)?;
        writeln!(out, "{}", serde_json::to_string(&document)?)?;
    }
    Ok(out.flush()?)
}
