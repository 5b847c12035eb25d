#![allow(clippy::unwrap_used, clippy::indexing_slicing)]
use std::cell::Cell;

use super::*;
use crate::stream::Side;
use proptest::prelude::*;

thread_local! {
    /// Comparisons that the heaps made.
    pub(super) static COMPARISONS: Cell<u64> = const { Cell::new(0) };
}

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
    let intervals = [interval(Kind::Request, 0, 30), interval(Kind::Wait, 10, 40), interval(Kind::Transfer, 20, 25)];
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

/// The definition, word by word: for every stretch between two edges, all intervals are looked at. Quadratic.
#[derive(Default)]
struct Oracle {
    cursor: Option<Moment>,
    intervals: Vec<Phase>,
    last: Option<Phase>,
    unknown: bool,
}

impl Oracle {
    fn begin(&mut self, opened: Moment, midstream: bool) {
        self.cursor = Some(opened);
        self.unknown = midstream;
    }

    fn push(&mut self, interval: Phase) {
        if interval.end.at > interval.start.at {
            self.intervals.push(interval);
        } else if self.unknown && self.intervals.is_empty() {
            self.intervals.push(Phase { end: interval.start, ..interval });
        }
    }

    fn hand_out(&mut self, until: Moment, out: &mut Vec<Phase>) {
        let excess = self.intervals.len() > MAX_INTERVALS;
        self.tile(until, out);
        if excess {
            self.intervals.clear();
        }
    }

    fn finish(&mut self, closed: Moment, out: &mut Vec<Phase>) {
        self.tile(closed, out);
        out.extend(self.last.take());
    }

    fn tile(&mut self, until: Moment, out: &mut Vec<Phase>) {
        let Some(mut cursor) = self.cursor.filter(|cursor| cursor.at < until.at) else { return };
        let mut edges: Vec<Moment> = (self.intervals.iter())
            .flat_map(|interval| [interval.start, interval.end])
            .filter(|edge| edge.at > cursor.at && edge.at <= until.at)
            .chain([until])
            .collect();
        edges.sort_by_key(|edge| (edge.at, edge.frame()));
        edges.dedup_by_key(|edge| edge.at);
        let earliest_start = self.intervals.iter().map(|interval| interval.start.at).min();
        for edge in edges {
            let covering = (self.intervals.iter())
                .filter(|interval| interval.start.at <= cursor.at && interval.end.at >= edge.at)
                .max_by_key(|interval| (interval.kind, Reverse(interval.start.at)));
            let nothing =
                if self.unknown && earliest_start.is_none_or(|at| at >= edge.at) { Kind::Unseen } else { Kind::Idle };
            let phase = match covering {
                Some(&interval) => Phase { start: cursor, end: edge, ..interval },
                None => Phase::without_exchange(nothing, cursor, edge),
            };
            match &mut self.last {
                Some(last) if last.continues(&phase) => last.end = phase.end,
                last => out.extend(last.replace(phase)),
            }
            cursor = edge;
        }
        self.cursor = Some(cursor);
        self.unknown &= earliest_start.is_none_or(|at| at >= cursor.at);
        self.intervals.retain(|interval| interval.end.at > cursor.at);
    }
}

/// What the tiler and the oracle say of the same intervals, each handed out until the instant beside it.
fn both(intervals: &[(Phase, Option<Moment>)], closed: Moment, midstream: bool) -> (Vec<Phase>, Vec<Phase>) {
    let (mut tiler, mut oracle) = (Tiler::default(), Oracle::default());
    let (mut phases, mut expected) = (Vec::new(), Vec::new());
    tiler.begin(moment(0), midstream);
    oracle.begin(moment(0), midstream);
    for &(interval, until) in intervals {
        tiler.push(interval);
        oracle.push(interval);
        if let Some(until) = until {
            tiler.hand_out(until, &mut |phase| phases.push(phase));
            oracle.hand_out(until, &mut expected);
        }
    }
    tiler.finish(closed, &mut |phase| phases.push(phase));
    oracle.finish(closed, &mut expected);
    (phases, expected)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn the_sweep_says_what_the_definition_says(
        spans in prop::collection::vec((kinds(), 0i64..60, -3i64..20, prop::option::of(0i64..60)), 0..24),
        closed in 0i64..80,
        midstream: bool,
        grain in 1i64..5,
    ) {
        // Several packets have each timestamp; the clock of the first steps back, now and then.
        let coarse = |frame: i64| Moment::new(frame / grain, frame.unsigned_abs() + 1, Side::Client);
        let intervals: Vec<_> = (spans.iter().zip(0..))
            .map(|(&(kind, start, lasts, until), number)| {
                let bounds = Phase { start: coarse(start), end: coarse(start + lasts), ..interval(kind, 0, 0) };
                (Phase { exchange: Some(number), ..bounds }, until.map(coarse))
            })
            .collect();
        let (phases, expected) = both(&intervals, coarse(closed), midstream);
        prop_assert_eq!(phases, expected);
    }
}

#[test]
fn beyond_the_limit_the_sweep_drops_what_the_definition_drops() {
    let long = |number: i64| Phase { exchange: None, ..interval(Kind::Wait, number, 100_000 - number) };
    let count = i64::try_from(MAX_INTERVALS).unwrap() + 40;
    let intervals: Vec<_> = (0..count).map(|at| (long(at), (at % 16 == 0).then(|| moment(at / 2)))).collect();
    for midstream in [false, true] {
        let (phases, expected) = both(&intervals, moment(200_000), midstream);
        assert_eq!(phases, expected);
    }
}

/// Comparisons for `count` intervals, each handed out as far as `until` says.
fn comparisons(count: i64, interval: impl Fn(i64) -> Phase, until: impl Fn(i64) -> Option<i64>) -> u64 {
    COMPARISONS.set(0);
    let mut tiler = Tiler::default();
    tiler.begin(moment(0), false);
    for number in 0..count {
        tiler.push(interval(number));
        if let Some(until) = until(number) {
            tiler.hand_out(moment(until), &mut |_| ());
        }
    }
    tiler.finish(moment(10 * count), &mut |_| ());
    COMPARISONS.get()
}

#[test]
fn steps_grow_like_the_intervals() {
    type Shape = (fn(i64) -> Phase, fn(i64) -> Option<i64>);
    let shapes: [Shape; 4] = [
        // One request after the other.
        (|n| interval(Kind::Wait, 2 * n, 2 * n + 1), |n| Some(2 * n + 1)),
        // Pipelined: a thousand wait at once, and the oldest is answered.
        (|n| interval(Kind::Wait, n, n + 1_000), |n| Some(n + 1)),
        // One stream is open all the time, others come and go in it: nothing is certain before the limit is met.
        (|n| interval(Kind::Transfer, n + 1, n + 3), |_| Some(0)),
        // As many as are held, one inside the other, all at the end.
        (|n| interval(Kind::Wait, n % 4_000, 100_000 - n % 4_000), |n| (n % 4_000 == 0).then_some(0)),
    ];
    for (shape, (interval, until)) in shapes.into_iter().enumerate() {
        let [few, many] = [16_000, 64_000].map(|count| comparisons(count, interval, until));
        assert!(5 * many <= 22 * few, "shape {shape}: {few} comparisons, of four times as much {many}");
        assert!(few < 16_000 * 60, "shape {shape}: {few} comparisons");
    }
}
