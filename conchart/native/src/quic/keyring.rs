//! The keys of one connection: of each level and side, as far as they are known.
//!
//! RFC 9001 sections 5.1 (levels), 6 (key updates). In: secrets, when the hellos have told whose they are; packets.
//! Out: what [`Protection`](super::protection) opens. A tag that verifies is proof, so the keys of an update are found
//! by trying them: at most three tries for each packet. Non-goals: Initial packets, whose keys everybody knows.

use super::packet::{Kind, Long, Version};
use super::protection::{HeaderKey, Opened, PacketKey, Protection, labels};
use crate::keys::{Label, Secret, Secrets};
use crate::stream::{BySide, Side};
use crate::tls::{Hash, Suite, expand_label};

/// Suites that may protect early data: that of the session that is resumed, which no packet names.
const SUITES: [u16; 3] = [0x1301, 0x1303, 0x1302];
const TLS13: u16 = 0x0304;

#[derive(Default)]
pub(super) struct Keyring {
    /// Those that may be the ones of the client's early data.
    early: Vec<Protection>,
    handshake: BySide<Option<Protection>>,
    one_rtt: BySide<Option<Box<OneRtt>>>,
}

impl Keyring {
    /// Early data of a client that tries this version.
    pub fn expect_early(&mut self, version: Version, secret: Secret) {
        let suites = SUITES.into_iter().filter_map(|code| Suite::of(code, TLS13));
        let fitting = suites.filter(|suite| suite.hash.len() == secret.bytes().len());
        self.early = fitting.filter_map(|suite| Protection::of_secret(suite, version, secret.bytes())).collect();
    }

    /// The server has chosen version and suite.
    pub fn expect(&mut self, version: Version, suite: Suite, secrets: &Secrets) {
        let of = |label| secrets.get(label);
        let handshake = |label| Protection::of_secret(suite, version, of(label)?.bytes());
        let data = |label| OneRtt::new(suite, version, of(label)?.bytes().to_vec()).map(Box::new);
        self.handshake =
            BySide { client: handshake(Label::ClientHandshake), server: handshake(Label::ServerHandshake) };
        self.one_rtt = BySide { client: data(Label::ClientTraffic), server: data(Label::ServerTraffic) };
    }

    /// Are there keys for the 1-RTT packets of that side?
    pub fn reads(&self, from: Side) -> bool {
        self.one_rtt[from].is_some()
    }

    /// Opens a packet of 0-RTT or Handshake.
    pub fn open_long(&mut self, from: Side, packet: &Long<'_>, largest: Option<u64>) -> Option<Opened> {
        let open = |keys: &Protection| keys.open(packet.bytes, packet.header_len, largest);
        match packet.kind {
            Kind::Handshake => open(self.handshake[from].as_ref()?),
            Kind::ZeroRtt => {
                let (index, opened) =
                    self.early.iter().enumerate().find_map(|(index, keys)| Some((index, open(keys)?)))?;
                if index > 0 {
                    self.early.swap(0, index);
                }
                Some(opened)
            }
            _ => None,
        }
    }

    /// Opens a 1-RTT packet with a connection ID of `cid_len` bytes.
    pub fn open_short(&mut self, from: Side, packet: &[u8], cid_len: usize, largest: Option<u64>) -> Option<Opened> {
        self.one_rtt[from].as_mut()?.open(packet, 1 + cid_len, largest)
    }
}

/// The 1-RTT keys of one side, before and after updates.
struct OneRtt {
    suite: Suite,
    labels: &'static str,
    header: HeaderKey,
    previous: Option<PacketKey>,
    current: PacketKey,
    next: PacketKey,
    /// What `next` follows from.
    next_secret: Vec<u8>,
    /// Key Phase bit of `current`.
    phase: bool,
}

impl OneRtt {
    fn new(suite: Suite, version: Version, secret: Vec<u8>) -> Option<Self> {
        let labels = labels(version);
        let next_secret = updated(suite.hash, labels, &secret)?;
        Some(Self {
            header: HeaderKey::of_secret(suite, labels, &secret)?,
            previous: None,
            current: PacketKey::of_secret(suite, labels, &secret)?,
            next: PacketKey::of_secret(suite, labels, &next_secret)?,
            next_secret,
            phase: false,
            suite,
            labels,
        })
    }

    fn open(&mut self, packet: &[u8], header_len: usize, largest: Option<u64>) -> Option<Opened> {
        let header = self.header.unmask(packet, header_len)?;
        if header.key_phase() == self.phase {
            return self.current.open(&header, packet, largest);
        }
        // A late packet of before the update, or the first one after another.
        if let Some(opened) = self.previous.as_ref().and_then(|keys| keys.open(&header, packet, largest)) {
            return Some(opened);
        }
        let opened = self.next.open(&header, packet, largest)?;
        self.update();
        Some(opened)
    }

    fn update(&mut self) {
        let secret = updated(self.suite.hash, self.labels, &self.next_secret);
        let after = secret.and_then(|secret| Some((PacketKey::of_secret(self.suite, self.labels, &secret)?, secret)));
        let Some((after, secret)) = after else { return };
        let current = std::mem::replace(&mut self.next, after);
        self.previous = Some(std::mem::replace(&mut self.current, current));
        self.next_secret = secret;
        self.phase = !self.phase;
    }
}

/// The secret after an update (RFC 9001 section 6.1).
fn updated(hash: Hash, labels: &str, secret: &[u8]) -> Option<Vec<u8>> {
    expand_label(hash, secret, &format!("{labels} ku"), hash.len())
}
