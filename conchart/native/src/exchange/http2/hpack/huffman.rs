//! Undoes the Huffman code of header strings (RFC 7541 section 5.2).
//!
//! In: coded octets. Out: octets. The code is canonical: of all codes of one length, the symbols in order have
//! numbers in order, so that a length and a first number tell everything.

use std::sync::LazyLock;

use super::tables::LENGTHS;

const END: u16 = 256;

/// All codes of one length.
struct Row {
    bits: u32,
    first: u64,
    symbols: Vec<u16>,
}

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let mut rows: Vec<Row> = Vec::new();
    let mut next = 0;
    for bits in 5..=30 {
        next <<= 1;
        let of_length = (0..).zip(LENGTHS).filter(|&(_, length)| u32::from(length) == bits);
        let symbols: Vec<u16> = of_length.map(|(symbol, _)| symbol).collect();
        let first = next;
        next += symbols.len() as u64;
        if !symbols.is_empty() {
            rows.push(Row { bits, first, symbols });
        }
    }
    rows
});

/// The octets behind a coded string; `None` when it is none.
pub(super) fn decode(coded: &[u8]) -> Option<Vec<u8>> {
    let mut octets = Vec::with_capacity(coded.len() * 8 / 5);
    let (mut window, mut bits) = (0u64, 0u32);
    for &byte in coded {
        window = window << 8 | u64::from(byte);
        bits += 8;
        while let Some((symbol, taken)) = first_symbol(window, bits) {
            if symbol == END {
                return None;
            }
            octets.push(u8::try_from(symbol).ok()?);
            bits -= taken;
            window &= (1 << bits) - 1;
        }
    }
    // Padding: less than an octet, of ones.
    (bits < 8 && window == (1 << bits) - 1).then_some(octets)
}

/// The first code in the lowest `bits` of the window, once all of it is there.
fn first_symbol(window: u64, bits: u32) -> Option<(u16, u32)> {
    for row in ROWS.iter() {
        let beyond = bits.checked_sub(row.bits)?;
        let number = (window >> beyond).checked_sub(row.first);
        if let Some(&symbol) = number.and_then(|n| row.symbols.get(usize::try_from(n).ok()?)) {
            return Some((symbol, row.bits));
        }
    }
    None
}
