//! Conversations as clients have them with memcached 1.6, and laws.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use proptest::prelude::*;

use super::*;
use crate::exchange::reader::{Carrier, Start};
use crate::exchange::sniffers::{Judgement, judge};
use crate::exchange::tests::talk::{Talk, however_tcp_cut_it, short};
use crate::exchange::{Conversation, Exchange};

fn rows(exchanges: &[Exchange]) -> Vec<(Option<&str>, Option<&str>, Option<u32>)> {
    exchanges.iter().map(|e| (e.method.as_deref(), e.target.as_deref(), e.status)).collect()
}

/// First frame of each response.
fn answered(exchanges: &[Exchange]) -> Vec<Option<u64>> {
    exchanges.iter().map(|e| short(e.response).0).collect()
}

#[test]
fn a_command_and_its_reply_are_an_exchange() {
    let found = Talk::new().client("set user:1 0 60 7\r\nhunter2\r\n").server("STORED\r\n");
    let found = found.client("get user:1\r\n").server("VALUE user:1 0 7\r\nhunter2\r\nEND\r\n").exchanges();
    assert_eq!(rows(&found), [(Some("set"), Some("user:1"), Some(0)), (Some("get"), Some("user:1"), Some(0))]);
    assert_eq!(short(found[0].request), (Some(1), Some(1), 28, true));
    assert_eq!(short(found[1].response), (Some(4), Some(4), 32, true));
    assert!(found.iter().all(|e| e.confidence == 1.0 && !e.inferred && e.protocol == PROTOCOL));
}

#[test]
fn a_pipeline_is_answered_in_order_and_errors_have_their_number() {
    let talk = Talk::new().client("get a b\r\nincr a 1\r\nnosuch\r\nset c 0 0 1\r\nx\r\ndelete a\r\n");
    let talk = talk.server("VALUE b 0 2\r\n\r\n\r\n").server("END\r\nCLIENT_ERROR cannot\r\nERROR\r\n");
    let found = talk.server("SERVER_ERROR out of memory storing object\r\nNOT_FOUND\r\n").exchanges();
    let (client, other) = (|name, target| (Some(name), Some(target)), (None, None));
    let requests = [client("get", "a"), client("incr", "a"), other, client("set", "c"), client("delete", "a")];
    let status = [0, 2, 1, 3, 0].map(Some);
    let expected: Vec<_> =
        requests.iter().zip(status).map(|(&(method, target), status)| (method, target, status)).collect();
    assert_eq!(rows(&found), expected);
    assert_eq!((short(found[0].response), answered(&found)[3]), ((Some(2), Some(3), 22, true), Some(4)));
    assert!(found.iter().all(|e| e.confidence == 1.0));
    for status in found.iter().filter_map(|e| e.status) {
        assert!(ERRORS.len() > status as usize);
    }
}

#[test]
fn commands_that_want_no_reply_get_none() {
    let sent = "set a 0 0 1 noreply\r\nx\r\nincr n 1 noreply\r\nget a\r\nquit\r\n";
    let found = Talk::new().client(sent).server("VALUE a 0 1\r\nx\r\nEND\r\n").exchanges();
    assert_eq!(answered(&found), [None, None, Some(2), None]);
    assert!(found.iter().all(|e| e.ended.is_some() == e.response.first.is_none()));
}

#[test]
fn quiet_meta_commands_are_silent_up_to_the_next_reply() {
    // A hit, a miss, a hit; stored, and not.
    let talk =
        Talk::new().client("mg a v q O1\r\nmg b v q O2\r\nmg c v q O3\r\nms d 1 q\r\nx\r\nms e 1 q ME\r\nx\r\nmn\r\n");
    let found =
        talk.server("VA 1 O1\r\nx\r\n").server("VA 1 O3\r\nx\r\n").server("NS\r\n").server("MN\r\n").exchanges();
    // NS may answer either `ms`: the first is taken, and doubted.
    assert_eq!(answered(&found), [Some(2), None, Some(3), Some(4), None, Some(5)]);
    assert_eq!(found.iter().map(|e| e.confidence).collect::<Vec<_>>(), [1.0, 1.0, 1.0, GUESSED, 1.0, 1.0]);
    assert!(found.iter().all(|e| e.ended.is_some() == e.response.first.is_none()));
    let found = Talk::new().client("mg a v q k\r\nmg b v q k\r\nmn\r\n").server("VA 1 kb\r\nx\r\nMN\r\n").exchanges();
    assert_eq!(answered(&found), [None, Some(2), Some(2)]);
    assert!(found.iter().all(|e| e.confidence == 1.0));
    // Nothing but hits is said.
    let found = Talk::new().client("mg a q\r\nmg b\r\n").server("EN\r\n").exchanges();
    assert_eq!(answered(&found), [None, Some(2)]);
}

