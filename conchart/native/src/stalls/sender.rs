//! One side's data, and what its peer says of it: what kept its next segment.
//!
//! In: this side's segments with data, and all of the peer's. Out: stalls, each when the segment comes that ends it.
//!
//! Whatever a sender learnt, it learnt after the capture point saw it, or before, by the round trip between the two
//! ([`Path`]). So what it knew when it sent a segment is what passed here so long before.
//! Bounded: [`MOST_SENT`] segments and [`MOST_ACKS`] acknowledgements are remembered.

use std::collections::VecDeque;

use super::clock::Clock;
use super::found::{Found, Within};
use super::path::Path;
use super::size::Size;
use super::wait::{AT_ONCE_NS, Ack, Release, Wait, at_once, is_before};
use super::{Detail, Kind, Passed, Stall};
use crate::stream::{Moment, Side};
use crate::tcp::{Connection, Mark, Taken};

const MOST_SENT: usize = 256;
/// When so many are remembered, what was sent within a millisecond is remembered as one.
const MANY_SENT: usize = 32;
const TOGETHER_NS: i64 = 1_000_000;
const MOST_ACKS: usize = 64;
/// As with segments.
const MANY_ACKS: usize = 16;

/// A shorter pause is what programs and networks take.
const LEAST_PAUSE_NS: i64 = 2_000_000;
/// Timers that delay acknowledgements run for 40 ms or more (RFC 9293 section 3.8.6.3 allows 500); a busy machine may be
/// late by less.
const DELAYED_ACK_NS: i64 = 25_000_000;
/// So many acknowledgements that say nothing new tell of a loss (RFC 5681 section 3.2).
const DUPLICATE_ACKS: u8 = 3;
/// A sender that is told of a loss repeats the segment within this, besides the round trip (RFC 8985 section 6.2).
const REORDERING_NS: i64 = 10_000_000;
/// No timer for a lost segment runs out sooner (Linux; RFC 6298 section 2.4 has a second).
const LEAST_RTO_NS: i64 = 200_000_000;
/// Nor does the one for a segment that nobody acknowledged (RFC 8985 section 7.2: two round trips; here, what is no more
/// than that is a program that sends twice).
const LEAST_PROBE_NS: i64 = 5_000_000;
/// Nor later than this (Linux: two minutes).
const LONGEST_RTO_NS: i64 = 150_000_000_000;
/// Round trips nearby vary by so much.
const SCATTER_NS: i64 = 2_000_000;
/// A new connection may send so many segments before the first is acknowledged, however short they are (RFC 6928).
const INITIAL_WINDOW: u64 = 10;
/// After so long without data a sender begins with a small congestion window again.
const IDLE_NS: i64 = 200_000_000;

/// A segment with data; in positions.
#[derive(Clone, Copy, Debug)]
struct DataSegment {
    position: u64,
    end: u64,
    seen: Moment,
}

/// The latest segment that was sent again.
#[derive(Clone, Copy, Debug)]
struct Copy {
    position: u64,
    end: u64,
    seen: Moment,
    /// Its timestamp value.
    value: Option<u32>,
}

#[derive(Debug, Default)]
pub struct Sender {
    sent: VecDeque<DataSegment>,
    acks: VecDeque<Ack>,
    /// The acknowledgement before those in `acks`.
    ack_before: Option<Ack>,
    /// End of the furthest byte sent.
    high: u64,
    /// Latest segment with new data, and the latest that was not full.
    latest: Option<Moment>,
    small: Option<DataSegment>,
    /// What it had of the peer's stream by then.
    received: u64,
    received_by_small: u64,
    /// What it has acknowledged of the peer's stream, with its segment before this one.
    acknowledged_before: u64,
    /// The latest ended with what its program had written (PSH; RFC 9293 section 3.9.1.2).
    has_all: bool,
    size: Size,
    /// Bytes and segments sent since the latest pause, and the most segments before an earlier one.
    burst: u64,
    flight: u64,
    flown: u64,
    /// Of the segments of the flight, those that were not full.
    short: u64,
    /// The most that it had on its way at once since something was lost.
    proven: u64,
    /// It sends small segments while others are on their way: nothing is held (TCP_NODELAY).
    never_holds: bool,
    /// The peer's.
    clock: Clock,
    acked: u64,
    edge: Option<u64>,
    /// The largest window that the peer has opened.
    largest_window: u64,
    /// Acknowledgements that repeat the latest one, and when the first and the last of them came.
    duplicates: u8,
    first_duplicate_at: i64,
    duplicate_at: i64,
    /// The peer has data beyond a gap.
    has_gap: bool,
    /// What was sent before this is being repaired, and what began that.
    recovers_to: u64,
    recovery: Option<Kind>,
    /// Until it is acknowledged.
    unanswered: Option<Copy>,
    /// When a segment was last sent again.
    repeated: Option<Moment>,
    /// The peer's window is 0 since then; when it opened.
    closed: Option<Moment>,
    opened: Option<(Moment, Moment)>,
    was_probed: bool,
}

