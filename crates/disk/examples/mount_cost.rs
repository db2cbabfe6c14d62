//! What a volume costs beside the folder it lies in: CPU and wall seconds of the same work on both, in turn.
//!
//! `cargo run --release -p disk --example mount_cost -- 5` does each five times and prints medians. Needs what a lab needs:
//! its own mount namespace and `/dev/fuse`. The work is done by a process of its own, as in a lab.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use disk::{Disk, Flush, FolderStore, Limits, OnDisk, Volume};
use nix::mount::MsFlags;
use nix::sched::{CloneFlags, unshare};

/// Kinds of work: the name, and what one unit of it is.
const WORKS: [(&str, &str); 5] = [
    ("write", "GB written in blocks of 1 MiB"),
    ("read", "GB read in blocks of 1 MiB, out of the cache below"),
    ("write-8k", "GB written in blocks of 8 KiB"),
    ("files", "1000 files of 40 KiB made in blocks of 8 KiB, as a database is made"),
    ("synced", "1000 blocks of 4 KiB, each synced"),
];
const MIB: usize = 1 << 20;
/// A GB, nearly: what the goals are told in.
const BLOCKS: usize = 954;

fn work(kind: &str, folder: &Path) -> std::io::Result<()> {
    let path = folder.join("file");
    let open = || OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    match kind {
        "write" | "write-8k" => {
            let block = vec![7; if kind == "write" { MIB } else { 8192 }];
            let mut file = File::create(&path)?;
            for _ in 0..BLOCKS * MIB / block.len() {
                file.write_all(&block)?;
            }
        }
        "read" => {
            let file = open()?;
            nix::fcntl::posix_fadvise(&file, 0, 0, nix::fcntl::PosixFadviseAdvice::POSIX_FADV_DONTNEED)?;
            let mut block = vec![0; MIB];
            for number in 0..BLOCKS {
                file.read_at(&mut block, (number * MIB) as u64)?;
            }
        }
        "files" => {
            for number in 0..1000 {
                let mut file = File::create(folder.join(format!("file{number}")))?;
                for _ in 0..5 {
                    file.write_all(&[7; 8192])?;
                }
            }
        }
        _ => {
            let file = open()?;
            for number in 0..1000_u64 {
                file.write_all_at(&[7; 4096], number * 7919 % 10_000 * 4096)?;
                file.sync_data()?;
            }
        }
    }
    Ok(())
}

/// CPU seconds of children that have been waited for, as user and in the kernel.
fn cpu_of_children() -> f64 {
    let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_CHILDREN).expect("usage");
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    seconds(usage.user_time()) + seconds(usage.system_time())
}

/// Wall and CPU seconds of the worker.
fn worker(kind: &str, folder: &Path) -> (f64, f64) {
    let (began, before) = (Instant::now(), cpu_of_children());
    let program = std::env::current_exe().expect("a program");
    let status = Command::new(program).arg("work").arg(kind).arg(folder).status().expect("started");
    assert!(status.success(), "{kind}: {status}");
    (began.elapsed().as_secs_f64(), cpu_of_children() - before)
}

/// The works in turn on a fresh volume: wall, worker's CPU and the volume's CPU seconds of each.
fn on_volume() -> Vec<(f64, f64, f64)> {
    let (below, above) =
        (tempfile::tempdir_in(".").expect("a folder"), tempfile::tempdir().expect("a folder"));
    let store = OnDisk::new(FolderStore::new(below.path(), Flush::Real), Disk::alone("d1"));
    let volume = Arc::new(Volume::new(store, Limits::default(), 0, 0, SystemTime::now()));
    let (point, mount) = disk::prepare(volume).expect("prepared");
    let folder = above.path().to_owned();
    let job = move || {
        unshare(CloneFlags::CLONE_NEWNS).expect("a mount namespace");
        nix::mount::mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_SLAVE, None::<&str>)
            .expect("slave");
        point.mount_over(&folder).expect("mounted");
        let one = |(kind, _): &(&str, &str)| {
            let before = mount.cpu_time();
            let (wall, cpu) = worker(kind, &folder);
            (wall, cpu, (mount.cpu_time() - before).as_secs_f64())
        };
        WORKS.iter().map(one).collect()
    };
    std::thread::spawn(job).join().expect("done")
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [work_, kind, folder] = arguments.as_slice()
        && work_ == "work"
    {
        return work(kind, Path::new(folder)).unwrap_or_else(|error| panic!("{kind}: {error}"));
    }
    let rounds: usize = arguments.first().and_then(|text| text.parse().ok()).unwrap_or(3);
    let (mut volumes, mut folders) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        volumes.push(on_volume());
        let folder = tempfile::tempdir_in(".").expect("a folder");
        folders.push(WORKS.iter().map(|(kind, _)| worker(kind, folder.path())).collect::<Vec<_>>());
    }
    println!("seconds, medians of {rounds}: wall, CPU of the worker, CPU of the volume");
    for (index, (kind, what)) in WORKS.iter().enumerate() {
        let of =
            |pick: fn(&(f64, f64, f64)) -> f64| median(volumes.iter().map(|run| pick(&run[index])).collect());
        let below =
            |pick: fn(&(f64, f64)) -> f64| median(folders.iter().map(|run| pick(&run[index])).collect());
        let (wall, worker, served) = (of(|run| run.0), of(|run| run.1), of(|run| run.2));
        let (wall_below, cpu_below) = (below(|run| run.0), below(|run| run.1));
        println!(
            "{kind:9} volume {wall:6.3} {worker:6.3} {served:6.3}   folder {wall_below:6.3} {cpu_below:6.3}   {what}"
        );
    }
}
