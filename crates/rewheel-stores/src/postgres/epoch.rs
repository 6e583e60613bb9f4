//! Notices that the store was promoted or restored, and begins a new epoch then.
//!
//! An epoch is a time in which the store forgets nothing that it acknowledged. It ends when the tables are found on another server, when
//! the server was promoted, or when a renewal is missing that this process knows to be stored. After an asynchronous failover, the new
//! primary may not have the latest transactions; a restored backup has none since it was made. Then values that this process
//! has cached may belong to transactions that are forgotten, and a fence that was given to a holder may be given again.
//!
//! - Every new connection is checked before its first use, and every lease is given by a statement that checks the server itself, see
//!   `rewheel.fence_floor()`. So no lease is given in a new epoch before the epoch has begun.
//! - All fences of an epoch are greater than those of the epochs before. So a settle under a fence of a forgotten lease matches no lease
//!   that was given since.
//! - A server whose timeline is older than one that this process has seen is an old primary: it is not used.

use super::error::{DriverError, VerbError};
use super::for_schema;
use super::hosts::Primary;
use super::row::{holder_uuid, unsigned};
use super::statements::{BEGIN_EPOCH, EPOCH};
use rewheel_core::HolderId;
use rewheel_core::store::StoreError;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};

/// Maximum number of holders whose renewals are remembered: the node itself and its workers.
const HOLDERS_MAX: usize = 10_000;

/// How often a node tries to begin an epoch while others do the same.
const TRIES_MAX: usize = 8;

/// The SQLSTATE of `rewheel.fence_floor()` on a server that was promoted or restored.
const NEW_EPOCH: &str = "RW001";

/// The epoch of the store, as this process knows it.
pub(super) struct Epochs {
    read: String,
    begin: String,
    primary: Primary,
    known: Mutex<Known>,
    /// Whether a statement found that the server is not the one of the epoch.
    is_doubtful: AtomicBool,
}

#[derive(Debug, Default)]
struct Known {
    seen: Option<Seen>,
    /// The renewals that the store acknowledged to this process in this epoch, by holder.
    renewals: HashMap<HolderId, u64>,
    /// The holder that was renewed last.
    latest: Option<HolderId>,
    /// Whether a renewal had a number that an earlier one had.
    went_back: bool,
}

impl Known {
    /// Returns the holder that was renewed last, and the number of its renewals.
    fn witness(&self) -> Option<(HolderId, u64)> {
        let holder = self.latest?;
        Some((holder, *self.renewals.get(&holder)?))
    }
}

/// The latest epoch that this process has seen, and its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    epoch: i64,
    server: Server,
}

/// What a server tells about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Server {
    system: Option<i64>,
    timeline: Option<i64>,
}

/// What a server and its tables tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Observed {
    is_standby: bool,
    /// The latest epoch in the tables.
    epoch: Option<i64>,
    /// Whether that epoch began on this server since its promotion.
    is_of_epoch: bool,
    /// Whether that epoch began on this server, maybe before its promotion.
    is_of_server: bool,
    server: Server,
    /// The number of renewals of the witness.
    renewals: Option<u64>,
}

/// What follows from an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// A standby: it gives no leases.
    Standby,
    /// Nothing has changed, or another process has begun this epoch.
    In(i64),
    /// An epoch must begin.
    Begin(Reason),
    /// An old primary.
    Past,
}

/// Why an epoch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// The server has a new timeline.
    Promoted,
    /// The tables are on another server, or are other tables.
    Restored,
    /// The store forgot what it had acknowledged.
    WentBack,
}

impl Reason {
    const fn as_str(self) -> &'static str {
        match self {
            Reason::Promoted => "promoted",
            Reason::Restored => "restored",
            Reason::WentBack => "went_back",
        }
    }
}

/// Why a connection is not used.
#[derive(Debug)]
pub(super) enum Unusable {
    Failed(tokio_postgres::Error),
    /// The text says why.
    Refused(String),
}

impl From<tokio_postgres::Error> for Unusable {
    fn from(error: tokio_postgres::Error) -> Unusable {
        Unusable::Failed(error)
    }
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unusable::Failed(error) => f.write_str(&DriverError::text(error)),
            Unusable::Refused(why) => f.write_str(why),
        }
    }
}

