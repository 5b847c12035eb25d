//! Drives the stages: frames in, facts out, one pass, state only for open connections.

use std::path::PathBuf;

use crate::capture::filter::Program;
use crate::capture::secrets::Gathered;
use crate::capture::{Frame, LinkType, Reader, Source};
use crate::error::CaptureError;
use crate::exchange::Conversation;
use crate::keys::Keys;
use crate::notes::About;
use crate::packet::{self, Decoded, Fragment, Fragments, Incomplete, PacketError, Placed, Segment};
use crate::phases::{self, Kind, Phase, Tiler};
use crate::portion::{Outbox, Output, Stopped};
use crate::rows;
use crate::stream::{BySide, Chunk, Gap, Moment, Side};
use crate::tally::Tally;
use crate::tcp::{Connection, Flow, Receiver, Slot, Table};

/// Connections that may be open at once; more, and the longest silent ones become rows early.
const MAX_OPEN: usize = 1 << 18;
/// Captured bytes that all connections together may hold back for reordering.
const MAX_WAITING_BYTES: usize = 256 << 20;
/// Packets that come in pieces, or several at a time, inside packets that do.
const MAX_FRAGMENTED: u8 = 4;
/// What tcpdump compiles filters for: no frame is longer.
const MAX_SNAP_LENGTH: u32 = 262_144;
/// Frames between two reports of progress.
const PROGRESS_FRAMES: u64 = 1 << 16;

/// An end of the time window.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    /// Nanoseconds since the epoch.
    At(i64),
    /// Nanoseconds after the first packet.
    After(i64),
}

/// Compiles the user's filter for one link type and snap length.
pub type Compile = dyn FnMut(LinkType, u32) -> Result<Program, Failure> + Send;

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
    /// Write the `packets` table.
    pub packets: bool,
    /// Key logs with the secrets of TLS connections.
    pub keylogs: Vec<PathBuf>,
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

/// Reads capture files, in order, into tables.
///
/// A file that starts before the previous one ended is another capture of the same time: its
/// connections are kept apart. Otherwise connections continue from file to file (`tcpdump -C`).
///
/// # Errors
/// [`Failure`]. Damage after the first frame of a file is not an error but a note in `captures`.
pub fn read(sources: &[Source], selection: Selection, output: impl Output) -> Result<(), Failure> {
    let secrets = Gathered::from(&selection.keylogs, sources).map_err(Failure::Capture)?;
    let mut run = Run {
        out: Outbox::new(output),
        table: Table::new(MAX_OPEN),
        fragments: Fragments::default(),
        selection,
        programs: Vec::new(),
        origin: None,
        frames: 0,
        bytes_before: 0,
        latest: i64::MIN,
        waiting_bytes: 0,
        selected: 0,
        strays: 0,
        tally: Tally::default(),
        done: Vec::new(),
        secrets,
    };
    for (capture, source) in sources.iter().enumerate() {
        run.file(i32::try_from(capture).unwrap_or(i32::MAX), source)?;
    }
    run.end_all()?;
    for mut tally in run.done {
        tally.conclude();
        run.out.capture(tally)?;
    }
    run.out.flush()?;
    Ok(())
}

/// What the later stages keep for one connection.
#[derive(Default)]
struct Above {
    capture: i32,
    talk: Talk,
    app: Option<&'static str>,
    tiler: Tiler,
    /// The clock was set back inside a handshake.
    backward: bool,
}

/// What is said on a connection. A SYN that nobody answers needs no reader for it.
#[derive(Default)]
enum Talk {
    #[default]
    Unopened,
    Silent {
        midstream: bool,
        /// Where secrets may be known.
        keys: Option<Keys>,
    },
    Begun(Box<Conversation>),
    /// Both streams have ended: no reader waits for what still comes.
    Over,
}

impl Talk {
    /// The reader of what is said now; `None` when it is over.
    fn hear(&mut self) -> Option<&mut Conversation> {
        if let Self::Silent { midstream, keys } = self {
            let conversation = match keys.take() {
                Some(keys) => Conversation::with_keys(*midstream, keys),
                None => Conversation::new(*midstream),
            };
            *self = Self::Begun(Box::new(conversation));
        }
        self.begun()
    }

    fn begun(&mut self) -> Option<&mut Conversation> {
        if let Self::Begun(conversation) = self { Some(conversation) } else { None }
    }
}

