// The desk's page: what keys and buttons do, and how it begins.

import { getJson, keepSession } from "./api.js";
import { classColour, UNKNOWN } from "./colours.js";
import { decide, openCase, leave, save } from "./decide.js";
import { actionOf, fillHelp } from "./keys.js";
import { CaseList } from "./list.js";
import { goTo, nextMethod, startFrom, stepBack, toggle } from "./masks.js";
import { element, find, say } from "./page.js";
import { closePolygon, setMode } from "./pointer.js";
import { fail, isMasks, isRater, layer, state, viewer } from "./state.js";
import { chooseClass } from "./tables.js";
import { keep, look, soon } from "./touch.js";

const KEEP_EVERY = 8000;

const act = {
  next: () => openCase(state.list.neighbour(1)), previous: () => openCase(state.list.neighbour(-1)), find: () => find("find").focus(),
  save: () => (state.tool.points.length ? closePolygon() : save()), note: () => find("why").focus(),
  ambiguous: () => !isRater() && decide("ambiguous"), send: () => !isRater() && decide("send"), reopen: () => !find("reopen").hidden && decide("reopen"),
  rater: (number) => (isMasks() ? toggle(state.open?.layers.filter((each) => each.number !== undefined)[number]) : state.open && state.open.order[number] !== undefined && chooseClass(state.open.order[number])),
  use: (number) => isMasks() && startFrom(state.open?.layers.filter((each) => each.number !== undefined)[number]),
  fused: () => isMasks() && startFrom(layer("fused")), fill: () => { viewer.fillShown = viewer.fillShown === false; viewer.draw(); },
  doubt: () => isMasks() && toggle(layer("probability")), methods: nextMethod,
  pan: () => setMode("pan"), brush: () => setMode("brush"), erase: () => setMode("erase"), polygon: () => setMode("polygon"), window: () => setMode("window"),
  class: () => setClass(choices[(choices.indexOf(state.tool.label) + 1) % choices.length]), smaller: () => setSize(state.tool.size - (state.tool.size > 12 ? 4 : 1)), larger: () => setSize(state.tool.size + (state.tool.size > 11 ? 4 : 1)),
  undo: () => stepBack(false), redo: () => stepBack(true), zoomin: () => viewer.zoom(1.25), zoomout: () => viewer.zoom(0.8), fit: () => viewer.fit(),
  up: () => viewer.slices > 1 && goTo((state.open.wanted ?? viewer.slice) - 1), down: () => viewer.slices > 1 && goTo((state.open.wanted ?? viewer.slice) + 1),
  help: () => (find("keys").open ? find("keys").close() : find("keys").showModal()),
  cancel: () => { state.tool.points = []; viewer.draw(); },
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
  if (event.key === " ") { state.tool.hand = true; event.preventDefault(); return undefined; }
  if (event.key === "Enter" && event.target.matches("button:not(#save)")) return undefined; // the button's own
  const found = actionOf(event);
  if (!found || (!state.open && !["next", "find", "help"].includes(found.name))) return undefined;
  event.preventDefault();
  return act[found.name](found.number);
});
document.addEventListener("keyup", (event) => { if (event.key === " ") state.tool.hand = false; });

let choices = [1];
function setClass(number) {
  state.tool.label = number;
  for (const chip of find("classes").children) {
    chip.setAttribute("aria-pressed", Number(chip.dataset.label) === number);
    chip.setAttribute("aria-checked", Number(chip.dataset.label) === number);
  }
  if (!["brush", "polygon"].includes(state.tool.mode)) setMode("brush");
}

function setSize(size) {
  state.tool.size = Math.min(60, Math.max(1, size));
  find("size").value = state.tool.size;
  find("size-told").textContent = state.tool.size;
  viewer.draw();
}

function wire() {
  for (const button of find("modes").children) button.addEventListener("click", () => setMode(button.dataset.mode));
  const clicks = { undo: act.undo, redo: act.redo, fit: act.fit, save, ambiguous: act.ambiguous, send: act.send, reopen: act.reopen, help: act.help, who: askName };
  for (const [id, work] of Object.entries(clicks)) find(id).addEventListener("click", () => { work(); if (id !== "help" && id !== "who") find(id).blur(); });
  find("size").addEventListener("input", () => setSize(Number(find("size").value)));
  find("rater").addEventListener("change", () => { find("rater").dataset.chosen = state.open?.item; });
  find("slice").addEventListener("input", () => goTo(Number(find("slice").value)));
  find("channel").addEventListener("change", () => { state.open.channel = Number(find("channel").value); goTo(viewer.slice); find("channel").blur(); });
  addEventListener("pagehide", () => { if (state.open) leave(); keepSession(); });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) { keep(); soon(); } });
}

function askName() {
  if (isRater()) return Promise.resolve();
  find("name-told").value = state.who;
  find("name").showModal();
  return new Promise((resolve) => {
    find("name").addEventListener("close", () => {
      state.who = find("name-told").value.trim() || state.who;
      localStorage.setItem("who", state.who);
      find("who").textContent = state.who;
      resolve(state.who || askName());
    }, { once: true });
  });
}

async function begin() {
  state.desk = await getJson("/api/desk");
  document.title = `${state.desk.title || "annotruth"} · desk`;
  find("title").textContent = state.desk.title;
  document.body.classList.toggle("plain", !isMasks());
  document.body.classList.toggle("rater", isRater());
  const hidden = new Set(isRater() ? ["ambiguous", "send", "reopen", "rater", "use", "fused", "doubt", "methods"] : []);
  if (!isMasks()) for (const name of ["use", "fused", "fill", "doubt", "methods", "brush", "erase", "polygon", "class", "smaller", "larger", "undo", "redo", "pan", "window", "up", "down"]) hidden.add(name);
  fillHelp(find("keys-told"), hidden);
  find("layers-part").hidden = !isMasks() || isRater();
  find("answers-part").hidden = isMasks();
  find("methods-key").hidden = !isMasks();
  if (isRater()) {
    for (const id of ["methods-part", "send-part", "ambiguous"]) find(id).hidden = true;
    document.querySelector(".tally").hidden = true;
    find("save-told").textContent = "Save label";
  }
  choices = [...state.desk.classes.keys()].filter((number) => number > 0).concat(isRater() ? [] : [UNKNOWN]);
  for (const number of isMasks() ? choices : []) {
    const mark = element("i"), chip = element("button", { role: "radio", dataset: { label: number }, onclick: () => { setClass(number); chip.blur(); } }, mark, number === UNKNOWN ? "not sure" : state.desk.classes[number]);
    mark.style.setProperty("--colour", classColour(number));
    find("classes").append(chip);
  }
  state.list = new CaseList(state.desk.role, (index) => openCase(index));
  wire();
  setClass(choices[0]);
  setMode("pan");
  find("who").textContent = isRater() ? state.desk.rater : state.who;
  for (const words of state.desk.told || []) say(words, { seconds: 15 });
  if (!state.who && !isRater()) await askName();
  await state.list.load();
  await look();
  if (!state.open) await openCase(state.list.neighbour(1, -1));
  if (!state.list.rows.length) find("blank").textContent = find("empty").textContent;
  setInterval(keep, KEEP_EVERY);
  document.body.dataset.ready = "yes";
}

begin().catch(fail);
