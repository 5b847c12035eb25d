//! Whose turn it was on connections that several places saw: place_packets in, the parts of each turn out.
//!
//! At any instant, the last packet that said something is under way to its receiver, or the receiver has it and has not
//! answered. Of both packets that bound a turn, each place behind says when it saw them: that divides the turn into the
//! path there, the host behind the last place, and the path back. `analysis/phase_places.py` says what is made of it.
//! Besides, [`paces`] finds where a sender waited for acknowledgements, and [`cross`] how long packets were under way.
//!
//! In: the place_packets, places and waits of one connection. Out: [`Part`]s and [`Pace`]s. Each connection is looked at by itself:
//! N place_packets cost N log N. No IO, no clock.

pub mod rows;
#[cfg(test)]
mod tests;

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

/// A segment that follows an acknowledgement within so much was waiting for it.
const AT_ONCE_NS: i64 = 1_000_000;

/// A packet at one of the places that saw it.
#[derive(Clone, Copy, Debug)]
pub struct Sighting {
    /// Its number among all places.
    pub place: usize,
    pub at: i64,
    pub frame: i64,
    /// The first frame of the same packet; none where one place alone saw the connection.
    pub packet: Option<i64>,
    pub by_client: bool,
    /// It carries bytes, SYN or FIN.
    pub says: bool,
    pub bytes: i32,
    pub seq: Option<i64>,
}

/// A place that saw a connection.
#[derive(Clone, Copy, Debug)]
pub struct Stop {
    pub stream: i32,
    pub place: usize,
    /// Counted from the client.
    pub position: i32,
    /// Its capture tells of the connection.
    pub tells: bool,
    /// When the handshake's last acknowledgement passed.
    pub ack_at: Option<i64>,
    pub isns: [Option<i64>; 2],
    /// The place alone saw it, and is a proxy's: whether it is at the server, and at the client.
    pub ends: Option<[bool; 2]>,
}

/// A part of a turn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    pub stream: i32,
    /// Whose turn it is the wait of; none: the connection's.
    pub exchange: Option<i32>,
    pub start_at: i64,
    pub end_at: i64,
    pub kind: &'static str,
    pub place: usize,
    pub to_place: Option<usize>,
    /// The same side sent both packets.
    pub alone: bool,
    /// How much earlier than the place that tells this one saw it; none on a path.
    pub ahead_ns: Option<i64>,
}

/// The wait of a request among others on one connection: its own two packets bound it, whatever passes between them.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    pub stream: i32,
    pub exchange: i32,
    /// When the place that tells saw the last packet of the request.
    pub start_at: i64,
    /// And the first one of the response.
    pub end_at: i64,
}

impl Wait {
    /// Its packets, if every place saw both.
    fn bounds(&self, stops: &[Stop], times: &PacketTimes<'_>, own: &[Sighting]) -> Option<[Bound; 2]> {
        let bound = |at: i64, by_client: bool| {
            let from = own.partition_point(|one| one.at < at);
            let mut then = own.get(from..)?.iter().take_while(|one| one.at == at);
            let one = then.find(|one| one.by_client == by_client)?;
            Some(Bound { packet: one.packet?, by_client, at })
        };
        let bounds = [bound(self.start_at, true)?, bound(self.end_at, false)?];
        let are_seen = bounds.iter().all(|bound| stops.iter().all(|stop| times.at(bound.packet, stop.place).is_some()));
        are_seen.then_some(bounds)
    }
}

/// Acknowledgements let a sender go on, one after the other, or what it had sent queued: from its last segment to the last
/// of them, or to its next one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    pub stream: i32,
    pub start_at: i64,
    pub end_at: i64,
    pub place: usize,
    pub to_place: usize,
}

/// What was found so far.
#[derive(Debug, Default)]
pub struct Found {
    pub parts: Vec<Part>,
    pub paces: Vec<Pace>,
    pub crossings: Vec<Crossing>,
}

/// How the packets of one side went from a place to the next one that saw them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossing {
    pub stream: i32,
    pub by_client: bool,
    pub place: usize,
    pub to_place: usize,
    pub packets: i64,
    /// The shortest and the longest time under way, as the clocks show it.
    pub least_ns: i64,
    pub most_ns: i64,
}

/// A packet that begins or ends a turn.
#[derive(Clone, Copy)]
struct Bound {
    packet: i64,
    by_client: bool,
    at: i64,
}