impl Sender {
    /// The peer takes segments of this size.
    pub fn may_send(&mut self, mss: Option<u16>) {
        self.size.announced(mss);
    }

    /// The peer's window is closed, and this side asks whether it still is.
    pub fn probed(&mut self) {
        self.was_probed |= self.closed.is_some();
    }

    /// The peer sent a segment with an acknowledgement. `window`: in bytes, where its scale is known.
    pub fn acknowledged(&mut self, side: Side, passed: &Passed<'_>, window: Option<u64>, found: &mut Found) {
        let Passed { segment, taken, seen, .. } = *passed;
        let position = taken.acked;
        let edge = window.map(|window| position + window);
        let value = segment.timestamps.map(|(value, _)| value);
        self.clock.note(value, seen.at);
        if position > self.acked {
            (self.duplicates, self.has_gap) = (0, false);
            self.copy_acknowledged(side, passed, found);
        } else if position == self.acked && self.high > position {
            let is_bare = taken.end == taken.position && segment.flags.is_plain();
            if is_bare && edge == self.edge || segment.sacks_beyond_gap {
                if self.duplicates == 0 {
                    self.first_duplicate_at = seen.at;
                }
                self.duplicates = self.duplicates.saturating_add(1);
                self.duplicate_at = seen.at;
            }
            self.has_gap |= segment.sacks_beyond_gap;
        }
        if position > self.acked || position == self.acked && edge != self.edge {
            self.largest_window = self.largest_window.max(window.unwrap_or(0));
            let (largest_window, stands) = (self.largest_window, taken.position);
            self.note(Ack { position, edge, largest_window, seen, value, stands });
        }
        self.acked = self.acked.max(position);
        self.edge = edge;
        if segment.flags.is_plain() {
            self.window_moved(segment.window == 0, seen);
        }
    }

    fn note(&mut self, ack: Ack) {
        if self.acks.len() >= MANY_ACKS
            && let Some(last) = self.acks.back_mut()
            && ack.seen.at - last.seen.at < TOGETHER_NS
        {
            (last.position, last.edge) = (ack.position, ack.edge);
            return;
        }
        if self.acks.len() >= MOST_ACKS {
            self.ack_before = self.acks.pop_front();
        }
        self.acks.push_back(ack);
    }

    fn window_moved(&mut self, is_closed: bool, seen: Moment) {
        if is_closed {
            self.closed.get_or_insert(seen);
        } else if let Some(closed) = self.closed.take() {
            self.opened = Some((closed, seen));
        }
    }

    /// Was the segment that was sent again acknowledged too soon for that?
    fn copy_acknowledged(&mut self, side: Side, passed: &Passed<'_>, found: &mut Found) {
        let Some(copy) = self.unanswered.take_if(|copy| passed.taken.acked >= copy.end) else { return };
        let echo = passed.segment.timestamps.map(|(_, echo)| echo);
        // RFC 3522 section 3.2: what is acknowledged was sent before the copy.
        let is_of_first = echo.zip(copy.value).is_some_and(|(echo, value)| is_before(echo, value));
        if is_of_first || passed.seen.at - copy.seen.at < Path::new(side, passed.tcp).far / 4 * 3 {
            found.was_late(side, (copy.position, copy.end));
        }
    }

    /// This side sent a segment, which was taken.
    pub fn sent(&mut self, taken: &Taken) {
        self.acknowledged_before = taken.acked;
    }

