//! TPC-C's chance: non-uniform numbers, last names, decks of cards, think times.
//!
//! Owns what clauses 2.1.6, 4.3.2.3 and 5.2.4 to 5.2.5 of the TPC-C standard (revision 5.11) say of them. Pure.

use std::ops::RangeInclusive;
use std::time::Duration;

use rand::seq::SliceRandom;
use rand::{Rng, RngExt};

/// Customers of a district.
pub(super) const CUSTOMERS: u32 = 3_000;
/// Items, and stock entries of a warehouse.
pub(super) const ITEMS: u32 = 100_000;
/// Districts of a warehouse.
pub(super) const DISTRICTS: u32 = 10;
/// How many lines an order has (clause 2.4.1.3).
pub(super) const LINES: RangeInclusive<u32> = 5..=15;

/// The constant C for last names, when the tables are filled.
const C_LAST_LOAD: u32 = 157;
/// The same in the run. Clause 2.1.6.1: the difference of the two is from 65 to 119, and neither 96 nor 112.
const C_LAST_RUN: u32 = 223;
/// C for customers' numbers, from 0 to 1023.
const C_CUSTOMER: u32 = 259;
/// C for items' numbers, from 0 to 8191.
const C_ITEM: u32 = 7_911;

/// NURand(A, x, y) with its constant C (clause 2.1.6).
fn nurand(rng: &mut (impl Rng + ?Sized), a: u32, c: u32, x: u32, y: u32) -> u32 {
    ((rng.random_range(0..=a) | rng.random_range(x..=y)) + c) % (y - x + 1) + x
}

/// A customer's number.
pub(super) fn customer(rng: &mut (impl Rng + ?Sized)) -> u32 {
    nurand(rng, 1_023, C_CUSTOMER, 1, CUSTOMERS)
}

/// An item's number.
pub(super) fn item(rng: &mut (impl Rng + ?Sized)) -> u32 {
    nurand(rng, 8_191, C_ITEM, 1, ITEMS)
}

/// A last name asked for in the run.
pub(super) fn last_name_in_run(rng: &mut (impl Rng + ?Sized)) -> String {
    last_name(nurand(rng, 255, C_LAST_RUN, 0, 999))
}

/// The last name of a customer when the tables are filled: of the first thousand, every one once.
pub(super) fn last_name_of(rng: &mut (impl Rng + ?Sized), customer: u32) -> String {
    last_name(if customer <= 1_000 { customer - 1 } else { nurand(rng, 255, C_LAST_LOAD, 0, 999) })
}

/// The name of a number from 0 to 999, three syllables by its digits (clause 4.3.2.3).
fn last_name(number: u32) -> String {
    const SYLLABLES: [&str; 10] =
        ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
    [number / 100 % 10, number / 10 % 10, number % 10].map(|digit| SYLLABLES[digit as usize]).concat()
}

/// The kinds of transaction, by their places.
pub(super) const NEW_ORDER: usize = 0;
pub(super) const PAYMENT: usize = 1;
pub(super) const ORDER_STATUS: usize = 2;
pub(super) const DELIVERY: usize = 3;

/// Their names, as operations in results.
pub(super) const KINDS: &[&str] = capabilities::workloads::TPCC.kinds;

/// Cards of a deck (clause 5.2.4.2).
const DECK: [usize; 5] = [10, 10, 1, 1, 1];

/// Weights in percent: the least of clause 5.2.3 for four kinds, and the rest for New-Order.
const WEIGHTS: [u32; 5] = [45, 43, 4, 4, 4];

/// A terminal's deck of cards, shuffled anew when it is used up.
#[derive(Debug, Default)]
pub(super) struct Deck {
    cards: Vec<usize>,
}

impl Deck {
    /// The kind of the next transaction.
    pub(super) fn next(&mut self, rng: &mut (impl Rng + ?Sized)) -> usize {
        if self.cards.is_empty() {
            let cards = DECK.iter().enumerate().flat_map(|(kind, count)| std::iter::repeat_n(kind, *count));
            self.cards.extend(cards);
            self.cards.shuffle(rng);
        }
        self.cards.pop().unwrap_or(NEW_ORDER)
    }
}

