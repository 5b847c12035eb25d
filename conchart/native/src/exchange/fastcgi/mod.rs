//! FastCGI: what a web server asks an application server (PHP-FPM and others).
//!
//! In: a stream of records in each direction, those of several requests mixed. Out: exchanges in the [`Ledger`]: method,
//! host and target are those of the HTTP request that the parameters tell, status is that of the response's head. A
//! request that the application server rejects has the number of the reason as its status (1 to 3). Non-goals: all other
//! parameters, contents, the texts of errors.
//!
//! Bounded: [`MAX_REQUESTS`] requests are under way; of each the beginning of its parameters and of its response's head
//! is kept until they are read.

mod record;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use super::framed::Whole;
use super::http1::head::method_name;
use super::ledger::{GUESSED, Ledger};
use super::messages::{Messages, Protocol};
use super::protocols::{StatusText, named};
use super::provenance::Provenance;
use super::reader::{Opening, Reader, Verdict};
use super::{Exchange, Span};
use crate::stream::{Moment, Side};
use record::{Kind, Part, Record};

pub(super) const PROTOCOL: &str = "fastcgi";

/// Reasons why an application server rejects a request (FastCGI 1.0, section 5.5).
const REJECTED: &[(u32, &str)] = &[(1, "CANT_MPX_CONN"), (2, "OVERLOADED"), (3, "UNKNOWN_ROLE")];

/// How people write a status: the reason why the request was rejected, else the status of HTTP.
pub(super) fn status_text(status: u32) -> StatusText {
    named(REJECTED, status).unwrap_or(StatusText::Number(status))
}

const MAX_REQUESTS: usize = 256;
/// Questions about the server that wait.
const MAX_QUESTIONS: usize = 64;
/// What a response without a status has (RFC 3875 section 6.3.3), and one that only names another place (6.3.2).
const OK: u32 = 200;
const FOUND: u32 = 302;
/// Roles that read no contents, and those that also read a file.
const AUTHORIZER: u16 = 2;
const FILTER: u16 = 3;
/// As much is told of names and products.
const MAX_NAME: usize = 255;
const MAX_PRODUCT: usize = 128;
const MAX_TARGET: usize = 2048;

/// Does a connection begin like this?
pub(super) fn beginning(prefix: &[u8]) -> Verdict {
    record::begins(prefix)
}

/// Does the middle of a connection go on like this, said by the web server?
pub(super) fn request(prefix: &[u8]) -> Verdict {
    record::goes_on(prefix, true)
}

/// The same, said by the application.
pub(super) fn response(prefix: &[u8]) -> Verdict {
    record::goes_on(prefix, false)
}

/// The requests of one connection.
#[derive(Default)]
pub(super) struct FastCgi {
    requests: BTreeMap<u16, Request>,
    /// Questions about the server.
    questions: VecDeque<u32>,
    /// Responses whose head is not complete.
    heads: usize,
}

/// A request that is under way.
struct Request {
    number: u32,
    role: u16,
    parameters: Buffer,
    head: Buffer,
}

/// The beginning of a stream of records.
#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    /// No more of it is wanted, or what follows is not known.
    over: bool,
}

impl Buffer {
    fn add(&mut self, part: &Part, most: usize) {
        if self.over {
            return;
        }
        let room = most.saturating_sub(self.bytes.len());
        self.bytes.extend(part.bytes.iter().take(room));
        self.over = part.cut || part.bytes.len() > room;
    }
}

impl FastCgi {
    pub fn reader(opening: &Opening<'_>) -> Box<dyn Reader> {
        Box::new(Messages::new(opening, Self::default()))
    }

