//! Tokens: list, create and revoke.

use super::confirm::{self, Question};
use super::documents::{Listed, Token};
use super::finish::redirect;
use super::form::Submitted;
use super::frame::{Frame, show, show_as};
use super::refusal::Refusal;
use super::rest_client::Sent;
use super::shown::{Instant, Mark, Times, segment};
use super::visitor::Visitor;
use crate::problem::Code;
use askama::Template;
use axum::extract::Path;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};

/// Tokens that the page shows.
const SHOWN: usize = 1_000;

#[derive(Template)]
#[template(path = "tokens.html")]
struct TokensPage {
    frame: Frame,
    rows: Vec<TokenRow>,
    is_cut: bool,
    /// A new token, shown once.
    made: Option<Token>,
    wrong: Option<Refusal>,
    name: String,
}

struct TokenRow {
    id: String,
    name: String,
    roles: String,
    tenant: String,
    state: Mark,
    is_live: bool,
    created: Instant,
    expires: Option<Instant>,
}

impl TokenRow {
    fn new(token: &Token, times: &Times) -> TokenRow {
        TokenRow {
            id: token.id.clone(),
            name: token.name.clone(),
            roles: token.roles.join(", "),
            tenant: token.tenant.clone().unwrap_or_default(),
            state: match token.state.as_str() {
                "live" => Mark::with("succeeded", "live"),
                other => Mark::with("cancelled", other),
            },
            is_live: token.state == "live",
            created: times.at(&token.created),
            expires: times.maybe(token.expires.as_deref()),
        }
    }
}

/// `GET /ui/tokens`
pub(super) async fn list(visitor: Visitor) -> Result<Response, Refusal> {
    Ok(show(&page(&visitor).await?))
}

async fn page(visitor: &Visitor) -> Result<TokensPage, Refusal> {
    let listed: Listed<Token> =
        visitor.get(&format!("/v1/tokens?sessions=false&limit={SHOWN}")).await?;
    let times = Times { zone: visitor.zone(), now: visitor.now };
    let mut rows: Vec<TokenRow> =
        listed.items.iter().map(|token| TokenRow::new(token, &times)).collect();
    rows.sort_by_key(|row| !row.is_live);
    Ok(TokensPage {
        rows,
        is_cut: listed.next.is_some(),
        made: None,
        wrong: None,
        name: String::new(),
        frame: visitor.frame("Tokens", "tokens"),
    })
}

/// `POST /ui/tokens`: the answer is the only page that shows the new token.
pub(super) async fn create(form: Submitted) -> Result<Response, Refusal> {
    let (visitor, fields) = (&form.visitor, &form.fields);
    let roles: Vec<&str> = fields.all("role").collect();
    let mut body = json!({ "name": fields.text("name"), "roles": roles });
    for name in ["tenant", "expires_in"] {
        if !fields.text(name).is_empty() {
            body[name] = Value::from(fields.text(name));
        }
    }
    let body = body.to_string();
    let made = visitor.ask(Method::POST, "/v1/tokens", Sent { body: &body, if_match: None }).await;
    match made {
        // The first token closes the open server: this visitor has no session, and sees no list.
        Ok(answer) if !visitor.caller.has_token() => {
            let made = Some(answer.read()?);
            let frame = visitor.frame("Tokens", "tokens");
            let page = TokensPage {
                frame,
                rows: Vec::new(),
                is_cut: false,
                made,
                wrong: None,
                name: String::new(),
            };
            Ok(show(&page))
        }
        Ok(answer) => Ok(show(&TokensPage { made: Some(answer.read()?), ..page(visitor).await? })),
        Err(refusal) if refusal.is(Code::InvalidField) => {
            let name = fields.text("name").to_owned();
            let page = TokensPage { wrong: Some(refusal), name, ..page(visitor).await? };
            Ok(show_as(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
        Err(refusal) => Err(refusal),
    }
}

/// `GET /ui/tokens/{id}/revoke`
pub(super) async fn ask(visitor: Visitor, Path(id): Path<String>) -> Result<Response, Refusal> {
    let listed: Listed<Token> =
        visitor.get(&format!("/v1/tokens?sessions=false&limit={SHOWN}")).await?;
    let token = listed.items.iter().find(|token| token.id == id);
    let token = token.ok_or_else(|| Refusal::new(Code::NotFound, "this token does not exist"))?;
    Ok(confirm::ask(
        &visitor,
        Question {
            title: format!("Revoke token {}", token.name),
            here: "tokens",
            follows: vec![
                "Every request with this token is rejected from now on. This cannot be undone."
                    .to_owned(),
                "Sessions of the dashboard that were started with it end.".to_owned(),
            ],
            action: visitor.link(&format!("/tokens/{}/revoke", segment(&id))),
            button: "Revoke".to_owned(),
            back: visitor.link("/tokens"),
            fields: Vec::new(),
            is_dangerous: true,
        },
    ))
}

/// `POST /ui/tokens/{id}/revoke`
pub(super) async fn revoke(Path(id): Path<String>, form: Submitted) -> Result<Response, Refusal> {
    let path = format!("/v1/tokens/{}/revoke", segment(&id));
    form.visitor.ask(Method::POST, &path, Sent::default()).await?;
    Ok(redirect(&form.visitor.link("/tokens")))
}
