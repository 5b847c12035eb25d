//! Packets captured twice, packets sent twice, and which of the two it was.

use super::*;

#[test]
fn second_capture_of_a_packet_is_a_duplicate_but_a_repetition_is_not() {
    let mut script =
        Script::new().handshake().server(30, 0, 0, "abcd").server(30, 0, 0, "abcd").server(400, 0, 0, "abcd");
    script.0[4].ip_id = script.0[3].ip_id;
    script.0[4].at += 50_000;
    let (connection, heard, marks) = play(&script.0);
    assert_eq!(heard.text.server, "abcd");
    assert_eq!(marks[4], Some(Mark::Duplicate));
    assert_eq!(marks[5], Some(Mark::Retransmit));
    assert_eq!(connection.halves.server.packets, 3);
}

/// Plays a script in which one packet was captured at another place and another one reports bytes received twice.
fn play_with(
    packets: &[Packet],
    elsewhere: usize,
    twice: Option<(usize, u32, u32)>,
) -> (Connection, Vec<Option<Mark>>) {
    let mut connection = Connection::new(Moment::new(packets[0].at, 1, Side::Client));
    let mut heard = Heard::default();
    let marks = packets.iter().enumerate().map(|(index, sent)| {
        let seq = |offset: u32| Seq(SERVER_ISN + 1 + offset);
        let duplicate_sack = twice.filter(|(at, ..)| *at == index).map(|(_, from, to)| (seq(from), seq(to)));
        let segment = Segment { capture_point: u64::from(index == elsewhere), duplicate_sack, ..segment(sent) };
        connection.segment(sent.from, &segment, Moment::new(sent.at, index as u64 + 1, Side::Client), &mut heard).mark
    });
    let marks = marks.collect();
    connection.finish(&mut heard);
    assert_eq!(heard.text.server, "abcd");
    (connection, marks)
}

#[test]
fn a_copy_from_elsewhere_may_come_later() {
    for (elsewhere, late_ms, mark) in
        [(4, 9, Mark::Duplicate), (4, 150, Mark::Retransmit), (0, 9, Mark::Retransmit), (0, 1, Mark::Duplicate)]
    {
        let mut script = Script::new().handshake().server(30, 0, 0, "abcd").server(30 + late_ms, 0, 0, "abcd");
        script.0[3].ip_id = 0;
        script.0[4].ip_id = 0;
        assert_eq!(play_with(&script.0, elsewhere, None).1[4], Some(mark), "{elsewhere} {late_ms}");
    }
}

#[test]
fn a_copy_with_an_identification_of_its_own_may_come_later() {
    let own = 7;
    let constant = 1;
    for (ip_id, late_ms, mark) in
        [(own, 51, Mark::Duplicate), (own, 88, Mark::Retransmit), (constant, 9, Mark::Retransmit)]
    {
        let mut script = Script::new().handshake().server(30, 0, 0, "abcd").server(30 + late_ms, 0, 0, "abcd");
        script.0[3].ip_id = ip_id;
        script.0[4].ip_id = ip_id;
        assert_eq!(script.0[1].ip_id, constant);
        assert_eq!(play(&script.0).2[4], Some(mark), "{ip_id} {late_ms}");
    }
}

#[test]
fn resets_that_come_through_a_middlebox_are_no_copies() {
    let mut script = Script::new().handshake().server(30, 0, 0, "abcd").packet(31 * MS, Side::Server, RST, 4, 0, "");
    script = script.packet(33 * MS, Side::Server, RST, 4, 0, "");
    script.0[4].ip_id = 0;
    script.0[5].ip_id = 0;
    assert_eq!(play_with(&script.0, 5, None).1[4..], [None, None]);
}

#[test]
fn what_the_receiver_got_twice_was_sent_twice() {
    for (range, retransmits) in [((0, 4), 1), ((0, 2), 0)] {
        let mut script =
            Script::new().handshake().server(30, 0, 0, "abcd").server(30, 0, 0, "abcd").client(31, 0, 4, "");
        script.0[4].ip_id = script.0[3].ip_id;
        let (connection, _) = play_with(&script.0, 9, Some((5, range.0, range.1)));
        let server = &connection.halves.server;
        assert_eq!((server.retransmits(), server.packets), (retransmits, 2 + i64::from(retransmits)));
        assert_eq!(connection.duplicates, 1 - i64::from(retransmits));
    }
}

#[test]
fn what_the_receiver_got_twice_may_be_a_retransmission_that_was_seen() {
    let mut script = Script::new().handshake().server(30, 0, 0, "abcd").server(30, 0, 0, "abcd");
    script = script.server(300, 0, 0, "abcd").client(301, 0, 4, "");
    script.0[4].ip_id = script.0[3].ip_id;
    let (connection, _) = play_with(&script.0, 9, Some((6, 0, 4)));
    assert_eq!((connection.halves.server.retransmits(), connection.duplicates), (1, 1));
}

#[test]
fn two_resets_that_refuse_two_packets_are_no_copies() {
    let mut script = Script::new()
        .handshake()
        .packet(30 * MS, Side::Client, RST, 0, 0, "")
        .server(30, 0, 0, "late")
        .packet(30 * MS + 40_000, Side::Client, RST, 0, 0, "")
        .packet(30 * MS + 50_000, Side::Client, RST, 0, 0, "");
    for packet in [3, 5, 6] {
        script.0[packet].ip_id = 0;
    }
    let (connection, _, marks) = play(&script.0);
    assert_eq!(marks[3..], [None, None, None, Some(Mark::Duplicate)]);
    assert_eq!(connection.halves.client.packets, 4);
}

/// A keep-alive repeats a byte, so its receiver reports it: that says nothing about its second capture.
#[test]
fn a_keepalive_that_is_reported_as_received_twice_was_sent_once() {
    for text in ["d", "abcd"] {
        let seq = 4 - text.len() as u32;
        let mut script = Script::new().handshake().server(30, 0, 0, "abcd").client(31, 0, 4, "");
        script = script.server(60_000, seq, 0, text).server(60_000, seq, 0, text).client(60_001, 0, 4, "");
        script.0[6].ip_id = script.0[5].ip_id;
        let (connection, marks) = play_with(&script.0, 9, Some((7, seq, 4)));
        let server = &connection.halves.server;
        let (mark, retransmits) = if seq == 0 { (Mark::Retransmit, 1) } else { (Mark::Keepalive, 0) };
        assert_eq!(marks[5..7], [Some(mark), Some(Mark::Duplicate)]);
        assert_eq!((server.retransmits(), server.packets, connection.duplicates), (retransmits, 3, 1));
    }
}
