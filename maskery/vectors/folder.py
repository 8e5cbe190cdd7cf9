"""Folders of sentence-transformers, in and out: modules.json names the steps, each with a folder of its own.

What sentence-transformers has no step for (a learned attention, a flow) is a step of ours there, and that is said.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from maskery import files
from maskery.checkpoint.folder import Beside, write_model
from maskery.checkpoint.load import load
from maskery.checkpoint.locate import CONFIG, GENERATOR, is_run, write_manifest
from maskery.checkpoint.model import Model
from maskery.checkpoint.tensors import HEADS, INDEX, PICKLE, WEIGHTS, read_json, read_weights, write_safetensors
from maskery.errors import CheckpointError, ExistsError
from maskery.tasks.framing.frame import longest_row
from maskery.text.tokenizer import Tokenizer
from maskery.vectors.model import VectorModel
from maskery.vectors.modules import ANEW, FLOW, MODULES, OURS, Module, modules_of, steps_of, wrong
from maskery.vectors.settings import VectorsConfig
from maskery.vectors.steps import first_of, width_after

SETTINGS, LENGTHS, TOKENIZER = "config_sentence_transformers.json", "sentence_bert_config.json", "tokenizer_config.json"
OLD_LENGTHS = tuple(
    f"sentence_{each}_config.json" for each in ("roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
"""What the first releases call the file of lengths, by the network's family; looked for in this order."""
THEIRS, HERE = "sentence_transformers.models", "maskery.vectors"
OTHER_VECTORS = ("colbert_linear.pt", "sparse_linear.pt")
"""Files of bge-m3 for vectors of other kinds than one a text."""
USUAL = 256
"""Slots of a text, where nobody said."""
_AGAIN = "fetch or save it again"
_STEP_FOLDER = re.compile(r"\d+_\w+")


# -- in


def is_encoder(folder: Path) -> bool:
    """Whether the folder says how vectors are made."""
    return (folder / MODULES).is_file()


def read_encoder(path: str | os.PathLike[str], *, allow_pickle: bool = False) -> VectorModel:
    """A folder of sentence-transformers, or one that `write_encoder` wrote."""
    folder = Path(path)
    modules = _listed(folder)
    if not modules or _kind(modules[0]) != "Transformer":
        raise wrong(folder / MODULES, "does not begin with a Transformer")
    first = folder / _inside(modules[0], folder)
    model = load(first, allow_pickle=allow_pickle)
    said = steps_of(
        [_module(folder, each, allow_pickle) for each in modules[1:]], model.config.layers, folder / MODULES
    )
    settings = _read(folder / SETTINGS)
    lengths = _lengths(first)
    _require_last_states(lengths, first)
    notes = [*filter(None, [model.note]), *_not_read(folder)]
    if lengths.get("do_lower_case") and model.tokenizer is not None and not _lowers(model.tokenizer):
        model.tokenizer = model.tokenizer.lowercased()
        notes.append(f"do_lower_case in {LENGTHS}: texts are put in lower case before the tokenizer")
    width = width_after(len(said.pool) * model.config.width, said.steps)
    if (kept := _kept(settings, folder / SETTINGS)) is not None and kept < width:
        said.steps.append(first_of(width, kept))
        notes.append(f"truncate_dim in {SETTINGS}: vectors are their first {kept} of {width} dimensions")
    model.note = "; ".join(notes)
    try:
        config = VectorsConfig(
            pool=said.pool,
            length=_length(lengths, _read(first / TOKENIZER), model),
            pool_prompt=said.pool_prompt,
            similarity=settings.get("similarity_fn_name") or "cosine",
            **_prompts(settings, folder / SETTINGS),
        )
    except ValidationError as error:
        told = error.errors()[0]
        cause = f"{'.'.join(map(str, told['loc']))}: {told['msg']}"
        raise CheckpointError(cause, where=folder / SETTINGS, repair=ANEW) from None
    made = VectorModel(model, config, said.steps)
    _fill_attention(made, said.attention, folder)
    return made


def _listed(folder: Path) -> list[dict[str, Any]]:
    path = folder / MODULES
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"cannot be read: {error}", where=path, repair=_AGAIN) from None
    if not isinstance(found, list) or not all(_is_step(each) for each in found):
        raise wrong(path, "is no list of steps with idx, path and type", _AGAIN)
    return sorted(found, key=lambda each: int(each["idx"]))


