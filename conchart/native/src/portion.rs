//! What the stages found, on its way to the tables.
//!
//! In: what a stage reports as soon as it is certain. Out: a [`Portion`] of bounded size at a time, for an [`Output`].
//! Making Arrow columns of it costs a quarter of reading the packets: whoever receives it does that, on another thread,
//! and gives the emptied portion back to be filled again.

use arrow_schema::ArrowError;

use crate::exchange::{ContentMessage, Exchange, Http3Frame, QuicFrame};
use crate::naming::ServerName;
use crate::owners::Owners;
use crate::phases::Phase;
use crate::quic::Lost;
use crate::rows;
use crate::stalls::Stall;
use crate::stream::BySide;
use crate::tables::{ConnectionRow, PacketRow, PlacePacketRow, Tables};
use crate::tally::Tally;
use crate::tls::{Handshake, MessageSeen, RecordSeen, Version};
use crate::udp::Move;

/// Rows that are handed over together: enough to make that cheap, few enough to cost little memory.
const ROWS: usize = 512;

/// The receiving end wants no more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Stopped;

/// The receiving end.
pub trait Output {
    /// Takes a portion, and gives an empty one for the next.
    ///
    /// # Errors
    /// When the receiving end is gone; the run stops.
    fn take(&mut self, portion: Portion) -> Result<Portion, Stopped>;
}

/// What was found of several connections, each with the number of its stream.
#[derive(Default)]
pub struct Portion {
    captures: Vec<Tally>,
    /// With the name of the server, and who owns its ends.
    connections: Vec<(ConnectionRow<'static>, ServerName, Owners)>,
    /// With the round trips between the capture point and each end, in nanoseconds.
    handshakes: Vec<(i32, Box<Handshake>, BySide<Option<i64>>)>,
    exchanges: Vec<(i32, Exchange)>,
    contents: Vec<(i32, ContentMessage)>,
    phases: Vec<(i32, Phase)>,
    stalls: Vec<(i32, Stall)>,
    lost: Vec<(i32, Lost)>,
    moves: Vec<(i32, Move)>,
    /// With the IP packet that carried it, where that is wanted.
    packets: Vec<(PacketRow<'static>, Option<Box<[u8]>>)>,
    records: Vec<(i32, i32, RecordSeen)>,
    place_packets: Vec<PlacePacketRow>,
    messages: Vec<(i32, i32, MessageSeen)>,
    quic_frames: Vec<(i32, QuicFrame)>,
    http3_frames: Vec<(i32, Http3Frame)>,
    rows: usize,
    /// Bytes and frames that have been read, now and then.
    progress: Option<(u64, u64)>,
    certainty: Certainty,
}

/// What a portion is worth.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Certainty {
    #[default]
    Certain,
    /// What would be found if the capture ended here; more of it follows.
    SoFar,
    /// The last of that.
    LastSoFar,
}

impl Portion {
    /// Bytes and frames that have been read, when it is time to say so.
    #[must_use]
    pub fn progress(&self) -> Option<(u64, u64)> {
        self.progress
    }

    #[must_use]
    pub fn certainty(&self) -> Certainty {
        self.certainty
    }

    /// Moves everything into the tables; what is left is empty and keeps its room.
    ///
    /// # Errors
    /// As [`Tables::flush`].
    pub fn empty_into(&mut self, tables: &mut Tables) -> Result<(), ArrowError> {
        (self.rows, self.progress) = (0, None);
        for (stream, handshake, rtt) in self.handshakes.drain(..) {
            let version = handshake.version.map(Version::name);
            tables.handshake(rows::handshake(stream, &handshake, version.as_deref(), rtt))?;
        }
        for (stream, exchange) in self.exchanges.drain(..) {
            tables.exchange(rows::exchange(stream, &exchange))?;
        }
        for (stream, message) in self.contents.drain(..) {
            tables.exchange_message(rows::content(stream, &message))?;
        }
        for (stream, phase) in self.phases.drain(..) {
            tables.phase(rows::phase(stream, &phase))?;
        }
        for (stream, stall) in self.stalls.drain(..) {
            tables.stall(rows::stall(stream, &stall))?;
        }
        for (stream, lost) in self.lost.drain(..) {
            tables.lost_packet(rows::lost_packet(stream, &lost))?;
        }
        for (stream, moved) in self.moves.drain(..) {
            tables.client_move(rows::client_move(stream, &moved))?;
        }
        for (packet, segment) in self.packets.drain(..) {
            tables.packet(PacketRow { segment: segment.as_deref(), ..packet })?;
        }
        for sighting in self.place_packets.drain(..) {
            tables.sighting(sighting)?;
        }
        for (stream, number, record) in self.records.drain(..) {
            tables.record(rows::record(stream, number, &record.kind(), &record))?;
        }
        for (stream, number, message) in self.messages.drain(..) {
            tables.message(rows::message(stream, number, &message.kind(), &message))?;
        }
        for (stream, frame) in self.quic_frames.drain(..) {
            tables.quic_frame(rows::quic_frame(stream, &frame))?;
        }
        for (stream, frame) in self.http3_frames.drain(..) {
            tables.http3_frame(rows::http3_frame(stream, &frame))?;
        }
        for (connection, name, owners) in self.connections.drain(..) {
            tables.connection(rows::owned(ConnectionRow { server_name: name.get(), ..connection }, &owners))?;
        }
        for tally in self.captures.drain(..) {
            tables.capture(rows::capture(&tally, &rows::link_types(&tally), &tally.notes.sentences()))?;
        }
        Ok(())
    }
}

/// Collects what the stages find, for an output.
pub(crate) struct Outbox<O> {
    output: O,
    portion: Portion,
    certainty: Certainty,
}

impl<O: Output> Outbox<O> {
    pub fn new(output: O) -> Self {
        Self { output, portion: Portion::default(), certainty: Certainty::Certain }
    }

