//! Work under way, by when it began: how long the oldest has taken so far, without the time in which it waits for others.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

thread_local! {
    /// What this thread works on, the innermost last.
    static OWN: RefCell<Vec<(Arc<Waits>, u64)>> = const { RefCell::new(Vec::new()) };
}

/// See the module.
#[derive(Debug, Default)]
pub struct Waits(Mutex<(u64, BTreeMap<u64, Instant>)>);

/// One piece of work of this thread. Dropping it ends it; where that is a panic, it is under way for ever.
#[derive(Debug)]
pub struct Work {
    of: Arc<Waits>,
    number: u64,
    /// Ended by the thread that began it.
    own: PhantomData<*const ()>,
}

/// A thread that is to live; where it panics, that is work under way for ever.
#[derive(Debug)]
pub struct Living(Arc<Waits>);

impl Waits {
    fn all(&self) -> MutexGuard<'_, (u64, BTreeMap<u64, Instant>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An operation begins; returns the number to end it with.
    pub(crate) fn begin(&self) -> u64 {
        let mut all = self.all();
        all.0 += 1;
        let number = all.0;
        all.1.insert(number, Instant::now());
        number
    }

    /// It is over.
    pub(crate) fn end(&self, number: u64) {
        self.all().1.remove(&number);
    }

    /// What this thread does until the answer is dropped is under way, but for what it does [`elsewhere`].
    #[must_use]
    pub fn work(self: &Arc<Waits>) -> Work {
        let number = self.begin();
        OWN.with_borrow_mut(|own| own.push((self.clone(), number)));
        Work { of: self.clone(), number, own: PhantomData }
    }

    /// To be held for as long as this thread lives.
    #[must_use]
    pub fn living(self: &Arc<Waits>) -> Living {
        Living(self.clone())
    }

    /// How long the oldest has taken so far; zero where none is under way.
    #[must_use]
    pub fn longest(&self) -> Duration {
        self.all().1.values().min().map(Instant::elapsed).unwrap_or_default()
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        OWN.with_borrow_mut(|own| own.pop());
        if std::thread::panicking() {
            self.of.all().1.entry(self.number).or_insert_with(Instant::now);
        } else {
            self.of.end(self.number);
        }
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.begin();
        }
    }
}

/// Waits for somebody else, such as another host: what this thread works on is not under way meanwhile, and counts anew from
/// then on.
pub fn elsewhere<T>(wait: impl FnOnce() -> T) -> T {
    let own = OWN.with_borrow(Clone::clone);
    own.iter().for_each(|(of, number)| of.end(*number));
    let waited = wait();
    for (of, number) in own {
        of.all().1.insert(number, Instant::now());
    }
    waited
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn work_is_under_way_but_for_its_waits_for_others_and_ends_with_what_it_is_for() {
        let waits = Arc::<Waits>::default();
        let is_under_way = || !waits.all().1.is_empty();
        assert_eq!(waits.longest(), Duration::ZERO);
        let outer = waits.work();
        let inner = waits.work();
        assert!(is_under_way() && !elsewhere(is_under_way) && is_under_way());
        drop(inner);
        assert!(is_under_way());
        drop(outer);
        assert!(!is_under_way());
    }

    #[test]
    fn another_threads_wait_does_not_hide_work_that_does_not_go_on() {
        let waits = Arc::<Waits>::default();
        let (go_on, stuck) = channel::<()>();
        let theirs = waits.clone();
        let thread = std::thread::spawn(move || {
            let _work = theirs.work();
            stuck.recv()
        });
        while waits.longest() < Duration::from_millis(5) {
            let _own = waits.work();
            elsewhere(|| std::thread::sleep(Duration::from_millis(1)));
        }
        go_on.send(()).expect("it waits");
        thread.join().expect("no panic").expect("told");
        assert_eq!(waits.longest(), Duration::ZERO);
    }

    #[test]
    fn what_panicked_is_never_done() {
        for panics_in in ["work", "a wait", "a thread"] {
            let waits = Arc::<Waits>::default();
            let theirs = waits.clone();
            let body = move || {
                let _living = theirs.living();
                let _work = (panics_in != "a thread").then(|| theirs.work());
                if panics_in == "a wait" {
                    elsewhere(|| panic!("planted"));
                }
                panic!("planted");
            };
            assert!(std::thread::spawn(body).join().is_err());
            assert!(!waits.all().1.is_empty(), "{panics_in}");
        }
    }
}
