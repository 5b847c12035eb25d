//! HTTP/3 in packets that stay sealed: told from how long they are, in which order they come, and what their senders
//! may have received by then.
//!
//! RFC 9000 section 19 (frames), RFC 9001 section 4.1 (when the handshake is over). In: the 0-RTT and 1-RTT packets of
//! both sides. Out: exchanges in the [`Ledger`], all of them `inferred`; of protocols other than HTTP/3, a stretch of
//! which nobody can say what went on. Which packets ask and answer is the business of [`Overlapping`]. Bounded:
//! [`MAX_SENT`] packets of the client are on their way.
//!
//! A packet as long as acknowledgements and credit are asks nothing and answers nothing. Nor does the server's first
//! packet after the client's Finished: HANDSHAKE_DONE, tickets and connection IDs come in it. Nor does the first packet
//! that is longer than all before it: it probes the path. What is in doubt (short packets during a download, streams
//! beside the Finished) asks if the server answers it.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use crate::exchange::generic::overlapping::{Overlapping, Sizes};
use crate::exchange::ledger::{Ledger, Way};
use crate::stream::{BySide, Moment, Side};
use crate::tls::AppRecord;

const SIZES: Sizes = Sizes { body: 1_100, head: 1_100, piece: 1_000, full: 1_100 };
/// First byte, a packet number of one byte, and the tag (RFC 9000 section 17.3.1, RFC 9001 section 5.3).
const OVERHEAD: u64 = 1 + 1 + 16;
/// The shortest request: ACK frames are shorter unless they have several ranges. Shorter ones ask if they are answered.
const REQUEST: u64 = 20;
const PERHAPS: u64 = 14;
/// A shorter packet of the client, while a response comes, may be an acknowledgement with many ranges.
const RANGES: u64 = 64;
/// The shortest response: a status, and the frame that it is in.
const RESPONSE: u64 = 24;
/// A NEW_CONNECTION_ID frame, without the ID (RFC 9000 section 19.15), and what a packet number may add.
const NEW_CONNECTION_ID: u64 = 20;
const NUMBER: u64 = 3;
/// The frames after the Finished do not fill a packet.
const AFTER_FINISHED: u64 = 1_050;
/// A request is sent again in a packet that is about as long.
const ALIKE: u64 = 4;
/// Packets of the client that are remembered until they must have arrived.
const MAX_SENT: usize = 256;
/// Requests in 0-RTT packets.
const MAX_EARLY: usize = 16;
/// So long after the frames that follow a Finished, the next request tells that the response was among them.
const AFTER_RESPONSE_NS: i64 = 50_000_000;

/// A packet of one request at a time.
const PACKET: f64 = 0.7;
/// A packet that only its answer shows to have asked.
const ANSWERED: f64 = 0.5;

/// A packet that was not opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Encrypted {
    pub from: Side,
    pub seen: Moment,
    /// How long it is.
    pub bytes: u64,
    /// How long the receiver's connection ID is, and the sender's.
    pub cid_len: (u64, u64),
    /// It shares its datagram with packets of the handshake.
    pub is_shared: bool,
    /// It is a 0-RTT packet.
    pub is_early: bool,
    pub way: Way,
}

