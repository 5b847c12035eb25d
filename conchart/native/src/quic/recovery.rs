//! What was lost and sent again, and how long packets take: packet numbers against ACK ranges (RFC 9002).
//!
//! In: the packets of one packet number space that were opened, and what their ACK frames say. Out: [`Held`], one for
//! each range of bytes that was sent again, and the shortest round trip to each end. A side that repeats bytes after
//! later ones were acknowledged knew of the loss (section 6.1); otherwise a timer ran out (section 6.2). Bounded:
//! [`MOST`] packets of each side are remembered. Non-goals: losses that nobody repaired.

use std::collections::VecDeque;

use super::frame::Ack;
use crate::stream::{BySide, Moment, Side};

/// Packets of one side that are remembered.
const MOST: usize = 512;

/// No probe timeout is shorter (RFC 9002 section 6.2.1: three round trips at first, and a granularity of 1 ms).
const LEAST_PTO_NS: i64 = 5_000_000;
/// So many packets may be lost at the end of a flight, with their probes, for that end to be told.
const MOST_PROBES: u64 = 8;

/// So many pieces of a ClientHello in one packet are remembered.
const MOST_PIECES: usize = 64;

/// What the other end may wait before it acknowledges, in units of 2^3 microseconds unless it says otherwise (RFC 9000
/// section 18.2).
const DELAY_UNIT_NS: u64 = 8_000;

/// Why bytes did not come, or could not be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Why {
    /// They were lost, and sent again as later ones were acknowledged.
    Loss,
    /// They were lost, and sent again when a timer ran out, the probe timeout.
    Pto,
    /// The peer's flow control did not allow them.
    FlowControl,
    /// The peer's window for the stream of HTTP/2, or for all of its streams, was closed (RFC 9113 section 5.2).
    StreamWindow,
    ConnectionWindow,
    /// Their header block refers to fields that had not come yet (RFC 9204 section 2.1.2).
    Qpack,
}

/// A stretch in which the next byte did not come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Held {
    pub why: Why,
    /// Whose byte it was.
    pub side: Side,
    pub start: Moment,
    pub end: Moment,
    /// The peer's packet that ended the wait, where one did.
    pub released: Option<Moment>,
    /// Nothing had been sent behind what was lost.
    pub is_tail: bool,
    /// What was lost, as a number that no other packet of that side has.
    pub lost: u64,
}

/// What became of a packet that was taken for lost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Spurious {
    pub side: Side,
    /// As in [`Held::lost`].
    pub lost: u64,
}

/// A PATH_CHALLENGE, or a PATH_RESPONSE (RFC 9000 section 8.2).
#[derive(Clone, Copy, Debug)]
pub struct Path {
    pub from: Side,
    pub is_response: bool,
    pub seen: Moment,
}

/// Bytes of a stream, or of a CRYPTO stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Range {
    /// `None`: CRYPTO frames.
    pub stream: Option<u64>,
    pub offset: u64,
    pub end: u64,
}

impl Range {
    fn overlaps(&self, other: &Self) -> bool {
        self.stream == other.stream && self.offset < other.end && other.offset < self.end
    }
}

#[derive(Clone, Debug)]
struct Sent {
    number: u64,
    seen: Moment,
    elicits_ack: bool,
    /// The first bytes that it carries.
    range: Option<Range>,
    /// Others, see [`Passed::others`].
    others: Vec<Range>,
    acked: bool,
    /// Its bytes were sent again.
    repeated: bool,
}

#[derive(Debug, Default)]
struct Flight {
    /// In the order of the capture.
    sent: VecDeque<Sent>,
    /// The highest packet with data that is acknowledged, and by which packet it was.
    acked: Option<(u64, Moment)>,
    /// The latest packet, whatever is in it.
    latest: Option<(u64, Moment)>,
}

/// One packet number space.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    flights: BySide<Flight>,
}

/// A packet, as far as it matters here.
#[derive(Clone, Debug)]
pub(super) struct Passed {
    pub number: u64,
    pub seen: Moment,
    pub elicits_ack: bool,
    /// The first bytes that it carries.
    pub range: Option<Range>,
    /// What else it carries of a handshake: some clients cut a ClientHello into many pieces, in any order.
    others: Vec<Range>,
    /// Some of its bytes lie before others that were sent: they are sent again, or come late.
    pub is_behind: bool,
}

impl Passed {
    /// A packet of which nothing is known yet but its number.
    pub const fn new(number: u64, seen: Moment) -> Self {
        Self { number, seen, elicits_ack: false, range: None, others: Vec::new(), is_behind: false }
    }

    /// It carries these bytes.
    pub fn carries(&mut self, range: Range) {
        if self.range.is_none() {
            self.range = Some(range);
        } else if range.stream.is_none() && self.others.len() < MOST_PIECES {
            self.others.push(range);
        }
    }
}

impl Recovery {
    /// The packets that were sent have been refused as a whole: they were not lost.
    pub fn forget(&mut self, side: Side) {
        self.flights[side].sent.clear();
    }

