//! What programs may rely on beyond names: ways of writing, mappings, locks, attributes, listings.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;

use crate::contract::{Check, refused};

pub const CHECKS: &[Check] = &[
    ("appending_openings_do_not_overwrite_each_other", appending_openings_do_not_overwrite_each_other),
    ("holes_are_zeros_and_are_found", holes_are_zeros_and_are_found),
    ("allocating_stretches_punches_and_zeroes", allocating_stretches_punches_and_zeroes),
    ("a_shared_mapping_and_writes_see_each_other", a_shared_mapping_and_writes_see_each_other),
    ("direct_and_synced_openings_write_what_they_are_given", direct_and_synced_openings),
    ("locks_keep_others_out", locks_keep_others_out),
    ("extended_attributes_are_kept", extended_attributes_are_kept),
    ("a_listing_has_every_name_once", a_listing_has_every_name_once),
    ("times_follow_changes_and_are_set", times_follow_changes_and_are_set),
    ("owners_and_modes_are_kept_and_writing_takes_privileges_away", owners_and_modes),
    ("a_directory_hands_its_group_on", a_directory_hands_its_group_on),
    ("pipes_and_sockets_work", pipes_and_sockets_work),
    ("a_program_runs_and_a_copy_is_the_same", a_program_runs_and_a_copy_is_the_same),
    ("two_names_change_places", two_names_change_places),
    ("the_room_left_is_told", the_room_left_is_told),
];

fn new(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).create_new(true).open(path).expect("made")
}

fn text(path: &Path) -> CString {
    CString::new(path.as_os_str().as_encoded_bytes()).expect("no zero byte")
}

