//! Man pages and completions, as the hidden door writes them for a release.

use std::fs;
use std::path::Path;
use std::process::Command;

fn written_to(folder: &Path) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
    let status = command.arg("write-manual").arg(folder).status().expect("holdfast");
    assert!(status.success(), "{status}");
}

#[test]
fn every_command_has_a_man_page_and_no_hidden_option_stands_on_one() {
    let folder = tempfile::tempdir().expect("a folder");
    written_to(folder.path());
    let page = |name: &str| {
        let path = folder.path().join("man/man1").join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let top = page("holdfast.1");
    assert!(top.contains("Exit codes: 0 pass"), "{top}");
    let help = Command::new(env!("CARGO_BIN_EXE_holdfast")).arg("--help").output().expect("holdfast");
    let help = String::from_utf8(help.stdout).expect("text");
    let list =
        help.split_once("Commands:\n").expect("commands").1.lines().take_while(|line| !line.is_empty());
    let names = list.filter_map(|line| line.strip_prefix("  ")?.split_once(' ')).map(|(name, _)| name);
    let names: Vec<&str> = names.filter(|name| !name.is_empty() && *name != "help").collect();
    assert!(names.contains(&"run"), "{names:?}");
    for name in names {
        let text = page(&format!("holdfast-{name}.1"));
        assert!(!text.contains("plant"), "{name}: {text}");
    }
}

#[test]
fn bash_completes_a_command_and_its_options() {
    let folder = tempfile::tempdir().expect("a folder");
    written_to(folder.path());
    for file in ["holdfast.bash", "_holdfast", "holdfast.fish"] {
        assert!(folder.path().join("completions").join(file).is_file(), "{file}");
    }
    let completed = |words: &str, number: usize, word: &str, before: &str| {
        let script = format!(
            "source completions/holdfast.bash && COMP_WORDS=({words}) && COMP_CWORD={number} && \
             _holdfast holdfast '{word}' '{before}'; echo \"${{COMPREPLY[*]}}\""
        );
        let mut command = Command::new("bash");
        let output = command.args(["-c", &script]).current_dir(folder.path()).output().expect("bash");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    assert_eq!(completed("holdfast ver", 1, "ver", "holdfast"), "verify");
    assert_eq!(completed("holdfast run --see", 2, "--see", "run"), "--seed");
}
