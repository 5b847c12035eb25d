//! Copies captures into one pcapng file, with comments on some of their frames.
//!
//! In: captures that can be read again, the choice of frames that they were read with, comments by number of frame. Out: one
//! pcapng file of the chosen frames, in sections: those of a pcapng input as they are, one for each pcap. Nothing is decoded.
//!
//! No more frames are copied than were read: a file that somebody writes to meanwhile may have grown.

use std::io::{self, Write};

use crate::capture::writing::{begin_section, write_frame};
use crate::capture::{CaptureReader, Piece, Source};
use crate::pipeline::choice::Chooser;
use crate::pipeline::{Failure, Selection};
use crate::portion::Stopped;
use crate::tally::Tally;

/// Frames between two looks whether to go on.
const PAUSE_FRAMES: u64 = 1 << 14;

/// Who has something to say of frames.
pub trait Comments {
    /// The next comments, with the numbers of their frames, in order; none at the end.
    ///
    /// # Errors
    /// When no more is wanted.
    fn more(&mut self) -> Result<Vec<(u64, String)>, Stopped>;

    /// Called now and then.
    ///
    /// # Errors
    /// When no more is wanted.
    fn pause(&mut self) -> Result<(), Stopped>;
}

/// Why copying ended early.
#[derive(Debug)]
pub enum Unwritten {
    Reading(Failure),
    Writing(io::Error),
}

impl From<Failure> for Unwritten {
    fn from(failure: Failure) -> Self {
        Self::Reading(failure)
    }
}

impl From<Stopped> for Unwritten {
    fn from(stopped: Stopped) -> Self {
        Self::Reading(stopped.into())
    }
}

impl From<io::Error> for Unwritten {
    fn from(error: io::Error) -> Self {
        Self::Writing(error)
    }
}

/// Copies the first frames of each source, as many as are given with it, as far as they are chosen.
///
/// Returns what was seen of each source: fewer frames, or others, than before when it has changed since it was read.
///
/// # Errors
/// A source that cannot be opened, a filter that does not compile, output that cannot be written.
pub fn annotate(
    sources: &[(Source, i64)],
    selection: Selection,
    comments: &mut dyn Comments,
    into: &mut dyn Write,
) -> Result<Vec<Tally>, Unwritten> {
    let mut copying = Copying { chooser: Chooser::new(selection), queue: Queue::new(comments), frames: 0, into };
    let seen = sources.iter().map(|(source, frames)| copying.file(source, *frames)).collect::<Result<_, _>>()?;
    copying.into.flush()?;
    Ok(seen)
}

struct Copying<'a> {
    chooser: Chooser,
    queue: Queue<'a>,
    /// Number of the latest frame; several files count on.
    frames: u64,
    into: &'a mut dyn Write,
}

impl Copying<'_> {
    fn file(&mut self, source: &Source, most: i64) -> Result<Tally, Unwritten> {
        let mut reader = CaptureReader::open(source).map_err(Failure::Capture)?;
        let (before, mut seen) = (self.frames, Tally::default());
        if let Some(link) = reader.pcap_link() {
            begin_section(link, self.into)?;
        }
        // Damage ends a file here as it did when it was read.
        while let Ok(Some(piece)) = reader.next_piece() {
            match piece {
                // What Wireshark numbers stays where all packets do, so that these keep their numbers.
                Piece::Block(block) if self.chooser.takes_all() || !block.is_numbered() => {
                    block.write(&[], self.into)?;
                }
                Piece::Frame(frame, block) if seen.packets < most => {
                    self.frames = before + frame.number;
                    if self.frames.is_multiple_of(PAUSE_FRAMES) {
                        self.queue.pause()?;
                    }
                    let wanted = self.chooser.wants_dated(&frame, seen.packets == 0)?;
                    seen.saw(&frame);
                    if wanted {
                        let comments = self.queue.of(self.frames)?;
                        match block {
                            Some(block) => block.write(comments, self.into)?,
                            None => write_frame(&frame, comments, self.into)?,
                        }
                    }
                }
                Piece::Frame(_, None) => break,
                // Of a pcapng file, secrets and statistics may come after the packets.
                Piece::Frame(_, Some(_)) | Piece::Block(_) => {}
            }
        }
        Ok(seen)
    }
}

/// Comments that wait for their frames.
struct Queue<'a> {
    comments: &'a mut dyn Comments,
    waiting: std::iter::Peekable<std::vec::IntoIter<(u64, String)>>,
    over: bool,
    /// Those of the latest frame.
    current: Vec<String>,
}

impl<'a> Queue<'a> {
    fn new(comments: &'a mut dyn Comments) -> Self {
        Self { comments, waiting: Vec::new().into_iter().peekable(), over: false, current: Vec::new() }
    }

    fn pause(&mut self) -> Result<(), Stopped> {
        self.comments.pause()
    }

    /// What is said of a frame. Frames are asked for in their order.
    fn of(&mut self, frame: u64) -> Result<&[String], Stopped> {
        self.current.clear();
        loop {
            if self.waiting.peek().is_none() && !self.over {
                let more = self.comments.more()?;
                self.over = more.is_empty();
                self.waiting = more.into_iter().peekable();
            }
            let Some((of, comment)) = self.waiting.next_if(|(of, _)| *of <= frame) else { break };
            if of == frame {
                self.current.push(comment);
            }
        }
        Ok(&self.current)
    }
}
