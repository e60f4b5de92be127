"""Which commands there are."""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from langchain_memrl import __version__
from langchain_memrl.cli.bank import list_memories, search, show, stats
from langchain_memrl.cli.bench import bench
from langchain_memrl.cli.demo import demo
from langchain_memrl.cli.episodes import episodes, expire, lift
from langchain_memrl.cli.eval import app as eval_app
from langchain_memrl.cli.eval_report import report
from langchain_memrl.cli.threshold import threshold
from langchain_memrl.cli.upkeep import (
    backup,
    compact,
    export,
    forget,
    history,
    import_,
    prune,
    rebuild,
    reembed,
    verify,
)
from langchain_memrl.store.places import without_secrets


class Group(TyperGroup):
    """Tells what is wrong with a command line, but not the password that stands in it."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            if hasattr(error, "format_message") and isinstance(getattr(error, "message", 0), str):
                error.message = without_secrets(error.message)  # type: ignore[attr-defined]
            raise


app = typer.Typer(
    cls=Group,
    help="Episodic memory that learns which of its memories help.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Episodic memory that learns which of its memories help."""


app.command()(demo)
app.command()(stats)
app.command("list")(list_memories)
app.command()(show)
app.command()(search)
app.command()(history)
app.command()(lift)
app.command()(episodes)
app.command()(expire)
app.command()(verify)
app.command()(rebuild)
app.command()(export)
app.command("import")(import_)
app.command()(forget)
app.command()(prune)
app.command()(compact)
app.command()(backup)
app.command()(reembed)
app.command()(threshold)
app.command()(bench)
eval_app.command()(report)
app.add_typer(eval_app, name="eval", no_args_is_help=True)
