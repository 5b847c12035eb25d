//! Conversations as nginx has them with PHP-FPM, others that the specification allows, and laws.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use proptest::prelude::*;

use super::*;
use crate::exchange::Conversation;
use crate::exchange::reader::{Carrier, Start};
use crate::exchange::sniffers::{Judgement, judge};
use crate::exchange::tests::talk::{Talk, however_tcp_cut_it, short};

/// A record with three bytes of padding, if it has contents.
fn r(kind: u8, request: u16, content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    let padding = if content.is_empty() { 0 } else { 3 };
    let (request, len) = (request.to_be_bytes(), (content.len() as u16).to_be_bytes());
    [&[1, kind][..], &request, &len, &[padding, 0], content, &vec![0; padding.into()]].concat()
}

fn begin(request: u16, role: u8, keeps: bool) -> Vec<u8> {
    r(1, request, [0, role, u8::from(keeps), 0, 0, 0, 0, 0])
}

/// Lengths have one byte or four.
fn pair(name: &str, value: &str) -> Vec<u8> {
    let value_len = (value.len() as u32 | 0x8000_0000).to_be_bytes();
    let value_len = if value.is_empty() { &[0] } else { &value_len[..] };
    [&[name.len() as u8], value_len, name.as_bytes(), value.as_bytes()].concat()
}

fn parameters(target: &str) -> Vec<u8> {
    let cookie = pair("HTTP_COOKIE", "session=secret");
    let trace = pair("HTTP_X_REQUEST_ID", "abc123");
    let host = pair("HTTP_HOST", "shop.example");
    [pair("REQUEST_METHOD", "GET"), cookie, pair("REQUEST_URI", target), trace, host].concat()
}

/// A request without contents.
fn get(request: u16, target: &str) -> Vec<u8> {
    [begin(request, 1, true), r(4, request, parameters(target)), r(4, request, ""), r(5, request, "")].concat()
}

fn end(request: u16, status: u8) -> Vec<u8> {
    r(3, request, [0, 0, 0, 0, status, 0, 0, 0])
}

fn page(request: u16, status: &str) -> Vec<u8> {
    let status = if status.is_empty() { String::new() } else { format!("Status: {status}\r\n") };
    let head = format!("{status}Content-Type: text/html\r\n\r\nsecret");
    [r(6, request, head), r(6, request, "")].concat()
}

type Row<'a> = (Option<&'a str>, Option<&'a str>, Option<u32>);

fn rows(exchanges: &[Exchange]) -> Vec<Row<'_>> {
    exchanges.iter().map(|e| (e.method.as_deref(), e.target.as_deref(), e.status)).collect()
}

#[test]
fn a_request_is_that_of_http() {
    let (request_bytes, response_bytes) = (get(1, "/cart?item=7"), [page(1, ""), end(1, 0)].concat());
    let found = Talk::new().client(&request_bytes).server(&response_bytes).exchanges();
    assert_eq!(rows(&found), [(Some("GET"), Some("/cart?item=7"), Some(200))]);
    assert_eq!(found[0].host.as_deref(), Some("shop.example"));
    assert_eq!(found[0].client_keepalive, Some(true));
    assert_eq!(found[0].provenance.as_ref().unwrap().ids, ["x-request-id:abc123"]);
    assert_eq!(short(found[0].request), (Some(1), Some(1), request_bytes.len() as u64, true));
    assert_eq!(short(found[0].response), (Some(2), Some(2), response_bytes.len() as u64, true));
    assert!(!format!("{found:?}").contains("secret"));
}

#[test]
fn a_status_is_that_of_the_head() {
    for (head, status) in [
        ("Status: 404 Not Found\r\nContent-Type: text/html\r\n\r\n", Some(404)),
        ("Content-type: text/html\nstatus: 503\n\nbody", Some(503)),
        ("Location: /elsewhere\r\n\r\n", Some(302)),
        ("X-Powered-By: PHP\r\n\r\nStatus: 500\r\n\r\n", Some(200)),
        ("Content-Type: text/html\r\n", None),
    ] {
        let (first, second) = head.split_at(5);
        let response_bytes = [r(6, 1, first), r(6, 1, second), end(1, 0)].concat();
        let found = Talk::new().client(get(1, "/")).server(response_bytes).exchanges();
        assert_eq!(rows(&found), [(Some("GET"), Some("/"), status)], "{head}");
    }
}

