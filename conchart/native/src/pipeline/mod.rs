//! Drives the stages: frames in, facts out, one pass, state only for open flows.

pub(crate) mod choice;
mod clock_steps;
mod datagrams;
mod moves;
mod segments;
mod sides;
mod syn;
mod traffic;
pub mod watching;

use std::path::PathBuf;
use std::sync::Arc;

use crate::capture::error::CaptureError;
use crate::capture::secrets::Gathered;
use crate::capture::{CaptureReader, Frame, LinkType, Source};
use crate::exchange::Statements;
use crate::flow::{Flow, Routes, Table, Transport};
use crate::notes::About;
use crate::owners::PacketOwners;
use crate::packet::{self, Decoded, Endpoint, Fragment, Fragments, Incomplete, PacketError, Placed};
use crate::portion::{Outbox, Output, Stopped};
use crate::stream::{Arrival, BySide, Moment, Side};
use crate::tally::Tally;
use crate::tls::Transcript;
use choice::Chooser;
pub use choice::{Compile, Limit};
use clock_steps::Followed;
use sides::Sides;
use traffic::{Packets, Traffic};
use watching::Watcher;

/// Flows that may be open at once. Of more, the longest silent ones become rows early.
const MAX_OPEN: usize = 1 << 18;
/// Captured bytes that all flows together may hold back for reordering.
const MAX_WAITING_BYTES: usize = 256 << 20;
/// Packets in pieces, or several at a time, inside packets that are.
const MAX_FRAGMENTED: u8 = 4;
/// Fragmented packets that are told of.
const MAX_TORN: usize = 4_096;
/// Frames between two reports of progress.
const PROGRESS_FRAMES: u64 = 1 << 16;

/// What to read of a capture.
#[derive(Default)]
pub struct Selection {
    pub filter: Option<Box<Compile>>,
    /// First instant wanted.
    pub start: Option<Limit>,
    /// First instant after it that is not wanted.
    pub end: Option<Limit>,
    /// Stop after so many selected frames.
    pub count: Option<u64>,
    /// Of so many frames, write down all packets, TLS records and messages; then only packets that tell of trouble.
    pub detailed: u64,
    /// The stream of which all is written down, with the bytes of its segments and handshake messages.
    pub explained: Option<i32>,
    /// Write down of every packet what tells it from others: other captures may hold it, too.
    pub place_packets: bool,
    /// Where its clock was set: from which frame on it shows how much more. That is taken away.
    pub steps: Vec<(u64, i64)>,
    /// Key logs with the secrets of TLS connections.
    pub keylogs: Vec<PathBuf>,
    /// How much is told of statements and keys.
    pub statements: Statements,
    /// Who wants to see now and then what there is so far.
    pub watcher: Option<Arc<Watcher>>,
}

/// Why a run ended early.
#[derive(Debug)]
pub enum Failure {
    Capture(CaptureError),
    /// The filter does not compile; libpcap's words.
    Filter(String),
    /// The receiving end wants no more.
    Stopped,
}

impl From<Stopped> for Failure {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

/// What lies at the ends of a run: whoever reads the captures before and after it needs that.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Ends {
    /// Number of the last frame.
    pub frames: u64,
    /// Fragmented packets that never became whole; the first [`MAX_TORN`].
    pub torn: Vec<Incomplete>,
}

/// Reads capture files, in order, into tables.
///
/// A file that starts before the previous one ended is another capture of the same time: its connections are kept
/// apart. Otherwise connections continue from file to file (`tcpdump -C`).
///
/// # Errors
/// [`Failure`]. Damage after the first frame of a file is not an error but a note in `captures`.
pub fn read(sources: &[Source], mut selection: Selection, output: impl Output) -> Result<Ends, Failure> {
    let secrets = Gathered::from(&selection.keylogs, sources).map_err(Failure::Capture)?;
    let mut run = Run {
        out: Outbox::new(output),
        watcher: selection.watcher.take(),
        statements: selection.statements,
        flows: Table::new(MAX_OPEN),
        routes: Routes::default(),
        fragments: Fragments::default(),
        chooser: Chooser::new(selection),
        frames: 0,
        shown: 0,
        unshown: 0,
        bytes_before: 0,
        latest: i64::MIN,
        ahead: 0,
        begun_ahead: 0,
        waiting_bytes: 0,
        sides: Sides::default(),
        strays: 0,
        owner: None,
        tally: Tally::default(),
        done: Vec::new(),
        torn: Vec::new(),
        secrets,
    };
    for (capture, source) in sources.iter().enumerate() {
        run.file(capture, source)?;
    }
    run.end_all()?;
    if let Some(first) = run.done.first_mut() {
        first.notes.extend(run.secrets.notes_on_captures());
    }
    for mut tally in run.done {
        tally.conclude();
        run.out.capture(tally)?;
    }
    run.out.flush()?;
    Ok(Ends { frames: run.frames, torn: run.torn })
}

