//! Calls of gRPC in HTTP/2: status, and the messages of both sides.

use proptest::prelude::*;

use super::http2::{END_HEADERS, END_STREAM, block, frame, start};
use super::talk::however_tcp_cut_it;
use crate::exchange::{ContentKind, ContentMessage, Exchange};
use crate::stream::Side;

const PADDED: u8 = 8;

fn ask(stream: u8, kind: &str) -> Vec<u8> {
    let fields = [(":method", "POST"), (":authority", "h"), (":path", "/shop.Orders/Watch"), ("content-type", kind)];
    frame(1, END_HEADERS, stream, &block(&fields))
}

fn respond(stream: u8) -> Vec<u8> {
    frame(1, END_HEADERS, stream, &block(&[(":status", "200"), ("content-type", "application/grpc")]))
}

fn trailers(stream: u8, status: &str) -> Vec<u8> {
    frame(1, END_HEADERS | END_STREAM, stream, &block(&[("grpc-status", status), ("grpc-message", "no")]))
}

fn message(flag: u8, bytes: usize) -> Vec<u8> {
    let length = u32::try_from(bytes).unwrap().to_be_bytes();
    [&[flag][..], &length, &vec![b'm'; bytes]].concat()
}

fn data(stream: u8, flags: u8, content: &[u8]) -> Vec<u8> {
    frame(0, flags, stream, content)
}

/// Sender, number, bytes, compressed, frames of the first and the last byte.
type Row = (Side, u32, u64, bool, u64, Option<u64>);

fn rows(messages: &[ContentMessage]) -> Vec<Row> {
    let row =
        |m: &ContentMessage| (m.from, m.number, m.bytes, m.compressed, m.first.frame(), m.done.then(|| m.last.frame()));
    messages.iter().map(row).collect()
}

fn only(exchanges: &[Exchange]) -> (&str, Option<&str>, Option<u32>) {
    let [e] = exchanges else { panic!("{}", exchanges.len()) };
    (e.protocol, e.target.as_deref(), e.status)
}

#[test]
fn each_message_of_a_call_is_told_and_the_trailers_say_how_it_ended() {
    let mut talk = start()
        .client([ask(1, "application/grpc+proto"), data(1, END_STREAM, &message(0, 7))].concat())
        .server([respond(1), data(1, 0, &message(1, 20))].concat())
        .server(data(1, 0, &message(0, 0)))
        .server(trailers(1, "0"));
    let found = talk.settled();
    assert_eq!(only(&found), ("grpc", Some("/shop.Orders/Watch"), Some(0)));
    let messages = talk.messages();
    assert!(messages.iter().all(|m| m.kind == ContentKind::Message && m.exchange == found[0].number));
    assert_eq!(
        rows(&messages),
        [
            (Side::Client, 0, 7, false, 4, Some(4)),
            (Side::Server, 0, 20, true, 5, Some(5)),
            (Side::Server, 1, 0, false, 6, Some(6)),
        ]
    );
}

#[test]
fn a_message_goes_over_frames_and_several_are_in_one() {
    let both = [message(0, 10), message(0, 30), message(0, 1)].concat();
    let talk = start().client(ask(1, "application/grpc")).server(respond(1));
    let mut talk =
        talk.server(data(1, 0, &both[..17])).server(data(1, 0, &both[17..40])).server(data(1, 0, &both[40..]));
    let server = |number, bytes, first, last| (Side::Server, number, bytes, false, first, Some(last));
    assert_eq!(rows(&talk.messages()), [server(0, 10, 6, 6), server(1, 30, 6, 8), server(2, 1, 8, 8)]);
}

#[test]
fn padding_is_no_content() {
    let content = message(0, 9);
    let padded = [&[5][..], &content[..8], &[0; 5]].concat();
    let talk = start().client(ask(1, "application/grpc")).server(respond(1));
    let mut talk = talk.server(data(1, PADDED, &padded)).server(data(1, END_STREAM, &content[8..]));
    assert_eq!(rows(&talk.messages()), [(Side::Server, 0, 9, false, 6, Some(7))]);
}

#[test]
fn a_response_of_trailers_alone_has_the_status() {
    let fields = [(":status", "200"), ("content-type", "application/grpc"), ("grpc-status", "14")];
    let only_trailers = frame(1, END_HEADERS | END_STREAM, 1, &block(&fields));
    let mut talk =
        start().client([ask(1, "application/grpc"), data(1, END_STREAM, &[])].concat()).server(only_trailers);
    assert_eq!(only(&talk.settled()).2, Some(14));
    assert_eq!(talk.messages(), []);
}

