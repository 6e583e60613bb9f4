//! Tests kinds that leave settings open to the defaults of the config file.

use super::served::{config, served};
use rewheel_server::config::Config;
use serde_json::{Value, json};

fn with_defaults(pairs: &[(&str, &str)]) -> Config {
    let env = pairs
        .iter()
        .map(|(name, value)| (format!("REWHEEL__DEFAULTS__KIND__{name}"), (*value).to_owned()));
    let kind_defaults = Config::load(None, env).expect("a config").kind_defaults;
    Config { kind_defaults, ..config() }
}

#[tokio::test]
async fn a_new_kind_gets_the_defaults_of_the_file() {
    let defaults = [("ATTEMPTS_MAX", "5"), ("CONCURRENCY_MAX", "4")];
    served(with_defaults(&defaults), async |api| {
        let put = api.put("/v1/kinds/a", r#"{"sticky_max":"2s"}"#).await;
        let settings = &put.body["settings"];
        assert_eq!((put.status, &settings["attempts_max"]), (200, &json!(5)), "{put:?}");
        assert_eq!(
            (&settings["concurrency_max"], &settings["sticky_max"]),
            (&json!(4), &json!("2s"))
        );
        let job = api.post("/v1/jobs", r#"{"kind":"a","payload":1}"#).await;
        assert_eq!(job.body["attempts_max"], 5, "it is in force");

        let own = api.put("/v1/kinds/a", r#"{"attempts_max":7,"concurrency_max":null}"#).await;
        let settings = &own.body["settings"];
        assert_eq!(settings["attempts_max"], 7);
        assert_eq!(settings.get("concurrency_max"), Some(&Value::Null), "null is no limit");
        let again = api.put("/v1/kinds/a", &settings.to_string()).await;
        assert_eq!(again.body["settings"], *settings, "what was shown can be sent back");

        let patched = api.patch("/v1/kinds/a", r#"{"takeovers_max":2}"#).await;
        assert_eq!(patched.body["settings"]["concurrency_max"], Value::Null, "missing ones stay");
        let patched = api.patch("/v1/kinds/a", r#"{"attempts_max":null}"#).await;
        assert_eq!(patched.body["settings"]["attempts_max"], 5, "null restores the default");
    })
    .await;
}

#[tokio::test]
async fn a_default_that_does_not_fit_is_named() {
    served(with_defaults(&[("ATTEMPTS_CEILING", "20")]), async |api| {
        let put = api.put("/v1/kinds/a", r#"{"attempts_max":50}"#).await;
        assert_eq!((put.status, put.problem()), (422, "invalid_field"), "{put:?}");
        let hint = put.body["hint"].as_str().unwrap();
        assert!(hint.contains("[defaults.kind]") && hint.contains("attempts_ceiling"), "{hint}");
        assert_eq!(api.get("/v1/kinds/a").await.status, 404, "nothing was changed");
        // The client's own mistakes are reported as always.
        let put = api.put("/v1/kinds/a", r#"{"attempts_max":0,"atempts_max":1}"#).await;
        assert_eq!((put.status, put.body["hint"].as_str()), (422, None), "{put:?}");
        let twice = api.put("/v1/kinds/a", r#"{"attempts_max":1,"attempts_max":2}"#).await;
        assert_eq!(twice.status, 422, "{twice:?}");
    })
    .await;
}

/// A client that may write kinds must not be able to send the headers of the file to its own host.
#[tokio::test]
async fn a_kind_of_rest_gets_no_default_callback() {
    let defaults = [
        ("RUNNER", "callback"),
        ("CALLBACK__HEADERS__AUTHORIZATION", "Bearer secret"),
        ("CALLBACK__URL", "https://pay.example/"),
    ];
    served(with_defaults(&defaults), async |api| {
        let put = api.put("/v1/kinds/a", r#"{"callback":{"url":"https://evil.example/"}}"#).await;
        assert_eq!((put.status, &put.body["runner"]), (200, &json!("callback")), "{put:?}");
        assert_eq!(put.body["settings"]["callback"], json!({"url": "https://evil.example/"}));
        // Nor the whole of it, which a later patch of the URL would send elsewhere.
        let put = api.put("/v1/kinds/b", "{}").await;
        assert_eq!((put.status, &put.body["errors"][0]["field"]), (422, &json!("/callback")));
        let patched = api.patch("/v1/kinds/a", r#"{"callback":null}"#).await;
        assert_eq!((patched.status, patched.problem()), (422, "invalid_field"), "{patched:?}");
    })
    .await;
}
