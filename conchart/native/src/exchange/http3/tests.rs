//! Requests on streams as [`Http3`] hears them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use proptest::prelude::*;

use super::*;
use crate::exchange::Exchange;
use crate::exchange::content::ContentKind;

fn moment(at: i64, from: Side) -> Moment {
    Moment::new(at, at.unsigned_abs(), from)
}

/// A conversation, a packet per part.
struct Talk {
    http3: Http3,
    ledger: Ledger,
    at: i64,
}

impl Talk {
    fn new() -> Self {
        Self { http3: Http3::new(), ledger: Ledger::default(), at: 0 }
    }

    fn say(mut self, from: Side, id: u64, bytes: &[u8], fin: bool) -> Self {
        self.at += 1_000_000;
        let seen = moment(self.at, from);
        self.http3.part(&mut self.ledger, from, Part { id, offset: 0, bytes, fin: false, seen });
        if fin {
            self.http3.part(&mut self.ledger, from, Part { id, offset: 0, bytes: &[], fin: true, seen });
        }
        self
    }

    fn exchanges(mut self) -> Vec<Exchange> {
        self.http3.finish(&mut self.ledger);
        std::iter::from_fn(|| self.ledger.next_exchange()).collect()
    }
}

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    [&[kind, u8::try_from(payload.len()).unwrap()][..], payload].concat()
}

/// `:method GET`, `:scheme https`, `:path /`, and an authority in clear.
fn request() -> Vec<u8> {
    frame(1, &[&[0, 0, 0xd1, 0xd7, 0xc1, 0x50, 9][..], b"a.example"].concat())
}

/// `:status 200` and content.
fn response(content: &[u8]) -> Vec<u8> {
    [frame(1, &[0, 0, 0xd9]), frame(0, content)].concat()
}

const CLIENT: Side = Side::Client;
const SERVER: Side = Side::Server;

#[test]
fn a_request_is_an_exchange() {
    let talk = Talk::new().say(CLIENT, 0, &request(), true).say(SERVER, 0, &response(b"hello"), true);
    let [exchange] = &talk.exchanges()[..] else { unreachable!() };
    assert_eq!((exchange.protocol, exchange.method.as_deref(), exchange.status), ("h3", Some("GET"), Some(200)));
    assert_eq!((exchange.host.as_deref(), exchange.target.as_deref()), (Some("a.example"), Some("/")));
    assert_eq!((exchange.request.bytes, exchange.response.bytes), (18, 12));
    assert!(exchange.request.done && exchange.response.done && !exchange.inferred);
    assert_eq!(exchange.response.content, Some(moment(2_000_000, SERVER)));
}

#[test]
fn requests_may_come_in_any_order_of_their_streams() {
    let talk = Talk::new().say(CLIENT, 8, &request(), true).say(CLIENT, 4, &request(), true);
    let talk = talk.say(SERVER, 4, &response(b"4"), true).say(SERVER, 8, &response(b"88"), true);
    let sizes: Vec<u64> = talk.exchanges().iter().map(|exchange| exchange.response.bytes).collect();
    assert_eq!(sizes, [9, 8]);
}

#[test]
fn a_section_that_waits_for_entries_is_read_when_they_come() {
    let settings = [&[0][..], &frame(4, &[1, 0x40, 100])].concat();
    // One entry, which the request needs: `:authority b.example`.
    let section = [0x02, 0x00, 0xd1, 0xc1, 0x80];
    let mut talk = Talk::new().say(SERVER, 3, &settings, false).say(CLIENT, 0, &frame(1, &section), true);
    assert_eq!(talk.http3.blocked.len(), 1);
    let instructions = [&[2, 0x3f, 0x45, 0xc0, 9][..], b"b.example"].concat();
    talk = talk.say(CLIENT, 2, &instructions, false);
    let Some(Delay::Held(held)) = talk.ledger.next_delay() else { unreachable!() };
    assert_eq!((held.why, held.side, held.start.at, held.end.at), (Why::Qpack, CLIENT, 2_000_000, 3_000_000));
    let talk = talk.say(SERVER, 0, &response(b""), true);
    let [exchange] = &talk.exchanges()[..] else { unreachable!() };
    assert_eq!(exchange.host.as_deref(), Some("b.example"));
    // The server has it when it can read it.
    assert_eq!(exchange.request.last, Some(moment(3_000_000, CLIENT)));
}

/// The server's answer: `:status` from the table, `server: x` from an entry that is inserted by [`INSERTION`], content.
fn blocked_answer(content: &[u8]) -> Vec<u8> {
    [frame(1, &[0x02, 0x00, 0xd9, 0x80]), frame(0, content)].concat()
}

/// A capacity of 100, `server: x` (name 92 of the static table).
const INSERTION: [u8; 7] = [2, 0x3f, 0x45, 0xc0 | 63, 92 - 63, 1, b'x'];

