//! TLS: one connection's two streams in, handshakes and application records out.
//!
//! In: chunks, gaps and FINs of both sides in causal order. Out: [`Handshake`]s as they are settled and
//! [`AppRecord`]s in causal order. Where the connection's secrets are known, its records are opened: handshakes
//! are exact and application data comes out as [`Clear`]. Without, what encryption hides is reasoned out from the
//! order and size of records and marked `inferred`. Memory: a few kilobytes while a handshake runs, at most
//! 128 KiB per side of a message that arrives in pieces, at most [`MAX_HELD`] undecided records, and under
//! 200 bytes once established.

mod compute;
pub(crate) mod decrypt;
mod fingerprint;
mod flight;
mod handshake;
mod hello;
mod messages;
mod names;
mod record;
mod sniff;
mod tickets;

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use {decrypt::tests as sealed, tests::build};

use std::collections::VecDeque;

pub use compute::Flights;
pub use decrypt::Clear;
pub use names::Name;
pub use sniff::{Sniff, sniff, sniff_midstream};

use crate::keys::Keys;
use crate::stream::{BySide, Chunk, Gap, Moment, Side};
use decrypt::{Content, Coverage, Decryption, Outcome};
use flight::{Seen, Sizes};
use handshake::Machine;
use record::{ALERT, APPLICATION_DATA, HANDSHAKE, Piece, Walk};
use tickets::Held;

/// Records that may wait at once until it is known whether they are application data.
pub const MAX_HELD: usize = 32;

/// One TLS handshake, as far as the capture shows it. Mirrors the `handshakes` table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Handshake {
    /// 0-based on its connection.
    pub number: u32,
    /// Who sent the ClientHello (usually the TCP client; reverse tunnels differ).
    pub hello_by: Option<Side>,
    /// First byte of the (first) ClientHello.
    pub hello: Option<Moment>,
    /// First byte of the ServerHello that was accepted (not of a HelloRetryRequest).
    pub server_hello: Option<Moment>,
    /// Last byte of the server's first flight.
    pub server_done: Option<Moment>,
    /// First byte of the client's Finished record.
    pub client_finished: Option<Moment>,
    /// The client may send its first application byte (design.md section 5).
    pub ready: Option<Moment>,
    /// Both Finished have been seen.
    pub complete: Option<Moment>,
    pub version: Option<Name>,
    pub cipher: Option<Name>,
    pub named_group: Option<Name>,
    pub sni: Option<Box<str>>,
    pub alpn: Option<Box<str>>,
    /// What the ClientHello offers, joined by commas.
    pub alpn_offered: Option<Box<str>>,
    /// The ClientHello offered ECH, or grease that looks the same. `None`: no whole ClientHello was seen.
    pub ech: Option<bool>,
    /// The server may ask for a certificate later, in the middle of an exchange.
    pub may_ask_later: bool,
    /// `full`, `session-id`, `ticket`, `psk`, `psk-0rtt`.
    pub kind: Option<&'static str>,
    /// `complete`, `failed`, `incomplete`.
    pub outcome: &'static str,
    pub hello_retry: bool,
    pub client_auth: Option<bool>,
    pub early_data: Option<bool>,
    pub false_start: Option<bool>,
    /// Alert that ended it, as `fatal unknown_ca (48)`, or `encrypted` where only its size shows.
    pub alert: Option<Box<str>>,
    pub certificates: Option<u32>,
    pub certificate_bytes: Option<u32>,
    /// Stream bytes from the hello up to and including each side's last handshake record.
    pub bytes_client: u64,
    pub bytes_server: u64,
    /// Flights of the server that the client waited for until it was ready.
    pub round_trips: Option<u32>,
    pub flights: Flights,
    pub ja3: Option<Box<str>>,
    pub ja4: Option<Box<str>>,
    /// True when encryption hides a boundary that we reasoned out (TLS 1.3).
    pub inferred: bool,
    /// How much of the connection can be decrypted: `all`, `partial`, `none`, `wrong`, `unsupported`.
    pub keys: Option<&'static str>,
    /// Labels of the secrets that are missing, where only some are there.
    pub missing_keys: Option<Box<str>>,
}

impl Handshake {
    /// Moves the instants that end it up to the hello where the clock was set back in between; true when it was.
    pub fn keep_order(&mut self) -> bool {
        let Some(hello) = self.hello else { return false };
        let ends = [&mut self.ready, &mut self.complete].into_iter().flatten();
        let early = ends.filter(|end| end.at < hello.at).map(|end| *end = hello);
        early.count() > 0
    }
}

