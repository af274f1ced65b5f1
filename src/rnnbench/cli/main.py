"""The program: which commands there are, and how it ends.

Commands import what they need when they run, so that `--help` answers at once.
"""

import os
import signal
import sys
from types import FrameType
from typing import Annotated

import typer

from rnnbench.cli import audit, catalogue, compare, env, graph, history, profile, report, run, show, verify
from rnnbench.errors import UserError

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: importing Rich for it would double the start-up time
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(run.run)
app.command("show")(show.show)
app.command("explain")(show.explain)
app.command("report")(report.report)
app.command("compare")(compare.compare)
app.command("history")(history.history)
app.command("check")(show.check)
app.command("audit")(audit.audit)
app.command("verify")(verify.verify)
app.command("graph")(graph.graph)
app.command("profile")(profile.profile)
app.command("systems")(catalogue.systems)
app.command("workloads")(catalogue.workloads)
app.add_typer(env.app, name="env")


def _print_version(wanted: bool) -> None:
    if wanted:
        from rnnbench.version import __version__

        typer.echo(f"rnnbench {__version__}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """What flexibility costs in recurrent networks, measured on this machine and proved row by row.

    \b
    Examples:
      rnnbench systems                                     what can be run
      rnnbench run 'pytorch/*/eager' -w ce-short           time some of it
      rnnbench show runs/2026-11-15-101500                 print the tables again
      rnnbench explain runs/2026-11-15-101500              say what its numbers mean
      rnnbench report runs/2026-11-15-101500 --out report  a page, charts, Markdown, CSV
      rnnbench compare runs/before runs/after              what has become faster or slower
      rnnbench history runs/versions                       one system over the versions of its framework
      rnnbench verify 'pytorch/*'                          prove every system, time nothing
      rnnbench graph pytorch/fine/script                   the graph it really builds
      rnnbench profile pytorch/fine/eager -w ptb-lm        why it is slow: operators, bottleneck, new shapes
    """


def main() -> None:
    """Run a command; bad input ends with 2 and a plain message, an interruption with 130."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        app()
    except UserError as error:
        print(f"rnnbench: {error.what}", file=sys.stderr)
        if error.hint:
            print(f"  {error.hint}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        # The reader has gone (`rnnbench show … | head`): nothing more to say, not even on exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except KeyboardInterrupt:
        print("rnnbench: interrupted", file=sys.stderr)
        sys.exit(130)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Being told to end is handled as Ctrl-C is: what was measured is safe, workers are stopped."""
    raise KeyboardInterrupt
