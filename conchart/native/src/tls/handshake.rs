//! One handshake, from its ClientHello until both sides are done or gave up.
//!
//! Rules: RFC 5246 section 7 (flights of TLS 1.2), RFC 5077 (tickets), RFC 7918 (False Start), RFC 8446
//! sections 2 and 4 (TLS 1.3); when a client is ready: docs on phases. In: pieces of the records of both
//! sides, in causal order. Out: a [`Handshake`] and the application records met on the way. This state is
//! dropped when the handshake is settled.

use tls_parser::{TlsCipherKx, TlsCipherSuite};

use crate::stream::{BySide, Moment, Side};

use super::fingerprint::{self, Fingerprints};
use super::flight::{Context, Flight, Reading, Seen, Sizes};
use super::hello::{self, ClientHello, ServerHello};
use super::messages::{Message, Messages, message};
use super::record::{ALERT, APPLICATION_DATA, CHANGE_CIPHER_SPEC, HANDSHAKE, Piece, SSLV2};
use super::tickets::Watch;
use super::{Flights, Handshake, names};

mod known;

const SSLV2_VERSION: u16 = 0x0002;
/// Confidence in what follows a handshake of which a part is missing.
const LOST: f64 = 0.5;

/// What the client offered; offers alone prove nothing.
#[derive(Debug, Default)]
struct Offer {
    session_id: Box<[u8]>,
    ticket: bool,
    early_data: bool,
    alpn: bool,
    application_settings: bool,
    /// Last byte of the first ClientHello.
    sent: Option<Moment>,
}

/// State of the handshake in progress.
#[derive(Debug, Default)]
pub(super) struct Machine {
    pub facts: Box<Handshake>,
    /// Application data met on the way, in causal order.
    pub data: Vec<Seen>,
    settled: bool,
    /// A renegotiation: every message is encrypted, and known only where there are keys.
    hidden: bool,
    offer: Offer,
    version: Option<u16>,
    cipher: Option<u16>,
    psk: bool,
    session_echoed: bool,
    /// The server sent a message that only a full handshake of TLS 1.2 has.
    full: bool,
    server_hello_offset: u64,
    /// Size of a ticket that the server sent before the client's Finished.
    ticket: Option<u64>,
    /// The server took early data; here the client's Finished ends.
    early_until: Option<u64>,
    messages: BySide<Messages>,
    alert: BySide<[u8; 2]>,
    alert_have: BySide<u8>,
    changed_cipher: BySide<bool>,
    /// The server answered with a ServerHello of SSLv2, which is in no TLS record.
    sslv2: bool,
    /// Where the handshake record begins that is being read, and whether it is encrypted.
    sealed: BySide<Option<(u64, bool)>>,
    finished: BySide<Option<Moment>>,
    flight: Flight,
}

impl Machine {
    pub fn new(number: u32) -> Self {
        Self { facts: Box::new(Handshake { number, ..Handshake::default() }), ..Self::default() }
    }

