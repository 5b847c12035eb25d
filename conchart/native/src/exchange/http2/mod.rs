//! HTTP/2 (RFC 9113): frames are followed, header blocks read, and every stream with a request is one exchange.
//!
//! In: the chunks and gaps of both sides, in clear. Out: exchanges in the [`Ledger`], and what flow control held back. Of
//! other frames only lengths matter. A direction in which nobody knows where a frame begins is *out of step* until a packet begins like frames do;
//! what was missed is marked `inferred`, and of headers only what does not refer to missed ones is known.
//!
//! Bounded: a header block is read up to [`MAX_BLOCK`] bytes, streams are followed up to the limit of [`Streams`].

pub(super) mod encrypted;
mod frame;
pub(super) mod grpc;
pub(super) mod headers;
pub(super) mod hpack;
pub(super) mod streams;
mod windows;

pub(super) use frame::{sniff_client, sniff_frames, sniff_request_frames, sniff_response_frames, sniff_server};

use super::ledger::{Delay, Ledger};
use super::reader::{Reader, Switch, Verdict};
use super::trail::Trail;
use super::{Goaway, Span};
use crate::quic::Held;
use crate::stream::{BySide, Chunk, Gap, Moment, Side};
use frame::{
    ALTSVC, Begun, GOAWAY, HEADER, Header, PING, PREFACE, PUSH_PROMISE, REFUSED_STREAM, RST_STREAM, SETTINGS,
    WINDOW_UPDATE,
};
use headers::Headers;
use hpack::Decoder;
use streams::Streams;
use windows::Windows;

/// Longest header block that is read; servers allow 8 to 64 KiB.
const MAX_BLOCK: usize = 64 * 1024;

pub(super) struct Http2 {
    streams: Streams,
    directions: BySide<Direction>,
    /// What limits the content that each side sends.
    windows: BySide<Windows>,
    /// PINGs that each side sent.
    pings: BySide<u64>,
}

/// One direction.
struct Direction {
    state: State,
    /// First byte of the current frame's header.
    begun: Option<Moment>,
    /// The header block under way: the frame that began it, its bytes, when they came.
    block: Option<Block>,
    decoder: Decoder,
    trail: Trail,
    /// The latest byte.
    latest: Option<Moment>,
}

enum State {
    /// So many bytes of the preface have come.
    Preface(usize),
    /// Between two frames, or in a frame's header.
    Header(Begun),
    Payload {
        header: Header,
        left: u32,
        /// Of a frame that has to be read.
        buffer: Vec<u8>,
        /// All of it was captured.
        whole: bool,
    },
    OutOfStep,
}

struct Block {
    decryptor: Header,
    promised: Option<u32>,
    bytes: Vec<u8>,
    span: Span,
    /// All of it is there.
    whole: bool,
}

impl Direction {
    fn new(state: State) -> Self {
        Self { state, begun: None, block: None, decoder: Decoder::new(), trail: Trail::default(), latest: None }
    }

    /// First byte of what is not yet in the ledger.
    fn pending(&self) -> Option<Moment> {
        self.block.as_ref().and_then(|block| block.span.first).or(self.begun)
    }
}

impl Http2 {
    /// A connection from its beginning: the requester sends its preface.
    pub fn new(requester: Side) -> Self {
        let start =
            |side| Direction::new(if side == requester { State::Preface(0) } else { State::Header(Begun::default()) });
        let directions = BySide { client: start(Side::Client), server: start(Side::Server) };
        let windows = BySide { client: Windows::new(Side::Client), server: Windows::new(Side::Server) };
        Self { streams: Streams::new(), directions, windows, pings: BySide::default() }
    }

    /// A connection that was joined later: frames have to be found.
    pub fn midstream() -> Self {
        let mut joined = Self { streams: Streams::midstream(), ..Self::new(Side::Client) };
        for side in [Side::Client, Side::Server] {
            joined.directions[side] = Direction::new(State::OutOfStep);
            joined.directions[side].decoder.forget();
            joined.windows[side].forget();
        }
        joined
    }

