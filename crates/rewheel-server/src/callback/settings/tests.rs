//! Tests which callback settings are accepted.

use super::Callback;
use crate::callback::Ceiling;
use crate::callback::template::tests::job;
use serde_json::{Value, json};

fn parse(settings: &Value) -> Result<Callback, String> {
    let variable = |name: &str| (name == "PAY_TOKEN").then(|| "s3cret".to_owned());
    Callback::parse_with(settings, &variable).map_err(|error| error.to_string())
}

#[track_caller]
fn refuse(settings: Value, expected: &str) {
    let error = parse(&settings).unwrap_err();
    assert!(error.starts_with(expected), "{settings} answered {error:?}, not {expected:?}");
}

#[test]
fn everything_the_wire_names_is_read() {
    let callback = parse(&json!({
        "url": "http://127.0.0.1:8080/hook/{tenant}",
        "method": "PUT",
        "headers": {"authorization": "Bearer ${PAY_TOKEN}", "X-Team": "pay"},
        "success": ["2xx", "409"],
        "allow": ["127.0.0.0/8", "::1"],
        "retry_after_max": "1h",
    }))
    .unwrap();
    assert_eq!(callback.method(), "PUT");
    assert_eq!(callback.headers["authorization"], "Bearer s3cret");
    assert_eq!(callback.headers["x-team"], "pay");
    assert!(callback.success.contains(204) && callback.success.contains(409));
    assert!(callback.allow().check("::1".parse().unwrap()).is_ok());
    assert_eq!(callback.retry_after_max.unwrap().as_secs(), 3_600);
}

#[test]
fn only_the_url_is_required() {
    let callback = parse(&json!({"url": "https://pay.example"})).unwrap();
    assert_eq!(callback.method(), "POST");
    assert!(callback.success.contains(299) && !callback.success.contains(300));
    refuse(json!({}), "url: is required");
}

#[test]
fn what_is_not_known_is_named() {
    for field in ["fallback", "secret", "urls"] {
        let mut settings = json!({"url": "https://pay.example"});
        settings[field] = json!([]);
        refuse(settings, &format!("{field}: unknown field `{field}`"));
    }
    refuse(json!("https://pay.example?key=s3cret"), "must be an object");
}

#[test]
fn a_wrong_value_is_named_with_its_field() {
    let with = |field: &str, value: Value| {
        let mut settings = json!({"url": "https://pay.example"});
        settings[field] = value;
        settings
    };
    refuse(with("url", json!(7)), "url: invalid type");
    refuse(with("method", json!("post")), "method: `post` is not one of POST, PUT");
    refuse(with("ca", json!(7)), "ca: invalid type");
    refuse(with("ca", json!("server.pem")), "ca: contains no certificate");
    let garbled = "-----BEGIN CERTIFICATE-----\naGk=\n-----END CERTIFICATE-----\n";
    refuse(with("ca", json!(garbled)), "ca: is not a valid certificate");
    refuse(with("method", json!("CONNECT")), "method: `CONNECT` is not one of");
    refuse(with("headers", json!("Bearer x")), "headers: must be an object of strings");
    refuse(
        with("headers", json!({"a": "${REWHEEL__STORE__URL}"})),
        "headers.a: uses the environment variable",
    );
    refuse(with("headers", json!({"a b": "c"})), "headers.a b: is not a valid header name");
    refuse(with("headers", json!({"a": "b\r\nc: d"})), "headers.a: contains a character");
    refuse(with("headers", json!({"Host": "a"})), "headers.Host: cannot be set");
    refuse(with("headers", json!({"webhook-id": "a"})), "headers.webhook-id: cannot be set");
    refuse(with("headers", json!({"Rewheel-Fence": "9"})), "headers.Rewheel-Fence: cannot be set");
    refuse(with("headers", json!({"a": "${b"})), "headers.a: has a `${` without a matching `}`");
    refuse(with("headers", json!({"a": "***"})), "headers.a: is a masked value");
    refuse(with("secrets", json!("whsec_x")), "secrets: must be a list of strings");
    refuse(with("secrets", json!(["***"])), "secrets.0: must be `whsec_` or `whsk_`");
    refuse(with("secrets", json!(["whsec_aGk="])), "secrets.0: is too short");
    refuse(
        with("secrets", json!(["${NOPE}"])),
        "secrets.0: uses the environment variable `NOPE`, which is not set: set it and restart the server",
    );
    refuse(with("success", json!([])), "success: must not be empty");
    refuse(with("success", json!("2xx")), "success: invalid type");
    refuse(with("success", json!(["2xx", "6xx"])), "success.1: `6xx` is not a set");
    refuse(with("allow", json!(["10.0.0.0/33"])), "allow.0: `10.0.0.0/33` is neither an IP");
    refuse(with("allow", json!(["pay.example"])), "allow.0: `pay.example` is neither an IP");
    refuse(with("retry_after_max", json!("1x")), "retry_after_max: `1x` is not a duration");
}

