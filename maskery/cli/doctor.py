"""`maskery doctor`: what this machine and installation are, and whether corpora, runs and models are whole."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from maskery.cli.settings import JsonOption, PickleOption


def doctor(
    paths: Annotated[list[Path] | None, typer.Argument(metavar="PATH", help="A corpus, a run or a model.")] = None,
    allow_pickle: PickleOption = False,
    as_json: JsonOption = False,
) -> int:
    """Describe this machine, and check folders byte by byte. Exit code 2 if something is damaged."""
    from maskery.cli.output import emit_json, results

    verdicts = [examine(path, allow_pickle) for path in paths or ()]
    packages, extras = dependencies()
    missing = [name for name, version in packages.items() if version is None]
    broken = bool(missing) or any(verdict.problems for verdict in verdicts)
    if as_json:
        folders = [asdict(verdict) | {"whole": verdict.whole} for verdict in verdicts]
        emit_json({"machine": machine_facts(), "packages": packages, "extras": extras, "folders": folders})
        return 2 if broken else 0
    console = results()
    for name, value in machine_facts().items():
        console.print(f"{name.replace('_', ' '):18} {value}")
    versions = ", ".join(f"{name} {version or 'MISSING'}" for name, version in packages.items())
    console.print(f"{'packages':18} {versions}")
    for extra, found in extras.items():
        there = ", ".join(f"{name} {version or '(not installed)'}" for name, version in found.items())
        console.print(f"{'extra ' + extra:18} {there}")
    for verdict in verdicts:
        console.print(verdict.text(), soft_wrap=True)
    if missing:
        console.print(f"MISSING: {', '.join(missing)}\n  repair: pip install maskery")
    return 2 if broken else 0


@dataclass
class Verdict:
    """What a folder is, and what is wrong with it."""

    path: str
    kind: str = "unknown"
    facts: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    opened: bool = True
    """False where the weights are a pickle that was not asked for: neither whole nor damaged, as far as is known."""

    @property
    def whole(self) -> bool:
        return self.opened and not self.problems

    def text(self) -> str:
        if self.kind == "unknown":
            return f"{self.path}: {'; '.join(self.problems)}"
        plain = {name.replace("heldout_", "held out "): value for name, value in self.facts.items()}
        told = [f"{name} {value:,}" if isinstance(value, int) else f"{name} {value}" for name, value in plain.items()]
        state = "DAMAGED" if self.problems else "whole" if self.opened else "pickle, not opened"
        head = f"{self.path}: {self.kind}, {state}"
        return "\n".join(
            [
                f"{head} ({', '.join(told)})" if told else head,
                *(f"  {each}".replace("\n", "\n  ") for each in self.problems),
                *([] if self.opened else ["  --allow-pickle reads its tensors, without running any code in it"]),
            ]
        )


def machine_facts() -> dict[str, Any]:
    import os
    import platform

    import torch

    from maskery.model.multiply import library
    from maskery.train import machine
    from maskery.train.precision import bfloat16_hardware

    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "torch_threads": torch.get_num_threads(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "cpu_bfloat16": "in hardware" if bfloat16_hardware() else "no hardware for it",
        "float32_products": library(),
        "gpu": torch.cuda.is_available(),
        "several_ranks": ", ".join(exchanges()) or "not in this build of torch",
        "memory_free_gib": round(machine.available_memory() / 2**30, 1),
        "matmul_gflops": round(machine.matmul_peak() / 1e9),
    }


def exchanges() -> list[str]:
    """By which means ranks can talk to each other here: gloo between CPUs, nccl between GPUs."""
    import torch.distributed as dist

    if not dist.is_available():
        return []
    return [name for name, there in (("gloo", dist.is_gloo_available()), ("nccl", dist.is_nccl_available())) if there]


def dependencies() -> tuple[dict[str, str | None], dict[str, dict[str, str | None]]]:
    """Installed version of each required package, and of each package of an extra; None where it is missing."""
    from importlib.metadata import PackageNotFoundError, requires, version

    def installed(name: str) -> str | None:
        try:
            return version(name)
        except PackageNotFoundError:
            return None

    core: dict[str, str | None] = {}
    extras: dict[str, dict[str, str | None]] = {}
    for line in requires("maskery") or ():
        name = re.split(r"[\s;<>=!~\[(]", line, maxsplit=1)[0]
        extra = re.search(r"extra == ['\"]([^'\"]+)", line)
        (extras.setdefault(extra[1], {}) if extra else core)[name] = installed(name)
    return core, extras


def _trained(path: Path) -> str | None:
    """The kind of a run of `finetune` or `vectors train`; None where it is neither."""
    from maskery.cli.trained import kind_of

    return None if (path / "recipe.toml").exists() else kind_of(path)


def _once(problems: list[str]) -> Callable[[str], None]:
    """Several ways of opening a damaged file say the same."""
    return lambda problem: None if problem in problems else problems.append(problem)


def examine(path: Path, allow_pickle: bool = False) -> Verdict:
    """Look at one folder; whatever is wrong becomes a line of the verdict."""
    from maskery.cli.trained import check
    from maskery.errors import MaskeryError

    verdict = Verdict(str(path))
    try:
        if (path / "tokens.bin").exists() or (path / "flags.bin").exists():
            _corpus(path, verdict)
        elif kind := _trained(path):
            verdict.kind = kind
            verdict.facts = check(path, _once(verdict.problems))
        elif (path / "recipe.toml").exists() or (path / "checkpoints").exists():
            _run(path, verdict, allow_pickle)
        elif (path / "config.json").exists():
            _model(path, "model", verdict, allow_pickle)
        else:
            verdict.problems.append("no such path" if not path.exists() else "is no corpus, no run and no model")
    except MaskeryError as error:
        verdict.problems.append(error.text())
    except OSError as error:
        verdict.problems.append(f"cannot be read: {error.strerror or error}")
    return verdict


def _corpus(path: Path, verdict: Verdict) -> None:
    from maskery.corpus.store import Corpus

    verdict.kind = "corpus"
    corpus = Corpus.open(path)
    corpus.verify()
    counts = corpus.counts
    verdict.facts = {
        name: counts[name] for name in ("documents", "heldout_documents", "sentences", "tokens", "unknown")
    }
    verdict.facts["vocabulary"] = corpus.vocabulary
    if corpus.tokenizer.fingerprint != corpus.manifest["tokenizer"]["fingerprint"]:
        verdict.problems.append("the tokenizer is not the one the corpus was built with")


def _model(path: Path, kind: str, verdict: Verdict, allow_pickle: bool) -> None:
    from maskery.checkpoint.load import load
    from maskery.checkpoint.locate import read_config, verify
    from maskery.checkpoint.tensors import is_pickle
    from maskery.files import MANIFEST

    verdict.kind = kind
    if is_pickle(path) and not allow_pickle:
        verify(path)
        verdict.opened = False
        verdict.facts["family"] = read_config(path)["model_type"]
        return
    model = load(path, allow_pickle=allow_pickle)
    verdict.facts |= {"family": model.family, "parameters": model.parameters_by_part()["total"]}
    if not (path / MANIFEST).is_file():
        verdict.facts["checksums"] = "none (no manifest.json)"
    verdict.facts |= {name: len(found) for name in ("missing", "unused") if (found := getattr(model.report, name))}


def _run(path: Path, verdict: Verdict, allow_pickle: bool) -> None:
    """Every checkpoint, and the final model where there is one; one damaged part does not hide another."""
    from maskery.checkpoint.locate import verify
    from maskery.errors import MaskeryError
    from maskery.train.folder import RunFolder

    verdict.kind = "run"
    folder = RunFolder(path)
    points = folder.checkpoints()
    verdict.facts = {"recipe": folder.recipe.name, "checkpoints": len(points)}
    finished = False
    try:
        finished = bool(folder.state.get("finished"))
        verdict.facts["finished"] = "yes" if finished else "no"
    except (MaskeryError, OSError) as error:
        verdict.problems.append(str(error))
    for place in [each for _, each in points] + [path] * finished:
        try:
            verify(place)  # `load` would go on to a checkpoint where the final model is gone
            _model(place, "run", verdict, allow_pickle)
        except MaskeryError as error:
            verdict.problems.append(error.text())
