//! Messages as drivers and mongod send them, conversations made of them, and laws.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation, clippy::cast_possible_wrap)]

use proptest::prelude::*;

use super::*;
use crate::exchange::ledger::GUESSED;
use crate::exchange::reader::{Carrier, Start};
use crate::exchange::sniffers::{Judgement, judge};
use crate::exchange::tests::talk::{Talk, however_tcp_cut_it, moment, short};
use crate::exchange::{Conversation, Exchange, likely_sender};
use crate::stream::Chunk;

fn document(elements: &[Vec<u8>]) -> Vec<u8> {
    let contents = elements.concat();
    [&(contents.len() as i32 + 5).to_le_bytes()[..], &contents, &[0]].concat()
}

fn element(kind: u8, name: &str, value: impl AsRef<[u8]>) -> Vec<u8> {
    [&[kind][..], name.as_bytes(), &[0], value.as_ref()].concat()
}

fn text(name: &str, value: &str) -> Vec<u8> {
    element(2, name, [&(value.len() as i32 + 1).to_le_bytes()[..], value.as_bytes(), &[0]].concat())
}

fn number(name: &str, value: i32) -> Vec<u8> {
    element(16, name, value.to_le_bytes())
}

fn double(name: &str, value: f64) -> Vec<u8> {
    element(1, name, value.to_le_bytes())
}

fn long(name: &str, value: i64) -> Vec<u8> {
    element(18, name, value.to_le_bytes())
}

fn inner(name: &str, elements: &[Vec<u8>]) -> Vec<u8> {
    element(3, name, document(elements))
}

fn array(name: &str, documents: &[Vec<u8>]) -> Vec<u8> {
    let entries: Vec<_> =
        documents.iter().enumerate().map(|(nth, entry)| element(3, &nth.to_string(), entry)).collect();
    element(4, name, document(&entries))
}

fn message(code: i32, id: u32, response_to: u32, body: &[u8]) -> Vec<u8> {
    let words = [body.len() as u32 + 16, id, response_to, code.cast_unsigned()];
    [&words.map(u32::to_le_bytes).concat()[..], body].concat()
}

fn msg(flags: u32, id: u32, response_to: u32, sections: &[u8]) -> Vec<u8> {
    message(2013, id, response_to, &[&flags.to_le_bytes()[..], sections].concat())
}

fn body(elements: &[Vec<u8>]) -> Vec<u8> {
    [&[0][..], &document(elements)].concat()
}

fn sequence(name: &str, documents: &[Vec<u8>]) -> Vec<u8> {
    let contents = [name.as_bytes(), &[0], &documents.concat()].concat();
    [&[1][..], &(contents.len() as i32 + 4).to_le_bytes(), &contents].concat()
}

fn shop_command(id: u32, elements: &[Vec<u8>]) -> Vec<u8> {
    msg(0, id, 0, &body(&[elements, &[text("$db", "shop")]].concat()))
}

fn find(id: u32, filter: &[Vec<u8>]) -> Vec<u8> {
    shop_command(id, &[text("find", "items"), inner("filter", filter)])
}

fn get_more(id: u32, cursor: i64) -> Vec<u8> {
    shop_command(id, &[long("getMore", cursor), text("collection", "items")])
}

fn done(response_to: u32) -> Vec<u8> {
    msg(0, 1000 + response_to, response_to, &body(&[double("ok", 1.0)]))
}

fn batch(id: u32, response_to: u32, flags: u32, cursor: i64) -> Vec<u8> {
    let batch = [array("firstBatch", &[document(&[text("sku", "hunter2")])]), long("id", cursor)];
    msg(flags, id, response_to, &body(&[inner("cursor", &batch), double("ok", 1.0)]))
}

fn failed(response_to: u32, code: i32) -> Vec<u8> {
    let elements = [double("ok", 0.0), text("errmsg", "no hunter2"), number("code", code)];
    msg(0, 77, response_to, &body(&elements))
}

type Row = (Option<String>, Option<String>, Option<u32>);

