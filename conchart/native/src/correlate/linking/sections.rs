//! Exchanges in sections that are linked one after the other: links take memory for one section, however long the capture is.
//!
//! Machines that asked for little share a section, others have their own. The backs of one that asked for much are cut in the order of time, where few
//! fronts wait. A section has the [`MARGIN`] backs before and after its own, too, and all fronts that wait meanwhile: so on both
//! sides of a cut the same links compete, and a front that waits across it finds its back on one side of it. Who waits for longer
//! than the margin lasts may be given a back on either side: that is accepted.

use std::collections::BTreeMap;
use std::ops::Range;

use super::model::{Exchange, SKEW_NS};

/// Backs that are linked at a time.
pub(super) const MOST_BACKS: usize = 10_000;
/// So many tell a machine's habits: what others do in the same capture has no part in them.
const ENOUGH_BACKS: usize = 8;
/// Backs beyond a cut that compete with those before it, and are linked beyond it.
pub(super) const MARGIN: usize = 500;

/// An exchange with its index.
pub(super) type Indexed<'a> = (u32, &'a Exchange);

/// What is linked at a time: fronts and backs, those of a machine together, in the order of their requests.
#[derive(Debug, Default)]
pub(super) struct Section<'a> {
    pub fronts: Vec<Indexed<'a>>,
    pub backs: Vec<Indexed<'a>>,
    /// Where each machine's are.
    pub machines: Vec<Sides>,
    /// The backs that are linked here: not those of the margins.
    pub own: Range<usize>,
    /// It goes on with the machine of the section before.
    pub goes_on: bool,
}

/// Where a machine's fronts and backs are.
#[derive(Clone, Debug)]
pub(super) struct Sides {
    pub fronts: Range<usize>,
    pub backs: Range<usize>,
}

impl<'a> Section<'a> {
    /// The fronts of a machine with their numbers in the section.
    pub(super) fn fronts_of(&self, sides: &Sides) -> Vec<Indexed<'a>> {
        numbered(&self.fronts, &sides.fronts)
    }

    /// The backs of a machine with their numbers in the section.
    pub(super) fn backs_of(&self, sides: &Sides) -> Vec<Indexed<'a>> {
        numbered(&self.backs, &sides.backs)
    }

    fn add(&mut self, fronts: impl IntoIterator<Item = Indexed<'a>>, backs: &[Indexed<'a>]) {
        let (front, back) = (self.fronts.len(), self.backs.len());
        self.fronts.extend(fronts);
        self.backs.extend(backs);
        self.machines.push(Sides { fronts: front..self.fronts.len(), backs: back..self.backs.len() });
        self.own = 0..self.backs.len();
    }
}

fn numbered<'a>(list: &[Indexed<'a>], range: &Range<usize>) -> Vec<Indexed<'a>> {
    let start = u32::try_from(range.start).unwrap_or(u32::MAX);
    let side = list.get(range.clone()).unwrap_or_default();
    (start..).zip(side).map(|(number, &(_, exchange))| (number, exchange)).collect()
}

/// Hands on the sections of all machines.
pub(super) fn sections<'a>(exchanges: &'a [Exchange], mut each: impl FnMut(&Section<'a>)) {
    let mut shared = Section::default();
    for Machine { fronts, backs } in machines(exchanges) {
        if backs.len() > MOST_BACKS {
            cut(fronts, &backs, &mut each);
            continue;
        }
        if backs.len() >= ENOUGH_BACKS {
            let mut section = Section::default();
            section.add(fronts, &backs);
            each(&section);
            continue;
        }
        if shared.backs.len() + backs.len() > MOST_BACKS {
            each(&std::mem::take(&mut shared));
        }
        shared.add(fronts, &backs);
    }
    if !shared.backs.is_empty() {
        each(&shared);
    }
}

/// All that a machine accepted and asked for, in the order of requests.
#[derive(Default)]
struct Machine<'a> {
    fronts: Vec<Indexed<'a>>,
    backs: Vec<Indexed<'a>>,
}

/// Groups exchanges by machine.
fn machines(exchanges: &[Exchange]) -> impl Iterator<Item = Machine<'_>> {
    let mut machines: BTreeMap<i32, Machine<'_>> = BTreeMap::new();
    for indexed in (0u32..).zip(exchanges) {
        if let Some(machine) = indexed.1.accepted_by {
            machines.entry(machine).or_default().fronts.push(indexed);
        }
        if let Some(machine) = indexed.1.opened_by {
            machines.entry(machine).or_default().backs.push(indexed);
        }
    }
    machines.into_values().map(|mut machine| {
        for side in [&mut machine.fronts, &mut machine.backs] {
            side.sort_by_key(|(_, exchange)| (exchange.request_at, exchange.stream, exchange.number));
        }
        machine
    })
}

/// Hands on the sections of one machine, which asked for more than one section has room for.
fn cut<'a>(fronts: Vec<Indexed<'a>>, backs: &[Indexed<'a>], each: &mut impl FnMut(&Section<'a>)) {
    let lives: Vec<Range<usize>> = fronts.iter().map(|(_, front)| life(front, backs)).collect();
    let waiting = waiting_across(&lives, backs.len());
    let mut coming = fronts.into_iter().zip(lives).peekable();
    let mut alive: Vec<(Indexed<'a>, Range<usize>)> = Vec::new();
    let mut start = 0;
    while start < backs.len() {
        let end = end(start, &waiting, backs.len());
        let all = start.saturating_sub(MARGIN)..(end + MARGIN).min(backs.len());
        while let Some(front) = coming.next_if(|(_, life)| life.start < all.end) {
            alive.push(front);
        }
        alive.retain(|(_, life)| life.end > all.start);
        let mut section = Section { goes_on: start > 0, ..Section::default() };
        section.add(alive.iter().map(|&(front, _)| front), backs.get(all.clone()).unwrap_or_default());
        section.own = start - all.start..end - all.start;
        each(&section);
        start = end;
    }
}

/// The backs that were asked for while a front waited; or the next one, or the last.
fn life(front: &Exchange, backs: &[Indexed<'_>]) -> Range<usize> {
    let start = backs.partition_point(|(_, back)| back.request_at + SKEW_NS < front.request_at);
    let start = start.min(backs.len().saturating_sub(1));
    let end = backs.partition_point(|(_, back)| back.request_at <= front.until() + SKEW_NS);
    start..end.max(start + 1)
}

/// How many fronts wait across a cut before each back.
fn waiting_across(lives: &[Range<usize>], backs: usize) -> Vec<i64> {
    let mut waiting = vec![0; backs + 1];
    for life in lives {
        for (place, change) in [(life.start + 1, 1), (life.end, -1)] {
            if let Some(waiting) = waiting.get_mut(place) {
                *waiting += change;
            }
        }
    }
    let mut sum = 0;
    for waiting in &mut waiting {
        sum += *waiting;
        *waiting = sum;
    }
    waiting
}

/// Where a section that starts there ends best: it is neither too large nor leaves too little for the next, and few wait.
fn end(start: usize, waiting: &[i64], backs: usize) -> usize {
    let left = backs - start;
    if left <= MOST_BACKS {
        return backs;
    }
    let latest = start + MOST_BACKS.min(left - MOST_BACKS / 2);
    let places = latest - MOST_BACKS / 4..=latest;
    places.rev().min_by_key(|&place| waiting.get(place)).unwrap_or(latest)
}
