//! Tests submits that exceed limits.

use super::server::{Attack, Server};
use serde_json::{Value, json};

const CONFIG: &str = "[kinds.mail]\nrunner = \"worker\"\n[kinds.loose]\nrunner = \"worker\"\n\
                      attempts_ceiling = 5000\nattempt_timeout_ceiling = \"2d\"\ndelay_floor = \"0ms\"\n";

fn asking(kind: &str, field: &str) -> String {
    format!(r#"{{"kind":"{kind}","payload":1,{field}}}"#)
}

pub(crate) async fn are_refused_above_the_ceilings(attack: Attack) {
    let server = attack.serve(CONFIG).await;
    for (field, pointer) in [
        (r#""attempts_max":4294967295"#, "/attempts_max"),
        (r#""attempts_max":1001"#, "/attempts_max"),
        (r#""attempt_timeout":"36500d""#, "/attempt_timeout"),
        (r#""attempt_timeout":"61m""#, "/attempt_timeout"),
        (r#""backoff":"fixed 0ms""#, "/backoff"),
        (r#""backoff":"exponential 10s max 1ms""#, "/backoff"),
    ] {
        let answer = server.send("POST", "/v1/jobs", &asking("mail", field)).await;
        answer.assert_problem(422, "invalid_field");
        assert_eq!(answer.json()["errors"][0]["field"], pointer, "{answer:?}");
        let batch = format!(r#"{{"jobs":[{}]}}"#, asking("mail", field));
        let answer = server.send("POST", "/v1/jobs/batch", &batch).await;
        answer.assert_problem(422, "invalid_field");
        assert_eq!(answer.json()["errors"][0]["field"], format!("/jobs/0{pointer}"));
    }
    for field in [r#""attempts_max":5000"#, r#""attempt_timeout":"2d""#, r#""backoff":"fixed 0ms""#]
    {
        server.send("POST", "/v1/jobs", &asking("loose", field)).await.ok();
    }
    let jobs = server.send("GET", "/v1/jobs?kind=mail", "").await.ok();
    assert_eq!(jobs["items"], json!([]), "a refused submit stores nothing");
    let submitted = server.send("POST", "/v1/jobs", r#"{"kind":"mail","payload":1,"delay":"1h"}"#);
    let path = format!("/v1/jobs/{}", submitted.await.ok()["id"].as_str().unwrap());
    let edited = server.send("PATCH", &path, r#"{"attempts_max":1001}"#).await;
    edited.assert_problem(422, "invalid_field");
    server.send("PATCH", &path, r#"{"attempts_max":1000}"#).await.ok();
    let store = ["submit", "mail", "1", "--attempts-max", "1001", "--store", &server.attack.store];
    let ran = server.run_alone(&store);
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(!ran.status.success() && said.contains("attempts_max"), "{said}");
}

/// Runs one attempt of the only job, which fails.
async fn fail_once(server: &Server, holder: &mut Value) -> bool {
    let claim = json!({"holder": holder, "name": "w", "kinds": ["loose"], "max": 1, "wait": "20s"});
    let claimed = server.send("POST", "/v1/workers/claim", &claim.to_string()).await.ok();
    *holder = claimed["holder"].clone();
    let Some(job) = claimed["jobs"].get(0) else { return false };
    let result =
        json!({"id": job["id"], "fence": job["fence"], "verdict": "retry", "message": "no"});
    let settle = json!({"holder": holder, "results": [result]}).to_string();
    server.send("POST", "/v1/workers/settle", &settle).await.ok();
    true
}

pub(crate) async fn leave_a_bounded_history(attack: Attack) {
    let server = attack.serve(CONFIG).await;
    let body = asking("loose", r#""attempts_max":120,"backoff":"fixed 0ms""#);
    let id = server.send("POST", "/v1/jobs", &body).await.ok()["id"].as_str().unwrap().to_owned();
    let mut holder = Value::Null;
    for _ in 0..120 {
        assert!(fail_once(&server, &mut holder).await);
    }
    let job = server.send("GET", &format!("/v1/jobs/{id}"), "").await.ok();
    assert_eq!((&job["state"], &job["attempt"]), (&json!("dead"), &json!(120)));
    let attempts: Vec<u64> = job["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|attempt| attempt["attempt"].as_u64().unwrap())
        .collect();
    let expected: Vec<u64> = (1..=10).chain(31..=120).collect();
    assert_eq!((attempts, &job["attempts_dropped"]), (expected, &json!(20)));
}
