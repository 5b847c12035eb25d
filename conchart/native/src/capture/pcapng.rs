//! pcapng: sections of blocks (draft-ietf-opsawg-pcapng).
//!
//! In: the window. Out: one [`Packet`] per packet block (EPB, SPB, obsolete PB) of any section,
//! whatever its byte order; drop counts and TLS secrets on the way. Name resolution,
//! custom and unknown blocks are stepped over, whatever their length.
//!
//! Written by hand. pcap-parser 0.17 rejects a power-of-two `if_tsresol`, reads `if_tsoffset` as
//! little-endian in every section, must hold a block that is only skipped, allocates a list of
//! options per packet and reports no byte offsets; what would be left of it is five field reads.

use std::ops::Range;

use super::clock::Clock;
use super::fault::Fault;
use super::link_type::LinkType;
use super::secrets::Collector;
use super::window::{MAX_RECORD, Window};
use super::{Log, Order, Packet};
use crate::notes::About;
use crate::notes::grouped;

pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
pub(super) const INTERFACE: u32 = 1;
pub(super) const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const STATISTICS: u32 = 5;
pub(super) const ENHANCED_PACKET: u32 = 6;
pub(super) const SECRETS: u32 = 0x0a;
/// Secrets type of an NSS key log: "TLSK".
const TLS_KEY_LOG: u32 = 0x544c_534b;

/// Blocks that hold no packet, but to which Wireshark gives a number as if they did: custom blocks,
/// systemd journal entries, sysdig events.
pub(super) const NUMBERED: [u32; 9] = [0x0bad, 0x4000_0bad, 9, 0x0204, 0x0208, 0x0216, 0x0217, 0x0221, 0x0222];

pub(super) const TIMESTAMP_RESOLUTION: u16 = 9;
const TIMESTAMP_OFFSET: u16 = 14;
pub(super) const COMMENT: u16 = 1;
/// Flags of a packet: its two lowest bits say which way it passed the interface.
pub(super) const PACKET_FLAGS: u16 = 2;
const PACKET_DROPS: u16 = 4;
const DROPPED_BY_INTERFACE: u16 = 5;
const DROPPED_BY_SYSTEM: u16 = 7;

/// Interfaces of one section. Obsolete packet blocks can name no more, and memory stays bounded.
const MAX_INTERFACES: usize = 1 << 16;
/// Different link types that are remembered.
const MAX_LINK_TYPES: usize = 64;

/// One capturing interface of the current section.
struct Interface {
    link: LinkType,
    /// 0: unlimited.
    snap_length: u32,
    clock: Clock,
    used: bool,
    /// What its last statistics block said.
    dropped: Option<u64>,
    /// Sum of what its packets said.
    dropped_between: Option<u64>,
}

/// What the walk comes to.
pub(super) enum Met {
    Packet(Packet),
    /// A block without a packet.
    Block(Range<usize>),
}

/// State of the walk. Everything per interface belongs to the current section.
pub(super) struct Pcapng {
    order: Order,
    interfaces: Vec<Interface>,
    /// Time of the previous packet: simple packets have none of their own.
    last_at: Option<i64>,
    timeless: bool,
    /// Link types of interfaces that captured something, in order of appearance.
    links: Vec<LinkType>,
    /// Coarsest clock that captured something.
    resolution_ns: i64,
    /// Drops of the sections before.
    dropped: Option<u64>,
    /// Where TLS secrets go that are met on the way.
    pub(super) secrets: Option<Collector>,
}

impl Pcapng {
    /// Is this the type of a section header block? It reads the same in either byte order.
    pub(super) fn knows(head: &[u8]) -> bool {
        head.starts_with(&SECTION_HEADER.to_be_bytes())
    }

    /// The section header itself is read by the first [`Self::next`].
    pub(super) fn new() -> Self {
        Self {
            order: Order::Little,
            interfaces: Vec::new(),
            last_at: None,
            timeless: false,
            links: Vec::new(),
            resolution_ns: 0,
            dropped: None,
            secrets: None,
        }
    }

