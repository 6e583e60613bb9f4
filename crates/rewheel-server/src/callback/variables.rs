//! Finds environment variables that a text refers to as `${NAME}`.

/// The prefix of the server's own variables.
const OWN_PREFIX: &str = "REWHEEL__";

/// A piece of a text with variables.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'t, V> {
    /// Literal text.
    Text(&'t str),
    /// A variable.
    Variable(V),
}

/// Splits a text at its variables. All code that looks for variables uses this function, so that the check of permitted variables sees
/// the same names as the substitution.
fn split(text: &str) -> Result<Vec<Piece<'_, &str>>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (name, tail) = after.split_once('}').ok_or("has a `${` without a matching `}`")?;
        pieces.push(Piece::Text(before));
        pieces.push(Piece::Variable(name));
        rest = tail;
    }
    pieces.push(Piece::Text(rest));
    Ok(pieces)
}

/// Returns the names of the variables in a text.
pub(crate) fn names(text: &str) -> Vec<&str> {
    let name = |piece| match piece {
        Piece::Variable(name) => Some(name),
        Piece::Text(_) => None,
    };
    split(text).into_iter().flatten().filter_map(name).collect()
}

/// Returns the text in pieces, with the values of the variables.
///
/// # Errors
/// Returns the name of a variable that is not set or not permitted.
pub(super) fn pieces<'t>(
    text: &'t str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<Piece<'t, String>>, String> {
    let wrong =
        |name: &str, why: &str| format!("uses the environment variable `{name}`, which {why}");
    let value = |piece: Piece<'t, &str>| match piece {
        Piece::Text(text) => Ok(Piece::Text(text)),
        // The password of the store must not reach a callee.
        Piece::Variable(name) if name.starts_with(OWN_PREFIX) => {
            Err(wrong(name, "is reserved for the server: use another name"))
        }
        Piece::Variable(name) => variable(name)
            .map(Piece::Variable)
            .ok_or_else(|| wrong(name, "is not set: set it and restart the server")),
    };
    split(text)?.into_iter().map(value).collect()
}

/// Replaces each `${NAME}` by the value of that variable.
pub(crate) fn substitute(
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let mut result = String::with_capacity(text.len());
    for piece in pieces(text, variable)? {
        match piece {
            Piece::Text(text) => result.push_str(text),
            Piece::Variable(value) => result.push_str(&value),
        }
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::{names, substitute};

    #[test]
    fn the_names_that_are_checked_are_the_names_that_are_read() {
        for text in ["", "a", "${A}", "x${A}y${B}", "${A${B}", "$${A}}", "${}", "${A}${"] {
            let read = std::cell::RefCell::new(Vec::new());
            let variable = |name: &str| {
                read.borrow_mut().push(name.to_owned());
                Some("${A}".to_owned())
            };
            let _ = substitute(text, &variable);
            assert_eq!(read.into_inner(), names(text), "{text}");
        }
        let value = |_: &str| Some("${B}".to_owned());
        assert_eq!(substitute("<${A}>", &value).unwrap(), "<${B}>", "a value names no variable");
    }
}
