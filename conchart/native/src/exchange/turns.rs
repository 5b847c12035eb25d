//! Requests and responses from nothing but who sends: for TLS records and unknown protocols.
//!
//! A request is a run of the requester's bytes, a response the run of the responder's bytes that
//! follows; a requester's byte after that begins the next exchange. Every exchange is `inferred`.

use super::ledger::Ledger;
use super::{Exchange, Span};
use crate::stream::{BySide, Gap, Moment, Side};

/// Runs of TLS records: their boundaries are exact, only their meaning is guessed.
pub(super) const RECORDS: f64 = 0.9;
/// Runs of bytes of a protocol nobody read.
pub(super) const BYTES: f64 = 0.8;
/// Both sides talk at once, as HTTP/2 does: runs are not requests.
const DUPLEX: f64 = 0.3;
/// Bytes of it are missing.
const MISSING: f64 = 0.5;

/// The requester interrupted its responder so often that they do not take turns.
const MANY_INTERRUPTIONS: u8 = 2;
/// The largest record with a closing alert, CBC with SHA-384 (RFC 5246 section 6.2.3.2), and the FIN after it.
const CLOSING_ALERT: u64 = 5 + 16 + 64 + 1;

/// A run of bytes, or a part of one: a TLS record, a chunk.
#[derive(Clone, Copy)]
pub(super) struct Words {
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

/// A request that waits for 100 (Continue) has a head, which takes at least this.
const EXPECTING_BYTES: u64 = 60;
/// What looked like a 100 (Continue), or like a handshake in the middle, was read as one.
const INTERIM: f64 = 0.8;

pub(super) struct Turns {
    pub requester: Side,
    protocol: &'static str,
    /// The handshake or an Upgrade named the protocol: do not guess one.
    named: bool,
    confidence: f64,
    current: Option<u32>,
    answered: bool,
    /// Bytes of the current request were captured.
    heard: bool,
    interim: Option<Words>,
    /// The server may ask for a certificate before it answers (RFC 8446 section 4.6.2).
    may_ask_later: bool,
    /// The exchange before, as long as its response may have been such a question.
    before: Option<u32>,
    interruptions: u8,
    fin: BySide<bool>,
    /// The last words, or when the first could come.
    latest: Option<Moment>,
}

impl Turns {
    pub fn new(requester: Side, protocol: &'static str, confidence: f64) -> Self {
        Self {
            requester,
            protocol,
            named: false,
            confidence: if protocol == "h2" { DUPLEX } else { confidence },
            current: None,
            answered: false,
            heard: false,
            interim: None,
            may_ask_later: false,
            before: None,
            interruptions: 0,
            fin: BySide::default(),
            latest: None,
        }
    }

    /// The handshake is over: requests may come from then on.
    pub fn may_begin(&mut self, ready: Option<Moment>) {
        self.latest = ready.or(self.latest);
    }

    /// The client has offered to prove who it is later, too.
    pub fn expect_questions(&mut self) {
        self.may_ask_later = true;
    }

    /// The application protocol that the TLS handshake agreed on.
    pub fn agreed(&mut self, ledger: &mut Ledger, alpn: &str) {
        self.named = true;
        if alpn == "h2" {
            self.is_h2(ledger);
        }
    }

    /// Was HTTP/2 agreed on?
    pub fn speaks_h2(&self) -> bool {
        self.named && self.protocol == "h2"
    }

    fn is_h2(&mut self, ledger: &mut Ledger) {
        (self.protocol, self.confidence) = ("h2", DUPLEX);
        if let Some(exchange) = self.exchange(ledger) {
            exchange.protocol = "h2";
            exchange.doubt(DUPLEX);
        }
    }

    pub fn speak(&mut self, ledger: &mut Ledger, words: &Words) {
        let asks = words.from == self.requester;
        if let Some(interim) = self.interim.take() {
            if asks {
                self.doubt(ledger, INTERIM);
            } else {
                self.take(ledger, &interim);
            }
        } else if words.may_be_interim && !asks && self.is_expecting(ledger) {
            self.interim = Some(*words);
            return;
        }
        self.take(ledger, words);
    }

    /// May the current request wait for 100 (Continue)?
    fn is_expecting(&self, ledger: &mut Ledger) -> bool {
        let answered = self.answered;
        self.exchange(ledger).is_some_and(|exchange| !answered && exchange.request.bytes >= EXPECTING_BYTES)
    }

    fn doubt(&self, ledger: &mut Ledger, confidence: f64) {
        if let Some(exchange) = self.exchange(ledger) {
            exchange.doubt(confidence);
        }
    }

