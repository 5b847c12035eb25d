//! The shape of an SQL statement: what is asked, without the values.
//!
//! In: the text of a statement, perhaps cut. Out: the same with `?` for every literal and parameter, one space between
//! words, no comments, and lists of values as `?, ...`; and the trace context of a comment (sqlcommenter). Statements
//! that differ in values only have one shape. Where whole statements are wanted, their text as well, unless a password
//! may stand in it. Bounded by [`MAX_SHAPE`] and [`MAX_TEXT`]. Non-goals: a grammar. What looks like a value is one: where
//! a text cannot be understood, more is left out, never less.

use std::fmt::Write;

use super::statements::{Statement, Statements};

/// Longest shape that is told.
const MAX_SHAPE: usize = 1000;
/// Bytes of a whole statement that are told.
const MAX_TEXT: usize = 4096;
/// A statement with one of these, in any case, may have a password among its values: its text is told as a shape only.
/// They stand in `PASSWORD 'x'`, `IDENTIFIED BY 'x'`, `SET PASSWORD = 'x'`, `PASSWORD('x')`, connection strings, columns of
/// users' passwords, and functions that take a key. Comments and values count, too: that needs no lexer to be right.
const SECRETS: &[&[u8]] = &[
    b"passw",
    b"passphrase",
    b"pwd",
    b"identified",
    b"authentication",
    b"secret",
    b"credential",
    b"token",
    b"private",
    b"api_key",
    b"apikey",
    b"crypt",
    b"pgp_",
    b"hmac",
    b"digest",
    b"scram-",
];

/// How a product writes SQL.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Dialect {
    /// Double quotes are names; `$tag$` quotes texts; comments nest.
    PostgreSql,
    /// Double quotes are texts, backticks names; `#` begins a comment, and what `/*!` begins is no comment.
    /// `escapes`: backslashes in texts, unless the server is told otherwise (`NO_BACKSLASH_ESCAPES`).
    MySql { escapes: bool },
}

impl Dialect {
    fn is_mysql(self) -> bool {
        matches!(self, Self::MySql { .. })
    }
}

/// A statement, and the trace context in it.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct TracedStatement {
    pub statement: Statement,
    /// The trace context in a comment, as sent.
    pub traceparent: Option<String>,
}

/// The shape of a statement, and the trace context in it.
#[derive(Debug, Default, Eq, PartialEq)]
struct Shape {
    text: String,
    traceparent: Option<String>,
}

/// Reads a statement, of which as much is told as is wanted; `cut`: it goes on.
pub(super) fn read(statement: &[u8], cut: bool, dialect: Dialect, wanted: Statements) -> TracedStatement {
    let Shape { text, traceparent } = shape(statement, cut, dialect);
    let shape = Some(text.into_boxed_str());
    let statement = match wanted {
        Statements::Off => Statement::default(),
        Statements::Full if !may_have_password(statement) => {
            let target = Some(whole(statement, cut));
            if target == shape { Statement::named(target) } else { Statement { target, shape } }
        }
        Statements::Shape | Statements::Full => Statement::named(shape),
    };
    TracedStatement { statement, traceparent }
}

fn may_have_password(statement: &[u8]) -> bool {
    let lower = statement.to_ascii_lowercase();
    SECRETS.iter().any(|secret| memchr::memmem::find(&lower, secret).is_some())
}

/// The text as it was sent, `…` where it is cut.
fn whole(statement: &[u8], cut: bool) -> Box<str> {
    let beginning = statement.get(..MAX_TEXT).unwrap_or(statement);
    let mut text = String::from_utf8_lossy(beginning).into_owned();
    if cut || beginning.len() < statement.len() {
        // A character of several bytes may be cut.
        let end = text.trim_end_matches('\u{fffd}').len();
        text.truncate(end);
        text.push('…');
    }
    text.into()
}

