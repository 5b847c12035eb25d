//! The handshake of a QUIC connection, as far as it can be read without keys of its own.
//!
//! RFC 9001 section 4.1.3: TLS messages come in CRYPTO frames, and no TLS records carry them. In: each side's CRYPTO
//! stream of the Initial level, in order (the ClientHello, the ServerHello), and word of the first packet that the
//! client protects with 1-RTT keys. Out: one [`Handshake`]. Non-goals: packets, frames, their order and their
//! protection; the Handshake level, whose keys are secret. Memory: at most 128 KiB per side of a message that
//! arrives in pieces.

use super::Handshake;
use super::machine::{Bearer, Handshaking, Machine};
use super::messages::Stretch;
use crate::stream::{Moment, Side};

/// Where the error codes of TLS begin (RFC 9000 section 20.1), and the level that all of its alerts have.
const CRYPTO_ERROR: u64 = 0x100;
const FATAL: u8 = 2;

/// A handshake whose messages come in CRYPTO frames.
#[derive(Debug)]
pub struct CryptoHandshake {
    handshaking: Box<Handshaking>,
}

impl Default for CryptoHandshake {
    fn default() -> Self {
        Self::new()
    }
}

impl CryptoHandshake {
    #[must_use]
    pub fn new() -> Self {
        Self { handshaking: Box::new(Handshaking::new(Machine::over_quic())) }
    }

    /// The next bytes of `from`'s CRYPTO stream of the Initial level, first sent in the packet `seen`.
    pub fn data(&mut self, from: Side, bytes: &[u8], seen: Moment) {
        if self.handshaking.machine.ended() {
            return;
        }
        let stretch = Stretch { bytes, missing: 0, begins: None, first: seen, last: seen };
        self.handshaking.push(from, stretch, Bearer::Clear { offset: 0 }, None, None);
    }

    /// The client sent its first 1-RTT packet: its Finished went before, or in the same datagram.
    pub fn ready(&mut self, seen: Moment) {
        self.handshaking.machine.infer_finished(seen);
    }

    /// `by` closed the connection with this error code: 0x0100 and an alert, where TLS failed (RFC 9001 section 4.8).
    pub fn close(&mut self, by: Side, code: u64, seen: Moment) {
        let alert = code.checked_sub(CRYPTO_ERROR).and_then(|alert| u8::try_from(alert).ok());
        if let Some(alert) = alert.filter(|_| !self.handshaking.machine.ended()) {
            self.handshaking.machine.alert(by, FATAL, alert, seen);
        }
    }

    /// Who sent the ClientHello; `None` while that is unknown.
    #[cfg(test)]
    pub fn hello_by(&self) -> Option<Side> {
        self.handshaking.machine.facts.hello_by
    }

    /// The connection is over, or the capture is. `None` where neither hello was read.
    #[must_use]
    pub fn finish(self) -> Option<Box<Handshake>> {
        let Handshaking { mut machine, .. } = *self.handshaking;
        machine.finish();
        Some(machine.facts).filter(|facts| facts.hello_by.is_some())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::tests::build::{Hello, at, server_hello13};
    use super::super::{Kind, Outcome, Version};
    use super::*;
    use crate::stream::Side::{Client, Server};

    fn server_hello_message() -> Vec<u8> {
        server_hello13(0x1301, false).split_off(5)
    }

    #[test]
    fn crypto_frames_carry_a_handshake() {
        let mut crypto = CryptoHandshake::new();
        let hello = Hello::tls13().alpn_list(&["h3", "h3-29"]).message();
        let (begin, end) = hello.split_at(40);
        crypto.data(Client, begin, at(1));
        assert_eq!(crypto.hello_by(), None, "half of it says nothing");
        crypto.data(Client, end, at(2));
        assert_eq!(crypto.hello_by(), Some(Client));
        crypto.data(Server, &server_hello_message(), at(3));
        crypto.ready(at(4));
        crypto.ready(at(5));
        let found = crypto.finish().unwrap();
        assert_eq!((found.hello, found.server_hello), (Some(at(1)), Some(at(3))));
        assert_eq!((found.client_finished, found.ready, found.complete), (Some(at(4)), Some(at(4)), Some(at(4))));
        assert_eq!((found.outcome, found.kind, found.inferred), (Outcome::Complete, Some(Kind::Full), true));
        assert_eq!((found.sni.as_deref(), found.alpn_offered.as_deref()), (Some("example.org"), Some("h3,h3-29")));
        assert_eq!((found.alpn, found.early_data, found.round_trips), (None, None, None));
        assert!(found.version.is_some_and(Version::is_tls13));
        assert!(found.ja4.unwrap().starts_with("q13d"));
    }

    #[test]
    fn a_handshake_that_never_got_ready_is_incomplete() {
        let mut crypto = CryptoHandshake::new();
        crypto.data(Client, &Hello::tls13().message(), at(1));
        let found = crypto.finish().unwrap();
        assert_eq!((found.outcome, found.ready, found.kind), (Outcome::Incomplete, None, None));

        let mut crypto = CryptoHandshake::new();
        crypto.data(Client, &Hello::tls13().message(), at(1));
        crypto.ready(at(2));
        let found = crypto.finish().unwrap();
        assert_eq!((found.outcome, found.ready, found.complete), (Outcome::Incomplete, Some(at(2)), None));
    }

    #[test]
    fn without_a_hello_there_is_no_handshake() {
        let mut crypto = CryptoHandshake::new();
        crypto.data(Client, &[1, 0, 0], at(1));
        crypto.data(Server, &[0xff; 300], at(2));
        assert_eq!(crypto.finish(), None);
    }
}