fn rows(exchanges: &[Exchange]) -> Vec<Row> {
    let text = |text: Option<&str>| text.map(Into::into);
    exchanges.iter().map(|e| (text(e.method.as_deref()), text(e.target.as_deref()), e.status)).collect()
}

fn row(method: &str, target: &str, status: impl Into<Option<u32>>) -> Row {
    (
        Some(method).filter(|text| !text.is_empty()).map(Into::into),
        Some(target).filter(|text| !text.is_empty()).map(Into::into),
        status.into(),
    )
}

fn answered(exchanges: &[Exchange]) -> Vec<Option<u64>> {
    exchanges.iter().map(|e| short(e.response).0).collect()
}

#[test]
fn commands_are_exchanges_and_replies_come_in_any_order() {
    let talk =
        Talk::new().client([find(7, &[text("sku", "a")]), find(8, &[])].concat()).client(find(9, &[number("n", 1)]));
    let talk = talk.server(failed(9, 11600)).server([batch(70, 7, 0, 0), done(8)].concat());
    assert_eq!(talk.conversation.app(), Some(PROTOCOL));
    let found = talk.exchanges();
    let expected =
        [row("find", "shop.items {sku}", 0), row("find", "shop.items", 0), row("find", "shop.items {n}", 11600)];
    assert_eq!(rows(&found), expected);
    assert_eq!(answered(&found), [Some(4), Some(4), Some(3)]);
    assert!(found.iter().all(|e| e.response.done && !e.inferred && e.confidence == 1.0));
}

#[test]
fn the_shell_counts_from_zero() {
    let found = Talk::new().client(find(0, &[])).server(done(0)).client(find(1, &[])).server(done(1)).exchanges();
    assert_eq!((rows(&found), answered(&found)), (vec![row("find", "shop.items", 0); 2], vec![Some(2), Some(4)]));
}

#[test]
fn names_of_fields_are_told_and_no_value() {
    let secret = || text("x", "hunter2");
    let price = inner("price", &[number("$gt", 3), number("$lt", 9)]);
    let many: Vec<_> = (0..40).map(|n| number(&format!("field{n}"), n)).collect();
    let pipeline = [inner("$match", &[text("sku", "hunter2"), price.clone()]), inner("$group", &[secret()])];
    let pipeline = pipeline.map(|stage| document(&[stage]));
    let write = |filter: &str| document(&[inner("q", &[text(filter, "hunter2")]), inner("u", &[secret()])]);
    for (elements, sections, method, target) in [
        (
            vec![text("find", "items"), inner("filter", &[text("sku", "hunter2"), price])],
            vec![],
            "find",
            "shop.items {sku, price.$gt}",
        ),
        (
            vec![text("aggregate", "items"), array("pipeline", &pipeline)],
            vec![],
            "aggregate",
            "shop.items [$match {sku, price.$gt}, $group]",
        ),
        (vec![text("count", "items"), inner("query", &[text("sku", "hunter2")])], vec![], "count", "shop.items {sku}"),
        (vec![text("update", "items"), array("updates", &[write("sku")])], vec![], "update", "shop.items {sku}"),
        (vec![text("delete", "items")], sequence("deletes", &[write("_id")]), "delete", "shop.items {_id}"),
        (vec![text("insert", "items")], sequence("documents", &[document(&[secret()])]), "insert", "shop.items"),
        (
            vec![number("saslStart", 1), text("mechanism", "PLAIN"), element(5, "payload", b"\x07\0\0\0\0hunter2")],
            vec![],
            "saslStart",
            "shop",
        ),
        (vec![text("createUser", "hunter2"), text("pwd", "hunter2")], vec![], "createUser", "shop"),
        (
            vec![text("find", "items"), inner("filter", &many)],
            vec![],
            "find",
            "shop.items {field0, field1, field2, field3, field4, field5, field6, field7, field8, field9, field10, field11, …}",
        ),
    ] {
        let elements = [&elements[..], &[text("$db", "shop")]].concat();
        let found = Talk::new().client(msg(0, 5, 0, &[body(&elements), sections].concat())).server(done(5)).exchanges();
        assert_eq!(rows(&found), [row(method, target, 0)]);
        assert!(!format!("{found:?}").contains("hunter2"));
    }
}

