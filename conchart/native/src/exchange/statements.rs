//! What is told of a question to a store: the shape of its statement, its whole text, or nothing.
//!
//! In: a choice, the same for a whole run. Out: target and shape of an exchange. Values of keys, parameters and passwords
//! are no part of a [`Statement`] in any case: readers do not keep them.

/// How much is told of statements and keys.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Statements {
    /// Of SQL, the statement without its values; keys.
    #[default]
    Shape,
    /// Statements with their values, but for those in which a password may stand; keys.
    Full,
    /// Neither.
    Off,
}

impl Statements {
    /// A key, a channel or a table, where that may be told.
    pub(super) fn name(self, name: Option<Box<str>>) -> Option<Box<str>> {
        name.filter(|_| self != Self::Off)
    }
}

/// What a question is about.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Statement {
    pub target: Option<Box<str>>,
    /// The shape, where `target` says more than that.
    pub shape: Option<Box<str>>,
}

impl Statement {
    /// Something that has a name: a database, a table.
    pub fn named(name: Option<Box<str>>) -> Self {
        Self { target: name, shape: None }
    }
}
