//! The looker's part of the watch: whose silence it takes for a stall.

use std::sync::mpsc::channel;

use load::{Clock, start_elsewhere};

use super::*;

fn shared(directory: &RunDirectory) -> Arc<Shared> {
    let chronicle = Arc::new(Chronicle::begin(directory, Clock::set_later()).expect("a chronicle"));
    let (ended, interference) = (AtomicBool::new(false), Mutex::default());
    Arc::new(Shared { ended, chronicle, interference, interference_expected: false })
}

#[test]
fn a_load_that_gave_no_sign_for_longer_than_its_limit_is_a_stall_of_that_load() {
    let out = tempfile::tempdir().expect("a folder");
    let directory = RunDirectory::make(out.path(), "stall", "now").expect("a run directory");
    let (ask, asked) = channel::<()>();
    let (answer, answered) = channel();
    let load = start_elsewhere("tpcb".to_owned(), move |elsewhere| {
        while asked.recv().is_ok() {
            elsewhere.give_sign();
            answer.send(()).expect("somebody waits");
        }
        Ok(())
    });
    let sign = || {
        ask.send(()).expect("the load lives");
        answered.recv().expect("a sign was given");
    };
    let loads = Arc::new(Mutex::new(vec![load]));
    let mut looker = Looker::new(shared(&directory), Vec::new(), loads, vec!["tpcb".to_owned()]);
    // Neither the supervisor's own silence nor a suspension is what is looked for here.
    let mut of_load = || {
        looker.look_once(false);
        let part = LabPart::Load { load: "tpcb".to_owned() };
        std::mem::take(&mut looker.gaps).into_iter().filter(|(other, _)| *other == part).count()
    };
    sign();
    assert_eq!(of_load(), 0, "its first sign");
    std::thread::sleep(LIMIT + LOOK);
    sign();
    assert_eq!(of_load(), 1, "its first sign after a silence");
    assert_eq!(of_load(), 0, "each is told once");
}
