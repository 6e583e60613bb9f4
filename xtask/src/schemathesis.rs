//! Runs schemathesis, which tests a real server against its OpenAPI document.

use anyhow::Result;

use crate::repository::{self, Repository};

/// The variable with the path of `schemathesis`, if it is not on the PATH.
const PROGRAM: &str = "REWHEEL_SCHEMATHESIS";

/// Runs in its own network namespace with only loopback: generated requests may contain callback URLs. The server ends with the script,
/// however it ends.
const SCRIPT: &str = r#"
set -eu
rewheel=$1 schemathesis=$2 folder=$3
shift 3
ip link set lo up
printf '[store]\nurl = "memory://"\n[kinds.charge-card]\nrunner = "worker"\n[kinds.mail]\n' > "$folder/rewheel.toml"
# With the first token that it makes up, an open server would ask for one from then on.
export REWHEEL__SERVER__ADMIN_TOKEN=schemathesis-0123456789abcdef-0123456789abcdef
"$rewheel" serve --config "$folder/rewheel.toml" --listen 127.0.0.1:7420 2> "$folder/serve.log" &
server=$!
trap 'kill $server 2> /dev/null; wait $server 2> /dev/null || true' EXIT
for _ in $(seq 100); do grep -q 'listening on' "$folder/serve.log" && break; sleep 0.1; done
"$schemathesis" --config-file xtask/schemathesis.toml run http://127.0.0.1:7420/openapi.json \
    --header "Authorization: Bearer $REWHEEL__SERVER__ADMIN_TOKEN" --checks all --continue-on-failure --max-failures 1000 --seed 17 --request-timeout 40 \
    --exclude-path /v1/events "$@"
"#;

/// Runs schemathesis with additional arguments. Without any, each operation gets 50 examples.
///
/// `GET /v1/events` is excluded: it has no end.
pub(crate) fn run(repository: &Repository, args: &[String]) -> Result<()> {
    let program = std::env::var(PROGRAM).unwrap_or_else(|_| "schemathesis".to_owned());
    if !repository.has_program(&program) {
        println!(
            "skipped: there is no `{program}`. Install it (`pip install schemathesis`), put it on the \
             PATH or name it in {PROGRAM}"
        );
        return Ok(());
    }
    if !repository.has_program("unshare") {
        println!(
            "skipped: without `unshare` (util-linux) made-up requests could leave this machine"
        );
        return Ok(());
    }
    repository::run(&mut repository.cargo("build --package rewheel-cli"))?;
    let folder = repository.target_dir().join("schemathesis");
    std::fs::create_dir_all(&folder)?;
    let usual = ["--max-examples".to_owned(), "50".to_owned()];
    let args = if args.is_empty() { &usual } else { args };
    let mut command = repository.program("unshare");
    command
        .args(["--map-root-user", "--net", "sh", "-c", SCRIPT, "schemathesis"])
        .arg(repository.target_dir().join("debug/rewheel"))
        .arg(program)
        .arg(folder)
        .args(args);
    repository::run(&mut command)
}
