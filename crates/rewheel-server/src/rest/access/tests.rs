//! Tests every role on every route against the documentation.

use crate::app::App;
use crate::config::Config;
use crate::rest::router;
use crate::tokens::{make, stored};
use axum::body::Body;
use axum::http::Request;
use rewheel_core::store::{Store, TokenStore};
use rewheel_core::{Actor, TokenRole};
use rewheel_engine::{Engine, KindSettings};
use rewheel_stores::MemoryStore;
use serde_json::Value;
use std::sync::Arc;
use tower::ServiceExt;

const DOCUMENTATION: &str = include_str!("../../../../../docs/auth.md");

/// Returns the rows of the documentation's table: method, path, role, and the scope of a bound
/// token.
fn documented() -> Vec<[&'static str; 4]> {
    let lines = DOCUMENTATION.lines().filter_map(|line| line.strip_prefix("| `"));
    let routes = lines.filter_map(|line| {
        let (route, rest) = line.split_once("` | ")?;
        let (method, path) = route.split_once(' ')?;
        let (role, bound) = rest.trim_end_matches(" |").split_once(" | ")?;
        Some([method, path, role, bound])
    });
    routes.collect()
}

/// A server with its tokens.
struct Guarded {
    app: Arc<App>,
    store: Arc<MemoryStore>,
}

impl Guarded {
    async fn new() -> Guarded {
        let store = Arc::new(MemoryStore::new());
        let app = Arc::new(App::new(Config::default()));
        let engine = Engine::builder(Arc::clone(&store) as Arc<dyn Store>)
            .kind("mail", KindSettings::default())
            .start();
        app.started(engine.await.unwrap());
        Guarded { app, store }
    }

    async fn token(&self, name: &str, roles: &str, tenant: Option<&str>) -> String {
        let roles: Vec<&str> = roles.split(',').collect();
        let body = serde_json::json!({ "name": name, "roles": roles, "tenant": tenant });
        let (new, text) = make(&body.to_string()).unwrap();
        let put = self.store.put_token(&new, &Actor::new("test")).await.unwrap();
        stored(put, &new.name).unwrap();
        self.app.tokens().forget();
        text.reveal().to_owned()
    }

    /// Sends a request, and returns the status and the problem.
    async fn ask(&self, method: &str, path: &str, token: Option<&str>) -> (u16, Value) {
        self.send(method, path, token, "{}").await
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        token: Option<&str>,
        body: &str,
    ) -> (u16, Value) {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        let response = router(Arc::clone(&self.app)).oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        if status == 401 {
            assert_eq!(response.headers()["www-authenticate"], "Bearer realm=\"rewheel\"");
        }
        if response.headers()["content-type"] == "text/event-stream" {
            return (status, Value::Null);
        }
        let body = axum::body::to_bytes(response.into_body(), 10_000_000).await.unwrap();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }
}

fn filled(path: &str) -> String {
    path.replace("{id}", "0193a4b2-7c11-7000-8000-0242ac120002").replace("{kind}", "nothing")
}

/// What a role may do, said another way than in the code.
fn may(own: TokenRole, role: &str) -> bool {
    match own {
        TokenRole::Submit => role == "submit",
        TokenRole::Read => role == "read",
        TokenRole::Work => role == "work",
        TokenRole::Operate => ["read", "operate"].contains(&role),
        TokenRole::Admin => ["submit", "read", "work", "operate", "admin"].contains(&role),
    }
}

#[tokio::test]
async fn every_role_gets_what_it_is_for_on_every_route() {
    let server = Guarded::new().await;
    let mut tokens = Vec::new();
    for role in TokenRole::ALL {
        tokens.push((role, server.token(role.as_str(), role.as_str(), None).await));
    }
    for [method, path, role, _] in documented() {
        let at = filled(path);
        let (status, problem) = server.ask(method, &at, None).await;
        if role == "none" {
            assert_eq!(status, 200, "{method} {path}");
            continue;
        }
        assert_eq!((status, &problem["code"]), (401, &"unauthorized".into()), "{method} {path}");
        for (own, token) in &tokens {
            let (status, problem) = server.ask(method, &at, Some(token)).await;
            let is_let_in = status != 401 && status != 403;
            assert_eq!(is_let_in, may(*own, role), "{own} at {method} {path} got {status}");
            if !is_let_in {
                assert_eq!(problem["code"], "forbidden");
                let wanted = format!("this request needs the role `{role}`; the token has {own}");
                assert_eq!(problem["detail"], wanted);
            }
        }
    }
}

#[tokio::test]
async fn head_needs_the_same_token_as_get() {
    let server = Guarded::new().await;
    let admin = server.token("ops", "admin", None).await;
    let submit = server.token("shop", "submit", None).await;
    for [method, path, role, _] in documented() {
        if method != "GET" || role == "none" {
            continue;
        }
        let path = filled(path);
        assert_eq!(server.ask("HEAD", &path, None).await.0, 401, "{path}");
        assert_eq!(server.ask("HEAD", &path, Some(&submit)).await.0, 403, "{path}");
        let (status, _) = server.ask("HEAD", &path, Some(&admin)).await;
        assert_eq!(status, server.ask("GET", &path, Some(&admin)).await.0, "{path}");
    }
}

