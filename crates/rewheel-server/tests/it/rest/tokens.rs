//! Tests tokens over a real connection.

use super::served::{Answer, Api, config, served};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;

/// Maximum time for a revocation to reach a listener, with a large margin.
const SOON: Duration = Duration::from_secs(120);

async fn send(api: &Api, token: &str, method: Method, path: &str, body: &Value) -> Answer {
    let request = api.request(method, path).bearer_auth(token).body(body.to_string());
    Answer::of(request).await
}

/// Creates a token, and returns it.
async fn make(api: &Api, by: &str, name: &str, role: &str) -> String {
    let body = json!({ "name": name, "roles": [role] });
    let made = send(api, by, Method::POST, "/v1/tokens", &body).await;
    assert_eq!((made.status, &made.body["state"]), (201, &json!("live")), "{made:?}");
    assert_eq!(made.headers["cache-control"], "no-store");
    made.body["token"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_first_token_is_an_admins_and_closes_the_server() {
    served(config(), async |api| {
        assert_eq!(api.count().await, 0);
        let reader = api.post("/v1/tokens", r#"{"name":"r","roles":["read"]}"#).await;
        assert_eq!(reader.blamed(), ["/roles"]);
        let admin = make(&api, "", "ops", "admin").await;
        let refused = api.get("/v1/jobs").await;
        assert_eq!((refused.status, refused.problem()), (401, "unauthorized"));
        let listed = send(&api, &admin, Method::GET, "/v1/tokens", &Value::Null).await;
        assert_eq!(listed.body["items"].as_array().unwrap().len(), 1);
        assert!(listed.body["items"][0].get("token").is_none());
        for scheme in ["Basic b3BzOm9wcw==", "Bearer", "bearer x"] {
            let request = api.request(Method::GET, "/v1/jobs").header("authorization", scheme);
            assert_eq!(Answer::of(request).await.problem(), "unauthorized");
        }
        let twice = api.request(Method::GET, "/v1/jobs").bearer_auth(&admin).bearer_auth("x");
        assert_eq!(Answer::of(twice).await.status, 401);
        let gone = send(&api, &admin, Method::POST, "/v1/tokens/unknown/revoke", &json!({})).await;
        assert_eq!(gone.problem(), "not_found");
        let path = format!("/v1/tokens/{admin}x/revoke").replace("rw_", "rw_0");
        let gone = send(&api, &admin, Method::POST, &path, &json!({})).await;
        let secret = admin.splitn(3, '_').nth(2).unwrap();
        assert!(gone.status == 404 && !gone.body.to_string().contains(secret), "{gone:?}");
    })
    .await;
}

#[tokio::test]
async fn without_tokens_a_page_of_another_site_is_kept_out() {
    served(config(), async |api| {
        for (header, value) in [("host", "evil.example"), ("origin", "https://evil.example")] {
            let request = api.request(Method::GET, "/v1/jobs").header(header, value);
            let answer = Answer::of(request).await;
            assert_eq!((answer.status, answer.problem()), (403, "forbidden"));
        }
        let live = api.request(Method::GET, "/livez").header("host", "evil.example");
        assert_eq!(Answer::of(live).await.status, 200);
        // A caller with a token may use any host name.
        let ops = make(&api, "", "ops", "admin").await;
        let request = api.request(Method::GET, "/v1/jobs").header("host", "rewheel.corp.example");
        assert_eq!(Answer::of(request.bearer_auth(ops)).await.status, 200);
    })
    .await;
}

#[tokio::test]
async fn who_is_revoked_hears_no_more_and_waits_no_more() {
    let mut config = config();
    let worker = serde_json::from_str(r#"{"runner":"worker"}"#).unwrap();
    config.kinds.insert(rewheel_core::KindName::parse("parcel").unwrap(), worker);
    let served = served(config, async |api| {
        let admin = make(&api, "", "ops", "admin").await;
        let (reader, worker) = (
            make(&api, &admin, "reader", "read").await,
            make(&api, &admin, "worker", "work").await,
        );
        let events = api.request(Method::GET, "/v1/events").bearer_auth(&reader);
        let mut events = events.send().await.unwrap();
        assert_eq!(events.status().as_u16(), 200);
        let claim = json!({
            "holder": null, "name": "py", "kinds": ["parcel"], "max": 1, "wait": "60s",
        });
        let waiting = send(&api, &worker, Method::POST, "/v1/workers/claim", &claim);
        let revoking = async {
            for name in ["reader", "worker"] {
                let path = format!("/v1/tokens/{name}/revoke");
                let revoked = send(&api, &admin, Method::POST, &path, &json!({})).await;
                assert_eq!((revoked.status, &revoked.body["state"]), (200, &json!("revoked")));
            }
        };
        let (waited, ()) = tokio::time::timeout(SOON, async { tokio::join!(waiting, revoking) })
            .await
            .expect("the claim ends before its wait does");
        assert_eq!(waited.problem(), "unauthorized");
        let rest =
            tokio::time::timeout(SOON, async { while let Ok(Some(_)) = events.chunk().await {} });
        rest.await.expect("the events end");
        let again = send(&api, &reader, Method::GET, "/v1/jobs", &Value::Null).await;
        assert_eq!(again.problem(), "unauthorized");
    });
    Box::pin(served).await;
}

#[tokio::test]
async fn a_kind_that_was_put_names_only_variables_that_are_listed() {
    let put = |header: &str| {
        json!({ "runner": "callback", "callback": {
            "url": "https://pay.example/", "headers": { "x-a": "${PATH}", "authorization": header },
        }})
        .to_string()
    };
    let mut config = config();
    config.server.callback_env = vec!["PATH".to_owned()];
    served(config, async |api| {
        assert_eq!(api.put("/v1/kinds/pay", &put("Bearer ${PATH}")).await.status, 200);
        // One variable that is set, and one that is not: the caller must not learn which.
        for name in ["CARGO_MANIFEST_DIR", "REWHEEL_UNSET_VARIABLE"] {
            let refused = api.put("/v1/kinds/pay", &put(&format!("Bearer ${{{name}}}"))).await;
            assert_eq!(refused.blamed(), ["/callback/headers/authorization"]);
            let why = format!("uses the environment variable `{name}`, which is not in server.callback_env");
            let said = refused.body["errors"][0]["message"].as_str().unwrap();
            assert!(said.starts_with(&why), "{said}");
        }
        let secret = r#"{"runner":"callback","callback":{"url":"https://a.example/","secrets":["${HOME}"]}}"#;
        assert_eq!(api.put("/v1/kinds/pay", secret).await.blamed(), ["/callback/secrets/0"]);
    })
    .await;
}
