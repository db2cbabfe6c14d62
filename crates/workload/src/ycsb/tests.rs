//! YCSB: shares, choice of keys and recorded cells, against what the standard says they are.

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::*;
use crate::distribution::zipfian::YCSB_THETA;
use crate::distribution::{ScrambledZipfian, Zipfian, chi_square};

fn given(options: &[(&str, &str)]) -> BTreeMap<String, String> {
    options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn ycsb(options: &[(&str, &str)]) -> Ycsb {
    Ycsb::configured(&given(options)).expect("fits")
}

fn client() -> ClientState {
    ClientState::new(5, 1, ChaCha8Rng::seed_from_u64(5))
}

#[test]
fn each_core_workload_has_the_operations_of_the_standard() {
    let check = |letter: &str, expected: [f64; 5]| {
        let ycsb = ycsb(&[("workload", letter), ("records", "100")]);
        let mut client = client();
        chi_square::check(letter, &expected, 20_000, |_| ycsb.draw(&mut client).kind);
    };
    check("a", [0.5, 0.5, 0.0, 0.0, 0.0]);
    check("b", [0.95, 0.05, 0.0, 0.0, 0.0]);
    check("c", [1.0, 0.0, 0.0, 0.0, 0.0]);
    check("d", [0.95, 0.0, 0.05, 0.0, 0.0]);
    check("e", [0.0, 0.0, 0.05, 0.95, 0.0]);
    check("f", [0.5, 0.0, 0.0, 0.0, 0.5]);
}

#[test]
fn shares_given_one_by_one_replace_those_of_the_core_workload() {
    let ycsb = ycsb(&[("workload", "a"), ("read", "10%"), ("insert", "90%"), ("records", "100")]);
    let mut client = client();
    chi_square::check("own shares", &[0.1, 0.0, 0.9, 0.0, 0.0], 5_000, |_| ycsb.draw(&mut client).kind);
}

/// The numbers of keys that a read asks for follow `expected`.
#[track_caller]
fn keys_follow(distribution: &str, records: u64, expected: &[f64]) {
    let ycsb = ycsb(&[("workload", "c"), ("records", &records.to_string()), ("distribution", distribution)]);
    let mut client = client();
    chi_square::check(distribution, expected, 50_000, |_| {
        let request = ycsb.draw(&mut client);
        usize::try_from(request.details::<Drawn>().expect("its own").number).expect("small")
    });
}

#[test]
fn keys_follow_the_distribution_asked_for() {
    keys_follow("uniform", 200, &[1.0 / 200.0; 200]);
    // Drawn again where it is the one behind the last.
    let (mut scrambled, rest) = ScrambledZipfian::new(201).probabilities(1_000_000);
    scrambled.iter_mut().for_each(|share| *share += rest / 201.0);
    let behind = scrambled.pop().expect("201 shares");
    scrambled.iter_mut().for_each(|share| *share /= 1.0 - behind);
    keys_follow("zipfian", 200, &scrambled);
    let zipfian = Zipfian::new(200, YCSB_THETA);
    let latest: Vec<f64> = (0..200).map(|number| zipfian.probability(199 - number)).collect();
    keys_follow("latest", 200, &latest);
    let hotspot: Vec<f64> = (0..200).map(|number| if number < 40 { 0.02 } else { 0.2 / 160.0 }).collect();
    keys_follow("hotspot", 200, &hotspot);
    keys_follow("sequential", 200, &[1.0 / 200.0; 200]);
    let gamma = -(0.05_f64).ln() / (200.0 * 0.857_142_857_1);
    let falling: Vec<f64> = (0..200)
        .map(|number| f64::from(199 - number))
        .map(|back| (-gamma * back).exp() - (-gamma * (back + 1.0)).exp())
        .collect();
    let all: f64 = falling.iter().sum();
    let falling: Vec<f64> = falling.iter().map(|share| share / all).collect();
    keys_follow("exponential", 200, &falling);
}

#[test]
fn a_key_is_asked_for_only_when_its_insert_and_all_before_it_have_ended() {
    let ycsb = ycsb(&[("records", "1"), ("distribution", "uniform")]);
    let mut keys = ycsb.keys();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let (first, second, third) = (keys.next_insert(), keys.next_insert(), keys.next_insert());
    assert_eq!((first, second, third), (1, 2, 3));
    let mut seen = |keys: &mut Keys| {
        let drawn: std::collections::BTreeSet<u64> = (0..200).map(|_| keys.draw(&mut rng)).collect();
        drawn.into_iter().collect::<Vec<_>>()
    };
    keys.inserted(second, true);
    assert_eq!(seen(&mut keys), [0]);
    keys.inserted(first, false);
    // The refused one is not asked for, the one after it is.
    assert_eq!(seen(&mut keys), [0, 2]);
    keys.inserted(third, true);
    assert_eq!(seen(&mut keys), [0, 2, 3]);
}

#[test]
fn writes_are_recorded_cell_by_cell_and_carry_their_number() {
    let ycsb = ycsb(&[("workload", "f"), ("records", "50"), ("fields", "3"), ("field_length", "20")]);
    let mut client = client();
    for _ in 0..300 {
        let request = ycsb.draw(&mut client);
        let drawn = request.details::<Drawn>().expect("its own");
        match request.action {
            Action::CellsWrite { cells, value } => {
                assert_eq!(request.kind, READ_MODIFY_WRITE);
                assert_eq!(cells, [drawn.number * 3 + drawn.fields.start as u64]);
                assert_eq!(drawn.values.len(), 1);
                assert_eq!(drawn.values[0].len(), 20);
                assert_eq!(u64::from_str_radix(&drawn.values[0][..16], 16), Ok(value));
            }
            _ => assert_eq!(request.kind, READ),
        }
    }
}

#[test]
fn every_statement_stands_where_it_is_looked_for() {
    let ycsb = ycsb(&[("fields", "3")]);
    let sql = |place: usize| ycsb.statements()[place].sql.as_ref();
    assert_eq!(
        sql(Statements::read(&(0..3), 3)),
        "SELECT ycsb_key, field0, field1, field2 FROM usertable WHERE ycsb_key = $1"
    );
    assert_eq!(
        sql(Statements::read(&(2..3), 3)),
        "SELECT ycsb_key, field2 FROM usertable WHERE ycsb_key = $1"
    );
    assert_eq!(sql(Statements::update(&(1..2), 3)), "UPDATE usertable SET field1 = $2 WHERE ycsb_key = $1");
    assert_eq!(
        sql(Statements::update(&(0..3), 3)),
        "UPDATE usertable SET field0 = $2, field1 = $3, field2 = $4 WHERE ycsb_key = $1"
    );
}

#[test]
fn options_that_cannot_be_are_refused() {
    let check = |options: &[(&str, &str)], expected: &str| {
        let error = Ycsb::configured(&given(options)).err().expect("refused").to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(&[("workload", "g")], "a, b, c, d, e, f");
    check(&[("read", "10%"), ("update", "80%")], "must add up to 100%");
    check(&[("field_length", "15")], "from 16 to");
    check(&[("records", "0")], "from 1 to");
    check(&[("recordcount", "10")], "no option \"recordcount\"");
}
