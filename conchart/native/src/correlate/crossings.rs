//! Which packets of several places are the same: place_packets in, the number of the packet of each one out.
//!
//! A packet is the same if its side, its numbers, its length, its flags and its print are. Where several of a place look
//! alike, their order or the IP identification decides. Of what one place alone has, segments that begin with the same
//! byte are the same packet: offloading cut or joined them.
//!
//! In: the place_packets of each place, as they were read, and the connection of each stream ([`Member`]). Out: the rows of
//! the table `place_packets` with their packets (`telling.rs`), [`Apart`] of each connection and two places, what each place
//! has of a connection ([`Share`]), and the points of which `clocks` tells how far two places are apart. Each connection is looked at by itself: N place_packets cost
//! N log N. No IO, no clock.

mod meeting;
pub mod rows;
pub mod telling;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use crate::correlate::clocks::{Point, SETS};
use crate::packet::Seq;

/// A clock is read a little before or after a packet is captured: it may seem to arrive so much before it was sent.
const JITTER_NS: i64 = 1_000;

/// The connection that a stream of a place belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    pub path: i64,
    /// Client and server are taken the other way round there.
    pub turned: bool,
    /// So many places saw the connection.
    pub places: usize,
    /// A firewall changed its sequence numbers: these count from the SYN's.
    pub isns: Option<[i64; 2]>,
}

/// A packet of a connection that several places saw. It is small: there are as many as packets in the captures.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub part: u16,
    pub ttl: Option<u8>,
    pub tos: Option<u8>,
    /// The connection's client sent it.
    pub by_client: bool,
    /// So many bytes it carries.
    pub bytes: u32,
    pub frame: i64,
    pub at: i64,
    /// Equal where all of it is that routers leave as it is.
    pub alike: u64,
    /// The number of its first byte, SYN or FIN; none of a bare acknowledgement.
    pub begins: Option<Seq>,
    pub ip_id: i32,
    /// Its row.
    pub row: u32,
    /// Its number among those of its connection: `pair` counts them.
    pub nth: u32,
}

/// What tells a packet from others of its connection.
#[must_use]
pub fn alike(by_client: bool, numbers: [Option<i64>; 2], bytes: Option<i32>, flags: &str, print: Option<i64>) -> u64 {
    FixedState::default().hash_one((by_client, numbers, bytes, flags, print))
}

/// A packet that no other of its connection looks like, at one of the places that saw it.
#[derive(Clone, Copy, Debug)]
pub struct Met {
    /// The same number: the same packet.
    pub packet: u32,
    pub part: u16,
    pub by_client: bool,
    pub path: i64,
    pub frame: i64,
    pub at: i64,
}

/// How the times of two places differ on a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Apart {
    pub path: i64,
    pub one: usize,
    pub other: usize,
    /// How much later than `one` the other place has what the client sends, compared with what the server sends.
    pub slower_ns: Option<f64>,
    /// By how much the hop limit is lower at the other place, of what client and server send.
    pub hops: [Option<f64>; 2],
}

/// What a place has of a connection, compared with the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    pub path: i64,
    pub part: usize,
    /// Packets that another place has.
    pub lacking: usize,
    /// Packets that passed this place after one that they were ahead of at the first place that has them.
    pub overtaken: usize,
    /// Segments that begin before the end of an earlier one.
    pub late: usize,
    /// What client and server sent.
    pub sides: [Side; 2],
}

/// What a place has of one side of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Side {
    pub packets: usize,
    pub first_frame: Option<i64>,
    /// Of the first packet.
    pub ttl: Option<u8>,
    pub tos: Option<u8>,
    /// Another packet has another hop limit or type of service.
    pub varies: bool,
}

impl Side {
    fn count(&mut self, one: &Seen) {
        if self.packets == 0 {
            *self = Self { first_frame: Some(one.frame), ttl: one.ttl, tos: one.tos, ..Self::default() };
        }
        self.packets += 1;
        self.varies |= (one.ttl, one.tos) != (self.ttl, self.tos);
    }
}

/// What was found so far.
#[derive(Debug, Default)]
pub struct Found {
    /// Rows and the first row of the same packet.
    pub packets: Vec<(u32, u32)>,
    pub met: Vec<Met>,
    pub apart: Vec<Apart>,
    pub shares: Vec<Share>,
    /// Of each packet of the connection that is looked at, the first that is the same.
    firsts: Vec<u32>,
    /// What is met of it: packets, and their numbers among those of the connection.
    pairs: Vec<(u32, u32)>,
}

