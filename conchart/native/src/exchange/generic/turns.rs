//! Requests and responses inferred from the direction of the data alone: for TLS records and unknown protocols.
//!
//! In: runs of bytes of both sides, and gaps. Out: exchanges in the [`Ledger`]. Nothing is kept but the current one.
//! A request is a run of the requester's bytes, a response the run of the responder's bytes that
//! follows; a requester's byte after that begins the next exchange. Every exchange is `inferred`.

use crate::exchange::ledger::Ledger;
use crate::exchange::reader::Start;
use crate::exchange::{Exchange, Span};
use crate::stream::{BySide, Chunk, Gap, Moment, Side};
use crate::tls::AppRecord;

/// What runs are made of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::exchange) enum Units {
    /// TLS records: their boundaries are exact, only their meaning is guessed.
    Records,
    /// Bytes of a protocol that nobody read.
    Bytes,
}

impl Units {
    fn confidence(self) -> f64 {
        match self {
            Self::Records => 0.9,
            Self::Bytes => 0.8,
        }
    }
}

/// Both sides talk at once, as HTTP/2 does: runs are not requests.
const DUPLEX: f64 = 0.3;
/// Bytes of it are missing.
const MISSING: f64 = 0.5;

/// After this long a requester that goes on without an answer says something new. Within an upload it pauses less: curl
/// waits one second for 100 (Continue).
const NEW_MESSAGE_NS: i64 = 2_000_000_000;
/// The requester interrupted its responder so often that they do not take turns.
const MANY_INTERRUPTIONS: u8 = 2;
/// The largest record with a closing alert, CBC with SHA-384 (RFC 5246 section 6.2.3.2), and the FIN after it.
const CLOSING_ALERT: u64 = 5 + 16 + 64 + 1;

/// Bytes of one side, with nothing of its peer in between: a TLS record, a chunk.
#[derive(Clone, Copy)]
pub(in crate::exchange) struct Run {
    pub from: Side,
    pub first: Moment,
    pub last: Moment,
    pub bytes: u64,
    pub confidence: f64,
    /// The sender had not received all that its peer had sent by then.
    pub interrupts: bool,
    /// Perhaps a 100 (Continue): no response, if the requester goes on.
    pub may_be_interim: bool,
    /// Perhaps the end of a handshake.
    pub may_be_finished: bool,
}

impl Run {
    /// Bytes of which nothing is known but who sent them, and when the first and the last of them came.
    pub fn new(from: Side, (first, last): (Moment, Moment), bytes: u64) -> Self {
        Self {
            from,
            first,
            last,
            bytes,
            confidence: 1.0,
            interrupts: false,
            may_be_interim: false,
            may_be_finished: false,
        }
    }

    /// A TLS record that stays sealed.
    pub fn of_record(record: &AppRecord) -> Self {
        Self {
            confidence: record.confidence,
            may_be_interim: record.may_be_interim,
            may_be_finished: record.may_be_finished,
            ..Self::new(record.from, (record.first, record.last), record.bytes)
        }
    }
}

/// A request that waits for 100 (Continue) has a head, which takes at least this.
const EXPECTING_BYTES: u64 = 60;
/// What looked like a 100 (Continue), or like a handshake in the middle, was read as one.
const INTERIM: f64 = 0.8;

pub(in crate::exchange) struct Turns {
    units: Units,
    protocol: &'static str,
    /// Both sides talk at once.
    duplex: bool,
    /// The handshake named the protocol: do not guess one.
    named: bool,
    confidence: f64,
    current: Option<u32>,
    answered: bool,
    /// What looks like the response came in the middle of the request.
    cut_short: bool,
    /// Bytes of the current request were captured.
    captured: bool,
    /// The responder's bytes end in the middle of a record: more of the response was announced.
    is_cut_off: bool,
    interim: Option<Run>,
    /// The server may ask for a certificate before it answers (RFC 8446 section 4.6.2).
    may_ask_later: bool,
    /// The exchange before, as long as its response may have been such a request.
    previous: Option<u32>,
    interruptions: u8,
    fin: BySide<bool>,
    /// The latest bytes, or when the first could come.
    latest: Option<Moment>,
    start: Start,
    /// End of what each side has sent so far.
    sent: BySide<u64>,
}

