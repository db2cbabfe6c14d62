//! One node of Cassandra on loopback for the bench of the load generator, and latte, the generator that is held against ours:
//! both made for one bench.
//!
//! Owns the node, latte's build from its crate, its script and its report. Both sides ask the table of our workload `kv`, by
//! the same statements.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::cpu_account::cpu_of_reaped_children;
use super::load_ours::Served;
use super::load_server::said;
use super::load_sides::{Length, Side};

/// Keys that both sides ask for.
pub(super) const KEYS: u32 = 10_000;
const NAME: &str = "holdfast";
/// How long the node may take to serve clients.
const PATIENCE: Duration = Duration::from_secs(180);
/// Version of latte that is built.
const LATTE_VERSION: &str = "0.29.0";
/// What latte does, in its language: the keyspace for both sides, and our own statements on our own table.
const LATTE_SCRIPT: &str = "\
pub async fn schema(db) {
    db.execute(`CREATE KEYSPACE IF NOT EXISTS holdfast WITH REPLICATION = { 'class' : 'SimpleStrategy', 'replication_factor' : 1 }`).await?;
}

const KEYS = latte::param!(\"keys\", 10000);

pub async fn prepare(db) {
    db.prepare(\"read\", `SELECT k, v FROM holdfast.holdfast_kv WHERE k IN (:k)`).await?;
    db.prepare(\"write\", `INSERT INTO holdfast.holdfast_kv (k, v, w) VALUES (:k, :v, :w)`).await?;
}

pub async fn read(db, i) {
    db.execute_prepared(\"read\", [latte::hash(i) % KEYS]).await?
}

pub async fn write(db, i) {
    db.execute_prepared(\"write\", [i % KEYS, latte::blob(i, 1), i]).await?
}
";

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub(super) enum CqlOperations {
    /// Values by their keys.
    Reads,
    /// Values written over others.
    Writes,
}

impl CqlOperations {
    fn of_latte(self) -> &'static str {
        match self {
            CqlOperations::Reads => "read",
            CqlOperations::Writes => "write",
        }
    }
}

/// A node of our own, and latte.
#[derive(Debug)]
pub(super) struct Cassandra {
    folder: tempfile::TempDir,
    port: u16,
    node: Child,
    latte: PathBuf,
}

/// What latte is called in the result.
pub(super) fn latte_name(connections: u32) -> String {
    match connections {
        1 => format!("latte {LATTE_VERSION}, one connection"),
        _ => format!("latte {LATTE_VERSION}"),
    }
}

/// Builds latte from its crate, unless it is there already; where it lies.
fn latte() -> anyhow::Result<PathBuf> {
    let folder = crate::target_directory().join("bench/latte");
    let program = folder.join("bin/latte");
    if !program.exists() {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut install = Command::new(cargo);
        install.args(["install", "latte-cli", "--locked", "--quiet", "--version", LATTE_VERSION, "--root"]);
        // Its own target folder: it must not wait for a build of ours, nor ours for it.
        said(install.arg(&folder).env("CARGO_TARGET_DIR", folder.join("target")))?;
    }
    Ok(program.canonicalize()?)
}

impl Cassandra {
    /// Starts one, with the keyspace and our table in it.
    ///
    /// # Errors
    /// When Java, Cassandra or latte cannot be had, or the node does not come up; the reason.
    pub(super) fn start(holdfast: &Path) -> anyhow::Result<Cassandra> {
        let latte = latte()?;
        let facts = engine::registry::named("cassandra")?;
        let found = match facts.find(None) {
            Ok(found) => found,
            Err(_) => facts.install(&mut |step| println!("{step}"))?,
        };
        let folder = tempfile::Builder::new().prefix("holdfast-bench-").tempdir().context("a folder")?;
        let free = || -> anyhow::Result<u16> { Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port()) };
        let (port, peer_port) = (free()?, free()?);
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).with_context(|| format!("write {}", path.display()))
        };
        write("cassandra.yaml", &configuration(folder.path(), port, peer_port))?;
        write("logback.xml", LOG)?;
        write("latte.rn", LATTE_SCRIPT)?;
        let engine_file = crate::repository_root().join("engines/cassandra.yaml");
        let engine_file = fs::read_to_string(engine_file).context("engines/cassandra.yaml")?;
        let here = folder.path().display();
        let java = found.programs.get("java").cloned().unwrap_or_else(|| "java".into());
        let mut command = Command::new(java);
        command.args(["-Xms512m", "-Xmx1g", "-Xss256k", "-XX:+UseSerialGC"]).args(java_options(&engine_file));
        command.args([
            format!("-Djava.io.tmpdir={here}"),
            format!("-Djna.tmpdir={here}"),
            format!("-Dlogback.configurationFile={here}/logback.xml"),
            format!("-Dcassandra.config=file://{here}/cassandra.yaml"),
            format!("-Dcassandra.storagedir={here}"),
            "-Dcassandra.skip_wait_for_gossip_to_settle=0".to_owned(),
            "-Dcassandra.ring_delay_ms=1000".to_owned(),
            "-cp".to_owned(),
            format!("{}/*", found.bin.display()),
            "org.apache.cassandra.service.CassandraDaemon".to_owned(),
        ]);
        let log = fs::File::create(folder.path().join("log")).context("a log")?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        // SAFETY: prctl is safe to call between fork and exec. It ends the node when this process dies.
        unsafe { command.pre_exec(|| Ok(nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?)) };
        let node = command.spawn().context("start java")?;
        let mut cassandra = Cassandra { folder, port, node, latte };
        cassandra.await_serving()?;
        let keys = [format!("preload={KEYS}"), format!("keys={KEYS}")];
        let options = ["--workload", "kv", "--option", &keys[0], "--option", &keys[1]];
        cassandra.holdfast(holdfast, &[&options[..], &["--prepare", "--for", "1s"]].concat())?;
        Ok(cassandra)
    }

    /// Waits until latte can make the keyspace: the port is open before clients are served.
    fn await_serving(&mut self) -> anyhow::Result<()> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.node.try_wait()? {
                let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
                bail!("cassandra: {status}: {}", log.lines().last().unwrap_or_default());
            }
            let made = match TcpStream::connect(("127.0.0.1", self.port)) {
                Ok(_) => said(&mut self.latte_command("schema", &[])).map(drop),
                Err(error) => Err(error.into()),
            };
            match made {
                Ok(()) => return Ok(()),
                Err(error) if began.elapsed() > PATIENCE => {
                    return Err(error.context("cassandra does not serve"));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(500)),
            }
        }
    }

    fn latte_command(&self, job: &str, options: &[String]) -> Command {
        let mut command = Command::new(&self.latte);
        command.arg(job).args(options).args(["--consistency", "QUORUM"]);
        command.arg(self.folder.path().join("latte.rn")).arg(format!("127.0.0.1:{}", self.port));
        command.current_dir(self.folder.path());
        command
    }

    /// latte with so many requests in flight, on so many connections.
    pub(super) fn latte(
        &self,
        asked: CqlOperations,
        (in_flight, connections): (u32, u32),
        length: Length,
    ) -> anyhow::Result<Side> {
        let report = self.folder.path().join("latte.json");
        // An older one must not be taken for this one's.
        if report.exists() {
            fs::remove_file(&report)?;
        }
        let duration = match length {
            Length::Little => in_flight.to_string(),
            Length::Seconds(seconds) => format!("{seconds}s"),
        };
        let options = [
            "--quiet",
            "--functions",
            asked.of_latte(),
            "--concurrency",
            &in_flight.to_string(),
            "--connections",
            &connections.to_string(),
            "--duration",
            &duration,
            "-P",
            &format!("keys={KEYS}"),
            "--output",
            &report.display().to_string(),
        ];
        let before = cpu_of_reaped_children()?;
        said(&mut self.latte_command("run", &options.map(str::to_owned)))?;
        let cpu = cpu_of_reaped_children()?.saturating_sub(before);
        let text = fs::read_to_string(&report).with_context(|| format!("read {}", report.display()))?;
        let (transactions, per_s) = read_latte(&text)?;
        Ok(Side { transactions, per_s, cpu })
    }
}

