// The desk's page: a case is opened, looked at, decided; the next one follows.

import { DeskError, getBundle, getBytes, getJson, keepSession, post, session } from "./api.js";
import { classColour, FUSED, METHODS, raterColour, UNKNOWN } from "./colours.js";
import { dropDraft, findDraft, keepDraft } from "./drafts.js";
import { Editor } from "./editor.js";
import { actionOf, fillHelp } from "./keys.js";
import { CaseList } from "./list.js";
import { element, find, percent, say } from "./page.js";
import { listAnswers, listHistory, listLayers, listRaters, sourceName } from "./panel.js";
import { encode, Runs } from "./runs.js";
import { Viewer } from "./viewer.js";

const KEEP_EVERY = 8000, LOOK_EVERY = 1500, LOOK_SOON = 250;
const viewer = new Viewer(find("canvas")), editor = new Editor(viewer);
let desk, list, who = localStorage.getItem("who") || "";
let open = null; // the case that is shown
let version = -1, opening = 0, saving = false;
const tool = { mode: "pan", size: 8, label: 1, points: [], hand: false, at: null };
const shownOutlines = new Map(); // by layer, from case to case

const isRater = () => desk.role === "rater";
const isMasks = () => desk.kind === "masks";
const draftKey = () => `${desk.title}/${desk.rater}/${open.item}`;
const measure = (name, start) => performance.measure(`desk:${name}`, { start, end: performance.now() });

// -- opening a case -----------------------------------------------------------------------------------------------

async function openCase(index) {
  if (index === null || index === undefined) return;
  const started = performance.now(), turn = ++opening;
  if (open && open.index !== index) leave();
  list.mark(index);
  try {
    const path = `/api/cases/${index}`;
    const [told, bundle, first] = await Promise.all([
      post(`${path}/open`, { who }),
      isMasks() ? getBundle(`${path}/layers`) : null,
      getBytes(`${path}/image`).catch((error) => { if (error.status !== 400) throw error; return null; }),
    ]);
    if (turn !== opening) return; // another case was chosen meanwhile
    open = { ...told, planes: new Map(), channel: 0, used: null, changed: false };
    find("why").value = "";
    showHead();
    const slice = bundle?.head.slice || 0;
    if (first) open.planes.set("0/0", asPlane(first));
    if (isMasks()) await showMasks(bundle, slice); else showTable();
    measure("open", started);
    document.body.dataset.open = open.item;
    prefetch();
  } catch (error) {
    if (turn === opening) fail(error);
  }
}

function leave() {
  if (open) post(`/api/cases/${open.index}/close`, { who }, undefined, true).catch(() => {});
  open = null;
  delete document.body.dataset.open;
}

function showHead() {
  find("blank").hidden = true;
  find("item").textContent = open.item;
  find("reason").textContent = isRater() ? "" : open.status === "open" ? open.reason : { decided: "decided", ambiguous: "ambiguous", sent: `sent to ${(open.sent || []).join(", ")}` }[open.status];
  find("reopen").hidden = isRater() || open.status === "open";
  find("methods-part").hidden = isRater();
  find("send-part").hidden = isRater();
  find("ambiguous").hidden = isRater();
  listHistory(open.entries);
  if (!isRater()) listRaters(open, desk.raters);
  showHolder();
}

function showHolder() {
  const held = Boolean(open?.holder);
  find("notice").hidden = !held;
  if (held) find("notice").textContent = `${open.holder} has this case open. You can look; what you draw cannot be saved until it is free.`;
  for (const id of ["save", "ambiguous", "send", "reopen"]) find(id).disabled = held || saving;
}

function asPlane(buffer) {
  return open.image.bytes === 2 ? new Uint16Array(buffer) : new Uint8Array(buffer);
}

async function plane(slice) {
  if (!open.image) return null;
  const key = `${open.channel}/${slice}`, owner = open;
  if (!owner.planes.has(key)) {
    const buffer = await getBytes(`/api/cases/${owner.index}/image?slice=${slice}&channel=${owner.channel}`);
    if (open !== owner) return null;
    owner.planes.set(key, asPlane(buffer));
    if (owner.planes.size > 64) owner.planes.delete(owner.planes.keys().next().value);
  }
  return owner.planes.get(key);
}

