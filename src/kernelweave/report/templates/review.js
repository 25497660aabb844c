"use strict";
// Shows one question at a time, keeps decisions in the browser under the digest of the content,
// and writes them as CSV. Only the current question and the visible part of the list are elements.

const content = JSON.parse(document.getElementById("content").textContent);
const key = "kernelweave-review-" + document.querySelector("main").dataset.digest;
const FEW = 12; // columns shown at first
const HEIGHT = 30; // pixels of a line of the list

function byId(id) {
  return document.getElementById(id);
}

function make(tag, text, name) {
  const found = document.createElement(tag);
  if (text !== undefined) found.textContent = text;
  if (name) found.className = name;
  return found;
}

function load() {
  try {
    const kept = JSON.parse(window.localStorage.getItem(key));
    if (kept && Array.isArray(kept.log)) return kept;
  } catch (error) {
    return { log: [], at: 0 }; // no storage: decisions last as long as the page is open
  }
  return { log: [], at: 0 };
}

function prepareReview() {
  const items = content.items;
  const state = load(); // log: [item, kind, label] in the order of decisions
  let decided = new Map();
  let all = false;

  function replay() {
    decided = new Map();
    for (const [k, kind, label] of state.log) {
      if (k < items.length) decided.set(k, { kind: kind, label: label });
    }
  }

  function keep() {
    try {
      window.localStorage.setItem(key, JSON.stringify(state));
    } catch (error) {
      return;
    }
  }

  function nameOf(item) {
    return (item.place.length > 1 ? "rows " : "row ") + item.place.join(" and ");
  }

  function decide(kind, label) {
    const item = items[state.at];
    if (kind === "keep" && item.given === "") return;
    const chosen = kind === "keep" ? item.given : kind === "change" ? item.suggested : label;
    const named = kind === "other" ? (label === item.given ? "keep" : "change") : kind;
    const kept = named === "unsure" ? "" : chosen;
    state.log.push([state.at, named, kept]);
    decided.set(state.at, { kind: named, label: kept });
    let next = state.at + 1;
    while (next < items.length && decided.has(next)) next += 1;
    state.at = Math.min(next, items.length - 1);
    keep();
    show();
  }

  function undo() {
    const last = state.log.pop();
    if (last === undefined) return;
    state.at = Math.min(last[0], items.length - 1);
    replay();
    keep();
    show();
  }

  function go(k) {
    state.at = Math.max(0, Math.min(items.length - 1, k));
    keep();
    show();
  }

  function showLabels(item) {
    const box = byId("labels");
    box.replaceChildren();
    const shown = [
      ["given", item.given || "none"],
      ["suggested", item.suggested],
      ["quality of the given label", item.given ? item.quality.toFixed(2) : "-"],
    ];
    for (const [title, text] of shown) {
      const part = make("div");
      part.append(make("span", title), make("strong", text));
      box.append(part);
    }
  }

  function showChoices(item) {
    const now = decided.get(state.at);
    for (const button of document.querySelectorAll("#choices button")) {
      const kind = button.dataset.kind;
      const label = kind === "keep" ? item.given : item.suggested;
      const word = button.querySelector("span");
      if (kind === "keep") word.textContent = item.given ? "Keep " + label : "Keep";
      if (kind === "change") word.textContent = item.given ? "Change to " + label : "It is " + label;
      button.disabled = kind === "keep" && !item.given;
      const same = now && now.kind === kind && (kind !== "change" || now.label === label);
      button.setAttribute("aria-pressed", String(Boolean(same)));
    }
    const other = byId("other");
    byId("other-label").hidden = content.labels.length < 3 && item.given !== "";
    const rest = content.labels.filter((l) => l !== item.given && l !== item.suggested);
    other.replaceChildren(make("option", "…"));
    other.firstChild.value = "";
    for (const label of rest) other.append(make("option", label));
    const chosen = now && rest.includes(now.label) ? now.label : "";
    for (const option of other.options) option.selected = (option.value || "") === chosen;
  }

  function showValues(item) {
    const table = byId("values");
    table.replaceChildren();
    const sides = item.place.map((row) => [row, "row " + row]);
    for (const [row, label] of item.beside) sides.push([row, "row " + row + ": " + label]);
    const head = make("tr");
    head.append(make("th", "column"));
    for (const side of sides) head.append(make("th", side[1]));
    const top = make("thead");
    top.append(head);
    const body = make("tbody");
    const marked = new Set(item.columns);
    const order = [...item.columns];
    for (let c = 0; c < content.columns.length; c += 1) if (!marked.has(c)) order.push(c);
    const shown = all ? order : order.slice(0, FEW);
    for (const c of shown) {
      const line = make("tr", undefined, marked.has(c) ? "against" : "");
      line.append(make("td", content.columns[c]));
      for (const side of sides) line.append(make("td", (content.rows[side[0]] || [])[c] || ""));
      body.append(line);
    }
    table.append(top, body);
    byId("all").hidden = order.length <= FEW;
    byId("all").textContent = all ? "Show fewer columns" : "Show all " + order.length + " columns";
  }

  function showList() {
    const list = byId("list");
    if (!byId("overview").open) return;
    const first = Math.max(0, Math.floor(list.scrollTop / HEIGHT) - 5);
    const last = Math.min(items.length, first + 40);
    list.replaceChildren();
    const space = make("div");
    list.append(space);
    space.style.height = HEIGHT * items.length + "px";
    for (let k = first; k < last; k += 1) {
      const now = decided.get(k);
      const line = make("button", k + 1 + ". " + nameOf(items[k]) + ": " + (items[k].given || "none") + " ");
      line.type = "button";
      line.style.top = HEIGHT * k + "px";
      const mark = !now ? "open" : now.kind === "change" ? "→ " + now.label : now.kind;
      line.append(make("em", mark));
      line.setAttribute("aria-current", String(k === state.at));
      line.addEventListener("click", () => go(k));
      list.append(line);
    }
  }

  function show() {
    const item = items[state.at];
    byId("number").textContent = "Question " + (state.at + 1) + " of " + items.length + ", " + nameOf(item);
    showLabels(item);
    showChoices(item);
    byId("why").replaceChildren(...item.why.map((text) => make("li", text)));
    showValues(item);
    const counts = { keep: 0, change: 0, unsure: 0 };
    for (const one of decided.values()) counts[one.kind] += 1;
    byId("bar").value = decided.size;
    byId("state").textContent =
      decided.size + " of " + items.length + " decided: " + counts.keep + " kept, " +
      counts.change + " changed, " + counts.unsure + " unsure" +
      (decided.size === items.length ? ". All done: export the decisions." : "");
    byId("back").disabled = state.at === 0;
    byId("next").disabled = state.at === items.length - 1;
    byId("undo").disabled = state.log.length === 0;
    byId("export").disabled = decided.size === 0;
    showList();
  }

  function quoted(value) {
    const text = String(value);
    return /[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
  }

  function toCsv() {
    const places = content.pairs ? ["left", "right"] : ["row"];
    const names = [...places, "decision", "given", "label"];
    const lines = [names.join(",")];
    for (const line of content.before) lines.push(names.map((n) => quoted(line[n])).join(","));
    for (const k of [...decided.keys()].sort((a, b) => a - b)) {
      const one = decided.get(k);
      const cells = [...items[k].place, one.kind, items[k].given, one.label];
      lines.push(cells.map(quoted).join(","));
    }
    return lines.join("\r\n") + "\r\n";
  }

  function exportCsv() {
    if (!decided.size) return;
    const link = make("a");
    link.href = URL.createObjectURL(new Blob([toCsv()], { type: "text/csv" }));
    link.download = "decisions.csv";
    link.click();
    window.setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  const keys = {
    k: () => decide("keep"),
    c: () => decide("change"),
    u: () => decide("unsure"),
    z: undo,
    e: exportCsv,
    ArrowLeft: () => go(state.at - 1),
    ArrowRight: () => go(state.at + 1),
  };

  document.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("select, input")) return;
    const action = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
  for (const button of document.querySelectorAll("#choices button")) {
    button.addEventListener("click", () => decide(button.dataset.kind));
  }
  byId("other").addEventListener("change", function (event) {
    const label = event.target.value;
    event.target.blur();
    if (label) decide("other", label);
  });
  byId("back").addEventListener("click", keys.ArrowLeft);
  byId("next").addEventListener("click", keys.ArrowRight);
  byId("undo").addEventListener("click", undo);
  byId("export").addEventListener("click", exportCsv);
  byId("all").addEventListener("click", function () {
    all = !all;
    show();
  });
  byId("overview").addEventListener("toggle", showList);
  byId("list").addEventListener("scroll", showList);
  state.at = Math.max(0, Math.min(items.length - 1, state.at));
  replay();
  show();
}

if (content.items.length) prepareReview();
