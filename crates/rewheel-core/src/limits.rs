//! Every limit of the engine, with its reason.

use std::time::Duration;

/// The limits that hold for every store and every surface.
///
/// They are constants where a schema or a protocol depends on them. What an operator may want to
/// change is a setting with a default here.
#[derive(Clone, Copy, Debug)]
pub struct Limits;

impl Limits {
    /// Fits a label of every metrics system and a short column of every database.
    pub const KIND_BYTES_MAX: usize = 64;

    /// The longest text that MySQL indexes together with tenant and kind in its default row format.
    pub const KEY_BYTES_MAX: usize = 255;

    /// As long as a UUID or a domain name label, with room; part of every lane and key index.
    pub const TENANT_BYTES_MAX: usize = 128;

    /// A payload names work, it does not carry it: larger ones belong in object storage. Bounds a
    /// flush of [`Limits::BATCH_MAX`] jobs to what a server can hold in memory.
    pub const PAYLOAD_BYTES_MAX_DEFAULT: usize = 256 * 1024;

    /// A person reads the first lines; a stack trace that does not fit is cut.
    pub const MESSAGE_BYTES_MAX: usize = 4 * 1024;

    /// An SQLSTATE, an HTTP status, an errno name.
    pub const CODE_BYTES_MAX: usize = 64;

    /// One statement of so many rows is past the point where larger ones are faster, and short of
    /// where a database's parameter and packet limits begin.
    pub const BATCH_MAX: usize = 1_000;

    /// What one request may submit, and one insert may hold.
    pub const SUBMIT_MAX: usize = 10_000;

    /// Ten priorities: people do not tell more apart, and a claim visits each lane.
    pub const PRIORITY_MAX: u8 = 9;

    /// A job that crashes its process so often is taken to be the reason.
    pub const TAKEOVERS_MAX_DEFAULT: u32 = 3;

    /// Retries after up to this stay in the holder's wheel: a round trip through the store would
    /// be a noticeable part of the wait, and a holder that dies delays them by no more than that.
    pub const STICKY_MAX_DEFAULT: Duration = Duration::from_secs(10);

    /// Attempts of a job that does not say otherwise.
    pub const ATTEMPTS_MAX_DEFAULT: u32 = 8;

    /// How long one attempt may take unless the kind says otherwise.
    pub const ATTEMPT_TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

    /// How many attempts a submit may ask for unless the kind says otherwise: every hour for six weeks.
    pub const ATTEMPTS_CEILING_DEFAULT: u32 = 1_000;

    /// How long an attempt a submit may ask for unless the kind says otherwise: it occupies a slot for so long.
    pub const ATTEMPT_TIMEOUT_CEILING_DEFAULT: Duration = Duration::from_secs(3_600);

    /// How long a job waits at least between two attempts unless its kind says otherwise: with less, one job could keep a
    /// node and a dependency busy.
    pub const DELAY_FLOOR_DEFAULT: Duration = Duration::from_millis(10);

    /// How long a callee may make a job wait: longer is an outage, and for a person to judge.
    pub const RETRY_AFTER_MAX_DEFAULT: Duration = Duration::from_secs(3_600);

    /// How long ended jobs and their keys are kept unless the kind says otherwise: a week covers a
    /// long weekend and the question that is asked after it.
    pub const KEEP_DEFAULT: Duration = Duration::from_secs(7 * 24 * 3_600);

    /// The longest time that anything is asked to wait or may take. Sums of a few such durations, and any of them added to a time
    /// of this century, do not overflow; so every duration from outside is limited to this where it enters.
    pub const DURATION_MAX: Duration = Duration::from_secs(36_500 * 24 * 3_600);

    /// A name of a token or a command.
    pub const ACTOR_BYTES_MAX: usize = 128;

    /// What the audit log repeats of a failure's message: enough to know it by. The whole of it is with the job.
    pub const AUDIT_MESSAGE_BYTES_MAX: usize = 256;

    /// One page of a list, as in the wire's `limit`.
    pub const PAGE_MAX: usize = 1_000;

    /// Rows that one page looks at before it answers with what it found and a cursor: a filter that
    /// matches little must not hold a connection for as long as the table is large.
    pub const SCAN_MAX: usize = 50_000;

    /// Lanes that one claim visits. Each is an index range: this bounds what a claim costs.
    pub const LANES_MAX: usize = 64;

    /// The longest interval of a limit over the fleet. Rarer work is a schedule, not a rate.
    pub const FLEET_INTERVAL_MAX: Duration = Duration::from_secs(24 * 3_600);

    /// How long a store remembers the last start under a limit: longer than any interval, so that forgetting it allows nothing.
    pub const FLEET_STARTS_KEPT: Duration = Duration::from_secs(2 * 24 * 3_600);

    /// A kind's settings: some forty short fields, and a few URLs.
    pub const SETTINGS_BYTES_MAX: usize = 64 * 1024;

    /// Rules for a kind's failures: each failed attempt walks them, and a person must see through them.
    pub const ROUTES_MAX: usize = 64;

    /// A part of a message that a rule looks for: as long as a line that a person reads.
    pub const ROUTE_MESSAGE_BYTES_MAX: usize = 256;

    /// How many times as long a rule may make a wait: milliseconds become seconds.
    pub const BACKOFF_FACTOR_MAX: u32 = 1_000;

    /// The shortest time that a rule may put a job off. It uses up no attempt and leaves a record each
    /// time: with less of a wait one job would fill a table.
    pub const SNOOZE_MIN: Duration = Duration::from_millis(100);

    /// How long a rule may put a job off at a time: what waits longer is forgotten, and for a person.
    pub const SNOOZE_MAX: Duration = Duration::from_secs(30 * 24 * 3_600);

    /// Tokens of a store: a person has one, a service has one for each place it runs in. All of them
    /// are read at once.
    pub const TOKENS_MAX: usize = 10_000;

    /// How long a token is remembered that was revoked or has expired, for whoever asks what became of
    /// it.
    pub const ENDED_TOKENS_KEPT: Duration = Duration::from_secs(30 * 24 * 3_600);

    /// What a holder is called by people.
    pub const HOLDER_NAME_BYTES_MAX: usize = 128;

    /// How long the dead are remembered, so that a late message of theirs does not bring them back.
    pub const DEAD_HOLDERS_KEPT: Duration = Duration::from_secs(24 * 3_600);

    /// Records of a job's first failed attempts that a store keeps: they show how the trouble began.
    pub const ATTEMPTS_FIRST_KEPT: usize = 10;

    /// Records of a job's latest failed attempts that a store keeps: they show how it goes now. Those between the first and
    /// the last are dropped and counted, so that one job cannot fill a table.
    pub const ATTEMPTS_LAST_KEPT: usize = 90;

    /// Attempts that are listed with a job.
    pub const ATTEMPTS_LISTED_MAX: usize = Limits::ATTEMPTS_FIRST_KEPT + Limits::ATTEMPTS_LAST_KEPT;
}
