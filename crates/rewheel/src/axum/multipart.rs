//! Finds the parts of a multipart body that are the same when a client repeats a request.

/// Returns the boundary of a `multipart/…` content type.
pub(super) fn boundary(content_type: &[u8]) -> Option<&[u8]> {
    let is_multipart = media_type(content_type).to_ascii_lowercase().starts_with(b"multipart/");
    let parameters = content_type.split(|byte| *byte == b';').skip(1);
    let mut values = parameters.filter_map(|parameter| {
        let parameter = parameter.trim_ascii();
        let (name, value) = parameter.split_at_checked(b"boundary=".len())?;
        name.eq_ignore_ascii_case(b"boundary=").then_some(value)
    });
    let value = values.next().filter(|_| is_multipart)?;
    let bare =
        value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
    // An empty boundary separates nothing.
    (!bare.is_empty()).then_some(bare)
}

/// Returns the content type without its parameters.
pub(super) fn media_type(content_type: &[u8]) -> &[u8] {
    content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii()
}

/// Returns what is between the delimiters of a multipart body.
pub(super) fn split<'a>(body: &'a [u8], boundary: &[u8]) -> Vec<&'a [u8]> {
    let delimiter = [b"--", boundary].concat();
    let mut pieces = Vec::new();
    let mut rest = body;
    while let Some(at) = rest.windows(delimiter.len()).position(|window| window == delimiter) {
        pieces.push(&rest[..at]);
        rest = &rest[at + delimiter.len()..];
    }
    pieces.push(rest);
    pieces
}

#[cfg(test)]
mod tests {
    use super::{boundary, split};

    #[test]
    fn a_boundary_is_found_in_any_spelling() {
        let found =
            |text: &'static str| boundary(text.as_bytes()).map(|b| std::str::from_utf8(b).unwrap());
        assert_eq!(found("multipart/form-data; boundary=abc"), Some("abc"));
        assert_eq!(found("Multipart/Mixed; charset=utf-8; Boundary=\"a b\""), Some("a b"));
        assert_eq!(found("multipart/form-data"), None);
        assert_eq!(found("multipart/form-data; boundary="), None);
        assert_eq!(found("text/plain; boundary=abc"), None);
        assert_eq!(found("multipart/form-data; x=boundary"), None);
    }

    #[test]
    fn the_parts_do_not_contain_the_boundary() {
        let parts = split(b"--abc\r\n\r\none\r\n--abc\r\n\r\ntwo\r\n--abc--\r\n", b"abc");
        let expected = ["", "\r\n\r\none\r\n", "\r\n\r\ntwo\r\n", "--\r\n"];
        assert_eq!(parts, expected.map(str::as_bytes));
    }
}
