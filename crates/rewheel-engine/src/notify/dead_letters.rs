//! The loop that announces dead letters until every notifier has accepted them.

use super::channel::Channel;
use super::gate::Admission;
use super::inbox::{Inbox, Outcome};
use super::notice::Notice;
use super::sources;
use super::turn::is_turn;
use crate::shared::Shared;
use rewheel::{CancelToken, Moment};
use rewheel_core::store::{DeadLetter, StoreError};
use rewheel_core::{Holder, HolderId, JobId, Limits, Role, Timestamp, Version};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::mpsc;

/// Maximum number of dead letters on their way at the same time. Each takes about two hundred bytes here; a store reads at most
/// this many plus a batch.
pub(super) const PENDING_MAX: usize = 10_000;

/// Maximum number of dead letters that wait only for the kind of a route to jobs, which was deleted. They are kept apart, so that other
/// letters go on. Beyond it, a store would be asked for too many at once.
const HELD_MAX: usize = 100_000;

/// Delay before a notifier gets a dead letter again that it did not accept.
const AGAIN_AFTER: Duration = Duration::from_secs(60);

/// How much longer than a window other engines wait before they announce a job that died elsewhere: enough for the first engine
/// to try several times.
const PATIENCE: Duration = Duration::from_secs(30);

/// One death of a job.
pub(crate) type LetterId = (JobId, Version);

/// A dead letter that some notifiers have not accepted yet.
struct Pending {
    /// Without the failure, which is in the store.
    letter: DeadLetter,
    missing: Vec<Missing>,
}

/// A notifier that has not accepted it.
struct Missing {
    channel: usize,
    why: GiveUpReason,
}

/// The reason.
#[derive(Clone, Copy)]
enum GiveUpReason {
    /// It is in the queue of the notifier.
    Queued,
    /// It is part of a summary that was not sent yet.
    Summed(u64),
    /// It could not be sent: not again before this time.
    Failed(Moment),
}

/// The data that decides which engine announces a dead letter.
struct Fleet {
    now: Timestamp,
    living: Vec<HolderId>,
}

pub(super) struct Letters {
    shared: Arc<Shared>,
    desk: Arc<Inbox>,
    told: mpsc::UnboundedReceiver<Outcome>,
    pending: BTreeMap<LetterId, Pending>,
    /// Whether it was reported that letters wait for a kind that does not exist.
    has_told_of_held: bool,
}

impl Letters {
    pub(super) fn new(
        shared: Arc<Shared>,
        desk: Arc<Inbox>,
        told: mpsc::UnboundedReceiver<Outcome>,
    ) -> Letters {
        Letters { shared, desk, told, pending: BTreeMap::new(), has_told_of_held: false }
    }

    pub(super) async fn run(mut self, stop: CancelToken) {
        let clock = self.shared.clock.clone();
        let mut next = clock.now();
        while !stop.is_cancelled() {
            let now = clock.now();
            let woken = self.desk.woken();
            let looks = now >= next;
            self.tick(looks).await;
            self.desk.on_the_way.store(self.on_the_way(), Ordering::Release);
            if looks {
                self.desk.seen.store(woken, Ordering::Release);
                next = clock.now().plus(self.rest());
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                Some(outcome) = self.told.recv() => self.note(&outcome),
                // The cost of a read grows with the number of pending letters: the more there are, the less often it reads.
                () = self.desk.letters.notified() => {
                    let soonest = now.plus(Duration::from_millis(self.pending.len() as u64 / 10));
                    next = next.min(soonest.max(clock.now()));
                }
                () = clock.sleep(next.since(clock.now())) => {}
            }
        }
    }

    /// Returns how long until the next read without a wake-up.
    fn rest(&self) -> Duration {
        let usual = self.shared.settings.housekeeping;
        if self.pending.len() > Limits::BATCH_MAX { usual.max(PATIENCE) } else { usual }
    }

    async fn tick(&mut self, looks: bool) {
        while let Ok(outcome) = self.told.try_recv() {
            self.note(&outcome);
        }
        let done = async {
            self.announce().await?;
            if looks { self.look().await } else { Ok(()) }
        };
        if let Err(error) = done.await {
            tracing::debug!(%error, "notifications of dead letters are delayed: a store call failed");
        }
    }

    /// Reads dead letters that are not announced, and announces those that are this engine's turn.
    async fn look(&mut self) -> Result<(), StoreError> {
        let (mut fleet, mut skipped, mut limit_before) = (None, 0, 0);
        loop {
            let mut room = self.room();
            if self.pending.len() >= room {
                self.give_up_on_failed();
                self.announce().await?;
                self.offer_held_again().await;
                room = self.room();
            }
            // Known letters come first: to see others, more must be read.
            let limit = (self.pending.len() + skipped).min(room) + Limits::BATCH_MAX;
            if self.pending.len() >= room || limit <= limit_before {
                return Ok(());
            }
            let ours = self.desk.ours().clone();
            let letters = self.shared.store.unannounced(limit).await?;
            let is_all = letters.len() < limit;
            if is_all {
                self.forget_others(&letters, &ours);
            }
            let taken = self.offer(letters, room, (&mut fleet, &mut skipped)).await?;
            self.announce().await?;
            if is_all {
                return Ok(());
            }
            // Letters that were announced at once free capacity for others within the same limit.
            limit_before = if taken > 0 { 0 } else { limit };
        }
    }

