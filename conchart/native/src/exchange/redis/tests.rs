//! Conversations as redis-cli and clients have them with Redis 7, and laws.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use proptest::prelude::*;

use super::*;
use crate::exchange::reader::{Carrier, Start};
use crate::exchange::sniffers::{Judgement, judge};
use crate::exchange::tests::talk::{Talk, however_tcp_cut_it, short};
use crate::exchange::{Conversation, Exchange};

fn array(words: &[&str]) -> Vec<u8> {
    let bulks = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
    [format!("*{}\r\n", words.len())].into_iter().chain(bulks).collect::<String>().into_bytes()
}

fn words(line: &str) -> Vec<u8> {
    array(&line.split(' ').collect::<Vec<_>>())
}

fn rows(exchanges: &[Exchange]) -> Vec<(Option<&str>, Option<&str>, Option<u32>)> {
    exchanges.iter().map(|e| (e.method.as_deref(), e.target.as_deref(), e.status)).collect()
}

#[test]
fn a_command_and_its_reply_are_an_exchange() {
    let set = words("SET user:1 hunter2");
    let found = Talk::new().client(&set).server("+OK\r\n").client(words("GET user:1")).server("$7\r\nhunter2\r\n");
    let found = found.exchanges();
    assert_eq!(rows(&found), [(Some("SET"), Some("user:1"), Some(0)), (Some("GET"), Some("user:1"), Some(0))]);
    assert_eq!(short(found[0].request), (Some(1), Some(1), set.len() as u64, true));
    assert_eq!(short(found[1].response), (Some(4), Some(4), 13, true));
    assert!(found.iter().all(|e| e.confidence == 1.0 && !e.inferred && e.protocol == PROTOCOL));
}

#[test]
fn a_pipeline_is_answered_in_order_and_errors_have_their_number() {
    let sent = [words("INCR n"), words("LPUSH n x"), words("NOSUCH"), words("GET n")].concat();
    let found = Talk::new().client(sent).server(":1\r\n-WRONGTYPE Operation\r\n-ERR unknown\r\n").server("$1\r\n1\r\n");
    let found = found.exchanges();
    assert_eq!(found.iter().map(|e| e.status).collect::<Vec<_>>(), [Some(0), Some(2), Some(1), Some(0)]);
    assert_eq!(short(found[3].response).0, Some(3));
}

#[test]
fn a_reply_has_all_of_its_elements_however_deep() {
    let reply = "*3\r\n*2\r\n:1\r\n$1\r\na\r\n|1\r\n+ttl\r\n:3\r\n%1\r\n+k\r\n*1\r\n_\r\n*-1\r\n";
    let found = Talk::new().client(words("EXEC")).server(reply).client(words("PING")).server("+PONG\r\n").exchanges();
    assert_eq!(short(found[0].response), (Some(2), Some(2), reply.len() as u64, true));
    assert_eq!(rows(&found)[1], (Some("PING"), None, Some(0)));
}

#[test]
fn a_blocking_command_waits_until_it_is_answered() {
    let talk = Talk::new().client(words("XREAD BLOCK 0 STREAMS s $")).client(words("PING"));
    let found = talk.server("*-1\r\n").server("+PONG\r\n").exchanges();
    assert_eq!(rows(&found)[0], (Some("XREAD BLOCK"), Some("s"), Some(0)));
    assert_eq!((short(found[0].response).0, short(found[1].response).0), (Some(3), Some(4)));
}

#[test]
fn channels_answer_one_by_one_and_their_messages_are_unasked() {
    let confirmed = |name: &str, n: u8| format!("*3\r\n$9\r\nsubscribe\r\n$1\r\n{name}\r\n:{n}\r\n");
    let talk = Talk::new().client(words("SUBSCRIBE a b")).server(confirmed("a", 1)).server(confirmed("b", 2));
    let found = talk.server(array(&["message", "b", "secret"])).client(words("PING")).server(array(&["pong", ""]));
    let found = found.exchanges();
    assert_eq!(
        rows(&found),
        [(Some("SUBSCRIBE"), Some("a"), Some(0)), (Some("message"), Some("b"), None), (Some("PING"), None, Some(0))]
    );
    assert_eq!((short(found[0].response).1, short(found[1].request).2), (Some(3), 0));
}

