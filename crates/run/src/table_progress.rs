//! What a person sees while tables are made: the step the workload told of last, once a second.
//!
//! Owns the beat. The steps and their estimates are the workloads'; how often a line is shown is the terminal's.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::chronicle::news;
use crate::orders::News;

const BEAT: Duration = Duration::from_secs(1);

/// Does `job`, which tells its steps, and repeats the last one as long as it takes.
pub(crate) fn told<T>(load: &str, job: impl FnOnce(&(dyn Fn(String) + Sync)) -> T) -> T {
    let began = Instant::now();
    let step = Mutex::new(format!("loading the data of {load}"));
    let lock = || step.lock().unwrap_or_else(PoisonError::into_inner);
    std::thread::scope(|scope| {
        let (ended, end) = channel::<()>();
        scope.spawn(|| {
            let end = end;
            while end.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                news(&News::Preparing { what: lock().clone(), for_s: began.elapsed().as_secs() });
            }
        });
        let done = job(&|told| *lock() = told);
        drop(ended);
        done
    })
}
