//! QUIC: its handshake, and what is said on its streams where keys open them (RFC 9000, RFC 9001).
//!
//! In: datagrams of both sides. Out: handshakes and exchanges in the [`Ledger`]. Without keys, exchanges are inferred
//! ([`EncryptedHttp3`]). Packets, frames and streams are the business of [`crate::quic`], messages that of
//! [`crate::tls`], requests that of [`Http3`] and [`DnsOverQuic`], and of [`Calls`] where another protocol was agreed on.

mod calls;
mod encrypted;
pub(super) mod inside;

use self::calls::Calls;
use self::encrypted::{Encrypted, EncryptedHttp3};
use self::inside::{Inside, Part};
use super::dns::over_quic::DnsOverQuic;
use super::http3::Http3;
use super::ledger::{Delay, Ledger};
use super::reader::{Opening, Verdict};
use super::reader::{Reader, Switch};
use crate::keys::Keys;
use crate::quic::{Event, Kind, Level, Milestones, Packet, Quic, sniff};
use crate::stream::{Chunk, Gap, Moment, Side};
use crate::tls::{CryptoHandshake, Handshake, KeyCoverage, Outcome};

/// Does a client begin QUIC with this datagram?
pub(super) fn client(datagram: &[u8]) -> Verdict {
    sent_by(datagram, Some(Side::Client))
}

/// Does a server answer with this datagram?
pub(super) fn server(datagram: &[u8]) -> Verdict {
    sent_by(datagram, Some(Side::Server))
}

/// A datagram of QUIC that does not say who sent it.
pub(super) fn either(datagram: &[u8]) -> Verdict {
    sent_by(datagram, None)
}

fn sent_by(datagram: &[u8], sender: Option<Side>) -> Verdict {
    if sniff(datagram).is_some_and(|sniffed| sniffed.sender == sender) { Verdict::Yes } else { Verdict::No }
}

/// So many packets of the server after the handshake tell that its confirmation was not captured.
const UNCONFIRMED: u64 = 16;
/// Type of the message that brings a ticket (RFC 8446 section 4).
const NEW_SESSION_TICKET: u8 = 4;

pub(super) struct OverQuic {
    quic: Quic,
    /// Where secrets may be known.
    keys: Option<Keys>,
    /// Until the client has sent 1-RTT packets, or another connection begins at the same ports.
    handshake: Option<CryptoHandshake>,
    /// The first datagram of the handshake.
    begun: Option<Moment>,
    /// What cannot be opened.
    sealed: EncryptedHttp3,
    /// What is said on streams, once there are any.
    inside: Option<Box<dyn Inside>>,
    app: Option<&'static str>,
    /// What the handshake that was handed out agreed on.
    spoken: Spoken,
}

/// What is said on streams.
#[derive(Clone, Copy, Debug, Default)]
enum Spoken {
    Http3,
    Dns,
    #[default]
    Other,
}

impl Spoken {
    /// By its name in the handshake (RFC 9114 section 3.1, RFC 9250 section 7.1). Drafts are `h3-29` and the like.
    fn of(alpn: Option<&str>) -> Self {
        match alpn.map(|name| name.split_once('-').map_or(name, |(name, _)| name)) {
            Some("h3") => Self::Http3,
            Some("doq") => Self::Dns,
            _ => Self::Other,
        }
    }

    fn reader(self) -> Box<dyn Inside> {
        match self {
            Self::Http3 => Box::new(Http3::new()),
            Self::Dns => Box::new(DnsOverQuic::default()),
            Self::Other => Box::new(Calls::new("quic")),
        }
    }
}

impl OverQuic {
    pub fn new(opening: &Opening<'_>) -> Self {
        Self {
            quic: Quic::default(),
            keys: opening.keys.filter(|keys| keys.are_any()).cloned(),
            handshake: None,
            begun: None,
            sealed: EncryptedHttp3::new(),
            inside: None,
            app: None,
            spoken: Spoken::default(),
        }
    }

    /// The client has what it needs to send, or nothing more will come: the handshake is handed out.
    fn end(&mut self, ledger: &mut Ledger, facts: &Milestones) {
        self.begun = None;
        let Some(mut handshake) = self.handshake.take() else { return };
        self.spoken = Spoken::of(handshake.alpn());
        if let Some(close) = facts.close.filter(|close| !close.is_of_application) {
            handshake.close(close.from, close.code, close.seen);
        }
        if let Some(handshake) = handshake.finish() {
            ledger.handshake(with_packets(handshake, facts));
        }
    }