fn after_request() -> Talk {
    let settings = [&[0][..], &frame(4, &[1, 0x40, 100])].concat();
    Talk::new().say(CLIENT, 2, &settings, false).say(CLIENT, 0, &request(), true)
}

#[test]
fn what_follows_a_section_that_waits_follows_it() {
    // The whole answer is there at 3 ms, and nobody can read it before 4 ms.
    let talk = after_request().say(SERVER, 0, &blocked_answer(b"hello"), true).say(SERVER, 3, &INSERTION, false);
    assert!(talk.http3.blocked.is_empty() && talk.http3.held == 0);
    let [exchange] = &talk.exchanges()[..] else { unreachable!() };
    assert_eq!((exchange.status, exchange.server_software.as_deref()), (Some(200), Some("x")));
    assert_eq!((exchange.response.bytes, exchange.response.done, exchange.inferred), (13, true, false));
    let at = |moment: Option<Moment>| moment.map(|moment| moment.at);
    let times = (at(exchange.response.first), at(exchange.response.content), at(exchange.response.last));
    assert_eq!(times, (Some(3_000_000), Some(3_000_000), Some(4_000_000)));
}

#[test]
fn entries_that_waited_for_missing_bytes_come_with_the_packet_that_brought_those() {
    let mut talk = after_request().say(SERVER, 0, &blocked_answer(b""), true);
    // The second part came first, with the answer; the packet at 9 ms brings the first one, and both are in order now.
    let (first, second) = INSERTION.split_at(3);
    let mut part = |bytes, at| {
        let part = Part { id: 3, offset: 0, bytes, fin: false, seen: moment(at, SERVER) };
        talk.http3.part(&mut talk.ledger, SERVER, part);
    };
    part(first, 9_000_000);
    part(second, 3_000_000);
    let Some(Delay::Held(held)) = talk.ledger.next_delay() else { unreachable!() };
    assert_eq!((held.start.at, held.end.at), (3_000_000, 9_000_000));
}

#[test]
fn settings_that_the_reader_has_already_hold_nothing_up() {
    // Early data refers to entries which the settings of the last connection allow.
    let instructions = [&[2, 0x3f, 0x45, 0xc0, 9][..], b"b.example"].concat();
    let section = frame(1, &[0x02, 0x00, 0xd1, 0xc1, 0x80]);
    let settings = [&[0][..], &frame(4, &[1, 0x40, 100])].concat();
    let mut talk = Talk::new().say(CLIENT, 2, &instructions, false).say(CLIENT, 0, &section, true);
    talk = talk.say(SERVER, 3, &settings, false);
    assert!(talk.ledger.next_delay().is_none());
    let [exchange] = &talk.exchanges()[..] else { unreachable!() };
    assert_eq!((exchange.host.as_deref(), exchange.request.last.map(|it| it.at)), (Some("b.example"), Some(2_000_000)));
}

#[test]
fn a_section_of_a_stream_that_is_abandoned_waits_no_longer() {
    let mut talk = after_request().say(SERVER, 0, &blocked_answer(b"hello"), false);
    talk.http3.stop(&mut talk.ledger, CLIENT, 0, 0x10c, moment(9_000_000, CLIENT));
    assert!(talk.http3.blocked.is_empty() && talk.http3.held == 0);
    let talk = talk.say(SERVER, 3, &INSERTION, false);
    let [exchange] = &talk.exchanges()[..] else { unreachable!() };
    // The field that needs no entry is read.
    assert_eq!((exchange.status, exchange.ended.map(|it| it.at)), (Some(200), Some(9_000_000)));
}

#[test]
fn little_is_kept_behind_a_section_that_waits() {
    let mut talk = after_request().say(SERVER, 0, &blocked_answer(b""), false);
    for _ in 0..40_000 {
        talk = talk.say(SERVER, 0, &frame(0, b"0123456789"), false);
        assert!(talk.http3.held <= MAX_HELD);
    }
    assert!(talk.http3.blocked.is_empty());
    let [exchange] = &talk.exchanges()[..] else { unreachable!() };
    assert_eq!((exchange.status, exchange.response.bytes), (Some(200), 8 + 40_000 * 12));
}

#[test]
fn sections_wait_for_settings_and_lost_ones_leave_unknown_only_what_needs_them() {
    let instructions = [&[2, 0x3f, 0x45, 0xc0, 9][..], b"b.example"].concat();
    let section = frame(1, &[0x02, 0x00, 0xd1, 0xc1, 0x80]);
    let talk = || Talk::new().say(CLIENT, 2, &instructions, false).say(CLIENT, 0, &section, true);
    let host = |talk: Talk| talk.exchanges().first().map(|it| (it.method.clone(), it.host.clone())).unwrap();
    let settings = [&[0][..], &frame(4, &[1, 0x40, 100])].concat();
    assert_eq!(host(talk().say(SERVER, 3, &settings, false)), (Some("GET".into()), Some("b.example".into())));
    let mut lost = talk();
    lost.http3.missing(&mut lost.ledger, SERVER, 3, Gap::new(0, 9, moment(3_000_000, SERVER)));
    assert!(lost.http3.blocked.is_empty());
    assert_eq!(host(lost), (Some("GET".into()), None));
}

