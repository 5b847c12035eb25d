//! The text that memcached's clients and servers exchange (protocol.txt): a line, and where it says so, a block of data.
//!
//! In: the beginning of a message. Out: what a command asks and how it is answered; what a line of a reply is. Values are
//! counted and never looked at. Nothing is kept here.

use crate::exchange::framed::{self, Read};

/// Longest line that memcached takes of other commands than `get` and `gets`, and longest key.
const MAX_LINE: usize = 2048;
const MAX_KEY: usize = 250;
/// Longest line of a command that names many keys: memcached knows no limit.
const MAX_KEYS: usize = 1 << 20;
/// The largest value that a command may announce.
const MAX_DATA: usize = i32::MAX as usize - CRLF;
const CRLF: usize = 2;

/// What kinds of commands there are: the reply tells them apart.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Family {
    Get,
    GetAndTouch,
    Store,
    Delete,
    Count,
    Touch,
    MetaGet,
    MetaSet,
    MetaDelete,
    MetaArithmetic,
    MetaNoop,
    MetaDebug,
    /// What follows the OK is a log without end.
    Watch,
    Quit,
    /// `flush_all` and `verbosity`, which may want no reply.
    Silenceable,
    /// The word after it says what is asked.
    Group,
    #[default]
    Other,
}

/// Names of commands. All others are not told: on such a line stands what nobody may see, if a length was wrong.
static COMMANDS: &[(&str, Family)] = &[
    ("get", Family::Get),
    ("gets", Family::Get),
    ("gat", Family::GetAndTouch),
    ("gats", Family::GetAndTouch),
    ("set", Family::Store),
    ("add", Family::Store),
    ("replace", Family::Store),
    ("append", Family::Store),
    ("prepend", Family::Store),
    ("cas", Family::Store),
    ("delete", Family::Delete),
    ("incr", Family::Count),
    ("decr", Family::Count),
    ("touch", Family::Touch),
    ("mg", Family::MetaGet),
    ("ms", Family::MetaSet),
    ("md", Family::MetaDelete),
    ("ma", Family::MetaArithmetic),
    ("mn", Family::MetaNoop),
    ("me", Family::MetaDebug),
    ("watch", Family::Watch),
    ("quit", Family::Quit),
    ("flush_all", Family::Silenceable),
    ("verbosity", Family::Silenceable),
    ("stats", Family::Group),
    ("lru", Family::Group),
    ("lru_crawler", Family::Group),
    ("slabs", Family::Group),
    ("extstore", Family::Group),
    ("version", Family::Other),
    ("cache_memlimit", Family::Other),
    ("refresh_certs", Family::Other),
    ("shutdown", Family::Other),
];

/// When a command is answered.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Answer {
    #[default]
    Always,
    /// Unless the reply is what one expects (meta commands with `q`).
    Quiet,
    Never,
}

/// What a command asks.
#[derive(Debug, Default, Eq, PartialEq)]
pub(in crate::exchange) struct Command {
    pub(super) method: Option<&'static str>,
    pub(super) target: Option<Box<str>>,
    pub(super) family: Family,
    pub(super) answer: Answer,
    pub(super) marks: Marks,
    /// A meta command that asks for the value.
    pub(super) wants_value: bool,
}

/// What meta commands may ask to be said again in the reply: the token behind `O`, and with `k` the key.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Marks {
    pub opaque: Option<Box<[u8]>>,
    pub key: Option<Box<str>>,
}

/// The first word of a reply's line, as far as it tells to what it is the reply.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Word {
    Value,
    End,
    Stored,
    Exists,
    NotFound,
    Deleted,
    Touched,
    Number,
    Va,
    Hd,
    Ns,
    Nf,
    Ex,
    En,
    Mn,
    Me,
    /// A line of a list that `END` ends.
    Listed,
    /// With its number among `ERRORS`.
    Error(u16),
    Other,
}

/// A line of a reply, with its block.
#[derive(Debug, Eq, PartialEq)]
pub(in crate::exchange) struct Reply {
    pub(super) word: Word,
    pub(super) marks: Marks,
}

impl Reply {
    /// More lines of the same reply follow.
    pub(super) fn goes_on(&self) -> bool {
        matches!(self.word, Word::Value | Word::Listed)
    }
}

/// A command, or a line of a reply.
#[derive(Debug, Eq, PartialEq)]
pub(in crate::exchange) enum Message {
    Command(Command),
    Reply(Reply),
}

impl framed::Message for Message {
    /// Is it a command?
    type Context = bool;
    const FIRST: usize = 1;

