//! Who is the server of a connection that was joined midway.
//!
//! In: its first segments, and what is known of other connections. Out: its client, once something says so; until then, and as far
//! as there is room, the segments are held back. Servers listen on the lower port, mostly: only where both ports are such as
//! clients get, or neither is, something better is waited for. Bounded: [`MOST_HELD`] segments of a connection,
//! [`MOST_HELD_BYTES`] of all, [`MOST_REMEMBERED`] endpoints and
//! connections.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;

use crate::exchange::{Carrier, likely_sender};
use crate::packet::{Endpoint, Flags, Segment};
use crate::stream::{Arrival, BySide, Moment, Side};

/// Segments of a connection that are held back.
const MOST_HELD: usize = 16;
/// Bytes of all connections that are.
const MOST_HELD_BYTES: usize = 16 << 20;
/// Endpoints that are known, and connections that are not decided.
const MOST_REMEMBERED: usize = 1 << 16;
/// Programs without privileges get no port below.
const LEAST_UNPRIVILEGED: u16 = 1_024;
/// Linux gives its clients no port below; others begin at 49152.
const LEAST_EPHEMERAL: u16 = 32_768;

/// A segment that is held back, and what it borrowed.
struct Held {
    segment: Segment<'static>,
    payload: Box<[u8]>,
    captured: Box<[u8]>,
    seen: Arrival,
}

/// The first segments of a connection whose server nobody knows yet.
pub(super) struct Joined {
    /// As if its server listened on the lower port.
    pub opened: Moment,
    held: Vec<Held>,
}

impl Joined {
    pub fn new(opened: Moment) -> Self {
        Self { opened, held: Vec::new() }
    }

    /// Hands on what was held back.
    pub fn each<E>(&self, mut each: impl FnMut(&Segment<'_>, Arrival) -> Result<(), E>) -> Result<(), E> {
        self.held.iter().try_for_each(|held| {
            let Held { segment, payload, captured, seen } = held;
            each(&Segment { payload, captured, ..*segment }, *seen)
        })
    }

    fn bytes(&self) -> usize {
        self.held.iter().map(|held| held.payload.len() + held.captured.len()).sum()
    }
}

/// What is known of the servers at ports that tell nothing.
#[derive(Default)]
pub(super) struct Sides {
    servers: HashSet<Endpoint, RandomState>,
    /// Of endpoints that nothing is known of: one with which they talk.
    peers: HashMap<Endpoint, Endpoint, RandomState>,
    held_bytes: usize,
    /// Connections that may have segments held back, by index and stream.
    pub undecided: Vec<(usize, i32)>,
}

impl Sides {
    /// May the connection between these begin with segments that are held back?
    pub fn is_unclear(one: Endpoint, other: Endpoint) -> bool {
        let (lower, higher) = (one.port.min(other.port), one.port.max(other.port));
        lower >= LEAST_EPHEMERAL || lower >= LEAST_UNPRIVILEGED && higher < LEAST_EPHEMERAL
    }

    /// Is there room for another connection that is not decided?
    pub fn has_room(&self) -> bool {
        self.undecided.len() < MOST_REMEMBERED
    }

    /// Somebody listens there, and is asked from the other endpoint.
    pub fn listens(&mut self, server: Endpoint, client: Endpoint) {
        if self.servers.len() < MOST_REMEMBERED && Self::is_unclear(server, client) {
            self.servers.insert(server);
        }
    }

    /// These two talk: who talks with several is a server.
    pub fn talk(&mut self, one: Endpoint, other: Endpoint) {
        for (end, peer) in [(one, other), (other, one)] {
            if self.peers.len() >= MOST_REMEMBERED && !self.peers.contains_key(&end) {
                continue;
            }
            if *self.peers.entry(end).or_insert(peer) != peer {
                self.servers.insert(end);
            }
        }
    }

    /// Who sent this segment, as far as its content or another connection tells.
    pub fn sender(&self, segment: &Segment<'_>) -> Option<Side> {
        let client = || self.client(BySide { client: segment.source, server: segment.destination });
        let by_endpoint = || client().map(|client| if client == segment.source { Side::Client } else { Side::Server });
        likely_sender(Carrier::Stream, segment.payload).or_else(by_endpoint)
    }

    /// Who of the two is the client, as far as other connections tell.
    pub fn client(&self, ends: BySide<Endpoint>) -> Option<Endpoint> {
        match (self.servers.contains(&ends.client), self.servers.contains(&ends.server)) {
            (true, false) => Some(ends.server),
            (false, true) => Some(ends.client),
            _ => None,
        }
    }

    /// Holds a segment back, if there is room and it is one of many.
    pub fn hold(&mut self, joined: &mut Joined, segment: &Segment<'_>, seen: Arrival, is_explained: bool) -> bool {
        let is_usual = segment.flags.0 & (Flags::SYN | Flags::FIN | Flags::RST) == 0;
        if !is_usual || joined.held.len() >= MOST_HELD || self.held_bytes >= MOST_HELD_BYTES {
            return false;
        }
        let captured = if is_explained { segment.captured.into() } else { Box::default() };
        let held = Held { segment: segment.without_bytes(), payload: segment.payload.into(), captured, seen };
        self.held_bytes += held.payload.len() + held.captured.len();
        joined.held.push(held);
        true
    }

    /// What was held back has been handed on.
    pub fn let_go(&mut self, joined: &Joined) {
        self.held_bytes = self.held_bytes.saturating_sub(joined.bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    fn end(host: u8, port: u16) -> Endpoint {
        Endpoint { ip: IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)), port }
    }

    #[test]
    fn a_port_tells_where_it_is_a_systems_or_only_one_is_a_clients() {
        assert!(!Sides::is_unclear(end(1, 443), end(2, 2_000)));
        assert!(!Sides::is_unclear(end(1, 8_080), end(2, 40_000)));
        assert!(Sides::is_unclear(end(1, 50_051), end(2, 40_000)));
        assert!(Sides::is_unclear(end(1, 8_080), end(2, 2_000)));
    }

    #[test]
    fn who_talks_with_several_is_the_server() {
        let mut sides = Sides::default();
        let ends = |port| BySide { client: end(2, port), server: end(1, 50_051) };
        sides.talk(end(2, 40_000), end(1, 50_051));
        assert_eq!(sides.client(ends(40_000)), None);
        sides.talk(end(2, 40_001), end(1, 50_051));
        assert_eq!(sides.client(ends(40_000)), Some(end(2, 40_000)));
    }
}
