// Masks: slices, everybody's labels, and what will be saved.

import { getBundle, getBytes } from "./api.js";
import { FUSED, METHODS, raterColour } from "./colours.js";
import { showDecision } from "./decide.js";
import { dropDraft, findDraft, keepDraft } from "./drafts.js";
import { element, find, percent, say } from "./page.js";
import { listLayers } from "./panel.js";
import { encode, Runs } from "./runs.js";
import { draftKey, editor, fail, isRater, isMasks, layer, state, viewer } from "./state.js";

const shownOutlines = new Map(); // by layer, from case to case

export function asPlane(buffer) {
  return state.open.image.bytes === 2 ? new Uint16Array(buffer) : new Uint8Array(buffer);
}

async function plane(slice) {
  if (!state.open.image) return null;
  const key = `${state.open.channel}/${slice}`, owner = state.open;
  if (!owner.planes.has(key)) {
    const buffer = await getBytes(`/api/cases/${owner.index}/image?slice=${slice}&channel=${owner.channel}`);
    if (state.open !== owner) return null;
    owner.planes.set(key, asPlane(buffer));
    if (owner.planes.size > 64) owner.planes.delete(owner.planes.keys().next().value);
  }
  return owner.planes.get(key);
}

export async function goTo(slice) {
  if (!state.open || !viewer.shape) return;
  slice = Math.min(viewer.slices - 1, Math.max(0, slice));
  state.tool.points = [];
  state.open.wanted = slice;
  const pixels = await plane(slice);
  if (!state.open || state.open.wanted !== slice) return;
  viewer.setSlice(slice, pixels);
  find("slice").value = slice;
  find("slice-told").textContent = `${slice + 1} / ${viewer.slices}`;
  for (const near of [slice + 1, slice - 1]) if (near >= 0 && near < viewer.slices) plane(near).catch(() => {});
}

export async function showMasks(bundle, slice) {
  const size = state.open.shape.reduce((a, b) => a * b, 1);
  state.open.size = size;
  setLayers(bundle);
  const owner = state.open, draft = await findDraft(draftKey());
  if (state.open !== owner) return; // another case was chosen meanwhile
  const best = layer("gold") || layer("own") || layer("fused"), known = best ? best.runs.read(0, size) : new Uint8Array(size);
  const drawn = draft?.size === size ? new Runs(draft.code.buffer.slice(0), size).read(0, size) : null;
  const fits = drawn?.some((value, i) => value !== known[i]); // else it was saved, and the answer got lost
  if (drawn && !fits) dropDraft(draftKey());
  const labels = fits ? drawn : known;
  state.open.used = fits ? draft.used : best?.key || null;
  state.open.changed = state.open.taken = Boolean(fits); // a drawing that was taken up again
  editor.reset();
  viewer.show(state.open.shape, state.open.aspect, state.open.image, labels);
  find("slices").hidden = viewer.slices === 1;
  find("slice").max = viewer.slices - 1;
  const channels = state.open.image?.channels || 1;
  find("channel").hidden = channels < 2;
  find("channel").replaceChildren(...Array.from({ length: channels }, (_, n) => element("option", { value: n }, `channel ${n + 1}`)));
  await goTo(slice);
  showLayers();
  if (fits) {
    const when = new Date(draft.time).toLocaleTimeString(undefined, { timeStyle: "short" });
    say(`Your drawing of ${when}, which was not saved, is here again.`, { action: ["Discard", () => startFrom(best)], seconds: 10 });
  }
}

export function setLayers({ head, parts }) {
  state.open.layers = head.layers.map(({ kind, number }, place) => {
    const runs = new Runs(parts[place], state.open.size);
    if (kind === "rater") return made(`rater ${state.desk.raters[number]}`, state.desk.raters[number], raterColour(number), runs, { number, shown: true });
    if (kind === "probability") return made("probability", "Doubt", "#b378ff", runs, { usable: false, steps: state.desk.steps });
    if (kind === "gold") return made("gold", "Decided", "#3ddc97", runs);
    return kind === "own" ? made("own", "Your label", FUSED, runs, { toggles: false }) : made("fused", "Fused truth", FUSED, runs);
  });
  viewer.layers = state.open.layers;

  function made(key, name, colour, runs, more = {}) {
    const shown = shownOutlines.has(key) ? shownOutlines.get(key) : more.shown || false;
    return { key, name, colour, runs, usable: true, toggles: true, ...more, shown };
  }
}

