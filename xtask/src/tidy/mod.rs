//! Order in the repository, as a test: each rule is a function from text to violations, and each message says what to
//! do instead.
//!
//! Owns no opinion on behaviour, which the tests hold, nor on layout, which rustfmt holds. One file per kind of rule;
//! each shows its own detectors a planted violation.

mod comments;
mod cycles;
mod engine_names;
pub mod imports;
pub mod licences;
mod links;
mod names;
mod output;
mod paths;
mod repository;
mod shape;
mod source;
mod words;

use std::fmt;
use std::path::Path;

pub use repository::{TextFile, text_files};
use source::Source;

/// One place that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The file, relative to the repository.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong and what to do instead.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// Everything in the repository at `root` that is not as it should be, in order of place.
///
/// # Errors
/// When the repository cannot be read, or cargo does not describe it.
pub fn check_repository(root: &Path) -> anyhow::Result<Vec<Violation>> {
    let files = repository::text_files(root)?;
    let crates = imports::crates_of(root)?;
    let mut found = imports::check(&crates);
    let (packages, allowed) = licences::read(root)?;
    found.extend(licences::check(packages.all.values(), &allowed));
    found.extend(check_files(&files));
    found.sort();
    Ok(found)
}

/// Everything in these files that is not as it should be.
#[must_use]
pub fn check_files(files: &[TextFile]) -> Vec<Violation> {
    let mut found = links::check(files);
    found.extend(shape::check_test_programs(files));
    let engines = engine_names::known(files);
    let (mut printing, mut naming, mut sources) = (Vec::new(), Vec::new(), Vec::new());
    for file in files {
        found.extend(names::check_path(&file.path));
        found.extend(words::check(file));
        if !file.path.ends_with(".rs") {
            continue;
        }
        found.extend(shape::check_text(file));
        found.extend(shape::check_comments(file));
        match Source::parse(file) {
            Ok(source) => {
                found.extend(shape::check_functions(&source));
                found.extend(names::check_items(&source));
                found.extend(comments::check(&source));
                found.extend(words::check_source(&source));
                found.extend(paths::check(&source));
                printing.extend(output::uses(&source));
                naming.extend(engine_names::uses(&source, &file.text, &engines));
                sources.push(source);
            }
            Err(violation) => found.push(violation),
        }
    }
    found.extend(output::check(&printing, output::EXCEPTIONS));
    found.extend(engine_names::check(&naming, engine_names::EXCEPTIONS));
    found.extend(cycles::check(&sources));
    found
}
