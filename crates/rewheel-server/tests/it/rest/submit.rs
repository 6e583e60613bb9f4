//! Tests submitting single jobs and batches.

use super::served::{Answer, config, served};
use reqwest::Method;
use serde_json::{Value, json};

#[tokio::test]
async fn a_job_is_answered_as_it_is_stored() {
    served(config(), async |api| {
        let body = r#"{"kind":"mail","payload":{"to" : "a"},"key":"k","tenant":"t","priority":9,
            "delay":"1h","attempts_max":3,"attempt_timeout":"5s","backoff":"fixed 1s"}"#;
        let answer = api.post("/v1/jobs", body).await;
        assert_eq!((answer.status, &answer.body["duplicate"]), (201, &json!(false)));
        let id = answer.body["id"].as_str().unwrap();
        let shown = api.get(&format!("/v1/jobs/{id}")).await;
        assert_eq!(shown.status, 200);
        assert_eq!(shown.headers["etag"], "\"1\"");
        let mut submitted = answer.body.clone();
        submitted.as_object_mut().unwrap().remove("duplicate");
        // The reason for waiting is only computed when the job is read.
        assert_eq!(submitted["held_because"], Value::Null);
        let held = &shown.body["held_because"];
        assert_eq!((&held["reason"], &held["until"]), (&json!("no_runner"), &Value::Null));
        submitted["held_because"] = held.clone();
        assert_eq!(shown.body, submitted);
        assert_eq!(
            (&shown.body["state"], &shown.body["attempt"]),
            (&json!("scheduled"), &json!(0))
        );
        let names: Vec<_> = shown.body.as_object().unwrap().keys().map(String::as_str).collect();
        for name in [
            "payload",
            "shard_key",
            "takeovers",
            "fence",
            "holder",
            "version",
            "deadline",
            "due_because",
            "held_because",
            "created",
            "finished",
            "failure",
            "result",
            "result_dropped",
            "attempts",
            "audit",
        ] {
            assert!(names.contains(&name), "{name} is missing");
        }
    })
    .await;
}

