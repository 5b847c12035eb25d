//! Whose the time is that users waited, and what findings were paid for: stretches of waits in, sums out.
//!
//! In: what users waited on each connection, cut into phases, and what stalls explain of it; what is known of connections
//! (ways, what TLS computed, what proxies took); delays that rules found. Out: of each server and phase, the time of each
//! owner, and how much of it findings explain; of each finding, its cost. `analysis/waits.py` selects what comes in and has
//! the definition of a wait. One walk over each connection, in the order of time. No IO, no clock.

mod prices;
pub(crate) mod rows;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};

#[cfg(test)]
use prices::{Delay, Wait};
pub use prices::{Delayed, Price};

use crate::phases::Kind;

/// Who has the time. The order is that of shares: of what no stall explains, rounded sums make the shares add up.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Owner {
    Client,
    Server,
    Proxy,
    Path,
    Unknown,
}

impl Owner {
    const ALL: [Self; 5] = [Self::Client, Self::Server, Self::Proxy, Self::Path, Self::Unknown];

    /// The name in the tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
            Self::Proxy => "proxy",
            Self::Path => "path",
            Self::Unknown => "unknown",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|owner| owner.name() == name)
    }
}

/// What is known of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Connection {
    /// The number of its server.
    pub server: usize,
    /// Somebody may have waited for it.
    pub is_served: bool,
    /// The server took part.
    pub is_answered: bool,
    /// From the point of view to the server and back, which is part of every wait.
    pub way_ns: Option<i64>,
    /// The way was taken from acknowledgements that came with responses: nobody knows how much of a wait it was.
    pub is_most: bool,
    /// What the ends computed for TLS.
    pub client_ns: Option<i64>,
    pub server_ns: Option<i64>,
    /// Its last packet, where nobody had ended it by then.
    pub goes_on_until: Option<i64>,
}

/// A piece of a connection's time in which a user waits, or what a stall explains of one.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    pub stream: i32,
    pub exchange: Option<i32>,
    pub kind: Kind,
    /// Of what a stall explains: whose it is. What idles is a wait only where a stall says so.
    pub owner: Option<Owner>,
    pub start_at: i64,
    pub end_at: i64,
}

impl Stretch {
    fn lasts_ns(&self) -> i64 {
        self.end_at.saturating_sub(self.start_at)
    }

    /// Whether it is a piece of the wait itself: those of a connection do not overlap.
    fn is_wait(&self) -> bool {
        self.owner.is_none() || self.kind == Kind::Idle
    }

    fn key(&self) -> Key {
        (self.kind, self.exchange.filter(|_| self.kind == Kind::Wait))
    }
}

/// What is divided among owners: a phase of a connection; of waits, those of one exchange.
type Key = (Kind, Option<i32>);

/// What no stall explains of a phase.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    /// All of it.
    ns: i64,
    /// With what stalls explain.
    whole_ns: i64,
    of_client: i64,
    of_server: i64,
    of_proxy: i64,
    /// The rest is known to be the path's.
    is_measured: bool,
}

impl Part {
    /// What each owner has.
    fn shares(&self) -> [(Owner, i64); 4] {
        let rest = self.ns - self.of_client - self.of_server - self.of_proxy;
        [
            (Owner::Client, self.of_client),
            (Owner::Server, self.of_server),
            (Owner::Proxy, self.of_proxy),
            (self.rest(), rest),
        ]
    }

    fn rest(&self) -> Owner {
        if self.is_measured { Owner::Path } else { Owner::Unknown }
    }

    /// What each owner has of a part of it.
    fn shares_of(&self, ns: i64) -> [(Owner, i64); 4] {
        let (whole, mut until, mut before) = (i128::from(self.ns.max(1)), 0_i128, 0_i64);
        self.shares().map(|(owner, share)| {
            until += i128::from(share);
            let share = if owner == self.rest() { whole } else { until };
            let end = i64::try_from(i128::from(ns) * share / whole).unwrap_or(i64::MAX);
            (owner, end - std::mem::replace(&mut before, end))
        })
    }
}

/// Time of each server, phase and owner.
pub type Owned = BTreeMap<(usize, Kind, Owner), i64>;

/// What users waited, connection by connection.
#[derive(Debug, Default)]
pub struct Attribution {
    connections: HashMap<i32, Connection>,
    /// By connection, in the order of time.
    stretches: Vec<Stretch>,
    /// What proxies took before and after they asked their backends, of how long a wait.
    handed: HashMap<(i32, i32), (i64, i64)>,
    /// What users waited for findings, after [`Attribution::price`].
    paid: Vec<prices::Paid>,
}

impl Attribution {
    /// Takes what is known; of stretches, in any order.
    #[must_use]
    pub fn new(
        connections: HashMap<i32, Connection>,
        mut stretches: Vec<Stretch>,
        handed: HashMap<(i32, i32), (i64, i64)>,
    ) -> Self {
        stretches.sort_by_key(|stretch| (stretch.stream, stretch.start_at));
        Self { connections, stretches, handed, paid: Vec::new() }
    }

    /// Gives the time of each server, phase and owner: it adds up to what users waited.
    #[must_use]
    pub fn owners(&self) -> Owned {
        let mut owned = Owned::new();
        for stretches in self.stretches.chunk_by(|one, other| one.stream == other.stream) {
            let Some(connection) = self.served(stretches) else { continue };
            for ((kind, _), part) in self.parts(connection, stretches) {
                for (owner, ns) in part.shares() {
                    *owned.entry((connection.server, kind, owner)).or_default() += ns;
                }
            }
            for stretch in stretches {
                if let Some(owner) = stretch.owner {
                    *owned.entry((connection.server, stretch.kind, owner)).or_default() += stretch.lasts_ns();
                }
            }
        }
        owned.retain(|_, ns| *ns > 0);
        owned
    }

