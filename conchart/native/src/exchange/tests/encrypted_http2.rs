use super::super::Exchange;
use super::super::http2::encrypted::EncryptedHttp2;
use super::super::ledger::Ledger;
use super::talk::short;
use crate::stream::Side::{Client, Server};
use crate::stream::{BySide, Gap, Moment, Side};
use crate::tls::AppRecord;

const OVERHEAD: u8 = 17;
const MS: i64 = 1_000_000;

/// A conversation of records; each has a packet of its own.
struct Encrypted {
    http2: EncryptedHttp2,
    ledger: Ledger,
    frame: u64,
    at: i64,
    sent: BySide<u64>,
    /// What each side has received of its peer's stream.
    received: BySide<u64>,
    hears: bool,
}

impl Encrypted {
    /// Both have sent their preface and SETTINGS and acknowledged the other's; the next frame is 5.
    fn begun() -> Self {
        Self::fresh().say(Client, 70).say(Server, 27 + 13).say(Server, 9).say(Client, 9)
    }

    fn fresh() -> Self {
        let overhead = BySide { client: OVERHEAD, server: OVERHEAD };
        Self {
            http2: EncryptedHttp2::new(overhead),
            ledger: Ledger::default(),
            frame: 0,
            at: 0,
            sent: BySide::default(),
            received: BySide::default(),
            hears: true,
        }
    }

    /// A record with so much content, and all that the peer had sent before is received.
    fn say(mut self, from: Side, content: u64) -> Self {
        self.frame += 1;
        if self.hears {
            self.received[from] = self.sent[from.peer()];
        }
        let (offset, bytes) = (self.sent[from], content + u64::from(OVERHEAD));
        self.sent[from] += bytes;
        let now = self.now();
        let record = AppRecord {
            from,
            first: now,
            last: now,
            bytes,
            offset,
            end: offset + bytes,
            acked: self.received[from],
            confidence: 1.0,
            may_be_interim: false,
            may_be_finished: false,
        };
        self.http2.record(&mut self.ledger, &record);
        self
    }

    /// The server says something before it has received what the client sent last.
    fn before_it_arrives(mut self, content: u64) -> Self {
        self.hears = false;
        let mut after = self.say(Server, content);
        after.hears = true;
        after
    }

    fn wait(mut self, ms: i64) -> Self {
        self.at += ms * MS;
        self
    }

    fn now(&self) -> Moment {
        Moment::new(self.at, self.frame, Side::Client)
    }

    fn end(mut self) -> Vec<Exchange> {
        self.http2.finish(&mut self.ledger);
        std::iter::from_fn(|| self.ledger.next_exchange()).collect()
    }
}

/// Frames of each exchange: request from, to, response from, to.
fn frames(found: &[Exchange]) -> Vec<[Option<u64>; 4]> {
    let spans = found.iter().map(|e| (short(e.request), short(e.response)));
    spans.map(|(request, response)| [request.0, request.1, response.0, response.1]).collect()
}

#[test]
fn an_acknowledgement_of_settings_asks_nothing() {
    let found = Encrypted::begun().wait(900).say(Client, 130).wait(20).say(Server, 700).end();
    assert_eq!(frames(&found), [[Some(5), Some(5), Some(6), Some(6)]]);
    let [e] = &found[..] else { panic!() };
    assert_eq!((e.protocol, e.inferred, e.confidence, e.request.done), ("h2", true, 0.8, true));
}

#[test]
fn tickets_before_the_servers_settings_answer_nothing() {
    let talk = Encrypted::fresh().say(Client, 70).say(Client, 130).say(Server, 249).say(Server, 249).say(Server, 49);
    let found = talk.say(Client, 9).wait(20).say(Server, 700).end();
    assert_eq!(frames(&found), [[Some(2), Some(2), Some(7), Some(7)]]);
}

#[test]
fn a_request_may_stand_in_the_record_of_the_preface() {
    let found = Encrypted::fresh().say(Client, 70 + 57).say(Server, 49).say(Client, 9).wait(20).say(Server, 700).end();
    assert_eq!(frames(&found), [[Some(1), Some(1), Some(4), Some(4)]]);
    let four = Encrypted::fresh().say(Client, 198).say(Server, 30).wait(20).say(Server, 395).end();
    assert_eq!(frames(&four).len(), 3, "several, though not surely how many");
}

#[test]
fn the_preface_and_its_frames_may_come_in_records_of_their_own() {
    let talk = Encrypted::fresh().say(Client, 24).say(Client, 27).say(Client, 13).say(Client, 40).say(Server, 40);
    let found = talk.say(Server, 9).say(Client, 9).wait(20).say(Server, 821).end();
    assert_eq!(frames(&found), [[4, 4, 8, 8]].map(|frames| frames.map(Some)));
}

