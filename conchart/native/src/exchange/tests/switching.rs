use super::talk::{Talk, short};
use crate::stream::Side;
use crate::tls::sniff;

const CONNECT: &str = "CONNECT origin.example:443 HTTP/1.1\r\nHost: origin.example:443\r\n\r\n";
const GRANTED: &str = "HTTP/1.1 200 Connection established\r\n\r\n";
const GET: &str = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";
const OK5: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// A TLS 1.2 record.
fn record(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len()).unwrap().to_be_bytes();
    [&[kind, 3, 3, length[0], length[1]], body].concat()
}

/// A handshake message of TLS 1.2.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&[kind], &length[1..], body].concat()
}

fn client_hello() -> Vec<u8> {
    let body = [&[3, 3][..], &[7; 32], &[0, 0, 2, 0xc0, 0x2f, 1, 0]].concat();
    record(22, &message(1, &body))
}

/// Hello, a certificate, done.
fn server_hello() -> Vec<u8> {
    let hello = message(2, &[&[3, 3][..], &[9; 32], &[0, 0xc0, 0x2f, 0]].concat());
    let certificate = message(11, &[0, 0, 4, 0, 0, 1, 0]);
    record(22, &[hello, certificate, message(14, &[])].concat())
}

fn finished() -> Vec<u8> {
    [record(20, &[1]), record(22, &[0xee; 40])].concat()
}

fn handshake(talk: Talk) -> Talk {
    talk.client(client_hello()).server(server_hello()).client(finished()).server(finished())
}

fn app(length: usize) -> Vec<u8> {
    record(23, &vec![0xaa; length])
}

#[test]
fn tls_records_take_turns() {
    let mut talk = handshake(Talk::new());
    assert_eq!(talk.conversation.app(), Some("tls"));
    talk = talk.client(app(100)).server(app(50)).server(app(60)).client(app(70)).server(app(80)).fin(Side::Server);
    assert!(talk.conversation.next_handshake().is_some());
    let found = talk.exchanges();
    assert_eq!(found.len(), 2);
    assert_eq!(
        (short(found[0].request), short(found[0].response)),
        ((Some(5), Some(5), 100, true), (Some(6), Some(7), 110, true))
    );
    assert_eq!((found[1].protocol, found[1].inferred, found[1].confidence), ("tls", true, 0.9));
    assert!(found[1].response.done);
}

#[test]
fn the_tcp_server_may_be_the_tls_client() {
    let talk = Talk::new().server(client_hello()).client(server_hello()).server(finished()).client(finished());
    let found = talk.server(app(10)).client(app(20)).exchanges();
    assert_eq!((found[0].requester, short(found[0].request).0), (Side::Server, Some(5)));
}

#[test]
fn both_sides_talking_at_once_inside_tls_is_taken_for_http2() {
    let mut talk = handshake(Talk::new()).client(app(10));
    for _ in 0..3 {
        talk = talk.unacked(Side::Server, 0).server(app(20)).unacked(Side::Server, 25).client(app(30));
    }
    let found = talk.exchanges();
    assert_eq!((found[0].protocol, found[0].confidence), ("tls", 0.3));
    assert_eq!((found[3].protocol, found[3].confidence), ("h2", 0.3));
}

#[test]
fn connect_that_is_granted_leads_to_whatever_the_tunnel_carries() {
    let mut talk = handshake(Talk::new().client(CONNECT).server(GRANTED)).client(app(10)).server(app(20));
    assert!(talk.conversation.next_handshake().is_some());
    assert_eq!(talk.conversation.app(), Some("http/1.1"));
    let found = talk.fin(Side::Client).exchanges();
    assert_eq!((found[0].method.as_deref(), found[0].status), (Some("CONNECT"), Some(200)));
    assert_eq!((found[0].host.as_deref(), found[0].response.done), (Some("origin.example:443"), true));
    assert_eq!((found[1].number, found[1].protocol, short(found[1].request).0), (1, "tls", Some(7)));
}

