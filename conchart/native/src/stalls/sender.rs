//! One side's data, and what its peer says of it: what kept its next segment.
//!
//! In: this side's segments with data, and all of the peer's. Out: stalls, each when the segment comes that ends it.
//!
//! Whatever a sender learnt, it learnt after the capture point saw it, or before, by the round trip between the two
//! (`rtt`). So what it knew when it sent a segment is what passed here so long before.
//! Bounded: [`MOST_SENT`] segments and [`MOST_ACKS`] acknowledgements are remembered.

use std::collections::VecDeque;

use super::found::Found;
use super::path::Path;
use super::{Detail, Kind, Passed, Stall};
use crate::stream::{Moment, Side};
use crate::tcp::Mark;

const MOST_SENT: usize = 256;
/// When so many are remembered, what was sent within a millisecond is remembered as one.
const MANY_SENT: usize = 32;
const TOGETHER_NS: i64 = 1_000_000;
const MOST_ACKS: usize = 32;

/// A shorter pause is what programs and networks take.
const LEAST_PAUSE_NS: i64 = 2_000_000;
/// A program that pauses for less is busy, not silent.
const LEAST_SILENCE_NS: i64 = 10_000_000;
/// How soon after an acknowledgement a segment goes out that waited for it, besides what the network adds: an eighth of
/// the pause, within these bounds.
const AT_ONCE_NS: (i64, i64) = (200_000, 1_500_000);
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
/// After so long without data a sender begins with a small congestion window again.
const IDLE_NS: i64 = 200_000_000;

/// A segment with data; in positions.
#[derive(Clone, Copy, Debug)]
struct Sent {
    position: u64,
    end: u64,
    seen: Moment,
}

/// An acknowledgement that says something new.
#[derive(Clone, Copy, Debug)]
struct Ack {
    position: u64,
    /// The end of the window that it opens; `None` where that is not known.
    edge: Option<u64>,
    seen: Moment,
    /// Its timestamp value (RFC 7323).
    value: Option<u32>,
}

/// The latest segment that was sent again.
#[derive(Clone, Copy, Debug)]
struct Copy {
    position: u64,
    end: u64,
    at: i64,
    /// Its timestamp value.
    value: Option<u32>,
}

/// What a full segment of this side holds.
#[derive(Debug, Default)]
struct Size {
    /// The peer's MSS, as its SYN says.
    mss: Option<u16>,
    /// The largest segment that is no larger than that, and whether there was more than one of that size.
    largest: u64,
    is_usual: bool,
    /// What the path turned out to carry.
    lowered: Option<u64>,
}

impl Size {
    /// Ethernet's, where no SYN was captured.
    const USUAL_MSS: u64 = 1_460;
    /// Smaller ones are no full segments, however often they come (RFC 9293 section 3.7.1).
    const LEAST_MSS: u64 = 536;
    const TIMESTAMPS: u64 = 12;

    fn most(&self) -> u64 {
        self.mss.map_or(Self::USUAL_MSS, u64::from)
    }

    /// Bytes of a full segment like this one.
    fn full(&self, passed: &Passed<'_>) -> u64 {
        let options = if passed.segment.timestamps.is_some() { Self::TIMESTAMPS } else { 0 };
        let most = if self.is_usual && self.largest >= Self::LEAST_MSS { self.largest } else { self.most() - options };
        self.lowered.map_or(most, |lowered| lowered.min(most)).max(1)
    }

    fn saw(&mut self, length: u64) {
        // More than fits a segment was joined, or not yet cut, by a network card.
        if length <= self.most() && length >= self.largest {
            (self.is_usual, self.largest) = (length == self.largest, length);
        }
    }
}

#[derive(Debug, Default)]
pub struct Sender {
    sent: VecDeque<Sent>,
    acks: VecDeque<Ack>,
    /// The acknowledgement before those in `acks`.
    ack_before: Option<Ack>,
    /// End of the furthest byte sent.
    high: u64,
    /// Latest segment with new data, and whether it was not full.
    latest: Option<(Moment, bool)>,
    /// What it had of the peer's stream by then.
    received: u64,
    size: Size,
    /// Bytes sent since the latest pause.
    burst: u64,
    /// The most that it had on its way at once since something was lost.
    proven: u64,
    /// It sends small segments while others are on their way: nothing is held (TCP_NODELAY).
    never_holds: bool,
    acked: u64,
    edge: Option<u64>,
    /// The largest window that the peer has opened.
    largest_window: u64,
    /// Acknowledgements that repeat the latest one, and when the last of them came.
    duplicates: u8,
    duplicate_at: i64,
    /// The peer has data beyond a gap.
    has_gap: bool,
    /// What was sent before this is being repaired, and what began that.
    recovers_to: u64,
    recovery: Option<Kind>,
    copy: Option<Copy>,
    /// The peer's window is 0 since then; when it opened.
    closed: Option<Moment>,
    opened: Option<(Moment, Moment)>,
    was_probed: bool,
}

