//! Tunnels: each by name, nested, and what only looks like one.

use super::super::{Mac, Station, Tunnel};
use super::*;

fn hello() -> Vec<u8> {
    ipv4(6, &[], &tcp(&[], b"hello"))
}

fn udp(port: u16, carried: &[u8]) -> Vec<u8> {
    let [hi, lo] = port.to_be_bytes();
    [&[200, 1, hi, lo, 0, 99, 0, 0], carried].concat()
}

/// Every tunnel, around IPv4 and around Ethernet.
fn tunnels(ip: &[u8]) -> Vec<Vec<u8>> {
    let frame = ethernet(&[8, 0], ip);
    let gre = |head: &[u8], carried: &[u8]| ipv4(47, &[], &[head, carried].concat());
    let over_udp = |port: u16, head: &[u8], carried: &[u8]| ipv4(17, &[], &udp(port, &[head, carried].concat()));
    vec![
        ipv4(4, &[], ip),
        ipv6(4, ip),
        ipv4(97, &[], &[&[0x30, 0], &frame[..]].concat()),
        ipv6(143, &frame),
        ipv4(137, &[], &[&[0, 1, 1, 64], ip].concat()),
        gre(&[0, 0, 8, 0], ip),
        gre(&[0xb0, 0, 8, 0, 1, 2, 0, 0, 0, 0, 0, 7, 0, 0, 0, 1], ip),
        gre(&[0, 0, 0x65, 0x58], &frame),
        gre(&[0, 0, 0x88, 0x47, 0, 1, 1, 64], ip),
        gre(&[0, 0, 0x88, 0x3e, 0, 0, 0, 0], ip),
        // PPTP: key and sequence and acknowledgement numbers.
        gre(&[0x30, 0x81, 0x88, 0x0b, 0, 9, 0, 1, 0, 0, 0, 5, 0, 0, 0, 4, 0xff, 3, 0, 0x21], ip),
        gre(&[0, 0, 0x88, 0xbe], &frame),
        gre(&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 1, 0, 0, 0, 0, 0, 0], &frame),
        gre(&[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], &frame),
        gre(&[&[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 8, 1], &[0; 8][..]].concat(), ip),
        gre(&[&[0, 0, 0x82, 0x40, 0x88, 1][..], &[0; 24], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]].concat(), ip),
        gre(&[0, 0, 0x89, 0x4f, 0, 2, 1, 3, 0, 0, 1, 255], &frame),
        over_udp(4789, &[8, 0, 0, 0, 0, 0, 7, 0], &frame),
        over_udp(8472, &[8, 0, 0, 0, 0, 0, 7, 0], &frame),
        over_udp(4790, &[0x0c, 0, 0, 1, 0, 0, 7, 0], ip),
        over_udp(4790, &[0x0c, 0, 0, 3, 0, 0, 7, 0], &frame),
        over_udp(6081, &[0, 0, 0x65, 0x58, 0, 0, 7, 0], &frame),
        over_udp(6081, &[2, 0, 8, 0, 0, 0, 7, 0, 1, 2, 0, 1, 9, 9, 9, 9], ip),
        over_udp(2152, &[0x30, 0xff, 0, 99, 0, 0, 0, 1], ip),
        over_udp(2152, &[0x34, 0xff, 0, 99, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 0, 0x40, 1, 0, 0, 0], ip),
        over_udp(1701, &[0, 2, 0, 9, 0, 1, 0, 0x21], ip),
        over_udp(1701, &[0x4a, 2, 0, 99, 0, 9, 0, 1, 0, 5, 0, 4, 0, 2, 0, 0, 0xff, 3, 0, 0x21], ip),
        // Version 3: plain; with Linux' sublayer; with a cookie and that; PPP; without UDP.
        over_udp(1701, &[0, 3, 0, 0, 0, 0, 0, 7], &frame),
        over_udp(1701, &[0, 3, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0], &frame),
        over_udp(1701, &[0, 3, 0, 0, 0, 0, 0, 7, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0], &frame),
        over_udp(1701, &[0, 3, 0, 0, 0, 0, 0, 7, 0xff, 3, 0, 0x21], ip),
        ipv4(115, &[], &[&[0, 0, 0, 7, 0, 0, 0, 0], &frame[..]].concat()),
        ipv6(115, &[&[0, 0, 0, 7, 1, 2, 3, 4], &frame[..]].concat()),
        over_udp(37008, &[1, 0, 0, 1, 1], &frame),
        over_udp(37008, &[1, 1, 0, 1, 0, 10, 1, 0xaa, 1], &frame),
        over_udp(
            37008,
            &[&[1, 0, 0, 18, 12, 1, 7, 1, 8, 1], &[0; 22][..], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]].concat(),
            ip,
        ),
        over_udp(4754, &[0, 0, 8, 0], ip),
        over_udp(6635, &[0, 1, 1, 64], ip),
    ]
}

