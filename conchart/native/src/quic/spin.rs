//! The spin bit: the round trip that everybody may read from packets with a short header.
//!
//! RFC 9000 section 17.4, RFC 9312 section 4.2. In: the bit of each 1-RTT packet. Out: how long the way from the capture
//! point to each end and back takes. A client inverts what its server sends, a server repeats what its client sends: a
//! change of one side follows from the change of the other. Not every connection spins: some send one value, others a
//! random one. A change that follows from none, or sooner than the handshake allows, shows that, or packets out of
//! order; where there are many, nothing is told.

use crate::stream::{BySide, Moment, Side};

const SPIN: u8 = 0x20;
/// So many changes must follow from others before anything is told, and as many for each that does not.
const ENOUGH: u32 = 4;

#[derive(Debug, Default)]
pub(super) struct Spin {
    sides: BySide<Turning>,
    fitting: u32,
    strange: u32,
}

/// One side.
#[derive(Clone, Copy, Debug, Default)]
struct Turning {
    bit: Option<bool>,
    /// Its latest change, as long as none of the other side has followed from it.
    change: Option<Moment>,
    /// The latest way to it and back.
    latest: Option<i64>,
    /// The two shortest ways to it and back: the first may be due to packets out of order.
    shortest: Option<i64>,
    second: Option<i64>,
}

impl Spin {
    /// The next packet; `handshake_rtt_ns` is the round trip between client and server that the handshake has shown.
    pub fn packet(&mut self, from: Side, first_byte: u8, seen: Moment, handshake_rtt_ns: i64) {
        let bit = first_byte & SPIN != 0;
        let before = self.sides[from].bit.replace(bit);
        if before == Some(bit) {
            return;
        }
        self.sides[from].change = Some(seen);
        if before.is_none() {
            return;
        }
        let peer = &mut self.sides[from.peer()];
        let is_answer = peer.bit == Some(bit ^ (from == Side::Client));
        let sample = peer.change.take_if(|_| is_answer).map(|change| seen.at.saturating_sub(change.at));
        let rest = peer.latest;
        self.sides[from].latest = sample;
        let is_possible = |sample: &i64| rest.is_none_or(|rest| rest.saturating_add(*sample) >= handshake_rtt_ns / 2);
        match sample.filter(|&sample| sample > 0).filter(is_possible) {
            Some(sample) => {
                self.fitting = self.fitting.saturating_add(1);
                self.sides[from].take(sample);
            }
            None => self.strange = self.strange.saturating_add(1),
        }
    }

    /// The round trip between the capture point and that side.
    pub fn rtt(&self, to: Side) -> Option<i64> {
        let spins = self.fitting >= ENOUGH.saturating_mul(self.strange.saturating_add(1));
        self.sides[to].second.filter(|_| spins)
    }
}

impl Turning {
    fn take(&mut self, sample: i64) {
        match self.shortest {
            Some(shortest) if sample >= shortest => {
                self.second = Some(self.second.map_or(sample, |second| second.min(sample)));
            }
            shortest => (self.shortest, self.second) = (Some(sample), shortest.or(self.second)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Side::{Client, Server};

    /// Packets at the client: side, bit, and the millisecond.
    fn round_trips(packets: impl IntoIterator<Item = (Side, bool, i64)>, handshake_rtt_ns: i64) -> BySide<Option<i64>> {
        let mut spin = Spin::default();
        for (from, bit, at) in packets {
            spin.packet(
                from,
                if bit { 0x60 } else { 0x40 },
                Moment::new(at, at.unsigned_abs(), from),
                handshake_rtt_ns,
            );
        }
        BySide { client: spin.rtt(Client), server: spin.rtt(Server) }
    }

    /// The client changes at once, the server after `ms`; each sends its bit twice.
    fn spinning(ms: i64) -> Vec<(Side, bool, i64)> {
        (0..8)
            .flat_map(|n| {
                let (bit, at) = (n % 2 == 0, n * (ms + 1));
                [(Client, bit, at), (Client, bit, at), (Server, bit, at + ms), (Server, bit, at + ms)]
            })
            .collect()
    }

    #[test]
    fn changes_that_follow_from_each_other_are_round_trips() {
        assert_eq!(round_trips(spinning(40), 0), BySide { client: Some(1), server: Some(40) });
    }

    #[test]
    fn a_packet_out_of_order_changes_nothing() {
        let mut packets = spinning(40);
        // The server's packet of before its second change comes after it.
        packets.insert(8, (Server, true, 81));
        assert_eq!(round_trips(packets, 0).server, Some(40));
    }

    #[test]
    fn what_is_shorter_than_the_handshake_allows_is_no_round_trip() {
        assert_eq!(round_trips(spinning(40), 100), BySide::default());
    }

    #[test]
    fn a_bit_that_stays_or_is_random_tells_nothing() {
        let nothing = BySide::default();
        assert_eq!(round_trips((0..50).map(|n| (if n % 2 == 0 { Client } else { Server }, false, n)), 0), nothing);
        let mut state = 7_u32;
        let random = (0..400).map(|n| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (if n % 2 == 0 { Client } else { Server }, state >> 31 == 1, 10 * n)
        });
        assert_eq!(round_trips(random.collect::<Vec<_>>(), 0), nothing);
    }
}
