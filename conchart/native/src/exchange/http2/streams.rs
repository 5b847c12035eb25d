//! The streams of an HTTP/2 connection, and the exchange that each of them carries (RFC 9113 section 5).
//!
//! In: what frames say. Out: exchanges in the [`Ledger`]. Bounded: [`MAX_STREAMS`] are followed; beyond that the
//! oldest one's exchange stays as it is, in doubt.

use std::collections::BTreeMap;

use super::frame::Header;
use super::grpc::{self, Call};
use super::headers::Headers;
use crate::bytes::Fields;
use crate::exchange::dns::carried::{self, Carried};
use crate::exchange::ledger::{Entry, GUESSED, Ledger};
use crate::exchange::streamed::Streamed;
use crate::exchange::websocket::{self, WebSocket};
use crate::exchange::{DnsOver, Exchange, Goaway, Outcome, Provenance, Span, by_design};
use crate::stream::{Moment, Side};

/// Streams that are open at once; servers allow about 100.
pub(super) const MAX_STREAMS: usize = 1024;
/// Offers of alternatives that wait for a response.
const MAX_OFFERS: usize = 8;
/// Longest offer that is kept: an origin and the members of Alt-Svc.
const MAX_OFFER: usize = 1024;

struct Stream {
    /// Its exchange.
    number: u32,
    /// The request's first header block was read.
    described: bool,
    /// Which sides have said all they had to say.
    requested: bool,
    answered: bool,
    /// What is said in it, where that is read.
    content: Option<Content>,
}

/// What is said in a stream.
enum Content {
    Call(Box<Streamed<Call>>),
    Dns(Box<Carried>),
    Socket(Box<Streamed<WebSocket>>),
}

impl Content {
    fn end(&mut self, ledger: &mut Ledger, from: Side) {
        match self {
            Self::Call(call) => call.end(ledger, from),
            Self::Dns(carried) => carried.end(ledger, from),
            Self::Socket(socket) => socket.end(ledger, from),
        }
    }
}

/// Where else a service is, by an ALTSVC frame (RFC 7838 section 4).
struct Offer {
    /// 0: what is meant is the origin.
    stream: u32,
    authority: Box<str>,
    members: Box<[u8]>,
}

pub(in crate::exchange) struct Streams {
    open: BTreeMap<u32, Stream>,
    protocol: &'static str,
    /// A stream may begin before one with a lower number.
    any_order: bool,
    /// So many of them have content that is read.
    contents: usize,
    /// One of them was a tunnel.
    has_tunnels: bool,
    /// What ALTSVC frames say, until a response comes that it is about.
    offers: Vec<Offer>,
    /// Highest stream that the requester has opened.
    latest: u32,
    /// Streams up to this one may have been opened unseen.
    unseen: u32,
}

impl Streams {
    pub fn new() -> Self {
        Self {
            open: BTreeMap::new(),
            protocol: "h2",
            any_order: false,
            contents: 0,
            has_tunnels: false,
            offers: Vec::new(),
            latest: 0,
            unseen: 0,
        }
    }

    /// Those of HTTP/3, whose packets are their own (RFC 9114 section 6.1).
    pub fn over_quic() -> Self {
        Self { protocol: "h3", any_order: true, ..Self::new() }
    }

    /// Streams of before may go on.
    pub fn midstream() -> Self {
        Self { unseen: u32::MAX, ..Self::new() }
    }

    /// Stream 1 answers a request of HTTP/1.1.
    pub fn upgraded(&mut self, ledger: &mut Ledger, switched: &Exchange) {
        let number = self.insert(ledger, 1, u64::MAX);
        self.latest = 1;
        if let Some(stream) = self.open.get_mut(&1) {
            (stream.described, stream.requested) = (true, true);
        }
        if let Some(entry) = ledger.get(number) {
            let exchange = &mut entry.exchange;
            exchange.request = Span { bytes: 0, done: true, ..switched.request };
            (exchange.method, exchange.host) = (switched.method.clone(), switched.host.clone());
            exchange.target = switched.target.clone();
            exchange.user_agent.clone_from(&switched.user_agent);
            exchange.expects_continue = switched.expects_continue;
            exchange.provenance.clone_from(&switched.provenance);
        }
    }

