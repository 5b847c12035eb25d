#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use proptest::prelude::*;

use super::*;

const POOL: Member = Member {
    stream: 0,
    ends: 1,
    pool: 1,
    syn_at: 0,
    ready_at: None,
    closing_at: None,
    closed_at: 0,
    first_exchange: Some(0),
    multiplexed: false,
};

/// A connection with one request, answered ten before it closes.
fn used(stream: i32, syn_at: i64, closing_at: i64) -> (Member, Request) {
    (
        Member {
            stream,
            syn_at,
            ready_at: Some(syn_at + 1),
            closing_at: Some(closing_at),
            closed_at: closing_at,
            ..POOL
        },
        Request { stream, number: 0, request_at: Some(syn_at + 2), response_done_at: Some(closing_at - 10) },
    )
}

fn surveyed(connections: &[(Member, Request)]) -> Vec<Surroundings> {
    let (members, requests): (Vec<_>, Vec<_>) = connections.iter().copied().unzip();
    survey(&members, &requests)
}

#[test]
fn one_after_the_other_could_have_been_one() {
    let found = surveyed(&[used(0, 0, 100), used(1, 101, 200)]);
    assert_eq!(found[0], Surroundings { at_once: 1, ..Surroundings::default() });
    assert_eq!(
        found[1],
        Surroundings { place: 1, at_once: 1, again: true, previous: Some(0), ..Surroundings::default() }
    );
}

#[test]
fn side_by_side_they_are_needed() {
    let found = surveyed(&[used(0, 0, 100), used(1, 50, 200)]);
    assert_eq!(found[1], Surroundings { place: 1, open_before: 1, at_once: 2, ..Surroundings::default() });
}

#[test]
fn what_a_server_says_unasked_makes_no_connection_idle() {
    let (first, one) = used(0, 0, 100);
    let (first, request) = (Member { first_exchange: Some(1), ..first }, Request { number: 1, ..one });
    let greeting = Request { number: 0, request_at: None, response_done_at: Some(1), ..one };
    let push = Request { number: 2, request_at: None, response_done_at: Some(95), ..one };
    for (syn_at, idle) in [(50, 0), (94, 1), (98, 1), (101, 0)] {
        let (second, _) = used(1, syn_at, 300);
        assert_eq!(survey(&[first, second], &[greeting, request, push])[1].idle_before, idle, "{syn_at}");
    }
}

#[test]
fn what_has_answered_is_idle_until_it_is_asked_again() {
    let (first, one) = used(0, 0, 100);
    let again = Request { number: 1, request_at: Some(92), response_done_at: Some(96), ..one };
    for (syn_at, idle) in [(89, 0), (91, 1), (94, 0), (97, 1), (101, 0)] {
        let (second, _) = used(1, syn_at, 300);
        let found = survey(&[first, second], &[one, again]);
        assert_eq!((syn_at, found[1].idle_before), (syn_at, idle));
    }
}

#[test]
fn what_is_asked_after_the_end_leaves_nothing_busy_or_idle() {
    let (first, one) = used(0, 0, 100);
    let late = Request { number: 1, request_at: Some(150), response_done_at: None, ..one };
    for syn_at in [120, 160] {
        let (second, other) = used(1, syn_at, 300);
        let found = survey(&[first, second], &[one, late, other]);
        assert_eq!((found[1].open_before, found[1].idle_before, found[1].again), (0, 0, true), "opened at {syn_at}");
    }
}

#[test]
fn what_ends_leaves_idle_what_others_could_use() {
    let found = surveyed(&[used(0, 0, 100), used(1, 0, 95), used(2, 0, 300)]);
    assert_eq!((found[1].idle_left, found[0].idle_left, found[2].idle_left), (1, 0, 0));
}

#[test]
fn other_names_are_other_pools_of_the_same_ends() {
    let ((first, one), (second, other)) = (used(0, 0, 100), used(1, 200, 300));
    let found = surveyed(&[(first, one), (Member { pool: 2, ..second }, other)]);
    assert_eq!(found[1], Surroundings { place: 1, at_once: 1, ..Surroundings::default() });
}

