//! Tests schedules over REST.

use super::served::{Answer, Api, config, served};
use reqwest::Method;
use rewheel_core::KindName;
use rewheel_engine::{FollowUp, Schedule};
use rewheel_server::config::Config;
use serde_json::{Value, json};

const NIGHTLY: &str = r#"{"cron":"0 3 * * *","zone":"Europe/Berlin","job":{"kind":"mail","payload":{"of":"sales"},"tenant":"shop"}}"#;

async fn delete(api: &Api, path: &str) -> Answer {
    Answer::of(api.request(Method::DELETE, path)).await
}

#[tokio::test]
async fn a_schedule_is_put_shown_changed_and_deleted() {
    served(config(), async |api| {
        let put = api.put("/v1/schedules/nightly", NIGHTLY).await;
        assert_eq!(put.status, 200, "{put:?}");
        let body = &put.body;
        assert_eq!((&body["cron"], &body["zone"]), (&json!("0 3 * * *"), &json!("Europe/Berlin")));
        assert_eq!((&body["overlap"], &body["catch_up"]), (&json!("skip"), &json!("one")));
        assert_eq!((body["next"].as_array().unwrap().len(), &body["last"]), (5, &Value::Null));
        assert_eq!(
            (&body["fired"], &body["skipped"], &body["missed"]),
            (&json!(0), &json!(0), &json!(0))
        );
        assert_eq!(body["job"]["payload"], json!({"of": "sales"}));
        let shown = api.get("/v1/schedules/nightly").await;
        assert_eq!((shown.status, &shown.body), (200, body));
        assert!(shown.headers.contains_key("etag"));
        let listed = api.get("/v1/schedules").await;
        assert_eq!(listed.body["items"], json!([body]));

        let paused = api.post("/v1/schedules/nightly/pause", "").await;
        assert_eq!((&paused.body["paused"], &paused.body["next"]), (&json!(true), &json!([])));
        let stale = api.request(Method::POST, "/v1/schedules/nightly/resume");
        let stale = Answer::of(stale.header("if-match", shown.headers["etag"].clone())).await;
        assert_eq!((stale.status, stale.problem()), (412, "version_changed"));
        let resumed = api.post("/v1/schedules/nightly/resume", "").await;
        assert_eq!((&resumed.body["paused"], resumed.status), (&json!(false), 200));

        let removed = delete(&api, "/v1/schedules/nightly").await;
        assert_eq!((removed.status, &removed.body["name"]), (200, &json!("nightly")));
        for path in ["", "/pause", "/resume", "/fire"] {
            let path = format!("/v1/schedules/nightly{path}");
            let gone = if path.ends_with("nightly") {
                api.get(&path).await
            } else {
                api.post(&path, "").await
            };
            assert_eq!((gone.status, gone.problem()), (404, "not_found"), "{path}");
        }
        assert_eq!(delete(&api, "/v1/schedules/nightly").await.status, 404);
        // The name is free.
        assert_eq!(api.put("/v1/schedules/nightly", NIGHTLY).await.status, 200);
    })
    .await;
}

#[tokio::test]
async fn a_schedule_fired_by_hand_submits_its_job() {
    served(config(), async |api| {
        api.put("/v1/schedules/nightly", NIGHTLY).await;
        let fired = api.post("/v1/schedules/nightly/fire", "").await;
        assert_eq!(fired.status, 201, "{fired:?}");
        let id = fired.body["id"].as_str().unwrap();
        let job = api.get(&format!("/v1/jobs/{id}")).await.body;
        assert_eq!((&job["kind"], &job["tenant"]), (&json!("mail"), &json!("shop")));
        assert!(job["instant"].is_string(), "{job}");
        let listed = api.get("/v1/jobs?schedule=nightly").await.body;
        assert_eq!(
            (listed["items"].as_array().unwrap().len(), &listed["items"][0]["id"]),
            (1, &json!(id))
        );
        let unknown = api.get("/v1/jobs?schedule=weekly").await;
        assert_eq!((unknown.status, unknown.problem()), (404, "not_found"));
        // The job of the schedule itself is changed by name only.
        let schedule =
            api.get("/v1/schedules/nightly").await.body["id"].as_str().unwrap().to_owned();
        let cancelled = api.post(&format!("/v1/jobs/{schedule}/cancel"), "").await;
        assert_eq!(cancelled.status, 403, "{cancelled:?}");
    })
    .await;
}

