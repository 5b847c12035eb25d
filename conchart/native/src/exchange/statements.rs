//! What is told of a question to a store: the shape of its statement, its whole text, or nothing.
//!
//! In: a choice, the same for a whole run. Out: target and shape of an exchange; its [`QueryShape`]. Values of keys, parameters and passwords
//! are no part of a [`Statement`] in any case: readers do not keep them.

use std::fmt::{self, Write};

use super::Exchange;
use super::protocols::facts;

/// How much is told of statements and keys.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Statements {
    /// Of SQL, the statement without its values; keys.
    #[default]
    Shape,
    /// Statements with their values, but for those in which a password may stand; keys.
    Full,
    /// Neither.
    Off,
}

impl Statements {
    /// A key, a channel or a table, where that may be told.
    pub(super) fn name(self, name: Option<Box<str>>) -> Option<Box<str>> {
        name.filter(|_| self != Self::Off)
    }
}

/// What a question is about.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Statement {
    pub target: Option<Box<str>>,
    /// The shape, where `target` says more than that.
    pub shape: Option<Box<str>>,
}

impl Statement {
    /// Something that has a name: a database, a table.
    pub fn named(name: Option<Box<str>>) -> Self {
        Self { target: name, shape: None }
    }
}

/// What a store is asked, without values: it is the same for requests that differ in these alone. `exchanges.shape`.
///
/// SQL has none in its statement. Of the keys of caches, a word with a digit is one. A command of `MongoDB` has the names
/// of its fields. Where a command does not run its statement (`Parse`, `Prepare`) it stands before it, and where that is
/// not known, it stands alone.
#[derive(Clone, Copy, Debug)]
pub struct QueryShape<'a> {
    store: &'static str,
    method: Option<&'a str>,
    about: Option<&'a str>,
}

impl<'a> QueryShape<'a> {
    /// The shape of a request; `None` of what no store is asked.
    #[must_use]
    pub fn of(exchange: &'a Exchange) -> Option<Self> {
        let store = facts(exchange.protocol).store?;
        let about = exchange.shape.as_deref().or(exchange.target.as_deref());
        let runs = store == "sql" && about.is_some() && matches!(exchange.method.as_deref(), Some("Query" | "Execute"));
        Some(Self { store, method: exchange.method.as_deref().filter(|_| !runs), about })
    }

    /// Writes it.
    ///
    /// # Errors
    /// As writing.
    pub fn write(self, into: &mut impl Write) -> fmt::Result {
        let Some(about) = self.about else { return into.write_str(self.method.unwrap_or("unknown")) };
        if let Some(method) = self.method {
            into.write_str(method)?;
            into.write_str(if self.store == "sql" { ": " } else { " " })?;
        }
        if self.store == "cache" { write_without_values(about, into) } else { into.write_str(about) }
    }
}

/// Writes a key with `?` for each word that has a digit, and what follows it with hyphens: `user:?` of `user:4f-17`.
fn write_without_values(key: &str, into: &mut impl Write) -> fmt::Result {
    let mut rest = key;
    while let Some((between, word)) = split(rest, |letter| letter.is_ascii_alphanumeric()) {
        into.write_str(between)?;
        let end = |is_part: fn(char) -> bool| split(word, |letter| !is_part(letter)).map_or(word, |(part, _)| part);
        let letters = end(|letter| letter.is_ascii_alphanumeric());
        let value = letters.contains(|letter: char| letter.is_ascii_digit());
        let taken = if value { end(|letter| letter.is_ascii_alphanumeric() || letter == '-') } else { letters };
        into.write_str(if value { "?" } else { letters })?;
        rest = word.strip_prefix(taken).unwrap_or_default();
    }
    into.write_str(rest)
}

/// Splits a text before the first such letter.
fn split(text: &str, is_first: impl Fn(char) -> bool) -> Option<(&str, &str)> {
    text.split_at_checked(text.find(is_first)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(protocol: &'static str, method: Option<&'static str>, target: Option<&str>) -> Option<String> {
        let exchange = Exchange {
            protocol,
            method: method.map(Into::into),
            target: target.map(Into::into),
            ..Exchange::default()
        };
        let mut text = String::new();
        QueryShape::of(&exchange)?.write(&mut text).ok()?;
        Some(text)
    }

    #[test]
    fn shapes_of_requests_to_stores() {
        for (protocol, method, target, wanted) in [
            ("redis", Some("GET"), Some("user:42:name"), "GET user:?:name"),
            ("redis", Some("GET"), Some("a1-b-c/é9x y-2-"), "GET ?/é? y-?"),
            ("redis", Some("PING"), None, "PING"),
            ("memcached", Some("get"), Some("product:17"), "get product:?"),
            ("mongodb", Some("find"), Some("shop.items {sku}"), "find shop.items {sku}"),
            ("postgresql", Some("Execute"), Some("SELECT ?"), "SELECT ?"),
            ("mysql", Some("Execute"), None, "Execute"),
            ("postgresql", Some("Prepare"), Some("SELECT ?"), "Prepare: SELECT ?"),
            ("postgresql", None, None, "unknown"),
        ] {
            assert_eq!(shape(protocol, method, target).as_deref(), Some(wanted));
        }
        assert_eq!(shape("http/1.1", Some("GET"), Some("/")), None);
    }
}
