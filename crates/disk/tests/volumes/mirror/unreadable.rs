//! A component that is sent what it lacks by one whose disk cannot be read for a while.

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use disk::mirror::{Acknowledge, Answer, Incoming, Mirror, Next, Policy, Standing};
use disk::{
    Attributes, Corruption, Defect, Disk, Files, Flush, FolderStore, Limits, NewInode, OnDisk, ROOT, Volume,
};

const NOW: SystemTime = SystemTime::UNIX_EPOCH;
const LENGTH_BYTES: usize = 4;
const BYTES: usize = 300_000;

/// Sends what there is to send, as long as there is any, and a few times more.
fn send(mirror: &Mirror<OnDisk<FolderStore>>, connection: u64, to: &Volume<FolderStore>) {
    let mut idle = 0;
    while idle < 3 {
        let Next::Send(frame) = mirror.next(0, connection, Duration::ZERO) else {
            idle += 1;
            continue;
        };
        let message = Incoming::read(&frame[LENGTH_BYTES..]).expect("a message");
        message.carry_out(to, None).expect("carried out");
        let answer = Answer { received: message.sequence(), applied: message.sequence() };
        mirror.answered(0, connection, answer);
    }
}

#[test]
fn what_cannot_be_read_is_sent_when_it_can_be_and_until_then_the_component_is_not_live() {
    for defect in [Defect::Fail, Defect::Corrupt(Corruption { share: 1.0, checksums: true, seed: 1 })] {
        let folders = [tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder")];
        let store = |number: usize| FolderStore::new(folders[number].path(), Flush::Pretended);
        let disk = Disk::alone("d1");
        let serving = OnDisk::new(store(0), disk.clone());
        let serving = Arc::new(Volume::new(serving, Limits::default(), 0, 0, NOW));
        let copy = Volume::new(store(1), Limits::default(), 0, 0, NOW);
        let timeout = Duration::from_secs(3_600);
        let policy = Policy { acknowledge: Acknowledge::Sync, buffer_bytes: 1 << 30, timeout };
        let mirror = Mirror::new(serving, policy, Vec::new(), 0, None);
        let attributes = Attributes::new(0o600, 0, 0, NOW);
        let file = mirror.make(ROOT, OsStr::new("f"), &NewInode::File, attributes).expect("made").inode;
        mirror.write(file, 0, &[7; BYTES], None, false, NOW).expect("written");
        mirror.add_empty();
        let guard = disk.impose(defect);
        let connection = mirror.connect(0, &Default::default()).expect("it serves");
        send(&mirror, connection, &copy);
        assert_eq!(mirror.state(0).standing, Standing::CatchingUp, "{defect:?}");
        assert!(mirror.state(0).bytes_left >= BYTES as u64, "{:?}", mirror.state(0));
        drop(guard);
        send(&mirror, connection, &copy);
        assert_eq!(mirror.state(0).standing, Standing::Live, "{defect:?}");
        let mut found = vec![0; BYTES + 1];
        let read = copy.read(file, 0, &mut found).expect("read");
        assert_eq!((read, found[..read].iter().all(|byte| *byte == 7)), (BYTES, true));
    }
}
