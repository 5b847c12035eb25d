//! Whether links could as well be shifted by one: each back to the front of the back before it, or after it.
//!
//! A proxy that is busy with many requests takes longer for each than the next one is away. Then time fits two ways from end to
//! end: each front with its own back after the proxy's whole queue, or each with its neighbour's, sooner. No single link shows
//! it, because its rivals are weighed while all other links stay ([`super::rivals`]); the row as a whole does.

use super::candidates::{Candidate, Opening};
use super::model::{LEAST_CONFIDENCE, Link};

/// Links before and after one that are shifted together with it.
const AROUND: usize = 32;
/// A row of links can be shifted where at least this part of them can.
const MOSTLY: f64 = 0.9;
/// Messages that a proxy lengthens by so many bytes more or less may be each other's.
const ALIKE_BYTES: u64 = 16;

/// Doubts the links of a route that fit as well shifted by one: two hypotheses, neither of them sure.
///
/// Links come in the order of their backs, each with its route, and leave in the order of routes. Candidates of a back are together,
/// in the order of backs.
pub(super) fn doubt_shifts(links: &mut [(u32, Link)], candidates: &[Candidate]) {
    links.sort_by_key(|&(route, _)| route);
    for row in links.chunk_by_mut(|(one, _), (other, _)| one == other) {
        let doubted = [false, true].map(|later| doubt_one_way(row, later, candidates));
        for (place, (_, link)) in row.iter_mut().enumerate() {
            if doubted.iter().any(|doubted| doubted.get(place) == Some(&true)) {
                link.confidence = link.confidence.min(LEAST_CONFIDENCE);
            }
        }
    }
}

/// Tells of each link whether nearly all around it could be those of their neighbours on one side.
fn doubt_one_way(row: &[(u32, Link)], later: bool, candidates: &[Candidate]) -> Vec<bool> {
    // How many links up to here have a neighbour with another front, and how many of them could have that front.
    let (mut compared, mut fitting) = (vec![0usize], vec![0usize]);
    for (place, (_, own)) in row.iter().enumerate() {
        let neighbour = if later { row.get(place + 1) } else { place.checked_sub(1).and_then(|place| row.get(place)) };
        let fits = neighbour
            .filter(|(_, neighbour)| neighbour.front != own.front)
            .map(|(_, neighbour)| could_have(own, neighbour.front, candidates));
        compared.push(compared.last().unwrap_or(&0) + usize::from(fits.is_some()));
        fitting.push(fitting.last().unwrap_or(&0) + usize::from(fits == Some(true)));
    }
    (0..row.len())
        .map(|place| {
            let from = place.saturating_sub(AROUND).min(row.len().saturating_sub(2 * AROUND + 1));
            let to = (from + 2 * AROUND + 1).min(row.len());
            let within = |sums: &[usize]| sums.get(to).zip(sums.get(from)).map_or(0, |(to, from)| to - from);
            within(&compared) > AROUND && within(&fitting) as f64 >= MOSTLY * within(&compared) as f64
        })
        .collect()
}

/// Does all but time speak for another front of a back as much as for its own, and does time allow it?
///
/// The proxy opened the connection for it: what waits for a connection of a pool is told by who gives one back.
fn could_have(link: &Link, front: u32, candidates: &[Candidate]) -> bool {
    let start = candidates.partition_point(|candidate| candidate.back < link.back);
    let of_back = || candidates.iter().skip(start).take_while(|candidate| candidate.back == link.back);
    let find = |front: u32| of_back().find(|candidate| candidate.front == front);
    let Some((ours, theirs)) = find(link.front).zip(find(front)) else { return false };
    let alike = |theirs: Option<i64>, ours: Option<i64>| {
        theirs.zip(ours).is_none_or(|(theirs, ours)| theirs.abs_diff(ours) <= ALIKE_BYTES)
    };
    theirs.opening == Opening::ForIt
        && theirs.requested_alone_ns > 0
        && theirs.answered_alone_ns.is_some_and(|ns| ns > 0)
        && (theirs.ids, theirs.target, theirs.status) == (ours.ids, ours.target, ours.status)
        && alike(theirs.request_grown, ours.request_grown)
        && alike(theirs.response_grown, ours.response_grown)
}
