//! Messages of a lab (`captures/udp`), conversations made of them, and laws.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::cell::Cell;

use proptest::prelude::*;

use super::*;
use crate::exchange::Exchange;
use crate::quic::tests::lab;

/// `shop.example`, A: a query of curl, and what dnsmasq says.
pub(super) const QUERY: &[u8] =
    b"\x1a\x2b\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x04shop\x07example\x00\x00\x01\x00\x01";
pub(super) const RESPONSE: &[u8] =
    b"\x1a\x2b\x85\x80\x00\x01\x00\x01\x00\x00\x00\x00\x04shop\x07example\x00\x00\x01\x00\x01\
    \xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x00\x00\x04\x0a\x4e\x02\x14";
/// No such name.
pub(super) const NXDOMAIN: &[u8] =
    b"\x1a\x2b\x81\x83\x00\x01\x00\x00\x00\x00\x00\x00\x04shop\x07example\x00\x00\x01\x00\x01";

thread_local! {
    /// Queries that were compared with a message.
    pub(super) static COMPARED: Cell<u64> = const { Cell::new(0) };
}

fn moment(frame: u64) -> Moment {
    Moment::new(frame.cast_signed() * 1000, frame, Side::Client)
}

/// The message with another ID.
fn id(message: &[u8], id: u8) -> Vec<u8> {
    let mut message = message.to_vec();
    message[1] = id;
    message
}

/// With its length before it.
fn framed(message: &[u8]) -> Vec<u8> {
    [&u16::try_from(message.len()).unwrap().to_be_bytes()[..], message].concat()
}

/// A flow, a frame per packet.
struct Flow {
    dns: Dns,
    ledger: Ledger,
    frame: u64,
    sent: BySide<u64>,
}

impl Flow {
    fn new(dns: Dns) -> Self {
        Self { dns, ledger: Ledger::default(), frame: 0, sent: BySide::default() }
    }

    fn udp() -> Self {
        Self::new(Dns::over_datagrams())
    }

    fn tcp() -> Self {
        Self::new(Dns::in_order(Start::Beginning, DnsOver::Tcp))
    }

    fn say(mut self, from: Side, bytes: &[u8], cut: u32) -> Self {
        self.frame += 1;
        let chunk = Chunk { bytes, cut, offset: self.sent[from], acked: 0, seen: moment(self.frame) };
        self.sent[from] += chunk.len();
        self.dns.data(&mut self.ledger, from, chunk);
        self
    }

    fn client(self, bytes: &[u8]) -> Self {
        self.say(Side::Client, bytes, 0)
    }

    fn server(self, bytes: &[u8]) -> Self {
        self.say(Side::Server, bytes, 0)
    }

    fn gap(mut self, from: Side, len: u64) -> Self {
        self.frame += 1;
        self.dns.gap(&mut self.ledger, from, Gap::new(self.sent[from], len, moment(self.frame)));
        self.sent[from] += len;
        self
    }

    fn ready(&mut self) -> Vec<Exchange> {
        std::iter::from_fn(|| self.ledger.next_exchange()).collect()
    }

    fn finish(&mut self) -> Vec<Exchange> {
        self.dns.finish(&mut self.ledger);
        self.ready()
    }
}

/// Frames of query and response, and the status.
fn short(exchange: &Exchange) -> (Option<u64>, Option<u64>, Option<u32>) {
    let frame = |span: Span| span.last.map(|moment| moment.frame());
    (frame(exchange.request), frame(exchange.response), exchange.status)
}

fn all(mut flow: Flow) -> Vec<(Option<u64>, Option<u64>, Option<u32>)> {
    flow.finish().iter().map(short).collect()
}

#[test]
fn a_query_and_its_response_are_an_exchange() {
    let mut flow = Flow::udp().client(QUERY).server(RESPONSE);
    let exchanges = flow.ready();
    let [exchange] = &exchanges[..] else { unreachable!() };
    assert_eq!(short(exchange), (Some(1), Some(2), Some(0)));
    assert_eq!(
        (exchange.protocol, exchange.method.as_deref(), exchange.target.as_deref()),
        ("dns", Some("A"), Some("shop.example"))
    );
    assert_eq!((exchange.request.bytes, exchange.response.bytes), (30, 46));
    assert_eq!((exchange.requester, exchange.inferred, exchange.host.as_ref()), (Side::Client, false, None));
}

#[test]
fn responses_in_another_order_find_their_queries() {
    let flow =
        Flow::udp().client(&id(QUERY, 1)).client(&id(QUERY, 2)).server(&id(NXDOMAIN, 2)).server(&id(RESPONSE, 1));
    assert_eq!(all(flow), [(Some(1), Some(4), Some(0)), (Some(2), Some(3), Some(3))]);
}

