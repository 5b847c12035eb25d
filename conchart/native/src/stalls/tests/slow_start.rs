//! Flights that filled the congestion window, and those that did not.

use super::*;

#[test]
fn a_flight_that_waits_for_its_first_acknowledgement_is_slow_start() {
    let mut wire = with_request();
    for number in 0..10 {
        wire.data(f64::from(number) * 0.01, S, number * MSS, 300, MSS);
    }
    wire.ack(20.0, C, 2 * MSS);
    wire.data(20.1, S, 10 * MSS, 300, 2 * MSS);
    assert_eq!(wire.found(phases::Kind::Transfer), [(Kind::SlowStart, None, S, 0, 20)]);
}

/// A response: segments of these lengths, an acknowledgement of the first two 20 ms later, and what goes out then.
fn answered_in(lengths: &[u32], then: u32) -> Vec<(Kind, Option<Detail>, Side, i64, i64)> {
    let mut wire = with_request();
    let mut position = 0;
    for (number, length) in (0_u32..).zip(lengths) {
        wire.data(f64::from(number) * 0.01, S, position, 300, *length);
        position += length;
    }
    wire.ack(20.0, C, position);
    wire.data(20.1, S, position, 300, then);
    wire.found(phases::Kind::Transfer)
}

#[test]
fn a_flight_that_ends_in_a_small_segment_was_all_there_was() {
    let [mut nine, mut eleven] = [vec![MSS; 9], vec![MSS; 11]];
    for lengths in [&mut nine, &mut eleven] {
        *lengths.last_mut().unwrap() -= 1;
        assert_eq!(answered_in(lengths, 2 * MSS), []);
    }
}

#[test]
fn ten_segments_are_the_first_window_however_small_they_are() {
    let slow_start = [(Kind::SlowStart, None, S, 0, 20)];
    for small in 0..10 {
        let lengths: Vec<u32> = (0..10).map(|index| if index == small { 300 } else { MSS }).collect();
        assert_eq!(answered_in(&lengths, 2 * MSS), slow_start, "segment {small}");
        assert_eq!(answered_in(&lengths, 200), slow_start, "segment {small}, and a small one behind");
    }
}

#[test]
fn a_small_segment_behind_any_other_number_waited_for_the_small_one_before() {
    for count in [5, 9, 11] {
        let lengths = [vec![300], vec![MSS; count - 1]].concat();
        assert_eq!(answered_in(&lengths, 200), [(Kind::Nagle, Some(Detail::RoundTrip), S, 0, 20)], "{count} segments");
    }
}

#[test]
fn the_end_of_what_the_congestion_window_keeps_is_not_held() {
    let mut wire = with_request();
    wire.data(0.0, S, 0, 300, 200);
    for segment in 0..8 {
        wire.data(0.0, S, 200 + segment * MSS, 300, MSS);
    }
    wire.ack(80.0, C, 100);
    wire.data(80.1, S, 200 + 8 * MSS, 300, MSS);
    wire.ack(90.0, C, 200);
    wire.data(90.1, S, 200 + 9 * MSS, 300, 117);
    let found = wire.found(phases::Kind::Transfer);
    assert!(found.iter().all(|found| found.0 != Kind::Nagle), "{found:?}");
}

#[test]
fn a_first_window_of_fewer_than_ten_segments_is_a_small_one() {
    for (count, detail) in [(4, Some(Detail::SmallWindow)), (9, Some(Detail::SmallWindow)), (10, None), (11, None)] {
        let slow_start = [(Kind::SlowStart, detail, S, 0, 20)];
        assert_eq!(answered_in(&vec![MSS; count], 2 * MSS), slow_start, "{count} segments");
    }
}

/// A response in 17 short segments and what follows the acknowledgement of the first two, at once; behind them another request,
/// which its sender had before that, but not acknowledged.
fn requested_again(count: u32, pause: f64, then: u32) -> Vec<(Kind, Option<Detail>, Side, i64, i64)> {
    let mut wire = Wire::open(0.1, 20.0);
    wire.data(-40.0, C, 0, 0, 300);
    for number in 0..count {
        wire.timestamps = Some((70, 30));
        wire.data(f64::from(number) * 0.01, S, number * 58, 300, 58);
    }
    wire.timestamps = Some((50, 70));
    wire.data(0.05, C, 300, 0, 200);
    wire.timestamps = Some((51, 70));
    wire.packet(0.9, C, ACK, 500, 116, 0);
    // The echo is the request's: its acknowledgement was due first.
    wire.timestamps = Some((91, 50));
    wire.data(pause, S, count * 58, 500, then);
    wire.found(phases::Kind::Transfer)
}

#[test]
fn short_segments_fill_a_window_that_counts_segments() {
    assert_eq!(requested_again(17, 20.95, MSS - 12), [(Kind::SlowStart, None, S, 0, 20)]);
}

#[test]
fn not_so_if_they_were_few_or_go_on_as_short_or_later() {
    for (count, pause, then) in [(9, 20.95, MSS - 12), (17, 20.95, 58), (17, 31.0, MSS - 12)] {
        assert_eq!(requested_again(count, pause, then), [], "{count} segments, after {pause} ms {then} bytes");
    }
}

/// Twelve segments of which four are short, the last one included, and a full one behind the acknowledgement.
fn cut_up(asks: u32) -> Vec<(Kind, Option<Detail>, Side, i64, i64)> {
    let mut wire = with_request();
    let mut position = 0;
    for number in 0..12 {
        let length = if number % 6 > 3 { 300 } else { MSS };
        wire.data(f64::from(number) * 0.01, S, position, 300, length);
        position += length;
    }
    wire.packet(20.0, C, ACK, 300, 2 * MSS, asks);
    wire.data(20.1, S, position, 300 + asks, MSS);
    wire.found(phases::Kind::Transfer)
}

#[test]
fn what_was_written_in_pieces_fills_it_too_but_an_answer_is_no_rest() {
    assert_eq!(cut_up(0), [(Kind::SlowStart, None, S, 0, 20)]);
    assert_eq!(cut_up(80), []);
}
