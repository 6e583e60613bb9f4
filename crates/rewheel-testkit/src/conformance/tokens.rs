//! Tests storing access tokens.

use crate::race::both;
use crate::{Subject, seconds};
use rewheel_core::{
    Actor, AuditEntry, Limits, NewToken, Tenant, Token, TokenHash, TokenId, TokenName, TokenPut,
    TokenRevoked, When,
};

fn token(subject: &Subject, name: &str) -> NewToken {
    NewToken {
        id: TokenId::new(subject.random.next()),
        name: TokenName::parse(name).unwrap(),
        roles: "read,submit".parse().unwrap(),
        tenant: None,
        hash: TokenHash([7; 32]),
        expires: None,
    }
}

async fn put(subject: &Subject, token: &NewToken) -> TokenPut {
    subject.store.put_token(token, &Actor::new("suite")).await.unwrap()
}

async fn stored(subject: &Subject, token: &NewToken) -> Token {
    match put(subject, token).await {
        TokenPut::Stored(token) => token,
        refused @ (TokenPut::NameTaken | TokenPut::Full) => panic!("not stored: {refused:?}"),
    }
}

async fn revoke(subject: &Subject, id: TokenId) -> TokenRevoked {
    subject.store.revoke_token(id, &Actor::new("suite")).await.unwrap()
}

async fn log(subject: &Subject) -> Vec<AuditEntry> {
    subject.store.audit(None, None, 100).await.unwrap()
}

/// Tokens are listed as stored, by name; the audit log has an entry without the digest.
pub async fn stores_a_token_as_it_was_given(subject: &Subject) {
    assert_eq!(subject.store.tokens().await.unwrap(), []);
    let hash = TokenHash(std::array::from_fn(|at| u8::try_from(at).unwrap() ^ 0xA5));
    let tenant = Some(Tenant::parse("shop 1 é").unwrap());
    let (expires, plain) = (Some(When::In(seconds(60))), token(subject, "b"));
    let bound = NewToken { hash, tenant, expires, ..token(subject, "a") };
    stored(subject, &plain).await;
    let answer = stored(subject, &bound).await;
    let now = answer.created;
    assert_eq!(answer, bound.stored(now));
    let listed = subject.store.tokens().await.unwrap();
    let names: Vec<&str> = listed.iter().map(|token| token.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(Token { expires_in: answer.expires_in, ..listed[0].clone() }, answer);
    assert_eq!((listed[1].expires, listed[1].expires_in, listed[1].revoked), (None, None, None));

    let log = log(subject).await;
    assert_eq!(
        (log.len(), log[0].what.as_str(), log[0].who.as_str()),
        (2, "create token", "suite")
    );
    assert_eq!((log[0].job, log[0].kind.as_ref(), log[0].at), (None, None, now));
    let facts: Vec<(&str, Option<&str>)> = log[0].after.iter().collect();
    let names: Vec<&str> = facts.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["id", "name", "roles", "tenant", "expires_ms"]);
    assert_eq!(facts[2].1, Some("submit,read"));
}

/// A token that is sent again is the same token.
pub async fn stores_a_token_once(subject: &Subject) {
    let token = token(subject, "ops");
    let first = stored(subject, &token).await;
    assert_eq!(stored(subject, &token).await.created, first.created);
    assert_eq!((subject.store.tokens().await.unwrap().len(), log(subject).await.len()), (1, 1));
}

/// Two valid tokens cannot have the same name; a revoked one frees its name.
pub async fn refuses_a_name_that_is_taken(subject: &Subject) {
    let first = token(subject, "ops");
    stored(subject, &first).await;
    let second = token(subject, "ops");
    assert_eq!(put(subject, &second).await, TokenPut::NameTaken);
    assert_eq!((subject.store.tokens().await.unwrap().len(), log(subject).await.len()), (1, 1));
    revoke(subject, first.id).await;
    stored(subject, &second).await;
    assert_eq!(subject.store.tokens().await.unwrap().len(), 2);
}

/// Of two concurrent tokens with one name one is stored.
pub async fn gives_a_name_to_only_one(subject: &Subject) {
    let (one, other) = (token(subject, "ops"), token(subject, "ops"));
    let (one, other) = both(put(subject, &one), put(subject, &other)).await;
    let got = |put: &TokenPut| matches!(put, TokenPut::Stored(_));
    assert_eq!(u8::from(got(&one)) + u8::from(got(&other)), 1, "{one:?} {other:?}");
    assert_eq!(subject.store.tokens().await.unwrap().len(), 1);
}