    fn asks(&mut self, ledger: &mut Ledger, record: Record, span: Span, offset: u64) {
        match record.kind {
            Kind::Begin { role, keeps } => return self.begin(ledger, record.request, (role, keeps), span, offset),
            Kind::GetValues => return self.question(ledger, span, offset),
            _ => {}
        }
        let Some(request) = self.requests.get_mut(&record.request) else {
            return;
        };
        let Some(entry) = ledger.get(request.number) else {
            return;
        };
        let exchange = &mut entry.exchange;
        if exchange.request.done {
            return;
        }
        exchange.request.append(span);
        exchange.request.done = span.done
            && match record.kind {
                Kind::Abort => true,
                Kind::Parameters(part) if part.bytes.is_empty() && !part.cut => {
                    request.parameters.over = true;
                    describe(exchange, &std::mem::take(&mut request.parameters.bytes));
                    request.role == AUTHORIZER
                }
                Kind::Parameters(part) => {
                    request.parameters.add(&part, record::MAX_PARAMETERS);
                    false
                }
                Kind::Input { last } => last && request.role != FILTER,
                Kind::Data { last } => last,
                _ => false,
            };
    }

    /// A request begins. One with its number is over.
    fn begin(&mut self, ledger: &mut Ledger, id: u16, (role, keeps): (u16, bool), span: Span, offset: u64) {
        let oldest = self.requests.iter().min_by_key(|(_, request)| request.number).map(|(id, _)| *id);
        let full = if self.requests.len() >= MAX_REQUESTS { oldest } else { None };
        for id in [Some(id), full].into_iter().flatten() {
            if let Some(request) = self.take(id)
                && let Some(entry) = ledger.get(request.number)
            {
                let exchange = &mut entry.exchange;
                exchange.ended = exchange.response.revealed.or(exchange.response.last).or(span.first);
            }
        }
        let number = ledger.open(PROTOCOL, offset);
        if let Some(entry) = ledger.get(number) {
            let exchange = &mut entry.exchange;
            exchange.request = Span { done: false, ..span };
            exchange.client_keepalive = Some(keeps);
        }
        self.heads += 1;
        self.requests.insert(id, Request { number, role, parameters: Buffer::default(), head: Buffer::default() });
    }

    fn take(&mut self, id: u16) -> Option<Request> {
        let request = self.requests.remove(&id)?;
        self.heads -= usize::from(!request.head.over);
        Some(request)
    }

    fn question(&mut self, ledger: &mut Ledger, span: Span, offset: u64) {
        let number = ledger.open(PROTOCOL, offset);
        if let Some(entry) = ledger.get(number) {
            entry.exchange.request = span;
            entry.exchange.method = Some("FCGI_GET_VALUES".into());
        }
        if self.questions.len() >= MAX_QUESTIONS {
            self.questions.pop_front();
        }
        self.questions.push_back(number);
    }

    fn answers(&mut self, ledger: &mut Ledger, record: Record, span: Span) {
        if matches!(record.kind, Kind::Values | Kind::Unknown) {
            if let Some(entry) = self.questions.pop_front().and_then(|number| ledger.get(number)) {
                entry.exchange.response = span;
            }
            return;
        }
        let Some(request) = self.requests.get_mut(&record.request) else {
            return;
        };
        let Some(entry) = ledger.get(request.number) else {
            self.take(record.request);
            return;
        };
        let exchange = &mut entry.exchange;
        match record.kind {
            Kind::Output(part) => {
                // An empty record says only that no more follows.
                if exchange.response.first.is_some() || part.cut || !part.bytes.is_empty() {
                    exchange.response.append(span);
                }
                if !request.head.over {
                    request.head.add(&part, record::MAX_HEAD);
                    let complete = read_head(exchange, &request.head.bytes);
                    request.head.over |= complete;
                    if request.head.over {
                        self.heads -= 1;
                        request.head.bytes = Vec::new();
                    }
                }
            }
            // Errors begin no response.
            Kind::Errors if exchange.response.first.is_some() => exchange.response.append(span),
            Kind::End { status } => {
                exchange.response.append(span);
                exchange.response.done = span.done;
                if status > 0 {
                    exchange.status = Some(status.into());
                }
                // The application may not have waited for all of the request.
                if !exchange.request.done || !span.done {
                    exchange.ended = span.last;
                }
                self.take(record.request);
            }
            _ => {}
        }
    }
}

