//! TLS secrets of a run: key logs, and those inside pcapng files, wherever in the file they stand: also after the
//! packets they are for.
//!
//! In: key logs, captures, and secrets that are met as the captures are read. Out: [`Keys`]. A file that can be read
//! twice is looked through from there on when a TLS handshake asks for a secret that is not known, and not before: of
//! most captures every byte is read once. Of a capture only block headers are looked at then, everything else is stepped
//! over; what is wrong with the file is for the reader of its packets to say.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::pcapng::{Pcapng, SECRETS, key_log};
use super::window::MAX_RECORD;
use super::{Order, Source};
use crate::capture::error::CaptureError;
use crate::keys::{Complaints, Keys};
use crate::notes::{About, Notes};

/// Longer lines are in no key log.
const MAX_LINE: u64 = 4096;

/// Everything that was found.
#[derive(Debug)]
pub struct Gathered {
    pub keys: Keys,
    /// What was wrong with the key logs.
    pub notes: Notes,
    captures: Rc<RefCell<Captures>>,
}

/// How far captures were read, and what was wrong with the key logs in them.
#[derive(Debug, Default)]
struct Captures {
    all: Vec<(Source, Extent)>,
    notes: Notes,
}

/// Which secrets of a capture are known.
#[derive(Clone, Copy, Debug)]
enum Extent {
    /// Those before this block, which stands in a section of this byte order.
    Until(u64, Order),
    All,
}

/// Where secrets go that are met as a capture is read.
pub struct Collector {
    keys: Keys,
    /// Which capture it is, where it can be read once more: there, no secret comes too late.
    place: Option<(Rc<RefCell<Captures>>, usize)>,
}

impl Gathered {
    /// Reads key logs.
    ///
    /// # Errors
    /// A key log that cannot be read, or without a single secret.
    pub fn from(key_logs: &[PathBuf], captures: &[Source]) -> Result<Self, CaptureError> {
        let (keys, mut notes) = (Keys::default(), Notes::default());
        for path in key_logs {
            let name = path.display().to_string();
            let complaints = match read(path, &keys) {
                Ok(Complaints { valid: 0, lines, .. }) => return Err(CaptureError::NotAKeyLog { name, lines }),
                Ok(complaints) => complaints,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(CaptureError::NotFound { name }),
                Err(source) => return Err(CaptureError::Io { name, source }),
            };
            note(&mut notes, &name, complaints);
        }
        let all = captures.iter().map(|source| (source.clone(), Extent::Until(0, Order::Little))).collect();
        let captures = Rc::new(RefCell::new(Captures { all, notes: Notes::default() }));
        let further = Rc::clone(&captures);
        keys.search_if_needed(move |keys| further.borrow_mut().look_through(keys));
        Ok(Self { keys, notes, captures })
    }

    /// For the reader of that capture.
    pub fn collector(&self, capture: usize, can_be_read_again: bool) -> Collector {
        let place = can_be_read_again.then(|| (Rc::clone(&self.captures), capture));
        Collector { keys: self.keys.clone(), place }
    }

    /// That capture was read to its end.
    pub fn was_read(&self, capture: usize) {
        self.captures.borrow_mut().set(capture, Extent::All);
    }

    /// What was wrong with the key logs inside captures.
    pub fn notes_on_captures(&self) -> Notes {
        std::mem::take(&mut self.captures.borrow_mut().notes)
    }
}

impl Captures {
    fn set(&mut self, capture: usize, read: Extent) {
        if let Some((_, extent)) = self.all.get_mut(capture) {
            *extent = read;
        }
    }

    /// Adds all secrets that are not known.
    fn look_through(&mut self, keys: &Keys) {
        let Self { all, notes } = self;
        for (source, read) in all {
            let (Source::Path(path), Extent::Until(from, order)) = (&*source, *read) else { continue };
            let scanned = scan(path, from, order, &mut |text| note(notes, &source.name(), keys.add(text)));
            if scanned.unwrap_or(false) {
                *read = Extent::All;
            }
        }
    }
}

impl Collector {
    /// Takes in a key log that was met; the next block begins at `end`, in a section of this `order`. False if it may
    /// come too late for some connections.
    pub(super) fn add(&self, text: Option<&[u8]>, end: u64, order: Order) -> bool {
        let Some((captures, capture)) = &self.place else {
            let Some(text) = text else { return true };
            self.keys.add(text);
            return false;
        };
        let mut captures = captures.borrow_mut();
        let Some((source, Extent::Until(..))) = captures.all.get(*capture) else { return true };
        let name = source.name();
        if let Some(text) = text {
            note(&mut captures.notes, &name, self.keys.add(text));
        }
        captures.set(*capture, Extent::Until(end, order));
        true
    }

    /// No secret comes too late.
    pub(super) fn can_be_read_again(&self) -> bool {
        self.place.is_some()
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

/// Hands every key log in `path` from the block at `from` on, in a section of this `order`, to `found`; false when the
/// file is no plain pcapng file.
fn scan(path: &Path, from: u64, mut order: Order, found: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
    // Opening a pipe would wait for somebody who writes into it.
    if !std::fs::metadata(path)?.is_file() {
        return Ok(false);
    }
    let mut file = BufReader::with_capacity(1 << 16, File::open(path)?);
    file.seek(SeekFrom::Start(from))?;
    let mut head = [0; 8];
    let mut is_first = from == 0;
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
