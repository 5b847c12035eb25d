//! Notes on a capture: a few sentences about its quality and limits.
//!
//! In: remarks as they come up, perhaps one for every packet. Out: sentences, the most important first; about each thing
//! the first [`EXAMPLES`] and, where there were more, how many in all. So a capture with a million unreadable frames
//! has no more to read than one with ten, and nothing is crowded out.

/// Remarks about one thing that are told in full.
const EXAMPLES: u64 = 3;

/// What a remark is about, the most important first: whoever reads only the first sentence has read the right one.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum About {
    /// The file ends or breaks here.
    Damage,
    /// Frames of a link type that is not read.
    LinkType,
    /// Connections that became rows before their time, because too many were open.
    EndedEarly,
    /// Bytes that were given up as missing, because too many waited for them.
    GivenUp,
    /// Instants that no clock shows, and what the time before and after them is worth.
    ImpossibleTime,
    ClockStep,
    BackwardHandshake,
    /// Frames whose header of this layer cannot be read.
    Unreadable(&'static str),
    Fragments,
    /// Packets that are longer, by their IP header, than the frame that brought them.
    BeyondFrame,
    /// Packets of connections that had ended long before.
    Stray,
    KeyLog,
    /// What is unusual about the file, though it can be read.
    Format,
}

impl About {
    /// How many there were in all, in words.
    fn sum(self, count: u64) -> String {
        let count = grouped(count);
        match self {
            Self::EndedEarly => format!("in all, {count} connections were ended early"),
            Self::GivenUp => format!("in all, bytes were counted as missing in {count} connections for lack of buffer"),
            Self::ImpossibleTime => format!("in all, {count} packets have an impossible time stamp"),
            Self::BackwardHandshake => format!("in all, {count} TLS handshakes"),
            Self::Unreadable(layer) => format!("in all, {count} frames cannot be read: {layer} header"),
            Self::BeyondFrame => format!("in all, {count} packets declare more bytes than their frame contains"),
            Self::KeyLog => format!("in all, {count} key logs"),
            Self::Damage | Self::LinkType | Self::ClockStep | Self::Fragments | Self::Stray | Self::Format => {
                format!("in all, {count} such places")
            }
        }
    }
}

/// The remarks about one thing.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Remarks {
    about: About,
    count: u64,
    /// The first of them.
    examples: Vec<String>,
}

/// All remarks on a capture. Bounded: there are few things.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Notes(Vec<Remarks>);

impl Notes {
    /// Adds a remark; `text` is asked for only while it would be told.
    pub fn add(&mut self, about: About, text: impl FnOnce() -> String) {
        let remarks = self.of(about);
        remarks.count += 1;
        if remarks.count <= EXAMPLES {
            remarks.examples.push(text());
        }
    }

    /// Adds all of `others`, as if they had come up now.
    pub fn extend(&mut self, others: Self) {
        for other in others.0 {
            let remarks = self.of(other.about);
            remarks.count += other.count;
            let room = usize::try_from(EXAMPLES).unwrap_or(usize::MAX).saturating_sub(remarks.examples.len());
            remarks.examples.extend(other.examples.into_iter().take(room));
        }
    }

    /// The sentences, the most important first.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let mut sorted: Vec<&Remarks> = self.0.iter().collect();
        sorted.sort_by_key(|remarks| remarks.about);
        let texts = |remarks: &Remarks| {
            let sum = (remarks.count > EXAMPLES).then(|| remarks.about.sum(remarks.count));
            remarks.examples.iter().cloned().chain(sum).collect::<Vec<_>>()
        };
        sorted.into_iter().flat_map(texts).collect()
    }

    fn of(&mut self, about: About) -> &mut Remarks {
        let at = self.0.iter().position(|remarks| remarks.about == about).unwrap_or_else(|| {
            self.0.push(Remarks { about, count: 0, examples: Vec::new() });
            self.0.len() - 1
        });
        #[expect(clippy::indexing_slicing, reason = "found, or pushed just now")]
        &mut self.0[at]
    }
}

/// `1204224` as `1,204,224`.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_by_three() {
        let texts: Vec<String> = [0, 999, 1000, 1_204_224].map(grouped).to_vec();
        assert_eq!(texts, ["0", "999", "1,000", "1,204,224"]);
    }

    #[test]
    fn of_many_remarks_told_the_first_three_are_told_and_all_are_counted() {
        let mut notes = Notes::default();
        for frame in 1..=37_856 {
            notes.add(About::Unreadable("IPv4"), || format!("frame {frame}: bad"));
        }
        let all = "in all, 37,856 frames cannot be read: IPv4 header";
        assert_eq!(notes.sentences(), ["frame 1: bad", "frame 2: bad", "frame 3: bad", all]);
    }

    #[test]
    fn damage_is_told_first_however_much_came_before_it() {
        let mut notes = Notes::default();
        for layer in ["IPv4", "IPv6", "TCP"] {
            (0..1000).for_each(|_| notes.add(About::Unreadable(layer), String::new));
        }
        notes.add(About::Damage, || "packet 3,001: the file ends".into());
        assert_eq!(notes.sentences().first().map(String::as_str), Some("packet 3,001: the file ends"));
        assert_eq!(notes.sentences().len(), 1 + 3 * 4);
    }

    #[test]
    fn notes_of_two_stages_are_counted_together() {
        let one = |text: &str| {
            let mut notes = Notes::default();
            notes.add(About::KeyLog, || text.to_owned());
            notes.add(About::KeyLog, || text.to_owned());
            notes
        };
        let mut notes = one("a");
        notes.extend(one("b"));
        assert_eq!(notes.sentences(), ["a", "a", "b", "in all, 4 key logs"]);
        let mut few = Notes::default();
        few.extend(one("a"));
        assert_eq!(few, one("a"));
    }
}
