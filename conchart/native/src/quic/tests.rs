//! The packets of RFC 9001 appendix A and RFC 9369 appendix A, conversations made of such, and laws.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

pub(crate) mod lab;

use proptest::prelude::*;

use super::initial::Keys;
use super::protection::seal;
use super::*;
use crate::keys::{Label, Secret, Secrets};
use crate::tls::Suite;

/// The connection ID of both appendices.
const DCID: [u8; 8] = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];
const SERVER_CID: [u8; 8] = [0xf0, 0x67, 0xa5, 0x50, 0x2a, 0x42, 0x62, 0xb5];

/// The CRYPTO frame of the client's Initial packet: a ClientHello for example.com.
const CLIENT_HELLO: &str = "060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e868\
    04fe3a47f06a2b69484c00000413011302010000c000000010000e00000b6578616d706c652e636f6dff01000100000a\
    00080006001d0017001800100007000504616c706e000500050100000000003300260024001d00209370b2c9caa47fba\
    baf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b0003020304000d0010000e0403050306030203080408\
    050806002d00020101001c00024001003900320408ffffffffffffffff05048000ffff07048000ffff08011001048000\
    75300901100f088394c8f03e51570806048000ffff";

/// ACK and a CRYPTO frame: a ServerHello.
const SERVER_PAYLOAD: &str = "02000000000600405a020000560303eefce7f7b37ba1d1632e96677825ddf739\
    88cfc79825df566dc5430b9a045a1200130100002e00330024001d00209d3c940d89690b84d08a60993c144eca684d10\
    81287c834d5311bcf32bb9da1a002b00020304";

const SERVER_V1: &str = "cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a\
    5816b6394100f37a1c69797554780bb38cc5a99f5ede4cf73c3ec2493a1839b3dbcba3f6ea46c5b7684df3548e7ddeb9\
    c3bf9c73cc3f3bded74b562bfb19fb84022f8ef4cdd93795d77d06edbb7aaf2f58891850abbdca3d20398c276456cbc4\
    2158407dd074ee";

const SERVER_V2: &str = "dc6b3343cf0008f067a5502a4262b5004075d92faaf16f05d8a4398c47089698\
    baeea26b91eb761d9b89237bbf87263017915358230035f7fd3945d88965cf17f9af6e16886c61bfc703106fbaf3cb4c\
    fa52382dd16a393e42757507698075b2c984c707f0a0812d8cd5a6881eaf21ceda98f4bd23f6fe1a3e2c43edd9ce7ca8\
    4bed8521e2e140";

/// Its Source Connection ID is the one that the client's next packet goes to.
const RETRY_V1: &str = "ff000000010008f067a5502a4262b5746f6b656e04a265ba2eff4d829058fb3f0f2496ba";

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

/// An Initial packet of a client, 1,200 bytes long with the appendices' connection ID and no token.
fn client(version: Version, keys: &Keys, dcid: &[u8], token: &[u8], number: u32, frames: &[u8]) -> Vec<u8> {
    let first = if version == Version::V2 { 0xd3 } else { 0xc3 };
    let mut header = [&[first][..], &version.0.to_be_bytes(), &[dcid.len() as u8], dcid, &[0]].concat();
    header.extend([&[token.len() as u8][..], token].concat());
    let body = 1200 - header.len() - 2;
    header.extend((0x4000 | body as u16).to_be_bytes());
    header.extend(number.to_be_bytes());
    let mut payload = frames.to_vec();
    payload.resize(body - 4 - 16, 0);
    seal::packet(&keys.0.client, &header, &payload)
}

fn client_hello(version: Version, dcid: &[u8], token: &[u8]) -> Vec<u8> {
    client(version, &Keys::of(version, dcid).unwrap(), dcid, token, 2, &hex(CLIENT_HELLO))
}

fn handshake(first: u8, version: Version) -> Vec<u8> {
    [&[first][..], &version.0.to_be_bytes(), &[0, 8], &SERVER_CID, &[20], &[7; 20]].concat()
}

/// Listens to a conversation, a frame per datagram.
#[derive(Default)]
struct Heard {
    quic: Quic,
    frame: u64,
    crypto: BySide<Vec<u8>>,
    over: Vec<Milestones>,
}

