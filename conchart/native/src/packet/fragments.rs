//! Puts fragmented IP packets together (RFC 791 section 3.2, RFC 8200 section 4.5).
//!
//! In: fragments with their moments. Out: the whole packet, when its last piece to arrive does. Memory is bounded as in
//! a receiver: 30 s, and what Linux allows. Pieces that overlap spoil their packet: IPv6 forbids them (RFC 5722), and
//! today's kernels drop them for IPv4 too, so no receiver had the data. A piece that is there already is a copy.
//!
//! Where the snap length cut pieces, the packet is whole by its headers, and its bytes end at the first that is missing.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

use super::Station;
use super::ip::IpPacket;
use crate::stream::Arrival;

/// Linux' `ipfrag_time`.
const TIMEOUT_NS: i64 = 30_000_000_000;
/// Linux' `ipfrag_high_thresh`.
const MAX_BYTES: usize = 4 << 20;
const MAX_DATAGRAMS: usize = 4_096;
/// What a piece costs besides its bytes.
const PIECE_BYTES: usize = 64;
/// A piece of a packet that was whole this long ago is another capture of it; later, the number is used again.
const COPY_NS: u64 = 1_000_000;
/// The longest IP packet that can be sent in pieces.
const MAX_LEN: u32 = 65_535;

/// A part of an IP packet.
#[derive(Clone, Copy, Debug)]
pub struct Fragment<'a> {
    station: Station,
    packet: IpPacket,
    protocol: u8,
    id: u32,
    offset: u32,
    len: u32,
    more: bool,
    bytes: &'a [u8],
}

impl<'a> Fragment<'a> {
    /// `packet` says where the part is in `frame`; `offset` is its place in the whole, in bytes.
    pub(super) fn new(frame: &'a [u8], packet: IpPacket, protocol: u8, id: u32, offset: u16, more: bool) -> Self {
        let bytes = frame.get(packet.offset..).unwrap_or_default();
        let bytes = bytes.get(..packet.len).unwrap_or(bytes);
        let len = u32::try_from(packet.len).unwrap_or(u32::MAX);
        Self { station: Station::default(), packet, protocol, id, offset: offset.into(), len, more, bytes }
    }

    pub(super) fn sent_by(self, station: Station) -> Self {
        Self { station, ..self }
    }

    fn key(&self) -> Key {
        let IpPacket { source, destination, .. } = self.packet;
        // IPv6 counts one identification for all protocols; later pieces may name another.
        let protocol = if source.is_ipv4() { self.protocol } else { 0 };
        Key { source, destination, id: self.id, protocol }
    }
}

/// A packet that was put together.
#[derive(Debug)]
pub struct Reassembled {
    station: Station,
    packet: IpPacket,
    protocol: u8,
    bytes: Vec<u8>,
    /// How many frames it came in.
    pub frames: i64,
}

impl Reassembled {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
    /// Who sent the piece at offset 0.
    pub(super) fn station(&self) -> Station {
        self.station
    }
    pub(super) fn packet(&self) -> IpPacket {
        self.packet
    }
    pub(super) fn protocol(&self) -> u8 {
        self.protocol
    }
}

/// A packet of which not all arrived, or which its pieces spoiled.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Incomplete {
    /// When its first piece did.
    pub opened: Arrival,
    pub source: IpAddr,
    pub destination: IpAddr,
    pub frames: i64,
    /// UDP may be anything; what else is kept here would have been TCP, or a tunnel.
    pub is_udp: bool,
}

/// What became of a fragment.
#[derive(Debug)]
pub enum Placed {
    /// Others are missing.
    Waiting,
    /// Another capture of one that is there.
    Copy,
    Whole(Reassembled),
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct Key {
    source: IpAddr,
    destination: IpAddr,
    id: u32,
    protocol: u8,
}

#[derive(Debug)]
struct Piece {
    offset: u32,
    len: u32,
    bytes: Box<[u8]>,
}

impl Piece {
    fn end(&self) -> u32 {
        self.offset + self.len
    }
}

/// Pieces, sorted and without overlap.
#[derive(Debug)]
struct Partial {
    opened: Arrival,
    pieces: Vec<Piece>,
    /// What the piece at offset 0 said.
    head: Option<(IpPacket, u8, Station)>,
    is_udp: bool,
    /// Where the last piece ends.
    total: Option<u32>,
    /// Bytes of the packet that are there, and what keeping them costs.
    have: u32,
    cost: usize,
    frames: i64,
    spoiled: bool,
    /// When it was put together.
    whole_at: Option<i64>,
}

impl Partial {
    fn new(opened: Arrival, is_udp: bool) -> Self {
        Self {
            opened,
            pieces: Vec::new(),
            head: None,
            is_udp,
            total: None,
            have: 0,
            cost: 0,
            frames: 0,
            spoiled: false,
            whole_at: None,
        }
    }

