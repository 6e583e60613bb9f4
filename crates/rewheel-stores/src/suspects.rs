//! Encodes the holders that suspect a kind as text.

use rewheel_core::HolderId;

/// Encodes the ids, separated by commas.
pub(crate) fn text(suspects: &[HolderId]) -> String {
    let ids: Vec<String> = suspects.iter().map(ToString::to_string).collect();
    ids.join(",")
}

/// Decodes the output of [`text`].
pub(crate) fn read(text: &str) -> Option<Vec<HolderId>> {
    text.split(',').filter(|id| !id.is_empty()).map(|id| id.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::{read, text};
    use rewheel_core::HolderId;

    #[test]
    fn reads_what_it_wrote() {
        for suspects in [vec![], vec![HolderId::from_bytes([1; 16]), HolderId::from_bytes([2; 16])]]
        {
            assert_eq!(read(&text(&suspects)), Some(suspects));
        }
        assert_eq!(read("unknown"), None);
    }
}
