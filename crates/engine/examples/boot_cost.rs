//! What a boot of three nodes costs beside a plain shell script that makes the same cluster: CPU and wall seconds.
//!
//! `cargo run -p engine --example boot_cost -- 5` does each five times in turn. Measures the engine without the lab.

#[path = "../tests/engine/loopback.rs"]
mod loopback;

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::time::Instant;

use engine::postgres::Postgres;
use engine::{Configuration, Engine as _, Installation, Synchronous};
use loopback::{Machines, server};

/// As people write it: pg_ctl, pg_basebackup with its defaults for a standby, psql until a write is acknowledged.
const SCRIPT: &str = r#"
set -e
cd "$HOME"
tune() {
    cat >> $1/postgresql.conf <<END
listen_addresses = '$2'
port = $PORT
unix_socket_directories = '$HOME/$1.run'
synchronous_standby_names = 'ANY 1 (n2,n3)'
max_connections = 200
wal_receiver_status_interval = 1s
log_timezone = UTC
timezone = UTC
END
    mkdir -p $1.run
}
ask() { "$BIN/psql" -h "$HOME/n1.run" -p $PORT -U holdfast -d postgres -Atqc "$1"; }
"$BIN/initdb" -D n1 -k --no-sync -A trust -U holdfast --locale=C --encoding=UTF8 > initdb.log
tune n1 127.0.0.2
printf 'host all all 0.0.0.0/0 trust\nhost replication all 0.0.0.0/0 trust\n' >> n1/pg_hba.conf
"$BIN/pg_ctl" -D n1 -l n1.log -w start > /dev/null
copy() {
    "$BIN/pg_basebackup" -D $1 -d "host=127.0.0.2 port=$PORT user=holdfast application_name=$1" \
        -R -X stream -c fast -C -S $1 --no-sync
    tune $1 $2
    "$BIN/pg_ctl" -D $1 -l $1.log -w start > /dev/null
}
copy n2 127.0.0.3 &
copy n3 127.0.0.4 &
wait
until [ "$(ask "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'")" = 2 ]; do sleep 0.05; done
ask "SELECT pg_logical_emit_message(true, 'holdfast', 'quorum')" > /dev/null
kill -9 $(head -qn 1 n1/postmaster.pid n2/postmaster.pid n3/postmaster.pid)
"#;

/// CPU seconds of this process and of all its children that have been waited for.
fn cpu_seconds() -> f64 {
    [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN]
        .into_iter()
        .map(|who| {
            // SAFETY: all zeros is a valid rusage, and the call writes nothing else.
            let usage = unsafe {
                let mut usage: libc::rusage = std::mem::zeroed();
                libc::getrusage(who, &raw mut usage);
                usage
            };
            let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
            seconds(usage.ru_utime) + seconds(usage.ru_stime)
        })
        .sum()
}

/// Waits for every process that has become ours because its parent has gone.
fn reap() {
    // SAFETY: nothing else waits for children at this time.
    while unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) } > 0 {}
}

/// Wall seconds until the boot is done, CPU seconds of all of it with its end.
fn measured(action: impl FnOnce() -> f64) -> (f64, f64) {
    let before = cpu_seconds();
    let wall = action();
    reap();
    (wall, cpu_seconds() - before)
}

fn with_engine(installation: &Installation) -> f64 {
    let machines = Machines::new(3);
    let configuration = Configuration {
        synchronous: Synchronous::Any(1),
        settings: BTreeMap::new(),
        port: machines.port,
        max_connections: 200,
        upgrade: None,
        copies: 1,
        places: Vec::new(),
    };
    let postgres = Postgres::new(installation.clone(), configuration).expect("a configuration");
    let started = Instant::now();
    let cluster = postgres.bootstrap(&machines.some(&[1, 2, 3])).unwrap_or_else(|error| panic!("{error}"));
    let wall = started.elapsed().as_secs_f64();
    let steps: Vec<String> =
        cluster.steps.iter().map(|(what, seconds)| format!("{what} {seconds:.2}")).collect();
    println!("    {}", steps.join(", "));
    wall
}

fn with_script(installation: &Installation) -> f64 {
    let machines = Machines::new(0);
    let home = tempfile::Builder::new().prefix("holdfast-script-").tempdir().expect("a folder");
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o755)).expect("permissions");
    let mut shell = std::process::Command::new("/bin/sh");
    shell
        .args(["-c", SCRIPT])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("LC_ALL", "C")
        .env("HOME", home.path());
    shell.env("BIN", &installation.bin).env("PORT", machines.port.to_string());
    // SAFETY: asks for a number and has no other effect.
    if unsafe { libc::geteuid() } == 0 {
        chown(home.path(), Some(65534), Some(65534)).expect("a folder of the database's user");
        shell.uid(65534).gid(65534);
    }
    let started = Instant::now();
    let status = shell.status().expect("a shell");
    assert!(status.success(), "{status}");
    let wall = started.elapsed().as_secs_f64();
    reap();
    wall
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn main() {
    // SAFETY: makes orphaned descendants ours to wait for, so that their CPU time is counted.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
    let Some(installation) = server() else { return };
    let rounds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(3);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        ours.push(measured(|| with_engine(&installation)));
        theirs.push(measured(|| with_script(&installation)));
        if let (Some(one), Some(other)) = (ours.last(), theirs.last()) {
            println!(
                "engine: wall {:.2} cpu {:.2}   script: wall {:.2} cpu {:.2}   cpu ratio {:.2}",
                one.0,
                one.1,
                other.0,
                other.1,
                one.1 / other.1
            );
        }
    }
    let ratios = ours.iter().zip(&theirs).map(|(one, other)| one.1 / other.1).collect();
    let column = |rows: &[(f64, f64)]| {
        (median(rows.iter().map(|row| row.0).collect()), median(rows.iter().map(|row| row.1).collect()))
    };
    let (engine, script) = (column(&ours), column(&theirs));
    println!(
        "PostgreSQL {} medians: engine wall {:.2} cpu {:.2}, script wall {:.2} cpu {:.2}, cpu ratio {:.2}",
        installation.version,
        engine.0,
        engine.1,
        script.0,
        script.1,
        median(ratios)
    );
}
