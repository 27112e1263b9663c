"""compare.py: the same jobs through mulligan and through other queues, in turns, as a table.

    python3 compare.py PROGRAM WORKER INSTALLED

PROGRAM is mulligan's, WORKER is bench/worker, INSTALLED is where bench/peers/run puts the others.
Where RabbitMQ is installed, bench/rabbitmq starts one for those that need it. In the environment:
MULL_PEERS_ROUNDS (5), MULL_PEERS_JOBS (20000), MULL_PEERS_LIMIT, the seconds after which a run is
ended (180), and MULL_PEERS_ONLY, words of the names that are measured.
"""

import ctypes
import dataclasses
import glob
import json
import os
import re
import select
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM, WORKER, INSTALLED = (os.path.abspath(path) for path in sys.argv[1:4])
ROUNDS = int(os.environ.get("MULL_PEERS_ROUNDS", 5))
JOBS = int(os.environ.get("MULL_PEERS_JOBS", 20000))
RABBITMQ = "/usr/lib/rabbitmq/bin/rabbitmq-server"
LIMIT = int(os.environ.get("MULL_PEERS_LIMIT", 180))
ONLY = os.environ.get("MULL_PEERS_ONLY", "").lower().split()
CONCURRENCY = 64
SAMPLE = 0.05  # seconds between two looks at a run's memory
PR_SET_PDEATHSIG = 1
# A job that fails does so four times, and becomes a dead letter.
KINDS = {
    "succeed": "succeed",
    "retry": "fail, retried in process",
    "redeliver": "fail, retried through the queue",
}
# What a queue itself has for "at once, three times": mulligan's retry(3, 0), Celery's self.retry(countdown=0).
AT_ONCE = ("retry", "redeliver")
LEAST_AT_ONCE = 20  # times as many jobs as Celery on the same RabbitMQ
CHAINS = {"succeed": "retry(3, 0)", "retry": "retry(3, 0)", "redeliver": "redeliver(3, 0)"}


class Failed(Exception):
    pass


@dataclasses.dataclass
class Run:
    """One run: jobs a second, and MB of the worker's processes and of its server."""

    rate: float
    worker: float
    server: float


# ---- Processes ------------------------------------------------------------------------------------

libc = ctypes.CDLL(None)


def die_with_parent():
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def environment(**more):
    """That of the installed programs: what Debian would have in /usr lies below INSTALLED/debs."""
    usr = INSTALLED + "/debs/usr"
    lib = glob.glob(usr + "/lib/*-linux-gnu")
    ruby = glob.glob(usr + "/share/rubygems-integration/all/gems/*/lib")
    for folder in [usr, *lib]:
        ruby += glob.glob(f"{folder}/lib/ruby/[0-9]*") + glob.glob(f"{folder}/ruby/[0-9]*")
    ruby += glob.glob(usr + "/lib/ruby/vendor_ruby") + glob.glob(usr + "/lib/*/ruby/vendor_ruby/[0-9]*")
    own = {
        "PATH": usr + "/bin:/usr/bin:" + os.environ["PATH"],
        "LD_LIBRARY_PATH": ":".join(lib),
        "PYTHONPATH": usr + "/lib/python3/dist-packages:" + HERE,
        "RUBYLIB": ":".join(ruby),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PEERS_CONCURRENCY": str(CONCURRENCY),
    }
    return {**os.environ, **own, **more}


def start(argv, folder, **more):
    with open(folder + "/log", "a") as log:
        return subprocess.Popen(
            argv, cwd=folder, env=environment(**more), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=log, start_new_session=True, preexec_fn=die_with_parent)


def end(process):
    """Ends a process and those of its session, and waits for it."""
    for sign in (signal.SIGTERM, signal.SIGKILL) if process.poll() is None else ():
        try:
            os.killpg(process.pid, sign)
            process.wait(10)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass
    process.stdout.close()


