//! The peer of the lab's boot: the same PostgreSQL cluster as people make it on one machine, by a shell script on
//! loopback.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::Context;
use engine::{Configuration, Installation, Synchronous};

/// What the script says when the first write has been acknowledged. Then it waits for its standard input to end.
pub const UP: &str = "the cluster is up";

/// Told in the same list for the report's reader, but not settings of the server's.
const NO_SETTINGS: &[&str] = &["data_checksums", "installation", "isolation", "synchronous"];

/// The user that a script of root's becomes: PostgreSQL refuses root.
const NOBODY: u32 = 65_534;

/// One server after another with pg_ctl, pg_basebackup as its manual has it for a standby with a slot, and psql until a
/// write is acknowledged. `settings.conf` holds the very settings that the lab's nodes have.
const SCRIPT: &str = r#"
set -e
cd "$HOME"
tune() {
    mkdir -p $1.run
    cat settings.conf - >> $1/postgresql.conf <<END
listen_addresses = '$2'
port = $PORT
unix_socket_directories = '$HOME/$1.run'
cluster_name = '$1'
max_wal_senders = 10
max_replication_slots = 10
synchronous_standby_names = 'ANY 1 (n2,n3)'
END
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
copy n2 127.0.0.3 & second=$!
copy n3 127.0.0.4 & third=$!
wait $second
wait $third
until [ "$(ask "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'")" = 2 ]; do sleep 0.05; done
ask "SELECT pg_logical_emit_message(true, 'holdfast', 'quorum')" > /dev/null
echo 'the cluster is up'
read -r end || true
kill -9 $(head -qn 1 n1/postmaster.pid n2/postmaster.pid n3/postmaster.pid)
"#;

/// A cluster to be.
pub struct Cluster {
    /// The script, ready to start.
    pub script: Command,
    /// Where its servers will listen; the primary's address is 127.0.0.2.
    pub port: u16,
}

/// A cluster in the empty folder `home`.
///
/// # Errors
/// When its folder cannot be prepared.
pub fn command(installation: &Installation, home: &Path) -> anyhow::Result<Cluster> {
    let settings = home.join("settings.conf");
    fs::write(&settings, settings_text(installation)?)
        .with_context(|| format!("write {}", settings.display()))?;
    fs::set_permissions(home, fs::Permissions::from_mode(0o755))?;
    // A port that is free now; hardly anyone else uses these addresses.
    let port =
        TcpListener::bind("127.0.0.2:0").and_then(|listener| listener.local_addr()).context("a port")?.port();
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", SCRIPT]).env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C").env("HOME", home);
    shell.env("BIN", &installation.bin).env("PORT", port.to_string());
    if let Some(libraries) = &installation.library_path {
        shell.env("LD_LIBRARY_PATH", libraries);
    }
    if nix::unistd::geteuid().is_root() {
        chown(home, Some(NOBODY), Some(NOBODY))?;
        shell.uid(NOBODY).gid(NOBODY);
    }
    Ok(Cluster { script: shell, port })
}

/// What the engine sets on each of the lab's nodes, as configuration text.
fn settings_text(installation: &Installation) -> anyhow::Result<String> {
    let configuration = Configuration {
        synchronous: Synchronous::Any(1),
        settings: BTreeMap::new(),
        port: 5432,
        max_connections: 200,
        upgrade: None,
        copies: 1,
        places: Vec::new(),
    };
    let opened = engine::registry::named("postgres")?.open(installation.clone(), configuration)?;
    let mut text = String::new();
    for (name, value) in opened.settings() {
        if !NO_SETTINGS.contains(&name.as_str()) {
            writeln!(text, "{name} = '{value}'")?;
        }
    }
    Ok(text)
}
