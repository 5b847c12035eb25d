//! A capture file in, its frames out: pcap and pcapng, gzip and zstd, files and pipes.
//!
//! In: a [`Source`]. Out: [`Frame`]s that borrow from one reusable buffer, in file order, and
//! [`Facts`] about the file. One pass, bounded memory, no allocation per frame. Nothing of a
//! frame's content is looked at: that is `packet`'s part.
//!
//! A damaged file yields every frame before the damage, then the error once, then the end.

mod ahead;
mod clock;
mod comments;
pub(crate) mod error;
mod fault;
pub mod filter;
mod input;
mod link_type;
mod pcap;
mod pcapng;
pub(crate) mod secrets;
mod window;
pub(crate) mod writing;

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;

pub use comments::{Comments, Direction};
pub use input::Source;
pub use link_type::LinkType;

use std::fs::File;
use std::io::{self, Read};
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::capture::error::{CaptureError, Damage};
use crate::notes::{About, Notes};
use fault::Fault;
use input::Packing;
use pcap::Pcap;
use pcapng::{Met, Pcapng};
use secrets::Collector;
use window::Window;
use writing::Block;

/// Times that a frame may have: 146 years before 1970 to 146 years after. The difference of any two of them is an
/// `i64`, too, so that nothing after this stage can overflow.
pub const TIMES: RangeInclusive<i64> = -((1 << 62) - 1)..=(1 << 62) - 1;

/// One captured frame.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The number Wireshark shows, from 1. Wireshark also numbers what is no packet: the custom
    /// blocks, journal entries and system calls of a pcapng file. Those numbers are left out.
    pub number: u64,
    /// Nanoseconds since the Unix epoch; of 1823 to 2116, whatever the file says.
    pub at: i64,
    pub link: LinkType,
    /// The captured bytes.
    pub data: &'a [u8],
    /// Length on the wire; more than `data.len()` when the snap length cut the frame.
    pub original_len: u32,
    /// What somebody wrote beside it; `None` where nobody did.
    pub comments: Option<Comments<'a>>,
}

/// A piece of a file, for whoever copies it.
pub(crate) enum Piece<'a> {
    /// A frame, and of a pcapng file the block that holds it.
    Frame(Frame<'a>, Option<Block<'a>>),
    /// A block of a pcapng file that holds no frame.
    Block(Block<'a>),
}

/// What is known about a file, so far; final once [`CaptureReader::next`] has given `None`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Facts {
    /// `pcap` or `pcapng`, with `+gzip` or `+zstd`.
    pub format: String,
    /// Of the interfaces that captured something, in order of appearance.
    pub link_types: Vec<LinkType>,
    /// The coarsest clock of the interfaces that captured something: every time in the file is at
    /// least as exact. 1000 for µs.
    pub resolution_ns: i64,
    /// Packets the capturing machine says it dropped (pcapng: interface statistics, else the counts in
    /// packet blocks); `None` when it does not say.
    pub drops: Option<u64>,
    /// What a reader should know; each names its frame.
    pub notes: Notes,
}

/// Reads one capture, frame by frame.
pub struct CaptureReader {
    name: String,
    window: Window,
    format: Format,
    packing: Packing,
    taken: Arc<AtomicU64>,
    /// What is read, where it is a pipe.
    pipe: Option<File>,
    is_file: bool,
    log: Log,
    over: bool,
}

enum Format {
    Pcap(Pcap),
    Pcapng(Pcapng),
}

