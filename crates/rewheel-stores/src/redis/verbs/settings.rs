//! Checks the server's settings: which ones are refused, and which ones are risks.

use super::super::RedisStore;
use super::super::connection::Connections;
use super::super::error::{Stage, broken};
use super::super::reply::Reply;
use super::super::script::Effect;
use redis::{Cmd, cmd};
use rewheel_core::store::{Risk, StoreError, StoreResult};
use std::collections::HashMap;

/// The oldest release whose scripts pass on the error of a command as it is.
const OLDEST: (u32, u32) = (7, 0);

/// The settings of the server that matter. Some hosts do not show them.
struct Settings(HashMap<String, String>);

impl Settings {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

/// Refuses a server that would lose jobs, and warns of one that might.
pub(in super::super) async fn check(connections: &Connections) -> StoreResult<()> {
    let info = info(connections).await?;
    if let Some(version) = info.get("redis_version")
        && release(version).is_some_and(|release| release < OLDEST)
    {
        let what = format!(
            "{} runs Redis {version}, which is too old: use 7.0 or later, or Valkey",
            connections.servers.address()
        );
        return Err(broken(what, None));
    }
    let policy = info.get("maxmemory_policy").map(String::as_str).unwrap_or("noeviction");
    if policy != "noeviction" {
        let what = format!(
            "{} has maxmemory-policy {policy}: when its memory is full it would delete jobs; set it with CONFIG SET maxmemory-policy noeviction, \
             and in the server's configuration",
            connections.servers.address()
        );
        return Err(broken(what, None));
    }
    for Risk { name, message } in risks_of(&info, &settings(connections).await) {
        tracing::warn!(setting = name, problem = message, "Redis may lose jobs");
    }
    Ok(())
}

impl RedisStore {
    pub(in super::super) async fn risks(&self) -> StoreResult<Vec<Risk>> {
        let connections = &self.shared.connections;
        let mut risks = risks_of(&info(connections).await?, &settings(connections).await);
        risks.extend(self.unreadable().await?);
        risks.extend(self.forgotten().await?);
        Ok(risks)
    }
}

fn risks_of(info: &HashMap<String, String>, settings: &Settings) -> Vec<Risk> {
    let mut risks = Vec::new();
    let mut add = |name, message: String| risks.push(Risk { name, message });
    let policy = info.get("maxmemory_policy").map_or("noeviction", String::as_str);
    if policy != "noeviction" {
        add(
            "maxmemory-policy",
            format!("{policy}: Redis deletes jobs when its memory is full; set it to noeviction"),
        );
    }
    let is_on = info.get("aof_enabled").is_some_and(|enabled| enabled == "1");
    match (is_on, settings.get("appendfsync")) {
        (false, _) if settings.get("save") == Some("") => add(
            "appendonly",
            "no: a crash of Redis loses all jobs, because it writes nothing to its disk; set appendonly to yes".to_owned(),
        ),
        (false, _) => add(
            "appendonly",
            "no: a crash of Redis loses every job since the last snapshot; set appendonly to yes".to_owned(),
        ),
        (true, Some("always")) => {}
        (true, Some("no")) => add(
            "appendfsync",
            "no: a crash of the machine may lose about 30 seconds of acknowledged jobs; set it to always or everysec".to_owned(),
        ),
        (true, Some(_)) => add(
            "appendfsync",
            "everysec: a crash may lose up to 2 seconds of acknowledged jobs; set it to always to lose none".to_owned(),
        ),
        (true, None) => add(
            "appendfsync",
            "this server does not show the setting: unless it is always, a crash may lose acknowledged jobs".to_owned(),
        ),
    }
    if settings.get("no-appendfsync-on-rewrite") == Some("yes") && is_on {
        let message = "yes: while Redis rewrites its file, a crash may lose about 30 seconds of acknowledged jobs; set it to no";
        add("no-appendfsync-on-rewrite", message.to_owned());
    }
    if info.get("aof_last_write_status").is_some_and(|status| status != "ok") {
        add(
            "aof_last_write_status",
            "Redis cannot write its append-only file: see its log, and make space on its disk"
                .to_owned(),
        );
    }
    let replicas =
        info.get("connected_slaves").and_then(|count| count.parse::<u32>().ok()).unwrap_or(0);
    if replicas > 0 && settings.get("min-replicas-to-write").is_none_or(|count| count == "0") {
        let message = format!(
            "0, with {replicas} replicas: a failover may lose the last acknowledged jobs, because replication is asynchronous; \
             set it to 1 or more to make this less likely"
        );
        add("min-replicas-to-write", message);
    }
    let number =
        |name: &str| info.get(name).and_then(|value| value.parse::<u64>().ok()).unwrap_or(0);
    let (used, most) = (number("used_memory"), number("maxmemory"));
    if most > 0 && used > most / 10 * 9 {
        let message = format!(
            "{used} of {most} bytes are used: when all are used, Redis accepts no new jobs; raise it"
        );
        add("maxmemory", message);
    }
    risks
}

async fn info(connections: &Connections) -> StoreResult<HashMap<String, String>> {
    let text = ask(connections, &cmd("INFO")).await?.text()?;
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    Ok(lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

async fn settings(connections: &Connections) -> Settings {
    let mut known = HashMap::new();
    for name in ["appendfsync", "no-appendfsync-on-rewrite", "min-replicas-to-write", "save"] {
        let mut command = cmd("CONFIG");
        command.arg("GET").arg(name);
        // A hosted server may not allow it: then it is unknown.
        let Ok(Ok(pair)) = ask(connections, &command).await.map(Reply::list) else { continue };
        if let Some(Ok(value)) = pair.into_iter().nth(1).map(Reply::text) {
            known.insert(name.to_owned(), value);
        }
    }
    Settings(known)
}

async fn ask(connections: &Connections, command: &Cmd) -> Result<Reply, StoreError> {
    connections.command(command, Stage::Sent(Effect::Reads)).await.map(Reply)
}

fn release(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::{Settings, release, risks_of};
    use std::collections::HashMap;

    fn names(info: &[(&str, &str)], settings: &[(&str, &str)]) -> Vec<&'static str> {
        let own = |pairs: &[(&str, &str)]| -> HashMap<String, String> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        risks_of(&own(info), &Settings(own(settings))).iter().map(|risk| risk.name).collect()
    }

    #[test]
    fn each_setting_that_may_lose_jobs_is_a_risk() {
        let aof = ("aof_enabled", "1");
        assert_eq!(names(&[aof], &[("appendfsync", "always")]), [""; 0]);
        assert_eq!(names(&[aof], &[("appendfsync", "everysec")]), ["appendfsync"]);
        assert_eq!(names(&[aof], &[]), ["appendfsync"]);
        assert_eq!(names(&[], &[]), ["appendonly"]);
        let evicts = ("maxmemory_policy", "allkeys-lru");
        assert_eq!(names(&[aof, evicts], &[("appendfsync", "always")]), ["maxmemory-policy"]);
        let replica = ("connected_slaves", "1");
        assert_eq!(names(&[aof, replica], &[("appendfsync", "always")]), ["min-replicas-to-write"]);
        let full = [aof, ("used_memory", "95"), ("maxmemory", "100")];
        assert_eq!(names(&full, &[("appendfsync", "always")]), ["maxmemory"]);
    }

    #[test]
    fn releases_are_compared_by_number() {
        assert_eq!(release("7.0.15"), Some((7, 0)));
        assert!(release("10.0.1") > release("6.2.0"));
        assert_eq!(release("unknown"), None);
    }
}
