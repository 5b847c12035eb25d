//! What the fuzz targets share: a cursor over the fuzzer's bytes, and laws that hold whatever they are.

mod exchanges;
mod input;
mod memory;
pub mod packets;
mod records;
pub mod encrypted;
mod tables;
mod talk;

pub use exchanges::{Found, assert_cutting_changes_nothing, in_order};
pub use input::Input;
pub use memory::bounded;
pub use records::Records;
pub use tables::check_capture;
pub use talk::{Talk, kind, sender};
