//! MySQL's client/server protocol, as MariaDB and others speak it too: every command is one exchange.
//!
//! In: a stream of packets in each direction. Out: exchanges in the [`Ledger`]: method is the command as the server's
//! general log calls it, target the statement's shape, status the number of the error, 0 where there is none. The
//! beginning of a connection is exchanges of its own: `Greeting`, which the server says unasked, `SSLRequest`,
//! `Connect`, and `Authenticate` for each round trip that follows. Behind `SSLRequest` something else is read. Behind a
//! login that agrees on compression, turns follow. Non-goals: rows, parameters, passwords; the stream of replication,
//! which is part of its command's response.
//!
//! Bounded: [`MAX_WAITING`] commands wait for their response; [`MAX_PREPARED`] statements are known by number.

mod beginnings;
mod message;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use super::Span;
use super::framed::Whole;
use super::ledger::Ledger;
use super::messages::{Messages, Next, Protocol};
use super::protocols::StatusText;
use super::provenance::Provenance;
use super::reader::{Opening, Reader, Start, Verdict};
use super::sql::TracedStatement;
use super::statements::{Statement, Statements};
use crate::stream::{BySide, Moment, Side};
use message::{Answer, Command, Message, Packet, Says, capability, flag};

pub(super) const PROTOCOL: &str = "mysql";

/// How people write a status: the number of the error, as MySQL's clients print it.
pub(super) fn status_text(status: u32) -> StatusText {
    if status == 0 { StatusText::Name("OK") } else { StatusText::Unnamed("ERROR", status) }
}

/// Commands that are remembered while they wait for their response.
const MAX_WAITING: usize = 65_536;
const MAX_PREPARED: usize = 512;
/// The statement that was prepared last, whatever its number (MariaDB).
const LATEST: u32 = u32::MAX;
/// There was no error.
const SUCCESSFUL: u32 = 0;

/// Does a server begin a connection like this?
pub(super) fn greeting(prefix: &[u8]) -> Verdict {
    beginnings::greets(prefix)
}

/// Does a client go on like this inside TLS?
pub(super) fn login(prefix: &[u8]) -> Verdict {
    beginnings::logs_in(prefix)
}

/// Does the middle of a connection go on like this, said by the client?
pub(super) fn command(prefix: &[u8]) -> Verdict {
    beginnings::goes_on(prefix, true)
}

/// The same, said by the server.
pub(super) fn answer(prefix: &[u8]) -> Verdict {
    beginnings::goes_on(prefix, false)
}

/// What both sides say of one connection.
#[derive(Default)]
pub(super) struct MySql {
    begins: Begins,
    /// Of the server, as far as it is known; then what both agree on.
    capabilities: Option<u32>,
    /// Are rows followed by EOF packets? Unknown where nobody saw the login.
    has_eof: Option<bool>,
    /// Backslashes are nothing special in texts of SQL.
    plain_backslashes: bool,
    encryption_follows: bool,
    compression_follows: bool,
    /// The latest packet was full: the next one is the rest.
    goes_on: BySide<bool>,
    /// Values that were sent before their Execute.
    preparing: Option<u32>,
    waiting: VecDeque<Waiting>,
    statements: BTreeMap<u32, Statement>,
    latest: Option<Statement>,
    detail: Statements,
}

/// How far the beginning of a connection is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Begins {
    Greeting,
    Login,
    /// The server has not yet let the client in.
    Authentication,
    #[default]
    Over,
}

/// An exchange that waits for its response.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    number: u32,
    until: Until,
    /// Bytes are missing that may have been its response.
    doubted: bool,
}

/// What comes next of a response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Until {
    /// The client is let in, or has to say more.
    LetIn,
    /// One packet is all.
    One,
    /// A result begins: none, one of rows, or the wish for a file.
    Result,
    /// The client sends a file.
    File,
    /// Columns, and rows behind them. `columns`: nothing has ended them yet.
    Rows {
        columns: bool,
    },
    /// A statement is prepared, and so many packets describe it.
    Prepared,
    Described {
        left: u32,
    },
    /// A replica is sent events.
    Events,
    /// The beginning may be missing: the next packet tells what this is.
    Unknown,
}

