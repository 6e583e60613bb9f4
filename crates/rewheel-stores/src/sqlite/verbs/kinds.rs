//! Stores kinds and their settings.

use super::super::error::{VerbError, unreadable};
use super::super::row::{instant, unsigned};
use super::super::transaction::Transaction;
use super::super::writer::count;
use super::audit::{Line, audit};
use crate::suspects;
use rewheel_core::store::{KindsSince, StoreError};
use rewheel_core::{
    Actor, AuditFields, HolderId, Kind, KindChange, KindChanged, KindEdit, KindEditVerb,
    KindEdited, KindName, Limits, NewKind, OnDead, Parked, Timestamp, Version,
};
use rusqlite::Row;

pub(in super::super) fn put_kinds(
    tx: &mut Transaction<'_, '_>,
    kinds: &[NewKind],
    by: &Actor,
) -> Result<(), VerbError> {
    for kind in kinds {
        if kind.settings.len() > Limits::SETTINGS_BYTES_MAX {
            let what = format!("the settings of kind {} are too long", kind.name);
            return Err(StoreError::Rejected(what.into()).into());
        }
        let before = get_kind(tx, &kind.name)?;
        let old = before.as_ref().map_or_else(AuditFields::default, Kind::facts);
        let new = kind.facts();
        if before.as_ref().is_some_and(|before| kind.is_stored_as(before)) {
            continue;
        }
        let (version, change) = (tx.now.as_millis(), next_change(tx, false)?);
        let (takeovers, blocks) = (kind.takeovers_max, kind.on_dead.blocks());
        let values = (kind.name.as_str(), &kind.settings, takeovers, version, change, blocks);
        tx.execute(include_str!("../sql/put_kind.sql"), values)?;
        let line =
            Line { what: "put kind", job: None, kind: Some(&kind.name), before: old, after: new };
        audit(tx, by, line)?;
        tx.report.get_or_insert_default();
    }
    Ok(())
}

pub(in super::super) fn kinds(tx: &Transaction<'_, '_>) -> Result<Vec<Kind>, VerbError> {
    let statement = tx.sql(include_str!("../sql/kinds.sql"))?;
    let mut statement = statement.get();
    let mut rows = statement.query([])?;
    let mut kinds = Vec::new();
    while let Some(row) = rows.next()? {
        kinds.push(read_kind(row)?);
    }
    Ok(kinds)
}

/// Returns the number of the change that this transaction makes.
fn next_change(tx: &Transaction<'_, '_>, deletes: bool) -> Result<i64, VerbError> {
    let number =
        tx.find(include_str!("../sql/next_kind_change.sql"), [deletes], |row| row.get(0))?;
    number.ok_or_else(|| unreadable("the change counter of the kinds"))
}

pub(in super::super) fn kinds_since(
    tx: &Transaction<'_, '_>,
    since: u64,
) -> Result<KindsSince, VerbError> {
    let found = tx.find(include_str!("../sql/kind_changes.sql"), [], |row| {
        Ok((unsigned(row.get(0)?), unsigned(row.get(1)?)))
    })?;
    let (at, deleted) = found.ok_or_else(|| unreadable("the change counter of the kinds"))?;
    if since == 0 || since > at || deleted > since {
        return Ok(KindsSince { at, all: true, kinds: kinds(tx)? });
    }
    let statement = tx.sql(include_str!("../sql/kinds_since.sql"))?;
    let mut statement = statement.get();
    let mut rows = statement.query([count(since)])?;
    let mut kinds = Vec::new();
    while let Some(row) = rows.next()? {
        kinds.push(read_kind(row)?);
    }
    kinds.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(KindsSince { at, all: false, kinds })
}

pub(super) fn get_kind(
    tx: &Transaction<'_, '_>,
    name: &KindName,
) -> Result<Option<Kind>, VerbError> {
    let statement = tx.sql(include_str!("../sql/get_kind.sql"))?;
    let mut statement = statement.get();
    let mut rows = statement.query([name.as_str()])?;
    rows.next()?.map(read_kind).transpose()
}

fn read_kind(row: &Row<'_>) -> Result<Kind, VerbError> {
    let name: String = row.get(0)?;
    let parked = match row.get::<_, Option<i64>>(4)? {
        None => None,
        Some(since) => Some(Parked {
            since: instant(since),
            until: row.get::<_, Option<i64>>(11)?.map(instant),
            reason: row.get::<_, Option<String>>(5)?.unwrap_or_default(),
            prober: row.get::<_, Option<[u8; 16]>>(6)?.map(HolderId::from_bytes),
        }),
    };
    Ok(Kind {
        name: KindName::parse(&name).map_err(|_| unreadable("a kind"))?,
        settings: row.get(1)?,
        takeovers_max: row.get(2)?,
        on_dead: OnDead::of(row.get(12)?),
        paused: row.get(3)?,
        parked,
        suspects: suspects::read(&row.get::<_, String>(8)?)
            .ok_or_else(|| unreadable("the id of a holder that reported a kind as down"))?,
        forced: row.get(9)?,
        generation: unsigned(row.get(7)?),
        version: Version::new(unsigned(row.get(10)?)),
    })
}

