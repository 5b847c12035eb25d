//! One flow on its way from packets to rows: what carries it, what is said on it, what its time is charged to.
//!
//! In: the packets of one flow. Out: handshakes, exchanges, phases and a connection, to the [`Outbox`], as soon as
//! each is certain.

use super::Failure;
use super::clock_steps::dated;
use super::moves::Moves;
use super::sides::Joined;
use super::syn::Syn;
use crate::exchange::{Carrier, Conversation, Delay, Ends, Exchange, Statements, Way};
use crate::flow::Flow;
use crate::keys::Keys;
use crate::naming::ServerName;
use crate::notes::{About, Notes};
use crate::owners::Owners;
use crate::packet::{Endpoint, Seq};
use crate::phases::{self, Kind, Phase, Tiler};
use crate::portion::{Outbox, Output, Stopped};
use crate::quic::Held;
use crate::rows::{self, FlowContext};
use crate::stalls::Stalls;
use crate::stream::{Arrival, BySide, Chunk, Gap, Moment, Side};
use crate::tables::{ConnectionRow, PlacePacketRow};
use crate::tcp::{Connection, Receiver};
use crate::tls::Transcript;
use crate::udp::Datagrams;

/// What the packets of a flow amount to.
pub(super) enum Packets {
    /// Of a TCP connection, the SYN, and nothing else yet.
    Syn(Box<Syn>),
    /// Of one that was joined midway, the first segments: nobody knows yet who is the server.
    Joined(Box<Joined>),
    Tcp(Box<Connection>),
    Udp(Box<Datagrams>),
}

impl Packets {
    /// Earliest packet.
    fn opened(&self) -> Moment {
        match self {
            Self::Syn(syn) => syn.seen,
            Self::Joined(joined) => joined.opened,
            Self::Tcp(tcp) => tcp.opened,
            Self::Udp(udp) => udp.opened,
        }
    }

    /// Latest packet.
    fn last(&self) -> Moment {
        match self {
            Self::Syn(syn) => syn.seen,
            Self::Joined(joined) => joined.opened,
            Self::Tcp(tcp) => tcp.last,
            Self::Udp(udp) => udp.last,
        }
    }

    /// When the ends began to close it; its last packet where nothing says so.
    fn closing(&self) -> Moment {
        match self {
            Self::Syn(syn) => syn.seen,
            Self::Joined(joined) => joined.opened,
            Self::Tcp(tcp) => tcp.closing().unwrap_or(tcp.last),
            Self::Udp(udp) => udp.last,
        }
    }

    /// Nanoseconds between the capture point and each end and back, where they are known.
    fn rtt(&self) -> BySide<Option<i64>> {
        match self {
            Self::Tcp(tcp) => BySide { client: tcp.rtt(Side::Client), server: tcp.rtt(Side::Server) },
            Self::Udp(udp) => udp.rtt,
            Self::Syn(_) | Self::Joined(_) => BySide::default(),
        }
    }

    /// The TCP handshake, which ended before `first` at the latest.
    fn opening(&self, first: Moment) -> Option<Phase> {
        let (start, end, inferred) = match self {
            Self::Syn(syn) => (syn.seen, first, false),
            Self::Tcp(tcp) => (tcp.syn.or(tcp.syn_ack)?, tcp.ack.unwrap_or(first), tcp.syn.is_none()),
            Self::Joined(_) | Self::Udp(_) => return None,
        };
        Some(Phase { inferred, ..Phase::without_exchange(Kind::Syn, start, end) })
    }

    /// When each end broke it off, as far as is known.
    fn ends(&self) -> Ends {
        match self {
            Self::Tcp(tcp) => Ends {
                fin: BySide { client: tcp.first_fin(Side::Client), server: tcp.first_fin(Side::Server) },
                rst: tcp.rst(),
                is_foreign: tcp.rst_foreign == Some(true),
                silent_until: None,
            },
            Self::Udp(udp) => {
                let by = |side: Side| udp.closed.filter(|closed| closed.sender() == side);
                let fin = BySide { client: by(Side::Client), server: by(Side::Server) };
                Ends { fin, rst: udp.reset, silent_until: udp.silent_until, ..Ends::default() }
            }
            Self::Syn(_) | Self::Joined(_) => Ends::default(),
        }
    }

    fn is_midstream(&self) -> bool {
        matches!(self, Self::Tcp(tcp) if tcp.is_midstream())
    }

