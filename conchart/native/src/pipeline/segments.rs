//! TCP segments on their way to their connections: which one, who sent them, what they tell.
//!
//! In: segments in the order of the capture. Out: to the [`crate::portion::Outbox`], what is certain. The first packets of a
//! connection that was joined midway are held back where nothing says yet who is its server ([`super::sides`]).

use super::clock_steps::dated;
use super::sides::{Joined, Sides};
use super::syn::Syn;
use super::traffic::Packets;
use super::{Failure, MAX_WAITING_BYTES, Run, by_side};
use crate::flow::{Slot, Transport};
use crate::packet::{Endpoint, Segment};
use crate::portion::Output;
use crate::rows;
use crate::stalls::Passed;
use crate::stream::{Arrival, BySide, Side};
use crate::tcp::{Connection, Mark};

impl<O: Output> Run<O> {
    pub(super) fn segment(&mut self, segment: &Segment<'_>, seen: Arrival) -> Result<(), Failure> {
        let (source, destination) = (segment.source, segment.destination);
        let begins = segment.flags.syn() && !segment.flags.ack();
        if begins {
            self.sides.listens(destination, source);
        }
        let located = match self.flows.locate(Transport::Tcp, source, destination, seen.at) {
            Slot::Open(index, _) if self.is_joined(index) => match self.hold(index, segment, seen)? {
                Some(from) => Slot::Open(index, from),
                None => return self.make_room(seen),
            },
            located => located,
        };
        let (index, from) = match located {
            Slot::Open(index, from) if begins && self.is_of_another(index, from, segment) => {
                self.end_at(index)?;
                match self.open_tcp(segment, seen)? {
                    Some(opened) => opened,
                    None => return self.make_room(seen),
                }
            }
            Slot::Open(index, from) => (index, from),
            Slot::Stray if !begins => {
                self.strays += 1;
                return Ok(());
            }
            Slot::New | Slot::Stray => match self.open_tcp(segment, seen)? {
                Some(opened) => opened,
                None => return self.make_room(seen),
            },
        };
        self.take(index, from, segment, seen)?;
        self.make_room(seen)
    }

    /// Takes in a segment whose sender is known.
    fn take(&mut self, index: usize, from: Side, segment: &Segment<'_>, arrived: Arrival) -> Result<(), Failure> {
        let Some(seen) = self.arrives(index, from, arrived) else { return Ok(()) };
        let Some(flow) = self.flows.flow(index) else { return Ok(()) };
        let (stream, traffic) = (flow.stream, &mut flow.content);
        let is_detailed = self.chooser.is_detailed();
        let is_explained = self.chooser.explains(stream);
        if traffic.is_transcribed() && !is_detailed && !is_explained {
            traffic.transcribe(None);
        }
        traffic.connect();
        let Packets::Tcp(tcp) = &mut traffic.packets else { return Ok(()) };
        let held_before = tcp.waiting_bytes();
        let taken = tcp.segment(from, segment, seen, &mut traffic.speech);
        let mut held = tcp.waiting_bytes();
        if taken.mark != Some(Mark::Duplicate) {
            traffic.stalls.segment(from, &Passed { segment, taken: &taken, seen, tcp });
        }
        if self.chooser.sights() {
            let sighting = rows::sighted_segment(stream, segment, seen, from);
            if let Some(copy) = taken.came_twice.and_then(|first| traffic.doubted.take(from.peer(), first)) {
                self.out.sighting(copy)?;
            }
            // RSTs that answer several segments are equal to the bit, and no copies.
            if taken.mark != Some(Mark::Duplicate) || segment.flags.rst() {
                self.out.sighting(sighting)?;
            } else if segment.payload_len > 0 {
                traffic.doubted.keep(from, sighting);
            }
        }
        if is_explained || is_detailed || taken.mark.is_some_and(Mark::is_trouble) {
            let row = rows::segment(stream, segment, seen, from, &tcp.halves, taken.mark);
            let packet = Some(segment.captured).filter(|captured| is_explained && !captured.is_empty());
            self.out.packet(row, packet.map(Into::into))?;
        }
        if held > held_before && self.waiting_bytes + held - held_before > MAX_WAITING_BYTES {
            tcp.finish(&mut traffic.speech);
            tcp.forced_gaps += 1;
            held = 0;
        }
        self.waiting_bytes = self.waiting_bytes + held - held_before;
        let (is_closed, is_spent) = (tcp.is_closed(), tcp.is_spent());
        if segment.payload_len > 0 {
            traffic.report(stream, &mut self.out)?;
        }
        if is_closed {
            let settles_at = if is_spent { None } else { traffic.settles_at() };
            if is_spent {
                traffic.conclude(stream, &mut self.out)?;
            }
            self.flows.linger(index, arrived.at, settles_at);
        }
        Ok(())
    }

    /// Does a SYN begin another connection between the same ends?
    fn is_of_another(&mut self, index: usize, from: Side, segment: &Segment<'_>) -> bool {
        let flow = self.flows.flow(index);
        flow.is_some_and(|flow| match &flow.content.packets {
            Packets::Syn(syn) => syn.is_other_incarnation(from, segment),
            Packets::Tcp(tcp) => tcp.is_other_incarnation(from, segment),
            Packets::Joined(_) | Packets::Udp(_) => false,
        })
    }