/// Finds the shape; `cut`: the statement goes on.
fn shape(statement: &[u8], cut: bool, dialect: Dialect) -> Shape {
    let mut lexer = Lexer { rest: statement, dialect, shape: Shape::default(), list: List::Outside, set: Set::Begin };
    while !lexer.rest.is_empty() && lexer.shape.text.len() < MAX_SHAPE {
        lexer.step();
    }
    let mut shape = lexer.shape;
    if cut || !lexer.rest.is_empty() {
        shape.text.push('…');
    }
    while shape.text.ends_with([';', ' ']) {
        shape.text.pop();
    }
    shape
}

/// Where in a list of values.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum List {
    Outside,
    /// A value was the last.
    Value,
    /// A value and a comma.
    Comma,
    /// More values than one: `?, ...` stands there.
    More,
    /// The same, and a comma.
    MoreComma,
}

/// A statement that begins with SET assigns a value, which may be a word.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Set {
    Begin,
    Name,
    Over,
}

struct Lexer<'a> {
    rest: &'a [u8],
    dialect: Dialect,
    shape: Shape,
    list: List,
    set: Set,
}

impl<'a> Lexer<'a> {
    /// Reads the next token.
    fn step(&mut self) {
        let mysql = self.dialect.is_mysql();
        let escapes = self.dialect == Dialect::MySql { escapes: true };
        match self.rest {
            [b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c, ..] => self.skip(1),
            // MySQL wants a space behind it: `5--1` is no comment.
            [b'-', b'-', next, ..] if !mysql || *next <= b' ' => self.line_comment(),
            [b'-', b'-'] => self.line_comment(),
            [b'#', ..] if mysql => self.line_comment(),
            [b'/', b'*', b'!', ..] if mysql => self.executed_comment(3),
            [b'/', b'*', b'M', b'!', ..] if mysql => self.executed_comment(4),
            [b'*', b'/', ..] if mysql => self.skip(2),
            [b'/', b'*', ..] => self.comment(),
            [b'\'', ..] => self.quoted_value(1, escapes),
            [b'"', ..] if mysql => self.quoted_value(1, escapes),
            [b'`', ..] if mysql => self.name_in_quotes(b'`'),
            [b'e' | b'E', b'\'', ..] if !mysql => self.quoted_value(2, true),
            [b'b' | b'B' | b'x' | b'X' | b'n' | b'N', b'\'', ..] => self.quoted_value(2, escapes),
            [b'u' | b'U', b'&', b'\'', ..] if !mysql => self.quoted_value(3, false),
            [b'"', ..] => self.name_in_quotes(b'"'),
            [b'?', ..] if mysql => {
                self.skip(1);
                self.value();
            }
            [b'$', b'0'..=b'9', ..] => {
                let digits = self.rest.iter().skip(1).take_while(|byte| byte.is_ascii_digit()).count();
                self.skip(1 + digits);
                self.value();
            }
            [b'$', ..] if self.dialect == Dialect::PostgreSql => self.dollar_quoted(),
            [b'0'..=b'9', ..] | [b'.', b'0'..=b'9', ..] => {
                self.number();
                self.value();
            }
            [first, ..] if is_word(*first) => self.word(),
            [b',', ..] => self.comma(),
            [first, ..] => {
                let first = *first;
                self.skip(1);
                self.sign(first);
            }
            [] => {}
        }
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    fn line_comment(&mut self) {
        let end = memchr::memchr(b'\n', self.rest).unwrap_or(self.rest.len());
        self.skip(end);
    }

    /// What is in it is executed, from a version on, which may stand there.
    fn executed_comment(&mut self, before: usize) {
        self.skip(before);
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.skip(digits);
    }

    /// A comment, which may have comments in it. That of a tracer tells its context.
    fn comment(&mut self) {
        let (mut depth, mut at) = (0_u32, 0);
        while let Some(two) = self.rest.get(at..at + 2) {
            match two {
                b"/*" if depth == 0 || !self.dialect.is_mysql() => (depth, at) = (depth.saturating_add(1), at + 2),
                b"*/" => (depth, at) = (depth.saturating_sub(1), at + 2),
                _ => at += 1,
            }
            if depth == 0 {
                break;
            }
        }
        let end = if depth == 0 { at } else { self.rest.len() };
        let text = self.rest.get(..end).unwrap_or_default();
        if let Some(value) = memchr::memmem::find(text, b"traceparent='").and_then(|at| text.get(at + 13..))
            && let Some(end) = memchr::memchr(b'\'', value)
            && let Some(value) = value.get(..end)
            && value.len() == 55
            && value.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-')
        {
            self.shape.traceparent = Some(String::from_utf8_lossy(value).into_owned());
        }
        self.skip(end);
    }

    /// A text in quotes, of which so many bytes stand before its first character.
    fn quoted_value(&mut self, before: usize, escapes: bool) {
        let mut at = before;
        let quote = self.rest.get(before - 1).copied();
        while let Some(byte) = self.rest.get(at) {
            at += match byte {
                b'\\' if escapes => 2,
                byte if Some(*byte) != quote => 1,
                _ if self.rest.get(at + 1).copied() == quote => 2,
                _ => {
                    at += 1;
                    break;
                }
            };
        }
        self.skip(at);
        self.value();
    }

    /// `$$text$$` or `$tag$text$tag$`.
    fn dollar_quoted(&mut self) {
        let tag = self.rest.iter().skip(1).take_while(|byte| is_word(**byte) && **byte != b'$').count();
        let Some(mark) = self.rest.get(..tag + 2).filter(|mark| mark.ends_with(b"$")) else {
            self.skip(1);
            return self.sign(b'$');
        };
        let after = self.rest.get(mark.len()..).unwrap_or_default();
        let end = memchr::memmem::find(after, mark).map_or(self.rest.len(), |end| end + 2 * mark.len());
        self.skip(end);
        self.value();
    }

    fn name_in_quotes(&mut self, quote: u8) {
        let mut at = 1;
        while let Some(byte) = self.rest.get(at) {
            at += 1;
            if *byte == quote {
                if self.rest.get(at) != Some(&quote) {
                    break;
                }
                at += 1;
            }
        }
        let name = self.rest.get(..at).unwrap_or_default();
        if self.set == Set::Over {
            self.skip(at);
            return;
        }
        self.write_word(name);
        self.skip(at);
    }

    /// Digits, a fraction, an exponent; a name that begins with digits is no name.
    fn number(&mut self) {
        let mut at = 0;
        while let Some(byte) = self.rest.get(at) {
            let signs = matches!(byte, b'+' | b'-')
                && at > 0
                && self.rest.get(at - 1).is_some_and(|before| matches!(before, b'e' | b'E'))
                && !self.rest.starts_with(b"0x");
            if !(byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_') || signs) {
                break;
            }
            at += 1;
        }
        self.skip(at);
    }

    fn word(&mut self) {
        let end = self.rest.iter().take_while(|byte| is_word(**byte)).count();
        let word = self.rest.get(..end).unwrap_or_default();
        match self.set {
            // The value of SET may be a word.
            Set::Over => {}
            Set::Name if word.eq_ignore_ascii_case(b"to") => {
                self.write_word(word);
                self.value();
                self.set = Set::Over;
            }
            Set::Begin if word.eq_ignore_ascii_case(b"set") && self.shape.text.is_empty() => {
                self.set = Set::Name;
                self.write_word(word);
            }
            _ => self.write_word(word),
        }
        self.skip(end);
    }

    fn write_word(&mut self, word: &[u8]) {
        if matches!(self.list, List::Comma | List::MoreComma) {
            self.shape.text.push(',');
        }
        self.list = List::Outside;
        let text = &mut self.shape.text;
        // Variables of MySQL.
        let goes_on = self.dialect.is_mysql() && text.ends_with('@');
        if text.ends_with("...") || !text.is_empty() && !goes_on && !text.ends_with(['(', '.', ' ', ':', '[']) {
            text.push(' ');
        }
        let _ = write!(text, "{}", String::from_utf8_lossy(word));
    }

    fn value(&mut self) {
        if self.set == Set::Over {
            return;
        }
        match self.list {
            List::Comma => {
                self.shape.text.push_str(", ...");
                self.list = List::More;
            }
            List::MoreComma => self.list = List::More,
            List::Outside | List::Value | List::More => {
                if self.list == List::Outside || !self.shape.text.ends_with('?') {
                    self.write_word(b"?");
                }
                self.list = List::Value;
            }
        }
    }

    /// A comma between values is written once it is known what follows.
    fn comma(&mut self) {
        self.skip(1);
        match self.list {
            List::Value => self.list = List::Comma,
            List::More => self.list = List::MoreComma,
            _ => self.sign(b','),
        }
    }

    fn sign(&mut self, sign: u8) {
        match self.set {
            Set::Over if sign != b';' => return,
            Set::Over => self.set = Set::Begin,
            _ => {}
        }
        if matches!(self.list, List::Comma | List::MoreComma) {
            self.shape.text.push(',');
        }
        self.list = List::Outside;
        let text = &mut self.shape.text;
        let follows_sign = text.ends_with(['=', '<', '>', '!', '|', ':', '-', '@', '&', '#', '~', '*', '/', '+', '%']);
        let close = matches!(sign, b')' | b',' | b';' | b'.' | b'[' | b']' | b':' | b'(');
        if !(close || follows_sign || text.is_empty() || text.ends_with(['(', '.', ' '])) {
            text.push(' ');
        }
        if sign == b'(' && !text.ends_with(['(', ' ']) && ends_with_keyword(text) {
            text.push(' ');
        }
        text.push(if sign.is_ascii_graphic() { char::from(sign) } else { '\u{fffd}' });
        if self.set == Set::Name && sign == b'=' {
            self.value();
            self.set = Set::Over;
        }
    }
}

/// Is a bracket behind this no call of a function?
fn ends_with_keyword(text: &str) -> bool {
    let word = text.rsplit([' ', '(']).next().unwrap_or_default();
    !text.ends_with(|last: char| last.is_alphanumeric() || last == '_' || last == '"')
        || ["in", "values", "and", "or", "not", "as", "on", "where", "exists", "any", "all", "from", "using"]
            .iter()
            .any(|keyword| word.eq_ignore_ascii_case(keyword))
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'`') || byte >= 0x80
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn shape_text(statement: &str) -> String {
        shape(statement.as_bytes(), false, Dialect::PostgreSql).text
    }

