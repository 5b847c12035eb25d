//! What each stage found → rows of docs/tables.md.
//!
//! In: a connection, handshake, exchange, phase or packet as its stage has it. Out: one value per column; no Arrow, no
//! text that could be borrowed. Nothing is decided here: what a row says, a stage knew.

mod moves;
mod owned;
mod passing;

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use crate::exchange::{ContentMessage, DnsOver, Ender, Exchange, Outcome, Provenance, QueryShape, Span, facts};
use crate::flow::Flow;
use crate::packet::{Datagram, Endpoint, Flags, Local, Mac, OptionKinds, Segment, Seq, Station, Tunnel, traffic_class};
use crate::phases::Phase;
use crate::quic::Lost;
use crate::stalls::{Detail, Stall};
use crate::stream::{BySide, Moment, Side};
use crate::tables::{
    CaptureRow, ConnectionRow, ExchangeMessageRow, ExchangeRow, HandshakeRow, LostPacketRow, PacketRow, PhaseRow,
    PlacePacketRow, StallRow,
};
use crate::tally::Tally;
use crate::tcp::{Connection, Half, Mark};
use crate::tls::{Handshake, KeyCoverage, Kind};
use crate::udp::Datagrams;

pub use moves::client_move;
pub use owned::owned;
pub use passing::{http3_frame, message, quic_frame, record};

/// Names of the link types, joined by commas.
pub fn link_types(tally: &Tally) -> String {
    let names = tally.facts.iter().flat_map(|facts| facts.link_types.iter().map(|link| link.name()));
    names.collect::<Vec<_>>().join(",")
}

pub fn capture<'a>(tally: &'a Tally, link_types: &'a str, notes: &'a [String]) -> CaptureRow<'a> {
    let facts = tally.facts.as_ref();
    CaptureRow {
        capture: Some(tally.capture),
        path: Some(&tally.path),
        format: facts.map(|facts| facts.format.as_str()),
        link_types: Some(link_types),
        packets: Some(tally.packets),
        selected: Some(tally.selected),
        bytes: Some(tally.bytes),
        first_frame: Some(tally.first_frame.cast_signed()),
        first_at: tally.first_at,
        last_at: tally.last_at,
        resolution_ns: facts.map(|facts| facts.resolution_ns),
        truncated: Some(tally.truncated),
        undecodable: Some(tally.undecodable),
        other: Some(tally.other),
        snapped: Some(tally.snapped),
        dropped: facts.and_then(|facts| facts.drops).map(u64::cast_signed),
        duplicates: Some(tally.duplicates),
        notes,
    }
}

/// The name of the ends that are the capturing machine.
fn local_end(local: Local) -> &'static str {
    match local {
        Local::Only(end) => end.name(),
        Local::Both => "both",
    }
}

fn mac(station: Option<Station>) -> Option<Mac> {
    station.and_then(|station| station.mac)
}

fn tunnel(station: Option<Station>) -> Option<&'static str> {
    station.and_then(|station| station.tunnel).map(Tunnel::name)
}

fn seq_raw(seq: Option<Seq>) -> Option<i64> {
    seq.map(|seq| seq.0.into())
}

/// What is known of a flow besides its packets.
pub struct FlowContext {
    pub capture: i32,
    /// Where its phases begin.
    pub opened: Moment,
    pub app: Option<&'static str>,
    /// The client that a PROXY header names.
    pub announced: Option<Endpoint>,
}

/// The columns that every flow has. `stations`: who sent each side's first packet.
fn flow<T>(flow: &Flow<T>, about: &FlowContext, stations: BySide<Option<Station>>) -> ConnectionRow<'static> {
    let ips = BySide { client: flow.ends.client.ip, server: flow.ends.server.ip };
    ConnectionRow {
        stream: Some(flow.stream),
        capture: Some(about.capture),
        transport: Some(flow.transport.name()),
        transport_stream: Some(flow.transport_stream),
        client_ip: Some(flow.ends.client.ip),
        client_port: Some(flow.ends.client.port.into()),
        server_ip: Some(flow.ends.server.ip),
        server_port: Some(flow.ends.server.port.into()),
        opened_at: Some(about.opened.at),
        opened_by: Some(about.opened.sender().name()),
        mac_client: mac(stations.client),
        mac_server: mac(stations.server),
        local_end: Local::of(ips, stations).map(local_end),
        tunnel_client: tunnel(stations.client),
        tunnel_server: tunnel(stations.server),
        announced_ip: about.announced.map(|client| client.ip),
        announced_port: about.announced.map(|client| client.port.into()),
        app: about.app,
        ..ConnectionRow::default()
    }
}

