//! What is the same packet: cases of one connection.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::{Found, Seen, alike, pair};
use crate::packet::Seq;

/// A packet of `part` in the order of frames; `print` is what tells it from others with its number.
fn seen(part: u16, frame: i64, begins: Option<u32>, print: i64) -> Seen {
    let alike = alike(true, [begins.map(i64::from), None], None, "A", Some(print));
    let row = u32::try_from(frame).unwrap() * 2 + u32::from(part);
    let begins = begins.map(Seq);
    Seen {
        part,
        frame,
        at: frame * 1_000,
        by_client: true,
        alike,
        begins,
        ip_id: 0,
        ttl: None,
        tos: None,
        row,
        nth: 0,
        bytes: 0,
    }
}

/// The rows that are one packet, in order, of all that several rows are.
fn same(seen: &[Seen]) -> Vec<Vec<u32>> {
    let mut ordered = seen.to_vec();
    ordered.sort_by_key(|seen| (seen.part, seen.frame));
    let mut found = Found::default();
    pair(0, 2, &mut ordered, &mut found);
    let mut packets = found.packets.clone();
    assert_eq!(packets.len(), seen.len(), "each packet is told once");
    packets.sort_by_key(|(row, of)| (*of, *row));
    let groups = packets.chunk_by(|one, other| one.1 == other.1).map(|same| same.iter().map(|(row, _)| *row).collect());
    groups.filter(|rows: &Vec<u32>| rows.len() > 1).collect()
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
    assert_eq!(same(&[seen(0, 1, None, 1), seen(1, 2, None, 2)]), [[0_u32; 0]; 0]);
}

#[test]
fn of_two_that_begin_with_the_same_byte_at_one_place_nobody_knows_which_it_is() {
    assert_eq!(same(&[seen(0, 1, Some(7), 1), seen(0, 2, Some(7), 2), seen(1, 3, Some(7), 3)]), [[0_u32; 0]; 0]);
}

#[test]
fn of_packets_that_look_alike_the_first_is_the_first() {
    let seen = [seen(0, 1, Some(7), 1), seen(0, 2, Some(7), 1), seen(1, 3, Some(7), 1), seen(1, 4, Some(7), 1)];
    assert_eq!(same(&seen), [[2, 7], [4, 9]]);
}

fn shares(seen: &[Seen]) -> Vec<(usize, usize, usize)> {
    let mut found = Found::default();
    pair(0, 2, &mut seen.to_vec(), &mut found);
    found.shares.iter().map(|share| (share.lacking, share.overtaken, share.late)).collect()
}

#[test]
fn each_place_says_what_it_lacks_and_what_was_overtaken() {
    let there = |order: [u32; 2]| {
        let [one, other] = order;
        [
            seen(0, 1, Some(7), 1),
            seen(0, 2, Some(8), 2),
            seen(1, 3, Some(one), i64::from(one) - 6),
            seen(1, 4, Some(other), i64::from(other) - 6),
        ]
    };
    assert_eq!(shares(&there([7, 8])), [(0, 0, 0), (0, 0, 0)]);
    assert_eq!(shares(&there([8, 7])), [(0, 0, 0), (0, 1, 0)]);
    assert_eq!(shares(&there([7, 8])[..3]), [(0, 0, 0), (1, 0, 0)]);
}

#[test]
fn bytes_are_late_behind_the_end_of_earlier_ones_also_where_numbers_begin_again() {
    let late = |numbers: [u32; 3]| {
        let segments = numbers
            .into_iter()
            .zip(1..)
            .map(|(from, frame)| Seen { bytes: 10, ..seen(0, frame, Some(from), i64::from(from)) });
        shares(&segments.collect::<Vec<_>>())[0].2
    };
    assert_eq!(late([0, 10, 20]), 0);
    assert_eq!(late([0, 20, 10]), 1, "overtaken");
    assert_eq!(late([0, 10, 5]), 1, "sent again");
    assert_eq!(late([u32::MAX - 9, 0, 10]), 0);
    assert_eq!(late([u32::MAX - 9, 0, u32::MAX - 9]), 1);
}
