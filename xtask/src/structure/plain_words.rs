//! Finds words that hide who does what. The style asks for the subject: a node, a client, an operator.

use super::{Finding, TextFile, numbered};

/// Each is written in two pieces, so that this file does not find itself.
const WORDS: [&str; 6] = [
    concat!("no", "body"),
    concat!("some", "body"),
    concat!("any", "body"),
    concat!("who", "ever"),
    concat!("stand", " still"),
    concat!("stands", " still"),
];

pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        for (line, text) in numbered(&file.text) {
            let word = found(text);
            let advice = word.map(|word| format!("`{word}`: say who does what, in ordinary words"));
            findings.extend(advice.map(|advice| Finding { path: file.path.clone(), line, advice }));
        }
    }
    findings
}

fn found(line: &str) -> Option<&'static str> {
    let lower = line.to_ascii_lowercase();
    WORDS
        .into_iter()
        .find(|word| lower.match_indices(word).any(|(at, _)| !is_name(&lower, at, word)))
}

/// A text that is this word only, such as the name of a system user.
fn is_name(line: &str, at: usize, word: &str) -> bool {
    line[..at].ends_with('"') && line[at + word.len()..].starts_with('"')
}

#[cfg(test)]
mod tests {
    use super::super::testing::{file, places};
    use super::*;

    #[test]
    fn every_word_is_found_in_comments_texts_and_names() {
        for word in WORDS {
            let name = word.replace(' ', "_");
            let text = format!("fine\n// {word} waits\nfn {name}_waits()\n\"The clock: {word}\"\n");
            let found = places(&check(&[file("a.rs", &text)]));
            let expected: &[&str] = match name == word {
                true => &["a.rs:2", "a.rs:3", "a.rs:4"],
                false => &["a.rs:2", "a.rs:4"],
            };
            assert_eq!(found, expected, "{word}");
        }
    }

    #[test]
    fn case_does_not_matter() {
        assert_eq!(check(&[file("a.md", &WORDS[0].to_ascii_uppercase())]).len(), 1);
    }

    #[test]
    fn a_name_of_the_system_is_allowed() {
        assert_eq!(check(&[file("a.rs", &format!("args([\"-u\", \"{}\"])", WORDS[0]))]), []);
    }

    #[test]
    fn this_file_does_not_find_itself() {
        assert_eq!(check(&[file("plain_words.rs", include_str!("plain_words.rs"))]), []);
    }
}
