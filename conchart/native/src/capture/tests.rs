//! Whole files in, frames out: by name what a format allows, then the laws.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use std::io::Cursor;

use proptest::prelude::*;

use super::Order::{Big, Little};
use super::samples::{Shot, Writer, gzip, pcap, pcapng, ten_shots, zstd};
use super::{CaptureReader, Facts, Source};
use crate::capture::error::{CaptureError, Damage};

/// All frames, the error if there was one, the facts: of a file those of a pipe.
fn read(bytes: &[u8]) -> (Vec<Shot>, Option<Box<Damage>>, Facts) {
    let [of_file, of_pipe] = [true, false].map(|is_file| read_as(bytes, is_file));
    let summary =
        |found: &(Vec<Shot>, Option<Box<Damage>>, Facts)| (found.1.as_ref().map(ToString::to_string), found.2.clone());
    assert_eq!((&of_file.0, summary(&of_file)), (&of_pipe.0, summary(&of_pipe)));
    of_file
}

fn read_as(bytes: &[u8], is_file: bool) -> (Vec<Shot>, Option<Box<Damage>>, Facts) {
    let mut reader = CaptureReader::start(Box::new(Cursor::new(bytes.to_vec())), "t.pcap".to_owned(), is_file).unwrap();
    let (mut shots, mut damage) = (Vec::new(), None);
    loop {
        match reader.next() {
            Ok(Some(frame)) => {
                let (at, original_len) = (frame.at, frame.original_len);
                shots.push(Shot { at, data: frame.data.to_vec(), original_len });
            }
            Ok(None) => break,
            Err(CaptureError::Damaged(found)) => {
                assert!(damage.replace(found).is_none(), "damage is told once")
            }
            Err(other) => panic!("unexpected {other}"),
        }
    }
    assert!(reader.next().unwrap().is_none(), "the end stays the end");
    (shots, damage, reader.facts())
}

fn times(shots: &[Shot]) -> Vec<i64> {
    shots.iter().map(|shot| shot.at).collect()
}

fn refuse(bytes: &[u8], name: &str) -> CaptureError {
    match CaptureReader::start(Box::new(Cursor::new(bytes.to_vec())), name.to_owned(), true) {
        Ok(_) => panic!("accepted"),
        Err(error) => error,
    }
}

#[test]
fn every_way_to_write_the_same_frames_reads_the_same() {
    let shots = ten_shots();
    for order in [Little, Big] {
        for unit in [1000, 1] {
            assert_eq!(read(&pcap(order, unit, &shots)).0, shots, "pcap {order:?} {unit}");
        }
        for resolution in [6, 7, 9, 0x80 | 30, 0x80 | 33] {
            assert_eq!(read(&pcapng(order, resolution, &shots)).0, shots, "pcapng {order:?} {resolution:#x}");
        }
    }
}

#[test]
fn compression_is_recognised_by_content_and_named_in_the_format() {
    let shots = ten_shots();
    let (plain, ng) = (pcap(Little, 1, &shots), pcapng(Big, 9, &shots));
    for (bytes, format) in [
        (plain.clone(), "pcap"),
        (gzip(&plain), "pcap+gzip"),
        (zstd(&plain), "pcap+zstd"),
        (gzip(&ng), "pcapng+gzip"),
        (zstd(&ng), "pcapng+zstd"),
    ] {
        let (found, damage, facts) = read(&bytes);
        assert_eq!((found, damage.is_none(), facts.format.as_str()), (shots.clone(), true, format));
    }
}

#[test]
fn gzip_members_and_zstd_frames_that_follow_each_other_are_one_stream() {
    let shots = ten_shots();
    let bytes = pcap(Little, 1, &shots);
    let (first, second) = bytes.split_at(100);
    assert_eq!(read(&[gzip(first), gzip(second)].concat()).0, shots);
    assert_eq!(read(&[zstd(first), zstd(second)].concat()).0, shots);
    let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3][..], &zstd(&bytes)].concat();
    assert_eq!(read(&skippable).0, shots);
}

#[test]
fn truncated_compression_gives_every_frame_before_the_cut() {
    let shots: Vec<Shot> = (0..40).flat_map(|_| ten_shots()).collect();
    let bytes = pcap(Little, 1, &shots);
    for packed in [gzip(&bytes), [gzip(&bytes[..3000]), zstd(b"no gzip")].concat()] {
        let cut = &packed[..packed.len() - 9];
        let (found, damage, _) = read(cut);
        assert!(!found.is_empty() && found[..] == shots[..found.len()]);
        let damage = damage.unwrap();
        assert!(damage.compressed && damage.delivered == found.len() as u64, "{damage}");
    }
}

