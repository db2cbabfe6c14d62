//! A MariaDB on loopback for the bench of the load generator: made for one bench, gone with it.
//!
//! Owns the server, and how sysbench is started against it. Its programs are those of the engine `galera`.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use engine::Installation;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::load_ours::Served;
use super::load_peers::Sysbench;
use super::load_server::{SESSIONS, said};
use super::load_sides::{Length, SYSBENCH_ROWS, Side, side_of_sysbench};

/// How long the server may take to listen.
const PATIENCE: Duration = Duration::from_secs(60);
/// Its database and its user, who needs no password.
const NAME: &str = "holdfast";

/// The programs of a MariaDB: those of the engine `galera`, which is one.
#[derive(Debug)]
struct Programs(Installation);

impl Programs {
    /// Those found, or else installed into Holdfast's cache directory.
    fn find() -> anyhow::Result<Programs> {
        let galera = engine::registry::named("galera")?;
        let found = match galera.find(None) {
            Ok(found) => found,
            Err(_) => galera.install(&mut |step| println!("{step}"))?,
        };
        Ok(Programs(found))
    }

    fn command(&self, name: &str) -> anyhow::Result<Command> {
        let program =
            self.0.programs.get(name).with_context(|| format!("no {name} in {}", self.0.root.display()))?;
        let mut command = Command::new(program);
        // As its engine file has it.
        let libraries = format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH);
        command.env("LD_LIBRARY_PATH", self.0.root.join(libraries)).stdin(Stdio::null());
        Ok(command)
    }
}

/// A MariaDB of our own.
#[derive(Debug)]
pub(super) struct MariaDb {
    folder: tempfile::TempDir,
    port: u16,
    server: Child,
}

impl MariaDb {
    /// Starts one.
    ///
    /// # Errors
    /// When its programs cannot be had, or it does not come up; the reason.
    pub(super) fn start() -> anyhow::Result<MariaDb> {
        let programs = Programs::find()?;
        let folder = tempfile::Builder::new().prefix("holdfast-bench-").tempdir().context("a folder")?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let (settings, first) = (folder.path().join("my.cnf"), folder.path().join("first.sql"));
        fs::write(&settings, configuration(&programs.0.root, folder.path(), port)).context("my.cnf")?;
        let rights = format!(
            "CREATE DATABASE {NAME} CHARACTER SET utf8mb4;\nCREATE USER {NAME};\nGRANT ALL ON *.* TO {NAME};\n"
        );
        fs::write(&first, rights).context("first.sql")?;
        let defaults = format!("--defaults-file={}", settings.display());
        let mut install = programs.command("mariadb-install-db")?;
        install.args([&defaults, &format!("--basedir={}", programs.0.root.join("usr").display())]);
        install.args(["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"]);
        said(&mut install)?;
        let mut command = programs.command("mariadbd")?;
        command.args([defaults, format!("--init-file={}", first.display())]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // SAFETY: prctl is safe to call between fork and exec. It ends the server when this process dies.
        unsafe { command.pre_exec(|| Ok(nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?)) };
        let mut server = MariaDb { server: command.spawn().context("start mariadbd")?, folder, port };
        server.await_listening()?;
        Ok(server)
    }

    fn await_listening(&mut self) -> anyhow::Result<()> {
        let began = std::time::Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            if let Some(status) = self.server.try_wait()? {
                let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
                bail!("mariadbd: {status}: {}", log.lines().last().unwrap_or_default());
            }
            ensure!(began.elapsed() < PATIENCE, "mariadbd does not listen on port {}", self.port);
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// Makes sysbench's table.
    pub(super) fn prepare_sysbench(&self, sysbench: &Sysbench) -> anyhow::Result<()> {
        said(&mut sysbench.command(&self.sysbench_options(1), "prepare")).map(drop)
    }

    /// sysbench's point select.
    pub(super) fn sysbench(&self, sysbench: &Sysbench, clients: u32, length: Length) -> anyhow::Result<Side> {
        side_of_sysbench(sysbench, self.sysbench_options(clients), clients, length)
    }

    fn sysbench_options(&self, clients: u32) -> Vec<String> {
        vec![
            "--db-driver=mysql".to_owned(),
            "--mysql-host=127.0.0.1".to_owned(),
            format!("--mysql-port={}", self.port),
            format!("--mysql-user={NAME}"),
            format!("--mysql-db={NAME}"),
            "--tables=1".to_owned(),
            format!("--table-size={SYSBENCH_ROWS}"),
            format!("--threads={clients}"),
        ]
    }
}

impl Served for MariaDb {
    fn url(&self) -> String {
        format!("mysql://{NAME}@127.0.0.1:{}/{NAME}", self.port)
    }

    fn runs(&self) -> PathBuf {
        self.folder.path().join("runs")
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        // Nothing of it is kept, so that it need not end in order.
        let _ = kill(Pid::from_raw(self.server.id().cast_signed()), Signal::SIGKILL);
        let _ = self.server.wait();
    }
}

/// A server that leaves syncing to the machine, as the PostgreSQL of this bench does: clients are measured, not disks.
fn configuration(root: &Path, folder: &Path, port: u16) -> String {
    let (usr, folder) = (root.join("usr"), folder.display());
    let usr = usr.display();
    // It refuses to run as root unless it is told to.
    let user = if nix::unistd::geteuid().is_root() { "user = root\n" } else { "" };
    format!(
        "[mysqld]\n{user}basedir = {usr}\nlc_messages_dir = {usr}/share/mysql\n\
         character_sets_dir = {usr}/share/mysql/charsets\nplugin_dir = {usr}/lib/mysql/plugin\n\
         datadir = {folder}/data\ntmpdir = {folder}\nsocket = {folder}/socket\npid_file = {folder}/pid\n\
         log_error = {folder}/log\nbind_address = 127.0.0.1\nport = {port}\nskip_name_resolve = ON\n\
         performance_schema = OFF\nmax_connections = {SESSIONS}\ninnodb_buffer_pool_size = 256M\n\
         innodb_flush_log_at_trx_commit = 0\ninnodb_flush_method = nosync\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_listens_on_loopback_alone_and_keeps_everything_in_its_folder() {
        let text = configuration(Path::new("/unpacked"), Path::new("/made"), 4_000);
        let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(&format!("{name} = ")));
        assert_eq!((value("bind_address"), value("port")), (Some("127.0.0.1"), Some("4000")));
        for name in ["datadir", "tmpdir", "socket", "pid_file", "log_error"] {
            assert!(value(name).is_some_and(|path| path.starts_with("/made")), "{name}: {text}");
        }
        assert_eq!(value("basedir"), Some("/unpacked/usr"));
    }
}
