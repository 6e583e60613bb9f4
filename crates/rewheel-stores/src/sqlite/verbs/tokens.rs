//! Stores access tokens.

use super::super::SqliteStore;
use super::super::error::{VerbError, unreadable};
use super::super::row::instant;
use super::super::transaction::{Transaction, read_tenant, tenant_text};
use super::audit::{Line, audit};
use async_trait::async_trait;
use rewheel_core::store::{StoreResult, TokenStore};
use rewheel_core::{
    Actor, AuditFields, Limits, NewToken, Timestamp, Token, TokenHash, TokenId, TokenName,
    TokenPut, TokenRevoked,
};
use rusqlite::Row;

#[async_trait]
impl TokenStore for SqliteStore {
    async fn put_token(&self, token: &NewToken, by: &Actor) -> StoreResult<TokenPut> {
        let (token, by) = (token.clone(), by.clone());
        self.write(1, move |tx| put_token(tx, &token, &by)).await
    }

    async fn tokens(&self) -> StoreResult<Vec<Token>> {
        self.read(|tx| tokens(tx)).await
    }

    async fn revoke_token(&self, id: TokenId, by: &Actor) -> StoreResult<TokenRevoked> {
        let by = by.clone();
        self.write(1, move |tx| revoke_token(tx, id, &by)).await
    }
}

fn put_token(
    tx: &mut Transaction<'_, '_>,
    new: &NewToken,
    by: &Actor,
) -> Result<TokenPut, VerbError> {
    let known = tokens(tx)?;
    if let Some(known) = known.iter().find(|token| token.id == new.id) {
        return Ok(TokenPut::Stored(known.clone()));
    }
    let ago = |kept| tx.now.minus(kept).as_millis();
    let times = [ago(Limits::ENDED_TOKENS_KEPT), ago(Limits::SHORT_TOKENS_KEPT)];
    let short = i64::try_from(Limits::SHORT_TOKEN.as_millis()).unwrap_or(i64::MAX);
    tx.execute(include_str!("../sql/prune_tokens.sql"), (times[0], times[1], short))?;
    let known = tokens(tx)?;
    if known.iter().any(|token| token.revoked.is_none() && token.name == new.name) {
        return Ok(TokenPut::NameTaken);
    }
    if known.len() >= Limits::TOKENS_MAX {
        return Ok(TokenPut::Full);
    }
    let token = new.stored(tx.now);
    let values = (
        token.id.to_string(),
        token.name.as_str(),
        token.roles.to_string(),
        tenant_text(token.tenant.as_ref()),
        token.hash.0,
        token.created.as_millis(),
        token.expires.map(Timestamp::as_millis),
    );
    tx.execute(include_str!("../sql/put_token.sql"), values)?;
    let (before, after) = (AuditFields::default(), token.facts());
    audit(tx, by, Line { what: "create token", job: None, kind: None, before, after })?;
    Ok(TokenPut::Stored(token))
}

fn tokens(tx: &Transaction<'_, '_>) -> Result<Vec<Token>, VerbError> {
    let statement = tx.sql(include_str!("../sql/tokens.sql"))?;
    let mut statement = statement.get();
    let mut rows = statement.query([])?;
    let mut tokens = Vec::new();
    while let Some(row) = rows.next()? {
        tokens.push(read_token(row, tx.now)?);
    }
    Ok(tokens)
}

fn revoke_token(
    tx: &mut Transaction<'_, '_>,
    id: TokenId,
    by: &Actor,
) -> Result<TokenRevoked, VerbError> {
    let Some(token) = tokens(tx)?.into_iter().find(|token| token.id == id) else {
        return Ok(TokenRevoked::NotFound);
    };
    if token.revoked.is_some() {
        return Ok(TokenRevoked::Revoked(token));
    }
    let values = (id.to_string(), tx.now.as_millis());
    tx.execute(include_str!("../sql/revoke_token.sql"), values)?;
    let (before, after) = (token.facts(), AuditFields::default());
    audit(tx, by, Line { what: "revoke token", job: None, kind: None, before, after })?;
    Ok(TokenRevoked::Revoked(Token { revoked: Some(tx.now), ..token }))
}

fn read_token(row: &Row<'_>, now: Timestamp) -> Result<Token, VerbError> {
    let text = |at: usize| row.get::<_, String>(at);
    let expires = row.get::<_, Option<i64>>(6)?.map(instant);
    Ok(Token {
        id: text(0)?.parse().map_err(|_| unreadable("the id of a token"))?,
        name: TokenName::parse(&text(1)?).map_err(|_| unreadable("the name of a token"))?,
        roles: text(2)?.parse().map_err(|_| unreadable("the roles of a token"))?,
        tenant: read_tenant(&text(3)?)?,
        hash: TokenHash(row.get(4)?),
        created: instant(row.get(5)?),
        expires,
        expires_in: expires.map(|expires| expires.since(now)),
        revoked: row.get::<_, Option<i64>>(7)?.map(instant),
    })
}
