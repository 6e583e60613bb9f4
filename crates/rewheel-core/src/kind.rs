//! A kind of job, with the settings and state that all nodes share.

use crate::audit::AuditFields;
use crate::group::OnDead;
use crate::id::{HolderId, Version};
use crate::name::KindName;
use crate::redact::without_proofs;
use crate::timestamp::Timestamp;
use std::time::Duration;

/// A kind as written by a config file, a user or an engine that has its handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewKind {
    /// Name of the kind.
    pub name: KindName,
    /// Settings, as text that the store does not interpret.
    pub settings: String,
    /// Maximum number of takeovers of a job before it becomes a dead letter. Stored in a separate column, because a sweep of
    /// any node applies it, also to kinds that this node does not run.
    pub takeovers_max: u32,
    /// What a dead letter does to its group. Stored separately, because every store that releases jobs of a group applies it.
    pub on_dead: OnDead,
}

/// A kind as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Name of the kind.
    pub name: KindName,
    /// Settings, as written.
    pub settings: String,
    /// Maximum number of takeovers of a job before it becomes a dead letter.
    pub takeovers_max: u32,
    /// What a dead letter does to its group.
    pub on_dead: OnDead,
    /// Whether an operator paused the kind: no holder claims its jobs.
    pub paused: bool,
    /// Set while the kind is parked because its dependency is down: only the holder with the right to probe claims one job.
    pub parked: Option<Parked>,
    /// Holders that report the dependency as down, while there are too few of them to park the kind.
    pub suspects: Vec<HolderId>,
    /// Whether an operator decided that the kind is parked or not parked. Reports of holders then change nothing.
    pub forced: bool,
    /// Increases with every change of `parked`. Two holders that read the same generation cannot both change `parked`.
    pub generation: u64,
    /// Increases with every change by a user: of the settings, `paused` or `forced`. Changes by the engine do not affect it.
    /// Starts at the creation time in milliseconds, so that a kind that was deleted and created again has a different version.
    pub version: Version,
}

impl NewKind {
    /// Returns whether the stored kind has these settings already. The audit log cannot tell, because it does not contain
    /// secrets.
    pub fn is_stored_as(&self, kind: &Kind) -> bool {
        (&self.settings, self.takeovers_max, self.on_dead)
            == (&kind.settings, kind.takeovers_max, kind.on_dead)
    }

    /// Returns the settings for the audit log.
    pub fn facts(&self) -> AuditFields {
        settings(&self.settings, self.takeovers_max)
    }
}

impl Kind {
    /// Returns the settings for the audit log.
    pub fn facts(&self) -> AuditFields {
        settings(&self.settings, self.takeovers_max)
    }

    fn park(&mut self, reason: &str, now: Timestamp, until: Option<Timestamp>) {
        let since = self.parked.as_ref().map_or(now, |parked| parked.since);
        self.parked = Some(Parked { since, until, reason: reason.to_owned(), prober: None });
        self.suspects.clear();
        self.generation += 1;
    }

    fn unpark(&mut self) {
        self.parked = None;
        self.suspects.clear();
        self.generation += 1;
    }

    /// Returns the runtime state for the audit log.
    pub fn doings(&self) -> AuditFields {
        let parked = self.parked.as_ref();
        AuditFields::default()
            .with("paused", Some(self.paused))
            .with("parked", parked.map(|parked| parked.since.as_millis()))
            .with("until", parked.and_then(|parked| parked.until).map(Timestamp::as_millis))
            .with("reason", parked.map(|parked| parked.reason.as_str()))
            .with("prober", parked.and_then(|parked| parked.prober))
            .with("suspects", Some(self.suspects.len()))
            .with("forced", Some(self.forced))
    }
}

fn settings(settings: &str, takeovers_max: u32) -> AuditFields {
    let settings = without_proofs(settings);
    AuditFields::default()
        .with("settings", Some(settings))
        .with("takeovers_max", Some(takeovers_max))
}

/// Why a kind is parked, and which holder may probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parked {
    /// When it was parked. Time alone never unparks a kind.
    pub since: Timestamp,
    /// Set if the called service asked to wait: no holder probes the kind before this time.
    pub until: Option<Timestamp>,
    /// The reason shown to users.
    pub reason: String,
    /// The holder that may claim one job to test whether the dependency is back.
    pub prober: Option<HolderId>,
}

