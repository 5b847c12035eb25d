//! DNS in the content of HTTP (RFC 8484): the question and the answer of a request that stays one of HTTP.
//!
//! In: targets, types and contents of requests and responses. Out: the [`DnsQuestion`] of an exchange. Of each content,
//! as much is kept as a question may be long. Non-goals: DNS as JSON, which no RFC describes.

use super::message::{self, Message, QUESTION_END};
use crate::exchange::ledger::Ledger;
use crate::exchange::reader::Verdict;
use crate::exchange::{DnsOver, DnsQuestion, Exchange};
use crate::stream::{BySide, Side};

/// The variable of a GET that has the query (RFC 8484 section 4.1).
const VARIABLE: &str = "dns=";

/// Is this the type of such content?
pub(in crate::exchange) fn is_dns(content_type: &[u8]) -> bool {
    const TYPE: &[u8] = b"application/dns-message";
    content_type
        .split_at_checked(TYPE.len())
        .is_some_and(|(name, rest)| name.eq_ignore_ascii_case(TYPE) && matches!(rest.first(), None | Some(b';' | b' ')))
}

/// Notes the question of a request, whose content has it, or its target. Does its content, or that of its response,
/// have to be read?
pub(in crate::exchange) fn note(exchange: &mut Exchange, has_type: bool) -> bool {
    if has_type {
        exchange.dns_over = Some(DnsOver::Https);
    } else if exchange.method.as_deref() == Some("GET")
        && let Some(query) = exchange.target.as_deref().and_then(query_in)
        && let Some(message) = message::parse(&query)
    {
        tell(exchange, message);
    }
    exchange.dns_over.is_some()
}

/// The query in a target.
fn query_in(target: &str) -> Option<Vec<u8>> {
    let (_, variables) = target.split_once('?')?;
    let value = variables.split('&').find_map(|variable| variable.strip_prefix(VARIABLE))?;
    Some(decoded(value)).filter(|query| super::query(query) == Verdict::Yes)
}

/// Base64url (RFC 4648 section 5), as far as it goes and matters.
fn decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0u32, 0u32);
    for byte in text.bytes().take(QUESTION_END * 4 / 3 + 1) {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'-' => 62,
            b'_' => 63,
            _ => break,
        };
        (bits, count) = (bits << 6 | u32::from(value), count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count).to_be_bytes()[3]);
        }
    }
    bytes
}

fn tell(exchange: &mut Exchange, message: Message) {
    exchange.dns_over = Some(DnsOver::Https);
    if exchange.dns_question.is_none()
        && let Some(question) = message.question
    {
        let kind = message::qtype(question.qtype);
        exchange.dns_question = Some(Box::new(DnsQuestion { kind, name: question.name, rcode: None }));
    }
    if message.is_response
        && let Some(question) = &mut exchange.dns_question
    {
        question.rcode = Some(message.rcode);
    }
}

/// The contents of one exchange.
pub(in crate::exchange) struct Carried {
    number: u32,
    /// What is kept of each side's, until that is read.
    buffers: BySide<Option<Vec<u8>>>,
}

impl Carried {
    pub fn new(number: u32) -> Self {
        Self { number, buffers: BySide { client: Some(Vec::new()), server: Some(Vec::new()) } }
    }

    /// Content of that side.
    pub fn data(&mut self, ledger: &mut Ledger, from: Side, content: impl IntoIterator<Item = u8>) {
        if let Some(buffer) = &mut self.buffers[from] {
            buffer.extend(content.into_iter().take(QUESTION_END.saturating_sub(buffer.len())));
            if buffer.len() >= QUESTION_END {
                self.end(ledger, from);
            }
        }
    }

    /// That side says no more, or nobody knows what.
    pub fn end(&mut self, ledger: &mut Ledger, from: Side) {
        let asks = ledger.asks(from);
        if let Some(buffer) = self.buffers[from].take()
            && let Some(message) = message::parse(&buffer)
            && message.is_response != asks
            && let Some(entry) = ledger.get(self.number)
        {
            tell(&mut entry.exchange, message);
        }
    }

    #[cfg(test)]
    pub fn held(&self) -> usize {
        [&self.buffers.client, &self.buffers.server].into_iter().flatten().map(Vec::capacity).sum()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::super::tests::QUERY;
    use super::*;
    use proptest::prelude::*;

    fn get(target: &str) -> Exchange {
        Exchange { method: Some("GET".into()), target: Some(target.into()), ..Exchange::default() }
    }

    #[test]
    fn the_query_of_a_get_is_in_its_target() {
        // The example of RFC 8484 section 4.1.1.
        let mut exchange = get("/dns-query?dns=AAABAAABAAAAAAAAA3d3dwdleGFtcGxlA2NvbQAAAQAB");
        assert!(note(&mut exchange, false));
        let question = exchange.dns_question.unwrap();
        assert_eq!((&question.kind[..], &question.name[..], question.rcode), ("A", "www.example.com", None));
        assert_eq!(exchange.dns_over, Some(DnsOver::Https));
    }

    #[test]
    fn other_targets_have_none() {
        for target in
            ["/", "/?dns=", "/dns=AAAB", "/?dns=shop.example", "/?adns=AAABAAABAAAAAAAAA3d3dwdleGFtcGxlA2NvbQAAAQAB"]
        {
            assert!(!note(&mut get(target), false), "{target}");
        }
        let mut post =
            Exchange { method: Some("POST".into()), ..get("/?dns=AAABAAABAAAAAAAAA3d3dwdleGFtcGxlA2NvbQAAAQAB") };
        assert!(!note(&mut post, false));
    }

    #[test]
    fn types_may_have_parameters() {
        let types = [
            &b"application/dns-message"[..],
            b"Application/DNS-message; x=1",
            b"application/dns-messages",
            b"application/dns",
        ];
        assert_eq!(types.map(is_dns), [true, true, false, false]);
    }

    #[test]
    fn content_is_read_wherever_it_is_cut() {
        for cut in 0..=QUERY.len() {
            let mut ledger = Ledger::default();
            let number = ledger.open("h2", 0);
            let mut carried = Carried::new(number);
            let (first, rest) = QUERY.split_at(cut);
            carried.data(&mut ledger, Side::Client, first.iter().copied());
            carried.data(&mut ledger, Side::Client, rest.iter().copied());
            carried.end(&mut ledger, Side::Client);
            assert_eq!(&ledger.get(number).unwrap().exchange.dns_question.as_ref().unwrap().name[..], "shop.example");
        }
    }

    proptest! {
        #[test]
        fn base64url_is_undone(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
            let text: String = bytes.chunks(3).flat_map(|chunk| {
                let word = chunk.iter().fold(0u32, |word, &byte| word << 8 | u32::from(byte)) << (8 * (3 - chunk.len()));
                (0..=chunk.len()).map(move |at| char::from(ALPHABET[(word >> (18 - 6 * at) & 63) as usize]))
            }).collect();
            prop_assert_eq!(decoded(&text), bytes);
        }
    }
}
