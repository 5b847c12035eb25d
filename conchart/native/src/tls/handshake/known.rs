//! What keys show of a handshake: messages that the keyless reading infers from sizes, or cannot see.
//!
//! RFC 8446 sections 4.3 (EncryptedExtensions, CertificateRequest), 4.4 (Certificate, Finished), 4.5
//! (EndOfEarlyData), RFC 8879 (compressed certificates). In: the content of opened records. Out: facts; the
//! handshake settles at the client's Finished.

use super::super::decrypt::Content;
use super::super::flight::{Flight, Seen};
use super::super::hello::{EncryptedExtensions, certificates13};
use super::super::messages::{Message, message};
use super::super::record::{ALERT, HANDSHAKE, Piece};
use super::{Machine, Side, text};

impl Machine {
    /// An opened record of TLS 1.3 that is not application data; `piece` is the one that ends it.
    ///
    /// `exact`: the client's records are opened too, so its Finished need not be told by its size.
    pub fn known(&mut self, from: Side, content: &Content, piece: &Piece<'_>, exact: bool) {
        if content.kind == ALERT {
            if let &[level, description] = content.bytes.as_slice() {
                self.alert(level, description);
            }
            return;
        }
        if content.kind != HANDSHAKE {
            return;
        }
        self.flight.push(Seen::new(from, piece));
        let mut messages = std::mem::take(&mut self.messages[from]);
        messages.push(&content.bytes, 0, (piece.record.first, piece.seen), &mut |message| {
            self.known_message(from, message, piece);
        });
        self.messages[from] = messages;
        if !exact && !self.settled {
            self.read_flight(false);
        }
    }

    /// An opened record of TLS 1.2 or older: what a renegotiation says inside the established connection.
    pub fn revealed(&mut self, from: Side, content: &Content, piece: &Piece<'_>) {
        if !self.hidden || content.kind != HANDSHAKE {
            return;
        }
        let mut messages = std::mem::take(&mut self.messages[from]);
        messages.push(&content.bytes, 0, (piece.record.first, piece.seen), &mut |message| {
            self.message(from, piece.record.offset, message);
        });
        self.messages[from] = messages;
    }

    /// An opened alert of TLS 1.2 or older.
    pub fn known_alert(&mut self, content: &Content) {
        if let &[level, description] = content.bytes.as_slice()
            && self.facts.ready.is_none()
        {
            self.alert(level, description);
        }
    }

    /// An application record of the client was opened: its Finished has gone by.
    pub fn application_began(&mut self, from: Side) {
        if self.is_tls13() && self.is_client(from) && self.facts.server_hello.is_some() {
            self.read_flight(true);
        }
    }

    fn known_message(&mut self, from: Side, message: Message<'_>, piece: &Piece<'_>) {
        let facts = &mut self.facts;
        let client = facts.hello_by == Some(from);
        match message.kind {
            message::ENCRYPTED_EXTENSIONS if !client => {
                let extensions = EncryptedExtensions::read(message.body);
                facts.alpn = extensions.alpn.map(text);
                facts.early_data = Some(extensions.early_data);
                facts.client_auth = Some(false);
            }
            message::CERTIFICATE_REQUEST if !client => facts.client_auth = Some(true),
            message::CERTIFICATE if !client => {
                facts.certificate_bytes = Some(message.length);
                facts.certificates = certificates13(message.body);
            }
            message::COMPRESSED_CERTIFICATE if !client => facts.certificate_bytes = Some(message.length),
            message::CERTIFICATE => facts.client_auth = Some(true),
            message::END_OF_EARLY_DATA if client => facts.early_data = Some(true),
            message::FINISHED if client => self.finish_known(from, piece),
            message::FINISHED => facts.server_done = Some(message.last),
            _ => {}
        }
    }

    /// The client's Finished was read.
    fn finish_known(&mut self, from: Side, piece: &Piece<'_>) {
        // Without the server's keys, where its flight ended is told by sizes.
        let by_size = self.context().and_then(|context| self.flight.server_done(context, Seen::new(from, piece)));
        let Flight(flight) = std::mem::take(&mut self.flight);
        for seen in &flight {
            self.count(seen.record.from, seen.end - seen.offset);
        }
        let facts = &mut self.facts;
        let early = facts.early_data == Some(true);
        facts.inferred = facts.server_done.is_none();
        facts.server_done = facts.server_done.or(by_size.map(|(_, last)| last));
        facts.client_auth.get_or_insert(false);
        facts.client_finished = Some(piece.record.first);
        facts.ready = if early { self.offer.sent } else { Some(piece.seen) };
        facts.complete = Some(piece.seen);
        facts.early_data = Some(early);
        facts.false_start = Some(false);
        facts.kind = Some(match (early, self.psk) {
            (true, _) => "psk-0rtt",
            (false, true) => "psk",
            (false, false) => "full",
        });
        self.settle("complete");
    }
}
