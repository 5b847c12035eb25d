//! What a search looks for, as text (RFC 4515).
//!
//! In: a filter (RFC 4511 section 4.5.1.7). Out: its text, up to a length; bytes that do not print are escaped. Values of
//! attributes that hold passwords are left out.

use super::ber::{Cursor, Element, OCTET_STRING, SEQUENCE, Stop};

const AND: u8 = 0xa0;
const OR: u8 = 0xa1;
const NOT: u8 = 0xa2;
const EQUALITY: u8 = 0xa3;
const SUBSTRINGS: u8 = 0xa4;
const GREATER_OR_EQUAL: u8 = 0xa5;
const LESS_OR_EQUAL: u8 = 0xa6;
const PRESENT: u8 = 0x87;
const APPROXIMATE: u8 = 0xa8;
const EXTENSIBLE: u8 = 0xa9;

/// Of a substring: how it begins, what is in it, how it ends.
const INITIAL: u8 = 0x80;
const FINAL: u8 = 0x82;
/// Of an extensible match.
const RULE: u8 = 0x81;
const TYPE: u8 = 0x82;
const VALUE: u8 = 0x83;
const DN_TOO: u8 = 0x84;

/// How deep filters lie in filters.
const MAX_DEPTH: usize = 16;

/// Appends the filter that comes next, until `text` has `room` bytes.
pub(super) fn write(cursor: &mut Cursor<'_>, text: &mut String, room: usize) -> Result<(), Stop> {
    one(cursor, text, room, 0)
}

fn one(cursor: &mut Cursor<'_>, text: &mut String, room: usize, depth: usize) -> Result<(), Stop> {
    if depth > MAX_DEPTH || text.len() > room {
        return Err(Stop::Wrong);
    }
    let filter = cursor.element()?;
    let mut inside = cursor.inside(filter);
    text.push('(');
    match filter.tag {
        AND | OR | NOT => {
            text.push(match filter.tag {
                AND => '&',
                OR => '|',
                _ => '!',
            });
            while !inside.is_at_end() {
                one(&mut inside, text, room, depth + 1)?;
            }
        }
        EQUALITY => assertion(&mut inside, text, "=")?,
        GREATER_OR_EQUAL => assertion(&mut inside, text, ">=")?,
        LESS_OR_EQUAL => assertion(&mut inside, text, "<=")?,
        APPROXIMATE => assertion(&mut inside, text, "~=")?,
        PRESENT => {
            escape(cursor.contents(filter)?, text);
            text.push_str("=*");
        }
        SUBSTRINGS => substrings(&mut inside, text)?,
        EXTENSIBLE => extensible(&mut inside, text)?,
        _ => return Err(Stop::Wrong),
    }
    text.push(')');
    Ok(())
}

fn assertion(inside: &mut Cursor<'_>, text: &mut String, relation: &str) -> Result<(), Stop> {
    let attribute = attribute(inside, text)?;
    text.push_str(relation);
    let asserted = inside.expect(OCTET_STRING)?;
    value(attribute, inside.contents(asserted)?, text);
    Ok(())
}

fn substrings(inside: &mut Cursor<'_>, text: &mut String) -> Result<(), Stop> {
    let attribute = attribute(inside, text)?;
    text.push('=');
    let pieces = inside.expect(SEQUENCE)?;
    let mut pieces = inside.inside(pieces);
    let mut last = INITIAL;
    while !pieces.is_at_end() {
        let piece = pieces.element()?;
        if piece.tag != INITIAL {
            text.push('*');
        }
        value(attribute, pieces.contents(piece)?, text);
        last = piece.tag;
    }
    if last != FINAL {
        text.push('*');
    }
    Ok(())
}

fn extensible(inside: &mut Cursor<'_>, text: &mut String) -> Result<(), Stop> {
    let mut part = |tag| -> Result<Option<Element>, Stop> {
        if inside.is_at_end() || inside.tag()? != tag { Ok(None) } else { inside.element().map(Some) }
    };
    let (rule, attribute, asserted, dn_too) = (part(RULE)?, part(TYPE)?, part(VALUE)?, part(DN_TOO)?);
    let attribute = attribute.map_or(Ok(&[][..]), |element| inside.contents(element))?;
    escape(attribute, text);
    if let Some(element) = dn_too
        && inside.contents(element)? != [0]
    {
        text.push_str(":dn");
    }
    if let Some(element) = rule {
        text.push(':');
        escape(inside.contents(element)?, text);
    }
    text.push_str(":=");
    value(attribute, inside.contents(asserted.ok_or(Stop::Wrong)?)?, text);
    Ok(())
}

fn attribute<'a>(inside: &mut Cursor<'a>, text: &mut String) -> Result<&'a [u8], Stop> {
    let attribute = inside.expect(OCTET_STRING)?;
    let attribute = inside.contents(attribute)?;
    escape(attribute, text);
    Ok(attribute)
}

fn value(attribute: &[u8], value: &[u8], text: &mut String) {
    let name = attribute.to_ascii_lowercase();
    if [&b"password"[..], b"pwd"].iter().any(|secret| memchr::memmem::find(&name, secret).is_some()) {
        text.push('…');
    } else {
        escape(value, text);
    }
}

/// Writes a value so that nobody can mistake it (RFC 4515 section 3).
fn escape(value: &[u8], text: &mut String) {
    for chunk in value.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '*' | '(' | ')' | '\\' => text.push_str(&format!("\\{:02x}", u32::from(letter))),
                _ if letter.is_control() => text.push_str(&format!("\\{:02x}", u32::from(letter))),
                _ => text.push(letter),
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\{byte:02x}"));
        }
    }
}
