// The list of cases: by doubt, by status, by name.

import { getJson } from "./api.js";
import { element, find } from "./page.js";

const PAGE = 150;
const TABS = { curator: [["open", "To decide"], ["sent", "Sent"], ["decided", "Decided"], ["ambiguous", "Ambiguous"]], rater: [["open", "To label"], ["decided", "Done"]] };
const EMPTY = { open: "Nothing is left to decide.", sent: "No case was sent to a rater.", decided: "No case is decided yet.", ambiguous: "No case is ambiguous." };

export class CaseList {
  constructor(role, choose) {
    this.role = role;
    this.choose = choose;
    this.show = "open";
    this.rows = [];
    this.count = PAGE;
    this.current = null;
    this.held = {};
    for (const [status, words] of TABS[role]) {
      const tab = element("button", { role: "tab", dataset: { status }, onclick: () => this.select(status) }, words, element("b"));
      find("tabs").append(tab);
    }
    let waiting;
    find("find").addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => this.load(), 150);
    });
    find("more").addEventListener("click", () => {
      this.count += PAGE;
      this.load();
    });
  }

  select(status) {
    this.show = status;
    this.count = PAGE;
    return this.load();
  }

  async load() {
    const asked = new URLSearchParams({ show: this.show, find: find("find").value, start: 0, count: Math.min(this.count, 500) });
    const told = await getJson(`/api/queue?${asked}`);
    this.rows = told.rows;
    this.total = told.total;
    for (const tab of find("tabs").children) tab.setAttribute("aria-selected", tab.dataset.status === this.show);
    this.render();
  }

  setCounts(counts) {
    for (const tab of find("tabs").children) tab.lastChild.textContent = counts[tab.dataset.status] ?? "";
  }

  setHeld(held) {
    if (JSON.stringify(held) === JSON.stringify(this.held)) return;
    this.held = held;
    this.render();
  }

  mark(index) {
    this.current = index;
    for (const line of find("cases").children) line.setAttribute("aria-current", Number(line.dataset.index) === index);
    find("cases").querySelector("[aria-current=true]")?.scrollIntoView({ block: "nearest" });
  }

  /** The case so many places further on, past those that others hold. */
  neighbour(step, from = this.current) {
    let place = this.rows.findIndex((row) => row.index === from);
    if (place < 0) place = step > 0 ? -1 : this.rows.length;
    for (place += step; place >= 0 && place < this.rows.length; place += step) if (!this.held[this.rows[place].index]) return this.rows[place].index;
    return null;
  }

  render() {
    const list = find("cases"), scrolled = list.scrollTop;
    list.replaceChildren(...this.rows.map((row) => this.line(row)));
    list.scrollTop = scrolled;
    find("more").hidden = this.rows.length >= this.total || this.rows.length >= 500;
    find("empty").hidden = this.rows.length > 0;
    find("empty").textContent = find("find").value ? "No case has such a name." : this.role === "rater" ? (this.show === "open" ? "Nothing is left to label." : "Nothing is labelled yet.") : EMPTY[this.show];
  }

  line(row) {
    const holder = this.held[row.index];
    const side = holder ? `${holder} is at it` : row.asked ? "asked of you" : row.status === "sent" ? `→ ${row.sent.join(", ")}` : row.status === "open" ? "" : row.last || "";
    const bar = element("div", { className: "doubt" }, element("i"));
    bar.firstChild.style.width = `${100 * (row.doubt || 0)}%`;
    const line = element("li", { className: `${row.status}${row.asked ? " asked" : ""}`, dataset: { index: row.index }, onclick: () => this.choose(row.index) },
      element("span", { className: "dot" }), element("span", { className: "name", title: row.item }, row.item),
      element("span", { className: `side${holder ? " held" : ""}` }, side));
    if (row.reason && row.status === "open") line.append(element("span", { className: "words" }, row.reason), bar);
    line.setAttribute("aria-current", row.index === this.current);
    return line;
  }
}
