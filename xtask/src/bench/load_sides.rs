//! One side of a pair in the bench of load generators: what is started, how long it runs, and what its CPU time and its
//! own word on its transactions make of it.
//!
//! Every program is a child of this process, and the kernel's account of a child that has been waited for is the yardstick
//! (getrusage(2)): all its threads, start to end. What starting and ending cost is measured apart, by a run that carries
//! out next to nothing, and taken off.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};

use super::cpu_account::cpu_of_reaped_children;
use super::load_cassandra::{Cassandra, CqlOperations};
use super::load_mysql::MariaDb;
use super::load_peers::Sysbench;
use super::load_server::{Server, said};

/// How much a side is to do.
#[derive(Debug, Clone, Copy)]
pub(super) enum Length {
    /// As little as it can be told to.
    Little,
    /// As much as it can in so many seconds.
    Seconds(u32),
}

/// Who the other side is, with what it needs to be told.
#[derive(Debug, Clone, Copy)]
pub(super) enum Peer<'a> {
    /// pgbench, with these options.
    Pgbench(&'a [&'a str]),
    /// sysbench's point select on a table of [`SYSBENCH_ROWS`].
    Sysbench(&'a Sysbench),
    /// The same on a MariaDB, against which our side runs as well.
    SysbenchOn(&'a MariaDb, &'a Sysbench),
    /// latte on a node of Cassandra, against which our side runs as well: what it asks, and on how many connections.
    LatteOn(&'a Cassandra, CqlOperations, u32),
    /// go-ycsb's workload C on [`YCSB_RECORDS`] records.
    GoYcsb(&'a Path),
}

/// Rows of sysbench's table.
pub(super) const SYSBENCH_ROWS: u32 = 100_000;
/// Records of go-ycsb's table, and of ours beside it.
pub(super) const YCSB_RECORDS: u32 = 10_000;
/// Operations after which it is known how many go-ycsb does in a second: it is told a number, not a time.
const YCSB_TRIAL: u32 = 4_000;

/// What one side did.
#[derive(Debug, Clone, Copy)]
pub(super) struct Side {
    pub(super) transactions: f64,
    /// By its own account, connecting left out.
    pub(super) per_s: f64,
    pub(super) cpu: Duration,
}

impl Side {
    /// CPU time of one transaction, microseconds, without what starting and ending took.
    pub(super) fn us_per_transaction(self, little: Side) -> f64 {
        let transactions = self.transactions - little.transactions;
        self.cpu.saturating_sub(little.cpu).as_secs_f64() * 1e6 / transactions
    }
}

impl Server {
    /// The other's.
    pub(super) fn theirs(&self, peer: Peer<'_>, clients: u32, length: Length) -> anyhow::Result<Side> {
        match peer {
            Peer::Pgbench(options) => self.pgbench_side(options, clients, length),
            Peer::Sysbench(sysbench) => {
                side_of_sysbench(sysbench, self.sysbench_options(clients), clients, length)
            }
            Peer::SysbenchOn(server, sysbench) => server.sysbench(sysbench, clients, length),
            Peer::LatteOn(node, asked, connections) => node.latte(asked, (clients, connections), length),
            Peer::GoYcsb(program) => self.go_ycsb_side(program, clients, length),
        }
    }

    fn pgbench_side(&self, options: &[&str], clients: u32, length: Length) -> anyhow::Result<Side> {
        let clients = clients.to_string();
        let (flag, amount) = match length {
            Length::Little => ("-t", "1".to_owned()),
            Length::Seconds(seconds) => ("-T", seconds.to_string()),
        };
        let before = cpu_of_reaped_children()?;
        let said = self.pgbench(&[&["-n", "-c", &clients, flag, &amount], options].concat())?;
        let cpu = cpu_of_reaped_children()?.saturating_sub(before);
        let transactions = number_after(&said, "number of transactions actually processed: ")?;
        // Its time includes connecting, which takes seconds where many others use the machine.
        ensure!(transactions > 0.0, "pgbench carried no transaction out: take more --seconds");
        Ok(Side { transactions, per_s: number_after(&said, "tps = ")?, cpu })
    }

    /// Makes sysbench's table.
    pub(super) fn prepare_sysbench(&self, sysbench: &Sysbench) -> anyhow::Result<()> {
        said(&mut sysbench.command(&self.sysbench_options(1), "prepare")).map(drop)
    }

    fn sysbench_options(&self, clients: u32) -> Vec<String> {
        vec![
            "--db-driver=pgsql".to_owned(),
            "--pgsql-host=127.0.0.1".to_owned(),
            format!("--pgsql-port={}", self.port()),
            "--pgsql-user=postgres".to_owned(),
            "--pgsql-db=postgres".to_owned(),
            "--tables=1".to_owned(),
            format!("--table-size={SYSBENCH_ROWS}"),
            format!("--threads={clients}"),
        ]
    }

    /// Makes go-ycsb's table.
    pub(super) fn prepare_go_ycsb(&self, program: &Path) -> anyhow::Result<()> {
        let mut options = self.go_ycsb_options(8);
        options.extend(["dotransactions=false".to_owned(), format!("operationcount={YCSB_RECORDS}")]);
        said(std::process::Command::new(program).args(options)).map(drop)
    }

    fn go_ycsb_options(&self, clients: u32) -> Vec<String> {
        vec![
            "pg.host=127.0.0.1".to_owned(),
            format!("pg.port={}", self.port()),
            "pg.user=postgres".to_owned(),
            "pg.db=postgres".to_owned(),
            // Workload C.
            "readproportion=1".to_owned(),
            "updateproportion=0".to_owned(),
            "requestdistribution=zipfian".to_owned(),
            // Not the name that our own workload gives its table.
            "table=go_usertable".to_owned(),
            format!("recordcount={YCSB_RECORDS}"),
            format!("threadcount={clients}"),
        ]
    }

    fn go_ycsb_side(&self, program: &Path, clients: u32, length: Length) -> anyhow::Result<Side> {
        let run = |operations: u32| -> anyhow::Result<Side> {
            let mut options = self.go_ycsb_options(clients);
            options.push(format!("operationcount={operations}"));
            let before = cpu_of_reaped_children()?;
            let said = said(std::process::Command::new(program).args(options))?;
            let cpu = cpu_of_reaped_children()?.saturating_sub(before);
            ensure!(!said.contains("READ_ERROR"), "go-ycsb: reads failed");
            let total = &said[said.find("TOTAL").context("go-ycsb's total")?..];
            let transactions = number_after(total, "Count: ")?;
            Ok(Side { transactions, per_s: number_after(total, "OPS: ")?, cpu })
        };
        match length {
            Length::Little => run(clients),
            Length::Seconds(seconds) => {
                let trial = run(YCSB_TRIAL)?;
                run(((trial.per_s * f64::from(seconds)) as u32).max(YCSB_TRIAL))
            }
        }
    }
}

/// sysbench with the options of a database.
pub(super) fn side_of_sysbench(
    sysbench: &Sysbench,
    mut options: Vec<String>,
    clients: u32,
    length: Length,
) -> anyhow::Result<Side> {
    match length {
        Length::Little => options.extend([format!("--events={clients}"), "--time=0".to_owned()]),
        Length::Seconds(seconds) => options.push(format!("--time={seconds}")),
    }
    let before = cpu_of_reaped_children()?;
    let said = said(&mut sysbench.command(&options, "run"))?;
    let cpu = cpu_of_reaped_children()?.saturating_sub(before);
    let (transactions, per_s) = read_sysbench(&said)?;
    Ok(Side { transactions, per_s, cpu })
}

/// Transactions, and how many a second, in what sysbench says.
fn read_sysbench(said: &str) -> anyhow::Result<(f64, f64)> {
    // With an error it tries again or ends, and says so; figures of such a run are those of something else.
    ensure!(number_after(said, "ignored errors:")? == 0.0, "sysbench: statements failed");
    let transactions = number_after(said, "transactions:")?;
    let per_s = number_after(&said[said.find("transactions:").unwrap_or(0)..], "(")?;
    Ok((transactions, per_s))
}

/// The number that follows these words.
fn number_after(said: &str, words: &str) -> anyhow::Result<f64> {
    let rest = said.find(words).and_then(|at| said.get(at + words.len()..));
    let rest = rest.with_context(|| format!("{words:?} in what the program said"))?.trim_start();
    let length = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
    rest[..length].parse().with_context(|| format!("a number after {words:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_behind_their_words() {
        let pgbench = "number of transactions actually processed: 300/300\ntps = 12.5 (without initial)";
        assert_eq!(number_after(pgbench, "processed: ").ok(), Some(300.0));
        assert_eq!(number_after(pgbench, "tps = ").ok(), Some(12.5));
        assert!(number_after(pgbench, "transactions:").is_err());
    }

    #[test]
    fn sysbenchs_figures_are_read_and_those_of_a_run_with_errors_are_not() {
        let said = |errors: u32| {
            format!(
                "SQL statistics:\n    queries performed:\n        read:                            64846\n        total:                           64846\n    \
                 transactions:                        64846  (20428.46 per sec.)\n    queries:                             64846  (20428.46 per sec.)\n    \
                 ignored errors:                      {errors}      (0.00 per sec.)\n    reconnects:                          0      (0.00 per sec.)\n"
            )
        };
        assert_eq!(read_sysbench(&said(0)).ok(), Some((64_846.0, 20_428.46)));
        assert!(read_sysbench(&said(3)).is_err());
        assert!(read_sysbench("FATAL: unable to connect to MySQL server").is_err());
    }

    #[test]
    fn what_starting_and_ending_took_is_taken_off() {
        let side = |transactions, ms| Side { transactions, per_s: 0.0, cpu: Duration::from_millis(ms) };
        assert_eq!(side(1_064.0, 130).us_per_transaction(side(64.0, 30)), 100.0);
    }
}
