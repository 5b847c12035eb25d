//! Clients of QUIC that go on from another address or port (RFC 9000 section 9), and what waits because of it.
//!
//! In: the datagrams of a connection from the first one on that came from another endpoint; PATH_CHALLENGE and
//! PATH_RESPONSE (section 8.2), where keys open packets. Out: [`Move`]s, and the [`Stall`]s that they cost. The server's
//! silence shows without keys, and so does a server that may not send more than three times what it got (section 8.1).
//! Non-goals: which packets were lost. Bounded: the latest move of a connection is followed, those before are handed out.

use std::collections::VecDeque;

use crate::exchange::Way;
use crate::packet::{Datagram, Endpoint};
use crate::quic::Path;
use crate::stalls::{Detail, Kind, Stall};
use crate::stream::{BySide, Moment, Side};
use crate::udp::{LONGEST_ACK, Move};

/// An end that is reached answers within the round trip and so much: a delayed acknowledgement (RFC 9000 section 18.2)
/// and a timer that is late.
const LATE_NS: i64 = 50_000_000;
/// Whoever waits for the peer's packet, and for nothing else, goes on within the round trip and so much.
const SOON_NS: i64 = 5_000_000;
/// A datagram of an endpoint that was left no longer ago was overtaken on its way.
const OVERTAKEN_NS: i64 = 1_000_000_000;
/// So many times what it got may a server send to an address that is not validated (RFC 9000 section 8.1).
const AMPLIFICATION: u64 = 3;
/// Datagrams of the client that are remembered: those of a round trip before it is known at its new endpoint.
const MOST_RECENT: usize = 16;
/// The sizes and times of packets tell it, and not what is in them.
const UNREAD: f64 = 0.7;

/// The moves of one connection.
#[derive(Debug)]
pub(super) struct Moves {
    now: Move,
    /// Bytes that came from the new endpoint, and that went there.
    received: u64,
    sent: u64,
    /// The latest of those that came: when, and how many bytes.
    recent: VecDeque<(i64, u64)>,
    /// The latest datagram that went there.
    last: Option<Moment>,
    /// The server does not know that the client is there.
    is_limited: bool,
    /// What it sent to the old endpoint has not come again.
    is_in_vain: bool,
}

/// A datagram, and the round trips between the capture point and each end.
pub(super) struct Passed<'a> {
    pub datagram: &'a Datagram<'a>,
    pub seen: Moment,
    pub rtt: BySide<Option<i64>>,
}

impl Moves {
    /// The client's first datagram from another endpoint than `before`; `unanswered` as in [`Move`].
    pub fn begin(before: Endpoint, unanswered: Option<Moment>, passed: &Passed<'_>) -> Self {
        let (after, seen) = (passed.datagram.source, passed.seen);
        let patience = passed.rtt.client.unwrap_or_default().saturating_add(LATE_NS);
        let unanswered = unanswered.filter(|since| seen.at.saturating_sub(since.at) > patience);
        let now = Move { seen, before, after, unanswered, answered: None, challenge: None, response: None };
        Self {
            now,
            received: passed.datagram.payload_len.into(),
            sent: 0,
            recent: VecDeque::from([(seen.at, passed.datagram.payload_len.into())]),
            last: None,
            is_limited: true,
            is_in_vain: unanswered.is_some(),
        }
    }

    /// Where the client is now.
    pub fn client(&self) -> Endpoint {
        self.now.after
    }

    /// How a datagram goes that has not been told to [`Self::datagram`].
    pub fn way(&self, from: Side, datagram: &Datagram<'_>) -> Way {
        let is_heard = self.now.answered.is_some();
        match from {
            Side::Client if is_heard => Way::Heard,
            Side::Client => Way::Unheard,
            Side::Server if datagram.destination != self.now.after => Way::Unheard,
            Side::Server if is_heard => Way::Heard,
            Side::Server => {
                // By what of the client's datagrams the server had received when it sent this.
                let received = self.recent.iter().scan(0_u64, |sum, &(_, len)| {
                    *sum = sum.saturating_add(len);
                    Some(sum.saturating_mul(AMPLIFICATION))
                });
                let is_full = received.into_iter().any(|most| most == u64::from(datagram.payload_len));
                if is_full || datagram.payload_len <= LONGEST_ACK { Way::Check } else { Way::Heard }
            }
        }
    }

    /// Does this datagram of the client come from an endpoint to which it has moved by now?
    pub fn is_move(&self, from: Endpoint, seen: Moment) -> bool {
        from != self.now.after && seen.at.saturating_sub(self.now.seen.at) > OVERTAKEN_NS
    }

