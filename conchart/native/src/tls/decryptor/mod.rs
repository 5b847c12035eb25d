//! Opens the protected records of one connection whose secrets are known.
//!
//! In: parts of protected records of both sides, their handshake messages once they are read, and the [`Keys`] of
//! the run. Out: for each record, its [`Content`], or word that it stays sealed. RFC 8446 sections 5 and 7, RFC 5246
//! section 6. Non-goals: which records are protected, and what messages mean for the handshake.
//!
//! Which keys a record needs is found by trying, as a tag or MAC that verifies is proof: the keys of a direction
//! stand in the order of their use, and when the present ones do not fit, the next are tried. So neither a
//! Finished nor a KeyUpdate has to be seen. After missing bytes, up to [`direction::WINDOW`] sequence numbers further are
//! tried; if none fits, that direction is not opened any more. Memory: one record per side, at most
//! [`MAX_EARLY`] bytes of early data until it is known whether the server takes it.

mod clear;
mod coverage;
mod direction;
mod protection;
mod suite;
#[cfg(test)]
pub(crate) mod tests;

pub use clear::Clear;
pub(crate) use protection::{Aead, aead};
pub(crate) use suite::{Bulk, Hash, Suite, expand_label};

use crate::keys::{Keys, Label, Random, Secret, Secrets};
use crate::stream::{BySide, Moment, Side};

use super::KeyCoverage;
use super::hello::{Body, ClientHello, ServerHello, codes};
use super::record::{APPLICATION_DATA, HEADER, RecordPart};
use direction::{Direction, Epoch, EpochKeys};
use protection::Encrypted;
use suite::key_block;

pub(super) use suite::overhead;

pub(super) use coverage::{Coverage, covered};
pub(super) use protection::Content;

/// Bytes of early data kept until the server has said whether it takes them.
const MAX_EARLY: usize = 64 * 1024;

/// What became of a part of a protected record.
#[derive(Debug)]
pub(super) enum Opened {
    /// Encrypted for us as for everybody: it is read as if there were no keys.
    Encrypted,
    /// A part of a record, the rest of which is to come.
    Buffered,
    /// Handshake messages, an alert, or (TLS 1.2) a ChangeCipherSpec.
    Content(Content),
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

/// The keys of one connection.
#[derive(Debug)]
pub(super) struct Decryptor {
    keys: Keys,
    client: Option<Side>,
    random: Option<Random>,
    /// The session that the client would resume by its ticket: the id that tells whether the server does (RFC 5077
    /// section 3.4), and its master secret.
    resumable: Option<(Box<[u8]>, Secret)>,
    /// TLS 1.2 and older: the master secret in use.
    master: Option<Secret>,
    /// Suites that the client offers, as codes: one of them protects its early data.
    offered: Vec<u16>,
    sides: BySide<Direction>,
    /// What the secrets promised when the server had chosen.
    promised: Coverage,
    /// Content lengths of records that cannot be opened are their lengths less this.
    overhead: u64,
    early: EarlyData,
    /// Data found missing by the part that was read last.
    gaps: Vec<Clear>,
    /// Data was opened: before, missing bytes count as sealed ones.
    has_opened: bool,
}

impl Decryptor {
    pub fn new(keys: Keys) -> Self {
        Self {
            keys,
            client: None,
            random: None,
            resumable: None,
            master: None,
            offered: Vec::new(),
            sides: BySide::default(),
            promised: Coverage::default(),
            overhead: 0,
            early: EarlyData::Refused,
            gaps: Vec::new(),
            has_opened: false,
        }
    }

    /// Are application records of that side opened?
    pub fn reads(&self, from: Side) -> bool {
        self.sides[from].data
    }

    /// Will they be, as far as is known?
    pub fn reads_data(&self) -> bool {
        let will = |side: &Direction| side.data || side.has_keys_of(Epoch::Data);
        will(&self.sides.client) && will(&self.sides.server)
    }

    /// Can that side's handshake records of TLS 1.3 be opened?
    pub fn reads_handshake_of(&self, from: Side) -> bool {
        self.sides[from].has_keys_of(Epoch::Handshake)
    }

    /// Could anything still be opened?
    pub fn is_of_use(&self) -> bool {
        let has = |side: &Direction| !side.keys.is_empty() || side.data;
        self.promised.keys.is_none() || has(&self.sides.client) || has(&self.sides.server)
    }

    /// Will application data show yet whether its keys are the right ones?
    pub fn is_undecided(&self) -> bool {
        let untried = |side: &Direction| !side.data && side.has_keys_of(Epoch::Data);
        untried(&self.sides.client) || untried(&self.sides.server)
    }

    /// Nothing more will come.
    pub fn finish(&mut self) {
        self.sides.client.keys.clear();
        self.sides.server.keys.clear();
    }

