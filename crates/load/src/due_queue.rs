//! The queue of an open loop, between what is due and the clients that are free: hands an operation to a client that is free,
//! or keeps it until one is.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::task::{Poll, Waker};
use std::time::Instant;

/// Operations that are due and clients that are free; one of the two is empty.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// When each was due, and whether no client was free then.
    due: RefCell<VecDeque<(Instant, bool)>>,
    free: RefCell<VecDeque<Waker>>,
}

impl Queue {
    /// The moment the next operation was due; waits until there is one.
    pub(crate) async fn next(&self) -> Due {
        let mut listed = false;
        std::future::poll_fn(|context| {
            let mut free = self.free.borrow_mut();
            if listed {
                // Woken by something else, this client is on the list still. Left there, it would be woken for an
                // operation while it is busy with another, and a free client would sleep on.
                free.retain(|known| !known.will_wake(context.waker()));
            }
            if let Some((moment, waited)) = self.due.borrow_mut().pop_front() {
                return Poll::Ready(Due { moment, waited });
            }
            free.push_back(context.waker().clone());
            listed = true;
            Poll::Pending
        })
        .await
    }

    /// An operation is due.
    pub(crate) fn push(&self, moment: Instant) {
        let client = self.free.borrow_mut().pop_front();
        self.due.borrow_mut().push_back((moment, client.is_none()));
        if let Some(client) = client {
            client.wake();
        }
    }

    /// Operations that are due and have no client yet.
    pub(crate) fn backlog(&self) -> usize {
        self.due.borrow().len()
    }
}

/// An operation of an open loop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Due {
    /// When it was due.
    pub(crate) moment: Instant,
    /// Whether it had to wait for a free client.
    pub(crate) waited: bool,
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use client::reactor::{block_on, spawn, yield_now};

    use super::*;

    fn wait<T>(future: impl Future<Output = T>) -> T {
        block_on(future).expect("an event loop")
    }

    #[test]
    fn an_operation_wakes_a_free_client_even_after_another_took_one_out_of_turn() {
        wait(async {
            let queue = Rc::new(Queue::default());
            let now = Instant::now();
            let (poke, mut poked) = tokio::sync::watch::channel(0);
            let waited: Rc<RefCell<Vec<bool>>> = Rc::default();
            let first = {
                let (queue, waited) = (Rc::clone(&queue), Rc::clone(&waited));
                // Polled again whenever it is poked, as a client is by alarms of its own.
                spawn(async move {
                    let mut next = std::pin::pin!(queue.next());
                    loop {
                        tokio::select! {
                            biased;
                            due = &mut next => break waited.borrow_mut().push(due.waited),
                            _ = poked.changed() => {}
                        }
                    }
                })
            };
            yield_now().await;
            let second = {
                let (queue, waited) = (Rc::clone(&queue), Rc::clone(&waited));
                spawn(async move {
                    for _ in 0..2 {
                        let due = queue.next().await;
                        waited.borrow_mut().push(due.waited);
                    }
                })
            };
            yield_now().await;
            // The second is at the end of the list; the first takes its turn by the poke.
            poke.send_replace(1);
            for _ in 0..3 {
                queue.push(now);
                yield_now().await;
            }
            while waited.borrow().len() < 3 {
                yield_now().await;
            }
            // The third had no free client left, or the second again, as the turns fell.
            assert_eq!(waited.borrow().iter().filter(|waited| !**waited).count(), 3);
            assert_eq!(queue.backlog(), 0);
            drop((first, second));
        });
    }

    #[test]
    fn an_operation_without_a_free_client_is_known_to_have_waited() {
        wait(async {
            let queue = Queue::default();
            let now = Instant::now();
            queue.push(now);
            queue.push(now);
            assert_eq!(queue.backlog(), 2);
            assert!(queue.next().await.waited && queue.next().await.waited);
        });
    }
}
