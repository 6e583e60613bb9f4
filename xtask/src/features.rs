//! Selects the cargo features of a test run.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::repository::{self, Repository};

/// Returns cargo's arguments for every feature of the workspace except those in `off`.
///
/// Cargo accepts all features or a list; this builds the list from the manifests.
pub(crate) fn all_but(repository: &Repository, off: &[&str]) -> Result<String> {
    if off.is_empty() {
        return Ok("--all-features".to_owned());
    }
    let metadata =
        repository::read(&mut repository.cargo("metadata --no-deps --format-version 1"))?;
    let metadata = serde_json::from_str(&metadata).context("cargo's metadata is no JSON")?;
    Ok(format!("--features {}", names(&metadata, off).join(",")))
}

fn names(metadata: &Value, off: &[&str]) -> Vec<String> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let mut names = Vec::new();
    for package in packages {
        let features = package["features"].as_object().into_iter().flatten();
        let on =
            features.map(|(feature, _)| feature).filter(|feature| !off.contains(&feature.as_str()));
        let package = package["name"].as_str().unwrap_or_default();
        names.extend(on.map(|feature| format!("{package}/{feature}")));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::names;
    use serde_json::json;

    #[test]
    fn every_feature_is_named_but_those_that_are_off() {
        let metadata = json!({"packages": [
            {"name": "stores", "features": {"default": ["sqlite"], "sqlite": [], "test-postgres": []}},
            {"name": "cli", "features": {"test-postgres": []}},
            {"name": "plain", "features": {}},
        ]});
        assert_eq!(names(&metadata, &["test-postgres"]), ["stores/default", "stores/sqlite"]);
        assert_eq!(names(&metadata, &[]).len(), 4);
    }
}