fn result(number: libc::c_int) -> std::io::Result<()> {
    if number == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

fn appending_openings_do_not_overwrite_each_other(folder: &Path) {
    let path = folder.join("f");
    let open = || OpenOptions::new().append(true).create(true).open(&path).expect("open");
    let (mut one, mut other) = (open(), open());
    for _ in 0..100 {
        one.write_all(b"1").expect("written");
        other.write_all(b"2").expect("written");
    }
    assert_eq!(fs::read(&path).expect("read"), b"12".repeat(100));
}

fn holes_are_zeros_and_are_found(folder: &Path) {
    let file = new(&folder.join("f"));
    file.write_all_at(b"end", 1 << 20).expect("written");
    let mut hole = vec![1; 8192];
    file.read_exact_at(&mut hole, 4096).expect("read");
    assert!(hole.iter().all(|byte| *byte == 0));
    let seek = |offset, whence| {
        // SAFETY: lseek(2) takes no pointers.
        let found = unsafe { libc::lseek(file.as_raw_fd(), offset, whence) };
        if found < 0 { Err(std::io::Error::last_os_error()) } else { Ok(found) }
    };
    assert_eq!(seek(0, libc::SEEK_DATA).expect("found"), 1 << 20);
    assert_eq!(seek(1 << 20, libc::SEEK_HOLE).expect("found"), (1 << 20) + 3);
    refused(seek(1 << 21, libc::SEEK_DATA), libc::ENXIO);
}

fn allocating_stretches_punches_and_zeroes(folder: &Path) {
    let file = new(&folder.join("f"));
    // SAFETY: fallocate(2) takes no pointers.
    let allocate =
        |mode, offset, bytes| result(unsafe { libc::fallocate(file.as_raw_fd(), mode, offset, bytes) });
    let size = || file.metadata().expect("there").len();
    allocate(0, 0, 16_384).expect("allocated");
    assert_eq!(size(), 16_384);
    allocate(libc::FALLOC_FL_KEEP_SIZE, 0, 1 << 20).expect("allocated");
    assert_eq!(size(), 16_384);
    file.write_all_at(&[1; 16_384], 0).expect("written");
    allocate(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE, 100, 8_000).expect("punched");
    let mut content = vec![0; 16_384];
    file.read_exact_at(&mut content, 0).expect("read");
    assert!((0..16_384).all(|at| content[at] == u8::from(!(100..8_100).contains(&at))));
}

fn a_shared_mapping_and_writes_see_each_other(folder: &Path) {
    use nix::sys::mman::{MapFlags, MsFlags, ProtFlags, mmap, msync};
    let file = new(&folder.join("f"));
    file.write_all_at(&[1; 8192], 0).expect("written");
    let length = std::num::NonZeroUsize::new(8192).expect("not zero");
    let both = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    let mut read = [0; 1];
    // SAFETY: a fresh mapping of 8192 bytes of a file that is that long, used within its bounds, never unmapped.
    unsafe {
        let mapping = mmap(None, length, both, MapFlags::MAP_SHARED, &file, 0).expect("mapped");
        let bytes = mapping.cast::<u8>();
        bytes.add(5000).write_volatile(2);
        file.read_exact_at(&mut read, 5000).expect("read");
        assert_eq!(read, [2]);
        file.write_all_at(&[3], 10).expect("written");
        assert_eq!(bytes.add(10).read_volatile(), 3);
        msync(mapping, 8192, MsFlags::MS_SYNC).expect("synced");
    }
    let again = fs::read(folder.join("f")).expect("read");
    assert_eq!((again[10], again[5000], again[5001]), (3, 2, 1));
}

fn direct_and_synced_openings(folder: &Path) {
    #[repr(align(4096))]
    struct Aligned([u8; 8192]);
    for flags in [libc::O_DIRECT, libc::O_DSYNC, libc::O_SYNC, libc::O_DIRECT | libc::O_DSYNC] {
        let path = folder.join(flags.to_string());
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).custom_flags(flags);
        let file = match options.open(&path) {
            Ok(file) => file,
            // Some plain folders, in memory, know no direct access.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => continue,
            Err(error) => panic!("{error}"),
        };
        let written = Aligned([7; 8192]);
        file.write_all_at(&written.0, 4096).expect("written");
        let mut read = Aligned([1; 8192]);
        file.read_exact_at(&mut read.0, 0).expect("read");
        assert!(read.0[..4096].iter().all(|byte| *byte == 0) && read.0[4096..].iter().all(|byte| *byte == 7));
        file.sync_all().expect("synced");
        file.sync_data().expect("synced");
    }
    File::open(folder).expect("a directory is opened").sync_all().expect("and synced");
}

fn locks_keep_others_out(folder: &Path) {
    let path = folder.join("f");
    let (one, other) = (new(&path), File::open(&path).expect("open"));
    one.try_lock().expect("locked");
    assert!(other.try_lock().is_err(), "two have an exclusive lock");
    one.unlock().expect("unlocked");
    other.try_lock().expect("locked");
    // SAFETY: zeros are a valid flock.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as i16;
    lock.l_len = 10;
    let other = OpenOptions::new().read(true).write(true).open(&path).expect("open");
    // SAFETY: fcntl(2) gets a pointer to a live flock.
    let take = |file: &File| result(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &lock) });
    take(&one).expect("locked");
    refused(take(&other), libc::EAGAIN);
    drop(one);
    take(&other).expect("a lock goes with its opening");
}

