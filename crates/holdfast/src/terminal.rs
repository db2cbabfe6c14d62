//! What a person sees while a run is under way: what is happening now, live figures, faults as they strike. Plain
//! lines where there is no terminal.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use history::visible::visible;
use history::{EventKind, LeadersAtOnce, PlatformAction, Verdict};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use run::{News, Pulse, Show};

use crate::arguments::LATEST;

/// Seconds between two lines of figures where there is no terminal.
const PLAIN_INTERVAL_S: u64 = 5;

/// Seconds between two lines on the loading of tables.
const PREPARING_INTERVAL_S: u64 = 10;

/// Hosts named at most when a lab is kept.
const OTHERS_MAX: usize = 12;

/// Tells a run as it happens, on the standard output.
#[derive(Debug)]
pub struct Terminal {
    bar: Option<ProgressBar>,
    to_stderr: bool,
    /// When a line on the preparation was last printed, in its seconds.
    prepared_s: u64,
}

impl Terminal {
    /// Everything goes to standard error when standard output is asked for JSON.
    pub fn new(to_stderr: bool) -> Terminal {
        let live = if to_stderr { std::io::stderr().is_terminal() } else { std::io::stdout().is_terminal() };
        let bar = live.then(|| {
            let target = if to_stderr { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::stdout() };
            let bar = ProgressBar::with_draw_target(None, target);
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Terminal { bar, to_stderr, prepared_s: 0 }
    }

    /// Shows one thing.
    pub fn show(&mut self, show: &Show<'_>) {
        match show {
            Show::Step(step) => self.line(&format!("         {step}")),
            Show::Directory(path) => self.line(&format!("         run directory {}", path.display())),
            Show::Reach { nodes, others, run_directory } => {
                self.line("the lab stays up until Ctrl-C; to open a shell:");
                let which = which_run(run_directory);
                for node in *nodes {
                    self.line(&format!("  holdfast shell {which}{node}"));
                }
                let some: Vec<&str> = others.iter().take(OTHERS_MAX).map(String::as_str).collect();
                self.line(&format!("  without a database: {}", some.join(", ")));
            }
            Show::News(News::Event { event }) => {
                if let Some(text) = told(&event.kind) {
                    let moment = format!("{:7.1} s", event.t_s);
                    self.line(&format!("{moment} {text}"));
                }
            }
            Show::News(News::Pulse(pulse)) => self.pulse(pulse),
            Show::News(News::Preparing { what, for_s }) => self.preparing(what, *for_s),
            Show::News(
                News::Kept { .. }
                | News::Remembered
                | News::Emptied { .. }
                | News::Finished { .. }
                | News::Failed { .. },
            ) => {}
        }
    }

    /// Prints text, below everything.
    pub fn say(&mut self, text: &str) {
        let text = visible(text);
        if self.to_stderr {
            let _ = std::io::stderr().write_all(text.as_bytes());
        } else {
            let _ = std::io::stdout().write_all(text.as_bytes());
        }
    }

    /// Shows a line of ours among the run's.
    pub fn note(&mut self, text: &str) {
        self.line(&format!("         {text}"));
    }

    /// Leaves the live line empty until there is something to show again.
    pub fn pause(&mut self) {
        if let Some(bar) = &self.bar {
            bar.set_message("");
        }
    }

    /// Takes the live line away.
    pub fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn line(&mut self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| print_line(self.to_stderr, text)),
            None => print_line(self.to_stderr, text),
        }
    }

    /// Updated in place on a terminal, a line at most each ten seconds elsewhere.
    fn preparing(&mut self, what: &str, for_s: u64) {
        let text = step_of_preparation(what, for_s);
        if let Some(bar) = &self.bar {
            bar.set_message(visible(&text).into_owned());
        } else if is_line_due(&mut self.prepared_s, for_s) {
            self.line(&format!("         {text}"));
        }
    }

    fn pulse(&mut self, pulse: &Pulse) {
        let text = figures(pulse);
        match &self.bar {
            Some(bar) => bar.set_message(visible(&text).into_owned()),
            None if pulse.t_s.is_multiple_of(PLAIN_INTERVAL_S) => {
                self.line(&format!("{:7.1} s {text}", pulse.t_s as f64))
            }
            None => {}
        }
    }
}

/// A line on standard output, as `println!` takes it. A reader that has gone away (`| head`) loses what it does not
/// read, and nothing else: what was asked is done, and the exit code says how it ended.
#[macro_export]
macro_rules! printed {
    ($($text:tt)*) => { $crate::terminal::print_line(false, &format!($($text)*)) };
}

/// The same on standard error.
#[macro_export]
macro_rules! complained {
    ($($text:tt)*) => { $crate::terminal::print_line(true, &format!($($text)*)) };
}

/// What `holdfast shell` must be told to find this run: nothing, when it is the one it looks for from here.
fn which_run(run_directory: &Path) -> String {
    let is_found = std::fs::canonicalize(LATEST).is_ok_and(|latest| latest == run_directory);
    if is_found { String::new() } else { format!("--run {} ", run_directory.display()) }
}

