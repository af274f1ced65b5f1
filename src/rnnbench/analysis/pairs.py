"""Which case of one run goes with which of another: all but the environment's name must be the same."""

from collections.abc import Iterator

import msgspec

from rnnbench.analysis.standing import Standing, find_standing
from rnnbench.domain.case import Case, LeftOut
from rnnbench.errors import UserError
from rnnbench.store.folder import Contents

Entry = Standing | LeftOut
_Key = tuple[str, ...]


class Pairs(msgspec.Struct, frozen=True):
    """Pairs in the order of run A, and the cases that have none."""

    both: list[tuple[Entry, Entry]]
    only_a: list[Case]
    only_b: list[Case]


def choose_environment(contents: Contents, environment: str) -> Contents:
    """The run as if it had been made in that environment alone: how two versions of one run are compared."""
    known = {case.environment for case in contents.run.cases}
    if environment not in known:
        raise UserError(f"the run has no environment '{environment}'", f"it has: {', '.join(sorted(known))}")
    run = contents.run
    kept = msgspec.structs.replace(
        run,
        cases=tuple(case for case in run.cases if case.environment == environment),
        left_out=tuple(left for left in run.left_out if left.case.environment == environment),
    )
    return msgspec.structs.replace(contents, run=kept)


def match(a: Contents, b: Contents) -> Pairs:
    """By environment where its name is the same; else one with one, as when a framework was updated."""
    ours, theirs = _entries(a), _entries(b)
    both: list[tuple[Entry, Entry]] = []
    only_a: list[Case] = []
    for key, mine in ours.items():
        other = theirs.get(key, {})
        pairs = [(name, name) for name in mine if name in other]
        left, right = [name for name in mine if name not in other], [name for name in other if name not in mine]
        if len(left) == len(right) == 1:
            pairs.append((left[0], right[0]))
            left = []
        for first, second in pairs:
            one, another = mine[first], other.pop(second)
            if isinstance(one, Standing) or isinstance(another, Standing):
                both.append((one, another))
        only_a += [mine[name].case for name in left if isinstance(mine[name], Standing)]
    only_b = [entry.case for entries in theirs.values() for entry in entries.values() if isinstance(entry, Standing)]
    return Pairs(both, only_a, only_b)


def _entries(contents: Contents) -> dict[_Key, dict[str, Entry]]:
    found: dict[_Key, dict[str, Entry]] = {}
    for entry in _all(contents):
        case = entry.case
        found.setdefault((*case.group, case.system), {})[case.environment] = entry
    return found


def _all(contents: Contents) -> Iterator[Entry]:
    yield from find_standing(contents)
    yield from contents.run.left_out