    /// Gives how much of that these findings explain, each instant counted once.
    ///
    /// Phases of a connection do not overlap, nor do its stalls; what was waited for findings may: a walk in the order of
    /// time tells what some finding was paid for, in which phase and stall. What no stall explains of it belongs to its
    /// owners in the shares that they have of the whole.
    #[must_use]
    pub fn explained(&self, ids: &HashSet<i32>) -> Owned {
        let mut paid: HashMap<i32, Vec<(i64, i64)>> = HashMap::new();
        for piece in self.paid.iter().filter(|piece| ids.contains(&piece.id)) {
            paid.entry(piece.user_stream).or_default().push((piece.start_at, piece.end_at));
        }
        let mut owned = Owned::new();
        for stretches in self.stretches.chunk_by(|one, other| one.stream == other.stream) {
            let Some(connection) = self.served(stretches) else { continue };
            let Some(pieces) = stretches.first().and_then(|first| paid.get(&first.stream)) else { continue };
            let parts = self.parts(connection, stretches);
            for ((key, owner), ns) in paid_for(stretches, pieces) {
                let mut own = |owner, ns| *owned.entry((connection.server, key.0, owner)).or_default() += ns;
                match (owner, parts.get(&key)) {
                    (Some(owner), _) => own(owner, ns),
                    (None, Some(part)) => part.shares_of(ns).into_iter().for_each(|(owner, ns)| own(owner, ns)),
                    (None, None) => {}
                }
            }
        }
        owned.retain(|_, ns| *ns > 0);
        owned
    }

    fn served(&self, stretches: &[Stretch]) -> Option<&Connection> {
        self.connections.get(&stretches.first()?.stream).filter(|connection| connection.is_served)
    }

    /// What no stall explains. Of a TLS handshake, what each end computes is its own; of a wait, what is not the way is the
    /// server's, but for what a proxy took before and after it asked its backend. Where requests wait side by side, a proxy
    /// has the same share of what was waited for each.
    fn parts(&self, connection: &Connection, stretches: &[Stretch]) -> BTreeMap<Key, Part> {
        let mut parts: BTreeMap<Key, Part> = BTreeMap::new();
        for stretch in stretches.iter().filter(|stretch| stretch.kind != Kind::Idle) {
            let part = parts.entry(stretch.key()).or_default();
            if stretch.owner.is_none() {
                part.ns += stretch.lasts_ns();
                part.whole_ns += stretch.lasts_ns();
            } else {
                part.ns -= stretch.lasts_ns();
            }
        }
        let stream = stretches.first().map(|first| first.stream);
        for ((kind, exchange), part) in &mut parts {
            part.is_measured = true;
            match (kind, connection.way_ns) {
                (Kind::Tls, _) => {
                    part.of_client = part.ns.min(connection.client_ns.unwrap_or(0));
                    part.of_server = (part.ns - part.of_client).min(connection.server_ns.unwrap_or(0));
                    part.is_measured = connection.client_ns.is_some() && connection.server_ns.is_some();
                }
                (Kind::Wait, Some(way_ns)) => {
                    let beyond_ns = part.ns.saturating_sub(way_ns).max(0);
                    let handed = stream.zip(*exchange).and_then(|of| self.handed.get(&of));
                    part.of_proxy = handed.map_or(0, |&(proxy_ns, wait_ns)| {
                        let share = i128::from(proxy_ns) * i128::from(part.whole_ns) / i128::from(wait_ns.max(1));
                        beyond_ns.min(i64::try_from(share).unwrap_or(i64::MAX))
                    });
                    part.of_server = beyond_ns - part.of_proxy;
                    part.is_measured = !connection.is_most;
                }
                (Kind::Wait, None) => part.is_measured = false,
                _ => {}
            }
        }
        parts
    }
}

/// What was paid on a connection in each phase, by whom a stall gives it to.
fn paid_for(stretches: &[Stretch], paid: &[(i64, i64)]) -> BTreeMap<(Key, Option<Owner>), i64> {
    /// At one instant, what is paid changes first, then what ends, then what begins.
    #[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
    enum Event {
        Paid(i32),
        WaitEnds,
        StallEnds,
        WaitBegins(Key),
        StallBegins(Owner),
    }
    let mut events = Vec::with_capacity(2 * (stretches.len() + paid.len()));
    for &(start_at, end_at) in paid {
        events.extend([(start_at, Event::Paid(1)), (end_at, Event::Paid(-1))]);
    }
    for stretch in stretches {
        if stretch.is_wait() {
            events.extend([(stretch.start_at, Event::WaitBegins(stretch.key())), (stretch.end_at, Event::WaitEnds)]);
        }
        if let Some(owner) = stretch.owner {
            events.extend([(stretch.start_at, Event::StallBegins(owner)), (stretch.end_at, Event::StallEnds)]);
        }
    }
    events.sort_unstable();
    let (mut lying_over, mut owner, mut paying, mut at) = (None, None, 0, i64::MIN);
    let mut found = BTreeMap::new();
    for (instant, event) in events {
        if let Some(key) = lying_over.filter(|_| paying > 0 && instant > at) {
            *found.entry((key, owner)).or_default() += instant - at;
        }
        at = instant;
        match event {
            Event::Paid(step) => paying += step,
            Event::WaitEnds => lying_over = None,
            Event::StallEnds => owner = None,
            Event::WaitBegins(key) => lying_over = Some(key),
            Event::StallBegins(of) => owner = Some(of),
        }
    }
    found
}