fn moment(frame: u64) -> Moment {
    Moment::new(frame.cast_signed() * 1000, frame, Side::Client)
}

impl Heard {
    fn hear(mut self, from: Side, datagram: &[u8]) -> Self {
        self.frame += 1;
        for packet in self.quic.packets(from, datagram) {
            self.quic.packet(from, packet, moment(self.frame), |event| match event {
                Event::Crypto { level: Level::Initial, from, bytes, .. } => self.crypto[from].extend_from_slice(bytes),
                Event::Over(facts) => {
                    self.crypto = BySide::default();
                    self.over.push(*facts);
                }
                Event::Again => self.crypto = BySide::default(),
                _ => {}
            });
        }
        self
    }

    fn client(self, datagram: &[u8]) -> Self {
        self.hear(Side::Client, datagram)
    }

    fn server(self, datagram: &[u8]) -> Self {
        self.hear(Side::Server, datagram)
    }

    fn hellos(&self) -> (bool, bool) {
        let client = self.crypto.client == hex(CLIENT_HELLO)[4..];
        (client, self.crypto.server == hex(SERVER_PAYLOAD)[9..])
    }
}

#[test]
fn the_client_packets_of_the_rfcs_are_what_is_sealed_here() {
    // Beginning and tag; the tag proves what lies between.
    for (version, begin, tag) in [
        (
            Version::V1,
            "c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11",
            "e221af44860018ab0856972e194cd934",
        ),
        (
            Version::V2,
            "d76b3343cf088394c8f03e5157080000449ea0c95e82ffe67b6abcdb4298b485",
            "a18b2faa745b6fe189cf772a9f84cbfc",
        ),
        // As aioquic 0.9.21 seals the same.
        (
            Version(0xff00_001d),
            "cdff00001d088394c8f03e5157080000449e9cdb990bfb66bc6a93032b50dd89",
            "7b8e5feb469d358e629f0496c0c6859e",
        ),
    ] {
        let packet = client_hello(version, &DCID, &[]);
        assert!(packet.starts_with(&hex(begin)) && packet.ends_with(&hex(tag)));
        assert_eq!(packet.len(), 1200);
    }
}

#[test]
fn both_hellos_of_the_rfcs_are_read() {
    for (version, server) in [(Version::V1, SERVER_V1), (Version::V2, SERVER_V2)] {
        let heard = Heard::default().client(&client_hello(version, &DCID, &[])).server(&hex(server));
        assert_eq!(heard.hellos(), (true, true));
        let facts = heard.quic.facts();
        assert_eq!((facts.version, facts.opened, facts.unopened), (Some(version), 2, 0));
        let firsts = BySide { client: Some(moment(1)), server: Some(moment(2)) };
        assert_eq!((facts.initial, facts.handshake, facts.close), (firsts, BySide::default(), None));
    }
}

#[test]
fn after_a_retry_its_connection_id_gives_the_keys() {
    let again = client_hello(Version::V1, &SERVER_CID, b"token");
    let first = client_hello(Version::V1, &DCID, &[]);
    let heard = Heard::default().client(&first).server(&hex(RETRY_V1)).client(&again);
    assert_eq!(heard.hellos(), (true, false));
    assert_eq!(heard.quic.facts().retry, Some(moment(2)));
    assert_eq!((heard.over.len(), heard.quic.facts().opened), (0, 2));
    // The Retry is not in the capture: the token tells.
    let heard = Heard::default().client(&first).client(&again);
    assert_eq!((heard.hellos(), heard.over.len()), ((true, false), 0));
}

#[test]
fn version_negotiation_begins_anew() {
    let offer = [&[0x80, 0, 0, 0, 0, 0, 8][..], &SERVER_CID, &Version::V2.0.to_be_bytes()].concat();
    let heard = Heard::default()
        .client(&client_hello(Version::V1, &DCID, &[]))
        .server(&offer)
        .client(&client_hello(Version::V2, &DCID, &[]))
        .server(&hex(SERVER_V2));
    assert_eq!(heard.hellos(), (true, true));
    assert_eq!(heard.over.len(), 1);
    assert_eq!((heard.over[0].version, heard.over[0].version_negotiation), (Some(Version::V1), Some(moment(2))));
    assert_eq!(heard.quic.facts().version, Some(Version::V2));
}

