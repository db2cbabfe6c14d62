//! Several futures of one thread at the same time.
//!
//! Owns nothing but that; what loads in parallel is each workload's.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// Runs all to their end, or until one fails: the others are dropped then.
///
/// # Errors
/// Of the first that fails.
pub(crate) async fn all<E>(
    futures: impl Iterator<Item = impl Future<Output = Result<(), E>>>,
) -> Result<(), E> {
    let mut running: Vec<Pin<Box<_>>> = futures.map(Box::pin).collect();
    // Few futures, each with much to do between two polls: asking all of them at every wake-up costs nothing.
    poll_fn(move |context| {
        let mut failed = None;
        running.retain_mut(|future| match future.as_mut().poll(context) {
            Poll::Pending => true,
            Poll::Ready(Ok(())) => false,
            Poll::Ready(Err(error)) => {
                failed.get_or_insert(error);
                false
            }
        });
        match (failed, running.is_empty()) {
            (Some(error), _) => Poll::Ready(Err(error)),
            (None, true) => Poll::Ready(Ok(())),
            (None, false) => Poll::Pending,
        }
    })
    .await
}
