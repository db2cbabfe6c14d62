//! What a scenario's database may do to the machine: everything within its node, nothing beyond its volume.
//!
//! Attacks are made as the node's user, through the database itself where it can start programs and by `holdfast shell`
//! otherwise. What counts is not what an attack says of itself, but what lies outside afterwards.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use crate::holdfast::{Desk, PROMOTE_SOON, arguments};
use crate::traces::{Before, processes};
use crate::turns::beside_others;

/// Only who promotes and who follows matters.
const LEDGER: &str = "loads=[{ workload: ledger, clients: 2, from: dc1, rate: 100/s }]";
/// What an attack prints where it got through.
const THROUGH: &str = "got through";
/// What is printed before each attack's name.
const NEXT: &str = "the next attack is: ";
/// What is printed when the last has ended.
const OVER: &str = "the attacks are over";

/// Attacks as shell scripts: `OUT` is a folder outside that anybody may write in, `RUN` the run directory, `DESK` where the
/// program was started, `LAB` process numbers of the lab.
const ATTACKS: &[(&str, &str)] = &[
    ("hard link to a file outside", "ln OUT/file /run/node/volume/file && echo x >> /run/node/volume/file"),
    (
        "symbolic link to a file outside",
        "ln -s OUT/file /run/node/volume/way; echo x >> /run/node/volume/way",
    ),
    (
        "write outside",
        "echo x > OUT/new; rm -rf OUT/file; touch DESK/new RUN/new; echo x > RUN/scenario.yaml",
    ),
    ("run directory", "cd RUN && echo got through; ls RUN/volumes/* RUN/logs/* && echo got through"),
    (
        "volume of another node",
        "cat RUN/volumes/n1/* && echo got through; ls RUN/volumes/n1 && echo got through",
    ),
    ("log", "ls /run/node/logs && echo got through; ln -s OUT/victim RUN/logs/n3/next && echo got through"),
    ("homes", "for home in /root /home ~root OUT; do ls $home && echo got through; done"),
    (
        "device node",
        "mknod /run/node/volume/disk b 8 0 && echo got through; find /dev -type b | grep . && echo got through",
    ),
    (
        "set-user program",
        "cp /bin/sh /run/node/volume/sh; chmod 6755 /run/node/volume/sh; grep -q 'NoNewPrivs:.1' /proc/self/status || echo got \\
         through; su -c id && echo got through",
    ),
    (
        "kernel settings",
        "for file in kernel/core_pattern kernel/hostname net/ipv4/ip_forward vm/swappiness; do
         echo 1 > /proc/sys/$file && echo got through; done",
    ),
    (
        "control groups",
        "mkdir /sys/fs/cgroup/x && echo got through; find / -name cgroup.procs 2>/dev/null | grep . && echo got through",
    ),
    (
        "the lab's processes",
        "kill -9 1; kill -STOP 1; for process in LAB; do kill -9 $process && echo got through; done; \\
         for file in environ maps fd/0 fd/3 cwd/etc/passwd; do cat /proc/1/$file > /dev/null && echo got through; done; \
         readlink /proc/1/fd/0 /proc/1/exe && echo got through",
    ),
    (
        "the lab's root",
        "for process in 1 LAB; do ls /proc/$process/root/ /proc/$process/cwd/ && echo got through; done",
    ),
    (
        "sockets outside",
        "[ -e OUT/socket ] && echo got through; perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(\"OUT/socket\") and print \
         \"got through\"'; find /run /tmp /var /etc /dev -type s | grep -v ^/run/node/ && echo got through",
    ),
    (
        "mounts",
        "mount -o remount,rw / && echo got through; mount -t tmpfs x /usr && echo got through; umount /usr && echo got through; \\
         unshare -Urm mount -o remount,rw,bind /usr && echo got through; unshare -U true && echo got through",
    ),
    (
        "keys of the login",
        "psql -c \"COPY (SELECT 1) TO PROGRAM 'cp /proc/keys /tmp/keys'\"; \
         grep LOGIN /proc/keys /tmp/keys && echo got through",
    ),
    (
        "the machine's files",
        "for folder in / /etc /usr /usr/bin /dev; do touch $folder/new && echo got through; done",
    ),
];

/// Name of the session keyring that the tests' login has.
const LOGIN: &std::ffi::CStr = c"holdfast-test-login";

/// Gives this thread, and what it starts, a session keyring with a name, as a login does.
fn log_in() {
    // SAFETY: KEYCTL_JOIN_SESSION_KEYRING (1) reads the name and nothing else.
    unsafe { libc::syscall(libc::SYS_keyctl, 1, LOGIN.as_ptr()) };
    let name = LOGIN.to_str().expect("a name");
    if !fs::read_to_string("/proc/keys").is_ok_and(|keys| keys.contains(name)) {
        eprintln!("skipped: keys of the login: no keyrings on this machine, or none to be seen");
    }
}

/// All that is below a folder, with content and owner.
fn everything(folder: &Path) -> BTreeMap<PathBuf, (u32, u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let facts = entry.metadata().expect("metadata");
        let content = if facts.is_file() { fs::read(entry.path()).expect("content") } else { Vec::new() };
        if facts.is_dir() {
            found.extend(everything(&entry.path()));
        }
        found.insert(entry.path(), (facts.mode(), facts.uid(), content));
    }
    found
}

