//! Tests results of jobs, and waiting for their end.

use super::served::{Answer, Api, config, served};
use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::post;
use rewheel_core::KindName;
use rewheel_engine::{KindSettings, RunnerKind};
use rewheel_server::config::Config;
use serde_json::{Value, json};
use std::future::IntoFuture;
use std::time::Duration;
use tokio::net::TcpListener;

/// A config with two kinds for workers: the results of one are kept, and only for a moment.
fn with_workers() -> Config {
    let mut config = config();
    config.engine.housekeeping = Duration::from_millis(50);
    let settings =
        KindSettings { runner: RunnerKind::Worker, result: true, ..KindSettings::default() };
    let brief = KindSettings { keep_succeeded: Duration::from_millis(1), ..settings.clone() };
    config.kinds.insert(KindName::parse("parcel").unwrap(), settings);
    config.kinds.insert(KindName::parse("brief").unwrap(), brief);
    config
}

async fn submit(api: &Api, kind: &str) -> String {
    let job = json!({"kind": kind, "payload": 17}).to_string();
    api.post("/v1/jobs", &job).await.body["id"].as_str().unwrap().to_owned()
}

/// Leases the only job of a kind to a new worker, and returns how to settle it.
async fn claimed(api: &Api, kind: &str) -> impl AsyncFn(Value) -> Answer {
    let request = json!({"holder": null, "kinds": [kind], "wait": "5s"}).to_string();
    let claimed = api.post("/v1/workers/claim", &request).await.body;
    async move |result: Value| {
        let (id, fence) = (&claimed["jobs"][0]["id"], &claimed["jobs"][0]["fence"]);
        let mut one = json!({"id": id, "fence": fence, "verdict": "done"});
        one.as_object_mut().unwrap().extend(result.as_object().unwrap().clone());
        let request = json!({"holder": claimed["holder"], "results": [one]}).to_string();
        api.post("/v1/workers/settle", &request).await
    }
}

async fn shown(api: &Api, id: &str) -> Value {
    api.get(&format!("/v1/jobs/{id}")).await.body
}

#[tokio::test]
async fn a_worker_sends_a_result_and_a_client_reads_it() {
    served(with_workers(), async |api| {
        let id = submit(&api, "parcel").await;
        let path = format!("/v1/jobs/{id}/result");
        let early = api.get(&path).await;
        assert_eq!((early.status, early.problem()), (409, "wrong_state"));
        let settle = claimed(&api, "parcel").await;
        for (wrong, field) in [
            (json!({"result": {}}), "/results/0/result/body"),
            (json!({"result": {"body_base64": "%%"}}), "/results/0/result/body_base64"),
            (
                json!({"result": {"body": 1, "body_base64": "AA=="}}),
                "/results/0/result/body_base64",
            ),
            (
                json!({"result": {"body": 1, "content_type": "text/plain"}}),
                "/results/0/result/content_type",
            ),
            (
                json!({"result": {"body": 1, "content_type": "a/b\nx: y"}}),
                "/results/0/result/content_type",
            ),
            (json!({"result": {"body": 1, "type": "a/b"}}), "/results/0/result/type"),
            (json!({"result": {"body": 1}, "verdict": "fail"}), "/results/0/result"),
        ] {
            let answer = settle(wrong).await;
            assert_eq!(answer.status, 422, "{answer:?}");
            assert_eq!(answer.blamed(), [field], "{answer:?}");
            assert_eq!(shown(&api, &id).await["state"], "leased");
        }
        let result = json!({"content_type": "application/json", "body": {"receipt": 17}});
        let settled = settle(json!({"result": result, "code": "paid", "duration": "2s"})).await;
        assert_eq!(settled.body["results"][0]["state"], "succeeded", "{settled:?}");
        let job = shown(&api, &id).await;
        assert_eq!(job["result"], json!({"content_type": "application/json", "bytes": 14}));
        assert_eq!(job["result_dropped"], Value::Null);
        let attempt = &job["attempts"][0];
        let how = (&attempt["decision"], &attempt["code"], &attempt["duration"]);
        assert_eq!(how, (&json!("succeed"), &json!("paid"), &json!("2s")), "{job}");
        assert_eq!((&attempt["category"], &attempt["message"]), (&Value::Null, &Value::Null));

        let got = api.get(&path).await;
        assert_eq!((got.status, &got.body), (200, &json!({"receipt": 17})), "{got:?}");
        assert_eq!(got.headers["content-type"], "application/json");
        assert_eq!(got.headers["x-content-type-options"], "nosniff");
        assert_eq!(got.headers["content-disposition"], "attachment");
        assert_eq!(got.headers["content-security-policy"], "default-src 'none'; sandbox");

        // A repeated settle keeps the first result.
        let again = settle(json!({"result": {"body": "another"}})).await;
        assert_eq!(again.body["results"][0]["state"], "succeeded", "{again:?}");
        assert_eq!(api.get(&path).await.body, json!({"receipt": 17}));
        let listed = api.get("/v1/jobs").await.body;
        assert_eq!(listed["items"][0].get("result"), None, "{listed}");
    })
    .await;
}

