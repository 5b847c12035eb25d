//! The records of a handshake that are no messages in clear: ChangeCipherSpec, alerts, the encrypted Finished of
//! TLS 1.2 and older, and application data that comes before the handshake is seen to end.
//!
//! RFC 5246 sections 7.1 to 7.4.9, RFC 7918 (False Start), RFC 5246 appendix E.2 (SSLv2's hellos). In: records, or
//! their parts. Out: facts.

use tls_parser::{TlsCipherKx, TlsCipherSuite};

use super::super::messages::message::CLIENT_HELLO;
use super::super::names;
use super::super::record::{ALERT, APPLICATION_DATA, CHANGE_CIPHER_SPEC, HANDSHAKE, RecordPart, SSLV2};
use super::{Alert, AppRecord, Kind, Machine, Moment, Outcome, Parting, Side, Version};

/// Confidence in what follows a handshake of which a part is missing.
const UNCERTAIN: f64 = 0.5;

impl Machine {
    /// A part of a record in clear that is no handshake message. `v2_type` is the type of SSLv2's.
    pub fn clear_part(&mut self, from: Side, part: &RecordPart<'_>, v2_type: u8) {
        match part.record.kind {
            CHANGE_CIPHER_SPEC if part.done => self.change_cipher(from),
            ALERT => self.clear_alert(from, part),
            SSLV2 if part.done => self.v2_hello(from, part, v2_type),
            _ => {}
        }
        if part.done {
            self.count(from, part.record.end() - part.record.offset);
            self.end_flight(from, part.record.end());
        }
    }

    /// A record ended at `end` in the stream of `from`: the server's flight, if its last message was in it.
    fn end_flight(&mut self, from: Side, end: u64) {
        let facts = &mut self.facts;
        // Inside an established connection, flights mingle with application data.
        let is_first = facts.server_hello.is_some() && !self.renegotiates;
        if is_first && facts.server_done.is_some() && facts.hello_by == Some(from.peer()) {
            facts.server_flight_bytes.get_or_insert(end.saturating_sub(self.server_hello_offset));
        }
    }

    /// A record that nobody can open, or one of TLS 1.2 and older that says no more than its type; `part` ends it.
    pub fn sealed_record(&mut self, from: Side, part: &RecordPart<'_>) {
        match part.record.kind {
            HANDSHAKE => self.encrypted_handshake(from, part),
            CHANGE_CIPHER_SPEC => self.change_cipher(from),
            ALERT => self.encrypted_alert(from, part.record.first),
            APPLICATION_DATA => return self.application(AppRecord::new(from, part)),
            _ => {}
        }
        self.count(from, part.record.end() - part.record.offset);
        self.end_flight(from, part.record.end());
    }

    /// An alert that was opened; `seen` is when its record began.
    pub fn opened_alert(&mut self, from: Side, content: &[u8], seen: Moment) {
        if let &[level, description] = content
            && self.facts.ready.is_none()
            && self.is_fatal(level, description)
        {
            self.fail_unless_finished(Parting { alert: names::alert(level, description), by: from, seen });
        }
    }

    pub(super) fn has_named_curve(&self) -> bool {
        let suite = self.cipher.and_then(TlsCipherSuite::from_id);
        suite.is_some_and(|suite| matches!(suite.kx, TlsCipherKx::Ecdhe | TlsCipherKx::Aecdh))
    }

    fn v2_hello(&mut self, from: Side, part: &RecordPart<'_>, v2_type: u8) {
        if v2_type == CLIENT_HELLO {
            if self.facts.server_hello.is_some() {
                return;
            }
            self.facts.hello_by = Some(from);
            self.facts.hello = Some(part.record.first);
            self.offer.sent = Some(part.seen);
        } else {
            // A ServerHello of SSLv2 itself.
            self.facts.hello_by.get_or_insert(from.peer());
            self.facts.server_hello = Some(part.record.first);
            self.version = Some(Version::SSL2);
            self.sslv2 = true;
            self.facts.version = Some(Version::SSL2);
        }
    }

    /// Counts only once the version is known, or its announcement missing: TLS 1.3 clients send a dummy before.
    fn change_cipher(&mut self, from: Side) {
        let missing = self.missing.client || self.missing.server;
        self.changed_cipher[from] |= self.version.is_some() || self.renegotiates || missing;
    }

    /// TLS 1.2 and older: what follows a ChangeCipherSpec is the Finished.
    fn encrypted_handshake(&mut self, from: Side, part: &RecordPart<'_>) {
        if !self.changed_cipher[from] || self.finished[from].is_some() {
            return;
        }
        self.finished[from] = Some(part.seen);
        if self.is_client(from) {
            self.facts.client_finished = Some(part.record.first);
        } else if !self.renegotiates || self.facts.server_hello.is_some() {
            if !self.full {
                self.facts.server_done = Some(part.seen);
            }
            if self.facts.server_hello.is_some() && !self.missing[from] {
                // What would be before it is not there.
                self.facts.ticket_issued.get_or_insert(false);
            }
            self.become_ready(part.seen);
        }
        if let (Some(client), Some(server)) = (self.finished.client, self.finished.server) {
            let complete = client.max(server);
            self.facts.complete = Some(complete);
            self.set_ready(complete);
            self.end(Outcome::Complete);
        }
    }