    /// Since when the server owes what it says first.
    fn accepted(&self) -> Option<Moment> {
        if let Self::Tcp(tcp) = self { tcp.syn.and(tcp.ack) } else { None }
    }
}

/// What is said on a flow. A SYN that nobody answers needs no reader for it.
pub(super) enum Speech {
    Nothing {
        carrier: Carrier,
        midstream: bool,
        /// How much is told of statements and keys.
        statements: Statements,
        /// Where secrets may be known.
        keys: Option<Keys>,
        transcript: Option<Box<Transcript>>,
    },
    Begun(Box<Conversation>),
    /// Both sides have ended their streams, and what was said has become rows.
    Over,
}

impl Speech {
    /// The reader of what is said now; `None` when it is over.
    fn reader(&mut self) -> Option<&mut Conversation> {
        if let Self::Nothing { carrier, midstream, statements, keys, transcript } = self {
            let mut conversation = Conversation::new(*carrier, *midstream, keys.take()).telling(*statements);
            *conversation.transcript() = transcript.take();
            *self = Self::Begun(Box::new(conversation));
        }
        self.begun()
    }

    /// The next connection ID of QUIC by which packets from elsewhere are of this flow.
    pub fn next_connection_id(&mut self) -> Option<Box<[u8]>> {
        self.begun()?.next_connection_id()
    }

    /// The client of QUIC has moved: how the next datagram went.
    pub fn by_way(&mut self, way: Way) {
        if let Some(conversation) = self.begun() {
            conversation.by_way(way);
        }
    }

    fn begun(&mut self) -> Option<&mut Conversation> {
        if let Self::Begun(conversation) = self { Some(conversation) } else { None }
    }
}

impl Receiver for Speech {
    fn data(&mut self, from: Side, chunk: Chunk<'_>) {
        if let Some(conversation) = self.reader() {
            conversation.data(from, chunk);
        }
    }
    fn gap(&mut self, from: Side, gap: Gap) {
        if let Some(conversation) = self.reader() {
            conversation.gap(from, gap);
        }
    }
    fn fin(&mut self, from: Side, seen: Moment) {
        if let Some(conversation) = self.reader() {
            conversation.fin(from, seen);
        }
    }
}

/// The last second capture of a packet of each side: its receiver may say that it came twice.
#[derive(Default)]
pub(super) struct Doubted(Option<Box<BySide<Option<PlacePacketRow>>>>);

impl Doubted {
    /// Keeps one in place of that of before.
    pub fn keep(&mut self, from: Side, copy: PlacePacketRow) {
        self.0.get_or_insert_default()[from] = Some(copy);
    }

    /// Gives the one that begins with this byte: it was no second capture.
    pub fn take(&mut self, from: Side, first: Seq) -> Option<PlacePacketRow> {
        self.0.as_mut()?[from].take_if(|copy| copy.seq == Some(first.0.into()))
    }
}

/// What is kept for an open flow.
pub(super) struct Traffic {
    pub capture: i32,
    /// How far its dates lie before where its frames stand on the axis: those of its first frame.
    pub ahead: i64,
    pub packets: Packets,
    pub speech: Speech,
    app: Option<&'static str>,
    /// The client that a PROXY header names.
    announced: Option<Endpoint>,
    name: ServerName,
    pub owners: Owners,
    tiler: Tiler,
    pub stalls: Stalls,
    /// From the first datagram on that comes from another endpoint of the client.
    pub moves: Option<Box<Moves>>,
    /// The clock was set back inside a handshake.
    pub clock_stepped_back: bool,
    /// Records and messages are written down; so many were so far.
    transcribed: Option<(i32, i32)>,
    pub doubted: Doubted,
}

impl Traffic {
    /// `midstream`: the first packet is not the connection's first.
    pub fn new(capture: i32, packets: Packets, midstream: bool, statements: Statements, keys: &Keys) -> Self {
        let (carrier, stalls) = match packets {
            Packets::Syn(_) => (Carrier::Stream, Stalls::default()),
            Packets::Joined(_) | Packets::Tcp(_) => (Carrier::Stream, Stalls::of_connection()),
            Packets::Udp(_) => (Carrier::Datagrams, Stalls::default()),
        };
        let speech = Speech::Nothing { carrier, midstream, statements, keys: Some(keys.clone()), transcript: None };
        Self {
            capture,
            ahead: 0,
            packets,
            speech,
            app: None,
            announced: None,
            name: ServerName::default(),
            owners: Owners::default(),
            tiler: Tiler::default(),
            stalls,
            moves: None,
            clock_stepped_back: false,
            transcribed: None,
            doubted: Doubted::default(),
        }
    }

