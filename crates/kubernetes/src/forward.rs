//! A way to a pod's port: `kubectl port-forward`, started again on the same port of this machine whenever it ends.
//!
//! Owns the program and the thread that keeps it up. kubectl speaks to one pod, not to a name: a successor is reached only once it
//! is started again. It ends by itself when a connection fails in the pod, and not before; see [`Forward::renew`]. Where the way itself
//! takes no more connections, it complains and goes on: then it is ended here.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::kubectl::{Kubectl, KubectlError};
use crate::local_port;
use crate::process::Next;

/// How often the thread looks whether it is to end.
const LOOK: Duration = Duration::from_millis(50);
/// How long kubectl is left alone after its end.
const PAUSE: Duration = Duration::from_millis(200);
/// What kubectl says once it listens, with the port behind it.
const LISTENS: &str = "Forwarding from 127.0.0.1:";
/// What it complains of when its connection to the cluster takes no more of its clients' connections.
const TAKES_NO_MORE: &[&str] =
    &["error creating error stream for port", "error creating forwarding stream for port"];
/// What stands between that port and the pod's.
const ARROW: &str = " -> ";
/// Most that is kept of what it says before.
const MOST_WORDS_BYTES: usize = 16 << 10;

/// Why there is no way.
#[derive(Debug, thiserror::Error)]
pub enum ForwardError {
    /// kubectl cannot be started.
    #[error(transparent)]
    Kubectl(#[from] KubectlError),
    /// It did not listen in time.
    #[error("no way to port {port} of pod `{pod}` within {} s: {said}", .within.as_secs_f64())]
    NotOpened {
        pod: String,
        port: u16,
        /// The limit.
        within: Duration,
        /// The last that kubectl said.
        said: String,
    },
}

/// A way that is kept open. Dropping it ends kubectl.
#[derive(Debug)]
pub struct Forward {
    address: SocketAddr,
    keeping: Keeping,
}

impl Forward {
    /// Opens a way to a pod's port, and returns once kubectl listens.
    ///
    /// # Errors
    /// When it cannot be started, there is no thread for it, or it does not listen in time.
    pub fn open(kubectl: &Kubectl, pod: &str, port: u16, within: Duration) -> Result<Forward, ForwardError> {
        let state: Arc<State> = Arc::default();
        let (give_opened, opened) = mpsc::channel();
        let keeper = Keeper { kubectl: kubectl.clone(), pod: pod.to_owned(), port, state: state.clone() };
        let thread = thread::Builder::new().name("way to a pod".to_owned());
        let thread = thread.spawn(move || keeper.keep(&give_opened)).map_err(|source| {
            let arguments = format!("port-forward pod/{pod}");
            KubectlError::Io { arguments, source }
        })?;
        let keeping = Keeping { state, thread: Some(thread) };
        match opened.recv_timeout(within) {
            Ok(Ok(local)) => Ok(Forward { address: (Ipv4Addr::LOCALHOST, local).into(), keeping }),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => {
                let said = keeping.state.last_words();
                Err(ForwardError::NotOpened { pod: pod.to_owned(), port, within, said })
            }
        }
    }

    /// Where the pod's port is on this machine; the same for as long as the way is kept.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How often kubectl was started again.
    #[must_use]
    pub fn restarts(&self) -> u64 {
        self.keeping.state.restarts.load(Ordering::Relaxed)
    }

    /// Why it had to be, the last time.
    #[must_use]
    pub fn last_words(&self) -> String {
        self.keeping.state.last_words()
    }

    /// Ends kubectl and starts it again: to be called once the pod of this name is another. A way to a pod whose node is lost
    /// stays open for minutes and leads nowhere.
    pub fn renew(&self) {
        self.keeping.state.is_stale.store(true, Ordering::Relaxed);
    }
}

/// What the thread and the way share.
#[derive(Debug, Default)]
struct State {
    is_over: AtomicBool,
    is_stale: AtomicBool,
    restarts: AtomicU64,
    said: Mutex<String>,
}

impl State {
    fn last_words(&self) -> String {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

/// The thread; it ends with this.
#[derive(Debug)]
struct Keeping {
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Keeping {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// What keeps the way open.
struct Keeper {
    kubectl: Kubectl,
    pod: String,
    port: u16,
    state: Arc<State>,
}

impl Keeper {
    fn keep(&self, opened: &Sender<Result<u16, KubectlError>>) {
        let mut local: Option<u16> = None;
        while !self.state.is_over() {
            if local.is_some() {
                self.state.restarts.fetch_add(1, Ordering::Relaxed);
            }
            let was_open = local.is_some();
            let end = self.once(local.or_else(local_port::free), |port| {
                if local.is_none() {
                    local = Some(port);
                    let _ = opened.send(Ok(port));
                }
            });
            match end {
                Ok(said) => *self.state.said.lock().unwrap_or_else(PoisonError::into_inner) = said,
                // Without the program there never will be a way; anything else may pass.
                Err(error @ KubectlError::NotFound { .. }) if !was_open => {
                    let _ = opened.send(Err(error));
                    return;
                }
                Err(error) => {
                    *self.state.said.lock().unwrap_or_else(PoisonError::into_inner) = error.to_string();
                }
            }
            thread::park_timeout(PAUSE);
        }
    }

    /// One kubectl, until it ends or is to end; what it said last.
    fn once(&self, local: Option<u16>, mut listens: impl FnMut(u16)) -> Result<String, KubectlError> {
        // Nothing before the colon: any port.
        let local = local.map_or_else(String::new, |local| local.to_string());
        let (pod, ports) = (format!("pod/{}", self.pod), format!("{local}:{}", self.port));
        let arguments = ["port-forward", pod.as_str(), ports.as_str(), "--address", "127.0.0.1"];
        self.state.is_stale.store(false, Ordering::Relaxed);
        let mut running = self.kubectl.start(&arguments)?;
        let failed = |source| KubectlError::Io { arguments: arguments.join(" "), source };
        let mut said = Some(Vec::new());
        loop {
            match running.next(LOOK).map_err(failed)? {
                Next::Ended(code) => {
                    return Ok(format!("kubectl ended with {code}: {}", running.last_words()));
                }
                Next::Said(words) => {
                    if let Some(before) = &mut said {
                        before.extend(words);
                        let port = port_of(&String::from_utf8_lossy(before));
                        if let Some(port) = port {
                            listens(port);
                            said = None;
                        } else if before.len() > MOST_WORDS_BYTES {
                            before.clear();
                        }
                    }
                }
                Next::Quiet => {}
            }
            if TAKES_NO_MORE.iter().any(|words| running.complains_of(words)) {
                return Ok("kubectl took no more connections, and was ended".to_owned());
            }
            if self.state.is_over() || self.state.is_stale.load(Ordering::Relaxed) {
                return Ok("the way was to be opened anew".to_owned());
            }
        }
    }
}

/// The port of this machine, once all of its digits have come.
fn port_of(said: &str) -> Option<u16> {
    let listens = said.lines().find_map(|line| line.strip_prefix(LISTENS))?;
    listens.split_once(ARROW)?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_read_once_all_of_its_digits_have_come() {
        let line = "Warning: something\nForwarding from 127.0.0.1:41233 -> 5432\n";
        let read = |length: usize| port_of(&line[..length]);
        let first = (0..line.len()).find_map(read);
        assert_eq!((first, port_of(line)), (Some(41_233), Some(41_233)));
        assert_eq!(port_of("Forwarding from [::1]:41233 -> 5432\n"), None);
    }
}
