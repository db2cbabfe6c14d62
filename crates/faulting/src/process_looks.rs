//! Receipts of process faults: what is seen of a node's processes and of its port, by programs that strike nothing.
//!
//! Owns the looks and their judgement. Processes are read from `/proc` outside the node (`lab::process_table`), the port is
//! knocked at from where clients stand (`lab::knock`).

mod releases;
mod standing_still;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use history::{NodeId, Receipt, Verdict};
use lab::knock::{self, Answer};
use lab::process_table::{self, Identity, Seen};
use platform::{Datacentre, STOP_PATIENCE, Vm};

pub use self::releases::{InstalledFiles, Upgrade};
pub(crate) use self::standing_still::StopWatch;

/// Between two looks.
const GLANCE: Duration = Duration::from_millis(50);
/// How long processes may take to be gone, or to stand still, once they were signalled: one may wait for a disk.
const OBEYED_WITHIN: Duration = Duration::from_secs(3);
/// How long a restart in order may take until the old processes are gone.
const ENDED_WITHIN: Duration = Duration::from_secs(70);
/// How long a program may take over its answer, beside the site's longest round trip.
const ANSWER: Duration = Duration::from_millis(500);

/// Processes by who they are.
pub(crate) type Table = BTreeMap<Identity, Seen>;

/// Who looks at which node.
#[derive(Clone)]
pub(crate) struct Onlooker {
    datacentre: Arc<Datacentre>,
    pub(crate) vm: Arc<Vm>,
    pub(crate) node: NodeId,
    address: SocketAddr,
    /// The file name of the one program that is meant.
    only: Option<String>,
    /// The clients' place that is looked from.
    place: String,
    round_trip: Duration,
}

/// What was seen before a fault.
pub(crate) struct Before {
    /// The processes that are meant.
    pub(crate) targets: Table,
    pid_namespace: Option<u64>,
    /// Whether the port answered.
    answer: Result<Answer, String>,
    /// A connection on which nothing is said.
    connection: Mutex<Option<TcpStream>>,
}

impl Before {
    /// Those of the processes that were meant which are still there.
    fn left_in(&self, table: &Table) -> Table {
        let left = table.iter().filter(|(identity, _)| self.targets.contains_key(identity));
        left.map(|(identity, seen)| (*identity, seen.clone())).collect()
    }

