//! WebSockets as browsers and servers speak them, and laws.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use proptest::prelude::*;

use crate::exchange::tests::talk::{Talk, however_tcp_cut_it, moment};
use crate::exchange::{ContentKind, ContentMessage};
use crate::stream::Side;

const UPGRADE: &str = "GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
const SWITCHED: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\n\r\n";
const FIN: u8 = 0x80;
const COMPRESSED: u8 = 0x40;

fn frame(first: u8, masked: bool, bytes: usize) -> Vec<u8> {
    let mask = if masked { 0x80 } else { 0 };
    let mut frame = vec![first];
    match u16::try_from(bytes) {
        Ok(short @ 0..=125) => frame.push(mask | u8::try_from(short).unwrap()),
        Ok(middle) => frame.extend([&[mask | 126][..], &middle.to_be_bytes()].concat()),
        Err(_) => frame.extend([&[mask | 127][..], &(bytes as u64).to_be_bytes()].concat()),
    }
    frame.extend(std::iter::repeat_n(b'k', if masked { 4 } else { 0 }).chain(std::iter::repeat_n(b'p', bytes)));
    frame
}

fn server(first: u8, bytes: usize) -> Vec<u8> {
    frame(first, false, bytes)
}

fn client(first: u8, bytes: usize) -> Vec<u8> {
    frame(first, true, bytes)
}

fn start() -> Talk {
    Talk::new().client(UPGRADE).server(SWITCHED)
}

/// Sender, number, kind, bytes, frames of the first and the last byte.
type Row = (Side, u32, ContentKind, u64, u64, Option<u64>);

fn rows(messages: &[ContentMessage]) -> Vec<Row> {
    let row = |m: &ContentMessage| (m.from, m.number, m.kind, m.bytes, m.first.frame(), m.done.then(|| m.last.frame()));
    messages.iter().map(row).collect()
}

#[test]
fn messages_of_both_sides_belong_to_the_exchange_that_upgraded() {
    let talk = Talk::new().client(UPGRADE).server([SWITCHED.as_bytes(), &server(FIN | 1, 5)].concat());
    let mut talk =
        talk.client(client(FIN | COMPRESSED | 2, 300)).server([server(FIN | 1, 70_000), server(FIN | 9, 0)].concat());
    talk = talk.client(client(FIN | 10, 0)).client(client(FIN | 8, 2)).server(server(FIN | 8, 2));
    let found = talk.finish();
    assert_eq!(found.iter().map(|e| (e.protocol, e.status)).collect::<Vec<_>>(), [("http/1.1", Some(101))]);
    assert_eq!(talk.conversation.app(), Some("http/1.1"));
    let messages = talk.messages();
    assert!(messages.iter().all(|m| m.exchange == 0 && m.requester == Side::Client));
    assert_eq!(messages.iter().filter(|m| m.compressed).map(|m| m.bytes).collect::<Vec<_>>(), [300]);
    assert_eq!(
        rows(&messages),
        [
            (Side::Server, 0, ContentKind::Text, 5, 2, Some(2)),
            (Side::Client, 0, ContentKind::Binary, 300, 3, Some(3)),
            (Side::Server, 1, ContentKind::Text, 70_000, 4, Some(4)),
            (Side::Server, 2, ContentKind::Ping, 0, 4, Some(4)),
            (Side::Client, 1, ContentKind::Pong, 0, 5, Some(5)),
            (Side::Client, 2, ContentKind::Close, 2, 6, Some(6)),
            (Side::Server, 3, ContentKind::Close, 2, 7, Some(7)),
        ]
    );
}

#[test]
fn fragments_are_one_message_and_control_frames_may_come_between() {
    let mut talk = start().server(server(1, 10)).server(server(FIN | 9, 3)).server(server(0, 200));
    assert_eq!(talk.settled().len(), 1);
    assert_eq!(talk.conversation.earliest_open(), Some(moment(3)));
    talk = talk.server(server(FIN, 1));
    assert_eq!(talk.conversation.earliest_open(), None);
    let expected =
        [(Side::Server, 1, ContentKind::Ping, 3, 4, Some(4)), (Side::Server, 0, ContentKind::Text, 211, 3, Some(6))];
    assert_eq!(rows(&talk.messages()), expected);
}