impl Receiver for Talk {
    fn data(&mut self, from: Side, chunk: Chunk<'_>) {
        if let Some(conversation) = self.hear() {
            conversation.data(from, chunk);
        }
    }
    fn gap(&mut self, from: Side, gap: Gap) {
        if let Some(conversation) = self.hear() {
            conversation.gap(from, gap);
        }
    }
    fn fin(&mut self, from: Side, seen: Moment) {
        if let Some(conversation) = self.hear() {
            conversation.fin(from, seen);
        }
    }
}

struct Run<O> {
    out: Outbox<O>,
    table: Table<Above>,
    fragments: Fragments,
    selection: Selection,
    programs: Vec<(LinkType, Program)>,
    /// Time of the first frame of all: what relative bounds count from.
    origin: Option<i64>,
    /// Number of the latest frame; several files count on.
    frames: u64,
    /// Bytes of the files that are done.
    bytes_before: u64,
    latest: i64,
    waiting_bytes: usize,
    selected: u64,
    strays: u64,
    tally: Tally,
    /// The files before.
    done: Vec<Tally>,
    secrets: Gathered,
}

impl<O: Output> Run<O> {
    fn file(&mut self, capture: i32, source: &Source) -> Result<(), Failure> {
        self.tally = Tally { capture, path: source.name(), first_frame: self.frames + 1, ..Tally::default() };
        self.tally.notes = std::mem::take(&mut self.secrets.notes);
        let mut reader = Reader::open(source).map_err(Failure::Capture)?;
        if !self.secrets.scanned.contains(&self.tally.path) {
            reader.collect_secrets(self.secrets.keys.clone());
        }
        loop {
            match reader.next() {
                Ok(Some(frame)) => {
                    if !self.frame(&frame)? {
                        break;
                    }
                }
                Ok(None) => break,
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
        self.program(reader.facts().link_types.first().copied().unwrap_or(LinkType::ETHERNET))?;
        self.end_file(&reader);
        Ok(())
    }

    /// Takes one frame; false when no more are wanted.
    fn frame(&mut self, frame: &Frame<'_>) -> Result<bool, Failure> {
        self.frames = self.tally.first_frame - 1 + frame.number;
        if self.tally.packets == 0 && frame.at < self.latest {
            self.end_all()?;
        }
        self.tally.saw(frame);
        let origin = *self.origin.get_or_insert(frame.at);
        if !self.is_selected(frame, origin)? {
            return Ok(true);
        }
        self.tally.selected += 1;
        self.selected += 1;
        if frame.at + 1_000_000_000 < self.latest && self.tally.selected > 1 {
            self.tally.backward.get_or_insert(self.frames);
        }
        self.latest = self.latest.max(frame.at);
        let seen = Moment { at: frame.at, frame: self.frames };
        self.decoded(packet::decode(frame.link, frame.data, frame.original_len), seen, 1, 0)?;
        Ok(self.selection.count.is_none_or(|count| self.selected < count))
    }

    /// Takes what came in `frames` frames, `depth` times put together.
    #[inline]
    fn decoded(
        &mut self,
        decoded: Result<Decoded<'_>, PacketError>,
        seen: Moment,
        frames: i64,
        depth: u8,
    ) -> Result<(), Failure> {
        match decoded {
            Ok(Decoded::Tcp(segment)) => {
                self.tally.decoded += frames;
                self.segment(&segment, seen)?;
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
    fn fragment(&mut self, fragment: &Fragment<'_>, seen: Moment, depth: u8) -> Result<(), Failure> {
        while let Some(lost) = self.fragments.expired(seen.at) {
            self.incomplete(lost);
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
    fn incomplete(&mut self, lost: Incomplete) {
        let mut tallies = std::iter::once(&mut self.tally).chain(self.done.iter_mut().rev());
        let Some(tally) = tallies.find(|tally| (1..=lost.opened.frame).contains(&tally.first_frame)) else { return };
        if lost.is_udp {
            tally.other += lost.frames;
        } else {
            tally.undecodable += lost.frames;
            tally.incomplete_fragments(lost.opened.frame, lost.frames);
        }
    }

    fn is_selected(&mut self, frame: &Frame<'_>, origin: i64) -> Result<bool, Failure> {
        let instant = |bound| match bound {
            Limit::At(at) => at,
            Limit::After(ns) => origin.saturating_add(ns),
        };
        if self.selection.start.is_some_and(|bound| frame.at < instant(bound))
            || self.selection.end.is_some_and(|bound| frame.at >= instant(bound))
            || self.selection.count == Some(0)
        {
            return Ok(false);
        }
        let program = self.program(frame.link)?;
        Ok(program.is_none_or(|program| program.accepts(frame.data, frame.original_len)))
    }

    /// The filter, as it is for a link type; `None` when there is no filter.
    fn program(&mut self, link: LinkType) -> Result<Option<&Program>, Failure> {
        let Some(compile) = &mut self.selection.filter else { return Ok(None) };
        let known = self.programs.iter().position(|(of, _)| *of == link);
        let at = match known {
            Some(at) => at,
            None => {
                self.programs.push((link, compile(link, MAX_SNAP_LENGTH)?));
                self.programs.len() - 1
            }
        };
        Ok(self.programs.get(at).map(|(_, program)| program))
    }

    fn segment(&mut self, segment: &Segment<'_>, seen: Moment) -> Result<(), Failure> {
        while let Some(flow) = self.table.expired(seen.at) {
            self.end(flow)?;
        }
        let (at, from) = match self.table.locate(segment, seen, likely_sender) {
            Slot::Open(at, from) => (at, from),
            Slot::Reused(old, at, from) => {
                self.end(old)?;
                (at, from)
            }
            Slot::Ended => {
                self.strays += 1;
                return Ok(());
            }
        };
        let capture = self.tally.capture;
        let Some(flow) = self.table.flow(at) else { return Ok(()) };
        if flow.tcp.is_new() {
            flow.above.capture = capture;
            flow.above.talk = Talk::Silent {
                midstream: !segment.flags.syn(),
                keys: Some(&self.secrets.keys).filter(|keys| !keys.is_empty()).cloned(),
            };
        }
        let held_before = flow.tcp.waiting_bytes();
        let talk = &mut flow.above.talk;
        let mark = flow.tcp.segment(from, segment, seen, talk);
        let mut held = flow.tcp.waiting_bytes();
        if held > held_before && self.waiting_bytes + held - held_before > MAX_WAITING_BYTES {
            flow.tcp.finish(talk);
            flow.tcp.forced_gaps += 1;
            held = 0;
        }
        self.waiting_bytes = self.waiting_bytes + held - held_before;
        if segment.payload_len > 0 {
            settle(flow, &mut self.out)?;
        }
        if self.selection.packets {
            self.out.packet(rows::packet(flow.stream, segment, seen, from, mark))?;
        }
        if flow.tcp.is_closed() {
            if !flow.tcp.is_reset() {
                conclude(flow, &mut self.out)?;
            }
            self.table.linger(at, seen.at);
        }
        if self.table.overflows() {
            self.make_room(seen)?;
        }
        Ok(())
    }

    /// Ends connections before their time.
    #[cold]
    fn make_room(&mut self, seen: Moment) -> Result<(), Failure> {
        for flow in self.table.overflow() {
            self.tally.notes.add(About::EndedEarly, || {
                let (frame, stream) = (seen.frame, flow.stream);
                format!("frame {frame}: more than {MAX_OPEN} connections open at once; stream {stream} was ended early")
            });
            self.end(flow)?;
        }
        Ok(())
    }

    /// Turns a connection that is over into rows.
    fn end(&mut self, mut flow: Box<Flow<Above>>) -> Result<(), Failure> {
        self.waiting_bytes -= flow.tcp.waiting_bytes();
        flow.tcp.finish(&mut flow.above.talk);
        conclude(&mut flow, &mut self.out)?;

        let Flow { stream, tcp, above, .. } = &mut *flow;
        let end = tcp.closing().unwrap_or(tcp.last);
        begin(&mut above.tiler, tcp, end);
        above.tiler.push(Phase { kind: Kind::Close, exchange: None, start: end, end: tcp.last, inferred: false });
        let mut result = Ok(());
        above.tiler.finish(tcp.last, &mut |phase| {
            result = result.and_then(|()| self.out.phase(*stream, phase));
        });
        result?;
        let capture = above.capture;
        let opened = above.tiler.opened().unwrap_or(tcp.opened);
        self.out.connection(rows::connection(*stream, capture, opened, tcp, above.app))?;
        let (forced, duplicates, backward) = (tcp.forced_gaps, tcp.duplicates, above.backward);
        let stream = *stream;
        let tally = self.tally_of(capture);
        tally.duplicates += duplicates;
        if backward {
            tally.notes.add(About::BackwardHandshake, || {
                format!("stream {stream}: the clock steps back inside a TLS handshake, which is charged no time for it")
            });
        }
        if forced > 0 {
            tally.notes.add(About::GivenUp, || {
                format!("stream {stream}: too much out-of-order data to hold; {forced} times, bytes were given up as missing")
            });
        }
        Ok(())
    }

    fn tally_of(&mut self, capture: i32) -> &mut Tally {
        let done = usize::try_from(capture).ok().and_then(|index| self.done.get_mut(index));
        done.unwrap_or(&mut self.tally)
    }

    fn end_all(&mut self) -> Result<(), Failure> {
        for flow in self.table.drain() {
            self.end(flow)?;
        }
        for lost in self.fragments.drain() {
            self.incomplete(lost);
        }
        Ok(())
    }

    fn end_file(&mut self, reader: &Reader) {
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
                format!("{strays} packets came after their connection had ended for 30 s; they are not charged")
            });
        }
        self.done.push(tally);
    }
}

/// Ends the conversation: both streams are over.
fn conclude<O: Output>(flow: &mut Flow<Above>, out: &mut Outbox<O>) -> Result<(), Stopped> {
    if let Some(conversation) = flow.above.talk.begun() {
        conversation.finish();
        flow.above.app = conversation.app();
    }
    settle(flow, out)?;
    flow.above.talk = Talk::Over;
    Ok(())
}

/// Passes on what has become certain about a connection.
fn settle<O: Output>(flow: &mut Flow<Above>, out: &mut Outbox<O>) -> Result<(), Stopped> {
    let Flow { stream, tcp, above: Above { talk, tiler, backward, .. }, .. } = flow;
    let Some(conversation) = talk.begun().filter(|conversation| conversation.has_news()) else {
        return Ok(());
    };
    let mut settled: Option<Moment> = None;
    let mut charge = |interval: Phase| {
        begin(tiler, tcp, interval.start);
        tiler.push(interval);
        settled = Some(settled.map_or(interval.end, |latest| latest.max(interval.end)));
    };
    let end = || tcp.closing().unwrap_or(tcp.last);
    let rtt = BySide { client: tcp.rtt(Side::Client), server: tcp.rtt(Side::Server) };
    while let Some(mut handshake) = conversation.next_handshake() {
        *backward |= handshake.keep_order();
        if let Some(interval) = phases::of_handshake(&handshake, end) {
            charge(interval);
        }
        out.handshake(*stream, handshake, rtt)?;
    }
    while let Some(exchange) = conversation.next_exchange() {
        phases::of_exchange(&exchange, end).into_iter().flatten().for_each(&mut charge);
        out.exchange(*stream, exchange, rtt.server)?;
    }
    while let Some((start, end)) = conversation.next_unseen() {
        charge(Phase { kind: Kind::Unseen, exchange: None, start, end, inferred: false });
    }
    let mut result = Ok(());
    if let Some(settled) = settled {
        let until = conversation.earliest_open().unwrap_or(settled);
        tiler.settle(until, &mut |phase| {
            result = result.and_then(|()| out.phase(*stream, phase));
        });
    }
    result
}

/// Starts the tiling, with the TCP handshake; it ended before `first` at the latest.
fn begin(tiler: &mut Tiler, tcp: &Connection, first: Moment) {
    if tiler.opened().is_some() {
        return;
    }
    tiler.begin(tcp.opened, tcp.is_midstream());
    if let Some(start) = tcp.syn.or(tcp.syn_ack) {
        tiler.push(Phase {
            kind: Kind::Syn,
            exchange: None,
            start,
            end: tcp.ack.unwrap_or(first),
            inferred: tcp.syn.is_none(),
        });
    }
}

/// Who sent this packet of a connection that the capture joined midway: by what it says, else by port.
fn likely_sender(segment: &Segment<'_>) -> Side {
    const METHODS: [&[u8]; 9] =
        [b"GET ", b"POST ", b"HEAD ", b"PUT ", b"DELETE ", b"OPTIONS ", b"CONNECT ", b"PATCH ", b"PRI * "];
    match segment.payload {
        [0x16, 3, _, _, _, 1, ..] => Side::Client,
        [0x16, 3, _, _, _, 2, ..] => Side::Server,
        text if text.starts_with(b"HTTP/1.") => Side::Server,
        text if METHODS.iter().any(|method| text.starts_with(method)) => Side::Client,
        _ if segment.source.port < segment.destination.port => Side::Server,
        _ => Side::Client,
    }
}