#[test]
fn a_query_sent_again_goes_on_waiting() {
    let flow = Flow::udp().client(QUERY).client(QUERY).server(RESPONSE).server(RESPONSE);
    assert_eq!(all(flow), [(Some(1), Some(3), Some(0))]);
    // Asked again after the answer, it is another exchange.
    let flow = Flow::udp().client(QUERY).server(RESPONSE).client(QUERY).server(NXDOMAIN);
    assert_eq!(all(flow), [(Some(1), Some(2), Some(0)), (Some(3), Some(4), Some(3))]);
}

#[test]
fn what_does_not_fit_is_no_response() {
    let mut other_name = RESPONSE.to_vec();
    other_name[13] = b'x';
    let flow = Flow::udp().client(QUERY).server(&id(RESPONSE, 9)).server(&other_name);
    assert_eq!(all(flow), [(Some(1), None, None), (None, Some(2), Some(0)), (None, Some(3), Some(0))]);
    // Case is the asker's business; a refusal may lack the question.
    let mut shouted = RESPONSE.to_vec();
    shouted[13] = b'S';
    assert_eq!(all(Flow::udp().client(QUERY).server(&shouted)), [(Some(1), Some(2), Some(0))]);
    let refusal = [&NXDOMAIN[..2], b"\x80\x01\0\0\0\0\0\0\0\0"].concat();
    assert_eq!(all(Flow::udp().client(QUERY).server(&refusal)), [(Some(1), Some(2), Some(1))]);
}

#[test]
fn nobody_is_awaited_after_a_multicast_query() {
    let query = b"\0\0\0\0\0\x01\0\0\0\0\0\0\x04_ipp\x04_tcp\x05local\0\0\x0c\0\x01";
    let mut flow = Flow::udp().client(query).client(query);
    assert_eq!(flow.ready().iter().map(short).collect::<Vec<_>>(), [(Some(1), None, None)]);
    assert_eq!(flow.finish(), []);
    let announcement = b"\0\0\x84\0\0\0\0\0\0\0\0\0";
    assert_eq!(all(Flow::udp().client(announcement)), []);
}

#[test]
fn bytes_that_are_no_message_are_passed_over() {
    assert_eq!(
        all(Flow::udp().client(b"?").client(QUERY).server(&[0xff; 40]).server(RESPONSE)),
        [(Some(2), Some(4), Some(0))]
    );
}

#[test]
fn over_tcp_a_length_comes_first() {
    let queries = [framed(&id(QUERY, 1)), framed(&id(QUERY, 2))].concat();
    let flow = Flow::tcp().client(&queries).server(&framed(&id(RESPONSE, 2))).server(&framed(&id(NXDOMAIN, 1)));
    assert_eq!(all(flow), [(Some(1), Some(3), Some(3)), (Some(1), Some(2), Some(0))]);
    assert_eq!((query(QUERY), query(RESPONSE), response(RESPONSE)), (Verdict::Yes, Verdict::No, Verdict::Yes));
    assert!(query(&QUERY[..28]) != Verdict::Yes && query(&queries) != Verdict::Yes);
    let flow = Flow::tcp().client(&queries[..5]);
    assert_eq!(flow.dns.pending(), Some(moment(1)));
    assert!(matches!(sniff_stream(&queries), Verdict::Yes));
    assert!(matches!(sniff_stream(&queries[..20]), Verdict::More));
    assert!(matches!(sniff_stream(&[0, 17, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 9, 9, 9, 9, 9]), Verdict::No));
}

#[test]
fn missing_bytes_of_a_message_are_counted_and_others_put_the_reader_out_of_step() {
    let response = framed(RESPONSE);
    let flow = Flow::tcp().client(&framed(QUERY)).server(&response[..40]).gap(Side::Server, 8);
    let mut flow = flow.client(&framed(&id(QUERY, 2))).server(&framed(&id(NXDOMAIN, 2)));
    let exchanges = flow.finish();
    assert_eq!(
        exchanges.iter().map(short).collect::<Vec<_>>(),
        [(Some(1), Some(2), Some(0)), (Some(4), Some(5), Some(3))]
    );
    assert_eq!((exchanges[0].response.bytes, exchanges[0].response.revealed), (48, Some(moment(3))));

    let mut flow = Flow::tcp().client(&framed(QUERY)).server(&response[..40]).gap(Side::Server, 30).server(b"?");
    flow = flow.server(&framed(&id(RESPONSE, 2)));
    assert_eq!(flow.finish().iter().map(short).collect::<Vec<_>>(), [(Some(1), None, None), (None, Some(5), Some(0))]);
    assert_eq!(flow.ledger.next_unseen(), Some((moment(2), moment(4))));
}

#[test]
fn a_snap_length_that_leaves_the_question_costs_nothing() {
    let flow = Flow::udp().client(QUERY).say(Side::Server, &RESPONSE[..32], 14);
    assert_eq!(all(flow), [(Some(1), Some(2), Some(0))]);
    let response = framed(RESPONSE);
    let flow = Flow::tcp().client(&framed(QUERY)).say(Side::Server, &response[..40], 8).client(&framed(&id(QUERY, 2)));
    assert_eq!(all(flow.server(&framed(&id(RESPONSE, 2)))), [(Some(1), Some(2), Some(0)), (Some(3), Some(4), Some(0))]);
}

