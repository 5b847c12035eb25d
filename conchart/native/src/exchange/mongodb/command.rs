//! Commands of MongoDB: what each is called, what it is about, and which fields it asks for.
//!
//! In: the document of a command, as far as it was kept, and of a document sequence its first document. Out:
//! [`Command`]. Names of fields are told, and never a value but the names of database and collection. Nothing is kept.

use super::bson::{ARRAY, DOCUMENT, Element, Elements};

/// Longest name of a command, and longest name of a database with its collection (255 bytes, in MongoDB since 4.4).
const MAX_NAME: usize = 64;
const MAX_NAMESPACE: usize = 255;
/// Names of fields that are told, and the most bytes of all of them.
const MAX_FIELDS: usize = 12;
const MAX_SHAPE: usize = 160;

/// Commands whose value is a collection. The value of others may be a user or a text.
const ABOUT_COLLECTION: &[&str] = &[
    "aggregate",
    "analyze",
    "cloneCollectionAsCapped",
    "collMod",
    "collStats",
    "collstats",
    "compact",
    "convertToCapped",
    "count",
    "create",
    "createIndexes",
    "createSearchIndexes",
    "delete",
    "distinct",
    "drop",
    "dropIndexes",
    "dropSearchIndex",
    "deleteIndexes",
    "find",
    "findAndModify",
    "findandmodify",
    "geoNear",
    "geoSearch",
    "insert",
    "killCursors",
    "listIndexes",
    "mapReduce",
    "mapreduce",
    "parallelCollectionScan",
    "planCacheClear",
    "planCacheListFilters",
    "reIndex",
    "update",
    "updateSearchIndex",
    "validate",
];

/// What a driver asks for.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Command {
    pub method: Option<Box<str>>,
    /// Database, collection, and the names of the fields that it asks for.
    pub target: Option<Box<str>>,
    /// It is answered when something happens.
    pub awaits_event: bool,
    /// What its cursor gives next is answered when something happens.
    pub tails: bool,
    /// Its reply consists of documents as they are stored: those of an old query.
    pub gives_documents: bool,
    /// The cursor that it goes on with.
    pub cursor: Option<i64>,
}

impl Command {
    /// Reads a command. `database`: where the message names it outside of the document; `sequence`: the name of a
    /// sequence of documents, and the first of them.
    pub fn read(document: &[u8], database: Option<&[u8]>, sequence: Option<(&[u8], &[u8])>) -> Self {
        let elements = Elements::of(document);
        // Old drivers wrap a command to give it a read preference.
        let elements = match elements.clone().next() {
            Some(first) if matches!(first.name, b"$query" | b"query") && first.kind == DOCUMENT => first.elements(),
            _ => elements,
        };
        let mut command = match elements.clone().next() {
            Some(first) => Self::of(first, elements, database, sequence),
            None => Self::default(),
        };
        if command.method.is_none() {
            command.method = sequence.and_then(|(name, _)| of_sequence(name)).map(Into::into);
        }
        command
    }

    fn of(
        first: Element<'_>,
        elements: Elements<'_>,
        database: Option<&[u8]>,
        sequence: Option<(&[u8], &[u8])>,
    ) -> Self {
        let Some(method) = name(first.name) else {
            return Self::default();
        };
        let has = |name: &[u8]| elements.named(name).is_some_and(|element| element.is_true());
        let mut command = Self { method: Some(method.into()), ..Self::default() };
        let collection = if ABOUT_COLLECTION.contains(&method) { first.string() } else { None };
        let mut shape = Shape::default();
        match method {
            "hello" | "isMaster" | "ismaster" => command.awaits_event = elements.named(b"topologyVersion").is_some(),
            "getMore" => {
                // Servers refuse it for cursors that do not await data.
                command.awaits_event = has(b"maxTimeMS");
                command.cursor = first.number();
            }
            "find" => {
                command.tails = has(b"tailable") && has(b"awaitData");
                shape.filter(elements.named(b"filter"));
            }
            "aggregate" => {
                let stages = elements.named(b"pipeline");
                command.tails = stages
                    .and_then(|stages| stages.elements().next())
                    .and_then(|stage| stage.elements().next())
                    .is_some_and(|stage| stage.name == b"$changeStream");
                shape.pipeline(stages);
            }
            "count" | "distinct" | "findAndModify" | "findandmodify" => shape.filter(elements.named(b"query")),
            "update" | "delete" => {
                let inside = elements.named(of_writes(method));
                let first = inside.and_then(|list| list.elements().next()).map(|entry| entry.elements());
                let first = first.or_else(|| sequence.map(|(_, document)| Elements::of(document)));
                shape.filter(first.and_then(|entry| entry.named(b"q")));
            }
            _ => {}
        }
        let collection = collection.or_else(|| {
            let named = if method == "getMore" { elements.named(b"collection") } else { None };
            named?.string()
        });
        let database = database.or_else(|| elements.named(b"$db")?.string());
        command.target = namespace(database, collection).map(|name| shape.behind(name));
        command
    }
}

