//! Messages as `ldapsearch` and slapd send them, conversations made of them, and laws.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use proptest::prelude::*;

use super::*;
use crate::exchange::reader::{Carrier, Start};
use crate::exchange::sniffers::{Judgement, judge};
use crate::exchange::statements::Statements;
use crate::exchange::tests::talk::{Talk, moment, short};
use crate::exchange::{Conversation, Exchange};
use crate::stream::Chunk;

fn element(tag: u8, contents: &[u8]) -> Vec<u8> {
    let length = match contents.len() {
        length @ 0..=0x7f => vec![length as u8],
        length => vec![0x82, (length >> 8) as u8, length as u8],
    };
    [&[tag], &length[..], contents].concat()
}

fn message(id: u8, operation: u8, contents: &[Vec<u8>]) -> Vec<u8> {
    let operation = element(operation, &contents.concat());
    element(0x30, &[&[2, 1, id][..], &operation].concat())
}

fn text(text: &str) -> Vec<u8> {
    element(4, text.as_bytes())
}

fn bind(id: u8) -> Vec<u8> {
    message(id, 0x60, &[vec![2, 1, 3], text("cn=reader,dc=example"), element(0x80, b"open sesame")])
}

fn sasl_bind(id: u8) -> Vec<u8> {
    message(id, 0x60, &[vec![2, 1, 3], text(""), element(0xa3, &[text("GSSAPI"), text("ticket")].concat())])
}

fn search(id: u8, filter: &[u8]) -> Vec<u8> {
    let options = vec![10, 1, 2, 10, 1, 0, 2, 1, 0, 2, 1, 0, 1, 1, 0];
    message(id, 0x63, &[text("ou=people,dc=example"), options, filter.to_vec(), element(0x30, &text("cn"))])
}

fn by_name(name: &str) -> Vec<u8> {
    element(0xa3, &[text("cn"), text(name)].concat())
}

fn entry(id: u8) -> Vec<u8> {
    message(id, 0x64, &[text("cn=Anna Alm,ou=people,dc=example"), element(0x30, &[])])
}

/// A response that has a result code.
fn result(id: u8, operation: u8, code: u8) -> Vec<u8> {
    message(id, operation, &[vec![10, 1, code], text(""), text("")])
}

fn start_tls() -> Vec<u8> {
    message(1, 0x77, &[element(0x80, b"1.3.6.1.4.1.1466.20037")])
}

fn unbind(id: u8) -> Vec<u8> {
    message(id, 0x42, &[])
}

type Row = (String, String, Option<u64>, Option<u64>, Option<u32>);

/// Operation, target, frames of request and response, result code.
fn row_of(exchange: &Exchange) -> Row {
    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
    let frames = [exchange.request, exchange.response].map(|span| span.last.map(|moment| moment.frame()));
    (text(exchange.method.as_deref()), text(exchange.target.as_deref()), frames[0], frames[1], exchange.status)
}

fn all(talk: Talk) -> Vec<Row> {
    talk.exchanges().iter().map(row_of).collect()
}

fn row(
    method: &str,
    target: &str,
    request: u64,
    response: impl Into<Option<u64>>,
    code: impl Into<Option<u32>>,
) -> Row {
    (method.into(), target.into(), Some(request).filter(|&frame| frame > 0), response.into(), code.into())
}

const ANNA: &str = "ou=people,dc=example sub (cn=Anna)";

#[test]
fn operations_are_exchanges() {
    let talk = Talk::new().client(bind(1)).server(result(1, 0x61, 0)).client(search(2, &by_name("Anna")));
    let talk = talk.server(entry(2)).server([entry(2), result(2, 0x65, 0)].concat()).client(unbind(3));
    assert_eq!(talk.conversation.app(), Some("ldap"));
    let found = talk.exchanges();
    let expected =
        [row("bind", "cn=reader,dc=example", 1, 2, 0), row("search", ANNA, 3, 5, 0), row("unbind", "", 6, None, None)];
    assert_eq!(found.iter().map(row_of).collect::<Vec<_>>(), expected);
    let bytes = 2 * entry(2).len() + result(2, 0x65, 0).len();
    assert_eq!(short(found[1].response), (Some(4), Some(5), bytes as u64, true));
    assert_eq!((found[1].inferred, found[1].confidence, found[2].ended), (false, 1.0, Some(moment(6))));
}

#[test]
fn answers_come_in_any_order() {
    let talk = Talk::new().client([search(2, &by_name("Anna")), search(3, &by_name("Bo"))].concat());
    let talk = talk.server(entry(2)).server(result(3, 0x65, 32)).server(result(2, 0x65, 0));
    let bo = "ou=people,dc=example sub (cn=Bo)";
    assert_eq!(all(talk), [row("search", ANNA, 1, 4, 0), row("search", bo, 1, 3, 32)]);
}

