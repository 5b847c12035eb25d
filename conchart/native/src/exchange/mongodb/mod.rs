//! MongoDB (wire protocol; as FerretDB and others speak it too): every command is one exchange, however many are under
//! way.
//!
//! In: a stream of messages in each direction. Out: exchanges in the [`Ledger`]: method is the command, target database
//! and collection with the names of the fields that are asked for, status the error's code, 0 where there is none.
//! A reply says which request it answers. One request may have many replies: those of an exhaust cursor are one
//! response, those of a `hello` that watches are exchanges without a request. Of what is compressed, the header is read.
//! Non-goals: values of documents, what is compressed.
//!
//! Bounded: [`MAX_WAITING`] commands wait for their reply, [`MAX_TAILED`] cursors are remembered, and of each message
//! its beginning is kept.

mod bson;
mod command;
mod message;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use super::Span;
use super::framed::Whole;
use super::ledger::Ledger;
use super::messages::{Messages, Protocol};
use super::protocols::{StatusText, named};
use super::questions::Questions;
use super::reader::{Opening, Reader, Verdict};
use super::statements::Statements;
use crate::stream::{Moment, Side};
use message::{Message, Reply, Request, Says};

pub(super) const PROTOCOL: &str = "mongodb";

/// Names of errors that are usual, as the manual lists them (`codeName`).
const ERRORS: &[(u32, &str)] = &[
    (0, "OK"),
    (1, "InternalError"),
    (2, "BadValue"),
    (8, "UnknownError"),
    (9, "FailedToParse"),
    (11, "UserNotFound"),
    (13, "Unauthorized"),
    (14, "TypeMismatch"),
    (17, "ProtocolError"),
    (18, "AuthenticationFailed"),
    (20, "IllegalOperation"),
    (24, "LockTimeout"),
    (26, "NamespaceNotFound"),
    (27, "IndexNotFound"),
    (40, "ConflictingUpdateOperators"),
    (43, "CursorNotFound"),
    (46, "LockBusy"),
    (48, "NamespaceExists"),
    (50, "MaxTimeMSExpired"),
    (52, "DollarPrefixedFieldName"),
    (59, "CommandNotFound"),
    (61, "ShardKeyNotFound"),
    (63, "StaleShardVersion"),
    (64, "WriteConcernFailed"),
    (66, "ImmutableField"),
    (72, "InvalidOptions"),
    (73, "InvalidNamespace"),
    (76, "NoReplicationEnabled"),
    (85, "IndexOptionsConflict"),
    (86, "IndexKeySpecsConflict"),
    (89, "NetworkTimeout"),
    (91, "ShutdownInProgress"),
    (112, "WriteConflict"),
    (115, "CommandNotSupported"),
    (121, "DocumentValidationFailure"),
    (133, "FailedToSatisfyReadPreference"),
    (146, "ExceededMemoryLimit"),
    (189, "PrimarySteppedDown"),
    (211, "KeyNotFound"),
    (237, "CursorKilled"),
    (238, "NotImplemented"),
    (251, "NoSuchTransaction"),
    (262, "ExceededTimeLimit"),
    (292, "QueryExceededMemoryLimitNoDiskUseAllowed"),
    (10107, "NotWritablePrimary"),
    (11000, "DuplicateKey"),
    (11600, "InterruptedAtShutdown"),
    (11601, "Interrupted"),
    (11602, "InterruptedDueToReplStateChange"),
    (13388, "StaleConfig"),
    (13435, "NotPrimaryNoSecondaryOk"),
    (13436, "NotPrimaryOrSecondary"),
    (17280, "KeyTooLong"),
];

/// How people write a status: the name of the error.
pub(super) fn status_text(status: u32) -> StatusText {
    named(ERRORS, status).unwrap_or(StatusText::Unnamed("error", status))
}

/// Commands that are remembered while they are under way.
const MAX_WAITING: usize = 1024;
/// Cursors whose next batch comes when something happens.
const MAX_TAILED: usize = 64;

/// Does this stream begin with a request?
pub(super) fn request(prefix: &[u8]) -> Verdict {
    message::sniff(prefix, true, true)
}

/// The same, where its whole header is there: some begin like what is known by fewer bytes.
pub(super) fn whole_request(prefix: &[u8]) -> Verdict {
    message::sniff(prefix, true, false)
}

/// Does this stream begin with a reply?
pub(super) fn reply(prefix: &[u8]) -> Verdict {
    message::sniff(prefix, false, true)
}

/// The commands of one connection.
pub(super) struct MongoDb {
    waiting: Questions<Waiting>,
    /// Replies that come unasked.
    unasked: Option<Unasked>,
    tailed: VecDeque<i64>,
    statements: Statements,
}

/// A command that waits for its reply.
struct Waiting {
    method: Option<Box<str>>,
    awaits_event: bool,
    tails: bool,
    gives_documents: bool,
}

