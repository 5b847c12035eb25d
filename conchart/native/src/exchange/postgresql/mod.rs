//! PostgreSQL (frontend/backend protocol 3): every statement is one exchange, however many are under way.
//!
//! In: a stream of messages in each direction. Out: exchanges in the [`Ledger`]: method is `Query` or `Execute`, target the
//! statement's shape, status the SQLSTATE as a number to the base of 36. What goes before belongs to an `Execute` (Parse,
//! Bind, Describe), and the Sync behind it. The beginning of a connection is exchanges of its own, one for each round
//! trip: `SSLRequest`, `Startup`, `Authenticate`. Where the server agrees to encrypt, something else is read from there
//! on. Non-goals: rows, parameters, passwords; the stream of replication, which is part of its statement's response.
//!
//! Bounded: [`MAX_WAITING`] statements wait for their response; [`MAX_NAMED`] statements and portals are known by name.

mod message;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use super::Span;
use super::framed::Whole;
use super::ledger::Ledger;
use super::messages::{Messages, Next, Protocol};
use super::provenance::Provenance;
use super::reader::{Opening, Reader, Verdict};
use super::sql::TracedStatement;
use super::statements::{Statement, Statements};
use crate::stream::{Moment, Side};
use message::Message;

pub(super) const PROTOCOL: &str = "postgresql";

/// Statements that are remembered while they wait for their response.
const MAX_WAITING: usize = 65_536;
const MAX_NAMED: usize = 512;
/// SQLSTATE 00000.
const SUCCESSFUL: u32 = 0;

/// Does a connection begin like this?
pub(super) fn beginning(prefix: &[u8]) -> Verdict {
    message::begins(prefix)
}

/// Does the middle of a connection go on like this, said by the client?
pub(super) fn request(prefix: &[u8]) -> Verdict {
    message::goes_on(prefix, true)
}

/// The same, said by the server.
pub(super) fn response(prefix: &[u8]) -> Verdict {
    message::goes_on(prefix, false)
}

/// The statements of one connection.
pub(super) struct PostgreSql {
    /// The client has not yet sent what begins a session.
    before_startup: bool,
    /// The server has to say whether encryption follows.
    encryption_requested: bool,
    encryption_follows: bool,
    /// Parse, Bind and so on, which wait for their Execute.
    preparing: Option<Waiting>,
    waiting: VecDeque<Waiting>,
    /// An error: the server leaves out all up to the next Sync.
    failed: bool,
    /// Those that were prepared, and those of portals.
    statements: Names,
    portals: Names,
    detail: Statements,
}

/// Statements by name.
#[derive(Default)]
struct Names(BTreeMap<Box<[u8]>, Statement>);

impl Names {
    fn insert(&mut self, name: Box<[u8]>, statement: Statement) {
        if self.0.len() >= MAX_NAMED && !self.0.contains_key(&name) {
            self.0.pop_last();
        }
        self.0.insert(name, statement);
    }

    fn get(&self, name: &[u8]) -> Option<Statement> {
        self.0.get(name).cloned()
    }
}

/// An exchange that waits for its response.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    number: u32,
    until: Until,
    /// Bytes are missing that may have been its response.
    doubted: bool,
}

/// Where a response ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Until {
    /// At ReadyForQuery.
    Ready,
    /// After so many steps of the extended protocol; `synced`: the last one is ReadyForQuery.
    Steps { left: u32, synced: bool },
}

impl Waiting {
    fn ends_with_ready(self) -> bool {
        matches!(self.until, Until::Ready | Until::Steps { synced: true, .. })
    }
}

impl PostgreSql {
    fn new(before_startup: bool, detail: Statements) -> Self {
        Self {
            before_startup,
            encryption_requested: false,
            encryption_follows: false,
            preparing: None,
            waiting: VecDeque::new(),
            failed: false,
            statements: Names::default(),
            portals: Names::default(),
            detail,
        }
    }

    /// From a connection's beginning on.
    pub fn beginning(opening: &Opening<'_>) -> Box<dyn Reader> {
        Box::new(Messages::new(opening, Self::new(!opening.start.is_midstream(), opening.statements)))
    }

