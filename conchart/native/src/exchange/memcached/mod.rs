//! memcached (its text protocol with the meta commands): every command is one exchange, however many are under way.
//!
//! In: a stream of lines and values in each direction. Out: exchanges in the [`Ledger`]: method is the command, target
//! its first key, status the number of its error ([`ERRORS`]), 0 where there is none: a miss is no error. Replies come in
//! the order of commands. Commands with `noreply` have none; of quiet meta commands, those that a later reply passes over.
//! After `watch` what follows is taken as turns. Non-goals: values, the old binary protocol, datagrams.
//!
//! Bounded: [`MAX_WAITING`] commands wait for their reply; of a message its line is kept, and of values nothing.

pub(super) mod beginnings;
#[cfg(test)]
mod tests;
mod text;

use std::collections::VecDeque;

use super::Span;
use super::framed::Whole;
use super::ledger::{GUESSED, Ledger};
use super::messages::{Messages, Next, Protocol};
use super::protocols::{StatusText, listed};
use super::reader::{Opening, Reader, Verdict};
use super::statements::Statements;
use crate::stream::{Moment, Side};
use text::{Answer, Command, Family, Marks, Message, Reply, Word};

pub(super) const PROTOCOL: &str = "memcached";

/// Commands that are remembered until they are answered: more than clients send ahead.
const MAX_WAITING: usize = 65_536;
/// So many commands behind a quiet one are asked whether the reply might be theirs.
const MAX_RIVALS: usize = 8;

/// The commands of one connection.
#[derive(Default)]
pub(super) struct Memcached {
    waiting: VecDeque<Waiting>,
    /// The exchange of a reply to a command that nobody saw, of which more lines come.
    unasked: Option<u32>,
    /// Replies are missing: it is not known whose the next one is.
    unpaired: bool,
    /// A log follows.
    watches: bool,
    statements: Statements,
}

/// A command that waits for its reply.
struct Waiting {
    number: u32,
    family: Family,
    is_quiet: bool,
    wants_value: bool,
    marks: Marks,
    /// Lines of its reply have come.
    begun: bool,
}

impl Waiting {
    /// May this be the reply?
    fn fits(&self, reply: &Reply) -> bool {
        let word = reply.word;
        if matches!(word, Word::Error(_)) {
            return true;
        }
        let fits = match self.family {
            Family::Get | Family::GetAndTouch => matches!(word, Word::Value | Word::End),
            Family::Store => matches!(word, Word::Stored | Word::Exists | Word::NotFound),
            Family::Delete => matches!(word, Word::Deleted | Word::NotFound),
            Family::Count => matches!(word, Word::Number | Word::NotFound),
            Family::Touch => matches!(word, Word::Touched | Word::NotFound),
            Family::MetaGet => match word {
                Word::Va => self.wants_value,
                Word::Hd => !self.wants_value,
                Word::En => !self.is_quiet,
                _ => false,
            },
            Family::MetaSet => matches!(word, Word::Ns | Word::Ex | Word::Nf) || word == Word::Hd && !self.is_quiet,
            Family::MetaDelete => matches!(word, Word::Ex | Word::Nf) || word == Word::Hd && !self.is_quiet,
            Family::MetaArithmetic => match word {
                Word::Va => self.wants_value && !self.is_quiet,
                Word::Hd => !self.wants_value && !self.is_quiet,
                _ => matches!(word, Word::Ns | Word::Ex | Word::Nf),
            },
            Family::MetaNoop => word == Word::Mn,
            Family::MetaDebug => matches!(word, Word::Me | Word::En),
            Family::Quit => false,
            Family::Watch | Family::Silenceable => word == Word::Other,
            Family::Group | Family::Other => matches!(word, Word::Other | Word::Listed | Word::End | Word::En),
        };
        // A reply without a mark may leave it out: EN has none in older versions.
        let same_opaque = reply.marks.opaque.is_none() && word == Word::En || reply.marks.opaque == self.marks.opaque;
        fits && same_opaque && (reply.marks.key.is_none() || reply.marks.key == self.marks.key)
    }

    fn is_marked(&self) -> bool {
        self.marks != Marks::default()
    }
}

/// Whose reply it is.
enum Whose {
    /// That of the command at this place; is it certain?
    Command(usize, bool),
    /// Nobody's that is known.
    Nobody,
}

impl Memcached {
    pub fn reader(opening: &Opening<'_>) -> Box<dyn Reader> {
        Box::new(Messages::new(
            opening,
            Self { unpaired: opening.start.is_midstream(), statements: opening.statements, ..Self::default() },
        ))
    }

