//! The words in which terminal and page tell how a run stands to the atlas. Owns sentences and nothing else.

use ::atlas::{Likeness, Whom};
use measure::{Better, Finding};

use super::figures::{Figure, Rank, Seen, Stands};
use super::obstacles::Obstacle;
use super::{Against, MachineFact, Nothing, REPETITIONS_MIN};
use crate::compare::Quantity;
use crate::compare::distributions::Figure as Kind;
use crate::format;

/// Titles of cells that are named at most.
const TITLES: usize = 13;

/// Why there is nothing beside it.
pub(super) fn nothing(why: &Nothing, atlas: &str) -> String {
    match why {
        Nothing::NoRun => "No run of it counts.".to_owned(),
        Nothing::NoScenario { why } => format!("The scenario cannot be read: {why}."),
        Nothing::NoFault => format!("It has no fault, and {atlas} is about faults."),
        Nothing::WhomUnknown => format!(
            "The target's role is unknown or differs between runs, so the matching cell of {atlas} is unknown. \
             Aim at a role: leader, a-follower."
        ),
        Nothing::NoEngine { engine, known } if known.is_empty() => {
            format!(
                "There is nothing to compare it with: {atlas} has no figures of {engine}, nor of any other engine."
            )
        }
        Nothing::NoEngine { engine, known } => {
            format!("{} has no figures of {engine}; it has {}.", capital(atlas), known.join(", "))
        }
        Nothing::NoSuchFault { engine, likeness, known, unreadable } => {
            let mut text =
                format!("{} has no cell for {} on {engine}.", capital(atlas), likeness_in_words(likeness));
            if !known.is_empty() {
                let shown: Vec<&str> = known.iter().take(TITLES).map(String::as_str).collect();
                text.push_str(&format!(" It has: {}.", shown.join("; ")));
            }
            if *unreadable > 0 {
                let cells = format::counted(*unreadable as u64, "cell", "cells");
                text.push_str(&format!(" {cells} could not be read by this version."));
            }
            text
        }
    }
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

fn likeness_in_words(likeness: &Likeness) -> String {
    let form = if likeness.form.is_empty() { String::new() } else { format!(" ({})", likeness.form) };
    let whom = match likeness.whom {
        Whom::Leader => "of the leader".to_owned(),
        Whom::Follower => "of a follower".to_owned(),
        Whom::AnyNode => "of one node".to_owned(),
        Whom::Some { nodes, with_leader: true } => format!("of {nodes} nodes, the leader among them"),
        Whom::Some { nodes, with_leader: false } => format!("of {nodes} nodes"),
        Whom::All => "of all nodes".to_owned(),
        Whom::Between { from, to } => format!("between {from} and {to} nodes"),
    };
    format!("{}{form} {whom}", likeness.kind)
}

/// What the atlas has: engine, version, how many runs.
pub(super) fn cell(against: &Against) -> String {
    let Against { engine, title, versions, repetitions, undecided, of_other_versions, .. } = against;
    let told: Vec<&str> = versions.iter().map(String::as_str).filter(|version| !version.is_empty()).collect();
    let versions = if told.is_empty() { "version not recorded".to_owned() } else { told.join(", ") };
    let runs = format::counted(*repetitions as u64, "run", "runs");
    let mut text = format!("{title}; {engine} {versions}, {runs}");
    for (runs, why) in [(undecided, "whose verdict is unknown"), (of_other_versions, "of other versions")] {
        if *runs > 0 {
            text.push_str(&format!("; {runs} more {why} left out"));
        }
    }
    text
}

/// What must be known before the figures are read, one sentence each: first whether they are comparable.
pub(super) fn caveats(against: &Against) -> Vec<String> {
    let mut caveats = Vec::new();
    if !against.obstacles.of_all.is_empty() {
        caveats.push(format!("Not comparable: {}.", obstacles(&against.obstacles.of_all)));
    }
    if !against.has_enough() {
        caveats.push(format!(
            "Too few repetitions to judge by: the cell has {}, and a judgement needs {REPETITIONS_MIN}.",
            format::counted(against.repetitions as u64, "run", "runs")
        ));
    }
    if !against.obstacles.of_loads.is_empty() {
        caveats.push(format!(
            "The loads differ, so throughput and latency are left out, and recovery may differ for that reason: {}.",
            obstacles(&against.obstacles.of_loads)
        ));
    }
    let has_loads = against.figures.iter().any(Figure::is_of_the_machine);
    if has_loads && !against.is_same_machine() {
        caveats.push(
            "The machines differ: throughput and latency are the machine's as much as the database's."
                .to_owned(),
        );
    }
    let (here, of) = (against.doubted, against.ours);
    if has_loads && (here > 0 || against.doubted_there != Some(0)) {
        let there = match against.doubted_there {
            Some(there) => format!("{there} of the atlas' {}", against.repetitions),
            None => "not recorded in the atlas".to_owned(),
        };
        caveats.push(format!(
            "Runs with measurement warnings, such as a busy machine: {here} of your {of}, {there}."
        ));
    }
    caveats
}

/// At most so many are written out.
const OBSTACLES: usize = 6;

fn obstacles(obstacles: &[Obstacle]) -> String {
    let mut told: Vec<String> = obstacles.iter().take(OBSTACLES).map(obstacle).collect();
    if obstacles.len() > OBSTACLES {
        told.push(format!("{} more", obstacles.len() - OBSTACLES));
    }
    told.join("; ")
}

pub(super) fn obstacle(obstacle: &Obstacle) -> String {
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "absent".to_owned());
    match obstacle {
        Obstacle::Version { ours, theirs } => {
            let theirs: Vec<&str> =
                theirs.iter().map(|version| if version.is_empty() { "not kept" } else { version }).collect();
            format!("the database's version is {} (atlas: {})", ours.join(", "), theirs.join(", "))
        }
        Obstacle::Nodes { ours, theirs } => format!("it has {} (atlas: {theirs})", nodes(*ours)),
        Obstacle::Setting { path, ours, theirs } => {
            format!("`{path}` is {} (atlas: {})", value(ours), value(theirs))
        }
        Obstacle::External => "it ran on a cluster that exists (atlas: in the lab)".to_owned(),
        Obstacle::OtherFault => {
            "another fault was active at the same time (the atlas has single faults)".to_owned()
        }
        Obstacle::Undecided { runs, of, why } => {
            format!(
                "the verdict is unknown in {runs} of {}, because {why}",
                format::counted(*of as u64, "run", "runs")
            )
        }
    }
}

