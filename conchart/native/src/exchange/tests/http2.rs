use proptest::prelude::*;

use super::talk::{Talk, moment, short};
use crate::exchange::{Carrier, Conversation, Exchange};
use crate::stream::{Chunk, Side};

pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
pub(super) const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;

pub(super) fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&[length[1], length[2], length[3], kind, flags, 0, 0, 0, stream], payload].concat()
}

pub(super) fn settings() -> Vec<u8> {
    frame(4, 0, 0, &[0, 3, 0, 0, 0, 100])
}

/// A field that does not enter the table.
pub(super) fn field(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    [vec![0], text(name), text(value)].concat()
}

pub(super) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    fields.iter().flat_map(|(name, value)| field(name, value)).collect()
}

fn get(stream: u8, path: &str) -> Vec<u8> {
    let fields = block(&[(":method", "GET"), (":scheme", "http"), (":authority", "h"), (":path", path)]);
    frame(1, END_HEADERS | END_STREAM, stream, &fields)
}

fn status(stream: u8, flags: u8, status: &str) -> Vec<u8> {
    frame(1, END_HEADERS | flags, stream, &field(":status", status))
}

fn data(stream: u8, flags: u8, bytes: usize) -> Vec<u8> {
    frame(0, flags, stream, &vec![b'd'; bytes])
}

pub(super) fn start() -> Talk {
    Talk::new().client([PREFACE, &settings()].concat()).server(settings()).client(frame(4, 1, 0, &[]))
}

fn row(e: &Exchange) -> (Option<&str>, Option<&str>, Option<&str>, Option<u32>) {
    (e.method.as_deref(), e.host.as_deref(), e.target.as_deref(), e.status)
}

#[test]
fn a_stream_is_an_exchange_and_settings_are_not() {
    let mut talk = start().client(get(1, "/a")).server(frame(6, 0, 0, &[0; 8])).server(status(1, 0, "200"));
    talk = talk.server(data(1, 0, 100)).server(data(1, END_STREAM, 0)).server(frame(8, 0, 0, &[0, 0, 1, 0]));
    assert_eq!(talk.conversation.app(), Some("h2"));
    let found = talk.settled();
    let [e] = &found[..] else { panic!("{}", found.len()) };
    assert_eq!(row(e), (Some("GET"), Some("h"), Some("/a"), Some(200)));
    assert_eq!((e.protocol, e.inferred, e.confidence, e.requester), ("h2", false, 1.0, Side::Client));
    let head = status(1, 0, "200").len() as u64;
    assert_eq!(short(e.request), (Some(4), Some(4), get(1, "/a").len() as u64, true));
    assert_eq!(short(e.response), (Some(6), Some(8), head + 109 + 9, true));
}

/// RFC 7838 section 4: on stream 0 it names an origin, on others it is that of the request.
#[test]
fn a_frame_offers_alternatives_as_the_field_does() {
    let offer = |stream, origin: &str, value: &str| {
        let length = u16::try_from(origin.len()).unwrap().to_be_bytes();
        frame(10, 0, stream, &[&length, origin.as_bytes(), value.as_bytes()].concat())
    };
    let (h3, h2) = ("h3=\":443\"; ma=60", "h2=\"b.example:443\"");
    let mut talk = start().server(offer(0, "https://h", h3)).server(offer(0, "https://other", "h3=\":1\""));
    talk = talk.server(offer(0, "", "h3=\":2\"")).client(offer(0, "https://h", "h3=\":3\""));
    talk = talk.client(get(1, "/a")).client(get(3, "/b")).client(get(5, "/c"));
    talk = talk.server(offer(3, "", h2)).server(status(1, END_STREAM, "200")).server(status(3, END_STREAM, "200"));
    talk = talk.server([status(5, 0, "200"), offer(5, "", h3), offer(5, "https://h", h2), data(5, 1, 1)].concat());
    let alternatives = |e: &Exchange| e.provenance.as_ref().map(|way| way.alternatives.clone()).unwrap_or_default();
    let found: Vec<_> = talk.exchanges().iter().map(alternatives).collect();
    assert_eq!(found, [[h3], [h2], [h3]]);
}

#[test]
fn streams_that_run_at_once_have_times_of_their_own() {
    let mut talk = start().client(get(1, "/a")).client(get(3, "/b"));
    talk = talk.server(status(3, 0, "404")).server([status(1, 0, "200"), data(1, 0, 5)].concat());
    let found = talk.server(data(3, END_STREAM, 5)).server(data(1, END_STREAM, 5)).exchanges();
    assert_eq!(
        (row(&found[0]).3, short(found[0].response).0, short(found[0].response).1),
        (Some(200), Some(7), Some(9))
    );
    assert_eq!(
        (row(&found[1]).3, short(found[1].response).0, short(found[1].response).1),
        (Some(404), Some(6), Some(8))
    );
}

