//! Lists and counts jobs, and reads the books.

use super::super::error::unreadable;
use super::super::pack::Args;
use super::super::reply::Reply;
use super::super::script::{BOOKS, KEYED, LIST};
use super::super::values::{Values, With, scope};
use super::super::{RedisStore, SCRIPT_JOBS_MAX};
use super::rows::{readable, values};
use crate::pages::cut;
use crate::patience::Patience;
use crate::tables::{KEY_LANES_MAX, Reading, Table, tables, too_many_lanes};
use redis::{Cmd, cmd};
use rewheel_core::store::{
    Books, Count, FailureScan, Failures, Filter, Page, PageRequest, StoreResult,
};
use rewheel_core::{FailedJob, Job, JobId, Key, Limits};
use std::collections::BTreeSet;

/// A row of a list: the job, unless its values cannot be read.
type Row = (JobId, Option<Job>);

/// Pairs of kind and tenant that one command reads.
const SCOPES_READ: usize = 500;

const fn name(table: Table) -> &'static str {
    match table {
        Table::Live => "live",
        Table::Dead => "dead",
        Table::Finished => "done",
    }
}

impl RedisStore {
    /// Runs a command that only reads.
    pub(super) async fn ask(&self, command: &Cmd) -> StoreResult<Reply> {
        use super::super::error::Stage;
        use super::super::script::Effect;
        self.shared.connections.command(command, Stage::Sent(Effect::Reads)).await.map(Reply)
    }

