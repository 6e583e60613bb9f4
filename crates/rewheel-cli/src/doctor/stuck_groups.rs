//! Checks that every group with waiting jobs has a job that may run.

use super::Check;
use crate::cli_error::CliError;
use rewheel_core::store::{GroupName, Store};
use rewheel_core::{Holder, Role};
use std::collections::BTreeSet;
use std::time::Duration;

/// How many groups without a job that may run are read with one look.
const STUCK_MAX: usize = 1_000;

/// How long the housekeeping of the nodes may take to release the next job of a group: twice the time in which one node looks at all
/// groups.
const RELEASED_WITHIN: Duration = Duration::from_secs(60);

/// How long to wait before looking again.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Looks at the groups several times if a node is running, which may be about to release their first jobs.
pub(super) async fn check(store: &dyn Store) -> Result<Check, CliError> {
    let mut stuck: BTreeSet<GroupName> = store.stuck_groups(STUCK_MAX).await?.into_iter().collect();
    if !stuck.is_empty() {
        let is_running = |holder: &Holder| {
            holder.role == Role::Engine && holder.died.is_none() && !holder.expired
        };
        let clock = rewheel::Clock::system();
        let start = clock.now();
        let patience = if store.holders().await?.iter().any(is_running) {
            RELEASED_WITHIN
        } else {
            Duration::ZERO
        };
        while !stuck.is_empty() && clock.now().since(start) < patience {
            clock.sleep(LOOK_EVERY).await;
            stuck = still_stuck(stuck, store.stuck_groups(STUCK_MAX).await?);
        }
    }
    Ok(verdict(&stuck))
}

/// Returns the groups that were stuck in every look so far. On a busy store, each look can find other groups that are without a job that
/// may run for a moment, so it is not enough to count them.
fn still_stuck(before: BTreeSet<GroupName>, now: Vec<GroupName>) -> BTreeSet<GroupName> {
    now.into_iter().filter(|group| before.contains(group)).collect()
}

fn verdict(stuck: &BTreeSet<GroupName>) -> Check {
    let message = match stuck.first() {
        None => "every group with waiting jobs has a job that may run".to_owned(),
        Some(first) => format!(
            "groups with waiting jobs and no job that may run: {}, for example {first}; start a node: it lets their first jobs run within \
             a minute; if a node is already running, report this as a bug",
            stuck.len()
        ),
    };
    Check { name: "groups", ok: stuck.is_empty(), message }
}

#[cfg(test)]
mod tests {
    use super::{still_stuck, verdict};
    use rewheel_core::store::GroupName;
    use rewheel_core::{GroupKey, KindName, Tenant};

    fn groups(keys: &[&str]) -> Vec<GroupName> {
        let name = |key: &&str| GroupName {
            kind: KindName::parse("mail").unwrap(),
            tenant: Tenant::parse("acme").ok(),
            key: GroupKey::parse(key).unwrap(),
        };
        keys.iter().map(name).collect()
    }

    /// New groups are without a job that may run until their insert releases it: another look finds others, not the same.
    #[test]
    fn groups_that_others_follow_are_not_stuck() {
        let first = groups(&["a", "b"]).into_iter().collect();
        let second = still_stuck(first, groups(&["c", "d"]));
        assert!(second.is_empty() && verdict(&second).ok);
    }

    #[test]
    fn a_group_that_every_look_finds_is_stuck() {
        let first = groups(&["a", "b"]).into_iter().collect();
        let second = still_stuck(first, groups(&["b", "c"]));
        let third = still_stuck(second, groups(&["b", "c"]));
        let check = verdict(&third);
        assert!(!check.ok);
        let start = "groups with waiting jobs and no job that may run: 1, for example `b` of kind `mail` and tenant `acme`; start";
        assert!(check.message.starts_with(start), "{}", check.message);
    }
}
