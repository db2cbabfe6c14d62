//! What a power-off does to a mounted volume and to the processes on it.

use std::fs::{self, File, FileTimes, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use disk::Defect;
use libtest_mimic::Failed;

use crate::contract::Check;
use crate::test_mount::{self, Mounted};

/// What a clock shows that is far from right, seconds since 1970.
const THEN_S: u64 = 1_000_000_000;

/// A test by its name.
type Test = (&'static str, fn() -> Result<(), Failed>);

pub const TESTS: &[Test] = &[
    ("what_a_process_synced_is_there_after_a_power_off_and_nothing_else", synced_and_not),
    ("a_process_that_writes_gets_an_error_when_the_power_goes_and_can_be_killed", no_process_hangs),
    ("writes_through_a_mapping_are_taken_back_unless_they_were_synced", mappings),
    ("a_process_that_waits_for_a_stalled_disk_is_let_go_when_the_power_goes", stalled),
    ("what_was_made_beside_a_volume_is_taken_over_durable_from_the_start", taken_over),
    ("a_file_with_two_names_is_not_taken_over", not_taken_over),
    ("files_are_stamped_by_the_clock_of_their_node", stamped_by_the_nodes_clock),
    ("each_of_a_hundred_mounts_at_once_takes_less_than_5_mb", memory),
];

/// What their processes do.
pub const PARTS: &[Check] = &[
    ("write and sync some", write_and_sync_some),
    ("tell what is there", tell_what_is_there),
    ("write on and on", write_on_and_on),
    ("make a tree", make_a_tree),
    ("find the tree and change it", find_the_tree_and_change_it),
    ("find the tree as it was made", find_the_tree_as_it_was_made),
    ("write through a mapping", write_through_a_mapping),
    ("tell how files are stamped", tell_how_files_are_stamped),
];

fn stamped_by_the_nodes_clock() -> Result<(), Failed> {
    let mounted = Mounted::new();
    mounted.mount.stamp_by(|| SystemTime::UNIX_EPOCH + Duration::from_secs(THEN_S));
    test_mount::run("tell how files are stamped", &mounted.place)?;
    Ok(())
}

fn tell_how_files_are_stamped(folder: &Path) {
    let stamp_s = |name: &str| fs::metadata(folder.join(name)).expect("there").mtime() as u64;
    fs::write(folder.join("written"), "x").expect("written");
    assert_eq!(stamp_s("written"), THEN_S);
    fs::create_dir(folder.join("made")).expect("made");
    assert_eq!(stamp_s("made"), THEN_S);
    // As `touch` does: the kernel is told to take the time of now.
    let file = File::open(folder.join("written")).expect("there");
    let earlier = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(7));
    file.set_times(earlier).expect("set");
    assert_eq!(stamp_s("written"), 7, "a time that is given is taken as it is");
    nix::sys::stat::futimens(
        &file,
        &nix::sys::time::TimeSpec::UTIME_NOW,
        &nix::sys::time::TimeSpec::UTIME_NOW,
    )
    .expect("set");
    assert_eq!(stamp_s("written"), THEN_S);
}

fn synced_and_not() -> Result<(), Failed> {
    let mut mounted = Mounted::new();
    test_mount::run("write and sync some", &mounted.place)?;
    mounted.lose_power(|| ());
    let there = test_mount::run("tell what is there", &mounted.place)?;
    let expected =
        "dsync: 7 bytes\nfsync: 5 bytes\nfsync-then-more: 5 bytes\nrange: not there\nsync: 6 bytes\n";
    assert_eq!(there, expected.replace("range: not there\n", ""));
    Ok(())
}

fn write_and_sync_some(folder: &Path) {
    let with = |name: &str, flags: i32| {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).custom_flags(flags).open(folder.join(name)).expect("made")
    };
    let write = |mut file: File, text: &str| {
        file.write_all(text.as_bytes()).expect("written");
        file
    };
    write(with("never", 0), "never");
    write(with("fsync", 0), "fsync").sync_all().expect("synced");
    let file = write(with("fsync-then-more", 0), "fsync");
    file.sync_data().expect("synced");
    write(file, "more");
    write(with("sync", libc::O_SYNC), "o_sync");
    write(with("dsync", libc::O_DSYNC), "o_dsync");
    let ranged = write(with("range", 0), "range");
    let all =
        libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: sync_file_range(2) takes no pointers.
    let result = unsafe { libc::sync_file_range(std::os::fd::AsRawFd::as_raw_fd(&ranged), 0, 0, all) };
    assert_eq!(result, 0);
}