#[test]
fn what_is_no_name_of_a_command_is_not_told() {
    let found = Talk::new().client(shop_command(1, &[number("hunter 2", 1)])).server(done(1)).exchanges();
    assert_eq!(rows(&found), [row("OP_MSG", "", 0)]);
}

#[test]
fn a_sequence_may_come_first_and_be_longer_than_what_is_looked_at() {
    let insert = body(&[text("insert", "items"), text("$db", "shop")]);
    for (documents, target) in [(2, "shop.items"), (2000, "")] {
        let documents = vec![document(&[text("sku", "hunter2")]); documents];
        let found = Talk::new().client(msg(0, 1, 0, &[sequence("documents", &documents), insert.clone()].concat()));
        assert_eq!(rows(&found.server(done(1)).exchanges()), [row("insert", target, 0)]);
    }
    // A filter that is too long hides the database, which drivers write behind it.
    let list: Vec<_> = (0..2000).map(|_| text("", "hunter2")).collect();
    let found = Talk::new().client(find(1, &[inner("sku", &[element(4, "$in", document(&list))])])).server(done(1));
    assert_eq!(rows(&found.exchanges()), [row("find", "items {sku.$in}", 0)]);
}

#[test]
fn errors_are_told_by_their_code() {
    let ok = double("ok", 1.0);
    let write = document(&[number("index", 0), number("code", 11000), text("errmsg", "hunter2")]);
    let concern = inner("writeConcernError", &[number("code", 64)]);
    for (elements, status) in [
        (vec![ok.clone()], 0),
        (vec![number("ok", 1)], 0),
        (vec![double("ok", 0.0), text("errmsg", "x"), number("code", 59)], 59),
        (vec![double("ok", 0.0), text("errmsg", "no such cmd")], 8),
        (vec![number("n", 0), array("writeErrors", &[write]), ok.clone()], 11000),
        (vec![number("n", 1), concern, ok.clone()], 64),
        (vec![inner("value", &[number("ok", 0), number("code", 9)]), ok], 0),
    ] {
        let found = Talk::new().client(find(1, &[])).server(msg(0, 2, 1, &body(&elements))).exchanges();
        assert_eq!(found[0].status, Some(status), "{elements:?}");
    }
    // Of a long reply, the beginning says that there is none.
    let long = batch(2, 1, 0, 0);
    let padded = msg(0, 2, 1, &body(&[inner("cursor", &[text("x", &"y".repeat(100_000))]), double("ok", 1.0)]));
    for reply in [long, padded] {
        let found = Talk::new().client(find(1, &[])).server(&reply[..20]).server(&reply[20..]).exchanges();
        assert_eq!(
            (found[0].status, short(found[0].response)),
            (Some(0), (Some(2), Some(3), reply.len() as u64, true))
        );
    }
}

#[test]
fn nobody_answers_what_has_more_to_come() {
    let insert =
        [body(&[text("insert", "items"), text("$db", "shop")]), sequence("documents", &[document(&[])])].concat();
    let found = Talk::new().client([msg(2, 1, 0, &insert), find(2, &[])].concat()).server(done(2)).exchanges();
    assert_eq!((answered(&found), found[0].ended), (vec![None, Some(2)], Some(moment(1))));
    let full = |behind: &[u8]| [&[0; 4][..], b"shop.items\0", behind].concat();
    let old = [
        message(2002, 3, 0, &full(&document(&[]))),
        message(2006, 4, 0, &full(&[&[0; 4][..], &document(&[])].concat())),
    ];
    let found = Talk::new().client([&old.concat()[..], &find(5, &[])].concat()).server(done(5)).exchanges();
    assert_eq!(
        rows(&found),
        [row("OP_INSERT", "shop.items", None), row("OP_DELETE", "shop.items", None), row("find", "shop.items", 0)]
    );
    assert!(found[..2].iter().all(|e| e.ended == Some(moment(1))));
}