#[test]
fn early_hints_are_not_the_response_and_trailers_end_it() {
    let talk =
        start().client(get(1, "/")).server(status(1, 0, "103")).server(status(1, 0, "200")).server(data(1, 0, 3));
    let found = talk.server(frame(1, END_HEADERS | END_STREAM, 1, &field("grpc-status", "0"))).exchanges();
    assert_eq!(
        (found[0].status, short(found[0].response).0, short(found[0].response).1),
        (Some(200), Some(6), Some(8))
    );
    assert!(found[0].response.done && !found[0].inferred);
}

#[test]
fn padding_priority_and_continuation_are_taken_off() {
    let fields = block(&[(":method", "PUT"), (":path", "/x")]);
    let (one, two) = fields.split_at(9);
    let head = frame(1, END_STREAM | 0x8 | 0x20, 1, &[&[3, 0, 0, 0, 0, 9], one, &[0; 3]].concat());
    let found =
        start().client(head).client(frame(9, END_HEADERS, 1, two)).server(status(1, END_STREAM, "204")).exchanges();
    assert_eq!((row(&found[0]), short(found[0].request).0), ((Some("PUT"), None, Some("/x"), Some(204)), Some(4)));
    assert_eq!((short(found[0].request).1, found[0].request.done), (Some(5), true));
}

#[test]
fn a_stream_that_is_reset_ends_there() {
    let mut talk = start().client(get(1, "/a")).client(get(3, "/b")).client(frame(3, 0, 1, &[0, 0, 0, 8]));
    talk = talk.server(status(1, END_STREAM, "200")).server(frame(7, 0, 0, &[0; 8])).client(get(5, "/c"));
    let found = talk.settled();
    assert_eq!((found[0].ended, found[0].response.first), (Some(moment(6)), None));
    assert_eq!((found[1].ended, found[1].status), (Some(moment(8)), None));
}

#[test]
fn an_upgraded_request_is_answered_on_stream_1() {
    let asks = "GET /u HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n";
    let switched = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n";
    let mut talk = Talk::new().client(asks).server([switched.as_bytes(), &settings()].concat());
    talk = talk.client([PREFACE, &settings()].concat()).server(status(1, END_STREAM, "200"));
    let found = talk.client(get(3, "/b")).server(status(3, END_STREAM, "404")).exchanges();
    assert_eq!(found.iter().map(|e| e.status).collect::<Vec<_>>(), [Some(101), Some(200), Some(404)]);
    assert_eq!(
        (row(&found[1]).2, short(found[1].request), found[1].protocol),
        (Some("/u"), (Some(1), Some(1), 0, true), "h2")
    );
}

#[test]
fn a_server_may_speak_first() {
    let talk = Talk::new().server(settings()).client([PREFACE, &settings()].concat()).client(get(1, "/a"));
    assert_eq!(row(&talk.server(status(1, END_STREAM, "200")).exchanges()[0]).3, Some(200));
}

#[test]
fn a_promise_is_answered_without_a_request() {
    let promise =
        frame(5, END_HEADERS, 1, &[&[0, 0, 0, 2][..], &block(&[(":method", "GET"), (":path", "/p")])].concat());
    let talk = start().client(get(1, "/a")).server(promise).server(status(1, END_STREAM, "200"));
    let found = talk.server(status(2, 0, "200")).server(data(2, END_STREAM, 4)).exchanges();
    assert_eq!((row(&found[1]).2, found[1].request.first, short(found[1].response).0), (Some("/p"), None, Some(7)));
}

#[test]
fn frames_are_found_again_after_a_gap() {
    let talk = start().client(get(1, "/a")).server(status(1, 0, "200")).gap(Side::Server, 5000);
    let mut talk = talk.server([data(1, 0, 3), data(1, END_STREAM, 3)].concat()).client(get(3, "/b"));
    talk = talk.server(status(3, END_STREAM, "200"));
    let found = talk.finish();
    assert_eq!((found[0].inferred, found[0].confidence, found[0].response.done), (true, 0.5, true));
    assert_eq!((row(&found[1]).3, found[1].inferred), (Some(200), false));
    assert_eq!(talk.unseen(), [(5, 6)]);
}

#[test]
fn a_gap_inside_a_body_loses_nothing_else() {
    let talk =
        start().client(get(1, "/a")).server([status(1, 0, "200"), data(1, END_STREAM, 4000)[..1000].to_vec()].concat());
    let found = talk.gap(Side::Server, 3009).client(get(3, "/b")).server(status(3, END_STREAM, "200")).exchanges();
    assert_eq!((found[0].inferred, found[0].response.done), (true, true));
    assert_eq!((found[1].inferred, found[1].status), (false, Some(200)));
}

#[test]
fn snap_lengths_cost_bodies_nothing() {
    let body = data(1, END_STREAM, 4000);
    let talk = start().client(get(1, "/a")).server(status(1, 0, "200")).say(Side::Server, &body[..20], 3989);
    let found = talk.exchanges();
    assert_eq!((found[0].inferred, short(found[0].response).1, found[0].response.done), (false, Some(6), true));
}

