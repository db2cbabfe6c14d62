//! The shipped scenarios: each parses, says in its first comment what it shows, ends in time, agrees with the schema and
//! survives being written back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use scenario::{Source, parse, to_yaml};

fn shipped() -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .map(|path| (path.clone(), std::fs::read_to_string(path).unwrap()))
        .collect();
    files.sort();
    assert!(files.len() >= 3, "the shipped scenarios are missing");
    files
}

fn read(name: &str, text: &str) -> scenario::Scenario {
    let source = Source { name: name.to_owned(), text: text.to_owned() };
    parse(&source, &[]).unwrap_or_else(|rejection| panic!("{name}: {rejection}: {:?}", rejection.problems()))
}

#[test]
fn every_shipped_scenario_parses_under_its_own_name_and_ends_within_two_minutes_or_says_otherwise() {
    for (path, text) in shipped() {
        let scenario = read(&path.display().to_string(), &text);
        assert_eq!(Some(scenario.name.as_str()), path.file_stem().and_then(|stem| stem.to_str()));
        assert!(text.starts_with("# "), "{} says nothing about itself", path.display());
        let seconds: u64 = scenario.schedule.iter().map(|phase| phase.length.as_secs()).sum();
        let comment: Vec<&str> = text.lines().take_while(|line| line.starts_with('#')).collect();
        let says_so = comment.iter().any(|line| line.contains(" minutes"));
        assert!(seconds <= 70 || says_so, "{} lasts {seconds} s", path.display());
    }
}

#[test]
fn every_shipped_scenario_is_the_same_after_writing_and_reading() {
    for (path, text) in shipped() {
        let mut scenario = read("shipped", &text);
        let written = to_yaml(&scenario, 42);
        scenario.seed = Some(42);
        assert_eq!(read("written", &written), scenario, "{}:\n{written}", path.display());
    }
}

/// The table of round trips, by from and to, in milliseconds.
fn round_trips_ms() -> BTreeMap<(String, String), f64> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/data/region-rtt.csv");
    let text = std::fs::read_to_string(path).unwrap();
    let mut rows = text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(','));
    let regions: Vec<&str> = rows.next().unwrap().skip(1).collect();
    let mut round_trips = BTreeMap::new();
    for mut row in rows {
        let from = row.next().unwrap();
        for (to, written) in regions.iter().zip(row).filter(|(to, _)| **to != from) {
            round_trips.insert((from.to_owned(), (*to).to_owned()), written.parse().unwrap());
        }
    }
    assert_eq!(round_trips.len(), 90, "ten regions, each to nine others");
    round_trips
}

#[test]
fn the_delays_of_the_cloud_scenario_are_those_of_the_table() {
    let round_trips = round_trips_ms();
    let (_, text) = shipped().into_iter().find(|(path, _)| path.ends_with("fr3-cloud-regions.yaml")).unwrap();
    let links = read("fr3-cloud-regions", &text).site.links;
    assert_eq!(links.len(), 6, "three regions, every pair both ways");
    for link in links {
        let (from, to) = (link.from.to_string(), link.to.to_string());
        let (there, back) =
            (round_trips[&(from.clone(), to.clone())], round_trips[&(to.clone(), from.clone())]);
        let delay_ms = link.conditions.delay.unwrap().as_secs_f64() * 1e3;
        assert_eq!(delay_ms, (there + back) / 4.0, "{from} to {to}");
    }
}
