//! Authenticates callers by their tokens, with a short-lived cache of the store's tokens.

use super::session::{self, Parent};
use super::{CONFIG_NAME, TokenText, hash, id_of};
use crate::problem::{Code, Problem};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use rewheel::{Clock, Moment};
use rewheel_core::store::{Filter, Store};
use rewheel_core::{
    Actor, Job, NewToken, Tenant, Token, TokenHash, TokenId, TokenRole, TokenRoles, WorkerOwner,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::timeout;

/// How long a read list of tokens is valid. A revoked token stops working after this time on every node; a busy server reads the list
/// twice a second.
const FRESH_FOR: Duration = Duration::from_millis(500);

/// Minimum interval between reads because of unknown tokens, however many callers guess.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Timeout for reading the tokens.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// When to call the store with another request, to see whether it works at all.
const PROBE_AFTER: Duration = Duration::from_secs(1);

/// Timeout for the tokens of a store that answers other calls, if the cached tokens must not be used.
const SLOW_ANSWER_MAX: Duration = Duration::from_secs(10);

/// How long cached tokens are valid while the store does not respond at all. Known callers can still find out what is wrong; anything
/// that a revoked token must not do needs the store.
const BELIEVED_MAX: Duration = Duration::from_secs(3_600);

/// How long cached tokens are valid while the store works and only the list of tokens cannot be read. In this time a token that another
/// node revoked still works here.
const BELIEVED_IF_SLOW_MAX: Duration = Duration::from_secs(30);

/// The caller of a request, and its tenant.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    who: Actor,
    badge: Badge,
    roles: TokenRoles,
    tenant: Option<Tenant>,
    /// What its sessions depend on.
    parent: Option<Parent>,
}

/// Whose token a token is.
#[derive(Clone, Copy, Debug)]
enum Owner<'k> {
    /// It depends on no other token.
    Itself,
    /// A session of the admin token in the config.
    Config,
    /// A session of this token.
    Token(&'k Token),
}

/// How a caller was authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Badge {
    /// There are no tokens, and only this machine can reach the server.
    None,
    Config,
    Stored(TokenId),
}

impl Caller {
    fn unknown() -> Caller {
        let roles = TokenRoles::from_iter([TokenRole::Admin]);
        Caller { who: Actor::new("rest"), badge: Badge::None, roles, tenant: None, parent: None }
    }

    fn of_config(config: &TokenHash) -> Caller {
        let who = Actor::new(&format!("token:{CONFIG_NAME}"));
        let parent = Some(Parent::config(config));
        Caller { who, badge: Badge::Config, parent, ..Caller::unknown() }
    }

    /// The caller with a token. A session has the name of the token of its owner.
    fn of_token(token: &Token, owner: Owner<'_>) -> Caller {
        let (name, parent) = match owner {
            Owner::Itself => (token.name.as_str(), Some(Parent::Stored(token.id))),
            Owner::Config => (CONFIG_NAME, None),
            Owner::Token(owner) => (owner.name.as_str(), None),
        };
        Caller {
            who: Actor::new(&format!("token:{name}")),
            badge: Badge::Stored(token.id),
            roles: token.roles.clone(),
            tenant: token.tenant.clone(),
            parent,
        }
    }

    /// Creates a session of the dashboard with its rights. The session ends at the latest when its own token ends.
    ///
    /// Returns nothing for a caller without a token, and for a session.
    pub(crate) fn session(&self) -> Option<Result<(NewToken, TokenText), Problem>> {
        let parent = self.parent?;
        Some(session::make(parent, (self.roles.clone(), self.tenant.clone())))
    }

    /// Returns the sessions that have to end before it gets another one, of all tokens of the store.
    pub(crate) fn sessions_to_end(&self, tokens: &[Token]) -> Result<Vec<TokenId>, Problem> {
        self.parent.map_or_else(|| Ok(Vec::new()), |parent| session::to_end(parent, tokens))
    }

    /// Returns whether it is a session of the dashboard.
    pub(crate) fn is_session(&self) -> bool {
        matches!(self.badge, Badge::Stored(_)) && self.parent.is_none()
    }

    /// Returns its name in the audit log.
    pub(crate) fn who(&self) -> &Actor {
        &self.who
    }

