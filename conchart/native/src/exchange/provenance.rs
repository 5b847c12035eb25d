//! The origin of a request by its header fields: request identifiers, the client (`Forwarded`), the proxies (`Via`); and
//! where else the server says that it can be asked (`Alt-Svc`).
//!
//! Fields: W3C Trace Context (traceparent), Zipkin's B3, Jaeger, SkyWalking, AWS, Google and Cloudflare; X-Forwarded-For,
//! RFC 7239 (Forwarded), RFC 9110 section 7.6.3 (Via), RFC 7838 (Alt-Svc). In: header fields. Out: a [`Provenance`], where one of them is
//! there. Bounded: at most [`MAX_IDS`] identifiers, [`MAX_ALTERNATIVES`] alternatives, and so much of each text. All of it is as sent: hostile text.

/// Identifiers that are kept of one exchange.
const MAX_IDS: usize = 6;
/// Alternatives that are kept of one exchange.
pub(super) const MAX_ALTERNATIVES: usize = 8;
/// Longest value of an identifier, and of an alternative; others are cut.
const MAX_ID: usize = 128;
/// Longest list of addresses, or of proxies.
const MAX_LIST: usize = 512;

/// What the heads of an exchange say of its way.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Provenance {
    /// Each `name:value`, in the order in which they came, none twice.
    pub ids: Vec<String>,
    /// The span that asked, by the first traceparent: 16 hexadecimal digits.
    pub parent_span: Option<String>,
    /// For whom it was sent, and by which field that is known: the strongest that was there.
    forwarded_for: Option<(ClientField, String)>,
    pub via: Option<String>,
    /// Where else the service is: members of Alt-Svc as sent, records of DNS as text (RFC 9460 section 2.1).
    pub alternatives: Vec<String>,
}

/// Fields that say for whom a request was sent, weakest first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum ClientField {
    RealIp,
    Forwarded,
    XForwardedFor,
}

/// A field that counts here.
#[derive(Clone, Copy)]
enum Field {
    Id(&'static str, fn(&[u8]) -> Option<&[u8]>),
    For(ClientField),
    Via,
    AltSvc,
}

impl Field {
    /// The length first: this runs for every line of every head.
    fn of(name: &[u8]) -> Option<Self> {
        let candidates: &[(&str, Self)] = match name.len() {
            3 => &[("via", Self::Via), ("sw8", Self::Id("sw8", second_part))],
            6 => &[("cf-ray", Self::Id("cf-ray", whole))],
            7 => &[("alt-svc", Self::AltSvc)],
            9 => &[("forwarded", Self::For(ClientField::Forwarded)), ("x-real-ip", Self::For(ClientField::RealIp))],
            11 => &[("traceparent", Self::Id("traceparent", trace_id))],
            12 => {
                &[("x-request-id", Self::Id("x-request-id", whole)), ("x-b3-traceid", Self::Id("x-b3-traceid", whole))]
            }
            13 => &[("uber-trace-id", Self::Id("uber-trace-id", up_to_colon))],
            15 => &[
                ("x-forwarded-for", Self::For(ClientField::XForwardedFor)),
                ("x-amzn-trace-id", Self::Id("x-amzn-trace-id", root)),
            ],
            16 => &[("x-correlation-id", Self::Id("x-correlation-id", whole))],
            21 => &[("x-cloud-trace-context", Self::Id("x-cloud-trace-context", up_to_slash))],
            _ => &[],
        };
        candidates.iter().find(|(header, _)| name.eq_ignore_ascii_case(header.as_bytes())).map(|(_, field)| *field)
    }
}

impl Provenance {
    /// Takes in a header field, if it says something of the way.
    #[inline]
    pub(super) fn note(provenance: &mut Option<Box<Self>>, name: &[u8], value: &[u8]) {
        if let Some(field) = Field::of(name) {
            Self::take(provenance, field, value);
        }
    }

