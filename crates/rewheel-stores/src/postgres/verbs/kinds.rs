//! Stores kinds and their settings.

use super::super::PostgresStore;
use super::super::error::{VerbError, unreadable};
use super::super::row::{count, holder_id, holder_uuid, instant, number, unsigned, version};
use super::super::session::{Param, Session};
use super::super::statements::{
    CHANGE_KIND, DELETE_KIND, FIND_KIND_ROWS, KIND_IS_USED, KINDS, KINDS_SINCE, LOCK_JOBS,
    LOCK_KIND, LOCK_KINDS, LOCK_TIMEOUT, PUT_KINDS, Sql,
};
use super::audit::{Line, audit};
use crate::suspects;
use rewheel_core::store::{KindsSince, StoreChange, StoreError, StoreResult};
use rewheel_core::{
    Actor, AuditFields, HolderId, Kind, KindChange, KindChanged, KindEdit, KindEditVerb,
    KindEdited, KindName, Limits, NewKind, OnDead, Parked, Timestamp,
};
use std::collections::BTreeMap;
use tokio_postgres::Row;
use uuid::Uuid;

impl PostgresStore {
    pub(in super::super) async fn write_kinds(
        &self,
        kinds: &[NewKind],
        by: &Actor,
    ) -> StoreResult<()> {
        let session = self.transaction().await?;
        let changed = put_kinds(&session, kinds, by).await;
        if session.end(changed).await? {
            self.wake(StoreChange::default());
        }
        Ok(())
    }

    pub(in super::super) async fn write_kind(
        &self,
        kind: &KindName,
        change: &KindChange,
        by: &Actor,
    ) -> StoreResult<KindChanged> {
        let session = self.transaction().await?;
        let changed = change_kind(&session, kind, change, by).await;
        let (answer, wrote) = session.end(changed).await?;
        if wrote {
            self.wake(StoreChange::default());
        }
        Ok(answer)
    }
}

impl PostgresStore {
    pub(in super::super) async fn write_edit(
        &self,
        edit: &KindEdit,
        by: &Actor,
    ) -> StoreResult<KindEdited> {
        let session = self.transaction().await?;
        let edited = edit_kind(&session, edit, by).await;
        let (answer, wrote) = session.end(edited).await?;
        if let (KindEdited::Done(_), KindEditVerb::Delete) = (&answer, &edit.what) {
            self.shared.lanes.forget();
        }
        if wrote {
            self.wake(StoreChange::default());
        }
        Ok(answer)
    }
}

async fn edit_kind(
    session: &Session<'_>,
    edit: &KindEdit,
    by: &Actor,
) -> Result<(KindEdited, bool), VerbError> {
    let before = lock(session, &edit.name, None).await?;
    if let Some(answer) = edit.refusal(before.as_ref().map(|locked| &locked.kind)) {
        return Ok((answer, false));
    }
    match (&edit.what, before) {
        (KindEditVerb::Put { settings, takeovers_max, on_dead }, _) => {
            let (name, settings) = (edit.name.clone(), settings.clone());
            let (takeovers_max, on_dead) = (*takeovers_max, *on_dead);
            let new = NewKind { name, settings, takeovers_max, on_dead };
            let wrote = put_kinds(session, &[new], by).await?;
            let kind = lock(session, &edit.name, None).await?.map(|locked| locked.kind);
            Ok((kind.map_or(KindEdited::NotFound, KindEdited::Done), wrote))
        }
        (KindEditVerb::Change(change), _) => {
            Ok(match change_kind(session, &edit.name, change, by).await? {
                (KindChanged::Applied(kind) | KindChanged::Refused(kind), wrote) => {
                    (KindEdited::Done(kind), wrote)
                }
                (KindChanged::NotFound, wrote) => (KindEdited::NotFound, wrote),
            })
        }
        (KindEditVerb::Delete, Some(locked)) => delete_kind(session, locked, by).await,
        (KindEditVerb::Delete, None) => Ok((KindEdited::NotFound, false)),
    }
}

