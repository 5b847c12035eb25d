use super::talk::{Talk, moment, short};
use crate::exchange::Exchange;
use crate::stream::Side;

const GET: &str = "GET /a?b HTTP/1.1\r\nHost: www.example.com\r\n\r\n";
const OK5: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

#[test]
fn a_request_and_its_response_are_read_from_their_text() {
    let mut talk = Talk::new().client(GET).server(&OK5[..20]).server(&OK5[20..]);
    let [e] = &talk.settled()[..] else { panic!() };
    assert_eq!(short(e.request), (Some(1), Some(1), GET.len() as u64, true));
    assert_eq!(short(e.response), (Some(2), Some(3), OK5.len() as u64, true));
    assert_eq!((e.method.as_deref(), e.target.as_deref()), (Some("GET"), Some("/a?b")));
    assert_eq!((e.host.as_deref(), e.status), (Some("www.example.com"), Some(200)));
    assert_eq!((e.number, e.requester, e.protocol), (0, Side::Client, "http/1.1"));
    assert_eq!((e.client_keepalive, e.server_keepalive), (Some(true), Some(true)));
    assert_eq!((e.inferred, e.confidence), (false, 1.0));
    assert_eq!(talk.conversation.app(), Some("http/1.1"));
    assert_eq!(talk.conversation.earliest_open(), None);
}

#[test]
fn pipelined_requests_get_their_responses_first_in_first_out() {
    let talk = Talk::new()
        .client(format!("{GET}{}", GET.replace("/a", "/second")))
        .server(ok("one"))
        .client(GET.replace("/a", "/third"))
        .server(format!("{}{}", ok("second"), ok("the third")));
    let found = talk.exchanges();
    let lengths: Vec<_> = found.iter().map(|e| e.response.bytes - ok("").len() as u64).collect();
    let targets: Vec<_> = found.iter().map(|e| e.target.as_deref().unwrap()).collect();
    assert_eq!(targets, ["/a?b", "/second?b", "/third?b"]);
    assert_eq!(lengths, [3, 6, 9]);
    assert!(found.iter().all(|e| !e.inferred));
}

#[test]
fn a_response_before_the_second_pipelined_request_is_complete_belongs_to_the_first() {
    let mut talk = Talk::new().client(format!("{GET}{}", &GET[..10])).server(OK5);
    assert_eq!(talk.settled().len(), 1);
    let mut talk = talk.client(&GET[10..]).server(OK5);
    let [e] = &talk.settled()[..] else { panic!() };
    assert_eq!(short(e.request), (Some(1), Some(3), GET.len() as u64, true));
    assert_eq!(short(e.response).0, Some(4));
}

#[test]
fn responses_that_have_no_body_whatever_their_length_says() {
    for (method, head) in [
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n"),
        ("GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5000\r\n\r\n"),
        ("GET", "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ] {
        let talk = Talk::new().client(GET.replace("GET", method)).server(head).client(GET).server(OK5);
        let found = talk.exchanges();
        assert_eq!(found.len(), 2, "{method} {head}");
        assert_eq!(short(found[0].response), (Some(2), Some(2), head.len() as u64, true));
        assert_eq!(short(found[1].response).0, Some(4));
    }
}

#[test]
fn a_chunked_body_ends_after_its_trailers_and_wins_over_content_length() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n";
    let body = "4;name=\"a;b\"\r\nwiki\r\n0A \r\n0123456789\r\n0\r\nExpires: never\r\nX: y\r\n\r\n";
    let talk = Talk::new().client(GET).server(format!("{head}{body}{OK5}")).client(GET);
    let found = talk.exchanges();
    assert_eq!(found[0].response.bytes, (head.len() + body.len()) as u64);
    assert!(found[0].response.done && !found[0].inferred);
    // The second response came before its request: it is an exchange of its own.
    assert_eq!((found[1].request.first, found[1].status), (None, Some(200)));
}

#[test]
fn a_request_may_be_chunked_too() {
    let head = "POST /up HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut talk = Talk::new().client(head).client("3\r\nabc\r\n").client("0\r\n\r\n").server(OK5);
    assert_eq!(short(talk.settled()[0].request), (Some(1), Some(3), head.len() as u64 + 13, true));
}

