//! Raises the open-file limit so that it covers the configured number of connections.

use rewheel_server::config::LimitSettings;

/// Files that a server opens besides client connections: the store, callbacks, logs.
const OTHERS: usize = 512;

/// Raises the limit on open files of this process as far as needed and permitted; unused files cost nothing. If that is not enough, it
/// reduces the maximum number of connections.
#[cfg(unix)]
pub(crate) fn make_room(limits: &mut LimitSettings) {
    use rustix::process::{Resource, getrlimit, setrlimit};

    let mut files = getrlimit(Resource::Nofile);
    let wanted = limits.connections_max.saturating_add(OTHERS) as u64;
    if files.current.is_some_and(|current| current < wanted) {
        let before = files.current;
        files.current = Some(files.maximum.map_or(wanted, |most| most.min(wanted)));
        if setrlimit(Resource::Nofile, files).is_err() {
            files.current = before;
        }
    }
    let fits = files.current.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
    let (asked, connections_max) = (limits.connections_max, connections(fits));
    if connections_max < asked {
        limits.connections_max = connections_max;
        tracing::warn!(
            asked,
            connections_max,
            files = fits,
            "connections_max reduced: the limit on open files is too low; raise it with `ulimit -n`"
        );
    }
}

#[cfg(not(unix))]
pub(crate) fn make_room(_limits: &mut LimitSettings) {}

/// Returns how many connections fit. If the process may open only a few files, a quarter of them is reserved for other uses.
#[cfg(unix)]
fn connections(files: usize) -> usize {
    files.saturating_sub(OTHERS.min(files / 4)).max(1)
}

#[cfg(all(test, unix))]
mod tests {
    use super::connections;

    #[test]
    fn there_is_always_room_for_others() {
        assert_eq!(connections(20_000), 19_488);
        assert_eq!(connections(1_024), 768);
        assert_eq!(connections(4), 3);
        assert_eq!(connections(0), 1);
    }
}
