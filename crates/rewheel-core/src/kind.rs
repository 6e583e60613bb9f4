//! A kind of job, with the settings and state that all nodes share.

use crate::audit::Facts;
use crate::id::{HolderId, Version};
use crate::name::KindName;
use crate::redact::without_proofs;
use crate::timestamp::Timestamp;

/// A kind as it is written by config, a person or an engine that has its handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewKind {
    /// What it is called.
    pub name: KindName,
    /// Its settings, in a form that only their readers understand.
    pub settings: String,
    /// How many processes a job of it may take with it. Stored apart, since the sweep obeys it for
    /// kinds that the sweeping node does not know.
    pub takeovers_max: u32,
}

/// A kind as the store knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// What it is called.
    pub name: KindName,
    /// Its settings, as they were written.
    pub settings: String,
    /// How many processes a job of it may take with it.
    pub takeovers_max: u32,
    /// Whether a person paused it: nobody claims it.
    pub paused: bool,
    /// Set while its dependency is taken to be down: nobody claims it but the prober.
    pub parked: Option<Parked>,
    /// Holders whose own attempts say that its dependency is down, while those are too few to park it.
    pub suspects: Vec<HolderId>,
    /// Whether a person decided that it is parked, or that it is not: evidence changes nothing then.
    pub forced: bool,
    /// Grows at every change of `parked`, so that two holders never act on the same one.
    pub generation: u64,
    /// Grows at every change that a person makes: of the settings, of `paused` and of `forced`. What the engine finds out by
    /// itself leaves it alone. Starts at the time of its creation in milliseconds, so that a kind that was deleted and
    /// created again has another one.
    pub version: Version,
}

impl NewKind {
    /// Returns whether a kind has these settings already. The audit log cannot tell: it does not know the secrets.
    pub fn is_stored_as(&self, kind: &Kind) -> bool {
        self.settings == kind.settings && self.takeovers_max == kind.takeovers_max
    }

    /// Returns what the audit log says of its settings.
    pub fn facts(&self) -> Facts {
        settings(&self.settings, self.takeovers_max)
    }
}

impl Kind {
    /// Returns what the audit log says of its settings.
    pub fn facts(&self) -> Facts {
        settings(&self.settings, self.takeovers_max)
    }

    fn park(&mut self, reason: &str, now: Timestamp) {
        let since = self.parked.as_ref().map_or(now, |parked| parked.since);
        self.parked = Some(Parked { since, reason: reason.to_owned(), prober: None });
        self.suspects.clear();
        self.generation += 1;
    }

    fn unpark(&mut self) {
        self.parked = None;
        self.suspects.clear();
        self.generation += 1;
    }

    /// Returns what the audit log says of what it is doing.
    pub fn doings(&self) -> Facts {
        let parked = self.parked.as_ref();
        Facts::default()
            .with("paused", Some(self.paused))
            .with("parked", parked.map(|parked| parked.since.as_millis()))
            .with("reason", parked.map(|parked| parked.reason.as_str()))
            .with("prober", parked.and_then(|parked| parked.prober))
            .with("suspects", Some(self.suspects.len()))
            .with("forced", Some(self.forced))
    }
}

fn settings(settings: &str, takeovers_max: u32) -> Facts {
    let settings = without_proofs(settings);
    Facts::default().with("settings", Some(settings)).with("takeovers_max", Some(takeovers_max))
}

/// Why nobody claims a kind, and who may try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parked {
    /// Since when. Time alone never unparks.
    pub since: Timestamp,
    /// What people are told.
    pub reason: String,
    /// Who may claim one job to see whether the dependency is back.
    pub prober: Option<HolderId>,
}

/// A change of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KindChange {
    /// A person pauses it.
    Pause,
    /// A person lets it go on.
    Resume,
    /// Its dependency is taken to be down. A prober that failed parks it again, which frees the
    /// right to probe.
    Park {
        /// What the caller saw.
        generation: u64,
        /// What people are told.
        reason: String,
    },
    /// A holder takes the right to probe.
    Probe {
        /// What the caller saw.
        generation: u64,
        /// Who.
        holder: HolderId,
    },
    /// Its dependency is back.
    Unpark {
        /// What the caller saw.
        generation: u64,
    },
    /// A holder's own attempts say that its dependency is down. It parks once two holders say so, or
    /// the only one that lives: one whose network is broken must not stop the others.
    Suspect {
        /// Who.
        holder: HolderId,
        /// What people are told if it parks.
        reason: String,
    },
    /// A holder that suspected it has seen it work.
    Trust {
        /// Who.
        holder: HolderId,
    },
    /// A person parks it: nobody probes, whatever anybody sees, until a person says otherwise.
    Open {
        /// What people are told.
        reason: String,
    },
    /// A person unparks it: whatever anybody sees, it is not parked again, until a person says otherwise.
    Close,
    /// A person leaves it to the evidence again.
    Reset,
}

