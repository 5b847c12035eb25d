//! From a file or a pipe to plain capture bytes: counts what is read, undoes gzip and zstd.
//!
//! In: any `Read`. Out: a `Read` of uncompressed bytes. Compression is recognised by content, so a
//! wrong file name or a pipe does not matter. A compressed stream that breaks gives every byte
//! before the break, then its error.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::ahead::Ahead;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Input of a decompressor is read in pieces of this size.
const COMPRESSED_BLOCK: usize = 256 << 10;
/// flate2 loses what one call had already inflated when that call meets corrupt data, so calls are
/// kept this small.
const INFLATE_STEP: usize = 16 << 10;

/// Where a capture comes from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Source {
    Path(PathBuf),
    Stdin,
}

impl Source {
    /// The name used in messages: the path as given, `-` for standard input.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Path(path) => path.display().to_string(),
            Self::Stdin => "-".to_owned(),
        }
    }

    /// Opens it, without reading. Of what is no file, its descriptor once more: whether it has something can be asked.
    pub(super) fn open(&self) -> io::Result<(Box<dyn Read + Send>, Option<File>)> {
        match self {
            Self::Path(path) => {
                let file = File::open(path)?;
                let kind = file.metadata()?.file_type();
                if kind.is_dir() {
                    return Err(io::Error::from(io::ErrorKind::IsADirectory));
                }
                let descriptor = if kind.is_file() { None } else { Some(file.try_clone()?) };
                Ok((Box::new(file), descriptor))
            }
            Self::Stdin => Ok((Box::new(io::stdin()), None)),
        }
    }
}

/// Is there nothing to read, nor an end, after waiting for `patience`?
pub(super) fn is_silent(pipe: &File, patience: Duration) -> bool {
    let patience = Timespec::try_from(patience).ok();
    poll(&mut [PollFd::new(pipe, PollFlags::IN)], patience.as_ref()) == Ok(0)
}

/// How the capture's bytes are packed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Packing {
    Plain,
    Gzip,
    Zstd,
}

impl Packing {
    /// What is appended to the format's name.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Gzip => "+gzip",
            Self::Zstd => "+zstd",
        }
    }

    fn of(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, 8, ..] => Self::Gzip,
            // A zstd frame, or a skippable frame (RFC 8878 section 3.1.2), which pzstd writes first.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            _ => Self::Plain,
        }
    }
}

/// Uncompressed capture bytes.
pub(super) struct Unpacked {
    pub(super) bytes: Box<dyn Read + Send>,
    pub(super) packing: Packing,
    /// Bytes taken from the file or pipe so far, still compressed.
    pub(super) taken: Arc<AtomicU64>,
}

/// Looks at the first bytes of `source` and undoes their compression, that of a file on a thread of its own.
pub(super) fn unpack(source: Box<dyn Read + Send>, is_file: bool) -> io::Result<Unpacked> {
    let taken = Arc::new(AtomicU64::new(0));
    let mut counted = Counted { source, taken: Arc::clone(&taken) };
    let mut head = Vec::with_capacity(4);
    counted.by_ref().take(4).read_to_end(&mut head)?;
    let packing = Packing::of(&head);
    let whole = Cursor::new(head).chain(counted);
    let bytes: Box<dyn Read + Send> = match packing {
        Packing::Plain => Box::new(whole),
        Packing::Gzip => {
            let buffered = io::BufReader::with_capacity(COMPRESSED_BLOCK, whole);
            Box::new(SmallSteps(flate2::bufread::MultiGzDecoder::new(buffered)))
        }
        Packing::Zstd => {
            let buffered = io::BufReader::with_capacity(COMPRESSED_BLOCK, whole);
            Box::new(zstd::stream::read::Decoder::with_buffer(buffered)?)
        }
    };
    let reads_ahead = is_file && packing != Packing::Plain;
    let bytes = if reads_ahead { Box::new(Ahead::new(bytes)?) } else { bytes };
    Ok(Unpacked { bytes, packing, taken })
}

/// Counts the bytes that pass.
struct Counted<R> {
    source: R,
    taken: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(into)?;
        self.taken.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

struct SmallSteps<R>(R);

impl<R: Read> Read for SmallSteps<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let step = into.len().min(INFLATE_STEP);
        self.0.read(into.get_mut(..step).unwrap_or_default())
    }
}
