"""What `maskery info` prints of a model: lines of a name and what it is."""

from __future__ import annotations

from typing import Any

Line = tuple[str, str]


def print_facts(facts: dict[str, Any]) -> None:
    from rich.table import Table

    from maskery.cli.output import results
    from maskery.language import phrases

    words = phrases()
    grid = Table.grid(padding=(0, 2, 0, 0))
    for key, value in _lines(facts):
        grid.add_row(words.name(key), words.line(value))
    results().print(grid)


def _lines(facts: dict[str, Any]) -> list[Line]:
    from maskery.checkpoint.state import KINDS, told
    from maskery.cli.info_vectors import vectors_line
    from maskery.cli.run_summary import run_lines
    from maskery.cli.trained import lines_of

    lines = [(facts["kind"], facts["source"])]
    if "trained" in facts:
        lines += lines_of(facts["trained"])
    if "run" in facts:
        lines += run_lines(facts["run"], facts["run"]["sparkline"])
    if "family" not in facts:
        return lines
    lines += [("family", facts["family"]), *_shape_lines(facts)]
    if facts.get("tokenizer"):
        lines.append(("tokenizer", f"{facts['tokenizer']['kind']}, {facts['tokenizer']['vocabulary']:,} pieces"))
    if "vectors" in facts:
        lines.append(("vectors", vectors_line(facts["vectors"])))
    lines += [*_parameter_lines(facts), ("word embedding", facts["embedding"]["line"])]
    lines += [*_memory_lines(facts["memory"]), *_operation_lines(facts["operations"])]
    lines += told({kind: facts.get(kind, ()) for kind in KINDS}).items()
    return lines + [("note", note) for note in facts["notes"]]


def _shape_lines(facts: dict[str, Any]) -> list[Line]:
    shape, small = facts["shape"], facts["generator"]
    lines = [
        ("shape", f"{_sizes(shape)}, {shape['norm']}-norm, {shape['activation']}"),
        ("positions", _positions(shape)),
        ("vocabulary", f"{shape['vocabulary']:,}"),
        ("heads", ", ".join(facts["heads"]) or "none"),
    ]
    if shape["share"] != "none":
        shared = "all weights" if shape["share"] == "all" else f"the {_half(shape['share'])}"
        each = shape["layers"] // shape["groups"]
        whose = f"{each} layers" if shape["groups"] == 1 else f"{each} layers in each of {shape['groups']} groups"
        lines.insert(1, ("shared", f"{shared}, by {whose}"))
    if small is not None:
        heads = ", ".join(small["heads"]) or "none"
        lines.append(("generator", f"{_sizes(small['shape'])}; embeddings are the model's; heads: {heads}"))
    return lines


def _half(share: str) -> str:
    return "feed-forward" if share == "feedforward" else share


def _sizes(shape: dict[str, Any]) -> str:
    from maskery.cli.output import counted

    layers, heads = counted(shape["layers"], "layer"), counted(shape["heads"], "head")
    if shape["decoder"]:
        layers = f"{shape['layers']} + {counted(shape['decoder'], 'layer')} that read and write"
    inner = f"feed-forward {shape['feedforward']}{', gated' if shape['gated'] else ''}"
    return f"{layers}, width {shape['width']}, {heads}, {inner}{_windows(shape)}"


def _windows(shape: dict[str, Any]) -> str:
    if not shape["local"]:
        return ""
    return f", windows of {shape['local']} slots, the whole row every {shape['global_every']} layers"


def _positions(shape: dict[str, Any]) -> str:
    kind = shape["positions"]
    if kind == "learned":
        return f"learned, rows up to {shape['max_length']} slots"
    if kind in ("nezha", "shaw"):
        return f"{kind}, distances up to {shape['clip']} told apart, rows of any length"
    if kind == "mpnet":
        told = f"{shape['buckets']} buckets of distances up to {shape['clip']}"
        return f"mpnet, learned and {told}, rows up to {shape['max_length']} slots"
    if kind == "disentangled":
        told = f"{shape['buckets']} buckets of a side up to {shape['clip']}"
        return f"disentangled, {told}, rows of any length"
    if kind == "rotary":
        near = f" ({shape['local_theta']:,g} in windows)" if shape["local_theta"] not in (0, shape["theta"]) else ""
        return f"rotary, base {shape['theta']:,g}{near}, rows of any length"
    if kind == "t5":
        return f"t5, {shape['buckets']} buckets of distances up to {shape['clip']}, rows of any length"
    return f"{kind}, rows of any length"


def _parameter_lines(facts: dict[str, Any]) -> list[Line]:
    """Each sum, and under it what it is the sum of."""
    sums, small = facts["parameters"], facts["generator"]
    wide = len(f"{sums['total']:,}")
    inside = {
        "encoder": [part for part in facts["parts"] if part["of"] in ("embeddings", "layers")],
        "decoder": [part for part in facts["parts"] if part["of"] == "decoder"],
        "heads": [part for part in facts["parts"] if part["of"] == "heads"],
        "generator": [] if small is None else small["parts"],
    }
    lines = []
    for name, many in sums.items():
        lines.append((f"parameters, {name}", f"{many:>{wide},}"))
        lines += [(f"  {part['name']}", _counted(part, wide)) for part in inside.get(name, ()) if part["parameters"]]
    return lines


def _counted(part: dict[str, Any], wide: int) -> str:
    many, held, used = (int(part[key]) for key in ("parameters", "held", "used"))
    text = f"{many:>{wide},}"
    if held > 1:
        text += f"  {many // held:,} x {held}"
    if used > 1:
        return text + (f", each shared by {used} layers" if held > 1 else f"  shared by {used} layers: once")
    return text + " layers" * (held > 1)


def _memory_lines(cost: dict[str, Any]) -> list[Line]:
    at_once = f"{cost['rows']:,} rows of {cost['length']}" if cost["rows"] > 1 else f"1 row of {cost['length']}"
    lines = [
        ("memory, weights", f"{_bytes(cost['weights_bytes'])}; {_bytes(cost['training_bytes'])} in training, with "
                            "gradients and the optimiser's averages"),
        ("memory, training", f"about {_bytes(cost['training_peak_bytes'])} for {at_once} at once"),
        ("memory, inference", f"about {_bytes(cost['inference_peak_bytes'])} for {at_once} at once, without a head"),
    ]  # fmt: skip
    if "lane_bytes" in cost:
        lines.append(("memory, remembered", f"{_bytes(cost['lane_bytes'])} for each row of a step, in checkpoints too"))
    if "available_bytes" in cost:
        trained, read = (cost[f"largest_{use}_rows"] for use in ("training", "inference"))
        told = f"{trained:,} in training, {read:,} in inference, of {cost['length']} slots"
        lines.append((f"rows in {_bytes(cost['available_bytes'])}", told))
    return lines


def _operation_lines(work: dict[str, Any]) -> list[Line]:
    forward, training = (work[f"{use}_per_token"] / 1e6 for use in ("forward", "training"))
    return [("operations", f"{forward:,.1f} million a token in rows of {work['length']}; {training:,.1f} in training")]


def _bytes(number: int) -> str:
    """In MiB; below one of these in KiB, from two thousand on in GiB."""
    unit, size = ("KiB", 2**10) if number < 2**20 else ("MiB", 2**20) if number < 2 * 2**30 else ("GiB", 2**30)
    return f"{number / size:,.1f} {unit}"
