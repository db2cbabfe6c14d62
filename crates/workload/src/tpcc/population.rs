//! The initial population of TPC-C's tables (clause 4.3.3.1), as lines of a bulk load.
//!
//! Owns the rows. Every table and district has a chance of its own from their numbers alone, so that the parts can be
//! made in any order and on several sessions, and orders and their lines agree.

use std::io::Write;
use std::ops::RangeInclusive;

use rand::seq::SliceRandom;
use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::random::{CUSTOMERS, DISTRICTS, ITEMS, LINES, last_name_of};
use super::schema::{self, Table};
use crate::random_text::{push_alphanumeric, push_alphanumeric_of, push_digits};

/// Orders of a district; the last of them are not delivered yet.
pub(super) const ORDERS: u32 = 3_000;
/// The first order that is not delivered yet.
const FIRST_OPEN_ORDER: u32 = 2_101;

/// Appends lines, again and again; answers whether there are more.
pub(super) type Lines = Box<dyn FnMut(&mut Vec<u8>) -> bool>;

/// A table's part that is loaded in one go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// All items; shared by all warehouses.
    Items,
    /// The warehouse's own row.
    Warehouse(u32),
    Districts(u32),
    Stock(u32),
    Customers(u32),
    History(u32),
    Orders(u32),
    OrderLines(u32),
    NewOrders(u32),
}

impl Part {
    /// All parts of so many warehouses, the largest first.
    pub(super) fn all(warehouses: u32) -> Vec<Part> {
        let each = |part: fn(u32) -> Part| (1..=warehouses).map(part);
        each(Part::OrderLines)
            .chain(each(Part::Stock))
            .chain(each(Part::Customers))
            .chain([Part::Items])
            .chain(each(Part::Orders))
            .chain(each(Part::History))
            .chain(each(Part::NewOrders))
            .chain(each(Part::Districts))
            .chain(each(Part::Warehouse))
            .collect()
    }

    /// Its size in bytes as clause 4.2.2 of the standard gives it, for estimates of what is left to load.
    pub(super) fn bytes(self) -> u64 {
        match self {
            Part::Items => 8_200_000,
            Part::Warehouse(_) => 89,
            Part::Districts(_) => 950,
            Part::Stock(_) => 30_600_000,
            Part::Customers(_) => 19_650_000,
            Part::History(_) => 1_380_000,
            Part::Orders(_) => 720_000,
            Part::OrderLines(_) => 16_200_000,
            Part::NewOrders(_) => 72_000,
        }
    }

    pub(super) fn table(self) -> &'static Table {
        match self {
            Part::Items => &schema::ITEM,
            Part::Warehouse(_) => &schema::WAREHOUSE,
            Part::Districts(_) => &schema::DISTRICT,
            Part::Stock(_) => &schema::STOCK,
            Part::Customers(_) => &schema::CUSTOMER,
            Part::History(_) => &schema::HISTORY,
            Part::Orders(_) => &schema::ORDERS,
            Part::OrderLines(_) => &schema::ORDER_LINE,
            Part::NewOrders(_) => &schema::NEW_ORDER,
        }
    }

    /// The lines; `now` is when the orders and payments of the population were made.
    pub(super) fn lines(self, now: &str) -> Lines {
        let now = now.to_owned();
        match self {
            Part::Items => stepped(chance(0, 0, 0), 1..=ITEMS, 200, item),
            Part::Warehouse(w) => stepped(chance(1, w, 0), w..=w, 1, warehouse),
            Part::Districts(w) => {
                stepped(chance(2, w, 0), 1..=DISTRICTS, 10, move |rng, d, out| district(rng, w, d, out))
            }
            Part::Stock(w) => {
                stepped(chance(3, w, 0), 1..=ITEMS, 100, move |rng, i, out| stock(rng, w, i, out))
            }
            Part::Customers(w) => {
                stepped(chance(4, w, 0), 1..=DISTRICTS * CUSTOMERS, 50, move |rng, n, out| {
                    customer(rng, [w, (n - 1) / CUSTOMERS + 1, (n - 1) % CUSTOMERS + 1], &now, out);
                })
            }
            Part::History(w) => {
                stepped(chance(5, w, 0), 1..=DISTRICTS * CUSTOMERS, 200, move |rng, n, out| {
                    history(rng, [w, (n - 1) / CUSTOMERS + 1, (n - 1) % CUSTOMERS + 1], &now, out);
                })
            }
            Part::Orders(w) => stepped(chance(6, w, 0), 1..=DISTRICTS, 1, move |rng, d, out| {
                for (o, order) in (1..).zip(orders_of(w, d)) {
                    let carrier = if o < FIRST_OPEN_ORDER {
                        rng.random_range(1..=10).to_string()
                    } else {
                        r"\N".into()
                    };
                    let Order { customer, lines } = order;
                    let _ = writeln!(out, "{o}\t{d}\t{w}\t{customer}\t{now}\t{carrier}\t{lines}\t1");
                }
            }),
            Part::OrderLines(w) => {
                // Ten calls to a district, so that no buffer grows large.
                const SLICE: u32 = ORDERS / 10;
                stepped(chance(7, w, 0), 0..=DISTRICTS * 10 - 1, 1, move |rng, slice, out| {
                    let (d, first) = (slice / 10 + 1, slice % 10 * SLICE + 1);
                    let orders = orders_of(w, d);
                    for o in first..first + SLICE {
                        let lines = orders.get(o as usize - 1).map_or(0, |order| order.lines);
                        (1..=lines).for_each(|number| order_line(rng, [w, d, o, number], &now, out));
                    }
                })
            }
            Part::NewOrders(w) => stepped(chance(8, w, 0), 1..=DISTRICTS, 1, move |_, d, out| {
                for o in FIRST_OPEN_ORDER..=ORDERS {
                    let _ = writeln!(out, "{o}\t{d}\t{w}");
                }
            }),
        }
    }
}

