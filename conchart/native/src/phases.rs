//! Charges every nanosecond of a connection to exactly one phase.
//!
//! In: intervals with a cause, as the later stages learn them; they may overlap. Out: phases that touch,
//! are in order, and sum to the connection's lifetime. Where intervals overlap the stronger cause wins,
//! between equal ones the one that began first; where none covers, nobody owes anybody a byte: idle.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::exchange::{ContentKind, ContentMessage, Exchange};
use crate::stream::Moment;
use crate::tls::Handshake;

/// The cause that a stretch of time is charged to, weakest first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Kind {
    Idle,
    Close,
    Syn,
    Request,
    Wait,
    Transfer,
    Tls,
    Unseen,
}

impl Kind {
    const ALL: [Self; 8] =
        [Self::Idle, Self::Close, Self::Syn, Self::Request, Self::Wait, Self::Transfer, Self::Tls, Self::Unseen];

    /// The kind of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The name in the `phases` table.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Close => "close",
            Self::Syn => "syn",
            Self::Request => "request",
            Self::Wait => "wait",
            Self::Transfer => "transfer",
            Self::Tls => "tls",
            Self::Unseen => "unseen",
        }
    }
}

/// A stretch of time with one cause; intervals may overlap, phases touch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Phase {
    pub kind: Kind,
    /// The exchange it belongs to.
    pub exchange: Option<u32>,
    /// The TLS handshake that it is.
    pub handshake: Option<u32>,
    pub start: Moment,
    pub end: Moment,
    /// True when encryption hides a boundary and we reasoned from order and size.
    pub inferred: bool,
}

impl Phase {
    /// A stretch that belongs to no exchange and to no TLS handshake, whose bounds were seen.
    #[must_use]
    pub fn without_exchange(kind: Kind, start: Moment, end: Moment) -> Self {
        Self { kind, exchange: None, handshake: None, start, end, inferred: false }
    }

    fn continues(&self, next: &Self) -> bool {
        let facts = |phase: &Self| (phase.kind, phase.exchange, phase.handshake, phase.inferred);
        facts(self) == facts(next)
    }
}

/// The TLS phase of a handshake: its hello to the moment the client may send.
///
/// A handshake that never got there is charged until `end`, when the connection began to close. One whose
/// ClientHello is missing is charged from the ServerHello.
pub fn of_handshake(handshake: &Handshake, end: impl FnOnce() -> Moment) -> Option<Phase> {
    Some(Phase {
        kind: Kind::Tls,
        exchange: None,
        handshake: Some(handshake.number),
        start: handshake.hello.or(handshake.server_hello)?,
        end: handshake.ready.unwrap_or_else(end),
        inferred: handshake.inferred || handshake.hello.is_none(),
    })
}

/// Request, wait and transfer of an exchange.
///
/// A wait without a response, and a message that its own framing shows to be incomplete, last until the exchange was
/// given up (`ended`), else until `end`. The time of a response that was sent but not captured is `Unseen`, not a wait.
/// Nobody waits for what comes after the requester has gone. A response that comes when something happens is not owed
/// before: that time is idle. So is what follows the head of one that comes in parts when something happens, and the
/// answer that opens a tunnel: who owes what is between its two ends.
/// A greeting is owed as soon as the connection stands.
pub fn of_exchange(exchange: &Exchange, end: impl Fn() -> Moment) -> [Option<Phase>; 3] {
    let end = || exchange.ended.unwrap_or_else(&end);
    let until = |moment| exchange.until(moment);
    let phase = |kind, start: Option<Moment>, end: Option<Moment>| {
        let exchange_number = Some(exchange.number);
        let inferred = exchange.inferred;
        Some(Phase { kind, exchange: exchange_number, handshake: None, start: start?, end: end?, inferred })
    };
    let (request, response) = (&exchange.request, &exchange.response);
    let request_ends = if request.done || response.first.is_some() { request.last } else { Some(end()) };
    let owed = request_ends.or(exchange.owed);
    let response_ends = if response.done || exchange.inferred { response.last } else { Some(end()) };
    let wait = match response.revealed.filter(|_| response.first.is_none()) {
        Some(revealed) => phase(Kind::Unseen, request_ends, Some(revealed)),
        None if exchange.awaits_event => None,
        None => phase(Kind::Wait, owed, Some(response.first.map_or_else(&end, until))),
    };
    let opened = exchange.tunnel.as_ref().and_then(|tunnel| tunnel.done).or(exchange.streams_from);
    [
        phase(Kind::Request, request.first, request_ends),
        wait,
        phase(Kind::Transfer, response.first, opened.or(response_ends.map(until))),
    ]
}

