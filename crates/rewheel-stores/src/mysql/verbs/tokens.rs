//! Stores access tokens.

use super::super::error::{VerbError, unreadable};
use super::super::lane_rows::{read_tenant, tenant_text};
use super::super::row::{bytes, get, instant, millis};
use super::super::transaction::Transaction;
use super::super::{MysqlStore, read, write};
use super::audit::{Line, audit};
use async_trait::async_trait;
use mysql_async::Row;
use rewheel_core::store::{StoreResult, TokenStore};
use rewheel_core::{
    Actor, AuditFields, Limits, NewToken, Timestamp, Token, TokenHash, TokenId, TokenName,
    TokenPut, TokenRevoked,
};

#[async_trait]
impl TokenStore for MysqlStore {
    async fn put_token(&self, token: &NewToken, by: &Actor) -> StoreResult<TokenPut> {
        write!(self, tx => put_token(tx, token, by))
    }

    async fn tokens(&self) -> StoreResult<Vec<Token>> {
        read!(self, tx => tokens(tx))
    }

    async fn revoke_token(&self, id: TokenId, by: &Actor) -> StoreResult<TokenRevoked> {
        write!(self, tx => revoke_token(tx, id, by))
    }
}

async fn put_token(
    tx: &mut Transaction<'_>,
    new: &NewToken,
    by: &Actor,
) -> Result<TokenPut, VerbError> {
    let known = tokens(tx).await?;
    if let Some(known) = known.into_iter().find(|token| token.id == new.id) {
        return Ok(TokenPut::Stored(known));
    }
    let ago = |kept| tx.now.as_millis().saturating_sub(millis(kept));
    let values = [
        millis(Limits::SHORT_TOKEN),
        ago(Limits::SHORT_TOKENS_KEPT),
        ago(Limits::ENDED_TOKENS_KEPT),
    ];
    let values = values.into_iter().map(Into::into).collect();
    tx.execute(include_str!("../sql/prune_tokens.sql"), values).await?;
    if tokens(tx).await?.len() >= Limits::TOKENS_MAX {
        return Ok(TokenPut::Full);
    }
    let token = new.stored(tx.now);
    let values = vec![
        token.id.to_string().into(),
        token.name.as_str().into(),
        token.name.as_str().into(),
        token.roles.to_string().into(),
        tenant_text(token.tenant.as_ref()).into(),
        token.hash.0.as_slice().into(),
        token.created.as_millis().into(),
        token.expires.map(Timestamp::as_millis).into(),
    ];
    match tx.execute(include_str!("../sql/put_token.sql"), values).await {
        Ok(_) => {}
        // Another token has the name or the id, or this token was sent twice at the same time.
        Err(error) if error.is_duplicate() => {
            let known = tokens(tx).await?.into_iter().find(|token| token.id == new.id);
            return Ok(known.map_or(TokenPut::NameTaken, TokenPut::Stored));
        }
        Err(error) => return Err(error),
    }
    let (before, after) = (AuditFields::default(), token.facts());
    audit(tx, by, Line { what: "create token", job: None, kind: None, before, after }).await?;
    Ok(TokenPut::Stored(token))
}

async fn tokens(tx: &mut Transaction<'_>) -> Result<Vec<Token>, VerbError> {
    let rows = tx.rows(include_str!("../sql/tokens.sql"), Vec::new()).await?;
    rows.iter().map(|row| read_token(row, tx.now)).collect()
}

async fn revoke_token(
    tx: &mut Transaction<'_>,
    id: TokenId,
    by: &Actor,
) -> Result<TokenRevoked, VerbError> {
    let row = tx.find(include_str!("../sql/lock_token.sql"), vec![id.to_string().into()]).await?;
    let Some(row) = row else { return Ok(TokenRevoked::NotFound) };
    let token = read_token(&row, tx.now)?;
    if token.revoked.is_some() {
        return Ok(TokenRevoked::Revoked(token));
    }
    let values = vec![tx.now.as_millis().into(), id.to_string().into()];
    tx.execute(include_str!("../sql/revoke_token.sql"), values).await?;
    let (before, after) = (token.facts(), AuditFields::default());
    audit(tx, by, Line { what: "revoke token", job: None, kind: None, before, after }).await?;
    Ok(TokenRevoked::Revoked(Token { revoked: Some(tx.now), ..token }))
}

fn read_token(row: &Row, now: Timestamp) -> Result<Token, VerbError> {
    let text = |at: usize| get::<String>(row, at);
    let expires = get::<Option<i64>>(row, 6)?.map(instant);
    Ok(Token {
        id: text(0)?.parse().map_err(|_| unreadable("the id of a token"))?,
        name: TokenName::parse(&text(1)?).map_err(|_| unreadable("the name of a token"))?,
        roles: text(2)?.parse().map_err(|_| unreadable("the roles of a token"))?,
        tenant: read_tenant(&text(3)?)?,
        hash: TokenHash(bytes(row, 4)?),
        created: instant(get(row, 5)?),
        expires,
        expires_in: expires.map(|expires| expires.since(now)),
        revoked: get::<Option<i64>>(row, 7)?.map(instant),
    })
}
