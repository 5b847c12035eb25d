//! Knows memcached by what either side says first, or in the middle of a connection.
//!
//! In: the first bytes of a packet or a stream. Out: verdicts for the table of sniffers. Commands are words in lower
//! case that other protocols have, too (HTTP in capitals, beanstalkd): the rest of the line has to fit. Nothing is kept.

use super::text::{Family, family, number, tokens};
use crate::exchange::reader::{SNIFFED, Verdict};

/// Replies by which a connection is known. beanstalkd says DELETED, NOT_FOUND and TOUCHED, too.
const TELLING: &[&[u8]] = &[b"STORED", b"NOT_STORED", b"END", b"HD", b"NS", b"EX", b"EN", b"MN", b"NF"];
/// What else begins a reply where it is known that memcached speaks.
const OTHERS: &[&[u8]] = &[
    b"EXISTS",
    b"NOT_FOUND",
    b"DELETED",
    b"TOUCHED",
    b"OK",
    b"RESET",
    b"ERROR",
    b"CLIENT_ERROR",
    b"SERVER_ERROR",
    b"ME",
];

/// Does this stream begin with a command?
pub(in crate::exchange) fn command(prefix: &[u8]) -> Verdict {
    let (line, whole) = first_line(prefix);
    let (name, rest) = match memchr::memchr(b' ', line) {
        Some(blank) => line.split_at(blank),
        None => (line, &[][..]),
    };
    if rest.is_empty() && !whole {
        // The name itself may still be coming.
        let begins = |candidate: &&str| candidate.as_bytes().starts_with(name.strip_suffix(b"\r").unwrap_or(name));
        return if NAMES.iter().any(begins) { Verdict::More } else { Verdict::No };
    }
    let Some((name, family)) = family(name).filter(|(name, _)| NAMES.contains(name)) else {
        return Verdict::No;
    };
    let text = |byte: &u8| !byte.is_ascii_control();
    if !line.strip_suffix(b"\r").filter(|_| !whole).unwrap_or(line).iter().all(text) {
        return Verdict::No;
    }
    if !whole {
        // Keys are longer than what is looked at.
        return if prefix.len() >= SNIFFED { Verdict::Yes } else { Verdict::More };
    }
    let words: Vec<&[u8]> = tokens(rest).collect();
    let silent = words.strip_suffix(&[b"noreply".as_slice()]).unwrap_or(&words);
    let fits = match (family, silent) {
        (Family::Get, [_, ..]) => !words.last().is_some_and(|last| last.starts_with(b"HTTP/")),
        (Family::GetAndTouch, [expires, _, ..]) => is_number(expires),
        (Family::Store, [_, numbers @ ..]) => {
            numbers.len() == if name == "cas" { 4 } else { 3 } && numbers.iter().all(|digits| is_number(digits))
        }
        // beanstalkd deletes jobs by their number.
        (Family::Delete, [key] | [key, b"0"]) => number(key).is_none(),
        (Family::Count | Family::Touch, [_, digits]) => is_number(digits),
        (Family::MetaGet | Family::MetaDelete | Family::MetaArithmetic, [_, flags @ ..]) => are_flags(flags),
        (Family::MetaSet, [_, length, flags @ ..]) => number(length).is_some() && are_flags(flags),
        (Family::MetaNoop, []) => true,
        (Family::Silenceable, [] | [_]) => name == "flush_all" && silent.iter().all(|digits| is_number(digits)),
        // Others have figures and a version, too: the reply tells.
        (Family::Group | Family::Other, [] | [_]) => return Verdict::More,
        _ => false,
    };
    if fits { Verdict::Yes } else { Verdict::No }
}

/// Commands by which a connection may be known.
const NAMES: &[&str] = &[
    "get",
    "gets",
    "gat",
    "gats",
    "set",
    "add",
    "replace",
    "append",
    "prepend",
    "cas",
    "delete",
    "incr",
    "decr",
    "touch",
    "mg",
    "ms",
    "md",
    "ma",
    "mn",
    "flush_all",
    "stats",
    "version",
];

/// Does this stream begin with figures of a server, or its version?
pub(in crate::exchange) fn figures(prefix: &[u8]) -> Verdict {
    let words: [&[u8]; 2] = [b"STAT ", b"VERSION "];
    if words.iter().any(|word| prefix.starts_with(word)) {
        Verdict::Yes
    } else if words.iter().any(|word| word.starts_with(prefix)) {
        Verdict::More
    } else {
        Verdict::No
    }
}

/// Does this packet begin with a reply?
pub(in crate::exchange) fn reply(prefix: &[u8]) -> Verdict {
    match figures(prefix) {
        Verdict::No => one_of(TELLING, prefix),
        certain => certain,
    }
}

/// The same, where it is known that memcached speaks.
pub(super) fn any_reply(packet: &[u8]) -> bool {
    let is_number = || matches!(first_line(packet), (line, true) if line.len() <= 20 && number(line).is_some());
    reply(packet) == Verdict::Yes || one_of(OTHERS, packet) == Verdict::Yes || is_number()
}

/// A line that begins with one of these words, or a value.
fn one_of(words: &[&[u8]], prefix: &[u8]) -> Verdict {
    let (line, whole) = first_line(prefix);
    let mut split = tokens(line);
    let first = split.next().unwrap_or_default();
    if !whole && first.len() == line.len() {
        let name = line.strip_suffix(b"\r").unwrap_or(line);
        let mut candidates = words.iter().copied().chain([&b"VALUE"[..], b"VA"]);
        return if candidates.any(|word| word.starts_with(name)) { Verdict::More } else { Verdict::No };
    }
    let rest: Vec<&[u8]> = split.collect();
    let fits = match (first, &rest[..]) {
        (b"VALUE", [_, numbers @ ..]) if whole => {
            matches!(numbers.len(), 2 | 3) && numbers.iter().all(|digits| number(digits).is_some())
        }
        (b"VA", [length, flags @ ..]) if whole => number(length).is_some() && are_flags(flags),
        (b"VALUE" | b"VA", _) => !whole,
        (b"ERROR" | b"CLIENT_ERROR" | b"SERVER_ERROR" | b"ME", _) => words.contains(&first),
        _ => words.contains(&first) && are_flags(&rest),
    };
    match fits && line.iter().all(|byte| !byte.is_ascii_control() || *byte == b'\r' && !whole) {
        true if whole || prefix.len() >= SNIFFED => Verdict::Yes,
        true => Verdict::More,
        false => Verdict::No,
    }
}

/// The first line as far as it is there, and whether it is there as a whole.
fn first_line(prefix: &[u8]) -> (&[u8], bool) {
    let line = memchr::memchr(b'\n', prefix).and_then(|end| prefix.get(..end)?.strip_suffix(b"\r"));
    line.map_or((prefix, false), |line| (line, true))
}

/// Tokens of meta commands: a letter, and for some what belongs to it.
fn are_flags(flags: &[&[u8]]) -> bool {
    flags.iter().all(|flag| match flag {
        [letter] => letter.is_ascii_alphabetic(),
        [b'O' | b'k' | b'M' | b'P' | b'L', ..] => flag.len() <= 251,
        [letter, digits @ ..] => letter.is_ascii_alphabetic() && is_number(digits),
        [] => false,
    })
}

fn is_number(digits: &[u8]) -> bool {
    let digits = digits.strip_prefix(b"-").unwrap_or(digits);
    !digits.is_empty() && digits.len() <= 20 && digits.iter().all(u8::is_ascii_digit)
}