    /// TLS 1.2 and older: the client may send; by now it is known how the session came about.
    fn become_ready(&mut self, since: Moment) {
        if self.facts.ready.is_some() {
            return;
        }
        self.set_ready(since);
        self.facts.early_data = Some(false);
        self.facts.false_start.get_or_insert(false);
        let whole = !self.missing.client && !self.missing.server && self.facts.server_hello.is_some();
        if self.full {
            self.facts.kind = Some(Kind::Full);
        } else if whole && self.offer.ticket {
            self.facts.kind = Some(Kind::Ticket);
        } else if whole && self.session_echoed {
            self.facts.kind = Some(Kind::SessionId);
        }
        if !self.full && whole {
            self.facts.client_auth = Some(false);
        }
    }

    fn clear_alert(&mut self, from: Side, part: &RecordPart<'_>) {
        let alert = &mut self.alert[from];
        if part.starts {
            *alert = Alert::default();
        }
        for (slot, byte) in alert.bytes.iter_mut().skip(usize::from(alert.have)).zip(part.bytes) {
            *slot = *byte;
            alert.have += 1;
        }
        let Alert { bytes: [level, description], have } = *alert;
        if !part.done {
            return;
        }
        if part.record.length == 2 && have == 2 {
            self.alert(from, level, description, part.record.first);
        } else {
            self.encrypted_alert(from, part.record.first);
        }
    }

    fn encrypted_alert(&mut self, from: Side, first: Moment) {
        if self.finished[from].is_some() && self.missing[from.peer()] {
            // What it answers is missing: it may as well be the end of a connection that nobody used.
            self.ready_by(first);
            self.end(Outcome::Incomplete);
        } else if self.facts.ready.is_none() {
            self.fail_unless_finished(Parting { alert: "encrypted".into(), by: from, seen: first });
        }
    }

    /// A client that needs nothing any more may close in the flight of its Finished, and the server's still comes.
    fn fail_unless_finished(&mut self, parting: Parting) {
        if self.finished[parting.by].is_none() {
            return self.fail(parting);
        }
        self.parting_alert.get_or_insert(Box::new(parting));
    }

    pub(in crate::tls) fn alert(&mut self, by: Side, level: u8, description: u8, seen: Moment) {
        if self.is_fatal(level, description) {
            self.fail(Parting { alert: names::alert(level, description), by, seen });
        }
    }

    /// TLS 1.3 ignores the level: only `user_canceled` leaves the handshake alive.
    fn is_fatal(&self, level: u8, description: u8) -> bool {
        level == 2 || description == 0 || self.is_tls13() && description != 90
    }

    fn application(&mut self, seen: AppRecord) {
        let from = seen.from;
        if self.renegotiates {
            return self.data.push(seen);
        }
        let finished = self.finished.client.is_some() || self.finished.server.is_some();
        if self.may_be_tls13 && !self.is_tls13() && !finished {
            self.become_tls13();
        }
        match self.version {
            Some(version) if version.is_tls13() => {
                // Early data of before a HelloRetryRequest may trickle in before the ServerHello.
                if self.facts.server_hello.is_some() {
                    self.flight.push(seen);
                    self.read_flight(false);
                }
            }
            Some(_) => self.application12(seen),
            None if self.is_client(from) && self.offer.early_data && !self.missing[from.peer()] => {
                self.flight.push(seen);
            }
            None => self.application_unannounced(seen),
        }
    }

    /// The ServerHello is missing.
    fn application_unannounced(&mut self, seen: AppRecord) {
        let record = seen;
        let unfinished = self.is_client(record.from) && self.facts.client_finished.is_none();
        if unfinished && record.may_be_finished {
            // TLS 1.3, most likely: older versions do not send a Finished as application data.
            self.facts.client_finished = Some(record.first);
            self.ready_by(record.last);
        } else {
            self.ready_by(record.first);
            self.data.push(seen);
        }
        self.end(Outcome::Incomplete);
    }

    fn application12(&mut self, mut seen: AppRecord) {
        let from = seen.from;
        match self.finished[from].filter(|_| self.is_client(from)) {
            Some(sent) if self.full => {
                self.facts.false_start = Some(true);
                self.become_ready(sent);
            }
            Some(_) => {}
            None => {
                // A Finished is missing: a client sends data after its own, a server after both.
                self.ready_by(seen.first);
                self.end(Outcome::Complete);
                seen.confidence = UNCERTAIN;
            }
        }
        self.data.push(seen);
    }
}