/// A folder outside in which everybody may do everything: only what a node sees keeps it out.
fn open_to_all(desk: &Desk) -> (PathBuf, UnixListener) {
    let outside = desk.path().join("temporary/outside");
    fs::create_dir(&outside).expect("a folder");
    fs::write(outside.join("file"), "untouched").expect("a file");
    let listener = UnixListener::bind(outside.join("socket")).expect("a socket");
    listener.set_nonblocking(true).expect("no waiting");
    for (path, mode) in [("file", 0o666), ("socket", 0o777), ("", 0o777)] {
        fs::set_permissions(outside.join(path), Permissions::from_mode(mode)).expect("permissions");
    }
    (outside, listener)
}

/// What the machine's settings are that attacks would change.
fn settings() -> Vec<String> {
    let files = ["kernel/core_pattern", "kernel/hostname", "net/ipv4/ip_forward", "vm/swappiness"];
    files
        .iter()
        .map(|file| fs::read_to_string(Path::new("/proc/sys").join(file)).unwrap_or_default())
        .collect()
}

/// All attacks as one script: each in a shell of its own, with its name before it.
fn all_attacks() -> String {
    let one = |(name, script): &(&str, &str)| format!("echo \"{NEXT}{name}\"\n(\n{script}\n)\n");
    ATTACKS.iter().map(one).collect::<String>() + &format!("echo '{OVER}'\n")
}

/// Leads whoever writes the database's configuration, or opens its log, out of the volume.
fn plant_links(desk: &Desk, node: &str, outside: &Path) {
    let victim = outside.join("victim").display().to_string();
    let link = format!("ln -s {victim} /run/node/volume/holdfast.unfinished");
    let sql = format!("COPY (SELECT 1) TO PROGRAM '{link}'");
    if desk.run(&["shell", node, "psql", "-c", &sql]).code() != Some(0) {
        eprintln!("psql could not plant the link, so a shell does");
        desk.run(&["shell", node, "sh", "-c", &link]).ends_with(0);
    }
}

fn a_database_that_attacks(desk: &Desk) {
    log_in();
    let before = Before::look(desk);
    let (outside, listener) = open_to_all(desk);
    // Time for the links to be planted before the promotion; the attacks may go on after it, and take long on a busy machine.
    let schedule = "schedule=[{ phase: baseline, for: 8s }, { phase: fault, for: 5s, faults: [{ power-off: { host: leader }, \
                    at: 0s, for: 3s }] }, { phase: rest, for: 15s }]";
    let run = ["run", "scenarios/host-failure-promote.yaml", "--set", schedule, "--set", LEDGER];
    let running = desk.start(&arguments(&[&run, &PROMOTE_SOON]));
    assert!(running.says("phase baseline"));
    let directory = desk.path().join("runs/latest").canonicalize().expect("a run directory");
    let outside_before =
        (everything(&outside), settings(), fs::read(directory.join("scenario.yaml")).expect("it"));
    // Whichever of the two is promoted.
    for node in ["n2", "n3"] {
        plant_links(desk, node, &outside);
    }
    let lab: Vec<String> =
        processes(&desk.mark()).iter().filter_map(|line| line.split(' ').nth(1).map(str::to_owned)).collect();
    assert!(lab.len() > 5, "the lab's processes are found: {lab:?}");
    let script = all_attacks()
        .replace("OUT", &outside.display().to_string())
        .replace("RUN", &directory.display().to_string())
        .replace("DESK", &desk.path().display().to_string())
        .replace("LAB", &lab.join(" "))
        .replace("LOGIN", LOGIN.to_str().expect("a name"));
    let attacked = desk.run(&["shell", "n3", "sh", "-c", &script]);
    attacked.ends_with(0);
    let (made, _) = attacked.stdout.split_once(OVER).expect("every attack is made");
    let each: Vec<&str> = made.split(NEXT).skip(1).collect();
    assert_eq!(each.len(), ATTACKS.len(), "{made}");
    for attack in each {
        assert!(!attack.contains(THROUGH), "{attack}\n{}", attacked.stderr);
    }
    assert!(running.says("FAULT"), "the lab lives");
    let finished = running.wait();
    assert!(finished.stdout.contains("promoted, the most advanced of"), "{}", finished.stdout);
    let outside_after =
        (everything(&outside), settings(), fs::read(directory.join("scenario.yaml")).expect("it"));
    assert_eq!(outside_after, outside_before);
    assert!(listener.accept().is_err(), "nobody connected");
    for path in ["new", "logs/n3/next", "volumes"] {
        assert!(!directory.join(path).exists(), "{path}");
    }
    assert!(!desk.path().join("new").exists());
    let owner = fs::metadata(desk.path().join("runs")).expect("it").uid();
    for (path, (mode, user, _)) in everything(&directory) {
        assert!(user == owner && mode & 0o6000 == 0, "{}: {mode:o} of {user}", path.display());
    }
    fs::remove_dir_all(&outside).expect("the end");
    before.nothing_is_left(&[]);
}

#[test]
fn a_database_that_attacks_changes_nothing_outside_its_volume() {
    let _turn = beside_others();
    if let Some(desk) = Desk::with_a_lab("a_database_that_attacks_changes_nothing_outside_its_volume") {
        a_database_that_attacks(&desk);
    }
}

#[test]
fn a_database_that_attacks_changes_nothing_of_an_ordinary_user() {
    let _turn = beside_others();
    if let Some(desk) =
        Desk::of_an_ordinary_user("a_database_that_attacks_changes_nothing_of_an_ordinary_user")
    {
        a_database_that_attacks(&desk);
    }
}
