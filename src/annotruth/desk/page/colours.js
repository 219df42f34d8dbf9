// Colours of classes, which are filled in, and of raters, whose outlines lie upon them.

const CLASSES = ["#ff4d6d", "#3ddc97", "#5e8bff", "#ffd166", "#c77dff", "#ff9f43", "#4dd0e1", "#b8e986"];
const RATERS = ["#56b4e9", "#f0a202", "#e58ac0", "#f7ec59", "#2fd6a3", "#ff7f50", "#c9c9ff", "#9be564", "#ff5fa2", "#7fdbff"];
export const FUSED = "#ffffff", METHODS = "#b7c3d4", UNKNOWN = 255;

const wheel = (number) => `hsl(${Math.round((number * 137.508) % 360)} 75% 62%)`;

export const classColour = (number) =>
  number === UNKNOWN ? "#9aa4b2" : number === 0 ? "#5b6572" : CLASSES[number - 1] || wheel(number);

export const raterColour = (number) => RATERS[number] || wheel(number + 3);

const parsed = new Map();

/** [red, green, blue] of a colour. */
export function parts(colour) {
  if (!parsed.has(colour)) {
    const context = new OffscreenCanvas(1, 1).getContext("2d");
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    parsed.set(colour, [...context.getImageData(0, 0, 1, 1).data.slice(0, 3)]);
  }
  return parsed.get(colour);
}