    #[test]
    fn values_and_parameters_are_left_out() {
        for (statement, expected) in [
            ("SELECT 1", "SELECT ?"),
            ("select * from t where id=42 and name = 'O''Hara';", "select * from t where id = ? and name = ?"),
            ("SELECT E'a\\'b' , $1,$2, $tag$ it's $tag$ FROM t", "SELECT ?, ... FROM t"),
            ("SELECT * FROM t WHERE id IN (1,2, 3)", "SELECT * FROM t WHERE id IN (?, ...)"),
            ("SELECT * FROM t WHERE id IN (1)", "SELECT * FROM t WHERE id IN (?)"),
            ("SELECT 1, a, 2, 3, b", "SELECT ?, a, ?, ..., b"),
            ("INSERT INTO t(a, b) VALUES (1, 'x')", "INSERT INTO t(a, b) VALUES (?, ...)"),
            ("SELECT \"User\".\"id\" FROM \"User\"", "SELECT \"User\".\"id\" FROM \"User\""),
            ("SELECT a.b::int, now() -- why\n/* a /* nested */ b */ FROM t", "SELECT a.b::int, now() FROM t"),
            ("SELECT 1.5e-3, -0x1F, .5", "SELECT ?, - ?, ..."),
            ("ALTER ROLE me PASSWORD 'hunter2'", "ALTER ROLE me PASSWORD ?"),
            ("SET role TO hunter2", "SET role TO ?"),
            ("SET my.secret = hunter2, hunter3", "SET my.secret = ?"),
            ("UPDATE t SET a = b WHERE c = 7", "UPDATE t SET a = b WHERE c = ?"),
            ("SELECT 'unterminated", "SELECT ?"),
            ("", ""),
        ] {
            assert_eq!(shape_text(statement), expected, "{statement}");
        }
    }