async fn delete_kind(
    session: &Session<'_>,
    locked: Locked,
    by: &Actor,
) -> Result<(KindEdited, bool), VerbError> {
    let kind = locked.kind;
    let params: [Param<'_>; 1] = [&kind.name.as_str()];
    // No insert of this kind may be in progress; a later one finds that the kind is gone.
    session.one(&LOCK_TIMEOUT, &[]).await?;
    session.execute(&LOCK_JOBS, &[]).await?;
    if session.one(&KIND_IS_USED, &params).await?.try_get(0)? {
        return Ok((KindEdited::HasJobs(kind), false));
    }
    session.execute(&DELETE_KIND, &params).await?;
    let (before, after) = (kind.facts(), AuditFields::default());
    let (what, name) = ("delete kind", Some(&kind.name));
    let line = Line { who: by, what, job: None, kind: name, before: &before, after: &after };
    audit(session, locked.now, &[line]).await?;
    Ok((KindEdited::Done(kind), true))
}

/// A locked kind.
struct Locked {
    now: Timestamp,
    kind: Kind,
    living: Vec<HolderId>,
}

/// Locks a kind for a change that may name a holder.
async fn lock(
    session: &Session<'_>,
    name: &KindName,
    holder: Option<HolderId>,
) -> Result<Option<Locked>, VerbError> {
    let holder = holder.map(|holder| Uuid::from_bytes(holder.to_bytes()));
    let params: [Param<'_>; 3] = [&name.as_str(), &session.offset(), &holder];
    let Some(row) = session.find(&LOCK_KIND, &params).await? else { return Ok(None) };
    Ok(Some(Locked {
        now: instant(row.try_get(0)?),
        kind: read_kind(&row, 1)?,
        living: row.try_get::<_, Vec<Uuid>>(14)?.into_iter().map(holder_id).collect(),
    }))
}

pub(super) async fn put_kinds(
    session: &Session<'_>,
    kinds: &[NewKind],
    by: &Actor,
) -> Result<bool, VerbError> {
    if let Some(long) = kinds.iter().find(|kind| kind.settings.len() > Limits::SETTINGS_BYTES_MAX) {
        let what = format!("the settings of kind {} are too long", long.name);
        return Err(StoreError::Rejected(what.into()).into());
    }
    // Sorted by name, so that two writers of the same kinds cannot deadlock. Of several with one name the last wins.
    let named: BTreeMap<&KindName, &NewKind> =
        kinds.iter().map(|kind| (&kind.name, kind)).collect();
    let names: Vec<&str> = named.keys().map(|name| name.as_str()).collect();
    // Most nodes start with kinds that are already stored: those need no lock.
    let known = read_kinds(session, &FIND_KIND_ROWS, &names).await?;
    let is_new = |kind: &&NewKind| !known.get(&kind.name).is_some_and(|old| kind.is_stored_as(old));
    let new: Vec<&NewKind> = named.into_values().filter(is_new).collect();
    let names: Vec<&str> = new.iter().map(|kind| kind.name.as_str()).collect();
    if names.is_empty() {
        return Ok(false);
    }
    let known = read_kinds(session, &LOCK_KINDS, &names).await?;
    let is_new = |kind: &&NewKind| !known.get(&kind.name).is_some_and(|old| kind.is_stored_as(old));
    let new: Vec<&NewKind> = new.into_iter().filter(is_new).collect();
    let now = session.now().await?;
    let params: [Param<'_>; 5] = [
        &new.iter().map(|kind| kind.name.as_str()).collect::<Vec<_>>(),
        &new.iter().map(|kind| kind.settings.as_str()).collect::<Vec<_>>(),
        &new.iter().map(|kind| i64::from(kind.takeovers_max)).collect::<Vec<_>>(),
        &now.as_millis(),
        &new.iter().map(|kind| kind.on_dead.blocks()).collect::<Vec<_>>(),
    ];
    session.execute(&PUT_KINDS, &params).await?;
    let facts = |kind: &NewKind| {
        (known.get(&kind.name).map_or_else(AuditFields::default, Kind::facts), kind.facts())
    };
    let facts: Vec<(AuditFields, AuditFields)> = new.iter().map(|kind| facts(kind)).collect();
    let line = |(kind, (before, after))| {
        let kind: &NewKind = kind;
        Line { who: by, what: "put kind", job: None, kind: Some(&kind.name), before, after }
    };
    let lines: Vec<Line<'_>> =
        new.iter().copied().zip(facts.iter().map(|(b, a)| (b, a))).map(line).collect();
    audit(session, now, &lines).await?;
    Ok(!new.is_empty())
}

async fn read_kinds(
    session: &Session<'_>,
    sql: &'static Sql,
    names: &[&str],
) -> Result<BTreeMap<KindName, Kind>, VerbError> {
    let rows = session.query(sql, &[&names]).await?;
    let read = |row: &Row| read_kind(row, 0).map(|kind| (kind.name.clone(), kind));
    rows.iter().map(read).collect()
}

/// Returns the kinds that changed, or all kinds if that is not possible.
/// A position in the changes of kinds is a transaction number, and above these bits the epoch. No server gets beyond 2^47 transactions.
const EPOCH_SHIFT: u32 = 48;

pub(in super::super) async fn kinds_since(
    session: &Session<'_>,
    since: u64,
) -> Result<KindsSince, VerbError> {
    // A position of an earlier epoch says nothing: the kinds that changed since may be forgotten, and others may have changed.
    let epoch = session.shared.epochs.number() << EPOCH_SHIFT;
    let since = if since >> EPOCH_SHIFT << EPOCH_SHIFT == epoch { since - epoch } else { 0 };
    let rows = session.query(&KINDS_SINCE, &[&count(since)]).await?;
    let first = rows.first().ok_or_else(|| unreadable("the change counter of the kinds"))?;
    let (at, all) = (unsigned(first.try_get(0)?) + epoch, first.try_get(1)?);
    if all {
        // Read after `at`: a change in between is read again next time.
        return Ok(KindsSince { at, all, kinds: kinds(session).await? });
    }
    let mut kinds = Vec::new();
    for row in &rows {
        if row.try_get::<_, Option<&str>>(2)?.is_some() {
            kinds.push(read_kind(row, 2)?);
        }
    }
    kinds.sort_by(|one: &Kind, other| one.name.cmp(&other.name));
    Ok(KindsSince { at, all, kinds })
}

pub(in super::super) async fn kinds(session: &Session<'_>) -> Result<Vec<Kind>, VerbError> {
    session.query(&KINDS, &[]).await?.iter().map(|row| read_kind(row, 0)).collect()
}

fn read_kind(row: &Row, at: usize) -> Result<Kind, VerbError> {
    let parked = match row.try_get::<_, Option<i64>>(at + 4)? {
        None => None,
        Some(since) => Some(Parked {
            since: instant(since),
            until: row.try_get::<_, Option<i64>>(at + 11)?.map(instant),
            reason: row.try_get::<_, Option<String>>(at + 5)?.unwrap_or_default(),
            prober: row.try_get::<_, Option<Uuid>>(at + 6)?.map(holder_id),
        }),
    };
    Ok(Kind {
        name: KindName::parse(row.try_get(at)?).map_err(|_| unreadable("a kind"))?,
        settings: row.try_get(at + 1)?,
        takeovers_max: number(row.try_get(at + 2)?),
        on_dead: OnDead::of(row.try_get(at + 12)?),
        paused: row.try_get(at + 3)?,
        parked,
        generation: unsigned(row.try_get(at + 7)?),
        suspects: suspects::read(row.try_get(at + 8)?)
            .ok_or_else(|| unreadable("the id of a holder that reported a kind as down"))?,
        forced: row.try_get(at + 9)?,
        version: version(row.try_get(at + 10)?),
    })
}

async fn change_kind(
    session: &Session<'_>,
    name: &KindName,
    change: &KindChange,
    by: &Actor,
) -> Result<(KindChanged, bool), VerbError> {
    let Some(locked) = lock(session, name, change.prober()).await? else {
        return Ok((KindChanged::NotFound, false));
    };
    let before = locked.kind;
    let Some(after) = change.apply(&before, locked.now, &locked.living) else {
        return Ok((KindChanged::Refused(before), false));
    };
    if after == before {
        return Ok((KindChanged::Applied(before), false));
    }
    let parked = after.parked.as_ref();
    // The reason may be any text; PostgreSQL cannot store NUL characters.
    let reason = parked.map(|parked| parked.reason.replace('\0', ""));
    let suspects = suspects::text(&after.suspects);
    let params: [Param<'_>; 10] = [
        &name.as_str(),
        &after.paused,
        &parked.map(|parked| parked.since.as_millis()),
        &reason,
        &parked.and_then(|parked| parked.prober).map(holder_uuid),
        &count(after.generation),
        &suspects,
        &after.forced,
        &count(after.version.get()),
        &parked.and_then(|parked| parked.until).map(Timestamp::as_millis),
    ];
    session.execute(&CHANGE_KIND, &params).await?;
    let (old, new) = (before.doings(), after.doings());
    let (what, kind) = (change.as_str(), Some(name));
    let line = Line { who: by, what, job: None, kind, before: &old, after: &new };
    audit(session, locked.now, &[line]).await?;
    Ok((KindChanged::Applied(after), true))
}
