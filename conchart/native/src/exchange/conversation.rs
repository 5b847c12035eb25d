//! One TCP connection: finds out what it speaks and hands its bytes to who reads that.
//!
//! In: chunks, gaps and FINs of both sides in causal order. Out: exchanges, TLS handshakes, and
//! stretches in which the reader was lost. How TCP cut the streams never changes what is found.

use std::collections::VecDeque;

use super::Exchange;
use super::head::{self, Guess};
use super::held::{Event, Held};
use super::http1::{Http1, Onward, Switch};
use super::http2::{self, Http2};
use super::inside::Inside;
use super::ledger::Ledger;
use super::names;
use super::prelude::{self, Prelude};
use super::turns::{self, Turns, Words};
use crate::keys::Keys;
use crate::stream::{BySide, Chunk, Gap, Moment, Side};
use crate::tls::{self, Clear, Handshake, Sniff, Tls};

/// Bytes of each side that are looked at to find out what a connection speaks.
const SNIFFED: usize = 64;

/// How deep TLS inside TLS is opened.
const MAX_DEPTH: u8 = 3;

/// How many preludes are looked for: a PROXY header and a chain of SOCKS proxies.
const MAX_PRELUDES: u8 = 4;

/// The exchanges of one TCP connection.
pub struct Conversation {
    layer: Layer,
    ledger: Ledger,
    handshakes: VecDeque<Box<Handshake>>,
    /// How many of them TLS here has found so far: those inside it are numbered on.
    handshaken: u32,
    /// Where secrets may be known.
    keys: Option<Keys>,
    /// How many layers of TLS this is inside of.
    depth: u8,
    app: Option<&'static str>,
    /// How many preludes there were.
    preludes: u8,
    /// The first bytes are not in the capture: a reader may have to find its place.
    midstream: bool,
    /// Who asks, as long as the protocol does not say.
    requester: Side,
    /// Frame of each side's latest bytes: another frame means that a packet begins.
    frames: BySide<u64>,
    /// End of what each side has sent so far.
    sent: BySide<u64>,
}

enum Layer {
    Detecting(Held),
    Prelude(Box<Prelude>),
    Http(Box<Http1>),
    Http2(Box<Http2>),
    Tls {
        tls: Box<Tls>,
        turns: Turns,
        /// Up to here each side's bytes have become records; `None` before its first byte.
        read: BySide<Option<Moment>>,
        /// What is said inside, once a record was opened: then the ledger is there.
        inside: Option<Box<Inside>>,
    },
    /// `watched`: a packet may yet begin with something better known.
    Turns {
        turns: Turns,
        watched: bool,
    },
}

/// What a side's first bytes look like.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Verdict {
    /// A hello: the beginning of TLS.
    Tls,
    /// What comes before anything else: the PROXY header, SOCKS.
    Prelude(prelude::Kind),
    /// A record from the middle of TLS.
    TlsRecord,
    Request,
    Response,
    /// What an HTTP/2 client says first (RFC 9113 section 3.4).
    Http2,
    /// What its server says first.
    Http2Server,
    /// Frames from the middle of HTTP/2.
    Http2Frames,
    /// Nothing that is read here; its name, if it has one.
    Other(&'static str),
    More,
}

impl Conversation {
    /// `midstream`: the capture began after the connection.
    #[must_use]
    pub fn new(midstream: bool) -> Self {
        Self {
            layer: Layer::Detecting(Held::new(2 * SNIFFED)),
            ledger: Ledger::default(),
            handshakes: VecDeque::new(),
            handshaken: 0,
            keys: None,
            depth: 0,
            app: None,
            preludes: 0,
            midstream,
            requester: Side::Client,
            frames: BySide::default(),
            sent: BySide::default(),
        }
    }

    /// A conversation whose TLS is opened where its secrets are known.
    #[must_use]
    pub fn with_keys(midstream: bool, keys: Keys) -> Self {
        Self { keys: Some(keys), ..Self::new(midstream) }
    }

    /// The next bytes of one side's stream.
    pub fn data(&mut self, from: Side, chunk: Chunk<'_>) {
        if !chunk.is_empty() {
            self.hear(Event::Data(from, chunk));
        }
    }

    /// Bytes that were received but not captured.
    pub fn gap(&mut self, from: Side, gap: Gap) {
        self.hear(Event::Gap(from, gap));
    }

    /// A FIN in order, or a RST: that side sends no more.
    pub fn fin(&mut self, from: Side, seen: Moment) {
        self.hear(Event::Fin(from, seen));
    }

