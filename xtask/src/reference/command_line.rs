//! The page of commands: the program's own help, word for word, and the exit codes that stand in it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use super::markdown;

/// What stands before the list of exit codes in the program's help.
const EXIT_CODES: &str = "Exit codes:";
/// Where the list of commands begins in the program's help.
const COMMANDS: &str = "Commands:\n";

/// Builds the program for its help alone, as quickly as can be.
///
/// # Errors
/// When it does not build.
pub fn build(root: &Path) -> anyhow::Result<PathBuf> {
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", "holdfast"])
        .current_dir(root)
        .status()
        .context("cargo build")?;
    ensure!(status.success(), "holdfast does not build");
    Ok(crate::target_directory().join("debug/holdfast"))
}

/// What the program says of itself (under the empty name) and of each of its commands.
///
/// # Errors
/// When the program cannot be run.
pub fn helps(holdfast: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let help = |arguments: &[&str]| -> anyhow::Result<String> {
        let output = Command::new(holdfast).args(arguments).output().context("holdfast --help")?;
        ensure!(output.status.success(), "holdfast {}: {}", arguments.join(" "), output.status);
        let text = String::from_utf8(output.stdout).context("help that is text")?;
        Ok(text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n"))
    };
    let top = help(&["--help"])?;
    let names = commands(&top);
    let mut helps = vec![(String::new(), top)];
    for name in names {
        let text = help(&[&name, "--help"])?;
        helps.push((name, text));
    }
    Ok(helps)
}

/// The commands that the program's help lists.
fn commands(top: &str) -> Vec<String> {
    let list = top.split_once(COMMANDS).map_or("", |(_, list)| list);
    let lines = list.lines().take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split_once(' ')).map(|(name, _)| name);
    names.filter(|name| !name.is_empty() && *name != "help").map(str::to_owned).collect()
}

pub(super) fn page(helps: &[(String, String)]) -> String {
    let mut body = String::new();
    let top = helps.iter().find(|(name, _)| name.is_empty()).map_or("", |(_, text)| text);
    let rows = exit_codes(top).into_iter().map(|(code, meaning)| vec![code, markdown::sentence(&meaning)]);
    body.push_str("## Exit codes\n\n");
    body.push_str(&markdown::table(&["code", "meaning"], rows.collect()));
    for (name, text) in helps {
        body.push_str(&format!("## `{}`\n\n", format!("holdfast {name}").trim_end()));
        body.push_str(&markdown::block("text", text));
    }
    markdown::page(
        "Command line",
        "`holdfast COMMAND --help` prints the same text. The commands are stable: more may be added, and existing ones keep their names.",
        &body,
    )
}

/// The help texts that stand on a page.
#[must_use]
pub fn helps_on(page: &str) -> Vec<(String, String)> {
    let sections = page.split("## `holdfast").skip(1);
    let help = |section: &str| {
        let (name, rest) = section.split_once('`')?;
        let text = rest.split_once("```text\n")?.1.split_once("\n```")?.0;
        Some((name.trim().to_owned(), text.to_owned()))
    };
    sections.filter_map(help).collect()
}

/// The exit codes in the program's help: each number and what follows it.
fn exit_codes(top: &str) -> Vec<(String, String)> {
    let Some((_, rest)) = top.split_once(EXIT_CODES) else { return Vec::new() };
    let paragraph = rest.split_once("\n\n").map_or(rest, |(paragraph, _)| paragraph);
    let words = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    let parts = words.trim_end_matches('.').split(", ");
    let pairs = parts.filter_map(|part| part.split_once(' '));
    pairs.map(|(code, meaning)| (code.to_owned(), meaning.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOP: &str = "About.\n\nExit codes: 0 pass, 254 the arguments are\nwrong.\n\nUsage: x\n\nCommands:\n  run   The\n        job\n  help  Print\n\nOptions:\n";

    #[test]
    fn commands_and_exit_codes_are_read_from_the_help() {
        assert_eq!(commands(TOP), ["run"]);
        let codes = exit_codes(TOP);
        assert_eq!(codes[1], ("254".to_owned(), "the arguments are wrong".to_owned()));
    }

    #[test]
    fn the_helps_on_a_page_are_those_it_was_made_from() {
        let helps =
            vec![(String::new(), TOP.trim_end().to_owned()), ("run".to_owned(), "The job".to_owned())];
        assert_eq!(helps_on(&page(&helps)), helps);
    }
}