def _is_step(told: Any) -> bool:
    if not isinstance(told, dict):
        return False
    return isinstance(told.get("idx"), int) and all(isinstance(told.get(key), str) for key in ("path", "type"))


def _kind(told: Mapping[str, Any]) -> str:
    return str(told["type"]).rpartition(".")[2]


def _inside(told: Mapping[str, Any], folder: Path) -> str:
    path = str(told["path"])
    if Path(path).is_absolute() or ".." in Path(path).parts:
        raise wrong(folder / MODULES, f"{path} lies outside of the folder", _AGAIN)
    return path


def _module(folder: Path, told: Mapping[str, Any], allow_pickle: bool) -> Module:
    place = folder / _inside(told, folder)
    held = any((place / name).is_file() for name in (WEIGHTS, INDEX, PICKLE))
    tensors = read_weights(place, allow_pickle=allow_pickle) if held else {}
    return Module(_kind(told), _read(place / CONFIG), {name: each.float() for name, each in tensors.items()}, place)


def _read(path: Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}


def _lengths(folder: Path) -> dict[str, Any]:
    return next((told for name in (LENGTHS, *OLD_LENGTHS) if (told := _read(folder / name))), {})


_HARMLESS = ("output_hidden_states", "output_attentions", "attn_implementation", "torch_dtype", "dtype", "use_cache")
"""Settings of a network that change no vector."""


def _require_last_states(lengths: Mapping[str, Any], folder: Path) -> None:
    """What is pooled are the last states of the network that config.json describes, and nothing else of it."""
    text = lengths.get("modality_config")
    text = text.get("text") if isinstance(text, dict) else None
    text = text if isinstance(text, dict) else {}
    read = {
        "transformer_task": (lengths.get("transformer_task"), "feature-extraction"),
        "method": (text.get("method"), "forward"),
        "method_output_name": (text.get("method_output_name"), "last_hidden_state"),
        "module_output_name": (lengths.get("module_output_name"), "token_embeddings"),
    }
    for key, (value, known) in read.items():
        if value not in (None, known):
            raise wrong(folder, f"{key} = {value!r}: vectors are made of the network's last states only here")
    for key in ("config_args", "config_kwargs"):
        other = lengths.get(key) or {}
        changed = sorted(set(other) - set(_HARMLESS)) if isinstance(other, dict) else [str(other)]
        if changed:
            raise wrong(
                folder, f"{key} sets {changed[0]} of the network in the place of {CONFIG}", f"write it into {CONFIG}"
            )


def _kept(settings: Mapping[str, Any], where: Path) -> int | None:
    """How many dimensions of every vector are kept."""
    kept = settings.get("truncate_dim")
    if kept is None:
        return None
    if not isinstance(kept, int) or isinstance(kept, bool) or kept < 1:
        raise wrong(where, f"truncate_dim = {kept!r} is no number of dimensions", _AGAIN)
    return kept


def _lowers(tokenizer: Tokenizer) -> bool:
    return tokenizer.encode_marked("ABC Äx") == tokenizer.encode_marked("abc äx")


def _not_read(folder: Path) -> list[str]:
    """What no step of modules.json names: bge-m3 has a vector a token and a weight a token beside its dense vectors."""
    found = [name for name in OTHER_VECTORS if (folder / name).is_file()]
    told = f"{' and '.join(found)} {'is' if len(found) == 1 else 'are'} not read: vectors are the dense ones"
    return [told] if found else []


def _length(lengths: Mapping[str, Any], tokenizer: Mapping[str, Any], model: Model) -> int:
    """As sentence-transformers has it: what the folder says, else what the tokenizer says, and no more than fit."""
    told = [lengths.get("max_seq_length"), tokenizer.get("model_max_length")]
    said = next((each for each in told if isinstance(each, int) and 1 < each < 10**9), None)
    most = longest_row(model)
    return min(each for each in (said, most, USUAL if said is most is None else None) if each is not None)


def _prompts(settings: Mapping[str, Any], where: Path) -> dict[str, Any]:
    """Those that say something; the one that is used by itself is one of them."""
    told = settings.get("prompts") or {}
    if not isinstance(told, dict) or not all(isinstance(each, str | None) for each in told.values()):
        raise wrong(where, "prompts are no table of texts", _AGAIN)
    prompts = {name: text for name, text in told.items() if text}
    usual = settings.get("default_prompt_name")
    if usual is not None and usual not in told:
        raise wrong(where, f"default_prompt_name is {usual!r}, and prompts has no such name", _AGAIN)
    return {"prompts": prompts, "prompt": usual if usual in prompts else None}


