//! Service bindings (RFC 9460): HTTPS and SVCB records of a response, as text.
//!
//! In: a whole message. Out: of each record `priority target key=value …`, as RFC 9460 section 2.1 writes them but for
//! quotes, in the order of the answer. Of `ech` only the key is told: its value is a key for encryption. Records that
//! the capture cuts off, or that break the rules, are left out.
//!
//! Bounded: by [`MAX_ALTERNATIVES`] records; the names of a message are followed [`MAX_JUMPS`] times each.

use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::message::{HEADER, text};
use crate::bytes::Fields;
use crate::exchange::provenance::MAX_ALTERNATIVES;

const SVCB: u16 = 64;
const HTTPS: u16 = 65;
/// References from one name to another (RFC 1035 section 4.1.4) that are followed.
const MAX_JUMPS: usize = 16;
/// Labels of the longest name.
const MAX_LABELS: usize = 127;

/// Does such a question ask where a service is?
pub(super) fn is_service_binding(qtype: u16) -> bool {
    matches!(qtype, SVCB | HTTPS)
}

/// Reads the service bindings among the answers.
pub(super) fn read(message: &[u8], questions: u16, answers: u16) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = Fields(message.get(HEADER..).unwrap_or_default());
    for _ in 0..questions {
        if skip_name(&mut rest).and_then(|()| rest.take(4)).is_none() {
            return found;
        }
    }
    for _ in 0..answers {
        let Some((kind, data)) = record(&mut rest) else { break };
        if found.len() < MAX_ALTERNATIVES && is_service_binding(kind) {
            found.extend(binding(message, data));
        }
    }
    found
}

/// Type and data of the next record.
fn record<'a>(rest: &mut Fields<'a>) -> Option<(u16, &'a [u8])> {
    skip_name(rest)?;
    let kind = rest.u16()?;
    // Class and time to live.
    rest.take(6)?;
    Some((kind, rest.vec16()?))
}

fn skip_name(rest: &mut Fields<'_>) -> Option<()> {
    loop {
        match rest.u8()? {
            0 => return Some(()),
            length @ 1..=63 => rest.take(length.into()).map(|_| ())?,
            192.. => return rest.u8().map(|_| ()),
            _ => return None,
        }
    }
}

/// Reads a name; senders should not compress this one (RFC 9460 section 2.2), but some do.
fn name<'a>(message: &'a [u8], rest: &mut Fields<'a>) -> Option<Box<str>> {
    let (mut labels, mut jumped) = (Vec::new(), None);
    for _ in 0..MAX_LABELS + MAX_JUMPS {
        let bytes = jumped.as_mut().unwrap_or(&mut *rest);
        match bytes.u8()? {
            0 => return Some(text(&labels)),
            length @ 1..=63 => labels.push(bytes.take(length.into())?),
            high @ 192.. => {
                let at = usize::from(high & 0x3f) << 8 | usize::from(bytes.u8()?);
                jumped = Some(Fields(message.get(at..)?));
            }
            _ => return None,
        }
    }
    None
}

/// The data of a record as text.
fn binding<'a>(message: &'a [u8], data: &'a [u8]) -> Option<String> {
    let mut rest = Fields(data);
    let mut line = rest.u16()?.to_string();
    line.push(' ');
    line.push_str(&name(message, &mut rest)?);
    while !rest.0.is_empty() {
        let (key, value) = (rest.u16()?, rest.vec16()?);
        line.push(' ');
        parameter(&mut line, key, value)?;
    }
    Some(line)
}

