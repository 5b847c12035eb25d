use super::talk::{Talk, short};
use crate::stream::Side;

const GET: &str = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";
const OK5: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
const V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x7f\0\0\x01\x7f\0\0\x01\xd4\x31\0\x50";

#[test]
fn a_proxy_header_is_followed_by_http_in_the_same_packet() {
    for header in ["PROXY TCP4 192.0.2.1 192.0.2.2 5 80\r\n".as_bytes(), b"PROXY UNKNOWN\r\n", V2] {
        let mut talk = Talk::new().client([header, GET.as_bytes()].concat()).server(OK5);
        let found = talk.finish();
        assert_eq!(talk.conversation.app(), Some("http/1.1"));
        let [proxy, http] = &found[..] else { panic!("{}", found.len()) };
        assert_eq!((proxy.protocol, proxy.inferred, proxy.response.first), ("proxy", false, None));
        assert_eq!(short(proxy.request), (Some(1), Some(1), header.len() as u64, true));
        assert_eq!((http.number, http.method.as_deref(), http.status), (1, Some("GET"), Some(200)));
    }
}

#[test]
fn a_proxy_header_may_come_in_pieces_and_after_the_servers_greeting() {
    let mut talk = Talk::new().client("PROXY TCP4 192.0.2.1 ").server("220 hi\r\n").client("192.0.2.2 5 25\r\n");
    talk = talk.client("EHLO x\r\n").server("250 ok\r\n");
    let found = talk.exchanges();
    assert_eq!((found[0].protocol, short(found[0].request)), ("proxy", (Some(1), Some(3), 37, true)));
    assert_eq!((found[1].request.first, short(found[1].response).0), (None, Some(2)));
    assert_eq!(short(found[2].request).0, Some(4));
}

#[test]
fn socks5_leads_to_http_and_names_its_target() {
    let talk = Talk::new().client(b"\x05\x02\0\x02").server(b"\x05\x02").client(b"\x01\x01u\x02pw").server(b"\x01\0");
    let talk = talk.client(b"\x05\x01\0\x03\x06origin\x01\xbb").server(b"\x05\0\0\x01\0\0\0\0\0\0");
    let mut talk = talk.client(GET).server(OK5);
    let found = talk.finish();
    assert_eq!(talk.conversation.app(), Some("http/1.1"));
    assert_eq!(found.iter().map(|e| e.protocol).collect::<Vec<_>>(), ["socks", "socks", "socks", "http/1.1"]);
    assert_eq!(found[2].host.as_deref(), Some("origin:443"));
    assert_eq!(
        (short(found[2].request), short(found[2].response)),
        ((Some(5), Some(5), 13, true), (Some(6), Some(6), 10, true))
    );
    assert!(found.iter().all(|e| !e.inferred));
}

#[test]
fn socks5_that_does_not_wait_for_answers_is_understood() {
    let ahead = [b"\x05\x01\0\x05\x01\0\x01\x7f\0\0\x01\0\x50", GET.as_bytes()].concat();
    let found = Talk::new().client(ahead).server(b"\x05\0\x05\0\0\x01\0\0\0\0\0\0").server(OK5).exchanges();
    assert_eq!(found.iter().map(|e| e.protocol).collect::<Vec<_>>(), ["socks", "socks", "http/1.1"]);
    assert_eq!((found[1].host.as_deref(), found[2].status), (Some("127.0.0.1:80"), Some(200)));
    assert_eq!(short(found[2].request), (Some(1), Some(1), GET.len() as u64, true));
}

#[test]
fn socks4_and_4a_lead_to_http() {
    for (request, target) in [
        (&b"\x04\x01\0\x50\x7f\0\0\x01me\0"[..], "127.0.0.1:80"),
        (b"\x04\x01\x1f\x90\0\0\0\x01\0origin.example\0", "origin.example:8080"),
    ] {
        let found = Talk::new().client(request).server(b"\0\x5a\0\0\0\0\0\0").client(GET).server(OK5).exchanges();
        assert_eq!((found[0].protocol, found[0].host.as_deref()), ("socks", Some(target)));
        assert_eq!((found[1].method.as_deref(), found[1].status), (Some("GET"), Some(200)));
    }
}

