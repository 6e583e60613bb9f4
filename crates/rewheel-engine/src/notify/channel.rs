//! One notifier with its route, queue, window and counters.

use super::dead_letters::{LetterId, PENDING_MAX};
use super::gate::{Admission, Gate};
use super::inbox::Outcome;
use super::letter_job;
use super::notice::Notice;
use super::route::Route;
use super::settings::NotifySettings;
use super::{Notifier, NotifyError};
use crate::shared::Shared;
use rewheel::{CancelToken, Moment, Retry, Retryable, millis, seconds};
use rewheel_core::KindName;
use std::fmt;
use std::future::{Future, pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use tokio::sync::{Notify, mpsc};

/// Four attempts within some seconds. If a notifier is unavailable for longer, dead letters are
/// sent later, and other notices are dropped to save memory.
const SENDING: Retry = Retry::exponential(millis(500))
    .attempts_max(4)
    .delay_max(seconds(10))
    .retry_after_max(seconds(30));

/// Delivery counters of one notifier.
///
/// `offered` is the sum of the others, plus the waiting notices.
///
/// ```
/// use rewheel_engine::notify::NotifyCounts;
///
/// let counts = NotifyCounts { offered: 9, sent: 5, suppressed: 2, ..NotifyCounts::default() };
/// assert_eq!(counts.waiting(), 2);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotifyCounts {
    /// Name of the notifier.
    pub name: String,
    /// Notices that its route selects. A dead letter that was not delivered is offered again.
    pub offered: u64,
    /// Delivered notices.
    pub sent: u64,
    /// Notices beyond the limit of the window or the queue: a summary counts them.
    pub suppressed: u64,
    /// Notices that were not delivered after several attempts.
    pub failed: u64,
    /// Delivered summaries. Summaries do not count as notices.
    pub summaries: u64,
    /// Summaries that were not delivered.
    pub summaries_failed: u64,
}

impl NotifyCounts {
    /// Returns the number of notices that wait for delivery.
    pub fn waiting(&self) -> u64 {
        self.offered.saturating_sub(self.sent + self.suppressed + self.failed)
    }
}

/// How a notice is delivered.
pub(super) enum Delivery {
    /// By a notifier.
    Notifier(Arc<dyn Notifier>),
    /// As a job of this kind, one for each dead letter.
    Job(KindName),
}

/// One notifier, as the engine sees it.
pub(super) struct Channel {
    name: String,
    pub(super) route: Route,
    delivery: Delivery,
    settings: NotifySettings,
    gate: Mutex<Gate>,
    queue: mpsc::Sender<Item>,
    /// Wakes its loop: a summary is due.
    owing: Notify,
    counters: Counters,
}

#[derive(Default)]
struct Counters {
    offered: AtomicU64,
    sent: AtomicU64,
    suppressed: AtomicU64,
    failed: AtomicU64,
    summaries: AtomicU64,
    summaries_failed: AtomicU64,
    /// Summaries on their way.
    summing: AtomicU64,
}

pub(super) struct Item {
    notice: Notice,
    letter: Option<LetterId>,
}

impl Channel {
    pub(super) fn new(
        name: String,
        route: Route,
        delivery: Delivery,
        settings: NotifySettings,
    ) -> (Channel, mpsc::Receiver<Item>) {
        let queue_max = match delivery {
            Delivery::Notifier(_) => settings.queue_max,
            // Each dead letter becomes a job, and none is summed up: the queue has room for all that are pending.
            Delivery::Job(_) => PENDING_MAX,
        };
        let (queue, items) = mpsc::channel(queue_max);
        let gate = Mutex::new(Gate::new(settings.window, settings.window_max));
        let (owing, counters) = (Notify::new(), Counters::default());
        (Channel { name, route, delivery, settings, gate, queue, owing, counters }, items)
    }

    /// Returns whether it delivers this notice.
    pub(super) fn takes(&self, notice: &Notice) -> bool {
        match &self.delivery {
            Delivery::Notifier(_) => self.route.takes(notice),
            Delivery::Job(kind) => letter_job::takes(kind, notice) && self.route.takes(notice),
        }
    }

    /// Returns the kind whose jobs it submits.
    pub(super) fn job_kind(&self) -> Option<&KindName> {
        match &self.delivery {
            Delivery::Notifier(_) => None,
            Delivery::Job(kind) => Some(kind),
        }
    }

    /// Accepts a notice that its route selects, without waiting.
    pub(super) fn offer(
        &self,
        notice: &Notice,
        letter: Option<LetterId>,
        now: Moment,
    ) -> Admission {
        if self.job_kind().is_some() {
            let item = Item { notice: notice.clone(), letter };
            if self.queue.try_send(item).is_err() {
                return Admission::Full;
            }
            count(&self.counters.offered, 1);
            return Admission::Taken;
        }
        count(&self.counters.offered, 1);
        let mut gate = self.gate();
        let mut admission = gate.admit(notice, now);
        if admission == Admission::Taken {
            let item = Item { notice: notice.clone(), letter };
            if self.queue.try_send(item).is_ok() {
                return Admission::Taken;
            }
            admission = gate.suppress(notice, now);
        }
        drop(gate);
        count(&self.counters.suppressed, 1);
        self.owing.notify_one();
        admission
    }

