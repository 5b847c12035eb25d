//! Which protocol TLS 1.3 agreed on, where it is encrypted: told from the length of EncryptedExtensions.
//!
//! RFC 8446 section 4.3.1 (the message), 4.2 (which extensions it may answer), RFC 7301 section 3.1 (ALPN). In: what the
//! ClientHello offered, and the length of the first message after the ServerHello. Out: whether HTTP/2 was agreed on,
//! where one reading only fits. `h2` is 6 bytes shorter than `http/1.1`, and many servers send the message in a record
//! of its own.

use super::hello::ClientHello;

/// Type and length of the message, and the length of its extensions.
const MESSAGE: u64 = 4 + 2;
/// Type and length of an extension.
const EXTENSION: u64 = 2 + 2;
/// ALPN beside the name: the length of the list, and of the name.
const ALPN: u64 = EXTENSION + 2 + 1;
const H2: &[u8] = b"h2";

/// What the ClientHello offered that EncryptedExtensions may answer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Offered {
    /// HTTP/2 by ALPN.
    http2: bool,
    /// Lengths of the other protocols' names, as bits.
    others: u32,
    /// `server_name`, which is acknowledged without content (RFC 6066 section 3).
    server_name: bool,
    /// `early_data`, likewise.
    early_data: bool,
    /// `record_size_limit`, which has two bytes (RFC 8449).
    record_size_limit: bool,
}

impl Offered {
    pub fn of(hello: &ClientHello<'_>) -> Self {
        let length = |name: &[u8]| u32::try_from(name.len()).ok().and_then(|length| 1_u32.checked_shl(length));
        let others = hello.protocols().filter(|&name| name != H2);
        Self {
            http2: hello.protocols().any(|name| name == H2),
            others: others.filter_map(length).fold(0, |bits, bit| bits | bit),
            server_name: hello.server_name.is_some(),
            early_data: hello.early_data,
            record_size_limit: hello.record_size_limit(),
        }
    }

    pub fn http2(self) -> bool {
        self.http2
    }

    /// Was HTTP/2 agreed on? `None`: a message of `bytes` does not tell, or holds other messages, too.
    pub fn agreed_http2(self, bytes: u64) -> Option<bool> {
        let extensions = bytes.checked_sub(MESSAGE)?;
        let fits = |alpn: u64| extensions.checked_sub(alpn).is_some_and(|rest| self.is_acknowledgements(rest));
        let http2 = self.http2 && fits(ALPN + H2.len() as u64);
        let other =
            fits(0) || (0..u32::BITS).filter(|bit| self.others >> bit & 1 == 1).any(|bit| fits(ALPN + u64::from(bit)));
        (http2 != other).then_some(http2)
    }

    /// May so many bytes be extensions that answer others than ALPN?
    fn is_acknowledgements(self, bytes: u64) -> bool {
        let sizes = |offered: bool, size: u64| [Some(0), offered.then_some(size)].into_iter().flatten();
        sizes(self.server_name, EXTENSION)
            .flat_map(|name| sizes(self.early_data, EXTENSION).map(move |early| name + early))
            .flat_map(|both| sizes(self.record_size_limit, EXTENSION + 2).map(move |limit| both + limit))
            .any(|all| all == bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BROWSER: Offered =
        Offered { http2: true, others: 1 << 8, server_name: true, early_data: false, record_size_limit: false };

    #[test]
    fn a_message_of_its_own_tells_the_protocol() {
        // With and without an acknowledged name; no protocol; certificate and all in one record.
        assert_eq!([15, 19].map(|bytes| BROWSER.agreed_http2(bytes)), [Some(true); 2]);
        assert_eq!([21, 25, 6, 10].map(|bytes| BROWSER.agreed_http2(bytes)), [Some(false); 4]);
        assert_eq!([0, 5, 14, 29, 1_200].map(|bytes| BROWSER.agreed_http2(bytes)), [None; 5]);
    }

    #[test]
    fn a_length_with_two_readings_tells_nothing() {
        let firefox = Offered { record_size_limit: true, ..BROWSER };
        assert_eq!([15, 21, 25, 27].map(|bytes| firefox.agreed_http2(bytes)), [Some(true), None, None, Some(false)]);
    }

    #[test]
    fn without_an_offer_of_http2_it_is_not_agreed_on() {
        let curl = Offered { http2: false, ..BROWSER };
        assert_eq!([19, 25].map(|bytes| curl.agreed_http2(bytes)), [None, Some(false)]);
    }
}