#[test]
fn a_response_without_a_length_ends_with_the_connection() {
    let head = "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n";
    let mut talk = Talk::new().client("GET / HTTP/1.0\r\n\r\n").server(head).server("some").server("body");
    assert!(talk.settled().is_empty());
    let mut talk = talk.fin(Side::Server);
    let [e] = &talk.settled()[..] else { panic!() };
    assert_eq!(short(e.response), (Some(2), Some(4), head.len() as u64 + 8, true));
    assert_eq!((e.client_keepalive, e.server_keepalive, e.protocol), (Some(false), Some(false), "http/1.0"));
}

#[test]
fn the_lower_version_is_spoken_and_each_message_keeps_the_connection_by_its_own() {
    for (requested, answered, spoken) in
        [("1.1", "1.0", "http/1.0"), ("1.0", "1.1", "http/1.0"), ("1.1", "1.1", "http/1.1"), ("1.0", "1.0", "http/1.0")]
    {
        let answer = OK5.replace("HTTP/1.1", &format!("HTTP/{answered}"));
        let mut talk = Talk::new().client(GET.replace("HTTP/1.1", &format!("HTTP/{requested}"))).server(answer);
        let [e] = &talk.settled()[..] else { panic!() };
        assert_eq!((e.protocol, talk.conversation.app()), (spoken, Some(spoken)), "{requested} {answered}");
        assert_eq!((e.client_keepalive, e.server_keepalive), (Some(requested == "1.1"), Some(answered == "1.1")));
    }
}

#[test]
fn content_lengths_that_contradict_each_other_leave_only_the_connection_to_end_the_body() {
    for (lengths, closed_by_length) in [
        ("Content-Length: 5\r\nContent-Length: 6", false),
        ("Content-Length: 5, 5", true),
        ("Content-Length: 5\r\ncontent-length: 5", true),
        ("Content-Length: five", false),
        ("Content-Length: +5", false),
        ("Content-Length: 99999999999999999999999", false),
        ("Transfer-Encoding: chunked, gzip\r\nContent-Length: 5", false),
    ] {
        let mut talk = Talk::new().client(GET).server(format!("HTTP/1.1 200 OK\r\n{lengths}\r\n\r\nhello"));
        assert_eq!(talk.settled().len(), usize::from(closed_by_length), "{lengths}");
        assert!(talk.fin(Side::Server).exchanges().iter().all(|e| e.response.done));
    }
}

#[test]
fn a_body_cut_off_by_the_end_is_not_done() {
    let found = Talk::new().client(GET).server(&OK5[..OK5.len() - 1]).fin(Side::Server).exchanges();
    assert_eq!(short(found[0].response), (Some(2), Some(2), OK5.len() as u64 - 1, false));
}

#[test]
fn one_hundred_continue_is_not_the_response() {
    let head = "POST /up HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n";
    let talk = Talk::new().client(head).server("HTTP/1.1 100 Continue\r\n\r\n").client("body").server(OK5);
    let found = talk.exchanges();
    assert_eq!(found.len(), 1);
    assert_eq!(short(found[0].request), (Some(1), Some(3), head.len() as u64 + 4, true));
    assert_eq!(short(found[0].response), (Some(4), Some(4), OK5.len() as u64, true));
    assert_eq!(found[0].status, Some(200));
}

#[test]
fn early_hints_in_the_same_packet_are_not_the_response() {
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </s.css>\r\n\r\n";
    let found = Talk::new().client(GET).server(format!("{hints}{OK5}")).exchanges();
    assert_eq!((found[0].status, found[0].response.bytes), (Some(200), OK5.len() as u64));
}

#[test]
fn a_client_refused_its_body_may_ask_again_without_sending_it() {
    let head = "PUT /up HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 900\r\n\r\n";
    let talk = Talk::new().client(head).server(OK5.replace("200 OK", "401 No")).client(GET).server(OK5);
    let found = talk.exchanges();
    assert_eq!(found.iter().map(|e| e.status.unwrap()).collect::<Vec<_>>(), [401, 200]);
    assert_eq!(short(found[0].request), (Some(1), Some(1), head.len() as u64, true));
    assert!(found.iter().all(|e| !e.inferred));
}