    /// HEADERS begin: a request, unless the stream is known.
    pub fn open(&mut self, ledger: &mut Ledger, from: Side, id: u32, begun: Moment, offset: u64) {
        if self.open.contains_key(&id) {
            return;
        }
        let asks = ledger.asks(from);
        let fresh = asks && (self.any_order || id > self.latest) && id % 2 == 1;
        let unseen = id <= self.unseen && (!asks || id > self.latest);
        if !fresh && !unseen {
            return;
        }
        let number = self.insert(ledger, id, offset);
        if asks {
            self.latest = self.latest.max(id);
            if self.unseen == u32::MAX {
                self.unseen = id;
            }
            if let Some(entry) = ledger.get(number) {
                entry.exchange.request.extend(begun, 0);
            }
        } else if let Some(entry) = ledger.get(number) {
            entry.exchange.doubt(GUESSED);
        }
    }

    /// A request's first frame goes on: so far it is all there is of the request.
    pub fn touch(&self, ledger: &mut Ledger, from: Side, id: u32, block: Span) {
        if ledger.asks(from)
            && self.open.get(&id).is_some_and(|stream| !stream.described)
            && let Some(exchange) = self.exchange(ledger, id)
        {
            exchange.request = block;
        }
    }

    /// Bytes of a message's content.
    pub fn extend(&self, ledger: &mut Ledger, from: Side, id: u32, seen: Option<Moment>, bytes: u64) {
        if let Some(exchange) = self.exchange(ledger, id) {
            let asks = from == exchange.requester;
            if asks && exchange.tunnel.is_some() {
                exchange.request.extend_unseen(bytes);
                if let Some(seen) = seen.filter(|_| exchange.response.first.is_some()) {
                    exchange.response.extend(seen, 0);
                }
                return;
            }
            let span = exchange.message(from);
            match seen {
                Some(seen) => span.extend(seen, bytes),
                None => span.extend_unseen(bytes),
            }
        }
    }

    /// A frame with content begins.
    pub fn content(&self, ledger: &mut Ledger, from: Side, id: u32, begun: Moment) {
        if let Some(exchange) = self.exchange(ledger, id) {
            exchange.message(from).content.get_or_insert(begun);
        }
    }

    /// A header block is read: a request's, a response's, or trailers.
    pub fn headers(&mut self, ledger: &mut Ledger, from: Side, id: u32, block: Span, headers: Headers) {
        let (asks, requester) = (ledger.asks(from), ledger.requester);
        let Some(stream) = self.open.get_mut(&id) else {
            return;
        };
        let Some(exchange) = ledger.get(stream.number).map(|entry| &mut entry.exchange) else {
            return;
        };
        if asks {
            if std::mem::replace(&mut stream.described, true) {
                add(&mut exchange.request, block);
            } else {
                exchange.request = block;
                let (is_grpc, is_dns, is_awaiting) = (headers.is_grpc, headers.is_dns, headers.is_awaiting);
                headers.describe(exchange);
                by_design::note_request(exchange, is_grpc, is_awaiting);
                self.has_tunnels |= exchange.tunnel.is_some();
                if is_grpc {
                    self.call(ledger, from, id);
                } else if carried::note(exchange, is_dns) {
                    self.carry(ledger, id);
                }
            }
            return;
        }
        if headers.status == Some(100) {
            exchange.continued = exchange.continued.or(block.first);
        }
        if headers.status.is_some_and(|status| matches!(status, 100..=199)) {
            // Not the response that the client waits for (RFC 9110 section 15.2).
            return;
        }
        let first = exchange.response.first.is_none();
        add(&mut exchange.response, block);
        // Trailers say how a call ended; without content, the one block of the response does.
        let (is_grpc, is_dns, grpc_status) = (headers.is_grpc, headers.is_dns, headers.grpc_status);
        if first {
            // Of gRPC, the status of HTTP tells nothing but that a server of gRPC responds.
            exchange.status = headers.status.filter(|&status| !is_grpc || status != 200).map(Into::into);
            by_design::note_response(exchange, headers.is_stream, block);
            exchange.server_software = headers.server;
            exchange.provenance = Provenance::joined(exchange.provenance.take(), headers.provenance);
            let host = exchange.host.as_deref().unwrap_or_default();
            let meant = self.offers.extract_if(.., |offer| {
                offer.stream == id || offer.stream == 0 && offer.authority.eq_ignore_ascii_case(host)
            });
            for offer in meant {
                Provenance::note(&mut exchange.provenance, b"alt-svc", &offer.members);
            }
            if headers.status.is_none() {
                exchange.doubt(GUESSED);
            }
        }
        if let Some(tunnel) = exchange.tunnel.as_mut().filter(|_| first) {
            tunnel.done = block.last.filter(|_| exchange.status.is_some_and(|status| matches!(status, 200..=299)));
            if tunnel.done.is_some() && &*tunnel.kind == websocket::PROTOCOL && stream.content.is_none() {
                stream.content = Some(Content::Socket(Box::new(WebSocket::streamed(stream.number, requester))));
                self.contents += 1;
            }
        }
        if exchange.protocol == grpc::PROTOCOL || is_grpc {
            exchange.status = grpc_status.or(exchange.status);
        }
        if first && is_grpc {
            self.call(ledger, from, id);
        } else if first && is_dns {
            self.carry(ledger, id);
        }
    }

