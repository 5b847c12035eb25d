//! HTTP/2 (RFC 9113): frames are followed, header blocks read, and every stream with a request is one exchange.
//!
//! In: the chunks and gaps of both sides, in clear. Out: exchanges in the [`Ledger`]. Of other frames only lengths
//! matter. A reader that does not know where a frame begins is *blind* until a packet begins like frames do; what it
//! missed is marked `inferred`, and of its headers only what does not refer to missed ones is known.
//!
//! Bounded: a header block is read up to [`MAX_BLOCK`] bytes, streams are followed up to the limit of [`Streams`].

mod frame;
mod hpack;
mod streams;

pub(super) use frame::{begin_here, sniff_client, sniff_server};

use super::ledger::Ledger;
use super::{Exchange, Span};
use crate::stream::{BySide, Chunk, Gap, Moment, Side};
use frame::{GOAWAY, HEADER, Header, PREFACE, PUSH_PROMISE, RST_STREAM};
use hpack::Decoder;
use streams::{Headers, Streams};

/// Longest header block that is read; servers allow 8 to 64 KiB.
const MAX_BLOCK: usize = 64 * 1024;

pub(super) struct Http2 {
    streams: Streams,
    readers: BySide<Reader>,
}

/// One direction.
struct Reader {
    state: State,
    /// First byte of the current frame's header.
    begun: Option<Moment>,
    /// The header block under way: the frame that began it, its bytes, when they came.
    block: Option<Block>,
    decoder: Decoder,
    /// Frame number of the latest bytes: another one means that a packet begins.
    packet: u64,
    /// The latest byte.
    latest: Option<Moment>,
    /// Since when and until when missing bytes left this reader blind.
    lost: Option<(Moment, Moment)>,
}

enum State {
    /// So many bytes of the preface have come.
    Preface(usize),
    /// Between two frames, or in a frame's header.
    Header(Vec<u8>),
    Payload {
        header: Header,
        left: u32,
        /// Of a frame that has to be read.
        kept: Vec<u8>,
        /// All of it was captured.
        whole: bool,
    },
    Blind,
}

struct Block {
    opener: Header,
    promised: Option<u32>,
    bytes: Vec<u8>,
    span: Span,
    /// All of it is there.
    whole: bool,
}

impl Reader {
    fn new(state: State) -> Self {
        Self { state, begun: None, block: None, decoder: Decoder::new(), packet: 0, latest: None, lost: None }
    }

    /// First byte of what is not yet in the ledger.
    fn pending(&self) -> Option<Moment> {
        self.block.as_ref().and_then(|block| block.span.first).or(self.begun)
    }
}

impl Http2 {
    /// A connection from its beginning: the requester sends its preface.
    pub fn new(requester: Side) -> Self {
        let start = |side| Reader::new(if side == requester { State::Preface(0) } else { State::Header(Vec::new()) });
        let readers = BySide { client: start(Side::Client), server: start(Side::Server) };
        Self { streams: Streams::new(requester), readers }
    }

    /// A connection that was joined later: frames have to be found.
    pub fn midstream(requester: Side) -> Self {
        let mut readers = [Reader::new(State::Blind), Reader::new(State::Blind)];
        readers.iter_mut().for_each(|reader| reader.decoder.forget());
        let [client, server] = readers;
        Self { streams: Streams::midstream(requester), readers: BySide { client, server } }
    }

    /// After an Upgrade, stream 1 is the request that asked for it (RFC 7540 section 3.2).
    pub fn upgraded(requester: Side, ledger: &mut Ledger, asked: &Exchange) -> Self {
        let mut http2 = Self::new(requester);
        http2.streams.upgraded(ledger, asked);
        http2
    }

