//! What real programs see of a clock: C, Python, Java, static Go, and the probe.

mod lab;

use std::path::Path;
use std::process::{Command, Stdio};

use clock::{Rate, Reading, Shift};
use lab::{Lab, SECOND_NS, TEN_DAYS_NS, true_ns};

impl Lab {
    fn new() -> Option<Lab> {
        let lab = Lab::with_a_clock()?;
        let (data, probe) = (lab.path("probe.data"), lab.path("probe"));
        std::fs::write(&data, clock::probe()).expect("the probe");
        // Written by another process: what a thread beside us forks cannot hold it open for writing.
        let installed = Command::new("install").args(["-m", "755"]).args([&data, &probe]).status();
        assert!(installed.is_ok_and(|status| status.success()), "{}", probe.display());
        Some(lab)
    }

    /// What a program prints that sees the clock.
    fn output(&self, program: impl AsRef<Path>, arguments: &[&str]) -> String {
        let mut command = Command::new(program.as_ref());
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
        let child = clock::start(&self.clock, &mut command).expect("started");
        let output = child.wait_with_output().expect("its end");
        assert!(output.status.success(), "{}: {}", program.as_ref().display(), output.status);
        assert_eq!(self.clock.misses(), Vec::<String>::new());
        String::from_utf8(output.stdout).expect("text")
    }

    /// The least and the most that a program is ahead which prints nanoseconds since 1970.
    fn offset_ns(&self, program: impl AsRef<Path>, arguments: &[&str]) -> (i64, i64) {
        let before_ns = true_ns();
        let shown = self.output(program, arguments);
        let after_ns = true_ns();
        let shown_ns: i64 = shown.trim().parse().unwrap_or_else(|_| panic!("nanoseconds, not `{shown}`"));
        (shown_ns - after_ns, shown_ns - before_ns)
    }

    fn is_seen_by(&self, program: impl AsRef<Path>, arguments: &[&str]) {
        for offset_ns in [0, TEN_DAYS_NS, -5 * SECOND_NS] {
            self.clock.set(Shift::jump(offset_ns));
            let (least_ns, most_ns) = self.offset_ns(program.as_ref(), arguments);
            // Some print no finer than milliseconds.
            let contains = least_ns - 1_000_000 <= offset_ns && offset_ns <= most_ns + 1_000_000;
            assert!(contains, "{}: {offset_ns} not in {least_ns}..{most_ns}", program.as_ref().display());
        }
    }
}

fn is_here(program: &str) -> bool {
    let found = Command::new("which").arg(program).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let found = found.is_ok_and(|status| status.success());
    if !found {
        eprintln!("skipped: programs that see a clock: no {program}");
    }
    found
}

#[test]
fn a_c_program_sees_the_clock() {
    let Some(lab) = Lab::new() else { return };
    lab.is_seen_by("date", &["+%s%N"]);
}

#[test]
fn gettimeofday_time_and_the_coarse_clock_see_it_and_the_steady_clock_does_not() {
    let Some(lab) = Lab::new() else { return };
    if !is_here("cc") {
        return;
    }
    let source = r#"
        #include <stdio.h>
        #include <sys/time.h>
        #include <time.h>
        int main(void) {
            struct timespec t, coarse, steady; struct timeval v; struct timezone z; time_t kept;
            clock_gettime(CLOCK_REALTIME, &t); clock_gettime(CLOCK_REALTIME_COARSE, &coarse);
            clock_gettime(CLOCK_MONOTONIC, &steady); gettimeofday(&v, &z);
            if (time(&kept) > time(NULL)) return 1;
            printf("%ld %ld %ld %ld %ld %ld\n", t.tv_sec, coarse.tv_sec, v.tv_sec, time(NULL), kept, steady.tv_sec);
            return clock_getres(CLOCK_REALTIME, &t) || clock_gettime(77, &t) != -1;
        }"#;
    std::fs::write(lab.path("calls.c"), source).expect("a source");
    // `time` goes another way where the shift is whole seconds.
    let whole_and_not = [(&["-O1"][..], 0), (&["-O1"], SECOND_NS / 2), (&["-O1", "-static"], 0)];
    for (arguments, rest_ns) in whole_and_not {
        let mut compiler = Command::new("cc");
        compiler.args(arguments).arg("-o").arg(lab.path("calls")).arg(lab.path("calls.c"));
        assert!(compiler.status().expect("a compiler").success());
        lab.clock.set(Shift::jump(TEN_DAYS_NS + rest_ns));
        let before_s = (true_ns() + rest_ns) / SECOND_NS;
        let output = lab.output(lab.path("calls"), &[]);
        let seconds: Vec<i64> =
            output.split_whitespace().map(|word| word.parse().expect("seconds")).collect();
        for shown_s in &seconds[..5] {
            assert!((before_s - 1..before_s + 60).contains(&(shown_s - 864_000)), "{output}");
        }
        let uptime = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).expect("a clock").tv_sec();
        assert!((uptime - 60..=uptime).contains(&seconds[5]), "{output}");
    }
}

#[test]
fn python_sees_it() {
    let Some(lab) = Lab::new() else { return };
    if is_here("python3") {
        lab.is_seen_by("python3", &["-c", "import time; print(time.time_ns())"]);
    }
}

#[test]
fn java_sees_it() {
    let Some(lab) = Lab::new() else { return };
    if is_here("java") {
        let source = "class Show { public static void main(String[] a) { \
            java.time.Instant now = java.time.Instant.now(); \
            System.out.println(now.getEpochSecond() * 1000000000L + now.getNano()); } }";
        std::fs::write(lab.path("Show.java"), source).expect("a source");
        let path = lab.path("Show.java");
        lab.is_seen_by("java", &["-Xshare:auto", path.to_str().expect("text")]);
    }
}

