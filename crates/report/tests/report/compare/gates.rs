//! Gates over a comparison: one passes only what was measured well enough to pass.

use super::*;

/// The verdict on a gate over the load `bank`.
#[track_caller]
fn gated(comparison: &Comparison, quantity: &str, bound: Bound) -> Verdict {
    let gate = Gate { scope: Some("bank".to_owned()), quantity: quantity.to_owned(), bound };
    let judged = compare::judge(comparison, &gate).expect("the gate fits");
    judged.iter().fold(Verdict::Pass, |verdict, figure| verdict.and(figure.verdict))
}

#[test]
fn a_gate_fails_on_a_planted_difference_beyond_its_bound_and_on_no_other() {
    let mut runs = Runs::new();
    let side = |runs: &mut Runs, clients, by: f64| {
        [1.0, 1.01, 0.99, 1.005, 0.995].map(|noise| runs.add(clients, noise * by))
    };
    let slower = [side(&mut runs, 1, 1.0), side(&mut runs, 8, 1.5)].concat();
    let slower = compared(&slower);
    assert_eq!(gated(&slower, "latency_mean", Bound::Share(0.2)), Verdict::Fail);
    assert_eq!(gated(&slower, "latency_mean", Bound::Share(1.0)), Verdict::Pass, "+50 % is not +100 %");
    assert_eq!(
        gated(&slower, "latency_mean", Bound::Share(0.505)),
        Verdict::Unknown,
        "the interval holds the bound"
    );
    assert_eq!(gated(&slower, "throughput_per_s", Bound::Share(-0.1)), Verdict::Pass, "it rose");
    let mean = |variant: usize| {
        slower.variants[variant].runs[0].result.loads.iter().find(|load| load.name == "bank")
    };
    let mean_us = mean(0).expect("a load").measured.latency_us.mean;
    assert_eq!(gated(&slower, "latency_mean", Bound::Absolute(mean_us * 0.2)), Verdict::Fail);
    assert_eq!(gated(&slower, "latency_mean", Bound::Absolute(mean_us)), Verdict::Pass);
    let fewer = [side(&mut runs, 1, 1.0), side(&mut runs, 8, 0.7)].concat();
    assert_eq!(gated(&compared(&fewer), "throughput_per_s", Bound::Share(-0.1)), Verdict::Fail);
    let same = [side(&mut runs, 1, 1.0), side(&mut runs, 8, 1.0)].concat();
    assert_eq!(gated(&compared(&same), "latency_mean", Bound::Share(0.2)), Verdict::Pass);
}

#[test]
fn a_gate_passes_nothing_that_noise_single_runs_or_missing_figures_hide() {
    let mut runs = Runs::new();
    let noisy: Vec<PathBuf> = [(1, 1.0), (1, 1.6), (1, 0.7), (8, 1.0), (8, 0.6), (8, 1.7)]
        .map(|(clients, by)| runs.add(clients, by))
        .into();
    assert_eq!(gated(&compared(&noisy), "latency_mean", Bound::Share(0.2)), Verdict::Unknown);
    // A throughput that falls to nothing falls by less than this bound.
    let gone = [(1, 1.0), (1, 1.01), (1, 0.99), (8, 0.0), (8, 0.0), (8, 0.0)];
    let gone = compared(&gone.map(|(clients, by)| runs.add(clients, by)));
    assert_eq!(gated(&gone, "throughput_per_s", Bound::Absolute(-1e6)), Verdict::Unknown);
    assert_eq!(gated(&gone, "throughput_per_s", Bound::Share(-0.5)), Verdict::Fail);
    let single = [runs.add(1, 1.0), runs.add(8, 9.0)];
    write_seconds(&single[0], Duration::from_millis(2), 500);
    write_seconds(&single[1], Duration::from_millis(9), 50);
    assert_eq!(gated(&compared(&single), "latency_mean", Bound::Share(0.2)), Verdict::Unknown);
    // A fault from which one run of three never recovered.
    let paths: Vec<PathBuf> = [1, 1, 1, 8, 8, 8].map(|clients| runs.add(clients, 1.0)).into();
    let file = paths[5].join("result.json");
    let mut result: RunResult =
        serde_json::from_str(&std::fs::read_to_string(&file).expect("a result")).expect("a result");
    result.faults[0].recovery_s.first_success = None;
    std::fs::write(&file, serde_json::to_string(&result).expect("text")).expect("written");
    let gate = Gate {
        scope: Some("fault-1".to_owned()),
        quantity: "first_success".to_owned(),
        bound: Bound::Share(0.5),
    };
    let judged = compare::judge(&compared(&paths), &gate).expect("fits");
    assert_eq!(judged[0].verdict, Verdict::Unknown, "{judged:?}");
    assert!(judged[0].explanation.contains("1 run has no such figure"), "{judged:?}");
}

