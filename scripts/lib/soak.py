"""The weather of scripts/soak, and its verdict. Arguments: PROGRAM REDIS_SERVER [MINUTES] [--seed N]."""

import argparse
import collections
import http.server
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

STEPS = 3
LEASE_MS = 3000
# A parked task waits for at most five minutes, and a quarter more, before it is tried again.
CALM_SECONDS = 450
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def unique(prefix):
    """An id as windlass writes them: the time, then chance."""
    number = (int(time.time() * 1000) << 80) | (7 << 76) | random.getrandbits(74) | (1 << 63)
    digits = [CROCKFORD[(number >> (5 * place)) & 31] for place in range(25, -1, -1)]
    return prefix + "_" + "".join(digits)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class ModelServer(http.server.ThreadingHTTPServer):
    allow_reuse_address = True
    daemon_threads = True

    def handle_error(self, request, client_address):
        # A client that was killed leaves its connection.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Model:
    """A model server whose mode changes: ok, refused, failing, hanging, cutting."""

    MODES = ["ok", "ok", "ok", "refused", "failing", "hanging", "cutting"]

    def __init__(self):
        self.port, self.mode, self.server = free_port(), "ok", None
        self.asked = collections.Counter()
        self.listen()

    def listen(self):
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                model.answer(self, json.loads(body))

        self.server = ModelServer(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def set(self, mode):
        if mode == "refused" and self.server:
            self.server.shutdown()
            self.server.server_close()
            self.server = None
        if mode != "refused" and not self.server:
            self.listen()
        self.mode = mode

    def answer(self, request, body):
        mode = self.mode
        self.asked[mode] += 1
        if mode == "failing":
            text = b'{"error":{"message":"bad weather"}}'
            request.send_response(random.choice([500, 502, 503, 529]))
            request.send_header("Content-Type", "application/json")
            request.send_header("Content-Length", str(len(text)))
            request.end_headers()
            request.wfile.write(text)
            return
        if mode == "hanging":
            time.sleep(15)
            request.close_connection = True
            return
        replies = sum(message["role"] == "assistant" for message in body["messages"])
        chunks = list(self.reply(replies))
        if mode == "cutting":
            chunks = chunks[: random.randrange(len(chunks))]
        request.send_response(200)
        request.send_header("Content-Type", "text/event-stream")
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        for chunk in chunks:
            data = b"data: " + chunk.encode() + b"\n\n"
            request.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        if mode == "cutting":
            request.close_connection = True
            return
        request.wfile.write(b"0\r\n\r\n")

    @staticmethod
    def reply(replies):
        def chunk(delta, finish=None):
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            whole = {"id": "c", "object": "chat.completion.chunk", "model": "soak", "choices": [choice]}
            if finish:
                whole["usage"] = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
            return json.dumps(whole)

        if replies < STEPS:
            call = json.dumps({"command": f"echo {replies} >> effects.txt; sleep 0.{random.randrange(9)}"})
            function = {"name": "bash", "arguments": call}
            calls = [{"index": 0, "id": f"call_{replies}", "type": "function", "function": function}]
            yield chunk({"role": "assistant", "tool_calls": calls})
            yield chunk({}, "tool_calls")
        else:
            yield chunk({"role": "assistant", "content": "all steps are done"})
            yield chunk({}, "stop")
        yield "[DONE]"


class Redis:
    def __init__(self, program, place):
        self.program, self.place, self.port = program, place, free_port()
        self.place.mkdir()
        self.process = None
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [self.program, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.place),
             "--appendonly", "yes", "--appendfsync", "always", "--save", ""],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def cli(self, *words):
        """What Redis answers, or nothing while it is down."""
        try:
            ran = subprocess.run(["redis-cli", "-p", str(self.port), "--json", *words], timeout=5,
                                 capture_output=True, text=True, check=False)
        except subprocess.TimeoutExpired:
            return None
        good = ran.returncode == 0 and ran.stdout.strip() and "error" not in ran.stdout[:20].lower()
        return json.loads(ran.stdout) if good else None