#[test]
fn a_hello_sent_before_connect_was_granted_is_not_lost() {
    let talk = Talk::new().client(CONNECT).client(client_hello()).server(GRANTED).server(server_hello());
    let mut talk = talk.client(finished()).server(finished()).client(app(10)).server(app(20));
    assert!(talk.conversation.next_handshake().is_some());
    assert_eq!(talk.exchanges().len(), 2);
}

#[test]
fn connect_that_is_refused_leaves_an_ordinary_connection() {
    let refused = "HTTP/1.1 407 Authenticate\r\nContent-Length: 3\r\n\r\nno!";
    let mut talk = Talk::new().client(CONNECT).server(refused).client(CONNECT).server(GRANTED).client(GET).server(OK5);
    let found = talk.finish();
    assert_eq!(found.iter().map(|e| e.status.unwrap()).collect::<Vec<_>>(), [407, 200, 200]);
    assert_eq!((found[2].method.as_deref(), found[2].number), (Some("GET"), 2));
}

#[test]
fn requests_pipelined_after_a_refused_connect_are_read() {
    let refused = "HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n";
    let found = Talk::new().client(format!("{CONNECT}{GET}")).server(format!("{refused}{OK5}")).exchanges();
    assert_eq!(found.iter().map(|e| e.status.unwrap()).collect::<Vec<_>>(), [405, 200]);
    assert_eq!(short(found[1].request), (Some(1), Some(1), GET.len() as u64, true));
}

#[test]
fn what_follows_an_upgrade_to_websocket_and_is_none_goes_on_in_turns() {
    let upgrade = "GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    let switched = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\n\r\n";
    let talk =
        Talk::new().client(upgrade).server(format!("{switched}\x03pushed")).client("\x03ask").server("\x03answer");
    let found = talk.exchanges();
    assert_eq!((found[0].status, found[0].response.bytes), (Some(101), switched.len() as u64));
    assert_eq!((found[1].protocol, found[1].request.first, found[1].response.bytes), ("websocket", None, 7));
    assert_eq!((found[2].number, short(found[2].request).0, found[2].inferred), (2, Some(3), true));
}

#[test]
fn an_upgrade_to_something_else_is_unknown() {
    let switched = "HTTP/1.1 101 UPGRADED\r\nUpgrade: tcp\r\n\r\n";
    let found = Talk::new().client(GET).server(switched).client("\x01").server("\x02").exchanges();
    assert_eq!(found[1].protocol, "unknown");
}

#[test]
fn tls_that_begins_after_starttls_is_found() {
    let talk = Talk::new().server("220 mx ESMTP\r\n").client("STARTTLS\r\n").server("220 go\r\n");
    let mut talk = handshake(talk).client(app(10)).server(app(20));
    assert!(talk.conversation.next_handshake().is_some());
    assert_eq!(talk.conversation.app(), Some("tls"));
    let found = talk.exchanges();
    assert_eq!(found.iter().map(|e| e.protocol).collect::<Vec<_>>(), ["smtp", "smtp", "tls"]);
    assert!(found[1].response.done);
}

#[test]
fn the_hello_of_these_tests_is_one() {
    assert_eq!(sniff(&client_hello()), crate::tls::Sniff::Tls);
}

#[test]
fn a_connection_is_named_after_what_was_upgraded_though_only_the_answer_was_captured() {
    let switched = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n";
    let mut talk = Talk::midstream().server(switched).server(b"\0\0\0\x04\0\0\0\0\0");
    talk.finish();
    assert_eq!(talk.conversation.app(), Some("http/1.1"));
}

#[test]
fn a_tunnel_is_named_after_its_connect_though_the_snap_length_cut_the_answer() {
    let mut talk = Talk::new().client(CONNECT).say(Side::Server, &GRANTED.as_bytes()[..24], 15);
    // By the time the tunnel is used, its exchange has been handed out.
    assert_eq!(talk.settled().len(), 1);
    let talk = talk.client(client_hello()).server(server_hello());
    assert_eq!(talk.conversation.app(), Some("http/1.1"));
}
