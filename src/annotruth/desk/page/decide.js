// Opening a case and deciding it; the next one follows.

import { getBundle, getBytes, post } from "./api.js";
import { dropDraft } from "./drafts.js";
import { asPlane, showMasks } from "./masks.js";
import { find, say } from "./page.js";
import { listHistory, listRaters, sourceName } from "./panel.js";
import { encode } from "./runs.js";
import { draftKey, fail, isMasks, isRater, measure, state, viewer } from "./state.js";
import { showTable } from "./tables.js";
import { keep, soon } from "./touch.js";

let opening = 0;

export async function openCase(index) {
  if (index === null || index === undefined) return;
  const started = performance.now(), turn = ++opening;
  if (state.open && state.open.index !== index) leave();
  state.list.mark(index);
  try {
    const path = `/api/cases/${index}`;
    const [told, bundle, first] = await Promise.all([
      post(`${path}/open`, { who: state.who }),
      isMasks() ? getBundle(`${path}/layers`) : null,
      getBytes(`${path}/image`).catch((error) => { if (error.status !== 400) throw error; return null; }),
    ]);
    if (turn !== opening) return; // another case was chosen meanwhile
    state.open = { ...told, planes: new Map(), channel: 0, used: null, changed: false };
    find("why").value = "";
    showHead();
    const slice = bundle?.head.slice || 0;
    if (first) state.open.planes.set("0/0", asPlane(first));
    if (isMasks()) await showMasks(bundle, slice); else showTable();
    if (turn !== opening) return;
    measure("open", started);
    document.body.dataset.open = state.open.item;
    prefetch();
  } catch (error) {
    if (turn === opening) fail(error);
  }
}

export function leave() {
  if (state.open) post(`/api/cases/${state.open.index}/close`, { who: state.who }, undefined, true).catch(() => {});
  state.open = null;
  delete document.body.dataset.open;
}

export function showHead() {
  find("blank").hidden = true;
  find("item").textContent = state.open.item;
  find("reason").textContent = isRater() ? "" : state.open.status === "open" ? state.open.reason : { decided: "decided", ambiguous: "ambiguous", sent: `sent to ${(state.open.sent || []).join(", ")}` }[state.open.status];
  find("reopen").hidden = isRater() || state.open.status === "open";
  listHistory(state.open.entries);
  if (!isRater()) listRaters(state.open, state.desk.raters);
  showHolder();
}

function prefetch() {
  const next = state.list.neighbour(1);
  if (next !== null) setTimeout(() => getBytes(`/api/cases/${next}/image`).catch(() => {}), 300);
}

export function showHolder() {
  const held = Boolean(state.open?.holder);
  find("notice").hidden = !held;
  if (held) find("notice").textContent = `${state.open.holder} has this case open. You can look; what you draw cannot be saved until it is free.`;
  for (const id of ["save", "ambiguous", "send", "reopen"]) find(id).disabled = held || state.saving;
  if (state.open?.label < 0) find("save").disabled = true; // no class is chosen
}

/** Say what saving would do now. */
export function showDecision() {
  const { open } = state;
  if (!open) return;
  const drawn = isMasks() ? "Save drawing" : "Save class";
  find("save-told").textContent = isRater() ? (isMasks() && !open.used && !open.changed ? "Save as empty" : "Save label") : open.changed ? drawn : `Accept ${sourceName(open.used || "")}`.trim();
  showHolder();
}

export async function decide(action) {
  if (!state.open || state.saving || state.open.holder) return;
  const started = performance.now(), owner = state.open, key = draftKey(), next = state.list.neighbour(1);
  const withLabel = ["accept", "edit", "label"].includes(action);
  const told = { who: state.who, action, seen: owner.seen, why: find("why").value, source: !withLabel ? "" : owner.changed ? (isMasks() ? "drawing" : "choice") : owner.used || "", rater: find("rater").value };
  if (!isMasks() && withLabel) told.label = String(owner.label);
  state.saving = true;
  showHolder();
  try {
    const answer = await post(`/api/cases/${owner.index}/decide`, told, withLabel && isMasks() ? encode(viewer.labels) : undefined);
    measure("save", started);
    document.body.dataset.saved = answer.number;
    dropDraft(key);
    if (answer.warning) say(answer.warning, { bad: true });
    else if (answer.note) say(answer.note, { seconds: 10 });
    else say({ send: `${owner.item} is sent to ${told.rater}${owner.status === "decided" ? "; what was decided no longer holds" : ""}.`, ambiguous: `${owner.item} is ambiguous.`, reopen: `${owner.item} is open again.` }[action] || `${owner.item} is saved.`);
    state.saving = false;
    soon();
    await state.list.load();
    if (state.open !== owner) return undefined; // another case was chosen meanwhile
    if (action === "reopen") return openCase(owner.index);
    const onward = state.list.rows.some((row) => row.index === next) ? next : state.list.neighbour(1, -1);
    if (onward !== null && onward !== owner.index) return openCase(onward);
    leave();
    viewer.clear();
    find("item").textContent = "";
    find("reason").textContent = "";
    find("blank").hidden = false;
    find("blank").textContent = isRater() ? "Thank you: nothing is left to label." : "Nothing is left here.";
  } catch (error) {
    fail(error);
    if (error.status === 409) keep();
  } finally {
    state.saving = false;
    showHolder();
  }
  return undefined;
}

export function save() {
  if (!state.open || find("save").disabled) return;
  decide(isRater() ? "label" : state.open.changed ? "edit" : "accept");
}
