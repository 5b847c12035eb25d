//! What was found so far, for whoever watches a capture that is still growing.
//!
//! In: the word of another thread that it wants to see something. Out: to the [`crate::portion::Outbox`], what is certain;
//! then, as portions of their own, what the rows of open flows and of the captures would be if nothing came any more.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::Run;
use super::traffic::Traffic;
use crate::capture::CaptureReader;
use crate::portion::{Output, Stopped};
use crate::stream::Arrival;

/// How long a pipe is listened to before it is asked whether somebody wants to see something.
const PATIENCE: Duration = Duration::from_millis(100);
/// Frames after which who asks sees something, pause or no pause.
const MAX_UNSHOWN: u32 = 2_000;
/// What came together in the pipe counts as so many.
const BLOCK_FRAMES: u32 = 200;

/// What who watches says to the stages.
#[derive(Debug, Default)]
pub struct Watcher {
    wants: AtomicBool,
    gone: AtomicBool,
}

impl Watcher {
    /// Asks to be shown what there is, once there is something new.
    pub fn ask(&self) {
        self.wants.store(true, Ordering::Relaxed);
    }

    /// Wants no more: the run stops, also where it waits for a pipe.
    pub fn leave(&self) {
        self.gone.store(true, Ordering::Relaxed);
    }
}

impl<O: Output> Run<O> {
    /// Shows what there is if that is wanted; then tells whether there is nothing to read at the moment.
    pub(super) fn is_idle(&mut self, reader: &CaptureReader) -> Result<bool, Stopped> {
        let Some(watcher) = &self.watcher else { return Ok(false) };
        if watcher.gone.load(Ordering::Relaxed) {
            return Err(Stopped);
        }
        let is_idle = reader.is_waiting(PATIENCE);
        if self.frames != self.shown && watcher.wants.load(Ordering::Relaxed) {
            // A pause shows more than the middle of what is going on.
            self.unshown += if reader.has_none() { BLOCK_FRAMES } else { 1 };
            if is_idle || self.unshown > MAX_UNSHOWN {
                watcher.wants.store(false, Ordering::Relaxed);
                (self.shown, self.unshown) = (self.frames, 0);
                self.show(reader)?;
            }
        }
        Ok(is_idle)
    }

    fn show(&mut self, reader: &CaptureReader) -> Result<(), Stopped> {
        self.out.begin_so_far()?;
        let now = Arrival { at: self.latest, frame: self.frames };
        for flow in self.flows.iter_mut() {
            Traffic::so_far(flow, now, &mut self.out)?;
        }
        for tally in self.done.iter().chain([&self.tally]) {
            let mut tally = tally.clone();
            tally.facts.get_or_insert_with(|| reader.facts());
            tally.conclude();
            self.out.capture(tally)?;
        }
        self.out.end_so_far()
    }
}
