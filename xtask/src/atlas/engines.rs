//! The engines of the atlas, as their scenarios have them. An engine more is one entry more.

/// An engine in the atlas.
#[derive(Debug)]
pub(super) struct EngineSetting {
    /// Its name in files and cells.
    pub(super) name: &'static str,
    /// As scenarios name it.
    pub(super) engine: &'static str,
    /// Whether one of its nodes leads, so that a fault can be aimed at that role.
    pub(super) has_leader: bool,
    /// Further lines of `database`.
    pub(super) database: &'static str,
    /// The loads, without where they come from.
    pub(super) loads: &'static [&'static str],
    /// Seconds until its figures are even.
    pub(super) warm_up_s: u32,
    /// Seconds after the fault's phase in which it may recover.
    pub(super) recovery_s: u32,
    /// How the setting differs from what one might expect, for the page.
    pub(super) remark: &'static str,
}

const LEDGER: &str = "workload: ledger, clients: 4";
const REGISTER: &str = "workload: register, clients: 3";
const APPEND: &str = "workload: append, clients: 3";
const BANK: &str = "workload: bank, clients: 3";

pub(super) static ENGINES: [EngineSetting; 10] = [
    EngineSetting {
        name: "postgres",
        engine: "postgres",
        has_leader: true,
        database: "  replication: { synchronous: any 1 }\n  failover: { promote: { after: 3s } }\n",
        loads: &[LEDGER, APPEND],
        warm_up_s: 3,
        recovery_s: 12,
        remark: "three nodes, any one standby acknowledges; the platform promotes after 3 s and fences the old primary",
    },
    EngineSetting {
        name: "patroni",
        engine: "patroni",
        has_leader: true,
        database: "  replication: { synchronous: any 1 }\n",
        loads: &[LEDGER, APPEND],
        warm_up_s: 3,
        recovery_s: 20,
        remark: "three nodes, strictly synchronous, etcd beside each node",
    },
    EngineSetting {
        name: "repmgr",
        engine: "repmgr",
        has_leader: true,
        database: "  replication: { synchronous: any 1 }\n",
        loads: &[LEDGER, APPEND],
        warm_up_s: 3,
        recovery_s: 30,
        remark: "three nodes, any one standby acknowledges; standbys promote one of them after three attempts, a second \
                 apart, to reach the primary, and nobody fences the old one",
    },
    EngineSetting {
        name: "etcd",
        engine: "etcd",
        has_leader: true,
        database: "",
        loads: &[LEDGER, REGISTER],
        warm_up_s: 3,
        recovery_s: 12,
        remark: "three members, as shipped, in the version of the distribution",
    },
    EngineSetting {
        name: "etcd-3.5",
        engine: "etcd",
        has_leader: true,
        database: "  version: \"3.5\"\n",
        loads: &[LEDGER, REGISTER],
        warm_up_s: 3,
        recovery_s: 12,
        remark: "the same in version 3.5.1, to tell what changed; that version is known to let members diverge when one is killed (3.5.3 mends it)",
    },
    EngineSetting {
        name: "cassandra",
        engine: "cassandra",
        has_leader: false,
        database: "  replication: { copies: 3 }\n",
        loads: &[LEDGER, REGISTER],
        warm_up_s: 8,
        recovery_s: 30,
        remark: "three copies, reads and writes at QUORUM, registers by lightweight transactions, commit log synced periodically",
    },
    EngineSetting {
        name: "ignite",
        engine: "ignite",
        has_leader: false,
        database: "",
        loads: &["workload: ledger, clients: 3", APPEND],
        warm_up_s: 10,
        recovery_s: 40,
        remark: "three nodes, each with a copy of every partition, of which each is a Raft group; a write is acknowledged \
                 before it is synced, as shipped",
    },
    EngineSetting {
        name: "galera",
        engine: "galera",
        has_leader: false,
        database: "",
        loads: &[LEDGER, BANK, APPEND],
        warm_up_s: 4,
        recovery_s: 20,
        remark: "three nodes, all of which take writes",
    },
    EngineSetting {
        name: "redis",
        engine: "redis",
        has_leader: true,
        database: "  replication: { synchronous: off }\n",
        loads: &[LEDGER],
        warm_up_s: 3,
        recovery_s: 20,
        remark: "a primary, two replicas, Sentinel beside each; asynchronous, append-only file synced once a second",
    },
    EngineSetting {
        name: "control",
        engine: "control",
        has_leader: true,
        database: "  replication: { synchronous: any 1 }\n  failover: { promote: { after: 3s } }\n",
        loads: &[LEDGER, REGISTER],
        warm_up_s: 3,
        recovery_s: 12,
        remark: "our own small database, to compare with: it does what it says and nothing else",
    },
];
