//! TLS secrets by connection: NSS key log lines in, secrets out.
//!
//! Format: draft-ietf-tls-keylogfile (`LABEL client_random secret`, hex), and `RSA Session-ID:… Master-Key:…`,
//! which OpenSSL prints. In: text of key log files and of pcapng Decryption Secrets Blocks. Out: the
//! [`Secrets`] of a connection. Nothing that is kept here is ever printed: messages name lines, not their text.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use foldhash::fast::RandomState;
use sha2::{Digest, Sha256};

/// Connections whose secrets are kept: as many as may be open at once. Later ones are ignored, and reported.
const MAX_CONNECTIONS: usize = 1 << 18;
/// Tickets of sessions that may be resumed: one for each connection, mostly.
const MAX_TICKETS: usize = 1 << 16;
/// Longest secret: SHA-384's (RFC 8446 section 7.1), and the master secret (RFC 5246 section 8.1).
const MAX_SECRET: usize = 48;

/// The client's random: names a connection.
pub type Random = [u8; 32];

/// What a secret is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Label {
    /// The master secret of TLS 1.2 and older.
    Master,
    ClientEarly,
    ClientHandshake,
    ServerHandshake,
    ClientTraffic,
    ServerTraffic,
}

impl Label {
    const ALL: [Self; 6] = [
        Self::Master,
        Self::ClientEarly,
        Self::ClientHandshake,
        Self::ServerHandshake,
        Self::ClientTraffic,
        Self::ServerTraffic,
    ];

    /// The name in a key log.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Master => "CLIENT_RANDOM",
            Self::ClientEarly => "CLIENT_EARLY_TRAFFIC_SECRET",
            Self::ClientHandshake => "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
            Self::ServerHandshake => "SERVER_HANDSHAKE_TRAFFIC_SECRET",
            Self::ClientTraffic => "CLIENT_TRAFFIC_SECRET_0",
            Self::ServerTraffic => "SERVER_TRAFFIC_SECRET_0",
        }
    }
}

/// One secret. Does not print itself.
#[derive(Clone, Copy)]
pub struct Secret {
    bytes: [u8; MAX_SECRET],
    len: u8,
}

impl Secret {
    /// `None` when it is too long.
    #[must_use]
    pub fn new(secret: &[u8]) -> Option<Self> {
        let mut bytes = [0; MAX_SECRET];
        bytes.get_mut(..secret.len())?.copy_from_slice(secret);
        Some(Self { bytes, len: u8::try_from(secret.len()).ok()? })
    }

    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// What is known about one connection.
#[derive(Clone, Debug, Default)]
pub struct Secrets([Option<Secret>; Label::ALL.len()]);

impl Secrets {
    /// The secret of that label.
    #[must_use]
    pub fn get(&self, label: Label) -> Option<Secret> {
        let at = Label::ALL.iter().position(|&other| other == label)?;
        self.0.get(at).copied().flatten()
    }

    /// Can everything be opened after the ServerHello, whatever the version?
    fn suffice(&self) -> bool {
        let traffic = [Label::ClientHandshake, Label::ServerHandshake, Label::ClientTraffic, Label::ServerTraffic];
        self.get(Label::Master).is_some() || traffic.into_iter().all(|label| self.get(label).is_some())
    }

    pub fn set(&mut self, label: Label, secret: Secret) {
        let at = Label::ALL.iter().position(|&other| other == label);
        if let Some(slot) = at.and_then(|at| self.0.get_mut(at)) {
            *slot = Some(secret);
        }
    }
}

/// What was wrong with a key log.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Complaints {
    /// All lines, empty ones and comments too.
    pub lines: u64,
    /// Lines that were understood, whether or not their label is of use here.
    pub valid: u64,
    pub malformed: u64,
    /// Number of the first malformed line, from 1.
    pub first_malformed: u64,
    /// Lines of connections beyond [`MAX_CONNECTIONS`].
    pub excess: u64,
}

#[derive(Debug, Default)]
struct Store {
    connections: HashMap<Random, Secrets, RandomState>,
    /// Master secrets by session id.
    sessions: HashMap<Box<[u8]>, Secret, RandomState>,
    /// Master secrets by the digest of a session ticket (RFC 5077).
    tickets: HashMap<[u8; 32], Secret, RandomState>,
}

/// All secrets of a run: cheap to clone, every clone sees what is added.
#[derive(Clone, Default)]
pub struct Keys(Rc<Shared>);

#[derive(Default)]
struct Shared {
    store: RefCell<Store>,
    /// Adds the secrets that lie further on in the captures.
    search: RefCell<Option<Box<Search>>>,
}

/// Looks for more secrets, and adds them.
type Search = dyn FnOnce(&Keys);

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys")
    }
}

impl Keys {
    /// Calls `search` once, when a secret is asked for that is not known: it costs a walk through the captures.
    pub fn search_if_needed(&self, search: impl FnOnce(&Self) + 'static) {
        *self.0.search.borrow_mut() = Some(Box::new(search));
    }

