//! Codes to text, hellos to fingerprints.

use std::sync::Arc;

use super::build::*;
use crate::tls::hello::ClientHello;
use crate::tls::{KeyCoverage, Kind, Outcome};
use crate::tls::{fingerprint, names};

fn prints(hello: &Hello) -> (Arc<str>, Arc<str>) {
    let message = hello.message();
    let read = ClientHello::read(&message[4..], message.len() as u32 - 4);
    assert!(read.whole);
    let prints = fingerprint::of(&read, fingerprint::Transport::Tcp);
    (prints.ja3, prints.ja4)
}

/// The example of JA3's own documentation.
#[test]
fn ja3_matches_its_published_examples() {
    let bare = Hello { version: 769, session_id: vec![], ciphers: vec![], extensions: vec![] };
    let ciphers = vec![47, 53, 5, 10, 49161, 49162, 49171, 49172, 50, 56, 19, 4];
    let hello = Hello { ciphers, ..bare.clone() }.sni("x").codes(10, &[23, 24, 25]).point_formats(&[0]);
    assert_eq!(&*prints(&hello).0, "ada70206e40642a3e4461f35503241d5");
    let hello = Hello { ciphers: vec![4, 5, 10, 9, 100, 98, 3, 6, 19, 18, 99], ..bare };
    assert_eq!(&*prints(&hello).0, "de350869b8c85de67a350c8d186f11e6");
}

/// The example of JA4's own documentation: Chrome, GREASE included.
#[test]
fn ja4_matches_its_published_example() {
    let ciphers = vec![
        0x2a2a, 0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f, 0xc02c, 0xc030, 0xcca9, 0xcca8, 0xc013, 0xc014, 0x009c, 0x009d,
        0x002f, 0x0035,
    ];
    let mut hello = Hello { version: 0x0303, session_id: vec![7; 32], ciphers, extensions: vec![] };
    for kind in [0x3a3a, 0x001b] {
        hello = hello.extension(kind, vec![]);
    }
    hello = hello.sni("example.org").extension(0x0033, vec![]).alpn("h2");
    for kind in [0x4469, 0x0017, 0x002d] {
        hello = hello.extension(kind, vec![]);
    }
    hello = hello.codes(0x000d, &[0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501, 0x0806, 0x0601]);
    for kind in [0x0005, 0x0023, 0x0012] {
        hello = hello.extension(kind, vec![]);
    }
    hello = hello.extension(0x002b, vec![6, 0x1a, 0x1a, 3, 4, 3, 3]);
    for kind in [0xff01, 0x000b, 0x000a, 0x0015] {
        hello = hello.extension(kind, vec![]);
    }
    assert_eq!(&*prints(&hello).1, "t13d1516h2_8daaf6152771_e5627efa2ab1");
}

#[test]
fn grease_never_counts() {
    let plain = Hello::tls13().codes(10, &[29]);
    let mut greased = Hello::tls13().codes(10, &[0x8a8a, 29]);
    greased.ciphers.insert(0, 0x0a0a);
    assert_eq!(prints(&plain), prints(&greased.extension(0xfafa, vec![])));
}

/// As browsers do: each hello has other GREASE, and its extensions in another order.
#[test]
fn hellos_of_one_program_are_worked_out_once() {
    let with = |grease: u16, kinds: [u16; 3]| {
        let mut hello = Hello::tls13().codes(10, &[grease, 29]);
        hello.ciphers.insert(0, grease);
        kinds.iter().fold(hello, |hello, &kind| hello.extension(kind, vec![])).extension(grease, vec![])
    };
    let first = prints(&with(0x0a0a, [18, 23, 27]));
    let before = fingerprint::worked_out();
    for grease in [0x1a1a, 0x2a2a, 0xfafa] {
        assert_eq!(prints(&with(grease, [18, 23, 27])), first);
    }
    assert_eq!(fingerprint::worked_out(), before, "GREASE never counts");
    let shuffled = prints(&with(0x3a3a, [27, 18, 23]));
    assert_eq!((shuffled.1, shuffled.0 == first.0), (first.1, false), "JA4 sorts, JA3 does not");
    assert_eq!(fingerprint::worked_out(), (before.0 + 1, before.1));
}

#[test]
fn ja4_of_odd_hellos() {
    let bare = Hello { version: 0x0301, session_id: vec![], ciphers: vec![5], extensions: vec![] };
    assert_eq!(
        &*prints(&bare).1,
        "t10i010000_0f2cb44170f4_000000000000".replace("0f2cb44170f4", &sha("0005")).as_str()
    );
    assert!(prints(&bare.clone().alpn("\u{1}x")).1.starts_with("t10i010108_"), "hex digits of 01 … 78");
    assert!(prints(&bare.alpn("h")).1.starts_with("t10i0101hh_"));
}

fn sha(text: &str) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(text).iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn unknown_codes_stay_visible() {
    assert_eq!(&*names::cipher(0x1302), "TLS_AES_256_GCM_SHA384");
    assert_eq!(&*names::cipher(0xfefe), "0xfefe");
    assert_eq!(&*names::group(4588), "X25519MLKEM768");
    assert_eq!(&*names::group(0x6a6a), "0x6a6a");
    assert_eq!(&*names::Version(0x7f1c).name(), "TLSv1.3");
    assert_eq!(&*names::Version(0x0305).name(), "0x0305");
    assert_eq!(&*names::alert(2, 48), "fatal unknown_ca (48)");
    assert_eq!(&*names::alert(7, 200), "level-7 unknown (200)");
}

#[test]
fn tables_say_these_words() {
    let kinds = [Kind::Full, Kind::SessionId, Kind::Ticket, Kind::Psk, Kind::Psk0Rtt];
    assert_eq!(kinds.map(Kind::name), ["full", "session-id", "ticket", "psk", "psk-0rtt"]);
    let outcomes = [Outcome::Complete, Outcome::Failed, Outcome::Incomplete];
    assert_eq!(outcomes.map(Outcome::name), ["complete", "failed", "incomplete"]);
    use KeyCoverage::{All, None, Partial, Unsupported, Wrong};
    let coverage = [All, Partial, None, Wrong, Unsupported].map(KeyCoverage::name);
    assert_eq!(coverage, ["all", "partial", "none", "wrong", "unsupported"]);
}
