// The image area: picture, filled labels, outlines of others' labels, doubt; zoom, move and window.

import { classColour, parts, UNKNOWN } from "./colours.js";

const FILL = 62, DOUBT = [179, 120, 255];

/** Outlines along pixel borders, wherever labels (rows × columns) differ from their neighbours. */
export function outline(labels, rows, columns) {
  const path = new Path2D();
  for (let y = 0; y <= rows; y++) {
    for (let x = 0; x < columns; x++) {
      const above = y ? labels[(y - 1) * columns + x] : 0, below = y < rows ? labels[y * columns + x] : 0;
      if (above === below || !counts(above, below)) continue;
      const start = x;
      while (x + 1 < columns && (y ? labels[(y - 1) * columns + x + 1] : 0) !== (y < rows ? labels[y * columns + x + 1] : 0)) x++;
      path.moveTo(start, y);
      path.lineTo(x + 1, y);
    }
  }
  for (let x = 0; x <= columns; x++) {
    for (let y = 0; y < rows; y++) {
      const left = x ? labels[y * columns + x - 1] : 0, right = x < columns ? labels[y * columns + x] : 0;
      if (left === right || !counts(left, right)) continue;
      const start = y;
      while (y + 1 < rows && (x ? labels[(y + 1) * columns + x - 1] : 0) !== (x < columns ? labels[(y + 1) * columns + x] : 0)) y++;
      path.moveTo(x, start);
      path.lineTo(x, y + 1);
    }
  }
  return path;
}

const counts = (one, other) => !((one === UNKNOWN && other === 0) || (one === 0 && other === UNKNOWN));

