//! A machine that exists, for a trial: namespaces with an sshd and a PostgreSQL in them, reached through a cable.
//!
//! Owns their processes. All of a machine's are in a PID namespace whose first process ends with the trial, whatever ends it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

/// Arguments of setpriv(1) for the user of the databases: PostgreSQL refuses to run as root.
pub(super) const NOBODY: [&str; 3] = ["--reuid=65534", "--regid=65534", "--clear-groups"];
/// How long a machine, or a database on it, may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// What is appended to PostgreSQL's configuration. Data that is not synced is no part of this trial: nothing loses power.
const SETTINGS: &str = "listen_addresses = '*'\nunix_socket_directories = '/srv'\nfsync = off\nmax_connections = 200\n\
    tcp_keepalives_idle = 5\nwal_sender_timeout = 5s\nwal_receiver_timeout = 5s\n";
/// Starts the database of a machine, and does nothing if it runs. After a kill the old processes may still be ending.
const START: &str = "#!/bin/sh
run() { setpriv --reuid=65534 --regid=65534 --clear-groups PROGRAMS/pg_ctl -D /srv/data \"$@\" >/dev/null 2>&1 </dev/null; }
for attempt in 1 2 3 4 5 6 7 8 9 10; do
  run status && exit 0
  run -l /srv/log -w -t 30 start && exit 0
  sleep 0.5
done
exit 1
";

/// The address of a machine.
pub(super) fn address(number: usize) -> String {
    format!("10.9.{number}.2")
}

/// Where a program is, in the folders that administrators have.
pub(super) fn path_of(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(more).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// What a program said, once it has ended well.
pub(super) fn said(program: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let path = path_of(program).with_context(|| format!("no `{program}` on this machine"))?;
    let output =
        Command::new(path).args(arguments).stdin(Stdio::null()).output().context(program.to_owned())?;
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    ensure!(output.status.success(), "{program} {}: {}", arguments.join(" "), text.trim());
    Ok(text)
}

/// Keys of both sides, and the configuration with which ssh finds the machines.
pub(super) fn make_keys(folder: &Path, machines: usize) -> anyhow::Result<PathBuf> {
    let path = |name: &str| folder.join(name).display().to_string();
    for key in ["host_key", "key"] {
        said("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &path(key)])?;
    }
    fs::copy(folder.join("key.pub"), folder.join("authorized"))?;
    let host_key = fs::read_to_string(folder.join("host_key.pub"))?;
    let (mut known, mut client) = (String::new(), String::new());
    for number in 1..=machines {
        let address = address(number);
        known.push_str(&format!("{address} {host_key}"));
        client.push_str(&format!(
            "Host db{number}\n  HostName {address}\n  User root\n  IdentityFile {}\n  IdentitiesOnly yes\n  UserKnownHostsFile \
             {}\n  StrictHostKeyChecking yes\n",
            path("key"),
            path("known")
        ));
    }
    fs::write(folder.join("known"), known)?;
    fs::write(folder.join("ssh_config"), client)?;
    Ok(folder.join("ssh_config"))
}

/// A machine. Dropping it ends all its processes.
pub(super) struct Machine {
    number: usize,
    /// What the machine sees as `/srv`.
    folder: PathBuf,
    ssh_config: PathBuf,
    process: Child,
}

impl Drop for Machine {
    fn drop(&mut self) {
        // With it goes the first process of the PID namespace, and with that everything in it.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Machine {
    /// Starts a machine with sshd and lays the cable to it.
    pub(super) fn start(trial: &Path, number: usize, ssh_config: &Path) -> anyhow::Result<Machine> {
        let folder = trial.join(format!("db{number}"));
        fs::create_dir(&folder)?;
        said("chown", &["65534:65534", &folder.display().to_string()])?;
        let path = |name: &str| trial.join(name).display().to_string();
        let server = format!(
            "Port 22\nListenAddress {}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n\
             PasswordAuthentication no\nPidFile none\nLogLevel ERROR\n",
            address(number),
            path("host_key"),
            path("authorized")
        );
        fs::write(folder.join("sshd_config"), server)?;
        let sshd = path_of("sshd").context("no `sshd` on this machine")?;
        let script = "mount --bind \"$1\" /srv && mount -t tmpfs none /run && mkdir /run/sshd && \
                      while [ ! -e /srv/cable ]; do sleep 0.05; done && exec \"$2\" -D -e -f /srv/sshd_config";
        // Whoever ends this program ends the machine as well.
        let process = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child"])
            .args(["--mount-proc", "sh", "-c", script, "sh"])
            .arg(&folder)
            .arg(sshd)
            .stdin(Stdio::null())
            .spawn()
            .context("unshare")?;
        let machine = Machine { number, folder, ssh_config: ssh_config.to_owned(), process };
        machine.lay_cable()?;
        machine.until("sshd answers", || machine.ssh("true"))?;
        Ok(machine)
    }

    fn lay_cable(&self) -> anyhow::Result<()> {
        let (number, pid) = (self.number, self.process.id().to_string());
        let own = fs::read_link("/proc/thread-self/ns/net")?;
        let its = format!("/proc/{pid}/ns/net");
        self.until("is in its namespace", || {
            ensure!(fs::read_link(&its)? != own, "still in ours");
            Ok(String::new())
        })?;
        let (cable, ours) = (format!("db{number}"), format!("10.9.{number}.1"));
        said("ip", &["link", "add", &cable, "type", "veth", "peer", "name", "eth0", "netns", &pid])?;
        said("ip", &["addr", "add", &format!("{ours}/24"), "dev", &cable])?;
        said("ip", &["link", "set", &cable, "up"])?;
        let theirs = format!("{}/24", address(number));
        let there: [&[&str]; 4] = [
            &["addr", "add", &theirs, "dev", "eth0"],
            &["link", "set", "eth0", "up"],
            &["link", "set", "lo", "up"],
            &["route", "add", "default", "via", &ours],
        ];
        for arguments in there {
            said("nsenter", &[&["-t", &pid, "--net", "ip"], arguments].concat())?;
        }
        fs::write(self.folder.join("cable"), "")?;
        Ok(())
    }

    /// Makes a database here and starts it.
    pub(super) fn make_database(&self, programs: &Path) -> anyhow::Result<()> {
        let data = self.folder.join("data").display().to_string();
        let arguments =
            ["-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8", "--locale=C", "-D", &data];
        as_nobody(&programs.join("initdb"), &arguments)?;
        append(&self.folder.join("data/postgresql.conf"), SETTINGS)?;
        let rules = "host all all 10.9.0.0/16 trust\nhost replication all 10.9.0.0/16 trust\n";
        append(&self.folder.join("data/pg_hba.conf"), rules)?;
        self.start_database(programs)
    }

    /// Makes a standby of `leader` here and starts it.
    pub(super) fn follow(&self, leader: &Machine, programs: &Path) -> anyhow::Result<()> {
        let (data, host) = (self.folder.join("data").display().to_string(), address(leader.number));
        let arguments =
            ["-h", &host, "-U", "postgres", "-R", "-X", "stream", "-c", "fast", "--no-sync", "-D", &data];
        as_nobody(&programs.join("pg_basebackup"), &arguments)?;
        self.start_database(programs)
    }

    fn start_database(&self, programs: &Path) -> anyhow::Result<()> {
        let start = self.folder.join("start");
        fs::write(&start, START.replace("PROGRAMS", &programs.display().to_string()))?;
        said("chmod", &["755", &start.display().to_string()])?;
        self.ssh("/srv/start").map(drop)
    }

    /// From here on a commit waits for a standby.
    pub(super) fn wait_for_a_standby(&self) -> anyhow::Result<()> {
        append(&self.folder.join("data/postgresql.conf"), "synchronous_standby_names = 'ANY 1 (*)'\n")?;
        self.ssh("pkill -HUP --pidfile /srv/data/postmaster.pid").map(drop)
    }

    fn ssh(&self, command: &str) -> anyhow::Result<String> {
        let config = self.ssh_config.display().to_string();
        said("ssh", &["-T", "-F", &config, "-o", "BatchMode=yes", &format!("db{}", self.number), command])
    }

    fn until(&self, what: &str, holds: impl Fn() -> anyhow::Result<String>) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match holds() {
                Ok(_) => return Ok(()),
                Err(error) if Instant::now() >= deadline => {
                    bail!("db{}: never {what}: {error:#}", self.number)
                }
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }
}

fn as_nobody(program: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let program = program.display().to_string();
    said("setpriv", &[&NOBODY[..], &[program.as_str()], arguments].concat()).map(drop)
}

fn append(path: &Path, text: &str) -> anyhow::Result<()> {
    let before = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    // Written in place: the file stays its owner's.
    fs::write(path, before + text).with_context(|| path.display().to_string())
}