    /// The content of this stream is DNS.
    fn carry(&mut self, ledger: &mut Ledger, id: u32) {
        if let Some(stream) = self.open.get_mut(&id)
            && stream.content.is_none()
            && let Some(entry) = ledger.get(stream.number)
        {
            entry.exchange.dns_over = Some(DnsOver::Https);
            stream.content = Some(Content::Dns(Box::new(Carried::new(stream.number))));
            self.contents += 1;
        }
    }

    /// The header block that `from` sent on this stream says that gRPC follows.
    fn call(&mut self, ledger: &mut Ledger, from: Side, id: u32) {
        let by_requester = ledger.asks(from);
        let requester = ledger.requester;
        if let Some(stream) = self.open.get_mut(&id)
            && stream.content.is_none()
            && let Some(entry) = ledger.get(stream.number)
        {
            entry.exchange.protocol = grpc::PROTOCOL;
            stream.content = Some(Content::Call(Box::new(Call::streamed(stream.number, requester, by_requester))));
            self.contents += 1;
        }
    }

    /// An ALTSVC frame with that payload: a server tells of its alternatives, as the field Alt-Svc does.
    pub(super) fn offer(&mut self, ledger: &mut Ledger, from: Side, stream: u32, payload: &[u8]) {
        let mut fields = Fields(payload);
        let is_read = !ledger.asks(from) && payload.len() <= MAX_OFFER;
        let Some(origin) = fields.vec16().filter(|_| is_read) else { return };
        // The frame names an origin where the stream does not tell it, and nowhere else.
        if (stream == 0) == origin.is_empty() {
            return;
        }
        let members = fields.0;
        let is_answered = |exchange: &&mut Exchange| exchange.response.first.is_some();
        if let Some(exchange) = self.exchange(ledger, stream).filter(is_answered) {
            Provenance::note(&mut exchange.provenance, b"alt-svc", members);
        } else if self.offers.len() < MAX_OFFERS {
            let origin = String::from_utf8_lossy(origin);
            let authority = origin.split_once("://").map_or(&*origin, |(_, authority)| authority).into();
            self.offers.push(Offer { stream, authority, members: members.into() });
        }
    }

    /// Was one of them a tunnel?
    pub fn has_tunnels(&self) -> bool {
        self.has_tunnels
    }

    /// Content goes through a tunnel: in DATA frames, in DATAGRAM frames, or on streams of its own.
    pub fn tunnelled(&self, ledger: &mut Ledger, from: Side, id: u32, seen: Moment, bytes: u64, datagrams: u64) {
        if let Some(exchange) = self.exchange(ledger, id)
            && let Some(tunnel) = &mut exchange.tunnel
        {
            tunnel.bytes[from] = tunnel.bytes[from].saturating_add(bytes);
            tunnel.datagrams[from] = tunnel.datagrams[from].saturating_add(datagrams);
            if exchange.response.first.is_some() {
                exchange.response.extend(seen, 0);
            }
        }
    }

