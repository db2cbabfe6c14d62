//! Wrong scenarios and wrong arguments: exit code 254, and a message that says what to do.

use crate::holdfast::{Desk, Finished};

/// Refused: 254, nothing on standard output but what came before, and these words among the complaints.
#[track_caller]
fn refused(finished: &Finished, words: &[&str]) {
    finished.ends_with(254);
    for word in words {
        assert!(finished.stderr.contains(word), "`{word}` is not in\n{}", finished.stderr);
    }
}

/// A message without white space and the frame around it, which follow the width of the terminal.
fn unfolded(message: &str) -> String {
    message.chars().filter(|letter| !letter.is_whitespace() && *letter != '│').collect()
}

#[test]
fn every_rejected_scenario_is_refused_with_the_message_beside_it() {
    let desk = Desk::new();
    let folder = desk.path().join("scenarios/rejected");
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .expect("rejected scenarios")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert!(names.len() >= 15, "{names:?}");
    for (number, name) in names.iter().enumerate() {
        let path = format!("scenarios/rejected/{name}.yaml");
        let message = std::fs::read_to_string(folder.join(format!("{name}.txt"))).expect("its message");
        // Both read a scenario by the same function: a tenth of them shows that `run` does.
        let commands: &[&str] = if number % 10 == 0 { &["check", "run"] } else { &["check"] };
        for &command in commands {
            let finished = desk.run(&[command, &path]);
            finished.ends_with(254);
            assert_eq!(unfolded(&finished.stderr), unfolded(&message), "{command} {name}");
            assert_eq!(finished.stdout, "", "{command} {name}");
        }
    }
    assert!(!desk.path().join("runs").exists(), "a refused scenario leaves no run directory");
}

#[test]
fn what_is_no_scenario_file_is_refused() {
    let desk = Desk::new();
    refused(&desk.run(&["run", "missing.yaml"]), &["missing.yaml", "No such file"]);
    refused(&desk.run(&["run", "scenarios"]), &["scenarios", "directory, not a regular file"]);
    std::fs::write(desk.path().join("latin.yaml"), b"name: caf\xe9\n").expect("a file");
    refused(&desk.run(&["run", "latin.yaml"]), &["latin.yaml", "byte 9", "UTF-8"]);
    std::fs::write(desk.path().join("empty.yaml"), b"").expect("a file");
    refused(&desk.run(&["check", "empty.yaml"]), &["empty.yaml"]);
}

/// Files that are no scenario and scripts that are no scripts are refused before they are read, and whatever leads out of the
/// scenario's folder unless its user typed it.
#[test]
fn devices_pipes_and_files_of_other_folders_are_refused_with_a_caret() {
    let desk = Desk::new();
    refused(&desk.run(&["check", "/dev/zero"]), &["it is a device, not a regular file"]);
    let fifo = desk.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    refused(&desk.run(&["check", "fifo"]), &["it is a FIFO, not a regular file"]);
    std::fs::rename(&fifo, desk.path().join("scenarios/pipe.yaml")).expect("moved");
    let listed = desk.run(&["list", "scenarios"]);
    listed.ends_with(0);
    assert!(listed.stdout.contains("cannot be read: it is a FIFO"), "{}", listed.stdout);
    let large = std::fs::File::create(desk.path().join("large.yaml")).expect("a file");
    large.set_len(1 << 40).expect("a length");
    refused(&desk.run(&["check", "large.yaml"]), &["longer than 1048576 bytes"]);
    std::fs::create_dir(desk.path().join("own")).expect("a folder");
    std::fs::write(desk.path().join("beside.sql"), "SELECT 1;").expect("a file");
    std::os::unix::fs::symlink("../beside.sql", desk.path().join("own/link.sql")).expect("a link");
    let scenario = |file: &str| {
        format!(
            "name: foreign\nsite: {{ regions: {{ dc1: {{ zones: {{ a: {{ hosts: 1 }} }} }} }} }}\n\
             database: {{ engine: postgres, nodes: 1 }}\nloads:\n  - workload: script\n    clients: 1\n    options:\n      \
             scripts:\n        - {{ file: {file} }}\nschedule:\n  - {{ phase: baseline, for: 5s }}\n"
        )
    };
    let write = |file: &str| std::fs::write(desk.path().join("own/s.yaml"), scenario(file)).expect("a file");
    let caret = |file: &str, words: &str| {
        write(file);
        for command in ["run", "check"] {
            let finished = desk.run(&[command, "own/s.yaml"]);
            refused(&finished, &["own/s.yaml:9:19"]);
            assert!(unfolded(&finished.stderr).contains(&unfolded(words)), "{}", finished.stderr);
        }
    };
    caret("/dev/zero", "leads out of the scenario's folder");
    caret("../beside.sql", "leads out of the scenario's folder");
    caret("link.sql", "outside the scenario's folder; copy the file into that folder");
    caret("../own", "leads out of the scenario's folder");
    caret("missing.sql", "No such file");
    // The same typed by the user.
    write("missing.sql");
    let typed = |file: &str| {
        let set = format!("loads.0.options.scripts.0.file={file}");
        desk.run(&["check", "own/s.yaml", "--set", &set])
    };
    typed("../beside.sql").ends_with(0);
    let device = typed("/dev/zero");
    refused(&device, &["command line", "it is a device"]);
    assert!(!desk.path().join("runs").exists(), "nothing was run");
}