    /// Returns the owner of workers that it creates.
    pub(crate) fn owner(&self) -> WorkerOwner {
        match self.badge {
            Badge::None => WorkerOwner::NoToken,
            Badge::Config => WorkerOwner::Config,
            Badge::Stored(id) => WorkerOwner::Token(id),
        }
    }

    pub(crate) fn roles(&self) -> &TokenRoles {
        &self.roles
    }

    /// Returns the tenant that it is bound to, if any.
    pub(crate) fn tenant(&self) -> Option<&Tenant> {
        self.tenant.as_ref()
    }

    /// Returns whether it was authenticated by a token.
    pub(crate) fn has_token(&self) -> bool {
        self.badge != Badge::None
    }

    /// Returns whether it may see a job.
    pub(crate) fn sees(&self, job: &Job) -> bool {
        self.tenant.is_none() || self.tenant == job.lane.tenant
    }

    /// Fills in its tenant if none is given; rejects another tenant.
    pub(crate) fn claim(&self, tenant: &mut Option<Tenant>) -> Result<(), Problem> {
        match (&self.tenant, &tenant) {
            (None, _) => Ok(()),
            (Some(own), None) => {
                *tenant = Some(own.clone());
                Ok(())
            }
            (Some(own), Some(said)) if own == said => Ok(()),
            (Some(own), Some(_)) => {
                let why = format!("this token is limited to the tenant `{own}`");
                Err(Problem::new(Code::Forbidden, why)
                    .hint("leave out `tenant`: the server uses the tenant of the token"))
            }
        }
    }

    /// Restricts a filter to its tenant.
    pub(crate) fn narrow(&self, filter: &mut Filter) -> Result<(), Problem> {
        self.claim(&mut filter.tenant)
    }

    /// Rejects requests about the jobs of all tenants if it is bound to one.
    pub(crate) fn whole(&self, hint: &str) -> Result<(), Problem> {
        let Some(tenant) = &self.tenant else { return Ok(()) };
        let why = format!(
            "this request is about all tenants, but the token is limited to tenant `{tenant}`"
        );
        Err(Problem::new(Code::Forbidden, why).hint(hint))
    }
}

/// Authenticates callers by cached tokens.
#[derive(Debug)]
pub(crate) struct Keeper {
    clock: Clock,
    /// The digest of the token in the config.
    config: Option<TokenHash>,
    /// Whether only this machine can reach the server: then it needs no token as long as there are none.
    is_private: bool,
    state: Mutex<State>,
    /// Locked while the store is read.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    known: Option<Arc<Known>>,
    /// The latest failed read without a cached list, and its problem.
    in_vain: Option<(Moment, Problem)>,
    /// How often this server changed tokens.
    changes: u64,
    /// Tokens that this server revoked, each with the value of `changes` at that time. They are invalid, whatever an older list says.
    revoked: HashMap<TokenId, u64>,
}

/// The cached list.
#[derive(Clone, Debug)]
struct Known {
    tokens: Arc<HashMap<TokenId, Token>>,
    read: Moment,
    /// Whether the list is known to have changed since.
    is_past: bool,
    /// The latest failed read, and whether the store works otherwise.
    failed: Option<(Moment, Works)>,
}

/// The state of a store that did not return its tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Works {
    /// It answers other calls.
    Yes,
    No,
}

impl Works {
    fn believed_max(self) -> Duration {
        match self {
            Works::Yes => BELIEVED_IF_SLOW_MAX,
            Works::No => BELIEVED_MAX,
        }
    }
}

impl Keeper {
    pub(crate) fn new(config: Option<TokenHash>, is_private: bool) -> Keeper {
        let asking = tokio::sync::Mutex::new(());
        Keeper { clock: Clock::system(), config, is_private, state: Mutex::default(), asking }
    }

