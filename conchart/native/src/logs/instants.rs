//! Instants as servers write them, by a pattern in the manner of strftime(3).

/// An instant in a line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Instant {
    /// Nanoseconds since the epoch; without a zone, as if it were UTC.
    pub ns: i64,
    /// The place value of its last digit.
    pub unit_ns: i64,
    pub zoned: bool,
}

const SECOND: i64 = 1_000_000_000;
const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// What is left of a text.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn number(&mut self, most: usize) -> Option<i64> {
        let digits = self.0.iter().take(most).take_while(|byte| byte.is_ascii_digit()).count();
        let (text, rest) = self.0.split_at_checked(digits).filter(|(text, _)| !text.is_empty())?;
        self.0 = rest;
        let mut value = 0_i64;
        for digit in text {
            value = value.checked_mul(10)?.checked_add(i64::from(digit - b'0'))?;
        }
        Some(value)
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// The digits after a point, if there is one: nanoseconds, and the value of the last one.
    fn fraction(&mut self) -> Option<(i64, i64)> {
        if !matches!(self.0.first(), Some(b'.' | b',')) {
            return Some((0, SECOND));
        }
        self.byte()?;
        let (mut ns, mut unit) = (0, SECOND);
        while let Some(digit) = self.0.first().filter(|byte| byte.is_ascii_digit()) {
            unit /= 10;
            ns += unit * i64::from(digit - b'0');
            self.byte()?;
        }
        Some((ns, unit.max(1)))
    }

    /// `Z`, `+0100`, `+01:00`: seconds east of UTC.
    fn zone(&mut self) -> Option<i64> {
        let sign = match self.byte()? {
            b'Z' | b'z' => return Some(0),
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        let hours = self.number(2)?;
        if self.0.first() == Some(&b':') {
            self.byte()?;
        }
        let minutes = self.number(2).unwrap_or(0);
        Some(sign * (hours * 3600 + minutes * 60))
    }

    fn month(&mut self) -> Option<i64> {
        let (name, rest) = self.0.split_at_checked(3)?;
        let place = MONTHS.iter().position(|month| month.eq_ignore_ascii_case(name))?;
        self.0 = rest;
        i64::try_from(place + 1).ok()
    }
}

/// Days from 1970-01-01 to a date of the Gregorian calendar. Years count from March, so that the leap day comes last.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || !(0..=9999).contains(&year) {
        return None;
    }
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let of_year = (153 * month + 2) / 5 + day - 1;
    let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    Some(365 * year + leaps + of_year - 719_468)
}

/// Reads an instant. `%s` are seconds, `%L` milliseconds and `%U` microseconds since the epoch, each with a fraction or
/// without; `%f` is a fraction, which may be missing.
pub(super) fn parse(pattern: &str, text: &[u8]) -> Option<Instant> {
    let mut rest = Rest(text);
    let (mut year, mut month, mut day) = (1970, 1, 1);
    let (mut seconds, mut ns, mut unit_ns) = (0_i64, 0_i64, SECOND);
    let mut zone = None;
    let mut letters = pattern.bytes();
    while let Some(letter) = letters.next() {
        if letter != b'%' {
            if rest.byte()? != letter {
                return None;
            }
            continue;
        }
        match letters.next()? {
            b'd' | b'e' => day = rest.number(2)?,
            b'm' => month = rest.number(2)?,
            b'b' => month = rest.month()?,
            b'Y' => year = rest.number(4)?,
            b'y' => year = 2000 + rest.number(2)?,
            b'H' => seconds += rest.number(2)? * 3600,
            b'M' => seconds += rest.number(2)? * 60,
            b'S' => seconds += rest.number(2)?,
            b'f' => (ns, unit_ns) = rest.fraction()?,
            b'z' => zone = Some(rest.zone()?),
            unit @ (b's' | b'L' | b'U') => {
                let whole = rest.number(19)?;
                let (scale, (fraction, last)) = match unit {
                    b's' => (SECOND, rest.fraction()?),
                    b'L' => (1_000_000, (0, 1_000_000)),
                    _ => (1_000, (0, 1_000)),
                };
                return rest
                    .0
                    .is_empty()
                    .then_some(())
                    .and_then(|()| whole.checked_mul(scale)?.checked_add(fraction))
                    .map(|ns| Instant { ns, unit_ns: last, zoned: true });
            }
            _ => return None,
        }
    }
    if !rest.0.is_empty() {
        return None;
    }
    let since = days(year, month, day)? * 86_400 + seconds - zone.unwrap_or(0);
    let ns = since.checked_mul(SECOND)?.checked_add(ns)?;
    Some(Instant { ns, unit_ns, zoned: zone.is_some() })
}
