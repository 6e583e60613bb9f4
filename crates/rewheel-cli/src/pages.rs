//! Reads lists page by page.

use crate::args::Paging;
use crate::cli_error::{CliError, exit};
use crate::client::Client;
use crate::output::{Output, table};
use crate::screen::inline;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// The maximum page size.
pub(crate) const LIMIT_MAX: &str = "1000";

/// One page, or all of them.
#[derive(Debug)]
pub(crate) struct Listed {
    /// The document as the server sent it, or with the items of all pages.
    pub(crate) text: String,
    pub(crate) items: Vec<Value>,
    /// The cursor of the next page.
    pub(crate) next: Option<String>,
    /// Whether the server read everything.
    pub(crate) is_complete: bool,
}

/// A page with its items as they were sent.
#[derive(Debug, Deserialize)]
struct RawPage {
    items: Vec<Box<RawValue>>,
}

/// Reads the requested page, or all pages.
pub(crate) async fn read(
    path: &[&str],
    query: &[(&str, &str)],
    paging: &Paging,
    client: &Client,
) -> Result<Listed, CliError> {
    if paging.all_pages {
        return read_all(path, query, paging, client).await;
    }
    let mut query = query.to_vec();
    let single = [("limit", &paging.limit), ("cursor", &paging.cursor)];
    query.extend(single.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))));
    let page = client.get(path, &query).await?;
    Ok(Listed {
        items: page.value["items"].as_array().cloned().unwrap_or_default(),
        next: page.value["next"].as_str().map(str::to_owned),
        is_complete: page.value["complete"] != false,
        text: page.text,
    })
}

async fn read_all(
    path: &[&str],
    query: &[(&str, &str)],
    paging: &Paging,
    client: &Client,
) -> Result<Listed, CliError> {
    // Tokens are always on one page, and their route takes no limit.
    let largest = (path != ["tokens"]).then_some(LIMIT_MAX);
    let limit = paging.limit.as_deref().or(largest);
    let mut cursor = paging.cursor.clone();
    let (mut raw, mut items, mut is_complete) = (Vec::new(), Vec::new(), true);
    loop {
        let mut query = query.to_vec();
        query.extend(limit.map(|limit| ("limit", limit)));
        query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let page = client.get(path, &query).await?;
        let mut value = page.value;
        let sent: RawPage = serde_json::from_str(&page.text)
            .map_err(|error| CliError::new(exit::UNAVAILABLE, error))?;
        raw.extend(sent.items);
        if let Value::Array(more) = value["items"].take() {
            items.extend(more);
        }
        is_complete &= value["complete"] != false;
        let next = value["next"].as_str().map(str::to_owned);
        if next.is_none() {
            break;
        }
        if next == cursor {
            let message =
                "the server returned the same cursor twice: stopped to avoid an endless list";
            return Err(CliError::new(exit::FAILED, anyhow::Error::msg(message)));
        }
        cursor = next;
    }
    let joined: Vec<&str> = raw.iter().map(|item| item.get()).collect();
    let complete = if is_complete { "" } else { r#","complete":false"# };
    let text = format!(r#"{{"items":[{}],"next":null{complete}}}"#, joined.join(","));
    Ok(Listed { text, items, next: None, is_complete })
}

impl Listed {
    /// Prints the list as a table, or a text for an empty list.
    pub(crate) fn print(
        self,
        output: Output,
        names: &[&str],
        row: impl Fn(&Value) -> Vec<String>,
        none: &str,
    ) {
        let Listed { text, items, next, is_complete } = self;
        output.answer(text, || match items.as_slice() {
            [] => none.to_owned(),
            items => table(names, items.iter().map(row)),
        });
        if !is_complete {
            output.note("the search stopped early: the server searched only the newest jobs");
        }
        if let Some(next) = next {
            output
                .note(format_args!("more results: add --all-pages or --cursor {}", inline(&next)));
        }
    }
}