    /// Is all known of the handshake that can be? With keys, what the server sends right after it tells of tickets.
    fn is_settled(&self, facts: &Milestones) -> bool {
        !self.quic.reads(Side::Server) || facts.done.is_some() || facts.read.server >= UNCONFIRMED
    }

    /// Takes in one packet, and the secrets that it may tell of: the next one in the same datagram may need them.
    fn packet(&mut self, ledger: &mut Ledger, from: Side, packet: Packet<'_>, seen: Moment) {
        let Self { quic, keys, handshake, begun, inside, app, spoken, .. } = self;
        let mut over = None;
        quic.packet(from, packet, seen, |event| match event {
            Event::Packet(packet) => {
                if ledger.transcript.is_some() {
                    ledger.passing.get_or_insert_default().packet(from, &packet, seen);
                }
            }
            Event::Crypto { level: Level::Initial, from, bytes, seen: sent, .. } => {
                begun.get_or_insert(seen);
                handshake.get_or_insert_default().data(from, bytes, sent);
            }
            Event::Crypto { level: Level::Handshake, from, offset, bytes, seen } => {
                if let Some(handshake) = handshake {
                    handshake.opened(from, offset, bytes, seen);
                }
            }
            Event::Crypto { bytes, .. } => {
                if let Some(handshake) = handshake.as_mut().filter(|_| bytes.first() == Some(&NEW_SESSION_TICKET)) {
                    handshake.ticket(bytes);
                }
            }
            Event::ConnectionId { of: Side::Server, cid } => ledger.connection_id(cid),
            Event::ConnectionId { .. } => {}
            Event::Held(held) => ledger.delay(Delay::Held(held)),
            Event::Late(late) => ledger.delay(Delay::Late(late)),
            Event::Lost(lost) => ledger.delay(Delay::Lost(lost)),
            Event::Path(path) => ledger.delay(Delay::Path(path)),
            Event::Again => {
                if let Some(handshake) = handshake {
                    handshake.again();
                }
            }
            Event::Over(facts) => {
                // What was known is of the connection before; the bytes that follow are of the next.
                if let Some(mut inside) = inside.take() {
                    inside.finish(ledger);
                }
                over = handshake.take().map(|before| (before, facts));
            }
            Event::Stream { from, id, offset, bytes, fin, seen } => {
                let inside = inside.get_or_insert_with(|| {
                    handshake.as_ref().map_or(*spoken, |handshake| Spoken::of(handshake.alpn())).reader()
                });
                *app = inside.app();
                inside.part(ledger, from, Part { id, offset, bytes, fin, seen });
            }
            Event::Missing { from, id, gap } => {
                if let Some(inside) = inside {
                    inside.missing(ledger, from, id, gap);
                }
            }
            Event::Reset { from, id, code, seen } => {
                if let Some(inside) = inside {
                    inside.reset(ledger, from, id, code, seen);
                }
            }
            Event::Datagram { from, bytes, seen } => {
                ledger.datagrams.get_or_insert_default()[from] += 1;
                if let Some(inside) = inside {
                    inside.datagram(ledger, from, bytes, seen);
                }
            }
            Event::Stop { from, id, code, seen } => {
                if let Some(inside) = inside {
                    inside.stop(ledger, from, id, code, seen);
                }
            }
        });
        if let (Some(keys), Some(handshake)) = (keys, handshake) {
            if let Some(secret) = handshake.early_secret(keys) {
                quic.expect_early(secret);
            }
            if let Some((suite, secrets)) = handshake.secrets(keys) {
                quic.expect(suite, &secrets);
            }
            if let Some(token) = handshake.reset_token() {
                quic.reset_token(token);
            }
            if handshake.refuses_early() {
                quic.refuse_early();
            }
        }
        if let Some((before, facts)) = over {
            self.sealed.finish(ledger);
            let next = self.handshake.replace(before);
            self.end(ledger, &facts);
            (self.handshake, self.begun) = (next, Some(seen));
        }
    }
}

/// Adds what the types of packets tell.
fn with_packets(mut handshake: Box<Handshake>, facts: &Milestones) -> Box<Handshake> {
    handshake.quic_version = facts.version.map(|version| version.name().into());
    handshake.retry = facts.retry;
    handshake.version_negotiation = facts.version_negotiation;
    if facts.version_negotiation.is_some() {
        // The hello that no version could carry.
        handshake.hello = Moment::earliest([facts.tried, handshake.hello]);
    }
    handshake.server_flight_bytes = None;
    handshake.server_done = handshake.server_done.or(facts.server_flight_end);
    if handshake.outcome == Outcome::Complete && handshake.inferred {
        // Its first packet at the Handshake level may only acknowledge: the Finished comes with it or after it.
        handshake.client_finished = facts.handshake.client.or(handshake.client_finished);
    }
    let is_unread = |side| facts.read[side] == 0 && facts.sealed[side] > 0;
    if handshake.keys == Some(KeyCoverage::All) && is_unread(Side::Client) && is_unread(Side::Server) {
        handshake.keys = Some(KeyCoverage::Wrong);
    }
    handshake
}

