//! Tests which tokens are accepted, and until when.

use super::super::{hash, make};
use super::{BELIEVED_IF_SLOW_MAX, BELIEVED_MAX, Caller, Keeper, SLOW_ANSWER_MAX};
use crate::problem::{Code, Problem};
use rewheel::{Clock, millis, seconds};
use rewheel_core::store::{Store, TokenStore};
use rewheel_core::{Actor, NewToken, TokenHash};
use rewheel_stores::MemoryStore;
use rewheel_testkit::{Fault, FaultyStore, Verb};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

const ADMIN: &str = r#"{"name":"ops","roles":["admin"]}"#;

/// A store that other nodes write to, and this node's view of the tokens.
struct Node {
    store: Arc<MemoryStore>,
    seen: FaultyStore,
    keeper: Keeper,
}

impl Node {
    fn new(config: Option<TokenHash>, is_private: bool) -> Node {
        let store = Arc::new(MemoryStore::new());
        let seen = FaultyStore::new(Arc::clone(&store) as Arc<dyn Store>);
        Node { store, seen, keeper: Keeper::new(config, is_private) }
    }

    /// Creates a token as another node would.
    async fn token(&self, body: &str) -> (NewToken, String) {
        let (new, text) = make(body).unwrap();
        self.store.put_token(&new, &Actor::new("test")).await.unwrap();
        (new, text.reveal().to_owned())
    }

    async fn admit(&self, token: Option<&str>) -> Result<Caller, Problem> {
        self.keeper.admit(Ok(&self.seen), token).await
    }

    /// Makes the store fail all calls of a test.
    fn goes_away(&self) {
        for verb in [Verb::Tokens, Verb::Now] {
            (0..1_000).for_each(|_| self.seen.fail_next(verb, Fault::Before));
        }
    }

