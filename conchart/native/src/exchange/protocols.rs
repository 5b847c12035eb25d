//! The facts about each protocol, once: one row per name that `exchanges.protocol` may have.
//!
//! In: the name of a protocol. Out: its row. The tables take kind and status from it; `py.rs` hands the rows to Python,
//! which makes conditions of them. How a protocol begins, and who reads it, stands in `sniffers`.

use std::fmt::{self, Write};

use super::http2::grpc;
use super::{dns, fastcgi, ldap, memcached, mongodb, mysql, postgresql, redis, websocket};

/// What is true of every exchange of a protocol.
#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    pub name: &'static str,
    /// What is asked: `exchanges.kind`.
    pub kind: &'static str,
    /// Of stores: what they keep. `exchanges.store`.
    pub store: Option<&'static str>,
    /// What serves it, where the protocol is that of one product.
    pub product: Option<&'static str>,
    /// The server begins: a client says nothing before it was greeted.
    pub greets: bool,
    /// Several requests may be under way at once, and be answered in any order.
    pub multiplexed: bool,
    /// Methods that no server answers.
    pub never_answered: &'static [&'static str],
    /// Methods that begin a session (encryption, authentication, which database), as long as nothing else came before.
    pub opens_session: &'static [&'static str],
    /// How people write a status.
    pub status_text: fn(u32) -> StatusText,
}

/// A status as people write it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StatusText {
    Name(&'static str),
    Number(u32),
    /// A number without a name, and what it is a number of: `RCODE 11`.
    Unnamed(&'static str, u32),
    /// Five digits to the base of 36: 42P01.
    SqlState(u32),
}

impl StatusText {
    /// Writes it. The three digits of HTTP's do without the formatting machinery: nearly every exchange has them.
    ///
    /// # Errors
    /// As writing.
    pub fn write(self, into: &mut impl Write) -> fmt::Result {
        match self {
            Self::Name(name) => into.write_str(name),
            Self::Number(number @ 100..=999) => [100, 10, 1]
                .into_iter()
                .try_for_each(|place| into.write_char(char::from_digit(number / place % 10, 10).unwrap_or('0'))),
            Self::Number(number) => write!(into, "{number}"),
            Self::Unnamed(of, number) => write!(into, "{of} {number}"),
            Self::SqlState(number) => [4, 3, 2, 1, 0].into_iter().try_for_each(|place| {
                let digit = char::from_digit(number / 36_u32.pow(place) % 36, 36);
                into.write_char(digit.unwrap_or('0').to_ascii_uppercase())
            }),
        }
    }
}

/// What most protocols have in common.
const PROTOCOL: Protocol = Protocol {
    name: "unknown",
    kind: "unknown",
    store: None,
    product: None,
    greets: false,
    multiplexed: false,
    never_answered: &[],
    opens_session: &[],
    status_text: StatusText::Number,
};

const WEB: Protocol = Protocol { kind: "web", ..PROTOCOL };
const MAIL: Protocol = Protocol { kind: "mail", greets: true, ..PROTOCOL };
const REMOTE: Protocol = Protocol { kind: "remote", greets: true, ..PROTOCOL };
const PROXY: Protocol = Protocol { kind: "proxy", ..PROTOCOL };
const SEALED: Protocol = Protocol { kind: "sealed", ..PROTOCOL };
const SQL: Protocol = Protocol { kind: "store", store: Some("sql"), ..PROTOCOL };
const CACHE: Protocol = Protocol { kind: "store", store: Some("cache"), ..PROTOCOL };

/// All names, those first that exchanges have most often.
pub static PROTOCOLS: &[Protocol] = &[
    Protocol { name: "http/1.1", ..WEB },
    Protocol { name: "h2", multiplexed: true, ..WEB },
    Protocol { name: "tls", ..SEALED },
    Protocol { name: dns::PROTOCOL, kind: "name", status_text: dns::status_text, ..PROTOCOL },
    Protocol { name: "h3", multiplexed: true, ..WEB },
    Protocol {
        name: redis::PROTOCOL,
        product: Some("Redis"),
        opens_session: &["AUTH", "HELLO", "CLIENT SETINFO", "CLIENT SETNAME", "SELECT"],
        status_text: redis::status_text,
        ..CACHE
    },
    Protocol {
        name: postgresql::PROTOCOL,
        product: Some("PostgreSQL"),
        never_answered: &["CancelRequest"],
        opens_session: &["SSLRequest", "GSSENCRequest", "Startup", "Authenticate"],
        status_text: StatusText::SqlState,
        ..SQL
    },
    Protocol {
        name: mysql::PROTOCOL,
        product: Some("MySQL"),
        greets: true,
        never_answered: &["SSLRequest", "Close stmt", "Long Data", "Quit"],
        opens_session: &["SSLRequest", "Greeting", "Connect", "Authenticate"],
        status_text: mysql::status_text,
        ..SQL
    },
    Protocol { name: grpc::PROTOCOL, kind: "rpc", multiplexed: true, status_text: grpc::status_text, ..PROTOCOL },
    Protocol {
        name: memcached::PROTOCOL,
        product: Some("memcached"),
        never_answered: &["quit"],
        status_text: memcached::status_text,
        ..CACHE
    },
    Protocol {
        name: mongodb::PROTOCOL,
        kind: "store",
        store: Some("document"),
        product: Some("MongoDB"),
        never_answered: &["OP_INSERT", "OP_UPDATE", "OP_DELETE", "OP_KILL_CURSORS"],
        opens_session: &["hello", "isMaster", "ismaster", "saslStart", "saslContinue", "authenticate", "getnonce"],
        status_text: mongodb::status_text,
        ..PROTOCOL
    },
    Protocol { name: fastcgi::PROTOCOL, kind: "gateway", status_text: fastcgi::status_text, ..PROTOCOL },
    Protocol { name: "http/1.0", ..WEB },
    Protocol {
        name: ldap::PROTOCOL,
        kind: "directory",
        // RFC 4511 sections 4.3 and 4.11.
        never_answered: &["unbind", "abandon"],
        status_text: ldap::status_text,
        ..PROTOCOL
    },
    Protocol { name: websocket::PROTOCOL, kind: "messages", ..PROTOCOL },
    Protocol { name: "quic", ..SEALED },
    Protocol { name: "proxy", ..PROXY },
    Protocol { name: "socks", ..PROXY },
    Protocol { name: "smtp", ..MAIL },
    Protocol { name: "imap", ..MAIL },
    Protocol { name: "pop3", ..MAIL },
    Protocol { name: "ssh", ..REMOTE },
    Protocol { name: "vnc", ..REMOTE },
    Protocol { name: "ftp", kind: "files", greets: true, ..PROTOCOL },
    Protocol { name: "xmpp", kind: "chat", ..PROTOCOL },
    UNKNOWN,
];

const UNKNOWN: Protocol = PROTOCOL;

/// The row of a protocol; that of `unknown` where it has none.
pub fn facts(name: &str) -> &'static Protocol {
    PROTOCOLS.iter().find(|protocol| protocol.name == name).unwrap_or(&UNKNOWN)
}

