//! Reads captures into Arrow batches and drops them: the core's work without Python, for callgrind to count.
//!
//! In: of how many frames every packet, record and message is written down, and paths of captures. Out: the rows of each
//! table, on standard output. Everything happens on one thread, so that two runs execute the same instructions. `tests/cost/instructions.py` runs it under valgrind, which
//! collects inside `counted` only; `tests/benchmarks/flame.py` has perf sample it.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;

use conchart_native::{Failure, Output, Portion, Selection, Source, Stopped, Tables, read};

/// As in the extension module, whose allocations are part of what reading costs. (With that feature, the crate has it.)
#[cfg(not(feature = "extension-module"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Makes rows of every portion, as the calling thread of Python does, and counts them.
#[derive(Default)]
struct Counting {
    tables: Tables,
    rows: BTreeMap<&'static str, usize>,
}

impl Counting {
    fn count(&mut self) {
        for filled in self.tables.take() {
            *self.rows.entry(filled.table).or_default() += filled.rows.num_rows();
        }
    }
}

impl Output for &mut Counting {
    fn take(&mut self, mut portion: Portion) -> Result<Portion, Stopped> {
        portion.empty_into(&mut self.tables).map_err(|_| Stopped)?;
        self.count();
        Ok(portion)
    }
}

/// What callgrind counts.
#[inline(never)]
fn counted(sources: &[Source], detailed: u64, counting: &mut Counting) -> Result<(), Failure> {
    read(sources, Selection { detailed, ..Selection::default() }, &mut *counting)?;
    counting.tables.flush().map_err(|_| Failure::Stopped)?;
    counting.count();
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args_os().skip(1);
    let detailed = words.next().and_then(|word| word.to_str()?.parse().ok()).ok_or("usage: read DETAILED CAPTURE…")?;
    let sources: Vec<Source> = words.map(|path| Source::Path(path.into())).collect();
    let mut counting = Counting::default();
    counted(&sources, detailed, &mut counting).map_err(|failure| format!("{failure:?}"))?;
    let mut text = String::new();
    for (table, rows) in &counting.rows {
        writeln!(text, "{table} {rows}")?;
    }
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}
