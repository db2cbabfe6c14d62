//! A thread that looks once in each second of the run's clock, until it is told to stop.
//!
//! Owns the beat and the thread's end. What is looked at is the job's business.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A running job. Dropping it ends it.
pub(crate) struct EachSecond<T> {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<T>>,
}

impl<T: Send + 'static> EachSecond<T> {
    /// Starts a job whose first second begins at `zero`.
    ///
    /// # Errors
    /// When there is no thread.
    pub(crate) fn start(
        name: &str,
        zero: Instant,
        job: impl FnOnce(Seconds) -> T + Send + 'static,
    ) -> io::Result<EachSecond<T>> {
        let (stop, stopped) = channel();
        let seconds = Seconds { stopped, zero, at: zero, next: 0, is_over: false };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || job(seconds))?;
        Ok(EachSecond { stop: Some(stop), thread: Some(thread) })
    }

    /// Ends the job after a last look; none where it panicked.
    pub(crate) fn finish(mut self) -> Option<T> {
        drop(self.stop.take());
        self.thread.take()?.join().ok()
    }
}

impl<T> Drop for EachSecond<T> {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // Nobody is left to hear of what it missed.
            let _ = thread.join();
        }
    }
}

/// The ends of the run's seconds as they come: the second's number, and the time since the look before. The last one may be
/// short.
pub(crate) struct Seconds {
    stopped: Receiver<()>,
    zero: Instant,
    at: Instant,
    next: u32,
    is_over: bool,
}

impl Seconds {
    /// Waits for the beginning of the first second, where the job takes its first counts.
    pub(crate) fn begin(&mut self) {
        let _ = self.stopped.recv_timeout(self.zero.saturating_duration_since(Instant::now()));
        self.at = Instant::now();
    }
}

impl Iterator for Seconds {
    type Item = (u32, Duration);

    fn next(&mut self) -> Option<(u32, Duration)> {
        if self.is_over {
            return None;
        }
        let second = self.next;
        self.next += 1;
        let until = self.zero + Duration::from_secs(u64::from(self.next));
        let waited = self.stopped.recv_timeout(until.saturating_duration_since(Instant::now()));
        self.is_over = waited != Err(RecvTimeoutError::Timeout);
        let now = Instant::now();
        let passed = now.duration_since(self.at);
        self.at = now;
        Some((second, passed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_second_is_looked_at_when_the_job_is_told_to_stop() {
        let job = |mut seconds: Seconds| {
            seconds.begin();
            seconds.map(|(second, _)| second).collect::<Vec<_>>()
        };
        let running = EachSecond::start("seconds", Instant::now(), job).expect("a thread");
        let looked = running.finish().expect("no panic");
        assert_eq!(looked, (0..looked.len() as u32).collect::<Vec<_>>());
        assert!(!looked.is_empty());
    }

    #[test]
    fn a_job_that_panics_is_told_from_one_that_found_nothing() {
        let running = EachSecond::start("panics", Instant::now(), |_| panic!("planted")).expect("a thread");
        assert_eq!(running.finish(), None::<()>);
    }
}