pub(super) struct EncryptedHttp3 {
    /// `None` as long as it is not known that this is HTTP/3.
    overlapping: Option<Box<Overlapping>>,
    /// From when to when nobody knows what went on.
    unseen: Option<(Moment, Moment)>,
    early: Vec<AppRecord>,
    /// What each side has sent.
    sent: BySide<u64>,
    /// The client's packets that may not have arrived.
    on_way: VecDeque<(i64, u64)>,
    received: u64,
    /// The longest packet of each side, but for one that may be a probe, and that one.
    longest: BySide<u64>,
    probe: BySide<u64>,
    /// A packet of the client that asks if it is answered.
    maybe: Option<AppRecord>,
    /// The client's first 1-RTT packet: the handshake is over.
    begun: Option<Moment>,
    /// The server's frames after the Finished have come; the packet that had them.
    is_confirmed: bool,
    confirmation: Option<AppRecord>,
    /// The latest request, and the server's latest packet.
    latest_request: Option<(u64, Moment)>,
    heard: Option<Moment>,
    /// The client's latest packet.
    spoke: Option<Moment>,
    /// The server checks the path to the client's new endpoint, and the client has not answered that.
    is_checked: bool,
    /// Lengths of early requests: refused, they come again.
    may_come_again: Vec<u64>,
    /// The round trip to the server that its first packet after the handshake shows; that of the handshake includes what
    /// it computes.
    round_trip: Option<i64>,
}

impl EncryptedHttp3 {
    pub fn new() -> Self {
        Self {
            overlapping: None,
            unseen: None,
            early: Vec::new(),
            sent: BySide::default(),
            on_way: VecDeque::new(),
            received: 0,
            longest: BySide { client: 1_200, server: 1_200 },
            probe: BySide::default(),
            maybe: None,
            begun: None,
            is_confirmed: false,
            confirmation: None,
            latest_request: None,
            heard: None,
            spoke: None,
            is_checked: false,
            may_come_again: Vec::new(),
            round_trip: None,
        }
    }

    /// A datagram of the handshake: packets may be as long.
    pub fn handshake(&mut self, from: Side, bytes: u64) {
        self.longest[from] = self.longest[from].max(bytes);
    }

    /// A datagram after the handshake, of which this is all that can be told.
    pub fn unseen(&mut self, seen: Moment) {
        let (since, until) = self.unseen.unwrap_or((seen, seen));
        self.unseen = Some((since, until.max(seen)));
    }

    /// What could not be told was a version that the server does not speak.
    pub fn was_the_handshake(&mut self) {
        if self.begun.is_none() {
            self.unseen = None;
        }
    }

    /// The next packet of a connection that speaks HTTP/3; of one in 0-RTT, that is not yet known.
    pub fn packet(&mut self, ledger: &mut Ledger, packet: Encrypted) {
        let Encrypted { from, seen, bytes, .. } = packet;
        if packet.is_early {
            let record = self.record(packet, bytes.saturating_sub(OVERHEAD));
            if self.early.len() < MAX_EARLY && record.bytes >= REQUEST {
                self.early.push(record);
            }
            return;
        }
        let record = self.record(packet, bytes.saturating_sub(OVERHEAD.saturating_add(packet.cid_len.0)));
        let mut overlapping = self.overlapping.take().unwrap_or_else(|| Box::new(Overlapping::new("h3", SIZES)));
        for early in self.early.drain(..) {
            overlapping.ask(ledger, &early, 1);
            self.may_come_again.push(early.bytes);
        }
        let is_probe = self.is_probe(from, bytes);
        match from {
            Side::Client => {
                self.begun.get_or_insert(seen);
                self.spoke = Some(seen);
                if !is_probe {
                    self.request(&mut overlapping, ledger, &record, packet);
                }
            }
            Side::Server => {
                self.hear(ledger, seen);
                self.is_checked |= packet.way == Way::Check;
                // What goes to the endpoint that the client has left answers nothing new.
                let is_of_path = packet.way == Way::Check || packet.way == Way::Unheard && overlapping.is_idle();
                if !is_probe && !is_of_path && !is_connection_id(&record, packet) && record.bytes >= RESPONSE {
                    self.response(&mut overlapping, ledger, &record);
                }
            }
        }
        self.overlapping = Some(overlapping);
        ledger.release();
    }

