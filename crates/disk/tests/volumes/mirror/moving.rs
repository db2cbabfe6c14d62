//! Service that moves while the node goes on, because the disk of the one that serves refuses: what the node sees is what it
//! would see on a plain volume with a sound disk.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use disk::mirror::{Mirror, Standing};
use disk::{Defect, Files, Limits, Volume};

use super::test_mirror::{Below, Found, Step, TestMirror, carry_out, snapshot, volume_in};

/// A mirrored volume and a plain one to which the same is done.
pub struct Pair {
    pub test_mirror: TestMirror,
    /// What is mounted.
    first: Arc<dyn Files>,
    plain: Arc<Volume<Below>>,
    _folder: tempfile::TempDir,
}

impl Pair {
    pub fn new(test_mirror: TestMirror) -> Pair {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let first = test_mirror.mirror.clone();
        let plain = volume_in(folder.path(), Limits::default());
        Pair { test_mirror, first, plain, _folder: folder }
    }

    /// So many threads write their own file, each block with its number, while the disk has a defect; each finds what it
    /// wrote. All but the first overwrite. Returns how often service moved.
    pub fn write_at_once(&mut self, threads: u8, blocks: u8, defect: Defect) -> usize {
        for thread in 0..threads {
            self.test_mirror.take(&Step::Create((0, thread)));
            if thread > 0 {
                let bytes = u16::from(blocks) * 500;
                self.test_mirror.take(&Step::Write { place: (0, thread), offset: 0, bytes, fill: 255 });
            }
        }
        let first = self.first.clone();
        let write = move |thread: u8| {
            for block in 0..blocks {
                let offset = u16::from(block) * 500;
                let step = Step::Write { place: (0, thread), offset, bytes: 500, fill: block };
                carry_out(first.as_ref(), &step).expect("written");
            }
        };
        let moved = self.on_disk_with(defect, |pair, asked, answering| {
            let writing: Vec<_> = (0..threads)
                .map(|thread| {
                    let write = write.clone();
                    std::thread::spawn(move || write(thread))
                })
                .collect();
            let moved = pair.attend(&|| writing.iter().all(JoinHandle::is_finished), asked, answering);
            writing.into_iter().for_each(|thread| thread.join().expect("no panic"));
            moved
        });
        let found = snapshot(&self.test_mirror.components[self.test_mirror.serving].volume);
        let expected: Vec<u8> = (0..blocks).flat_map(|block| [block; 500]).collect();
        assert_eq!(found.len(), usize::from(threads));
        assert!(found.values().all(|found| found.content == expected), "a write is missing");
        moved
    }

    /// Takes steps while the disk of the one that serves refuses everything after so many operations. Returns how often
    /// service moved.
    pub fn take_on_failing_disk(&mut self, steps: &[Step], operations: u64) -> usize {
        self.on_disk_with(Defect::FailAfter(operations), |pair, asked, answering| {
            steps.iter().map(|step| pair.take(step, asked, answering)).sum()
        })
    }

    fn on_disk_with(
        &mut self,
        defect: Defect,
        act: impl FnOnce(&mut Pair, &Receiver<()>, &Sender<Arc<dyn Files>>) -> usize,
    ) -> usize {
        self.test_mirror.bring_together();
        let disk = self.test_mirror.components[self.test_mirror.serving].volume.store().disk().clone();
        let (asking, asked) = channel();
        let (answering, answers) = channel();
        let answers = Mutex::new(answers);
        self.test_mirror.mirror.set_mover(Box::new(move || {
            asking.send(()).ok()?;
            answers.lock().ok()?.recv().ok()
        }));
        let guard = disk.impose(defect);
        let moved = act(self, &asked, &answering);
        drop(guard);
        moved
    }

    /// Lets everything arrive and moves service when it is asked for, until all is done.
    fn attend(
        &mut self,
        is_done: &dyn Fn() -> bool,
        asked: &Receiver<()>,
        answering: &Sender<Arc<dyn Files>>,
    ) -> usize {
        let mut moved = 0;
        while !is_done() {
            if asked.try_recv().is_ok() {
                answering.send(self.move_service()).expect("somebody waits");
                moved += 1;
            }
            self.test_mirror.let_all_deliver();
        }
        moved
    }

    fn take(&mut self, step: &Step, asked: &Receiver<()>, answering: &Sender<Arc<dyn Files>>) -> usize {
        let (first, same) = (self.first.clone(), step.clone());
        let taking = std::thread::spawn(move || carry_out(first.as_ref(), &same));
        let moved = self.attend(&|| taking.is_finished(), asked, answering);
        let done = taking.join().expect("no panic");
        assert_eq!(done, carry_out(self.plain.as_ref(), step), "{step:?}");
        moved
    }

    fn move_service(&mut self) -> Arc<dyn Files> {
        let old: Arc<Mirror<Below>> = self.test_mirror.mirror.clone();
        let mut peers = 0..self.test_mirror.wires.len();
        let peer = peers.find(|peer| old.state(*peer).standing == Standing::Live).expect("a live component");
        let handing = old.clone();
        let handing = std::thread::spawn(move || handing.hand_over(peer));
        while !handing.is_finished() {
            self.test_mirror.let_all_deliver();
        }
        assert!(handing.join().expect("no panic"), "it is live and answers");
        let (next, before) = (self.test_mirror.wires[peer].component, self.test_mirror.serving);
        let others: Vec<usize> = self.test_mirror.wires.iter().map(|wire| wire.component).collect();
        let (lacking, refused) = old.end_handing_over();
        self.test_mirror.differences.ended(others.into_iter().zip(lacking));
        self.test_mirror.differences.lost(before, &refused);
        let components = &self.test_mirror.components;
        components[next].volume.take_over_from(&components[before].volume);
        components[before].volume.let_go_of_all();
        self.test_mirror.serve_from(next);
        self.test_mirror.mirror.clone()
    }

    /// All components are equal, and as the plain volume is.
    pub fn check(&mut self) {
        self.test_mirror.bring_together();
        self.test_mirror.check_equal();
        let numberless = |volume: &Volume<Below>| -> BTreeMap<String, Found> {
            let found = snapshot(volume).into_iter();
            found.map(|(path, found)| (path, found.without_number())).collect()
        };
        let serving = &self.test_mirror.components[self.test_mirror.serving].volume;
        assert_eq!(numberless(serving), numberless(&self.plain));
    }
}