    fn read(beginning: &[u8], all: bool, asks: bool) -> Read<Self> {
        // As little is asked for as may be missing: a line tells its length by its end.
        let Some((&last, before)) = beginning.split_last() else {
            return Read::Wrong;
        };
        if last != b'\n' {
            let many = asks && [&b"get"[..], b"gat"].iter().any(|word| beginning.starts_with(word));
            let limit = if many { MAX_KEYS } else { MAX_LINE };
            // A byte of the old binary protocol's beginning is none of a text's.
            if all || beginning.len() >= limit || !is_text(last) || before.is_empty() && !last.is_ascii() {
                return Read::Wrong;
            }
            return Read::More { wanted: beginning.len() + 1, len: None };
        }
        let line = before.strip_suffix(b"\r").unwrap_or(before);
        let read = if asks {
            let (command, data) = command(line);
            Some((Self::Command(command), data))
        } else {
            reply(line).map(|(reply, data)| (Self::Reply(reply), data))
        };
        match read {
            Some((message, data)) => Read::Parsed(message, beginning.len() + data.map_or(0, |data| data + CRLF)),
            None => Read::Wrong,
        }
    }
}

fn is_text(byte: u8) -> bool {
    byte >= b' ' && byte != 0x7f || matches!(byte, b'\t' | b'\r')
}

/// Words between blanks.
pub(super) fn tokens(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| *byte == b' ').filter(|token| !token.is_empty())
}

/// The kind of command that has this name.
pub(super) fn family(name: &[u8]) -> Option<(&'static str, Family)> {
    COMMANDS.iter().copied().find(|(method, _)| method.as_bytes() == name)
}

/// Reads a command's line, and the length of the value behind it.
fn command(line: &[u8]) -> (Command, Option<usize>) {
    let mut words = tokens(line);
    let Some((name, family)) = words.next().and_then(family) else {
        return (Command::default(), None);
    };
    let mut command = Command { method: Some(name), family, ..Command::default() };
    let last = tokens(line).last().unwrap_or_default();
    let silenced = last == b"noreply";
    let key = match family {
        Family::GetAndTouch => words.nth(1),
        Family::MetaNoop | Family::Watch | Family::Quit | Family::Silenceable | Family::Other => None,
        _ => words.next(),
    };
    command.target = key.map(to_text);
    let mut data = None;
    match family {
        Family::Quit => command.answer = Answer::Never,
        Family::Store => {
            data = length(key, words.nth(2));
            command.answer = if silenced { Answer::Never } else { Answer::Always };
        }
        Family::Delete | Family::Count | Family::Touch | Family::Silenceable if silenced => {
            command.answer = Answer::Never;
        }
        Family::MetaGet | Family::MetaSet | Family::MetaDelete | Family::MetaArithmetic => {
            if family == Family::MetaSet {
                data = length(key, words.next());
            }
            for flag in words {
                match flag {
                    b"q" => command.answer = Answer::Quiet,
                    b"v" => command.wants_value = true,
                    b"k" => command.marks.key.clone_from(&command.target),
                    [b'O', opaque @ ..] => command.marks.opaque = Some(opaque.into()),
                    _ => {}
                }
            }
        }
        _ => {}
    }
    (command, data)
}

/// The length of a value, where memcached takes the line: otherwise no value follows.
fn length(key: Option<&[u8]>, bytes: Option<&[u8]>) -> Option<usize> {
    key.filter(|key| key.len() <= MAX_KEY)?;
    number(bytes?).filter(|bytes| *bytes <= MAX_DATA)
}

