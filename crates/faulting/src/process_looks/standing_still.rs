//! Looks at processes that were stopped, all the time they are: every thread of each is stopped, their CPU time stands still,
//! and nobody behind the port answers though the kernel takes connections.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use history::{Receipt, Verdict};
use lab::knock::Answer;

use super::{Before, GLANCE, OBEYED_WITHIN, Onlooker, in_words, processes};

/// Between two looks while they stand still.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Between two knocks.
const KNOCK_EVERY: Duration = Duration::from_millis(900);
/// A process that waits for nothing but a processor has stopped within this.
const STOPS_WITHIN: Duration = Duration::from_secs(1);
/// With fewer looks nothing is shown of the time between.
const LEAST_LOOKS: usize = 3;

/// What is seen at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Look {
    /// Programs of processes that do not stand still.
    running: Vec<String>,
    /// How many of them wait for a disk, in which no signal reaches them.
    waiting: usize,
    /// How many processes there are.
    count: usize,
    threads: usize,
    /// CPU time of all of them together, ticks.
    cpu_ticks: u64,
}

/// All looks from the first at which everything stood still.
#[derive(Debug, Default)]
struct Watched {
    looks: Vec<Look>,
    knocks: Vec<Result<Answer, String>>,
    length: Duration,
    /// When the node was switched off meanwhile, after the first look.
    off_after: Option<Duration>,
    untold: Option<String>,
}

/// The watch under way. Dropping it ends it.
pub(crate) struct StopWatch {
    is_over: Arc<AtomicBool>,
    watched: Arc<Mutex<Watched>>,
    threads: Vec<JoinHandle<()>>,
    onlooker: Onlooker,
    before: Arc<Before>,
}

impl StopWatch {
    /// Begins; tells at once whether they stand still.
    pub(crate) fn start(
        onlooker: &Onlooker,
        before: &Arc<Before>,
        told: impl FnOnce(Receipt) + Send + 'static,
    ) -> io::Result<StopWatch> {
        let (is_over, watched) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Watched>>::default());
        let mut watch = StopWatch {
            is_over: is_over.clone(),
            watched: watched.clone(),
            threads: Vec::new(),
            onlooker: onlooker.clone(),
            before: before.clone(),
        };
        let named = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let knocks = onlooker.only.is_none();
        let (theirs, of, over) = (onlooker.clone(), before.clone(), is_over.clone());
        let (into, looked) = (watched.clone(), Arc::<AtomicBool>::default());
        let first_looked = looked.clone();
        watch.threads.push(named("stopped").spawn(move || {
            let first = first_look(&theirs, &of, &over);
            first_looked.store(true, Ordering::Release);
            told(first);
            look_on(&theirs, &of, &over, &into);
        })?);
        if knocks {
            let theirs = onlooker.clone();
            watch.threads.push(named("knocks").spawn(move || {
                // A process that has not stopped yet may answer.
                while !looked.load(Ordering::Acquire) && !is_over.load(Ordering::Acquire) {
                    std::thread::sleep(GLANCE);
                }
                knock_on(&theirs, &is_over, &watched);
            })?);
        }
        Ok(watch)
    }

    /// Ends the watch; what it showed of all the time.
    pub(crate) fn finish(mut self) -> Receipt {
        self.end();
        let watched = std::mem::take(&mut *self.watched.lock().unwrap_or_else(PoisonError::into_inner));
        let (node, port) = (self.onlooker.node().to_owned(), self.onlooker.port());
        let mut receipt = judge(&watched, &node, &in_words(&self.before.targets));
        if self.onlooker.only.is_none() {
            let answered_before = matches!(self.before.answer, Ok(Answer::Answered(_)));
            let (verdict, what) = judge_knocks(&watched.knocks, &port, &self.onlooker.place, answered_before);
            receipt.verdict = receipt.verdict.and(verdict);
            receipt.evidence.push(what);
        }
        receipt
    }

    fn end(&mut self) {
        self.is_over.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            // What a watcher that panicked has not seen is missing, and said to be.
            let _ = thread.join();
        }
    }
}