    /// From the middle of one.
    pub fn midstream(opening: &Opening<'_>) -> Box<dyn Reader> {
        Box::new(Messages::new(opening, Self::new(false, opening.statements)))
    }

    fn asks(&mut self, ledger: &mut Ledger, message: Message, span: Span, offset: u64) {
        match message {
            Message::Startup { database } => {
                self.before_startup = false;
                self.ask(ledger, "Startup", database.map(|name| (Statement::named(Some(name)), None)), span, offset);
            }
            Message::EncryptionRequest { gss } => {
                self.encryption_requested = true;
                self.ask(ledger, if gss { "GSSENCRequest" } else { "SSLRequest" }, None, span, offset);
            }
            Message::Cancel => {
                let number = open(ledger, "CancelRequest", None, span, offset);
                if let Some(entry) = ledger.get(number) {
                    entry.exchange.ended = span.last;
                }
            }
            Message::Password => self.ask(ledger, "Authenticate", None, span, offset),
            Message::FunctionCall => self.ask(ledger, "FunctionCall", None, span, offset),
            Message::Query(traced) => self.ask(ledger, "Query", Some(into_about(traced)), span, offset),
            Message::Parse { name, traced } => {
                self.statements.insert(name, traced.statement.clone());
                self.prepare(ledger, "Parse", Some(into_about(traced)), span, offset);
            }
            Message::Bind { portal, statement } => {
                let statement = self.statements.get(&statement);
                if let Some(statement) = &statement {
                    self.portals.insert(portal, statement.clone());
                } else {
                    self.portals.0.remove(&portal);
                }
                self.prepare(ledger, "Bind", statement.map(|statement| (statement, None)), span, offset);
            }
            Message::Describe { statement } => {
                let statement = statement.and_then(|name| self.statements.get(&name));
                self.prepare(ledger, "Describe", statement.map(|statement| (statement, None)), span, offset);
            }
            Message::Close { statement } => {
                let statement = statement.and_then(|name| self.statements.0.remove(&name));
                self.prepare(ledger, "Close", statement.map(|statement| (statement, None)), span, offset);
            }
            Message::Execute { portal } => {
                let statement = self.portals.get(&portal);
                self.prepare(ledger, "Execute", statement.map(|statement| (statement, None)), span, offset);
                self.prepared(ledger, "Execute");
            }
            Message::Sync => self.sync(ledger, span, offset),
            Message::Flush => {
                let number = self.preparing.or(self.waiting.back().copied()).map(|waiting| waiting.number);
                if let Some(entry) = number.and_then(|number| ledger.get(number)) {
                    entry.exchange.request.append(span);
                }
                self.prepared(ledger, "");
            }
            Message::Copy => {
                // Data for the statement that takes it.
                let number = self.waiting.front().map(|waiting| waiting.number);
                if let Some(entry) = number.and_then(|number| ledger.get(number))
                    && entry.exchange.continued.is_some()
                {
                    entry.exchange.request.append(span);
                }
            }
            _ => {}
        }
    }

    /// A request that is answered up to ReadyForQuery.
    fn ask(&mut self, ledger: &mut Ledger, method: &'static str, about: Option<About>, span: Span, offset: u64) {
        self.prepared(ledger, "");
        let number = open(ledger, method, about, span, offset);
        self.wait(ledger, Waiting { number, until: Until::Ready, doubted: false });
    }

    /// One step of the extended protocol, which is part of an exchange with others.
    fn prepare(&mut self, ledger: &mut Ledger, method: &'static str, about: Option<About>, span: Span, offset: u64) {
        if let Some(Waiting { number, until: Until::Steps { left, .. }, .. }) = &mut self.preparing {
            *left = left.saturating_add(1);
            if let Some(entry) = ledger.get(*number) {
                entry.exchange.request.append(span);
                entry.exchange.request.done = span.done;
                if let Some(about) = about {
                    tell(&mut entry.exchange, about);
                }
            }
            return;
        }
        let number = open(ledger, method, about, span, offset);
        self.preparing = Some(Waiting { number, until: Until::Steps { left: 1, synced: false }, doubted: false });
    }