async function goTo(slice) {
  if (!open || !viewer.shape) return;
  slice = Math.min(viewer.slices - 1, Math.max(0, slice));
  tool.points = [];
  open.wanted = slice;
  const pixels = await plane(slice);
  if (!open || open.wanted !== slice) return;
  viewer.setSlice(slice, pixels);
  find("slice").value = slice;
  find("slice-told").textContent = `${slice + 1} / ${viewer.slices}`;
  for (const near of [slice + 1, slice - 1]) if (near >= 0 && near < viewer.slices) plane(near).catch(() => {});
}

function prefetch() {
  const next = list.neighbour(1);
  if (next !== null) setTimeout(() => getBytes(`/api/cases/${next}/image`).catch(() => {}), 300);
}

// -- masks --------------------------------------------------------------------------------------------------------

async function showMasks(bundle, slice) {
  const size = open.shape.reduce((a, b) => a * b, 1);
  open.size = size;
  setLayers(bundle);
  const draft = await findDraft(draftKey());
  const fits = draft && draft.size === size;
  const best = layer("gold") || layer("own") || layer("fused");
  const labels = fits ? new Runs(draft.code.buffer.slice(0), size).read(0, size) : best ? best.runs.read(0, size) : new Uint8Array(size);
  open.used = fits ? draft.used : best?.key || null;
  open.changed = open.taken = Boolean(fits); // a drawing that was taken up again
  editor.reset();
  viewer.show(open.shape, open.aspect, open.image, labels);
  find("slices").hidden = viewer.slices === 1;
  find("slice").max = viewer.slices - 1;
  const channels = open.image?.channels || 1;
  find("channel").hidden = channels < 2;
  find("channel").replaceChildren(...Array.from({ length: channels }, (_, n) => element("option", { value: n }, `channel ${n + 1}`)));
  await goTo(slice);
  showUse();
  if (fits) {
    const when = new Date(draft.time).toLocaleTimeString(undefined, { timeStyle: "short" });
    say(`Your drawing of ${when}, which was not saved, is here again.`, { action: ["Discard", () => startFrom(best)], seconds: 10 });
  }
}

function setLayers({ head, parts }) {
  open.layers = head.layers.map(({ kind, number }, place) => {
    const runs = new Runs(parts[place], open.size);
    if (kind === "rater") return made(`rater ${desk.raters[number]}`, desk.raters[number], raterColour(number), runs, { number, shown: true });
    if (kind === "probability") return made("probability", "Doubt", "#fff478", runs, { usable: false, steps: desk.steps });
    if (kind === "gold") return made("gold", "Decided", "#3ddc97", runs);
    return kind === "own" ? made("own", "Your label", FUSED, runs, { toggles: false }) : made("fused", "Fused truth", FUSED, runs);
  });
  viewer.layers = open.layers;

  function made(key, name, colour, runs, more = {}) {
    const shown = shownOutlines.has(key) ? shownOutlines.get(key) : more.shown || false;
    return { key, name, colour, runs, usable: true, toggles: true, ...more, shown };
  }
}

const layer = (key) => open.layers.find((each) => each.key === key);

/** Take a layer's labels as what will be saved. */
function startFrom(from) {
  if (!from || !open) return;
  viewer.labels = from.runs.read(0, open.size);
  editor.reset();
  open.used = from.key;
  open.changed = open.taken = false;
  viewer.paintFill();
  viewer.draw();
  dropDraft(draftKey());
  showUse();
}

function toggle(which) {
  if (!which) return;
  which.shown = !which.shown;
  shownOutlines.set(which.key, which.shown);
  viewer.paintDoubt();
  viewer.draw();
  showUse();
}

/** How far labels agree with what will be saved: the share of marked pixels, in either, that are the same. */
function agreement(runs) {
  const size = viewer.rows * viewer.columns, other = runs.read(viewer.slice * size, (viewer.slice + 1) * size), own = viewer.current();
  let same = 0, marked = 0;
  for (let i = 0; i < size; i++) if (own[i] || other[i]) { marked++; if (own[i] === other[i]) same++; }
  return marked ? same / marked : 1;
}