fn tell_what_is_there(folder: &Path) {
    let mut names: Vec<_> =
        fs::read_dir(folder).expect("read").map(|entry| entry.expect("read").path()).collect();
    names.sort();
    for path in names {
        let name = path.file_name().expect("a name").display();
        println!("{name}: {} bytes", fs::read(&path).expect("read").len());
    }
}

fn no_process_hangs() -> Result<(), Failed> {
    let mut mounted = Mounted::new();
    for _ in 0..5 {
        let mut writers: Vec<_> =
            (0..3).map(|_| test_mount::start("write on and on", &mounted.place)).collect();
        for writer in &mut writers {
            let said = writer.stdout.as_mut().expect("its output");
            let mut line = String::new();
            BufReader::new(said).read_line(&mut line)?;
        }
        mounted.lose_power(|| {
            for writer in &mut writers {
                writer.kill().expect("killed");
                writer.wait().expect("it ends");
            }
        });
    }
    Ok(())
}

/// Waiting for an answer that never comes, a process would not even be reached by SIGKILL.
fn stalled() -> Result<(), Failed> {
    let mut mounted = Mounted::new();
    let stall = mounted.disk.impose(Defect::Stall);
    let mut writer = test_mount::start("write on and on", &mounted.place);
    while mounted.volume.store().defect_effects().held_up == 0 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    mounted.lose_power(|| {
        writer.kill().expect("killed");
        writer.wait().expect("it ends");
    });
    drop(stall);
    test_mount::run("write and sync some", &mounted.place)?;
    Ok(())
}

/// With another process than the serving one for all that is made and seen, as in a lab.
fn taken_over() -> Result<(), Failed> {
    let mut mounted = Mounted::new();
    test_mount::run("make a tree", &mounted.beside)?;
    // The kernel has looked at the volume before.
    assert_eq!(test_mount::run("tell what is there", &mounted.place)?, "");
    mounted.volume.adopt(&mounted.beside)?;
    assert_eq!(fs::read_dir(&mounted.beside)?.count(), 0, "moved, not copied");
    test_mount::run("find the tree and change it", &mounted.place)?;
    let lost = mounted.lose_power(|| ());
    assert_eq!((lost.files, lost.blocks_restored), (1, 1), "{lost:?}");
    test_mount::run("find the tree as it was made", &mounted.place)?;
    test_mount::run("make a tree", &mounted.beside)?;
    let taken = mounted.volume.adopt(&mounted.beside).expect_err("the names are taken");
    assert_eq!(taken.kind(), std::io::ErrorKind::AlreadyExists);
    Ok(())
}

fn not_taken_over() -> Result<(), Failed> {
    let mounted = Mounted::new();
    fs::write(mounted.beside.join("one"), "x")?;
    fs::hard_link(mounted.beside.join("one"), mounted.beside.join("two"))?;
    let refused = mounted.volume.adopt(&mounted.beside).expect_err("refused");
    assert!(refused.to_string().contains("several names"), "{refused}");
    assert_eq!(fs::read(mounted.beside.join("two"))?, b"x");
    Ok(())
}

fn make_a_tree(folder: &Path) {
    use std::os::unix::fs::{PermissionsExt, symlink};
    fs::create_dir(folder.join("d")).expect("made");
    fs::set_permissions(folder.join("d"), fs::Permissions::from_mode(0o700)).expect("changed");
    fs::write(folder.join("d/long"), vec![b'o'; 10_000]).expect("written");
    fs::set_permissions(folder.join("d/long"), fs::Permissions::from_mode(0o640)).expect("changed");
    fs::write(folder.join("d/empty"), "").expect("written");
    symlink("d/long", folder.join("link")).expect("linked");
}

