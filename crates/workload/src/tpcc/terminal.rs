//! One terminal: which transaction it asks for next, with which input (clauses 2.4.1 to 2.8.1), and the deliveries that
//! wait to be carried out.
//!
//! Owns the input, drawn before anything is sent. What is done with it is `transactions`' business.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rand::{Rng, RngExt};

use super::random::{self, DELIVERY, DISTRICTS, Deck, ITEMS, NEW_ORDER, ORDER_STATUS, PAYMENT};

/// A line of a new order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) item: u32,
    /// The warehouse that supplies it.
    pub(super) supplier: u32,
    pub(super) quantity: u32,
}

/// A customer as asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wanted {
    Number(u32),
    LastName(String),
}

/// The input of one transaction.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Input {
    NewOrder { warehouse: u32, district: u32, customer: u32, lines: Vec<Line> },
    Payment { warehouse: u32, district: u32, customer_at: (u32, u32), customer: Wanted, cents: i64 },
    OrderStatus { warehouse: u32, district: u32, customer: Wanted },
    Delivery { warehouse: u32, carrier: u32, queued: Instant },
    StockLevel { warehouse: u32, district: u32, threshold: u32 },
}

/// What a client remembers of its terminal.
#[derive(Debug, Default)]
pub(super) struct Terminal {
    deck: Deck,
    /// Keying and think times of deliveries that were queued, to be waited with the next transaction.
    pub(super) owed: Duration,
}

/// Deliveries that were asked for and are not carried out yet (clause 2.7.2), first come first served.
pub(super) type DeliveryQueue = VecDeque<Input>;

/// How the terminals of a load behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Habits {
    pub(super) warehouses: u32,
    /// Kinds come by weights instead of decks.
    pub(super) weights: bool,
    /// Deliveries are queued instead of being carried out by the terminal that asks.
    pub(super) queue: bool,
    /// Keying and think times are waited.
    pub(super) pauses: bool,
}

impl Terminal {
    /// The next transaction of the terminal of this client. A delivery that waits goes first, whoever asked for it.
    pub(super) fn draw(
        &mut self,
        client: u64,
        habits: Habits,
        queue: &mut DeliveryQueue,
        rng: &mut impl Rng,
    ) -> (usize, Input) {
        let (home, district) = place(client, habits.warehouses);
        loop {
            if let Some(delivery) = queue.pop_front() {
                return (DELIVERY, delivery);
            }
            let kind = if habits.weights { random::weighted(rng) } else { self.deck.next(rng) };
            let input = match kind {
                NEW_ORDER => new_order(home, habits.warehouses, rng),
                PAYMENT => payment(home, habits.warehouses, rng),
                ORDER_STATUS => Input::OrderStatus {
                    warehouse: home,
                    district: rng.random_range(1..=DISTRICTS),
                    customer: wanted(rng),
                },
                DELIVERY => {
                    let carrier = rng.random_range(1..=10);
                    let delivery = Input::Delivery { warehouse: home, carrier, queued: Instant::now() };
                    if habits.queue {
                        // The terminal has its answer at once and goes on; the delivery waits its turn.
                        if habits.pauses {
                            self.owed += random::keying(kind) + random::thinking(kind, rng);
                        }
                        queue.push_back(delivery);
                        continue;
                    }
                    delivery
                }
                // Stock-Level, the last of the five.
                _ => Input::StockLevel { warehouse: home, district, threshold: rng.random_range(10..=20) },
            };
            return (kind, input);
        }
    }
}

/// A terminal's warehouse and district, both from 1: ten terminals to a warehouse, then from the first again.
fn place(client: u64, warehouses: u32) -> (u32, u32) {
    let warehouses = u64::from(warehouses.max(1));
    let number = |index: u64| u32::try_from(index).unwrap_or(0) + 1;
    (number(client % warehouses), number(client / warehouses % u64::from(DISTRICTS)))
}

/// Another warehouse, where there is one.
fn elsewhere(home: u32, warehouses: u32, rng: &mut impl Rng) -> u32 {
    if warehouses < 2 {
        return home;
    }
    let other = rng.random_range(1..warehouses);
    if other >= home { other + 1 } else { other }
}

fn wanted(rng: &mut impl Rng) -> Wanted {
    if rng.random_range(1..=100) <= 60 {
        Wanted::LastName(random::last_name_in_run(rng))
    } else {
        Wanted::Number(random::customer(rng))
    }
}

fn new_order(home: u32, warehouses: u32, rng: &mut impl Rng) -> Input {
    let district = rng.random_range(1..=DISTRICTS);
    let customer = random::customer(rng);
    let count = rng.random_range(random::LINES);
    let rolls_back = rng.random_range(1..=100) == 1;
    let mut lines: Vec<Line> = (0..count)
        .map(|_| {
            let item = random::item(rng);
            let remote = rng.random_range(1..=100) == 1;
            let supplier = if remote { elsewhere(home, warehouses, rng) } else { home };
            Line { item, supplier, quantity: rng.random_range(1..=10) }
        })
        .collect();
    if rolls_back && let Some(last) = lines.last_mut() {
        // An item that nobody has.
        last.item = ITEMS + 1;
    }
    Input::NewOrder { warehouse: home, district, customer, lines }
}