/// What ended a pause: an acknowledgement that the sender got right before it went on, and the one before.
#[derive(Clone, Copy)]
struct Release {
    ack: Ack,
    before: Ack,
}

impl Sender {
    /// The peer takes segments of this size.
    pub fn may_send(&mut self, mss: Option<u16>) {
        self.size.mss = self.size.mss.or(mss.filter(|mss| u64::from(*mss) > Size::TIMESTAMPS));
    }

    /// The peer's window is closed, and this side asks whether it still is.
    pub fn probed(&mut self) {
        self.was_probed |= self.closed.is_some();
    }

    /// The peer sent a segment with an acknowledgement. `window`: in bytes, where its scale is known.
    pub fn acknowledged(
        &mut self,
        side: Side,
        passed: &Passed<'_>,
        window: Option<u64>,
        path: Path,
        found: &mut Found,
    ) {
        let Passed { segment, taken, seen } = *passed;
        if let Some(bytes) = taken.received_twice {
            // RFC 2883.
            found.had_arrived(side, bytes);
        }
        let position = taken.acked;
        let edge = window.map(|window| position + window);
        if position > self.acked {
            (self.duplicates, self.has_gap) = (0, false);
            self.copy_acknowledged(side, passed, path, found);
        } else if position == self.acked && self.high > position {
            let is_bare = taken.end == taken.position && segment.flags.is_plain();
            if is_bare && edge == self.edge || segment.sacks_beyond_gap {
                self.duplicates = self.duplicates.saturating_add(1);
                self.duplicate_at = seen.at;
            }
            self.has_gap |= segment.sacks_beyond_gap;
        }
        if position > self.acked || position == self.acked && edge != self.edge {
            if self.acks.len() >= MOST_ACKS {
                self.ack_before = self.acks.pop_front();
            }
            let value = segment.timestamps.map(|(value, _)| value);
            self.acks.push_back(Ack { position, edge, seen, value });
        }
        self.acked = self.acked.max(position);
        self.edge = edge;
        self.largest_window = self.largest_window.max(window.unwrap_or(0));
        if segment.flags.is_plain() {
            self.window_moved(side, segment.window == 0, seen, found);
        }
    }

    fn window_moved(&mut self, side: Side, is_closed: bool, seen: Moment, found: &mut Found) {
        if is_closed {
            self.closed.get_or_insert(seen);
        } else if let Some(closed) = self.closed.take() {
            if std::mem::take(&mut self.was_probed) {
                was_closed(side, (closed, seen), 0.95, found);
            } else {
                self.opened = Some((closed, seen));
            }
        }
    }

    /// Was the segment that was sent again acknowledged too soon for that?
    fn copy_acknowledged(&mut self, side: Side, passed: &Passed<'_>, path: Path, found: &mut Found) {
        let Some(copy) = self.copy.take_if(|copy| passed.taken.acked >= copy.end) else { return };
        let echo = passed.segment.timestamps.map(|(_, echo)| echo);
        // RFC 3522 section 3.2: what is acknowledged was sent before the copy.
        let is_of_first = echo.zip(copy.value).is_some_and(|(echo, value)| is_before(echo, value));
        if is_of_first || passed.seen.at - copy.at < path.far / 4 * 3 {
            found.was_late(side, (copy.position, copy.end));
        }
    }

    /// This side sent data.
    pub fn data(&mut self, side: Side, passed: &Passed<'_>, path: Path, found: &mut Found) {
        let Passed { taken, seen, .. } = *passed;
        if taken.mark == Some(Mark::Retransmit) {
            if self.closed.is_some() {
                self.was_probed = true;
            } else {
                self.repeated(side, passed, path, found);
            }
        } else if taken.end > self.high {
            self.went_on(side, passed, path, found);
        }
        if taken.end > self.high {
            let length = taken.end - taken.position;
            if self.high == 0 {
                // Whatever is acknowledged first, this was not before.
                self.ack_before = Some(Ack { position: taken.position, edge: self.edge, seen, value: None });
            }
            self.size.saw(length);
            self.latest = Some((seen, !length.is_multiple_of(self.size.full(passed))));
            self.received = taken.acked;
            self.remember(Sent { position: taken.position, end: taken.end, seen });
            self.burst += length;
            self.high = taken.end;
            self.proven = self.proven.max(self.high.saturating_sub(self.acked));
        }
    }

