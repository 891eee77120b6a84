"use strict";
// Before anything is drawn: light or dark, as the reader chose, else as the system says.
(() => {
  const remembered = () => { try { return localStorage.getItem("evenrank-theme"); } catch { return null; } };
  const system = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const follow = () => { root.dataset.theme = remembered() ?? (system.matches ? "dark" : "light"); };
  follow();
  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const show = () => {
      const dark = root.dataset.theme === "dark";
      button.textContent = dark ? "☀ Light" : "☾ Dark";
      button.setAttribute("aria-label", dark ? "Switch to light colours" : "Switch to dark colours");
    };
    show();
    button.hidden = false;
    system.addEventListener("change", () => { follow(); show(); });
    button.addEventListener("click", () => {
      root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
      try { localStorage.setItem("evenrank-theme", root.dataset.theme); } catch { /* without storage */ }
      show();
    });
  });
})();