impl Reader for OverQuic {
    fn data<'a>(&mut self, ledger: &mut Ledger, from: Side, chunk: Chunk<'a>) -> Option<Switch<'a>> {
        let sealed_before = self.quic.facts().sealed[from];
        let (mut sealed, mut is_shared) = (None, false);
        for packet in self.quic.packets(from, chunk.bytes) {
            let bytes = match packet {
                Packet::Short(bytes) => Some((bytes.len() as u64).saturating_add(chunk.cut.into())),
                Packet::Long(long) if long.kind == Kind::ZeroRtt => Some((long.len - long.header_len) as u64),
                Packet::Long(_) => None,
            };
            let is_early = matches!(packet, Packet::Long(_));
            self.packet(ledger, from, packet, chunk.seen);
            sealed = bytes.map(|bytes| (bytes, is_early)).or(sealed);
            is_shared |= is_early;
        }
        (ledger.rtt, ledger.reset) = (self.quic.rtt(), self.quic.reset());
        ledger.closed = self.quic.facts().close.map(|close| close.seen);
        let facts = *self.quic.facts();
        if facts.read.client + facts.read.server > 0 {
            ledger.datagrams.get_or_insert_default();
        }
        if let (Some(ready), Some(handshake)) = (facts.one_rtt.client, &mut self.handshake) {
            handshake.ready(ready);
            if self.is_settled(&facts) {
                self.end(ledger, &facts);
            }
        }
        if facts.version_negotiation.is_some() && self.handshake.is_some() {
            self.sealed.was_the_handshake();
        }
        if is_shared {
            self.sealed.handshake(from, chunk.len());
        }
        let reads_any = facts.read.client + facts.read.server > 0;
        let is_sealed = facts.sealed[from] > sealed_before;
        let answers = facts.initial.server.is_some() || facts.handshake.server.is_some();
        let handshake = self.handshake.as_ref();
        let spoken = handshake.map_or(self.spoken, |handshake| Spoken::of(handshake.alpn()));
        let speaks_http3 = answers && matches!(spoken, Spoken::Http3);
        let unopened = sealed.filter(|&(_, is_early)| is_early || is_sealed && speaks_http3 && ledger.reset.is_none());
        if reads_any {
        } else if let Some((bytes, is_early)) = unopened {
            let cid_len = (self.quic.cid_len(from.peer()), self.quic.cid_len(from));
            let packet = Encrypted { from, seen: chunk.seen, bytes, cid_len, is_shared, is_early, way: ledger.way };
            self.sealed.packet(ledger, packet);
        } else if handshake.is_none() && (is_sealed || !self.quic.reads(from)) && !self.sealed.is_read() {
            self.sealed.unseen(chunk.seen);
        }
        None
    }

    /// Datagrams that were not captured are not known to be missing.
    fn gap(&mut self, _ledger: &mut Ledger, _from: Side, _gap: Gap) {}

    /// Nor does UDP say that one side sends no more.
    fn fin(&mut self, _ledger: &mut Ledger, _from: Side, _seen: Moment) {}

    fn finish(&mut self, ledger: &mut Ledger) {
        let mut inside = self.inside.take();
        self.quic.finish(|event| match (event, &mut inside) {
            (Event::Stream { from, id, offset, bytes, fin, seen }, Some(inside)) => {
                inside.part(ledger, from, Part { id, offset, bytes, fin, seen });
            }
            (Event::Missing { from, id, gap }, Some(inside)) => inside.missing(ledger, from, id, gap),
            (Event::Lost(lost), _) => ledger.delay(Delay::Lost(lost)),
            _ => {}
        });
        if let Some(mut inside) = inside {
            inside.finish(ledger);
        }
        let facts = *self.quic.facts();
        self.end(ledger, &facts);
        self.sealed.finish(ledger);
        ledger.release_all();
    }

    fn pending(&self) -> Option<Moment> {
        let inside = self.inside.as_ref().and_then(|inside| inside.pending());
        Moment::earliest([self.begun, self.sealed.pending(), inside])
    }

    fn app(&self) -> Option<&'static str> {
        self.app
    }
}
