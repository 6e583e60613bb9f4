//! All limits of the engine, with the reason for each.

use std::time::Duration;

/// Limits that apply to every store and every interface.
///
/// A limit is a constant if a schema or a protocol depends on it. A value that an operator may want to change is a setting;
/// its default is here.
#[derive(Clone, Copy, Debug)]
pub struct Limits;

impl Limits {
    /// Fits a label of every metrics system and a short column of every database.
    pub const KIND_BYTES_MAX: usize = 64;

    /// The longest text that MySQL indexes together with tenant and kind in its default row format.
    pub const KEY_BYTES_MAX: usize = 255;

    /// Long enough for a UUID or a domain name label. The tenant is part of every index of lanes and keys, so it must be short.
    pub const TENANT_BYTES_MAX: usize = 128;

    /// Store large data in object storage, and put a reference to it into the payload. With this limit, a batch
    /// of [`Limits::BATCH_MAX`] jobs fits into the memory of a server.
    pub const PAYLOAD_BYTES_MAX_DEFAULT: usize = 256 * 1024;

    /// An operator reads the first lines; a longer stack trace is cut.
    pub const MESSAGE_BYTES_MAX: usize = 4 * 1024;

    /// An SQLSTATE, an HTTP status, an errno name.
    pub const CODE_BYTES_MAX: usize = 64;

    /// Larger statements are not faster, and this size is below the parameter and packet limits of databases.
    pub const BATCH_MAX: usize = 1_000;

    /// Maximum number of jobs in one submit request, and in one insert into the store.
    pub const SUBMIT_MAX: usize = 10_000;

    /// Maximum number of jobs that one settle may submit. To submit more jobs, submit one job that submits the others.
    pub const FOLLOW_UPS_MAX: usize = 16;

    /// Maximum size of the payloads of all jobs that one settle submits. These payloads stay in memory until the settle, for every running attempt.
    pub const FOLLOW_UPS_BYTES_MAX: usize = 256 * 1024;

    /// Largest result of a job that is kept, unless the engine sets its own limit: a receipt or a summary. Larger data belongs in
    /// object storage, and its address into the result.
    pub const RESULT_BYTES_MAX_DEFAULT: usize = 64 * 1024;

    /// The largest limit that an engine may set: a settle holds as many results as there are slots.
    pub const RESULT_BYTES_CEILING: usize = 1024 * 1024;

    /// A media type with a few parameters.
    pub const CONTENT_TYPE_BYTES_MAX: usize = 255;

    /// One readable line.
    pub const DROP_REASON_BYTES_MAX: usize = 256;

    /// How long a store remembers that a result existed, after it was deleted with its job.
    pub const RESULTS_REMEMBERED: Duration = Duration::from_secs(7 * 24 * 3_600);

    /// Ten priorities: users do not need more, and a claim visits each lane.
    pub const PRIORITY_MAX: u8 = 9;

    /// If this many processes die while they run a job, the job is considered the cause.
    pub const TAKEOVERS_MAX_DEFAULT: u32 = 3;

    /// A retry with at most this delay stays in the memory of its holder. For a short delay, writing the job to the store and
    /// claiming it again would take a noticeable part of the delay.
    pub const STICKY_MAX_DEFAULT: Duration = Duration::from_secs(10);

    /// Maximum attempts of a job that does not set its own.
    pub const ATTEMPTS_MAX_DEFAULT: u32 = 8;

    /// Timeout of one attempt, unless the kind sets its own.
    pub const ATTEMPT_TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

    /// Maximum attempts that a submit may ask for, unless the kind sets its own: one per hour for six weeks.
    pub const ATTEMPTS_CEILING_DEFAULT: u32 = 1_000;

    /// Longest attempt timeout that a submit may ask for, unless the kind sets its own: the attempt occupies a slot for this
    /// long.
    pub const ATTEMPT_TIMEOUT_CEILING_DEFAULT: Duration = Duration::from_secs(3_600);

    /// Minimum delay between two attempts of a job, unless its kind sets its own: with less, one job could keep a node and a
    /// dependency busy.
    pub const DELAY_FLOOR_DEFAULT: Duration = Duration::from_millis(10);

    /// Longest delay that a called service may ask for: a longer delay means an outage, and an operator should decide.
    pub const RETRY_AFTER_MAX_DEFAULT: Duration = Duration::from_secs(3_600);

