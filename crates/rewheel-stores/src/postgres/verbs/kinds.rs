//! Knows the kinds.

use super::super::PostgresStore;
use super::super::error::{Trouble, unreadable};
use super::super::row::{count, holder_id, holder_uuid, instant, number, unsigned};
use super::super::session::{Param, Session};
use super::super::statements::{CHANGE_KIND, KINDS, LOCK_KIND, PUT_KIND};
use super::audit::{Line, audit};
use crate::suspects;
use rewheel_core::store::{Answer, StoreError};
use rewheel_core::{
    Actor, Facts, HolderId, Kind, KindChange, KindChanged, KindName, Limits, NewKind, Parked,
    Timestamp,
};
use tokio_postgres::Row;
use uuid::Uuid;

impl PostgresStore {
    pub(in super::super) async fn write_kinds(&self, kinds: &[NewKind], by: &Actor) -> Answer<()> {
        let session = self.transaction().await?;
        let changed = put_kinds(&session, kinds, by).await;
        if session.end(changed).await? {
            self.wake();
        }
        Ok(())
    }

    pub(in super::super) async fn write_kind(
        &self,
        kind: &KindName,
        change: &KindChange,
        by: &Actor,
    ) -> Answer<KindChanged> {
        let session = self.transaction().await?;
        let changed = change_kind(&session, kind, change, by).await;
        let (answer, wrote) = session.end(changed).await?;
        if wrote {
            self.wake();
        }
        Ok(answer)
    }
}

/// A kind that is about to be changed.
struct Locked {
    now: Timestamp,
    kind: Kind,
    living: Vec<HolderId>,
}

async fn lock(session: &Session<'_>, name: &KindName) -> Result<Option<Locked>, Trouble> {
    let params: [Param<'_>; 2] = [&name.as_str(), &session.offset()];
    let Some(row) = session.find(&LOCK_KIND, &params).await? else { return Ok(None) };
    Ok(Some(Locked {
        now: instant(row.try_get(0)?),
        kind: read_kind(&row, 1)?,
        living: row.try_get::<_, Vec<Uuid>>(11)?.into_iter().map(holder_id).collect(),
    }))
}

async fn put_kinds(session: &Session<'_>, kinds: &[NewKind], by: &Actor) -> Result<bool, Trouble> {
    // In the order of their names, so that two who write the same ones do not wait for each other.
    let mut kinds: Vec<&NewKind> = kinds.iter().collect();
    kinds.sort_by(|one, other| one.name.cmp(&other.name));
    let now = session.now().await?;
    let mut changed = false;
    for kind in kinds {
        if kind.settings.len() > Limits::SETTINGS_BYTES_MAX {
            let what = format!("the settings of kind {} are too long", kind.name);
            return Err(StoreError::Rejected(what.into()).into());
        }
        let before = lock(session, &kind.name).await?;
        let old = before.as_ref().map_or_else(Facts::default, |locked| locked.kind.facts());
        let new = kind.facts();
        if old == new {
            continue;
        }
        let params: [Param<'_>; 3] =
            [&kind.name.as_str(), &kind.settings, &i64::from(kind.takeovers_max)];
        session.execute(&PUT_KIND, &params).await?;
        let (what, kind) = ("put kind", Some(&kind.name));
        let line = Line { who: by, what, job: None, kind, before: &old, after: &new };
        audit(session, now, &[line]).await?;
        changed = true;
    }
    Ok(changed)
}

pub(in super::super) async fn kinds(session: &Session<'_>) -> Result<Vec<Kind>, Trouble> {
    session.query(&KINDS, &[]).await?.iter().map(|row| read_kind(row, 0)).collect()
}

fn read_kind(row: &Row, at: usize) -> Result<Kind, Trouble> {
    let parked = match row.try_get::<_, Option<i64>>(at + 4)? {
        None => None,
        Some(since) => Some(Parked {
            since: instant(since),
            reason: row.try_get::<_, Option<String>>(at + 5)?.unwrap_or_default(),
            prober: row.try_get::<_, Option<Uuid>>(at + 6)?.map(holder_id),
        }),
    };
    Ok(Kind {
        name: KindName::parse(row.try_get(at)?).map_err(|_| unreadable("a kind"))?,
        settings: row.try_get(at + 1)?,
        takeovers_max: number(row.try_get(at + 2)?),
        paused: row.try_get(at + 3)?,
        parked,
        generation: unsigned(row.try_get(at + 7)?),
        suspects: suspects::read(row.try_get(at + 8)?)
            .ok_or_else(|| unreadable("who suspects a kind"))?,
        forced: row.try_get(at + 9)?,
    })
}

async fn change_kind(
    session: &Session<'_>,
    name: &KindName,
    change: &KindChange,
    by: &Actor,
) -> Result<(KindChanged, bool), Trouble> {
    let Some(locked) = lock(session, name).await? else {
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
    // What people are told may be any text; the server takes all of it but this.
    let reason = parked.map(|parked| parked.reason.replace('\0', ""));
    let suspects = suspects::text(&after.suspects);
    let params: [Param<'_>; 8] = [
        &name.as_str(),
        &after.paused,
        &parked.map(|parked| parked.since.as_millis()),
        &reason,
        &parked.and_then(|parked| parked.prober).map(holder_uuid),
        &count(after.generation),
        &suspects,
        &after.forced,
    ];
    session.execute(&CHANGE_KIND, &params).await?;
    let (old, new) = (before.doings(), after.doings());
    let (what, kind) = (change.as_str(), Some(name));
    let line = Line { who: by, what, job: None, kind, before: &old, after: &new };
    audit(session, locked.now, &[line]).await?;
    Ok((KindChanged::Applied(after), true))
}
