//! What one capture file amounts to: the counts and notes behind a row of `captures`.

use crate::capture::error::CaptureError;
use crate::capture::{Facts, Frame, LinkType};
use crate::notes::{About, Notes, grouped};

/// Counts of one capture file.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub capture: i32,
    pub path: String,
    /// What the reader knows about the file; set when the file is done.
    pub facts: Option<Facts>,
    pub first_frame: u64,
    pub packets: i64,
    pub selected: i64,
    pub bytes: i64,
    /// Of the frames on the clock that it begins with, and of all that is told of connections.
    pub first_at: Option<i64>,
    pub last_at: Option<i64>,
    pub truncated: bool,
    pub undecodable: i64,
    pub other: i64,
    pub snapped: i64,
    pub duplicates: i64,
    /// TCP segments and UDP datagrams.
    pub decoded: i64,
    /// The first frame of a link type that we cannot read.
    pub unsupported: Option<(LinkType, u64)>,
    /// The first frame whose time steps back by more than a second.
    pub backward: Option<u64>,
    /// The first frame of the first packet that came in fragments and never became whole, and how many fragments.
    pub incomplete: Option<(u64, i64)>,
    pub notes: Notes,
}

impl Tally {
    /// Adds an error as a note, without the name of the file: it stands beside.
    pub fn note_error(&mut self, about: About, error: &CaptureError) {
        let text = error.to_string();
        let name = format!("{}: ", self.path);
        self.notes.add(about, || text.strip_prefix(&name).unwrap_or(&text).to_owned());
    }

    /// Counts a frame.
    pub fn saw(&mut self, frame: &Frame<'_>) {
        self.packets += 1;
        self.bytes += i64::from(frame.original_len);
        self.snapped += i64::from(frame.data.len() < frame.original_len as usize);
    }

    /// Something in it was captured then.
    #[inline]
    pub fn lasts(&mut self, at: i64) {
        self.first_at = Some(self.first_at.map_or(at, |first| first.min(at)));
        self.last_at = Some(self.last_at.map_or(at, |last| last.max(at)));
    }

    /// Notes a packet whose IP header claims `bytes` more than its frame had.
    #[cold]
    pub fn beyond_frame(&mut self, frame: u64, bytes: u32) {
        self.notes.add(About::BeyondFrame, || {
            let bytes = grouped(bytes.into());
            format!(
                "frame {frame}: the IP header declares {bytes} bytes more than the frame contains; they are not counted"
            )
        });
    }

    /// Counts `frames` fragments of a packet that began in frame `first` and never became whole.
    pub fn incomplete_fragments(&mut self, first: u64, frames: i64) {
        let (first_of_all, sum) = self.incomplete.unwrap_or((first, 0));
        self.incomplete = Some((first_of_all.min(first), sum + frames));
    }

    /// Notes what is only known at the end of the run.
    pub fn conclude(&mut self) {
        if let Some((first, frames)) = self.incomplete {
            self.notes.add(About::Fragments, || {
                format!(
                    "{frames} IP fragments, the first in frame {first}, could not be reassembled: other fragments of \
                     their packets are missing or overlap; their TCP data is missing"
                )
            });
        }
    }
}
