"""Who is told how a run is going. The default hears nothing; the terminal's is in `cli/progress.py`."""

from rnnbench.domain.case import Case
from rnnbench.domain.profile import ProfileRecord
from rnnbench.domain.result import Launch, Limit, Verification


class Listener:
    """Called between measurements and on a worker's own events, never on a timer."""

    def note(self, text: str) -> None:
        """Something slow is being prepared."""

    def verifying(self, total: int) -> None:
        """Verification begins."""

    def verified(self, verification: Verification) -> None:
        """One verification has ended."""

    def limiting(self, total: int) -> None:
        """The machine's limit is measured, with so many launches."""

    def limited(self, limit: Limit) -> None:
        """One of them has ended and is stored."""

    def measuring(self, total: int) -> None:
        """Timing begins, with so many launches to come."""

    def launching(self, case: Case, round_number: int) -> None:
        """One launch begins."""

    def stage(self, case: Case, stage: str) -> None:
        """The worker has entered a stage."""

    def launched(self, launch: Launch) -> None:
        """One launch has ended and is stored."""

    def profiling(self, total: int) -> None:
        """Profiling begins, with so many launches."""

    def profiled(self, record: ProfileRecord) -> None:
        """One of them has ended and is stored."""
