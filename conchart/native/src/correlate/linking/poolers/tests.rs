#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;
use crate::correlate::linking::link;
use crate::correlate::linking::model::Statement;

const MS: i64 = 1_000_000;
const POOLER: i32 = 7;
const BEGIN: u64 = 1;
const READ: u64 = 2;
const COMMIT: u64 = 3;
const RESET: u64 = 4;
const START: u64 = 5;

/// A statement that a client sent at, and had an answer to at (0.01 ms); those behind the pooler have streams from 100 on.
fn statement(stream: i32, number: i32, requested: i64, answered: i64, shape: u64) -> Exchange {
    let behind = stream >= 100;
    Exchange {
        stream,
        number: Some(number),
        accepted_by: (!behind).then_some(POOLER),
        opened_by: behind.then_some(POOLER),
        endpoint: if behind { 5432 } else { 6432 },
        request_at: requested * MS / 100,
        request_done_at: requested * MS / 100,
        response_at: Some(answered * MS / 100),
        response_done_at: Some(answered * MS / 100),
        closed_at: answered * MS / 100,
        target: Some(shape),
        confidence: 1.0,
        statement: Some(Statement {
            dialect: 1,
            shape: Some(shape),
            starts: shape == START,
            turn: match shape {
                BEGIN => 1,
                COMMIT => -1,
                _ => 0,
            },
        }),
        ..Exchange::default()
    }
}

/// Streams and numbers of the links, in order.
fn linked(exchanges: &[Exchange]) -> Vec<((i32, i32), (i32, i32))> {
    let key = |index: u32| (exchanges[index as usize].stream, exchanges[index as usize].number.unwrap());
    let mut keys: Vec<_> = link(exchanges).iter().map(|link| (key(link.front), key(link.back))).collect();
    keys.sort_unstable();
    keys
}

/// Two clients begin at once; the pooler has one connection. The later client is served first: only what follows BEGIN tells.
fn crossed() -> Vec<Exchange> {
    vec![
        statement(1, 0, 0, 820, BEGIN),
        statement(2, 0, 10, 130, BEGIN),
        statement(100, 0, 100, 110, BEGIN),
        statement(2, 1, 140, 600, READ),
        statement(100, 1, 150, 590, READ),
        statement(2, 2, 610, 630, COMMIT),
        statement(100, 2, 615, 625, COMMIT),
        statement(100, 3, 800, 810, BEGIN),
        statement(1, 1, 830, 900, READ),
        statement(100, 4, 840, 890, READ),
        statement(1, 2, 910, 930, COMMIT),
        statement(100, 5, 915, 925, COMMIT),
    ]
}

#[test]
fn a_connection_belongs_to_one_client_from_begin_to_commit() {
    let expected = [
        ((1, 0), (100, 3)),
        ((1, 1), (100, 4)),
        ((1, 2), (100, 5)),
        ((2, 0), (100, 0)),
        ((2, 1), (100, 1)),
        ((2, 2), (100, 2)),
    ];
    assert_eq!(linked(&crossed()), expected);
}

#[test]
fn what_the_pooler_sends_by_itself_has_no_front() {
    let mut exchanges = Vec::new();
    for round in 0..20 {
        let at = i64::from(round) * 1_000;
        exchanges.push(statement(round, 0, at, at + 50, START));
        exchanges.push(statement(round, 1, at + 60, at + 200, READ));
        exchanges.push(statement(100, 2 * round, at + 70, at + 190, READ));
        // Another client waits meanwhile: by its times, that is what the pooler asks for.
        exchanges.push(statement(50, round, at + 205, at + 260, READ));
        exchanges.push(statement(100, 2 * round + 1, at + 206, at + 210, RESET));
        exchanges.push(statement(101, round, at + 215, at + 255, READ));
    }
    let links = linked(&exchanges);
    assert_eq!(links.len(), 40);
    assert!(links.iter().all(|&(_, (stream, number))| stream == 101 || number % 2 == 0));
}

#[test]
fn a_database_that_asks_another_one_in_its_own_words_is_no_pooler() {
    let mut exchanges = Vec::new();
    for round in 0..20 {
        let at = i64::from(round) * 1_000;
        exchanges.push(statement(1, round, at, at + 200, READ));
        exchanges.push(statement(100, round, at + 50, at + 150, RESET));
    }
    assert_eq!(linked(&exchanges).len(), 20);
    assert!(Poolers::new(&exchanges).pairs.is_empty());
}

#[test]
fn a_statement_whose_shape_is_unknown_may_be_any() {
    let mut exchanges = crossed();
    for exchange in exchanges.iter_mut().filter(|exchange| exchange.stream == 1) {
        exchange.statement.as_mut().unwrap().shape = None;
    }
    assert_eq!(linked(&exchanges).len(), 6);
}