    fn take(&mut self, ledger: &mut Ledger, words: &Words) {
        let asks = words.from == self.requester;
        if asks && words.may_be_finished && self.was_asked(ledger) {
            return;
        }
        if !asks && self.before.take().is_some() {
            ledger.settle();
        }
        if asks && self.answered && words.interrupts {
            self.interrupted(ledger);
        }
        let interrupted = asks && self.answered && words.interrupts;
        self.turn(ledger, asks);
        let confidence = words.confidence.min(if interrupted { DUPLEX } else { self.confidence });
        let answered = !asks;
        let latest = self.latest.replace(words.last);
        let mut unseen = None;
        let Some(exchange) = self.exchange(ledger) else {
            return;
        };
        exchange.doubt(confidence);
        let missed = exchange.request.first.is_none() && exchange.request.bytes > 0;
        if answered && missed && exchange.response.first.is_none() {
            // When the request came, nobody saw.
            unseen = latest.map(|since| (since, words.first));
        }
        let span = if asks { &mut exchange.request } else { &mut exchange.response };
        span.extend(words.first, 0);
        span.extend(words.last, words.bytes);
        exchange.request.done |= answered && exchange.request.first.is_some();
        self.answered |= answered;
        self.heard |= asks;
        if let Some((since, until)) = unseen.filter(|(since, until)| since.max(*until) == *until) {
            ledger.lost(since, until);
        }
    }

    /// The requester did not go on: what looked like a 100 (Continue) was the response.
    fn settle_interim(&mut self, ledger: &mut Ledger) {
        if let Some(interim) = self.interim.take() {
            self.take(ledger, &interim);
        }
    }

    /// Bytes that were sent, but not captured.
    pub fn gap(&mut self, ledger: &mut Ledger, from: Side, gap: Gap) {
        self.settle_interim(ledger);
        let asks = from == self.requester;
        self.turn(ledger, asks);
        let Some(exchange) = self.exchange(ledger) else {
            return;
        };
        exchange.doubt(MISSING);
        let span = if asks { &mut exchange.request } else { &mut exchange.response };
        span.extend_over(gap);
        self.answered |= !asks;
    }

    /// Begins the next exchange when these words do.
    fn turn(&mut self, ledger: &mut Ledger, asks: bool) {
        if self.current.is_none() || asks && self.answered {
            let before = self.current.filter(|_| self.may_ask_later);
            self.close(ledger);
            match before {
                Some(_) => self.before = before,
                None => ledger.settle(),
            }
            self.current = Some(ledger.open(self.requester, self.protocol, 0));
            self.heard = false;
        }
    }

    /// What looked like a short exchange and another request was a CertificateRequest and its answer, which ends in
    /// a Finished: the exchange before goes on waiting.
    fn was_asked(&mut self, ledger: &mut Ledger) -> bool {
        let several = self.exchange(ledger).is_some_and(|exchange| exchange.request.bytes > 0);
        let Some((before, current)) = self.before.zip(self.current).filter(|_| several) else {
            return false;
        };
        self.before = None;
        ledger.retract(current);
        self.current = Some(before);
        self.answered = false;
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
            if self.protocol == "tls" && !self.named {
                self.is_h2(ledger);
            }
        }
    }

    /// The current exchange is over: its messages ended where they stand.
    pub fn end(&mut self, ledger: &mut Ledger) {
        self.close(ledger);
        self.before = None;
        ledger.settle();
    }

    fn close(&mut self, ledger: &mut Ledger) {
        self.settle_interim(ledger);
        let answered = self.answered;
        if let Some(exchange) = self.exchange(ledger) {
            exchange.request.done = exchange.request.first.is_some();
            exchange.response.done = answered;
        }
        (self.current, self.answered) = (None, false);
    }

    /// Takes the current exchange back; returns from when to when it went on.
    pub fn retract(&mut self, ledger: &mut Ledger) -> Option<(Moment, Moment)> {
        let Exchange { request, response, .. } = ledger.retract(self.current.take()?)?;
        self.answered = false;
        let first = request.first.or(response.first)?;
        let last = |span: Span| span.last.unwrap_or(first);
        Some((first, last(request).max(last(response))))
    }

    pub fn fin(&mut self, ledger: &mut Ledger, from: Side) {
        self.settle_interim(ledger);
        self.fin[from] = true;
        if from != self.requester && self.answered {
            self.end(ledger);
        } else if let Some(exchange) = self.exchange(ledger)
            && from == exchange.requester
        {
            exchange.request.done = exchange.request.first.is_some();
        }
    }

    /// The connection is over. A response that was cut off by the end of the capture is not done.
    pub fn finish(&mut self, ledger: &mut Ledger) {
        self.settle_interim(ledger);
        self.forget_goodbye(ledger);
        if self.fin.client || self.fin.server {
            self.end(ledger);
        }
        ledger.settle_all();
        self.current = None;
    }

    /// Missing bytes at the end that nobody answered, as few as a closing alert has, are one.
    fn forget_goodbye(&mut self, ledger: &mut Ledger) {
        let unheard = !self.heard && !self.answered && self.protocol == "tls";
        if unheard && self.exchange(ledger).is_some_and(|exchange| exchange.request.bytes <= CLOSING_ALERT) {
            self.retract(ledger);
        }
    }

    fn exchange<'a>(&self, ledger: &'a mut Ledger) -> Option<&'a mut Exchange> {
        ledger.get(self.current?).map(|entry| &mut entry.exchange)
    }
}
