//! What frames of HTTP/2 a sealed record may hold, by the length of its content.
//!
//! RFC 9113 sections 3.4 (how it begins), 4.1 (nine bytes of header) and 6. In: records of both sides. Out: what each
//! [means](Meaning). Bounded: one PING of each side is kept.
//!
//! Frames without headers or content have fixed lengths: SETTINGS that acknowledge 9, WINDOW_UPDATE and RST_STREAM 13,
//! PRIORITY 14, PING and GOAWAY 17. HEADERS are as short only by chance, and their peer shows it: it answers them.

use crate::stream::{BySide, Moment};
use crate::tls::{AppRecord, PREFACE, acknowledges_settings, begins_settings, is_preface};

const HEADER: u64 = 9;
const WINDOW_UPDATE: u64 = HEADER + 4;
const PRIORITY: u64 = HEADER + 5;
const PING: u64 = HEADER + 8;
/// GOAWAY with the reason that Java gives.
const GOAWAY: u64 = HEADER + 8 + 17;

/// Tickets that a server may send before its SETTINGS (RFC 8446 section 4.6.1).
const MAX_TICKETS: u8 = 4;
/// WINDOW_UPDATEs in one record: of the connection and of streams; and the content for which a receiver sends several:
/// Go's client, which gives credit as soon as its program has read so much.
const MAX_UPDATES: u64 = 3;
const CREDITED: u64 = 4_096;

/// The preface, SETTINGS and a WINDOW_UPDATE of a client that has requests in the same record, the first request there,
/// and each that follows: the first has told the fields that all have.
const BEGINNING: u64 = PREFACE + HEADER + 6 * 6 + WINDOW_UPDATE;
const FIRST_REQUEST: u64 = 58;
const NEXT_REQUEST: u64 = 24;
/// Servers allow about so many streams.
const MAX_REQUESTS: u64 = 100;

/// What a record has to do with requests and responses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Meaning {
    Nothing,
    /// Its sender takes in content: WINDOW_UPDATE.
    Credit,
    /// DATA without content: a message is over.
    End,
    /// Headers or content of so many messages.
    Messages(u64),
}

/// What one side has said so far.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    /// Client: the preface alone.
    preface: bool,
    settings: bool,
    acknowledgement: bool,
    /// Server: records before its SETTINGS.
    tickets: u8,
    /// Client: the shortest request, where it puts several into one record.
    request: Option<u64>,
    /// Content for which the peer has not given credit.
    uncredited: u64,
}

pub(super) struct Control {
    overhead: BySide<u8>,
    sent: BySide<Sent>,
    /// What may be a PING that is not answered yet.
    ping: BySide<Option<AppRecord>>,
}

impl Control {
    pub fn new(overhead: BySide<u8>) -> Self {
        Self { overhead, sent: BySide::default(), ping: BySide::default() }
    }

    /// `asks`: the requester sent it; `waits`: somebody waits for a response.
    pub fn meaning(&mut self, record: &AppRecord, asks: bool, waits: bool) -> Meaning {
        let from = record.from;
        let content = record.bytes.saturating_sub(u64::from(self.overhead[from]));
        if !self.sent[from].settings {
            return self.begin(record, content, asks);
        }
        let uncredited = self.sent[from.peer()].uncredited;
        let sent = &mut self.sent[from];
        match content {
            HEADER => {
                let first = !std::mem::replace(&mut sent.acknowledgement, true);
                if first || asks { Meaning::Nothing } else { Meaning::End }
            }
            _ if content == HEADER + WINDOW_UPDATE && !sent.acknowledgement => {
                sent.acknowledgement = true;
                Meaning::Credit
            }
            _ if content == WINDOW_UPDATE || is_updates(content) && uncredited >= CREDITED => {
                self.sent[from.peer()].uncredited = uncredited.saturating_sub(CREDITED);
                Meaning::Credit
            }
            PRIORITY if asks && waits => Meaning::Nothing,
            PING => {
                if self.ping[from.peer()].take().is_none() {
                    self.ping[from] = Some(*record);
                }
                Meaning::Nothing
            }
            GOAWAY if asks && !waits => {
                self.ping[from] = Some(*record);
                Meaning::Nothing
            }
            _ => {
                sent.uncredited = sent.uncredited.saturating_add(content);
                Meaning::Messages(if asks { sent.requests(content) } else { 1 })
            }
        }
    }

    /// Up to the SETTINGS with which each side begins.
    fn begin(&mut self, record: &AppRecord, content: u64, asks: bool) -> Meaning {
        let sent = &mut self.sent[record.from];
        sent.uncredited = content;
        if !asks {
            sent.settings = begins_settings(content) || sent.tickets == MAX_TICKETS;
            sent.acknowledgement = acknowledges_settings(content);
            sent.tickets += 1;
            return Meaning::Nothing;
        }
        sent.settings = content != PREFACE;
        if is_preface(content) || sent.preface && begins_settings(content) {
            sent.preface = true;
            return Meaning::Nothing;
        }
        let more = content.saturating_sub(BEGINNING + FIRST_REQUEST) / NEXT_REQUEST;
        // What is longer has content, too.
        let more = if more < MAX_REQUESTS { more } else { 0 };
        sent.request = (more > 0).then_some(NEXT_REQUEST);
        Meaning::Messages(1 + more)
    }

    /// What looked like a PING, if the sender of `record` had received it and does not answer it.
    pub fn take_ping(&mut self, record: &AppRecord) -> Option<AppRecord> {
        self.ping[record.from.peer()].take_if(|ping| ping.end <= record.acked)
    }

    pub fn forget(&mut self) {
        self.ping = BySide::default();
    }

    /// The first record of which it is still open what it means.
    pub fn pending(&self) -> Option<Moment> {
        let first = |ping: Option<AppRecord>| ping.map(|ping| ping.first);
        Moment::earliest([first(self.ping.client), first(self.ping.server)])
    }
}

impl Sent {
    /// How many requests has a client in this record?
    fn requests(&self, content: u64) -> u64 {
        self.request.map(|request| content / request).filter(|many| (1..MAX_REQUESTS).contains(many)).unwrap_or(1)
    }
}

/// Several WINDOW_UPDATEs?
fn is_updates(content: u64) -> bool {
    content.is_multiple_of(WINDOW_UPDATE) && content / WINDOW_UPDATE <= MAX_UPDATES
}