#[test]
fn a_server_may_change_the_version_by_itself() {
    // RFC 9368 section 2.3: its keys follow from the same connection ID, and the client follows.
    let heard = Heard::default().client(&client_hello(Version::V1, &DCID, &[])).server(&hex(SERVER_V2));
    assert_eq!((heard.hellos(), heard.over.len()), ((true, true), 0));
    assert_eq!(heard.quic.facts().version, Some(Version::V2));
    let keys = Keys::of(Version::V2, &DCID).unwrap();
    let heard = heard.client(&client(Version::V2, &keys, &SERVER_CID, &[], 3, &[2, 0, 0, 0, 0]));
    assert_eq!((heard.quic.facts().opened, heard.over.len()), (3, 0));
}

#[test]
fn another_connection_at_the_same_ports_begins_anew() {
    let other = [9; 8];
    let heard = Heard::default()
        .client(&client_hello(Version::V1, &DCID, &[]))
        .server(&hex(SERVER_V1))
        .client(&client_hello(Version::V1, &other, &[]));
    assert_eq!((heard.hellos(), heard.over.len()), ((true, false), 1));
    assert_eq!(heard.quic.facts().initial.client, Some(moment(3)));
}

#[test]
fn a_shuffled_hello_over_two_packets_is_read() {
    let keys = Keys::of(Version::V1, &DCID).unwrap();
    let hello = &hex(CLIENT_HELLO)[4..];
    let crypto = |start: usize, end: usize| {
        let lengths = [0x4000 | start as u16, 0x4000 | (end - start) as u16].map(u16::to_be_bytes).concat();
        [&[6][..], &lengths, &hello[start..end]].concat()
    };
    let frames = [crypto(200, 241), vec![0; 9], crypto(0, 10), vec![1], crypto(50, 120)].concat();
    let rest = [crypto(110, 200), crypto(5, 60)].concat();
    let heard = Heard::default().client(&client(Version::V1, &keys, &DCID, &[], 0, &frames)).client(&client(
        Version::V1,
        &keys,
        &DCID,
        &[],
        1,
        &rest,
    ));
    assert_eq!(heard.hellos(), (true, false));
}

#[test]
fn a_server_may_hide_the_fixed_bit() {
    // RFC 9287, when the client's transport parameters allow it.
    let keys = Keys::of(Version::V1, &DCID).unwrap();
    let header = [&[0x81, 0, 0, 0, 1, 0, 8][..], &SERVER_CID, &[0, 0x40, 0x75, 0, 1]].concat();
    let server = seal::packet(&keys.0.server, &header, &hex(SERVER_PAYLOAD));
    let all = [server, handshake(0xa0, Version::V1)].concat();
    let heard = Heard::default().client(&client_hello(Version::V1, &DCID, &[])).server(&all);
    assert_eq!((heard.hellos(), sniff(&all)), ((true, true), None));
    assert_eq!(heard.quic.facts().handshake.server, Some(moment(2)));
}

#[test]
fn packets_of_every_type_are_noted_once() {
    let server = [hex(SERVER_V1), handshake(0xe0, Version::V1)].concat();
    let client_end =
        [&[0xe0, 0, 0, 0, 1, 8][..], &SERVER_CID, &[0, 20], &[7; 20], &[0x40], &SERVER_CID, &[1; 30]].concat();
    let heard = Heard::default()
        .client(&client_hello(Version::V1, &DCID, &[]))
        .server(&server)
        .server(&handshake(0xe0, Version::V1))
        .client(&client_end)
        .server(&handshake(0xe0, Version::V1))
        .server(&[0x40; 40])
        .server(&[0x40; 40]);
    let facts = heard.quic.facts();
    assert_eq!(facts.handshake, BySide { client: Some(moment(4)), server: Some(moment(2)) });
    assert_eq!(facts.server_flight_end, Some(moment(3)));
    assert_eq!(facts.one_rtt, BySide { client: Some(moment(4)), server: Some(moment(6)) });
}