#[test]
fn a_proxy_that_does_not_speak_grpc_has_its_status_of_http() {
    let refused = frame(1, END_HEADERS | END_STREAM, 1, &block(&[(":status", "503"), ("content-type", "text/html")]));
    let mut talk = start().client([ask(1, "application/grpc"), data(1, END_STREAM, &[])].concat()).server(refused);
    assert_eq!(only(&talk.settled()), ("grpc", Some("/shop.Orders/Watch"), Some(503)));
}

#[test]
fn a_call_that_is_given_up_has_no_status_and_its_last_message_no_end() {
    let talk =
        start().client(ask(1, "application/grpc")).server([respond(1), data(1, 0, &message(0, 50)[..20])].concat());
    let mut talk = talk.client(frame(3, 0, 1, &[0, 0, 0, 8]));
    assert_eq!(only(&talk.settled()).2, None);
    assert_eq!(rows(&talk.messages()), [(Side::Server, 0, 50, false, 5, None)]);
}

#[test]
fn other_content_has_no_messages() {
    for kind in ["application/grpc-web", "application/grpcx", "application/json"] {
        let mut talk = start().client([ask(1, kind), data(1, END_STREAM, &message(0, 7))].concat());
        assert_eq!((talk.finish()[0].protocol, talk.messages().len()), ("h2", 0), "{kind}");
    }
}

#[test]
fn missing_bytes_inside_a_message_leave_those_after_it() {
    let talk = start().client(ask(1, "application/grpc")).server(respond(1));
    let whole = data(1, 0, &[message(0, 100), message(0, 5)].concat());
    let (begun, rest) = whole.split_at(40);
    let mut talk = talk.server(begun).gap(Side::Server, 30).server(&rest[30..]);
    let found = rows(&talk.messages());
    assert_eq!(found.iter().map(|m| (m.1, m.2)).collect::<Vec<_>>(), [(0, 100), (1, 5)]);
}

#[test]
fn after_a_missing_beginning_of_a_message_that_side_tells_no_more() {
    let talk = start().client(ask(1, "application/grpc")).server(respond(1));
    let whole = data(1, 0, &[message(0, 10), message(0, 50), message(0, 5)].concat());
    let (begun, rest) = whole.split_at(27);
    let talk = talk.server(begun).gap(Side::Server, 10).server(&rest[10..]).server(data(1, 0, &message(0, 1)));
    let mut talk = talk.client(data(1, END_STREAM, &message(0, 3)));
    assert_eq!(
        rows(&talk.messages()),
        [(Side::Server, 0, 10, false, 6, Some(6)), (Side::Client, 0, 3, false, 10, Some(10))]
    );
}

#[test]
fn what_is_kept_of_messages_is_bounded() {
    let mut talk = start().client(ask(1, "application/grpc")).server(respond(1));
    for _ in 0..200 {
        talk = talk.server(data(1, 0, &[message(0, 1000), message(0, 1000)[..3].to_vec()].concat()));
        talk = talk.server(data(1, 0, &message(0, 1000)[3..]));
        assert!(talk.conversation.held() < 1_000);
        assert_eq!(talk.messages().len(), 2);
    }
}

proptest! {
    #[test]
    fn how_tcp_cuts_a_call_changes_nothing(
        sizes in prop::collection::vec(1usize..60, 1..40),
        lengths in prop::collection::vec((any::<bool>(), 0usize..300, 1usize..200), 0..8),
        status in 0u8..18,
        padding in any::<bool>(),
    ) {
        let start = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), frame(4, 0, 0, &[]), ask(1, "application/grpc")].concat();
        let mut packets = vec![(Side::Client, start), (Side::Server, [frame(4, 0, 0, &[]), respond(1)].concat())];
        for (compressed, bytes, piece) in lengths {
            let side = if compressed { Side::Client } else { Side::Server };
            let content = message(compressed.into(), bytes);
            let frames = content.chunks(piece).map(|piece| {
                if padding { data(1, PADDED, &[&[3][..], piece, &[0; 3]].concat()) } else { data(1, 0, piece) }
            });
            packets.push((side, frames.flatten().collect()));
        }
        packets.push((Side::Client, data(1, END_STREAM, &[])));
        packets.push((Side::Server, trailers(1, &status.to_string())));
        let found = however_tcp_cut_it(&packets, &sizes);
        prop_assert_eq!(only(&found), ("grpc", Some("/shop.Orders/Watch"), Some(status.into())));
    }

    #[test]
    fn hostile_content_is_no_trouble(content in prop::collection::vec(any::<u8>(), 0..200), sizes in prop::collection::vec(1usize..20, 1..20)) {
        let mut talk = start().client(ask(1, "application/grpc")).server(respond(1));
        for piece in content.chunks(sizes[0]) {
            talk = talk.server(data(1, 0, piece)).client(data(1, PADDED, piece));
        }
        talk.finish();
        talk.messages().iter().for_each(|m| assert_eq!(m.first.max(m.last), m.last));
    }
}
