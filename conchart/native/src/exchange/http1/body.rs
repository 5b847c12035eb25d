//! Finds the end of an HTTP/1 body by counting: nothing is copied, nothing is kept.
//!
//! RFC 9112 section 6.3 (length) and 7.1 (chunked). In: bytes of ONE direction after a head. Out:
//! how many of them belong to the body, and whether it is over.

use memchr::memchr;

/// Finds the empty line that ends a head or a trailer section, wherever the stream is cut.
///
/// A bare LF ends a line too (RFC 9112 section 2.2).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EmptyLine {
    /// Since the last LF there was nothing but CR.
    line_start: bool,
}

impl EmptyLine {
    /// Bytes up to and including the empty line; `None` when it is still to come.
    pub fn find(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut position = 0;
        loop {
            let rest = bytes.get(position..)?;
            if self.line_start {
                match rest.first()? {
                    b'\n' => return Some(position + 1),
                    b'\r' => {
                        position += 1;
                        continue;
                    }
                    _ => self.line_start = false,
                }
            }
            position += memchr(b'\n', rest)? + 1;
            self.line_start = true;
        }
    }
}

/// Where a body stands.
#[derive(Clone, Copy, Debug)]
pub(super) enum Body {
    /// So many bytes are left.
    Fixed(u64),
    Chunked(Chunked),
    /// Until the sender closes.
    UntilClose,
}

/// What a piece of the stream did to a body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fed {
    /// All of it belongs to the body, which goes on.
    More,
    /// The body ended after so many bytes of it.
    End(usize),
    /// The bytes break the rules: the end cannot be found.
    Broken,
}

impl Body {
    pub fn feed(&mut self, bytes: &[u8]) -> Fed {
        match self {
            Self::UntilClose => Fed::More,
            Self::Fixed(left) => match usize::try_from(*left) {
                Ok(n) if n <= bytes.len() => Fed::End(n),
                _ => {
                    *left -= bytes.len() as u64;
                    Fed::More
                }
            },
            Self::Chunked(chunked) => chunked.feed(bytes),
        }
    }

    /// Those of a piece of the stream that are content.
    pub fn content(mut self, bytes: &[u8]) -> impl Iterator<Item = u8> {
        bytes.iter().copied().filter(move |byte| {
            let is_content = !matches!(self, Self::Chunked(chunked) if !matches!(chunked, Chunked::Data(_)));
            self.feed(std::slice::from_ref(byte));
            is_content
        })
    }

    /// Passes over missing bytes; returns how many of them the body swallowed for sure, and
    /// whether it is over then. Fewer than asked without being over: the end cannot be found.
    pub fn skip(&mut self, missing: u64) -> (u64, bool) {
        match self {
            Self::UntilClose => (missing, false),
            Self::Fixed(left) => {
                let n = missing.min(*left);
                *left -= n;
                (n, *left == 0)
            }
            Self::Chunked(Chunked::Data(left)) => {
                let n = missing.min(*left);
                *left -= n;
                (n, false)
            }
            Self::Chunked(_) => (0, false),
        }
    }
}

/// The chunked coding, one byte or a whole chunk at a time.
#[derive(Clone, Copy, Debug)]
pub(super) enum Chunked {
    /// In the size: its value so far, and whether a digit has been seen.
    Size {
        size: u64,
        digits: bool,
    },
    /// In an extension, or the blanks before the line's end.
    Extension(u64),
    Data(u64),
    /// At the line's end after the data.
    DataEnd,
    /// After the last chunk, up to an empty line.
    Trailer(EmptyLine),
}

impl Chunked {
    pub fn new() -> Self {
        Self::Size { size: 0, digits: false }
    }

    fn after_size(size: u64) -> Self {
        if size == 0 { Self::Trailer(EmptyLine { line_start: true }) } else { Self::Data(size) }
    }

    fn feed(&mut self, bytes: &[u8]) -> Fed {
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            *self = match *self {
                Self::Size { size, digits } => {
                    rest = after;
                    match char::from(byte).to_digit(16) {
                        Some(_) if size >> 60 != 0 => return Fed::Broken,
                        Some(digit) => Self::Size { size: size << 4 | u64::from(digit), digits: true },
                        None if !digits => return Fed::Broken,
                        None if byte == b'\n' => Self::after_size(size),
                        None if matches!(byte, b'\r' | b';' | b' ' | b'\t') => Self::Extension(size),
                        None => return Fed::Broken,
                    }
                }
                Self::Extension(size) => {
                    let Some(end) = memchr(b'\n', rest) else {
                        return Fed::More;
                    };
                    rest = rest.get(end + 1..).unwrap_or_default();
                    Self::after_size(size)
                }
                Self::Data(left) => match usize::try_from(left) {
                    Ok(n) if n <= rest.len() => {
                        rest = rest.get(n..).unwrap_or_default();
                        Self::DataEnd
                    }
                    _ => {
                        *self = Self::Data(left - rest.len() as u64);
                        return Fed::More;
                    }
                },
                Self::DataEnd => {
                    rest = after;
                    match byte {
                        b'\r' => Self::DataEnd,
                        b'\n' => Self::new(),
                        _ => return Fed::Broken,
                    }
                }
                Self::Trailer(mut line) => match line.find(rest) {
                    Some(end) => return Fed::End(bytes.len() - rest.len() + end),
                    None => {
                        *self = Self::Trailer(line);
                        return Fed::More;
                    }
                },
            };
        }
        Fed::More
    }
}