    /// Makes the store hang for all calls of a test.
    fn hangs(&self, verbs: &[Verb]) {
        for verb in verbs {
            (0..1_000).for_each(|_| self.seen.fail_next(*verb, Fault::NoAnswer));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_only_this_machine_reaches_is_open_until_there_is_a_token() {
    let node = Node::new(None, true);
    let caller = node.admit(None).await.unwrap();
    assert_eq!((caller.who().as_str(), caller.has_token()), ("rest", false));
    let (new, text) = node.token(ADMIN).await;
    sleep(seconds(1)).await;
    assert_eq!(node.admit(None).await.unwrap_err().code, Code::Unauthorized);
    assert_eq!(node.admit(Some(&text)).await.unwrap().who().as_str(), "token:ops");
    // The server does not become open again when the last token is revoked.
    node.store.revoke_token(new.id, &Actor::new("test")).await.unwrap();
    sleep(seconds(1)).await;
    assert_eq!(node.admit(None).await.unwrap_err().code, Code::Unauthorized);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_others_reach_is_never_open() {
    assert_eq!(Node::new(None, false).admit(None).await.unwrap_err().code, Code::Unauthorized);
    let secret = "0123456789abcdef0123456789abcdef";
    let node = Node::new(Some(hash(secret)), true);
    assert_eq!(node.admit(None).await.unwrap_err().code, Code::Unauthorized);
    assert_eq!(node.admit(Some("other")).await.unwrap_err().code, Code::Unauthorized);
    assert_eq!(node.admit(Some(secret)).await.unwrap().who().as_str(), "token:config");
}

#[tokio::test(start_paused = true)]
async fn a_token_that_another_node_revoked_is_of_no_use_within_a_second() {
    let node = Node::new(None, true);
    let (new, text) = node.token(ADMIN).await;
    let caller = node.admit(Some(&text)).await.unwrap();
    let dismissed = node.keeper.dismissed(&node.seen, &caller);
    tokio::pin!(dismissed);
    assert!(tokio::time::timeout(seconds(60), &mut dismissed).await.is_err());
    node.store.revoke_token(new.id, &Actor::new("test")).await.unwrap();
    let clock = Clock::system();
    let revoked = clock.now();
    tokio::time::timeout(seconds(5), dismissed).await.expect("it is dismissed");
    let took = clock.now().since(revoked);
    assert!(took <= seconds(1), "a listener was dismissed after {took:?}");
    assert_eq!(node.admit(Some(&text)).await.unwrap_err().code, Code::Unauthorized);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_another_node_made_is_known_at_once() {
    let node = Node::new(None, true);
    let (_, first) = node.token(ADMIN).await;
    node.admit(Some(&first)).await.unwrap();
    let (_, text) = node.token(r#"{"name":"ci","roles":["submit"]}"#).await;
    assert_eq!(node.admit(Some(&text)).await.unwrap().who().as_str(), "token:ci");
}

#[tokio::test(start_paused = true)]
async fn who_guesses_does_not_learn_why_it_was_wrong() {
    let node = Node::new(None, true);
    let (_, good) = node.token(ADMIN).await;
    let (revoked, old) = node.token(r#"{"name":"old","roles":["read"]}"#).await;
    node.store.revoke_token(revoked.id, &Actor::new("test")).await.unwrap();
    let body = r#"{"name":"late","roles":["read"],"expires":"2020-01-01T00:00:00Z"}"#;
    let (_, late) = node.token(body).await;
    sleep(seconds(1)).await;
    let wrong = format!("{}x", &good[..good.len() - 1]);
    let unknown = format!("rw_0000000000000001_{}", &good[20..]);
    let short = &good[..20];
    let mut answers = Vec::new();
    for token in [wrong.as_str(), &unknown, &old, &late, short, "rw_", "x", ""] {
        answers.push(node.admit(Some(token)).await.unwrap_err());
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert!(node.admit(Some(&good)).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn guessing_does_not_keep_the_store_busy() {
    let node = Node::new(None, true);
    node.token(ADMIN).await;
    let asked = Clock::system().now();
    for number in 0..100 {
        let guess = format!("rw_{number:016x}_secret");
        assert!(node.admit(Some(&guess)).await.is_err());
    }
    // Callers wait one after the other; the store is read at most ten times a second.
    assert!(Clock::system().now().since(asked) >= seconds(9));
}

#[tokio::test(start_paused = true)]
async fn who_was_let_in_is_let_in_while_the_store_is_away() {
    let node = Node::new(None, true);
    let (_, text) = node.token(ADMIN).await;
    let short = r#"{"name":"short","roles":["read"],"expires_in":"60s"}"#;
    let (_, short) = node.token(short).await;
    node.admit(Some(&text)).await.unwrap();
    node.goes_away();
    for _ in 0..3 {
        sleep(seconds(15)).await;
        assert!(node.admit(Some(&text)).await.is_ok());
        assert!(node.admit(Some(&short)).await.is_ok());
        assert_eq!(node.admit(Some("rw_no")).await.unwrap_err().code, Code::Unauthorized);
        assert_eq!(node.admit(None).await.unwrap_err().code, Code::Unauthorized);
    }
    sleep(seconds(30)).await;
    assert_eq!(node.admit(Some(&short)).await.unwrap_err().code, Code::Unauthorized);
    sleep(BELIEVED_MAX).await;
    assert_eq!(node.admit(Some(&text)).await.unwrap_err().code, Code::StoreUnavailable);
}

#[tokio::test(start_paused = true)]
async fn no_token_is_accepted_before_the_store_was_read() {
    let node = Node::new(None, true);
    node.goes_away();
    for token in [None, Some("rw_0000000000000001_x")] {
        assert_eq!(node.admit(token).await.unwrap_err().code, Code::StoreUnavailable);
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_answer_delays_no_request_for_long() {
    let node = Node::new(None, true);
    let (_, text) = node.token(ADMIN).await;
    node.admit(Some(&text)).await.unwrap();
    node.hangs(&[Verb::Tokens]);
    sleep(seconds(1)).await;
    for _ in 0..3 {
        let asked = Clock::system().now();
        assert!(node.admit(Some(&text)).await.is_ok());
        let took: Duration = Clock::system().now().since(asked);
        assert!(took <= seconds(2) + millis(10), "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_comes_together_waits_together_for_a_store_that_does_not_answer() {
    let node = Node::new(None, true);
    node.hangs(&[Verb::Tokens, Verb::Now]);
    let asked = Clock::system().now();
    let all = futures_util::future::join_all((0..10).map(|_| node.admit(None))).await;
    assert!(all.into_iter().all(|answer| answer.unwrap_err().code == Code::StoreUnavailable));
    let took = Clock::system().now().since(asked);
    assert!(took <= seconds(2) + millis(10), "{took:?}");
}

/// A token that this server revoked is rejected at once, although the store does not return its tokens any more.
async fn revoked_while(goes: impl Fn(&Node)) {
    let node = Node::new(None, true);
    let (_, text) = node.token(ADMIN).await;
    let (other, old) = node.token(r#"{"name":"old","roles":["read"]}"#).await;
    let caller = node.admit(Some(&old)).await.unwrap();
    let dismissed = node.keeper.dismissed(&node.seen, &caller);
    goes(&node);
    node.keeper.revoke(other.id);
    node.store.revoke_token(other.id, &Actor::new("test")).await.unwrap();
    node.keeper.revoke(other.id);
    for _ in 0..10 {
        assert_eq!(node.admit(Some(&old)).await.unwrap_err().code, Code::Unauthorized);
        assert!(node.admit(Some(&text)).await.is_ok(), "others are admitted");
    }
    tokio::time::timeout(seconds(1), dismissed).await.expect("it hears no more events");
}

#[tokio::test(start_paused = true)]
async fn a_token_that_this_node_revoked_is_of_no_use_at_once() {
    revoked_while(|_| {}).await;
    revoked_while(Node::goes_away).await;
    revoked_while(|node| node.hangs(&[Verb::Tokens])).await;
    revoked_while(|node| node.hangs(&[Verb::Tokens, Verb::Now])).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_was_read_before_a_token_was_revoked_does_not_bring_it_back() {
    let node = Node::new(None, true);
    let (new, text) = node.token(ADMIN).await;
    let late = FaultyStore::with_faults(Arc::clone(&node.store) as Arc<dyn Store>, |_| {
        Box::pin(async {
            sleep(millis(300)).await;
            None
        })
    });
    // The list is being read when the token is revoked; the store is not changed yet.
    let reading = node.keeper.admit(Ok(&late), Some(&text));
    let revoking = async {
        sleep(millis(100)).await;
        node.keeper.revoke(new.id);
    };
    let (admitted, ()) = tokio::join!(reading, revoking);
    assert_eq!(admitted.unwrap_err().code, Code::Unauthorized);
    assert_eq!(node.admit(Some(&text)).await.unwrap().who().as_str(), "token:ops", "not revoked");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_got_its_first_token_is_not_open_whatever_the_store_says_later() {
    for verbs in [&[Verb::Tokens][..], &[Verb::Tokens, Verb::Now]] {
        let node = Node::new(None, true);
        assert!(node.admit(None).await.is_ok());
        node.token(ADMIN).await;
        node.keeper.forget();
        node.hangs(verbs);
        assert_eq!(node.admit(None).await.unwrap_err().code, Code::Unauthorized);
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_that_another_node_revoked_works_for_seconds_where_only_the_list_hangs() {
    let node = Node::new(None, true);
    let (new, text) = node.token(ADMIN).await;
    node.admit(Some(&text)).await.unwrap();
    node.hangs(&[Verb::Tokens]);
    node.store.revoke_token(new.id, &Actor::new("test")).await.unwrap();
    sleep(seconds(10)).await;
    assert!(node.admit(Some(&text)).await.is_ok(), "it cannot be known here");
    sleep(BELIEVED_IF_SLOW_MAX).await;
    assert_eq!(node.admit(Some(&text)).await.unwrap_err().code, Code::StoreUnavailable);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_slow_to_read_is_waited_for_where_the_last_one_is_too_old() {
    let node = Node::new(None, true);
    let (_, text) = node.token(ADMIN).await;
    let slow = FaultyStore::with_faults(Arc::clone(&node.store) as Arc<dyn Store>, |verb| {
        Box::pin(async move {
            sleep(if verb == Verb::Tokens { SLOW_ANSWER_MAX - millis(500) } else { millis(1) })
                .await;
            None
        })
    });
    for _ in 0..100 {
        assert!(node.keeper.admit(Ok(&slow), Some(&text)).await.is_ok());
        sleep(seconds(1)).await;
    }
}
