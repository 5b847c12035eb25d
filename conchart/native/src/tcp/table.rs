//! Finds the connection that a packet belongs to, by 4-tuple and initial sequence number.
//!
//! Streams are numbered as Wireshark numbers `tcp.stream`: a new one for every new 4-tuple, and for
//! a SYN whose sequence number differs from that of the connection it would otherwise join.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};
use std::net::IpAddr;

use foldhash::fast::RandomState;

use super::connection::Connection;
use crate::packet::{Endpoint, Segment};
use crate::stream::{Moment, Side};

/// After this long it is looked at again whether a closed connection has become rows (TIME-WAIT, RFC 9293).
const LINGER_NS: i64 = 30_000_000_000;
/// Closed connections that wait; more, and the oldest go at once.
const MAX_LINGERING: usize = 8_192;
/// 4-tuples of ended connections that are remembered, so that strays open no new stream.
const MAX_REMEMBERED: usize = 1 << 20;

/// Both ends of a connection as one number that is the same for both directions.
///
/// A keyed hash of 64 bits instead of the 36 bytes it stands for: the index stays small enough for the
/// processor's cache. The key is drawn anew for every capture, so nobody can craft two that collide.
type Key = u64;

fn key(hasher: &RandomState, a: Endpoint, b: Endpoint) -> Key {
    let (low, high) = if a <= b { (a, b) } else { (b, a) };
    match (low.ip, high.ip) {
        (IpAddr::V4(x), IpAddr::V4(y)) => hasher.hash_one((
            u64::from(x.to_bits()) << 32 | u64::from(y.to_bits()),
            u32::from(low.port) << 16 | u32::from(high.port),
        )),
        _ => hasher.hash_one((low, high)),
    }
}

/// Keys are hashes already.
#[derive(Clone, Copy, Debug, Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }
    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

/// A connection, its number, and what the later stages keep for it.
#[derive(Debug)]
pub struct Flow<T> {
    pub stream: i32,
    key: Key,
    pub tcp: Connection,
    pub above: T,
    lingering: bool,
}

/// Where a packet belongs.
#[derive(Debug)]
pub enum Slot<T> {
    /// An open connection, or one that just began; and who sent the packet.
    Open(usize, Side),
    /// A new connection on the 4-tuple of an old one, which is over.
    Reused(Box<Flow<T>>, usize, Side),
    /// A stray packet of a connection that has already become rows.
    Ended,
}

/// All open connections of a capture.
#[derive(Debug)]
pub struct Table<T> {
    hasher: RandomState,
    /// Where the connections are that have not become rows: few, so that a look-up stays in the cache.
    index: HashMap<Key, usize, BuildHasherDefault<AsIs>>,
    flows: Vec<Option<Box<Flow<T>>>>,
    free: Vec<usize>,
    lingering: VecDeque<(usize, i32, i64)>,
    /// 4-tuples whose connection has become rows, and in which order.
    ended: HashSet<Key, BuildHasherDefault<AsIs>>,
    ended_order: VecDeque<Key>,
    next_stream: i32,
    open: usize,
    max_open: usize,
}

impl<T: Default> Table<T> {
    /// Room for `max_open` connections.
    #[must_use]
    pub fn new(max_open: usize) -> Self {
        Self {
            hasher: RandomState::default(),
            index: HashMap::default(),
            flows: Vec::new(),
            free: Vec::new(),
            lingering: VecDeque::new(),
            ended: HashSet::default(),
            ended_order: VecDeque::new(),
            next_stream: 0,
            open: 0,
            max_open,
        }
    }