    /// Link types of the interfaces that captured something; of all interfaces while none has.
    pub(super) fn links(&self) -> Vec<LinkType> {
        if !self.links.is_empty() {
            return self.links.clone();
        }
        let mut links = Vec::new();
        for interface in &self.interfaces {
            if !links.contains(&interface.link) && links.len() < MAX_LINK_TYPES {
                links.push(interface.link);
            }
        }
        links
    }

    /// The coarsest resolution of the interfaces that captured something: no time in the file is
    /// less exact. While none has: of the interfaces described so far.
    pub(super) fn resolution_ns(&self) -> i64 {
        let described = || self.interfaces.iter().map(|interface| interface.clock.resolution_ns()).max();
        if self.resolution_ns > 0 { self.resolution_ns } else { described().unwrap_or(1000) }
    }

    /// Packets that the capturing machine says it dropped; `None` when it does not say.
    pub(super) fn dropped(&self) -> Option<u64> {
        let counts = self.interfaces.iter().filter_map(|interface| interface.dropped.or(interface.dropped_between));
        counts.fold(self.dropped, |sum, dropped| Some(sum.unwrap_or(0).saturating_add(dropped)))
    }

    /// Byte order of the section that the latest block stands in.
    pub(super) fn order(&self) -> Order {
        self.order
    }

    /// Is the next block all there? Of the header of a section, as far as is needed to read on.
    pub(super) fn has_whole(&self, ahead: &[u8]) -> bool {
        let Some([k0, k1, k2, k3, l0, l1, l2, l3]) = ahead.first_chunk().copied() else { return false };
        let is_section = self.order.u32([k0, k1, k2, k3]) == SECTION_HEADER;
        let whole = if is_section { 28 } else { self.order.u32([l0, l1, l2, l3]) };
        ahead.len() >= whole as usize
    }

    /// The next packet; `None` at the end of the file.
    #[inline]
    pub(super) fn next(&mut self, window: &mut Window, log: &mut Log) -> Result<Option<Packet>, Fault> {
        match self.step(window, log, false)? {
            Some(Met::Packet(packet)) => Ok(Some(packet)),
            Some(Met::Block(_)) | None => Ok(None),
        }
    }

