"use strict";
// Sort the raters by a click on a heading: numbers from high to low first, words from a to z.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  const key = (row, column) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const rows = [...table.tBodies[0].rows];
    const numeric = rows.some(row => row.cells[column].dataset.value !== undefined);
    const first = numeric ? "descending" : "ascending";
    const order = head.getAttribute("aria-sort") === first ? (numeric ? "ascending" : "descending") : first;
    const sign = order === "ascending" ? 1 : -1;
    rows.sort((a, b) => sign * (numeric ? key(a, column) - key(b, column) : key(a, column).localeCompare(key(b, column))));
    heads.forEach(other => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", order);
    table.tBodies[0].append(...rows);
  }));
}
// Enlarge a picture; arrow keys leaf through the pictures of the same case or rater.
const dialog = document.querySelector("dialog");
let shown = null;
function enlarge(tile) {
  shown = tile;
  const large = document.createElement("div");
  large.className = tile.className;
  large.append(...[...tile.childNodes].map(node => node.cloneNode(true)));
  dialog.querySelector(".stage").replaceChildren(large);
  dialog.querySelector("p").textContent = tile.getAttribute("aria-label").replace("Enlarge: ", "");
  if (!dialog.open) dialog.showModal();
}
for (const tile of document.querySelectorAll(".tiles .tile")) tile.addEventListener("click", () => enlarge(tile));
dialog.addEventListener("click", event => { if (event.target === dialog) dialog.close(); });
dialog.addEventListener("close", () => shown?.focus());
dialog.addEventListener("keydown", event => {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!step || !shown) return;
  const all = [...shown.closest(".tiles").querySelectorAll(".tile")];
  enlarge(all[(all.indexOf(shown) + step + all.length) % all.length]);
});
// Mark the section being read in the table of contents; at the page's end that is the last one, however short.
const links = [...document.querySelectorAll(".toc a")];
const sections = links.map(link => document.querySelector(link.hash));
function mark() {
  const passed = sections.filter(section => section.getBoundingClientRect().top < innerHeight / 4).length;
  const atEnd = scrollY > 0 && innerHeight + scrollY >= document.documentElement.scrollHeight - 2;
  const current = atEnd ? links.length - 1 : Math.max(passed - 1, 0);
  links.forEach((link, place) => place === current ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current"));
}
addEventListener("scroll", mark, { passive: true });
mark();
