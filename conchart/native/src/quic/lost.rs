//! Which packets a sender took for lost, or had to: numbers that the peer's ACK frames leave out (RFC 9002 section 6.1).
//!
//! In: the numbers of one side's packets in one packet number space, and the ranges of the peer's ACK frames. Out:
//! [`Lost`], one for each number that no frame acknowledges before one is acknowledged that is at least [`THRESHOLD`]
//! higher; at the end, also for those below the highest that is acknowledged. A number that no captured packet has was
//! lost before the capture point, or skipped by its sender (RFC 9000 section 21.4): both look alike. Bounded:
//! [`MOST_SENT`] packets are remembered, and [`MOST_LOST`] losses wait for an acknowledgement that comes late.
//! Non-goals: packets behind the last one that is acknowledged, and bytes that were sent again.

use std::collections::{BTreeMap, VecDeque};

use super::Level;
use super::frame::Ack;
use super::ranges::Ranges;
use crate::stream::{Moment, Side};

/// kPacketThreshold of RFC 9002 section 6.1.1.
const THRESHOLD: u64 = 3;
const MOST_SENT: usize = 512;
const MOST_LOST: usize = 64;
/// Missing numbers that one ACK frame may tell of; more are a jump, and no loss.
const MOST_AT_ONCE: u64 = 512;

/// A packet that its sender took for lost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Lost {
    pub level: Level,
    pub sender: Side,
    pub number: u64,
    /// `None`: it did not pass the capture point.
    pub sent: Option<Moment>,
    /// The ACK frame that leaves it out.
    pub reported: Moment,
    /// It was acknowledged later.
    pub arrived: bool,
}

/// The packets of one side.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// Those that are not acknowledged and not lost so far.
    open: BTreeMap<u64, Moment>,
    acked: Ranges,
    /// The highest number that is acknowledged, and by which packet.
    highest: Option<(u64, Moment)>,
    /// All numbers below it are decided; `None` before the first packet.
    next: Option<u64>,
    lost: VecDeque<Lost>,
}

impl Losses {
    /// Its packets so far were refused as a whole, and not lost.
    pub fn forget(&mut self) {
        self.open.clear();
        self.next = None;
    }

    pub fn sent(&mut self, number: u64, seen: Moment) {
        let next = *self.next.get_or_insert(number);
        if number >= next && !self.acked.contains(number) {
            self.open.entry(number).or_insert(seen);
        }
        if self.open.len() > MOST_SENT
            && let Some((oldest, _)) = self.open.pop_first()
        {
            self.next = Some(next.max(oldest.saturating_add(1)));
        }
    }

    /// The peer acknowledges; `sender` and `level` are those of the packets.
    pub fn acknowledged(&mut self, (level, sender): (Level, Side), ack: &Ack<'_>, seen: Moment) -> Option<Lost> {
        let next = self.next?;
        for (lowest, highest) in ack.ranges() {
            for lost in self.lost.iter_mut().filter(|lost| (lowest..=highest).contains(&lost.number)) {
                lost.arrived = true;
            }
            if highest < next {
                continue;
            }
            self.acked.insert(lowest, highest);
            while let Some((&number, _)) = self.open.range(lowest..=highest).next() {
                self.open.remove(&number);
            }
        }
        if self.highest.is_none_or(|(highest, _)| highest < ack.largest) {
            self.highest = Some((ack.largest, seen));
        }
        let (highest, _) = self.highest?;
        self.decide((level, sender), highest.saturating_sub(THRESHOLD - 1), seen);
        if self.lost.len() > MOST_LOST { self.lost.pop_front() } else { None }
    }

    /// Was this number one of these packets'? Some senders count the packets of all spaces together.
    pub fn knows(&self, number: u64) -> bool {
        self.open.contains_key(&number)
            || self.acked.contains(number)
            || self.lost.iter().any(|lost| lost.number == number && lost.sent.is_some())
    }

    /// Nothing more will come.
    pub fn finish(&mut self, of: (Level, Side), tell: &mut impl FnMut(Lost)) {
        if let Some((highest, seen)) = self.highest {
            self.decide(of, highest, seen);
        }
        self.lost.drain(..).for_each(tell);
    }

    /// All numbers below `end` that are not acknowledged are lost.
    fn decide(&mut self, (level, sender): (Level, Side), end: u64, reported: Moment) {
        let Some(next) = self.next.filter(|&next| next < end) else { return };
        for number in next.max(end.saturating_sub(MOST_AT_ONCE))..end {
            if !self.acked.contains(number) {
                let sent = self.open.remove(&number);
                self.lost.push_back(Lost { level, sender, number, sent, reported, arrived: false });
            }
        }
        self.next = Some(end);
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame::{Frame, frames};
    use super::*;

    const OF: (Level, Side) = (Level::OneRtt, Side::Server);

    fn moment(at: i64) -> Moment {
        Moment::new(at, at.unsigned_abs(), Side::Server)
    }

    fn ack(losses: &mut Losses, frame: &[u8], at: i64) {
        let Some(Frame::Ack(ack)) = frames(frame).next() else { unreachable!() };
        assert_eq!(losses.acknowledged(OF, &ack, moment(at)), None);
    }

    fn finished(mut losses: Losses) -> Vec<(u64, Option<i64>, i64, bool)> {
        let mut all = Vec::new();
        losses.finish(OF, &mut |it| all.push((it.number, it.sent.map(|sent| sent.at), it.reported.at, it.arrived)));
        all
    }

    #[test]
    fn a_number_is_lost_when_one_three_higher_is_acknowledged() {
        let mut losses = Losses::default();
        for number in [5, 6, 8, 9, 10, 11] {
            losses.sent(number, moment(100 + number as i64));
        }
        // 9, 8, and 5: number 6 is three lower than 9, number 7 only two.
        ack(&mut losses, &[2, 9, 0, 1, 1, 1, 0], 200);
        assert_eq!(losses.lost.iter().map(|lost| lost.number).collect::<Vec<_>>(), [6]);
        // All but 7: 6 comes late.
        ack(&mut losses, &[2, 11, 0, 1, 3, 0, 1], 300);
        assert_eq!(finished(losses), [(6, Some(106), 200, true), (7, None, 300, false)]);
    }

    #[test]
    fn at_the_end_all_below_the_highest_are_decided_and_none_above_it() {
        let mut losses = Losses::default();
        for number in 0..5 {
            losses.sent(number, moment(number as i64));
        }
        // 3 and 1.
        ack(&mut losses, &[2, 3, 0, 1, 0, 0, 0], 50);
        assert_eq!(finished(losses), [(0, Some(0), 50, false), (2, Some(2), 50, false)]);
    }

    #[test]
    fn a_number_is_known_where_its_packet_was_seen_or_acknowledged() {
        let mut losses = Losses::default();
        for number in [0, 1, 5, 6] {
            losses.sent(number, moment(1));
        }
        // 5; 0 and 1 are lost, and so are 2 to 4, which did not pass here.
        ack(&mut losses, &[2, 5, 0, 0, 0], 2);
        assert_eq!([0, 1, 3, 5, 6].map(|number| losses.knows(number)), [true, true, false, true, true]);
    }

    #[test]
    fn what_was_refused_is_not_lost() {
        let mut losses = Losses::default();
        losses.sent(0, moment(1));
        losses.forget();
        losses.sent(1, moment(2));
        ack(&mut losses, &[2, 1, 0, 0, 0], 3);
        assert_eq!(finished(losses), []);
    }
}
