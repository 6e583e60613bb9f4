//! Stores access tokens.

use super::MemoryStore;
use super::world::{Note, World};
use async_trait::async_trait;
use rewheel_core::store::{StoreResult, TokenStore};
use rewheel_core::{
    Actor, AuditFields, Limits, NewToken, Timestamp, Token, TokenId, TokenPut, TokenRevoked,
};

#[async_trait]
impl TokenStore for MemoryStore {
    async fn put_token(&self, token: &NewToken, by: &Actor) -> StoreResult<TokenPut> {
        self.run(|world, now| Ok(world.put_token(token, by, now)))
    }

    async fn tokens(&self) -> StoreResult<Vec<Token>> {
        self.run(|world, now| Ok(world.tokens(now)))
    }

    async fn revoke_token(&self, id: TokenId, by: &Actor) -> StoreResult<TokenRevoked> {
        self.run(|world, now| Ok(world.revoke_token(id, by, now)))
    }
}

impl World {
    fn put_token(&mut self, new: &NewToken, by: &Actor, now: Timestamp) -> TokenPut {
        if let Some(known) = self.tokens.get(&new.id) {
            return TokenPut::Stored(seen(known, now));
        }
        self.tokens.retain(|_, token| !token.is_forgotten(now));
        if self.tokens.values().any(|token| token.revoked.is_none() && token.name == new.name) {
            return TokenPut::NameTaken;
        }
        if self.tokens.len() >= Limits::TOKENS_MAX {
            return TokenPut::Full;
        }
        let token = new.stored(now);
        self.note_token("create token", AuditFields::default(), token.facts(), by, now);
        self.tokens.insert(token.id, token.clone());
        TokenPut::Stored(token)
    }

    fn tokens(&self, now: Timestamp) -> Vec<Token> {
        let mut tokens: Vec<Token> = self.tokens.values().map(|token| seen(token, now)).collect();
        tokens.sort_by(|one, other| (&one.name, one.created).cmp(&(&other.name, other.created)));
        tokens
    }

    fn revoke_token(&mut self, id: TokenId, by: &Actor, now: Timestamp) -> TokenRevoked {
        let Some(token) = self.tokens.get_mut(&id) else { return TokenRevoked::NotFound };
        if token.revoked.is_none() {
            token.revoked = Some(now);
            let facts = token.facts();
            self.note_token("revoke token", facts, AuditFields::default(), by, now);
        }
        TokenRevoked::Revoked(seen(&self.tokens[&id], now))
    }

    fn note_token(
        &mut self,
        what: &str,
        before: AuditFields,
        after: AuditFields,
        by: &Actor,
        now: Timestamp,
    ) {
        self.note(Note { who: by, what, job: None, kind: None, before, after }, now);
    }
}

fn seen(token: &Token, now: Timestamp) -> Token {
    Token { expires_in: token.expires.map(|expires| expires.since(now)), ..token.clone() }
}