#[test]
fn a_missing_variable_is_named() {
    let settings = json!({"url": "https://pay.example", "headers": {"a": "${PAY_TOKEN} ${NOPE}"}});
    refuse(
        settings,
        "headers.a: uses the environment variable `NOPE`, which is not set: set it and restart the server",
    );
}

#[test]
fn an_error_points_to_its_place() {
    let settings = json!({"url": "https://pay.example", "allow": ["::1", "?"]});
    assert_eq!(Callback::parse(&settings).unwrap_err().pointer(), "/allow/1");
    assert_eq!(Callback::parse(&json!({"uri": 1})).unwrap_err().pointer(), "/uri");
    assert_eq!(Callback::parse(&json!(7)).unwrap_err().pointer(), "");
}

#[test]
fn a_literal_address_is_checked_at_once() {
    refuse(json!({"url": "http://[::1]/"}), "url: callbacks to ::1 are not allowed (loopback)");
    refuse(
        json!({"url": "http://0x7f.1/{id}"}),
        "url: callbacks to 127.0.0.1 are not allowed (loopback)",
    );
    assert!(parse(&json!({"url": "http://0x7f.1/", "allow": ["127.0.0.1"]})).is_ok());
}

#[test]
fn what_proves_who_sends_is_masked_unless_it_is_named_only() {
    let mut settings = json!({
        "url": "https://pay.example",
        "headers": {"authorization": "Bearer ${PAY_TOKEN}", "x-key": "hunter2"},
        "secrets": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "${PAY_SECRET}"],
    });
    super::masked(&mut settings);
    assert_eq!(
        settings["headers"],
        json!({"authorization": "Bearer ${PAY_TOKEN}", "x-key": "***"})
    );
    assert_eq!(settings["secrets"], json!(["***", "${PAY_SECRET}"]));
    assert_eq!(settings["url"], "https://pay.example");
    let mut settings = json!({
        "url": "https://a:b@pay.example/hook?key=hunter2",
        "failover": ["https://b.example?hunter2", {"url": "https://c.example?k=hunter2"}, {"url": "https://d.example?k=${K}"}],
    });
    super::masked(&mut settings);
    assert_eq!(settings["url"], "https://***@pay.example/hook?***");
    let failover = json!(["https://b.example?***", {"url": "https://c.example?***"}, {"url": "https://d.example?k=${K}"}]);
    assert_eq!(settings["failover"], failover);
}

#[test]
fn a_masked_url_is_no_url() {
    refuse(json!({"url": "https://pay.example/?***"}), "url: is a masked value");
    let failover = json!({"url": "https://a.example", "failover": ["https://***@b.example"]});
    refuse(failover, "failover.0.url: is a masked value");
}

#[test]
fn variables_are_filled_into_urls_and_not_printed() {
    let settings = json!({
        "url": "https://pay.example/hook/{id}?key=${PAY_TOKEN}",
        "failover": ["https://b.example/${PAY_TOKEN}/x"],
    });
    let callback = parse(&settings).unwrap();
    let job = job(None, b"{}");
    let urls = callback.urls.in_turn(&job);
    let sent = |place: usize| urls[place].render(&job).unwrap().to_uri().unwrap().to_string();
    assert!(sent(0).ends_with("?key=s3cret"), "{}", sent(0));
    assert_eq!(sent(1), "https://b.example/s3cret/x");
    let shown = urls[1].render(&job).unwrap().to_string();
    assert_eq!(shown, "https://b.example/***");
    let printed = format!("{callback:?}");
    assert!(printed.contains("key=${PAY_TOKEN}") && !printed.contains("s3cret"), "{printed}");
    refuse(
        json!({"url": "https://${NOPE}/"}),
        "url: uses the environment variable `NOPE`, which is not set: set it and restart the server",
    );
    refuse(
        json!({"url": "https://x/${REWHEEL__STORE__URL}"}),
        "url: uses the environment variable `REWHEEL__STORE__URL`, which is reserved for the server: use another name",
    );
    refuse(json!({"url": "https://x/${PAY_TOKEN"}), "url: has a `${` without a matching `}`");
}

