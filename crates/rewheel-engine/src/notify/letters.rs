//! The loop that announces dead letters until every notifier has accepted them.

use super::desk::{Desk, Outcome};
use super::gate::Admission;
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

/// Letters that are on their way to somebody at the same time. Each takes some two hundred bytes here;
/// a store reads this many and a batch more at most.
const PENDING_MAX: usize = 10_000;

/// How long a notifier is left alone with a letter that it did not take.
const AGAIN_AFTER: Duration = Duration::from_secs(60);

/// How much longer than a window others wait before they tell what died elsewhere: time enough for
/// whoever let it die to try several times.
const PATIENCE: Duration = Duration::from_secs(30);

/// A job in one of its deaths.
pub(crate) type LetterId = (JobId, Version);

/// A letter that not everybody has.
struct Pending {
    /// Without what it died of: the store has that.
    letter: DeadLetter,
    missing: Vec<Missing>,
}

/// A notifier that does not have it.
struct Missing {
    channel: usize,
    why: Why,
}

/// Why not.
#[derive(Clone, Copy)]
enum Why {
    /// It is in its queue.
    Queued,
    /// It is part of a summary that was not sent yet.
    Summed(u64),
    /// It could not be sent: not again before this.
    Failed(Moment),
}

/// What decides whose turn it is.
struct Fleet {
    now: Timestamp,
    living: Vec<HolderId>,
}

pub(super) struct Letters {
    shared: Arc<Shared>,
    desk: Arc<Desk>,
    told: mpsc::UnboundedReceiver<Outcome>,
    pending: BTreeMap<LetterId, Pending>,
}

