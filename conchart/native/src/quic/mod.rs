//! QUIC (RFC 9000, RFC 9001, RFC 9369): with keys all of it, without them what its handshake shows to everyone.
//!
//! In: the datagrams of one UDP conversation, of both sides, in the order of the capture; secrets, where they are
//! known. Out: [`Event`]s: the CRYPTO streams (without secrets those of the Initial level, that is ClientHello and
//! ServerHello), the streams of data in order, what ends them; and [`Milestones`]: version, Retry, when packets of each
//! type came first. Non-goals: what TLS says in CRYPTO frames (see `tls`), what streams mean, several connections at
//! the same ports at the same time. Start at [`Quic`].
//!
//! The way of a packet: `packet` cuts it off its datagram → `initial` and `keyring` have its keys, which `protection`
//! opens it with → `frame` → `ordered` (CRYPTO) and `streams`.
//!
//! Bounded: keys of [`MAX_KEYS`] connection IDs, the windows of CRYPTO streams, what `streams` allows. A packet is only
//! believed when its tag is right; where keys are missing, facts stand on headers that anyone could have written.

mod frame;
mod initial;
mod keyring;
mod lost;
mod ordered;
mod packet;
mod protection;
mod ranges;
mod recovery;
mod reset;
mod seen;
mod spin;
mod streams;
#[cfg(test)]
pub(crate) mod tests;

pub use lost::Lost;
pub use packet::{Kind, Long, Packet, Packets, Version};
pub use recovery::{Held, Path, Spurious, Why};
pub use seen::{FrameSeen, PacketSeen};

use crate::keys::{Secret, Secrets};
use crate::stream::{BySide, Gap, Moment, Side};
use crate::tls::Suite;
use frame::{Ack, Frame, frames};
use initial::Keys;
use keyring::Keyring;
use lost::Losses;
use ordered::{CRYPTO_WINDOW, Ordered};
use protection::Opened;
use recovery::{Passed, Range, Recovery};
use reset::Resets;
use spin::Spin;
use streams::{Piece, Streams};

/// Keys that are kept: of the first connection ID, after a Retry, of another version (RFC 9368 section 2.3).
const MAX_KEYS: usize = 4;

/// Shortest datagram with an Initial packet of the client (RFC 9000 section 14.1), and its shortest Destination
/// Connection ID (section 7.2).
const MIN_CLIENT_INITIAL: usize = 1200;
const MIN_CLIENT_DCID: usize = 8;

/// What a datagram that begins QUIC tells of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Sniffed {
    pub version: Version,
    /// Who sent it, where the packet proves it.
    pub sender: Option<Side>,
}

/// Does this datagram, the first of its conversation, begin QUIC? On any port.
#[must_use]
pub fn sniff(datagram: &[u8]) -> Option<Sniffed> {
    if let Some(version) = packet::public_header(datagram) {
        return Some(Sniffed { version, sender: None });
    }
    let Packet::Long(first) = Packets::of(datagram).next()? else {
        return None;
    };
    let version = first.version;
    let has_client_dcid = first.dcid.len() >= MIN_CLIENT_DCID;
    let sniffed = |sender| Some(Sniffed { version, sender });
    if first.kind == Kind::VersionNegotiation {
        let is_recognised = |version: Version| version.is_read() || version.is_google() || version.is_greased();
        return if first.versions().any(is_recognised) { sniffed(Some(Side::Server)) } else { None };
    }
    if !first.is_fixed() {
        return None;
    }
    match first.kind {
        // Only what a client sends first is sealed with keys of the connection ID that it carries.
        Kind::Initial if Keys::of(version, first.dcid)?.open(Side::Client, &first, None).is_some() => {
            sniffed(Some(Side::Client))
        }
        // The capture holds only the beginning of each packet.
        Kind::Initial if first.is_cut() && has_client_dcid && first.len >= MIN_CLIENT_INITIAL => sniffed(None),
        Kind::Initial | Kind::Handshake if !first.is_cut() => sniffed(None),
        Kind::ZeroRtt if !first.is_cut() => sniffed(Some(Side::Client)),
        Kind::Retry => sniffed(Some(Side::Server)),
        Kind::Unknown if version.is_google() => sniffed(None),
        // Whoever asks for a version that does not exist wants to hear which ones do.
        Kind::Unknown if version.is_greased() && has_client_dcid && datagram.len() >= MIN_CLIENT_INITIAL => {
            sniffed(Some(Side::Client))
        }
        _ => None,
    }
}

