//! Tests payloads that are hard to store or transmit.

use super::server::Attack;
use serde_json::json;

const CONFIG: &str = "[kinds.mail]\nrunner = \"worker\"\n";

/// Payloads that change when a program parses and serializes them.
const DELICATE: [&str; 7] = [
    "12345678901234567890.123",
    r#"{"a":1,"a":2}"#,
    r#"{"z":1,"a":1.0,"m":1e2}"#,
    r#"{ "spaced" :  [ 1 ,2 ] }"#,
    r#""é 😀 \u0000""#,
    "-0.0",
    "null",
];

pub(crate) async fn reach_workers_byte_for_byte(attack: Attack) {
    let server = attack.serve(CONFIG).await;
    for payload in DELICATE {
        let body = format!(r#"{{"kind":"mail","payload":{payload}}}"#);
        let id =
            server.send("POST", "/v1/jobs", &body).await.ok()["id"].as_str().unwrap().to_owned();
        let claim =
            json!({"holder": null, "name": "w", "kinds": ["mail"], "max": 10, "wait": "20s"});
        let claimed = server.send("POST", "/v1/workers/claim", &claim.to_string()).await;
        let field = format!(r#""payload":{payload}"#);
        assert!(claimed.text.contains(&field), "{payload}: {claimed:?}");
        let shown = server.send("GET", &format!("/v1/jobs/{id}"), "").await;
        assert!(shown.text.contains(&field), "{payload}: {shown:?}");
        for args in [&["jobs", "show", &id, "--json"][..], &["jobs", "show", &id]] {
            let shown = server.run(args);
            let shown = String::from_utf8_lossy(&shown.stdout);
            assert!(shown.contains(payload), "{payload}: {args:?}: {shown}");
        }
    }
}

/// Payloads that some JSON parsers reject: in the response to a claim they would make other jobs unreadable, too.
pub(crate) async fn that_parsers_refuse_do_not_get_in(attack: Attack) {
    let server = attack.serve(CONFIG).await;
    let deep = format!("{}1{}", "[".repeat(300), "]".repeat(300));
    let private = r#"[{"$serde_json::private::RawValue":"x"}]"#;
    for payload in ["1e999", "[1,-1e999]", r#""\ud800""#, private, deep.as_str()] {
        let body = format!(r#"{{"kind":"mail","payload":{payload}}}"#);
        let refused = server.send("POST", "/v1/jobs", &body).await;
        refused.assert_problem(422, "invalid_field");
        assert_eq!(refused.json()["errors"][0]["field"], "/payload", "{refused:?}");
        let batch = server.send("POST", "/v1/jobs/batch", &format!(r#"{{"jobs":[{body}]}}"#)).await;
        batch.assert_problem(422, "invalid_field");
        let id =
            server.send("POST", "/v1/jobs", r#"{"kind":"mail","payload":1,"delay":"1h"}"#).await;
        let path = format!("/v1/jobs/{}", id.ok()["id"].as_str().unwrap());
        let edited = server.send("PATCH", &path, &format!(r#"{{"payload":{payload}}}"#)).await;
        edited.assert_problem(422, "invalid_field");
    }
    let innocent = server.send("POST", "/v1/jobs", r#"{"kind":"mail","payload":"innocent"}"#).await;
    let claim = json!({"holder": null, "name": "w", "kinds": ["mail"], "max": 10, "wait": "20s"});
    let claimed = server.send("POST", "/v1/workers/claim", &claim.to_string()).await.ok();
    assert_eq!(claimed["jobs"][0]["id"], innocent.ok()["id"]);
}
