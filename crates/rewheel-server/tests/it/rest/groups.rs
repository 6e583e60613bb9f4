//! Tests groups over REST.

use super::served::{Api, config, served};
use rewheel_core::KindName;
use rewheel_engine::{KindSettings, RunnerKind};
use rewheel_server::config::Config;
use serde_json::{Value, json};

fn with_workers() -> Config {
    let mut config = config();
    let settings = KindSettings { runner: RunnerKind::Worker, ..KindSettings::default() };
    config.kinds.insert(KindName::parse("parcel").unwrap(), settings);
    config
}

async fn submit(api: &Api, group: &str) -> Value {
    let job = json!({"kind": "parcel", "payload": 1, "group_key": group});
    let answer = api.post("/v1/jobs", &job.to_string()).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.body
}

/// A job tells its group, whether it waits and why, and its turn; a worker gets one job of a group at a time.
#[tokio::test]
async fn a_group_is_claimed_one_by_one() {
    served(with_workers(), async |api| {
        let first = submit(&api, "customer-17").await;
        let second = submit(&api, "customer-17").await;
        let other = submit(&api, "customer-18").await;
        let get = async |job: &Value| {
            api.get(&format!("/v1/jobs/{}", job["id"].as_str().unwrap())).await.body
        };
        let waiting = get(&second).await;
        assert_eq!(waiting["group_key"], "customer-17");
        assert_eq!((&waiting["state"], &waiting["blocked"]), (&json!("scheduled"), &json!(true)));
        assert_eq!(
            (&waiting["held_because"]["reason"], &waiting["turn"]),
            (&json!("group"), &Value::Null)
        );
        assert_eq!(get(&first).await["blocked"], json!(false));
        let request = json!({"holder": null, "kinds": ["parcel"], "max": 10, "wait": "5s"});
        let claimed = api.post("/v1/workers/claim", &request.to_string()).await.body;
        let jobs = claimed["jobs"].as_array().unwrap();
        let mut ids: Vec<&Value> = jobs.iter().map(|job| &job["id"]).collect();
        ids.sort_by_key(|id| id.as_str());
        assert_eq!(ids, [&first["id"], &other["id"]]);
        assert!(
            jobs.iter().all(|job| job["turn"].is_u64() && job["group_key"].is_string()),
            "{jobs:?}"
        );
        let listed = api.get("/v1/jobs?group_key=customer-17").await.body;
        assert_eq!(listed["items"].as_array().unwrap().len(), 2);
    })
    .await;
}

/// A wrong key and a wrong setting are named, and nothing is stored.
#[tokio::test]
async fn wrong_groups_are_refused_by_name() {
    served(with_workers(), async |api| {
        for key in [json!(""), json!("x".repeat(300)), json!("a\nb"), json!(17)] {
            let job = json!({"kind": "parcel", "payload": 1, "group_key": key});
            let answer = api.post("/v1/jobs", &job.to_string()).await;
            assert_eq!(answer.status, 422, "{answer:?}");
            assert_eq!(answer.body["errors"][0]["field"], "/group_key", "{answer:?}");
        }
        assert_eq!(api.get("/v1/jobs").await.body["items"], json!([]));
        let answer = api.put("/v1/kinds/letter", r#"{"on_dead":"explode"}"#).await;
        assert_eq!(answer.status, 422, "{answer:?}");
        assert!(
            answer.body["errors"][0]["field"].as_str().unwrap().contains("on_dead"),
            "{answer:?}"
        );
        let answer = api.put("/v1/kinds/letter", r#"{"on_dead":"block"}"#).await;
        assert_eq!((answer.status, &answer.body["settings"]["on_dead"]), (200, &json!("block")));
        let answer = api.get("/v1/jobs?group_key=").await;
        assert_eq!(answer.status, 400, "{answer:?}");
    })
    .await;
}
