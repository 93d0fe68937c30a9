"""The class of all commands: an option that would be ignored is refused."""

from __future__ import annotations

from typing import Any

import click


class Command(click.Command):
    """A command that refuses an option given twice, of which click would silently take the last value."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments.

        Raises:
            click.UsageError: an option with one value is given again.
        """
        if not ctx.resilient_parsing:  # as shell completion does
            _, _, order = self.make_parser(ctx).parse_args(args=list(args))
            for option in dict.fromkeys(order):
                if _takes_one(option) and order.count(option) > 1:
                    raise click.UsageError(f"{option.opts[0]} is given {order.count(option)} times; give it once", ctx)
        return super().parse_args(ctx, args)


def _takes_one(parameter: Any) -> bool:
    """Whether a parameter is an option with a value, and with only one; a flag may be repeated."""
    return isinstance(parameter, click.Option) and not (parameter.multiple or parameter.is_flag or parameter.count)
