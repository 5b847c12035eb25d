//! Conversations as mariadb, mysql and drivers have them with MariaDB and MySQL, and laws.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use proptest::prelude::*;

use super::*;
use crate::exchange::reader::{Carrier, Start};
use crate::exchange::sniffers::{Judgement, judge};
use crate::exchange::tests::talk::{Talk, however_tcp_cut_it, short};
use crate::exchange::{Conversation, Exchange};
use crate::tls::build::Hello;

/// A packet.
fn p(sequence: u8, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    [&(body.len() as u32).to_le_bytes()[..3], &[sequence], body].concat()
}

/// A command.
fn c(kind: u8, body: impl AsRef<[u8]>) -> Vec<u8> {
    p(0, [&[kind][..], body.as_ref()].concat())
}

const CAPABILITIES: u32 =
    capability::WITH_DATABASE | capability::PROTOCOL_41 | capability::SECURE_CONNECTION | capability::LONG_PASSWORD;

fn hello(capabilities: u32) -> Vec<u8> {
    let (low, high) = (&capabilities.to_le_bytes()[..2], &capabilities.to_le_bytes()[2..]);
    p(0, [b"\x0a8.0.31\0", &[7; 4][..], &[8; 8], &[0], low, &[45, 2, 0], high, &[21], &[0; 10], &[9; 13]].concat())
}

fn login(sequence: u8, capabilities: u32) -> Vec<u8> {
    let head = [&capabilities.to_le_bytes()[..], &[0, 0, 0, 1, 45], &[0; 23]].concat();
    p(sequence, [&head[..], b"me\0", &[4], b"hash", b"shop\0", b"caching_sha2_password\0"].concat())
}

fn ssl_request() -> Vec<u8> {
    let capabilities = CAPABILITIES | capability::SSL;
    p(1, [&capabilities.to_le_bytes()[..], &[0, 0, 0, 1, 45], &[0; 23]].concat())
}

fn ok(sequence: u8, flags: u16) -> Vec<u8> {
    p(sequence, [&[0, 0, 0][..], &flags.to_le_bytes(), &[0, 0]].concat())
}

fn error(sequence: u8, code: u16) -> Vec<u8> {
    p(sequence, [&[0xff][..], &code.to_le_bytes(), b"#42S02no such table as 'secret'"].concat())
}

fn eof(sequence: u8, flags: u16) -> Vec<u8> {
    p(sequence, [&[0xfe, 0, 0][..], &flags.to_le_bytes()].concat())
}

/// The OK packet that ends rows where EOF packets are deprecated.
fn end(sequence: u8, flags: u16) -> Vec<u8> {
    p(sequence, [&[0xfe, 0, 0][..], &flags.to_le_bytes(), &[0, 0]].concat())
}

fn column(sequence: u8) -> Vec<u8> {
    p(sequence, b"\x03def\x04shop\x01t\x01t\x01a\x01a\x0c\x3f\0\x0b\0\0\0\x03\x01\0\0\0\0")
}

fn row(sequence: u8) -> Vec<u8> {
    p(sequence, "\u{6}secret")
}

/// Rows between two EOF packets.
fn rows() -> Vec<u8> {
    [p(1, [1]), column(2), eof(3, 2), row(4), row(5), eof(6, 2)].concat()
}

fn session_with(capabilities: u32) -> Talk {
    Talk::new().server(hello(capabilities)).client(login(1, capabilities)).server(ok(2, 2))
}

/// Three exchanges, of which the last packet is the third.
fn session() -> Talk {
    session_with(CAPABILITIES)
}

fn exchange_rows(exchanges: &[Exchange]) -> Vec<(&str, Option<&str>, Option<u32>)> {
    exchanges.iter().map(|e| (e.method.as_deref().unwrap(), e.target.as_deref(), e.status)).collect()
}

const SELECT: &str = "SELECT a FROM t WHERE id = 42";
const SHAPE: Option<&str> = Some("SELECT a FROM t WHERE id = ?");