#[test]
fn bytes_read_are_counted_as_they_are_in_the_file() {
    let packed = gzip(&pcap(Little, 1, &ten_shots()));
    let mut reader = CaptureReader::start(Box::new(Cursor::new(packed.clone())), "t".to_owned(), true).unwrap();
    while reader.next().unwrap().is_some() {}
    assert_eq!(reader.bytes_read(), packed.len() as u64);
}

#[test]
fn modified_pcap_has_longer_record_headers() {
    let mut file = Writer::new(Big);
    file.pcap_header(0xa1b2_cd34, 4, 1);
    file.u32(5).u32(7).u32(3).u32(60).u32(2).u16(0x0800).u16(0).raw(b"abc");
    let (shots, damage, facts) = read(&file.bytes);
    assert_eq!(shots, [Shot { at: 5_000_007_000, data: b"abc".to_vec(), original_len: 60 }]);
    assert_eq!((damage.is_none(), facts.resolution_ns, facts.drops), (true, 1000, None));
}

#[test]
fn ixias_file_header_is_longer() {
    for (magic, at) in [(0x1c00_01ab, 5_000_007_000), (0x1c00_01ac, 5_000_000_007)] {
        for order in [Little, Big] {
            let mut file = Writer::new(order);
            file.pcap_header(magic, 4, 1).u32(19).u32(5).u32(7).u32(3).u32(60).raw(b"abc");
            assert_eq!(read(&file.bytes).0, [Shot { at, data: b"abc".to_vec(), original_len: 60 }]);
        }
    }
}

#[test]
fn old_versions_have_swapped_lengths() {
    for (minor, lengths) in [(2, (60, 3)), (3, (60, 3)), (3, (3, 60)), (4, (3, 60))] {
        let mut file = Writer::new(Little);
        file.pcap_header(0xa1b2_c3d4, minor, 1).u32(5).u32(0).u32(lengths.0).u32(lengths.1).raw(b"abc");
        let (shots, ..) = read(&file.bytes);
        assert_eq!((shots[0].data.len(), shots[0].original_len), (3, 60), "2.{minor} {lengths:?}");
    }
}

#[test]
fn upper_bits_of_the_link_type_are_not_part_of_it() {
    let mut file = Writer::new(Little);
    file.pcap_header(0xa1b2_c3d4, 4, 0x2400_0001);
    assert_eq!(read(&file.bytes).2.link_types, [super::LinkType::ETHERNET]);
}

#[test]
fn seconds_are_unsigned() {
    let mut file = Writer::new(Little);
    file.pcap_header(0xa1b2_c3d4, 4, 1).u32(u32::MAX).u32(999_999).u32(0).u32(0);
    assert_eq!(times(&read(&file.bytes).0), [4_294_967_295_999_999_000]);
}

#[test]
fn packet_longer_than_allowed_is_damage_and_names_both_lengths() {
    let mut bytes = pcap(Little, 1, &ten_shots());
    let offset = bytes.len();
    bytes.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 0, 0, 0, 0]);
    let (shots, damage, _) = read(&bytes);
    let damage = damage.unwrap();
    assert_eq!((shots.len(), damage.frame, damage.offset), (10, 11, offset as u64));
    assert_eq!(damage.problem, "announces a packet of 2,130,706,432 bytes, limit 262,144");
}

#[test]
fn zeros_after_the_last_packet_are_damage_and_not_a_billion_packets() {
    let shots = ten_shots();
    for order in [Little, Big] {
        let bytes = [pcap(order, 1000, &shots), vec![0; 4096]].concat();
        let (found, damage, _) = read(&bytes);
        assert_eq!(found, shots);
        let damage = damage.unwrap();
        assert_eq!((damage.frame, damage.delivered), (11, 10));
        assert!(damage.to_string().contains("zeros stand where its record header should be"), "{damage}");
    }
}