    /// Offers letters to the notifiers that want them. Returns the number of new ones; letters that other engines announce count
    /// as skipped.
    async fn offer(
        &mut self,
        letters: Vec<DeadLetter>,
        room: usize,
        (fleet, skipped): (&mut Option<Fleet>, &mut usize),
    ) -> Result<usize, StoreError> {
        let mut taken = 0;
        *skipped = 0;
        for letter in letters {
            let is_ours = self.desk.ours().contains(&letter.job);
            if self.pending.contains_key(&(letter.job, letter.version)) {
                self.offer_again(letter).await;
            } else if self.pending.len() >= room {
                break;
            } else if is_ours || self.is_turn(&letter, fleet).await? {
                self.offer_first(letter).await;
                taken += 1;
            } else {
                *skipped += 1;
            }
        }
        Ok(taken)
    }

    async fn is_turn(
        &self,
        letter: &DeadLetter,
        fleet: &mut Option<Fleet>,
    ) -> Result<bool, StoreError> {
        let me = self.shared.holder();
        if fleet.is_none() {
            let store = &self.shared.store;
            let holders = store.holders().await?;
            // Workers send no notices, so they have no turn.
            let sends = |holder: &&Holder| holder.died.is_none() && holder.role == Role::Engine;
            let living = holders.iter().filter(sends).map(|holder| holder.id).collect();
            *fleet = Some(Fleet { now: store.now().await?, living });
        }
        let Some(Fleet { now, living }) = fleet else { return Ok(false) };
        let patience = self.desk.settings.window + PATIENCE;
        Ok(is_turn(letter.job, me, living, now.since(letter.died), patience))
    }

    async fn offer_first(&mut self, letter: DeadLetter) {
        let notice = self.notice(&letter).await;
        let now = self.shared.clock.now();
        let id = (letter.job, letter.version);
        let mut missing = Vec::new();
        for (index, channel) in self.desk.channels.iter().enumerate() {
            if channel.takes(&notice) {
                let why = self.hand_over(channel, (&notice, id), now);
                missing.push(Missing { channel: index, why });
            }
        }
        let letter = DeadLetter { failure: None, ..letter };
        self.pending.insert(id, Pending { letter, missing });
    }

    async fn offer_again(&mut self, letter: DeadLetter) {
        let now = self.shared.clock.now();
        let is_due =
            |missing: &Missing| matches!(missing.why, GiveUpReason::Failed(again) if again <= now);
        let id = (letter.job, letter.version);
        if !self.pending.get(&id).is_some_and(|known| known.missing.iter().any(is_due)) {
            return;
        }
        let notice = self.notice(&letter).await;
        let Some(mut known) = self.pending.remove(&id) else { return };
        for missing in known.missing.iter_mut().filter(|missing| is_due(missing)) {
            let channel = &self.desk.channels[missing.channel];
            missing.why = self.hand_over(channel, (&notice, id), now);
        }
        self.pending.insert(id, known);
    }

    /// Offers letters again whose jobs could not be submitted: their kind may be back. The store is not read, which may have more letters
    /// than there is room for.
    async fn offer_held_again(&mut self) {
        let is_held = |known: &&Pending| known.is_held(&self.desk.channels);
        let held = self.pending.values().filter(is_held).map(|known| known.letter.clone());
        for letter in held.collect::<Vec<_>>() {
            self.offer_again(letter).await;
        }
    }

    /// Gives a letter to a notifier. A route to a kind that does not exist gets it later.
    fn hand_over(
        &self,
        channel: &Channel,
        (notice, id): (&Notice, LetterId),
        now: Moment,
    ) -> GiveUpReason {
        if channel.job_kind().is_some_and(|kind| self.shared.kind(kind).is_none()) {
            return GiveUpReason::Failed(now.plus(AGAIN_AFTER));
        }
        match channel.offer(notice, Some(id), now) {
            Admission::Taken => GiveUpReason::Queued,
            Admission::Suppressed(number) => GiveUpReason::Summed(number),
            Admission::Full => GiveUpReason::Failed(now),
        }
    }

    /// Returns how many letters may be pending. Those that wait only for the kind of a route take no room from others.
    fn room(&mut self) -> usize {
        let is_held = |known: &&Pending| known.is_held(&self.desk.channels);
        let held = self.pending.values().filter(is_held).count();
        let has_told = std::mem::replace(&mut self.has_told_of_held, held > 0);
        if held > 0 && !has_told {
            tracing::error!(
                dead_letters = held,
                "no jobs submitted for dead letters: they are refused, or their kind does not exist; create the kind, and the jobs are submitted within a minute"
            );
        }
        PENDING_MAX + held.min(HELD_MAX)
    }

