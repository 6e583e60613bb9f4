//! Tests URL templates.

use super::{NoUrl, UrlTemplate};
use rewheel_core::{
    DueReason, Fence, Job, JobId, KindName, Lane, Priority, Shard, Status, Tenant, Timestamp,
    Version,
};
use serde_json::{Value, json};

pub(in crate::callback) fn job(tenant: Option<&str>, payload: &[u8]) -> Job {
    Job {
        id: JobId::from_bytes([1; 16]),
        lane: Lane {
            kind: KindName::parse("charge-card").unwrap(),
            tenant: tenant.map(|tenant| Tenant::parse(tenant).unwrap()),
            priority: Priority::DEFAULT,
            shard: Shard::NONE,
        },
        key: None,
        shard_key: None,
        payload: Some(payload.to_vec()),
        attempts_max: None,
        attempt_timeout: None,
        backoff: None,
        traceparent: None,
        parent: None,
        instant: None,
        group: None,
        created: Timestamp::from_millis(0),
        deadline: None,
        due: Timestamp::from_millis(0),
        because: DueReason::Submitted,
        status: Status::Scheduled,
        fence: Fence::new(1),
        version: Version::new(1),
        attempt: 0,
        attempts_before: 0,
        takeovers: 0,
        takeovers_counted: 0,
        failure: None,
    }
}

#[track_caller]
fn render(template: &str, tenant: Option<&str>, payload: &Value) -> Result<String, NoUrl> {
    let job = job(tenant, payload.to_string().as_bytes());
    UrlTemplate::parse(template, &|_| None)
        .unwrap()
        .render(&job)
        .map(|url| url.to_uri().unwrap().to_string())
}

#[track_caller]
fn check(template: &str, tenant: &str, payload: Value, expected: &str) {
    assert_eq!(render(template, Some(tenant), &payload).as_deref(), Ok(expected));
}

#[test]
fn every_place_is_filled() {
    check(
        "https://pay.example/{kind}/{id}?t={tenant}&o={payload.order}",
        "acme",
        json!({"order": 17}),
        "https://pay.example/charge-card/01010101-0101-0101-0101-010101010101?t=acme&o=17",
    );
    check("https://x/{payload.a.b.0}", "t", json!({"a": {"b": ["c"]}}), "https://x/c");
    check(
        "https://x/{payload.a}{payload.b}",
        "t",
        json!({"a": true, "b": 1.5}),
        "https://x/true1.5",
    );
    check("https://{tenant}.pay.example/", "acme", json!(null), "https://acme.pay.example/");
    assert_eq!(render("https://x/a/{tenant}", None, &json!(1)).as_deref(), Ok("https://x/a/"));
}

#[test]
fn a_value_stays_where_it_was_put() {
    for (value, encoded) in [
        ("a/b", "a%2Fb"),
        ("a?b=c&d", "a%3Fb%3Dc%26d"),
        ("a#b", "a%23b"),
        ("a b+c", "a%20b%2Bc"),
        ("50%", "50%25"),
        ("%2e%2e", "%252e%252e"),
        ("@evil.example", "%40evil.example"),
        ("a\\b", "a%5Cb"),
        ("é{id}", "%C3%A9%7Bid%7D"),
        ("...", "..."),
    ] {
        check("https://x/a/{tenant}/c", value, json!({}), &format!("https://x/a/{encoded}/c"));
    }
}

#[test]
fn a_value_cannot_climb_out_of_its_path() {
    for (template, tenant) in [
        ("https://x/a/{tenant}/c", ".."),
        ("https://x/a/{tenant}/c", "."),
        ("https://x/a/.{tenant}", "."),
        ("https://x/a/{tenant}?b", ".."),
    ] {
        let error = render(template, Some(tenant), &json!({})).unwrap_err();
        assert!(matches!(error, NoUrl::Rejected(_)), "{template} {tenant}: {error:?}");
    }
    check("https://x/a?b={tenant}", "..", json!({}), "https://x/a?b=..");
}

