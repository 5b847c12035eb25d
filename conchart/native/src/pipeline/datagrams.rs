//! The way of a datagram into its UDP conversation, which is opened where there is none.
//!
//! In: datagrams. Out: what their conversations tell, to the [`Outbox`](crate::portion::Outbox). A client of QUIC that goes
//! on from another endpoint stays in its conversation.

use super::clock_steps::dated;
use super::moves::{Moves, Passed};
use super::traffic::Packets;
use super::{Failure, Run, by_side};
use crate::exchange::{Carrier, Way, likely_sender};
use crate::flow::{Slot, Transport};
use crate::packet::Datagram;
use crate::portion::Output;
use crate::rows;
use crate::stream::{Arrival, Side};
use crate::tcp::Receiver as _;
use crate::udp::Datagrams;

impl<O: Output> Run<O> {
    pub(super) fn datagram(&mut self, datagram: &Datagram<'_>, arrived: Arrival) -> Result<(), Failure> {
        let (source, destination) = (datagram.source, datagram.destination);
        let mut has_moved = false;
        let (index, from) = match self.flows.locate(Transport::Udp, source, destination, arrived.at) {
            Slot::Open(index, from) => (index, from),
            Slot::New | Slot::Stray => match self.moved(datagram, arrived) {
                Some(index) => {
                    has_moved = true;
                    (index, Side::Client)
                }
                None => self.open_udp(datagram, arrived),
            },
        };
        let Some(seen) = self.arrives(index, from, arrived) else { return Ok(()) };
        let Some(flow) = self.flows.flow(index) else { return Ok(()) };
        let (stream, first_client, traffic) = (flow.stream, flow.ends.client, &mut flow.content);
        let Packets::Udp(udp) = &mut traffic.packets else { return Ok(()) };
        let unanswered = udp.unanswered;
        let chunk = udp.datagram(from, datagram, seen);
        let passed = Passed { datagram, seen, rtt: udp.rtt };
        if chunk.is_some() && (has_moved || traffic.moves.is_some()) {
            let client = traffic.moves.as_ref().map_or(first_client, |moves| moves.client());
            let returns = traffic.moves.as_ref().is_some_and(|moves| moves.is_move(datagram.source, seen));
            if from == Side::Client && (has_moved || returns) && client != datagram.source {
                traffic.speech.by_way(Way::Unheard);
                traffic.end_move(stream, &mut self.out)?;
                traffic.moves = Some(Box::new(Moves::begin(client, unanswered, &passed)));
            } else if let Some(moves) = &mut traffic.moves {
                traffic.speech.by_way(moves.way(from, datagram));
                if let Some(stall) = moves.datagram(from, &passed) {
                    traffic.stalls.moved(stall);
                }
            }
        }
        let is_reported = self.chooser.is_detailed() || self.chooser.explains(stream);
        if let Some(chunk) = chunk {
            if traffic.is_transcribed() && !is_reported {
                traffic.transcribe(None);
            }
            traffic.speech.data(from, chunk);
            while let Some(cid) = traffic.speech.next_connection_id() {
                self.routes.add(&cid, index, stream);
            }
            traffic.report(stream, &mut self.out)?;
        }
        if is_reported {
            self.out.packet(rows::datagram(stream, datagram, seen, from, chunk.is_none()), None)?;
        }
        if self.chooser.sights() && chunk.is_some() {
            self.out.sighting(rows::sighted_datagram(stream, datagram, seen, from))?;
        }
        self.make_room(arrived)
    }

    /// The QUIC connection that a client goes on with from an endpoint that is not known (RFC 9000 section 9).
    fn moved(&mut self, datagram: &Datagram<'_>, seen: Arrival) -> Option<usize> {
        let (index, stream) = self.routes.of(datagram.payload)?;
        let flow = self.flows.flow(index)?;
        let is_it = flow.stream == stream && flow.ends.server == datagram.destination;
        (is_it && self.flows.go_on(index, datagram.source, datagram.destination, seen.at)).then_some(index)
    }

    /// Opens a UDP conversation; says who sent its first datagram.
    fn open_udp(&mut self, datagram: &Datagram<'_>, seen: Arrival) -> (usize, Side) {
        /// Ports that programs without privileges do not get: whoever sends from one answers.
        const SYSTEM_PORTS: std::ops::Range<u16> = 0..1024;
        let is_answer =
            SYSTEM_PORTS.contains(&datagram.source.port) && !SYSTEM_PORTS.contains(&datagram.destination.port);
        let from = likely_sender(Carrier::Datagrams, datagram.payload).unwrap_or(if is_answer {
            Side::Server
        } else {
            Side::Client
        });
        let ends = by_side(from, datagram.source, datagram.destination);
        let packets =
            Packets::Udp(Box::new(Datagrams::new(Arrival { at: dated(seen.at, self.ahead), ..seen }.of(from))));
        (self.open(Transport::Udp, ends, seen, packets, false), from)
    }
}
