//! TLS secrets that can be had before the first packet: key logs, and those inside pcapng files, wherever in the
//! file they stand: also after the packets they are for.
//!
//! In: files that can be read twice. Out: [`Keys`]. Of a capture only block headers are looked at, everything else
//! is stepped over; what is wrong with the file is for the reader of its packets to say.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use super::pcapng::{Pcapng, SECRETS, key_log};
use super::window::MAX_RECORD;
use super::{Order, Source};
use crate::error::CaptureError;
use crate::keys::{Complaints, Keys};
use crate::notes::{About, Notes};

/// Longer lines are in no key log.
const MAX_LINE: u64 = 4096;

/// Everything that was found.
#[derive(Debug, Default)]
pub struct Gathered {
    pub keys: Keys,
    /// Names of the captures whose secrets are all here; those of others come with their packets.
    pub scanned: Vec<String>,
    /// What was wrong with the key logs.
    pub notes: Notes,
}

impl Gathered {
    /// Reads key logs and looks through captures.
    ///
    /// # Errors
    /// A key log that cannot be read, or without a single secret. A capture that cannot be read is no error here.
    pub fn from(key_logs: &[PathBuf], captures: &[Source]) -> Result<Self, CaptureError> {
        let mut found = Self::default();
        for path in key_logs {
            let name = path.display().to_string();
            let complaints = match read(path, &found.keys) {
                Ok(Complaints { valid: 0, lines, .. }) => return Err(CaptureError::NotAKeyLog { name, lines }),
                Ok(complaints) => complaints,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(CaptureError::NotFound { name }),
                Err(source) => return Err(CaptureError::Io { name, source }),
            };
            note(&mut found.notes, &name, complaints);
        }
        for source in captures {
            let Source::Path(path) = source else { continue };
            let Self { keys, notes, .. } = &mut found;
            let scanned = scan(path, &mut |text| note(notes, &source.name(), keys.add(text)));
            if scanned.unwrap_or(false) {
                found.scanned.push(source.name());
            }
        }
        Ok(found)
    }
}

fn read(path: &Path, keys: &Keys) -> io::Result<Complaints> {
    let file = File::open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_char_device() || kind.is_block_device() {
        return Err(io::Error::other("is a device, which may never end: a key log is a file or a pipe"));
    }
    let mut text = BufReader::new(file);
    let (mut line, mut complaints) = (Vec::new(), Complaints::default());
    while text.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)? > 0 {
        keys.add_line(&line, &mut complaints);
        line.clear();
    }
    Ok(complaints)
}

/// Tells what was wrong with a key log.
fn note(notes: &mut Notes, name: &str, complaints: Complaints) {
    let Complaints { malformed, first_malformed, excess, .. } = complaints;
    if malformed > 0 {
        let others = if malformed > 1 { format!(", nor are {} others", malformed - 1) } else { String::new() };
        notes.add(About::KeyLog, || {
            format!("key log of {name}: line {first_malformed} is not 'LABEL CLIENT_RANDOM SECRET'{others}")
        });
    } else if excess > 0 {
        notes.add(About::KeyLog, || format!("key log of {name}: too many connections; {excess} secrets were left out"));
    }
}

/// Hands every key log in `path` to `found`; false when the file is no plain pcapng file.
fn scan(path: &Path, found: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Ok(false);
    }
    let mut file = BufReader::with_capacity(1 << 16, file);
    let mut order = Order::Little;
    let mut head = [0; 8];
    let mut is_first = true;
    while file.read_exact(&mut head).is_ok() {
        if is_first && !Pcapng::knows(&head) {
            return Ok(false);
        }
        is_first = false;
        let [k0, k1, k2, k3, l0, l1, l2, l3] = head;
        let mut passed = 8;
        if Pcapng::knows(&head) {
            let mut magic = [0; 4];
            if file.read_exact(&mut magic).is_err() {
                break;
            }
            order = if u32::from_le_bytes(magic) == 0x1a2b_3c4d { Order::Little } else { Order::Big };
            passed += 4;
        }
        let (kind, len) = (order.u32([k0, k1, k2, k3]), order.u32([l0, l1, l2, l3]));
        let Some(rest) = u64::from(len).next_multiple_of(4).checked_sub(passed).filter(|_| len >= 12) else {
            break;
        };
        if kind == SECRETS && len <= MAX_RECORD {
            let mut body = Vec::new();
            if file.by_ref().take(rest).read_to_end(&mut body).is_err() {
                break;
            }
            key_log(order, &body).into_iter().for_each(&mut *found);
        } else if file.seek_relative(rest.cast_signed()).is_err() {
            break;
        }
    }
    Ok(!is_first)
}