/// What the packets of one connection have shown so far; of each kind the first.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Milestones {
    /// The version in use: that of the server's packets, before them the one that the client tries.
    pub version: Option<Version>,
    pub initial: BySide<Option<Moment>>,
    pub zero_rtt: Option<Moment>,
    pub handshake: BySide<Option<Moment>>,
    /// The server's last Handshake packet before the client's first: the end of its flight.
    pub server_flight_end: Option<Moment>,
    /// Packets with a short header.
    pub one_rtt: BySide<Option<Moment>>,
    pub retry: Option<Moment>,
    pub version_negotiation: Option<Moment>,
    /// The client tries a version whose packets are not read.
    pub tried: Option<Moment>,
    /// CONNECTION_CLOSE in a packet that was opened.
    pub close: Option<Close>,
    /// The server confirms the handshake (RFC 9001 section 4.1.2), in a packet that was opened.
    pub done: Option<Moment>,
    /// Initial packets that were opened, and those that could not be.
    pub opened: u64,
    pub unopened: u64,
    /// The same of 1-RTT packets, of each side.
    pub read: BySide<u64>,
    pub sealed: BySide<u64>,
}

/// A CONNECTION_CLOSE (RFC 9000 section 19.19).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Close {
    pub from: Side,
    /// RFC 9000 section 20.1; 0x100 and above: the alert of TLS that is in the low byte. Where the application gave it,
    /// its own.
    pub code: u64,
    pub is_of_application: bool,
    pub seen: Moment,
}

/// An encryption level with a CRYPTO stream of its own.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Level {
    Initial,
    Handshake,
    OneRtt,
}

impl Level {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Initial => "initial",
            Self::Handshake => "handshake",
            Self::OneRtt => "data",
        }
    }
}

