//! What real programs wait for by a clock: each of the functions that wait until a time of day, in C.

mod lab;

use std::process::{Command, Stdio};
use std::sync::Arc;

use clock::{Rate, Shift};
use lab::{Lab, SECOND_NS, TEN_DAYS_NS, true_ns};

/// Waits for nothing in each way until so many milliseconds from now by its own clock, or by the steady one, and prints for each the
/// milliseconds that it took by the steady clock and what came of it.
const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <mqueue.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static struct timespec soon(clockid_t clock, long after_ms) {
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_sec += after_ms / 1000;
    time.tv_nsec += after_ms % 1000 * 1000000L;
    time.tv_sec += time.tv_nsec < 0 ? -1 : time.tv_nsec / 1000000000L;
    time.tv_nsec = (time.tv_nsec + 1000000000L) % 1000000000L;
    return time;
}

static long steady_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000L + time.tv_nsec / 1000000L;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, taken = PTHREAD_MUTEX_INITIALIZER, lending;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER, steady;
static sem_t semaphore;

static void *hold(void *unused) {
    pthread_mutex_lock(&taken);
    pthread_mutex_lock(&lending);
    pthread_rwlock_wrlock(&lock);
    sem_post(&semaphore);
    pause();
    return unused;
}

/* A condition that never comes: whoever is woken early waits on, as every program does. */
static int for_condition(pthread_cond_t *what, struct timespec time) {
    int answer;
    pthread_mutex_lock(&mutex);
    while (!(answer = pthread_cond_timedwait(what, &mutex, &time))) {}
    pthread_mutex_unlock(&mutex);
    return answer;
}

static int timer(int kind, clockid_t clock, struct timespec time) {
    struct itimerspec at = {.it_value = time};
    if (kind) {
        unsigned long times;
        int file = timerfd_create(clock, 0);
        timerfd_settime(file, TFD_TIMER_ABSTIME, &at, NULL);
        return read(file, &times, sizeof times) == sizeof times ? 0 : -1;
    }
    timer_t timer;
    sigset_t alarm;
    int signal;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    timer_create(clock, NULL, &timer);
    timer_settime(timer, TIMER_ABSTIME, &at, NULL);
    return sigwait(&alarm, &signal);
}

static int one(const char *name, struct timespec time, struct timespec by_start) {
    if (!strcmp(name, "condition")) return for_condition(&condition, time);
    if (!strcmp(name, "steady-condition")) return for_condition(&steady, by_start);
    if (!strcmp(name, "mutex")) return pthread_mutex_timedlock(&taken, &time);
    if (!strcmp(name, "lending-mutex")) return pthread_mutex_timedlock(&lending, &time);
    if (!strcmp(name, "read-lock")) return pthread_rwlock_timedrdlock(&lock, &time);
    if (!strcmp(name, "write-lock")) return pthread_rwlock_timedwrlock(&lock, &time);
    if (!strcmp(name, "semaphore")) return sem_timedwait(&semaphore, &time) ? errno : 0;
    if (!strcmp(name, "sleep")) return clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &time, NULL);
    if (!strcmp(name, "steady-sleep")) return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &by_start, NULL);
    if (!strcmp(name, "timerfd")) return timer(1, CLOCK_REALTIME, time);
    if (!strcmp(name, "steady-timerfd")) return timer(1, CLOCK_MONOTONIC, by_start);
    if (!strcmp(name, "past-timerfd")) {
        /* An hour and half a second ago, and every second since. */
        struct itimerspec at = {.it_value = soon(CLOCK_REALTIME, -3600500), .it_interval = {1, 0}};
        unsigned long times = 0;
        int file = timerfd_create(CLOCK_REALTIME, 0);
        timerfd_settime(file, TFD_TIMER_ABSTIME, &at, NULL);
        return read(file, &times, sizeof times) == sizeof times && times >= 3601 && times < 3700 ? 0 : -1;
    }
    if (!strcmp(name, "timer")) return timer(0, CLOCK_REALTIME, time);
    if (!strcmp(name, "queue")) {
        struct mq_attr small = {.mq_maxmsg = 1, .mq_msgsize = 8};
        char letters[8];
        mqd_t queue = mq_open("/holdfast-waits-test", O_RDWR | O_CREAT, 0600, &small);
        mq_unlink("/holdfast-waits-test");
        return mq_timedreceive(queue, letters, sizeof letters, NULL, &time) < 0 ? errno : 0;
    }
    return -2;
}

