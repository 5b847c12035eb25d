//! SYN, SYN-ACK, ACK: lost, repeated, refused, crossed.

use super::*;

#[test]
fn handshake_gives_both_round_trips_and_sequence_numbers_wrap() {
    let (connection, heard) =
        Script::new().handshake().client(30, 0, 0, "GET /").server(60, 0, 5, "hello").client(61, 5, 5, " again").run();
    assert_eq!(heard.text.client, "GET / again");
    assert_eq!(heard.text.server, "hello");
    assert_eq!(connection.rtt(Side::Server), Some(20 * MS));
    assert_eq!(connection.rtt(Side::Client), Some(MS));
    assert_eq!(connection.state(), State::Open);
}

#[test]
fn retransmitted_syn_starts_at_the_first_and_times_the_last() {
    let (connection, _) = Script::new()
        .packet(0, Side::Client, SYN, 0, 0, "")
        .packet(1_000 * MS, Side::Client, SYN, 0, 0, "")
        .packet(1_020 * MS, Side::Server, SYN | ACK, 0, 0, "")
        .packet(1_021 * MS, Side::Client, ACK, 0, 0, "")
        .run();
    assert_eq!(connection.syn.unwrap().at, 0);
    assert_eq!(connection.syn_retransmits, 1);
    assert_eq!(connection.rtt(Side::Server), Some(20 * MS));
}

#[test]
fn of_two_syn_acks_the_one_that_the_client_acknowledges_counts() {
    let script = |chosen: u32| {
        let mut script = Script::new()
            .packet(0, Side::Client, SYN, 0, 0, "")
            .packet(20 * MS, Side::Server, SYN | ACK, 0, 0, "")
            .packet(1_000 * MS, Side::Client, SYN, 0, 0, "")
            .packet(1_020 * MS, Side::Server, SYN | ACK, 77_000, 0, "")
            .client(1_021, 0, chosen, "ping")
            .server(1_050, chosen, 4, "pong");
        script.0[3].seq = SERVER_ISN + 77_000;
        script.run()
    };
    for chosen in [0, 77_000] {
        let (connection, heard) = script(chosen);
        assert_eq!(heard.text.server, "pong");
        assert_eq!((connection.syn_ack.unwrap().at, connection.ack.unwrap().at), (20 * MS, 1_021 * MS));
        assert_eq!(connection.halves.server.missing(), 0);
    }
}

#[test]
fn both_may_open_at_once() {
    let (connection, heard, marks) = play(
        &Script::new()
            .packet(0, Side::Client, SYN, 0, 0, "")
            .packet(MS, Side::Server, SYN, 0, 0, "")
            .packet(2 * MS, Side::Client, SYN | ACK, 0, 0, "")
            .packet(3 * MS, Side::Server, SYN | ACK, 0, 0, "")
            .client(4, 0, 0, "ping")
            .server(5, 0, 4, "pong")
            .0,
    );
    assert_eq!((heard.text.client.as_str(), heard.text.server.as_str()), ("ping", "pong"));
    assert_eq!((connection.syn.unwrap().at, connection.syn_ack.unwrap().at), (0, 3 * MS));
    assert_eq!(connection.ack.unwrap().at, 4 * MS);
    assert_eq!((connection.state(), connection.syn_retransmits), (State::Open, 0));
    assert_eq!(connection.halves.server.retransmits(), 0);
    assert_eq!(marks, [None; 6]);
}

#[test]
fn data_in_the_syn_is_offset_zero() {
    let (connection, heard) = Script::new()
        .packet(0, Side::Client, SYN, 0, 0, "GET /")
        .packet(20 * MS, Side::Server, SYN | ACK, 0, 5, "hello")
        .client(21, 5, 5, "more")
        .run();
    assert_eq!((heard.text.client.as_str(), heard.text.server.as_str()), ("GET /more", "hello"));
    assert_eq!(connection.halves.client.missing() + connection.halves.server.missing(), 0);
}

#[test]
fn data_in_the_syn_that_the_server_refused_is_heard_once() {
    let (connection, heard) = Script::new()
        .packet(0, Side::Client, SYN, 0, 0, "GET /")
        .packet(20 * MS, Side::Server, SYN | ACK, 0, 0, "")
        .client(21, 0, 0, "GET /")
        .run();
    assert_eq!(heard.text.client, "GET /");
    assert_eq!((connection.halves.client.bytes(), connection.halves.client.retransmits()), (5, 1));
}

