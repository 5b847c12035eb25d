//! What is said over TLS: turns of its records, or, where they can be opened, the conversation inside.
//!
//! In: the chunks and gaps of both sides. Out: handshakes and exchanges in the [`Ledger`]. Records, handshakes and
//! keys are the business of [`crate::tls`]. Bounded: TLS inside TLS is opened up to [`MAX_DEPTH`].

mod inside;

use self::inside::Inside;
use super::generic::turns::{Run, Turns, Units};
use super::http2::encrypted::EncryptedHttp2;
use super::layer::Layer;
use super::ledger::Ledger;
use super::reader::{Opening, Reader, Switch};
use super::reader::{Row, Verdict};
use super::sniffers;
use crate::keys::Keys;
use crate::stream::{BySide, Chunk, Gap, Moment, Side};
use crate::tls::{Agreement, Sniff, Tls, sniff, sniff_midstream};

/// How deep TLS inside TLS is opened.
const MAX_DEPTH: u8 = 3;

/// Type of a ServerHello (RFC 8446 section 4), and where a record has it: after five bytes of header.
const SERVER_HELLO: u8 = 2;
const MESSAGE_TYPE: usize = 5;

/// Does a stream begin with a ClientHello?
pub(super) fn client_hello(prefix: &[u8]) -> Verdict {
    if begins_as_server(prefix) { Verdict::No } else { verdict(sniff(prefix)) }
}

/// Does a stream begin with a ServerHello?
pub(super) fn server_hello(prefix: &[u8]) -> Verdict {
    if begins_as_server(prefix) { verdict(sniff(prefix)) } else { Verdict::No }
}

/// Does a record begin here, in the middle of a connection?
pub(super) fn record(prefix: &[u8]) -> Verdict {
    verdict(sniff_midstream(prefix))
}

/// A hello of SSLv2 has bytes of other meaning here, but begins with a bit that no record begins with.
fn begins_as_server(prefix: &[u8]) -> bool {
    prefix.first().is_some_and(u8::is_ascii) && prefix.get(MESSAGE_TYPE) == Some(&SERVER_HELLO)
}

fn verdict(sniff: Sniff) -> Verdict {
    match sniff {
        Sniff::Tls => Verdict::Yes,
        Sniff::Other => Verdict::No,
        Sniff::More => Verdict::More,
    }
}

pub(super) struct OverTls {
    tls: Tls,
    /// Who speaks when, as long as no record was opened.
    turns: Turns,
    /// Where it is HTTP/2 that stays sealed: there, sides do not take turns.
    http2: Option<Box<EncryptedHttp2>>,
    /// What is said inside, once a record was opened.
    inside: Option<Box<Inside>>,
    /// Up to here each side's bytes have become records; `None` before its first byte.
    read: BySide<Option<Moment>>,
    /// What the handshake agreed on, where that is read here.
    agreed: Option<&'static Row>,
    keys: Option<Keys>,
    depth: u8,
}

impl OverTls {
    /// A connection from its ClientHello or ServerHello on.
    pub fn new(opening: &Opening<'_>) -> Self {
        Self::over(Tls::new(opening.keys.filter(|keys| keys.are_any()).cloned()), opening)
    }

    /// A connection whose handshake was over before the capture began.
    pub fn midstream(opening: &Opening<'_>) -> Self {
        Self::over(Tls::midstream(), opening)
    }

    fn over(tls: Tls, opening: &Opening<'_>) -> Self {
        Self {
            tls,
            turns: Turns::new(opening.start, "tls", Units::Records),
            http2: None,
            inside: None,
            read: BySide::default(),
            agreed: None,
            keys: opening.keys.cloned(),
            depth: opening.depth,
        }
    }

    /// Takes over what TLS has found. `interrupts`: the sender of these bytes had not received all that was sent.
    fn collect(&mut self, ledger: &mut Ledger, interrupts: bool) {
        while let Some(agreement) = self.tls.next_agreement() {
            self.agree(&agreement);
        }
        while let Some(handshake) = self.tls.next_handshake() {
            ledger.handshake(handshake);
        }
        if self.inside.is_none() {
            ledger.requester = self.tls.requester().unwrap_or(ledger.requester);
            if self.http2.is_none() {
                self.http2 = self.tls.http2().map(|overhead| Box::new(EncryptedHttp2::new(overhead)));
            }
        }
        while let Some(clear) = self.tls.next_clear() {
            self.read[clear.from] = Some(clear.last);
            if clear.missing > 0 && self.inside.is_none() {
                // Nothing is known of what is inside: only that it was there.
                let moments = (clear.first, clear.last);
                let gap = Gap { offset: clear.end, len: clear.missing, acked: Some(moments), seen: clear.last };
                match &mut self.http2 {
                    Some(http2) => http2.gap(ledger, clear.from, gap),
                    None => {
                        let run = Run::new(clear.from, moments, clear.missing);
                        self.turns.add(ledger, &Run { interrupts, ..run });
                    }
                }
            } else {
                self.inside(ledger).record(ledger, &clear);
            }
        }
        while let Some(record) = self.tls.next_record() {
            self.read[record.from] = Some(record.last);
            match (&mut self.inside, &mut self.http2) {
                (Some(inside), _) => inside.missing(ledger, &record),
                (None, Some(http2)) => http2.record(ledger, &record),
                (None, None) => self.turns.add(ledger, &Run { interrupts, ..Run::of_record(&record) }),
            }
        }
    }