    /// Authenticates a caller, or returns a problem. It does not say why a token is invalid: that would help attackers.
    pub(crate) async fn admit(
        &self,
        store: Result<&dyn Store, Problem>,
        bearer: Option<&str>,
    ) -> Result<Caller, Problem> {
        let hashed = bearer.map(|text| (id_of(text), hash(text)));
        if let (Some((_, hash)), Some(config)) = (&hashed, &self.config)
            && is_same(hash, config)
        {
            return Ok(Caller::of_config(config));
        }
        let store = store?;
        let mut known = self.known(store, FRESH_FOR).await?;
        if self.is_open(&known) {
            return Ok(Caller::unknown());
        }
        let Some((id, hash)) = hashed else { return Err(no_token()) };
        if id.is_some_and(|id| !known.tokens.contains_key(&id)) {
            // Another node may have created the token a moment ago.
            let age = self.clock.now().since(known.read);
            self.clock.sleep(AGAIN_AFTER.saturating_sub(age)).await;
            known = self.known(store, AGAIN_AFTER).await?;
        }
        let token = id.and_then(|id| known.tokens.get(&id));
        // Compare also for an unknown token, so that it takes the same time.
        let is_same = is_same(&hash, &token.map_or(TokenHash([0; 32]), |token| token.hash));
        let owned =
            token.filter(|_| is_same).and_then(|token| Some((token, self.owner(token, &known)?)));
        match owned {
            Some((token, owner)) => Ok(Caller::of_token(token, owner)),
            None => {
                let id = id.map(|id| id.to_string());
                tracing::info!(id, "rejected a request with an invalid token");
                Err(bad_token())
            }
        }
    }

    /// Returns once a caller would not be admitted any more.
    pub(crate) async fn dismissed(&self, store: &dyn Store, caller: &Caller) {
        loop {
            self.clock.sleep(FRESH_FOR).await;
            if let Badge::Stored(id) = caller.badge
                && self.is_revoked(id)
            {
                return;
            }
            // It may stay as long as the tokens cannot be read.
            let Ok(known) = self.known(store, FRESH_FOR).await else { continue };
            let is_welcome = match caller.badge {
                Badge::None => self.is_open(&known),
                Badge::Config => true,
                Badge::Stored(id) => {
                    let token = known.tokens.get(&id);
                    token.and_then(|token| self.owner(token, &known)).is_some()
                }
            };
            if !is_welcome {
                return;
            }
        }
    }

    /// Marks the cached list as outdated.
    pub(crate) fn forget(&self) {
        self.state().change();
    }