impl From<Unusable> for VerbError {
    fn from(unusable: Unusable) -> VerbError {
        match unusable {
            Unusable::Failed(error) => VerbError::Sql(error),
            Unusable::Refused(why) => VerbError::Said(StoreError::Unavailable(why.into())),
        }
    }
}

impl Epochs {
    pub(super) fn new(schema: &str, primary: Primary) -> Epochs {
        Epochs {
            read: for_schema(&EPOCH.text, schema),
            begin: for_schema(&BEGIN_EPOCH.text, schema),
            primary,
            known: Mutex::default(),
            is_doubtful: AtomicBool::new(false),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Nothing that can panic runs under this lock.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the latest epoch that this process has seen; -1 before the first.
    pub(super) fn current(&self) -> i64 {
        self.known().seen.map_or(-1, |seen| seen.epoch)
    }

    /// Returns the same as a number that is never negative.
    pub(super) fn number(&self) -> u64 {
        u64::try_from(self.current()).unwrap_or(0)
    }

    /// Takes note of an error that means that the epoch is over.
    pub(super) fn hear(&self, trouble: &VerbError) {
        if let VerbError::Sql(error) = trouble
            && error.code().is_some_and(|state| state.code() == NEW_EPOCH)
        {
            self.is_doubtful.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the number of renewals of a holder that were acknowledged so far.
    pub(super) fn renewals_of(&self, holder: HolderId) -> Option<u64> {
        self.known().renewals.get(&holder).copied()
    }

    /// Takes note of a renewal that was acknowledged. Its number is greater than the one before it was sent, unless the store forgot some.
    pub(super) fn renewed(&self, holder: HolderId, before: Option<u64>, renewals: u64) {
        let mut known = self.known();
        // If an epoch began meanwhile, the number from before says nothing.
        if known.renewals.contains_key(&holder) && before.is_some_and(|before| renewals <= before) {
            known.went_back = true;
            self.is_doubtful.store(true, Ordering::Relaxed);
            return;
        }
        if known.renewals.len() >= HOLDERS_MAX {
            known.renewals.clear();
        }
        // Two renewals of a worker may be answered in any order.
        let latest = known.renewals.entry(holder).or_default();
        *latest = renewals.max(*latest);
        known.latest = Some(holder);
    }

    /// Returns whether the server must be checked before a connection is used.
    pub(super) fn is_doubtful(&self) -> bool {
        self.is_doubtful.load(Ordering::Relaxed)
    }

    /// Checks the server at the other end of a connection, and begins an epoch if it must. Tables that do not exist yet are fine.
    ///
    /// Cancel safe.
    pub(super) async fn check(&self, client: &Client) -> Result<(), Unusable> {
        for _ in 0..TRIES_MAX {
            // From before the observation: a renewal that is answered meanwhile may be missing in it.
            let (before, witness) = {
                let known = self.known();
                (known.seen, known.witness())
            };
            let observed = self.observe(client, witness.map(|(holder, _)| holder)).await?;
            let Some(observed) = observed else { return Ok(()) };
            let verdict = {
                let known = self.known();
                if known.seen != before {
                    // Another connection has seen an epoch that may have begun after this observation.
                    continue;
                }
                judge(&known, witness.map(|(_, renewals)| renewals), &observed)
            };
            match verdict {
                Verdict::Standby => return Ok(()),
                Verdict::In(epoch) => {
                    self.adopt(epoch, observed.server);
                    return Ok(());
                }
                Verdict::Begin(reason) => self.begin(client, reason).await?,
                Verdict::Past => return Err(Unusable::Refused(self.past(&observed))),
            }
        }
        Err(Unusable::Refused(
            "other nodes are beginning a new epoch of the store: retry".to_owned(),
        ))
    }

    async fn observe(
        &self,
        client: &Client,
        witness: Option<HolderId>,
    ) -> Result<Option<Observed>, Unusable> {
        let witness = witness.map(holder_uuid);
        let rows = client.query_typed(&self.read, &[(&witness, Type::UUID)]).await;
        let rows = match rows {
            Err(error) if error.code().is_some_and(is_missing) => return Ok(None),
            rows => rows?,
        };
        rows.first().map(Observed::read).transpose().map_err(Unusable::from)
    }

    async fn begin(&self, client: &Client, reason: Reason) -> Result<(), Unusable> {
        let (seen, text) = (self.current(), reason.as_str());
        let params: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
            [(&seen, Type::INT8), (&text, Type::TEXT)];
        let rows = client.query_typed(&self.begin, &params).await?;
        let begun = rows.first().map(|row| row.try_get(0)).transpose()?.unwrap_or(false);
        if begun {
            tracing::warn!(
                reason = text,
                "a new epoch of the store begins: the database was promoted or restored"
            );
        }
        Ok(())
    }

    fn adopt(&self, epoch: i64, server: Server) {
        let mut known = self.known();
        if known.seen.is_some_and(|seen| seen.epoch > epoch) {
            // Another connection was faster.
            return;
        }
        let before = known.seen.replace(Seen { epoch, server });
        if before.is_none_or(|before| before.epoch != epoch) {
            // What was acknowledged before may be forgotten.
            known.renewals.clear();
            (known.latest, known.went_back) = (None, false);
        }
        drop(known);
        self.is_doubtful.store(false, Ordering::Relaxed);
        if before.is_some_and(|before| before.epoch != epoch) {
            tracing::info!(epoch, "the store is in a new epoch: dropping what was read before");
        }
        if before.is_some_and(|before| before.server != server) {
            // They lead to the server from before, which may not have noticed.
            self.primary.end_connections();
        }
    }

    fn past(&self, observed: &Observed) -> String {
        let seen = self.known().seen.and_then(|seen| seen.server.timeline);
        format!(
            "this server is an old primary (timeline {}; this node has seen timeline {}): stop it, or let it follow the new primary; if \
             it is meant to be the primary, restart the nodes",
            observed.server.timeline.unwrap_or_default(),
            seen.unwrap_or_default()
        )
    }
}

/// Returns whether an error means that the tables do not exist yet.
fn is_missing(state: &SqlState) -> bool {
    [&SqlState::UNDEFINED_TABLE, &SqlState::UNDEFINED_FUNCTION, &SqlState::INVALID_SCHEMA_NAME]
        .contains(&state)
}

impl Observed {
    fn read(row: &Row) -> Result<Observed, tokio_postgres::Error> {
        Ok(Observed {
            is_standby: row.try_get(0)?,
            epoch: row.try_get(1)?,
            is_of_epoch: row.try_get(2)?,
            is_of_server: row.try_get(6)?,
            server: Server { system: row.try_get(3)?, timeline: row.try_get(4)? },
            renewals: row.try_get::<_, Option<i64>>(5)?.map(unsigned),
        })
    }
}

/// `renewals` are those of the witness that were acknowledged before the observation.
fn judge(known: &Known, renewals: Option<u64>, observed: &Observed) -> Verdict {
    if observed.is_standby {
        return Verdict::Standby;
    }
    let seen = known.seen.filter(|seen| seen.server.system == observed.server.system);
    let is_past = |seen: Seen| observed.server.timeline < seen.server.timeline;
    if observed.server.timeline.is_some() && seen.is_some_and(is_past) {
        return Verdict::Past;
    }
    match observed.epoch {
        Some(epoch) if observed.is_of_epoch => {
            let is_older = known.seen.is_some_and(|seen| epoch < seen.epoch);
            let is_same = known.seen.is_some_and(|seen| epoch == seen.epoch);
            // A missing holder is no proof: it may have left long ago.
            let is_lost = renewals.zip(observed.renewals).is_some_and(|(before, now)| now < before);
            match is_older || (is_same && (known.went_back || is_lost)) {
                true => Verdict::Begin(Reason::WentBack),
                false => Verdict::In(epoch),
            }
        }
        Some(_) if observed.is_of_server => Verdict::Begin(Reason::Promoted),
        Some(_) | None => Verdict::Begin(Reason::Restored),
    }
}

#[cfg(test)]
mod tests {
    use super::{Known, Observed, Reason, Seen, Server, Verdict, judge};
    use rewheel_core::HolderId;

    const SERVER: Server = Server { system: Some(7), timeline: Some(3) };

    const OBSERVED: Observed = Observed {
        is_standby: false,
        epoch: Some(5),
        is_of_epoch: true,
        is_of_server: true,
        server: SERVER,
        renewals: None,
    };

    fn known(epoch: i64, server: Server) -> Known {
        Known { seen: Some(Seen { epoch, server }), ..Known::default() }
    }

    #[track_caller]
    fn check(known: &Known, observed: Observed, expected: Verdict) {
        let renewals = known.witness().map(|(_, renewals)| renewals);
        assert_eq!(judge(known, renewals, &observed), expected);
    }

    #[test]
    fn an_epoch_of_this_server_is_taken_over() {
        check(&Known::default(), OBSERVED, Verdict::In(5));
        check(&known(5, SERVER), OBSERVED, Verdict::In(5));
        // Another process has begun it.
        check(&known(4, Server { timeline: Some(2), ..SERVER }), OBSERVED, Verdict::In(5));
        let untold = Server { system: None, timeline: None };
        check(&known(5, untold), Observed { server: untold, ..OBSERVED }, Verdict::In(5));
    }

    #[test]
    fn a_server_that_was_promoted_or_restored_begins_one() {
        let before = Server { timeline: Some(2), ..SERVER };
        for known in [Known::default(), known(5, before)] {
            let promoted = Observed { is_of_epoch: false, ..OBSERVED };
            check(&known, promoted, Verdict::Begin(Reason::Promoted));
            let restored = Observed { is_of_server: false, ..promoted };
            check(&known, restored, Verdict::Begin(Reason::Restored));
            check(&known, Observed { epoch: None, ..restored }, Verdict::Begin(Reason::Restored));
        }
    }

    #[test]
    fn a_store_that_forgot_an_epoch_begins_another() {
        // Two standbys were promoted one after the other, and the second did not have the first one's epoch.
        check(&known(6, SERVER), OBSERVED, Verdict::Begin(Reason::WentBack));
    }

    #[test]
    fn a_store_that_forgot_a_renewal_begins_an_epoch() {
        let holder = HolderId::from_bytes([1; 16]);
        let mut known = known(5, SERVER);
        (known.renewals, known.latest) = ([(holder, 9)].into(), Some(holder));
        for (renewals, expected) in [
            (Some(8), Verdict::Begin(Reason::WentBack)),
            (Some(9), Verdict::In(5)),
            (Some(10), Verdict::In(5)),
            (None, Verdict::In(5)),
        ] {
            check(&known, Observed { renewals, ..OBSERVED }, expected);
        }
        // Another process has noticed it, and has begun an epoch.
        let noticed = Observed { epoch: Some(6), renewals: Some(8), ..OBSERVED };
        check(&known, noticed, Verdict::In(6));
        known.went_back = true;
        check(&known, OBSERVED, Verdict::Begin(Reason::WentBack));
        check(&known, noticed, Verdict::In(6));
    }

    #[test]
    fn a_renewal_that_is_answered_during_an_observation_is_not_lost() {
        let holder = HolderId::from_bytes([1; 16]);
        let mut known = known(5, SERVER);
        (known.renewals, known.latest) = ([(holder, 9)].into(), Some(holder));
        let before = known.witness();
        let observed = Observed { renewals: Some(9), ..OBSERVED };
        known.renewals.insert(holder, 10);
        let renewals = before.map(|(_, renewals)| renewals);
        assert_eq!(judge(&known, renewals, &observed), Verdict::In(5));
    }

    #[test]
    fn an_old_primary_is_not_used() {
        let newer = Server { timeline: Some(4), ..SERVER };
        check(&known(6, newer), OBSERVED, Verdict::Past);
        check(&known(6, newer), Observed { is_of_epoch: false, ..OBSERVED }, Verdict::Past);
        // A restored copy has timelines of its own.
        let other = Server { system: Some(8), timeline: Some(4) };
        check(&known(5, other), OBSERVED, Verdict::In(5));
        check(&known(6, newer), Observed { is_standby: true, ..OBSERVED }, Verdict::Standby);
    }
}
