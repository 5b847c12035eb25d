//! Frames in, segments out: each link and network layer by name, etherparse as the oracle, the laws.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::cast_possible_truncation)]

mod fragments;
mod links;
mod tunnels;

use etherparse::{PacketBuilder, SlicedPacket, TcpOptionElement, TransportSlice};
use proptest::prelude::*;

use super::{Decoded, PacketError, Segment, decode};
use crate::capture::LinkType;

const MACS: [u8; 12] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];

fn ethernet(kinds: &[u8], ip: &[u8]) -> Vec<u8> {
    [&MACS, kinds, ip].concat()
}

/// An IPv4 packet: `protocol`, IP options, what it carries.
fn ipv4(protocol: u8, options: &[u8], carried: &[u8]) -> Vec<u8> {
    let total = (20 + options.len() + carried.len()) as u16;
    let mut packet = vec![0x45 + (options.len() / 4) as u8, 0, 0, 0, 0x12, 0x34, 0x40, 0, 61, protocol, 0, 0];
    packet[2..4].copy_from_slice(&total.to_be_bytes());
    packet.extend_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    [&packet, options, carried].concat()
}

/// An IPv6 packet whose first next header is `next`.
fn ipv6(next: u8, carried: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 0, next, 61];
    packet[4..6].copy_from_slice(&(carried.len() as u16).to_be_bytes());
    packet.extend_from_slice(&[0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    packet.extend_from_slice(&[0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    [&packet, carried].concat()
}

/// A TCP segment from port 51344 to 443: `options` must be padded.
fn tcp(options: &[u8], payload: &[u8]) -> Vec<u8> {
    let words = (5 + options.len() / 4) as u8;
    let head = [200, 144, 1, 187, 0, 0, 0, 5, 0, 0, 0, 7, words << 4, 0x18, 1, 2, 0, 0, 0, 0];
    [&head, options, payload].concat()
}

fn segment(link: LinkType, frame: &[u8], wire: usize) -> Segment<'_> {
    match decode(link, frame, wire as u32) {
        Ok(Decoded::Tcp(segment)) => segment,
        other => panic!("{other:?}"),
    }
}

/// Decodes a frame that was captured as a whole and checks that it is our "hello".
fn says_hello(link: LinkType, frame: &[u8]) {
    let segment = segment(link, frame, frame.len());
    assert_eq!((segment.payload, segment.payload_len), (&b"hello"[..], 5), "{link}");
    assert_eq!((segment.source.port, segment.destination.port, segment.seq.0), (51344, 443, 5), "{link}");
}

#[test]
fn every_field_of_a_segment_is_read() {
    let options = [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 8, 1, 3, 3, 7];
    let frame = ethernet(&[8, 0], &ipv4(6, &[], &tcp(&options, b"hello")));
    let segment = segment(LinkType::ETHERNET, &frame, frame.len());
    assert_eq!(segment.source, super::Endpoint { ip: [10, 0, 0, 1].into(), port: 51344 });
    assert_eq!(segment.destination, super::Endpoint { ip: [10, 0, 0, 2].into(), port: 443 });
    assert_eq!((segment.seq.0, segment.ack.0, segment.flags.0, segment.window), (5, 7, 0x18, 258));
    assert_eq!((segment.mss, segment.timestamps), (Some(1460), Some((9, 8))));
    assert_eq!(
        (segment.payload, segment.payload_len, segment.ip_id, segment.ttl),
        (&b"hello"[..], 5, Some(0x1234), 61)
    );
}

#[test]
fn an_ip_length_beyond_the_frame_adds_no_bytes() {
    for six in [false, true] {
        let mut frame = if six {
            ethernet(&[0x86, 0xdd], &ipv6(6, &tcp(&[], b"hello")))
        } else {
            ethernet(&[8, 0], &ipv4(6, &[], &tcp(&[], b"hello")))
        };
        let length = if six { 18 } else { 16 };
        frame[length] += 16;
        let segment = segment(LinkType::ETHERNET, &frame, frame.len());
        assert_eq!((segment.payload, segment.payload_len, segment.beyond_frame), (&b"hello"[..], 5, 4_096));
        // What the snap length cut was on the wire.
        let snapped = self::segment(LinkType::ETHERNET, &frame, frame.len() + 4_096);
        assert_eq!((snapped.payload, snapped.payload_len, snapped.beyond_frame), (&b"hello"[..], 4_101, 0));
    }
}

#[test]
fn every_link_layer_leads_to_the_same_segment() {
    let v4 = ipv4(6, &[], &tcp(&[], b"hello"));
    let v6 = ipv6(6, &tcp(&[], b"hello"));
    let sll = |kind: &[u8]| [&[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0][..], kind].concat();
    let sll2 = |kind: &[u8]| [kind, &[0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0][..]].concat();
    for (kind, ip, family) in [([8, 0], &v4, 2_u8), ([0x86, 0xdd], &v6, 30)] {
        says_hello(LinkType::ETHERNET, &ethernet(&kind, ip));
        says_hello(LinkType::LINUX_SLL, &[&sll(&kind), ip.as_slice()].concat());
        says_hello(LinkType::LINUX_SLL2, &[&sll2(&kind), ip.as_slice()].concat());
        says_hello(LinkType::NULL, &[&[family, 0, 0, 0], ip.as_slice()].concat());
        says_hello(LinkType::NULL, &[&[0, 0, 0, family], ip.as_slice()].concat());
        says_hello(LinkType::LOOP, &[&[0, 0, 0, family], ip.as_slice()].concat());
        for raw in [12, 14, 101, 228, 229] {
            says_hello(LinkType(raw), ip);
        }
        let ppp: &[u8] = if family == 2 { &[0, 0x21] } else { &[0, 0x57] };
        says_hello(LinkType::PPP, &[&[0xff, 3], ppp, ip].concat());
        says_hello(LinkType::PPP_SERIAL, &[&ppp[1..], ip].concat());
        says_hello(LinkType::ETHERNET, &ethernet(&[&[0x88, 0x64, 0x11, 0, 0, 1, 0, 99], ppp].concat(), ip));
        says_hello(LinkType::ETHERNET, &ethernet(&[0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64], ip));
        let snap = [0, 99, 0xaa, 0xaa, 3, 0, 0, 0, kind[0], kind[1]];
        says_hello(LinkType::ETHERNET, &ethernet(&snap, ip));
        says_hello(LinkType::FDDI, &[&[0x50], &MACS[..], &[0xaa, 0xaa, 3, 0, 0, 0], &kind, ip].concat());
        says_hello(LinkType::C_HDLC, &[&[0x0f, 0], &kind[..], ip].concat());
        says_hello(LinkType::IPOIB, &[&[0; 40], &kind[..], &[0, 0], ip].concat());
        says_hello(LinkType::ETHERNET, &ethernet(&[&[0x88, 0xe7, 0, 0, 0, 1], &MACS[..], &kind].concat(), ip));
        let len = (4 + ip.len()) as u16;
        for (number, nine) in [(len.to_le_bytes(), [9, 0]), (len.to_be_bytes(), [0, 9])] {
            let mark = if nine[0] == 9 { [6, 0, 10, 0] } else { [0, 6, 0, 10] };
            says_hello(LinkType::NFLOG, &[&[family, 0, 0, 5][..], &mark, b"e0\0\0", &number, &nine, ip].concat());
        }
    }
}

#[test]
fn cisco_metadata_is_stepped_over() {
    let ip = ipv4(6, &[], &tcp(&[], b"hello"));
    says_hello(LinkType::ETHERNET, &ethernet(&[0x89, 0x09, 1, 1, 0, 1, 0, 7, 8, 0], &ip));
    says_hello(LinkType::ETHERNET, &ethernet(&[0x81, 0, 0, 7, 0x89, 0x09, 1, 2, 0, 1, 0, 7, 0, 2, 0, 9, 8, 0], &ip));
    let cut = PacketError::Cut { layer: "Cisco MetaData", offset: 14, need: 8, have: 6 };
    assert_eq!(decode(LinkType::ETHERNET, &ethernet(&[0x89, 0x09, 1, 1, 0, 1, 0, 7], &[]), 60).unwrap_err(), cut);
}

#[test]
fn vlan_tags_stack_up_to_eight() {
    let ip = ipv4(6, &[], &tcp(&[], b"hello"));
    for tag in [[0x81, 0], [0x88, 0xa8], [0x91, 0]] {
        for depth in 1..=8 {
            let tags = [tag[0], tag[1], 0, 7].repeat(depth);
            says_hello(LinkType::ETHERNET, &ethernet(&[&tags[..], &[8, 0]].concat(), &ip));
        }
    }
    let nine = ethernet(&[&[0x81, 0, 0, 7].repeat(9)[..], &[8, 0]].concat(), &ip);
    assert!(matches!(decode(LinkType::ETHERNET, &nine, 100), Ok(Decoded::Other)));
}

#[test]
fn padding_and_check_sequences_are_not_payload() {
    for ip in [ipv4(6, &[], &tcp(&[], b"hello")), ipv6(6, &tcp(&[], b"hello"))] {
        let kind = if ip[0] == 0x45 { [8, 0] } else { [0x86, 0xdd] };
        let mut frame = ethernet(&kind, &ip);
        frame.extend_from_slice(&[0xee; 9]);
        says_hello(LinkType::ETHERNET, &frame);
    }
    let empty = [ipv4(6, &[], &tcp(&[], b"")), vec![0; 6]].concat();
    assert_eq!(segment(LinkType::RAW, &empty, empty.len()).payload_len, 0);
}

#[test]
fn ip_length_zero_means_to_the_end_of_the_frame_on_the_wire() {
    for mut ip in [ipv4(6, &[], &tcp(&[], b"hello")), ipv6(6, &tcp(&[], b"hello"))] {
        let length = if ip[0] == 0x45 { 2 } else { 4 };
        ip[length..length + 2].fill(0);
        says_hello(LinkType::RAW, &ip);
        let cut = segment(LinkType::RAW, &ip, ip.len() + 70_000);
        assert_eq!((cut.payload, cut.payload_len), (&b"hello"[..], 70_005));
    }
}

#[test]
fn snap_length_cuts_payload_and_options_but_not_their_lengths() {
    let options = [8, 10, 0, 0, 0, 9, 0, 0, 0, 8, 1, 1];
    let whole = ipv4(6, &[], &tcp(&options, b"hello"));
    let at = |len: usize| segment(LinkType::RAW, &whole[..len], whole.len());
    assert_eq!((at(54).payload, at(54).payload_len, at(54).timestamps), (&b"he"[..], 5, Some((9, 8))));
    assert_eq!((at(45).payload, at(45).payload_len, at(45).timestamps), (&b""[..], 5, None));
    assert_eq!((at(40).payload, at(40).payload_len, at(40).timestamps), (&b""[..], 5, None));
    let cut = PacketError::Cut { layer: "TCP", offset: 20, need: 20, have: 19 };
    assert_eq!(decode(LinkType::RAW, &whole[..39], 57).unwrap_err(), cut);
    assert_eq!(cut.to_string(), "TCP header at byte 20 needs 20 bytes, 19 are there");
}

#[test]
fn options_that_make_no_sense_are_left_out_and_the_segment_stays() {
    for (options, mss) in [
        ([2, 4, 5, 180, 8, 1, 0, 0], Some(1460)),   // length below 2
        ([2, 4, 5, 180, 8, 200, 0, 0], Some(1460)), // longer than what is left
        ([2, 3, 5, 1, 1, 1, 1, 1], None),           // an MSS of one byte
        ([0, 2, 4, 5, 180, 0, 0, 0], None),         // after the end of the list
        ([1, 1, 1, 2, 4, 5, 180, 254], Some(1460)), // a kind without its length
    ] {
        let ip = ipv4(6, &[], &tcp(&options, b"hello"));
        assert_eq!(segment(LinkType::RAW, &ip, ip.len()).mss, mss, "{options:?}");
        says_hello(LinkType::RAW, &ip);
    }
}

#[test]
fn a_duplicate_sack_is_told_from_a_selective_one() {
    let duplicate_sack = |blocks: &[[u32; 2]]| {
        let numbers: Vec<u8> = blocks.iter().flatten().flat_map(|number| number.to_be_bytes()).collect();
        let options = [&[1, 1, 5, 2 + numbers.len() as u8][..], &numbers].concat();
        let ip = ipv4(6, &[], &tcp(&options, b""));
        segment(LinkType::RAW, &ip, ip.len()).duplicate_sack.map(|(left, right)| [left.0, right.0])
    };
    // The acknowledgement number is 7.
    assert_eq!(duplicate_sack(&[[3, 7]]), Some([3, 7]));
    assert_eq!(duplicate_sack(&[[3, 8]]), None);
    assert_eq!(duplicate_sack(&[[20, 30]]), None);
    assert_eq!(duplicate_sack(&[[20, 30], [10, 30]]), Some([20, 30]));
    assert_eq!(duplicate_sack(&[[20, 30], [40, 50]]), None);
    assert_eq!(duplicate_sack(&[]), None);
}

#[test]
fn extension_headers_are_stepped_over() {
    let segment = tcp(&[], b"hello");
    let one = |next: u8| [&[next, 1][..], &[0; 14]].concat();
    let chain =
        [one(43), one(60), one(51), vec![44, 2], vec![0; 14], vec![135, 0, 0, 0, 0, 0, 0, 9], one(6), segment.clone()];
    says_hello(LinkType::RAW, &ipv6(0, &chain.concat()));
    says_hello(LinkType::RAW, &ipv4(51, &[], &[&[6, 1][..], &[0; 10], &segment].concat()));
    says_hello(LinkType::RAW, &ipv4(6, &[1; 40], &segment));
}

/// Length and payload of a UDP datagram.
fn datagram(frame: &[u8]) -> (u32, &[u8]) {
    match decode(LinkType::RAW, frame, 0) {
        Ok(Decoded::Udp(datagram)) => {
            assert_eq!((datagram.source.port, datagram.destination.port), (9, 53));
            (datagram.payload_len, datagram.payload)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_datagram_ends_where_its_header_or_ip_says() {
    let udp = |len: u16, carried: &[u8]| [&[0, 9, 0, 53], &len.to_be_bytes()[..], &[0, 0], carried].concat();
    assert_eq!(datagram(&ipv4(17, &[], &udp(13, b"hello"))), (5, &b"hello"[..]));
    assert_eq!(datagram(&ipv4(17, &[], &udp(11, b"hello"))), (3, &b"hel"[..]));
    // Of a network card that is to fill it in, and one that promises more than IP carries.
    for announced in [0, 99] {
        assert_eq!(datagram(&ipv6(17, &udp(announced, b"hello"))), (5, &b"hello"[..]));
    }
    let whole = ipv4(17, &[], &udp(13, b"hello"));
    let cut = decode(LinkType::RAW, &whole[..whole.len() - 2], whole.len() as u32);
    assert!(matches!(cut, Ok(Decoded::Udp(cut)) if cut.payload_len == 5 && cut.payload == b"hel"));
}

#[test]
fn a_datagram_without_a_header_is_an_error() {
    let short = ipv4(17, &[], &[0, 9, 0, 53, 0, 7, 0, 0]);
    for frame in [ipv4(17, &[], &[]), ipv4(17, &[], &[0; 7]), short] {
        assert_eq!(decode(LinkType::RAW, &frame, 0).err().map(|error| error.layer()), Some("UDP"));
    }
}

#[test]
fn fragments_are_told_from_segments_and_from_other_protocols() {
    let mut first = ipv4(6, &[], &tcp(&[], b"hello"));
    first[6] = 0x20;
    let mut later = ipv4(6, &[], b"rest");
    later[7] = 3;
    let mut datagram = ipv4(17, &[], b"rest");
    datagram[7] = 3;
    let mut icmp = datagram.clone();
    icmp[9] = 1;
    let six = |next, offset, carried: &[u8]| ipv6(44, &[&[next, 0, 0, offset, 0, 0, 0, 9], carried].concat());
    for fragment in [first, later, datagram, six(6, 1, &tcp(&[], b"hello")), six(6, 8, b"rest"), six(17, 8, b"rest")] {
        assert!(matches!(decode(LinkType::RAW, &fragment, 0), Ok(Decoded::Fragment(_))));
    }
    for other in [icmp, ipv6(59, &[]), vec![0; 40], vec![]] {
        assert!(matches!(decode(LinkType::RAW, &other, 0), Ok(Decoded::Other)));
    }
}

#[test]
fn headers_that_contradict_themselves_are_errors_that_name_the_field() {
    let spoil = |at: usize, byte: u8| {
        let mut frame = ethernet(&[8, 0], &ipv4(6, &[], &tcp(&[], b"hello")));
        frame[at] = byte;
        decode(LinkType::ETHERNET, &frame, frame.len() as u32).unwrap_err().to_string()
    };
    assert_eq!(spoil(14, 0x65), "IPv4 header at byte 14: version is 6, 4 expected");
    assert_eq!(spoil(14, 0x42), "IPv4 header at byte 14: header length is 8, at least 20 expected");
    assert_eq!(spoil(17, 19), "IPv4 header at byte 14: total length is 19, at least the header's length expected");
    assert_eq!(spoil(46, 0x10), "TCP header at byte 34: header length is 4, at least 20 expected");
    assert_eq!(spoil(46, 0xf0), "TCP header at byte 34: header length is 60, at most the length IP gives expected");
    let unknown = decode(LinkType(147), &[], 0).unwrap_err();
    assert_eq!(
        (unknown, unknown.to_string().as_str()),
        (PacketError::UnsupportedLink(LinkType(147)), "link type DLT 147 is not supported")
    );
}

/// Ports, sequence and acknowledgment numbers, window, the two options, payload.
type Fields = (u16, u16, u32, u32, u16, Option<u16>, Option<(u32, u32)>, Vec<u8>);

/// What etherparse makes of a frame, in our terms.
fn by_etherparse(frame: &[u8]) -> Fields {
    let packet = SlicedPacket::from_ethernet(frame).unwrap();
    let Some(TransportSlice::Tcp(tcp)) = packet.transport else { panic!("no TCP") };
    let (mut mss, mut times) = (None, None);
    for option in tcp.options_iterator().map_while(Result::ok) {
        match option {
            TcpOptionElement::MaximumSegmentSize(value) => mss = Some(value),
            TcpOptionElement::Timestamp(value, echo) => times = Some((value, echo)),
            _ => {}
        }
    }
    let ports = (tcp.source_port(), tcp.destination_port());
    let numbers = (tcp.sequence_number(), tcp.acknowledgment_number());
    (ports.0, ports.1, numbers.0, numbers.1, tcp.window_size(), mss, times, tcp.payload().to_vec())
}

proptest! {
    // Law: on packets that etherparse can write, it reads what we read.
    #[test]
    fn etherparse_agrees(
        six: bool,
        vlans in 0..3_u8,
        (ports, numbers, window) in (any::<(u16, u16)>(), any::<(u32, u32)>(), any::<u16>()),
        (mss, scale, times) in any::<(Option<u16>, Option<u8>, Option<(u32, u32)>)>(),
        payload in proptest::collection::vec(any::<u8>(), 0..100),
        padding in 0..30_usize,
    ) {
        let mut options: Vec<TcpOptionElement> = Vec::new();
        options.extend(mss.map(TcpOptionElement::MaximumSegmentSize));
        options.extend(scale.map(TcpOptionElement::WindowScale));
        options.extend(times.map(|(value, echo)| TcpOptionElement::Timestamp(value, echo)));
        let link = PacketBuilder::ethernet2([2; 6], [4; 6]);
        let ip = etherparse::IpHeaders::Ipv4(
            etherparse::Ipv4Header { time_to_live: 9, source: [1, 2, 3, 4], destination: [5, 6, 7, 8], ..Default::default() },
            etherparse::Ipv4Extensions::default(),
        );
        let ip = if six {
            etherparse::IpHeaders::Ipv6(
                etherparse::Ipv6Header { hop_limit: 9, source: [1; 16], destination: [2; 16], ..Default::default() },
                etherparse::Ipv6Extensions::default(),
            )
        } else {
            ip
        };
        let id = |number: u16| etherparse::VlanId::try_new(number).unwrap();
        let builder = match vlans {
            0 => link.ip(ip),
            1 => link.single_vlan(id(7)).ip(ip),
            _ => link.double_vlan(id(7), id(8)).ip(ip),
        };
        let mut frame = Vec::new();
        builder
            .tcp(ports.0, ports.1, numbers.0, window)
            .ack(numbers.1)
            .options(&options)
            .unwrap()
            .write(&mut frame, &payload)
            .unwrap();
        let expected = by_etherparse(&frame);
        frame.resize(frame.len() + padding, 0xee);
        let ours = segment(LinkType::ETHERNET, &frame, frame.len());
        let found = (
            ours.source.port, ours.destination.port, ours.seq.0, ours.ack.0, ours.window,
            ours.mss, ours.timestamps, ours.payload.to_vec(),
        );
        prop_assert_eq!(found, expected);
        prop_assert_eq!((ours.payload_len as usize, ours.ttl, ours.source.ip.is_ipv6()), (payload.len(), 9, six));
    }

    // Law: no bytes make it panic, and the payload is never longer than its announced length.
    #[test]
    fn arbitrary_bytes_are_survived(
        link in prop_oneof![
            prop::sample::select(vec![
                0_u16, 1, 6, 9, 11, 50, 101, 104, 105, 107, 108, 113, 117, 119, 123, 127, 129, 192, 197, 228, 239, 258, 276,
            ]),
            any::<u16>(),
        ],
        head in prop_oneof![
            Just(vec![]),
            Just(ethernet(&[0x81, 0, 0, 7, 8, 0], &ipv4(6, &[], &tcp(&[], b"hello")))),
            Just(ethernet(&[8, 0], &ipv4(6, &[], &[]))),
            Just(ethernet(&[0x86, 0xdd], &ipv6(0, &[6, 0, 0, 0, 0, 0, 0, 0]))),
            Just(ipv6(43, &[])),
            Just(ipv6(44, &[6, 0, 0, 1, 0, 0, 0, 9])),
            Just(ipv4(4, &[131, 7, 4, 1, 2, 3, 4, 0], &ipv4(47, &[], &[0x30, 0, 0x88, 0xbe]))),
            (0..8_usize).prop_map(|port| {
                let port: u16 = [1701, 2152, 3544, 4754, 4789, 4790, 6081, 6635][port];
                let [hi, lo] = port.to_be_bytes();
                ethernet(&[8, 0], &ipv4(17, &[], &[1, 2, hi, lo, 0, 99, 0, 0]))
            }),
            Just(vec![0; 4]),
        ],
        bytes in proptest::collection::vec(any::<u8>(), 0..120),
        wire: u32,
        cut in 0..200_usize,
    ) {
        let mut frame = [head, bytes].concat();
        frame.truncate(cut);
        if let Ok(Decoded::Tcp(segment)) = decode(LinkType(link), &frame, wire) {
            prop_assert!(segment.payload.len() <= segment.payload_len as usize);
        }
    }

    // Law: whatever the snap length, the headers that were captured say the same.
    #[test]
    fn snap_length_changes_no_header_field(payload in proptest::collection::vec(any::<u8>(), 0..50), six: bool, cut in 0..150_usize) {
        let segment = tcp(&[1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 8], &payload);
        let ip = if six { ipv6(6, &segment) } else { ipv4(6, &[], &segment) };
        let whole = super::tests::segment(LinkType::RAW, &ip, ip.len());
        let cut = cut.min(ip.len());
        match decode(LinkType::RAW, &ip[..cut], ip.len() as u32) {
            Ok(Decoded::Tcp(part)) => {
                prop_assert_eq!((part.seq, part.ack, part.payload_len), (whole.seq, whole.ack, whole.payload_len));
                prop_assert!(whole.payload.starts_with(part.payload));
            }
            Ok(Decoded::Other) => prop_assert_eq!(cut, 0),
            other => prop_assert!(matches!(other, Err(PacketError::Cut { .. })), "{:?}", other),
        }
    }
}
