//! Reads HTTP/1 heads: request line or status line, the few header fields that frame a message, and those that tell of
//! its way.
//!
//! RFC 9112 sections 2 to 6 and 9.3. In: a head, whole or cut short. Out: what it says. Read line
//! by line, not with a strict parser: a capture holds what was sent, legal or not (targets in
//! Latin-1, folded lines, blanks before the colon), and heads that the snap length cut off.

use std::borrow::Cow;

use memchr::memchr;

use crate::exchange::by_design::{is_awaiting, is_stream};
use crate::exchange::dns::carried::is_dns;
use crate::exchange::provenance::Provenance;
use crate::exchange::reader::Verdict;

/// Longest `method`, `target` or `host` kept.
const MAX_TEXT: usize = 2048;
/// Longest name of a product kept.
const MAX_PRODUCT: usize = 128;

/// How the length of a body is known (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Framing {
    Length(u64),
    Chunked,
    UntilClose,
}

/// Methods in use (IANA registry, WebDAV, UPnP, caches, MS-RPC over HTTP).
/// Methods of nearly all requests.
const NAMES: [&str; 8] = ["GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT"];
const METHODS: [&[u8]; 44] = [
    b"GET",
    b"POST",
    b"HEAD",
    b"PUT",
    b"DELETE",
    b"CONNECT",
    b"OPTIONS",
    b"TRACE",
    b"PATCH",
    b"PROPFIND",
    b"PROPPATCH",
    b"MKCOL",
    b"COPY",
    b"MOVE",
    b"LOCK",
    b"UNLOCK",
    b"ACL",
    b"REPORT",
    b"SEARCH",
    b"BIND",
    b"REBIND",
    b"UNBIND",
    b"LINK",
    b"UNLINK",
    b"MKCALENDAR",
    b"MKACTIVITY",
    b"MKWORKSPACE",
    b"CHECKIN",
    b"CHECKOUT",
    b"UNCHECKOUT",
    b"MERGE",
    b"UPDATE",
    b"LABEL",
    b"ORDERPATCH",
    b"VERSION-CONTROL",
    b"BASELINE-CONTROL",
    b"NOTIFY",
    b"SUBSCRIBE",
    b"UNSUBSCRIBE",
    b"M-SEARCH",
    b"PURGE",
    b"RPC_IN_DATA",
    b"RPC_OUT_DATA",
    b"SSTP_DUPLEX_POST",
];

/// Longest method that a message may begin with.
const MAX_METHOD: usize = 24;

/// Does a stream that begins like this carry HTTP/1 requests? A well-known method is enough; any
/// other one needs a whole request line.
pub(in crate::exchange) fn sniff_request(prefix: &[u8]) -> Verdict {
    let Some((method, after)) = split_at_blank(prefix) else {
        return may_be_request(prefix);
    };
    if METHODS.contains(&method) {
        return match after.trim_ascii_start().first() {
            None => Verdict::More,
            Some(b'!'..=b'~') => Verdict::Yes,
            Some(_) => Verdict::No,
        };
    }
    let (line, rest) = first_line(prefix);
    let text =
        line.iter().all(|b| matches!(b, b' '..=b'~')) && method.iter().all(|b| matches!(b, b'A'..=b'Z' | b'-' | b'_'));
    match rest {
        _ if !text || may_be_request(prefix) != Verdict::Yes => Verdict::No,
        None => Verdict::More,
        Some(_) if line.ends_with(b" HTTP/1.1") || line.ends_with(b" HTTP/1.0") => Verdict::Yes,
        Some(_) => Verdict::No,
    }
}

/// Does a stream that begins like this carry HTTP/1 responses?
pub(in crate::exchange) fn sniff_response(prefix: &[u8]) -> Verdict {
    const VERSION: &[u8] = b"HTTP/1.";
    if prefix.starts_with(VERSION) {
        Verdict::Yes
    } else if VERSION.starts_with(prefix) {
        Verdict::More
    } else {
        Verdict::No
    }
}

/// May a request begin like this, on a connection known to speak HTTP/1? Any method will do.
pub(in crate::exchange) fn may_be_request(prefix: &[u8]) -> Verdict {
    match prefix.iter().position(|&b| !is_token(b)) {
        Some(1..=MAX_METHOD) if prefix.iter().find(|&&b| !is_token(b)) == Some(&b' ') => Verdict::Yes,
        None if prefix.len() <= MAX_METHOD => Verdict::More,
        _ => Verdict::No,
    }
}

