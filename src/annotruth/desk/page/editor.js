// Drawing: brush, eraser and polygon on the labels of one slice, with undo and redo.

const MOST_STEPS = 200;

export class Editor {
  constructor(viewer) {
    this.viewer = viewer;
    this.reset();
  }

  /** Forget all steps, for other labels. */
  reset() {
    this.done = [];
    this.undone = [];
    this.forgotten = 0; // steps that can no longer be undone
    this.before = null;
  }

  get isChanged() {
    return this.done.length + this.forgotten > 0;
  }

  begin() {
    this.before = this.viewer.current().slice();
    this.box = [Infinity, Infinity, -1, -1];
  }

  /** A stroke of the brush from one point to another; paints what changed. */
  stamp(from, to, radius, value) {
    const { columns, rows, aspect } = this.viewer, labels = this.viewer.current(), reach = radius + 1;
    const left = Math.max(0, Math.floor(Math.min(from.x, to.x) - reach)), right = Math.min(columns, Math.ceil(Math.max(from.x, to.x) + reach));
    const top = Math.max(0, Math.floor(Math.min(from.y, to.y) - reach / aspect)), bottom = Math.min(rows, Math.ceil(Math.max(from.y, to.y) + reach / aspect));
    if (left >= right || top >= bottom) return;
    const dx = to.x - from.x, dy = (to.y - from.y) * aspect, length = dx * dx + dy * dy || 1, most = Math.max(radius * radius, 0.5);
    for (let y = top; y < bottom; y++) {
      const py = (y + 0.5 - from.y) * aspect;
      for (let x = left; x < right; x++) {
        const px = x + 0.5 - from.x, along = Math.min(1, Math.max(0, (px * dx + py * dy) / length));
        const ex = px - along * dx, ey = py - along * dy;
        if (ex * ex + ey * ey <= most) labels[y * columns + x] = value;
      }
    }
    this.touch(left, top, right, bottom);
  }

  /** Fill a polygon: pixels whose middle lies inside. */
  polygon(points, value) {
    this.begin();
    const { columns, rows } = this.viewer, labels = this.viewer.current();
    const top = Math.max(0, Math.floor(Math.min(...points.map((p) => p.y)))), bottom = Math.min(rows, Math.ceil(Math.max(...points.map((p) => p.y))));
    for (let y = top; y < bottom; y++) {
      const middle = y + 0.5, cuts = [];
      points.forEach((one, number) => {
        const other = points[(number + 1) % points.length];
        if (one.y <= middle !== other.y <= middle) cuts.push(one.x + ((middle - one.y) / (other.y - one.y)) * (other.x - one.x));
      });
      cuts.sort((a, b) => a - b);
      for (let i = 0; i + 1 < cuts.length; i += 2) {
        const first = Math.max(0, Math.ceil(cuts[i] - 0.5)), last = Math.min(columns, Math.ceil(cuts[i + 1] - 0.5));
        if (first < last) labels.fill(value, y * columns + first, y * columns + last);
      }
    }
    this.touch(0, top, columns, bottom);
    return this.end();
  }

  touch(left, top, right, bottom) {
    if (left >= right || top >= bottom) return;
    this.box = [Math.min(this.box[0], left), Math.min(this.box[1], top), Math.max(this.box[2], right), Math.max(this.box[3], bottom)];
    this.viewer.paintFill(left, top, right, bottom);
  }

  /** End a stroke; whether anything changed. */
  end() {
    const [left, top, right, bottom] = this.box, { columns, slice } = this.viewer;
    const labels = this.viewer.current(), before = this.before;
    this.before = null;
    if (right < 0) return false;
    const step = { slice, left, top, right, bottom, old: cut(before), fresh: cut(labels) };
    if (step.old.every((value, i) => value === step.fresh[i])) return false;
    this.done.push(step);
    this.undone = [];
    if (this.done.length > MOST_STEPS) {
      this.done.shift();
      this.forgotten++;
    }
    return true;

    function cut(from) {
      const width = right - left, out = new Uint8Array(width * (bottom - top));
      for (let y = top; y < bottom; y++) out.set(from.subarray(y * columns + left, y * columns + right), (y - top) * width);
      return out;
    }
  }

  undo() {
    return this.step(this.done, this.undone, "old");
  }

  redo() {
    return this.step(this.undone, this.done, "fresh");
  }

  /** Take a step back or forth; the slice it is on, or undefined. */
  step(from, to, values) {
    const step = from.pop();
    if (!step) return undefined;
    to.push(step);
    const { columns, rows, labels } = this.viewer, first = step.slice * rows * columns, width = step.right - step.left;
    for (let y = step.top; y < step.bottom; y++) {
      const row = step[values].subarray((y - step.top) * width, (y - step.top + 1) * width);
      labels.set(row, first + y * columns + step.left);
    }
    if (step.slice === this.viewer.slice) this.viewer.paintFill(step.left, step.top, step.right, step.bottom);
    return step.slice;
  }
}