/// The kind of the next transaction by weights instead (clause 5.2.4.1).
pub(super) fn weighted(rng: &mut (impl Rng + ?Sized)) -> usize {
    let mut left = rng.random_range(0..WEIGHTS.iter().sum::<u32>());
    for (kind, weight) in WEIGHTS.iter().enumerate() {
        if left < *weight {
            return kind;
        }
        left -= weight;
    }
    NEW_ORDER
}

/// Seconds for which the input of each kind is keyed in (clause 5.2.5.2).
const KEYING_S: [u64; 5] = [18, 3, 2, 2, 2];
/// Seconds for which the answer of each kind is thought about, the mean (clause 5.2.5.4).
const THINKING_S: [f64; 5] = [12.0, 12.0, 10.0, 5.0, 5.0];

/// How long the input of a kind is keyed in.
pub(super) fn keying(kind: usize) -> Duration {
    Duration::from_secs(KEYING_S.get(kind).copied().unwrap_or(0))
}

/// Keying and thinking around a transaction, the mean over the mix.
pub(super) fn mean_pauses(by_weights: bool) -> Duration {
    let shares = if by_weights { WEIGHTS.map(f64::from) } else { DECK.map(|cards| cards as f64) };
    let pauses_s =
        KEYING_S.iter().zip(THINKING_S).map(|(keying_s, thinking_s)| *keying_s as f64 + thinking_s);
    let sum_s: f64 = pauses_s.zip(shares).map(|(pauses_s, share)| pauses_s * share).sum();
    Duration::from_secs_f64(sum_s / shares.iter().sum::<f64>())
}

