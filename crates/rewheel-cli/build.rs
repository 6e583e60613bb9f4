//! Tells the program its commit and its features.

use std::process::Command;

/// Features that a user of the program notices.
const FEATURES: [&str; 4] = ["mysql", "otlp", "postgres", "redis"];

fn main() {
    println!("cargo::rerun-if-env-changed=REWHEEL_COMMIT");
    let is_on =
        |name: &&str| std::env::var_os(format!("CARGO_FEATURE_{}", name.to_uppercase())).is_some();
    let features: Vec<&str> = FEATURES.into_iter().filter(is_on).collect();
    let features = if features.is_empty() { "none".to_owned() } else { features.join(", ") };
    println!("cargo::rustc-env=REWHEEL_FEATURES={features}");
    println!("cargo::rustc-env=REWHEEL_COMMIT={}", commit());
}

/// Returns the commit: of the variable, which a build without git needs, or of the checkout.
fn commit() -> String {
    let named = std::env::var("REWHEEL_COMMIT").unwrap_or_default();
    if !named.is_empty() {
        return named;
    }
    // Otherwise each commit would compile the program and its tests again.
    let is_for_users = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let found = if is_for_users { git(&["rev-parse", "--short=12", "HEAD"]) } else { None };
    if let Some(log) = found.as_ref().and_then(|_| git(&["rev-parse", "--git-path", "logs/HEAD"])) {
        println!("cargo::rerun-if-changed={log}");
    }
    found.unwrap_or_else(|| "unknown".to_owned())
}

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
