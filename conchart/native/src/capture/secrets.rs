//! Decryption Secrets Blocks of a pcapng file, wherever in it they stand: also after the packets they are for.
//!
//! In: a file that can be read twice. Out: the key logs in it. Only block headers are looked at, everything else
//! is stepped over; what is wrong with the file is for the reader of its packets to say.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use super::Order;
use super::pcapng::{Pcapng, SECRETS, key_log};
use super::window::MAX_RECORD;

/// Hands every key log in `path` to `found`; false when the file is no plain pcapng file.
///
/// # Errors
/// When the file cannot be opened.
pub fn scan(path: &Path, found: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Ok(false);
    }
    let mut file = BufReader::with_capacity(1 << 16, file);
    let mut order = Order::Little;
    let mut head = [0; 8];
    let mut is_first = true;
    while file.read_exact(&mut head).is_ok() {
        if is_first && !Pcapng::knows(&head) {
            return Ok(false);
        }
        is_first = false;
        let [k0, k1, k2, k3, l0, l1, l2, l3] = head;
        let mut passed = 8;
        if Pcapng::knows(&head) {
            let mut magic = [0; 4];
            if file.read_exact(&mut magic).is_err() {
                break;
            }
            order = if u32::from_le_bytes(magic) == 0x1a2b_3c4d { Order::Little } else { Order::Big };
            passed += 4;
        }
        let (kind, len) = (order.u32([k0, k1, k2, k3]), order.u32([l0, l1, l2, l3]));
        let Some(rest) = u64::from(len).next_multiple_of(4).checked_sub(passed).filter(|_| len >= 12) else {
            break;
        };
        if kind == SECRETS && len <= MAX_RECORD {
            let mut body = Vec::new();
            if file.by_ref().take(rest).read_to_end(&mut body).is_err() {
                break;
            }
            key_log(order, &body).into_iter().for_each(&mut *found);
        } else if file.seek_relative(rest.cast_signed()).is_err() {
            break;
        }
    }
    Ok(!is_first)
}
