//! One handshake, from its ClientHello until both sides are done or gave up.
//!
//! Rules: RFC 5246 section 7 (flights of TLS 1.2), RFC 5077 (tickets), RFC 7918 (False Start), RFC 8446
//! sections 2 and 4 (TLS 1.3); when a client is ready: docs on phases. In: handshake messages of both sides, whatever
//! carried them, and the records around them that are no messages, in causal order. Out: a [`Handshake`] and the
//! application records met on the way. Non-goals: framing, and keys. This state is dropped when the handshake has
//! ended.

use crate::stream::{BySide, Moment, Side};

use super::agreed::Offered;
use super::decryptor::{Decryptor, overhead};
use super::fingerprint::{self, Fingerprints, Transport};
use super::flight::{Flight, Sizes};
use super::hello::{Body, ClientHello, ServerHello, certificates};
use super::messages::message::NEW_SESSION_TICKET;
use super::messages::{Event, Message, Messages, Stretch};
use super::tickets::Watch;
use super::{AppRecord, Flights, Handshake, Kind, Outcome, Transcript, Version, names, parameters};

mod tls12;
mod tls13;

/// A handshake message has its type and length before it.
const HEADER: u32 = 4;
/// Length of a `NewSessionTicket` of TLS 1.2 whose ticket has none: the server changed its mind (RFC 5077 section 3.3).
const EMPTY_TICKET: u32 = 6;

/// What carried a message.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bearer {
    /// Content in clear; `offset` is where its record begins in its stream.
    Clear { offset: u64 },
    /// A record that was opened.
    Protected(AppRecord),
}

impl Bearer {
    fn offset(self) -> u64 {
        match self {
            Self::Clear { offset } => offset,
            Self::Protected(seen) => seen.offset,
        }
    }
}

/// A handshake in progress: each side's stream of messages, and what they say.
#[derive(Debug, Default)]
pub(super) struct Handshaking {
    pub machine: Machine,
    messages: BySide<Messages>,
}

impl Handshaking {
    pub fn new(machine: Machine) -> Self {
        Self { machine, messages: BySide::default() }
    }

    /// Takes in the next content of `from`'s stream of messages. The decryptor hears each of them, too.
    pub fn push(
        &mut self,
        from: Side,
        stretch: Stretch<'_>,
        carrier: Bearer,
        decryptor: Option<&mut Decryptor>,
        transcript: Option<&mut Transcript>,
    ) {
        let Self { machine, messages } = self;
        messages[from].push(stretch, &mut hearing(machine, from, carrier, decryptor, transcript));
    }

    /// Bytes of `from` are missing, and it is not known which.
    pub fn miss(
        &mut self,
        from: Side,
        seen: Moment,
        decryptor: Option<&mut Decryptor>,
        transcript: Option<&mut Transcript>,
    ) {
        let Self { machine, messages } = self;
        messages[from].miss(seen, &mut hearing(machine, from, Bearer::Clear { offset: 0 }, decryptor, transcript));
        machine.miss(from, seen);
    }

    /// Content of `from`'s messages could not be opened.
    pub fn skip(&mut self, from: Side) {
        self.messages[from].skip();
    }

    #[cfg(test)]
    pub fn buffered(&self) -> usize {
        self.messages.client.buffered() + self.messages.server.buffered()
    }
}

