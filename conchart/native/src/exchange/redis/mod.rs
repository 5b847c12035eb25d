//! Redis (RESP2 and RESP3, as Valkey and others speak them too): every command is one exchange, however many are under
//! way.
//!
//! In: a stream of elements in each direction. Out: exchanges in the [`Ledger`]: method is the command, target its key or
//! what else it is about, status the number of its error's first word ([`ERRORS`]), 0 where there is none. Replies come
//! in the order of commands. What the server says unasked (a message of a channel, an invalidated key) is an exchange
//! without a request. After PSYNC what follows is taken as turns. Non-goals: values, the streams of replication.
//!
//! Bounded: [`MAX_WAITING`] commands wait for their reply; of an element its beginning is kept, and of values nothing.

mod command;
mod names;
mod resp;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use super::Span;
use super::framed::{Message, Read, Whole};
use super::ledger::{GUESSED, Ledger};
use super::messages::{Messages, Next, Protocol};
use super::protocols::{StatusText, listed};
use super::reader::{Opening, Reader, Verdict};
use super::statements::Statements;
use crate::stream::{Moment, Side};
use command::{Answer, Command, Replies};
use resp::{Element, Kind, Text, Wanted};

pub(super) const PROTOCOL: &str = "redis";

/// Commands that are remembered until they are answered: more than clients send ahead.
const MAX_WAITING: usize = 65_536;

/// First words of errors, by the number that an exchange has as its status.
const ERRORS: &[&str] = &[
    "OK",
    "ERR",
    "WRONGTYPE",
    "NOAUTH",
    "WRONGPASS",
    "NOPERM",
    "MOVED",
    "ASK",
    "CROSSSLOT",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "READONLY",
    "NOREPLICAS",
    "MASTERDOWN",
    "LOADING",
    "BUSY",
    "UNKILLABLE",
    "MISCONF",
    "OOM",
    "EXECABORT",
    "NOSCRIPT",
    "NOPROTO",
    "BUSYGROUP",
    "NOGROUP",
    "BUSYKEY",
    "UNBLOCKED",
    "DENIED",
    "INPROG",
    "NOMASTERLINK",
    "NOTBUSY",
    "IOERR",
];
/// The status of all other errors.
const OTHER_ERROR: u16 = 999;

/// How people write a status: the first word of the error.
pub(super) fn status_text(status: u32) -> StatusText {
    listed(ERRORS, status).unwrap_or(StatusText::Name("error"))
}

/// Does this stream begin with a command? An array of texts may also be a reply: the name tells.
pub(super) fn command(prefix: &[u8]) -> Verdict {
    match prefix.first() {
        None => Verdict::More,
        Some(b'*') => array_of_command(prefix),
        Some(b'P' | b'p' | b'I' | b'i') => inline(prefix),
        Some(_) => Verdict::No,
    }
}

/// Does this stream begin with a reply?
pub(super) fn reply(prefix: &[u8]) -> Verdict {
    let Some((first, rest)) = prefix.split_first() else {
        return Verdict::More;
    };
    let fits = match first {
        b'+' => return whole_words(prefix, &[b"+OK\r\n", b"+PONG\r\n", b"+QUEUED\r\n"]),
        b'-' => return error(rest),
        b'*' | b'%' | b'>' | b'$' | b':' | b'~' => elements(prefix),
        _ => Some(false),
    };
    match fits {
        Some(true) if array_of_command(prefix) != Verdict::Yes => Verdict::Yes,
        Some(_) => Verdict::No,
        None => Verdict::More,
    }
}

/// `*2`, `$3`, and a name of so many letters.
fn array_of_command(prefix: &[u8]) -> Verdict {
    let Read::Parsed(Element { kind: Kind::Aggregate(1..), .. }, used) = first_element(prefix) else {
        return undecided(prefix, &first_element(prefix));
    };
    let rest = prefix.get(used..).unwrap_or_default();
    if rest.first().is_some_and(|first| *first != b'$') {
        return Verdict::No;
    }
    match first_element(rest) {
        Read::Parsed(Element { text: Some(name), .. }, len) if len <= rest.len() => {
            if names::is_telling(name.bytes()) {
                Verdict::Yes
            } else {
                Verdict::No
            }
        }
        Read::Parsed(Element { text: Some(_), .. }, _) => Verdict::More,
        read => undecided(rest, &read),
    }
}

