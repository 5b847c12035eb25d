//! The way of a record: to the decryptor, to the handshake messages of its side, and to application data.
//!
//! In: parts of records of both sides, in causal order. Out: what the caller fetches from [`Tls`]. Non-goals: where
//! records begin ([`super::record`]), what messages mean ([`super::machine`]).

use super::decryptor::{Content, Coverage, Opened};
use super::flight::Sizes;
use super::machine::{Bearer, Handshaking, Machine};
use super::messages::Stretch;
use super::messages::message::NEW_SESSION_TICKET;
use super::record::{ALERT, APPLICATION_DATA, CHANGE_CIPHER_SPEC, HANDSHAKE, RecordPart, SSLV2};
use super::tickets::Undecided;
use super::{AppRecord, Outcome, State, Tls, Version};
use crate::stream::Side;

impl Tls {
    /// Takes in the next part of a record: its way to the messages and to application data.
    pub(super) fn part(&mut self, from: Side, part: &RecordPart<'_>) {
        self.begin_if_first(from, part);
        let is_protected = self.is_protected(from, part);
        let opened = match &mut self.decryptor {
            Some(decryptor) if is_protected => decryptor.open(from, part),
            _ => Opened::Encrypted,
        };
        if let Some(transcript) = self.transcript.as_deref_mut().filter(|_| part.done) {
            transcript.record(from, part, is_protected, &opened);
        }
        if !is_protected {
            return self.in_clear(from, part);
        }
        self.take_earlier();
        match opened {
            Opened::Encrypted if part.done => self.sealed(from, part),
            Opened::Encrypted | Opened::Buffered | Opened::Early => {}
            Opened::Content(content) => {
                self.opened(from, part, &content);
                self.take_earlier();
            }
            Opened::Data(clear) => {
                self.found().clear.push_back(clear);
                self.note_ticket(from, None);
                self.application_began(from, part);
            }
        }
    }

    /// Starts a handshake inside an established connection.
    #[inline]
    fn begin_if_first(&mut self, from: Side, part: &RecordPart<'_>) {
        if part.record.kind != HANDSHAKE || !part.starts || self.handshaking.is_some() {
            return;
        }
        let number = self.number;
        let machine = match self.state {
            State::Established(Some(version)) if !version.is_tls13() && self.requester == Some(from) => {
                Machine::renegotiation(number, from, part.record.first)
            }
            // A ClientHello or ServerHello in clear, most likely; `conclude` forgets it if it was not.
            State::Established(None) if matches!(part.bytes.first(), Some(1 | 2)) => Machine::new(number),
            _ => return,
        };
        self.decide_coverage(true);
        self.handshaking = Some(Box::new(Handshaking::new(machine)));
    }

    /// Is the record that `part` belongs to protected? A message in it may change what the records after it are.
    fn is_protected(&mut self, from: Side, part: &RecordPart<'_>) -> bool {
        if part.starts {
            let encrypts = match (self.machine(), self.state) {
                (Some(machine), _) => machine.encrypts(from),
                (None, State::Established(Some(version))) => !version.is_tls13(),
                (None, _) => false,
            };
            self.protected[from] = match part.record.kind {
                APPLICATION_DATA => true,
                // In clear it is one byte.
                CHANGE_CIPHER_SPEC => encrypts && part.record.length > 1,
                SSLV2 => false,
                _ => encrypts,
            };
        }
        self.protected[from]
    }

    fn in_clear(&mut self, from: Side, part: &RecordPart<'_>) {
        let Some(handshaking) = &mut self.handshaking else {
            return;
        };
        let record = &part.record;
        if record.kind == HANDSHAKE {
            let stretch = Stretch {
                bytes: part.bytes,
                missing: part.missing,
                begins: part.starts.then(|| u32::from(record.length)),
                first: if part.starts { record.first } else { part.seen },
                last: part.seen,
            };
            let carrier = Bearer::Clear { offset: record.offset };
            handshaking.push(from, stretch, carrier, self.decryptor.as_deref_mut(), self.transcript.as_deref_mut());
        }
        handshaking.machine.clear_part(from, part, self.walk[from].v2_type());
        self.proceed();
    }