#[tokio::test]
async fn the_same_key_finds_the_same_job() {
    served(config(), async |api| {
        let body = r#"{"kind":"mail","payload":1,"key":"order-17"}"#;
        let first = api.post("/v1/jobs", body).await;
        let second = api.post("/v1/jobs", body).await;
        assert_eq!((second.status, &second.body["duplicate"]), (200, &json!(true)));
        assert_eq!(second.body["id"], first.body["id"]);
        let other = api.post("/v1/jobs", r#"{"kind":"mail","payload":2,"key":"order-17"}"#).await;
        assert_eq!((other.status, other.problem()), (409, "key_reused"));
        assert_eq!(other.blamed(), ["/key"]);
        assert_eq!(api.count().await, 1);
    })
    .await;
}

#[tokio::test]
async fn the_header_is_the_key_where_the_body_has_none() {
    served(config(), async |api| {
        let send = async |header: &str, body: &str| {
            let request = api.request(Method::POST, "/v1/jobs").header("Idempotency-Key", header);
            Answer::of(request.body(body.to_owned())).await
        };
        let first = send("a", r#"{"kind":"mail","payload":1}"#).await;
        assert_eq!((first.status, &first.body["key"]), (201, &json!("a")));
        assert_eq!(send("a", r#"{"kind":"mail","payload":1,"key":"a"}"#).await.status, 200);
        let differs = send("a", r#"{"kind":"mail","payload":1,"key":"b"}"#).await;
        assert_eq!((differs.status, differs.blamed()), (422, vec!["/key"]));
        let quoted = send("\"a\"", r#"{"kind":"mail","payload":1}"#).await;
        assert_eq!((quoted.status, &quoted.body["id"]), (200, &first.body["id"]));
        let escaped = send(r#""a \"b\" \\ c, d""#, r#"{"kind":"mail","payload":1}"#).await;
        assert_eq!((escaped.status, &escaped.body["key"]), (201, &json!(r#"a "b" \ c, d"#)));
        assert_eq!(api.count().await, 2);
        let long = "k".repeat(256);
        for bad in [r#""a"#, r#"a""#, r#""a\n""#, r#""""#, "", "a, b", "a b", r#""a";b=1"#, &long] {
            let answer = send(bad, r#"{"kind":"mail","payload":1}"#).await;
            assert_eq!((answer.status, answer.problem()), (400, "bad_query"), "{bad}");
            let detail = answer.body["detail"].as_str().unwrap();
            assert!(detail.contains("Idempotency-Key"), "{detail}");
        }
        let twice = api.request(Method::POST, "/v1/jobs").header("Idempotency-Key", "a");
        let twice = twice.header("Idempotency-Key", "a").body(r#"{"kind":"mail","payload":1}"#);
        let twice = Answer::of(twice).await;
        assert_eq!((twice.status, twice.problem()), (400, "bad_query"));
        assert_eq!(api.count().await, 2);
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_stored_is_refused_by_name() {
    served(config(), async |api| {
        let cases = [
            (r#"{"kind":"post","payload":1}"#, 422, "unknown_kind", "/kind"),
            (r#"{"kind":"mail","payload":1,"priority":10}"#, 422, "invalid_field", "/priority"),
            (r#"{"kind":"mail","payload":1,"delay":"-1s"}"#, 422, "invalid_field", "/delay"),
            (r#"{"kind":"mail","payload":1,"colour":1}"#, 422, "invalid_field", "/colour"),
            (
                r#"{"kind":"mail","payload":1,"deadline":"2001-01-01T00:00:00Z"}"#,
                422,
                "invalid_field",
                "/deadline",
            ),
        ];
        for (body, status, code, field) in cases {
            let answer = api.post("/v1/jobs", body).await;
            assert_eq!((answer.status, answer.problem()), (status, code), "{body}");
            assert_eq!(answer.blamed(), [field], "{body}");
        }
        for broken in ["", "{", "[]", "{\"kind\":\"mail\",\"payload\":}", "\"text\""] {
            let answer = api.post("/v1/jobs", broken).await;
            assert_eq!((answer.status, answer.problem()), (400, "bad_json"), "{broken:?}");
        }
        assert_eq!(api.count().await, 0);
    })
    .await;
}

#[tokio::test]
async fn a_payload_may_be_as_large_as_the_limit() {
    let mut config = config();
    config.engine.payload_bytes_max = 1_000;
    served(config, async |api| {
        let of =
            |bytes: usize| format!(r#"{{"kind":"mail","payload":"{}"}}"#, "x".repeat(bytes - 2));
        assert_eq!(api.post("/v1/jobs", &of(1_000)).await.status, 201);
        let larger = api.post("/v1/jobs", &of(1_001)).await;
        assert_eq!((larger.status, larger.problem()), (413, "too_large"));
        assert_eq!(larger.blamed(), ["/payload"]);
        let huge = api.post("/v1/jobs", &of(3_000_000)).await;
        assert_eq!((huge.status, huge.problem()), (413, "too_large"));
        assert_eq!(huge.blamed(), ["/payload"]);
        assert_eq!(api.count().await, 1);
    })
    .await;
}

const MIXED: &str = r#"{"jobs":[{"kind":"mail","payload":1},{"kind":"mail","payload":1,"priority":10},
    {"kind":"post","payload":1},{"kind":"mail","payload":2,"key":"k"},
    {"kind":"mail","payload":2,"key":"k"}]}"#;

#[tokio::test]
async fn a_batch_is_stored_as_a_whole() {
    served(config(), async |api| {
        let jobs = vec![json!({"kind": "mail", "payload": 1}); 2_000];
        let answer = api.post("/v1/jobs/batch", &json!({ "jobs": jobs }).to_string()).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        let results = answer.body["results"].as_array().unwrap();
        assert_eq!(results.len(), 2_000);
        assert!(results.iter().all(|result| result["duplicate"] == false));
        let id = results[7]["id"].as_str().unwrap();
        assert_eq!(api.get(&format!("/v1/jobs/{id}")).await.status, 200);
    })
    .await;
}

#[tokio::test]
async fn a_batch_with_a_bad_entry_is_not_stored_at_all() {
    served(config(), async |api| {
        let answer = api.post("/v1/jobs/batch", MIXED).await;
        assert_eq!((answer.status, answer.problem()), (422, "invalid_field"));
        assert_eq!(answer.blamed(), ["/jobs/1/priority"]);
        let refused = r#"{"jobs":[{"kind":"mail","payload":1},{"kind":"post","payload":1}]}"#;
        let answer = api.post("/v1/jobs/batch", refused).await;
        assert_eq!((answer.status, answer.problem()), (422, "unknown_kind"));
        assert_eq!(answer.blamed(), ["/jobs/1/kind"]);
        let headed = api.request(Method::POST, "/v1/jobs/batch").header("idempotency-key", "k");
        let headed = Answer::of(headed.body(r#"{"jobs":[]}"#)).await;
        assert_eq!((headed.status, headed.blamed()), (422, vec!["/jobs"]));
        assert_eq!(api.count().await, 0);
    })
    .await;
}

#[tokio::test]
async fn a_partial_batch_stores_what_it_can() {
    served(config(), async |api| {
        let answer = api.post("/v1/jobs/batch?partial=true", MIXED).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let results = answer.body["results"].as_array().unwrap();
        let code = |place: usize| results[place]["problem"]["code"].as_str();
        assert_eq!(
            (code(0), code(1), code(2)),
            (None, Some("invalid_field"), Some("unknown_kind"))
        );
        assert_eq!(results[2]["problem"]["errors"][0]["field"], "/jobs/2/kind");
        let id = &results[1]["problem"]["request_id"];
        assert_eq!(*id, Value::from(answer.headers["x-request-id"].to_str().unwrap()));
        assert_eq!(
            (&results[3]["duplicate"], &results[4]["duplicate"]),
            (&json!(false), &json!(true))
        );
        assert_eq!(results[3]["id"], results[4]["id"]);
        assert_eq!(api.count().await, 2);
    })
    .await;
}