def version(argv):
    """What a program says of its version; None where it isn't there."""
    names = {"PEERS_KIND": "succeed", "PEERS_COUNT": "1", "PEERS_PLACE": "1"}
    try:
        ran = subprocess.run(argv, cwd=INSTALLED, env=environment(**names), capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"\d+(\.\d+)+", ran.stdout)
    return found[0] if ran.returncode == 0 and found else None


def rss(pid):
    """MB of a process and its children; what they share counts for each."""
    try:
        with open(f"/proc/{pid}/status") as status, open(f"/proc/{pid}/task/{pid}/children") as children:
            own = re.search(r"VmRSS:\s+(\d+)", status.read())
            return (int(own[1]) / 1024 if own else 0) + sum(rss(child) for child in children.read().split())
    except OSError:
        return 0


def lines(process):
    """The lines that a process writes with the moment of each, and its memory until then; ends with
    the process, or with its line "end"."""
    until, text, memory = time.monotonic() + LIMIT, b"", 0
    while True:
        if time.monotonic() > until:
            raise Failed(f"not done after {LIMIT} s")
        memory = rss(process.pid) or memory
        if not select.select([process.stdout], [], [], SAMPLE)[0]:
            continue
        chunk, now = os.read(process.stdout.fileno(), 65536), time.monotonic()
        text += chunk
        while b"\n" in text:
            line, text = text.split(b"\n", 1)
            yield line.decode(), now, memory
            if line.startswith(b"end"):
                return
        if not chunk:
            yield "closed", now, memory
            return


# ---- Servers --------------------------------------------------------------------------------------


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def answers(port):
    try:
        with socket.create_connection(("127.0.0.1", int(port)), 1) as redis:
            redis.sendall(b"PING\r\n")
            return redis.recv(16) == b"+PONG\r\n"
    except OSError:
        return False


def start_redis(folder):
    port, until = free_port(), time.monotonic() + 30
    server = start(["redis-server", "--bind", "127.0.0.1", "--port", port, "--dir", folder, "--save", "",
                    "--appendonly", "yes", "--appendfsync", "everysec", "--logfile", folder + "/redis.log"], folder)
    while not answers(port):
        if time.monotonic() > until or server.poll() is not None:
            end(server)
            raise Failed("redis-server doesn't answer")
        time.sleep(0.02)
    return server, port


def stop_redis(server, _place):
    end(server)


def control(*words):
    """What rabbitmqctl says."""
    try:
        ran = subprocess.run([os.environ["MULL_RABBITMQ_CONTROL"], *words], capture_output=True, text=True,
                             timeout=LIMIT, check=True)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as why:
        raise Failed(f"rabbitmqctl {words[0]}: {why.stderr or why}") from None
    return ran.stdout.strip()


def start_vhost(folder):
    """A virtual host of its own, on the one server."""
    name = os.path.basename(folder)
    control("add_vhost", name)
    control("set_permissions", "-p", name, "guest", ".*", ".*", ".*")
    return None, f"{os.environ['MULL_RABBITMQ']}/{name}"


def stop_vhost(_server, place):
    control("delete_vhost", place.rsplit("/", 1)[1])


@dataclasses.dataclass(frozen=True)
class Server:
    name: str
    start: callable  # (folder) -> its process, if it has one of its own; the place
    stop: callable  # (process, place)
    pid: callable  # (process) -> whose memory counts


REDIS = Server("Redis", start_redis, stop_redis, lambda process: process.pid)
RABBIT = Server("RabbitMQ", start_vhost, stop_vhost, lambda _: os.environ["MULL_RABBITMQ_PID"])


# ---- The queues -----------------------------------------------------------------------------------


@dataclasses.dataclass
class Queue:
    name: str
    loses: str  # by a power cut
    fill: callable  # (kind, count, place) -> argv
    work: callable
    version: list
    kinds: tuple = tuple(KINDS)
    server: Server = REDIS
    share: float = 1  # of JOBS: slow ones get fewer, so that a run takes seconds


def script(name, action):
    return lambda kind, count, place: ["node", f"{INSTALLED}/npm/{name}.mjs", action, kind, str(count), place]