/// Application data inside TLS: one record, or the visible part of one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AppRecord {
    pub from: Side,
    /// First byte of the record on the wire.
    pub first: Moment,
    /// Its last byte.
    pub last: Moment,
    /// Length of the record's body (ciphertext).
    pub bytes: u64,
    /// 1.0 when this surely is application data; less when it might be a hidden handshake message.
    pub confidence: f64,
    /// Its size is that of `HTTP/1.1 100 Continue` and nothing else.
    pub may_be_interim: bool,
    /// Its size is that of a Finished.
    pub may_be_finished: bool,
}

/// What the records of a connection mean at present.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// A handshake runs and nothing is established.
    Opening,
    /// TLS 1.2 or older; a handshake may run inside.
    Established12,
    Established13,
    /// The version was not seen: the capture began later, or the ServerHello is missing.
    Unknown,
    /// The handshake failed, or these are not TLS records: nothing more is read.
    Over,
}

/// What the caller has not fetched yet. Thousands of idle connections must not each keep the buffers of
/// their busiest moment: this exists only while something is in it.
#[derive(Debug, Default)]
struct Ready {
    records: VecDeque<AppRecord>,
    clear: VecDeque<Clear>,
    handshakes: VecDeque<Box<Handshake>>,
}

/// The TLS layer of one connection.
#[derive(Debug)]
pub struct Tls {
    walk: BySide<Walk>,
    machine: Option<Box<Machine>>,
    /// Only where secrets are known.
    decryption: Option<Box<Decryption>>,
    held: Option<Box<Held>>,
    ready: Option<Box<Ready>>,
    number: u32,
    state: State,
    requester: Option<Side>,
    closed: bool,
}

impl Default for Tls {
    fn default() -> Self {
        Self::new()
    }
}

impl Tls {
    /// For a connection whose first byte of TLS comes next.
    #[must_use]
    pub fn new() -> Self {
        Self { machine: Some(Box::new(Machine::new(0))), ..Self::in_state(State::Opening, false) }
    }

    /// For a connection whose first byte of TLS comes next, and whose secrets may be known.
    #[must_use]
    pub fn with_keys(keys: Keys) -> Self {
        Self { decryption: Some(Box::new(Decryption::new(keys))), ..Self::new() }
    }

    /// For a connection whose handshake was over before the capture began.
    #[must_use]
    pub fn midstream() -> Self {
        Self::in_state(State::Unknown, true)
    }

    fn in_state(state: State, midstream: bool) -> Self {
        let walk = Walk::new(midstream);
        Self {
            walk: BySide { client: walk, server: walk },
            machine: None,
            decryption: None,
            held: None,
            ready: None,
            number: 0,
            state,
            requester: None,
            closed: false,
        }
    }

    /// Reads the next bytes of one side.
    pub fn data(&mut self, from: Side, mut chunk: Chunk<'_>) {
        let whole = chunk;
        let counted = self.machine.as_ref().map(|machine| machine.facts.number);
        if let Some(machine) = &mut self.machine {
            // Alone, between two packets of the peer: TLS 1.3 sends it for old middleboxes (RFC 8446 appendix D.4).
            let dummy = machine.is_tls13() && self.walk[from].is_at_change_cipher(&chunk);
            if !dummy {
                machine.facts.flights.chunk(from, &whole);
            }
        }
        while let Some(piece) = self.walk[from].next(&mut chunk) {
            self.piece(from, &piece);
        }
        if let Some(machine) = self.machine.as_mut().filter(|machine| counted != Some(machine.facts.number)) {
            machine.facts.flights.chunk(from, &whole);
        }
        self.notice_loss(from, chunk.seen);
    }

    /// Passes over bytes that the capture does not hold.
    ///
    /// A record whose header was seen is followed to its end; beyond it, this side is picked up again at
    /// the next chunk that starts with a plausible record header. Returns what of the gap lies beyond it.
    pub fn gap(&mut self, from: Side, gap: Gap) -> Gap {
        if let Some(machine) = &mut self.machine {
            machine.facts.flights.gap(from, gap.offset, gap.len, gap.seen);
        }
        let mut beyond = gap;
        if let Some(piece) = self.walk[from].gap(gap) {
            let followed = u64::from(piece.missing);
            (beyond.offset, beyond.len) = (gap.offset.saturating_add(followed), gap.len.saturating_sub(followed));
            self.piece(from, &piece);
        }
        self.notice_loss(from, gap.acked.map_or(gap.seen, |(_, last)| last));
        if self.lost_data(from)
            && let Some(mut held) = self.held.take()
        {
            held.interrupted(&mut self.ready().records);
            self.keep_unless_idle(held);
        }
        beyond
    }

    /// After a gap: did it take application data of `from` away, unless all of it was tickets?
    #[must_use]
    pub fn lost_data(&self, from: Side) -> bool {
        self.walk[from].lost() && self.machine.is_none() && self.state != State::Over
    }

    fn notice_loss(&mut self, from: Side, seen: Moment) {
        if !self.walk[from].lost() {
            return;
        }
        if let Some(machine) = &mut self.machine {
            machine.lose(from, seen);
        }
        if let Some(decryption) = &mut self.decryption {
            decryption.lose(from, seen);
        }
    }

