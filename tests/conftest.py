"""What tests share: calling commands, private folders, the sabotage framework, the PyTorch environment, a browser."""

import json
import os
import random
import shutil
import signal
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from rnnbench import last_run
from rnnbench.cli.main import main
from rnnbench.files import cache_folder
from rnnbench.launch import worker
from rnnbench.launch.probe import Watch

SABOTAGE = Path(__file__).parent / "sabotage"
collect_ignore = ["rnnfuse"]  # these need PyTorch: test_rnnfuse.py runs them in its environment

# A shell that runs the tests in the background makes them ignore Ctrl-C, and so would the drivers that they interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

#: The user's real cache, where environments are created once and shared by all tests and runs.
REAL_CACHE = cache_folder().parent
#: What only tests keep there.
KEPT = cache_folder() / "tests"
LAST_RUN_FILE = last_run._note()


#: The files that take longest are begun first, so that at the end no process is alone with one of them.
LONGEST = (
    *("test_cells", "test_rnnfuse", "test_pytorch_verify", "test_historic_frameworks", "test_historic_versions"),
    *("test_historic_inside", "test_threads", "test_slurm", "test_keras", "test_jax"),
    *("test_tensorflow", "test_timed_program", "test_abilities", "test_own_cell", "test_sabotage", "test_graph"),
    *("test_tensorflow_cuda", "test_pytensor", "test_flax_equinox"),
)


def pytest_collection_modifyitems(items):
    order = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.stem, len(order)))


LAST_RUN = pytest.StashKey[bytes | None]()


def pytest_configure(config):
    """What the user calls `last` is no run of a test."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        config.stash[LAST_RUN] = LAST_RUN_FILE.read_bytes() if LAST_RUN_FILE.exists() else None


def pytest_unconfigure(config):
    before = config.stash.get(LAST_RUN, None)
    if before is not None:
        LAST_RUN_FILE.write_bytes(before)
    elif LAST_RUN in config.stash:
        LAST_RUN_FILE.unlink(missing_ok=True)


class Answer:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch):
    """Output that goes to no terminal has no width; pytest's own workers say that it has 80 columns."""
    monkeypatch.delenv("COLUMNS", raising=False)


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


@pytest.fixture(autouse=True)
def quiet_machine(monkeypatch):
    """Tests run beside other tests: what they count must not depend on launches that are rightly called noisy."""
    monkeypatch.setattr("rnnbench.launch.launcher.is_noisy", lambda launch, threshold: False)
    monkeypatch.setattr("rnnbench.session.describe_load", lambda: "")
    monkeypatch.setattr("rnnbench.session.describe_load_before", lambda machine: "")
    monkeypatch.setattr("rnnbench.profile.watched", lambda method: nullcontext(Watch()))
    # Nor need they wait for a computation whose time says nothing here: test_noise.py has the real one. By chance one
    # processor is called the quietest, so that not all tests are on the same.
    monkeypatch.setattr("rnnbench.launch.probe._lower_quartile", lambda cpu, windows: random.uniform(0.0150, 0.0151))
    # In the user's own cache it would make all later runs look slow.
    monkeypatch.setattr("rnnbench.launch.probe.BestProbe.keep", lambda self: None)


@pytest.fixture
def private_folders(tmp_path, monkeypatch):
    """A cache, a configuration and a working folder for this test alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def offered(private_folders, monkeypatch):
    """Offers the framework of a folder, run by this interpreter; its workers find the driver's package as well."""
    from rnnbench.environments.external import use_interpreter

    def offer(framework, folder):
        monkeypatch.setenv("RNNBENCH_SYSTEMS", str(folder))
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path.endswith("src")))
        use_interpreter(framework, Path(sys.executable))

    return offer


@pytest.fixture
def sabotage(private_folders, offered):
    """The sabotage framework. Its honest system calls the reference, so it needs the driver's package."""
    offered("sabotage", SABOTAGE)
    return private_folders


@pytest.fixture
def pretend_processor(private_folders, monkeypatch):
    """Plan as on another kind of machine."""
    from rnnbench.domain.system import Processor

    def pretend(architecture, *features):
        for module in ("rnnbench.environments.spec", "rnnbench.plan"):
            monkeypatch.setattr(f"{module}.this_processor", lambda: Processor(architecture, frozenset(features)))

    return pretend


@pytest.fixture
def environment_of(private_folders, monkeypatch):
    """A framework's environment from the shared cache, created there when it is missing."""
    from rnnbench.environments.registry import resolve
    from rnnbench.environments.spec import parse_spec

    monkeypatch.setenv("XDG_CACHE_HOME", str(REAL_CACHE))
    return lambda framework: resolve(parse_spec(framework), create_missing=True)


#: Where frameworks keep what they compile, within a worker's own folder: it ends there, and all of it is compiled anew.
COMPILED = ("theano", "pytensor", "inductor")


@pytest.fixture
def keep_compiled(monkeypatch):
    """Let frameworks find what earlier tests have compiled: minutes less. A measurement compiles everything anew."""
    start = worker._start

    def started(environment, job, variables, *others):
        for place in COMPILED:
            kept = str(KEPT / place / environment.id)
            variables = {name: value.replace(f"{{scratch}}/{place}", kept) for name, value in variables.items()}
        return start(environment, job, variables, *others)

    monkeypatch.setattr(worker, "_start", started)


@pytest.fixture
def pytorch(environment_of):
    return environment_of("pytorch")


# --- the page of a report, in a real browser ------------------------------------------------------------


def write_page(path, **runs):
    from rnnbench.report.charts.gallery import draw_charts
    from rnnbench.report.document import Document
    from rnnbench.report.html import as_html

    document = Document(list(runs), list(runs.values()))
    path.write_bytes(as_html(document, draw_charts(document, 2, lambda text: None, for_files=False)))
    return path


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip("no Chromium on the PATH: install it to test the page")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="session")
def pages(browser, tmp_path_factory):
    from report_runs import cpu_run, gpu_run, hostile_run

    folder = tmp_path_factory.mktemp("pages")
    return {
        "two": write_page(folder / "two.html", cpu=cpu_run(), gpu=gpu_run()),
        "hostile": write_page(folder / "hostile.html", hostile=hostile_run()),
    }


@pytest.fixture
def open_page(browser, pages):
    """Opens a page. At the end of the test the console must be empty, and no network request may have been made."""
    said, asked, contexts = [], [], []

    def listen(page):
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda box: (said.append(f"dialog: {box.message}"), box.dismiss()))
        page.on("request", lambda request: asked.append(request.url))

    def visit(name="two", fragment="", **context):
        made = browser.new_context(**{"viewport": {"width": 1300, "height": 900}, **context})
        contexts.append(made)
        page = made.new_page()
        page.set_default_timeout(10_000)
        listen(page)
        page.goto(f"{pages[name].as_uri()}{fragment}")
        return page

    yield visit
    for context in contexts:
        context.close()
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
