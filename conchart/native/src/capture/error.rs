//! Errors of capture files: each says what is wrong, where, and what to try.
//!
//! Every message names the file and the packet, what was read and what was allowed, what was kept
//! and what to try. Whether an error ends the run is the caller's decision: `Damaged` comes after
//! every frame before the damage has been delivered.

use std::fmt;
use std::io;

use crate::capture::LinkType;
use crate::notes::grouped;

/// A capture that cannot be read, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The path does not exist.
    #[error("{name}: no such file\n  Check the path; '-' reads standard input.")]
    NotFound { name: String },

    /// The operating system refused, before any packet.
    #[error("{name}: cannot be read: {source}{}", remedy(.source))]
    Io { name: String, source: io::Error },

    /// Not one byte.
    #[error(
        "{name}: the file is empty: it has no file header\n  \
         Usual causes: tcpdump was killed before it wrote its first block (start it with -U), or had no permission \
         to capture; in a pipe, the previous command failed."
    )]
    Empty { name: String },

    /// The first bytes belong to no format that conchart reads.
    #[error(
        "{name}: not a packet capture: starts with {}{}\n  {hint}",
        hex(.first),
        printable(.first)
    )]
    NotACapture { name: String, first: Vec<u8>, hint: &'static str },

    /// A key log without a single secret.
    #[error(
        "{name}: contains no TLS secrets: none of its {} lines has the form 'LABEL CLIENT_RANDOM SECRET' in hexadecimal digits\n  \
         Make the client or the server write a key log: SSLKEYLOGFILE=FILE (browsers, curl), \
         'openssl s_client -keylogfile FILE'.",
        grouped(*.lines)
    )]
    NotAKeyLog { name: String, lines: u64 },

    /// Readable up to a point.
    #[error(transparent)]
    Damaged(Box<Damage>),

    /// Frames whose first header conchart cannot read.
    #[error(
        "{name}: packet {}: link type {link} (number {}) is not supported\n  \
         conchart reads Ethernet, wireless LAN, Linux cooked (SLL, SLL2), NULL, LOOP, raw IP, PPP, HDLC, NFLOG, PFLOG, PKTAP,\n  \
         PPI, ERF, Frame Relay, ATM, Token Ring, FDDI, ARCNET, IPoIB, MPLS and switch tags (DSA).\n  \
         Capture on another interface, e.g. 'tcpdump -i any', or report the link type that you need.",
        grouped(*.frame), .link.0
    )]
    UnsupportedLink { name: String, link: LinkType, frame: u64 },
}

/// Where a capture file breaks, and what was saved.
#[derive(Debug)]
pub struct Damage {
    pub name: String,
    /// Number of the frame that could not be read (frames are numbered from 1).
    pub frame: u64,
    /// Frames delivered before it.
    pub delivered: u64,
    /// First byte of the broken record: offset in the file, or in the uncompressed stream.
    pub offset: u64,
    /// Is `offset` in the uncompressed stream rather than in the file?
    pub compressed: bool,
    /// What was expected and what was found.
    pub problem: String,
    pub advice: &'static str,
}

impl std::error::Error for Damage {}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, problem, advice, .. } = self;
        let place = if self.compressed { "the uncompressed capture" } else { "the file" };
        writeln!(f, "{name}: packet {}: {problem}", grouped(self.frame))?;
        writeln!(f, "  at byte {} of {place}", grouped(self.offset))?;
        match self.delivered {
            0 => writeln!(f, "  There is no packet before it.")?,
            1 => writeln!(f, "  conchart used the packet before it; nothing after it can be read.")?,
            delivered => writeln!(
                f,
                "  conchart used the {} packets before it; nothing after it can be read.",
                grouped(delivered)
            )?,
        }
        write!(f, "  {advice}")
    }
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "\n  Captures made as root often belong to root: 'sudo chown $USER' the file, or read it with sudo."
        }
        io::ErrorKind::IsADirectory => "\n  Name the capture files inside the directory.",
        _ => "",
    }
}

fn hex(bytes: &[u8]) -> String {
    let words: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    words.join(" ")
}

/// The bytes as text, when they are text: the reader then sees at once what the file is.
fn printable(bytes: &[u8]) -> String {
    let is_text = bytes.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ');
    if is_text { format!(" (\"{}\")", String::from_utf8_lossy(bytes)) } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_says_where_what_was_kept_and_what_to_try() {
        let damage = Damage {
            name: "slow.pcap".into(),
            frame: 1812,
            delivered: 1811,
            offset: 1_204_224,
            compressed: false,
            problem: "the file ends inside it".into(),
            advice: "Usual causes: a copy that was cut short.",
        };
        assert_eq!(
            CaptureError::Damaged(Box::new(damage)).to_string(),
            "slow.pcap: packet 1,812: the file ends inside it\n  at byte 1,204,224 of the file\n  \
             conchart used the 1,811 packets before it; nothing after it can be read.\n  \
             Usual causes: a copy that was cut short."
        );
    }

    #[test]
    fn first_bytes_that_are_text_are_shown_as_text() {
        let error = CaptureError::NotACapture { name: "a".into(), first: b"{\"log\":".to_vec(), hint: "HAR" };
        assert!(error.to_string().contains("7b 22 6c 6f 67 22 3a (\"{\"log\":\")"), "{error}");
    }
}
