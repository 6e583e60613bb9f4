//! The scripts: one Lua file per verb, with the shared parts that it names.

use crate::template::fill_in;
use std::sync::LazyLock;

/// Whether a script may write, and so whether it is unknown what happened if its response is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Reads,
    Writes,
}

/// A script, known to the server by its hash.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) name: &'static str,
    pub(super) effect: Effect,
    pub(super) text: String,
    pub(super) hash: String,
}

impl Script {
    fn new(name: &'static str, effect: Effect, file: &str) -> Script {
        let text = with_parts(file);
        let hash = redis::Script::new(&text).get_hash().to_owned();
        Script { name, effect, text, hash }
    }
}

/// Replaces the line that names shared parts by these parts.
fn with_parts(file: &str) -> String {
    fill_in(file, |include| {
        let names = include.strip_prefix("include ")?;
        let parts: Option<Vec<&str>> = names.split(' ').map(part).collect();
        // The line begins as a comment.
        Some(format!("\n{}", parts?.join("\n")))
    })
}

fn part(name: &str) -> Option<&'static str> {
    Some(match name {
        "base" => include_str!("lua/lib/base.lua"),
        "spare" => include_str!("lua/lib/spare.lua"),
        "holder" => include_str!("lua/lib/holder.lua"),
        "lane" => include_str!("lua/lib/lane.lua"),
        "job" => include_str!("lua/lib/job.lua"),
        "audit" => include_str!("lua/lib/audit.lua"),
        "group" => include_str!("lua/lib/group.lua"),
        "ending" => include_str!("lua/lib/ending.lua"),
        "store" => include_str!("lua/lib/store.lua"),
        "claim" => include_str!("lua/lib/claim.lua"),
        "settle" => include_str!("lua/lib/settle.lua"),
        "kind_use" => include_str!("lua/lib/kind_use.lua"),
        _ => return None,
    })
}

macro_rules! scripts {
    ($($name:ident: $effect:ident $file:literal,)+) => {
        $(pub(super) static $name: LazyLock<Script> = LazyLock::new(|| {
            Script::new($file, Effect::$effect, include_str!(concat!("lua/", $file, ".lua")))
        });)+

        /// Every script.
        #[cfg(test)]
        fn all() -> Vec<&'static Script> {
            vec![$(&*$name,)+]
        }
    };
}

scripts! {
    ANNOUNCE: Writes "announce",
    ATTEMPTS: Reads "attempts",
    AUDIT: Reads "audit",
    BOOKS: Reads "books",
    CHANGE: Writes "change",
    CHANGE_KIND: Reads "change_kind",
    CHECKPOINT: Writes "checkpoint",
    CLAIM: Writes "claim",
    CLAIM_LIMITED: Writes "claim_limited",
    DEADLINES: Writes "deadlines",
    ENDED: Reads "ended",
    EPOCH: Writes "epoch",
    EXPIRE_HOLDER: Writes "expire_holder",
    EXTEND: Writes "extend",
    FOLD_HISTORY: Writes "fold_history",
    FORGOTTEN: Writes "forgotten",
    GET: Reads "get",
    GIVE_BACK: Writes "give_back",
    GRANT: Writes "grant",
    HELD: Reads "held",
    HISTORY: Reads "history",
    HOLDER: Reads "holder",
    HOLDERS: Reads "holders",
    IDEMPOTENCY_BEGIN: Writes "idempotency_begin",
    IDEMPOTENCY_CHANGE: Writes "idempotency_change",
    IDEMPOTENCY_PRUNE: Writes "idempotency_prune",
    INSERT: Writes "insert",
    JOIN: Writes "join",
    KEYED: Reads "keyed",
    KINDS: Reads "kinds",
    LANE_HEADS: Reads "lane_heads",
    LANES: Reads "lanes",
    LEAVE: Writes "leave",
    LIMIT_WAITS: Reads "limit_waits",
    LIST: Reads "list",
    NOW: Reads "now",
    PRUNE: Writes "prune",
    PRUNE_FLEET: Writes "prune_fleet",
    PUT_KINDS: Writes "put_kinds",
    PUT_TOKEN: Writes "put_token",
    RELEASE_GROUPS: Writes "release_groups",
    RENEW: Writes "renew",
    REPORT_HISTORY: Writes "report_history",
    RESERVE: Writes "reserve",
    RESULT: Reads "result",
    SAMPLE: Writes "sample",
    SET_ASIDE: Writes "set_aside",
    SETTLE: Writes "settle",
    STAGE: Writes "stage",
    START: Writes "start",
    STUCK_GROUPS: Writes "stuck_groups",
    SWEEP: Writes "sweep",
    TALLY: Reads "tally",
    TOKENS: Reads "tokens",
    UNANNOUNCED: Reads "unannounced",
    UNREADABLE: Writes "unreadable",
    UNSTAGE: Writes "unstage",
}

#[cfg(test)]
mod tests {
    use super::{Effect, all};
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn every_file_is_a_script_that_says_what_it_does() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/redis/lua");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let files = files.filter(|path| path.is_file());
        let names: BTreeSet<String> =
            files.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
        let known: BTreeSet<String> = all().iter().map(|script| script.name.to_owned()).collect();
        assert_eq!(names, known);
        for script in all() {
            let first = script.text.lines().next().unwrap();
            assert!(first.starts_with(&format!("-- {}: ", script.name)), "{first}");
            assert!(!script.text.contains("{include"), "{}: an unknown part", script.name);
        }
    }

    /// Loading a job that cannot be read sets it aside.
    #[test]
    fn a_script_that_loads_jobs_is_one_that_writes() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/redis/lua");
        for script in all().into_iter().filter(|script| script.effect == Effect::Reads) {
            let own = std::fs::read_to_string(folder.join(format!("{}.lua", script.name))).unwrap();
            let loads = ["load(", "next_of("].iter().any(|call| own.contains(call));
            assert!(!loads, "{} loads jobs", script.name);
        }
    }

    /// A server whose memory is full must not refuse what ends jobs and frees memory, or starts the nodes that do so.
    #[test]
    fn only_what_accepts_new_data_is_refused_by_a_full_server() {
        let spare = include_str!("lua/lib/spare.lua");
        let writes = all().into_iter().filter(|script| script.effect == Effect::Writes);
        let refused: Vec<&str> = writes
            .filter(|script| !script.text.contains(spare))
            .map(|script| script.name)
            .collect();
        // `unstage` begins with a command that deletes.
        let accept = [
            "idempotency_begin",
            "insert",
            "put_token",
            "report_history",
            "reserve",
            "stage",
            "unstage",
        ];
        assert_eq!(refused, accept);
    }

    #[test]
    fn no_line_is_longer_than_in_other_files() {
        for script in all() {
            for line in script.text.lines() {
                assert!(line.chars().count() <= 140, "{}: {line}", script.name);
            }
        }
    }
}
