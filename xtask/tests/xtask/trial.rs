//! `cargo xtask try external`: the shipped scenarios for a cluster that exists, against three machines with sshd, nftables and
//! PostgreSQL. `cargo xtask try kubernetes`: a real cluster in a lab.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use xtask::trial::Shipped;

#[test]
#[ignore = "second tier: three machines, and a minute and a half of external-postgres"]
fn three_machines_that_are_killed_and_cut_off_lose_nothing_and_each_fault_has_its_receipt() {
    if let Some(code) = code_of(Shipped::named("external-postgres").expect("shipped")) {
        assert_eq!(code, 0, "every fault is shown, nothing is lost");
    }
}

#[test]
#[ignore = "second tier: three machines, and half a minute of external-agents"]
fn agents_reached_by_ssh_do_one_load_through_the_loss_of_the_leader() {
    if let Some(code) = code_of(Shipped::named("external-agents").expect("shipped")) {
        assert_eq!(code, 0, "the fault is shown, nothing is lost");
    }
}

#[test]
#[ignore = "second tier: a Kubernetes cluster in a lab, six minutes; only where its programs have been built"]
fn scenarios_of_pods_run_on_a_real_cluster_in_the_lab_and_only_what_was_not_synced_is_lost() {
    if let Err(missing) = xtask::trial::kubernetes::is_ready() {
        eprintln!("skipped: scenarios_of_pods_run_on_a_real_cluster: {missing}");
        return;
    }
    let holdfast = holdfast();
    let told = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["try", "kubernetes", "--holdfast"])
        .arg(holdfast)
        .output()
        .expect("xtask");
    let said = String::from_utf8_lossy(&told.stdout);
    assert!(told.status.success(), "{said}\n{}", String::from_utf8_lossy(&told.stderr));
    for part in
        ["kubernetes-postgres: Pass", "node-loss: Fail", "lost writes are named", "removed: processes"]
    {
        assert!(said.contains(part), "no `{part}` in:\n{said}");
    }
}

/// The program, built as the tests are.
fn holdfast() -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let root = xtask::repository_root();
    let built =
        Command::new(cargo).args(["build", "--quiet", "--package", "holdfast"]).current_dir(&root).status();
    assert!(built.expect("cargo").success());
    xtask::target_directory().join("debug/holdfast")
}

/// Two trials at once leave `ssh` no processor in time: a strike that comes late has no receipt.
static TURN: Mutex<()> = Mutex::new(());

/// As many operations as leave the machine room.
const RATES: [&str; 4] = ["--set", "loads.0.rate=200/s", "--set", "loads.1.rate=100/s"];

/// How a scenario ended; none where the machines cannot be had here.
fn code_of(shipped: Shipped) -> Option<u8> {
    if let Err(missing) = xtask::trial::needs() {
        eprintln!("skipped: {}: {missing}", shipped.name());
        return None;
    }
    let holdfast = holdfast();
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let out = tempfile::tempdir().expect("a folder");
    let out = ["--out".to_owned(), out.path().display().to_string()];
    let further: Vec<String> = RATES.map(str::to_owned).into_iter().chain(out).collect();
    Some(xtask::trial::on_three_machines(&holdfast, shipped, &further).expect("the machines"))
}