    fn search(&self) {
        let search = self.0.search.borrow_mut().take();
        if let Some(search) = search {
            search(self);
        }
    }

    /// Are there secrets of any connection?
    #[must_use]
    pub fn are_any(&self) -> bool {
        if self.is_empty() {
            self.search();
        }
        !self.is_empty()
    }

    fn is_empty(&self) -> bool {
        let store = self.0.store.borrow();
        store.connections.is_empty() && store.sessions.is_empty()
    }

    /// What is known about the connection of that client random or session id.
    #[must_use]
    pub fn of(&self, random: &Random, session_id: &[u8]) -> Option<Secrets> {
        self.look_up(random, session_id).filter(Secrets::suffice).or_else(|| {
            self.search();
            self.look_up(random, session_id)
        })
    }

    /// The secret of the early data of that client random.
    #[must_use]
    pub fn of_early_data(&self, random: &Random) -> Option<Secret> {
        let early = || self.look_up(random, &[])?.get(Label::ClientEarly);
        early().or_else(|| {
            self.search();
            early()
        })
    }

    fn look_up(&self, random: &Random, session_id: &[u8]) -> Option<Secrets> {
        let store = self.0.store.borrow();
        let mut found = store.connections.get(random).cloned();
        if let Some(&master) = store.sessions.get(session_id) {
            let secrets = found.get_or_insert_default();
            if secrets.get(Label::Master).is_none() {
                secrets.set(Label::Master, master);
            }
        }
        found
    }

    /// A session of that id and master secret was established: who resumes it uses the secret again, and no key log
    /// need name the new connection (RFC 5246 section 7.3).
    pub fn remember_session(&self, id: &[u8], master: Secret) {
        let mut store = self.0.store.borrow_mut();
        if !id.is_empty() && store.sessions.len() < MAX_CONNECTIONS {
            store.sessions.insert(id.into(), master);
        }
    }

    /// The server gave that ticket to a session of that master secret.
    pub fn remember_ticket(&self, ticket: &[u8], master: Secret) {
        let mut store = self.0.store.borrow_mut();
        if !ticket.is_empty() && store.tickets.len() < MAX_TICKETS {
            store.tickets.insert(Sha256::digest(ticket).into(), master);
        }
    }

    /// The master secret of the session that a ticket resumes.
    #[must_use]
    pub fn of_ticket(&self, ticket: &[u8]) -> Option<Secret> {
        let store = self.0.store.borrow();
        if store.tickets.is_empty() {
            return None;
        }
        store.tickets.get::<[u8; 32]>(&Sha256::digest(ticket).into()).copied()
    }

    /// Takes in the text of a key log.
    pub fn add(&self, text: &[u8]) -> Complaints {
        let mut complaints = Complaints::default();
        text.split(|&byte| byte == b'\n').for_each(|line| self.add_line(line, &mut complaints));
        complaints
    }

    /// Takes in the next line of a key log.
    pub fn add_line(&self, line: &[u8], complaints: &mut Complaints) {
        complaints.lines += 1;
        match self.0.store.borrow_mut().line(line.trim_ascii()) {
            Line::Empty => {}
            Line::Valid => complaints.valid += 1,
            Line::Excess => complaints.excess += 1,
            Line::Malformed => {
                complaints.malformed += 1;
                if complaints.malformed == 1 {
                    complaints.first_malformed = complaints.lines;
                }
            }
        }
    }
}

enum Line {
    Empty,
    Valid,
    Malformed,
    Excess,
}

impl Store {
    fn line(&mut self, line: &[u8]) -> Line {
        if line.is_empty() || line.starts_with(b"#") {
            return Line::Empty;
        }
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let (Some(label), Some(of), Some(value), None) = (words.next(), words.next(), words.next(), words.next())
        else {
            return Line::Malformed;
        };
        if label == b"RSA" {
            return self.session(of, value).unwrap_or(Line::Malformed);
        }
        let (Some(of), Some(value)) = (hex(of), hex(value)) else {
            return Line::Malformed;
        };
        let (Some(&random), Some(secret), true) = (of.first_chunk(), Secret::new(&value), of.len() == 32) else {
            return Line::Malformed;
        };
        // Exporter and ECH secrets are well-formed, and of no use here.
        let Some(label) = Label::ALL.into_iter().find(|candidate| candidate.name().as_bytes() == label) else {
            return Line::Valid;
        };
        if self.connections.len() >= MAX_CONNECTIONS && !self.connections.contains_key(&random) {
            return Line::Excess;
        }
        self.connections.entry(random).or_default().set(label, secret);
        Line::Valid
    }

    /// `RSA Session-ID:… Master-Key:…`. The other form, `RSA` with an encrypted premaster secret, is of no use
    /// with the extended master secret (RFC 7627) that everybody speaks.
    fn session(&mut self, id: &[u8], key: &[u8]) -> Option<Line> {
        let Some(id) = id.strip_prefix(b"Session-ID:") else {
            hex(id).zip(hex(key))?;
            return Some(Line::Valid);
        };
        let id = hex(id).filter(|id| !id.is_empty())?;
        let master = Secret::new(&hex(key.strip_prefix(b"Master-Key:")?)?)?;
        if self.sessions.len() >= MAX_CONNECTIONS {
            return Some(Line::Excess);
        }
        self.sessions.insert(id.into(), master);
        Some(Line::Valid)
    }
}

