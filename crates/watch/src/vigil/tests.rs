//! The looker's part of the watch: whose silence it takes for a stall.

use std::sync::mpsc::channel;

use history::{Event, NodeId};
use load::start_elsewhere;

use super::watchers::OfLab;
use super::*;

/// A run whose clock has begun, and whose events nobody wants.
struct Unheard {
    zero: Instant,
}

impl EventSink for Unheard {
    fn now_s(&self) -> f64 {
        self.seconds_at(Instant::now())
    }

    fn seconds_at(&self, moment: Instant) -> f64 {
        moment.saturating_duration_since(self.zero).as_secs_f64()
    }

    fn take(&self, _: Event) {}
}

fn shared() -> Arc<Shared> {
    let chronicle = Arc::new(Unheard { zero: Instant::now() });
    let (ended, interference, stopped) = (AtomicBool::new(false), Mutex::default(), Mutex::default());
    Arc::new(Shared { ended, chronicle, interference, stopped, interference_expected: false })
}

#[test]
fn a_load_that_gave_no_sign_for_longer_than_its_limit_is_a_stall_of_that_load() {
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
    let mut looker = Looker::new(shared(), Vec::new(), loads, vec!["tpcb".to_owned()]);
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

/// What the looker found of parts of the lab other than itself.
fn found(looker: &mut Looker) -> Vec<LabPart> {
    let gaps = std::mem::take(&mut looker.gaps).into_iter();
    gaps.map(|(part, _)| part).filter(|part| *part != LabPart::Supervisor).collect()
}

#[test]
fn each_part_of_a_lab_that_gave_no_sign_for_longer_than_its_limit_is_a_stall_of_that_part() {
    let (limit, longer) = (Duration::from_millis(1), Duration::from_millis(10));
    let names: Vec<LabPart> =
        OfLab::all([NodeId::FIRST, NodeId::new(1)]).into_iter().map(OfLab::name).collect();
    let part = |name: &LabPart| Part { name: name.clone(), sign: Arc::new(Sign::new()), limit };
    let parts: Vec<Part> = names.iter().map(part).collect();
    let signs: Vec<Arc<Sign>> = parts.iter().map(|part| part.sign.clone()).collect();
    let mut looker = Looker::new(shared(), parts, Arc::default(), Vec::new());
    std::thread::sleep(longer);
    looker.look_once(false);
    assert!(found(&mut looker).is_empty(), "who gives no sign yet may give one before long");
    signs.iter().for_each(|sign| sign.give());
    looker.look_once(false);
    assert_eq!(found(&mut looker), names);
    looker.look_once(false);
    assert!(found(&mut looker).is_empty(), "each is told once");
    // At the end of the watch a part that is silent has stood still until then.
    std::thread::sleep(longer);
    looker.look_once(true);
    assert_eq!(found(&mut looker), names);
}

#[test]
fn the_watch_that_stood_still_itself_and_a_machine_that_slept_are_stalls() {
    let mut looker = Looker::new(shared(), Vec::new(), Arc::default(), Vec::new());
    looker.own = Beats::new(Duration::from_millis(1), Instant::now());
    std::thread::sleep(Duration::from_millis(10));
    looker.look_once(false);
    assert_eq!(looker.gaps.iter().filter(|(part, _)| *part == LabPart::Supervisor).count(), 1);
    let not_long = looker.suspended + LIMIT;
    looker.look_for_a_suspension(Instant::now(), not_long);
    assert!(looker.stalls.is_empty(), "{:?}", looker.stalls);
    let long = not_long + Duration::from_secs(5);
    looker.look_for_a_suspension(Instant::now(), long);
    let [stall] = &looker.stalls[..] else { panic!("{:?}", looker.stalls) };
    assert_eq!((&stall.parts[..], stall.length_s), (&[LabPart::Machine][..], 5.0));
}

#[test]
fn a_process_that_a_stranger_has_stopped_and_that_still_stands_still_at_the_end_is_told_once() {
    let shared = shared();
    let process = StoppedProcess { pid: 7, program: "postgres".to_owned() };
    shared.while_watching(|stopped| {
        stopped.entry("n1".to_owned()).or_default().insert(process, Instant::now());
    });
    // Its watcher has not looked again by then, and is not waited for.
    let watched = Vigil { shared: shared.clone(), looker: None, logs: None }.finish();
    let [(_, told)] = &watched.interference[..] else { panic!("{:?}", watched.interference) };
    assert_eq!((told.node.as_str(), told.program.as_str(), told.expected), ("n1", "postgres", false));
    assert!(matches!(told.deed, Deed::Stopped { .. }), "{told:?}");
    shared.while_watching(|_| panic!("the watch is over"));
}

#[test]
fn of_what_the_logs_tell_only_what_came_since_the_watch_began_is_new_whichever_log_it_stands_in() {
    let killed = |program: &str, signal| Killed { program: program.to_owned(), signal };
    let (save, server) = (killed("a save", 9), killed("a server process", 9));
    let before = vec![server.clone()];
    let now = vec![save.clone(), server.clone(), server.clone()];
    assert_eq!(new_since(before, now), [save, server.clone()]);
    assert_eq!(new_since(vec![server.clone()], vec![server]), []);
}
