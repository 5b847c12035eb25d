//! TLS: one connection's two streams in, handshakes and application records out.
//!
//! The way of a byte ([`reading`]): records ([`record`]) → decryptor ([`decryptor`], where the connection's secrets are
//! known) → each side's stream of handshake messages ([`messages`]) → the machine that knows what they mean
//! ([`machine`]).
//!
//! In: chunks, gaps and FINs of both sides in causal order. Out: [`Handshake`]s when they have ended and
//! [`AppRecord`]s in causal order. Where the connection's secrets are known, its records are opened: handshakes
//! are exact and application data comes out as [`Clear`]. Without, what encryption hides is reasoned out from the
//! order and size of records and marked `inferred`. Memory: a few kilobytes while a handshake runs, at most
//! 128 KiB per side of a message that arrives in pieces, at most [`MAX_HELD`] undecided records, and under
//! 208 bytes once established.

mod agreed;
mod compute;
mod crypto;
mod decryptor;
mod fingerprint;
mod flight;
mod found;
mod hello;
mod machine;
mod messages;
mod names;
mod parameters;
mod preface;
mod reading;
mod record;
mod sniff;
mod tickets;
mod transcript;

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use {decryptor::tests as encrypted, tests::build};

use std::cell::Cell;
use std::collections::VecDeque;

pub use compute::Flights;
pub use crypto::CryptoHandshake;
pub use decryptor::Clear;
pub(crate) use decryptor::{Aead, Bulk, Hash, Suite, aead, expand_label};
pub use found::{Agreement, AppRecord, Handshake, KeyCoverage, Kind, Outcome};
pub use names::Version;
pub use preface::{PREFACE, acknowledges_settings, begins_settings, is_preface};
pub use sniff::{Sniff, sniff, sniff_midstream};
pub use transcript::{MessageSeen, RecordSeen, Transcript};

use crate::keys::Keys;
use crate::stream::{BySide, Chunk, Gap, Moment, Side};
use decryptor::Decryptor;
use machine::{Handshaking, Machine};
use record::Walk;
use tickets::Undecided;

/// Records that may wait at once until it is known whether they are application data.
const MAX_HELD: usize = 32;

/// What the records of a connection mean at present.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// A handshake runs and nothing is established.
    Opening,
    /// The version is unknown where the capture began later, or the ServerHello is missing. In TLS 1.2 and older,
    /// a handshake may run inside.
    Established(Option<Version>),
    /// The handshake failed, or these are not TLS records: nothing more is read.
    Over,
}

/// What the caller has not fetched yet. Thousands of idle connections must not each keep the buffers of
/// their busiest moment: this exists only while something is in it. What was fetched is kept, once for all connections,
/// with its room: nearly every record needs it.
#[derive(Debug, Default)]
struct Found {
    records: VecDeque<AppRecord>,
    clear: VecDeque<Clear>,
    /// Those that have ended.
    handshakes: VecDeque<Box<Handshake>>,
    /// Of how many of them, from the first on, the agreement was fetched.
    announced: usize,
    /// It is still open how much the keys of the last of them open.
    undecided: bool,
}

thread_local! {
    static SPARE: Cell<Option<Box<Found>>> = const { Cell::new(None) };
}

impl Found {
    fn is_empty(&self) -> bool {
        self.records.is_empty() && self.clear.is_empty() && self.handshakes.is_empty()
    }

    /// An empty one, with room where there is some.
    fn spare() -> Box<Self> {
        SPARE.take().unwrap_or_default()
    }

    /// Keeps the room of an empty one, unless it is uncommonly much.
    fn give_back(mut found: Box<Self>) {
        (found.announced, found.undecided) = (0, false);
        if found.records.capacity().max(found.clear.capacity()) <= 2 * MAX_HELD {
            SPARE.set(Some(found));
        }
    }
}

/// The TLS layer of one connection.
#[derive(Debug)]
pub struct Tls {
    walk: BySide<Walk>,
    /// The record that each side is sending is protected.
    protected: BySide<bool>,
    handshaking: Option<Box<Handshaking>>,
    /// Only where secrets are known.
    decryptor: Option<Box<Decryptor>>,
    undecided: Option<Box<Undecided>>,
    found: Option<Box<Found>>,
    number: u32,
    state: State,
    requester: Option<Side>,
    /// Where HTTP/2 is spoken inside: what each side's records take beyond their content.
    http2: Option<BySide<u8>>,
    /// What goes by, where somebody wants to know; lent by the caller.
    pub transcript: Option<Box<Transcript>>,
}