    /// Takes in a packet of `side`; gives what it repairs.
    pub fn sent(&mut self, side: Side, packet: Passed) -> Option<Held> {
        let flight = &mut self.flights[side];
        let latest = flight.latest.replace((packet.number, packet.seen));
        if !packet.elicits_ack {
            return None;
        }
        let held = packet.range.and_then(|range| match latest {
            // It was overtaken: what it carries was not sent before.
            Some((number, _)) if packet.number < number => None,
            _ if packet.is_behind => flight.repairs(side, range, &packet),
            Some(latest) if range.offset > 0 => flight.goes_on(side, latest, &packet),
            _ => None,
        });
        if flight.sent.len() >= MOST {
            flight.sent.pop_front();
        }
        let Passed { number, seen, elicits_ack, range, others, .. } = packet;
        flight.sent.push_back(Sent { number, seen, elicits_ack, range, others, acked: false, repeated: false });
        held
    }

    /// `by` acknowledges what its peer sent; gives the round trip between the capture point and `by`, where that shows,
    /// and packets that had only been taken for lost.
    pub fn acknowledged(
        &mut self,
        by: Side,
        ack: &Ack<'_>,
        seen: Moment,
        has_delay: bool,
        mut spurious: impl FnMut(Spurious),
    ) -> Option<i64> {
        let side = by.peer();
        let flight = &mut self.flights[side];
        let lowest = flight.sent.iter().map(|sent| sent.number).min()?;
        let mut newest: Option<(u64, bool, Moment)> = None;
        for (from, to) in ack.ranges().take(MOST).take_while(|&(_, to)| to >= lowest) {
            // Packets are nearly always in order: those of the range stand together.
            let begin = flight.sent.partition_point(|sent| sent.number < from);
            for sent in flight.sent.range_mut(begin..).take_while(|sent| sent.number <= to) {
                if sent.acked || sent.number < from {
                    continue;
                }
                sent.acked = true;
                if sent.repeated {
                    spurious(Spurious { side, lost: sent.number });
                }
                if sent.range.is_some() && flight.acked.is_none_or(|(number, _)| number < sent.number) {
                    flight.acked = Some((sent.number, seen));
                }
                if newest.is_none_or(|newest| newest.0 <= sent.number) {
                    newest = Some((sent.number, sent.elicits_ack, sent.seen));
                }
            }
        }
        let (.., newest) = newest.filter(|&(number, elicits_ack, _)| number == ack.largest && elicits_ack)?;
        let delay = if has_delay { ack.delay.saturating_mul(DELAY_UNIT_NS) } else { 0 };
        let sample = seen.at.checked_sub(newest.at).filter(|&sample| sample >= 0)?;
        Some(sample.saturating_sub(i64::try_from(delay).unwrap_or(i64::MAX)).max(0))
    }
}

impl Flight {
    /// A stream goes on after a silence, and numbers are missing that would have been of packets in it: of them, the
    /// bytes that come now.
    fn goes_on(&self, side: Side, (before, start): (u64, Moment), packet: &Passed) -> Option<Held> {
        let is_silent = packet.seen.at.saturating_sub(start.at) >= LEAST_PTO_NS;
        let is_missing = packet.number > before.saturating_add(1) && packet.number - before <= MOST_PROBES;
        let (why, end, lost) = (Why::Pto, packet.seen, before.saturating_add(1));
        (is_silent && is_missing).then_some(Held { why, side, start, end, released: None, is_tail: true, lost })
    }