def _fill_attention(made: VectorModel, state: Mapping[str, Any] | None, folder: Path) -> None:
    if made.pooling.attention is None:
        return
    query = (state or {}).get("query")
    if query is None or query.shape != made.pooling.attention.query.shape:
        raise wrong(folder / MODULES, "the query of its attention is missing, or of another width", _AGAIN)
    made.pooling.attention.load_state_dict({"query": query})


# -- out


def write_encoder(made: VectorModel, path: str | os.PathLike[str], *, replace_old: bool = False) -> tuple[str, ...]:
    """Write the folder, whole or not at all; what is worth telling."""
    folder = Path(path).resolve()
    old = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    if old and (not replace_old or not folder.is_dir() or is_run(folder)):
        repair = "give a new path" if replace_old else "give a new path, or save(path, replace=True)"
        raise ExistsError("something is there already", where=Path(path), repair=repair)
    modules, model = modules_of(made), made.model
    second = model.generator
    with files.new_folder(folder) as temporary:
        saved = write_model(
            temporary, model.network, model.heads, model.tokenizer, origin=model.origin, rows=model.rows,
            generator=None if second is None else Beside(second.network, second.heads, second.origin),
        )  # fmt: skip
        if any(each.kind == "WeightedLayerPooling" for each in modules):
            files.write_json(temporary / CONFIG, {**read_json(temporary / CONFIG), "output_hidden_states": True})
        names = [*saved.files, *_write_modules(temporary, modules), MODULES, LENGTHS, SETTINGS]
        files.write_json(temporary / LENGTHS, {"max_seq_length": made.config.length, "do_lower_case": False})
        files.write_json(temporary / SETTINGS, _settings(made.config))
        write_manifest(temporary, names)
        if old:
            _keep_others(folder, temporary)
    ours = [told for kind, told in OURS.items() if any(each.kind == kind for each in modules)]
    only = (
        [f"sentence-transformers cannot open this folder: it has no step for a {' and a '.join(ours)}"] if ours else []
    )
    return (*saved.notes, *only)


def _write_modules(folder: Path, modules: Sequence[Module]) -> list[str]:
    listed, names = [{"idx": 0, "name": "0", "path": "", "type": f"{THEIRS}.Transformer"}], list[str]()
    only_ours = any(each.kind in OURS for each in modules)
    for number, each in enumerate(modules, start=1):
        # Servers look for 1_Pooling and pass over steps that they do not know: there must be nothing to be found.
        place = f"{number}_{'Before' if only_ours and each.kind == 'Pooling' else ''}{each.kind}"
        (folder / place).mkdir()
        files.write_json(folder / place / CONFIG, dict(each.config))
        names.append(f"{place}/{CONFIG}")
        if each.tensors:
            write_safetensors(folder / place / WEIGHTS, dict(each.tensors))
            names.append(f"{place}/{WEIGHTS}")
        if each.flow is not None:
            each.flow.save(folder / place / FLOW)
            names.append(f"{place}/{FLOW}")
        home = HERE if each.kind in OURS else THEIRS
        listed.append({"idx": number, "name": str(number), "path": place, "type": f"{home}.{each.kind}"})
    files.write_text(folder / MODULES, json.dumps(listed, indent=2) + "\n")
    return names


def _settings(config: VectorsConfig) -> dict[str, Any]:
    return {
        "__version__": {"sentence_transformers": "5.0.0"},
        "prompts": {"query": "", "document": "", **config.prompts},
        "default_prompt_name": config.prompt,
        "similarity_fn_name": config.similarity,
    }


def _keep_others(folder: Path, temporary: Path) -> None:
    """What a folder holds besides its encoder goes along into the folder that takes its place."""
    gone = {HEADS, INDEX, PICKLE, GENERATOR}
    for path in folder.iterdir():
        is_step = path.is_dir() and _STEP_FOLDER.fullmatch(path.name)
        if path.name in gone or is_step or (temporary / path.name).exists() or files.is_leftover(path):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.copytree(path, temporary / path.name, symlinks=True)
        else:
            shutil.copy2(path, temporary / path.name, follow_symlinks=False)
