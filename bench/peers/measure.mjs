// Code shared by the programs that measure other queues: database setup, payloads, figures, the submitting process.
//
//   PEER.mjs URL JOBS PAYLOAD_BYTES SAMPLES          measures, one line of JSON for each figure
//   PEER.mjs submit URL SAMPLES PAYLOAD_BYTES        the other process, which only submits
import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";

export const BATCH = 1000;
// The first jobs of a process find cold caches; they are not measured.
const WARM_UP = 30;
// A job that has not started this long after the last one was submitted counts as missing.
const GIVE_UP_MS = 5000;

// The time since boot is the same in every process.
const micros = () => Number(process.hrtime.bigint() / 1000n);

function payload(bytes, nth) {
  const job = { at: micros(), nth, pad: "" };
  job.pad = "x".repeat(Math.max(0, bytes - JSON.stringify(job).length));
  return job;
}

// Runs `peer`, which has a `name` and
//   open(url): what the rest gets as `queue`     insert(queue, payloads): a batch
//   drain(queue, onJob): starts the worker       left(sql): how many jobs are not done
//   answer(queue, onJob): is idle, then answers  submit(queue, payload): one job
//   close(queue): stops the worker
export async function run(peer) {
  const [first, ...rest] = process.argv.slice(2);
  if (first === "submit") await submitSide(peer, rest[0], Number(rest[1]), Number(rest[2]));
  else await measure(peer, first, ...rest.map(Number));
  process.exit(0);
}

async function measure(peer, server, jobs, bytes, samples) {
  const name = `rewheel_bench_${peer.name}_${process.pid}`;
  const admin = new pg.Client({ connectionString: server });
  await admin.connect();
  await admin.query(`CREATE DATABASE ${name}`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  try {
    const queue = await peer.open(url.href);
    await rates(peer, queue, url.href, jobs, bytes);
    if (samples > 0) await latency(peer, queue, url.href, samples, bytes);
    await peer.close(queue);
  } finally {
    await admin.query(`DROP DATABASE ${name} WITH (FORCE)`);
  }
}

async function rates(peer, queue, url, jobs, bytes) {
  let started = performance.now();
  for (let done = 0; done < jobs; done += BATCH) {
    const batch = Array.from({ length: Math.min(BATCH, jobs - done) }, (_, nth) => payload(bytes, done + nth));
    await peer.insert(queue, batch);
  }
  tell({ bench: "submit", unit: "jobs/s", value: rate(jobs, started) });

  const sql = new pg.Client({ connectionString: url });
  await sql.connect();
  await sql.query("VACUUM ANALYZE");
  let done = 0;
  const all = Promise.withResolvers();
  started = performance.now();
  await peer.drain(queue, () => ++done === jobs && all.resolve());
  await all.promise;
  while ((await peer.left(sql)) > 0) await sleep(2);
  tell({ bench: "drain", unit: "jobs/s", value: rate(jobs, started) });
  await sql.end();
}

async function latency(peer, queue, url, samples, bytes) {
  const waits = [];
  let come = 0;
  const all = Promise.withResolvers();
  await peer.answer(queue, (job) => {
    if (job.nth >= WARM_UP) waits.push((micros() - job.at) / 1000);
    if (++come === WARM_UP + samples) all.resolve();
  });
  await sleep(1000);
  const other = spawn(process.execPath, [process.argv[1], "submit", url, samples, bytes], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  await once(other, "exit");
  await Promise.race([all.promise, sleep(GIVE_UP_MS)]);
  waits.sort((a, b) => a - b);
  const part = (p) => waits[Math.round((waits.length - 1) * p)] ?? null;
  tell({ bench: "latency", unit: "ms", p50: part(0.5), p99: part(0.99), missing: samples - waits.length });
}

async function submitSide(peer, url, samples, bytes) {
  const queue = await peer.open(url);
  for (let nth = 0; nth < WARM_UP + samples; nth++) {
    // An interval that does not align with a polling interval.
    await sleep(15 + ((nth * 7) % 21));
    await peer.submit(queue, payload(bytes, nth));
  }
}

const rate = (jobs, started) => jobs / ((performance.now() - started) / 1000);
const tell = (figure) => console.log(JSON.stringify(figure));
