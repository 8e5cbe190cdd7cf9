"""Corruption once more, one row and one token at a time, from the same draws: slow, and written to be obvious."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import floor

import numpy as np

from maskery.corpus.encode import Flag
from maskery.corruption.config import LAWS
from maskery.edit import Edit
from maskery.randomness import below, bits, uniform

CODES = {"mask": 1, "random": 2, "keep": 3, "similar": 4, "infill": 6, "delete": 255}
INSIDE = {"phrase": Flag.IN_PHRASE, "entity": Flag.IN_ENTITY}


@dataclass
class Slot:
    id: int
    original: int
    flags: int
    special: bool
    edit: int = 0
    place: int = 0


def one(draw, *arguments):
    return draw(*arguments)[0].item()


def slow(rows, config, row_keys, facts, similar=None):
    """A list of slots for each row."""
    return [_row(slots_of(rows, b), config, row_keys[b], facts, similar) for b in range(len(rows))]


def slots_of(rows, b):
    span = range(rows.start[b], rows.start[b + 1])
    return [
        Slot(
            int(rows.ids[i]), int(rows.original[i]), int(rows.flags[i]), bool(rows.special[i]), int(rows.edit[i]), place
        )
        for place, i in enumerate(span)
    ]


def _row(slots, config, key, facts, similar):
    if config.order.sentences or config.order.rotate > 0:
        slots = _marked(slots)
    if config.order.sentences:
        slots = _by_stretch(slots, lambda text: _permuted(text, key))
    if config.order.rotate > 0:
        slots = _by_stretch(slots, lambda text: _turned(text, key, config.order.rotate))
    _number(slots)
    units = units_of(slots, config.unit)
    spans, order, drawn = _choice(slots, units, config, key)
    _replace(slots, spans, config, key, facts)
    if similar is not None:
        _similar(slots, similar)
    if config.shuffle.rate > 0:
        _shuffle(slots, config.shuffle, one(bits, key, "shuffle"))
    if config.replace.infill or config.replace.delete:
        slots = _resized(slots, units, spans, order, drawn, facts)
    return slots


def _number(slots):
    for place, slot in enumerate(slots):
        slot.place = place


def _stretches(slots):
    """Lists of neighbouring slots of text."""
    found, text = [], []
    for slot in slots:
        if slot.special:
            found, text = ([*found, text] if text else found), []
        else:
            text.append(slot)
    return found


def _marked(slots):
    slots = [replace(slot) for slot in slots]
    for text in _stretches(slots):
        text[0].flags = text[0].flags & ~(Flag.IN_PHRASE | Flag.IN_ENTITY) | Flag.WORD
    return slots


def _by_stretch(slots, change):
    _number(slots)
    result, texts = [], iter(_stretches(slots))
    for place, slot in enumerate(slots):
        if slot.special:
            result.append(slot)
        elif slots[place - 1].special:
            result += change(next(texts))
    return result


def _permuted(text, key):
    sentences = []
    for slot in text:
        if not sentences or slot.flags & Flag.SENTENCE:
            sentences.append([])
        sentences[-1].append(slot)
    sentences.sort(key=lambda sentence: one(bits, key, "sentence order", sentence[0].place))
    return [slot for sentence in sentences for slot in sentence]


def _turned(text, key, chance):
    place = text[0].place
    if one(uniform, key, "rotate", place) >= chance:
        return text
    shift = one(below, key, "rotation", len(text), place)
    return text[shift:] + text[:shift]


def units_of(slots, unit):
    """Lists of places."""
    units = []
    for slot in slots:
        if slot.special:
            continue
        alone = slots[slot.place - 1].special
        starts = unit == "token" or alone or slot.flags & Flag.WORD
        if unit in INSIDE and slot.flags & INSIDE[unit] and not alone:
            starts = False
        if starts:
            units.append([])
        units[-1].append(slot.place)
    return units


def words_of(slots, places):
    return sum(1 for place in places if slots[place - 1].special or slots[place].flags & Flag.WORD)


def _pick(table, chance):
    edges = np.cumsum(table)
    return sum(1 for edge in edges / edges[-1] if edge <= chance)


def _together(units, first, many):
    """Up to `many` units from `first` on, as long as they touch."""
    taken = []
    for number in range(first, min(first + many, len(units))):
        if taken and units[number][0] != units[number - 1][-1] + 1:
            break
        taken.append(number)
    return taken


def _choice(slots, units, config, key):
    """The chosen spans (candidate -> unit numbers), the first units of the candidates in order, their drawn lengths."""
    table = LAWS.get(config.span.law)(config.span)
    if not len(table):
        return _fragments(units, config.rate, config.span.ends, key), [], []
    order = sorted(range(len(units)), key=lambda u: (one(bits, key, "choose", units[u][0]) >> 16, u))
    drawn = [_pick(table, one(uniform, key, "span length", units[u][0])) for u in order]
    cost = [len(places) if config.of == "tokens" else words_of(slots, places) for places in units]
    left = floor(config.rate * sum(cost) + one(uniform, key, "budget"))
    left = max(left, min(1, sum(cost))) if config.rate > 0 else 0
    return _filled(units, order, drawn, cost, left), order, drawn


def _filled(units, order, drawn, cost, left, whole=False):
    taken, spans = set(), {}
    for candidate, (first, many) in enumerate(zip(order, drawn, strict=True)):
        span, spent = [], 0
        for unit in _together(units, first, many):
            if unit in taken or spent + cost[unit] > left:
                break
            span.append(unit)
            spent += cost[unit]
        if span and (not whole or len(span) == many):
            spans[candidate] = span
            taken.update(span)
            left -= spent
    return spans


def _fragments(units, rate, ends, key):
    spans, begin = {}, 0
    while begin < len(units) and rate > 0:
        text = _together(units, begin, len(units))
        at = units[begin][0]
        many = max(1, floor(rate * len(text) + one(uniform, key, "fragment length", at)))
        first = begin + one(below, key, "fragment start", len(text) - many + 1, at)
        where = one(uniform, key, "fragment place", at)
        if where < ends:
            first = begin
        elif where >= 1 - ends:
            first = begin + len(text) - many
        spans[len(spans)] = list(range(first, first + many))
        begin += len(text)
    return spans


def _replace(slots, spans, config, key, facts):
    shares = {name: share for name, share in config.replace.plain().items() if share > 0}
    units = units_of(slots, config.unit)
    for span in spans.values():
        places = [place for unit in span for place in units[unit]]
        for place in places:
            group = place
            if config.decide == "span":
                group = places[0]
            while config.decide == "word" and not (slots[group - 1].special or slots[group].flags & Flag.WORD):
                group -= 1
            name = list(shares)[_pick(list(shares.values()), one(uniform, key, "edit", group))]
            slots[place].edit = CODES[name]
            if name in ("mask", "infill"):
                slots[place].id = facts.specials.mask
            if name == "random":
                slots[place].id = _random_id(config.random_from, facts, key, place)


def _random_id(source, facts, key, place):
    if source == "vocabulary":
        return one(below, key, "random id", facts.vocabulary, place)
    ordinary = facts.ordinary.tolist()
    if source == "ordinary":
        return ordinary[one(below, key, "random id", len(ordinary), place)]
    return ordinary[_pick([facts.frequency[id] for id in ordinary], one(uniform, key, "random id", place))]


def _similar(slots, similar):
    for places in units_of(slots, "word"):
        chosen = [place for place in places if slots[place].edit == Edit.SIMILAR]
        assert chosen in ([], places), "words are whole"
        if chosen:
            ids = np.array([slots[place].original for place in places], dtype=np.int32)
            new, found = similar.replacements(ids, np.array([0]), np.array([len(ids)]), None, None)
            for place, id in zip(places, new.tolist(), strict=True):
                slots[place].id = id
                slots[place].edit = Edit.SIMILAR if found[0] else Edit.UNMATCHED


def _shuffle(slots, config, key):
    free = [[slot.place] for slot in slots if not slot.special and slot.edit == Edit.NONE]
    order = sorted(range(len(free)), key=lambda u: (one(bits, key, "choose", free[u][0]) >> 16, u))
    order = [u for u in order if len(_together(free, u, config.size)) == config.size]
    runs = floor(config.rate * len(order) + one(uniform, key, "budget"))
    many = [config.size] * len(order)
    for span in _filled(free, order, many, [1] * len(free), runs * config.size, whole=True).values():
        places = [free[unit][0] for unit in span]
        mixed = sorted(places, key=lambda place: one(bits, key, "order", place))
        ids = [slots[place].id for place in mixed]
        for place, id in zip(places, ids, strict=True):
            slots[place].id, slots[place].edit = id, Edit.SHUFFLED


def _resized(slots, units, spans, order, drawn, facts):
    gone = {slot.place for slot in slots if slot.edit == CODES["delete"]}
    for span in spans.values():
        gone |= {p for p in [p for u in span for p in units[u]][1:] if slots[p].edit == Edit.INFILLED}
    owner = {unit: candidate for candidate, span in spans.items() for unit in span}
    before = []
    for candidate, (first, many) in enumerate(zip(order, drawn, strict=True)):
        if many == 0 and candidate < max(spans, default=-1) and owner.get(first, candidate) >= candidate:
            before.append(spans[owner[first]][0] if first in owner else first)
    inserted = [units[unit][0] for unit in before[: len(gone)]]
    mask = facts.specials.mask
    result = []
    for slot in slots:
        result += [Slot(mask, mask, 0, False, Edit.INFILLED) for place in inserted if place == slot.place]
        result += [] if slot.place in gone else [slot]
    return result