#[test]
fn in_a_tunnel_the_innermost_frame_names_the_sender() {
    let inside = [&[2, 0, 0, 0, 0, 8, 2, 0, 0, 0, 0, 9, 8, 0], &hello()[..]].concat();
    let vxlan = ipv4(17, &[], &udp(4789, &[&[8, 0, 0, 0, 0, 0, 7, 0], &inside[..]].concat()));
    for (outer, last, tunnel) in [(&vxlan, 9, Tunnel::Vxlan), (&ipv4(4, &[], &hello()), 2, Tunnel::IpInIp)] {
        let cooked = [&[0, 4, 0, 1, 0, 6], &MACS[6..], &[0, 0, 8, 0], &outer[..]].concat();
        let station = segment(LinkType::LINUX_SLL, &cooked, cooked.len()).station;
        // That the tunnel ends on the capturing machine does not say that the connection does.
        assert_eq!(station, Station { mac: Some(Mac([2, 0, 0, 0, 0, last])), passing: None, tunnel: Some(tunnel) });
    }
}

#[test]
fn of_tunnels_in_each_other_the_innermost_is_told() {
    let tunnel_name = |outer: &[u8]| segment(LinkType::RAW, outer, outer.len()).station.tunnel.map(Tunnel::name);
    let gre = ipv4(47, &[], &[&[0, 0, 8, 0], &hello()[..]].concat());
    let names: Vec<_> = tunnels(&hello()).iter().map(|outer| tunnel_name(outer)).collect();
    for name in ["ip", "gre", "erspan", "etherip", "mpls", "srv6", "vxlan", "vxlan-gpe", "geneve", "gtp-u"] {
        assert!(names.contains(&Some(name)), "{name}");
    }
    for name in ["l2tp", "l2tpv3", "tzsp"] {
        assert!(names.contains(&Some(name)), "{name}");
    }
    assert_eq!(tunnel_name(&hello()), None);
    assert_eq!(tunnel_name(&ipv4(4, &[], &gre)), Some("gre"));
}

#[test]
fn every_tunnel_leads_to_the_segment_inside() {
    for outer in tunnels(&hello()) {
        says_hello(LinkType::RAW, &outer);
        says_hello(
            LinkType::ETHERNET,
            &ethernet(
                &[
                    0x89,
                    0x26,
                    0,
                    0,
                    0,
                    0,
                    0x81,
                    0,
                    0,
                    7,
                    if outer[0] >> 4 == 4 { 8 } else { 0x86 },
                    if outer[0] >> 4 == 4 { 0 } else { 0xdd },
                ],
                &outer,
            ),
        );
    }
    let six = ipv6(6, &tcp(&[], b"hello"));
    says_hello(LinkType::RAW, &ipv4(41, &[], &six));
    let origin = [0, 0, 1, 2, 3, 4, 5, 6];
    says_hello(LinkType::RAW, &ipv4(17, &[], &udp(3544, &[&origin, &six[..]].concat())));
    let authentication = [0, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0];
    says_hello(LinkType::RAW, &ipv4(17, &[], &udp(3544, &[&authentication[..], &origin, &six].concat())));
}

#[test]
fn tunnels_nest_and_end() {
    for one in tunnels(&hello()) {
        for both in tunnels(&one) {
            if one[0] >> 4 == 4 {
                says_hello(LinkType::RAW, &both);
            }
        }
    }
    let nested = |depth: usize| (0..depth).fold(hello(), |inside, _| ipv4(4, &[], &inside));
    says_hello(LinkType::RAW, &nested(8));
    assert!(matches!(decode(LinkType::RAW, &nested(9), 0), Ok(Decoded::Other)));
    assert!(matches!(decode(LinkType::RAW, &nested(3_000), 0), Ok(Decoded::Other)));
}