#[test]
fn a_value_cannot_choose_another_host() {
    for tenant in
        ["evil.example/", "evil.example#", "evil.example?", "a@evil.example", "a:1", "a b"]
    {
        let error = render("https://{tenant}.pay.example/", Some(tenant), &json!({})).unwrap_err();
        assert!(matches!(error, NoUrl::Rejected(_)), "{tenant}: {error:?}");
    }
}

#[test]
fn what_the_payload_lacks_is_named() {
    for payload in [json!({}), json!({"order": null}), json!({"order": {}}), json!([1]), json!("x")]
    {
        let error = render("https://x/{payload.order}", None, &payload).unwrap_err();
        let NoUrl::BadPayload(why) = error else { panic!("{error:?}") };
        assert!(
            why.starts_with("the callback url needs the value at /order in the payload: "),
            "{why}"
        );
    }
    let template = UrlTemplate::parse("https://x/{payload.order}", &|_| None).unwrap();
    assert!(matches!(template.render(&job(None, b"\xff")), Err(NoUrl::BadPayload(_))));
}

#[test]
fn a_template_that_cannot_work_is_refused() {
    for (template, why) in [
        ("", "is not a valid url"),
        ("pay.example/hook", "is not a valid url"),
        ("/hook", "is not a valid url"),
        ("ftp://pay.example", "must begin with http"),
        ("file:///etc/passwd", "must begin with http"),
        ("https://", "is not a valid url"),
        ("https://u:p@pay.example", "must not contain a user"),
        ("https://{tenant}@pay.example", "must not contain a user"),
        ("https://pay.example/#a", "must not contain a fragment"),
        ("https://pay.example/../a", "must not contain `.`"),
        ("https://pay.example/%2E%2e/a", "must not contain `.`"),
        ("https://pay.example/a b", "contains a space"),
        ("https://pay.example:{payload.port}/", "is not a valid url"),
        ("{payload.url}", "is not a valid url"),
        ("https://x/{order}", "`{order}` is unknown: use {id}"),
        ("https://x/{payload}", "`{payload}` is unknown: use {id}"),
        ("https://x/{payload.a..b}", "`{payload.a..b}` is unknown: use {id}"),
        ("https://x/{id", "has a `{`"),
        ("https://x/id}", "has a `}`"),
        (&format!("https://x/{}", "a".repeat(9_000)), "is too long: the limit is"),
    ] {
        let error = UrlTemplate::parse(template, &|_| None).unwrap_err();
        assert!(error.starts_with(why), "{template}: {error}");
    }
}

#[test]
fn jobs_that_go_to_different_hosts_are_told_apart() {
    let host = |template: &str, tenant: &str| {
        let template = UrlTemplate::parse(template, &|_| None).unwrap();
        template.host_of(&job(Some(tenant), br#"{"host":"a.example"}"#))
    };
    let of = |host: &str| Some(host.to_owned());
    assert_eq!(host("https://pay.example/{tenant}", "acme"), None);
    assert_eq!(host("https://{tenant}.pay.example/hook", "acme"), of("acme.pay.example"));
    assert_eq!(host("https://{payload.host}:8443/{id}", "acme"), of("a.example:8443"));
    // An invalid URL is refused when it is called.
    assert_eq!(host("https://{payload.none}/", "acme"), None);
}

#[test]
fn a_number_is_filled_in_as_it_was_written() {
    let template = UrlTemplate::parse("https://pay.example/{payload.a.0.x}", &|_| None).unwrap();
    for number in ["12345678901234567890123", "1.10", "12345678901234567890.123", "-0"] {
        let payload = format!(r#"{{"a":[{{"x":1,"x":{number}}}]}}"#);
        let url = template.render(&job(None, payload.as_bytes())).unwrap();
        assert_eq!(url.to_uri().unwrap().to_string(), format!("https://pay.example/{number}"));
    }
}
