//! Real Cassandras for tests: made in a temporary directory, on loopback, gone with their owner.
//!
//! Shared by the tests of `client` and `load`. Where none is installed the test says so and is skipped.

// Each test binary uses its own part of this.
#![allow(dead_code)]

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use client::Endpoint;
use tempfile::TempDir;

/// How long a node may take to serve clients; several share one machine with whatever else runs on it.
const BOOT: Duration = Duration::from_secs(240);

/// What Cassandra needs of Java's own modules.
const EXPORTS: &str = "java.base/jdk.internal.misc java.base/java.lang.ref java.base/sun.nio.ch \
                       java.management.rmi/com.sun.jmx.remote.internal.rmi java.rmi/sun.rmi.registry \
                       java.rmi/sun.rmi.server java.sql/java.sql";
const OPENS: &str = "java.base/java.io java.base/java.lang java.base/java.lang.module \
                     java.base/java.lang.reflect java.base/java.nio java.base/java.util \
                     java.base/jdk.internal.loader java.base/jdk.internal.math java.base/jdk.internal.module \
                     java.base/jdk.internal.ref java.base/jdk.internal.reflect \
                     java.base/jdk.internal.util.jar java.base/sun.nio.ch \
                     jdk.management/com.sun.management.internal";

/// The folder of Cassandra's jars: where Holdfast has installed it, or where its packages put it.
fn jars() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let cache = variable("HOLDFAST_CACHE")
        .or_else(|| variable("XDG_CACHE_HOME").map(|folder| folder.join("holdfast")))
        .or_else(|| variable("HOME").map(|folder| folder.join(".cache/holdfast")))?;
    let installed = fs::read_dir(cache).into_iter().flatten().flatten().map(|entry| entry.path().join("lib"));
    let folders = installed.chain([PathBuf::from("/usr/share/cassandra")]);
    let has_it = |folder: &PathBuf| {
        let files = fs::read_dir(folder).into_iter().flatten().flatten();
        files.into_iter().any(|file| {
            let name = file.file_name().to_string_lossy().into_owned();
            name.contains("cassandra-") && name.contains("-5.") && name.ends_with(".jar")
        })
    };
    folders.into_iter().find(has_it)
}

/// One node of a cluster.
pub struct Server {
    directory: TempDir,
    address: SocketAddr,
    child: Child,
}

impl Server {
    /// Starts a cluster of so many nodes, each in a rack of its own, and waits until all serve clients. `None`, with a word on
    /// the test's output, where there is no Cassandra or no Java.
    pub fn start(nodes: u8, test: &str) -> Option<Vec<Server>> {
        let Some(jars) = jars() else {
            eprintln!("skipped: {test}: no Cassandra 5 in Holdfast's cache or /usr/share/cassandra");
            return None;
        };
        if Command::new("java").arg("-version").output().is_err() {
            eprintln!("skipped: {test}: no java in PATH");
            return None;
        }
        // The ports of a cluster are the same on all its nodes.
        let [port, between] = [free_port(), free_port()];
        let mut servers: Vec<Server> = (1..=nodes)
            .map(|node| Server::launch(&jars, (node, nodes), port, between).expect("java starts"))
            .collect();
        let deadline = Instant::now() + BOOT;
        for server in &mut servers {
            while TcpStream::connect(server.address).is_err() {
                let log = server.directory.path().join("log");
                let ended = server.child.try_wait().expect("a child");
                assert!(
                    ended.is_none() && Instant::now() < deadline,
                    "no Cassandra at {}: {}",
                    server.address,
                    fs::read_to_string(log).unwrap_or_default()
                );
                std::thread::sleep(Duration::from_millis(200));
            }
        }
        Some(servers)
    }

