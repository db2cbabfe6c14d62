//! Changes of inputs by chance: bytes, numbers, lines and pieces of others.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Where parsers err.
const NUMBERS: [&str; 12] = [
    "0",
    "-1",
    "1",
    "255",
    "256",
    "65536",
    "2147483648",
    "4294967296",
    "9007199254740993",
    "18446744073709551616",
    "1e309",
    "0.0000001",
];
const PIECES: [&str; 16] =
    ["{", "}", "[", "]", ":", "-", "\"", "'", "&a", "*a", "!!x", "\u{feff}", "\0", "\u{202e}", "\r\n", "\t"];

/// Draws inputs from seeds; the same number draws the same.
pub(super) struct Mutation<'s> {
    seeds: &'s [Vec<u8>],
    longest: usize,
}

impl<'s> Mutation<'s> {
    /// `seeds` may be none: then all is noise.
    pub(super) fn of(seeds: &'s [Vec<u8>], longest: usize) -> Self {
        Self { seeds, longest }
    }

    /// The input of this number.
    pub(super) fn input(&self, number: u64) -> Vec<u8> {
        let mut chance = Chance(ChaCha8Rng::seed_from_u64(number));
        let mut input = match self.seeds.len() {
            0 => Vec::new(),
            seeds => self.seeds[chance.below(seeds)].clone(),
        };
        if input.is_empty() || chance.below(50) == 0 {
            input = (0..chance.below(300)).map(|_| chance.below(256) as u8).collect();
        }
        for _ in 0..=chance.below(6) {
            self.change(&mut input, &mut chance);
        }
        input.truncate(self.longest);
        input
    }

    fn change(&self, input: &mut Vec<u8>, chance: &mut Chance) {
        let at = chance.below(input.len() + 1);
        let end = (at + chance.below(40)).min(input.len());
        match chance.below(9) {
            0 if at < input.len() => input[at] ^= 1 << chance.below(8),
            1 if at < input.len() => input[at] = chance.below(256) as u8,
            2 => drop(input.drain(at..end)),
            3 => {
                let piece = input[at..end].to_vec();
                insert(input, at, &piece);
            }
            4 => insert(input, at, PIECES[chance.below(PIECES.len())].as_bytes()),
            5 => replace_number(input, at, NUMBERS[chance.below(NUMBERS.len())].as_bytes()),
            6 => swap_lines(input, chance),
            7 if !self.seeds.is_empty() => {
                let other = &self.seeds[chance.below(self.seeds.len())];
                let from = chance.below(other.len() + 1);
                let to = (from + chance.below(120)).min(other.len());
                insert(input, at, &other[from..to]);
            }
            _ => input.truncate(at),
        }
    }
}

struct Chance(ChaCha8Rng);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        (self.0.next_u64() % bound.max(1) as u64) as usize
    }
}

fn insert(input: &mut Vec<u8>, at: usize, piece: &[u8]) {
    drop(input.splice(at..at, piece.iter().copied()));
}

/// The first number at or behind a place becomes another.
fn replace_number(input: &mut Vec<u8>, at: usize, number: &[u8]) {
    let Some(begin) = input[at..].iter().position(u8::is_ascii_digit).map(|begin| at + begin) else { return };
    let length = input[begin..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    drop(input.splice(begin..begin + length, number.iter().copied()));
}

fn swap_lines(input: &mut Vec<u8>, chance: &mut Chance) {
    let mut lines: Vec<Vec<u8>> = input.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let (one, other) = (chance.below(lines.len()), chance.below(lines.len()));
    lines.swap(one, other);
    *input = lines.join(&b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_number_draws_the_same_and_others_draw_others() {
        let seeds = [b"name: x\nnodes: 3\n".to_vec(), b"phase: y".to_vec()];
        let mutation = Mutation::of(&seeds, 64);
        let drawn: Vec<Vec<u8>> = (0..500).map(|number| mutation.input(number)).collect();
        assert_eq!(drawn, (0..500).map(|number| mutation.input(number)).collect::<Vec<_>>());
        assert!(drawn.iter().all(|input| input.len() <= 64));
        let different: std::collections::BTreeSet<_> = drawn.iter().collect();
        assert!(different.len() > 300, "{}", different.len());
        assert!((0..10).any(|number| !Mutation::of(&[], 64).input(number).is_empty()));
    }
}