/// An extended CONNECT for that `:protocol`; without one, a CONNECT (RFC 9220, RFC 9114 section 4.4).
fn connect(protocol: &[u8]) -> Vec<u8> {
    let authority = [&[0x50, 9][..], b"a.example"].concat();
    let named = [&[0x27, 2][..], b":protocol", &[u8::try_from(protocol.len()).unwrap()], protocol].concat();
    let extended = [&[0xd7, 0xc1][..], &named].concat();
    frame(1, &[&[0, 0, 0xcf][..], &authority, if protocol.is_empty() { &[] } else { &extended }].concat())
}

/// `:status`: 200, or else 403.
fn answer(opens: bool) -> Vec<u8> {
    frame(1, if opens { &[0, 0, 0xd9] } else { &[0, 0, 0xff, 68 - 63] })
}

#[test]
fn a_tunnel_begins_with_the_answer_and_what_goes_through_is_counted() {
    let talk = Talk::new().say(CLIENT, 0, &connect(b""), false).say(SERVER, 0, &answer(true), false);
    let talk = talk.say(CLIENT, 0, &frame(0, b"there"), false).say(SERVER, 0, &frame(0, b"and back"), false);
    let [exchange] = &talk.exchanges()[..] else { unreachable!() };
    let tunnel = exchange.tunnel.as_ref().unwrap();
    assert_eq!((&*tunnel.kind, tunnel.done), ("tcp", Some(moment(2_000_000, SERVER))));
    assert_eq!((tunnel.bytes.client, tunnel.bytes.server), (5, 8));
    assert_eq!((exchange.method.as_deref(), exchange.status), (Some("CONNECT"), Some(200)));
    // The response lasts as long as the tunnel.
    assert_eq!(exchange.response.last, Some(moment(4_000_000, SERVER)));
}

#[test]
fn a_tunnel_that_is_refused_is_not_opened() {
    let talk = Talk::new().say(CLIENT, 0, &connect(b"connect-udp"), false).say(SERVER, 0, &answer(false), true);
    let [exchange] = &talk.exchanges()[..] else { unreachable!() };
    let tunnel = exchange.tunnel.as_ref().unwrap();
    assert_eq!((&*tunnel.kind, tunnel.done, exchange.status), ("connect-udp", None, Some(403)));
}

#[test]
fn datagrams_of_a_tunnel_may_come_in_capsules_that_frames_cut() {
    // A DATAGRAM capsule of 4 bytes in two DATA frames.
    let talk = Talk::new().say(CLIENT, 0, &connect(b"connect-udp"), false).say(SERVER, 0, &answer(true), false);
    let talk = talk.say(CLIENT, 0, &frame(0, &[0, 4, 0]), false).say(CLIENT, 0, &frame(0, b"abc"), false);
    let [exchange] = &talk.exchanges()[..] else { unreachable!() };
    let tunnel = exchange.tunnel.as_ref().unwrap();
    assert_eq!((tunnel.datagrams.client, tunnel.datagrams.server, tunnel.bytes.client), (1, 0, 6));
}

#[test]
fn a_stream_of_webtransport_belongs_to_its_session() {
    let talk = Talk::new().say(CLIENT, 0, &connect(b"webtransport"), false).say(SERVER, 0, &answer(true), false);
    // One that goes both ways, of session 0, and one that goes one way.
    let talk = talk.say(CLIENT, 4, &[0x40, 0x41, 0, b'h', b'i'], true);
    let talk = talk.say(SERVER, 15, &[0x40, 0x54, 0, b'y', b'e', b's'], true);
    let [exchange] = &talk.exchanges()[..] else { unreachable!() };
    let tunnel = exchange.tunnel.as_ref().unwrap();
    assert_eq!((tunnel.bytes.client, tunnel.bytes.server), (2, 3));
}

/// What the messages of a WebSocket are: who sent them, what they are, how long, whole or not.
fn messages(talk: &mut Talk) -> Vec<(Side, ContentKind, u64, bool)> {
    talk.http3.finish(&mut talk.ledger);
    std::iter::from_fn(|| talk.ledger.next_message()).map(|it| (it.from, it.kind, it.bytes, it.done)).collect()
}

