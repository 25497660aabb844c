"use strict";
// Sorts and searches tables, and unfolds long ones. Without it the page is complete: tables are
// then simply not folded.

function keyOf(row, column) {
  const cell = row.cells[column];
  const value = cell.dataset.value;
  return value === undefined ? cell.textContent.trim().toLowerCase() : Number(value);
}

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), undefined, { numeric: true });
}

function prepareTable(holder) {
  const table = holder.querySelector("table");
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const limit = Number(table.dataset.folded || 0);
  const box = holder.querySelector("input[type=search]");
  const found = holder.querySelector(".found");
  let folded = limit > 0;
  let more = null;

  function refresh() {
    const words = box ? box.value.trim().toLowerCase() : "";
    let shown = 0;
    for (const row of body.rows) {
      const match = !words || row.textContent.toLowerCase().includes(words);
      row.classList.toggle("filtered", !match);
      row.classList.toggle("folded", match && folded && !words && shown >= limit);
      if (match) shown += 1;
    }
    if (found) found.textContent = words ? shown + " of " + body.rows.length : "";
    if (more) more.hidden = Boolean(words);
  }

  heads.forEach(function (head, column) {
    head.querySelector("button").addEventListener("click", function () {
      const now = head.getAttribute("aria-sort");
      const first = head.classList.contains("number") ? "descending" : "ascending";
      const other = first === "ascending" ? "descending" : "ascending";
      const next = now === first ? other : first;
      for (const each of heads) each.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", next);
      const sign = next === "ascending" ? 1 : -1;
      const rows = [...body.rows].map((row) => [keyOf(row, column), row]);
      rows.sort((a, b) => sign * compare(a[0], b[0]));
      body.append(...rows.map((pair) => pair[1]));
      refresh();
    });
  });

  if (limit > 0) {
    more = document.createElement("button");
    more.type = "button";
    more.className = "more";
    more.setAttribute("aria-expanded", "false");
    more.textContent = "Show all " + body.rows.length;
    more.addEventListener("click", function () {
      folded = !folded;
      more.setAttribute("aria-expanded", String(!folded));
      more.textContent = folded ? "Show all " + body.rows.length : "Show fewer";
      refresh();
    });
    holder.querySelector(".scroll").after(more);
  }
  if (box) box.addEventListener("input", refresh);
  refresh();
}

// What does not scroll need not be stopped at with the keyboard.
function prepareScrolling() {
  document.querySelectorAll(".scroll").forEach(function (part) {
    if (part.scrollWidth > part.clientWidth) part.setAttribute("tabindex", "0");
    else part.removeAttribute("tabindex");
  });
}

document.querySelectorAll(".sortable").forEach(prepareTable);
prepareScrolling();
window.addEventListener("resize", prepareScrolling);