fn nodes(nodes: usize) -> String {
    format::counted(nodes as u64, "node", "nodes")
}

/// What a figure is called.
pub(super) fn name(figure: &Figure) -> String {
    match &figure.load {
        Some(load) => format!("{load}: {}, baseline", figure.kind.name()),
        None => figure.kind.name().to_owned(),
    }
}

fn is_gap(kind: Kind) -> bool {
    kind == Kind::Measured(Quantity::Gap)
}

/// Ours, as a value.
pub(super) fn ours(figure: &Figure) -> String {
    match figure.told() {
        Seen::Value(value) if value == 0.0 && is_gap(figure.kind) => "none".to_owned(),
        Seen::Value(value) => figure.kind.valued(value),
        Seen::MoreThan(value) if figure.kind == Kind::LostWrites => {
            format!("at least {}", figure.kind.valued(value))
        }
        Seen::MoreThan(value) => format!("> {}", figure.kind.valued(value)),
        Seen::Never => "never".to_owned(),
        Seen::Unknown => "unknown".to_owned(),
    }
}

/// Theirs: the median, and the ends where they differ; of how many where not all have it.
pub(super) fn theirs(figure: &Figure) -> String {
    let mut values = figure.their_values();
    values.sort_by(f64::total_cmp);
    let valued = |value: f64| match value == 0.0 && is_gap(figure.kind) {
        true => "none".to_owned(),
        false => figure.kind.valued(value),
    };
    let median = measure::Distribution::of(&values, figure.kind.better()).map(|told| told.median);
    let (Some(median), Some(least), Some(most)) = (median, values.first(), values.last()) else {
        return format::NOTHING.to_owned();
    };
    let mut text = valued(median);
    if least < most {
        text.push_str(&format!(" ({} to {})", valued(*least), valued(*most)));
    }
    if values.len() < figure.theirs.len() {
        text.push_str(&format!(", in {} of {}", values.len(), figure.theirs.len()));
    }
    text
}

/// The words for a worse value and for a better one.
fn worse_and_better(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::LostWrites | Kind::Errors => ("more", "fewer"),
        Kind::Measured(quantity) if quantity.unit() == "s" => ("longer", "shorter"),
        Kind::Measured(quantity) if quantity.better() == Better::Larger => ("lower", "higher"),
        Kind::Measured(_) => ("higher", "lower"),
    }
}