    pub fn data(&mut self, ledger: &mut Ledger, from: Side, chunk: &Chunk<'_>) {
        let reader = &mut self.readers[from];
        let packet_begins = std::mem::replace(&mut reader.packet, chunk.seen.frame) != chunk.seen.frame;
        if packet_begins && matches!(reader.state, State::Blind) && begin_here(chunk.bytes) {
            reader.state = State::Header(Vec::new());
            self.found(ledger, from);
        }
        let mut bytes = chunk.bytes;
        while !bytes.is_empty() {
            let taken = self.take(ledger, from, bytes, chunk.seen, chunk.offset);
            bytes = bytes.get(taken..).unwrap_or_default();
        }
        let reader = &mut self.readers[from];
        reader.latest = Some(chunk.seen);
        if let (State::Blind, Some((_, until))) = (&reader.state, &mut reader.lost) {
            *until = until.max(chunk.seen);
        }
        if chunk.cut > 0 {
            self.missing(ledger, from, u64::from(chunk.cut), Some(chunk.seen), chunk.seen);
        }
        ledger.settle();
    }

    pub fn gap(&mut self, ledger: &mut Ledger, from: Side, gap: Gap) {
        self.missing(ledger, from, gap.len, None, gap.seen);
    }

    /// The connection is over: what is incomplete goes out as it stands.
    pub fn finish(&mut self, ledger: &mut Ledger) {
        for from in [Side::Client, Side::Server] {
            self.found(ledger, from);
            let reader = &mut self.readers[from];
            (reader.begun, reader.block) = (None, None);
        }
        ledger.settle_all();
    }

    /// First byte that is not yet in the ledger.
    pub fn pending(&self) -> [Option<Moment>; 2] {
        [self.readers.client.pending(), self.readers.server.pending()]
    }

    #[cfg(test)]
    pub fn held(&self) -> usize {
        let held = |reader: &Reader| {
            let kept = if let State::Payload { kept, .. } = &reader.state { kept.len() } else { 0 };
            kept + reader.block.as_ref().map_or(0, |block| block.bytes.len())
        };
        held(&self.readers.client) + held(&self.readers.server)
    }

    /// Takes in bytes from the front; returns how many, at least one.
    fn take(&mut self, ledger: &mut Ledger, from: Side, bytes: &[u8], seen: Moment, offset: u64) -> usize {
        let reader = &mut self.readers[from];
        match &mut reader.state {
            State::Preface(matched) => {
                let expected = PREFACE.get(*matched..).unwrap_or_default();
                let alike = expected.iter().zip(bytes).take_while(|(a, b)| a == b).count();
                *matched += alike;
                if *matched == PREFACE.len() {
                    reader.state = State::Header(Vec::new());
                } else if alike < bytes.len() {
                    self.go_blind(ledger, from);
                }
                alike.max(1)
            }
            State::Header(kept) => {
                if kept.is_empty() {
                    reader.begun = Some(seen);
                }
                let taken = (HEADER - kept.len()).min(bytes.len());
                kept.extend_from_slice(bytes.get(..taken).unwrap_or_default());
                if let Some(header) = Header::read(kept) {
                    self.begin(ledger, from, header, seen, offset);
                }
                taken.max(1)
            }
            State::Payload { header, left, kept, .. } => {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                let header = *header;
                if header.is_kept() && kept.len() < MAX_BLOCK {
                    kept.extend_from_slice(bytes.get(..taken).unwrap_or_default());
                }
                *left -= u32::try_from(taken).unwrap_or(*left);
                let over = *left == 0;
                self.count(ledger, from, header, taken as u64, Some(seen));
                if over {
                    self.end(ledger, from, header, seen);
                }
                taken.max(1)
            }
            State::Blind => bytes.len(),
        }
    }

