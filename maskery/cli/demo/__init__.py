"""`maskery demo`: the whole way once, on a fresh machine and without a download. The verb is in `command`."""

from maskery.cli.demo.command import demo

__all__ = ["demo"]
