//! Questions that wait for their answer, or may be answered once more: by their id, and the oldest first.
//!
//! In: questions with an id, which need not be unique, and the number of their exchange, which grows. Out: those of an
//! id. Bounded: beyond a limit the oldest is forgotten. None but those of the id is looked at.

use std::collections::{BTreeSet, VecDeque};

/// A question.
pub(super) struct Question<T> {
    id: u32,
    pub number: u32,
    pub about: T,
}

/// Invariant: `all` is in the order of numbers, and `by_id` has each of them.
pub(super) struct Questions<T> {
    limit: usize,
    all: VecDeque<Question<T>>,
    /// Ids with numbers.
    by_id: BTreeSet<(u32, u32)>,
}

impl<T> Questions<T> {
    /// Remembers at most `limit` of them.
    pub fn new(limit: usize) -> Self {
        Self { limit, all: VecDeque::new(), by_id: BTreeSet::new() }
    }

    /// Adds the question of the newest exchange.
    pub fn push(&mut self, id: u32, number: u32, about: T) {
        if self.all.len() >= self.limit
            && let Some(oldest) = self.all.pop_front()
        {
            self.by_id.remove(&(oldest.id, oldest.number));
        }
        self.by_id.insert((id, number));
        self.all.push_back(Question { id, number, about });
    }

    /// Those of that id, the oldest first.
    pub fn of(&self, id: u32) -> impl Iterator<Item = &Question<T>> {
        let numbers = self.by_id.range((id, 0)..=(id, u32::MAX));
        numbers.filter_map(|&(_, number)| self.all.get(self.position(number)))
    }

    /// The question of that exchange.
    pub fn get(&mut self, number: u32) -> Option<&mut T> {
        let position = self.position(number);
        self.all.get_mut(position).filter(|question| question.number == number).map(|question| &mut question.about)
    }

    /// Forgets the question of that exchange.
    pub fn remove(&mut self, number: u32) -> Option<T> {
        let position = self.position(number);
        let id = self.all.get(position).filter(|question| question.number == number)?.id;
        self.by_id.remove(&(id, number));
        self.all.remove(position).map(|question| question.about)
    }

    /// All of them, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Question<T>> {
        self.all.iter()
    }

    pub fn clear(&mut self) {
        self.all.clear();
        self.by_id.clear();
    }

    fn position(&self, number: u32) -> usize {
        self.all.partition_point(|question| question.number < number)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn numbers(questions: &Questions<char>, id: u32) -> Vec<u32> {
        questions.of(id).map(|question| question.number).collect()
    }

    #[test]
    fn only_questions_of_the_id_are_given_and_the_oldest_is_forgotten() {
        let mut questions = Questions::new(3);
        for (number, id) in [(4, 7), (5, 8), (6, 7), (9, 7)] {
            questions.push(id, number, 'x');
        }
        assert_eq!((numbers(&questions, 7), numbers(&questions, 8)), (vec![6, 9], vec![5]));
        *questions.get(9).unwrap() = 'y';
        assert_eq!((questions.remove(9), questions.remove(9), questions.get(4)), (Some('y'), None, None));
        assert_eq!((numbers(&questions, 7), questions.iter().count()), (vec![6], 2));
        questions.clear();
        assert!(numbers(&questions, 8).is_empty());
    }
}