    /// Closes the connection on which nothing is said.
    pub(crate) fn let_go_of_the_connection(&self) {
        drop(self.connection.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

impl Onlooker {
    /// None where no clients stand anywhere.
    pub(crate) fn new(
        datacentre: &Arc<Datacentre>,
        (node, address): (NodeId, SocketAddr),
        only: Option<String>,
        longest_delay: Duration,
    ) -> Option<Onlooker> {
        let place = datacentre.client_places.keys().next()?.clone();
        let (datacentre, vm) = (datacentre.clone(), datacentre.vms[node].clone());
        Some(Onlooker { datacentre, vm, node, address, only, place, round_trip: longest_delay * 2 })
    }

    /// Looks at the node before the fault.
    pub(crate) fn look_before(&self) -> Before {
        let pid_namespace = self.vm.pid_namespace();
        let connection = self
            .place_namespace()
            .and_then(|namespace| knock::connect(namespace, self.address, ANSWER + self.round_trip).ok());
        Before {
            targets: self.meant(&self.table().unwrap_or_default()),
            pid_namespace,
            answer: self.knock(),
            connection: Mutex::new(connection),
        }
    }

    fn place_namespace(&self) -> Option<&std::os::fd::OwnedFd> {
        Some(self.datacentre.client_places.get(&self.place)?.namespace())
    }

    /// Whether its port answers.
    pub(crate) fn answers(&self) -> bool {
        matches!(self.knock(), Ok(Answer::Answered(_)))
    }

    fn knock(&self) -> Result<Answer, String> {
        let namespace = self.place_namespace().ok_or("there is no client place to ask from")?;
        knock::knock(namespace, self.address, ANSWER + self.round_trip).map_err(|error| error.to_string())
    }

    /// All processes of the node's present boot; none where it is off.
    fn table(&self) -> Result<Table, String> {
        let Some(namespace) = self.vm.pid_namespace() else { return Ok(Table::new()) };
        process_table::look(namespace)
            .map_err(|error| format!("the processes of {} could not be listed: {error}", self.node()))
    }

    /// Those that are meant: all, or one program's with what it started.
    fn meant(&self, table: &Table) -> Table {
        let Some(only) = &self.only else { return table.clone() };
        let roots: BTreeSet<Identity> =
            table.iter().filter(|(_, seen)| seen.program == *only).map(|(identity, _)| *identity).collect();
        with_descendants(table, &roots)
    }

    /// The processes that were meant before, and what they have started since, as they are now.
    pub(crate) fn targets_now(&self, before: &Before) -> Result<Table, String> {
        Ok(with_descendants(&self.table()?, &before.targets.keys().copied().collect()))
    }

    fn node(&self) -> &str {
        self.vm.name()
    }

    fn port(&self) -> String {
        format!("{} ({})", self.node(), self.address)
    }

    /// Whether processes of the same programs run that did not before, and the port answers.
    pub(crate) fn look_at_return(&self, before: &Before, patience: Duration) -> Receipt {
        let (began, wanted) = (Instant::now(), roots_by_program(&before.targets));
        loop {
            let table = self.table();
            let stayed = table.as_ref().map(|table| before.left_in(table)).unwrap_or_default();
            if !stayed.is_empty() && began.elapsed() > OBEYED_WITHIN {
                let what = format!("processes of {} that should be gone are still running", self.node());
                let (verdict, told) = still_there(&stayed, what);
                return Receipt { verdict, evidence: vec![told] };
            }
            let now = table.map(|table| roots_by_program_without(&self.meant(&table), &before.targets));
            let missing: Vec<&String> = match &now {
                Ok(now) => wanted.keys().filter(|program| !now.contains_key(*program)).collect(),
                Err(_) => wanted.keys().collect(),
            };
            // Another program than the database itself may well be the only one that is back.
            let answer = if missing.is_empty() && self.only.is_none() { Some(self.knock()) } else { None };
            let answers = self.only.is_some() || matches!(answer, Some(Ok(Answer::Answered(_))));
            if missing.is_empty() && answers {
                return self.returned(before, &now.unwrap_or_default(), began.elapsed());
            }
            if began.elapsed() >= patience {
                let after_s = began.elapsed().as_secs_f64();
                let evidence = match (now, missing.as_slice()) {
                    (Err(why), _) => why,
                    (_, []) => format!("{} did not answer {} for {after_s:.1} s", self.port(), self.place),
                    (_, programs) => {
                        let programs: Vec<&str> = programs.iter().map(|program| program.as_str()).collect();
                        format!(
                            "{} did not restart on {} within {after_s:.1} s",
                            programs.join(", "),
                            self.node()
                        )
                    }
                };
                return Receipt { verdict: Verdict::Fail, evidence: vec![evidence] };
            }
            std::thread::sleep(GLANCE);
        }
    }

    fn returned(&self, before: &Before, now: &BTreeMap<String, Vec<u32>>, after: Duration) -> Receipt {
        let old = roots_by_program(&before.targets);
        let again = |(program, pids): (&String, &Vec<u32>)| {
            let new = now.get(program)?;
            let node = self.node();
            Some(format!("{program} runs again on {node} as {} (was {})", numbers(new), numbers(pids)))
        };
        let mut evidence: Vec<String> = old.iter().filter_map(again).collect();
        if self.only.is_none() {
            let after_s = after.as_secs_f64();
            evidence.push(format!("{} answers {} again, {after_s:.1} s later", self.port(), self.place));
        }
        Receipt { verdict: Verdict::Pass, evidence }
    }

    /// Whether processes that were killed for good are still gone.
    pub(crate) fn look_at_the_dead(&self, before: &Before) -> Receipt {
        if self.vm.pid_namespace() != before.pid_namespace {
            let what = format!(
                "{} was switched off meanwhile; whether they stayed dead until then is unknown",
                self.node()
            );
            return Receipt { verdict: Verdict::Unknown, evidence: vec![what] };
        }
        let wanted = roots_by_program(&before.targets);
        match self.table().map(|table| roots_by_program_without(&self.meant(&table), &before.targets)) {
            Err(why) => Receipt { verdict: Verdict::Unknown, evidence: vec![why] },
            Ok(now) => {
                let again: Vec<&str> =
                    wanted.keys().filter(|program| now.contains_key(*program)).map(String::as_str).collect();
                if again.is_empty() {
                    let what =
                        format!("they were not started again on {}, as the scenario demands", self.node());
                    return Receipt { verdict: Verdict::Pass, evidence: vec![what] };
                }
                let what = format!(
                    "{} runs again on {}, although nothing should start it",
                    again.join(", "),
                    self.node()
                );
                Receipt { verdict: Verdict::Fail, evidence: vec![what] }
            }
        }
    }

    /// Whether processes that were stopped run again. `last` is what was seen of them last.
    pub(crate) fn look_at_waking(&self, before: &Before, last: &Table, patience: Duration) -> Receipt {
        let began = Instant::now();
        if self.vm.pid_namespace() != before.pid_namespace {
            let mut receipt = self.look_at_return(before, patience);
            let what = format!(
                "{} was switched off while they were stopped, so none of them was resumed",
                self.node()
            );
            receipt.evidence.insert(0, what);
            return receipt;
        }
        loop {
            let now = self.targets_now(before);
            let stopped = now.as_ref().map(|now| now.values().filter(|seen| seen.is_stopped()).count());
            let moved = now.as_ref().is_ok_and(|now| have_moved(last, now));
            let answer = if self.only.is_none() { Some(self.knock()) } else { None };
            let answers = matches!(answer, None | Some(Ok(Answer::Answered(_))));
            if stopped == Ok(0) && moved && answers {
                let mut evidence = vec![format!(
                    "none of them is stopped any more on {}, and they use CPU time again",
                    self.node()
                )];
                if self.only.is_none() {
                    let after_s = began.elapsed().as_secs_f64();
                    evidence.push(format!(
                        "{} answers {} again, {after_s:.1} s later",
                        self.port(),
                        self.place
                    ));
                }
                return Receipt { verdict: Verdict::Pass, evidence };
            }
            if began.elapsed() >= patience {
                let after_s = began.elapsed().as_secs_f64();
                let evidence = match stopped {
                    Err(why) => why.clone(),
                    Ok(0) if !answers => {
                        format!("{} did not answer {} for {after_s:.1} s", self.port(), self.place)
                    }
                    Ok(0) => format!("they used no CPU time on {} for {after_s:.1} s", self.node()),
                    Ok(count) => format!(
                        "{} are still stopped on {} after {after_s:.1} s",
                        processes(count),
                        self.node()
                    ),
                };
                return Receipt { verdict: Verdict::Fail, evidence: vec![evidence] };
            }
            std::thread::sleep(GLANCE);
        }
    }
}

/// Whether processes that were killed are gone, and what they had open is closed.
pub(crate) fn gone(onlooker: &Onlooker, before: &Before) -> Receipt {
    let mut receipt = end_of_all(onlooker, before, OBEYED_WITHIN);
    if onlooker.only.is_some() {
        return receipt;
    }
    let mut connection = before.connection.lock().unwrap_or_else(PoisonError::into_inner).take();
    let (port, place) = (onlooker.port(), &onlooker.place);
    let (verdict, what) = match connection
        .as_mut()
        .map(|held| knock::is_cut(held, OBEYED_WITHIN + onlooker.round_trip))
    {
        Some(Ok(true)) => (Verdict::Pass, format!("a connection from {place} to {port} was cut")),
        Some(Ok(false)) => {
            (Verdict::Unknown, format!("a connection from {place} to {port} could not be shown to be cut"))
        }
        Some(Err(error)) => {
            (Verdict::Unknown, format!("a connection from {place} to {port} could not be read: {error}"))
        }
        None => (Verdict::Unknown, format!("{port} accepted no connection from {place} before the fault")),
    };
    receipt.verdict = receipt.verdict.and(verdict);
    receipt.evidence.push(what);
    receipt
}

/// Whether processes that were asked to end have ended by themselves.
pub(crate) fn restarted_in_order(onlooker: &Onlooker, before: &Before) -> Receipt {
    let began = Instant::now();
    let mut ended = end_of_all(onlooker, before, ENDED_WITHIN);
    // It is asked to end at about the moment from which this looks.
    if began.elapsed() + OBEYED_WITHIN >= STOP_PATIENCE {
        let patience_s = STOP_PATIENCE.as_secs();
        ended.verdict = ended.verdict.and(Verdict::Unknown);
        ended.evidence.push(format!(
            "the database of {} did not end within {patience_s} s of being asked to and was killed: no restart in order",
            onlooker.node()
        ));
    }
    ended
}

fn end_of_all(onlooker: &Onlooker, before: &Before, patience: Duration) -> Receipt {
    let began = Instant::now();
    loop {
        let left = onlooker.table().map(|table| before.left_in(&table));
        let (verdict, what) = match left {
            Err(why) => (Verdict::Unknown, why),
            Ok(left) if left.is_empty() => {
                let is_same_boot = onlooker.vm.pid_namespace() == before.pid_namespace;
                all_gone((onlooker.node(), is_same_boot), &before.targets, began.elapsed())
            }
            Ok(_) if began.elapsed() < patience => {
                std::thread::sleep(GLANCE);
                continue;
            }
            Ok(left) => {
                let (all, after_s) = (before.targets.len(), patience.as_secs_f64());
                let still = format!(
                    "{} of {} of {} still there after {after_s:.1} s",
                    left.len(),
                    processes(all),
                    onlooker.node()
                );
                still_there(&left, still)
            }
        };
        return Receipt { verdict, evidence: vec![what] };
    }
}

/// What it shows that these processes are left. One that waits for a disk inside the kernel ends when that answers, and not before.
fn still_there(left: &Table, told: String) -> (Verdict, String) {
    match left.values().all(|seen| seen.states.contains(&'D')) {
        true => (
            Verdict::Unknown,
            format!("{told}; each waits for a disk (state D) and cannot end before that answers"),
        ),
        false => (Verdict::Fail, told),
    }
}

/// What it shows that none of these processes is left. With a node's power they go whether the fault ended them or not.
fn all_gone((node, is_same_boot): (&str, bool), targets: &Table, after: Duration) -> (Verdict, String) {
    let (what, after_s) = (in_words(targets), after.as_secs_f64());
    let are = if targets.len() == 1 { "is" } else { "are" };
    let sentence = format!("{what} of {node} {are} gone, seen after {after_s:.2} s");
    match is_same_boot {
        true => (Verdict::Pass, sentence),
        false => {
            (Verdict::Unknown, format!("{sentence}; {node} was switched off meanwhile, which ends them too"))
        }
    }
}

/// These processes and all that descend from them.
fn with_descendants(table: &Table, of: &BTreeSet<Identity>) -> Table {
    let parents: BTreeMap<u32, u32> =
        table.iter().map(|(identity, seen)| (identity.pid, seen.parent)).collect();
    let meant: BTreeSet<u32> = of.iter().filter(|of| table.contains_key(of)).map(|of| of.pid).collect();
    let is_meant = |pid: u32| {
        std::iter::successors(Some(pid), |pid| parents.get(pid).copied()).any(|pid| meant.contains(&pid))
    };
    table.iter().filter(|(of, _)| is_meant(of.pid)).map(|(of, seen)| (*of, seen.clone())).collect()
}

/// Programs of processes whose parents are none of them, with these processes' numbers.
fn roots_by_program(targets: &Table) -> BTreeMap<String, Vec<u32>> {
    roots_by_program_without(targets, &Table::new())
}

/// The same of processes that are not among the others.
fn roots_by_program_without(table: &Table, without: &Table) -> BTreeMap<String, Vec<u32>> {
    let pids: BTreeSet<u32> = table.keys().map(|of| of.pid).collect();
    let mut roots: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for (of, seen) in
        table.iter().filter(|(of, seen)| !pids.contains(&seen.parent) && !without.contains_key(of))
    {
        roots.entry(seen.program.clone()).or_default().push(of.pid);
    }
    roots
}

/// Whether any of them has used CPU time since, or has ended, or started another.
fn have_moved(last: &Table, now: &Table) -> bool {
    let used = |table: &Table| table.values().map(|seen| seen.cpu_ticks).sum::<u64>();
    last.keys().ne(now.keys()) || used(now) > used(last)
}

/// `12 processes (postgres)`.
fn in_words(targets: &Table) -> String {
    let programs: BTreeSet<&str> = targets.values().map(|seen| seen.program.as_str()).collect();
    let programs: Vec<&str> = programs.into_iter().collect();
    format!("{} ({})", processes(targets.len()), programs.join(", "))
}

pub(crate) fn processes(count: usize) -> String {
    if count == 1 { "1 process".to_owned() } else { format!("{count} processes") }
}

fn numbers(pids: &[u32]) -> String {
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    let noun = if pids.len() == 1 { "process" } else { "processes" };
    format!("{noun} {}", pids.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processes as `number<parent program ticks`.
    fn table(lines: &[&str]) -> Table {
        let one = |line: &&str| {
            let words: Vec<&str> = line.split(' ').collect();
            let (pid, parent) = words[0].split_once('<').expect("number<parent");
            let seen = Seen {
                program: words[1].to_owned(),
                parent: parent.parse().expect("a number"),
                is_of_init: false,
                states: vec!['S'],
                cpu_ticks: words[2].parse().expect("ticks"),
            };
            (Identity { pid: pid.parse().expect("a number"), began_ticks: 1 }, seen)
        };
        lines.iter().map(one).collect()
    }

    #[test]
    fn a_killed_process_that_waits_for_a_disk_is_no_evidence_against_the_kill() {
        let mut left = table(&["10<1 postgres 5", "11<1 postgres 5"]);
        let verdict = |left: &Table| still_there(left, "2 of 3".to_owned()).0;
        assert_eq!(verdict(&left), Verdict::Fail);
        left.values_mut().take(1).for_each(|seen| seen.states.push('D'));
        assert_eq!(verdict(&left), Verdict::Fail, "the other could end");
        left.values_mut().for_each(|seen| seen.states = vec!['S', 'D']);
        assert_eq!(verdict(&left), Verdict::Unknown);
    }

    #[test]
    fn what_a_program_started_is_meant_with_it_and_its_neighbours_are_not() {
        let all = table(&[
            "10<1 etcd 5",
            "11<1 patroni 5",
            "12<1 postgres 5",
            "13<12 postgres 5",
            "14<11 python3 5",
        ]);
        let of = |pid| BTreeSet::from([Identity { pid, began_ticks: 1 }]);
        let pids = |table: Table| table.keys().map(|of| of.pid).collect::<Vec<u32>>();
        assert_eq!(pids(with_descendants(&all, &of(12))), [12, 13]);
        assert_eq!(pids(with_descendants(&all, &of(11))), [11, 14]);
        // A number that belongs to another process by now means nobody.
        assert_eq!(
            pids(with_descendants(&all, &BTreeSet::from([Identity { pid: 12, began_ticks: 2 }]))),
            [] as [u32; 0]
        );
    }

    #[test]
    fn processes_that_went_with_their_nodes_power_do_not_show_a_kill() {
        let targets = table(&["12<1 postgres 5", "13<12 postgres 5"]);
        let gone = |is_same_boot| all_gone(("n1", is_same_boot), &targets, Duration::from_millis(70));
        let told = "2 processes (postgres) of n1 are gone, seen after 0.07 s";
        assert_eq!(gone(true), (Verdict::Pass, told.to_owned()));
        let (verdict, doubt) = gone(false);
        assert!(verdict == Verdict::Unknown && doubt.starts_with(told), "{doubt}");
    }

    #[test]
    fn roots_are_what_no_other_of_them_started() {
        let all = table(&["10<1 etcd 5", "12<1 postgres 5", "13<12 postgres 5"]);
        let roots = roots_by_program(&all);
        assert_eq!(roots, BTreeMap::from([("etcd".to_owned(), vec![10]), ("postgres".to_owned(), vec![12])]));
        assert_eq!(roots_by_program_without(&all, &all), BTreeMap::new());
    }

    #[test]
    fn processes_have_moved_when_one_used_cpu_time_ended_or_began() {
        let last = table(&["10<1 etcd 5", "11<10 etcd 7"]);
        assert!(!have_moved(&last, &last));
        assert!(have_moved(&last, &table(&["10<1 etcd 5", "11<10 etcd 8"])));
        assert!(have_moved(&last, &table(&["10<1 etcd 5"])));
    }
}