    /// Returns whether the window allows another notice.
    pub(super) fn has_room(&self, now: Moment) -> bool {
        self.gate().has_room(now)
    }

    /// Requests the pending summary now: the engine is about to stop.
    pub(super) fn hurry(&self, now: Moment) {
        self.gate().hurry(now);
        self.owing.notify_one();
    }

    /// Returns whether nothing is on its way.
    pub(super) fn is_idle(&self) -> bool {
        let owes = self.gate().due().is_some() || self.counters.summing.load(Ordering::Acquire) > 0;
        !owes && self.counts().waiting() == 0
    }

    pub(super) fn counts(&self) -> NotifyCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Acquire);
        let Counters { offered, sent, suppressed, failed, summaries, summaries_failed, .. } =
            &self.counters;
        NotifyCounts {
            name: self.name.clone(),
            // Read the parts before the total, so that the number of waiting notices is never too
            // large.
            sent: read(sent),
            suppressed: read(suppressed),
            failed: read(failed),
            summaries: read(summaries),
            summaries_failed: read(summaries_failed),
            offered: read(offered),
        }
    }

    fn gate(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The loop that delivers notices to one notifier.
pub(super) struct Teller {
    pub(super) shared: Arc<Shared>,
    pub(super) channel: Arc<Channel>,
    /// Its index among all channels.
    pub(super) index: usize,
    pub(super) items: mpsc::Receiver<Item>,
    pub(super) outcomes: mpsc::UnboundedSender<Outcome>,
}

impl Teller {
    pub(super) async fn run(mut self, stop: CancelToken) {
        let channel = Arc::clone(&self.channel);
        loop {
            let due = channel.gate().due();
            let clock = &self.shared.clock;
            let owed = async {
                match due {
                    Some(due) => clock.sleep(due.since(clock.now())).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                Some(item) = self.items.recv() => self.tell(item).await,
                () = owed => self.sum_up().await,
                () = channel.owing.notified() => {}
            }
        }
    }

    async fn tell(&self, item: Item) {
        let sent = self.send(item.notice, item.letter).await;
        let counters = &self.channel.counters;
        count(if sent { &counters.sent } else { &counters.failed }, 1);
        if let Some(letter) = item.letter {
            let _ = self.outcomes.send(Outcome::Letter { letter, channel: self.index, sent });
        }
    }

    async fn sum_up(&self) {
        let counters = &self.channel.counters;
        count(&counters.summing, 1);
        let summary = self.channel.gate().summary(self.shared.clock.now());
        if let Some((number, tally)) = summary {
            let notice = tally.notice(self.channel.settings.window, self.shared.node_time());
            let holder = Some(self.shared.holder());
            let sent = self.send(Notice { holder, ..notice }, None).await;
            count(if sent { &counters.summaries } else { &counters.summaries_failed }, 1);
            let _ = self.outcomes.send(Outcome::Summary { number, channel: self.index, sent });
        }
        counters.summing.fetch_sub(1, Ordering::AcqRel);
    }

    /// Delivers a notice, with retries. Returns whether it was accepted.
    async fn send(&self, notice: Notice, letter: Option<LetterId>) -> bool {
        let notice = notice.made_fit();
        let deliver = async || match (&self.channel.delivery, letter) {
            (Delivery::Notifier(notifier), _) => unless_it_panics(notifier.notify(&notice)).await,
            (Delivery::Job(kind), Some(letter)) => {
                letter_job::submit(&self.shared, kind, letter).await
            }
            // Such a route selects dead letters only.
            (Delivery::Job(_), None) => Ok(()),
        };
        let sent = deliver
            .retry(SENDING.attempt_timeout(self.channel.settings.timeout))
            .random(&self.shared.random)
            .await;
        if let Err(error) = &sent {
            let (name, event) = (&self.channel.name, notice.event);
            tracing::warn!(notifier = name, %event, %error, "notification not delivered: all attempts failed; if it is about a dead letter, it is sent again in a minute, otherwise it is lost");
        }
        sent.is_ok()
    }
}

/// Catches a panic of a notifier, so that it does not end the delivery loop.
async fn unless_it_panics(
    telling: impl Future<Output = Result<(), NotifyError>>,
) -> Result<(), NotifyError> {
    let mut telling = pin!(telling);
    poll_fn(move |context| {
        match catch_unwind(AssertUnwindSafe(|| telling.as_mut().poll(context))) {
            Ok(polled) => polled,
            Err(_) => Poll::Ready(Err(NotifyError::stop("the notifier panicked"))),
        }
    })
    .await
}

fn count(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::AcqRel);
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel").field("name", &self.name).finish_non_exhaustive()
    }
}