impl MySql {
    /// From a connection's beginning on.
    pub fn beginning(opening: &Opening<'_>) -> Box<dyn Reader> {
        // Nothing is said before the greeting: a capture that has it begins with it.
        let opening = Opening { start: Start::Beginning, ..*opening };
        Box::new(Messages::new(
            &opening,
            Self { begins: Begins::Greeting, detail: opening.statements, ..Self::default() },
        ))
    }

    /// Inside TLS, where what came before was said outside.
    pub fn sealed(opening: &Opening<'_>) -> Box<dyn Reader> {
        Box::new(Messages::new(opening, Self { begins: Begins::Login, detail: opening.statements, ..Self::default() }))
    }

    /// From the middle of a connection.
    pub fn midstream(opening: &Opening<'_>) -> Box<dyn Reader> {
        Box::new(Messages::new(opening, Self { detail: opening.statements, ..Self::default() }))
    }

    fn has(&self, capability: u32) -> bool {
        self.capabilities.is_some_and(|capabilities| capabilities & capability != 0)
    }

    fn asks(&mut self, ledger: &mut Ledger, says: Says, span: Span, offset: u64) {
        match says {
            Says::Login { capabilities, database } => {
                self.begins = Begins::Authentication;
                let agreed = self.capabilities.map_or(capabilities, |of_server| of_server & capabilities);
                self.capabilities = Some(agreed);
                self.has_eof = Some(agreed & capability::NO_EOF == 0);
                self.ask(ledger, "Connect", Statement::named(database), Until::LetIn, span, offset);
            }
            Says::SslRequest => {
                self.encryption_follows = true;
                unanswered(ledger, "SSLRequest", Statement::default(), span, offset);
            }
            Says::Password => self.ask(ledger, "Authenticate", Statement::default(), Until::LetIn, span, offset),
            Says::Data { last } => {
                let Some(front) = self.waiting.front_mut() else {
                    return;
                };
                if last && front.until == Until::File {
                    front.until = Until::Result;
                }
                let number = front.number;
                append_request(ledger, number, span);
            }
            Says::Rest => {
                let number = self.preparing.or(self.waiting.back().map(|waiting| waiting.number));
                if let Some(number) = number {
                    append_request(ledger, number, span);
                }
            }
            Says::Command(command) => self.command(ledger, command, span, offset),
            Says::Greeting { .. } | Says::Answer(_) => {}
        }
    }

    fn command(&mut self, ledger: &mut Ledger, command: Command, span: Span, offset: u64) {
        let statement = |number: u32| {
            let found = if number == LATEST { self.latest.as_ref() } else { self.statements.get(&number) };
            found.cloned().unwrap_or_default()
        };
        match command {
            Command::Query(traced) => self.state(ledger, "Query", traced, Until::Result, span, offset),
            Command::Prepare(traced) => {
                self.latest = Some(traced.statement.clone());
                self.state(ledger, "Prepare", traced, Until::Prepared, span, offset);
            }
            Command::Execute(number) => {
                let about = statement(number);
                self.ask(ledger, "Execute", about, Until::Result, span, offset);
            }
            Command::Fetch(number) => {
                let about = statement(number);
                self.ask(ledger, "Fetch", about, Until::Rows { columns: false }, span, offset);
            }
            Command::LongData(number) => {
                let about = statement(number);
                self.prepare(ledger, about, span, offset);
            }
            Command::CloseStatement(number) => {
                let about = statement(number);
                self.statements.remove(&number);
                unanswered(ledger, "Close stmt", about, span, offset);
            }
            Command::ResetStatement(number) => {
                let about = statement(number);
                self.ask(ledger, "Reset stmt", about, Until::One, span, offset);
            }
            Command::InitDatabase(name) => {
                self.ask(ledger, "Init DB", Statement::named(Some(name)), Until::One, span, offset)
            }
            Command::ChangeUser { database } => {
                self.statements.clear();
                self.begins = Begins::Authentication;
                self.ask(ledger, "Change user", Statement::named(database), Until::LetIn, span, offset);
            }
            Command::FieldList(table) => {
                let table = Statement::named(self.detail.name(Some(table)));
                self.ask(ledger, "Field List", table, Until::Rows { columns: false }, span, offset);
            }
            Command::ProcessList => self.ask(ledger, "Processlist", Statement::default(), Until::Result, span, offset),
            Command::ResetConnection => {
                self.statements.clear();
                self.ask(ledger, "Reset connection", Statement::default(), Until::One, span, offset);
            }
            Command::BinlogDump => self.ask(ledger, "Binlog Dump", Statement::default(), Until::Events, span, offset),
            Command::Quit => unanswered(ledger, "Quit", Statement::default(), span, offset),
            Command::Other(name) => self.ask(ledger, name, Statement::default(), Until::One, span, offset),
        }
    }