/// So many holders must suspect a kind to park it, where more than one lives.
const SUSPECTS_MIN: usize = 2;

impl KindChange {
    /// Returns the holder that wants to probe, which may be a worker.
    pub fn prober(&self) -> Option<HolderId> {
        match self {
            KindChange::Probe { holder, .. } => Some(*holder),
            KindChange::Suspect { .. }
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

    /// Returns the kind as it is after the change; `None` where another was first, or has the last word. Pure, the same for
    /// every store; `living` are all engines that are alive, and of the workers at least those that may probe or want to.
    pub fn apply(&self, before: &Kind, now: Timestamp, living: &[HolderId]) -> Option<Kind> {
        let mut after = before.clone();
        let is_current = |generation: &u64| *generation == before.generation && !before.forced;
        let lives = |holder: &HolderId| living.contains(holder);
        match (self, &before.parked) {
            (KindChange::Pause, _) => after.paused = true,
            (KindChange::Resume, _) => after.paused = false,
            (KindChange::Park { generation, reason }, _) if is_current(generation) => {
                after.park(reason, now);
            }
            (KindChange::Probe { generation, holder }, Some(parked)) if is_current(generation) => {
                // The right lapses with the life of who has it.
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
                    after.park(reason, now);
                }
            }
            (KindChange::Trust { holder }, _) => after.suspects.retain(|suspect| suspect != holder),
            (KindChange::Open { reason }, parked) if parked.is_none() || !before.forced => {
                after.park(reason, now);
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
            (KindChange::Reset, _) => after.suspects.clear(),
            // As wanted already.
            (KindChange::Open { .. } | KindChange::Close, _) => {}
            (
                KindChange::Park { .. } | KindChange::Probe { .. } | KindChange::Unpark { .. },
                Some(_) | None,
            ) => return None,
        }
        if self.is_of_person() && after != *before {
            after.version = before.version.next();
        }
        Some(after)
    }

    /// Returns whether a person orders it, and not the engine.
    pub const fn is_of_person(&self) -> bool {
        match self {
            KindChange::Pause
            | KindChange::Resume
            | KindChange::Open { .. }
            | KindChange::Close
            | KindChange::Reset => true,
            KindChange::Park { .. }
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

/// What became of a [`KindChange`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KindChanged {
    /// It is as wanted.
    Applied(Kind),
    /// Another was first: here is what they left.
    Refused(Kind),
    /// There is no such kind.
    NotFound,
}

/// An order of a person to change or delete a kind, perhaps only as they saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindEdit {
    /// Which kind.
    pub name: KindName,
    /// What to do.
    pub what: KindEditWhat,
    /// Only if the kind exists and this is still its version.
    pub if_version: Option<Version>,
}

/// What a person does to a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KindEditWhat {
    /// Writes its settings; a kind that is new begins to exist.
    Put {
        /// See [`NewKind::settings`].
        settings: String,
        /// See [`NewKind::takeovers_max`].
        takeovers_max: u32,
    },
    /// Pauses it, resumes it, or has the last word on its breaker.
    Change(KindChange),
    /// Deletes it. Refused while it has jobs that are not finished.
    Delete,
}

/// What became of a [`KindEdit`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KindEdited {
    /// It is done. This is the kind as it is now, or as it was before it was deleted.
    Done(Kind),
    /// It has another version: here it is.
    VersionChanged(Kind),
    /// It still has jobs that are not finished.
    HasJobs(Kind),
    /// There is no such kind.
    NotFound,
}

impl KindEdit {
    /// Edits a kind whatever its version.
    pub const fn new(name: KindName, what: KindEditWhat) -> KindEdit {
        KindEdit { name, what, if_version: None }
    }

    /// Returns the answer where the kind, as it is, does not allow it. Pure, the same for every store.
    pub fn refusal(&self, before: Option<&Kind>) -> Option<KindEdited> {
        let is_put = matches!(self.what, KindEditWhat::Put { .. });
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