    pub(in super::super) async fn list(
        &self,
        filter: &Filter,
        page: &PageRequest,
    ) -> StoreResult<Page<Job>> {
        let limit = page.limit.clamp(1, Limits::PAGE_MAX);
        if let Some(key) = &filter.key {
            let mut found = self.keyed(filter, key).await?;
            found.retain(|job| page.cursor.is_none_or(|cursor| job.id < cursor.job()));
            return Ok(cut(found, None, limit));
        }
        let (mut found, mut read_to) = (Vec::new(), None);
        let patience = Patience::new(page);
        for index in self.indexes(filter) {
            let mut reading = Reading::new(limit, page, &patience);
            let mut before = page.cursor.map(|cursor| cursor.job());
            'rows: loop {
                let rows = self.index_rows(&index, before, SCRIPT_JOBS_MAX).await?;
                let is_last = rows.len() < SCRIPT_JOBS_MAX;
                before = rows.last().map(|(id, _)| *id);
                for (id, job) in rows {
                    if !reading.goes_on(id) {
                        break 'rows;
                    }
                    if let Some(job) = job.filter(|job| filter.matches(job)) {
                        reading.matched += 1;
                        found.push(job);
                    }
                }
                if is_last {
                    break;
                }
            }
            read_to = read_to.max(reading.read_to);
        }
        Ok(cut(found, read_to, limit))
    }

    /// The indexes that a filter needs to look into.
    fn indexes(&self, filter: &Filter) -> Vec<Vec<u8>> {
        match filter.parent {
            Some(parent) => vec![[b"ch:".as_slice(), &parent.to_bytes()].concat()],
            None => {
                tables(filter).into_iter().map(|table| name(table).as_bytes().to_vec()).collect()
            }
        }
    }

    /// Reads the next rows of an index, the newest first.
    async fn index_rows(
        &self,
        index: &[u8],
        before: Option<JobId>,
        most: usize,
    ) -> StoreResult<Vec<Row>> {
        let before = before.map(JobId::to_bytes);
        let args = Args::default().bytes(index);
        let args = args.maybe_bytes(before.as_ref().map(<[u8; 16]>::as_slice)).count(most);
        let [jobs, bodies, changed, leases] = self.read(&LIST, args).await?.parts()?;
        let jobs: Vec<JobId> =
            jobs.list()?.into_iter().map(Reply::job).collect::<StoreResult<_>>()?;
        let rows = values(bodies, changed, leases, None)?;
        let row = |(id, row): (JobId, Option<Values>)| {
            (id, row.and_then(|row| readable(id, row.job(id, With::NoPayload))))
        };
        Ok(jobs.into_iter().zip(rows).map(row).collect())
    }

    /// Finds the jobs that a key belongs to: one lookup for each kind and tenant that has keys.
    async fn keyed(&self, filter: &Filter, key: &Key) -> StoreResult<Vec<Job>> {
        let scopes: BTreeSet<Vec<u8>> = match (&filter.tenant, filter.kinds.is_empty()) {
            (Some(tenant), false) => {
                let scopes = filter.kinds.iter().map(|kind| scope(kind, Some(tenant), b""));
                scopes.collect()
            }
            _ => self.scopes(filter).await?,
        };
        if scopes.len() > KEY_LANES_MAX {
            return Err(too_many_lanes());
        }
        let scopes: Vec<Vec<u8>> = scopes.into_iter().collect();
        let mut jobs = Vec::new();
        for part in scopes.chunks(SCRIPT_JOBS_MAX) {
            let args = Args::default().list(Args::texts(part)).bytes(key.as_str().as_bytes());
            for job in self.read(&KEYED, args).await?.list()? {
                jobs.push(job.job()?);
            }
        }
        let mut found = self.find(&jobs).await?;
        found.retain(|job| filter.matches(job));
        Ok(found)
    }

    /// Reads the pairs of kind and tenant that have keys and match a filter, a part at a time. Stops when there are too many.
    async fn scopes(&self, filter: &Filter) -> StoreResult<BTreeSet<Vec<u8>>> {
        let (mut scopes, mut from) = (BTreeSet::new(), b"0".to_vec());
        loop {
            let mut command = cmd("HSCAN");
            command.arg(format!("{}scopes", self.shared.prefix)).arg(&from);
            command.arg("COUNT").arg(SCOPES_READ);
            let [next, found] = self.ask(&command).await?.parts()?;
            // Names and their counters in turn.
            for name in found.list()?.into_iter().step_by(2) {
                let name = name.text()?;
                let (kind, tenant) =
                    name.split_once('\0').ok_or_else(|| unreadable("the scope of a key"))?;
                let is_kind =
                    filter.kinds.is_empty() || filter.kinds.iter().any(|one| one.as_str() == kind);
                if is_kind && filter.tenant.as_ref().is_none_or(|wanted| wanted.as_str() == tenant)
                {
                    scopes.insert(name.into_bytes());
                }
            }
            from = next.must()?;
            if from == b"0" || scopes.len() > KEY_LANES_MAX {
                return Ok(scopes);
            }
        }
    }

    pub(in super::super) async fn count(
        &self,
        filter: &Filter,
        scan_max: usize,
    ) -> StoreResult<Count> {
        if let Some(key) = &filter.key {
            return Ok(Count::Exactly(self.keyed(filter, key).await?.len() as u64));
        }
        let (mut left, mut found) = (scan_max, 0);
        for index in self.indexes(filter) {
            let mut before = None;
            loop {
                // One more than may be scanned tells whether there are more.
                let most = SCRIPT_JOBS_MAX.min(left.saturating_add(1));
                let rows = self.index_rows(&index, before, most).await?;
                let read = rows.len();
                before = rows.last().map(|(id, _)| *id);
                let scanned = rows.into_iter().take(left).filter_map(|(_, job)| job);
                found += scanned.filter(|job| filter.matches(job)).count() as u64;
                if read > left {
                    return Ok(Count::AtLeast(found));
                }
                left -= read;
                if read < most {
                    break;
                }
            }
        }
        Ok(Count::Exactly(found))
    }

    pub(in super::super) async fn failures(&self, scan: &FailureScan) -> StoreResult<Failures> {
        let mut failures = Failures { jobs: Vec::new(), complete: true };
        for table in [Table::Dead, Table::Live] {
            // Dead letters are all looked at; of the live jobs only those that failed.
            let index = match table {
                Table::Dead => b"dead".as_slice(),
                Table::Live | Table::Finished => b"failing",
            };
            let (mut rows_seen, mut bytes, mut before) = (0, 0, None);
            'rows: loop {
                let rows = self.index_rows(index, before, SCRIPT_JOBS_MAX).await?;
                let is_last = rows.len() < SCRIPT_JOBS_MAX;
                before = rows.last().map(|(id, _)| *id);
                for (_, job) in rows {
                    let Some(job) = job else { continue };
                    if table == Table::Live && !job.state().is_live() {
                        continue;
                    }
                    if rows_seen >= scan.rows_max || bytes >= scan.bytes_max {
                        failures.complete = false;
                        break 'rows;
                    }
                    rows_seen += 1;
                    let failed = FailedJob::of(&job).filter(|_| scan.wants(&job.lane));
                    bytes += failed.as_ref().map_or(0, |job| job.failure.message().len());
                    failures.jobs.extend(failed);
                }
                if is_last {
                    break;
                }
            }
        }
        Ok(failures)
    }

    pub(in super::super) async fn books(&self) -> StoreResult<Books> {
        let [ledger, live, dead, finished] = self.read(&BOOKS, Args::default()).await?.parts()?;
        let (live, dead, finished) = (live.count()?, dead.count()?, finished.count()?);
        let mut books = Books { live, dead, finished, ..Books::default() };
        for line in ledger.list()? {
            let line = line.text()?;
            let parts = line.split_once(':').and_then(|(submitted, pruned)| {
                Some((submitted.parse::<u64>().ok()?, pruned.parse::<u64>().ok()?))
            });
            let (submitted, pruned) = parts.ok_or_else(|| unreadable("a line of the ledger"))?;
            books.submitted += submitted;
            books.pruned += pruned;
        }
        Ok(books)
    }
}