/// The value of a variable is not a template, and cannot change the host of a job.
#[test]
fn the_value_of_a_variable_is_taken_as_it_is() {
    let value = |text: &'static str| {
        let variable = move |_: &str| Some(text.to_owned());
        let parsed = Callback::parse_with(&json!({"url": "${URL}"}), &variable);
        parsed.map(|callback| {
            let job = job(None, b"{}");
            callback.urls.in_turn(&job)[0].render(&job).unwrap().to_uri().unwrap().to_string()
        })
    };
    assert_eq!(
        value("https://a.example/{id}?b=${C}").unwrap(),
        "https://a.example/%7Bid%7D?b=${C}"
    );
    let refused = value("http://10.0.0.1/").unwrap_err();
    assert_eq!(
        (
            refused.pointer().as_str(),
            refused.message().starts_with("callbacks to 10.0.0.1 are not allowed")
        ),
        ("/url", true)
    );
    assert_eq!(
        value("https://u:p@a.example/").unwrap_err().message(),
        "must not contain a user or a password: send credentials in `headers`"
    );
}

#[test]
fn what_a_callee_repeats_of_a_url_is_masked() {
    let variable = |_: &str| Some("t0ken-from-env".to_owned());
    let settings = json!({
        "url": "https://a.example/{payload.order}?key=l1teral%2Dsecret&order={payload.order}",
        "failover": ["https://b.example/x/${T}"],
    });
    let echo = Callback::parse_with(&settings, &variable).unwrap().echo;
    let masked = |text: &str| echo.masked(text.to_owned());
    assert_eq!(masked("no key=l1teral%2Dsecret here"), "no key=*** here");
    assert_eq!(masked("no key l1teral-secret here"), "no key *** here");
    assert_eq!(masked("no /x/t0ken-from-env"), "no /x/***");
    assert_eq!(masked("order order-12345 is gone"), "order order-12345 is gone");
}

#[test]
fn a_kind_of_rest_stays_below_the_ceiling() {
    let ceiling = Ceiling::new(["10.0.0.0/8".parse().unwrap(), "0.0.0.0/0".parse().unwrap()]);
    let beyond = |settings: Value, ceiling: &Ceiling| {
        Callback::beyond(&settings, ceiling)
            .map(|error| (error.pointer(), error.message().to_owned()))
    };
    let all = json!({"url": "https://a.example", "allow": ["10.1.0.0/16", "0.0.0.0/0"]});
    let (pointer, why) = beyond(all.clone(), &Ceiling::default()).unwrap();
    assert_eq!(pointer, "/allow");
    assert!(why.contains("10.1.0.0/16") && why.contains("server.callback_allow"), "{why}");
    assert_eq!(beyond(all, &ceiling), None);
    let metadata = json!({"url": "http://169.254.169.254/", "allow": ["0.0.0.0/0"]});
    assert_eq!(beyond(metadata.clone(), &ceiling).unwrap().0, "/url");
    let second = json!({"url": "https://a.example", "failover": ["http://169.254.0.1"], "allow": ["0.0.0.0/0"]});
    assert_eq!(beyond(second, &ceiling).unwrap().0, "/failover/0/url");
    // The config file may allow it.
    assert!(parse(&metadata).is_ok());
    let allow = parse(&metadata).unwrap().within(&ceiling).allow().clone();
    assert!(allow.check("10.0.0.1".parse().unwrap()).is_ok());
    let refused = allow.check("169.254.169.254".parse().unwrap()).unwrap_err().to_string();
    assert!(
        refused.ends_with("only a kind in the config file of the server may call this address"),
        "{refused}"
    );
    let refused = parse(&metadata)
        .unwrap()
        .within(&Ceiling::default())
        .allow()
        .check("10.0.0.1".parse().unwrap());
    assert!(refused.unwrap_err().to_string().contains("not in server.callback_allow"));
}

#[test]
fn secrets_are_not_printed() {
    let headers = json!({"authorization": "Bearer ${PAY_TOKEN}"});
    let callback = parse(&json!({"url": "https://pay.example", "headers": headers})).unwrap();
    let printed = format!("{callback:?}");
    assert!(printed.contains("authorization") && !printed.contains("s3cret"), "{printed}");
}