#[test]
fn pushes_of_resp3_come_between_replies() {
    let push = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n";
    let found = Talk::new().client(words("GET k")).server(push).server("_\r\n").exchanges();
    assert_eq!(rows(&found), [(Some("GET"), Some("k"), Some(0)), (Some("invalidate"), None, None)]);
    assert_eq!(short(found[0].response), (Some(3), Some(3), 3, true));
}

#[test]
fn what_is_not_to_be_answered_is_not_waited_for() {
    let sent = [words("CLIENT REPLY SKIP"), words("SET a 1"), words("CLIENT REPLY OFF"), words("SET b 1")].concat();
    let talk = Talk::new().client(sent).client([words("CLIENT REPLY ON"), words("GET a")].concat());
    let found = talk.server("+OK\r\n").server("$1\r\n1\r\n").exchanges();
    let answered = found.iter().map(|e| (e.status.is_some(), e.ended.is_some()));
    let expected = [(false, true); 4].into_iter().chain([(true, false); 2]);
    assert!(answered.eq(expected), "{found:?}");
}

#[test]
fn a_password_is_never_told() {
    let sent = [words("AUTH me hunter2"), words("HELLO 3 AUTH me hunter2"), words("SET hunter1 hunter2")].concat();
    let found = Talk::new().client(sent).client("AUTH hunter2\r\n").exchanges();
    assert_eq!(found.len(), 4);
    assert!(!format!("{found:?}").contains("hunter2"));
}

#[test]
fn missing_bytes_inside_a_value_change_nothing() {
    let talk = Talk::new().client(words("GET k")).server("$1000\r\nabc").gap(Side::Server, 990).server("xyz12345\r\n");
    let head = "$1000\r\nabc".len() as u64 + 990 + 9;
    let rest = 7 + 1000 + 2 - head;
    assert_eq!(rest, 0);
    let found = talk.exchanges();
    assert_eq!((short(found[0].response).2, found[0].response.done), (1009, true));
}

#[test]
fn after_missing_bytes_the_next_command_begins_with_a_packet() {
    let talk = Talk::new().client(words("GET a")).gap(Side::Server, 40).client(words("GET b")).server("$1\r\n2\r\n");
    let found = talk.client(words("GET c")).server("$1\r\n3\r\n").exchanges();
    let heard: Vec<_> = found.iter().map(|e| (e.target.as_deref(), e.response.done, e.confidence)).collect();
    assert_eq!(heard, [(Some("a"), false, 0.5), (Some("b"), true, 0.5), (Some("c"), true, 1.0)]);
}

#[test]
fn a_connection_that_was_joined_midway_is_found() {
    let talk = Talk::midstream().server("lue\r\n").client(words("GET b")).server("$1\r\n2\r\n");
    let found = talk.exchanges();
    assert_eq!(found.last().map(|e| (e.method.as_deref(), e.response.done)), Some((Some("GET"), true)), "{found:?}");
    let long = format!("$1107\r\n{}\r\n", "x".repeat(1107));
    let found = Talk::midstream().client(words("GET a")).server(&long).client(words("GET b")).server(&long).exchanges();
    let seen: Vec<_> = found.iter().map(|e| (e.target.as_deref(), e.response.bytes)).collect();
    assert_eq!(seen, [(Some("a"), 1116), (Some("b"), 1116)]);
}

#[test]
fn replication_is_turns() {
    let found =
        Talk::new().client(words("PSYNC ? -1")).server("+FULLRESYNC 0 0\r\n").server("$9\r\nREDIS0009").exchanges();
    assert_eq!(found[0].method.as_deref(), Some("PSYNC"));
    assert!(found.iter().skip(1).all(|e| e.inferred));
}