    /// A handshake inside an established connection of TLS 1.2 or older, begun by `client`.
    pub fn renegotiation(number: u32, client: Side, first: Moment) -> Self {
        let facts = Handshake { number, hello_by: Some(client), hello: Some(first), ..Handshake::default() };
        Self { facts: Box::new(facts), hidden: true, ..Self::default() }
    }

    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.flight.len() + self.data.len()
    }

    #[cfg(test)]
    pub fn buffered(&self) -> usize {
        self.messages.client.kept() + self.messages.server.kept()
    }

    pub fn settled(&self) -> bool {
        self.settled
    }

    pub fn is_tls13(&self) -> bool {
        self.version.is_some_and(names::is_tls13)
    }

    /// Not TLS: what follows its hellos are not TLS records.
    pub fn is_sslv2(&self) -> bool {
        self.sslv2
    }

    pub fn sizes(&self) -> Sizes {
        Sizes::of(self.cipher)
    }

    /// How to look at the records that follow a complete TLS 1.3 handshake.
    pub fn watch(&self) -> Option<Watch> {
        let client = self.facts.hello_by?;
        let (resumed, client_first, ticket) = (self.psk, self.offer.alpn, self.ticket);
        Some(Watch { client, resumed, client_first, ticket, early_until: self.early_until })
    }

    pub fn piece(&mut self, from: Side, piece: &Piece<'_>, v2_type: u8) {
        match piece.record.kind {
            HANDSHAKE if self.is_sealed(from, piece.record.offset) => self.encrypted_piece(from, piece),
            HANDSHAKE => self.clear_piece(from, piece),
            CHANGE_CIPHER_SPEC if piece.done => self.change_cipher(from),
            ALERT => self.alert_piece(from, piece),
            SSLV2 if piece.done => self.v2_hello(from, piece, v2_type),
            APPLICATION_DATA if piece.done => return self.application(Seen::new(from, piece)),
            _ => {}
        }
        if piece.done {
            self.count(from, piece.record.end() - piece.record.offset);
        }
    }

    /// Bytes of `from` went missing at a place where it is unknown which.
    pub fn lose(&mut self, from: Side, seen: Moment) {
        let mut messages = std::mem::take(&mut self.messages[from]);
        messages.lose(seen, &mut |message| self.message(from, 0, message));
        self.messages[from] = messages;
        if self.is_client(from) && self.is_tls13() && self.flight.is_only_of(from.peer()) {
            // What the client sends after the server's flight, and nobody captured, is its Finished.
            self.facts.server_done = self.facts.server_done.or(self.flight.last());
            self.flight.clear();
            self.ready_by(seen);
            self.settle("complete");
        }
    }

    /// The connection is over; `closed` when an end closed it, else the capture stopped.
    pub fn finish(&mut self, closed: bool) {
        if self.is_tls13() {
            self.read_flight(true);
        }
        if !self.settled {
            let unseen = self.messages.client.lost() || self.messages.server.lost();
            let gave_up = closed && self.facts.ready.is_none() && !unseen && !self.is_sslv2();
            self.settle(if gave_up { "failed" } else { "incomplete" });
        }
    }

    fn is_client(&self, from: Side) -> bool {
        self.facts.hello_by == Some(from)
    }

    /// TLS 1.2 and older: does this side encrypt by now? (In TLS 1.3 the ChangeCipherSpec is a dummy.)
    fn is_encrypted(&self, from: Side) -> bool {
        self.changed_cipher[from] && !self.is_tls13()
    }

    /// Is the handshake record at `offset` encrypted? A message in it may change what the records after it are.
    fn is_sealed(&mut self, from: Side, offset: u64) -> bool {
        let sealed = match self.sealed[from] {
            Some((record, sealed)) if record == offset => sealed,
            _ => self.hidden || self.is_encrypted(from),
        };
        self.sealed[from] = Some((offset, sealed));
        sealed
    }

    fn count(&mut self, from: Side, bytes: u64) {
        match from {
            Side::Client => self.facts.bytes_client += bytes,
            Side::Server => self.facts.bytes_server += bytes,
        }
    }

    fn settle(&mut self, outcome: &'static str) {
        self.settled = true;
        self.facts.outcome = outcome;
        // What the server chose in clear holds even if the handshake never ended.
        if self.facts.kind.is_none() && self.facts.server_hello.is_some() {
            self.facts.kind = match (self.is_tls13(), self.psk) {
                (true, true) => Some("psk"),
                (true, false) => Some("full"),
                (false, _) => self.full.then_some("full"),
            };
        }
    }

    /// The handshake is settled: counts its flights.
    pub fn close_flights(&mut self) {
        let facts = &mut self.facts;
        if self.hidden {
            // Inside an established connection, flights mingle with application data.
            facts.flights = Flights::default();
            return;
        }
        facts.flights.close(facts.complete);
        if facts.early_data == Some(true)
            && let Some(sent) = self.offer.sent
        {
            facts.flights.first_answer(sent);
        }
        facts.round_trips = facts
            .ready
            .zip(facts.hello_by)
            .filter(|_| facts.hello.is_some() && facts.server_hello.is_some())
            .map(|(ready, client)| facts.flights.round_trips(client, ready));
        if facts.complete.is_none() {
            // Where it broke off is no end that compares with any other.
            facts.flights = Flights::default();
        }
    }

    fn clear_piece(&mut self, from: Side, piece: &Piece<'_>) {
        let mut messages = std::mem::take(&mut self.messages[from]);
        let first = if piece.starts { piece.record.first } else { piece.seen };
        let offset = piece.record.offset;
        messages.push(piece.bytes, piece.missing, (first, piece.seen), &mut |message| {
            self.message(from, offset, message);
        });
        self.messages[from] = messages;
    }

    fn message(&mut self, from: Side, offset: u64, message: Message<'_>) {
        match message.kind {
            message::CLIENT_HELLO => self.client_hello(from, message),
            message::SERVER_HELLO => self.server_hello(from, offset, message),
            message::HELLO_RETRY_REQUEST if !self.is_client(from) => self.retry(),
            message::CERTIFICATE if !self.is_client(from) => {
                self.full = true;
                self.facts.certificate_bytes = Some(message.length);
                self.facts.certificates = hello::certificates(message.body);
            }
            message::SERVER_KEY_EXCHANGE => {
                self.full = true;
                if self.has_named_curve() {
                    self.facts.named_group = hello::named_curve(message.body).map(names::group);
                }
            }
            message::CERTIFICATE_REQUEST => self.facts.client_auth = Some(true),
            message::SERVER_HELLO_DONE => {
                self.full = true;
                self.facts.client_auth.get_or_insert(false);
                self.facts.server_done = Some(message.last);
            }
            _ => {}
        }
    }

    fn has_named_curve(&self) -> bool {
        let suite = self.cipher.and_then(TlsCipherSuite::from_id);
        suite.is_some_and(|suite| matches!(suite.kx, TlsCipherKx::Ecdhe | TlsCipherKx::Aecdh))
    }

    fn client_hello(&mut self, from: Side, message: Message<'_>) {
        let hello = ClientHello::read(message.body, message.length);
        // What comes after its answer is not what was answered.
        let first = self.offer.sent.is_none() && self.facts.server_hello.is_none();
        if first {
            self.facts.hello_by = Some(from);
            self.facts.hello = Some(message.first);
            self.facts.sni = hello.server_name.map(text);
            self.offer.sent = Some(message.last);
            self.facts.may_ask_later = hello.post_handshake_auth;
            self.facts.ech = (hello.whole || hello.ech).then_some(hello.ech);
            if hello.whole {
                let Fingerprints { ja3, ja4 } = fingerprint::of(&hello);
                self.facts.ja3 = Some(ja3);
                self.facts.ja4 = Some(ja4);
            }
        }
        self.offer.session_id = hello.session_id.into();
        self.offer.ticket = hello.ticket;
        self.offer.alpn = hello.alpn.is_some();
        self.offer.application_settings = hello.application_settings;
        // The second ClientHello has none: early data is over with a HelloRetryRequest.
        self.offer.early_data = hello.early_data && first;
    }

    fn v2_hello(&mut self, from: Side, piece: &Piece<'_>, v2_type: u8) {
        if v2_type == message::CLIENT_HELLO {
            if self.facts.server_hello.is_some() {
                return;
            }
            self.facts.hello_by = Some(from);
            self.facts.hello = Some(piece.record.first);
            self.offer.sent = Some(piece.seen);
        } else {
            // A ServerHello of SSLv2 itself.
            self.facts.hello_by.get_or_insert(from.peer());
            self.facts.server_hello = Some(piece.record.first);
            self.version = Some(SSLV2_VERSION);
            self.sslv2 = true;
            self.facts.version = Some(names::version(SSLV2_VERSION));
        }
    }

    fn server_hello(&mut self, from: Side, offset: u64, message: Message<'_>) {
        let Some(hello) = ServerHello::read(message.body).filter(|_| self.facts.server_hello.is_none()) else {
            return;
        };
        self.facts.hello_by.get_or_insert(from.peer());
        if hello.retry {
            return self.retry();
        }
        self.version = Some(hello.version);
        self.cipher = hello.cipher;
        self.psk = hello.psk;
        self.session_echoed = !hello.session_id.is_empty() && *hello.session_id == *self.offer.session_id;
        self.server_hello_offset = offset;
        self.facts.server_hello = Some(message.first);
        self.facts.version = Some(names::version(hello.version));
        self.facts.cipher = hello.cipher.map(names::cipher);
        self.facts.named_group = hello.group.map(names::group);
        self.facts.alpn = hello.alpn.map(text);
        self.facts.inferred = self.is_tls13();
        if !self.is_tls13() {
            // Early data that an older server cannot even recognise.
            self.flight.clear();
        }
    }

    fn retry(&mut self) {
        self.facts.hello_retry = true;
        self.version = Some(0x0304);
        self.offer.early_data = false;
        self.flight.clear();
    }

    /// Counts only once the version is known, or its announcement lost: TLS 1.3 clients send a dummy before.
    fn change_cipher(&mut self, from: Side) {
        let lost = self.messages[from].lost() || self.messages[from.peer()].lost();
        self.changed_cipher[from] |= self.version.is_some() || self.hidden || lost;
    }

    /// TLS 1.2 and older: what follows a ChangeCipherSpec is the Finished.
    fn encrypted_piece(&mut self, from: Side, piece: &Piece<'_>) {
        if !piece.done || !self.changed_cipher[from] || self.finished[from].is_some() {
            return;
        }
        self.finished[from] = Some(piece.seen);
        if self.is_client(from) {
            self.facts.client_finished = Some(piece.record.first);
        } else if !self.hidden || self.facts.server_hello.is_some() {
            if !self.full {
                self.facts.server_done = Some(piece.seen);
            }
            self.become_ready(piece.seen);
        }
        if let BySide { client: Some(client), server: Some(server) } = self.finished {
            let complete = client.max(server);
            self.facts.complete = Some(complete);
            self.facts.ready.get_or_insert(complete);
            self.settle("complete");
        }
    }

    /// TLS 1.2 and older: the client may send; by now it is known how the session came about.
    fn become_ready(&mut self, at: Moment) {
        if self.facts.ready.is_some() {
            return;
        }
        self.facts.ready = Some(at);
        self.facts.early_data = Some(false);
        self.facts.false_start.get_or_insert(false);
        let whole = !self.messages.client.lost() && !self.messages.server.lost() && self.facts.server_hello.is_some();
        if self.full {
            self.facts.kind = Some("full");
        } else if whole && self.offer.ticket {
            self.facts.kind = Some("ticket");
        } else if whole && self.session_echoed {
            self.facts.kind = Some("session-id");
        }
        if !self.full && whole {
            self.facts.client_auth = Some(false);
        }
    }

    fn alert_piece(&mut self, from: Side, piece: &Piece<'_>) {
        if piece.starts {
            self.alert_have[from] = 0;
        }
        let have = &mut self.alert_have[from];
        for (slot, byte) in self.alert[from].iter_mut().skip(usize::from(*have)).zip(piece.bytes) {
            *slot = *byte;
            *have += 1;
        }
        let read = usize::from(*have) == self.alert[from].len();
        if !piece.done {
            return;
        }
        let [level, description] = self.alert[from];
        if !self.hidden && !self.is_encrypted(from) && piece.record.length == 2 && read {
            self.alert(level, description);
        } else if self.finished[from].is_some() && self.messages[from.peer()].lost() {
            // What it answers is missing: it may as well be the end of a connection that nobody used.
            self.ready_by(piece.record.first);
            self.settle("incomplete");
        } else if self.facts.ready.is_none() {
            self.fail("encrypted".into());
        }
    }

    fn alert(&mut self, level: u8, description: u8) {
        // TLS 1.3 ignores the level: only user_canceled leaves the handshake alive.
        if level == 2 || description == 0 || self.is_tls13() && description != 90 {
            self.fail(names::alert(level, description));
        }
    }

    fn fail(&mut self, alert: Box<str>) {
        self.facts.alert = Some(alert);
        self.settle("failed");
    }

    fn application(&mut self, seen: Seen) {
        let from = seen.record.from;
        if self.hidden {
            return self.data.push(seen);
        }
        match self.version {
            Some(version) if names::is_tls13(version) => {
                // Early data of before a HelloRetryRequest may trickle in before the ServerHello.
                if self.facts.server_hello.is_some() {
                    self.flight.push(seen);
                    self.read_flight(false);
                }
            }
            Some(_) => self.application12(seen),
            None if self.is_client(from) && self.offer.early_data && !self.messages[from.peer()].lost() => {
                self.flight.push(seen);
            }
            None => self.application_unannounced(seen),
        }
    }

    /// The ServerHello went missing.
    fn application_unannounced(&mut self, seen: Seen) {
        let record = seen.record;
        let unfinished = self.is_client(record.from) && self.facts.client_finished.is_none();
        if unfinished && record.may_be_finished {
            // TLS 1.3, most likely: older versions do not send a Finished as application data.
            self.facts.client_finished = Some(record.first);
            self.ready_by(record.last);
        } else {
            self.ready_by(record.first);
            self.data.push(seen);
        }
        self.settle("incomplete");
    }

    /// Nobody sends data before the handshake is over: the moment that ended it went missing.
    fn ready_by(&mut self, seen: Moment) {
        self.facts.inferred = true;
        self.facts.ready.get_or_insert(seen);
    }

    fn application12(&mut self, mut seen: Seen) {
        let from = seen.record.from;
        match self.finished[from].filter(|_| self.is_client(from)) {
            Some(sent) if self.full => {
                self.facts.false_start = Some(true);
                self.become_ready(sent);
            }
            Some(_) => {}
            None => {
                // A Finished went missing: a client sends data after its own, a server after both.
                self.ready_by(seen.record.first);
                self.settle("complete");
                seen.record.confidence = LOST;
            }
        }
        self.data.push(seen);
    }

    /// TLS 1.3: looks for the client's Finished among the encrypted records.
    fn read_flight(&mut self, over: bool) {
        let Some(context) = self.context() else {
            return;
        };
        match self.flight.read(context, over) {
            Reading::Open => {}
            Reading::Alert => self.fail("encrypted".into()),
            Reading::Finished { at, exact } => self.finish13(context, at, exact),
        }
    }

    fn context(&self) -> Option<Context> {
        Some(Context {
            client: self.facts.hello_by?,
            sizes: self.sizes(),
            early_data: self.offer.early_data,
            application_settings: self.offer.application_settings,
            psk: self.psk,
            server_hello: self.server_hello_offset,
        })
    }

    fn finish13(&mut self, context: Context, at: usize, exact: bool) {
        let Some(split) = std::mem::take(&mut self.flight).split(context, at, exact) else {
            return;
        };
        let finished = split.finished.record;
        self.ticket = split.ticket;
        self.early_until = split.early_data.then_some(split.finished.end);
        self.data.extend(split.data);
        self.count(context.client, split.client_bytes);
        self.count(context.client.peer(), split.server_bytes);
        let facts = &mut self.facts;
        facts.client_finished = Some(finished.first);
        facts.ready = Some(finished.last);
        facts.complete = Some(finished.last);
        // What keys have shown counts more than sizes.
        facts.server_done = facts.server_done.or(split.server_done);
        facts.client_auth = facts.client_auth.or(split.client_auth);
        facts.early_data = Some(split.early_data);
        facts.false_start = Some(false);
        facts.kind = Some(if self.psk { "psk" } else { "full" });
        if split.early_data {
            facts.kind = Some("psk-0rtt");
            facts.ready = self.offer.sent;
        }
        self.settle("complete");
    }
}

/// Text from the wire: hostile, and not always UTF-8.
fn text(bytes: &[u8]) -> Box<str> {
    String::from_utf8_lossy(bytes).into()
}