struct Run<O> {
    out: Outbox<O>,
    watcher: Option<Arc<Watcher>>,
    statements: Statements,
    flows: Table<Traffic>,
    routes: Routes,
    fragments: Fragments,
    chooser: Chooser,
    /// Number of the latest frame; several files count on.
    frames: u64,
    /// Those of which the watcher knows.
    shown: u64,
    /// How much has come since it asked.
    unshown: u32,
    /// Bytes of the files that are done.
    bytes_before: u64,
    latest: i64,
    /// How far the date of the latest frame lies before where it stands on the axis, and that of the first of its file.
    ahead: i64,
    begun_ahead: i64,
    waiting_bytes: usize,
    sides: Sides,
    strays: u64,
    /// Who owns the latest frame, as its comments tell, until its flow has taken it.
    owner: Option<Box<PacketOwners>>,
    tally: Tally,
    /// The files before.
    done: Vec<Tally>,
    torn: Vec<Incomplete>,
    secrets: Gathered,
}

impl<O: Output> Run<O> {
    fn file(&mut self, place: usize, source: &Source) -> Result<(), Failure> {
        let capture = i32::try_from(place).unwrap_or(i32::MAX);
        self.tally = Tally { capture, path: source.name(), first_frame: self.frames + 1, ..Tally::default() };
        self.tally.notes = std::mem::take(&mut self.secrets.notes);
        let mut reader = CaptureReader::open(source).map_err(Failure::Capture)?;
        reader.collect_secrets(self.secrets.collector(place, reader.can_be_read_again()));
        loop {
            if self.is_idle(&reader)? {
                continue;
            }
            match reader.next() {
                Ok(Some(frame)) => {
                    if !self.frame(&frame)? {
                        break;
                    }
                }
                Ok(None) => {
                    self.secrets.was_read(place);
                    break;
                }
                Err(damage) if self.tally.packets > 0 => {
                    self.tally.truncated = true;
                    self.tally.note_error(About::Damage, &damage);
                    break;
                }
                Err(error) => return Err(Failure::Capture(error)),
            }
            if self.frames.is_multiple_of(PROGRESS_FRAMES) {
                let read = self.bytes_before + reader.bytes_read();
                self.out.progress(read, self.frames)?;
            }
        }
        self.bytes_before += reader.bytes_read();
        self.out.progress(self.bytes_before, self.frames)?;
        if let Some((link, frame)) = self.tally.unsupported {
            let error = CaptureError::UnsupportedLink { name: self.tally.path.clone(), link, frame };
            if self.tally.decoded == 0 && self.tally.other == 0 {
                return Err(Failure::Capture(error));
            }
            self.tally.note_error(About::LinkType, &error);
        }
        // A filter that is wrong is so for a capture without packets, too.
        self.chooser.program(reader.facts().link_types.first().copied().unwrap_or(LinkType::ETHERNET))?;
        self.end_file(&reader);
        Ok(())
    }

    /// Takes one frame; false when no more are wanted.
    fn frame(&mut self, frame: &Frame<'_>) -> Result<bool, Failure> {
        self.frames = self.tally.first_frame - 1 + frame.number;
        let begins_file = self.tally.packets == 0;
        let frame = &Frame { at: self.chooser.unset(frame.at, self.frames), ..*frame };
        let Followed { at, ahead, step } = self.chooser.clock.follow(frame.at, begins_file);
        if begins_file {
            self.begun_ahead = ahead;
        }
        if ahead == self.begun_ahead {
            self.tally.lasts(frame.at);
        }
        self.ahead = ahead;
        let frame = &Frame { at, ..*frame };
        if let Some(step) = step {
            self.tally.notes.add(About::ClockStep, || step.describe(self.frames));
        }
        if begins_file && frame.at < self.latest {
            self.end_all()?;
        }
        self.tally.saw(frame);
        if !self.chooser.wants(frame, ahead)? {
            return Ok(true);
        }
        self.tally.selected += 1;
        if frame.at + 1_000_000_000 < self.latest && self.tally.selected > 1 {
            self.tally.backward.get_or_insert(self.frames);
        }
        self.latest = self.latest.max(frame.at);
        while let Some(flow) = self.flows.expired(frame.at, Traffic::lingers_until) {
            self.end(flow)?;
        }
        while let Some(index) = self.flows.settled(frame.at) {
            if let Some(flow) = self.flows.flow(index) {
                flow.content.settle(flow.stream, &mut self.out)?;
            }
        }
        while let Some(flow) = self.flows.silent(frame.at) {
            self.end(flow)?;
        }
        let seen = Arrival { at: frame.at, frame: self.frames };
        if frame.comments.is_some() || self.owner.is_some() {
            self.owner = frame.comments.and_then(PacketOwners::of).map(Box::new);
        }
        self.decoded(packet::decode(frame.link, frame.data, frame.original_len), seen, 1, 0)?;
        Ok(!self.chooser.is_full())
    }

