"""What tests share: calling commands, private folders, the sabotage framework, the PyTorch environment."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from rnnbench.cli.main import main
from rnnbench.paths import cache_folder

SABOTAGE = Path(__file__).parent / "sabotage"

#: The user's real cache, where the PyTorch environment is made once and shared by all tests and runs.
REAL_CACHE = cache_folder().parent


class Answer:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def call(monkeypatch, capsys):
    """Runs a command in this process, to its exit."""
    before = signal.getsignal(signal.SIGTERM)

    def run(*arguments):
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["rnnbench", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return Answer(ended.value.code, *capsys.readouterr())

    yield run
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def private_folders(tmp_path, monkeypatch):
    """Cache, configuration and working folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def sabotage(private_folders, monkeypatch):
    """The sabotage framework, run by this very interpreter."""
    from rnnbench.environments.registry import use

    monkeypatch.setenv("RNNBENCH_SYSTEMS", str(SABOTAGE))
    # Its honest part is the reference, so its workers must find the driver's package.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path.endswith("src")))
    use("sabotage", Path(sys.executable))
    return private_folders


@pytest.fixture
def environment_of(private_folders, monkeypatch):
    """A framework's environment from the shared cache, created there when it is missing."""
    from rnnbench.environments.registry import resolve
    from rnnbench.environments.spec import parse_spec

    monkeypatch.setenv("XDG_CACHE_HOME", str(REAL_CACHE))
    return lambda framework: resolve(parse_spec(framework), create_missing=True)


@pytest.fixture
def pytorch(environment_of):
    return environment_of("pytorch")
