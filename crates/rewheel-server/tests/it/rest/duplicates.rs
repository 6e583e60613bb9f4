//! Tests submits that say what to do about another job with the same key.

use super::served::{Answer, Api, config, served};
use reqwest::Method;
use rewheel_core::KindName;
use rewheel_engine::{KindSettings, RunnerKind};
use rewheel_server::config::Config;
use serde_json::{Value, json};

fn with_workers() -> Config {
    let mut config = config();
    let settings = KindSettings { runner: RunnerKind::Worker, ..KindSettings::default() };
    config.kinds.insert(KindName::parse("index").unwrap(), settings);
    config
}

async fn submit(api: &Api, text: &str, more: Value) -> Answer {
    let mut job = json!({"kind": "index", "payload": text, "key": "page-7"});
    job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    api.post("/v1/jobs", &job.to_string()).await
}

async fn claim(api: &Api) -> Value {
    let request = json!({"holder": null, "name": "py-1", "kinds": ["index"], "wait": "10s"});
    api.post("/v1/workers/claim", &request.to_string()).await.body
}

#[tokio::test]
async fn a_submit_replaces_a_waiting_job() {
    served(with_workers(), async |api| {
        let first = submit(&api, "1", json!({"delay": "1h"})).await;
        assert_eq!((first.status, first.body.get("replaced")), (201, None));
        let replace = json!({"on_duplicate": "replace", "priority": 7, "delay": "2h"});
        let second = submit(&api, "2", replace).await;
        assert_eq!((second.status, &second.body["id"]), (200, &first.body["id"]));
        assert_eq!(second.body["duplicate"], json!(true));
        assert_eq!(second.body["replaced"], json!(true));
        assert_eq!((&second.body["payload"], &second.body["version"]), (&json!("2"), &json!(2)));
        assert_eq!(second.body["priority"], json!(7));
        let entry = &second.body["audit"][0];
        assert_eq!((&entry["what"], &entry["who"]), (&json!("replace"), &json!("submit")));
        assert_eq!(entry["before"]["payload"], json!("\"1\""));
        let answered = submit(&api, "2", json!({})).await;
        assert_eq!((answered.status, answered.body.get("replaced")), (200, None));
        assert_eq!(api.count().await, 1);
    })
    .await;
}

#[tokio::test]
async fn a_claimed_job_is_not_replaced_but_gives_up_its_key() {
    served(with_workers(), async |api| {
        let first = submit(&api, "1", json!({})).await;
        assert_eq!(claim(&api).await["jobs"][0]["id"], first.body["id"]);
        let late = submit(&api, "2", json!({"on_duplicate": "replace"})).await;
        assert_eq!((late.status, late.problem()), (409, "key_reused"));
        assert!(late.body["hint"].as_str().unwrap().contains("unique_until"), "{:?}", late.body);
        let second = submit(&api, "2", json!({"unique_until": "claimed"})).await;
        assert_eq!((second.status, &second.body["duplicate"]), (201, &json!(false)));
        let found = api.get("/v1/jobs?key=page-7&kind=index").await;
        assert_eq!(found.body["items"][0]["id"], second.body["id"]);
    })
    .await;
}