/// A change of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KindChange {
    /// An operator pauses the kind.
    Pause,
    /// An operator resumes the kind.
    Resume,
    /// Parks the kind, because the dependency is down. After a failed probe, the holder that probed parks the kind again,
    /// and so gives up the right to probe.
    Park {
        /// The generation that the caller read.
        generation: u64,
        /// The reason shown to users.
        reason: String,
    },
    /// A holder takes the right to probe.
    Probe {
        /// The generation that the caller read.
        generation: u64,
        /// The holder.
        holder: HolderId,
    },
    /// The dependency is back.
    Unpark {
        /// The generation that the caller read.
        generation: u64,
    },
    /// A holder reports that the dependency is down, because its own attempts fail. The kind is parked if two holders report
    /// this, or if there is only one live holder. So one holder with a broken network does not stop the others.
    Suspect {
        /// The holder.
        holder: HolderId,
        /// The reason shown to users if the kind is parked.
        reason: String,
    },
    /// The called service asked to wait: parks the kind, and no holder probes it before this time has passed. The report of one
    /// holder is enough, because the service itself asked for the wait. If the kind already has a longer hold, that hold stays.
    Hold {
        /// How long to wait.
        lasts: Duration,
        /// The reason shown to users.
        reason: String,
    },
    /// A holder that reported the dependency as down reports that it works again.
    Trust {
        /// The holder.
        holder: HolderId,
    },
    /// An operator parks the kind. The kind stays parked, without probes and independent of the reports of holders, until an operator changes this.
    Open {
        /// The reason shown to users.
        reason: String,
    },
    /// An operator unparks the kind. Reports of holders do not park it again until an operator changes this.
    Close,
    /// An operator returns to automatic parking: the reports of holders decide again.
    Reset,
}

/// Number of holders that must suspect a kind to park it, if more than one is alive.
const SUSPECTS_MIN: usize = 2;

impl KindChange {
    /// Returns the holder that wants to probe; it may be a worker.
    pub fn prober(&self) -> Option<HolderId> {
        match self {
            KindChange::Probe { holder, .. } => Some(*holder),
            KindChange::Suspect { .. }
            | KindChange::Hold { .. }
            | KindChange::Trust { .. }
            | KindChange::Pause
            | KindChange::Resume
            | KindChange::Park { .. }
            | KindChange::Unpark { .. }
            | KindChange::Open { .. }
            | KindChange::Close
            | KindChange::Reset => None,
        }
    }

    /// Returns the kind after the change; `None` if another change came first or an operator's decision prevents it. A pure
    /// function, the same for every store. `living` contains all live engines, and at least the live workers that have or want
    /// the right to probe.
    pub fn apply(&self, before: &Kind, now: Timestamp, living: &[HolderId]) -> Option<Kind> {
        let mut after = before.clone();
        let is_current = |generation: &u64| *generation == before.generation && !before.forced;
        let lives = |holder: &HolderId| living.contains(holder);
        match (self, &before.parked) {
            (KindChange::Pause, _) => after.paused = true,
            (KindChange::Resume, _) => after.paused = false,
            (KindChange::Park { generation, reason }, _) if is_current(generation) => {
                after.park(reason, now, None);
            }
            (KindChange::Probe { generation, holder }, Some(parked)) if is_current(generation) => {
                // The right to probe ends when its holder dies.
                if parked.prober.as_ref().is_some_and(lives) || !lives(holder) {
                    return None;
                }
                after.parked = Some(Parked { prober: Some(*holder), ..parked.clone() });
                after.generation += 1;
            }
            (KindChange::Unpark { generation }, Some(_)) if is_current(generation) => {
                after.unpark();
            }
            (KindChange::Suspect { holder, reason }, parked) => {
                if parked.is_some() || before.forced || !lives(holder) {
                    return None;
                }
                after.suspects.retain(|suspect| lives(suspect) && suspect != holder);
                after.suspects.push(*holder);
                if after.suspects.len() >= SUSPECTS_MIN.min(living.len()) {
                    after.park(reason, now, None);
                }
            }
            (KindChange::Hold { lasts, reason }, parked) => {
                let until = now.plus(*lasts);
                let known = parked.as_ref().and_then(|parked| parked.until);
                if before.forced || known.is_some_and(|known| known >= until) {
                    return None;
                }
                after.park(reason, now, Some(until));
            }
            (KindChange::Trust { holder }, _) => after.suspects.retain(|suspect| suspect != holder),
            (KindChange::Open { reason }, parked) if parked.is_none() || !before.forced => {
                after.park(reason, now, None);
                after.forced = true;
            }
            (KindChange::Close, parked) if parked.is_some() || !before.forced => {
                after.unpark();
                after.forced = true;
            }
            (KindChange::Reset, parked) if parked.is_some() || before.forced => {
                after.unpark();
                after.forced = false;
            }
            (KindChange::Reset, _) => {
                after.suspects.clear();
                // Ends what only the nodes know: they see that the generation is new.
                after.generation += 1;
            }
            // Already in the requested state.
            (KindChange::Open { .. } | KindChange::Close, _) => {}
            (
                KindChange::Park { .. } | KindChange::Probe { .. } | KindChange::Unpark { .. },
                Some(_) | None,
            ) => return None,
        }
        let is_visible = Kind { generation: before.generation, ..after.clone() } != *before;
        if self.is_of_person() && is_visible {
            after.version = before.version.next();
        }
        Some(after)
    }

