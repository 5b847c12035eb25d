//! The table of open flows, keyed by transport and both endpoints.
//!
//! Flows are numbered three times at once: `stream` in the order of their first packets, whatever the transport, and
//! `transport_stream` as Wireshark numbers `tcp.stream` and `udp.stream`, from 0 for each. Bounded: what is kept of
//! flows that have become rows is a hash each, and at most [`MAX_REMEMBERED`] of these.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};
use std::net::IpAddr;

use foldhash::fast::RandomState;

use crate::packet::Endpoint;
use crate::stream::{BySide, Side};

/// After this long it is looked at whether a closed connection can become rows (TIME-WAIT, RFC 9293 section 3.6.1).
const LINGER_NS: i64 = 30_000_000_000;
/// Closed connections that wait; more, and the oldest go at once.
const MAX_LINGERING: usize = 8_192;
/// Nobody expects an answer any more: routers forget UDP, too (RFC 4787 section 4.3: two minutes, not less).
const SILENCE_NS: i64 = 120_000_000_000;
/// UDP conversations that are kept at once, while nobody knows whether they go on.
const MAX_TALKING: usize = 1 << 16;
/// Flows that have become rows and are remembered, so that strays open no new one.
const MAX_REMEMBERED: usize = 1 << 20;

/// Endpoints from which one client goes on.
const MAX_ALIASES: usize = 64;

/// What carries the bytes of a flow.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Transport {
    Tcp,
    Udp,
}

impl Transport {
    /// The name in the `connections` table, and in front of `.stream` in Wireshark.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

/// Transport and both endpoints as one number that is the same for both directions.
///
/// A keyed hash of 64 bits instead of the 37 bytes it stands for: the index stays small enough for the processor's
/// cache. The key is drawn anew for every capture, so nobody can craft two that collide.
type Key = u64;

#[inline]
fn key(hasher: &RandomState, transport: Transport, a: Endpoint, b: Endpoint) -> Key {
    if let (IpAddr::V4(x), IpAddr::V4(y)) = (a.ip, b.ip) {
        let (x, y) =
            (u64::from(x.to_bits()) << 16 | u64::from(a.port), u64::from(y.to_bits()) << 16 | u64::from(b.port));
        return hasher.hash_one((x.min(y), x.max(y) | (transport as u64) << 48));
    }
    hasher.hash_one((transport, a.min(b), a.max(b)))
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

/// A flow: who talks with whom, its numbers, and what its owner keeps for it.
#[derive(Debug)]
pub struct Flow<T> {
    /// Number among all flows of the run.
    pub stream: i32,
    pub transport: Transport,
    /// Number among those of its transport.
    pub transport_stream: i32,
    pub ends: BySide<Endpoint>,
    pub content: T,
    key: Key,
    /// Time of the latest packet in the order of the capture: the longest silent flows go first.
    latest_at: i64,
    lingering: bool,
}

/// Where a packet belongs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Slot {
    /// An open flow, by its index, and who sent the packet.
    Open(usize, Side),
    /// No flow that is known.
    New,
    /// A flow that has become rows.
    Stray,
}

/// All open flows of a run.
#[derive(Debug)]
pub struct Table<T> {
    hasher: RandomState,
    /// Where the flows are that have not become rows: few, so that a look-up stays in the cache.
    index: HashMap<Key, usize, BuildHasherDefault<AsIs>>,
    flows: Vec<Option<Box<Flow<T>>>>,
    free: Vec<usize>,
    /// Closed flows by index and number, and since when.
    lingering: VecDeque<(usize, i32, i64)>,
    /// Of these, those of which something may still be on its way, and until when.
    settling: VecDeque<(usize, i32, i64)>,
    /// UDP conversations by index and number, and when they were last looked at.
    talking: VecDeque<(usize, i32, i64)>,
    /// Flows that have become rows, with their numbers among those of their transport, and in which order.
    ended: HashMap<Key, i32, BuildHasherDefault<AsIs>>,
    ended_order: VecDeque<Key>,
    /// Other endpoints from which clients of open flows went on, by index.
    aliases: HashMap<usize, Vec<Key>>,
    next_stream: i32,
    next_tcp: i32,
    next_udp: i32,
    max_open: usize,
}

impl<T> Table<T> {
    /// Room for `max_open` flows.
    #[must_use]
    pub fn new(max_open: usize) -> Self {
        Self {
            hasher: RandomState::default(),
            index: HashMap::default(),
            flows: Vec::new(),
            free: Vec::new(),
            lingering: VecDeque::new(),
            settling: VecDeque::new(),
            talking: VecDeque::new(),
            ended: HashMap::default(),
            ended_order: VecDeque::new(),
            aliases: HashMap::new(),
            next_stream: 0,
            next_tcp: 0,
            next_udp: 0,
            max_open,
        }
    }