/// The time that a message of a WebSocket takes on its way. Between messages nobody owes anybody a byte. Those of gRPC
/// are part of their exchange, which is charged as a whole.
#[must_use]
pub fn of_message(message: &ContentMessage) -> Option<Phase> {
    let kind = if message.from == message.requester { Kind::Request } else { Kind::Transfer };
    let (exchange, start, end) = (Some(message.exchange), message.first, message.last);
    let phase = Phase { kind, exchange, handshake: None, start, end, inferred: false };
    (message.kind != ContentKind::Message).then_some(phase)
}

/// Intervals that are held because they may still overlap later ones. With more than these, all of them are dropped once the
/// time before `until` has been tiled: what they would be charged with after it is idle.
const MAX_INTERVALS: usize = 4_096;

/// Tiles one connection: a sweep over the edges of its intervals, so that each interval costs its places in two heaps.
///
/// Invariant: everything before `cursor` has been handed out, or is in `last`.
#[derive(Clone, Debug, Default)]
pub struct Tiler {
    cursor: Option<Moment>,
    /// Starts and ends that the sweep has not reached, the earliest on top.
    edges: BinaryHeap<ByRank<Edge>>,
    /// Intervals that the sweep is inside of, the one that is charged on top. Others may be over already.
    covering: BinaryHeap<ByRank<Covering>>,
    /// Intervals whose end the sweep has not reached.
    held: usize,
    /// Intervals pushed so far.
    pushed: u64,
    last: Option<Phase>,
    opened: Option<Moment>,
    /// Nothing is known yet about a connection that the capture joined midway.
    unknown: bool,
    /// While nothing is known: the earliest start of the intervals that are held.
    earliest_start: Option<i64>,
}

/// An instant at which an interval starts or ends.
#[derive(Clone, Debug)]
struct Edge {
    at: Moment,
    /// The interval that starts here; `None` where one ends.
    starts: Option<Covering>,
}

/// An interval and its place in the order in which intervals were pushed.
#[derive(Clone, Debug)]
struct Covering {
    interval: Phase,
    number: u64,
}

/// What stands in a heap, the greatest rank on top.
trait Ranked {
    type Rank: Ord;
    fn rank(&self) -> Self::Rank;
}

impl Ranked for Edge {
    type Rank = Reverse<(i64, u64)>;

    /// The earliest is the greatest. Of packets with one timestamp the first is the bound.
    fn rank(&self) -> Self::Rank {
        Reverse((self.at.at, self.at.frame()))
    }
}

impl Ranked for Covering {
    type Rank = (Kind, Reverse<i64>, u64);

    /// The stronger cause is charged; of equal ones the one that began first, and then the one pushed last.
    fn rank(&self) -> Self::Rank {
        (self.interval.kind, Reverse(self.interval.start.at), self.number)
    }
}

/// Compares by rank.
#[derive(Clone, Debug)]
struct ByRank<T>(T);

impl<T: Ranked> Ord for ByRank<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        #[cfg(test)]
        tests::COMPARISONS.set(tests::COMPARISONS.get() + 1);
        self.0.rank().cmp(&other.0.rank())
    }
}

impl<T: Ranked> PartialOrd for ByRank<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Ranked> PartialEq for ByRank<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T: Ranked> Eq for ByRank<T> {}

impl Tiler {
    /// Starts the tiling. What comes before the first interval is `unseen` if `midstream`, else idle.
    pub fn begin(&mut self, opened: Moment, midstream: bool) {
        if self.cursor.is_none() {
            self.cursor = Some(opened);
            self.opened = Some(opened);
            self.unknown = midstream;
        }
    }

