//! Tests the section `telemetry`.

use super::{check, load};
use std::time::Duration;

#[test]
fn telemetry_is_off_unless_set() {
    assert_eq!(load("", &[]).unwrap().telemetry.otlp, None);
    let said =
        "[telemetry]\notlp = \"http://127.0.0.1:4317\"\nprotocol = \"grpc\"\ninterval = \"5s\"";
    let telemetry = load(said, &[("REWHEEL__TELEMETRY__SAMPLE", "0.25")]).unwrap().telemetry;
    assert_eq!(telemetry.otlp.as_deref(), Some("http://127.0.0.1:4317"));
    assert_eq!((telemetry.sample, telemetry.interval), (0.25, Duration::from_secs(5)));
}

#[test]
fn what_cannot_work_is_named_with_its_place() {
    let sample = "[telemetry]\nsample = 2.0";
    check(sample, &[], "rewheel.toml:2: telemetry.sample: must be 0 to 1");
    let otlp = "[telemetry]\notlp = \"localhost\"";
    check(otlp, &[], "rewheel.toml:2: telemetry.otlp: must be a URL such as http://127.0.0.1:4318");
    let unknown = "[telemetry]\nendpoint = \"x\"";
    check(unknown, &[], "rewheel.toml:2: telemetry.endpoint: unknown key `endpoint`");
    let protocol = "[telemetry]\nprotocol = \"pigeon\"";
    check(protocol, &[], "rewheel.toml:2: telemetry.protocol: unknown variant `pigeon`");
    let env = [("REWHEEL__TELEMETRY__INTERVAL", "0s")];
    check("", &env, "REWHEEL__TELEMETRY__INTERVAL: telemetry.interval: must be 1s to 1h");
}