#[test]
fn a_time_that_no_clock_shows_is_the_nearest_that_one_could_and_is_noted() {
    for (at, limit) in [(i64::MIN, -((1 << 62) - 1)), (i64::MAX, (1 << 62) - 1)] {
        let impossible = Shot { at, data: vec![1; 60], original_len: 60 };
        let (found, _, facts) =
            read(&pcapng(Little, 9, &[impossible.clone(), impossible.clone(), ten_shots()[0].clone()]));
        assert_eq!(times(&found), [limit, limit, ten_shots()[0].at]);
        let years = if at < 0 {
            "packet 1: impossible time stamp (before 1823)"
        } else {
            "packet 1: impossible time stamp (after 2116)"
        };
        assert!(facts.notes.sentences()[0].starts_with(years), "{:?}", facts.notes);
        assert_eq!(facts.notes.sentences().len(), 2);
    }
}

#[test]
fn interfaces_keep_their_own_clock_and_link_type() {
    for order in [Little, Big] {
        let mut file = Writer::new(order);
        let offset: Vec<u8> = match order {
            Big => 1_000_000_i64.to_be_bytes().to_vec(),
            Little => 1_000_000_i64.to_le_bytes().to_vec(),
        };
        file.section().interface(1, 0, &[(9, &[9])]).interface(113, 0, &[(9, &[3]), (14, &offset)]).interface(
            0,
            0,
            &[],
        );
        file.enhanced(1, 5, b"b", 1).enhanced(0, 5, b"a", 1);
        let (shots, damage, facts) = read(&file.bytes);
        assert_eq!((times(&shots), damage.is_none()), (vec![1_000_000_005_000_000, 5], true));
        let names: Vec<_> = facts.link_types.iter().map(|link| link.name()).collect();
        assert_eq!(
            (names.join(","), facts.resolution_ns),
            ("LINUX_SLL,EN10MB".into(), 1_000_000),
            "the unused is not named"
        );
    }
}

#[test]
fn sections_may_change_byte_order_and_start_interfaces_anew() {
    let mut bytes = Vec::new();
    for (order, resolution) in [(Little, 6), (Big, 9), (Little, 3)] {
        let mut section = Writer::new(order);
        section.section().interface(1, 0, &[(9, &[resolution])]).enhanced(0, 7, b"xyz", 3);
        bytes.extend(section.bytes);
    }
    let mut reader = CaptureReader::start(Box::new(Cursor::new(bytes)), "t".to_owned(), true).unwrap();
    let mut found = Vec::new();
    while let Some(frame) = reader.next().unwrap() {
        found.push(frame.at);
    }
    assert_eq!(found, [7000, 7, 7_000_000]);
}

#[test]
fn simple_and_obsolete_packets_are_frames_too() {
    let mut file = Writer::new(Big);
    file.section().interface(1, 2, &[(9, &[9])]).enhanced(0, 5, b"ab", 2);
    file.block(3, |body| {
        body.u32(9).raw(b"cd");
    });
    file.block(2, |body| {
        body.u16(0).u16(3).u32(0).u32(8).u32(1).u32(4).raw(b"e");
    });
    let (shots, _, facts) = read(&file.bytes);
    let shot = |at, data: &[u8], original_len| Shot { at, data: data.to_vec(), original_len };
    assert_eq!(shots, [shot(5, b"ab", 2), shot(5, b"cd", 9), shot(8, b"e", 4)]);
    assert_eq!((facts.drops, facts.notes.sentences().len()), (Some(3), 1), "the second frame has no time: noted");
    assert!(facts.notes.sentences()[0].starts_with("packet 2: "), "{:?}", facts.notes);
}

#[test]
fn the_last_statistics_of_each_interface_and_section_add_up() {
    let mut file = Writer::new(Little);
    for _ in 0..2 {
        file.section().interface(1, 0, &[]).interface(1, 0, &[]);
        for (interface, dropped) in [(0_u32, 5_u64), (1, 10), (0, 7), (9, 99)] {
            file.block(5, |body| {
                body.u32(interface).u64(0).options(&[
                    (4, &[1; 8]),
                    (5, &dropped.to_le_bytes()),
                    (7, &1_u64.to_le_bytes()),
                ]);
            });
        }
    }
    assert_eq!(read(&file.bytes).2.drops, Some(2 * (7 + 1 + 10 + 1)));
    let mut silent = Writer::new(Little);
    silent.section().interface(1, 0, &[]);
    assert_eq!(read(&silent.bytes).2.drops, None, "silence is not zero");
}