#[test]
fn a_connection_begins_with_a_greeting_and_exchanges_of_one_round_trip_each() {
    let talk = Talk::new().server(hello(CAPABILITIES)).client(login(1, CAPABILITIES));
    let talk = talk.server(p(2, b"\xfecaching_sha2_password\0challenge")).client(p(3, "scrambled"));
    let talk = talk.server(p(4, [1, 4])).client(p(5, [2])).server(p(6, "\u{1}-----BEGIN PUBLIC KEY"));
    let found = talk.client(p(7, "sealed")).server(ok(8, 2)).client(c(0x0e, "")).server(ok(1, 2)).exchanges();
    assert_eq!(
        exchange_rows(&found),
        [
            ("Greeting", None, Some(0)),
            ("Connect", Some("shop"), None),
            ("Authenticate", None, None),
            ("Authenticate", None, None),
            ("Authenticate", None, Some(0)),
            ("Ping", None, Some(0)),
        ]
    );
    assert_eq!(found[0].server_software.as_deref(), Some("8.0.31"));
    assert!(found[1..].iter().all(|e| e.response.done && e.confidence == 1.0));
}

#[test]
fn a_known_hash_lets_in_without_another_round_trip() {
    let talk = Talk::new().server(hello(CAPABILITIES)).client(login(1, CAPABILITIES));
    let found = talk.server([p(2, [1, 3]), ok(3, 2)].concat()).exchanges();
    assert_eq!(exchange_rows(&found)[1], ("Connect", Some("shop"), Some(0)));
    assert_eq!(found[1].response.bytes, 17);
}

#[test]
fn who_is_not_let_in_is_told_why() {
    let talk = Talk::new().server(hello(CAPABILITIES)).client(login(1, CAPABILITIES)).server(error(2, 1045));
    assert_eq!(exchange_rows(&talk.exchanges())[1], ("Connect", Some("shop"), Some(1045)));
    let full = Talk::new().server(p(0, b"\xff\x10\x04Too many connections"));
    assert_eq!(full.conversation.app(), Some(PROTOCOL));
    assert_eq!(exchange_rows(&full.exchanges()), [("Error", None, Some(1040))]);
}

#[test]
fn tls_follows_its_request_and_inside_it_the_login() {
    let mut talk = Talk::new().server(hello(CAPABILITIES)).client(ssl_request()).client(Hello::tls13().record());
    assert_eq!(talk.conversation.app(), Some(PROTOCOL));
    assert_eq!(exchange_rows(&talk.finish()[..2]), [("Greeting", None, Some(0)), ("SSLRequest", None, None)]);
    assert!(talk.conversation.next_handshake().is_some());
    let inside = Talk::new()
        .client(login(2, CAPABILITIES | capability::SSL))
        .server(ok(3, 2))
        .client(c(3, SELECT))
        .server(rows());
    assert_eq!(exchange_rows(&inside.exchanges()), [("Connect", Some("shop"), Some(0)), ("Query", SHAPE, Some(0))]);
}

#[test]
fn compression_is_not_read() {
    let agreed = CAPABILITIES | capability::COMPRESS;
    let talk = session_with(agreed).client([&[9, 0, 0, 0, 0, 0, 0][..], &c(3, "SELECT 1")].concat());
    let found = talk.server([7, 0, 0, 0, 0, 0, 0]).exchanges();
    assert_eq!(found.len(), 3);
    assert_eq!((found[2].protocol, found[2].method.as_deref(), found[2].inferred), (PROTOCOL, None, true));
    let talk = Talk::new().server(hello(CAPABILITIES)).client(login(1, agreed)).server(ok(2, 2));
    assert_eq!(exchange_rows(&talk.client(c(3, SELECT)).server(rows()).exchanges())[2], ("Query", SHAPE, Some(0)));
}

#[test]
fn rows_end_with_their_eof_or_with_an_ok_packet() {
    let found = session().client(c(3, SELECT)).server(rows()).client(c(3, "DO 1")).server(ok(1, 2)).exchanges();
    assert_eq!(exchange_rows(&found)[2..], [("Query", SHAPE, Some(0)), ("Query", Some("DO ?"), Some(0))]);
    assert_eq!(short(found[2].response), (Some(5), Some(5), rows().len() as u64, true));
    let talk = session_with(CAPABILITIES | capability::NO_EOF).client(c(3, SELECT));
    let talk = talk.server([p(1, [1]), column(2), p(3, "")].concat()).server([row(4), end(5, 2)].concat());
    let found = talk.client(c(0x0e, "")).server(ok(1, 2)).exchanges();
    assert_eq!(exchange_rows(&found)[2..], [("Query", SHAPE, Some(0)), ("Ping", None, Some(0))]);
    assert_eq!((short(found[2].response).0, short(found[2].response).1), (Some(5), Some(6)));
}

