//! Stores access tokens.

use super::super::error::unreadable;
use super::super::pack::{Args, instant, time};
use super::super::script::{PUT_TOKEN, TOKENS};
use super::super::{RedisStore, TRIES_MAX, overtaken};
use crate::audit::document;
use async_trait::async_trait;
use rewheel_core::store::{StoreResult, TokenStore};
use rewheel_core::{
    Actor, AuditFields, Limits, NewToken, Tenant, Timestamp, Token, TokenHash, TokenId, TokenName,
    TokenPut, TokenRevoked,
};
use serde_json::{Value, json};

#[async_trait]
impl TokenStore for RedisStore {
    async fn put_token(&self, new: &NewToken, by: &Actor) -> StoreResult<TokenPut> {
        for _ in 0..TRIES_MAX {
            let known = self.known_tokens().await?;
            if let Some(token) = known.tokens.iter().find(|token| token.id == new.id) {
                return Ok(TokenPut::Stored(token.clone()));
            }
            let forgotten = known.tokens.iter().filter(|token| token.is_forgotten(known.now));
            let gone: Vec<TokenId> = forgotten.map(|token| token.id).collect();
            let mut kept = known.tokens.iter().filter(|token| !gone.contains(&token.id));
            if kept.clone().any(|token| token.revoked.is_none() && token.name == new.name) {
                return Ok(TokenPut::NameTaken);
            }
            if kept.by_ref().count() >= Limits::TOKENS_MAX {
                return Ok(TokenPut::Full);
            }
            let token = new.stored(known.now);
            let facts = (AuditFields::default(), token.facts());
            if self.write_token(&known, &token, &gone, "create token", facts, by).await? {
                return Ok(TokenPut::Stored(token));
            }
        }
        Err(overtaken())
    }

    async fn tokens(&self) -> StoreResult<Vec<Token>> {
        Ok(self.known_tokens().await?.tokens)
    }

    async fn revoke_token(&self, id: TokenId, by: &Actor) -> StoreResult<TokenRevoked> {
        for _ in 0..TRIES_MAX {
            let known = self.known_tokens().await?;
            let Some(token) = known.tokens.iter().find(|token| token.id == id) else {
                return Ok(TokenRevoked::NotFound);
            };
            if token.revoked.is_some() {
                return Ok(TokenRevoked::Revoked(token.clone()));
            }
            let revoked = Token { revoked: Some(known.now), ..token.clone() };
            let facts = (revoked.facts(), AuditFields::default());
            if self.write_token(&known, &revoked, &[], "revoke token", facts, by).await? {
                return Ok(TokenRevoked::Revoked(revoked));
            }
        }
        Err(overtaken())
    }
}

/// All tokens, ordered by name, as they were at one moment.
struct Known {
    now: Timestamp,
    /// The number of their latest change.
    change: Vec<u8>,
    tokens: Vec<Token>,
}

impl RedisStore {
    async fn known_tokens(&self) -> StoreResult<Known> {
        let [now, change, rows] = self.read(&TOKENS, Args::default()).await?.parts()?;
        let now = now.time()?;
        let mut tokens = Vec::new();
        for row in rows.list()? {
            tokens.push(read(&row.must()?, now).ok_or_else(|| unreadable("a token"))?);
        }
        tokens.sort_by(|one, other| (&one.name, one.created).cmp(&(&other.name, other.created)));
        Ok(Known { now, change: change.must()?, tokens })
    }

    /// Writes a token. Returns whether no other token was changed meanwhile.
    async fn write_token(
        &self,
        known: &Known,
        token: &Token,
        gone: &[TokenId],
        what: &str,
        (before, after): (AuditFields, AuditFields),
        by: &Actor,
    ) -> StoreResult<bool> {
        let note = Args::default()
            .bytes(by.as_str().as_bytes())
            .bytes(what.as_bytes())
            .missing()
            .missing()
            .bytes(document(&before).as_bytes())
            .bytes(document(&after).as_bytes())
            .number(time(known.now));
        let args = Args::default()
            .bytes(&known.change)
            .bytes(token.id.to_string().as_bytes())
            .bytes(write(token).as_bytes())
            .list(Args::texts(gone.iter().map(ToString::to_string)))
            .list(note);
        Ok(self.run(&PUT_TOKEN, args).await?.text()? == "done")
    }
}

fn write(token: &Token) -> String {
    let hash: String = token.hash.0.iter().map(|byte| format!("{byte:02x}")).collect();
    json!({
        "id": token.id.to_string(),
        "name": token.name.as_str(),
        "roles": token.roles.to_string(),
        "tenant": token.tenant.as_ref().map(Tenant::as_str),
        "hash": hash,
        "created": time(token.created),
        "expires": token.expires.map(time),
        "revoked": token.revoked.map(time),
    })
    .to_string()
}

fn read(row: &[u8], now: Timestamp) -> Option<Token> {
    let row: Value = serde_json::from_slice(row).ok()?;
    let text = |name: &str| row[name].as_str();
    let digits = text("hash")?;
    let mut hash = [0; 32];
    for (at, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    let expires = row["expires"].as_f64().map(instant);
    Some(Token {
        id: text("id")?.parse().ok()?,
        name: TokenName::parse(text("name")?).ok()?,
        roles: match text("roles")? {
            "" => std::iter::empty().collect(),
            roles => roles.parse().ok()?,
        },
        tenant: text("tenant").map(Tenant::parse).transpose().ok()?,
        hash: TokenHash(hash),
        created: instant(row["created"].as_f64()?),
        expires,
        expires_in: expires.map(|expires| expires.since(now)),
        revoked: row["revoked"].as_f64().map(instant),
    })
}