#[tokio::test]
async fn a_worker_gets_a_debounced_job_with_its_last_payload() {
    served(with_workers(), async |api| {
        for text in ["1", "2"] {
            let answer = submit(&api, text, json!({"debounce": "50ms"})).await;
            assert!(answer.status < 300, "{answer:?}");
        }
        let third = submit(&api, "3", json!({"debounce": {"delay": "50ms", "max": "1s"}})).await;
        assert!(third.status < 300, "{third:?}");
        // If the machine is slow, the first jobs were due already: the last one comes in the end.
        let mut claimed = claim(&api).await;
        while claimed["jobs"][0]["payload"] != json!("3") {
            claimed = claim(&api).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_batch_says_what_was_replaced() {
    served(with_workers(), async |api| {
        let job = |text: &str| json!({"kind": "index", "payload": text, "key": "page-7", "delay": "1h", "on_duplicate": "replace"});
        let batch = json!({"jobs": [job("1"), job("2")]}).to_string();
        let answer = api.post("/v1/jobs/batch", &batch).await;
        let id = &answer.body["results"][0]["id"];
        assert_eq!(answer.body["results"][0], json!({"id": id, "duplicate": false}));
        let replaced = json!({"id": id, "duplicate": true, "replaced": true});
        assert_eq!(answer.body["results"][1], replaced);
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_combined_is_refused_and_nothing_is_stored() {
    served(with_workers(), async |api| {
        for (more, blamed) in [
            (json!({"debounce": "2s", "unique_until": "ended"}), "/debounce"),
            (json!({"debounce": "2s", "on_duplicate": "answer"}), "/debounce"),
            (json!({"debounce": "2s", "delay": "1s"}), "/debounce"),
            (json!({"debounce": "2s", "due": "2030-01-01T00:00:00Z"}), "/debounce"),
            (json!({"debounce": "0s"}), "/debounce"),
            (json!({"debounce": {"delay": "2s", "max": "1s"}}), "/debounce"),
            (json!({"debounce": {"max": "1s"}}), "/debounce/delay"),
            (json!({"debounce": {"delay": "x"}}), "/debounce/delay"),
            (json!({"debounce": {"delay": "1s", "min": "1s"}}), "/debounce/min"),
            (json!({"debounce": 2}), "/debounce"),
            (json!({"debounce": "2s", "key": null}), "/debounce"),
            (json!({"on_duplicate": "replace", "key": null}), "/on_duplicate"),
            (json!({"unique_until": "claimed", "key": null}), "/unique_until"),
            (json!({"unique_until": "started"}), "/unique_until"),
            (json!({"on_duplicate": "drop"}), "/on_duplicate"),
        ] {
            let answer = submit(&api, "1", more.clone()).await;
            assert_eq!((answer.status, answer.blamed()), (422, vec![blamed]), "{more}");
            let mut job = json!({"kind": "index", "payload": 1, "key": "page-7"});
            job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let batch = json!({"jobs": [{"kind": "index", "payload": 1}, job]});
            let answer = api.post("/v1/jobs/batch", &batch.to_string()).await;
            assert_eq!((answer.status, answer.blamed()), (422, vec![&*format!("/jobs/1{blamed}")]));
        }
        assert_eq!(api.count().await, 0);
        let body = r#"{"kind":"index","payload":1,"debounce":"2s"}"#;
        let request = api.request(Method::POST, "/v1/jobs").header("Idempotency-Key", "page-7");
        assert_eq!(
            Answer::of(request.body(body.to_owned())).await.status,
            201,
            "the header is the key"
        );
    })
    .await;
}

#[tokio::test]
async fn a_wrong_follow_up_costs_its_parent_nothing() {
    served(with_workers(), async |api| {
        submit(&api, "1", json!({})).await;
        let claimed = claim(&api).await;
        let (holder, job) = (&claimed["holder"], &claimed["jobs"][0]);
        let settle = async |follow_up: Value| {
            let result = json!({"id": job["id"], "fence": job["fence"], "verdict": "done", "submit": [follow_up]});
            let request = json!({"holder": holder, "results": [result]});
            api.post("/v1/workers/settle", &request.to_string()).await
        };
        let wrong = settle(json!({"kind": "index", "payload": "2", "debounce": "2s"})).await;
        assert_eq!((wrong.status, wrong.blamed()), (422, vec!["/results/0/submit/0/debounce"]));
        let next = json!({"kind": "index", "payload": "2", "key": "page-7", "debounce": "1h"});
        let settled = settle(next).await;
        assert_eq!(settled.body["results"][0]["state"], json!("succeeded"));
        let found = api.get("/v1/jobs?key=page-7&kind=index").await;
        assert_eq!(found.body["items"][0]["parent"], job["id"]);
    })
    .await;
}