#[test]
fn an_error_has_its_number() {
    let found = session().client(c(3, SELECT)).server(error(1, 1146)).server(error(0, 1927)).exchanges();
    assert_eq!(exchange_rows(&found)[2..], [("Query", SHAPE, Some(1146)), ("Error", None, Some(1927))]);
    let within = [p(1, [1]), column(2), eof(3, 2), row(4), error(5, 1317)].concat();
    let found = session().client(c(3, SELECT)).server(within).exchanges();
    assert_eq!((exchange_rows(&found)[2], found[2].response.done), (("Query", SHAPE, Some(1317)), true));
    assert!(!format!("{found:?}").contains("secret"));
}

#[test]
fn several_results_are_one_response() {
    let more = flag::MORE_RESULTS | 2;
    let answers = [ok(1, more), p(2, [1]), column(3), eof(4, more), row(5), eof(6, more), ok(7, 2)].concat();
    let found = session().client(c(3, "CALL p(7)")).server(&answers).client(c(0x0e, "")).server(ok(1, 2)).exchanges();
    assert_eq!(exchange_rows(&found)[2..], [("Query", Some("CALL p(?)"), Some(0)), ("Ping", None, Some(0))]);
    assert_eq!(found[2].response.bytes, answers.len() as u64);
}

fn prepared(eof_between: bool) -> Vec<u8> {
    let ok = p(1, [0, 5, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0]);
    let between = if eof_between { eof(4, 2) } else { Vec::new() };
    let last = if eof_between { eof(6, 2) } else { Vec::new() };
    [ok, column(2), column(3), between, column(5), last].concat()
}

#[test]
fn a_prepared_statement_is_named_by_its_text_wherever_it_is_executed() {
    for has_eof in [true, false] {
        let capabilities = if has_eof { CAPABILITIES } else { CAPABILITIES | capability::NO_EOF };
        let talk = session_with(capabilities).client(c(0x16, "SELECT a FROM t WHERE id = ?"));
        let talk = talk.server(prepared(has_eof)).client(c(0x18, b"\x05\0\0\0\0\0blob"));
        let talk =
            talk.client(c(0x17, b"\x05\0\0\0\x01\x01\0\0\0")).server([p(1, [1]), column(2), eof(3, 0x42)].concat());
        let talk = talk.client(c(0x1c, b"\x05\0\0\0\x0a\0\0\0")).server([row(1), eof(2, 0x82)].concat());
        let talk = talk.client([c(0x1a, b"\x05\0\0\0"), c(0x19, b"\x05\0\0\0")].concat()).server(ok(1, 2));
        let found = talk.client(c(0x17, b"\x05\0\0\0\0\x01\0\0\0")).server(error(1, 1243)).client(c(1, "")).exchanges();
        assert_eq!(
            exchange_rows(&found)[2..],
            [
                ("Prepare", SHAPE, Some(0)),
                ("Execute", SHAPE, Some(0)),
                ("Fetch", SHAPE, Some(0)),
                ("Reset stmt", SHAPE, Some(0)),
                ("Close stmt", SHAPE, None),
                ("Execute", None, Some(1243)),
                ("Quit", None, None),
            ]
        );
        assert_eq!((short(found[3].request).0, short(found[3].request).1), (Some(6), Some(7)));
        assert!(found[2..].iter().all(|e| e.response.done || e.ended.is_some()));
    }
}

#[test]
fn mariadb_executes_what_it_prepares_in_one_packet() {
    let sent = [c(0x16, SELECT), c(0x17, b"\xff\xff\xff\xff\0\x01\0\0\0")].concat();
    let found = session().client(sent).server([prepared(true), rows()].concat()).exchanges();
    assert_eq!(exchange_rows(&found)[2..], [("Prepare", SHAPE, Some(0)), ("Execute", SHAPE, Some(0))]);
}