    /// After an Upgrade, stream 1 is the request that asked for it (RFC 7540 section 3.2).
    pub fn upgraded(ledger: &mut Ledger) -> Self {
        let mut http2 = Self::new(ledger.requester);
        if let Some(switched) = ledger.switched() {
            http2.streams.upgraded(ledger, &switched);
        }
        http2
    }

    fn read(&mut self, ledger: &mut Ledger, from: Side, chunk: &Chunk<'_>) {
        let direction = &mut self.directions[from];
        let packet_begins = direction.trail.begins_packet(chunk.seen);
        if packet_begins && matches!(direction.state, State::OutOfStep) && sniff_frames(chunk.bytes) == Verdict::Yes {
            direction.state = State::Header(Begun::default());
            direction.trail.end(ledger);
        }
        let mut bytes = chunk.bytes;
        while !bytes.is_empty() {
            let taken = self.take(ledger, from, bytes, chunk.seen, chunk.offset);
            bytes = bytes.get(taken..).unwrap_or_default();
        }
        let direction = &mut self.directions[from];
        direction.latest = Some(chunk.seen);
        if matches!(direction.state, State::OutOfStep) {
            direction.trail.go_on(chunk.seen);
        }
        if chunk.cut > 0 {
            self.missing(ledger, from, u64::from(chunk.cut), Some(chunk.seen), chunk.seen);
        }
        ledger.release();
    }

    /// Takes in bytes from the front; returns how many, at least one.
    fn take(&mut self, ledger: &mut Ledger, from: Side, bytes: &[u8], seen: Moment, offset: u64) -> usize {
        let direction = &mut self.directions[from];
        match &mut direction.state {
            State::Preface(matched) => {
                let expected = PREFACE.get(*matched..).unwrap_or_default();
                let alike = expected.iter().zip(bytes).take_while(|(a, b)| a == b).count();
                *matched += alike;
                if *matched == PREFACE.len() {
                    direction.state = State::Header(Begun::default());
                } else if alike < bytes.len() {
                    self.go_out_of_step(ledger, from);
                }
                alike.max(1)
            }
            State::Header(begun) => {
                if begun.is_empty() {
                    direction.begun = Some(seen);
                }
                let (taken, header) = Header::collect(begun, bytes);
                if let Some(header) = header {
                    self.begin(ledger, from, header, seen, offset);
                }
                taken.max(1)
            }
            State::Payload { header, left, buffer, .. } => {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                let header = *header;
                if header.is_buffered() && buffer.len() < MAX_BLOCK {
                    buffer.extend_from_slice(bytes.get(..taken).unwrap_or_default());
                }
                if header.kind == frame::DATA && header.is_padded() && *left == header.length {
                    buffer.extend(bytes.first());
                }
                *left -= u32::try_from(taken).unwrap_or(*left);
                let over = *left == 0;
                let content = (header.kind == frame::DATA && self.streams.reads_content())
                    .then(|| header.content(bytes.get(..taken).unwrap_or_default(), *left, buffer.first().copied()));
                self.count(ledger, from, header, taken as u64, Some(seen));
                if let Some(content) = content {
                    self.streams.data(ledger, from, header.stream, content, seen);
                }
                if header.kind == frame::DATA && self.streams.has_tunnels() {
                    self.streams.tunnelled(ledger, from, header.stream, seen, taken as u64, 0);
                }
                if over {
                    self.end(ledger, from, header, seen);
                }
                taken.max(1)
            }
            State::OutOfStep => bytes.len(),
        }
    }