    /// This side sent a FIN without data: what is missing before it was due by then.
    pub fn ended(&mut self, passed: &Passed<'_>) {
        let &Passed { taken: &Taken { position, end, .. }, seen, .. } = passed;
        if position > self.high {
            self.remember(DataSegment { position, end, seen });
        }
    }

    /// This side sent data.
    pub fn data(&mut self, side: Side, passed: &Passed<'_>, found: &mut Found) {
        let Passed { taken, seen, .. } = *passed;
        if taken.mark == Some(Mark::Retransmit)
            || taken.mark == Some(Mark::OutOfOrder) && self.was_requested(seen, Path::new(side, passed.tcp))
        {
            if self.closed.is_some() {
                self.was_probed = true;
            } else {
                let path = Path::new(side, passed.tcp);
                self.was_closed(side, passed, path, found);
                self.repeated(side, passed, path, found);
            }
        } else if taken.end > self.high {
            self.went_on(side, passed, found);
        }
        if taken.end > self.high {
            let length = taken.end - taken.position;
            if self.high == 0 {
                // Whatever is acknowledged first, this was not before.
                let (position, edge, largest_window) = (taken.position, self.edge, self.largest_window);
                self.ack_before = Some(Ack { position, edge, largest_window, seen, value: None, stands: 0 });
            }
            self.size.saw(length, self.burst > 0);
            let sent = DataSegment { position: taken.position, end: taken.end, seen };
            let full = self.size.full(passed);
            if length < full || !length.is_multiple_of(full) {
                (self.small, self.received_by_small) = (Some(sent), taken.acked);
            }
            self.latest = Some(seen);
            (self.received, self.has_all) = (taken.acked, passed.segment.flags.psh());
            self.remember(sent);
            self.burst += length;
            self.flight += length.div_ceil(full);
            self.short += u64::from(!length.is_multiple_of(full));
            self.high = taken.end;
            self.proven = self.proven.max(self.high.saturating_sub(self.acked));
        }
    }

    /// Is this what the peer's acknowledgements asked for, and not just late? Those had the time to get there.
    fn was_requested(&self, seen: Moment, path: Path) -> bool {
        (self.duplicates >= DUPLICATE_ACKS || self.has_gap) && seen.at - self.first_duplicate_at >= path.near / 4 * 3
    }

    fn remember(&mut self, sent: DataSegment) {
        while self.sent.len() > MANY_SENT / 2 && self.sent.front().is_some_and(|first| first.end <= self.acked) {
            self.sent.pop_front();
        }
        if self.sent.len() >= MANY_SENT
            && let Some(last) = self.sent.back_mut()
            && last.end == sent.position
            && sent.seen.at - last.seen.at < TOGETHER_NS
        {
            last.end = sent.end;
            return;
        }
        if self.sent.len() >= MOST_SENT {
            self.sent.pop_front();
        }
        self.sent.push_back(sent);
    }

    /// A segment with new data: what kept it, if it is late?
    fn went_on(&mut self, side: Side, passed: &Passed<'_>, found: &mut Found) {
        let Passed { segment, taken, seen, .. } = *passed;
        let Some(latest) = self.latest else { return };
        let full = self.size.full(passed);
        let is_small = taken.end - taken.position < full && !segment.flags.fin();
        // Sent while a small one was on its way: not even here had that been acknowledged.
        self.never_holds |=
            is_small && self.small.is_some_and(|small| self.acked < small.end && small.end == self.high);
        let pause = seen.at - latest.at;
        if pause < LEAST_PAUSE_NS {
            self.opened = None;
            return;
        }
        let path = Path::new(side, passed.tcp);
        let was_closed = self.was_closed(side, passed, path, found);
        if !was_closed && self.acked >= self.recovers_to {
            let wait = Wait { side, passed, path, latest, full };
            let stall = (self.began(&wait).or_else(|| self.held(&wait)))
                .or_else(|| self.limited(&wait))
                .or_else(|| self.silent(&wait));
            stall.into_iter().for_each(|(stall, within)| found.push(stall, within));
        }
        if pause >= IDLE_NS {
            // RFC 5681 section 4.1: the congestion window begins anew.
            (self.proven, self.flown) = (0, 0);
        }
        self.flown = self.flown.max(self.flight);
        (self.burst, self.flight, self.short) = (0, 0, 0);
    }