pub fn tcp<T>(of: &Flow<T>, about: &FlowContext, tcp: &Connection) -> ConnectionRow<'static> {
    let (client, server) = (&tcp.halves.client, &tcp.halves.server);
    let stations = BySide { client: client.station, server: server.station };
    ConnectionRow {
        closed_at: Some(tcp.last.at),
        closed_by: Some(tcp.last.sender().name()),
        syn_at: at(tcp.syn),
        syn_ack_at: at(tcp.syn_ack),
        ack_at: at(tcp.ack),
        syn_retransmits: Some(tcp.syn_retransmits),
        syn_ack_retransmits: Some(tcp.syn_ack_retransmits),
        first_frame: Some(tcp.first_frame.cast_signed()),
        last_frame: Some(tcp.last_frame.cast_signed()),
        packets_client: Some(client.packets),
        packets_server: Some(server.packets),
        bytes_client: Some(client.bytes().cast_signed()),
        bytes_server: Some(server.bytes().cast_signed()),
        retransmits_client: Some(client.retransmits()),
        retransmits_server: Some(server.retransmits()),
        out_of_order_client: Some(client.out_of_order()),
        out_of_order_server: Some(server.out_of_order()),
        zero_windows_client: Some(client.zero_windows()),
        zero_windows_server: Some(server.zero_windows()),
        missing_client: Some(client.missing().cast_signed()),
        missing_server: Some(server.missing().cast_signed()),
        mss_client: client.mss.map(i32::from),
        mss_server: server.mss.map(i32::from),
        ttl_client: client.ttl.map(i32::from),
        ttl_server: server.ttl.map(i32::from),
        isn_client: seq_raw(client.isn),
        isn_server: seq_raw(server.isn),
        identity: Some((tcp.identity() >> 1).cast_signed()),
        rtt_client_ns: tcp.rtt(Side::Client),
        rtt_server_ns: tcp.rtt(Side::Server),
        least_rtt_client_ns: tcp.nearest(Side::Client),
        least_rtt_server_ns: tcp.nearest(Side::Server),
        fin_by: tcp.fin_by.map(Side::name),
        rst_by: tcp.rst_by.map(Side::name),
        fin_client_at: at(tcp.first_fin(Side::Client)),
        fin_server_at: at(tcp.first_fin(Side::Server)),
        fin_client_frame: frame(tcp.first_fin(Side::Client)),
        fin_server_frame: frame(tcp.first_fin(Side::Server)),
        rst_at: at(tcp.rst()),
        rst_frame: frame(tcp.rst()),
        rst_ttl: tcp.rst_ttl.map(i32::from),
        rst_foreign: tcp.rst_foreign,
        unacknowledged_client: tcp.unacknowledged(Side::Client).map(u64::cast_signed),
        unacknowledged_server: tcp.unacknowledged(Side::Server).map(u64::cast_signed),
        state: Some(tcp.state().name()),
        ..flow(of, about, stations)
    }
}

/// What only TCP knows is NULL: UDP acknowledges nothing and is never closed.
pub fn udp<T>(of: &Flow<T>, about: &FlowContext, udp: &Datagrams) -> ConnectionRow<'static> {
    let (client, server) = (&udp.sent.client, &udp.sent.server);
    let stations = BySide { client: client.station, server: server.station };
    let is_answered = client.packets > 0 && server.packets > 0;
    ConnectionRow {
        closed_at: Some(udp.last.at),
        closed_by: Some(udp.last.sender().name()),
        first_frame: Some(udp.first_frame.cast_signed()),
        last_frame: Some(udp.last_frame.cast_signed()),
        packets_client: Some(client.packets),
        packets_server: Some(server.packets),
        bytes_client: Some(client.bytes.cast_signed()),
        bytes_server: Some(server.bytes.cast_signed()),
        rtt_client_ns: udp.rtt.client,
        rtt_server_ns: udp.rtt.server,
        least_rtt_client_ns: udp.rtt.client,
        least_rtt_server_ns: udp.rtt.server,
        datagrams_client: udp.carried.map(|carried| carried.client.cast_signed()),
        datagrams_server: udp.carried.map(|carried| carried.server.cast_signed()),
        rst_by: udp.reset.map(|reset| reset.sender().name()),
        rst_at: at(udp.reset),
        rst_frame: frame(udp.reset),
        ttl_client: client.ttl.map(i32::from),
        ttl_server: server.ttl.map(i32::from),
        identity: Some((udp.identity() >> 1).cast_signed()),
        state: Some(if is_answered { "open" } else { "unanswered" }),
        ..flow(of, about, stations)
    }
}

