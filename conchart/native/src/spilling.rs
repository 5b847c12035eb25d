//! Copies the packets of some flows out of a capture, so that a flow which several captures share can be read in one piece.
//!
//! In: a capture, the flows that are wanted and the file into which the packets of each go. Out: pcapng files, and of each
//! frame in them its number in the capture. Flows are told by transport and both endpoints, whoever of them opened it.
//! Pieces of fragmented packets go into every file: which flow they belong to is known only once they are put together.

use std::collections::HashMap;
use std::io::{self, Write};

use foldhash::fast::RandomState;

use crate::annotating::Unwritten;
use crate::capture::writing::{begin_section, write_frame};
use crate::capture::{CaptureReader, Frame, LinkType, Source};
use crate::flow::Transport;
use crate::packet::{self, Decoded, Endpoint, PacketError};
use crate::pipeline::choice::Chooser;
use crate::pipeline::{Failure, Selection};

/// Packets that come several at a time, inside packets that do.
const MAX_NESTED: u8 = 4;

/// Which flows are wanted.
#[derive(Debug, Default)]
pub struct Flows {
    files: HashMap<(Transport, Endpoint, Endpoint), usize, RandomState>,
}

impl Flows {
    /// Wants a flow, whose packets go into the file of that number.
    pub fn want(&mut self, transport: Transport, one: Endpoint, other: Endpoint, file: usize) {
        self.files.insert((transport, one.min(other), one.max(other)), file);
    }

    fn file(&self, transport: Transport, one: Endpoint, other: Endpoint) -> Option<usize> {
        self.files.get(&(transport, one.min(other), one.max(other))).copied()
    }
}

/// A file that packets go into.
struct Spill<W> {
    into: W,
    link: Option<LinkType>,
    frames: Vec<i64>,
}

impl<W: Write> Spill<W> {
    fn add(&mut self, number: u64, frame: &Frame<'_>) -> io::Result<()> {
        if self.link != Some(frame.link) {
            begin_section(frame.link, &mut self.into)?;
            self.link = Some(frame.link);
        }
        self.frames.push(i64::try_from(number).unwrap_or(i64::MAX));
        write_frame(frame, &[], &mut self.into)
    }
}

/// Copies the packets of the wanted flows, each into one of `files`. Returns the frames of each file; several captures
/// count on.
///
/// # Errors
/// A capture that cannot be opened, a filter that does not compile, output that cannot be written. Damage ends the
/// capture where it ends when it is read.
pub fn spill(
    sources: &[Source],
    selection: Selection,
    flows: &Flows,
    files: impl IntoIterator<Item = impl Write>,
) -> Result<Vec<Vec<i64>>, Unwritten> {
    let mut chooser = Chooser::new(selection);
    let mut spills: Vec<_> = files.into_iter().map(|into| Spill { into, link: None, frames: Vec::new() }).collect();
    let mut places = Vec::new();
    let mut last = 0;
    for source in sources {
        let mut reader = CaptureReader::open(source).map_err(Failure::Capture)?;
        let (before, mut begins) = (last, true);
        while let Ok(Some(frame)) = reader.next() {
            last = before + frame.number;
            let wanted = chooser.wants_dated(&frame, std::mem::take(&mut begins))?;
            if wanted {
                places.clear();
                sort(flows, packet::decode(frame.link, frame.data, frame.original_len), spills.len(), &mut places, 0);
                places.sort_unstable();
                places.dedup();
                for place in &places {
                    if let Some(spill) = spills.get_mut(*place) {
                        spill.add(last, &frame)?;
                    }
                }
            }
        }
    }
    spills
        .into_iter()
        .map(|mut spill| {
            spill.into.flush()?;
            Ok(spill.frames)
        })
        .collect()
}

/// Says into which of so many files a frame goes.
fn sort(flows: &Flows, decoded: Result<Decoded<'_>, PacketError>, files: usize, into: &mut Vec<usize>, depth: u8) {
    match decoded {
        Ok(Decoded::Tcp(segment)) => into.extend(flows.file(Transport::Tcp, segment.source, segment.destination)),
        Ok(Decoded::Udp(datagram)) => into.extend(flows.file(Transport::Udp, datagram.source, datagram.destination)),
        Ok(Decoded::Fragment(_)) => into.extend(0..files),
        Ok(Decoded::Aggregate(parts)) if depth < MAX_NESTED => {
            parts.for_each(|part| sort(flows, part, files, into, depth + 1));
        }
        Ok(Decoded::Aggregate(_) | Decoded::Other) | Err(_) => {}
    }
}
