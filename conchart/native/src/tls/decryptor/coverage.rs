//! How much of a connection its secrets open: what they promise, and what became of it.
//!
//! In: the secrets of a connection, and the directions they were tried on. Out: [`Coverage`].

use super::super::KeyCoverage;
use super::Decryptor;
use super::direction::Direction;
use crate::keys::{Label, Secrets};
use crate::stream::Side;

/// How much of a handshake's connection can be opened; `None` while unknown.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(in super::super) struct Coverage {
    pub keys: Option<KeyCoverage>,
    /// Labels of the missing secrets.
    pub missing: Option<Box<str>>,
}

impl From<KeyCoverage> for Coverage {
    fn from(keys: KeyCoverage) -> Self {
        Self { keys: Some(keys), missing: None }
    }
}

impl Coverage {
    fn partial(missing: &[&str]) -> Self {
        Self { keys: Some(KeyCoverage::Partial), missing: Some(missing.join(",").into()) }
    }
}

impl Decryptor {
    /// How much could be opened up to now; the handshake is over.
    pub fn coverage(&self, is_tls13: bool) -> Coverage {
        if self.promised.keys != Some(KeyCoverage::All) {
            return self.promised.clone();
        }
        let Direction { opened, sealed, .. } = self.sides.client;
        let server = &self.sides.server;
        let tried = sealed > 0 || server.sealed > 0;
        if tried && !opened && !server.opened {
            return KeyCoverage::Wrong.into();
        }
        let useless: Vec<&str> =
            [(self.client, Label::ClientTraffic), (self.client.map(Side::peer), Label::ServerTraffic)]
                .into_iter()
                .filter(|&(side, _)| is_tls13 && side.is_some_and(|side| self.sides[side].is_sealed_for_good()))
                .map(|(_, label)| label.name())
                .collect();
        if useless.is_empty() { self.promised.clone() } else { Coverage::partial(&useless) }
    }
}

/// What the secrets that are there promise, where the `needed` ones open everything.
pub(in super::super) fn covered(secrets: &Secrets, needed: &[Label]) -> Coverage {
    let missing: Vec<&str> =
        needed.iter().filter(|&&label| secrets.get(label).is_none()).map(|label| label.name()).collect();
    match missing.len() {
        0 => KeyCoverage::All.into(),
        len if len == needed.len() => KeyCoverage::None.into(),
        _ => Coverage::partial(&missing),
    }
}
