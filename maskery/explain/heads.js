(function () {
  "use strict";
  var ROW = 24, WIDTH = 100, SHOWN = 5, LEAST = 0.01;

  function decode(text, size) {
    var bytes = atob(text), values = new Float32Array(size);
    for (var i = 0; i < size; i++) values[i] = (bytes.charCodeAt(2 * i) + 256 * bytes.charCodeAt(2 * i + 1)) / 65535;
    return values;
  }

  function start(view) {
    var data = JSON.parse(view.querySelector(".mk-data").textContent);
    var count = data.tokens.length, heads = data.heads, decoded = [];
    var svg = view.querySelector(".mk-lines svg"), told = view.querySelector(".mk-told");
    var layerChoice = view.querySelector(".mk-layer"), filterChoice = view.querySelector(".mk-filter");
    var squares = Array.from(view.querySelectorAll(".mk-square"));
    var sides = {from: tokens("from"), to: tokens("to")};
    var layer = 0, over = null, pinned = null;
    told.setAttribute("aria-live", "polite");
    svg.setAttribute("viewBox", "0 0 " + WIDTH + " " + count * ROW);
    svg.style.height = count * ROW + "px";

    function tokens(side) { return Array.from(view.querySelectorAll(".mk-" + side + " .mk-token")); }
    function on() { return squares.map(function (s) { return s.getAttribute("aria-pressed") === "true"; }); }
    function weights() {
      if (!decoded[layer]) decoded[layer] = decode(data.weights[layer], heads * count * count);
      return decoded[layer];
    }
    function allowed(q, k) {
      var want = filterChoice ? filterChoice.value : "all";
      return want === "all" || want === "AB"[data.segments[q]] + "AB"[data.segments[k]];
    }
    function weight(h, q, k) { return allowed(q, k) ? weights()[(h * count + q) * count + k] : 0; }

    function line(q, k, h, strength) {
      var path = document.createElementNS(svg.namespaceURI, "path");
      var a = (q + 0.5) * ROW, b = (k + 0.5) * ROW, half = WIDTH / 2;
      path.setAttribute("d", "M0 " + a + "C" + half + " " + a + " " + half + " " + b + " " + WIDTH + " " + b);
      path.setAttribute("style", "--mk-hue:" + Math.round(360 * h / heads));
      path.setAttribute("stroke-opacity", Math.max(0.12, Math.min(1, strength)).toFixed(3));
      path.setAttribute("stroke-width", (0.8 + 3 * strength).toFixed(2));
      svg.appendChild(path);
    }

    function drawRest(active) {
      for (var q = 0; q < count; q++) active.forEach(function (h) {
        var best = -1, most = 0;
        for (var k = 0; k < count; k++) { var w = weight(h, q, k); if (w > most) { most = w; best = k; } }
        if (best >= 0) line(q, best, h, 0.6 * most);
      });
    }

    function drawOne(active, held) {
      var means = [];
      for (var other = 0; other < count; other++) {
        var sum = 0;
        active.forEach(function (h) {
          var w = held.side === "from" ? weight(h, held.place, other) : weight(h, other, held.place);
          sum += w;
          if (w >= LEAST) held.side === "from" ? line(held.place, other, h, Math.sqrt(w)) : line(other, held.place, h, Math.sqrt(w));
        });
        means.push(active.length ? sum / active.length : 0);
      }
      return means;
    }

    function draw() {
      var held = pinned || over, means = null;
      var active = on().map(function (yes, h) { return yes ? h : -1; }).filter(function (h) { return h >= 0; });
      svg.textContent = "";
      if (held) means = drawOne(active, held); else drawRest(active);
      Object.keys(sides).forEach(function (side) {
        sides[side].forEach(function (token, place) {
          var mine = held && held.side === side && held.place === place;
          var facing = held && held.side !== side;
          token.classList.toggle("mk-held", Boolean(mine));
          token.classList.toggle("mk-dim", Boolean(held && held.side === side && !mine));
          token.setAttribute("aria-pressed", String(Boolean(pinned && mine)));
          token.querySelector(".mk-bar").style.width = facing ? (100 * means[place]).toFixed(1) + "%" : "0";
        });
      });
      tell(held, means, active);
    }

    function say(name, values) {
      return data.words[name].replace(/\{(\w+)\}/g, function (_, key) { return values[key]; });
    }
    function label(place) { return "\u2068" + data.tokens[place] + "\u2069"; }
    function tell(held, means, active) {
      var where = say("where", {layer: data.layers[layer], on: active.length, heads: heads});
      if (!active.length) { told.textContent = where + say("none_on", {}); return; }
      if (!held) { told.textContent = where + say("rest", {}); return; }
      var order = means.map(function (w, place) { return [w, place]; }).sort(function (a, b) { return b[0] - a[0]; });
      var list = order.slice(0, SHOWN).filter(function (e) { return e[0] > 0; }).map(function (e) {
        return label(e[1]) + " " + e[0].toFixed(3);
      });
      var token = pinned ? say("pinned", {token: label(held.place)}) : label(held.place);
      told.textContent = where + say(held.side === "from" ? "reads" : "read_by",
        {token: token, list: list.join(", ") || say("nothing", {})});
    }

    function same(a, b) { return a && b && a.side === b.side && a.place === b.place; }
    function pin(held) { pinned = same(pinned, held) ? null : held; draw(); }
    function move(side, from, to) {
      if (to < 0 || to >= count) return;
      sides[side][from].tabIndex = -1;
      sides[side][to].tabIndex = 0;
      sides[side][to].focus();
    }

    Object.keys(sides).forEach(function (side) {
      sides[side].forEach(function (token, place) {
        var here = {side: side, place: place};
        token.addEventListener("pointerenter", function () { over = here; if (!pinned) draw(); });
        token.addEventListener("pointerleave", function () { over = null; if (!pinned) draw(); });
        token.addEventListener("focus", function () { over = here; if (!pinned) draw(); });
        token.addEventListener("blur", function () { over = null; if (!pinned) draw(); });
        token.addEventListener("click", function () { pin(here); });
        token.addEventListener("keydown", function (event) {
          var keys = {ArrowDown: 1, ArrowUp: -1, Home: -place, End: count - 1 - place};
          if (event.key in keys) move(side, place, place + keys[event.key]);
          else if (event.key === "ArrowRight" || event.key === "ArrowLeft") cross(event.key === "ArrowRight" ? "to" : "from", place);
          else if (event.key === "Enter" || event.key === " ") pin(here);
          else if (event.key === "Escape") { pinned = null; draw(); }
          else return;
          event.preventDefault();
        });
      });
    });
    function cross(side, place) {
      sides[side].forEach(function (token, at) { token.tabIndex = at === place ? 0 : -1; });
      sides[side][place].focus();
    }

    squares.forEach(function (square, h) {
      square.addEventListener("click", function () {
        square.setAttribute("aria-pressed", String(square.getAttribute("aria-pressed") !== "true"));
        draw();
      });
      square.addEventListener("dblclick", function () {
        squares.forEach(function (each, other) { each.setAttribute("aria-pressed", String(other === h)); });
        draw();
      });
    });
    view.querySelector(".mk-every").addEventListener("click", function () {
      var every = on().every(Boolean);
      squares.forEach(function (each) { each.setAttribute("aria-pressed", String(!every)); });
      draw();
    });
    layerChoice.addEventListener("change", function () { layer = Number(layerChoice.value); draw(); });
    if (filterChoice) filterChoice.addEventListener("change", draw);
    layer = Number(layerChoice.value);
    draw();
  }

  document.querySelectorAll('[data-mk-view="heads"]:not([data-mk-ready])').forEach(function (view) {
    view.dataset.mkReady = "1";
    start(view);
  });
})();
