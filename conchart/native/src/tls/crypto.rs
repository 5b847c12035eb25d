//! The handshake of a QUIC connection, with keys or as far as it can be read without.
//!
//! RFC 9001 section 4.1.3: TLS messages come in CRYPTO frames, and no TLS records carry them. In: each side's CRYPTO
//! streams, in order (of the Initial level, the ClientHello and the ServerHello; of the Handshake level, where its packets
//! were opened, the others), and word of the first packet that the client protects with 1-RTT keys. Out: one
//! [`Handshake`], and the secrets that belong to it. Non-goals: packets, frames, their order and their protection.
//! Memory: at most 128 KiB per side of a message that arrives in pieces.

use super::decryptor::{Coverage, Suite, covered};
use super::machine::{Bearer, Handshaking, Machine};
use super::messages::Stretch;
use super::{AppRecord, Handshake, KeyCoverage, Version};
use crate::keys::{Keys, Label, Secret, Secrets};
use crate::stream::{Moment, Side};

/// Where the error codes of TLS begin (RFC 9000 section 20.1), and the level that all of its alerts have.
const CRYPTO_ERROR: u64 = 0x100;
const FATAL: u8 = 2;

/// What opens all that both sides say after the hellos.
const NEEDED: [Label; 4] = [Label::ClientHandshake, Label::ServerHandshake, Label::ClientTraffic, Label::ServerTraffic];

/// A handshake whose messages come in CRYPTO frames.
#[derive(Debug)]
pub struct CryptoHandshake {
    handshaking: Box<Handshaking>,
    /// Secrets were asked for: of early data, of all else.
    requested_early: bool,
    requested: bool,
    reported_refusal: bool,
    /// Its first hello, where the client had to say it again.
    begun: Option<Moment>,
}

impl Default for CryptoHandshake {
    fn default() -> Self {
        Self::new()
    }
}

impl CryptoHandshake {
    #[must_use]
    pub fn new() -> Self {
        Self {
            handshaking: Box::new(Handshaking::new(Machine::over_quic())),
            requested_early: false,
            requested: false,
            reported_refusal: false,
            begun: None,
        }
    }

    /// The next bytes of `from`'s CRYPTO stream of the Initial level, first sent in the packet `seen`.
    pub fn data(&mut self, from: Side, bytes: &[u8], seen: Moment) {
        if self.handshaking.machine.ended() {
            return;
        }
        let stretch = Stretch { bytes, missing: 0, begins: None, first: seen, last: seen };
        self.handshaking.push(from, stretch, Bearer::Clear { offset: 0 }, None, None);
    }

    /// The next bytes of `from`'s CRYPTO stream of the Handshake level, of which `offset` went before.
    pub fn opened(&mut self, from: Side, offset: u64, bytes: &[u8], seen: Moment) {
        if self.handshaking.machine.ended() {
            return;
        }
        let stretch = Stretch { bytes, missing: 0, begins: None, first: seen, last: seen };
        let end = offset.saturating_add(bytes.len() as u64);
        let record = AppRecord {
            from,
            first: seen,
            last: seen,
            bytes: bytes.len() as u64,
            offset,
            end,
            acked: 0,
            confidence: 1.0,
            may_be_interim: false,
            may_be_finished: false,
        };
        self.handshaking.push(from, stretch, Bearer::Protected(record), None, None);
    }

    /// The client had to prove its address (RFC 9000 section 8.1.2), and says its hello again.
    pub fn again(&mut self) {
        let begun = self.begun.or(self.handshaking.machine.facts.hello);
        *self = Self { begun, ..Self::new() };
    }

    /// A server's session ticket went by, after the handshake.
    pub fn ticket(&mut self, message: &[u8]) {
        self.handshaking.machine.facts.tell_ticket(message);
    }

    /// What opens the packets of the client's early data, once: when its hello has been read.
    pub fn early_secret(&mut self, keys: &Keys) -> Option<Secret> {
        let facts = &self.handshaking.machine.facts;
        let random = facts.client_random.filter(|_| !self.requested_early)?;
        self.requested_early = true;
        keys.of_early_data(&random).filter(|_| facts.early_data_offered != Some(false))
    }

    /// What opens the packets of both sides, once: when the server has chosen a suite.
    pub fn secrets(&mut self, keys: &Keys) -> Option<(Suite, Secrets)> {
        let machine = &mut self.handshaking.machine;
        let (code, random) = machine.cipher().zip(machine.facts.client_random).filter(|_| !self.requested)?;
        self.requested = true;
        let secrets = keys.of(&random, &[]);
        let suite = Suite::of(code, Version::TLS13.0);
        let coverage = match (&secrets, suite) {
            (None, _) => KeyCoverage::None.into(),
            (Some(_), None) => KeyCoverage::Unsupported.into(),
            (Some(secrets), Some(_)) => covered(secrets, &NEEDED),
        };
        Coverage { keys: machine.facts.keys, missing: machine.facts.missing_keys } = coverage;
        suite.zip(secrets)
    }

    /// Has the server just refused early data that the client offered? Told once.
    pub fn refuses_early(&mut self) -> bool {
        let facts = &self.handshaking.machine.facts;
        let refuses = facts.early_data_offered == Some(true) && facts.early_data == Some(false);
        refuses && !std::mem::replace(&mut self.reported_refusal, true)
    }

    /// What the server's stateless resets end with.
    #[must_use]
    pub fn reset_token(&self) -> Option<[u8; 16]> {
        self.handshaking.machine.facts.reset_token
    }

    /// What was agreed on, or will be: of early data, only the offer is known.
    #[must_use]
    pub fn alpn(&self) -> Option<&str> {
        let facts = &self.handshaking.machine.facts;
        facts.alpn.as_deref().or_else(|| facts.alpn_offered.as_deref()?.split(',').next())
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
        machine.facts.hello = self.begun.or(machine.facts.hello);
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