#[test]
fn targets_say_what_an_operation_is_about() {
    let dn = || text("cn=Bo,dc=example");
    let long = "o=".to_owned() + &"x".repeat(3000);
    for (operation, contents, method, target) in [
        (0x66, vec![dn(), text("values")], "modify", "cn=Bo,dc=example"),
        (0x68, vec![dn(), text("values")], "add", "cn=Bo,dc=example"),
        (0x4a, vec![b"cn=Bo,dc=example".to_vec()], "delete", "cn=Bo,dc=example"),
        (0x6c, vec![dn(), text("cn=Bob")], "modify DN", "cn=Bo,dc=example"),
        (0x6e, vec![dn(), text("cn")], "compare", "cn=Bo,dc=example"),
        (0x77, vec![element(0x80, b"1.3.6.1.4.1.1466.20037")], "extended", "StartTLS"),
        (0x77, vec![element(0x80, b"1.2.3"), element(0x81, b"value")], "extended", "1.2.3"),
        (0x60, vec![vec![2, 1, 3], text(""), element(0x80, b"")], "bind", "\"\""),
        (0x60, vec![vec![2, 1, 3], text(""), element(0xa3, &text("EXTERNAL"))], "bind", "\"\" EXTERNAL"),
        (0x4a, vec![long.clone().into_bytes()], "delete", &(long[..252].to_owned() + "…")),
        (0x4a, vec![b"o=\xff".to_vec()], "delete", "o=\u{fffd}"),
    ] {
        let found = all(Talk::new().client(message(7, operation, &contents)));
        assert_eq!(found, [row(method, target, 1, None, None)]);
    }
}

#[test]
fn filters_are_text() {
    let value = |tag, attribute: &str, value: &str| element(tag, &[text(attribute), text(value)].concat());
    let pieces = |pieces: &[(u8, &str)]| {
        let pieces: Vec<u8> = pieces.iter().flat_map(|(tag, piece)| element(*tag, piece.as_bytes())).collect();
        element(0xa4, &[text("cn"), element(0x30, &pieces)].concat())
    };
    let both = [by_name("Anna"), element(0xa2, &element(0x87, b"mail"))].concat();
    let rule = [element(0x81, b"2.4.6"), element(0x82, b"o"), element(0x83, b"x"), element(0x84, &[255])].concat();
    let deep = (0..100).fold(by_name("Anna"), |inner, _| element(0xa2, &inner));
    for (filter, expected) in [
        (by_name("a*(b)\\\0\u{e5}"), "(cn=a\\2a\\28b\\29\\5c\\00å)"),
        (element(0xa3, &[text("id"), element(4, b"\xff\x01")].concat()), "(id=\\ff\\01)"),
        (element(0xa0, &both), "(&(cn=Anna)(!(mail=*)))"),
        (value(0xa5, "age", "7"), "(age>=7)"),
        (value(0xa6, "age", "7"), "(age<=7)"),
        (value(0xa8, "cn", "Ana"), "(cn~=Ana)"),
        (pieces(&[(0x80, "A"), (0x81, "n"), (0x82, "a")]), "(cn=A*n*a)"),
        (pieces(&[(0x80, "A")]), "(cn=A*)"),
        (pieces(&[(0x82, "a")]), "(cn=*a)"),
        (element(0xa9, &rule), "(o:dn:2.4.6:=x)"),
        (element(0xa9, &element(0x83, b"x")), "(:=x)"),
        (value(0xa3, "userPassword", "open sesame"), "(userPassword=…)"),
        (deep, &("(!".repeat(17) + "…")),
        (by_name(&"x".repeat(3000)), "(cn=…"),
        (vec![0xbf, 0], "(…"),
    ] {
        let found = all(Talk::new().client(search(1, &filter)));
        assert_eq!(found, [row("search", &format!("ou=people,dc=example sub {expected}"), 1, None, None)]);
    }
}

#[test]
fn passwords_are_not_buffered() {
    let request = bind(1);
    let password = request.windows(4).position(|bytes| bytes == b"open").unwrap();
    let mut ldap = Messages::new(&opening(), Ldap::new());
    let mut ledger = Ledger::default();
    for (frame, byte) in (1..).zip(&request[..request.len() - 1]) {
        let chunk = Chunk { bytes: &[*byte], cut: 0, offset: frame - 1, acked: 0, seen: moment(frame) };
        ldap.data(&mut ledger, Side::Client, chunk);
    }
    let buffered = ldap.streams.client.buffered();
    assert_eq!(buffered[..], request[..password - 1]);
}

