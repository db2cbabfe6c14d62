//! `cargo xtask reference`: the pages of `docs/reference/`, written from the registries and from the program's own help.
//!
//! Owns which pages there are and how they are laid out, not what they say: names and meanings come from the registries of
//! `scenario`, `capabilities`, `remote`, `engine`, `workload`, `faults` and `check`, from the help of `holdfast`, and from the fields of `report`'s
//! result. A test compares the pages with the committed ones.

pub mod command_line;
mod fields;
mod language;
mod markdown;
mod registries;
mod run_directory;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context;

/// Where the pages lie, below the repository.
pub const FOLDER: &str = "docs/reference";

/// Every page by its file name, made anew. `helps` is what `holdfast` says of each command: the command (empty for the
/// program itself) and the help.
///
/// # Errors
/// When the source files that describe `result.json` cannot be read.
pub fn pages(root: &Path, helps: &[(String, String)]) -> anyhow::Result<BTreeMap<&'static str, String>> {
    let contents: Vec<(&str, &str, String)> = vec![
        ("command-line.md", "commands, options and exit codes", command_line::page(helps)),
        ("scenario.md", "every key of a scenario", language::scenario()),
        ("engines.md", "databases, and the workloads of each", registries::engines()),
        ("engine-file.md", "every key of an engine file", language::engine_file()),
        (
            "command-file.md",
            "every key of a command file: faults of machines that exist",
            language::command_file(),
        ),
        ("workloads.md", "workloads and their options", registries::workloads()),
        ("faults.md", "faults, their options and targets", language::faults()),
        ("checks.md", "what each check proves and does not prove", registries::checks()),
        ("expectations.md", "quantities that `expect` can bound", language::expectations()),
        ("run-directory.md", "files of a run", run_directory::page()),
        ("result.md", "keys of `result.json`", fields::page(root)?),
    ];
    let rows = contents.iter().map(|(file, about, _)| vec![format!("[{file}]({file})"), (*about).to_owned()]);
    let index = markdown::page(
        "Reference",
        "The pages state what the program accepts and writes. The same text is printed by `holdfast list`, \
         `holdfast explain WORD` and `holdfast COMMAND --help`. The JSON Schema for editors is printed by `holdfast schema`.",
        &markdown::table(&["page", "content"], rows.collect()),
    );
    let mut pages: BTreeMap<&str, String> =
        contents.into_iter().map(|(file, _, text)| (file, text)).collect();
    pages.insert("README.md", index);
    Ok(pages)
}

/// Builds the program and writes every page.
///
/// # Errors
/// When the program does not build, or a page cannot be written.
pub fn write(root: &Path) -> anyhow::Result<()> {
    let helps = command_line::helps(&command_line::build(root)?)?;
    let folder = root.join(FOLDER);
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    for (file, text) in pages(root, &helps)? {
        let path = folder.join(file);
        fs::write(&path, text).with_context(|| path.display().to_string())?;
        println!("{}", path.display());
    }
    Ok(())
}