    /// The connection is over: closed, given up, or the capture ended. Everything can be handed out.
    pub fn finish(&mut self) {
        if let Layer::Detecting(held) = &self.layer
            && held.earliest().is_some()
        {
            let name = other(held);
            self.settle_for(Verdict::Other(name), Side::Client);
        }
        match &mut self.layer {
            Layer::Detecting(_) => self.ledger.settle_all(),
            Layer::Prelude(prelude) => drop(prelude.give_up(&mut self.ledger)),
            Layer::Http(http) => http.finish(&mut self.ledger),
            Layer::Http2(http) => http.finish(&mut self.ledger),
            Layer::Turns { turns, .. } => turns.finish(&mut self.ledger),
            Layer::Tls { tls, .. } => {
                tls.finish();
                self.collect(false);
                if let Layer::Tls { turns, read, inside, .. } = &mut self.layer {
                    match inside {
                        Some(inside) => inside.conversation.finish(),
                        None => turns.finish(&mut self.ledger),
                    }
                    *read = BySide::default();
                }
            }
        }
    }

    /// Is there anything to be handed out?
    #[inline]
    #[must_use]
    pub fn has_news(&self) -> bool {
        let inside = match &self.layer {
            Layer::Tls { inside: Some(inside), .. } => inside.conversation.has_news(),
            _ => self.ledger.has_news(),
        };
        inside || !self.handshakes.is_empty()
    }

    /// Exchanges that are over, in the order of their number.
    pub fn next_exchange(&mut self) -> Option<Exchange> {
        if let Some(inside) = self.inside() {
            return inside.next_exchange();
        }
        self.ledger.next_exchange()
    }

    /// TLS handshakes that are over, once it is known whether their keys open what follows.
    pub fn next_handshake(&mut self) -> Option<Box<Handshake>> {
        if let Some(handshake) = self.handshakes.pop_front() {
            return Some(handshake);
        }
        if let Layer::Tls { tls, .. } = &self.layer
            && tls.handshakes() > self.handshaken
        {
            return None;
        }
        let mut handshake = self.inside()?.next_handshake()?;
        handshake.number = handshake.number.saturating_add(self.handshaken);
        Some(handshake)
    }

    /// Stretches in which bytes are missing and the reader was lost: from the last byte before to
    /// the last byte that made no sense.
    pub fn next_unseen(&mut self) -> Option<(Moment, Moment)> {
        if let Some(inside) = self.inside() {
            return inside.next_unseen();
        }
        self.ledger.next_unseen()
    }

    /// First moment of the oldest exchange or handshake not yet handed out: nothing that is still
    /// to come begins before it. `None` when nothing is under way.
    #[must_use]
    pub fn earliest_open(&self) -> Option<Moment> {
        let reading = match &self.layer {
            Layer::Detecting(held) => held.earliest(),
            Layer::Http(http) => http.pending(),
            Layer::Http2(http) => earliest(http.pending()),
            Layer::Tls { tls, read, inside, .. } => {
                let inside = inside.as_ref().and_then(|inside| inside.conversation.earliest_open());
                let handshake = tls.earliest_open();
                earliest([read.client, read.server, inside, handshake])
            }
            Layer::Prelude(_) | Layer::Turns { .. } => None,
        };
        let handshake = self.handshakes.front().and_then(|h| h.hello);
        earliest([self.ledger.earliest(), reading, handshake])
    }

