//! DNS messages (RFC 1035 section 4): header, first question and service bindings of one, and whether bytes are one.
//!
//! In: the bytes of a message. Out: [`Message`], or a [`Verdict`]. Non-goals: resource records but those of `services`.

use std::borrow::Cow;

use super::services;
use crate::exchange::reader::Verdict;

pub(super) const HEADER: usize = 12;
/// Longest name on the wire (RFC 1035 section 3.1), and longest text that is made of one.
const MAX_NAME: usize = 255;
/// The bytes of a message in which its first question ends, wherever that is.
pub(super) const QUESTION_END: usize = HEADER + MAX_NAME + 4;
/// A header and the shortest question: that for the root.
pub(super) const MIN_QUERY: usize = HEADER + 5;

const QR: u16 = 0x8000;
const AA: u16 = 0x0400;
const TC: u16 = 0x0200;
/// Must be zero (RFC 1035 section 4.1.1; RFC 4035 took the two bits beside it).
const Z: u16 = 0x0040;

/// Header and first question.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Message {
    pub id: u16,
    pub is_response: bool,
    pub rcode: u8,
    /// The rest has to be asked for over TCP.
    pub truncated: bool,
    /// Responses of mDNS have none, refusals need none.
    pub question: Option<Question>,
    /// Where the service is that was asked for, as text.
    pub services: Vec<String>,
}

impl Message {
    /// Is this a response that may say where a service is?
    pub fn has_services(&self) -> bool {
        self.is_response && self.question.as_ref().is_some_and(|question| services::is_service_binding(question.qtype))
    }

    /// A query of mDNS (RFC 6762 section 18.1): its responses go to everyone, not back to who asked.
    pub fn is_multicast(&self) -> bool {
        let local = |question: &Question| question.name.to_ascii_lowercase().ends_with(".local");
        self.id == 0 && self.question.as_ref().is_none_or(local)
    }
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Question {
    /// QNAME as text (RFC 4343 section 2.1): bytes that do not print are `\DDD`; at most [`MAX_NAME`] characters.
    pub name: Box<str>,
    pub qtype: u16,
    pub qclass: u16,
}

impl Question {
    /// Names differ in case as the asker likes (RFC 4343 section 3.1).
    pub fn is(&self, other: &Self) -> bool {
        (self.qtype, self.qclass) == (other.qtype, other.qclass) && self.name.eq_ignore_ascii_case(&other.name)
    }
}

/// Reads a message, of which the capture may hold only the beginning.
pub(super) fn parse(message: &[u8]) -> Option<Message> {
    let [id, flags, questions, answers, ..] = header(message)?;
    let question = if questions == 0 { None } else { Some(question(message.get(HEADER..)?)?) };
    let mut read = Message {
        id,
        is_response: flags & QR != 0,
        rcode: flags.to_be_bytes()[1] & 0x0f,
        truncated: flags & TC != 0,
        question,
        services: Vec::new(),
    };
    if read.has_services() {
        read.services = services::read(message, questions, answers);
    }
    Some(read)
}

/// Is this a DNS message? With [`Verdict::More`], nothing speaks against it but its first question has not ended.
pub(super) fn sniff(message: &[u8]) -> Verdict {
    let mut words = message.chunks_exact(2).filter_map(|pair| pair.first_chunk().copied().map(u16::from_be_bytes));
    let (_id, flags, questions) = (words.next(), words.next(), words.next());
    let fits = flags.is_none_or(flags_fit) && questions.is_none_or(|count| (1..=MAX_QUESTIONS).contains(&count));
    if !fits {
        return Verdict::No;
    }
    let (Some([_, flags, questions, answers, authorities, additional]), Some(rest)) =
        (header(message), message.get(HEADER..))
    else {
        return Verdict::More;
    };
    // A query may know answers already (RFC 6762 section 7.1), a transfer names its SOA record (RFC 1995 section 3).
    let asks = flags & QR == 0;
    let most = if asks { MAX_QUESTIONS } else { MAX_RECORDS };
    if [answers, authorities, additional].iter().any(|&count| count > most) || asks && additional > 3 {
        return Verdict::No;
    }
    // Only mDNS has several questions in one message.
    match walk(rest) {
        Walk::Name(labels, [kind, class]) => {
            let recognised = qtype_name(kind).is_some() && matches!(class & !UNICAST_RESPONSE, 1 | 3 | 4 | 254 | 255);
            if recognised && !is_netbios(&labels, kind) && (questions == 1 || class & !UNICAST_RESPONSE == 1) {
                Verdict::Yes
            } else {
                Verdict::No
            }
        }
        Walk::More => Verdict::More,
        Walk::Wrong => Verdict::No,
    }
}

const MAX_QUESTIONS: u16 = 32;
const MAX_RECORDS: u16 = 4096;
/// A bit of QCLASS in mDNS (RFC 6762 section 5.4).
const UNICAST_RESPONSE: u16 = 0x8000;

/// QUERY, NOTIFY, UPDATE; what only a response has is not in a query.
fn flags_fit(flags: u16) -> bool {
    let query_fits = flags & AA == 0 && flags & 0x000f == 0;
    matches!(flags >> 11 & 0x0f, 0 | 4 | 5) && flags & Z == 0 && (flags & QR != 0 || query_fits)
}

/// NetBIOS names (RFC 1002 section 4.2) look like DNS; theirs are 32 letters from A to P.
fn is_netbios(labels: &[&[u8]], kind: u16) -> bool {
    let encoded = |label: &&[u8]| label.len() == 32 && label.iter().all(|byte| (b'A'..=b'P').contains(byte));
    kind == 33 && labels.first().is_some_and(encoded)
}

fn header(message: &[u8]) -> Option<[u16; 6]> {
    let mut words = [0; 6];
    for (word, pair) in words.iter_mut().zip(message.get(..HEADER)?.chunks_exact(2)) {
        *word = pair.first_chunk().copied().map(u16::from_be_bytes)?;
    }
    Some(words)
}

/// What stands where a question should.
enum Walk<'a> {
    /// The labels of its name, its type and class.
    Name(Vec<&'a [u8]>, [u16; 2]),
    /// It goes on.
    More,
    Wrong,
}

/// Walks a question. Its name is the first of the message, so there is nothing that compression could refer to.
fn walk(mut rest: &[u8]) -> Walk<'_> {
    let (mut labels, mut len) = (Vec::new(), 1);
    loop {
        let Some((&label_len, after)) = rest.split_first() else {
            return Walk::More;
        };
        len += 1 + usize::from(label_len);
        if label_len > 63 || len > MAX_NAME + 1 {
            return Walk::Wrong;
        }
        if label_len == 0 {
            let Some(&[k1, k0, c1, c0]) = after.first_chunk() else {
                return Walk::More;
            };
            return Walk::Name(labels, [u16::from_be_bytes([k1, k0]), u16::from_be_bytes([c1, c0])]);
        }
        let Some((label, after)) = after.split_at_checked(label_len.into()) else {
            return Walk::More;
        };
        labels.push(label);
        rest = after;
    }
}