impl Turns {
    pub fn new(start: Start, protocol: &'static str, units: Units) -> Self {
        Self {
            units,
            protocol,
            duplex: false,
            named: false,
            confidence: units.confidence(),
            current: None,
            answered: false,
            cut_short: false,
            captured: false,
            is_cut_off: false,
            interim: None,
            may_ask_later: false,
            previous: None,
            interruptions: 0,
            fin: BySide::default(),
            latest: None,
            start,
            sent: BySide::default(),
        }
    }

    /// Does the sender speak although it has not yet received all that its peer has sent?
    pub fn interrupts(&mut self, from: Side, chunk: &Chunk<'_>) -> bool {
        self.sent[from] = chunk.offset.saturating_add(chunk.len());
        // Midstream, the two sides' offsets do not begin at bytes that are known to match.
        !self.start.is_midstream() && chunk.acked < self.sent[from.peer()]
    }

    /// The handshake is over: requests may come from then on.
    pub fn may_begin(&mut self, ready: Option<Moment>) {
        self.latest = ready.or(self.latest);
    }

    /// The client has offered to prove who it is later, too.
    pub fn expect_certificate_request(&mut self) {
        self.may_ask_later = true;
    }

    /// The application protocol that the TLS handshake agreed on.
    pub fn agreed(&mut self, alpn: &str) {
        self.named = true;
        if alpn == "h2" {
            self.is_duplex();
        }
    }

    /// Both sides talk at once: inside TLS that is HTTP/2, most likely.
    fn is_duplex(&mut self) {
        (self.duplex, self.confidence) = (true, DUPLEX);
        if self.units == Units::Records {
            self.protocol = "h2";
        }
    }

    pub fn add(&mut self, ledger: &mut Ledger, run: &Run) {
        let asks = ledger.asks(run.from);
        if let Some(interim) = self.interim.take() {
            if asks {
                self.doubt(ledger, INTERIM);
            } else {
                self.append(ledger, &interim);
            }
        } else if run.may_be_interim && !asks && self.may_expect_continue(ledger) {
            self.interim = Some(*run);
            return;
        }
        self.append(ledger, run);
    }

    /// May the current request wait for 100 (Continue)?
    fn may_expect_continue(&self, ledger: &mut Ledger) -> bool {
        let answered = self.answered;
        self.exchange(ledger).is_some_and(|exchange| !answered && exchange.request.bytes >= EXPECTING_BYTES)
    }

    fn doubt(&self, ledger: &mut Ledger, confidence: f64) {
        if let Some(exchange) = self.exchange(ledger) {
            exchange.doubt(confidence);
        }
    }

    fn append(&mut self, ledger: &mut Ledger, run: &Run) {
        let asks = ledger.asks(run.from);
        if asks && run.may_be_finished && self.was_certificate_request(ledger) {
            return;
        }
        if asks {
            self.end_unanswered(ledger, run.first);
        }
        if !asks && self.previous.take().is_some() {
            ledger.release();
        }
        if asks && self.answered && run.interrupts {
            self.interrupted(ledger);
        }
        let interrupted = asks && self.answered && run.interrupts;
        if asks && (self.cut_short || self.answers_early(ledger, run)) {
            self.cut_short = true;
            self.doubt(ledger, INTERIM);
        } else {
            self.turn(ledger, asks);
            self.answer_again(ledger);
        }
        let confidence = run.confidence.min(if interrupted { DUPLEX } else { self.confidence });
        let answered = !asks;
        let latest = self.latest.replace(run.last);
        let mut unseen = None;
        let Some(exchange) = self.exchange(ledger) else {
            return;
        };
        exchange.doubt(confidence);
        let missed = exchange.request.first.is_none() && exchange.request.bytes > 0;
        if answered && missed && exchange.response.first.is_none() {
            // When the request came, nobody saw.
            unseen = latest.map(|since| (since, run.first));
        }
        let span = if asks { &mut exchange.request } else { &mut exchange.response };
        span.extend(run.first, 0);
        span.extend(run.last, run.bytes);
        exchange.request.done |= answered && exchange.request.first.is_some();
        self.answered |= answered;
        self.captured |= asks;
        if let Some((since, until)) = unseen.filter(|(since, until)| since.max(*until) == *until) {
            ledger.unseen(since, until);
        }
    }

