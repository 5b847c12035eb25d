//! Fragments: any order, copies, overlaps, limits.

use super::super::{Fragments, Mac, Placed};
use super::*;
use crate::stream::Arrival;

const TEXT: &[u8] = b"a segment that is much longer than what one small fragment can carry";
const SECOND: i64 = 1_000_000_000;

/// Cuts the payload of an IPv4 or IPv6 packet, which says `TEXT`, into pieces of `size` bytes.
fn pieces(six: bool, id: u8, size: usize) -> Vec<Vec<u8>> {
    let whole = tcp(&[], TEXT);
    let last = whole.len().div_ceil(size) - 1;
    let piece = |(index, part): (usize, &[u8])| {
        let place = (index * size) as u16;
        let more = u16::from(index < last);
        if six {
            let [hi, lo] = (place | more).to_be_bytes();
            ipv6(44, &[&[6, 0, hi, lo, 0, 0, 0, id], part].concat())
        } else {
            let mut packet = ipv4(6, &[], part);
            packet[4..6].copy_from_slice(&[0, id]);
            packet[6..8].copy_from_slice(&(place >> 3 | more << 13).to_be_bytes());
            packet
        }
    };
    whole.chunks(size).enumerate().map(piece).collect()
}

#[derive(Debug, Eq, PartialEq)]
enum Is {
    Waiting,
    Copy,
    Whole(String),
}

fn add(fragments: &mut Fragments, frame: &[u8], at: i64) -> Is {
    let Ok(Decoded::Fragment(fragment)) = decode(LinkType::RAW, frame, frame.len() as u32) else {
        panic!("no fragment")
    };
    match fragments.add(&fragment, Arrival { at, frame: at as u64 }) {
        Placed::Waiting => Is::Waiting,
        Placed::Copy => Is::Copy,
        Placed::Whole(whole) => match whole.decode() {
            Ok(Decoded::Tcp(segment)) => {
                assert_eq!(segment.payload_len as usize, TEXT.len());
                Is::Whole(String::from_utf8_lossy(segment.payload).into_owned())
            }
            other => panic!("{other:?}"),
        },
    }
}

fn whole() -> Is {
    Is::Whole(String::from_utf8_lossy(TEXT).into_owned())
}

#[test]
fn the_last_to_arrive_completes_the_packet_whatever_their_order() {
    for six in [false, true] {
        for rotation in 0..4 {
            let mut frames = pieces(six, 7, 24);
            assert_eq!(frames.len(), 4);
            frames.rotate_left(rotation);
            let mut fragments = Fragments::default();
            let results: Vec<Is> = frames.iter().map(|frame| add(&mut fragments, frame, 1)).collect();
            assert_eq!(results, [Is::Waiting, Is::Waiting, Is::Waiting, whole()]);
            assert_eq!(fragments.drain(), []);
        }
    }
}

#[test]
fn copies_are_told_from_a_number_that_is_used_again() {
    let frames = pieces(false, 7, 48);
    let mut fragments = Fragments::default();
    assert_eq!(add(&mut fragments, &frames[0], 0), Is::Waiting);
    assert_eq!(add(&mut fragments, &frames[0], 1), Is::Copy);
    assert_eq!(add(&mut fragments, &frames[1], 2), whole());
    assert_eq!(add(&mut fragments, &frames[1], 3), Is::Copy);
    assert_eq!(add(&mut fragments, &frames[1], SECOND), Is::Waiting);
    assert_eq!(add(&mut fragments, &frames[0], SECOND), whole());
}

#[test]
fn overlapping_pieces_spoil_their_packet_and_no_other() {
    for six in [false, true] {
        let (coarse, fine) = (pieces(six, 7, 48), pieces(six, 7, 32));
        let mut fragments = Fragments::default();
        assert_eq!(add(&mut fragments, &coarse[0], 1), Is::Waiting);
        assert_eq!(add(&mut fragments, &fine[1], 2), Is::Waiting);
        assert_eq!(add(&mut fragments, &coarse[1], 3), Is::Waiting);
        let other = pieces(six, 8, 48);
        assert_eq!(add(&mut fragments, &other[0], 4), Is::Waiting);
        assert_eq!(add(&mut fragments, &other[1], 5), whole());
        let lost: Vec<i64> = fragments.drain().iter().map(|lost| lost.frames).collect();
        assert_eq!(lost, [3]);
    }
}

