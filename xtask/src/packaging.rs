//! Tests of the files in `packaging` and of the workflows, as far as the installed tools allow.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::packages;
use crate::repository::Repository;

/// The largest exposure that `systemd-analyze security` may report, in tenths.
const EXPOSURE_MAX: &str = "20";

fn repository() -> Repository {
    Repository::of_this_run().unwrap()
}

fn read(path: impl AsRef<Path>) -> String {
    let path = repository().path(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Runs a tool and returns what it prints; `None` if it is not installed or its subcommand is missing.
fn tool(name: &str, words: &[&str], env: &[(&str, &str)]) -> Option<(bool, String)> {
    if packages::find(name).is_none() {
        println!("not tested: there is no {name}");
        return None;
    }
    let mut command: Command = repository().program(name);
    let output = command.args(words).envs(env.iter().copied()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some((output.status.success(), text(&output.stdout) + &text(&output.stderr)))
}

#[track_caller]
fn assert_accepted(said: Option<(bool, String)>) -> String {
    let Some((is_ok, text)) = said else { return String::new() };
    assert!(is_ok, "{text}");
    text
}

#[test]
fn systemd_accepts_the_unit_and_finds_it_hardened() {
    let unit = "packaging/systemd/rewheel.service";
    let security = ["security", "--offline=true", "--no-pager", "--threshold", EXPOSURE_MAX, unit];
    assert_accepted(tool("systemd-analyze", &security, &[]));
    let Some((_, said)) = tool("systemd-analyze", &["verify", unit], &[]) else { return };
    // The program is not installed here. Nothing else may be wrong.
    let wrong: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("rewheel.service") && !line.contains("is not executable"))
        .collect();
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn the_unit_waits_longer_than_the_server_needs_to_stop() {
    let unit = read("packaging/systemd/rewheel.service");
    let value =
        |key: &str| unit.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
    assert_eq!(
        (value("Type="), value("WatchdogSec="), value("TimeoutStopSec=")),
        ("notify", "30s", "45s")
    );
    let example = read("rewheel.example.toml");
    assert!(
        example.contains("\nshutdown_grace = \"30s\""),
        "the grace is not 30s any more: change the unit"
    );
}

#[test]
fn kustomize_builds_the_manifests() {
    let said = assert_accepted(tool("kubectl", &["kustomize", "packaging/kubernetes"], &[]));
    if said.is_empty() {
        return;
    }
    let kinds: BTreeSet<&str> =
        said.lines().filter_map(|line| line.strip_prefix("kind: ")).collect();
    let expected =
        ["ConfigMap", "Deployment", "HorizontalPodAutoscaler", "PodDisruptionBudget", "Service"];
    assert_eq!(kinds, expected.into());
    for needed in [
        "path: /livez",
        "path: /readyz",
        "preStop:",
        "readOnlyRootFilesystem: true",
        "name: rewheel_queue_wait_seconds",
    ] {
        assert!(said.contains(needed), "{needed} is missing:\n{said}");
    }
    // The generated name of the config is also in the deployment.
    let config = said.lines().find_map(|line| line.strip_prefix("  name: rewheel-")).unwrap();
    assert!(said.contains(&format!("          name: rewheel-{config}")), "{said}");
}

/// From the rules over the adapter to the autoscaler.
#[test]
fn the_metric_of_the_autoscaler_is_recorded_without_kinds_that_cannot_run() {
    let autoscaler = read("packaging/kubernetes/autoscaler.yaml");
    let adapter = read("packaging/kubernetes/prometheus-adapter.yaml");
    let rules = read("packaging/prometheus/rewheel.rules.yml");
    let series = "job:rewheel_queue_wait_seconds:max_runnable";
    assert!(rules.contains(&format!("- record: {series}\n")));
    assert!(adapter.contains(&format!("  - seriesQuery: '{series}'\n")));
    assert!(adapter.contains("      as: rewheel_queue_wait_seconds\n"));
    assert!(autoscaler.contains(&format!("`{series}`")));
    assert!(autoscaler.contains("          name: rewheel_queue_wait_seconds\n"));
    // The job of the scrape is a label of the pods.
    let monitor = read("packaging/kubernetes/pod-monitor.yaml");
    let kustomization = read("packaging/kubernetes/kustomization.yaml");
    assert!(autoscaler.contains("              job: rewheel\n"));
    assert!(monitor.contains("  jobLabel: app.kubernetes.io/name\n"));
    assert!(kustomization.contains("      app.kubernetes.io/name: rewheel\n"));
}

/// The server answers a scrape without a token with 401.
#[test]
fn pods_are_scraped_with_a_token() {
    let deployment = read("packaging/kubernetes/deployment.yaml");
    assert!(!deployment.contains("prometheus.io/"), "annotations cannot carry a token");
    assert!(deployment.contains("            - name: http\n              containerPort: 7420\n"));
    let monitor = read("packaging/kubernetes/pod-monitor.yaml");
    let endpoint = "    - port: http\n      path: /metrics\n      authorization:\n        credentials:\n          name: rewheel-metrics\n";
    assert!(monitor.contains(endpoint), "{monitor}");
    let kustomization = read("packaging/kubernetes/kustomization.yaml");
    let resources = kustomization.lines().filter_map(|line| line.strip_prefix("  - "));
    for file in resources.filter(|file| file.ends_with(".yaml")) {
        let group = read(format!("packaging/kubernetes/{file}"));
        assert!(!group.contains("monitoring.coreos.com"), "{file} needs the Prometheus Operator");
    }
}

#[test]
fn docker_accepts_the_compose_file_and_the_image() {
    let compose = "packaging/docker/compose.yaml";
    let env = [
        ("POSTGRES_PASSWORD", "secret"),
        ("REWHEEL_ADMIN_TOKEN", "0123456789abcdef0123456789abcdef"),
    ];
    if tool("docker", &["compose", "version"], &[]).is_some_and(|(is_ok, _)| is_ok) {
        let words = ["compose", "--file", compose, "config", "--quiet"];
        assert_accepted(tool("docker", &words, &env));
    } else {
        println!("not tested: there is no docker compose");
    }
    if tool("docker", &["buildx", "version"], &[]).is_some_and(|(is_ok, _)| is_ok) {
        let words = ["buildx", "build", "--check", "--file", "packaging/docker/Dockerfile", "."];
        if let Some((is_ok, text)) = tool("docker", &words, &[]) {
            let has_no_daemon = text.contains("Cannot connect to the Docker daemon");
            assert!(is_ok || has_no_daemon, "{text}");
        }
    } else {
        println!("not tested: there is no docker buildx");
    }
}

#[test]
fn the_files_that_compose_mounts_exist() {
    let compose = read("packaging/docker/compose.yaml");
    let folder = repository().path("packaging/docker");
    let mounts: Vec<&str> = compose
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- ."))
        .filter_map(|line| line.split_once(':'))
        .map(|(path, _)| path)
        .collect();
    assert_eq!(mounts.len(), 5, "{mounts:?}");
    for path in mounts {
        // The reader creates the token, as the first lines of the file say.
        let is_token = path == "/prometheus.token";
        assert!(is_token || folder.join(format!(".{path}")).exists(), ".{path} is missing");
    }
    assert!(compose.contains("> packaging/docker/prometheus.token"));
}

#[test]
fn prometheus_accepts_the_config_of_the_containers() {
    let folder = std::env::temp_dir().join(format!("rewheel-prometheus-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (from, to) in [
        ("packaging/docker/prometheus.yml", "prometheus.yml"),
        ("packaging/prometheus/rewheel.rules.yml", "rewheel.rules.yml"),
    ] {
        std::fs::copy(repository().path(from), folder.join(to)).unwrap();
    }
    std::fs::write(folder.join("rewheel.token"), "token").unwrap();
    let file = folder.join("prometheus.yml");
    let said = tool("promtool", &["check", "config", file.to_str().unwrap()], &[]);
    std::fs::remove_dir_all(&folder).unwrap();
    assert_accepted(said);
}

#[test]
fn the_image_runs_without_privileges_and_tells_its_health() {
    let image = read("packaging/docker/Dockerfile");
    let (_, last) = image.rsplit_once("\nFROM ").unwrap();
    for needed in [
        "\nUSER 10001:10001\n",
        "\nHEALTHCHECK ",
        "[\"rewheel\", \"ready\"]",
        "\nSTOPSIGNAL SIGTERM\n",
    ] {
        assert!(last.contains(needed), "{needed}");
    }
    assert!(
        image.contains("--profile dist --locked"),
        "the image has another build than a release"
    );
}

#[test]
fn the_workflows_run_what_the_repository_has() {
    assert!(read(".github/workflows/ci.yml").contains("- run: .ci/run\n"));
    assert!(read(".github/workflows/release.yml").contains("- run: cargo xtask dist\n"));
    let advisories = read(".github/workflows/advisories.yml");
    assert!(
        advisories.contains("schedule:\n") && advisories.contains("cargo deny check advisories")
    );
    for path in ["ci", "release", "advisories"] {
        let text = read(format!(".github/workflows/{path}.yml"));
        assert!(!text.contains('\t') && text.contains("\npermissions:\n"), "{path}");
        assert_accepted(tool("actionlint", &[&format!(".github/workflows/{path}.yml")], &[]));
    }
}
