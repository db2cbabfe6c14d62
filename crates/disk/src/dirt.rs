//! What one component lacks of another: objects whose attributes or names differ, and ranges of files.
//!
//! Pure. Too much may be marked, never too little: what is marked needlessly is copied needlessly.

use std::collections::BTreeMap;

use crate::block_log::BLOCK_BYTES;

/// What an object costs to send, beside its content, as far as nobody looks closer.
const OBJECT_BYTES: u64 = 256;

/// Ranges of a file that do not touch each other, by their beginnings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Adds `from..to`, widened to whole blocks.
    pub(crate) fn add(&mut self, from: u64, to: u64) {
        if from >= to {
            return;
        }
        let mut from = from - from % BLOCK_BYTES;
        let mut to = to.checked_next_multiple_of(BLOCK_BYTES).unwrap_or(u64::MAX);
        while let Some((start, end)) = self.0.range(..=to).next_back().map(|(start, end)| (*start, *end)) {
            if end < from {
                break;
            }
            self.0.remove(&start);
            from = from.min(start);
            to = to.max(end);
        }
        self.0.insert(from, to);
    }

    /// Bytes before a file's end.
    fn bytes(&self, size: u64) -> u64 {
        self.0.iter().map(|(from, to)| to.min(&size).saturating_sub(*from)).sum()
    }
}

/// What of one object is marked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Marked {
    /// Whether it is there at all, its attributes, size and, of a directory, its names.
    itself: bool,
    content: Ranges,
}

/// What is marked, by object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dirt(BTreeMap<u64, Marked>);

/// What is to be sent next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece {
    /// An object without its content.
    Object(u64),
    /// A range of a file.
    Content { number: u64, from: u64, to: u64 },
}

impl Dirt {
    /// Nothing marked.
    #[must_use]
    pub fn new() -> Dirt {
        Dirt::default()
    }

    /// Whether nothing is marked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Marks an object's attributes and names.
    pub(crate) fn mark_object(&mut self, number: u64) {
        self.0.entry(number).or_default().itself = true;
    }

    /// Marks a range of a file, and its attributes, which change with it.
    pub(crate) fn mark_content(&mut self, number: u64, from: u64, to: u64) {
        let marked = self.0.entry(number).or_default();
        marked.itself = true;
        marked.content.add(from, to);
    }

    /// Marks a range of a file of which all else is known.
    pub(crate) fn mark_content_alone(&mut self, number: u64, from: u64, to: u64) {
        self.0.entry(number).or_default().content.add(from, to);
    }

    /// Marks an object with all its content, however much that is.
    pub(crate) fn mark_whole(&mut self, number: u64) {
        self.mark_content(number, 0, u64::MAX);
    }

    /// Marks what is marked in `other`.
    pub(crate) fn add(&mut self, other: &Dirt) {
        for (number, theirs) in &other.0 {
            let ours = self.0.entry(*number).or_default();
            ours.itself |= theirs.itself;
            for (from, to) in &theirs.content.0 {
                ours.content.add(*from, *to);
            }
        }
    }

    /// Whether an object itself is marked: nothing said about it would be understood.
    pub(crate) fn holds_object(&self, number: u64) -> bool {
        self.0.get(&number).is_some_and(|marked| marked.itself)
    }

    /// Takes what is to be sent next: objects before content, so that content finds its file. Content comes in pieces of
    /// `most` bytes. `size` tells a file's size; what lies beyond it, or is of no file, goes to `dropped`.
    pub(crate) fn take(
        &mut self,
        most: u64,
        size: impl Fn(u64) -> Option<u64>,
        dropped: &mut Dirt,
    ) -> Option<Piece> {
        if let Some((number, marked)) = self.0.iter_mut().find(|(_, marked)| marked.itself) {
            let number = *number;
            marked.itself = false;
            self.forget_if_clean(number);
            return Some(Piece::Object(number));
        }
        loop {
            let mut first = self.0.first_entry()?;
            let number = *first.key();
            let Some((from, to)) = first.get_mut().content.0.pop_first() else {
                first.remove();
                continue;
            };
            let end = to.min(from.saturating_add(most)).min(size(number).unwrap_or(0));
            let rest = from.max(end);
            match from < end {
                true if rest < to => drop(first.get_mut().content.0.insert(rest, to)),
                true => {}
                false => dropped.mark_content_alone(number, from, to),
            }
            self.forget_if_clean(number);
            if from < end {
                return Some(Piece::Content { number, from, to: end });
            }
        }
    }

    fn forget_if_clean(&mut self, number: u64) {
        if self.0.get(&number).is_some_and(|marked| !marked.itself && marked.content.0.is_empty()) {
            self.0.remove(&number);
        }
    }

    /// About how many bytes must be sent.
    pub(crate) fn bytes(&self, size: impl Fn(u64) -> Option<u64>) -> u64 {
        let bytes = |(number, marked): (&u64, &Marked)| {
            let content = marked.content.bytes(size(*number).unwrap_or(0));
            u64::from(marked.itself) * OBJECT_BYTES + content
        };
        self.0.iter().map(bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(added: &[(u64, u64)], expected: &[(u64, u64)]) {
        let mut ranges = Ranges::default();
        for (from, to) in added {
            ranges.add(from * BLOCK_BYTES, to * BLOCK_BYTES);
        }
        let found: Vec<(u64, u64)> =
            ranges.0.iter().map(|(from, to)| (from / BLOCK_BYTES, to / BLOCK_BYTES)).collect();
        assert_eq!(found, expected, "{added:?}");
    }

    #[test]
    fn ranges_that_touch_become_one() {
        check(&[(0, 1), (2, 3)], &[(0, 1), (2, 3)]);
        check(&[(0, 1), (2, 3), (1, 2)], &[(0, 3)]);
        check(&[(5, 9), (6, 7)], &[(5, 9)]);
        check(&[(1, 2), (3, 4), (5, 6), (0, 10)], &[(0, 10)]);
        check(&[(3, 3)], &[]);
    }

    #[test]
    fn objects_come_before_content_and_content_ends_with_the_file() {
        let mut dirt = Dirt::new();
        dirt.mark_content(7, 1, 2);
        dirt.mark_content(8, 0, 10);
        dirt.mark_whole(9);
        let size = |number| [(7, 20_000), (9, 5_000)].iter().find(|of| of.0 == number).map(|of| of.1);
        assert_eq!(dirt.bytes(size), 3 * OBJECT_BYTES + 4_096 + 5_000);
        let (mut pieces, mut dropped) = (Vec::new(), Dirt::new());
        while let Some(piece) = dirt.take(4_096, size, &mut dropped) {
            pieces.push(piece);
        }
        let content = |number, from, to| Piece::Content { number, from, to };
        let (objects, contents) = pieces.split_at(3);
        assert_eq!(objects, [Piece::Object(7), Piece::Object(8), Piece::Object(9)]);
        assert_eq!(contents, [content(7, 0, 4_096), content(9, 0, 4_096), content(9, 4_096, 5_000)]);
        assert!(dirt.is_empty());
        assert_eq!(dropped.0.keys().copied().collect::<Vec<u64>>(), [8, 9]);
    }
}
