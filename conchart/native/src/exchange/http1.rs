//! HTTP/1.0 and 1.1 in clear: heads are read, bodies are counted, responses paired first-in first-out.
//!
//! RFC 9112 section 6.3 (where a message ends) and 9.3 (pipelining). In: the chunks and gaps of
//! both sides. Out: exchanges in the [`Ledger`], and the protocol that follows CONNECT or Upgrade.
//!
//! A reader that cannot know where a message ends is *blind*: it takes what comes as part of that
//! message until a packet begins like a message, or the other side's next message shows that it is
//! over. What it touches is marked `inferred`. Nothing grows: heads are kept up to [`MAX_HEAD`].

mod lost;

use super::body::{Body, Chunked, EmptyLine, Fed};
use super::head::{self, Framing, Guess, Request, Response};
use super::held::{Event, Held};
use super::ledger::{Entry, Ledger};
use super::{Exchange, Span};
use crate::stream::{BySide, Chunk, Gap, Moment, Side};

/// Longest head that is read; servers allow 8 to 64 KiB.
const MAX_HEAD: usize = 64 * 1024;
/// What a client may send through a tunnel before the proxy has agreed to it: a large ClientHello.
const MAX_EAGER: usize = 16 * 1024;
/// Confidence in exchanges of which a boundary is guessed.
const GUESSED: f64 = 0.5;

/// What the connection speaks from here on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Onward {
    /// CONNECT was granted: anything.
    Tunnel,
    Upgrade(&'static str),
}

/// The end of HTTP on this connection.
pub(super) struct Switch<'a> {
    pub onward: Onward,
    /// What the requester sent through the tunnel too early.
    pub eager: Option<Held>,
    /// What is left of the chunk that switched.
    pub rest: Chunk<'a>,
}

pub(super) struct Http1 {
    pub requester: Side,
    readers: BySide<Reader>,
    /// Both are set while a response's head is taken in and acted on by [`Http1::data`].
    onward: Option<Onward>,
    refused: bool,
}

/// One direction.
#[derive(Default)]
struct Reader {
    state: State,
    /// The exchange that the current message belongs to.
    number: Option<u32>,
    /// The current message. The ledger gets a copy when something is learned.
    span: Span,
    /// Stream offset and acknowledgement of the current message's first byte.
    offset: u64,
    acked: u64,
    /// Frame of the latest bytes: another frame means that a packet begins.
    frame: u64,
    /// The body waits for 100 (Continue).
    expecting: bool,
    /// Since when and until when missing bytes left this reader blind.
    lost: Option<(Moment, Moment)>,
}

#[derive(Default)]
enum State {
    /// Between two messages.
    #[default]
    Start,
    Head {
        kept: Vec<u8>,
        end: EmptyLine,
    },
    Body(Body),
    Blind,
    /// After CONNECT, until it is answered.
    Eager(Held),
}

impl Http1 {
    pub fn new(requester: Side) -> Self {
        Self { requester, readers: BySide::default(), onward: None, refused: false }
    }

