//! Knows the kinds.

use super::world::{KindRow, Note, World};
use rewheel_core::{
    Actor, Facts, HolderId, Kind, KindChange, KindChanged, KindName, NewKind, Parked, Timestamp,
};

impl World {
    pub(super) fn put_kind(&mut self, new: &NewKind, by: &Actor, now: Timestamp) {
        let old = self.kinds.get(&new.name).map(|row| row.kind.clone());
        let fresh = Kind {
            name: new.name.clone(),
            settings: String::new(),
            takeovers_max: 0,
            paused: false,
            parked: None,
            generation: 0,
        };
        let kind = Kind {
            settings: new.settings.clone(),
            takeovers_max: new.takeovers_max,
            ..old.clone().unwrap_or(fresh)
        };
        if old.as_ref() == Some(&kind) {
            return;
        }
        let note = Note {
            who: by,
            what: "put kind",
            job: None,
            kind: new.name.clone(),
            before: old.as_ref().map(settings).unwrap_or_default(),
            after: settings(&kind),
        };
        self.note(note, now);
        let probe = self.kinds.get(&new.name).and_then(|row| row.probe);
        self.kinds.insert(new.name.clone(), KindRow { kind, probe });
        self.is_reason_to_look = true;
    }

    pub(super) fn change_kind(
        &mut self,
        name: &KindName,
        change: &KindChange,
        by: &Actor,
        now: Timestamp,
    ) -> KindChanged {
        let Some(row) = self.kinds.get(name) else { return KindChanged::NotFound };
        let old = row.kind.clone();
        if !self.may_change(&old, change) {
            return KindChanged::Refused(old);
        }
        let kind = changed(old.clone(), change, now);
        if kind == old {
            return KindChanged::Applied(kind);
        }
        let probe = if kind.generation == old.generation { row.probe } else { None };
        self.kinds.insert(name.clone(), KindRow { kind: kind.clone(), probe });
        let note = Note {
            who: by,
            what: change.as_str(),
            job: None,
            kind: name.clone(),
            before: doings(&old),
            after: doings(&kind),
        };
        self.note(note, now);
        self.is_reason_to_look = true;
        KindChanged::Applied(kind)
    }

    /// Whether nobody was first.
    fn may_change(&self, kind: &Kind, change: &KindChange) -> bool {
        match change {
            KindChange::Pause | KindChange::Resume => true,
            KindChange::Park { generation, .. } => *generation == kind.generation,
            KindChange::Unpark { generation } => {
                *generation == kind.generation && kind.parked.is_some()
            }
            KindChange::Probe { generation, holder } => {
                // The right lapses with the life of who has it.
                let is_free = |parked: &Parked| !parked.prober.is_some_and(|by| self.is_alive(by));
                *generation == kind.generation
                    && kind.parked.as_ref().is_some_and(is_free)
                    && self.is_alive(*holder)
            }
        }
    }
}

/// Returns the kind after a change that may be made.
fn changed(mut kind: Kind, change: &KindChange, now: Timestamp) -> Kind {
    match change {
        KindChange::Pause => kind.paused = true,
        KindChange::Resume => kind.paused = false,
        KindChange::Park { reason, .. } => {
            let since = kind.parked.map_or(now, |parked| parked.since);
            kind.parked = Some(Parked { since, reason: reason.clone(), prober: None });
            kind.generation += 1;
        }
        KindChange::Probe { holder, .. } => {
            kind.parked = kind.parked.map(|parked| Parked { prober: Some(*holder), ..parked });
            kind.generation += 1;
        }
        KindChange::Unpark { .. } => {
            kind.parked = None;
            kind.generation += 1;
        }
    }
    kind
}

fn settings(kind: &Kind) -> Facts {
    Facts::default()
        .with("settings", Some(&kind.settings))
        .with("takeovers_max", Some(kind.takeovers_max))
}

fn doings(kind: &Kind) -> Facts {
    let parked = kind.parked.as_ref();
    let prober: Option<HolderId> = parked.and_then(|parked| parked.prober);
    Facts::default()
        .with("paused", Some(kind.paused))
        .with("parked", parked.map(|parked| &parked.reason))
        .with("prober", prober)
}
