//! `holdfast compare`: runs beside each other, from their directories alone.

mod expression;

use std::path::{Path, PathBuf};

use anyhow::Context;
use atlas::Atlas;
use history::Verdict;
use history::whole_file::{self, Link};
use report::compare::{CompareError, Comparison, Reference, WHERE};

use crate::exit::Exit;
use crate::printed;
use expression::Expression;

/// What `--with` is given for the atlas that ships.
const SHIPPED: &str = "atlas";
/// The longest file of an atlas that is read.
const LONGEST_ATLAS_BYTES: u64 = 256 << 20;

/// Compares and shows the table. Ends with 0 whatever the runs' verdicts, as it is about differences; with expressions,
/// with their verdict.
pub fn compare(
    run_directories: &[PathBuf],
    out: Option<&Path>,
    with: Option<&Path>,
    fail_if: &[String],
) -> Result<Exit, Exit> {
    let expressions: Vec<Expression> =
        fail_if.iter().map(|text| Expression::read(text)).collect::<Result<_, _>>().map_err(Exit::wrong)?;
    let given = report::compare::expand(run_directories).map_err(Exit::wrong)?;
    let path = out.unwrap_or(Path::new(WHERE));
    let with = with.map(named_atlas).transpose()?;
    let reference = with.as_ref().map(|(name, atlas)| Reference { name, atlas });
    let comparison = report::compare::write(&given, reference, path).map_err(|error| match error {
        CompareError::Write(_) => Exit::failed(error),
        error => Exit::wrong(error),
    })?;
    printed!("{}", report::compare::text(&comparison).trim_end());
    let verdict = judged(&comparison, &expressions)?;
    printed!("{}", std::path::absolute(path).map_err(Exit::failed)?.display());
    Ok(verdict.map_or(Exit::Done, Exit::Verdict))
}

/// The atlas that is asked for, and what it is called.
fn named_atlas(with: &Path) -> Result<(String, Atlas), Exit> {
    if with == Path::new(SHIPPED) {
        let atlas = Atlas::shipped().map_err(Exit::failed)?;
        return Ok((format!("the atlas of Holdfast {}", env!("CARGO_PKG_VERSION")), atlas));
    }
    let named = || format!("--with {}", with.display());
    let text = whole_file::read_text(with, Link::Followed, LONGEST_ATLAS_BYTES)
        .with_context(named)
        .map_err(Exit::wrong)?;
    let atlas = Atlas::read(&text).with_context(named).map_err(Exit::wrong)?;
    Ok((format!("the atlas in {}", with.display()), atlas))
}

/// The expressions' verdict, each figure with its line; none without expressions.
fn judged(comparison: &Comparison, expressions: &[Expression]) -> Result<Option<Verdict>, Exit> {
    let mut whole = None;
    for expression in expressions {
        let judged = report::compare::judge(comparison, &expression.gate)
            .map_err(|error| Exit::wrong(expression.misfit(&error)))?;
        printed!("fail if {}", expression.text());
        for figure in judged {
            printed!("  {:<7} {}", figure.verdict.to_string(), figure.explanation);
            whole = Some(whole.unwrap_or(Verdict::Pass).and(figure.verdict));
        }
    }
    Ok(whole)
}
