//! Says who may do what over the wire.

use crate::client::Client;
use crate::jobs::text;
use crate::local;
use crate::output::{Output, table};
use crate::trouble::{Trouble, exit};
use clap::{Args, Subcommand};
use rewheel_core::store::{Store, StoreError};
use rewheel_core::{Actor, TokenRevoked};
use rewheel_server::tokens::{TokenDocument, find, make, stored};
use serde_json::{Value, json};
use std::sync::Arc;

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token, and print it this once
    Create(Create),
    /// List tokens, without their secrets
    List {
        #[command(flatten)]
        place: Place,
    },
    /// Take a token back: within a second no server takes it any more
    Revoke {
        /// Its name or its id
        #[arg(value_name = "TOKEN")]
        which: String,
        #[command(flatten)]
        place: Place,
    },
}

/// Where the tokens are.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// Look into this store, without a server: the first token has to come from somewhere
    #[arg(long, value_name = "URL")]
    store: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Create {
    /// What the audit log calls whoever has it
    name: String,

    /// What it is for: submit, read, work, operate, admin; may be there several times
    #[arg(long, required = true, value_delimiter = ',')]
    role: Vec<String>,

    /// The only tenant whose jobs it is for
    #[arg(long)]
    tenant: Option<String>,

    /// After how long it is of no use any more: 90d
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
    client: impl Fn() -> Result<Client, Trouble>,
    output: Output,
) -> Result<(), Trouble> {
    match command {
        TokenCommand::Create(create) => {
            let token = match &create.place.store {
                Some(url) => create_in(&*open(url).await?, &create.body()).await?,
                None => client()?.post(&["tokens"], create.body()).await?.value,
            };
            created(&token, output);
            Ok(())
        }
        TokenCommand::List { place } => {
            let page = match &place.store {
                Some(url) => list_in(&*open(url).await?).await?,
                None => client()?.get(&["tokens"], &[]).await?.value,
            };
            let items = page["items"].as_array().cloned().unwrap_or_default();
            output.answer(&page, || {
                let names = ["NAME", "ID", "ROLES", "TENANT", "STATE", "CREATED", "EXPIRES"];
                table(&names, items.iter().map(row))
            });
            Ok(())
        }
        TokenCommand::Revoke { which, place } => {
            let revoked = match &place.store {
                Some(url) => revoke_in(&*open(url).await?, &which).await?,
                None => {
                    let path = ["tokens", named(&which), "revoke"];
                    client()?.post(&path, String::new()).await?.value
                }
            };
            output.answer(&revoked, || format!("revoked {}", text(&revoked, "name")));
            Ok(())
        }
    }
}

async fn open(url: &str) -> Result<Arc<dyn Store>, Trouble> {
    local::open(url).await
}

/// What the audit log says of whoever can write into the store itself.
fn who() -> Actor {
    Actor::new("cli")
}

async fn create_in(store: &dyn Store, body: &str) -> Result<Value, Trouble> {
    let (new, text) = make(body)?;
    let put = match store.put_token(&new, &who()).await {
        // Its id is made already: asking again makes no second one.
        Err(StoreError::Ambiguous(_)) => store.put_token(&new, &who()).await?,
        put => put?,
    };
    let token = stored(put, &new.name)?;
    store.close().await?;
    document(&TokenDocument::new(&token).reveal(&text))
}

async fn list_in(store: &dyn Store) -> Result<Value, Trouble> {
    let tokens = store.tokens().await?;
    store.close().await?;
    let items: Vec<TokenDocument> = tokens.iter().map(TokenDocument::new).collect();
    Ok(json!({ "items": items, "next": null }))
}

async fn revoke_in(store: &dyn Store, wanted: &str) -> Result<Value, Trouble> {
    let tokens = store.tokens().await?;
    let not_found = || {
        let message = format!("there is no token `{}`", named(wanted));
        Trouble::new(exit::NOT_FOUND, anyhow::Error::msg(message))
            .hint("`rewheel token list` shows them, each with its name and its id")
    };
    let id = find(&tokens, wanted).ok_or_else(not_found)?.id;
    let revoked = store.revoke_token(id, &who()).await?;
    store.close().await?;
    match revoked {
        TokenRevoked::Revoked(token) => document(&TokenDocument::new(&token)),
        TokenRevoked::NotFound => Err(not_found()),
    }
}

fn document(token: &TokenDocument) -> Result<Value, Trouble> {
    serde_json::to_value(token).map_err(|error| Trouble::new(exit::FAILED, error))
}

/// Who gives the token itself means its id: the rest is a secret, and does not belong into a URL.
fn named(token: &str) -> &str {
    let id = token.strip_prefix("rw_").and_then(|rest| rest.split_once('_'));
    id.map_or(token, |(id, _)| id)
}

/// Prints the token alone, so that a shell can keep it.
fn created(token: &Value, output: Output) {
    output.answer(token, || text(token, "token"));
    let tenant = token["tenant"].as_str().map(|tenant| format!(" of the tenant {tenant}"));
    let until = token["expires"].as_str().map(|until| format!(", until {until}"));
    output.note(format_args!(
        "made {}: {}{}{}; it is shown this once",
        text(token, "name"),
        roles(token),
        tenant.unwrap_or_default(),
        until.unwrap_or_default(),
    ));
}

fn roles(token: &Value) -> String {
    let roles = token["roles"].as_array().into_iter().flatten();
    roles.filter_map(Value::as_str).collect::<Vec<_>>().join(",")
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