impl Tls {
    /// For a connection whose first byte of TLS comes next, and whose secrets may be known.
    #[must_use]
    pub fn new(keys: Option<Keys>) -> Self {
        Self {
            handshaking: Some(Box::new(Handshaking::new(Machine::new(0)))),
            decryptor: keys.map(|keys| Box::new(Decryptor::new(keys))),
            ..Self::in_state(State::Opening, false)
        }
    }

    /// For a connection whose handshake was over before the capture began.
    #[must_use]
    pub fn midstream() -> Self {
        Self::in_state(State::Established(None), true)
    }

    fn in_state(state: State, midstream: bool) -> Self {
        let walk = Walk::new(midstream);
        Self {
            walk: BySide { client: walk, server: walk },
            protected: BySide::default(),
            handshaking: None,
            decryptor: None,
            undecided: None,
            found: None,
            number: 0,
            state,
            requester: None,
            http2: None,
            transcript: None,
        }
    }

    /// Reads the next bytes of one side. Returns how many of them, at the end, are application data of which no record
    /// is known: the header of the one they belong to was cut off by the snap length, or is missing.
    pub fn data(&mut self, from: Side, mut chunk: Chunk<'_>) -> u64 {
        let whole = chunk;
        let counted = self.machine().map(|machine| machine.facts.number);
        if let Some(Handshaking { machine, .. }) = self.handshaking.as_deref_mut() {
            // Alone, between two packets of the peer: TLS 1.3 sends it for old middleboxes (RFC 8446 appendix D.4).
            let dummy = machine.is_tls13() && self.walk[from].is_at_change_cipher(&chunk);
            if !dummy {
                machine.facts.flights.chunk(from, &whole);
            }
        }
        while let Some(part) = self.walk[from].next(&mut chunk) {
            self.part(from, &part);
        }
        if let Some(Handshaking { machine, .. }) = self.handshaking.as_deref_mut()
            && counted != Some(machine.facts.number)
        {
            machine.facts.flights.chunk(from, &whole);
        }
        self.notice_missing(from, chunk.seen);
        self.decide_coverage(false);
        if self.missed_data(from) { chunk.len() } else { 0 }
    }

    /// Passes over bytes that the capture does not hold.
    ///
    /// A record whose header was seen is followed to its end; beyond it, this side is picked up again at
    /// the next chunk that starts with a plausible record header. Returns what of the gap lies beyond it.
    pub fn gap(&mut self, from: Side, gap: Gap) -> Gap {
        if let Some(handshaking) = &mut self.handshaking {
            handshaking.machine.facts.flights.gap(from, gap.offset, gap.len, gap.seen);
        }
        let mut beyond = gap;
        if let Some(part) = self.walk[from].gap(gap) {
            let followed = u64::from(part.missing);
            (beyond.offset, beyond.len) = (gap.offset.saturating_add(followed), gap.len.saturating_sub(followed));
            self.part(from, &part);
        }
        self.notice_missing(from, gap.acked.map_or(gap.seen, |(_, last)| last));
        if self.missed_data(from)
            && let Some(mut undecided) = self.undecided.take()
        {
            undecided.interrupted(&mut self.found().records);
            self.keep_unless_idle(undecided);
        }
        self.decide_coverage(false);
        beyond
    }

    /// Out of step: is application data of `from` missing, unless all of it was tickets?
    #[must_use]
    pub fn missed_data(&self, from: Side) -> bool {
        self.walk[from].is_out_of_step() && self.handshaking.is_none() && self.state != State::Over
    }

    /// Is more of a record of `from` due, as its header says?
    #[must_use]
    pub fn is_inside_data(&self, from: Side) -> bool {
        self.walk[from].is_inside_data()
    }

    fn notice_missing(&mut self, from: Side, seen: Moment) {
        if !self.walk[from].is_out_of_step() {
            return;
        }
        if let Some(handshaking) = &mut self.handshaking {
            handshaking.miss(from, seen, self.decryptor.as_deref_mut(), self.transcript.as_deref_mut());
        }
        if let Some(decryptor) = &mut self.decryptor {
            decryptor.miss(from);
        }
    }

