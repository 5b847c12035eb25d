//! A line by its layout: literals and fields in turn. A field ends where the next literal begins.

use memchr::memmem;

use super::instants::{self, Instant};
use super::json;

/// How far from its start the real line of a log that went through syslog may begin.
const PREFIX: usize = 256;

/// What a field says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Role {
    /// An instant, by a pattern.
    At(String),
    /// The digits after its seconds: how many nanoseconds each unit has.
    Fraction(i64),
    ClientIp,
    /// Address and port.
    Client,
    ClientPort,
    /// Method, target and version.
    Request,
    Method,
    Target,
    /// What comes after the path.
    Query,
    Host,
    Status,
    Bytes,
    RequestBytes,
    /// An identifier, with its name.
    Id(String),
    /// A duration: its place among those of the layout, and the nanoseconds of its unit.
    Time(usize, i64),
    Skip,
}

impl Role {
    /// Reads `at:%d/%b/%Y`, `time:0:ms`, `id:x-request-id`, `status` …
    pub fn named(name: &str) -> Option<Self> {
        let (kind, rest) = name.split_once(':').unwrap_or((name, ""));
        Some(match kind {
            "at" => Self::At(rest.to_owned()),
            "fraction" => Self::Fraction(unit(rest)?),
            "client_ip" => Self::ClientIp,
            "client" => Self::Client,
            "client_port" => Self::ClientPort,
            "request" => Self::Request,
            "method" => Self::Method,
            "target" => Self::Target,
            "query" => Self::Query,
            "host" => Self::Host,
            "status" => Self::Status,
            "bytes" => Self::Bytes,
            "request_bytes" => Self::RequestBytes,
            "id" => Self::Id(rest.to_owned()),
            "time" => {
                let (place, scale) = rest.split_once(':')?;
                Self::Time(place.parse().ok()?, unit(scale)?)
            }
            "skip" => Self::Skip,
            _ => return None,
        })
    }
}

fn unit(name: &str) -> Option<i64> {
    Some(match name {
        "s" => 1_000_000_000,
        "ms" => 1_000_000,
        "us" => 1_000,
        "ns" => 1,
        _ => return None,
    })
}

/// How the lines of a file are built.
#[derive(Clone, Debug)]
pub(crate) enum Layout {
    /// Each field with the literal before it; the text after the last one.
    Text(Vec<(String, Role)>, String),
    /// Fields of a JSON object, by name.
    Json(Vec<(String, Role)>),
}

impl Layout {
    pub fn roles(&self) -> impl Iterator<Item = &Role> {
        let (Self::Text(fields, _) | Self::Json(fields)) = self;
        fields.iter().map(|(_, role)| role)
    }

    /// How many durations a line has.
    pub fn times(&self) -> usize {
        let places = self.roles().map(|role| if let Role::Time(place, _) = role { place + 1 } else { 0 });
        places.max().unwrap_or(0)
    }
}

/// What a line says. Texts as sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    pub at: Option<Instant>,
    pub client_ip: Option<String>,
    pub client_port: Option<i32>,
    pub method: Option<String>,
    pub host: Option<String>,
    pub target: Option<String>,
    pub status: Option<i32>,
    pub bytes: Option<i64>,
    pub request_bytes: Option<i64>,
    pub id: Option<String>,
    pub times: Vec<Option<i64>>,
}

/// Reads lines of one layout.
pub(super) struct Parser<'a> {
    layout: &'a Layout,
    times: usize,
}

impl<'a> Parser<'a> {
    pub fn new(layout: &'a Layout) -> Self {
        Self { layout, times: layout.times() }
    }

    /// What a line says, if it is built so. What syslog put before it is stepped over.
    pub fn parse(&mut self, line: &[u8]) -> Option<Found> {
        match self.layout {
            Layout::Json(fields) => {
                let start = memchr::memchr(b'{', line).filter(|start| *start < PREFIX)?;
                let mut found = self.empty();
                json::members(line.get(start..)?, |name, value| {
                    if let Some((_, role)) = fields.iter().find(|(field, _)| field.as_bytes() == name) {
                        fill(&mut found, role, value)
                    } else {
                        Some(())
                    }
                })?;
                found.at.is_some().then_some(found)
            }
            Layout::Text(fields, end) => self.parse_text(fields, end, line).or_else(|| {
                let start = memmem::find(line, b"]: ")
                    .map(|place| place + 3)
                    .or_else(|| memmem::find(line, b"nginx: ").map(|place| place + 7));
                let start = start.filter(|start| *start < PREFIX)?;
                self.parse_text(fields, end, line.get(start..)?)
            }),
        }
    }