function showUse() {
  if (!open) return;
  if (isMasks()) {
    for (const each of open.layers) each.told = each.key === "probability" ? "" : percent(agreement(each.runs));
    const used = open.changed ? null : open.used, methods = open.layers.filter((each) => each.method !== undefined);
    listLayers(find("layers"), open.layers.filter((each) => each.method === undefined), used, { toggle, use: startFrom });
    const lines = desk.methods?.map((name, number) => methods.find((each) => each.method === number) || { key: `method ${name}`, name, colour: METHODS, usable: true, toggles: true, shown: false, pending: number }) || [];
    listLayers(find("methods"), lines, used, { toggle: (line) => withMethod(line, toggle), use: (line) => withMethod(line, startFrom) });
    find("undo").disabled = !editor.done.length;
    find("redo").disabled = !editor.undone.length;
  }
  find("save-told").textContent = isRater() ? "Save label" : open.changed ? (isMasks() ? "Save drawing" : "Save class") : `Accept ${sourceName(open.used || "")}`.trim();
  showHolder();
}

/** Ask for what a method says, unless it is known. */
async function withMethod(line, act) {
  if (line.pending === undefined) return act(line);
  const owner = open;
  try {
    const { parts } = await getBundle(`/api/cases/${owner.index}/methods/${line.pending}`);
    if (open !== owner) return undefined;
    const made = { ...line, method: line.pending, pending: undefined, runs: new Runs(parts[0], owner.size), dash: [6, 4] };
    owner.layers.push(made);
    return act(made);
  } catch (error) {
    return fail(error);
  }
}

let cycling = -1;
function nextMethod() {
  if (isRater() || !isMasks()) return;
  for (const each of open.layers) if (each.method !== undefined) each.shown = false;
  cycling = (cycling + 2) % (desk.methods.length + 1) - 1;
  viewer.draw();
  showUse();
  if (cycling < 0) return;
  const name = desk.methods[cycling], known = open.layers.find((each) => each.method === cycling);
  withMethod(known || { key: `method ${name}`, name, colour: METHODS, usable: true, toggles: true, shown: false, pending: cycling }, toggle);
}

function changed() {
  open.changed = editor.isChanged || open.taken;
  viewer.draw();
  showUse();
  if (open.changed) keepDraft(draftKey(), { code: encode(viewer.labels), size: open.size, used: open.used, time: Date.now() });
  else dropDraft(draftKey());
}

async function stepBack(forth) {
  if (!open || !isMasks() || editor.before) return;
  const slice = forth ? editor.redo() : editor.undo();
  if (slice === undefined) return;
  if (slice !== viewer.slice) await goTo(slice);
  changed();
}

// -- label tables -------------------------------------------------------------------------------------------------

function showTable() {
  if (open.image && open.shape.length) {
    viewer.layers = [];
    viewer.show(open.shape, open.aspect, open.image, null);
    goTo(0);
  } else {
    viewer.clear();
    find("blank").hidden = false;
    find("blank").textContent = open.item;
  }
  const best = open.posterior ? open.posterior.indexOf(Math.max(...open.posterior)) : -1;
  open.proposed = isRater() ? open.own ?? -1 : open.gold ?? best;
  open.used = isRater() ? "" : open.gold !== null ? "gold" : "fused";
  chooseClass(open.proposed);
  if (!isRater()) showOpinions();
}

function chooseClass(number) {
  open.label = number;
  open.changed = number !== open.proposed;
  open.order = listAnswers(open, desk, number, chooseClass);
  showUse();
  if (number < 0) find("save").disabled = true;
}

async function showOpinions() {
  const owner = open, place = find("methods");
  place.replaceChildren();
  for (const [number, name] of desk.methods.entries()) {
    try {
      const { head } = await getBundle(`/api/cases/${owner.index}/methods/${number}`);
      if (open !== owner) return;
      const told = desk.classes[head.label] + (head.probability ? `, ${percent(head.probability)}` : "");
      place.append(element("li", {}, element("span", { className: "use" }, name), element("span", { className: "told" }, told)));
    } catch (error) {
      if (open === owner) fail(error);
      return;
    }
  }
}

