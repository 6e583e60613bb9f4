//! Tests that the work of one script, and the number of scripts, does not grow with the size of the store.

use super::server::{Server, holder, jobs, kind, visit};
use rewheel::Random;
use rewheel_core::store::{
    Claim, ClockOffset, Count, Filter, Insert, KindStore, LeaseStore, OperateStore, Prune,
    ReadStore, SampleStore, SubmitStore, Sweep, Visit, Watched, WorkStore,
};
use rewheel_core::{Actor, Key, KindName, Lane, NewJob, NewKind, Retain, State, Tenant, When};
use rewheel_stores::RedisStore;
use std::time::Duration;

/// Returns how often the server has run a command.
fn calls(server: &Server, command: &str) -> usize {
    let stats: String = server.command(&["INFO", "commandstats"]);
    let line =
        stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
    line.map_or(0, |rest| {
        rest.split(',').next().and_then(|calls| calls.parse().ok()).expect("a number of calls")
    })
}

fn scripts(server: &Server) -> usize {
    calls(server, "eval") + calls(server, "evalsha")
}

fn names(count: usize) -> Vec<KindName> {
    (0..count).map(|n| KindName::parse(&format!("kind-{n:05}")).expect("a kind")).collect()
}

async fn put(store: &RedisStore, names: &[KindName]) {
    let new = |name: &KindName| NewKind {
        name: name.clone(),
        settings: "{}".to_owned(),
        takeovers_max: 3,
        on_dead: Default::default(),
    };
    let kinds: Vec<NewKind> = names.iter().map(new).collect();
    store.put_kinds(&kinds, &Actor::new("test")).await.expect("stored");
}

fn job_of(random: &Random, kind: &KindName) -> NewJob {
    NewJob { kind: kind.clone(), ..jobs(random, 1, 10).remove(0) }
}

/// An idle node must not send a command for each kind whenever it polls.
#[tokio::test]
async fn a_poll_of_many_idle_kinds_is_one_script() {
    let server = Server::start("").await;
    let store = server.open().await.unwrap();
    for (kinds, expected) in [(1, 1), (100, 1), (500, 1), (1_200, 3)] {
        let kinds = names(kinds);
        // Until its text is known to the server, a script is sent twice.
        store.lanes(&kinds[..1], None, 1_000).await.unwrap();
        let before = scripts(&server);
        assert!(store.lanes(&kinds, None, 1_000).await.unwrap().is_empty());
        assert_eq!(scripts(&server) - before, expected, "{} kinds", kinds.len());
    }
}

