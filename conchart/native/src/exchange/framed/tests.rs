//! Messages as protocols of several families frame them, cut anywhere, with bytes missing.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::cast_possible_truncation)]
#![allow(clippy::cast_possible_wrap)]

use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::stream::Side;

/// How messages of a family are framed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Family {
    /// MongoDB: a little-endian length that counts all.
    Mongo,
    /// PostgreSQL: a type, then a length that counts itself.
    Postgres,
    /// MySQL: three little-endian bytes, then a sequence number.
    MySql,
    /// FastCGI: the length of contents in the middle of a header, that of padding behind it.
    FastCgi,
    /// Redis: a line with the length, then the bytes and the end of a line.
    Bulk,
}

const FAMILIES: [Family; 5] = [Family::Mongo, Family::Postgres, Family::MySql, Family::FastCgi, Family::Bulk];
/// Longest line with a length.
const LONGEST_LINE: usize = 16;

impl Family {
    fn frame(self, body: &[u8]) -> Vec<u8> {
        let len = body.len() as u32;
        let head = match self {
            Self::Mongo => (len + 4).to_le_bytes().to_vec(),
            Self::Postgres => [b"Q".as_slice(), &(len + 4).to_be_bytes()].concat(),
            Self::MySql => [&len.to_le_bytes()[..3], &[0]].concat(),
            Self::FastCgi => [&[1, 6, 0, 1], &(len as u16).to_be_bytes()[..], &[3, 0]].concat(),
            Self::Bulk => format!("${len}\r\n").into_bytes(),
        };
        let tail: &[u8] = match self {
            Self::FastCgi => &[0; 3],
            Self::Bulk => b"\r\n",
            _ => &[],
        };
        [&head, body, tail].concat()
    }

    /// The length of a message; `Err` while it takes so many bytes to know.
    fn len(self, beginning: &[u8]) -> Result<Option<usize>, usize> {
        let field = |at, width, little_endian, uncounted| LengthField { at, width, little_endian, uncounted };
        let (field, header) = match self {
            Self::Mongo => (field(0, 4, true, 0), 4),
            Self::Postgres => (field(1, 4, false, 1), 5),
            Self::MySql => (field(0, 3, true, 4), 4),
            Self::FastCgi => (field(4, 2, false, 8), 8),
            Self::Bulk => {
                let Some(end) = beginning.iter().position(|&byte| byte == b'\n') else {
                    return if beginning.len() < LONGEST_LINE { Err(beginning.len() + 1) } else { Ok(None) };
                };
                let digits = beginning[..end].strip_prefix(b"$").map(<[u8]>::trim_ascii);
                let len = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse::<usize>().ok());
                return Ok(len.map(|len| end + 1 + len + 2));
            }
        };
        if beginning.len() < header {
            return Err(header);
        }
        let padding = if self == Self::FastCgi { usize::from(beginning[6]) } else { 0 };
        Ok(field.read(beginning).map(|len| len + padding))
    }
}

/// The first bytes of a message, whatever its family: so many of them as are kept.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Beginning(Vec<u8>);

const BUFFERED: usize = 12;

impl Message for Beginning {
    type Context = Family;
    const FIRST: usize = 1;

    fn read(beginning: &[u8], all: bool, family: Family) -> Read<Self> {
        match family.len(beginning) {
            Ok(None) => Read::Wrong,
            Err(_) if all => Read::Wrong,
            Err(wanted) => Read::More { wanted, len: None },
            Ok(Some(len)) if beginning.len() < BUFFERED.min(len) && !all => {
                Read::More { wanted: BUFFERED.min(len), len: Some(len) }
            }
            Ok(Some(len)) => Read::Parsed(Self(beginning.to_vec()), len),
        }
    }
}

fn at(frame: usize) -> Moment {
    Moment::new(frame as i64, frame as u64, Side::Client)
}

/// Takes in one packet; gives the beginning, the length and the place of each message that is over.
fn take(framed: &mut Framed<Beginning>, family: Family, frame: usize, packet: &[u8], offset: usize) -> Vec<Summary> {
    let mut summaries = Vec::new();
    let mut taken = 0;
    while taken < packet.len() {
        let rest = &packet[taken..];
        let (more, whole) = framed.take(rest, at(frame), (offset + taken) as u64, family).unwrap();
        taken += more;
        summaries.extend(whole.map(Summary::from));
    }
    summaries
}

#[derive(Debug, Eq, PartialEq)]
struct Summary {
    beginning: Vec<u8>,
    bytes: u64,
    offset: u64,
    done: bool,
}

impl From<Whole<Beginning>> for Summary {
    fn from(Whole { message, span, offset }: Whole<Beginning>) -> Self {
        Self { beginning: message.0, bytes: span.bytes, offset, done: span.done }
    }
}