// -- deciding -----------------------------------------------------------------------------------------------------

async function decide(action) {
  if (!open || saving || open.holder) return;
  const started = performance.now(), owner = open, next = list.neighbour(1);
  const withLabel = ["accept", "edit", "label"].includes(action);
  const told = { who, action, seen: owner.seen, why: find("why").value, source: !withLabel ? "" : owner.changed ? (isMasks() ? "drawing" : "choice") : owner.used || "", rater: find("rater").value };
  if (!isMasks() && withLabel) told.label = String(owner.label);
  saving = true;
  showHolder();
  try {
    const answer = await post(`/api/cases/${owner.index}/decide`, told, withLabel && isMasks() ? encode(viewer.labels) : undefined);
    measure("save", started);
    document.body.dataset.saved = answer.number;
    if (isMasks()) dropDraft(draftKey());
    if (answer.warning) say(answer.warning, { bad: true });
    else say({ send: `${owner.item} is sent to ${told.rater}.`, ambiguous: `${owner.item} is ambiguous.`, reopen: `${owner.item} is open again.` }[action] || `${owner.item} is saved.`);
    saving = false;
    soon();
    await list.load();
    if (action === "reopen") return openCase(owner.index);
    const onward = list.rows.some((row) => row.index === next) ? next : list.neighbour(1, -1);
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
    saving = false;
    showHolder();
  }
  return undefined;
}

function save() {
  if (!open || find("save").disabled) return;
  decide(isRater() ? "label" : open.changed ? "edit" : "accept");
}

function fail(error) {
  if (!(error instanceof DeskError)) console.error(error);
  say(error.message, { bad: true });
}

// -- staying in touch -------------------------------------------------------------------------------------------

async function keep() {
  if (!open) return;
  const owner = open;
  try {
    const told = await post(`/api/cases/${owner.index}/keep`, { who });
    if (open !== owner) return;
    const freed = owner.holder && !told.holder;
    owner.holder = told.holder;
    showHolder();
    if (freed && told.seen !== owner.seen) openCase(owner.index); // it was decided meanwhile
  } catch { /* looking tells */ }
}

let looking, reached = true;
async function look() {
  clearTimeout(looking);
  let wait = LOOK_EVERY;
  try {
    const told = await getJson(`/api/state?session=${session}`);
    if (!reached) say("The desk is there again.");
    reached = true;
    showState(told);
    if (told.busy) wait = LOOK_SOON;
    if (told.version !== version) {
      const first = version < 0;
      version = told.version;
      document.body.dataset.version = version;
      await list.load();
      if (!first) refresh();
      if (first && !open) await openCase(list.neighbour(1, -1));
    }
  } catch (error) {
    if (reached) fail(error);
    reached = false;
    find("fusion").textContent = "not reached";
    find("fusion").className = "pill bad";
  }
  looking = setTimeout(look, wait);
}

const soon = () => { clearTimeout(looking); looking = setTimeout(look, 60); };

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
  find("meter").style.width = `${(100 * decided) / desk.cases}%`;
  find("tally").textContent = `${decided.toLocaleString()} of ${desk.cases.toLocaleString()} decided`;
  list.setCounts(counts);
  list.setHeld(told.held);
}

/** Let the open case follow the fusion, as long as nobody has drawn on it. */
async function refresh() {
  if (!open || !isMasks() || isRater() || open.changed || editor.before) return;
  const owner = open;
  try {
    const bundle = await getBundle(`/api/cases/${owner.index}/layers`);
    if (open !== owner || owner.changed || editor.before) return;
    setLayers(bundle);
    viewer.outlines = new Map();
    viewer.paintDoubt();
    if (owner.used === "fused") startFrom(layer("fused")); else { viewer.draw(); showUse(); }
  } catch { /* looking tells */ }
}

// -- the pointer --------------------------------------------------------------------------------------------------

const canvas = find("canvas");
let drag = null;