    /// The first segment since the peer's window opened: had it waited for that? It goes out at once then, or this side had
    /// asked for a window.
    fn was_closed(&mut self, side: Side, passed: &Passed<'_>, path: Path, found: &mut Found) -> bool {
        let Some((start, end)) = self.opened.take() else { return false };
        let was_probed = std::mem::take(&mut self.was_probed);
        let is_at_once = passed.seen.at - end.at <= path.near + at_once(end.at - start.at);
        if was_probed || is_at_once {
            let (kind, detail, released) = (Kind::ZeroWindow, None, Some(end));
            let confidence = if was_probed { 0.95 } else { 0.8 };
            let stall =
                Stall { kind, detail, side, start, end, released, ack_delay_ns: None, confidence, unfinished: false };
            found.push(stall, Within::Any);
        }
        was_probed || is_at_once
    }

    /// Was it the first window that was full? It counts segments, so that those may be small; a few at a time, as those of
    /// a handshake, leave it as it was (RFC 7661 section 4.1).
    fn began(&self, wait: &Wait<'_>) -> Option<(Stall, Within)> {
        if self.flight != INITIAL_WINDOW || self.flown > INITIAL_WINDOW / 2 || wait.pause() < wait.path.whole() / 2 {
            return None;
        }
        let release = self.releases(wait, wait.latest, 3).next()?;
        let nothing_before = self.high.saturating_sub(release.before.position) == self.burst;
        let is_new = release.ack.position > release.before.position && !self.is_not_got(wait, release.ack);
        let fits = release.before.edge.is_none_or(|edge| self.high + wait.length().min(wait.full) <= edge);
        (nothing_before && is_new && fits).then(|| (wait.stall(Kind::SlowStart, Some(release), 0.8), Within::Any))
    }

    /// Was it held because it is small, and a small one before it was not acknowledged (RFC 9293 section 3.7.4; Linux
    /// holds it for a small one only, others for any)?
    fn held(&self, wait: &Wait<'_>) -> Option<(Stall, Within)> {
        if self.never_holds || wait.length() >= wait.full {
            return None;
        }
        let small = self.small.filter(|small| self.acked >= small.end);
        let first = small.map_or(wait.latest, |small| small.seen);
        // Between the two, acknowledgements let the sender go on: the congestion window keeps it.
        let knew_by = wait.latest.at - wait.path.near;
        let went_on = self.acks.iter().any(|ack| first.at < ack.seen.at && ack.seen.at <= knew_by);
        if went_on && knew_by - first.at >= LEAST_PAUSE_NS {
            return None;
        }
        // What was lost counts from when it was sent again.
        let first = self.repeated.map_or(first, |repeated| first.max(repeated));
        let frees = |release: &Release| match small {
            Some(small) => release.before.position < small.end && small.end <= release.ack.position,
            None => self.burst < 4 * wait.full && release.ack.position >= self.high,
        };
        let release =
            self.releases(wait, first, 8).find(|release| frees(release) && !self.is_not_got(wait, release.ack))?;
        let delay = (release.ack.seen.at - first.at - wait.path.far).max(0);
        let is_delayed = delay >= DELAYED_ACK_NS;
        // A round trip, or a timer: nothing else makes an acknowledgement come when it does. And programs often enough take as
        // long as a round trip: what waits for no more goes out at once indeed.
        let is_released = wait.path.is_at_once(wait.passed.seen.at - release.ack.seen.at, AT_ONCE_NS.0, 8);
        if !is_delayed && (delay > SCATTER_NS.max(wait.path.whole() / 2) || !is_released) {
            return None;
        }
        let received = small.map_or(self.received, |_| self.received_by_small);
        let (within, confidence) = match (wait.passed.taken.acked > received, small) {
            // What it got may be what it answers, but for a client that owes the first request.
            (true, _) if wait.side == Side::Server => return None,
            (true, _) => (Within::Idle, 0.6),
            (false, Some(_)) if is_delayed => (Within::Any, 0.9),
            (false, _) => (Within::Any, 0.7),
        };
        let (late, delay) = self.clock.delayed(release.ack, delay);
        let detail = Some(if is_delayed { late } else { Detail::RoundTrip });
        let stall = wait.stall(Kind::Nagle, Some(release), confidence);
        Some((Stall { detail, start: first, ack_delay_ns: Some(delay), ..stall }, within))
    }

