//! Formats a notice as a chat message.

use super::settings::NotifyTarget;
use rewheel_core::printable;
use rewheel_engine::notify::Notice;

/// Chats collapse or reject longer messages.
const MESSAGE_CHARS_MAX: usize = 4_000;

/// A chat message: what happened, the known facts, and the failure, one per line.
///
/// It may contain text of callees, so it must be escaped for each chat: [`written_for`](Message::written_for) is the only way to get the
/// text.
pub(super) struct Message(String);

impl Message {
    pub(super) fn new(notice: &Notice) -> Message {
        let mut text =
            format!("[{}] {}: {}", notice.severity, notice.event, printable(&notice.text));
        let Notice { kind, tenant, job, attempt, reason, holder, .. } = notice;
        let mut facts: Vec<String> = Vec::new();
        let mut fact = |name: &str, value: Option<String>| {
            facts.extend(value.map(|value| format!("{name} {}", printable(&value))));
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
        let error = notice.error.as_deref().map(|error| printable(error).into_owned());
        for line in [Some(facts.join(" · ")), error].into_iter().flatten() {
            if !line.is_empty() {
                text.push('\n');
                text.push_str(&line);
            }
        }
        if let Some((at, _)) = text.char_indices().nth(MESSAGE_CHARS_MAX) {
            text.truncate(at);
        }
        Message(text)
    }

    /// Returns the text escaped for this receiver: without links, mentions or other markup.
    pub(super) fn written_for(&self, to: NotifyTarget) -> String {
        let text = without_mentions(&self.0);
        match to {
            // Slack's own escapes; it supports no others.
            NotifyTarget::Slack => {
                text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
            }
            // Feishu has tags such as `<at user_id="all">` and links such as `[text](url)`, and no escapes.
            NotifyTarget::Feishu => text.replace('<', "＜").replace('>', "＞").replace("](", "] ("),
            // DingTalk's `text` messages only have mentions, but forwarded messages may be markdown.
            NotifyTarget::DingTalk => text.replace("](", "] ("),
            NotifyTarget::Log | NotifyTarget::Webhook => text,
        }
    }
}

/// Replaces the `@` of a mention by `＠`. An `@` inside a word, as in an email address, stays.
fn without_mentions(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    for character in text.chars() {
        let is_inside =
            kept.ends_with(|before: char| before.is_alphanumeric() || "._+-".contains(before));
        kept.push(if character == '@' && !is_inside { '＠' } else { character });
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::{Message, NotifyTarget, without_mentions};
    use rewheel_core::{KindName, Timestamp};
    use rewheel_engine::notify::{Event, Notice};

    fn message(notice: &Notice) -> String {
        Message::new(notice).0
    }

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
    fn text_of_an_error_is_no_markup_in_any_chat() {
        let error = "<!channel> & <@U1> <http://x|y> <at user_id=\"all\"></at> [a](http://x) @all\n\x1b[2J\u{202e}";
        let notice = Notice::new(Event::EngineError, Timestamp::from_millis(0), error);
        let notice = Notice { error: Some(error.to_owned()), ..notice }.with("code", error);
        let message = Message::new(&notice);
        assert_eq!(message.0.lines().count(), 3, "an error has one line");
        for to in [NotifyTarget::Slack, NotifyTarget::Feishu, NotifyTarget::DingTalk] {
            let text = message.written_for(to);
            for bad in ["<!", "<@", "<http", "@all", "\x1b", "\u{202e}"] {
                assert!(
                    !text.contains(bad) || (to == NotifyTarget::DingTalk && bad.starts_with('<')),
                    "{to}: {bad}: {text}"
                );
            }
            assert!(to == NotifyTarget::Slack || !text.contains("]("), "{to}: {text}");
        }
        assert!(
            message
                .written_for(NotifyTarget::Slack)
                .contains("&lt;!channel&gt; &amp; &lt;＠U1&gt;")
        );
        assert!(
            message.written_for(NotifyTarget::Feishu).contains("＜at user_id=\"all\"＞＜/at＞")
        );
    }

    #[test]
    fn an_address_of_mail_is_no_mention() {
        assert_eq!(without_mentions("a.b@c.example (@here) @"), "a.b@c.example (＠here) ＠");
    }
}