    pub fn capture(&mut self, tally: Tally) -> Result<(), Stopped> {
        self.portion.captures.push(tally);
        self.added()
    }

    pub fn connection(&mut self, row: ConnectionRow<'static>, name: ServerName, owners: Owners) -> Result<(), Stopped> {
        self.portion.connections.push((row, name, owners));
        self.added()
    }

    pub fn handshake(
        &mut self,
        stream: i32,
        handshake: Box<Handshake>,
        rtt: BySide<Option<i64>>,
    ) -> Result<(), Stopped> {
        self.portion.handshakes.push((stream, handshake, rtt));
        self.added()
    }

    pub fn exchange(&mut self, stream: i32, exchange: Exchange) -> Result<(), Stopped> {
        self.portion.exchanges.push((stream, exchange));
        self.added()
    }

    pub fn content(&mut self, stream: i32, message: ContentMessage) -> Result<(), Stopped> {
        self.portion.contents.push((stream, message));
        self.added()
    }

    pub fn phase(&mut self, stream: i32, phase: Phase) -> Result<(), Stopped> {
        self.portion.phases.push((stream, phase));
        self.added()
    }

    pub fn stall(&mut self, stream: i32, stall: Stall) -> Result<(), Stopped> {
        self.portion.stalls.push((stream, stall));
        self.added()
    }

    pub fn lost(&mut self, stream: i32, lost: Lost) -> Result<(), Stopped> {
        self.portion.lost.push((stream, lost));
        self.added()
    }

    pub fn moved(&mut self, stream: i32, moved: Move) -> Result<(), Stopped> {
        self.portion.moves.push((stream, moved));
        self.added()
    }

    pub fn packet(&mut self, row: PacketRow<'static>, segment: Option<Box<[u8]>>) -> Result<(), Stopped> {
        self.portion.packets.push((row, segment));
        self.added()
    }

    pub fn sighting(&mut self, row: PlacePacketRow) -> Result<(), Stopped> {
        self.portion.place_packets.push(row);
        self.added()
    }

    /// `number`: of the connection's records, from 0.
    pub fn record(&mut self, stream: i32, number: i32, record: RecordSeen) -> Result<(), Stopped> {
        self.portion.records.push((stream, number, record));
        self.added()
    }

    /// `number`: of the connection's messages, from 0.
    pub fn message(&mut self, stream: i32, number: i32, message: MessageSeen) -> Result<(), Stopped> {
        self.portion.messages.push((stream, number, message));
        self.added()
    }

    pub fn quic_frame(&mut self, stream: i32, frame: QuicFrame) -> Result<(), Stopped> {
        self.portion.quic_frames.push((stream, frame));
        self.added()
    }

    pub fn http3_frame(&mut self, stream: i32, frame: Http3Frame) -> Result<(), Stopped> {
        self.portion.http3_frames.push((stream, frame));
        self.added()
    }

    /// Says how far the run is, with everything found up to here.
    pub fn progress(&mut self, bytes: u64, frames: u64) -> Result<(), Stopped> {
        self.portion.progress = Some((bytes, frames));
        self.flush()
    }

    /// Hands over what is left.
    pub fn flush(&mut self) -> Result<(), Stopped> {
        let full = Portion { certainty: self.certainty, ..std::mem::take(&mut self.portion) };
        self.portion = self.output.take(full)?;
        Ok(())
    }

    /// From here on, rows say what would be found if the capture ended here.
    pub fn begin_so_far(&mut self) -> Result<(), Stopped> {
        self.flush()?;
        self.certainty = Certainty::SoFar;
        Ok(())
    }

    /// That was all of it.
    pub fn end_so_far(&mut self) -> Result<(), Stopped> {
        self.certainty = Certainty::LastSoFar;
        self.flush()?;
        self.certainty = Certainty::Certain;
        Ok(())
    }

    fn added(&mut self) -> Result<(), Stopped> {
        self.portion.rows += 1;
        if self.portion.rows < ROWS { Ok(()) } else { self.flush() }
    }
}
