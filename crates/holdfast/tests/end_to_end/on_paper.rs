//! What `check` and `predict` say without starting anything.

use crate::holdfast::Desk;

#[test]
fn every_shipped_scenario_is_checked_on_paper_and_nothing_is_started() {
    let desk = Desk::new();
    let mut checked = 0;
    for entry in std::fs::read_dir(desk.path().join("scenarios")).expect("scenarios") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let finished = desk.run(&["check".as_ref(), path.as_os_str()]);
        finished.ends_with(0);
        let text = std::fs::read_to_string(&path).expect("a scenario");
        let on_paper = ["is valid", "needs about", "After failures", "left by one failure", "Best practice"];
        let exists = ["target: external", "target: kubernetes"].iter().any(|target| text.contains(target));
        let wanted = if exists {
            // Nothing is known of the machines: what would be done to them is printed.
            vec!["is valid", "may strike member", "do:", "undo:", "stands, if:", "gone, if:", "--yes-break"]
        } else if text.contains("engine: none") {
            // Without a database there is nothing to commit.
            on_paper.to_vec()
        } else {
            [&on_paper[..], &["Network delay"]].concat()
        };
        for words in wanted {
            assert!(
                finished.stdout.contains(words),
                "{}: no `{words}` in\n{}",
                path.display(),
                finished.stdout
            );
        }
        checked += 1;
    }
    assert!(checked >= 80, "{checked}");
    assert!(!desk.path().join("runs").exists());
}

/// The words of a line of the guide, of which those between apostrophes are one.
fn words(line: &str) -> Vec<String> {
    let quoted = line.split('\'').enumerate();
    let part = |(number, part): (usize, &str)| match number % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    };
    quoted.flat_map(part).collect()
}

#[test]
fn the_guides_commands_for_the_first_reports_own_database_are_valid() {
    let desk = Desk::new();
    let guide = include_str!("../../../../docs/guide/published-reports.md");
    let set_aside = guide.lines().find_map(|line| line.strip_prefix("CRDB=\"")?.strip_suffix('"'));
    let commands: Vec<&str> =
        guide.lines().filter_map(|line| line.strip_prefix("holdfast run scenarios/fr1-")).collect();
    assert!(commands.len() >= 6, "{commands:?}");
    for command in commands {
        let line =
            format!("check scenarios/fr1-{command}").replace("$CRDB", set_aside.expect("what is set aside"));
        let checked = desk.run(&words(&line.replace("--engine-dir /opt/cockroach", "")));
        checked.ends_with(0);
        assert!(checked.stdout.contains("Best practice"), "{line}: {}", checked.stdout);
    }
}

#[test]
fn what_failures_can_do_stands_before_the_outcomes_the_delay_and_the_recommendations() {
    let desk = Desk::new();
    let finished = desk.run(&["check", "scenarios/host-failure.yaml"]);
    finished.ends_with(0);
    let order = [
        "is valid",
        "needs about",
        "can destroy the last copy",
        "can stop some service",
        "After failures",
        "left by one failure",
        "faults of the schedule",
        "Network delay",
        "Best practice",
    ];
    let places = order.map(|words| finished.stdout.find(words));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?} in\n{}", finished.stdout);
}

#[test]
fn two_data_centres_are_told_not_to_be_highly_available_and_three_are_not() {
    let desk = Desk::new();
    let two = desk.run(&["check", "scenarios/fr3-two-datacentres.yaml"]);
    assert!(two.stdout.contains("departs   three-data-centres"), "{}", two.stdout);
    // Lines are folded; what they say is not.
    let unfolded = two.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["END 50.00 ms", "250.00 ms: 5 quorum round trips"] {
        assert!(unfolded.contains(words), "{}", two.stdout);
    }
    let three = desk.run(&["check", "scenarios/fr3-three-datacentres.yaml"]);
    assert!(!three.stdout.contains("departs   three-data-centres"), "{}", three.stdout);
}

#[test]
fn a_host_with_a_replica_and_the_mirror_of_another_is_named() {
    let desk = Desk::new();
    let shared = desk.run(&["check", "scenarios/fr4-replicated-datastore.yaml"]);
    let unfolded = shared.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = "dc1/a/h1 holds n1 and a component of n2: 2 copies are lost with it.";
    assert!(unfolded.contains(words), "{}", shared.stdout);
    let alone = desk.run(&["check", "scenarios/mirror-sync.yaml"]);
    assert!(!alone.stdout.contains("copies are lost"), "{}", alone.stdout);
}