#[test]
fn messages_of_a_websocket_are_read_however_frames_cut_them() {
    // A masked text of the client; of the server a text of two frames, with a ping between them.
    let hi = [0x81, 0x82, 1, 2, 3, 4, b'h' ^ 1, b'i' ^ 2];
    let frames = [&[0x01, 3][..], b"one", &[0x89, 0, 0x80, 4], b"more"].concat();
    for cut in 1..frames.len() {
        let (begin, end) = frames.split_at(cut);
        let talk = Talk::new().say(CLIENT, 0, &connect(b"websocket"), false).say(SERVER, 0, &answer(true), false);
        let talk = talk.say(CLIENT, 0, &frame(0, &hi[..3]), false).say(CLIENT, 0, &frame(0, &hi[3..]), true);
        let mut talk = talk.say(SERVER, 0, &frame(0, begin), false).say(SERVER, 0, &frame(0, end), true);
        let expected = [
            (CLIENT, ContentKind::Text, 2, true),
            (SERVER, ContentKind::Ping, 0, true),
            (SERVER, ContentKind::Text, 7, true),
        ];
        assert_eq!(messages(&mut talk), expected, "cut at {cut}");
    }
}

#[test]
fn the_content_of_a_refusal_is_no_websocket() {
    let talk = Talk::new().say(CLIENT, 0, &connect(b"websocket"), false);
    let mut talk = talk.say(SERVER, 0, &[answer(false), frame(0, &[0x81, 2, b'n', b'o'])].concat(), true);
    assert_eq!(messages(&mut talk), []);
}

#[test]
fn a_message_of_a_websocket_that_ends_too_soon_is_not_whole() {
    let talk = Talk::new().say(CLIENT, 0, &connect(b"websocket"), false).say(SERVER, 0, &answer(true), false);
    let mut talk = talk.say(SERVER, 0, &frame(0, &[0x82, 9, b'a', b'b']), true);
    assert_eq!(messages(&mut talk), [(SERVER, ContentKind::Binary, 9, false)]);
}

#[test]
fn a_cancelled_request_ends_there() {
    let mut talk = Talk::new().say(CLIENT, 0, &request(), true);
    talk.http3.stop(&mut talk.ledger, CLIENT, 0, 0x10c, moment(9_000_000, CLIENT));
    let [exchange] = &talk.exchanges()[..] else { unreachable!() };
    assert_eq!((exchange.ended, exchange.response.first), (Some(moment(9_000_000, CLIENT)), None));
}

#[test]
fn what_a_server_that_goes_away_has_not_read_ends_there() {
    let mut talk = Talk::new().say(CLIENT, 0, &request(), true).say(CLIENT, 4, &request(), true);
    talk = talk.say(SERVER, 3, &[&[0][..], &frame(7, &[4])].concat(), false);
    let ended: Vec<bool> = talk.exchanges().iter().map(|exchange| exchange.ended.is_some()).collect();
    assert_eq!(ended, [false, true]);
}

#[test]
fn bytes_that_are_missing_in_content_leave_the_rest_readable() {
    let long = [frame(1, &[0, 0, 0xd9]), vec![0, 100], vec![b'x'; 40]].concat();
    let mut talk = Talk::new().say(CLIENT, 0, &request(), true).say(SERVER, 0, &long, false);
    talk.http3.missing(&mut talk.ledger, SERVER, 0, Gap::new(47, 30, moment(3_000_000, SERVER)));
    let talk = talk.say(SERVER, 0, &[b'x'; 30], true);
    let [exchange] = &talk.exchanges()[..] else { unreachable!() };
    assert_eq!((exchange.response.bytes, exchange.inferred, exchange.response.done), (107, true, true));
}

proptest! {
    #[test]
    fn any_bytes_on_any_streams_are_read_without_panic(
        parts in prop::collection::vec(
            (any::<bool>(), 0_u64..12, prop::collection::vec(prop_oneof![0_u8..8, any::<u8>()], 0..40), any::<bool>()),
            0..40,
        ),
    ) {
        let mut talk = Talk::new();
        for (of_server, id, bytes, fin) in parts {
            talk = talk.say(if of_server { SERVER } else { CLIENT }, id, &bytes, fin);
        }
        talk.exchanges();
    }

    /// Law: how packets cut a stream changes nothing but moments.
    #[test]
    fn cuts_do_not_matter(cut in 0_usize..30) {
        let bytes = [request(), frame(0, b"content"), frame(0x21, b"grease")].concat();
        let (begin, end) = bytes.split_at(cut.min(bytes.len()));
        let whole = Talk::new().say(CLIENT, 0, &bytes, true).exchanges();
        let parts = Talk::new().say(CLIENT, 0, begin, false).say(CLIENT, 0, end, true).exchanges();
        let rows = |exchanges: &[Exchange]| exchanges.iter().map(|it| (it.request.bytes, it.host.clone())).collect::<Vec<_>>();
        prop_assert_eq!(rows(&whole), rows(&parts));
    }
}
