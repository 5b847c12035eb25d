#![allow(clippy::unwrap_used, clippy::indexing_slicing)]
use proptest::prelude::*;

use super::*;

const MS: i64 = 1_000_000;

/// Requests after such pauses, of these kinds, by a client; and as a place behind a proxy has them, whose clock is ahead.
fn made(requests: &[(i64, u64)], ahead_ns: i64) -> [Vec<Exchange>; 2] {
    let mut at = 0;
    let mut places = [Vec::new(), Vec::new()];
    for (number, &(pause, key)) in (0..).zip(requests) {
        at += 60 * MS + pause;
        let of = |from: i64, until: i64| Exchange {
            stream: 1,
            number,
            key: Some(key),
            request_at: from,
            response_at: Some(until - MS),
            done_at: until,
            request_bytes: 100,
            response_bytes: 1_000,
            frame: i64::from(number),
        };
        places[0].push(of(at, at + 50 * MS));
        places[1].push(of(at + 12 * MS + ahead_ns, at + 35 * MS + ahead_ns));
    }
    places
}

proptest! {
    #[test]
    fn the_true_difference_lies_in_the_corridor(
        requests in prop::collection::vec((0i64..900 * MS, 0u64..40), 12..200),
        ahead_ns in -40_000_000 * MS..40_000_000 * MS,
    ) {
        let [fronts, backs] = made(&requests, ahead_ns);
        if let Some(found) = pair(&fronts, &backs, [1, 1]) {
            let width = found.piece.uncertainty_ns.unwrap();
            prop_assert!((found.piece.offset_ns - ahead_ns).abs() <= width);
            prop_assert!(width >= 13 * MS);
            prop_assert!(found.pairs.iter().all(|(front, back)| front == back));
        }
    }
}

#[test]
fn different_requests_are_paired_whatever_the_clocks_show() {
    let requests: Vec<_> = (0..20).map(|n| (n * n % 7 * 50 * MS, n.cast_unsigned())).collect();
    let [fronts, backs] = made(&requests, -7_200_000 * MS);
    assert_eq!(pair(&fronts, &backs, [1, 1]).unwrap().pairs.len(), 20);
    assert!(pair(&backs, &fronts, [1, 1]).is_none(), "no answer is there before the other place has it");
}

#[test]
fn requests_that_look_the_same_at_even_times_are_not_paired() {
    let [fronts, backs] = made(&[(0, 7); 30], 0);
    assert!(pair(&fronts, &backs, [1, 1]).is_none());
}

#[test]
fn a_clock_that_was_set_has_no_alignment() {
    let requests: Vec<_> = (0..20).map(|n| (n * n % 7 * 50 * MS, n.cast_unsigned())).collect();
    let [fronts, mut backs] = made(&requests, 0);
    for back in &mut backs[12..] {
        back.request_at += 3_000 * MS;
        back.response_at = back.response_at.map(|at| at + 3_000 * MS);
        back.done_at += 3_000 * MS;
    }
    assert!(pair(&fronts, &backs, [1, 1]).is_none());
}
