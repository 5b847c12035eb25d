//! Fields of binary protocols, read off the front of a slice; digits of numbers, written without the formatting machinery.
//!
//! In: bytes, numbers. Out: numbers, slices, text. Nothing is kept. (Headers of packets are read by patterns instead, and
//! those of capture files in the order of bytes that the file has.)

/// Reads big-endian fields off the front of a slice, which is what is left; `None` where it ends.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// Like `take`, but a slice that ends early gives what it has.
    pub fn take_up_to(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.take(2)?.first_chunk().copied().map(u16::from_be_bytes)
    }

    pub fn u24(&mut self) -> Option<usize> {
        let &[high, middle, low] = self.take(3)?.first_chunk()?;
        usize::try_from(u32::from_be_bytes([0, high, middle, low])).ok()
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.take(4)?.first_chunk().copied().map(u32::from_be_bytes)
    }

    /// A variable-length integer (RFC 9000 section 16).
    pub fn varint(&mut self) -> Option<u64> {
        let first = self.u8()?;
        let more = (1_usize << (first >> 6)) - 1;
        let value = u64::from(first & 0x3f);
        Some(self.take(more)?.iter().fold(value, |value, &byte| value << 8 | u64::from(byte)))
    }

    /// Bytes behind their number, of one byte.
    pub fn vec8(&mut self) -> Option<&'a [u8]> {
        let length = usize::from(self.u8()?);
        self.take(length)
    }

    /// Bytes behind their number, of two bytes.
    pub fn vec16(&mut self) -> Option<&'a [u8]> {
        let length = usize::from(self.u16()?);
        self.take(length)
    }
}

/// The two hexadecimal digits of a byte.
#[inline]
pub(crate) fn hex_digits(byte: u8) -> [u8; 2] {
    [byte >> 4, byte & 0x0f].map(|four| if four < 10 { b'0' + four } else { b'a' + four - 10 })
}

/// The decimal digits of a number, without leading zeros.
#[inline]
pub(crate) fn decimal_digits(number: u16) -> impl Iterator<Item = u8> {
    let digit = |number: u16| b'0' + number.to_le_bytes()[0];
    let units = [10_000, 1_000, 100, 10, 1];
    units.into_iter().filter(move |&unit| unit == 1 || number >= unit).map(move |unit| digit(number / unit % 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_four_lengths() {
        // RFC 9000 section A.1.
        let read = |bytes: &[u8]| Fields(bytes).varint();
        assert_eq!(read(&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c]), Some(151_288_809_941_952_652));
        assert_eq!(read(&[0x9d, 0x7f, 0x3e, 0x7d]), Some(494_878_333));
        assert_eq!(read(&[0x7b, 0xbd]), Some(15_293));
        assert_eq!((read(&[0x25]), read(&[0x40, 0x25]), read(&[0x40])), (Some(37), Some(37), None));
    }

    #[test]
    fn digits_are_those_of_the_formatting_machinery() {
        for number in 0..=u16::MAX {
            assert!(decimal_digits(number).eq(number.to_string().bytes()), "{number}");
        }
        for byte in 0..=u8::MAX {
            assert_eq!(hex_digits(byte).as_slice(), format!("{byte:02x}").as_bytes());
        }
    }
}
