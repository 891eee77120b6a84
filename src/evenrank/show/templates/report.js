"use strict";
(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const remembered = {
    get: () => { try { return localStorage.getItem("evenrank-theme"); } catch { return null; } },
    set: (value) => { try { localStorage.setItem("evenrank-theme", value); } catch { /* a file without storage */ } },
  };

  // Light and dark: as the system says until the reader chooses.
  const button = document.getElementById("theme");
  const show = () => {
    const dark = root.dataset.theme === "dark";
    button.textContent = dark ? "☀ Light" : "☾ Dark";
    button.setAttribute("aria-label", dark ? "Switch to light colours" : "Switch to dark colours");
  };
  const follow = () => { root.dataset.theme = remembered.get() ?? (system.matches ? "dark" : "light"); show(); };
  follow();
  button.hidden = false;
  system.addEventListener("change", follow);
  button.addEventListener("click", () => {
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    remembered.set(root.dataset.theme);
    show();
  });

  if (location.protocol === "file:") document.querySelector(".back")?.remove(); // saved: there is no way back

  // The contents show where the reader is.
  const links = new Map([...document.querySelectorAll("nav a")].map((a) => [a.hash.slice(1), a]));
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const a of links.values()) a.removeAttribute("aria-current");
      links.get(entry.target.id)?.setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-5% 0px -75% 0px" });
  document.querySelectorAll("main > section").forEach((section) => seen.observe(section));

  // Tooltips hold text only; nothing from the data becomes markup.
  const tip = document.getElementById("tip");
  const tooltip = (_, event, __, value) => {
    tip.replaceChildren();
    if (value === null || value === undefined || value === "") { tip.style.display = "none"; return; }
    const box = document.createElement("div");
    const pairs = typeof value === "object" ? Object.entries(value) : [["", value]];
    for (const [key, said] of pairs) {
      const k = document.createElement("span"), v = document.createElement("span");
      k.className = "k"; k.textContent = key; v.textContent = said;
      box.append(k, v);
    }
    tip.append(box);
    tip.style.display = "block";
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(event.clientX + 14, innerWidth - width - 8))}px`;
    tip.style.top = `${event.clientY + height + 20 > innerHeight ? event.clientY - height - 12 : event.clientY + 14}px`;
  };
  addEventListener("scroll", () => { tip.style.display = "none"; }, { passive: true });

  // Charts draw in CSS variables, so that one drawing serves light, dark and print.
  const { config, figures } = JSON.parse(document.getElementById("charts").textContent);
  const domains = (spec) => Object.entries(spec ?? {}).flatMap(([key, value]) =>
    key === "datasets" || typeof value !== "object" ? [] : key === "domain" && Array.isArray(value) ? [value] : domains(value));
  const draw = async (place, id = place.dataset.figure, title = undefined) => {
    const narrow = place.clientWidth < 460;
    const labels = domains(figures[id].spec).flat().filter((x) => typeof x === "string").map((x) => x.length);
    const each = Math.min(narrow ? 130 : 220, 7 * Math.max(4, ...labels)) + 34;
    const legend = { ...config.legend, columns: Math.max(1, Math.floor((place.clientWidth - 40) / each)), labelLimit: narrow ? 130 : 220 };
    const { view } = await vegaEmbed(place, title ? { ...figures[id].spec, title } : figures[id].spec, {
      actions: false, renderer: "svg", ast: true, defaultStyle: false, tooltip, mode: "vega-lite",
      config: { ...config, legend, axisX: { ...config.axisX, titleLimit: place.clientWidth - 50 }, aria: false },
      loader: { load: () => Promise.reject(new Error("no network")), sanitize: () => Promise.reject(new Error("no links")) },
    });
    place.querySelector("svg")?.setAttribute("aria-hidden", "true"); // the place itself is described
    return view;
  };
  const drawAll = async () => {
    for (const place of document.querySelectorAll("[data-figure]")) {
      try { await draw(place); } catch (error) { place.textContent = "This chart could not be drawn; its numbers are below."; console.error(error); }
    }
    root.dataset.charts = "drawn";
  };
  if (window.vegaEmbed) drawAll(); else root.dataset.charts = "drawn";

  // Paper cannot be unfolded: everything is, while it is printed.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const one of folded) one.open = true;
  });
  addEventListener("afterprint", () => { for (const one of folded) one.open = false; });

  // Exports: colours are written out, since a file has no variables.
  const save = (name, blob) => {
    const a = document.createElement("a");
    a.href = URL.createObjectURL(blob);
    a.download = name;
    a.click();
    setTimeout(() => URL.revokeObjectURL(a.href), 10000);
  };
  const plainSvg = async (id) => {
    const style = getComputedStyle(root);
    // Away from its page a chart needs its title: it is drawn again, out of sight, with one.
    const shown = document.querySelector(`[data-figure="${id}"]`), away = document.createElement("div");
    away.style.cssText = `position:absolute;left:-9999px;width:${Math.max(shown.clientWidth, 420)}px`;
    shown.after(away);
    const words = figures[id].caption.split(" "), room = Math.max(shown.clientWidth, 420) / 6.6, lines = [""];
    for (const word of words) {
      if ((lines.at(-1) + word).length > room) lines.push("");
      lines[lines.length - 1] += `${word} `;
    }
    const view = await draw(away, id, { text: figures[id].title, subtitle: lines.map((line) => line.trim()), frame: "group" });
    const drawn = await view.toSVG();
    view.finalize();
    away.remove();
    const svg = drawn.replace(/var\((--[\w-]+)\)/g, (_, name) => style.getPropertyValue(name).trim());
    return svg.replace(/fill="transparent"/, `fill="${style.getPropertyValue("--surface").trim()}"`);
  };
  const cell = (value) => {
    const text = value === null ? "" : String(value);
    // A spreadsheet would run what begins like a formula.
    const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const painted = async (id, scale) => {
    const image = new Image();
    image.src = URL.createObjectURL(new Blob([await plainSvg(id)], { type: "image/svg+xml" }));
    await image.decode();
    const canvas = document.createElement("canvas"), { width, height } = image;
    canvas.width = width * scale; canvas.height = height * scale;
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    context.drawImage(image, 0, 0);
    URL.revokeObjectURL(image.src);
    return { canvas, width, height };
  };
  // A PDF of one page that holds one picture; three quarters of a point to a pixel.
  const onePage = (jpeg, canvas, width, height) => {
    const [w, h] = [width * 0.75, height * 0.75], draw = `q ${w} 0 0 ${h} 0 0 cm /I Do Q`;
    const objects = [
      ["<</Type/Catalog/Pages 2 0 R>>"],
      ["<</Type/Pages/Kids[3 0 R]/Count 1>>"],
      [`<</Type/Page/Parent 2 0 R/MediaBox[0 0 ${w} ${h}]/Contents 4 0 R/Resources<</XObject<</I 5 0 R>>>>>>`],
      [`<</Length ${draw.length}>>stream\n${draw}\nendstream`],
      [`<</Type/XObject/Subtype/Image/Width ${canvas.width}/Height ${canvas.height}/ColorSpace/DeviceRGB/BitsPerComponent 8/Filter/DCTDecode/Length ${jpeg.length}>>stream\n`, jpeg, "\nendstream"],
    ];
    const parts = ["%PDF-1.4\n"], places = [];
    const size = () => parts.reduce((sum, part) => sum + part.length, 0); // all text here is ASCII
    objects.forEach((object, i) => { places.push(size()); parts.push(`${i + 1} 0 obj\n`, ...object, "\nendobj\n"); });
    const table = places.map((place) => `${String(place).padStart(10, "0")} 00000 n \n`).join("");
    parts.push(`xref\n0 6\n0000000000 65535 f \n${table}trailer<</Size 6/Root 1 0 R>>\nstartxref\n${size()}\n%%EOF\n`);
    return new Blob(parts, { type: "application/pdf" });
  };
  const exports = {
    svg: async (id) => new Blob([await plainSvg(id)], { type: "image/svg+xml" }),
    csv: (id) => {
      const { columns, rows } = figures[id];
      return new Blob([[columns, ...rows].map((row) => row.map(cell).join(",")).join("\n") + "\n"], { type: "text/csv" });
    },
    png: async (id) => {
      const { canvas } = await painted(id, 2);
      return new Promise((done) => canvas.toBlob(done, "image/png"));
    },
    pdf: async (id) => {
      const { canvas, width, height } = await painted(id, 4);
      const jpeg = await new Promise((done) => canvas.toBlob(done, "image/jpeg", 0.95));
      return onePage(new Uint8Array(await jpeg.arrayBuffer()), canvas, width, height);
    },
  };
  document.addEventListener("click", async (event) => {
    const asked = event.target.closest("[data-export]");
    if (!asked) return;
    const { export: form, of: id } = asked.dataset;
    save(`${id}.${form}`, await exports[form](id));
  });
})();
