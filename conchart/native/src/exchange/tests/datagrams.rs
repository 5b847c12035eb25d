use super::talk::{Talk, moment, short};
use crate::exchange::{Carrier, Conversation};
use crate::stream::Side;

fn datagrams() -> Talk {
    Talk::on(Conversation::new(Carrier::Datagrams, false, None))
}

#[test]
fn a_datagram_is_one_message_whoever_sends_the_first() {
    let mut talk = datagrams().client("?echo a").server("!a").client("?b").server("!b");
    let found = talk.settled();
    assert_eq!(found.iter().map(|e| (e.protocol, e.requester)).collect::<Vec<_>>(), [("echo", Side::Client); 2]);
    assert_eq!(short(found[0].request), (Some(1), Some(1), 7, true));
    assert_eq!(short(found[1].response), (Some(4), Some(4), 2, true));
    assert_eq!((talk.conversation.app(), talk.unseen()), (Some("echo"), vec![]));
    let mut talk = datagrams().server("?echo a").client("!a");
    assert_eq!(talk.settled()[0].requester, Side::Server);
}

#[test]
fn datagrams_are_judged_one_by_one() {
    // Put together, these begin like a question, and like a request of HTTP.
    for parts in [["?ec", "ho"], ["GET / HT", "TP/1.1\r\n\r\n"]] {
        let mut talk = datagrams().client(parts[0]).client(parts[1]);
        assert!(talk.finish().is_empty(), "{parts:?}");
        assert_eq!(talk.conversation.app(), Some("unknown"));
    }
}

#[test]
fn of_unknown_datagrams_nobody_can_say_what_went_on() {
    let mut talk = datagrams().client("\x01").server("\x02").client("\x03").client("\x04");
    assert_eq!((talk.conversation.earliest_open(), talk.unseen()), (Some(moment(1)), vec![]));
    assert!(talk.finish().is_empty());
    assert_eq!((talk.unseen(), talk.conversation.earliest_open()), (vec![(1, 4)], None));
    assert_eq!(talk.conversation.app(), Some("unknown"));
    // A single one takes no time.
    let mut talk = datagrams().client("\x01");
    assert!(talk.finish().is_empty() && talk.unseen().is_empty());
    assert_eq!(datagrams().conversation.app(), None);
}

#[test]
fn a_later_datagram_may_tell_what_it_is_but_not_any() {
    let mut talk = datagrams().client("\x01").server("\x02").client("?echo").server("!");
    assert_eq!(talk.finish().iter().map(|e| short(e.request).0).collect::<Vec<_>>(), [Some(3)]);
    assert_eq!((talk.unseen(), talk.conversation.app()), (vec![(1, 2)], Some("echo")));
    let mut talk = datagrams();
    for _ in 0..4 {
        talk = talk.client("\x01").server("\x02");
    }
    let mut talk = talk.client("?echo").server("!");
    assert!(talk.finish().is_empty());
    assert_eq!(talk.unseen(), [(1, 10)]);
}

#[test]
fn no_datagram_is_buffered() {
    let mut talk = datagrams();
    for _ in 0..1000 {
        talk = talk.client([1; 1400]);
    }
    assert_eq!(talk.conversation.held(), 0);
}
