"""The command `vitrail`."""

from vitrail.cli.app import main

__all__ = ["main"]