#[test]
fn a_target_may_be_a_script_and_its_query() {
    let named =
        [pair("SCRIPT_NAME", "/cart.php"), pair("QUERY_STRING", "item=7"), pair("REQUEST_METHOD", "POST")].concat();
    // Parameters are cut into records anywhere.
    let (first, second) = named.split_at(20);
    let request_bytes = [begin(1, 1, false), r(4, 1, first), r(4, 1, second), r(4, 1, ""), r(5, 1, "item=7")].concat();
    let found =
        Talk::new().client(request_bytes).client(r(5, 1, "")).server([page(1, ""), end(1, 0)].concat()).exchanges();
    assert_eq!(rows(&found), [(Some("POST"), Some("/cart.php?item=7"), Some(200))]);
    assert_eq!((short(found[0].request).1, found[0].client_keepalive), (Some(2), Some(false)));
}

#[test]
fn requests_are_mixed_by_their_number() {
    let talk = Talk::new().client([get(1, "/slow"), get(2, "/fast")].concat());
    let talk = talk.server([r(6, 1, "Status: 201 Created\r\n"), page(2, "404"), end(2, 0)].concat());
    let found = talk.server([r(6, 1, "\r\nbody"), end(1, 0)].concat()).exchanges();
    assert_eq!(rows(&found), [(Some("GET"), Some("/slow"), Some(201)), (Some("GET"), Some("/fast"), Some(404))]);
    assert_eq!((short(found[0].response).1, short(found[1].response).1), (Some(3), Some(2)));
}

#[test]
fn a_number_is_used_again() {
    let response_bytes = || [page(1, ""), end(1, 0)].concat();
    let talk = Talk::new().client(get(1, "/a")).server(response_bytes()).client(get(1, "/b")).server(response_bytes());
    assert_eq!(rows(&talk.exchanges()), [(Some("GET"), Some("/a"), Some(200)), (Some("GET"), Some("/b"), Some(200))]);
}

#[test]
fn errors_begin_no_response() {
    let talk = Talk::new().client(get(1, "/")).server(r(7, 1, "PHP message: secret")).server(page(1, "500"));
    let found = talk.server([r(7, 1, "more"), end(1, 0)].concat()).exchanges();
    assert_eq!((rows(&found)[0].2, short(found[0].response).0), (Some(500), Some(3)));
    assert!(!format!("{found:?}").contains("secret"));
}

#[test]
fn a_request_may_be_rejected_or_given_up() {
    let found = Talk::new().client(get(1, "/")).server(end(1, 2)).exchanges();
    assert_eq!(rows(&found)[0].2, Some(2));
    let aborted = [begin(1, 1, true), r(4, 1, parameters("/")), r(4, 1, ""), r(5, 1, "half"), r(2, 1, "")].concat();
    let found = Talk::new().client(aborted).server(end(1, 0)).exchanges();
    assert_eq!((rows(&found)[0].2, found[0].request.done, found[0].response.done), (None, true, true));
}

#[test]
fn an_authorizer_reads_no_contents_and_a_filter_reads_a_file() {
    let request_of = |role| [begin(1, role, true), r(4, 1, parameters("/")), r(4, 1, "")].concat();
    let found = Talk::new().client(request_of(2)).server([page(1, ""), end(1, 0)].concat()).exchanges();
    assert!(found[0].request.done);
    let talk =
        Talk::new().client([request_of(3), r(5, 1, "")].concat()).client([r(8, 1, "file"), r(8, 1, "")].concat());
    let found = talk.server([page(1, ""), end(1, 0)].concat()).exchanges();
    assert_eq!((short(found[0].request).1, found[0].request.done), (Some(2), true));
}

