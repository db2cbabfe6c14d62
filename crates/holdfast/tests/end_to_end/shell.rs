//! `holdfast shell`: into a node while its lab is up, out with its exit code, gone with the lab.

use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout};

use crate::holdfast::{Desk, RESTART_SOON, Running, SHORT, SMALL, arguments, unless_stalled};
use crate::traces::Before;
use crate::turns::beside_others;

/// A run that is under load and goes on until it is interrupted: a slow machine has all the time it needs.
fn under_load(desk: &Desk) -> Running {
    let running = desk.start(&arguments(&[
        &["run", "scenarios/host-failure.yaml", "--keep"],
        &SHORT,
        &RESTART_SOON,
        &[
            "--set",
            "schedule.1.for=600s",
            "--set",
            "loads=[{ workload: ledger, clients: 2, from: dc1, rate: 100/s }]",
        ],
    ]));
    assert!(running.says("phase baseline"));
    running
}

/// What `holdfast shell PLACE sh -c SCRIPT` prints, and its exit code.
#[track_caller]
fn check(desk: &Desk, place: &str, script: &str, printed: &str, code: i32) {
    let finished = desk.run(&["shell", place, "sh", "-c", script]);
    finished.ends_with(code);
    assert_eq!(finished.stdout.trim(), printed, "{}", finished.stderr);
}

fn commands_run_inside(desk: &Desk) {
    check(desk, "n1", "exit 7", "", 7);
    check(desk, "n1", "kill -TERM $$", "", 143);
    check(
        desk,
        "n2",
        "hostname; id -u; cd /proc/sys/net/ipv4/conf; echo *",
        "n2\n1000\nall default eth0 lo",
        0,
    );
    // EPERM, and not ENOTTY, which says that this input is no terminal.
    check(desk, "n1", "perl -e '$typed = \"x\"; ioctl(STDIN, 0x5412, $typed); print $!+0'", "1", 0);
    check(desk, "n1", "cat /proc/1/cmdline | tr '\\0' ' ' | cut -d' ' -f2", "node-init", 0);
    // The database's tools connect without being told where: on a node to its own, from the clients' place to the leader.
    let ask = "psql -Atc 'SELECT inet_server_addr(), pg_is_in_recovery()'";
    if desk.run(&["shell", "n1", "psql", "--version"]).code() == Some(0) {
        check(desk, "n1", ask, "|f", 0);
        check(desk, "n2", ask, "|t", 0);
        check(desk, "dc1/clients", ask, "10.2.0.1|f", 0);
    } else {
        eprintln!("skipped: commands_run_inside: psql: the database was installed without it");
    }
    // A host has a network and nothing else; what the visit brings is all there is to see.
    check(desk, "dc1/a/r1/h1", "hostname; id -u; cd /proc; echo [0-9]*", "dc1.a.r1.h1\n1000\n1 2", 0);
    let missing = desk.run(&["shell", "n1", "no-such-program"]);
    missing.ends_with(127);
    assert_eq!(missing.stderr, "holdfast: n1: no-such-program: No such file or directory (os error 2)\n");
    desk.run(&["shell", "n1", "/etc/passwd"]).ends_with(126);
    let unknown = desk.run(&["shell", "n9", "true"]);
    unknown.ends_with(254);
    let known = "holdfast: the lab has no node `n9`; it has n1, n2, n3, and without a database dc1/a/r1/h1, ";
    assert!(unknown.stderr.starts_with(known), "{}", unknown.stderr);
}

/// A shell that is open when the lab ends, ends with it, whatever it ignores.
fn ends_with_the_lab(desk: &Desk, running: Running) {
    let script = "trap '' TERM INT HUP; echo open; while :; do sleep 1; done";
    let open = ["n2", "dc1/clients"].map(|place| desk.start(&["shell", place, "sh", "-c", script]));
    for shell in &open {
        assert!(shell.says("open"));
    }
    running.signal_group(libc::SIGINT);
    running.wait().ends_with(2);
    for shell in open {
        shell.wait().ends_with(137);
    }
}

fn no_lab_is_up(desk: &Desk) {
    let finished = desk.run(&["shell", "n1", "true"]);
    finished.ends_with(254);
    assert!(finished.stderr.starts_with("holdfast: no lab is up in runs/latest"), "{}", finished.stderr);
}

#[test]
fn commands_run_inside_while_the_lab_is_up_and_die_with_it() {
    let _turn = beside_others();
    let Some(desk) = Desk::with_a_lab("commands_run_inside_while_the_lab_is_up") else { return };
    no_lab_is_up(&desk);
    let before = Before::look(&desk);
    let running = under_load(&desk);
    let pid = running.pid();
    commands_run_inside(&desk);
    ends_with_the_lab(&desk, running);
    no_lab_is_up(&desk);
    before.nothing_is_left(&[pid]);
}

#[test]
fn an_ordinary_user_enters_and_nobody_else_does() {
    let _turn = beside_others();
    let Some(desk) = Desk::of_an_ordinary_user("an_ordinary_user_enters") else { return };
    let before = Before::look(&desk);
    let running = under_load(&desk);
    let pid = running.pid();
    commands_run_inside(&desk);
    if nix::unistd::geteuid().is_root() {
        let mut as_root = Command::new(desk.path().join("holdfast"));
        let output =
            as_root.args(["shell", "n1", "true"]).current_dir(desk.path()).output().expect("a start");
        assert_eq!(output.status.code(), Some(254));
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains("only that user may enter it"), "{told}");
    }
    ends_with_the_lab(&desk, running);
    before.nothing_is_left(&[pid]);
}

