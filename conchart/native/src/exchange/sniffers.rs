//! The table of what is known: how each protocol begins, and who reads it.
//!
//! In: the first bytes of one side's stream, or one datagram. Out: the row that fits, or who sent such bytes. Nothing
//! is kept. The order matters: the first row that does not say No decides, so that what tells less comes later.
//!
//! To add a protocol: write its reader in a file of its own, say what it is in `protocols`, and add a row here for each
//! way in which it begins.

use std::sync::LazyLock;

use super::dns::{self, Dns};
use super::fastcgi::{self, FastCgi};
use super::generic::Unread;
use super::generic::names;
use super::generic::opaque::Opaque;
use super::http1::Http1;
use super::http1::head;
use super::http2::{self, Http2};
use super::ldap::{self, Ldap};
use super::memcached::{self, Memcached, beginnings};
use super::mongodb::{self, MongoDb};
use super::mysql::{self, MySql};
use super::postgresql::{self, PostgreSql};
use super::prelude::{self, Prelude};
use super::quic::{self, OverQuic};
use super::reader::{Carrier, Row, Sender, Start, Verdict, When};
use super::redis::{self, Redis};
use super::tls::{self, OverTls};
use crate::stream::Side;

/// What most rows of streams have in common: nobody reads the protocol, it has only a name.
const STREAM: Row = Row {
    protocol: Some("unknown"),
    carrier: Carrier::Stream,
    sender: Sender::Either,
    first: When::Always,
    later: When::Never,
    alpn: None,
    verdict: |_| Verdict::No,
    reader: |opening| Box::new(Unread::new(opening)),
};

/// What most rows of datagrams have in common: any datagram tells.
const DATAGRAMS: Row = Row {
    carrier: Carrier::Datagrams,
    later: When::Always,
    reader: |opening| Box::new(Opaque::new(opening)),
    ..STREAM
};

const TLS: Row =
    Row { protocol: Some("tls"), later: When::Always, reader: |opening| Box::new(OverTls::new(opening)), ..STREAM };

const PRELUDE: Row = Row { sender: Sender::Requester, first: When::NotAfterGap, ..STREAM };

const HTTP1: Row =
    Row { protocol: None, later: When::Midstream, reader: |opening| Box::new(Http1::new(opening.start)), ..STREAM };

const HTTP2: Row = Row { protocol: Some("h2"), reader: |opening| Box::new(Http2::new(opening.requester)), ..STREAM };

const HTTP2_FRAMES: Row =
    Row { first: When::Midstream, later: When::Midstream, reader: |_| Box::new(Http2::midstream()), ..HTTP2 };

const DNS: Row = Row { protocol: Some("dns"), reader: |_| Box::new(Dns::over_datagrams()), ..DATAGRAMS };

const DNS_IN_STREAM: Row = Row {
    protocol: Some("dns"),
    later: When::Midstream,
    reader: |opening| Box::new(Dns::over_stream(opening)),
    ..STREAM
};

const LDAP: Row = Row { protocol: Some(ldap::PROTOCOL), later: When::Midstream, reader: Ldap::reader, ..STREAM };

const REDIS: Row = Row { protocol: Some(redis::PROTOCOL), later: When::Midstream, reader: Redis::reader, ..STREAM };

const MEMCACHED: Row =
    Row { protocol: Some(memcached::PROTOCOL), later: When::Midstream, reader: Memcached::reader, ..STREAM };

const MONGODB: Row =
    Row { protocol: Some(mongodb::PROTOCOL), later: When::Midstream, reader: MongoDb::reader, ..STREAM };

const POSTGRESQL: Row = Row {
    protocol: Some(postgresql::PROTOCOL),
    first: When::Midstream,
    later: When::Midstream,
    reader: PostgreSql::midstream,
    ..STREAM
};

const MYSQL: Row = Row {
    protocol: Some(mysql::PROTOCOL),
    first: When::Midstream,
    later: When::Midstream,
    reader: MySql::midstream,
    ..STREAM
};

const FASTCGI: Row = Row {
    protocol: Some(fastcgi::PROTOCOL),
    first: When::Midstream,
    later: When::Midstream,
    reader: FastCgi::reader,
    ..STREAM
};

const QUIC: Row = Row { protocol: Some("quic"), reader: |opening| Box::new(OverQuic::new(opening)), ..DATAGRAMS };