fn hex(digits: &[u8]) -> Option<Vec<u8>> {
    let digit = |&byte: &u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    if !digits.len().is_multiple_of(2) || digits.is_empty() {
        return None;
    }
    digits.chunks_exact(2).map(|pair| Some(digit(pair.first()?)? << 4 | digit(pair.get(1)?)?)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    const RANDOM: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

    fn random() -> Random {
        hex(RANDOM.as_bytes()).unwrap().try_into().unwrap()
    }

    #[test]
    fn secrets_are_found_by_client_random_whatever_the_order_and_case() {
        let keys = Keys::default();
        let text = format!(
            "# a comment\r\n\nSERVER_TRAFFIC_SECRET_0 {} {}\r\nEXPORTER_SECRET {RANDOM} 0102\nCLIENT_RANDOM {RANDOM} {}\n",
            RANDOM.to_uppercase(),
            "ab".repeat(32),
            "CD".repeat(48)
        );
        assert_eq!(keys.add(text.as_bytes()), Complaints { lines: 6, valid: 3, ..Complaints::default() });
        let secrets = keys.of(&random(), &[]).unwrap();
        assert_eq!(secrets.get(Label::ServerTraffic).unwrap().bytes(), [0xab; 32]);
        assert_eq!(secrets.get(Label::Master).unwrap().bytes(), [0xcd; 48]);
        assert!(secrets.get(Label::ClientTraffic).is_none());
        assert!(keys.of(&[0; 32], &[]).is_none());
    }

    #[test]
    fn malformed_lines_are_counted_and_the_first_is_named() {
        let keys = Keys::default();
        let long = "00".repeat(49);
        let text = format!(
            "CLIENT_RANDOM {RANDOM} abcd\nCLIENT_RANDOM {RANDOM}\nCLIENT_RANDOM {RANDOM} xy\nCLIENT_RANDOM 00 11\n\
             CLIENT_RANDOM {RANDOM} 11 22\nCLIENT_RANDOM {RANDOM} {long}\n\u{0}\u{ff}"
        );
        let expected = Complaints { lines: 7, valid: 1, malformed: 6, first_malformed: 2, excess: 0 };
        assert_eq!(keys.add(text.as_bytes()), expected);
    }

    #[test]
    fn a_master_secret_may_be_named_by_session_id() {
        let keys = Keys::default();
        let line = format!("RSA Session-ID:0a0b Master-Key:{}", "ef".repeat(48));
        assert_eq!(keys.add(line.as_bytes()).valid, 1);
        let secrets = keys.of(&[0; 32], &[0x0a, 0x0b]).unwrap();
        assert_eq!(secrets.get(Label::Master).unwrap().bytes(), [0xef; 48]);
    }

    #[test]
    fn more_secrets_are_looked_for_once_and_only_where_those_that_are_known_do_not_suffice() {
        let line = |label: Label| format!("{} {RANDOM} {}\n", label.name(), "ab".repeat(32)).into_bytes();
        let searched = Rc::new(RefCell::new(0));
        let with = |given: &[Label], further: &'static [Label]| {
            let keys = Keys::default();
            given.iter().for_each(|&label| {
                keys.add(&line(label));
            });
            let searched = Rc::clone(&searched);
            keys.search_if_needed(move |keys| {
                *searched.borrow_mut() += 1;
                further.iter().for_each(|&label| {
                    keys.add(&line(label));
                });
            });
            keys
        };
        let traffic = &Label::ALL[2..];
        let keys = with(&[Label::Master], &[]);
        assert!(keys.are_any() && keys.of(&random(), &[]).is_some());
        let keys = with(traffic, &[]);
        assert!(keys.are_any() && keys.of(&random(), &[]).is_some());
        assert_eq!(*searched.borrow(), 0);
        // Half of them came before: the other half comes later.
        let keys = with(&traffic[..2], &[Label::ClientTraffic, Label::ServerTraffic]);
        assert!(keys.are_any() && *searched.borrow() == 0);
        assert!(keys.of(&random(), &[]).unwrap().suffice() && keys.of(&[0; 32], &[]).is_none());
        assert_eq!(*searched.borrow(), 1);
        let keys = with(&[Label::Master], &[Label::ClientEarly]);
        assert!(keys.of_early_data(&random()).is_some() && *searched.borrow() == 2);
        let keys = with(&[], &[]);
        assert!(!keys.are_any() && !keys.are_any());
        assert_eq!(*searched.borrow(), 3);
    }

    #[test]
    fn secrets_do_not_print_themselves() {
        let keys = Keys::default();
        keys.add(format!("CLIENT_RANDOM {RANDOM} abababab").as_bytes());
        assert!(!format!("{:?}", keys.of(&random(), &[]).unwrap()).contains("171"));
    }
}
