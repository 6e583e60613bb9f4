//! Sleeps without blocking, on any available timer.

use super::manual::{ManualClock, SleeperKey};
use super::{Clock, Moment};
use pin_project_lite::pin_project;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

/// Effectively forever, and small enough that no timer overflows when it adds the time of day.
const TIMER_MAX: Duration = Duration::from_secs(10 * 365 * 86_400);

#[cfg(feature = "tokio")]
type TokioSleep = tokio::time::Sleep;
#[cfg(not(feature = "tokio"))]
type TokioSleep = std::future::Pending<()>;

pin_project! {
    /// The future of [`Clock::sleep`].
    #[derive(Debug)]
    #[must_use = "a future does nothing until it is awaited"]
    pub struct Sleep {
        #[pin]
        timer: Timer,
    }
}

pin_project! {
    #[project = TimerProjection]
    #[derive(Debug)]
    enum Timer {
        Tokio { #[pin] sleep: TokioSleep },
        Thread { delay: futures_timer::Delay },
        Manual { sleeper: Sleeper },
    }
}

impl Sleep {
    pub(super) fn new(clock: &Clock, duration: Duration) -> Sleep {
        let timer = match clock.manual() {
            Some(clock) => {
                let at = clock.now().plus(duration);
                Timer::Manual { sleeper: Sleeper { clock: clock.clone(), at, key: None } }
            }
            None => system_timer(duration.min(TIMER_MAX)),
        };
        Sleep { timer }
    }
}

fn system_timer(duration: Duration) -> Timer {
    #[cfg(feature = "tokio")]
    if tokio::runtime::Handle::try_current().is_ok() {
        return Timer::Tokio { sleep: tokio::time::sleep(duration) };
    }
    Timer::Thread { delay: futures_timer::Delay::new(duration) }
}

impl Clock {
    /// Sleeps until `at`, or until the task is woken for any reason.
    pub(crate) async fn sleep_until_or_woken(&self, at: Moment) {
        let sleep = (at < Moment::NEVER).then(|| self.sleep(at.since(self.now())));
        let mut sleep = pin!(sleep);
        let mut woken = false;
        poll_fn(|cx| {
            let is_over = |sleep: Pin<&mut Sleep>| sleep.poll(cx).is_ready();
            if woken || sleep.as_mut().as_pin_mut().is_some_and(is_over) {
                return Poll::Ready(());
            }
            woken = true;
            Poll::Pending
        })
        .await;
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match self.project().timer.project() {
            TimerProjection::Tokio { sleep } => sleep.poll(cx),
            TimerProjection::Thread { delay } => Pin::new(delay).poll(cx),
            TimerProjection::Manual { sleeper } => sleeper.poll(cx),
        }
    }
}

/// An entry in the list of sleepers of a [`ManualClock`].
#[derive(Debug)]
struct Sleeper {
    clock: ManualClock,
    at: Moment,
    key: Option<SleeperKey>,
}

impl Sleeper {
    fn poll(&mut self, cx: &Context<'_>) -> Poll<()> {
        self.leave();
        if self.clock.now() >= self.at {
            return Poll::Ready(());
        }
        self.key = Some(self.clock.register(self.at, cx.waker().clone()));
        // The clock may have advanced between the check and the registration.
        if self.clock.now() >= self.at {
            self.leave();
            return Poll::Ready(());
        }
        Poll::Pending
    }

    fn leave(&mut self) {
        if let Some(key) = self.key.take() {
            self.clock.forget(key);
        }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.leave();
    }
}