#[test]
fn an_exhaust_cursor_is_one_response() {
    // Each reply says that it answers the one before.
    let talk = Talk::new().client(msg(
        1 << 16,
        5,
        0,
        &body(&[long("getMore", 9), text("collection", "items"), text("$db", "shop")]),
    ));
    let talk = talk.server(batch(50, 5, 2, 9)).server(batch(51, 50, 2, 9)).server(batch(52, 51, 0, 0));
    let found = talk.client(find(6, &[])).server(done(6)).exchanges();
    assert_eq!(rows(&found), [row("getMore", "shop.items", 0), row("find", "shop.items", 0)]);
    let bytes = 3 * batch(50, 5, 2, 9).len() as u64;
    assert_eq!(short(found[0].response), (Some(2), Some(4), bytes, true));
}

#[test]
fn what_waits_for_an_event_waits_for_nobody() {
    let hello = |id, elements: &[Vec<u8>]| {
        msg(1 << 16, id, 0, &body(&[&[number("hello", 1)], elements, &[text("$db", "admin")]].concat()))
    };
    let watch = hello(2, &[inner("topologyVersion", &[long("counter", 6)]), long("maxAwaitTimeMS", 10_000)]);
    let ok = |id, to, flags| msg(flags, id, to, &body(&[double("ok", 1.0)]));
    let talk = Talk::new().client(hello(1, &[])).server(ok(10, 1, 0)).client(watch);
    let found = talk.server(ok(11, 2, 2)).server(ok(12, 11, 2)).server(ok(13, 12, 2)).exchanges();
    assert_eq!(answered(&found), [Some(2), Some(4), Some(5), Some(6)]);
    let awaits: Vec<_> = found.iter().map(|e| (e.awaits_event, e.request.first.is_some(), e.response.done)).collect();
    assert_eq!(awaits, [(false, true, true), (true, true, true), (false, false, true), (false, false, true)]);
    assert!(found.iter().all(|e| e.method.as_deref() == Some("hello")));

    // A cursor that is tailed, with a limit and without, and one that is not.
    let tail = shop_command(1, &[text("find", "items"), element(8, "tailable", [1]), element(8, "awaitData", [1])]);
    let changes =
        shop_command(1, &[text("aggregate", "items"), array("pipeline", &[document(&[inner("$changeStream", &[])])])]);
    for (query, awaits) in [(tail, true), (changes, true), (find(1, &[]), false)] {
        let talk =
            Talk::new().client(query).server(batch(9, 1, 0, 44)).client(get_more(2, 44)).server(batch(10, 2, 0, 44));
        let found = talk.client(get_more(3, 45)).server(done(3)).exchanges();
        assert_eq!(found.iter().map(|e| e.awaits_event).collect::<Vec<_>>(), [false, awaits, false]);
    }
    let limited = shop_command(3, &[long("getMore", 4), text("collection", "items"), number("maxTimeMS", 500)]);
    assert!(Talk::new().client(limited).server(done(3)).exchanges()[0].awaits_event);
}

fn op_query(id: u32, full: &str, flags: u32, query: &[Vec<u8>]) -> Vec<u8> {
    let body = [&flags.to_le_bytes()[..], full.as_bytes(), &[0; 9], &document(query)].concat();
    message(2004, id, 0, &body)
}

fn op_reply(response_to: u32, flags: u32, cursor: i64, documents: &[Vec<u8>]) -> Vec<u8> {
    let count = (documents.len() as u32).to_le_bytes();
    message(
        1,
        99,
        response_to,
        &[&flags.to_le_bytes()[..], &cursor.to_le_bytes(), &[0; 4], &count, &documents.concat()].concat(),
    )
}