#[test]
fn a_refusal_in_the_initial_packet_is_noted() {
    let keys = Keys::of(Version::V1, &DCID).unwrap();
    let close = [0x1c, 0x41, 0x78, 0, 2, b'n', b'o'];
    let heard = Heard::default().client(&client(Version::V1, &keys, &DCID, &[], 0, &close));
    // 0x100 + no_application_protocol.
    assert_eq!(
        heard.quic.facts().close,
        Some(Close { from: Side::Client, code: 0x178, is_of_application: false, seen: moment(1) })
    );
}

#[test]
fn of_a_version_that_nobody_knows_only_the_name_is_told() {
    let mut datagram = client_hello(Version::V1, &DCID, &[]);
    datagram[1..5].copy_from_slice(b"Q050");
    let heard = Heard::default().client(&datagram).server(&[0x40; 40]);
    let version = Some(Version(u32::from_be_bytes(*b"Q050")));
    let facts = Milestones { version, tried: Some(moment(1)), ..Milestones::default() };
    assert_eq!(heard.quic.facts(), &facts);
}

#[test]
fn a_packet_that_was_changed_is_not_opened() {
    let mut packet = client_hello(Version::V1, &DCID, &[]);
    packet[700] ^= 1;
    let heard = Heard::default().client(&packet);
    assert_eq!((heard.hellos().0, heard.quic.facts().unopened), (false, 1));
}

