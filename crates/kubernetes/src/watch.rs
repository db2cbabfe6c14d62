//! A cluster watched for as long as a run lasts: a kubectl for each kind of object, started again whenever it ends.
//!
//! Owns the threads and the time of each sighting. What a line says is read by `sightings`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::kubectl::{Kubectl, KubectlError};
use crate::process::{Next, Running};
use crate::sightings::{Kind, Seen, Sighting, Stream};

/// How often a thread looks whether it is to end.
const LOOK: Duration = Duration::from_millis(50);
/// How long kubectl is left alone after its end, at first.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// And at most, where it does not go on for so long.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A watch under way. Dropping it ends its programs; nothing is seen after that.
#[derive(Debug)]
pub struct Watch {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Watch {
    /// Begins to watch these. What is there already is seen first, as added. Whether the login may watch them is not known
    /// before: a kind that it may not is a gap, with what kubectl says of it.
    ///
    /// # Errors
    /// When kubectl cannot be started, or there is no thread for it.
    pub fn begin(kubectl: &Kubectl, kinds: &[Kind], seen: Sender<Sighting>) -> Result<Watch, KubectlError> {
        let is_over: Arc<AtomicBool> = Arc::default();
        let (give_started, started) = mpsc::channel();
        let follow = |kind: &Kind| {
            let kubectl = kind.namespace().map_or_else(|| kubectl.clone(), |name| kubectl.in_namespace(name));
            let follower = Follower { kubectl, kind: *kind, is_over: is_over.clone(), seen: seen.clone() };
            let started = give_started.clone();
            let thread = thread::Builder::new().name(kind.resource().to_owned());
            thread.spawn(move || follower.follow(&started)).map_err(|source| KubectlError::Io {
                arguments: format!("get {} --watch", kind.resource()),
                source,
            })
        };
        // Dropping it ends those that have begun.
        let mut watch = Watch { is_over: is_over.clone(), threads: Vec::new() };
        for kind in kinds {
            watch.threads.push(follow(kind)?);
        }
        drop(give_started);
        for _ in kinds {
            // Each says it once; one that is gone has said so by that.
            if let Ok(Err(error)) = started.recv() {
                return Err(error);
            }
        }
        Ok(watch)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in &self.threads {
            thread.thread().unpark();
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// How long kubectl is left alone after its end: longer each time, unless it went on for a while.
fn next_pause(before: Option<Duration>, went_on: Duration) -> Duration {
    before.filter(|_| went_on < LONGEST_PAUSE).map_or(FIRST_PAUSE, |before| (before * 2).min(LONGEST_PAUSE))
}

/// Why kubectl ended. The cluster ends each watch after some time, and kubectl takes that, and a lost connection, for success.
fn reason(code: i32, said: &str) -> String {
    match code {
        // What it said before is of something else.
        0 => "the watch came to its end, as each does in time, or the connection was lost".to_owned(),
        _ => format!("kubectl ended with {code}: {said}"),
    }
}

/// What follows one kind of object.
struct Follower {
    kubectl: Kubectl,
    kind: Kind,
    is_over: Arc<AtomicBool>,
    seen: Sender<Sighting>,
}

/// Why one kubectl is no longer listened to.
enum End {
    /// It ended, for this reason.
    Ended(String),
    /// Nobody wants to know any longer.
    Over,
}

impl Follower {
    fn follow(&self, started: &Sender<Result<(), KubectlError>>) {
        let arguments = ["get", self.kind.resource(), "--watch", "--output-watch-events", "-o", "json"];
        let (mut pause, mut is_gap_told, mut is_first) = (None, false, true);
        while !self.is_over.load(Ordering::Relaxed) {
            let (mut has_spoken, began) = (false, Instant::now());
            let end = match self.kubectl.start(&arguments) {
                Ok(running) => {
                    if is_first {
                        let _ = started.send(Ok(()));
                    }
                    self.listen(running, &mut has_spoken)
                }
                Err(error) if is_first => {
                    let _ = started.send(Err(error));
                    return;
                }
                Err(error) => End::Ended(error.to_string()),
            };
            let End::Ended(why) = end else { return };
            is_first = false;
            // One that fails again and again is one gap, unless it lists what is there each time.
            is_gap_told &= !has_spoken;
            if !is_gap_told && !self.tell(Seen::Gap { kind: self.kind, why }) {
                return;
            }
            is_gap_told = true;
            let length = next_pause(pause, began.elapsed());
            thread::park_timeout(length);
            pause = Some(length);
        }
    }

    fn listen(&self, mut running: Running, has_spoken: &mut bool) -> End {
        let mut stream = Stream::of(self.kind);
        while !self.is_over.load(Ordering::Relaxed) {
            let (seen, code) = match running.next(LOOK) {
                Ok(Next::Quiet) => continue,
                Ok(Next::Said(bytes)) => (stream.push(&bytes), None),
                Ok(Next::Ended(code)) => (stream.end().into_iter().collect(), Some(code)),
                Err(error) => return End::Ended(error.to_string()),
            };
            for what in seen {
                *has_spoken |= !matches!(what, Seen::Gap { .. });
                if !self.tell(what) {
                    return End::Over;
                }
            }
            if let Some(code) = code {
                return End::Ended(reason(code, &running.last_words()));
            }
        }
        End::Over
    }

    /// Whether somebody still listens.
    fn tell(&self, what: Seen) -> bool {
        let unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
        self.seen.send(Sighting { unix_s, what }).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_lists_and_may_not_watch_is_asked_ever_less_often_and_one_that_went_on_at_once() {
        let mut pause = None;
        for _ in 0..10 {
            pause = Some(next_pause(pause, Duration::from_millis(100)));
        }
        assert_eq!(pause, Some(LONGEST_PAUSE));
        assert_eq!(next_pause(pause, Duration::from_secs(1800)), FIRST_PAUSE);
        assert_eq!(next_pause(None, Duration::ZERO), FIRST_PAUSE);
    }

    #[test]
    fn an_end_without_words_is_no_failure_of_kubectl() {
        assert_eq!(reason(1, "Forbidden"), "kubectl ended with 1: Forbidden");
        assert!(reason(0, "").starts_with("the watch came to its end"));
        assert_eq!(reason(0, "E1125 couldn't get resource list for metrics.k8s.io/v1beta1"), reason(0, ""));
    }
}