#[test]
fn other_blocks_are_stepped_over_however_long() {
    let mut file = Writer::new(Little);
    file.section().interface(1, 0, &[]);
    for kind in [4, 10, 0x0bad, 0x8000_0001] {
        file.block(kind, |body| {
            body.raw(&vec![0xee; 2_000_001]);
        });
    }
    file.block(0x4000_0bad, |body| {
        body.raw(&vec![0xee; 17 << 20]);
    });
    file.enhanced(0, 1, b"a", 1);
    let (shots, damage, _) = read(&file.bytes);
    assert_eq!((times(&shots), damage.is_none()), (vec![1000], true));
}

#[test]
fn records_that_wireshark_numbers_keep_their_numbers() {
    let mut file = Writer::new(Big);
    file.section().interface(1, 0, &[]);
    for kind in [0x0bad, 0x4000_0bad, 9, 0x204, 10, 0x8000_0001] {
        file.enhanced(0, 1, b"a", 1).block(kind, |body| {
            body.raw(&[0; 32]);
        });
    }
    file.u32(6);
    let mut reader = CaptureReader::start(Box::new(Cursor::new(file.bytes)), "t".to_owned(), true).unwrap();
    let mut numbers = Vec::new();
    let damage = loop {
        match reader.next() {
            Ok(frame) => numbers.push(frame.unwrap().number),
            Err(CaptureError::Damaged(damage)) => break damage,
            Err(other) => panic!("{other}"),
        }
    };
    assert_eq!(numbers, [1, 3, 5, 7, 9, 10]);
    assert_eq!((damage.frame, damage.delivered), (11, 6));
}

#[test]
fn drops_that_packets_tell_of_add_up_and_comments_are_stepped_over() {
    let mut file = Writer::new(Little);
    file.section().interface(1, 0, &[(1, b"eth0 of the proxy")]);
    for _ in 0..200 {
        file.enhanced_with(0, 1, b"a", 1, &[(1, &[b'x'; 9000]), (4, &2_u64.to_le_bytes())]);
    }
    let (shots, damage, facts) = read(&file.bytes);
    assert_eq!((shots.len(), damage.is_none(), facts.drops), (200, true, Some(400)));
}