/// Calls `line` for each number, `step` numbers at a time. Writing into memory cannot fail, here and below.
fn stepped(
    mut rng: ChaCha8Rng,
    mut numbers: RangeInclusive<u32>,
    step: usize,
    line: impl Fn(&mut ChaCha8Rng, u32, &mut Vec<u8>) + 'static,
) -> Lines {
    Box::new(move |out| {
        numbers.by_ref().take(step).for_each(|number| line(&mut rng, number, out));
        !numbers.is_empty()
    })
}

fn chance(table: u64, warehouse: u32, district: u32) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(table << 48 | u64::from(warehouse) << 16 | u64::from(district))
}

/// What an order and its lines must agree on.
struct Order {
    customer: u32,
    lines: u32,
}

/// The orders of a district: every customer has one.
fn orders_of(warehouse: u32, district: u32) -> Vec<Order> {
    let mut rng = chance(9, warehouse, district);
    let mut customers: Vec<u32> = (1..=CUSTOMERS).collect();
    customers.shuffle(&mut rng);
    customers.into_iter().map(|customer| Order { customer, lines: rng.random_range(LINES) }).collect()
}

/// An amount of hundredths as a decimal number.
fn decimal(hundredths: u32) -> String {
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// 26 to 50 characters, in one row of ten with ORIGINAL somewhere in it.
fn push_data(rng: &mut impl Rng, out: &mut Vec<u8>) {
    let start = out.len();
    let length = push_alphanumeric_of(rng, 26..=50, out);
    if rng.random_range(0..10) == 0 {
        let at = start + rng.random_range(0..=length - 8);
        out[at..at + 8].copy_from_slice(b"ORIGINAL");
    }
}

/// Two streets, a city, a state, a zip code: each with a tab after it.
fn push_address(rng: &mut impl Rng, out: &mut Vec<u8>) {
    for _ in 0..3 {
        push_alphanumeric_of(rng, 10..=20, out);
        out.push(b'\t');
    }
    for _ in 0..2 {
        out.push(rng.random_range(b'A'..=b'Z'));
    }
    out.push(b'\t');
    push_digits(rng, 4, out);
    out.extend_from_slice(b"11111\t");
}

fn item(rng: &mut ChaCha8Rng, i: u32, out: &mut Vec<u8>) {
    let _ = write!(out, "{i}\t{}\t", rng.random_range(1..=10_000));
    push_alphanumeric_of(rng, 14..=24, out);
    let _ = write!(out, "\t{}\t", decimal(rng.random_range(100..=10_000)));
    push_data(rng, out);
    out.push(b'\n');
}

fn warehouse(rng: &mut ChaCha8Rng, w: u32, out: &mut Vec<u8>) {
    let _ = write!(out, "{w}\t");
    push_alphanumeric_of(rng, 6..=10, out);
    out.push(b'\t');
    push_address(rng, out);
    let _ = writeln!(out, "0.{:04}\t300000.00", rng.random_range(0..=2_000));
}

fn district(rng: &mut ChaCha8Rng, w: u32, d: u32, out: &mut Vec<u8>) {
    let _ = write!(out, "{d}\t{w}\t");
    push_alphanumeric_of(rng, 6..=10, out);
    out.push(b'\t');
    push_address(rng, out);
    let _ = writeln!(out, "0.{:04}\t30000.00\t{}", rng.random_range(0..=2_000), ORDERS + 1);
}

fn stock(rng: &mut ChaCha8Rng, w: u32, i: u32, out: &mut Vec<u8>) {
    let _ = write!(out, "{i}\t{w}\t{}\t", rng.random_range(10..=100));
    for _ in 0..10 {
        push_alphanumeric(rng, 24, out);
        out.push(b'\t');
    }
    out.extend_from_slice(b"0\t0\t0\t");
    push_data(rng, out);
    out.push(b'\n');
}

fn customer(rng: &mut ChaCha8Rng, [w, d, c]: [u32; 3], now: &str, out: &mut Vec<u8>) {
    let _ = write!(out, "{c}\t{d}\t{w}\t");
    push_alphanumeric_of(rng, 8..=16, out);
    let _ = write!(out, "\tOE\t{}\t", last_name_of(rng, c));
    push_address(rng, out);
    push_digits(rng, 16, out);
    let credit = if rng.random_range(0..10) == 0 { "BC" } else { "GC" };
    let discount = rng.random_range(0..=5_000);
    let _ = write!(out, "\t{now}\t{credit}\t50000.00\t0.{discount:04}\t-10.00\t10.00\t1\t0\t");
    push_alphanumeric_of(rng, 300..=500, out);
    out.push(b'\n');
}

fn history(rng: &mut ChaCha8Rng, [w, d, c]: [u32; 3], now: &str, out: &mut Vec<u8>) {
    let _ = write!(out, "{c}\t{d}\t{w}\t{d}\t{w}\t{now}\t10.00\t");
    push_alphanumeric_of(rng, 12..=24, out);
    out.push(b'\n');
}

fn order_line(rng: &mut ChaCha8Rng, [w, d, o, number]: [u32; 4], now: &str, out: &mut Vec<u8>) {
    let item = rng.random_range(1..=ITEMS);
    let open = o >= FIRST_OPEN_ORDER;
    let amount = if open { decimal(rng.random_range(1..=999_999)) } else { "0.00".to_owned() };
    let delivered = if open { r"\N" } else { now };
    let _ = write!(out, "{o}\t{d}\t{w}\t{number}\t{item}\t{w}\t{delivered}\t5\t{amount}\t");
    push_alphanumeric(rng, 24, out);
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn lines(part: Part) -> Vec<Vec<String>> {
        let mut text = Vec::new();
        let mut fill = part.lines("2026-01-01 00:00:00");
        while fill(&mut text) {}
        let text = String::from_utf8(text).expect("text");
        text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
    }

    #[test]
    fn every_part_has_the_rows_of_the_standard_and_a_cell_for_each_column() {
        let check = |part: Part, rows: usize| {
            let lines = lines(part);
            assert_eq!(lines.len(), rows, "{part:?}");
            let columns = part.table().loaded_columns().split(", ").count();
            assert!(lines.iter().all(|line| line.len() == columns), "{part:?}");
        };
        check(Part::Warehouse(2), 1);
        check(Part::Districts(2), 10);
        check(Part::Customers(2), 30_000);
        check(Part::History(2), 30_000);
        check(Part::Orders(2), 30_000);
        check(Part::NewOrders(2), 9_000);
        check(Part::Items, 100_000);
    }

    #[test]
    fn orders_and_their_lines_agree() {
        let orders = lines(Part::Orders(1));
        let wanted: u32 = orders.iter().map(|order| order[6].parse::<u32>().expect("lines")).sum();
        let order_lines = lines(Part::OrderLines(1));
        assert_eq!(order_lines.len(), wanted as usize);
        let numbers: BTreeSet<[&str; 3]> =
            order_lines.iter().map(|line| [line[1].as_str(), line[0].as_str(), line[3].as_str()]).collect();
        assert_eq!(numbers.len(), order_lines.len());
        for order in &orders[..100] {
            assert!(
                numbers.contains(&[order[1].as_str(), order[0].as_str(), order[6].as_str()]),
                "{order:?}"
            );
        }
        // Every customer of a district has exactly one order.
        let customers: BTreeSet<&str> = orders[..3_000].iter().map(|order| order[3].as_str()).collect();
        assert_eq!(customers.len(), 3_000);
        assert_eq!(orders.iter().filter(|order| order[5] == r"\N").count(), 9_000);
    }

    #[test]
    fn parts_cover_every_table_of_every_warehouse() {
        let parts = Part::all(3);
        assert_eq!(parts.len(), 1 + 8 * 3);
        let tables: BTreeSet<&str> = parts.iter().map(|part| part.table().name).collect();
        assert_eq!(tables.len(), 9);
    }
}