#[test]
fn no_more_queries_are_remembered_than_that() {
    let mut flow = Flow::udp();
    for number in 0..3000_u16 {
        let message = [&number.to_be_bytes()[..], &QUERY[2..]].concat();
        flow = flow.client(&message);
        assert!(flow.dns.queries.iter().count() <= MAX_QUERIES);
    }
    assert_eq!(flow.finish().len(), 3000);
}

/// What a flow of the lab tells: type, name, RCODE of each exchange.
fn rows(flow: &[lab::Datagram]) -> Vec<(String, String, Option<u32>)> {
    let mut talk = Flow::udp();
    for datagram in flow {
        assert!([query(&datagram.bytes), response(&datagram.bytes)].contains(&Verdict::Yes));
        talk = talk.say(datagram.from, &datagram.bytes, 0);
    }
    let text = |text: Option<&str>| text.unwrap().to_owned();
    let exchanges = talk.finish();
    exchanges.iter().map(|e| (text(e.method.as_deref()), text(e.target.as_deref()), e.status)).collect()
}

#[test]
fn curl_asks_a_lab_resolver() {
    let flows = lab::flows("dns-before-http", 53);
    let names = ["shop.example", "slow.example", "lost.example", "none.example"];
    assert_eq!(flows.len(), names.len());
    for (flow, name) in flows.iter().zip(names) {
        let rcodes = match name {
            "shop.example" => [0, 3],
            "none.example" => [3, 3],
            _ => [0, 0],
        };
        let expected =
            ["A", "AAAA"].into_iter().zip(rcodes).map(|(kind, rcode)| (kind.into(), name.into(), Some(rcode)));
        assert_eq!(rows(flow), expected.collect::<Vec<_>>());
    }
}

#[test]
fn queries_of_chromium_and_dig() {
    let of = |case| lab::flows(case, 53).iter().flat_map(|flow| rows(flow)).collect::<Vec<_>>();
    let row = |kind: &str, name: &str, rcode| (kind.to_owned(), name.to_owned(), Some(rcode));
    assert_eq!(of("http3"), [row("HTTPS", "shop.example", 3), row("A", "shop.example", 0)]);
    assert_eq!(of("dns-truncated"), [row("TXT", "long.example", 0), row("HTTPS", "shop.example", 3)]);
}

proptest! {
    #[test]
    fn any_bytes_are_heard_without_panic(
        pieces in proptest::collection::vec(
            (any::<bool>(), 0_u32..3, any::<bool>(), proptest::collection::vec(any::<u8>(), 1..90)), 0..20,
        ),
        over_tcp in any::<bool>(),
    ) {
        let mut flow = if over_tcp { Flow::new(Dns::in_order(Start::Midstream, DnsOver::Tcp)) } else { Flow::udp() };
        for (client, cut, gap, bytes) in pieces {
            let from = if client { Side::Client } else { Side::Server };
            flow = flow.say(from, &bytes, cut);
            if gap {
                flow = flow.gap(from, 7);
            }
        }
        flow.finish();
    }

    /// Law: how TCP cut the stream never changes what is found.
    #[test]
    fn however_tcp_cut_it(cuts in proptest::collection::vec(1_usize..60, 1..12)) {
        let whole: Vec<u8> = (0..5).flat_map(|number| framed(&id(QUERY, number))).collect();
        let (mut flow, mut rest) = (Flow::tcp(), &whole[..]);
        for cut in cuts {
            let (piece, after) = rest.split_at(cut.min(rest.len()));
            if !piece.is_empty() {
                flow = flow.client(piece);
            }
            rest = after;
        }
        if !rest.is_empty() {
            flow = flow.client(rest);
        }
        let exchanges = flow.finish();
        prop_assert_eq!(exchanges.len(), 5);
        prop_assert!(exchanges.iter().all(|exchange| exchange.request.bytes == 32 && exchange.request.done));
    }
}

#[test]
fn a_message_is_compared_with_queries_of_its_id_only() {
    let compared = |count: u16, id: fn(u16) -> u16| {
        COMPARED.set(0);
        let mut flow = Flow::udp();
        for number in 0..count {
            let id = id(number).to_be_bytes();
            for message in [QUERY, QUERY, RESPONSE] {
                flow = flow.say(
                    if message == QUERY { Side::Client } else { Side::Server },
                    &[&id, &message[2..]].concat(),
                    0,
                );
            }
        }
        COMPARED.get()
    };
    let ids: [fn(u16) -> u16; 2] = [|number| number, |number| number.wrapping_mul(40_503)];
    for id in ids {
        let [few, many] = [250, 1_000].map(|count| compared(count, id));
        assert!(few <= 1_000 && 5 * many <= 22 * few, "{few} comparisons, of four times as many queries {many}");
    }
}