/// Replies that follow one that said so.
struct Unasked {
    /// What the next one answers: the request, or the reply before it, as servers do.
    request: u32,
    reply: u32,
    /// The exchange that goes on; `None`: the next one is an exchange of its own.
    number: Option<u32>,
    method: Option<Box<str>>,
}

impl MongoDb {
    pub fn reader(opening: &Opening<'_>) -> Box<dyn Reader> {
        let protocol = Self {
            waiting: Questions::new(MAX_WAITING),
            unasked: None,
            tailed: VecDeque::new(),
            statements: opening.statements,
        };
        Box::new(Messages::new(opening, protocol))
    }

    fn asks(&mut self, ledger: &mut Ledger, id: u32, request: Request, span: Span, offset: u64) {
        // A number is used again when its command is over.
        self.give_up(ledger, id, span);
        let command = request.command;
        let awaits_event = command.awaits_event || command.cursor.is_some_and(|cursor| self.tailed.contains(&cursor));
        let number = ledger.open(PROTOCOL, offset);
        if let Some(entry) = ledger.get(number) {
            let exchange = &mut entry.exchange;
            exchange.request = span;
            exchange.method = command.method.clone().map(|name| String::from(name).into());
            exchange.target = self.statements.name(command.target);
            exchange.awaits_event = awaits_event;
            exchange.ended = if request.is_silent { span.last } else { None };
        }
        if !request.is_silent {
            let (tails, gives_documents) = (command.tails, command.gives_documents);
            self.waiting.push(id, number, Waiting { method: command.method, awaits_event, tails, gives_documents });
        }
    }

    fn give_up(&mut self, ledger: &mut Ledger, id: u32, span: Span) {
        let before = self.waiting.of(id).next().map(|question| question.number);
        let Some(before) = before else {
            return;
        };
        self.waiting.remove(before);
        if let Some(entry) = ledger.get(before) {
            entry.exchange.ended = span.last;
        }
    }

    fn answers(&mut self, ledger: &mut Ledger, id: u32, response_to: u32, mut reply: Reply, span: Span, offset: u64) {
        let follows = |unasked: &mut Unasked| unasked.request == response_to || unasked.reply == response_to;
        let (number, method, is_stream, request) = if let Some(unasked) = self.unasked.take_if(follows) {
            let number = unasked.number.unwrap_or_else(|| ledger.open(PROTOCOL, offset));
            (number, unasked.method, unasked.number.is_none(), unasked.request)
        } else {
            let oldest = self.waiting.of(response_to).next().map(|question| question.number);
            match oldest.and_then(|number| Some((number, self.waiting.remove(number)?))) {
                Some((number, command)) => {
                    self.tails(&reply, &command);
                    if command.gives_documents && !reply.is_failure {
                        reply.status = reply.status.map(|_| 0);
                    }
                    (number, command.method, command.awaits_event, response_to)
                }
                // Nobody saw the request.
                None => (ledger.open(PROTOCOL, offset), None, false, response_to),
            }
        };
        // What an event brings is over with it.
        let over = !reply.goes_on || is_stream;
        if let Some(entry) = ledger.get(number) {
            let exchange = &mut entry.exchange;
            if exchange.method.is_none() {
                exchange.method = method.clone().map(|name| String::from(name).into());
            }
            exchange.response.append(span);
            exchange.response.done = over && span.done;
            exchange.status = reply.status;
        }
        if reply.goes_on {
            let number = if is_stream { None } else { Some(number) };
            self.unasked = Some(Unasked { request, reply: id, number, method });
        }
    }

    /// Remembers a cursor whose next batch comes when something happens.
    fn tails(&mut self, reply: &Reply, command: &Waiting) {
        if let Some(cursor) = reply.cursor.filter(|_| command.tails) {
            if self.tailed.len() >= MAX_TAILED {
                self.tailed.pop_front();
            }
            self.tailed.push_back(cursor);
        }
    }
}

impl Protocol for MongoDb {
    type Message = Message;
    const NAME: &'static str = PROTOCOL;

    fn begins(packet: &[u8], asks: bool) -> bool {
        message::sniff(packet, asks, false) == Verdict::Yes
    }

    fn context(&self, asks: bool) -> bool {
        asks
    }

    fn message(&mut self, ledger: &mut Ledger, _from: Side, Whole { message, span, offset }: Whole<Message>) {
        match message.says {
            Says::Request(request) => self.asks(ledger, message.id, request, span, offset),
            Says::Reply(reply) => self.answers(ledger, message.id, message.response_to, reply, span, offset),
        }
    }

    /// What is missing may be the reply to any of them.
    fn lost(&mut self, ledger: &mut Ledger, from: Side, by: Moment) {
        if ledger.asks(from) {
            return;
        }
        let going_on = self.unasked.take().and_then(|unasked| unasked.number);
        for number in self.waiting.iter().map(|question| question.number).chain(going_on) {
            ledger.may_lack(number, by, false);
        }
    }

    fn finish(&mut self, _ledger: &mut Ledger) {
        self.waiting.clear();
    }
}
