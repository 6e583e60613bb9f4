#!/usr/bin/env python3
"""A Rewheel worker with nothing but Python's standard library.

    python3 examples/worker.py http://127.0.0.1:7420 parcel

Change `handle` to your own work. The kind needs `runner = "worker"`. Run as many of these as you like, on as many
machines, against any server of the fleet. When one dies, its jobs go to the others once its lease has expired.
"""

import http.client
import json
import os
import queue
import random
import signal
import sys
import threading
import time
import urllib.error
import urllib.request


class Retry(Exception):
    """The attempt failed; retry the job, after a delay if one is given: "30s"."""

    def __init__(self, message, after=None, category="transient", code=None):
        super().__init__(message)
        self.result = {"verdict": "retry", "after": after, "category": category, "code": code, "message": message}


class Stop(Exception):
    """The job failed permanently: no retry."""

    def __init__(self, message, category="rejected", code=None):
        super().__init__(message)
        self.result = {"verdict": "stop", "category": category, "code": code, "message": message}


def handle(job, cancelled):
    """Does the work of one job. If it takes long, check `cancelled.is_set()` regularly."""
    payload = job["payload"]
    if payload.get("fail") == "always":
        raise Stop("this order cannot be sent", code="no_such_order")
    if payload.get("fail") == "once" and job["attempt"] == 1:
        raise Retry("the depot is busy", after="100ms", code="busy")
    print(f"sent order {payload.get('order')}, attempt {job['attempt']}", flush=True)


class Expired(Exception):
    """The server declared this worker dead: other workers take over all its jobs."""

    def __init__(self, holder):
        super().__init__(holder)
        self.holder = holder


class Worker:
    def __init__(self, server, kinds, name="worker.py", threads=8):
        self.server, self.kinds, self.name, self.threads = server.rstrip("/"), kinds, name, threads
        self.holder, self.lease = None, 10.0
        self.lock = threading.Lock()
        self.running = {}  # (id, fence) -> event that says: stop
        self.results = queue.Queue()
        self.stopping = threading.Event()

    def run(self):
        threading.Thread(target=self.beat, daemon=True).start()
        settling = threading.Thread(target=self.settle, daemon=True)
        settling.start()
        failures = 0
        while not self.stopping.is_set():
            room = self.threads - len(self.running)
            if room == 0:
                time.sleep(0.02)
                continue
            try:
                self.claim(room)
                failures = 0
            except Expired as expired:
                self.drop(expired.holder)
            except OSError as error:
                failures += 1
                wait = random.uniform(0, min(30, 0.2 * 2**failures))
                print(f"the server is away ({error}); asking again in {wait:.1f}s", file=sys.stderr)
                self.stopping.wait(wait)
        while self.running:
            time.sleep(0.02)
        self.results.put(None)
        settling.join()
        self.leave()

    def leave(self):
        """Deregisters this worker: the server need not wait for its lease to expire."""
        try:
            if self.holder is not None:
                self.post("leave", {"holder": self.holder})
        except (Expired, OSError):
            pass  # the lease expires by itself

    def claim(self, room):
        answer = self.post("claim", {"holder": self.holder, "name": self.name, "kinds": self.kinds, "max": room, "wait": "5s"})
        self.holder, self.lease = answer["holder"], seconds(answer["lease_ttl"])
        for job in answer["jobs"]:
            stop = threading.Event()
            with self.lock:
                self.running[job["id"], job["fence"]] = stop
            threading.Thread(target=self.work, args=(self.holder, job, stop), daemon=True).start()

    def work(self, holder, job, stop):
        began = time.monotonic()
        try:
            handle(job, stop)
            result = {"verdict": "done"}
        except (Retry, Stop) as error:
            result = error.result
        except Exception as error:  # whatever it is, the job must hear of it
            result = {"verdict": "retry", "category": "panic", "message": f"{type(error).__name__}: {error}"}
        result = {name: value for name, value in result.items() if value is not None}
        took = f"{int((time.monotonic() - began) * 1000)}ms"
        self.results.put((holder, {"id": job["id"], "fence": job["fence"], "duration": took, **result}))

    def settle(self):
        """Sends results, many at a time, until the server has them."""
        while (first := self.results.get()) is not None:
            batch = [first]
            while len(batch) < 500 and not self.results.empty() and (more := self.results.get()) is not None:
                batch.append(more)
            for holder in {holder for holder, _ in batch}:
                results = [result for owner, result in batch if owner == holder]
                while True:
                    try:
                        self.post("settle", {"holder": holder, "results": results})
                        break
                    except Expired:
                        break
                    except OSError:
                        time.sleep(1)
                with self.lock:
                    for result in results:
                        self.running.pop((result["id"], result["fence"]), None)

    def beat(self):
        """Sends one heartbeat for all jobs of this worker, three times per lease."""
        while True:
            time.sleep(self.lease / 3)
            with self.lock:
                holder, held = self.holder, sorted({id for id, _ in self.running})
            if holder is None:
                continue
            try:
                answer = self.post("heartbeat", {"holder": holder, "jobs": held})
                with self.lock:
                    for (id, _), stop in self.running.items():
                        if id in answer["cancel"]:
                            stop.set()
            except Expired as expired:
                self.drop(expired.holder)
            except OSError:
                pass  # the fence decides who was right

    def drop(self, holder):
        """Drops the jobs of the old holder id: they do not belong to this worker any more."""
        with self.lock:
            if self.holder == holder:
                self.holder = None
                for stop in self.running.values():
                    stop.set()

    def post(self, verb, body):
        headers = {"content-type": "application/json"}
        if "REWHEEL_TOKEN" in os.environ:
            headers["authorization"] = f"Bearer {os.environ['REWHEEL_TOKEN']}"
        request = urllib.request.Request(f"{self.server}/v1/workers/{verb}", json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")
            if error.code == 410:
                raise Expired(body["holder"]) from None
            if error.code < 500 and error.code != 429:
                # A retry would not help. Exit from any thread: a worker with a missing thread must not go on.
                print(f"the server refuses this worker: {text}", file=sys.stderr, flush=True)
                os._exit(1)
            raise OSError(f"{error.code} {text[:200]}") from None
        except (ValueError, http.client.HTTPException) as error:
            raise OSError(f"not an answer: {error}") from None


def seconds(text):
    """Parses a duration: "1m30s", "600ms"."""
    units, total, number = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}, 0.0, ""
    while text:
        while text and text[0].isdigit():
            number, text = number + text[0], text[1:]
        unit = next(unit for unit in units if text.startswith(unit))
        total, number, text = total + int(number) * units[unit], "", text[len(unit):]
    return total


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(f"usage: {sys.argv[0]} SERVER KIND...")
    worker = Worker(sys.argv[1], sys.argv[2:])
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: worker.stopping.set())
    worker.run()
