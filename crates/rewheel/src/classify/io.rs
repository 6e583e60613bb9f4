//! Classifies I/O errors by their kind.

use super::matcher::{chain, find};
use super::{Category, Class, Classify};
use std::io::{self, ErrorKind};

/// Classifies by the error's [`kind`](io::Error::kind).
///
/// | kind | verdict | category |
/// |---|---|---|
/// | `TimedOut` | retry | `timeout` |
/// | connection and network errors; resources that are busy, interrupted or out of memory | retry | `io` |
/// | errors of the request or the setup (`NotFound`, `PermissionDenied`, `InvalidData`, `StorageFull`, …) | stop | `io` |
/// | any other, such as a failed name lookup | retry | `io` |
///
/// The code is the kind in lower case: `connection_refused`. An error created by [`io::Error::other`] is classified by the
/// `io::Error` inside it, if there is one.
///
/// ```
/// use rewheel::{Category, Class, Classify};
/// use std::io::{Error, ErrorKind};
///
/// let refused = Class::retry(Category::Io).with_code("connection_refused");
/// assert_eq!(Error::from(ErrorKind::ConnectionRefused).classify(), refused);
/// assert_eq!(Error::other(Error::from(ErrorKind::ConnectionRefused)).classify(), refused);
/// ```
impl Classify for io::Error {
    fn classify(&self) -> Class {
        let kind = telling_kind(self);
        match KINDS.iter().find(|(known, _, _)| *known == kind) {
            Some((_, class, code)) => class.clone().with_code(*code),
            // Name lookup, exhausted file descriptors and kinds that a later Rust version adds: an unknown failure is no reason
            // to give up.
            None => PASSES,
        }
    }
}

/// Returns the kind of the first error of the chain whose kind is not `Other`.
fn telling_kind(error: &io::Error) -> ErrorKind {
    chain(error)
        .filter_map(find::<io::Error>)
        .map(io::Error::kind)
        .find(|kind| *kind != ErrorKind::Other)
        .unwrap_or(ErrorKind::Other)
}

const TIMEOUT: Class = Class::retry(Category::Timeout);
const PASSES: Class = Class::retry(Category::Io);
const STAYS: Class = Class::stop(Category::Io);

/// Every kind that has a name on stable Rust.
pub(super) const KINDS: &[(ErrorKind, Class, &str)] = &[
    (ErrorKind::TimedOut, TIMEOUT, "timed_out"),
    // Errors of the other end or the network. A new connection may work.
    (ErrorKind::ConnectionRefused, PASSES, "connection_refused"),
    (ErrorKind::ConnectionReset, PASSES, "connection_reset"),
    (ErrorKind::ConnectionAborted, PASSES, "connection_aborted"),
    (ErrorKind::NotConnected, PASSES, "not_connected"),
    (ErrorKind::BrokenPipe, PASSES, "broken_pipe"),
    (ErrorKind::UnexpectedEof, PASSES, "unexpected_eof"),
    (ErrorKind::WriteZero, PASSES, "write_zero"),
    (ErrorKind::HostUnreachable, PASSES, "host_unreachable"),
    (ErrorKind::NetworkUnreachable, PASSES, "network_unreachable"),
    (ErrorKind::NetworkDown, PASSES, "network_down"),
    (ErrorKind::StaleNetworkFileHandle, PASSES, "stale_network_file_handle"),
    // A resource that its owner will release: a port of the process that is being replaced, ephemeral ports after a burst, a file
    // that is being written, memory.
    (ErrorKind::AddrInUse, PASSES, "addr_in_use"),
    (ErrorKind::AddrNotAvailable, PASSES, "addr_not_available"),
    (ErrorKind::ResourceBusy, PASSES, "resource_busy"),
    (ErrorKind::ExecutableFileBusy, PASSES, "executable_file_busy"),
    (ErrorKind::Deadlock, PASSES, "deadlock"),
    (ErrorKind::OutOfMemory, PASSES, "out_of_memory"),
    (ErrorKind::WouldBlock, PASSES, "would_block"),
    (ErrorKind::Interrupted, PASSES, "interrupted"),
    // A custom error: nothing is known about it.
    (ErrorKind::Other, PASSES, "other"),
    // Needs more space. Until then each further attempt writes to a full disk.
    (ErrorKind::StorageFull, STAYS, "storage_full"),
    (ErrorKind::QuotaExceeded, STAYS, "quota_exceeded"),
    // Needs a change of the setup.
    (ErrorKind::NotFound, STAYS, "not_found"),
    (ErrorKind::PermissionDenied, STAYS, "permission_denied"),
    (ErrorKind::AlreadyExists, STAYS, "already_exists"),
    (ErrorKind::ReadOnlyFilesystem, STAYS, "read_only_filesystem"),
    (ErrorKind::NotADirectory, STAYS, "not_a_directory"),
    (ErrorKind::IsADirectory, STAYS, "is_a_directory"),
    (ErrorKind::DirectoryNotEmpty, STAYS, "directory_not_empty"),
    (ErrorKind::CrossesDevices, STAYS, "crosses_devices"),
    // The same request is wrong every time. TLS also reports a certificate that it does not accept as `InvalidData`.
    (ErrorKind::InvalidInput, STAYS, "invalid_input"),
    (ErrorKind::InvalidData, STAYS, "invalid_data"),
    (ErrorKind::InvalidFilename, STAYS, "invalid_filename"),
    (ErrorKind::ArgumentListTooLong, STAYS, "argument_list_too_long"),
    (ErrorKind::FileTooLarge, STAYS, "file_too_large"),
    (ErrorKind::TooManyLinks, STAYS, "too_many_links"),
    (ErrorKind::NotSeekable, STAYS, "not_seekable"),
    (ErrorKind::Unsupported, STAYS, "unsupported"),
];
