"""The program: its commands and its exit codes.

Commands import what they need when they run, so that `--help` is fast.
"""

import os
import signal
import sys
from types import FrameType
from typing import Annotated

import typer

from rnnbench.cli import (
    abilities,
    audit,
    catalogue,
    compare,
    env,
    graph,
    history,
    part,
    profile,
    report,
    run,
    show,
    verify,
)
from rnnbench.cli.options import say
from rnnbench.errors import UserError, describe_os_error

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: importing Rich for it would double the start-up time
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run", cls=run.RunCommand)(run.run)
app.command("show")(show.show)
app.command("explain")(show.explain)
app.command("report")(report.report)
app.command("compare")(compare.compare)
app.command("history")(history.history)
app.command("check")(show.check)
app.command("audit")(audit.audit)
app.command("verify")(verify.verify)
app.command("abilities")(abilities.abilities)
app.command("graph")(graph.graph)
app.command("profile")(profile.profile)
app.command("systems")(catalogue.systems)
app.command("workloads")(catalogue.workloads)
app.add_typer(env.app, name="env")
app.command("part", hidden=True)(part.part)


def _print_version(wanted: bool) -> None:
    if wanted:
        from rnnbench.version import __version__

        say(f"rnnbench {__version__}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Measure what flexibility costs in recurrent networks, on this machine, with every row verified.

    \b
    Examples:
      rnnbench systems                                     list what can be run
      rnnbench run 'pytorch/*/eager' -w ce-short           verify and time some systems
      rnnbench show last                                   print the tables of the newest run again
      rnnbench explain last                                say what to do, in ten lines
      rnnbench report last --out report                    write a page, charts, Markdown, CSV
      rnnbench compare runs/before runs/after              show what became faster or slower
      rnnbench history runs/versions                       show systems over framework versions
      rnnbench verify 'pytorch/*'                          verify systems without timing them
      rnnbench abilities 'pytorch/*'                       what they can do beyond the plain layer
      rnnbench graph pytorch/fine/script                   show the graph that it builds
      rnnbench profile pytorch/fine/eager -w ptb-lm        explain why it is slow
    """


def main() -> None:
    """Run a command. The exit code is 2 after bad input, with a plain message, and 130 after an interruption."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        app()
    except UserError as error:
        say(f"rnnbench: {error.what}", err=True)
        if error.hint:
            say(f"  {error.hint}", err=True)
        sys.exit(2)
    except BrokenPipeError:
        # The reader has closed the pipe (`rnnbench show … | head`): print nothing more, not even on exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except MemoryError as error:
        say(f"rnnbench: there is not enough memory{f': {error}' if str(error) else ''}", err=True)
        say("  choose a smaller workload, such as -w 'ptb-lm[batch=16]', or close other programs", err=True)
        sys.exit(2)
    except OSError as error:
        # A disk that is full, a folder that is gone or cannot be written to: the message says which, no traceback.
        say(f"rnnbench: {describe_os_error(error)}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        print("rnnbench: interrupted", file=sys.stderr)
        sys.exit(130)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Handle SIGTERM like Ctrl-C: stored results stay, and workers are ended."""
    raise KeyboardInterrupt
