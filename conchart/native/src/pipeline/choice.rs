//! Which frames are wanted: asked of each one as it comes, in file order.

use super::clock_steps::{ClockSteps, Followed, dated};
use super::{Failure, Selection};
use crate::capture::filter::Program;
use crate::capture::{Frame, LinkType, TIMES};

/// Compiles the user's filter for one link type.
pub type Compile = dyn FnMut(LinkType) -> Result<Program, Failure> + Send;

/// An end of the time window.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    /// Nanoseconds since the epoch.
    At(i64),
    /// Nanoseconds after the first packet.
    After(i64),
}

/// Chooses frames as a person asked for.
pub(crate) struct Chooser {
    selection: Selection,
    programs: Vec<(LinkType, Program)>,
    /// Says where frames stand on the axis: what bounds count from that are relative.
    pub(super) clock: ClockSteps,
    /// Where the first frame of all stands: what relative bounds count from.
    origin: Option<i64>,
    /// Frames chosen so far.
    chosen: u64,
    takes_all: bool,
}

impl Chooser {
    pub(crate) fn new(selection: Selection) -> Self {
        let Selection { filter, start, end, count, .. } = &selection;
        let takes_all = filter.is_none() && start.is_none() && end.is_none() && count.is_none();
        Self { selection, programs: Vec::new(), clock: ClockSteps::default(), origin: None, chosen: 0, takes_all }
    }

    /// Are the latest frame's packets wanted in the table `packets`, whatever they tell?
    pub(super) fn is_detailed(&self) -> bool {
        self.chosen <= self.selection.detailed
    }

    /// Is a flow the one of which everything is wanted?
    pub(super) fn explains(&self, stream: i32) -> bool {
        self.selection.explained == Some(stream)
    }

    /// Is there such a flow, or will be?
    pub(super) fn explains_any(&self) -> bool {
        self.selection.explained.is_some()
    }

    /// Is every packet wanted in the table `place_packets`?
    pub(super) fn sights(&self) -> bool {
        self.selection.place_packets
    }

    /// The time of a frame without what its clock was set by.
    #[inline]
    pub(super) fn unset(&self, at: i64, frame: u64) -> i64 {
        let set = self.selection.steps.iter().take_while(|(from, _)| *from <= frame);
        set.fold(at, |at, (_, ns)| at.saturating_sub(*ns)).clamp(*TIMES.start(), *TIMES.end())
    }

    /// Is every frame wanted?
    pub(crate) fn takes_all(&self) -> bool {
        self.takes_all
    }

    /// Is it useless to ask for more?
    pub(super) fn is_full(&self) -> bool {
        self.selection.count.is_some_and(|count| self.chosen >= count)
    }

    /// Is a frame wanted? Its time is as the file has it.
    pub(crate) fn wants_dated(&mut self, frame: &Frame<'_>, begins_file: bool) -> Result<bool, Failure> {
        let Followed { at, ahead, .. } = self.clock.follow(frame.at, begins_file);
        self.wants(&Frame { at, ..*frame }, ahead)
    }

    /// Is a frame wanted? Its time is as the axis has it; its date lies so far before that.
    #[inline]
    pub(super) fn wants(&mut self, frame: &Frame<'_>, ahead: i64) -> Result<bool, Failure> {
        let origin = *self.origin.get_or_insert(frame.at);
        let wanted = self.takes_all || self.is_among_wanted(frame, ahead, origin)?;
        self.chosen += u64::from(wanted);
        Ok(wanted)
    }

    fn is_among_wanted(&mut self, frame: &Frame<'_>, ahead: i64, origin: i64) -> Result<bool, Failure> {
        let is_from = |bound| match bound {
            Limit::At(at) => dated(frame.at, ahead) >= at,
            Limit::After(ns) => frame.at >= origin.saturating_add(ns),
        };
        let Selection { start, end, .. } = &self.selection;
        let in_window = start.is_none_or(is_from) && !end.is_some_and(is_from) && !self.is_full();
        // Asked for outside of the window, too: that a filter is wrong is told before the rest is read.
        let program = self.program(frame.link)?;
        Ok(in_window && program.is_none_or(|program| program.accepts(frame.data, frame.original_len)))
    }

    /// The filter, as it is for a link type; `None` when there is no filter.
    pub(super) fn program(&mut self, link: LinkType) -> Result<Option<&Program>, Failure> {
        let Some(compile) = &mut self.selection.filter else { return Ok(None) };
        let position = self.programs.iter().position(|(of, _)| *of == link);
        let at = match position {
            Some(at) => at,
            None => {
                self.programs.push((link, compile(link)?));
                self.programs.len() - 1
            }
        };
        Ok(self.programs.get(at).map(|(_, program)| program))
    }
}