fn living(
    tx: &Transaction<'_, '_>,
    named: [Option<HolderId>; 2],
) -> Result<Vec<HolderId>, VerbError> {
    let statement = tx.sql(include_str!("../sql/living.sql"))?;
    let mut statement = statement.get();
    let mut rows = statement.query(named.map(|holder| holder.map(|holder| holder.to_bytes())))?;
    let mut living = Vec::new();
    while let Some(row) = rows.next()? {
        living.push(HolderId::from_bytes(row.get(0)?));
    }
    Ok(living)
}

pub(in super::super) fn change_kind(
    tx: &mut Transaction<'_, '_>,
    name: &KindName,
    change: &KindChange,
    by: &Actor,
) -> Result<KindChanged, VerbError> {
    let Some(before) = get_kind(tx, name)? else { return Ok(KindChanged::NotFound) };
    let prober = before.parked.as_ref().and_then(|parked| parked.prober);
    let living = living(tx, [prober, change.prober()])?;
    let Some(after) = change.apply(&before, tx.now, &living) else {
        return Ok(KindChanged::Refused(before));
    };
    if after == before {
        return Ok(KindChanged::Applied(before));
    }
    let parked = after.parked.as_ref();
    let values = (
        name.as_str(),
        after.paused,
        parked.map(|parked| parked.since.as_millis()),
        parked.map(|parked| parked.reason.as_str()),
        parked.and_then(|parked| parked.prober).map(HolderId::to_bytes),
        count(after.generation),
        suspects::text(&after.suspects),
        after.forced,
        count(after.version.get()),
        next_change(tx, false)?,
        parked.and_then(|parked| parked.until).map(Timestamp::as_millis),
    );
    tx.execute(include_str!("../sql/change_kind.sql"), values)?;
    let (old, new) = (before.doings(), after.doings());
    let line = Line { what: change.as_str(), job: None, kind: Some(name), before: old, after: new };
    audit(tx, by, line)?;
    tx.report.get_or_insert_default();
    Ok(KindChanged::Applied(after))
}

pub(in super::super) fn edit_kind(
    tx: &mut Transaction<'_, '_>,
    edit: &KindEdit,
    by: &Actor,
) -> Result<KindEdited, VerbError> {
    let before = get_kind(tx, &edit.name)?;
    if let Some(answer) = edit.refusal(before.as_ref()) {
        return Ok(answer);
    }
    match (&edit.what, before) {
        (KindEditVerb::Put { settings, takeovers_max, on_dead }, _) => {
            let (name, settings) = (edit.name.clone(), settings.clone());
            let (takeovers_max, on_dead) = (*takeovers_max, *on_dead);
            let new = NewKind { name, settings, takeovers_max, on_dead };
            put_kinds(tx, &[new], by)?;
            let kind = get_kind(tx, &edit.name)?;
            Ok(kind.map_or(KindEdited::NotFound, KindEdited::Done))
        }
        (KindEditVerb::Change(change), _) => Ok(match change_kind(tx, &edit.name, change, by)? {
            KindChanged::Applied(kind) | KindChanged::Refused(kind) => KindEdited::Done(kind),
            KindChanged::NotFound => KindEdited::NotFound,
        }),
        (KindEditVerb::Delete, Some(kind)) => delete_kind(tx, kind, by),
        (KindEditVerb::Delete, None) => Ok(KindEdited::NotFound),
    }
}

fn delete_kind(
    tx: &mut Transaction<'_, '_>,
    kind: Kind,
    by: &Actor,
) -> Result<KindEdited, VerbError> {
    let name = [kind.name.as_str()];
    let is_used: Option<bool> =
        tx.find(include_str!("../sql/kind_is_used.sql"), name, |row| row.get(0))?;
    if is_used.unwrap_or(true) {
        return Ok(KindEdited::HasJobs(kind));
    }
    next_change(tx, true)?;
    tx.execute(include_str!("../sql/delete_kind.sql"), name)?;
    tx.execute(include_str!("../sql/delete_budget.sql"), name)?;
    let (before, after) = (kind.facts(), AuditFields::default());
    let line = Line { what: "delete kind", job: None, kind: Some(&kind.name), before, after };
    audit(tx, by, line)?;
    tx.report.get_or_insert_default();
    Ok(KindEdited::Done(kind))
}