#[test]
fn a_message_that_is_cut_off_has_no_end() {
    let mut talk = start().server(server(2, 10)).client(&client(FIN | 1, 100)[..50]);
    talk.finish();
    let expected =
        [(Side::Client, 0, ContentKind::Text, 100, 4, None), (Side::Server, 0, ContentKind::Binary, 10, 3, None)];
    assert_eq!(rows(&talk.messages()), expected);
}

#[test]
fn missing_bytes_inside_a_message_leave_its_times_and_others_are_found_again() {
    let long = server(FIN | 2, 1000);
    let mut talk = start().server(&long[..100]).gap(Side::Server, 500).server(&long[600..]);
    assert_eq!(rows(&talk.messages()), [(Side::Server, 0, ContentKind::Binary, 1000, 3, Some(5))]);
    // Of this one nobody knows how much of it is missing.
    talk = talk.server(&long[..100]).gap(Side::Server, 2000).server("ppp").server(server(FIN | 1, 4));
    let expected =
        [(Side::Server, 1, ContentKind::Binary, 1000, 6, None), (Side::Server, 2, ContentKind::Text, 4, 9, Some(9))];
    assert_eq!(rows(&talk.messages()), expected);
    talk.finish();
    assert_eq!(talk.unseen(), [(6, 8)]);
}

#[test]
fn what_breaks_the_rules_is_read_as_turns() {
    for broken in [server(FIN | 3, 1), server(FIN | 0x20 | 1, 1), server(9, 1), server(FIN | 9, 126)] {
        let mut talk = start().server(server(FIN | 1, 3)).server(broken);
        let found = talk.finish();
        assert_eq!(found.iter().map(|e| e.protocol).collect::<Vec<_>>(), ["http/1.1", "websocket"]);
        assert_eq!(talk.conversation.app(), Some("http/1.1"));
        assert_eq!(talk.messages().len(), 1);
    }
}

#[test]
fn nothing_is_kept_of_payloads() {
    let mut talk = start();
    let long = client(FIN | 2, 100_000);
    for piece in long.chunks(1000) {
        talk = talk.client(piece);
        assert!(talk.conversation.held() < 100);
    }
    assert_eq!(talk.messages().len(), 1);
}

fn frames() -> impl Strategy<Value = Vec<(bool, Vec<u8>)>> {
    let control =
        (any::<bool>(), 8u8..11, 0usize..126).prop_map(|(asks, opcode, n)| (asks, frame(FIN | opcode, asks, n)));
    let data = (any::<bool>(), 1u8..3, prop::collection::vec(0usize..400, 1..4)).prop_map(|(asks, opcode, parts)| {
        let last = parts.len() - 1;
        let part = |(n, &bytes): (usize, &usize)| {
            let first = if n == 0 { opcode } else { 0 } | if n == last { FIN } else { 0 };
            frame(first, asks, bytes)
        };
        (asks, parts.iter().enumerate().flat_map(part).collect())
    });
    prop::collection::vec(prop_oneof![control, data], 0..12)
}

proptest! {
    #[test]
    fn how_tcp_cuts_a_websocket_changes_nothing(frames in frames(), sizes in prop::collection::vec(1usize..60, 1..40)) {
        let mut packets = vec![(Side::Client, UPGRADE.into()), (Side::Server, SWITCHED.into())];
        packets.extend(frames.into_iter().map(|(asks, bytes)| (if asks { Side::Client } else { Side::Server }, bytes)));
        let found = however_tcp_cut_it(&packets, &sizes);
        prop_assert_eq!(found.len(), 1);
    }

    #[test]
    fn hostile_frames_are_no_trouble(packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..20)) {
        let mut talk = start();
        for (n, packet) in packets.iter().enumerate() {
            talk = if n % 2 == 0 { talk.server(packet) } else { talk.client(packet) };
        }
        talk.finish();
        talk.messages().iter().for_each(|m| assert_eq!(m.first.max(m.last), m.last));
    }
}
