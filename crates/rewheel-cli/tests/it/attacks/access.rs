//! Tests callers that try to do more than their token allows.

use super::server::{Attack, Server};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

const CONFIG: &str = "[kinds.mail]\nrunner = \"worker\"\n";

/// Submits a delayed job, and returns its id.
async fn submit(server: &Server, token: &str, more: &str) -> String {
    let body = format!(r#"{{"kind":"mail","payload":1,"delay":"1h"{more}}}"#);
    let answer = server.send_as(Some(token), "POST", "/v1/jobs", &body).await;
    answer.ok()["id"].as_str().unwrap().to_owned()
}

async fn get(server: &Server, token: &str, path: &str) -> Value {
    server.send_as(Some(token), "GET", path, "").await.ok()
}

/// Reads a list to its end; returns the ids and all cursors.
async fn read_all(server: &Server, token: &str, path: &str) -> (Vec<String>, Vec<String>) {
    let (mut ids, mut cursors): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    loop {
        let cursor = cursors.last().map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
        let page = get(server, token, &format!("{path}?limit=1{cursor}")).await;
        let items = page["items"].as_array().unwrap().iter();
        ids.extend(items.map(|item| item["id"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(next) => cursors.push(next.to_owned()),
            None => return (ids, cursors),
        }
        assert!(cursors.len() < 100, "{path} never ends");
    }
}

pub(crate) async fn a_cursor_tells_nothing_of_other_tenants(attack: Attack) {
    let server = attack.serve(CONFIG).await;
    let admin = server.token(None, r#"{"name":"ops","roles":["admin"]}"#).await;
    let mut tokens = Vec::new();
    for tenant in ["shop", "bank"] {
        let body = json!({"name": tenant, "roles": ["submit", "operate"], "tenant": tenant});
        tokens.push(server.token(Some(&admin), &body.to_string()).await);
    }
    let (shop, bank) = (&tokens[0], &tokens[1]);
    let (mut own, mut others) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        own.push(submit(&server, shop, "").await);
        others.push(submit(&server, bank, "").await);
        for (token, ids) in [(shop, &mut own), (bank, &mut others)] {
            let order = r#"{"filter":{"kind":"mail"},"rate":"1/h"}"#;
            let ordered = server.send_as(Some(token), "POST", "/v1/jobs/pause", order).await;
            assert_eq!(ordered.status, 202, "{ordered:?}");
            ids.push(ordered.json()["id"].as_str().unwrap().to_owned());
        }
    }
    for path in ["/v1/jobs", "/v1/operations"] {
        let (ids, cursors) = read_all(&server, shop, path).await;
        assert_eq!(ids.len(), 3, "{path}");
        assert!(ids.iter().all(|id| own.contains(id)), "{path}: {ids:?}");
        for cursor in cursors {
            let told = URL_SAFE_NO_PAD.decode(&cursor).unwrap();
            let told = format!("{cursor} {}", String::from_utf8_lossy(&told));
            for other in &others {
                assert!(!told.contains(other), "{path}: {told}");
            }
        }
        for bad in ["c0193a4b2-7c11-7000-8000-0242ac120002", "!", "MQ", ""] {
            let path = format!("{path}?cursor={bad}");
            let refused = server.send_as(Some(shop), "GET", &path, "").await;
            refused.assert_problem(400, "bad_query");
        }
    }
    // A cursor of one list is not valid for another.
    let next = get(&server, shop, "/v1/jobs?limit=1").await["next"].as_str().unwrap().to_owned();
    let path = format!("/v1/operations?cursor={next}");
    server.send_as(Some(shop), "GET", &path, "").await.assert_problem(400, "bad_query");
}

pub(crate) async fn a_submitter_who_repeats_a_key_learns_nothing_new(attack: Attack) {
    let server = attack.serve(CONFIG).await;
    let admin = server.token(None, r#"{"name":"ops","roles":["admin"]}"#).await;
    let ci = server.token(Some(&admin), r#"{"name":"ci","roles":["submit"]}"#).await;
    let body = r#"{"kind":"mail","payload":{"to":"ada"},"key":"order-17"}"#;
    let first = server.send_as(Some(&ci), "POST", "/v1/jobs", body).await;
    assert_eq!(first.status, 201, "{first:?}");
    let claim = json!({"holder": null, "name": "w", "kinds": ["mail"], "max": 1, "wait": "20s"});
    let claimed =
        server.send_as(Some(&admin), "POST", "/v1/workers/claim", &claim.to_string()).await.ok();
    let result = json!({
        "id": claimed["jobs"][0]["id"], "fence": claimed["jobs"][0]["fence"], "verdict": "dead",
        "message": "customer Ada owes 17 euros",
    });
    let settle = json!({"holder": claimed["holder"], "results": [result]}).to_string();
    server.send_as(Some(&admin), "POST", "/v1/workers/settle", &settle).await.ok();

    let again = server.send_as(Some(&ci), "POST", "/v1/jobs", body).await;
    assert_eq!(again.status, 200, "{again:?}");
    let told = again.json();
    assert_eq!((&told["id"], &told["duplicate"]), (&first.json()["id"], &json!(true)));
    assert_eq!((&told["kind"], &told["key"]), (&json!("mail"), &json!("order-17")));
    for secret in ["attempts", "audit", "payload", "failure", "holder"] {
        assert!(told.get(secret).is_none(), "{secret}: {told}");
    }
    assert!(!again.text.contains("Ada owes"), "{again:?}");
    // A token with the role `read` gets the job.
    let both = r#"{"name":"both","roles":["submit","read"]}"#;
    let both = server.token(Some(&admin), both).await;
    let seen = server.send_as(Some(&both), "POST", "/v1/jobs", body).await.ok();
    assert_eq!(seen["failure"]["message"], "customer Ada owes 17 euros");
}

pub(crate) async fn no_token_rewrites_an_operation(attack: Attack) {
    let server = attack.serve(CONFIG).await;
    let admin = server.token(None, r#"{"name":"ops","roles":["admin"]}"#).await;
    let operator = server.token(Some(&admin), r#"{"name":"eve","roles":["operate"]}"#).await;
    submit(&server, &admin, "").await;
    submit(&server, &admin, "").await;
    let order = r#"{"filter":{"kind":"mail"},"rate":"1/h"}"#;
    let ordered = server.send_as(Some(&admin), "POST", "/v1/jobs/pause", order).await.ok();
    let id = ordered["id"].as_str().unwrap();
    let forged = r#"{"payload":{"verb":"cancel","by":"token:ops","filter":{}}}"#;
    for token in [&operator, &admin] {
        let path = format!("/v1/jobs/{id}");
        let edit = server.send_as(Some(token), "PATCH", &path, forged).await;
        edit.assert_problem(403, "forbidden");
        for verb in ["pause", "resume", "retry", "cancel"] {
            let path = format!("/v1/jobs/{id}/{verb}");
            server.send_as(Some(token), "POST", &path, "").await.assert_problem(403, "forbidden");
        }
        for verb in ["pause", "resume", "retry", "cancel", "redrive"] {
            let order = r#"{"filter":{"kind":"rewheel.operation"}}"#;
            let path = format!("/v1/jobs/{verb}");
            let refused = server.send_as(Some(token), "POST", &path, order).await;
            refused.assert_problem(422, "invalid_field");
            assert_eq!(refused.json()["errors"][0]["field"], "/filter/kind");
        }
    }
    // A bulk request for all jobs must not change operations.
    let all = server.send_as(Some(&operator), "POST", "/v1/jobs/cancel", r#"{"all":true}"#).await;
    let all = all.ok()["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/operations/{all}");
    server
        .until("all is cancelled", async || get(&server, &operator, &path).await["state"] == "done")
        .await;
    let shown = get(&server, &operator, &format!("/v1/operations/{id}")).await;
    assert_eq!((&shown["state"], &shown["by"]), (&json!("running"), &json!("token:ops")));
    let job = get(&server, &operator, &format!("/v1/jobs/{id}")).await;
    let edits = job["audit"].as_array().unwrap().iter().filter(|entry| entry["what"] == "edit");
    assert_eq!(edits.count(), 0, "{job}");
    let abort = format!("/v1/operations/{id}/abort");
    server.send_as(Some(&operator), "POST", &abort, "").await.ok();
    let path = format!("/v1/operations/{id}");
    server
        .until("it is aborted", async || get(&server, &operator, &path).await["state"] == "aborted")
        .await;
}

pub(crate) async fn secrets_are_kept_and_not_sent_elsewhere(attack: Attack) {
    let server = attack.serve(CONFIG).await;
    let callback = json!({
        "url": "https://pay.example/hook", "headers": {"x-key": "hunter2"}, "secrets": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
    });
    let settings = json!({"runner": "callback", "callback": callback}).to_string();
    server.send("PUT", "/v1/kinds/hook", &settings).await.ok();
    let shown = server.send("GET", "/v1/kinds/hook", "").await;
    assert!(!shown.text.contains("hunter2") && !shown.text.contains("MfKQ9r8G"), "{shown:?}");
    // A response can be sent back, and keeps the masked secrets.
    let shown = shown.ok();
    let again = server.send("PUT", "/v1/kinds/hook", &shown["settings"].to_string()).await.ok();
    assert_eq!(again, shown);
    let log = server.send("GET", "/v1/audit?what=put%20kind&kind=hook", "").await.ok();
    assert_eq!(log["items"].as_array().unwrap().len(), 1, "nothing was changed: {log}");
    // A caller that may not read a secret cannot have it sent to another host.
    let mut moved = shown["settings"].clone();
    moved["callback"]["url"] = "https://evil.example/".into();
    for (method, body) in [
        ("PUT", moved.to_string()),
        ("PATCH", json!({"callback": {"url": "https://evil.example/"}}).to_string()),
    ] {
        let refused = server.send(method, "/v1/kinds/hook", &body).await;
        refused.assert_problem(422, "invalid_field");
        assert_eq!(refused.json()["errors"][0]["field"], "/callback/url");
    }
    // A changed secret is written, although the audit log does not show it.
    let rotated = json!({"callback": {"headers": {"x-key": "hunter3"}}}).to_string();
    server.send("PATCH", "/v1/kinds/hook", &rotated).await.ok();
    let log = server.send("GET", "/v1/audit?what=put%20kind&kind=hook", "").await;
    assert_eq!(log.ok()["items"].as_array().unwrap().len(), 2, "{log:?}");
    assert!(!log.text.contains("hunter"), "{log:?}");
}