/// Prints a line. Parts of it may be a server's, or another's run's: nothing in it is carried out by the terminal.
pub fn print_line(to_stderr: bool, text: &str) {
    print_as_it_is(to_stderr, &visible(text));
}

/// Prints a line that holds nothing foreign but what was made visible, and colours of ours.
pub fn print_as_it_is(to_stderr: bool, text: &str) {
    // A reader that has gone away must not end the run.
    let _ =
        if to_stderr { writeln!(std::io::stderr(), "{text}") } else { writeln!(std::io::stdout(), "{text}") };
}

/// A step of the preparation, and for how long the tables of its load are being made.
fn step_of_preparation(what: &str, for_s: u64) -> String {
    format!("{what} ({for_s} s)")
}

/// Whether a line on the preparation is due in second `for_s` of it. `last_s` is the second of the last one.
fn is_line_due(last_s: &mut u64, for_s: u64) -> bool {
    let is_due = for_s >= *last_s + PREPARING_INTERVAL_S;
    // The next tables begin at 0 again.
    *last_s = if is_due { for_s } else { for_s.min(*last_s) };
    is_due
}

/// The second just over: how far the schedule is, faults that stand, each load.
fn figures(pulse: &Pulse) -> String {
    let mut text = format!("{}/{} s {}", pulse.t_s, pulse.of_s, pulse.phase);
    for standing in &pulse.standing {
        text.push_str(&format!(" [{standing}]"));
    }
    for load in &pulse.loads {
        text.push_str(&format!(" | {} ", load.load));
        text.push_str(&match (load.transactions, load.errors) {
            (0, 0) if load.nothing_due => "-".to_owned(),
            (0, _) => "0/s p99 -".to_owned(),
            (count, _) => format!("{count}/s p99 {:.1} ms", load.p99_us as f64 / 1e3),
        });
        if load.errors > 0 {
            text.push_str(&format!(" {} errors", load.errors));
        }
    }
    text
}

fn leaders_at_the_end(nodes: &[String], silent: &[String]) -> String {
    match silent {
        [] => format!("SEVERAL LEADERS {} while the final state was read", nodes.join(" and ")),
        _ => format!(
            "NO ANSWER from {} whether it leads, while the final state was read",
            silent.join(" and ")
        ),
    }
}

/// An event as one line for a person; none for what is told otherwise.
fn told(kind: &EventKind) -> Option<String> {
    Some(match kind {
        EventKind::RunStarted { facts } => {
            let database = match facts.site.has_database() {
                true => format!("{} {}", facts.engine, facts.engine_version),
                false => "without a database".to_owned(),
            };
            format!("{} with seed {}, {database}", facts.scenario, facts.seed)
        }
        EventKind::Progress { what } => what.clone(),
        EventKind::LabUp { boot_s, from_snapshot: true, .. } => {
            format!("the lab is ready after {boot_s:.1} s, its volumes returned to the snapshot")
        }
        EventKind::LabUp { boot_s, .. } => format!("the lab is ready after {boot_s:.1} s"),
        EventKind::RoundTrips { occasion, pairs } => {
            let slowest = pairs.iter().filter_map(|pair| pair.measured_us).max().unwrap_or(0);
            let silent = pairs.iter().filter(|pair| pair.measured_us.is_none()).count();
            let (count, slowest_ms) = (pairs.len(), slowest as f64 / 1e3);
            format!("round trips {occasion}: {count} pairs, the slowest {slowest_ms:.1} ms, {silent} silent")
        }
        EventKind::Phase { name, for_s } => format!("phase {name} for {for_s:.0} s"),
        EventKind::FaultAsked { kind, target, hits, nodes, .. } => struck(kind, target, hits, nodes),
        EventKind::FaultTookEffect { receipt, .. } => {
            format!("  took effect: {}; {}", receipt.verdict, receipt.evidence.join("; "))
        }
        EventKind::FaultHealed { receipt, .. } => {
            format!("  healed: {}; {}", receipt.verdict, receipt.evidence.join("; "))
        }
        EventKind::Canary { receipt, .. } => {
            format!("  volumes: {}; {}", receipt.verdict, receipt.evidence.join("; "))
        }
        EventKind::NodeDown { node, host } => format!("  {node} died with {host}"),
        // Why a run failed is its last word, which stands by itself.
        EventKind::NodeUp { .. } | EventKind::RunFailed { .. } => return None,
        EventKind::Migration { facts } => format!("  migrate: {}", report::migration_in_words(facts)),
        EventKind::Platform { action: PlatformAction::Volume, node, what } => {
            format!("  volume of {node}: {what}")
        }
        EventKind::Platform { action, what, .. } => format!("  {action}: {what}"),
        EventKind::VolumeMoved { node, host, why } => {
            format!("  {host} now serves the volume of {node} and has every write: {why}")
        }
        EventKind::Leader { node } => format!("  {node} is now the leader"),
        EventKind::LeaderAgain { node, without_s } => {
            format!("  {node} is the leader again; no node reported to lead for {without_s:.1} s")
        }
        EventKind::LeadersAtOnce { seen } => format!("SPLIT BRAIN {seen}; {}", LeadersAtOnce::REMEDY),
        EventKind::FirstSuccess { load, after_s, .. } => {
            format!("  {load} first success after {after_s:.2} s")
        }
        EventKind::Warning { what, remedy } => format!("WARNING {what}; {remedy}"),
        EventKind::LoadEnded { why, .. } => format!("LOAD ENDED EARLY {why}"),
        EventKind::AgentLost { agent, load, why } => format!("AGENT LOST {agent} of {load}: {why}"),
        EventKind::Agent { .. } | EventKind::LeadersMonitored { .. } => return None,
        EventKind::FinalReadMissed { load, nodes, why } => {
            format!("NOT READ the final state of {load} at {}: {why}", or_nothing(nodes))
        }
        EventKind::LeadersAtTheEnd { nodes, silent } => leaders_at_the_end(nodes, silent),
        EventKind::RollbackFailed { volume, why, .. } => format!("NOT ROLLED BACK {volume}: {why}"),
        EventKind::LabStall { stall } => format!("STALL {stall}"),
        EventKind::Interference { interference } => format!("INTERFERENCE {interference}"),
        EventKind::Check { name, verdict, explanation } => {
            let mark = if *verdict == Verdict::Pass { "check" } else { "CHECK" };
            format!("{mark} {name}: {verdict}; {explanation}")
        }
        EventKind::Interrupted { why } => format!("interrupted: {why}"),
        EventKind::RunEnded { verdict } => format!("verdict: {verdict}"),
    })
}