def of_npm(name, *needed):
    """Prints the version of a package; `needed` is JavaScript that fails where another one doesn't work."""
    return ["node", "-p", f"{';'.join([*needed, ''])} require('./npm/node_modules/{name}/package.json').version"]


def fill_lines(_kind, _count, place):
    return ["sh", "-c", 'exec "$0" send jobs --transport "$1" <jobs.txt', PROGRAM, place]


def fill_new(_kind, _count, place):
    """Into queues that are made before: see declare.lua."""
    made = '"$0" run declare.lua --until-empty --quiet 1s'
    return ["sh", "-c", made + ' && exec "$0" send jobs --transport "$1" <jobs.txt', PROGRAM, place]


def call_worker(kind, _count, place):
    return [WORKER, place] + ([] if kind == "succeed" else [CHAINS[kind]])


def ours(name, server, fill):
    run_argv = [PROGRAM, "run", "service.lua", "--until-empty", "--quiet", "1s", "--log-level", "error"]
    version_argv = [PROGRAM, "--version"]
    return [Queue(name + ", a handler in Lua", "nothing", fill, lambda *_: run_argv, version_argv, server=server),
            Queue(name + ", a handler in C", "nothing", fill, call_worker, version_argv, server=server)]


FILE, ON_RABBIT = ours("mulligan", None, fill_lines), ours("mulligan on RabbitMQ", RABBIT, fill_new)
OURS = FILE + ON_RABBIT
PYTHON, RUBY = "/usr/bin/python3", "ruby"


def celery(name, server, client, loses, *pool):
    argv = [PYTHON, "-m", "celery", "-A", "peer_celery", "worker", "--loglevel", "CRITICAL", "--without-gossip",
            "--without-mingle", "--without-heartbeat", *pool]
    return Queue(name, loses, lambda *_: [PYTHON, HERE + "/peer_celery.py"], lambda *_: argv,
                 [PYTHON, "-c", f"import celery, {client}; print(celery.__version__)"], server=server, share=0.05)


UNSYNCED = "what isn't synced yet"
PROCESSES, THREADS = ("--pool", "prefork"), ("--pool", "threads", "-c", str(CONCURRENCY))
THEIRS = [
    Queue("BullMQ", "a second", script("bullmq", "fill"), script("bullmq", "work"),
          of_npm("bullmq", "require('./npm/node_modules/ioredis')"), share=0.5),
    celery("Celery, a process a core", REDIS, "redis", "a second", *PROCESSES),
    celery(f"Celery, {CONCURRENCY} threads", REDIS, "redis", "a second", *THREADS),
    Queue("Sidekiq", "a second", lambda *_: [RUBY, HERE + "/peer_sidekiq.rb"],
          lambda *_: [RUBY, "-rsidekiq/cli", "-e", "cli = Sidekiq::CLI.instance; cli.parse; cli.run", "--",
                      "-r", HERE + "/peer_sidekiq.rb"],
          [RUBY, "-e", "require 'sidekiq'; puts Sidekiq::VERSION"], kinds=("succeed", "retry"), share=0.5),
    Queue("plainjob", UNSYNCED, script("plainjob", "fill"), script("plainjob", "work"),
          of_npm("plainjob", "new (require('./npm/node_modules/better-sqlite3'))(':memory:')"),
          kinds=("succeed", "retry"), server=None, share=0.5),
    celery("Celery on RabbitMQ, a process a core", RABBIT, "amqp", UNSYNCED, *PROCESSES),
    celery(f"Celery on RabbitMQ, {CONCURRENCY} threads", RABBIT, "amqp", UNSYNCED, *THREADS),
]


# ---- A run ----------------------------------------------------------------------------------------


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def prepare(folder, kind, count):
    """What mulligan reads: a policy, and a line for each job."""
    for name in ("service.lua", "declare.lua"):
        shutil.copy(f"{HERE}/{name}", folder)
    write(folder + "/declare_policy.lua", "require('mulligan.policy').bus():dead_letter_queue('none')\n")
    write(folder + "/policy.lua", f"require('mulligan.policy').bus():default():{CHAINS[kind]}\n")
    write(folder + "/jobs.txt", "".join(json.dumps({"number": number}) + "\n" for number in range(count)))


