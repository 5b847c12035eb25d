//! What packets of HTTP/3 that stay sealed are taken for.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use proptest::prelude::*;

use super::*;
use crate::exchange::Exchange;

const MS: i64 = 1_000_000;
/// Between the client, where the capture is, and the server.
const ROUND_TRIP_MS: i64 = 60;

/// A request that is answered at 160 ms; at 165 ms, the client says something as short as the acknowledgement of header
/// sections, which the server acknowledges a round trip later. The client says its last at `over_ms`.
fn told(bytes: u64, acknowledged: bool, over_ms: i64) -> Vec<Exchange> {
    let (mut sealed, mut ledger) = (SealedHttp3::new(), Ledger::default());
    ledger.rtt.server = Some(ROUND_TRIP_MS * MS);
    let mut frame = 0;
    let mut passes = |from, at_ms: i64, content: u64| {
        frame += 1;
        let seen = Moment::new(at_ms * MS, frame, from);
        let bytes = content + OVERHEAD + 8;
        let packet = Sealed { from, seen, bytes, cid_len: (8, 8), is_shared: false, is_early: false };
        sealed.packet(&mut ledger, packet);
    };
    passes(Side::Client, 0, 5);
    passes(Side::Server, ROUND_TRIP_MS, 200);
    passes(Side::Client, 100, 100);
    passes(Side::Server, 100 + ROUND_TRIP_MS, 300);
    passes(Side::Client, 165, bytes);
    if acknowledged {
        passes(Side::Server, 165 + ROUND_TRIP_MS, 7);
    }
    passes(Side::Client, over_ms, 5);
    sealed.finish(&mut ledger);
    ledger.release_all();
    std::iter::from_fn(|| ledger.next_exchange()).collect()
}

#[test]
fn a_short_packet_that_is_only_acknowledged_before_the_client_leaves_asked_nothing() {
    assert_eq!(told(REQUEST, true, 265).len(), 1);
}

#[test]
fn a_request_that_a_client_waits_for_in_vain_remains_one() {
    assert_eq!(told(REQUEST, true, 165 + 2 * ROUND_TRIP_MS).len(), 2);
    assert_eq!(told(RANGES, true, 265).len(), 2);
    assert_eq!(told(REQUEST, false, 265).len(), 2);
}

proptest! {
    #[test]
    fn what_was_answered_stays_whatever_follows(bytes in 1_u64..1_000, acknowledged: bool, over_ms in 226_i64..9_000) {
        let found = told(bytes, acknowledged, over_ms);
        prop_assert!((1..=2).contains(&found.len()));
        prop_assert_eq!(found[0].response.first.map(|first| first.at), Some((100 + ROUND_TRIP_MS) * MS));
    }
}