/// `version` is the name of the handshake's; `rtt`: nanoseconds between the capture point and each end.
pub fn handshake<'a>(
    stream: i32,
    tls: &'a Handshake,
    version: Option<&'a str>,
    rtt: BySide<Option<i64>>,
) -> HandshakeRow<'a> {
    // Who sent the ClientHello is the client of TLS, whoever opened the connection.
    let client = tls.hello_by.unwrap_or(Side::Client);
    let compute = |side| tls.flights.compute_ns(side, rtt[side]);
    HandshakeRow {
        stream: Some(stream),
        number: Some(tls.number.cast_signed()),
        hello_at: at(tls.hello),
        server_hello_at: at(tls.server_hello),
        server_done_at: at(tls.server_done),
        client_finished_at: at(tls.client_finished),
        ready_at: at(tls.ready),
        complete_at: at(tls.complete),
        hello_by: by(tls.hello),
        ready_by: by(tls.ready),
        complete_by: by(tls.complete),
        hello_frame: frame(tls.hello),
        server_hello_frame: frame(tls.server_hello),
        ready_frame: frame(tls.ready),
        failed_frame: frame(tls.failed),
        version,
        version_offered: tls.version_offered.as_deref(),
        cipher: tls.cipher.as_deref(),
        named_group: tls.named_group.as_deref(),
        sni: tls.sni.as_deref(),
        alpn: tls.alpn.as_deref(),
        alpn_offered: tls.alpn_offered.as_deref(),
        key_shares: tls.key_shares.as_deref(),
        client_random: tls.client_random.as_ref(),
        quic_version: tls.quic_version.as_deref(),
        parameters_client: parameters(tls, Side::Client),
        parameters_server: parameters(tls, Side::Server),
        retry_at: at(tls.retry),
        version_negotiation_at: at(tls.version_negotiation),
        kind: tls.kind.map(Kind::name),
        resumption_offered: tls.resumption_offered.map(Kind::name),
        early_data_offered: tls.early_data_offered,
        ticket_offered: tls.ticket_offered,
        ticket_issued: tls.ticket_issued,
        early_data_allowed: tls.early_data_allowed,
        session_id_issued: tls.session_id_issued,
        outcome: Some(tls.outcome.name()),
        hello_retry: Some(tls.hello_retry),
        client_auth: tls.client_auth,
        early_data: tls.early_data,
        false_start: tls.false_start,
        alert: tls.alert.as_deref(),
        alert_by: tls.alert_by.map(Side::name),
        certificates: tls.certificates.map(u32::cast_signed),
        certificate_bytes: tls.certificate_bytes.map(u32::cast_signed),
        client_certificate_bytes: tls.client_certificate_bytes.map(u32::cast_signed),
        client_hello_bytes: tls.client_hello_bytes.map(u32::cast_signed),
        server_flight_bytes: tls.server_flight_bytes.and_then(|bytes| i32::try_from(bytes).ok()),
        bytes_client: Some(tls.bytes_client.cast_signed()),
        bytes_server: Some(tls.bytes_server.cast_signed()),
        round_trips: tls.round_trips.map(u32::cast_signed),
        client_compute_ns: compute(client),
        server_compute_ns: compute(client.peer()),
        ech: tls.ech,
        ja3: tls.ja3.as_deref(),
        ja4: tls.ja4.as_deref(),
        inferred: Some(tls.inferred),
        keys: tls.keys.map(KeyCoverage::name),
        missing_keys: tls.missing_keys.as_deref(),
    }
}