/// How ours stand.
pub(super) fn stands(figure: &Figure) -> String {
    let (worse, better) = worse_and_better(figure.kind);
    match figure.stands {
        Stands::NotComparable => "not comparable".to_owned(),
        Stands::TooFew => "too few runs".to_owned(),
        Stands::Unsaid => "unknown".to_owned(),
        Stands::Ranked(Rank { better_than, worse_than, of }) => match (better_than, worse_than) {
            (0, 0) if matches!(figure.told(), Seen::MoreThan(_)) => "unknown".to_owned(),
            (0, 0) => format!("as in all {of}"),
            (_, all) if all == of => format!("{worse} than in all {of}"),
            (all, _) if all == of => format!("{better} than in all {of}"),
            (0, some) => format!("{worse} than in {some} of {of}"),
            (some, 0) => format!("{better} than in {some} of {of}"),
            (_, some) => format!("{worse} than in {some} of {of}"),
        },
        Stands::Means(means) => {
            let percent =
                |ratio: f64| format::change_percent(ratio, 1.0).unwrap_or_else(|| format::NOTHING.to_owned());
            let interval = format!("[{}, {}]", percent(means.low), percent(means.high));
            match means.finding {
                Finding::Noise => format!("noise {interval}"),
                Finding::Larger | Finding::Smaller => format!("{} {interval}", percent(means.ratio)),
                Finding::Unknown => "not judged".to_owned(),
            }
        }
    }
}

/// Whether ours is worse than every run of the atlas, or worse on the mean by more than noise.
pub(super) fn is_worse(figure: &Figure) -> bool {
    stands_apart(figure) == Some(true)
}

/// Worse than all, or better than all; none where it is neither.
fn stands_apart(figure: &Figure) -> Option<bool> {
    match figure.stands {
        Stands::Ranked(rank) if rank.worse_than == rank.of => Some(true),
        Stands::Ranked(rank) if rank.better_than == rank.of => Some(false),
        Stands::Means(means) => match (means.finding, figure.kind.better()) {
            (Finding::Larger, Better::Smaller) | (Finding::Smaller, Better::Larger) => Some(true),
            (Finding::Smaller, Better::Smaller) | (Finding::Larger, Better::Larger) => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// Is mine good? In a sentence; none where nothing is said of any figure.
pub(super) fn answer(against: &Against) -> Option<String> {
    let said: Vec<&Figure> = against
        .figures
        .iter()
        .filter(|figure| matches!(figure.stands, Stands::Ranked(_) | Stands::Means(_)))
        .collect();
    if said.is_empty() {
        return None;
    }
    let named = |apart: bool| -> Vec<String> {
        said.iter().filter(|figure| stands_apart(figure) == Some(apart)).map(|figure| name(figure)).collect()
    };
    let (worse, better) = (named(true), named(false));
    let mut sentences = Vec::new();
    for (names, word) in [(&worse, "Worse"), (&better, "Better")] {
        if !names.is_empty() {
            sentences.push(format!("{word} than the atlas: {}.", names.join("; ")));
        }
    }
    let rest = said.len() - worse.len() - better.len();
    if rest == said.len() {
        sentences
            .push("Every figure lies within the atlas' range, or differs by no more than noise.".to_owned());
    } else if rest > 0 {
        sentences.push("The rest lies within its range, or no more than noise away.".to_owned());
    }
    Some(sentences.join(" "))
}

/// How often chance alone puts a run beyond all of the atlas'; none where it is not a single one.
pub(super) fn chance(against: &Against) -> Option<String> {
    let is_ranked = |figure: &Figure| matches!(figure.stands, Stands::Ranked(_));
    (against.ours == 1 && against.figures.iter().any(is_ranked)).then(|| {
        format!(
            "By chance alone, 1 in {1} runs like the atlas' {0} is worse than all of them, 1 in {1} better.",
            against.repetitions,
            against.repetitions + 1
        )
    })
}

/// A fact of the machines: its name, ours, the atlas'.
pub(super) fn machine(fact: &MachineFact) -> (&'static str, String, String) {
    let name = match fact.name {
        "cpu" => "processor",
        "cores" => "processors",
        "memory_bytes" => "memory",
        "volumes" => "volumes and syncs",
        other => other,
    };
    let value = |value: &String| match (fact.name, value.parse::<u64>()) {
        ("memory_bytes", Ok(bytes)) => format::bytes(bytes),
        _ => value.clone(),
    };
    let told = |values: &[String]| match values.is_empty() {
        true => "not kept".to_owned(),
        false => values.iter().map(value).collect::<Vec<_>>().join("; "),
    };
    (name, told(&fact.ours), if fact.is_same() { "the same".to_owned() } else { told(&fact.theirs) })
}
