//! What header blocks of HTTP/2 and HTTP/3 say that matters here.
//!
//! In: fields. Out: [`Headers`], and what those of a request say of its exchange. Nothing is kept.

use std::borrow::Cow;

use super::grpc::is_grpc;
use super::hpack::Field;
use crate::exchange::dns::carried::is_dns;
use crate::exchange::http1::head::{expects_continue, method_name, product, text};
use crate::exchange::ledger::GUESSED;
use crate::exchange::{Exchange, Provenance, Tunnel, by_design};

/// Longest name of what is tunnelled that is kept.
const MAX_PROTOCOL: usize = 64;

/// What a header block says that matters here.
#[derive(Default)]
pub(in crate::exchange) struct Headers {
    pub method: Option<Cow<'static, str>>,
    pub authority: Option<Box<str>>,
    pub host: Option<Box<str>>,
    pub path: Option<Box<str>>,
    pub status: Option<u16>,
    /// The content is gRPC's.
    pub is_grpc: bool,
    /// The content is a message of DNS.
    pub is_dns: bool,
    /// The response comes when something happens.
    pub is_awaiting: bool,
    /// The content comes in parts, when something happens.
    pub is_stream: bool,
    pub grpc_status: Option<u32>,
    pub user_agent: Option<Box<str>>,
    pub server: Option<Box<str>>,
    pub expects_continue: bool,
    /// `:protocol` of an extended CONNECT (RFC 8441 section 4).
    pub protocol: Option<Box<str>>,
    pub provenance: Option<Box<Provenance>>,
}

impl Headers {
    pub fn add(&mut self, field: &Field) {
        let (Some(name), Some(value)) = (&field.name, &field.value) else {
            return;
        };
        match &name[..] {
            b":method" => self.method = method_name(value),
            b":authority" => self.authority = text(value),
            b":path" => self.path = text(value),
            b":protocol" => self.protocol = text(value.get(..MAX_PROTOCOL).unwrap_or(value)),
            b":status" => self.status = std::str::from_utf8(value).ok().and_then(|status| status.parse().ok()),
            b"content-type" => {
                (self.is_grpc, self.is_dns, self.is_stream) =
                    (is_grpc(value), is_dns(value), by_design::is_stream(value));
            }
            b"x-amz-target" => self.is_awaiting = by_design::is_awaiting(value),
            b"grpc-status" => self.grpc_status = std::str::from_utf8(value).ok().and_then(|code| code.parse().ok()),
            b"host" => self.host = text(value),
            b"user-agent" => self.user_agent = product(value),
            b"server" => self.server = product(value),
            b"expect" => self.expects_continue = expects_continue(value),
            _ => Provenance::note(&mut self.provenance, name, value),
        }
    }

    pub fn describe(self, exchange: &mut Exchange) {
        if exchange.method.is_none() && self.method.as_deref() == Some("CONNECT") {
            let kind = self.protocol.unwrap_or_else(|| "tcp".into());
            exchange.tunnel = Some(Box::new(Tunnel { kind, ..Tunnel::default() }));
            exchange.request.done = true;
        }
        let unreadable = self.method.is_none() && exchange.method.is_none();
        exchange.method = exchange.method.take().or(self.method);
        exchange.host = exchange.host.take().or(self.authority).or(self.host);
        exchange.target = exchange.target.take().or(self.path);
        exchange.user_agent = exchange.user_agent.take().or(self.user_agent);
        exchange.expects_continue = Some(self.expects_continue);
        exchange.provenance = Provenance::joined(self.provenance, exchange.provenance.take());
        if unreadable {
            exchange.doubt(GUESSED);
        }
    }
}