fn opening() -> Opening<'static> {
    Opening {
        protocol: PROTOCOL,
        requester: Side::Client,
        start: Start::Beginning,
        may_switch: true,
        keys: None,
        depth: 0,
        statements: Statements::default(),
    }
}

#[test]
fn what_is_abandoned_is_over() {
    let talk = Talk::new().client(search(1, &by_name("Anna"))).server(entry(1)).client(message(2, 0x50, &[vec![1]]));
    // RFC 4511 section 4.11: the operation is the message's number, with no tag of its own.
    let mut talk = talk.server(entry(1)).client(bind(3)).server(result(3, 0x61, 49));
    let found = talk.settled();
    let expected = [
        row("search", ANNA, 1, 2, None),
        row("abandon", "", 3, None, None),
        row("bind", "cn=reader,dc=example", 5, 6, 49),
    ];
    assert_eq!(found.iter().map(row_of).collect::<Vec<_>>(), expected);
    assert_eq!(found[0].ended, Some(moment(3)));
}

#[test]
fn a_notice_of_disconnection_answers_nothing() {
    let notice = [vec![10, 1, 52], text(""), text(""), element(0x8a, b"1.3.6.1.4.1.1466.20036")];
    let talk = Talk::new().client(bind(1)).server(message(0, 0x78, &notice));
    let found = all(talk);
    let expected = [row("bind", "cn=reader,dc=example", 1, None, None), row("notification", "", 0, 2, 52)];
    assert_eq!(found, expected);
}

#[test]
fn an_intermediate_response_is_part_of_the_response() {
    let talk = Talk::new().client(search(1, &by_name("Anna"))).server(message(1, 0x79, &[]));
    assert_eq!(all(talk.server(result(1, 0x65, 0))), [row("search", ANNA, 1, 3, 0)]);
}

#[test]
fn answers_without_a_request_are_exchanges_too() {
    let talk = Talk::midstream().server(entry(9)).server([entry(9), result(9, 0x65, 0)].concat()).client(unbind(10));
    assert_eq!(all(talk), [row("search", "", 0, 2, 0), row("unbind", "", 3, None, None)]);
}

#[test]
fn a_number_that_is_used_again_ends_the_operation_before() {
    let mut talk = Talk::new().client(search(1, &by_name("Anna"))).client(bind(1)).server(result(1, 0x61, 0));
    let found = talk.settled();
    assert_eq!((found[0].ended, row_of(&found[1]).4), (Some(moment(2)), Some(0)));
}

const HELLO: &[u8] = b"\x16\x03\x01\x00\x31\x01\x00\x00\x2d\x03\x03\
    \x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\
    \x00\x00\x02\xc0\x2f\x01\x00\x00\x02\x00\x00";

#[test]
fn tls_follows_start_tls() {
    let talk = Talk::new().client(start_tls()).server(result(1, 0x78, 0));
    // However the ClientHello is cut.
    let mut talk = talk.client(&HELLO[..3]).client(&HELLO[3..]);
    assert_eq!(talk.conversation.app(), Some("ldap"));
    assert_eq!(talk.finish().iter().map(row_of).collect::<Vec<_>>(), [row("extended", "StartTLS", 1, 2, 0)]);
    assert!(talk.conversation.next_handshake().is_some());
}

#[test]
fn tls_that_is_refused_does_not_follow() {
    let talk = Talk::new().client(start_tls()).server(result(1, 0x78, 2)).client(bind(2)).server(result(2, 0x61, 0));
    assert_eq!(all(talk)[1], row("bind", "cn=reader,dc=example", 3, 4, 0));
}

#[test]
fn tls_follows_start_tls_though_its_answer_is_missing() {
    let response = result(1, 0x78, 0);
    let mut talk = Talk::new().client(start_tls()).gap(Side::Server, response.len() as u64).client(HELLO);
    let found = talk.finish();
    assert_eq!((row_of(&found[0]), found[0].inferred), (row("extended", "StartTLS", 1, None, None), true));
    assert!(talk.conversation.next_handshake().is_some());
}

#[test]
fn what_a_sasl_layer_seals_is_taken_as_turns() {
    let sealed = b"\0\0\0\x08sealed!!";
    let talk = Talk::new().client(sasl_bind(1)).server(result(1, 0x61, 0)).client(sealed).server(sealed);
    assert_eq!(talk.conversation.app(), Some("ldap"));
    let found = talk.exchanges();
    assert_eq!(row_of(&found[0]), row("bind", "\"\" GSSAPI", 1, 2, 0));
    assert_eq!((row_of(&found[1]), found[1].inferred, found[1].protocol), (row("", "", 3, 4, None), true, "ldap"));
}

