//! Checks that no two attempts of a group overlap if the results of both counted.

use super::ended::Ended;
use super::service::Call;
use serde_json::Value;
use std::collections::BTreeMap;

/// One call of a group.
struct Member {
    job: String,
    call: Call,
    /// Whether its result is one of the job's attempts, and it had ended when that was settled.
    counted: bool,
}

pub(crate) async fn check(ended: &Ended<'_>) {
    let mut lines: BTreeMap<String, Vec<Member>> = BTreeMap::new();
    for (id, job) in &ended.jobs {
        let Some(group) = job["group_key"].as_str() else { continue };
        let calls = ended.service.calls_of(id);
        if calls.is_empty() {
            continue;
        }
        let line = lines.entry(format!("{} {} {group}", job["kind"], job["tenant"])).or_default();
        let whole = ended.whole(id).await;
        for call in calls {
            assert!(call.turn.is_some(), "a call without its turn: {call:?}");
            let counted = is_counted(&whole, &call);
            line.push(Member { job: id.clone(), call, counted });
        }
    }
    let mut pairs = 0;
    for (line, mut members) in lines {
        members.sort_by_key(|member| member.call.order());
        // From the last to the first: the earliest start of all later ones.
        let mut next: Option<&Member> = None;
        for member in members.iter().rev() {
            if let (true, Some((end, _)), Some(next)) = (member.counted, member.call.answered, next)
            {
                let (job, call) = (&member.job, &member.call);
                assert!(
                    end <= next.call.at,
                    "{line}: {} began before {job} had ended: {:?}, {call:?}",
                    next.job,
                    next.call,
                );
                pairs += 1;
            }
            if next.is_none_or(|next| member.call.at < next.call.at) {
                next = Some(member);
            }
        }
    }
    assert!(pairs > 0, "no group ran two jobs");
    println!("groups: {pairs} attempts ended before the next one of their group began");
}

/// An attempt that timed out, or whose connection was lost, may have been settled before its response.
fn is_counted(job: &Value, call: &Call) -> bool {
    let attempts = job["attempts"].as_array().unwrap();
    let mut of_call = attempts.iter().filter(|one| one["fence"].as_u64() == Some(call.fence));
    of_call.next().is_some_and(|attempt| {
        let category = attempt["category"].as_str();
        !matches!(category, Some("timeout" | "io" | "cancelled" | "deadline" | "unknown"))
    })
}