/// A revoked token keeps the time of its first revocation. Others are not affected.
pub async fn revokes_a_token_once(subject: &Subject) {
    let (one, other) = (token(subject, "one"), token(subject, "other"));
    stored(subject, &one).await;
    stored(subject, &other).await;
    let TokenRevoked::Revoked(first) = revoke(subject, one.id).await else {
        panic!("it was there");
    };
    assert!(first.revoked.is_some());
    subject.clock.advance(seconds(5));
    let TokenRevoked::Revoked(again) = revoke(subject, one.id).await else {
        panic!("it is still there");
    };
    assert_eq!(again.revoked, first.revoked);
    let listed = subject.store.tokens().await.unwrap();
    let revoked: Vec<bool> = listed.iter().map(|token| token.revoked.is_some()).collect();
    assert_eq!(revoked, [true, false]);
    let log = log(subject).await;
    assert_eq!((log.len(), log[0].what.as_str()), (3, "revoke token"));
    assert!(log[0].before.iter().any(|fact| fact == ("name", Some("one"))));
    assert_eq!(revoke(subject, TokenId::new(1)).await, TokenRevoked::NotFound);
}

/// The remaining time of a token is computed by the store's clock.
pub async fn tells_what_is_left_of_a_token(subject: &Subject) {
    let expires = Some(When::In(seconds(60)));
    stored(subject, &NewToken { expires, ..token(subject, "ops") }).await;
    let left = || async { subject.store.tokens().await.unwrap()[0].expires_in.unwrap() };
    assert!((seconds(55)..=seconds(60)).contains(&left().await));
    subject.clock.advance(seconds(50));
    assert!(left().await <= seconds(10));
    subject.clock.advance(seconds(11));
    assert_eq!(left().await, seconds(0));
}

/// Tokens that ended long ago are deleted to make room; valid ones never are.
pub async fn forgets_tokens_that_ended_long_ago(subject: &Subject) {
    let life = Limits::SHORT_TOKEN + seconds(60);
    let expires = Some(When::In(life));
    let (gone, kept) = (token(subject, "gone"), token(subject, "kept"));
    stored(subject, &gone).await;
    stored(subject, &kept).await;
    stored(subject, &NewToken { expires, ..token(subject, "old") }).await;
    revoke(subject, gone.id).await;
    let names = || async {
        let tokens = subject.store.tokens().await.unwrap();
        tokens.iter().map(|token| token.name.to_string()).collect::<Vec<_>>().join(" ")
    };
    subject.clock.advance(Limits::ENDED_TOKENS_KEPT);
    stored(subject, &token(subject, "new")).await;
    assert_eq!(names().await.replace("gone ", ""), "kept new old", "a while is not over");
    subject.clock.advance(life + seconds(60));
    stored(subject, &token(subject, "old")).await;
    stored(subject, &token(subject, "newer")).await;
    assert_eq!(names().await, "kept new newer old");
}

/// Short tokens, of which there may be many, are deleted soon after their end.
pub async fn forgets_short_tokens_soon(subject: &Subject) {
    let expires = Some(When::In(Limits::SHORT_TOKEN));
    let gone = NewToken { expires, ..token(subject, "gone") };
    stored(subject, &gone).await;
    stored(subject, &NewToken { expires, ..token(subject, "short") }).await;
    stored(subject, &token(subject, "long")).await;
    revoke(subject, gone.id).await;
    let names = || async {
        let tokens = subject.store.tokens().await.unwrap();
        tokens.iter().map(|token| token.name.to_string()).collect::<Vec<_>>().join(" ")
    };
    stored(subject, &token(subject, "new")).await;
    assert_eq!(names().await, "gone long new short", "they can be seen for some time");
    subject.clock.advance(Limits::SHORT_TOKENS_KEPT + seconds(60));
    stored(subject, &token(subject, "newer")).await;
    assert_eq!(names().await, "long new newer short", "it was revoked");
    subject.clock.advance(Limits::SHORT_TOKEN);
    stored(subject, &token(subject, "newest")).await;
    assert_eq!(names().await, "long new newer newest");
}