    /// What was prepared is asked now.
    fn prepared(&mut self, ledger: &mut Ledger, method: &'static str) {
        let Some(waiting) = self.preparing.take() else {
            return;
        };
        if let Some(entry) = ledger.get(waiting.number)
            && !method.is_empty()
        {
            entry.exchange.method = Some(method.into());
        }
        self.wait(ledger, waiting);
    }

    fn wait(&mut self, ledger: &mut Ledger, waiting: Waiting) {
        // Whoever asks again has had the response that may be missing.
        while let Some(front) = self.waiting.front().copied().filter(|front| front.doubted) {
            self.waiting.pop_front();
            if let Some(entry) = ledger.get(front.number) {
                let exchange = &mut entry.exchange;
                exchange.ended = exchange.response.revealed.or(exchange.response.last).or(exchange.request.last);
            }
        }
        if self.waiting.len() >= MAX_WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(waiting);
    }

    /// The end of a row of steps: part of the latest, else an exchange of its own.
    fn sync(&mut self, ledger: &mut Ledger, span: Span, offset: u64) {
        self.prepared(ledger, "");
        if let Some(Waiting { number, until: Until::Steps { left, synced }, .. }) = self.waiting.back_mut()
            && !*synced
            && let Some(entry) = ledger.get(*number)
        {
            (*left, *synced) = (left.saturating_add(1), true);
            entry.exchange.request.append(span);
            return;
        }
        let number = open(ledger, "Sync", None, span, offset);
        self.wait(ledger, Waiting { number, until: Until::Steps { left: 1, synced: true }, doubted: false });
    }

    fn answers(&mut self, ledger: &mut Ledger, message: Message, span: Span, offset: u64) {
        let Some(&front) = self.waiting.front() else {
            return unasked(ledger, message, span, offset, self.detail);
        };
        let Some(entry) = ledger.get(front.number) else {
            self.waiting.pop_front();
            return;
        };
        let exchange = &mut entry.exchange;
        let begun = exchange.response.first.is_some();
        match &message {
            // Nobody asked for it now; it begins no response.
            Message::Aside | Message::Notification { .. } if !begun => return,
            Message::CopyIn => {
                (exchange.continued, exchange.expects_continue) = (span.first, Some(true));
                return;
            }
            Message::Error { status, .. } => exchange.status = *status,
            _ => {}
        }
        if message == Message::Ready {
            return self.ready(ledger, span);
        }
        exchange.response.append(span);
        match message {
            Message::Encryption { follows } => {
                (self.encryption_requested, self.encryption_follows) = (false, follows);
                self.answered(ledger, span, None);
            }
            Message::Challenge => self.answered(ledger, span, None),
            Message::Error { fatal, .. } if fatal || std::mem::take(&mut self.encryption_requested) => {
                self.answered(ledger, span, None);
            }
            Message::Error { .. } => {
                self.failed = true;
                if !front.ends_with_ready() {
                    self.answered(ledger, span, None);
                }
            }
            Message::Complete | Message::RowDescription => self.step(ledger, span),
            _ => {}
        }
    }

    /// One step of the extended protocol is over.
    fn step(&mut self, ledger: &mut Ledger, span: Span) {
        let Some(Waiting { until: Until::Steps { left, .. }, .. }) = self.waiting.front_mut() else {
            return;
        };
        *left = left.saturating_sub(1);
        if *left == 0 && !self.failed {
            self.answered(ledger, span, Some(SUCCESSFUL));
        }
    }