    /// Takes in a record as everybody can read it; `part` ends it.
    fn sealed(&mut self, from: Side, part: &RecordPart<'_>) {
        let Some(handshaking) = &mut self.handshaking else {
            if part.record.kind == APPLICATION_DATA && self.state != State::Over {
                self.application(AppRecord::new(from, part));
            }
            return;
        };
        if self.decryptor.is_some()
            && handshaking.machine.is_tls13()
            && handshaking.machine.facts.server_hello.is_some()
        {
            // Messages, most likely.
            handshaking.skip(from);
        }
        handshaking.machine.sealed_record(from, part);
        self.proceed();
    }

    /// TLS 1.3: after the handshake, the server begins with a ticket, or with something else.
    fn note_ticket(&mut self, from: Side, ticket: Option<&[u8]>) {
        if self.handshaking.is_none()
            && self.requester == Some(from.peer())
            && self.state == State::Established(Some(Version::TLS13))
            && let Some(handshake) = self.found.as_mut().and_then(|found| found.handshakes.back_mut())
        {
            match ticket.filter(|_| handshake.ticket_issued != Some(false)) {
                Some(message) => handshake.tell_ticket(message),
                None => handshake.ticket_issued = handshake.ticket_issued.or(Some(false)),
            }
        }
    }

    /// Takes in the content of a record that is not application data. KeyUpdates and alerts of an established
    /// connection say nothing that counts.
    fn opened(&mut self, from: Side, part: &RecordPart<'_>, content: &Content) {
        let Some(handshaking) = &mut self.handshaking else {
            if content.kind == HANDSHAKE {
                if let Some(transcript) = &mut self.transcript {
                    transcript.later_messages(from, self.number.saturating_sub(1), part, &content.bytes);
                }
                if content.bytes.first() == Some(&NEW_SESSION_TICKET) {
                    self.note_ticket(from, Some(&content.bytes));
                }
            }
            return;
        };
        let record = AppRecord::new(from, part);
        let is_tls13 = handshaking.machine.is_tls13();
        if content.kind == HANDSHAKE {
            let stretch = Stretch {
                bytes: &content.bytes,
                missing: 0,
                begins: u32::try_from(content.bytes.len()).ok(),
                first: part.record.first,
                last: part.seen,
            };
            if is_tls13 {
                handshaking.machine.opened_record(record);
            }
            let (decryptor, transcript) = (self.decryptor.as_deref_mut(), self.transcript.as_deref_mut());
            handshaking.push(from, stretch, Bearer::Protected(record), decryptor, transcript);
        }
        let machine = &mut handshaking.machine;
        match content.kind {
            ALERT if is_tls13 => machine.opened_alert13(from, &content.bytes, record.first),
            ALERT => machine.opened_alert(from, &content.bytes, record.first),
            HANDSHAKE if is_tls13 => {
                let client = machine.facts.hello_by;
                // Where the client's records are opened, its Finished need not be told by its size.
                let exact =
                    self.decryptor.as_ref().zip(client).is_some_and(|(keys, side)| keys.reads_handshake_of(side));
                if !exact {
                    machine.infer();
                }
            }
            _ if is_tls13 => {}
            _ => machine.sealed_record(from, part),
        }
        self.proceed();
    }

    /// Application data was opened, perhaps before the handshake was seen to end.
    fn application_began(&mut self, from: Side, part: &RecordPart<'_>) {
        let Some(Handshaking { machine, .. }) = self.handshaking.as_deref_mut() else {
            return;
        };
        if machine.is_tls13() {
            machine.application_began(from);
        } else if machine.facts.server_hello.is_some() {
            machine.sealed_record(from, part);
        }
        self.proceed();
    }

