//! What TLS finds: handshakes and application records, as the tables show them.
//!
//! In: nothing. Out: plain values, and the texts of those that are one of a few.

use std::sync::Arc;

use super::Flights;
use super::hello::allows_early_data;
use super::names::{Name, Version};
use crate::stream::{BySide, Moment, Side};

/// How a session came about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    Full,
    /// Resumed by session id (RFC 5246 section 7.3).
    SessionId,
    /// Resumed by session ticket (RFC 5077).
    Ticket,
    /// TLS 1.3: resumed, or with a key that was agreed on elsewhere (RFC 8446 section 2.2).
    Psk,
    /// The same, and the server took early data (RFC 8446 section 2.3).
    Psk0Rtt,
}

impl Kind {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::SessionId => "session-id",
            Self::Ticket => "ticket",
            Self::Psk => "psk",
            Self::Psk0Rtt => "psk-0rtt",
        }
    }
}

/// How a handshake ended.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Outcome {
    Complete,
    /// An alert ended it, or an end closed the connection.
    Failed,
    /// The capture does not show its end.
    #[default]
    Incomplete,
}

impl Outcome {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Failed => "failed",
            Self::Incomplete => "incomplete",
        }
    }
}

/// How much of a connection its known secrets open.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KeyCoverage {
    All,
    /// Some secrets are missing.
    Partial,
    /// All are.
    None,
    /// They are there, and open nothing.
    Wrong,
    /// Records of this cipher suite cannot be opened here.
    Unsupported,
}

impl KeyCoverage {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Partial => "partial",
            Self::None => "none",
            Self::Wrong => "wrong",
            Self::Unsupported => "unsupported",
        }
    }
}

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
    /// The client may send its first application byte.
    pub ready: Option<Moment>,
    /// Both Finished have been seen.
    pub complete: Option<Moment>,
    /// Of the (first) ClientHello.
    pub client_random: Option<[u8; 32]>,
    pub version: Option<Version>,
    /// The highest that the (first) ClientHello offers, grease aside.
    pub version_offered: Option<Name>,
    pub cipher: Option<Name>,
    pub named_group: Option<Name>,
    pub sni: Option<Box<str>>,
    pub alpn: Option<Box<str>>,
    /// What the (first) ClientHello offered by ALPN, joined by commas.
    pub alpn_offered: Option<Box<str>>,
    /// Groups of the key shares in the (first) ClientHello, joined by commas; grease is none.
    pub key_shares: Option<Box<str>>,
    /// How the (first) ClientHello would resume a session.
    pub resumption_offered: Option<Kind>,
    /// It says that early data follows. Of this and what the client takes, `None`: no whole ClientHello was seen.
    pub early_data_offered: Option<bool>,
    /// The client takes tickets.
    pub ticket_offered: Option<bool>,
    pub ticket_issued: Option<bool>,
    /// TLS 1.3: a ticket allows early data in the next connection. `None`: no ticket was read.
    pub early_data_allowed: Option<bool>,
    /// TLS 1.2 and older: the ServerHello names the session anew, so that it can be resumed by that id.
    pub session_id_issued: Option<bool>,
    /// Of the (first) ClientHello message, its header included.
    pub client_hello_bytes: Option<u32>,
    /// Stream bytes from the ServerHello to the end of its flight.
    pub server_flight_bytes: Option<u64>,
    /// Of QUIC, where that carries the messages: `v1`, `draft-29`.
    pub quic_version: Option<Box<str>>,
    /// QUIC: the server answered with a Retry, which asks for the ClientHello once more (RFC 9000 section 8.1.2).
    pub retry: Option<Moment>,
    /// QUIC: the server spoke no version that the client had tried (RFC 9000 section 6).
    pub version_negotiation: Option<Moment>,
    /// QUIC: what its server's stateless resets end with.
    pub reset_token: Option<[u8; 16]>,
    /// QUIC: the transport parameters of both sides as text, where they could be read.
    pub parameters: Option<Box<BySide<Vec<String>>>>,
    /// The ClientHello offered ECH, or grease that looks the same. `None`: no whole ClientHello was seen.
    pub ech: Option<bool>,
    /// The client offered to prove who it is later (RFC 8446 section 4.2.6).
    pub post_handshake_auth: bool,
    pub kind: Option<Kind>,
    pub outcome: Outcome,
    pub hello_retry: bool,
    pub client_auth: Option<bool>,
    pub early_data: Option<bool>,
    pub false_start: Option<bool>,
    /// Alert that ended it, as `fatal unknown_ca (48)`, or `encrypted` where only its size shows.
    pub alert: Option<Box<str>>,
    pub alert_by: Option<Side>,
    /// The alert that ended it, or the FIN or RST.
    pub failed: Option<Moment>,
    pub certificates: Option<u32>,
    pub certificate_bytes: Option<u32>,
    pub client_certificate_bytes: Option<u32>,
    /// Stream bytes from the hello up to and including each side's last handshake record.
    pub bytes_client: u64,
    pub bytes_server: u64,
    /// Flights of the server that the client waited for until it was ready.
    pub round_trips: Option<u32>,
    pub flights: Flights,
    pub ja3: Option<Arc<str>>,
    pub ja4: Option<Arc<str>>,
    /// True when encryption hides a boundary that we reasoned out (TLS 1.3).
    pub inferred: bool,
    /// How much of the connection can be opened.
    pub keys: Option<KeyCoverage>,
    /// Labels of the secrets that are missing, where only some are there.
    pub missing_keys: Option<Box<str>>,
}

impl Handshake {
    /// A NewSessionTicket of TLS 1.3, with its header: several may come, and one that allows early data will do.
    pub(super) fn tell_ticket(&mut self, message: &[u8]) {
        self.ticket_issued = Some(true);
        let allows = allows_early_data(message);
        self.early_data_allowed = if self.early_data_allowed == Some(true) { Some(true) } else { allows };
    }

    /// Moves the instants that end it up to the hello where the clock was set back in between; true when it was.
    pub fn keep_order(&mut self) -> bool {
        let Some(hello) = self.hello else { return false };
        let ends = [&mut self.ready, &mut self.complete].into_iter().flatten();
        let early = ends.filter(|end| end.at < hello.at).map(|end| *end = hello);
        early.count() > 0
    }

    /// The server may ask for a certificate later, in the middle of an exchange.
    #[must_use]
    pub fn asks_later(&self) -> bool {
        self.post_handshake_auth && self.version.is_some_and(Version::is_tls13)
    }
}

/// What a handshake that has ended means for the application data after it.
#[derive(Clone, Debug, PartialEq)]
pub struct Agreement {
    pub alpn: Option<Box<str>>,
    /// The client may send from here on.
    pub ready: Option<Moment>,
    /// The server may ask for a certificate later, in the middle of an exchange.
    pub asks_later: bool,
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
    /// Stream positions of its first byte and after its last.
    pub offset: u64,
    pub end: u64,
    /// How much of the peer's stream its sender had acknowledged.
    pub acked: u64,
    /// 1.0 when this surely is application data; less when it might be a hidden handshake message.
    pub confidence: f64,
    /// Its size is that of `HTTP/1.1 100 Continue` and nothing else.
    pub may_be_interim: bool,
    /// Its size is that of a Finished.
    pub may_be_finished: bool,
}