/** Take a layer's labels as what will be saved. */
export function startFrom(from) {
  if (!from || !state.open) return;
  viewer.labels = from.runs.read(0, state.open.size);
  editor.reset();
  state.open.used = from.key;
  state.open.changed = state.open.taken = false;
  viewer.paintFill();
  viewer.draw();
  dropDraft(draftKey());
  showLayers();
}

export function toggle(which) {
  if (!which) return;
  which.shown = !which.shown;
  shownOutlines.set(which.key, which.shown);
  viewer.paintDoubt();
  viewer.draw();
  showLayers();
}

/** How far labels agree with what will be saved: the share of marked pixels, in either, that are the same. */
function agreement(runs) {
  const size = viewer.rows * viewer.columns, other = runs.read(viewer.slice * size, (viewer.slice + 1) * size), own = viewer.current();
  let same = 0, marked = 0;
  for (let i = 0; i < size; i++) if (own[i] || other[i]) { marked++; if (own[i] === other[i]) same++; }
  return marked ? same / marked : 1;
}

/** List everybody's labels, and what will be saved. */
export function showLayers() {
  const { open } = state;
  if (!open) return;
  for (const each of open.layers) each.told = each.key === "probability" ? "" : percent(agreement(each.runs));
  const used = open.changed ? null : open.used, methods = open.layers.filter((each) => each.method !== undefined);
  listLayers(find("layers"), open.layers.filter((each) => each.method === undefined), used, { toggle, use: startFrom });
  const lines = (state.desk.methods || []).map((name, number) => methods.find((each) => each.method === number) || unasked(name, number));
  listLayers(find("methods"), lines, used, { toggle: (line) => withMethod(line, toggle), use: (line) => withMethod(line, startFrom) });
  find("undo").disabled = !editor.done.length;
  find("redo").disabled = !editor.undone.length;
  showDecision();
}

/** A method that was not asked yet. */
const unasked = (name, number) => ({ key: `method ${name}`, name, colour: METHODS, usable: true, toggles: true, shown: false, pending: number });

/** Ask for what a method says, unless it is known. */
async function withMethod(line, act) {
  if (line.pending === undefined) return act(line);
  const owner = state.open;
  try {
    const { parts } = await getBundle(`/api/cases/${owner.index}/methods/${line.pending}`);
    if (state.open !== owner) return undefined;
    const made = { ...line, method: line.pending, pending: undefined, runs: new Runs(parts[0], owner.size), dash: [6, 4] };
    owner.layers.push(made);
    return act(made);
  } catch (error) {
    return fail(error);
  }
}

let cycling = -1;
export function nextMethod() {
  if (isRater() || !isMasks()) return;
  for (const each of state.open.layers) if (each.method !== undefined) each.shown = false;
  cycling = (cycling + 2) % (state.desk.methods.length + 1) - 1;
  viewer.draw();
  showLayers();
  if (cycling < 0) return;
  const name = state.desk.methods[cycling], known = state.open.layers.find((each) => each.method === cycling);
  withMethod(known || unasked(name, cycling), toggle);
}

export function changed() {
  state.open.changed = editor.isChanged || state.open.taken;
  viewer.draw();
  showLayers();
  if (state.open.changed) keepDraft(draftKey(), { code: encode(viewer.labels), size: state.open.size, used: state.open.used, time: Date.now() });
  else dropDraft(draftKey());
}

export async function stepBack(forth) {
  if (!state.open || !isMasks() || editor.before) return;
  const slice = forth ? editor.redo() : editor.undo();
  if (slice === undefined) return;
  if (slice !== viewer.slice) await goTo(slice);
  changed();
}

