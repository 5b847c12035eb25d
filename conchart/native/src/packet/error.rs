//! Why a frame could not be decoded: which layer, where, what was needed and what was there.

use crate::capture::LinkType;

/// A frame whose headers cannot be read. One bad frame is counted, it never ends a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PacketError {
    /// The captured bytes, or the length a lower layer gives, end inside a header.
    #[error("{layer} header at byte {offset} needs {need} bytes, {have} are there")]
    Cut { layer: &'static str, offset: usize, need: usize, have: usize },

    /// A header contradicts itself or the layer below.
    #[error("{layer} header at byte {offset}: {field} is {found}, {allowed} expected")]
    Bad { layer: &'static str, offset: usize, field: &'static str, found: u32, allowed: &'static str },

    /// IP is in there, in a form that is not put together.
    #[error("{layer} frame: {what}, which is not read")]
    Unread { layer: &'static str, what: &'static str },

    /// No decoder for the link layer.
    #[error("link type {0} is not supported")]
    UnsupportedLink(LinkType),
}

impl PacketError {
    /// The layer whose header it was.
    #[must_use]
    pub fn layer(&self) -> &'static str {
        match self {
            Self::Cut { layer, .. } | Self::Bad { layer, .. } | Self::Unread { layer, .. } => layer,
            Self::UnsupportedLink(_) => "link",
        }
    }
}
