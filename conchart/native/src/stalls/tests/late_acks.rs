//! An acknowledgement that comes late: its timestamp tells whether its sender or the path delayed it.

use super::super::clock::Clock;
use super::super::wait::Ack;
use super::*;

/// A server that writes 200 bytes at 0 ms and 500 bytes when these are acknowledged, after 60 ms. Its client, 20 ms away, sent the
/// acknowledgement so many milliseconds after the first piece had passed; its clock counts so many microseconds a tick.
fn answered(sent: u32, tick_us: u32) -> Vec<(Kind, Option<Detail>, Side, i64, i64)> {
    let mut wire = Wire::silent();
    // 10 ms from the client to here.
    let value = |ms: u32| (u32::MAX - 20).wrapping_add((ms + 300) * 1_000 / tick_us);
    let sends = |wire: &mut Wire, ms: u32| wire.timestamps = Some((value(ms), 1));
    sends(&mut wire, 0);
    wire.packet(-290.0, C, SYN, 0, 0, 0);
    wire.timestamps = Some((7, 1));
    wire.packet(-289.9, S, SYN | ACK, 0, 0, 0);
    sends(&mut wire, 20);
    wire.packet(-269.9, C, ACK, 0, 0, 0);
    sends(&mut wire, 280);
    wire.data(-10.0, C, 0, 0, 300);
    wire.timestamps = Some((8, 1));
    wire.data(0.0, S, 0, 300, 200);
    sends(&mut wire, 290 + sent);
    wire.ack(60.0, C, 200);
    wire.timestamps = Some((9, value(290 + sent)));
    wire.data(60.2, S, 200, 300, 500);
    wire.found(phases::Kind::Wait)
}

#[test]
fn an_old_timestamp_tells_of_a_late_path() {
    for tick_us in [1, 1_000, 4_000, 10_000] {
        assert_eq!(answered(10, tick_us), [(Kind::Nagle, Some(Detail::LateAck), S, 0, 60)], "{tick_us} µs a tick");
    }
}

#[test]
fn a_new_timestamp_tells_of_a_peer_that_delays() {
    for tick_us in [1, 1_000, 4_000, 10_000] {
        assert_eq!(answered(50, tick_us), [(Kind::Nagle, Some(Detail::DelayedAck), S, 0, 60)], "{tick_us} µs a tick");
    }
}

#[test]
fn a_clock_of_an_unknown_rate_tells_nothing() {
    assert_eq!(answered(10, 20_000), [(Kind::Nagle, Some(Detail::DelayedAck), S, 0, 60)]);
    assert_eq!(answered(10, 2_000), [(Kind::Nagle, Some(Detail::DelayedAck), S, 0, 60)]);
}

#[test]
fn a_path_that_is_always_as_long_is_not_late_and_a_clock_that_rested_is_asked_anew() {
    let mut clock = Clock::default();
    let ms = |ms: i64| ms * 1_000_000;
    let ack = |value: u32, at| Ack {
        position: 0,
        edge: None,
        largest_window: 0,
        seen: Moment::new(at, 1, Side::Client),
        value: Some(value),
        stands: 0,
    };
    (0..40_u32).for_each(|turn| clock.note(Some(turn * 100), ms(i64::from(turn) * 100 + 35)));
    assert_eq!(clock.delayed(ack(4_000, ms(4_036)), ms(30)), (Detail::DelayedAck, ms(30)));
    assert_eq!(clock.delayed(ack(4_000, ms(4_096)), ms(61)), (Detail::LateAck, ms(1)));
    // It had slept: after ten minutes, nothing is told of the values of before.
    assert_eq!(clock.delayed(ack(4_100, ms(900_000)), ms(61)), (Detail::DelayedAck, ms(61)));
}