/// Returns the hosts that the attempts of a job call, in order.
fn hosts(callback: &Callback, attempt: u32, attempts_before: u32) -> Vec<String> {
    let mut job = job(None, b"{}");
    (job.attempt, job.attempts_before) = (attempt, attempts_before);
    callback.urls.in_turn(&job).into_iter().filter_map(|url| url.host(&job)).collect()
}

#[test]
fn after_a_failure_the_next_url_is_first() {
    let callback = parse(&json!({
        "url": "https://a.example/{id}",
        "failover": ["https://b.example", {"url": "https://c.example:8443"}],
    }))
    .unwrap();
    assert_eq!(hosts(&callback, 0, 0), ["a.example", "b.example", "c.example:8443"]);
    assert_eq!(hosts(&callback, 1, 0), ["b.example", "c.example:8443", "a.example"]);
    assert_eq!(hosts(&callback, 3, 0), ["a.example", "b.example", "c.example:8443"]);
    assert_eq!(hosts(&callback, 5, 5)[0], "a.example", "a redriven job begins anew");
    let job = job(None, b"{}");
    assert_eq!(callback.urls.targets(&job), ["a.example", "b.example", "c.example:8443"]);
    let alone = parse(&json!({"url": "https://a.example/{id}", "failover": []})).unwrap();
    assert!(alone.urls.targets(&job).is_empty(), "there is nowhere else to go");
}

#[test]
fn a_url_that_a_job_has_no_value_for_is_left_out() {
    let callback = parse(&json!({
        "url": "https://a.example/{payload.path}",
        "failover": ["https://b.example", "https://c.example"],
    }))
    .unwrap();
    assert_eq!(hosts(&callback, 0, 0), ["b.example", "c.example"]);
    assert_eq!(hosts(&callback, 1, 0), ["c.example", "b.example"]);
    let all = json!({"url": "https://a.example/{payload.x}", "failover": ["https://b.example/{payload.x}"]});
    assert_eq!(parse(&all).unwrap().urls.in_turn(&job(None, b"{}")).len(), 2, "one says why");
}

#[test]
fn urls_of_the_nodes_region_come_first() {
    let settings = json!({
        "url": "https://us-1.example", "region": "us",
        "failover": [
            {"url": "https://eu-1.example", "region": "eu"}, "https://any.example",
            {"url": "https://eu-2.example", "region": "eu"},
        ],
    });
    let near = |region| hosts(&parse(&settings).unwrap().near(region), 0, 0);
    let as_written = ["us-1.example", "eu-1.example", "any.example", "eu-2.example"];
    assert_eq!(near(None), as_written);
    assert_eq!(near(Some("ap")), as_written);
    assert_eq!(near(Some("us")), as_written);
    assert_eq!(near(Some("eu")), ["eu-1.example", "eu-2.example", "us-1.example", "any.example"]);
}

#[test]
fn each_further_url_is_checked_as_the_first_is() {
    let with = |failover: Value| json!({"url": "https://pay.example", "failover": failover});
    refuse(with(json!("https://b.example")), "failover: must be a list of URLs");
    refuse(
        with(json!(["https://b.example", "ftp://c.example"])),
        "failover.1.url: must begin with",
    );
    refuse(with(json!(["https://b.example/{city}"])), "failover.0.url: `{city}` is unknown");
    refuse(with(json!(["http://10.0.0.1/"])), "failover.0.url: ");
    refuse(
        with(json!([{"url": "https://u:p@b.example"}])),
        "failover.0.url: must not contain a user",
    );
    refuse(with(json!([{"uri": "https://b.example"}])), "failover.0: must be a url, or { url");
    refuse(with(json!([7])), "failover.0: must be a url, or { url");
    refuse(
        with(json!([{"url": "https://b.example", "region": "E U"}])),
        "failover.0.region: must have",
    );
    refuse(with(json!(vec!["https://b.example"; 17])), "failover: must have 16 entries or fewer");
    refuse(json!({"url": "https://a.example", "region": ""}), "region: must have 1 to 63");
    let allowed = json!({"url": "https://a.example", "failover": ["http://10.0.0.1/"], "allow": ["10.0.0.0/8"]});
    assert!(parse(&allowed).is_ok());
}