/// What may still become an element, and what will not.
fn undecided(prefix: &[u8], read: &Read<Element>) -> Verdict {
    match read {
        Read::More { wanted, .. } if *wanted > prefix.len() && prefix.len() < 32 => Verdict::More,
        _ => Verdict::No,
    }
}

/// Reads an element that lies in the prefix; of a longer one, what is there.
fn first_element(prefix: &[u8]) -> Read<Element> {
    let (mut had, mut length) = (Element::FIRST, None);
    loop {
        let Some(beginning) = prefix.get(..had) else {
            return Read::More { wanted: had, len: length };
        };
        match Element::read(beginning, false, Wanted { text: true, inline: false }) {
            Read::More { wanted, len } => (had, length) = (wanted, len),
            read => return read,
        }
    }
}

/// Elements one after the other, as far as can be seen; `None`: too few bytes.
fn elements(prefix: &[u8]) -> Option<bool> {
    let mut rest = prefix;
    while !rest.is_empty() {
        match first_element(rest) {
            Read::Parsed(_, len) => match rest.split_at_checked(len) {
                Some((element, after)) if element.ends_with(b"\r\n") => rest = after,
                Some(_) => return Some(false),
                // A string that goes on behind what can be seen.
                None => return Some(true),
            },
            Read::More { .. } if rest.len() < prefix.len() => return Some(true),
            // The line of a string tells enough, and ends within these bytes.
            Read::More { len: Some(_), .. } => return Some(true),
            Read::More { .. } if rest.len() < 16 => return None,
            Read::More { .. } | Read::Wrong => return Some(false),
        }
    }
    Some(true)
}

/// An error begins with a word in capitals that is known.
fn error(rest: &[u8]) -> Verdict {
    let mut words = ERRORS.iter().skip(1);
    if words.any(|word| rest.strip_prefix(word.as_bytes()).is_some_and(|rest| rest.first() == Some(&b' '))) {
        Verdict::Yes
    } else if rest.len() < 12 && rest.iter().all(u8::is_ascii_uppercase) {
        Verdict::More
    } else {
        Verdict::No
    }
}

/// A command as people type it. Few say enough.
fn inline(prefix: &[u8]) -> Verdict {
    whole_words(&prefix.to_ascii_uppercase(), &[b"PING\r\n", b"PING\n", b"INFO\r\n", b"INFO\n"])
}

fn whole_words(prefix: &[u8], words: &[&[u8]]) -> Verdict {
    if words.iter().any(|word| prefix.starts_with(word)) {
        Verdict::Yes
    } else if words.iter().any(|word| word.starts_with(prefix)) {
        Verdict::More
    } else {
        Verdict::No
    }
}

/// The commands of one connection.
#[derive(Default)]
pub(super) struct Redis {
    /// The command that is being sent.
    asking: Part<Command>,
    /// The reply that is being sent.
    answering: Part<Reply>,
    waiting: VecDeque<Waiting>,
    replies: Replies,
    /// Channels may speak: what RESP2 says of them looks like replies.
    subscribed: bool,
    /// Replies are missing: it is not known whose the next one is.
    unpaired: bool,
    replication: bool,
    statements: Statements,
}

/// A command or a reply: elements up to the last one that is part of it.
#[derive(Default)]
struct Part<T> {
    /// Elements that are still to come.
    left: u64,
    span: Span,
    offset: u64,
    says: T,
}

/// A command that waits for its reply.
struct Waiting {
    number: u32,
    answer: Answer,
    /// Replies that it still gets.
    left: u64,
}

/// What a reply says.
#[derive(Default)]
struct Reply {
    /// Elements of it so far, its head included.
    count: u64,
    status: u16,
    is_push: bool,
    /// The server said unasked that it is a push, or an aggregate's first texts may tell.
    is_aggregate: bool,
    /// The first texts of a push: what it is, and its channel.
    name: Option<Text>,
    about: Option<Text>,
}

