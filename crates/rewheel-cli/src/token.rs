//! Creates, lists and revokes access tokens.

use crate::args::Paging;
use crate::cli_error::{CliError, exit};
use crate::client::{Client, Document};
use crate::local;
use crate::output::Output;
use crate::pages::{self, Listed};
use crate::screen::{inline, text};
use clap::{Args, Subcommand};
use rewheel_core::store::{Store, StoreError};
use rewheel_core::{Actor, SecretUrl, TokenRevoked};
use rewheel_server::tokens::{TokenDocument, find, make, stored};
use serde_json::{Value, json};
use std::sync::Arc;

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token, and print it once
    Create(Create),
    /// List tokens, without their secrets
    List {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        paging: Paging,
    },
    /// Revoke a token: within a second every server rejects it
    Revoke {
        /// Select the token by name or id
        #[arg(value_name = "TOKEN")]
        which: String,
        #[command(flatten)]
        place: Place,
    },
}

/// Where the tokens are stored.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// Use this store directly, without a server; needed to create the first token
    #[arg(long, value_name = "URL")]
    store: Option<SecretUrl>,
}

#[derive(Debug, Args)]
pub(crate) struct Create {
    /// Set the name of the token; the audit log shows it
    name: String,

    /// Grant this role: submit, read, work, operate or admin (repeatable)
    #[arg(long, required = true, value_delimiter = ',')]
    role: Vec<String>,

    /// Restrict the token to the jobs of this tenant
    #[arg(long)]
    tenant: Option<String>,

    /// Let the token expire after this time, such as 90d (default: never)
    #[arg(long, value_name = "DURATION")]
    expires_in: Option<String>,

    #[command(flatten)]
    place: Place,
}

impl Create {
    /// The body of `POST /v1/tokens`.
    fn body(&self) -> String {
        let Create { name, role, tenant, expires_in, .. } = self;
        json!({ "name": name, "roles": role, "tenant": tenant, "expires_in": expires_in })
            .to_string()
    }
}

pub(crate) async fn run(
    command: TokenCommand,
    client: impl Fn() -> Result<Client, CliError>,
    output: Output,
) -> Result<(), CliError> {
    match command {
        TokenCommand::Create(create) => {
            let token = match &create.place.store {
                Some(url) => create_in(&*open(url).await?, &create.body()).await?,
                None => client()?.post(&["tokens"], create.body()).await?,
            };
            created(&token, output);
        }
        TokenCommand::List { place, paging } => {
            let listed = match &place.store {
                Some(url) => list_in(&*open(url).await?).await?,
                None => pages::read(&["tokens"], &[], &paging, &client()?).await?,
            };
            let names = ["NAME", "ID", "ROLES", "TENANT", "STATE", "CREATED", "EXPIRES"];
            listed.print(output, &names, row, "no tokens");
        }
        TokenCommand::Revoke { which, place } => {
            let revoked = match &place.store {
                Some(url) => revoke_in(&*open(url).await?, &which).await?,
                None => {
                    let path = ["tokens", named(&which), "revoke"];
                    client()?.post(&path, String::new()).await?
                }
            };
            output.answer(&revoked.text, || format!("revoked {}", text(&revoked.value, "name")));
        }
    }
    Ok(())
}

async fn open(url: &SecretUrl) -> Result<Arc<dyn Store>, CliError> {
    local::open(url).await
}

/// Returns the actor in the audit log for direct access to the store.
fn who() -> Actor {
    Actor::new("cli")
}

async fn create_in(store: &dyn Store, body: &str) -> Result<Document, CliError> {
    let (new, text) = make(body)?;
    let put = match store.put_token(&new, &who()).await {
        // The id is already fixed: a repetition creates no second token.
        Err(StoreError::Ambiguous(_)) => store.put_token(&new, &who()).await?,
        put => put?,
    };
    let token = stored(put, &new.name)?;
    store.close().await?;
    document(&TokenDocument::new(&token).reveal(&text))
}

async fn list_in(store: &dyn Store) -> Result<Listed, CliError> {
    let tokens = store.tokens().await?;
    store.close().await?;
    let items: Vec<TokenDocument> = tokens.iter().map(TokenDocument::new).collect();
    let document = json!({ "items": items, "next": null });
    let text = document.to_string();
    let items = document["items"].as_array().cloned().unwrap_or_default();
    Ok(Listed { text, items, next: None, is_complete: true })
}

async fn revoke_in(store: &dyn Store, wanted: &str) -> Result<Document, CliError> {
    let tokens = store.tokens().await?;
    let not_found = || {
        let message = format!("token `{}` does not exist", named(wanted));
        CliError::new(exit::NOT_FOUND, anyhow::Error::msg(message))
            .hint("list the tokens with `rewheel token list`")
    };
    let id = find(&tokens, wanted).ok_or_else(not_found)?.id;
    let revoked = store.revoke_token(id, &who()).await?;
    store.close().await?;
    match revoked {
        TokenRevoked::Revoked(token) => document(&TokenDocument::new(&token)),
        TokenRevoked::NotFound => Err(not_found()),
    }
}

fn document(token: &TokenDocument) -> Result<Document, CliError> {
    let failed = |error| CliError::new(exit::FAILED, error);
    let value = serde_json::to_value(token).map_err(failed)?;
    Ok(Document { text: serde_json::to_string(token).map_err(failed)?, value })
}

/// If the text is a whole token (id and secret), returns only the id: the secret must not be part of a URL.
fn named(token: &str) -> &str {
    let id = token.strip_prefix("rw_").and_then(|rest| rest.split_once('_'));
    id.map_or(token, |(id, _)| id)
}

/// Prints only the token, so that a shell can store it.
fn created(created: &Document, output: Output) {
    let token = &created.value;
    output.answer(&created.text, || text(token, "token"));
    let part = |name: &str, before: &str| match text(token, name) {
        value if value.is_empty() => String::new(),
        value => format!("{before}{value}"),
    };
    output.note(format_args!(
        "created {} with {}{}{}; the token is not shown again",
        text(token, "name"),
        roles(token),
        part("tenant", " for the tenant "),
        part("expires", ", valid until "),
    ));
}

fn roles(token: &Value) -> String {
    let roles = token["roles"].as_array().into_iter().flatten();
    inline(&roles.filter_map(Value::as_str).collect::<Vec<_>>().join(","))
}

fn row(token: &Value) -> Vec<String> {
    let field = |name: &str| text(token, name);
    vec![
        field("name"),
        field("id"),
        roles(token),
        field("tenant"),
        field("state"),
        field("created"),
        field("expires"),
    ]
}
