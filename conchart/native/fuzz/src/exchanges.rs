//! What a conversation holds, taken out as it becomes certain, and what is true of it whatever was said.

use conchart_native::{
    Carrier, Chunk, ContentMessage, Conversation, Delay, Exchange, Gap, Handshake, Keys, Moment, Receiver, Side,
};

use crate::Talk;
use crate::memory::bounded;

/// Bytes that reading one connection may take, whatever is said on it.
const MOST_MEMORY: usize = 2 << 20;

/// Everything that was found.
pub struct Found {
    pub exchanges: Vec<Exchange>,
    pub messages: Vec<ContentMessage>,
    pub handshakes: Vec<Box<Handshake>>,
    pub unseen: Vec<(Moment, Moment)>,
    pub app: Option<&'static str>,
    conversation: Conversation,
    /// Nothing that is still to come begins before this, in nanoseconds.
    floor: Option<i64>,
    in_order: bool,
}

impl Found {
    /// What is found in `talk` when it comes in pieces of `size` bytes.
    ///
    /// # Panics
    /// Where a law does not hold.
    #[must_use]
    pub fn of(talk: &Talk<'_>, size: usize, midstream: bool, keys: Option<Keys>) -> Self {
        Self::carried(Conversation::new(Carrier::Stream, midstream, keys), talk, size)
    }

    /// What is found when every packet of `talk` is a datagram.
    ///
    /// # Panics
    /// Where a law does not hold.
    #[must_use]
    pub fn of_datagrams(talk: &Talk<'_>) -> Self {
        Self::carried(Conversation::new(Carrier::Datagrams, false, None), talk, usize::MAX)
    }

    fn carried(conversation: Conversation, talk: &Talk<'_>, size: usize) -> Self {
        let mut found = Self {
            exchanges: Vec::new(),
            messages: Vec::new(),
            handshakes: Vec::new(),
            unseen: Vec::new(),
            app: None,
            conversation,
            floor: None,
            in_order: !talk.is_mixed,
        };
        bounded(MOST_MEMORY, || talk.tell(size, &mut found));
        found.floor = None;
        found.conversation.finish();
        found.collect();
        found.app = found.conversation.app();
        let open = found.conversation.earliest_open();
        assert_eq!(open, None, "{:?} {:?} {:?}", found.exchanges, found.handshakes, found.app);
        assert!(!found.conversation.has_news());
        let belongs = |message: &ContentMessage| (message.exchange as usize) < found.exchanges.len();
        assert!(found.messages.iter().all(belongs), "{:?} of {:?}", found.messages, found.exchanges);
        let mut places: Vec<_> =
            found.messages.iter().map(|m| (m.exchange, m.from == Side::Server, m.number)).collect();
        places.sort_unstable();
        let follows = |pair: &[(u32, bool, u32)]| (pair[0].0, pair[0].1, pair[0].2 + 1) == pair[1] || pair[1].2 == 0;
        assert!(places.windows(2).all(follows), "numbers of messages: {places:?}");
        let bytes: u64 = found.exchanges.iter().map(|e| e.request.bytes + e.response.bytes).sum();
        let sent = talk.sent.client + talk.sent.server;
        assert!(bytes <= sent, "{bytes} bytes of exchanges, {sent} were sent: {:?}", found.exchanges);
        found
    }

    /// Is every byte accounted for, and by what was said itself?
    fn is_understood(&self) -> bool {
        let is_complete = |exchange: &Exchange| {
            let agreed = exchange.protocol != "socks" || exchange.response.done;
            agreed && exchange.request.done && !exchange.inferred
        };
        self.unseen.is_empty() && !self.exchanges.is_empty() && self.exchanges.iter().all(is_complete)
    }

