#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use super::instants::{self, Instant};
use super::lines::Lines;
use super::tokens::{Layout, Parser, Role};

fn layout(fields: &[(&str, &str)], end: &str) -> Layout {
    let fields = fields.iter().map(|(before, role)| ((*before).to_owned(), Role::named(role).unwrap())).collect();
    Layout::Text(fields, end.to_owned())
}

fn combined() -> Layout {
    layout(
        &[
            ("", "client_ip"),
            (" - ", "skip"),
            (" [", "at:%d/%b/%Y:%H:%M:%S %z"),
            ("] \"", "request"),
            ("\" ", "status"),
            (" ", "bytes"),
            (" \"", "skip"),
            ("\" \"", "skip"),
        ],
        "\"",
    )
}

#[test]
fn a_line_of_the_combined_format_is_read() {
    let line = br#"10.0.0.1 - - [26/Nov/2026:14:01:02 +0100] "GET /a?b=c HTTP/1.1" 200 12 "-" "say \"x\" y""#;
    let layout = combined();
    let found = Parser::new(&layout).parse(line).unwrap();
    assert_eq!(found.client_ip.as_deref(), Some("10.0.0.1"));
    assert_eq!(found.at.unwrap().ns, 1_795_698_062_000_000_000);
    assert_eq!((found.method.as_deref(), found.target.as_deref()), (Some("GET"), Some("/a?b=c")));
    assert_eq!((found.status, found.bytes), (Some(200), Some(12)));
}

#[test]
fn a_line_that_is_built_otherwise_is_refused() {
    let layout = combined();
    for line in [&b"nonsense"[..], b"", b"1 - - [26/Nov/2026:14:01:02 +0100] \"GET / HTTP/1.1\" x 12 \"-\" \"-\""] {
        assert!(Parser::new(&layout).parse(line).is_none());
    }
}

#[test]
fn the_prefix_of_syslog_is_stepped_over() {
    let layout =
        layout(&[("", "client"), (" [", "at:%d/%b/%Y:%H:%M:%S%f"), ("] ", "time:0:ms"), ("/", "time:1:ms")], "");
    let line = b"<134>Nov 26 13:00:01 lb haproxy[12]: 10.0.0.1:4242 [26/Nov/2026:13:00:01.123] 5/-1";
    let found = Parser::new(&layout).parse(line).unwrap();
    assert_eq!((found.client_ip.as_deref(), found.client_port), (Some("10.0.0.1"), Some(4242)));
    assert_eq!(found.at.unwrap(), Instant { ns: 1_795_698_001_123_000_000, unit_ns: 1_000_000, zoned: false });
    assert_eq!(found.times, [Some(5_000_000), None]);
}

#[test]
fn of_several_attempts_the_last_one_counts() {
    let layout = layout(&[("", "time:0:s"), (" ", "time:1:s"), (" ", "status")], "");
    let found = Parser::new(&layout).parse(b"0.001, 0.002 : 0.003 - 502").unwrap();
    assert_eq!((found.times, found.status), (vec![Some(3_000_000), None], Some(502)));
}

#[test]
fn a_time_may_hold_what_stands_after_it_and_two_durations_are_no_list() {
    let spaced = layout(&[("", "at:%Y/%m/%d %H:%M:%S%f"), (" ", "status")], "");
    assert_eq!(Parser::new(&spaced).parse(b"2026/11/26 13:00:01.5 200").unwrap().status, Some(200));
    let last = layout(&[("", "time:0:s")], "");
    assert!(Parser::new(&last).parse(b"0.001 0.002").is_none());
    assert!(Parser::new(&last).parse(b"0.001, 0.002").is_some());
}

#[test]
fn members_of_a_json_object_are_read_and_what_is_nested_is_not() {
    let fields = [("time", "at:%Y-%m-%dT%H:%M:%S%f%z"), ("path", "target"), ("status", "status"), ("took", "time:0:s")];
    let fields = fields.iter().map(|(name, role)| ((*name).to_owned(), Role::named(role).unwrap())).collect();
    let layout = Layout::Json(fields);
    let line = br#"{"time": "2026-11-26T13:00:01.5Z", "x": {"path": "/no", "y": [1, "}"]}, "path": "/\u00e4\"", "status": 200, "took": 0.25}"#;
    let found = Parser::new(&layout).parse(line).unwrap();
    assert_eq!(found.target.as_deref(), Some("/ä\""));
    assert_eq!((found.status, found.times[0]), (Some(200), Some(250_000_000)));
    assert!(Parser::new(&layout).parse(b"{\"time\": \"2026-11-26T13:00:01.5Z\"").is_none());
}

#[test]
fn instants_have_the_unit_of_their_last_digit() {
    let of = |pattern, text: &str| instants::parse(pattern, text.as_bytes()).map(|at| (at.ns, at.unit_ns, at.zoned));
    assert_eq!(of("%s", "1795698001.250"), Some((1_795_698_001_250_000_000, 1_000_000, true)));
    assert_eq!(of("%L", "1795698001250"), Some((1_795_698_001_250_000_000, 1_000_000, true)));
    assert_eq!(
        of("%Y-%m-%dT%H:%M:%S%z", "2026-11-26T13:00:01-02:30"),
        Some((1_795_707_001_000_000_000, 1_000_000_000, true))
    );
    assert_eq!(
        of("%d/%b/%Y:%H:%M:%S", "29/Feb/2024:00:00:00"),
        Some((1_709_164_800_000_000_000, 1_000_000_000, false))
    );
    assert_eq!(of("%d/%b/%Y:%H:%M:%S", "29/Foo/2024:00:00:00"), None);
    assert_eq!(of("%s", "99999999999999999999"), None);
}

#[test]
fn a_line_without_end_is_cut_and_numbers_go_on() {
    let text = [vec![b'x'; 100_000], b"\n\nlast".to_vec()].concat();
    let mut lines = Lines::new(&text[..]);
    let (number, line) = lines.next().unwrap().unwrap();
    assert_eq!((number, line.len()), (1, 32 << 10));
    assert_eq!(lines.next().unwrap().unwrap(), (3, &b"last"[..]));
    assert!(lines.next().is_none());
}
