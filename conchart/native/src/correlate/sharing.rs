//! What several findings explain of one user's wait: pieces of waits in, how much of each finding's is counted elsewhere out.
//!
//! Where pieces lie over each other, the finding that counts first has the time, and the others share it. One sweep over
//! the pieces of each wait, in the order of time, with those that last in a heap: N pieces cost N log N, however many of
//! them lie over each other. `analysis/findings/pricing.py` says who counts first. No IO, no clock.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// A stretch of a user's wait that a finding explains. Those of one finding and one wait do not overlap.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// The finding.
    pub id: i32,
    /// The user's connection.
    pub wait: i32,
    /// Nanoseconds on the clock of what was waited on it.
    pub start_at: i64,
    /// Not before it starts.
    pub end_at: i64,
}

/// Gives of each finding how much of its pieces belongs to one that counts before it, in the order in which they count.
///
/// Findings that `order` does not name count nowhere, and are not told.
pub fn share(mut pieces: Vec<Piece>, order: &[i32]) -> Vec<(i32, i64)> {
    let ranks: HashMap<i32, usize> = order.iter().enumerate().map(|(rank, id)| (*id, rank)).collect();
    pieces.retain(|piece| ranks.contains_key(&piece.id));
    pieces.sort_unstable_by_key(|piece| (piece.wait, piece.start_at));
    let mut shared: HashMap<i32, i64> = HashMap::new();
    for wait in pieces.chunk_by(|one, other| one.wait == other.wait) {
        let mut lasting = BinaryHeap::new();
        let mut at = i64::MIN;
        for piece in wait {
            at = charge(&mut lasting, &mut shared, at, piece.start_at);
            *shared.entry(piece.id).or_default() += piece.end_at.saturating_sub(piece.start_at);
            lasting.push(Reverse((ranks.get(&piece.id).copied(), piece.end_at, piece.id)));
        }
        charge(&mut lasting, &mut shared, at, i64::MAX);
    }
    order.iter().filter_map(|id| Some((*id, *shared.get(id)?))).collect()
}

/// A piece that has begun: its finding's rank, its end, its finding. The first rank is on top.
type Lasting = BinaryHeap<Reverse<(Option<usize>, i64, i32)>>;

/// Takes the time from `at` to `until` from what is shared of those whose it is. Returns `until`.
fn charge(lasting: &mut Lasting, shared: &mut HashMap<i32, i64>, mut at: i64, until: i64) -> i64 {
    while at < until {
        let Some(Reverse((_, end_at, id))) = lasting.peek().copied() else { break };
        if end_at <= until {
            lasting.pop();
        }
        if end_at > at {
            let next = end_at.min(until);
            *shared.entry(id).or_default() -= next.saturating_sub(at);
            at = next;
        }
    }
    until
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn piece(id: i32, start_at: i64, end_at: i64) -> Piece {
        Piece { id, wait: 0, start_at, end_at }
    }

    #[test]
    fn time_that_two_explain_is_the_first_ones() {
        let pieces = vec![piece(7, 0, 10), piece(5, 4, 20)];
        assert_eq!(share(pieces.clone(), &[7, 5]), [(7, 0), (5, 6)]);
        assert_eq!(share(pieces, &[5, 7]), [(5, 0), (7, 6)]);
    }

    #[test]
    fn what_lies_apart_or_in_another_wait_is_not_shared() {
        let elsewhere = Piece { wait: 1, ..piece(2, 0, 10) };
        assert_eq!(share(vec![piece(1, 0, 10), piece(2, 10, 12), elsewhere], &[1, 2]), [(1, 0), (2, 0)]);
    }

    #[test]
    fn who_is_not_in_the_order_takes_nothing() {
        assert_eq!(share(vec![piece(1, 0, 10), piece(2, 0, 10)], &[2]), [(2, 0)]);
    }

    #[test]
    fn a_gap_belongs_to_nobody() {
        let pieces = vec![piece(1, 0, 5), piece(2, 20, 30), piece(3, 0, 40)];
        assert_eq!(share(pieces, &[1, 2, 3]), [(1, 0), (2, 0), (3, 15)]);
    }

    proptest! {
        #[test]
        fn each_instant_is_counted_once_by_the_first(
            drawn in prop::collection::vec((0..6_i32, 0..2_i32, 0..40_i64, 0..20_i64), 0..30),
        ) {
            let mut pieces: Vec<Piece> = Vec::new();
            for (id, wait, start_at, lasts) in drawn {
                let new = Piece { id, wait, start_at, end_at: start_at + lasts };
                let apart = |old: &Piece| {
                    (old.id, old.wait) != (new.id, new.wait) || old.end_at <= new.start_at || new.end_at <= old.start_at
                };
                if pieces.iter().all(apart) {
                    pieces.push(new);
                }
            }
            let order = [3, 1, 4, 0, 5, 2];
            let expected = |rank: usize, id: i32| -> i64 {
                let before = order.get(..rank).unwrap_or_default();
                let covered = |piece: &Piece, at: i64| pieces.iter().any(|other| {
                    before.contains(&other.id) && other.wait == piece.wait && other.start_at <= at && at < other.end_at
                });
                pieces.iter().filter(|piece| piece.id == id)
                    .map(|piece| (piece.start_at..piece.end_at).filter(|at| covered(piece, *at)).map(|_| 1).sum::<i64>())
                    .sum()
            };
            for (id, ns) in share(pieces.clone(), &order) {
                let rank = order.iter().position(|other| *other == id).unwrap_or_default();
                prop_assert_eq!(ns, expected(rank, id));
            }
        }
    }
}