int main(int count, char **names) {
    pthread_condattr_t by_start;
    pthread_mutexattr_t lends;
    pthread_t holder;
    long after_ms = atol(names[1]);
    pthread_condattr_init(&by_start);
    pthread_condattr_setclock(&by_start, CLOCK_MONOTONIC);
    pthread_cond_init(&steady, &by_start);
    sem_init(&semaphore, 0, 0);
    pthread_mutexattr_init(&lends);
    pthread_mutexattr_setprotocol(&lends, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&lending, &lends);
    pthread_create(&holder, NULL, hold, NULL);
    sem_wait(&semaphore);
    for (int at = 2; at < count; at++) {
        long before_ms = steady_ms();
        int answer = one(names[at], soon(CLOCK_REALTIME, after_ms), soon(CLOCK_MONOTONIC, after_ms));
        printf("%s %ld %s\n", names[at], steady_ms() - before_ms, answer == ETIMEDOUT ? "late" : answer ? "wrong" : "done");
        fflush(stdout);
    }
    return 0;
}
"#;

/// Ways to wait and what comes of each.
const WAYS: [(&str, &str); 13] = [
    ("condition", "late"),
    ("steady-condition", "late"),
    ("mutex", "late"),
    ("lending-mutex", "late"),
    ("read-lock", "late"),
    ("write-lock", "late"),
    ("semaphore", "late"),
    ("sleep", "done"),
    ("steady-sleep", "done"),
    ("timerfd", "done"),
    ("steady-timerfd", "done"),
    ("timer", "done"),
    ("queue", "late"),
];

impl Lab {
    fn new() -> Option<Lab> {
        let lab = Lab::with_a_clock()?;
        std::fs::write(lab.path("waits.so"), clock::waits::library()).expect("the library");
        std::fs::write(lab.path("waits.c"), SOURCE).expect("a source");
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-pthread", "-o"]).arg(lab.path("waits")).arg(lab.path("waits.c")).arg("-lrt");
        assert!(compiler.status().expect("a compiler").success());
        Some(lab)
    }

    /// What a program prints by this clock, with the library or without, in 20 s at most: a wait of ten days ends then.
    fn output(&self, program: &[&str], with_library: bool) -> String {
        let mut command = Command::new("timeout");
        command.arg("20").args(program).stdin(Stdio::null()).stdout(Stdio::piped());
        if with_library {
            command.env(clock::waits::PRELOAD, clock::waits::preload(&self.path("waits.so"), None));
        }
        let output = clock::start(&self.clock, &mut command).expect("started").wait_with_output();
        String::from_utf8(output.expect("its end").stdout).expect("text")
    }

    /// Waits so many milliseconds of its own clock in each of these ways: how long each took and what came of it.
    fn waits(&self, after_ms: u64, ways: &[&str], with_library: bool) -> Vec<(String, u64, String)> {
        let (program, after_ms) = (self.path("waits").display().to_string(), after_ms.to_string());
        let text = self.output(&[&[program.as_str(), &after_ms], ways].concat(), with_library);
        let line = |line: &str| -> Option<(String, u64, String)> {
            let mut words = line.split(' ').map(str::to_owned);
            Some((words.next()?, words.next()?.parse().ok()?, words.next()?))
        };
        text.lines().map(|of| line(of).unwrap_or_else(|| panic!("{of}"))).collect()
    }

    /// All ways, until `after_ms` from now; those that go by the time of day take as long as `of_day_ms` says.
    #[track_caller]
    fn take(&self, after_ms: u64, of_day_ms: std::ops::Range<u64>) {
        let ways = WAYS.map(|(name, _)| name);
        let waited = self.waits(after_ms, &ways, true);
        let told: Vec<(&str, &str)> =
            waited.iter().map(|(name, _, told)| (name.as_str(), told.as_str())).collect();
        assert_eq!(told, WAYS, "{waited:?}");
        for (name, took_ms, _) in &waited {
            let is_steady = name.starts_with("steady");
            let range = if is_steady { after_ms - 1..after_ms + 5_000 } else { of_day_ms.clone() };
            assert!(range.contains(took_ms), "{name}: {took_ms} ms, not {range:?}: {waited:?}");
        }
    }
}

