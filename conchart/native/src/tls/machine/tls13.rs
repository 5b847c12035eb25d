//! How a handshake of TLS 1.3 ends: read from the sizes of its records, or from its messages where they are opened.
//!
//! RFC 8446 sections 4.3 (EncryptedExtensions, CertificateRequest), 4.4 (Certificate, Finished), 4.5
//! (EndOfEarlyData), RFC 8879 (compressed certificates). In: encrypted records, and messages of opened ones. Out:
//! facts; the handshake ends at the client's Finished.

use super::super::flight::{Context, Flight, Reading};
use super::super::hello::{Body, certificates13};
use super::super::messages::Message;
use super::super::messages::message::NEW_SESSION_TICKET;
use super::super::parameters;
use super::{AppRecord, Kind, Machine, Moment, Outcome, Parting, Side, text};

impl Machine {
    /// A record of handshake messages was opened: its size counts where not all of them are.
    pub fn opened_record(&mut self, record: AppRecord) {
        self.flight.push(record);
    }

    /// The messages of an opened record were read; the client's Finished is told by its size.
    pub fn infer(&mut self) {
        if !self.ended {
            self.read_flight(false);
        }
    }

    /// An alert that was opened; `seen` is when its record began.
    pub fn opened_alert13(&mut self, from: Side, content: &[u8], seen: Moment) {
        if let &[level, description] = content {
            self.alert(from, level, description, seen);
        }
    }

    /// An application record of the client was opened: its Finished has gone by.
    pub fn application_began(&mut self, from: Side) {
        if self.is_tls13() && self.is_client(from) && self.facts.server_hello.is_some() {
            self.read_flight(true);
        }
    }

    /// A message of an opened record.
    pub(super) fn protected_message(&mut self, from: Side, message: Message<'_>, body: &Body<'_>, record: AppRecord) {
        let client = self.is_client(from);
        let facts = &mut self.facts;
        match body {
            Body::EncryptedExtensions(extensions) if !client => {
                facts.alpn = extensions.alpn.map(text);
                facts.early_data = Some(extensions.early_data);
                facts.reset_token = extensions.reset_token;
                if let Some(parameters) = extensions.parameters {
                    facts.parameters.get_or_insert_default()[from] = parameters::texts(parameters);
                }
                facts.client_auth = Some(false);
            }
            Body::CertificateRequest if !client => facts.client_auth = Some(true),
            Body::Certificate(list) if !client => {
                facts.certificate_bytes = Some(message.length);
                facts.certificates = certificates13(list);
            }
            Body::CompressedCertificate if !client => facts.certificate_bytes = Some(message.length),
            Body::Certificate(_) | Body::CompressedCertificate => {
                facts.client_auth = Some(true);
                facts.client_certificate_bytes = Some(message.length);
            }
            Body::EndOfEarlyData if client => facts.early_data = Some(true),
            Body::Finished if client => self.read_finished(record),
            Body::Finished => {
                facts.server_done = Some(message.last);
                facts.server_flight_bytes = Some(record.end.saturating_sub(self.server_hello_offset));
            }
            _ if !client && message.kind == NEW_SESSION_TICKET => facts.ticket_issued = Some(true),
            _ => {}
        }
    }

    /// The client's Finished was read.
    fn read_finished(&mut self, record: AppRecord) {
        // Without the server's keys, where its flight ended is told by sizes.
        self.facts.inferred = self.facts.server_done.is_none();
        let by_size = self.context().and_then(|context| self.flight.server_done(context, record));
        self.end_server_flight(by_size.map(|(_, seen)| seen));
        let Flight(flight) = std::mem::take(&mut self.flight);
        for seen in &flight {
            self.count(seen.from, seen.end - seen.offset);
        }
        let facts = &mut self.facts;
        facts.client_auth.get_or_insert(false);
        let early_data = facts.early_data == Some(true);
        self.finish13(record.first, record.last, early_data);
    }

    /// Looks for the client's Finished among the encrypted records; `over` when there are no more.
    pub(super) fn read_flight(&mut self, over: bool) {
        let Some(context) = self.context() else {
            return;
        };
        match self.flight.read(context, over) {
            Reading::Open => {}
            Reading::Alert { seen } => {
                self.fail(Parting { alert: "encrypted".into(), by: context.client, seen });
            }
            Reading::Finished { index, exact } => self.split_flight(context, index, exact),
        }
    }

    /// As sizes tell, the server's flight ended with this record; what keys have shown counts more.
    fn end_server_flight(&mut self, last: Option<AppRecord>) {
        let facts = &mut self.facts;
        if let (None, Some(last)) = (facts.server_done, last) {
            facts.server_done = Some(last.last);
            facts.server_flight_bytes = Some(last.end.saturating_sub(self.server_hello_offset));
        }
    }

    fn context(&self) -> Option<Context> {
        Some(Context {
            client: self.facts.hello_by?,
            sizes: self.sizes(),
            early_data: self.offer.early_data,
            application_settings: self.offer.application_settings,
            psk: self.psk,
            server_hello: self.server_hello_offset,
        })
    }

    /// The client's Finished is the record at `index`, as sizes tell.
    fn split_flight(&mut self, context: Context, index: usize, exact: bool) {
        let Some(split) = std::mem::take(&mut self.flight).split(context, index, exact) else {
            return;
        };
        let finished = split.finished;
        let extensions = split.extensions.and_then(|bytes| context.sizes.content(bytes));
        self.agreed_http2 = extensions.and_then(|bytes| self.offer.answerable.agreed_http2(bytes));
        self.padding = context.sizes.padding(finished.bytes);
        self.ticket = split.ticket;
        self.early_until = split.early_data.then_some(split.finished.end);
        self.data.extend(split.data);
        self.count(context.client, split.client_bytes);
        self.count(context.client.peer(), split.server_bytes);
        self.end_server_flight(split.server_done);
        self.facts.client_auth = self.facts.client_auth.or(split.client_auth);
        self.finish13(finished.first, finished.last, split.early_data);
    }

    /// The record of the client's Finished was sent from `first` to `last`.
    fn finish13(&mut self, first: Moment, last: Moment, early_data: bool) {
        let ready = if early_data { self.offer.sent } else { Some(last) };
        if let Some(since) = ready {
            self.set_ready(since);
        }
        let facts = &mut self.facts;
        facts.client_finished = Some(first);
        facts.complete = Some(last);
        facts.early_data = Some(early_data);
        facts.false_start = Some(false);
        facts.kind = match (early_data, self.psk) {
            (true, _) => Some(Kind::Psk0Rtt),
            (false, true) => Some(Kind::Psk),
            // Where the end of the ServerHello was cut off, so was what would say that it resumes.
            (false, false) => (!self.may_be_tls13).then_some(Kind::Full),
        };
        self.end(Outcome::Complete);
    }
}
