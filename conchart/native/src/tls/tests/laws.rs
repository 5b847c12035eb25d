//! What holds for any bytes.

use proptest::prelude::*;

use super::build::*;
use crate::stream::Side::{self, Client, Server};
use crate::stream::{Chunk, Gap};
use crate::tls::Tls;

/// One packet of a conversation.
fn packet() -> impl Strategy<Value = (bool, Vec<u8>)> {
    let piece = prop_oneof![
        (prop::sample::select(vec![0usize, 1, 19, 21, 22, 25, 35, 53, 69, 120, 255, 300, 2_000])).prop_map(data),
        Just(Hello::tls12().record()),
        Just(Hello::tls13().extension(42, vec![]).record()),
        Just(server_flight12()),
        Just(server_hello13(0x1301, false)),
        Just(server_hello13(0x1302, true)),
        Just(hello_retry_request()),
        Just(finished12()),
        Just(change_cipher_spec()),
        (0u8..3, 0u8..60).prop_map(|(level, what)| alert(level, what)),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(|body| record(22, &body)),
        (any::<u8>(), prop::collection::vec(any::<u8>(), 0..40)).prop_map(|(kind, body)| record(kind, &body)),
        prop::collection::vec(any::<u8>(), 0..40),
    ];
    (any::<bool>(), prop::collection::vec(piece, 1..4).prop_map(|pieces| pieces.concat()))
}

fn outcome(packets: &[(bool, Vec<u8>)], chop: usize, opened: bool) -> String {
    let mut talk = Talk::new();
    talk.chop = chop;
    if opened {
        talk = talk.hellos13(&Hello::tls13(), false);
    }
    for (client, bytes) in packets {
        talk.send(if *client { Client } else { Server }, bytes);
    }
    talk.tls.finish();
    let handshakes: Vec<_> = std::iter::from_fn(|| talk.tls.next_handshake()).collect();
    format!("{:?} {handshakes:?}", talk.records())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn how_the_stream_is_cut_changes_nothing(
        packets in prop::collection::vec(packet(), 0..12), chop in 1usize..9, opened: bool,
    ) {
        prop_assert_eq!(outcome(&packets, chop, opened), outcome(&packets, usize::MAX, opened));
    }

    #[test]
    fn no_bytes_gaps_or_cuts_panic_or_pile_up(
        steps in prop::collection::vec((any::<bool>(), 0u8..8, prop::collection::vec(any::<u8>(), 0..80), packet(), 0u32..4_000), 0..60),
        midstream: bool,
    ) {
        let mut talk = Talk::over(if midstream { Tls::midstream() } else { Tls::new(None) });
        for (client, what, noise, (_, bytes), size) in steps {
            let from = if client { Client } else { Server };
            match what {
                0 => talk.gap(from, u64::from(size)),
                1 => talk.fin(from),
                2 => { talk.send(from, &noise); }
                3 => { talk.send_cut(from, &bytes, bytes.len().min(size as usize)); }
                _ => { talk.send(from, &bytes); }
            }
            talk.records();
            prop_assert!(talk.tls.held_records() <= crate::tls::MAX_HELD);
        }
        talk.tls.finish();
        prop_assert_eq!(talk.tls.held_records(), 0);
    }
}

/// A message that announces 16 MiB is not kept.
#[test]
fn endless_message_is_bounded() {
    let mut talk = Talk::new();
    let mut body = vec![1, 0xff, 0xff, 0xff];
    for _ in 0..40 {
        body.resize(16_384, 3);
        talk.client(&record(22, &body));
        body.clear();
    }
    assert!(talk.tls.buffered() <= 128 * 1024, "{}", talk.tls.buffered());
    assert!(talk.tls.buffered() > 100_000);
}

#[test]
fn offsets_near_the_end_of_the_range_do_not_overflow() {
    let mut tls = Tls::new(None);
    let seen = at(1);
    let hello = Hello::tls12().record();
    tls.data(
        Side::Client,
        Chunk { bytes: &hello, cut: u32::MAX, offset: u64::from(u32::MAX) << 20, acked: u64::MAX, seen },
    );
    tls.gap(Side::Client, Gap::new(1 << 60, 1 << 60, seen));
    tls.finish();
    assert_eq!(tls.next_handshake().unwrap().sni.as_deref(), Some("example.org"));
}