#[test]
fn long_lists_are_cut_and_faults_that_read_alike_are_counted() {
    let desk = Desk::new();
    std::fs::write(desk.path().join("many.yaml"), include_str!("many_nodes.yaml")).expect("a scenario");
    let many = desk.run(&["check", "many.yaml"]);
    many.ends_with(0);
    let unfolded = many.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "with it. 5 more hosts hold several.",
        "n6 stays off after the loss of",
        "and 2 more that stay off after the loss of a host",
        "fault: power-off, 4 times",
    ] {
        assert!(unfolded.contains(words), "no `{words}` in\n{}", many.stdout);
    }
    assert!(!unfolded.contains("n7 stays off"), "{}", many.stdout);
}

#[test]
fn this_machine_is_held_against_best_practice_with_and_without_a_scenario() {
    let desk = Desk::new();
    let alone = desk.run(&["check", "--this-host"]);
    alone.ends_with(0);
    assert!(alone.stdout.starts_with("Best practice, from this machine"), "{}", alone.stdout);
    let both = desk.run(&["check", "scenarios/host-failure.yaml", "--this-host"]);
    assert!(
        both.stdout.contains("from the scenario") && both.stdout.contains("from this machine"),
        "{}",
        both.stdout
    );
    desk.run(&["check"]).ends_with(254);
    desk.run(&["check", "--this-host", "--set", "loads.0.clients=9"]).ends_with(254);
}

#[test]
fn a_prediction_is_the_same_again_with_its_seed_and_another_with_another() {
    let desk = Desk::new();
    let ask = |seed: &str| {
        let scenario = "scenarios/fr3-cloud-regions.yaml";
        let finished = desk.run(&["predict", scenario, "--nodes", "90", "--ranges", "900", "--seed", seed]);
        finished.ends_with(0);
        finished.stdout
    };
    let first = ask("1");
    assert!(
        first.contains("90 hosts in 5 racks, 3 zones and 3 regions, 900 ranges of 3 replicas"),
        "{first}"
    );
    assert!(
        first.contains("host + host") && first.contains("Loss of data") && first.contains("Rebuild"),
        "{first}"
    );
    assert_eq!(first, ask("1"));
    assert_ne!(first, ask("2"));
}

#[test]
fn a_cluster_that_cannot_be_is_refused() {
    let desk = Desk::new();
    let check = |arguments: &[&str], words: &str| {
        let finished = desk.run(&[&["predict", "scenarios/host-failure.yaml"], arguments].concat());
        finished.ends_with(254);
        assert!(finished.stderr.contains(words), "{arguments:?}: {}", finished.stderr);
    };
    check(&["--nodes", "0"], "hosts is 0");
    check(&["--nodes", "99999999"], "at most 15000");
    check(&["--replicas", "4"], "4 replicas need as many hosts");
    check(&["--not-returning", "200%"], "from 0% to 100%");
    check(&["--repair-hours", "0"], "not a positive number");
}

#[test]
fn capacity_is_told_of_run_directories_only_and_never_from_too_little() {
    let desk = Desk::new();
    let check = |arguments: &[&str], words: &str| {
        let finished = desk.run(&[&["predict"], arguments].concat());
        finished.ends_with(254);
        assert!(finished.stderr.contains(words), "{arguments:?}: {}", finished.stderr);
    };
    check(&["scenarios"], "is not a run directory");
    check(&["scenarios/host-failure.yaml", "--by", "clients"], "--by needs run directories");
    check(&["scenarios/host-failure.yaml", "scenarios/partition.yaml"], "not a directory");
    // A run of one phase: `result.json` and `timeline.csv` are all that is read.
    let run = desk.path().join("one-phase");
    std::fs::create_dir(&run).expect("a folder");
    let result = include_str!("one_phase.json");
    std::fs::write(run.join("result.json"), result).expect("a result");
    check(&["one-phase"], "load ledger, by clients: 1 measurements are too few");
    check(&["one-phase", "--nodes", "9"], "--nodes is for the prediction of one scenario");
    check(&["one-phase", "one-phase", "--set", "loads.0.clients=9"], "--set is for the prediction");
}

#[test]
fn a_guest_s_clock_that_a_migration_stops_is_held_against_what_the_engine_tolerates() {
    let desk = Desk::new();
    let guest = desk.run(&["check", "scenarios/fr1-clock-guest.yaml"]);
    let unfolded = guest.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(unfolded.contains("migrate: the guest's clock"), "{}", guest.stdout);
    let wrong =
        "its clock is wrong, and the engine's makers state no tolerance: time stamps order its writes";
    assert!(unfolded.contains(wrong), "{}", guest.stdout);
    let host = desk.run(&["check", "scenarios/fr1-clock-host.yaml"]);
    assert!(!host.stdout.contains("clock is wrong"), "{}", host.stdout);
}