    /// Finds the flow of a packet that was captured `now`.
    #[inline]
    pub fn locate(&mut self, transport: Transport, source: Endpoint, destination: Endpoint, now: i64) -> Slot {
        let key = key(&self.hasher, transport, source, destination);
        let Some(&index) = self.index.get(&key) else {
            return if self.ended.contains_key(&key) { Slot::Stray } else { Slot::New };
        };
        let Some(flow) = self.flow(index) else { return Slot::Stray };
        flow.latest_at = now;
        let BySide { client, server } = &flow.ends;
        // Nearly always the ports tell, which are compared much faster than addresses.
        let is_client = if source.port == client.port {
            client.port != server.port || source.ip == client.ip
        } else {
            // The client may go on from elsewhere.
            source.port != server.port || source.ip != server.ip
        };
        Slot::Open(index, if is_client { Side::Client } else { Side::Server })
    }

    /// Opens a flow, which must not be open; returns its index.
    pub fn open(&mut self, transport: Transport, ends: BySide<Endpoint>, now: i64, content: T) -> usize {
        let key = key(&self.hasher, transport, ends.client, ends.server);
        let (counted, remembered) = match transport {
            Transport::Tcp => (&mut self.next_tcp, None),
            // UDP has no beginning either: what goes on after a silence keeps its number.
            Transport::Udp => (&mut self.next_udp, self.ended.get(&key)),
        };
        let stream = self.next_stream;
        self.next_stream = self.next_stream.saturating_add(1);
        let transport_stream = remembered.copied().unwrap_or(*counted);
        *counted = counted.saturating_add(i32::from(remembered.is_none()));
        let flow = Box::new(Flow {
            stream,
            transport,
            transport_stream,
            ends,
            content,
            key,
            latest_at: now,
            lingering: false,
        });
        let index = self.free.pop().unwrap_or(self.flows.len());
        match self.flows.get_mut(index) {
            Some(slot) => *slot = Some(flow),
            None => self.flows.push(Some(flow)),
        }
        self.index.insert(key, index);
        if transport == Transport::Udp {
            self.talking.push_back((index, stream, now));
        }
        index
    }

    /// The client of that flow goes on from another endpoint; false when it has done so too often.
    pub fn go_on(&mut self, index: usize, source: Endpoint, destination: Endpoint, now: i64) -> bool {
        let Some(flow) = self.flow(index) else { return false };
        flow.latest_at = now;
        let transport = flow.transport;
        let key = key(&self.hasher, transport, source, destination);
        let aliases = self.aliases.entry(index).or_default();
        if aliases.len() >= MAX_ALIASES {
            return false;
        }
        aliases.push(key);
        self.index.insert(key, index);
        // Wireshark counts it as another conversation.
        self.next_udp = self.next_udp.saturating_add(1);
        true
    }

    /// The flow of that index.
    #[inline]
    pub fn flow(&mut self, index: usize) -> Option<&mut Flow<T>> {
        self.flows.get_mut(index)?.as_deref_mut()
    }

    /// The flows that have not become rows.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Flow<T>> {
        self.flows.iter_mut().filter_map(Option::as_deref_mut)
    }

    /// Takes a flow out of the table: it becomes rows.
    pub fn remove(&mut self, index: usize) -> Option<Box<Flow<T>>> {
        let flow = self.flows.get_mut(index)?.take()?;
        self.free.push(index);
        self.index.remove(&flow.key);
        for alias in self.aliases.remove(&index).into_iter().flatten() {
            self.index.remove(&alias);
        }
        if self.ended.insert(flow.key, flow.transport_stream).is_none() {
            self.ended_order.push_back(flow.key);
        }
        if self.ended_order.len() > MAX_REMEMBERED
            && let Some(oldest) = self.ended_order.pop_front()
        {
            self.ended.remove(&oldest);
        }
        Some(flow)
    }

    /// The flow is closed: it only waits for stray packets, and, where it `settles_at` some time, for what is still on
    /// its way.
    pub fn linger(&mut self, index: usize, now: i64, settles_at: Option<i64>) {
        if let Some(flow) = self.flows.get_mut(index).and_then(Option::as_deref_mut)
            && !flow.lingering
        {
            flow.lingering = true;
            self.lingering.push_back((index, flow.stream, now));
            if let Some(settles_at) = settles_at {
                self.settling.push_back((index, flow.stream, settles_at));
            }
        }
    }

    /// The index of a closed flow of which nothing is on its way any more, once, if there is one: at the time that was
    /// given, or when those that were closed before it have settled.
    #[inline]
    pub fn settled(&mut self, now: i64) -> Option<usize> {
        while let Some(&(index, stream, settles_at)) = self.settling.front() {
            if now < settles_at {
                return None;
            }
            self.settling.pop_front();
            if self.flow(index).is_some_and(|flow| flow.stream == stream) {
                return Some(index);
            }
        }
        None
    }