#[test]
fn old_drivers_are_understood() {
    let hello = op_query(1, "admin.$cmd", 4, &[number("isMaster", 1), inner("client", &[text("name", "hunter2")])]);
    let wrapped =
        op_query(2, "shop.$cmd", 0, &[inner("$query", &[text("count", "items")]), inner("$readPreference", &[])]);
    let stored = document(&[double("ok", 0.0), number("code", 5)]);
    let more = message(2005, 4, 0, &[&[0; 4][..], b"shop.items\0", &[0; 4], &44_i64.to_le_bytes()].concat());
    let talk = Talk::new().client(hello).server(op_reply(1, 8, 0, &[document(&[double("ok", 1.0)])]));
    let talk = talk.client(wrapped).server(op_reply(2, 0, 0, &[document(&[double("ok", 0.0), number("code", 13)])]));
    let talk = talk.client(op_query(3, "shop.items", 0x22, &[])).server(op_reply(3, 0, 44, &[stored]));
    let talk = talk.client(more).server(op_reply(4, 1, 0, &[]));
    let error = document(&[text("$err", "hunter2"), number("code", 17287)]);
    let found = talk.client(op_query(5, "shop.items", 0, &[])).server(op_reply(5, 2, 0, &[error])).exchanges();
    assert_eq!(
        rows(&found),
        [
            row("isMaster", "admin", 0),
            row("count", "shop.items", 13),
            row("OP_QUERY", "shop.items", 0),
            row("OP_GET_MORE", "shop.items", 43),
            row("OP_QUERY", "shop.items", 17287),
        ]
    );
    assert!(found[3].awaits_event && !format!("{found:?}").contains("hunter2"));
    // Shells of 3.2 to 3.4.
    let command =
        message(2010, 7, 0, &[b"shop\0find\0", &document(&[])[..], &document(&[text("find", "items")])].concat());
    let reply = message(2011, 70, 7, &[document(&[double("ok", 0.0), number("code", 9)]), document(&[])].concat());
    let found = Talk::new().client(command).server(reply).exchanges();
    assert_eq!(rows(&found), [row("find", "shop.items", 9)]);
}

#[test]
fn of_what_is_compressed_the_header_is_read() {
    let sealed =
        |id, to| message(2012, id, to, &[&2013_u32.to_le_bytes()[..], &[100, 0, 0, 0, 2], &[0xda; 40]].concat());
    let talk = Talk::new().client([sealed(1, 0), sealed(2, 0)].concat()).server(sealed(50, 2)).server(sealed(51, 1));
    let found = talk.exchanges();
    assert_eq!((rows(&found), answered(&found)), (vec![row("OP_MSG", "", None); 2], vec![Some(3), Some(2)]));
}

#[test]
fn a_checksum_changes_nothing() {
    let sections = [body(&[text("find", "items"), text("$db", "shop")]), vec![0, 9, 0, 0]].concat();
    let found = Talk::new().client(msg(1, 1, 0, &sections)).server(done(1)).exchanges();
    assert_eq!(rows(&found), [row("find", "shop.items", 0)]);
}

#[test]
fn a_connection_joined_midway_is_found_by_either_side() {
    let found = Talk::midstream().client(&find(7, &[])[20..]).server(done(6)).client(find(8, &[])).server(done(8));
    let found = found.exchanges();
    let read: Vec<_> = found.iter().filter(|e| e.protocol == PROTOCOL).collect();
    assert_eq!(read.last().map(|e| (e.method.as_deref(), e.response.done)), Some((Some("find"), true)));
    assert_eq!(likely_sender(Carrier::Stream, &find(7, &[])), Some(Side::Client));
    assert_eq!(likely_sender(Carrier::Stream, &done(7)), Some(Side::Server));
    assert_eq!(
        likely_sender(Carrier::Stream, &op_reply(7, 8, 0, &[document(&[double("ok", 1.0)])])),
        Some(Side::Server)
    );
}

#[test]
fn missing_bytes_cost_only_what_they_may_hide() {
    // Inside a batch: nothing.
    let reply = batch(70, 7, 0, 0);
    let talk = Talk::new().client(find(7, &[])).server(&reply[..30]).gap(Side::Server, reply.len() as u64 - 30);
    let found = talk.client(find(8, &[])).server(done(8)).exchanges();
    assert_eq!(answered(&found), [Some(2), Some(5)]);
    assert!(found.iter().all(|e| e.confidence == 1.0));
    // A whole reply: of those under way, any may be it.
    let talk = Talk::new().client([find(7, &[]), find(8, &[])].concat()).gap(Side::Server, 500).server(done(8));
    let found = talk.client(find(9, &[])).server(done(9)).exchanges();
    assert_eq!(answered(&found), [None, Some(3), Some(5)]);
    assert_eq!(found.iter().map(|e| e.confidence).collect::<Vec<_>>(), [GUESSED, GUESSED, 1.0]);
}

