(function () {
  "use strict";
  var root = document.documentElement;
  document.querySelectorAll("button.mk-theme").forEach(function (button) {
    button.addEventListener("click", function () {
      var dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
    });
  });
})();