    #[test]
    fn mysql_quotes_texts_and_names_in_its_own_way() {
        let of_mysql = |statement: &str, escapes| shape(statement.as_bytes(), false, Dialect::MySql { escapes }).text;
        for (statement, expected) in [
            ("select * from `it's` where a=\"secret\" # 'why", "select * from `it's` where a = ?"),
            ("SELECT 'it\\'s', \"a\"\"b\", x'00', _utf8'x' FROM t -- c", "SELECT ?, ..., _utf8 ? FROM t"),
            ("SELECT 5--'3', 'a' FROM t", "SELECT ? -- ?, ... FROM t"),
            ("/*!40101 SET NAMES utf8 */;", "SET NAMES utf8"),
            ("SELECT /*M!100101 1, */ a /* x /* y */ FROM t", "SELECT ?, a FROM t"),
            ("SET PASSWORD = 'hunter2'", "SET PASSWORD = ?"),
            ("CREATE USER me@'%' IDENTIFIED BY 'hunter2'", "CREATE USER me @? IDENTIFIED BY ?"),
            ("INSERT INTO t VALUES (1, 'a'), (2, 'b')", "INSERT INTO t VALUES (?, ...), (?, ...)"),
            ("SELECT a FROM t WHERE b IN (?,?) LIMIT ?", "SELECT a FROM t WHERE b IN (?, ...) LIMIT ?"),
            ("SELECT @@version_comment limit 1", "SELECT @@version_comment limit ?"),
        ] {
            assert_eq!(of_mysql(statement, true), expected, "{statement}");
        }
        let backslash = "SELECT a FROM t WHERE b = 'x\\' AND c = 'secret'";
        assert_eq!(of_mysql(backslash, false), "SELECT a FROM t WHERE b = ? AND c = ?");
    }

