//! PostgreSQL in pods: what each pod's script makes and runs, and how the cluster is asked when a pod's own network is between.
//!
//! Owns the script. The first node's pod leads, the others stream from it. Nobody promotes a standby: the leader comes back with its
//! volume. What a pod's volume has lost is what its node's had not synced.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::admin::ask_once;
use super::bootstrap::{EMPTY_WRITE, Steps, leader_and_standbys};
use super::configuration::{self, DATABASE, HOST_BASED_AUTHENTICATION, USER};
use super::{AdminQuery, CONFIGURATION_FILE, Postgres, killed};
use crate::pods::{FILES, InPods, PodNetwork, PodPlan, Readiness};
use crate::postgres::admin::Rows;
use crate::{Cluster, Engine, EngineError, Killed, Node, Roles};

/// The folder in which a pod finds its volume.
const DATA: &str = "/data";
/// Its access rules, beside the configurations of the members.
const ACCESS: &str = "pg_hba.conf";
/// What the name of a standby's file ends with that says how it reaches the leader.
const LEADER: &str = ".leader";
/// How long an answer may take while the cluster forms.
const ONE_ANSWER: Duration = Duration::from_secs(5);
/// How often it is asked then.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// Makes the data where there are none, and becomes the server. What it makes is whole and synced before it gets its name: a pod
/// may lose its node's power at any moment.
const SCRIPT: &str = "\
leader=\"FILES/${MEMBER}LEADER\"
make() {
  if [ ! -e \"$leader\" ]; then
    initdb -D DATA/new -U USER -A trust -k --locale=C --encoding=UTF8 >/dev/null &&
    cp FILES/ACCESS DATA/new/ACCESS &&
    printf \"include 'DATA/OWN'\\n\" >>DATA/new/postgresql.conf
  else
    pg_basebackup -D DATA/new -d \"$(cat \"$leader\")\" -X stream -c fast &&
    touch DATA/new/standby.signal
  fi
}
cp \"FILES/$MEMBER\" DATA/OWN || exit 1
[ -s DATA/database/PG_VERSION ] || {
  until rm -rf DATA/new && make; do sleep 1; done
  chmod 700 DATA/new && /usr/bin/sync DATA/new/* DATA/new && mv DATA/new DATA/database && /usr/bin/sync DATA
} || exit 1
exec postgres -D DATA/database";

/// Questions over TCP, each on a connection of its own: a pod that was made again has another address behind its node's.
#[derive(Debug)]
pub struct TcpAdmin {
    port: u16,
}

impl TcpAdmin {
    /// For databases that answer at this port of their nodes.
    #[must_use]
    pub fn new(port: u16) -> Self {
        Self { port }
    }
}

impl AdminQuery for TcpAdmin {
    fn query_within(&self, node: &dyn Node, sql: &str, patience: Duration) -> Result<Rows, EngineError> {
        let began = Instant::now();
        let asked = node.connect(self.port, patience).and_then(|stream| {
            ask_once(stream, USER, DATABASE, sql, patience.saturating_sub(began.elapsed()))
        });
        asked.map_err(|source| EngineError::Silent { node: node.name().to_owned(), source })
    }
}

impl InPods for Postgres {
    fn engine(&self) -> &dyn Engine {
        self
    }

    fn pod_plan(&self, nodes: &[Arc<dyn Node>], first: IpAddr, _: &Path) -> Result<PodPlan, EngineError> {
        let (leader, standbys) = leader_and_standbys(nodes)?;
        self.enrol(leader, standbys)?;
        let port = self.configuration.port;
        let mut files = BTreeMap::from([(ACCESS.to_owned(), HOST_BASED_AUTHENTICATION.to_owned())]);
        let names: Vec<&str> = nodes.iter().map(|node| node.name()).collect();
        for name in &names {
            files.insert((*name).to_owned(), self.configuration_in_pod(name, &names, first));
        }
        for standby in standbys {
            let connection = configuration::connection_string(standby.name(), first, port);
            files.insert(format!("{}{LEADER}", standby.name()), connection);
        }
        let installation = self.releases.first();
        let pg_isready = installation.bin.join("pg_isready").display().to_string();
        let ready =
            [&pg_isready, "-h", "127.0.0.1", "-p", &port.to_string(), "-U", USER].map(str::to_owned).to_vec();
        let script = SCRIPT
            .replace("DATA", DATA)
            .replace("FILES", FILES)
            .replace("ACCESS", ACCESS)
            .replace("OWN", CONFIGURATION_FILE)
            .replace("LEADER", LEADER)
            .replace("USER", USER);
        let environment = Self::environment(installation);
        Ok(PodPlan {
            script,
            environment,
            files,
            volume: DATA.into(),
            ready: Readiness::Command(ready),
            port,
            network: PodNetwork::Own,
            readable: vec![installation.root.clone()],
            writable: Vec::new(),
        })
    }

    fn form(&self, nodes: &[Arc<dyn Node>], patience: Duration) -> Result<Cluster, EngineError> {
        let (leader, standbys) = leader_and_standbys(nodes)?;
        let mut steps = Steps::new();
        let deadline = Instant::now() + patience;
        for node in nodes {
            while let Err(error) = self.answers(node.as_ref(), ONE_ANSWER) {
                if Instant::now() >= deadline {
                    return Err(error);
                }
                std::thread::sleep(ASK_AGAIN);
            }
        }
        steps.done("servers answer");
        let streaming = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'";
        let all = standbys.len().to_string();
        while self.value(leader, streaming)? != all {
            if Instant::now() >= deadline {
                let (node, what) = (leader.name().to_owned(), "not every standby streams".to_owned());
                return Err(EngineError::NotReady { node, what, waited: patience, log: String::new() });
            }
            std::thread::sleep(ASK_AGAIN);
        }
        steps.done("standbys streaming");
        self.admin.query_within(leader, EMPTY_WRITE, patience)?;
        steps.done("first write acknowledged");
        Ok(steps.cluster(leader, standbys))
    }

    fn answers(&self, node: &dyn Node, patience: Duration) -> Result<(), EngineError> {
        self.takes_writes(node, patience).map(drop)
    }

    fn leader(&self, nodes: &[Arc<dyn Node>]) -> Roles {
        Engine::leader(self, nodes)
    }

    fn killed(&self, lines_with: &dyn Fn(&str) -> Vec<String>) -> Vec<Killed> {
        killed::in_log(&lines_with(killed::TERMINATED).join("\n"))
    }
}

impl Postgres {
    /// The configuration of one member. A pod's address is not known before it is there.
    fn configuration_in_pod(&self, name: &str, all: &[&str], first: IpAddr) -> String {
        let others: Vec<&str> = all.iter().copied().filter(|other| *other != name).collect();
        let upstream = (all.first() != Some(&name))
            .then_some(configuration::Upstream { address: first, has_slot: false });
        let placement = configuration::Placement {
            name,
            addresses: vec![IpAddr::from(Ipv4Addr::UNSPECIFIED)],
            socket_directory: "/tmp".to_owned(),
            acknowledgements: configuration::acknowledgements(self.configuration.synchronous, others.len()),
            others,
            upstream,
        };
        configuration::text(&self.configuration, &placement)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Configuration, Installation, Origin, Synchronous};

    fn engine() -> Postgres {
        let bin = std::path::PathBuf::from("/usr/lib/postgresql/15/bin");
        let installation = Installation {
            root: bin.clone(),
            bin,
            version: "15.1".to_owned(),
            origin: Origin::Explicit,
            library_path: None,
            programs: BTreeMap::new(),
            system: None,
        };
        let configuration = Configuration {
            synchronous: Synchronous::Any(1),
            settings: BTreeMap::from([("fsync".to_owned(), "off".to_owned())]),
            port: 5432,
            copies: 1,
            places: Vec::new(),
            max_connections: 100,
            upgrade: None,
        };
        let admin = Box::new(TcpAdmin::new(5432));
        Postgres::with_admin(installation, configuration, admin).expect("an engine")
    }

    #[test]
    fn a_member_s_configuration_names_whom_it_follows_and_no_slot() {
        let first = IpAddr::from([10, 96, 0, 100]);
        let of = |name| engine().configuration_in_pod(name, &["n1", "n2", "n3"], first);
        let (leads, follows) = (of("n1"), of("n2"));
        assert!(!leads.contains("primary_conninfo"), "{leads}");
        assert!(leads.contains(r#"'ANY 1 ("n2", "n3")'"#), "{leads}");
        assert!(follows.contains("primary_conninfo = 'host=10.96.0.100 port=5432"), "{follows}");
        assert!(follows.contains("application_name=n2"), "{follows}");
        for text in [leads, follows] {
            assert!(!text.contains("primary_slot_name"), "{text}");
            assert!(text.contains("listen_addresses = '0.0.0.0'"), "{text}");
            assert!(text.contains("fsync = 'off'"), "{text}");
        }
    }
}