    /// Takes what came in `frames` frames, `depth` times put together.
    #[inline]
    fn decoded(
        &mut self,
        decoded: Result<Decoded<'_>, PacketError>,
        seen: Arrival,
        frames: i64,
        depth: u8,
    ) -> Result<(), Failure> {
        match decoded {
            Ok(Decoded::Tcp(segment)) => {
                self.tally.decoded += frames;
                if segment.beyond_frame > 0 {
                    self.tally.beyond_frame(seen.frame, segment.beyond_frame);
                }
                self.segment(&segment, seen)?;
            }
            Ok(Decoded::Udp(datagram)) => {
                self.tally.decoded += frames;
                self.datagram(&datagram, seen)?;
            }
            Ok(Decoded::Fragment(fragment)) if depth < MAX_FRAGMENTED => self.fragment(&fragment, seen, depth)?,
            Ok(Decoded::Aggregate(parts)) if depth < MAX_FRAGMENTED => {
                // The frame is counted once, for the first of them.
                let counts = std::iter::once(frames).chain(std::iter::repeat(0));
                for (part, frames) in parts.zip(counts) {
                    self.decoded(part, seen, frames, depth + 1)?;
                }
            }
            Ok(Decoded::Other | Decoded::Fragment(_) | Decoded::Aggregate(_)) => self.tally.other += frames,
            Err(PacketError::UnsupportedLink(link)) => {
                self.tally.undecodable += frames;
                self.tally.unsupported.get_or_insert((link, self.frames));
            }
            Err(error) => {
                self.tally.undecodable += frames;
                let frame = self.frames;
                self.tally.notes.add(About::Unreadable(error.layer()), || format!("frame {frame}: {error}"));
            }
        }
        Ok(())
    }

    /// Keeps a fragment, or takes the packet that it completes.
    #[cold]
    fn fragment(&mut self, fragment: &Fragment<'_>, seen: Arrival, depth: u8) -> Result<(), Failure> {
        while let Some(incomplete) = self.fragments.expired(seen.at) {
            self.count_incomplete(incomplete);
        }
        match self.fragments.add(fragment, seen) {
            Placed::Waiting => Ok(()),
            Placed::Copy => {
                self.tally.duplicates += 1;
                Ok(())
            }
            Placed::Whole(whole) => self.decoded(whole.decode(), seen, whole.frames, depth + 1),
        }
    }

    /// Counts the frames of a packet that never became whole, in the capture where it began.
    fn count_incomplete(&mut self, incomplete: Incomplete) {
        if self.torn.len() < MAX_TORN {
            self.torn.push(incomplete);
        }
        let mut tallies = std::iter::once(&mut self.tally).chain(self.done.iter_mut().rev());
        let Some(tally) = tallies.find(|tally| (1..=incomplete.opened.frame).contains(&tally.first_frame)) else {
            return;
        };
        if incomplete.is_udp {
            tally.other += incomplete.frames;
        } else {
            tally.undecodable += incomplete.frames;
            tally.incomplete_fragments(incomplete.opened.frame, incomplete.frames);
        }
    }

    /// A packet of a connection comes: learns who owns it, and says when it passed.
    fn arrives(&mut self, index: usize, from: Side, seen: Arrival) -> Option<Moment> {
        let flow = self.flows.flow(index)?;
        let (stream, traffic) = (flow.stream, &mut flow.content);
        if let Some(owners) = self.owner.take() {
            traffic.owners.learn(from, &owners);
        }
        // Between places, the steps of a clock are measured from its packets: these keep the instants that they were given.
        let arrived = if self.chooser.sights() {
            traffic.redated(seen)
        } else {
            traffic.follows(stream, seen, &mut self.tally.notes)
        };
        let seen = arrived.of(from);
        if self.ahead != self.begun_ahead || traffic.ahead != self.begun_ahead {
            self.tally.lasts(seen.at);
        }
        Some(seen)
    }