#[tokio::test]
async fn a_result_that_is_not_there_says_why() {
    served(with_workers(), async |api| {
        let id = submit(&api, "parcel").await;
        let large = json!({"result": {"body": "x".repeat(65_536)}});
        let settle = claimed(&api, "parcel").await;
        assert_eq!(settle(large).await.body["results"][0]["state"], "succeeded");
        let job = shown(&api, &id).await;
        let why = "the result has 65538 bytes; the limit is 65536";
        assert_eq!((&job["result"], &job["result_dropped"]), (&Value::Null, &json!(why)));
        let gone = api.get(&format!("/v1/jobs/{id}/result")).await;
        assert_eq!((gone.status, gone.problem()), (404, "no_result"));
        assert!(gone.body["detail"].as_str().unwrap().ends_with(why), "{gone:?}");

        let id = submit(&api, "parcel").await;
        claimed(&api, "parcel").await(json!({})).await;
        let none = api.get(&format!("/v1/jobs/{id}/result")).await;
        assert_eq!((none.status, none.problem()), (404, "no_result"));

        let id = submit(&api, "parcel").await;
        claimed(&api, "parcel").await(json!({"verdict": "dead"})).await;
        let dead = api.get(&format!("/v1/jobs/{id}/result")).await;
        assert_eq!((dead.status, dead.problem()), (404, "no_result"));

        let unknown = api.get("/v1/jobs/01930000-0000-7000-8000-000000000000/result").await;
        assert_eq!((unknown.status, unknown.problem()), (404, "not_found"));

        let id = submit(&api, "brief").await;
        claimed(&api, "brief").await(json!({"result": {"body": 1}})).await;
        // Each poll is a round trip, so this does not spin.
        while api.get(&format!("/v1/jobs/{id}")).await.status == 200 {}
        let pruned = api.get(&format!("/v1/jobs/{id}/result")).await;
        assert_eq!((pruned.status, pruned.problem()), (410, "result_pruned"));
    })
    .await;
}

#[tokio::test]
async fn a_read_waits_for_the_end_of_a_job() {
    let mut config = with_workers();
    config.engine.waiters_max = 1;
    served(config, async |api| {
        let id = submit(&api, "parcel").await;
        let settle = claimed(&api, "parcel").await;
        for (wait, status) in [("61s", 400), ("soon", 400), ("1ms", 200), ("0s", 200)] {
            let answer = api.get(&format!("/v1/jobs/{id}?wait={wait}")).await;
            assert_eq!(answer.status, status, "{answer:?}");
        }
        let path = format!("/v1/jobs/{id}?wait=30s");
        let waiting = api.get(&path);
        tokio::pin!(waiting);
        let settles = async {
            // The limit is one waiter: once it waits, the next one is refused.
            loop {
                let refused = api.get(&format!("/v1/jobs/{id}?wait=1ms")).await;
                if refused.status == 429 {
                    assert_eq!(refused.problem(), "throttled");
                    break;
                }
            }
            settle(json!({"result": {"body": 1}})).await
        };
        let (ended, settled) = tokio::join!(&mut waiting, settles);
        assert_eq!(settled.status, 200, "{settled:?}");
        assert_eq!((ended.status, &ended.body["state"]), (200, &json!("succeeded")), "{ended:?}");
        assert_eq!(ended.body["result"]["bytes"], 1);
        // It has ended already.
        assert_eq!(api.get(&path).await.body["state"], "succeeded");
        let unknown = api.get("/v1/jobs/01930000-0000-7000-8000-000000000000?wait=30s").await;
        assert_eq!(unknown.status, 404);
    })
    .await;
}

#[tokio::test]
async fn the_answer_of_a_callback_is_the_result() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let hook = post(|body: String| async move {
        match body.as_str() {
            "1" => ([(CONTENT_TYPE, "text/html; charset=utf-8")], "<b>paid</b>").into_response(),
            "2" => "x".repeat(65_537).into_response(),
            _ => ().into_response(),
        }
    });
    let callee = axum::serve(listener, Router::new().route("/hook", hook)).into_future();
    let test = served(config(), async |api| {
        let settings = json!({
            "runner": "callback", "result": true,
            "callback": {"url": url, "allow": ["127.0.0.0/8"]},
        });
        let put = api.put("/v1/kinds/hook", &settings.to_string()).await;
        assert_eq!((put.status, &put.body["settings"]["result"]), (200, &json!(true)), "{put:?}");
        let run = async |payload: u8| {
            let job = json!({"kind": "hook", "payload": payload}).to_string();
            let job = api.post("/v1/jobs", &job).await.body;
            let id = job["id"].as_str().unwrap().to_owned();
            let ended = api.get(&format!("/v1/jobs/{id}?wait=30s")).await.body;
            assert_eq!(ended["state"], "succeeded", "{ended}");
            assert_eq!(ended["attempts"][0]["code"], "200", "{ended}");
            (ended, api.get(&format!("/v1/jobs/{id}/result")).await)
        };
        let (_, html) = run(1).await;
        assert_eq!((html.status, &html.body), (200, &json!("<b>paid</b>")));
        assert_eq!(html.headers["content-type"], "text/html; charset=utf-8");
        assert_eq!(html.headers["x-content-type-options"], "nosniff");
        let (large, _) = run(2).await;
        assert_eq!(large["result_dropped"], "the result has 65537 bytes; the limit is 65536");
        let (empty, none) = run(3).await;
        assert_eq!((&empty["result"], none.status), (&Value::Null, 404));
    });
    tokio::select! {
        () = test => {}
        _ = callee => unreachable!("the callee outlives the test"),
    }
}

#[tokio::test]
async fn results_need_jobs_that_are_kept() {
    served(config(), async |api| {
        let settings = json!({"runner": "worker", "result": true, "keep_succeeded": "0s"});
        let put = api.put("/v1/kinds/parcel", &settings.to_string()).await;
        assert_eq!((put.status, put.blamed()), (422, vec!["/result"]), "{put:?}");
        assert_eq!(api.get("/v1/kinds/parcel").await.status, 404);
    })
    .await;
}
