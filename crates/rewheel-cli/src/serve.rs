//! Runs a server until it is told to stop.

use crate::args::Serve;
use crate::cli_error::CliError;
use crate::files;
use crate::local;
use crate::output::{Log, Output};
use crate::version;
use rewheel_server::telemetry::Telemetry;
use rewheel_server::{ServeOptions, ServerEvent, Show, StartMode};
use std::io::IsTerminal;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, Registry};

/// The default log filter, unless `RUST_LOG` is set: warnings and recoveries. The connection pool logs each lost connection; the engine
/// logs one line for all. Notices are included because the user configured them.
const LOG: &str = "warn,rewheel_engine::guard=info,rewheel_engine::heartbeat=info,\
                   rewheel_server::notify=info,rewheel_server::tls=info,rewheel_server::telemetry=info,deadpool=error";

pub(crate) async fn run(args: Serve, output: Output) -> Result<(), CliError> {
    let mut config = local::config(args.config.as_deref())?;
    if let Some(store) = args.store {
        config.store.url = store.expose().to_owned();
    }
    if let Some(listen) = args.listen {
        config.server.listen = listen;
    }
    let scheme = if config.server.tls.is_some() { "https" } else { "http" };
    let options = ServeOptions {
        show: if args.demo { Show::Demo } else { Show::Nothing },
        start: if args.paused { StartMode::Paused } else { StartMode::Running },
        build: version::BUILD,
    };
    let telemetry = Telemetry::start(&config.telemetry)?;
    log(telemetry.layer());
    files::make_room(&mut config.server.limits);
    let mut dashboard = String::new();
    let say = move |said: &ServerEvent| match said {
        ServerEvent::Ready(address) => {
            output.note(format_args!("listening on {scheme}://{address}"));
            dashboard = format!("dashboard: {scheme}://{address}/ui/");
        }
        ServerEvent::Showing(what) => {
            output.note(what);
            output.note(&dashboard);
        }
        ServerEvent::Stopping => output.note(
            "shutting down: waiting for running jobs; press Ctrl-C again to stop immediately",
        ),
        ServerEvent::Stopped(shutdown) => output.note(shutdown),
    };
    Ok(rewheel_server::serve(config, options, say).await?)
}

/// Logs to stderr: warnings, or what `RUST_LOG` selects. Spans go to telemetry.
pub(crate) fn log(telemetry: Option<Box<dyn Layer<Registry> + Send + Sync>>) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(LOG));
    let has_colours = std::io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(has_colours)
        .with_writer(move || Log { has_colours })
        .fmt_fields(rewheel_server::log_fields())
        // Otherwise a closed stderr would cause a panic in the code that logs.
        .log_internal_errors(false)
        .with_filter(filter);
    tracing_subscriber::registry().with(telemetry).with(lines).init();
}