/// The transport parameters of QUIC, where that side's were read.
fn parameters(tls: &Handshake, side: Side) -> Option<&[String]> {
    tls.parameters.as_ref().map(|texts| texts[side].as_slice()).filter(|texts| !texts.is_empty())
}

/// Type, name and RCODE of a question of DNS: in HTTP, or the exchange itself.
fn lookup(exchange: &Exchange) -> (Option<&str>, Option<&str>, Option<i32>) {
    match (&exchange.dns_question, exchange.dns_over) {
        (Some(question), _) => (Some(&question.kind), Some(&question.name), question.rcode.map(Into::into)),
        (None, Some(over)) if over != DnsOver::Https => {
            let rcode = exchange.status.and_then(|status| i32::try_from(status).ok());
            (exchange.method.as_deref(), exchange.target.as_deref(), rcode)
        }
        _ => (None, None, None),
    }
}

pub fn exchange(stream: i32, exchange: &Exchange) -> ExchangeRow<'_> {
    let (request, response) = (&exchange.request, &exchange.response);
    let request_done = at(request.last.filter(|_| request.done || response.first.is_some()));
    let response_done = at(response.last.filter(|_| response.done));
    let is_within = |moment: &Moment| exchange.until(*moment) == *moment;
    // A response may overtake its request (RFC 9112 section 9.5): then nobody waited.
    let answered = at(response.first.filter(is_within)).filter(|_| !exchange.awaits_event);
    let wait = request_done.zip(answered).map(|(from, to)| (to - from).max(0));
    let between = |from: Option<i64>, to: Option<i64>| from.zip(to).map(|(from, to)| (to - from).max(0));
    let bytes = |span: &Span| span.first.map(|_| span.bytes.cast_signed());
    let protocol = facts(exchange.protocol);
    let provenance = exchange.provenance.as_deref();
    let (kind, name, rcode) = lookup(exchange);
    let (tunnel, goaway) = (exchange.tunnel.as_deref(), exchange.goaway.as_deref());
    let ended = exchange.ended.filter(|_| exchange.ended_by.is_some());
    ExchangeRow {
        stream: Some(stream),
        number: Some(exchange.number.cast_signed()),
        request_at: at(request.first),
        request_done_at: request_done,
        response_at: at(response.first),
        response_done_at: response_done,
        protocol: Some(exchange.protocol),
        kind: Some(protocol.kind),
        store: protocol.store,
        method: exchange.method.as_deref(),
        host: exchange.host.as_deref(),
        target: exchange.target.as_deref(),
        shape: QueryShape::of(exchange),
        awaits: exchange.awaits(),
        dns_over: exchange.dns_over.map(DnsOver::name),
        dns_type: kind,
        dns_name: name,
        dns_rcode: rcode,
        status: exchange.status.and_then(|status| i32::try_from(status).ok()),
        status_text: exchange.status.map(protocol.status_text),
        user_agent: exchange.user_agent.as_deref(),
        server_software: exchange.server_software.as_deref(),
        ids: provenance.map(|way| way.ids.as_slice()).filter(|ids| !ids.is_empty()),
        parent_span: provenance.and_then(|way| way.parent_span.as_deref()),
        forwarded_for: provenance.and_then(Provenance::forwarded_for),
        via: provenance.and_then(|way| way.via.as_deref()),
        tunnel: tunnel.map(|tunnel| &*tunnel.kind),
        tunnel_done_at: tunnel.and_then(|tunnel| at(tunnel.done)),
        tunnel_bytes_client: tunnel.map(|tunnel| tunnel.bytes.client.cast_signed()),
        tunnel_bytes_server: tunnel.map(|tunnel| tunnel.bytes.server.cast_signed()),
        tunnel_datagrams_client: tunnel.map(|tunnel| tunnel.datagrams.client.cast_signed()),
        tunnel_datagrams_server: tunnel.map(|tunnel| tunnel.datagrams.server.cast_signed()),
        alternatives: provenance.map(|way| way.alternatives.as_slice()).filter(|texts| !texts.is_empty()),
        expect_continue: exchange.expects_continue,
        continued_at: at(exchange.continued),
        body_at: at(request.content),
        goaway_at: goaway.map(|goaway| goaway.seen.at),
        goaway_by: goaway.map(|goaway| goaway.from.name()),
        goaway_code: goaway.map(|goaway| &*goaway.code),
        goaway_text: goaway.map(|goaway| &*goaway.text).filter(|text| !text.is_empty()),
        goaway_frame: goaway.map(|goaway| goaway.seen.frame().cast_signed()),
        goaway_pings: goaway.map(|goaway| goaway.pings.cast_signed()),
        request_bytes: bytes(request),
        response_bytes: bytes(response),
        request_frame: frame(request.first),
        response_frame: frame(response.first),
        request_ns: between(at(request.first), request_done),
        wait_ns: wait,
        transfer_ns: between(at(response.first), at(response.last.filter(is_within))).filter(|_| response.done),
        client_keepalive: exchange.client_keepalive,
        server_keepalive: exchange.server_keepalive,
        keep_alive_timeout_ns: exchange.keep_alive_timeout.map(|s| i64::from(s) * 1_000_000_000),
        outcome: exchange.outcome.map(Outcome::name),
        ended_by: exchange.ended_by.map(Ender::name),
        ended_at: at(ended),
        ended_frame: frame(ended),
        inferred: Some(exchange.inferred),
        confidence: Some(exchange.confidence),
    }
}

