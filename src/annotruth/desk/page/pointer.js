// The pointer: moving, windowing and drawing; what lies under it is told below the image.

import { classColour, UNKNOWN } from "./colours.js";
import { changed, goTo } from "./masks.js";
import { element, find, percent } from "./page.js";
import { editor, layer, measure, state, viewer } from "./state.js";

const canvas = find("canvas");
let drag = null;

export function setMode(mode) {
  state.tool.mode = mode;
  state.tool.points = [];
  for (const button of find("modes").children) button.setAttribute("aria-pressed", button.dataset.mode === mode);
  canvas.style.cursor = { pan: "grab", brush: "none", erase: "none", polygon: "crosshair", window: "ns-resize" }[mode];
  viewer.draw();
}

const value = () => (state.tool.mode === "erase" ? 0 : state.tool.label);

canvas.addEventListener("pointerdown", (event) => {
  if (!state.open || !viewer.shape) return;
  canvas.focus({ preventScroll: true });
  const at = viewer.locate(event), mode = event.button === 1 || state.tool.hand ? "pan" : event.button === 2 ? "window" : state.tool.mode;
  canvas.setPointerCapture(event.pointerId);
  if (mode === "polygon") {
    state.tool.points.push(at);
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
  editor.stamp(from, to, state.tool.size / 2, value());
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
  if (!state.open || !viewer.shape) return;
  const at = (state.tool.at = viewer.locate(event));
  if (drag?.mode === "pan") viewer.move(at.screenX - drag.last.screenX, at.screenY - drag.last.screenY);
  else if (drag?.mode === "window" && viewer.image) {
    const range = viewer.image.high - viewer.image.low, [low, high] = drag.window;
    const wider = ((at.screenX - drag.first.screenX) / 400) * range, brighter = ((at.screenY - drag.first.screenY) / 400) * range;
    viewer.setWindow(low + brighter - wider / 2, high + brighter + wider / 2);
  } else if (drag && viewer.labels) stroke(drag.last, at);
  else if (state.tool.mode !== "pan") viewer.draw();
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
canvas.addEventListener("pointerleave", () => { state.tool.at = null; viewer.draw(); });
canvas.addEventListener("contextmenu", (event) => event.preventDefault());
canvas.addEventListener("dblclick", () => { if (state.tool.mode === "polygon") closePolygon(); });
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  if (!viewer.shape) return;
  const at = viewer.locate(event);
  if (viewer.slices > 1 && !event.ctrlKey) goTo((state.open.wanted ?? viewer.slice) + Math.sign(event.deltaY));
  else viewer.zoom(Math.exp(-event.deltaY / 400), at.screenX, at.screenY);
}, { passive: false });

export function closePolygon() {
  const points = state.tool.points;
  state.tool.points = [];
  if (points.length > 2 && viewer.labels && editor.polygon(points, value())) changed(); else viewer.draw();
}

viewer.drawn = (context, ratio) => {
  if (state.tool.points.length) {
    const path = new Path2D();
    for (const point of [...state.tool.points, ...(state.tool.at ? [state.tool.at] : [])]) path.lineTo(point.x, point.y);
    viewer.stroke(path, classColour(state.tool.label), 2 * ratio);
  }
  if (state.tool.at && (state.tool.mode === "brush" || state.tool.mode === "erase") && viewer.labels) {
    const path = new Path2D();
    path.ellipse(state.tool.at.x, state.tool.at.y, state.tool.size / 2, state.tool.size / 2 / viewer.aspect, 0, 0, 7);
    viewer.stroke(path, "#000", 3 * ratio);
    viewer.stroke(path, state.tool.mode === "erase" ? "#fff" : classColour(state.tool.label), 1.5 * ratio);
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
    const named = (label) => (label === UNKNOWN ? "not sure" : state.desk.classes[label]), whole = viewer.slice * viewer.rows * viewer.columns + spot;
    tell("label", named(viewer.current()[spot]));
    const chance = layer("probability");
    if (chance) tell("fused", `${named(layer("fused").runs.read(whole, whole + 1)[0])}, ${percent(chance.runs.read(whole, whole + 1)[0] / state.desk.steps)}`);
    for (const each of state.open.layers) if (each.shown && each.number !== undefined) tell(each.name, named(each.runs.read(whole, whole + 1)[0]));
  }
  return place.replaceChildren(...cells);
}

