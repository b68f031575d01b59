"use strict";
// Text of the table reaches the page as textContent alone: never as markup, a link or a style.

const LONG = 400, FEW = 24, MORE = 50;
const SAID = { yes: "yes", no: "no", unknown: "cannot tell" };
const at = (id) => document.getElementById(id);
const number = (value) => Math.round(value).toLocaleString("en");
const plural = (n, word) => `${number(n)} ${word}${n === 1 ? "" : "s"}`;

let about = {}, view = null, found = null, busy = false, all = false, counting = false;

history.replaceState(null, "", "/"); // the token is a cookie from now on
const tab = sessionStorage.tab ||= crypto.getRandomValues(new Uint32Array(2)).join("-");

async function ask(name, change) {
  const asked = new URLSearchParams({ tab, ...change });
  const response = await fetch(`/api/${name}?${asked}`, { method: change ? "POST" : "GET" });
  if (response.status === 403) throw new Error("forbidden");
  return { ok: response.ok, ...(await response.json()) };
}

function complain(text) {
  at("problem").textContent = text;
  at("problem").hidden = !text;
}

function make(tag, text, parent) {
  const element = document.createElement(tag);
  element.textContent = text;
  parent.append(element);
  return element;
}

function fill(list, cells) {
  list.replaceChildren();
  for (const [name, text, why] of cells) {
    make("dt", name, list).dir = "auto";
    const cell = make("dd", text || "empty", list);
    cell.dir = "auto";
    cell.classList.toggle("empty", !text);
    if (text.length > LONG) fold(cell, text);
    if (why) make("small", why, cell);
  }
}

function fold(cell, text) {
  cell.textContent = "";
  const part = make("span", "", cell), button = make("button", "", cell);
  button.type = "button";
  const set = (open) => {
    part.textContent = open ? text : `${text.slice(0, LONG)}…`;
    button.textContent = open ? "Show less" : `Show all ${number(text.length)} characters`;
    button.setAttribute("aria-expanded", open);
  };
  button.addEventListener("click", () => set(button.getAttribute("aria-expanded") !== "true"));
  set(false);
}

const nameOf = (row) => row.id ? `${row.id} (row ${number(row.row)})` : `Row ${number(row.row)}`;

function showRow() {
  const row = view.row, rest = row.cells.length - FEW;
  at("name").textContent = nameOf(row);
  fill(at("cells"), all ? row.cells : row.cells.slice(0, FEW));
  at("all").hidden = rest <= 0;
  at("all").textContent = all ? "Show fewer columns" : `Show ${plural(rest, "more column")}`;
  at("all").setAttribute("aria-expanded", all);
  at("likeness").hidden = !row.similar;
  at("similar").replaceChildren();
  for (const other of row.similar || []) {
    make("h3", nameOf(other), at("similar"));
    fill(make("dl", "", at("similar")), other.cells);
  }
  const score = row.score;
  at("score").textContent = typeof score === "number" ? `Score of this row: ${score.toFixed(3)}` : "";
}

const target = () => Number(at("width").value) || 0;
const narrow = () => found && found.answers > 0 && target() > 0 && found.high - found.low < target();

function showEnd() {
  const done = !view.row;
  at("end-title").textContent = done
    ? `All ${plural(view.asked, "row")} answered` : "The interval is narrow enough";
  at("end-text").textContent = (found ? `${found.headline}. ` : "")
    + `The answers are in ${about.folder}/answers.jsonl. To end, press Ctrl-C in the terminal`
    + (view.mode === "audit" ? ": it writes audit.html, a report to keep." : ".");
  at("more").hidden = !done || !view.more;
  at("on").hidden = done;
}

function show() {
  const ended = !view.row || narrow();
  at("row").hidden = ended;
  at("end").hidden = !ended;
  if (ended) { showEnd(); at("likeness").hidden = true; } else showRow();
  at("count").textContent = `${number(view.answered)} of ${number(view.asked)}`;
  at("progress").max = view.asked;
  at("progress").value = view.answered;
  at("told").textContent = `${number(view.yes)} yes, ${number(view.no)} no, ${number(view.unknown)} cannot tell`;
  for (const button of document.querySelectorAll("[data-answer]")) button.disabled = ended;
  at("undo").disabled = !view.undo;
}

function take(next, words) {
  complain(next.error || "");
  if (!("asked" in next)) return;
  view = next;
  show();
  if (view.row && !at("row").hidden) {
    window.scrollTo(0, 0);
    words += ` ${nameOf(view.row)}, ${view.answered + 1} of ${view.asked}.`;
  } else words += ` ${at("end-title").textContent}.`;
  at("said").textContent = words.trim();
  if (view.mode === "audit") count();
}