#[test]
fn pieces_that_the_snap_length_cut_give_the_bytes_up_to_the_first_that_is_missing() {
    let mut frames = pieces(false, 7, 48);
    let len = frames[0].len();
    frames[0].truncate(len - 8);
    let mut fragments = Fragments::default();
    assert_eq!(add(&mut fragments, &frames[1], 1), Is::Waiting);
    let Is::Whole(joined) = add(&mut fragments, &frames[0], 2) else { panic!("not whole") };
    assert_eq!(joined.as_bytes(), &TEXT[..20]);
}

#[test]
fn what_waits_is_given_up_after_thirty_seconds() {
    let mut fragments = Fragments::default();
    add(&mut fragments, &pieces(false, 7, 48)[0], 5);
    assert_eq!(fragments.expired(30 * SECOND), None);
    let lost = fragments.expired(31 * SECOND).unwrap();
    assert_eq!((lost.opened.at, lost.frames, lost.is_udp), (5, 1, false));
    assert_eq!(add(&mut fragments, &pieces(false, 7, 48)[1], 31 * SECOND), Is::Waiting);
}

#[test]
fn hostile_fragments_do_not_make_memory_grow() {
    let mut fragments = Fragments::default();
    let mut given_up = 0;
    for number in 0..20_000_u32 {
        let [a, b, c, d] = number.to_be_bytes();
        let packet = ipv6(44, &[&[6, 0, 0, 1, a, b, c, d], &[0; 1_200][..]].concat());
        while fragments.expired(0).is_some() {
            given_up += 1;
        }
        assert_eq!(add(&mut fragments, &packet, 0), Is::Waiting);
    }
    assert!(20_000 - given_up < 4_000, "{given_up}");
}

#[test]
fn a_tunnel_in_pieces_is_opened() {
    let inner = ipv4(6, &[], &tcp(&[], TEXT));
    let mut frames: Vec<Vec<u8>> = inner.chunks(64).map(|part| ipv4(4, &[], part)).collect();
    frames[0][6] = 0x20;
    frames[1][6..8].copy_from_slice(&[0, 8]);
    let mut fragments = Fragments::default();
    assert_eq!(add(&mut fragments, &frames[0], 1), Is::Waiting);
    assert_eq!(add(&mut fragments, &frames[1], 2), whole());
}

proptest! {
    // Law: no fragments make it panic, nothing is counted twice, and nothing is kept for ever.
    #[test]
    fn arbitrary_fragments_are_survived(
        parts in proptest::collection::vec((0..4_u8, any::<u8>(), 0..12_usize, any::<bool>(), 0..3_u8), 0..60),
    ) {
        let mut fragments = Fragments::default();
        let (mut frames, mut added) = (0, 0);
        for (index, (id, place, words, more, odd)) in parts.into_iter().enumerate() {
            let mut packet = ipv4(17, &[], &vec![0; words * 8 + usize::from(odd / 2)]);
            packet[4..6].copy_from_slice(&[0, id]);
            packet[6..8].copy_from_slice(&[if more { 0x20 } else { 0 }, (place % 16).max(u8::from(!more))]);
            let Ok(Decoded::Fragment(fragment)) = decode(LinkType::RAW, &packet, 0) else { panic!("no fragment") };
            added += 1;
            match fragments.add(&fragment, Arrival { at: index as i64 * 10_000_000, frame: index as u64 }) {
                Placed::Waiting => {}
                Placed::Copy => frames += 1,
                Placed::Whole(whole) => frames += whole.frames,
            }
        }
        frames += fragments.drain().iter().map(|lost| lost.frames).sum::<i64>();
        prop_assert_eq!(frames, added);
    }
}

#[test]
fn a_packet_that_was_put_together_has_the_sender_of_its_first_piece() {
    let mut fragments = Fragments::default();
    let mut stations = Vec::new();
    for (place, piece) in pieces(false, 9, 40).iter().enumerate().rev() {
        let frame = [&MACS[..11], &[place as u8], &[8, 0], &piece[..]].concat();
        let Ok(Decoded::Fragment(fragment)) = decode(LinkType::ETHERNET, &frame, frame.len() as u32) else {
            panic!("no fragment")
        };
        if let Placed::Whole(whole) = fragments.add(&fragment, Arrival { at: 0, frame: 1 })
            && let Ok(Decoded::Tcp(segment)) = whole.decode()
        {
            stations.push(segment.station.mac);
        }
    }
    assert_eq!(stations, [Some(Mac([2, 0, 0, 0, 0, 0]))]);
}