    /// Is this stream a tunnel, and of what?
    pub fn tunnel<'a>(&self, ledger: &'a mut Ledger, id: u32) -> Option<&'a str> {
        self.exchange(ledger, id)?.tunnel.as_ref().map(|tunnel| &*tunnel.kind)
    }

    /// Is there a stream whose content has to be read?
    pub fn reads_content(&self) -> bool {
        self.contents > 0
    }

    /// Content of a stream.
    pub fn data(&mut self, ledger: &mut Ledger, from: Side, id: u32, content: &[u8], seen: Moment) {
        match self.open.get_mut(&id).and_then(|stream| stream.content.as_mut()) {
            Some(Content::Call(call)) => call.data(ledger, from, content, seen),
            Some(Content::Dns(carried)) => carried.data(ledger, from, content.iter().copied()),
            Some(Content::Socket(socket)) => socket.data(ledger, from, content, seen),
            None => {}
        }
    }

    /// Bytes of a DATA frame are missing.
    pub(super) fn miss(
        &mut self,
        ledger: &mut Ledger,
        from: Side,
        data: Header,
        len: u64,
        sent: Option<Moment>,
        by: Moment,
    ) {
        match self.open.get_mut(&data.stream).and_then(|stream| stream.content.as_mut()) {
            Some(Content::Call(call)) if !data.is_padded() => call.miss(ledger, from, len, sent, by),
            Some(Content::Socket(socket)) if !data.is_padded() => socket.miss(ledger, from, len, sent, by),
            // Of the bytes of a padded frame, nobody knows which are content.
            Some(content) => content.end(ledger, from),
            None => {}
        }
    }

    /// The connection is over.
    pub fn finish(&mut self, ledger: &mut Ledger) {
        for stream in std::mem::take(&mut self.open).into_values() {
            self.close(ledger, stream);
        }
    }

    /// Nothing more is said on a stream.
    fn close(&mut self, ledger: &mut Ledger, stream: Stream) {
        if let Some(mut content) = stream.content {
            self.contents = self.contents.saturating_sub(1);
            content.end(ledger, Side::Client);
            content.end(ledger, Side::Server);
        }
    }

    /// A server promises to answer what nobody asked (RFC 9113 section 8.4): there is no request in the streams.
    pub fn promise(&mut self, ledger: &mut Ledger, id: u32, headers: Headers) {
        if self.open.contains_key(&id) {
            return;
        }
        let number = self.insert(ledger, id, u64::MAX);
        if let Some(stream) = self.open.get_mut(&id) {
            (stream.described, stream.requested) = (true, true);
        }
        if let Some(entry) = ledger.get(number) {
            entry.exchange.request.done = true;
            headers.describe(&mut entry.exchange);
        }
    }

    /// That side has said all on this stream.
    pub fn end(&mut self, ledger: &mut Ledger, from: Side, id: u32) {
        let asks = ledger.asks(from);
        let mut is_tunnel = false;
        if let Some(exchange) = self.exchange(ledger, id) {
            // A tunnel is over when both sides say so.
            is_tunnel = exchange.tunnel.as_ref().is_some_and(|tunnel| tunnel.done.is_some());
            exchange.message(from).done |= !is_tunnel;
        }
        if let Some(stream) = self.open.get_mut(&id) {
            *(if asks { &mut stream.requested } else { &mut stream.answered }) = true;
            if let Some(content) = &mut stream.content {
                content.end(ledger, from);
            }
            if stream.requested && stream.answered {
                if let Some(entry) = ledger.get(stream.number).filter(|_| is_tunnel) {
                    entry.exchange.response.done = true;
                }
                self.remove(ledger, id);
            }
        }
    }

    /// RST_STREAM: nothing more will come. A server may send it after its whole response, so that the
    /// client stops to ask (RFC 9113 section 8.1).
    ///
    /// `is_refusal`: it was not looked at.
    pub fn reset(&mut self, ledger: &mut Ledger, from: Side, id: u32, seen: Moment, is_refusal: bool) {
        let asks = ledger.asks(from);
        if let Some(exchange) = self.exchange(ledger, id) {
            exchange.ended = Some(seen);
            let (request, response) = (&mut exchange.request, &mut exchange.response);
            if exchange.tunnel.as_ref().is_some_and(|tunnel| tunnel.done.is_some()) {
                response.extend(seen, 0);
                response.done = true;
            }
            request.done |= !asks && request.first.is_some();
            exchange.outcome = match (asks, is_refusal) {
                _ if response.done => None,
                (true, _) => Some(Outcome::Abandoned),
                (false, true) => Some(Outcome::Refused),
                (false, false) if response.first.is_some() => Some(Outcome::Cut),
                (false, false) => Some(Outcome::Unanswered),
            };
        }
        self.remove(ledger, id);
    }

    fn remove(&mut self, ledger: &mut Ledger, id: u32) {
        if let Some(stream) = self.open.remove(&id) {
            self.close(ledger, stream);
        }
    }

    /// GOAWAY ends the connection, at once or when the streams that are open are over.
    pub fn note_goaway(&self, ledger: &mut Ledger, goaway: &Goaway) {
        for stream in self.open.values() {
            if let Some(Entry { exchange, .. }) = ledger.get(stream.number) {
                exchange.goaway = Some(Box::new(goaway.clone()));
            }
        }
    }

    /// GOAWAY: the receiver's streams after `last` will not be answered (RFC 9113 section 6.8).
    pub fn go_away(&mut self, ledger: &mut Ledger, from: Side, last: u32, seen: Moment) {
        if ledger.asks(from) {
            return;
        }
        let refused = last.checked_add(1).map(|first| self.open.split_off(&first)).unwrap_or_default();
        for (id, stream) in refused {
            if id % 2 == 0 {
                self.open.insert(id, stream);
            } else {
                if let Some(entry) = ledger.get(stream.number) {
                    entry.exchange.ended = Some(seen);
                    entry.exchange.outcome = Some(Outcome::Refused);
                }
                self.close(ledger, stream);
            }
        }
    }

    /// Bytes of a stream are missing.
    pub fn lose(&mut self, ledger: &mut Ledger, from: Side, id: u32) {
        if let Some(content) = self.open.get_mut(&id).and_then(|stream| stream.content.as_mut()) {
            content.end(ledger, from);
        }
        self.doubt(ledger, id);
    }

    /// What is known of a stream may be wrong.
    pub fn doubt(&self, ledger: &mut Ledger, id: u32) {
        if let Some(exchange) = self.exchange(ledger, id) {
            exchange.doubt(GUESSED);
        }
    }

    /// Bytes are missing, and nobody knows of which streams.
    pub fn go_out_of_step(&mut self, ledger: &mut Ledger, from: Side) {
        for stream in self.open.values_mut() {
            if let Some(content) = &mut stream.content {
                content.end(ledger, from);
            }
            if let Some(entry) = ledger.get(stream.number) {
                entry.exchange.doubt(GUESSED);
            }
        }
        self.unseen = u32::MAX;
    }

    fn insert(&mut self, ledger: &mut Ledger, id: u32, offset: u64) -> u32 {
        if self.open.len() >= MAX_STREAMS
            && let Some((_, oldest)) = self.open.pop_first()
        {
            if let Some(entry) = ledger.get(oldest.number) {
                entry.exchange.doubt(GUESSED);
            }
            self.close(ledger, oldest);
        }
        let number = ledger.open(self.protocol, offset);
        self.open.insert(id, Stream { number, described: false, requested: false, answered: false, content: None });
        number
    }

    #[cfg(test)]
    pub fn held(&self) -> usize {
        let held = |content: &Content| match content {
            Content::Call(call) => call.held(),
            Content::Dns(carried) => carried.held(),
            Content::Socket(socket) => socket.held(),
        };
        self.open.values().filter_map(|stream| stream.content.as_ref()).map(held).sum()
    }

    fn exchange<'a>(&self, ledger: &'a mut Ledger, id: u32) -> Option<&'a mut Exchange> {
        ledger.get(self.open.get(&id)?.number).map(|entry| &mut entry.exchange)
    }
}

/// Adds what frames brought to the message that they are part of.
fn add(message: &mut Span, part: Span) {
    if let (Some(first), Some(last)) = (part.first, part.last) {
        message.extend(first, 0);
        message.extend(last, part.bytes);
    } else {
        message.extend_unseen(part.bytes);
    }
}