async function send(name, change, words) {
  if (busy) return;
  busy = true;
  try {
    take(await ask(name, change), words);
  } catch (error) {
    complain(error.message === "forbidden"
      ? "This page is no longer valid. Open the address that probgap label printed."
      : "The server does not answer, and this was not saved. Start probgap label again, and open its new address.");
  } finally {
    busy = false;
  }
}

function answer(word) {
  if (view && view.row && !at("row").hidden) {
    send("answer", { row: view.row.row, answer: word }, `Saved: ${SAID[word]}.`);
  }
}

async function count() {
  if (counting) return; // the one on its way asks again
  counting = true;
  try {
    do {
      found = await ask("estimate");
      showEstimate();
    } while (found.answers < view.yes + view.no + view.unknown);
  } catch { /* the next answer says so */ } finally {
    counting = false;
  }
}

function showEstimate() {
  const { low, high, answers } = found, ended = !at("end").hidden;
  at("estimate").hidden = false;
  at("interval").textContent = answers ? `${number(low)} to ${number(high)}` : "Not known yet";
  at("best").textContent = answers
    ? `90% interval among ${number(found.unlabelled)} unlabelled rows; best estimate ${number(found.count)}, from ${plural(answers, "answer")}`
    : "The interval appears with the first answer.";
  at("said-count").textContent = answers ? `Between ${number(low)} and ${number(high)} hidden positives.` : "";
  draw(found.trace);
  if (narrow() || ended) show();
  if (!ended && !at("end").hidden) at("end").focus();
}

function draw(trace) {
  const chart = at("chart");
  chart.replaceChildren();
  chart.classList.toggle("unseen", trace.length === 0);
  if (!trace.length) return;
  const left = 44, right = 312, top = 8, bottom = 126;
  const most = Math.max(view.asked, trace.at(-1)[0]), highest = Math.max(...trace.map((p) => p[3]), 1);
  const x = (n) => left + (right - left) * (most > 1 ? (n - 1) / (most - 1) : 0.5);
  const y = (v) => bottom - (bottom - top) * v / highest;
  const add = (tag, attributes, text = "") => {
    const mark = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) mark.setAttribute(name, value);
    mark.textContent = text;
    chart.append(mark);
  };
  for (const value of [0, highest / 2, highest]) {
    add("line", { x1: left, x2: right, y1: y(value), y2: y(value) });
    add("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, number(value));
  }
  const path = (end, points) => points.map((p) => `${x(p[0]).toFixed(1)},${y(p[end]).toFixed(1)}`);
  const zone = [...path(3, trace), ...path(1, [...trace].reverse())];
  add("polygon", { class: "zone", points: zone.join(" ") });
  add("polyline", { class: "line", points: path(2, trace).join(" ") });
  const [n, low, , high] = trace.at(-1);
  add("line", { class: "now", x1: x(n), x2: x(n), y1: y(low), y2: y(high) });
  add("text", { x: left, y: 146 }, "1 answer");
  add("text", { x: right, y: 146, "text-anchor": "end" }, number(most));
}

const KEYS = { y: "yes", n: "no", "?": "unknown" };
document.addEventListener("keydown", (event) => {
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input")) return;
  const key = event.key.toLowerCase();
  if (KEYS[key]) answer(KEYS[key]);
  else if (key === "z") undo();
  else return;
  event.preventDefault();
});

function undo() {
  if (view && view.undo) send("undo", {}, "Undone.");
}

for (const button of document.querySelectorAll("[data-answer]")) {
  button.addEventListener("click", () => answer(button.dataset.answer));
}
at("undo").addEventListener("click", undo);
at("more").addEventListener("click", () => send("more", { n: MORE }, "More rows."));
at("on").addEventListener("click", () => {
  at("width").value = "";
  show();
  at("row").focus();
});
at("all").addEventListener("click", () => { all = !all; showRow(); });
at("width").addEventListener("change", () => {
  localStorage[`width ${about.folder}`] = at("width").value;
  if (view) show();
});

async function begin() {
  about = await ask("about");
  at("table").textContent = about.table;
  at("question").textContent = `Is this row positive (${about.label}: ${about.positive})?`;
  document.title = `Labelling ${about.table}`;
  at("width").value = localStorage[`width ${about.folder}`] || "";
  at("order").hidden = !about.driving;
  at("order").textContent = "Columns that drive the probabilities come first.";
  await send("row", null, "");
  at("mode").textContent = {
    audit: "Audit: rows drawn at random, scores hidden",
    find: "Find: the likeliest first", teach: "Teach: rows that improve the model most",
  }[view.mode];
}

begin().catch(() => complain("The server does not answer. Start probgap label, and open its address."));
