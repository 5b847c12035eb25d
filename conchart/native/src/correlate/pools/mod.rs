//! What there was beside a connection when it was opened and when it ended: connections of pools in, their surroundings out.
//!
//! A pool is what a client could have used instead: its connections to a server, by a name. Whether an opening was needless
//! is told by how many of them were open, or idle after an answer, at that instant, and by which was closed last. One sweep
//! over what happened in each pool, in the order of time. No IO, no clock.

pub(crate) mod judging;
pub(crate) mod rows;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

/// A connection of a pool. Instants are ns since the epoch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Member {
    /// Its row's key.
    pub stream: i32,
    /// Hash of the client's and the server's address, and the server's port.
    pub ends: u64,
    /// Hash of these and the name.
    pub pool: u64,
    /// First SYN.
    pub syn_at: i64,
    /// It could be used; None of one that never could.
    pub ready_at: Option<i64>,
    /// First FIN or RST.
    pub closing_at: Option<i64>,
    /// Last packet.
    pub closed_at: i64,
    /// It carried requests that want an answer, the first of them with this number.
    pub first_exchange: Option<i32>,
    /// It carries several requests at a time, and is never idle in this sense.
    pub multiplexed: bool,
}

impl Member {
    /// When it ceases to be open.
    fn ended_at(&self) -> i64 {
        self.closing_at.unwrap_or(self.closed_at)
    }

    /// It is busy while it is asked something, and idle from the answer on.
    fn rests(&self) -> bool {
        self.ready_at.is_some() && !self.multiplexed
    }

    /// What happens to it, by how much more connections are open and idle from then on.
    fn happens(&self, index: usize, at: i64, event: Event, opened: i32, idle: i32) -> Happened {
        Happened { pool: self.pool, at, event, stream: self.stream, index, opened, idle }
    }
}

/// An exchange on a connection of a pool.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Its connection.
    pub stream: i32,
    /// Its place on the connection.
    pub number: i32,
    /// First byte of the request.
    pub request_at: Option<i64>,
    /// Last byte of the response.
    pub response_done_at: Option<i64>,
}

/// What there was beside a connection.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Surroundings {
    /// Its place among those with the same ends, from 0.
    pub place: i32,
    /// Others of its pool that were open when it was opened.
    pub open_before: i32,
    /// Others that were idle then.
    pub idle_before: i32,
    /// Others that were idle when it ended.
    pub idle_left: i32,
    /// How many that were used were there, with it; what was never used counts as one.
    pub at_once: i32,
    /// There had been as many before: kept, one of them could have served.
    pub again: bool,
    /// Of its pool, the last one that was closed before it was opened.
    pub previous: Option<i32>,
}

/// Gives the surroundings of each connection, in their order.
#[must_use]
pub fn survey(members: &[Member], requests: &[Request]) -> Vec<Surroundings> {
    let mut found = vec![Surroundings { at_once: 1, ..Surroundings::default() }; members.len()];
    number_places(members, &mut found);
    count_open(members, requests, &mut found);
    count_used(members, &mut found);
    find_previous(members, &mut found);
    found
}

fn number_places(members: &[Member], found: &mut [Surroundings]) {
    let mut order: Vec<_> = members.iter().zip(found).collect();
    order.sort_unstable_by_key(|(member, _)| (member.ends, member.syn_at, member.stream));
    for same in order.chunk_by_mut(|(one, _), (other, _)| one.ends == other.ends) {
        for (place, (_, surroundings)) in (0..).zip(same) {
            surroundings.place = place;
        }
    }
}

/// What happens at one instant, in this order.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
enum Event {
    /// A SYN.
    Opening,
    /// The end of a connection.
    End,
    /// It can be used, is asked, has answered.
    Change,
}

struct Happened {
    pool: u64,
    at: i64,
    event: Event,
    stream: i32,
    /// Index of the connection.
    index: usize,
    opened: i32,
    idle: i32,
}