    /// A closed flow whose time is over, if there is one. `lingers_until` is asked once more until when it waits for
    /// packets that are its own, `None` where it is not closed: what was refused may have been opened after all.
    #[inline]
    pub fn expired(&mut self, now: i64, lingers_until: impl Fn(&T) -> Option<i64>) -> Option<Box<Flow<T>>> {
        while let Some(&(index, stream, since)) = self.lingering.front() {
            let are_many = self.lingering.len() > MAX_LINGERING;
            if now - since < LINGER_NS && !are_many {
                return None;
            }
            self.lingering.pop_front();
            let Some(flow) = self.flow(index).filter(|flow| flow.stream == stream) else { continue };
            match lingers_until(&flow.content) {
                None => flow.lingering = false,
                // It still says something, or a FIN may be sent again.
                Some(until) if now < until && !are_many => self.lingering.push_back((index, stream, now)),
                Some(_) => return self.remove(index),
            }
        }
        None
    }

    /// A UDP conversation in which nobody has said anything for long, if there is one; where there are many (a name
    /// server has one for each query), since it was last looked at.
    #[inline]
    pub fn silent(&mut self, now: i64) -> Option<Box<Flow<T>>> {
        while let Some(&(index, stream, since)) = self.talking.front() {
            let are_many = self.talking.len() > MAX_TALKING;
            if now - since < SILENCE_NS && !are_many {
                return None;
            }
            self.talking.pop_front();
            let Some(flow) = self.flow(index).filter(|flow| flow.stream == stream) else { continue };
            let latest_at = flow.latest_at;
            if now - latest_at >= SILENCE_NS || are_many && latest_at <= since {
                return self.remove(index);
            }
            self.talking.push_back((index, stream, latest_at));
        }
        None
    }

    /// Are too many open?
    #[inline]
    #[must_use]
    pub fn overflows(&self) -> bool {
        self.index.len() > self.max_open
    }

    /// Flows that must go because too many are open: the longest silent eighth.
    #[cold]
    pub fn overflow(&mut self) -> Vec<Box<Flow<T>>> {
        let mut silent: Vec<(i64, usize)> = (self.flows.iter().enumerate())
            .filter_map(|(index, flow)| flow.as_deref().map(|flow| (flow.latest_at, index)))
            .collect();
        let least = (self.max_open / 8).min(silent.len().saturating_sub(1));
        if !silent.is_empty() {
            silent.select_nth_unstable(least);
        }
        silent.truncate(least + 1);
        silent.sort_unstable();
        silent.into_iter().filter_map(|(_, index)| self.remove(index)).collect()
    }