/// A status whose names stand in the order of their numbers, from 0.
pub(super) fn listed(names: &'static [&'static str], status: u32) -> Option<StatusText> {
    usize::try_from(status).ok().and_then(|status| names.get(status)).map(|&name| StatusText::Name(name))
}

/// A status whose names stand beside their numbers.
pub(super) fn named(names: &'static [(u32, &'static str)], status: u32) -> Option<StatusText> {
    names.iter().find(|(number, _)| *number == status).map(|&(_, name)| StatusText::Name(name))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_status_is_called_as_its_protocol_does() {
        for (protocol, status, text) in [
            ("http/1.1", 404, "404"),
            ("h2", 0, "0"),
            ("http/1.1", 1000, "1000"),
            ("dns", 3, "NXDOMAIN"),
            ("dns", 11, "RCODE 11"),
            ("ldap", 0, "success"),
            ("ldap", 32, "noSuchObject"),
            ("ldap", 4096, "result code 4096"),
            ("redis", 0, "OK"),
            ("redis", 2, "WRONGTYPE"),
            ("redis", 999, "error"),
            ("memcached", 3, "SERVER_ERROR"),
            ("mongodb", 0, "OK"),
            ("mongodb", 11000, "DuplicateKey"),
            ("mongodb", 4711, "error 4711"),
            ("postgresql", 0, "00000"),
            ("postgresql", 6_820_851, "42703"),
            ("postgresql", 36_u32.pow(5) - 1, "ZZZZZ"),
            ("fastcgi", 404, "404"),
            ("fastcgi", 2, "OVERLOADED"),
            ("mysql", 0, "OK"),
            ("mysql", 1062, "ERROR 1062"),
            ("grpc", 14, "UNAVAILABLE"),
            ("grpc", 502, "502"),
        ] {
            let mut written = String::new();
            (facts(protocol).status_text)(status).write(&mut written).unwrap();
            assert_eq!(written, text, "{protocol} {status}");
        }
    }

    #[test]
    fn every_name_has_one_row_and_a_store_its_product() {
        for (at, protocol) in PROTOCOLS.iter().enumerate() {
            assert_eq!(PROTOCOLS.iter().position(|other| other.name == protocol.name), Some(at));
            assert_eq!(protocol.store.is_some(), protocol.kind == "store", "{}", protocol.name);
            assert_eq!(protocol.store.is_some(), protocol.product.is_some(), "{}", protocol.name);
        }
        assert_eq!(facts("new").name, "unknown");
    }
}
