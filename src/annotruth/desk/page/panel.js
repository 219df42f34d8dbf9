// The panel on the right: whose labels are shown and started from, the decision, the history.

import { element, find, percent } from "./page.js";

const EYE = '<svg viewBox="0 0 20 20"><path d="M2 10s3-5 8-5 8 5 8 5-3 5-8 5-8-5-8-5z"/><circle class="ball" cx="10" cy="10" r="2.4"/></svg>';
const ACTIONS = { accept: "accepted", edit: "drew", ambiguous: "found it ambiguous", send: "sent it to", reopen: "reopened it", label: "labelled it" };

function eye(shown, words, toggle) {
  const button = element("button", { className: "eye", title: words, onclick: toggle });
  button.setAttribute("aria-pressed", shown);
  button.setAttribute("aria-label", words);
  button.innerHTML = EYE; // a constant
  return button;
}

/** A line for each layer: whose it is, how much of it is as it will be saved, whether its outline is shown. */
export function listLayers(place, layers, used, { toggle, use }) {
  const raters = layers.filter((layer) => layer.number !== undefined);
  place.replaceChildren(...layers.map((layer) => {
    const key = raters.indexOf(layer) + 1, mark = element("i", { className: layer.key === "fused" || layer.key === "gold" ? "" : "line" });
    mark.style.setProperty("--colour", layer.colour);
    const name = element("button", { className: "use", disabled: !layer.usable, title: layer.usable ? `Start from ${layer.name}` : layer.name, onclick: () => use(layer) }, layer.name);
    const line = element("li", { className: layer.key === used ? "used" : "", dataset: { key: layer.key } }, mark, name, element("span", { className: "told", title: "of what is marked, the same as what will be saved" }, layer.told || ""));
    if (key > 0 && key < 10) line.append(element("kbd", {}, String(key)));
    if (layer.toggles) line.append(eye(layer.shown, `Show ${layer.name}`, () => toggle(layer)));
    return line;
  }));
}

/** Classes of a label table: how probable, and who said so. */
export function listAnswers(told, desk, chosen, choose) {
  const voters = desk.classes.map(() => []);
  for (const [rater, label] of told.answers || []) voters[label].push(desk.raters[rater]);
  const order = desk.classes.map((_, number) => number);
  if (told.posterior) order.sort((a, b) => told.posterior[b] - told.posterior[a] || a - b);
  find("answers").replaceChildren(...order.map((number, place) => {
    const button = element("button", { role: "radio", dataset: { label: number }, onclick: () => choose(number) },
      element("kbd", {}, ...(place < 9 ? [String(place + 1)] : [])), element("span", { className: "name" }, desk.classes[number]));
    button.setAttribute("aria-checked", number === chosen);
    if (told.posterior) {
      const bar = element("span", { className: "doubt" }, element("i"));
      bar.firstChild.style.width = percent(told.posterior[number]).replace(" ", "");
      button.append(element("span", { className: "chance" }, percent(told.posterior[number])), bar);
    }
    if (voters[number].length) {
      const shown = voters[number].slice(0, 12), rest = voters[number].length - shown.length;
      button.append(element("span", { className: "voters" }, shown.join(", ") + (rest > 0 ? ` and ${rest} more` : "")));
    }
    return element("li", {}, button);
  }));
  return order;
}

export function listHistory(entries) {
  find("history-part").hidden = !entries.length;
  find("history").replaceChildren(...entries.toReversed().map((entry) => {
    const when = new Date(entry.time).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
    const what = entry.action === "send" ? `${ACTIONS.send} ${entry.rater}` : entry.action === "accept" ? `accepted ${sourceName(entry.source)}` : entry.action === "edit" && entry.label ? "chose" : ACTIONS[entry.action];
    const line = element("li", {}, element("b", {}, entry.who), ` ${what}${entry.label ? `: ${entry.label}` : ""}`, element("br"), when);
    if (entry.why) line.append(element("q", {}, entry.why));
    return line;
  }));
}

export const sourceName = (source) => source === "fused" ? "the fused truth" : source.startsWith("rater ") ? `${source.slice(6)}'s label` : source.startsWith("method ") ? `what ${source.slice(7)} says` : source === "gold" ? "the earlier decision" : source;

export function listRaters(told, raters) {
  const gain = new Map(told.gains.map((each, place) => [each.rater, place]));
  const order = [...raters].sort((a, b) => (gain.get(a) ?? 1e9) - (gain.get(b) ?? 1e9));
  const chosen = find("rater").dataset.chosen === told.item ? find("rater").value : order[0];
  find("rater").replaceChildren(...order.map((name) => {
    const words = gain.get(name) === 0 ? `${name}, tells most` : gain.has(name) ? name : `${name}, again`;
    return element("option", { value: name, selected: name === chosen }, words);
  }));
}