#[test]
fn what_the_innermost_packet_says_counts() {
    let mut inner = hello();
    inner[4..6].copy_from_slice(&[0xab, 0xcd]);
    inner[8] = 7;
    let outer = ipv4(47, &[], &[&[0, 0, 8, 0], &inner[..]].concat());
    let found = segment(LinkType::RAW, &outer, outer.len());
    assert_eq!((found.ttl, found.ip_id), (7, Some(0xabcd)));
}

#[test]
fn a_port_alone_makes_no_tunnel() {
    let frame = ethernet(&[8, 0], &hello());
    for (port, head) in [
        (4789, [0, 0, 0, 0, 0, 0, 7, 0]),
        (6081, [0x40, 0, 0x65, 0x58, 0, 0, 7, 0]),
        (2152, [0x30, 1, 0, 99, 0, 0, 0, 1]),
        (1701, [0xc8, 2, 0, 99, 0, 0, 0, 0]),
        (1701, [0, 3, 0, 0, 0, 0, 0, 0]),
        (1701, [0x80, 3, 0, 12, 0, 0, 0, 7]),
        (37008, [1, 4, 0, 1, 1, 0, 0, 0]),
        (37008, [2, 0, 0, 1, 1, 0, 0, 0]),
        (3544, [9; 8]),
        (53, [8, 0, 0, 0, 0, 0, 7, 0]),
    ] {
        let outer = ipv4(17, &[], &udp(port, &[&head[..], &frame].concat()));
        assert!(matches!(decode(LinkType::RAW, &outer, 0), Ok(Decoded::Udp(_))), "{port}");
    }
}

#[test]
fn mpls_pseudowires_are_opened_with_and_without_their_control_word() {
    for word in [&[][..], &[0, 0, 0, 9]] {
        let mut frame = ethernet(&[8, 0], &hello());
        frame[0] = 0;
        says_hello(LinkType::MPLS, &[&[0, 1, 1, 64], word, &frame].concat());
    }
}

#[test]
fn addresses_are_the_ones_that_the_ends_know() {
    let [near, far] = [1_u8, 9].map(|last| [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    let hello = tcp(&[], b"hello");
    let ends = |packet: &[u8]| {
        let segment = segment(LinkType::RAW, packet, packet.len());
        assert_eq!(segment.payload, b"hello");
        (segment.source.ip, segment.destination.ip)
    };
    let (source, destination) = ends(&ipv6(6, &hello));
    let routed = |kind: u8, left: u8, stops: [[u8; 16]; 2]| {
        ends(&ipv6(43, &[&[6, 4, kind, left, 0, 0, 0, 0], &stops.concat()[..], &hello].concat()))
    };
    assert_eq!(routed(0, 1, [near, far]), (source, far.into()));
    assert_eq!(routed(4, 1, [far, near]), (source, far.into()));
    assert_eq!(routed(0, 0, [near, far]), (source, destination));
    let home = [&[6, 2, 1, 2, 0, 0, 0xc9, 16], &far[..], &hello].concat();
    assert_eq!(ends(&ipv6(60, &home)), (far.into(), destination));
    let on_its_way = ipv4(6, &[1, 131, 7, 4, 10, 0, 0, 9], &hello);
    assert_eq!(ends(&on_its_way).1, std::net::IpAddr::from([10, 0, 0, 9]));
    let arrived = ipv4(6, &[1, 131, 7, 8, 10, 0, 0, 9], &hello);
    assert_eq!(ends(&arrived).1, std::net::IpAddr::from([10, 0, 0, 2]));
}

#[test]
fn a_jumbogram_says_its_own_length() {
    let hello = tcp(&[], b"hello");
    let [l0, l1] = (8 + hello.len() as u16).to_be_bytes();
    let mut packet = ipv6(0, &[&[6, 0, 0xc2, 4, 0, 0, l0, l1], &hello[..], b"padding"].concat());
    packet[4..6].fill(0);
    says_hello(LinkType::RAW, &packet);
}
