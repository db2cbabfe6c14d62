//! Loads on a real MariaDB: every workload that has a form in its SQL, and what a crash leaves of acknowledged writes.

use std::collections::BTreeMap;
use std::sync::mpsc::channel;
use std::time::Duration;

use client::SqlSession as _;
use history::{Action, Outcome};
use load::{Batch, Clock, LoadPlan, Protocol, prepare, start};

use crate::mariadb_server::{PASSWORD, Server};
use crate::real_loads::{self, here, is_undisturbed, wait};
use crate::tpcc;

fn plan(workload: &str, options: &[(&str, &str)], clients: u32, servers: &[&Server]) -> LoadPlan {
    let endpoints = servers.iter().zip(1..).map(|(server, place)| server.endpoint(&format!("n{place}")));
    let options = real_loads::texts(options);
    LoadPlan {
        protocol: Protocol::Mysql,
        database: "holdfast".to_owned(),
        user: "holdfast".to_owned(),
        password: Some(PASSWORD.into()),
        ..real_loads::plan_at(workload, &options, clients, endpoints.collect())
    }
}

fn prepared(workload: &str, options: &[(&str, &str)], server: &Server) -> LoadPlan {
    let plan = plan(workload, options, 4, &[server]);
    prepare(&plan, here(), &|_| {}).unwrap_or_else(|error| panic!("{workload}: {error}"));
    plan
}

#[test]
fn standard_workloads_do_what_they_say_in_mysql_s_sql() {
    let Some(server) = wait(Server::here("standard_workloads_do_what_they_say_in_mysql_s_sql", &[])) else {
        return;
    };
    let plan = prepared("tpcb", &[], &server);
    let done = real_loads::run_until(&plan, 300, &[]);
    is_undisturbed(&done);
    real_loads::tpcb_holds(&done, &real_loads::read(&plan));

    let options = [("read", "40%"), ("span", "10%"), ("batch", "3"), ("keys", "200"), ("preload", "150")];
    let plan = prepared("kv", &options, &server);
    let done = real_loads::run_until(&plan, 500, &["read", "write", "span"]);
    is_undisturbed(&done);
    real_loads::cells_are_those_written(&done, &real_loads::read(&plan));

    let plan = prepared("ycsb", &real_loads::YCSB, &server);
    let done = real_loads::run_well(&plan, 500, &["READ", "UPDATE", "INSERT", "SCAN", "READ-MODIFY-WRITE"]);
    real_loads::cells_are_those_written(&done, &real_loads::read(&plan));

    let options =
        [("write", "50%"), ("machines", "5"), ("sensors", "2"), ("preload", "300"), ("data_max", "900")];
    let plan = prepared("iot", &options, &server);
    let done = real_loads::run_well(&plan, 300, &["write", "read"]);
    real_loads::cells_are_those_written(&done, &real_loads::read(&plan));
    // What was loaded and what was written form one series: no two values of a machine have the same time.
    let series = "SELECT count(*), count(DISTINCT machine_id, time), min(time) FROM holdfast_iot";
    let rows = wait(async { server.client().await.batch(series).await }).expect("counted");
    assert_eq!(rows.text(0, 0), rows.text(0, 1));
    assert_eq!(rows.text(0, 2), Some("2020-01-01 00:00:00.000"));
}

#[test]
fn tpcc_keeps_its_twelve_conditions_in_mysql_s_sql_and_a_planted_violation_of_each_is_found() {
    let test = "tpcc_keeps_its_twelve_conditions_in_mysql_s_sql";
    let Some(server) = wait(Server::here(test, &[])) else { return };
    let plan = prepared("tpcc", &[], &server);
    let done = real_loads::run_until(&plan, 600, &tpcc::KINDS);
    is_undisturbed(&done);
    tpcc::conditions_hold(&done, &real_loads::read(&plan));
    tpcc::planted_violations_are_found(&plan, |sql| {
        wait(async { server.client().await.batch(sql).await })
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
    });
}