    /// Lets TLS read, and write down what goes by where that is wanted: of the outermost layer, whose records packets carry.
    fn transcribed<T>(&mut self, ledger: &mut Ledger, read: impl FnOnce(&mut Tls) -> T) -> T {
        if self.depth > 0 {
            return read(&mut self.tls);
        }
        self.tls.transcript = ledger.transcript.take();
        let result = read(&mut self.tls);
        ledger.transcript = self.tls.transcript.take();
        result
    }

    /// A handshake has ended.
    fn agree(&mut self, agreement: &Agreement) {
        if let Some(alpn) = &agreement.alpn {
            self.agreed = self.agreed.or(sniffers::agreed(alpn));
            self.turns.agreed(alpn);
        }
        self.turns.may_begin(agreement.ready);
        if agreement.asks_later {
            self.turns.expect_certificate_request();
        }
    }

    /// What is said inside. (An HTTP/2 server's preface often comes first, and looks like nothing: what was agreed on
    /// need not be found out.)
    fn inside(&mut self, ledger: &mut Ledger) -> &mut Inside {
        self.inside.get_or_insert_with(|| {
            self.turns.end(ledger);
            if let Some(mut http2) = self.http2.take() {
                http2.finish(ledger);
            }
            let agreed = self.agreed.or_else(|| sniffers::agreed(self.tls.alpn()?));
            let keys = self.keys.clone().filter(|_| self.depth < MAX_DEPTH);
            Box::new(Inside::new(Layer::inside(ledger, keys, self.depth.saturating_add(1), agreed)))
        })
    }
}

impl Reader for OverTls {
    fn data<'a>(&mut self, ledger: &mut Ledger, from: Side, chunk: Chunk<'a>) -> Option<Switch<'a>> {
        let interrupts = self.turns.interrupts(from, &chunk);
        self.read[from].get_or_insert(chunk.seen);
        let unread = self.transcribed(ledger, |tls| tls.data(from, chunk));
        self.collect(ledger, interrupts);
        if unread > 0 && self.inside.is_none() {
            match &mut self.http2 {
                Some(http2) => http2.unread(ledger, from, chunk.seen, unread),
                None => self.turns.unread(ledger, from, chunk.seen, unread),
            }
        }
        None
    }

    fn gap(&mut self, ledger: &mut Ledger, from: Side, gap: Gap) {
        let beyond = self.transcribed(ledger, |tls| tls.gap(from, gap));
        let missed_data = self.tls.missed_data(from);
        self.collect(ledger, false);
        match &mut self.http2 {
            _ if !missed_data || self.inside.is_some() => {}
            Some(http2) => http2.gap(ledger, from, beyond),
            None => self.turns.gap(ledger, from, beyond),
        }
    }

    fn fin(&mut self, ledger: &mut Ledger, from: Side, seen: Moment) {
        self.tls.fin(from, seen);
        self.collect(ledger, false);
        if !ledger.asks(from) && self.tls.is_inside_data(from) {
            self.turns.cut_off();
        }
        match (&mut self.inside, &mut self.http2) {
            (Some(inside), _) => inside.fin(ledger, from, seen),
            (None, Some(http2)) => http2.fin(),
            (None, None) => self.turns.fin(ledger, from),
        }
    }

    fn finish(&mut self, ledger: &mut Ledger) {
        self.tls.finish();
        self.collect(ledger, false);
        if self.tls.is_inside_data(ledger.requester.peer()) {
            self.turns.cut_off();
        }
        match (&mut self.inside, &mut self.http2) {
            (Some(inside), _) => inside.finish(ledger),
            (None, Some(http2)) => http2.finish(ledger),
            (None, None) => self.turns.finish(ledger),
        }
        self.read = BySide::default();
    }

    fn pending(&self) -> Option<Moment> {
        let inside = self.inside.as_ref().and_then(|inside| inside.pending());
        let http2 = self.http2.as_ref().and_then(|http2| http2.pending());
        Moment::earliest([self.read.client, self.read.server, self.tls.earliest_open(), http2, inside])
    }

    fn app(&self) -> Option<&'static str> {
        self.inside.as_ref().and_then(|inside| inside.app()).filter(|&app| app != "unknown")
    }
}
