// Measures pg-boss; it keeps finished jobs.
import { PgBoss } from "pg-boss";
import { BATCH, run } from "./measure.mjs";

// Single jobs have their own queue: waking a worker for each job of a batch would slow the batch down.
const [MANY, SINGLE] = ["many", "single"];

await run({
  name: "pgboss",
  async open(url) {
    const boss = new PgBoss({ connectionString: url, max: 20, useListenNotify: true });
    boss.on("error", console.error);
    await boss.start();
    await boss.createQueue(MANY);
    await boss.createQueue(SINGLE, { notify: true });
    return boss;
  },
  insert: (boss, batch) => boss.insert(MANY, batch.map((data) => ({ data }))),
  drain: (boss, each) =>
    boss.work(
      MANY,
      { batchSize: BATCH, localConcurrency: 4, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true },
      async (jobs) => jobs.forEach((job) => each(job.data)),
    ),
  left: async (sql) =>
    (await sql.query("SELECT count(*)::int AS n FROM pgboss.job WHERE state < 'completed'")).rows[0].n,
  async answer(boss, each) {
    await boss.offWork(MANY);
    const options = { batchSize: 1, pollingIntervalSeconds: 0.5, notifyPollingIntervalSeconds: 2 };
    await boss.work(SINGLE, options, async ([job]) => each(job.data));
  },
  submit: (boss, payload) => boss.send(SINGLE, payload),
  close: (boss) => boss.stop({ graceful: false }),
});
