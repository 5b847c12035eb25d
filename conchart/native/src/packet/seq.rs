//! TCP sequence numbers (RFC 9293 section 3.4): arithmetic modulo 2^32.

/// A TCP sequence number. No `Ord`: order exists only modulo 2^32.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Seq(pub u32);

impl Seq {
    /// Bytes from `earlier` to `self`; negative when `self` is the older one.
    #[must_use]
    pub fn since(self, earlier: Self) -> i32 {
        self.0.wrapping_sub(earlier.0).cast_signed()
    }

    /// The number `bytes` further on.
    #[must_use]
    pub fn plus(self, bytes: u32) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}