    /// Where the tiling starts, once it has begun.
    #[must_use]
    pub fn opened(&self) -> Option<Moment> {
        self.opened
    }

    /// Adds an interval. One that ends before it starts (clocks, reordering) is empty and changes nothing.
    pub fn push(&mut self, interval: Phase) {
        if interval.end.at > interval.start.at {
            self.hold(interval);
        } else if self.unknown && self.held == 0 {
            // It takes no time, but from here on something is known of the connection.
            self.hold(Phase { end: interval.start, ..interval });
        }
    }

    fn hold(&mut self, interval: Phase) {
        let start = interval.start.at;
        self.earliest_start = Some(self.earliest_start.map_or(start, |earliest| earliest.min(start)));
        self.edges.push(ByRank(Edge { at: interval.end, starts: None }));
        let starts = Some(Covering { interval, number: self.pushed });
        self.edges.push(ByRank(Edge { at: interval.start, starts }));
        self.pushed += 1;
        self.held += 1;
    }

    /// Hands out the phases before `until`: no later interval will start earlier.
    pub fn hand_out(&mut self, until: Moment, out: &mut impl FnMut(Phase)) {
        let excess = self.held > MAX_INTERVALS;
        self.tile(until, out);
        if excess {
            self.edges.clear();
            self.covering.clear();
            (self.held, self.earliest_start) = (0, None);
        }
    }

    /// Hands out everything up to `closed`, the last packet.
    pub fn finish(&mut self, closed: Moment, out: &mut impl FnMut(Phase)) {
        self.tile(closed, out);
        if let Some(last) = self.last.take() {
            out(last);
        }
    }

    fn tile(&mut self, until: Moment, out: &mut impl FnMut(Phase)) {
        let Some(mut cursor) = self.cursor else { return };
        if until.at <= cursor.at {
            return;
        }
        while self.pass_edge(cursor.at).is_some() {}
        while cursor.at < until.at {
            let bound = self.edges.peek().map(|edge| edge.0.at);
            let end = Moment::earliest([bound, Some(until)]).unwrap_or(until);
            let phase = self.charge(cursor, end);
            match &mut self.last {
                Some(last) if last.continues(&phase) => last.end = phase.end,
                last => {
                    if let Some(done) = last.replace(phase) {
                        out(done);
                    }
                }
            }
            cursor = end;
            while self.pass_edge(cursor.at).is_some() {}
        }
        self.cursor = Some(cursor);
        self.unknown &= self.earliest_start.is_none_or(|at| at >= cursor.at);
        if self.unknown {
            // Every interval that is held starts here or later.
            let here = self.covering_at(cursor.at).map(|_| cursor.at);
            self.earliest_start = here.or_else(|| self.edges.peek().map(|edge| edge.0.at.at));
        }
    }

    /// Passes an edge that is not later than `at`, if there is one.
    fn pass_edge(&mut self, at: i64) -> Option<()> {
        self.edges.peek().filter(|edge| edge.0.at.at <= at)?;
        match self.edges.pop()?.0.starts {
            Some(starts) => self.covering.push(ByRank(starts)),
            None => self.held = self.held.saturating_sub(1),
        }
        Some(())
    }

    /// What the time from `cursor` to the next edge is charged to.
    fn charge(&mut self, cursor: Moment, end: Moment) -> Phase {
        if let Some(interval) = self.covering_at(cursor.at) {
            return Phase { start: cursor, end, ..interval };
        }
        let is_unseen = self.unknown && self.earliest_start.is_none_or(|at| at >= end.at);
        Phase::without_exchange(if is_unseen { Kind::Unseen } else { Kind::Idle }, cursor, end)
    }

    /// The strongest interval that goes on after `at`.
    fn covering_at(&mut self, at: i64) -> Option<Phase> {
        while let Some(strongest) = self.covering.peek() {
            if strongest.0.interval.end.at > at {
                return Some(strongest.0.interval);
            }
            self.covering.pop();
        }
        None
    }
}

#[cfg(test)]
mod tests;
