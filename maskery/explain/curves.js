(function () {
  "use strict";

  function nearest(places, x) {
    var low = 0, high = places.length - 1;
    while (high - low > 1) {
      var middle = (low + high) >> 1;
      if (places[middle] < x) low = middle; else high = middle;
    }
    return Math.abs(places[low] - x) <= Math.abs(places[high] - x) ? low : high;
  }

  function number(value) {
    return Math.abs(value) >= 10000 ? value.toLocaleString("en") : String(Number(value.toPrecision(4)));
  }

  function start(view) {
    var data = JSON.parse(view.querySelector(".mk-data").textContent);
    var box = view.querySelector(".mk-values");
    view.querySelectorAll("svg.mk-drawing").forEach(function (svg, which) {
      var cross = document.createElementNS(svg.namespaceURI, "line");
      cross.setAttribute("class", "mk-cross");
      cross.setAttribute("visibility", "hidden");
      svg.appendChild(cross);
      function hide() { cross.setAttribute("visibility", "hidden"); box.hidden = true; }
      svg.addEventListener("pointerleave", hide);
      svg.addEventListener("pointermove", function (event) {
        var seen = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / seen.width;
        var x = (event.clientX - seen.left) * scale, y = (event.clientY - seen.top) * scale;
        var panel = data.frames[which].findIndex(function (f) {
          return x >= f[0] && x <= f[0] + f[2] && y >= f[1] && y <= f[1] + f[3];
        });
        if (panel < 0) { hide(); return; }
        show(data.frames[which][panel], data.panels[panel], x, svg, cross, scale);
      });
    });

    function show(f, panel, x, svg, cross, scale) {
      var at = f[4] + (x - f[0] - 4) / (f[2] - 8) * (f[5] - f[4]);
      box.textContent = "";
      line(null, data.x + " ", Math.max(0, Math.round(at)));
      panel.curves.forEach(function (curve) {
        if (curve.line[0].length && at <= curve.line[0][curve.line[0].length - 1] * 1.02)
          line(curve.number, curve.label + " ", curve.line[1][nearest(curve.line[0], at)]);
        if (curve.points[0].length) {
          var place = nearest(curve.points[0], at);
          line(curve.number, data.held_out.replace(/\{(\w+)\}/g, function (_, key) {
            return key === "x" ? number(curve.points[0][place]) : curve.label;
          }), curve.points[1][place]);
        }
      });
      cross.setAttribute("x1", x); cross.setAttribute("x2", x);
      cross.setAttribute("y1", f[1]); cross.setAttribute("y2", f[1] + f[3]);
      cross.setAttribute("visibility", "visible");
      box.hidden = false;
      var left = x / scale, room = view.clientWidth;
      var above = svg.getBoundingClientRect().top - view.getBoundingClientRect().top;
      box.style.top = above + f[1] / scale + 6 + "px";
      box.style.left = Math.max(0, left + 14 + box.offsetWidth > room ? left - box.offsetWidth - 14 : left + 14) + "px";
    }

    function line(colour, label, value) {
      var row = document.createElement("div");
      if (colour !== null) {
        var square = document.createElement("i");
        square.style.background = "var(--mk-s" + colour + ")";
        row.appendChild(square);
      }
      row.appendChild(document.createTextNode(label));
      var bold = document.createElement("b");
      bold.textContent = number(value);
      row.appendChild(bold);
      box.appendChild(row);
    }
  }

  document.querySelectorAll('[data-mk-view="curves"]:not([data-mk-ready])').forEach(function (view) {
    view.dataset.mkReady = "1";
    start(view);
  });
})();