#[test]
fn an_ack_of_something_older_does_not_complete_the_handshake() {
    let (connection, _) = Script::new()
        .packet(0, Side::Client, SYN, 0, 0, "")
        .packet(20 * MS, Side::Server, SYN | ACK, 0, 0, "")
        .packet(21 * MS, Side::Client, ACK, 0, 0u32.wrapping_sub(500), "")
        .run();
    assert_eq!(connection.ack, None);
}

/// RFC 9293 section 3.10.7.4: what was never sent cannot be acknowledged. Where the ACK is not in the capture, a later one
/// that acknowledges the answer, too, does not tell when it was.
#[test]
fn only_the_ack_of_the_syn_ack_completes_the_handshake() {
    let opened =
        || Script::new().packet(0, Side::Client, SYN, 0, 0, "").packet(20 * MS, Side::Server, SYN | ACK, 0, 0, "");
    let ack = |script: Script| script.run().0.ack.map(|seen| seen.at);
    for unsent in [1, 487, 1 << 20] {
        assert_eq!(ack(opened().client(21, 0, unsent, "").client(22, 0, 0, "ask")), Some(22 * MS), "{unsent}");
        assert_eq!(ack(opened().client(21, 0, unsent, "ask").server(40, 0, 3, "yes")), None, "{unsent}");
    }
    let answered = opened().server(40, 0, 3, "yes").client(237, 3, 3, "");
    assert_eq!(ack(answered.clone()), None);
    assert_eq!(answered.run().0.handshake_rtt().client, None);
}

#[test]
fn syn_answered_by_rst_is_refused_and_unanswered_is_told_apart() {
    let refused =
        Script::new().packet(0, Side::Client, SYN, 0, 0, "").packet(MS, Side::Server, RST | ACK, 0, 0, "").run().0;
    assert_eq!(refused.state(), State::Refused);
    assert_eq!((refused.closing().unwrap().at, refused.rst().unwrap()), (MS, Moment::new(MS, 2, Side::Client)));
    let unanswered = Script::new().packet(0, Side::Client, SYN, 0, 0, "").run().0;
    assert_eq!(unanswered.state(), State::Unanswered);
    let one_sided = Script::new().packet(0, Side::Client, SYN, 0, 0, "").packet(9, Side::Client, ACK, 1, 1, "").run().0;
    assert_eq!(one_sided.state(), State::Open);
}

#[test]
fn a_syn_that_meets_an_older_connection_is_sent_again_and_opens_a_new_one() {
    let mut script = Script::new().packet(0, Side::Client, SYN, 0, 0, "");
    script = script.packet(1, Side::Server, ACK, 77_777, 1_000_000, "").packet(2, Side::Client, RST, 1_000_000, 0, "");
    let (connection, _) = script.run();
    assert!(!connection.is_closed());
    let (connection, heard) = script.handshake().client(30, 0, 0, "ping").server(31, 0, 4, "pong").run();
    assert_eq!((heard.text.client.as_str(), heard.text.server.as_str()), ("ping", "pong"));
    assert_eq!((connection.state(), connection.rst_by), (State::Open, Some(Side::Client)));
    assert_eq!((connection.syn_retransmits, connection.halves.server.missing()), (1, 0));
    assert_eq!(connection.rst(), None, "it was about the older one");
    assert!(heard.fins.is_empty());
}

#[test]
fn a_refused_connection_may_be_opened_with_the_same_syn() {
    let script = Script::new().packet(0, Side::Client, SYN, 0, 0, "").packet(1, Side::Server, RST | ACK, 0, 0, "");
    let (connection, _) = script.run();
    assert!(connection.is_closed());
    let (connection, heard) = script.handshake().client(30, 0, 0, "ping").run();
    assert_eq!((connection.state(), heard.text.client.as_str()), (State::Open, "ping"));
    assert!(!connection.is_closed());
}

#[test]
fn a_syn_ack_that_is_sent_again_is_counted() {
    let (connection, _) = Script::new()
        .packet(0, Side::Client, SYN, 0, 0, "")
        .packet(MS, Side::Server, SYN | ACK, 0, 0, "")
        .packet(1_000 * MS, Side::Server, SYN | ACK, 0, 0, "")
        .packet(3_000 * MS, Side::Server, SYN | ACK, 0, 0, "")
        .client(3_001 * MS, 0, 0, "")
        .run();
    assert_eq!((connection.syn_retransmits, connection.syn_ack_retransmits), (0, 2));
}