    fn take(slot: &mut Option<Box<Self>>, field: Field, value: &[u8]) {
        let value = value.trim_ascii();
        let whole = value;
        let taken = match field {
            Field::Id(_, part) => part(value),
            Field::For(_) | Field::Via | Field::AltSvc => Some(value),
        };
        let Some(value) = taken.filter(|value| !value.is_empty()) else { return };
        let provenance = slot.get_or_insert_default();
        if let (Field::Id("traceparent", _), None) = (field, &provenance.parent_span) {
            provenance.parent_span = parent_id(whole).map(|id| text(id, MAX_ID).to_ascii_lowercase());
        }
        match field {
            Field::Id(name, _) => provenance.add_id(format!("{name}:{}", text(value, MAX_ID))),
            Field::For(field) => provenance.add_forwarded(field, value),
            Field::Via => extend(provenance.via.get_or_insert_default(), value),
            Field::AltSvc => members(value).for_each(|member| provenance.add_alternative(member)),
        }
    }

    fn add_id(&mut self, id: String) {
        if self.ids.len() < MAX_IDS && !self.ids.contains(&id) {
            self.ids.push(id);
        }
    }

    pub(super) fn add_alternative(&mut self, alternative: &[u8]) {
        if self.alternatives.len() < MAX_ALTERNATIVES && !alternative.is_empty() {
            self.alternatives.push(text(alternative, MAX_ID).into_owned());
        }
    }

    fn add_forwarded(&mut self, field: ClientField, value: &[u8]) {
        match &mut self.forwarded_for {
            Some((present, _)) if *present > field => {}
            Some((present, list)) if *present == field => add_forwarded(list, field, value),
            weaker => {
                let mut list = String::new();
                add_forwarded(&mut list, field, value);
                if !list.is_empty() {
                    *weaker = Some((field, list));
                }
            }
        }
    }

    /// For whom the request was sent: X-Forwarded-For, else whom Forwarded names, else X-Real-IP.
    #[must_use]
    pub fn forwarded_for(&self) -> Option<&str> {
        self.forwarded_for.as_ref().map(|(_, list)| list.as_str())
    }

    /// What both heads of an exchange say. For whom it was sent is the request's to say,
    /// where else the service is the response's.
    pub(super) fn joined(request: Option<Box<Self>>, response: Option<Box<Self>>) -> Option<Box<Self>> {
        let Some(response) = response else { return request };
        let mut joined = request.unwrap_or_default();
        response.ids.into_iter().for_each(|id| joined.add_id(id));
        joined.alternatives = response.alternatives;
        joined.via = joined.via.take().or(response.via);
        Some(joined)
    }
}

fn add_forwarded(list: &mut String, field: ClientField, value: &[u8]) {
    if field != ClientField::Forwarded {
        return extend(list, value);
    }
    for pair in value.split(|byte| b",;".contains(byte)) {
        let Some((name, node)) = split_at(pair.trim_ascii(), b'=') else { continue };
        let node = node.strip_prefix(b"\"").map_or(node, |node| node.strip_suffix(b"\"").unwrap_or(node));
        if name.eq_ignore_ascii_case(b"for") && !node.is_empty() {
            extend(list, node);
        }
    }
}

/// Members of a list, whose strings may hold commas (RFC 9110 section 5.6.1).
fn members(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let (mut quoted, mut escaped) = (false, false);
    let mut separates = move |byte: &u8| {
        let literal = escaped;
        escaped = quoted && !literal && *byte == b'\\';
        quoted ^= *byte == b'"' && !literal;
        *byte == b',' && !quoted
    };
    value.split(move |byte| separates(byte)).map(<[u8]>::trim_ascii)
}

/// Fields of one name are one list (RFC 9110 section 5.3).
fn extend(list: &mut String, value: &[u8]) {
    if list.len() < MAX_LIST {
        let separator = if list.is_empty() { "" } else { ", " };
        list.push_str(separator);
        list.push_str(&text(value, MAX_LIST.saturating_sub(list.len())));
    }
}

fn text(value: &[u8], longest: usize) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(value.get(..longest).unwrap_or(value))
}

fn split_at(value: &[u8], mark: u8) -> Option<(&[u8], &[u8])> {
    let (before, after) = value.split_at(memchr::memchr(mark, value)?);
    Some((before, after.get(1..)?))
}

// Most identifiers also number the step of the way, which each hop changes: what stays is kept.

#[expect(clippy::unnecessary_wraps, reason = "one of several ways to find the part that stays")]
fn whole(value: &[u8]) -> Option<&[u8]> {
    Some(value)
}