/// Three runs of each of two settings, alike.
fn three_of_each(runs: &mut Runs) -> Vec<PathBuf> {
    [(1, 1.0), (1, 1.01), (1, 0.99), (8, 1.0), (8, 1.01), (8, 0.99)]
        .map(|(clients, by)| runs.add(clients, by))
        .into()
}

#[test]
fn a_gate_does_not_pass_over_a_run_that_did_not_complete() {
    let mut runs = Runs::new();
    let mut paths = three_of_each(&mut runs);
    assert_eq!(gated(&compared(&paths), "latency_mean", Bound::Share(0.5)), Verdict::Pass);
    let killed = runs.add(8, 1.0);
    std::fs::remove_file(killed.join("result.json")).expect("there was one");
    paths.push(killed);
    assert_eq!(gated(&compared(&paths), "latency_mean", Bound::Share(0.5)), Verdict::Unknown);
}

#[test]
fn a_gate_is_not_green_over_a_run_that_is_itself_unknown_and_says_which_and_why() {
    let mut runs = Runs::new();
    let doubt = |path: &Path| {
        let file = path.join("result.json");
        let text = std::fs::read_to_string(&file).expect("a result");
        let mut result: RunResult = serde_json::from_str(&text).expect("a result");
        (result.verdict, result.reasons) = (Verdict::Unknown, vec!["the lab stalled".to_owned()]);
        std::fs::write(&file, serde_json::to_string(&result).expect("text")).expect("written");
    };
    let alike = three_of_each(&mut runs);
    doubt(&alike[4]);
    let comparison = compared(&alike);
    assert_eq!(gated(&comparison, "latency_mean", Bound::Share(0.5)), Verdict::Unknown);
    let gate = Gate { scope: None, quantity: "latency_mean".to_owned(), bound: Bound::Share(0.5) };
    let judged = compare::judge(&comparison, &gate).expect("the gate fits");
    let told = &judged.last().expect("a doubt").explanation;
    assert!(told.contains("run-5: the run itself is unknown: the lab stalled"), "{told}");
    // What is exceeded is exceeded.
    let slower: Vec<PathBuf> = [(1, 1.0), (1, 1.01), (1, 0.99), (8, 3.0), (8, 3.02), (8, 2.98)]
        .map(|(clients, by)| runs.add(clients, by))
        .into();
    doubt(&slower[0]);
    assert_eq!(gated(&compared(&slower), "latency_mean", Bound::Share(0.5)), Verdict::Fail);
    // But not by figures that may be those of a lab that stood still.
    let file = slower[4].join("result.json");
    let text = std::fs::read_to_string(&file).expect("a result");
    let mut result: RunResult = serde_json::from_str(&text).expect("a result");
    result.lab.stalls = vec![history::Stall {
        parts: vec![history::LabPart::Pods],
        from_s: 20.0,
        to_s: 22.0,
        length_s: 2.0,
        waited_for_processor_s: None,
        processors_withheld_s: None,
    }];
    std::fs::write(&file, serde_json::to_string(&result).expect("text")).expect("written");
    assert_eq!(gated(&compared(&slower), "latency_mean", Bound::Share(0.5)), Verdict::Unknown);
}