function setMode(mode) {
  tool.mode = mode;
  tool.points = [];
  for (const button of find("modes").children) button.setAttribute("aria-pressed", button.dataset.mode === mode);
  canvas.style.cursor = { pan: "grab", brush: "none", erase: "none", polygon: "crosshair", window: "ns-resize" }[mode];
  viewer.draw();
}

const value = () => (tool.mode === "erase" ? 0 : tool.label);

canvas.addEventListener("pointerdown", (event) => {
  if (!open || !viewer.shape) return;
  canvas.focus({ preventScroll: true });
  const at = viewer.locate(event), mode = event.button === 1 || tool.hand ? "pan" : event.button === 2 ? "window" : tool.mode;
  canvas.setPointerCapture(event.pointerId);
  if (mode === "polygon") {
    tool.points.push(at);
    viewer.draw();
    return;
  }
  drag = { mode, last: at, window: viewer.window && [...viewer.window], first: at };
  if ((mode === "brush" || mode === "erase") && viewer.labels) {
    editor.begin();
    stroke(at, at);
  }
});

function stroke(from, to) {
  const started = performance.now();
  editor.stamp(from, to, tool.size / 2, value());
  if (!drag.frame) {
    drag.frame = requestAnimationFrame(() => {
      if (drag) drag.frame = 0;
      const drawing = performance.now();
      viewer.draw();
      performance.measure("desk:draw", { start: drawing, end: performance.now() });
    });
  }
  measure("stamp", started);
}

canvas.addEventListener("pointermove", (event) => {
  if (!open || !viewer.shape) return;
  const at = (tool.at = viewer.locate(event));
  if (drag?.mode === "pan") viewer.move(at.screenX - drag.last.screenX, at.screenY - drag.last.screenY);
  else if (drag?.mode === "window" && viewer.image) {
    const range = viewer.image.high - viewer.image.low, [low, high] = drag.window;
    const wider = ((at.screenX - drag.first.screenX) / 400) * range, brighter = ((at.screenY - drag.first.screenY) / 400) * range;
    viewer.setWindow(low + brighter - wider / 2, high + brighter + wider / 2);
  } else if (drag && viewer.labels) stroke(drag.last, at);
  else if (tool.mode !== "pan") viewer.draw();
  if (drag) drag.last = drag.mode === "pan" ? viewer.locate(event) : at;
  readOut(at);
});

function endDrag() {
  const was = drag;
  drag = null;
  if (was && (was.mode === "brush" || was.mode === "erase") && editor.before && editor.end()) changed();
}
canvas.addEventListener("pointerup", endDrag);
canvas.addEventListener("pointercancel", endDrag);
canvas.addEventListener("pointerleave", () => { tool.at = null; viewer.draw(); });
canvas.addEventListener("contextmenu", (event) => event.preventDefault());
canvas.addEventListener("dblclick", () => { if (tool.mode === "polygon") closePolygon(); });
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  if (!viewer.shape) return;
  const at = viewer.locate(event);
  if (viewer.slices > 1 && !event.ctrlKey) goTo((open.wanted ?? viewer.slice) + Math.sign(event.deltaY));
  else viewer.zoom(Math.exp(-event.deltaY / 400), at.screenX, at.screenY);
}, { passive: false });

function closePolygon() {
  const points = tool.points;
  tool.points = [];
  if (points.length > 2 && viewer.labels && editor.polygon(points, value())) changed(); else viewer.draw();
}

viewer.drawn = (context, ratio) => {
  if (tool.points.length) {
    const path = new Path2D();
    for (const point of [...tool.points, ...(tool.at ? [tool.at] : [])]) path.lineTo(point.x, point.y);
    viewer.stroke(path, classColour(tool.label), 2 * ratio);
  }
  if (tool.at && (tool.mode === "brush" || tool.mode === "erase") && viewer.labels) {
    const path = new Path2D();
    path.ellipse(tool.at.x, tool.at.y, tool.size / 2, tool.size / 2 / viewer.aspect, 0, 0, 7);
    viewer.stroke(path, "#000", 3 * ratio);
    viewer.stroke(path, tool.mode === "erase" ? "#fff" : classColour(tool.label), 1.5 * ratio);
  }
};