fn extended_attributes_are_kept(folder: &Path) {
    let path = folder.join("f");
    new(&path);
    let (path, name) = (text(&path), c"user.colour");
    let set = |value: &[u8], flags| {
        // SAFETY: all pointers are to live values of the lengths given.
        result(unsafe {
            libc::setxattr(path.as_ptr(), name.as_ptr(), value.as_ptr().cast(), value.len(), flags)
        })
    };
    let get = |buffer: &mut [u8]| {
        // SAFETY: as above.
        let bytes =
            unsafe { libc::getxattr(path.as_ptr(), name.as_ptr(), buffer.as_mut_ptr().cast(), buffer.len()) };
        if bytes < 0 { Err(std::io::Error::last_os_error()) } else { Ok(bytes) }
    };
    match set(b"red", 0) {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
            eprintln!("skipped: extended attributes: this folder has none");
            return;
        }
        done => done.expect("set"),
    }
    let mut buffer = [0; 16];
    assert_eq!(get(&mut buffer).expect("there"), 3);
    assert_eq!(&buffer[..3], b"red");
    assert_eq!(get(&mut []).expect("its length"), 3);
    refused(get(&mut [0; 2]), libc::ERANGE);
    refused(set(b"blue", libc::XATTR_CREATE), libc::EEXIST);
    set(b"blue", libc::XATTR_REPLACE).expect("replaced");
    let mut names = [0u8; 64];
    // SAFETY: as above.
    let bytes = unsafe { libc::listxattr(path.as_ptr(), names.as_mut_ptr().cast(), names.len()) };
    assert_eq!(&names[..bytes as usize], b"user.colour\0");
    // SAFETY: as above.
    result(unsafe { libc::removexattr(path.as_ptr(), name.as_ptr()) }).expect("removed");
    refused(get(&mut buffer), libc::ENODATA);
}

fn a_listing_has_every_name_once(folder: &Path) {
    let expected: BTreeSet<String> =
        (0..2_000).map(|number| format!("a-file-with-a-name-{number}")).collect();
    for name in &expected {
        new(&folder.join(name));
    }
    let list = || -> Vec<String> {
        let names = fs::read_dir(folder).expect("read").map(|entry| entry.expect("read").file_name());
        names.map(|name| name.into_string().expect("text")).collect()
    };
    let found = list();
    assert_eq!((found.len(), found.into_iter().collect::<BTreeSet<_>>()), (2_000, expected));
    for entry in fs::read_dir(folder).expect("read") {
        fs::remove_file(entry.expect("read").path()).expect("removed while it is listed");
    }
    assert_eq!(list(), [""; 0]);
}

fn times_follow_changes_and_are_set(folder: &Path) {
    let path = folder.join("f");
    let file = new(&path);
    let times = || {
        let found = fs::metadata(&path).expect("there");
        ((found.mtime(), found.mtime_nsec()), (found.ctime(), found.ctime_nsec()))
    };
    let pause = || std::thread::sleep(std::time::Duration::from_millis(20));
    let (before, _) = times();
    pause();
    file.write_all_at(b"x", 0).expect("written");
    let (modified, changed) = times();
    assert!(modified > before, "writing changes the time");
    pause();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("changed");
    assert!(times().0 == modified && times().1 > changed, "a mode is no content");
    let moment = std::time::UNIX_EPOCH + std::time::Duration::new(1_000_000_000, 123_456_789);
    file.set_modified(moment).expect("set");
    assert_eq!(times().0, (1_000_000_000, 123_456_789));
    let folder_time = || fs::metadata(folder).expect("there").modified().expect("a time");
    let before = folder_time();
    pause();
    fs::rename(&path, folder.join("g")).expect("renamed");
    assert!(folder_time() > before, "a directory changes with its names");
}

fn owners_and_modes(folder: &Path) {
    let path = folder.join("f");
    let file = new(&path);
    let mode = || fs::metadata(&path).expect("there").mode() & 0o7777;
    fs::set_permissions(&path, Permissions::from_mode(0o6755)).expect("changed");
    assert_eq!(mode(), 0o6755);
    std::os::unix::fs::fchown(&file, None, Some(0)).expect("given");
    assert_eq!(mode(), 0o755, "a change of owner takes set-user and set-group");
    fs::set_permissions(folder, Permissions::from_mode(0o1777)).expect("changed");
    assert_eq!(fs::metadata(folder).expect("there").mode() & 0o7777, 0o1777);
    if !nix::unistd::geteuid().is_root() || std::os::unix::fs::chown(&path, Some(1000), Some(1000)).is_err() {
        eprintln!("skipped: other owners: only one user is to be had here");
        return;
    }
    let found = fs::metadata(&path).expect("there");
    assert_eq!((found.uid(), found.gid()), (1000, 1000));
    fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("changed");
    let reads = |user: u32| {
        use std::os::unix::process::CommandExt;
        Command::new("cat").arg(&path).uid(user).gid(user).output().expect("runs").status.success()
    };
    // The folders above this one may be closed to others; only where the owner can read is the other's failure telling.
    if reads(1000) {
        assert!(!reads(1001), "somebody else reads a file of mode 600");
    }
}

