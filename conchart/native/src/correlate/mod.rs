//! What runs once per capture, and not once per packet: rows of many connections in, what they say together out.
//!
//! In: record batches that SQL selected from the tables of a whole capture. Out: rows and columns for those tables, or
//! for the page. The pipeline and these modules do not use each other: `py.rs` calls them when the tables are filled.

pub(crate) mod attribution;
pub(crate) mod clocks;
mod columns;
pub(crate) mod crossings;
mod grouping;
pub(crate) mod lines;
pub(crate) mod linking;
pub(crate) mod packing;
pub(crate) mod pools;
mod sharing;
pub(crate) mod similarity;
pub(crate) mod turns;
