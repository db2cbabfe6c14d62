//! `cargo xtask try external`: `scenarios/external-postgres.yaml` against three machines with sshd, nftables and PostgreSQL.

use std::process::Command;

#[test]
#[ignore = "second tier: three machines, and a minute and a half of external-postgres"]
fn three_machines_that_are_killed_and_cut_off_lose_nothing_and_each_fault_has_its_receipt() {
    if let Err(missing) = xtask::trial::needs() {
        eprintln!("skipped: three_machines_that_are_killed_and_cut_off: {missing}");
        return;
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let root = xtask::repository_root();
    let built =
        Command::new(cargo).args(["build", "--quiet", "--package", "holdfast"]).current_dir(&root).status();
    assert!(built.expect("cargo").success());
    let holdfast = xtask::target_directory().join("debug/holdfast");
    let out = tempfile::tempdir().expect("a folder");
    let further = ["--out".to_owned(), out.path().display().to_string()];
    let code = xtask::trial::on_three_machines(&holdfast, &further).expect("the machines");
    assert_eq!(code, 0, "every fault is shown, nothing is lost");
}