viewer.zoomed = () => { find("zoom").textContent = percent(viewer.scale / (devicePixelRatio || 1)); };

function readOut(at) {
  const x = Math.floor(at.x), y = Math.floor(at.y), place = find("readout"), cells = [];
  if (x < 0 || y < 0 || x >= viewer.columns || y >= viewer.rows || viewer.slice === undefined) return place.replaceChildren();
  const spot = y * viewer.columns + x, tell = (name, words) => cells.push(element("span", {}, `${name} `, element("b", {}, words)));
  tell("pixel", viewer.slices > 1 ? `${x}, ${y}, ${viewer.slice}` : `${x}, ${y}`);
  if (viewer.plane && viewer.image && !viewer.image.colour) {
    const { low, high, bytes } = viewer.image;
    tell("value", String(Number((low + (viewer.plane[spot] * (high - low)) / (bytes === 2 ? 65535 : 255)).toPrecision(4))));
  }
  if (viewer.labels) {
    const named = (label) => (label === UNKNOWN ? "not sure" : desk.classes[label]), whole = viewer.slice * viewer.rows * viewer.columns + spot;
    tell("label", named(viewer.current()[spot]));
    const chance = layer("probability");
    if (chance) tell("fused", `${named(layer("fused").runs.read(whole, whole + 1)[0])}, ${percent(chance.runs.read(whole, whole + 1)[0] / desk.steps)}`);
    for (const each of open.layers) if (each.shown && each.number !== undefined) tell(each.name, named(each.runs.read(whole, whole + 1)[0]));
  }
  return place.replaceChildren(...cells);
}

// -- keys and buttons -------------------------------------------------------------------------------------------

const act = {
  next: () => openCase(list.neighbour(1)), previous: () => openCase(list.neighbour(-1)), find: () => find("find").focus(),
  save: () => (tool.points.length ? closePolygon() : save()), note: () => find("why").focus(),
  ambiguous: () => !isRater() && decide("ambiguous"), send: () => !isRater() && decide("send"), reopen: () => !find("reopen").hidden && decide("reopen"),
  rater: (number) => (isMasks() ? toggle(open?.layers.filter((each) => each.number !== undefined)[number]) : open && open.order[number] !== undefined && chooseClass(open.order[number])),
  use: (number) => isMasks() && startFrom(open?.layers.filter((each) => each.number !== undefined)[number]),
  fused: () => isMasks() && startFrom(layer("fused")), fill: () => { viewer.fillShown = viewer.fillShown === false; viewer.draw(); },
  doubt: () => isMasks() && toggle(layer("probability")), methods: nextMethod,
  pan: () => setMode("pan"), brush: () => setMode("brush"), erase: () => setMode("erase"), polygon: () => setMode("polygon"), window: () => setMode("window"),
  class: () => setClass(choices[(choices.indexOf(tool.label) + 1) % choices.length]), smaller: () => setSize(tool.size - (tool.size > 12 ? 4 : 1)), larger: () => setSize(tool.size + (tool.size > 11 ? 4 : 1)),
  undo: () => stepBack(false), redo: () => stepBack(true), zoomin: () => viewer.zoom(1.25), zoomout: () => viewer.zoom(0.8), fit: () => viewer.fit(),
  up: () => viewer.slices > 1 && goTo((open.wanted ?? viewer.slice) - 1), down: () => viewer.slices > 1 && goTo((open.wanted ?? viewer.slice) + 1),
  help: () => (find("keys").open ? find("keys").close() : find("keys").showModal()),
  cancel: () => { tool.points = []; viewer.draw(); },
};

document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input:not([type=range]), textarea, select");
  if (event.key === "Escape" && typing) return event.target.blur();
  if (find("name").open || (find("keys").open && event.key !== "?")) return undefined;
  if (typing) {
    if (event.key === "Enter" && event.target.id === "why" && !event.shiftKey) { event.preventDefault(); event.target.blur(); save(); }
    if (event.key === "Enter" && event.target.id === "find") { event.target.blur(); act.next(); }
    return undefined;
  }
  if (event.key === " ") { tool.hand = true; event.preventDefault(); return undefined; }
  if (event.key === "Enter" && event.target.matches("button:not(#save)")) return undefined; // the button's own
  const found = actionOf(event);
  if (!found || (!open && !["next", "find", "help"].includes(found.name))) return undefined;
  event.preventDefault();
  return act[found.name](found.number);
});
document.addEventListener("keyup", (event) => { if (event.key === " ") tool.hand = false; });

