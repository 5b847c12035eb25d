//! Opens the records of one connection whose secrets are known.
//!
//! In: pieces of records of both sides, and the [`Keys`] of the run. Out: for each record, its [`Content`], or word
//! that it stays sealed. RFC 8446 sections 5 and 7, RFC 5246 section 6.
//!
//! Which keys a record needs is found by trying, as a tag or MAC that verifies is proof: the keys of a direction
//! stand in the order of their use, and when the present ones do not fit, the next are tried. So neither a
//! Finished nor a KeyUpdate has to be seen. After bytes went missing, up to [`direction::WINDOW`] sequence numbers further are
//! tried; if none fits, that direction is not opened any more. Memory: one record per side, at most
//! [`MAX_EARLY`] bytes of early data until it is known whether the server takes it.

mod clear;
mod direction;
mod protection;
pub(crate) mod suite;
#[cfg(test)]
pub(crate) mod tests;

pub use clear::Clear;

use crate::keys::{Keys, Label, Random, Secrets};
use crate::stream::{BySide, Moment, Side};

use super::hello::{ClientHello, EncryptedExtensions, ServerHello, codes};
use super::messages::Message;
use super::messages::message::{CLIENT_HELLO, ENCRYPTED_EXTENSIONS, END_OF_EARLY_DATA, SERVER_HELLO};
use super::names;
use super::record::{APPLICATION_DATA, CHANGE_CIPHER_SPEC, HANDSHAKE, HEADER, Piece};
use direction::{Direction, Epoch, Opener};
use protection::Sealed;
use suite::{Suite, key_block};

pub(super) use protection::Content;

/// Bytes of early data kept until the server has said whether it takes them.
const MAX_EARLY: usize = 64 * 1024;

/// What became of a record.
#[derive(Debug)]
pub(super) enum Outcome {
    /// In clear, or sealed for us as for everybody: it is read as if there were no keys.
    Sealed,
    /// A part of a record, the rest of which is to come.
    Kept,
    /// Handshake messages, an alert, or (TLS 1.2) a ChangeCipherSpec.
    Message(Content),
    /// Application data.
    Data(Clear),
    /// Early data: it is kept here until the server has taken it.
    Early,
}

/// What becomes of the data that a client sends with its hello (RFC 8446 section 4.2.10).
#[derive(Debug)]
enum EarlyData {
    /// The server skips it, and the client sends it again.
    Refused,
    /// Kept until the server says.
    Waiting(Vec<Clear>),
    /// Taken; what was kept has yet to be fetched.
    Taken(Vec<Clear>),
}

/// How much of a handshake's connection can be opened; `None` while unknown.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Coverage {
    pub keys: Option<&'static str>,
    pub missing: Option<Box<str>>,
}

/// The keys of one connection.
#[derive(Debug)]
pub(super) struct Decryption {
    keys: Keys,
    client: Option<Side>,
    random: Option<Random>,
    /// Suites that the client offers, as codes: one of them protects its early data.
    offered: Vec<u16>,
    sides: BySide<Direction>,
    coverage: Coverage,
    /// Content lengths of records that cannot be opened are their lengths less this.
    overhead: u64,
    early: EarlyData,
    /// Data found missing by the piece that was read last.
    gaps: Vec<Clear>,
    /// Data was opened: before, bytes that went missing count as sealed ones.
    has_opened: bool,
    is_tls13: bool,
}

impl Decryption {
    pub fn new(keys: Keys) -> Self {
        Self {
            keys,
            client: None,
            random: None,
            offered: Vec::new(),
            sides: BySide::default(),
            coverage: Coverage::default(),
            overhead: 0,
            early: EarlyData::Refused,
            gaps: Vec::new(),
            has_opened: false,
            is_tls13: false,
        }
    }

    /// Are application records of that side opened?
    pub fn reads(&self, from: Side) -> bool {
        self.sides[from].data
    }

    /// Will they be, as far as is known?
    pub fn reads_data(&self) -> bool {
        let will = |side: &Direction| side.data || side.openers.iter().any(|opener| opener.epoch == Epoch::Data);
        will(&self.sides.client) && will(&self.sides.server)
    }

    /// Can that side's handshake records of TLS 1.3 be opened?
    pub fn reads_handshake_of(&self, from: Side) -> bool {
        self.sides[from].openers.iter().any(|opener| opener.epoch == Epoch::Handshake)
    }