    /// The packet as the next of its side; its sender has received what must have arrived.
    fn record(&mut self, Encrypted { from, seen, bytes, .. }: Encrypted, content: u64) -> AppRecord {
        let offset = self.sent[from];
        let end = offset.saturating_add(bytes);
        self.sent[from] = end;
        AppRecord {
            from,
            first: seen,
            last: seen,
            bytes: content,
            offset,
            end,
            acked: u64::MAX,
            confidence: PACKET,
            may_be_interim: false,
            may_be_finished: false,
        }
    }

    /// Is it longer than all before it? A second one of that length is none (RFC 8899 section 5.3).
    fn is_probe(&mut self, from: Side, bytes: u64) -> bool {
        if bytes <= self.longest[from] {
            return false;
        }
        if self.probe[from] == bytes {
            self.longest[from] = bytes;
            return false;
        }
        self.probe[from] = bytes;
        true
    }

    /// The server has sent something.
    fn hear(&mut self, ledger: &Ledger, seen: Moment) {
        self.heard = Some(seen);
        let reported = ledger.rtt.server.unwrap_or_default();
        if self.round_trip.is_none()
            && let Some(sample) = self.begun.map(|begun| seen.at.saturating_sub(begun.at))
            && sample >= reported / 4
        {
            self.round_trip = Some(sample);
        }
    }

    /// At most so long takes the way to the server and back.
    fn round_trip(&self, ledger: &Ledger) -> i64 {
        let reported = ledger.rtt.server.unwrap_or_default();
        self.round_trip.map_or(reported, |round_trip| round_trip.min(reported))
    }

    fn request(&mut self, overlapping: &mut Overlapping, ledger: &mut Ledger, record: &AppRecord, packet: Encrypted) {
        let is_again = self.latest_request.is_some_and(|(bytes, seen)| {
            bytes.abs_diff(record.bytes) <= ALIKE
                && self.heard.is_none_or(|heard| heard.at < seen.at)
                && record.first.at.saturating_sub(seen.at) >= self.round_trip(ledger)
        });
        let is_refused = self.may_come_again.iter().position(|bytes| bytes.abs_diff(record.bytes) <= ALIKE);
        if let Some(index) = is_refused.filter(|_| !overlapping.is_idle()) {
            self.may_come_again.remove(index);
            return;
        }
        // The client pads its PATH_RESPONSE (RFC 9000 section 8.2.2).
        let is_response_of_path = record.bytes >= SIZES.full && std::mem::take(&mut self.is_checked);
        if is_response_of_path || record.bytes < PERHAPS || is_again && !overlapping.is_idle() {
            return;
        }
        if self.on_way.len() >= MAX_SENT {
            self.on_way.pop_front();
        }
        self.on_way.push_back((record.first.at, record.end));
        let is_short = record.bytes < REQUEST || is_connection_id(record, packet);
        let acknowledges = record.bytes < RANGES && overlapping.is_cut();
        // Alone, a full packet may answer the server's check of a path, or check it (RFC 9000 section 8.2).
        let before = self.maybe.take();
        let full = before.filter(|before| before.bytes >= SIZES.full);
        let is_alone = record.bytes >= SIZES.full && full.is_none() && overlapping.is_whole();
        let is_unheard = packet.way == Way::Unheard;
        if is_short || acknowledges || packet.is_shared || is_alone || is_unheard {
            let request = before.filter(|before| is_unheard && before.bytes >= record.bytes).unwrap_or(*record);
            self.maybe = Some(AppRecord { confidence: ANSWERED, ..request });
            return;
        }
        let first = full.map_or(record.first, |full| full.first);
        let record = &AppRecord { first, ..*record };
        let pause = AFTER_RESPONSE_NS.max(self.round_trip(ledger).saturating_mul(4));
        if let Some(confirmation) =
            self.confirmation.take_if(|confirmation| record.first.at.saturating_sub(confirmation.last.at) >= pause)
            && overlapping.owes(confirmation.acked)
        {
            overlapping.respond(ledger, &confirmation);
        }
        self.latest_request = Some((record.bytes, record.last));
        overlapping.ask(ledger, record, 1);
    }

