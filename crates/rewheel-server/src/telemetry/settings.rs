//! The telemetry settings.

use super::TelemetryError;
use rewheel::duration;
use rewheel_engine::Rate;
use serde::Deserialize;
use std::time::Duration;

/// The default rate: all traces of a server that is not busy. On a busy one it costs a few percent of CPU time.
const RATE: Rate = Rate::new(200, Duration::from_secs(1));

/// The protocol of the collector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// Protobuf over HTTP, by default at port 4318.
    #[default]
    Http,
    /// gRPC, by default at port 4317.
    Grpc,
}

/// The section `telemetry`. For settings that it omits, OpenTelemetry's standard variables apply.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetrySettings {
    /// The URL of the collector, such as `http://127.0.0.1:4318`; otherwise `OTEL_EXPORTER_OTLP_ENDPOINT`. Without either, nothing is
    /// sent.
    pub otlp: Option<String>,
    /// The protocol; otherwise `OTEL_EXPORTER_OTLP_PROTOCOL`.
    pub protocol: Option<Protocol>,
    /// Whether to send spans.
    pub traces: bool,
    /// Whether to send metrics.
    pub metrics: bool,
    /// The share of new traces that are sampled, 0 to 1. For a trace that a client started, the
    /// client decides whether it is sampled.
    pub sample: f64,
    /// Maximum rate of new traces; further ones are not sampled.
    pub rate: Rate,
    /// The interval of sending metrics.
    #[serde(with = "duration::serde")]
    pub interval: Duration,
    /// The service name; otherwise `OTEL_SERVICE_NAME`, otherwise `rewheel`.
    pub service_name: Option<String>,
}

impl Default for TelemetrySettings {
    fn default() -> TelemetrySettings {
        TelemetrySettings {
            otlp: None,
            protocol: None,
            traces: true,
            metrics: true,
            sample: 1.0,
            rate: RATE,
            interval: Duration::from_secs(15),
            service_name: None,
        }
    }
}

/// The resolved destination and settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// Without a trailing slash.
    pub(super) endpoint: String,
    pub(super) protocol: Protocol,
    pub(super) service_name: Option<String>,
}

impl TelemetrySettings {
    /// Checks the settings.
    ///
    /// # Errors
    /// Names the key, and what to do.
    pub fn check(&self) -> Result<(), TelemetryError> {
        let wrong = |key, why: &str| Err(TelemetryError::Setting { key, why: why.to_owned() });
        if !(0.0..=1.0).contains(&self.sample) {
            return wrong("sample", "must be 0 to 1");
        }
        if self.interval < Duration::from_secs(1) || self.interval > Duration::from_secs(3_600) {
            return wrong("interval", "must be 1s to 1h");
        }
        if let Some(otlp) = &self.otlp {
            check_endpoint(otlp, self.protocol.unwrap_or_default())?;
        }
        Ok(())
    }