class Services:
    """One `serve` and two `worker`s, which are killed, stopped and started again."""

    def __init__(self, program, home, redis, model):
        self.program, self.home = program, home
        config = home / ".config/windlass"
        config.mkdir(parents=True)
        (config / "config.toml").write_text(
            "[models]\nstall_seconds = 4\nbackoff_base_ms = 200\nmax_retries = 2\n")
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": str(home), "USER": "soak",
            "WINDLASS_DATA": str(home / "data"), "CONTAINER_MODE": "local",
            "LITELLM_API_BASE": f"http://127.0.0.1:{model.port}/v1", "LITELLM_MODEL": "soak",
            "REDIS_URL": f"redis://127.0.0.1:{redis.port}/",
            "COORDINATOR_CLAIM_AFTER_MS": "2000", "COORDINATOR_TASK_LEASE_MS": str(LEASE_MS),
            "RUST_LOG": "warn",
        }
        self.log = open(home / "services.log", "ab")
        self.running = {}
        self.ended = []
        self.count = collections.Counter()
        for name in ("serve", "worker", "worker 2"):
            self.start(name)

    def start(self, name):
        self.running[name] = subprocess.Popen(
            [self.program, name.split()[0], "--tasks", "20"], env=self.environment, cwd=self.home,
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def check(self):
        """A service ends only when it is told to."""
        for name, process in list(self.running.items()):
            if process.poll() is not None:
                self.ended.append(f"{name} ended by itself with {process.returncode}")
                self.start(name)

    def kill(self, name):
        self.count["killed"] += 1
        process = self.running[name]
        process.kill()
        process.wait()
        self.start(name)

    def freeze(self, name, seconds):
        self.count["stopped"] += 1
        process = self.running[name]
        process.send_signal(signal.SIGSTOP)
        threading.Timer(seconds, lambda: process.poll() is None and process.send_signal(signal.SIGCONT)).start()

    def stop(self):
        for process in self.running.values():
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self.running.values():
            try:
                process.wait(40)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def submit(redis, tasks):
    task = unique("task")
    command = {
        "command_id": unique("cmd"), "session_id": unique("ses"), "task_id": task,
        "goal": "do all steps", "execution_config": {"outage": "park", "timeout_seconds": 3600},
    }
    if redis.cli("XADD", "task-command", "*", "data", json.dumps(command)):
        tasks.append(task)


def storm(minutes, model, redis, services, tasks):
    end = time.monotonic() + minutes * 60
    due = {"model": 0.0, "redis": 20.0, "service": 5.0, "task": 0.0}
    begun = time.monotonic()
    down_until = None
    while time.monotonic() < end:
        now = time.monotonic() - begun
        services.check()
        if now >= due["task"] and down_until is None:
            submit(redis, tasks)
            due["task"] = now + random.uniform(0.3, 1.0)
        if now >= due["model"]:
            model.set(random.choice(Model.MODES))
            due["model"] = now + random.uniform(2, 8)
        if now >= due["service"]:
            name = random.choice(list(services.running))
            if random.random() < 0.25:
                services.freeze(name, random.uniform(0.5, 3 * LEASE_MS / 1000))
            else:
                services.kill(name)
            due["service"] = now + random.uniform(3, 9)
        if down_until is None and now >= due["redis"]:
            redis.kill()
            services.count["redis killed"] += 1
            down_until = now + random.uniform(0.5, 4)
        elif down_until is not None and now >= down_until:
            redis.start()
            down_until, due["redis"] = None, now + random.uniform(15, 40)
        time.sleep(0.05)
    if down_until is not None:
        redis.start()
    model.set("ok")


def rows(database):
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=10) as connection:
        query = "SELECT id, status, status_reason, coalesce(status_detail, '') FROM tasks WHERE parent_id IS NULL"
        return {row[0]: row[1:] for row in connection.execute(query)}


def calm(services, database, tasks):
    end = time.monotonic() + CALM_SECONDS
    while time.monotonic() < end:
        services.check()
        found = rows(database)
        open_tasks = [task for task in tasks if found.get(task, ("new",))[0] not in ("done", "failed", "cancelled")]
        if not open_tasks:
            return
        print(f"\r{len(open_tasks)} of {len(tasks)} tasks are not done yet ", end="", file=sys.stderr, flush=True)
        time.sleep(2)


def verdict(home, redis, tasks):
    found = rows(home / "data/windlass.db")
    lost = [task for task in tasks if task not in found]
    failed = [(task, found[task]) for task in tasks if task in found and found[task][0] in ("failed", "cancelled")]
    stuck = [(task, found[task]) for task in tasks if task in found and found[task][0] not in ("done", "failed", "cancelled")]
    twice = []
    for task in tasks:
        file = home / "data/workspaces" / task / "effects.txt"
        lines = file.read_text().split() if file.exists() else []
        twice += [(task, step) for step, count in collections.Counter(lines).items() if count > 1]
    entries = redis.cli("XRANGE", "task-result", "-", "+") or []
    results = [json.loads(fields["data"] if isinstance(fields, dict) else fields[fields.index("data") + 1])
               for _, fields in entries]
    published = {one["task_id"] for one in results if one["status"] == "COMPLETED"}
    unpublished = [task for task in tasks if found.get(task, ("",))[0] == "done" and task not in published]
    return {"failed": failed, "lost": lost + unpublished, "twice": twice, "stuck": stuck}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("redis")
    parser.add_argument("minutes", nargs="?", type=float, default=10)
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args()
    seed = given.seed if given.seed is not None else random.randrange(1 << 32)
    random.seed(seed)
    home = pathlib.Path(tempfile.mkdtemp(prefix="windlass-soak-"))
    print(f"seed {seed}, {given.minutes:g} minutes, in {home}", file=sys.stderr)
    model = Model()
    redis = Redis(given.redis, home / "redis")
    services, tasks, found = None, [], None
    try:
        while redis.cli("PING") is None:
            time.sleep(0.05)
        services = Services(os.path.abspath(given.program), home, redis, model)
        storm(given.minutes, model, redis, services, tasks)
        calm(services, home / "data/windlass.db", tasks)
        # Results leave a moment after their tasks have ended.
        time.sleep(3)
        found = verdict(home, redis, tasks)
    finally:
        if services:
            services.stop()
        redis.kill()
        model.set("refused")
    print(file=sys.stderr)
    counts = ", ".join(f"{count} times {what}" for what, count in services.count.items())
    print(f"{len(tasks)} tasks; services and Redis: {counts}; requests: {dict(model.asked)}")
    for line in services.ended:
        print(line)
    for what, which in found.items():
        print(f"{what}: {len(which)}")
        for one in which[:10]:
            print(f"  {one}")
    good = tasks and not services.ended and not any(found.values())
    print("verdict: good" if good else f"verdict: BAD; kept in {home}")
    if good:
        shutil.rmtree(home, ignore_errors=True)
    sys.exit(0 if good else 1)


main()
