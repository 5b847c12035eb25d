//! What is linked, and the numbers that several modules share: exchanges and what is known of them, links.

/// Candidates that a back keeps.
pub(super) const MOST_CANDIDATES: usize = 36;
/// Clocks of two interfaces may disagree by this much about what came first.
pub(super) const SKEW_NS: i64 = 20_000;
/// How many links the habits of any proxy weigh as much as.
pub(super) const PRIOR: f64 = 6.0;
/// How many coincidences those of any capture weigh as much as.
pub(super) const PRIOR_CHANCE: f64 = 40.0;
/// Links that are less sure are none.
pub(super) const LEAST_CONFIDENCE: f64 = 0.5;
/// A connection that carried nothing for longer was not opened for its first request; nor if for longer than twice its opening.
const IDLE_NS: i64 = 5_000_000;

/// One exchange, as far as linking asks.
#[derive(Clone, Debug, Default)]
pub struct Exchange {
    /// Its row's key.
    pub stream: i32,
    /// Its row's key; None of a back that is the opening of a connection itself, for a front that asked for that.
    pub number: Option<i32>,
    /// The machine that accepted its connection, if that is a proxy.
    pub accepted_by: Option<i32>,
    /// The machine that opened its connection, if that is a proxy.
    pub opened_by: Option<i32>,
    /// The server endpoint.
    pub endpoint: i32,
    /// The only front connection that may have caused it, where the connection is known to be handed through.
    pub through: Option<i32>,
    /// The front asks for a connection (CONNECT, SOCKS).
    pub opens: bool,
    /// First byte of the request, ns since the epoch.
    pub request_at: i64,
    /// Last byte of the request.
    pub request_done_at: i64,
    /// First byte of the response.
    pub response_at: Option<i64>,
    /// Last byte of the response.
    pub response_done_at: Option<i64>,
    /// Last packet of the connection.
    pub closed_at: i64,
    /// No exchange of its connection came before it.
    pub first: bool,
    /// How its connection was set up.
    pub setup: Option<Setup>,
    /// As `exchanges` has it.
    pub request_bytes: Option<i64>,
    /// As `exchanges` has it.
    pub response_bytes: Option<i64>,
    /// Hash of method and path; None where encryption hides them.
    pub target: Option<u64>,
    /// Hash of method and target, but for numbers in it: what kind of request it is. None where encryption hides it.
    pub kind: Option<u64>,
    /// When the next visit of its connection begins; None where it is the last, or visits are not known.
    pub next_at: Option<i64>,
    /// As `exchanges` has it.
    pub status: Option<i32>,
    /// As `exchanges` has it: how sure it is that this is an exchange.
    pub confidence: f64,
    /// Hashes of the identifiers that it carries.
    pub ids: Vec<u64>,
    /// What it asks a database.
    pub statement: Option<Statement>,
}

/// How a connection was set up, ns since the epoch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Setup {
    /// First SYN.
    pub opened_at: i64,
    /// The TCP handshake is over.
    pub connected_at: Option<i64>,
    /// First byte of the ClientHello.
    pub hello_at: Option<i64>,
    /// The TLS handshake is over.
    pub ready_at: Option<i64>,
}

impl Exchange {
    /// The end of the time in which it may have caused others.
    pub(super) fn until(&self) -> i64 {
        self.response_at.unwrap_or(self.closed_at)
    }

    /// When its client did the first thing for it: opened the connection, or sent the request.
    pub(super) fn began_at(&self) -> i64 {
        let Some(setup) = self.setup.filter(|_| self.first) else { return self.request_at };
        let ready_at = setup.ready_at.or(setup.connected_at).unwrap_or(setup.opened_at);
        let opening_ns = ready_at - setup.opened_at;
        if self.request_at - ready_at <= IDLE_NS.max(2 * opening_ns) { setup.opened_at } else { self.request_at }
    }
}

/// A front exchange and a back exchange that it caused, as indices.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Index of the front exchange.
    pub front: u32,
    /// Index of the back exchange.
    pub back: u32,
    /// What told them from others most clearly.
    pub method: &'static str,
    /// Probability that the link is right.
    pub confidence: f64,
}

/// A request to a database.
#[derive(Clone, Copy, Debug)]
pub struct Statement {
    /// Which protocol.
    pub dialect: i32,
    /// Hash of the statement's shape, if it is known.
    pub shape: Option<u64>,
    /// It is part of a connection's start.
    pub starts: bool,
    /// It leaves a transaction open (1), or ends one (-1).
    pub turn: i32,
}