/// Pages begin and end anywhere, also between kinds, and between two scripts.
#[tokio::test]
async fn pages_of_lanes_are_read_from_where_the_page_before_has_ended() {
    let server = Server::start("").await;
    let store = server.open().await.unwrap();
    let (random, kinds) = (Random::thread(), names(600));
    put(&store, &kinds).await;
    let mut batch = Vec::new();
    for kind in kinds.iter().step_by(2) {
        batch.push(job_of(&random, kind));
        let tenant = Tenant::parse("acme").ok();
        batch.push(NewJob { tenant, ..job_of(&random, kind) });
    }
    store.insert(&Insert::new(&batch)).await.unwrap();
    let mut expected: Vec<Lane> = batch.iter().map(NewJob::lane).collect();
    expected.sort_unstable();
    for limit in [1_000, 600, 599, 250, 7] {
        let (mut found, mut after) = (Vec::new(), None::<Lane>);
        let before = scripts(&server);
        let mut pages = 0;
        loop {
            let page = store.lanes(&kinds, after.as_ref(), limit).await.unwrap();
            pages += 1;
            assert!(page.len() <= limit);
            let is_last = page.len() < limit;
            after = page.last().map(|head| head.lane.clone()).or(after);
            found.extend(page.into_iter().map(|head| head.lane));
            if is_last {
                break;
            }
        }
        assert_eq!(found, expected, "pages of {limit}");
        let asked = scripts(&server) - before;
        assert!(asked <= 3 * pages, "{asked} scripts for {pages} pages of {limit}");
    }
    // A page that begins behind all kinds.
    let behind = Lane { kind: KindName::parse("zebra").unwrap(), ..expected[0].clone() };
    assert!(store.lanes(&kinds, Some(&behind), 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn stored_kinds_are_put_and_read_with_few_scripts() {
    let server = Server::start("").await;
    let store = server.open().await.unwrap();
    let kinds = names(1_100);
    put(&store, &kinds).await;
    let at = store.kinds_since(0).await.unwrap().at;
    let before = scripts(&server);
    put(&store, &kinds).await;
    assert_eq!(scripts(&server) - before, 3, "nothing is new");
    assert_eq!(store.kinds_since(0).await.unwrap().at, at, "nothing was written");
    let before = scripts(&server);
    let found = store.kinds().await.unwrap();
    assert_eq!(scripts(&server) - before, 3);
    let mut expected = [kinds.as_slice(), &[kind()]].concat();
    expected.sort_unstable();
    let found: Vec<KindName> = found.into_iter().map(|kind| kind.name).collect();
    assert_eq!(found, expected);
    // Those that have changed since.
    let changed = |settings: &str, name: &KindName| NewKind {
        name: name.clone(),
        settings: settings.to_owned(),
        takeovers_max: 3,
        on_dead: Default::default(),
    };
    let twice = [changed("{\"a\":1}", &kinds[7]), changed("{}", &kinds[7])];
    store.put_kinds(&twice, &Actor::new("test")).await.unwrap();
    let since = store.kinds_since(at).await.unwrap();
    assert!(!since.all);
    assert_eq!((since.kinds.len(), since.kinds[0].settings.as_str()), (1, "{}"));
}

/// The counters of tenants are in the same hash.
#[tokio::test]
async fn a_tally_reads_only_the_counters_of_kinds() {
    let server = Server::start("").await;
    let store = server.open().await.unwrap();
    let (random, kinds) = (Random::thread(), names(700));
    put(&store, &kinds).await;
    let mut batch = jobs(&random, 300, 10);
    for (n, job) in batch.iter_mut().enumerate() {
        job.tenant = Tenant::parse(&format!("tenant-{n}")).ok();
    }
    batch.push(job_of(&random, &kinds[699]));
    store.insert(&Insert::new(&batch)).await.unwrap();
    let before = (calls(&server, "hgetall"), calls(&server, "hkeys"));
    let tallies = store.tally().await.unwrap();
    assert_eq!((calls(&server, "hgetall"), calls(&server, "hkeys")), before);
    assert_eq!(tallies.len(), 701);
    let scheduled = |name: &KindName| {
        let tally = tallies.iter().find(|tally| tally.kind == *name).unwrap();
        (tally.jobs[&State::Scheduled], tally.oldest_due.is_some())
    };
    assert_eq!(scheduled(&kind()), (300, true));
    assert_eq!(scheduled(&kinds[699]), (1, true));
    assert_eq!(scheduled(&kinds[698]), (0, false));
    assert_eq!(store.sample_now(300).await.unwrap(), None);
    assert_eq!(store.sample_now(301).await.unwrap().unwrap().tallies, tallies);
}

/// A sweeper that was just started takes no job whose timeout is longer than it has watched the clock; these may be many.
#[tokio::test]
async fn an_overdue_job_is_found_behind_many_that_must_stay() {
    const LONG: usize = 1_100;
    let server = Server::start("").await;
    let clock = ClockOffset::default();
    drop(server.open().await.unwrap());
    let store = server.open_with(clock.clone()).await.unwrap();
    let random = Random::thread();
    let (by, holding) = (holder(&store, &random).await, holder(&store, &random).await);
    let batch = jobs(&random, LONG + 1, 10);
    store.insert(&Insert::new(&batch)).await.unwrap();
    let claim = async |timeout: u64, limit: usize| {
        let attempt_timeout = Duration::from_secs(timeout);
        let visits = [Visit { attempt_timeout, ..visit(limit) }];
        let claim = Claim { holder: holding, visits: &visits, horizon: Duration::ZERO, limit };
        store.claim(&claim).await.unwrap()
    };
    assert_eq!(claim(1_800, LONG).await.len(), LONG);
    clock.advance(Duration::from_secs(1_800));
    let short = claim(30, 1).await.remove(0).job.id;
    clock.advance(Duration::from_secs(60));
    let until = store.now().await.unwrap();
    let watched = Watched { until, since: Duration::from_secs(100) };
    let sweep = Sweep { watched, ..Sweep::new(by, 10, Retain::default()) };
    let freed: Vec<_> =
        store.sweep(&sweep).await.unwrap().into_iter().map(|event| event.job).collect();
    assert_eq!(freed, [short]);
    // Later all of them: as many as the caller wants, and then the rest.
    let sweep = Sweep::new(by, LONG - 100, Retain::default());
    assert_eq!(store.sweep(&sweep).await.unwrap().len(), LONG - 100);
    assert_eq!(store.sweep(&sweep).await.unwrap().len(), 100);
    assert!(store.sweep(&sweep).await.unwrap().is_empty());
    assert_eq!(store.books().await.unwrap().missing(), 0);
}

/// Leased jobs within the grace stay, and must neither hide others nor be looked at in one script.
#[tokio::test]
async fn deadlines_are_found_behind_leased_jobs_within_the_grace() {
    const LEASED: usize = 350;
    const GRACE: Duration = Duration::from_secs(3_600);
    let server = Server::start("").await;
    let clock = ClockOffset::default();
    drop(server.open().await.unwrap());
    let store = server.open_with(clock.clone()).await.unwrap();
    let random = Random::thread();
    let by = holder(&store, &random).await;
    let within = |seconds: u64| Some(When::In(Duration::from_secs(seconds)));
    let mut batch = jobs(&random, LEASED, 10);
    batch.iter_mut().for_each(|job| job.deadline = within(60));
    store.insert(&Insert::new(&batch)).await.unwrap();
    let visits = [visit(LEASED)];
    let claim = Claim { holder: by, visits: &visits, horizon: Duration::ZERO, limit: LEASED };
    assert_eq!(store.claim(&claim).await.unwrap().len(), LEASED);
    let mut late = jobs(&random, 60, 10);
    late.iter_mut().for_each(|job| job.deadline = within(70));
    store.insert(&Insert::new(&late)).await.unwrap();
    clock.advance(Duration::from_secs(100));
    let before = scripts(&server);
    let ended = store.deadlines(GRACE, 1_000).await.unwrap();
    assert_eq!(ended.len(), 60);
    assert!(scripts(&server) - before >= 5, "each script looks at a part");
    assert!(store.deadlines(GRACE, 1_000).await.unwrap().is_empty());
    assert_eq!(store.deadlines(Duration::ZERO, 100).await.unwrap().len(), 100);
    assert_eq!(store.deadlines(Duration::ZERO, 1_000).await.unwrap().len(), LEASED - 100);
}

#[tokio::test]
async fn old_holders_and_starts_are_forgotten_a_part_at_a_time() {
    const HOLDERS: usize = 700;
    let server = Server::start("").await;
    let clock = ClockOffset::default();
    let store = server.open_with(clock.clone()).await.unwrap();
    let random = Random::thread();
    for _ in 0..HOLDERS {
        let gone = holder(&store, &random).await;
        store.leave(gone).await.unwrap();
    }
    clock.advance(Duration::from_secs(3 * 24 * 3_600));
    let living = holder(&store, &random).await;
    let now = store.now().await.unwrap().as_millis().to_string();
    for n in 0..1_300 {
        let (name, at) = (format!("k\0{n}"), if n == 5 { now.as_str() } else { "1000" });
        let _: i64 = server.command(&["HSET", "{rewheel}:starts", &name, at]);
    }
    let prune = |limit| Prune { limit, audit_older_than: Duration::from_secs(1_000_000) };
    let before = calls(&server, "hgetall");
    assert_eq!(store.prune(&prune(100)).await.unwrap().holders, 100);
    assert_eq!(calls(&server, "hgetall"), before);
    let starts: Vec<String> = server.command(&["HKEYS", "{rewheel}:starts"]);
    assert_eq!(starts, ["k\x005"]);
    assert_eq!(store.prune(&prune(1_000)).await.unwrap().holders, HOLDERS as u64 - 100);
    let left: Vec<_> = store.holders().await.unwrap().into_iter().map(|one| one.id).collect();
    assert_eq!(left, [living]);
}

#[tokio::test]
async fn a_search_by_key_reads_the_scopes_a_part_at_a_time() {
    const TENANTS: usize = 700;
    let server = Server::start("").await;
    let store = server.open().await.unwrap();
    put(&store, &names(1)).await;
    let random = Random::thread();
    let key = Key::parse("order-1").unwrap();
    let mut batch = jobs(&random, TENANTS + 2, 10);
    for (n, job) in batch.iter_mut().enumerate() {
        job.key = Some(key.clone());
        // The last two have no tenant.
        job.tenant = (n < TENANTS).then(|| Tenant::parse(&format!("tenant-{n}")).unwrap());
    }
    batch[TENANTS + 1].kind = names(1).remove(0);
    store.insert(&Insert::new(&batch)).await.unwrap();
    let count = async |filter: Filter| {
        let filter = Filter { key: Some(key.clone()), ..filter };
        match store.count(&filter, 1).await.unwrap() {
            Count::Exactly(count) => count,
            Count::AtLeast(count) => panic!("at least {count}"),
        }
    };
    let tenant = Tenant::parse("tenant-5").ok();
    let before = calls(&server, "hkeys");
    assert_eq!(count(Filter::default()).await, TENANTS as u64 + 2);
    let of_kind = Filter { kinds: vec![kind()], ..Filter::default() };
    assert_eq!(count(of_kind).await, TENANTS as u64 + 1);
    assert_eq!(count(Filter { tenant: tenant.clone(), ..Filter::default() }).await, 1);
    let before_exact = calls(&server, "hscan");
    let both = Filter { kinds: vec![kind()], tenant, ..Filter::default() };
    assert_eq!(count(both).await, 1);
    assert_eq!(calls(&server, "hscan"), before_exact, "it is one field");
    assert_eq!(calls(&server, "hkeys"), before);
    let other = Filter { tenant: Tenant::parse("unknown").ok(), ..Filter::default() };
    assert_eq!(count(other).await, 0);
}