    /// Was the peer's window full, or the congestion window?
    fn limited(&self, wait: &Wait<'_>) -> Option<(Stall, Within)> {
        let (path, full) = (wait.path, wait.full);
        if wait.pause() < path.whole() / 4 {
            return None;
        }
        let Release { ack, before } = self.releases(wait, wait.latest, 3).next()?;
        let on_its_way = self.high.saturating_sub(before.position);
        let release = Some(Release { ack, before });
        let is_new = ack.position > before.position && !self.is_not_got(wait, ack);
        // More than the window allows: the acknowledgements come from somewhere nearer than the round trip tells.
        if before.edge.is_some_and(|edge| self.high > edge + full) {
            return None;
        }
        let window = |ack: Ack| ack.edge.map(|edge| edge - ack.position);
        let by_window = || {
            let least = window(before).min(window(ack));
            let is_read =
                ack.position > before.position && least.is_some_and(|least| least > before.largest_window / 2);
            let kind = if is_read { Kind::WindowLimited } else { Kind::Receiver };
            Some((wait.stall(kind, release, 0.9), Within::Any))
        };
        let fits = |room: u64| before.edge.is_none_or(|edge| self.high + room <= edge);
        if !fits(wait.length().min(full)) {
            return by_window();
        }
        // All that it sent since the pause before, most of what is on its way, no less than it had before.
        let is_flight = wait.pause() >= path.whole() / 2
            && self.burst >= 2 * full
            && self.burst * 2 >= on_its_way
            && on_its_way * 5 >= self.proven * 4;
        let ended_full = self.small.is_none_or(|small| small.end < self.high);
        if is_new && ended_full && is_flight {
            let confidence = if on_its_way >= 4 * full { 0.8 } else { 0.5 };
            let is_smaller = self.flown < self.flight && self.flight < INITIAL_WINDOW && on_its_way == self.burst;
            let detail = is_smaller.then_some(Detail::SmallWindow);
            return Some((Stall { detail, ..wait.stall(Kind::SlowStart, release, confidence) }, Within::Any));
        }
        // RFC 9293 section 3.8.6.2.1: a sender waits until it can send a good part of the window.
        if ended_full && !fits(window(before).unwrap_or(0) / 3) {
            return by_window();
        }
        // What stands beyond what the sender had acknowledged is not echoed yet (RFC 7323 section 4.3).
        let is_got = is_new || ack.position > before.position && ack.stands > self.acknowledged_before;
        if is_got && self.was_crowded(wait, on_its_way) {
            let confidence = if self.mostly_short() { 0.6 } else { 0.5 };
            return Some((wait.stall(Kind::SlowStart, release, confidence), Within::Any));
        }
        if !is_new || !ended_full {
            return None;
        }
        let delay = ack.seen.at - wait.latest.at - path.far;
        let is_delayed = delay >= DELAYED_ACK_NS && wait.length() >= full && ack.position >= self.high;
        is_delayed.then(|| (wait.delayed(release, self.clock.delayed(ack, delay)), Within::Any))
    }

    /// Was there nothing to send, and nothing from the peer in the meantime that it may answer?
    fn silent(&self, wait: &Wait<'_>) -> Option<(Stall, Within)> {
        let is_silent = wait.pause() >= wait.path.silence();
        let may_answer = wait.passed.taken.acked > self.received;
        (is_silent && self.has_all && !may_answer).then(|| (wait.stall(Kind::Sender, None, 0.7), Within::Message))
    }

    /// Did a flight that ends in a short segment fill the congestion window all the same? That counts segments (Linux), and
    /// what waits behind them leaves as full ones. A program that writes little, again and again, would go on with little,
    /// had it paused. Where only some are short, the next one must not be an answer.
    fn was_crowded(&self, wait: &Wait<'_>, on_its_way: u64) -> bool {
        let may_answer = wait.passed.taken.acked > self.received;
        wait.path.is_measured
            && self.never_holds
            && self.flight >= INITIAL_WINDOW
            && self.flight > self.flown
            && on_its_way == self.burst
            && wait.length() >= wait.full
            && wait.pause() >= wait.path.whole() / 2
            && (self.mostly_short() || self.short > 1 && !may_answer)
    }

