"""Ways to damage a run folder: aimed ones, each by name, and random ones, each by its number."""

import json
import os
import random

RUN, LAUNCHES, PROFILES = "run.json", "launches.jsonl", "profiles.jsonl"
DEEP = "[" * 100_000
ODD_VALUES = (
    None, True, -1, 0, 1e308, 10**30, 10_000_000, 1.5, "", "\x00\x1b[31m", "../../..", "x" * 300, "9" * 6000, [], {},
    [[]], {"a": {}}, float("nan"), "\ud800", "nowhere", [None], -1e-9, "<!--<script>", "=1+1",
)  # fmt: skip


def change_run(place, value):
    """Replace one value of run.json. `place` names the way to it; `*` is the first of several."""

    def damage(folder):
        whole = json.loads((folder / RUN).read_text())
        _put(whole, place.split("."), value)
        (folder / RUN).write_text(json.dumps(whole))

    return damage


def change_line(kind, place, value, file=LAUNCHES):
    """Replace one value of the first line of this kind."""

    def damage(folder):
        lines = (folder / file).read_text().splitlines()
        number = next(n for n, line in enumerate(lines) if json.loads(line)["kind"] == kind)
        record = json.loads(lines[number])
        _put(record, place.split("."), value)
        lines[number] = json.dumps(record)
        (folder / file).write_text("\n".join(lines) + "\n")

    return damage


def _put(where, way, value):
    *before, last = way
    for step in before:
        where = where[_step(where, step)]
    if value is DELETE:
        del where[_step(where, last)]
    else:
        where[_step(where, last)] = value


def _step(where, step):
    if isinstance(where, list):
        return 0 if step == "*" else int(step)
    return next(iter(where)) if step == "*" else step


DELETE = object()


def replace_by(file, make):
    """Put something else in a file's place."""

    def damage(folder):
        (folder / file).unlink(missing_ok=True)
        make(folder / file)

    return damage


def cut(file, share):
    def damage(folder):
        content = (folder / file).read_bytes()
        (folder / file).write_bytes(content[: int(len(content) * share)])

    return damage


def add(file, text):
    def damage(folder):
        with (folder / file).open("a") as lines:
            lines.write(text)

    return damage


def twice(file):
    def damage(folder):
        content = (folder / file).read_bytes()
        (folder / file).write_bytes(content + content)

    return damage


def loop(path):
    path.symlink_to(path)


AIMED = {
    "run: a FIFO": replace_by(RUN, os.mkfifo),
    "run: a folder": replace_by(RUN, os.mkdir),
    "run: a loop of links": replace_by(RUN, loop),
    "run: nothing": replace_by(RUN, lambda path: None),
    "run: empty": cut(RUN, 0),
    "run: cut": cut(RUN, 0.5),
    "run: binary": replace_by(RUN, lambda path: path.write_bytes(bytes(range(256)) * 9)),
    "run: deep": replace_by(RUN, lambda path: path.write_text('{"schema": 1, "created": ' + DEEP)),
    "run: another schema": change_run("schema", 99),
    "run: no cases": change_run("cases", DELETE),
    "run: unknown workload": change_run("cases.*.workload", "nowhere"),
    "run: unknown system": change_run("cases.*.system", "no/such/system"),
    "run: unknown environment": change_run("cases.*.environment", "nowhere"),
    "run: ten million layers": change_run("workloads.*.layers", 10_000_000),
    "run: a batch of nothing": change_run("workloads.*.batch", 0),
    "run: a huge batch": change_run("workloads.*.batch", 10**9),
    "run: no launches": change_run("method.launches", 0),
    "run: 1e9 launches": change_run("method.launches", 10**9),
    "run: negative limit": change_run("method.limit_seconds", -1.0),
    "run: an environment that names a path": change_run("environments.*.id", "../../x"),
    "run: a version that names a path": change_run("environments.*.version", "/etc"),
    "run: no small version": change_run("proved_on", {}),
    "launches: a FIFO": replace_by(LAUNCHES, os.mkfifo),
    "launches: a folder": replace_by(LAUNCHES, os.mkdir),
    "launches: a loop of links": replace_by(LAUNCHES, loop),
    "launches: cut": cut(LAUNCHES, 0.7),
    "launches: binary": replace_by(LAUNCHES, lambda path: path.write_bytes(bytes(range(256)) * 9)),
    "launches: deep": add(LAUNCHES, '{"kind": "launch", "other": ' + DEEP + "\n"),
    "launches: twice": twice(LAUNCHES),
    "launches: samples of 0 s": change_line("launch", "samples.*", [3, 0.0]),
    "launches: no batches": change_line("launch", "samples.*", [0, 1.0]),
    "launches: ok without samples": change_line("launch", "samples", []),
    "launches: a negative time": change_line("launch", "first_call_s", -1.5),
    "launches: zero tolerance": change_line("verification", "figures.*.tolerance", 0.0),
    "launches: another run's case": change_line("launch", "case.system", "no/such/system"),
    "launches: a limit without time": change_line("limit", "products.*", [10, 0.0]),
    "profiles: a FIFO": replace_by(PROFILES, os.mkfifo),
    "profiles: a folder": replace_by(PROFILES, os.mkdir),
    "profiles: deep": add(PROFILES, DEEP + "\n"),
    "profiles: no time": change_line("profile", "wall_s", 0.0, PROFILES),
    "profiles: a call of 0 s": change_line("retrace", "reshapes.*.calls.*", 0.0, PROFILES),
}
#: These leave a run that is whole: nothing needs to be reported.
HARMLESS = {
    "logs: a FIFO": replace_by("logs/x.log", os.mkfifo),
    "run: control characters": change_run("machine.cpu", "a\x00b\x1b[31mc\u202ed\x9b1m"),
    "launches: control characters": change_line("launch", "device_name", "a\x00b\x1b[31mc"),
}


def random_damage(number):
    """One to three random changes: bytes of a file, or values within its JSON."""
    chance = random.Random(number)

    def damage(folder):
        for _ in range(chance.choice((1, 1, 2, 3))):
            file = folder / chance.choice((RUN, RUN, LAUNCHES, LAUNCHES, PROFILES))
            if chance.random() < 0.4:
                file.write_bytes(_shaken(bytearray(file.read_bytes()), chance))
                continue
            lines = file.read_bytes().split(b"\n") if file.name != RUN else [file.read_bytes()]
            place = chance.randrange(len(lines))
            try:
                value = json.loads(lines[place])
            except ValueError:  # an earlier change has damaged it
                continue
            _change_somewhere(value, chance)
            lines[place] = json.dumps(value).encode()
            file.write_bytes(b"\n".join(lines))

    return damage


def _shaken(content, chance):
    kind = chance.choice(("overwrite", "cut", "remove", "repeat", "insert"))
    start = chance.randrange(len(content) + 1)
    end = min(len(content), start + chance.randrange(1, 200))
    if kind == "overwrite":
        for place in range(start, min(len(content), start + 4)):
            content[place] = chance.randrange(256)
    elif kind == "cut":
        del content[start:]
    elif kind == "remove":
        del content[start:end]
    elif kind == "repeat":
        content[start:start] = content[start:end] * chance.choice((1, 2, 500))
    else:
        content[start:start] = bytes(chance.randrange(256) for _ in range(20))
    return content


def _change_somewhere(value, chance):
    places = list(_places(value))
    if not places:
        return
    where, key = chance.choice(places)
    if chance.random() < 0.2:
        del where[key]
    else:
        where[key] = chance.choice(ODD_VALUES)


def _places(value):
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])