fn a_directory_hands_its_group_on(folder: &Path) {
    if std::os::unix::fs::chown(folder, None, Some(1000)).is_err() {
        eprintln!("skipped: a_directory_hands_its_group_on: only one group is to be had here");
        return;
    }
    fs::set_permissions(folder, Permissions::from_mode(0o2755)).expect("changed");
    new(&folder.join("f"));
    fs::create_dir(folder.join("d")).expect("made");
    assert_eq!(fs::metadata(folder.join("f")).expect("there").gid(), 1000);
    let directory = fs::metadata(folder.join("d")).expect("there");
    assert_eq!((directory.gid(), directory.mode() & 0o2000), (1000, 0o2000));
}

fn pipes_and_sockets_work(folder: &Path) {
    let pipe = folder.join("pipe");
    // SAFETY: the path is a live, terminated string.
    result(unsafe { libc::mkfifo(text(&pipe).as_ptr(), 0o600) }).expect("made");
    assert!(fs::metadata(&pipe).expect("there").file_type().is_fifo());
    let writer = {
        let pipe = pipe.clone();
        std::thread::spawn(move || fs::write(pipe, "through").expect("written"))
    };
    assert_eq!(fs::read(&pipe).expect("read"), b"through");
    writer.join().expect("written");
    // A socket's path has 108 bytes at most, so it is bound from within.
    std::env::set_current_dir(folder).expect("entered");
    let listener = UnixListener::bind("socket").expect("bound");
    let mut client = UnixStream::connect("socket").expect("connected");
    client.write_all(b"hello").expect("sent");
    drop(client);
    let mut heard = String::new();
    listener.accept().expect("accepted").0.read_to_string(&mut heard).expect("heard");
    assert_eq!(heard, "hello");
}

fn a_program_runs_and_a_copy_is_the_same(folder: &Path) {
    let program = folder.join("program");
    fs::copy("/bin/true", &program).expect("copied");
    assert_eq!(fs::read(&program).expect("read"), fs::read("/bin/true").expect("read"));
    assert!(Command::new(&program).status().expect("runs").success());
    let copy = folder.join("copy");
    fs::copy(&program, &copy).expect("copied within");
    assert_eq!(fs::read(&copy).expect("read"), fs::read(&program).expect("read"));
}

fn two_names_change_places(folder: &Path) {
    let (one, other) = (folder.join("one"), folder.join("other"));
    fs::write(&one, "1").expect("written");
    fs::write(&other, "2").expect("written");
    let rename = |flags| {
        let (one, other) = (text(&one), text(&other));
        // SAFETY: both paths are live, terminated strings.
        result(unsafe {
            libc::renameat2(libc::AT_FDCWD, one.as_ptr(), libc::AT_FDCWD, other.as_ptr(), flags)
        })
    };
    refused(rename(libc::RENAME_NOREPLACE), libc::EEXIST);
    rename(libc::RENAME_EXCHANGE).expect("exchanged");
    assert_eq!((fs::read(&one).expect("read"), fs::read(&other).expect("read")), (b"2".into(), b"1".into()));
}

fn the_room_left_is_told(folder: &Path) {
    let found = nix::sys::statvfs::statvfs(folder).expect("told");
    assert!(found.blocks() > 0 && found.blocks_free() <= found.blocks() && found.name_max() == 255);
}
