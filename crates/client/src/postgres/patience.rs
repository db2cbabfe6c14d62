//! How long a session waits for an answer, at next to no cost for the answers that come in time.
//!
//! Owns one alarm per session. It is not set anew for every question: it is left standing where it is and, when it goes
//! off before the current question's time is up, moved to that moment.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tokio::time::{Sleep, sleep_until};

/// See the module.
#[derive(Default)]
pub(super) struct Patience {
    alarm: Option<Alarm>,
}

struct Alarm {
    sleep: Pin<Box<Sleep>>,
    goes_off: Instant,
    wakes: Waker,
}

impl Patience {
    /// Whether `limit` has passed since `asked`. Where it has not, the task is woken when it has.
    pub(super) fn poll_over(
        &mut self,
        asked: Instant,
        limit: Duration,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        // A limit beyond the clock's end is one of a hundred years.
        let over = asked.checked_add(limit).unwrap_or(asked + Duration::from_secs(100 * 365 * 86_400));
        if let Some(alarm) = &self.alarm
            && alarm.goes_off <= over
            && !alarm.sleep.is_elapsed()
            && alarm.wakes.will_wake(context.waker())
        {
            return Poll::Pending;
        }
        if Instant::now() >= over {
            return Poll::Ready(());
        }
        let wakes = context.waker().clone();
        let alarm = match &mut self.alarm {
            Some(alarm) => {
                alarm.sleep.as_mut().reset(over.into());
                (alarm.goes_off, alarm.wakes) = (over, wakes);
                alarm
            }
            none => none.insert(Alarm { sleep: Box::pin(sleep_until(over.into())), goes_off: over, wakes }),
        };
        alarm.sleep.as_mut().poll(context)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test]
    async fn an_alarm_left_from_an_earlier_question_neither_cuts_short_nor_is_missed() {
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