#[test]
fn what_begins_quic_and_who_sent_it() {
    let sniffed = |bytes: &[u8]| sniff(bytes).map(|it| (it.version.name().into_owned(), it.sender));
    let hello = client_hello(Version::V2, &DCID, &[]);
    assert_eq!(sniffed(&hello), Some(("v2".into(), Some(Side::Client))));
    assert_eq!(sniffed(&hello[..300]), Some(("v2".into(), None)));
    assert_eq!(sniffed(&hex(SERVER_V1)), Some(("v1".into(), None)));
    assert_eq!(sniffed(&hex(RETRY_V1)), Some(("v1".into(), Some(Side::Server))));
    let mut greased = [0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 8].to_vec();
    greased.extend([DCID.as_slice(), &[0; 1190]].concat());
    assert_eq!(sniffed(&greased), Some(("greased".into(), Some(Side::Client))));
    assert_eq!(sniffed(&greased[..1000]), None);
    assert_eq!(sniffed(b"\x09\0\0\0\0\0\0\0\0Q043\x01\0\0\0"), Some(("Q043".into(), None)));
    assert_eq!(sniffed(b"\xc0Q050\x08\0\0\0\0\0\0\0\0\0\0\0\0\0"), Some(("Q050".into(), None)));
    // A length beyond the end, other bytes, DNS, RTP, STUN, a short header.
    assert_eq!(sniffed(&[0xe0, 0, 0, 0, 1, 0, 0, 0x44, 0, 0, 0]), None);
    assert_eq!(sniffed(&[0xff, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0]), None);
    assert_eq!(sniffed(b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x07example\x03com\0\0\x01\0\x01"), None);
    assert_eq!(sniffed(&[0x80; 200]), None);
    assert_eq!(sniffed(&[0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42]), None);
    assert_eq!(sniffed(&[0x40; 1200]), None);
}

#[test]
fn chromium_asks_a_lab_server() {
    let (mut heard, mut flows) = (Heard::default(), lab::flows("http3", 443));
    let [flow] = &mut flows[..] else { unreachable!() };
    let first = sniff(&flow[0].bytes).unwrap();
    assert_eq!((first.version, first.sender), (Version::V1, Some(Side::Client)));
    for datagram in flow.iter() {
        heard = heard.hear(datagram.from, &datagram.bytes);
    }
    let name = b"\0\0\0\x11\0\x0f\0\0\x0cshop.example";
    assert!(heard.crypto.client.windows(name.len()).any(|bytes| bytes == name));
    // ClientHello and ServerHello, whole.
    let whole = |hello: &[u8], kind| {
        hello[0] == kind && hello.len() == 4 + u32::from_be_bytes([0, hello[1], hello[2], hello[3]]) as usize
    };
    assert!(whole(&heard.crypto.client, 1) && whole(&heard.crypto.server, 2));
    let facts = heard.quic.facts();
    assert_eq!((facts.unopened, facts.retry, facts.close), (0, None, None));
    let frames = [
        facts.initial.client,
        facts.initial.server,
        facts.server_flight_end,
        facts.handshake.client,
        facts.one_rtt.client,
    ];
    let frames = frames.map(|moment| moment.unwrap().frame());
    assert!(frames.is_sorted(), "{frames:?}");
}

/// The secret of both sides' 1-RTT packets in tests, and what seals them.
const SECRET: [u8; 32] = [7; 32];

fn one_rtt() -> (Quic, protection::Protection) {
    let suite = Suite::of(0x1301, 0x0304).unwrap();
    let mut secrets = Secrets::default();
    let secret = Secret::new(&SECRET).unwrap();
    [Label::ClientTraffic, Label::ServerTraffic].into_iter().for_each(|label| secrets.set(label, secret));
    let mut quic =
        Quic { facts: Milestones { version: Some(Version::V1), ..Milestones::default() }, ..Quic::default() };
    quic.expect(suite, &secrets);
    (quic, protection::Protection::of_secret(suite, Version::V1, &SECRET).unwrap())
}

/// A 1-RTT packet without connection ID.
fn short(keys: &protection::Protection, phase: bool, number: u16, frames: &[u8]) -> Vec<u8> {
    let first = if phase { 0x45 } else { 0x41 };
    let mut payload = frames.to_vec();
    payload.resize(frames.len().max(20), 0);
    seal::packet(keys, &[&[first][..], &number.to_be_bytes()].concat(), &payload)
}

fn stream(id: u8, offset: u16, bytes: &[u8], fin: bool) -> Vec<u8> {
    let kind = 0x0e | u8::from(fin);
    let [offset, len] = [offset, bytes.len() as u16].map(|number| (0x4000 | number).to_be_bytes());
    [&[kind, id][..], &offset, &len, bytes].concat()
}

#[test]
fn keys_are_updated_and_late_packets_of_before_are_opened() {
    let (mut quic, keys) = one_rtt();
    let updated = crate::tls::expand_label(crate::tls::Hash::Sha256, &SECRET, "quic ku", 32).unwrap();
    let suite = Suite::of(0x1301, 0x0304).unwrap();
    // The key of header protection stays (RFC 9001 section 6.1).
    let after = protection::Protection {
        header: protection::HeaderKey::of_secret(suite, "quic", &SECRET).unwrap(),
        packet: protection::PacketKey::of_secret(suite, "quic", &updated).unwrap(),
    };
    let mut heard = Vec::new();
    for packet in [
        short(&keys, false, 0, &stream(0, 0, b"a", false)),
        short(&after, true, 2, &stream(0, 2, b"c", false)),
        short(&keys, false, 1, &stream(0, 1, b"b", false)),
        short(&after, true, 3, &stream(0, 3, b"d", true)),
    ] {
        quic.packet(Side::Client, Packet::Short(&packet), moment(1), |event| {
            if let Event::Stream { bytes, .. } = event {
                heard.extend_from_slice(bytes);
            }
        });
    }
    assert_eq!((heard, quic.facts().read.client, quic.facts().sealed.client), (b"abcd".to_vec(), 4, 0));
}

#[test]
fn a_side_that_may_not_send_is_held_until_its_peer_allows_more() {
    let (mut quic, keys) = one_rtt();
    let mut held = Vec::new();
    let frames: [(Side, &[u8]); 4] = [
        (Side::Server, &[0x15, 4, 9]),
        (Side::Client, &[0x10, 9]),
        (Side::Client, &[0x11, 4, 20]),
        (Side::Client, &[0x11, 4, 30]),
    ];
    for (number, (from, frame)) in (0..).zip(frames) {
        let packet = short(&keys, false, number, frame);
        quic.packet(from, Packet::Short(&packet), moment(u64::from(number)), |event| {
            if let Event::Held(it) = event {
                held.push((it.why, it.side, it.start, it.end));
            }
        });
    }
    assert_eq!(held, [(Why::FlowControl, Side::Server, moment(0), moment(2))]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_are_heard_without_panic(
        datagrams in proptest::collection::vec(
            (any::<bool>(), any::<bool>(), proptest::collection::vec(any::<u8>(), 0..80)), 0..20,
        ),
    ) {
        let mut quic = Quic::default();
        for (client, version, mut bytes) in datagrams {
            if version && bytes.len() > 5 {
                bytes[0] |= 0xc0;
                bytes[1..5].copy_from_slice(&[0, 0, 0, 1]);
            }
            let _ = sniff(&bytes);
            let from = if client { Side::Client } else { Side::Server };
            for packet in quic.packets(from, &bytes) {
                quic.packet(from, packet, moment(1), |_| ());
            }
        }
    }

    #[test]
    fn a_sealed_payload_of_any_bytes_is_heard_without_panic(
        payload in proptest::collection::vec(prop_oneof![Just(6_u8), Just(2), Just(0), any::<u8>()], 0..900),
    ) {
        let keys = Keys::of(Version::V1, &DCID).unwrap();
        let heard = Heard::default().client(&client(Version::V1, &keys, &DCID, &[], 0, &payload));
        prop_assert_eq!(heard.quic.facts().opened, 1);
    }

    /// Law: packets that share a datagram tell what they tell one by one.
    #[test]
    fn coalesced_packets_add_up(kinds in proptest::collection::vec(0_u8..3, 1..6), cut in any::<bool>()) {
        let packets: Vec<Vec<u8>> = kinds.iter().map(|kind| match kind {
            0 => client_hello(Version::V1, &SERVER_CID, &[]),
            1 => [&[0xd0, 0, 0, 0, 1, 8][..], &SERVER_CID, &[0, 20], &[7; 20]].concat(),
            _ => [&[0xe0, 0, 0, 0, 1, 8][..], &SERVER_CID, &[0, 20], &[7; 20]].concat(),
        }).collect();
        let mut whole = packets.concat();
        if cut {
            whole.pop();
        }
        let lengths: Vec<usize> = Packets::of(&whole).map(|packet| match packet {
            Packet::Long(long) => long.bytes.len(),
            Packet::Short(_) => 0,
        }).collect();
        prop_assert_eq!(lengths.iter().sum::<usize>(), whole.len());
        prop_assert_eq!(lengths.len(), packets.len());
    }

    #[test]
    fn sealed_frames_of_any_bytes_are_heard_without_panic(
        payloads in proptest::collection::vec(
            (any::<bool>(), proptest::collection::vec(prop_oneof![0_u8..0x20, any::<u8>()], 0..120)), 0..12,
        ),
    ) {
        let (mut quic, keys) = one_rtt();
        for (number, (client, payload)) in (0..).zip(payloads) {
            let from = if client { Side::Client } else { Side::Server };
            let packet = short(&keys, false, number, &payload);
            quic.packet(from, Packet::Short(&packet), moment(u64::from(number)), |_| ());
        }
        quic.finish(|_| ());
    }

    /// Law: in whatever order packets come, and however often, each byte of a stream is told once, in order.
    #[test]
    fn streams_are_put_in_order(
        whole in proptest::collection::vec(any::<u8>(), 1..400),
        cuts in proptest::collection::vec((any::<prop::sample::Index>(), 1_usize..90), 0..30),
    ) {
        let (mut quic, keys) = one_rtt();
        let (mut heard, mut fins) = (Vec::new(), 0);
        let random = cuts.iter().map(|(start, len)| (start.index(whole.len()), *len));
        // At last the whole, back to front, so that nothing is missing.
        let rest = (0..whole.len()).rev().step_by(50).map(|end| (end.saturating_sub(49), end + 1 - end.saturating_sub(49)));
        for (number, (start, len)) in (0..).zip(random.chain(rest)) {
            let end = whole.len().min(start + len);
            let frame = stream(4, start as u16, &whole[start..end], end == whole.len());
            let packet = short(&keys, false, number, &frame);
            quic.packet(Side::Server, Packet::Short(&packet), moment(1), |event| match event {
                Event::Stream { id: 4, offset, bytes, fin, .. } => {
                    assert_eq!(offset, heard.len() as u64);
                    heard.extend_from_slice(bytes);
                    fins += u8::from(fin);
                }
                Event::Missing { .. } => unreachable!(),
                _ => {}
            });
        }
        prop_assert_eq!((heard, fins), (whole, 1));
    }
}
