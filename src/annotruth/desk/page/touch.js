// Staying in touch with the server: a case is kept, and the page follows what others and the fusion do.

import { getBundle, getJson, post, session } from "./api.js";
import { openCase, showHead, showHolder } from "./decide.js";
import { setLayers, showLayers, startFrom } from "./masks.js";
import { find, percent, say } from "./page.js";
import { editor, fail, isMasks, isRater, layer, state, viewer } from "./state.js";
import { propose } from "./tables.js";

const LOOK_EVERY = 1500, LOOK_SOON = 250;
let version = -1;

export async function keep() {
  if (!state.open) return;
  const owner = state.open;
  try {
    const told = await post(`/api/cases/${owner.index}/keep`, { who: state.who });
    if (state.open !== owner) return;
    owner.holder = told.holder;
    showHolder();
    // It was decided meanwhile, by another or by this page itself, before its server went away.
    if (!told.holder && told.seen !== owner.seen && !state.saving && !isRater()) openCase(owner.index);
  } catch { /* looking tells */ }
}

let looking, reached = true;
export async function look() {
  clearTimeout(looking);
  let wait = LOOK_EVERY;
  try {
    const told = await getJson(`/api/state?session=${session}`);
    if (!reached) {
      say("The desk is there again.");
      version = -1; // it counts from the beginning
      keep();
    }
    reached = true;
    showState(told);
    if (told.busy) wait = LOOK_SOON;
    if (told.version !== version) {
      const first = version < 0;
      version = told.version;
      document.body.dataset.version = version;
      await state.list.load();
      if (!first) refresh();
      if (first && !state.open) await openCase(state.list.neighbour(1, -1));
    }
  } catch (error) {
    if (reached) fail(error);
    reached = false;
    find("fusion").textContent = "not reached";
    find("fusion").className = "pill bad";
  }
  looking = setTimeout(look, wait);
}

export const soon = () => { clearTimeout(looking); looking = setTimeout(look, 60); };

function showState(told) {
  const pill = find("fusion");
  pill.className = `pill${told.fault ? " bad" : told.busy ? " busy" : ""}`;
  if (isRater()) {
    pill.hidden = true;
    return;
  }
  const [done, total] = told.progress;
  pill.textContent = told.fault ? "fusion stopped" : done < total ? `looking at all cases, ${percent(done / total)}` : told.busy ? "fusion follows …" : "fusion up to date";
  pill.title = told.fault;
  const { counts } = told, decided = counts.decided + counts.ambiguous;
  find("meter").style.width = `${(100 * decided) / state.desk.cases}%`;
  find("tally").textContent = `${decided.toLocaleString()} of ${state.desk.cases.toLocaleString()} decided`;
  state.list.setCounts(counts);
  state.list.setHeld(told.held);
}

/** Let the open case follow the fusion, as long as nobody has drawn on it. */
async function refresh() {
  if (!state.open || isRater()) return;
  const owner = state.open;
  try {
    const { reason, gains, posterior } = await post(`/api/cases/${owner.index}/open`, { who: state.who });
    if (state.open !== owner) return;
    Object.assign(owner, { reason, gains });
    showHead();
    if (!isMasks() && posterior && !owner.posterior && !owner.changed) {
      owner.posterior = posterior;
      propose();
    }
    if (!isMasks() || owner.changed || editor.before) return;
    const bundle = await getBundle(`/api/cases/${owner.index}/layers`);
    if (state.open !== owner || owner.changed || editor.before) return;
    setLayers(bundle);
    viewer.outlines = new Map();
    viewer.paintDoubt();
    if (owner.used === "fused") startFrom(layer("fused")); else { viewer.draw(); showLayers(); }
  } catch { /* looking tells */ }
}

