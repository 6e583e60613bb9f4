//! Fills in the names that the files of statements and scripts contain in braces.

/// Replaces every name in braces by its meaning. A name without a meaning stays, and the database rejects the statement.
pub(crate) fn fill_in(text: &str, meaning: impl Fn(&str) -> Option<String>) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let known = after.split_once('}').and_then(|(name, after)| Some((meaning(name)?, after)));
        match known {
            Some((meaning, after)) => {
                filled.push_str(&meaning);
                rest = after;
            }
            None => {
                filled.push('{');
                rest = after;
            }
        }
    }
    filled.push_str(rest);
    filled
}
