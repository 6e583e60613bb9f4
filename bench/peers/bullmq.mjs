// Measures BullMQ.
//
//   bullmq.mjs URL keep|drop JOBS PAYLOAD_BYTES SAMPLES   measures, one line of JSON for each figure
//   bullmq.mjs submit URL SAMPLES PAYLOAD_BYTES           the other process, which only submits
import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { Queue, Worker } from "bullmq";

const BATCH = 1000;
const NAME = "bench";
// The first jobs of a process find cold caches; they are not measured.
const WARM_UP = 30;
// A job that has not started this long after the last one was submitted counts as missing.
const GIVE_UP_MS = 5000;

// The time since boot is the same in every process.
const micros = () => Number(process.hrtime.bigint() / 1000n);
const rate = (jobs, started) => jobs / ((performance.now() - started) / 1000);
const tell = (figure) => console.log(JSON.stringify(figure));

function payload(bytes, nth) {
  const job = { at: micros(), nth, pad: "" };
  job.pad = "x".repeat(Math.max(0, bytes - JSON.stringify(job).length));
  return job;
}

function connection(address) {
  const url = new URL(address);
  const port = Number(url.port || 6379);
  return { host: url.hostname, port, db: Number(url.pathname.slice(1) || 0), maxRetriesPerRequest: null };
}

async function measure(url, keep, jobs, bytes, samples) {
  const queue = new Queue(NAME, { connection: connection(url) });
  let started = performance.now();
  for (let done = 0; done < jobs; done += BATCH) {
    const length = Math.min(BATCH, jobs - done);
    await queue.addBulk(Array.from({ length }, (_, nth) => ({ name: NAME, data: payload(bytes, done + nth) })));
  }
  tell({ bench: "submit", unit: "jobs/s", value: rate(jobs, started) });

  let done = 0;
  let onJob = () => {};
  const all = Promise.withResolvers();
  const settings = { connection: connection(url), concurrency: 100, removeOnComplete: keep === "keep" ? false : { count: 0 } };
  started = performance.now();
  const worker = new Worker(NAME, async (job) => void onJob(job.data), settings);
  // Told once its result is stored.
  worker.on("completed", () => ++done === jobs && all.resolve());
  await all.promise;
  tell({ bench: "drain", unit: "jobs/s", value: rate(jobs, started) });
  if (samples > 0) await latency(url, samples, bytes, (each) => (onJob = each));
  await worker.close();
  await queue.close();
}

async function latency(url, samples, bytes, answer) {
  const waits = [];
  let come = 0;
  const all = Promise.withResolvers();
  answer((job) => {
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

async function submitSide(url, samples, bytes) {
  const queue = new Queue(NAME, { connection: connection(url) });
  for (let nth = 0; nth < WARM_UP + samples; nth++) {
    // An interval that does not align with a polling interval.
    await sleep(15 + ((nth * 7) % 21));
    await queue.add(NAME, payload(bytes, nth));
  }
}

const [first, second, ...rest] = process.argv.slice(2);
if (first === "submit") await submitSide(second, ...rest.map(Number));
else await measure(first, second, ...rest.map(Number));
process.exit(0);