    /// Takes every flow that is still there, in the order of their numbers, and forgets those that were.
    pub fn drain(&mut self) -> Vec<Box<Flow<T>>> {
        let mut rest: Vec<_> = self.flows.drain(..).flatten().collect();
        rest.sort_unstable_by_key(|flow| flow.stream);
        self.index.clear();
        self.aliases.clear();
        self.free.clear();
        self.lingering.clear();
        self.settling.clear();
        self.talking.clear();
        self.ended.clear();
        self.ended_order.clear();
        rest
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::cast_possible_truncation)]
    use super::*;

    const CLIENT: Endpoint = Endpoint { ip: IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)), port: 50_000 };
    const SERVER: Endpoint = Endpoint { ip: IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2)), port: 443 };
    const ENDS: BySide<Endpoint> = BySide { client: CLIENT, server: SERVER };

    fn other(port: u16) -> BySide<Endpoint> {
        BySide { client: Endpoint { port, ..CLIENT }, server: SERVER }
    }

    #[test]
    fn each_transport_counts_for_itself_and_streams_are_unique() {
        let mut table = Table::new(10);
        assert_eq!(table.locate(Transport::Udp, CLIENT, SERVER, 0), Slot::New);
        let opened = [Transport::Udp, Transport::Tcp].map(|transport| table.open(transport, ENDS, 0, ()));
        let third = table.open(Transport::Tcp, other(7), 0, ());
        let numbers = [opened[0], opened[1], third].map(|index| {
            let flow = table.flow(index).map(|flow| (flow.stream, flow.transport, flow.transport_stream));
            flow.unwrap_or((-1, Transport::Tcp, -1))
        });
        assert_eq!(numbers, [(0, Transport::Udp, 0), (1, Transport::Tcp, 0), (2, Transport::Tcp, 1)]);
        assert_eq!(table.locate(Transport::Udp, SERVER, CLIENT, 1), Slot::Open(opened[0], Side::Server));
        assert_eq!(table.locate(Transport::Tcp, CLIENT, SERVER, 1), Slot::Open(opened[1], Side::Client));
    }

    #[test]
    fn a_packet_of_a_flow_that_became_rows_is_a_stray() {
        let mut table = Table::new(10);
        let index = table.open(Transport::Tcp, ENDS, 0, Some(0));
        table.linger(index, 0, None);
        assert!(table.expired(LINGER_NS - 1, |until| *until).is_none());
        assert!(table.expired(LINGER_NS, |until| *until).is_some());
        assert_eq!(table.locate(Transport::Tcp, SERVER, CLIENT, LINGER_NS), Slot::Stray);
        assert_eq!(table.locate(Transport::Udp, SERVER, CLIENT, LINGER_NS), Slot::New);
    }

    #[test]
    fn a_closed_flow_settles_once_unless_it_is_spent_or_has_become_rows() {
        let mut table = Table::new(10);
        let [first, spent, ended] = [1, 2, 3].map(|port| table.open(Transport::Tcp, other(port), 0, ()));
        for (index, settles_at) in [(first, Some(5)), (first, Some(6)), (spent, None), (ended, Some(5))] {
            table.linger(index, 0, settles_at);
        }
        table.remove(ended);
        assert_eq!([4, 5, 9].map(|now| table.settled(now)), [None, Some(first), None]);
    }

    #[test]
    fn a_flow_that_was_opened_after_all_does_not_expire() {
        let mut table = Table::new(10);
        let index = table.open(Transport::Tcp, ENDS, 0, Some(0));
        table.linger(index, 0, None);
        table.flow(index).into_iter().for_each(|flow| flow.content = None);
        assert!(table.expired(2 * LINGER_NS, |until| *until).is_none());
        assert_eq!(table.locate(Transport::Tcp, CLIENT, SERVER, 2 * LINGER_NS), Slot::Open(index, Side::Client));
    }

    #[test]
    fn a_closed_flow_that_still_says_something_waits_on() {
        let mut table = Table::new(10);
        let index = table.open(Transport::Tcp, ENDS, 0, Some(LINGER_NS + 1));
        table.linger(index, 0, None);
        assert!(table.expired(LINGER_NS, |until| *until).is_none());
        assert!(table.expired(2 * LINGER_NS, |until| *until).is_some());
    }

    #[test]
    fn what_goes_on_after_a_silence_keeps_its_number() {
        let mut table = Table::new(10);
        let first = table.open(Transport::Udp, ENDS, 0, ());
        table.open(Transport::Udp, other(7), 0, ());
        table.locate(Transport::Udp, CLIENT, SERVER, SILENCE_NS - 1);
        let gone: Vec<i32> = std::iter::from_fn(|| table.silent(SILENCE_NS)).map(|flow| flow.stream).collect();
        assert_eq!((gone, table.flow(first).map(|flow| flow.stream)), (vec![1], Some(0)));
        assert!(table.silent(3 * SILENCE_NS).is_some());
        assert_eq!(table.locate(Transport::Udp, SERVER, CLIENT, 3 * SILENCE_NS), Slot::Stray);
        let again = table.open(Transport::Udp, ENDS, 3 * SILENCE_NS, ());
        let numbers = table.flow(again).map(|flow| (flow.stream, flow.transport_stream));
        assert_eq!(numbers, Some((2, 0)));
        let next = table.open(Transport::Udp, other(8), 3 * SILENCE_NS, ());
        assert_eq!(table.flow(next).map(|flow| flow.transport_stream), Some(2));
    }

    #[test]
    fn of_many_conversations_those_that_said_nothing_more_go_first() {
        let mut table = Table::new(1 << 18);
        let port = |number: usize| BySide { client: Endpoint { port: number as u16, ..CLIENT }, server: SERVER };
        for number in 0..=MAX_TALKING {
            let server = Endpoint { port: 53 + (number >> 16) as u16, ..SERVER };
            table.open(Transport::Udp, BySide { server, ..port(number) }, 0, ());
        }
        table.locate(Transport::Udp, port(0).client, Endpoint { port: 53, ..SERVER }, 1);
        let gone: Vec<i32> = std::iter::from_fn(|| table.silent(2)).map(|flow| flow.stream).collect();
        assert_eq!(gone, [1]);
    }

    #[test]
    fn the_longest_silent_go_when_too_many_are_open() {
        let mut table = Table::new(8);
        for port in 0..9 {
            table.open(Transport::Udp, other(port), i64::from(port), ());
        }
        assert!(table.overflows());
        table.locate(Transport::Udp, other(0).client, SERVER, 100);
        let gone: Vec<u16> = table.overflow().iter().map(|flow| flow.ends.client.port).collect();
        assert_eq!(gone, [1, 2]);
        assert!(!table.overflows());
    }
}
