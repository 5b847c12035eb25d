//! Where and how a file breaks, before the reader adds its name and the frame number.

use super::window::Short;
use crate::notes::grouped;

const CUT: &str = "Usual causes: the capture was still being written, or tcpdump was killed (start it with -U, end it with \
                   Ctrl-C); a full disk; a copy that was cut short.";
const DECOMPRESSION: &str = "Usual causes: a download or copy that was cut short or changed. Compare its size and checksum with \
                             the original.";
const DEVICE: &str = "The device or pipe under the file failed: copy the file elsewhere and try again.";
const BROKEN: &str = "Usual causes: bytes overwritten or lost in the file, e.g. a transfer in text mode or two programs \
                      writing the same file. 'editcap -F pcap IN OUT' may save more.";
const UNWRITTEN: &str = "Usual causes: the capturing machine crashed or lost power before its disk had the rest; a file that was given \
                         its full length in advance. Nothing is lost but what never reached the disk.";

/// A file cannot be followed past `offset`.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) offset: u64,
    pub(super) problem: String,
    pub(super) advice: &'static str,
}

impl Fault {
    /// `what`, `need` bytes long, begins at `offset` but the stream ends inside it.
    #[cold]
    pub(super) fn cut(offset: u64, what: &str, need: u64, short: Short) -> Self {
        let mut problem =
            format!("the file ends inside {what}: {} bytes needed, {} left", grouped(need), grouped(short.have));
        let advice = match short.cause {
            None => CUT,
            Some(error) => {
                problem =
                    format!("{error}, inside {what}: {} bytes needed, {} there", grouped(need), grouped(short.have));
                if error.raw_os_error().is_some() { DEVICE } else { DECOMPRESSION }
            }
        };
        Self { offset, problem, advice }
    }

    #[cold]
    pub(super) fn too_long(offset: u64, what: &str, found: u32, allowed: u32) -> Self {
        let (found, allowed) = (grouped(found.into()), grouped(allowed.into()));
        Self::broken(offset, format!("announces a {what} of {found} bytes, limit {allowed}"))
    }

    /// A record header of zeros: no packet was captured at time 0 with length 0, and what follows may be gigabytes of it.
    #[cold]
    pub(super) fn zeros(offset: u64) -> Self {
        Self { offset, problem: "zeros stand where its record header should be".to_owned(), advice: UNWRITTEN }
    }

    #[cold]
    pub(super) fn broken(offset: u64, problem: String) -> Self {
        Self { offset, problem, advice: BROKEN }
    }
}