#[tokio::test]
async fn a_method_that_no_route_has_is_answered_with_those_that_exist() {
    let server = Guarded::new().await;
    server.token("ops", "admin", None).await;
    let request = Request::builder().method("POST").uri("/v1/kinds/mail");
    let response =
        router(Arc::clone(&server.app)).oneshot(request.body(Body::empty()).unwrap()).await;
    let response = response.unwrap();
    assert_eq!(response.status().as_u16(), 405);
    assert_eq!(response.headers()["allow"], "GET,HEAD,PUT,PATCH,DELETE");
}

#[tokio::test]
async fn a_bound_token_gets_its_tenants_jobs_on_every_route() {
    let server = Guarded::new().await;
    server.token("ops", "admin", None).await;
    let bound = server.token("shop", "submit,operate", Some("shop")).await;
    for [method, path, role, what] in documented() {
        let (status, problem) = server.ask(method, &filled(path), Some(&bound)).await;
        let is_let_in = status != 401 && status != 403;
        let wanted = what == "its jobs" || what == "not needed";
        assert_eq!(is_let_in, wanted, "{method} {path} answered {status}");
        // A bound token cannot have these two roles.
        if !["admin", "work"].contains(&role) && !is_let_in {
            let detail = problem["detail"].as_str().unwrap();
            assert!(detail.contains("the token is limited to tenant `shop`"), "{detail}");
        }
        if let Some(parameter) =
            what.strip_prefix("one job: `").map(|one| one.trim_end_matches('`'))
        {
            let other = parameter.replace("ID", "0193a4b2-7c11-7000-8000-0242ac120002");
            let (status, _) = server.ask(method, &format!("{path}{other}"), Some(&bound)).await;
            assert_eq!(status, 404, "{path}");
        }
    }
}