/// `tchar` of RFC 9110 section 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// What a request's head says.
#[derive(Debug, Default)]
pub(super) struct Request {
    pub method: Option<Cow<'static, str>>,
    pub target: Option<Box<str>>,
    pub host: Option<Box<str>>,
    /// `None` when the first line was cut before it.
    pub protocol: Option<&'static str>,
    pub keepalive: Option<bool>,
    /// `None`: no body.
    pub framing: Option<Framing>,
    /// The client waits for 100 (Continue) before it sends the body; `None` when the first line was cut.
    pub expects_continue: Option<bool>,
    pub user_agent: Option<Box<str>>,
    /// Its content is a message of DNS.
    pub is_dns: bool,
    /// The response comes when something happens.
    pub is_awaiting: bool,
    pub provenance: Option<Box<Provenance>>,
}

impl Request {
    /// Reads a head, whole or cut short; `None` when it is not HTTP/1.
    pub fn read(head: &[u8]) -> Option<Self> {
        let (line, rest) = first_line(head);
        let (method, after) = split_at_blank(line)?;
        // The version is the last word: blanks inside a sloppy target stay in the target.
        let blank = after.iter().rposition(|&b| b == b' ');
        let version = blank.and_then(|blank| requested_version(after.get(blank + 1..)?));
        let Some(rest) = rest else {
            let complete = version.and(blank).and_then(|blank| after.get(..blank));
            return Some(Self {
                method: method_name(method),
                target: complete.and_then(text),
                protocol: version.map(Version::name),
                ..Self::default()
            });
        };
        let (target, version) = match (version, requested_version(after)) {
            (Some(version), _) => (blank.and_then(|blank| after.get(..blank)).unwrap_or_default(), version),
            // Sloppy clients leave the target out …
            (None, Some(version)) => (&[][..], version),
            // … or the version. With another last word it is another protocol: SIP, RTSP.
            (None, None) if METHODS.contains(&method) && blank.is_none() => (after, Version::Http10),
            (None, None) => return None,
        };
        let target = target.trim_ascii();
        let fields = Fields::read(rest);
        let host = authority(target).or(fields.host).or((method == b"CONNECT").then_some(target));
        Some(Self {
            method: method_name(method),
            target: text(target),
            host: host.and_then(text),
            protocol: Some(version.name()),
            keepalive: Some(fields.keepalive(version)),
            framing: match (fields.coding, fields.length) {
                (Some(Coding::Chunked), _) => Some(Framing::Chunked),
                // The server cannot know either: it answers 400 and closes.
                (Some(Coding::Other), _) | (None, Length::Invalid) => Some(Framing::UntilClose),
                (None, Length::Is(0) | Length::Absent) => None,
                (None, Length::Is(n)) => Some(Framing::Length(n)),
            },
            expects_continue: Some(fields.expects_continue),
            user_agent: fields.user_agent.and_then(product),
            is_dns: fields.is_dns,
            is_awaiting: fields.is_awaiting,
            provenance: fields.provenance,
        })
    }
}

/// What a response's head says.
#[derive(Debug)]
pub(super) struct Response {
    pub status: u16,
    pub protocol: &'static str,
    pub keepalive: Option<bool>,
    /// `None`: no body, whatever the request was.
    pub framing: Option<Framing>,
    /// Protocol that a 101 switches to.
    pub upgrade: Upgrade,
    pub server_software: Option<Box<str>>,
    /// Its content comes in parts, when something happens.
    pub is_stream: bool,
    pub keep_alive_timeout: Option<u32>,
    pub provenance: Option<Box<Provenance>>,
}

impl Response {
    /// Reads a head, whole or cut short; `None` when it is not HTTP/1 or has no status yet.
    pub fn read(head: &[u8]) -> Option<Self> {
        let (line, rest) = first_line(head);
        let (version, after) = split_at_blank(line)?;
        let version = version_of(version)?;
        let (digits, _) = after.trim_ascii_start().split_first_chunk::<3>()?;
        let status = digits.iter().try_fold(0, |n: u16, &d| Some(n * 10 + u16::from(digit(d)?)))?;
        let fields = Fields::read(rest.unwrap_or_default());
        let bodiless = matches!(status, 100..=199 | 204 | 304);
        let framing = match (fields.coding, fields.length) {
            _ if bodiless => None,
            (Some(Coding::Chunked), _) => Some(Framing::Chunked),
            (Some(Coding::Other), _) | (None, Length::Invalid | Length::Absent) => Some(Framing::UntilClose),
            (None, Length::Is(0)) => None,
            (None, Length::Is(n)) => Some(Framing::Length(n)),
        };
        Some(Self {
            status,
            protocol: version.name(),
            keepalive: rest.map(|_| fields.keepalive(version)),
            framing,
            upgrade: fields.upgrade.map_or(Upgrade::Unknown, Upgrade::read),
            server_software: fields.server.and_then(product),
            is_stream: fields.is_stream,
            keep_alive_timeout: fields.keep_alive_timeout,
            provenance: fields.provenance,
        })
    }
}