    /// Could anything still be opened?
    pub fn is_of_use(&self) -> bool {
        let has = |side: &Direction| !side.openers.is_empty() || side.data;
        self.coverage.keys.is_none() || has(&self.sides.client) || has(&self.sides.server)
    }

    /// Will application data show yet whether its keys are the right ones?
    pub fn is_undecided(&self) -> bool {
        let untried = |side: &Direction| !side.data && side.openers.iter().any(|opener| opener.epoch == Epoch::Data);
        untried(&self.sides.client) || untried(&self.sides.server)
    }

    /// Nothing more will come.
    pub fn finish(&mut self) {
        self.sides.client.openers.clear();
        self.sides.server.openers.clear();
    }

    /// How much could be opened up to now; the handshake is over.
    pub fn coverage(&self) -> Coverage {
        let Direction { opened, sealed, .. } = self.sides.client;
        let server = &self.sides.server;
        let tried = sealed > 0 || server.sealed > 0;
        if self.coverage.keys == Some("all") && tried && !opened && !server.opened {
            return Coverage { keys: Some("wrong"), missing: None };
        }
        let useless: Vec<&str> =
            [(self.client, Label::ClientTraffic), (self.client.map(Side::peer), Label::ServerTraffic)]
                .into_iter()
                .filter(|&(side, _)| self.is_tls13 && side.is_some_and(|side| self.sides[side].is_sealed_for_good()))
                .map(|(_, label)| label.name())
                .collect();
        if self.coverage.keys != Some("all") || useless.is_empty() {
            return self.coverage.clone();
        }
        Coverage { keys: Some("partial"), missing: Some(useless.join(",").into()) }
    }

    /// What goes before the outcome of the piece: early data that the server has taken by now, and word of data
    /// that is missing.
    pub fn take_earlier(&mut self) -> Vec<Clear> {
        let mut earlier = match &mut self.early {
            EarlyData::Taken(kept) => std::mem::take(kept),
            _ => Vec::new(),
        };
        self.has_opened |= !earlier.is_empty();
        earlier.append(&mut self.gaps);
        earlier
    }

    /// Bytes of `from` are missing, and it is not known where its next record begins.
    pub fn lose(&mut self, from: Side, seen: Moment) {
        let side = &mut self.sides[from];
        side.unsure = true;
        side.lost_sealed |= !self.has_opened;
        side.messages.lose(seen, &mut |_| {});
        side.body = Vec::new();
        side.marks = Vec::new();
    }

    pub fn piece(&mut self, from: Side, piece: &Piece<'_>) -> Outcome {
        let side = &mut self.sides[from];
        let kind = piece.record.kind;
        side.changed |= kind == APPLICATION_DATA;
        let sealed = if self.is_tls13 { kind == APPLICATION_DATA } else { side.changed };
        if kind == CHANGE_CIPHER_SPEC && piece.done && !side.changed {
            // A client of TLS 1.3 may send a dummy before it knows the version.
            side.changed = self.coverage.keys.is_some();
            return Outcome::Sealed;
        }
        if !sealed || side.openers.is_empty() {
            if kind == HANDSHAKE && !side.changed {
                self.handshake(from, piece.bytes, piece.missing, piece.seen);
            }
            return if side_is_lost(&self.sides[from], kind) { self.lost(from, piece) } else { Outcome::Sealed };
        }
        if piece.starts {
            side.body.clear();
            side.marks.clear();
            side.holed = false;
        }
        if !(piece.starts && piece.done) {
            side.body.extend_from_slice(piece.bytes);
            side.marks.push((side.body.len(), piece.seen));
            side.holed |= piece.missing > 0;
            if !piece.done {
                return Outcome::Kept;
            }
        }
        let start = side.end.replace(piece.record.end());
        let skipped = start.map_or(0, |end| piece.record.offset.saturating_sub(end));
        let (body, marks) = (std::mem::take(&mut side.body), std::mem::take(&mut side.marks));
        let bytes = if body.is_empty() { piece.bytes } else { &body };
        if side.holed || piece.missing > 0 || bytes.len() != usize::from(piece.record.length) {
            side.unsure = true;
            side.messages.lose(piece.seen, &mut |_| {});
            if let Some(opener) = side.openers.first_mut() {
                opener.sequence += 1;
            }
            return if side.data && kind == APPLICATION_DATA { self.lost(from, piece) } else { Outcome::Sealed };
        }
        let [kind_byte, _] = kind.to_le_bytes();
        let record = Sealed { kind: kind_byte, version: piece.record.version.to_be_bytes(), body: bytes };
        let (begun, expected) = (side.data, side.openers.first().map_or(0, |opener| opener.sequence));
        let lost_sealed = std::mem::take(&mut side.lost_sealed);
        let opened = side.open(record);
        if begun && skipped > 0 && !lost_sealed {
            // Exact where the keys did not change: each record had a header and its protection.
            let reached = side.openers.first().map_or(0, |opener| opener.sequence);
            let records = reached.saturating_sub(expected).saturating_sub(1);
            let missing = skipped.saturating_sub(records.saturating_mul(HEADER as u64 + self.overhead));
            let ends = (piece.record.acked, piece.record.offset);
            self.gaps.push(Clear::lost(from, ends, (piece.record.first, piece.record.first), missing));
        }
        match opened {
            Some((epoch, content)) => self.opened(from, piece, epoch, content, &marks),
            None => {
                self.sides[from].fail();
                if begun && kind == APPLICATION_DATA { self.lost(from, piece) } else { Outcome::Sealed }
            }
        }
    }

