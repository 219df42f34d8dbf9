// Labels as runs of equal values: how many, where each begins, its value. See annotruth/desk/coding.py.

export class Runs {
  constructor(buffer, size) {
    const count = new DataView(buffer).getUint32(0, true);
    this.starts = new Uint32Array(buffer.slice(4, 4 + 4 * count));
    this.values = new Uint8Array(buffer, 4 + 4 * count, count);
    this.size = size;
    this.code = new Uint8Array(buffer);
  }

  /** The labels from first up to last. */
  read(first, last) {
    const out = new Uint8Array(last - first);
    let low = 0, high = this.starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.starts[middle] <= first) low = middle; else high = middle - 1;
    }
    for (let run = low; run < this.starts.length && this.starts[run] < last; run++) {
      const end = run + 1 < this.starts.length ? this.starts[run + 1] : this.size;
      out.fill(this.values[run], Math.max(this.starts[run], first) - first, Math.min(end, last) - first);
    }
    return out;
  }
}

export function encode(labels) {
  let count = labels.length ? 1 : 0;
  for (let i = 1; i < labels.length; i++) if (labels[i] !== labels[i - 1]) count++;
  const code = new Uint8Array(4 + 5 * count), view = new DataView(code.buffer);
  view.setUint32(0, count, true);
  for (let i = 0, run = 0; i < labels.length; i++) {
    if (i && labels[i] === labels[i - 1]) continue;
    view.setUint32(4 + 4 * run, i, true);
    code[4 + 4 * count + run++] = labels[i];
  }
  return code;
}
