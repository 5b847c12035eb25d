//! HTTP/3 (RFC 9114): frames on the streams of QUIC are followed, field sections read, and every request is one
//! exchange.
//!
//! In: the streams of both sides, each in order. Out: exchanges in the [`Ledger`], as of HTTP/2, whose [`Streams`] they
//! share: stream 0 here is stream 1 there, 4 is 3. A field section that refers to entries which have not come is kept
//! until they come, with all that follows it on its stream; that is told as a delay. Where bytes of a stream are missing,
//! the rest of that stream is not read.
//!
//! Bounded: sections are read up to [`MAX_BLOCK`] bytes, [`MAX_BLOCKED`] of them wait, with [`MAX_HELD`] bytes behind
//! them, and [`MAX_STREAMS`] are followed.
//! Non-goals: what is pushed, and streams that a server opens both ways (RFC 9114 section 6.1 forbids them).

mod frame;
mod qpack;
mod tables;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::Span;
use super::http2::headers::Headers;
use super::http2::streams::Streams;
use super::ledger::passing::Http3Frame;
use super::ledger::{Delay, Ledger};
use super::quic::inside::{Inside, Part};
use crate::bytes::Fields;
use crate::quic::{Held, Why};
use crate::stream::{BySide, Gap, Moment, Side};
use frame::{Begun, Capsules, DATA, GOAWAY, HEADERS, Header, SETTINGS, WEBTRANSPORT, table_capacity};
use qpack::{Decoder, Read};

/// Longest field section that is read; servers allow 8 to 64 KiB.
const MAX_BLOCK: usize = 64 * 1024;
/// Field sections that wait for entries; clients allow about 100.
const MAX_BLOCKED: usize = 128;
/// Bytes that wait behind them; a part costs [`PART_COST`] besides.
const MAX_HELD: usize = 1 << 20;
const PART_COST: usize = 64;
/// Directions of streams that are followed at once.
const MAX_STREAMS: usize = 2048;

/// A request that was not looked at (RFC 9114 section 8.1).
const REQUEST_REJECTED: u64 = 0x10b;
/// Types of streams that go one way (RFC 9114 section 6.2, RFC 9204 section 4.2).
const CONTROL: u64 = 0x00;
const ENCODER: u64 = 0x02;
/// draft-ietf-webtrans-http3 section 4.2.
const OF_SESSION: u64 = 0x54;
/// Tunnels through which bytes go as they are.
const WITHOUT_CAPSULES: [&str; 2] = ["tcp", "websocket"];

pub(super) struct Http3 {
    streams: Streams,
    /// By number of the stream, and whether the server sends.
    halves: BTreeMap<(u64, bool), Half>,
    /// Of the sections that each side sends.
    decoders: BySide<Decoder>,
    blocked: Vec<Blocked>,
    /// What waits behind them costs so much.
    held: usize,
    /// The packet under way: bytes that waited for missing ones have the moments of their own packets.
    now: Option<Moment>,
}

/// What is spoken on one side of a stream.
enum Half {
    /// One that goes one way: its type is still to come.
    Untyped(Begun),
    Control(Frames),
    Encoder,
    /// A request and its response.
    Request(Frames),
    /// One that the server opened: only those of WebTransport go both ways.
    OfServer(Begun),
    /// One of WebTransport that goes one way: its session is still to come.
    OfSession(Begun),
    /// Bytes of the session on that stream.
    Through(u64),
    /// It is not read, or not any more.
    Unread,
}

/// Where one side of a stream is.
#[derive(Default)]
struct Frames {
    begun: Begun,
    /// First byte of the header of the frame under way.
    first: Option<Moment>,
    payload: Option<Payload>,
    /// Of a tunnel.
    capsules: Capsules,
}

struct Payload {
    header: Header,
    left: u64,
    /// Of a frame that has to be read.
    buffer: Vec<u8>,
    span: Span,
}

/// A field section that waits for entries of the dynamic table.
struct Blocked {
    from: Side,
    /// QUIC's number of the stream.
    id: u64,
    section: Vec<u8>,
    span: Span,
    /// The entries had not come; otherwise, only the capture lacks settings that its reader knows.
    is_held: bool,
    /// What came behind it.
    rest: Vec<Rest>,
}

/// What of a [`Part`] is not read as frames.
struct Left {
    session: Option<u64>,
    bytes: usize,
}

/// A [`Part`] of a stream that is kept.
struct Rest {
    offset: u64,
    bytes: Vec<u8>,
    fin: bool,
    seen: Moment,
}

