//! Tests remote workers.

use super::served::{Answer, Api, config, served};
use rewheel_core::KindName;
use rewheel_engine::{KindSettings, RunnerKind};
use rewheel_server::config::Config;
use serde_json::{Value, json};
use std::time::Duration;

/// A config with a kind for workers, and short leases.
fn with_workers() -> Config {
    let mut config = config();
    config.engine.lease_ttl = Duration::from_millis(600);
    config.engine.housekeeping = Duration::from_millis(100);
    let settings = KindSettings { runner: RunnerKind::Worker, ..KindSettings::default() };
    config.kinds.insert(KindName::parse("parcel").unwrap(), settings);
    config
}

async fn submit(api: &Api, order: u32) -> String {
    let job =
        json!({"kind": "parcel", "payload": {"order": order}, "key": format!("order-{order}")});
    api.post("/v1/jobs", &job.to_string()).await.body["id"].as_str().unwrap().to_owned()
}

async fn claim(api: &Api, holder: &Value, max: u32, wait: &str) -> Answer {
    let request =
        json!({"holder": holder, "name": "py-1", "kinds": ["parcel"], "max": max, "wait": wait});
    api.post("/v1/workers/claim", &request.to_string()).await
}

async fn settle(api: &Api, holder: &Value, result: Value) -> Value {
    let request = json!({"holder": holder, "results": [result]}).to_string();
    let answer = api.post("/v1/workers/settle", &request).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body["results"][0].clone()
}

async fn heartbeat(api: &Api, holder: &Value, jobs: Value) -> Answer {
    let request = json!({"holder": holder, "jobs": jobs}).to_string();
    api.post("/v1/workers/heartbeat", &request).await
}

async fn state(api: &Api, id: &str) -> Value {
    api.get(&format!("/v1/jobs/{id}")).await.body["state"].clone()
}

/// A wrong job to submit is named, and costs nothing; a good one is stored with the result, once.
#[tokio::test]
async fn a_result_submits_jobs() {
    let mut config = with_workers();
    config.engine.lease_ttl = Duration::from_secs(60);
    served(config, async |api| {
        let id = submit(&api, 17).await;
        let claimed = claim(&api, &Value::Null, 1, "5s").await.body;
        let (holder, fence) = (&claimed["holder"], &claimed["jobs"][0]["fence"]);
        let good = json!({"kind": "parcel", "payload": {"order": 18}, "delay": "1h"});
        let done =
            |jobs: Value| json!({"id": id, "fence": fence, "verdict": "done", "submit": jobs});
        let with = |name: &str, value: Value| {
            let mut job = good.clone();
            job[name] = value;
            job
        };
        for (wrong, field) in [
            (json!([good, with("kind", json!("fax"))]), "/results/0/submit/1/kind"),
            (json!([with("attempts_max", json!(5_000))]), "/results/0/submit/0/attempts_max"),
            (json!([with("tenant", json!("acme"))]), "/results/0/submit/0/tenant"),
            (json!([with("parent", json!(id))]), "/results/0/submit/0/parent"),
            (json!(vec![good.clone(); 17]), "/results/0/submit"),
            (json!([1]), "/results/0/submit/0"),
        ] {
            let request = json!({"holder": holder, "results": [done(wrong)]}).to_string();
            let answer = api.post("/v1/workers/settle", &request).await;
            assert_eq!(answer.status, 422, "{answer:?}");
            assert_eq!(answer.body["errors"][0]["field"], field, "{answer:?}");
            assert_eq!(state(&api, &id).await, "leased");
        }
        let settled = settle(&api, holder, done(json!([good]))).await;
        assert_eq!(settled["state"], "succeeded");
        assert_eq!(settle(&api, holder, done(json!([good]))).await, settled);
        let found = api.get(&format!("/v1/jobs?parent={id}")).await.body;
        let items = found["items"].as_array().unwrap();
        assert_eq!(items.len(), 1, "{found}");
        assert_eq!((&items[0]["parent"], &items[0]["state"]), (&json!(id), &json!("scheduled")));
        assert_eq!(api.get(&format!("/v1/jobs/{id}")).await.body["parent"], Value::Null);
        assert_eq!(api.get("/v1/jobs?parent=17").await.status, 400);
    })
    .await;
}