#[test]
fn a_gate_is_not_green_over_cells_of_a_matrix_that_left_no_result() {
    let mut runs = Runs::new();
    let paths = three_of_each(&mut runs);
    let clients = [1, 1, 1, 8, 8, 8];
    let cells = paths.into_iter().zip(clients).enumerate().map(|(number, (path, clients))| {
        let cell = if clients == 1 { 1 } else { 2 };
        cell_of(path, cell, number as u32 % 3 + 1, clients)
    });
    let mut matrix = matrix_of(cells.collect());
    let directory = runs.folder.path();
    let judged = |matrix: &MatrixResult| {
        results::matrix::write(directory, matrix).expect("written");
        let gate = Gate {
            scope: Some("bank".to_owned()),
            quantity: "latency_mean".to_owned(),
            bound: Bound::Share(0.5),
        };
        compare::judge(&compared(&[directory.to_owned()]), &gate).expect("the gate fits")
    };
    let worst = |judged: &[Judged]| judged.iter().fold(Verdict::Pass, |worst, told| worst.and(told.verdict));
    assert_eq!(worst(&judged(&matrix)), Verdict::Pass);
    let mut lost = matrix.cells[0].clone();
    (lost.cell, lost.repetition, lost.label) = (3, 1, "clients 64".to_owned());
    (lost.result, lost.failure) = (None, Some("no lab".to_owned()));
    matrix.cells.push(lost);
    let found = judged(&matrix);
    assert_eq!(worst(&found), Verdict::Unknown);
    let told = &found.last().expect("a doubt").explanation;
    assert_eq!(told, "clients 64: 1 run left no result: no lab");
    assert!(compare::text(&compared(&[directory.to_owned()])).contains(told), "the reader is told too");
    // A matrix of which one side left nothing is not a wrong expression.
    matrix.cells.retain(|cell| cell.label != "clients 8");
    assert_eq!(worst(&judged(&matrix)), Verdict::Unknown);
}

#[test]
fn a_gate_does_not_pass_over_an_interruption_that_had_not_ended() {
    let mut runs = Runs::new();
    let paths = three_of_each(&mut runs);
    let gap = |file: &Path, gap_s: f64, is_open: bool| {
        let text = std::fs::read_to_string(file).expect("a result");
        let mut result: RunResult = serde_json::from_str(&text).expect("a result");
        let fault = &mut result.faults[0];
        (fault.gap_s, fault.interrupted) = (Some(gap_s), Some(true));
        assert!(!fault.loads.is_empty());
        for load in &mut fault.loads {
            (load.gap_s, load.interrupted, load.gap_is_open) = (Some(gap_s), Some(true), is_open);
        }
        std::fs::write(file, serde_json::to_string(&result).expect("text")).expect("written");
    };
    let judged = |is_open| {
        for (number, path) in paths.iter().enumerate() {
            gap(&path.join("result.json"), 18.0 + number as f64 * 0.01, is_open && number > 2);
        }
        let gate =
            Gate { scope: Some("fault-1".to_owned()), quantity: "gap".to_owned(), bound: Bound::Share(0.5) };
        compare::judge(&compared(&paths), &gate).expect("fits")
    };
    assert_eq!(judged(false)[0].verdict, Verdict::Pass);
    let open = judged(true);
    assert_eq!(open[0].verdict, Verdict::Unknown, "{open:?}");
}

#[test]
fn a_gate_that_fits_nowhere_is_told_what_there_is() {
    let mut runs = Runs::new();
    let comparison = compared(&[runs.add(1, 1.0), runs.add(8, 1.0)]);
    let gate = |scope: &str, quantity: &str| {
        let (scope, quantity) = (Some(scope.to_owned()), quantity.to_owned());
        compare::judge(&comparison, &Gate { scope, quantity, bound: Bound::Share(0.1) })
    };
    assert!(
        matches!(gate("bonk", "gap"), Err(GateError::NoScope { known, .. }) if known.contains(&"bank".to_owned()))
    );
    assert!(
        matches!(gate("bank", "p99"), Err(GateError::NoQuantity { known, .. }) if known.contains(&"latency_p99".to_owned()))
    );
    let twice = [runs.add(1, 1.0), runs.add(1, 1.0)];
    let any = Gate { scope: None, quantity: "latency_mean".to_owned(), bound: Bound::Share(0.1) };
    assert_eq!(compare::judge(&compared(&twice), &any), Err(GateError::OneVariant));
    let named: Vec<PathBuf> = ["before", "after"]
        .iter()
        .zip(&twice)
        .map(|(name, path)| PathBuf::from(format!("{name}={}", path.display())))
        .collect();
    let named = compared(&named);
    assert_eq!([named.variants[0].name.as_str(), named.variants[1].name.as_str()], ["before", "after"]);
    assert!(compare::judge(&named, &any).is_ok());
}
