//! Tests that lists are read page by page.

use super::fake::Fake;
use crate::shell::run;

/// A server with three pages; the last has one item.
fn three_pages() -> Fake {
    Fake::start(|asked| {
        let page =
            |items: &str, next: &str| (200, format!(r#"{{"items":[{items}],"next":{next}}}"#));
        match &asked.line {
            line if line.contains("cursor=c%2F1") => page(r#"{"id":"c", "n":1.0}"#, r#""c2""#),
            line if line.contains("cursor=c2") => page(r#"{"id":"d","n":1e2}"#, "null"),
            _ => page(r#"{"id":"a"}, {"id":"b"}"#, r#""c/1""#),
        }
    })
}

#[test]
fn all_pages_are_read_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let lists: [&[&str]; 10] = [
        &["jobs", "list"],
        &["dead", "list"],
        &["audit"],
        &["holders"],
        &["incidents"],
        &["incidents", "list"],
        &["operations", "list"],
        &["kinds"],
        &["kinds", "list"],
        &["token", "list"],
    ];
    for args in lists {
        let fake = three_pages();
        let server = ["--server", &fake.url];
        let all = run(folder.path(), &[args, &["--all-pages", "--json"], &server].concat());
        let expected = r#"{"items":[{"id":"a"},{"id":"b"},{"id":"c", "n":1.0},{"id":"d","n":1e2}],"next":null}"#;
        assert_eq!((all.code, all.out.as_str(), all.err.as_str()), (0, expected, ""), "{args:?}");
        assert_eq!(fake.asked().len(), 3, "{args:?}");
        let one = run(folder.path(), &[args, &["--limit", "2", "--json"], &server].concat());
        assert_eq!(one.json()["items"].as_array().unwrap().len(), 2, "{args:?}");
        assert_eq!(one.err, "more results: add --all-pages or --cursor c/1", "{args:?}");
        let rest = run(
            folder.path(),
            &[args, &["--cursor", "c2", "--limit", "1", "--json"], &server].concat(),
        );
        assert_eq!((rest.json()["items"][0]["id"].as_str(), rest.err.as_str()), (Some("d"), ""));
    }
}

#[test]
fn a_list_that_would_not_end_is_an_error() {
    let fake = Fake::start(|_| (200, r#"{"items":[],"next":"same"}"#.to_owned()));
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), &["jobs", "list", "--all-pages", "--server", &fake.url]);
    assert!(ran.code == 1 && ran.err.contains("the same cursor twice"), "{ran:?}");
    assert_eq!(fake.asked().len(), 2);
}