    /// What the connection speaks: `tls`, `http/1.0`, `http/1.1`, `h2`, `unknown`; `None` when no
    /// byte was sent. A tunnel is what its CONNECT was written in, opened TLS what is known to be inside.
    #[must_use]
    pub fn app(&self) -> Option<&'static str> {
        match &self.layer {
            Layer::Tls { inside: Some(inside), .. } if self.app == Some("tls") => {
                inside.conversation.app().filter(|&app| app != "unknown").or(self.app)
            }
            Layer::Detecting(held) if self.app.is_none() => held.earliest().map(|_| "unknown"),
            _ => self.app.or(Some("unknown")),
        }
    }

    /// Bytes of the streams that are kept at the moment.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        match &self.layer {
            Layer::Detecting(held) => held.len(),
            Layer::Http(http) => http.held(),
            Layer::Http2(http) => http.held(),
            Layer::Prelude(_) | Layer::Tls { .. } | Layer::Turns { .. } => 0,
        }
    }

    fn inside(&mut self) -> Option<&mut Self> {
        match &mut self.layer {
            Layer::Tls { inside: Some(inside), .. } => Some(&mut inside.conversation),
            _ => None,
        }
    }

    fn hear(&mut self, event: Event<'_>) {
        match &mut self.layer {
            Layer::Detecting(_) => return self.detect(event),
            Layer::Turns { watched: true, .. } => self.watch(event),
            _ => {}
        }
        self.tell(event);
    }

    /// Hands an event to the layer that reads this connection.
    fn tell(&mut self, event: Event<'_>) {
        let interrupts = self.interrupts(event);
        let ledger = &mut self.ledger;
        match (&mut self.layer, event) {
            (Layer::Detecting(held), event) => held.push(event),
            (Layer::Prelude(prelude), Event::Data(from, chunk)) => {
                let requester = prelude.requester;
                if let Some(switch) = prelude.data(ledger, from, chunk) {
                    self.switch(from, requester, switch);
                }
            }
            (Layer::Prelude(prelude), Event::Gap(..)) => {
                let eager = prelude.give_up(ledger);
                self.layer = Layer::Detecting(eager);
                self.hear(event);
            }
            (Layer::Prelude(prelude), Event::Fin(from, seen)) => prelude.fin(from, seen),
            (Layer::Http(http), Event::Data(from, chunk)) => {
                let switch = http.data(ledger, from, chunk);
                let requester = http.requester;
                if self.app.is_none() {
                    self.app = ledger.protocol();
                }
                if let Some(switch) = switch {
                    self.switch(from, requester, switch);
                }
            }
            (Layer::Http(http), Event::Gap(from, gap)) => http.gap(ledger, from, gap),
            (Layer::Http(http), Event::Fin(from, seen)) => http.fin(ledger, from, seen),
            (Layer::Http2(http), Event::Data(from, chunk)) => http.data(ledger, from, &chunk),
            (Layer::Http2(http), Event::Gap(from, gap)) => http.gap(ledger, from, gap),
            // Streams end by themselves.
            (Layer::Http2(_), Event::Fin(..)) => {}
            (Layer::Tls { tls, read, .. }, Event::Data(from, chunk)) => {
                read[from].get_or_insert(chunk.seen);
                tls.data(from, chunk);
                self.collect(interrupts);
            }
            (Layer::Tls { tls, .. }, Event::Gap(from, gap)) => {
                let beyond = tls.gap(from, gap);
                let spoken = tls.missed_data(from);
                self.collect(false);
                if spoken && let Layer::Tls { turns, inside: None, .. } = &mut self.layer {
                    turns.gap(&mut self.ledger, from, beyond);
                }
            }
            (Layer::Tls { tls, .. }, Event::Fin(from, seen)) => {
                tls.fin(from, seen);
                self.collect(false);
                if let Layer::Tls { turns, inside, .. } = &mut self.layer {
                    match inside {
                        Some(inside) => inside.conversation.fin(from, seen),
                        None => turns.fin(&mut self.ledger, from),
                    }
                }
            }
            (Layer::Turns { turns, .. }, Event::Data(from, chunk)) => {
                let (first, bytes) = (chunk.seen, chunk.len());
                turns.speak(
                    ledger,
                    &Words {
                        from,
                        first,
                        last: first,
                        bytes,
                        confidence: 1.0,
                        interrupts,
                        may_be_interim: false,
                        may_be_finished: false,
                    },
                );
            }
            (Layer::Turns { turns, .. }, Event::Gap(from, gap)) => turns.gap(ledger, from, gap),
            (Layer::Turns { turns, .. }, Event::Fin(from, _)) => turns.fin(ledger, from),
        }
    }

    /// Does the sender speak although it has not yet received all that its peer has sent?
    fn interrupts(&mut self, event: Event<'_>) -> bool {
        let Event::Data(from, chunk) = event else {
            return false;
        };
        self.sent[from] = chunk.offset.saturating_add(chunk.len());
        // Midstream, the two sides' offsets do not begin at bytes that are known to match.
        !self.midstream && chunk.acked < self.sent[from.peer()]
    }

    /// Looks at the first bytes of each side until one of them tells what this is.
    fn detect(&mut self, event: Event<'_>) {
        let Layer::Detecting(held) = &mut self.layer else {
            return;
        };
        let (from, verdict) = match event {
            Event::Data(from, chunk) => {
                let mut prefix = held.prefix(from);
                let room = SNIFFED.saturating_sub(prefix.len());
                prefix.extend_from_slice(chunk.bytes.get(..room).unwrap_or(chunk.bytes));
                let full = prefix.len() >= SNIFFED || chunk.cut > 0;
                match judge(&prefix, self.midstream) {
                    Verdict::More if full => (from, Verdict::Other(names::sniff(&prefix, true).1)),
                    Verdict::Prelude(_) if self.preludes >= MAX_PRELUDES => (from, Verdict::Other("unknown")),
                    verdict => (from, verdict),
                }
            }
            Event::Gap(from, _) if held.earliest().is_some() => (from, Verdict::Other(other(held))),
            Event::Gap(from, _) => {
                self.midstream = true;
                (from, Verdict::More)
            }
            Event::Fin(from, _) => (from, Verdict::More),
        };
        if verdict == Verdict::More {
            return held.push(event);
        }
        self.settle_for(verdict, from);
        self.hear(event);
    }

    /// The verdict is in: the layer is chosen and hears what was held for it.
    fn settle_for(&mut self, verdict: Verdict, from: Side) {
        let requester = self.requester;
        let (layer, app) = match verdict {
            Verdict::Tls => (tls_layer(Tls::new(self.keys.clone()), requester), Some("tls")),
            Verdict::Prelude(kind) => {
                self.preludes = self.preludes.saturating_add(1);
                (Layer::Prelude(Box::new(Prelude::new(from, kind))), Some(kind.name()))
            }
            Verdict::TlsRecord => (tls_layer(Tls::midstream(), requester), Some("tls")),
            Verdict::Request => (Layer::Http(Box::new(Http1::new(from))), None),
            Verdict::Response => (Layer::Http(Box::new(Http1::new(from.peer()))), None),
            Verdict::Http2 => (Layer::Http2(Box::new(Http2::new(from))), Some("h2")),
            Verdict::Http2Server => (Layer::Http2(Box::new(Http2::new(from.peer()))), Some("h2")),
            Verdict::Http2Frames => (Layer::Http2(Box::new(Http2::midstream(requester))), Some("h2")),
            Verdict::Other(name) => (plain_turns(requester, name, true), Some(name)),
            Verdict::More => (plain_turns(requester, "unknown", true), Some("unknown")),
        };
        // A tunnel stays what its CONNECT was written in.
        if !self.app.is_some_and(|app| app.starts_with("http/")) {
            self.app = app;
        }
        if let Layer::Detecting(held) = std::mem::replace(&mut self.layer, layer) {
            for event in held.events() {
                self.tell(event);
            }
        }
    }

    /// A packet of something unknown may begin with what is known: TLS after STARTTLS or a PROXY
    /// header; in a connection whose beginning is missing, any message.
    fn watch(&mut self, event: Event<'_>) {
        let Event::Data(from, chunk) = event else {
            return;
        };
        if std::mem::replace(&mut self.frames[from], chunk.seen.frame) == chunk.seen.frame {
            return;
        }
        let verdict = judge(chunk.bytes.get(..SNIFFED).unwrap_or(chunk.bytes), self.midstream);
        let known = match verdict {
            Verdict::Tls | Verdict::Http2 => true,
            Verdict::TlsRecord | Verdict::Request | Verdict::Response | Verdict::Http2Frames => self.midstream,
            _ => false,
        };
        let Layer::Turns { turns, .. } = &mut self.layer else {
            return;
        };
        if !known {
            return;
        }
        if !self.midstream {
            turns.end(&mut self.ledger);
        } else if let Some((since, until)) = turns.retract(&mut self.ledger) {
            // The tail of a message whose beginning nobody saw: neither request nor response.
            self.ledger.lost(since, until);
        }
        self.settle_for(verdict, from);
    }

    /// HTTP is over on this connection; what follows is another conversation.
    fn switch(&mut self, from: Side, requester: Side, switch: Switch<'_>) {
        self.requester = requester;
        self.layer = match switch.onward {
            Onward::Tunnel | Onward::Upgrade("tls") => Layer::Detecting(Held::new(2 * SNIFFED)),
            Onward::Upgrade("h2") => {
                let asked = self.ledger.switched();
                let http = asked.map(|asked| Http2::upgraded(requester, &mut self.ledger, &asked));
                Layer::Http2(Box::new(http.unwrap_or_else(|| Http2::new(requester))))
            }
            Onward::Upgrade(protocol) => plain_turns(requester, protocol, false),
        };
        for event in switch.eager.iter().flat_map(Held::events) {
            self.hear(event);
        }
        self.data(from, switch.rest);
    }

    /// Takes over what TLS has found.
    fn collect(&mut self, interrupts: bool) {
        let Layer::Tls { tls, turns, read, inside } = &mut self.layer else {
            return;
        };
        while let Some(agreement) = tls.next_agreement() {
            if let Some(alpn) = &agreement.alpn {
                turns.agreed(&mut self.ledger, alpn);
            }
            turns.may_begin(agreement.ready);
            if agreement.asks_later {
                turns.expect_questions();
            }
        }
        while let Some(handshake) = tls.next_handshake() {
            self.handshaken = self.handshaken.max(handshake.number.saturating_add(1));
            self.handshakes.push_back(handshake);
        }
        while let Some(clear) = tls.next_clear() {
            read[clear.from] = Some(clear.last);
            if clear.missing > 0 && inside.is_none() {
                // Nothing is known of what is inside: only that it was there.
                let Clear { from, first, last, missing: bytes, .. } = clear;
                turns.speak(
                    &mut self.ledger,
                    &Words {
                        from,
                        first,
                        last,
                        bytes,
                        confidence: 1.0,
                        interrupts,
                        may_be_interim: false,
                        may_be_finished: false,
                    },
                );
                continue;
            }
            let inside = inside.get_or_insert_with(|| {
                turns.end(&mut self.ledger);
                let requester = tls.requester().unwrap_or(turns.requester);
                let mut conversation = Self {
                    ledger: std::mem::take(&mut self.ledger),
                    keys: self.keys.clone().filter(|_| self.depth < MAX_DEPTH),
                    depth: self.depth + 1,
                    requester,
                    ..Self::new(false)
                };
                // The server's preface often comes first, and looks like nothing.
                if turns.speaks_h2() || tls.alpn() == Some("h2") {
                    conversation.settle_for(Verdict::Http2, requester);
                }
                Box::new(Inside::new(conversation))
            });
            inside.hear(&clear);
        }
        while let Some(record) = tls.next_record() {
            read[record.from] = Some(record.last);
            turns.requester = tls.requester().unwrap_or(turns.requester);
            if let Some(inside) = inside {
                inside.miss(&record);
                continue;
            }
            let words = Words {
                from: record.from,
                first: record.first,
                last: record.last,
                bytes: record.bytes,
                confidence: record.confidence,
                interrupts,
                may_be_interim: record.may_be_interim,
                may_be_finished: record.may_be_finished,
            };
            turns.speak(&mut self.ledger, &words);
        }
    }
}

