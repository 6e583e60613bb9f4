//! Tests requests whose effect could surprise an operator.

use super::server::{Answer, Attack, Server};
use serde_json::{Value, json};

const CONFIG: &str = "[kinds.mail]\nrunner = \"worker\"\n";

async fn submit(server: &Server, more: &str) -> String {
    let body = format!(r#"{{"kind":"mail","payload":1,"delay":"1h"{more}}}"#);
    server.send("POST", "/v1/jobs", &body).await.ok()["id"].as_str().unwrap().to_owned()
}

async fn get(server: &Server, path: &str) -> Value {
    server.send("GET", path, "").await.ok()
}

async fn ids(server: &Server, path: &str) -> Vec<String> {
    let page = get(server, path).await;
    let items = page["items"].as_array().unwrap().iter();
    items.map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

/// Sends a request with `If-Match`.
async fn send_if(server: &Server, method: &str, path: &str, tag: &str, body: &str) -> Answer {
    let request = server.client.request(method.parse().unwrap(), format!("{}{path}", server.url));
    let request = request.header("if-match", tag).body(body.to_owned());
    Answer::of(request.send().await.unwrap()).await
}

fn etag(answer: &Answer) -> String {
    answer.headers["etag"].to_str().unwrap().to_owned()
}

pub(crate) async fn an_order_for_everything_must_say_so(attack: Attack) {
    let server = attack.serve(CONFIG).await;
    let job = submit(&server, r#","tenant":"shop""#).await;
    let empty = [
        ("{}", "/filter"),
        (r#"{"filter":null}"#, "/filter"),
        (r#"{"filter":{}}"#, "/filter"),
        (r#"{"filter":{"q":""}}"#, "/filter/q"),
        (r#"{"filter":{"q":"-"}}"#, "/filter"),
        (r#"{"filter":{"kind":[]}}"#, "/filter/kind"),
        (r#"{"filter":{"state":[]}}"#, "/filter/state"),
        (r#"{"filter":{"tenant":""}}"#, "/filter/tenant"),
        (r#"{"filter":{"key":""}}"#, "/filter/key"),
        (r#"{"filter":{"created_after":"1970-01-01T00:00:00Z"}}"#, "/filter"),
        (r#"{"filter":{"created_before":"2150-01-01T00:00:00Z"}}"#, "/filter"),
        (r#"{"filter":{"kind":"mail"},"all":true}"#, "/all"),
    ];
    for verb in ["cancel", "pause", "resume", "retry", "redrive"] {
        for (body, field) in empty {
            let refused = server.send("POST", &format!("/v1/jobs/{verb}"), body).await;
            refused.assert_problem(422, "invalid_field");
            assert_eq!(refused.json()["errors"][0]["field"], field, "{verb} {body}");
        }
    }
    for name in ["q", "kind", "state", "tenant", "key", "category", "due_after"] {
        let refused = server.send("GET", &format!("/v1/jobs?{name}="), "").await;
        refused.assert_problem(400, "bad_query");
        assert_eq!(refused.json()["errors"][0]["field"], format!("/{name}"));
    }
    assert_eq!(get(&server, &format!("/v1/jobs/{job}")).await["state"], "scheduled");
    assert_eq!(ids(&server, "/v1/operations").await, Vec::<String>::new());
}

pub(crate) async fn everything_is_changed_where_it_is_said(attack: Attack) {
    let server = attack.serve(CONFIG).await;
    let admin = server.token(None, r#"{"name":"ops","roles":["admin"]}"#).await;
    let shop = r#"{"name":"shop","roles":["submit","operate"],"tenant":"shop"}"#;
    let shop = server.token(Some(&admin), shop).await;
    for (token, count) in [(&shop, 2), (&admin, 3)] {
        for _ in 0..count {
            let body = r#"{"kind":"mail","payload":1,"delay":"1h"}"#;
            server.send_as(Some(token), "POST", "/v1/jobs", body).await.ok();
        }
    }
    // A dry run needs no confirmation.
    for (token, count) in [(&shop, 2), (&admin, 5)] {
        for body in [r#"{"filter":{},"dry_run":true}"#, r#"{"all":true,"dry_run":true}"#] {
            let preview = server.send_as(Some(token), "POST", "/v1/jobs/cancel", body).await.ok();
            assert_eq!(preview["count"], count, "{body}");
        }
    }
    // With a token bound to a tenant, "all" means all jobs of that tenant.
    let ordered = server.send_as(Some(&shop), "POST", "/v1/jobs/cancel", r#"{"all":true}"#).await;
    let path = format!("/v1/operations/{}", ordered.ok()["id"].as_str().unwrap());
    let state = async |token: &str| server.send_as(Some(token), "GET", &path, "").await.ok();
    server
        .until("the tenant's are cancelled", async || state(&shop).await["state"] == "done")
        .await;
    assert_eq!(state(&shop).await["done"], 2);
    let left = server.send_as(Some(&admin), "GET", "/v1/jobs?kind=mail&state=scheduled", "").await;
    assert_eq!(left.ok()["items"].as_array().unwrap().len(), 3);
}

pub(crate) async fn a_key_leads_to_its_job(attack: Attack) {
    let server = attack.serve(CONFIG).await;
    server.send("PUT", "/v1/kinds/parcel", "{}").await.ok();
    let plain = submit(&server, r#","key":"order 17/ä""#).await;
    let acme = submit(&server, r#","key":"order 17/ä","tenant":"acme""#).await;
    submit(&server, r#","key":"order 17""#).await;
    let body = r#"{"kind":"parcel","payload":1,"delay":"1h","key":"order 17/ä"}"#;
    let parcel =
        server.send("POST", "/v1/jobs", body).await.ok()["id"].as_str().unwrap().to_owned();
    let key = "order%2017%2F%C3%A4";
    let found = async |query: &str| {
        let mut found = ids(&server, &format!("/v1/jobs?key={key}{query}")).await;
        found.sort();
        found
    };
    let sorted = |mut ids: Vec<&String>| {
        ids.sort();
        ids.into_iter().cloned().collect::<Vec<_>>()
    };
    assert_eq!(found("").await, sorted(vec![&plain, &acme, &parcel]));
    assert_eq!(found("&kind=mail").await, sorted(vec![&plain, &acme]));
    assert_eq!(found("&kind=mail&tenant=acme").await, sorted(vec![&acme]));
    assert_eq!(found("&tenant=acme").await, sorted(vec![&acme]));
    assert_eq!(found("&state=dead").await, Vec::<String>::new());
    assert_eq!(ids(&server, "/v1/jobs?key=order").await, Vec::<String>::new());
    server.send("POST", &format!("/v1/jobs/{plain}/cancel"), "").await.ok();
    assert_eq!(found("&kind=mail&state=cancelled").await, sorted(vec![&plain]));
    // The tenant of a token counts.
    let admin = server.token(None, r#"{"name":"ops","roles":["admin"]}"#).await;
    let body = r#"{"name":"acme","roles":["read"],"tenant":"acme"}"#;
    let bound = server.token(Some(&admin), body).await;
    let page = server.send_as(Some(&bound), "GET", &format!("/v1/jobs?key={key}"), "").await.ok();
    let items = page["items"].as_array().unwrap();
    assert_eq!((items.len(), &items[0]["id"]), (1, &json!(acme)));
}

pub(crate) async fn a_stale_change_is_refused_by_every_verb(attack: Attack) {
    let server = attack.serve(CONFIG).await;
    let id = submit(&server, "").await;
    let path = format!("/v1/jobs/{id}");
    let old = etag(&server.send("GET", &path, "").await);
    let edited = send_if(&server, "PATCH", &path, &old, r#"{"priority":9}"#).await;
    assert_eq!(edited.status, 200, "{edited:?}");
    let edit = send_if(&server, "PATCH", &path, &old, r#"{"priority":1}"#).await;
    edit.assert_problem(412, "version_changed");
    for verb in ["pause", "resume", "retry", "cancel"] {
        let verb = format!("{path}/{verb}");
        send_if(&server, "POST", &verb, &old, "").await.assert_problem(412, "version_changed");
        send_if(&server, "POST", &verb, "x", "").await.assert_problem(400, "bad_query");
    }
    let shown = server.send("GET", &path, "").await;
    assert_eq!((&shown.json()["state"], etag(&shown)), (&json!("scheduled"), etag(&edited)));
    let mut tag = etag(&shown);
    for verb in ["pause", "resume", "retry", "cancel"] {
        let changed = send_if(&server, "POST", &format!("{path}/{verb}"), &tag, "").await;
        assert_eq!(changed.status, 200, "{verb}: {changed:?}");
        tag = etag(&changed);
    }
}

pub(crate) async fn a_stale_change_of_a_kind_is_refused(attack: Attack) {
    let server = attack.serve(CONFIG).await;
    let path = "/v1/kinds/hook";
    send_if(&server, "PUT", path, "*", "{}").await.assert_problem(412, "version_changed");
    let put = server.send("PUT", path, "{}").await;
    put.ok();
    let old = etag(&put);
    assert_eq!(etag(&server.send("GET", path, "").await), old);
    let changed = send_if(&server, "PUT", path, &old, r#"{"attempts_max":3}"#).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    for (method, more, body) in [
        ("PUT", "", r#"{"attempts_max":4}"#),
        ("PATCH", "", r#"{"attempts_max":4}"#),
        ("DELETE", "", ""),
        ("POST", "/pause", ""),
        ("POST", "/resume", ""),
        ("POST", "/breaker/open", ""),
        ("POST", "/breaker/close", ""),
        ("POST", "/breaker/reset", ""),
    ] {
        let refused = send_if(&server, method, &format!("{path}{more}"), &old, body).await;
        refused.assert_problem(412, "version_changed");
    }
    let shown = server.send("GET", path, "").await;
    assert_eq!(etag(&shown), etag(&changed));
    assert_eq!(
        (&shown.json()["settings"]["attempts_max"], &shown.json()["paused"]),
        (&json!(3), &json!(false))
    );
    let mut tag = etag(&shown);
    for more in ["/pause", "/resume", "/breaker/open", "/breaker/close", "/breaker/reset"] {
        let changed = send_if(&server, "POST", &format!("{path}{more}"), &tag, "").await;
        assert_eq!(changed.status, 200, "{more}: {changed:?}");
        assert_ne!(etag(&changed), tag, "{more}");
        tag = etag(&changed);
    }
    // If several clients write the same version at once, one wins.
    let all = futures(&server, path, &tag).await;
    let won = all.iter().filter(|status| **status == 200).count();
    assert_eq!((won, all.iter().filter(|status| **status == 412).count()), (1, all.len() - 1));
    send_if(&server, "DELETE", path, "*", "").await.ok();
}

/// Writes one version of a kind eight times at once; returns the status of each.
async fn futures(server: &Server, path: &str, tag: &str) -> Vec<u16> {
    let mut writes = tokio::task::JoinSet::new();
    for number in 1..=8 {
        let request = server.client.put(format!("{}{path}", server.url)).header("if-match", tag);
        let request = request.body(format!(r#"{{"attempts_max":{}}}"#, 100 + number));
        writes.spawn(async move { request.send().await.unwrap().status().as_u16() });
    }
    writes.join_all().await
}

/// Reads a list in pages of one, and returns a field of each item.
async fn read_all(server: &Server, path: &str, field: &str) -> Vec<String> {
    let (mut all, mut cursor): (Vec<String>, String) = (Vec::new(), String::new());
    loop {
        let page = get(server, &format!("{path}?limit=1{cursor}")).await;
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 1, "{path}: {page}");
        all.extend(items.iter().map(|item| item[field].to_string()));
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
        assert!(all.len() < 1_000, "{path} never ends");
    }
}

pub(crate) async fn every_list_is_read_to_its_end(attack: Attack) {
    let server = attack.serve(CONFIG).await;
    for name in ["a", "b", "c"] {
        server.send("PUT", &format!("/v1/kinds/{name}"), r#"{"runner":"worker"}"#).await.ok();
        let body = format!(r#"{{"kind":"{name}","payload":1}}"#);
        server.send("POST", "/v1/jobs", &body).await.ok();
        let claim = json!({"holder": null, "name": name, "kinds": [name], "max": 1, "wait": "20s"});
        let claimed = server.send("POST", "/v1/workers/claim", &claim.to_string()).await.ok();
        let result = json!({
            "id": claimed["jobs"][0]["id"], "fence": claimed["jobs"][0]["fence"], "verdict": "dead",
        });
        let settle = json!({"holder": claimed["holder"], "results": [result]}).to_string();
        server.send("POST", "/v1/workers/settle", &settle).await.ok();
        let order = format!(r#"{{"filter":{{"kind":"{name}"}}}}"#);
        server.send("POST", "/v1/jobs/pause", &order).await.ok();
    }
    for (path, field, at_least) in [
        ("/v1/jobs", "id", 6),
        ("/v1/operations", "id", 3),
        ("/v1/incidents", "id", 3),
        ("/v1/kinds", "kind", 5),
        ("/v1/holders", "id", 4),
        ("/v1/audit", "at", 4),
    ] {
        let whole = get(&server, &format!("{path}?limit=1000")).await;
        assert_eq!(whole["next"], Value::Null, "{path}");
        let whole: Vec<String> =
            whole["items"].as_array().unwrap().iter().map(|item| item[field].to_string()).collect();
        assert!(whole.len() >= at_least, "{path}: {whole:?}");
        let paged = read_all(&server, path, field).await;
        // The audit log grows at its beginning while it is read.
        assert_eq!(paged[paged.len() - whole.len()..], whole, "{path}");
        let cut = get(&server, &format!("{path}?limit=2")).await;
        assert!(cut["next"].is_string(), "{path} hides that there is more: {cut}");
        for bad in ["b", "17", "c0193a4b2-7c11-7000-8000-0242ac120002"] {
            let refused = server.send("GET", &format!("{path}?cursor={bad}"), "").await;
            refused.assert_problem(400, "bad_query");
        }
    }
    let admin = server.token(None, r#"{"name":"ops","roles":["admin"]}"#).await;
    for name in ["x", "y"] {
        let body = json!({"name": name, "roles": ["read"]}).to_string();
        server.token(Some(&admin), &body).await;
    }
    let (mut names, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/v1/tokens?limit=1{cursor}");
        let page = server.send_as(Some(&admin), "GET", &path, "").await.ok();
        names.push(page["items"][0]["name"].as_str().unwrap().to_owned());
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(names, ["ops", "x", "y"]);
}

pub(crate) async fn incidents_are_bounded_and_say_so(attack: Attack) {
    let server = attack.serve(CONFIG).await;
    let job = json!({"kind": "mail", "payload": 1, "delay": "1h"});
    let jobs = json!({"jobs": vec![job; 5_000]}).to_string();
    for _ in 0..2 {
        server.send("POST", "/v1/jobs/batch", &jobs).await.ok();
    }
    let exact = get(&server, "/v1/incidents").await;
    assert_eq!((&exact["complete"], &exact["items"]), (&json!(true), &json!([])));
    submit(&server, "").await;
    let cut = get(&server, "/v1/incidents").await;
    assert_eq!(cut["complete"], false, "more rows were read than the bound allows");
    // Many concurrent requests are all served.
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let request = server.client.get(format!("{}/v1/incidents", server.url));
        asking.spawn(async move { request.send().await.unwrap().status().as_u16() });
    }
    assert!(asking.join_all().await.iter().all(|status| *status == 200));
}

pub(crate) async fn kinds_are_patched_and_deleted(attack: Attack) {
    let server = attack.serve(CONFIG).await;
    let settings = r#"{"attempts_max":3,"rate":"5/s","breaker":{"window":7,"open_for":"9s"}}"#;
    server.send("PUT", "/v1/kinds/hook", settings).await.ok();
    let patch = r#"{"rate":null,"breaker":{"window":8},"takeovers_max":2}"#;
    let patched = server.send("PATCH", "/v1/kinds/hook", patch).await.ok();
    let settings = &patched["settings"];
    assert_eq!((&settings["attempts_max"], &settings["takeovers_max"]), (&json!(3), &json!(2)));
    assert_eq!(
        (&settings["breaker"]["window"], &settings["breaker"]["open_for"]),
        (&json!(8), &json!("9s"))
    );
    assert!(settings.get("rate").is_none_or(Value::is_null), "{settings}");
    for (path, body, status, code) in [
        ("/v1/kinds/hook", r#"{"atempts_max":1}"#, 422, "invalid_field"),
        ("/v1/kinds/hook", r#"{"attempts_max":0}"#, 422, "invalid_field"),
        ("/v1/kinds/hook", "[]", 400, "bad_json"),
        ("/v1/kinds/nothing", "{}", 404, "not_found"),
        ("/v1/kinds/mail", "{}", 409, "managed_by_config"),
        ("/v1/kinds/rewheel.operation", "{}", 422, "invalid_field"),
    ] {
        server.send("PATCH", path, body).await.assert_problem(status, code);
    }
    assert_eq!(get(&server, "/v1/kinds/hook").await, patched);

    let body = r#"{"kind":"hook","payload":1,"delay":"1h"}"#;
    let job = server.send("POST", "/v1/jobs", body).await.ok()["id"].as_str().unwrap().to_owned();
    server.send("DELETE", "/v1/kinds/hook", "").await.assert_problem(409, "wrong_state");
    server.send("POST", &format!("/v1/jobs/{job}/pause"), "").await.ok();
    server.send("DELETE", "/v1/kinds/hook", "").await.assert_problem(409, "wrong_state");
    server.send("POST", &format!("/v1/jobs/{job}/cancel"), "").await.ok();
    assert_eq!(server.send("DELETE", "/v1/kinds/hook", "").await.ok()["kind"], "hook");
    server.send("GET", "/v1/kinds/hook", "").await.assert_problem(404, "not_found");
    server.send("DELETE", "/v1/kinds/hook", "").await.assert_problem(404, "not_found");
    server.send("DELETE", "/v1/kinds/mail", "").await.assert_problem(409, "managed_by_config");
    server.send("POST", "/v1/jobs", body).await.assert_problem(422, "unknown_kind");
    assert_eq!(get(&server, &format!("/v1/jobs/{job}")).await["state"], "cancelled");
    let log = get(&server, "/v1/audit?what=delete%20kind").await;
    assert_eq!(log["items"][0]["kind"], "hook");
}