impl Http3 {
    pub fn new() -> Self {
        Self {
            streams: Streams::over_quic(),
            halves: BTreeMap::new(),
            decoders: BySide::default(),
            blocked: Vec::new(),
            held: 0,
            now: None,
        }
    }

    /// Bytes of a stream with frames; those of control streams have no request. Gives how many are left: behind a section
    /// that has to wait, or of a session, where it is a stream of WebTransport.
    fn frames(
        &mut self,
        ledger: &mut Ledger,
        from: Side,
        frames: &mut Frames,
        part: Part<'_>,
        id: Option<u32>,
    ) -> Left {
        let Part { mut bytes, seen, .. } = part;
        while !bytes.is_empty() && !self.waits(from, part.id) {
            let Some(payload) = &mut frames.payload else {
                frames.first.get_or_insert(seen);
                let (taken, header) = frames.begun.header(bytes);
                bytes = bytes.get(taken..).unwrap_or_default();
                if let Some(header) = header {
                    let begins = part.end() == header.size + bytes.len() as u64;
                    let session = (header.kind == WEBTRANSPORT && begins && id.is_some()).then_some(header.length);
                    if let Some(passing) = &mut ledger.passing {
                        let offset = part.end().saturating_sub(bytes.len() as u64).saturating_sub(header.size);
                        let Header { kind, .. } = header;
                        let length = if session.is_some() { 0 } else { header.length };
                        let seen = frames.first.unwrap_or(seen);
                        let frame = Http3Frame::new(from, part.id, kind, seen);
                        passing.http3.push(frame.with_payload(offset, length, bytes));
                    }
                    if let Some(session) = session {
                        return Left { session: Some(session), bytes: bytes.len() };
                    }
                    self.begin(ledger, from, frames, header, seen, id);
                }
                continue;
            };
            let taken = usize::try_from(payload.left).unwrap_or(usize::MAX).min(bytes.len());
            let (now, rest) = bytes.split_at(taken);
            bytes = rest;
            payload.left -= taken as u64;
            if payload.header.kind == DATA {
                if let Some(id) = id {
                    self.streams.extend(ledger, from, id, Some(seen), taken as u64);
                    if self.streams.reads_content() {
                        self.streams.data(ledger, from, id, now, seen);
                    }
                    if self.streams.has_tunnels()
                        && let Some(kind) = self.streams.tunnel(ledger, id)
                    {
                        let has_capsules = !WITHOUT_CAPSULES.contains(&kind);
                        let datagrams = if has_capsules { frames.capsules.datagrams(now) } else { 0 };
                        self.streams.tunnelled(ledger, from, id, seen, taken as u64, datagrams);
                    }
                }
            } else {
                payload.span.extend(seen, taken as u64);
                if is_buffered(payload.header.kind) && payload.buffer.len() <= MAX_BLOCK {
                    payload.buffer.extend_from_slice(now);
                }
                if let Some(id) = id.filter(|_| payload.header.kind == HEADERS) {
                    self.streams.touch(ledger, from, id, payload.span);
                }
            }
            if payload.left == 0 {
                self.end(ledger, from, frames, seen, id);
            }
        }
        Left { session: None, bytes: bytes.len() }
    }

    /// Bytes of the session on that stream.
    fn through(&self, ledger: &mut Ledger, from: Side, session: u64, bytes: usize, seen: Moment) {
        if let Some(id) = number(session) {
            self.streams.tunnelled(ledger, from, id, seen, bytes as u64, 0);
        }
    }

    /// A frame's header is complete.
    fn begin(
        &mut self,
        ledger: &mut Ledger,
        from: Side,
        frames: &mut Frames,
        header: Header,
        seen: Moment,
        id: Option<u32>,
    ) {
        let first = frames.first.take().unwrap_or(seen);
        let mut span = Span::default();
        span.extend(first, 0);
        span.extend(seen, header.size);
        if let Some(id) = id {
            match header.kind {
                HEADERS => {
                    self.streams.open(ledger, from, id, first, 0);
                    self.streams.touch(ledger, from, id, span);
                }
                DATA => {
                    self.streams.extend(ledger, from, id, Some(first), 0);
                    self.streams.extend(ledger, from, id, Some(seen), header.size);
                    if header.length > 0 {
                        self.streams.content(ledger, from, id, first);
                    }
                }
                _ => {}
            }
        }
        frames.payload = Some(Payload { header, left: header.length, buffer: Vec::new(), span });
        if header.length == 0 {
            self.end(ledger, from, frames, seen, id);
        }
    }

