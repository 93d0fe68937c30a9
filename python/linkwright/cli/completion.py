"""`linkwright completion SHELL`: the script that lets a shell complete verbs, options and names."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from linkwright.cli.options import Command


@click.command(cls=Command, name="completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Write it to the folder where the shell looks for completion scripts.

    \b
    bash:  linkwright completion bash > ~/.local/share/bash-completion/completions/linkwright
    zsh:   linkwright completion zsh > "${fpath[1]}/_linkwright"
    fish:  linkwright completion fish > ~/.config/fish/completions/linkwright.fish
    """
    from linkwright.cli.main import linkwright

    completer = get_completion_class(shell)
    click.echo(completer(linkwright, {}, "linkwright", "_LINKWRIGHT_COMPLETE").source())
