//! Whether the cluster takes nodes and pods for ready, asked of its API by a kubectl that reaches it.
//!
//! Owns the waiting. What a node or a pod says of itself is read by `kubernetes`.

use std::thread;
use std::time::{Duration, Instant};

use kubernetes::{Kubectl, KubectlError, MemberError};

/// How often the cluster is asked again.
const GLANCE: Duration = Duration::from_millis(200);
/// How long one command that changes the cluster may take.
const ONE_COMMAND: Duration = Duration::from_secs(30);

/// Why it is not.
#[derive(Debug, thiserror::Error)]
pub enum ReadyError {
    /// The cluster does not answer.
    #[error(transparent)]
    Kubectl(#[from] KubectlError),
    /// It did not come about in time.
    #[error("{what}: timed out after {waited:?}; not so: {missing}")]
    NotReady {
        /// What was awaited.
        what: &'static str,
        /// How long.
        waited: Duration,
        /// Which are not, or what the cluster said last.
        missing: String,
    },
}

/// Waits until every one of these nodes is ready; how long it took.
///
/// # Errors
/// When the time is up.
pub fn nodes(kubectl: &Kubectl, names: &[String], patience: Duration) -> Result<Duration, ReadyError> {
    until("nodes are ready", patience, || {
        let found = kubernetes::members::nodes(kubectl)?;
        let is_ready = |name: &&String| found.iter().any(|node| node.name == **name && !node.is_lost());
        Ok(names.iter().filter(|name| !is_ready(name)).cloned().collect())
    })
}

/// Waits until every one of these pods is ready; how long it took.
///
/// # Errors
/// When the time is up.
pub fn pods(kubectl: &Kubectl, names: &[String], patience: Duration) -> Result<Duration, ReadyError> {
    until("pods are ready", patience, || {
        let found = kubernetes::members::pods(kubectl, names)?;
        let is_ready = |name: &&String| found.iter().any(|pod| pod.name == **name && pod.is_ready);
        Ok(names.iter().filter(|name| !is_ready(name)).cloned().collect())
    })
}

/// Gives the cluster the objects of a file.
///
/// # Errors
/// When it refuses them.
pub fn apply(kubectl: &Kubectl, file: &std::path::Path) -> Result<(), ReadyError> {
    kubectl.text(&["apply", "-f", &file.display().to_string()], ONE_COMMAND)?;
    Ok(())
}

/// `missing` tells which are not so yet. A cluster that does not answer is asked again.
fn until(
    what: &'static str,
    patience: Duration,
    missing: impl Fn() -> Result<Vec<String>, MemberError>,
) -> Result<Duration, ReadyError> {
    let began = Instant::now();
    loop {
        let missing = match missing() {
            Ok(missing) if missing.is_empty() => return Ok(began.elapsed()),
            Ok(missing) => missing.join(", "),
            Err(error) => error.to_string(),
        };
        if began.elapsed() >= patience {
            return Err(ReadyError::NotReady { what, waited: patience, missing });
        }
        thread::sleep(GLANCE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_at_the_end_is_told() {
        let missing = || Ok(vec!["n1".to_owned(), "n3".to_owned()]);
        let error = until("nodes are ready", Duration::ZERO, missing).expect_err("two are missing");
        assert_eq!(error.to_string(), "nodes are ready: timed out after 0ns; not so: n1, n3");
        assert!(until("nodes are ready", Duration::ZERO, || Ok(Vec::new())).is_ok());
    }
}