fn payment(home: u32, warehouses: u32, rng: &mut impl Rng) -> Input {
    let district = rng.random_range(1..=DISTRICTS);
    let customer_at = if rng.random_range(1..=100) <= 85 {
        (home, district)
    } else {
        (elsewhere(home, warehouses, rng), rng.random_range(1..=DISTRICTS))
    };
    let cents = rng.random_range(100..=500_000);
    Input::Payment { warehouse: home, district, customer_at, customer: wanted(rng), cents }
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;
    use crate::distribution::chi_square;

    const HABITS: Habits = Habits { warehouses: 4, weights: false, queue: false, pauses: false };

    fn draws(habits: Habits, count: usize) -> Vec<(usize, Input)> {
        let (mut terminal, mut queue) = (Terminal::default(), DeliveryQueue::new());
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        (0..count).map(|_| terminal.draw(6, habits, &mut queue, &mut rng)).collect()
    }

    #[test]
    fn kinds_come_as_the_deck_and_as_the_weights_have_them() {
        for (weights, shares) in [(false, [10.0, 10.0, 1.0, 1.0, 1.0]), (true, [45.0, 43.0, 4.0, 4.0, 4.0])] {
            let mut all = draws(Habits { weights, ..HABITS }, 23_000).into_iter();
            let sum: f64 = shares.iter().sum();
            let expected = shares.map(|share| share / sum);
            chi_square::check("kinds", &expected, 23_000, |_| all.next().expect("drawn").0);
        }
    }

    #[test]
    fn one_order_in_a_hundred_asks_for_an_item_that_is_not_there_and_one_line_in_a_hundred_comes_from_elsewhere()
     {
        let (mut orders, mut void, mut lines, mut remote) = (0, 0, 0, 0);
        for (_, input) in draws(HABITS, 60_000) {
            let Input::NewOrder { warehouse, lines: of_order, .. } = input else { continue };
            assert_eq!(warehouse, 3, "client 6 of 4 warehouses");
            orders += 1;
            lines += of_order.len();
            assert!((5..=15).contains(&of_order.len()));
            void += u64::from(of_order.iter().any(|line| line.item > ITEMS));
            remote += of_order.iter().filter(|line| line.supplier != warehouse).count();
        }
        let check = |name: &str, seen: u64, of: u64, share: f64| {
            let off = chi_square::statistic(&[share, 1.0 - share], &[seen, of - seen], of as f64);
            assert!(off < 4.9, "{name}: {seen} of {of}");
        };
        check("rolled back", void, orders, 0.01);
        check("remote", remote as u64, lines as u64, 0.01);
    }

    #[test]
    fn payments_are_mostly_for_customers_at_home_and_mostly_by_name() {
        let mut classes = Vec::new();
        for (_, input) in draws(HABITS, 60_000) {
            let Input::Payment { warehouse, customer_at, customer, cents, .. } = input else { continue };
            assert!((100..=500_000).contains(&cents) && (1..=4).contains(&customer_at.0));
            let by_name = matches!(customer, Wanted::LastName(_));
            classes.push(usize::from(customer_at.0 != warehouse) * 2 + usize::from(by_name));
        }
        let count = classes.len();
        let mut classes = classes.into_iter();
        let expected = [0.85 * 0.4, 0.85 * 0.6, 0.15 * 0.4, 0.15 * 0.6];
        chi_square::check("payments", &expected, count, |_| classes.next().expect("drawn"));
    }

    #[test]
    fn a_single_warehouse_has_nothing_elsewhere() {
        for (_, input) in draws(Habits { warehouses: 1, ..HABITS }, 5_000) {
            match input {
                Input::NewOrder { lines, .. } => assert!(lines.iter().all(|line| line.supplier == 1)),
                Input::Payment { customer_at, .. } => assert_eq!(customer_at.0, 1),
                _ => {}
            }
        }
    }

    #[test]
    fn a_queued_delivery_is_the_next_thing_done_and_its_pauses_are_owed() {
        let habits = Habits { queue: true, pauses: true, ..HABITS };
        let (mut terminal, mut queue) = (Terminal::default(), DeliveryQueue::new());
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let waiting = Input::Delivery { warehouse: 2, carrier: 7, queued: Instant::now() };
        queue.push_back(waiting.clone());
        assert_eq!(terminal.draw(0, habits, &mut queue, &mut rng), (DELIVERY, waiting));
        let kinds: Vec<usize> = (0..23).map(|_| terminal.draw(0, habits, &mut queue, &mut rng).0).collect();
        assert_eq!(kinds.iter().filter(|kind| **kind == DELIVERY).count(), 1);
        assert!(terminal.owed >= Duration::from_secs(2));
        assert!(queue.is_empty());
    }

    #[test]
    fn terminals_are_spread_over_warehouses_and_districts() {
        let places: std::collections::BTreeSet<_> = (10_000..10_020).map(|client| place(client, 2)).collect();
        assert_eq!(places.len(), 20);
    }
}