    /// A statement with its text.
    fn state(
        &mut self,
        ledger: &mut Ledger,
        method: &'static str,
        traced: TracedStatement,
        until: Until,
        span: Span,
        offset: u64,
    ) {
        self.ask(ledger, method, traced.statement, until, span, offset);
        if let Some(value) = traced.traceparent
            && let Some(entry) = self.waiting.back().and_then(|waiting| ledger.get(waiting.number))
        {
            Provenance::note(&mut entry.exchange.provenance, b"traceparent", value.as_bytes());
        }
    }

    /// Values of a statement, which come before its Execute and are not answered.
    fn prepare(&mut self, ledger: &mut Ledger, about: Statement, span: Span, offset: u64) {
        match self.preparing {
            Some(number) => append_request(ledger, number, span),
            None => self.preparing = Some(open(ledger, "Long Data", about, span, offset)),
        }
    }

    /// A command that is answered.
    fn ask(
        &mut self,
        ledger: &mut Ledger,
        method: &'static str,
        about: Statement,
        until: Until,
        span: Span,
        offset: u64,
    ) {
        let number = match self.preparing.take() {
            Some(number) if method == "Execute" => {
                append_request(ledger, number, span);
                if let Some(entry) = ledger.get(number) {
                    let exchange = &mut entry.exchange;
                    exchange.method = Some(method.into());
                    exchange.states(about);
                }
                number
            }
            left => {
                end(ledger, left);
                open(ledger, method, about, span, offset)
            }
        };
        self.wait(ledger, Waiting { number, until, doubted: false });
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

    fn answers(&mut self, ledger: &mut Ledger, packet: Packet, span: Span, offset: u64) {
        let Some(&front) = self.waiting.front() else {
            return unasked(ledger, packet, span, offset);
        };
        let Some(entry) = ledger.get(front.number) else {
            self.waiting.pop_front();
            return;
        };
        let exchange = &mut entry.exchange;
        let next = self.next_of(front.until, packet);
        match next {
            Some(Until::File) => {
                (exchange.continued, exchange.expects_continue) = (span.first, Some(true));
            }
            _ => exchange.response.append(span),
        }
        if front.until == Until::Prepared
            && let Some(prepared) = packet.prepared()
        {
            if self.statements.len() >= MAX_PREPARED {
                self.statements.pop_first();
            }
            let about = Statement { target: exchange.target.clone(), shape: exchange.shape.clone() };
            self.statements.insert(prepared.statement, about);
        }
        match next {
            Some(until) => {
                if let Some(front) = self.waiting.front_mut() {
                    front.until = until;
                }
            }
            None => {
                let challenged = front.until == Until::LetIn && self.begins == Begins::Authentication;
                exchange.status = match packet.answer() {
                    Answer::Error { code } => Some(code.into()),
                    _ if challenged => None,
                    _ => Some(SUCCESSFUL),
                };
                exchange.response.done = span.done;
                self.waiting.pop_front();
            }
        }
    }

    /// What is to come behind this packet; `None`: the response is over.
    fn next_of(&mut self, until: Until, packet: Packet) -> Option<Until> {
        let until = match until {
            Until::Unknown if packet.first().is_some_and(|first| (1..0xfb).contains(&first)) => Until::Result,
            Until::Unknown if packet.first() == Some(0) => Until::Result,
            Until::Unknown => Until::Rows { columns: false },
            certain => certain,
        };
        let answer = match until {
            Until::Rows { .. } => packet.after_rows(),
            _ => packet.answer(),
        };
        match (until, answer) {
            (_, Answer::Progress) => Some(until),
            (Until::LetIn, Answer::Ok { flags }) => {
                self.note(flags);
                self.let_in();
                None
            }
            (Until::LetIn, Answer::Error { .. }) => {
                self.begins = Begins::Over;
                None
            }
            (Until::LetIn, _) => {
                if packet.is_challenge() {
                    None
                } else {
                    Some(until)
                }
            }
            (_, Answer::Error { .. }) | (Until::One, _) => None,
            (Until::Prepared, _) => {
                let prepared = packet.prepared()?;
                let (columns, parameters) = (u32::from(prepared.columns), u32::from(prepared.parameters));
                let ends =
                    if self.has_eof == Some(true) { u32::from(columns > 0) + u32::from(parameters > 0) } else { 0 };
                Some(Until::Described { left: columns + parameters + ends }).filter(|_| columns + parameters > 0)
            }
            (Until::Described { left }, _) => {
                Some(Until::Described { left: left.saturating_sub(1) }).filter(|_| left > 1)
            }
            (Until::Result | Until::File, Answer::Ok { flags }) => {
                self.note(flags);
                (flags & flag::MORE_RESULTS != 0).then_some(Until::Result)
            }
            (Until::Result, Answer::Infile) => Some(Until::File),
            (Until::Result, _) => Some(Until::Rows { columns: true }),
            (Until::Rows { columns }, Answer::End { flags, classic }) => {
                self.has_eof = Some(classic);
                self.note(flags);
                if columns && classic && flags & flag::CURSOR == 0 {
                    Some(Until::Rows { columns: false })
                } else {
                    (flags & flag::MORE_RESULTS != 0).then_some(Until::Result)
                }
            }
            (Until::Events, Answer::End { .. }) => None,
            (until, _) => Some(until),
        }
    }

    fn note(&mut self, flags: u16) {
        self.plain_backslashes = flags & flag::NO_BACKSLASH_ESCAPES != 0;
    }

    /// The client is let in; what was agreed on takes effect.
    fn let_in(&mut self) {
        let first = std::mem::replace(&mut self.begins, Begins::Over) == Begins::Authentication;
        self.compression_follows = first && self.has(capability::COMPRESS | capability::ZSTD);
    }

    /// The first that the server says.
    fn greets(&mut self, ledger: &mut Ledger, capabilities: u32, version: Box<str>, span: Span, offset: u64) {
        (self.begins, self.capabilities) = (Begins::Login, Some(capabilities));
        let number = ledger.open(PROTOCOL, offset);
        if let Some(entry) = ledger.get(number) {
            let exchange = &mut entry.exchange;
            (exchange.response, exchange.status) = (span, Some(SUCCESSFUL));
            exchange.method = Some("Greeting".into());
            exchange.server_software = Some(version);
            exchange.ended = span.last;
        }
    }
}

fn open(ledger: &mut Ledger, method: &'static str, about: Statement, span: Span, offset: u64) -> u32 {
    let number = ledger.open(PROTOCOL, offset);
    if let Some(entry) = ledger.get(number) {
        entry.exchange.request = span;
        entry.exchange.method = Some(method.into());
        entry.exchange.states(about);
    }
    number
}

/// A command that the server does not answer.
fn unanswered(ledger: &mut Ledger, method: &'static str, about: Statement, span: Span, offset: u64) {
    let number = open(ledger, method, about, span, offset);
    end(ledger, Some(number));
}

fn end(ledger: &mut Ledger, number: Option<u32>) {
    if let Some(entry) = number.and_then(|number| ledger.get(number)) {
        entry.exchange.ended = entry.exchange.request.last;
    }
}

fn append_request(ledger: &mut Ledger, number: u32, span: Span) {
    if let Some(entry) = ledger.get(number) {
        entry.exchange.request.append(span);
        entry.exchange.request.done = span.done;
    }
}

/// Why the server ends the connection.
fn unasked(ledger: &mut Ledger, packet: Packet, span: Span, offset: u64) {
    let Answer::Error { code } = packet.answer() else {
        return;
    };
    let number = ledger.open(PROTOCOL, offset);
    if let Some(entry) = ledger.get(number) {
        let exchange = &mut entry.exchange;
        (exchange.response, exchange.status) = (span, Some(code.into()));
        exchange.method = Some("Error".into());
        exchange.ended = span.last;
    }
}

impl Protocol for MySql {
    type Message = Message;
    const NAME: &'static str = PROTOCOL;

