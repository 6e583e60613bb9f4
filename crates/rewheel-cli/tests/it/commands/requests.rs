//! Tests that each command sends the documented request.

use super::fake::Fake;
use crate::shell::{Ran, run};
use serde_json::{Value, json};

const ID: &str = "0193a5f0-7c4e-7b1a-9d2e-5f6a7b8c9d0e";

fn fake() -> Fake {
    Fake::start(|_| {
        let kind = json!({"kind": "mail", "paused": false, "runnable": true, "items": [], "next": null,
            "breaker": {"state": "open", "forced": true}, "id": ID, "state": "done", "failed": 0, "done": 3, "total": 3,
            "verb": "cancel", "count": 3});
        (200, kind.to_string())
    })
}

fn ask(fake: &Fake, args: &[&str]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), &[args, &["--server", &fake.url]].concat());
    assert_eq!(ran.code, 0, "{args:?}: {ran:?}");
    ran
}

#[track_caller]
fn check(args: &[&str], line: &str, body: &str) -> Ran {
    let fake = fake();
    let ran = ask(&fake, args);
    assert_eq!(fake.asked_once(), (line.to_owned(), body.to_owned()), "{args:?}");
    ran
}

#[test]
fn kinds_are_shown_and_changed() {
    let shown = check(&["kinds", "show", "mail"], "GET /v1/kinds/mail", "");
    assert!(shown.out.contains("open (set by an operator)"), "{shown:?}");
    // Settings are sent as written.
    let settings = r#"{"attempts_max": 3, "rate":"5/s"}"#;
    check(&["kinds", "put", "mail", settings], "PUT /v1/kinds/mail", settings);
    check(&["kinds", "patch", "mail", settings], "PATCH /v1/kinds/mail", settings);
    let deleted = check(&["kinds", "delete", "mail", "--yes"], "DELETE /v1/kinds/mail", "");
    assert_eq!(deleted.out, "mail deleted");
    let paused = check(&["kinds", "pause", "mail"], "POST /v1/kinds/mail/pause", "");
    assert_eq!(paused.out, "mail runnable, breaker open (set by an operator)");
    check(&["kinds", "resume", "mail"], "POST /v1/kinds/mail/resume", "");
    for verb in ["open", "close", "reset"] {
        let line = format!("POST /v1/kinds/mail/breaker/{verb}");
        check(&["kinds", "breaker", verb, "mail"], &line, "");
    }
    for args in [&["kinds"][..], &["kinds", "list"]] {
        check(args, "GET /v1/kinds?limit=1000", "");
    }
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), &["kinds", "put", "mail", "{"]).code, 2);
}

#[test]
fn a_kind_that_is_deleted_without_an_answer_is_told() {
    let fake = Fake::start(|_| (204, String::new()));
    let ran = ask(&fake, &["kinds", "delete", "mail", "--yes", "--json"]);
    assert_eq!(ran.json(), json!({ "kind": "mail", "deleted": true }));
}

#[test]
fn jobs_are_changed_by_filter() {
    for verb in ["cancel", "pause", "resume", "retry"] {
        let fake = fake();
        let filter = [
            "--kind",
            "a",
            "--kind",
            "b",
            "--state",
            "dead",
            "--category",
            "timeout",
            "--tenant",
            "t",
            "--q",
            "x y",
        ];
        let args = [&["jobs", verb, "--dry-run", "--rate", "5/s", "--incident", "i"][..], &filter]
            .concat();
        let ran = ask(&fake, &args);
        assert!(ran.out.starts_with("3 jobs would be changed"), "{ran:?}");
        let (line, body) = fake.asked_once();
        assert_eq!(line, format!("POST /v1/jobs/{verb}"));
        let expected = json!({ "dry_run": true, "rate": "5/s", "filter": { "kind": ["a", "b"], "state": ["dead"],
            "category": "timeout", "tenant": "t", "q": "x y", "incident": "i" } });
        assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), expected);
        let ran = ask(&fake, &["jobs", verb, "--all", "--yes", "--detach"]);
        assert_eq!(ran.out, ID);
        let (_, body) = fake.asked_once();
        let expected = json!({ "dry_run": false, "all": true, "filter": {} });
        assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), expected);
        ask(&fake, &["jobs", verb, ID, ID]);
        let lines: Vec<_> = fake.asked().into_iter().map(|asked| asked.line).collect();
        assert_eq!(lines, vec![format!("POST /v1/jobs/{ID}/{verb}"); 2]);
    }
    let fake = fake();
    ask(&fake, &["dead", "redrive", "--all", "--detach"]);
    let (line, body) = fake.asked_once();
    assert_eq!(line, "POST /v1/jobs/redrive");
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap()["all"], true);
}