    /// What is known of bytes that are sent again, or late, in this packet.
    fn repairs(&mut self, side: Side, range: Range, packet: &Passed) -> Option<Held> {
        let carries = |sent: &Sent| {
            let mut carried = sent.range.iter().chain(&sent.others);
            carried.any(|carried| carried.overlaps(&range) || packet.others.iter().any(|range| carried.overlaps(range)))
        };
        let lost = self.sent.iter_mut().rev().find(|sent| !sent.acked && !sent.repeated && carries(sent));
        let (number, start) = match lost {
            Some(lost) => {
                lost.repeated = true;
                (lost.number, lost.seen)
            }
            // It was lost before the capture point: what came after it is there.
            None => {
                let after = |sent: &&Sent| {
                    sent.range.is_some_and(|carried| carried.stream == range.stream && carried.offset >= range.end)
                };
                // Without it, packets were late and not lost.
                let first = self.sent.iter().find(after).filter(|first| first.number < packet.number)?;
                // A packet may carry what lies ahead of the one before, and was not sent again for that.
                let is_there = range.stream.is_none() && self.sent.iter().any(|sent| sent.number + 1 == first.number);
                if is_there || self.sent.iter().any(carries) {
                    return None;
                }
                (first.number.saturating_sub(1), first.seen)
            }
        };
        let is_tail = !self.sent.iter().any(|sent| sent.number > number && sent.range.is_some());
        let released = self.acked.filter(|&(acked, _)| acked > number).map(|(_, seen)| seen);
        let why = if released.is_some() { Why::Loss } else { Why::Pto };
        Some(Held { why, side, start, end: packet.seen, released, is_tail, lost: number })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::frame::{Frame, frames};
    use super::*;

    fn moment(at: i64, from: Side) -> Moment {
        Moment::new(at, at.unsigned_abs(), from)
    }

    /// The server sends `bytes`; is it behind what it had sent?
    fn send(recovery: &mut Recovery, number: u64, at: i64, (offset, end): (u64, u64), is_behind: bool) -> Option<Held> {
        let mut packet = Passed { elicits_ack: true, is_behind, ..Passed::new(number, moment(at, Side::Server)) };
        packet.carries(Range { stream: Some(0), offset, end });
        recovery.sent(Side::Server, packet)
    }

    /// The client sends pieces of its ClientHello.
    fn hello(recovery: &mut Recovery, number: u64, at: i64, pieces: &[(u64, u64)], is_behind: bool) -> Option<Held> {
        let mut packet = Passed { elicits_ack: true, is_behind, ..Passed::new(number, moment(at, Side::Client)) };
        for &(offset, end) in pieces {
            packet.carries(Range { stream: None, offset, end });
        }
        recovery.sent(Side::Client, packet)
    }

    fn ack(recovery: &mut Recovery, frame: &[u8], at: i64) -> (Option<i64>, Vec<u64>) {
        let Some(Frame::Ack(ack)) = frames(frame).next() else { unreachable!() };
        let mut late = Vec::new();
        let rtt = recovery.acknowledged(Side::Client, &ack, moment(at, Side::Client), true, |it| late.push(it.lost));
        (rtt, late)
    }

    #[test]
    fn bytes_sent_again_after_later_ones_were_acknowledged_were_known_to_be_lost() {
        let mut recovery = Recovery::default();
        for number in 0..4 {
            assert_eq!(send(&mut recovery, number, 100 + number as i64, (number * 10, number * 10 + 10), false), None);
        }
        // All but number 1, delayed by one unit.
        let (rtt, late) = ack(&mut recovery, &[2, 3, 1, 1, 1, 0, 0], 20_103);
        assert_eq!((rtt, late), (Some(12_000), vec![]));
        let held = send(&mut recovery, 4, 20_200, (10, 20), true).unwrap();
        assert_eq!((held.why, held.start.at, held.end.at, held.is_tail), (Why::Loss, 101, 20_200, false));
        assert_eq!(held.released, Some(moment(20_103, Side::Client)));
        // It had only been late.
        assert_eq!(ack(&mut recovery, &[2, 4, 0, 0, 4], 40_000).1, [1]);
    }

    #[test]
    fn bytes_sent_again_in_silence_were_sent_by_a_timer() {
        let mut recovery = Recovery::default();
        send(&mut recovery, 0, 100, (0, 10), false);
        let held = send(&mut recovery, 1, 9_000, (0, 10), true).unwrap();
        assert_eq!((held.why, held.start.at, held.is_tail, held.released), (Why::Pto, 100, true, None));
    }

    #[test]
    fn a_number_that_is_missing_before_a_silence_ends_was_of_the_lost_tail() {
        let mut recovery = Recovery::default();
        send(&mut recovery, 0, 100, (0, 10), false);
        assert_eq!(send(&mut recovery, 2, 200, (10, 20), false), None, "no silence");
        assert_eq!(send(&mut recovery, 3, 9_000_000, (20, 30), false), None, "nothing is missing");
        let held = send(&mut recovery, 5, 20_000_000, (30, 40), false).unwrap();
        assert_eq!((held.why, held.start.at, held.is_tail, held.lost), (Why::Pto, 9_000_000, true, 4));
    }

    #[test]
    fn what_was_lost_before_the_capture_point_is_told_by_what_came_after_it() {
        let mut recovery = Recovery::default();
        send(&mut recovery, 0, 100, (0, 10), false);
        send(&mut recovery, 2, 102, (20, 30), false);
        ack(&mut recovery, &[2, 2, 0, 1, 0, 0, 0], 200);
        let held = send(&mut recovery, 3, 300, (10, 20), true).unwrap();
        assert_eq!((held.why, held.start.at, held.lost), (Why::Loss, 102, 1));
        // Overtaken on its way.
        assert_eq!(send(&mut recovery, 1, 310, (10, 20), true), None);
    }

    #[test]
    fn a_hello_of_many_pieces_in_any_order_is_lost_packet_by_packet() {
        // Chromium's: two packets, the second one is lost.
        let mut recovery = Recovery::default();
        assert_eq!(hello(&mut recovery, 1, 0, &[(35, 36), (0, 35), (996, 1877)], false), None);
        assert_eq!(hello(&mut recovery, 2, 40, &[(55, 287), (957, 996), (36, 55), (287, 957)], true), None, "new");
        let Some(Frame::Ack(ack)) = frames(&[2, 1, 0, 0, 0]).next() else { unreachable!() };
        recovery.acknowledged(Side::Server, &ack, moment(87_000, Side::Server), false, |_| ());
        let held = hello(&mut recovery, 4, 191_000, &[(800, 996), (36, 800)], true).unwrap();
        assert_eq!((held.why, held.start.at, held.end.at, held.lost), (Why::Pto, 40, 191_000, 2));
        assert_eq!((held.is_tail, held.released), (true, None));
    }
}