    fn begins(packet: &[u8], asks: bool) -> bool {
        beginnings::goes_on(packet, asks) == Verdict::Yes
    }

    fn context(&self, asks: bool) -> message::Next {
        let side = if asks { Side::Client } else { Side::Server };
        let until = self.waiting.front().map(|front| front.until);
        match (asks, self.begins) {
            (true, Begins::Greeting | Begins::Login) => message::Next::Login,
            (false, Begins::Greeting) => message::Next::Greeting,
            (false, _) => message::Next::Server,
            (true, _) if self.goes_on[side] => message::Next::GoesOn,
            (true, Begins::Authentication) => message::Next::Password,
            (true, Begins::Over) if matches!(until, Some(Until::File | Until::Events)) => message::Next::Data,
            (true, Begins::Over) => message::Next::Command {
                attributes: self.has(capability::ATTRIBUTES),
                escapes: !self.plain_backslashes,
                statements: self.detail,
            },
        }
    }

    fn message(&mut self, ledger: &mut Ledger, from: Side, Whole { message, span, offset }: Whole<Message>) {
        let asks = ledger.asks(from);
        let side = if asks { Side::Client } else { Side::Server };
        let is_rest = std::mem::replace(&mut self.goes_on[side], message.goes_on);
        match message.says {
            says if asks => self.asks(ledger, says, span, offset),
            Says::Greeting { capabilities, version } => self.greets(ledger, capabilities, version, span, offset),
            // The rest of a row.
            Says::Answer(_) if is_rest => {
                if let Some(entry) = self.waiting.front().and_then(|front| ledger.get(front.number)) {
                    entry.exchange.response.append(span);
                }
            }
            Says::Answer(packet) => {
                if self.begins == Begins::Greeting {
                    self.begins = Begins::Login;
                }
                self.answers(ledger, packet, span, offset);
            }
            _ => {}
        }
    }

    /// One command that waits may still be answered; of several it is not known which were.
    fn lost(&mut self, ledger: &mut Ledger, from: Side, by: Moment) {
        self.begins = Begins::Over;
        if ledger.asks(from) {
            self.goes_on.client = false;
            end(ledger, self.preparing.take());
            return;
        }
        self.goes_on.server = false;
        let several = self.waiting.len() > 1;
        for waiting in &mut self.waiting {
            (waiting.doubted, waiting.until) = (true, Until::Unknown);
            ledger.may_lack(waiting.number, by, several);
        }
        if several {
            self.waiting.clear();
        }
    }

    fn next(&mut self) -> Option<Next> {
        if std::mem::take(&mut self.encryption_follows) {
            return Some(Next::Anything);
        }
        std::mem::take(&mut self.compression_follows).then_some(Next::Unread)
    }

    fn finish(&mut self, ledger: &mut Ledger) {
        end(ledger, self.preparing.take());
        self.waiting.clear();
    }
}