/// Finds what is the same among the packets of one connection, which stand in the order of places and frames.
pub fn pair(path: i64, places: usize, seen: &mut [Seen], found: &mut Found) {
    found.firsts.clear();
    found.pairs.clear();
    for (nth, seen) in (0..).zip(seen.iter_mut()) {
        seen.nth = nth;
        found.firsts.push(nth);
    }
    let mut order: Vec<&Seen> = seen.iter().collect();
    order.sort_unstable_by_key(|seen| (seen.alike, seen.nth));
    let mut lone: Vec<&Seen> = Vec::new();
    for same in order.chunk_by(|one, other| one.alike == other.alike) {
        let mut runs = same.chunk_by(|one, other| one.part == other.part).map(<[_]>::len);
        let (least, most) = runs.clone().fold((usize::MAX, 0), |(least, most), len| (least.min(len), most.max(len)));
        let of_places = runs.by_ref().count();
        match same {
            [one] => lone.push(one),
            _ if most == 1 => found.meet(path, same),
            // As many times at each place: the first is the first.
            _ if most == least && of_places == places => found.ranked(same),
            _ => {
                let mut by_id = same.to_vec();
                by_id.sort_unstable_by_key(|seen| (seen.ip_id, seen.nth));
                by_id.chunk_by(|one, other| one.ip_id == other.ip_id).for_each(|same| found.ranked(same));
            }
        }
    }
    lone.sort_unstable_by_key(|seen| (seen.by_client, seen.begins.map(|begins| begins.0), seen.nth));
    for same in lone.chunk_by(|one, other| (one.by_client, one.begins) == (other.by_client, other.begins)) {
        let is_met = same.iter().all(|seen| seen.begins.is_some())
            && same.len() > 1
            && same.is_sorted_by(|one, other| one.part < other.part);
        if is_met {
            found.meet(path, same);
        } else {
            found.packets.extend(same.iter().map(|seen| (seen.row, seen.row)));
        }
    }
    found.compare(path, seen);
    found.share(path, seen);
}

impl Found {
    /// One packet, at each place once.
    fn meet(&mut self, path: i64, same: &[&Seen]) {
        let packet = same.first().map_or(0, |first| first.row);
        self.pairs.extend(same.iter().map(|seen| (packet, seen.nth)));
        self.met.extend(same.iter().map(|seen| {
            let Seen { part, by_client, frame, at, .. } = **seen;
            Met { packet, part, by_client, path, frame, at }
        }));
        self.same(same);
    }

    /// The first of a place is the first of another one.
    fn ranked(&mut self, same: &[&Seen]) {
        let mut ranks: Vec<(usize, &Seen)> = same
            .chunk_by(|one, other| one.part == other.part)
            .flat_map(|of_place| of_place.iter().enumerate().map(|(rank, seen)| (rank, *seen)))
            .collect();
        ranks.sort_by_key(|(rank, _)| *rank);
        for equal in ranks.chunk_by(|one, other| one.0 == other.0) {
            self.same(&equal.iter().map(|(_, seen)| *seen).collect::<Vec<_>>());
        }
    }

    fn same(&mut self, same: &[&Seen]) {
        if let Some(first) = same.first() {
            self.packets.extend(same.iter().map(|seen| (seen.row, first.row)));
            for seen in same {
                if let Some(slot) = self.firsts.get_mut(seen.nth as usize) {
                    *slot = first.nth;
                }
            }
        }
    }

    /// Counts what each place has.
    fn share(&mut self, path: i64, seen: &[Seen]) {
        let packets = (0..).zip(&self.firsts).filter(|(nth, first)| nth == *first).count();
        let mut firsts = self.firsts.iter().map(|first| seen.get(*first as usize));
        for of_place in seen.chunk_by(|one, other| one.part == other.part) {
            let Some(Seen { part, .. }) = of_place.first() else { continue };
            // Of each sender and each other place, the last of its frames; of each sender, the end of its bytes.
            let mut ahead: HashMap<(bool, u16), i64, FixedState> = HashMap::default();
            let mut ends: [Option<Seq>; 2] = [None; 2];
            let (mut overtaken, mut late) = (0, 0);
            let mut sides = [Side::default(); 2];
            for (one, first) in of_place.iter().zip(&mut firsts) {
                if let Some(first) = first {
                    let last = ahead.entry((one.by_client, first.part)).or_insert(first.frame);
                    overtaken += usize::from(first.frame < *last);
                    *last = first.frame.max(*last);
                }
                let [of_client, of_server] = &mut sides;
                if one.by_client { of_client } else { of_server }.count(one);
                let [of_client, of_server] = &mut ends;
                let end = if one.by_client { of_client } else { of_server };
                if let Some(from) = one.begins.filter(|_| one.bytes > 0) {
                    let to = from.plus(one.bytes);
                    late += usize::from(end.is_some_and(|end| from.since(end) < 0));
                    *end = Some(end.filter(|end| to.since(*end) < 0).unwrap_or(to));
                }
            }
            let lacking = packets - of_place.len();
            self.shares.push(Share { path, part: usize::from(*part), lacking, overtaken, late, sides });
        }
    }