#[test]
fn a_stopped_command_does_not_hold_up_a_power_off_and_ends_with_its_node() {
    let _turn = beside_others();
    let Some(desk) = Desk::with_a_lab("a_stopped_command_does_not_hold_up_a_power_off") else { return };
    let attempt = || {
        // Long enough for the shell to be open before the power goes, on a slow machine too.
        let running = desk.start(&arguments(&[&SMALL, &["--set", "schedule.1.for=8s"]]));
        assert!(running.says("phase baseline"));
        let shell = desk.start(&["shell", "n1", "sh", "-c", "echo open; sleep 1000; sleep 1000"]);
        assert!(shell.says("open"));
        // As Ctrl-Z does, to all that the terminal's keys reach.
        shell.signal_group(libc::SIGSTOP);
        assert!(running.says("took effect: pass"), "the power-off has its receipt");
        assert!(running.says("ready: the database on n1"), "the platform goes on");
        shell.signal_group(libc::SIGCONT);
        shell.wait().ends_with(137);
        running.wait()
    };
    unless_stalled(attempt).ends_with(0);
}

/// The far end of a terminal of its own.
fn at_a_terminal(desk: &Desk, place: &str) -> (std::process::Child, std::fs::File) {
    let pair = nix::pty::openpty(None, None).expect("a terminal");
    // Whoever holds the far end keeps the terminal from hanging up.
    for end in [&pair.master, &pair.slave] {
        fcntl(end, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).expect("a descriptor's flag");
    }
    let near = || Stdio::from(OwnedFd::from(std::fs::File::from(pair.slave.try_clone().expect("a copy"))));
    let mut command = Command::new(desk.path().join("holdfast"));
    command.args(["shell", place]).current_dir(desk.path()).env("TERM", "dumb");
    command.stdin(near()).stdout(near()).stderr(near());
    // SAFETY: both are system calls; the terminal is the child's standard input by then.
    unsafe {
        command.pre_exec(|| {
            nix::unistd::setsid()?;
            if libc::ioctl(std::io::stdin().as_raw_fd(), libc::TIOCSCTTY, 0) < 0 {
                return Err(std::io::Error::last_os_error());
            }
            Ok(())
        });
    }
    (command.spawn().expect("the program starts"), pair.master.into())
}

/// Reads until this was printed.
#[track_caller]
fn read_until(terminal: &mut std::fs::File, text: &str) -> String {
    let mut seen = String::new();
    let mut bytes = [0; 1024];
    while !seen.contains(text) {
        match terminal.read(&mut bytes) {
            Ok(count) if count > 0 => seen.push_str(&String::from_utf8_lossy(&bytes[..count])),
            ended => panic!("{ended:?} before `{text}`; so far:\n{seen}"),
        }
    }
    seen
}

/// Types a line until this was printed: what is typed ahead of the prompt may be thrown away with what Ctrl-C ended, as
/// every shell does, and a person types again.
#[track_caller]
fn typed_until(terminal: &mut std::fs::File, line: &str, text: &str) -> String {
    let mut seen = String::new();
    let mut bytes = [0; 1024];
    for _ in 0..60 {
        // Where the shell has ended after all, the reading says so.
        let _ = terminal.write_all(line.as_bytes());
        loop {
            let mut ready = [PollFd::new(terminal.as_fd(), PollFlags::POLLIN)];
            if nix::poll::poll(&mut ready, PollTimeout::from(5_000_u16)).expect("a look") == 0 {
                break;
            }
            match terminal.read(&mut bytes) {
                Ok(count) if count > 0 => seen.push_str(&String::from_utf8_lossy(&bytes[..count])),
                ended => panic!("{ended:?} before `{text}`; so far:\n{seen}"),
            }
            if seen.contains(text) {
                return seen;
            }
        }
    }
    panic!("no `{text}`; so far:\n{seen}");
}

#[test]
fn a_shell_at_a_terminal_names_its_node_and_controls_its_jobs() {
    let _turn = beside_others();
    let Some(desk) = Desk::with_a_lab("a_shell_at_a_terminal") else { return };
    let running = under_load(&desk);
    let (mut shell, mut terminal) = at_a_terminal(&desk, "n1");
    let mut seen = read_until(&mut terminal, "n1");
    terminal.write_all(b"test -t 0 && echo terminal-$((10+1)) > /dev/tty\n").expect("typed");
    seen += &read_until(&mut terminal, "terminal-11");
    // Ctrl-C ends what runs in the foreground, and neither the shell nor its way in.
    terminal.write_all(b"sh -c 'echo waiting-$((20+2)); exec sleep 1000'\n").expect("typed");
    seen += &read_until(&mut terminal, "waiting-22");
    terminal.write_all(b"\x03").expect("typed");
    seen += &typed_until(&mut terminal, "echo code-$?\n", "code-130");
    // Ctrl-Z stops it, and the shell goes on.
    terminal.write_all(b"sh -c 'echo waiting-$((30+3)); exec sleep 1000'\n").expect("typed");
    seen += &read_until(&mut terminal, "waiting-33");
    terminal.write_all(b"\x1a").expect("typed");
    // Said twice: a shell that has not yet noticed its job's end refuses to leave once.
    let line = "jobs | wc -l | sed s/^/jobs-/; kill -KILL %1; exit 9\nexit 9\n";
    seen += &typed_until(&mut terminal, line, "jobs-1");
    drop(std::thread::spawn(move || terminal.read_to_end(&mut Vec::new())));
    assert_eq!(shell.wait().expect("its end").code(), Some(9), "{seen}");
    assert!(!seen.contains("job control"), "{seen}");
    running.signal_group(libc::SIGINT);
    running.wait().ends_with(2);
}