#[test]
fn a_wait_until_a_time_of_day_ends_when_the_node_s_clock_shows_it() {
    let Some(lab) = Lab::new() else { return };
    for offset_ns in [0, TEN_DAYS_NS, -TEN_DAYS_NS] {
        lab.clock.set(Shift::jump(offset_ns));
        // Generous at the top: the machine is busy. What goes by the machine's clock takes ten days, or nothing.
        lab.take(300, 299..5_000);
    }
}

#[test]
fn a_timer_that_is_past_is_as_far_past_by_every_clock() {
    let Some(lab) = Lab::new() else { return };
    for offset_ns in [0, TEN_DAYS_NS, -TEN_DAYS_NS] {
        lab.clock.set(Shift::jump(offset_ns));
        let waited = lab.waits(0, &["past-timerfd"], true);
        assert_eq!(waited.first().map(|(_, _, told)| told.as_str()), Some("done"), "{offset_ns}: {waited:?}");
    }
}

#[test]
fn a_clock_that_races_or_is_slow_ends_waits_sooner_or_later() {
    let Some(lab) = Lab::new() else { return };
    let running = |parts_per_billion| Shift::running_away(Rate { parts_per_billion }, true_ns());
    lab.clock.set(running(3_000_000_000).and(Shift::jump(TEN_DAYS_NS)));
    lab.take(1_600, 395..1_500);
    lab.clock.set(running(-500_000_000));
    lab.take(300, 595..5_000);
}

#[test]
fn java_waits_by_it() {
    let Some(lab) = Lab::new() else { return };
    if Command::new("java").arg("-version").stderr(Stdio::null()).status().is_err() {
        eprintln!("skipped: waits by a clock: no java");
        return;
    }
    let source = "class Park { public static void main(String[] a) { long from = System.nanoTime(); \
        java.util.concurrent.locks.LockSupport.parkUntil(System.currentTimeMillis() + 300); \
        System.out.println((System.nanoTime() - from) / 1000000); } }";
    std::fs::write(lab.path("Park.java"), source).expect("a source");
    let path = lab.path("Park.java").display().to_string();
    for offset_ns in [TEN_DAYS_NS, -TEN_DAYS_NS] {
        lab.clock.set(Shift::jump(offset_ns));
        let took_ms = lab.output(&["java", "-Xshare:auto", &path], true);
        assert!(took_ms.trim().parse().is_ok_and(|took_ms: u64| took_ms >= 299), "{offset_ns}: `{took_ms}`");
    }
}

#[test]
fn without_the_library_waits_go_by_the_machine_s_clock() {
    let Some(lab) = Lab::new() else { return };
    lab.clock.set(Shift::jump(-TEN_DAYS_NS));
    let waited = lab.waits(5_000, &["semaphore", "condition", "sleep"], false);
    assert!(waited.len() == 3 && waited.iter().all(|(_, took_ms, _)| *took_ms < 4_000), "{waited:?}");
}

#[test]
fn a_clock_that_is_set_while_a_program_waits_ends_its_wait_or_makes_it_longer() {
    let Some(lab) = Lab::new() else { return };
    let clock = Arc::clone(&lab.clock);
    // An hour ahead by the program's clock, which is then set to two hours ahead.
    let setter = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(700));
        clock.set(Shift::jump(7_200 * SECOND_NS));
    });
    let waited = lab.waits(3_600_000, &["semaphore", "condition"], true);
    setter.join().expect("set");
    let [(_, _, told), ..] = waited.as_slice() else { panic!("{waited:?}") };
    assert_eq!(
        (waited.len(), told.as_str()),
        (1, "late"),
        "the second wait begins after the clock was set: {waited:?}"
    );
}

#[test]
fn a_program_without_a_clock_of_its_own_is_left_alone() {
    let Some(lab) = Lab::new() else { return };
    let mut command = Command::new(lab.path("waits"));
    command.env(clock::waits::PRELOAD, clock::waits::preload(&lab.path("waits.so"), None));
    let output = command.arg("300").args(WAYS.map(|(name, _)| name)).output().expect("run");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), WAYS.len(), "{output:?}");
}