impl CaptureReader {
    /// Opens a capture and reads its first bytes.
    ///
    /// # Errors
    /// `NotFound`, `Io`, `Empty`, `NotACapture`; `Damaged` when the file header itself is cut.
    pub fn open(source: &Source) -> Result<Self, CaptureError> {
        let name = source.name();
        match source.open() {
            Ok((bytes, pipe)) => {
                let is_file = pipe.is_none() && *source != Source::Stdin;
                Self::start(bytes, name, is_file).map(|reader| Self { pipe, ..reader })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(CaptureError::NotFound { name }),
            Err(source) => Err(CaptureError::Io { name, source }),
        }
    }

    /// Reads a capture from any stream; `name` is what messages call it. `is_file`: the stream never waits for anybody.
    fn start(source: Box<dyn Read + Send>, name: String, is_file: bool) -> Result<Self, CaptureError> {
        let unpacked = match input::unpack(source, is_file) {
            Ok(unpacked) => unpacked,
            Err(source) => return Err(CaptureError::Io { name, source }),
        };
        let packing = unpacked.packing;
        let mut window = Window::new(unpacked.bytes);
        let mut log = Log::default();
        if let Err(short) = window.ensure(4) {
            return Err(match short.cause {
                Some(source) => CaptureError::Io { name, source },
                None if short.have == 0 => CaptureError::Empty { name },
                None => not_a_capture(name, window.ahead()),
            });
        }
        let format = if Pcapng::knows(window.ahead()) {
            Format::Pcapng(Pcapng::new())
        } else if Pcap::knows(window.ahead()) {
            match Pcap::open(&mut window) {
                Ok((pcap, note)) => {
                    note.into_iter().for_each(|note| log.notes.add(About::Format, || note));
                    Format::Pcap(pcap)
                }
                Err(fault) => return Err(damaged(&name, &log, packing, fault)),
            }
        } else {
            // Fill the buffer a little further: the hint looks at 16 bytes, but a short file has fewer.
            let _ = window.ensure(16);
            return Err(not_a_capture(name, window.ahead()));
        };
        Ok(Self { name, window, format, packing, taken: unpacked.taken, pipe: None, is_file, log, over: false })
    }

    /// Would [`Self::next`] wait for a pipe, and go on waiting after `patience`? Of what is compressed that is not known.
    #[must_use]
    pub fn is_waiting(&self, patience: Duration) -> bool {
        let pipe = self.pipe.as_ref().filter(|_| self.packing == Packing::Plain && !self.over);
        self.has_none() && pipe.is_some_and(|pipe| input::is_silent(pipe, patience))
    }

    /// Has every frame been given that was read from the file or pipe? Of another one, a part may have been.
    #[must_use]
    pub fn has_none(&self) -> bool {
        let ahead = self.window.ahead();
        !match &self.format {
            Format::Pcap(pcap) => pcap.has_whole(ahead),
            Format::Pcapng(pcapng) => pcapng.has_whole(ahead),
        }
    }

    /// The next frame; `None` at the end.
    ///
    /// # Errors
    /// `Damaged`, once, where the file cannot be followed any further; then `None`.
    #[inline]
    pub fn next(&mut self) -> Result<Option<Frame<'_>>, CaptureError> {
        if self.over {
            return Ok(None);
        }
        let found = match &mut self.format {
            Format::Pcap(pcap) => pcap.next(&mut self.window),
            Format::Pcapng(pcapng) => pcapng.next(&mut self.window, &mut self.log),
        };
        match found {
            Ok(Some(packet)) => Ok(Some(self.frame(&packet))),
            Ok(None) => {
                self.over = true;
                Ok(None)
            }
            Err(fault) => Err(self.broken(fault)),
        }
    }

    /// The next frame or other block, whole; `None` at the end. Blocks beyond the longest record are stepped over.
    ///
    /// # Errors
    /// As of [`Self::next`].
    pub(crate) fn next_piece(&mut self) -> Result<Option<Piece<'_>>, CaptureError> {
        if self.over {
            return Ok(None);
        }
        let met = match &mut self.format {
            Format::Pcap(pcap) => pcap.next(&mut self.window).map(|found| found.map(Met::Packet)),
            Format::Pcapng(pcapng) => pcapng.step(&mut self.window, &mut self.log, true),
        };
        match met {
            Ok(Some(Met::Packet(packet))) => {
                let (number, at) = self.log.took(packet.at);
                Ok(Some(Piece::Frame(packet.frame(number, at, &self.window), self.block(packet.record.clone()))))
            }
            Ok(Some(Met::Block(range))) => Ok(self.block(range).map(Piece::Block)),
            Ok(None) => {
                self.over = true;
                Ok(None)
            }
            Err(fault) => Err(self.broken(fault)),
        }
    }

    #[inline]
    fn frame(&mut self, packet: &Packet) -> Frame<'_> {
        let (number, at) = self.log.took(packet.at);
        packet.frame(number, at, &self.window)
    }

    /// A block of a pcapng file; a record of a pcap file is none.
    fn block(&self, range: Range<usize>) -> Option<Block<'_>> {
        match &self.format {
            Format::Pcap(_) => None,
            Format::Pcapng(pcapng) => Some(Block { order: pcapng.order(), bytes: self.window.get(range) }),
        }
    }

    #[cold]
    fn broken(&mut self, fault: Fault) -> CaptureError {
        self.over = true;
        damaged(&self.name, &self.log, self.packing, fault)
    }

    /// Collects the TLS secrets that are met on the way; without, they are stepped over.
    pub fn collect_secrets(&mut self, collector: Collector) {
        if let Format::Pcapng(pcapng) = &mut self.format {
            pcapng.secrets = Some(collector);
        }
    }

    /// Is it a plain file, which somebody else can look through once more?
    #[must_use]
    pub fn can_be_read_again(&self) -> bool {
        self.is_file && self.packing == Packing::Plain
    }

    /// The link type of a pcap file; a pcapng file has one for each interface.
    pub(crate) fn pcap_link(&self) -> Option<LinkType> {
        match &self.format {
            Format::Pcap(pcap) => Some(pcap.link()),
            Format::Pcapng(_) => None,
        }
    }

    /// What is known about the file so far.
    #[must_use]
    pub fn facts(&self) -> Facts {
        let (format, link_types, resolution_ns, drops) = match &self.format {
            Format::Pcap(pcap) => ("pcap", vec![pcap.link()], pcap.resolution_ns(), None),
            Format::Pcapng(pcapng) => ("pcapng", pcapng.links(), pcapng.resolution_ns(), pcapng.dropped()),
        };
        Facts {
            format: format!("{format}{}", self.packing.suffix()),
            link_types,
            resolution_ns,
            drops,
            notes: self.log.notes.clone(),
        }
    }

    /// Bytes read from the file or pipe so far, compressed as they are. Cheap: for a progress bar.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }
}