    /// Writes down records and handshake messages from here on, or no longer.
    pub fn transcribe(&mut self, wanted: Option<Transcript>) {
        let wanted = wanted.map(Box::new);
        self.transcribed = wanted.as_ref().map(|_| (0, 0));
        match &mut self.speech {
            Speech::Nothing { transcript, .. } => *transcript = wanted,
            Speech::Begun(conversation) => *conversation.transcript() = wanted,
            Speech::Over => {}
        }
    }

    pub fn is_transcribed(&self) -> bool {
        self.transcribed.is_some()
    }

    /// More is to be taken in than a SYN, or nothing will: what was kept of the SYN becomes a connection.
    pub fn connect(&mut self) {
        if let Packets::Syn(syn) = &self.packets {
            let (tcp, stalls) = syn.connect(&mut self.speech);
            (self.packets, self.stalls) = (Packets::Tcp(tcp), stalls);
        }
    }

    /// What arrived there on the axis, as it is dated here.
    #[inline]
    pub fn redated(&self, arrived: Arrival) -> Arrival {
        Arrival { at: dated(arrived.at, self.ahead), ..arrived }
    }

    /// The same of the next packet. One that is dated before what was told of its connection's opening shows that the clock
    /// was set back: it follows the packet ahead of it at once, and what is dated like it is counted from there.
    #[inline]
    pub fn follows(&mut self, stream: i32, arrived: Arrival, notes: &mut Notes) -> Arrival {
        let seen = self.redated(arrived);
        if self.tiler.opened().is_none_or(|opened| seen.at >= opened.at) {
            return seen;
        }
        let Arrival { frame, .. } = arrived;
        notes.add(About::ClockStep, || {
            format!(
                "frame {frame} is dated before the beginning of stream {stream}: the clock was set back; in connections that were \
                 open then, the step counts as no time"
            )
        });
        self.ahead = arrived.at.saturating_sub(self.packets.last().at);
        self.redated(arrived)
    }

    /// Until when, on the axis, a closed flow waits for packets that are still its own; `None` where it is open.
    pub fn lingers_until(&self) -> Option<i64> {
        match &self.packets {
            Packets::Tcp(tcp) => tcp.is_closed().then(|| tcp.lingers_until().saturating_add(self.ahead)),
            Packets::Syn(_) | Packets::Joined(_) | Packets::Udp(_) => None,
        }
    }

    /// Captured bytes that are held back for reordering.
    pub fn waiting_bytes(&self) -> usize {
        match &self.packets {
            Packets::Tcp(tcp) => tcp.waiting_bytes(),
            Packets::Syn(_) | Packets::Joined(_) | Packets::Udp(_) => 0,
        }
    }

    /// When what was on its way as a RST closed the connection has passed the capture point; `None` where something else
    /// closed it.
    pub fn settles_at(&self) -> Option<i64> {
        let Packets::Tcp(tcp) = &self.packets else { return None };
        Some(tcp.settles_at()?.saturating_add(self.ahead))
    }

    /// Passes on what was said on a closed flow, of which nothing is on its way any more, if nobody is left to hear more.
    pub fn settle<O: Output>(&mut self, stream: i32, out: &mut Outbox<O>) -> Result<(), Stopped> {
        let is_abandoned = matches!(&self.packets, Packets::Tcp(tcp) if tcp.is_abandoned());
        if is_abandoned { self.conclude(stream, out) } else { Ok(()) }
    }

    /// Passes on what was said: both sides have ended their streams.
    pub fn conclude<O: Output>(&mut self, stream: i32, out: &mut Outbox<O>) -> Result<(), Stopped> {
        if let Some(conversation) = self.speech.begun() {
            conversation.finish();
            self.app = conversation.app();
            self.announced = conversation.announced();
        }
        if let Packets::Tcp(tcp) = &self.packets {
            self.stalls.conclude(tcp, self.packets.closing());
        }
        self.report(stream, out)?;
        self.speech = Speech::Over;
        Ok(())
    }

