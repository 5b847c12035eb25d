//! The conversation inside TLS, where its records could be opened.
//!
//! In: application data in clear, record by record. Out: chunks and gaps of the streams inside, whose offsets
//! count content only. What a sender had received of its peer's content is known from what it had acknowledged
//! of its peer's records: a record that was acknowledged in part cannot have been read.

use std::collections::VecDeque;

use super::conversation::Conversation;
use crate::stream::{BySide, Chunk, Gap};
use crate::tls::{AppRecord, Clear};

/// Records of one side on their way at once; when there are more, the oldest count as received.
const MAX_UNACKNOWLEDGED: usize = 1024;

pub(super) struct Inside {
    pub conversation: Conversation,
    streams: BySide<Stream>,
}

/// One side's content.
#[derive(Default)]
struct Stream {
    /// End of the content so far.
    sent: u64,
    /// End of the content that was surely received.
    received: u64,
    /// Ends of later records: in the TCP stream, and of their content.
    ends: VecDeque<(u64, u64)>,
}

impl Stream {
    /// How much of the content a peer had received that had acknowledged so much of the TCP stream.
    fn received(&mut self, acked: u64) -> u64 {
        while let Some(&(end, content)) = self.ends.front()
            && (end <= acked || self.ends.len() > MAX_UNACKNOWLEDGED)
        {
            self.received = content;
            self.ends.pop_front();
        }
        self.received
    }
}

impl Inside {
    pub fn new(conversation: Conversation) -> Self {
        Self { conversation, streams: BySide::default() }
    }

    /// A record that stayed sealed although others were opened.
    pub fn miss(&mut self, record: &AppRecord) {
        let stream = &mut self.streams[record.from];
        let gap = Gap::new(stream.sent, record.bytes, record.last);
        stream.sent = stream.sent.saturating_add(record.bytes);
        self.conversation.gap(record.from, gap);
    }

    /// Takes in the next record.
    pub fn hear(&mut self, clear: &Clear) {
        let from = clear.from;
        let acked = self.streams[from.peer()].received(clear.acked);
        let stream = &mut self.streams[from];
        if clear.missing > 0 {
            let gap = Gap::new(stream.sent, clear.missing, clear.last);
            stream.sent = stream.sent.saturating_add(clear.missing);
            stream.ends.push_back((clear.end, stream.sent));
            return self.conversation.gap(from, gap);
        }
        let mut offset = stream.sent;
        stream.sent = stream.sent.saturating_add(clear.content.len() as u64);
        stream.ends.push_back((clear.end, stream.sent));
        for (bytes, seen) in clear.pieces() {
            self.conversation.data(from, Chunk { bytes, cut: 0, offset, acked, seen });
            offset = offset.saturating_add(bytes.len() as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_was_received_when_all_of_it_was_acknowledged() {
        let mut stream = Stream { ends: VecDeque::from([(122, 100), (244, 200)]), ..Stream::default() };
        let received: Vec<u64> = [0, 121, 122, 130, 244, 999].map(|acked| stream.received(acked)).to_vec();
        assert_eq!(received, [0, 0, 100, 100, 200, 200]);
    }

    #[test]
    fn records_that_nobody_acknowledges_are_not_kept_for_ever() {
        let mut stream = Stream { ends: (1..5000).map(|n| (n * 122, n * 100)).collect(), ..Stream::default() };
        stream.received(0);
        assert_eq!(stream.ends.len(), MAX_UNACKNOWLEDGED);
    }
}