/// What an Upgrade leads to. Protocols are a closed set of words in the tables, the token is the sender's: unknown
/// ones stay `unknown` (the registry is RFC 9110 section 16.7).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Upgrade {
    WebSocket,
    Http2,
    Tls,
    Unknown,
}

impl Upgrade {
    fn read(tokens: &[u8]) -> Self {
        let first = list(tokens).next().unwrap_or_default();
        let name = first.split(|&b| b == b'/').next().unwrap_or_default();
        match name.to_ascii_lowercase().as_slice() {
            b"websocket" => Self::WebSocket,
            b"h2c" => Self::Http2,
            b"tls" => Self::Tls,
            _ => Self::Unknown,
        }
    }

    /// The name in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::WebSocket => "websocket",
            Self::Http2 => "h2",
            Self::Tls => "tls",
            Self::Unknown => "unknown",
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Version {
    Http10,
    Http11,
}

impl Version {
    fn name(self) -> &'static str {
        match self {
            Self::Http10 => "http/1.0",
            Self::Http11 => "http/1.1",
        }
    }
}

/// A higher minor version than we know is read as 1.1 (RFC 9110 section 2.5).
fn version_of(word: &[u8]) -> Option<Version> {
    match word.strip_prefix(b"HTTP/1.")? {
        b"0" => Some(Version::Http10),
        [b'1'..=b'9'] => Some(Version::Http11),
        _ => None,
    }
}

/// What a client says it speaks. Odd spellings (`HTTP/1.`, `HTTP/1.0.8`) are in use, servers answer them, and
/// nothing says that the connection would be kept: as 1.0.
fn requested_version(word: &[u8]) -> Option<Version> {
    version_of(word).or(word.starts_with(b"HTTP/1").then_some(Version::Http10))
}

#[derive(Clone, Copy, Debug, Default)]
enum Length {
    #[default]
    Absent,
    Is(u64),
    /// Not a number, or two different ones.
    Invalid,
}

