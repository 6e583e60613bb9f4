//! Makes untrusted text safe to print: one line, without control characters.

use std::borrow::Cow;

/// Returns the text with an escape such as `\n` or `\u{1b}` in place of each character that would change how a terminal, a log or
/// a chat shows the rest: control characters (C0, DEL, C1), line and paragraph separators, characters that change the direction
/// of text, and invisible characters.
///
/// All text from called services, workers and clients passes through this function before it is shown. JSON does not need it.
///
/// ```
/// use rewheel_core::printable;
///
/// assert_eq!(printable("gone\x1b[2J\nERROR forged"), "gone\\u{1b}[2J\\nERROR forged");
/// assert_eq!(printable("größer 😀"), "größer 😀");
/// ```
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unprintable) {
        return Cow::Borrowed(text);
    }
    let mut kept = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_unprintable(character) {
            kept.extend(character.escape_default());
        } else {
            kept.push(character);
        }
    }
    Cow::Owned(kept)
}

/// Returns whether [`printable`] escapes this character.
///
/// ```
/// assert!(rewheel_core::is_unprintable('\u{202e}'));
/// ```
pub fn is_unprintable(character: char) -> bool {
    // The zero-width joiner and non-joiner (200c, 200d) are part of words and emoji.
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'
                | '\u{200e}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn whatever_changes_how_the_rest_is_shown_is_escaped() {
        for (text, expected) in [
            ("a\r\nb\tc", r"a\r\nb\tc"),
            ("\x1b]0;title\x07", r"\u{1b}]0;title\u{7}"),
            ("\0\x7f", r"\u{0}\u{7f}"),
            ("\u{85}\u{9b}2J", r"\u{85}\u{9b}2J"),
            ("\u{202e}gpj.exe\u{202c}", r"\u{202e}gpj.exe\u{202c}"),
            ("\u{2066}a\u{2069}\u{200f}\u{61c}", r"\u{2066}a\u{2069}\u{200f}\u{61c}"),
            ("a\u{2028}b\u{2029}c", r"a\u{2028}b\u{2029}c"),
            ("\u{feff}a\u{200b}\u{e0041}", r"\u{feff}a\u{200b}\u{e0041}"),
        ] {
            assert_eq!(printable(text), expected);
        }
    }

    #[test]
    fn words_stay_as_they_are() {
        for text in ["", "no answer", "größer als ß", "名前 ＠", "👩‍💻", "می‌خواهم", r"C:\new"]
        {
            assert!(matches!(printable(text), std::borrow::Cow::Borrowed(same) if same == text));
        }
    }
}