    /// Returns the destination, if there is one. `variable` reads the environment.
    pub(super) fn target(
        &self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Target>, TelemetryError> {
        let variable = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let is_off =
            variable("OTEL_SDK_DISABLED").is_some_and(|is| is.eq_ignore_ascii_case("true"));
        let endpoint = self.otlp.clone().or_else(|| variable("OTEL_EXPORTER_OTLP_ENDPOINT"));
        let Some(endpoint) = endpoint.filter(|_| !is_off && (self.traces || self.metrics)) else {
            return Ok(None);
        };
        let protocol = match (self.protocol, variable("OTEL_EXPORTER_OTLP_PROTOCOL").as_deref()) {
            (Some(protocol), _) => protocol,
            (None, Some("grpc")) => Protocol::Grpc,
            (None, Some("http/protobuf") | None) => Protocol::Http,
            (None, Some(other)) => {
                let why = format!(
                    "OTEL_EXPORTER_OTLP_PROTOCOL is `{other}`: choose `http/protobuf` or `grpc`"
                );
                return Err(TelemetryError::Setting { key: "protocol", why });
            }
        };
        check_endpoint(&endpoint, protocol)?;
        let service_name = match (&self.service_name, variable("OTEL_SERVICE_NAME")) {
            (Some(name), _) => Some(name.clone()),
            // The SDK reads it together with OTEL_RESOURCE_ATTRIBUTES.
            (None, Some(_)) => None,
            (None, None) => Some("rewheel".to_owned()),
        };
        let endpoint = endpoint.trim_end_matches('/').to_owned();
        Ok(Some(Target { endpoint, protocol, service_name }))
    }
}

fn check_endpoint(endpoint: &str, protocol: Protocol) -> Result<(), TelemetryError> {
    let wrong = |why: &str| {
        // Do not quote the URL: it may contain a password.
        Err(TelemetryError::Setting { key: "otlp", why: why.to_owned() })
    };
    match url::Url::parse(endpoint) {
        Ok(url) if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() => {
            wrong("must be a URL such as http://127.0.0.1:4318")
        }
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            wrong("must not contain a password: use OTEL_EXPORTER_OTLP_HEADERS")
        }
        Ok(url) if url.scheme() == "https" && protocol == Protocol::Grpc => wrong(
            "must begin with http:// because gRPC is supported only without TLS: use http://, or set telemetry.protocol = \"http\"",
        ),
        Ok(_) => Ok(()),
        Err(_) => wrong("must be a URL such as http://127.0.0.1:4318"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Protocol, Target, TelemetrySettings};

    fn target(
        settings: &TelemetrySettings,
        env: &[(&str, &str)],
    ) -> Result<Option<Target>, String> {
        let read = |name: &str| {
            let found = env.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        settings.target(read).map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_is_sent_without_an_endpoint() {
        let off = TelemetrySettings::default();
        assert_eq!(target(&off, &[]), Ok(None));
        let on = TelemetrySettings { otlp: Some("http://c:4318/".to_owned()), ..off.clone() };
        assert!(target(&on, &[]).unwrap().is_some());
        assert_eq!(target(&on, &[("OTEL_SDK_DISABLED", "true")]), Ok(None));
        let nothing = TelemetrySettings { traces: false, metrics: false, ..on };
        assert_eq!(target(&nothing, &[]), Ok(None));
    }

    #[test]
    fn the_standard_variables_say_what_the_file_leaves_open() {
        let env = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4317"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_SERVICE_NAME", "payments"),
        ];
        let open = TelemetrySettings::default();
        let expected = Target {
            endpoint: "http://c:4317".to_owned(),
            protocol: Protocol::Grpc,
            service_name: None,
        };
        assert_eq!(target(&open, &env), Ok(Some(expected)));
        let said = TelemetrySettings {
            otlp: Some("https://other/".to_owned()),
            protocol: Some(Protocol::Http),
            service_name: Some("mine".to_owned()),
            ..open
        };
        let expected = Target {
            endpoint: "https://other".to_owned(),
            protocol: Protocol::Http,
            service_name: Some("mine".to_owned()),
        };
        assert_eq!(target(&said, &env), Ok(Some(expected)));
    }

    #[track_caller]
    fn wrong(settings: &TelemetrySettings, expected: &str) {
        let error = settings.check().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn what_cannot_work_is_an_error_that_names_the_key() {
        let good = TelemetrySettings::default();
        let to = |url: &str| TelemetrySettings { otlp: Some(url.to_owned()), ..good.clone() };
        wrong(&to("127.0.0.1:4318"), "telemetry.otlp: must be a URL such as");
        wrong(&to("ftp://c"), "telemetry.otlp");
        wrong(&to("http://a:b@c"), "OTEL_EXPORTER_OTLP_HEADERS");
        wrong(
            &TelemetrySettings { protocol: Some(Protocol::Grpc), ..to("https://c") },
            "protocol = \"http\"",
        );
        wrong(
            &TelemetrySettings { sample: 1.5, ..good.clone() },
            "telemetry.sample: must be 0 to 1",
        );
        wrong(&TelemetrySettings { sample: f64::NAN, ..good.clone() }, "telemetry.sample");
        let interval = std::time::Duration::ZERO;
        wrong(&TelemetrySettings { interval, ..good.clone() }, "telemetry.interval");
        let env = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
        ];
        assert!(target(&good, &env).unwrap_err().contains("choose `http/protobuf` or `grpc`"));
    }
}
