//! What is the same packet: cases of one connection.
#![allow(clippy::unwrap_used)]

use super::{Found, Seen, alike, pair};

/// A packet of `part` in the order of frames; `print` is what tells it from others with its number.
fn seen(part: usize, frame: i64, begins: Option<i64>, print: i64) -> Seen {
    let alike = alike(true, [begins, None], None, "A", Some(print));
    let row = usize::try_from(frame).unwrap() * 2 + part;
    Seen { part, frame, at: frame * 1_000, by_client: true, alike, begins, ip_id: 0, ttl: None, row }
}

/// The rows that are one packet, in order, of all that several rows are.
fn same(seen: &[Seen]) -> Vec<Vec<usize>> {
    let mut ordered = seen.to_vec();
    ordered.sort_by_key(|seen| (seen.part, seen.frame));
    let mut found = Found::default();
    pair(0, 2, &ordered, &mut found);
    let mut packets = found.packets.clone();
    assert_eq!(packets.len(), seen.len(), "each packet is told once");
    packets.sort_by_key(|(row, of)| (*of, *row));
    let told = packets.chunk_by(|one, other| one.1 == other.1).map(|same| same.iter().map(|(row, _)| *row).collect());
    told.filter(|rows: &Vec<usize>| rows.len() > 1).collect()
}

/// Whatever their prints happen to be: these are hashed, and decide no order.
#[test]
fn segments_that_begin_with_the_same_byte_are_the_same_packet() {
    for print in 0..64 {
        assert_eq!(same(&[seen(0, 1, Some(7), print), seen(1, 2, Some(7), print + 100)]), [[2, 5]], "print {print}");
    }
}

#[test]
fn acknowledgements_that_differ_are_not_the_same() {
    assert_eq!(same(&[seen(0, 1, None, 1), seen(1, 2, None, 2)]), [[0_usize; 0]; 0]);
}

#[test]
fn of_two_that_begin_with_the_same_byte_at_one_place_nobody_knows_which_it_is() {
    assert_eq!(same(&[seen(0, 1, Some(7), 1), seen(0, 2, Some(7), 2), seen(1, 3, Some(7), 3)]), [[0_usize; 0]; 0]);
}

#[test]
fn of_packets_that_look_alike_the_first_is_the_first() {
    let seen = [seen(0, 1, Some(7), 1), seen(0, 2, Some(7), 1), seen(1, 3, Some(7), 1), seen(1, 4, Some(7), 1)];
    assert_eq!(same(&seen), [[2, 7], [4, 9]]);
}
