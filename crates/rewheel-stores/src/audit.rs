//! Encodes audit log entries as text.

use rewheel_core::AuditFields;

/// Encodes the facts as a JSON array of pairs. An array keeps their order, which has a meaning.
pub(crate) fn document(facts: &AuditFields) -> String {
    let pairs: Vec<_> = facts.iter().collect();
    serde_json::to_string(&pairs).unwrap_or_else(|_| "[]".to_owned())
}

/// Decodes the output of [`document`].
pub(crate) fn facts(document: &str) -> Option<AuditFields> {
    let pairs: Vec<(String, Option<String>)> = serde_json::from_str(document).ok()?;
    Some(pairs.into_iter().collect())
}
