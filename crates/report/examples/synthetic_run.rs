//! Writes synthetic run directories with their reports, to look at: `cargo run -p report --example synthetic_run -- DIR`.

#[path = "../tests/report/fixture.rs"]
mod fixture;

use std::path::{Path, PathBuf};

use history::Verdict;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Some(directory) = std::env::args_os().nth(1).map(PathBuf::from) else {
        return Err("usage: synthetic_run DIR".into());
    };
    let mut failed = fixture::two_regions(20, 45);
    failed.result.verdict = Verdict::Fail;
    failed.result.reasons = vec!["lost_writes: wanted 0, measured 37".to_owned()];
    failed.result.checks[0].verdict = Verdict::Fail;
    failed.result.checks[0].lost = Some(37);
    write(&directory.join("pass"), &fixture::host_failure())?;
    write(&directory.join("fail"), &failed)?;
    let killed = directory.join("killed");
    std::fs::create_dir_all(&killed)?;
    fixture::host_failure().cut_at(33.4).write_killed(&killed)?;
    report::write(&killed)?;
    Ok(())
}

fn write(directory: &Path, fixture: &fixture::Fixture) -> Result<(), Box<dyn std::error::Error>> {
    std::fs::create_dir_all(directory)?;
    fixture.write(directory)?;
    report::write(directory)?;
    Ok(())
}
