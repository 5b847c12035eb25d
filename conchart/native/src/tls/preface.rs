//! Recognizes the beginning of HTTP/2 by the lengths of encrypted records.
//!
//! RFC 9113 sections 3.4 (a client begins with 24 bytes and SETTINGS, a server with SETTINGS), 6.5 and 6.9. In: the
//! length of a record's content. Out: whether it may be such a beginning. HTTP/1 says more at once.

/// `PRI * HTTP/2.0 …`
pub const PREFACE: u64 = 24;

const HEADER: u64 = 9;
const SETTING: u64 = 6;
/// No client and no server sends more settings than that.
const MAX_SETTINGS: u64 = 6;
const WINDOW_UPDATE: u64 = HEADER + 4;
/// Of the connection, and of two streams, where the client's first record had content of several.
const MAX_UPDATES: u64 = 3;
/// SETTINGS that acknowledge the peer's.
const ACKNOWLEDGEMENT: u64 = HEADER;
/// Prefaces with SETTINGS and PRIORITYs, which begin groups of requests: nghttp (two settings, five groups) and Firefox
/// (three settings, credit, six groups). Other sums are as long as requests of other clients.
const PREFACES_OF_GROUPS: [u64; 2] =
    [PREFACE + HEADER + 2 * SETTING + 5 * PRIORITY, PREFACE + HEADER + 3 * SETTING + WINDOW_UPDATE + 6 * PRIORITY];
const PRIORITY: u64 = HEADER + 5;

/// A NewSessionTicket with a name of 32 bytes for what the server keeps: JDK, OpenSSL (nginx without tickets, Apache,
/// HAProxy), rustls; the last two also with leave to send early data. Its other fields take 17 bytes and a nonce of 1,
/// 8 or 32 (RFC 8446 section 4.6.1). SETTINGS as long as that do not come first, as far as any server is known.
const STATEFUL_TICKETS: [u64; 5] = [49 + 1, 49 + 8, 49 + 8 + 8, 49 + 32, 49 + 32 + 8];

/// SETTINGS, and perhaps WINDOW_UPDATEs.
fn is_settings(content: u64, updates: u64) -> bool {
    (0..=updates).map(|many| many * WINDOW_UPDATE).any(|more| {
        let settings = content.checked_sub(HEADER + more);
        settings.is_some_and(|bytes| bytes.is_multiple_of(SETTING) && bytes <= MAX_SETTINGS * SETTING)
    })
}

/// May this be a client's preface: alone, or with its SETTINGS, and with groups of priorities?
#[must_use]
pub fn is_preface(content: u64) -> bool {
    PREFACES_OF_GROUPS.contains(&content)
        || content.checked_sub(PREFACE).is_some_and(|rest| rest == 0 || is_settings(rest, 1))
}

/// May this be SETTINGS, perhaps with an acknowledgement of the peer's, and credit for a body that came with those?
#[must_use]
pub fn begins_settings(content: u64) -> bool {
    !STATEFUL_TICKETS.contains(&content) && (is_settings(content, 1) || acknowledges_settings(content))
}

/// May this be SETTINGS with an acknowledgement of the peer's?
#[must_use]
pub fn acknowledges_settings(content: u64) -> bool {
    content.checked_sub(ACKNOWLEDGEMENT).is_some_and(|rest| is_settings(rest, MAX_UPDATES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_begins_with_a_preface_of_few_lengths() {
        // Chromium and Go, curl, the preface alone; with a request behind it, a request of HTTP/1.
        assert_eq!([70, 64, 24, 70 + 57, 81].map(is_preface), [true, true, true, false, false]);
        // Firefox and nghttp2, with groups of priorities.
        assert_eq!([148, 115].map(is_preface), [true; 2]);
    }

    #[test]
    fn a_server_begins_with_fewer_bytes_than_a_response_has() {
        // Apache, nginx, HAProxy with the acknowledgement, nginx, too, and with credit; HAProxy, with credit
        // for the connection and two streams; 100 (Continue), a response.
        assert_eq!([28, 40, 30, 49, 62, 69].map(begins_settings), [true; 6]);
        assert_eq!([25, 140].map(begins_settings), [false; 2]);
    }

    #[test]
    fn a_ticket_that_names_what_the_server_keeps_is_no_settings() {
        // JDK, OpenSSL, rustls.
        assert_eq!([50, 57, 65, 81, 89].map(begins_settings), [false; 5]);
    }

    #[test]
    fn an_acknowledgement_comes_beside_settings() {
        assert_eq!([30, 49, 28, 27, 40].map(acknowledges_settings), [true, true, false, false, false]);
    }
}