    fn lost(&self, from: Side, piece: &Piece<'_>) -> Outcome {
        if !piece.done {
            return Outcome::Kept;
        }
        let missing = u64::from(piece.record.length).saturating_sub(self.overhead);
        Outcome::Data(clear(from, piece, missing))
    }

    fn opened(
        &mut self,
        from: Side,
        piece: &Piece<'_>,
        epoch: Epoch,
        content: Content,
        marks: &[(usize, Moment)],
    ) -> Outcome {
        if content.kind != APPLICATION_DATA {
            if content.kind == HANDSHAKE {
                self.handshake(from, &content.bytes, 0, piece.seen);
            }
            return Outcome::Message(content);
        }
        let clear = clear(from, piece, 0).opened(content.bytes, content.at, marks);
        match &mut self.early {
            EarlyData::Waiting(kept) if epoch == Epoch::Early => {
                let bytes: usize = kept.iter().map(|kept| kept.content.len()).sum();
                if bytes < MAX_EARLY {
                    kept.push(clear);
                }
                return Outcome::Early;
            }
            EarlyData::Refused if epoch == Epoch::Early => return Outcome::Early,
            _ => {}
        }
        self.has_opened = true;
        Outcome::Data(clear)
    }

    fn handshake(&mut self, from: Side, bytes: &[u8], missing: u16, seen: Moment) {
        let mut messages = std::mem::take(&mut self.sides[from].messages);
        messages.push(bytes, missing, (seen, seen), &mut |message| self.message(from, message));
        self.sides[from].messages = messages;
    }

    fn message(&mut self, from: Side, message: Message<'_>) {
        match message.kind {
            CLIENT_HELLO => self.client_hello(from, &ClientHello::read(message.body, message.length)),
            SERVER_HELLO if self.client != Some(from) => {
                if let Some(hello) = ServerHello::read(message.body) {
                    self.server_hello(from, &hello);
                }
            }
            ENCRYPTED_EXTENSIONS if self.client != Some(from) => {
                self.decide_early(EncryptedExtensions::read(message.body).early_data);
            }
            END_OF_EARLY_DATA => self.decide_early(true),
            _ => {}
        }
    }

    fn decide_early(&mut self, taken: bool) {
        let kept = if let EarlyData::Waiting(kept) = &mut self.early { std::mem::take(kept) } else { return };
        self.early = if taken { EarlyData::Taken(kept) } else { EarlyData::Refused };
    }

    fn client_hello(&mut self, from: Side, hello: &ClientHello<'_>) {
        self.client = Some(from);
        self.random = hello.random;
        self.offered = codes(hello.ciphers).collect();
        if hello.early_data {
            self.expect_early(from);
        }
    }

    /// The suite of early data is that of the session which is resumed: any of the offered ones whose hash
    /// has the length of the secret.
    fn expect_early(&mut self, from: Side) {
        let secrets = self.random.and_then(|random| self.keys.of(&random, &[]));
        let Some(secret) = secrets.and_then(|secrets| secrets.get(Label::ClientEarly)) else {
            return;
        };
        let suites = self.offered.iter().filter(|&&code| code >> 8 == 0x13);
        let suites = suites.filter_map(|&code| Suite::of(code, 0x0304));
        let fitting = suites.filter(|suite| suite.hash.len() == secret.bytes().len());
        self.sides[from].openers = fitting.filter_map(|suite| Opener::of_secret(Epoch::Early, suite, secret)).collect();
        self.early = EarlyData::Waiting(Vec::new());
        self.is_tls13 = true;
    }