    #[test]
    fn what_differs_in_values_has_one_shape() {
        assert_eq!(shape_text("SELECT * FROM t WHERE a=$1"), shape_text("SELECT  *\nFROM t WHERE a = 'x'"));
    }

    #[test]
    fn a_trace_context_is_kept_and_other_comments_are_not() {
        let context = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let commented = format!("SELECT 1 /*db='x',traceparent='{context}'*/");
        let found = shape(commented.as_bytes(), false, Dialect::PostgreSql);
        assert_eq!((found.text.as_str(), found.traceparent.as_deref()), ("SELECT ?", Some(context)));
        let hostile = shape(b"SELECT 1 /*traceparent='secret'*/", false, Dialect::PostgreSql);
        assert_eq!(hostile.traceparent, None);
    }

    fn whole_text(statement: &[u8], cut: bool, dialect: Dialect) -> Statement {
        read(statement, cut, dialect, Statements::Full).statement
    }

    #[test]
    fn a_whole_statement_is_told_as_it_was_sent_with_its_shape_beside_it() {
        let found = whole_text(b"SELECT *\n  FROM t -- all\n WHERE id = 42", false, Dialect::PostgreSql);
        assert_eq!(found.target.as_deref(), Some("SELECT *\n  FROM t -- all\n WHERE id = 42"));
        assert_eq!(found.shape.as_deref(), Some("SELECT * FROM t WHERE id = ?"));
        // What is its own shape needs none.
        let found = whole_text(b"SELECT now()", false, Dialect::PostgreSql);
        assert_eq!((found.target.as_deref(), found.shape), (Some("SELECT now()"), None));
    }