#[test]
fn a_message_of_260_or_261_bytes_is_not_socks() {
    for len in [260, 261, 516] {
        let empty = shop_command(0, &[number("hello", 1), text("x", "")]).len();
        let hello = shop_command(0, &[number("hello", 1), text("x", &"y".repeat(len - empty))]);
        assert_eq!(hello.len(), len);
        assert_eq!(Talk::new().client(hello).conversation.app(), Some(PROTOCOL));
    }
}

#[test]
fn every_prefix_of_a_beginning_is_too_short_or_tells_the_same() {
    let compressed = message(2012, 1, 0, &[&2013_u32.to_le_bytes()[..], &[100, 0, 0, 0, 2], &[0xda; 40]].concat());
    for beginning in [find(7, &[]), compressed, op_query(1, "admin.$cmd", 4, &[number("isMaster", 1)])] {
        for cut in 1..beginning.len().min(64) {
            let judged = judge(Carrier::Stream, &beginning[..cut], Start::Beginning, false);
            let fits = matches!(judged, Judgement::More)
                || matches!(judged, Judgement::Row(row) if row.protocol == Some(PROTOCOL));
            assert!(fits, "after {cut} bytes of {}", beginning.escape_ascii());
        }
    }
}

/// Whatever a client and a server say to each other.
fn conversations() -> impl Strategy<Value = Vec<(Side, Vec<u8>)>> {
    let packet = prop_oneof![
        (0..6u32).prop_map(|id| (Side::Client, find(id, &[text("sku", "a")]))),
        (0..6u32).prop_map(|id| (Side::Client, get_more(id, 44))),
        (0..6u32).prop_map(|id| (Side::Client, op_query(id, "shop.$cmd", 0, &[number("isMaster", 1)]))),
        (0..6u32, 0..3u32).prop_map(|(to, flags)| (Side::Server, batch(to + 50, to, flags & 2, 44))),
        (0..60u32).prop_map(|to| (Side::Server, done(to))),
        (0..6u32).prop_map(|to| (Side::Server, failed(to, 59))),
        (0..6u32).prop_map(|to| (Side::Server, op_reply(to, 0, 0, &[document(&[double("ok", 1.0)])]))),
    ];
    let first = Just((Side::Client, op_query(0, "admin.$cmd", 0, &[number("isMaster", 1)])));
    (first, prop::collection::vec(packet, 0..30)).prop_map(|(first, rest)| [vec![first], rest].concat())
}

proptest! {
    #[test]
    fn how_tcp_cuts_the_streams_changes_nothing(messages in conversations(), sizes in prop::collection::vec(1..90usize, 1..20)) {
        let found = however_tcp_cut_it(&messages, &sizes);
        prop_assert!(found.iter().all(|e| e.protocol == PROTOCOL));
    }

    #[test]
    fn arbitrary_documents_never_panic_and_nothing_is_kept_long(
        noise in prop::collection::vec(any::<u8>(), 0..200), code in prop::sample::select(vec![1, 2001, 2004, 2005, 2007, 2010, 2011, 2012, 2013]),
        asks: bool, cut in 0..400usize,
    ) {
        let bytes = message(code, 1, u32::from(!asks), &noise);
        let whole = find(3, &[]);
        let mut conversation = Conversation::new(Carrier::Stream, false, None);
        let from = if asks { Side::Client } else { Side::Server };
        conversation.data(Side::Client, Chunk { bytes: &whole, cut: 0, offset: 0, acked: 0, seen: moment(1) });
        let offset = if asks { whole.len() as u64 } else { 0 };
        let (early, late) = bytes.split_at(cut.min(bytes.len()));
        conversation.data(from, Chunk { bytes: early, cut: 0, offset, acked: 0, seen: moment(2) });
        conversation.data(from, Chunk { bytes: late, cut: 0, offset: offset + early.len() as u64, acked: 0, seen: moment(3) });
        conversation.finish();
        prop_assert!(std::iter::from_fn(|| conversation.next_exchange()).count() <= 3);
    }
}
