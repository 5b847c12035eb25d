//! Packets that were captured more than once: the last few of one side, and when a packet is another capture of one.
//!
//! `tcpdump -i any` and mirror ports deliver the same packet several times within microseconds; behind a router or a
//! radio link, within milliseconds. In: of each packet what a repetition by its sender would change (its print), when
//! and where it was captured. Out: whether it was seen before. What a print is made of is the transport's.

/// A copy captured at the same point follows within this time; no retransmission timer is that short (RFC 6298:
/// 200 ms and more).
pub const HERE_NS: u64 = 1_000_000;
/// Without an IP identification, as in IPv6, a repetition could look alike, so we look less far.
pub const UNNUMBERED_NS: u64 = 200_000;
/// At another point (TTL, VLAN, addresses of the frame, inside a tunnel), a router, a firewall or a radio link may be
/// between the two. A repetition by the sender comes to the same point again.
pub const ELSEWHERE_NS: u64 = 100_000_000;

/// Packets that are remembered.
const REMEMBERED: u8 = 4;

/// Which of the remembered packets one is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Place {
    /// Another capture of this one.
    Copy(u8),
    /// None of them: it is remembered as this one.
    New(u8),
}

/// The last few packets of one side. No print of a packet may be `P::default()`: it stands for none.
#[derive(Clone, Debug, Default)]
pub struct Recent<P> {
    /// When, where and what.
    entries: [(i64, u64, P); REMEMBERED as usize],
    oldest: u8,
}

impl<P: Copy + PartialEq> Recent<P> {
    /// Finds a packet, or remembers it. It is another capture of one of the same print that was captured at the same
    /// `capture_point` within `here` nanoseconds, or at another one within `elsewhere`.
    #[inline]
    pub fn find(&mut self, print: P, at: i64, capture_point: u64, (here, elsewhere): (u64, u64)) -> Place {
        let entries = (0..).zip(&self.entries);
        let mut alike = entries.filter(|&(_, &(then, point, known))| {
            known == print && at.abs_diff(then) <= if point == capture_point { here } else { elsewhere }
        });
        if let Some((index, _)) = alike.next() {
            return Place::Copy(index);
        }
        let index = self.oldest;
        if let Some(entry) = self.entries.get_mut(usize::from(index)) {
            *entry = (at, capture_point, print);
        }
        self.oldest = (index + 1) % REMEMBERED;
        Place::New(index)
    }

    /// Which of them was remembered last.
    pub fn latest(&self) -> u8 {
        (self.oldest + REMEMBERED - 1) % REMEMBERED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_a_copy_at_its_point_for_a_while_and_elsewhere_for_longer() {
        let mut recent = Recent::default();
        let mut find = |print: u64, at, point| recent.find(print, at, point, (10, 100));
        assert_eq!(find(7, 0, 1), Place::New(0));
        assert_eq!([find(7, 10, 1), find(7, 100, 2)], [Place::Copy(0); 2]);
        assert_eq!([find(7, 11, 1), find(8, 11, 1)], [Place::New(1), Place::New(2)]);
    }

    #[test]
    fn only_the_last_few_are_remembered() {
        let mut recent = Recent::default();
        for print in 1..=5_u64 {
            recent.find(print, 0, 0, (10, 100));
        }
        assert_eq!(recent.latest(), 0);
        assert_eq!(recent.find(2, 1, 0, (10, 100)), Place::Copy(1));
        assert_eq!(recent.find(1, 1, 0, (10, 100)), Place::New(1));
    }
}