/// Looks at one connection: its places in the order of positions, its place_packets in that of places and times.
pub fn watch(stops: &[Stop], seen: &[Sighting], lost: &HashSet<i64>, waits: &[Wait], found: &mut Found) {
    if let [.., before, last] = stops
        && let [first, next, ..] = stops
    {
        let old_len = found.crossings.len();
        cross(stops, seen, &mut found.crossings);
        for (by_client, here, there) in [(true, first, next), (false, last, before)] {
            let new = found.crossings.get(old_len..).unwrap_or_default();
            let way =
                |one: &&Crossing| (one.by_client, one.place, one.to_place) == (by_client, here.place, there.place);
            let mut paced = paces(here.stream, of_place(seen, here.place), by_client, [here.place, there.place]);
            if let Some(way) = new.iter().find(way) {
                queued(of_place(seen, here.place), of_place(seen, there.place), way, &mut paced);
            }
            found.paces.extend(joined(paced));
        }
    }
    let Some(own) = stops.iter().find(|stop| stop.tells) else { return };
    let turns = turns(own, stops.len() > 1, of_place(seen, own.place), lost);
    if let Some([at_server, at_client]) = own.ends {
        found.parts.extend(turns.iter().map(|(start, end)| {
            let kind = match (end.by_client, at_server, at_client) {
                (false, true, _) | (true, _, true) => "host",
                (false, false, _) => "behind",
                (true, _, false) => "before",
            };
            part(own, own.place, None, [start, end], [start.at, end.at], (kind, Some(0)))
        }));
        return;
    }
    let times = PacketTimes::new(stops, seen, lost);
    for (start, end) in &turns {
        divide(own, stops, &times, [start, end], &mut found.parts);
    }
    for one in waits {
        if let Some(bounds) = one.bounds(stops, &times, of_place(seen, own.place)) {
            let before = found.parts.len();
            divide(own, stops, &times, bounds.each_ref(), &mut found.parts);
            found.parts.iter_mut().skip(before).for_each(|part| part.exchange = Some(one.exchange));
        }
    }
}

/// Finds how long packets were under way between places.
fn cross(stops: &[Stop], seen: &[Sighting], found: &mut Vec<Crossing>) {
    let old_len = found.len();
    let order = |one: &Sighting| {
        let position = stops.iter().position(|stop| stop.place == one.place).unwrap_or_default();
        if one.by_client { position } else { stops.len() - position }
    };
    let mut of_packets: Vec<(i64, usize, &Sighting)> =
        seen.iter().filter_map(|one| Some((one.packet?, order(one), one))).collect();
    of_packets.sort_unstable_by_key(|(packet, order, one)| (*packet, *order, one.at));
    for (here, there) in of_packets.iter().zip(of_packets.iter().skip(1)) {
        let ((packet, _, here), (other, _, there)) = (here, there);
        if packet != other {
            continue;
        }
        let Sighting { by_client, place, .. } = **here;
        let ns = there.at.saturating_sub(here.at);
        let new = found.get_mut(old_len..).unwrap_or_default();
        match new.iter_mut().find(|one| (one.by_client, one.place, one.to_place) == (by_client, place, there.place)) {
            Some(one) => {
                one.packets += 1;
                one.least_ns = one.least_ns.min(ns);
                one.most_ns = one.most_ns.max(ns);
            }
            None => {
                let stream = stops.first().map_or(0, |stop| stop.stream);
                let to_place = there.place;
                found.push(Crossing { stream, by_client, place, to_place, packets: 1, least_ns: ns, most_ns: ns });
            }
        }
    }
}

/// The place_packets of one place.
fn of_place(seen: &[Sighting], place: usize) -> &[Sighting] {
    let from = seen.partition_point(|one| one.place < place);
    let to = seen.partition_point(|one| one.place <= place);
    seen.get(from..to).unwrap_or_default()
}

/// The first and last packets of each time that one side speaks, and what lies between two of them.
///
/// A lost datagram never comes again as it is (RFC 9000 section 13.3): nobody answered it. A lost segment does.
fn turns(own: &Stop, shared: bool, seen: &[Sighting], lost: &HashSet<i64>) -> Vec<(Bound, Bound)> {
    let spoken: Vec<Bound> = seen
        .iter()
        .filter(|one| {
            (one.says || own.ack_at == Some(one.at)) && (own.ends.is_some() || shared && one.packet.is_some())
        })
        .filter(|one| one.seq.is_some() || !lost.contains(&one.frame))
        .map(|one| Bound { packet: one.packet.unwrap_or(one.frame), by_client: one.by_client, at: one.at })
        .collect();
    let mut bounds = Vec::new();
    for run in spoken.chunk_by(|one, other| one.by_client == other.by_client) {
        match run {
            [one] => bounds.push(*one),
            [first, .., last] => bounds.extend([*first, *last]),
            [] => {}
        }
    }
    let pairs = bounds.iter().zip(bounds.iter().skip(1));
    pairs.filter(|(start, end)| end.at > start.at).map(|(start, end)| (*start, *end)).collect()
}