fn question(bytes: &[u8]) -> Option<Question> {
    let Walk::Name(labels, [qtype, qclass]) = walk(bytes) else {
        return None;
    };
    Some(Question { name: text(&labels), qtype, qclass })
}

pub(super) fn text(labels: &[&[u8]]) -> Box<str> {
    if labels.is_empty() {
        return ".".into();
    }
    let mut name = String::new();
    for (position, label) in labels.iter().enumerate() {
        if position > 0 {
            name.push('.');
        }
        for &byte in *label {
            match byte {
                b'.' | b'\\' => name.extend(['\\', char::from(byte)]),
                b'!'..=b'~' => name.push(char::from(byte)),
                _ => name.push_str(&format!("\\{byte:03}")),
            }
        }
    }
    name.truncate(MAX_NAME);
    name.into()
}

/// The name of a QTYPE; `TYPE123` for those without one (RFC 3597 section 5).
pub(super) fn qtype(kind: u16) -> Cow<'static, str> {
    qtype_name(kind).map_or_else(|| format!("TYPE{kind}").into(), Cow::Borrowed)
}

fn qtype_name(kind: u16) -> Option<&'static str> {
    Some(match kind {
        1 => "A",
        2 => "NS",
        5 => "CNAME",
        6 => "SOA",
        10 => "NULL",
        12 => "PTR",
        13 => "HINFO",
        15 => "MX",
        16 => "TXT",
        17 => "RP",
        24 => "SIG",
        25 => "KEY",
        28 => "AAAA",
        29 => "LOC",
        33 => "SRV",
        35 => "NAPTR",
        39 => "DNAME",
        43 => "DS",
        44 => "SSHFP",
        46 => "RRSIG",
        47 => "NSEC",
        48 => "DNSKEY",
        50 => "NSEC3",
        51 => "NSEC3PARAM",
        52 => "TLSA",
        59 => "CDS",
        60 => "CDNSKEY",
        61 => "OPENPGPKEY",
        64 => "SVCB",
        65 => "HTTPS",
        99 => "SPF",
        249 => "TKEY",
        251 => "IXFR",
        252 => "AXFR",
        255 => "ANY",
        256 => "URI",
        257 => "CAA",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use proptest::prelude::*;

    use super::*;
    use crate::exchange::dns::tests::{NXDOMAIN, QUERY, RESPONSE};

    fn with_name(name: &[u8]) -> Vec<u8> {
        [&QUERY[..HEADER], name, &[0, 0, 1, 0, 1]].concat()
    }

    #[test]
    fn a_query_and_its_responses() {
        let query = parse(QUERY).unwrap();
        let question = Question { name: "shop.example".into(), qtype: 1, qclass: 1 };
        assert_eq!((query.id, query.is_response, query.question.as_ref()), (0x1a2b, false, Some(&question)));
        let response = parse(RESPONSE).unwrap();
        assert_eq!((response.id, response.is_response, response.rcode), (0x1a2b, true, 0));
        assert!(response.question.unwrap().is(&question));
        assert_eq!(parse(NXDOMAIN).unwrap().rcode, 3);
    }

    #[test]
    fn names_are_text_that_nobody_can_mistake() {
        let name = |wire: &[u8]| parse(&with_name(wire)).map(|message| message.question.unwrap().name.to_string());
        assert_eq!(name(b""), Some(".".into()));
        assert_eq!(name(b"\x05a.b\\\n\x02\xc3\xa9"), Some("a\\.b\\\\\\010.\\195\\169".into()));
        let longest = [&[63][..], &[7; 63]].concat().repeat(3);
        assert_eq!(name(&longest).map(|name| name.len()), Some(255));
        assert_eq!(name(&longest.repeat(2)), None);
        // Compression.
        assert_eq!(name(&[0xc0, 12]), None);
    }

    #[test]
    fn types_without_a_name_have_a_number() {
        assert_eq!([1, 28, 65, 255, 4711].map(qtype), ["A", "AAAA", "HTTPS", "ANY", "TYPE4711"]);
    }

    #[test]
    fn messages_are_told_from_other_bytes() {
        for message in [QUERY, RESPONSE, NXDOMAIN] {
            assert!(matches!(sniff(message), Verdict::Yes));
            let question_end = HEADER + 14 + 4;
            (0..question_end).for_each(|len| assert!(matches!(sniff(&message[..len]), Verdict::More), "{len}"));
        }
        let netbios =
            b"\x9a\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x20CKAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\x00\x00\x21\x00\x01";
        let stun = [0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
        let ntp = [0x23, 0, 6, 0xec, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        for bytes in [&netbios[..], &stun, &ntp, b"GET / HTTP/1.1\r\n\r\n", &[0; 48], &[0xff; 48]] {
            assert!(matches!(sniff(bytes), Verdict::No), "{bytes:?}");
        }
        // Bits and codes that no query has.
        for (position, byte) in [(2, 0x05), (2, 0x09), (3, 0x03), (3, 0x40), (5, 0), (6, 9), (27, 200), (29, 7)] {
            let mut message = QUERY.to_vec();
            message[position] = byte;
            assert!(matches!(sniff(&message), Verdict::No), "{position}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let question = parse(&bytes).and_then(|message| message.question);
            let printable = |name: &str| name.len() <= MAX_NAME && name.bytes().all(|byte| byte.is_ascii_graphic());
            prop_assert!(question.is_none_or(|question| printable(&question.name)));
            let _ = sniff(&bytes);
        }

        #[test]
        fn any_labels_are_a_name(labels in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..64), 0..6)) {
            let wire: Vec<u8> = labels.iter().flat_map(|label| {
                [&[u8::try_from(label.len()).unwrap()][..], label].concat()
            }).collect();
            let message = parse(&with_name(&wire));
            prop_assert_eq!(message.is_some(), wire.len() < MAX_NAME);
            prop_assert_eq!(matches!(sniff(&with_name(&wire)), Verdict::Yes), wire.len() < MAX_NAME);
        }
    }
}