#[test]
fn broken_blocks_are_damage_that_says_what_is_wrong() {
    let start = |file: &mut Writer| {
        file.section().interface(1, 0, &[]).enhanced(0, 1, b"good", 4);
    };
    type Spoil<'a> = &'a dyn Fn(&mut Writer);
    let cases: [(&str, Spoil<'_>); 5] = [
        ("captured on interface 3, but its section describes 1 interface(s)", &|file| {
            file.enhanced(3, 1, b"a", 1);
        }),
        ("packet of 5,000 bytes in a block that has 4 left", &|file| {
            file.block(6, |body| {
                body.u32(0).u64(0).u32(5000).u32(5000).u32(0);
            });
        }),
        ("announces a block of 8 bytes, at least 12 expected", &|file| {
            file.u32(6).u32(8).u32(8);
        }),
        ("block begins with length 16 but ends with 20", &|file| {
            file.u32(6).u32(16).u32(0).u32(20);
        }),
        ("announces a block of 4,294,967,292 bytes, limit 16,777,216", &|file| {
            file.u32(6).u32(0xffff_fffc).u32(0);
        }),
    ];
    for (problem, spoil) in cases {
        let mut file = Writer::new(Little);
        start(&mut file);
        let offset = file.bytes.len() as u64;
        spoil(&mut file);
        let (shots, damage, _) = read(&file.bytes);
        let damage = damage.unwrap();
        assert_eq!((shots.len(), damage.frame, damage.offset, damage.problem.as_str()), (1, 2, offset, problem));
    }
}

#[test]
fn what_is_no_capture_is_refused_with_a_hint() {
    let cases: [(&[u8], &str, &str); 7] = [
        (b"{\"log\": {\"version\": \"1.2\"", "a.har", "HAR"),
        (b"12:00:01.2 IP 10.0.0.1 > 10.0.0.2", "a.txt", "tcpdump -w"),
        (b"<!doctype html><html>", "a.pcap", "HTML"),
        (b"snoop\0\0\0\0\0\0\x02", "a.snoop", "editcap"),
        (b"\xfd7zXZ\0\0\0", "a.pcap.xz", "unxz"),
        (&[0, 0, 1, 0, 0xff, 0xfe, 0, 0], "Trace.ETL", "etl2pcapng"),
        (b"MZ", "a.pcap", "4d 5a"),
    ];
    for (bytes, name, expected) in cases {
        let error = refuse(bytes, name);
        assert!(matches!(error, CaptureError::NotACapture { .. }), "{error:?}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert!(matches!(refuse(b"", "a"), CaptureError::Empty { .. }));
    assert!(matches!(refuse(&gzip(b""), "a"), CaptureError::Empty { .. }));
    assert!(matches!(refuse(&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0], "a"), CaptureError::Damaged(_)));
    let nowhere = Source::Path("no/such/file.pcap".into());
    assert!(matches!(CaptureReader::open(&nowhere), Err(CaptureError::NotFound { .. })));
    assert!(matches!(CaptureReader::open(&Source::Path(".".into())), Err(CaptureError::Io { .. })));
}

fn shots() -> impl Strategy<Value = Vec<Shot>> {
    // Microseconds of the next century, so that every resolution below can hold them.
    let shot = (0..4_000_000_000_000_000_i64, proptest::collection::vec(any::<u8>(), 0..90), 0..2000_u32).prop_map(
        |(micros, data, cut)| {
            let original_len = data.len() as u32 + cut;
            Shot { at: micros * 1000, data, original_len }
        },
    );
    proptest::collection::vec(shot, 0..20)
}

fn order() -> impl Strategy<Value = super::Order> {
    prop_oneof![Just(Little), Just(Big)]
}

proptest! {
    // Law: how the frames are written never changes what is read.
    #[test]
    fn encodings_agree(
        shots in shots(),
        order in order(),
        resolution in prop_oneof![6..=9_u8, Just(0x80 | 30), Just(0x80 | 31)],
        pack in 0..3,
    ) {
        let packed = |bytes: Vec<u8>| match pack {
            0 => bytes,
            1 => gzip(&bytes),
            _ => zstd(&bytes),
        };
        for bytes in [pcap(order, 1000, &shots), pcap(order, 1, &shots), pcapng(order, resolution, &shots)] {
            let (found, damage, _) = read(&packed(bytes));
            prop_assert_eq!(&found, &shots);
            prop_assert!(damage.is_none());
        }
    }

    // Law: a file cut anywhere gives the frames before the cut, and says so unless it was cut between two.
    #[test]
    fn a_prefix_of_a_file_gives_a_prefix_of_its_frames(shots in shots(), order in order(), ng: bool, cut in 0.0..1.0_f64) {
        let bytes = if ng { pcapng(order, 9, &shots) } else { pcap(order, 1, &shots) };
        let head = if ng { 28 } else { 24 };
        let cut = head + ((bytes.len() - head) as f64 * cut) as usize;
        let (found, damage, _) = read(&bytes[..cut]);
        prop_assert_eq!(&found[..], &shots[..found.len()]);
        let (again, none, _) = read(&bytes);
        prop_assert_eq!((again.len(), none.is_none()), (shots.len(), true));
        if let Some(damage) = damage {
            prop_assert_eq!(damage.delivered, found.len() as u64);
            prop_assert!(damage.offset < cut as u64 + 1);
        }
    }

    // Law: no bytes make the reader panic, loop or allocate more than its buffer.
    #[test]
    fn arbitrary_bytes_are_survived(
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
        head in prop_oneof![
            Just(vec![]),
            Just(pcap(Big, 1, &ten_shots())),
            Just(pcapng(Little, 9, &ten_shots())),
            Just(pcapng(Big, 9, &[])),
            Just(vec![0x1f, 0x8b, 8]),
            Just(vec![0x28, 0xb5, 0x2f, 0xfd]),
        ],
    ) {
        let all = [head, bytes].concat();
        if let Ok(mut reader) = CaptureReader::start(Box::new(Cursor::new(all)), "t".to_owned(), true) {
            while let Ok(Some(_)) = reader.next() {}
            let _ = reader.facts();
        }
    }

    // Law: nor do valid files with some bytes overwritten.
    #[test]
    fn damaged_files_are_survived(
        ng: bool,
        order in order(),
        blows in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let shots = ten_shots();
        let mut bytes = if ng { pcapng(order, 9, &shots) } else { pcap(order, 1, &shots) };
        for (position, byte) in blows {
            let position = position.index(bytes.len());
            bytes[position] = byte;
        }
        if let Ok(mut reader) = CaptureReader::start(Box::new(Cursor::new(bytes)), "t".to_owned(), true) {
            while let Ok(Some(_)) = reader.next() {}
            let _ = reader.facts();
        }
    }
}