fn tls_layer(tls: Tls, requester: Side) -> Layer {
    let turns = Turns::new(requester, "tls", turns::RECORDS);
    Layer::Tls { tls: Box::new(tls), turns, read: BySide::default(), inside: None }
}

fn earliest<const N: usize>(moments: [Option<Moment>; N]) -> Option<Moment> {
    moments.into_iter().flatten().min_by_key(|moment| (moment.at, moment.frame))
}

fn plain_turns(requester: Side, protocol: &'static str, watched: bool) -> Layer {
    Layer::Turns { turns: Turns::new(requester, protocol, turns::BYTES), watched }
}

/// What it may be that was held until nothing more comes.
fn other(held: &Held) -> &'static str {
    let mut told = [Side::Client, Side::Server].into_iter().map(|side| names::sniff(&held.prefix(side), true));
    told.find(|(guess, _)| *guess == Guess::Yes).map_or("unknown", |(_, name)| name)
}

fn judge(prefix: &[u8], midstream: bool) -> Verdict {
    let hello = tls::sniff(prefix);
    let record = if midstream { tls::sniff_midstream(prefix) } else { Sniff::Other };
    let (kind, prelude) = prelude::sniff(prefix);
    let (request, response) = (head::sniff_request(prefix), head::sniff_response(prefix));
    let (client, server) = (http2::sniff_client(prefix), http2::sniff_server(prefix));
    if hello == Sniff::Tls {
        Verdict::Tls
    } else if prelude == Guess::Yes {
        Verdict::Prelude(kind)
    } else if record == Sniff::Tls && hello == Sniff::Other {
        Verdict::TlsRecord
    } else if request == Guess::Yes {
        Verdict::Request
    } else if response == Guess::Yes {
        Verdict::Response
    } else if client == Guess::Yes {
        Verdict::Http2
    } else if server == Guess::Yes {
        Verdict::Http2Server
    } else if midstream && http2::begin_here(prefix) {
        Verdict::Http2Frames
    } else if hello == Sniff::More
        || prelude == Guess::More
        || record != Sniff::Other
        || request == Guess::More
        || response == Guess::More
        || client == Guess::More
        || server == Guess::More
    {
        Verdict::More
    } else {
        match names::sniff(prefix, false) {
            (Guess::More, _) => Verdict::More,
            (_, name) => Verdict::Other(name),
        }
    }
}
