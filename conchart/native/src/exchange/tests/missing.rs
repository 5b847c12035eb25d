use super::talk::{Talk, short};
use crate::stream::Side;

const GET: &str = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";
const OK5: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

#[test]
fn a_gap_inside_a_counted_body_is_counted_and_changes_nothing_else() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";
    let talk = Talk::new().client(GET).server(head).gap(Side::Server, 990).server([b'x'; 10]);
    let mut talk = talk.client(GET).server(OK5);
    let found = talk.finish();
    assert_eq!(short(found[0].response), (Some(2), Some(4), head.len() as u64 + 1000, true));
    assert!(found.iter().all(|e| !e.inferred) && found.len() == 2);
    assert!(talk.unseen().is_empty());
}

#[test]
fn a_gap_inside_a_chunk_is_counted_and_changes_nothing_else() {
    let talk = Talk::new().client(GET).server(CHUNKED).server("64\r\n").gap(Side::Server, 100).server("\r\n0\r\n\r\n");
    let found = talk.exchanges();
    assert_eq!(found[0].response.bytes, CHUNKED.len() as u64 + 4 + 100 + 7);
    assert!(found[0].response.done && !found[0].inferred);
}

#[test]
fn a_gap_over_a_chunk_header_is_unseen_until_the_next_exchange() {
    let talk = Talk::new().client(GET).server(CHUNKED).server("64\r\nabc").gap(Side::Server, 300).server("more\r\n");
    let mut talk = talk.client(GET).server(OK5);
    let found = talk.finish();
    assert_eq!(short(found[0].response), (Some(2), Some(5), CHUNKED.len() as u64 + 7 + 300 + 6, true));
    assert!(found[0].inferred && found[0].confidence <= 0.5);
    assert_eq!((found[1].status, found[1].inferred), (Some(200), false));
    assert_eq!(talk.unseen(), [(3, 5)]);
}

#[test]
fn a_gap_in_a_head_keeps_what_was_read_and_finds_the_next_request() {
    let talk =
        Talk::new().client("POST /up HTTP/1.1\r\nHost: shop\r\nContent-Le").gap(Side::Client, 500).client("tail");
    let mut talk = talk.server(OK5).client(GET).server(OK5);
    let found = talk.finish();
    assert_eq!((found[0].method.as_deref(), found[0].host.as_deref()), (Some("POST"), Some("shop")));
    assert_eq!(short(found[0].request), (Some(1), Some(3), 41 + 500 + 4, true));
    assert!(found[0].inferred && found[0].confidence <= 0.5 && found[0].status == Some(200));
    assert_eq!((found[1].target.as_deref(), found[1].inferred), (Some("/a"), false));
    assert_eq!(talk.unseen(), [(1, 3)]);
}

#[test]
fn a_request_that_is_missing_whole_leaves_its_response_a_place() {
    let talk = Talk::new().client(GET).server(OK5).gap(Side::Client, 80).server(OK5).client(GET).server(OK5);
    let found = talk.exchanges();
    assert_eq!(found.len(), 3);
    assert_eq!((found[1].request.first, found[1].request.bytes, found[1].status), (None, 80, Some(200)));
    assert!(found[1].inferred && !found[2].inferred);
}

#[test]
fn a_response_that_is_missing_whole_does_not_shift_the_next_one() {
    let talk = Talk::new().client(GET).gap(Side::Server, OK5.len() as u64).client(GET.replace("/a", "/b"));
    let found = talk.server(OK5).exchanges();
    assert_eq!((found[0].response.first, found[0].status, found[0].inferred), (None, None, true));
    assert_eq!((found[1].target.as_deref(), found[1].status), (Some("/b"), Some(200)));
}

#[test]
fn an_interim_response_that_is_missing_is_not_taken_for_the_response() {
    let talk = Talk::new().client(GET).gap(Side::Server, 25).server(OK5);
    let found = talk.exchanges();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].status, short(found[0].response).0, found[0].inferred), (Some(200), Some(3), true));
}