/// A parameter (RFC 9460 section 14.3.2).
fn parameter(line: &mut String, key: u16, value: &[u8]) -> Option<()> {
    let mut rest = Fields(value);
    match key {
        0 => {
            listed(line, "mandatory", || (!rest.0.is_empty()).then(|| rest.u16().map(|key| key_name(key).into_owned())))
        }
        1 => listed(line, "alpn", || (!rest.0.is_empty()).then(|| rest.vec8().map(|id| text(&[id]).into()))),
        3 => listed(line, "port", || (!rest.0.is_empty()).then(|| rest.u16().map(|port| port.to_string()))),
        4 => listed(line, "ipv4hint", || {
            (!rest.0.is_empty()).then(|| rest.take(4)?.first_chunk::<4>().map(|&ip| Ipv4Addr::from(ip).to_string()))
        }),
        6 => listed(line, "ipv6hint", || {
            (!rest.0.is_empty()).then(|| rest.take(16)?.first_chunk::<16>().map(|&ip| Ipv6Addr::from(ip).to_string()))
        }),
        _ => {
            line.push_str(&key_name(key));
            Some(())
        }
    }
}

/// Writes `key=value,value`; `None` where a value is cut short.
fn listed(line: &mut String, key: &str, mut next: impl FnMut() -> Option<Option<String>>) -> Option<()> {
    line.push_str(key);
    let mut separator = '=';
    while let Some(value) = next() {
        write!(line, "{separator}{}", value?).ok()?;
        separator = ',';
    }
    Some(())
}

fn key_name(key: u16) -> std::borrow::Cow<'static, str> {
    match key {
        0 => "mandatory".into(),
        1 => "alpn".into(),
        2 => "no-default-alpn".into(),
        3 => "port".into(),
        4 => "ipv4hint".into(),
        5 => "ech".into(),
        6 => "ipv6hint".into(),
        7 => "dohpath".into(),
        _ => format!("key{key}").into(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::super::message::parse;

    /// A response to `shop.example`, HTTPS, with records of this type and data.
    fn response(records: &[(u16, &[u8])]) -> Vec<u8> {
        let mut message = b"\x1a\x2b\x85\x80\0\x01\0\0\0\0\0\0\x04shop\x07example\0\0\x41\0\x01".to_vec();
        *message.get_mut(7).unwrap() = u8::try_from(records.len()).unwrap();
        for (kind, data) in records {
            message.extend(b"\xc0\x0c");
            message.extend(kind.to_be_bytes());
            message.extend(b"\0\x01\0\0\x0e\x10");
            message.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
            message.extend(*data);
        }
        message
    }

    fn lines(records: &[(u16, &[u8])]) -> Vec<String> {
        parse(&response(records)).unwrap().services
    }

    #[test]
    fn records_are_told_as_zone_files_write_them() {
        let full =
            b"\0\x01\0\0\x01\0\x06\x02h3\x02h2\0\x02\0\0\0\x03\0\x02\x20\xfb\0\x04\0\x08\x0a\0\0\x01\x0a\0\0\x02\
            \0\x05\0\x02ab\0\x06\0\x10\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x02\x9b\0\x01x";
        let line =
            "1 . alpn=h3,h2 no-default-alpn port=8443 ipv4hint=10.0.0.1,10.0.0.2 ech ipv6hint=2001:db8::1 key667";
        assert_eq!(lines(&[(65, full)]), [line]);
        // An alias; a target by reference; what is asked for behind a CNAME.
        let alias = b"\0\0\x03svc\x07example\0";
        assert_eq!(
            lines(&[(5, b"\xc0\x0c"), (65, alias), (64, b"\0\x02\xc0\x0c")]),
            ["0 svc.example", "2 shop.example"]
        );
        assert_eq!(lines(&[(65, b"\0\x10\0\0\0\0\x04\0\x01\0\x03")]), ["16 . mandatory=alpn,port"]);
    }

    #[test]
    fn what_breaks_the_rules_is_left_out() {
        for wrong in [&b"\0"[..], b"\0\x01", b"\0\x01\0\0\x03\0\x01x", b"\0\x01\0\0\x01\0\x02\x05h", b"\0\x01\xc0\x2c"]
        {
            assert_eq!(lines(&[(65, wrong), (65, b"\0\x01\0")]), ["1 ."], "{wrong:?}");
        }
        let whole = response(&[(65, b"\0\x01\0")]);
        assert_eq!(parse(whole.get(..whole.len() - 1).unwrap()).unwrap().services, Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(data in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(lines(&[(65, &data), (64, &data)]).len() <= 2);
        }
    }
}
