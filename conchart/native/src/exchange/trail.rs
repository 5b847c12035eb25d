//! One direction of a stream, as every reader needs to know it: where packets begin, and from when to when it could not
//! be followed.
//!
//! In: the moments of its bytes, and of what is missing. Out: whether a packet begins, where a reader that is *out of
//! step* may find a message; and, once it has, the stretch that nobody saw.

use super::ledger::Ledger;
use crate::stream::Moment;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trail {
    /// Frame of the latest bytes: another frame means that a packet begins.
    frame: u64,
    /// Since when and until when it could not be followed.
    unseen: Option<(Moment, Moment)>,
}

impl Trail {
    /// Bytes come: are they the first of their packet?
    pub fn begins_packet(&mut self, seen: Moment) -> bool {
        std::mem::replace(&mut self.frame, seen.frame()) != seen.frame()
    }

    /// Bytes are missing, and with them where the next message begins: they came after `since`, and by then.
    pub fn miss(&mut self, since: Moment, by: Moment) {
        self.unseen = Some((self.unseen.map_or(since, |(since, _)| since), by));
    }

    /// Bytes come that cannot be followed yet.
    pub fn go_on(&mut self, seen: Moment) {
        if let Some((_, until)) = &mut self.unseen {
            *until = until.max(seen);
        }
    }

    /// A message begins, or none will: the stretch that nobody saw has an end.
    pub fn end(&mut self, ledger: &mut Ledger) {
        if let Some((since, until)) = self.unseen.take() {
            ledger.unseen(since, until);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Side;

    fn moment(frame: u64) -> Moment {
        Moment::new(frame.cast_signed(), frame, Side::Client)
    }

    #[test]
    fn a_packet_begins_with_another_frame() {
        let mut trail = Trail::default();
        assert_eq!([1, 1, 2].map(|frame| trail.begins_packet(moment(frame))), [true, false, true]);
    }

    #[test]
    fn what_is_missing_twice_is_one_stretch_up_to_the_last_bytes_that_made_no_sense() {
        let (mut trail, mut ledger) = (Trail::default(), Ledger::default());
        trail.go_on(moment(1));
        trail.miss(moment(2), moment(4));
        trail.miss(moment(5), moment(6));
        trail.go_on(moment(7));
        trail.end(&mut ledger);
        trail.end(&mut ledger);
        assert_eq!((ledger.next_unseen(), ledger.next_unseen()), (Some((moment(2), moment(7))), None));
    }
}