    /// What goes before the outcome of the part: early data that the server has taken by now, and word of data
    /// that is missing.
    pub fn take_earlier(&mut self) -> Vec<Clear> {
        let mut earlier = match &mut self.early {
            EarlyData::Taken(buffered) => std::mem::take(buffered),
            _ => Vec::new(),
        };
        self.has_opened |= !earlier.is_empty();
        earlier.append(&mut self.gaps);
        earlier
    }

    /// Bytes of `from` are missing, and it is not known where its next record begins.
    pub fn miss(&mut self, from: Side) {
        let side = &mut self.sides[from];
        side.unsure = true;
        side.missed_sealed |= !self.has_opened;
        side.body = Vec::new();
        side.marks = Vec::new();
    }

    /// Takes in the next part of a protected record.
    pub fn open(&mut self, from: Side, part: &RecordPart<'_>) -> Opened {
        let side = &mut self.sides[from];
        let is_data = part.record.kind == APPLICATION_DATA;
        if side.keys.is_empty() {
            return if side.data && is_data { self.unopened(from, part) } else { Opened::Encrypted };
        }
        if !side.collect(part) {
            return Opened::Buffered;
        }
        let (body, marks) = (std::mem::take(&mut side.body), std::mem::take(&mut side.marks));
        let opened = self.open_whole(from, part, if body.is_empty() { part.bytes } else { &body }, &marks);
        direction::give_back(body);
        opened
    }

    /// Opens a record whose body is `bytes`, as far as it was captured; `part` ends it.
    fn open_whole(&mut self, from: Side, part: &RecordPart<'_>, bytes: &[u8], marks: &[(usize, Moment)]) -> Opened {
        let side = &mut self.sides[from];
        let is_data = part.record.kind == APPLICATION_DATA;
        let start = side.end.replace(part.record.end());
        let skipped = start.map_or(0, |end| part.record.offset.saturating_sub(end));
        if side.cut || part.missing > 0 || bytes.len() != usize::from(part.record.length) {
            side.unsure = true;
            if let Some(keys) = side.keys.first_mut() {
                keys.sequence += 1;
            }
            return if side.data && is_data { self.unopened(from, part) } else { Opened::Encrypted };
        }
        let [kind, _] = part.record.kind.to_le_bytes();
        let record = Encrypted { kind, version: part.record.version.to_be_bytes(), body: bytes };
        let (begun, expected) = (side.data, side.next_sequence());
        let missed_sealed = std::mem::take(&mut side.missed_sealed);
        let opened = side.open(record);
        if begun && skipped > 0 && !missed_sealed {
            // Exact where the keys did not change: each record had a header and its protection.
            let records = side.next_sequence().saturating_sub(expected).saturating_sub(1);
            let missing = skipped.saturating_sub(records.saturating_mul(HEADER as u64 + self.overhead));
            let ends = (part.record.acked, part.record.offset);
            self.gaps.push(Clear::unopened(from, ends, (part.record.first, part.record.first), missing));
        }
        match opened {
            Some((epoch, content)) => self.opened(from, part, epoch, content, marks),
            None => {
                side.fail();
                if begun && is_data { self.unopened(from, part) } else { Opened::Encrypted }
            }
        }
    }

    fn unopened(&self, from: Side, part: &RecordPart<'_>) -> Opened {
        if !part.done {
            return Opened::Buffered;
        }
        let missing = u64::from(part.record.length).saturating_sub(self.overhead);
        Opened::Data(clear(from, part, missing))
    }

    fn opened(
        &mut self,
        from: Side,
        part: &RecordPart<'_>,
        epoch: Epoch,
        content: Content,
        marks: &[(usize, Moment)],
    ) -> Opened {
        if content.kind != APPLICATION_DATA {
            return Opened::Content(content);
        }
        let clear = clear(from, part, 0).opened(content.bytes, content.offset, marks);
        match &mut self.early {
            EarlyData::Waiting(buffered) if epoch == Epoch::Early => {
                let bytes: usize = buffered.iter().map(|clear| clear.content.len()).sum();
                if bytes < MAX_EARLY {
                    buffered.push(clear);
                }
                return Opened::Early;
            }
            EarlyData::Refused if epoch == Epoch::Early => return Opened::Early,
            _ => {}
        }
        self.has_opened = true;
        Opened::Data(clear)
    }

    /// What a handshake message says about the keys to come.
    pub fn hear(&mut self, from: Side, body: &Body<'_>) {
        match body {
            Body::ClientHello(hello) => self.client_hello(from, hello),
            Body::ServerHello(hello) if self.client != Some(from) => self.server_hello(from, hello),
            Body::EncryptedExtensions(extensions) if self.client != Some(from) => {
                self.decide_early(extensions.early_data);
            }
            Body::EndOfEarlyData => self.decide_early(true),
            Body::NewSessionTicket { ticket } => {
                if let Some(master) = self.master {
                    self.keys.remember_ticket(ticket, master);
                }
            }
            _ => {}
        }
    }