    /// A frame is over.
    fn end(&mut self, ledger: &mut Ledger, from: Side, frames: &mut Frames, seen: Moment, id: Option<u32>) {
        let Some(Payload { header, buffer, span, .. }) = frames.payload.take() else { return };
        match (header.kind, id) {
            (HEADERS, Some(id)) if buffer.len() <= MAX_BLOCK => self.section(ledger, from, id, buffer, span),
            (HEADERS, Some(id)) => self.streams.headers(ledger, from, id, span, Headers::default()),
            (SETTINGS, None) => {
                self.decoders[from.peer()].allow(table_capacity(&buffer));
                // Sections in early data refer to entries that earlier settings allowed.
                self.unblock(ledger, from.peer());
            }
            (GOAWAY, None) => {
                // The first that is not answered, not the last that is (RFC 9114 section 5.2).
                if let Some(first) = Fields(&buffer).varint().and_then(number) {
                    self.streams.go_away(ledger, from, first.saturating_sub(2), seen);
                }
            }
            _ => {}
        }
    }

    /// A field section is there as a whole.
    fn section(&mut self, ledger: &mut Ledger, from: Side, id: u32, section: Vec<u8>, span: Span) {
        let mut headers = Headers::default();
        // What was read before a mistake holds.
        let read = self.decoders[from].decode(&section, |field| headers.add(&field));
        if matches!(read, Ok(Read::Blocked | Read::Unsettled)) && self.blocked.len() < MAX_BLOCKED {
            let is_held = read == Ok(Read::Blocked);
            let id = stream_id(id);
            self.blocked.push(Blocked { from, id, section, span, is_held, rest: Vec::new() });
        } else {
            self.streams.headers(ledger, from, id, span, headers);
        }
    }

    /// Does a section of that side of the stream wait?
    fn waits(&self, from: Side, id: u64) -> bool {
        self.blocked.iter().any(|blocked| (blocked.from, blocked.id) == (from, id))
    }

    /// Keeps what comes behind a section that waits; false where none does.
    fn keep(&mut self, ledger: &mut Ledger, from: Side, part: Part<'_>) -> bool {
        let waiting = self.blocked.iter_mut().find(|blocked| (blocked.from, blocked.id) == (from, part.id));
        let Some(blocked) = waiting else { return false };
        let Part { offset, bytes, fin, seen, .. } = part;
        blocked.rest.push(Rest { offset, bytes: bytes.to_vec(), fin, seen });
        self.held += bytes.len() + PART_COST;
        if self.held > MAX_HELD {
            self.give_up(ledger);
        }
        true
    }

    /// Entries have come, or settings: sections that waited for them are read.
    fn unblock(&mut self, ledger: &mut Ledger, from: Side) {
        let (waiting, others) = std::mem::take(&mut self.blocked).into_iter().partition(|it| it.from == from);
        self.blocked = others;
        let waiting: Vec<Blocked> = waiting;
        for mut blocked in waiting {
            let mut headers = Headers::default();
            let read = self.decoders[from].decode(&blocked.section, |field| headers.add(&field));
            match read {
                Ok(Read::Blocked | Read::Unsettled) => {
                    blocked.is_held |= read == Ok(Read::Blocked);
                    self.blocked.push(blocked);
                }
                Ok(Read::Whole) | Err(_) => {
                    if let (Some(start), Some(end), true) = (blocked.span.last, self.now, blocked.is_held)
                        && start.at < end.at
                    {
                        // Its reader has it now.
                        blocked.span.extend(end, 0);
                        let (why, released) = (Why::Qpack, None);
                        let held = Held { why, side: from, start, end, released, is_tail: false, lost: u64::MAX };
                        ledger.delay(Delay::Held(held));
                    }
                    self.go_on(ledger, blocked, headers);
                }
            }
        }
    }

    /// A section that waited was read, as far as it can be; what came behind it follows.
    fn go_on(&mut self, ledger: &mut Ledger, blocked: Blocked, headers: Headers) {
        let Blocked { from, id, span, rest, .. } = blocked;
        if let Some(id) = number(id) {
            self.streams.headers(ledger, from, id, span, headers);
        }
        for Rest { offset, bytes, fin, seen } in rest {
            self.held = self.held.saturating_sub(bytes.len() + PART_COST);
            self.take(ledger, from, Part { id, offset, bytes: &bytes, fin, seen });
        }
    }

    /// Sections that wait will not be read any more.
    fn give_up(&mut self, ledger: &mut Ledger) {
        self.decoders.client.lose();
        self.decoders.server.lose();
        for blocked in std::mem::take(&mut self.blocked) {
            self.drop(ledger, blocked);
        }
    }