/// A message inside the content of an exchange. When one that is cut short would have ended, nobody knows.
pub fn content(stream: i32, message: &ContentMessage) -> ExchangeMessageRow {
    let end = Some(message.last).filter(|_| message.done);
    ExchangeMessageRow {
        stream: Some(stream),
        exchange: Some(message.exchange.cast_signed()),
        sender: Some(message.from.name()),
        number: Some(message.number.cast_signed()),
        kind: Some(message.kind.name()),
        compressed: Some(message.compressed),
        bytes: i64::try_from(message.bytes).ok(),
        start_at: Some(message.first.at),
        end_at: at(end),
        start_frame: Some(message.first.frame().cast_signed()),
        end_frame: frame(end),
    }
}

pub fn phase(stream: i32, phase: &Phase) -> PhaseRow {
    PhaseRow {
        stream: Some(stream),
        exchange: phase.exchange.map(u32::cast_signed),
        handshake: phase.handshake.map(u32::cast_signed),
        kind: Some(phase.kind.name()),
        start_at: Some(phase.start.at),
        end_at: Some(phase.end.at),
        start_by: Some(phase.start.sender().name()),
        end_by: Some(phase.end.sender().name()),
        start_frame: Some(phase.start.frame().cast_signed()),
        end_frame: Some(phase.end.frame().cast_signed()),
        inferred: Some(phase.inferred),
    }
}

pub fn stall(stream: i32, stall: &Stall) -> StallRow {
    StallRow {
        stream: Some(stream),
        kind: Some(stall.kind.name()),
        detail: stall.detail.map(Detail::name),
        side: Some(stall.side.name()),
        start_at: Some(stall.start.at),
        end_at: Some(stall.end.at),
        start_by: Some(stall.start.sender().name()),
        end_by: Some(stall.end.sender().name()),
        start_frame: Some(stall.start.frame().cast_signed()),
        end_frame: Some(stall.end.frame().cast_signed()),
        released_frame: stall.released.map(|released| released.frame().cast_signed()),
        ack_delay_ns: stall.ack_delay_ns,
        confidence: Some(stall.confidence),
        unfinished: Some(stall.unfinished),
    }
}

pub fn lost_packet(stream: i32, lost: &Lost) -> LostPacketRow {
    LostPacketRow {
        stream: Some(stream),
        sender: Some(lost.sender.name()),
        space: Some(lost.level.name()),
        number: Some(lost.number.cast_signed()),
        frame: lost.sent.map(|sent| sent.frame().cast_signed()),
        sent_at: lost.sent.map(|sent| sent.at),
        reported_frame: Some(lost.reported.frame().cast_signed()),
        reported_at: Some(lost.reported.at),
        arrived: Some(lost.arrived),
    }
}