#[test]
fn what_was_never_used_or_ready_is_beside_nobody() {
    let ((first, one), (second, other)) = (used(0, 0, 100), used(1, 50, 300));
    let never = Member { ready_at: None, first_exchange: None, ..first };
    let found = surveyed(&[(never, one), (second, other)]);
    assert_eq!((found[1].open_before, found[1].idle_before, found[1].at_once), (0, 0, 1));
    let multiplexed = Member { multiplexed: true, ..first };
    let found = surveyed(&[(multiplexed, one), (second, other)]);
    assert_eq!((found[1].open_before, found[1].idle_before, found[1].at_once), (1, 0, 2));
}

fn members() -> impl Strategy<Value = Vec<(Member, Vec<Request>)>> {
    let member = (0..3_u64, 0..30_i64, prop::option::of(0..20_i64), 0..30_i64, any::<bool>(), any::<bool>());
    let requests = prop::collection::vec((prop::option::of(0..60_i64), prop::option::of(0..60_i64)), 0..4);
    prop::collection::vec((member, requests), 0..12).prop_map(|drawn| {
        (0..)
            .zip(drawn)
            .map(|(stream, ((pool, syn_at, ready, lasts, closes, multiplexed), requests))| {
                let closed_at = syn_at + 20 + lasts;
                let member = Member {
                    stream,
                    ends: pool / 2,
                    pool,
                    syn_at,
                    ready_at: ready.map(|ready| syn_at + ready),
                    closing_at: closes.then_some(closed_at - 1),
                    closed_at,
                    first_exchange: (!requests.is_empty()).then_some(0),
                    multiplexed,
                };
                let requests = (0..).zip(requests).map(|(number, (request_at, response_done_at))| Request {
                    stream,
                    number,
                    request_at,
                    response_done_at,
                });
                (member, requests.collect())
            })
            .collect()
    })
}

proptest! {
    /// Counted for each connection by itself, from what is meant rather than in one sweep.
    #[test]
    fn the_sweep_counts_what_was_there(connections in members()) {
        let of_members: Vec<Member> = connections.iter().map(|(member, _)| *member).collect();
        let requests: Vec<Request> = connections.iter().flat_map(|(_, requests)| requests.clone()).collect();
        let found = survey(&of_members, &requests);
        prop_assert_eq!(found.len(), of_members.len());
        for (surroundings, mine) in found.iter().zip(&of_members) {
            let at = mine.syn_at;
            let others = || of_members.iter().filter(|one| one.pool == mine.pool && one.stream != mine.stream);
            let open = others().filter(|one| one.ready_at.is_some_and(|ready| ready < at)).count()
                - others().filter(|one| one.ready_at.is_some_and(|ready| ready < at) && one.ended_at() < at).count();
            prop_assert_eq!(usize::try_from(surroundings.open_before).unwrap(), open);
            let before = of_members.iter().filter(|one| {
                one.ends == mine.ends && (one.syn_at, one.stream) < (mine.syn_at, mine.stream)
            });
            prop_assert_eq!(usize::try_from(surroundings.place).unwrap(), before.count());
            let closed = others().filter(|one| one.closing_at.is_some_and(|closing| closing <= at));
            let previous = closed.max_by_key(|one| (one.closing_at, one.stream)).map(|one| one.stream);
            prop_assert_eq!(surroundings.previous, previous);
            let there = |when: i64, order: (i32, i32)| others()
                .filter(|one| one.first_exchange.is_some())
                .filter(|one| (one.syn_at, (1, one.stream)) < (when, order))
                .filter(|one| one.closing_at.is_none_or(|closing| (closing, (-1, one.stream)) > (when, order)))
                .count();
            if mine.first_exchange.is_some() {
                prop_assert_eq!(usize::try_from(surroundings.at_once).unwrap(), 1 + there(at, (1, mine.stream)));
            }
        }
    }
}

mod judging {
    use crate::correlate::pools::judging::{Connection, Evidence, Exchange, Judged, Secured};
    use crate::stream::Side;

    const MS: i64 = 1_000_000;

