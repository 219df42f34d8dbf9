// Small helpers for the page: elements, short messages.

export const find = (id) => document.getElementById(id);

/** Make an element; text is only ever set as text. */
export function element(kind, properties = {}, ...children) {
  const { dataset, role, ...rest } = properties, made = Object.assign(document.createElement(kind), rest);
  if (dataset) Object.assign(made.dataset, dataset);
  if (role) made.setAttribute("role", role);
  made.append(...children);
  return made;
}

/** Say something for a while; with an action, a button to take it. */
export function say(words, { bad = false, action = null, seconds = bad ? 12 : 4 } = {}) {
  const toast = element("div", { className: `toast${bad ? " bad" : ""}` }, element("span", {}, words));
  if (action) toast.append(element("button", { onclick: () => { toast.remove(); action[1](); } }, action[0]));
  find("toasts").append(toast);
  while (find("toasts").children.length > 3) find("toasts").firstChild.remove();
  setTimeout(() => toast.remove(), 1000 * seconds);
}

export const percent = (share) => `${Math.round(100 * share)} %`;