    /// A frame's header is complete.
    fn begin(&mut self, ledger: &mut Ledger, from: Side, header: Header, seen: Moment, offset: u64) {
        let direction = &mut self.directions[from];
        let begun = direction.begun.take().unwrap_or(seen);
        // Nothing may come between the frames of a header block (RFC 9113 section 6.10).
        let in_order = match &direction.block {
            Some(block) => header.kind == frame::CONTINUATION && header.stream == block.decryptor.stream,
            None => header.kind != frame::CONTINUATION,
        };
        if !header.is_legal() || !in_order {
            return self.go_out_of_step(ledger, from);
        }
        direction.state = State::Payload {
            header,
            left: header.length,
            buffer: Vec::new(),
            whole: header.length as usize <= MAX_BLOCK,
        };
        if header.has_block() {
            let fresh =
                || Block { decryptor: header, promised: None, bytes: Vec::new(), span: Span::default(), whole: true };
            direction.block.get_or_insert_with(fresh).span.extend(begun, 0);
            if header.kind == frame::HEADERS {
                self.streams.open(ledger, from, header.stream, begun, offset);
                tell(ledger, self.windows[from].headers(header.stream, begun));
            }
        }
        if header.kind == PING && !header.acknowledges() {
            self.pings[from] += 1;
        }
        if header.kind == frame::DATA {
            tell(ledger, self.windows[from].data(header.stream, header.length, begun));
            self.streams.extend(ledger, from, header.stream, Some(begun), 0);
            if header.length > 0 {
                self.streams.content(ledger, from, header.stream, begun);
            }
        }
        self.count(ledger, from, header, HEADER as u64, Some(seen));
        if header.length == 0 {
            self.end(ledger, from, header, seen);
        }
    }

    /// Adds bytes of a frame to the message that they are part of; `seen` is `None` for bytes nobody saw.
    fn count(&mut self, ledger: &mut Ledger, from: Side, header: Header, bytes: u64, seen: Option<Moment>) {
        if header.kind == frame::DATA {
            self.streams.extend(ledger, from, header.stream, seen, bytes);
        } else if let Some(block) = &mut self.directions[from].block {
            match seen {
                Some(seen) => block.span.extend(seen, bytes),
                None => block.span.extend_unseen(bytes),
            }
            if header.kind == frame::HEADERS {
                self.streams.touch(ledger, from, header.stream, block.span);
            }
        }
    }

    /// A frame is over.
    fn end(&mut self, ledger: &mut Ledger, from: Side, header: Header, seen: Moment) {
        let direction = &mut self.directions[from];
        let State::Payload { buffer, whole, .. } =
            std::mem::replace(&mut direction.state, State::Header(Begun::default()))
        else {
            return;
        };
        if header.kind == RST_STREAM {
            for side in [Side::Client, Side::Server] {
                tell(ledger, self.windows[side].end(header.stream, Some(seen)));
            }
            let is_refusal = whole && buffer == REFUSED_STREAM;
            return self.streams.reset(ledger, from, header.stream, seen, is_refusal);
        }
        if header.kind == GOAWAY && whole {
            if let Some((&[l3, l2, l1, l0, code @ ..], text)) = buffer.split_first_chunk::<8>() {
                let goaway = Goaway::new(from, u32::from_be_bytes(code), text, seen, self.pings[from.peer()]);
                self.streams.note_goaway(ledger, &goaway);
                self.streams.go_away(ledger, from, u32::from_be_bytes([l3 & 0x7f, l2, l1, l0]), seen);
            }
            return;
        }
        match header.kind {
            SETTINGS if !header.acknowledges() => self.windows[from.peer()].settings(&buffer, seen),
            WINDOW_UPDATE => self.windows[from.peer()].update(header.stream, &buffer, seen),
            frame::DATA if header.length > 0 => self.windows[from].sent(header.stream, seen),
            _ => {}
        }
        if header.kind == ALTSVC && whole {
            self.streams.offer(ledger, from, header.stream, &buffer);
            return;
        }
        if header.kind == frame::DATA && header.ends_stream() {
            self.end_stream(ledger, from, header.stream);
        }
        let direction = &mut self.directions[from];
        let Some(block) = direction.block.as_mut().filter(|_| header.has_block()) else {
            return;
        };
        match header.fragment(&buffer) {
            Some((promised, fragment)) if whole && block.bytes.len() + fragment.len() <= MAX_BLOCK => {
                block.bytes.extend_from_slice(fragment);
                block.promised = block.promised.or(promised);
            }
            _ => block.whole = false,
        }
        if header.ends_headers() {
            self.read_block(ledger, from);
        }
    }