    /// Compares the times of each two places.
    fn compare(&mut self, path: i64, seen: &[Seen]) {
        let met: Vec<(u32, &Seen)> =
            self.pairs.iter().filter_map(|(packet, nth)| Some((*packet, seen.get(*nth as usize)?))).collect();
        let mut parts: Vec<_> = seen.iter().map(|seen| seen.part).collect();
        parts.dedup();
        for (place, &one) in parts.iter().enumerate() {
            for &other in parts.get(place + 1..).unwrap_or(&[]) {
                let same = met.chunk_by(|one, other| one.0 == other.0);
                let both_of = same.filter_map(|same| {
                    let at = |part| same.iter().find(|(_, seen)| seen.part == part).map(|(_, seen)| **seen);
                    Some((at(one)?, at(other)?))
                });
                let mut both: Vec<(Seen, Seen)> = both_of.collect();
                if both.is_empty() {
                    continue;
                }
                both.sort_unstable_by_key(|(_, there)| there.frame);
                let ahead = apart(path, &both);
                for pair in &mut both {
                    std::mem::swap(&mut pair.0, &mut pair.1);
                }
                both.sort_unstable_by_key(|(_, there)| there.frame);
                self.apart.extend([ahead, apart(path, &both)].into_iter().flatten());
            }
        }
    }

    /// The points of which `clocks` tells how far two places are apart.
    ///
    /// `positions` says which place of a connection is nearer to the client, `grains` what the clock of each place shows at
    /// least, `sets` from which frames on each of the two was set.
    #[must_use]
    pub fn points(
        &self,
        between: [usize; 2],
        sets: &[Vec<i64>; 2],
        grains: [i64; 2],
        positions: impl Fn(i64, usize) -> Option<i64>,
    ) -> Vec<Point> {
        let [here, there] = between;
        let [off_here, off_there] = grains.map(|grain| grain - 1);
        let mut nearer = (i64::MIN, false);
        let mut points = Vec::with_capacity(self.met.len().div_ceil(2));
        points.extend(pairs(&self.met, here, there).map(|(one, other)| {
            let path = one.path;
            if nearer.0 != path {
                nearer = (path, positions(path, here) < positions(path, there));
            }
            let outward = one.by_client == nearer.1;
            let [set_here, set_there] =
                [(one.frame, &sets[0]), (other.frame, &sets[1])].map(|(frame, sets)| times(sets, frame));
            Point {
                at: one.at,
                ahead_ns: other.at.saturating_sub(one.at).saturating_add(if outward { off_there } else { -off_here }),
                outward,
                frames: [one.frame, other.frame],
                segment: set_here.saturating_mul(SETS).saturating_add(set_there),
            }
        }));
        // Segments by how often clocks were set before.
        points.sort_unstable_by_key(|point| {
            let segment = point.segment;
            (segment / SETS + segment % SETS, segment, point.frames[1])
        });
        points
    }
}

fn times(sets: &[i64], frame: i64) -> i64 {
    i64::try_from(sets.iter().filter(|first| frame >= **first).count()).unwrap_or(i64::MAX)
}

/// The packets that two places met, with what each saw.
fn pairs(met: &[Met], one: usize, other: usize) -> impl Iterator<Item = (&Met, &Met)> {
    met.chunk_by(|one, other| one.packet == other.packet).filter_map(move |same| {
        let at = |part| same.iter().find(|met| usize::from(met.part) == part);
        Some((at(one)?, at(other)?))
    })
}

/// Compares two places, in the order of the second one's frames.
fn apart(path: i64, both: &[(Seen, Seen)]) -> Option<Apart> {
    let (one, other) = both.first()?;
    // A packet and the next one, the other way round: a clock that is set between two changes no others.
    let turns = both.windows(2).filter_map(|two| {
        let [before, after] = two else { return None };
        let ns = |pair: &(Seen, Seen)| pair.1.at.saturating_sub(pair.0.at);
        let slower = ns(after).saturating_sub(ns(before));
        (before.0.by_client != after.0.by_client).then_some(if after.0.by_client { slower } else { -slower })
    });
    let hops = |by_client: bool| {
        let of_side = both.iter().filter(|(one, _)| one.by_client == by_client);
        median(of_side.filter_map(|(one, other)| Some(i64::from(one.ttl?) - i64::from(other.ttl?))).collect())
    };
    let hops = [hops(true), hops(false)];
    Some(Apart {
        path,
        one: usize::from(one.part),
        other: usize::from(other.part),
        slower_ns: median(turns.collect()),
        hops,
    })
}

#[expect(clippy::cast_precision_loss, reason = "it is compared with microseconds")]
fn median(mut of: Vec<i64>) -> Option<f64> {
    let middle = of.len() / 2;
    if of.is_empty() {
        return None;
    }
    let is_even = of.len().is_multiple_of(2);
    let (below, high, _) = of.select_nth_unstable(middle);
    let high = *high as f64;
    let low = below.iter().max().filter(|_| is_even);
    Some(low.map_or(high, |low| f64::midpoint(*low as f64, high)))
}