    fn open(
        &mut self,
        transport: Transport,
        ends: BySide<Endpoint>,
        seen: Arrival,
        packets: Packets,
        midstream: bool,
    ) -> usize {
        let mut traffic = Traffic::new(self.tally.capture, packets, midstream, self.statements, &self.secrets.keys);
        traffic.ahead = self.ahead;
        let index = self.flows.open(transport, ends, seen.at, traffic);
        if let Some(flow) = self.flows.flow(index) {
            let is_explained = self.chooser.explains(flow.stream);
            if is_explained || self.chooser.is_detailed() {
                flow.content.transcribe(Some(Transcript::new(is_explained)));
            }
        }
        index
    }

    /// Ends flows before their time, when too many are open.
    #[inline]
    fn make_room(&mut self, seen: Arrival) -> Result<(), Failure> {
        if !self.flows.overflows() {
            return Ok(());
        }
        self.decide_all()?;
        for flow in self.flows.overflow() {
            // Of UDP, what comes later begins anew; a TCP connection is over for good.
            if flow.transport == Transport::Tcp {
                self.tally.notes.add(About::EndedEarly, || {
                    let (frame, stream) = (seen.frame, flow.stream);
                    format!(
                        "frame {frame}: more than {MAX_OPEN} connections open at once; stream {stream} was ended early"
                    )
                });
            }
            self.end(flow)?;
        }
        Ok(())
    }

    fn end_at(&mut self, index: usize) -> Result<(), Failure> {
        self.decide(index, None)?;
        self.flows.remove(index).map_or(Ok(()), |flow| self.end(flow))
    }

    /// Turns a flow that is over into rows.
    fn end(&mut self, mut flow: Box<Flow<Traffic>>) -> Result<(), Failure> {
        self.waiting_bytes -= flow.content.waiting_bytes();
        Traffic::end(&mut flow, self.latest, &mut self.out)?;
        let Flow { stream, content: Traffic { capture, packets, clock_stepped_back, .. }, .. } = *flow;
        let (forced, duplicates) = match &packets {
            Packets::Tcp(tcp) => (tcp.forced_gaps, tcp.duplicates),
            Packets::Udp(udp) => (0, udp.duplicates),
            Packets::Syn(_) | Packets::Joined(_) => (0, 0),
        };
        let tally = self.tally_of(capture);
        tally.duplicates += duplicates;
        if clock_stepped_back {
            tally.notes.add(About::BackwardHandshake, || {
                format!("stream {stream}: the clock steps back during a TLS handshake; the step is not counted as time")
            });
        }
        if forced > 0 {
            tally.notes.add(About::GivenUp, || {
                format!("stream {stream}: too much out-of-order data to buffer; bytes were counted as missing {forced} times")
            });
        }
        Ok(())
    }

    fn tally_of(&mut self, capture: i32) -> &mut Tally {
        let done = usize::try_from(capture).ok().and_then(|index| self.done.get_mut(index));
        done.unwrap_or(&mut self.tally)
    }

    fn end_all(&mut self) -> Result<(), Failure> {
        self.decide_all()?;
        for flow in self.flows.drain() {
            self.end(flow)?;
        }
        self.routes.clear();
        for incomplete in self.fragments.drain() {
            self.count_incomplete(incomplete);
        }
        Ok(())
    }

    fn end_file(&mut self, reader: &CaptureReader) {
        let mut tally = std::mem::take(&mut self.tally);
        let mut facts = reader.facts();
        tally.notes.extend(std::mem::take(&mut facts.notes));
        tally.facts = Some(facts);
        if let Some(frame) = tally.backward {
            tally.notes.add(About::ClockStep, || format!("frame {frame}: the clock steps back by more than a second"));
        }
        if self.strays > 0 {
            let strays = std::mem::take(&mut self.strays);
            tally.notes.add(About::Stray, || {
                format!(
                    "{strays} packets arrived more than 30 s after their connection had ended; they are not counted"
                )
            });
        }
        self.done.push(tally);
    }
}

/// Client and server, given who sent the packet from `source` to `destination`.
fn by_side(from: Side, source: Endpoint, destination: Endpoint) -> BySide<Endpoint> {
    match from {
        Side::Client => BySide { client: source, server: destination },
        Side::Server => BySide { client: destination, server: source },
    }
}