impl<T: Default> Part<T> {
    /// Takes in an element; is the part complete?
    fn add(&mut self, kind: Kind, span: Span, offset: u64) -> bool {
        if self.span.first.is_none() {
            (self.left, self.offset) = (1, offset);
        }
        self.span.append(span);
        self.left = match kind {
            Kind::Aggregate(elements) | Kind::Push(elements) => (self.left - 1).saturating_add(elements),
            Kind::Attribute(elements) => self.left.saturating_add(elements),
            Kind::Value | Kind::Error | Kind::Inline => self.left - 1,
        };
        if !span.done {
            self.left = 0;
        }
        self.left == 0
    }

    fn is_under_way(&self) -> bool {
        self.span.first.is_some()
    }
}

impl Redis {
    pub fn reader(opening: &Opening<'_>) -> Box<dyn Reader> {
        Box::new(Messages::new(
            opening,
            Self { unpaired: opening.start.is_midstream(), statements: opening.statements, ..Self::default() },
        ))
    }

    fn asks(&mut self, ledger: &mut Ledger, element: Element, span: Span, offset: u64) {
        let is_head = !self.asking.is_under_way();
        let over = self.asking.add(element.kind, span, offset);
        match element.kind {
            Kind::Inline => self.asking.says = Command::inline(element.bytes()),
            Kind::Value if !is_head => self.asking.says.argument(Some(element.bytes())),
            _ => {}
        }
        if over {
            self.requested(ledger, span.done);
        }
    }

    /// A command is over.
    fn requested(&mut self, ledger: &mut Ledger, done: bool) {
        let Part { span, offset, says: mut command, .. } = std::mem::take(&mut self.asking);
        if command.count == 0 && done {
            // An empty line or an empty array: Redis answers nothing.
            return;
        }
        let number = ledger.open(PROTOCOL, offset);
        let muted = match command.answer {
            Answer::Reply(replies) => {
                self.replies = replies;
                replies != Replies::On
            }
            _ if self.replies == Replies::Skip => {
                self.replies = Replies::On;
                true
            }
            _ => self.replies == Replies::Off,
        };
        self.replication |= command.answer == Answer::Replication;
        if let Some(entry) = ledger.get(number) {
            let exchange = &mut entry.exchange;
            exchange.request = Span { done, ..span };
            exchange.method = command.method();
            exchange.target = self.statements.name(command.target());
            exchange.awaits_event = command.awaits_event;
            exchange.ended = if muted { span.last } else { None };
        }
        if muted {
            return;
        }
        if self.waiting.len() >= MAX_WAITING {
            self.waiting.pop_front();
        }
        let left = if command.answer == Answer::Channels { command.count.saturating_sub(1).max(1) } else { 1 };
        self.waiting.push_back(Waiting { number, answer: command.answer, left });
    }

    fn answers(&mut self, ledger: &mut Ledger, element: Element, span: Span, offset: u64) {
        let is_head = !self.answering.is_under_way();
        let over = self.answering.add(element.kind, span, offset);
        let reply = &mut self.answering.says;
        if is_head {
            reply.is_push = matches!(element.kind, Kind::Push(_));
            reply.is_aggregate = matches!(element.kind, Kind::Aggregate(_) | Kind::Push(_));
            if element.kind == Kind::Error {
                reply.status = status(element.bytes());
            }
        } else if reply.count == 1 {
            reply.name = element.text;
        } else if reply.count == 2 {
            reply.about = element.text;
        }
        // What an attribute says comes before the reply itself.
        reply.count += u64::from(!matches!(element.kind, Kind::Attribute(_)));
        if over {
            self.answered(ledger, span.done);
        }
    }