fn count_open(members: &[Member], requests: &[Request], found: &mut [Surroundings]) {
    let mut happened = Vec::with_capacity(3 * members.len() + 2 * requests.len());
    for (index, member) in members.iter().enumerate() {
        happened.push(member.happens(index, member.syn_at, Event::Opening, 0, 0));
        if let Some(ready_at) = member.ready_at {
            let idle = i32::from(member.first_exchange.is_some() && !member.multiplexed);
            happened.push(member.happens(index, ready_at, Event::Change, 1, 0));
            happened.push(member.happens(index, member.ended_at(), Event::End, -1, -idle));
        }
    }
    let places: HashMap<i32, usize> = (0..).zip(members).map(|(index, member)| (member.stream, index)).collect();
    for request in requests {
        let Some(&index) = places.get(&request.stream) else { continue };
        let Some(member) = members.get(index).filter(|member| member.rests()) else { continue };
        let later = member.first_exchange.is_some_and(|first| request.number > first);
        if request.request_at.is_none() && member.first_exchange != Some(request.number) {
            continue; // nobody asked (MySQL's greeting, a message of a channel): it is as busy or idle as before
        }
        let ended_at = member.ended_at();
        if let Some(request_at) = request.request_at.filter(|_| later) {
            if request_at > ended_at {
                continue; // written onto a connection that was over: it never was busy with it
            }
            happened.push(member.happens(index, request_at, Event::Change, 0, -1));
        }
        let done_at = request.response_done_at.map_or(ended_at, |done_at| done_at.min(ended_at));
        happened.push(member.happens(index, done_at, Event::Change, 0, 1));
    }
    happened.sort_unstable_by_key(|one| (one.pool, one.at, one.event, one.stream));
    for of_pool in happened.chunk_by(|one, other| one.pool == other.pool) {
        let (mut open, mut idle) = (0_i32, 0_i32);
        for one in of_pool {
            match (one.event, found.get_mut(one.index)) {
                (Event::Opening, Some(surroundings)) => {
                    (surroundings.open_before, surroundings.idle_before) = (open.max(0), idle.max(0))
                }
                (Event::End, Some(surroundings)) => surroundings.idle_left = (idle - 1).max(0),
                _ => {}
            }
            open += one.opened;
            idle += one.idle;
        }
    }
}

/// How many that were used there were at a time, from their first SYN on: kept, so many would have served whoever came later.
fn count_used(members: &[Member], found: &mut [Surroundings]) {
    let mut steps = Vec::with_capacity(2 * members.len());
    for (index, member) in members.iter().enumerate().filter(|(_, member)| member.first_exchange.is_some()) {
        steps.push((member.pool, member.syn_at, 1_i32, member.stream, index));
        steps.extend(member.closing_at.map(|closing_at| (member.pool, closing_at, -1, member.stream, index)));
    }
    steps.sort_unstable();
    for of_pool in steps.chunk_by(|one, other| one.0 == other.0) {
        let (mut n, mut most) = (0_i32, None);
        for &(_, _, step, _, index) in of_pool {
            n += step;
            if let Some(surroundings) = found.get_mut(index).filter(|_| step > 0) {
                (surroundings.at_once, surroundings.again) = (n, most.is_some_and(|most| n <= most));
            }
            most = most.max(Some(n));
        }
    }
}

fn find_previous(members: &[Member], found: &mut [Surroundings]) {
    // At one instant, what closes was closed before what opens.
    let mut order = Vec::with_capacity(2 * members.len());
    for (index, member) in members.iter().enumerate() {
        order.push((member.pool, member.syn_at, true, member.stream, index));
        order.extend(member.closing_at.map(|closing_at| (member.pool, closing_at, false, member.stream, index)));
    }
    order.sort_unstable();
    for of_pool in order.chunk_by(|one, other| one.0 == other.0) {
        let mut last = None;
        for &(_, _, opens, stream, index) in of_pool {
            if !opens {
                last = Some(stream);
            } else if let Some(surroundings) = found.get_mut(index) {
                surroundings.previous = last.filter(|&last| last != stream);
            }
        }
    }
}
