//! Charges every nanosecond of a connection to exactly one phase.
//!
//! In: intervals with a cause, as the later stages learn them; they may overlap. Out: phases that touch,
//! are in order, and sum to the connection's lifetime. Where intervals overlap the stronger cause wins,
//! between equal ones the one that began first (design.md section 5); where none covers, nobody owes anybody a byte: idle.

use std::cmp::Reverse;

use crate::exchange::Exchange;
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
        let said = |phase: &Self| (phase.kind, phase.exchange, phase.handshake, phase.inferred);
        said(self) == said(next)
    }
}

/// The TLS phase of a handshake: its hello to the moment the client may send (design.md section 5).
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
/// What was still going on when the connection ended is charged until `end`: a wait without a response,
/// and a message whose own framing says that it is not complete; of an exchange that was given up, until then. The
/// time in which a response came that nobody saw is no wait.
pub fn of_exchange(exchange: &Exchange, end: impl Fn() -> Moment) -> [Option<Phase>; 3] {
    let end = || exchange.ended.unwrap_or_else(&end);
    let phase = |kind, start: Option<Moment>, end: Option<Moment>| {
        let exchange_number = Some(exchange.number);
        let inferred = exchange.inferred;
        Some(Phase { kind, exchange: exchange_number, handshake: None, start: start?, end: end?, inferred })
    };
    let (request, response) = (&exchange.request, &exchange.response);
    let request_ends = if request.done || response.first.is_some() { request.last } else { Some(end()) };
    let response_ends = if response.done || exchange.inferred { response.last } else { Some(end()) };
    let wait = match response.revealed.filter(|_| response.first.is_none()) {
        Some(revealed) => phase(Kind::Unseen, request_ends, Some(revealed)),
        None => phase(Kind::Wait, request_ends, Some(response.first.unwrap_or_else(&end))),
    };
    [phase(Kind::Request, request.first, request_ends), wait, phase(Kind::Transfer, response.first, response_ends)]
}

/// Intervals that overlap without an end; more, and the older half is charged as it stands.
const MAX_INTERVALS: usize = 4_096;

