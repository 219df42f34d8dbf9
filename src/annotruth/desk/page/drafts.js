// Drawings that are not saved yet, kept in the browser: a page that is closed, or a server that is gone, loses nothing.

const NAME = "annotruth-desk", STORE = "drafts";

function open() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(NAME, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

async function act(mode, work) {
  try {
    const base = await open();
    return await new Promise((resolve, reject) => {
      const request = work(base.transaction(STORE, mode).objectStore(STORE));
      request.onsuccess = () => { base.close(); resolve(request.result); };
      request.onerror = () => { base.close(); reject(request.error); };
    });
  } catch {
    return undefined; // a private window may forbid it: then there are no drafts
  }
}

export const keepDraft = (key, draft) => act("readwrite", (store) => store.put(draft, key));
export const findDraft = (key) => act("readonly", (store) => store.get(key));
export const dropDraft = (key) => act("readwrite", (store) => store.delete(key));
