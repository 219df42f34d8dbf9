// What all parts of the page share: the desk, the case that is open, the tool in hand.

import { DeskError } from "./api.js";
import { Editor } from "./editor.js";
import { find, say } from "./page.js";
import { Viewer } from "./viewer.js";

export const viewer = new Viewer(find("canvas"));
export const editor = new Editor(viewer);

export const state = {
  desk: null, // what the server tells of the desk
  list: null, // the list of cases
  who: localStorage.getItem("who") || "",
  open: null, // the case that is shown
  saving: false,
  tool: { mode: "pan", size: 8, label: 1, points: [], hand: false, at: null },
};

export const isRater = () => state.desk.role === "rater";
export const isMasks = () => state.desk.kind === "masks";
export const draftKey = () => `${state.desk.title}/${state.desk.rater}/${state.open.item}`;
export const layer = (key) => state.open.layers.find((each) => each.key === key);
export const measure = (name, start) => performance.measure(`desk:${name}`, { start, end: performance.now() });

export function fail(error) {
  if (!(error instanceof DeskError)) console.error(error);
  say(error.message, { bad: true });
}
