//! The table as a whole: which row fits what, and who sent it.

use proptest::prelude::*;
use proptest::sample::select;

use super::talk::Talk;
use crate::exchange::reader::Start;
use crate::exchange::sniffers::{Judgement, judge, judge_later, later};
use crate::exchange::{Carrier, likely_sender};
use crate::stream::Side;
use crate::tls::build::Hello;

const SETTINGS: &[u8] = b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64";
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

fn stream(prefix: &[u8], start: Start, all: bool) -> &'static str {
    match judge(Carrier::Stream, prefix, start, all) {
        Judgement::Row(row) => row.protocol.unwrap_or("http/1"),
        Judgement::None => "unknown",
        Judgement::More => "more",
    }
}

#[test]
fn every_prefix_of_a_beginning_is_either_too_short_or_tells_the_same() {
    let hello = Hello::tls13().record();
    for (bytes, protocol) in [
        (&hello[..], "tls"),
        (b"PROXY TCP4 192.0.2.1 192.0.2.2 5 80\r\n", "proxy"),
        (b"\x05\x02\0\x02", "socks"),
        (b"\x04\x01\0\x50\x7f\0\0\x01me\0", "socks"),
        (b"GET /a HTTP/1.1\r\n", "http/1"),
        (b"FROB /a HTTP/1.1\r\n", "http/1"),
        (b"HTTP/1.1 200 OK\r\n", "http/1"),
        (PREFACE, "h2"),
        (SETTINGS, "h2"),
        (b"\x01\x02\x03\xff\xff\xff", "unknown"),
    ] {
        assert_eq!(stream(bytes, Start::Beginning, false), protocol);
        for cut in 1..bytes.len() {
            let early = stream(&bytes[..cut], Start::Beginning, false);
            assert!(early == "more" || early == protocol, "{protocol}: {early} after {cut} bytes");
        }
    }
}

#[test]
fn what_is_still_too_short_when_no_more_comes_is_unknown() {
    assert_eq!((stream(b"GET", Start::Beginning, false), stream(b"GET", Start::Beginning, true)), ("more", "unknown"));
}

#[test]
fn records_and_frames_begin_a_connection_only_where_its_beginning_is_missing() {
    let record = [&[23, 3, 3, 0, 100][..], &[0xda; 100]].concat();
    assert_eq!(
        (stream(&record, Start::Beginning, false), stream(&record, Start::Midstream, false)),
        ("unknown", "tls")
    );
    let frame = b"\0\0\x04\x08\0\0\0\0\0\0\0\xff\xff";
    assert_eq!((stream(frame, Start::Beginning, false), stream(frame, Start::Gap, false)), ("unknown", "h2"));
}

#[test]
fn what_a_packet_says_tells_who_sent_it() {
    let sender = |bytes: &[u8]| likely_sender(Carrier::Stream, bytes);
    let hello = Hello::tls13().record();
    let mut answer = hello.clone();
    answer[5] = 2;
    for client in [&hello[..], b"GET / HTTP/1.1\r\n", b"PROPFIND /dav", PREFACE] {
        assert_eq!(sender(client), Some(Side::Client), "{}", client.escape_ascii());
    }
    for server in [&answer[..], b"HTTP/1.1 200 OK\r\n"] {
        assert_eq!(sender(server), Some(Side::Server), "{}", server.escape_ascii());
    }
    // What begins a connection is not looked for in the middle of one: SOCKS is three bytes.
    for nobody in [b"\x05\x01\0".as_slice(), b"", b"\x17\x03\x03\0\x10", b"220 mail SMTP\r\n"] {
        assert_eq!(sender(nobody), None, "{}", nobody.escape_ascii());
    }
}

#[test]
fn what_is_spoken_does_not_change_without_end() {
    let talk = Talk::new().client("PROXY UNKNOWN\r\n".repeat(5000));
    let found = talk.server("hi").exchanges();
    assert_eq!(found.iter().filter(|e| e.protocol == "proxy").count(), 8);
    assert_eq!(found.last().map(|e| (e.protocol, e.response.bytes)), Some(("unknown", 2)));
}

#[test]
fn a_packet_of_something_unknown_is_asked_of_the_few_rows_that_may_begin_there() {
    let rows = |start| later(Carrier::Stream, start).len();
    assert_eq!([rows(Start::Beginning), rows(Start::Midstream)], [3, 28]);
}

#[test]
fn a_header_block_of_http_2_tells_who_sent_it() {
    let headers = |first: u8| [&[0, 0, 0, 4, 1, 0, 0, 0, 0][..], &[0, 0, 2, 1, 4, 0, 0, 0, 7], &[first, 0xbe]].concat();
    let sender = |first: u8| likely_sender(Carrier::Stream, &headers(first));
    assert_eq!(sender(0x83), Some(Side::Client)); // :method: POST
    assert_eq!(sender(0x88), Some(Side::Server)); // :status: 200
    assert_eq!(sender(0x48), Some(Side::Server)); // :status: another one
    assert_eq!(sender(0xbf), None); // what was said before
}

proptest! {
    /// Whom one asks first changes nothing: the row is the first that fits, if it may begin there.
    #[test]
    fn asking_few_rows_finds_what_asking_all_finds(start in select(&Start::ALL[..]), which in 0..6_usize, cut in 0..40_usize, tail in any::<[u8; 8]>()) {
        let hello = Hello::tls13().record();
        let begun = [&hello[..], PREFACE, SETTINGS, b"HTTP/1.1 200 OK\\r\\n", b"\\x05\\x01\\0", b"0\\x0c\\x02\\x01\\x01\\x60\\x07"];
        let packet = [&begun[which][..cut.min(begun[which].len())], &tail].concat();
        for carrier in [Carrier::Stream, Carrier::Datagrams] {
            let first = match judge(carrier, &packet, start, carrier == Carrier::Datagrams) {
                Judgement::Row(row) => Some(row).filter(|row| row.later.applies(start)),
                Judgement::None | Judgement::More => None,
            };
            let found = judge_later(carrier, &packet, start);
            assert_eq!(found.map(std::ptr::from_ref), first.map(std::ptr::from_ref));
        }
    }
}