    fn mostly_short(&self) -> bool {
        self.short * 2 > self.flight
    }

    /// RFC 7323 section 4.3: a segment echoes the latest timestamp that its sender got.
    fn is_not_got(&self, wait: &Wait<'_>, ack: Ack) -> bool {
        let echo = wait.passed.segment.timestamps.map(|(_, echo)| echo);
        ack.value.zip(echo).is_some_and(|(value, echo)| is_before(echo, value))
    }

    /// The acknowledgements with something new that the sender got since it sent a segment at `since`, and right before
    /// it went on, if round trips vary by this share of them.
    fn releases(&self, wait: &Wait<'_>, since: Moment, share: i64) -> impl Iterator<Item = Release> {
        let (seen, path) = (wait.passed.seen.at, wait.path);
        let soon = at_once(seen - since.at);
        let latest_before = self.acks.iter().rposition(|ack| ack.seen.at <= since.at - path.near);
        let mut before = latest_before.map_or(self.ack_before, |at| self.acks.get(at).copied());
        let after = self.acks.range(latest_before.map_or(0, |at| at + 1)..);
        let pairs = after.filter_map(move |&ack| before.replace(ack).map(|before| Release { ack, before }));
        pairs.filter(move |Release { ack, .. }| path.is_at_once(seen - ack.seen.at, soon, share))
    }

    /// A segment that was sent again.
    fn repeated(&mut self, side: Side, passed: &Passed<'_>, path: Path, found: &mut Found) {
        let Passed { segment, taken, seen, .. } = *passed;
        let (position, end) = (taken.position, taken.end);
        let first = self.sent.iter().find(|sent| sent.position <= position && position < sent.end).copied();
        let had_arrived = self.acks.iter().find(|ack| ack.position >= end).map(|ack| ack.seen);
        let latest = self.latest;
        // It was due when the first one behind it passed, or after all others.
        let due = || self.sent.iter().find(|sent| sent.position >= end).map(|sent| sent.seen).or(latest);
        let Some(start) = first.map(|first| first.seen).or_else(due) else { return };
        let went_on = had_arrived.is_some() && latest.is_some_and(|latest| latest.at - start.at > path.whole());
        let start = latest.filter(|_| went_on).unwrap_or(start);

        let is_reported = self.duplicates >= DUPLICATE_ACKS || self.has_gap;
        let is_soon = seen.at - self.duplicate_at <= path.near + REORDERING_NS.max(path.whole() / 2);
        let quiet_since = latest.map_or(start.at, |latest| latest.at.max(self.duplicate_at));
        let goes_on = position < self.recovers_to && seen.at - quiet_since < LEAST_RTO_NS;
        let kind = match self.recovery.filter(|_| goes_on) {
            Some(kind) => kind,
            None if is_reported && is_soon => Kind::FastRetransmit,
            None => Kind::Rto,
        };
        let of_syn = first.is_some_and(|first| passed.tcp.syn.is_some_and(|syn| syn == first.seen));
        let detail = match had_arrived {
            // The SYN-ACK acknowledged the SYN alone: its data goes out again at once.
            None if of_syn && self.acked <= position && self.was_answered(seen, path) => Detail::Refused,
            // A server sends its SYN-ACK again as long as it has no room for the connection, whatever the client sends.
            None if side == Side::Client && passed.tcp.is_unaccepted() => Detail::Unaccepted,
            Some(acked) if path.has_arrived(seen.at - acked.at) => Detail::Ack,
            Some(_) => Detail::Spurious,
            None if end >= self.high => Detail::Tail,
            None => Detail::Middle,
        };
        let confidence = if first.is_some() { 0.9 } else { 0.7 };
        let mut stall = Stall {
            kind,
            detail: Some(detail),
            side,
            start,
            end: seen,
            released: None,
            ack_delay_ns: None,
            confidence: path.confidence(confidence),
            unfinished: false,
        };
        if self.is_cut_down(first, passed) {
            let is_reported = seen.at - start.at < LEAST_RTO_NS;
            stall.detail = Some(if is_reported { Detail::Icmp } else { Detail::BlackHole });
            stall.kind = Kind::Pmtu;
            self.size.lower(end - position);
        }
        let since = self.repeated.map_or(start.at, |repeated| repeated.at.max(start.at));
        let least = LEAST_PROBE_NS.max(path.whole());
        let is_too_soon =
            stall.kind == Kind::Rto && detail != Detail::Refused && !goes_on && seen.at - start.at < least;
        if !is_too_soon && seen.at - since <= LONGEST_RTO_NS {
            found.push_lost(stall, (position, end));
        }
        let value = segment.timestamps.map(|(value, _)| value);
        (self.unanswered, self.repeated) = (Some(Copy { position, end, seen, value }), Some(seen));
        (self.recovery, self.recovers_to, self.proven) = (Some(kind), self.high, 0);
    }