    /// ReadyForQuery ends the first exchange that ends so; those before it were left out after an error.
    fn ready(&mut self, ledger: &mut Ledger, span: Span) {
        // What was left out after the error of another has no status.
        let status = if std::mem::take(&mut self.failed) { None } else { Some(SUCCESSFUL) };
        while let Some(left_out) = self.waiting.front().copied().filter(|front| !front.ends_with_ready()) {
            self.waiting.pop_front();
            if let Some(entry) = ledger.get(left_out.number) {
                entry.exchange.ended = span.last;
            }
        }
        if let Some(waiting) = self.waiting.front()
            && let Some(entry) = ledger.get(waiting.number)
        {
            entry.exchange.response.append(span);
        }
        self.answered(ledger, span, status);
    }

    /// The response to the first that waits is over.
    fn answered(&mut self, ledger: &mut Ledger, span: Span, status: Option<u32>) {
        if let Some(waiting) = self.waiting.pop_front()
            && let Some(entry) = ledger.get(waiting.number)
        {
            entry.exchange.status = entry.exchange.status.or(status);
            entry.exchange.response.done = span.done;
        }
    }
}

/// What an exchange is about, and its trace.
type About = (Statement, Option<String>);

fn into_about(traced: TracedStatement) -> About {
    (traced.statement, traced.traceparent)
}

fn tell(exchange: &mut super::Exchange, (statement, traceparent): About) {
    exchange.states(statement);
    if let Some(value) = traceparent {
        Provenance::note(&mut exchange.provenance, b"traceparent", value.as_bytes());
    }
}

fn open(ledger: &mut Ledger, method: &'static str, about: Option<About>, span: Span, offset: u64) -> u32 {
    let number = ledger.open(PROTOCOL, offset);
    if let Some(entry) = ledger.get(number) {
        entry.exchange.request = span;
        entry.exchange.method = Some(method.into());
        if let Some(about) = about {
            tell(&mut entry.exchange, about);
        }
    }
    number
}

/// What the server says unasked: that somebody notifies, or why it ends the connection.
fn unasked(ledger: &mut Ledger, message: Message, span: Span, offset: u64, detail: Statements) {
    let (method, target, status) = match message {
        Message::Notification { channel } => ("NotificationResponse", detail.name(Some(channel)), None),
        Message::Error { status, .. } => ("ErrorResponse", None, status),
        _ => return,
    };
    let number = ledger.open(PROTOCOL, offset);
    if let Some(entry) = ledger.get(number) {
        let exchange = &mut entry.exchange;
        (exchange.response, exchange.status, exchange.target) = (span, status, target);
        exchange.method = Some(method.into());
        exchange.ended = span.last;
    }
}

impl Protocol for PostgreSql {
    type Message = Message;
    const NAME: &'static str = PROTOCOL;

    fn begins(packet: &[u8], asks: bool) -> bool {
        message::goes_on(packet, asks) == Verdict::Yes
    }

    fn context(&self, asks: bool) -> message::Next {
        match asks {
            true if self.before_startup => message::Next::Startup,
            true => message::Next::Client(self.detail),
            false if self.encryption_requested => message::Next::Encryption,
            false => message::Next::Server,
        }
    }

    fn message(&mut self, ledger: &mut Ledger, from: Side, Whole { message, span, offset }: Whole<Message>) {
        if ledger.asks(from) {
            self.asks(ledger, message, span, offset);
        } else {
            self.answers(ledger, message, span, offset);
        }
    }

    /// One statement that waits may still be answered; of several it is not known which were.
    fn lost(&mut self, ledger: &mut Ledger, from: Side, by: Moment) {
        (self.before_startup, self.encryption_requested) = (false, false);
        if ledger.asks(from) {
            self.prepared(ledger, "");
            return;
        }
        self.failed = false;
        let several = self.waiting.len() > 1;
        for waiting in &mut self.waiting {
            waiting.doubted = true;
            // Steps are missing.
            if waiting.ends_with_ready() {
                waiting.until = Until::Ready;
            }
            ledger.may_lack(waiting.number, by, several);
        }
        if several {
            self.waiting.clear();
        }
    }

    fn next(&mut self) -> Option<Next> {
        std::mem::take(&mut self.encryption_follows).then_some(Next::Anything)
    }

    fn finish(&mut self, _ledger: &mut Ledger) {
        self.preparing = None;
        self.waiting.clear();
    }
}