    fn collect(&mut self) {
        while let Some(exchange) = self.conversation.next_exchange() {
            self.check(&exchange);
            self.exchanges.push(exchange);
        }
        while let Some(handshake) = self.conversation.next_handshake() {
            assert_eq!(handshake.number as usize, self.handshakes.len(), "number of a handshake");
            if self.in_order {
                in_order(&handshake);
            }
            self.handshakes.push(handshake);
        }
        while let Some(message) = self.conversation.next_message() {
            assert!(message.first.max(message.last) == message.last, "{message:?}");
            self.messages.push(message);
        }
        while let Some(delay) = self.conversation.next_delay() {
            if let Delay::Held(held) = delay {
                assert!(!self.in_order || held.start.at <= held.end.at, "{held:?}");
            }
        }
        while self.conversation.next_connection_id().is_some() {}
        while let Some((from, to)) = self.conversation.next_unseen() {
            assert!(!self.in_order || from.at <= to.at, "unseen from {from:?} to {to:?}");
            self.unseen.push((from, to));
        }
    }

    fn check(&self, exchange: &Exchange) {
        assert_eq!(exchange.number as usize, self.exchanges.len(), "number of an exchange");
        assert!((0.0..=1.0).contains(&exchange.confidence));
        for span in [exchange.request, exchange.response] {
            assert_eq!(span.first.is_some(), span.last.is_some(), "{span:?}");
            assert!(at(span.first) <= at(span.last), "{span:?}");
        }
        let opened = [exchange.request.first, exchange.response.first].into_iter().filter_map(at).min();
        let early = self.in_order && opened.zip(self.floor).is_some_and(|(opened, floor)| opened < floor);
        assert!(!early, "{exchange:?} begins before {:?}", self.floor);
    }
}

fn at(moment: Option<Moment>) -> Option<i64> {
    moment.map(|moment| moment.at)
}

/// The moments of a handshake come one after the other, where packets do, and where they are not inferred from sizes.
///
/// # Panics
/// Where they do not.
pub fn in_order(handshake: &Handshake) {
    if handshake.inferred {
        return;
    }
    let of_client = [handshake.hello, handshake.client_finished, handshake.complete];
    // An answer may have begun before there was anything to answer, and ended after it.
    let of_server = [handshake.server_hello, handshake.server_done, handshake.complete];
    for moments in [of_client, of_server] {
        let instants: Vec<i64> = moments.iter().flatten().map(|moment| moment.at).collect();
        assert!(instants.is_sorted(), "{instants:?} in {handshake:?}");
    }
    // With early data, the client may send at once.
    let ready = handshake.ready.zip(handshake.hello);
    assert!(ready.is_none_or(|(ready, hello)| ready.at >= hello.at), "{handshake:?}");
}

impl Receiver for Found {
    fn data(&mut self, from: Side, chunk: Chunk<'_>) {
        self.conversation.data(from, chunk);
        self.collect();
        self.floor = self.floor.max(self.conversation.earliest_open().map(|moment| moment.at));
    }
    fn gap(&mut self, from: Side, gap: Gap) {
        self.conversation.gap(from, gap);
        self.collect();
        self.floor = self.floor.max(self.conversation.earliest_open().map(|moment| moment.at));
    }
    fn fin(&mut self, from: Side, seen: Moment) {
        self.conversation.fin(from, seen);
        self.collect();
    }
}

/// Where a conversation was understood, and all of it is there, nobody guessed: it does not depend on how its packets are handed over. (A reader
/// that has lost its way finds it again where a packet begins.)
///
/// # Panics
/// Where it does.
pub fn assert_cutting_changes_nothing(talk: &Talk<'_>, size: usize) -> Found {
    let whole = Found::of(talk, usize::MAX, false, None);
    let cut = Found::of(talk, size, false, None);
    if !talk.is_torn && (whole.is_understood() || cut.is_understood()) {
        assert_eq!(whole.exchanges, cut.exchanges);
        assert_eq!(whole.messages, cut.messages);
        assert_eq!(whole.unseen, cut.unseen);
        assert_eq!(whole.app, cut.app);
    }
    whole
}