    /// Stops accepting a token at once, whether or not the store can list its tokens. Called before the store is changed, and again after
    /// it responded: a list read in between still contains the token.
    pub(crate) fn revoke(&self, id: TokenId) {
        let mut state = self.state();
        state.change();
        let changes = state.changes;
        state.revoked.insert(id, changes);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether callers need no token. An empty list that is outdated may have a token by now.
    fn is_open(&self, known: &Known) -> bool {
        self.is_private && self.config.is_none() && known.tokens.is_empty() && !known.is_past
    }

    /// Returns whose token it is, if the token is valid, and the token that it depends on, too.
    fn owner<'k>(&self, token: &Token, known: &'k Known) -> Option<Owner<'k>> {
        if !self.is_live(token, known) {
            return None;
        }
        match Parent::of(&token.name) {
            None => Some(Owner::Itself),
            Some(parent @ Parent::Config(_)) => {
                let config = self.config.as_ref().map(Parent::config);
                (config == Some(parent)).then_some(Owner::Config)
            }
            Some(Parent::Stored(id)) => {
                let owner = known.tokens.get(&id).filter(|owner| self.is_live(owner, known));
                owner.map(Owner::Token)
            }
        }
    }

    fn is_live(&self, token: &Token, known: &Known) -> bool {
        let since = self.clock.now().since(known.read);
        token.revoked.is_none()
            && token.expires_in.is_none_or(|left| left > since)
            && !self.is_revoked(token.id)
    }

    fn is_revoked(&self, id: TokenId) -> bool {
        self.state().revoked.contains_key(&id)
    }

    fn latest(&self) -> Option<Arc<Known>> {
        self.state().known.clone()
    }

    /// Returns the tokens, no older than this; the last known ones if the store does not respond.
    async fn known(&self, store: &dyn Store, fresh_for: Duration) -> Result<Arc<Known>, Problem> {
        let now = self.clock.now();
        let is_recent = |at: Moment| now.since(at) < fresh_for;
        let usable = |known: &Arc<Known>| {
            let is_believed = known.failed.is_some_and(|(failed, works)| {
                is_recent(failed) && now.since(known.read) < works.believed_max()
            });
            (is_recent(known.read) && !known.is_past) || is_believed
        };
        if let Some(known) = self.latest().filter(usable) {
            return Ok(known);
        }
        let _one_at_a_time = self.asking.lock().await;
        if let Some(known) = self.latest().filter(usable) {
            return Ok(known);
        }
        // Callers that waited during a failed read get the same problem, without another read.
        let in_vain = self.state().in_vain.clone();
        if let Some((_, problem)) = in_vain.filter(|(failed, _)| *failed >= now) {
            return Err(problem);
        }
        let (asked, changes) = (self.clock.now(), self.state().changes);
        let answer = self.ask(store).await;
        let mut state = self.state();
        let known = match (answer, state.known.clone()) {
            (Ok(tokens), _) => {
                let tokens = tokens.into_iter().map(|token| (token.id, token)).collect();
                state.revoked.retain(|_, revoked| *revoked > changes);
                let is_past = state.changes != changes;
                Known { tokens: Arc::new(tokens), read: asked, is_past, failed: None }
            }
            (Err((problem, works)), Some(old)) if asked.since(old.read) < works.believed_max() => {
                tracing::debug!(
                    detail = problem.detail,
                    "failed to read the tokens from the store: this server accepts the tokens that it knows for up to 30s (up to 1h if the store does not respond), then it rejects all"
                );
                let failed = Some((self.clock.now(), works));
                Known { failed, ..(*old).clone() }
            }
            (Err((problem, _)), _) => {
                state.in_vain = Some((self.clock.now(), problem.clone()));
                return Err(problem);
            }
        };
        let known = Arc::new(known);
        state.known = Some(Arc::clone(&known));
        Ok(known)
    }

    /// Reads the tokens. If that fails, returns whether the store works otherwise.
    async fn ask(&self, store: &dyn Store) -> Result<Vec<Token>, (Problem, Works)> {
        let asked = self.clock.now();
        let can_wait =
            self.latest().is_none_or(|old| asked.since(old.read) >= BELIEVED_IF_SLOW_MAX);
        let silent = || {
            Problem::new(
                Code::StoreUnavailable,
                "the store did not return the access tokens in time",
            )
        };
        let mut reading = store.tokens();
        match timeout(PROBE_AFTER, &mut reading).await {
            Ok(Ok(tokens)) => return Ok(tokens),
            Ok(Err(error)) => {
                let works = timeout(ANSWER_MAX - PROBE_AFTER, store.now()).await;
                return Err((error.into(), works_if(matches!(works, Ok(Ok(_))))));
            }
            Err(_) => {}
        }
        let reading = async { reading.await.map_err(|error| (error.into(), Works::Yes)) };
        tokio::pin!(reading);
        let probed = tokio::select! {
            biased;
            answer = &mut reading => return answer,
            probed = timeout(ANSWER_MAX - PROBE_AFTER, store.now()) => probed,
        };
        let works = works_if(matches!(probed, Ok(Ok(_))));
        let answer_max = match works {
            Works::Yes if can_wait => SLOW_ANSWER_MAX,
            Works::Yes | Works::No => ANSWER_MAX,
        };
        let left = answer_max.saturating_sub(self.clock.now().since(asked));
        timeout(left, reading).await.unwrap_or_else(|_| Err((silent(), works)))
    }
}

impl State {
    /// Records that the cached tokens are outdated.
    fn change(&mut self) {
        self.changes += 1;
        if let Some(old) = self.known.take() {
            self.known = Some(Arc::new(Known { is_past: true, failed: None, ..(*old).clone() }));
        }
    }
}

fn works_if(answers: bool) -> Works {
    if answers { Works::Yes } else { Works::No }
}

fn is_same(one: &TokenHash, other: &TokenHash) -> bool {
    verify_slices_are_equal(&one.0, &other.0).is_ok()
}

fn no_token() -> Problem {
    Problem::new(Code::Unauthorized, "this request needs a token").hint(
        "send the header `Authorization: Bearer rw_…`; in the CLI use --token or REWHEEL_TOKEN",
    )
}

pub(crate) fn bad_token() -> Problem {
    Problem::new(Code::Unauthorized, "the token is unknown or no longer valid")
        .hint("use another token: the token in the request was revoked, has expired, or belongs to another store; `rewheel token list` shows all tokens")
}

#[cfg(test)]
mod tests;
