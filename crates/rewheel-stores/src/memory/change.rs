//! Changes jobs on behalf of operators.

use super::verbs::PAYLOAD_BYTES_MAX;
use super::world::{Note, World};
use rewheel_core::store::{Change, Changed};
use rewheel_core::{Actor, Job, JobId, Retain, Timestamp};

impl World {
    pub(super) fn change(
        &mut self,
        change: &Change,
        by: &Actor,
        keep: Retain,
        now: Timestamp,
    ) -> Changed {
        let Some(row) = self.jobs.get(&change.job) else { return Changed::NotFound };
        let before = row.whole();
        if change.if_version.is_some_and(|wanted| wanted != before.version) {
            return Changed::VersionChanged(before.version);
        }
        let after = match change.apply(&before, now, PAYLOAD_BYTES_MAX) {
            Ok(after) => after,
            Err(answer) => return answer,
        };
        let (old, new) = change.what.facts(&before, &after);
        let (job, what) = (Some(change.job), change.what.as_str());
        let kind = Some(before.lane.kind.clone());
        self.note(Note { who: by, what, job, kind, before: old, after: new }, now);
        self.report.get_or_insert_default().add(&after.lane);
        let (state, version) = (after.state(), before.version.next());
        let wanted = after.status.wanted().is_some();
        self.overwrite(change.job, &before, after, keep, now);
        if wanted { Changed::Wanted { version } } else { Changed::Applied { state, version } }
    }

    fn overwrite(&mut self, id: JobId, before: &Job, after: Job, keep: Retain, now: Timestamp) {
        let to = after.state();
        let is_moved = to != before.state();
        self.write(id, |row| {
            row.payload = after.payload.clone().unwrap_or_default();
            row.job = Job { payload: None, ..after };
            if is_moved {
                row.job.status = before.status;
            } else {
                row.job.version = before.version.next();
            }
        });
        if is_moved {
            self.let_go(id, to, keep, now);
        }
    }
}