/// Reads each message once, for all who want to know it.
fn hearing<'a>(
    machine: &'a mut Machine,
    from: Side,
    carrier: Bearer,
    mut decryptor: Option<&'a mut Decryptor>,
    mut transcript: Option<&'a mut Transcript>,
) -> impl FnMut(Event<'_>) + 'a {
    move |event| {
        let Event::Message(message) = event else {
            machine.missing[from] = true;
            return;
        };
        if let Some(transcript) = &mut transcript {
            transcript.message(from, machine.facts.number, &message, matches!(carrier, Bearer::Protected(_)));
        }
        let body = Body::read(&message);
        if let Some(decryptor) = &mut decryptor {
            decryptor.hear(from, &body);
        }
        match carrier {
            Bearer::Protected(record) if machine.is_tls13() => machine.protected_message(from, message, &body, record),
            _ => machine.message(from, carrier.offset(), message, &body),
        }
    }
}

/// A session id: at most 32 bytes (RFC 5246 section 7.4.1.2), empty where there is none.
#[derive(Debug, Default, Eq, PartialEq)]
struct SessionId {
    bytes: [u8; 32],
    length: usize,
}

impl SessionId {
    fn new(id: &[u8]) -> Self {
        let mut bytes = [0; 32];
        bytes.iter_mut().zip(id).for_each(|(slot, byte)| *slot = *byte);
        Self { bytes, length: id.len() }
    }
}

/// What the client offered; offers alone prove nothing.
#[derive(Debug, Default)]
struct Offer {
    session_id: SessionId,
    ticket: bool,
    early_data: bool,
    /// The client takes tickets of TLS 1.3, and of older versions.
    takes_tickets13: Option<bool>,
    takes_tickets12: Option<bool>,
    alpn: bool,
    /// What EncryptedExtensions may answer.
    answerable: Offered,
    application_settings: bool,
    /// Last byte of the first ClientHello.
    sent: Option<Moment>,
}

/// An alert in clear, as far as it has arrived.
#[derive(Clone, Copy, Debug, Default)]
struct Alert {
    bytes: [u8; 2],
    have: u8,
}

/// An alert that may have ended the handshake.
#[derive(Debug)]
struct Parting {
    alert: Box<str>,
    by: Side,
    seen: Moment,
}

/// What is known of the handshake in progress.
#[derive(Debug, Default)]
pub(super) struct Machine {
    pub facts: Box<Handshake>,
    /// Application data met on the way, in causal order.
    pub data: Vec<AppRecord>,
    transport: Transport,
    ended: bool,
    /// Inside an established connection every message is encrypted, and known only where there are keys.
    renegotiates: bool,
    offer: Offer,
    version: Option<Version>,
    cipher: Option<u16>,
    psk: bool,
    session_echoed: bool,
    /// The server sent a message that only a full handshake of TLS 1.2 has.
    full: bool,
    server_hello_offset: u64,
    /// The ServerHello says TLS 1.2, and what may say that this is TLS 1.3 was cut off (RFC 8446 section 4.1.3).
    may_be_tls13: bool,
    /// TLS 1.3: was HTTP/2 agreed on, as far as the length of EncryptedExtensions tells?
    agreed_http2: Option<bool>,
    /// TLS 1.3: what the client adds to each of its records.
    padding: u8,
    /// Size of a ticket that the server sent before the client's Finished.
    ticket: Option<u64>,
    /// The server took early data; here the client's Finished ends.
    early_until: Option<u64>,
    /// Messages of that side are missing.
    missing: BySide<bool>,
    alert: BySide<Alert>,
    /// TLS 1.2 and older: that side's ChangeCipherSpec has gone by.
    changed_cipher: BySide<bool>,
    /// The server answered with a ServerHello of SSLv2, which is in no TLS record.
    sslv2: bool,
    /// TLS 1.2 and older: when that side's Finished was sent.
    finished: BySide<Option<Moment>>,
    /// An alert of a side that had sent its Finished: it ended the handshake unless the peer's Finished comes.
    parting_alert: Option<Box<Parting>>,
    /// The first FIN or RST.
    closed: Option<Moment>,
    flight: Flight,
}

impl Machine {
    pub fn new(number: u32) -> Self {
        Self { facts: Box::new(Handshake { number, ..Handshake::default() }), ..Self::default() }
    }

    /// A handshake inside an established connection of TLS 1.2 or older, begun by `client`.
    pub fn renegotiation(number: u32, client: Side, first: Moment) -> Self {
        let facts = Handshake { number, hello_by: Some(client), hello: Some(first), ..Handshake::default() };
        Self { facts: Box::new(facts), renegotiates: true, ..Self::default() }
    }

    /// A handshake whose messages come in CRYPTO frames (RFC 9001 section 4.1.3).
    pub fn over_quic() -> Self {
        Self { transport: Transport::Quic, ..Self::default() }
    }

    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.flight.len() + self.data.len()
    }

    pub fn ended(&self) -> bool {
        self.ended
    }

    pub fn version(&self) -> Option<Version> {
        self.version
    }

    /// The suite that the server has chosen.
    pub fn cipher(&self) -> Option<u16> {
        self.cipher
    }

    pub fn is_tls13(&self) -> bool {
        self.version.is_some_and(Version::is_tls13)
    }

    /// Not TLS: what follows its hellos are not TLS records.
    pub fn is_sslv2(&self) -> bool {
        self.sslv2
    }

    /// Are the records of `from` encrypted by now? Application data always is, and in TLS 1.3 nothing else.
    pub fn encrypts(&self, from: Side) -> bool {
        self.renegotiates || self.changed_cipher[from] && !self.is_tls13()
    }

    pub fn sizes(&self) -> Sizes {
        Sizes::of(self.cipher)
    }

    /// HTTP/2 was agreed on: what each side's records take beyond their content, where the cipher suite tells.
    pub fn http2(&self) -> Option<BySide<u8>> {
        if self.facts.alpn.as_deref() == Some("h2") { self.overhead() } else { None }
    }

    fn overhead(&self) -> Option<BySide<u8>> {
        let each = overhead(self.cipher?, self.version?)?;
        let mut both = BySide { client: each, server: each };
        both[self.facts.hello_by?] += self.padding;
        Some(both)
    }

    /// How to look at the records that follow a complete TLS 1.3 handshake.
    pub fn watch(&self) -> Option<Watch> {
        let client = self.facts.hello_by?;
        let (resumed, client_first, ticket) = (self.psk, self.offer.alpn, self.ticket);
        let may_be_http2 = self.agreed_http2.unwrap_or(self.offer.answerable.http2());
        let http2 = if may_be_http2 { self.overhead() } else { None };
        Some(Watch { client, resumed, client_first, ticket, http2, early_until: self.early_until })
    }

    /// An end sends no more.
    pub fn fin(&mut self, seen: Moment) {
        self.closed.get_or_insert(seen);
    }

    /// The connection is over: an end closed it, or the capture stopped.
    pub fn finish(&mut self) {
        if self.is_tls13() {
            self.read_flight(true);
        }
        if self.ended {
            return;
        }
        if let Some(parting) = self.parting_alert.take() {
            return self.fail(*parting);
        }
        let is_whole = !self.missing.client && !self.missing.server;
        let may_fail = self.facts.ready.is_none() && is_whole && !self.sslv2;
        self.facts.failed = self.closed.filter(|_| may_fail);
        self.end(if self.facts.failed.is_some() { Outcome::Failed } else { Outcome::Incomplete });
    }

    /// The handshake is over, as QUIC shows it: no record tells when the client's Finished was sent, but `seen`
    /// is the first packet that it sends after it.
    pub fn infer_finished(&mut self, seen: Moment) {
        if self.ended {
            return;
        }
        self.ready_by(seen);
        self.facts.client_finished = Some(seen);
        let answered = self.facts.server_hello.is_some();
        self.facts.complete = Some(seen).filter(|_| answered);
        self.end(if answered { Outcome::Complete } else { Outcome::Incomplete });
    }

    /// The handshake has ended: counts its flights.
    pub fn close_flights(&mut self) {
        let facts = &mut self.facts;
        if self.renegotiates {
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

    /// Adds to the stream bytes of the handshake.
    pub fn count(&mut self, from: Side, bytes: u64) {
        match from {
            Side::Client => self.facts.bytes_client += bytes,
            Side::Server => self.facts.bytes_server += bytes,
        }
    }

    fn is_client(&self, from: Side) -> bool {
        self.facts.hello_by == Some(from)
    }

    /// The client may send from `since` on.
    fn set_ready(&mut self, since: Moment) {
        self.facts.ready.get_or_insert(since);
    }

    /// Nobody sends data before the handshake is over: the moment that ended it is missing.
    fn ready_by(&mut self, seen: Moment) {
        self.facts.inferred = true;
        self.set_ready(seen);
    }

    fn end(&mut self, outcome: Outcome) {
        self.ended = true;
        self.facts.outcome = outcome;
        // What the server chose in clear holds even if the handshake never ended.
        if self.facts.kind.is_none() && self.facts.server_hello.is_some() {
            self.facts.kind = match (self.is_tls13(), self.psk) {
                (true, true) => Some(Kind::Psk),
                (true, false) => (!self.may_be_tls13).then_some(Kind::Full),
                (false, _) => self.full.then_some(Kind::Full),
            };
        }
    }

    fn fail(&mut self, parting: Parting) {
        self.facts.alert = Some(parting.alert);
        self.facts.alert_by = Some(parting.by);
        self.facts.failed = Some(parting.seen);
        self.end(Outcome::Failed);
    }

    /// Bytes of `from` are missing where it is unknown which.
    fn miss(&mut self, from: Side, seen: Moment) {
        if self.is_client(from) && self.is_tls13() && self.flight.is_only_of(from.peer()) {
            // What the client sends after the server's flight, and nobody captured, is its Finished.
            self.facts.server_done = self.facts.server_done.or(self.flight.last());
            self.flight.clear();
            self.ready_by(seen);
            self.end(Outcome::Complete);
        }
    }

    /// A message in clear, or one inside an established connection of TLS 1.2 or older.
    fn message(&mut self, from: Side, offset: u64, message: Message<'_>, body: &Body<'_>) {
        if message.kind == NEW_SESSION_TICKET && !self.is_client(from) {
            self.facts.ticket_issued = Some(message.length > EMPTY_TICKET);
        }
        // In TLS 1.3, all that follows the hellos is encrypted.
        self.may_be_tls13 = false;
        match body {
            Body::ClientHello(hello) => self.client_hello(from, message, hello),
            Body::ServerHello(hello) if self.facts.server_hello.is_none() => {
                self.facts.hello_by.get_or_insert(from.peer());
                if hello.retry { self.retry() } else { self.server_hello(offset, message.first, hello) }
            }
            Body::HelloRetryRequest if !self.is_client(from) => self.retry(),
            Body::Certificate(list) if !self.is_client(from) => {
                self.full = true;
                self.facts.certificate_bytes = Some(message.length);
                self.facts.certificates = certificates(list);
            }
            Body::Certificate(_) => self.facts.client_certificate_bytes = Some(message.length),
            Body::ServerKeyExchange { named_curve } => {
                self.full = true;
                if self.has_named_curve() {
                    self.facts.named_group = named_curve.map(names::group);
                }
            }
            Body::CertificateRequest => self.facts.client_auth = Some(true),
            Body::ServerHelloDone => {
                self.full = true;
                self.facts.server_done = Some(message.last);
                if !self.missing[from] {
                    self.facts.client_auth.get_or_insert(false);
                }
            }
            _ => {}
        }
    }

    fn client_hello(&mut self, from: Side, message: Message<'_>, hello: &ClientHello<'_>) {
        // What comes after its answer is not what was answered.
        let first = self.offer.sent.is_none() && self.facts.server_hello.is_none();
        if first {
            self.facts.hello_by = Some(from);
            self.facts.hello = Some(message.first);
            self.facts.client_random = hello.random;
            self.facts.sni = hello.server_name.map(text);
            self.facts.alpn_offered = joined(hello);
            if let Some(parameters) = hello.parameters {
                self.facts.parameters.get_or_insert_default()[from] = parameters::texts(parameters);
            }
            self.offer.sent = Some(message.last);
            self.facts.post_handshake_auth = hello.post_handshake_auth;
            self.facts.ech = hello.certain(hello.ech);
            self.facts.client_hello_bytes = message.length.checked_add(HEADER);
            self.hear_offer(hello);
            if hello.whole {
                let Fingerprints { ja3, ja4 } = fingerprint::of(hello, self.transport);
                self.facts.ja3 = Some(ja3);
                self.facts.ja4 = Some(ja4);
            }
        }
        self.offer.session_id = SessionId::new(hello.session_id);
        self.offer.ticket = hello.ticket.is_some();
        self.offer.alpn = hello.protocols().next().is_some();
        self.offer.answerable = Offered::of(hello);
        self.offer.application_settings = hello.application_settings;
        // The second ClientHello has none: early data is over with a HelloRetryRequest.
        self.offer.early_data = hello.early_data && first;
    }

    /// What the first ClientHello offers.
    fn hear_offer(&mut self, hello: &ClientHello<'_>) {
        let highest = hello.highest_version();
        let is_tls13 = highest.is_some_and(Version::is_tls13);
        (self.offer.takes_tickets13, self.offer.takes_tickets12) =
            (hello.takes_tickets(true), hello.takes_tickets(false));
        let facts = &mut self.facts;
        facts.version_offered = highest.map(Version::name);
        facts.early_data_offered = hello.certain(hello.early_data);
        facts.ticket_offered = if is_tls13 { self.offer.takes_tickets13 } else { self.offer.takes_tickets12 };
        facts.key_shares = comma_separated(hello.key_shares().map(names::group));
        facts.resumption_offered = if hello.psk {
            Some(Kind::Psk)
        } else if hello.ticket.is_some() {
            Some(Kind::Ticket)
        } else {
            // With TLS 1.3, a session id is there for middleboxes (RFC 8446 appendix D.4).
            let names_session = !hello.session_id.is_empty() && highest.is_some() && !is_tls13;
            names_session.then_some(Kind::SessionId)
        };
    }

    fn server_hello(&mut self, offset: u64, first: Moment, hello: &ServerHello<'_>) {
        self.version = Some(hello.version);
        self.cipher = hello.cipher;
        self.psk = hello.psk;
        let echoed = SessionId::new(hello.session_id) == self.offer.session_id;
        self.session_echoed = !hello.session_id.is_empty() && echoed;
        self.server_hello_offset = offset;
        let offered = self.facts.version_offered.as_deref().is_none_or(|offered| offered == "TLSv1.3");
        self.may_be_tls13 = hello.version == Version::TLS12 && !hello.whole && offered;
        self.facts.server_hello = Some(first);
        self.facts.version = Some(hello.version);
        self.facts.cipher = hello.cipher.map(names::cipher);
        self.facts.named_group = hello.group.map(names::group);
        self.facts.alpn = hello.alpn.map(text);
        self.facts.inferred = self.is_tls13();
        if !self.is_tls13() {
            // Early data that an older server cannot even recognise.
            self.flight.clear();
            self.facts.ticket_offered = self.offer.takes_tickets12;
            self.facts.session_id_issued = Some(!hello.session_id.is_empty() && !echoed);
            if self.session_echoed {
                // A name that the server knows was no filling.
                self.facts.resumption_offered.get_or_insert(Kind::SessionId);
            }
        }
    }

    /// Application data before anybody's Finished: of the ServerHello, what says so was cut off.
    fn become_tls13(&mut self) {
        self.version = Some(Version::TLS13);
        self.changed_cipher = BySide::default();
        self.facts.version = self.version;
        self.facts.inferred = true;
        self.facts.session_id_issued = None;
        self.facts.ticket_offered = self.offer.takes_tickets13;
    }

    fn retry(&mut self) {
        self.facts.hello_retry = true;
        self.version = Some(Version::TLS13);
        self.offer.early_data = false;
        self.flight.clear();
    }
}

/// Text from the wire: hostile, and not always UTF-8.
fn text(bytes: &[u8]) -> Box<str> {
    String::from_utf8_lossy(bytes).into()
}

/// Names joined by commas; `None` where there is none.
fn comma_separated(mut names: impl Iterator<Item = names::Name>) -> Option<Box<str>> {
    let mut joined = names.next()?.into_owned();
    for name in names {
        joined.push(',');
        joined.push_str(&name);
    }
    Some(joined.into())
}

/// The protocols offered by ALPN, joined by commas; `None` where there is none.
fn joined(hello: &ClientHello<'_>) -> Option<Box<str>> {
    hello.protocols().next()?;
    // On the wire, each name has its length before it: as much room as a comma takes.
    let room = hello.alpn.unwrap_or_default().len().saturating_sub(1);
    let mut joined = String::with_capacity(room);
    for name in hello.protocols() {
        if !joined.is_empty() {
            joined.push(',');
        }
        joined.push_str(&String::from_utf8_lossy(name));
    }
    Some(joined.into())
}
