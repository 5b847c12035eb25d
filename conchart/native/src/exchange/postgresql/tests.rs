//! Conversations as psql, libpq and drivers have them with PostgreSQL 15, and laws.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use proptest::prelude::*;

use super::*;
use crate::exchange::reader::{Carrier, Start};
use crate::exchange::sniffers::{Judgement, judge};
use crate::exchange::tests::talk::{Talk, however_tcp_cut_it, short};
use crate::exchange::{Conversation, Exchange};
use crate::tls::build::Hello;

/// A message with its type.
fn m(kind: char, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    [&[kind as u8][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

fn startup() -> Vec<u8> {
    let body = b"\0\x03\0\0user\0me\0database\0shop\0\0";
    [&(body.len() as u32 + 4).to_be_bytes()[..], body].concat()
}

const SSL_REQUEST: &[u8] = b"\0\0\0\x08\x04\xd2\x16\x2f";

fn ready() -> Vec<u8> {
    m('Z', "I")
}

fn row() -> Vec<u8> {
    m('D', b"\0\x01\0\0\0\x021\0")
}

fn error(severity: &str, code: &str) -> Vec<u8> {
    m('E', format!("S{severity}\0V{severity}\0C{code}\0Mno such thing as 'secret'\0\0"))
}

/// Startup and SCRAM are over.
fn session() -> Talk {
    let authenticated = [m('R', [0, 0, 0, 0]), m('S', "TimeZone\0UTC\0"), m('K', [7; 8]), ready()].concat();
    Talk::new().client(startup()).server(authenticated)
}

fn rows(exchanges: &[Exchange]) -> Vec<(&str, Option<&str>, Option<u32>)> {
    exchanges.iter().map(|e| (e.method.as_deref().unwrap(), e.target.as_deref(), e.status)).collect()
}

fn code(text: &str) -> Option<u32> {
    message::sqlstate(text.as_bytes())
}

#[test]
fn a_connection_begins_with_exchanges_of_one_round_trip_each() {
    let sasl = |kind: u8| m('R', [0, 0, 0, kind]);
    let talk = Talk::new().client(SSL_REQUEST).server("N").client(startup()).server(sasl(10));
    let talk = talk.client(m('p', "SCRAM-SHA-256\0")).server(sasl(11)).client(m('p', "proof"));
    let found = talk.server([sasl(12), sasl(0), m('S', "TimeZone\0UTC\0"), ready()].concat()).exchanges();
    assert_eq!(
        rows(&found),
        [
            ("SSLRequest", None, None),
            ("Startup", Some("shop"), None),
            ("Authenticate", None, None),
            ("Authenticate", None, Some(0))
        ]
    );
    assert!(found.iter().all(|e| e.response.done && e.confidence == 1.0));
}

#[test]
fn tls_follows_where_the_server_agrees() {
    let mut talk = Talk::new().client(SSL_REQUEST).server("S").client(Hello::tls13().record());
    assert_eq!(talk.conversation.app(), Some(PROTOCOL));
    talk.finish();
    assert!(talk.conversation.next_handshake().is_some());
}

#[test]
fn a_simple_query_ends_when_the_server_is_ready() {
    let query = m('Q', "SELECT * FROM t WHERE id = 42\0");
    let talk = session().client(&query).server([m('T', [0, 0]), row()].concat());
    let found = talk.server([row(), m('C', "SELECT 2\0"), ready()].concat()).exchanges();
    assert_eq!(rows(&found)[1], ("Query", Some("SELECT * FROM t WHERE id = ?"), Some(0)));
    assert_eq!((short(found[1].response).0, short(found[1].response).1), (Some(4), Some(5)));
    assert_eq!(found[1].request.bytes, query.len() as u64);
}

#[test]
fn an_error_has_its_sqlstate() {
    let talk = session().client(m('Q', "SELECT nothing\0"));
    let found = talk.server([error("ERROR", "42703"), ready()].concat()).server(error("FATAL", "57P01")).exchanges();
    assert_eq!(
        rows(&found)[1..],
        [("Query", Some("SELECT nothing"), code("42703")), ("ErrorResponse", None, code("57P01"))]
    );
    assert!(!format!("{found:?}").contains("secret"));
}

#[test]
fn a_prepared_statement_is_named_by_its_text_wherever_it_is_executed() {
    let parse = [m('P', "s1\0SELECT name FROM t WHERE id = $1\0\0\0"), m('D', "Ss1\0"), m('S', "")].concat();
    let execute = [m('B', "\0s1\0\0\0\0\0\0\0"), m('E', "\0\0\0\0\0"), m('S', "")].concat();
    let talk = session().client(&parse).server([m('1', ""), m('t', [0, 0]), m('T', [0, 0]), ready()].concat());
    let talk = talk.client(&execute).server([m('2', ""), row(), m('C', "SELECT 1\0"), ready()].concat());
    let found = talk.client(&execute).server([m('2', ""), m('C', "SELECT 0\0")].concat()).server(ready()).exchanges();
    let text = Some("SELECT name FROM t WHERE id = ?");
    assert_eq!(rows(&found)[1..], [("Parse", text, Some(0)), ("Execute", text, Some(0)), ("Execute", text, Some(0))]);
    assert_eq!(found[2].request.bytes, execute.len() as u64);
    assert_eq!(
        (short(found[3].response).0, short(found[3].response).1, found[3].response.done),
        (Some(8), Some(9), true)
    );
}

#[test]
fn a_pipeline_has_one_exchange_for_each_execute_and_leaves_out_what_follows_an_error() {
    let one = |text: &str| [m('P', format!("\0{text}\0\0\0")), m('B', [0; 8]), m('E', [0; 5])].concat();
    let sent = [one("INSERT 1"), one("INSERT 2"), one("INSERT 3"), m('S', ""), one("SELECT 4"), m('S', "")].concat();
    let done = [m('1', ""), m('2', ""), m('C', "INSERT 0 1\0")].concat();
    let talk = session().client(sent).server([&done[..], &error("ERROR", "23505"), &ready()].concat());
    let found = talk.server([&done[..], &ready()].concat()).exchanges();
    let statuses: Vec<_> = found[1..].iter().map(|e| e.status).collect();
    assert_eq!(statuses, [Some(0), code("23505"), None, Some(0)]);
    let frames: Vec<_> = found[1..].iter().map(|e| short(e.response).0).collect();
    assert_eq!(frames, [Some(4), Some(4), Some(4), Some(5)]);
    // The last one that is left out has the Sync, and so has what says that the server is ready.
    assert_eq!(found[3].response.bytes, ready().len() as u64);
    let sent = [one("INSERT 1"), one("INSERT 2"), one("INSERT 3"), m('S', "")].concat();
    let found = session().client(sent).server([error("ERROR", "23505"), ready()].concat()).exchanges();
    let seen: Vec<_> = found[1..].iter().map(|e| (e.response.bytes > 0, e.response.done, e.ended.is_some())).collect();
    assert_eq!(seen, [(true, true, false), (false, false, true), (true, true, false)]);
}

#[test]
fn a_cursor_is_fetched_portion_by_portion() {
    let bound =
        [m('P', "\0SELECT a FROM t\0\0\0"), m('B', "c\0\0\0\0\0\0\0\0"), m('E', "c\0\0\0\0\x0a"), m('S', "")].concat();
    let more = [m('E', "c\0\0\0\0\x0a"), m('S', "")].concat();
    let talk = session().client(bound).server([m('1', ""), m('2', ""), row(), m('s', ""), ready()].concat());
    let found = talk.client(more).server([row(), m('C', "SELECT 1\0"), ready()].concat()).exchanges();
    assert_eq!(rows(&found)[1..], [("Execute", Some("SELECT a FROM t"), Some(0)); 2]);
}

#[test]
fn data_of_copy_belongs_to_its_statement() {
    let talk = session().client(m('Q', "COPY t FROM STDIN\0")).server(m('G', [0, 0, 0]));
    let talk = talk.client([m('d', "1\n"), m('d', "2\n")].concat()).client(m('c', ""));
    let found = talk.server([m('C', "COPY 2\0"), ready()].concat()).exchanges();
    assert_eq!((short(found[1].request).1, short(found[1].response).0), (Some(6), Some(7)));
    assert_eq!(found[1].continued.map(|at| at.frame()), Some(4));
    let talk = session().client(m('Q', "COPY t TO STDOUT\0")).server([m('H', [0, 0, 0]), m('d', "1\n")].concat());
    let found = talk.server([m('d', "2\n"), m('c', ""), m('C', "COPY 2\0"), ready()].concat()).exchanges();
    assert_eq!((short(found[1].response).0, short(found[1].response).1), (Some(4), Some(5)));
}

#[test]
fn a_notification_begins_no_response() {
    let notified = m('A', b"\0\0\0\x07jobs\0secret\0");
    let talk = session().server(&notified).client(m('Q', "SELECT 1\0")).server(m('N', "SNOTICE\0\0"));
    let found = talk.server([m('C', "SELECT 1\0"), ready()].concat()).exchanges();
    assert_eq!(rows(&found)[1..], [("NotificationResponse", Some("jobs"), None), ("Query", Some("SELECT ?"), Some(0))]);
    assert_eq!(short(found[2].response).0, Some(6));
}

#[test]
fn a_password_is_never_told() {
    let found = session().client(m('p', "hunter2\0")).client(m('Q', "ALTER ROLE me PASSWORD 'hunter2'\0")).exchanges();
    assert!(!format!("{found:?}").contains("hunter2"));
}

#[test]
fn a_connection_that_was_joined_midway_is_found() {
    let talk = Talk::midstream().server("rest of a row").client(m('Q', "SELECT 1\0"));
    let found = talk.server([m('C', "SELECT 1\0"), ready()].concat()).exchanges();
    assert_eq!(rows(&found).last(), Some(&("Query", Some("SELECT ?"), Some(0))));
}

#[test]
fn after_missing_bytes_a_statement_still_ends_when_the_server_is_ready() {
    let talk = session().client(m('Q', "SELECT 1\0")).server(m('T', [0, 0])).gap(Side::Server, 500).server(ready());
    let found = talk.client(m('Q', "SELECT 2, a\0")).gap(Side::Server, 30).client(m('Q', "SELECT b\0"));
    let found = found.server([m('C', "SELECT 1\0"), ready()].concat()).exchanges();
    let seen: Vec<_> = found[1..].iter().map(|e| (e.response.done, e.confidence)).collect();
    assert_eq!(seen, [(true, 0.5), (false, 0.5), (true, 1.0)]);
}

#[test]
fn a_beginning_is_too_short_or_tells_the_same() {
    for (bytes, start) in [
        (startup(), Start::Beginning),
        (SSL_REQUEST.to_vec(), Start::Beginning),
        (m('Q', "SELECT 1\0"), Start::Midstream),
        ([m('C', "SELECT 1\0"), ready()].concat(), Start::Gap),
    ] {
        for cut in 1..=bytes.len() {
            let early = match judge(Carrier::Stream, &bytes[..cut], start, false) {
                Judgement::Row(row) => row.protocol.unwrap_or("http"),
                Judgement::None => "unknown",
                Judgement::More => "more",
            };
            assert!(
                early == PROTOCOL || early == "more" && cut < bytes.len(),
                "{early}: {}",
                bytes[..cut].escape_ascii()
            );
        }
    }
}

fn conversation() -> Vec<(Side, Vec<u8>)> {
    let (client, server) = (Side::Client, Side::Server);
    let long = format!("INSERT INTO t VALUES ('{}')\0", "x".repeat(9000));
    vec![
        (client, startup()),
        (server, [m('R', [0, 0, 0, 0]), ready()].concat()),
        (client, m('Q', long)),
        (server, [m('C', "INSERT 0 1\0"), ready()].concat()),
        (client, [m('P', "\0SELECT $1\0\0\0"), m('B', [0; 8]), m('D', "P\0"), m('E', [0; 5]), m('S', "")].concat()),
        (server, [m('1', ""), m('2', ""), m('T', [0, 0]), row(), row(), m('C', "SELECT 2\0"), ready()].concat()),
        (client, [m('Q', "BAD\0"), m('X', "")].concat()),
        (server, [error("ERROR", "42601"), ready()].concat()),
    ]
}

proptest! {
    /// Law: how TCP cut the stream never changes what is found.
    #[test]
    fn how_tcp_cut_it_changes_nothing(sizes in proptest::collection::vec(1_usize..400, 1..12)) {
        prop_assert_eq!(however_tcp_cut_it(&conversation(), &sizes).len(), 4);
    }

    /// Law: whatever messages follow in whatever order, nothing panics and no byte counts twice.
    #[test]
    fn anything_may_follow(messages in proptest::collection::vec((any::<bool>(), 0..42_usize, proptest::collection::vec(any::<u8>(), 0..12), 0..20_u8), 0..60), midstream: bool) {
        const KINDS: &[u8] = b"QPBDECSHFpdcfXRKSZ123TtnDCIsENAGHWdcVvZZCP";
        let mut talk = Talk::on(Conversation::new(Carrier::Stream, midstream, None)).client(startup());
        let mut bytes = startup().len() as u64;
        for (client, kind, body, gap) in messages {
            let from = if client { Side::Client } else { Side::Server };
            let message = m(KINDS[kind].into(), body);
            bytes += message.len() as u64;
            talk = talk.say(from, &message, 0);
            if gap == 0 {
                bytes += 9;
                talk = talk.gap(from, 9);
            }
        }
        let counted: u64 = talk.exchanges().iter().map(|e| e.request.bytes + e.response.bytes).sum();
        prop_assert!(counted <= bytes);
    }
}

#[test]
fn a_side_that_said_nothing_does_not_speak_postgresql() {
    for asks in [true, false] {
        assert_eq!(super::message::goes_on(&[], asks), super::Verdict::More);
    }
}

#[test]
fn metadata_of_kafka_begins_no_session() {
    // Length, key 3, version 1, correlation 1, client "a", all topics: as a startup message but for what follows.
    let metadata = b"\0\0\0\x0f\0\x03\0\x01\0\0\0\x01\0\x01a\xff\xff\xff\xff";
    assert_eq!(super::beginning(metadata), Verdict::No);
    assert_eq!(super::beginning(&metadata[..8]), Verdict::More);
    assert_eq!(super::beginning(&startup()), Verdict::Yes);
}
