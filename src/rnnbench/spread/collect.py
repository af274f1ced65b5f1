"""From the visits of many nodes to one run: for each part the visit that counts, every record with its node.

The run's own `run.json` and `launches.jsonl` are made again each time, from the visits alone. The same visits give the
same bytes; other visits stay where they are.
"""

from pathlib import Path

import msgspec

from rnnbench.domain.profile import Profile, ProfileRecord, Retrace
from rnnbench.domain.result import Launch, Record, Verification
from rnnbench.domain.run import Machine, Run
from rnnbench.errors import UserError
from rnnbench.files import write_atomically
from rnnbench.launch.listener import Listener
from rnnbench.spread.folder import PLAN, complete_on, groups_of, visit_folder
from rnnbench.store import PROFILES_FILE, RECORDS_FILE, RUN_FILE, Contents, read_folder


def collect(folder: Path, listener: Listener) -> Contents | None:
    """Put all complete parts together; None while there is no plan."""
    planned_on = complete_on(folder, PLAN)
    if planned_on is None:
        return None
    gathered = _Gathered(folder, listener)
    plan = gathered.read(PLAN, planned_on)
    for record in plan.records:
        gathered.add(record, PLAN, planned_on)
    proved = {msgspec.json.encode(record) for record in plan.records}  # every part has its share of them
    for part, group in enumerate(groups_of(plan.run), 1):
        node = complete_on(folder, part)
        if node is None:
            continue
        visit = gathered.read(part, node)
        if {case.group for case in visit.run.cases} != {group}:
            place = visit_folder(folder, part, node)
            raise UserError(f"{place} is not part {part} of this run", "restore it from a copy")
        for each in (*visit.records, *visit.profiles):
            if not isinstance(each, Verification) or msgspec.json.encode(each) not in proved:
                gathered.add(each, part, node)
    gathered.write(plan.run)
    return read_folder(folder)


class _Gathered:
    """Records and machines of the visits read so far."""

    def __init__(self, folder: Path, listener: Listener) -> None:
        self._folder = folder
        self._listener = listener
        self._machines: dict[str, Machine] = {}
        self._records: list[Record] = []
        self._profiles: list[ProfileRecord] = []

    def read(self, part: int, node: str) -> Contents:
        visit = visit_folder(self._folder, part, node)
        contents = read_folder(visit)
        for line in contents.damaged:
            self._listener.note(f"{visit / RECORDS_FILE}, {line}: skipped")
        machine = contents.run.machine
        known = self._machines.setdefault(node, machine)
        if (machine.load or 0.0) > (known.load or 0.0):
            self._machines[node] = machine  # it had other work when a later part began
        return contents

    def add(self, record: Record | ProfileRecord, part: int, node: str) -> None:
        place = visit_folder(Path(), part, node)  # files stay where they are
        if isinstance(record, Profile | Retrace):
            trace = {"trace": str(place / record.trace)} if isinstance(record, Profile) and record.trace else {}
            self._profiles.append(msgspec.structs.replace(record, node=node, **trace))
            return
        log = {"log": str(place / record.log)} if isinstance(record, Launch) and record.log else {}
        self._records.append(msgspec.structs.replace(record, node=node, **log))

    def write(self, plan: Run) -> None:
        """The machines before the records, so that a reader in between finds every node that a record names."""
        run = msgspec.structs.replace(plan, machines=self._machines)
        if not (self._folder / RECORDS_FILE).exists():
            write_atomically(self._folder / RECORDS_FILE, b"")
        write_atomically(self._folder / RUN_FILE, msgspec.json.format(msgspec.json.encode(run), indent=1))
        write_atomically(self._folder / RECORDS_FILE, _lines(self._records))
        if self._profiles:
            write_atomically(self._folder / PROFILES_FILE, _lines(self._profiles))


def _lines(records: list[Record] | list[ProfileRecord]) -> bytes:
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)