    /// A header block is complete.
    fn read_block(&mut self, ledger: &mut Ledger, from: Side) {
        let direction = &mut self.directions[from];
        let Some(Block { decryptor, promised, bytes, span, whole }) = direction.block.take() else {
            return;
        };
        let mut headers = Headers::default();
        if whole {
            // What was read before a mistake holds.
            let _ = direction.decoder.decode(&bytes, |field| headers.add(&field));
        } else {
            direction.decoder.forget();
        }
        if decryptor.kind == PUSH_PROMISE {
            if let Some(promised) = promised {
                self.streams.promise(ledger, promised, headers);
            }
            return;
        }
        self.streams.headers(ledger, from, decryptor.stream, span, headers);
        if decryptor.ends_stream() {
            self.end_stream(ledger, from, decryptor.stream);
        }
    }

    /// That side has said all on this stream.
    fn end_stream(&mut self, ledger: &mut Ledger, from: Side, stream: u32) {
        tell(ledger, self.windows[from].end(stream, None));
        self.streams.end(ledger, from, stream);
    }

    /// Passes over bytes that the capture does not hold. `sent` says when they were sent, where that is known (a
    /// snap length cut them off); `by` when they had been.
    fn missing(&mut self, ledger: &mut Ledger, from: Side, len: u64, sent: Option<Moment>, by: Moment) {
        let direction = &mut self.directions[from];
        let since = direction.latest.unwrap_or(by);
        let mut rest = len;
        if let State::Payload { header, left, whole, .. } = &mut direction.state {
            let skipped = len.min(u64::from(*left));
            *left -= u32::try_from(skipped).unwrap_or(*left);
            (*whole, rest) = (false, len - skipped);
            let (header, over) = (*header, *left == 0);
            self.count(ledger, from, header, skipped, sent);
            if header.kind == frame::DATA && skipped > 0 {
                self.streams.miss(ledger, from, header, skipped, sent, by);
            }
            if sent.is_none() {
                self.streams.doubt(ledger, header.stream);
            }
            if over {
                self.end(ledger, from, header, by);
            }
        }
        if rest > 0 {
            self.go_out_of_step(ledger, from);
            if sent.is_none() {
                self.directions[from].trail.miss(since, by);
            }
        }
    }

    /// Where the next frame begins is unknown.
    fn go_out_of_step(&mut self, ledger: &mut Ledger, from: Side) {
        let direction = &mut self.directions[from];
        direction.state = State::OutOfStep;
        (direction.begun, direction.block) = (None, None);
        direction.decoder.forget();
        // What it sent on its streams, and what it allowed its peer.
        [Side::Client, Side::Server].iter().for_each(|&side| self.windows[side].forget());
        self.streams.go_out_of_step(ledger, from);
    }
}

/// Notes what flow control held back.
fn tell(ledger: &mut Ledger, held: Option<Held>) {
    if let Some(held) = held {
        ledger.delay(Delay::Held(held));
    }
}

impl Reader for Http2 {
    fn data<'a>(&mut self, ledger: &mut Ledger, from: Side, chunk: Chunk<'a>) -> Option<Switch<'a>> {
        self.read(ledger, from, &chunk);
        None
    }

    fn gap(&mut self, ledger: &mut Ledger, from: Side, gap: Gap) {
        self.missing(ledger, from, gap.len, None, gap.seen);
    }

    fn finish(&mut self, ledger: &mut Ledger) {
        for from in [Side::Client, Side::Server] {
            self.directions[from].trail.end(ledger);
            let direction = &mut self.directions[from];
            (direction.begun, direction.block) = (None, None);
        }
        for side in [Side::Client, Side::Server] {
            if let Some(held) = self.windows[side].under_way() {
                ledger.delay(Delay::UnderWay(held));
            }
        }
        self.streams.finish(ledger);
        ledger.release_all();
    }

    fn pending(&self) -> Option<Moment> {
        Moment::earliest([self.directions.client.pending(), self.directions.server.pending()])
    }

    #[cfg(test)]
    fn held(&self) -> usize {
        let held = |direction: &Direction| {
            let buffered = if let State::Payload { buffer, .. } = &direction.state { buffer.len() } else { 0 };
            buffered + direction.block.as_ref().map_or(0, |block| block.bytes.len())
        };
        held(&self.directions.client) + held(&self.directions.server) + self.streams.held()
    }
}