    fn server_hello(&mut self, from: Side, hello: &ServerHello<'_>) {
        let Some(random) = self.random.filter(|_| !hello.retry) else {
            // Early data is over with a HelloRetryRequest; its records are skipped.
            self.early = EarlyData::Refused;
            return;
        };
        self.is_tls13 = names::is_tls13(hello.version);
        let code = hello.cipher.unwrap_or_default();
        self.coverage = match (self.keys.of(&random, hello.session_id), Suite::of(code, hello.version)) {
            (None, _) => Coverage { keys: Some("none"), missing: None },
            (Some(_), None) => Coverage { keys: Some("unsupported"), missing: None },
            (Some(secrets), Some(suite)) if self.is_tls13 => self.expect13(from, suite, &secrets, hello.psk),
            (Some(secrets), Some(suite)) => self.expect12(from, suite, &secrets, &random, hello),
        };
        self.offered = Vec::new();
    }

    fn expect13(&mut self, server: Side, suite: Suite, secrets: &Secrets, psk: bool) -> Coverage {
        self.overhead = protection::of_secret(suite, &[0; 48]).map_or(0, |keys| keys.overhead());
        if !psk {
            self.early = EarlyData::Refused;
        }
        let traffic = secrets.get(Label::ClientTraffic).zip(secrets.get(Label::ServerTraffic));
        let sides = [
            (server.peer(), Label::ClientHandshake, traffic.map(|(client, _)| client)),
            (server, Label::ServerHandshake, traffic.map(|(_, server)| server)),
        ];
        for (side, label, traffic) in sides {
            let direction = &mut self.sides[side];
            let handshake = secrets.get(label).map(|secret| (Epoch::Handshake, secret));
            for (epoch, secret) in handshake.into_iter().chain(traffic.map(|secret| (Epoch::Data, secret))) {
                direction.openers.extend(Opener::of_secret(epoch, suite, secret));
            }
        }
        let needed = [Label::ClientHandshake, Label::ServerHandshake, Label::ClientTraffic, Label::ServerTraffic];
        covered(secrets, &needed)
    }

    fn expect12(
        &mut self,
        server: Side,
        suite: Suite,
        secrets: &Secrets,
        client_random: &Random,
        hello: &ServerHello<'_>,
    ) -> Coverage {
        let openers = secrets.get(Label::Master).zip(hello.random).and_then(|(master, server_random)| {
            let lengths = protection::lengths(suite, hello.version);
            let total = 2 * lengths.iter().sum::<usize>();
            let block = key_block(suite.hash, master.bytes(), client_random, &server_random, total)?;
            let mut rest = block.as_slice();
            let mut parts: [BySide<&[u8]>; 3] = Default::default();
            for (part, len) in parts.iter_mut().zip(lengths) {
                (part.client, rest) = rest.split_at_checked(len)?;
                (part.server, rest) = rest.split_at_checked(len)?;
            }
            let keys = |keys| protection::of_keys(suite, hello.version, hello.encrypt_then_mac, keys);
            Some(BySide { client: keys(parts.map(|part| part.client))?, server: keys(parts.map(|part| part.server))? })
        });
        let Some(BySide { client, server: of_server }) = openers else {
            return covered(secrets, &[Label::Master]);
        };
        self.overhead = client.overhead();
        for (side, protection) in [(server.peer(), client), (server, of_server)] {
            let opener = Opener { epoch: Epoch::Data, protection, sequence: 0, secret: None };
            self.sides[side].openers.push(opener);
        }
        covered(secrets, &[Label::Master])
    }
}

/// A direction that was opened, and cannot be any more.
fn side_is_lost(side: &Direction, kind: u16) -> bool {
    side.data && side.openers.is_empty() && kind == APPLICATION_DATA
}

/// `piece` is the one that ends the record.
fn clear(from: Side, piece: &Piece<'_>, missing: u64) -> Clear {
    let record = &piece.record;
    Clear::lost(from, (record.acked, record.end()), (record.first, piece.seen), missing)
}

fn covered(secrets: &Secrets, needed: &[Label]) -> Coverage {
    let missing: Vec<&str> =
        needed.iter().filter(|&&label| secrets.get(label).is_none()).map(|label| label.name()).collect();
    if missing.is_empty() {
        Coverage { keys: Some("all"), missing: None }
    } else if missing.len() == needed.len() {
        Coverage { keys: Some("none"), missing: None }
    } else {
        Coverage { keys: Some("partial"), missing: Some(missing.join(",").into()) }
    }
}