/// All that is known.
static ROWS: &[Row] = &[
    Row { sender: Sender::Requester, verdict: tls::client_hello, ..TLS },
    Row { sender: Sender::Responder, verdict: tls::server_hello, ..TLS },
    Row {
        protocol: Some("proxy"),
        verdict: prelude::sniff_proxy,
        reader: |opening| Box::new(Prelude::new(opening, prelude::Kind::Proxy)),
        ..PRELUDE
    },
    // A message of 260 or 261 bytes begins like SOCKS.
    Row { sender: Sender::Requester, verdict: mongodb::whole_request, ..MONGODB },
    Row {
        protocol: Some("socks"),
        verdict: prelude::sniff_socks4,
        reader: |opening| Box::new(Prelude::new(opening, prelude::Kind::Socks(prelude::Version::V4))),
        ..PRELUDE
    },
    Row {
        protocol: Some("socks"),
        verdict: prelude::sniff_socks5,
        reader: |opening| Box::new(Prelude::new(opening, prelude::Kind::Socks(prelude::Version::V5))),
        ..PRELUDE
    },
    // A record from the middle of TLS.
    Row {
        first: When::Midstream,
        later: When::Midstream,
        verdict: tls::record,
        reader: |opening| Box::new(OverTls::midstream(opening)),
        ..TLS
    },
    Row { sender: Sender::Requester, verdict: head::sniff_request, ..HTTP1 },
    Row { sender: Sender::Responder, verdict: head::sniff_response, ..HTTP1 },
    Row { sender: Sender::Requester, later: When::Always, alpn: Some("h2"), verdict: http2::sniff_client, ..HTTP2 },
    Row { sender: Sender::Responder, verdict: http2::sniff_server, ..HTTP2 },
    // Frames from the middle of HTTP/2.
    Row { sender: Sender::Requester, verdict: http2::sniff_request_frames, ..HTTP2_FRAMES },
    Row { sender: Sender::Responder, verdict: http2::sniff_response_frames, ..HTTP2_FRAMES },
    Row { verdict: http2::sniff_frames, ..HTTP2_FRAMES },
    Row { sender: Sender::Requester, verdict: dns::query, ..DNS },
    Row { sender: Sender::Responder, verdict: dns::response, ..DNS },
    Row { sender: Sender::Requester, verdict: quic::client, ..QUIC },
    Row { sender: Sender::Responder, verdict: quic::server, ..QUIC },
    Row { verdict: quic::either, ..QUIC },
    Row { sender: Sender::Requester, first: When::Always, verdict: fastcgi::beginning, ..FASTCGI },
    Row { sender: Sender::Requester, verdict: fastcgi::request, ..FASTCGI },
    Row { sender: Sender::Responder, verdict: fastcgi::response, ..FASTCGI },
    Row { sender: Sender::Requester, alpn: Some("dot"), verdict: dns::query_in_stream, ..DNS_IN_STREAM },
    Row { sender: Sender::Responder, verdict: dns::response_in_stream, ..DNS_IN_STREAM },
    Row { sender: Sender::Requester, verdict: ldap::request, ..LDAP },
    Row { sender: Sender::Responder, verdict: ldap::response, ..LDAP },
    Row {
        sender: Sender::Requester,
        first: When::Always,
        alpn: Some("postgresql"),
        verdict: postgresql::beginning,
        reader: PostgreSql::beginning,
        ..POSTGRESQL
    },
    Row { sender: Sender::Requester, verdict: postgresql::request, ..POSTGRESQL },
    Row { sender: Sender::Responder, verdict: postgresql::response, ..POSTGRESQL },
    Row { sender: Sender::Requester, verdict: redis::command, ..REDIS },
    Row { sender: Sender::Responder, first: When::Midstream, verdict: redis::reply, ..REDIS },
    Row { sender: Sender::Requester, verdict: mongodb::request, ..MONGODB },
    Row { sender: Sender::Responder, first: When::Midstream, verdict: mongodb::reply, ..MONGODB },
    // Nobody reads these here. They may go on with TLS.
    Row { protocol: Some("imap"), verdict: names::imap, ..STREAM },
    Row { protocol: Some("pop3"), verdict: names::pop3, ..STREAM },
    Row { protocol: Some("smtp"), verdict: names::smtp, ..STREAM },
    Row { protocol: Some("ftp"), verdict: names::ftp, ..STREAM },
    Row { protocol: Some("xmpp"), verdict: names::xmpp, ..STREAM },
    Row { protocol: Some("ssh"), verdict: names::ssh, ..STREAM },
    Row { protocol: Some("vnc"), verdict: names::vnc, ..STREAM },
    Row {
        sender: Sender::Responder,
        first: When::Always,
        later: When::Never,
        verdict: mysql::greeting,
        reader: MySql::beginning,
        ..MYSQL
    },
    Row {
        sender: Sender::Requester,
        first: When::Always,
        later: When::Never,
        verdict: mysql::login,
        reader: MySql::sealed,
        ..MYSQL
    },
    Row { sender: Sender::Requester, verdict: mysql::command, ..MYSQL },
    Row { sender: Sender::Responder, verdict: mysql::answer, ..MYSQL },
    Row { sender: Sender::Requester, verdict: beginnings::command, ..MEMCACHED },
    Row { sender: Sender::Responder, later: When::Never, verdict: beginnings::figures, ..MEMCACHED },
    Row { sender: Sender::Responder, first: When::Midstream, verdict: beginnings::reply, ..MEMCACHED },
    #[cfg(test)]
    Row {
        protocol: Some("echo"),
        sender: Sender::Requester,
        verdict: super::tests::echo::sniff,
        reader: |_| Box::new(super::tests::echo::Echo::default()),
        ..DATAGRAMS
    },
];

