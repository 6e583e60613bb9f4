//! Receives notices from the engine and passes them to the notifiers.

use super::Notifier;
use super::channel::{Channel, Delivery, Item, NotifyCounts, Teller};
use super::dead_letters::{LetterId, Letters};
use super::notice::Notice;
use super::route::Route;
use super::settings::NotifySettings;
use crate::builder::EngineBuilder;
use crate::engine::Engine;
use crate::settings::SettingError;
use crate::shared::Shared;
use rewheel::{CancelToken, Moment};
use rewheel_core::{JobId, KindName};
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};

/// Jobs that died on this engine and were not announced yet. Beyond this number they are announced as if they had died elsewhere,
/// which is later.
const OURS_MAX: usize = 20_000;

/// How long a shutdown waits for notices on their way. Remaining dead letters are announced by other engines, or after the next
/// start.
const FINISH_MAX: Duration = Duration::from_secs(5);

/// How often a shutdown checks whether all notices were delivered.
const FINISH_LOOK: Duration = Duration::from_millis(10);

/// Notifiers and settings before the engine starts.
#[derive(Default)]
pub(crate) struct Notifying {
    notifiers: Vec<(String, Route, Delivery)>,
    settings: NotifySettings,
}

/// All notifiers of an engine.
#[derive(Debug)]
pub(crate) struct Inbox {
    pub(super) channels: Vec<Arc<Channel>>,
    pub(super) settings: NotifySettings,
    /// Dead letters created by this engine: it announces them first.
    ours: Mutex<BTreeSet<JobId>>,
    /// Wakes the loop that reads dead letters.
    pub(super) letters: Notify,
    /// Number of wake-ups, number of those handled, and what the loop waits for.
    woken: AtomicU64,
    pub(super) seen: AtomicU64,
    pub(super) on_the_way: AtomicU64,
}

/// The delivery result of something that was offered to a notifier.
pub(crate) enum Outcome {
    /// A dead letter was sent, or could not be.
    Letter { letter: LetterId, channel: usize, sent: bool },
    /// The summary with this number was sent, or could not be.
    Summary { number: u64, channel: usize, sent: bool },
}

/// The loops of the notifiers, before they run.
pub(crate) struct Telling {
    desk: Arc<Inbox>,
    queues: Vec<mpsc::Receiver<Item>>,
}

impl Notifying {
    /// Creates the desk. Returns `None` without notifiers.
    pub(crate) fn open(self) -> Result<Option<Telling>, SettingError> {
        self.settings.check()?;
        if self.notifiers.is_empty() {
            return Ok(None);
        }
        let (mut channels, mut queues) = (Vec::new(), Vec::new());
        for (name, route, delivery) in self.notifiers {
            let (channel, queue) = Channel::new(name, route, delivery, self.settings);
            channels.push(Arc::new(channel));
            queues.push(queue);
        }
        let desk = Inbox {
            channels,
            settings: self.settings,
            ours: Mutex::default(),
            letters: Notify::new(),
            woken: AtomicU64::new(0),
            seen: AtomicU64::new(0),
            on_the_way: AtomicU64::new(0),
        };
        Ok(Some(Telling { desk: Arc::new(desk), queues }))
    }
}

impl Telling {
    pub(crate) fn desk(&self) -> Arc<Inbox> {
        Arc::clone(&self.desk)
    }

    /// Returns the loops: one for each notifier, one for dead letters.
    pub(crate) fn loops(
        self,
        shared: &Arc<Shared>,
        stop: &CancelToken,
    ) -> Vec<Pin<Box<dyn Future<Output = ()> + Send>>> {
        let (outcomes, told) = mpsc::unbounded_channel();
        let mut loops: Vec<Pin<Box<dyn Future<Output = ()> + Send>>> = Vec::new();
        for (index, items) in self.queues.into_iter().enumerate() {
            let (shared, outcomes) = (Arc::clone(shared), outcomes.clone());
            let channel = Arc::clone(&self.desk.channels[index]);
            let teller = Teller { shared, channel, index, items, outcomes };
            loops.push(Box::pin(teller.run(stop.clone())));
        }
        let letters = Letters::new(Arc::clone(shared), self.desk, told);
        loops.push(Box::pin(letters.run(stop.clone())));
        loops
    }
}

impl Inbox {
    /// Offers a notice to every notifier whose route selects it.
    fn offer(&self, notice: &Notice, now: Moment) {
        let takes = |channel: &&Arc<Channel>| channel.job_kind().is_none() && channel.takes(notice);
        for channel in self.channels.iter().filter(takes) {
            channel.offer(notice, None, now);
        }
    }