    /// `from` sends no more: it sent a FIN or a RST.
    pub fn fin(&mut self, from: Side, _seen: Moment) {
        self.closed = true;
        if let Some(mut held) = self.held.take() {
            held.fin(from, &mut self.ready().records);
            self.keep_unless_idle(held);
        }
    }

    /// The next application record, in causal order.
    pub fn next_record(&mut self) -> Option<AppRecord> {
        let record = self.ready.as_mut()?.records.pop_front();
        self.drop_fetched();
        record
    }

    /// The next application data that was opened, in causal order.
    pub fn next_clear(&mut self) -> Option<Clear> {
        let clear = self.ready.as_mut()?.clear.pop_front();
        self.drop_fetched();
        clear
    }

    /// The next handshake that is settled.
    pub fn next_handshake(&mut self) -> Option<Box<Handshake>> {
        let handshake = self.ready.as_mut()?.handshakes.pop_front();
        self.drop_fetched();
        handshake
    }

    /// Says how much of the connection can be opened in its latest handshake; false while that is open.
    pub fn settle_keys(&self, handshake: &mut Handshake) -> bool {
        let Some(decryption) = self.decryption.as_ref().filter(|_| handshake.number + 1 == self.number) else {
            return true;
        };
        if decryption.is_undecided() {
            return false;
        }
        Coverage { keys: handshake.keys, missing: handshake.missing_keys } = decryption.coverage();
        true
    }

    fn drop_fetched(&mut self) {
        let is_empty =
            |ready: &Ready| ready.records.is_empty() && ready.clear.is_empty() && ready.handshakes.is_empty();
        if self.ready.as_deref().is_some_and(is_empty) {
            self.ready = None;
        }
    }

    fn ready(&mut self) -> &mut Ready {
        self.ready.get_or_insert_default()
    }

    /// Who sent the ClientHello; `None` while that is unknown.
    #[must_use]
    pub fn requester(&self) -> Option<Side> {
        self.machine.as_ref().and_then(|machine| machine.facts.hello_by).or(self.requester)
    }

    /// The application protocol agreed on in the handshake that is running, as far as it can be read.
    #[must_use]
    pub fn alpn(&self) -> Option<&str> {
        self.machine.as_ref()?.facts.alpn.as_deref()
    }

    /// The side whose bytes stopped being TLS records, if one did: nothing after that point was read.
    #[must_use]
    pub fn derailed(&self) -> Option<Side> {
        [Side::Client, Side::Server].into_iter().find(|&side| self.walk[side].stopped())
    }

    /// The connection is over, or the capture is: settles everything still held back.
    pub fn finish(&mut self) {
        if let Some(mut machine) = self.machine.take() {
            machine.finish(self.closed);
            self.conclude(machine);
        }
        if let Some(decryption) = &mut self.decryption {
            decryption.finish();
        }
        if let Some(mut held) = self.held.take() {
            held.finish(&mut self.ready().records);
            self.drop_fetched();
        }
    }

    fn piece(&mut self, from: Side, piece: &Piece<'_>) {
        let Some(decryption) = &mut self.decryption else {
            return self.read(from, piece);
        };
        let outcome = decryption.piece(from, piece);
        let earlier = decryption.take_earlier();
        if !earlier.is_empty() {
            self.ready().clear.extend(earlier);
        }
        match outcome {
            Outcome::Sealed => self.read(from, piece),
            Outcome::Kept | Outcome::Early => {}
            Outcome::Message(content) => self.opened(from, piece, &content),
            Outcome::Data(clear) => {
                self.ready().clear.push_back(clear);
                self.application_began(from, piece);
            }
        }
    }

    /// Takes in the content of a record that is not application data.
    fn opened(&mut self, from: Side, piece: &Piece<'_>, content: &Content) {
        let tls13 = match &self.machine {
            Some(machine) => machine.is_tls13(),
            None => self.state == State::Established13,
        };
        // What is left of the record's pieces: the last one stands for all.
        let whole = Piece { bytes: &[], starts: true, ..*piece };
        match &mut self.machine {
            Some(machine) if tls13 => {
                let exact = self
                    .decryption
                    .as_ref()
                    .is_some_and(|keys| machine.facts.hello_by.is_some_and(|client| keys.reads_handshake_of(client)));
                machine.known(from, content, piece, exact);
            }
            Some(machine) if content.kind == ALERT => machine.known_alert(content),
            // Tickets, KeyUpdates and alerts of an established connection.
            None if tls13 || content.kind == ALERT => return,
            _ => {
                self.begin_if_first(from, &whole);
                if let Some(machine) = &mut self.machine {
                    machine.revealed(from, content, piece);
                }
                return self.read(from, &whole);
            }
        }
        self.conclude_if_settled();
    }