    /// Opens a connection, which begins with `segment` as far as the capture shows; says who sent that. `None`: it was taken in: a
    /// SYN, or what does not tell who is the server. A SYN that the table `packets` wants is taken in as any other segment.
    fn open_tcp(&mut self, segment: &Segment<'_>, seen: Arrival) -> Result<Option<(usize, Side)>, Failure> {
        let Segment { source, destination, .. } = *segment;
        let midstream = !segment.flags.syn();
        let mut is_unclear = midstream && Sides::is_unclear(source, destination);
        let from = match (segment.flags.syn(), segment.flags.ack()) {
            (true, false) => Side::Client,
            (true, true) => Side::Server,
            (false, _) => {
                if is_unclear {
                    self.sides.talk(source, destination);
                }
                let sender = self.sides.sender(segment);
                is_unclear &= sender.is_none() && self.owner.is_none();
                // Servers listen on the lower port, mostly.
                let by_port = if source.port < destination.port { Side::Server } else { Side::Client };
                sender.unwrap_or(by_port)
            }
        };
        let is_wanted = self.chooser.is_detailed() || self.chooser.explains_any() || self.chooser.sights();
        let arrived = Arrival { at: dated(seen.at, self.ahead), ..seen }.of(from);
        let syn = Syn::new(segment, arrived).filter(|_| !is_wanted);
        let is_taken = syn.is_some();
        let packets = match syn {
            Some(syn) => Packets::Syn(Box::new(syn)),
            None if is_unclear => Packets::Joined(Box::new(Joined::new(arrived))),
            None => Packets::Tcp(Box::new(Connection::new(arrived))),
        };
        let index = self.open(Transport::Tcp, by_side(from, source, destination), seen, packets, midstream);
        if let (Some(owners), Some(flow)) = (self.owner.take(), self.flows.flow(index)) {
            flow.content.owners.learn(from, &owners);
        }
        if is_unclear {
            if !self.sides.has_room() {
                self.decide_all()?;
            }
            let stream = self.flows.flow(index).map_or(0, |flow| flow.stream);
            self.sides.undecided.push((index, stream));
            return Ok(self.hold(index, segment, seen)?.map(|from| (index, from)));
        }
        Ok((!is_taken).then_some((index, from)))
    }

    fn is_joined(&mut self, index: usize) -> bool {
        self.flows.flow(index).is_some_and(|flow| matches!(flow.content.packets, Packets::Joined(_)))
    }

    /// Holds back a segment of a connection whose server is not known; or decides who that is, and says who sent the segment.
    fn hold(&mut self, index: usize, segment: &Segment<'_>, seen: Arrival) -> Result<Option<Side>, Failure> {
        let begins = segment.flags.syn() && !segment.flags.ack();
        let sender = self.sides.sender(segment).or_else(|| begins.then_some(Side::Client));
        if let (None, None, Some(flow)) = (sender, &self.owner, self.flows.flow(index))
            && let Packets::Joined(joined) = &mut flow.content.packets
            && self.sides.hold(joined, segment, seen, self.chooser.explains_any())
        {
            return Ok(None);
        }
        self.decide(index, sender.map(|from| by_side(from, segment.source, segment.destination).client))?;
        let Some(flow) = self.flows.flow(index) else { return Ok(None) };
        Ok(Some(if flow.ends.client == segment.source { Side::Client } else { Side::Server }))
    }

    /// Takes in what was held back of a connection, whose client this is, as far as somebody says so.
    pub(super) fn decide(&mut self, index: usize, client: Option<Endpoint>) -> Result<(), Failure> {
        let Some(flow) = self.flows.flow(index) else { return Ok(()) };
        let Packets::Joined(joined) = &mut flow.content.packets else { return Ok(()) };
        let client = client.or_else(|| self.sides.client(flow.ends)).unwrap_or(flow.ends.client);
        let mut opened = joined.opened;
        if client != flow.ends.client {
            flow.ends = BySide { client, server: flow.ends.client };
            opened = Arrival { at: opened.at, frame: opened.frame() }.of(opened.sender().peer());
        }
        let tcp = Packets::Tcp(Box::new(Connection::new(opened)));
        let Packets::Joined(joined) = std::mem::replace(&mut flow.content.packets, tcp) else { return Ok(()) };
        self.sides.listens(flow.ends.server, client);
        self.sides.let_go(&joined);
        joined.each(|segment, seen| {
            let from = if segment.source == client { Side::Client } else { Side::Server };
            self.take(index, from, segment, seen)
        })
    }

    /// Decides of all connections who is the server: some will end.
    pub(super) fn decide_all(&mut self) -> Result<(), Failure> {
        for (index, stream) in std::mem::take(&mut self.sides.undecided) {
            if self.flows.flow(index).is_some_and(|flow| flow.stream == stream) {
                self.decide(index, None)?;
            }
        }
        Ok(())
    }
}