    /// Finds or opens the connection of `segment`. `client` tells who is the client when no SYN does.
    pub fn locate(
        &mut self,
        segment: &Segment<'_>,
        seen: Moment,
        client: impl FnOnce(&Segment<'_>) -> Side,
    ) -> Slot<T> {
        let key = key(&self.hasher, segment.source, segment.destination);
        let is_syn = segment.flags.syn() && !segment.flags.ack();
        match self.index.get(&key).copied() {
            Some(at) => {
                let Some(flow) = self.flows.get(at).and_then(Option::as_deref) else {
                    return Slot::Ended;
                };
                let from = side_of(&flow.tcp, segment);
                if !flow.tcp.is_other_incarnation(from, segment) {
                    return Slot::Open(at, from);
                }
                match self.remove(at) {
                    Some(old) => {
                        let (at, from) = self.open(key, segment, seen, client);
                        Slot::Reused(old, at, from)
                    }
                    None => Slot::Ended,
                }
            }
            None if !is_syn && self.ended.contains(&key) => Slot::Ended,
            None => {
                let (at, from) = self.open(key, segment, seen, client);
                Slot::Open(at, from)
            }
        }
    }

    /// The flow in a slot that `locate` returned.
    pub fn flow(&mut self, at: usize) -> Option<&mut Flow<T>> {
        self.flows.get_mut(at)?.as_deref_mut()
    }

    /// The connection is closed: it only waits for stray packets.
    pub fn linger(&mut self, at: usize, now: i64) {
        if let Some(flow) = self.flows.get_mut(at).and_then(Option::as_deref_mut)
            && !flow.lingering
        {
            flow.lingering = true;
            self.lingering.push_back((at, flow.stream, now));
        }
    }

    /// A connection whose time is over, if there is one.
    pub fn expired(&mut self, now: i64) -> Option<Box<Flow<T>>> {
        while let Some(&(at, stream, since)) = self.lingering.front() {
            if now - since < LINGER_NS && self.lingering.len() <= MAX_LINGERING {
                return None;
            }
            self.lingering.pop_front();
            let same = self.flows.get_mut(at).and_then(Option::as_deref_mut).filter(|flow| flow.stream == stream);
            match same {
                // Refused at first, and then opened after all.
                Some(flow) if !flow.tcp.is_closed() => flow.lingering = false,
                // It still says something, or a FIN may be sent again.
                Some(flow) if now < flow.tcp.lingers_until() && self.lingering.len() < MAX_LINGERING => {
                    self.lingering.push_back((at, stream, now));
                }
                Some(_) => return self.remove(at),
                None => {}
            }
        }
        None
    }

    /// Are too many open?
    pub fn overflows(&self) -> bool {
        self.open > self.max_open
    }

    /// Connections that must go because too many are open: the longest silent eighth.
    #[cold]
    pub fn overflow(&mut self) -> Vec<Box<Flow<T>>> {
        let mut ages: Vec<(i64, usize)> = (self.flows.iter().enumerate())
            .filter_map(|(at, flow)| flow.as_deref().map(|flow| (flow.tcp.last.at, at)))
            .collect();
        let least = (self.max_open / 8).min(ages.len().saturating_sub(1));
        if !ages.is_empty() {
            ages.select_nth_unstable(least);
        }
        ages.truncate(least + 1);
        ages.sort_unstable();
        ages.into_iter().filter_map(|(_, at)| self.remove(at)).collect()
    }

    /// Takes every connection that is still there, in the order of their numbers.
    pub fn drain(&mut self) -> Vec<Box<Flow<T>>> {
        let mut rest: Vec<_> = self.flows.drain(..).flatten().collect();
        rest.sort_unstable_by_key(|flow| flow.stream);
        self.index.clear();
        self.free.clear();
        self.lingering.clear();
        self.ended.clear();
        self.ended_order.clear();
        self.open = 0;
        rest
    }

    fn open(
        &mut self,
        key: Key,
        segment: &Segment<'_>,
        seen: Moment,
        client: impl FnOnce(&Segment<'_>) -> Side,
    ) -> (usize, Side) {
        let from = match (segment.flags.syn(), segment.flags.ack()) {
            (true, false) => Side::Client,
            (true, true) => Side::Server,
            (false, _) => client(segment),
        };
        let (client, server) = match from {
            Side::Client => (segment.source, segment.destination),
            Side::Server => (segment.destination, segment.source),
        };
        let flow = Box::new(Flow {
            stream: self.next_stream,
            key,
            tcp: Connection::new(client, server, seen),
            above: T::default(),
            lingering: false,
        });
        self.next_stream = self.next_stream.saturating_add(1);
        self.open += 1;
        let at = self.free.pop().unwrap_or(self.flows.len());
        match self.flows.get_mut(at) {
            Some(slot) => *slot = Some(flow),
            None => self.flows.push(Some(flow)),
        }
        self.index.insert(key, at);
        (at, from)
    }

    fn remove(&mut self, at: usize) -> Option<Box<Flow<T>>> {
        let flow = self.flows.get_mut(at)?.take()?;
        self.free.push(at);
        self.open -= 1;
        self.index.remove(&flow.key);
        if self.ended.insert(flow.key) {
            self.ended_order.push_back(flow.key);
        }
        if self.ended_order.len() > MAX_REMEMBERED
            && let Some(oldest) = self.ended_order.pop_front()
        {
            self.ended.remove(&oldest);
        }
        Some(flow)
    }
}

fn side_of(tcp: &Connection, segment: &Segment<'_>) -> Side {
    if segment.source == tcp.ends.client { Side::Client } else { Side::Server }
}
