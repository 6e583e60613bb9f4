//! Stores access tokens.

use super::super::PostgresStore;
use super::super::error::{VerbError, unreadable};
use super::super::row::{instant, millis, read_tenant, tenant_text};
use super::super::session::{Param, Session};
use super::super::statements::{PRUNE_TOKENS, PUT_TOKEN, REVOKE_TOKEN, TOKENS};
use super::audit::{Line, audit};
use async_trait::async_trait;
use rewheel_core::store::{StoreResult, TokenStore};
use rewheel_core::{
    Actor, AuditFields, Limits, NewToken, Timestamp, Token, TokenHash, TokenId, TokenName,
    TokenPut, TokenRevoked,
};
use tokio_postgres::Row;

#[async_trait]
impl TokenStore for PostgresStore {
    async fn put_token(&self, token: &NewToken, by: &Actor) -> StoreResult<TokenPut> {
        let session = self.transaction().await?;
        let put = put_token(&session, token, by).await;
        session.end(put).await
    }

    async fn tokens(&self) -> StoreResult<Vec<Token>> {
        let session = self.read().await?;
        let tokens = tokens(&session).await;
        session.end(tokens).await
    }

    async fn revoke_token(&self, id: TokenId, by: &Actor) -> StoreResult<TokenRevoked> {
        let session = self.transaction().await?;
        let revoked = revoke_token(&session, id, by).await;
        session.end(revoked).await
    }
}

async fn put_token(
    session: &Session<'_>,
    new: &NewToken,
    by: &Actor,
) -> Result<TokenPut, VerbError> {
    let known = tokens(session).await?;
    if let Some(known) = known.iter().find(|token| token.id == new.id) {
        return Ok(TokenPut::Stored(known.clone()));
    }
    let now = session.now().await?;
    let ago = |kept| now.as_millis().saturating_sub(millis(kept));
    let (long_ago, short_ago) = (ago(Limits::ENDED_TOKENS_KEPT), ago(Limits::SHORT_TOKENS_KEPT));
    let short = millis(Limits::SHORT_TOKEN);
    let forgotten = session.execute(&PRUNE_TOKENS, &[&long_ago, &short_ago, &short]).await?;
    let left = known.len().saturating_sub(usize::try_from(forgotten).unwrap_or(usize::MAX));
    if left >= Limits::TOKENS_MAX {
        return Ok(TokenPut::Full);
    }
    let token = new.stored(now);
    let params: [Param<'_>; 7] = [
        &token.id.to_string(),
        &token.name.as_str(),
        &token.roles.to_string(),
        &tenant_text(token.tenant.as_ref()),
        &token.hash.0.as_slice(),
        &token.created.as_millis(),
        &token.expires.map(Timestamp::as_millis),
    ];
    if session.execute(&PUT_TOKEN, &params).await? == 0 {
        // Another token has the name or the id, or this token was sent twice at the same time.
        let known = tokens(session).await?.into_iter().find(|token| token.id == new.id);
        return Ok(known.map_or(TokenPut::NameTaken, TokenPut::Stored));
    }
    let (before, after) = (AuditFields::default(), token.facts());
    note(session, now, by, "create token", (&before, &after)).await?;
    Ok(TokenPut::Stored(token))
}

async fn tokens(session: &Session<'_>) -> Result<Vec<Token>, VerbError> {
    session.query(&TOKENS, &[&session.offset()]).await?.iter().map(read_token).collect()
}

async fn revoke_token(
    session: &Session<'_>,
    id: TokenId,
    by: &Actor,
) -> Result<TokenRevoked, VerbError> {
    let now = session.now().await?;
    let is_news = session.execute(&REVOKE_TOKEN, &[&id.to_string(), &now.as_millis()]).await? > 0;
    let Some(token) = tokens(session).await?.into_iter().find(|token| token.id == id) else {
        return Ok(TokenRevoked::NotFound);
    };
    if is_news {
        let (before, after) = (token.facts(), AuditFields::default());
        note(session, now, by, "revoke token", (&before, &after)).await?;
    }
    Ok(TokenRevoked::Revoked(token))
}

async fn note(
    session: &Session<'_>,
    now: Timestamp,
    who: &Actor,
    what: &str,
    (before, after): (&AuditFields, &AuditFields),
) -> Result<(), VerbError> {
    audit(session, now, &[Line { who, what, job: None, kind: None, before, after }]).await
}

fn read_token(row: &Row) -> Result<Token, VerbError> {
    let text = |at: usize| row.try_get::<_, &str>(at);
    let expires = row.try_get::<_, Option<i64>>(6)?.map(instant);
    let now = instant(row.try_get(8)?);
    let hash = row.try_get::<_, &[u8]>(4)?.try_into().map_err(|_| unreadable("a token's hash"))?;
    Ok(Token {
        id: text(0)?.parse().map_err(|_| unreadable("the id of a token"))?,
        name: TokenName::parse(text(1)?).map_err(|_| unreadable("the name of a token"))?,
        roles: text(2)?.parse().map_err(|_| unreadable("the roles of a token"))?,
        tenant: read_tenant(text(3)?)?,
        hash: TokenHash(hash),
        created: instant(row.try_get(5)?),
        expires,
        expires_in: expires.map(|expires| expires.since(now)),
        revoked: row.try_get::<_, Option<i64>>(7)?.map(instant),
    })
}
