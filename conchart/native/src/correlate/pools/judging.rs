//! Connections as rules judge them: what was said on each, when it could be used, who ended it.
//!
//! In: connections, their phases, first handshakes and exchanges, row by row. Out: [`Judged`] connections, with what there
//! was in their pools beside them. `analysis/findings/evidence.py` selects the rows; `docs/findings.md` explains what comes out.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use super::{Member, Request, Surroundings, survey};
use crate::stream::Side;

/// A clock of whole milliseconds tells no pauses.
const COARSE_NS: i64 = 1_000_000;
/// A FIN that follows the other one sooner than an answer could, by so much, is no answer to it.
const SOONER_NS: i64 = 1_000_000;

/// A connection, as its packets tell it. Instants are ns since the epoch.
#[derive(Clone, Debug, Default)]
pub struct Connection {
    pub stream: i32,
    pub client_ip: Box<str>,
    pub server_ip: Box<str>,
    pub server_port: i32,
    pub server_name: Option<Box<str>>,
    /// What it stands behind or in front of: `backend`, `front` or `server`.
    pub hop: Box<str>,
    pub client_node: i32,
    pub opened_at: i64,
    /// First SYN, where the server's answer was captured, too.
    pub syn_at: Option<i64>,
    pub closed_at: i64,
    pub fin_client_at: Option<i64>,
    pub fin_server_at: Option<i64>,
    pub rst_at: Option<i64>,
    pub fin_by: Option<Side>,
    pub rst_by: Option<Side>,
    pub first_frame: i64,
    pub ttl_client: Option<i32>,
    pub announced: bool,
    pub rtt_client_ns: Option<i64>,
    pub rtt_server_ns: Option<i64>,
}

/// The handshake that opens a connection; a later one is a renegotiation.
#[derive(Clone, Debug, Default)]
pub struct Secured {
    pub hello_at: Option<i64>,
    pub ready_at: Option<i64>,
    pub has_version: bool,
    pub kind: Option<Box<str>>,
    /// It came to its end, or not; None where there was no handshake.
    pub is_complete: Option<bool>,
    pub sni: Option<Box<str>>,
}

/// What was asked on a connection, and answered.
#[derive(Clone, Copy, Debug)]
pub struct Exchange<'a> {
    pub stream: i32,
    pub number: i32,
    /// It needs a response.
    pub is_asking: bool,
    pub request_at: Option<i64>,
    pub request_done_at: Option<i64>,
    pub response_at: Option<i64>,
    pub response_done_at: Option<i64>,
    pub protocol: &'a str,
    pub kind: Option<&'a str>,
    pub store: Option<&'a str>,
    pub status: Option<i32>,
    pub client_keepalive: Option<bool>,
    pub server_keepalive: Option<bool>,
    /// It was answered, and the connection did not become another one's.
    pub is_answered: bool,
}

/// The first or the last value that a column has.
#[derive(Clone, Debug)]
struct Edge<T>(Option<(i32, T)>);

impl<T> Default for Edge<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Edge<T> {
    fn first(&mut self, number: i32, value: Option<T>) {
        if let Some(value) = value.filter(|_| self.0.as_ref().is_none_or(|(at, _)| number < *at)) {
            self.0 = Some((number, value));
        }
    }

    fn last(&mut self, number: i32, value: Option<T>) {
        if let Some(value) = value.filter(|_| self.0.as_ref().is_none_or(|(at, _)| number > *at)) {
            self.0 = Some((number, value));
        }
    }

    fn get(&self) -> Option<&T> {
        self.0.as_ref().map(|(_, value)| value)
    }
}

/// What was asked on a connection, in all.
#[derive(Clone, Debug, Default)]
struct Used {
    exchanges: i64,
    first_number: Option<i32>,
    first_exchange: Option<i32>,
    first_request_at: Option<i64>,
    last_done_at: Option<i64>,
    multiplexed: bool,
    first_protocol: Edge<Box<str>>,
    first_kind: Edge<Box<str>>,
    first_store: Edge<Box<str>>,
    last_status: Edge<i32>,
    client_keeps: Edge<bool>,
    server_keeps: Edge<bool>,
    answered: Edge<bool>,
}

impl Used {
    fn take(&mut self, exchange: &Exchange<'_>) {
        let number = exchange.number;
        self.exchanges += 1;
        self.first_number = Some(self.first_number.map_or(number, |first| first.min(number)));
        if let Some(request_at) = exchange.request_at {
            self.first_exchange = Some(self.first_exchange.map_or(number, |first| first.min(number)));
            self.first_request_at = Some(self.first_request_at.map_or(request_at, |first| first.min(request_at)));
        }
        let done_at = exchange.response_done_at.or(exchange.response_at).or(exchange.request_done_at);
        self.last_done_at = self.last_done_at.max(exchange.request_at).max(done_at);
        self.multiplexed |= matches!(exchange.protocol, "h2" | "grpc");
        self.first_protocol.first(number, Some(exchange.protocol.into()));
        self.first_kind.first(number, exchange.kind.map(Into::into));
        self.first_store.first(number, exchange.store.map(Into::into));
        self.last_status.last(number, exchange.status);
        self.client_keeps.last(number, exchange.client_keepalive);
        self.server_keeps.last(number, exchange.server_keepalive);
        self.answered.last(number, Some(exchange.is_answered));
    }
}

