//! What the tests of all clients have in common: an event loop, and how the end of a call is told.

use client::SessionError;

/// Runs a future of the test's own.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    client::reactor::block_on(future).expect("an event loop")
}

/// An outcome: `ok`, or `class certainty code`.
pub fn told<T>(result: Result<T, SessionError>) -> String {
    match result {
        Ok(_) => "ok".to_owned(),
        Err(error) => {
            let certainty = if error.definite { "definite" } else { "unknown" };
            format!("{} {certainty} {}", error.class.name(), error.code.unwrap_or_default())
        }
    }
}

/// The same, and whether the session is lost.
pub fn told_with_session<T>(result: Result<T, SessionError>, is_broken: bool) -> String {
    told(result) + if is_broken { " broken" } else { "" }
}