#[test]
fn a_ping_and_its_acknowledgement_are_neither_request_nor_response() {
    for (first, second) in [(Client, Server), (Server, Client)] {
        let talk =
            Encrypted::begun().say(Client, 130).wait(20).say(Server, 700).wait(900).say(first, 17).say(second, 17);
        let found = talk.wait(900).say(Client, 43).wait(20).say(Server, 700).end();
        let expected = [[Some(5), Some(5), Some(6), Some(6)], [Some(9), Some(9), Some(10), Some(10)]];
        assert_eq!(frames(&found), expected, "{first:?}");
    }
}

#[test]
fn a_request_as_short_as_a_ping_is_one_if_the_server_answers_it() {
    let found = Encrypted::begun().say(Client, 17).wait(20).say(Server, 700).end();
    assert_eq!(frames(&found), [[Some(5), Some(5), Some(6), Some(6)]]);
    let found = Encrypted::begun().say(Client, 130).wait(20).say(Server, 17).wait(5).say(Client, 130).end();
    assert_eq!(frames(&found)[0], [Some(5), Some(5), Some(6), Some(6)], "nor is such a response a PING");
}

#[test]
fn a_goaway_at_the_end_asks_nothing() {
    for content in [17, 34] {
        let found = Encrypted::begun().say(Client, 130).wait(20).say(Server, 700).wait(900).say(Client, content).end();
        assert_eq!(frames(&found).len(), 1);
    }
}

#[test]
fn credit_in_the_middle_of_a_response_asks_nothing() {
    let talk = Encrypted::begun().say(Client, 130).wait(20).say(Server, 8_261).say(Client, 13);
    let found = talk.wait(20).say(Server, 8_200).say(Client, 26).wait(20).say(Server, 3_000).end();
    assert_eq!(frames(&found), [[Some(5), Some(5), Some(6), Some(10)]]);
    // As long, but nothing was sent that needed it.
    let found = Encrypted::begun().say(Client, 130).wait(20).say(Server, 700).wait(9).say(Client, 26).end();
    assert_eq!(frames(&found).len(), 2);
}

#[test]
fn credit_for_a_long_response_comes_again_and_again() {
    let mut talk =
        Encrypted::begun().say(Client, 130).wait(5).say(Server, 15_213).say(Server, 16_329).say(Server, 8_573);
    for _ in 0..5 {
        talk = talk.wait(4).say(Client, 26);
    }
    let found = talk.wait(800).say(Client, 29).wait(100).say(Server, 195).end();
    assert_eq!(frames(&found), [[5, 5, 6, 8], [14, 14, 15, 15]].map(|frames| frames.map(Some)));
}

#[test]
fn streams_overlap_and_each_record_of_the_server_answers_one() {
    let talk = Encrypted::begun().say(Client, 130).say(Client, 43).say(Client, 44).wait(20);
    let found = talk.say(Server, 160).wait(30).say(Server, 700).wait(100).say(Server, 90).end();
    let responses: Vec<_> = found.iter().map(|e| (short(e.response).0, e.confidence)).collect();
    assert_eq!(responses, [(Some(8), 0.4), (Some(9), 0.4), (Some(10), 0.4)]);
}

#[test]
fn responses_that_leave_together_are_over_when_the_server_falls_silent() {
    let talk = Encrypted::begun().say(Client, 130).say(Client, 43).wait(20).say(Server, 160).say(Server, 700);
    let found = talk.wait(900).say(Client, 44).wait(20).say(Server, 700).end();
    let expected = [[5, 5, 7, 8], [6, 6, 8, 8], [9, 9, 10, 10]].map(|frames| frames.map(Some));
    assert_eq!(frames(&found), expected);
}

#[test]
fn a_long_poll_goes_on_waiting_while_others_are_answered() {
    let talk = Encrypted::begun().say(Client, 130).wait(5_000).say(Client, 43).wait(20).say(Server, 700);
    let found = talk.wait(300).say(Client, 44).wait(20).say(Server, 700).wait(5_000).say(Server, 90).end();
    let answered: Vec<_> = found.iter().map(|e| short(e.response).0).collect();
    assert_eq!(answered, [Some(7), Some(9), Some(10)], "whose response it is, nobody can say; that one waits, all can");
}

#[test]
fn the_server_goes_on_unasked_with_a_response_in_pieces() {
    let mut talk = Encrypted::begun().say(Client, 130).wait(20).say(Server, 277);
    for _ in 0..3 {
        talk = talk.wait(200).say(Server, 189);
    }
    // A request beside it; the next piece is still the first response's.
    let found = talk.wait(100).say(Client, 43).wait(20).say(Server, 790).wait(80).say(Server, 189).end();
    assert_eq!(frames(&found), [[5, 5, 6, 12], [10, 10, 11, 11]].map(|frames| frames.map(Some)));
}

#[test]
fn pieces_long_ago_have_nothing_to_do_with_those_of_a_later_response() {
    let talk = Encrypted::begun().say(Client, 130).wait(20).say(Server, 277).wait(200).say(Server, 189).wait(5_000);
    let found = talk.say(Client, 43).wait(20).say(Server, 790).wait(200).say(Server, 700).end();
    assert_eq!(frames(&found), [[5, 5, 6, 7], [8, 8, 9, 10]].map(|frames| frames.map(Some)));
}