#[test]
fn what_a_server_can_do_is_asked_too() {
    let request_bytes = r(9, 0, pair("FCGI_MAX_CONNS", ""));
    let found = Talk::new().client(request_bytes).server(r(10, 0, pair("FCGI_MAX_CONNS", "7"))).exchanges();
    assert_eq!(rows(&found), [(Some("FCGI_GET_VALUES"), None, None)]);
    assert!(found[0].response.done);
}

#[test]
fn a_connection_that_was_joined_midway_is_found() {
    let talk = Talk::midstream().server("rest of a page").client(get(1, "/")).server([page(1, ""), end(1, 0)].concat());
    assert_eq!(rows(&talk.exchanges()).last(), Some(&(Some("GET"), Some("/"), Some(200))));
}

#[test]
fn after_missing_bytes_a_request_ends_with_its_last_record() {
    let talk = Talk::new().client(get(1, "/")).server(page(1, "404")).gap(Side::Server, 5000).server(end(1, 0));
    let talk = talk
        .client(get(1, "/lost"))
        .gap(Side::Server, 500)
        .client(get(1, "/next"))
        .server([page(1, ""), end(1, 0)].concat());
    let found =
        talk.gap(Side::Client, 300).client(get(1, "/last")).server([page(1, ""), end(1, 0)].concat()).exchanges();
    let seen: Vec<_> = found.iter().map(|e| (e.status, e.response.done, e.confidence)).collect();
    assert_eq!(seen, [(Some(404), true, 0.5), (None, false, 0.5), (Some(200), true, 1.0), (Some(200), true, 1.0)]);
}

#[test]
fn a_beginning_is_too_short_or_tells_the_same() {
    for (bytes, start) in [
        (get(1, "/"), Start::Beginning),
        (r(9, 0, pair("FCGI_MAX_CONNS", "")), Start::Beginning),
        (r(4, 1, parameters("/")), Start::Midstream),
        (page(1, "404"), Start::Gap),
        (end(1, 0), Start::Midstream),
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

#[test]
fn what_is_kept_is_bounded() {
    let mut talk = Talk::new().client(begin(1, 1, true));
    for _ in 0..20 {
        talk = talk.client(r(4, 1, vec![b'X'; 60_000]));
    }
    assert!(talk.conversation.held() <= 64 * 1024);
    for request in 1..2000 {
        talk = talk.client(begin(request, 1, true));
    }
    assert_eq!(talk.exchanges().len(), 2000);
}

fn conversation() -> Vec<(Side, Vec<u8>)> {
    let (client, server) = (Side::Client, Side::Server);
    vec![
        (client, [get(1, "/a"), get(2, "/b")].concat()),
        (server, [r(7, 2, "PHP message"), page(2, "404"), r(6, 1, "Status: 2"), end(2, 0)].concat()),
        (server, [r(6, 1, "01\r\n\r\n"), r(6, 1, vec![b'x'; 9000]), end(1, 0)].concat()),
        (client, get(1, "/c")),
        (server, end(1, 2)),
    ]
}

proptest! {
    /// Law: how TCP cut the stream never changes what is found.
    #[test]
    fn how_tcp_cut_it_changes_nothing(sizes in proptest::collection::vec(1_usize..200, 1..12)) {
        prop_assert_eq!(however_tcp_cut_it(&conversation(), &sizes).len(), 3);
    }

    /// Law: whatever records follow in whatever order, nothing panics and no byte counts twice.
    #[test]
    fn anything_may_follow(records in proptest::collection::vec((any::<bool>(), 1..12_u8, 0..4_u16, proptest::collection::vec(any::<u8>(), 0..12), 0..20_u8), 0..60), midstream: bool) {
        let mut talk = Talk::on(Conversation::new(Carrier::Stream, midstream, None)).client(get(1, "/"));
        let mut bytes = get(1, "/").len() as u64;
        for (client, kind, request, content, gap) in records {
            let from = if client { Side::Client } else { Side::Server };
            let record = r(kind, request, content);
            bytes += record.len() as u64;
            talk = talk.say(from, &record, 0);
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
            let _ = record::goes_on(&bytes, asks);
        }
        let _ = record::pairs(&bytes).count();
    }
}
