//! The server's process on one node: started, awaited, shut down; and the traces of an earlier boot cleared away.
//!
//! Owns when a lock file is stale. Decides no roles: whether a node may start as what its data say it is, is decided
//! here by what the engine remembers, and changed in `promote` and `rejoin` only.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use super::admin::PATIENCE;
use super::{DATA, LOG, Postgres, REJOINING_FILE, file_error};
use crate::process;
use crate::{EngineError, Node, Signal};

/// How often a start is looked at: a file is read, nothing else.
const GLANCE: Duration = Duration::from_millis(10);
/// How long a server that says it is ready may take over its first answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(2);

impl Postgres {
    /// Starts the server in the role its node had, if the cluster has not gone on without it.
    pub(super) fn start_in_its_role(&self, node: &dyn Node) -> Result<(), EngineError> {
        {
            let state = self.state();
            let name = node.name();
            if !state.members.contains_key(name) {
                return Err(EngineError::Stranger { node: name.to_owned() });
            }
            let leader = state.leader.as_deref();
            let follows = state.upstream.get(name).map(String::as_str);
            let in_step =
                if leader == Some(name) { follows.is_none() } else { follows.is_some() && follows == leader };
            if !in_step || !state.present.contains(name) {
                let leader = leader.unwrap_or("nobody").to_owned();
                return Err(EngineError::Fenced { node: name.to_owned(), leader });
            }
        }
        if self.exists(node, REJOINING_FILE)? {
            let leader = self.state().leader.clone().unwrap_or_else(|| "nobody".to_owned());
            return Err(EngineError::Fenced { node: node.name().to_owned(), leader });
        }
        self.launch(node)
    }

    /// Starts the server on the data as they are.
    pub(super) fn launch(&self, node: &dyn Node) -> Result<(), EngineError> {
        self.clear_stale_locks(node)?;
        let boot = node.boot();
        // The server reads its one configuration file, which includes ours; there is no pg_ctl in between.
        let process = node.spawn(&self.command(node, "postgres", &["-D", &Self::data(node)]), LOG)?;
        self.state().processes.insert(node.name().to_owned(), (boot, process));
        Ok(())
    }

    /// Whether the server last started on the node still runs.
    pub(super) fn is_running(&self, node: &dyn Node) -> bool {
        let last = self.state().processes.get(node.name()).copied();
        last.is_some_and(|(boot, process)| boot == node.boot() && node.is_running(process))
    }

    /// Removes lock files that an earlier boot left. Their process number may belong to another process by now, which
    /// would keep the server from starting. Those of this boot are left for the server itself to judge: a server
    /// process may have outlived its parent, which the server can tell from its file and we cannot.
    pub(super) fn clear_stale_locks(&self, node: &dyn Node) -> Result<(), EngineError> {
        if self.is_running(node) {
            return Err(EngineError::Running { node: node.name().to_owned() });
        }
        let last = self.state().processes.get(node.name()).copied();
        if last.is_none_or(|(boot, _)| boot == node.boot()) {
            return Ok(());
        }
        self.remove(node, &format!("{DATA}/postmaster.pid"))?;
        let directory = node.socket_directory_outside();
        let port = self.configuration.port;
        for name in [format!(".s.PGSQL.{port}"), format!(".s.PGSQL.{port}.lock")] {
            match std::fs::remove_file(directory.join(&name)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                // Not ours to remove from here: let the node's own user do it.
                Err(_) => {
                    let inside = node.socket_directory().join(&name).display().to_string();
                    self.run_on(node, "/bin/rm", &["-f", &inside])?;
                }
            }
        }
        Ok(())
    }

    /// Waits until the server says in its lock file that it accepts connections, and then answers one. The file
    /// alone is cheap to look at but may be an earlier server's, which the new one has not replaced yet.
    pub(super) fn await_ready(&self, node: &dyn Node, timeout: Duration) -> Result<(), EngineError> {
        let deadline = Instant::now() + timeout;
        let path = format!("{DATA}/postmaster.pid");
        loop {
            let running = self.is_running(node);
            match node.read_file(Path::new(&path)) {
                Ok(text)
                    if running && says_ready(&text) && self.takes_writes(node, ANSWER_PATIENCE).is_ok() =>
                {
                    return Ok(());
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                // Of a server that has ended on a dead disk, that it has ended is what matters.
                Err(error) if running => return Err(file_error(node, &path, error)),
                Err(_) => {}
            }
            if !running {
                return Err(EngineError::Exited {
                    node: node.name().to_owned(),
                    log: node.log_tail(LOG, 12),
                });
            }
            if Instant::now() >= deadline {
                return Err(self.not_ready(node, "the database is not ready", timeout));
            }
            std::thread::sleep(GLANCE);
        }
    }

    /// What to say of something that did not come about in time.
    pub(super) fn not_ready(&self, node: &dyn Node, what: &str, waited: Duration) -> EngineError {
        process::not_ready(node, LOG, what, waited)
    }

    /// A fast shutdown: sessions are cut off, data flushed. A server that does not end in time is killed.
    pub(super) fn shut_down(&self, node: &dyn Node, timeout: Duration) -> Result<(), EngineError> {
        let last = self.state().processes.get(node.name()).copied();
        let Some((_, process)) = last.filter(|(boot, _)| *boot == node.boot()) else { return Ok(()) };
        if process::end(node, process, Signal::Interrupt, timeout)? {
            return Ok(());
        }
        Err(self.not_ready(node, "the database has not ended", timeout))
    }

    /// Makes the server read its configuration again, and waits until it has: the server itself only passes the
    /// word on, and a step that relies on the new values must not come before they are in force.
    pub(super) fn reload(&self, node: &dyn Node) -> Result<(), EngineError> {
        let loaded = "SELECT pg_conf_load_time()";
        let before = self.value(node, loaded)?;
        if self.value(node, "SELECT pg_reload_conf()")? != "t" {
            return Err(self.not_ready(
                node,
                "the server refuses to read its configuration again",
                Duration::ZERO,
            ));
        }
        let deadline = Instant::now() + PATIENCE;
        while self.value(node, loaded)? == before {
            if Instant::now() >= deadline {
                return Err(self.not_ready(
                    node,
                    "the server has not read its configuration again",
                    PATIENCE,
                ));
            }
            std::thread::sleep(GLANCE);
        }
        Ok(())
    }
}

/// Whether a lock file's eighth line, which the server keeps up to date, says that connections are accepted.
fn says_ready(lock_file: &str) -> bool {
    lock_file.lines().nth(7).is_some_and(|status| status.trim() == "ready")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lock_file: &str, expected: bool) {
        assert_eq!(says_ready(lock_file), expected, "{lock_file:?}");
    }

    #[test]
    fn only_a_server_that_accepts_connections_is_ready() {
        let head = "17\n/data\n1700000000\n5432\n/run/db\n10.0.0.1\n  123 4\n";
        check(&format!("{head}ready   \n"), true);
        check(&format!("{head}starting\n"), false);
        check(&format!("{head}standby \n"), false);
        check(&format!("{head}stopping\n"), false);
        check(head, false);
        check("", false);
        check("ready", false);
    }
}