    /// The next datagram; gives what held it up.
    pub fn datagram(&mut self, from: Side, passed: &Passed<'_>) -> Option<Stall> {
        let Passed { datagram, seen, rtt } = passed;
        let (len, seen) = (u64::from(datagram.payload_len), *seen);
        let rtt = rtt.server.unwrap_or_default();
        if from == Side::Client {
            if datagram.source == self.now.after {
                self.received = self.received.saturating_add(len);
                self.recent.push_back((seen.at, len));
                if self.recent.len() > MOST_RECENT {
                    self.recent.pop_front();
                }
            }
            return None;
        }
        if datagram.destination != self.now.after {
            return None;
        }
        // What passed here then was at the server when it sent this.
        let passed_at = seen.at.saturating_sub(rtt);
        // Without keys, the round trip may be the handshake's, with the time of its computations.
        let doubt = SOON_NS.saturating_add(rtt / 4);
        let held = match self.last {
            None => {
                self.now.answered = Some(seen);
                let is_late = seen.at.saturating_sub(self.now.seen.at) > rtt.saturating_add(LATE_NS);
                is_late.then(|| stall(Detail::Unanswered, self.now.seen, seen))
            }
            // What it had sent before comes again, which may take its timer's time.
            Some(_) if self.is_in_vain && datagram.payload_len > LONGEST_ACK => {
                self.is_in_vain = false;
                self.now.unanswered.map(|since| stall(Detail::Unreachable, since, seen))
            }
            Some(last) if self.is_limited => {
                let is_released = self.recent.iter().any(|&(at, _)| at.abs_diff(passed_at) <= doubt.unsigned_abs());
                let allowed = self.allowed(last.at.saturating_sub(rtt).saturating_add(doubt));
                let did_not_fit = self.sent.saturating_add(len) > allowed;
                let confidence = if self.now.challenge.is_some() { 1.0 } else { UNREAD };
                let stall = Stall { confidence, ..stall(Detail::Validation, last, seen) };
                (is_released && did_not_fit).then_some(stall)
            }
            Some(_) => None,
        };
        self.sent = self.sent.saturating_add(len);
        self.is_limited &= self.sent <= self.allowed(passed_at.saturating_add(doubt));
        self.last = Some(seen);
        held
    }

    /// How many bytes may go to the new endpoint, by what passed here until then.
    fn allowed(&self, until: i64) -> u64 {
        let later = self.recent.iter().filter(|&&(at, _)| at > until).map(|&(_, len)| len);
        later.fold(self.received, u64::saturating_sub).saturating_mul(AMPLIFICATION)
    }

    /// A packet that was opened has a PATH_CHALLENGE or a PATH_RESPONSE.
    pub fn path(&mut self, Path { from, is_response, seen }: Path) {
        match (from, is_response) {
            (Side::Server, false) => drop(self.now.challenge.get_or_insert(seen)),
            (Side::Client, true) if self.now.challenge.is_some() => drop(self.now.response.get_or_insert(seen)),
            _ => {}
        }
    }

    /// No more is known of this move: it, and what an answer that never came held up.
    pub fn end(&self, last: Moment) -> (Move, Option<Stall>) {
        let is_alone = self.now.answered.is_none() && last.at.saturating_sub(self.now.seen.at) > LATE_NS;
        let vain = self.now.unanswered.filter(|_| self.is_in_vain).map(|since| stall(Detail::Unreachable, since, last));
        (self.now, vain.or_else(|| is_alone.then(|| stall(Detail::Unanswered, self.now.seen, last))))
    }
}