#[test]
fn an_upload_is_one_request_whatever_credit_comes_in_between() {
    let talk = Encrypted::begun().say(Client, 52).say(Client, 16_393).wait(30).say(Server, 26).say(Client, 16_393);
    let found = talk.wait(2).say(Client, 90).wait(20).say(Server, 78).end();
    assert_eq!(frames(&found), [[5, 9, 10, 10]].map(|frames| frames.map(Some)));
}

#[test]
fn a_short_request_beside_an_upload_that_pauses_is_answered_first() {
    let talk =
        Encrypted::begun().say(Client, 52).say(Client, 4_009).wait(120).say(Client, 4_009).wait(90).say(Client, 28);
    let found = talk.wait(6).say(Server, 157).wait(80).say(Client, 4_009).wait(60).say(Server, 45).end();
    assert_eq!(frames(&found), [[5, 10, 11, 11], [8, 8, 9, 9]].map(|frames| frames.map(Some)));
}

#[test]
fn a_short_body_is_known_by_the_credit_that_the_server_gives_for_it() {
    let talk = Encrypted::begun().say(Client, 91).say(Client, 60).wait(1).say(Server, 13).wait(50).say(Server, 69);
    let found = talk.wait(900).say(Client, 44).wait(20).say(Server, 700).end();
    assert_eq!(frames(&found), [[5, 6, 8, 8], [9, 9, 10, 10]].map(|frames| frames.map(Some)));
}

#[test]
fn credit_that_left_before_the_requests_arrived_is_not_for_them() {
    let talk = Encrypted::begun().say(Client, 91).say(Client, 60).before_it_arrives(13).wait(50).say(Server, 69);
    let found = talk.wait(50).say(Server, 700).end();
    assert_eq!(frames(&found), [[5, 5, 8, 8], [6, 6, 9, 9]].map(|frames| frames.map(Some)));
}

#[test]
fn requests_that_have_their_whole_content_in_one_record_are_several() {
    for (one, other) in [(6_044, 6_042), (6_042, 6_044)] {
        let talk = Encrypted::begun().say(Client, one).say(Client, other).wait(20).say(Server, 26).say(Server, 26);
        let found = talk.wait(30).say(Server, 144).wait(170).say(Server, 69).end();
        assert_eq!(frames(&found), [[5, 5, 9, 9], [6, 6, 10, 10]].map(|frames| frames.map(Some)));
    }
}

#[test]
fn credit_for_what_came_with_the_preface_answers_nothing() {
    let talk = Encrypted::fresh().say(Client, 16_384).say(Client, 1_828).say(Server, 69).say(Client, 9).say(Server, 26);
    let found = talk.wait(30).say(Server, 144).end();
    assert_eq!(frames(&found), [[1, 2, 6, 6]].map(|frames| frames.map(Some)));
}

#[test]
fn what_left_before_the_request_arrived_does_not_answer_it() {
    let talk = Encrypted::begun().say(Client, 130).wait(20).say(Server, 700).wait(30).say(Client, 43);
    let found = talk.before_it_arrives(500).wait(20).say(Server, 90).end();
    assert_eq!(frames(&found), [[5, 5, 6, 8], [7, 7, 9, 9]].map(|frames| frames.map(Some)));
}

#[test]
fn a_record_as_long_as_the_one_before_it_is_followed_by_more_of_the_same_response() {
    let talk =
        Encrypted::begun().say(Client, 130).say(Client, 43).wait(20).say(Server, 1_300).wait(9).say(Server, 1_390);
    let talk = talk.wait(9).say(Server, 1_390).wait(9).say(Server, 800);
    let found = talk.wait(40).say(Server, 90).end();
    let last = frames(&found);
    assert_eq!((last.len(), last[1][3]), (2, Some(11)));
    assert_eq!(found.iter().map(|e| e.response.bytes).sum::<u64>(), 1_300 + 2 * 1_390 + 800 + 90 + 5 * 17);
}

#[test]
fn missing_bytes_lower_the_confidence() {
    let mut talk = Encrypted::begun().say(Client, 130);
    let gap = Gap::new(talk.sent.server, 500, Moment::new(10 * MS, 6, Side::Client));
    talk.http2.gap(&mut talk.ledger, Server, gap);
    let found = talk.end();
    assert_eq!((short(found[0].response).0, found[0].confidence), (Some(6), 0.3));
}

#[test]
fn requests_that_nobody_answers_are_not_kept_for_ever() {
    let mut talk = Encrypted::begun();
    for _ in 0..2_000 {
        talk = talk.wait(1).say(Client, 44);
    }
    assert_eq!(talk.end().len(), 2_000);
}

#[test]
fn the_last_response_is_done_if_the_connection_was_closed() {
    for closed in [true, false] {
        let mut talk = Encrypted::begun().say(Client, 130).wait(20).say(Server, 700);
        if closed {
            talk.http2.fin();
        }
        assert_eq!(talk.end()[0].response.done, closed);
    }
}