    fn asks(&mut self, ledger: &mut Ledger, command: Command, span: Span, offset: u64) {
        let number = ledger.open(PROTOCOL, offset);
        if let Some(entry) = ledger.get(number) {
            let exchange = &mut entry.exchange;
            exchange.request = span;
            exchange.method = command.method.map(Into::into);
            exchange.target = self.statements.name(command.target);
            exchange.ended = if command.answer == Answer::Never { span.last } else { None };
        }
        if command.answer == Answer::Never {
            return;
        }
        if self.waiting.len() >= MAX_WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(Waiting {
            number,
            family: command.family,
            is_quiet: command.answer == Answer::Quiet,
            wants_value: command.wants_value,
            marks: command.marks,
            begun: false,
        });
    }

    /// Replies come in the order of commands, and only quiet commands may have none.
    fn whose(&self, reply: &Reply) -> Whose {
        for (place, waiting) in self.waiting.iter().enumerate() {
            if waiting.begun {
                return Whose::Command(place, true);
            }
            if waiting.fits(reply) {
                let rivals = self.waiting.range(place + 1..).take(MAX_RIVALS);
                let is_certain = !waiting.is_quiet
                    || waiting.is_marked() && !matches!(reply.word, Word::Error(_))
                    || !rivals.into_iter().any(|rival| rival.fits(reply));
                return Whose::Command(place, is_certain);
            }
            if !waiting.is_quiet {
                return if self.unpaired { Whose::Nobody } else { Whose::Command(place, false) };
            }
        }
        Whose::Nobody
    }

    fn answers(&mut self, ledger: &mut Ledger, reply: &Reply, span: Span, offset: u64) {
        let over = !reply.goes_on();
        let (number, certain) = match (self.unasked, self.whose(reply)) {
            (Some(number), _) => (number, true),
            (None, Whose::Nobody) => {
                let number = ledger.open(PROTOCOL, offset);
                self.unasked = Some(number);
                (number, true)
            }
            (None, Whose::Command(place, certain)) => {
                self.pass_over(ledger, place);
                let Some(waiting) = self.waiting.front_mut() else {
                    return;
                };
                waiting.begun = true;
                let number = waiting.number;
                self.watches |= waiting.family == Family::Watch && reply.word == Word::Other;
                if over {
                    self.waiting.pop_front();
                }
                (number, certain)
            }
        };
        if let Some(entry) = ledger.get(number) {
            let exchange = &mut entry.exchange;
            exchange.response.append(span);
            exchange.response.done = over && span.done;
            if over {
                exchange.status = Some(if let Word::Error(status) = reply.word { status.into() } else { 0 });
            }
            if over && self.unasked == Some(number) {
                exchange.ended = span.last;
            }
            if !certain || self.unpaired && exchange.request.first.is_some() {
                exchange.doubt(GUESSED);
            }
        }
        if over && self.unasked.take().is_none() && self.waiting.is_empty() {
            // Whatever was missing belongs to commands before: from here on each reply has its command.
            self.unpaired = false;
        }
    }

    /// The server had nothing to say to the first `count` commands.
    fn pass_over(&mut self, ledger: &mut Ledger, count: usize) {
        for waiting in self.waiting.drain(..count) {
            if let Some(entry) = ledger.get(waiting.number) {
                entry.exchange.ended = entry.exchange.request.last;
            }
        }
    }
}

impl Protocol for Memcached {
    type Message = Message;
    const NAME: &'static str = PROTOCOL;

    fn begins(packet: &[u8], asks: bool) -> bool {
        if asks { beginnings::command(packet) == Verdict::Yes } else { beginnings::any_reply(packet) }
    }

    fn context(&self, asks: bool) -> bool {
        asks
    }

    fn message(&mut self, ledger: &mut Ledger, _from: Side, Whole { message, span, offset }: Whole<Message>) {
        match message {
            Message::Command(command) => self.asks(ledger, command, span, offset),
            Message::Reply(reply) => self.answers(ledger, &reply, span, offset),
        }
    }

    /// Whose reply comes next is not known where commands wait.
    fn lost(&mut self, ledger: &mut Ledger, from: Side, by: Moment) {
        if !ledger.asks(from) {
            let numbers = self.waiting.drain(..).map(|waiting| waiting.number);
            for number in numbers.chain(self.unasked.take()) {
                ledger.may_lack(number, by, true);
            }
        }
        self.unpaired = true;
    }

    fn next(&mut self) -> Option<Next> {
        self.watches.then_some(Next::Unread)
    }

    fn finish(&mut self, ledger: &mut Ledger) {
        let quiet = self.waiting.iter().take_while(|waiting| waiting.is_quiet && !waiting.begun).count();
        self.pass_over(ledger, quiet);
        self.waiting.clear();
    }
}

/// First words of errors, by the number that an exchange has as its status.
const ERRORS: &[&str] = &["OK", "ERROR", "CLIENT_ERROR", "SERVER_ERROR"];

/// How people write a status: the first word of the error.
pub(super) fn status_text(status: u32) -> StatusText {
    listed(ERRORS, status).unwrap_or(StatusText::Number(status))
}
