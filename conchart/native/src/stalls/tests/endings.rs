//! What nothing ended: up to the end of the connection, or of the capture.

use super::*;

/// A response of which 3,420 bytes came at 0 ms, all acknowledged, and then nothing until `end` ms.
fn stopped(end: f64, phase: phases::Kind) -> Vec<(Kind, Option<Detail>, Side, i64, i64)> {
    let mut wire = with_request();
    wire.data(0.0, S, 0, 300, 2 * MSS);
    wire.data(0.1, S, 2 * MSS, 300, 500);
    wire.ack(20.2, C, 2 * MSS + 500);
    wire.packet(end, C, RST, 300, 0, 0);
    wire.stalls.conclude(&wire.tcp, wire.last);
    wire.found(phase)
}

#[test]
fn a_program_that_gives_no_more_of_its_message_is_a_stall_up_to_the_end() {
    assert_eq!(stopped(1_000.0, phases::Kind::Transfer), [(Kind::Sender, None, S, 0, 1_000)]);
}

#[test]
fn a_message_that_is_over_or_of_the_other_side_is_none() {
    assert_eq!(stopped(1_000.0, phases::Kind::Idle), []);
    assert_eq!(stopped(1_000.0, phases::Kind::Request), []);
    // No longer than a round trip or two.
    assert_eq!(stopped(40.0, phases::Kind::Transfer), []);
}

#[test]
fn what_was_not_acknowledged_is_no_pause_of_a_program() {
    let mut wire = with_request();
    wire.data(0.0, S, 0, 300, 500);
    wire.packet(1_000.0, C, RST, 300, 0, 0);
    wire.stalls.conclude(&wire.tcp, wire.last);
    assert_eq!(wire.found(phases::Kind::Transfer), []);
}