#[test]
fn a_file_belongs_to_the_request() {
    let talk = session().client(c(3, "LOAD DATA LOCAL INFILE 'secret' INTO TABLE t")).server(p(1, b"\xfbsecret"));
    let talk = talk.client([p(2, "1\n"), p(0, "\x032\n")].concat()).client(p(3, "")).server(ok(4, 2));
    let found = talk.client(c(0x0e, "")).server(ok(1, 2)).exchanges();
    assert_eq!(
        exchange_rows(&found)[2..],
        [("Query", Some("LOAD DATA LOCAL INFILE ? INTO TABLE t"), Some(0)), ("Ping", None, Some(0))]
    );
    assert_eq!((short(found[2].request).1, short(found[2].response).0), (Some(7), Some(8)));
    assert_eq!(found[2].continued.map(|at| at.frame()), Some(5));
}

#[test]
fn packets_of_16_mib_go_on_in_the_next() {
    const FULL: usize = 0xff_ffff;
    let text = format!("SELECT '{}", "x".repeat(FULL - 9));
    // What goes on looks like a command, and like an error.
    let sent = [p(0, [b"\x03", text.as_bytes()].concat()), p(1, "\u{3}'")].concat();
    let large = [p(1, [1]), column(2), eof(3, 2), p(4, vec![b'x'; FULL]), p(5, b"\xff\x10\x04"), eof(6, 2)].concat();
    let found = session().client(&sent).server(&large).client(c(0x0e, "")).server(ok(1, 2)).exchanges();
    assert_eq!(exchange_rows(&found)[2..], [("Query", Some("SELECT ?…"), Some(0)), ("Ping", None, Some(0))]);
    assert_eq!((found[2].request.bytes, found[2].response.bytes), (sent.len() as u64, large.len() as u64));
}

#[test]
fn another_user_has_to_be_let_in_again() {
    let talk = session().client(c(0x11, b"you\0\x04hashother\0")).server(p(1, b"\xfecaching_sha2_password\0x"));
    let found = talk.client(p(2, "hunter2")).server(ok(3, 2)).client(c(2, "shelf")).server(ok(1, 2)).exchanges();
    assert_eq!(
        exchange_rows(&found)[2..],
        [("Change user", Some("other"), None), ("Authenticate", None, Some(0)), ("Init DB", Some("shelf"), Some(0))]
    );
    assert!(!format!("{found:?}").contains("hunter2"));
}

#[test]
fn a_server_says_how_it_reads_backslashes() {
    let talk = session().client(c(3, "SET sql_mode = 'NO_BACKSLASH_ESCAPES'")).server(ok(1, 0x202));
    let found = talk.client(c(3, "SELECT 'a\\', b, 'hunter2'")).server(rows()).exchanges();
    assert_eq!(exchange_rows(&found)[3].1, Some("SELECT ?, b, ?"));
}

#[test]
fn a_connection_that_was_joined_midway_is_found() {
    let talk = Talk::midstream().server("rest of a row").client(c(3, SELECT)).server(rows());
    let found = talk.client(c(0x0e, "")).server(ok(1, 2)).exchanges();
    assert_eq!(exchange_rows(&found), [("Query", SHAPE, Some(0)), ("Ping", None, Some(0))]);
    let found = Talk::midstream().client(c(0x17, b"\x05\0\0\0\0\x01\0\0\0")).server(rows()).exchanges();
    assert_eq!(exchange_rows(&found), [("Execute", None, Some(0))]);
}

#[test]
fn after_missing_bytes_a_command_still_ends_with_its_rows() {
    let talk = session().client(c(3, SELECT)).server(p(1, [1])).gap(Side::Server, 500).server(eof(9, 2));
    let talk = talk.client(c(3, "DO a")).gap(Side::Server, 30).client(c(3, "DO b")).server(ok(1, 2));
    let found = talk.gap(Side::Client, 40).client(c(3, SELECT)).server(rows()).exchanges();
    let seen: Vec<_> = found[2..].iter().map(|e| (e.response.done, e.confidence)).collect();
    assert_eq!(seen, [(true, 0.5), (false, 0.5), (true, 1.0), (true, 1.0)]);
    assert_eq!(exchange_rows(&found).last(), Some(&("Query", SHAPE, Some(0))));
}