    /// The next packet, or the next block if `every` one is wanted; `None` at the end of the file.
    #[inline]
    pub(super) fn step(&mut self, window: &mut Window, log: &mut Log, every: bool) -> Result<Option<Met>, Fault> {
        loop {
            if let Err(short) = window.ensure(8) {
                return if short.have == 0 && short.cause.is_none() {
                    Ok(None)
                } else {
                    Err(Fault::cut(window.offset(), "a block header", 8, short))
                };
            }
            let block = window.offset();
            let [k0, k1, k2, k3, l0, l1, l2, l3] = window.ahead().first_chunk::<8>().copied().unwrap_or_default();
            let kind = self.order.u32([k0, k1, k2, k3]);
            if kind == SECTION_HEADER {
                self.begin_section(window)?;
            }
            let announced = self.order.u32([l0, l1, l2, l3]);
            if announced < 12 {
                return Err(Fault::broken(
                    block,
                    format!("announces a block of {announced} bytes, at least 12 expected"),
                ));
            }
            // Some writers forget the padding in the length; as Wireshark does, we add it.
            let whole = u64::from(announced).next_multiple_of(4);
            let is_read = matches!(
                kind,
                SECTION_HEADER | INTERFACE | OBSOLETE_PACKET | SIMPLE_PACKET | STATISTICS | ENHANCED_PACKET
            ) || kind == SECRETS
                && self.secrets.as_ref().is_some_and(|secrets| !secrets.can_be_read_again());
            if !is_read {
                if kind == SECRETS && !every && whole <= u64::from(MAX_RECORD) {
                    self.pass_secrets(window, block, whole)?;
                    continue;
                }
                let held = usize::try_from(whole).ok().filter(|len| every && *len <= MAX_RECORD as usize);
                match held {
                    Some(len) => window.ensure(len),
                    None => window.skip(whole),
                }
                .map_err(|short| Fault::cut(block, "a block", whole, short))?;
                log.number += u64::from(NUMBERED.contains(&kind));
                match held {
                    Some(len) => return Ok(Some(Met::Block(window.take(len)))),
                    None => continue,
                }
            }
            let len = match usize::try_from(whole) {
                Ok(len) if len <= MAX_RECORD as usize => len,
                _ => return Err(Fault::too_long(block, "block", announced, MAX_RECORD)),
            };
            window.ensure(len).map_err(|short| Fault::cut(block, "a block", whole, short))?;
            let range = window.take(len);
            let end = window.offset();
            let bytes = window.get(range.clone());
            let trailer = bytes.last_chunk::<4>().map(|bytes| self.order.u32(*bytes));
            if trailer != Some(announced) {
                return Err(Fault::broken(
                    block,
                    format!("block begins with length {announced} but ends with {}", trailer.unwrap_or(0)),
                ));
            }
            let body = Body { order: self.order, rest: bytes.get(8..len - 4).unwrap_or_default() };
            let found = match kind {
                SECTION_HEADER => self.section(body).map(|()| None),
                INTERFACE => self.interface(body).map(|()| None),
                STATISTICS => self.statistics(body).map(|()| None),
                SECRETS => {
                    self.secrets(body, end, log);
                    Ok(None)
                }
                SIMPLE_PACKET => self.simple_packet(body, log).map(Some),
                _ => self.packet(kind, body).map(Some),
            };
            match found {
                Ok(None) if every => return Ok(Some(Met::Block(range))),
                Ok(None) => {}
                Ok(Some(found)) => {
                    let start = range.start + 8 + found.header;
                    let data = start..start + found.captured;
                    let Found { at, link, original_len, .. } = found;
                    let options = start + found.captured.next_multiple_of(4)..range.end - 4;
                    let comments = (found.is_commented && !options.is_empty()).then_some((self.order, options));
                    return Ok(Some(Met::Packet(Packet { at, link, data, original_len, record: range, comments })));
                }
                Err(problem) => return Err(Fault::broken(block, problem)),
            }
        }
    }

    /// Learns the byte order, before the block's length can be read.
    fn begin_section(&mut self, window: &mut Window) -> Result<(), Fault> {
        let block = window.offset();
        window.ensure(12).map_err(|short| Fault::cut(block, "a section header", 28, short))?;
        let magic = window.ahead().get(8..12).and_then(|magic| magic.first_chunk::<4>()).copied().unwrap_or_default();
        self.order = match u32::from_le_bytes(magic) {
            0x1a2b_3c4d => Order::Little,
            0x4d3c_2b1a => Order::Big,
            other => {
                return Err(Fault::broken(block, format!("byte-order magic is {other:08x}, 1a2b3c4d expected")));
            }
        };
        Ok(())
    }

    fn section(&mut self, mut body: Body<'_>) -> Result<(), String> {
        self.dropped = self.dropped();
        self.interfaces.clear();
        body.u32()?; // byte-order magic
        let (major, minor) = (body.u16()?, body.u16()?);
        if major != 1 {
            return Err(format!("section of pcapng version {major}.{minor}, only 1.x is known"));
        }
        body.u64()?; // section length: may be unknown, never needed
        Ok(())
    }

    fn interface(&mut self, mut body: Body<'_>) -> Result<(), String> {
        if self.interfaces.len() >= MAX_INTERFACES {
            return Err(format!("section describes more than {MAX_INTERFACES} interfaces"));
        }
        let link = LinkType(body.u16()?);
        body.u16()?; // reserved
        let snap_length = body.u32()?;
        let (mut resolution, mut offset) = (6, 0);
        let order = body.order;
        for (code, value) in body.options() {
            match (code, value) {
                (TIMESTAMP_RESOLUTION, [byte]) => resolution = *byte,
                (TIMESTAMP_OFFSET, seconds) => {
                    offset = seconds.first_chunk().map_or(0, |seconds| order.u64(*seconds).cast_signed());
                }
                _ => {}
            }
        }
        let clock = Clock::new(resolution, offset);
        self.interfaces.push(Interface { link, snap_length, clock, used: false, dropped: None, dropped_between: None });
        Ok(())
    }

