//! Packets that were captured more than once: the last few of one side, and when a packet is another capture of one.
//!
//! `tcpdump -i any` and mirror ports deliver the same packet several times within microseconds; behind a router or a
//! radio link, within milliseconds. In: of each packet what a repetition by its sender would change (its print), when
//! and where it was captured, its IP identification. Out: whether it was seen before. What a print is made of is the
//! transport's.

/// A copy captured at the same point follows within this time; no retransmission timer is that short (RFC 6298:
/// 200 ms and more).
pub const HERE_NS: u64 = 1_000_000;
/// Without an IP identification, as in IPv6, a repetition could look alike, so we look less far.
pub const UNNUMBERED_NS: u64 = 200_000;
/// At another point (TTL, VLAN, addresses of the frame, inside a tunnel), a router, a firewall or a radio link may be
/// between the two. A repetition by the sender comes to the same point again.
pub const ELSEWHERE_NS: u64 = 100_000_000;
/// With an identification that no other packet of its side has: a repetition by a sender that counts has another. Not
/// longer, because network cards and proxies that repeat a packet for its sender keep its identification (seen: 88 ms;
/// copies: up to 64 ms).
const NUMBERED_NS: u64 = 75_000_000;

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
    /// The identification of each: beside them, where it takes less room.
    ip_ids: [u16; REMEMBERED as usize],
    oldest: u8,
}

impl<P: Copy + PartialEq> Recent<P> {
    /// Finds a packet, or remembers it. It is another capture of one of the same print that was captured at the same
    /// `capture_point` within `here` nanoseconds, or within [`NUMBERED_NS`] if its `ip_id` tells it from others (0 does
    /// not), or at another one within `elsewhere`.
    #[inline]
    pub fn find(&mut self, print: P, at: i64, capture_point: u64, ip_id: u16, (here, elsewhere): (u64, u64)) -> Place {
        let entries = (0..).zip(&self.entries);
        let mut alike = entries.filter(|&(_, &(then, point, other))| {
            other == print && {
                let limit = if point != capture_point {
                    elsewhere
                } else if self.is_of_one_packet(ip_id, print) {
                    NUMBERED_NS
                } else {
                    here
                };
                at.abs_diff(then) <= limit
            }
        });
        if let Some((index, _)) = alike.next() {
            return Place::Copy(index);
        }
        let index = self.oldest;
        let at_index = usize::from(index);
        if let (Some(entry), Some(slot)) = (self.entries.get_mut(at_index), self.ip_ids.get_mut(at_index)) {
            *entry = (at, capture_point, print);
            *slot = ip_id;
        }
        self.oldest = (index + 1) % REMEMBERED;
        Place::New(index)
    }

    /// Does no packet but that of this print have the identification? Some stacks give all packets the same.
    fn is_of_one_packet(&self, ip_id: u16, print: P) -> bool {
        let mut others = self.ip_ids.iter().zip(&self.entries).filter(|(_, (_, _, other))| *other != print);
        ip_id != 0 && others.all(|(other, _)| *other != ip_id)
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
        let mut find = |print: u64, at, point| recent.find(print, at, point, 0, (10, 100));
        assert_eq!(find(7, 0, 1), Place::New(0));
        assert_eq!([find(7, 10, 1), find(7, 100, 2)], [Place::Copy(0); 2]);
        assert_eq!([find(7, 11, 1), find(8, 11, 1)], [Place::New(1), Place::New(2)]);
    }

    #[test]
    fn an_identification_that_one_packet_has_shows_late_copies_and_a_constant_one_does_not() {
        let late = i64::try_from(NUMBERED_NS).unwrap_or_default();
        for (of_another, at, place) in
            [(8, late, Place::Copy(1)), (8, late + 1, Place::New(2)), (7, late, Place::New(2)), (7, 10, Place::Copy(1))]
        {
            let mut recent = Recent::default();
            recent.find(1, 0, 0, of_another, (10, 100));
            recent.find(2, 0, 0, 7, (10, 100));
            assert_eq!(recent.find(2, at, 0, 7, (10, 100)), place, "{of_another} {at}");
        }
    }

    #[test]
    fn only_the_last_few_are_remembered() {
        let mut recent = Recent::default();
        for print in 1..=5_u64 {
            recent.find(print, 0, 0, 0, (10, 100));
        }
        assert_eq!(recent.latest(), 0);
        assert_eq!(recent.find(2, 1, 0, 0, (10, 100)), Place::Copy(1));
        assert_eq!(recent.find(1, 1, 0, 0, (10, 100)), Place::New(1));
    }
}