#[test]
fn a_connection_joined_later_is_known_by_its_frames() {
    let request = frame(1, END_HEADERS | END_STREAM, 5, &[0x82, 0xc0, 0xbf]);
    let talk = Talk::midstream().client([frame(8, 0, 0, &[0, 0, 1, 0]), request].concat());
    let found = talk.server([frame(1, END_HEADERS, 5, &[0x88]), data(5, END_STREAM, 3)].concat()).exchanges();
    assert_eq!(row(&found[0]), (Some("GET"), None, None, Some(200)));
    assert!(found[0].response.done);
}

/// Streams in any order, each with a request and its response, of which some have bodies.
fn clean() -> impl Strategy<Value = Vec<(Side, Vec<u8>)>> {
    prop::collection::vec((any::<bool>(), 0..40usize, any::<bool>()), 1..8).prop_map(|streams| {
        let mut packets = vec![(Side::Client, [PREFACE, &settings()].concat()), (Side::Server, settings())];
        let mut late = Vec::new();
        for (id, (body, bytes, waits)) in (1u8..).step_by(2).zip(streams) {
            packets.push((Side::Client, get(id, "/a")));
            let answer = if body {
                [status(id, 0, "200"), data(id, END_STREAM, bytes)].concat()
            } else {
                status(id, END_STREAM, "204")
            };
            if waits { late.push((Side::Server, answer)) } else { packets.push((Side::Server, answer)) }
        }
        packets.extend(late);
        packets
    })
}

fn feed(packets: &[(Side, Vec<u8>)], size: usize, bytes: usize) -> Vec<Exchange> {
    let mut conversation = Conversation::new(Carrier::Stream, false, None);
    let mut sent = crate::stream::BySide::<u64>::default();
    let mut left = bytes;
    for (frame, (from, text)) in (1..).zip(packets) {
        for piece in text.chunks(size) {
            let piece = &piece[..piece.len().min(left)];
            left -= piece.len();
            let chunk =
                Chunk { bytes: piece, cut: 0, offset: sent[*from], acked: sent[from.peer()], seen: moment(frame) };
            conversation.data(*from, chunk);
            sent[*from] += piece.len() as u64;
        }
    }
    conversation.finish();
    std::iter::from_fn(|| conversation.next_exchange()).collect()
}

proptest! {
    #[test]
    fn how_the_stream_is_cut_changes_nothing(packets in clean(), size in 1..30usize) {
        let whole = feed(&packets, usize::MAX, usize::MAX);
        prop_assert!(whole.iter().all(|e| e.response.done && !e.inferred && e.method.is_some()));
        prop_assert_eq!(&feed(&packets, 1, usize::MAX), &whole);
        prop_assert_eq!(&feed(&packets, size, usize::MAX), &whole);
    }

    #[test]
    fn any_prefix_gives_a_result(packets in clean(), bytes in 0..600usize) {
        let found = feed(&packets, 7, bytes);
        for (number, exchange) in (0..).zip(&found) {
            prop_assert_eq!(exchange.number, number);
        }
    }
}

#[test]
fn header_blocks_tell_where_a_request_came_from() {
    let mut fields = vec![(":method", "GET"), (":authority", "h"), (":path", "/a")];
    fields.extend([
        ("x-real-ip", "10.0.0.9"),
        ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
    ]);
    let response = block(&[(":status", "200"), ("via", "2 back"), ("x-request-id", "7")]);
    let talk = start().client(frame(1, END_HEADERS | END_STREAM, 1, &block(&fields)));
    let found = talk.server(frame(1, END_HEADERS | END_STREAM, 1, &response)).exchanges();
    let way = found[0].provenance.as_deref().unwrap();
    assert_eq!((way.forwarded_for(), way.via.as_deref()), (Some("10.0.0.9"), Some("2 back")));
    assert_eq!(way.ids, ["traceparent:4bf92f3577b34da6a3ce929d0e0e4736", "x-request-id:7"]);
}

#[test]
fn header_blocks_name_products_and_expectations() {
    let fields = [(":method", "POST"), (":path", "/a"), ("user-agent", "curl/8"), ("expect", "100-continue")];
    let answer = block(&[(":status", "200"), ("server", "h2o")]);
    let talk = start().client(frame(1, END_HEADERS, 1, &block(&fields))).server(status(1, END_HEADERS, "100"));
    let talk = talk.client(data(1, 0, 0)).client(data(1, END_STREAM, 4));
    let found = talk.server(frame(1, END_HEADERS | END_STREAM, 1, &answer)).exchanges();
    let e = &found[0];
    assert_eq!((e.user_agent.as_deref(), e.server_software.as_deref()), (Some("curl/8"), Some("h2o")));
    let first = e.request.first.unwrap().frame();
    let frames = [e.continued, e.request.content].map(|moment| moment.unwrap().frame() - first);
    assert_eq!((e.expects_continue, frames), (Some(true), [1, 3]), "an empty DATA frame is no content");
}