    fn empty(&self) -> Found {
        Found { times: vec![None; self.times], ..Found::default() }
    }

    fn parse_text(&self, fields: &[(String, Role)], end: &str, line: &[u8]) -> Option<Found> {
        let mut found = self.empty();
        let mut rest = line;
        let mut left = fields.iter().peekable();
        if let Some((before, _)) = left.peek() {
            rest = rest.strip_prefix(before.as_bytes())?;
        }
        while let Some((_, role)) = left.next() {
            let until = left.peek().map_or(end, |(literal, _)| literal.as_str()).as_bytes();
            let length =
                if until.is_empty() { rest.len() } else { length_of(rest, until, role, left.peek().is_none())? };
            let (value, after) = rest.split_at_checked(length)?;
            fill(&mut found, role, value)?;
            rest = after.strip_prefix(until)?;
        }
        rest.trim_ascii_end().is_empty().then_some(found)
    }
}

/// Where a field ends: at the literal that follows. In quotes, `\"` is part of it. nginx writes the durations of several
/// attempts as `0.001, 0.002 : 0.003`.
fn length_of(rest: &[u8], until: &[u8], role: &Role, last: bool) -> Option<usize> {
    let mut from = 0;
    // A time may hold what comes after it: `2026/11/26 13:51:22`.
    let mut inside =
        if let Role::At(pattern) = role { memmem::find_iter(pattern.as_bytes(), until).count() } else { 0 };
    loop {
        let place = from + memmem::find(rest.get(from..)?, until)?;
        let value = rest.get(..place)?;
        let escaped = until.first() == Some(&b'"') && ends_in_escape(value);
        let listed = until.first() == Some(&b' ')
            && matches!(role, Role::Time(..) | Role::Skip)
            && (value.ends_with(b",") || value.ends_with(b" :") || rest.get(place..)?.starts_with(b" : "));
        let early = last && place + until.len() < rest.trim_ascii_end().len();
        if !(escaped || listed || early || inside > 0) {
            return Some(place);
        }
        inside = inside.saturating_sub(1);
        from = place + 1;
    }
}

