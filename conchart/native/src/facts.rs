//! Facts on their way from the stages to the tables.
//!
//! In: facts, as they become certain. Out: [`Facts`] of bounded number, for an [`Output`]. Making rows of them costs a
//! quarter of reading the packets: whoever receives them does it, on another thread.

use crate::exchange::Exchange;
use crate::phases::Phase;
use crate::rows::{self, ConnectionRow, PacketRow};
use crate::stream::BySide;
use crate::tables::{Rows, Sink, Stopped};
use crate::tally::Tally;
use crate::tls::{Handshake, Version};

/// Facts that are handed over together: enough to make that cheap, few enough to cost little memory.
const TOGETHER: usize = 512;

/// Receives facts, and word of how far the run is.
pub trait Output {
    /// # Errors
    /// When the receiving end is gone; the run stops.
    fn facts(&mut self, facts: Facts) -> Result<(), Stopped>;

    /// # Errors
    /// When the receiving end is gone.
    fn progress(&mut self, bytes: u64, frames: u64) -> Result<(), Stopped>;
}

/// Facts of several connections, each with the number of its stream.
#[derive(Default)]
pub struct Facts {
    captures: Vec<Tally>,
    connections: Vec<ConnectionRow>,
    /// With the round trips between the capture point and each end, in nanoseconds.
    handshakes: Vec<(i32, Box<Handshake>, BySide<Option<i64>>)>,
    /// With the round trip to the server.
    exchanges: Vec<(i32, Exchange, Option<i64>)>,
    phases: Vec<(i32, Phase)>,
    packets: Vec<PacketRow>,
    count: usize,
}

impl Facts {
    /// None yet, with room for about as many of each.
    fn with_room_like(other: &Self) -> Self {
        fn room<T>(of: &[T]) -> Vec<T> {
            Vec::with_capacity(of.len() + of.len() / 8)
        }
        Self {
            captures: Vec::new(),
            connections: room(&other.connections),
            handshakes: room(&other.handshakes),
            exchanges: room(&other.exchanges),
            phases: room(&other.phases),
            packets: room(&other.packets),
            count: 0,
        }
    }

    /// Adds the rows that they are.
    ///
    /// # Errors
    /// [`Stopped`] when the sink wants no more.
    pub fn write(self, tables: &mut Rows<impl Sink>) -> Result<(), Stopped> {
        for (stream, handshake, rtt) in &self.handshakes {
            let version = handshake.version.map(Version::name);
            tables.handshake(rows::handshake(*stream, handshake, version.as_deref(), *rtt))?;
        }
        for (stream, exchange, rtt) in &self.exchanges {
            tables.exchange(rows::exchange(*stream, exchange, *rtt))?;
        }
        for (stream, phase) in &self.phases {
            tables.phase(rows::phase(*stream, phase))?;
        }
        for packet in &self.packets {
            tables.packet(packet.row(&packet.flags()))?;
        }
        for connection in &self.connections {
            let (client_ip, server_ip) = connection.addresses();
            tables.connection(connection.row(&client_ip, &server_ip))?;
        }
        for tally in &self.captures {
            tables.capture(rows::capture(tally, &rows::link_types(tally), &tally.notes.sentences()))?;
        }
        Ok(())
    }
}

/// Collects facts for an output.
pub struct Outbox<O> {
    output: O,
    facts: Facts,
}

impl<O: Output> Outbox<O> {
    pub fn new(output: O) -> Self {
        Self { output, facts: Facts::default() }
    }

    pub fn capture(&mut self, tally: Tally) -> Result<(), Stopped> {
        self.facts.captures.push(tally);
        self.added()
    }

    pub fn connection(&mut self, row: ConnectionRow) -> Result<(), Stopped> {
        self.facts.connections.push(row);
        self.added()
    }

    pub fn handshake(
        &mut self,
        stream: i32,
        handshake: Box<Handshake>,
        rtt: BySide<Option<i64>>,
    ) -> Result<(), Stopped> {
        self.facts.handshakes.push((stream, handshake, rtt));
        self.added()
    }

    pub fn exchange(&mut self, stream: i32, exchange: Exchange, rtt_server: Option<i64>) -> Result<(), Stopped> {
        self.facts.exchanges.push((stream, exchange, rtt_server));
        self.added()
    }

    pub fn phase(&mut self, stream: i32, phase: Phase) -> Result<(), Stopped> {
        self.facts.phases.push((stream, phase));
        self.added()
    }

    pub fn packet(&mut self, row: PacketRow) -> Result<(), Stopped> {
        self.facts.packets.push(row);
        self.added()
    }

    pub fn progress(&mut self, bytes: u64, frames: u64) -> Result<(), Stopped> {
        self.output.progress(bytes, frames)
    }

    /// Hands over what is left.
    pub fn flush(&mut self) -> Result<(), Stopped> {
        let next = Facts::with_room_like(&self.facts);
        self.output.facts(std::mem::replace(&mut self.facts, next))
    }

    fn added(&mut self) -> Result<(), Stopped> {
        self.facts.count += 1;
        if self.facts.count < TOGETHER { Ok(()) } else { self.flush() }
    }
}