let choices = [1];
function setClass(number) {
  tool.label = number;
  for (const chip of find("classes").children) {
    chip.setAttribute("aria-pressed", Number(chip.dataset.label) === number);
    chip.setAttribute("aria-checked", Number(chip.dataset.label) === number);
  }
  if (!["brush", "polygon"].includes(tool.mode)) setMode("brush");
}

function setSize(size) {
  tool.size = Math.min(60, Math.max(1, size));
  find("size").value = tool.size;
  find("size-told").textContent = tool.size;
  viewer.draw();
}

function wire() {
  for (const button of find("modes").children) button.addEventListener("click", () => setMode(button.dataset.mode));
  const clicks = { undo: act.undo, redo: act.redo, fit: act.fit, save, ambiguous: act.ambiguous, send: act.send, reopen: act.reopen, help: act.help, who: askName };
  for (const [id, work] of Object.entries(clicks)) find(id).addEventListener("click", () => { work(); if (id !== "help" && id !== "who") find(id).blur(); });
  find("size").addEventListener("input", () => setSize(Number(find("size").value)));
  find("slice").addEventListener("input", () => goTo(Number(find("slice").value)));
  find("channel").addEventListener("change", () => { open.channel = Number(find("channel").value); goTo(viewer.slice); });
  addEventListener("pagehide", () => { if (open) leave(); keepSession(); });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) { keep(); soon(); } });
}

function askName() {
  if (isRater()) return Promise.resolve();
  find("name-told").value = who;
  find("name").showModal();
  return new Promise((resolve) => {
    find("name").addEventListener("close", () => {
      who = find("name-told").value.trim() || who;
      localStorage.setItem("who", who);
      find("who").textContent = who;
      resolve(who || askName());
    }, { once: true });
  });
}

async function begin() {
  desk = await getJson("/api/desk");
  document.title = `${desk.title || "annotruth"} · desk`;
  find("title").textContent = desk.title;
  document.body.classList.toggle("plain", !isMasks());
  document.body.classList.toggle("rater", isRater());
  const hidden = new Set(isRater() ? ["ambiguous", "send", "reopen", "rater", "use", "fused", "doubt", "methods"] : []);
  if (!isMasks()) for (const name of ["use", "fused", "fill", "doubt", "methods", "brush", "erase", "polygon", "class", "smaller", "larger", "undo", "redo", "pan", "window", "up", "down"]) hidden.add(name);
  fillHelp(find("keys-told"), hidden);
  find("layers-part").hidden = !isMasks() || isRater();
  find("answers-part").hidden = isMasks();
  find("methods-key").hidden = !isMasks();
  if (isRater()) document.querySelector(".tally").hidden = true;
  choices = [...desk.classes.keys()].filter((number) => number > 0).concat(isRater() ? [] : [UNKNOWN]);
  for (const number of isMasks() ? choices : []) {
    const mark = element("i"), chip = element("button", { role: "radio", dataset: { label: number }, onclick: () => { setClass(number); chip.blur(); } }, mark, number === UNKNOWN ? "not sure" : desk.classes[number]);
    mark.style.setProperty("--colour", classColour(number));
    find("classes").append(chip);
  }
  list = new CaseList(desk.role, (index) => openCase(index));
  wire();
  setClass(choices[0]);
  setMode("pan");
  find("who").textContent = isRater() ? desk.rater : who;
  for (const words of desk.told || []) say(words, { seconds: 15 });
  if (!who && !isRater()) await askName();
  await list.load();
  await look();
  if (!open) await openCase(list.neighbour(1, -1));
  setInterval(keep, KEEP_EVERY);
  document.body.dataset.ready = "yes";
}

begin().catch(fail);