    /// The entries that a section needs will not come: what can be read without them counts.
    fn drop(&mut self, ledger: &mut Ledger, blocked: Blocked) {
        let (mut headers, mut without) = (Headers::default(), Decoder::default());
        without.lose();
        // What was read before a mistake holds.
        let _ = without.decode(&blocked.section, |field| headers.add(&field));
        self.go_on(ledger, blocked, headers);
    }

    /// Nobody reads that side of a stream any more (RFC 9204 section 2.2.2.2).
    fn abandon(&mut self, ledger: &mut Ledger, from: Side, id: u64) {
        if let Some(at) = self.blocked.iter().position(|blocked| (blocked.from, blocked.id) == (from, id)) {
            let blocked = self.blocked.remove(at);
            self.drop(ledger, blocked);
        }
    }

    /// The stream is of that session: what its other side says is, too.
    fn sessions(&mut self, id: u64, session: u64) {
        if id & 0b10 == 0 {
            for is_of_server in [false, true] {
                if self.halves.len() >= MAX_STREAMS {
                    self.halves.pop_first();
                }
                self.halves.insert((id, is_of_server), Half::Through(session));
            }
        }
    }

    fn half(&mut self, from: Side, id: u64) -> Half {
        let is_of_server = from == Side::Server;
        self.halves.remove(&(id, is_of_server)).unwrap_or_else(|| match id & 0b11 {
            0b00 => Half::Request(Frames::default()),
            0b10 | 0b11 => Half::Untyped(Begun::default()),
            _ => Half::OfServer(Begun::default()),
        })
    }

    /// The next bytes of one side of a stream.
    fn take(&mut self, ledger: &mut Ledger, from: Side, mut part: Part<'_>) {
        if !self.blocked.is_empty() && self.keep(ledger, from, part) {
            return;
        }
        let mut half = self.half(from, part.id);
        if let Half::Untyped(begun) = &mut half {
            let (taken, kind) = begun.number(part.bytes);
            part.bytes = part.bytes.get(taken..).unwrap_or_default();
            part.offset = part.offset.saturating_add(taken as u64);
            if let Some((passing, kind)) = ledger.passing.as_mut().zip(kind) {
                passing.http3.push(Http3Frame::new(from, part.id, kind, part.seen).of_stream());
            }
            match kind {
                None => {}
                Some(CONTROL) => half = Half::Control(Frames::default()),
                Some(ENCODER) => half = Half::Encoder,
                Some(OF_SESSION) => half = Half::OfSession(Begun::default()),
                Some(_) => half = Half::Unread,
            }
        }
        let (taken, session) = match &mut half {
            Half::OfSession(begun) => begun.number(part.bytes),
            // Both sides send on it, and only the server says of which session it is.
            Half::OfServer(begun) if from == Side::Server => {
                let (taken, header) = begun.header(part.bytes);
                (taken, header.map(|header| if header.kind == WEBTRANSPORT { header.length } else { u64::MAX }))
            }
            _ => (0, None),
        };
        part.bytes = part.bytes.get(taken..).unwrap_or_default();
        part.offset = part.offset.saturating_add(taken as u64);
        if let Some(session) = session {
            self.sessions(part.id, session);
            half = Half::Through(session);
        }
        let mut left = 0;
        match &mut half {
            Half::Request(frames) => {
                let taken = self.frames(ledger, from, frames, part, number(part.id));
                if let Some(session) = taken.session {
                    self.sessions(part.id, session);
                    self.through(ledger, from, session, taken.bytes, part.seen);
                    half = Half::Through(session);
                } else {
                    left = taken.bytes;
                }
            }
            Half::Control(frames) => {
                self.frames(ledger, from, frames, part, None);
            }
            Half::Encoder if self.decoders[from].instructions(part.bytes) => self.unblock(ledger, from),
            Half::Through(session) => self.through(ledger, from, *session, part.bytes.len(), part.seen),
            Half::Encoder | Half::Untyped(_) | Half::OfServer(_) | Half::OfSession(_) | Half::Unread => {}
        }
        let waits = !self.blocked.is_empty() && self.waits(from, part.id);
        if part.fin && !waits {
            if let (Half::Request(_), Some(id)) = (&half, number(part.id)) {
                self.streams.end(ledger, from, id);
            }
        } else {
            if self.halves.len() >= MAX_STREAMS {
                // Not a stream that goes one way: the encoder's may be the oldest.
                let oldest = self.halves.keys().find(|(id, _)| id & 0b10 == 0).copied();
                if let Some(key) = oldest.or(self.halves.keys().next().copied()) {
                    self.halves.remove(&key);
                }
            }
            self.halves.insert((part.id, from == Side::Server), half);
        }
        if waits && (left > 0 || part.fin) {
            let from_end = part.bytes.len().saturating_sub(left);
            let offset = part.offset.saturating_add(from_end as u64);
            self.keep(ledger, from, Part { offset, bytes: part.bytes.get(from_end..).unwrap_or_default(), ..part });
        }
    }
}

