//! The standard workloads on a real PostgreSQL: they fill their tables, run without errors, and their final reads tell
//! what is there, planted defects included.

use std::collections::BTreeMap;
use std::sync::mpsc::channel;

use client::SqlSession;
use history::{Action, ErrorClass, Operation, Outcome};
use load::{Batch, Clock, LoadPlan, Protocol, prepare, start};

use crate::real_loads::server::{self, Server};
use crate::real_loads::{self, Done, cells_are_those_written, here, wait};
use crate::tpcc;

/// A server with a workload on it.
struct Bench {
    server: Server,
    plan: LoadPlan,
}

impl Bench {
    /// `None`, with a word on the test's output, where there is no server to be had.
    fn new(workload: &str, options: &[(&str, &str)]) -> Option<Bench> {
        Bench::speaking(Protocol::Postgres, workload, options)
    }

    /// The same by another way of speaking PostgreSQL's protocol.
    fn speaking(protocol: Protocol, workload: &str, options: &[(&str, &str)]) -> Option<Bench> {
        let programs = server::programs()?;
        // What is tested here is not whether a crash loses anything.
        let server = wait(Server::start(&programs, &["fsync=off", "max_wal_size=4GB"]));
        let plan = real_loads::plan(workload, &real_loads::texts(options), 4, &[("n1", &server)]);
        let bench = Bench { server, plan: LoadPlan { protocol, ..plan } };
        prepare(&bench.plan, here(), &|_| {}).expect("prepared");
        Some(bench)
    }

    fn run(&self, transactions: usize, kinds: &[&str]) -> Done {
        real_loads::run_well(&self.plan, transactions, kinds)
    }

    fn read(&self) -> Vec<Action> {
        real_loads::read(&self.plan)
    }