    fn decide_early(&mut self, taken: bool) {
        let buffered =
            if let EarlyData::Waiting(buffered) = &mut self.early { std::mem::take(buffered) } else { return };
        self.early = if taken { EarlyData::Taken(buffered) } else { EarlyData::Refused };
    }

    fn client_hello(&mut self, from: Side, hello: &ClientHello<'_>) {
        self.client = Some(from);
        self.random = hello.random;
        self.offered = codes(hello.ciphers).collect();
        let resumed = hello.ticket.and_then(|ticket| self.keys.of_ticket(ticket));
        self.resumable = resumed.map(|master| (hello.session_id.into(), master));
        if hello.early_data {
            self.expect_early(from);
        }
    }

    /// The suite of early data is that of the session which is resumed: any of the offered ones whose hash
    /// has the length of the secret.
    fn expect_early(&mut self, from: Side) {
        let Some(secret) = self.random.and_then(|random| self.keys.of_early_data(&random)) else {
            return;
        };
        let suites = self.offered.iter().filter(|&&code| code >> 8 == 0x13);
        let suites = suites.filter_map(|&code| Suite::of(code, 0x0304));
        let fitting = suites.filter(|suite| suite.hash.len() == secret.bytes().len());
        self.sides[from].keys = fitting.filter_map(|suite| EpochKeys::of_secret(Epoch::Early, suite, secret)).collect();
        self.early = EarlyData::Waiting(Vec::new());
    }

    fn server_hello(&mut self, from: Side, hello: &ServerHello<'_>) {
        let Some(random) = self.random.filter(|_| !hello.retry) else {
            // Early data is over with a HelloRetryRequest; its records are skipped.
            self.early = EarlyData::Refused;
            return;
        };
        let code = hello.cipher.unwrap_or_default();
        let mut secrets = self.keys.of(&random, hello.session_id);
        if !hello.version.is_tls13() {
            self.choose_master(&mut secrets, hello.session_id);
        }
        self.promised = match (secrets, Suite::of(code, hello.version.0)) {
            (None, _) => KeyCoverage::None.into(),
            (Some(_), None) => KeyCoverage::Unsupported.into(),
            (Some(secrets), Some(suite)) if hello.version.is_tls13() => self.expect13(from, suite, &secrets, hello.psk),
            (Some(secrets), Some(suite)) => self.expect12(from, suite, &secrets, &random, hello),
        };
        self.offered = Vec::new();
    }

    /// A resumed session has the master secret of the first one, which may be all that the key log names.
    fn choose_master(&mut self, secrets: &mut Option<Secrets>, session_id: &[u8]) {
        let logged = secrets.as_ref().and_then(|secrets| secrets.get(Label::Master));
        let resumable = self.resumable.take().filter(|(id, _)| !id.is_empty() && **id == *session_id);
        self.master = logged.or(resumable.map(|(_, master)| master));
        if let Some(master) = self.master {
            secrets.get_or_insert_default().set(Label::Master, master);
            self.keys.remember_session(session_id, master);
        }
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
                direction.keys.extend(EpochKeys::of_secret(epoch, suite, secret));
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
        let version = hello.version.0;
        let keys = secrets.get(Label::Master).zip(hello.random).and_then(|(master, server_random)| {
            let lengths = protection::lengths(suite, version);
            let total = 2 * lengths.iter().sum::<usize>();
            let block = key_block(suite.hash, master.bytes(), client_random, &server_random, total)?;
            let mut rest = block.as_slice();
            let mut parts: [BySide<&[u8]>; 3] = Default::default();
            for (part, len) in parts.iter_mut().zip(lengths) {
                (part.client, rest) = rest.split_at_checked(len)?;
                (part.server, rest) = rest.split_at_checked(len)?;
            }
            let keys = |keys| protection::of_keys(suite, version, hello.encrypt_then_mac, keys);
            Some(BySide { client: keys(parts.map(|part| part.client))?, server: keys(parts.map(|part| part.server))? })
        });
        if let Some(BySide { client, server: of_server }) = keys {
            self.overhead = client.overhead();
            for (side, protection) in [(server.peer(), client), (server, of_server)] {
                let keys = EpochKeys { epoch: Epoch::Data, protection, sequence: 0, secret: None };
                self.sides[side].keys.push(keys);
            }
        }
        covered(secrets, &[Label::Master])
    }
}

/// `part` is the one that ends the record.
fn clear(from: Side, part: &RecordPart<'_>, missing: u64) -> Clear {
    let record = &part.record;
    Clear::unopened(from, (record.acked, record.end()), (record.first, part.seen), missing)
}