    /// The handshake has heard something: takes over what came of it.
    fn proceed(&mut self) {
        let Some(Handshaking { machine, .. }) = self.handshaking.as_deref_mut() else {
            return;
        };
        if machine.is_sslv2() {
            self.walk.client.stop();
            self.walk.server.stop();
        }
        let data = std::mem::take(&mut machine.data);
        if let Some(mut handshaking) = self.handshaking.take_if(|handshaking| handshaking.machine.ended()) {
            handshaking.machine.data = data;
            return self.conclude(handshaking);
        }
        data.into_iter().for_each(|seen| self.application(seen));
    }

    /// Takes over from a handshake that has ended.
    pub(super) fn conclude(&mut self, mut handshaking: Box<Handshaking>) {
        self.take_earlier();
        let machine = &mut handshaking.machine;
        if self.state == State::Established(None) && machine.facts.hello_by.is_none() {
            return std::mem::take(&mut machine.data).into_iter().for_each(|seen| self.application(seen));
        }
        self.requester = machine.facts.hello_by.or(self.requester);
        self.number += 1;
        self.http2 = self.http2.or(machine.http2());
        machine.close_flights();
        if !matches!(self.state, State::Established(Some(version)) if !version.is_tls13()) {
            self.state = match machine.facts.outcome {
                Outcome::Failed => State::Over,
                _ => State::Established(machine.version()),
            };
        }
        let opens = self.decryptor.as_ref().is_some_and(|decryptor| decryptor.reads_data());
        if machine.facts.outcome == Outcome::Complete && machine.is_tls13() && !opens {
            self.undecided = Some(Box::new(Undecided::new(machine.sizes(), machine.watch())));
        }
        let Machine { facts, data, .. } = handshaking.machine;
        let has_opener = self.decryptor.is_some();
        let found = self.found();
        found.handshakes.push_back(facts);
        found.undecided = has_opener;
        self.decide_coverage(false);
        self.decryptor.take_if(|decryptor| !decryptor.is_of_use());
        data.into_iter().for_each(|seen| self.application(seen));
    }

    /// Early data that the server has taken by now, and word of data that is missing.
    fn take_earlier(&mut self) {
        if let Some(decryptor) = &mut self.decryptor {
            let earlier = decryptor.take_earlier();
            if !earlier.is_empty() {
                self.found().clear.extend(earlier);
            }
        }
    }

    /// Says of the latest handshake how much of the connection can be opened, once that is known or asked for
    /// by `now`.
    pub(super) fn decide_coverage(&mut self, now: bool) {
        let Some(found) = self.found.as_deref_mut().filter(|found| found.undecided) else {
            return;
        };
        let (Some(decryptor), Some(handshake)) = (&self.decryptor, found.handshakes.back_mut()) else {
            return;
        };
        if decryptor.is_undecided() && !now {
            return;
        }
        found.undecided = false;
        let is_tls13 = handshake.version.is_some_and(Version::is_tls13);
        Coverage { keys: handshake.keys, missing: handshake.missing_keys } = decryptor.coverage(is_tls13);
    }

    fn application(&mut self, mut seen: AppRecord) {
        if self.decryptor.as_ref().is_some_and(|decryptor| decryptor.reads(seen.from)) {
            // It went out in clear.
            return;
        }
        let is_tls12 = matches!(self.state, State::Established(Some(version)) if !version.is_tls13());
        if !is_tls12 && self.state != State::Opening {
            let sizes = Sizes::of(None);
            if sizes.is_key_update(seen.bytes) {
                seen.confidence = 0.5;
            }
            if self.undecided.is_none() && sizes.is_alert(seen.bytes) {
                self.undecided = Some(Box::new(Undecided::new(sizes, None)));
            }
        }
        match self.undecided.take() {
            Some(mut undecided) => {
                undecided.push(seen, &mut self.found().records);
                self.http2 = self.http2.or(undecided.http2());
                self.keep_unless_idle(undecided);
            }
            None => self.found().records.push_back(seen),
        }
    }

    pub(super) fn keep_unless_idle(&mut self, undecided: Box<Undecided>) {
        self.undecided = Some(undecided).filter(|undecided| !undecided.is_idle());
        self.drop_fetched();
    }
}