impl Drop for StopWatch {
    fn drop(&mut self) {
        self.end();
    }
}

impl Look {
    fn take(onlooker: &Onlooker, before: &Before) -> Result<Look, String> {
        let now = onlooker.targets_now(before)?;
        let running = || now.values().filter(|seen| !seen.is_stopped());
        Ok(Look {
            running: running().map(|seen| seen.program.clone()).collect(),
            waiting: running().filter(|seen| seen.states.contains(&'D')).count(),
            count: now.len(),
            threads: now.values().map(|seen| seen.states.len()).sum(),
            cpu_ticks: now.values().map(|seen| seen.cpu_ticks).sum(),
        })
    }
}

/// Waits until they stand still; whether they do.
fn first_look(onlooker: &Onlooker, before: &Before, is_over: &AtomicBool) -> Receipt {
    let began = Instant::now();
    loop {
        // In this order, so that what was seen before the end is not taken for what was seen at it.
        let until = match () {
            () if is_over.load(Ordering::Acquire) => Some(Until::Healed),
            () if onlooker.vm.pid_namespace() != before.pid_namespace => Some(Until::Off),
            () if began.elapsed() >= OBEYED_WITHIN => Some(Until::Patience),
            () => None,
        };
        let targets = (in_words(&before.targets), onlooker.node());
        match judge_first(
            &Look::take(onlooker, before),
            until,
            (targets.0.as_str(), targets.1),
            began.elapsed(),
        ) {
            Some((verdict, what)) => return Receipt { verdict, evidence: vec![what] },
            None => std::thread::sleep(GLANCE),
        }
    }
}

/// Why it is not waited any longer for processes to stand still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// They have had their time.
    Patience,
    /// The fault was healed.
    Healed,
    /// Their node was switched off, and they went with it.
    Off,
}

/// What a look shows of processes that were told to stand still; nothing while there is still time.
fn judge_first(
    look: &Result<Look, String>,
    until: Option<Until>,
    (what, node): (&str, &str),
    after: Duration,
) -> Option<(Verdict, String)> {
    let look = match look {
        Err(why) => return Some((Verdict::Unknown, why.clone())),
        Ok(look) => look,
    };
    let after_s = after.as_secs_f64();
    if until == Some(Until::Off) {
        return Some((
            Verdict::Unknown,
            format!("{node} was switched off before {what} were seen to be stopped"),
        ));
    }
    if look.running.is_empty() && look.count > 0 {
        let threads = look.threads;
        let told = format!(
            "every thread ({threads}) of {what} of {node} is stopped (state T), seen after {after_s:.2} s"
        );
        return Some((Verdict::Pass, told));
    }
    let programs: BTreeSet<&str> = look.running.iter().map(String::as_str).collect();
    let programs: Vec<&str> = programs.into_iter().collect();
    let (running, all) = (look.running.len(), processes(look.count));
    let told = format!("{running} of {all} of {node} are not stopped: {}", programs.join(", "));
    let had_no_time = after < STOPS_WITHIN || (running > 0 && look.waiting == running);
    match until? {
        Until::Healed if had_no_time => {
            Some((Verdict::Unknown, format!("{told}; the fault was healed after {after_s:.2} s")))
        }
        _ => Some((Verdict::Fail, told)),
    }
}

fn look_on(onlooker: &Onlooker, before: &Before, is_over: &AtomicBool, into: &Mutex<Watched>) {
    let began = Instant::now();
    while !is_over.load(Ordering::Acquire) {
        let is_same_boot = onlooker.vm.pid_namespace() == before.pid_namespace;
        let look = Look::take(onlooker, before);
        let mut watched = into.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_same_boot || onlooker.vm.pid_namespace() != before.pid_namespace {
            watched.off_after.get_or_insert(began.elapsed());
            return;
        }
        watched.length = began.elapsed();
        match look {
            Ok(look) => watched.looks.push(look),
            Err(why) => watched.untold = Some(why),
        }
        drop(watched);
        std::thread::sleep(LOOK_EVERY);
    }
}