    /// The connection or the capture ends at `end`: what kept this side's next byte until then. A peer that closed its window,
    /// and was asked for more; a segment that was sent again, and still not acknowledged; or a program that gave no more.
    pub fn unfinished(&self, side: Side, tcp: &Connection, end: Moment, found: &mut Found) {
        let stall = |kind, detail, start, confidence| {
            let (released, ack_delay_ns) = (None, None);
            Stall { kind, detail, side, start, end, released, ack_delay_ns, confidence, unfinished: true }
        };
        let path = Path::new(side, tcp);
        let has_arrived = self.closed.is_none() && self.has_all && self.acked >= self.high;
        let is_last = |last: &Moment| self.latest == Some(*last) && end.at - last.at >= path.silence();
        if let Some(latest) = tcp.last_byte.filter(|last| has_arrived && is_last(last)) {
            found.push(stall(Kind::Sender, None, latest, 0.7), Within::Message);
        }
        let has_ended = |side| tcp.first_fin(side).is_some();
        let is_lost = |copy: &Copy| copy.end > self.acked && !(has_ended(side) && has_ended(side.peer()));
        let silent_ns = LEAST_PROBE_NS.max(path.whole())..=LONGEST_RTO_NS;
        if let Some(closed) = self.closed.filter(|_| !has_ended(side)) {
            // Without a probe, only a message that is not complete tells that there was more to send.
            let (within, confidence) = if self.was_probed { (Within::Any, 0.95) } else { (Within::Message, 0.6) };
            found.push(stall(Kind::ZeroWindow, None, closed, confidence), within);
        } else if let Some(copy) = self.unanswered.filter(is_lost)
            && silent_ns.contains(&(end.at - copy.seen.at))
        {
            let detail = if copy.end >= self.high { Detail::Tail } else { Detail::Middle };
            let stall = stall(Kind::Rto, Some(detail), copy.seen, path.confidence(0.9));
            found.push_lost(stall, (copy.position, copy.end));
        }
    }

    /// Did the peer's latest acknowledgement come just now?
    fn was_answered(&self, seen: Moment, path: Path) -> bool {
        self.acks.back().is_some_and(|ack| seen.at - ack.seen.at <= path.near + REORDERING_NS)
    }

    /// Is less of a full segment sent again than there was: as much as the path carries? Behind the point where large
    /// ones are lost, no full one has passed, and more is missing than is sent again.
    fn is_cut_down(&self, first: Option<DataSegment>, passed: &Passed<'_>) -> bool {
        let length = passed.taken.end - passed.taken.position;
        let full = self.size.full(passed);
        let is_shorter = length < full && length >= Size::LEAST_MSS / 2;
        is_shorter
            && match first {
                Some(first) => {
                    let first_length = first.end - first.position;
                    first.position == passed.taken.position
                        && passed.taken.end < first.end
                        && first_length.is_multiple_of(full)
                        && !first_length.is_multiple_of(length)
                }
                None => {
                    let behind = self.sent.iter().find(|sent| sent.position >= passed.taken.end);
                    self.size.is_below(full) && behind.is_some_and(|behind| behind.position > passed.taken.end)
                }
            }
    }
}