    fn launch(jars: &Path, (node, nodes): (u8, u8), port: u16, between: u16) -> std::io::Result<Server> {
        let directory = TempDir::new()?;
        let folder = directory.path();
        let here = Ipv4Addr::new(127, 0, 0, node);
        let token =
            i128::from(i64::MIN) + (i128::from(u64::MAX) + 1) / i128::from(nodes) * i128::from(node - 1);
        let seeds: Vec<String> = (1..=nodes).map(|node| format!("127.0.0.{node}:{between}")).collect();
        let data = folder.display();
        let settings = format!(
            "cluster_name: tests\nnum_tokens: 1\ninitial_token: {token}\nauto_bootstrap: false\n\
             partitioner: org.apache.cassandra.dht.Murmur3Partitioner\n\
             listen_address: {here}\nrpc_address: {here}\nstorage_port: {between}\n\
             native_transport_port: {port}\nstart_native_transport: true\n\
             endpoint_snitch: GossipingPropertyFileSnitch\n\
             commitlog_sync: batch\ncommitlog_segment_size: 8MiB\nauto_snapshot: false\n\
             key_cache_size: 1MiB\nprepared_statements_cache_size: 5MiB\nmemtable_heap_space: 24MiB\n\
             memtable_offheap_space: 24MiB\nfile_cache_size: 16MiB\nconcurrent_reads: 8\nconcurrent_writes: 8\n\
             data_file_directories: [{data}/data]\ncommitlog_directory: {data}/commitlog\n\
             saved_caches_directory: {data}/saved\nhints_directory: {data}/hints\ncdc_raw_directory: {data}/cdc\n\
             seed_provider: [{{ class_name: org.apache.cassandra.locator.SimpleSeedProvider, \
             parameters: [{{ seeds: \"{}\" }}] }}]\n",
            seeds.join(",")
        );
        fs::write(folder.join("cassandra.yaml"), settings)?;
        fs::write(folder.join("rack.properties"), format!("dc=dc1\nrack=r{node}\n"))?;
        let appender = "<appender name=\"O\" class=\"ch.qos.logback.core.ConsoleAppender\"><encoder>\
             <pattern>%level %msg%n</pattern></encoder></appender>";
        let logging = format!(
            "<configuration>{appender}<root level=\"WARN\"><appender-ref ref=\"O\"/></root></configuration>"
        );
        fs::write(folder.join("logback.xml"), logging)?;
        let log = fs::File::create(folder.join("log"))?;
        let mut command = Command::new("java");
        command.args(["-Xms32m", "-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]);
        command.args(EXPORTS.split(' ').map(|module| format!("--add-exports={module}=ALL-UNNAMED")));
        command.args(OPENS.split(' ').map(|module| format!("--add-opens={module}=ALL-UNNAMED")));
        command.args([
            format!("-Dcassandra.config=file://{data}/cassandra.yaml"),
            format!("-Dcassandra-rackdc.properties=file://{data}/rack.properties"),
            format!("-Dcassandra.storagedir={data}"),
            format!("-Dlogback.configurationFile={data}/logback.xml"),
            format!("-Djava.io.tmpdir={data}"),
        ]);
        command.args([
            "-Dcassandra.skip_wait_for_gossip_to_settle=0",
            "-Dcassandra.ring_delay_ms=1000",
            "-Dcassandra.enable_nodelocal_queries=true",
            "-Djdk.attach.allowAttachSelf=true",
        ]);
        command.arg("-cp").arg(format!("{}/*", jars.display()));
        command.arg("org.apache.cassandra.service.CassandraDaemon");
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .current_dir(folder)
            .process_group(0)
            .spawn()?;
        Ok(Server { address: (here, port).into(), directory, child })
    }

    /// Sends its process a signal, by name.
    #[allow(dead_code, reason = "not every binary of tests stops a server")]
    pub fn signal(&self, signal: &str) {
        let process = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &process]).status().expect("kill");
        assert!(sent.success(), "{signal} was not sent");
    }

    /// Where it serves clients.
    pub fn endpoint(&self) -> Endpoint {
        let node = self.address.ip().to_string();
        Endpoint {
            node: format!("n{}", node.rsplit('.').next().unwrap_or_default()),
            address: self.address.into(),
        }
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
    listener.expect("a free port").port()
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