impl Letters {
    pub(super) fn new(
        shared: Arc<Shared>,
        desk: Arc<Desk>,
        told: mpsc::UnboundedReceiver<Outcome>,
    ) -> Letters {
        Letters { shared, desk, told, pending: BTreeMap::new() }
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
                // A read is as long as what is pending: the more that is, the rarer it is read.
                () = self.desk.letters.notified() => {
                    let soonest = now.plus(Duration::from_millis(self.pending.len() as u64 / 10));
                    next = next.min(soonest.max(clock.now()));
                }
                () = clock.sleep(next.since(clock.now())) => {}
            }
        }
    }

    /// How long until the next look where nobody asks for one.
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
            tracing::debug!(%error, "notifications of dead letters are delayed: the store did not answer");
        }
    }

    /// Reads what nobody was told of, and tells what is for this holder to tell.
    async fn look(&mut self) -> Result<(), StoreError> {
        let (mut fleet, mut skipped, mut limit_before) = (None, 0, 0);
        loop {
            if self.pending.len() >= PENDING_MAX {
                self.give_up_on_failed();
                self.announce().await?;
            }
            // Those that are known come first: to see others, more must be read.
            let limit = (self.pending.len() + skipped).min(PENDING_MAX) + Limits::BATCH_MAX;
            if self.pending.len() >= PENDING_MAX || limit <= limit_before {
                return Ok(());
            }
            let ours = self.desk.ours().clone();
            let letters = self.shared.store.unannounced(limit).await?;
            let is_all = letters.len() < limit;
            if is_all {
                self.forget_others(&letters, &ours);
            }
            let taken = self.offer(letters, &mut fleet, &mut skipped).await?;
            self.announce().await?;
            if is_all {
                return Ok(());
            }
            // What was told at once makes room for others within the same number.
            limit_before = if taken > 0 { 0 } else { limit };
        }
    }

    /// Offers letters to whoever wants them. Returns how many were new; those that are for others to
    /// tell are counted as skipped.
    async fn offer(
        &mut self,
        letters: Vec<DeadLetter>,
        fleet: &mut Option<Fleet>,
        skipped: &mut usize,
    ) -> Result<usize, StoreError> {
        let mut taken = 0;
        *skipped = 0;
        for letter in letters {
            let is_ours = self.desk.ours().contains(&letter.job);
            if self.pending.contains_key(&(letter.job, letter.version)) {
                self.offer_again(letter).await;
            } else if self.pending.len() >= PENDING_MAX {
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
            // Workers send no notices: none of them has a turn.
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
            if channel.route.takes(&notice) {
                let why = why(channel.offer(&notice, Some(id), now));
                missing.push(Missing { channel: index, why });
            }
        }
        let letter = DeadLetter { failure: None, ..letter };
        self.pending.insert(id, Pending { letter, missing });
    }

    async fn offer_again(&mut self, letter: DeadLetter) {
        let now = self.shared.clock.now();
        let is_due = |missing: &Missing| matches!(missing.why, Why::Failed(again) if again <= now);
        let id = (letter.job, letter.version);
        if !self.pending.get(&id).is_some_and(|known| known.missing.iter().any(is_due)) {
            return;
        }
        let notice = self.notice(&letter).await;
        let Some(known) = self.pending.get_mut(&id) else { return };
        for missing in known.missing.iter_mut().filter(|missing| is_due(missing)) {
            let channel = &self.desk.channels[missing.channel];
            missing.why = why(channel.offer(&notice, Some(id), now));
        }
    }

    /// Says what a letter is about. Its job is asked for only where somebody must know or will
    /// read it: ten thousand of them are summed up without.
    async fn notice(&self, letter: &DeadLetter) -> Notice {
        let now = self.shared.clock.now();
        let asks = |channel: &Arc<super::channel::Channel>| {
            channel.route.asks_why() || channel.has_room(now)
        };
        let job = if self.desk.channels.iter().any(asks) {
            self.shared.store.get(letter.job).await.ok().flatten()
        } else {
            None
        };
        let kind = self.shared.kind(&letter.lane.kind);
        let attempts_max = kind.map(|kind| kind.settings.attempts_max);
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
                missing.why = Why::Failed(again);
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
                    let is_part = matches!(missing.why, Why::Summed(part) if part == number);
                    is_part && missing.channel == channel
                };
                self.pending.values_mut().for_each(|known| note(known, sent, &is_meant));
            }
        }
    }

    /// Notes in the store what everybody has.
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

    /// Forgets letters that waited for another try, and are no longer there: somebody put them back
    /// to work, or told of them.
    fn forget_others(&mut self, there: &[DeadLetter], ours: &BTreeSet<JobId>) {
        let letters: BTreeSet<LetterId> =
            there.iter().map(|letter| (letter.job, letter.version)).collect();
        self.pending.retain(|id, known| known.is_on_the_way() || letters.contains(id));
        let jobs: BTreeSet<JobId> = there.iter().map(|letter| letter.job).collect();
        // Only what was ours before the read: what died since is not among what was read.
        self.desk.ours().retain(|job| jobs.contains(job) || !ours.contains(job));
    }

    /// Lets go of letters that somebody refuses to take, where there are so many that nobody would
    /// hear of any other.
    fn give_up_on_failed(&mut self) {
        let mut count = 0;
        for known in self.pending.values_mut() {
            let before = known.missing.len();
            known.missing.retain(|missing| !matches!(missing.why, Why::Failed(_)));
            count += usize::from(known.missing.len() < before);
        }
        if count > 0 {
            tracing::error!(
                dead_letters = count,
                "notifier keeps failing: it gets no notification about these dead letters"
            );
        }
    }

    fn on_the_way(&self) -> u64 {
        let is_on_the_way = |known: &&Pending| known.is_on_the_way() || known.missing.is_empty();
        self.pending.values().filter(is_on_the_way).count() as u64
    }
}

impl Pending {
    fn is_on_the_way(&self) -> bool {
        self.missing.iter().any(|missing| matches!(missing.why, Why::Queued | Why::Summed(_)))
    }
}

fn why(admission: Admission) -> Why {
    match admission {
        Admission::Taken => Why::Queued,
        Admission::Suppressed(number) => Why::Summed(number),
    }
}