/// A frame before it is borrowed: where in the window's buffer it is.
struct Packet {
    at: i64,
    link: LinkType,
    data: Range<usize>,
    original_len: u32,
    /// All of its record or block.
    record: Range<usize>,
    /// Its options, with the byte order of their section, if comments are among them.
    comments: Option<(Order, Range<usize>)>,
}

impl Packet {
    #[inline]
    fn frame<'a>(&self, number: u64, at: i64, window: &'a Window) -> Frame<'a> {
        let Self { link, original_len, .. } = *self;
        let comments = self.comments.clone().map(|(order, options)| Comments::new(order, window.get(options)));
        Frame { number, at, link, data: window.get(self.data.clone()), original_len, comments }
    }
}

/// What the walk wants to be remembered. Bounded.
#[derive(Default)]
struct Log {
    /// Frames delivered so far.
    frames: u64,
    /// The last number given, to a frame or to another record that Wireshark numbers.
    number: u64,
    notes: Notes,
}

impl Log {
    /// Counts a frame; gives its number, and its time as far as a frame may have that.
    #[inline]
    fn took(&mut self, at: i64) -> (u64, i64) {
        self.frames += 1;
        self.number += 1;
        (self.number, if TIMES.contains(&at) { at } else { self.impossible(at) })
    }

    /// The time nearest to one that no frame can have.
    #[cold]
    fn impossible(&mut self, at: i64) -> i64 {
        let (number, nearest) = (self.number, at.clamp(*TIMES.start(), *TIMES.end()));
        self.notes.add(About::ImpossibleTime, || {
            let years = if at < 0 { "before 1823" } else { "after 2116" };
            format!("packet {number}: impossible time stamp ({years}), replaced by the nearest valid time")
        });
        nearest
    }
}

/// Byte order of a file or section.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Order {
    Little,
    Big,
}

impl Order {
    #[inline]
    fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }

    #[inline]
    fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    #[inline]
    fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        }
    }

    fn of_u16(self, value: u16) -> [u8; 2] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }

    fn of_u32(self, value: u32) -> [u8; 4] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }
}

#[cold]
fn damaged(name: &str, log: &Log, packing: Packing, fault: Fault) -> CaptureError {
    let Fault { offset, problem, advice } = fault;
    CaptureError::Damaged(Box::new(Damage {
        name: name.to_owned(),
        frame: log.number + 1,
        delivered: log.frames,
        offset,
        compressed: packing != Packing::Plain,
        problem,
        advice,
    }))
}

fn not_a_capture(name: String, head: &[u8]) -> CaptureError {
    let first = head.get(..head.len().min(16)).unwrap_or_default().to_vec();
    let hint = hint(&name, &first);
    CaptureError::NotACapture { name, first, hint }
}

/// What a file that is no capture probably is, and what to do with it.
fn hint(name: &str, head: &[u8]) -> &'static str {
    let is_text = head.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
    match head {
        [b'B', b'Z', b'h', ..] => "It is compressed with bzip2: 'bunzip2' it first.",
        [0xfd, b'7', b'z', b'X', b'Z', ..] => "It is compressed with xz: 'unxz' it first.",
        [0x04, 0x22, 0x4d, 0x18, ..] => "It is compressed with lz4: 'unlz4' it first.",
        [b'P', b'K', 3, 4, ..] => "It is a zip archive: 'unzip' it first.",
        [b'7', b'z', 0xbc, 0xaf, ..] => "It is a 7z archive: unpack it first.",
        [b's', b'n', b'o', b'o', b'p', 0, ..] => "It is a Sun snoop capture: 'editcap -F pcap IN OUT' converts it.",
        [b'G', b'M', b'B', b'U', ..] | [b'R', b'T', b'S', b'S', ..] => {
            "It is a Microsoft Network Monitor capture: 'editcap -F pcap IN OUT' converts it."
        }
        [b'T', b'R', b'S', b'N', b'I', b'F', b'F', ..] => {
            "It is a Sniffer capture: 'editcap -F pcap IN OUT' converts it."
        }
        [b'{', ..] | [b'[', b'{' | b'"' | b' ' | b'\r' | b'\n', ..] if is_text => {
            "It looks like JSON, perhaps a HAR file: conchart reads packets (pcap, pcapng), not browser logs."
        }
        [b'<', ..] if is_text => "It looks like HTML or XML: a download page saved instead of the capture?",
        _ if name.to_ascii_lowercase().ends_with(".etl") => {
            "It looks like a Windows event trace: 'etl2pcapng IN OUT' converts it."
        }
        _ if is_text => {
            "It looks like text, perhaps what tcpdump printed: capture again with 'tcpdump -w FILE', which writes packets."
        }
        _ => {
            "conchart reads pcap and pcapng, plain or in gzip or zstd. 'editcap -F pcap IN OUT' converts many other formats."
        }
    }
}