    /// A frame's header is complete.
    fn begin(&mut self, ledger: &mut Ledger, from: Side, header: Header, seen: Moment, offset: u64) {
        let reader = &mut self.readers[from];
        let begun = reader.begun.take().unwrap_or(seen);
        // Nothing may come between the frames of a header block (RFC 9113 section 6.10).
        let in_place = match &reader.block {
            Some(block) => header.kind == frame::CONTINUATION && header.stream == block.opener.stream,
            None => header.kind != frame::CONTINUATION,
        };
        if !header.is_legal() || !in_place {
            return self.go_blind(ledger, from);
        }
        reader.state = State::Payload {
            header,
            left: header.length,
            kept: Vec::new(),
            whole: header.length as usize <= MAX_BLOCK,
        };
        if header.has_block() {
            let fresh =
                || Block { opener: header, promised: None, bytes: Vec::new(), span: Span::default(), whole: true };
            reader.block.get_or_insert_with(fresh).span.extend(begun, 0);
            if header.kind == frame::HEADERS {
                self.streams.open(ledger, from, header.stream, begun, offset);
            }
        }
        if header.kind == RST_STREAM {
            self.streams.reset(ledger, from, header.stream, begun);
        }
        if header.kind == frame::DATA {
            self.streams.extend(ledger, from, header.stream, Some(begun), 0);
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
        } else if let Some(block) = &mut self.readers[from].block {
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
        let reader = &mut self.readers[from];
        let State::Payload { kept, whole, .. } = std::mem::replace(&mut reader.state, State::Header(Vec::new())) else {
            return;
        };
        if header.kind == GOAWAY && whole {
            if let Some(last) = kept.first_chunk::<4>() {
                self.streams.go_away(ledger, from, u32::from_be_bytes(*last) & 0x7fff_ffff, seen);
            }
            return;
        }
        if header.kind == frame::DATA && header.ends_stream() {
            self.streams.end(ledger, from, header.stream);
        }
        let Some(block) = reader.block.as_mut().filter(|_| header.has_block()) else {
            return;
        };
        match header.fragment(&kept) {
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
        let reader = &mut self.readers[from];
        let Some(Block { opener, promised, bytes, span, whole }) = reader.block.take() else {
            return;
        };
        let mut headers = Headers::default();
        if whole {
            // What was read before a mistake holds.
            let _ = reader.decoder.decode(&bytes, |field| headers.add(&field));
        } else {
            reader.decoder.forget();
        }
        if opener.kind == PUSH_PROMISE {
            if let Some(promised) = promised {
                self.streams.promise(ledger, promised, headers);
            }
            return;
        }
        self.streams.headers(ledger, from, opener.stream, span, headers);
        if opener.ends_stream() {
            self.streams.end(ledger, from, opener.stream);
        }
    }

    /// Passes over bytes that the capture does not hold. `sent` says when they were sent, where that is known (a
    /// snap length cut them off); `by` when they had been.
    fn missing(&mut self, ledger: &mut Ledger, from: Side, len: u64, sent: Option<Moment>, by: Moment) {
        let reader = &mut self.readers[from];
        let since = reader.latest.unwrap_or(by);
        let mut rest = len;
        if let State::Payload { header, left, whole, .. } = &mut reader.state {
            let skipped = len.min(u64::from(*left));
            *left -= u32::try_from(skipped).unwrap_or(*left);
            (*whole, rest) = (false, len - skipped);
            let (header, over) = (*header, *left == 0);
            self.count(ledger, from, header, skipped, sent);
            if sent.is_none() {
                self.streams.doubt(ledger, header.stream);
            }
            if over {
                self.end(ledger, from, header, by);
            }
        }
        if rest > 0 {
            self.go_blind(ledger, from);
            let reader = &mut self.readers[from];
            if sent.is_none() {
                reader.lost = Some((reader.lost.map_or(since, |(since, _)| since), by));
            }
        }
    }

    /// Where the next frame begins is unknown.
    fn go_blind(&mut self, ledger: &mut Ledger, from: Side) {
        let reader = &mut self.readers[from];
        reader.state = State::Blind;
        (reader.begun, reader.block) = (None, None);
        reader.decoder.forget();
        self.streams.lose(ledger);
    }

    /// The reader is no longer blind.
    fn found(&mut self, ledger: &mut Ledger, from: Side) {
        if let Some((since, until)) = self.readers[from].lost.take() {
            ledger.lost(since, until);
        }
    }
}
