"use strict";
// Without this script every form still works, by loading the page anew.
(() => {
  const form = document.getElementById("ask");
  if (form) {
    const results = document.getElementById("results");
    const status = document.getElementById("status");
    const limit = document.getElementById("limit");
    const bound = document.getElementById("bound");
    let asking = null, waiting = null, shown = location.search;
    const address = () => {
      const given = new URLSearchParams(new FormData(form));
      return `/?${given}`;
    };
    const said = () => [...results.querySelectorAll(".list")]
      .map((list) => `${list.querySelector("h2").textContent}: ${list.querySelector(".chip.side")?.textContent ?? "nothing found"}`)
      .join(". ");
    // On a phone one list is shown, and both leans stand in the tabs; without script the lists stand below one another.
    let chosen = "left";
    const choose = (side) => {
      chosen = side;
      results.querySelector(".pair")?.setAttribute("data-shown", side);
      for (const tab of results.querySelectorAll("[data-show]")) tab.setAttribute("aria-pressed", String(tab.dataset.show === side));
    };
    document.documentElement.classList.add("tabbed");
    results.addEventListener("click", (event) => {
      const tab = event.target.closest("[data-show]");
      if (tab) choose(tab.dataset.show);
    });
    const load = async (remember) => {
      if (!form.q.value.trim()) return;
      asking?.abort();
      asking = new AbortController();
      results.setAttribute("aria-busy", "true");
      try {
        const answer = await fetch(address(), { headers: { "X-Part": "results" }, signal: asking.signal });
        const text = await answer.text();
        if (answer.ok) {
          results.innerHTML = text; // the server's own markup, in which everything is escaped
          choose(chosen);
          status.textContent = said();
        } else {
          let detail = `The server answers ${answer.status}.`;
          try { detail = JSON.parse(text).detail; } catch { /* a page */ }
          const problem = document.createElement("p");
          problem.className = "none";
          problem.textContent = detail;
          results.replaceChildren(problem);
          status.textContent = detail;
        }
        document.querySelector(".examples")?.remove();
        if (remember) history.pushState(null, "", address()); else history.replaceState(null, "", address());
        shown = location.search;
        document.title = `${form.q.value} – evenrank`;
      } catch (error) {
        if (error.name === "AbortError") return;
        status.textContent = "The server does not answer.";
      }
      results.setAttribute("aria-busy", "false");
    };
    const soon = () => { clearTimeout(waiting); waiting = setTimeout(() => load(false), 120); };
    const follow = () => { limit.closest(".limit").classList.toggle("off", !form.even.checked); };
    form.addEventListener("submit", (event) => {
      if (!form.q.value.trim() || document.querySelector(".hero")) return; // the first search loads the page
      event.preventDefault();
      load(true);
    });
    form.addEventListener("change", (event) => {
      if (event.target === form.q || event.target === limit) return;
      follow();
      soon();
    });
    limit.addEventListener("input", () => {
      bound.textContent = Number(limit.value).toFixed(2);
      if (form.even.checked) soon();
    });
    addEventListener("popstate", () => { if (location.search !== shown) location.reload(); }); // not for #main
    follow();
  }
  const upload = document.getElementById("upload");
  upload?.addEventListener("submit", () => {
    upload.querySelector("button").disabled = true;
    document.getElementById("working").textContent = "Auditing… this takes some seconds.";
  });
  addEventListener("pageshow", () => { const button = upload?.querySelector("button"); if (button) button.disabled = false; });
})();
