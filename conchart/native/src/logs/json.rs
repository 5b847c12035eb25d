//! The members of one flat JSON object (RFC 8259), as text. What is nested is stepped over.

/// Nested deeper than this, it is no line of a log.
const DEEPEST: usize = 64;

/// Gives each member with a text, number or literal. `None` where it is no object, or `take` says so.
pub(super) fn members(text: &[u8], mut take: impl FnMut(&[u8], &[u8]) -> Option<()>) -> Option<()> {
    let mut rest = space(text.strip_prefix(b"{")?);
    if let Some(after) = rest.strip_prefix(b"}") {
        return space(after).is_empty().then_some(());
    }
    loop {
        let (name, after) = string(rest)?;
        rest = space(space(after).strip_prefix(b":")?);
        match rest.first()? {
            b'"' => {
                let (value, after) = string(rest)?;
                take(&name, &value)?;
                rest = after;
            }
            b'{' | b'[' => rest = nested(rest)?,
            _ => {
                let end = rest.iter().position(|byte| matches!(byte, b',' | b'}' | b' ' | b'\t'))?;
                let (value, after) = rest.split_at_checked(end)?;
                take(&name, value)?;
                rest = after;
            }
        }
        rest = space(rest);
        match rest.split_first()? {
            (b',', after) => rest = space(after),
            (b'}', after) => return space(after).is_empty().then_some(()),
            _ => return None,
        }
    }
}

fn space(text: &[u8]) -> &[u8] {
    text.trim_ascii_start()
}

/// A string without its quotes and escapes, and what comes after it.
fn string(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut rest = text.strip_prefix(b"\"")?;
    let mut value = Vec::new();
    loop {
        let end = memchr::memchr2(b'"', b'\\', rest)?;
        value.extend_from_slice(rest.get(..end)?);
        let is_end = rest.get(end) == Some(&b'"');
        rest = rest.get(end + 1..)?;
        if is_end {
            return Some((value, rest));
        }
        let (letter, after) = rest.split_first()?;
        rest = after;
        match letter {
            b'n' => value.push(b'\n'),
            b't' => value.push(b'\t'),
            b'r' => value.push(b'\r'),
            b'b' => value.push(8),
            b'f' => value.push(12),
            b'u' => {
                let (digits, after) = rest.split_at_checked(4)?;
                let code = u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
                let letter = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
                value.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                rest = after;
            }
            other => value.push(*other),
        }
    }
}

/// Steps over an object or array.
fn nested(text: &[u8]) -> Option<&[u8]> {
    let (mut rest, mut depth) = (text, 0_usize);
    loop {
        match rest.first()? {
            b'"' => {
                rest = string(rest)?.1;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        rest = rest.get(1..)?;
        if depth == 0 {
            return Some(rest);
        }
        if depth > DEEPEST {
            return None;
        }
    }
}
