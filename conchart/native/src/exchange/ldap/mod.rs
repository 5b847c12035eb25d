//! LDAP (RFC 4511): every operation is one exchange, however many are under way at once.
//!
//! In: a stream of messages, each in an envelope that says how long it is. Out: exchanges in the [`Ledger`]: method is
//! the operation, target what it is about, status the result code. The response to a search is all of its entries and
//! references, and what says that they are all. After StartTLS something else is read; what is no message, as all that a
//! SASL layer seals, is taken as turns. Non-goals: entries, controls, LDAP over UDP.
//!
//! Bounded: [`MAX_WAITING`] operations are remembered, and of each message its beginning; never a password.

mod ber;
mod filter;
mod message;
#[cfg(test)]
mod tests;

use super::framed::{self, Read, Whole};
use super::ledger::Ledger;
use super::messages::{Messages, Next, Protocol};
use super::protocols::{StatusText, named};
use super::questions::Questions;
use super::reader::{Opening, Reader, Verdict};
use super::{Outcome, Span};
use crate::stream::{Moment, Side};
use ber::Stop;
use message::{MIN_HEAD, Message, Request, Response, Says, Then};

pub(super) const PROTOCOL: &str = "ldap";

/// Names of result codes (RFC 4511 section 4.1.9, RFC 3909).
const RESULTS: &[(u32, &str)] = &[
    (0, "success"),
    (1, "operationsError"),
    (2, "protocolError"),
    (3, "timeLimitExceeded"),
    (4, "sizeLimitExceeded"),
    (5, "compareFalse"),
    (6, "compareTrue"),
    (7, "authMethodNotSupported"),
    (8, "strongerAuthRequired"),
    (10, "referral"),
    (11, "adminLimitExceeded"),
    (12, "unavailableCriticalExtension"),
    (13, "confidentialityRequired"),
    (14, "saslBindInProgress"),
    (16, "noSuchAttribute"),
    (17, "undefinedAttributeType"),
    (18, "inappropriateMatching"),
    (19, "constraintViolation"),
    (20, "attributeOrValueExists"),
    (21, "invalidAttributeSyntax"),
    (32, "noSuchObject"),
    (33, "aliasProblem"),
    (34, "invalidDNSyntax"),
    (36, "aliasDereferencingProblem"),
    (48, "inappropriateAuthentication"),
    (49, "invalidCredentials"),
    (50, "insufficientAccessRights"),
    (51, "busy"),
    (52, "unavailable"),
    (53, "unwillingToPerform"),
    (54, "loopDetect"),
    (64, "namingViolation"),
    (65, "objectClassViolation"),
    (66, "notAllowedOnNonLeaf"),
    (67, "notAllowedOnRDN"),
    (68, "entryAlreadyExists"),
    (69, "objectClassModsProhibited"),
    (71, "affectsMultipleDSAs"),
    (80, "other"),
    (118, "canceled"),
];

/// How people write a status: the name of the result code.
pub(super) fn status_text(status: u32) -> StatusText {
    named(RESULTS, status).unwrap_or(StatusText::Unnamed("result code", status))
}

/// Operations that are remembered while they are under way.
const MAX_WAITING: usize = 1024;
/// The number of what the server says unasked (RFC 4511 section 4.4).
const UNSOLICITED: u32 = 0;

/// Does this stream begin with a request?
pub(super) fn request(prefix: &[u8]) -> Verdict {
    message::sniff(prefix, true)
}

/// Does this stream begin with a response?
pub(super) fn response(prefix: &[u8]) -> Verdict {
    message::sniff(prefix, false)
}

/// The operations of one connection.
pub(super) struct Ldap {
    waiting: Questions<Waiting>,
    /// The response says that TLS follows.
    tls_follows: bool,
}

/// An operation that is under way.
struct Waiting {
    then: Then,
    /// It was abandoned: what still comes is not waited for.
    over: bool,
}

impl framed::Message for Message {
    type Context = ();
    const FIRST: usize = MIN_HEAD;

    fn read(beginning: &[u8], all: bool, (): ()) -> Read<Self> {
        let len = message::length(beginning).ok();
        match (message::read(beginning, all), len) {
            (Ok(message), Some(len)) => Read::Parsed(message, len),
            (Err(Stop::More(wanted)), len) => Read::More { wanted, len },
            _ => Read::Wrong,
        }
    }
}

impl Ldap {
    pub fn new() -> Self {
        Self { waiting: Questions::new(MAX_WAITING), tls_follows: false }
    }