#[test]
fn meta_commands_have_a_reply_each() {
    let talk = Talk::new().client("mg a v\r\nms b 2 T0\r\nhi\r\nmd b\r\nma n v\r\nme a\r\nmn\r\n");
    let found = talk.server("EN\r\nHD\r\nNF\r\nVA 1\r\n5\r\nME a exp=-1 la=2\r\nMN\r\n").exchanges();
    let methods: Vec<_> = found.iter().map(|e| (e.method.as_deref().unwrap(), e.response.bytes)).collect();
    assert_eq!(methods, [("mg", 4), ("ms", 4), ("md", 4), ("ma", 9), ("me", 18), ("mn", 4)]);
    assert!(found.iter().all(|e| e.status == Some(0) && e.response.done && e.confidence == 1.0));
}

#[test]
fn figures_end_with_end_and_are_known_by_their_reply() {
    let found = Talk::new().client("stats\r\n").server("STAT pid 1\r\nSTAT uptime 2\r\n").server("END\r\n").exchanges();
    assert_eq!((rows(&found), short(found[0].response).1), (vec![(Some("stats"), None, Some(0))], Some(3)));
    let other = Talk::new().client("stats\r\n").server("OK 923\r\n---\r\n").exchanges();
    assert!(other.iter().all(|e| e.protocol == "unknown"));
}

#[test]
fn a_log_is_turns() {
    let talk = Talk::new().client("get a\r\n").server("END\r\n").client("watch fetchers\r\n").server("OK\r\n");
    let found = talk.server("ts=1.2 gid=1 type=item_get key=a\n").exchanges();
    assert_eq!(found[1].method.as_deref(), Some("watch"));
    assert_eq!(found[1].status, Some(0));
    assert!(found.iter().skip(2).all(|e| e.inferred) && found.len() == 3);
}

#[test]
fn joined_midway_the_next_command_begins_anew() {
    let talk = Talk::midstream().client("tail of a value\r\n").server("STORED\r\n").client("get k\r\n");
    let found = talk.server("VALUE k 0 1\r\nx\r\nEND\r\n").client("touch k 5\r\n").server("TOUCHED\r\n").exchanges();
    let read: Vec<_> = found.iter().filter_map(|e| Some((e.method.as_deref()?, e.response.bytes))).collect();
    assert_eq!(read, [("get", 21), ("touch", 9)]);
}

#[test]
fn a_reply_to_a_command_that_nobody_saw_is_no_other_commands() {
    let found = Talk::midstream().client("get k\r\n").server("STORED\r\n").server("END\r\n").exchanges();
    assert_eq!(answered(&found), [Some(3), Some(2)]);
    assert_eq!(rows(&found), [(Some("get"), Some("k"), Some(0)), (None, None, Some(0))]);
}

#[test]
fn after_missing_bytes_it_goes_on() {
    let side = Side::Server;
    // Inside a value nothing is lost.
    let talk = Talk::new().client("get k\r\n").server("VALUE k 0 100\r\n").gap(side, 102).server("END\r\n");
    let found = talk.client("get k\r\n").server("END\r\n").exchanges();
    assert_eq!(found.iter().map(|e| (e.response.bytes, e.confidence)).collect::<Vec<_>>(), [(122, 1.0), (5, 1.0)]);
    let talk = Talk::new().client("get k\r\nget l\r\n").server("VALUE k 0 100\r\n").gap(side, 500).server("END\r\n");
    let found = talk.client("get m\r\n").server("END\r\n").exchanges();
    assert_eq!(found.iter().find(|e| e.target.as_deref() == Some("m")).map(|e| e.response.done), Some(true));
    assert_eq!(found[0].confidence, GUESSED);
    let talk = Talk::new().client("set k 0 0 100\r\n").gap(Side::Client, 500).client("get m\r\n");
    let found = talk.server("STORED\r\nEND\r\n").exchanges();
    assert_eq!(rows(&found)[0], (Some("set"), Some("k"), Some(0)));
}

#[test]
fn a_value_where_a_command_is_expected_is_not_told() {
    let talk = Talk::new().client("mn\r\nset k 0 0 x\r\nhunter2 is secret\r\n").client("get k\r\n");
    let found = talk.server("MN\r\nCLIENT_ERROR bad command line format\r\nERROR\r\nEND\r\n").exchanges();
    assert!(!format!("{found:?}").contains("hunter2"));
    assert_eq!(found.last().unwrap().status, Some(0));
}