#[test]
fn an_early_refusal_keeps_both_messages_of_the_exchange() {
    let head = "POST /up HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n";
    let mut talk = Talk::new().client(head).client("12345").server(OK5.replace("200 OK", "413 Too Large"));
    assert!(talk.settled().is_empty());
    let mut talk = talk.client("67890").client(GET);
    let [e] = &talk.settled()[..] else { panic!() };
    assert_eq!((short(e.request).1, short(e.response).0, e.status), (Some(4), Some(3), Some(413)));
    assert_eq!(talk.conversation.earliest_open(), Some(moment(5)));
}

#[test]
fn keepalive_follows_version_and_connection_tokens() {
    for (version, field, keeps) in [
        ("1.1", "", true),
        ("1.1", "Connection: Foo, CLOSE", false),
        ("1.1", "Connection: keep-alive, close", false),
        ("1.0", "", false),
        ("1.0", "connection: Keep-Alive", true),
        ("1.0", "Proxy-Connection: keep-alive", true),
    ] {
        let request = format!("GET / HTTP/{version}\r\n{field}\r\n\r\n").replace("\r\n\r\n\r\n", "\r\n\r\n");
        let response = format!("HTTP/{version} 200 OK\r\nContent-Length: 0\r\n{field}\r\n\r\n");
        let response = response.replace("\r\n\r\n\r\n", "\r\n\r\n");
        let found = Talk::new().client(&request).server(&response).exchanges();
        assert_eq!(found[0].client_keepalive, Some(keeps), "{request}");
        assert_eq!(found[0].server_keepalive, Some(keeps), "{response}");
    }
}

#[test]
fn the_authority_of_an_absolute_target_overrides_host() {
    let request = "GET http://user:pw@origin.example:8080/p HTTP/1.1\r\nHost: other\r\n\r\n";
    let found = Talk::new().client(request).exchanges();
    assert_eq!(found[0].host.as_deref(), Some("origin.example:8080"));
    assert_eq!(found[0].target.as_deref(), Some("http://user:pw@origin.example:8080/p"));
    let found = Talk::new().client("GET /go?to=http://x/ HTTP/1.1\r\nHost: other\r\n\r\n").exchanges();
    assert_eq!(found[0].host.as_deref(), Some("other"));
}

#[test]
fn hostile_text_is_kept_as_text_and_bounded() {
    let mut request = b"GET /\xff\xfe ".to_vec();
    request.resize(9000, b'x');
    request.extend_from_slice(b" HTTP/1.1\r\nHost: \xc3\x28\r\n\r\n");
    let found = Talk::new().client(request).server(OK5).exchanges();
    assert!(found[0].target.as_deref().unwrap().starts_with("/\u{fffd}\u{fffd} xx"));
    assert!(found[0].target.as_deref().unwrap().len() <= 2048 * 3);
    assert_eq!(found[0].host.as_deref(), Some("\u{fffd}("));
    assert_eq!(found[0].status, Some(200));
}

#[test]
fn line_ends_before_a_request_are_skipped_and_bare_line_feeds_are_enough() {
    let talk = Talk::new()
        .client(GET)
        .server(OK5)
        .client("\r\n")
        .client("\r\nGET /bare HTTP/1.1\nHost: h\n\n")
        .server("HTTP/1.1 200 OK\nContent-Length: 2\n\nok");
    let found = talk.exchanges();
    assert_eq!(short(found[1].request), (Some(4), Some(4), 28, true));
    assert_eq!((found[1].target.as_deref(), found[1].response.done), (Some("/bare"), true));
}

#[test]
fn a_timeout_that_crossed_the_request_does_not_answer_it() {
    let talk = Talk::new().client(GET).server(OK5).client(GET);
    let crossed =
        talk.unacked(Side::Client, GET.len() as u64).server("HTTP/1.1 408 Timeout\r\nContent-Length: 0\r\n\r\n");
    let found = crossed.exchanges();
    assert_eq!(found.iter().map(|e| e.status).collect::<Vec<_>>(), [Some(200), None, Some(408)]);
    assert_eq!((found[1].response.first, found[2].request.first), (None, None));
}