def told(text, kind, count):
    """Whether the last lines of a run say that each job was called so often, and came to its end."""
    dead = 0 if kind == "succeed" else count
    if ours := re.findall(r"done (\d+), retried (\d+), redelivered (\d+), dead-lettered (\d+)", text):
        again = {"succeed": ("0", "0"), "retry": (str(3 * count), "0"), "redeliver": ("0", str(3 * count))}[kind]
        return ours[-1] == (str(count - dead), *again, str(dead))
    return f"end {count if kind == 'succeed' else 4 * count} {dead}" in text.split("\n")


def watch(worker, folder, kind, count, server_pid):
    """From the first call to the last job's end: a process that stays says "end", another one ends.
    One that waits until it is quiet says "last" at its last call, after which no more than CONCURRENCY jobs end."""
    begin, finish, text = None, None, ""
    for line, moment, memory in lines(worker):
        text += line + "\n"
        if line == "start":
            begin = moment
        elif line == "last":
            finish = moment
    if line == "closed" and worker.wait(LIMIT) != 0:
        raise Failed(f"ended in {worker.returncode}")
    with open(folder + "/log", errors="replace") as log:
        if not begin or not told(text + log.read(), kind, count):
            raise Failed(f"jobs are missing: {text.strip()!r}")
    return Run(count / ((finish or moment) - begin), memory, rss(server_pid) if server_pid else 0)


def work_off(folder, queue, kind, count, place, server_pid):
    started, names = [], {"PEERS_KIND": kind, "PEERS_COUNT": str(count), "PEERS_PLACE": place}
    if queue in ON_RABBIT:
        names["PEERS_LAST"] = str(count if kind == "succeed" else 4 * count)
    try:
        started.append(start(queue.fill(kind, count, place), folder, **names))
        if started[-1].wait(LIMIT) != 0:
            raise Failed("can't be filled")
        started.append(start(queue.work(kind, count, place), folder, **names))
        return watch(started[-1], folder, kind, count, server_pid)
    except subprocess.TimeoutExpired:
        raise Failed(f"not done after {LIMIT} s") from None
    finally:
        for process in reversed(started):
            end(process)


def run_in(folder, queue, kind, count):
    prepare(folder, kind, count)
    if not queue.server:
        place = ("sqlite:" if queue in FILE else "") + folder + "/jobs.db"
        return work_off(folder, queue, kind, count, place, None)
    process, place = queue.server.start(folder)
    try:
        return work_off(folder, queue, kind, count, place, queue.server.pid(process))
    finally:
        queue.server.stop(process, place)


def run(queue, kind):
    """A run in a folder of its own; None, and a line, where it fails."""
    folder = tempfile.mkdtemp(prefix="run-", dir=INSTALLED)
    try:
        return run_in(folder, queue, kind, int(JOBS * queue.share))
    except Failed as why:
        with open(folder + "/log", errors="replace") as log:
            print(f"{queue.name}, {kind}: {why}\n{log.read()[-1500:]}", file=sys.stderr)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# ---- The tables -----------------------------------------------------------------------------------


def spread(values, form="{:,.0f}"):
    if not values:
        return "failed"
    low, middle, high = (form.format(value) for value in (min(values), statistics.median(values), max(values)))
    return f"{middle} ({low}–{high})"