impl Length {
    /// Takes one more value. Equal values may be repeated (RFC 9112 section 6.3 item 5).
    fn add(&mut self, value: &[u8]) {
        for item in value.split(|&b| b == b',').map(<[u8]>::trim_ascii) {
            let digits = !item.is_empty() && item.iter().all(u8::is_ascii_digit);
            let number = std::str::from_utf8(item).ok().and_then(|s| s.parse().ok());
            *self = match (*self, number) {
                (Self::Absent, Some(n)) if digits => Self::Is(n),
                (Self::Is(earlier), Some(n)) if digits && earlier == n => Self::Is(n),
                _ => Self::Invalid,
            };
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Coding {
    Chunked,
    /// `chunked` is not the last coding.
    Other,
}

/// The header fields that matter here.
#[derive(Debug, Default)]
struct Fields<'a> {
    host: Option<&'a [u8]>,
    length: Length,
    coding: Option<Coding>,
    close: bool,
    keep_alive: bool,
    upgrade: Option<&'a [u8]>,
    expects_continue: bool,
    keep_alive_timeout: Option<u32>,
    user_agent: Option<&'a [u8]>,
    server: Option<&'a [u8]>,
    is_dns: bool,
    is_awaiting: bool,
    is_stream: bool,
    provenance: Option<Box<Provenance>>,
}

impl<'a> Fields<'a> {
    fn read(lines: &'a [u8]) -> Self {
        let mut fields = Self::default();
        let mut rest = lines;
        while let Some(end) = memchr(b'\n', rest) {
            let (line, after) = rest.split_at(end);
            rest = after.get(1..).unwrap_or_default();
            if let Some(colon) = memchr(b':', line) {
                let (name, value) = line.split_at(colon);
                fields.add(name.trim_ascii_end(), value.get(1..).unwrap_or_default().trim_ascii());
            }
        }
        fields
    }

    fn add(&mut self, name: &[u8], value: &'a [u8]) {
        // The length first: this runs for every line of every head.
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => self.host = self.host.or(Some(value)),
            6 if name.eq_ignore_ascii_case(b"expect") => {
                self.expects_continue |= expects_continue(value);
            }
            6 if name.eq_ignore_ascii_case(b"server") => self.server = self.server.or(Some(value)),
            7 if name.eq_ignore_ascii_case(b"upgrade") => self.upgrade = Some(value),
            // Proxy-Connection never was a standard, but HTTP/1.0 clients of proxies ask with it
            // for what Connection means (RFC 9112 appendix C.2.2), and proxies comply.
            10 | 16 if name.eq_ignore_ascii_case(b"connection") || name.eq_ignore_ascii_case(b"proxy-connection") => {
                for token in list(value) {
                    self.close |= token.eq_ignore_ascii_case(b"close");
                    self.keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            10 if name.eq_ignore_ascii_case(b"keep-alive") => self.keep_alive_timeout = keep_alive_timeout(value),
            10 if name.eq_ignore_ascii_case(b"user-agent") => self.user_agent = self.user_agent.or(Some(value)),
            12 if name.eq_ignore_ascii_case(b"x-amz-target") => self.is_awaiting |= is_awaiting(value),
            12 if name.eq_ignore_ascii_case(b"content-type") => {
                (self.is_dns, self.is_stream) = (self.is_dns || is_dns(value), is_stream(value));
            }
            14 if name.eq_ignore_ascii_case(b"content-length") => self.length.add(value),
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                let last = list(value).last().unwrap_or_default();
                let chunked = last.eq_ignore_ascii_case(b"chunked");
                self.coding = Some(if chunked { Coding::Chunked } else { Coding::Other });
            }
            _ => Provenance::note(&mut self.provenance, name, value),
        }
    }

    /// RFC 9112 section 9.3: `close` wins, then the version, then `keep-alive`.
    fn keepalive(&self, version: Version) -> bool {
        !self.close && (version == Version::Http11 || self.keep_alive)
    }
}

/// How many seconds a server keeps a connection that nobody uses: `timeout` of Keep-Alive (RFC 2068 section 19.7.1).
fn keep_alive_timeout(value: &[u8]) -> Option<u32> {
    list(value).find_map(|parameter| {
        let mut parts = parameter.splitn(2, |&b| b == b'=').map(<[u8]>::trim_ascii);
        let (name, value) = (parts.next()?, parts.next()?);
        if name.eq_ignore_ascii_case(b"timeout") { std::str::from_utf8(value).ok()?.parse().ok() } else { None }
    })
}

/// Does the value of Expect ask for 100 (Continue) (RFC 9110 section 10.1.1)?
pub(in crate::exchange) fn expects_continue(value: &[u8]) -> bool {
    value.eq_ignore_ascii_case(b"100-continue")
}

fn digit(byte: u8) -> Option<u8> {
    byte.is_ascii_digit().then(|| byte - b'0')
}

/// Members of a comma-separated list.
fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&b| b == b',').map(<[u8]>::trim_ascii)
}

/// The first line without its end, and what follows; `None` when the line is cut short.
fn first_line(head: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr(b'\n', head) {
        Some(end) => {
            let (line, rest) = head.split_at(end);
            (line.trim_ascii_end(), rest.get(1..))
        }
        None => (head.trim_ascii_end(), None),
    }
}

fn split_at_blank(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let (word, rest) = line.split_at(memchr(b' ', line)?);
    Some((word, rest.get(1..)?))
}

/// Host and port of an absolute target; they override Host (RFC 9112 section 3.2.2).
fn authority(target: &[u8]) -> Option<&[u8]> {
    let scheme = target.windows(3).position(|w| w == b"://")?;
    if memchr(b'/', target) != Some(scheme + 1) {
        return None;
    }
    let rest = target.get(scheme + 3..)?;
    let end = rest.iter().position(|b| b"/?#".contains(b)).unwrap_or(rest.len());
    let authority = rest.get(..end)?;
    // Without the user's name and password.
    authority.rsplit(|&b| b == b'@').next()
}

/// The name of a product as sent, at most [`MAX_PRODUCT`] bytes of it.
pub(in crate::exchange) fn product(value: &[u8]) -> Option<Box<str>> {
    text(value.get(..MAX_PRODUCT).unwrap_or(value))
}

/// A method as sent. Usual ones are not copied.
pub(in crate::exchange) fn method_name(method: &[u8]) -> Option<Cow<'static, str>> {
    let usual = NAMES.iter().find(|usual| usual.as_bytes() == method);
    usual.map_or_else(|| text(method).map(|name| name.into_string().into()), |usual| Some(Cow::Borrowed(*usual)))
}

/// Text as sent, at most [`MAX_TEXT`] bytes of it.
pub(in crate::exchange) fn text(bytes: &[u8]) -> Option<Box<str>> {
    let prefix = bytes.get(..bytes.len().min(MAX_TEXT))?;
    (!prefix.is_empty()).then(|| String::from_utf8_lossy(prefix).into())
}