fn find_the_tree_and_change_it(folder: &Path) {
    find_the_tree_as_it_was_made(folder);
    let file = OpenOptions::new().write(true).open(folder.join("d/long")).expect("open");
    file.write_all_at(b"changed", 5000).expect("written");
    fs::rename(folder.join("d"), folder.join("e")).expect("renamed");
    fs::remove_file(folder.join("link")).expect("removed");
}

fn find_the_tree_as_it_was_made(folder: &Path) {
    use std::os::unix::fs::MetadataExt;
    assert_eq!(fs::read(folder.join("link")).expect("read"), vec![b'o'; 10_000]);
    assert_eq!(fs::read(folder.join("d/empty")).expect("read"), b"");
    let mode = |name: &str| fs::symlink_metadata(folder.join(name)).expect("there").mode() & 0o7777;
    assert_eq!((mode("d"), mode("d/long")), (0o700, 0o640));
    let status = fs::metadata(folder.join("d/long")).expect("there");
    assert_eq!((status.uid(), status.nlink()), (nix::unistd::geteuid().as_raw(), 1));
}

fn write_on_and_on(folder: &Path) {
    let file = File::create(folder.join(std::process::id().to_string())).expect("made");
    for round in 0u64.. {
        if file.write_all_at(&[1; 8192], round % 64 * 8192).and_then(|()| file.sync_data()).is_err() {
            return;
        }
        if round == 10 {
            println!("writing");
        }
    }
}

fn mappings() -> Result<(), Failed> {
    let mut mounted = Mounted::new();
    test_mount::run("write through a mapping", &mounted.place)?;
    mounted.lose_power(|| ());
    let there = test_mount::run("tell what is there", &mounted.place)?;
    assert_eq!(there, "mapped: 8192 bytes\n");
    let status = mounted.volume.look_up(disk::ROOT, "mapped".as_ref())?;
    let mut content = vec![0; 8192];
    mounted.volume.read(status.inode, 0, &mut content)?;
    assert_eq!((content[0], content[4096]), (b'S', b'o'), "the synced page is new, the other is old");
    Ok(())
}

fn write_through_a_mapping(folder: &Path) {
    use nix::sys::mman::{MapFlags, MsFlags, ProtFlags, mmap, msync};
    let path = folder.join("mapped");
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path).expect("made");
    file.write_all_at(&[b'o'; 8192], 0).expect("written");
    file.sync_all().expect("synced");
    let length = std::num::NonZeroUsize::new(8192).expect("not zero");
    let both = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: a fresh mapping of 8192 bytes of a file that is that long, used within its bounds, never unmapped.
    unsafe {
        let mapping = mmap(None, length, both, MapFlags::MAP_SHARED, &file, 0).expect("mapped");
        mapping.cast::<u8>().write(b'S');
        msync(mapping, 8192, MsFlags::MS_SYNC).expect("synced");
        mapping.cast::<u8>().add(4096).write(b'N');
        msync(mapping, 8192, MsFlags::MS_ASYNC).expect("begun");
    }
    let mut first = [0; 1];
    file.read_exact_at(&mut first, 0).expect("read");
    assert_eq!(first, *b"S");
}

fn memory() -> Result<(), Failed> {
    const MOUNTS: u64 = 100;
    let resident = || -> u64 {
        let status = fs::read_to_string("/proc/self/status").expect("read");
        let line = status.lines().find(|line| line.starts_with("RssAnon:")).expect("a line");
        line.split_whitespace().nth(1).and_then(|kilobytes| kilobytes.parse().ok()).expect("a number")
    };
    let before = resident();
    let mounts: Vec<Mounted> = (0..MOUNTS).map(|_| Mounted::new()).collect();
    for mounted in &mounts {
        test_mount::run("write and sync some", &mounted.place)?;
    }
    let each_kb = resident().saturating_sub(before) / MOUNTS;
    assert!(each_kb < 5_000, "{each_kb} kB a mount");
    Ok(())
}
