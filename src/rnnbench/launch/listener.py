"""The interface that is called as a run proceeds. This default does nothing; the terminal's is in `cli/progress.py`."""

from rnnbench.domain.ability import Entry
from rnnbench.domain.case import Case
from rnnbench.domain.profile import ProfileRecord
from rnnbench.domain.result import Launch, Limit, Verification


class Listener:
    """Called between measurements and on a worker's events, never on a timer."""

    def note(self, text: str) -> None:
        """A line of text about what is being done or what is wrong."""

    def preparing(self, text: str) -> None:
        """What is being installed at this moment: for a line in place, since the whole is in the environment's log."""

    def verifying(self, total: int) -> None:
        """Verification begins, with `total` cases to verify."""

    def verified(self, verification: Verification) -> None:
        """One verification has ended."""

    def measuring_limits(self, total: int) -> None:
        """The machine's limits are measured next, with `total` launches."""

    def limit_measured(self, limit: Limit) -> None:
        """One limit is measured and stored."""

    def timing(self, total: int) -> None:
        """Timing begins, with `total` launches."""

    def launching(self, case: Case, round_number: int) -> None:
        """One launch begins."""

    def stage(self, case: Case, stage: str) -> None:
        """The worker has entered a stage."""

    def launched(self, launch: Launch) -> None:
        """One launch has ended and is stored."""

    def profiling(self, total: int) -> None:
        """Profiling begins, with `total` launches."""

    def profiled(self, record: ProfileRecord) -> None:
        """One profile launch has ended and is stored."""

    def trying_abilities(self, total: int) -> None:
        """Abilities are tried next, `total` of them."""

    def trying(self, case: Case, ability: str) -> None:
        """A worker has begun with an ability. Called by the thread that follows the worker."""

    def ability_tried(self, entry: Entry) -> None:
        """One ability of one system was tried."""
