//! HTTP/1.0 and 1.1 in clear: heads are read, bodies are counted, responses paired first-in first-out.
//!
//! RFC 9112 section 6.3 (where a message ends) and 9.3 (pipelining). In: the chunks and gaps of
//! both sides. Out: exchanges in the [`Ledger`], and the protocol that follows CONNECT or Upgrade.
//!
//! A direction in which nobody can know where the message ends is *out of step*: what comes is taken as part of that
//! message until a packet begins like a message, or the other side's next message shows that it is
//! over. What this touches is marked `inferred`. Nothing grows: heads are kept up to [`MAX_HEAD`].

mod body;
pub(super) mod head;
mod missing;

use self::body::{Body, Chunked, EmptyLine, Fed};
use self::head::{Framing, Request, Response, Upgrade};
use super::backlog::{Backlog, Event};
use super::by_design;
use super::dns::carried::{self, Carried};
use super::generic::Unread;
use super::http2::Http2;
use super::ledger::{Entry, Ledger};
use super::reader::{Onward, Reader, Start, Switch, Verdict};
use super::trail::Trail;
use super::websocket::WebSocket;
use super::{Exchange, Provenance, Span};
use crate::stream::{BySide, Chunk, Gap, Moment, Side};

/// Longest head that is read; servers allow 8 to 64 KiB.
const MAX_HEAD: usize = 64 * 1024;
/// What a client may send through a tunnel before the proxy has agreed to it: a large ClientHello.
const MAX_EARLY: usize = 16 * 1024;

pub(super) struct Http1 {
    directions: BySide<Direction>,
    start: Start,
    /// `http/1.0` or `http/1.1`: the protocol of the exchange that was answered last, before that of the first request.
    app: Option<&'static str>,
    /// Both are set while a response's head is taken in and acted on by [`Http1::read`].
    granted: Option<Granted>,
    refused: bool,
}

/// What a response has ended HTTP with.
#[derive(Clone, Copy)]
enum Granted {
    /// CONNECT: anything may follow.
    Tunnel,
    /// 101 (Switching Protocols).
    Upgrade(Upgrade),
}

/// One direction.
#[derive(Default)]
struct Direction {
    state: State,
    /// The exchange that the current message belongs to.
    number: Option<u32>,
    /// The current message. The ledger gets a copy when something is learned.
    span: Span,
    /// Stream offset and acknowledgement of the current message's first byte.
    offset: u64,
    acked: u64,
    trail: Trail,
    /// The body waits for 100 (Continue).
    expecting: bool,
    /// Nothing of the body has come yet.
    bodiless: bool,
    /// The body is DNS.
    carried: Option<Box<Carried>>,
}

#[derive(Default)]
enum State {
    /// Between two messages.
    #[default]
    Start,
    Head {
        buffer: Vec<u8>,
        end: EmptyLine,
    },
    Body(Body),
    OutOfStep,
    /// After CONNECT, until it is answered: what the requester sends too early.
    Waiting(Backlog),
}

impl Http1 {
    pub fn new(start: Start) -> Self {
        Self { directions: BySide::default(), start, app: None, granted: None, refused: false }
    }

