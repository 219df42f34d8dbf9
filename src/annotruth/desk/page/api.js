// Asking the server: JSON, or bytes with a JSON head. What goes wrong is an error in words.

// Which page this is. A page that is loaded anew stays the same; a copy of it in another tab is another.
export const session = sessionStorage.getItem("session")
  || [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
sessionStorage.removeItem("session");

export const keepSession = () => sessionStorage.setItem("session", session);

export class DeskError extends Error {
  constructor(words, status) {
    super(words);
    this.status = status;
  }
}

async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new DeskError("The desk cannot be reached. Is “annotruth serve” still running? Your work is kept in this browser.", 0);
  }
  if (answer.ok) return answer;
  let words = `The desk answered ${answer.status}.`;
  try {
    words = (await answer.json()).error || words;
  } catch { /* no words */ }
  throw new DeskError(words, answer.status);
}

export const getJson = async (path) => (await ask(path)).json();

export const getBytes = async (path) => (await ask(path)).arrayBuffer();

/** An answer of several codes: its head, and the bytes of each. */
export async function getBundle(path) {
  const buffer = await getBytes(path);
  const length = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  let start = 4 + length;
  const parts = head.lengths.map((size) => buffer.slice(start, (start += size)));
  return { head, parts };
}

/** Tell the server something, with a mask's code perhaps; `keepalive` outlives the page. */
export async function post(path, told, code = new Uint8Array(0), keepalive = false) {
  const head = new TextEncoder().encode(JSON.stringify({ session, ...told }));
  const body = new Uint8Array(4 + head.length + code.length);
  new DataView(body.buffer).setUint32(0, head.length, true);
  body.set(head, 4);
  body.set(code, 4 + head.length);
  const headers = { "X-Annotruth-Desk": "1", "Content-Type": "application/octet-stream" };
  return (await ask(path, { method: "POST", body, headers, keepalive })).json();
}
