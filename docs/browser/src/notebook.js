// The reader's cells as a notebook.
import { download } from "./dom.js";

const kernelspec = { display_name: "Python 3", language: "python", name: "python3" };

export function notebook(sources) {
  const cells = sources.map((source, number) => ({
    id: `cell-${number}`,
    cell_type: "code",
    execution_count: null,
    metadata: {},
    outputs: [],
    source,
  }));
  return { cells, metadata: { kernelspec, language_info: { name: "python" } }, nbformat: 4, nbformat_minor: 5 };
}

// Take the notebook of a lesson and put the reader's code in place of the cells'.
export async function edited(address, sources) {
  const made = await (await fetch(address)).json();
  const code = made.cells.filter((cell) => cell.cell_type === "code");
  code.forEach((cell, number) => {
    if (cell.source !== sources[number].trim()) Object.assign(cell, { source: sources[number].trim(), outputs: [] });
  });
  return made;
}

export function save(name, made) {
  download(name, "application/x-ipynb+json", `${JSON.stringify(made, null, 1)}\n`);
}