    #[test]
    fn a_statement_that_may_have_a_password_is_told_as_its_shape() {
        let (postgresql, mysql) = (Dialect::PostgreSql, Dialect::MySql { escapes: true });
        for (statement, dialect) in [
            ("CREATE USER me PASSWORD 'hunter2'", postgresql),
            ("alter role me\twith encrypted password\n'hunter2' valid until 'infinity'", postgresql),
            ("SELECT 1; ALTER USER me PASSWORD $$hunter2$$", postgresql),
            ("CREATE USER MAPPING FOR me SERVER s OPTIONS (user 'me', password 'hunter2')", postgresql),
            ("SELECT * FROM dblink('host=db Password=hunter2', 'SELECT 1')", postgresql),
            ("SELECT crypt('hunter2', hash) FROM users", postgresql),
            ("CREATE USER me@'%' IDENTIFIED BY 'hunter2'", mysql),
            ("CREATE USER me IDENTIFIED WITH mysql_native_password AS 'hunter2'", mysql),
            ("GRANT ALL ON *.* TO me IDENTIFIED/**/BY \"hunter2\"", mysql),
            ("/*!50701 CREATE USER me IDENTIFIED BY 'hunter2' */", mysql),
            ("SET PASSWORD = 'hunter2'", mysql),
            ("SET PASSWORD FOR me = PASSWORD('hunter2')", mysql),
            ("SELECT PASSWORD('hunter2')", mysql),
            ("CHANGE MASTER TO MASTER_PASSWORD='hunter2'", mysql),
            ("UPDATE users SET name = 'me', passwd = 'hunter2' WHERE id = 7", mysql),
        ] {
            let found = whole_text(statement.as_bytes(), false, dialect);
            assert_eq!(found, read(statement.as_bytes(), false, dialect, Statements::Shape).statement, "{statement}");
            assert!(!format!("{found:?}").contains("hunter2"), "{found:?}");
        }
    }

    #[test]
    fn a_huge_statement_is_cut_between_characters() {
        let huge = "SELECT 'äöü', ".repeat(100_000);
        let found = whole_text(huge.as_bytes(), false, Dialect::PostgreSql);
        let text = found.target.unwrap();
        assert!(text.len() <= MAX_TEXT + '…'.len_utf8() && text.ends_with('…') && !text.contains('\u{fffd}'));
        assert!(found.shape.unwrap().len() <= MAX_SHAPE + 20);
        assert_eq!(whole_text(b"SELECT \xc3", true, Dialect::PostgreSql).target.as_deref(), Some("SELECT …"));
    }

    #[test]
    fn of_a_statement_that_is_not_to_be_told_only_its_trace_is_kept() {
        let context = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let commented = format!("SELECT 1 /*traceparent='{context}'*/");
        let found = read(commented.as_bytes(), false, Dialect::PostgreSql, Statements::Off);
        assert_eq!((found.statement, found.traceparent.as_deref()), (Statement::default(), Some(context)));
    }

    #[test]
    fn a_long_statement_is_cut() {
        let found = shape("a b ".repeat(1000).as_bytes(), false, Dialect::PostgreSql);
        assert!(found.text.len() < MAX_SHAPE + 20 && found.text.ends_with('…'));
        assert_eq!(shape(b"SELECT a", true, Dialect::PostgreSql).text, "SELECT a…");
    }

    proptest! {
        /// A secret in quotes is in no shape, whatever stands around it.
        #[test]
        fn a_literal_is_never_told(before in "[a-z (,=.+]{0,20}", after in "[a-z ),=;']{0,20}") {
            let found = shape_text(&format!("{before} 'SECRET' {after}"));
            prop_assert!(!found.contains("SECRET"), "{}", found);
        }

        /// Nor is a password in a whole text, in whatever quotes and however the words are spaced.
        #[test]
        fn a_password_is_never_told(
            before in "[a-z (,=.+;'\"/*-]{0,20}",
            word in "(PASSWORD|password|Identified By|SET PASSWORD =|PASSWORD\\(|pwd =)",
            quote in "('|\"|E'|x'|\\$\\$)",
            after in "[a-z ),=;']{0,20}",
        ) {
            for dialect in [Dialect::PostgreSql, Dialect::MySql { escapes: true }, Dialect::MySql { escapes: false }] {
                let statement = format!("{before} {word} {quote}SECRET{quote} {after}");
                let found = read(statement.as_bytes(), false, dialect, Statements::Full).statement;
                prop_assert_eq!(found, read(statement.as_bytes(), false, dialect, Statements::Shape).statement);
            }
        }

        #[test]
        fn anything_is_a_shape(statement in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = shape(&statement, false, Dialect::PostgreSql);
            let found = read(&statement, false, Dialect::MySql { escapes: true }, Statements::Full).statement;
            prop_assert!(found.target.is_some_and(|text| text.len() <= 3 * statement.len() + 3));
        }
    }
}