/// Tells what the parameters say of the request.
fn describe(exchange: &mut Exchange, parameters: &[u8]) {
    let (mut script, mut query) = (None, None);
    for (name, value) in record::pairs(parameters) {
        match name {
            b"REQUEST_METHOD" => exchange.method = method_name(value.get(..MAX_NAME).unwrap_or(value)),
            b"REQUEST_URI" => exchange.target = text(value, MAX_TARGET),
            b"SCRIPT_NAME" => script = Some(value),
            b"QUERY_STRING" => query = Some(value).filter(|query| !query.is_empty()),
            b"HTTP_HOST" => exchange.host = text(value, MAX_NAME),
            b"HTTP_USER_AGENT" => exchange.user_agent = text(value, MAX_PRODUCT),
            _ => {
                if let Some(field) = name.strip_prefix(b"HTTP_") {
                    let field: Vec<u8> = field.iter().map(|byte| if *byte == b'_' { b'-' } else { *byte }).collect();
                    Provenance::note(&mut exchange.provenance, &field, value);
                }
            }
        }
    }
    if exchange.target.is_none()
        && let Some(script) = script
    {
        let joined = [script, query.map_or(&[][..], |_| b"?"), query.unwrap_or_default()].concat();
        exchange.target = text(&joined, MAX_TARGET);
    }
}

fn text(value: &[u8], most: usize) -> Option<Box<str>> {
    let value = value.get(..most).unwrap_or(value);
    if value.is_empty() { None } else { Some(String::from_utf8_lossy(value).into()) }
}

/// Reads the head of a response, as far as it is there: is it complete?
fn read_head(exchange: &mut Exchange, head: &[u8]) -> bool {
    let (mut status, mut elsewhere) = (None, false);
    let mut rest = head;
    while let Some(end) = memchr::memchr(b'\n', rest) {
        let line = rest.get(..end).unwrap_or_default().trim_ascii();
        rest = rest.get(end + 1..).unwrap_or_default();
        if line.is_empty() {
            exchange.status = status.or(Some(if elsewhere { FOUND } else { OK }));
            return true;
        }
        let Some((name, value)) = memchr::memchr(b':', line).and_then(|at| line.split_at_checked(at)) else {
            continue;
        };
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        if name.eq_ignore_ascii_case(b"status") {
            status = value.get(..3).and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
            exchange.status = status;
        }
        elsewhere |= name.eq_ignore_ascii_case(b"location");
        if name.eq_ignore_ascii_case(b"server") {
            exchange.server_software = text(value, MAX_PRODUCT);
        }
    }
    false
}

impl Protocol for FastCgi {
    type Message = Record;
    const NAME: &'static str = PROTOCOL;

    fn begins(packet: &[u8], asks: bool) -> bool {
        record::goes_on(packet, asks) == Verdict::Yes
    }

    fn context(&self, asks: bool) -> bool {
        !asks && self.heads > 0
    }

    fn message(&mut self, ledger: &mut Ledger, from: Side, Whole { message, span, offset }: Whole<Record>) {
        if ledger.asks(from) {
            self.asks(ledger, message, span, offset);
        } else {
            self.answers(ledger, message, span);
        }
    }

    /// Records have the number of their request: what is missing is nobody else's.
    fn lost(&mut self, ledger: &mut Ledger, from: Side, by: Moment) {
        let asks = ledger.asks(from);
        for request in self.requests.values_mut() {
            let Some(entry) = ledger.get(request.number) else {
                continue;
            };
            let exchange = &mut entry.exchange;
            if asks && !exchange.request.done {
                exchange.doubt(GUESSED);
                exchange.request.revealed.get_or_insert(by);
                request.parameters.over = true;
            } else if !asks {
                exchange.doubt(GUESSED);
                exchange.response.revealed.get_or_insert(by);
                self.heads -= usize::from(!std::mem::replace(&mut request.head.over, true));
            }
        }
        if !asks {
            for number in self.questions.drain(..) {
                if let Some(entry) = ledger.get(number) {
                    entry.exchange.ended = Some(by);
                }
            }
        }
    }

    fn finish(&mut self, _ledger: &mut Ledger) {
        self.requests.clear();
        self.questions.clear();
        self.heads = 0;
    }
}