pub fn segment(
    stream: i32,
    segment: &Segment<'_>,
    seen: Moment,
    from: Side,
    halves: &BySide<Half>,
    mark: Option<Mark>,
) -> PacketRow<'static> {
    // As Wireshark's relative numbers: counted from the SYN.
    let relative = |number: Seq, isn: Option<Seq>| isn.map(|isn| i64::from(number.0.wrapping_sub(isn.0)));
    // The window of a SYN is never scaled, and others only where both SYNs have the option (RFC 7323 section 2.2).
    let scale = match (halves[from].window_scale, halves[from.peer()].window_scale) {
        _ if segment.flags.syn() => Some(0),
        (Some(scale), Some(_)) => Some(scale.min(14)),
        _ if halves[from].isn.is_some() && halves[from.peer()].isn.is_some() => Some(0),
        _ => None,
    };
    PacketRow {
        seq: relative(segment.seq, halves[from].isn),
        ack: relative(segment.ack, halves[from.peer()].isn).filter(|_| segment.flags.ack()),
        window_bytes: scale.map(|scale| i64::from(segment.window) << scale),
        ..packet(stream, segment.flags, segment.payload_len, seen, from, mark)
    }
}

pub fn datagram(stream: i32, datagram: &Datagram<'_>, seen: Moment, from: Side, is_copy: bool) -> PacketRow<'static> {
    packet(stream, Flags(0), datagram.payload_len, seen, from, is_copy.then_some(Mark::Duplicate))
}

fn packet(stream: i32, flags: Flags, bytes: u32, seen: Moment, from: Side, mark: Option<Mark>) -> PacketRow<'static> {
    PacketRow {
        stream: Some(stream),
        frame: Some(seen.frame().cast_signed()),
        seen_at: Some(seen.at),
        sender: Some(from.name()),
        flags: Some(flags),
        bytes: i32::try_from(bytes).ok(),
        mark: mark.map(Mark::name),
        ..PacketRow::default()
    }
}

/// What tells a segment from others of its side, wherever it is captured: a router changes none of it.
pub fn sighted_segment(stream: i32, segment: &Segment<'_>, seen: Moment, from: Side) -> PlacePacketRow {
    let print = FixedState::default().hash_one((segment.window, segment.timestamps));
    PlacePacketRow {
        seq: Some(segment.seq.0.into()),
        ack: segment.flags.ack().then_some(segment.ack.0.into()),
        window_scale: segment.window_scale.map(i32::from),
        mss: segment.mss.map(i32::from),
        options: if segment.flags.syn() { OptionKinds::of(segment.captured, segment.payload.len()) } else { None },
        tos: traffic_class(segment.captured).map(i32::from),
        ..sighting(stream, seen, from, segment.flags, segment.payload_len, print, segment.ip_id, segment.ttl)
    }
}

/// So many bytes of a datagram tell it from others; captures with a short snap length have them, too.
const PRINTED: usize = 64;

/// The same of a datagram: the beginning of what it carries.
pub fn sighted_datagram(stream: i32, datagram: &Datagram<'_>, seen: Moment, from: Side) -> PlacePacketRow {
    let print = FixedState::default().hash_one(datagram.payload.get(..PRINTED).unwrap_or(datagram.payload));
    PlacePacketRow {
        tos: traffic_class(datagram.captured).map(i32::from),
        ..sighting(stream, seen, from, Flags(0), datagram.payload_len, print, datagram.ip_id, datagram.ttl)
    }
}

#[expect(clippy::too_many_arguments, reason = "a value of each column that segments and datagrams share")]
fn sighting(
    stream: i32,
    seen: Moment,
    from: Side,
    flags: Flags,
    bytes: u32,
    print: u64,
    ip_id: Option<u16>,
    ttl: u8,
) -> PlacePacketRow {
    PlacePacketRow {
        stream: Some(stream),
        frame: Some(seen.frame().cast_signed()),
        seen_at: Some(seen.at),
        sender: Some(from.name()),
        flags: Some(flags),
        bytes: i32::try_from(bytes).ok(),
        print: Some(print.cast_signed()),
        ip_id: ip_id.map(i32::from),
        ttl: Some(ttl.into()),
        ..PlacePacketRow::default()
    }
}

fn at(moment: Option<Moment>) -> Option<i64> {
    moment.map(|moment| moment.at)
}

fn by(moment: Option<Moment>) -> Option<&'static str> {
    moment.map(|moment| moment.sender().name())
}

fn frame(moment: Option<Moment>) -> Option<i64> {
    moment.map(|moment| moment.frame().cast_signed())
}