impl Served for Cassandra {
    fn url(&self) -> String {
        format!("cql://127.0.0.1:{}/{NAME}", self.port)
    }

    fn runs(&self) -> PathBuf {
        self.folder.path().join("runs")
    }
}

impl Drop for Cassandra {
    fn drop(&mut self) {
        // Nothing of it is kept, so that it need not end in order.
        let _ = kill(Pid::from_raw(self.node.id().cast_signed()), Signal::SIGKILL);
        let _ = self.node.wait();
    }
}

/// What Cassandra needs of Java's own modules: it stands in the engine's file, and only there.
fn java_options(engine_file: &str) -> Vec<String> {
    let words = engine_file.lines().filter_map(|line| line.trim().strip_prefix("- \"")?.strip_suffix('"'));
    let needed = ["--add-exports=", "--add-opens=", "-Djdk.attach.", "-Dio.netty."];
    words.filter(|word| needed.iter().any(|begin| word.starts_with(begin))).map(str::to_owned).collect()
}

/// Requests that succeeded, and how many a second, in latte's report.
fn read_latte(text: &str) -> anyhow::Result<(f64, f64)> {
    let report: Value = serde_json::from_str(text).context("latte's report")?;
    let figure = |name: &str| {
        let value = report["result"][name].as_f64();
        value.with_context(|| format!("`result.{name}` in latte's report"))
    };
    ensure!(figure("error_count")? == 0.0, "latte: requests failed: {}", report["result"]["errors"]);
    let (requests, elapsed_s) = (figure("request_count")?, figure("elapsed_time_s")?);
    ensure!(requests > 0.0 && elapsed_s > 0.0, "latte carried no request out");
    Ok((requests, requests / elapsed_s))
}