/// When places saw the packets of a connection.
struct PacketTimes<'a> {
    seen: &'a [Sighting],
    lost: &'a HashSet<i64>,
    /// Packets and places, and the times.
    packets: Vec<(i64, usize, i64)>,
    /// Sequence numbers were changed on the way: they do not say which bytes are the same.
    renumbered: bool,
    /// Where a packet is missing somewhere: frames with bytes, by whom, from which number on.
    begins: OnceCell<HashMap<i64, (bool, Option<i64>)>>,
    segments: OnceCell<Vec<Segment>>,
}

/// Bytes that a place saw of one sender.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Segment {
    place: usize,
    by_client: bool,
    seq: i64,
    bytes: i64,
    at: i64,
}

impl<'a> PacketTimes<'a> {
    fn new(stops: &[Stop], seen: &'a [Sighting], lost: &'a HashSet<i64>) -> Self {
        let mut packets: Vec<_> = seen.iter().filter_map(|one| Some((one.packet?, one.place, one.at))).collect();
        packets.sort_unstable();
        let differ = |side: fn(&Stop) -> Option<i64>| {
            let mut isns = stops.iter().filter_map(side);
            isns.next().is_some_and(|first| isns.any(|isn| isn != first))
        };
        let renumbered = differ(|stop| stop.isns[0]) || differ(|stop| stop.isns[1]);
        Self { seen, lost, packets, renumbered, begins: OnceCell::new(), segments: OnceCell::new() }
    }

    /// When a place saw a packet.
    fn at(&self, packet: i64, place: usize) -> Option<i64> {
        let from = self.packets.partition_point(|entry| (entry.0, entry.1) < (packet, place));
        let entry = self.packets.get(from).filter(|entry| (entry.0, entry.1) == (packet, place));
        entry.map(|entry| entry.2).or_else(|| self.by_bytes(packet, place))
    }

    /// Offloading may have cut or joined segments: a place saw a packet when it saw the first of its bytes.
    fn by_bytes(&self, packet: i64, place: usize) -> Option<i64> {
        if self.renumbered || self.lost.contains(&packet) {
            return None;
        }
        let begins = self.begins.get_or_init(|| {
            let carrying = self.seen.iter().filter(|one| one.bytes > 0);
            carrying.map(|one| (one.frame, (one.by_client, one.seq))).collect()
        });
        let &(by_client, seq) = begins.get(&packet)?;
        let seq = seq?;
        let segments = self.segments.get_or_init(|| self.laid());
        let after = segments.partition_point(|one| (one.place, one.by_client, one.seq) <= (place, by_client, seq));
        let segment = segments.get(after.checked_sub(1)?)?;
        let has = (segment.place, segment.by_client) == (place, by_client) && seq < segment.seq + segment.bytes;
        has.then_some(segment.at)
    }

    /// Of each place and sender, the numbers at which segments begin: the longest, and when the first one came.
    fn laid(&self) -> Vec<Segment> {
        let carrying = self.seen.iter().filter(|one| one.bytes > 0);
        let mut segments: Vec<Segment> = carrying
            .filter_map(|one| {
                let Sighting { place, by_client, at, .. } = *one;
                Some(Segment { place, by_client, seq: one.seq?, bytes: i64::from(one.bytes), at })
            })
            .collect();
        segments.sort_unstable();
        segments.dedup_by(|next, earlier| {
            let same = (next.place, next.by_client, next.seq) == (earlier.place, earlier.by_client, earlier.seq);
            if same {
                earlier.bytes = earlier.bytes.max(next.bytes);
                earlier.at = earlier.at.min(next.at);
            }
            same
        });
        segments
    }
}

/// A place behind, in the direction of a turn: when the turn came there and when it left.
struct Leg {
    place: usize,
    there_at: i64,
    left_at: i64,
    requested_at: i64,
}

