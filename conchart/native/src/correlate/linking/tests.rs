#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use proptest::prelude::*;

use super::model::Setup;
use super::sections::{MARGIN, MOST_BACKS};
use super::split::Split;
use super::*;

const MS: i64 = 1_000_000;
const PROXY: i32 = 7;

/// A front of the proxy: asked at, answered at (ms), with a response of so many bytes.
fn front(stream: i32, number: i32, requested: i64, answered: i64, bytes: i64) -> Exchange {
    Exchange {
        stream,
        number: Some(number),
        accepted_by: Some(PROXY),
        endpoint: 80,
        request_at: requested * MS,
        request_done_at: requested * MS,
        response_at: Some(answered * MS),
        response_done_at: Some(answered * MS),
        closed_at: answered * MS,
        request_bytes: Some(100),
        response_bytes: Some(bytes),
        confidence: 1.0,
        ..Exchange::default()
    }
}

fn back(stream: i32, number: i32, requested: i64, answered: i64, bytes: i64) -> Exchange {
    let exchange = front(stream, number, requested, answered, bytes);
    Exchange { accepted_by: None, opened_by: Some(PROXY), endpoint: 8080, ..exchange }
}

/// Streams and numbers of the links, in order.
fn linked(exchanges: &[Exchange]) -> Vec<((i32, i32), (i32, i32))> {
    let key = |index: u32| (exchanges[index as usize].stream, exchanges[index as usize].number.unwrap());
    let mut keys: Vec<_> = link(exchanges).iter().map(|link| (key(link.front), key(link.back))).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn what_a_machine_asks_by_itself_is_linked_with_no_scrape() {
    let backs = (0..40).map(|number| back(1, number, i64::from(number) * 11, i64::from(number) * 11 + 1, 400));
    let scrapes =
        (0..5).map(|number| front(100 + number, 0, i64::from(number) * 90, i64::from(number) * 90 + 15, 8_000));
    assert_eq!(linked(&backs.chain(scrapes).collect::<Vec<_>>()), []);
}

#[test]
fn one_health_check_of_five_that_meets_a_request_is_a_coincidence() {
    let checks = (0..5).map(|number| front(100 + number, 0, i64::from(number) * 200, i64::from(number) * 200 + 2, 60));
    let exchanges: Vec<_> = checks.chain([back(1, 0, 400, 401, 400)]).collect();
    assert_eq!(linked(&exchanges), []);
}

#[test]
fn a_back_within_a_wait_is_linked_and_one_beside_it_is_not() {
    let exchanges =
        [front(0, 0, 0, 50, 300), back(1, 0, 1, 49, 300), front(2, 0, 100, 150, 300), back(1, 1, 160, 170, 300)];
    assert_eq!(linked(&exchanges), [((0, 0), (1, 0))]);
}

#[test]
fn sizes_tell_two_that_are_asked_at_once() {
    let mut exchanges = Vec::new();
    for round in 0..20 {
        let at = i64::from(round) * 100;
        // The longer response belongs to the front that came first, whichever was asked first behind.
        exchanges.push(front(0, round, at, at + 40, 5_000));
        exchanges.push(front(1, round, at, at + 40, 300));
        exchanges.push(back(2, round, at + 2, at + 38, 254));
        exchanges.push(back(3, round, at + 2, at + 38, 4_954));
    }
    let expected = (0..20).flat_map(|round| [((0, round), (3, round)), ((1, round), (2, round))]);
    let mut expected: Vec<_> = expected.collect();
    expected.sort_unstable();
    assert_eq!(linked(&exchanges), expected);
}

#[test]
fn a_front_alone_has_any_number_of_backs() {
    let mut exchanges = Vec::new();
    for round in 0..6 {
        let at = i64::from(round) * 100;
        exchanges.push(front(0, round, at, at + 40, 300));
        exchanges.extend(
            (0..13).map(|n| back(1, 13 * round + n, at + 2 + 2 * i64::from(n), at + 3 + 2 * i64::from(n), 254)),
        );
    }
    let expected: Vec<_> = (0..6).flat_map(|round| (0..13).map(move |n| ((0, round), (1, 13 * round + n)))).collect();
    assert_eq!(linked(&exchanges), expected);
    assert!(link(&exchanges).iter().all(|link| link.confidence > 0.9));
    // What comes while no front waits lowers the confidence.
    let surest = |exchanges: &[Exchange]| {
        let mut found = f64::NAN;
        sections(exchanges, |section| {
            let sole = sole(section, &candidates(section, &Programs::default(), &Poolers::default()).0);
            found = sole.values().map(|sole| sole.confidence).fold(0.0, f64::max);
        });
        found
    };
    assert!(surest(&exchanges) > 0.98);
    exchanges.extend((0..60).map(|n| back(1, 1_000 + n, 45 + 8 * i64::from(n), 46 + 8 * i64::from(n), 254)));
    assert!(surest(&exchanges) < 0.75);
}

#[test]
fn a_single_front_has_the_backs_that_come_while_it_waits() {
    let page = Exchange { closed_at: 100 * MS, ..front(0, 0, 10, 50, 300) };
    let backs = (0..13).map(|n| back(1, n, 12 + 2 * i64::from(n), 13 + 2 * i64::from(n), 254));
    let exchanges: Vec<_> = std::iter::once(page).chain(backs).collect();
    assert_eq!(linked(&exchanges).len(), 13);
}

/// Two workers, each with a connection from the proxy and one to the store, on which a page asks three to eleven times.
fn of_workers() -> Vec<Exchange> {
    let by_chance = |seed: i32| (seed * seed * 31 + seed * 17) % 23;
    let mut free_at = [0i64; 2];
    let mut exchanges = Vec::new();
    for round in 0..60 {
        for (worker, free_at) in (0..).zip(&mut free_at) {
            let page: i32 = 2 * round + worker;
            let requested = *free_at + 2 + i64::from(by_chance(page) / 4);
            let mut at = requested + 2 + i64::from(by_chance(page + 7) / 5);
            let mut backs = Vec::new();
            for number in 0..3 + by_chance(page + 5) % 9 {
                let kind = Some(10 + 2 * (page as u64 % 3) + u64::from(number == 0));
                backs.push(Exchange { kind, ..back(10 + worker, 12 * round + number, at, at + 1, 254) });
                at += 2 + i64::from(by_chance(page + number) % 2);
            }
            *free_at = at + i64::from(by_chance(page + 3) / 6);
            exchanges.push(Exchange { kind: Some(page as u64 % 3), ..front(worker, round, requested, *free_at, 300) });
            exchanges.append(&mut backs);
        }
    }
    exchanges.sort_by_key(|exchange| exchange.request_at);
    exchanges
}

#[test]
fn what_a_worker_asks_on_its_connection_belongs_to_the_page_that_it_serves() {
    let exchanges = of_workers();
    let backs = exchanges.iter().filter(|exchange| exchange.opened_by.is_some()).count();
    let right = |link: &Link| {
        let (front, back) = (&exchanges[link.front as usize], &exchanges[link.back as usize]);
        back.stream == front.stream + 10 && Some(back.number.unwrap() / 12) == front.number
    };
    let links = link(&exchanges);
    assert_eq!(links.len(), backs);
    assert!(links.iter().all(|link| right(link) && link.confidence > 0.9));
}

#[test]
fn who_retries_has_two_backs() {
    let mut exchanges = Vec::new();
    for round in 0..20 {
        let at = i64::from(round) * 100;
        exchanges.push(front(0, round, at, at + 40, 300));
        exchanges.push(back(1, round, at + 1, at + 10, 254));
        exchanges.push(back(2, round, at + 11, at + 39, 254));
    }
    assert_eq!(linked(&exchanges).len(), 40);
}

#[test]
fn a_proxy_that_is_late_serves_in_turn() {
    // Each waits for the five before it: the nearest front is never the right one.
    let mut exchanges = Vec::new();
    for number in 0..200 {
        let turn = i64::from(number);
        let at = turn * 10 + turn * turn % 7;
        let bytes = 300 + turn * turn * turn % 5 * 1_000;
        exchanges.push(front(number, 0, at, at + 100, bytes));
        exchanges.push(back(1_000, number, at + 55, at + 60, bytes - 46));
    }
    let right = linked(&exchanges).iter().filter(|((front, _), (_, back))| front == back).count();
    assert!(right >= 190, "{right}");
}

/// Requests every 10 ms, each asked for behind so long after it came, and answered so long after that.
fn queued(late: i64) -> Vec<Exchange> {
    let mut exchanges = Vec::new();
    for round in 0..200 {
        let at = i64::from(round) * 10;
        exchanges.push(front(round, 0, at, at + 2 * late + 30, 300));
        let setup = Some(Setup { opened_at: (at + late) * MS, ..Setup::default() });
        exchanges.push(Exchange { setup, first: true, ..back(1_000 + round, 0, at + late, at + late + 30, 254) });
    }
    exchanges
}

#[test]
fn a_queue_longer_than_the_next_request_is_away_fits_shifted_by_one_too() {
    let right =
        |exchanges: &[Exchange]| linked(exchanges).iter().filter(|(front, back)| front.0 + 1_000 == back.0).count();
    assert_eq!(right(&queued(3)), 200);
    let doubtful = linked(&queued(12)).len();
    assert!(doubtful <= 40, "{doubtful} of 200");
    // Whoever hands on identifiers leaves no doubt.
    let mut marked = queued(12);
    for exchange in &mut marked {
        exchange.ids = vec![u64::try_from(exchange.stream % 1_000).unwrap()];
    }
    assert_eq!(right(&marked), 200);
}

#[test]
fn identifiers_tell_what_time_does_not() {
    let mut exchanges = Vec::new();
    for round in 0..10u64 {
        let (number, at) = (i32::try_from(round).unwrap(), i64::try_from(round).unwrap() * 100);
        for (stream, id) in [(0, 2 * round), (1, 2 * round + 1)] {
            exchanges.push(Exchange { ids: vec![id], ..front(stream, number, at, at + 40, 300) });
            exchanges.push(Exchange { ids: vec![id], ..back(stream + 2, number, at + 2, at + 38, 300) });
        }
    }
    assert!(linked(&exchanges).iter().all(|((front, _), (back, _))| front + 2 == *back));
    assert_eq!(linked(&exchanges).len(), 20);
}

/// What a machine accepts and opens itself: it is asked, and it asks.
fn within(exchange: Exchange) -> [Exchange; 2] {
    let asks = Exchange { accepted_by: None, opened_by: Some(PROXY), ..exchange.clone() };
    [Exchange { accepted_by: Some(PROXY), opened_by: None, ..exchange }, asks]
}

/// Links between programs of one machine, each by its front's and its back's endpoint and whether it is right: a front has the
/// same number as its back.
fn linked_programs(exchanges: &[Exchange]) -> Vec<(i32, i32, bool)> {
    let of = |index: u32| &exchanges[index as usize];
    link(exchanges)
        .iter()
        .map(|l| (of(l.front), of(l.back)))
        .map(|(f, b)| (f.endpoint, b.endpoint, f.number == b.number))
        .collect()
}

#[test]
fn of_two_programs_of_one_machine_one_causes_what_the_other_is_asked() {
    let mut exchanges = Vec::new();
    for number in 0..150 {
        // A dozen wait at any time, on either side: whatever is asked lies within something of the other.
        let turn = i64::from(number);
        let (at, took) = (turn * 5, 40 + turn * turn % 41);
        exchanges.extend(within(front(number, number, at, at + took + 2, 300)));
        exchanges
            .extend(within(Exchange { endpoint: 8080, ..front(1_000 + number, number, at + 1, at + took + 1, 254) }));
    }
    let links = linked_programs(&exchanges);
    assert!(links.iter().all(|&(front, back, _)| (front, back) == (80, 8080)));
    assert!(links.iter().filter(|(.., right)| *right).count() >= 140);
}

#[test]
fn stores_that_are_asked_at_once_cause_nothing_of_each_other() {
    let mut exchanges = Vec::new();
    for number in 0..80 {
        let turn = i64::from(number);
        let (at, took) = (turn * 100, 20 + turn * turn % 31);
        exchanges.extend(within(front(number, number, at, at + 60, 300)));
        exchanges.extend(within(Exchange { endpoint: 8080, ..front(1_000, number, at + 1, at + took, 254) }));
        exchanges.extend(within(Exchange { endpoint: 8081, ..front(1_001, number, at + 2, at + 50 - took / 2, 254) }));
    }
    let links = linked_programs(&exchanges);
    assert_eq!(links.len(), 160);
    assert!(links.iter().all(|&(front, _, right)| front == 80 && right));
}

#[test]
fn a_relay_behind_a_proxy_that_opens_connections_is_in_the_middle() {
    let mut exchanges = Vec::new();
    for number in 0..12 {
        // SOCKS, and a request on the same connection: the relay connects to the server when it is connected to itself.
        let at = i64::from(number) * 100;
        let request = front(number, 0, at, at + 4, 10);
        exchanges.extend(within(Exchange { endpoint: 1080, opens: true, ..request }));
        for (endpoint, stream, late) in [(1234, 100 + number, 1), (8000, 200 + number, 5)] {
            let opening = back(stream, 0, at + late, at + late + 1, 10);
            exchanges.push(Exchange { endpoint, number: None, ..opening });
        }
        for (endpoint, stream, place, late) in
            [(1080, number, 1, 0), (1234, 100 + number, 0, 1), (8000, 200 + number, 0, 2)]
        {
            let request = front(stream, place, at + 20 + late, at + 50 - late, 300);
            exchanges.extend(within(Exchange { endpoint, ..request }));
        }
    }
    let mut pairs: Vec<_> = linked_programs(&exchanges).into_iter().map(|(front, back, _)| (front, back)).collect();
    pairs.sort_unstable();
    pairs.dedup();
    assert_eq!(pairs, [(1080, 1234), (1234, 8000)]);
}

/// Fronts and backs of all sections: what linking has to look at.
fn looked_at(exchanges: &[Exchange]) -> usize {
    let mut sum = 0;
    sections(exchanges, |section| sum += section.fronts.len() + section.backs.len());
    sum
}

#[test]
fn of_thousands_of_machines_each_looks_at_its_own() {
    let mut exchanges = Vec::new();
    for machine in 0..5_000 {
        let (requested, endpoint) = (i64::from(machine), machine + 10_000);
        let of_it = front(machine, 0, requested, requested + 50, 300);
        exchanges.push(Exchange { accepted_by: Some(machine), endpoint, ..of_it });
        let of_it = back(machine + 10_000, 0, requested + 1, requested + 49, 300);
        exchanges.push(Exchange { opened_by: Some(machine), ..of_it });
    }
    assert_eq!(looked_at(&exchanges), exchanges.len());
    let links = linked(&exchanges);
    assert_eq!(links.len(), 5_000);
    assert!(links.iter().all(|((front, _), (back, _))| front + 10_000 == *back));
}

#[test]
fn of_thousands_of_connections_handed_through_each_looks_at_its_own() {
    let mut exchanges = Vec::new();
    for pair in 0..12_000 {
        let requested = i64::from(pair);
        let of_it = front(pair, 0, requested, requested + 50, 300);
        exchanges.push(Exchange { accepted_by: Some(-pair - 1), ..of_it });
        let of_it = back(pair + 20_000, 0, requested + 1, requested + 49, 300);
        exchanges.push(Exchange { opened_by: Some(-pair - 1), through: Some(pair), ..of_it });
    }
    assert_eq!(looked_at(&exchanges), exchanges.len());
    assert_eq!(linked(&exchanges).len(), 12_000);
}

#[test]
fn a_busy_machine_is_cut_where_nobody_waits() {
    let mut exchanges = Vec::new();
    for number in 0..12_000 {
        // Pairs wait side by side, and overlap no other pair.
        let requested = i64::from(number / 2) * 100 + i64::from(number % 2) * 10;
        exchanges.push(front(number, 0, requested, requested + 50, 300));
        exchanges.push(back(number + 20_000, 0, requested + 1, requested + 49, 300));
    }
    // One waits throughout, and was never answered.
    exchanges.push(Exchange { response_at: None, ..front(50_000, 0, 0, 1_000_000, 300) });
    let mut own = Vec::new();
    sections(&exchanges, |section| {
        let backs = &section.backs[section.own.clone()];
        assert!(backs.len() <= MOST_BACKS && section.backs.len() <= backs.len() + 2 * MARGIN);
        assert!(section.fronts.iter().any(|(_, front)| front.stream == 50_000));
        assert_eq!(backs[0].1.stream % 2, 0, "cut within a pair");
        own.extend(backs.iter().map(|(_, back)| back.stream));
    });
    assert_eq!(own, (20_000..32_000).collect::<Vec<_>>());
    assert_eq!(looked_at(&exchanges), exchanges.len() + 2 * 2 * MARGIN + 1);
    let links = linked(&exchanges);
    assert_eq!(links.len(), 12_000);
    assert!(links.iter().all(|((front, _), (back, _))| front + 20_000 == *back));
}

#[test]
fn of_thousands_that_wait_the_latest_are_looked_at() {
    let mut exchanges: Vec<_> = (0..3_000).map(|number| front(number, 0, 0, 1_000_000, 300)).collect();
    exchanges.extend(
        (0..500).map(|number| front(5_000 + number, 0, 100 * i64::from(number), 100 * i64::from(number) + 50, 300)),
    );
    exchanges.extend(
        (0..500).map(|number| back(9_000, number, 100 * i64::from(number) + 1, 100 * i64::from(number) + 49, 300)),
    );
    let right = linked(&exchanges).iter().filter(|((front, _), (_, back))| *front == 5_000 + back).count();
    assert!(right >= 490, "{right}");
}

#[test]
fn an_opening_is_charged_as_connecting() {
    let front = Exchange { opens: true, ..front(0, 0, 0, 50, 300) };
    let setup = Setup { opened_at: 10 * MS, connected_at: Some(40 * MS), ..Setup::default() };
    let opening = Exchange { number: None, setup: Some(setup), first: true, ..back(1, 0, 10, 40, 0) };
    let expected = Split { proxy_in: 10 * MS, connect: 30 * MS, proxy_out: 10 * MS, ..Split::default() };
    assert_eq!(split(&front, &[&opening]), Some(vec![expected]));
}

#[test]
fn the_first_of_several_on_a_new_connection_is_charged_for_its_opening_alone() {
    let front = front(0, 0, 0, 100, 300);
    let setup = Setup { opened_at: 10 * MS, connected_at: Some(20 * MS), ready_at: Some(20 * MS), ..Setup::default() };
    let times = [(25, 45), (50, 70), (75, 95)];
    let on_it = |(number, &(at, end)): (usize, &(i64, i64))| Exchange {
        setup: Some(setup),
        first: number == 0,
        ..back(1, number.try_into().unwrap(), at, end, 300)
    };
    let backs: Vec<_> = times.iter().enumerate().map(on_it).collect();
    let splits = split(&front, &backs.iter().collect::<Vec<_>>()).unwrap();
    assert_eq!(splits.iter().map(|split| split.wait).collect::<Vec<_>>(), [20 * MS; 3]);
    assert_eq!(splits.iter().map(|split| split.connect).collect::<Vec<_>>(), [10 * MS, 0, 0]);
}

fn setups(opened_at: i64) -> impl Strategy<Value = Option<Setup>> {
    proptest::option::of((0..40i64, 0..40i64, 0..40i64).prop_map(move |(connected, hello, ready)| Setup {
        opened_at,
        connected_at: Some(opened_at + connected),
        hello_at: Some(opened_at + connected + hello),
        ready_at: Some(opened_at + connected + hello + ready),
    }))
}

fn anything() -> impl Strategy<Value = Exchange> {
    let number = proptest::option::of(Just(0));
    (-50..150i64, 0..80i64, proptest::option::of(0..80i64), any::<bool>(), number).prop_flat_map(
        |(requested, took, answered, first, number)| {
            setups(requested - 30).prop_map(move |setup| Exchange {
                number,
                request_at: requested,
                request_done_at: requested + took,
                response_at: answered.map(|answered| requested + answered),
                closed_at: requested + 200,
                setup,
                first,
                ..Exchange::default()
            })
        },
    )
}

proptest! {
    #[test]
    fn every_nanosecond_of_a_wait_is_charged_once(
        wait in 0..100i64,
        backs in proptest::collection::vec(anything(), 1..5),
    ) {
        let front = Exchange { request_done_at: 0, response_at: Some(wait), ..Exchange::default() };
        let splits = split(&front, &backs.iter().collect::<Vec<_>>()).unwrap();
        let parts = splits.iter().flat_map(|s| [s.proxy_in, s.connect, s.tls, s.request, s.wait, s.proxy_out]);
        let parts: Vec<i64> = parts.collect();
        prop_assert_eq!(parts.iter().sum::<i64>(), wait);
        prop_assert!(parts.iter().all(|&part| part >= 0));
    }

    #[test]
    fn programs_of_one_machine_cause_each_other_in_no_circle(
        times in proptest::collection::vec((0..5i32, 0..300i64, 1..60i64), 0..60),
    ) {
        let exchange = |(&(program, at, took), number)| Exchange { endpoint: program, ..front(number, 0, at, at + took, 300) };
        let exchanges: Vec<Exchange> = times.iter().zip(0..).map(exchange).flat_map(within).collect();
        let mut links = linked_programs(&exchanges);
        // Who causes nothing goes first: of a circle, somebody stays.
        while let Some(idle) = (0..5).find(|idle| links.iter().any(|l| l.1 == *idle) && links.iter().all(|l| l.0 != *idle)) {
            links.retain(|&(_, back, _)| back != idle);
        }
        prop_assert!(links.is_empty(), "{links:?}");
    }

    #[test]
    fn no_back_has_two_fronts_and_confidence_is_a_probability(
        times in proptest::collection::vec((0..300i64, 1..60i64, any::<bool>()), 0..40),
    ) {
        let exchanges: Vec<Exchange> = times
            .iter()
            .zip(0..)
            .map(|(&(at, took, is_front), number)| {
                if is_front { front(number, 0, at, at + took, 300) } else { back(number, 0, at, at + took, 300) }
            })
            .collect();
        let links = link(&exchanges);
        let mut backs: Vec<u32> = links.iter().map(|link| link.back).collect();
        backs.sort_unstable();
        backs.dedup();
        prop_assert_eq!(backs.len(), links.len());
        prop_assert!(links.iter().all(|link| link.confidence > 0.5 && link.confidence <= 1.0));
    }
}