    /// `from` sends no more: it sent a FIN or a RST.
    pub fn fin(&mut self, from: Side, seen: Moment) {
        if let Some(handshaking) = &mut self.handshaking {
            handshaking.machine.fin(seen);
        }
        if let Some(mut undecided) = self.undecided.take() {
            undecided.fin(from, &mut self.found().records);
            self.keep_unless_idle(undecided);
        }
    }

    /// The connection is over, or the capture is: everything still held back comes out.
    pub fn finish(&mut self) {
        if let Some(mut handshaking) = self.handshaking.take() {
            handshaking.machine.finish();
            self.conclude(handshaking);
        }
        if let Some(decryptor) = &mut self.decryptor {
            decryptor.finish();
        }
        self.decide_coverage(true);
        if let Some(mut undecided) = self.undecided.take() {
            undecided.finish(&mut self.found().records);
            self.drop_fetched();
        }
    }

    /// The next application record, in causal order.
    pub fn next_record(&mut self) -> Option<AppRecord> {
        let record = self.found.as_mut()?.records.pop_front();
        self.drop_fetched();
        record
    }

    /// The next application data that was opened, in causal order.
    pub fn next_clear(&mut self) -> Option<Clear> {
        let clear = self.found.as_mut()?.clear.pop_front();
        self.drop_fetched();
        clear
    }

    /// What the next handshake that has ended means for the application data after it.
    pub fn next_agreement(&mut self) -> Option<Agreement> {
        let found = self.found.as_mut()?;
        let handshake = found.handshakes.get(found.announced)?;
        found.announced += 1;
        Some(Agreement { alpn: handshake.alpn.clone(), ready: handshake.ready, asks_later: handshake.asks_later() })
    }

    /// The next handshake that has ended, once it is known how much its keys open.
    pub fn next_handshake(&mut self) -> Option<Box<Handshake>> {
        let found = self.found.as_mut()?;
        if found.undecided && found.handshakes.len() == 1 {
            return None;
        }
        let handshake = found.handshakes.pop_front();
        found.announced = found.announced.saturating_sub(1);
        self.drop_fetched();
        handshake
    }

    /// Handshakes that have ended so far, handed out or not.
    #[cfg(test)]
    pub fn handshakes(&self) -> u32 {
        self.number
    }

    /// The hello of the first handshake that has ended and is not handed out yet.
    #[must_use]
    pub fn earliest_open(&self) -> Option<Moment> {
        self.found.as_ref()?.handshakes.front()?.hello
    }

    /// Who sent the ClientHello; `None` while that is unknown.
    #[must_use]
    pub fn requester(&self) -> Option<Side> {
        self.machine().and_then(|machine| machine.facts.hello_by).or(self.requester)
    }

    /// The application protocol agreed on in the handshake that is running, as far as it can be read.
    #[must_use]
    pub fn alpn(&self) -> Option<&str> {
        self.machine()?.facts.alpn.as_deref()
    }

    /// HTTP/2 is spoken inside, as the handshake says or, where that is sealed, the first records: what each side's
    /// records take beyond their content.
    #[must_use]
    pub fn http2(&self) -> Option<BySide<u8>> {
        self.http2.or_else(|| self.machine()?.http2())
    }

    fn machine(&self) -> Option<&Machine> {
        self.handshaking.as_deref().map(|handshaking| &handshaking.machine)
    }

    fn drop_fetched(&mut self) {
        if let Some(found) = self.found.take_if(|found| found.is_empty()) {
            Found::give_back(found);
        }
    }

    fn found(&mut self) -> &mut Found {
        self.found.get_or_insert_with(Found::spare)
    }
}

#[cfg(test)]
impl Tls {
    fn holds_nothing(&self) -> bool {
        self.handshaking.is_none() && self.undecided.is_none() && self.found.is_none()
    }

    fn held_records(&self) -> usize {
        self.undecided.as_ref().map_or(0, |undecided| undecided.len())
            + self.machine().map_or(0, |machine| machine.held())
    }

    fn buffered(&self) -> usize {
        self.handshaking.as_ref().map_or(0, |handshaking| handshaking.buffered())
    }
}
