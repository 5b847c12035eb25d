//! A scripted connection for tests: who says what, when; offsets, acknowledgements and frame
//! numbers follow by themselves.

use crate::exchange::{Carrier, ContentMessage, Conversation, Exchange, Span};
use crate::stream::{BySide, Chunk, Gap, Moment, Side};

/// Moments are `at = 1000 × frame`, and every `say` is one packet.
pub struct Talk {
    pub conversation: Conversation,
    frame: u64,
    sent: BySide<u64>,
    /// Bytes of each side that the other has not acknowledged yet, by [`Talk::unacked`].
    held_back: BySide<u64>,
    packets: Vec<Packet>,
}

/// What was said, to say it again in other pieces.
#[derive(Clone, Debug)]
pub struct Packet {
    pub from: Side,
    pub bytes: Vec<u8>,
    pub offset: u64,
    pub acked: u64,
    pub seen: Moment,
}

pub fn moment(frame: u64) -> Moment {
    Moment::new(i64::try_from(frame).unwrap() * 1000, frame, Side::Client)
}

impl Talk {
    pub fn new() -> Self {
        Self::on(Conversation::new(Carrier::Stream, false, None))
    }

    pub fn midstream() -> Self {
        Self::on(Conversation::new(Carrier::Stream, true, None))
    }

    pub fn on(conversation: Conversation) -> Self {
        Self { conversation, frame: 0, sent: BySide::default(), held_back: BySide::default(), packets: Vec::new() }
    }

    pub fn client(self, bytes: impl AsRef<[u8]>) -> Self {
        self.say(Side::Client, bytes.as_ref(), 0)
    }

    pub fn server(self, bytes: impl AsRef<[u8]>) -> Self {
        self.say(Side::Server, bytes.as_ref(), 0)
    }

    /// One packet, of which the snap length cut off `cut` bytes.
    pub fn say(mut self, from: Side, bytes: &[u8], cut: u32) -> Self {
        self.frame += 1;
        let (offset, seen) = (self.sent[from], moment(self.frame));
        let acked = self.sent[from.peer()] - self.held_back[from.peer()];
        let chunk = Chunk { bytes, cut, offset, acked, seen };
        self.packets.push(Packet { from, bytes: bytes.to_vec(), offset, acked, seen });
        self.sent[from] += chunk.len();
        self.conversation.data(from, chunk);
        self
    }

    /// The latest `bytes` of that side are still on their way when its peer speaks next.
    pub fn unacked(mut self, from: Side, bytes: u64) -> Self {
        self.held_back[from] = bytes;
        self
    }

    /// Bytes that the capture does not hold.
    pub fn gap(mut self, from: Side, len: u64) -> Self {
        self.frame += 1;
        self.conversation.gap(from, Gap::new(self.sent[from], len, moment(self.frame)));
        self.sent[from] += len;
        self
    }

    pub fn fin(mut self, from: Side) -> Self {
        self.frame += 1;
        self.conversation.fin(from, moment(self.frame));
        self
    }

    pub fn packets(&self) -> Vec<Packet> {
        self.packets.clone()
    }

    /// What is handed out without the connection being over.
    pub fn settled(&mut self) -> Vec<Exchange> {
        std::iter::from_fn(|| self.conversation.next_exchange()).collect()
    }

    /// Everything, after the end of the connection.
    pub fn exchanges(mut self) -> Vec<Exchange> {
        self.finish()
    }

    pub fn finish(&mut self) -> Vec<Exchange> {
        self.conversation.finish();
        self.settled()
    }

    /// Messages inside the content of exchanges, as far as they are certain.
    pub fn messages(&mut self) -> Vec<ContentMessage> {
        std::iter::from_fn(|| self.conversation.next_message()).collect()
    }

    pub fn unseen(&mut self) -> Vec<(u64, u64)> {
        let next = || self.conversation.next_unseen().map(|(from, to)| (from.frame(), to.frame()));
        std::iter::from_fn(next).collect()
    }
}

/// What is found where each side says so much at once; the same is found where TCP cuts it into pieces of these sizes.
pub fn however_tcp_cut_it(packets: &[(Side, Vec<u8>)], sizes: &[usize]) -> Vec<Exchange> {
    let (mut whole, mut cut) = (Talk::new(), Talk::new());
    let mut sizes = sizes.iter().copied().cycle();
    for (from, bytes) in packets {
        whole = whole.say(*from, bytes, 0);
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(sizes.next().unwrap().min(rest.len()));
            // All pieces come at the moment of the whole.
            cut.frame = whole.frame - 1;
            cut = cut.say(*from, piece, 0);
            rest = after;
        }
    }
    let found = whole.finish();
    assert_eq!(cut.finish(), found);
    assert_eq!(cut.messages(), whole.messages());
    found
}

/// Frames of a span's first and last byte, its length, and whether it is done.
pub type Short = (Option<u64>, Option<u64>, u64, bool);

pub fn short(span: Span) -> Short {
    (span.first.map(|m| m.frame()), span.last.map(|m| m.frame()), span.bytes, span.done)
}