fn ends_in_escape(value: &[u8]) -> bool {
    value.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// Takes a field; `None` where it cannot be what it should be.
fn fill(found: &mut Found, role: &Role, value: &[u8]) -> Option<()> {
    let has_value = !matches!(value, b"" | b"-" | b"null");
    match role {
        Role::Skip => {}
        Role::At(pattern) => found.at = Some(instants::parse(pattern, value)?),
        Role::Fraction(unit_ns) => {
            let fraction: i64 = std::str::from_utf8(value).ok()?.parse().ok()?;
            let at = found.at.as_mut()?;
            at.ns = at.ns.checked_add(fraction.checked_mul(*unit_ns)?)?;
            at.unit_ns = *unit_ns;
        }
        Role::Request => request(found, value),
        _ if !has_value => {}
        Role::ClientIp | Role::Client if value.contains(&b' ') => return None,
        Role::ClientIp => found.client_ip = Some(address(value)),
        Role::Client => {
            let (ip, port) = value.rsplit_at(b':')?;
            found.client_ip = Some(address(ip));
            found.client_port = number(port).and_then(|port| i32::try_from(port).ok());
        }
        Role::ClientPort => found.client_port = number(value).and_then(|port| i32::try_from(port).ok()),
        Role::Method => found.method = Some(text(value)),
        Role::Target => found.target = Some(text(value)),
        Role::Query => {
            let path = found.target.get_or_insert_default();
            if !value.starts_with(b"?") {
                path.push('?');
            }
            path.push_str(&text(value));
        }
        Role::Host => found.host = Some(text(value)),
        Role::Status => found.status = Some(i32::try_from(number(value)?).ok()?).filter(|status| *status > 0),
        Role::Bytes => found.bytes = number(value.strip_prefix(b"+").unwrap_or(value)),
        Role::RequestBytes => found.request_bytes = number(value),
        Role::Id(name) => {
            if found.id.is_none() {
                let value = text(value);
                // version-trace-parent-flags (https://www.w3.org/TR/trace-context/): the trace is what all steps share.
                let part = if name == "traceparent" { value.split('-').nth(1).unwrap_or(&value) } else { &value };
                found.id = Some(format!("{name}:{part}"));
            }
        }
        Role::Time(place, unit_ns) => {
            if !is_list(value) {
                return None;
            }
            // Of several attempts, the last one was answered.
            let last = value.rsplit(|byte| matches!(byte, b',' | b' ')).next().unwrap_or(value);
            let last = last.strip_prefix(b"+").unwrap_or(last);
            if let Some(slot) = found.times.get_mut(*place) {
                *slot = decimal(last, *unit_ns);
            }
        }
    }
    Some(())
}

/// Durations, one or several: `0.001, 0.002 : 0.003`. Two without a separator are two fields.
fn is_list(value: &[u8]) -> bool {
    let digits = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+');
    let mut words = value.split(|byte| *byte == b' ');
    let mut joined = true;
    words.all(|word| {
        let (number, ends) = word.strip_suffix(b",").map_or((word, false), |number| (number, true));
        let is_separator = word == b":";
        let fits = is_separator || joined && !number.is_empty() && number.iter().all(digits);
        joined = ends || is_separator;
        fits
    })
}

trait Split {
    fn rsplit_at(&self, byte: u8) -> Option<(&[u8], &[u8])>;
}

impl Split for [u8] {
    fn rsplit_at(&self, byte: u8) -> Option<(&[u8], &[u8])> {
        let place = memchr::memrchr(byte, self)?;
        Some((self.get(..place)?, self.get(place + 1..)?))
    }
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

fn address(value: &[u8]) -> String {
    let bare = value.strip_prefix(b"[").and_then(|inner| inner.strip_suffix(b"]")).unwrap_or(value);
    text(bare.strip_prefix(b"::ffff:").unwrap_or(bare))
}

fn number(value: &[u8]) -> Option<i64> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// A duration with a point or without, in nanoseconds; what is negative says that there was none.
fn decimal(value: &[u8], unit_ns: i64) -> Option<i64> {
    let (whole, fraction) = value.iter().position(|byte| *byte == b'.').map_or((value, &[][..]), |place| {
        (value.get(..place).unwrap_or_default(), value.get(place + 1..).unwrap_or_default())
    });
    let mut ns = number(whole).filter(|whole| *whole >= 0)?.checked_mul(unit_ns)?;
    let mut scale = unit_ns;
    for digit in fraction {
        scale /= 10;
        ns = ns.checked_add(scale * i64::from(digit.checked_sub(b'0').filter(|digit| *digit < 10)?))?;
    }
    Some(ns)
}

/// `GET /path HTTP/1.1`; of what is no request line, nothing is known.
fn request(found: &mut Found, value: &[u8]) {
    let mut words = value.splitn(2, |byte| *byte == b' ');
    let (Some(method), Some(rest)) = (words.next(), words.next()) else { return };
    let target = match memchr::memrchr(b' ', rest) {
        Some(place) if rest.get(place + 1..).is_some_and(|version| version.starts_with(b"HTTP")) => rest.get(..place),
        _ => Some(rest),
    };
    found.method = Some(text(method));
    let target = text(target.unwrap_or_default());
    // HAProxy writes what HTTP/2 and proxies ask for in absolute form (RFC 9112 section 3.2.2).
    let absolute = ["http://", "https://"].iter().find_map(|scheme| target.strip_prefix(scheme));
    if let Some((host, path)) = absolute.map(|rest| rest.split_at(rest.find('/').unwrap_or(rest.len()))) {
        found.host = Some(host.to_owned());
        found.target = Some(if path.is_empty() { "/".to_owned() } else { path.to_owned() });
    } else {
        found.target = Some(target);
    }
}
