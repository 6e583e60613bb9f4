//! Releases the first jobs of lines that have no released job.

use super::super::RedisStore;
use super::super::error::unreadable;
use super::super::pack::Args;
use super::super::script::{RELEASE_GROUPS, STUCK_GROUPS};
use crate::groups::Line;
use rewheel_core::store::{GroupName, GroupsReleased, StoreResult};

/// Lines that one script checks.
const LINES_MAX: usize = 100;

impl RedisStore {
    pub(in super::super) async fn release_groups(
        &self,
        limit: usize,
    ) -> StoreResult<GroupsReleased> {
        let mut done = GroupsReleased::default();
        let mut last = name(&self.shared.groups_checked.get());
        while done.checked < limit {
            let most = LINES_MAX.min(limit - done.checked);
            let args = Args::default().bytes(&self.shared.me).bytes(&last).count(most);
            let [checked, released, to, woken] = self.run(&RELEASE_GROUPS, args).await?.parts()?;
            self.wake(woken)?;
            let checked = usize::try_from(checked.count()?).unwrap_or(usize::MAX);
            done.checked += checked;
            done.released += usize::try_from(released.count()?).unwrap_or(usize::MAX);
            if checked > 0 {
                last = to.must()?;
            }
            if checked < most {
                break;
            }
        }
        let last = read_name(&last).ok_or_else(|| unreadable("a group"))?;
        self.shared.groups_checked.set(Some(last), done.checked, limit);
        Ok(done)
    }

    pub(in super::super) async fn stuck_groups(&self, limit: usize) -> StoreResult<Vec<GroupName>> {
        let (mut stuck, mut last) = (Vec::new(), Vec::new());
        loop {
            let args = Args::default().bytes(&last).count(LINES_MAX);
            let [checked, found, to] = self.read(&STUCK_GROUPS, args).await?.parts()?;
            for line in found.list()? {
                stuck.extend(read_name(&line.must()?).as_ref().and_then(Line::name));
            }
            stuck.truncate(limit);
            last = to.must()?;
            if stuck.len() >= limit || checked.count()? < LINES_MAX as u64 {
                return Ok(stuck);
            }
        }
    }
}

fn name(line: &Line) -> Vec<u8> {
    if *line == Line::default() {
        return Vec::new();
    }
    [line.kind.as_bytes(), b"\0", line.tenant.as_bytes(), b"\0", line.key.as_bytes()].concat()
}

fn read_name(name: &[u8]) -> Option<Line> {
    if name.is_empty() {
        return Some(Line::default());
    }
    let mut parts = std::str::from_utf8(name).ok()?.splitn(3, '\0').map(str::to_owned);
    let (kind, tenant, key) = (parts.next()?, parts.next()?, parts.next()?);
    Some(Line { key, kind, tenant })
}
