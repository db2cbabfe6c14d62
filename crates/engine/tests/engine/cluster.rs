//! The PostgreSQL engine over real servers on loopback addresses: boot, loss of the leader, return.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use engine::postgres::{AdminQuery, Postgres, SocketAdmin};
use engine::{Configuration, Engine as _, EngineError, Node, Promotion, RejoinMethod, Synchronous};

use crate::loopback::{LoopbackNode, Machines, server};
use crate::shipped::configuration;

/// Long enough for anything on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Long enough to see that something does not happen.
const MOMENT: Duration = Duration::from_millis(1500);
const WRITE: &str = "INSERT INTO seen VALUES (1)";

/// A cluster that is up, with a table to write to.
struct Trial {
    machines: Machines,
    postgres: Postgres,
    admin: SocketAdmin,
}

impl Trial {
    fn new(
        count: u8,
        synchronous: Synchronous,
        settings: &[(&str, &str)],
    ) -> Option<(Self, Result<(), EngineError>)> {
        Self::asked_by(|port| Box::new(SocketAdmin::new(port)), count, (synchronous, settings))
    }

    fn asked_by(
        admin: impl FnOnce(u16) -> Box<dyn AdminQuery>,
        count: u8,
        (synchronous, settings): (Synchronous, &[(&str, &str)]),
    ) -> Option<(Self, Result<(), EngineError>)> {
        let installation = server()?;
        let machines = Machines::new(count);
        let configuration = Configuration { synchronous, port: machines.port, ..configuration(settings) };
        let installation = machines.reachable(installation);
        let admin = admin(machines.port);
        let postgres = Postgres::with_admin(installation, configuration, admin).expect("a configuration");
        let all: Vec<usize> = (1..=usize::from(count)).collect();
        let made = postgres.bootstrap(&machines.some(&all)).map(|cluster| {
            assert_eq!(cluster.leader.as_deref(), Some("n1"));
            assert_eq!(cluster.followers.len() + 1, usize::from(count));
        });
        let admin = SocketAdmin::new(machines.port);
        Some((Self { machines, postgres, admin }, made))
    }

    fn up(synchronous: Synchronous) -> Option<Self> {
        let (trial, made) = Self::new(3, synchronous, &[])?;
        made.unwrap_or_else(|error| panic!("{error}"));
        trial.ask(1, "CREATE TABLE seen (value bigint)");
        Some(trial)
    }

    fn node(&self, number: usize) -> &LoopbackNode {
        &self.machines.nodes[number - 1]
    }

    /// The first column of the answer.
    fn ask(&self, number: usize, sql: &str) -> Vec<String> {
        let rows = self
            .admin
            .query_within(self.node(number), sql, PATIENCE)
            .unwrap_or_else(|error| panic!("{error}"));
        rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect()
    }