/// The name of a command: what is none may be anything.
fn name(bytes: &[u8]) -> Option<&str> {
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
    std::str::from_utf8(bytes)
        .ok()
        .filter(|name| (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(|byte| fits(&byte)))
}

/// What is written by a sequence of that name: servers send it before the command.
fn of_sequence(name: &[u8]) -> Option<&'static str> {
    match name {
        b"documents" => Some("insert"),
        b"updates" => Some("update"),
        b"deletes" => Some("delete"),
        _ => None,
    }
}

fn of_writes(method: &str) -> &'static [u8] {
    if method == "update" { b"updates" } else { b"deletes" }
}

/// `shop.items`; as much of it as is known.
pub(super) fn namespace(database: Option<&[u8]>, collection: Option<&[u8]>) -> Option<String> {
    let whole = match (database, collection) {
        (Some(database), Some(collection)) => [database, b".", collection].concat(),
        (part, None) | (None, part) => part?.to_vec(),
    };
    let cut = whole.get(..MAX_NAMESPACE).unwrap_or(&whole);
    let text = String::from_utf8_lossy(cut).into_owned();
    Some(if cut.len() < whole.len() { text + "…" } else { text })
}

/// Names of the fields that a command asks for.
#[derive(Default)]
struct Shape {
    text: String,
    fields: usize,
}

impl Shape {
    fn filter(&mut self, filter: Option<Element<'_>>) {
        let asks = |filter: &Element<'_>| filter.kind == DOCUMENT && filter.elements().next().is_some();
        if let Some(filter) = filter.filter(asks) {
            self.text.push('{');
            self.fields(filter);
            self.text.push('}');
        }
    }

    /// `sku, price.$gt`.
    fn fields(&mut self, filter: Element<'_>) {
        for (nth, field) in filter.elements().enumerate() {
            if !self.may_go_on(nth) {
                break;
            }
            self.text.push_str(&String::from_utf8_lossy(field.name));
            let inside = if field.kind == DOCUMENT { field.elements().next() } else { None };
            if let Some(operator) = inside.filter(|inside| inside.name.starts_with(b"$")) {
                self.text.push('.');
                self.text.push_str(&String::from_utf8_lossy(operator.name));
            }
        }
    }

    /// `[$match {sku}, $group]`.
    fn pipeline(&mut self, stages: Option<Element<'_>>) {
        let Some(stages) = stages.filter(|stages| stages.kind == ARRAY) else {
            return;
        };
        self.text.push('[');
        for (nth, stage) in stages.elements().filter_map(|stage| stage.elements().next()).enumerate() {
            if !self.may_go_on(nth) {
                break;
            }
            self.text.push_str(&String::from_utf8_lossy(stage.name));
            if stage.name == b"$match" {
                let before = self.text.len();
                self.filter(Some(stage));
                if self.text.len() > before {
                    self.text.insert(before, ' ');
                }
            }
        }
        self.text.push(']');
    }

    /// Is there room for one more? Writes what comes before it.
    fn may_go_on(&mut self, nth: usize) -> bool {
        let room = self.fields < MAX_FIELDS && self.text.len() < MAX_SHAPE;
        self.fields += 1;
        if nth > 0 {
            self.text.push_str(", ");
        }
        if !room {
            self.text.push('…');
        }
        room
    }

    fn behind(self, namespace: String) -> Box<str> {
        let shape = shortened(self.text);
        if shape.is_empty() { namespace.into() } else { format!("{namespace} {shape}").into() }
    }
}

/// One name may be longer than all of them are to be.
fn shortened(mut text: String) -> String {
    const MOST: usize = 2 * MAX_SHAPE;
    if text.len() > MOST {
        let end = (0..=MOST).rev().find(|&end| text.is_char_boundary(end));
        text.truncate(end.unwrap_or(0));
        text.push('…');
    }
    text
}