#[test]
fn a_beginning_is_too_short_or_tells_the_same() {
    let judged = |bytes: &[u8], start, all| match judge(Carrier::Stream, bytes, start, all) {
        Judgement::Row(row) => row.protocol.unwrap_or("http"),
        Judgement::None => "unknown",
        Judgement::More => "more",
    };
    let long = format!("get {}\r\n", "k".repeat(100)).into_bytes();
    let (beginning, midstream) = (Start::Beginning, Start::Midstream);
    for (bytes, start) in [
        (&b"get k\r\n"[..], beginning),
        (b"get /index.html \r\n", beginning),
        (&long[..64], beginning),
        (b"gets a b c\r\n", beginning),
        (b"set k 0 -1 5\r\n", beginning),
        (b"cas k 0 0 5 77 noreply\r\n", beginning),
        (b"incr k 1\r\n", beginning),
        (b"delete k\r\n", beginning),
        (b"mg k v q O123\r\n", beginning),
        (b"ms k 5 T60 c\r\n", beginning),
        (b"mn\r\n", beginning),
        (b"flush_all\r\n", beginning),
        (b"STAT pid 5\r\n", beginning),
        (b"VALUE k 0 5\r\n", midstream),
        (b"VA 5 kk O1\r\n", midstream),
        (b"END\r\n", midstream),
        (b"STORED\r\n", Start::Gap),
        (b"HD\r\n", Start::Gap),
    ] {
        assert_eq!(judged(bytes, start, true), PROTOCOL, "{}", bytes.escape_ascii());
        for cut in 1..bytes.len() {
            let early = judged(&bytes[..cut], start, false);
            assert!(matches!(early, "more" | "memcached"), "{early}: {}", bytes[..cut].escape_ascii());
        }
    }
    for other in [
        &b"get /index.html HTTP/1.0\r\n"[..],
        b"GET k\r\n",
        b"get\r\n",
        b"get k\x01\r\n",
        b"set k to 5 apples\r\n",
        b"delete 5\r\n",
        b"touch 5\r\n",
        b"put 0 0 60 5\r\n",
        b"stats\r\n",
        b"mg k this is english\r\n",
        b"watch tube\r\n",
        b"add a line of text\r\n",
        b"\x80\0\0\x01\0\0\0\0",
        b"END\r\n",
        b"HD\r\n",
    ] {
        assert_ne!(judged(other, Start::Beginning, true), PROTOCOL, "{}", other.escape_ascii());
    }
}

#[test]
fn what_is_kept_is_bounded() {
    let mut endless = Talk::new().client("get k\r\n");
    for _ in 0..2000 {
        endless = endless.client([b'x'; 1000]);
    }
    assert!(endless.conversation.held() <= 8192);
    let mut keys = Talk::new().client("get k\r\nget ");
    for _ in 0..3000 {
        keys = keys.client([b'x'; 1000]);
    }
    assert!(keys.conversation.held() <= 1 << 21);
}

fn conversation() -> Vec<(Side, Vec<u8>)> {
    let (client, server) = (Side::Client, Side::Server);
    vec![
        (client, b"get a b\r\nset c 0 0 9 noreply\r\nEND\r\nget \r\nmg d v q k\r\nmg e v q k\r\nmn\r\n".to_vec()),
        (server, b"VALUE b 0 5\r\nEND\r\n\r\nEND\r\nVA 2 ke\r\n\r\n\r\nMN\r\n".to_vec()),
        (client, b"incr n 1\r\nstats\r\nquit\r\n".to_vec()),
        (server, b"CLIENT_ERROR no\r\nSTAT a b\r\nEND\r\n".to_vec()),
    ]
}

proptest! {
    /// Law: how TCP cut the stream never changes what is found.
    #[test]
    fn how_tcp_cut_it_changes_nothing(sizes in proptest::collection::vec(1_usize..60, 1..12)) {
        prop_assert_eq!(however_tcp_cut_it(&conversation(), &sizes).len(), 8);
    }

    /// Law: whatever is said after a command, nothing panics and no byte counts twice.
    #[test]
    fn anything_may_follow(packets in proptest::collection::vec((any::<bool>(), "(get |set |mg |ms |mn|VALUE |VA |END|HD|EN|MN|ERROR|[\r\n0-9a-zA-Z -]){0,20}"), 0..40), midstream: bool) {
        let mut talk = Talk::on(Conversation::new(Carrier::Stream, midstream, None)).client("get k\r\n");
        let mut bytes = 7;
        for (client, text) in packets {
            bytes += text.len() as u64;
            talk = talk.say(if client { Side::Client } else { Side::Server }, text.as_bytes(), 0);
        }
        let counted: u64 = talk.exchanges().iter().map(|e| e.request.bytes + e.response.bytes).sum();
        prop_assert!(counted <= bytes);
    }
}