    /// Asks until the answer is the one wanted.
    fn await_answer(&self, number: usize, sql: &str, wanted: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = self.ask(number, sql);
            if answer == [wanted] {
                return;
            }
            assert!(Instant::now() < deadline, "n{number} answers {answer:?} to {sql}, not {wanted}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Whether a write is acknowledged within a moment.
    fn writes_stand_still(&self, number: usize) -> bool {
        match self.admin.query_within(self.node(number), WRITE, MOMENT) {
            Ok(_) => false,
            Err(EngineError::Silent { source, .. }) if source.kind() == std::io::ErrorKind::TimedOut => true,
            Err(error) => panic!("{error}"),
        }
    }

    fn start(&self, number: usize) {
        self.postgres.start(self.node(number)).unwrap_or_else(|error| panic!("{error}"));
        self.postgres.wait_ready(self.node(number), PATIENCE).unwrap_or_else(|error| panic!("{error}"));
    }

    fn promote(&self, candidates: &[usize]) -> Promotion {
        self.postgres.promote(&self.machines.some(candidates)).unwrap_or_else(|error| panic!("{error}"))
    }

    fn rejoin(&self, number: usize, leader: usize) -> RejoinMethod {
        let rejoined = self.postgres.rejoin(self.node(number), self.node(leader));
        let rejoined =
            rejoined.unwrap_or_else(|error| panic!("{error}\n{}", self.node(number).log("postgres")));
        assert!(rejoined.method != RejoinMethod::Copy || !rejoined.notes.is_empty(), "a copy has its reason");
        rejoined.method
    }

    fn check_roles(&self, leaders: &[&str], followers: &[&str], silent: &[&str]) {
        let roles = self.postgres.leader(&self.machines.some(&[1, 2, 3]));
        let silent_now: Vec<&str> = roles.silent.keys().map(String::as_str).collect();
        assert_eq!(
            (roles.leaders.as_slice(), roles.followers.as_slice()),
            (&owned(leaders)[..], &owned(followers)[..])
        );
        assert_eq!(silent_now, silent);
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn acknowledged_rows_survive_the_leader_and_it_comes_back_by_rewinding() {
    let Some(trial) = Trial::up(Synchronous::Any(1)) else { return };
    trial.check_roles(&["n1"], &["n2", "n3"], &[]);
    // n2 is away while rows are acknowledged, so that n3 alone has them and must be chosen although n2 comes first.
    trial.node(2).power_off();
    let (acknowledged, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    let rows = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let client = SocketAdmin::new(trial.machines.port);
            let mut rows = Vec::new();
            for value in 0.. {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                let sql = format!("INSERT INTO seen VALUES ({value})");
                if client.query_within(trial.node(1), &sql, MOMENT).is_err() {
                    break;
                }
                rows.push(value.to_string());
                acknowledged.store(rows.len() > 50, Ordering::SeqCst);
            }
            rows
        });
        while !acknowledged.load(Ordering::SeqCst) && !writer.is_finished() {
            std::thread::sleep(Duration::from_millis(10));
        }
        // Much that only the leader has, for nobody acknowledged it: more than the sockets in between can hold.
        trial.node(3).pause(true);
        let alone = "SET synchronous_commit = local; CREATE TABLE alone AS \
                     SELECT repeat(md5(i::text), 30) FROM generate_series(1, 40000) AS i";
        trial.admin.query_within(trial.node(1), alone, PATIENCE).expect("written");
        trial.node(1).power_off();
        trial.node(3).pause(false);
        stop.store(true, Ordering::SeqCst);
        writer.join().expect("the writer")
    });
    assert!(rows.len() > 50);
    trial.start(2);
    trial.check_roles(&[], &["n2", "n3"], &["n1"]);

    let promotion = trial.promote(&[2, 3]);
    assert_eq!(
        (promotion.leader.as_str(), promotion.followers),
        ("n3", owned(&["n2"])),
        "{:?}",
        promotion.positions
    );
    assert_eq!(promotion.notes, Vec::<String>::new());
    let there = trial.ask(3, "SELECT value FROM seen ORDER BY value");
    let lost: Vec<&String> = rows.iter().filter(|row| !there.contains(row)).collect();
    assert!(lost.is_empty(), "acknowledged and gone: {lost:?}");
    trial.ask(3, WRITE);

    // The old leader may not come back as what it was.
    let refused = trial.postgres.start(trial.node(1));
    assert!(matches!(&refused, Err(EngineError::Fenced { leader, .. }) if leader == "n3"), "{refused:?}");
    assert_eq!(trial.rejoin(1, 3), RejoinMethod::Rewind);
    trial.check_roles(&["n3"], &["n1", "n2"], &[]);
    trial.ask(3, "INSERT INTO seen VALUES (-7)");
    for follower in [1, 2] {
        trial.await_answer(follower, "SELECT count(*) FROM seen WHERE value = -7", "1");
        trial.await_answer(follower, "SELECT count(*) FROM pg_replication_slots", "0");
    }
}

#[test]
fn a_leader_that_restarts_leads_again_and_its_standbys_find_it() {
    let Some(trial) = Trial::up(Synchronous::Any(1)) else { return };
    trial.ask(1, WRITE);
    trial.node(1).power_off();
    // Its lock files name a process that lives: another node's, as a fresh process table would have it.
    let squatter = trial.node(2).processes()[0].to_string();
    let pid_file = trial.node(1).volume().join("data/postmaster.pid");
    let socket_lock = trial.node(1).socket_directory().join(format!(".s.PGSQL.{}.lock", trial.machines.port));
    for path in [pid_file, socket_lock] {
        let text = std::fs::read_to_string(&path).expect("a stale lock file");
        let (_, rest) = text.split_once('\n').expect("lines");
        std::fs::write(&path, format!("{squatter}\n{rest}")).expect("written");
    }
    trial.start(1);
    trial.check_roles(&["n1"], &["n2", "n3"], &[]);
    assert_eq!(trial.ask(1, "SELECT count(*) FROM seen"), ["1"]);
    trial.ask(1, WRITE);
    trial.await_answer(1, "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'", "2");
    let again = trial.postgres.start(trial.node(1));
    assert!(matches!(again, Err(EngineError::Running { .. })), "{again:?}");
    // The server alone dies: its lock file goes on saying that it is ready.
    trial.node(1).crash();
    trial.start(1);
    trial.check_roles(&["n1"], &["n2", "n3"], &[]);
}

#[test]
fn any_one_waits_for_a_standby_and_off_for_none() {
    for (synchronous, stand_still) in [(Synchronous::Any(1), true), (Synchronous::Off, false)] {
        let Some(trial) = Trial::up(synchronous) else { return };
        trial.node(2).power_off();
        assert!(!trial.writes_stand_still(1) || synchronous == Synchronous::Off, "n3 suffices");
        trial.node(3).power_off();
        assert_eq!(trial.writes_stand_still(1), stand_still, "{synchronous}");
        trial.start(2);
        trial.ask(1, WRITE);
    }
}

#[test]
fn all_waits_for_every_standby_and_after_a_promotion_for_those_that_are_left() {
    let Some(trial) = Trial::up(Synchronous::All) else { return };
    trial.node(2).power_off();
    assert!(trial.writes_stand_still(1));
    trial.node(1).power_off();
    let promotion = trial.promote(&[3]);
    assert_eq!(promotion.leader, "n3");
    let lowered = "commits wait for 0 acknowledgements instead of 2 until the lost nodes are back";
    assert_eq!(promotion.notes, [lowered]);
    trial.ask(3, WRITE);

    let refused = trial.postgres.start(trial.node(2));
    assert!(matches!(refused, Err(EngineError::Fenced { .. })), "{refused:?}");
    assert_eq!(trial.rejoin(2, 3), RejoinMethod::Follow);
    assert_eq!(trial.ask(3, "SHOW synchronous_standby_names"), [r#"ANY 1 ("n1", "n2")"#]);

    // A rejoin that was broken off leaves data that nothing may be built on.
    trial.node(1).write_file("rejoining".as_ref(), "").expect("written");
    assert_eq!(trial.rejoin(1, 3), RejoinMethod::Copy);
    trial.await_answer(3, "SHOW synchronous_standby_names", r#"ANY 2 ("n1", "n2")"#);
    trial.ask(3, WRITE);
    trial.check_roles(&["n3"], &["n1", "n2"], &[]);
}

#[test]
fn data_that_cannot_be_rewound_are_copied() {
    let Some(trial) = Trial::up(Synchronous::Off) else { return };
    trial.node(1).power_off();
    let promotion = trial.promote(&[2, 3]);
    let new_leader = if promotion.leader == "n2" { 2 } else { 3 };
    std::fs::write(trial.node(1).volume().join("data/global/pg_control"), "torn").expect("written");
    assert_eq!(trial.rejoin(1, new_leader), RejoinMethod::Copy);
    // Replication was asynchronous: the table may have been lost with the leader.
    trial.ask(new_leader, "CREATE TABLE IF NOT EXISTS seen (value bigint)");
    trial.ask(new_leader, "INSERT INTO seen VALUES (3)");
    // A table that was made anew may not have reached the copy yet, and to ask for its rows would be refused.
    trial.await_answer(1, "SELECT count(*) FROM pg_class WHERE relname = 'seen'", "1");
    trial.await_answer(1, "SELECT max(value) FROM seen", "3");
}

#[test]
fn nobody_is_promoted_beside_a_leader_and_two_leaders_are_both_named() {
    let Some(trial) = Trial::up(Synchronous::Off) else { return };
    let refused = trial.postgres.promote(&trial.machines.some(&[1, 2, 3]));
    assert!(matches!(&refused, Err(EngineError::AlreadyLeads { node }) if node == "n1"), "{refused:?}");
    let refused = trial.postgres.rejoin(trial.node(2), trial.node(1));
    assert!(matches!(refused, Err(EngineError::Running { .. })), "{refused:?}");
    let refused = trial.postgres.promote(&[]);
    assert!(matches!(refused, Err(EngineError::NoCandidate { .. })), "{refused:?}");
    trial.ask(2, "SELECT pg_promote()");
    trial.check_roles(&["n1", "n2"], &["n3"], &[]);
    assert!(trial.postgres.leader(&trial.machines.some(&[1, 2])).is_split_brain());
}

/// Does what it is asked, and loses the first answer to a promotion, when that has come about.
struct LosesAnAnswer {
    admin: SocketAdmin,
    has_lost: AtomicBool,
}

impl AdminQuery for LosesAnAnswer {
    fn query_within(
        &self,
        node: &dyn Node,
        sql: &str,
        patience: Duration,
    ) -> Result<Vec<Vec<Option<String>>>, EngineError> {
        let answer = self.admin.query_within(node, sql, patience)?;
        if sql.contains("pg_promote") && !self.has_lost.swap(true, Ordering::AcqRel) {
            let is_standby = "SELECT pg_is_in_recovery()";
            while self.admin.query_within(node, is_standby, patience)? != [[Some("f".to_owned())]] {
                std::thread::sleep(Duration::from_millis(50));
            }
            let source = std::io::ErrorKind::TimedOut.into();
            return Err(EngineError::Silent { node: node.name().to_owned(), source });
        }
        Ok(answer)
    }
}

#[test]
fn a_promotion_whose_answer_was_lost_is_brought_to_its_end_and_the_old_leader_rejoins() {
    let admin = |port| {
        let admin = SocketAdmin::new(port);
        Box::new(LosesAnAnswer { admin, has_lost: AtomicBool::new(false) }) as Box<dyn AdminQuery>
    };
    let Some((trial, made)) = Trial::asked_by(admin, 3, (Synchronous::Any(1), &[])) else { return };
    made.unwrap_or_else(|error| panic!("{error}"));
    trial.ask(1, "CREATE TABLE seen (value bigint)");
    trial.node(1).power_off();
    let lost = trial.postgres.promote(&trial.machines.some(&[2, 3]));
    assert!(matches!(lost, Err(EngineError::Silent { .. })), "{lost:?}");
    let promotion = trial.promote(&[2, 3]);
    let leads = "leads since an attempt before, which did not come to its end";
    assert!(promotion.notes.iter().any(|note| note.contains(leads)), "{:?}", promotion.notes);
    let (leader, other) = if promotion.leader == "n2" { (2, 3) } else { (3, 2) };
    assert_eq!(promotion.followers, [format!("n{other}")]);
    trial.ask(leader, WRITE);
    trial.rejoin(1, leader);
    trial.await_answer(1, "SELECT count(*) FROM seen", "1");
    let again = trial.postgres.promote(&trial.machines.some(&[leader, other]));
    assert!(matches!(again, Err(EngineError::AlreadyLeads { .. })), "it is at its end: {again:?}");
}

#[test]
fn a_promotion_that_may_have_missed_acknowledged_rows_says_so() {
    let Some(trial) = Trial::up(Synchronous::Any(1)) else { return };
    trial.node(1).power_off();
    trial.node(2).power_off();
    let promotion = trial.promote(&[2, 3]);
    assert_eq!(promotion.leader, "n3");
    assert!(
        promotion.notes.iter().any(|note| note.contains("without an answer from n2")),
        "{:?}",
        promotion.notes
    );
}

#[test]
fn a_setting_the_server_does_not_know_ends_the_boot_with_the_servers_own_words() {
    let Some((_trial, made)) = Trial::new(1, Synchronous::Off, &[("work_memory", "8MB")]) else { return };
    let error = made.expect_err("no such setting");
    let words = error.to_string();
    assert!(words.contains("n1") && words.contains("work_memory"), "{words}");
}

#[test]
fn a_single_node_is_a_cluster_and_shuts_down_in_order() {
    let Some((trial, made)) =
        Trial::new(1, Synchronous::Off, &[("default_transaction_isolation", "serializable")])
    else {
        return;
    };
    made.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(trial.ask(1, "SHOW default_transaction_isolation"), ["serializable"]);
    assert_eq!(trial.postgres.isolation().name(), "serializable");
    // A question that takes long keeps nobody else from asking.
    std::thread::scope(|scope| {
        let long = scope.spawn(|| trial.admin.query_within(trial.node(1), "SELECT pg_sleep(2)", MOMENT));
        while trial.ask(
            1,
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(2)' AND state = 'active'",
        ) == ["0"]
        {
            std::thread::sleep(Duration::from_millis(10));
        }
        let quick = trial.admin.query_within(trial.node(1), "SELECT 7", MOMENT);
        assert_eq!(quick.ok(), Some(vec![vec![Some("7".to_owned())]]));
        assert!(matches!(long.join().expect("asked"), Err(EngineError::Silent { .. })), "its patience ends");
    });
    let wrong = trial.admin.query(trial.node(1), "SELECT nothing_there");
    assert!(matches!(&wrong, Err(EngineError::Refused { code, .. }) if code == "42703"), "{wrong:?}");
    trial.postgres.stop(trial.node(1), PATIENCE).expect("stopped");
    assert!(trial.node(1).log("postgres").contains("database system is shut down"));
    let waited = trial.postgres.wait_ready(trial.node(1), PATIENCE);
    assert!(matches!(waited, Err(EngineError::Exited { .. })), "{waited:?}");
    trial.start(1);
}

#[test]
fn clusters_that_cannot_work_are_refused_before_anything_is_started() {
    let Some(installation) = server() else { return };
    let check = |count: u8, synchronous, expected: &str| {
        let machines = Machines::new(count);
        let configuration = Configuration { synchronous, port: machines.port, ..configuration(&[]) };
        let postgres = Postgres::new(installation.clone(), configuration).expect("a configuration");
        let nodes: Vec<Arc<dyn Node>> = machines.some(&(1..=usize::from(count)).collect::<Vec<_>>());
        let refused =
            postgres.bootstrap(&nodes).map(|cluster| cluster.leader).map_err(|error| error.to_string());
        assert_eq!(refused, Err(expected.to_owned()));
        assert!(machines.nodes.iter().all(|node| node.processes().is_empty()));
    };
    check(0, Synchronous::Off, "no standby could be promoted: a cluster needs a node");
    check(1, Synchronous::Any(1), "`synchronous: any 1` is not possible with 0 standbys");
    check(3, Synchronous::Any(3), "`synchronous: any 3` is not possible with 2 standbys");
    check(3, Synchronous::Any(0), "`synchronous: any 0` is not possible with 2 standbys");
    check(1, Synchronous::All, "`synchronous: all` is not possible with 0 standbys");
}
