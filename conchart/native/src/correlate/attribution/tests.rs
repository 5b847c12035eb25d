use super::*;

const WAY_NS: i64 = 10;

fn stretch(kind: Kind, exchange: Option<i32>, owner: Option<Owner>, start_at: i64, end_at: i64) -> Stretch {
    Stretch { stream: 1, exchange, kind, owner, start_at, end_at }
}

fn connection() -> Connection {
    Connection { is_served: true, is_answered: true, way_ns: Some(WAY_NS), ..Connection::default() }
}

fn attribution(connection: Connection, stretches: &[Stretch]) -> Attribution {
    Attribution::new(HashMap::from([(1, connection)]), stretches.to_vec(), HashMap::from([((1, 0), (20, 100))]))
}

fn delay(id: i32, start_at: i64, end_at: i64) -> Delay {
    Delay { id, stream: 1, exchange: Some(0), start_at, end_at }
}

fn own_wait() -> Wait {
    Wait { user_stream: 1, stream: 1, exchange: 0, start_at: 0, end_at: 1_000 }
}

#[test]
fn a_wait_is_the_paths_the_proxys_and_the_servers() {
    let found = attribution(connection(), &[stretch(Kind::Wait, Some(0), None, 0, 100)]).owners();
    let expected =
        [((0, Kind::Wait, Owner::Server), 70), ((0, Kind::Wait, Owner::Proxy), 20), ((0, Kind::Wait, Owner::Path), 10)];
    assert_eq!(found, BTreeMap::from(expected));
}

#[test]
fn what_a_stall_explains_is_its_owners() {
    let stretches =
        [stretch(Kind::Transfer, Some(0), None, 0, 100), stretch(Kind::Transfer, Some(0), Some(Owner::Client), 20, 50)];
    let expected = [((0, Kind::Transfer, Owner::Client), 30), ((0, Kind::Transfer, Owner::Path), 70)];
    assert_eq!(attribution(connection(), &stretches).owners(), BTreeMap::from(expected));
}

#[test]
fn without_a_way_nobody_knows_whose_a_wait_is() {
    let stretches = [stretch(Kind::Wait, Some(0), None, 0, 100)];
    let unmeasured = Connection { way_ns: None, ..connection() };
    assert_eq!(attribution(unmeasured, &stretches).owners(), BTreeMap::from([((0, Kind::Wait, Owner::Unknown), 100)]));
    let piggybacked = Connection { is_most: true, ..connection() };
    let found = attribution(piggybacked, &stretches).owners();
    assert_eq!(found.get(&(0, Kind::Wait, Owner::Unknown)), Some(&10));
}

#[test]
fn of_what_is_explained_each_instant_counts_once_and_is_divided_like_the_whole() {
    let stretches =
        [stretch(Kind::Wait, Some(0), None, 0, 100), stretch(Kind::Wait, Some(0), Some(Owner::Path), 80, 100)];
    let mut attribution = attribution(connection(), &stretches);
    let prices = attribution.price(&Delayed::of(vec![delay(7, 0, 40), delay(8, 20, 90)]), &[own_wait()]);
    let paid: Vec<_> = prices.iter().map(|(id, price)| (*id, price.cost_ns, price.critical_ns)).collect();
    assert_eq!(paid, [(7, 40, 40), (8, 70, 70)]);
    assert_eq!(attribution.shared(&[7, 8]), [(7, 0), (8, 20)]);
    // All 80 of the wait that are in no stall (server 50, proxy 20, path 10), and 10 in the path's.
    let expected =
        [((0, Kind::Wait, Owner::Server), 50), ((0, Kind::Wait, Owner::Proxy), 20), ((0, Kind::Wait, Owner::Path), 20)];
    assert_eq!(attribution.explained(&HashSet::from([7, 8])), BTreeMap::from(expected));
    assert_eq!(attribution.explained(&HashSet::from([8])).values().sum::<i64>(), 70);
    assert!(attribution.explained(&HashSet::new()).is_empty());
}

#[test]
fn a_users_clock_stands_still_where_nobody_waits() {
    let stretches = [
        stretch(Kind::Wait, Some(0), None, 0, 100),
        stretch(Kind::Wait, Some(1), None, 500, 600),
        stretch(Kind::Idle, Some(1), Some(Owner::Client), 400, 500),
    ];
    let mut attribution = attribution(connection(), &stretches);
    let prices = attribution.price(&Delayed::of(vec![delay(3, 50, 450)]), &[own_wait()]);
    assert_eq!(prices.first().map(|(_, price)| (price.cost_ns, price.critical_ns)), Some((400, 100)));
}

#[test]
fn what_nobody_answered_is_paid_in_vain() {
    let refused = Connection { is_served: false, is_answered: false, ..connection() };
    let mut attribution = attribution(refused, &[]);
    let prices = attribution.price(&Delayed::of(vec![delay(3, 50, 450)]), &[own_wait()]);
    assert_eq!(prices.first().map(|(_, price)| (price.critical_ns, price.vain_ns)), Some((0, 400)));
    assert!(attribution.explained(&HashSet::from([3])).is_empty());
}

#[test]
fn a_price_has_a_median_with_its_interval_and_says_what_is_unfinished() {
    let open = Connection { goes_on_until: Some(100), ..connection() };
    let mut attribution = attribution(open, &[]);
    let mut delayed = Delayed::of((0..9).map(|length| delay(1, 0, 92 + length)).collect());
    attribution.know(&mut delayed, (1, 0), Some(0.5), Some(80));
    let price = Price {
        count: 9,
        cost_ns: 864,
        unfinished: 1,
        each_ns: Some(96),
        between_ns: Some((92, 100)),
        guessed: Some(0.5),
        ..Price::default()
    };
    assert_eq!(attribution.price(&delayed, &[]), [(1, price)]);
    // Its last packet ended a response: nothing is unfinished.
    attribution.know(&mut delayed, (1, 1), None, Some(100));
    assert_eq!(attribution.price(&delayed, &[]).first().map(|(_, price)| price.unfinished), Some(0));
}
