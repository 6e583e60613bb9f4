//! A notice as a person reads it in a chat.

use rewheel_engine::notify::Notice;

/// Chats fold longer messages away, or refuse them.
const MESSAGE_CHARS_MAX: usize = 4_000;

/// Returns what happened, then what is known, then what went wrong: a line each.
pub(super) fn message(notice: &Notice) -> String {
    let mut text = format!("[{}] {}: {}", notice.severity, notice.event, notice.text);
    let Notice { kind, tenant, job, attempt, reason, holder, .. } = notice;
    let mut facts: Vec<String> = Vec::new();
    let mut fact = |name: &str, value: Option<String>| {
        facts.extend(value.map(|value| format!("{name} {value}")));
    };
    fact("kind", kind.as_ref().map(ToString::to_string));
    fact("tenant", tenant.as_ref().map(ToString::to_string));
    fact("job", job.map(|job| job.to_string()));
    fact("attempt", attempt.map(|attempt| attempt.to_string()));
    fact("reason", reason.as_ref().map(ToString::to_string));
    for (name, value) in &notice.attributes {
        fact(name, Some(value.clone()));
    }
    fact("holder", holder.map(|holder| holder.to_string()));
    for line in [Some(facts.join(" · ")), notice.error.clone()].into_iter().flatten() {
        if !line.is_empty() {
            text.push('\n');
            text.push_str(&line);
        }
    }
    if let Some((at, _)) = text.char_indices().nth(MESSAGE_CHARS_MAX) {
        text.truncate(at);
    }
    text
}

/// Keeps a text from being taken for Slack's markup: a link, a mention of everybody.
pub(super) fn escaped_for_slack(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::{escaped_for_slack, message};
    use rewheel_core::{KindName, Timestamp};
    use rewheel_engine::notify::{Event, Notice};

    #[test]
    fn a_message_says_what_happened_then_what_is_known_then_what_went_wrong() {
        let notice = Notice {
            kind: Some(KindName::parse("mail").unwrap()),
            attempt: Some(8),
            error: Some("timeout 504: no answer".to_owned()),
            ..Notice::new(Event::DeadLetter, Timestamp::from_millis(0), "a job is dead")
        };
        let expected = "[error] dead_letter: a job is dead\n\
                        kind mail · attempt 8 · code 504\n\
                        timeout 504: no answer";
        assert_eq!(message(&notice.with("code", 504)), expected);
    }

    #[test]
    fn a_message_without_facts_is_one_line() {
        let text = message(&Notice::new(Event::EngineError, Timestamp::from_millis(0), "it fails"));
        assert_eq!(text, "[error] engine_error: it fails");
    }

    #[test]
    fn a_long_message_is_cut() {
        let error = Some("é".repeat(4_000));
        let notice = Notice::new(Event::EngineError, Timestamp::from_millis(0), "it fails");
        assert_eq!(message(&Notice { error, ..notice }).chars().count(), 4_000);
    }

    #[test]
    fn nobody_is_called_by_the_text_of_an_error() {
        assert_eq!(escaped_for_slack("<!channel> & <b>"), "&lt;!channel&gt; &amp; &lt;b&gt;");
    }
}