fn stall(detail: Detail, start: Moment, end: Moment) -> Stall {
    let (kind, detail, side) = (Kind::Migration, Some(detail), Side::Server);
    Stall { kind, detail, side, start, end, released: None, ack_delay_ns: None, confidence: 1.0, unfinished: false }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::packet::Station;

    const MS: i64 = 1_000_000;

    fn end(port: u16) -> Endpoint {
        Endpoint { ip: [10, 0, 0, 1].into(), port }
    }

    fn moment(from: Side, ms: i64) -> Moment {
        Moment::new(ms * MS, ms.unsigned_abs(), from)
    }

    /// Two round trips of 20 ms between here and either end.
    fn passed(datagram: &Datagram<'static>, from: Side, ms: i64, with: impl FnOnce(&Passed<'_>)) {
        let rtt = BySide { client: Some(20 * MS), server: Some(20 * MS) };
        with(&Passed { datagram, seen: moment(from, ms), rtt });
    }

    fn datagram(source: u16, destination: u16, payload_len: u32) -> Datagram<'static> {
        Datagram {
            source: end(source),
            destination: end(destination),
            payload: &[],
            payload_len,
            ip_id: None,
            ttl: 64,
            capture_point: 0,
            station: Station::default(),
            captured: &[],
        }
    }

    /// A client that sends 80 bytes from port 2 at 1 s, where it was at port 1.
    fn moved(unanswered_ms: Option<i64>) -> Moves {
        let mut moves = None;
        passed(&datagram(2, 443, 80), Side::Client, 1_000, |passed| {
            moves = Some(Moves::begin(end(1), unanswered_ms.map(|ms| moment(Side::Server, ms)), passed));
        });
        moves.unwrap()
    }

    /// What a datagram says; bytes of the client come from port 2, those of the server go there.
    fn says(moves: &mut Moves, from: Side, ms: i64, len: u32) -> Option<(Option<Detail>, i64, i64)> {
        let datagram = if from == Side::Client { datagram(2, 443, len) } else { datagram(443, 2, len) };
        let mut stall = None;
        passed(&datagram, from, ms, |passed| stall = moves.datagram(from, passed));
        stall.map(|stall| (stall.detail, stall.start.at / MS, stall.end.at / MS))
    }

    #[test]
    fn what_a_server_sent_to_the_endpoint_that_was_left_waited_for_the_move() {
        let mut moves = moved(Some(400));
        // An acknowledgement brings nothing of it.
        assert_eq!(says(&mut moves, Side::Server, 1_020, 40), None);
        assert_eq!(says(&mut moves, Side::Server, 1_600, 200), Some((Some(Detail::Unreachable), 400, 1_600)));
        assert_eq!(says(&mut moves, Side::Server, 1_601, 200), None);
        let (latest, never) = moves.end(moment(Side::Client, 2_000));
        assert_eq!((latest.unanswered, never), (Some(moment(Side::Server, 400)), None));
        // An acknowledgement of the client may have been on its way.
        let since = |ms| moved(Some(ms)).end(moment(Side::Client, 1_001)).0.unanswered.is_some();
        assert_eq!((since(920), since(940)), (true, false));
        let never = moved(Some(400)).end(moment(Side::Client, 9_000)).1.unwrap();
        assert_eq!((never.detail, never.end.at), (Some(Detail::Unreachable), 9_000 * MS));
    }

    #[test]
    fn a_server_that_may_send_three_times_as_much_waits_until_the_client_is_known() {
        let mut moves = moved(None);
        assert_eq!(says(&mut moves, Side::Server, 1_020, 200), None);
        moves.path(Path { from: Side::Server, is_response: false, seen: moment(Side::Server, 1_020) });
        assert_eq!(says(&mut moves, Side::Client, 1_040, 60), None);
        moves.path(Path { from: Side::Client, is_response: true, seen: moment(Side::Client, 1_040) });
        let held = says(&mut moves, Side::Server, 1_060, 1_200);
        assert_eq!(held, Some((Some(Detail::Validation), 1_020, 1_060)));
        // It is known by now.
        says(&mut moves, Side::Client, 1_080, 60);
        assert_eq!(says(&mut moves, Side::Server, 1_100, 1_200), None);
        let (latest, never) = moves.end(moment(Side::Server, 1_100));
        assert_eq!((latest.challenge.unwrap().at, latest.response.unwrap().at), (1_020 * MS, 1_040 * MS));
        assert!(never.is_none());
    }

    #[test]
    fn a_program_that_takes_its_time_is_no_limit() {
        let mut moves = moved(None);
        says(&mut moves, Side::Server, 1_020, 60);
        says(&mut moves, Side::Client, 1_040, 60);
        assert_eq!(says(&mut moves, Side::Server, 1_300, 1_200), None);
    }

    #[test]
    fn a_server_that_answers_late_or_never_is_told() {
        let mut moves = moved(None);
        // What goes to the old endpoint is no answer.
        let mut stall = None;
        passed(&datagram(443, 1, 60), Side::Server, 1_020, |passed| stall = moves.datagram(Side::Server, passed));
        assert!(stall.is_none());
        let never = moves.end(moment(Side::Client, 3_000)).1.unwrap();
        assert_eq!((never.detail, never.end.at), (Some(Detail::Unanswered), 3_000 * MS));
        assert_eq!(says(&mut moves, Side::Server, 1_300, 60), Some((Some(Detail::Unanswered), 1_000, 1_300)));
        assert!(moves.end(moment(Side::Client, 3_000)).1.is_none());
    }

    #[test]
    fn a_datagram_that_was_overtaken_is_no_way_back() {
        let moves = moved(None);
        let at = |port, ms| moves.is_move(end(port), moment(Side::Client, ms));
        assert_eq!((at(1, 1_500), at(1, 2_500), at(2, 2_500)), (false, true, false));
    }

    #[test]
    fn the_first_datagram_to_a_new_endpoint_checks_it_where_it_is_short_or_as_long_as_it_may_be() {
        let mut moves = moved(None);
        says(&mut moves, Side::Client, 1_001, 40);
        let to = |port, len| moves.way(Side::Server, &datagram(443, port, len));
        // Three times what came first, or all that came.
        assert_eq!([to(2, 240), to(2, 360), to(2, LONGEST_ACK)], [Way::Check; 3]);
        assert_eq!((to(2, 300), to(1, 240)), (Way::Heard, Way::Unheard));
        assert_eq!(moves.way(Side::Client, &datagram(2, 443, 80)), Way::Unheard);
        says(&mut moves, Side::Server, 1_020, 240);
        assert_eq!(moves.way(Side::Server, &datagram(443, 2, 240)), Way::Heard);
        assert_eq!(moves.way(Side::Client, &datagram(2, 443, 80)), Way::Heard);
    }
}