fn knock_on(onlooker: &Onlooker, is_over: &AtomicBool, into: &Mutex<Watched>) {
    while !is_over.load(Ordering::Acquire) {
        let answer = onlooker.knock();
        let mut watched = into.lock().unwrap_or_else(PoisonError::into_inner);
        // Once the node is switched off there is nobody who could answer or not.
        if watched.off_after.is_some() {
            return;
        }
        // An answer that may have come when they ran again says nothing.
        if !is_over.load(Ordering::Acquire) {
            watched.knocks.push(answer);
        }
        drop(watched);
        let next = Instant::now() + KNOCK_EVERY;
        while Instant::now() < next && !is_over.load(Ordering::Acquire) {
            std::thread::sleep(GLANCE);
        }
    }
}

fn judge(watched: &Watched, node: &str, what: &str) -> Receipt {
    let (looks, length_s) = (&watched.looks, watched.length.as_secs_f64());
    let until = match watched.off_after {
        Some(after) => format!("until {node} was switched off after {:.1} s", after.as_secs_f64()),
        None => "throughout the fault".to_owned(),
    };
    let receipt = |verdict, what: String| Receipt { verdict, evidence: vec![format!("{until}: {what}")] };
    if let Some(why) = &watched.untold {
        return receipt(Verdict::Unknown, why.clone());
    }
    if let Some(look) = looks.iter().find(|look| !look.running.is_empty()) {
        let bad = looks.iter().filter(|look| !look.running.is_empty()).count();
        let running = look.running.len();
        let what = format!(
            "{bad} of {} observations found processes of {node} that were not stopped, {running} in the first",
            looks.len()
        );
        return receipt(Verdict::Fail, what);
    }
    let (Some(first), Some(last)) = (looks.first(), looks.last()) else {
        return receipt(Verdict::Unknown, format!("the processes of {node} were not observed"));
    };
    if let Some(look) = looks.iter().find(|look| look.count < first.count) {
        let gone = processes(first.count - look.count);
        return receipt(Verdict::Unknown, format!("{gone} of {node} ended although they were stopped"));
    }
    if last.cpu_ticks != first.cpu_ticks {
        let ticks = last.cpu_ticks.abs_diff(first.cpu_ticks);
        return receipt(Verdict::Fail, format!("processes of {node} used {ticks} ticks of CPU time"));
    }
    if looks.len() < LEAST_LOOKS {
        return receipt(
            Verdict::Unknown,
            format!("only {} observations of the processes of {node}", looks.len()),
        );
    }
    let what = format!(
        "{} observations over {length_s:.1} s found {what} stopped and using no CPU time",
        looks.len()
    );
    receipt(Verdict::Pass, what)
}