#[test]
fn which_jobs_are_meant_must_be_clear() {
    let folder = tempfile::tempdir().unwrap();
    let refused: [&[&str]; 6] = [
        &["jobs", "cancel", "--yes"],
        &["jobs", "cancel", ID, "--kind", "a", "--yes"],
        &["jobs", "cancel", ID, "--dry-run"],
        &["jobs", "cancel", "--all", "--kind", "a", "--yes"],
        &["dead", "redrive"],
        &["dead", "redrive", "--all", "--kind", "a"],
    ];
    for args in refused {
        let ran = run(folder.path(), args);
        assert_eq!(ran.code, 2, "{args:?}: {ran:?}");
    }
}

#[test]
fn the_audit_log_and_jobs_are_listed_by_filter() {
    let line =
        "GET /v1/audit?job=j&what=put+kind&what=edit&kind=mail&who=token%3Aops&limit=5&cursor=c";
    let what = ["--what", "put kind", "--what", "edit", "--kind", "mail", "--who", "token:ops"];
    let paging = ["--job", "j", "--limit", "5", "--cursor", "c"];
    let ran = check(&[&["audit"][..], &what, &paging].concat(), line, "");
    assert_eq!(ran.out, "no entries");
    check(
        &["jobs", "list", "--key", "k 1", "--kind", "mail"],
        "GET /v1/jobs?key=k+1&kind=mail",
        "",
    );
}

#[test]
fn events_are_printed_as_they_come() {
    let event = |seq: u32| {
        format!(
            "event: job\nid: {seq}\ndata: {{\"job\":\"{ID}\",\"kind\":\"mail\", \"from\":null,\"to\":\"leased\",\"at\":\"now\"}}\n\n"
        )
    };
    let all =
        ["event: missed\nid: 1\ndata: {\"up_to\":\"1\"}\n\n", &event(2), &event(3), &event(4)]
            .concat();
    let fake = Fake::start(move |_| (200, all.clone()));
    let line = format!("now  {ID}  new -> leased           mail");
    let ran = ask(&fake, &["events", "--kind", "mail", "--job", ID]);
    assert_eq!(ran.out.lines().collect::<Vec<_>>(), vec![line.as_str(); 3], "{ran:?}");
    assert_eq!(ran.err, "");
    assert_eq!(fake.asked_once().0, format!("GET /v1/events?kind=mail&job={ID}&after=0"));
    let ran = ask(&fake, &["events", "--follow", "--limit", "2", "--json"]);
    let document = format!(
        "{{\"job\":\"{ID}\",\"kind\":\"mail\", \"from\":null,\"to\":\"leased\",\"at\":\"now\"}}"
    );
    assert_eq!(ran.out.lines().collect::<Vec<_>>(), vec![document.as_str(); 2], "{ran:?}");
    assert_eq!(ran.err, "events up to and including 1 are no longer available");
    assert_eq!(fake.asked_once().0, "GET /v1/events");
    let folder = tempfile::tempdir().unwrap();
    let ended = run(folder.path(), &["events", "--follow", "--after", "1", "--server", &fake.url]);
    assert!(ended.code == 7 && ended.err.ends_with("hint: continue with --after 4"), "{ended:?}");
    assert_eq!(fake.asked_once().0, "GET /v1/events?after=1");
}