#[tokio::test]
async fn a_worker_takes_a_job_and_says_what_became_of_it() {
    served(with_workers(), async |api| {
        assert_eq!(api.get("/v1/kinds/parcel").await.body["runnable"], false);
        let id = submit(&api, 17).await;
        let claimed = claim(&api, &Value::Null, 10, "0s").await;
        assert_eq!(claimed.status, 200, "{claimed:?}");
        let (holder, job) = (&claimed.body["holder"], &claimed.body["jobs"][0]);
        assert_eq!((&claimed.body["lease_ttl"], &job["id"]), (&json!("600ms"), &json!(id)));
        assert_eq!((&job["payload"], &job["key"]), (&json!({"order": 17}), &json!("order-17")));
        assert_eq!((&job["attempt"], &job["attempt_timeout"]), (&json!(1), &json!("30s")));
        assert_eq!(api.get("/v1/kinds/parcel").await.body["runnable"], true);
        assert_eq!(api.get("/v1/holders").await.body["items"][0]["role"], "worker");

        let retry = json!({"id": id, "fence": job["fence"], "verdict": "retry", "after": "10ms",
            "category": "timeout", "code": "504", "message": "no answer", "duration": "3s"});
        let settled = settle(&api, holder, retry.clone()).await;
        assert_eq!(settled, json!({"id": id, "settled": true, "state": "scheduled"}));
        assert_eq!(settle(&api, holder, retry).await, settled, "an answer that was lost");
        let stats = api.get("/v1/stats").await.body;
        let decided = json!([{"decision": "retry", "category": "timeout", "count": 1}]);
        assert_eq!(stats["here"]["decisions"], decided, "what is known already is not counted");
        let again = claim(&api, holder, 1, "5s").await.body;
        assert_eq!((&again["jobs"][0]["attempt"], &again["holder"]), (&json!(2), holder));
        let done = json!({"id": id, "fence": again["jobs"][0]["fence"], "verdict": "done"});
        let settled = settle(&api, holder, done).await;
        assert_eq!(settled, json!({"id": id, "settled": true, "state": "succeeded"}));
        let job = api.get(&format!("/v1/jobs/{id}")).await.body;
        assert_eq!(job["attempts"][0]["duration"], "3s");
        assert_eq!(job["attempts"][0]["code"], "504");
        let late = settle(&api, holder, json!({"id": id, "fence": 1, "verdict": "dead"})).await;
        assert_eq!(late, json!({"id": id, "settled": false, "reason": "fence_lost"}));
    })
    .await;
}

#[tokio::test]
async fn a_worker_that_waits_is_woken_by_a_job() {
    served(with_workers(), async |api| {
        let waiting = claim(&api, &Value::Null, 1, "20s");
        let submitting = async {
            tokio::time::sleep(Duration::from_millis(900)).await;
            submit(&api, 1).await
        };
        let (claimed, id) = tokio::join!(waiting, submitting);
        // Longer than a lease: a waiting worker is alive.
        assert_eq!(claimed.body["jobs"][0]["id"], id, "{claimed:?}");
    })
    .await;
}

#[tokio::test]
async fn jobs_of_a_silent_worker_go_to_another() {
    served(with_workers(), async |api| {
        let id = submit(&api, 1).await;
        let first = claim(&api, &Value::Null, 1, "0s").await.body;
        let second = claim(&api, &Value::Null, 1, "20s").await.body;
        assert_eq!(second["jobs"][0]["id"], id);
        assert!(second["jobs"][0]["fence"].as_u64() > first["jobs"][0]["fence"].as_u64());
        let dead = heartbeat(&api, &first["holder"], json!([id])).await;
        assert_eq!((dead.status, dead.problem()), (410, "holder_expired"));
        let dead = claim(&api, &first["holder"], 1, "0s").await;
        assert_eq!((dead.status, dead.problem()), (410, "holder_expired"));
        let late = json!({"id": id, "fence": first["jobs"][0]["fence"], "verdict": "done"});
        let late = json!({"holder": first["holder"], "results": [late]}).to_string();
        let late = api.post("/v1/workers/settle", &late).await;
        assert_eq!((late.status, late.problem()), (410, "holder_expired"));
        assert_eq!(state(&api, &id).await, "leased");
    })
    .await;
}