/// Tiles one connection.
///
/// Invariant: everything before `cursor` has been handed out, or is in `last`.
#[derive(Clone, Debug, Default)]
pub struct Tiler {
    cursor: Option<Moment>,
    intervals: Vec<Phase>,
    last: Option<Phase>,
    opened: Option<Moment>,
    /// Nothing is known yet about a connection that the capture joined midway.
    unknown: bool,
}

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
            self.intervals.push(interval);
        } else if self.unknown && self.intervals.is_empty() {
            // It takes no time, but from here on something is known of the connection.
            self.intervals.push(Phase { end: interval.start, ..interval });
        }
    }

    /// Hands out the phases before `until`: no later interval will start earlier.
    pub fn hand_out(&mut self, until: Moment, out: &mut impl FnMut(Phase)) {
        if self.intervals.len() > MAX_INTERVALS {
            self.tile(until, out);
            self.intervals.clear();
        } else {
            self.tile(until, out);
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
        let mut edges: Vec<Moment> = (self.intervals.iter())
            .flat_map(|interval| [interval.start, interval.end])
            .filter(|edge| edge.at > cursor.at && edge.at <= until.at)
            .chain([until])
            .collect();
        // Of packets with one timestamp the first is the bound.
        edges.sort_unstable_by_key(|edge| (edge.at, edge.frame()));
        edges.dedup_by_key(|edge| edge.at);
        let first_known = self.intervals.iter().map(|interval| interval.start.at).min();
        for edge in edges {
            let covering = (self.intervals.iter())
                .filter(|interval| interval.start.at <= cursor.at && interval.end.at >= edge.at)
                .max_by_key(|interval| (interval.kind, Reverse(interval.start.at)));
            let nothing =
                if self.unknown && first_known.is_none_or(|at| at >= edge.at) { Kind::Unseen } else { Kind::Idle };
            let phase = match covering {
                Some(&interval) => Phase { start: cursor, end: edge, ..interval },
                None => Phase::without_exchange(nothing, cursor, edge),
            };
            match &mut self.last {
                Some(last) if last.continues(&phase) => last.end = phase.end,
                last => {
                    if let Some(done) = last.replace(phase) {
                        out(done);
                    }
                }
            }
            cursor = edge;
        }
        self.cursor = Some(cursor);
        self.unknown &= first_known.is_none_or(|at| at >= cursor.at);
        self.intervals.retain(|interval| interval.end.at > cursor.at);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::stream::Side;
    use proptest::prelude::*;

    fn moment(at: i64) -> Moment {
        Moment::new(at, at.unsigned_abs() + 1, Side::Client)
    }

    fn interval(kind: Kind, start: i64, end: i64) -> Phase {
        Phase::without_exchange(kind, moment(start), moment(end))
    }

    fn tile(intervals: &[Phase], opened: i64, closed: i64, midstream: bool) -> Vec<Phase> {
        let mut tiler = Tiler::default();
        let mut phases = Vec::new();
        tiler.begin(moment(opened), midstream);
        for &interval in intervals {
            tiler.push(interval);
        }
        tiler.finish(moment(closed), &mut |phase| phases.push(phase));
        phases
    }

    fn story(phases: &[Phase]) -> Vec<(Kind, i64, i64)> {
        phases.iter().map(|p| (p.kind, p.start.at, p.end.at)).collect()
    }

    #[test]
    fn time_that_no_interval_covers_is_idle() {
        let phases = tile(&[interval(Kind::Syn, 0, 10), interval(Kind::Wait, 20, 30)], 0, 40, false);
        let expected = [(Kind::Syn, 0, 10), (Kind::Idle, 10, 20), (Kind::Wait, 20, 30), (Kind::Idle, 30, 40)];
        assert_eq!(story(&phases), expected);
    }

    #[test]
    fn before_the_first_known_event_a_midstream_connection_is_unseen() {
        let phases = tile(&[interval(Kind::Wait, 20, 30)], 0, 40, true);
        let expected = [(Kind::Unseen, 0, 20), (Kind::Wait, 20, 30), (Kind::Idle, 30, 40)];
        assert_eq!(story(&phases), expected);
        assert_eq!(story(&tile(&[], 0, 40, true)), [(Kind::Unseen, 0, 40)]);
    }

    #[test]
    fn transfer_beats_wait_and_wait_beats_request() {
        let intervals =
            [interval(Kind::Request, 0, 30), interval(Kind::Wait, 10, 40), interval(Kind::Transfer, 20, 25)];
        let expected = [(Kind::Request, 0, 10), (Kind::Wait, 10, 20), (Kind::Transfer, 20, 25), (Kind::Wait, 25, 40)];
        assert_eq!(story(&tile(&intervals, 0, 40, false)), expected);
    }

    #[test]
    fn of_two_waits_the_one_that_began_first_is_charged() {
        let wait = |exchange, start, end| Phase { exchange: Some(exchange), ..interval(Kind::Wait, start, end) };
        let phases = tile(&[wait(0, 0, 20), wait(1, 5, 30)], 0, 30, false);
        let charged: Vec<_> = phases.iter().map(|p| (p.exchange, p.start.at, p.end.at)).collect();
        assert_eq!(charged, [(Some(0), 0, 20), (Some(1), 20, 30)]);
    }

    #[test]
    fn two_handshakes_are_two_phases() {
        let tls = |number, start, end| Phase { handshake: Some(number), ..interval(Kind::Tls, start, end) };
        let phases = tile(&[tls(0, 0, 20), tls(1, 20, 30)], 0, 30, false);
        let charged: Vec<_> = phases.iter().map(|p| (p.handshake, p.start.at, p.end.at)).collect();
        assert_eq!(charged, [(Some(0), 0, 20), (Some(1), 20, 30)]);
    }

    #[test]
    fn an_interval_that_ends_before_it_starts_changes_nothing() {
        let phases = tile(&[interval(Kind::Wait, 30, 20)], 0, 40, false);
        assert_eq!(story(&phases), [(Kind::Idle, 0, 40)]);
    }

    fn kinds() -> impl Strategy<Value = Kind> {
        prop::sample::select(vec![Kind::Syn, Kind::Tls, Kind::Request, Kind::Wait, Kind::Transfer, Kind::Unseen])
    }

    proptest! {
        #[test]
        fn phases_touch_and_cover_the_lifetime(
            spans in prop::collection::vec((kinds(), 0i64..100, 0i64..100), 0..12),
            closed in 1i64..120,
            midstream: bool,
        ) {
            let intervals: Vec<Phase> = spans.iter().map(|&(kind, a, b)| interval(kind, a, b)).collect();
            let phases = tile(&intervals, 0, closed, midstream);
            prop_assert_eq!(phases[0].start.at, 0);
            prop_assert_eq!(phases.last().unwrap().end.at, closed);
            for pair in phases.windows(2) {
                prop_assert_eq!(pair[0].end, pair[1].start);
                prop_assert!(!pair[0].continues(&pair[1]));
            }
            prop_assert!(phases.iter().all(|p| p.end.at > p.start.at));
        }

        #[test]
        fn handing_out_on_the_way_changes_nothing(
            spans in prop::collection::vec((kinds(), 0i64..100, 4i64..20), 0..12),
        ) {
            // Four packets have each timestamp.
            let coarse = |frame: i64| Moment::new(frame / 4, frame.unsigned_abs() + 1, Side::Client );
            let span = |kind, a, b| Phase { start: coarse(a), end: coarse(b), ..interval(kind, a, b) };
            let mut intervals: Vec<Phase> = spans.iter().map(|&(kind, a, n)| span(kind, a, a + n)).collect();
            intervals.sort_by_key(|i| i.start.frame());
            let mut tiler = Tiler::default();
            let mut phases = Vec::new();
            tiler.begin(moment(0), false);
            for &interval in &intervals {
                tiler.hand_out(interval.start, &mut |phase| phases.push(phase));
                tiler.push(interval);
            }
            tiler.finish(moment(150), &mut |phase| phases.push(phase));
            prop_assert_eq!(phases, tile(&intervals, 0, 150, false));
        }
    }
}