    /// Takes in bytes, up to the point where the connection stops to speak HTTP.
    fn read<'a>(&mut self, ledger: &mut Ledger, from: Side, chunk: Chunk<'a>) -> Option<Switch<'a>> {
        let direction = &mut self.directions[from];
        if direction.trail.begins_packet(chunk.seen) && matches!(direction.state, State::OutOfStep) {
            self.resynchronise(ledger, from, &chunk);
        }
        let mut rest = chunk;
        while !rest.bytes.is_empty() {
            let taken = self.take(ledger, from, &rest);
            rest = after(rest, taken);
            if let Some(granted) = self.granted.take() {
                let early = self.take_early(ledger);
                self.finish(ledger);
                return Some(Switch { onward: self.onward(ledger, granted), name: self.app, early, rest });
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
        let early = self.take_early(ledger);
        for event in early.iter().flat_map(Backlog::events) {
            match event {
                // Only a response ends HTTP, and these are requests: no switch can come of it.
                Event::Data(from, chunk) => drop(self.read(ledger, from, chunk)),
                Event::Gap(from, gap) => self.gap(ledger, from, gap),
                Event::Fin(from, seen) => self.fin(ledger, from, seen),
            }
        }
    }

    /// What is spoken after a response that ended HTTP.
    fn onward(&self, ledger: &mut Ledger, granted: Granted) -> Onward {
        match granted {
            Granted::Tunnel | Granted::Upgrade(Upgrade::Tls) => Onward::Anything,
            Granted::Upgrade(Upgrade::Http2) => Onward::Reader(Box::new(Http2::upgraded(ledger))),
            Granted::Upgrade(Upgrade::WebSocket) if let Some(switched) = ledger.switched() => {
                Onward::Reader(Box::new(WebSocket::after(ledger, switched.number)))
            }
            Granted::Upgrade(upgrade) => Onward::Reader(Box::new(Unread::of(self.start, upgrade.name(), false))),
        }
    }

    /// Takes in bytes from the front; returns how many, at least one.
    fn take(&mut self, ledger: &mut Ledger, from: Side, chunk: &Chunk<'_>) -> usize {
        let bytes = chunk.bytes;
        match &mut self.directions[from].state {
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
            State::OutOfStep => {
                let direction = &mut self.directions[from];
                direction.span.extend(chunk.seen, bytes.len() as u64);
                direction.trail.go_on(chunk.seen);
                self.note(ledger, from);
                bytes.len()
            }
            State::Waiting(early) => {
                early.push(Event::Data(from, Chunk { cut: 0, ..*chunk }));
                bytes.len()
            }
        }
    }

    /// A message begins here.
    fn begin(&mut self, ledger: &mut Ledger, from: Side, chunk: &Chunk<'_>) {
        let direction = &mut self.directions[from];
        direction.state = State::Head { buffer: Vec::new(), end: EmptyLine::default() };
        direction.span = Span::default();
        (direction.offset, direction.acked) = (chunk.offset, chunk.acked);
        if ledger.asks(from) {
            direction.number = Some(ledger.open("unknown", chunk.offset));
            // Whoever asks again has got the response before.
            if matches!(self.directions[from.peer()].state, State::OutOfStep) {
                self.end(ledger, from.peer());
            }
        }
    }

    fn take_head(&mut self, ledger: &mut Ledger, from: Side, chunk: &Chunk<'_>) -> usize {
        let asks = ledger.asks(from);
        let direction = &mut self.directions[from];
        let State::Head { buffer, end } = &mut direction.state else {
            return chunk.bytes.len();
        };
        let room = MAX_HEAD.saturating_sub(buffer.len());
        let length = end.find(chunk.bytes).filter(|&n| n <= room);
        let taken = length.unwrap_or(chunk.bytes.len().min(room));
        let part = chunk.bytes.get(..taken).unwrap_or_default();
        direction.span.extend(chunk.seen, taken as u64);
        // A head that is whole in one chunk, as most are, is read where it lies.
        let mut buffer = std::mem::take(buffer);
        let head = if buffer.is_empty() && length.is_some() {
            part
        } else {
            buffer.extend_from_slice(part);
            &buffer
        };
        let verdict = if asks { head::may_be_request(head) } else { head::sniff_response(head) };
        if verdict == Verdict::No || length.is_none() && head.len() >= MAX_HEAD {
            self.go_out_of_step(ledger, from, head);
        } else if length.is_some() {
            let understood =
                if asks { self.request(ledger, from, head) } else { self.response(ledger, from, head, true) };
            if !understood {
                self.go_out_of_step(ledger, from, head);
            }
        } else {
            self.directions[from].keep(buffer);
            if asks {
                self.note(ledger, from);
            }
        }
        taken.max(1)
    }

    fn take_body(&mut self, ledger: &mut Ledger, from: Side, chunk: &Chunk<'_>) -> usize {
        let direction = &mut self.directions[from];
        if std::mem::take(&mut direction.expecting) {
            // Refused instead of 100: some clients skip the body and ask again (RFC 9110 section 10.1.1).
            let number = direction.number;
            let answered = answered(ledger, number);
            if answered && head::sniff_request(chunk.bytes) == Verdict::Yes {
                self.end(ledger, from);
                return self.take(ledger, from, chunk);
            }
        }
        let direction = &mut self.directions[from];
        let State::Body(body) = &mut direction.state else {
            return chunk.bytes.len();
        };
        let before = direction.carried.is_some().then_some(*body);
        let fed = body.feed(chunk.bytes);
        let taken = if let Fed::End(n) = fed { n } else { chunk.bytes.len() };
        if let (Some(carried), Some(before)) = (&mut direction.carried, before) {
            carried.data(ledger, from, before.content(chunk.bytes.get(..taken).unwrap_or_default()));
        }
        direction.span.extend(chunk.seen, taken as u64);
        if std::mem::take(&mut direction.bodiless) {
            direction.span.content = Some(chunk.seen);
        }
        match fed {
            Fed::More => {}
            Fed::End(_) => self.end(ledger, from),
            Fed::Broken => self.go_out_of_step(ledger, from, &[]),
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
        let direction = &mut self.directions[from];
        let framing = request.framing;
        direction.expecting = request.expects_continue == Some(true);
        let connect = request.method.as_deref() == Some("CONNECT");
        if let Some(entry) = direction.number.and_then(|n| ledger.get(n)) {
            keepalive(&mut entry.exchange, from, request.keepalive);
        }
        self.describe(ledger, from, request);
        self.body(ledger, from, if connect { None } else { framing });
        if connect {
            self.directions[from].state = State::Waiting(Backlog::new(MAX_EARLY));
        }
        true
    }

    /// What a request's head says of its exchange, and of the connection as long as nothing was answered on it.
    fn describe(&mut self, ledger: &mut Ledger, from: Side, request: Request) {
        let Some(entry) = self.directions[from].number.and_then(|n| ledger.get(n)) else {
            return;
        };
        self.app = self.app.or(request.protocol);
        let exchange = &mut entry.exchange;
        exchange.method = request.method;
        exchange.target = request.target;
        exchange.host = request.host;
        exchange.user_agent = request.user_agent;
        exchange.expects_continue = request.expects_continue;
        exchange.provenance = Provenance::joined(request.provenance, exchange.provenance.take());
        exchange.protocol = request.protocol.unwrap_or(exchange.protocol);
        by_design::note_request(exchange, false, request.is_awaiting);
        if carried::note(exchange, request.is_dns) {
            self.directions[from].carried = Some(Box::new(Carried::new(exchange.number)));
        }
    }

    /// A response's head, or with `whole` unset what is left of one; false when it is not HTTP/1.
    fn response(&mut self, ledger: &mut Ledger, from: Side, head: &[u8], whole: bool) -> bool {
        let Some(response) = Response::read(head) else {
            return false;
        };
        let status = response.status;
        if matches!(status, 100 | 102..=199) {
            // Not the response that the client waits for (RFC 9110 section 15.2).
            let waiting = self.pair(ledger, from, None).filter(|_| whole && status == 100);
            if let Some(entry) = waiting.and_then(|number| ledger.get(number)) {
                entry.exchange.continued = entry.exchange.continued.or(self.directions[from].span.first);
            }
            let direction = &mut self.directions[from];
            direction.span = Span::default();
            direction.number = None;
            direction.state = if whole { State::Start } else { State::OutOfStep };
            return true;
        }
        let number = self.pair(ledger, from, Some(status));
        let number = number.unwrap_or_else(|| ledger.open("unknown", u64::MAX));
        self.directions[from].number = Some(number);
        let Some(exchange) = ledger.get(number).map(|e| &mut e.exchange) else {
            return true;
        };
        exchange.status = Some(status.into());
        exchange.server_software = response.server_software;
        exchange.keep_alive_timeout = response.keep_alive_timeout;
        by_design::note_response(exchange, response.is_stream, self.directions[from].span);
        exchange.provenance = Provenance::joined(exchange.provenance.take(), response.provenance);
        // The lower version is spoken: a server may name a higher one than it was asked in (RFC 9110 section 6.2).
        if exchange.protocol != "http/1.0" {
            exchange.protocol = response.protocol;
        }
        self.app = Some(exchange.protocol);
        if exchange.dns_over.is_some() {
            self.directions[from].carried = Some(Box::new(Carried::new(number)));
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
        self.granted = match status {
            101 => Some(Granted::Upgrade(response.upgrade)),
            _ if tunnel => Some(Granted::Tunnel),
            _ => None,
        };
        self.refused = connect && !tunnel;
        self.note(ledger, from);
        // Whoever answers has got the request.
        let asker = &self.directions[ledger.requester];
        if matches!(asker.state, State::OutOfStep) && asker.number == Some(number) {
            self.end(ledger, ledger.requester);
        }
        if whole || self.granted.is_some() {
            self.body(ledger, from, framing);
        } else {
            self.directions[from].state = State::OutOfStep;
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
        self.directions[from].state = State::Body(body);
        self.directions[from].bodiless = true;
    }

    /// The exchange that this response answers.
    fn pair(&self, ledger: &Ledger, from: Side, status: Option<u16>) -> Option<u32> {
        let acked = self.directions[from].acked;
        // 408 may be sent because no request came: one that crossed it on the way is not its cause.
        let crossed = |e: &Entry| status == Some(408) && acked <= e.offset && e.exchange.request.first.is_some();
        ledger.unanswered(|e| !crossed(e))
    }

    /// The current message of that side is over.
    fn end(&mut self, ledger: &mut Ledger, from: Side) {
        let direction = &mut self.directions[from];
        direction.span.done = true;
        if let Some(mut carried) = direction.carried.take() {
            carried.end(ledger, from);
        }
        self.note(ledger, from);
        self.directions[from].trail.end(ledger);
        let direction = &mut self.directions[from];
        (direction.state, direction.number, direction.span) = (State::Start, None, Span::default());
        ledger.release();
    }

    /// Copies what is known of the current message to its exchange.
    fn note(&self, ledger: &mut Ledger, from: Side) {
        let direction = &self.directions[from];
        if let Some(entry) = direction.number.and_then(|n| ledger.get(n)) {
            *entry.exchange.message(from) = direction.span;
        }
    }

    /// The proxy has answered CONNECT: hands back what was sent too early.
    fn take_early(&mut self, ledger: &Ledger) -> Option<Backlog> {
        let state = &mut self.directions[ledger.requester].state;
        match std::mem::take(state) {
            State::Waiting(early) => Some(early),
            other => {
                *state = other;
                None
            }
        }
    }
}

impl Reader for Http1 {
    fn data<'a>(&mut self, ledger: &mut Ledger, from: Side, chunk: Chunk<'a>) -> Option<Switch<'a>> {
        self.read(ledger, from, chunk)
    }

    fn gap(&mut self, ledger: &mut Ledger, from: Side, gap: Gap) {
        self.missing(ledger, from, gap, false);
    }

    fn fin(&mut self, ledger: &mut Ledger, from: Side, seen: Moment) {
        match &mut self.directions[from].state {
            State::Body(Body::UntilClose) | State::OutOfStep => self.end(ledger, from),
            State::Waiting(early) => early.push(Event::Fin(from, seen)),
            _ => {}
        }
    }

    fn finish(&mut self, ledger: &mut Ledger) {
        for from in [ledger.requester, ledger.requester.peer()] {
            if let State::Head { buffer, .. } = &mut self.directions[from].state {
                let buffer = std::mem::take(buffer);
                self.go_out_of_step(ledger, from, &buffer);
            }
            self.note(ledger, from);
            self.directions[from].trail.end(ledger);
            self.directions[from].state = State::Start;
        }
        ledger.release_all();
    }

    /// A request is in the ledger from its first byte on, a response once its head is read.
    fn pending(&self) -> Option<Moment> {
        let unread = [self.directions.client.unread(), self.directions.server.unread()];
        Moment::earliest(unread)
    }

    fn app(&self) -> Option<&'static str> {
        self.app
    }

    #[cfg(test)]
    fn held(&self) -> usize {
        let held = |direction: &Direction| match &direction.state {
            State::Head { buffer, .. } => buffer.capacity(),
            State::Waiting(early) => early.len(),
            _ => 0,
        };
        held(&self.directions.client) + held(&self.directions.server)
    }
}

impl Direction {
    /// First byte of a head whose exchange is not known.
    fn unread(&self) -> Option<Moment> {
        (matches!(self.state, State::Head { .. }) && self.number.is_none()).then_some(self.span.first)?
    }

    fn keep(&mut self, head: Vec<u8>) {
        if let State::Head { buffer, .. } = &mut self.state {
            *buffer = head;
        }
    }
}

fn answered(ledger: &mut Ledger, number: Option<u32>) -> bool {
    let entry = number.and_then(|n| ledger.get(n));
    entry.is_some_and(|e| e.exchange.response.first.is_some())
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