    /// A reply is over.
    fn answered(&mut self, ledger: &mut Ledger, done: bool) {
        let Part { span, offset, says: reply, .. } = std::mem::take(&mut self.answering);
        let span = Span { done, ..span };
        let name = reply.name.as_ref().map(Text::bytes).unwrap_or_default();
        let of_channels = reply.is_aggregate && (name.ends_with(b"subscribe"));
        let is_message = reply.is_aggregate
            && (reply.is_push || self.subscribed)
            && matches!(name, b"message" | b"pmessage" | b"smessage");
        self.subscribed |= of_channels;
        let fits = |waiting: &Waiting| (waiting.answer == Answer::Channels) == of_channels || reply.status != 0;
        let is_push = is_message || reply.is_push && !of_channels;
        let front = if is_push { None } else { self.waiting.front_mut().filter(|waiting| fits(waiting)) };
        let Some(waiting) = front else {
            return unasked(ledger, span, offset, &reply, self.statements);
        };
        waiting.left = if reply.status == 0 { waiting.left.saturating_sub(1) } else { 0 };
        let (number, over) = (waiting.number, waiting.left == 0);
        if let Some(entry) = ledger.get(number) {
            let exchange = &mut entry.exchange;
            exchange.status = Some(reply.status.into());
            exchange.response.append(span);
            exchange.response.done = over && done;
            if self.unpaired {
                exchange.doubt(GUESSED);
            }
        }
        if over {
            self.waiting.pop_front();
        }
        if self.waiting.is_empty() {
            // Whatever was missing belongs to commands before: from here on each reply has its command.
            self.unpaired = false;
        }
    }
}

/// What the server says unasked, or to a command that nobody saw.
fn unasked(ledger: &mut Ledger, span: Span, offset: u64, reply: &Reply, statements: Statements) {
    let number = ledger.open(PROTOCOL, offset);
    if let Some(entry) = ledger.get(number) {
        let exchange = &mut entry.exchange;
        exchange.response = span;
        let name = reply.name.as_ref().map(Text::bytes);
        if reply.is_aggregate && (reply.is_push || name.is_some_and(|name| name.ends_with(b"message"))) {
            exchange.method = name.map(|name| command::to_text(name).into_string().into());
            exchange.target = statements.name(reply.about.as_ref().map(|about| command::to_text(about.bytes())));
        } else {
            exchange.status = Some(reply.status.into());
        }
        exchange.ended = span.last;
    }
}

/// The number of an error by its first word.
fn status(text: &[u8]) -> u16 {
    let word = text.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    let position = ERRORS.iter().position(|name| name.as_bytes() == word);
    position.and_then(|at| u16::try_from(at).ok()).filter(|status| *status != 0).unwrap_or(OTHER_ERROR)
}

impl Protocol for Redis {
    type Message = Element;
    const NAME: &'static str = PROTOCOL;

    fn begins(packet: &[u8], asks: bool) -> bool {
        let verdict = if asks { command(packet) } else { reply(packet) };
        verdict == Verdict::Yes
    }

    fn context(&self, asks: bool) -> Wanted {
        if asks {
            let inline = !self.asking.is_under_way();
            Wanted { text: !inline && self.asking.says.wants(), inline }
        } else {
            let reply = &self.answering.says;
            let may_tell = reply.is_push || reply.is_aggregate && self.may_be_about_channels();
            Wanted { text: may_tell && matches!(reply.count, 1 | 2), inline: false }
        }
    }

    fn message(&mut self, ledger: &mut Ledger, from: Side, Whole { message, span, offset }: Whole<Element>) {
        if ledger.asks(from) {
            self.asks(ledger, message, span, offset);
        } else {
            self.answers(ledger, message, span, offset);
        }
    }

    /// What was under way is cut short. Whose reply comes next is not known where commands wait.
    fn lost(&mut self, ledger: &mut Ledger, from: Side, by: Moment) {
        if ledger.asks(from) {
            if self.asking.is_under_way() {
                self.requested(ledger, false);
            }
        } else {
            if self.answering.is_under_way() {
                self.answered(ledger, false);
            }
            for waiting in self.waiting.drain(..) {
                ledger.may_lack(waiting.number, by, true);
            }
        }
        self.unpaired = true;
    }

    fn next(&mut self) -> Option<Next> {
        self.replication.then_some(Next::Unread)
    }

    fn pending(&self) -> Option<Moment> {
        Moment::earliest([self.asking.span.first, self.answering.span.first])
    }

    fn finish(&mut self, ledger: &mut Ledger) {
        if self.asking.is_under_way() {
            self.requested(ledger, false);
        }
        if self.answering.is_under_way() {
            self.answered(ledger, false);
        }
        self.waiting.clear();
    }
}

impl Redis {
    /// Does a reply's first text matter?
    fn may_be_about_channels(&self) -> bool {
        self.subscribed || self.waiting.front().is_some_and(|waiting| waiting.answer == Answer::Channels)
    }
}