/// What no row fits.
static UNKNOWN_STREAM: Row = STREAM;
static UNKNOWN_DATAGRAMS: Row = DATAGRAMS;

/// What the table says of a prefix.
#[derive(Clone, Copy)]
pub(super) enum Judgement {
    Row(&'static Row),
    /// No row fits.
    None,
    /// Too few bytes to tell.
    More,
}

/// Which row begins like this? `all`: more will not be looked at.
pub(super) fn judge(carrier: Carrier, prefix: &[u8], start: Start, all: bool) -> Judgement {
    for row in ROWS.iter().filter(|row| row.carrier == carrier && row.first.applies(start)) {
        match (row.verdict)(prefix) {
            Verdict::Yes => return Judgement::Row(row),
            Verdict::More if !all => return Judgement::More,
            Verdict::More | Verdict::No => {}
        }
    }
    Judgement::None
}

/// Which row may begin like this in a packet of something unknown?
///
/// Every packet of something unknown is looked at: the few rows that may begin there are asked first, and nearly always
/// all of them say No. Only where one does not, a row before it may have the packet.
pub(super) fn judge_later(carrier: Carrier, packet: &[u8], start: Start) -> Option<&'static Row> {
    if !later(carrier, start).iter().any(|row| (row.verdict)(packet) == Verdict::Yes) {
        return None;
    }
    match judge(carrier, packet, start, carrier == Carrier::Datagrams) {
        Judgement::Row(row) => Some(row).filter(|row| row.later.applies(start)),
        Judgement::None | Judgement::More => None,
    }
}

/// The rows that may begin in any packet of something unknown.
pub(super) fn later(carrier: Carrier, start: Start) -> &'static [&'static Row] {
    static LATER: LazyLock<Vec<(Carrier, Start, Vec<&'static Row>)>> = LazyLock::new(|| {
        let carriers = [Carrier::Stream, Carrier::Datagrams].into_iter();
        let all = carriers.flat_map(|carrier| Start::ALL.map(|start| (carrier, start)));
        let applies = |row: &&Row, start| row.first.applies(start) && row.later.applies(start);
        let rows =
            |carrier, start| ROWS.iter().filter(move |row| row.carrier == carrier && applies(row, start)).collect();
        all.map(|(carrier, start)| (carrier, start, rows(carrier, start))).collect()
    });
    let rows = LATER.iter().find(|(of, since, _)| (*of, *since) == (carrier, start));
    rows.map_or(&[], |(_, _, rows)| rows)
}

/// The row of what a TLS handshake agreed on, if it has one.
pub(super) fn agreed(alpn: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.alpn == Some(alpn))
}

/// The row of what is not known.
pub(super) fn unknown(carrier: Carrier) -> &'static Row {
    match carrier {
        Carrier::Stream => &UNKNOWN_STREAM,
        Carrier::Datagrams => &UNKNOWN_DATAGRAMS,
    }
}

/// Which side sent this packet of a connection that the capture joined midway? `None`: it does not say. Only what is
/// looked for in the middle of a connection counts.
#[must_use]
pub fn likely_sender(carrier: Carrier, payload: &[u8]) -> Option<Side> {
    match judge_later(carrier, payload, Start::Midstream)?.sender {
        Sender::Requester => Some(Side::Client),
        Sender::Responder => Some(Side::Server),
        Sender::Either => None,
    }
}
