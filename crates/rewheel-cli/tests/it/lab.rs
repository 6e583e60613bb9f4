//! Tests `rewheel lab`, which needs no server.

use crate::shell::run;

#[test]
fn policies_are_compared_on_a_storm() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), &["lab", "--lasts", "1m", "--outage", "10s..15s"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(
        ran.out.starts_with("100 clients together make 500 calls/s to a dependency"),
        "{}",
        ran.out
    );
    let row = |policy: &str| {
        let mut rows = ran.out.lines().filter(|line| line.starts_with(policy));
        rows.next_back().unwrap().trim_start_matches(policy).trim().to_owned()
    };
    assert!(row("10 attempts, fixed 100ms").ends_with("never"), "{}", ran.out);
    assert!(row("none").ends_with('s'), "{}", ran.out);
}

#[test]
fn programs_get_every_second() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["lab", "--json", "--lasts", "30s", "--fault", "x20", "--outage", "5s..10s"];
    let policy = "external_api, budget 10% floor 1, breaker";
    let ran = run(folder.path(), &[&args[..], &["--policy", policy]].concat());
    let document = ran.json();
    assert_eq!(document["storm"]["outage"], serde_json::json!({"from": "5s", "to": "10s"}));
    assert_eq!(document["storm"]["fault"], "x20");
    let tried = &document["policies"][0];
    assert_eq!(
        (document["policies"].as_array().unwrap().len(), &tried["policy"]),
        (1, &policy.into())
    );
    let sum = |name: &str| {
        let seconds = tried["seconds"].as_array().unwrap();
        seconds.iter().map(|second| second[name].as_u64().unwrap()).sum::<u64>()
    };
    for name in ["offered", "succeeded", "attempts"] {
        assert_eq!(tried[name], sum(name), "{name}");
    }
    let again = run(folder.path(), &[&args[..], &["--policy", policy]].concat());
    assert_eq!(again.out, ran.out, "the same seed is the same storm");
}

#[test]
fn what_cannot_be_is_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |args: &[&str], why: &str| {
        let ran = run(folder.path(), &[&["lab"], args].concat());
        assert_eq!(ran.code, 2, "{args:?}");
        assert!(ran.err.contains(why), "{}", ran.err);
    };
    refused(&["--policy", "4 attempts, fixd 1s"], "is not a policy");
    refused(&["--outage", "40s..20s"], "the outage must end after it starts");
    refused(&["--outage", "40s"], "use FROM..TO, such as 20s..40s");
    refused(&["--lasts", "42s"], "must last until at least 5s after the outage");
    refused(&["--fault", "sulks"], "use `hangs`, `fails`, or a factor such as `x10`");
    refused(&["--fault", "x0.5"], "a factor of 1 to 1000");
    refused(&["--rate", "0"], "clients must be 1 to 100000");
    refused(&["--clients", "4294967295"], "clients must be 1 to 100000");
    refused(&["--capacity", "4294967295", "--latency", "1h"], "must be at most 100000 requests");
    refused(&["--rate", "4000000"], "the simulation allows 1 to 1000000 calls");
    refused(&["--timeout", "0s"], "--timeout must be longer than 0s");
}