#[tokio::test]
async fn a_heartbeat_tells_what_to_stop_and_gives_back_what_was_lost() {
    served(with_workers(), async |api| {
        let (kept, lost) = (submit(&api, 1).await, submit(&api, 2).await);
        let claimed = claim(&api, &Value::Null, 2, "0s").await.body;
        let holder = &claimed["holder"];
        assert_eq!(claimed["jobs"].as_array().map(Vec::len), Some(2));
        for _ in 0..2 {
            assert_eq!(state(&api, &lost).await, "leased");
            let heard = heartbeat(&api, holder, json!([kept])).await;
            assert_eq!(heard.body, json!({"lease_ttl": "600ms", "cancel": []}));
        }
        assert_eq!(state(&api, &lost).await, "scheduled", "two heartbeats did not name it");
        assert_eq!(state(&api, &kept).await, "leased");
        api.post(&format!("/v1/jobs/{kept}/cancel"), "").await;
        let heard = heartbeat(&api, holder, json!([kept])).await;
        assert_eq!(heard.body["cancel"], json!([kept]));
        let jobs = claimed["jobs"].as_array().unwrap();
        let job = jobs.iter().find(|job| job["id"] == kept).unwrap();
        let snooze = json!({"id": kept, "fence": job["fence"], "verdict": "snooze", "after": "1h"});
        assert_eq!(settle(&api, holder, snooze).await["state"], "cancelled");
    })
    .await;
}

#[tokio::test]
async fn limits_of_the_kind_hold_for_workers() {
    let mut config = with_workers();
    let kind = config.kinds.get_mut(&KindName::parse("parcel").unwrap()).unwrap();
    (kind.concurrency_max, kind.attempts_max) = (Some(2), 1);
    served(config, async |api| {
        for order in 0..5 {
            submit(&api, order).await;
        }
        let first = claim(&api, &Value::Null, 10, "0s").await.body;
        assert_eq!(first["jobs"].as_array().map(Vec::len), Some(2));
        let holder = &first["holder"];
        assert_eq!(claim(&api, holder, 10, "0s").await.body["jobs"], json!([]));
        let job = &first["jobs"][0];
        let stop = json!({"id": job["id"], "fence": job["fence"], "verdict": "retry"});
        assert_eq!(settle(&api, holder, stop).await["state"], "dead", "it had one attempt");
        assert_eq!(
            claim(&api, holder, 10, "0s").await.body["jobs"].as_array().map(Vec::len),
            Some(1)
        );
        let paused = api.post("/v1/kinds/parcel/pause", "").await;
        assert_eq!(paused.status, 200);
        let other = claim(&api, &Value::Null, 10, "0s").await.body;
        assert_eq!(other["jobs"], json!([]), "a paused kind gives nothing");
    })
    .await;
}

#[tokio::test]
async fn what_a_worker_cannot_ask_for_is_refused() {
    served(with_workers(), async |api| {
        let ask = async |kinds: Value| {
            api.post("/v1/workers/claim", &json!({ "kinds": kinds }).to_string()).await
        };
        let unknown = ask(json!(["parcel", "nothing"])).await;
        assert_eq!((unknown.status, unknown.problem()), (422, "unknown_kind"));
        assert_eq!(unknown.blamed(), ["/kinds/1"]);
        let other = ask(json!(["mail"])).await;
        assert_eq!((other.status, other.blamed()), (422, vec!["/kinds/0"]));
        for (path, body, status) in [
            ("claim", "{}", 422),
            ("claim", "[", 400),
            ("heartbeat", "{}", 422),
            ("settle", r#"{"holder":null,"results":[]}"#, 422),
        ] {
            let answer = api.post(&format!("/v1/workers/{path}"), body).await;
            assert_eq!(answer.status, status, "{path} {body}");
            answer.problem();
        }
        let settings = r#"{"runner":"worker","breaker":{"window":0}}"#;
        assert_eq!(api.put("/v1/kinds/other", settings).await.blamed(), ["/breaker/window"]);
    })
    .await;
}
