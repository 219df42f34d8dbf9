// The keyboard: what each key does, in one table that the help is made of, too.

export const KEYS = [
  ["Cases", [
    ["next", "Next case", ["j"]], ["previous", "Case before", ["k"]], ["find", "Find a case", ["/"]],
  ]],
  ["Decide", [
    ["save", "Save what is filled in, and go on", ["Enter"]], ["note", "Say why", ["n"]], ["ambiguous", "Ambiguous", ["x"]],
    ["send", "Send to the rater", ["s"]], ["reopen", "Reopen", ["r"]],
  ]],
  ["Labels", [
    ["rater", "Show a rater's outline", ["1", "…", "9"]], ["use", "Start from a rater's label", ["Shift 1", "…", "9"]],
    ["fused", "Start from the fused truth", ["g"]], ["fill", "Hide what is filled in", ["f"]], ["doubt", "Show doubt", ["d"]],
    ["methods", "Show the next method", ["m"]],
  ]],
  ["Draw", [
    ["brush", "Brush", ["b"]], ["erase", "Eraser", ["e"]], ["polygon", "Polygon; Enter closes it", ["p"]], ["class", "Next class", ["c"]],
    ["smaller", "Smaller brush", ["["]], ["larger", "Larger brush", ["]"]], ["undo", "Undo", ["z"]], ["redo", "Redo", ["y"]],
  ]],
  ["Look", [
    ["pan", "Move; also with space held down", ["v"]], ["window", "Window: drag", ["w"]], ["zoomin", "Larger", ["+"]], ["zoomout", "Smaller", ["-"]],
    ["fit", "All of it", ["0"]], ["up", "Slice above", ["↑"]], ["down", "Slice below", ["↓"]],
  ]],
  ["Page", [["help", "These keys", ["?"]], ["cancel", "Cancel, leave a field", ["Esc"]]]],
];

const NAMED = { ArrowUp: "up", ArrowDown: "down", PageUp: "up", PageDown: "down", Escape: "cancel", "=": "zoomin", ".": "down", ",": "up" };

/** Which action a key stands for, with a number for digits. */
export function actionOf(event) {
  if (event.altKey) return null;
  const key = event.key;
  if (event.ctrlKey || event.metaKey) {
    if (key.toLowerCase() === "z") return { name: event.shiftKey ? "redo" : "undo" };
    return key.toLowerCase() === "y" ? { name: "redo" } : null;
  }
  const digit = /^Digit([1-9])$/.exec(event.code);
  if (digit) return { name: event.shiftKey ? "use" : "rater", number: Number(digit[1]) - 1 };
  if (NAMED[key]) return { name: NAMED[key] };
  for (const [, rows] of KEYS) for (const [name, , keys] of rows) if (keys.includes(key.length === 1 ? key.toLowerCase() : key)) return { name };
  return null;
}

export function fillHelp(place, hidden) {
  for (const [title, rows] of KEYS) {
    const section = document.createElement("section"), heading = document.createElement("h3");
    heading.textContent = title;
    section.append(heading);
    for (const [name, words, keys] of rows) {
      if (hidden.has(name)) continue;
      const line = document.createElement("p"), told = document.createElement("span"), shown = document.createElement("span");
      told.textContent = words;
      for (const key of keys) {
        const cap = document.createElement(key === "…" ? "span" : "kbd");
        cap.textContent = key.length === 1 ? key.toUpperCase() : key;
        shown.append(cap);
      }
      line.append(told, shown);
      section.append(line);
    }
    if (section.children.length > 1) place.append(section);
  }
}
