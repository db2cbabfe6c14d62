//! `holdfast faults`, and how `list` and `explain` show command files: faults of machines that exist.

use std::path::Path;

use history::whole_file::{self, Link};
use remote::command_file::{Command, Look};
use remote::parameter::Parameter;
use remote::{CommandFile, Filled};

use crate::commands::reject;
use crate::exit::Exit;
use crate::printed;

/// A command file among other faults.
pub(super) fn in_a_line(file: &CommandFile) -> (String, String) {
    let tool = &file.written_for.tool;
    (file.name.clone(), format!("{} (external, by {tool}; {})", file.summary, file.tested))
}

/// Checks a command file, and says what was understood.
pub fn check(path: &Path) -> Result<Exit, Exit> {
    let text = whole_file::read_text(path, Link::Followed, scenario::MOST_BYTES as u64)
        .map_err(|error| Exit::wrong(anyhow::anyhow!("command file {}: {error}", path.display())))?;
    let file = remote::read(&path.display().to_string(), &text).map_err(reject)?;
    printed!("{}: {} is valid", path.display(), file.name);
    show(&file);
    Ok(Exit::Done)
}

/// What a command file does, with the commands as its examples fill them.
pub(super) fn show(file: &CommandFile) {
    let wanted = &file.written_for;
    printed!("{}: a fault of machines that exist, by commands", file.name);
    printed!("  {}", file.summary);
    printed!("  written for {} {}; {}", wanted.tool, wanted.version, file.tested);
    let lasts = if file.lasts { "lasts until it is undone" } else { "instantaneous; undo cleans up" };
    printed!("  {lasts}");
    for Parameter { name, kind, meaning, default, .. } in &file.parameters {
        let default = match default.as_deref() {
            None => "needed".to_owned(),
            Some("") => "default nothing".to_owned(),
            Some(value) => format!("default {value}"),
        };
        printed!("  {{{name}}}  {meaning}; {default}; {}", kind.form());
    }
    // A file that was read has examples that fit.
    if let Ok(filled) = file.with_examples() {
        show_commands(&filled);
    }
}

/// Every command of a fault, as it would be run.
pub(super) fn show_commands(filled: &Filled) {
    for (what, commands) in [("do", &filled.strike), ("undo", &filled.undo)] {
        printed!("  {what}:");
        commands.iter().for_each(|command| printed!("    {}", with_limit(command)));
    }
    for (what, looks) in [("stands, if", &filled.stands), ("gone, if", &filled.gone)] {
        printed!("  {what}:");
        looks.iter().for_each(|look| printed!("    {}", with_wishes(look)));
    }
}

fn with_limit(command: &Command) -> String {
    format!("{command}   (at most {} s)", command.within.as_secs())
}

fn with_wishes(look: &Look) -> String {
    let has = look.has.iter().map(|text| format!("has `{text}`"));
    let lacks = look.lacks.iter().map(|text| format!("lacks `{text}`"));
    let changed = look.changed.then(|| "differs from before".to_owned());
    let wishes: Vec<String> = has.chain(lacks).chain(changed).collect();
    let output =
        if wishes.is_empty() { String::new() } else { format!(" and its output {}", wishes.join(" and ")) };
    format!("{}   ends with {}{output}", look.command, look.exit)
}