    /// Returns whether an operator makes this change, not the engine.
    pub const fn is_of_person(&self) -> bool {
        match self {
            KindChange::Pause
            | KindChange::Resume
            | KindChange::Open { .. }
            | KindChange::Close
            | KindChange::Reset => true,
            KindChange::Park { .. }
            | KindChange::Hold { .. }
            | KindChange::Probe { .. }
            | KindChange::Unpark { .. }
            | KindChange::Suspect { .. }
            | KindChange::Trust { .. } => false,
        }
    }

    /// Returns the name used in the audit log.
    pub const fn as_str(&self) -> &'static str {
        match self {
            KindChange::Pause => "pause kind",
            KindChange::Resume => "resume kind",
            KindChange::Park { .. } => "park kind",
            KindChange::Hold { .. } => "hold kind",
            KindChange::Probe { .. } => "probe kind",
            KindChange::Unpark { .. } => "unpark kind",
            KindChange::Suspect { .. } => "suspect kind",
            KindChange::Trust { .. } => "trust kind",
            KindChange::Open { .. } => "open breaker",
            KindChange::Close => "close breaker",
            KindChange::Reset => "reset breaker",
        }
    }
}

/// Result of a [`KindChange`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KindChanged {
    /// The kind is in the requested state.
    Applied(Kind),
    /// Another change came first. Contains the current kind.
    Refused(Kind),
    /// The kind does not exist.
    NotFound,
}

/// A user's request to change or delete a kind, optionally only at a given version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindEdit {
    /// The kind.
    pub name: KindName,
    /// The change.
    pub what: KindEditVerb,
    /// Apply only if the kind exists and still has this version.
    pub if_version: Option<Version>,
}

/// A user's change of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KindEditVerb {
    /// Writes the settings; creates the kind if it is new.
    Put {
        /// See [`NewKind::settings`].
        settings: String,
        /// See [`NewKind::takeovers_max`].
        takeovers_max: u32,
        /// See [`NewKind::on_dead`].
        on_dead: OnDead,
    },
    /// Pauses or resumes the kind, or overrides its breaker.
    Change(KindChange),
    /// Deletes the kind. Refused while it has unfinished jobs.
    Delete,
}

/// Result of a [`KindEdit`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KindEdited {
    /// Done. Contains the current kind, or the last one before a deletion.
    Done(Kind),
    /// The kind has another version. Contains the current kind.
    VersionChanged(Kind),
    /// The kind still has unfinished jobs.
    HasJobs(Kind),
    /// The kind does not exist.
    NotFound,
}

impl KindEdit {
    /// Edits a kind at any version.
    pub const fn new(name: KindName, what: KindEditVerb) -> KindEdit {
        KindEdit { name, what, if_version: None }
    }

    /// Returns the refusal if the current kind does not allow the edit. A pure function, the same for every store.
    pub fn refusal(&self, before: Option<&Kind>) -> Option<KindEdited> {
        let is_put = matches!(self.what, KindEditVerb::Put { .. });
        match (before, self.if_version) {
            (None, None) if is_put => None,
            (None, _) => Some(KindEdited::NotFound),
            (Some(kind), Some(version)) if kind.version != version => {
                Some(KindEdited::VersionChanged(kind.clone()))
            }
            (Some(_), _) => None,
        }
    }
}