/// A fault as it is asked for, with what it hits now.
fn struck(kind: &str, target: &str, hits: &[String], nodes: &[String]) -> String {
    let what = match (hits.is_empty(), nodes.is_empty()) {
        (true, true) => "nothing matches now".to_owned(),
        (true, false) => nodes.join(", "),
        (false, true) => hits.join(", "),
        (false, false) => format!("{} with {}", hits.join(", "), nodes.join(", ")),
    };
    format!("FAULT {}: {what}", results::fault_name(kind, " of ", target))
}

fn or_nothing(names: &[String]) -> String {
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use run::LoadPulse;

    use super::*;

    fn check(transactions: u64, errors: u64, p99_us: u64, expected: &str) {
        let load =
            LoadPulse { load: "orders".to_owned(), transactions, errors, p99_us, ..LoadPulse::default() };
        check_load(load, expected);
    }

    fn check_load(load: LoadPulse, expected: &str) {
        let pulse =
            Pulse { t_s: 7, of_s: 60, phase: "baseline".to_owned(), standing: Vec::new(), loads: vec![load] };
        assert_eq!(figures(&pulse), format!("7/60 s baseline | orders {expected}"));
    }

    #[test]
    fn a_second_in_which_nothing_was_due_shows_no_figures_and_one_in_which_all_clients_waited_a_rate() {
        let load = LoadPulse { load: "orders".to_owned(), nothing_due: true, ..LoadPulse::default() };
        check_load(load, "-");
        check(0, 0, 0, "0/s p99 -");
    }

    #[test]
    fn a_second_without_a_success_has_a_rate_and_no_latency() {
        check(0, 3, 0, "0/s p99 - 3 errors");
    }

    #[test]
    fn a_second_with_successes_has_their_rate_and_latency_and_its_errors() {
        check(250, 0, 1_540, "250/s p99 1.5 ms");
        check(250, 2, 1_540, "250/s p99 1.5 ms 2 errors");
    }

    #[test]
    fn faults_that_stand_are_shown_before_the_loads_and_each_load_is_shown() {
        let load = |name: &str| LoadPulse { load: name.to_owned(), transactions: 5, ..LoadPulse::default() };
        let standing = vec!["power-off of h1".to_owned()];
        let loads = vec![load("a"), load("b")];
        let pulse = Pulse { t_s: 1, of_s: 9, phase: "fault".to_owned(), standing, loads };
        assert_eq!(figures(&pulse), "1/9 s fault [power-off of h1] | a 5/s p99 0.0 ms | b 5/s p99 0.0 ms");
    }

    #[test]
    fn a_step_of_the_preparation_is_shown_with_its_estimate_and_the_time_it_has_taken() {
        let told = "the table stock: 30 of 100 parts are loaded, about 12 s more";
        assert_eq!(step_of_preparation(told, 5), format!("{told} (5 s)"));
    }

    #[test]
    fn lines_on_the_preparation_are_ten_seconds_apart_and_the_next_tables_begin_anew() {
        let mut last_s = 0;
        let due = [1, 9, 10, 11, 19, 20, 35, 0, 9, 10].map(|for_s| (for_s, is_line_due(&mut last_s, for_s)));
        let lines: Vec<u64> = due.into_iter().filter(|(_, is_due)| *is_due).map(|(for_s, _)| for_s).collect();
        assert_eq!(lines, [10, 20, 35, 10]);
    }
}
