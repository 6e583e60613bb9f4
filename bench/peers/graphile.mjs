// Measures graphile-worker; it deletes finished jobs.
import { Logger, makeWorkerUtils, run as work } from "graphile-worker";
import pg from "pg";
import { run } from "./measure.mjs";

const logger = new Logger(() => (level, message) => level === "error" && console.error(message));
let onJob, runner;

await run({
  name: "graphile",
  async open(url) {
    const pool = new pg.Pool({ connectionString: url, max: 20 });
    // Without these it prints warnings; the caller sees the error anyway.
    pool.on("error", () => {});
    pool.on("connect", (client) => client.on("error", () => {}));
    const utils = await makeWorkerUtils({ pgPool: pool, logger });
    await utils.migrate();
    return { pool, utils };
  },
  insert: ({ utils }, batch) => utils.addJobs(batch.map((payload) => ({ identifier: "bench", payload }))),
  async drain({ pool }, each) {
    onJob = each;
    const worker = {
      concurrentJobs: 100,
      maxPoolSize: 20,
      pollInterval: 2000,
      localQueue: { size: 2000 },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
    };
    const taskList = { bench: async (payload) => void onJob(payload) };
    runner = await work({ taskList, pgPool: pool, logger, noHandleSignals: true, preset: { worker } });
  },
  left: async (sql) => (await sql.query("SELECT count(*)::int AS n FROM graphile_worker._private_jobs")).rows[0].n,
  async answer(_, each) {
    onJob = each;
  },
  submit: ({ utils }, payload) => utils.addJob("bench", payload),
  async close({ pool }) {
    await runner.stop();
    await pool.end();
  },
});