/// Why a workload's tables are not made.
fn plan_error(workload: &str, options: &[(&str, &str)], server: &Server) -> String {
    let plan = plan(workload, options, 4, &[server]);
    prepare(&plan, here(), &|_| {}).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn workloads_of_the_checks_keep_what_they_promise_in_mysql_s_sql() {
    let test = "workloads_of_the_checks_keep_what_they_promise_in_mysql_s_sql";
    let Some(server) = wait(Server::here(test, &[])) else { return };
    let plan = prepared("ledger", &[], &server);
    let done = real_loads::run_well(&plan, 1_000, &[]);
    real_loads::ledger_holds(&done, &real_loads::read(&plan));
    for isolation in ["read-committed", "serializable"] {
        let plan = prepared("bank", &[("isolation", isolation)], &server);
        let done = real_loads::run_until(&plan, 500, &["read", "transfer"]);
        is_undisturbed(&done);
        real_loads::bank_holds(&done, &real_loads::read(&plan));
    }
    let plan = prepared("register", &[], &server);
    let done = real_loads::run_until(&plan, 1_000, &["read", "write", "compare-and-set"]);
    is_undisturbed(&done);
    real_loads::registers_hold(&done, &real_loads::read(&plan));
    let plan = prepared("append", &[("isolation", "serializable")], &server);
    let done = real_loads::run_until(&plan, 500, &[]);
    is_undisturbed(&done);
    real_loads::lists_hold(&done, &real_loads::read(&plan));
}

const OWN_SCRIPT: &str = "\\set id random(1, 50)\n\\set amount random(-5, 5)\n\\startpipeline\nBEGIN;\n\
    UPDATE pots SET filled = filled + :amount WHERE id = :id;\n\
    UPDATE pots SET filled = filled - :amount WHERE id = 101 - :id;\nEND;\n\\endpipeline\n\
    SELECT filled AS filled, 'it''s' AS word FROM pots WHERE id = :id;\n\
    INSERT INTO notes (word, amount) VALUES ('it''s', :amount + 0);\n";

#[test]
fn scripts_of_ones_own_run_with_their_parameters_put_as_mysql_has_them() {
    let Some(server) = wait(Server::here("scripts_of_ones_own_run", &[])) else { return };
    let pots: Vec<String> = (1..=100).map(|id| format!("({id}, 0)")).collect();
    let setup = format!(
        "DROP TABLE IF EXISTS pots, notes; CREATE TABLE pots (id int PRIMARY KEY, filled bigint NOT NULL); \
         INSERT INTO pots VALUES {}; CREATE TABLE notes (word text NOT NULL, amount bigint NOT NULL)",
        pots.join(", ")
    );
    let options = [
        ("scripts.0.text", OWN_SCRIPT),
        ("scripts.1.builtin", "tpcb-like"),
        ("setup", setup.as_str()),
        ("conditions.nothing-is-made", "SELECT sum(filled) FROM pots HAVING sum(filled) <> 0;"),
        ("conditions.words-are-whole", "SELECT * FROM notes WHERE word <> 'it''s'"),
    ];
    let plan = prepared("script", &options, &server);
    let done = real_loads::run_until(&plan, 200, &["script-1", "tpcb-like"]);
    is_undisturbed(&done);
    let violations = || match real_loads::read(&plan).as_slice() {
        [.., Action::ConditionsRead { conditions, .. }] => conditions
            .iter()
            .map(|condition| (condition.violations, condition.examples.len()))
            .collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(violations(), [(0, 0); 3]);
    let names = plan_error("script", &[("scripts.0.text", "SELECT 1 AS a \\gset\n")], &server);
    assert!(names.contains("in PostgreSQL only"), "{names}");
    let spoilt = "UPDATE pots SET filled = filled + 1 WHERE id = 7; UPDATE notes SET word = 'its' LIMIT 5; \
                  UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = 1";
    wait(async { server.client().await.batch(spoilt).await }).expect("spoilt");
    assert_eq!(violations(), [(1, 1), (1, 1), (5, 3)]);
}

#[test]
fn clients_come_back_by_themselves_after_a_crash_and_nothing_acknowledged_is_missing() {
    let test = "clients_come_back_by_themselves_after_a_crash";
    let Some(mut server) = wait(Server::here(test, &["--innodb-flush-log-at-trx-commit=1"])) else { return };
    let plan = LoadPlan { timeout: Duration::from_secs(5), ..prepared("ledger", &[], &server) };
    let (sink, batches) = channel::<Batch>();
    let load = start(plan.clone(), Clock::new(), here(), sink);
    let mut done = real_loads::Done { kinds: BTreeMap::new(), operations: Vec::new() };
    let (mut has_crashed, mut failed) = (false, false);
    while let Ok(batch) = batches.recv() {
        failed |= batch.interval.error_count("insert") > 0;
        let succeeds = batch.history.iter().any(|operation| operation.outcome == Outcome::Ok);
        let is_whole = batch.interval.error_count("insert") == 0;
        done.operations.extend(batch.history);
        if batch.interval.second >= 1 && !has_crashed {
            server.kill();
            wait(server.run());
            has_crashed = true;
        } else if failed && succeeds && is_whole {
            load.stop();
        }
    }
    load.join().expect("ended well");
    assert!(done.operations.iter().any(|operation| operation.outcome == Outcome::Unknown));
    real_loads::ledger_holds(&done, &real_loads::read(&plan));
}
