"""The scripts of the pages in a real browser, where there is one: hover, pin, layers, heads, filter, keys, theme.

Slow, so part of `make grid`: a script is added that acts as a reader would and writes what it sees into the title.
"""

import json
import re
import shutil
import subprocess

import pytest
from networks import model_of
from run_folders import line_of, run_folder

from maskery.explain.curves import curves
from maskery.explain.heads import head_view
from maskery.picture import report

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = [pytest.mark.grid, pytest.mark.skipif(BROWSER is None, reason="no browser on this machine")]

TOOLS = """
const all = (part, where) => Array.from((where || document).querySelectorAll(part));
const type = (kind, more) => more && more.key ? KeyboardEvent : kind.startsWith("pointer") ? PointerEvent : Event;
const send = (element, kind, more) =>
  element.dispatchEvent(new (type(kind, more))(kind, Object.assign({bubbles: true, cancelable: true}, more)));
const lines = () => all(".mk-lines path").length, told = () => document.querySelector(".mk-told").textContent;
"""


def seen(picture, folder, script):
    """What the script returns when it runs in the page."""
    answer = f"<script>{TOOLS}document.title = JSON.stringify((function () {{{script}}})());</script></body>"
    page = folder / "page.html"
    page.write_text(picture.html().replace("</body>", answer), encoding="utf-8")
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'browser'}"]
    command += ["--virtual-time-budget=3000", "--window-size=1000,800", "--dump-dom", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    title = re.search(r"<title>(\[.*?\])</title>", done.stdout, re.S)
    assert title, done.stdout[-2000:]
    return json.loads(title[1].replace("&quot;", '"').replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


def test_the_head_view(tmp_path):
    picture = head_view(model_of(), "the cat sat", "on the mat")
    script = """
      const from = all(".mk-from .mk-token"), to = all(".mk-to .mk-token"), squares = all(".mk-square");
      const found = [lines(), told()];
      send(from[2], "pointerenter");
      found.push(lines(), told(), to.map(each => each.querySelector(".mk-bar").style.width !== "0px"));
      from[2].click(); send(from[2], "pointerleave"); send(from[1], "pointerenter");
      found.push(told().includes("cat") && told().includes("pinned"), from[2].getAttribute("aria-pressed"));
      send(from[2], "keydown", {key: "Escape"}); send(from[1], "pointerleave");
      found.push(told());
      send(squares[1], "dblclick");
      found.push(squares.map(each => each.getAttribute("aria-pressed")), lines());
      const filter = document.querySelector(".mk-filter");
      filter.value = "AB"; send(filter, "change"); send(to[2], "pointerenter");
      found.push(lines());
      send(to[2], "pointerleave"); send(to[7], "pointerenter");
      found.push(lines());
      send(to[7], "pointerleave");
      const layer = document.querySelector(".mk-layer");
      layer.value = "1"; send(layer, "change");
      found.push(told());
      from[0].focus(); send(from[0], "keydown", {key: "ArrowDown"});
      found.push(document.activeElement === from[1], told());
      send(from[1], "keydown", {key: "Enter"});
      found.push(from[1].getAttribute("aria-pressed"));
      send(from[1], "keydown", {key: "ArrowRight"});
      found.push(document.activeElement === to[1]);
      squares[1].click();
      found.push(told());
      document.querySelector(".mk-every").click();
      found.push(squares.every(each => each.getAttribute("aria-pressed") === "true"));
      return found;"""
    found = iter(seen(picture, tmp_path, script))
    size, heads = 9, 2
    assert next(found) == size * heads
    assert next(found) == "Layer 1, 2 of 2 heads: the strongest link of every token."
    assert 0 < next(found) <= size * heads
    assert re.match(r"Layer 1, 2 of 2 heads: \u2068cat\u2069 reads \u2068.+\u2069 0\.\d{3}, ", next(found))
    assert any(next(found))
    assert [next(found), next(found)] == [True, "true"]
    assert "strongest link" in next(found)
    assert [next(found), next(found)] == [["false", "true"], size]
    assert next(found) == 0, "A reads nothing of A under the filter A to B"
    assert next(found) > 0
    assert next(found).startswith("Layer 2, 1 of 2 heads")
    assert next(found) is True
    assert "\u2068the\u2069 reads" in next(found)
    assert [next(found), next(found)] == ["true", True]
    assert "switch a head on" in next(found)
    assert next(found) is True


def test_curves_tell_their_values(tmp_path):
    lines = [line_of(step, 5.0, **({"eval__loss": 4.0} if step == 50 else {})) for step in range(1, 101)]
    run = run_folder(tmp_path / "my & run", lines)
    script = """
      const svg = all("svg.mk-wide")[0], box = svg.getBoundingClientRect();
      const values = document.querySelector(".mk-values");
      send(svg, "pointermove", {clientX: box.left + box.width / 2, clientY: box.top + box.height / 2});
      const place = values.getBoundingClientRect();
      const inside = place.top >= box.top && place.bottom <= box.bottom && place.right <= innerWidth;
      const found = [values.hidden, values.innerText, inside];
      send(svg, "pointerleave");
      return found.concat([values.hidden, getComputedStyle(all("svg.mk-narrow")[0]).display]);"""
    hidden, text, inside, after, narrow = seen(curves(run), tmp_path, script)
    assert (hidden, after, narrow) == (False, True, "none")
    assert inside
    assert "loss 5" in text
    assert "held out at 50: 4" in text


def test_two_views_in_one_page_do_not_touch_each_other(tmp_path):
    picture = head_view(model_of(), "the cat")
    script = """
      const views = all(".mk-heads"), count = view => all(".mk-lines path", view).length;
      const before = views.map(count);
      all(".mk-square", views[0]).forEach(each => each.click());
      const root = document.documentElement, colour = () => getComputedStyle(document.body).backgroundColor;
      const first = colour();
      document.querySelector(".mk-theme").click();
      const second = colour();
      document.querySelector(".mk-theme").click();
      return [before, views.map(count), first !== second, colour() === first, root.dataset.theme];"""
    before, after, changed, back, theme = seen(report("two", [("", "", [picture, picture])]), tmp_path, script)
    assert before[0] == before[1] > 0
    assert after == [0, before[1]]
    assert (changed, back, theme) == (True, True, "light")