#[test]
fn heads_cut_by_the_snap_length_give_what_is_left_and_take_turns() {
    let talk = Talk::new()
        .say(Side::Client, b"GET /first HTTP/1.1\r\nHost: shop\r\nUser-Ag", 200)
        .say(Side::Server, b"HTTP/1.1 404 Not Fou", 1000)
        .say(Side::Server, b"<p>some text of the body", 1400)
        .say(Side::Client, b"GET /seco", 300)
        .say(Side::Server, b"HTTP/1.1 200", 99);
    let mut talk = talk;
    let found = talk.finish();
    assert_eq!(found.len(), 2);
    assert_eq!(short(found[0].request), (Some(1), Some(1), 40 + 200, true));
    assert_eq!(short(found[0].response), (Some(2), Some(3), 20 + 1000 + 24 + 1400, true));
    assert_eq!((found[0].target.as_deref(), found[0].host.as_deref()), (Some("/first"), Some("shop")));
    assert_eq!((found[0].status, found[0].client_keepalive), (Some(404), None));
    assert_eq!((found[1].method.as_deref(), found[1].target.as_deref()), (Some("GET"), None));
    assert_eq!((found[1].status, found[1].inferred), (Some(200), true));
    // Every packet is there: no time is unseen.
    assert!(talk.unseen().is_empty());
}

#[test]
fn a_counted_body_cut_by_the_snap_length_still_ends_where_it_must() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n";
    let talk = Talk::new().client(GET).say(Side::Server, head.as_bytes(), 1000).say(Side::Server, b"", 1000);
    let found = talk.client(GET).server(OK5).exchanges();
    assert_eq!(short(found[0].response), (Some(2), Some(3), head.len() as u64 + 2000, true));
    assert!(found.iter().all(|e| !e.inferred) && found.len() == 2);
}

#[test]
fn a_head_without_end_is_not_kept() {
    let mut talk = Talk::new().client("GET / HTTP/1.1\r\n");
    for _ in 0..100 {
        talk = talk.client(format!("X: {}\r\n", "y".repeat(1000)));
    }
    let found = talk.server(OK5).client(GET).server(OK5).exchanges();
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].request.bytes, found[0].status), (16 + 100 * 1005, Some(200)));
    assert!(found[0].inferred && !found[1].inferred);
}

#[test]
fn broken_chunks_end_with_the_next_request() {
    let talk = Talk::new().client(GET).server(format!("{CHUNKED}zz\r\n")).server("what").client(GET).server(OK5);
    let found = talk.exchanges();
    assert_eq!(short(found[0].response), (Some(2), Some(3), CHUNKED.len() as u64 + 8, true));
    assert_eq!((found[0].inferred, found[1].status), (true, Some(200)));
}

#[test]
fn bytes_that_are_no_request_do_not_shift_the_responses() {
    let talk = Talk::new().client(GET).server(OK5).client(b"\x00\x01cruft").client(GET).server(OK5);
    let found = talk.exchanges();
    assert_eq!(found.len(), 2);
    assert_eq!((short(found[1].request), found[1].status), ((Some(4), Some(4), GET.len() as u64, true), Some(200)));
}

#[test]
fn a_capture_that_starts_in_a_body_skips_to_the_first_request() {
    let talk = Talk::midstream().server("...the tail of a picture").server("and its end").client(GET).server(OK5);
    let mut talk = talk;
    let found = talk.finish();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].number, found[0].status, short(found[0].request).0), (0, Some(200), Some(3)));
    assert_eq!(talk.unseen(), [(1, 2)]);
    assert_eq!(talk.conversation.app(), Some("http/1.1"));
}

#[test]
fn a_capture_that_starts_between_request_and_response_has_a_response_alone() {
    let found = Talk::midstream().server(OK5).client(GET).server(OK5).exchanges();
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].request.first, found[0].status, found[0].response.done), (None, Some(200), true));
    assert_eq!((found[0].protocol, found[1].status), ("http/1.1", Some(200)));
}