    /// Application data was opened, perhaps before the handshake was seen to end.
    fn application_began(&mut self, from: Side, piece: &Piece<'_>) {
        let Some(machine) = &mut self.machine else {
            return;
        };
        if machine.is_tls13() {
            machine.application_began(from);
            self.conclude_if_settled();
        } else if machine.facts.server_hello.is_some() {
            self.read(from, piece);
        }
    }

    fn conclude_if_settled(&mut self) {
        if let Some(machine) = self.machine.take_if(|machine| machine.settled()) {
            self.conclude(machine);
        }
    }

    /// Reads a piece as everybody can.
    fn read(&mut self, from: Side, piece: &Piece<'_>) {
        self.begin_if_first(from, piece);
        let Some(mut machine) = self.machine.take() else {
            if piece.record.kind == APPLICATION_DATA && piece.done && self.state != State::Over {
                self.application(Seen::new(from, piece));
            }
            return;
        };
        let v2_type = self.walk[from].v2_type();
        machine.piece(from, piece, v2_type);
        if machine.is_sslv2() {
            self.walk.client.stop();
            self.walk.server.stop();
        }
        if machine.settled() {
            return self.conclude(machine);
        }
        let data = std::mem::take(&mut machine.data);
        self.machine = Some(machine);
        data.into_iter().for_each(|seen| self.application(seen));
    }

    /// Starts a handshake inside an established connection.
    #[inline]
    fn begin_if_first(&mut self, from: Side, piece: &Piece<'_>) {
        if piece.record.kind != HANDSHAKE || !piece.starts || self.machine.is_some() {
            return;
        }
        let number = self.number;
        let machine = match self.state {
            State::Established12 if self.requester == Some(from) => {
                Machine::renegotiation(number, from, piece.record.first)
            }
            // A ClientHello or ServerHello in clear, most likely; `conclude` forgets it if it was not.
            State::Unknown if matches!(piece.bytes.first(), Some(1 | 2)) => Machine::new(number),
            _ => return,
        };
        self.machine = Some(Box::new(machine));
    }

    /// Takes over from a settled handshake.
    fn conclude(&mut self, mut machine: Box<Machine>) {
        if let Some(decryption) = &self.decryption {
            Coverage { keys: machine.facts.keys, missing: machine.facts.missing_keys } = decryption.coverage();
        }
        self.decryption.take_if(|decryption| !decryption.is_of_use());
        if self.state == State::Unknown && machine.facts.hello_by.is_none() {
            return machine.data.into_iter().for_each(|seen| self.application(seen));
        }
        self.requester = machine.facts.hello_by.or(self.requester);
        self.number += 1;
        machine.close_flights();
        let complete = machine.facts.outcome == "complete";
        if self.state != State::Established12 {
            self.state = match machine.facts.outcome {
                "failed" => State::Over,
                _ if machine.is_tls13() => State::Established13,
                _ if machine.facts.server_hello.is_some() => State::Established12,
                _ => State::Unknown,
            };
        }
        let opens = self.decryption.as_ref().is_some_and(|keys| keys.reads_data());
        if complete && machine.is_tls13() && !opens {
            self.held = Some(Box::new(Held::new(machine.sizes(), machine.watch())));
        }
        self.ready().handshakes.push_back(machine.facts);
        machine.data.into_iter().for_each(|seen| self.application(seen));
    }

    fn application(&mut self, mut seen: Seen) {
        if self.decryption.as_ref().is_some_and(|keys| keys.reads(seen.record.from)) {
            // It went out in clear.
            return;
        }
        if self.state != State::Established12 && self.state != State::Opening {
            let sizes = Sizes::of(None);
            if sizes.is_key_update(seen.record.bytes) {
                seen.record.confidence = 0.5;
            }
            if self.held.is_none() && sizes.is_alert(seen.record.bytes) {
                self.held = Some(Box::new(Held::new(sizes, None)));
            }
        }
        match self.held.take() {
            Some(mut held) => {
                held.push(seen, &mut self.ready().records);
                self.keep_unless_idle(held);
            }
            None => self.ready().records.push_back(seen.record),
        }
    }

    fn keep_unless_idle(&mut self, held: Box<Held>) {
        self.held = Some(held).filter(|held| !held.is_idle());
        self.drop_fetched();
    }
}

#[cfg(test)]
impl Tls {
    fn holds_nothing(&self) -> bool {
        self.machine.is_none() && self.held.is_none() && self.ready.is_none()
    }

    fn held_records(&self) -> usize {
        self.held.as_ref().map_or(0, |held| held.len()) + self.machine.as_ref().map_or(0, |machine| machine.held())
    }

    fn buffered(&self) -> usize {
        self.machine.as_ref().map_or(0, |machine| machine.buffered())
    }
}