/// How long the answer of a kind is thought about: negative exponential, cut off at ten times its mean.
pub(super) fn thinking(kind: usize, rng: &mut (impl Rng + ?Sized)) -> Duration {
    let mean = THINKING_S.get(kind).copied().unwrap_or(0.0);
    // From 0 to 1, 0 excluded: its logarithm would be no number.
    let uniform = 1.0 - rng.random::<f64>();
    Duration::from_secs_f64((-uniform.ln() * mean).min(10.0 * mean))
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;
    use crate::distribution::chi_square;

    /// What NURand gives, computed from all pairs of its two draws.
    fn computed(a: u32, c: u32, x: u32, y: u32) -> Vec<f64> {
        let mut counts = vec![0_u64; (y - x + 1) as usize];
        for one in 0..=a {
            for other in x..=y {
                counts[(((one | other) + c) % (y - x + 1)) as usize] += 1;
            }
        }
        let all = f64::from(a + 1) * f64::from(y - x + 1);
        counts.iter().map(|count| *count as f64 / all).collect()
    }

    #[test]
    fn the_constants_are_as_the_standard_allows() {
        let delta = C_LAST_RUN.abs_diff(C_LAST_LOAD);
        assert!((65..=119).contains(&delta) && delta != 96 && delta != 112, "{delta}");
        const { assert!(C_LAST_LOAD <= 255 && C_LAST_RUN <= 255 && C_CUSTOMER <= 1_023 && C_ITEM <= 8_191) };
    }

    #[test]
    fn non_uniform_numbers_follow_the_computed_distribution() {
        let customers = computed(1_023, C_CUSTOMER, 1, CUSTOMERS);
        chi_square::check("customers", &customers, 200_000, |rng| (customer(rng) - 1) as usize);
        let names = computed(255, C_LAST_RUN, 0, 999);
        chi_square::check("names", &names, 100_000, |rng| nurand(rng, 255, C_LAST_RUN, 0, 999) as usize);
        let uniform = vec![1.0 / f64::from(CUSTOMERS); CUSTOMERS as usize];
        assert!(!chi_square::fits(&uniform, 200_000, |rng| (customer(rng) - 1) as usize));
        // Another constant moves the popular numbers: it must be seen.
        let moved = computed(1_023, C_CUSTOMER + 1, 1, CUSTOMERS);
        assert!(!chi_square::fits(&moved, 200_000, |rng| (customer(rng) - 1) as usize));
    }

    /// What an item's number is, computed: of the second draw the bits above the thirteen of the first stay; below them,
    /// a result with the bits V comes from every choice of second bits L among them, 2^|L| times.
    fn computed_items() -> Vec<f64> {
        const LOW: u32 = 8_192;
        let mut counts = vec![0_u64; ITEMS as usize];
        for high in (0..=ITEMS).step_by(LOW as usize) {
            let allowed = |low: u32| (1..=ITEMS).contains(&(high + low));
            let whole = allowed(0) && allowed(LOW - 1);
            for result in 0..LOW {
                let ways = if whole {
                    3_u64.pow(result.count_ones())
                } else {
                    let parts = (0..LOW).filter(|low| allowed(*low) && low & !result == 0);
                    parts.map(|low| 1 << low.count_ones()).sum()
                };
                counts[((high + result + C_ITEM) % ITEMS) as usize] += ways;
            }
        }
        let all = f64::from(LOW) * f64::from(ITEMS);
        assert_eq!(counts.iter().sum::<u64>(), u64::from(LOW) * u64::from(ITEMS));
        counts.iter().map(|count| *count as f64 / all).collect()
    }

    #[test]
    fn items_follow_the_computed_distribution() {
        let mut expected = computed_items();
        chi_square::check("items", &expected, 400_000, |rng| (item(rng) - 1) as usize);
        expected.rotate_right(1);
        assert!(!chi_square::fits(&expected, 400_000, |rng| (item(rng) - 1) as usize));
    }

    #[test]
    fn last_names_are_made_of_the_digits() {
        assert_eq!(last_name(0), "BARBARBAR");
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(999), "EINGEINGEING");
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        assert_eq!(last_name_of(&mut rng, 1), "BARBARBAR");
        assert_eq!(last_name_of(&mut rng, 1_000), "EINGEINGEING");
    }

    #[test]
    fn every_deck_holds_the_same_cards_and_is_shuffled() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut deck = Deck::default();
        let hands: Vec<Vec<usize>> =
            (0..50).map(|_| (0..23).map(|_| deck.next(&mut rng)).collect()).collect();
        for hand in &hands {
            let count = |kind| hand.iter().filter(|card| **card == kind).count();
            assert_eq!((0..5).map(count).collect::<Vec<_>>(), DECK);
        }
        assert_ne!(hands[0], hands[1]);
        // Every card is as likely to be the first of its hand.
        let first = |rng: &mut ChaCha8Rng| {
            let mut deck = Deck::default();
            deck.next(rng)
        };
        let shares = DECK.map(|count| count as f64 / 23.0);
        chi_square::check("first card", &shares, 20_000, first);
    }

    #[test]
    fn weights_give_the_shares_of_the_standard() {
        chi_square::check("weights", &WEIGHTS.map(|weight| f64::from(weight) / 100.0), 50_000, weighted);
    }

    #[test]
    fn think_times_are_exponential_and_cut_off() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let times: Vec<f64> = (0..50_000).map(|_| thinking(PAYMENT, &mut rng).as_secs_f64()).collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        assert!((mean - 12.0).abs() < 0.25, "{mean}");
        assert!(times.iter().all(|time| *time <= 120.0));
        let classes: Vec<f64> = (0..20).map(|class| (-f64::from(class) / 4.0).exp()).collect();
        let mut expected: Vec<f64> = classes.windows(2).map(|pair| pair[0] - pair[1]).collect();
        expected.push(classes[19]);
        chi_square::check("think time", &expected, 50_000, |rng| {
            ((thinking(PAYMENT, rng).as_secs_f64() / 3.0) as usize).min(19)
        });
    }
}
