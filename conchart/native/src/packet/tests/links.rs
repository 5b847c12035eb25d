//! Link types that wrap a frame of another, and those that are rare.

use super::super::{Mac, Passing, Station};
use super::*;

/// LLC and SNAP before IPv4.
const SNAP: [u8; 8] = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];

fn hello() -> Vec<u8> {
    ipv4(6, &[], &tcp(&[], b"hello"))
}

/// An 802.11 data frame: frame control and whatever follows the three addresses and the sequence number.
fn wifi(control: [u8; 2], rest: &[u8]) -> Vec<u8> {
    [&control[..], &[0; 22], rest, &SNAP, &hello()].concat()
}

#[test]
fn wireless_frames_are_opened_behind_every_radio_header() {
    let frame = wifi([0x08, 0x01], &[]);
    says_hello(LinkType::IEEE802_11, &frame);
    says_hello(LinkType::IEEE802_11, &wifi([0x88, 0x02], &[0, 0]));
    says_hello(LinkType::IEEE802_11, &wifi([0x88, 0x82], &[0; 6]));
    says_hello(LinkType::IEEE802_11, &wifi([0x08, 0x03], &[0; 6]));
    says_hello(LinkType::IEEE802_11_RADIO, &[&[0, 0, 8, 0, 0, 0, 0, 0], &frame[..]].concat());
    let mut prism = vec![0x44, 0, 0, 0, 144, 0, 0, 0];
    prism.resize(144, 0);
    says_hello(LinkType::PRISM, &[&prism[..], &frame].concat());
    let mut avs = vec![0x80, 0x21, 0x10, 1, 0, 0, 0, 64];
    avs.resize(64, 0);
    says_hello(LinkType::PRISM, &[&avs[..], &frame].concat());
    says_hello(LinkType::IEEE802_11_AVS, &[&avs[..], &frame].concat());
    says_hello(LinkType::PPI, &[&[0, 0, 8, 0, 105, 0, 0, 0], &frame[..]].concat());
}

#[test]
fn radiotap_says_that_the_header_is_padded() {
    // Time and flags are there, in the first of two words; the header is filled up from 26 bytes to 28.
    let mut radiotap = vec![0, 0, 25, 0, 3, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0];
    radiotap.extend_from_slice(&[9; 8]);
    radiotap.push(0x20);
    says_hello(LinkType::IEEE802_11_RADIO, &[&radiotap[..], &wifi([0x88, 0x01], &[0, 0, 0, 0])].concat());
}

#[test]
fn encrypted_and_management_frames_are_not_opened() {
    for control in [[0x08, 0x41], [0x48, 0x01], [0x80, 0], [0x08, 0x05]] {
        assert!(matches!(decode(LinkType::IEEE802_11, &wifi(control, &[]), 100), Ok(Decoded::Other)), "{control:?}");
    }
}

