//! The transport parameters of QUIC (RFC 9000 section 18) as text.
//!
//! In: the body of the extension `quic_transport_parameters`. Out: `name=value` for each, in the order in which they were
//! sent: numbers in decimal, connection IDs and unknown values in hexadecimal, a flag by its name alone. Names are those of
//! RFC 9000 section 18.2, RFC 9221 and RFC 9287; of others, the number. Bounded: [`MOST`] of them, [`LONGEST`] bytes of
//! a value. Non-goals: what a server remembers for 0-RTT.

use std::fmt::Write as _;

use crate::bytes::Fields;

/// Parameters that are kept; clients send about 15.
const MOST: usize = 32;
/// Bytes of a value that are kept: that of `preferred_address` with the longest connection ID has 61.
const LONGEST: usize = 64;

#[derive(Clone, Copy, PartialEq)]
enum Form {
    Number,
    Bytes,
    Flag,
}

fn definition(id: u64) -> Option<(&'static str, Form)> {
    Some(match id {
        0x00 => ("original_destination_connection_id", Form::Bytes),
        0x01 => ("max_idle_timeout", Form::Number),
        0x02 => ("stateless_reset_token", Form::Bytes),
        0x03 => ("max_udp_payload_size", Form::Number),
        0x04 => ("initial_max_data", Form::Number),
        0x05 => ("initial_max_stream_data_bidi_local", Form::Number),
        0x06 => ("initial_max_stream_data_bidi_remote", Form::Number),
        0x07 => ("initial_max_stream_data_uni", Form::Number),
        0x08 => ("initial_max_streams_bidi", Form::Number),
        0x09 => ("initial_max_streams_uni", Form::Number),
        0x0a => ("ack_delay_exponent", Form::Number),
        0x0b => ("max_ack_delay", Form::Number),
        0x0c => ("disable_active_migration", Form::Flag),
        0x0d => ("preferred_address", Form::Bytes),
        0x0e => ("active_connection_id_limit", Form::Number),
        0x0f => ("initial_source_connection_id", Form::Bytes),
        0x10 => ("retry_source_connection_id", Form::Bytes),
        0x20 => ("max_datagram_frame_size", Form::Number),
        0x2ab2 => ("grease_quic_bit", Form::Flag),
        _ => return None,
    })
}

/// The parameters of one side.
pub(super) fn texts(body: &[u8]) -> Vec<String> {
    let mut fields = Fields(body);
    let parameters = std::iter::from_fn(|| {
        let (id, len) = (fields.varint()?, fields.varint()?);
        Some((id, fields.take(usize::try_from(len).ok()?)?))
    });
    parameters.take(MOST).map(|(id, value)| text(id, value)).collect()
}

fn text(id: u64, value: &[u8]) -> String {
    let number = Fields(value).varint();
    match (definition(id), number) {
        (Some((name, Form::Flag)), _) => name.into(),
        (Some((name, Form::Number)), Some(number)) => format!("{name}={number}"),
        (named, _) => {
            let mut text = named.map_or_else(|| format!("{id:#x}"), |(name, _)| name.into());
            text.push('=');
            // Memory takes any text.
            let _ = value.iter().take(LONGEST).try_for_each(|byte| write!(text, "{byte:02x}"));
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_parameter_has_its_name_and_its_value() {
        let body = [4, 4, 0x80, 0x10, 0, 0, 0x0c, 0, 0x0f, 2, 0xab, 0xcd, 0x40, 0x7f, 1, 9, 1, 0, 0x20, 2, 0x44, 0xb0];
        let expected = [
            "initial_max_data=1048576",
            "disable_active_migration",
            "initial_source_connection_id=abcd",
            "0x7f=09",
            "max_idle_timeout=",
            "max_datagram_frame_size=1200",
        ];
        assert_eq!(texts(&body), expected);
        assert_eq!(texts(body.get(..3).unwrap_or_default()), Vec::<String>::new());
    }

    #[test]
    fn hostile_parameters_take_little_room() {
        let long = [&[0x40, 0x7f, 0x44, 0x00][..], &[7; 1024]].concat().repeat(100);
        let found = texts(&long);
        assert_eq!((found.len(), found.iter().all(|text| text.len() <= 2 * LONGEST + 8)), (MOST, true));
    }
}