def print_row(*cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def rates(queue, runs):
    return [spread([r.rate for r in runs.get((queue.name, kind), [])]) if kind in queue.kinds else "—"
            for kind in KINDS]


def memory(queue, runs):
    every = [r for kind in queue.kinds for r in runs.get((queue.name, kind), [])]
    server = f" + {queue.server.name} {spread([r.server for r in every])}" if queue.server else ""
    return spread([r.worker for r in every]) + server


def beside(queue):
    """The two of mulligan that a queue is measured beside."""
    return ON_RABBIT if queue.server is RABBIT else FILE


def print_tables(queues, runs, times):
    print_row("jobs a second", *KINDS.values(), "RSS at the end, MB", "a power cut loses")
    print_row(*["---"] * 6)
    for queue in [own for own in OURS if any(own in beside(queue) for queue in queues)] + queues:
        print_row(queue.name, *rates(queue, runs), memory(queue, runs), queue.loses)
    print()
    print_row("mulligan, times as many", *KINDS.values())
    print_row(*["---"] * 4)
    for queue in queues:
        for own in beside(queue):
            print_row(f"{own.name.split(', ')[1]}, beside {queue.name}", *(
                spread(times.get((own.name, queue.name, kind)), "{:.1f}") if kind in queue.kinds else "—"
                for kind in KINDS))


def print_at_once(times):
    """Beside Celery on the same RabbitMQ. Whether that is enough."""
    good = True
    for (own, queue, kind), ratios in times.items():
        if kind != AT_ONCE:
            continue
        enough = statistics.median(ratios) >= LEAST_AT_ONCE
        good &= enough
        print(f"{own}, 3 retries at once, beside {queue}: {spread(ratios, '{:.1f}')} times as many, "
              f"at least {LEAST_AT_ONCE}{'' if enough else ': MISSED'}")
    return good


def note_round(runs, times, queue, pairs):
    for kind, pair in pairs.items():
        for name, result in pair.items():
            if result:
                runs.setdefault((name, kind), []).append(result)
    compared = [(kind, kind, kind) for kind in pairs] + ([(*AT_ONCE, AT_ONCE)] if queue.server is RABBIT else [])
    for own in beside(queue):
        for kind, theirs, what in compared:
            result, other = pairs[kind][own.name], pairs[theirs][queue.name]
            if result and other:
                times.setdefault((own.name, queue.name, what), []).append(result.rate / other.rate)


def measure(queues):
    """In turns, so that the machine's other work falls on both: each round, ours and then theirs."""
    runs, times = {}, {}
    for number in range(ROUNDS):
        for queue in queues:
            pairs = {kind: {each.name: run(each, kind) for each in [*beside(queue), queue]} for kind in queue.kinds}
            note_round(runs, times, queue, pairs)
        print(f"round {number + 1} of {ROUNDS} is done", file=sys.stderr)
    return runs, times


def is_wanted(queue):
    return not ONLY or any(word in queue.name.lower() for word in ONLY)


def start_rabbitmq():
    """Begins again beside a RabbitMQ, where one can be had and is needed."""
    if ("MULL_RABBITMQ" in os.environ or not os.path.exists(RABBITMQ) or
            not any(is_wanted(queue) and queue.server is RABBIT for queue in THEIRS)):
        return
    argv = [HERE + "/../../rabbitmq", sys.executable, os.path.abspath(__file__), *sys.argv[1:]]
    os.execve(argv[0], argv, {**os.environ, "MULL_BUILD": os.path.dirname(PROGRAM)})


def installed():
    """The others that are here; what isn't is said."""
    rabbit = control("version") if "MULL_RABBITMQ" in os.environ else None
    servers = {"Redis": version(["redis-server", "--version"]), "RabbitMQ": rabbit}
    found = []
    for queue in filter(is_wanted, THEIRS):
        told = version(queue.version) if not queue.server or servers[queue.server.name] else None
        print(f"{queue.name}: {f'version {told}' if told else 'not installed, and left out'}")
        found += [queue] if told else []
    print(f"Redis: {servers['Redis']}; RabbitMQ: {rabbit}; Node: {version(['node', '--version'])}")
    return found


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    start_rabbitmq()
    queues = installed()
    if not queues:
        sys.exit("there is nothing to measure mulligan beside")
    print(f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {JOBS} jobs; "
          f"medians of {ROUNDS} rounds (min–max)\n", flush=True)
    runs, times = measure(queues)
    print_tables(queues, runs, times)
    good = print_at_once(times)
    return 0 if good and all((queue.name, kind) in runs for each in queues for queue in [*beside(each), each]
                    for kind in each.kinds) else 1


sys.exit(main())
