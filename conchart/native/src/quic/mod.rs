//! QUIC without keys: what its handshake shows to everyone (RFC 9000, RFC 9001, RFC 9369).
//!
//! In: the datagrams of one UDP conversation, of both sides, in the order of the capture. Out: the CRYPTO streams of the
//! Initial level as [`Event`]s, that is ClientHello and ServerHello in clear, and [`Milestones`]: version, Retry, when packets
//! of each type came first. Non-goals: what TLS says in those bytes (see `tls`), everything under Handshake and 1-RTT
//! protection, several connections at the same ports at the same time. Start at [`Quic`].
//!
//! Bounded: keys of [`MAX_KEYS`] connection IDs, and the windows of two CRYPTO streams. A packet is only believed to be
//! Initial when its tag is right; the other facts stand on headers that anyone could have written.

mod crypto_stream;
mod initial;
mod packet;
#[cfg(test)]
pub(crate) mod tests;

pub use packet::{Kind, Long, Packet, Packets, Version};

use crate::stream::{BySide, Moment, Side};
use crypto_stream::CryptoStream;
use initial::{Frame, Keys, Opened};

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
    let told = |sender| Some(Sniffed { version, sender });
    if first.kind == Kind::VersionNegotiation {
        let known = |version: Version| version.is_read() || version.is_google() || version.is_greased();
        return if first.versions().any(known) { told(Some(Side::Server)) } else { None };
    }
    if !first.is_fixed() {
        return None;
    }
    match first.kind {
        // Only what a client sends first is sealed with keys of the connection ID that it carries.
        Kind::Initial if Keys::of(version, first.dcid)?.open(Side::Client, &first, None).is_some() => {
            told(Some(Side::Client))
        }
        // The capture holds only the beginning of each packet.
        Kind::Initial if first.is_cut() && has_client_dcid && first.len >= MIN_CLIENT_INITIAL => told(None),
        Kind::Initial | Kind::Handshake if !first.is_cut() => told(None),
        Kind::ZeroRtt if !first.is_cut() => told(Some(Side::Client)),
        Kind::Retry => told(Some(Side::Server)),
        Kind::Unknown if version.is_google() => told(None),
        // Whoever asks for a version that does not exist wants to hear which ones do.
        Kind::Unknown if version.is_greased() && has_client_dcid && datagram.len() >= MIN_CLIENT_INITIAL => {
            told(Some(Side::Client))
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
    /// CONNECTION_CLOSE in an Initial packet.
    pub close: Option<Close>,
    /// Initial packets that were opened, and those that could not be.
    pub opened: u64,
    pub unopened: u64,
}

/// A CONNECTION_CLOSE (RFC 9000 section 19.19).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Close {
    pub from: Side,
    /// RFC 9000 section 20.1; 0x100 and above: the alert of TLS that is in the low byte.
    pub code: u64,
    pub seen: Moment,
}

/// What [`Quic::datagram`] tells as it goes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Event<'a> {
    /// The next bytes of a side's CRYPTO stream at the Initial level: in order, each once.
    Crypto { from: Side, bytes: &'a [u8], seen: Moment },
    /// Another connection begins: after Version Negotiation, or at the same ports. This is what was known of the last.
    Over(Box<Milestones>),
}

/// One UDP conversation that speaks QUIC.
#[derive(Default)]
pub struct Quic {
    keys: Vec<Known>,
    streams: BySide<CryptoStream>,
    /// Largest packet number of each side's Initial packets.
    largest: BySide<Option<u64>>,
    facts: Milestones,
}

/// Keys and what they follow from.
struct Known {
    version: Version,
    dcid: Vec<u8>,
    keys: Keys,
}

impl Quic {
    /// The next datagram; what it brings goes to `tell`.
    pub fn datagram(&mut self, from: Side, bytes: &[u8], seen: Moment, mut tell: impl FnMut(Event<'_>)) {
        if let Some(version) = packet::public_header(bytes) {
            return self.version(from, version);
        }
        for packet in Packets::of(bytes) {
            match packet {
                Packet::Short if self.facts.version.is_some_and(Version::is_google) => {}
                Packet::Short => {
                    self.facts.one_rtt[from].get_or_insert(seen);
                }
                Packet::Long(long) => self.long(from, &long, seen, &mut tell),
            }
        }
    }

    /// What is known so far.
    #[must_use]
    pub fn facts(&self) -> &Milestones {
        &self.facts
    }

    fn long(&mut self, from: Side, packet: &Long<'_>, seen: Moment, tell: &mut impl FnMut(Event<'_>)) {
        match packet.kind {
            Kind::Initial => return self.initial(from, packet, seen, tell),
            // Neither has a version in use to tell of; only a server sends them.
            Kind::VersionNegotiation => {
                self.facts.version_negotiation.get_or_insert(seen);
                return;
            }
            Kind::Retry if from == Side::Server => {
                self.facts.retry.get_or_insert(seen);
            }
            Kind::ZeroRtt if from == Side::Client => {
                self.facts.zero_rtt.get_or_insert(seen);
            }
            Kind::Handshake => {
                self.facts.handshake[from].get_or_insert(seen);
                if from == Side::Server && self.facts.handshake.client.is_none() {
                    self.facts.server_flight_end = Some(seen);
                }
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
        let Some(opened) = self.open(from, packet, tell) else {
            self.facts.unopened += 1;
            self.facts.initial[from].get_or_insert(seen);
            return self.version(from, packet.version);
        };
        self.facts.opened += 1;
        self.facts.initial[from].get_or_insert(seen);
        self.version(from, packet.version);
        self.largest[from] = self.largest[from].max(Some(opened.number));
        for frame in initial::frames(&opened.payload) {
            match frame {
                Frame::Crypto { offset, bytes } => {
                    let out = |bytes: &[u8], seen| tell(Event::Crypto { from, bytes, seen });
                    self.streams[from].frame(offset, bytes, seen, out);
                }
                Frame::Close(code) => {
                    self.facts.close.get_or_insert(Close { from, code, seen });
                }
                Frame::Other => {}
            }
        }
    }

    /// Opens an Initial packet: with known keys, else with those that follow from a connection ID. That of the client's
    /// packet is its own choice at first, then the server's, after a Retry the one that the keys follow from
    /// (RFC 9001 section 5.2). The server's may be of another version (RFC 9368 section 2.3).
    fn open(&mut self, from: Side, packet: &Long<'_>, tell: &mut impl FnMut(Event<'_>)) -> Option<Opened> {
        let largest = self.largest[from];
        let known = self.keys.iter().rev().filter(|known| known.version == packet.version);
        if let Some(opened) = known.into_iter().find_map(|known| known.keys.open(from, packet, largest)) {
            return Some(opened);
        }
        let dcid = match from {
            Side::Client => packet.dcid.to_vec(),
            Side::Server => self.keys.last()?.dcid.clone(),
        };
        let keys = Keys::of(packet.version, &dcid)?;
        let opened = keys.open(from, packet, largest).or_else(|| keys.open(from, packet, None))?;
        if from == Side::Client && self.begins_anew(packet) {
            self.keys.clear();
            self.streams = BySide::default();
            self.largest = BySide::default();
            tell(Event::Over(Box::new(std::mem::take(&mut self.facts))));
        }
        if self.keys.len() >= MAX_KEYS {
            self.keys.remove(0);
        }
        self.keys.push(Known { version: packet.version, dcid, keys });
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
        latest.dcid != packet.dcid && (self.streams.server.has_begun() || !retried)
    }
}