    /// The requester goes on after a long silence: what it said before was a message that nobody answers.
    fn end_unanswered(&mut self, ledger: &mut Ledger, next: Moment) {
        let answered = self.answered;
        let Some(exchange) = self.exchange(ledger).filter(|_| !answered) else {
            return;
        };
        let last = exchange.request.last.filter(|last| next.at - last.at >= NEW_MESSAGE_NS);
        if last.is_some() {
            exchange.ended = last;
            self.end(ledger);
        }
    }

    /// Did the response begin in the middle of this record? Then the rest of the request is no other one.
    fn answers_early(&self, ledger: &mut Ledger, run: &Run) -> bool {
        let response = self.exchange(ledger).and_then(|exchange| exchange.response.first);
        let within = |response: Moment| run.first.frame() < response.frame() && response.frame() < run.last.frame();
        self.answered && !self.duplex && response.is_some_and(within)
    }

    /// The responder goes on after the rest of the request: what came in the middle of it (a ticket, most likely) was
    /// not yet the response.
    fn answer_again(&mut self, ledger: &mut Ledger) {
        if std::mem::take(&mut self.cut_short)
            && let Some(exchange) = self.exchange(ledger)
        {
            exchange.response = Span::default();
        }
    }

    /// The requester did not go on: what looked like a 100 (Continue) was the response.
    fn accept_interim(&mut self, ledger: &mut Ledger) {
        if let Some(interim) = self.interim.take() {
            self.append(ledger, &interim);
        }
    }

    /// No more will come of the record that the responder is sending.
    pub fn cut_off(&mut self) {
        self.is_cut_off = true;
    }

    /// Bytes that were sent, but not captured.
    pub fn gap(&mut self, ledger: &mut Ledger, from: Side, gap: Gap) {
        self.accept_interim(ledger);
        let asks = ledger.asks(from);
        self.turn(ledger, asks);
        let Some(exchange) = self.exchange(ledger) else {
            return;
        };
        exchange.doubt(MISSING);
        let span = if asks { &mut exchange.request } else { &mut exchange.response };
        span.extend_over(gap);
        self.answered |= !asks;
    }

    /// Bytes of which no record is known: more of what this side is saying. They begin nothing, as they may be what
    /// follows a handshake.
    pub fn unread(&mut self, ledger: &mut Ledger, from: Side, seen: Moment, bytes: u64) {
        let asks = ledger.asks(from);
        if self.answered == asks {
            return;
        }
        if self.interim.take().is_some() {
            self.doubt(ledger, INTERIM);
        }
        if let Some(exchange) = self.exchange(ledger) {
            exchange.doubt(MISSING);
            exchange.message(from).extend(seen, bytes);
            self.latest = Some(seen);
        }
    }

    /// Begins the next exchange when these bytes do.
    fn turn(&mut self, ledger: &mut Ledger, asks: bool) {
        if self.current.is_none() || asks && self.answered {
            let previous = self.current.filter(|_| self.may_ask_later);
            self.close(ledger);
            match previous {
                Some(_) => self.previous = previous,
                None => ledger.release(),
            }
            self.current = Some(ledger.open(self.protocol, 0));
            self.captured = false;
        }
    }

