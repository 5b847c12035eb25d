//! What went by in TLS, one by one: records, and the handshake messages in them. For whoever explains a connection.
//!
//! In: each record when it ends, each handshake message that could be read. Out: [`RecordSeen`] and [`MessageSeen`], in
//! the order in which they ended. Kept until they are fetched: a packet's worth.

use std::collections::VecDeque;

use super::decryptor::Opened;
use super::messages::Message;
use super::messages::message as kinds;
use super::names::Name;
use super::record::{ALERT, APPLICATION_DATA, CHANGE_CIPHER_SPEC, HANDSHAKE, HEADER, RecordPart, SSLV2};
use crate::stream::{Moment, Side};

/// A handshake message has its type and length before it.
const MESSAGE_HEADER: u32 = 4;

/// One record, as everybody can read it.
#[derive(Clone, Copy, Debug)]
pub struct RecordSeen {
    pub from: Side,
    kind: u16,
    /// With its header.
    pub bytes: u32,
    pub first: Moment,
    pub last: Moment,
    /// What protection hides of it.
    pub cover: Cover,
}

/// Is a record's content to be read?
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Cover {
    Clear,
    Opened,
    Encrypted,
}

impl Cover {
    /// The name in the tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Clear => "clear",
            Self::Opened => "opened",
            Self::Encrypted => "sealed",
        }
    }
}

impl RecordSeen {
    /// Its content type (RFC 8446 section 5.1); of one that was opened, of what is inside.
    #[must_use]
    pub fn kind(&self) -> Name {
        match self.kind {
            CHANGE_CIPHER_SPEC => "ChangeCipherSpec".into(),
            ALERT => "Alert".into(),
            HANDSHAKE => "Handshake".into(),
            APPLICATION_DATA => "ApplicationData".into(),
            SSLV2 => "SSLv2".into(),
            code => format!("{code}").into(),
        }
    }
}

/// One handshake message that could be read.
#[derive(Clone, Debug)]
pub struct MessageSeen {
    pub from: Side,
    /// Number of its handshake on this connection.
    pub handshake: u32,
    /// Its type (RFC 8446 section 4).
    pub code: u8,
    /// With its header.
    pub bytes: u32,
    pub first: Moment,
    pub last: Moment,
    /// It came in a protected record that was opened.
    pub opened: bool,
    /// Without its header, as far as it is known; where bodies are wanted.
    pub body: Option<Box<[u8]>>,
}

impl MessageSeen {
    /// The name that the RFCs give to the type.
    #[must_use]
    pub fn kind(&self) -> Name {
        match self.code {
            0 => "HelloRequest".into(),
            kinds::CLIENT_HELLO => "ClientHello".into(),
            kinds::SERVER_HELLO => "ServerHello".into(),
            kinds::NEW_SESSION_TICKET => "NewSessionTicket".into(),
            kinds::END_OF_EARLY_DATA => "EndOfEarlyData".into(),
            kinds::HELLO_RETRY_REQUEST => "HelloRetryRequest".into(),
            kinds::ENCRYPTED_EXTENSIONS => "EncryptedExtensions".into(),
            kinds::CERTIFICATE => "Certificate".into(),
            kinds::SERVER_KEY_EXCHANGE => "ServerKeyExchange".into(),
            kinds::CERTIFICATE_REQUEST => "CertificateRequest".into(),
            kinds::SERVER_HELLO_DONE => "ServerHelloDone".into(),
            kinds::CERTIFICATE_VERIFY => "CertificateVerify".into(),
            kinds::CLIENT_KEY_EXCHANGE => "ClientKeyExchange".into(),
            kinds::FINISHED => "Finished".into(),
            kinds::CERTIFICATE_STATUS => "CertificateStatus".into(),
            kinds::KEY_UPDATE => "KeyUpdate".into(),
            kinds::COMPRESSED_CERTIFICATE => "CompressedCertificate".into(),
            code => format!("{code}").into(),
        }
    }
}

/// What went by and is not fetched yet.
#[derive(Debug, Default)]
pub struct Transcript {
    /// Bodies of messages are wanted, too.
    bodies: bool,
    records: VecDeque<RecordSeen>,
    messages: VecDeque<MessageSeen>,
}

impl Transcript {
    #[must_use]
    pub fn new(bodies: bool) -> Self {
        Self { bodies, ..Self::default() }
    }

    /// A record has ended.
    pub(super) fn record(&mut self, from: Side, part: &RecordPart<'_>, protected: bool, opened: &Opened) {
        let cover = match opened {
            _ if !protected => Cover::Clear,
            Opened::Content(_) | Opened::Data(_) => Cover::Opened,
            Opened::Encrypted | Opened::Buffered | Opened::Early => Cover::Encrypted,
        };
        let kind = match opened {
            Opened::Content(content) if protected => content.kind,
            _ => part.record.kind,
        };
        self.records.push_back(RecordSeen {
            from,
            kind,
            bytes: u32::from(part.record.length) + u32::try_from(HEADER).unwrap_or(u32::MAX),
            first: part.record.first,
            last: part.seen,
            cover,
        });
    }

    /// A message was read.
    pub(super) fn message(&mut self, from: Side, handshake: u32, message: &Message<'_>, opened: bool) {
        self.messages.push_back(MessageSeen {
            from,
            handshake,
            code: message.kind,
            bytes: message.length.saturating_add(MESSAGE_HEADER),
            first: message.first,
            last: message.last,
            opened,
            body: self.bodies.then(|| message.body.into()),
        });
    }

    /// Messages in a record after the handshake, whole ones: tickets and key updates (RFC 8446 section 4.6).
    pub(super) fn later_messages(&mut self, from: Side, handshake: u32, part: &RecordPart<'_>, mut content: &[u8]) {
        while let Some((&[code, l2, l1, l0], rest)) = content.split_first_chunk::<4>() {
            let length = u32::from_be_bytes([0, l2, l1, l0]);
            let (body, rest) = rest.split_at(rest.len().min(usize::try_from(length).unwrap_or(usize::MAX)));
            let message = Message { kind: code, length, body, first: part.record.first, last: part.seen };
            self.message(from, handshake, &message, true);
            content = rest;
        }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.messages.is_empty()
    }

    pub fn next_record(&mut self) -> Option<RecordSeen> {
        self.records.pop_front()
    }

    pub fn next_message(&mut self) -> Option<MessageSeen> {
        self.messages.pop_front()
    }
}