#[test]
fn a_request_that_nobody_answered_is_handed_out_at_the_end() {
    let mut talk = Talk::new().client(GET);
    assert!(talk.settled().is_empty());
    assert_eq!(talk.conversation.earliest_open(), Some(moment(1)));
    let found = talk.finish();
    assert_eq!((found[0].request.done, found[0].response.first, found[0].status), (true, None, None));
    assert_eq!(talk.conversation.earliest_open(), None);
}

#[test]
fn a_server_that_asks_is_the_requester() {
    let found = Talk::new().server(GET).client(OK5).exchanges();
    assert_eq!((found[0].requester, found[0].status), (Side::Server, Some(200)));
    assert_eq!((short(found[0].request).0, short(found[0].response).0), (Some(1), Some(2)));
}

#[test]
fn more_pipelined_requests_than_allowed_push_the_oldest_out() {
    let mut talk = Talk::new();
    for _ in 0..1100 {
        talk = talk.client(GET);
    }
    assert_eq!(talk.settled().len(), 1100 - 1024);
    let found = talk.server(OK5).exchanges();
    assert_eq!((found.len(), found[0].number, found[0].status), (1024, 76, Some(200)));
}

#[test]
fn a_late_first_segment_does_not_end_the_response_before_its_bytes_were_seen() {
    // The head's packet was lost and sent again: frame 9 carries it, frame 3 the body.
    let mut talk = Talk::new().client(GET);
    let (head, body) = OK5.split_at(OK5.len() - 5);
    let chunk = |bytes: &'static str, offset, frame| crate::stream::Chunk {
        bytes: bytes.as_bytes(),
        cut: 0,
        offset,
        acked: GET.len() as u64,
        seen: moment(frame),
    };
    talk.conversation.data(Side::Server, chunk(head, 0, 9));
    talk.conversation.data(Side::Server, chunk(body, head.len() as u64, 3));
    assert_eq!(short(talk.settled()[0].response), (Some(9), Some(9), OK5.len() as u64, true));
}

#[test]
fn until_something_is_answered_the_first_request_names_the_connection() {
    let older = GET.replace("HTTP/1.1", "HTTP/1.0");
    let together = Talk::new().client(format!("{GET}{older}"));
    let apart = Talk::new().client(GET).client(older);
    assert_eq!(together.conversation.app(), Some("http/1.1"));
    assert_eq!(apart.conversation.app(), Some("http/1.1"));
}

#[test]
fn a_method_nobody_knows_is_read_from_a_whole_request_line() {
    let request = "FROBNICATE /x HTTP/1.1\r\nHost: h\r\n\r\n";
    let found = Talk::new().client(&request[..12]).client(&request[12..]).server(OK5).exchanges();
    assert_eq!((found[0].method.as_deref(), found[0].status), (Some("FROBNICATE"), Some(200)));
    assert!(!found[0].inferred);
    let talk = Talk::new().client("NICK someone\r\n").server(":irc 001 someone\r\n");
    assert_eq!(talk.conversation.app(), Some("unknown"));
}

#[test]
fn a_request_line_without_a_target_is_still_a_request() {
    let found = Talk::new().client("OPTIONS HTTP/1.1\r\nHost: h\r\n\r\n").server(OK5).exchanges();
    assert_eq!((found[0].method.as_deref(), found[0].target.as_deref()), (Some("OPTIONS"), None));
    assert_eq!((found[0].status, found[0].inferred), (Some(200), false));
}

#[test]
fn sloppy_request_lines_are_read_as_servers_read_them() {
    for (line, target) in [
        ("GET   /a HTTP/1.1", "/a"),
        ("GET /a HTTP/1.", "/a"),
        ("GET /a b HTTP/1.0.8", "/a b"),
        ("GET /HTTP/1.1", "/HTTP/1.1"),
    ] {
        let found = Talk::new().client(format!("{line}\r\nHost: x\r\n\r\n")).server(OK5).exchanges();
        let [e] = &found[..] else { panic!("{line}: {}", found.len()) };
        assert_eq!(
            (e.method.as_deref(), e.target.as_deref(), e.status),
            (Some("GET"), Some(target), Some(200)),
            "{line}"
        );
    }
}