#[test]
fn what_only_begins_like_socks_is_read_as_anything_else() {
    let found = Talk::new().client(b"\x05\x01\0").server("HELLO").client("ask").server("answer").exchanges();
    assert_eq!(found.last().map(|e| (e.protocol, e.response.bytes)), Some(("unknown", 6)));
    let found = Talk::new().client(b"\x05\0\x0b\x03").server("x").exchanges();
    assert_eq!(found[0].protocol, "unknown");
    let mut talk = Talk::new().client(b"\x05\x01\0").gap(Side::Server, 2).client("ask").server("answer");
    assert_eq!(talk.finish().iter().map(|e| e.protocol).collect::<Vec<_>>(), ["socks", "unknown", "unknown"]);
}

#[test]
fn a_name_with_control_characters_is_not_socks_however_it_is_cut() {
    let (head, rest) = b"\x04\x02\x39\xb1\x03\x04\x9f\x01\x08\x37\0\0\x0f".split_at(8);
    for cut in 0..=rest.len() {
        let (user, after) = rest.split_at(cut);
        let found = Talk::new().client([head, user].concat()).client(after).exchanges();
        assert_eq!(found.iter().map(|e| e.protocol).collect::<Vec<_>>(), ["unknown"], "{cut}");
    }
}

#[test]
fn what_follows_a_prelude_of_which_bytes_are_missing_is_found() {
    // The request to connect looks like another greeting.
    let talk = Talk::new().client(b"\x05\x01\0").gap(Side::Server, 2).client(b"\x05\x01\0\x01\x7f\0\0\x01\0\x50");
    let mut talk = talk.server(b"\x05\0\0\x01\0\0\0\0\0\0").client(GET).server(OK5);
    let found = talk.finish();
    assert_eq!(found.last().map(|e| (e.protocol, e.status)), Some(("http/1.1", Some(200))));
    assert_eq!(talk.conversation.app(), Some("http/1.1"));
}

#[test]
fn a_proxy_header_names_the_client_that_it_speaks_for() {
    let six = "2001:db8::1";
    let v2 = |command: u8, family: u8, addresses: &[u8]| {
        let length = u16::try_from(addresses.len()).unwrap().to_be_bytes();
        [&V2[..12], &[command, family], &length, addresses].concat()
    };
    let extended = [&[192, 0, 2, 1, 192, 0, 2, 2, 0, 5, 0, 80][..], &[3, 0, 4, 1, 2, 3, 4]].concat();
    let wide = [&std::net::Ipv6Addr::from_bits(0x2001_0db8 << 96 | 1).octets()[..], &[0; 16], &[0, 5, 0, 80]].concat();
    for (header, client) in [
        (b"PROXY TCP4 192.0.2.1 192.0.2.2 5 80\r\n".to_vec(), Some("192.0.2.1")),
        (format!("PROXY TCP6 {six} ::1 5 80\r\n").into_bytes(), Some(six)),
        (b"PROXY UNKNOWN 192.0.2.1 192.0.2.2 5 80\r\n".to_vec(), None),
        (b"PROXY TCP4 ::1 ::1 5 80\r\n".to_vec(), None),
        (b"PROXY TCP4 192.0.2.1 192.0.2.2 70000 80\r\n".to_vec(), None),
        (b"PROXY TCP4 192.0.2.1\r\n".to_vec(), None),
        (v2(0x21, 0x11, &extended), Some("192.0.2.1")),
        (v2(0x21, 0x21, &wide), Some(six)),
        (v2(0x20, 0x11, &extended), None),
        (v2(0x21, 0x31, &[0; 216]), None),
        (v2(0x21, 0x11, &[192, 0, 2, 1]), None),
        (v2(0x21, 0, &[]), None),
    ] {
        let mut talk = Talk::new().client(&header).client(GET).server(OK5);
        assert_eq!(talk.finish().len(), 2, "{header:?}");
        let named = talk.conversation.announced().map(|client| (client.ip.to_string(), client.port));
        assert_eq!(named, client.map(|ip| (ip.to_owned(), 5)), "{header:?}");
    }
}

#[test]
fn of_two_proxy_headers_the_first_names_the_client() {
    let headers = "PROXY TCP4 192.0.2.1 192.0.2.2 5 80\r\nPROXY TCP4 192.0.2.3 192.0.2.4 6 80\r\n";
    let mut talk = Talk::new().client([headers, GET].concat()).server(OK5);
    talk.finish();
    assert_eq!(talk.conversation.announced().map(|client| client.port), Some(5));
}