#[test]
fn a_static_go_program_sees_it() {
    let Some(lab) = Lab::new() else { return };
    if is_here("go") {
        let source =
            "package main\nimport (\"fmt\"; \"time\")\nfunc main() { fmt.Println(time.Now().UnixNano()) }\n";
        std::fs::write(lab.path("show.go"), source).expect("a source");
        let mut compiler = Command::new("go");
        compiler.args(["build", "-o", "show", "show.go"]).current_dir(lab.folder.path());
        compiler.env("CGO_ENABLED", "0").env("GOFLAGS", "-mod=mod").env("GO111MODULE", "off");
        assert!(compiler.status().expect("a compiler").success());
        lab.is_seen_by(lab.path("show"), &[]);
    }
}

#[test]
fn the_probe_sees_it_to_the_microsecond_while_it_drifts_and_nothing_outside_does() {
    let Some(lab) = Lab::new() else { return };
    let began_ns = true_ns();
    let racing =
        Shift::jump(TEN_DAYS_NS).and(Shift::running_away(Rate { parts_per_billion: 100_000_000 }, began_ns));
    lab.clock.set(racing);
    let mut last_ns = 0;
    for _ in 0..5 {
        let reading = Reading::narrowest(&lab.output(lab.path("probe"), &[])).expect("a reading");
        let (least_ns, most_ns) = reading.offset_ns();
        let (from_ns, to_ns) =
            (racing.offset_ns_at(reading.before_ns), racing.offset_ns_at(reading.after_ns));
        assert!(least_ns <= to_ns && from_ns <= most_ns, "{from_ns}..{to_ns}, seen {least_ns}..{most_ns}");
        assert!(reading.shown_ns > last_ns);
        last_ns = reading.shown_ns;
    }
    let outside = Command::new(lab.path("probe")).output().expect("the probe");
    let reading = Reading::narrowest(&String::from_utf8_lossy(&outside.stdout)).expect("a reading");
    let (least_ns, most_ns) = reading.offset_ns();
    assert!(least_ns <= 0 && 0 <= most_ns, "outside: {least_ns}..{most_ns}");
}

#[test]
fn a_program_sees_the_clock_set_while_it_runs() {
    let Some(lab) = Lab::new() else { return };
    if !is_here("python3") {
        return;
    }
    let script = "import sys,time\nfor line in sys.stdin: print(time.time_ns(), flush=True)";
    let mut command = Command::new("python3");
    command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = clock::start(&lab.clock, &mut command).expect("started");
    let mut input = child.stdin.take().expect("its input");
    let mut lines =
        std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().expect("its output")));
    for offset_ns in [0, TEN_DAYS_NS, -SECOND_NS, 0] {
        lab.clock.set(Shift::jump(offset_ns));
        let before_ns = true_ns();
        std::io::Write::write_all(&mut input, b"now\n").expect("asked");
        let shown_ns: i64 = lines.next().expect("a line").expect("text").parse().expect("a number");
        let after_ns = true_ns();
        assert!((before_ns..=after_ns).contains(&(shown_ns - offset_ns)), "{offset_ns}: {shown_ns}");
    }
    drop(input);
    child.wait().expect("its end");
}

#[test]
fn a_hundred_programs_started_at_once_all_see_it() {
    let Some(lab) = Lab::new() else { return };
    lab.clock.set(Shift::jump(TEN_DAYS_NS));
    let before = lab.clock.programs_given();
    let probe = lab.path("probe");
    let script = format!("for i in $(seq 100); do {} & done; wait", probe.display());
    let output = lab.output("/bin/sh", &["-c", &script]);
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines.len(), 500, "each tells of five looks");
    for line in lines {
        let (least_ns, most_ns) = Reading::narrowest(line).expect("a reading").offset_ns();
        assert!(least_ns <= TEN_DAYS_NS && TEN_DAYS_NS <= most_ns, "{line}");
    }
    // A program is counted once it has been let go, and may have ended by then.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while lab.clock.programs_given() - before < 102 && std::time::Instant::now() < deadline {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(lab.clock.programs_given() - before >= 102, "the shell, seq and the probes");
}

#[test]
fn an_exec_that_fails_leaves_the_process_as_it_was() {
    let Some(lab) = Lab::new() else { return };
    lab.clock.set(Shift::jump(TEN_DAYS_NS));
    // A search along a path tries names that are not there, one after the other.
    let script = "PATH=/nowhere:/nothing:/usr/local/nothing:$PATH; export PATH; \
                  for i in 1 2 3 4 5 6 7 8; do env env env env env date +%s%N; done; ./nothing 2>/dev/null; true";
    let before_ns = true_ns();
    for line in lab.output("/bin/sh", &["-c", script]).lines() {
        let shown_ns: i64 = line.parse().expect("nanoseconds");
        assert!((before_ns..=true_ns()).contains(&(shown_ns - TEN_DAYS_NS)), "{line}");
    }
}

#[test]
fn a_program_that_a_thread_starts_in_its_process_s_place_sees_it() {
    let Some(lab) = Lab::new() else { return };
    if !is_here("python3") {
        return;
    }
    lab.clock.set(Shift::jump(TEN_DAYS_NS));
    let script = "import os,threading,time\n\
                  threading.Thread(target=lambda: os.execvp('date', ['date', '+%s%N'])).start()\n\
                  time.sleep(60)";
    let (least_ns, most_ns) = lab.offset_ns("python3", &["-c", script]);
    assert!(least_ns <= TEN_DAYS_NS && TEN_DAYS_NS <= most_ns, "{least_ns}..{most_ns}");
}