/// What [`Quic::packet`] tells as it goes.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// A packet begins: what it brings follows.
    Packet(PacketSeen<'a>),
    /// The next bytes of a side's CRYPTO stream at that level: in order, each once.
    Crypto { level: Level, from: Side, offset: u64, bytes: &'a [u8], seen: Moment },
    /// The client begins again after a Retry. Its hello should be the same (RFC 9000 section 17.2.5.2), and is not
    /// always.
    Again,
    /// Another connection begins: after Version Negotiation, or at the same ports. This is what was known of the last.
    Over(Box<Milestones>),
    /// The next bytes of one side of a stream: in order, each once. With `fin`, there are none, and no more will come.
    Stream { from: Side, id: u64, offset: u64, bytes: &'a [u8], fin: bool, seen: Moment },
    /// Bytes of it that the capture does not hold.
    Missing { from: Side, id: u64, gap: Gap },
    /// That side may be sent packets with this connection ID.
    ConnectionId { of: Side, cid: &'a [u8] },
    /// The next byte of a side did not come, and why.
    Held(Held),
    /// What was held up by a loss had not been lost.
    Late(Spurious),
    /// DATAGRAM: its data.
    Datagram { from: Side, bytes: &'a [u8], seen: Moment },
    /// The peer's acknowledgements leave a packet out.
    Lost(Lost),
    /// An end's address is validated.
    Path(Path),
    /// RESET_STREAM: that side sends no more on this stream, and not all of what it had begun.
    Reset { from: Side, id: u64, code: u64, seen: Moment },
    /// STOP_SENDING: that side does not want more of this stream.
    Stop { from: Side, id: u64, code: u64, seen: Moment },
}

/// Packet number spaces (RFC 9000 section 12.3), each with the CRYPTO streams of its level.
#[derive(Default)]
struct Space {
    /// Largest packet number of each side.
    largest: BySide<Option<u64>>,
    crypto: BySide<Ordered>,
    /// How far each side's CRYPTO stream goes.
    crypto_end: BySide<u64>,
    recovery: Recovery,
    losses: BySide<Losses>,
}

/// One UDP conversation that speaks QUIC.
#[derive(Default)]
pub struct Quic {
    keys: Vec<KeySet>,
    keyring: Keyring,
    spaces: Spaces,
    streams: Streams,
    /// The connection ID that each side has chosen for itself; later ones are as long.
    cids: BySide<Vec<u8>>,
    /// Since when each side has had more to send than the peer allows: on one stream, or on all.
    blocked: BySide<Option<(Option<u64>, Moment)>>,
    /// Shortest round trip between the capture point and each side.
    rtt: BySide<Option<i64>>,
    spin: Spin,
    resets: Resets,
    facts: Milestones,
}

impl Space {
    /// What that side has sent was refused as a whole: it was not lost.
    fn forget(&mut self, side: Side) {
        self.recovery.forget(side);
        self.losses[side].forget();
    }
}

#[derive(Default)]
struct Spaces {
    initial: Space,
    handshake: Space,
    data: Space,
}

impl Spaces {
    fn of(&mut self, level: Level) -> &mut Space {
        match level {
            Level::Initial => &mut self.initial,
            Level::Handshake => &mut self.handshake,
            Level::OneRtt => &mut self.data,
        }
    }
}

/// Keys and what they follow from.
struct KeySet {
    version: Version,
    dcid: Vec<u8>,
    keys: Keys,
}

impl Quic {
    /// The packets of the next datagram, each of which is for [`packet`](Self::packet).
    pub fn packets<'a>(&mut self, from: Side, datagram: &'a [u8]) -> Packets<'a> {
        match packet::public_header(datagram) {
            Some(version) => {
                self.version(from, version);
                Packets::of(&[])
            }
            None => Packets::of(datagram),
        }
    }

    /// The next packet; what it brings goes to `tell`.
    pub fn packet(&mut self, from: Side, packet: Packet<'_>, seen: Moment, mut tell: impl FnMut(Event<'_>)) {
        match packet {
            Packet::Short(_) if self.facts.version.is_some_and(Version::is_google) => {}
            Packet::Short(bytes) => self.short(from, bytes, seen, &mut tell),
            Packet::Long(long) => self.long(from, &long, seen, &mut tell),
        }
    }

    /// The client's hello has told whose early data this is.
    pub fn expect_early(&mut self, secret: Secret) {
        if let Some(version) = self.facts.version {
            self.keyring.expect_early(version, secret);
        }
    }

    /// Both hellos have told whose connection this is.
    pub fn expect(&mut self, suite: Suite, secrets: &Secrets) {
        if let Some(version) = self.facts.version {
            self.keyring.expect(version, suite, secrets);
        }
    }

    /// The server has refused the client's early data (RFC 9001 section 4.6.2): it comes again.
    pub fn refuse_early(&mut self) {
        self.spaces.data.forget(Side::Client);
    }

    /// Are there keys for what that side says after the handshake?
    #[must_use]
    pub fn reads(&self, from: Side) -> bool {
        self.keyring.reads(from)
    }

    /// How long the connection IDs of packets to that side are.
    #[must_use]
    pub fn cid_len(&self, to: Side) -> u64 {
        self.cids[to].len() as u64
    }

    /// Nothing more will come: what waited for missing packets goes to `tell`.
    pub fn finish(&mut self, mut tell: impl FnMut(Event<'_>)) {
        self.end(&mut tell);
    }

    fn end(&mut self, tell: &mut impl FnMut(Event<'_>)) {
        self.streams.finish(tell);
        for level in [Level::Initial, Level::Handshake, Level::OneRtt] {
            for sender in [Side::Client, Side::Server] {
                let mut all_lost = Vec::new();
                self.spaces.of(level).losses[sender].finish((level, sender), &mut |lost| all_lost.push(lost));
                all_lost.into_iter().for_each(|lost| self.lost(lost, tell));
            }
        }
    }

    fn lost(&self, lost: Lost, tell: &mut impl FnMut(Event<'_>)) {
        let Spaces { initial, handshake, data } = &self.spaces;
        let others = [(Level::Initial, initial), (Level::Handshake, handshake), (Level::OneRtt, data)];
        let mut others = others.iter().filter(|(level, _)| *level != lost.level);
        if lost.sent.is_some() || !others.any(|(_, space)| space.losses[lost.sender].knows(lost.number)) {
            tell(Event::Lost(lost));
        }
    }

    /// Shortest round trip between the capture point and each side, in nanoseconds: until an acknowledgement, or what the
    /// spin bit shows.
    #[must_use]
    pub fn rtt(&self) -> BySide<Option<i64>> {
        let of = |side| match (self.rtt[side], self.spin.rtt(side)) {
            (Some(acked), Some(spun)) => Some(acked.min(spun)),
            (acked, spun) => acked.or(spun),
        };
        BySide { client: of(Side::Client), server: of(Side::Server) }
    }

    /// The first stateless reset.
    #[must_use]
    pub fn reset(&self) -> Option<Moment> {
        self.resets.first(self.facts.read.client + self.facts.read.server > 0)
    }

    /// The handshake has told with which token the server may reset the connection.
    pub fn reset_token(&mut self, token: [u8; 16]) {
        self.resets.token(Side::Server, token);
    }

    /// What is known so far.
    #[must_use]
    pub fn facts(&self) -> &Milestones {
        &self.facts
    }

    fn short(&mut self, from: Side, bytes: &[u8], seen: Moment, tell: &mut impl FnMut(Event<'_>)) {
        self.facts.one_rtt[from].get_or_insert(seen);
        let largest = self.spaces.data.largest[from];
        let cid_len = self.cids[from.peer()].len();
        let opened = self.keyring.open_short(from, bytes, cid_len, largest);
        tell(Event::Packet(PacketSeen {
            kind: "1-RTT",
            bytes: bytes.len(),
            opened: opened.as_ref().map(Opened::contents),
        }));
        match opened {
            Some(opened) => {
                self.facts.read[from] += 1;
                self.resets.recognised(from, bytes.len());
                self.opened(Level::OneRtt, from, &opened, seen, tell);
            }
            None => {
                self.facts.sealed[from] += 1;
                self.resets.unknown(from, bytes, &self.cids[from.peer()], seen);
                if let Some(&first) = bytes.first() {
                    let rtt = self.rtt.client.unwrap_or_default().saturating_add(self.rtt.server.unwrap_or_default());
                    self.spin.packet(from, first, seen, rtt);
                }
            }
        }
    }

    fn long(&mut self, from: Side, packet: &Long<'_>, seen: Moment, tell: &mut impl FnMut(Event<'_>)) {
        if !matches!(packet.kind, Kind::Initial | Kind::Handshake)
            && (packet.kind, from) != (Kind::ZeroRtt, Side::Client)
        {
            tell(Event::Packet(PacketSeen::of(packet, None)));
        }
        match packet.kind {
            Kind::Initial => return self.initial(from, packet, seen, tell),
            // Neither has a version in use to tell of; only a server sends them.
            Kind::VersionNegotiation => {
                self.facts.version_negotiation.get_or_insert(seen);
                return;
            }
            Kind::Retry if from == Side::Server => {
                self.facts.retry.get_or_insert(seen);
                // The server has forgotten what it refused: it comes again, and was not lost.
                self.spaces.initial.forget(Side::Client);
                self.spaces.data.forget(Side::Client);
            }
            Kind::ZeroRtt if from == Side::Client => {
                self.facts.zero_rtt.get_or_insert(seen);
                let largest = self.spaces.data.largest.client;
                let opened = self.keyring.open_long(from, packet, largest);
                tell(Event::Packet(PacketSeen::of(packet, opened.as_ref())));
                if let Some(opened) = opened {
                    self.opened(Level::OneRtt, from, &opened, seen, tell);
                }
            }
            Kind::Handshake => {
                self.facts.handshake[from].get_or_insert(seen);
                if from == Side::Server && self.facts.handshake.client.is_none() {
                    self.facts.server_flight_end = Some(seen);
                }
                self.chooses(from, packet.scid, tell);
                let largest = self.spaces.handshake.largest[from];
                let opened = self.keyring.open_long(from, packet, largest);
                tell(Event::Packet(PacketSeen::of(packet, opened.as_ref())));
                if let Some(opened) = opened {
                    self.opened(Level::Handshake, from, &opened, seen, tell);
                }
            }
            Kind::Unknown if from == Side::Client => {
                self.facts.tried.get_or_insert(seen);
            }
            Kind::Retry | Kind::ZeroRtt | Kind::Unknown => {}
        }
        self.version(from, packet.version);
    }

    fn version(&mut self, from: Side, version: Version) {
        if from == Side::Server || self.facts.version.is_none() {
            self.facts.version = Some(version);
        }
    }

    fn initial(&mut self, from: Side, packet: &Long<'_>, seen: Moment, tell: &mut impl FnMut(Event<'_>)) {
        let opened = self.open(from, packet, tell);
        tell(Event::Packet(PacketSeen::of(packet, opened.as_ref())));
        let Some(opened) = opened else {
            self.facts.unopened += 1;
            self.facts.initial[from].get_or_insert(seen);
            return self.version(from, packet.version);
        };
        self.facts.opened += 1;
        self.facts.initial[from].get_or_insert(seen);
        self.version(from, packet.version);
        self.chooses(from, packet.scid, tell);
        self.opened(Level::Initial, from, &opened, seen, tell);
    }

    /// A side names the connection ID by which it is to be reached.
    fn chooses(&mut self, from: Side, cid: &[u8], tell: &mut impl FnMut(Event<'_>)) {
        let current = &mut self.cids[from];
        if **current != *cid {
            *current = cid.into();
            tell(Event::ConnectionId { of: from, cid });
        }
    }

    /// A packet was opened: takes in its frames.
    fn opened(&mut self, level: Level, from: Side, opened: &Opened, seen: Moment, tell: &mut impl FnMut(Event<'_>)) {
        let space = self.spaces.of(level);
        space.largest[from] = space.largest[from].max(Some(opened.number));
        space.losses[from].sent(opened.number, seen);
        let crypto_before = space.crypto_end[from];
        let mut passed = Passed::new(opened.number, seen);
        for frame in frames(&opened.payload) {
            passed.elicits_ack |= frame.elicits_ack();
            match frame {
                Frame::Crypto { offset, bytes } => {
                    let Space { crypto, crypto_end, .. } = self.spaces.of(level);
                    let end = offset.saturating_add(bytes.len() as u64);
                    passed.carries(Range { stream: None, offset, end });
                    // A ClientHello's pieces may be in any order within a packet.
                    passed.is_behind |= offset < crypto_before;
                    crypto_end[from] = crypto_end[from].max(end);
                    let mut at = crypto[from].next();
                    crypto[from].frame(CRYPTO_WINDOW, offset, bytes, seen, |bytes, seen| {
                        tell(Event::Crypto { level, from, offset: at, bytes, seen });
                        at = at.saturating_add(bytes.len() as u64);
                    });
                }
                Frame::Ack(ack) => self.acknowledged(level, from, &ack, seen, tell),
                Frame::Close { code, is_of_application, .. } => {
                    self.facts.close.get_or_insert(Close { from, code, is_of_application, seen });
                }
                // None of the others has any business before there are keys for data.
                _ if level != Level::OneRtt => {}
                Frame::Stream { id, offset, bytes, fin } => {
                    let end = offset.saturating_add(bytes.len() as u64);
                    passed.carries(Range { stream: Some(id), offset, end });
                    passed.is_behind |= self.streams.frame(from, Piece { id, offset, bytes, fin }, seen, tell);
                }
                frame => self.control(from, frame, seen, tell),
            }
        }
        if let Some(held) = self.spaces.of(level).recovery.sent(from, passed) {
            tell(Event::Held(held));
        }
    }

    /// Frames that carry no bytes of streams.
    fn control(&mut self, from: Side, frame: Frame<'_>, seen: Moment, tell: &mut impl FnMut(Event<'_>)) {
        match frame {
            Frame::ResetStream { id, code, .. } => {
                self.streams.reset(from, id);
                tell(Event::Reset { from, id, code, seen });
            }
            Frame::Blocked { stream, .. } => {
                self.blocked[from].get_or_insert((stream, seen));
            }
            Frame::Allows { stream, .. } => {
                let side = from.peer();
                if let Some((_, start)) = self.blocked[side].take_if(|&mut (blocked, _)| blocked == stream) {
                    let (why, released) = (Why::FlowControl, Some(seen));
                    tell(Event::Held(Held { why, side, start, end: seen, released, is_tail: false, lost: u64::MAX }));
                }
            }
            Frame::NewConnectionId { cid, token, .. } => {
                self.resets.token(from, token);
                tell(Event::ConnectionId { of: from, cid });
            }
            Frame::StopSending { id, code } => tell(Event::Stop { from, id, code, seen }),
            Frame::PathChallenge | Frame::PathResponse => {
                tell(Event::Path(Path { from, is_response: frame == Frame::PathResponse, seen }));
            }
            Frame::Datagram(bytes) => tell(Event::Datagram { from, bytes, seen }),
            Frame::HandshakeDone if from == Side::Server => {
                self.facts.done.get_or_insert(seen);
            }
            _ => {}
        }
    }

    fn acknowledged(&mut self, level: Level, by: Side, ack: &Ack<'_>, seen: Moment, tell: &mut impl FnMut(Event<'_>)) {
        // RFC 9002 section 5.3: before the handshake is over, nobody delays.
        let has_delay = level == Level::OneRtt;
        let Space { recovery, losses, .. } = self.spaces.of(level);
        let lost = losses[by.peer()].acknowledged((level, by.peer()), ack, seen);
        let sample = recovery.acknowledged(by, ack, seen, has_delay, |late| tell(Event::Late(late)));
        if let Some(lost) = lost {
            self.lost(lost, tell);
        }
        if let Some(sample) = sample {
            self.rtt[by] = Some(self.rtt[by].map_or(sample, |least| least.min(sample)));
        }
    }

    /// Opens an Initial packet: with known keys, else with those that follow from a connection ID. That of the client's
    /// packet is its own choice at first, then the server's, after a Retry the one that the keys follow from
    /// (RFC 9001 section 5.2). The server's may be of another version (RFC 9368 section 2.3).
    fn open(&mut self, from: Side, packet: &Long<'_>, tell: &mut impl FnMut(Event<'_>)) -> Option<Opened> {
        let largest = self.spaces.initial.largest[from];
        let candidates = self.keys.iter().rev().filter(|set| set.version == packet.version);
        if let Some(opened) = candidates.into_iter().find_map(|set| set.keys.open(from, packet, largest)) {
            return Some(opened);
        }
        let dcid = match from {
            Side::Client => packet.dcid.to_vec(),
            Side::Server => self.keys.last()?.dcid.clone(),
        };
        let keys = Keys::of(packet.version, &dcid)?;
        let opened = keys.open(from, packet, largest).or_else(|| keys.open(from, packet, None))?;
        if from == Side::Client && self.begins_anew(packet) {
            self.end(tell);
            let before = std::mem::take(self);
            tell(Event::Over(Box::new(before.facts)));
        } else if from == Side::Client && self.facts.retry.is_some() && self.spaces.initial.crypto.server.next() == 0 {
            self.spaces.initial.crypto = BySide::default();
            tell(Event::Again);
        }
        if self.keys.len() >= MAX_KEYS {
            self.keys.remove(0);
        }
        self.keys.push(KeySet { version: packet.version, dcid, keys });
        Some(opened)
    }

    /// Does this packet of the client, which its own connection ID opens, begin another connection?
    fn begins_anew(&self, packet: &Long<'_>) -> bool {
        let Some(latest) = self.keys.last() else {
            return false;
        };
        if self.facts.version_negotiation.is_some() {
            return latest.version != packet.version;
        }
        // The token tells of a Retry that the capture does not hold.
        let retried = self.facts.retry.is_some() || !packet.token.is_empty();
        latest.dcid != packet.dcid && (self.spaces.initial.crypto.server.next() > 0 || !retried)
    }
}