proptest! {
    #[test]
    fn where_a_stream_is_cut_changes_nothing(
        family in select(&FAMILIES[..]),
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..8),
        cuts in prop::collection::vec(1_usize..20, 1..60),
    ) {
        let messages: Vec<Vec<u8>> = bodies.iter().map(|body| family.frame(body)).collect();
        let stream = messages.concat();
        let mut framed = Framed::<Beginning>::new(Start::Beginning);
        let (mut summaries, mut offset) = (Vec::new(), 0);
        for (frame, len) in cuts.iter().copied().chain([stream.len()]).enumerate() {
            let packet = &stream[offset..(offset + len).min(stream.len())];
            summaries.extend(take(&mut framed, family, frame, packet, offset));
            offset += packet.len();
        }
        let mut begins = 0;
        let expected: Vec<Summary> = messages.iter().map(|message| {
            let offset = begins;
            begins += message.len() as u64;
            let beginning = message[..message.len().min(BUFFERED)].to_vec();
            Summary { beginning, bytes: message.len() as u64, offset, done: true }
        }).collect();
        prop_assert_eq!(summaries, expected);
        prop_assert!(framed.is_between());
    }

    /// Bytes that are missing inside of a message, behind its length, do not hide where the next one begins.
    #[test]
    fn a_gap_inside_a_message_loses_only_its_bytes(
        family in select(&FAMILIES[..]), body in 14_usize..80, from in 0_usize..80, len in 1_usize..80,
    ) {
        let message = family.frame(&vec![7; body]);
        let from = (BUFFERED - 4 + from).min(message.len() - 1);
        let len = len.min(message.len() - from);
        let mut framed = Framed::<Beginning>::new(Start::Beginning);
        let mut summaries = take(&mut framed, family, 1, &message[..from], 0);
        let Missed::Inside(whole) = framed.miss(Gap::new(from as u64, len as u64, at(2)), None, family) else {
            return Err(TestCaseError::fail("out of step"));
        };
        summaries.extend(whole.map(Summary::from));
        summaries.extend(take(&mut framed, family, 2, &message[from + len..], from + len));
        let beginning = message[..from.min(BUFFERED)].to_vec();
        prop_assert_eq!(summaries, [Summary { beginning, bytes: message.len() as u64, offset: 0, done: true }]);
    }
}

#[test]
fn after_a_gap_over_the_end_of_a_message_a_packet_that_begins_like_one_is_waited_for() {
    for family in FAMILIES {
        let message = family.frame(b"SELECT 1 FROM one");
        let (mut framed, mut ledger) = (Framed::<Beginning>::new(Start::Beginning), Ledger::default());
        assert!(!framed.looks_foreign(&mut ledger, at(1), || false));
        assert_eq!(take(&mut framed, family, 1, &message[..BUFFERED], 0), []);
        let Missed::OutOfStep(cut_short) = framed.miss(Gap::new(BUFFERED as u64, 100, at(3)), None, family) else {
            panic!("{family:?} stays in step");
        };
        let summary = Summary::from(cut_short.unwrap());
        assert_eq!((summary.bytes, summary.done), (BUFFERED as u64, false), "{family:?}");
        assert!(framed.looks_foreign(&mut ledger, at(3), || false), "{family:?}: the middle of something");
        framed.go_on(at(3));
        assert!(framed.is_out_of_step());
        assert!(!framed.looks_foreign(&mut ledger, at(4), || true));
        assert_eq!((ledger.next_unseen(), ledger.next_unseen()), (Some((at(1), at(3))), None));
        let summaries = take(&mut framed, family, 4, &message, 200);
        assert_eq!(
            summaries,
            [Summary { beginning: message[..BUFFERED].to_vec(), bytes: message.len() as u64, offset: 200, done: true }]
        );
    }
}

#[test]
fn what_came_in_one_piece_is_not_copied_and_what_is_kept_is_bounded() {
    for family in FAMILIES {
        let message = family.frame(&[1; 5_000]);
        let mut framed = Framed::<Beginning>::new(Start::Beginning);
        take(&mut framed, family, 1, &message[..1_000], 0);
        assert_eq!(framed.held(), 0, "{family:?}");
        let mut framed = Framed::<Beginning>::new(Start::Beginning);
        for (index, byte) in message[..message.len() - 1].iter().enumerate() {
            take(&mut framed, family, index + 1, &[*byte], index);
        }
        assert_eq!(framed.buffered(), &message[..BUFFERED], "{family:?}");
    }
}

#[test]
fn lengths_that_cannot_be_are_wrong() {
    let mut framed = Framed::<Beginning>::new(Start::Beginning);
    assert!(framed.take(&[2, 0, 0, 0, 9], at(1), 0, Family::Mongo).is_err(), "shorter than itself");
    let mut framed = Framed::<Beginning>::new(Start::Beginning);
    assert!(framed.take(&[b'$'; 40], at(1), 0, Family::Bulk).is_err(), "no end of a line");
    let huge = LengthField { at: 0, width: 8, little_endian: false, uncounted: 1 };
    assert_eq!(huge.read(&[0xff; 8]), None);
}