fn judge_knocks(
    knocks: &[Result<Answer, String>],
    port: &str,
    place: &str,
    answered_before: bool,
) -> (Verdict, String) {
    let count = |is: fn(&Answer) -> bool| knocks.iter().flatten().filter(|answer| is(answer)).count();
    let answered = count(|answer| matches!(answer, Answer::Answered(_)));
    let accepted = count(|answer| *answer == Answer::Accepted);
    let all = knocks.len();
    if answered > 0 {
        return (Verdict::Fail, format!("{port} answered {answered} of {all} connections from {place}"));
    }
    if !answered_before {
        return (Verdict::Unknown, format!("{port} did not answer {place} before the fault either"));
    }
    match all {
        0 => (Verdict::Unknown, format!("{port} was not probed from {place}")),
        all => (
            Verdict::Pass,
            format!(
                "{port} answered none of {all} connections from {place}, {accepted} of which its kernel accepted"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(running: &[&str], count: usize, cpu_ticks: u64) -> Look {
        Look {
            running: running.iter().map(|name| (*name).to_owned()).collect(),
            waiting: 0,
            count,
            threads: count,
            cpu_ticks,
        }
    }

    /// Looks, and how they are judged.
    fn check(looks: Vec<Look>, expected: Verdict, word: &str) {
        let watched = Watched { looks, length: Duration::from_secs(5), ..Watched::default() };
        let receipt = judge(&watched, "n1", "3 processes (postgres)");
        assert_eq!(receipt.verdict, expected, "{:?}", receipt.evidence);
        assert!(receipt.evidence[0].contains(word), "{:?}", receipt.evidence);
    }

    #[test]
    fn processes_that_stand_still_at_every_look_are_shown_to_and_others_are_not() {
        let still = || look(&[], 3, 50);
        check(vec![still(), still(), still()], Verdict::Pass, "using no CPU time");
        check(vec![still(), look(&["postgres"], 3, 50), still()], Verdict::Fail, "1 of 3 observations");
        check(vec![still(), still(), look(&[], 3, 51)], Verdict::Fail, "used 1 ticks");
        check(vec![still(), look(&[], 2, 50), still()], Verdict::Unknown, "1 process of n1 ended");
        check(vec![still(), still()], Verdict::Unknown, "only 2 observations");
        check(vec![], Verdict::Unknown, "were not observed");
    }

    #[test]
    fn processes_that_had_no_time_to_stop_or_lost_their_node_leave_doubt() {
        let judged = |look: &Look, until, after_ms| {
            let after = Duration::from_millis(after_ms);
            let judged = judge_first(&Ok(look.clone()), until, ("3 processes (postgres)", "n1"), after);
            judged.map(|(verdict, _)| verdict)
        };
        let (still, running, none) = (look(&[], 3, 50), look(&["postgres"], 3, 50), look(&[], 0, 0));
        let at_disk = Look { waiting: 1, ..running.clone() };
        let (patience, healed, off) = (Some(Until::Patience), Some(Until::Healed), Some(Until::Off));
        assert_eq!(judged(&still, None, 500), Some(Verdict::Pass));
        assert_eq!(judged(&still, healed, 500), Some(Verdict::Pass), "they are stopped until they go on");
        assert_eq!((judged(&running, None, 500), judged(&none, None, 500)), (None, None));
        assert_eq!(judged(&running, patience, 3_000), Some(Verdict::Fail));
        assert_eq!(judged(&none, patience, 3_000), Some(Verdict::Fail));
        assert_eq!(judged(&running, healed, 500), Some(Verdict::Unknown), "it had no time");
        assert_eq!(judged(&running, healed, 2_000), Some(Verdict::Fail), "it had");
        assert_eq!(judged(&at_disk, healed, 2_000), Some(Verdict::Unknown), "its disk had not answered");
        assert_eq!(judged(&at_disk, patience, 3_000), Some(Verdict::Fail));
        assert_eq!(judged(&none, off, 500), Some(Verdict::Unknown));
        let untold = judge_first(&Err("no list".to_owned()), None, ("", ""), Duration::ZERO);
        assert_eq!(untold, Some((Verdict::Unknown, "no list".to_owned())));
    }

    #[test]
    fn an_answer_from_a_stopped_server_is_none_of_a_stopped_server() {
        let answered = Ok(Answer::Answered(Duration::from_millis(1)));
        let of = |knocks: &[Result<Answer, String>], before| judge_knocks(knocks, "n1", "dc1", before).0;
        assert_eq!(of(&[Ok(Answer::Accepted), Ok(Answer::Accepted)], true), Verdict::Pass);
        assert_eq!(of(&[Ok(Answer::Accepted), answered], true), Verdict::Fail);
        assert_eq!(of(&[Ok(Answer::Accepted)], false), Verdict::Unknown);
        assert_eq!(of(&[], true), Verdict::Unknown);
    }
}