#[test]
fn heads_tell_where_a_request_came_from() {
    let request = GET.replace("\r\n\r\n", "\r\nX-Forwarded-For: 10.0.0.9\r\nX-Request-ID: 7\r\nVia: 1.1 front\r\n\r\n");
    let response = OK5.replace("\r\n\r\n", "\r\nX-Request-Id: 7\r\nCF-Ray: 9-SJC\r\nVia: 1.1 back\r\n\r\n");
    let found = Talk::new().client(&request[..60]).client(&request[60..]).server(response).exchanges();
    let way = found[0].provenance.as_deref().unwrap();
    assert_eq!((way.forwarded_for(), way.via.as_deref()), (Some("10.0.0.9"), Some("1.1 front")));
    assert_eq!(way.ids, ["x-request-id:7", "cf-ray:9-SJC"]);
    let silent = Talk::new().client(GET).server(OK5).exchanges();
    assert_eq!(silent[0].provenance, None);
}

#[test]
fn heads_name_their_products() {
    let asks = |agent: &str| GET.replace("\r\n\r\n", &format!("\r\nUser-Agent: {agent}\r\n\r\n"));
    let answer = OK5.replace("\r\n\r\n", "\r\nSERVER: nginx/1.22.1\r\nServer: other\r\n\r\n");
    let found = Talk::new().client(asks("curl/7.88.1")).server(answer).exchanges();
    assert_eq!(found[0].user_agent.as_deref(), Some("curl/7.88.1"));
    assert_eq!(found[0].server_software.as_deref(), Some("nginx/1.22.1"));
    let long = Talk::new().client(asks(&"x".repeat(500))).server(OK5).exchanges();
    assert_eq!(long[0].user_agent.as_deref(), Some(&*"x".repeat(128)));
    let silent = Talk::new().client(asks("")).server(OK5).exchanges();
    assert_eq!((silent[0].user_agent.as_deref(), silent[0].server_software.as_deref()), (None, None));
}

#[test]
fn a_body_that_waits_for_100_has_its_moments() {
    let head = "POST /up HTTP/1.1\r\nHost: h\r\nExpect: 100-Continue\r\nContent-Length: 4\r\n\r\n";
    let talk = Talk::new().client(head).server("HTTP/1.1 100 Continue\r\n\r\n").client("bo").client("dy").server(OK5);
    let found = talk.client(GET).server(OK5).exchanges();
    let moments = |e: &Exchange| (e.expects_continue, e.continued, e.request.content);
    assert_eq!(moments(&found[0]), (Some(true), Some(moment(2)), Some(moment(3))));
    assert_eq!(moments(&found[1]), (Some(false), None, None));
    // A client that is tired of waiting, and one whose body rides with its head.
    let found = Talk::new().client(head).client("body").server(OK5).exchanges();
    assert_eq!(moments(&found[0]), (Some(true), None, Some(moment(2))));
    let found = Talk::new().client(format!("{head}body")).server(OK5).exchanges();
    assert_eq!(found[0].request.content, Some(moment(1)));
}

#[test]
fn a_body_whose_first_bytes_are_missing_began_nobody_knows_when() {
    let head = "POST /up HTTP/1.1\r\nHost: h\r\nContent-Length: 8\r\n\r\n";
    let found = Talk::new().client(head).gap(Side::Client, 4).client("body").server(OK5).exchanges();
    assert_eq!((found[0].request.content, found[0].request.done), (None, true));
}

#[test]
fn keep_alive_says_how_long() {
    let timeout = |value: &str| {
        let answer = OK5.replace("\r\n\r\n", &format!("\r\nKeep-Alive: {value}\r\n\r\n"));
        Talk::new().client(GET).server(answer).exchanges()[0].keep_alive_timeout
    };
    assert_eq!(timeout("timeout=5, max=100"), Some(5));
    assert_eq!(timeout("max=100, Timeout = 7"), Some(7));
    assert_eq!(timeout("max=3"), None);
    assert_eq!(timeout("timeout=-1"), None);
    assert_eq!(timeout("timeout=99999999999"), None);
    assert_eq!(Talk::new().client(GET).server(OK5).exchanges()[0].keep_alive_timeout, None);
}