/// Submits a job of the kind `mail`, and returns its id.
async fn submit(server: &Guarded, token: &str, more: &str) -> String {
    let body = format!(r#"{{"kind":"mail","payload":1,"delay":"1h"{more}}}"#);
    let (status, job) = server.send("POST", "/v1/jobs", Some(token), &body).await;
    assert_eq!(status, 201, "{job}");
    job["id"].as_str().unwrap().to_owned()
}

async fn ids(server: &Guarded, path: &str, token: &str) -> Vec<String> {
    let (status, page) = server.ask("GET", path, Some(token)).await;
    assert_eq!(status, 200, "{page}");
    let items = page["items"].as_array().unwrap().iter();
    items.map(|item| item["id"].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn tenants_do_not_see_each_other() {
    let server = Guarded::new().await;
    let admin = server.token("ops", "admin", None).await;
    let shop = server.token("shop", "submit,operate", Some("shop")).await;
    let bank = server.token("bank", "submit,operate", Some("bank")).await;
    let (own, other) = (submit(&server, &shop, "").await, submit(&server, &bank, "").await);
    let untenanted = submit(&server, &admin, "").await;
    let said = submit(&server, &shop, r#","tenant":"shop""#).await;

    assert_eq!(ids(&server, "/v1/jobs", &shop).await, [said.as_str(), own.as_str()]);
    assert_eq!(ids(&server, "/v1/jobs?tenant=bank", &bank).await, [other.as_str()]);
    assert_eq!(ids(&server, "/v1/jobs", &admin).await.len(), 4);
    let (status, _) = server.ask("GET", "/v1/jobs?tenant=bank", Some(&shop)).await;
    assert_eq!(status, 403);
    for hidden in [&other, &untenanted] {
        for (method, more) in [
            ("GET", ""),
            ("PATCH", ""),
            ("POST", "/cancel"),
            ("POST", "/pause"),
            ("POST", "/resume"),
            ("POST", "/retry"),
        ] {
            let path = format!("/v1/jobs/{hidden}{more}");
            let body = if method == "PATCH" { r#"{"priority":1}"# } else { "" };
            let (status, problem) = server.send(method, &path, Some(&shop), body).await;
            assert_eq!((status, &problem["code"]), (404, &"not_found".into()), "{path}");
        }
        for list in ["audit", "events"] {
            let path = format!("/v1/{list}?job={hidden}");
            assert_eq!(server.ask("GET", &path, Some(&shop)).await.0, 404);
        }
    }
    for list in ["audit", "events"] {
        assert_eq!(server.ask("GET", &format!("/v1/{list}?job={own}"), Some(&shop)).await.0, 200);
    }
    let (_, job) = server.ask("GET", &format!("/v1/jobs/{other}"), Some(&admin)).await;
    assert_eq!((&job["state"], &job["priority"]), (&"scheduled".into(), &5.into()));
}

#[tokio::test]
async fn a_bound_token_submits_for_its_tenant_only() {
    let server = Guarded::new().await;
    server.token("ops", "admin", None).await;
    let shop = server.token("shop", "submit", Some("shop")).await;
    let post =
        |path: &'static str, body: &'static str| server.send("POST", path, Some(&shop), body);
    let (status, problem) =
        post("/v1/jobs", r#"{"kind":"mail","payload":1,"tenant":"bank"}"#).await;
    assert_eq!((status, &problem["code"]), (403, &"forbidden".into()));
    assert_eq!(problem["errors"][0]["field"], "/tenant");
    let both =
        r#"{"jobs":[{"kind":"mail","payload":1},{"kind":"mail","payload":1,"tenant":"bank"}]}"#;
    let (status, problem) = post("/v1/jobs/batch", both).await;
    assert_eq!((status, &problem["errors"][0]["field"]), (403, &"/jobs/1/tenant".into()));
    let (status, answer) = post("/v1/jobs/batch?partial=true", both).await;
    assert_eq!((status, &answer["results"][1]["problem"]["code"]), (200, &"forbidden".into()));
    let reader = server.token("reader", "read", None).await;
    let (_, page) = server.ask("GET", "/v1/jobs", Some(&reader)).await;
    let tenants: Vec<_> =
        page["items"].as_array().unwrap().iter().map(|job| &job["tenant"]).collect();
    assert_eq!(tenants, ["shop"]);
}

#[tokio::test]
async fn an_operation_of_a_bound_token_reaches_its_tenants_jobs_only() {
    let server = Guarded::new().await;
    let admin = server.token("ops", "admin", None).await;
    let shop = server.token("shop", "submit,operate", Some("shop")).await;
    let bank = server.token("bank", "submit,operate", Some("bank")).await;
    submit(&server, &shop, "").await;
    submit(&server, &bank, "").await;
    let order = r#"{"filter":{"kind":"mail"},"dry_run":true}"#;
    let (_, preview) = server.send("POST", "/v1/jobs/pause", Some(&admin), order).await;
    assert_eq!(preview["count"], 2);
    let (_, preview) = server.send("POST", "/v1/jobs/pause", Some(&shop), order).await;
    assert_eq!(preview["count"], 1);
    let others = r#"{"filter":{"tenant":"bank"}}"#;
    assert_eq!(server.send("POST", "/v1/jobs/pause", Some(&shop), others).await.0, 403);
    let order = r#"{"filter":{"kind":"mail"}}"#;
    let (status, operation) = server.send("POST", "/v1/jobs/pause", Some(&shop), order).await;
    assert_eq!((status, &operation["by"]), (202, &"token:shop".into()));
    let id = operation["id"].as_str().unwrap().to_owned();
    let (_, whole) = server.send("POST", "/v1/jobs/resume", Some(&admin), order).await;
    for (token, seen) in [(&shop, vec![id.clone()]), (&bank, vec![])] {
        assert_eq!(ids(&server, "/v1/operations", token).await, seen);
    }
    let whole = whole["id"].as_str().unwrap();
    for (token, operation, status) in
        [(&shop, id.as_str(), 200), (&bank, &id, 404), (&shop, whole, 404), (&admin, whole, 200)]
    {
        let path = format!("/v1/operations/{operation}");
        assert_eq!(server.ask("GET", &path, Some(token)).await.0, status);
        let path = format!("{path}/abort");
        assert_eq!(server.send("POST", &path, Some(token), "").await.0, status);
    }
}

#[tokio::test]
async fn who_did_it_is_in_the_audit_log() {
    let server = Guarded::new().await;
    let admin = server.token("ops", "admin", None).await;
    let id = submit(&server, &admin, "").await;
    server.send("POST", &format!("/v1/jobs/{id}/cancel"), Some(&admin), "").await;
    let body = r#"{"name":"ci","roles":["submit"]}"#;
    let (status, made) = server.send("POST", "/v1/tokens", Some(&admin), body).await;
    assert_eq!(status, 201);
    let secret = made["token"].as_str().unwrap().splitn(3, '_').nth(2).unwrap();
    let (_, page) = server.ask("GET", "/v1/audit", Some(&admin)).await;
    let said: Vec<_> = page["items"].as_array().unwrap().iter().take(2).collect();
    assert_eq!((&said[0]["what"], &said[0]["who"]), (&"create token".into(), &"token:ops".into()));
    assert_eq!((&said[1]["what"], &said[1]["who"]), (&"cancel".into(), &"token:ops".into()));
    assert!(!page.to_string().contains(secret));
    let (_, listed) = server.ask("GET", "/v1/tokens", Some(&admin)).await;
    assert!(!listed.to_string().contains(secret), "{listed}");
    assert!(listed.to_string().contains(made["id"].as_str().unwrap()));
}