    fn connection(stream: i32) -> Connection {
        Connection {
            stream,
            client_ip: "10.0.0.1".into(),
            server_ip: "10.0.0.2".into(),
            server_port: 443,
            hop: "server".into(),
            opened_at: 5,
            syn_at: Some(5),
            closed_at: 900 * MS,
            rtt_client_ns: Some(MS),
            rtt_server_ns: Some(20 * MS),
            ..Connection::default()
        }
    }

    fn exchange(number: i32, request_at: i64, response_at: Option<i64>) -> Exchange<'static> {
        Exchange {
            stream: 1,
            number,
            is_asking: true,
            request_at: Some(request_at),
            request_done_at: Some(request_at),
            response_at,
            response_done_at: response_at,
            protocol: "http/1.1",
            kind: Some("web"),
            store: None,
            status: Some(200),
            client_keepalive: Some(true),
            server_keepalive: Some(true),
            is_answered: true,
        }
    }

    fn judged(connection: Connection, secured: Option<Secured>, exchanges: &[Exchange<'_>]) -> Judged {
        let mut evidence = Evidence::default();
        evidence.connection(connection);
        evidence.opening(1, 20 * MS);
        if let Some(secured) = secured {
            evidence.handshake(1, secured);
        }
        for one in exchanges {
            evidence.refusal(one);
        }
        for one in exchanges {
            evidence.exchange(one);
        }
        evidence.judged().remove(0)
    }

    #[test]
    fn what_was_said_is_told_in_all() {
        let later =
            Exchange { status: Some(404), server_keepalive: Some(false), ..exchange(1, 60 * MS, Some(70 * MS)) };
        let found = judged(connection(1), None, &[later, exchange(0, 30 * MS, Some(40 * MS))]);
        assert_eq!((found.exchanges, found.first_exchange), (2, Some(0)));
        assert_eq!((found.first_request_at, found.last_done_at), (Some(30 * MS), Some(70 * MS)));
        assert_eq!((found.last_status, found.ended_by), (Some(404), Some(Side::Server)));
        assert_eq!((found.ready_at, found.rtt_ns()), (Some(20 * MS), Some(21 * MS)));
    }

    #[test]
    fn what_asks_for_nothing_is_not_counted() {
        let notice = Exchange { is_asking: false, ..exchange(0, 30 * MS, None) };
        let found = judged(connection(1), None, &[notice]);
        assert_eq!((found.exchanges, found.first_request_at, found.answered), (0, None, false));
    }

    #[test]
    fn a_request_after_the_servers_fin_that_a_rst_answers_was_refused() {
        let resetting = Connection {
            fin_server_at: Some(50 * MS),
            rst_at: Some(81 * MS),
            fin_by: Some(Side::Server),
            rst_by: Some(Side::Server),
            ..connection(1)
        };
        let found = judged(resetting, None, &[exchange(0, 30 * MS, Some(40 * MS)), exchange(1, 80 * MS, None)]);
        assert_eq!((found.refused_exchange, found.refused_at), (Some(1), Some(80 * MS)));
        assert_eq!((found.closing_at, found.refused_until), (Some(50 * MS), Some(81 * MS)));
        assert_eq!(found.exchanges, 1, "the connection served one");
    }

    #[test]
    fn a_fin_that_follows_sooner_than_an_answer_could_is_the_servers_own() {
        let closing = |fin_server_at| Connection {
            fin_client_at: Some(100 * MS),
            fin_server_at: Some(fin_server_at),
            fin_by: Some(Side::Client),
            ..connection(1)
        };
        assert_eq!(judged(closing(118 * MS), None, &[]).ended_by, Some(Side::Server));
        assert_eq!(judged(closing(119 * MS), None, &[]).ended_by, Some(Side::Client));
        assert_eq!(judged(closing(119 * MS), None, &[]).closing_at, Some(100 * MS));
    }

    #[test]
    fn a_connection_is_usable_after_its_handshake_if_that_succeeded() {
        let secured =
            |is_complete| Secured { ready_at: Some(60 * MS), is_complete: Some(is_complete), ..Secured::default() };
        assert_eq!(judged(connection(1), Some(secured(true)), &[]).ready_at, Some(60 * MS));
        let failed = judged(connection(1), Some(secured(false)), &[]);
        assert_eq!((failed.ready_at, failed.tls), (None, true));
    }
}
