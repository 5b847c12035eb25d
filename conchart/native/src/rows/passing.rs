//! Rows of what goes by inside TLS and QUIC: records, handshake messages, frames of QUIC and HTTP/3.

use crate::exchange::{Http3Frame, QuicFrame};
use crate::tables::{Http3FrameRow, MessageRow, QuicFrameRow, RecordRow};
use crate::tls::{MessageSeen, RecordSeen};

pub fn quic_frame(stream: i32, seen: &QuicFrame) -> QuicFrameRow<'_> {
    let frame = seen.frame.as_ref();
    let number = |value: Option<u64>| value.map(u64::cast_signed);
    QuicFrameRow {
        stream: Some(stream),
        frame: Some(seen.seen.frame().cast_signed()),
        packet: i32::try_from(seen.packet).ok(),
        number: i32::try_from(seen.number).ok(),
        seen_at: Some(seen.seen.at),
        sender: Some(seen.from.name()),
        packet_type: Some(seen.packet_kind),
        packet_number: number(seen.packet_number),
        packet_bytes: i32::try_from(seen.packet_bytes).ok(),
        kind: frame.map(|frame| frame.kind),
        stream_id: frame.and_then(|frame| number(frame.stream)),
        start_byte: frame.and_then(|frame| number(frame.offset)),
        bytes: frame.and_then(|frame| number(frame.bytes)),
        fin: frame.and_then(|frame| frame.fin),
        value: frame.and_then(|frame| number(frame.value)),
        text: frame.and_then(|frame| frame.text.as_deref()),
    }
}

pub fn http3_frame(stream: i32, frame: &Http3Frame) -> Http3FrameRow<'_> {
    Http3FrameRow {
        stream: Some(stream),
        sender: Some(frame.from.name()),
        stream_id: Some(frame.stream.cast_signed()),
        start_byte: Some(frame.offset.cast_signed()),
        kind: Some(frame.name()),
        bytes: Some(frame.bytes.cast_signed()),
        frame: Some(frame.seen.frame().cast_signed()),
        seen_at: Some(frame.seen.at),
        text: frame.text.as_deref(),
    }
}

/// A record; `number` and `kind` are those of the connection's records.
pub fn record<'a>(stream: i32, number: i32, kind: &'a str, record: &RecordSeen) -> RecordRow<'a> {
    RecordRow {
        stream: Some(stream),
        number: Some(number),
        sender: Some(record.from.name()),
        kind: Some(kind),
        bytes: i32::try_from(record.bytes).ok(),
        cover: Some(record.cover.name()),
        start_at: Some(record.first.at),
        end_at: Some(record.last.at),
        start_frame: Some(record.first.frame().cast_signed()),
        end_frame: Some(record.last.frame().cast_signed()),
    }
}

/// A handshake message; `number` is that of the connection's messages.
pub fn message<'a>(stream: i32, number: i32, kind: &'a str, message: &'a MessageSeen) -> MessageRow<'a> {
    MessageRow {
        stream: Some(stream),
        number: Some(number),
        handshake: i32::try_from(message.handshake).ok(),
        sender: Some(message.from.name()),
        kind: Some(kind),
        code: Some(message.code.into()),
        bytes: i32::try_from(message.bytes).ok(),
        start_at: Some(message.first.at),
        end_at: Some(message.last.at),
        start_frame: Some(message.first.frame().cast_signed()),
        end_frame: Some(message.last.frame().cast_signed()),
        opened: Some(message.opened),
        body: message.body.as_deref(),
    }
}