    /// Retention of ended jobs and their keys, unless the kind sets its own: a week covers a long weekend and the questions after
    /// it.
    pub const KEEP_DEFAULT: Duration = Duration::from_secs(7 * 24 * 3_600);

    /// The longest delay or duration in the engine. Sums of a few such durations, added to a time of this century, do not
    /// overflow; so every duration in a request or a config is limited to this value.
    pub const DURATION_MAX: Duration = Duration::from_secs(36_500 * 24 * 3_600);

    /// The name of a token or a command.
    pub const ACTOR_BYTES_MAX: usize = 128;

    /// The part of a failure's message that the audit log repeats: enough to recognize the failure. The job contains the whole message.
    pub const AUDIT_MESSAGE_BYTES_MAX: usize = 256;

    /// One page of a list, as in the `limit` parameter of the API.
    pub const PAGE_MAX: usize = 1_000;

    /// Rows that one page scans before it returns the matches so far and a cursor: a filter with few matches must not occupy
    /// a connection while the whole table is read.
    pub const SCAN_MAX: usize = 50_000;

    /// Lanes that one claim visits. Each is an index range, so this limits the cost of a claim.
    pub const LANES_MAX: usize = 64;

    /// The longest interval of a fleet-wide limit. Less frequent work is a schedule, not a rate.
    pub const FLEET_INTERVAL_MAX: Duration = Duration::from_secs(24 * 3_600);

    /// How long a store remembers the last start under a limit: longer than any interval, so that a deleted record never allows
    /// an additional start.
    pub const FLEET_STARTS_KEPT: Duration = Duration::from_secs(2 * 24 * 3_600);

    /// Settings of a kind: about forty short fields and a few URLs.
    pub const SETTINGS_BYTES_MAX: usize = 64 * 1024;

    /// Failure rules of a kind: every failed attempt is matched against them, and an operator must be able to understand them.
    pub const ROUTES_MAX: usize = 64;

    /// The part of a message that a rule matches: as long as one readable line.
    pub const ROUTE_MESSAGE_BYTES_MAX: usize = 256;

    /// Maximum backoff factor of a rule: turns milliseconds into seconds.
    pub const BACKOFF_FACTOR_MAX: u32 = 1_000;

    /// The shortest snooze of a rule. A snooze uses no attempt and leaves a record each time: with a shorter delay, one job could
    /// fill a table.
    pub const SNOOZE_MIN: Duration = Duration::from_millis(100);

    /// The longest snooze of a rule: people probably forget a job that waits longer, so an operator must handle it.
    pub const SNOOZE_MAX: Duration = Duration::from_secs(30 * 24 * 3_600);

    /// Maximum number of tokens of a store: enough for one per user and one per deployment of a service. A server reads all tokens at once.
    pub const TOKENS_MAX: usize = 10_000;

    /// Retention of revoked and expired tokens, so that users can see what happened to them.
    pub const ENDED_TOKENS_KEPT: Duration = Duration::from_secs(30 * 24 * 3_600);

    /// Tokens that are valid for this time or shorter are for a program or a visit, such as a session of the dashboard. There may be many.
    pub const SHORT_TOKEN: Duration = Duration::from_secs(24 * 3_600);

    /// Retention of [short](Limits::SHORT_TOKEN) tokens that ended.
    pub const SHORT_TOKENS_KEPT: Duration = Duration::from_secs(24 * 3_600);

    /// The display name of a holder.
    pub const HOLDER_NAME_BYTES_MAX: usize = 128;

    /// Retention of dead holders, so that a late message does not make them live again.
    pub const DEAD_HOLDERS_KEPT: Duration = Duration::from_secs(24 * 3_600);

    /// Number of a job's first failed attempts that a store keeps: they show how the problem began.
    pub const ATTEMPTS_FIRST_KEPT: usize = 10;

    /// Number of a job's latest failed attempts that a store keeps: they show the current problem. The attempts between the
    /// first and the latest ones are deleted and only counted, so that one job cannot fill a table.
    pub const ATTEMPTS_LAST_KEPT: usize = 90;

    /// Number of attempts listed with a job.
    pub const ATTEMPTS_LISTED_MAX: usize = Limits::ATTEMPTS_FIRST_KEPT + Limits::ATTEMPTS_LAST_KEPT;
}
