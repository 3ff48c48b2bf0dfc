// Elements in one line.
export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

export function button(text, onclick, className = "") {
  return element("button", { type: "button", className: `cell-button ${className}`, textContent: text, onclick });
}

// A button that shows a sign instead of its word.
export function sign(shape, word, onclick, className = "") {
  const made = button(shape, onclick, className);
  return Object.assign(made, { title: word, ariaLabel: word });
}

// Give the reader a file.
export function download(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
