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
fn exchanges(bytes: u64, acknowledged: bool, over_ms: i64) -> Vec<Exchange> {
    let mut packets = vec![(Side::Client, 165, bytes, Way::Heard)];
    if acknowledged {
        packets.push((Side::Server, 165 + ROUND_TRIP_MS, 7, Way::Heard));
    }
    packets.push((Side::Client, over_ms, 5, Way::Heard));
    found(&packets)
}

/// What is found after a request that is answered at 160 ms: who sends when, how many bytes, and which way.
fn found(packets: &[(Side, i64, u64, Way)]) -> Vec<Exchange> {
    let (mut sealed, mut ledger) = (EncryptedHttp3::new(), Ledger::default());
    ledger.rtt.server = Some(ROUND_TRIP_MS * MS);
    let before = [
        (Side::Client, 0, 5, Way::Heard),
        (Side::Server, ROUND_TRIP_MS, 200, Way::Heard),
        (Side::Client, 100, 100, Way::Heard),
        (Side::Server, 100 + ROUND_TRIP_MS, 300, Way::Heard),
    ];
    for (frame, &(from, at_ms, content, way)) in (1..).zip(before.iter().chain(packets)) {
        let seen = Moment::new(at_ms * MS, frame, from);
        let bytes = content + OVERHEAD + 8;
        let packet = Encrypted { from, seen, bytes, cid_len: (8, 8), is_shared: false, is_early: false, way };
        sealed.packet(&mut ledger, packet);
    }
    sealed.finish(&mut ledger);
    ledger.release_all();
    std::iter::from_fn(|| ledger.next_exchange()).collect()
}

#[test]
fn what_a_client_says_from_a_new_endpoint_asks_only_if_it_is_heard() {
    let request = (Side::Client, 200, 300, Way::Unheard);
    let to_old = (Side::Server, 290, 300, Way::Unheard);
    assert_eq!(found(&[request, (Side::Client, 240, 80, Way::Unheard), to_old]).len(), 1);
    // The server checks the path and answers; the client says that the path is good.
    let check = (Side::Server, 260, 213, Way::Check);
    let good = (Side::Client, 261, SIZES.full + 60, Way::Heard);
    let heard = found(&[request, check, good, (Side::Server, 322, 400, Way::Heard)]);
    let times =
        |exchange: &Exchange| (exchange.request.first.unwrap().at / MS, exchange.response.first.unwrap().at / MS);
    assert_eq!(heard.iter().map(times).collect::<Vec<_>>(), [(100, 160), (200, 322)]);
    assert_eq!(heard[1].confidence, ANSWERED);
}

#[test]
fn a_short_packet_that_is_only_acknowledged_before_the_client_leaves_asked_nothing() {
    assert_eq!(exchanges(REQUEST, true, 265).len(), 1);
}

#[test]
fn a_request_that_a_client_waits_for_in_vain_remains_one() {
    assert_eq!(exchanges(REQUEST, true, 165 + 2 * ROUND_TRIP_MS).len(), 2);
    assert_eq!(exchanges(RANGES, true, 265).len(), 2);
    assert_eq!(exchanges(REQUEST, false, 265).len(), 2);
}

proptest! {
    #[test]
    fn what_was_answered_stays_whatever_follows(bytes in 1_u64..1_000, acknowledged: bool, over_ms in 226_i64..9_000) {
        let found = exchanges(bytes, acknowledged, over_ms);
        prop_assert!((1..=2).contains(&found.len()));
        prop_assert_eq!(found[0].response.first.map(|first| first.at), Some((100 + ROUND_TRIP_MS) * MS));
    }
}