const LOG: &str = "\
<configuration>
  <appender name=\"out\" class=\"ch.qos.logback.core.ConsoleAppender\">
    <encoder><pattern>%d{HH:mm:ss.SSS} %-5level %logger{0}: %msg%n</pattern></encoder>
  </appender>
  <root level=\"WARN\"><appender-ref ref=\"out\"/></root>
</configuration>
";

/// A node that keeps to itself; its commit log is synced now and then, as Cassandra is shipped.
fn configuration(folder: &Path, port: u16, peer_port: u16) -> String {
    let folder = folder.display();
    format!(
        "cluster_name: bench\npartitioner: org.apache.cassandra.dht.Murmur3Partitioner\nnum_tokens: 1\n\
         initial_token: '0'\nauto_bootstrap: false\nendpoint_snitch: SimpleSnitch\nseed_provider:\n\
         \x20 - class_name: org.apache.cassandra.locator.SimpleSeedProvider\n\
         \x20   parameters: [{{ seeds: '127.0.0.1:{peer_port}' }}]\n\
         listen_address: 127.0.0.1\nrpc_address: 127.0.0.1\nstorage_port: {peer_port}\n\
         native_transport_port: {port}\nauthenticator: AllowAllAuthenticator\nauthorizer: AllowAllAuthorizer\n\
         data_file_directories: ['{folder}/data']\ncommitlog_directory: '{folder}/commitlog'\n\
         hints_directory: '{folder}/hints'\nsaved_caches_directory: '{folder}/saved_caches'\n\
         cdc_raw_directory: '{folder}/cdc'\ncommitlog_sync: periodic\ncommitlog_sync_period: 10000ms\n\
         commitlog_disk_access_mode: legacy\ndisk_access_mode: standard\nauto_snapshot: false\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lattes_report_is_read_and_one_with_errors_is_not() {
        let report = |errors: u32| {
            format!(
                r#"{{"conf": {{}}, "percentiles": [], "result": {{"elapsed_time_s": 2.5, "cpu_time_s": 1.0, "cycle_count": 5000,
                   "request_count": 5000, "errors": ["timed out"], "error_count": {errors}, "row_count": 5000}}}}"#
            )
        };
        assert_eq!(read_latte(&report(0)).ok(), Some((5_000.0, 2_000.0)));
        let refused = read_latte(&report(2)).expect_err("a run with errors").to_string();
        assert!(refused.contains("timed out"), "{refused}");
        assert!(read_latte("{}").is_err() && read_latte("").is_err());
    }

    #[test]
    fn what_java_needs_is_taken_from_the_engines_file() {
        let path = crate::repository_root().join("engines/cassandra.yaml");
        let options = java_options(&fs::read_to_string(path).expect("the file"));
        assert!(
            options.contains(&"--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED".to_owned()),
            "{options:?}"
        );
        assert!(options.len() > 10 && options.iter().all(|option| !option.contains('{')), "{options:?}");
    }

    #[test]
    fn the_node_listens_on_loopback_alone_and_keeps_everything_in_its_folder() {
        let text = configuration(Path::new("/made"), 9_000, 7_000);
        assert!(text.contains("listen_address: 127.0.0.1\n") && text.contains("rpc_address: 127.0.0.1\n"));
        let places = text.lines().filter(|line| line.contains("_director"));
        assert!(
            places.clone().count() == 5 && places.into_iter().all(|line| line.contains("/made/")),
            "{text}"
        );
    }
}
