//! Tests that the config reference and the example file match the code.

use super::super::reference::{DefaultValue, SETTINGS, example, page};
use super::super::{Config, Sections};
use super::load;
use crate::callback::Callback;
use std::collections::BTreeSet;
use std::path::Path;

/// Returns the keys that a section accepts: the parser lists them in the error for an unknown key.
fn known(section: &str) -> BTreeSet<String> {
    let message = match section {
        "kinds.*.callback" => {
            Callback::parse(&serde_json::json!({"?": 1})).unwrap_err().to_string()
        }
        "notify.route.*" => error("[[notify.route]]\nto = \"log\"\n\"?\" = 1"),
        named => error(&format!("[{}]\n\"?\" = 1", named.replace('*', "x"))),
    };
    let (_, names) = message.split_once("expected one of ").unwrap_or_else(|| {
        message.split_once("expected ").unwrap_or_else(|| panic!("{section}: {message}"))
    });
    names.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn error(text: &str) -> String {
    toml::from_str::<Sections>(text).unwrap_err().message().to_owned()
}

#[test]
fn every_key_is_in_the_reference() {
    let mut sections: Vec<&str> = SETTINGS.iter().map(|setting| setting.section).collect();
    sections.dedup();
    let mut first: BTreeSet<&str> =
        sections.iter().map(|section| section.split('.').next().unwrap()).collect();
    // It has the keys of kinds.
    assert_eq!(known("defaults.kind"), known("kinds.*"));
    first.insert("defaults");
    assert!(known_sections().iter().all(|name| first.remove(name.as_str())), "{first:?}");
    for section in sections {
        let mut told: BTreeSet<String> = SETTINGS
            .iter()
            .filter(|setting| setting.section == section)
            .map(|setting| setting.name.to_owned())
            .collect();
        // Keys with their own section.
        match section {
            "server" => drop(told.insert("limits".to_owned())),
            "kinds.*" => drop(told.insert("callback".to_owned())),
            "notify" => drop(told.insert("route".to_owned())),
            _ => {}
        }
        assert_eq!(told, known(section), "in [{section}]");
    }
}

fn known_sections() -> BTreeSet<String> {
    let message = error("\"?\" = 1");
    message.split('`').skip(3).step_by(2).map(str::to_owned).collect()
}

#[test]
fn what_is_said_of_defaults_is_so() {
    for setting in SETTINGS {
        let DefaultValue::Is(value) = setting.default else { continue };
        let (section, name) = (setting.section.replace('*', "x"), setting.name);
        let (with, without) = match setting.section {
            "notify.route.*" => (
                format!("[[notify.route]]\nto = \"log\"\n{name} = {value}"),
                "[[notify.route]]\nto = \"log\"".to_owned(),
            ),
            "kinds.*.callback" => {
                let url = "[kinds.x.callback]\nurl = \"https://a.example\"";
                // The value is not kept: only check that it can be read.
                load(&format!("{url}\n{name} = {value}"), &[]).unwrap();
                continue;
            }
            _ => (format!("[{section}]\n{name} = {value}"), format!("[{section}]")),
        };
        let (with, without) = (load(&with, &[]).unwrap(), load(&without, &[]).unwrap());
        assert_eq!(with, without, "{section}.{name} = {value}");
    }
}

#[test]
fn the_example_says_what_is_so_anyway() {
    let config = load(&example(), &[]).unwrap();
    let named = ["[kinds.charge-card]", "[tenants.acme]"].join("\n");
    assert_eq!(config, load(&named, &[]).unwrap());
}

#[test]
fn all_that_the_example_could_say_can_be_said() {
    let text = example().replace("sqlite://rewheel.db", "postgres://shop@db/shop");
    let text = text.replace("\"handler\"", "\"callback\"");
    let is_setting = |line: &str| {
        line.starts_with('[')
            || line.split_once(" = ").is_some_and(|(name, _)| {
                name.chars().all(|one| one.is_ascii_lowercase() || one == '_')
            })
    };
    let lines = text.lines().map(|line| match line.strip_prefix("# ") {
        Some(rest) if is_setting(rest) => rest,
        _ => line,
    });
    // Skip settings that only the environment can set, that name a local file, that are too long
    // for a line, or that exclude another one.
    let is_hinted =
        |text: &str| ["admin_token", "ca =", "every ="].iter().any(|name| text.starts_with(name));
    let lines = lines.filter(|line| !is_hinted(line));
    let all = lines.collect::<Vec<_>>().join("\n");
    let config = load(&all, &[]).unwrap_or_else(|error| panic!("{error}\n{all}"));
    assert_eq!((config.kinds.len(), config.notify.route.len()), (1, 1));
    assert_eq!(config.store.pool_max, Some(16));
    for setting in SETTINGS.iter().filter(|one| !is_hinted(&format!("{} =", one.name))) {
        assert!(all.contains(&format!("\n{} = ", setting.name)), "{}", setting.name);
    }
}

/// `REWHEEL_WRITE=1 cargo test -p rewheel-server` writes the files.
#[test]
fn what_people_read_is_what_the_code_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (name, text) in [("rewheel.example.toml", example()), ("docs/config.md", page())] {
        let path = root.join(name);
        if std::env::var_os("REWHEEL_WRITE").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            written == text,
            "{name} is not what the code says: run this test with REWHEEL_WRITE=1"
        );
    }
}