    /// No more is known of the client's latest move.
    pub fn end_move<O: Output>(&mut self, stream: i32, out: &mut Outbox<O>) -> Result<(), Stopped> {
        let Some(moves) = self.moves.take() else { return Ok(()) };
        let (moved, stall) = moves.end(self.packets.last());
        stall.into_iter().for_each(|stall| self.stalls.moved(stall));
        out.moved(stream, moved)
    }

    /// Passes on what has become certain.
    pub fn report<O: Output>(&mut self, stream: i32, out: &mut Outbox<O>) -> Result<(), Stopped> {
        let Self { packets, speech, name, tiler, stalls, moves, clock_stepped_back, transcribed, .. } = self;
        let Some(conversation) = speech.begun().filter(|conversation| conversation.has_news()) else {
            return Ok(());
        };
        if let (Some((records, messages)), Some(transcript)) = (transcribed, conversation.transcript()) {
            while let Some(record) = transcript.next_record() {
                out.record(stream, *records, record)?;
                *records += 1;
            }
            while let Some(message) = transcript.next_message() {
                out.message(stream, *messages, message)?;
                *messages += 1;
            }
            let (quic, http3) = conversation.frames();
            quic.into_iter().try_for_each(|frame| out.quic_frame(stream, frame))?;
            http3.into_iter().try_for_each(|frame| out.http3_frame(stream, frame))?;
        }
        if let Packets::Udp(udp) = packets {
            (udp.rtt, udp.reset) = (conversation.rtt(), conversation.reset());
            (udp.carried, udp.closed) = (conversation.datagrams(), conversation.closed());
        }
        let packets = &*packets;
        while let Some(delay) = conversation.next_delay() {
            match (delay, &mut *moves) {
                (Delay::Lost(lost), _) => out.lost(stream, lost)?,
                (Delay::Path(path), Some(moves)) => moves.path(path),
                (Delay::UnderWay(held), _) => {
                    stalls.delay(Delay::Held(Held { end: held.end.max(packets.closing()), ..held }));
                }
                _ => stalls.delay(delay),
            }
        }
        let mut certain: Option<Moment> = None;
        let mut charge = |interval: Phase| {
            begin(tiler, packets, interval.start);
            tiler.push(interval);
            certain = Some(certain.map_or(interval.end, |latest| latest.max(interval.end)));
        };
        let end = || packets.closing();
        let rtt = packets.rtt();
        while let Some(mut handshake) = conversation.next_handshake() {
            *clock_stepped_back |= handshake.keep_order();
            if let Some(interval) = phases::of_handshake(&handshake, end) {
                charge(interval);
            }
            name.greeted(handshake.sni.as_deref());
            out.handshake(stream, handshake, rtt)?;
        }
        let ends = packets.ends();
        while let Some(mut exchange) = conversation.next_exchange() {
            exchange.conclude(&ends);
            let greets = exchange.number == 0 && conversation.greeting().is_some_and(|first| exchange.greets(first));
            exchange.owed = packets.accepted().filter(|_| greets);
            phases::of_exchange(&exchange, end).into_iter().flatten().for_each(&mut charge);
            name.requested(exchange.host.as_deref());
            out.exchange(stream, exchange)?;
        }
        while let Some(message) = conversation.next_message() {
            phases::of_message(&message).into_iter().for_each(&mut charge);
            out.content(stream, message)?;
        }
        while let Some((start, end)) = conversation.next_unseen() {
            charge(Phase::without_exchange(Kind::Unseen, start, end));
        }
        let mut result = Ok(());
        if let Some(certain) = certain {
            let until = conversation.earliest_open().unwrap_or(certain);
            tiler.hand_out(until, &mut |phase| {
                result = result.and_then(|()| tell(stream, phase, stalls, out));
            });
        }
        result
    }

