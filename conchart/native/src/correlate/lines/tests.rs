#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use super::{Clock, Line, Request, pair};

const MS: i64 = 1_000_000;
const FINE: Clock = Clock { grain_ns: MS, slack_ns: MS / 2, limit_ns: 1_000 * MS };
const WHOLE_SECONDS: Clock = Clock { grain_ns: 1_000 * MS, slack_ns: 100 * MS, limit_ns: 1_000 * MS };

fn request(number: i32, start_ms: i64, took_ms: i64, bytes: i64) -> Request {
    let (start_at, end_at) = (start_ms * MS, (start_ms + took_ms) * MS);
    Request { group: 1, stream: 0, number, start_at, low_at: end_at, high_at: end_at, bytes: Some(bytes + 200) }
}

/// The line of an exchange: by a clock that cuts off, with or without the duration.
fn line(request: &Request, clock: Clock, took: bool) -> Line {
    let cut = |at: i64| at.div_euclid(clock.grain_ns) * clock.grain_ns;
    let took_ns = took.then(|| (request.low_at - request.start_at) / MS * MS);
    let end_at = cut(request.low_at);
    Line {
        group: 1,
        id: i64::from(request.number),
        start_at: took_ns.filter(|_| clock.grain_ns == MS).map(|took| end_at - took),
        end_at: Some(end_at),
        took_ns,
        bytes: request.bytes.map(|bytes| bytes - 200),
    }
}

/// 64 at a time, all alike but for how long they take, and written in the order of their ends.
fn crowd(count: i32) -> (Vec<Request>, Vec<usize>) {
    let requests: Vec<Request> = (0..count)
        .map(|number| {
            let took = 20 + i64::from(number) * 7_919 % 61;
            request(number, i64::from(number) * 40 / 64, took, 1_000)
        })
        .collect();
    let mut order: Vec<usize> = (0..requests.len()).collect();
    order.sort_by_key(|place| requests[*place].low_at);
    (requests, order)
}

fn right(requests: &[Request], lines: &[Line], clock: Clock) -> (usize, usize) {
    let pairs = pair(lines, requests, clock);
    (pairs.iter().filter(|pair| pair.line == i64::from(pair.number)).count(), pairs.len())
}

#[test]
fn durations_tell_requests_apart_that_are_alike() {
    let (requests, order) = crowd(20_000);
    let lines: Vec<Line> = order.iter().map(|place| line(&requests[*place], FINE, true)).collect();
    let (right, pairs) = right(&requests, &lines, FINE);
    assert_eq!(pairs, requests.len());
    assert!(right * 1000 >= pairs * 990, "{right} of {pairs}");
}

#[test]
fn a_clock_of_whole_seconds_leaves_the_order_of_the_file() {
    let (requests, order) = crowd(20_000);
    let lines: Vec<Line> = order.iter().map(|place| line(&requests[*place], WHOLE_SECONDS, false)).collect();
    let found = pair(&lines, &requests, WHOLE_SECONDS);
    // Those that end in the same nanosecond cannot be told apart.
    let ended = |number: i64| requests[usize::try_from(number).unwrap()].low_at;
    let right = found.iter().filter(|pair| ended(pair.line) == ended(i64::from(pair.number))).count();
    assert!(right * 1000 >= requests.len() * 990, "{right}");
    assert!(found.iter().all(|pair| pair.confidence < 0.9), "alike");
}

#[test]
fn lines_that_are_missing_shift_no_other() {
    let (requests, order) = crowd(5_000);
    let lines: Vec<Line> = order
        .iter()
        .enumerate()
        .filter(|(number, _)| number % 97 != 5 && !(1_000..1_100).contains(number))
        .map(|(_, place)| line(&requests[*place], FINE, true))
        .collect();
    let (right, pairs) = right(&requests, &lines, FINE);
    assert!(pairs <= lines.len() && right * 100 >= lines.len() * 98, "{right} of {pairs} of {}", lines.len());
}

#[test]
fn an_exchange_has_one_line_at_most_and_a_line_alone_is_sure() {
    let requests = [request(0, 0, 10, 1_000)];
    let lines = [line(&requests[0], FINE, true), Line { id: 7, ..line(&requests[0], FINE, true) }];
    let found = pair(&lines, &requests, FINE);
    assert_eq!(found.len(), 1);
    let alone = pair(&lines[..1], &requests, FINE);
    assert!(alone[0].confidence > 0.95 && alone[0].rivals == 0);
}

#[test]
fn what_is_far_away_in_time_is_not_the_same() {
    let requests = [request(0, 0, 10, 1_000)];
    let late = Line { end_at: Some(5_000 * MS), start_at: Some(4_990 * MS), ..line(&requests[0], FINE, true) };
    assert!(pair(&[late], &requests, FINE).is_empty());
    assert!(pair(&[Line { group: 2, ..line(&requests[0], FINE, true) }], &requests, FINE).is_empty());
}
