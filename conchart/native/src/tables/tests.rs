//! Rows as Arrow has them.
#![allow(clippy::unwrap_used)]
use super::*;
use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use proptest::prelude::*;

proptest! {
    #[test]
    fn addresses_read_as_the_standard_library_writes_them(ips: Vec<IpAddr>) {
        let mut column = StringBuilder::new();
        for ip in &ips {
            append_text(&mut column, *ip, address);
        }
        let column = column.finish();
        prop_assert_eq!(column.len(), ips.len());
        for (text, ip) in column.iter().zip(ips) {
            prop_assert_eq!(text.map(str::to_owned), Some(ip.to_string()));
        }
    }
}

#[test]
fn bytes_are_two_digits_each() {
    let mut column = StringBuilder::new();
    append_text(&mut column, Mac([0x02, 0, 0x0a, 0xff, 0x10, 0x9c]), mac);
    append_text(&mut column, &[0x0f, 0xf0, 0], hex);
    let column = column.finish();
    assert_eq!(column.iter().collect::<Vec<_>>(), [Some("02:00:0a:ff:10:9c"), Some("0ff000")]);
}

#[test]
fn flags_are_letters_and_none_of_them_is_text_too() {
    let mut column = StringBuilder::new();
    for flags in [Flags(Flags::SYN | Flags::ACK), Flags(0), Flags(0xff)] {
        append_text(&mut column, flags, letters);
    }
    let column = column.finish();
    assert_eq!(column.iter().collect::<Vec<_>>(), [Some("SA"), Some(""), Some("SFRPA")]);
}

#[test]
fn rows_without_a_value_keep_their_place_and_a_column_without_any_is_told() {
    let mut tables = Tables::default();
    for exchange in [None, Some(7), None] {
        tables.phase(PhaseRow { stream: Some(1), exchange, ..PhaseRow::default() }).unwrap();
    }
    tables.flush().unwrap();
    let full = tables.take().next().unwrap();
    let exchanges = full.rows.column_by_name("exchange").unwrap().as_primitive::<Int32Type>();
    assert_eq!(exchanges.iter().collect::<Vec<_>>(), [None, Some(7), None]);
    assert!(full.empty.contains(&"handshake") && !full.empty.contains(&"exchange"));
    assert_eq!(full.rows.column_by_name("handshake").unwrap().null_count(), 3);
    // Of the next batch, it is told anew.
    tables.phase(PhaseRow { handshake: Some(0), ..PhaseRow::default() }).unwrap();
    tables.flush().unwrap();
    let full = tables.take().next().unwrap();
    assert!(full.empty.contains(&"exchange") && !full.empty.contains(&"handshake"));
}

#[test]
fn batches_are_kept_until_they_are_taken_and_hold_every_row_once() {
    let mut tables = Tables::default();
    let row = PhaseRow {
        stream: Some(1),
        exchange: None,
        handshake: None,
        kind: Some("wait"),
        start_at: Some(2),
        end_at: Some(3),
        start_by: Some("client"),
        end_by: Some("server"),
        start_frame: Some(4),
        end_frame: Some(5),
        inferred: Some(false),
    };
    for _ in 0..=Phases::ROWS {
        tables.phase(row).unwrap();
    }
    let sizes = |tables: &mut Tables| tables.take().map(|full| (full.table, full.rows.num_rows())).collect::<Vec<_>>();
    assert_eq!(sizes(&mut tables), [("phases", Phases::ROWS)]);
    tables.flush().unwrap();
    assert_eq!(sizes(&mut tables), [("phases", 1)]);
    tables.flush().unwrap();
    assert_eq!(sizes(&mut tables), []);
}
