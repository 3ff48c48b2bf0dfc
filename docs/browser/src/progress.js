// What the reader has done, kept in this browser only: { "09_control_flow": { run: "2026-…", passed: "2026-…" } }.
const KEY = "namoo-progress";

export function read() {
  try {
    return JSON.parse(localStorage.getItem(KEY)) ?? {};
  } catch {
    return {}; // storage is switched off, or holds something else
  }
}

export function write(progress) {
  try {
    localStorage.setItem(KEY, JSON.stringify(progress));
  } catch {
    // storage is switched off: the page works, and forgets
  }
}

// Note that a lesson was `run` to its end, or that its exercise was `passed`.
export function note(lesson, what) {
  const progress = read();
  progress[lesson] = { ...progress[lesson], [what]: progress[lesson]?.[what] ?? new Date().toISOString() };
  write(progress);
}

export function merge(other) {
  const progress = read();
  for (const [lesson, done] of Object.entries(other)) {
    if (/^\d\d_\w+$/.test(lesson) && done && typeof done === "object") progress[lesson] = { ...done, ...progress[lesson] };
  }
  write(progress);
}