#[test]
fn what_is_in_force_says_where_it_is_from() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rewheel.toml");
    let text = r#"
        [store]
        url = "postgres://shop:geheim@db/shop"
        [engine]
        concurrency = 8
        [kinds."charge.card"]
        runner = "callback"
        callback = { url = "https://a.example/hook?key=geheim", failover = ["https://b.example?geheim", { url = "https://c.example?k=${PATH}", region = "eu" }], headers = { x-a = "geheim", x-b = "${PATH}" }, secrets = ["whsec_Z2VoZWltZ2VoZWltZ2VoZWltZ2VoZWlt"] }
        [[notify.route]]
        to = "slack"
        url = "https://hooks.example/geheim"
        [[notify.route]]
        to = "feishu"
        url = "https://bots.example/geheim"
        secrets = ["geheim"]
    "#;
    std::fs::write(&path, text).unwrap();
    let env = [
        ("REWHEEL__ENGINE__CONCURRENCY", "9"),
        ("REWHEEL__ENGINE__POLL", "2s"),
        ("REWHEEL__SERVER__ADMIN_TOKEN", "geheim-0123456789abcdef-0123456789abcdef"),
    ];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let all = Config::in_force(Some(&path), env.into_iter()).unwrap();
    let found = |key: &str| {
        let one = all.iter().find(|one| one.key == key).unwrap_or_else(|| panic!("no {key}"));
        let origin = one.origin.rsplit('/').next().unwrap().to_owned();
        (one.value.as_ref().map(ToString::to_string).unwrap_or_default(), origin)
    };
    let is = |value: &str, origin: &str| (value.to_owned(), origin.to_owned());
    assert_eq!(found("engine.concurrency"), is("9", "REWHEEL__ENGINE__CONCURRENCY"));
    assert_eq!(found("engine.poll"), is("\"2s\"", "REWHEEL__ENGINE__POLL"));
    assert_eq!(found("server.admin_token"), is("\"***\"", "REWHEEL__SERVER__ADMIN_TOKEN"));
    assert_eq!(found("engine.overdue_grace"), is("\"30s\"", "default"));
    assert_eq!(found("store.pool_max"), is("", "default"));
    assert_eq!(found("store.url"), is("\"postgres://***@db/shop\"", "rewheel.toml:3"));
    assert_eq!(found("kinds.charge.card.runner"), is("\"callback\"", "rewheel.toml:7"));
    assert_eq!(found("kinds.charge.card.attempts_max"), is("8", "default"));
    let headers = found("kinds.charge.card.callback.headers");
    assert_eq!(headers, is("{ x-a = \"***\", x-b = \"${PATH}\" }", "rewheel.toml:8"));
    let url = found("kinds.charge.card.callback.url");
    assert_eq!(url, is("\"https://a.example/hook?***\"", "rewheel.toml:8"));
    let failover = found("kinds.charge.card.callback.failover").0;
    assert!(failover.contains("https://b.example?***"), "{failover}");
    assert!(failover.contains("https://c.example?k=${PATH}"), "{failover}");
    assert_eq!(found("notify.route.0.url"), is("\"***\"", "rewheel.toml:11"));
    assert_eq!(found("notify.route.1.secrets"), is("[\"***\"]", "rewheel.toml:15"));
    assert!(!serde_json::to_string(&all).unwrap().contains("geheim"));
}