/// What each of the frames in an aggregate turned out to be.
fn parts(link: LinkType, frame: &[u8]) -> Vec<Result<Decoded<'_>, PacketError>> {
    match decode(link, frame, frame.len() as u32) {
        Ok(Decoded::Aggregate(parts)) => parts.collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn aggregated_frames_are_opened_one_by_one() {
    let inside = [&SNAP[..], &hello()].concat();
    let one = [&MACS[..], &(inside.len() as u16).to_be_bytes(), &inside].concat();
    let mut first = one.clone();
    first.resize(one.len().next_multiple_of(4), 0xff);
    let check_sequence = [1, 2, 3, 4];
    let frame = [&[0x88, 1][..], &[0; 22], &[0x80, 0], &first, &one, &check_sequence].concat();
    let found = parts(LinkType::IEEE802_11, &frame);
    assert_eq!(found.len(), 2);
    for part in found {
        let Ok(Decoded::Tcp(segment)) = part else { panic!("{part:?}") };
        assert_eq!((segment.payload, segment.payload_len, segment.station.mac), (&b"hello"[..], 5, SENDER));
    }
    let cut = parts(LinkType::IEEE802_11, &frame[..26 + first.len() + 16]);
    assert!(matches!(cut[..], [Ok(Decoded::Tcp(_)), Ok(Decoded::Other) | Err(_)]), "{cut:?}");
    assert!(parts(LinkType::IEEE802_11, &frame[..26]).is_empty());
}

#[test]
fn rare_links_lead_to_the_same_segment() {
    let ip = hello();
    let frame = ethernet(&[8, 0], &ip);
    let cases: [(LinkType, &[u8], &[u8]); 24] = [
        (LinkType::TOKEN_RING, &[&[0x10, 0x40], &MACS[..], &SNAP].concat(), &ip),
        (
            LinkType::TOKEN_RING,
            &[&[0x10, 0x40, 2, 0, 0, 0, 0, 1, 0x82, 0, 0, 0, 0, 2, 4, 0, 9, 9], &SNAP[..]].concat(),
            &ip,
        ),
        (LinkType::ARCNET, &[1, 2, 212, 0, 0, 9], &ip),
        (LinkType::ARCNET_LINUX, &[1, 2, 0, 0, 212, 0, 0, 9], &ip),
        (LinkType::ARCNET, &[1, 2, 212, 0xff, 0xff, 0xff, 212, 0, 0, 9], &ip),
        (LinkType::ARCNET, &[1, 2, 240], &ip),
        (LinkType::ATM_RFC1483, &SNAP, &ip),
        (LinkType::ATM_RFC1483, &[0xaa, 0xaa, 3, 0, 0x80, 0xc2, 0, 7, 0, 0], &frame),
        (LinkType::SUNATM, &[&[2, 0, 0, 1], &SNAP[..]].concat(), &ip),
        (LinkType::FRELAY, &[0x18, 0x41, 3, 0xcc], &ip),
        (LinkType::FRELAY, &[0x18, 0x41, 3, 0, 0x80, 0, 0, 0, 8, 0], &ip),
        (LinkType::FRELAY, &[0x18, 0x41, 8, 0], &ip),
        (LinkType::PFLOG, &[&[61, 2], &[0; 62][..]].concat(), &ip),
        (LinkType::ENC, &[2, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0], &ip),
        (LinkType::PPP_ETHER, &[0x11, 0, 0, 1, 0, 99, 0, 0x21], &ip),
        (LinkType::MPLS, &[0, 1, 1, 64], &ip),
        (LinkType::MPACKET, &[0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xd5], &frame),
        (LinkType::ERF, &[0, 0, 0, 0, 0, 0, 0, 0, 2, 4, 0, 99, 0, 0, 0, 99, 0, 0], &frame),
        (LinkType::ERF, &[0, 0, 0, 0, 0, 0, 0, 0, 0x96, 4, 0, 99, 0, 0, 0, 99, 3, 0, 0, 0, 0, 0, 0, 0], &ip),
        (LinkType::DSA, &[&MACS[..], &[0xc0, 0, 0, 0, 8, 0]].concat(), &ip),
        (LinkType::EDSA, &[&MACS[..], &[0xda, 0xda, 0, 0, 0xc0, 0, 0, 0, 8, 0]].concat(), &ip),
        (LinkType::DSA_BRCM_PREPEND, &[0, 0, 0, 1], &frame),
        (LinkType::PPI, &[0, 0, 8, 0, 1, 0, 0, 0], &frame),
        (LinkType::PKTAP, &[12, 0, 0, 0, 1, 0, 0, 0, 101, 0, 0, 0], &ip),
    ];
    for (link, header, rest) in cases {
        says_hello(link, &[header, rest].concat());
    }
}

/// Tags behind Ethernet's addresses, alone and beside VLAN tags.
#[test]
fn tags_of_rings_and_switches_are_stepped_over() {
    let tags: [&[u8]; 5] = [
        &[0x89, 0x2f, 0, 0x42, 0, 1, 8, 0],
        &[0x81, 0, 0, 5, 0x89, 0x2f, 0x10, 0x42, 0, 1, 8, 0],
        &[0xda, 0xda, 0, 0, 0xc0, 0, 0, 0, 8, 0],
        &[0xda, 0xda, 0, 0, 0xc0, 0, 0, 0, 0x81, 0, 0, 5, 8, 0],
        &[0x89, 0x2f, 0, 0x42, 0, 1, 0x81, 0, 0, 5, 8, 0],
    ];
    for tag in tags {
        says_hello(LinkType::ETHERNET, &ethernet(tag, &hello()));
    }
}

/// The trailer of PRP (IEC 62439-3): sequence number, network and size, its suffix.
#[test]
fn a_trailer_is_no_payload() {
    says_hello(LinkType::ETHERNET, &[&ethernet(&[8, 0], &hello())[..], &[0, 1, 0xa0, 0x42, 0x88, 0xfb]].concat());
}

#[test]
fn pktap_is_known_by_its_header_where_the_number_is_anybodys() {
    let header = |length: u8, kind: u8, inner: u8| {
        let mut header = vec![length, 0, 0, 0, kind, 0, 0, 0, inner, 0, 0, 0, b'e', b'n', b'0'];
        header.resize(length.into(), 0);
        header
    };
    let frame = ethernet(&[8, 0], &hello());
    says_hello(LinkType::USER2, &[&header(108, 1, 1)[..], &frame].concat());
    says_hello(LinkType::USER2, &[&header(156, 1, 12)[..], &hello()].concat());
    assert!(matches!(decode(LinkType::USER2, &header(108, 0, 1), 108), Ok(Decoded::Other)));
    for other in [frame, hello(), header(107, 1, 1), vec![]] {
        assert_eq!(decode(LinkType::USER2, &other, 100).unwrap_err(), PacketError::UnsupportedLink(LinkType::USER2));
    }
}

/// RFC 1201: the first of two pieces, and the second one.
#[test]
fn ip_that_arcnet_split_is_not_read_and_arp_is_something_else() {
    for (split, protocol) in [(1, 212), (2, 212), (2, 196)] {
        let frame = [&[1, 2, protocol, split, 0, 9], &hello()[..]].concat();
        assert_eq!(
            decode(LinkType::ARCNET, &frame, 100).unwrap_err().to_string(),
            "ARCNET frame: an IP packet in several frames (RFC 1201), which is not read"
        );
    }
    assert!(matches!(decode(LinkType::ARCNET, &[1, 2, 213, 0, 0, 9, 0, 7], 100), Ok(Decoded::Other)));
}

#[test]
fn a_wrapper_is_opened_once() {
    let twice = [&[0, 0, 8, 0, 192, 0, 0, 0, 0, 0, 8, 0, 1, 0, 0, 0], &ethernet(&[8, 0], &hello())[..]].concat();
    assert_eq!(decode(LinkType::PPI, &twice, 100).unwrap_err(), PacketError::UnsupportedLink(LinkType::PPI));
}

/// Who sent a frame.
fn station(link: LinkType, frame: &[u8]) -> Station {
    segment(link, frame, frame.len()).station
}

const SENDER: Option<Mac> = Some(Mac([2, 0, 0, 0, 0, 2]));

#[test]
fn the_sender_of_a_frame_is_known_by_its_address() {
    let ip = hello();
    let nameless = Station::default();
    assert_eq!(station(LinkType::ETHERNET, &ethernet(&[8, 0], &ip)), Station { mac: SENDER, ..Station::default() });
    assert_eq!(station(LinkType::ETHERNET, &[&[0; 12][..], &[8, 0], &ip].concat()), nameless);
    assert_eq!(station(LinkType::RAW, &ip), nameless);
    assert_eq!(station(LinkType::PPI, &[&[0, 0, 8, 0, 1, 0, 0, 0], &ethernet(&[8, 0], &ip)[..]].concat()).mac, SENDER);
    let bridged = [&[0xaa, 0xaa, 3, 0, 0x80, 0xc2, 0, 7, 0, 0], &ethernet(&[8, 0], &ip)[..]].concat();
    assert_eq!(station(LinkType::ATM_RFC1483, &bridged).mac, SENDER);
}

#[test]
fn of_wireless_frames_the_way_tells_which_address_is_the_senders() {
    for (flags, place) in [(0, 10), (1, 10), (2, 16), (3, 24)] {
        let mut frame = wifi([0x08, flags], if flags == 3 { &[0; 6] } else { &[] });
        frame[place..place + 6].copy_from_slice(&MACS[6..]);
        assert_eq!(station(LinkType::IEEE802_11, &frame).mac, SENDER, "{flags}");
        let radiotap = [&[0, 0, 8, 0, 0, 0, 0, 0], &frame[..]].concat();
        assert_eq!(station(LinkType::IEEE802_11_RADIO, &radiotap).mac, SENDER, "{flags}");
    }
}

#[test]
fn a_cooked_header_tells_which_way_the_packet_passed() {
    let cooked = |packet_type: u8, hardware: u16| {
        let [h0, h1] = hardware.to_be_bytes();
        let v1 = [&[0, packet_type, h0, h1, 0, 6], &MACS[6..], &[0, 0, 8, 0], &hello()[..]].concat();
        let v2 = [&[8, 0, 0, 0, 0, 0, 0, 1, h0, h1, packet_type, 6], &MACS[6..], &[0, 0], &hello()[..]].concat();
        let (v1, v2) = (station(LinkType::LINUX_SLL, &v1), station(LinkType::LINUX_SLL2, &v2));
        assert_eq!(v1, v2);
        v1
    };
    assert_eq!(cooked(0, 1), Station { mac: SENDER, passing: Some(Passing::In), tunnel: None });
    assert_eq!(cooked(4, 1), Station { mac: SENDER, passing: Some(Passing::Out), tunnel: None });
    assert_eq!(cooked(3, 1), Station { mac: SENDER, ..Station::default() });
    // A tunnel's interface has another kind of address, or none.
    assert_eq!(cooked(4, 65534), Station { passing: Some(Passing::Out), ..Station::default() });
    assert_eq!(cooked(0, 772), Station { passing: Some(Passing::Loopback), ..Station::default() });
}
