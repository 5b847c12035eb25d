//! Whether links could as well be shifted by one: each back to the front of the back before it, or after it.
//!
//! A proxy that is busy with many requests takes longer for each than the next one is away. Then time fits two ways from end to
//! end: each front with its own back after the proxy's whole queue, or each with its neighbour's, sooner. No single link shows
//! it, because its rivals are weighed while all other links stay ([`super::rivals`]); the row as a whole does.

use super::candidates::Candidate;
use super::{LEAST_CONFIDENCE, Link};

/// Links before and after one that are shifted together with it.
const AROUND: usize = 32;
/// A row of links can be shifted where at least this part of them can.
const MOSTLY: f64 = 0.9;
/// Messages that a proxy lengthens by so many bytes more or less may be each other's.
const ALIKE_BYTES: u64 = 16;

/// Doubts the links of a route that fit as well shifted by one: two hypotheses, neither of them sure.
///
/// Links are in the order of their backs, each with its route; candidates of a back are together, in that order.
pub(super) fn doubt_shifts(links: &mut [(u32, Link)], candidates: &[Candidate]) {
    let mut routes: Vec<u32> = links.iter().map(|&(route, _)| route).collect();
    routes.sort_unstable();
    routes.dedup();
    for route in routes {
        let mut row: Vec<&mut Link> = links.iter_mut().filter(|(of, _)| *of == route).map(|(_, link)| link).collect();
        let mut doubted = vec![false; row.len()];
        for later in [false, true] {
            doubt_one_way(&row, later, candidates, &mut doubted);
        }
        for (link, _) in row.iter_mut().zip(doubted).filter(|(_, doubted)| *doubted) {
            link.confidence = link.confidence.min(LEAST_CONFIDENCE);
        }
    }
}

/// Marks the links around which nearly all could be those of their neighbours on one side.
fn doubt_one_way(row: &[&mut Link], later: bool, candidates: &[Candidate], doubted: &mut [bool]) {
    let fits: Vec<bool> = (0..row.len())
        .map(|place| {
            let neighbour = if later { Some(place + 1) } else { place.checked_sub(1) };
            let (Some(own), Some(neighbour)) = (row.get(place), neighbour.and_then(|place| row.get(place))) else {
                return false;
            };
            let start = candidates.partition_point(|candidate| candidate.back < own.back);
            let of_back = || candidates.iter().skip(start).take_while(|candidate| candidate.back == own.back);
            let find = |front: u32| of_back().find(|candidate| candidate.front == front);
            match (find(own.front), find(neighbour.front)) {
                (Some(ours), Some(theirs)) => is_as_good(theirs, ours),
                _ => false,
            }
        })
        .collect();
    let mut before = Vec::with_capacity(fits.len() + 1);
    before.push(0usize);
    before.extend(fits.iter().scan(0, |sum, &fits| {
        *sum += usize::from(fits);
        Some(*sum)
    }));
    for (place, doubted) in doubted.iter_mut().enumerate() {
        let (from, to) = (place.saturating_sub(AROUND), (place + AROUND + 1).min(fits.len()));
        let fitting = before.get(to).zip(before.get(from)).map_or(0, |(to, from)| to - from);
        *doubted |= to - from > AROUND && fitting as f64 >= MOSTLY * (to - from) as f64;
    }
}

/// Does all but time speak for a front as much as for another one, and does time allow it?
fn is_as_good(theirs: &Candidate, ours: &Candidate) -> bool {
    let alike = |theirs: Option<i64>, ours: Option<i64>| {
        theirs.zip(ours).is_none_or(|(theirs, ours)| theirs.abs_diff(ours) <= ALIKE_BYTES)
    };
    theirs.asked_alone_ns > 0
        && theirs.answered_alone_ns.is_some_and(|ns| ns > 0)
        && (theirs.ids, theirs.target, theirs.status) == (ours.ids, ours.target, ours.status)
        && alike(theirs.request_grown, ours.request_grown)
        && alike(theirs.response_grown, ours.response_grown)
}
