//! TLS: one connection's two streams in, handshakes and application records out.

use crate::stream::{Moment, Side};

/// One TLS handshake, as far as the capture shows it. Mirrors the `handshakes` table.
#[derive(Clone, Debug, Default)]
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
    pub version: Option<Box<str>>,
    pub cipher: Option<Box<str>>,
    pub named_group: Option<Box<str>>,
    pub sni: Option<Box<str>>,
    pub alpn: Option<Box<str>>,
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
    pub round_trips: Option<u32>,
    pub ja3: Option<Box<str>>,
    pub ja4: Option<Box<str>>,
    /// True when encryption hides a boundary that we reasoned out (TLS 1.3).
    pub inferred: bool,
}

/// Application data inside TLS: one record, or the visible part of one.
#[derive(Clone, Copy, Debug)]
pub struct AppRecord {
    pub from: Side,
    /// First byte of the record on the wire.
    pub first: Moment,
    /// Its last byte.
    pub last: Moment,
    /// Length of the record's body (ciphertext).
    pub bytes: u64,
    /// 1.0 when this surely is application data; less when it might be a hidden handshake message.
    pub confidence: f32,
}
