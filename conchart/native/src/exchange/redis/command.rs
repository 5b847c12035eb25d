//! What a command asks: its name and what it is about; never a value, never a password.
//!
//! In: the arguments of a command, one after the other. Out: method and target of an exchange, and how it is answered.
//! Bounded: so many bytes of a name as `names` tells, and what `resp` keeps of one argument.

use std::borrow::Cow;

use super::names::{self, upper};
use super::resp::MAX_TEXT;

/// What a command is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum About {
    /// The argument of that number.
    Argument(u8),
    /// Nothing that may be told, or nothing.
    Nothing,
    /// The first argument says what is asked of a group of commands; the argument of that number, what it is about.
    Part(u8),
    /// The argument behind STREAMS.
    Streams,
}

/// How a command is answered.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Answer {
    #[default]
    One,
    /// One reply for each channel.
    Channels,
    /// Once, and then without end.
    Feed,
    /// By bytes that are no replies.
    Replication,
    /// CLIENT REPLY: what follows is answered, or not.
    Reply(Replies),
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Replies {
    #[default]
    On,
    Off,
    /// None to this command and the next.
    Skip,
}

/// A command as far as it is read.
#[derive(Debug, Default)]
pub(super) struct Command {
    /// Of a known command, not copied.
    name: Cow<'static, str>,
    about: Option<About>,
    target: Option<Box<str>>,
    /// Arguments so far, the name included.
    pub count: u64,
    /// The next argument is the first stream.
    streams_follow: bool,
    pub answer: Answer,
    /// It is answered when something happens, not when the server has worked.
    pub awaits_event: bool,
}

impl Command {
    /// Is the next argument's text needed?
    pub fn wants(&self) -> bool {
        match self.about {
            None => true,
            Some(About::Argument(at)) => self.count == u64::from(at),
            Some(About::Part(at)) => {
                self.count == 1 || self.count == u64::from(at) || self.name.starts_with("CLIENT") && self.count == 2
            }
            Some(About::Streams) => self.target.is_none() && self.count < 16,
            Some(About::Nothing) => false,
        }
    }

    /// The next argument, as far as it is kept.
    pub fn argument(&mut self, text: Option<&[u8]>) {
        let at = self.count;
        self.count = at.saturating_add(1);
        let text = text.unwrap_or_default();
        if at == 0 {
            if let Some(entry) = names::find(text) {
                (self.name, self.about) = (Cow::Borrowed(entry.name), Some(entry.about));
                (self.answer, self.awaits_event) = (entry.answer, entry.awaits_event);
            } else {
                (self.name, self.about) = (Cow::Owned(upper(text)), Some(About::Argument(1)));
            }
            return;
        }
        match self.about {
            Some(About::Part(_)) if at == 1 => {
                let name = self.name.to_mut();
                name.push(' ');
                name.push_str(&upper(text));
            }
            Some(About::Part(_)) if at == 2 && self.name == "CLIENT REPLY" => {
                self.answer = Answer::Reply(match upper(text).as_str() {
                    "OFF" => Replies::Off,
                    "SKIP" => Replies::Skip,
                    _ => Replies::On,
                });
            }
            Some(About::Argument(wanted) | About::Part(wanted)) if at == u64::from(wanted) => {
                self.target = Some(to_text(text));
            }
            Some(About::Streams) if self.target.is_none() => {
                if std::mem::take(&mut self.streams_follow) {
                    self.target = Some(to_text(text));
                } else if text.eq_ignore_ascii_case(b"STREAMS") {
                    self.streams_follow = true;
                } else if text.eq_ignore_ascii_case(b"BLOCK") {
                    self.name.to_mut().push_str(" BLOCK");
                    self.awaits_event = true;
                }
            }
            _ => {}
        }
    }

    /// A command on one line.
    pub fn inline(line: &[u8]) -> Self {
        let mut command = Self::default();
        for word in line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
            command.argument(Some(word));
        }
        command
    }

    pub fn method(&mut self) -> Option<Cow<'static, str>> {
        Some(std::mem::take(&mut self.name)).filter(|name| !name.is_empty())
    }

    pub fn target(&mut self) -> Option<Box<str>> {
        self.target.take()
    }
}

/// A text of the capture; `…` where it is cut.
pub(super) fn to_text(text: &[u8]) -> Box<str> {
    match std::str::from_utf8(text) {
        Ok(valid) if text.len() < MAX_TEXT => valid.into(),
        _ if text.len() < MAX_TEXT => String::from_utf8_lossy(text).into(),
        _ => format!("{}…", String::from_utf8_lossy(text)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> (Option<Cow<'static, str>>, Option<Box<str>>) {
        let mut command = Command::inline(line.as_bytes());
        (command.method(), command.target())
    }

    #[test]
    fn a_command_is_told_by_its_name_and_what_it_is_about() {
        for (line, method, target) in [
            ("get k", "GET", Some("k")),
            ("SET k secret", "SET", Some("k")),
            ("AUTH user secret", "AUTH", None),
            ("HELLO 3 AUTH user secret", "HELLO", Some("3")),
            ("CONFIG SET requirepass secret", "CONFIG SET", Some("requirepass")),
            ("CLIENT SETNAME me", "CLIENT SETNAME", None),
            ("ACL SETUSER me >secret", "ACL SETUSER", Some("me")),
            ("BLPOP q 0", "BLPOP", Some("q")),
            ("XREAD COUNT 2 BLOCK 0 STREAMS s $", "XREAD BLOCK", Some("s")),
            ("XREADGROUP GROUP g c STREAMS s >", "XREADGROUP", Some("s")),
            ("EVAL return(1) 1 k", "EVAL", Some("k")),
            ("PING hello", "PING", None),
            ("MULTI", "MULTI", None),
        ] {
            assert_eq!(read(line), (Some(method.into()), target.map(Into::into)), "{line}");
        }
    }

    #[test]
    fn commands_that_await_an_event_are_known() {
        let awaits = |line: &str| Command::inline(line.as_bytes()).awaits_event;
        assert!(awaits("blpop q 0") && awaits("XREAD BLOCK 0 STREAMS s $") && awaits("WAIT 1 0"));
        assert!(!awaits("LPOP q") && !awaits("XREAD STREAMS s 0") && !awaits("SUBSCRIBE c"));
    }
}