/// `version-traceid-parentid-flags`: the second, of 32 digits.
fn trace_id(value: &[u8]) -> Option<&[u8]> {
    let id = second_part(value)?;
    (id.len() == 32 && id.iter().all(u8::is_ascii_hexdigit)).then_some(id)
}

/// The third part, of 16 digits: which step of the way the sender is.
fn parent_id(value: &[u8]) -> Option<&[u8]> {
    let id = value.split(|byte| *byte == b'-').nth(2)?;
    (id.len() == 16 && id.iter().all(u8::is_ascii_hexdigit)).then_some(id)
}

/// What stands between the first two hyphens.
fn second_part(value: &[u8]) -> Option<&[u8]> {
    value.split(|byte| *byte == b'-').nth(1)
}

/// `traceid:spanid:parentid:flags`; Jaeger's clients write the colons as `%3A`, too.
fn up_to_colon(value: &[u8]) -> Option<&[u8]> {
    value.split(|byte| b":%".contains(byte)).next()
}

/// `traceid/spanid;o=options`.
fn up_to_slash(value: &[u8]) -> Option<&[u8]> {
    value.split(|byte| b"/;".contains(byte)).next()
}

/// `Root=1-…;Parent=…;Sampled=1`, in any order.
fn root(value: &[u8]) -> Option<&[u8]> {
    value.split(|byte| *byte == b';').find_map(|pair| pair.trim_ascii().strip_prefix(b"Root="))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn read(fields: &[(&str, &str)]) -> Option<Box<Provenance>> {
        let mut provenance = None;
        fields.iter().for_each(|(name, value)| Provenance::note(&mut provenance, name.as_bytes(), value.as_bytes()));
        provenance
    }

    #[test]
    fn the_span_that_asked_is_the_first_traceparents() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let parent_span = |parents: &[&str]| {
            let values: Vec<String> = parents.iter().map(|parent| format!("00-{trace}-{parent}")).collect();
            let fields: Vec<(&str, &str)> = values.iter().map(|value| ("traceparent", value.as_str())).collect();
            read(&fields).and_then(|way| way.parent_span)
        };
        assert_eq!(parent_span(&["00f067aa0ba902B7-01", "1111111111111111-01"]).as_deref(), Some("00f067aa0ba902b7"));
        assert_eq!(parent_span(&["00f067aa0ba902b-01"]), None);
        assert_eq!(parent_span(&["00f067aa0ba902zz-01"]), None);
    }

    #[test]
    fn of_identifiers_the_part_that_every_hop_keeps_is_taken() {
        for (name, value, id) in [
            (
                "Traceparent",
                "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                "4bf92f3577b34da6a3ce929d0e0e4736",
            ),
            ("X-Request-ID", " 7f1a ", "7f1a"),
            ("x-correlation-id", "a:b c", "a:b c"),
            (
                "X-Amzn-Trace-Id",
                "Self=1-2-3;Root=1-67891233-abcdef012345678912345678;Sampled=1",
                "1-67891233-abcdef012345678912345678",
            ),
            ("X-B3-TraceId", "463ac35c9f6413ad48485a3953bb6124", "463ac35c9f6413ad48485a3953bb6124"),
            ("uber-trace-id", "3e0c63257de34c92:1:0:1", "3e0c63257de34c92"),
            ("uber-trace-id", "3e0c63257de34c92%3A1%3A0%3A1", "3e0c63257de34c92"),
            ("sw8", "1-TRACEID==-PARENT-3-PARENT_SERVICE", "TRACEID=="),
            ("X-Cloud-Trace-Context", "105445aa7843bc8bf206b12000100000/1;o=1", "105445aa7843bc8bf206b12000100000"),
            ("CF-RAY", "230b030023ae2822-SJC", "230b030023ae2822-SJC"),
        ] {
            let expected = format!("{}:{id}", name.to_ascii_lowercase());
            assert_eq!(read(&[(name, value)]).unwrap().ids, [expected]);
        }
    }

    #[test]
    fn what_is_empty_or_no_identifier_leaves_nothing() {
        let senseless = [("traceparent", "00-xyz-1-1"), ("traceparent", "00"), ("x-request-id", ""), ("sw8", "1")];
        assert_eq!(
            read(&[&senseless[..], &[("x-amzn-trace-id", "Self=1"), ("forwarded", "proto=http")]].concat())
                .map_or(Vec::new(), |found| found.ids),
            Vec::<String>::new()
        );
        assert_eq!(read(&senseless), None);
        assert_eq!(read(&[("cookie", "x-request-id=1"), ("via2", "1.1 a")]), None);
    }

    #[test]
    fn the_strongest_field_says_for_whom_a_request_was_sent() {
        let (real, forwarded, list) = (
            ("X-Real-IP", "10.0.0.9"),
            ("Forwarded", "for=\"[2001:db8::1]:4711\";proto=https, For=10.0.0.2"),
            ("X-Forwarded-For", "10.0.0.3"),
        );
        let client = |fields: &[(&str, &str)]| read(fields).and_then(|found| found.forwarded_for().map(str::to_owned));
        assert_eq!(client(&[real]).as_deref(), Some("10.0.0.9"));
        assert_eq!(client(&[forwarded, real]).as_deref(), Some("[2001:db8::1]:4711, 10.0.0.2"));
        assert_eq!(client(&[list, forwarded, real]).as_deref(), Some("10.0.0.3"));
        assert_eq!(client(&[forwarded, list, ("x-forwarded-for", "10.0.0.4")]).as_deref(), Some("10.0.0.3, 10.0.0.4"));
        assert_eq!(client(&[("Forwarded", "proto=https"), real]).as_deref(), Some("10.0.0.9"));
    }

    #[test]
    fn both_heads_tell_and_none_of_it_twice() {
        let request = read(&[("x-request-id", "7"), ("via", "1.1 a"), ("via", "1.1 b"), ("x-real-ip", "10.0.0.9")]);
        let response = read(&[("x-request-id", "7"), ("cf-ray", "9"), ("via", "2 c"), ("x-forwarded-for", "10.0.0.8")]);
        let both = Provenance::joined(request, response.clone()).unwrap();
        assert_eq!(both.ids, ["x-request-id:7", "cf-ray:9"]);
        assert_eq!((both.via.as_deref(), both.forwarded_for()), (Some("1.1 a, 1.1 b"), Some("10.0.0.9")));
        let alone = Provenance::joined(None, response).unwrap();
        assert_eq!((alone.via.as_deref(), alone.forwarded_for()), (Some("2 c"), None));
    }

    #[test]
    fn the_response_says_where_else_the_service_is() {
        let fields =
            [("Alt-Svc", "h3=\":443\"; ma=86400, h3-29=\"a,\\\"b:443\""), ("alt-svc", "h2=\"alt.example:8000\"")];
        let response = read(&fields);
        let both = Provenance::joined(read(&[("alt-svc", "clear"), ("via", "1.1 a")]), response).unwrap();
        assert_eq!(both.alternatives, ["h3=\":443\"; ma=86400", "h3-29=\"a,\\\"b:443\"", "h2=\"alt.example:8000\""]);
        assert_eq!(both.via.as_deref(), Some("1.1 a"));
        assert_eq!(read(&[("alt-svc", &"a,".repeat(20))]).unwrap().alternatives, ["a"; MAX_ALTERNATIVES]);
    }

    proptest! {
        #[test]
        fn hostile_fields_take_little_room(
            fields in prop::collection::vec(
                (
                    prop::sample::select(vec!["via", "x-request-id", "forwarded", "x-forwarded-for", "sw8", "traceparent", "alt-svc"]),
                    prop::collection::vec(any::<u8>(), 0..700),
                ),
                0..40,
            ),
        ) {
            let mut provenance = None;
            fields.iter().for_each(|(name, value)| Provenance::note(&mut provenance, name.as_bytes(), value));
            if let Some(provenance) = provenance {
                prop_assert!(provenance.alternatives.len() <= MAX_ALTERNATIVES);
                prop_assert!(provenance.alternatives.iter().all(|alternative| alternative.len() <= 3 * MAX_ID));
                // A byte that is no UTF-8 becomes a mark of three.
                prop_assert!(provenance.ids.len() <= MAX_IDS);
                prop_assert!(provenance.ids.iter().all(|id| id.len() <= 3 * MAX_ID + 32));
                prop_assert!(provenance.via.iter().all(|via| via.len() <= 3 * MAX_LIST + 2));
                prop_assert!(provenance.forwarded_for().iter().all(|list| list.len() <= 3 * MAX_LIST + 2));
            }
        }
    }
}