    pub fn reader(opening: &Opening<'_>) -> Box<dyn Reader> {
        Box::new(Messages::new(opening, Self::new()))
    }

    /// What is missing may be the answer to any of them.
    fn doubt(&self, ledger: &mut Ledger, by: Moment) {
        for question in self.waiting.iter() {
            ledger.may_lack(question.number, by, false);
        }
    }

    fn request(&mut self, ledger: &mut Ledger, id: u32, request: Request, span: Span, offset: u64) {
        // A number is used again when its operation is over.
        let before = self.forget(id);
        let abandoned = if let Then::Abandoned(id) = request.then { Some(id) } else { None };
        let abandoned = abandoned.and_then(|id| self.of(id));
        if let Some(operation) = abandoned.and_then(|number| self.waiting.get(number)) {
            operation.over = true;
        }
        for number in before.into_iter().chain(abandoned) {
            if let Some(entry) = ledger.get(number) {
                entry.exchange.ended = span.last;
                entry.exchange.outcome = abandoned.map(|_| Outcome::Abandoned);
            }
        }
        let number = ledger.open(PROTOCOL, offset);
        let answered = !matches!(request.then, Then::Nothing | Then::Abandoned(_));
        if let Some(entry) = ledger.get(number) {
            let exchange = &mut entry.exchange;
            exchange.request = span;
            exchange.method = Some(request.operation.into());
            exchange.target = request.target;
            exchange.ended = if answered { None } else { span.last };
        }
        if answered {
            self.waiting.push(id, number, Waiting { then: request.then, over: false });
        }
    }

    fn response(&mut self, ledger: &mut Ledger, id: u32, response: &Response, span: Span, offset: u64) {
        let oldest = self.waiting.of(id).next();
        let operation = oldest.map(|question| (question.number, question.about.then, question.about.over));
        let (number, then) = match operation {
            Some((_, _, true)) => return,
            Some((number, then, false)) => (number, then),
            // Nobody saw the request, or there is none.
            None => {
                let number = ledger.open(PROTOCOL, offset);
                let method = if id == UNSOLICITED { Some("notification") } else { response.operation };
                if let Some(entry) = ledger.get(number) {
                    entry.exchange.method = method.map(Into::into);
                }
                if !response.is_last {
                    self.waiting.push(id, number, Waiting { then: Then::Response, over: false });
                }
                (number, Then::Response)
            }
        };
        if let Some(entry) = ledger.get(number) {
            let exchange = &mut entry.exchange;
            exchange.method = exchange.method.take().or_else(|| response.operation.map(Into::into));
            exchange.status = response.code.map(Into::into);
            exchange.response.append(span);
            exchange.response.done = response.is_last && span.done;
        }
        if response.is_last {
            self.forget(id);
            self.tls_follows |= then == Then::Tls && response.code == Some(0) && span.done;
        }
    }

    /// The exchange of the operation of that number.
    fn of(&self, id: u32) -> Option<u32> {
        self.waiting.of(id).next().map(|question| question.number)
    }

    /// The operation of that number is over; its exchange, unless it was abandoned.
    fn forget(&mut self, id: u32) -> Option<u32> {
        let number = self.of(id)?;
        self.waiting.remove(number).filter(|operation| !operation.over).map(|_| number)
    }
}

impl Protocol for Ldap {
    type Message = Message;
    const NAME: &'static str = PROTOCOL;

    fn begins(packet: &[u8], asks: bool) -> bool {
        message::sniff(packet, asks) == Verdict::Yes
    }

    fn context(&self, _asks: bool) {}

    fn message(&mut self, ledger: &mut Ledger, from: Side, Whole { message, span, offset }: Whole<Message>) {
        match message.says {
            Says::Request(request) if ledger.asks(from) => self.request(ledger, message.id, request, span, offset),
            Says::Response(response) if !ledger.asks(from) => {
                self.response(ledger, message.id, &response, span, offset);
            }
            // Nothing that this side says, or that anybody knows.
            _ => {}
        }
    }

    fn lost(&mut self, ledger: &mut Ledger, from: Side, by: Moment) {
        if !ledger.asks(from) {
            self.doubt(ledger, by);
        }
    }

    fn next(&mut self) -> Option<Next> {
        std::mem::take(&mut self.tls_follows).then_some(Next::Anything)
    }

    fn finish(&mut self, _ledger: &mut Ledger) {
        self.waiting.clear();
    }
}