pub(super) fn number(digits: &[u8]) -> Option<usize> {
    if !digits.first()?.is_ascii_digit() {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Reads a line of a reply, and the length of the value behind it; `None`: it is none.
fn reply(line: &[u8]) -> Option<(Reply, Option<usize>)> {
    let mut words = tokens(line);
    let first = words.next().unwrap_or_default();
    let word = match first {
        b"VALUE" => Word::Value,
        b"END" => Word::End,
        b"STORED" | b"NOT_STORED" => Word::Stored,
        b"EXISTS" => Word::Exists,
        b"NOT_FOUND" => Word::NotFound,
        b"DELETED" => Word::Deleted,
        b"TOUCHED" => Word::Touched,
        b"VA" => Word::Va,
        b"HD" => Word::Hd,
        b"NS" => Word::Ns,
        b"NF" => Word::Nf,
        b"EX" => Word::Ex,
        b"EN" => Word::En,
        b"MN" => Word::Mn,
        b"ME" => Word::Me,
        b"STAT" | b"ITEM" | b"PREFIX" | b"mg" => Word::Listed,
        b"ERROR" | b"ERROR:" => Word::Error(1),
        b"CLIENT_ERROR" => Word::Error(2),
        b"SERVER_ERROR" => Word::Error(3),
        _ if first.starts_with(b"key=") => Word::Listed,
        _ if number(first).is_some() => Word::Number,
        _ => Word::Other,
    };
    let data = match word {
        Word::Value => Some(number(words.nth(2)?)?),
        Word::Va => Some(number(words.next()?)?),
        _ => None,
    };
    if data.is_some_and(|data| data > MAX_DATA) {
        return None;
    }
    let mut marks = Marks::default();
    if matches!(word, Word::Va | Word::Hd | Word::Ns | Word::Nf | Word::Ex | Word::En) {
        for flag in words {
            match flag {
                [b'O', opaque @ ..] => marks.opaque = Some(opaque.into()),
                [b'k', key @ ..] => marks.key = Some(to_text(key)),
                _ => {}
            }
        }
    }
    Some((Reply { word, marks }, data))
}

/// A text of the capture; `…` where it is cut.
fn to_text(text: &[u8]) -> Box<str> {
    let beginning = String::from_utf8_lossy(text.get(..MAX_KEY).unwrap_or(text));
    if text.len() <= MAX_KEY { beginning.into() } else { format!("{beginning}…").into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::framed::Message as _;

    /// What is read where as many bytes are there as are asked for.
    fn read(bytes: &[u8], asks: bool) -> Read<Message> {
        let mut had = Message::FIRST;
        loop {
            match Message::read(bytes.get(..had).unwrap_or(bytes), false, asks) {
                Read::More { wanted, .. } if wanted <= bytes.len() => {
                    assert!(wanted > had);
                    had = wanted;
                }
                read => return read,
            }
        }
    }

    #[test]
    fn a_command_is_told_by_its_name_and_its_first_key() {
        for (line, method, target, answer, len) in [
            ("get k\r\n", Some("get"), Some("k"), Answer::Always, 7),
            ("gets a b \n", Some("gets"), Some("a"), Answer::Always, 10),
            ("gat 60 k\r\n", Some("gat"), Some("k"), Answer::Always, 10),
            ("set k 0 0 6\r\nsecret\r\n", Some("set"), Some("k"), Answer::Always, 21),
            ("cas k 0 0 1 7 noreply\r\nx\r\n", Some("cas"), Some("k"), Answer::Never, 26),
            ("set k 0 0 -1\r\n", Some("set"), Some("k"), Answer::Always, 14),
            ("set k 0 0 x\r\n", Some("set"), Some("k"), Answer::Always, 13),
            ("set k 0 0 2147483646\r\n", Some("set"), Some("k"), Answer::Always, 22),
            ("incr n 1 noreply\r\n", Some("incr"), Some("n"), Answer::Never, 18),
            ("get noreply\r\n", Some("get"), Some("noreply"), Answer::Always, 13),
            ("mg k v q O7\r\n", Some("mg"), Some("k"), Answer::Quiet, 13),
            ("ms k 2 T0\r\nhi\r\n", Some("ms"), Some("k"), Answer::Always, 15),
            ("mn\r\n", Some("mn"), None, Answer::Always, 4),
            ("stats items\r\n", Some("stats"), Some("items"), Answer::Always, 13),
            ("flush_all 0 noreply\r\n", Some("flush_all"), None, Answer::Never, 21),
            ("quit\r\n", Some("quit"), None, Answer::Never, 6),
            ("a secret\r\n", None, None, Answer::Always, 10),
            ("\r\n", None, None, Answer::Always, 2),
        ] {
            let Read::Parsed(Message::Command(command), used) = read(line.as_bytes(), true) else {
                unreachable!("{line}")
            };
            let row = (command.method, command.target.as_deref(), command.answer, used);
            assert_eq!(row, (method, target, answer, len), "{line}");
        }
    }

    #[test]
    fn a_line_of_a_reply_tells_its_word_and_its_length() {
        for (line, word, len) in [
            ("VALUE k 0 5\r\nhello\r\n", Word::Value, 20),
            ("VALUE k 0 5 77\r\nhello\r\n", Word::Value, 23),
            ("END\r\n", Word::End, 5),
            ("VA 2 kk O1\r\nhi\r\n", Word::Va, 16),
            ("HD\r\n", Word::Hd, 4),
            ("5  \r\n", Word::Number, 5),
            ("STAT pid 1\r\n", Word::Listed, 12),
            ("key=k exp=-1\r\n", Word::Listed, 14),
            ("SERVER_ERROR out of memory\r\n", Word::Error(3), 28),
            ("ERROR: shutdown not enabled\r\n", Word::Error(1), 29),
            ("OK\r\n", Word::Other, 4),
        ] {
            let Read::Parsed(Message::Reply(reply), used) = read(line.as_bytes(), false) else {
                unreachable!("{line}")
            };
            assert_eq!((reply.word, used), (word, len), "{line}");
        }
    }

    #[test]
    fn what_is_no_message_is_wrong() {
        let long = [b'x'; 3000];
        for (bytes, asks) in [
            (&b"\x80\0\0\x01"[..], true),
            (b"get \x01", true),
            (&long, true),
            (&long, false),
            (b"VALUE k 0\r\n", false),
            (b"VALUE k 0 -1\r\n", false),
            (b"VA 99999999999\r\n", false),
        ] {
            assert_eq!(read(bytes, asks), Read::Wrong, "{}", bytes.get(..20).unwrap_or(bytes).escape_ascii());
        }
        let keys = [&b"get"[..], &b" key".repeat(3000), b"\r\n"].concat();
        assert!(matches!(read(&keys, true), Read::Parsed(_, 12_005)));
    }
}