    /// Builds the notice of a letter. Reads its job only if a notifier needs it: ten thousand letters are summed up without.
    async fn notice(&self, letter: &DeadLetter) -> Notice {
        let now = self.shared.clock.now();
        let asks = |channel: &Arc<Channel>| {
            channel.route.asks_why() || channel.job_kind().is_none() && channel.has_room(now)
        };
        let job = if self.desk.channels.iter().any(asks) {
            self.shared.store.get(letter.job).await.ok().flatten()
        } else {
            None
        };
        let kind = self.shared.kind(&letter.lane.kind);
        let attempts_max = kind.map(|kind| match &job {
            Some(job) => kind.settings.attempts_max_of(job),
            None => kind.settings.attempts_max,
        });
        let notice = sources::dead_letter(letter, job.as_ref(), attempts_max);
        Notice { holder: Some(self.shared.holder()), ..notice }
    }

    fn note(&mut self, outcome: &Outcome) {
        let again = self.shared.clock.now().plus(AGAIN_AFTER);
        let note = |known: &mut Pending, sent: bool, is_meant: &dyn Fn(&Missing) -> bool| {
            if sent {
                known.missing.retain(|missing| !is_meant(missing));
            }
            for missing in known.missing.iter_mut().filter(|missing| is_meant(missing)) {
                missing.why = GiveUpReason::Failed(again);
            }
        };
        match *outcome {
            Outcome::Letter { letter, channel, sent } => {
                if let Some(known) = self.pending.get_mut(&letter) {
                    note(known, sent, &|missing| missing.channel == channel);
                }
            }
            Outcome::Summary { number, channel, sent } => {
                let is_meant = |missing: &Missing| {
                    let is_part =
                        matches!(missing.why, GiveUpReason::Summed(part) if part == number);
                    is_part && missing.channel == channel
                };
                self.pending.values_mut().for_each(|known| note(known, sent, &is_meant));
            }
        }
    }

    /// Marks letters as announced in the store that all notifiers have accepted.
    async fn announce(&mut self) -> Result<(), StoreError> {
        let is_done = |known: &&Pending| known.missing.is_empty();
        let done: Vec<DeadLetter> =
            self.pending.values().filter(is_done).map(|known| known.letter.clone()).collect();
        for part in done.chunks(Limits::BATCH_MAX) {
            self.shared.store.announce(part).await?;
            let mut ours = self.desk.ours();
            for letter in part {
                self.pending.remove(&(letter.job, letter.version));
                ours.remove(&letter.job);
            }
        }
        Ok(())
    }

    /// Removes letters that waited for a retry and are no longer in the store: they were redriven, or announced by another
    /// engine.
    fn forget_others(&mut self, there: &[DeadLetter], ours: &BTreeSet<JobId>) {
        let letters: BTreeSet<LetterId> =
            there.iter().map(|letter| (letter.job, letter.version)).collect();
        self.pending.retain(|id, known| known.is_on_the_way() || letters.contains(id));
        let jobs: BTreeSet<JobId> = there.iter().map(|letter| letter.job).collect();
        // Only jobs that were ours before the read: jobs that died since are not in the result.
        self.desk.ours().retain(|job| jobs.contains(job) || !ours.contains(job));
    }

    /// Drops letters that a notifier refuses, if there are so many that other letters would be blocked. Routes to jobs keep
    /// theirs: a refund that is late is better than none.
    fn give_up_on_failed(&mut self) {
        let mut count = 0;
        let channels = &self.desk.channels;
        let is_dropped = |missing: &Missing| {
            matches!(missing.why, GiveUpReason::Failed(_))
                && channels[missing.channel].job_kind().is_none()
        };
        for known in self.pending.values_mut() {
            let before = known.missing.len();
            known.missing.retain(|missing| !is_dropped(missing));
            count += usize::from(known.missing.len() < before);
        }
        if count > 0 {
            tracing::error!(
                dead_letters = count,
                "notifier keeps failing: too many dead letters wait for it, so notifications about these dead letters are dropped and never sent; check the notifier"
            );
        }
    }

    fn on_the_way(&self) -> u64 {
        let is_on_the_way = |known: &&Pending| known.is_on_the_way() || known.missing.is_empty();
        self.pending.values().filter(is_on_the_way).count() as u64
    }
}

impl Pending {
    /// Returns whether it waits only for routes to jobs that could not be submitted.
    fn is_held(&self, channels: &[Arc<Channel>]) -> bool {
        let is_held = |missing: &Missing| {
            let is_failed = matches!(missing.why, GiveUpReason::Failed(_));
            is_failed && channels[missing.channel].job_kind().is_some()
        };
        !self.missing.is_empty() && self.missing.iter().all(is_held)
    }

    fn is_on_the_way(&self) -> bool {
        self.missing
            .iter()
            .any(|missing| matches!(missing.why, GiveUpReason::Queued | GiveUpReason::Summed(_)))
    }
}