#[test]
fn what_nobody_knows_is_passed_over() {
    let request = message(1, 0x7e, &[text("x")]);
    let talk = Talk::new().client(bind(1)).server([result(2, 0x60, 0), result(1, 0x61, 0)].concat()).client(request);
    assert_eq!(
        all(talk.client(unbind(2))),
        [row("bind", "cn=reader,dc=example", 1, 2, 0), row("unbind", "", 4, None, None)]
    );
}

#[test]
fn tls_is_found_again_after_missing_bytes() {
    let mut talk = Talk::new().client(bind(1)).server(result(1, 0x61, 0)).gap(Side::Client, 31).gap(Side::Server, 14);
    talk = talk.client(HELLO);
    assert_eq!(talk.finish().len(), 1);
    assert!(talk.conversation.next_handshake().is_some());
}

#[test]
fn missing_bytes_inside_an_entry_cost_nothing() {
    let (big, rest) = (entry(1), result(1, 0x65, 0));
    let talk = Talk::new().client(search(1, &by_name("Anna"))).server(&big[..20]).gap(Side::Server, 12);
    let mut talk = talk.server(&big[32..]).server(&rest);
    let found = talk.settled();
    assert_eq!((row_of(&found[0]), found[0].inferred), (row("search", ANNA, 1, 5, 0), false));
    assert_eq!(found[0].response.bytes, (big.len() + rest.len()) as u64);
    assert_eq!(talk.unseen(), []);
}

#[test]
fn missing_messages_cast_doubt_and_the_next_one_that_begins_a_packet_is_read() {
    let talk = Talk::new().client([search(1, &by_name("Anna")), search(2, &by_name("Anna"))].concat());
    let talk = talk.server(&entry(1)[..20]).gap(Side::Server, 500).server(b"tail").server(result(2, 0x65, 0));
    let mut talk = talk.client(bind(3)).server(result(3, 0x61, 0));
    let found = talk.finish();
    let doubts: Vec<_> = found.iter().map(|e| (row_of(e).3, row_of(e).4, e.confidence)).collect();
    assert_eq!(doubts, [(Some(2), None, 0.5), (Some(5), Some(0), 0.5), (Some(7), Some(0), 1.0)]);
    assert_eq!(talk.unseen(), [(2, 4)]);
}

#[test]
fn a_snap_length_that_leaves_the_beginning_costs_nothing() {
    let (request, response) = (search(1, &by_name("Anna")), result(1, 0x65, 4));
    let talk = Talk::new().say(Side::Client, &request[..50], request.len() as u32 - 50);
    let talk = talk.say(Side::Server, &response[..12], response.len() as u32 - 12);
    let expected = row("search", "ou=people,dc=example sub (cn=…", 1, 2, 4);
    assert_eq!(all(talk), [expected]);
}

#[test]
fn what_is_incomplete_goes_out_as_it_stands() {
    let mut talk = Talk::new().client(&bind(1)[..40]);
    assert_eq!(talk.conversation.earliest_open(), Some(moment(1)));
    let found = talk.exchanges();
    assert_eq!((row_of(&found[0]), found[0].request.done), (row("bind", "cn=reader,dc=example", 1, None, None), false));
}

#[test]
fn a_beginning_that_says_nothing_is_nothing() {
    let mut talk = Talk::new().client(unbind(1)).client([0x30, 0x20, 2]);
    assert_eq!(talk.finish().len(), 1);
    assert_eq!(talk.conversation.earliest_open(), None);
}

#[test]
fn messages_are_told_from_other_bytes() {
    let judged = |bytes: &[u8], all| match judge(Carrier::Stream, bytes, Start::Midstream, all) {
        Judgement::Row(row) => row.protocol,
        Judgement::None => Some("unknown"),
        Judgement::More => None,
    };
    let active_directory = b"\x30\x84\0\0\0\x10\x02\x01\x01\x65\x84\0\0\0\x07\x0a\x01\0\x04\0\x04\0";
    let with_controls = element(0x30, &[&[2, 1, 1][..], &element(0x4a, b"o=x"), &element(0xa0, &[])].concat());
    for message in [&bind(1)[..], &unbind(2), &start_tls(), &result(5, 0x69, 0), active_directory, &with_controls] {
        assert_eq!(judged(message, true), Some("ldap"));
        for cut in 1..message.len() {
            let early = judged(&message[..cut], false);
            assert!(matches!(early, None | Some("ldap")), "{early:?}: {}", message[..cut].escape_ascii());
        }
    }
    // Of indefinite length; not in an envelope; another tag; a negative number; too long; SNMP.
    for other in [
        &b"\x30\x80\x02\x01\x01\x42\0\0\0"[..],
        b"\x31\x05\x02\x01\x01\x42\0",
        b"\x30\x05\x02\x01\x01\x43\0",
        b"\x30\x05\x02\x01\xff\x42\0",
        b"\x30\x84\xff\xff\xff\xff\x02\x01\x01\x42\0",
        b"\x30\x0d\x02\x01\0\x04\x06public\xa0\0",
        b"\x30\x82abcdefghij",
        b"\x30\x06\x02\x01\x01\x42\0\x31",
    ] {
        assert_eq!(judged(other, true), Some("unknown"), "{}", other.escape_ascii());
    }
}