export class Viewer {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.layers = []; // {key, colour, shown, runs}
    this.shape = null;
    this.drawn = () => {}; // draws tools on top, in image coordinates
    this.zoomed = () => {};
    new ResizeObserver(() => this.resize()).observe(canvas);
  }

  /** Take up another case. */
  show(shape, aspect, image, labels) {
    [this.slices, this.rows, this.columns] = this.shape = shape;
    this.aspect = aspect;
    this.image = image;
    this.window = image ? [...image.window] : [0, 1];
    this.labels = labels; // all slices; null for a picture without labels
    this.picture = new OffscreenCanvas(this.columns, this.rows);
    this.fill = new OffscreenCanvas(this.columns, this.rows);
    this.doubt = new OffscreenCanvas(this.columns, this.rows);
    this.fillPixels = new ImageData(this.columns, this.rows);
    this.plane = null;
    this.fit();
  }

  clear() {
    this.shape = null;
    this.layers = [];
    this.draw();
  }

  resize() {
    const { clientWidth, clientHeight } = this.canvas, ratio = devicePixelRatio || 1;
    if (!clientWidth) return;
    this.canvas.width = Math.round(clientWidth * ratio);
    this.canvas.height = Math.round(clientHeight * ratio);
    if (this.shape && this.fitted) this.fit(); else this.draw();
  }

  fit() {
    if (!this.shape) return;
    const { width, height } = this.canvas, margin = 0.96;
    this.scale = Math.max(1e-3, Math.min((margin * width) / this.columns, (margin * height) / (this.rows * this.aspect)));
    this.left = (width - this.scale * this.columns) / 2;
    this.top = (height - this.scale * this.rows * this.aspect) / 2;
    this.fitted = true;
    this.zoomed();
    this.draw();
  }

  zoom(factor, x = this.canvas.width / 2, y = this.canvas.height / 2) {
    if (!this.shape) return;
    const scale = Math.min(64, Math.max(0.05, this.scale * factor)), change = scale / this.scale;
    this.left = x - (x - this.left) * change;
    this.top = y - (y - this.top) * change;
    this.scale = scale;
    this.fitted = false;
    this.zoomed();
    this.draw();
  }

  move(x, y) {
    this.left += x;
    this.top += y;
    this.fitted = false;
    this.draw();
  }

  /** Where in the image a pointer is, in pixels; the corner of the first is (0, 0). */
  locate(event) {
    const box = this.canvas.getBoundingClientRect(), ratio = this.canvas.width / box.width;
    const x = (event.clientX - box.left) * ratio, y = (event.clientY - box.top) * ratio;
    return { x: (x - this.left) / this.scale, y: (y - this.top) / (this.scale * this.aspect), screenX: x, screenY: y };
  }

  // -- what is shown ------------------------------------------------------------------------------------------------

  setSlice(slice, plane) {
    this.slice = slice;
    this.plane = plane;
    this.paintPicture();
    this.paintFill();
    this.outlines = new Map();
    this.paintDoubt();
    this.draw();
  }

  setWindow(low, high) {
    this.window = [low, Math.max(high, low + (this.image.high - this.image.low) / 1000)];
    this.paintPicture();
    this.draw();
  }

  paintPicture() {
    const context = this.picture.getContext("2d"), plane = this.plane;
    if (!plane) {
      context.fillStyle = "#20252c";
      context.fillRect(0, 0, this.columns, this.rows);
      return;
    }
    const pixels = new ImageData(this.columns, this.rows), out = new Uint32Array(pixels.data.buffer);
    const { low, high, colour, bytes } = this.image, most = bytes === 2 ? 65535 : 255;
    const table = new Uint8ClampedArray(most + 1), step = (high - low) / most;
    const [black, white] = this.window, gain = 255 / (white - black);
    for (let level = 0; level <= most; level++) table[level] = (low + level * step - black) * gain;
    if (colour) {
      for (let i = 0, j = 0; i < out.length; i++, j += 3) {
        out[i] = 0xff000000 | (table[plane[j + 2]] << 16) | (table[plane[j + 1]] << 8) | table[plane[j]];
      }
    } else {
      for (let i = 0; i < out.length; i++) out[i] = 0xff000000 | (table[plane[i]] * 0x010101);
    }
    context.putImageData(pixels, 0, 0);
  }

  /** The labels of the slice that is shown; a view, not a copy. */
  current() {
    const size = this.rows * this.columns;
    return this.labels && this.labels.subarray(this.slice * size, (this.slice + 1) * size);
  }

  /** Paint the filled labels anew, or only a part of them. */
  paintFill(left = 0, top = 0, right = this.columns, bottom = this.rows) {
    if (!this.labels) return;
    const labels = this.current(), out = new Uint32Array(this.fillPixels.data.buffer);
    if (!this.tints) this.tints = new Map();
    for (let y = top; y < bottom; y++) {
      for (let i = y * this.columns + left, end = y * this.columns + right; i < end; i++) {
        const label = labels[i];
        out[i] = label === 0 ? 0 : this.tint(label);
      }
    }
    this.fill.getContext("2d").putImageData(this.fillPixels, 0, 0, left, top, right - left, bottom - top);
    this.ownOutline = null;
  }

  tint(label) {
    let tint = this.tints.get(label);
    if (tint === undefined) {
      const [red, green, blue] = parts(classColour(label));
      this.tints.set(label, (tint = ((FILL << 24) | (blue << 16) | (green << 8) | red) >>> 0));
    }
    return tint;
  }

  paintDoubt() {
    const layer = this.layers.find((each) => each.key === "probability");
    if (!layer || !layer.shown) return;
    const size = this.rows * this.columns, values = layer.runs.read(this.slice * size, (this.slice + 1) * size);
    const pixels = new ImageData(this.columns, this.rows);
    for (let i = 0; i < size; i++) {
      const doubt = Math.min(1, 2 * (1 - values[i] / layer.steps));
      if (doubt > 0) pixels.data.set([...DOUBT, 30 + 190 * doubt], 4 * i);
    }
    this.doubt.getContext("2d").putImageData(pixels, 0, 0);
  }

  outlineOf(layer) {
    let path = this.outlines.get(layer.key);
    if (!path) {
      const size = this.rows * this.columns;
      path = outline(layer.runs.read(this.slice * size, (this.slice + 1) * size), this.rows, this.columns);
      this.outlines.set(layer.key, path);
    }
    return path;
  }

  draw() {
    const { context, canvas } = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = "#050608";
    context.fillRect(0, 0, canvas.width, canvas.height);
    if (!this.shape || this.slice === undefined) return;
    const high = this.scale * this.aspect, ratio = devicePixelRatio || 1;
    context.setTransform(this.scale, 0, 0, high, this.left, this.top);
    context.imageSmoothingEnabled = this.scale < 1;
    context.drawImage(this.picture, 0, 0);
    const shown = this.layers.filter((layer) => layer.shown);
    if (shown.some((layer) => layer.key === "probability")) context.drawImage(this.doubt, 0, 0);
    if (this.labels && this.fillShown !== false) {
      context.drawImage(this.fill, 0, 0);
      this.ownOutline ||= outline(this.current(), this.rows, this.columns);
      this.stroke(this.ownOutline, "#ffffff", 1.2 * ratio);
    }
    for (const layer of shown) if (layer.key !== "probability") this.stroke(this.outlineOf(layer), layer.colour, 1.8 * ratio, layer.dash);
    this.drawn(context, ratio);
  }

  /** Draw a path of image coordinates with a line of so many screen pixels. */
  stroke(path, colour, width, dash = []) {
    const { context } = this, placed = new Path2D();
    placed.addPath(path, new DOMMatrix([this.scale, 0, 0, this.scale * this.aspect, this.left, this.top]));
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.setLineDash(dash);
    context.stroke(placed);
    context.restore();
  }
}