    /// Adds a piece; false when it is there already.
    fn add(&mut self, fragment: &Fragment<'_>) -> bool {
        let (offset, len) = (fragment.offset, fragment.len);
        let index = self.pieces.partition_point(|piece| piece.offset < offset);
        if self.pieces.get(index).is_some_and(|piece| (piece.offset, piece.len) == (offset, len)) {
            return false;
        }
        self.frames += 1;
        let Some(end) = offset.checked_add(len).filter(|end| *end <= MAX_LEN) else {
            self.spoiled = true;
            return true;
        };
        let before = index.checked_sub(1).and_then(|before| self.pieces.get(before)).map_or(0, Piece::end);
        let after = self.pieces.get(index).map_or(MAX_LEN, |piece| piece.offset);
        let last_end = self.pieces.last().map_or(end, |piece| piece.end().max(end));
        if !fragment.more {
            self.spoiled |= self.total.is_some_and(|total| total != end);
            self.total = Some(end);
        }
        self.spoiled |= before > offset
            || after < end
            || len == 0
            || fragment.more && len % 8 != 0
            || self.total.is_some_and(|total| last_end > total);
        if offset == 0 {
            self.head = Some((fragment.packet, fragment.protocol, fragment.station));
        }
        if self.spoiled {
            self.pieces = Vec::new();
            self.cost = 0;
        } else {
            self.have += len;
            self.cost += fragment.bytes.len() + PIECE_BYTES;
            self.pieces.insert(index, Piece { offset, len, bytes: fragment.bytes.into() });
        }
        true
    }

    fn is_whole(&self) -> bool {
        !self.spoiled && self.total == Some(self.have)
    }

    fn join(&mut self) -> Option<Reassembled> {
        let (packet, protocol, station) = self.head?;
        let len = usize::try_from(self.total?).ok()?;
        let mut bytes = Vec::with_capacity(self.cost);
        self.cost = 0;
        for piece in std::mem::take(&mut self.pieces) {
            if bytes.len() as u64 == u64::from(piece.offset) {
                bytes.extend_from_slice(&piece.bytes);
            }
        }
        // No header stands before it.
        let packet = IpPacket { start: usize::MAX, offset: 0, len, ..packet };
        Some(Reassembled { station, packet, protocol, bytes, frames: self.frames })
    }
}

/// The packets of which pieces are missing.
#[derive(Debug, Default)]
pub struct Fragments {
    partials: HashMap<Key, Partial>,
    /// Every packet's first piece, in order of arrival.
    order: VecDeque<(Key, Arrival)>,
    bytes: usize,
}

impl Fragments {
    /// Takes a fragment.
    pub fn add(&mut self, fragment: &Fragment<'_>, seen: Arrival) -> Placed {
        const UDP: u8 = 17;
        let key = fragment.key();
        let is_udp = fragment.protocol == UDP;
        let partial = self.partials.entry(key).or_insert_with(|| {
            self.order.push_back((key, seen));
            Partial::new(seen, is_udp)
        });
        if let Some(whole_at) = partial.whole_at {
            if seen.at.abs_diff(whole_at) <= COPY_NS {
                return Placed::Copy;
            }
            self.order.push_back((key, seen));
            *partial = Partial::new(seen, is_udp);
        }
        self.bytes -= partial.cost;
        let is_new = partial.add(fragment);
        let whole = if partial.is_whole() { partial.join() } else { None };
        self.bytes += partial.cost;
        match whole {
            Some(whole) => {
                partial.whole_at = Some(seen.at);
                Placed::Whole(whole)
            }
            None if is_new => Placed::Waiting,
            None => Placed::Copy,
        }
    }

    /// Gives up a packet that waited for too long, or the longest waiting one when there are too many.
    pub fn expired(&mut self, now: i64) -> Option<Incomplete> {
        while let Some(&(_, opened)) = self.order.front() {
            let full = self.bytes > MAX_BYTES || self.order.len() > MAX_DATAGRAMS;
            if !full && now.saturating_sub(opened.at) <= TIMEOUT_NS {
                return None;
            }
            if let Some(incomplete) = self.oldest() {
                return Some(incomplete);
            }
        }
        None
    }

    /// Gives up all: no more fragments will come.
    pub fn drain(&mut self) -> Vec<Incomplete> {
        let mut rest = Vec::new();
        while !self.order.is_empty() {
            rest.extend(self.oldest());
        }
        rest
    }

    /// Forgets the packet that was opened first; `None` when it is whole.
    fn oldest(&mut self) -> Option<Incomplete> {
        let (key, opened) = self.order.pop_front()?;
        self.partials.get(&key).filter(|partial| partial.opened == opened)?;
        let partial = self.partials.remove(&key)?;
        self.bytes -= partial.cost;
        let (source, destination) = (key.source, key.destination);
        let incomplete = Incomplete { opened, source, destination, frames: partial.frames, is_udp: partial.is_udp };
        partial.whole_at.is_none().then_some(incomplete)
    }
}