    /// Takes in bytes, up to the point where the connection stops to speak HTTP.
    pub fn data<'a>(&mut self, ledger: &mut Ledger, from: Side, chunk: Chunk<'a>) -> Option<Switch<'a>> {
        let reader = &mut self.readers[from];
        let packet_begins = reader.frame != chunk.seen.frame;
        reader.frame = chunk.seen.frame;
        if packet_begins && matches!(reader.state, State::Blind) {
            self.resynchronise(ledger, from, &chunk);
        }
        let mut rest = chunk;
        while !rest.bytes.is_empty() {
            let taken = self.take(ledger, from, &rest);
            rest = after(rest, taken);
            if let Some(onward) = self.onward.take() {
                let eager = self.release();
                self.finish(ledger);
                return Some(Switch { onward, eager, rest });
            }
            if std::mem::take(&mut self.refused) {
                self.ask_again(ledger);
            }
        }
        if rest.cut > 0 {
            self.missing(ledger, from, Gap::new(rest.offset, u64::from(rest.cut), rest.seen), true);
        }
        None
    }

    /// CONNECT was refused: what the requester sent after it is a request like any other.
    fn ask_again(&mut self, ledger: &mut Ledger) {
        let held = self.release();
        for event in held.iter().flat_map(Held::events) {
            match event {
                // Only a response ends HTTP, and these are requests: no switch can come of it.
                Event::Data(from, chunk) => drop(self.data(ledger, from, chunk)),
                Event::Gap(from, gap) => self.gap(ledger, from, gap),
                Event::Fin(from, seen) => self.fin(ledger, from, seen),
            }
        }
    }

    pub fn gap(&mut self, ledger: &mut Ledger, from: Side, gap: Gap) {
        self.missing(ledger, from, gap, false);
    }

    /// That side will send no more.
    pub fn fin(&mut self, ledger: &mut Ledger, from: Side, seen: Moment) {
        match &mut self.readers[from].state {
            State::Body(Body::UntilClose) | State::Blind => self.end(ledger, from),
            State::Eager(held) => held.push(Event::Fin(from, seen)),
            _ => {}
        }
    }

    /// The connection is over: what is incomplete goes out as it stands.
    pub fn finish(&mut self, ledger: &mut Ledger) {
        for from in [self.requester, self.requester.peer()] {
            if let State::Head { kept, .. } = &mut self.readers[from].state {
                let kept = std::mem::take(kept);
                self.go_blind(ledger, from, &kept);
            }
            self.note(ledger, from);
            self.found(ledger, from);
            self.readers[from].state = State::Start;
        }
        ledger.settle_all();
    }

    /// First byte of a response that is not yet in the ledger.
    pub fn pending(&self) -> Option<Moment> {
        let responder = &self.readers[self.requester.peer()];
        matches!(responder.state, State::Head { .. }).then_some(responder.span.first)?
    }

    #[cfg(test)]
    pub fn held(&self) -> usize {
        let held = |reader: &Reader| match &reader.state {
            State::Head { kept, .. } => kept.capacity(),
            State::Eager(held) => held.len(),
            _ => 0,
        };
        held(&self.readers.client) + held(&self.readers.server)
    }

    /// Takes in bytes from the front; returns how many, at least one.
    fn take(&mut self, ledger: &mut Ledger, from: Side, chunk: &Chunk<'_>) -> usize {
        let bytes = chunk.bytes;
        match &mut self.readers[from].state {
            State::Start => {
                // Stray line ends before a message are no part of it (RFC 9112 section 2.2).
                let stray = bytes.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
                if stray > 0 {
                    return stray;
                }
                self.begin(ledger, from, chunk);
                self.take_head(ledger, from, chunk)
            }
            State::Head { .. } => self.take_head(ledger, from, chunk),
            State::Body(_) => self.take_body(ledger, from, chunk),
            State::Blind => {
                let reader = &mut self.readers[from];
                reader.span.extend(chunk.seen, bytes.len() as u64);
                if let Some((_, until)) = &mut reader.lost {
                    *until = until.max(chunk.seen);
                }
                self.note(ledger, from);
                bytes.len()
            }
            State::Eager(held) => {
                held.push(Event::Data(from, Chunk { cut: 0, ..*chunk }));
                bytes.len()
            }
        }
    }

    /// A message begins here.
    fn begin(&mut self, ledger: &mut Ledger, from: Side, chunk: &Chunk<'_>) {
        let reader = &mut self.readers[from];
        reader.state = State::Head { kept: Vec::new(), end: EmptyLine::default() };
        reader.span = Span::default();
        (reader.offset, reader.acked) = (chunk.offset, chunk.acked);
        if from == self.requester {
            reader.number = Some(ledger.open(from, "unknown", chunk.offset));
            // Whoever asks again has got the response before.
            if matches!(self.readers[from.peer()].state, State::Blind) {
                self.end(ledger, from.peer());
            }
        }
    }

    fn take_head(&mut self, ledger: &mut Ledger, from: Side, chunk: &Chunk<'_>) -> usize {
        let asks = from == self.requester;
        let reader = &mut self.readers[from];
        let State::Head { kept, end } = &mut reader.state else {
            return chunk.bytes.len();
        };
        let room = MAX_HEAD.saturating_sub(kept.len());
        let found = end.find(chunk.bytes).filter(|&n| n <= room);
        let taken = found.unwrap_or(chunk.bytes.len().min(room));
        let piece = chunk.bytes.get(..taken).unwrap_or_default();
        reader.span.extend(chunk.seen, taken as u64);
        // A head that is whole in one chunk, as most are, is read where it lies.
        let mut kept = std::mem::take(kept);
        let head = if kept.is_empty() && found.is_some() {
            piece
        } else {
            kept.extend_from_slice(piece);
            &kept
        };
        let guess = if asks { head::may_be_request(head) } else { head::sniff_response(head) };
        if guess == Guess::No || found.is_none() && head.len() >= MAX_HEAD {
            self.go_blind(ledger, from, head);
        } else if found.is_some() {
            let understood =
                if asks { self.request(ledger, from, head) } else { self.response(ledger, from, head, true) };
            if !understood {
                self.go_blind(ledger, from, head);
            }
        } else {
            self.readers[from].keep(kept);
            if asks {
                self.note(ledger, from);
            }
        }
        taken.max(1)
    }

    fn take_body(&mut self, ledger: &mut Ledger, from: Side, chunk: &Chunk<'_>) -> usize {
        let reader = &mut self.readers[from];
        if std::mem::take(&mut reader.expecting) {
            // Refused instead of 100: some clients skip the body and ask again (RFC 9110 section 10.1.1).
            let number = reader.number;
            let answered = answered(ledger, number);
            if answered && head::sniff_request(chunk.bytes) == Guess::Yes {
                self.end(ledger, from);
                return self.take(ledger, from, chunk);
            }
        }
        let reader = &mut self.readers[from];
        let State::Body(body) = &mut reader.state else {
            return chunk.bytes.len();
        };
        let fed = body.feed(chunk.bytes);
        let taken = if let Fed::End(n) = fed { n } else { chunk.bytes.len() };
        reader.span.extend(chunk.seen, taken as u64);
        match fed {
            Fed::More => {}
            Fed::End(_) => self.end(ledger, from),
            Fed::Broken => self.go_blind(ledger, from, &[]),
        }
        taken.max(1)
    }

    /// A request's head is complete; false when it is not HTTP/1.
    fn request(&mut self, ledger: &mut Ledger, from: Side, head: &[u8]) -> bool {
        let Some(request) = Request::read(head) else {
            return false;
        };
        if request.protocol.is_none() {
            return false;
        }
        let reader = &mut self.readers[from];
        let framing = request.framing;
        reader.expecting = request.expects_continue;
        let connect = request.method.as_deref() == Some("CONNECT");
        if let Some(entry) = reader.number.and_then(|n| ledger.get(n)) {
            keepalive(&mut entry.exchange, from, request.keepalive);
            describe(&mut entry.exchange, request);
        }
        self.body(ledger, from, if connect { None } else { framing });
        if connect {
            self.readers[from].state = State::Eager(Held::new(MAX_EAGER));
        }
        true
    }

    /// A response's head, or with `whole` unset what is left of one; false when it is not HTTP/1.
    fn response(&mut self, ledger: &mut Ledger, from: Side, head: &[u8], whole: bool) -> bool {
        let Some(response) = Response::read(head) else {
            return false;
        };
        let status = response.status;
        if matches!(status, 100 | 102..=199) {
            // Not the response that the client waits for (RFC 9110 section 15.2).
            let reader = &mut self.readers[from];
            reader.span = Span::default();
            reader.number = None;
            reader.state = if whole { State::Start } else { State::Blind };
            return true;
        }
        let number = self.pair(ledger, from, Some(status));
        let number = number.unwrap_or_else(|| ledger.open(self.requester, "unknown", u64::MAX));
        self.readers[from].number = Some(number);
        let Some(exchange) = ledger.get(number).map(|e| &mut e.exchange) else {
            return true;
        };
        exchange.status = Some(status);
        if exchange.protocol == "unknown" {
            exchange.protocol = response.protocol;
        }
        let (connect, head_only) = match exchange.method.as_deref() {
            Some("CONNECT") => (true, false),
            method => (false, method == Some("HEAD")),
        };
        let tunnel = connect && matches!(status, 200..=299);
        let framing = if tunnel || head_only { None } else { response.framing };
        if whole {
            // A message that ends with the connection leaves no connection to keep.
            let keeps = response.keepalive.map(|k| k && framing != Some(Framing::UntilClose));
            keepalive(exchange, from, keeps);
        }
        self.onward = match status {
            101 => Some(Onward::Upgrade(response.upgrade)),
            _ if tunnel => Some(Onward::Tunnel),
            _ => None,
        };
        self.refused = connect && !tunnel;
        self.note(ledger, from);
        // Whoever answers has got the request.
        let asker = &self.readers[self.requester];
        if matches!(asker.state, State::Blind) && asker.number == Some(number) {
            self.end(ledger, self.requester);
        }
        if whole || self.onward.is_some() {
            self.body(ledger, from, framing);
        } else {
            self.readers[from].state = State::Blind;
        }
        true
    }

    /// The head is over: what follows?
    fn body(&mut self, ledger: &mut Ledger, from: Side, framing: Option<Framing>) {
        let body = match framing {
            None => return self.end(ledger, from),
            Some(Framing::Length(n)) => Body::Fixed(n),
            Some(Framing::Chunked) => Body::Chunked(Chunked::new()),
            Some(Framing::UntilClose) => Body::UntilClose,
        };
        self.note(ledger, from);
        self.readers[from].state = State::Body(body);
    }

    /// The exchange that this response answers.
    fn pair(&self, ledger: &Ledger, from: Side, status: Option<u16>) -> Option<u32> {
        let acked = self.readers[from].acked;
        // 408 may be sent because no request came: one that crossed it on the way is not its cause.
        let crossed = |e: &Entry| status == Some(408) && acked <= e.offset && e.exchange.request.first.is_some();
        ledger.unanswered(|e| !crossed(e))
    }

    /// The current message of that side is over.
    fn end(&mut self, ledger: &mut Ledger, from: Side) {
        let reader = &mut self.readers[from];
        reader.span.done = true;
        self.note(ledger, from);
        self.found(ledger, from);
        let reader = &mut self.readers[from];
        (reader.state, reader.number, reader.span) = (State::Start, None, Span::default());
        ledger.settle();
    }

    /// Copies what is known of the current message to its exchange.
    fn note(&self, ledger: &mut Ledger, from: Side) {
        let reader = &self.readers[from];
        if let Some(entry) = reader.number.and_then(|n| ledger.get(n)) {
            let asks = from == self.requester;
            *(if asks { &mut entry.exchange.request } else { &mut entry.exchange.response }) = reader.span;
        }
    }

    /// The proxy has answered CONNECT: hands back what was sent too early.
    fn release(&mut self) -> Option<Held> {
        let state = &mut self.readers[self.requester].state;
        match std::mem::take(state) {
            State::Eager(held) => Some(held),
            other => {
                *state = other;
                None
            }
        }
    }
}

impl Reader {
    fn keep(&mut self, head: Vec<u8>) {
        if let State::Head { kept, .. } = &mut self.state {
            *kept = head;
        }
    }
}

fn answered(ledger: &mut Ledger, number: Option<u32>) -> bool {
    let entry = number.and_then(|n| ledger.get(n));
    entry.is_some_and(|e| e.exchange.response.first.is_some())
}

fn describe(exchange: &mut Exchange, request: Request) {
    exchange.method = request.method;
    exchange.target = request.target;
    exchange.host = request.host;
    exchange.protocol = request.protocol.unwrap_or(exchange.protocol);
}

fn keepalive(exchange: &mut Exchange, side: Side, keeps: Option<bool>) {
    match side {
        Side::Client => exchange.client_keepalive = keeps,
        Side::Server => exchange.server_keepalive = keeps,
    }
}

/// What is left of a chunk after its first `n` bytes.
fn after(chunk: Chunk<'_>, n: usize) -> Chunk<'_> {
    let bytes = chunk.bytes.get(n..).unwrap_or_default();
    Chunk { bytes, offset: chunk.offset + n as u64, ..chunk }
}
