//! Tests the section `tenants`.

use super::{check, load};

#[test]
fn tenants_are_read() {
    let text = "[tenants.acme]\njobs_max = 100_000\n[tenants.\"*\"]\njobs_max = 10";
    let env = [("REWHEEL__TENANTS__OTHER__JOBS_MAX", "7")];
    let config = load(text, &env).unwrap();
    let most: Vec<(&str, Option<u64>)> =
        config.tenants.iter().map(|(name, of)| (name.as_str(), of.jobs_max)).collect();
    assert_eq!(most, [("*", Some(10)), ("acme", Some(100_000)), ("other", Some(7))]);
    let text = "[tenants.acme]\nrate = \"500/s\"\nconcurrency_max = 64\nweight = 2";
    let acme = &load(text, &[]).unwrap().tenants["acme"];
    assert_eq!((acme.rate, acme.concurrency_max), (Some("500/s".parse().unwrap()), Some(64)));
    assert_eq!((acme.weight, config.tenants["other"].weight), (2, 1));
}

#[test]
fn a_mistake_in_a_tenant_is_named_with_its_line() {
    let unknown = "[tenants.acme]\njob_max = 3";
    check(unknown, &[], "rewheel.toml:2: tenants.acme.job_max: unknown key `job_max`");
    let none = "[tenants.\"a.b\"]\njobs_max = 0";
    check(none, &[], "rewheel.toml:2: tenants.a.b.jobs_max: must be 1 or more");
    check(
        "[tenants.acme]\njobs_max = \"3\"",
        &[],
        "rewheel.toml:2: tenants.acme.jobs_max: invalid",
    );
    check("[tenants.acme]\njobs_max = -3", &[], "rewheel.toml:2: tenants.acme.jobs_max: invalid");
    check(
        "[tenants.a]\nrate = \"fast\"",
        &[],
        "rewheel.toml:2: tenants.a.rate: `fast` is not a rate",
    );
    let none = "[tenants.a]\nconcurrency_max = 0";
    check(none, &[], "rewheel.toml:2: tenants.a.concurrency_max: must be 1 or more");
    for weight in ["0", "101"] {
        let text = format!("[tenants.a]\nweight = {weight}");
        check(&text, &[], "rewheel.toml:2: tenants.a.weight: must be 1 to 100");
    }
    check(
        "\n[tenants.\"\"]",
        &[],
        "rewheel.toml:2: tenants.: `` is not a valid tenant: a tenant must be 1 to 128 bytes",
    );
    let env = [("REWHEEL__TENANTS__ACME__JOBS_MAX", "0")];
    check("", &env, "REWHEEL__TENANTS__ACME__JOBS_MAX: tenants.acme.jobs_max: must be 1");
}

#[test]
fn what_the_documentation_shows_is_accepted() {
    let page = include_str!("../../../../../docs/limits.md");
    let (_, example) = page.split_once("```toml\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let config = load(example, &[]).unwrap();
    assert_eq!((config.tenants["acme"].weight, config.tenants["*"].jobs_max), (2, Some(10_000)));
}