#[test]
fn no_more_operations_are_remembered_than_that() {
    let mut talk = Ldap::new();
    for id in 0..3000 {
        talk.waiting.push(id, id, Waiting { then: Then::Response, over: false });
        assert!(talk.waiting.iter().count() <= MAX_WAITING);
    }
    let mut endless = Talk::new().client(b"\x30\x84\x0f\xff\xff\xff\x02\x01\x01\x4a\x84\x0f\xff\xff\xf0o=");
    for _ in 0..1000 {
        endless = endless.client([b'x'; 1000]);
    }
    assert!(endless.conversation.held() <= 4 * message::MAX_BEGINNING);
}

/// Whole conversations, one message after the other, and what is said of them.
fn conversation() -> Vec<(Side, Vec<u8>)> {
    let (client, server) = (Side::Client, Side::Server);
    vec![
        (client, bind(1)),
        (server, result(1, 0x61, 0)),
        (client, [search(2, &by_name("Anna")), search(3, &by_name(&"y".repeat(300)))].concat()),
        (server, [entry(3), entry(2), result(3, 0x65, 4), entry(2), result(2, 0x65, 0)].concat()),
        (client, [message(4, 0x68, &[text("o=x"), element(0x30, &[7; 3000])]), unbind(5)].concat()),
        (server, result(4, 0x69, 68)),
    ]
}

proptest! {
    /// Law: how TCP cut the stream never changes what is found.
    #[test]
    fn however_tcp_cut_it(sizes in proptest::collection::vec(1_usize..400, 1..12)) {
        let (mut whole, mut cut, mut sizes) = (Talk::new(), Talk::new(), sizes.into_iter().cycle());
        for (from, bytes) in conversation() {
            whole = whole.say(from, &bytes, 0);
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(sizes.next().unwrap().min(rest.len()));
                cut = cut.say(from, piece, 0);
                rest = after;
            }
        }
        let facts = |talk: Talk| -> Vec<_> {
            talk.exchanges().into_iter().map(|e| {
                let bytes = (e.request.bytes, e.response.bytes, e.request.done, e.response.done);
                (e.method, e.target, e.status, bytes, e.inferred)
            }).collect()
        };
        prop_assert_eq!(facts(cut), facts(whole));
    }

    /// Changed, cut, with gaps: no panic, numbers without holes, no byte twice.
    #[test]
    fn whatever_comes_is_heard_without_panic(
        changes in proptest::collection::vec((0_usize..6, 0_usize..500, any::<u8>()), 0..8),
        pieces in proptest::collection::vec((1_usize..200, 0_u8..8), 1..12),
        midstream: bool,
    ) {
        let mut messages = conversation();
        for (which, at, byte) in changes {
            let bytes = &mut messages[which].1;
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        let mut talk = Talk::on(Conversation::new(Carrier::Stream, midstream, None));
        let (mut pieces, mut sent) = (pieces.into_iter().cycle(), 0);
        for (from, bytes) in messages {
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let (size, what) = pieces.next().unwrap();
                let (piece, after) = rest.split_at(size.min(rest.len()));
                talk = match what {
                    0 => talk.gap(from, piece.len() as u64),
                    1 => talk.say(from, &piece[..piece.len() / 2], (piece.len() - piece.len() / 2) as u32),
                    _ => talk.say(from, piece, 0),
                };
                (rest, sent) = (after, sent + piece.len() as u64);
            }
        }
        let found = talk.finish();
        prop_assert!(found.iter().zip(0..).all(|(exchange, number)| exchange.number == number));
        prop_assert!(found.iter().map(|e| e.request.bytes + e.response.bytes).sum::<u64>() <= sent);
        prop_assert!(talk.conversation.earliest_open().is_none());
    }
}