/// A connection that can be judged.
#[derive(Clone, Debug, Default)]
pub struct Judged {
    pub connection: Connection,
    pub secured: Secured,
    pub accepted_at: Option<i64>,
    pub closing_at: Option<i64>,
    /// What a client wrote after the end of a connection that had served it, which the server answered by RST: no request
    /// that the connection served.
    pub refused_exchange: Option<i32>,
    pub refused_at: Option<i64>,
    pub refused_until: Option<i64>,
    pub ready_at: Option<i64>,
    pub tls: bool,
    pub exchanges: i64,
    pub first_exchange: Option<i32>,
    pub first_request_at: Option<i64>,
    pub last_done_at: Option<i64>,
    pub multiplexed: bool,
    pub closed_by: Option<Side>,
    pub ended_by: Option<Side>,
    pub first_protocol: Option<Box<str>>,
    pub first_kind: Option<Box<str>>,
    pub first_store: Option<Box<str>>,
    pub last_status: Option<i32>,
    pub client_keeps: Option<bool>,
    pub server_keeps: Option<bool>,
    pub answered: bool,
    pub coarse: bool,
    /// Nothing was asked on it but what asks whether the server lives.
    pub probe: bool,
    pub surroundings: Surroundings,
}

/// What rows say of a connection so far.
#[derive(Clone, Debug, Default)]
struct Facts {
    connection: Connection,
    secured: Option<Secured>,
    accepted_at: Option<i64>,
    closing_at: Option<i64>,
    refused: Option<(i32, i64)>,
    used: Used,
    checks: i64,
}

/// What rows say of all connections.
#[derive(Debug, Default)]
pub struct Evidence {
    facts: Vec<Facts>,
    places: HashMap<i32, usize>,
    /// Exchanges, asking or not, in any order.
    requests: Vec<Request>,
}

impl Evidence {
    /// Takes a connection: all of them come first.
    pub fn connection(&mut self, connection: Connection) {
        self.places.insert(connection.stream, self.facts.len());
        self.facts.push(Facts { connection, ..Facts::default() });
    }

    fn of(&mut self, stream: i32) -> Option<&mut Facts> {
        let place = *self.places.get(&stream)?;
        self.facts.get_mut(place)
    }

    /// Takes a phase `syn`.
    pub fn opening(&mut self, stream: i32, end_at: i64) {
        if let Some(facts) = self.of(stream) {
            facts.accepted_at = facts.accepted_at.max(Some(end_at));
        }
    }

    /// Takes a phase `close`.
    pub fn closing(&mut self, stream: i32, start_at: i64) {
        if let Some(facts) = self.of(stream) {
            facts.closing_at = Some(facts.closing_at.map_or(start_at, |first| first.min(start_at)));
        }
    }

    /// Takes the first handshake of a connection.
    pub fn handshake(&mut self, stream: i32, secured: Secured) {
        if let Some(facts) = self.of(stream) {
            facts.secured = Some(secured);
        }
    }

    /// Takes how many checks a connection had.
    pub fn checks(&mut self, stream: i32, checks: i64) {
        if let Some(facts) = self.of(stream) {
            facts.checks = checks;
        }
    }

    /// Looks for what was refused: all exchanges come here before they come to [`Evidence::exchange`].
    pub fn refusal(&mut self, exchange: &Exchange<'_>) {
        let Some(facts) = self.of(exchange.stream) else { return };
        let Connection { fin_by, rst_by, fin_server_at, .. } = &facts.connection;
        if *rst_by != Some(Side::Server) || fin_by.is_none() || exchange.number == 0 || exchange.response_at.is_some() {
            return;
        }
        if let (Some(request_at), Some(fin_at)) = (exchange.request_at, fin_server_at)
            && request_at >= *fin_at
        {
            let (number, at) = facts.refused.unwrap_or((exchange.number, request_at));
            facts.refused = Some((number.min(exchange.number), at.min(request_at)));
        }
    }

    /// Takes an exchange.
    pub fn exchange(&mut self, exchange: &Exchange<'_>) {
        let Some(facts) = self.of(exchange.stream) else { return };
        let is_refused = facts.refused.is_some_and(|(refused, _)| exchange.number >= refused);
        if exchange.is_asking && !is_refused {
            facts.used.take(exchange);
        }
        let Exchange { stream, number, request_at, response_done_at, .. } = *exchange;
        self.requests.push(Request { stream, number, request_at, response_done_at });
    }

