"""Name -> piece, in closed tables. A folder or a recipe names a piece; only a table here turns the name into code.

A table maps a name to "module:attribute" and imports it on first use, so that reading a recipe costs no torch import.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Generic, TypeVar

from maskery.errors import Unfit, UnknownName

T = TypeVar("T")

ALL: dict[str, Registry[Any]] = {}
"""Every table by its kind: what the conformance suites and the snapshot test walk over."""


class Registry(Generic[T]):
    def __init__(self, kind: str, table: Mapping[str, str]) -> None:
        self.kind = kind
        self._table = dict(table)
        ALL[kind] = self

    def names(self) -> list[str]:
        return list(self._table)

    def check(self, name: str) -> str:
        if name not in self._table:
            raise UnknownName(self.kind, name, self._table)
        return name

    def get(self, name: str) -> T:
        module, _, attribute = self._table[self.check(name)].partition(":")
        piece: T = getattr(import_module(module), attribute)
        return piece

    def validator(self) -> Callable[[str], str]:
        """For a config field: a ValueError (which names the field) instead of our own error."""

        def validate(name: str) -> str:
            try:
                return self.check(name)
            except UnknownName as error:
                raise Unfit(error.cause, error.repair or "") from None

        return validate