impl Inside for Http3 {
    fn part(&mut self, ledger: &mut Ledger, from: Side, part: Part<'_>) {
        self.now = Some(self.now.map_or(part.seen, |now| now.max(part.seen)));
        self.take(ledger, from, part);
        ledger.release();
    }

    fn missing(&mut self, ledger: &mut Ledger, from: Side, id: u64, gap: Gap) {
        self.abandon(ledger, from, id);
        self.now = Some(self.now.map_or(gap.seen, |now| now.max(gap.seen)));
        let mut half = self.half(from, id);
        match &mut half {
            Half::Request(frames) => {
                if let Some(id) = number(id) {
                    self.streams.extend(ledger, from, id, None, gap.len);
                    self.streams.lose(ledger, from, id);
                }
                match &mut frames.payload {
                    Some(payload) if payload.header.kind == DATA && gap.len < payload.left => payload.left -= gap.len,
                    _ => half = Half::Unread,
                }
            }
            Half::Encoder => {
                self.decoders[from].lose();
                self.unblock(ledger, from);
            }
            Half::Untyped(_) | Half::Control(_) => {
                // Instructions, if it was the encoder's; or the settings, unless they came before.
                let (untyped, reader) = (matches!(half, Half::Untyped(_)), from.peer());
                half = Half::Unread;
                for (side, is_lost) in [(from, untyped), (reader, !self.decoders[reader].is_allowed())] {
                    if is_lost {
                        self.decoders[side].lose();
                        self.unblock(ledger, side);
                    }
                }
            }
            Half::OfServer(_) | Half::OfSession(_) => half = Half::Unread,
            Half::Through(session) => {
                if let Some(id) = number(*session) {
                    self.streams.doubt(ledger, id);
                }
            }
            Half::Unread => {}
        }
        self.halves.insert((id, from == Side::Server), half);
    }

    fn reset(&mut self, ledger: &mut Ledger, from: Side, id: u64, code: u64, seen: Moment) {
        self.abandon(ledger, from, id);
        self.halves.remove(&(id, from == Side::Server));
        if let Some(id) = number(id) {
            self.streams.reset(ledger, from, id, seen, code == REQUEST_REJECTED);
        }
        ledger.release();
    }

    fn stop(&mut self, ledger: &mut Ledger, from: Side, id: u64, _code: u64, seen: Moment) {
        // A server that wants no more of a request may still answer it (RFC 9114 section 4.1).
        if let Some(id) = number(id).filter(|_| ledger.asks(from)) {
            self.abandon(ledger, from.peer(), stream_id(id));
            self.streams.reset(ledger, from, id, seen, false);
            ledger.release();
        }
    }

    fn datagram(&mut self, ledger: &mut Ledger, from: Side, bytes: &[u8], seen: Moment) {
        let mut fields = Fields(bytes);
        // A quarter of the request's stream (RFC 9297 section 2.1).
        if let Some(id) = fields.varint().and_then(|quarter| number(quarter.checked_mul(4)?)) {
            self.streams.tunnelled(ledger, from, id, seen, fields.0.len() as u64, 1);
        }
    }

    fn finish(&mut self, ledger: &mut Ledger) {
        self.give_up(ledger);
        self.halves.clear();
        self.streams.finish(ledger);
        ledger.release_all();
    }

    fn pending(&self) -> Option<Moment> {
        // Nearly always a packet ends after the header of a frame; the requests themselves are in the ledger.
        let firsts = self.halves.values().map(|half| match half {
            Half::Request(frames) | Half::Control(frames) => frames.first,
            _ => None,
        });
        Moment::earliest(firsts)
    }

    fn app(&self) -> Option<&'static str> {
        Some("h3")
    }
}

/// Is the payload of such a frame read?
fn is_buffered(kind: u64) -> bool {
    matches!(kind, HEADERS | SETTINGS | GOAWAY)
}

/// The number that [`Streams`] knows the request on this stream by; `None` for other streams.
fn number(id: u64) -> Option<u32> {
    if id & 0b11 == 0 { u32::try_from(id >> 1 | 1).ok() } else { None }
}

/// The stream whose request [`Streams`] knows by this number.
fn stream_id(number: u32) -> u64 {
    u64::from(number & !1) << 1
}