    /// Judges the connections, in the order in which they came.
    #[must_use]
    pub fn judged(self) -> Vec<Judged> {
        let mut judged: Vec<Judged> = self.facts.into_iter().map(Facts::judged).collect();
        let members: Vec<Member> = judged.iter().map(Judged::member).collect();
        for (one, surroundings) in judged.iter_mut().zip(survey(&members, &self.requests)) {
            one.surroundings = surroundings;
        }
        judged
    }
}

impl Facts {
    fn judged(self) -> Judged {
        let Self { connection, secured, accepted_at, closing_at, refused, used, checks } = self;
        let secured = secured.unwrap_or_default();
        // A proxy that resets what its pool does not need (HAProxy) says nothing of the next request.
        let is_pools = &*connection.hop == "backend" && connection.rst_by == Some(Side::Client);
        // A client may still write its close_notify after the FIN, which nothing tells from data: then no phase `close` begins
        // there, but the FIN, or the RST, is seen.
        let ends = [connection.fin_client_at, connection.fin_server_at, connection.rst_at.filter(|_| !is_pools)];
        let first_protocol = used.first_protocol.get();
        let by_flags = connection.fin_by.or(connection.rst_by);
        let ended_by = match (used.client_keeps.get(), used.server_keeps.get()) {
            (Some(false), _) => Some(Side::Client),
            (_, Some(false)) => Some(Side::Server),
            _ if connection.is_ended_by_server() => Some(Side::Server),
            _ => by_flags,
        };
        let begun_at = accepted_at.or(used.first_request_at).unwrap_or(connection.opened_at);
        Judged {
            accepted_at,
            closing_at: match refused {
                None => closing_at.or_else(|| ends.into_iter().flatten().min()),
                Some(_) => connection.fin_server_at,
            },
            refused_exchange: refused.map(|(number, _)| number),
            refused_at: refused.map(|(_, at)| at),
            refused_until: refused.and(connection.rst_at),
            ready_at: match secured.is_complete {
                None => accepted_at,
                Some(true) => secured.ready_at,
                Some(false) => None,
            },
            tls: secured.has_version
                || secured.is_complete.is_some()
                || first_protocol.is_some_and(|protocol| &**protocol == "tls"),
            exchanges: used.exchanges,
            first_exchange: used.first_exchange.or(used.first_number),
            first_request_at: used.first_request_at,
            last_done_at: used.last_done_at,
            multiplexed: used.multiplexed,
            closed_by: by_flags,
            ended_by,
            first_protocol: first_protocol.cloned(),
            first_kind: used.first_kind.get().cloned(),
            first_store: used.first_store.get().cloned(),
            last_status: used.last_status.get().copied(),
            client_keeps: used.client_keeps.get().copied(),
            server_keeps: used.server_keeps.get().copied(),
            answered: used.answered.get().copied().unwrap_or(false),
            coarse: [connection.opened_at, begun_at, connection.closed_at].iter().all(|at| at % COARSE_NS == 0),
            probe: checks == used.exchanges.max(1),
            surroundings: Surroundings::default(),
            connection,
            secured,
        }
    }
}

impl Connection {
    /// A server's FIN that follows the client's sooner than an answer could is none: the server had ended the connection by
    /// then, with its `close_notify` (RFC 8446 section 6.1), which is encrypted.
    fn is_ended_by_server(&self) -> bool {
        match (self.fin_client_at, self.fin_server_at, self.rtt_server_ns) {
            (Some(client_at), Some(server_at), Some(rtt_ns)) => {
                server_at - client_at < rtt_ns - SOONER_NS.max(rtt_ns / 20)
            }
            _ => false,
        }
    }
}

impl Judged {
    /// The round trip between client and server.
    #[must_use]
    pub fn rtt_ns(&self) -> Option<i64> {
        Some(self.connection.rtt_client_ns? + self.connection.rtt_server_ns?)
    }

    /// What was open when the capture began was there before all others.
    fn member(&self) -> Member {
        let connection = &self.connection;
        let ends = (&connection.client_ip, &connection.server_ip, connection.server_port);
        // Users' programs keep connections for a name, proxies for whatever a backend is asked in one TLS session: a pool.
        let is_backend = &*connection.hop == "backend";
        let name = if is_backend { &self.secured.sni } else { &connection.server_name };
        Member {
            stream: connection.stream,
            ends: hash(&ends),
            pool: hash(&(ends, name)),
            syn_at: connection.syn_at.unwrap_or(connection.opened_at),
            ready_at: match self.secured.is_complete {
                None => self.accepted_at.or(Some(connection.opened_at)),
                _ => self.ready_at,
            },
            closing_at: self.closing_at,
            closed_at: connection.closed_at,
            first_exchange: self.first_exchange,
            multiplexed: self.multiplexed,
        }
    }
}

/// The same for the same value in every run.
fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