    fn response(&mut self, overlapping: &mut Overlapping, ledger: &mut Ledger, record: &AppRecord) {
        // What left less than a round trip ago cannot have been answered; the handshake's round trip may be too long,
        // as it includes what the server computes.
        let arrived = record.first.at.saturating_sub(self.round_trip(ledger) / 4 * 3);
        while let Some(&(_, end)) = self.on_way.front().filter(|&&(at, _)| at <= arrived) {
            self.received = end;
            self.on_way.pop_front();
        }
        let record = AppRecord { acked: self.received, ..*record };
        if !self.is_confirmed && record.bytes < AFTER_FINISHED {
            if self.begun.is_some_and(|begun| begun.at <= arrived) {
                self.is_confirmed = true;
                self.confirmation = Some(AppRecord { confidence: ANSWERED, ..record });
            }
            return;
        }
        if let Some(request) = self.maybe.take_if(|maybe| maybe.end <= record.acked)
            && overlapping.is_idle()
            && !overlapping.goes_on(&record, Some(request.first).filter(|_| request.bytes >= REQUEST))
        {
            overlapping.ask(ledger, &request, 1);
        }
        if !overlapping.is_idle() {
            self.confirmation = None;
        }
        overlapping.respond(ledger, &record);
    }

    /// Was the server heard after it had received this packet, and did the client say its last before an answer could be
    /// late? So it is with acknowledgements of header sections (RFC 9204 section 4.4.1), which are as long as requests.
    fn is_only_acknowledged(&self, ledger: &Ledger, requested: Moment) -> bool {
        let since = |other: Option<Moment>| other.map_or(0, |other| other.at.saturating_sub(requested.at));
        let to_server = self.round_trip(ledger);
        let round_trip = to_server.saturating_add(ledger.rtt.client.unwrap_or_default());
        let until_over = since(self.heard).max(since(self.spoke));
        since(self.heard) >= to_server / 4 * 3 && until_over < round_trip.saturating_mul(2)
    }

    /// Nothing more will come.
    pub fn finish(&mut self, ledger: &mut Ledger) {
        if let Some(mut overlapping) = self.overlapping.take() {
            if let Some(confirmation) =
                self.confirmation.take().filter(|confirmation| overlapping.owes(confirmation.acked))
            {
                overlapping.respond(ledger, &confirmation);
            }
            // QUIC says that it is over in a packet like others (RFC 9000 section 19.19).
            let is_last = |at: Moment| self.spoke.is_none_or(|spoke| spoke.at <= at.at);
            let is_close =
                |&(bytes, at): &(u64, Moment)| bytes < RANGES && (is_last(at) || self.is_only_acknowledged(ledger, at));
            if ledger.reset.is_none() && self.latest_request.as_ref().is_some_and(is_close) {
                overlapping.take_back(ledger);
            }
            overlapping.fin();
            overlapping.finish(ledger);
        }
        if let Some((since, until)) = self.unseen.take() {
            ledger.unseen(since, until);
        }
        *self = Self::new();
    }

    /// First packet that is not yet in the ledger.
    pub fn pending(&self) -> Option<Moment> {
        let unseen = self.unseen.map(|(since, _)| since);
        let early = self.early.first().map(|early| early.first);
        Moment::earliest([unseen, early, self.maybe.map(|maybe| maybe.first), self.confirmation.map(|it| it.first)])
    }

    /// Is something told of its packets?
    pub fn is_read(&self) -> bool {
        self.overlapping.is_some()
    }
}

/// Is it as long as one NEW_CONNECTION_ID?
fn is_connection_id(record: &AppRecord, packet: Encrypted) -> bool {
    let len = NEW_CONNECTION_ID.saturating_add(packet.cid_len.1);
    packet.cid_len.1 > 0 && record.bytes.checked_sub(len).is_some_and(|more| more <= NUMBER)
}