    /// Returns the kinds of the jobs that are submitted for dead letters.
    pub(crate) fn job_kinds(&self) -> impl Iterator<Item = &KindName> {
        self.channels.iter().filter_map(|channel| channel.job_kind())
    }

    pub(super) fn ours(&self) -> MutexGuard<'_, BTreeSet<JobId>> {
        self.ours.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the dead letter loop.
    fn wake(&self) {
        self.woken.fetch_add(1, Ordering::AcqRel);
        self.letters.notify_one();
    }

    /// Returns the number of wake-ups so far.
    pub(super) fn woken(&self) -> u64 {
        self.woken.load(Ordering::Acquire)
    }

    fn is_idle(&self) -> bool {
        self.seen.load(Ordering::Acquire) == self.woken()
            && self.on_the_way.load(Ordering::Acquire) == 0
            && self.channels.iter().all(|channel| channel.is_idle())
    }
}

impl Shared {
    /// Passes a notice to the notifiers, without waiting. The notice is built only if there are notifiers.
    pub(crate) fn notify(&self, notice: impl FnOnce() -> Notice) {
        if let Some(desk) = &self.reports.desk {
            let notice = Notice { holder: Some(self.holder()), ..notice() };
            desk.offer(&notice, self.clock.now());
        }
    }

    /// Returns the delivery counters of each notifier.
    pub(crate) fn notify_counts(&self) -> Vec<NotifyCounts> {
        let channels = self.reports.desk.iter().flat_map(|desk| &desk.channels);
        channels.map(|channel| channel.counts()).collect()
    }

    /// Records that jobs became dead letters on this engine: it is the first to announce them.
    pub(crate) fn note_dead(&self, jobs: impl IntoIterator<Item = JobId>) {
        let Some(desk) = &self.reports.desk else { return };
        let mut is_news = false;
        for job in jobs {
            let mut ours = desk.ours();
            is_news = true;
            if ours.len() < OURS_MAX {
                ours.insert(job);
            }
        }
        if is_news {
            desk.wake();
        }
    }
}

/// Gives notices on their way some time to be delivered before the engine ends.
pub(crate) async fn finish(shared: &Shared) {
    let Some(desk) = &shared.reports.desk else { return };
    desk.wake();
    let ends = shared.clock.now().plus(FINISH_MAX);
    while !desk.is_idle() && !ends.since(shared.clock.now()).is_zero() {
        let now = shared.clock.now();
        desk.channels.iter().for_each(|channel| channel.hurry(now));
        shared.clock.sleep(FINISH_LOOK).await;
    }
}

impl EngineBuilder {
    /// Adds a notifier for the notices that its route selects, see [`notify`](crate::notify). The name is for counters and logs.
    pub fn notifier(
        mut self,
        name: &str,
        route: Route,
        notifier: impl Notifier + 'static,
    ) -> EngineBuilder {
        let delivery = Delivery::Notifier(Arc::new(notifier));
        self.notifying.notifiers.push((name.to_owned(), route, delivery));
        self
    }

    /// Submits a job of this kind for each dead letter that the route selects, such as a refund for a charge that was given up.
    /// The name is for counters and logs.
    ///
    /// A dead letter is announced only when its job is stored, so this happens at least once; the key of the job is derived from
    /// the dead letter, so that there is one job. It has the tenant of the dead letter, and the dead letter as its parent. A job
    /// that was submitted for a dead letter submits no further one when it dies. The kind must exist when the engine starts. The
    /// payload is JSON: see `docs/notifications.md`.
    ///
    /// ```
    /// use rewheel_engine::notify::Route;
    /// use rewheel_engine::{Engine, KindName, Report};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let charges = Route { kinds: vec![KindName::parse("charge")?], ..Route::default() };
    /// let engine = Engine::builder(rewheel_stores::connect("memory://").await?)
    ///     .raw_handler("charge", |_| async { Report::dead("the card was stolen") })
    ///     .raw_handler("refund", |_| async { Report::Done })
    ///     .dead_letter_job("refunds", charges, KindName::parse("refund")?)
    ///     .start()
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn dead_letter_job(mut self, name: &str, route: Route, kind: KindName) -> EngineBuilder {
        self.notifying.notifiers.push((name.to_owned(), route, Delivery::Job(kind)));
        self
    }

    /// Sets the limits and timeouts of notifiers.
    pub fn notify_settings(mut self, settings: NotifySettings) -> EngineBuilder {
        self.notifying.settings = settings;
        self
    }
}

impl Engine {
    /// Returns the delivery counters of each notifier, in the order they were added.
    pub fn notify_counts(&self) -> Vec<NotifyCounts> {
        self.shared().notify_counts()
    }
}
