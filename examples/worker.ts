// A Rewheel worker without dependencies (Node 22 or newer runs it directly):
//
//     node --experimental-strip-types examples/worker.ts http://127.0.0.1:7420 parcel
//
// Change `handle` to your own work. The kind needs `runner = "worker"`. Run as many of these as you like, against any server of the
// fleet. When one dies, its jobs go to the others once its lease has expired.

type Job = {
  id: string; kind: string; payload: any; key: string | null; tenant: string | null;
  attempt: number; fence: number; deadline: string | null; attempt_timeout: string; traceparent: string | null;
};
type Result = { verdict: string; after?: string; category?: string; code?: string; message?: string };

/** The attempt failed. `verdict` says what follows: `retry` (after a delay, if one is given) or `stop`. */
class Failed extends Error {
  result: Result;
  constructor(result: Result) {
    super(result.message);
    this.result = result;
  }
}

/** Does the work of one job. `signal` is aborted when an operator stops it: pass it to `fetch`. */
async function handle(job: Job, signal: AbortSignal): Promise<void> {
  if (job.payload.fail === "always") {
    throw new Failed({ verdict: "stop", category: "rejected", code: "no_such_order", message: "this order cannot be sent" });
  }
  if (job.payload.fail === "once" && job.attempt === 1) {
    throw new Failed({ verdict: "retry", after: "100ms", category: "transient", code: "busy", message: "the depot is busy" });
  }
  console.log(`sent order ${job.payload.order}, attempt ${job.attempt}`);
}

/** The server declared this worker dead: other workers take over all its jobs. */
class Expired extends Error {
  holder: string | null;
  constructor(holder: string | null) {
    super("expired");
    this.holder = holder;
  }
}

const rest = (millis: number) => new Promise((done) => setTimeout(done, millis));

class JobWorker {
  server: string;
  kinds: string[];
  places: number;
  holder: string | null = null;
  leaseMillis = 10_000;
  running = new Map<string, { id: string; stop: AbortController }>(); // by id and fence
  results: { holder: string; result: object }[] = [];
  stopping = false;

  constructor(server: string, kinds: string[], places = 8) {
    this.server = server.replace(/\/$/, "");
    this.kinds = kinds;
    this.places = places;
  }

  async run(): Promise<void> {
    const heart = this.beat();
    const settling = this.settle();
    let failures = 0;
    while (!this.stopping) {
      const room = this.places - this.running.size;
      if (room === 0) {
        await rest(20);
        continue;
      }
      try {
        await this.claim(room);
        failures = 0;
      } catch (error) {
        if (error instanceof Expired) {
          this.drop(error.holder);
          continue;
        }
        const wait = Math.random() * Math.min(30_000, 200 * 2 ** ++failures);
        console.error(`the server is away (${error}); asking again in ${Math.round(wait)}ms`);
        await rest(wait);
      }
    }
    await settling;
    await heart;
    // Deregisters this worker. If that fails, its lease expires by itself.
    if (this.holder !== null) await this.post("leave", { holder: this.holder }).catch(() => {});
  }

  async claim(room: number): Promise<void> {
    const { holder, kinds } = this;
    const answer = await this.post("claim", { holder, name: "worker.ts", kinds, max: room, wait: "5s" });
    this.holder = answer.holder;
    this.leaseMillis = millis(answer.lease_ttl);
    for (const job of answer.jobs as Job[]) {
      const stop = new AbortController();
      this.running.set(`${job.id} ${job.fence}`, { id: job.id, stop });
      void this.work(answer.holder, job, stop.signal);
    }
  }

  async work(holder: string, job: Job, signal: AbortSignal): Promise<void> {
    const began = performance.now();
    let result: Result = { verdict: "done" };
    try {
      await handle(job, signal);
    } catch (error) {
      // Every error must become a result of the job.
      result = error instanceof Failed ? error.result : { verdict: "retry", category: "panic", message: String(error) };
    }
    const duration = `${Math.round(performance.now() - began)}ms`;
    this.results.push({ holder, result: { id: job.id, fence: job.fence, duration, ...result } });
  }

  /** Sends results, many at a time, until the server has them. */
  async settle(): Promise<void> {
    while (!this.stopping || this.running.size > 0) {
      const batch = this.results.splice(0, 500);
      if (batch.length === 0) {
        await rest(10);
        continue;
      }
      for (const holder of new Set(batch.map((one) => one.holder))) {
        const results: any[] = batch.filter((one) => one.holder === holder).map((one) => one.result);
        for (;;) {
          try {
            await this.post("settle", { holder, results });
            break;
          } catch (error) {
            if (error instanceof Expired) break;
            await rest(1_000);
          }
        }
        results.forEach((result) => this.running.delete(`${result.id} ${result.fence}`));
      }
    }
  }

  /** Sends one heartbeat for all jobs of this worker, three times per lease. */
  async beat(): Promise<void> {
    let last = performance.now();
    while (!this.stopping || this.running.size > 0) {
      await rest(20);
      if (performance.now() - last < this.leaseMillis / 3 || this.holder === null) continue;
      last = performance.now();
      try {
        const jobs = [...new Set([...this.running.values()].map((one) => one.id))];
        const answer = await this.post("heartbeat", { holder: this.holder, jobs });
        for (const one of this.running.values()) if (answer.cancel.includes(one.id)) one.stop.abort();
      } catch (error) {
        if (error instanceof Expired) this.drop(error.holder); // otherwise the fence decides who was right
      }
    }
  }

  /** Drops the jobs of the old holder id: they do not belong to this worker any more. */
  drop(holder: string | null): void {
    if (this.holder !== holder) return;
    this.holder = null;
    for (const one of this.running.values()) one.stop.abort();
  }

  async post(verb: string, body: any): Promise<any> {
    const headers: Record<string, string> = { "content-type": "application/json" };
    if (process.env.REWHEEL_TOKEN) headers.authorization = `Bearer ${process.env.REWHEEL_TOKEN}`;
    const answer = await fetch(`${this.server}/v1/workers/${verb}`, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(30_000),
    });
    const document: any = await answer.json();
    if (answer.ok) return document;
    if (answer.status === 410) throw new Expired(body.holder);
    if (answer.status < 500 && answer.status !== 429) {
      console.error(`${document.detail} (${document.code})`);
      process.exit(1);
    }
    throw new Error(document.detail);
  }
}

/** Parses a duration: "1m30s", "600ms". */
function millis(text: string): number {
  const units: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
  let total = 0;
  for (const [, number, unit] of text.matchAll(/(\d+)(ms|s|m|h|d)/g)) total += Number(number) * units[unit];
  return total;
}

const [server, ...kinds] = process.argv.slice(2);
if (!server || kinds.length === 0) {
  console.error("usage: worker.ts SERVER KIND...");
  process.exit(2);
}
const worker = new JobWorker(server, kinds);
for (const name of ["SIGINT", "SIGTERM"] as const) process.on(name, () => (worker.stopping = true));
await worker.run();
export {};
