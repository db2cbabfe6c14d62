//! Runs beside the atlas, for the terminal.

use std::fmt::Write;

use history::FaultId;

use super::{Against, words};
use crate::compare::text::{name as subject_name, titled};
use crate::compare::{Comparison, Subject};
use crate::markup::{cut, plain};

/// Columns of a figure's name, of ours and of the atlas'.
const NAME: usize = 31;
const OURS: usize = 10;
const THEIRS: usize = 27;
/// Columns of a line.
const LINE: usize = 100;

/// Appends what there is; nothing without an atlas.
pub(in crate::compare) fn text(out: &mut String, comparison: &Comparison) {
    let Some(beside) = &comparison.beside_atlas else { return };
    let _ = writeln!(out, "\n{}", plain(&cut(&format!("beside {}", beside.name), LINE)));
    for standing in &beside.standings {
        let heading = heading(comparison, standing.variant, standing.fault.as_ref());
        let _ = writeln!(out, "  {}", plain(&cut(&heading, LINE - 2)));
        match &standing.beside {
            Err(why) => wrapped(out, "    ", &words::nothing(why, &beside.name)),
            Ok(against) => cell(out, against),
        }
    }
}

/// What is held against the atlas.
pub(super) fn heading(comparison: &Comparison, variant: usize, fault: Option<&(FaultId, String)>) -> String {
    let of = |(number, name): &(FaultId, String)| {
        subject_name(&Subject::Fault { number: *number, name: name.clone() })
    };
    let fault = fault.map(of);
    let variant = (comparison.variants.len() > 1)
        .then(|| comparison.variants.get(variant))
        .flatten()
        .map(|variant| titled(&variant.name, &variant.label));
    match (variant, fault) {
        (Some(variant), Some(fault)) => format!("{variant}: {fault}"),
        (Some(only), None) | (None, Some(only)) => only,
        (None, None) => comparison.title.clone(),
    }
}

fn cell(out: &mut String, against: &Against) {
    wrapped(out, "    ", &format!("atlas: {}", words::cell(against)));
    for caveat in words::caveats(against) {
        wrapped(out, "    ", &caveat);
    }
    let _ = writeln!(out, "    {:<NAME$}{:>OURS$}  atlas: median (range)", "", "yours");
    for figure in &against.figures {
        let name = words::name(figure);
        let line = format!(
            "    {:<NAME$}{:>OURS$}  {:<THEIRS$}  {}",
            plain(&cut(&name, NAME)),
            words::ours(figure),
            words::theirs(figure),
            words::stands(figure)
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
    for fact in &against.machines {
        let (name, ours, theirs) = words::machine(fact);
        let theirs = if fact.is_same() { theirs } else { format!("atlas: {theirs}") };
        wrapped(out, "    ", &format!("{name}: {ours} ({theirs})"));
    }
    for said in words::answer(against).into_iter().chain(words::chance(against)) {
        wrapped(out, "    ", &said);
    }
}

/// Text in lines that are not too long, as far as its words allow.
fn wrapped(out: &mut String, indent: &str, text: &str) {
    let mut line = String::new();
    for word in plain(text).split(' ') {
        if !line.is_empty() && indent.len() + line.chars().count() + 1 + word.chars().count() > LINE {
            let _ = writeln!(out, "{indent}{line}");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    let _ = writeln!(out, "{indent}{line}");
}
