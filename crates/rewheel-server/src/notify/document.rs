//! The JSON document of a notice.

use crate::rfc3339;
use rewheel_core::is_unprintable;
use rewheel_engine::notify::Notice;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Returns a notice as JSON, as a generic webhook receives it.
pub(super) fn document(notice: &Notice) -> Value {
    let text = |value: &Option<&dyn ToString>| value.map(ToString::to_string);
    let Notice { holder, kind, tenant, job, .. } = notice;
    json!({
        "event": notice.event.as_str(),
        "severity": notice.severity.as_str(),
        "at": rfc3339::text(notice.at),
        "text": notice.text,
        "holder": text(&holder.as_ref().map(|id| id as &dyn ToString)),
        "kind": text(&kind.as_ref().map(|name| name as &dyn ToString)),
        "tenant": text(&tenant.as_ref().map(|name| name as &dyn ToString)),
        "job": text(&job.as_ref().map(|id| id as &dyn ToString)),
        "attempt": notice.attempt,
        "reason": notice.reason,
        "error": notice.error,
        "attributes": notice.attributes,
        "more": notice.more,
    })
}

/// Writes JSON without any control characters, so that a receiver can safely log the body: JSON itself only requires escapes for those of
/// ASCII. A parser reads the same text.
pub(super) fn json_text(value: &Value) -> String {
    let plain = value.to_string();
    if !plain.contains(is_unprintable) {
        return plain;
    }
    let mut text = String::with_capacity(plain.len() + 16);
    for character in plain.chars() {
        if is_unprintable(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(text, "\\u{unit:04x}");
            }
        } else {
            text.push(character);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{document, json_text};
    use rewheel_core::{HolderId, JobId, KindName, Tenant, Timestamp};
    use rewheel_engine::notify::{Event, Notice};
    use serde_json::json;

    #[test]
    fn a_document_has_every_name_of_the_wire() {
        let id = "01010101-0101-0101-0101-010101010101";
        let notice = Notice {
            holder: Some(HolderId::from_bytes([1; 16])),
            kind: Some(KindName::parse("mail").unwrap()),
            tenant: Some(Tenant::parse("shop").unwrap()),
            job: Some(JobId::from_bytes([1; 16])),
            attempt: Some(8),
            reason: Some("attempts_exhausted".into()),
            error: Some("timeout 504".to_owned()),
            ..Notice::new(Event::DeadLetter, Timestamp::from_millis(1_500), "dead")
        };
        let expected = json!({
            "event": "dead_letter", "severity": "error", "at": "1970-01-01T00:00:01.500Z",
            "text": "dead", "holder": id, "kind": "mail", "tenant": "shop", "job": id,
            "attempt": 8, "reason": "attempts_exhausted", "error": "timeout 504",
            "attributes": {"code": "504"}, "more": null,
        });
        assert_eq!(document(&notice.with("code", 504)), expected);
        let bare = document(&Notice::test(Timestamp::from_millis(0)));
        assert_eq!(
            (&bare["event"], &bare["job"], &bare["attributes"]),
            (&json!("test"), &json!(null), &json!({}))
        );
    }

    #[test]
    fn no_control_character_is_in_the_text_and_a_parser_reads_all_of_them() {
        let value = json!({ "error": "a\u{1b}\n\u{7f}\u{9b}\u{202e}\u{2028}\u{e0041}é" });
        let text = json_text(&value);
        assert!(!text.contains(rewheel_core::is_unprintable), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
