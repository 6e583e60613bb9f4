//! Masks request secrets that a callee repeats in its response.

use rewheel_core::MASKED;
use std::fmt;

/// Shorter words are not treated as secrets: they would match everywhere.
const SECRET_BYTES_MIN: usize = 8;

/// The secret words of a callback: from its headers and from the queries of its URLs.
#[derive(Clone, Default)]
pub(crate) struct Echo(Vec<String>);

impl Echo {
    /// Collects the words that are long enough to be secrets.
    pub(crate) fn new(words: impl IntoIterator<Item = String>) -> Echo {
        let mut words: Vec<String> =
            words.into_iter().filter(|word| word.len() >= SECRET_BYTES_MIN).collect();
        // The longest first: one may be part of another.
        words.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        words.dedup();
        Echo(words)
    }

    /// Masks the secrets in a message of a callee: more people can read history and logs than may see the secrets.
    pub(crate) fn masked(&self, mut message: String) -> String {
        for secret in &self.0 {
            message = message.replace(secret.as_str(), MASKED);
            // The beginning of a secret, where the response was cut.
            let begins =
                |bytes: &usize| secret.get(..*bytes).is_some_and(|head| message.ends_with(head));
            if let Some(bytes) = (SECRET_BYTES_MIN / 2..secret.len()).rev().find(begins) {
                message.truncate(message.len() - bytes);
                message.push_str(MASKED);
            }
        }
        message
    }
}

impl fmt::Debug for Echo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Echo({MASKED})")
    }
}

#[cfg(test)]
mod tests {
    use super::Echo;

    #[track_caller]
    fn check(message: &str, expected: &str) {
        let words = ["Bearer", "s3cret-t0ken", "pay", "s3cret-t0ken-long"].map(str::to_owned);
        assert_eq!(Echo::new(words).masked(message.to_owned()), expected);
    }

    #[test]
    fn what_proves_who_sends_is_not_kept() {
        check("401: no such token: s3cret-t0ken", "401: no such token: ***");
        check("{\"authorization\":\"Bearer s3cret-t0ken\"}", "{\"authorization\":\"Bearer ***\"}");
        check("/hook?key=s3cret-t0ken-long", "/hook?key=***");
        check("cut off: s3cret-t0", "cut off: ***");
        check("the team pay is not known, Bearer", "the team pay is not known, Bearer");
        check("this is s3c", "this is s3c");
        let printed = format!("{:?}", Echo::new(["s3cret-t0ken".to_owned()]));
        assert_eq!(printed, "Echo(***)");
    }
}