#[tokio::test]
async fn a_worker_and_a_schedule_of_a_second_meet() {
    served(config(), async |api| {
        let kind = api.put("/v1/kinds/report", r#"{"runner":"worker"}"#).await;
        assert_eq!(kind.status, 200);
        let body = r#"{"every":"1s","overlap":"allow","job":{"kind":"report","payload":{}}}"#;
        assert_eq!(api.put("/v1/schedules/tick", body).await.status, 200);
        let claim = r#"{"holder":null,"name":"w","kinds":["report"],"max":1,"wait":"20s"}"#;
        let claimed = api.post("/v1/workers/claim", claim).await;
        let job = &claimed.body["jobs"][0];
        assert!(job["instant"].as_str().unwrap().ends_with(".000Z"), "{claimed:?}");
        let shown = api.get("/v1/schedules/tick").await.body;
        assert!(
            shown["fired"].as_u64().unwrap() > 0 && shown["last"]["instant"].is_string(),
            "{shown}"
        );
    })
    .await;
}

#[track_caller]
fn check(answer: &Answer, code: &str, fields: &[&str]) {
    assert_eq!((answer.status, answer.problem()), (422, code), "{answer:?}");
    assert_eq!(answer.blamed(), fields, "{answer:?}");
}

#[tokio::test]
async fn what_is_wrong_is_named_and_not_stored() {
    served(config(), async |api| {
        let job = r#""job":{"kind":"mail","payload":1}"#;
        for (body, code, fields) in [
            (format!(r#"{{"cron":"0 3 31 2 *",{job}}}"#), "invalid_field", &["/cron"][..]),
            (format!(r#"{{"cron":"0 3 * *",{job}}}"#), "invalid_field", &["/cron"]),
            (
                format!(r#"{{"cron":"0 3 * * *","zone":"Mars/Base",{job}}}"#),
                "invalid_field",
                &["/zone"],
            ),
            (format!(r#"{{"every":"10ms",{job}}}"#), "invalid_field", &["/every"]),
            (format!(r#"{{"every":"x",{job}}}"#), "invalid_field", &["/every"]),
            (format!(r#"{{"every":"1m","cron":"* * * * *",{job}}}"#), "invalid_field", &["/every"]),
            (format!(r#"{{"every":"1m","zone":"UTC",{job}}}"#), "invalid_field", &["/zone"]),
            (format!(r#"{{{job}}}"#), "invalid_field", &["/cron"]),
            (r#"{"every":"1m"}"#.to_owned(), "invalid_field", &["/job"]),
            (
                r#"{"every":"1m","job":{"kind":"none","payload":1}}"#.to_owned(),
                "unknown_kind",
                &["/job/kind"],
            ),
            (
                r#"{"every":"1m","job":{"kind":"mail"}}"#.to_owned(),
                "invalid_field",
                &["/job/payload"],
            ),
            (
                r#"{"every":"1m","job":{"kind":"mail","payload":1,"key":"k"}}"#.to_owned(),
                "invalid_field",
                &["/job/key"],
            ),
            (
                r#"{"every":"1m","job":{"kind":"mail","payload":1,"due":"2030-01-01T00:00:00Z"}}"#
                    .to_owned(),
                "invalid_field",
                &["/job/due"],
            ),
            (
                r#"{"every":"1m","job":{"kind":"mail","payload":1,"attempts_max":5000}}"#
                    .to_owned(),
                "invalid_field",
                &["/job/attempts_max"],
            ),
            (format!(r#"{{"every":"1m","overlap":"no",{job}}}"#), "invalid_field", &["/overlap"]),
            (
                format!(r#"{{"every":"1m","catch_up":"all",{job}}}"#),
                "invalid_field",
                &["/catch_up"],
            ),
            (format!(r#"{{"every":"1m","evry":"1m",{job}}}"#), "invalid_field", &["/evry"]),
        ] {
            check(&api.put("/v1/schedules/x", &body).await, code, fields);
        }
        let named = api.put("/v1/schedules/X", NIGHTLY).await;
        check(&named, "invalid_field", &["/name"]);
        assert_eq!(api.get("/v1/schedules").await.body["items"], json!([]));
        assert_eq!(api.count().await, 0);
    })
    .await;
}

#[tokio::test]
async fn a_schedule_of_the_config_is_not_changed_by_rest() {
    let job = FollowUp::raw("mail", b"{}".to_vec());
    let schedule = Schedule::cron("0 3 * * *", "UTC", job).unwrap();
    let schedules = [(KindName::parse("nightly").unwrap(), schedule)].into();
    served(Config { schedules, ..config() }, async |api| {
        let shown = api.get("/v1/schedules/nightly").await.body;
        assert_eq!(shown["managed_by_config"], true);
        let put = api.put("/v1/schedules/nightly", NIGHTLY).await;
        assert_eq!((put.status, put.problem()), (409, "managed_by_config"));
        let removed = delete(&api, "/v1/schedules/nightly").await;
        assert_eq!((removed.status, removed.problem()), (409, "managed_by_config"));
        // Operators may still pause and fire it.
        assert_eq!(api.post("/v1/schedules/nightly/pause", "").await.status, 200);
        assert_eq!(api.post("/v1/schedules/nightly/fire", "").await.status, 201);
    })
    .await;
}
