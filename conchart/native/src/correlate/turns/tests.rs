//! Whose turn it was: cases of one connection that two places saw.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::HashSet;

use super::{Found, Sighting, Stop, Wait, watch};

const MS: i64 = 1_000_000;

/// A packet that both places saw: when, by whom, how many bytes.
fn packet(frame: i64, at: [i64; 2], by_client: bool, bytes: i32) -> [Sighting; 2] {
    [0, 1].map(|place| Sighting {
        place,
        at: at[place] * MS,
        frame: frame + 100 * i64::try_from(place).unwrap(),
        packet: Some(frame),
        by_client,
        says: bytes > 0,
        bytes,
        seq: Some(frame * 10),
    })
}

fn watched(seen: Vec<Sighting>) -> Found {
    watched_but(seen, &HashSet::new(), &[])
}

fn watched_but(mut seen: Vec<Sighting>, lost: &HashSet<i64>, waits: &[Wait]) -> Found {
    let stop = |place, position| Stop {
        stream: 0,
        place,
        position,
        tells: place == 0,
        ack_at: None,
        isns: [Some(1), Some(2)],
        ends: None,
    };
    seen.sort_by_key(|one| (one.place, one.at));
    let mut found = Found::default();
    watch(&[stop(0, 0), stop(1, 1)], &seen, lost, waits, &mut found);
    found
}

/// Kind, place, and milliseconds from and to.
fn parts_in_ms(found: &Found) -> Vec<(&str, usize, i64, i64)> {
    found.parts.iter().map(|part| (part.kind, part.place, part.start_at / MS, part.end_at / MS)).collect()
}

#[test]
fn a_turn_is_the_path_there_the_host_and_the_path_back() {
    let found = watched([packet(1, [0, 5], true, 9), packet(2, [40, 33], false, 9)].concat());
    assert_eq!(parts_in_ms(&found), [("path", 0, 0, 5), ("path", 1, 33, 40), ("host", 1, 5, 33)]);
}

#[test]
fn offloading_that_joined_segments_hides_no_packet() {
    let mut seen = [packet(1, [0, 5], true, 9), packet(2, [40, 33], false, 9)].concat();
    // The answer was one segment with the bytes before it there: another packet.
    let joined = seen.iter_mut().find(|one| one.place == 1 && !one.by_client).unwrap();
    (joined.packet, joined.seq, joined.bytes) = (Some(102), Some(10), 20);
    assert_eq!(parts_in_ms(&watched(seen)), [("path", 0, 0, 5), ("path", 1, 33, 40), ("host", 1, 5, 33)]);
}

#[test]
fn what_one_side_takes_between_two_packets_is_its_own_as_far_as_the_other_place_saw_it() {
    let found =
        watched([packet(1, [0, 5], true, 9), packet(2, [10, 3], false, 9), packet(3, [30, 21], false, 9)].concat());
    let alone: Vec<_> = found.parts.iter().filter(|part| part.alone).collect();
    assert_eq!(
        alone.iter().map(|part| (part.kind, part.start_at / MS, part.end_at / MS)).collect::<Vec<_>>(),
        [("path", 28, 30), ("host", 10, 28)]
    );
    assert_eq!(alone[1].ahead_ns, Some(7 * MS));
}

#[test]
fn a_sender_that_goes_on_with_an_acknowledgement_waited_for_it() {
    let seen = [
        packet(1, [0, 10], true, 9),
        packet(2, [20, 10], false, 0),
        packet(3, [20, 30], true, 9),
        packet(4, [40, 30], false, 0),
        packet(5, [40, 50], true, 9),
        packet(6, [60, 50], false, 0),
        packet(7, [90, 95], true, 9),
    ];
    let paces: Vec<_> =
        watched(seen.concat()).paces.iter().map(|pace| (pace.start_at / MS, pace.end_at / MS)).collect();
    assert_eq!(paces, [(0, 40)], "the last one was not sent at once");
}

#[test]
fn nobody_answers_a_lost_datagram() {
    // The request, and an acknowledgement that only its sender saw.
    let lost = packet(2, [30, 0], true, 9)[0];
    let mut seen = [packet(1, [0, 5], true, 9), packet(3, [70, 65], false, 9)].concat();
    seen.push(lost);
    seen.iter_mut().for_each(|one| one.seq = None);
    let found = watched_but(seen, &HashSet::from([2]), &[]);
    assert_eq!(parts_in_ms(&found), [("path", 0, 0, 5), ("path", 1, 65, 70), ("host", 1, 5, 65)]);
}

#[test]
fn a_request_among_others_has_a_turn_of_its_own() {
    // Two requests, 2 ms apart; the second one is answered first.
    let seen = [
        packet(1, [0, 10], true, 9),
        packet(2, [2, 12], true, 9),
        packet(3, [30, 20], false, 9),
        packet(4, [50, 40], false, 9),
    ]
    .concat();
    let waits = [(0, 0, 50), (1, 2, 30), (2, 2, 31)].map(|(exchange, start, end)| Wait {
        stream: 0,
        exchange,
        start_at: start * MS,
        end_at: end * MS,
    });
    let found = watched_but(seen, &HashSet::new(), &waits);
    let of = |exchange: i32| -> Vec<_> {
        let parts = found.parts.iter().filter(|part| part.exchange == Some(exchange));
        parts.map(|part| (part.kind, part.start_at / MS, part.end_at / MS)).collect()
    };
    assert_eq!(of(0), [("path", 0, 10), ("path", 40, 50), ("host", 10, 40)]);
    assert_eq!(of(1), [("path", 2, 12), ("path", 20, 30), ("host", 12, 20)]);
    assert_eq!(of(2), [], "no packet came then");
}

#[test]
fn a_sender_that_paused_while_its_bytes_queued_kept_nobody_waiting() {
    let seen = [
        packet(1, [0, 10], true, 9),
        packet(2, [5, 30], true, 9),
        packet(3, [20, 45], true, 9),
        // The queue was empty before it came.
        packet(4, [60, 75], true, 9),
    ];
    let paces: Vec<_> =
        watched(seen.concat()).paces.iter().map(|pace| (pace.start_at / MS, pace.end_at / MS)).collect();
    assert_eq!(paces, [(0, 20)]);
}
