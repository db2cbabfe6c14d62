//! The help that stands in `docs/reference/command-line.md` is what the program says.

use std::process::Command;

const PAGE: &str = include_str!("../../../../docs/reference/command-line.md");

fn help(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_holdfast")).args(arguments).output().expect("holdfast");
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

#[test]
fn the_page_of_commands_holds_the_programs_own_help() {
    let top = help(&["--help"]);
    let list = top.split_once("Commands:\n").expect("commands").1.lines().take_while(|line| !line.is_empty());
    let names = list.filter_map(|line| line.strip_prefix("  ")?.split_once(' ')).map(|(name, _)| name);
    for name in names.filter(|name| !name.is_empty() && *name != "help") {
        let wanted = format!("## `holdfast {name}`\n\n```text\n{}\n```\n", help(&[name, "--help"]));
        assert!(PAGE.contains(&wanted), "the help of `{name}` is stale: run `cargo xtask reference`");
    }
    assert!(
        PAGE.contains(&format!("```text\n{top}\n```\n")),
        "the help is stale: run `cargo xtask reference`"
    );
}