#[test]
fn a_beginning_is_too_short_or_tells_the_same() {
    let judged = |bytes: &[u8], start, all| match judge(Carrier::Stream, bytes, start, all) {
        Judgement::Row(row) => row.protocol.unwrap_or("http"),
        Judgement::None => "unknown",
        Judgement::More => "more",
    };
    for (bytes, start) in [
        (words("GET k"), Start::Beginning),
        (words("HELLO 3"), Start::Beginning),
        (b"PING\r\n".to_vec(), Start::Beginning),
        (b"+OK\r\n".to_vec(), Start::Midstream),
        (b"-MOVED 866 [::1]:7000\r\n".to_vec(), Start::Gap),
        (array(&["message", "b"]), Start::Midstream),
    ] {
        assert_eq!(judged(&bytes, start, true), PROTOCOL, "{}", bytes.escape_ascii());
        for cut in 1..bytes.len() {
            let early = judged(&bytes[..cut], start, false);
            assert!(matches!(early, "more" | "redis"), "{early}: {}", bytes[..cut].escape_ascii());
        }
    }
    for other in [&b"*1\r\n$6\r\nnosuch\r\n"[..], b"* OK IMAP4rev1\r\n", b"PINGED\r\n", b"+OK ready\r\n", b"*a"] {
        assert_ne!(judged(other, Start::Beginning, true), PROTOCOL, "{}", other.escape_ascii());
    }
}

#[test]
fn a_command_is_under_way_between_its_elements() {
    let mut talk = Talk::new().client("PING\r\n").server("+PONG\r\n").client("*2\r\n$3\r\nGET\r\n");
    talk.settled();
    assert_eq!(talk.conversation.earliest_open().map(|at| at.frame()), Some(3));
    talk = talk.client("$1\r\nk\r\n").server("*2\r\n:1\r\n");
    assert_eq!(talk.conversation.earliest_open().map(|at| at.frame()), Some(3));
}

#[test]
fn what_is_kept_is_bounded() {
    let mut endless = Talk::new().client("*1000000\r\n$3\r\nDEL\r\n");
    for _ in 0..2000 {
        endless = endless.client("$300\r\n").client([b'x'; 300]).client("\r\n");
    }
    assert!(endless.conversation.held() <= 4096);
    let mut typed = Talk::new().client("PING\r\n");
    for _ in 0..200 {
        typed = typed.client([b'x'; 1000]);
    }
    assert!(typed.conversation.held() <= 160 * 1024);
}

fn conversation() -> Vec<(Side, Vec<u8>)> {
    let (client, server) = (Side::Client, Side::Server);
    vec![
        (client, [words("HELLO 3"), words("SET k v"), words("SUBSCRIBE a b")].concat()),
        (server, b"%1\r\n$6\r\nserver\r\n$5\r\nredis\r\n+OK\r\n>3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n".to_vec()),
        (server, b">3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n>3\r\n$7\r\nmessage\r\n$1\r\nb\r\n$2\r\nhi\r\n".to_vec()),
        (client, [words("MULTI"), words("INCR n"), words("EXEC"), b"PING x\r\n".to_vec()].concat()),
        (server, b"+OK\r\n+QUEUED\r\n*1\r\n:1\r\n-NOPERM no\r\n".to_vec()),
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
    fn anything_may_follow(packets in proptest::collection::vec((any::<bool>(), "[*$+:>%|_\r\n0-9a-zA-Z-]{0,40}"), 0..40), midstream: bool) {
        let mut talk = Talk::on(Conversation::new(Carrier::Stream, midstream, None)).client(words("GET k"));
        let mut bytes = words("GET k").len() as u64;
        for (client, text) in packets {
            bytes += text.len() as u64;
            talk = talk.say(if client { Side::Client } else { Side::Server }, text.as_bytes(), 0);
        }
        let counted: u64 = talk.exchanges().iter().map(|e| e.request.bytes + e.response.bytes).sum();
        prop_assert!(counted <= bytes);
    }
}
