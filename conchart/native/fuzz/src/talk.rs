//! Two streams of one connection, said in turn: what TCP hands on, whatever was sent.

use std::borrow::Cow;

use conchart_native::{BySide, Chunk, Gap, Moment, Receiver, Side};

use crate::Input;

const START: i64 = 1_700_000_000_000_000_000;

enum What<'a> {
    /// Bytes, and how many more the snap length cut off.
    Data(Cow<'a, [u8]>, u32),
    Gap(u64),
    Fin,
}

struct Packet<'a> {
    from: Side,
    what: What<'a>,
    acked: u64,
    seen: Moment,
}

/// What was said.
///
/// The manner of a packet is one byte: who sends it (bit 0), when (bits 4 and 5), what it acknowledges (bits 6 and 7);
/// bits 1 to 3 are the target's.
#[derive(Default)]
pub struct Talk<'a> {
    packets: Vec<Packet<'a>>,
    pub sent: BySide<u64>,
    /// How much each side had sent before its latest packet.
    before: BySide<u64>,
    frame: u64,
    at: i64,
    latest: Option<(Side, Moment)>,
    /// A packet came late: it was captured before one that is told earlier.
    pub is_mixed: bool,
    /// Bytes are missing.
    pub is_torn: bool,
}

/// Who sends a packet of this manner.
#[must_use]
pub fn sender(manner: u8) -> Side {
    if manner & 1 == 0 { Side::Client } else { Side::Server }
}

/// What the target makes of a packet of this manner: 0 to 7.
#[must_use]
pub fn kind(manner: u8) -> u8 {
    manner >> 1 & 7
}

impl<'a> Talk<'a> {
    /// A conversation of raw bytes: a manner, and for each the length and the bytes, or the length of a gap.
    pub fn read(input: &mut Input<'a>) -> Self {
        let mut talk = Self::default();
        while let Some(manner) = input.u8() {
            match kind(manner) {
                5 => talk.gap(manner, input.u16().unwrap_or(0).into()),
                6 => talk.fin(manner),
                7 => {
                    let cut = input.u16().unwrap_or(0);
                    let bytes = input.bytes().unwrap_or_default();
                    talk.say_cut(manner, bytes, cut.into());
                }
                _ => {
                    let bytes = input.bytes().unwrap_or_default();
                    talk.say(manner, bytes);
                }
            }
        }
        talk
    }

    pub fn say(&mut self, manner: u8, bytes: impl Into<Cow<'a, [u8]>>) {
        self.say_cut(manner, bytes, 0);
    }

    /// A packet of which `cut` more bytes were not captured.
    pub fn say_cut(&mut self, manner: u8, bytes: impl Into<Cow<'a, [u8]>>, cut: u32) {
        let bytes = bytes.into();
        let len = bytes.len() as u64 + u64::from(cut);
        self.is_torn |= cut > 0;
        if len > 0 {
            self.add(manner, What::Data(bytes, cut), len);
        }
    }

    pub fn gap(&mut self, manner: u8, len: u64) {
        if len > 0 {
            self.is_torn = true;
            self.add(manner, What::Gap(len), len);
        }
    }

    pub fn fin(&mut self, manner: u8) {
        self.add(manner, What::Fin, 0);
    }

    fn add(&mut self, manner: u8, what: What<'a>, len: u64) {
        let from = sender(manner);
        let acked = match manner >> 6 {
            1 => 0,
            2 => self.before[from.peer()],
            _ => self.sent[from.peer()],
        };
        let seen = self.moment(from, manner >> 4 & 3);
        self.before[from] = self.sent[from];
        self.sent[from] += len;
        self.latest = Some((from, seen));
        self.packets.push(Packet { from, what, acked, seen });
    }

    /// Frames have even numbers, but for those that come late.
    fn moment(&mut self, from: Side, when: u8) -> Moment {
        if let Some((sender, seen)) = self.latest
            && when == 0
            && sender == from
        {
            return seen;
        }
        self.frame += 2;
        self.at += match when {
            0 => 0,
            1 => 1_000,
            _ => 200_000_000,
        };
        let at = START + self.at;
        if when == 3 && self.frame > 2 {
            self.is_mixed = true;
            return Moment::new(at - 200_000_500, self.frame - 3, from);
        }
        Moment::new(at, self.frame, from)
    }

    /// Sizes of pieces from 1 on, but no more pieces than a run has time for.
    #[must_use]
    pub fn piece(&self, how: u8) -> usize {
        let all = usize::try_from(self.sent.client + self.sent.server).unwrap_or(usize::MAX);
        usize::from(how).max(all / 512) + 1
    }

    /// Hands everything on, in pieces of at most `size` bytes; a piece has its packet's moment.
    pub fn tell(&self, size: usize, receiver: &mut impl Receiver) {
        let mut offset = BySide::<u64>::default();
        for &Packet { from, ref what, acked, seen } in &self.packets {
            let offset = &mut offset[from];
            match what {
                What::Data(bytes, cut) => {
                    let mut rest = &bytes[..];
                    loop {
                        let (bytes, after) = rest.split_at(size.min(rest.len()));
                        rest = after;
                        let cut = if rest.is_empty() { *cut } else { 0 };
                        let chunk = Chunk { bytes, cut, offset: *offset, acked, seen };
                        *offset += chunk.len();
                        receiver.data(from, chunk);
                        if rest.is_empty() {
                            break;
                        }
                    }
                }
                What::Gap(len) => {
                    receiver.gap(from, Gap::new(*offset, *len, seen));
                    *offset += len;
                }
                What::Fin => receiver.fin(from, seen),
            }
        }
    }
}