/// Divides a turn by what the places behind saw. Who is waited for is behind the last of them.
fn divide(own: &Stop, stops: &[Stop], times: &PacketTimes<'_>, [start, end]: [&Bound; 2], parts: &mut Vec<Part>) {
    let alone = start.by_client == end.by_client;
    let own_at = stops.iter().position(|stop| stop.place == own.place).unwrap_or_default();
    let (before, behind) = stops.split_at(own_at);
    let here = behind.first();
    let behind: Vec<&Stop> =
        if end.by_client { here.into_iter().chain(before.iter().rev()).collect() } else { behind.iter().collect() };
    // No packet is before the one that caused it, and each place lies behind the one before it.
    let (mut latest_there, mut least_back) = (i64::MIN, i64::MAX);
    let mut legs: Vec<Leg> = Vec::new();
    for stop in behind {
        let (requested_at, answered_at) = (times.at(start.packet, stop.place), times.at(end.packet, stop.place));
        latest_there = latest_there.max(requested_at.map_or(start.at, |at| at.max(start.at)));
        let back_at = if alone {
            answered_at.zip(requested_at).map(|(answered_at, requested_at)| start.at + answered_at - requested_at)
        } else {
            answered_at
        };
        least_back = least_back.min(back_at.map_or(end.at, |at| at.min(end.at)));
        let there_at = if alone { start.at } else { latest_there.min(end.at) };
        if let (Some(requested_at), Some(_)) = (requested_at, answered_at) {
            let left_at = there_at.max(least_back.max(start.at));
            legs.push(Leg { place: stop.place, there_at, left_at, requested_at });
        }
    }
    let mut divided = Vec::new();
    for (leg, farther) in legs.iter().zip(legs.iter().skip(1)) {
        let ends = [leg.there_at, farther.there_at.min(farther.left_at)];
        divided.push(part(own, leg.place, Some(farther.place), [start, end], ends, ("path", None)));
        let ends = [farther.left_at, leg.left_at];
        divided.push(part(own, farther.place, Some(leg.place), [start, end], ends, ("path", None)));
    }
    if let Some(leg) = legs.last() {
        let ahead_ns = if alone { start.at - leg.requested_at } else { 0 };
        let ends = [leg.there_at, leg.left_at];
        divided.push(part(own, leg.place, None, [start, end], ends, ("host", Some(ahead_ns))));
    }
    parts.extend(divided.into_iter().filter(|part| part.end_at > part.start_at));
}

fn part(
    own: &Stop,
    place: usize,
    to_place: Option<usize>,
    [start, end]: [&Bound; 2],
    [start_at, end_at]: [i64; 2],
    (kind, ahead_ns): (&'static str, Option<i64>),
) -> Part {
    let alone = start.by_client == end.by_client;
    Part { stream: own.stream, exchange: None, start_at, end_at, kind, place, to_place, alone, ahead_ns }
}

/// Finds where a side that sends as soon as an acknowledgement comes had to wait for it, in the time of the nearest place.
fn paces(stream: i32, seen: &[Sighting], by_client: bool, [place, to_place]: [usize; 2]) -> Vec<Pace> {
    let mut found = Vec::new();
    let (mut sent_at, mut data_at) = (None, None);
    let mut before: Option<&Sighting> = None;
    for one in seen {
        let is_own = one.by_client == by_client;
        if let (true, Some(start_at), Some(ack)) = (is_own && one.bytes > 0, sent_at, before)
            && ack.by_client != by_client
            && ack.bytes == 0
            && one.at - ack.at <= AT_ONCE_NS
            && ack.at > start_at
            // Since its own last segment, nothing but acknowledgements came.
            && data_at.is_none_or(|data_at| data_at < start_at)
        {
            found.push(Pace { stream, start_at, end_at: ack.at, place, to_place });
        }
        if is_own {
            sent_at = Some(one.at);
        } else if one.bytes > 0 {
            data_at = Some(one.at);
        }
        before = Some(one);
    }
    found
}

/// Finds where a side paused while what it had sent queued on the way: sent at once, the next segment would have waited
/// in that queue, and come no earlier. Kernels pace what they send, some milliseconds behind the acknowledgements.
fn queued(here: &[Sighting], there: &[Sighting], way: &Crossing, found: &mut Vec<Pace>) {
    let arrivals: HashMap<i64, i64> = there.iter().filter_map(|one| Some((one.packet?, one.at))).collect();
    let mut sent_at = None;
    for one in here.iter().filter(|one| one.bytes > 0) {
        if one.by_client != way.by_client {
            // What follows answers it.
            sent_at = None;
            continue;
        }
        let arrived_at = one.packet.and_then(|packet| arrivals.get(&packet));
        if let (Some(start_at), Some(arrived_at)) = (sent_at.replace(one.at), arrived_at) {
            let (paused_ns, queued_ns) = (one.at - start_at, arrived_at - one.at - way.least_ns);
            if paused_ns > AT_ONCE_NS && queued_ns >= paused_ns {
                let Crossing { stream, place, to_place, .. } = *way;
                found.push(Pace { stream, start_at, end_at: one.at, place, to_place });
            }
        }
    }
}

/// Joins those that overlap or follow each other.
fn joined(mut paces: Vec<Pace>) -> Vec<Pace> {
    paces.sort_unstable_by_key(|pace| (pace.start_at, pace.end_at));
    let mut merged: Vec<Pace> = Vec::new();
    for next in paces {
        match merged.last_mut() {
            Some(pace) if next.start_at - pace.end_at <= AT_ONCE_NS => pace.end_at = pace.end_at.max(next.end_at),
            _ => merged.push(next),
        }
    }
    merged
}