#[test]
fn wrong_arguments_are_refused() {
    let desk = Desk::new();
    let scenario = "scenarios/host-failure.yaml";
    refused(&desk.run::<&str>(&[]), &["Usage"]);
    refused(&desk.run(&["frobnicate"]), &["frobnicate"]);
    refused(&desk.run(&["run"]), &["SCENARIO"]);
    refused(&desk.run(&["run", scenario, "--sed", "1"]), &["--seed"]);
    refused(&desk.run(&["run", scenario, "--seed", "minus one"]), &["minus one"]);
    refused(&desk.run(&["run", scenario, "--seed", "9007199254740992"]), &["9007199254740992"]);
    refused(&desk.run(&["run", scenario, "--set", "nonsense"]), &["nonsense", "loads.0.clients=8"]);
    refused(&desk.run(&["run", scenario, "--set", "nonsense=1"]), &["nonsense", "unknown key"]);
    refused(&desk.run(&["run", scenario, "--set", "schedule.9.for=1s"]), &["no such element"]);
    refused(&desk.run(&["run", scenario, "--set", "loads.0.clients=many"]), &["many"]);
    refused(&desk.run(&["report", "scenarios"]), &["is not a run directory"]);
    refused(&desk.run(&["report", "missing"]), &["is not a run directory"]);
    assert!(!desk.path().join("runs").exists(), "nothing was run");
}

#[test]
fn an_error_says_its_cause_once() {
    let desk = Desk::new();
    std::fs::write(desk.path().join("runs"), b"no folder").expect("a file in the way");
    let finished = desk.run(&["run", "scenarios/host-failure.yaml"]);
    finished.ends_with(255);
    assert_eq!(finished.stderr.matches("os error").count(), 1, "{}", finished.stderr);
}

#[test]
fn each_scenario_is_listed_with_a_whole_sentence() {
    let desk = Desk::new();
    let listed = desk.run(&["list", "scenarios"]);
    listed.ends_with(0);
    let mut count = 0;
    for line in listed.stdout.lines().filter(|line| !line.starts_with(' ')) {
        assert!(line.trim_end().ends_with(['.', ')']) && !line.contains('…'), "{line}");
        count += 1;
    }
    assert!(count >= 80, "{}", listed.stdout);
}

#[test]
fn help_version_lists_and_schema_are_no_mistakes() {
    let desk = Desk::new();
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["run", "--help"],
        &["list", "engines"],
        &["list", "workloads"],
        &["list", "faults"],
        &["list", "checks"],
        &["list", "scenarios"],
        &["check", "scenarios/host-failure.yaml"],
    ] {
        let finished = desk.run(arguments);
        finished.ends_with(0);
        assert!(
            !finished.stdout.is_empty() && finished.stderr.is_empty(),
            "{arguments:?}\n{}",
            finished.stderr
        );
    }
    let schema = desk.run(&["schema"]);
    serde_json::from_str::<serde_json::Value>(&schema.ends_with(0).stdout).expect("the schema is JSON");
}

#[test]
fn doctor_says_what_a_scenario_may_do_on_this_machine_and_what_not() {
    let desk = Desk::new();
    let said = desk.run(&["doctor"]).stdout;
    let (_, rights) = said.split_once("what a scenario can do on this machine:").expect("the rights");
    let lines =
        |begin: &str| rights.lines().filter(|line| line.trim().starts_with(begin)).collect::<String>();
    let may_not = lines("may not");
    assert!(lines("may  ").contains("run any program and any SQL inside its nodes"), "{rights}");
    assert!(may_not.contains("write anything but its volumes, see homes"), "{rights}");
    assert!(rights.contains("use this machine's network"), "{rights}");
}

/// As with `| head`: what is not read is lost, and nothing else happens.
#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let desk = Desk::new();
    for arguments in
        [&["list", "checks"][..], &["schema"], &["doctor"], &["check", "scenarios/host-failure.yaml"]]
    {
        let read = desk.run(arguments);
        let unread = desk.run_unread(arguments);
        assert_eq!(unread.code(), read.code(), "{arguments:?}\n{}", unread.stderr);
        assert_eq!(unread.stderr, read.stderr, "{arguments:?}");
    }
}
