"use strict";
// All rows of the page: sort, search, filter, why, and download; how many are worth checking.
(() => {
  // Rows on a screen; on a phone, where each is a card, fewer.
  const SHOWN = matchMedia("(max-width: 40rem)").matches ? 10 : 50;
  const VALUES = 4;        // columns of the table beside our own
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("rows-data").textContent);
  const columns = data.columns;
  const n = columns[0].values.length;
  const at = Object.fromEntries(columns.slice(0, data.own).map((c, i) => [c.name, i]));
  // The page is in English, whatever the browser speaks: so are its numbers and its order.
  const grouped = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });
  const money = new Intl.NumberFormat("en-GB", { maximumSignificantDigits: 3 });
  const collator = new Intl.Collator("en", { numeric: true });
  const count = (value) => grouped.format(value).replace("-", "\u2212");
  const percent = (share) =>
    share > 0 && share < 0.005 ? "<1%" : share < 1 && share > 0.995 ? ">99%" : `${Math.round(100 * share)}%`;

  const make = (tag, properties = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name in element) element[name] = value;
      else element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  };

  // --- cells ---------------------------------------------------------------------------

  const word = (column, i) => column.words[column.codes.length ? column.codes[i] : i];
  const raw = (column, i) => (column.values ? column.values[i] ?? "" : word(column, i));
  function written(index, i) {
    const column = columns[index], value = raw(column, i);
    if (!column.values || value === "") return value;
    if (index === at.row || index === at.rank) return count(value);
    if (index === at.probability) return value.toFixed(3);
    if (index === at.gap) return (value < 0 ? "" : "+") + value.toFixed(2).replace("-", "\u2212");
    return String(value).replace("-", "\u2212");
  }
  const likely = (i) => {
    const [low, high] = ["probability_low", "probability_high"].map((name) => columns[at[name]].values[i]);
    const [a, b] = [percent(low), percent(high)];
    return a === b ? a : `${a} to ${b}`;
  };

  // What to sort by: numbers as they are, texts by their place in the alphabet.
  function keys(column) {
    if (column.keys) return column.keys;
    if (column.values) return (column.keys = column.values);
    const order = column.words.map((_, j) => j);
    order.sort((a, b) => collator.compare(column.words[a], column.words[b]));
    const place = new Array(order.length);
    order.forEach((j, rank) => { place[j] = column.words[j] === "" ? null : rank; });
    return (column.keys = column.codes.length ? column.codes.map((j) => place[j]) : place);
  }

  // --- which rows, in which order ------------------------------------------------------

  const state = { sort: at.rank, order: 1, page: 0, k: 1, rows: [], ticked: new Set(), open: new Set() };
  const filters = new Map();

  // A test of one column: contains, or a comparison with a number or a text.
  function test(column, typed) {
    const [, sign, rest] = typed.trim().match(/^(<=|>=|!=|<|>|=)?\s*(.*)$/s);
    const text = rest.toLowerCase(), number = rest === "" ? NaN : Number(rest);
    const compare = {
      "<": (a, b) => a < b, ">": (a, b) => a > b, "<=": (a, b) => a <= b,
      ">=": (a, b) => a >= b, "=": (a, b) => a === b, "!=": (a, b) => a !== b,
    }[sign];
    if (column.values) {
      if (sign && rest === "") return (i) => compare(column.values[i], null);
      if (sign) return (i) => column.values[i] !== null && compare(column.values[i], number);
      return (i) => String(column.values[i] ?? "").includes(text);
    }
    const holds = lower(column).map((cell) =>
      !sign ? cell.includes(text) : sign.includes("<") || sign.includes(">")
        ? cell !== "" && compare(collator.compare(cell, text), 0) : compare(cell, text));
    return (i) => holds[column.codes.length ? column.codes[i] : i];
  }
  const lower = (column) => (column.lower ??= column.words.map((cell) => cell.toLowerCase()));

  // Texts that contain what is searched for, and numbers that are equal to it.
  function searcher(typed) {
    const text = typed.trim().toLowerCase(), number = Number(text.replaceAll(",", ""));
    const tests = columns.filter((c) => c.words).map((column) => test(column, text));
    const equal = Number.isNaN(number) ? [] : columns.filter((c, j) => c.values && j !== at.rank);
    return (i) => tests.some((t) => t(i)) || equal.some((column) => column.values[i] === number);
  }

  function select() {
    const tests = [...filters].map(([index, typed]) => test(columns[index], typed));
    const typed = byId("rows-search").value;
    if (typed.trim()) tests.push(searcher(typed));
    const end = byId("rows-within").checked ? Math.min(state.k, n) : n;
    const rows = [];
    for (let i = 0; i < end; i++) if (tests.every((t) => t(i))) rows.push(i);
    const key = keys(columns[state.sort]), order = state.order;
    if (state.sort !== at.rank || order < 0) {
      rows.sort((a, b) => {  // empty cells come last either way; ties keep the rank
        if (key[a] === null || key[b] === null) return (key[a] === null) - (key[b] === null) || a - b;
        return order * (key[a] - key[b]) || a - b;
      });
    }
    state.rows = rows;
    state.page = Math.min(state.page, Math.max(0, Math.ceil(rows.length / SHOWN) - 1));
    draw();
  }
  const changed = () => { state.page = 0; select(); };

  // --- the table -----------------------------------------------------------------------

  const shown = columns.map((_, j) => j).filter((j) =>
    j < data.own + VALUES && j !== at.probability_low && j !== at.probability_high);
  const name = (j) => columns[j].name;
  const isText = (j) => Boolean(columns[j].words);

  function drawHead() {
    const heads = shown.flatMap((j) => {
      const sorted = state.sort === j ? (state.order > 0 ? "ascending" : "descending") : "none";
      const button = make("button", { type: "button", className: "sort" }, make("bdi", {}, name(j)));
      button.addEventListener("click", () => {
        state.order = state.sort === j ? -state.order : j < data.own && j !== at.rank && !isText(j) ? -1 : 1;
        state.sort = j;
        syncSort();
        changed();
        byId("rows-table").querySelectorAll("thead button")[shown.indexOf(j)].focus();
      });
      const kind = (j >= data.own ? "user " : "") + (isText(j) ? "text" : "");
      const head = make("th", { scope: "col", className: kind, "aria-sort": sorted }, button);
      return j === at.probability ? [head, make("th", { scope: "col", className: "text" }, "90% interval")] : [head];
    });
    const ticks = make("th", { scope: "col", className: "text" }, "tick");
    byId("rows-table").tHead.replaceChildren(make("tr", {}, ...heads, ticks));
  }

  function drawRow(i) {
    const called = at.id === undefined ? `row ${written(at.row, i)}` : written(at.id, i);
    const cells = shown.flatMap((j) => {
      if (j === at.rank) {
        const button = make("button", { type: "button", className: "open", "aria-expanded": state.open.has(i), "aria-label": `Rank ${count(i + 1)}, ${called}: all values` }, count(i + 1));
        button.addEventListener("click", () => toggle(i));
        return [make("th", { scope: "row", className: "brief", "data-label": "rank" }, button)];
      }
      const kind = j < data.own ? (isText(j) ? "text name" : "brief") : `user ${isText(j) ? "text" : ""}`;
      const cell = make("td", { className: kind, "data-label": name(j) }, make("bdi", {}, cut(written(j, i))));
      return j === at.probability ? [cell, make("td", { className: "text", "data-label": "90% interval" }, likely(i))] : [cell];
    });
    const tick = make("input", { type: "checkbox", checked: state.ticked.has(i), "aria-label": `Tick ${called}` });
    tick.addEventListener("change", () => {
      if (tick.checked) state.ticked.add(i); else state.ticked.delete(i);
      say();
    });
    const row = make("tr", { id: `all-${i}` }, ...cells, make("td", { className: "text", "data-label": "tick" }, tick));
    row.addEventListener("click", (event) => {
      if (!event.target.closest("button, input") && !String(getSelection())) toggle(i);
    });
    return state.open.has(i) ? [row, drawWhy(i)] : [row];
  }
  const cut = (text) => (text.length > 60 ? `${text.slice(0, 59)}…` : text);

  function toggle(i) {
    if (!state.open.delete(i)) state.open.add(i);
    drawBody();
    byId(`all-${i}`).querySelector("button").focus();
  }

  // All values of a row, where its numbers lie among the others, and how to learn more.
  function drawWhy(i) {
    const facts = columns.slice(data.own).flatMap((column, j) => {
      const value = raw(column, i);
      const below = column.values && value !== "" ? column.values.filter((v) => v !== null && v < value).length : null;
      const place = below === null ? "" : `, above ${percent(below / column.values.filter((v) => v !== null).length)} of rows`;
      return [make("dt", {}, make("bdi", {}, column.name)), make("dd", {}, make("bdi", {}, written(data.own + j, i) || "empty"), place)];
    });
    const id = String(raw(columns[at.id ?? at.row], i));
    const command = `probgap explain . --row='${id.replaceAll("'", "'\\''")}'`;
    const why = data.why[columns[at.row].values[i]];
    return make("tr", { className: "why" }, make("td", { colSpan: shown.length + 2, className: "text long" },
      ...(why ? [make("p", {}, make("b", {}, "Worth checking: "), why)] : []),
      make("dl", { className: "record" }, ...facts),
      make("p", { className: "quiet" }, "The most telling columns come first. What each adds to this probability, and which labelled rows are like it, in the folder of this report: ", make("code", {}, command))));
  }

  function drawBody() {
    const from = state.page * SHOWN;
    byId("rows-table").tBodies[0].replaceChildren(...state.rows.slice(from, from + SHOWN).flatMap(drawRow));
  }

  function draw() {
    drawHead();
    drawBody();
    const pages = Math.max(1, Math.ceil(state.rows.length / SHOWN));
    byId("rows-page").textContent = `Page ${count(state.page + 1)} of ${count(pages)}`;
    byId("rows-back").disabled = state.page === 0;
    byId("rows-on").disabled = state.page >= pages - 1;
    say();
  }

  function say() {
    const ticked = state.ticked.size ? `, ${count(state.ticked.size)} ticked` : "";
    byId("rows-count").textContent = `${count(state.rows.length)} of ${count(n)} rows${ticked}.`;
    byId("rows-save").disabled = !state.rows.length;
    byId("rows-save-ticked").disabled = !state.ticked.size;
  }

  // --- how many to check ---------------------------------------------------------------

  function expected(k) {
    const last = data.k.length - 1;
    let step = data.k.findIndex((value) => value >= k);
    if (step < 0) step = last;
    const before = Math.max(0, step - 1), width = data.k[step] - data.k[before];
    const part = width ? (k - data.k[before]) / width : 1;
    return ["low", "mean", "high"].map((end) => data[end][before] + part * (data[end][step] - data[end][before]));
  }

  // The words of the headline: only as much as the range says.
  function range(low, high, most) {
    const open = high > 0.95 * most;
    if (high < 0.5) return "no positives";
    if (low < Math.max(0.5, 0.01 * high)) return open ? "any number of positives" : `up to ${count(high)} positives`;
    if (open) return `at least ${count(low)} positives`;
    if (count(low) === count(high)) return `about ${count(high)} positives`;
    return `between ${count(low)} and ${count(high)} positives`;
  }

  function plan() {
    const [low, , high] = expected(state.k);
    const cost = Number(byId("plan-cost").value), gain = Number(byId("plan-gain").value);
    const net = [low, high].map((found) => money.format(gain * found - cost * state.k).replace("-", "\u2212"));
    const worth = data.k.map((k, step) => gain * data.mean[step] - cost * k);
    const best = worth.indexOf(Math.max(...worth));
    byId("plan-says").textContent = `Check ${count(state.k)} ${state.k === 1 ? "row" : "rows"}, expect ${range(low, high, state.k)}.`;
    byId("plan-worth").textContent = `Of these rows, ${percent(low / state.k)} to ${percent(high / state.k)} are positive (precision). ` +
      `Gain less cost: ${net[0]} to ${net[1]}; by the best estimate ` +
      (worth[best] > 0 ? `most is gained with about ${count(data.k[best])} rows.` : "checking does not pay.");
    byId("plan-step").setAttribute("aria-valuetext", byId("plan-says").textContent);
  }

  function setK(k, from) {
    state.k = Math.min(Math.max(1, Math.round(k) || 1), data.n_rows);
    if (from !== "k") byId("plan-k").value = state.k;
    if (from !== "step") byId("plan-step").value = Math.max(0, data.k.findIndex((value) => value >= state.k));
    plan();
    if (byId("rows-within").checked) changed();
  }

  // --- downloads -----------------------------------------------------------------------

  // As in scores.csv: RFC 4180; a text that a spreadsheet would run gets an apostrophe.
  const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;
  function field(value) {
    let text = String(value);
    if (typeof value === "string" && /^[=+\-@\t\r]/.test(text) && !NUMBER.test(text)) text = `'${text}`;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }

  function save(rows, file) {
    const lines = [columns.map((column) => field(column.name)).join(",")];
    for (const i of rows) lines.push(columns.map((column) => field(raw(column, i))).join(","));
    const blob = new Blob([lines.join("\r\n") + "\r\n"], { type: "text/csv;charset=utf-8" });
    const link = make("a", { href: URL.createObjectURL(blob), download: file });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  // --- controls ------------------------------------------------------------------------

  function syncSort() {
    byId("rows-sort").value = state.sort;
    byId("rows-order").value = state.order;
  }

  function start() {
    byId("rows-sort").append(...columns.map((column, j) => make("option", { value: j }, column.name)));
    byId("rows-fields").append(...columns.map((column, j) => {
      const input = make("input", { type: "text", autocomplete: "off", spellcheck: false });
      input.addEventListener("input", () => {
        if (input.value.trim()) filters.set(j, input.value); else filters.delete(j);
        changed();
      });
      return make("label", {}, make("bdi", {}, column.name), input);
    }));
    const on = (id, event, act) => byId(id).addEventListener(event, act);
    on("rows-search", "input", changed);
    on("rows-within", "change", changed);
    on("rows-sort", "change", (e) => { state.sort = Number(e.target.value); changed(); });
    on("rows-order", "change", (e) => { state.order = Number(e.target.value); changed(); });
    on("rows-back", "click", () => { state.page -= 1; draw(); });
    on("rows-on", "click", () => { state.page += 1; draw(); });
    on("rows-save", "click", () => save(state.rows, "rows.csv"));
    on("rows-save-ticked", "click", () => save([...state.ticked].sort((a, b) => a - b), "ticked.csv"));
    on("plan-step", "input", (e) => setK(data.k[Number(e.target.value)], "step"));
    on("plan-k", "input", (e) => setK(Number(e.target.value), "k"));
    on("plan-cost", "input", plan);
    on("plan-gain", "input", plan);
    byId("plan-step").max = data.k.length - 1;
    byId("plan-k").max = data.n_rows;
    if (data.left) {
      const many = data.left === 1 ? "1 column that matters less is" : `${count(data.left)} columns that matter less are`;
      byId("all-caption").firstElementChild.append(` ${many} not in this page.`);
    }
    syncSort();
    setK(Math.min(200, data.n_rows));
    select();
    byId("rows-app").hidden = false;
    byId("rows-app").parentElement.classList.add("alive");
  }
  start();
})();