    fn statistics(&mut self, mut body: Body<'_>) -> Result<(), String> {
        let interface = body.u32()?;
        body.u64()?; // time of the statistics
        let order = body.order;
        let mut dropped: Option<u64> = None;
        for (code, value) in body.options() {
            if let (DROPPED_BY_INTERFACE | DROPPED_BY_SYSTEM, Some(count)) = (code, value.first_chunk()) {
                dropped = Some(dropped.unwrap_or(0).saturating_add(order.u64(*count)));
            }
        }
        let found = usize::try_from(interface).ok().and_then(|index| self.interfaces.get_mut(index));
        if let (Some(interface), Some(dropped)) = (found, dropped) {
            interface.dropped = Some(dropped);
        }
        Ok(())
    }

    /// Secrets of a file that can be read again: whatever is wrong with their block, it is stepped over.
    #[cold]
    fn pass_secrets(&mut self, window: &mut Window, block: u64, whole: u64) -> Result<(), Fault> {
        let len = usize::try_from(whole).unwrap_or(usize::MAX);
        window.ensure(len).map_err(|short| Fault::cut(block, "a block", whole, short))?;
        let range = window.take(len);
        if let Some(secrets) = &self.secrets {
            let body = window.get(range).get(8..).unwrap_or_default();
            secrets.add(key_log(self.order, body), window.offset(), self.order);
        }
        Ok(())
    }

    fn secrets(&mut self, body: Body<'_>, end: u64, log: &mut Log) {
        let text = key_log(body.order, body.rest);
        let is_late = self.secrets.as_ref().is_some_and(|secrets| !secrets.add(text, end, body.order));
        if is_late && log.frames > 0 {
            let number = log.number;
            log.notes.add(About::KeyLog, || {
                format!(
                    "packet {number}: TLS secrets follow this packet; earlier connections could not be decrypted, because \
                     this input can be read only once: give conchart the uncompressed file"
                )
            });
        }
    }

    /// The interface a packet names, marked as used.
    #[inline]
    fn user(&mut self, number: u32) -> Result<&mut Interface, String> {
        let described = self.interfaces.len();
        let found = usize::try_from(number).ok().and_then(|index| self.interfaces.get_mut(index));
        let Some(interface) = found else {
            return Err(format!("captured on interface {number}, but its section describes {described} interface(s)"));
        };
        if !interface.used {
            interface.used = true;
            self.resolution_ns = self.resolution_ns.max(interface.clock.resolution_ns());
            if !self.links.contains(&interface.link) && self.links.len() < MAX_LINK_TYPES {
                self.links.push(interface.link);
            }
        }
        Ok(interface)
    }

    /// Enhanced and obsolete packet blocks, which differ in their first word only.
    #[inline]
    fn packet(&mut self, kind: u32, mut body: Body<'_>) -> Result<Found, String> {
        let order = body.order;
        let [n0, n1, n2, n3, h0, h1, h2, h3, t0, t1, t2, t3, c0, c1, c2, c3, o0, o1, o2, o3] = body.bytes::<20>()?;
        let (number, drops) = if kind == OBSOLETE_PACKET {
            (u32::from(order.u16([n0, n1])), order.u16([n2, n3]))
        } else {
            (order.u32([n0, n1, n2, n3]), u16::MAX)
        };
        let (high, low) = (order.u32([h0, h1, h2, h3]), order.u32([t0, t1, t2, t3]));
        let captured = body.packet(order.u32([c0, c1, c2, c3]))?;
        let original_len = order.u32([o0, o1, o2, o3]);
        let interface = self.user(number)?;
        let (at, link) = (interface.clock.at(u64::from(high) << 32 | u64::from(low)), interface.link);
        // All ones: not known.
        if drops != u16::MAX {
            interface.drops(drops.into());
        }
        let mut is_commented = false;
        for (code, value) in body.options() {
            is_commented |= code == COMMENT;
            if let (PACKET_DROPS, Some(count)) = (code, value.first_chunk()) {
                interface.drops(order.u64(*count));
            }
        }
        self.last_at = Some(at);
        Ok(Found { at, link, header: 20, captured, original_len, is_commented })
    }