#[test]
fn a_beginning_is_too_short_or_tells_the_same() {
    for (bytes, start) in [
        (hello(CAPABILITIES), Start::Beginning),
        (p(0, b"\xff\x10\x04Too many connections"), Start::Beginning),
        (login(2, CAPABILITIES | capability::SSL), Start::Beginning),
        (c(3, SELECT), Start::Midstream),
        (rows(), Start::Gap),
    ] {
        for cut in 1..=bytes.len().min(64) {
            let early = match judge(Carrier::Stream, &bytes[..cut], start, false) {
                Judgement::Row(row) => row.protocol.unwrap_or("http"),
                Judgement::None => "unknown",
                Judgement::More => "more",
            };
            let fits = early == PROTOCOL || early == "more" && cut < bytes.len();
            assert!(fits, "{early}: {}", bytes[..cut].escape_ascii());
        }
    }
}

fn conversation() -> Vec<(Side, Vec<u8>)> {
    let (client, server) = (Side::Client, Side::Server);
    let long = format!("INSERT INTO t VALUES ('{}')", "x".repeat(9000));
    vec![
        (server, hello(CAPABILITIES)),
        (client, login(1, CAPABILITIES)),
        (server, [p(2, [1, 3]), ok(3, 2)].concat()),
        (client, c(3, long)),
        (server, ok(1, 2)),
        (client, [c(0x16, SELECT), c(0x17, b"\xff\xff\xff\xff\0\x01\0\0\0")].concat()),
        (server, [prepared(true), rows()].concat()),
        (client, c(3, "BAD")),
        (server, error(1, 1064)),
        (client, c(3, "LOAD DATA LOCAL INFILE 'f' INTO TABLE t")),
        (server, p(1, b"\xfbf")),
        (client, [p(2, "1\n"), p(3, "")].concat()),
        (server, ok(4, 2)),
        (client, [c(0x19, b"\x05\0\0\0"), c(1, "")].concat()),
    ]
}

proptest! {
    /// Law: how TCP cut the stream never changes what is found.
    #[test]
    fn how_tcp_cut_it_changes_nothing(sizes in proptest::collection::vec(1_usize..400, 1..12)) {
        prop_assert_eq!(however_tcp_cut_it(&conversation(), &sizes).len(), 9);
    }

    /// Law: whatever packets follow in whatever order, nothing panics and no byte counts twice.
    #[test]
    fn anything_may_follow(packets in proptest::collection::vec((any::<bool>(), 0..48_usize, 0..4_u8, proptest::collection::vec(any::<u8>(), 0..12), 0..20_u8), 0..60), midstream: bool) {
        const KINDS: &[u8] = &[
            1, 2, 3, 4, 9, 10, 14, 0x11, 0x12, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1c, 0x1f, 0xfa, 3, 3, 0x16, 0x17, 3, 0x18, 0x17, 0,
            0, 0, 1, 1, 2, 0xfb, 0xfe, 0xff, 0xfe, 0xff, 0, 0xfe, 0xfe, 1, 3, 0, 0, 0xfe, 0xfe, 0xfb, 1, 1, 1,
        ];
        let mut talk = Talk::on(Conversation::new(Carrier::Stream, midstream, None));
        talk = talk.server(hello(CAPABILITIES)).client(login(1, CAPABILITIES));
        let mut bytes = (hello(CAPABILITIES).len() + login(1, CAPABILITIES).len()) as u64;
        for (client, kind, sequence, body, gap) in packets {
            let from = if client { Side::Client } else { Side::Server };
            let packet = p(sequence * u8::from(!client), [&[KINDS[kind]][..], &body].concat());
            bytes += packet.len() as u64;
            talk = talk.say(from, &packet, 0);
            if gap == 0 {
                bytes += 9;
                talk = talk.gap(from, 9);
            }
        }
        let counted: u64 = talk.exchanges().iter().map(|e| e.request.bytes + e.response.bytes).sum();
        prop_assert!(counted <= bytes);
    }

    #[test]
    fn whatever_begins_so_may_be_anything(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        for asks in [true, false] {
            let _ = super::beginnings::goes_on(&bytes, asks);
        }
    }
}
