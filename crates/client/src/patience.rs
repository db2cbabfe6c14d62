//! How long a session waits for an answer, at next to no cost for the answers that come in time.
//!
//! Owns one alarm per session. It is not set anew for every question: it is left standing where it is and, when it goes
//! off before the current question's time is up, moved to that moment.

use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::reactor::{Sleep, after, sleep_until};

/// See the module.
#[derive(Default)]
pub(crate) struct Patience(Option<Sleep>);

impl Patience {
    /// Whether `limit` has passed since `asked`. Where it has not, the task is woken when it has.
    pub(crate) fn poll_over(
        &mut self,
        asked: Instant,
        limit: Duration,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        let over = after(asked, limit);
        if self.0.as_ref().is_some_and(|alarm| alarm.will_wake_by(over, context)) {
            return Poll::Pending;
        }
        let alarm = self.0.get_or_insert_with(|| sleep_until(over));
        alarm.reset(over);
        alarm.poll_over(context)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;
    use crate::reactor::block_on;

    #[test]
    fn an_alarm_left_from_an_earlier_question_neither_cuts_short_nor_is_missed() {
        block_on(alarms_hold()).expect("an event loop");
    }

    async fn alarms_hold() {
        let mut patience = Patience::default();
        let (short, long) = (Duration::from_millis(30), Duration::from_millis(120));
        for limit in [short, long, short, long] {
            let first = Instant::now();
            // A question that is answered at once leaves its alarm standing.
            let answered =
                poll_fn(|context| Poll::Ready(patience.poll_over(first, limit, context).is_pending()));
            assert!(answered.await);
            for limit in [limit, short, long] {
                let asked = Instant::now();
                poll_fn(|context| patience.poll_over(asked, limit, context)).await;
                assert!(asked.elapsed() >= limit, "{limit:?}");
            }
        }
        let endless = poll_fn(|context| {
            Poll::Ready(patience.poll_over(Instant::now(), Duration::MAX, context).is_pending())
        });
        assert!(endless.await);
    }
}