    /// Runs a script so many times by pgbench itself.
    fn run_pgbench(&self, programs: &std::path::Path, script: &str, times: &str) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("script");
        std::fs::write(&path, script).expect("written");
        let address = self.server.address();
        let ended = std::process::Command::new(programs.join("pgbench"))
            .args(["-n", "-h", &address.ip().to_string(), "-p", &address.port().to_string()])
            .args(["-U", "postgres", "-t", times, "-f"])
            .arg(&path)
            .arg("postgres")
            .output()
            .expect("pgbench");
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }

    fn sql(&self, sql: &str) {
        wait(async { self.server.client().await.batch(sql).await })
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

#[test]
fn kv_writes_what_it_says_and_reads_it_back() {
    let options = [("read", "40%"), ("span", "10%"), ("batch", "3"), ("keys", "200"), ("preload", "150")];
    let Some(bench) = Bench::new("kv", &options) else { return };
    let done = bench.run(500, &["read", "write", "span"]);
    let all: u64 = ["read", "write", "span"].iter().map(|kind| done.kinds[*kind]).sum();
    assert_eq!(all, done.kinds["operation"]);
    cells_are_those_written(&done, &bench.read());
}

#[test]
fn every_ycsb_operation_does_what_it_says() {
    let Some(bench) = Bench::new("ycsb", &real_loads::YCSB) else { return };
    let kinds = ["READ", "UPDATE", "INSERT", "SCAN", "READ-MODIFY-WRITE"];
    let done = bench.run(500, &kinds);
    let read = bench.read();
    cells_are_those_written(&done, &read);
    let inserted = done.kinds["INSERT"];
    let cells: usize = read
        .iter()
        .map(|action| if let Action::CellsRead { cells, .. } = action { cells.len() } else { 0 })
        .sum();
    assert_eq!(cells as u64, (300 + inserted) * 4);
    // A row that nobody inserted is nobody's cell.
    bench.sql("INSERT INTO usertable VALUES ('userX', lpad('1', 20, '0'), lpad('1', 20, '0'), lpad('1', 20, '0'), lpad('1', 20, '0'))");
    let strangers = bench.read().iter().any(|action| {
        matches!(action, Action::CellsRead { cells, .. } if cells.iter().any(|(cell, _)| *cell > 1 << 60))
    });
    assert!(strangers);
}

#[test]
fn iot_writes_rows_of_their_own_and_reads_the_newest() {
    let options =
        [("write", "50%"), ("machines", "5"), ("sensors", "2"), ("preload", "300"), ("data_max", "900")];
    let Some(bench) = Bench::new("iot", &options) else { return };
    let done = bench.run(300, &["write", "read"]);
    cells_are_those_written(&done, &bench.read());
    // What was loaded and what was written form one series: no two values of a machine have the same time.
    let gaps = "SELECT 1 / (count(*) - count(DISTINCT (machine_id, time)) + 1) FROM holdfast_iot HAVING \
                count(*) <> count(DISTINCT (machine_id, time))";
    let rows = wait(async { bench.server.client().await.batch(gaps).await }).expect("counted");
    assert!(rows.is_empty());
    real_loads::two_loads_of_time_series_write_no_row_of_each_other(&bench.plan, 300);
}

/// The first pot is always the lower of the two, so that no two transactions lock them the other way round.
const OWN_SCRIPT: &str = "\\set id random(1, 50)\n\\set amount random(-5, 5)\n\\if :amount > 0\nBEGIN;\n\
    UPDATE pots SET filled = filled + :amount WHERE id = :id;\n\
    UPDATE pots SET filled = filled - :amount WHERE id = 101 - :id;\nEND;\n\\else\n\
    SELECT filled AS filled, 'it''s' AS word FROM pots WHERE id = :id \\gset now_\n\
    \\if :now_filled IS NULL OR :now_filled + 0.5 < -1000000\nSELECT 1 / 0;\n\\endif\n\
    INSERT INTO notes (word, amount) VALUES (:now_word, :now_filled);\n\\endif\n";

const OWN_PIPELINE: &str = "\\set id random(1, 100)\n\\sleep 1 us\n\\startpipeline\nBEGIN;\n\
    UPDATE pots SET filled = filled + 1 WHERE id = :id;\nUPDATE pots SET filled = filled - 1 WHERE id = :id;\nCOMMIT;\n\
    \\endpipeline\n";

#[test]
fn scripts_of_ones_own_run_and_their_conditions_are_looked_at() {
    let setup = "DROP TABLE IF EXISTS pots, notes; CREATE TABLE pots (id int PRIMARY KEY, filled bigint NOT NULL); \
                 INSERT INTO pots SELECT id, 0 FROM generate_series(1, 100) AS id; \
                 CREATE TABLE notes (word text NOT NULL, amount bigint NOT NULL)";
    let options = [
        ("scripts.0.text", OWN_SCRIPT),
        ("scripts.1.text", OWN_PIPELINE),
        ("scripts.2.builtin", "tpcb-like"),
        ("scripts.3.builtin", "simple-update"),
        ("scripts.4.builtin", "select-only"),
        ("setup", setup),
        ("conditions.nothing-is-made", "SELECT sum(filled) FROM pots HAVING sum(filled) <> 0;"),
        ("conditions.words-are-whole", "SELECT * FROM notes WHERE word <> 'it''s'"),
    ];
    let Some(bench) = Bench::new("script", &options) else { return };
    let kinds = ["script-1", "script-2", "tpcb-like", "simple-update", "select-only"];
    let done = bench.run(300, &kinds);
    let piped = done.kinds.iter().find(|(name, _)| name.starts_with("script-2 2: UPDATE pots"));
    assert!(piped.is_some_and(|(_, count)| *count > 0), "{:?}", done.kinds);
    let conditions = || match bench.read().as_slice() {
        [.., Action::ConditionsRead { conditions, .. }] => conditions.clone(),
        other => panic!("{other:?}"),
    };
    let all_hold = conditions();
    assert_eq!(all_hold.len(), 3);
    assert!(all_hold.iter().all(|condition| condition.violations == 0), "{all_hold:?}");
    let notes = wait(async { bench.server.client().await.batch("SELECT count(*) FROM notes").await })
        .expect("counted");
    assert!(notes.integer(0, 0) > Some(0));
    bench.sql(
        "UPDATE pots SET filled = filled + 1 WHERE id = 7; UPDATE notes SET word = 'its'; \
               UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = 1",
    );
    let violated = conditions();
    assert!(violated.iter().all(|condition| condition.violations > 0), "{violated:?}");
    assert!(violated.iter().any(|condition| condition.examples == ["(1)"]), "{violated:?}");
}

#[test]
fn a_script_that_fails_in_the_middle_says_whether_it_had_an_effect() {
    let text = "INSERT INTO seen VALUES (1);\n\\set x 1 / 0\nSELECT 1;\n";
    let nothing_yet = "\\set x 1 / 0\nSELECT 1;\n";
    for (text, outcome) in [(text, Outcome::Unknown), (nothing_yet, Outcome::Fail)] {
        let options = [("scripts.0.text", text), ("setup", "CREATE TABLE seen (a int)")];
        let Some(bench) = Bench::new("script", &options) else { return };
        let (sink, batches) = channel::<Batch>();
        let load = start(bench.plan.clone(), Clock::new(), here(), sink);
        let mut ended: Vec<Operation> = Vec::new();
        while let Ok(batch) = batches.recv() {
            ended.extend(batch.history);
            if !ended.is_empty() {
                load.stop();
            }
        }
        load.join().expect("ended well");
        assert!(ended.iter().all(|operation| operation.outcome == outcome), "{:?}", ended[0]);
    }
}

#[test]
fn an_error_is_told_with_its_transaction_its_kind_and_its_statement() {
    let options = [
        ("scripts.0.name", "good"),
        ("scripts.0.text", "SELECT 1;\n"),
        ("scripts.1.name", "bad"),
        ("scripts.1.text", "SELECT 2;\nSELECT 1 / 0;\n"),
    ];
    let Some(bench) = Bench::new("script", &options) else { return };
    let (sink, batches) = channel::<Batch>();
    let load = start(bench.plan.clone(), Clock::new(), here(), sink);
    let mut errors: BTreeMap<String, BTreeMap<ErrorClass, u64>> = BTreeMap::new();
    let mut indefinite: BTreeMap<String, u64> = BTreeMap::new();
    let mut of_load = 0;
    while let Ok(batch) = batches.recv() {
        of_load += batch.interval.error_count("transaction");
        for (name, operation) in batch.interval.operations {
            for (class, count) in operation.errors {
                *errors.entry(name.clone()).or_default().entry(class).or_default() += count;
            }
            *indefinite.entry(name).or_default() += operation.errors_indefinite.values().sum::<u64>();
        }
        if of_load > 10 {
            load.stop();
        }
    }
    load.join().expect("ended well");
    let failed = BTreeMap::from([(ErrorClass::Other, of_load)]);
    let expected = ["bad", "bad 2: SELECT 1 0", "transaction"].map(|name| (name.to_owned(), failed.clone()));
    assert_eq!(errors, BTreeMap::from(expected));
    // The first statement was a transaction of its own, so that the script may have had an effect; the second had none.
    assert_eq!(
        ["bad", "transaction", "bad 2: SELECT 1 0"].map(|name| indefinite[name]),
        [of_load, of_load, 0]
    );
}

/// What pgbench computes must be what we compute, and what it draws must come as often.
#[test]
fn functions_give_what_pgbench_gives() {
    let Some(programs) = server::programs() else { return };
    if !programs.join("pgbench").exists() {
        eprintln!("skipped: functions_give_what_pgbench_gives: no pgbench beside the server");
        return;
    }
    let setup = "CREATE TABLE IF NOT EXISTS given (name text, who text, value text)";
    // Deterministic: every line is one value.
    let expressions = [
        "hash(5432, 7)",
        "hash_fnv1a(-1, 123)",
        "hash_murmur2(9223372036854775807, -5)",
        "7 % -3",
        "-7 / 2",
        "1 << 62",
        "-8 >> 1",
        "5 # 3 | 8 & 12",
        "int(2.5)",
        "greatest(1, 2.5, -3)",
        "int(power(2, 40))",
        "CASE WHEN 1 > 2 OR NULL IS NULL THEN 10 ELSE 20 END",
        "int(1e3 * ln(exp(2)))",
    ];
    let line = |(place, expression): (usize, &&str)| {
        format!("\\set x {expression}\nINSERT INTO given VALUES ('e{place}', :'who', (:x)::text);\n")
    };
    let fixed: String = expressions.iter().enumerate().map(line).collect();
    let drawn = [
        "random(1, 10)",
        "random_gaussian(1, 10, 2.5)",
        "random_exponential(1, 10, 3)",
        "random_zipfian(1, 10, 1.3)",
    ];
    let draw = |(place, expression): (usize, &&str)| {
        format!("\\set x {expression}\nINSERT INTO given VALUES ('d{place}', :'who', (:x)::text);\n")
    };
    let drawn_text: String = drawn.iter().enumerate().map(draw).collect();
    // Ours binds the name as a constant: variables within quotes are left alone.
    let ours = |text: &str| text.replace(":'who'", "'ours'");
    let (own_fixed, own_drawn) = (ours(&fixed), ours(&drawn_text));
    let options =
        [("scripts.0.text", own_fixed.as_str()), ("scripts.1.text", own_drawn.as_str()), ("setup", setup)];
    let options = [options.as_slice(), &[("scripts.1.weight", "50")]].concat();
    let Some(bench) = Bench::new("script", &options) else { return };
    bench.run(2_000, &["script-1", "script-2"]);
    for (text, times) in [(&fixed, "1"), (&drawn_text, "2000")] {
        bench.run_pgbench(&programs, &text.replace(":'who'", "'theirs'"), times);
    }
    computed_values_agree(&bench, &expressions);
    drawn_values_agree(&bench, &drawn);
}

fn computed_values_agree(bench: &Bench, expressions: &[&str]) {
    let query = "SELECT name, string_agg(DISTINCT value, ' '), count(DISTINCT value), count(DISTINCT who) FROM given \
                 WHERE name LIKE 'e%' GROUP BY name";
    let rows = wait(async { bench.server.client().await.batch(query).await }).expect("compared");
    assert_eq!(rows.len(), expressions.len());
    for row in 0..rows.len() {
        assert_eq!(rows.integer(row, 3), Some(2));
        let place: usize = rows.text(row, 0).and_then(|name| name[1..].parse().ok()).expect("place");
        assert_eq!(rows.integer(row, 2), Some(1), "{}: {:?}", expressions[place], rows.text(row, 1));
    }
}

fn drawn_values_agree(bench: &Bench, drawn: &[&str]) {
    // Two samples of the same distribution: the chi-square statistic of the two, nine degrees of freedom; a right
    // generator exceeds 43 once in a million times.
    let query = "SELECT d.name, sum(power(sqrt(m.n::float8 / o.n) * coalesce(a.c, 0) - sqrt(o.n::float8 / m.n) * \
                 coalesce(b.c, 0), 2) / (coalesce(a.c, 0) + coalesce(b.c, 0))) FROM \
                 (SELECT DISTINCT name, value FROM given WHERE name LIKE 'd%') AS d \
                 LEFT JOIN (SELECT name, value, count(*) AS c FROM given WHERE who = 'ours' GROUP BY 1, 2) AS a USING (name, value) \
                 LEFT JOIN (SELECT name, value, count(*) AS c FROM given WHERE who = 'theirs' GROUP BY 1, 2) AS b USING (name, value) \
                 JOIN (SELECT name, count(*) AS n FROM given WHERE who = 'ours' GROUP BY 1) AS o USING (name) \
                 JOIN (SELECT name, count(*) AS n FROM given WHERE who = 'theirs' GROUP BY 1) AS m USING (name) \
                 GROUP BY d.name ORDER BY d.name";
    let rows = wait(async { bench.server.client().await.batch(query).await }).expect("compared");
    assert_eq!(rows.len(), drawn.len());
    for (row, expression) in drawn.iter().enumerate() {
        let statistic: f64 = rows.text(row, 1).and_then(|text| text.parse().ok()).expect("a number");
        assert!(statistic < 43.0, "{expression}: {statistic}");
    }
}

/// PostgreSQL itself, asked only for what other databases that speak its protocol have.
#[test]
fn tpcc_does_without_what_only_postgresql_has() {
    let Some(bench) = Bench::speaking(Protocol::PostgresCompatible, "tpcc", &[]) else { return };
    let done = bench.run(200, &tpcc::KINDS);
    let (conditions, counts) = tpcc::looked(&bench.read());
    assert_eq!(conditions.len(), 12);
    assert!(tpcc::violated(&conditions).is_empty(), "{conditions:#?}");
    assert!(counts["payments"] > 0 && done.kinds["DELIVERY"] > 0, "{counts:?}");
    let tables = "SELECT (SELECT count(*) FROM pg_constraint WHERE contype = 'p' AND conrelid > 16383), \
                  (SELECT count(*) FROM pg_class WHERE reloptions IS NOT NULL AND oid > 16383)";
    let rows = wait(async { bench.server.client().await.batch(tables).await }).expect("counted");
    assert_eq!((rows.text(0, 0), rows.text(0, 1)), (Some("8"), Some("0")), "keys, and settings of storage");
    bench.sql("DELETE FROM orders WHERE o_d_id = 8");
    let found = tpcc::violated(&tpcc::looked(&bench.read()).0);
    assert!([2, 4, 5, 6, 7, 11].iter().all(|number| found.contains(number)), "{found:?}");
    // Items that were loaded and are gone are no order that asks for one which was never there.
    bench.sql("DELETE FROM item");
    let is_order = |operation: &&Operation| matches!(&operation.action, Action::Transaction { name, .. } if name == "NEW-ORDER");
    let done = real_loads::run_until(&bench.plan, 60, &["PAYMENT"]);
    let ended: Vec<Outcome> =
        done.operations.iter().filter(is_order).map(|operation| operation.outcome).collect();
    assert!(!ended.is_empty() && ended.iter().all(|outcome| *outcome != Outcome::Ok), "{ended:?}");
}

#[test]
fn tpcc_keeps_its_twelve_conditions_and_a_planted_violation_of_each_is_found() {
    let Some(bench) = Bench::new("tpcc", &[]) else { return };
    let done = bench.run(600, &tpcc::KINDS);
    tpcc::conditions_hold(&done, &bench.read());
    tpcc::planted_violations_are_found(&bench.plan, |sql| bench.sql(sql));
}