    fn simple_packet(&mut self, mut body: Body<'_>, log: &mut Log) -> Result<Found, String> {
        let original_len = body.u32()?;
        let at = self.last_at.unwrap_or(0);
        if !self.timeless {
            self.timeless = true;
            let number = log.number + 1;
            log.notes.add(About::Format, || {
                format!("packet {number}: its block has no time stamp; such packets get the time of the packet before")
            });
        }
        let user = self.user(0)?;
        let limit = if user.snap_length == 0 { u32::MAX } else { user.snap_length };
        let link = user.link;
        // The block has no captured length: the snap length, or what the block holds, is the limit.
        let captured = usize::try_from(original_len.min(limit)).unwrap_or(usize::MAX).min(body.rest.len());
        Ok(Found { at, link, header: 4, captured, original_len, is_commented: false })
    }
}

/// The key log in the body of a Decryption Secrets Block; `None` when it holds other secrets.
pub(super) fn key_log(order: Order, rest: &[u8]) -> Option<&[u8]> {
    let mut body = Body { order, rest };
    let (kind, len) = (body.u32().ok()?, body.u32().ok()?);
    body.rest.get(..usize::try_from(len).ok()?).filter(|_| kind == TLS_KEY_LOG)
}

impl Interface {
    /// Its packets say that so many more were dropped.
    fn drops(&mut self, count: u64) {
        self.dropped_between = Some(self.dropped_between.unwrap_or(0).saturating_add(count));
    }
}

/// A packet block, read.
struct Found {
    at: i64,
    link: LinkType,
    /// Bytes of the body before the packet's own.
    header: usize,
    captured: usize,
    original_len: u32,
    /// It has comments among its options.
    is_commented: bool,
}

/// What is left of a block's body.
pub(super) struct Body<'a> {
    pub(super) order: Order,
    pub(super) rest: &'a [u8],
}

impl<'a> Body<'a> {
    #[inline]
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], String> {
        match self.rest.split_first_chunk::<N>() {
            Some((bytes, rest)) => {
                self.rest = rest;
                Ok(*bytes)
            }
            None => Err(format!("block too short: {N} more bytes needed, {} left", self.rest.len())),
        }
    }

    #[inline]
    fn u16(&mut self) -> Result<u16, String> {
        Ok(self.order.u16(self.bytes()?))
    }

    #[inline]
    fn u32(&mut self) -> Result<u32, String> {
        Ok(self.order.u32(self.bytes()?))
    }

    #[inline]
    fn u64(&mut self) -> Result<u64, String> {
        Ok(self.order.u64(self.bytes()?))
    }

    /// Steps over the packet's bytes and their padding; gives their number.
    #[inline]
    fn packet(&mut self, captured: u32) -> Result<usize, String> {
        match usize::try_from(captured) {
            Ok(captured) if captured <= self.rest.len() => {
                self.rest = self.rest.get(captured.next_multiple_of(4)..).unwrap_or_default();
                Ok(captured)
            }
            _ => Err(format!(
                "packet of {} bytes in a block that has {} left",
                grouped(captured.into()),
                grouped(self.rest.len() as u64)
            )),
        }
    }

    /// The options: code and value. Ends at the first that does not fit.
    pub(super) fn options(self) -> impl Iterator<Item = (u16, &'a [u8])> {
        let Self { order, mut rest } = self;
        std::iter::from_fn(move || {
            let (&[c0, c1, l0, l1], tail) = rest.split_first_chunk::<4>()?;
            let (code, len) = (order.u16([c0, c1]), usize::from(order.u16([l0, l1])));
            let (value, after) = tail.split_at_checked(len)?;
            rest = after.get(len.next_multiple_of(4) - len..).unwrap_or_default();
            (code != 0).then_some((code, value))
        })
    }
}
