// Label tables: an item's picture, and the classes to choose from.

import { getBundle } from "./api.js";
import { showDecision } from "./decide.js";
import { goTo } from "./masks.js";
import { element, find, percent } from "./page.js";
import { listAnswers } from "./panel.js";
import { fail, isRater, state, viewer } from "./state.js";

export function showTable() {
  if (state.open.image && state.open.shape.length) {
    viewer.layers = [];
    viewer.show(state.open.shape, state.open.aspect, state.open.image, null);
    goTo(0);
  } else {
    viewer.clear();
    find("blank").hidden = false;
    find("blank").textContent = state.open.item;
  }
  propose();
  if (!isRater()) showOpinions();
}

/** Choose the most probable class, or what was decided; none as long as the fusion has not learnt anything. */
export function propose() {
  const best = state.open.posterior ? state.open.posterior.indexOf(Math.max(...state.open.posterior)) : -1;
  state.open.proposed = isRater() ? state.open.own ?? -1 : state.open.gold ?? best;
  state.open.used = isRater() ? "" : state.open.gold !== null ? "gold" : "fused";
  chooseClass(state.open.proposed);
}

export function chooseClass(number) {
  state.open.label = number;
  state.open.changed = number !== state.open.proposed;
  state.open.order = listAnswers(state.open, state.desk, number, chooseClass);
  showDecision();
}

async function showOpinions() {
  const owner = state.open, place = find("methods");
  place.replaceChildren();
  for (const [number, name] of state.desk.methods.entries()) {
    try {
      const { head } = await getBundle(`/api/cases/${owner.index}/methods/${number}`);
      if (state.open !== owner) return;
      const told = state.desk.classes[head.label] + (head.probability ? `, ${percent(head.probability)}` : "");
      place.append(element("li", {}, element("span", { className: "use" }, name), element("span", { className: "told" }, told)));
    } catch (error) {
      if (state.open === owner) fail(error);
      return;
    }
  }
}