    /// What looked like a short exchange and another request was a CertificateRequest and its answer, which ends in
    /// a Finished: the exchange before goes on waiting.
    fn was_certificate_request(&mut self, ledger: &mut Ledger) -> bool {
        let several = self.exchange(ledger).is_some_and(|exchange| exchange.request.bytes > 0);
        let Some((previous, current)) = self.previous.zip(self.current).filter(|_| several) else {
            return false;
        };
        self.previous = None;
        ledger.withdraw(current);
        self.current = Some(previous);
        (self.answered, self.cut_short) = (false, false);
        if let Some(exchange) = self.exchange(ledger) {
            exchange.response = Span::default();
            exchange.doubt(INTERIM);
        }
        true
    }

    /// The requester goes on although the response was still on its way.
    fn interrupted(&mut self, ledger: &mut Ledger) {
        if let Some(exchange) = self.exchange(ledger) {
            exchange.doubt(DUPLEX);
        }
        self.interruptions = self.interruptions.saturating_add(1);
        if self.interruptions >= MANY_INTERRUPTIONS {
            self.confidence = DUPLEX;
            if !self.named {
                self.is_duplex();
            }
        }
    }

    /// The current exchange is over: its messages ended where they stand.
    pub fn end(&mut self, ledger: &mut Ledger) {
        self.close(ledger);
        self.previous = None;
        ledger.release();
    }

    /// Another protocol begins, for which a message that nobody answered was no request.
    pub fn leave(&mut self, ledger: &mut Ledger) {
        self.accept_interim(ledger);
        let answered = self.answered;
        if let Some(exchange) = self.exchange(ledger).filter(|_| !answered) {
            exchange.ended = exchange.request.last;
        }
        self.end(ledger);
    }

    fn close(&mut self, ledger: &mut Ledger) {
        self.accept_interim(ledger);
        let (answered, is_cut_off) = (self.answered, self.is_cut_off);
        if let Some(exchange) = self.exchange(ledger) {
            exchange.request.done = exchange.request.first.is_some();
            exchange.response.done = answered && !is_cut_off;
        }
        (self.current, self.answered, self.cut_short) = (None, false, false);
    }

    /// Takes the current exchange back; returns from when to when it went on.
    pub fn withdraw(&mut self, ledger: &mut Ledger) -> Option<(Moment, Moment)> {
        let Exchange { request, response, .. } = ledger.withdraw(self.current.take()?)?;
        self.answered = false;
        let first = request.first.or(response.first)?;
        let last = |span: Span| span.last.unwrap_or(first);
        Some((first, last(request).max(last(response))))
    }

    pub fn fin(&mut self, ledger: &mut Ledger, from: Side) {
        self.accept_interim(ledger);
        self.fin[from] = true;
        if !ledger.asks(from) && self.answered {
            self.end(ledger);
        } else if let Some(exchange) = self.exchange(ledger)
            && from == exchange.requester
        {
            exchange.request.done = exchange.request.first.is_some();
        }
    }

    /// The connection is over. A response that was cut off by the end of the capture is not done.
    pub fn finish(&mut self, ledger: &mut Ledger) {
        self.accept_interim(ledger);
        self.drop_closing_alert(ledger);
        if self.fin.client || self.fin.server {
            self.end(ledger);
        } else if let Some(exchange) = self.exchange(ledger) {
            // Nothing more of it came: it is the responder's turn.
            exchange.request.done = exchange.request.first.is_some();
        }
        ledger.release_all();
        self.current = None;
    }

    /// Missing bytes at the end that nobody answered, as few as a closing alert has, are one.
    fn drop_closing_alert(&mut self, ledger: &mut Ledger) {
        let uncaptured = !self.captured && !self.answered && self.units == Units::Records && !self.duplex;
        if uncaptured && self.exchange(ledger).is_some_and(|exchange| exchange.request.bytes <= CLOSING_ALERT) {
            self.withdraw(ledger);
        }
    }

    fn exchange<'a>(&self, ledger: &'a mut Ledger) -> Option<&'a mut Exchange> {
        ledger.get(self.current?).map(|entry| &mut entry.exchange)
    }
}
