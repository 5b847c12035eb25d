//! What IP headers say of who sent a segment: hop limit and identification (RFC 791 section 3.2, RFC 6864).
//!
//! In: the packets of ONE side, in capture order. Out: whether another packet can be of the same sender. Forged resets are told so
//! from those of the peer (Weaver, Sommer, Paxson: Detecting Forged TCP Reset Packets, NDSS 2009).

/// A host that counts its packets puts so many between two of a connection at most.
const STEP: u16 = 256;
/// An identification further ahead than this, or behind, was counted by somebody else.
const FAR: u16 = 4_096;
/// So many steps show that a host counts.
const SURE: u8 = 3;

/// Hop limits and identifications of the packets that one side sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stamps {
    /// Lowest and highest hop limit.
    ttl: Option<(u8, u8)>,
    id: Option<u16>,
    /// Identifications that were a small step after the one before; `None` once one was not.
    steps: Option<u8>,
}

impl Stamps {
    /// Takes in a packet of that side.
    pub fn note(&mut self, ttl: u8, id: Option<u16>) {
        let (low, high) = self.ttl.unwrap_or((ttl, ttl));
        self.ttl = Some((low.min(ttl), high.max(ttl)));
        let Some(id) = id.filter(|&id| id != 0) else { return };
        self.steps = match self.id.replace(id) {
            None => Some(0),
            Some(before) => self.steps.filter(|_| id.wrapping_sub(before) <= STEP).map(|steps| steps.saturating_add(1)),
        };
    }

    /// Was this packet sent by somebody else? `None` where nothing is known of that side. An identification of 0 says
    /// nothing: hosts put it into a reset for which they keep no connection.
    pub fn are_foreign(&self, ttl: u8, id: Option<u16>) -> Option<bool> {
        let (low, high) = self.ttl?;
        let counts = self.steps.is_some_and(|steps| steps >= SURE);
        let is_far = |(id, last): (u16, u16)| id != 0 && (FAR..=u16::MAX - STEP).contains(&id.wrapping_sub(last));
        Some(!(low..=high).contains(&ttl) || counts && id.zip(self.id).is_some_and(is_far))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamps(ttl: u8, ids: &[u16]) -> Stamps {
        let mut stamps = Stamps::default();
        ids.iter().for_each(|&id| stamps.note(ttl, Some(id)));
        stamps
    }

    #[test]
    fn another_hop_limit_is_of_another_sender() {
        let seen = stamps(57, &[10, 11]);
        assert_eq!([57, 58, 255].map(|ttl| seen.are_foreign(ttl, None)), [Some(false), Some(true), Some(true)]);
        assert_eq!(Stamps::default().are_foreign(57, Some(1)), None);
    }

    #[test]
    fn a_host_that_counts_its_packets_goes_on_counting() {
        let seen = stamps(64, &[65_300, 65_301, 65_310, 65_535, 3]);
        assert_eq!([4, 2, 0, 500].map(|id| seen.are_foreign(64, Some(id))), [Some(false); 4]);
        assert_eq!([30_000, 5_000].map(|id| seen.are_foreign(64, Some(id))), [Some(true); 2]);
        // Identifications at random, and too few of them, tell nothing.
        for ids in [&[40_000, 3, 20_000, 7_000, 7_001][..], &[10, 11, 12]] {
            assert_eq!(stamps(64, ids).are_foreign(64, Some(30_000)), Some(false));
        }
    }
}