    /// Tells what the rows would be if nothing came any more. Requests that are under way are charged until `now`, the
    /// latest frame; from where something else is on its way that cannot be told yet, nothing is.
    pub fn so_far<O: Output>(flow: &mut Flow<Self>, now: Arrival, out: &mut Outbox<O>) -> Result<(), Stopped> {
        let mut until = flow.content.speech.begun().and_then(|conversation| conversation.earliest_open());
        let Self { capture, packets, speech, app, announced, name, tiler, .. } = &flow.content;
        let conversation = if let Speech::Begun(conversation) = speech { Some(conversation) } else { None };
        let (mut tiler, mut name, mut end, mut last) = (tiler.clone(), name.clone(), packets.closing(), packets.last());
        begin(&mut tiler, packets, until.unwrap_or(end));
        let requested_at = Moment::earliest(
            conversation.iter().flat_map(|conversation| conversation.under_way()).map(Exchange::opened),
        );
        if let Some(conversation) = conversation.filter(|_| requested_at.is_some() && requested_at == until) {
            until = None;
            if flow.content.lingers_until().is_none() {
                last = flow.content.redated(now).of(last.sender());
                end = last;
            }
            for exchange in conversation.under_way() {
                let mut exchange = exchange.clone();
                // Of a turn nobody knows whether more comes; who asked is taken to wait.
                exchange.request.done |= exchange.inferred;
                exchange.conclude(&packets.ends());
                phases::of_exchange(&exchange, || end).into_iter().flatten().for_each(|phase| tiler.push(phase));
                name.requested(exchange.host.as_deref());
                out.exchange(flow.stream, exchange)?;
            }
        }
        tiler.push(Phase::without_exchange(Kind::Close, end, last));
        let mut result = Ok(());
        tiler.finish(until.unwrap_or(last), &mut |phase| result = result.and_then(|()| out.phase(flow.stream, phase)));
        result?;
        let about = FlowContext {
            capture: *capture,
            opened: tiler.opened().unwrap_or(packets.opened()),
            app: app.or_else(|| conversation.and_then(|conversation| conversation.app())),
            announced: announced.or_else(|| conversation.and_then(|conversation| conversation.announced())),
        };
        let row = ConnectionRow { closed_at: Some(last.at), ..row(flow, &about) };
        out.connection(row, name, flow.content.owners.clone())
    }

    /// Turns a flow that is over into rows. `latest`: when the latest frame was captured.
    pub fn end<O: Output>(flow: &mut Flow<Self>, latest: i64, out: &mut Outbox<O>) -> Result<(), Failure> {
        let stream = flow.stream;
        let traffic = &mut flow.content;
        traffic.connect();
        match &mut traffic.packets {
            Packets::Tcp(tcp) => tcp.finish(&mut traffic.speech),
            Packets::Udp(udp) => udp.silent_until = Some(dated(latest, traffic.ahead)),
            Packets::Syn(_) | Packets::Joined(_) => {}
        }
        traffic.end_move(stream, out)?;
        traffic.conclude(stream, out)?;

        let Self { capture, packets, tiler, stalls, app, announced, .. } = traffic;
        let (end, last) = (packets.closing(), packets.last());
        begin(tiler, packets, end);
        tiler.push(Phase::without_exchange(Kind::Close, end, last));
        let mut result = Ok(());
        tiler.finish(last, &mut |phase| {
            result = result.and_then(|()| tell(stream, phase, stalls, out));
        });
        result?;
        let opened = tiler.opened().unwrap_or(packets.opened());
        let about = FlowContext { capture: *capture, opened, app: *app, announced: *announced };
        let name = std::mem::take(&mut flow.content.name);
        let owners = std::mem::take(&mut flow.content.owners);
        Ok(out.connection(row(flow, &about), name, owners)?)
    }
}

fn row(flow: &Flow<Traffic>, about: &FlowContext) -> ConnectionRow<'static> {
    match &flow.content.packets {
        Packets::Syn(syn) => rows::tcp(flow, about, &syn.connect(&mut Speech::Over).0),
        Packets::Joined(joined) => rows::tcp(flow, about, &Connection::new(joined.opened)),
        Packets::Tcp(tcp) => rows::tcp(flow, about, tcp),
        Packets::Udp(udp) => rows::udp(flow, about, udp),
    }
}

/// Passes on a phase, and the stalls in it.
fn tell<O: Output>(stream: i32, phase: Phase, stalls: &mut Stalls, out: &mut Outbox<O>) -> Result<(), Stopped> {
    let mut result = out.phase(stream, phase);
    stalls.settle(&phase, &mut |stall| result = result.and_then(|()| out.stall(stream, stall)));
    result
}

/// Starts the tiling, with the TCP handshake; it ended before `first` at the latest.
fn begin(tiler: &mut Tiler, packets: &Packets, first: Moment) {
    if tiler.opened().is_some() {
        return;
    }
    tiler.begin(packets.opened(), packets.is_midstream());
    if let Some(opening) = packets.opening(first) {
        tiler.push(opening);
    }
}
