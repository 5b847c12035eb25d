//! Whose time a handshake took: its flights, what each waited for, and how long the ends computed.
//!
//! RFC 5246 section 7.3 and RFC 8446 section 2 (flights), RFC 6928 (initial window). In: the chunks and gaps of
//! both sides while a handshake runs. Out: round trips waited for, and each end's computing time, in
//! nanoseconds, once the round trip between the capture point and that end is known.
//!
//! A flight waits from the last byte of the peer's that its sender had acknowledged; less the round trip, that
//! is computing. A pause of at least [`PAUSE_NS`] inside a flight is computing too, unless a whole initial
//! window went out before it: then the sender waited for an ACK, which is one more round trip. A segment dropped
//! where the capture cannot see it counts as computing of the end that had to repeat it or wait for it.

use crate::stream::{Chunk, Moment, Side};

/// The shortest pause that is not the link's: a full segment takes this long at 1.2 Mbit/s.
const PAUSE_NS: i64 = 10_000_000;
/// Segments of the initial window.
const WINDOW_SEGMENTS: u64 = 10;
/// A captured packet may be several segments that the card had joined.
const LARGEST_SEGMENT: u64 = 1460;
/// Honest handshakes have at most six flights and a few waits for the window.
const MAX_FLIGHTS: usize = 32;
/// Packets of one flight whose end is remembered; later ones fall together.
const MAX_MARKS: usize = 16;
/// Flights of a handshake, mostly.
const USUAL_FLIGHTS: usize = 6;

/// What one side sent without waiting for the other; after a full window, what followed the ACK.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Flight {
    from: Side,
    first: Moment,
    /// Nanoseconds since the last byte it answers; `None`: unknown.
    waited_ns: Option<i64>,
    /// Pauses inside.
    paused_ns: i64,
    /// It goes on after an ACK that the window waited for.
    continued: bool,
}

/// The flight being sent.
#[derive(Clone, Debug, PartialEq)]
struct Current {
    offset: u64,
    last: Moment,
    /// (stream position after, moment) of its packets: the first `count` of these.
    marks: [(u64, Moment); MAX_MARKS],
    count: usize,
}

impl Current {
    fn begin(&mut self, offset: u64, end: u64, first: Moment) {
        (self.offset, self.last, self.count) = (offset, first, 0);
        self.mark(end, first);
    }

    fn marks(&self) -> &[(u64, Moment)] {
        self.marks.get(..self.count).unwrap_or_default()
    }

    fn mark(&mut self, end: u64, seen: Moment) {
        let same = self.marks().last().is_some_and(|(_, last)| *last == seen);
        if !same && self.count < MAX_MARKS {
            self.count += 1;
        }
        if let Some(mark) = self.marks.get_mut(self.count - 1) {
            *mark = (end, seen);
        }
    }

    /// Has a whole initial window gone out since the flight, or the window before, began?
    fn fills_window(&self) -> bool {
        let ends = || self.marks().iter().map(|(end, _)| *end);
        let starts = std::iter::once(self.offset).chain(ends());
        let segment = starts.zip(ends()).map(|(start, end)| end - start).max().unwrap_or(0);
        let sent = ends().next_back().unwrap_or(self.offset) - self.offset;
        sent >= WINDOW_SEGMENTS * segment.min(LARGEST_SEGMENT)
    }
}

/// The flights of a handshake, as far as it was followed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flights {
    flights: Vec<Flight>,
    current: Option<Box<Current>>,
    /// Bytes are missing or came in another order than they were sent: times between them mean nothing.
    torn: bool,
}

impl Flights {
    pub(super) fn chunk(&mut self, from: Side, chunk: &Chunk<'_>) {
        self.sent(from, chunk.offset, chunk.len(), Some(chunk.acked), chunk.seen);
    }

    pub(super) fn gap(&mut self, from: Side, offset: u64, len: u64, seen: Moment) {
        self.torn = true;
        self.sent(from, offset, len, None, seen);
    }

    /// `acked`: of the peer's stream; `None`: unknown.
    fn sent(&mut self, from: Side, offset: u64, len: u64, acked: Option<u64>, seen: Moment) {
        let Some((flight, current)) = self.flights.last_mut().zip(self.current.as_mut()) else {
            return self.begin(from, offset, len, None, false, seen);
        };
        if flight.from != from {
            // What crossed the peer's flight belongs to the one before.
            if acked.is_none_or(|acked| acked > current.offset) {
                let acked = acked.unwrap_or(0);
                let trigger = current.marks().iter().rfind(|(end, _)| *end <= acked).map(|(_, moment)| *moment);
                let waited = trigger.map(|trigger| seen.at - trigger.at);
                self.begin(from, offset, len, waited, false, seen);
            }
            return;
        }
        if (seen.at, seen.frame()) < (flight.first.at, flight.first.frame()) {
            flight.first = seen;
        }
        let pause = seen.at - current.last.at;
        // A segment before it had to be repeated.
        self.torn |= pause < 0;
        if pause >= PAUSE_NS {
            if current.fills_window() {
                return self.begin(from, offset, len, None, true, seen);
            }
            flight.paused_ns = flight.paused_ns.saturating_add(pause);
        }
        current.last = current.last.max(seen);
        current.mark(offset + len, seen);
    }

    fn begin(&mut self, from: Side, offset: u64, len: u64, waited_ns: Option<i64>, continued: bool, first: Moment) {
        if self.flights.len() >= MAX_FLIGHTS {
            self.torn = true;
            return;
        }
        if self.flights.is_empty() {
            self.flights.reserve_exact(USUAL_FLIGHTS);
        }
        self.flights.push(Flight { from, first, waited_ns, paused_ns: 0, continued });
        let new = || Box::new(Current { offset, last: first, marks: [(offset, first); MAX_MARKS], count: 0 });
        self.current.get_or_insert_with(new).begin(offset, offset + len, first);
    }

    /// Forgets flights that began after `end`, and what is only of use while more may come.
    pub(super) fn close(&mut self, end: Option<Moment>) {
        self.current = None;
        if let Some(end) = end {
            self.flights.retain(|flight| flight.first.max(end) == end);
        }
    }

    /// Early data: what the server answers first is the hello, not what followed it.
    pub(super) fn first_answer(&mut self, hello_sent: Moment) {
        let client = self.flights.first().map(|flight| flight.from);
        if let Some(answer) = self.flights.iter_mut().find(|flight| Some(flight.from) != client) {
            answer.waited_ns = Some(answer.first.at - hello_sent.at);
        }
    }

    /// How often `client` waited for a flight of the server, or for more of it, until `ready`.
    pub(super) fn round_trips(&self, client: Side, ready: Moment) -> u32 {
        let waits = self.flights.iter().filter(|flight| flight.from != client && flight.first.max(ready) == ready);
        u32::try_from(waits.count()).unwrap_or(u32::MAX)
    }

    /// Nanoseconds that `side` computed; `rtt`: capture point ↔ `side`. `None`: it did not answer, or a bound of
    /// an answer is unknown.
    #[must_use]
    pub fn compute_ns(&self, side: Side, rtt: Option<i64>) -> Option<i64> {
        let mut total = None;
        for flight in self.flights.iter().skip(1).filter(|flight| flight.from == side) {
            let thought = if flight.continued { 0 } else { flight.waited_ns?.saturating_sub(rtt?).max(0) };
            total = Some(total.unwrap_or(0_i64).saturating_add(thought).saturating_add(flight.paused_ns));
        }
        total.filter(|_| !self.torn)
    }
}
