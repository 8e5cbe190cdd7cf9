"""`maskery completion SHELL`: a script that completes verbs, options, names of recipes and sizes, and paths.

The script is written from the table of verbs and their signatures when it is asked for. Nothing of maskery runs while a
key is pressed, so completing takes no time; a newer maskery wants a newer script.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from shlex import quote
from typing import Annotated, Any

import typer

from maskery.errors import UnknownName

_ANYWHERE = ("--help",)


@dataclass(frozen=True)
class Option:
    name: str
    help: str
    takes: tuple[str, ...] | None
    """The values that are known, () for any other value, None where there is no value."""


@dataclass(frozen=True)
class Place:
    """What may follow a verb: `words` in any position, then options."""

    path: str
    """The verb, or a verb and the verb below it; "" is the beginning."""
    words: tuple[str, ...]
    options: tuple[Option, ...]


def completion(
    shell: Annotated[str, typer.Argument(metavar="bash|zsh|fish", help="The shell to print a script for.")],
) -> None:
    """Print a completion script; how to use it stands in its first lines."""
    if shell not in SCRIPTS:
        raise UnknownName("shell", shell, SCRIPTS)
    print(SCRIPTS[shell](places()))


def places() -> list[Place]:
    """Every place of the command line, from the same table that runs it."""
    from maskery.cli.app import VERBS, load_verb
    from maskery.cli.settings import new_app

    found = [Place("", tuple(VERBS), tuple(Option(name, "", None) for name in ("--help", "--version")))]
    for name in VERBS:
        app = load_verb(name)
        if not isinstance(app, typer.Typer):
            function, app = app, new_app()
            app.command()(function)
        found += _below(name, typer.main.get_command(app))
    return found


def _below(path: str, command: Any) -> Iterator[Place]:
    inner = getattr(command, "commands", {})
    words = list(inner)
    options = [Option(name, "Show what it takes.", None) for name in _ANYWHERE]
    for parameter in command.params:
        if not parameter.opts[0].startswith("-"):
            words += _choices(parameter)
            continue
        takes = None if getattr(parameter, "is_flag", False) else _choices(parameter)
        options += [Option(name, getattr(parameter, "help", None) or "", takes) for name in parameter.opts]
    yield Place(path, tuple(dict.fromkeys(words)), tuple(options))
    for name, each in inner.items():
        yield from _below(f"{path} {name}", each)


def _choices(parameter: Any) -> tuple[str, ...]:
    """Known values of a parameter: recipes, sizes, or what its metavar lists as strict|replace."""
    from maskery.model.config import SIZES
    from maskery.recipes.layers import names

    metavar = parameter.metavar or ""
    if "RECIPE" in metavar:
        return tuple(names())
    if "--size" in parameter.opts:
        return tuple(SIZES)
    return tuple(part for part in metavar.split("|") if re.fullmatch(r"[a-z][a-z0-9_-]*", part) and "|" in metavar)


# -- scripts


def _bash(found: list[Place]) -> str:
    return "\n".join(
        [
            "# Completion of maskery for bash. For this shell: source <(maskery completion bash)",
            "# For every new one: maskery completion bash > ~/.local/share/bash-completion/completions/maskery",
            "_maskery() {",
            '    local current="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"',
            '    local place="" choices="" number',
            "    for ((number = 1; number < COMP_CWORD; number++)); do",
            '        case "$place/${COMP_WORDS[number]}" in',
            f'            {_steps(found)}) place="${{place:+$place }}${{COMP_WORDS[number]}}" ;;',
            "        esac",
            "    done",
            *_cases(found),
            '    COMPREPLY=($(compgen -W "$choices" -- "$current"))',
            "}",
            "complete -o default -F _maskery maskery",
        ]
    )


def _zsh(found: list[Place]) -> str:
    return "\n".join(
        [
            "#compdef maskery",
            "# Completion of maskery for zsh. For this shell: source <(maskery completion zsh)",
            "# For every new one, in a folder of $fpath: maskery completion zsh > ~/.zfunc/_maskery",
            "_maskery() {",
            '    local current="${words[CURRENT]}" before="${words[CURRENT-1]}"',
            '    local place="" choices="" number',
            "    for ((number = 2; number < CURRENT; number++)); do",
            '        case "$place/${words[number]}" in',
            f'            {_steps(found)}) place="${{place:+$place }}${{words[number]}}" ;;',
            "        esac",
            "    done",
            *_cases(found),
            '    [[ -n "$choices" ]] && compadd -- ${=choices}',
            '    [[ "$current" == -* || -z "$place" ]] || _files',
            "}",
            'if [[ "$funcstack[1]" == _maskery ]]; then _maskery "$@"; else compdef _maskery maskery; fi',
        ]
    )


def _steps(found: list[Place]) -> str:
    """The words that lead to a place, as a pattern: "/corpus", "corpus/build"."""
    steps = [" ".join(place.path.split(" ")[:-1]) + "/" + place.path.split(" ")[-1] for place in found if place.path]
    return "|".join(map(quote, steps))


def _cases(found: list[Place]) -> list[str]:
    """What to offer: the values of the option before; otherwise words, or options after a dash."""
    lines = ['    case "$place:$before" in']
    for place in found:
        for option in place.options:
            if option.takes is not None:
                lines.append(
                    f"        {quote(f'{place.path}:{option.name}')}) choices={quote(' '.join(option.takes))} ;;"
                )
    lines += ['        *) case "$place:$current" in']
    for place in found:
        options = " ".join(option.name for option in place.options)
        lines.append(f"            {quote(place.path + ':-')}*) choices={quote(options)} ;;")
        lines.append(f"            {quote(place.path + ':')}*) choices={quote(' '.join(place.words))} ;;")
    return [*lines, "        esac ;;", "    esac"]


def _fish(found: list[Place]) -> str:
    steps = " ".join(_steps(found).split("|"))
    lines = [
        "# Completion of maskery for fish. For this shell: maskery completion fish | source",
        "# For every new one: maskery completion fish > ~/.config/fish/completions/maskery.fish",
        "function __maskery_at",
        "    set -l place ''",
        "    for word in (commandline -opc)[2..-1]",
        '        switch "$place/$word"',
        f"            case {steps}",
        '                set place (string trim -- "$place $word")',
        "        end",
        "    end",
        '    test "$place" = "$argv[1]"',
        "end",
    ]
    for place in found:
        start = f"complete -c maskery -n {quote(f'__maskery_at {quote(place.path)}')}"
        if place.words:
            lines.append(f"{start} {'-f ' if not place.path else ''}-a {quote(' '.join(place.words))}")
        for option in place.options:
            value = "" if option.takes is None else f" -x -a {quote(' '.join(option.takes))}" if option.takes else " -r"
            told = f" -d {quote(option.help)}" if option.help else ""
            name = f"-l {option.name[2:]}" if option.name.startswith("--") else f"-s {option.name[1:]}"
            lines.append(f"{start} {name}{value}{told}")
    return "\n".join(lines)


SCRIPTS: dict[str, Callable[[list[Place]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