    fn remember(&mut self, sent: Sent) {
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
    fn went_on(&mut self, side: Side, passed: &Passed<'_>, path: Path, found: &mut Found) {
        let Passed { segment, taken, seen } = *passed;
        let opened = self.opened.take();
        let Some((latest, is_after_small)) = self.latest else { return };
        if is_after_small && taken.end - taken.position < self.size.full(passed) && !segment.flags.fin() {
            // Sent while a small one was on its way: not even here had that been acknowledged.
            self.never_holds |= self.acked < self.high;
        }
        let pause = seen.at - latest.at;
        if pause < LEAST_PAUSE_NS {
            return;
        }
        match opened.filter(|(_, opened)| seen.at - opened.at <= path.near + at_once(pause)) {
            Some(closed) => was_closed(side, closed, 0.8, found),
            None => {
                self.cause(side, passed, (latest, is_after_small), path).into_iter().for_each(|stall| found.push(stall))
            }
        }
        if pause >= IDLE_NS {
            // RFC 5681 section 4.1: the congestion window begins anew.
            self.proven = 0;
        }
        self.burst = 0;
    }

    /// What kept this segment, the first after a pause.
    fn cause(
        &self,
        side: Side,
        passed: &Passed<'_>,
        (latest, is_after_small): (Moment, bool),
        path: Path,
    ) -> Option<Stall> {
        let Passed { taken, seen, .. } = *passed;
        if self.acked < self.recovers_to {
            return None;
        }
        let stall = |kind, release: Option<Release>, confidence| Stall {
            kind,
            detail: None,
            side,
            start: latest,
            end: seen,
            released: release.map(|release| release.ack.seen),
            ack_delay_ns: None,
            confidence: path.confidence(confidence),
        };
        let (pause, full) = (seen.at - latest.at, self.size.full(passed));
        let length = taken.end - taken.position;
        // What it got from its peer in the meantime may be what it answers.
        let answers = taken.acked > self.received;
        if !answers
            && length < full
            && !self.never_holds
            && let Some(release) =
                self.releases(passed, latest, path, 8).find(|release| release.ack.position >= self.high)
            && (is_after_small || self.burst < 4 * full)
        {
            let delay = (release.ack.seen.at - latest.at - path.far).max(0);
            let is_delayed = delay >= DELAYED_ACK_NS;
            // A round trip, or a timer: nothing else makes an acknowledgement come when it does.
            if is_delayed || delay <= SCATTER_NS.max(path.whole() / 2) {
                let confidence = if is_delayed && is_after_small { 0.9 } else { 0.7 };
                return Some(Stall { ack_delay_ns: Some(delay), ..stall(Kind::Nagle, Some(release), confidence) });
            }
        }
        let release = self.releases(passed, latest, path, 3).next();
        if let Some(release) = release
            && pause >= path.whole() / 2
        {
            let before = release.before;
            let on_its_way = self.high.saturating_sub(before.position);
            if let Some(edge) = before.edge
                && self.high + length.min(full) > edge
            {
                let is_full_window = edge - before.position >= self.largest_window / 2;
                let is_read = release.ack.position > before.position && is_full_window;
                let kind = if is_read { Kind::WindowLimited } else { Kind::Receiver };
                return Some(stall(kind, Some(release), 0.9));
            }
            let is_flight = self.burst >= 2 * full && self.burst * 2 >= on_its_way && on_its_way * 5 >= self.proven * 4;
            if release.ack.position > before.position && !is_after_small && is_flight {
                let confidence = if on_its_way >= 4 * full { 0.8 } else { 0.5 };
                return Some(stall(Kind::SlowStart, Some(release), confidence));
            }
            let delay = release.ack.seen.at - latest.at - path.far;
            if delay >= DELAYED_ACK_NS && !is_after_small && length >= full && release.ack.position >= self.high {
                return Some(Stall { ack_delay_ns: Some(delay), ..stall(Kind::DelayedAck, Some(release), 0.6) });
            }
        }
        let is_silent = pause >= LEAST_SILENCE_NS.max(2 * path.whole());
        (is_silent && !answers).then(|| stall(Kind::Sender, None, 0.7))
    }

    /// The acknowledgements with something new that the sender got since it sent `latest`, and right before it sent this
    /// segment, if round trips vary by this share of them.
    fn releases(&self, passed: &Passed<'_>, latest: Moment, path: Path, share: i64) -> impl Iterator<Item = Release> {
        let echo = passed.segment.timestamps.map(|(_, echo)| echo);
        let seen = passed.seen.at;
        let soon = at_once(seen - latest.at);
        let before = self.ack_before.into_iter().chain(self.acks.iter().copied());
        let after = before.clone().skip(1);
        before.zip(after).map(|(before, ack)| Release { ack, before }).filter(move |Release { ack, .. }| {
            // RFC 7323 section 4.3: what it echoes is the latest that it got.
            let is_got = ack.value.zip(echo).is_none_or(|(value, echo)| !is_before(echo, value));
            path.is_at_once(seen - ack.seen.at, soon, share) && ack.seen.at > latest.at - path.near && is_got
        })
    }

    /// A segment that was sent again.
    fn repeated(&mut self, side: Side, passed: &Passed<'_>, path: Path, found: &mut Found) {
        let Passed { segment, taken, seen } = *passed;
        let (position, end) = (taken.position, taken.end);
        let first = self.sent.iter().find(|sent| sent.position <= position && position < sent.end).copied();
        let had_arrived = self.acks.iter().find(|ack| ack.position >= end).map(|ack| ack.seen);
        let latest = self.latest.map(|(latest, _)| latest);
        // It was due when the first one behind it passed, or after all others.
        let due = || self.sent.iter().find(|sent| sent.position >= end).map(|sent| sent.seen).or(latest);
        let start = if had_arrived.is_some() { latest } else { first.map(|first| first.seen).or_else(due) };
        let Some(start) = start else { return };

        let is_told = self.duplicates >= DUPLICATE_ACKS || self.has_gap;
        let is_soon = seen.at - self.duplicate_at <= path.near + REORDERING_NS.max(path.whole() / 2);
        let quiet_since = latest.map_or(start.at, |latest| latest.at.max(self.duplicate_at));
        let goes_on = position < self.recovers_to && seen.at - quiet_since < LEAST_RTO_NS;
        let kind = match self.recovery.filter(|_| goes_on) {
            Some(kind) => kind,
            None if is_told && is_soon => Kind::FastRetransmit,
            None => Kind::Rto,
        };
        let detail = match had_arrived {
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
        };
        if let Some(first) = first.filter(|first| self.is_cut_down(*first, passed)) {
            (stall.kind, stall.detail, stall.start) = (Kind::Pmtu, None, first.seen);
            self.size.lowered = Some(end - position);
        }
        let since = self.copy.map_or(start.at, |copy| copy.at.max(start.at));
        let is_too_soon = kind == Kind::Rto && !goes_on && seen.at - start.at < LEAST_PROBE_NS.max(path.whole());
        if !is_too_soon && seen.at - since <= LONGEST_RTO_NS {
            found.push_lost(stall, (position, end));
        }
        let value = segment.timestamps.map(|(value, _)| value);
        self.copy = Some(Copy { position, end, at: seen.at, value });
        (self.recovery, self.recovers_to, self.proven) = (Some(kind), self.high, 0);
    }

    /// Is less of a full segment sent again than there was: as much as the path carries?
    fn is_cut_down(&self, first: Sent, passed: &Passed<'_>) -> bool {
        let length = passed.taken.end - passed.taken.position;
        let first_length = first.end - first.position;
        let full = self.size.full(passed);
        first.position == passed.taken.position
            && passed.taken.end < first.end
            && length < full
            && length >= Size::LEAST_MSS / 2
            && first_length.is_multiple_of(full)
            && !first_length.is_multiple_of(length)
    }
}

/// The peer's window was closed from one moment to the other.
fn was_closed(side: Side, (start, end): (Moment, Moment), confidence: f64, found: &mut Found) {
    let (kind, detail) = (Kind::ZeroWindow, None);
    found.push(Stall { kind, detail, side, start, end, released: Some(end), ack_delay_ns: None, confidence });
}

/// Is a timestamp value older than another (RFC 7323 section 5.2)?
fn is_before(one: u32, other: u32) -> bool {
    one.wrapping_sub(other).cast_signed() < 0
}

/// How soon a segment goes out that waited for so long.
fn at_once(pause: i64) -> i64 {
    (pause / 8).clamp(AT_ONCE_NS.0, AT_ONCE_NS.1)
}
